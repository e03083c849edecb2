"""Which tests hang on the timing of programs that are not ours; `CONTRIBUTING.md` says what follows from it."""

from __future__ import annotations

from fnmatch import fnmatch

PLACES = {
    "packages/filepact-csharp/tests/test_csharp_*.py": "the runtime and the compiler of .NET",
    "packages/filepact-acp/tests/test_sdk_versions.py": "the package for editors, in many versions",
    "packages/filepact-run/tests/test_run_terminal.py": "bash, on a terminal",
    "packages/filepact-windows/tests/test_chat_app.py": "Chromium",
    "packages/filepact-windows/tests/test_review_journey.py": "tmux",
    "packages/filepact-windows/tests/test_web_journey.py": "Chromium",
    "tests/agents/test_*.py": "agents and their hosts",
    "tests/faces/test_inspector.py": "a client of the protocol, from npm",
    "tests/faces/test_inspector_login.py": "a client of the protocol, from npm, and Chromium",
    "tests/faces/test_real_agent.py": "an agent, from npm",
    "tests/faces/test_sandbox_and_language_servers.py": "a language server",
    "tests/faces/test_solution_with_servers.py": "language servers",
    "packages/filepact-diagnostics/tests/lsp/test_confined_servers.py": "language servers",
    "packages/filepact-diagnostics/tests/lsp/test_nothing_from_the_project.py": "language servers",
    "packages/filepact-diagnostics/tests/lsp/test_random_edits.py": "language servers",
    "packages/filepact-diagnostics/tests/lsp/test_servers_from_npm.py": "language servers",
    "packages/filepact-diagnostics/tests/lsp/test_sync_with_real_servers.py": "language servers",
    "packages/filepact-diagnostics/tests/semantic/test_dependents.py": "language servers",
    "packages/filepact-diagnostics/tests/semantic/test_following_changes.py": "language servers",
    "packages/filepact-diagnostics/tests/semantic/test_pending.py": "language servers",
    "packages/filepact-diagnostics/tests/semantic/test_races.py": "language servers",
    "packages/filepact-diagnostics/tests/semantic/test_random_edits_through_the_door.py": "language servers",
    "packages/filepact-diagnostics/tests/semantic/test_whole_projects.py": "language servers",
    "tests/suites/test_mcp_conformance.py": "the protocol's own suite, from npm",
    "tests/tools/test_server_edits.py": "language servers",
}
"""Modules of tests, by patterns of their paths in the project, and whose programs they wait for."""

NEVER = (
    "text",
    "domain",
    "fs",
    "store",
    "workspace",
    "crash",
    "properties",
    "hostile",
    "agreement",
)
"""Folders of tests in which a test that fails once has failed, whatever else the machine was doing."""


def is_foreign(path: str) -> bool:
    """Whether the tests of a module, by its path in the project, hang on programs that are not ours."""
    return any(fnmatch(path, one) for one in PLACES)
