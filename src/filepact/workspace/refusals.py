"""Errors of commits: which of them tell of single files, and what is known of the others."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from filepact.errors import FilepactError, WriteFailedError

if TYPE_CHECKING:
    from filepact.domain.change import ChangeSet
    from filepact.domain.document import WorkspacePath

__all__ = ["first_refused", "is_of_one_file", "only_elsewhere", "refused_files"]

_OF_ALL = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
)
"""What the system says of a whole disk or process."""


def is_of_one_file(error: FilepactError) -> bool:
    """Whether an error tells of one file, and nothing of what becomes of others."""
    return "path" in error.details and error.details.get("errno") not in _OF_ALL


def first_refused(refused: list[FilepactError]) -> FilepactError:
    """The first error, with all the files that cannot be written."""
    first = refused[0]
    if all(map(is_of_one_file, refused)):
        named = ((str(one.details["path"]), one.message) for one in refused)
        first.details["refused"] = tuple(named)
    return first


def refused_files(error: FilepactError, changes: ChangeSet) -> dict[WorkspacePath, str]:
    """The files that kept a change set from being done, with the reasons; none where not they alone did.

    Without them it can be tried again.
    """
    if error.details.get("outcome") != "not_applied" or not is_of_one_file(error):
        return {}
    named = {str(error.details["path"]): error.message}
    refused = error.details.get("refused")
    for one in refused if isinstance(refused, tuple) else ():
        if isinstance(one, tuple):
            named[str(one[0])] = str(one[1])
    return {
        path: message
        for name, message in named.items()
        for path in changes.paths
        if f"{path.path}/".startswith(f"{name}/")
    }


def only_elsewhere(error: FilepactError) -> WriteFailedError:
    return WriteFailedError(
        f"{error.message}. The shared workspace has the change all the same",
        hint="This folder takes it with the next call. Read the file then, before anything else.",
        outcome="elsewhere",
    )
