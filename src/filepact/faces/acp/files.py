"""The two methods on files, without the protocol's transport: plain calls that a thread runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from filepact.errors import FilepactError
from filepact.faces.acp.errors import CANCELLED, INVALID, REFUSED, refuse, to_refusal

if TYPE_CHECKING:
    from filepact.domain.operation import Session
    from filepact.faces.acp.sessions import Bound
    from filepact.workspace.receipt import Receipt

__all__ = ["ANSWER_LIMIT", "cut", "read", "write"]

ANSWER_LIMIT = 24 * 1_048_576
"""Bytes of the longest answer: other programs end the connection at a message over 32 MiB."""


def read(bound: Bound, session: Session, path: str, line: int | None, limit: int | None) -> str:
    """A file's text, or the lines asked for, with unsaved text before the disk's.

    Raises:
        Refusal: There is nothing to be shown.
    """
    _check_path(path)
    try:
        text = bound.workspace.reader(session).document(path).text
    except FilepactError as error:
        raise to_refusal(error, path, bound.roots) from None
    content = cut(text, line, limit)
    if len(content) > ANSWER_LIMIT // 6 and len(json.dumps(content)) > ANSWER_LIMIT:
        raise refuse(REFUSED, "too_large", "The answer is too long. Ask for fewer lines.")
    return content


def cut(text: str, line: int | None, limit: int | None) -> str:
    """The part of a text from a line on, 1-based; only LF ends a line."""
    if limit is not None and limit <= 0:
        return ""
    start = 0
    for _ in range(max(line or 1, 1) - 1):
        start = text.find("\n", start) + 1
        if not start:
            return ""
    if limit is None:
        return text[start:]
    end = start
    for _ in range(limit):
        end = text.find("\n", end) + 1
        if not end:
            return text[start:]
    return text[start:end]


def write(bound: Bound, session: Session, path: str, content: str, turn: int) -> Receipt:
    """Give a file a new text; it is on the disk when this returns, or waits for a person.

    Args:
        bound: The session's folders.
        session: Who writes.
        path: Absolute.
        content: The whole text.
        turn: The turn that the request belongs to.

    Raises:
        Refusal: The file is what it was.
    """
    _check_path(path)
    try:
        content.encode()
    except UnicodeEncodeError:
        raise refuse(INVALID, "bad_text", "The content holds half a character.") from None
    try:
        with bound.workspace.draft(session, "fs/write_text_file") as draft:
            target = draft.open(path)
            draft.write(target, content)
            if bound.turn != turn:
                raise refuse(CANCELLED, "cancelled", "The turn ended before this was written.")
            return bound.workspace.submit(draft, f"write {target.spot.shown}")
    except FilepactError as error:
        raise to_refusal(error, path, bound.roots) from None


def _check_path(path: str) -> None:
    if not path.startswith("/") or "\0" in path:
        raise refuse(INVALID, "invalid_params", "The path has to be absolute.")
