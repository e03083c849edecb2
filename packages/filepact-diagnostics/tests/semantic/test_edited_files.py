"""The steps of a server, folded into what becomes of each file."""

from __future__ import annotations

import random
from contextlib import suppress

from filepact.errors import ServerRefusedError
from filepact.text.lines import Position
from filepact_diagnostics.lsp.features import FileStep, TextStep
from filepact_diagnostics.semantic.edited_files import FileEdits, ServerEdits, with_contents

NAMES = ("/r/a", "/r/b", "/r/c", "/r/d")
START = {"/r/a": "a\n", "/r/b": "b\n", "/r/c": "c\n"}
TOP = Position(0, 0)


def test_what_is_done_at_once_leaves_what_the_steps_leave() -> None:
    refused = done = 0
    for seed in range(3_000):
        dice = random.Random(seed)
        model, folded = dict(START), FileEdits(START, "utf-16")
        wrong = False
        for number in range(dice.randint(1, 6)):
            one, other = dice.sample(NAMES, 2)
            kind, over = dice.choice(["edit", "create", "rename", "delete"]), dice.random() < 0.3
            if kind == "edit":
                folded.take(TextStep(one, ((TOP, TOP, f"{number}\n"),)))
                wrong = wrong or one not in model
                model[one] = f"{number}\n" + model.get(one, "")
                # Edits that follow each other at one place stand in their order.
                folded.take(FileStep("create", "/r/z", "", True))
                continue
            folded.take(FileStep(kind, one, other if kind == "rename" else "", over))  # type: ignore[arg-type]
            if kind == "create":
                wrong = wrong or (one in model and not over)
                model[one] = ""
            else:
                wrong = wrong or one not in model
                wrong = wrong or (kind == "rename" and other in model and not over)
                text = model.pop(one, "")
                if kind == "rename":
                    model[other] = text
        if wrong:
            # What is not there is taken for a folder, until a draft finds none.
            with suppress(ServerRefusedError):
                assert any(one.kind == "folder" for one in folded.results()), seed
            refused += 1
            continue
        left: dict[str, str | None] = {**START}
        found = folded.results()
        left |= {one.old: None for one in found if one.old and one.old != one.path}
        left |= {one.path: one.after for one in found}
        left.pop("/r/z", None)
        assert {name: text for name, text in left.items() if text is not None} == model, seed
        # A text goes to one place, and comes from what was there.
        assert all(one.before == START.get(one.old, "") for one in found), seed
        sources = [
            one.old for one in found if one.after is not None and one.old != one.path and one.old
        ]
        assert len(sources) == len(set(sources)), seed
        done += 1
    assert done > 500
    assert refused > 500


FOLDERS = ("/r/p", "/r/p/s", "/r/q")
TEXTS = {"/r/p/a": "a\n", "/r/p/s/b": "b\n", "/r/q/c": "c\n", "/r/d": "d\n"}
OTHERS = ("/r/p/picture", "/r/p/s/archive")
PLACES = (*FOLDERS, "/r/t", "/r/q/u", "/r/t/v")
ENDS = ("/r/d", "/r/p/a", "/r/t/a", "/r/q/c", "/r/e", "/r/p/s/b", "/r/q/b")


def below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")


def at_once(folded: FileEdits, steps: list[FileStep]) -> dict[str, str]:
    """The tree after the results, done as a draft does them; files that are no text by their first names."""
    files = folded.results()
    contents = {}
    for one in files:
        if one.kind == "folder":
            if one.old not in FOLDERS:
                raise ServerRefusedError("no such folder")
            some = [path for path in (*TEXTS, *OTHERS) if below(path, one.old)]
            contents[one.old] = some, [path for path in FOLDERS if below(path, one.old)]
    if contents and any(one.new in FOLDERS for one in steps):
        raise ServerRefusedError("a folder has this name")
    edits = ServerEdits("s", "", files, steps=tuple(steps))
    found, folders = with_contents(edits, contents) if contents else (files, [])
    left = TEXTS | {path: path for path in OTHERS}
    held = {one: left[one.old] for one in found if one.kind == "file"}
    for one in found:
        if one.old and one.old != one.path:
            left.pop(one.old, None)
    for one in found:
        text = held[one] if one.kind == "file" else one.after
        left.pop(one.path, None)
        if text is not None:
            left[one.path] = text
    assert not any(below(path, old) for path in left for old, _ in folders)
    return left


def test_folders_that_are_moved_at_once_hold_what_the_steps_leave() -> None:
    refused = done = moved = 0
    for seed in range(6_000):
        dice = random.Random(seed)
        model, folded = TEXTS | {path: path for path in OTHERS}, FileEdits(TEXTS, "utf-16")
        folders, steps, wrong, edited = {*FOLDERS}, list[FileStep](), False, set[str]()
        for number in range(dice.randint(1, 4)):
            what = dice.choice(["folder", "folder", "file", "edit"])
            if what == "edit":
                path = dice.choice([*ENDS, *(one for one in model if model[one] not in OTHERS)])
                if path in edited:
                    continue
                edited.add(path)
                folded.take(TextStep(path, ((TOP, TOP, f"{number}\n"),)))
                wrong = wrong or path not in model
                model[path] = f"{number}\n" + model.get(path, "")
                continue
            old, new = dice.choice(PLACES if what == "folder" else ENDS), dice.choice(PLACES)
            if what == "file":
                new = dice.choice(ENDS)
                wrong = wrong or old not in model or new in model
                model = {new if path == old else path: text for path, text in model.items()}
            else:
                wrong = wrong or old not in folders or below(new, old) or new in folders
                model, folders = (  # type: ignore[assignment]
                    {
                        (new + path[len(old) :] if below(path, old) else path): (
                            some[path] if isinstance(some, dict) else path
                        )
                        for path in some
                    }
                    for some in (model, folders)
                )
                folders = {*folders}
            edited.clear()
            steps.append(FileStep("rename", old, new))
            folded.take(steps[-1])
        try:
            left = at_once(folded, steps)
        except ServerRefusedError:
            refused += 1
            continue
        assert not wrong, (seed, [(one.path, one.new) for one in steps])
        assert left == model, (seed, [(one.path, one.new) for one in steps], left, model)
        done += 1
        moved += any(one.path in FOLDERS for one in steps)
    assert done > 500
    assert moved > 200
    assert refused > 500
