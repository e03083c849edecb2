"""A hard link to a secret of the person's home folder is known for what it is."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError, PathBlockedError
from filepact.fs.home_secrets import SecretIndex
from filepact.text.query import Query

if TYPE_CHECKING:
    from pathlib import Path

AGENT = Session("s", Actor("agent", "tester"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("SECRET\n")
    (home / ".config" / "gh").mkdir(parents=True)
    (home / ".config" / "gh" / "hosts.yml").write_text("SECRET\n")
    (home / "notes.txt").write_text("plain\n")
    return home


@pytest.mark.parametrize("secret", [".ssh/id_ed25519", ".config/gh/hosts.yml"])
@pytest.mark.parametrize("resolver", ["auto", "walk"])
def test_another_name_of_a_secret_is_refused(
    home: Path, tmp_path: Path, secret: str, resolver: str
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    os.link(home / secret, root / "innocent.txt")
    os.link(home / "notes.txt", root / "notes.txt")
    state = str(tmp_path / "state")
    workspace = open_workspace([str(root)], state_dir=state, home=str(home), resolver=resolver)
    with closing(workspace):
        reader = workspace.reader(AGENT)
        assert reader.document("notes.txt").text == "plain\n", "an honest hard link"
        with pytest.raises(PathBlockedError) as caught:
            reader.document("innocent.txt")
        assert caught.value.details["rule"] == "links to secrets"
        with workspace.draft(AGENT, "write_file") as draft, pytest.raises(PathBlockedError):
            draft.open("innocent.txt")
        for path in (".", "innocent.txt"):
            query = Query.compile("SECRET")
            found = reader.grep(
                path, query, glob="**", limit=9, offset=0, context=0, mode="content"
            )
            assert found.matches == 0
            assert found.unreadable == ("innocent.txt",)


def test_a_home_is_looked_through_once_and_not_without_end(home: Path) -> None:
    looked: list[str] = []

    def is_secret(path: str) -> bool:
        looked.append(path)
        return path.endswith("id_ed25519")

    (home / ".cache" / "deep").mkdir(parents=True)
    (home / ".cache" / "deep" / "id_ed25519").write_text("x")
    (home / "src" / ".ssh").mkdir(parents=True)
    (home / "src" / ".ssh" / "id_ed25519").write_text("x")
    (home / ".a" / "b" / "c").mkdir(parents=True)
    (home / ".a" / "b" / "c" / "id_ed25519").write_text("x")
    secrets = SecretIndex(str(home), is_secret)
    secrets.learn()
    status = (home / ".ssh" / "id_ed25519").stat()
    assert secrets.holds(status.st_dev, status.st_ino)
    folders = [".a", ".a/b", ".config", ".config/gh", ".ssh"]  # one may be a secret as a whole
    files = [".config/gh/hosts.yml", ".ssh/id_ed25519", "notes.txt"]
    assert sorted(looked) == sorted([*folders, *files])
    assert not SecretIndex(None, is_secret).holds(status.st_dev, status.st_ino)
    assert not SecretIndex(str(home / "missing"), is_secret).holds(1, 1)


def test_places_of_secrets_are_those_of_whole_folders_where_these_are_secrets(home: Path) -> None:
    (home / ".ssh" / "pipe").touch()
    (home / ".config" / "gh" / "socket").symlink_to("hosts.yml")
    secrets = SecretIndex(
        str(home), lambda path: path.startswith(".ssh") or path.endswith("hosts.yml")
    )
    assert set(secrets.places()) == {
        *(str(home / ".ssh"), str(home / ".config" / "gh" / "hosts.yml"))
    }
    assert SecretIndex(None, lambda _path: True).places() == ()


def test_what_is_no_plain_file_has_no_second_name(home: Path) -> None:
    os.mkfifo(home / ".ssh" / "pipe")
    secrets = SecretIndex(str(home), lambda path: path.startswith(".ssh"))
    secrets.learn()
    pipe, key = (home / ".ssh" / name for name in ("pipe", "id_ed25519"))
    assert secrets.holds(key.stat().st_dev, key.stat().st_ino)
    assert not secrets.holds(pipe.stat().st_dev, pipe.stat().st_ino)


def test_a_home_with_very_many_files_is_left_early(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("filepact.fs.home_secrets._MOST", 1)
    looked: list[str] = []
    SecretIndex(str(home), lambda path: bool(looked.append(path))).learn()
    assert len(looked) <= 1


def test_an_error_about_such_a_link_names_no_place_outside(home: Path, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    os.link(home / ".ssh" / "id_ed25519", root / "a")
    workspace = open_workspace([str(root)], state_dir=str(tmp_path / "state"), home=str(home))
    with closing(workspace), pytest.raises(FilepactError) as caught:
        workspace.reader(AGENT).document("a")
    assert str(home) not in caught.value.report()


# -- secrets of the root itself ---------------------------------------------------------------------


@pytest.mark.parametrize("secret", [".env", "deep/er/id_rsa", "a/.ssh/known", "old/x.key~"])
@pytest.mark.parametrize("resolver", ["auto", "walk"])
def test_another_name_of_a_secret_in_the_same_root_is_refused(
    tmp_path: Path, secret: str, resolver: str
) -> None:
    root = tmp_path / "root"
    (root / secret).parent.mkdir(parents=True)
    (root / secret).write_text("KEY=SECRET\n")
    (root / "sub").mkdir()
    os.link(root / secret, root / "sub" / "innocent.txt")
    (root / "one.txt").write_text("plain\n")
    os.link(root / "one.txt", root / "two.txt")
    workspace = open_workspace(
        [str(root)], state_dir=str(tmp_path / "state"), home=str(tmp_path), resolver=resolver
    )
    with closing(workspace):
        reader = workspace.reader(AGENT)
        assert reader.document("two.txt").text == "plain\n", "an honest hard link"
        with pytest.raises(PathBlockedError) as caught:
            reader.document("sub/innocent.txt")
        assert caught.value.details["rule"] == "links to secrets"
        for tool in ("write_file", "manage_files"):
            with workspace.draft(AGENT, tool) as draft, pytest.raises(PathBlockedError):
                draft.open("sub/innocent.txt", itself=tool == "manage_files")
        query = Query.compile("SECRET")
        found = reader.grep(".", query, glob="**", limit=9, offset=0, context=0, mode="content")
        assert found.matches == 0
        assert found.unreadable == ("sub/innocent.txt",)


def test_a_secret_with_two_names_is_still_for_the_rules_under_its_own(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / ".env").write_text("KEY=SECRET\n")
    os.link(root / ".env", root / "innocent.txt")
    workspace = open_workspace([str(root)], state_dir=str(tmp_path / "state"), home=str(tmp_path))
    with closing(workspace), workspace.draft(AGENT, "write_file") as draft:
        draft.write(draft.open(".env"), "KEY=1\n")
        receipt = workspace.submit(draft, "write")
    assert (receipt.status, receipt.rule) == ("pending", "project secrets")


@pytest.mark.parametrize(("most", "found"), [(2, False), (3, True)])
def test_a_root_with_very_many_files_is_looked_through_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, *, found: bool
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / ".env").write_text("KEY=SECRET\n")
    os.link(tmp_path / "deep" / ".env", tmp_path / "innocent.txt")
    monkeypatch.setattr("filepact.fs.home_secrets._MOST_IN_ROOT", most)
    secrets = SecretIndex(None, lambda path: path.endswith(".env"))
    status = (tmp_path / "innocent.txt").stat()
    assert (
        secrets.holds_inside(str(tmp_path), "innocent.txt", status.st_dev, status.st_ino) is found
    )


def test_a_root_is_looked_through_once_for_many_links(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n")
        os.link(tmp_path / name, tmp_path / f"{name}2")
    looked: list[str] = []
    secrets = SecretIndex(None, lambda path: bool(looked.append(path)))
    for name in ("a2", "b2"):
        status = (tmp_path / name).stat()
        assert not secrets.holds_inside(str(tmp_path), name, status.st_dev, status.st_ino)
    assert sorted(looked) == ["a", "a2", "a2", "b", "b2", "b2"]
