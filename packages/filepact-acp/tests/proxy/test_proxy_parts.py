"""A change of several files, of which a person allows some in the editor's dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faces.acp.proxy.rig import Rig

if TYPE_CHECKING:
    from pathlib import Path

PATCH = (
    "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-one\n+1\n"
    "--- a/b.txt\n+++ b/b.txt\n@@ -1,1 +1,1 @@\n-one\n+1\n"
)


def selected(option: object) -> dict:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def held(rig: Rig) -> list[str]:
    return [(rig.work / name).read_text() for name in ("a.txt", "b.txt")]


@pytest.fixture
def rig(tmp_path: Path):
    with Rig(tmp_path, "--mode", "preview") as rig:
        for name in ("a.txt", "b.txt"):
            (rig.work / name).write_text("one\n")
        yield rig


def test_one_file_can_be_allowed_and_the_others_wait(rig: Rig) -> None:
    tools = rig.tools(rig.start())
    tools.begin("patch_apply", patch=PATCH)
    asked = rig.editor.request("session/request_permission")
    options = {one["optionId"]: one for one in asked["params"]["options"]}
    only = [one for one in options if one.startswith("filepact-only-")]
    assert [options[one]["kind"] for one in only] == ["allow_once"] * 2
    assert "b.txt" in options[only[1]]["name"]
    assert asked["params"]["options"][0]["optionId"] == "filepact-allow"
    rig.editor.answer(asked, selected(only[1]))
    done, said = tools.end()
    assert done
    assert "only b.txt" in said
    assert held(rig) == ["one\n", "1\n"]
    waits = said.split("waits as ")[1].split(".")[0]
    assert waits in rig.command("pending")
    rig.command("approve", "--unattended", waits)
    assert held(rig) == ["1\n", "1\n"]
    tools.close()


STRANGE = ("filepact-only-3", "filepact-only-", "filepact-only-1 ", 1, None, ["filepact-only-1"])


def test_an_option_that_was_not_offered_allows_nothing(tmp_path: Path) -> None:
    with Rig(tmp_path, "--mode", "preview", checked=False) as rig:
        for name in ("a.txt", "b.txt"):
            (rig.work / name).write_text("one\n")
        tools = rig.tools(rig.start())
        for option in STRANGE:
            tools.begin("patch_apply", patch=PATCH)
            asked = rig.editor.request("session/request_permission")
            rig.editor.answer(asked, selected(option))
            assert not tools.end()[0], option
            assert held(rig) == ["one\n", "one\n"]
        tools.close()


def test_what_has_moved_meanwhile_is_shown_again_whole(rig: Rig) -> None:
    tools = rig.tools(rig.start())
    tools.begin("patch_apply", patch=PATCH)
    asked = rig.editor.request("session/request_permission")
    (rig.work / "b.txt").write_text("one\ntwo\n")
    rig.editor.answer(asked, selected("filepact-only-2"))
    again = rig.editor.request("session/request_permission")
    assert held(rig) == ["one\n", "one\ntwo\n"]
    rig.editor.answer(again, selected("filepact-only-2"))
    assert tools.end()[0]
    assert held(rig) == ["one\n", "1\ntwo\n"]
    tools.close()


def test_a_change_of_one_file_has_no_such_option(rig: Rig) -> None:
    rig.start()
    rig.begin_write("a.txt", "2\n")
    asked = rig.editor.request("session/request_permission")
    assert not any("only" in one["optionId"] for one in asked["params"]["options"])
