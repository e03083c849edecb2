"""Hands a proposed text to the person's editor, and takes what they made of it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from filepact.errors import InvalidParamsError, WriteFailedError

__all__ = ["edit_text"]


def edit_text(text: str, name: str) -> str:
    """Return a text as the person leaves it in their editor.

    Args:
        text: The text, line ends as they are.
        name: The file's name, whose ending tells an editor what it is.

    Raises:
        InvalidParamsError: No editor is named, or it cannot be started.
        WriteFailedError: It failed.
    """
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(editor)
    except ValueError:
        words = []
    program = shutil.which(words[0]) if words else None
    if program is None or not Path(program).is_absolute():
        raise InvalidParamsError(
            "no editor is named that could be started", hint="Set VISUAL or EDITOR."
        )
    try:
        data = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise InvalidParamsError(
            "the text holds half of a character, as UTF-16 may; no editor could be given that",
            hint="Approve or reject it as it is.",
        ) from None
    ending = re.sub(r"[^A-Za-z0-9]", "", name.rpartition(".")[2])[:12]
    with tempfile.TemporaryDirectory(prefix="filepact-") as folder:
        file = Path(folder) / f"proposed.{ending or 'txt'}"
        file.write_bytes(data)
        file.chmod(0o600)
        status = subprocess.run([program, *words[1:], str(file)], check=False).returncode  # noqa: S603 - the person's own
        if status:
            raise WriteFailedError(f"the editor ended with {status}", hint="Nothing was changed.")
        return file.read_bytes().decode("utf-8", "surrogateescape")
