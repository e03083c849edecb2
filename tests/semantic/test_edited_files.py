"""The steps of a server, folded into what becomes of each file."""

from __future__ import annotations

import random

import pytest

from filepact.errors import ServerRefusedError
from filepact.lsp.features import FileStep, TextStep
from filepact.semantic.edited_files import FileEdits
from filepact.text.lines import Position

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
            with pytest.raises(ServerRefusedError):
                folded.results()
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
