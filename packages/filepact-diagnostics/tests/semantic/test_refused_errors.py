"""No change of an agent leaves new errors behind where these are refused, by whatever way it comes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from filepact.app import open_toolbox
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import ProposalChangedError
from filepact.tools.registry import CallContext
from filepact.workspace.folders import MOST_APART
from tests.hostile.sweeps import often
from tests.servers.scene import AGENT, Scene

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from filepact.tools.registry import CallResult


class Words(NamedTuple):
    """A project of a language: a file that declares something, and one that uses it.

    Attributes:
        settings: The project's file, and its text.
        end: What names of sources end with.
        lib: Declares `double`.
        wrong: The same, so that uses of it are wrong.
        use: Uses it; a brace stands for the name of the declaring file.
        alone: Needs that file, and nothing that it declares.
    """

    settings: tuple[str, str]
    end: str
    lib: str
    wrong: str
    use: str
    alone: str


PYTHON = Words(
    ("pyproject.toml", '[project]\nname = "p"\nversion = "1"\n'),
    ".py",
    "def double(n: int) -> int:\n    return n * 2\n",
    "def double(n: str) -> str:\n    return n * 2\n",
    "from {} import double\n\nanswer: int = double(21)\n",
    "import {}\n",
)
SCRIPT = Words(
    ("tsconfig.json", '{"compilerOptions": {"strict": true, "module": "esnext"}}\n'),
    ".ts",
    "export function double(n: number): number {\n  return n * 2;\n}\n",
    "export function double(n: string): string {\n  return n;\n}\n",
    'import {{ double }} from "./{}";\n\nexport const answer: number = double(21);\n',
    'export * as all from "./{}";\n',
)
SERVERS = {
    "ty": PYTHON,
    "pyright": PYTHON,
    "typescript": SCRIPT,
    "typescript-language-server": SCRIPT,
}
QUICK = ("ty", "typescript")
ALL = [one if one in QUICK else pytest.param(one, marks=pytest.mark.slow) for one in SERVERS]
EVERY = pytest.mark.parametrize("desk_of", ALL, indirect=True)
"""Of a test that shows a verdict of its own with the others as well, of which each start takes a second and more."""


class Desk:
    """An agent, a project and a server."""

    def __init__(self, folder: Path, server: str, rules: str = "", **options: Any) -> None:
        self.words = SERVERS[server]
        name, text = self.words.settings
        files = {
            name: text,
            self.name("lib"): self.words.lib,
            self.name("use"): self.words.use.format("lib"),
            self.name("apart"): self.words.lib,
        }
        options = {"new_errors": "deny", **options}
        self.scene = Scene(folder, [server], files, rules, **options)
        self.toolbox = open_toolbox(
            self.scene.workspace, semantics=self.scene.semantics, own=True, seconds=60.0
        )

    def name(self, stem: str) -> str:
        return f"{stem}{self.words.end}"

    def call(self, tool: str, **arguments: Any) -> CallResult:
        outcome = self.toolbox.call(tool, arguments, CallContext(AGENT))
        outcome.on_sent()
        return outcome

    def manage(self, action: str, path: str, to: str | None = None) -> CallResult:
        more = {} if to is None else {"to": to}
        return self.call("manage_files", action=action, path=path, **more)

    def patch(self, texts: dict[str, str | None]) -> CallResult:
        """Give files texts, at once; None removes one."""
        return self.call("patch_apply", patch="".join(map(self._part, texts, texts.values())))

    def _part(self, name: str, text: str | None) -> str:
        old = self.lines(name)
        new = None if text is None else text.splitlines()
        head = [f"a/{name}" if old is not None else "/dev/null"]
        head.append(f"b/{name}" if new is not None else "/dev/null")
        spans = [f"{min(len(some), 1)},{len(some)}" for some in (old or [], new or [])]
        body = [f"-{one}" for one in old or []] + [f"+{one}" for one in new or []]
        return "\n".join(
            [f"--- {head[0]}", f"+++ {head[1]}", f"@@ -{spans[0]} +{spans[1]} @@", *body, ""]
        )

    def lines(self, name: str) -> list[str] | None:
        there = (self.scene.root / name).exists()
        return self.scene.get(name).splitlines() if there else None

    def state(self) -> dict[str, tuple[int, str]]:
        """Every source by its name: which file it is, and its text."""
        found = sorted(self.scene.root.rglob(f"*{self.words.end}"))
        return {
            str(one.relative_to(self.scene.root)): (
                one.stat().st_ino,
                one.read_text(encoding="utf-8"),
            )
            for one in found
        }


@pytest.fixture(params=often(QUICK, ALL))
def desk_of(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def make(**options: Any) -> Desk:
        made.append(Desk(tmp_path / str(len(made)), request.param, **options))
        return made[-1]

    yield make
    for one in made:
        one.scene.close()


@EVERY
def test_a_file_that_others_need_is_not_removed(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    before = desk.state()
    refused = desk.manage("delete", desk.name("lib"))
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.state() == before


def test_a_file_that_another_only_names_is_not_removed(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    desk.scene.put(desk.name("use"), desk.words.alone.format("lib"))
    refused = desk.manage("delete", desk.name("lib"))
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.lines(desk.name("lib")) == desk.words.lib.splitlines()


def test_a_file_that_nobody_needs_is_removed_and_one_with_its_uses(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    assert not (done := desk.manage("delete", desk.name("apart"))).failed, done.text
    both = desk.patch({desk.name("lib"): None, desk.name("use"): None})
    assert not both.failed, both.text
    assert not desk.state()


def test_a_file_that_others_need_keeps_its_name(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    before = desk.state()
    refused = desk.manage("move", desk.name("lib"), desk.name("core"))
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.state() == before


def test_a_folder_that_others_need_keeps_its_name(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    use = desk.words.use.format("pkg.lib" if desk.words is PYTHON else "pkg/lib")
    for number in range(80):
        desk.scene.put(f"pkg/{desk.name(f'more{number}')}", desk.words.lib)
    desk.scene.put(f"pkg/{desk.name('lib')}", desk.words.lib)
    desk.scene.put(desk.name("use"), use)
    before = desk.state()
    refused = desk.manage("move", "pkg", "other")
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.state() == before


def test_a_folder_that_moves_as_one_moves_only_where_no_server_knows_a_file_of_it(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    for folder in ("pkg", "data"):
        for number in range(MOST_APART):
            desk.scene.put(f"{folder}/{number}.txt", "")
    desk.scene.put(f"pkg/{desk.name('lib')}", desk.words.lib)
    use = desk.words.use.format("pkg.lib" if desk.words is PYTHON else "pkg/lib")
    desk.scene.put(desk.name("use"), use)
    before = desk.state()
    refused = desk.manage("move", "pkg", "other")
    assert refused.code == "NOT_JUDGED", refused.text
    assert desk.state() == before
    moved = desk.manage("move", "data", "more")
    assert not moved.failed, moved.text
    desk.scene.semantics.new_errors = "allow"
    done = desk.manage("move", "pkg", "other")
    desk.scene.semantics.new_errors = "deny"
    refused = desk.call("history", action="undo", change=change_of(done))
    assert refused.code == "NOT_JUDGED", refused.text
    assert f"other/{desk.name('lib')}" in desk.state()


def test_a_file_of_which_servers_cannot_be_told_what_it_held_is_not_changed(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    long = desk.words.use.format("lib") + "\n" * 4_000_001
    desk.scene.put(desk.name("long"), long)
    long = long.replace("21", '"many"')
    refused = desk.call("write_file", path=desk.name("long"), content=long)
    assert refused.code == "NOT_JUDGED", refused.text
    assert "21" in desk.scene.get(desk.name("long"))


def test_a_file_that_is_too_long_to_be_shown_to_servers_was_not_looked_at(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    desk.scene.put(desk.name("long"), desk.words.use.format("lib") + "\n" * 4_000_001)
    for dry in (True, False):
        text = desk.words.lib + "\n" * dry
        update = desk.scene.write({desk.name("lib"): text + "\n"}, dry=dry)
        assert update.findings is not None
        assert not update.findings.complete


@EVERY
def test_a_file_gets_another_name_together_with_its_uses(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    use = desk.words.use.format("core")
    new = {desk.name("lib"): None, desk.name("core"): desk.words.lib, desk.name("use"): use}
    moved = desk.patch(new)
    assert not moved.failed, moved.text
    assert desk.lines(desk.name("use")) == use.splitlines()
    assert desk.lines(desk.name("lib")) is None


def test_a_new_file_comes_together_with_what_uses_it(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    use = desk.words.use.format("core")
    made = desk.patch({desk.name("core"): desk.words.lib, desk.name("use"): use})
    assert not made.failed, made.text
    assert desk.lines(desk.name("core")) == desk.words.lib.splitlines()
    assert desk.lines(desk.name("use")) == use.splitlines()


@EVERY
def test_a_new_file_does_not_come_with_what_uses_it_wrongly(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    texts = {name: text for name, (_, text) in desk.state().items()}
    use = desk.words.use.format("core")
    refused = desk.patch({desk.name("core"): desk.words.wrong, desk.name("use"): use})
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert {name: text for name, (_, text) in desk.state().items()} == texts


def test_a_new_file_does_not_come_where_what_lacked_it_then_has_other_errors(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    desk.scene.put(desk.name("use"), desk.words.use.format("core"))
    refused = desk.call("write_file", path=desk.name("core"), content=desk.words.wrong)
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.lines(desk.name("core")) is None
    made = desk.call("write_file", path=desk.name("core"), content=desk.words.lib)
    assert not made.failed, made.text


def test_two_calls_that_are_judged_without_each_other_do_not_break_a_project_together(
    desk_of: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, both = desk_of(), Barrier(2)
    desk.scene.put(desk.name("use"), "\n")
    check = desk.scene.semantics.check
    uses = desk.words.use.format("lib")

    def meanwhile(*call: Any) -> Any:
        found = check(*call)
        both.wait()
        return found

    monkeypatch.setattr(desk.scene.semantics, "check", meanwhile)
    with ThreadPoolExecutor(2) as threads:
        texts = {desk.name("lib"): desk.words.wrong, desk.name("use"): uses}
        calls = [
            threads.submit(desk.call, "write_file", path=path, content=text)
            for path, text in texts.items()
        ]
        done = [one.result() for one in calls]
    assert sorted(one.code or "" for one in done) == ["", "NEW_ERRORS"], [one.text for one in done]
    now = [desk.scene.get(name) == text for name, text in texts.items()]
    assert now == [not one.failed for one in done]


def test_what_goes_on_from_a_change_that_waits_is_told_why_it_is_refused(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of(rules=ASKS)
    desk.scene.put(desk.name("use"), "\n")
    new = desk.words.lib.replace("double", "twice")
    waits = desk.call("write_file", path=desk.name("lib"), content=desk.words.lib + new)
    assert desk.scene.workspace.pending(), waits.text
    uses = desk.words.use.format("lib").replace("double", "twice")
    refused = desk.call("write_file", path=desk.name("use"), content=uses)
    assert (refused.code, "`history` (status)" in refused.text) == ("NEW_ERRORS", True)
    wrong = desk.words.use.format("apart").replace("21", "missing")
    desk.call("history", action="undo", change=change_of(waits))
    refused = desk.call("write_file", path=desk.name("use"), content=wrong)
    assert (refused.code, "`history` (status)" in refused.text) == ("NEW_ERRORS", False)


# -- what goes back --------------------------------------------------------------------------------


def change_of(outcome: CallResult) -> str:
    assert outcome.receipt is not None, outcome.text
    return str(outcome.receipt["operation"])


def test_an_agent_takes_nothing_back_that_others_need_by_now_and_a_person_may(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    made = desk.call("write_file", path=desk.name("core"), content=desk.words.lib)
    use = desk.words.use.format("core")
    used = desk.call("write_file", path=desk.name("use"), content=use)
    before = desk.state()
    refused = desk.call("history", action="undo", change=change_of(made))
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.state() == before
    for one in (used, made):
        assert not (done := desk.call("history", action="undo", change=change_of(one))).failed
    # What was made first is not there to be used.
    refused = desk.call("history", action="redo", change=change_of(used))
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.lines(desk.name("use")) == desk.words.use.format("lib").splitlines()
    assert not (done := desk.call("history", action="redo", change=change_of(made))).failed, done
    person = Session("person", Actor("person", "somebody"))
    desk.scene.workspace.undo(person, change_of(made))
    assert desk.lines(desk.name("core")) is None
    desk.scene.workspace.redo(person, change_of(used))
    assert desk.lines(desk.name("use")) == use.splitlines()


@EVERY
def test_an_agent_takes_an_edit_back_where_errors_are_as_before_and_none_that_it_has_mended(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of()
    lib, use = desk.name("lib"), desk.name("use")
    desk.scene.put(lib, desk.words.wrong)
    old = desk.call("edit_file", path=use, old_string="21", new_string="22")
    assert not old.failed, old.text
    assert not (back := desk.call("history", action="undo", change=change_of(old))).failed, back
    mended = desk.call("write_file", path=lib, content=desk.words.lib)
    assert not mended.failed, mended.text
    refused = desk.call("history", action="undo", change=change_of(mended))
    assert (refused.code, use in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.lines(lib) == desk.words.lib.splitlines()
    shown = desk.call("history", action="undo", change=change_of(mended), dry_run=True)
    assert not shown.failed, shown.text


def test_a_person_is_asked_about_what_goes_back_with_errors(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(new_errors="ask")
    desk.scene.put(desk.name("lib"), desk.words.wrong)
    mended = desk.call("write_file", path=desk.name("lib"), content=desk.words.lib)
    waits = desk.call("history", action="undo", change=change_of(mended))
    assert waits.receipt is not None
    assert waits.receipt["status"] == "pending"
    assert [one.rule for one in desk.scene.workspace.pending()] == ["new errors"]
    assert desk.lines(desk.name("lib")) == desk.words.lib.splitlines()


# -- files with several names ----------------------------------------------------------------------


def linked(desk: Desk) -> str:
    """The name of a file that uses another name of the declaring one."""
    desk.scene.put(desk.name("through"), desk.words.use.format("apart"))
    (desk.scene.root / desk.name("apart")).unlink()
    os.link(desk.scene.path(desk.name("lib")), desk.scene.path(desk.name("apart")))
    desk.scene.put(desk.name("use"), "")
    desk.scene.semantics.look([desk.name("through")], session=AGENT)
    return desk.name("through")


def test_what_uses_a_file_by_its_other_name_is_not_broken(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of()
    through = linked(desk)
    refused = desk.call("write_file", path=desk.name("lib"), content=desk.words.wrong)
    assert (refused.code, through in refused.text) == ("NEW_ERRORS", True), refused.text
    assert desk.lines(desk.name("lib")) == desk.words.lib.splitlines()


@EVERY
@pytest.mark.parametrize("by", ["apart", "lib"])
def test_who_writes_to_one_name_of_a_file_has_written_to_all(
    desk_of: Callable[..., Desk], by: str
) -> None:
    desk = desk_of(new_errors="allow")
    through = linked(desk)
    use = desk.name("use")
    desk.scene.put(use, desk.words.use.format("lib"))

    def found() -> dict[str, bool]:
        reports = desk.scene.semantics.look([use, through], session=AGENT)
        assert all(one.fresh for one in reports)
        return {os.path.basename(one.path): bool(one.diagnostics) for one in reports}

    assert found() == {use: False, through: False}
    desk.scene.put(desk.name(by), desk.words.wrong)
    assert found() == {use: True, through: True}
    desk.scene.put(desk.name(by), desk.words.lib)
    assert found() == {use: False, through: False}
    desk.call("write_file", path=desk.name(by), content=desk.words.wrong)
    assert found() == {use: True, through: True}


# -- what waits ------------------------------------------------------------------------------------

ASKS = '[[ask]]\nname = "lib"\npaths = ["lib.*"]\nactions = ["write"]\nwhy = "it is"\n'


@pytest.mark.parametrize("mode", ["auto", "preview"])
def test_what_waits_for_a_person_was_judged_for_the_text_that_they_see(
    mode: Literal["auto", "preview"], desk_of: Callable[..., Desk]
) -> None:
    desk = desk_of(rules=ASKS * (mode == "auto"))
    workspace, lib = desk.scene.workspace, desk.name("lib")
    workspace.mode = mode
    why = "project: lib" if mode == "auto" else "preview mode"
    refused = desk.call("write_file", path=lib, content=desk.words.wrong)
    assert (refused.code, desk.name("use") in refused.text) == ("NEW_ERRORS", True), refused.text
    assert not workspace.pending()
    waits = desk.call("edit_file", path=lib, old_string="n * 2", new_string="n * 3")
    assert waits.receipt is not None
    assert waits.receipt["status"] == "pending"
    assert [one.rule for one in workspace.pending()] == [f"{why}, checked for new errors"]
    # What fits the file now is another text than the one that was judged.
    desk.scene.put(lib, f"\n\n\n{desk.words.lib}")
    person = Approval(Actor("person", "somebody"))
    with pytest.raises(ProposalChangedError):
        workspace.approve(change_of(waits), person)
    (moved,) = workspace.pending()
    assert moved.rule == f"{why}, not checked for new errors"
    assert workspace.approving.granted.scope(moved) == "change"
    workspace.approve(moved.id, person)
    assert "n * 3" in desk.scene.get(lib)


def test_the_errors_of_what_a_person_has_approved_are_told(desk_of: Callable[..., Desk]) -> None:
    desk = desk_of(new_errors="allow")
    workspace, core, use = desk.scene.workspace, desk.name("core"), desk.name("use")
    workspace.mode = "preview"
    waits = [
        desk.call("write_file", path=use, content=desk.words.use.format("core")),
        desk.call("write_file", path=core, content=desk.words.wrong),
    ]
    for one in waits:
        assert one.receipt is not None
        assert one.receipt["status"] == "pending"
        workspace.approve(change_of(one), Approval(Actor("person", "somebody")))
    told = desk.call("read_file", path=core)
    assert told.text.count("was approved") == 2, told.text
    said = desk.scene.semantics.turn_summary(session=AGENT)
    assert use in said, said
    assert use in desk.call("read_file", path=core).text


def test_a_person_reads_what_of_a_change_no_server_was_asked_about(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of(rules='[[ask]]\nname = "lib"\npaths = ["lib.*"]\nwhy = "it is"\n')
    desk.scene.index_words()
    # Its agent may not see the file, and so not hear what is wrong in it.
    desk.call("write_file", path=desk.name("lib"), content=desk.words.wrong)
    desk.scene.workspace.mode = "preview"
    for number in range(160):
        desk.scene.put(desk.name(f"many{number}"), desk.words.use.format("apart"))
    text = desk.words.lib.replace("2", "3")
    desk.call("write_file", path=desk.name("apart"), content=text)
    said = {one.rule for one in desk.scene.workspace.pending()}
    assert said == {
        "project: lib, not checked for new errors",
        "preview mode, checked for new errors in part",
    }


def test_what_a_removal_has_brought_is_told_though_it_was_not_waited_for(
    desk_of: Callable[..., Desk],
) -> None:
    desk = desk_of(new_errors="allow", mode="auto")
    text = desk.words.lib.replace("2", "3")
    desk.call("write_file", path=desk.name("apart"), content=text)
    desk.scene.semantics.turn_summary(session=AGENT)  # by then its server runs
    with desk.scene.workspace.draft(AGENT, "manage_files") as draft:
        draft.delete(draft.open(desk.name("lib")), emptied_by=None)
        changes = draft.changes
        desk.scene.semantics.baseline(changes, draft.versions, session=AGENT)
        desk.scene.workspace.submit(draft, "delete")
    desk.scene.semantics.verify(changes, draft.versions, session=AGENT, seconds=0.0)
    assert desk.scene.semantics.waits(AGENT.id)
    assert desk.name("use") in desk.scene.semantics.turn_summary(session=AGENT, seconds=40.0)
    assert not desk.scene.semantics.waits(AGENT.id)


# -- what servers read and do not know -------------------------------------------------------------

READ = {
    "typescript": (
        {
            "tsconfig.json": '{"extends": "./settings/base.json"}\n',
            "settings/base.json": '{"compilerOptions": {"strict": true, "noImplicitAny": false, "module": "esnext",'
            ' "moduleResolution": "bundler", "resolveJsonModule": true, "target": "es2022"}}\n',
            "src/use.ts": 'import data from "./data.json";\nexport const port: number = data.port;\n',
            "src/loose.ts": "export function same(one) {\n  return one;\n}\n",
            "src/data.json": '{"port": 80}\n',
        },
        ("src/data.json", "80", '"80"', "src/use.ts"),
        ("settings/base.json", '"noImplicitAny": false', '"noImplicitAny": true', "src/loose.ts"),
    ),
    "clangd": (
        {
            "use.c": '#include "table.def"\nint use(void) { return FIRST; }\n',
            "table.def": "enum { FIRST = 1 };\n",
        },
        ("table.def", "FIRST", "SECOND", "use.c"),
    ),
}


@pytest.mark.parametrize("server", READ)
def test_what_sources_read_and_what_says_how_they_are_read_does_not_break_them(
    server: str, tmp_path: Path
) -> None:
    files, *changes = READ[server]
    scene = Scene(tmp_path, [server], files, new_errors="deny")
    try:
        toolbox = open_toolbox(scene.workspace, semantics=scene.semantics, own=True, seconds=60.0)

        def call(tool: str, **arguments: Any) -> CallResult:
            return toolbox.call(tool, arguments, CallContext(AGENT))

        for path, old, new, broken in changes:
            edit = {"path": path, "old_string": old, "new_string": new}
            # What is found after the first is not what was there before the second.
            for _ in range(2):
                refused = call("edit_file", **edit)
                assert (refused.code, broken in refused.text) == ("NEW_ERRORS", True), refused.text
                assert scene.get(path) == files[path]
        path, _, _, broken = changes[0]
        for action in ({"action": "delete"}, {"action": "move", "to": f"{path}.old"}):
            refused = call("manage_files", path=path, **action)
            assert (refused.code, broken in refused.text) == ("NEW_ERRORS", True), refused.text
        both = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{files[path]}+{files[path][:-1]} \n"
        assert not (done := call("patch_apply", patch=both)).failed, done.text
    finally:
        scene.close()
