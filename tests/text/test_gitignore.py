"""Ignore rules beyond what the comparison with Git covers: layers, defaults, limits."""

from __future__ import annotations

import pytest

from filepact.text.gitignore import DEFAULT_IGNORED, MAX_RULES, IgnoreRules, IgnoreRuleSet


def hides(stack: IgnoreRuleSet, path: str, *, is_dir: bool) -> bool:
    """Whether a path is left out, when no folder that it lies in is."""
    prefix = path[: path.rfind("/") + 1]
    return not stack.sift(prefix, [path[len(prefix) :] + ("/" if is_dir else "")]).kept


def ignores(stack: IgnoreRuleSet, path: str, *, is_dir: bool) -> bool:
    """Whether a path is left out, itself or by a folder that it lies in."""
    parts = path.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    return any(hides(stack, p, is_dir=True) for p in above) or hides(stack, path, is_dir=is_dir)


def stack(**layers):
    result = IgnoreRuleSet()
    for layer, files in layers.items():
        for base, text in files:
            result = result.with_rules(layer, IgnoreRules.parse(text, base))
    return result


@pytest.mark.parametrize("name", sorted(DEFAULT_IGNORED))
def test_default_names_are_ignored_as_folders_at_any_depth(name):
    assert hides(IgnoreRuleSet(), f"x/y/{name}", is_dir=True)
    assert not hides(IgnoreRuleSet(), f"x/{name}", is_dir=False)
    assert ignores(IgnoreRuleSet(), f"{name}/a.py", is_dir=False)


def test_default_names_hold_against_rules_that_bring_back():
    assert hides(stack(gitignore=[(".", "*\n!*/\n!*.py\n")]), "node_modules", is_dir=True)


def test_an_ignore_file_beats_a_gitignore_of_the_same_folder():
    rules = stack(gitignore=[(".", "*.log\n")], ignore=[(".", "!keep.log\n")])
    assert hides(rules, "a.log", is_dir=False)
    assert not hides(rules, "keep.log", is_dir=False)


def test_a_nearer_file_beats_one_further_up():
    assert hides(stack(gitignore=[(".", "*.log\n")]), "sub/a.log", is_dir=False)
    rules = stack(gitignore=[(".", "*.log\n"), ("sub", "!*.log\n")])
    assert not hides(rules, "sub/a.log", is_dir=False)


def test_exclude_counts_last():
    rules = stack(exclude=[(".", "a\nb\n")], gitignore=[(".", "!a\n")])
    assert not hides(rules, "a", is_dir=False)
    assert hides(rules, "b", is_dir=False)


def test_a_file_below_an_ignored_folder_cannot_be_brought_back():
    rules = stack(gitignore=[(".", "out/\n!out/keep\n")])
    assert not hides(rules, "out/keep", is_dir=False)
    assert ignores(rules, "out/keep", is_dir=False)


def test_rules_of_git_end_at_the_top_of_a_repository():
    rules = stack(gitignore=[(".", "*.log\n")], exclude=[(".", "*.tmp\n")], ignore=[(".", "*.x\n")])
    inner = rules.repository()
    assert not hides(inner, "sub/a.log", is_dir=False)
    assert not hides(inner, "sub/a.tmp", is_dir=False)
    assert hides(inner, "sub/a.x", is_dir=False)


@pytest.mark.parametrize(
    ("text", "base", "path", "hidden"),
    [
        ("out/\n*.o\n", "out", "out/a.c", False),
        ("out/\n*.o\n", "out", "out/a.o", True),
        ("vendor/**\n", "vendor/lib", "vendor/lib/a.c", False),
        ("vendor/**\n", "vendor", "vendor/a.c", True),
        ("*.o\n", "src", "src/a.o", True),
        ("/*\n!/src/\n", "src", "src/a.c", False),
    ],
)
def test_rules_that_hide_a_folder_named_outright_are_spared(text, base, path, hidden):
    assert hides(stack(gitignore=[(".", text)]).sparing(base), path, is_dir=False) is hidden


def test_sparing_leaves_rules_alone_that_stand_elsewhere():
    rules = stack(gitignore=[("lib", "x\n")])
    assert hides(rules.sparing("src/x"), "lib/x", is_dir=False)


def test_patterns_by_ending_and_by_name_keep_their_order():
    rules = stack(gitignore=[(".", "*.log\n!keep.log\n*.tar.gz\n!a*.gz\nkeep.log.d/\n[k]eep.*\n")])
    assert hides(rules, "a.log", is_dir=False)
    assert hides(rules, "keep.log", is_dir=False)
    assert hides(rules, "b.tar.gz", is_dir=False)
    assert not hides(rules, "a.tar.gz", is_dir=False)


def test_many_patterns_are_all_heeded():
    text = "".join(f"x{number}*y\n" for number in range(350)) + "!x7zy\n"
    rules = stack(gitignore=[(".", text)])
    assert hides(rules, "x0zzy", is_dir=False)
    assert hides(rules, "x349y", is_dir=False)
    assert not hides(rules, "x7zy", is_dir=False)
    assert not hides(rules, "x350", is_dir=False)


def test_an_endless_file_is_cut():
    rules = IgnoreRules.parse("a\n" * MAX_RULES + "b\n", ".")
    every = IgnoreRuleSet().with_rules("gitignore", rules)
    assert hides(every, "a", is_dir=False)
    assert not hides(every, "b", is_dir=False)


def test_empty_files_make_no_layer():
    assert not IgnoreRules.parse("# nothing\n\n", ".")
    assert stack(gitignore=[(".", "\n")]) == IgnoreRuleSet()


def test_visible_names_of_a_folder_keep_their_order():
    rules = stack(gitignore=[(".", "*.o\nsub/x/\n")])
    names = ["b.o", "a.c", "x/", "dist/", "x"]
    assert rules.sift("sub/", names).kept == ["a.c", "x"]
