"""Tests of the suite that sweep or repeat, each with its full number, which is for `scripts/deep`."""

from __future__ import annotations

import os
import sys
from typing import TypeVar

import pytest

__all__ = ["often"]

_Count = TypeVar("_Count")
"""How often; or which, of some."""

_FULL = "FILEPACT_TESTS_FULL"
_TESTS = (
    "packages/filepact-acp/tests/proxy/test_proxy_mutations.py",
    "packages/filepact-acp/tests/proxy/test_proxy_process.py",
    "packages/filepact-acp/tests/test_client_sessions.py",
    "packages/filepact-acp/tests/test_sdk_versions.py",
    "packages/filepact-cli/tests/test_mistakes.py",
    "packages/filepact-csharp/tests/test_csharp_against_builds.py",
    "packages/filepact-run/tests/test_guard.py",
    "packages/filepact-run/tests/test_run_escapes.py",
    "tests/agents/test_day_of_agents.py",
    "tests/agents/test_hooked_agents.py",
    "tests/agents/test_plugins.py",
    "tests/agents/test_real_agents.py",
    "tests/agents/test_real_hosts.py",
    "tests/agents/test_run_agents.py",
    "tests/agents/test_setup_hosts.py",
    "tests/agents/test_through_a_gateway.py",
    "tests/agents/test_what_is_guarded.py",
    "tests/agreement/test_git_ignore.py",
    "tests/agreement/test_resolvers.py",
    "tests/domain/test_names.py",
    "tests/config/test_policy_lint.py",
    "tests/faces/test_every_door.py",
    "tests/faces/test_seven_tools.py",
    "tests/fs/test_trigrams.py",
    "tests/fuzz/test_fuzz_acp_client.py",
    "tests/fuzz/test_fuzz_patches.py",
    "tests/hostile/test_corpus.py",
    "tests/hostile/test_planted_prompts.py",
    "tests/hostile/test_races.py",
    "tests/hostile/test_removals.py",
    "packages/filepact-diagnostics/tests/lsp/test_confined_servers.py",
    "packages/filepact-diagnostics/tests/lsp/test_no_orphans.py",
    "packages/filepact-diagnostics/tests/lsp/test_nothing_from_the_project.py",
    "packages/filepact-diagnostics/tests/lsp/test_random_edits.py",
    "packages/filepact-diagnostics/tests/lsp/test_servers_from_npm.py",
    "packages/filepact-diagnostics/tests/lsp/test_whose_text.py",
    "packages/filepact-diagnostics/tests/semantic/test_races.py",
    "packages/filepact-diagnostics/tests/semantic/test_random_edits_through_the_door.py",
    "packages/filepact-diagnostics/tests/semantic/test_refused_errors.py",
    "packages/filepact-hooks/tests/test_hook_faults.py",
    "tests/scripts/test_bench.py",
    "tests/suites/test_gnu_patch.py",
    "tests/suites/test_mcp_conformance.py",
    "tests/text/test_patch_properties.py",
    "tests/text/test_raw_bytes.py",
    "tests/tools/test_server_edits.py",
    "tests/workspace/test_external.py",
    "packages/filepact-index/tests/test_search_index.py",
    "tests/workspace/test_selected_undo.py",
)


def often(usual: _Count, full: _Count) -> _Count:
    """How often something is done: in the suite, and in the deep checks."""
    return full if _FULL in os.environ else usual


if __name__ == "__main__":
    os.environ[_FULL] = "1"
    sys.exit(pytest.main(["-q", "-m", "slow", "--timeout=0", "-n", "2", *_TESTS]))
