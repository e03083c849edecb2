"""A project's own file of rules, which stands at the top of its root."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.errors import InvalidParamsError

if TYPE_CHECKING:
    from filepact.fs.root import Root

__all__ = ["PROJECT_FILE", "read_project_file"]

PROJECT_FILE: Final = ".filepact.toml"
_LARGEST = 32_768


def read_project_file(root: Root) -> str | None:
    """The text of the file, or None when there is none.

    Raises:
        InvalidParamsError: It is no regular file of its own, or not text.
        PathBlockedError: It is a link that leads out of the root.
        TooLargeError: It has more than 32 kB.
        ReadFailedError: It may not be read.
    """
    place = root.place(PROJECT_FILE)
    if place.kind == "missing":
        return None
    name = f"{root.path.rstrip('/')}/{PROJECT_FILE}"
    if place.kind != "file" or place.path != PROJECT_FILE:
        # What a link leads to has another name, under which agents could change it.
        raise InvalidParamsError(
            f"{name}: has to be a regular file and no link",
            hint="Put the rules into a file of that name, or remove it.",
            file=name,
        )
    try:
        return root.read(PROJECT_FILE, limit=_LARGEST).data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidParamsError(
            f"{name}: is not UTF-8 (byte {error.start})", hint="Save it as UTF-8.", file=name
        ) from None
