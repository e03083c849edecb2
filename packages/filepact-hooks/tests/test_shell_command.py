"""What is made out of a shell's command: where it goes, the programs that it starts, the names in it."""

from __future__ import annotations

import shlex

import pytest

from filepact_hooks.shell_command import read_command


@pytest.mark.parametrize(
    ("command", "folder"),
    [
        ("cd src && make", "src"),
        ("cd src && cd sub && make", "src"),
        ("cd src && make > out", "src"),
        ("cd src", "src"),
        # What comes next is done where the folder is not there, too.
        ("cd src; make", ""),
        ("cd src || make", ""),
        ("make && cd src", ""),
        ("cd a b && make", ""),
        # Another shell goes there, and this one stays.
        ("sh -c 'cd src && make'", ""),
        ("(cd src && make)", ""),
    ],
)
def test_a_command_begins_in_the_folder_that_it_cannot_do_without(
    command: str, folder: str
) -> None:
    assert read_command(command).begins == folder


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("cat x", ("cat", "x")),
        ("env cat x", ("cat", "x")),
        ("env A=1 B=2 cat x", ("cat", "x")),
        ("env -u HOME cat x", ("cat", "x")),
        ("env -S 'cat x'", ("cat", "x")),
        ("timeout 5 cat x", ("cat", "x")),
        (r"cat $'\x2eenv'", ("cat", ".env")),
        (r"cat $'\56env'", ("cat", ".env")),
        (r"cat $'\u002eenv'", ("cat", ".env")),
        (r"cat $'\101b'", ("cat", "Ab")),
        (r"cat $'a\tb'", ("cat", "a\tb")),
        (r"cat $'\U7fffffff'", ("cat", "\ufffd")),
    ],
)
def test_the_program_is_found_behind_what_starts_it(command: str, program: tuple[str, ...]) -> None:
    assert program in read_command(command).programs


@pytest.mark.parametrize(("shells", "told"), [(0, False), (7, False), (8, True)])
def test_scripts_within_scripts_are_read_to_a_depth_and_then_too_much(
    shells: int, *, told: bool
) -> None:
    command = "cat x"
    for _ in range(shells):
        command = f"sh -c {shlex.quote(command)}"
    assert read_command(command).too_long is told


@pytest.mark.parametrize("words", ["mv a b", "mv -f a b c", "rm a", "rm -r a"])
def test_git_takes_files_as_the_system_does(words: str) -> None:
    """What is said to move or remove them is the same for both."""
    of_git = read_command(f"git {words}").words
    assert of_git == read_command(words).words
    assert "delete" in {one.use for one in of_git}
