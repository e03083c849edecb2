"""What editors say about the files that they show: opened, typed in, saved, closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from filepact.domain.document import Document, WorkspacePath
    from filepact.text.position import Unit
    from filepact.workspace.buffers import Buffer, Buffers, Delivery, Typed
    from filepact.workspace.documents import Documents
    from filepact.workspace.guard import Guard, Spot

__all__ = ["Editors"]


class Editors:
    """The editors' side of the buffers: files are named as they are sent, by any name.

    An editor belongs to the person, so rules about agents do not keep it from showing a file;
    an agent that reads the file is asked about as ever.

    Args:
        guard: Finds the files.
        documents: Reads what the disk has.
        buffers: The buffers.
    """

    def __init__(self, guard: Guard, documents: Documents, buffers: Buffers) -> None:
        self._guard = guard
        self._documents = documents
        self._buffers = buffers

    def open(
        self,
        path: str,
        text: str,
        *,
        client: str,
        version: int,
        base: Document | None = None,
    ) -> Buffer:
        """An editor shows a file, which need not be on the disk.

        Args:
            path: The file.
            text: All of its text as the editor has it, saved or not.
            client: The editor's connection.
            version: The editor's count of changes.
            base: The file that the text grew from; None for what the disk has now.

        Raises:
            PathBlockedError: It lies outside.
        """
        spot = self._spot(path)
        base = base or self._stored(spot)
        return self._buffers.open(spot.path, text, client=client, version=version, base=base)

    def doubt(self, path: str, *, client: str) -> None:
        """An editor may have unsaved text of a file, and shows it in a wrong encoding."""
        self._buffers.doubt(self._spot(path).path, client=client)

    def change(
        self,
        path: str,
        typed: Sequence[Typed],
        *,
        client: str,
        version: int,
        unit: Unit = "utf-16",
    ) -> Buffer:
        """An editor's text has changed, one change after the other.

        Raises:
            InvalidParamsError: The editor has not opened the file, or a place is none.
            StaleFileError: The version is not a later one.
        """
        spot = self._spot(path)
        return self._buffers.change(spot.path, typed, client=client, version=version, unit=unit)

    def saved(self, path: str, *, client: str) -> None:
        """An editor has written its text to the disk by itself."""
        spot = self._spot(path)
        self._buffers.saved(spot.path, client=client, base=self._stored(spot))

    def close(self, path: str, *, client: str) -> None:
        """An editor no longer shows a file; unsaved text is gone with it, as it is there."""
        self._buffers.close(self._spot(path).path, client=client)

    def forget(self, client: str) -> None:
        """An editor has gone."""
        self._buffers.forget(client)

    def take(self, client: str) -> tuple[Delivery, ...]:
        """The edits that one editor has to make in its buffers, in order; they are told once."""
        return self._buffers.take(client)

    def refused(self, delivery: Delivery) -> None:
        """An editor did not make the edits; what it has stays the file, until it says more."""
        self._buffers.refused(delivery)

    def buffer(self, path: str) -> Buffer | None:
        """What an editor holds of a file."""
        return self._buffers.get(self._spot(path).path)

    def is_doubtful(self, path: str) -> bool:
        """Whether an editor may have text of a file that nobody can know."""
        return self._buffers.is_doubtful(self._spot(path).path)

    def shows(self, path: WorkspacePath) -> bool:
        """Whether an editor has said what it holds of a file."""
        return self._buffers.get(path) is not None

    def stored(self, path: str) -> Document | None:
        """What the disk has of a file; None for no file."""
        return self._stored(self._spot(path))

    def shown(self, path: str) -> Document | None:
        """A file as the bytes that an editor would save it as; None for no file.

        Raises:
            EncodingUnsafeError: Somebody typed what the file's encoding cannot hold.
        """
        return self._documents.present(self._spot(path))

    def _spot(self, path: str) -> Spot:
        return self._guard.find(path, "list")

    def _stored(self, spot: Spot) -> Document | None:
        return None if spot.place.kind == "missing" else self._documents.stored(spot)
