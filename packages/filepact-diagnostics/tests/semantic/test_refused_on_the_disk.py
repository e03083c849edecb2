"""No new errors where these are refused, in files that servers see to be concerned on the disk alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from filepact.app import open_toolbox
from filepact.tools.registry import CallContext
from filepact_diagnostics.semantic.updates import FreshDiagnostics
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from filepact.tools.registry import CallResult

ROOTS = {
    "ty": {
        "app/pyproject.toml": '[tool.ty.environment]\nroot = [".", "../lib"]\n',
        "app/use.py": "from through import again\n\nanswer: int = again(21)\n",
        "app/old.py": "from core import double\n\nold: str = double(21)\n",
        "lib/core.py": "def double(n: int) -> int:\n    return n * 2\n",
        "lib/through.py": "from core import double as again\n",
        "lib/alone.py": "def other(n: int) -> int:\n    return n\n",
    },
    "typescript": {
        "app/tsconfig.json": '{"extends": "../lib/base.json"}\n',
        "app/use.ts": "import { again } from '../lib';\nexport const answer: number = again(21);\n",
        "app/old.ts": "import { double } from '../lib/core';\nexport const old: string = double(21);\n",
        "lib/base.json": '{"compilerOptions": {"strict": true, "module": "esnext", "target": "es2022",'
        ' "moduleResolution": "bundler", "noImplicitAny": false}}\n',
        "app/loose.ts": "export function same(one) {\n  return one;\n}\n",
        "lib/core.ts": "export const double = (n: number): number => n * 2;\n",
        "lib/index.ts": "export { double as again } from './core';\n",
        "lib/alone.ts": "export const other = (n: number): number => n;\n",
    },
}


class Desk:
    """An agent, roots, and a server."""

    def __init__(self, folder: Path, server: str, files: Mapping[str, str], **options: Any) -> None:
        options = {"new_errors": "deny", **options}
        self.scene = Scene(folder, [server], files, **options)
        self.toolbox = open_toolbox(
            self.scene.workspace, semantics=self.scene.semantics, own=True, seconds=60.0
        )

    def call(self, tool: str, **arguments: Any) -> CallResult:
        outcome = self.toolbox.call(tool, arguments, CallContext(AGENT))
        outcome.on_sent()
        return outcome

    def edit(self, path: str, old: str, new: str) -> CallResult:
        place = self.scene.path(path)
        return self.call("edit_file", path=place, old_string=old, new_string=new)

    def manage(self, action: str, path: str, **more: str) -> CallResult:
        return self.call("manage_files", action=action, path=self.scene.path(path), **more)


def gone(name: str, text: str) -> str:
    """The patch that removes a file."""
    lines = text.splitlines()
    head = f"--- a/{name}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n"
    return head + "".join(f"-{one}\n" for one in lines)


@pytest.fixture
def desk_of(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def make(server: str, files: Mapping[str, str], **options: Any) -> Desk:
        made.append(Desk(tmp_path / str(len(made)), server, files, **options))
        return made[-1]

    yield make
    for one in made:
        one.scene.close()


@pytest.mark.parametrize("server", ROOTS)
def test_a_change_that_breaks_a_file_of_another_root_is_taken_back(
    server: str, desk_of: Callable[..., Desk]
) -> None:
    desk = desk_of(server, ROOTS[server], roots=("app", "lib"))
    end = ".ts" if server == "typescript" else ".py"
    core, through = f"lib/core{end}", "lib/index.ts" if end == ".ts" else "lib/through.py"
    before = desk.scene.get(core)
    wrong = before.replace("number", "string").replace("int", "str").replace("n * 2", "n")
    for _ in range(2):
        refused = desk.call("write_file", path=desk.scene.path(core), content=wrong)
        assert (refused.code, f"use{end}" in refused.text) == ("NEW_ERRORS", True), refused.text
        assert desk.scene.get(core) == before
    refused = desk.manage("delete", through)
    assert (refused.code, f"use{end}" in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.scene.get(through) == ROOTS[server][through]
    # What was wrong before is no reason, nor is what another root's files do not use.
    assert not (done := desk.edit(core, "n * 2", "n * 3")).failed, done.text
    done = desk.edit(f"lib/alone{end}", "other", "another")
    assert done.receipt is not None, done.text
    back = desk.call("history", action="undo", change=str(done.receipt["operation"]))
    assert not back.failed, back.text
    names = (f"app/use{end}", f"app/old{end}", through)
    parts = (gone(desk.scene.path(one), ROOTS[server][one]) for one in names)
    both = desk.call("patch_apply", patch="".join(parts))
    assert not both.failed, both.text
    if end == ".ts":
        refused = desk.edit("lib/base.json", '"noImplicitAny": false', '"noImplicitAny": true')
        assert (refused.code, "loose.ts" in refused.text) == ("NEW_ERRORS", True), refused.text
        assert desk.scene.get("lib/base.json") == ROOTS[server]["lib/base.json"]


@pytest.mark.parametrize("server", ROOTS)
def test_a_change_that_nobody_can_look_at_from_another_root_is_taken_back(
    server: str, desk_of: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = desk_of(server, ROOTS[server], roots=("app", "lib"))
    app = next(one for root, one in desk.scene.semantics._servers.items() if "/app" in root)
    ask, left = app.ask, list[int]()
    end = ".ts" if server == "typescript" else ".py"
    core = f"lib/core{end}"
    before = desk.scene.get(core)

    def silent(*question: Any, **options: Any) -> FreshDiagnostics:
        return ask(*question, **options) if left and left.pop() else FreshDiagnostics((), "late")

    monkeypatch.setattr(app, "ask", silent)
    for answers in (0, 1):
        left[:] = [1] * answers
        refused = desk.edit(core, "n * 2", "n * 3")
        assert (refused.code, left) == ("NOT_JUDGED", []), refused.text
        assert desk.scene.get(core) == before


LINKS = {
    "ty": {
        "pyproject.toml": '[project]\nname = "p"\nversion = "1"\n',
        "real/impl.py": "def double(n: int) -> int:\n    return n * 2\n",
        "real/other.py": "def double(n: str) -> str:\n    return n * 2\n",
        "use.py": "from lib import double\n\nanswer: int = double(21)\n",
        "far.py": "from pkg.impl import double\n\nanswer: int = double(21)\n",
    },
    "typescript": {
        "tsconfig.json": '{"compilerOptions": {"strict": true, "module": "esnext", "target": "es2022",'
        ' "moduleResolution": "bundler"}}\n',
        "real/impl.ts": "export const double = (n: number): number => n * 2;\n",
        "real/other.ts": "export const double = (n: string): string => n;\n",
        "use.ts": "import { double } from './lib';\nexport const answer: number = double(21);\n",
        "far.ts": "import { double } from './pkg/impl';\nexport const answer: number = double(21);\n",
    },
}


@pytest.mark.parametrize("server", LINKS)
def test_a_link_through_which_sources_are_read_stays(
    server: str, desk_of: Callable[..., Desk]
) -> None:
    desk = desk_of(server, LINKS[server])
    end = ".ts" if server == "typescript" else ".py"
    links = {f"lib{end}": f"real/impl{end}", "pkg": "real", "spare": "real"}
    for name, target in links.items():
        (desk.scene.root / name).symlink_to(target)

    def there() -> dict[str, str]:
        found = (one for one in desk.scene.root.iterdir() if one.is_symlink())
        return {one.name: str(one.readlink()) for one in found}

    def refused(outcome: CallResult, user: str) -> None:
        assert (outcome.code, f"{user}{end}" in outcome.text) == ("NEW_ERRORS", True), outcome.text
        assert there() == links

    for _ in range(2):
        refused(desk.manage("delete", f"lib{end}"), "use")
        refused(desk.manage("move", f"lib{end}", to=desk.scene.path(f"more{end}")), "use")
        refused(desk.manage("delete", "pkg"), "far")
        refused(desk.manage("move", "pkg", to=desk.scene.path("more")), "far")
    done = desk.manage("move", "spare", to=desk.scene.path("more"))
    assert done.receipt is not None, done.text
    links["more"] = links.pop("spare")
    assert there() == links
    desk.scene.put(f"last{end}", LINKS[server][f"far{end}"].replace("pkg", "more"))
    refused(desk.call("history", action="undo", change=str(done.receipt["operation"])), "last")
    (desk.scene.root / f"last{end}").unlink()
    back = desk.call("history", action="undo", change=str(done.receipt["operation"]))
    assert not back.failed, back.text


@pytest.mark.parametrize("server", [*LINKS, pytest.param("basedpyright", marks=pytest.mark.slow)])
def test_what_sources_read_through_a_link_does_not_break_them(
    server: str, desk_of: Callable[..., Desk]
) -> None:
    files = LINKS.get(server, LINKS["ty"])
    desk = desk_of(server, files)
    end = ".ts" if server == "typescript" else ".py"
    for name, target in {f"lib{end}": f"real/impl{end}", "pkg": "real"}.items():
        (desk.scene.root / name).symlink_to(target)
    real = f"real/impl{end}"
    right, wrong = (files[f"real/{one}{end}"] for one in ("impl", "other"))
    for _ in range(2):
        refused = desk.call("write_file", path=real, content=wrong)
        assert refused.code == "NEW_ERRORS", refused.text
        assert f"use{end}" in refused.text, refused.text
        assert f"far{end}" in refused.text, refused.text
        assert "bring 4 new errors" in refused.text  # each of them once
        assert desk.scene.get(real) == right
        for away in (
            desk.manage("move", real, to=desk.scene.path(f"real/more{end}")),
            desk.manage("delete", real),
        ):
            found = (f"{one}{end}" in away.text for one in ("use", "far"))
            assert (away.code, *found) == ("NEW_ERRORS", True, True), away.text
            assert desk.scene.get(real) == right
    assert not (done := desk.edit(real, "n * 2", "n * 3")).failed, done.text
    assert f"({server})" in done.text, done.text
