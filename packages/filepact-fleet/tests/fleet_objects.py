"""Short words for what tests do with a shared workspace."""

from __future__ import annotations

import itertools
from hashlib import sha256
from typing import TYPE_CHECKING

from filepact_fleet.manifest import FileState
from filepact_fleet.objects.repository import BucketWorkspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from filepact_fleet.objects.bucket import Bucket
    from filepact_fleet.objects.heads import Head

_NAMES = itertools.count()


def name() -> str:
    return f"c{next(_NAMES):09}"


class Shared:
    """A workspace and short words for what tests do with it."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket
        self.workspace = BucketWorkspace(bucket, wait=lambda _seconds: None)

    def again(self) -> Shared:
        """The same as another process has it."""
        return Shared(self.bucket)

    def put(
        self,
        files: dict[str, bytes | None],
        agrees: Callable[[str, FileState | None], bool] = lambda _path, _there: True,
        change: str = "",
    ) -> Head:
        contents = {sha256(one).hexdigest(): one for one in files.values() if one is not None}
        wanted = {
            path: None if one is None else FileState(sha256(one).hexdigest(), len(one), 0o644)
            for path, one in files.items()
        }
        head, _ = self.workspace.publish(
            change or name(), "tests", wanted, contents.__getitem__, agrees
        )
        return head

    def read(self) -> dict[str, bytes]:
        files = self.workspace.files(self.workspace.newest())
        return {path: self.workspace.content(entry) for path, entry in files.items()}
