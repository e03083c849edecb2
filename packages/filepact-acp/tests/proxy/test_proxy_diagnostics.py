"""The injected tools tell what language servers find, over what the editor shows."""

import json
import os
import sys
from types import SimpleNamespace

import pytest

from filepact_acp.proxy.service import ProxyExecutor
from tests.faces.acp.proxy.rig import BOTH, Rig
from tests.servers.fakes import PROGRAM, wait_for_end
from tests.servers.real_servers import locate, node_folders


@pytest.fixture
def rig(tmp_path):
    note = tmp_path / "child"
    command = [sys.executable, "-I", "-S", PROGRAM, json.dumps({"child": str(note)})]
    folder = tmp_path / "home" / ".config" / "filepact"
    folder.mkdir(parents=True)
    (folder / "filepact.toml").write_text(
        '[diagnostics]\nmode = "always"\nbudget = 20\n'
        f'[servers.fake]\nfiles = {{"*.x" = "x"}}\ncommand = {json.dumps(command)}\n'
    )
    with Rig(tmp_path, fs=BOTH) as made:
        yield made
    if note.exists():
        assert wait_for_end(int(note.read_text()))


def test_errors_that_a_change_adds_are_told_and_the_server_ends_with_the_proxy(rig):
    (rig.work / "a.x").write_text("one\n")
    tools = rig.tools(rig.start())
    tools.begin("edit_file", path="a.x", old_string="one", new_string="wrong")
    rig.shows("one\n")
    rig.takes()
    done, said = tools.end()
    assert done
    assert "Diagnostics (fake): 1 new error." in said
    assert "a.x:1:1 error wrong" in said
    assert tools.close() == 0


def test_a_change_of_unsaved_text_is_judged_as_it_stands_afterwards(rig):
    (rig.work / "a.x").write_text("one\n")
    tools = rig.tools(rig.start())
    tools.begin("edit_file", path="a.x", old_string="two", new_string="2")
    rig.shows("one\nwrong\ntwo\n")
    rig.takes()
    done, said = tools.end()
    assert done
    # The error stood in the editor's text before the change.
    assert "Diagnostics (fake): nothing new." in said
    tools.close()


def test_what_no_server_knows_is_changed_without_a_word_about_them(rig):
    (rig.work / "a.txt").write_text("one\n")
    tools = rig.tools(rig.start())
    tools.begin("edit_file", path="a.txt", old_string="one", new_string="wrong")
    rig.shows("one\n")
    rig.takes()
    done, said = tools.end()
    assert done
    assert "Diagnostics" not in said
    tools.close()


def change(rig, tools, name, old, new):
    tools.begin("edit_file", path=name, old_string=old, new_string=new)
    rig.shows((rig.work / name).read_text())
    request = rig.told()
    (rig.work / name).write_text(request["params"]["content"])  # as editors do
    rig.editor.answer(request, {})
    done, said = tools.end()
    assert done, said


def remove(rig, tools, name):
    lines = (rig.work / name).read_text().splitlines()
    head = f"--- a/{name}\n+++ /dev/null\n@@ -1,{len(lines)} +0,0 @@\n"
    tools.begin("patch_apply", patch=head + "".join(f"-{one}\n" for one in lines))
    rig.shows((rig.work / name).read_text())
    done, said = tools.end()
    assert done, said


def words_of_turn(rig, tools, *steps):
    """The lines of each message that an editor hears of a turn: edits, and files that go."""
    asked = rig.prompt()
    for name, *texts in steps:
        (change if texts else remove)(rig, tools, name, *texts)
    rig.agent.answer(asked, {"stopReason": "end_turn"})
    told = []
    while "method" in (message := rig.editor.next()):
        told.append(message["params"]["update"])
    assert message["result"] == {"stopReason": "end_turn"}
    return [one["content"]["text"].strip().split("\n") for one in told]


REAL = {
    "py": (
        "def double(n: int) -> int:\n    return n * 2\n",
        "from lib import double\n\nanswer: int = double(21)\n",
        ("n: int", "n: str"),
    ),
    "ts": (
        "export function double(n: number): number {\n  return 2;\n}\n",
        'import { double } from "./lib";\n\nexport const answer: number = double(21);\n',
        ("n: number", "n: string"),
    ),
}


@pytest.mark.parametrize("ends", REAL)
def test_a_real_servers_errors_of_a_turn_are_told_and_those_that_it_has_mended_are_not(
    tmp_path, monkeypatch, ends
):
    bare, folders = os.environ["PATH"], node_folders()
    if ends == "ts" and not folders:
        pytest.skip("the servers from npm are not here")
    path = [os.path.dirname(sys.executable), os.path.dirname(locate("ty")), *folders, bare]
    monkeypatch.setenv("PATH", ":".join(path))
    folder = tmp_path / "home" / ".config" / "filepact"
    folder.mkdir(parents=True)
    (folder / "filepact.toml").write_text('[diagnostics]\nmode = "always"\nbudget = 20\n')
    lib, use, mistake = REAL[ends]
    names = [f"{stem}.{ends}" for stem in ("lib", "use", "apart")]
    with Rig(tmp_path, fs=BOTH) as rig:
        texts = {"tsconfig.json": '{"compilerOptions": {"strict": true, "module": "esnext"}}\n'}
        texts |= dict(zip(names, (lib, use, lib), strict=True))
        for name, text in texts.items():
            (rig.work / name).write_text(text)
        tools = rig.tools(rig.start())
        ((head, _, *lines, _),) = words_of_turn(rig, tools, (names[0], *mistake))
        assert head.endswith(f": {len(lines)}.")
        assert f"{names[1]}:3:" in lines[-1]
        mend = (names[0], *mistake[::-1])
        assert words_of_turn(rig, tools, mend) == []
        assert words_of_turn(rig, tools, (names[0], *mistake), mend) == []
        ((head, _, line, _),) = words_of_turn(rig, tools, (names[2], "2", "3"), (names[0],))
        assert f"{names[1]}:1:" in line
        assert head.endswith(": 1.")
        tools.close()


def test_errors_that_a_turn_has_left_are_told_before_it_ends(rig):
    (rig.work / "a.x").write_text("one\n")
    (rig.work / "b.x").write_text("one\n")
    tools = rig.tools(rig.start())

    def turn(*steps):
        return words_of_turn(rig, tools, *steps)

    steps = (("a.x", "one", "wrong"), ("b.x", "one", "wrong"), ("b.x", "wrong", "fine"))
    ((head, fence, *lines, end),) = turn(*steps)
    assert head.endswith(": 1.")
    assert fence == end == "```"  # an editor shows Markdown
    assert [line.split()[0] for line in lines] == ["a.x:1:1"]
    assert turn(("b.x", "fine", "finer")) == []  # the error in a.x is of another turn
    assert turn() == []
    tools.close()


def test_a_turn_ends_though_its_errors_cannot_be_summed_up():
    def broken():
        raise ValueError("a mistake of ours")

    told = []
    session = SimpleNamespace(cancelled=False, turn_errors=broken)
    proxy = SimpleNamespace(
        _sessions={"s": session},
        _files=SimpleNamespace(finish=lambda *_: None),
        _links=SimpleNamespace(questions=SimpleNamespace(tell=lambda *sent: told.append(sent))),
    )
    ProxyExecutor._report(proxy, "s")  # what passes the answer on comes after this
    assert told == []
    session.turn_errors = lambda: "one: 1.\n  a.x:1:1"
    ProxyExecutor._report(proxy, "s")
    assert len(told) == 1
