"""What a text that an editor shows is, beside what the disk has."""

import pytest

from filepact.domain.document import Document, Revision, RootId, WorkspacePath
from filepact.text.detect_encoding import NamedEncoding
from filepact.workspace.buffers import differs_in_form, same_text, standing

LATIN = "caf\xe9\n".encode("latin-1")
WIDE = "one\r\ntwo\r\n".encode("utf-16")
JAPANESE = "日本語のテキスト\n".encode("cp932")


def document(data: bytes | None, given: NamedEncoding | None = None) -> Document | None:
    if data is None:
        return None
    path = WorkspacePath(RootId("/w"), "a.txt")
    return Document(path, data, Revision.of(data, 0o644), given)


def lost(data: bytes) -> str:
    return data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("text", "disk", "agreed", "known", "kind", "base"),
    [
        # There is no such file, in the words of different editors.
        (None, b"one\n", b"one\n", None, "nothing", None),
        (None, None, None, None, "nothing", None),
        ("", None, None, None, "nothing", None),
        ("new\n", None, None, None, "unsaved", None),
        # The same, in an editor's own way.
        ("one\n", b"one\n", None, None, "same", None),
        ("", b"", None, None, "same", None),
        ("one\ntwo\n", b"one\r\ntwo\r\n", None, None, "same", None),
        ("one\ntwo\n", b"one\rtwo\r", None, None, "same", None),
        ("one\ntwo\n", b"one\r\ntwo\n", None, None, "same", None),
        ("\ufeffone\n", b"\xef\xbb\xbfone\n", None, None, "same", None),
        ("one", b"one\n", None, None, "same", None),
        ("one\n", b"one", None, None, "same", None),
        ("one\ntwo\n", WIDE, None, None, "same", None),
        ("caf\xe9\n", LATIN, None, None, "same", None),
        ("a\ufffdb\n", "a\ufffdb\n".encode(), None, None, "same", None),
        # Nobody typed in it since both were the same, and the disk has moved.
        ("one\n", b"two\n", b"one\n", None, "older", None),
        ("one\n", b"two\r\n", b"one\r\n", None, "older", None),
        ("one\n", None, b"one\n", None, "older", None),
        # Somebody typed.
        ("typed\n", b"one\n", None, None, "unsaved", b"one\n"),
        ("typed\n", b"one\n", b"one\n", None, "unsaved", b"one\n"),
        ("typed\n", b"two\n", b"one\n", None, "unsaved", b"one\n"),
        ("typed\n", None, b"one\n", None, "unsaved", None),
        ("", b"one\n", None, None, "unsaved", b"one\n"),
        ("typed on\n", b"typed\n", b"one\n", "typed\n", "unsaved", b"typed\n"),
        ("caf\xe9 x\n", LATIN, None, None, "unsaved", LATIN),
        ("ONE\ntwo\n", WIDE, None, None, "unsaved", WIDE),
        ("a\ufffdc\n", "a\ufffdb\n".encode(), None, None, "unsaved", "a\ufffdb\n".encode()),
        # Read in a wrong encoding.
        (lost(LATIN), LATIN, None, None, "mangled", LATIN),
        ("caf\n", LATIN, None, None, "mangled", LATIN),
        (lost(WIDE), WIDE, None, None, "mangled", WIDE),
        (lost(WIDE).replace("\r", "\n"), WIDE, None, None, "mangled", WIDE),
        (lost(LATIN), b"cafe\n", LATIN, None, "mangled", LATIN),
        ("日本語のテキスト\n", JAPANESE, None, None, "mangled", JAPANESE),
        ("\x89PNG\n", b"\x89PNG\n\0\1", None, None, "doubtful", None),
        # And perhaps typed in: nobody can tell.
        (lost(LATIN) + "typed\n", LATIN, None, None, "doubtful", None),
        ("caf\ntyped\n", LATIN, None, None, "doubtful", None),
        ("日本語のテキスト\ntyped\n", JAPANESE, None, None, "doubtful", None),
        ("typed \ufffd\n", b"one\n", b"one\n", None, "doubtful", None),
    ],
)
def test_a_text_is_the_disks_or_older_or_typed_or_nobodys(
    text: str | None,
    disk: bytes | None,
    agreed: bytes | None,
    known: str | None,
    kind: str,
    base: bytes | None,
) -> None:
    found = standing(text, document(disk), agreed=document(agreed), known=known)
    assert (found.kind, found.base and found.base.data) == (kind, base)


def test_of_bytes_that_are_no_text_no_text_is_the_same() -> None:
    nothing = document(b"\0\xff\xfe\x01")
    assert nothing is not None
    assert not same_text("", nothing)
    assert not same_text(lost(nothing.data), nothing)


@pytest.mark.parametrize(
    ("written", "meant", "form"),
    [
        (b"one\n", b"one\n", False),
        (b"one\n", b"one\r\n", True),
        (b"one\r\n", b"one\n", True),
        (b"one\n", b"\xef\xbb\xbfone\n", True),
        (b"\xef\xbb\xbfone\n", b"one\n", True),
        (b"one\r\ntwo\r\n", WIDE, True),
        (b"one\ntwo\n", WIDE, True),
        ("caf\xe9\n".encode(), LATIN, True),
        (JAPANESE.decode("cp932").encode(), JAPANESE, False),
        (JAPANESE.decode("latin-1").encode(), JAPANESE, True),
        (b"one", b"one\n", True),
        # An editor that ends the last line does it on purpose, as one that formats what it saves.
        (b"one\n", b"one", False),
        (b"two\n", b"one\n", False),
        (b"caf?\n", LATIN, False),
        (b"\0\1", b"one\n", False),
        (b"one\n", b"\0\1", False),
    ],
)
def test_other_bytes_of_the_same_text_differ_in_form(
    written: bytes, meant: bytes, form: bool
) -> None:
    one, other = document(written), document(meant)
    assert one is not None
    assert other is not None
    assert differs_in_form(one, other) is form


def test_a_named_encoding_hides_no_text_that_was_written_in_the_usual_one() -> None:
    given = NamedEncoding("cp932", ".editorconfig")
    text = "日本語のテキスト\n"
    one, other = document(text.encode(), given), document(text.encode("cp932"), given)
    assert one is not None
    assert other is not None
    assert differs_in_form(one, other)
