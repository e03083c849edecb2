"""What an error of an editor means: that it has nothing of a file, or that it refuses."""

import pytest

from filepact.domain.document import Document, Revision, RootId, WorkspacePath
from filepact_acp.errors import ClientResponseError, is_for_the_disk

TEXT = b"Ann,4111\n"
LATIN = "Ann\xe9\n".encode("latin-1")
NO_TEXT = b"\0\xff\xfe\x01"
ENOENT = {"details": "ENOENT: no such file or directory, open '/w/a.txt'"}
DECODING = {"details": "'utf-8' codec can't decode byte 0xe9 in position 3"}


def document(data):
    if data is None:
        return None
    path = WorkspacePath(RootId("/w"), "a.txt")
    return Document(path, data, Revision.of(data, 0o644))


@pytest.mark.parametrize(
    ("error", "disk", "for_the_disk"),
    [
        # There is no such file, said in the protocol's way.
        (ClientResponseError(-32002, "Resource not found"), TEXT, True),
        (ClientResponseError(-32603, "gone", {"errorKind": "not_found"}), TEXT, True),
        # In other ways that counts where there is none.
        (ClientResponseError(-32603, "Internal error", ENOENT), None, True),
        (ClientResponseError(-32603, "Internal error", ENOENT), TEXT, False),
        (ClientResponseError(-32603, "Internal error"), None, True),
        (ClientResponseError(-32603, "Blocked by the project's settings"), None, False),
        # It cannot decode what is there, and that is so.
        (ClientResponseError(-32603, "stream did not contain valid UTF-8"), LATIN, True),
        (ClientResponseError(-32603, "Internal error", DECODING), LATIN, True),
        (ClientResponseError(-32603, "Internal error", "Malformed input"), LATIN, True),
        (ClientResponseError(-32603, "no", {"errorKind": "not_text"}), LATIN, True),
        (ClientResponseError(-32603, "Internal error", DECODING), TEXT, False),
        (ClientResponseError(-32603, "no", {"errorKind": "encoding"}), TEXT, False),
        (ClientResponseError(-32603, "Internal error"), NO_TEXT, True),
        (ClientResponseError(-32603, "Internal error"), LATIN, False),
        # It refuses, whatever the disk has.
        (ClientResponseError(-32603, "Blocked by the project's settings"), TEXT, False),
        (ClientResponseError(-32603, "Blocked by the project's settings"), LATIN, False),
        (ClientResponseError(-32603, "Blocked by the project's settings"), NO_TEXT, False),
        (ClientResponseError(-32603, "utf-8", {"errorKind": "denied"}), LATIN, False),
        (
            ClientResponseError(-32603, "Internal error", {"details": "Permission denied"}),
            LATIN,
            False,
        ),
        (ClientResponseError(-32603, "Internal error: lock timeout"), TEXT, False),
        (ClientResponseError(-32800, "cancelled"), TEXT, False),
    ],
)
def test_only_what_an_editor_has_nothing_of_is_looked_for_on_the_disk(error, disk, for_the_disk):
    assert is_for_the_disk(error, document(disk)) is for_the_disk


@pytest.mark.parametrize(
    ("data", "needed"),
    [
        (None, False),
        (b"", False),
        ("caf\xe9".encode(), False),
        (LATIN, True),
        ("one\r\ntwo\r\n".encode("utf-16"), True),
        ("日本語のテキスト\n".encode("cp932"), True),
        (NO_TEXT, True),
        (b"a\0b\0\1", True),
    ],
)
def test_what_an_editor_of_utf_8_cannot_show_is_looked_for_on_the_disk(data, needed):
    error = ClientResponseError(-32603, "no", {"errorKind": "not_text"})
    assert is_for_the_disk(error, document(data)) is needed


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"code": -32603, "message": "Internal error", "data": {"details": "why"}}, "why"),
        ({"code": -32603, "message": "Refused", "data": {"details": "why"}}, "Refused: why"),
        ({"code": -32603, "message": "Internal error", "data": "why"}, "why"),
        ({"code": 7, "message": "no", "data": {"errorKind": "denied", "n": 1}}, "no"),
        ({"code": -32603, "message": "Internal error"}, "Internal error"),
        ({"code": 7, "message": ["deep"]}, "error 7"),
        ({"code": "x"}, "error -32603"),
        ("whatever", "error -32603"),
        ({"code": 1, "message": "half \ud800"}, "half \\ud800"),
    ],
)
def test_an_editors_reason_is_found_where_programs_put_it(sent, reason):
    assert ClientResponseError.of(sent).reason == reason
