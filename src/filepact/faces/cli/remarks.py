"""What a program that an editor started remarks: on standard error, which nobody may read."""

from __future__ import annotations

import logging

from filepact.faces.wire.pipes import write_at_once

__all__ = ["log_to_standard_error"]


class _Remarks(logging.Handler):
    """Standard error, which an editor may not read: what it does not take at once is lost."""

    def emit(self, record: logging.LogRecord) -> None:
        write_at_once(2, f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))


def log_to_standard_error() -> None:
    """Have what is logged said there, a line each."""
    logging.basicConfig(handlers=[_Remarks()], level=logging.INFO, format="filepact: %(message)s")
