"""Answers of a client as the checks look at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from filepact.faces.acp.check.outcome import Failed, an_object, shown

__all__ = ["CANCELLED", "INVALID", "MISSING", "UNKNOWN_METHOD", "Message", "Reply"]

UNKNOWN_METHOD, INVALID, MISSING, CANCELLED = -32601, -32602, -32002, -32800

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, as it came over the wire."""

    message: Message

    @property
    def is_error(self) -> bool:
        """Whether it is a refusal."""
        return "error" in self.message

    @property
    def result(self) -> Any:
        """The result.

        Raises:
            Failed: It is an error.
        """
        if "result" not in self.message:
            raise Failed(f"it was refused: {self.told}")
        return self.message["result"]

    @property
    def error(self) -> Message:
        """The error.

        Raises:
            Failed: There is none.
        """
        found = self.message.get("error")
        if not isinstance(found, dict):
            raise Failed(f"it was answered {shown(self.message.get('result'))} and not refused")
        return found

    @property
    def code(self) -> object:
        """The error's number; None for a result."""
        found = self.message.get("error")
        return found.get("code") if isinstance(found, dict) else None

    @property
    def told(self) -> str:
        """The error for a reader."""
        found = self.message.get("error")
        if not isinstance(found, dict):
            return shown(found)
        return f"{found.get('code')} {shown(found.get('message'))}"

    @property
    def content(self) -> str:
        """The text that a read answers.

        Raises:
            Failed: There is none.
        """
        content = an_object(self.result, "the result").get("content")
        if not isinstance(content, str):
            raise Failed(f"content is {shown(content)} and no text")
        return content

    def refused(self, *codes: int) -> None:
        """Go on only if it is an error, with one of some numbers if any are given.

        Raises:
            Failed: It is something else.
        """
        error = self.error
        if codes and error.get("code") not in codes:
            wanted = " or ".join(map(str, codes))
            raise Failed(f"it was refused with {self.told} instead of {wanted}")
