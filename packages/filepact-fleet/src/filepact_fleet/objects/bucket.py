"""A bucket: what is asked of an object store, and what its answers mean.

Three answers count.  *Moved* (409, 412, or 404 on a condition): the object is not what the condition names, and nothing was
written.  *Failed*: the server was reached and did not do it, or was not reached.  *Unsure*: a request was sent, and no answer came,
so that it may have been carried out.  A library that sends requests again by itself makes the first of the last: so writing is
tried once, and whoever writes decides.
"""

from __future__ import annotations

import os
import time
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from filepact.domain.document import content_id
from filepact.errors import (
    InvalidParamsError,
    ObjectStoreFailedError,
    ObjectStoreUnsafeError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "Bucket",
    "BucketItem",
    "StaleItemError",
    "UnknownItemError",
    "UnknownResultError",
    "open_bucket",
    "over",
    "probe",
    "put_new",
]

_SCHEMES: Final = ("s3://", "s3a://")
_TRIES: Final = 5
_FIRST_WAIT: Final = 0.05  # seconds; doubled each time
_RACERS: Final = 4
_ROUNDS: Final = 1


class UnknownItemError(Exception):
    """There is no such object."""


class StaleItemError(Exception):
    """The object is not what the condition names; nothing was written."""


class UnknownResultError(Exception):
    """No answer came: it may have been done, or may still be."""


class BucketItem(NamedTuple):
    """An object as a listing names it; the time is the server's own, in seconds."""

    name: str
    size: int
    written: float


class Bucket(Protocol):
    """A place for objects, names relative to its prefix; for all threads."""

    def get(self, name: str) -> tuple[bytes, str]:
        """An object and its tag.

        Raises:
            UnknownItemError: There is none.
        """

    def get_other(self, name: str, tag: str) -> tuple[bytes, str] | None:
        """As `get`; None where it still has this tag."""

    def get_ranges(self, name: str, ranges: list[tuple[int, int]]) -> list[bytes]:
        """Parts of an object, by first byte and length.

        Raises:
            UnknownItemError: There is no such object, or it is shorter.
        """

    def create(self, name: str, data: bytes) -> str:
        """Make an object that is not there; its tag.

        Raises:
            StaleItemError: There is one.
            UnknownResultError: No answer came.
        """

    def swap(self, name: str, data: bytes, tag: str) -> str:
        """Replace an object that still has this tag; the new tag.  Errors as `create`."""

    def replace(self, name: str, data: bytes) -> None:
        """Write an object whatever is there."""

    def delete(self, name: str) -> None:
        """Remove an object, if it is there."""

    def list(self, prefix: str) -> Iterator[BucketItem]:
        """All objects beneath a prefix."""


def open_bucket(url: str) -> Bucket:
    """The place that a URL names; where the server is, and who asks, the environment says as for other S3 programs.

    Raises:
        InvalidParamsError: It is no such URL, or the library for it is not installed.
    """
    if not url.startswith(_SCHEMES) or not url.partition("://")[2].strip("/"):
        raise InvalidParamsError(
            f"not a place for a shared workspace: {url}",
            hint="Name a bucket and a prefix in it: s3://bucket/team/project",
        )
    try:
        from obstore.store import S3Store  # noqa: PLC0415 - of an extra
    except ImportError:
        raise InvalidParamsError(
            "shared workspaces need the package obstore",
            hint="Install filepact's extra `objects`.",
        ) from None
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
    options: Any = {"connect_timeout": "5s", "timeout": "30s"}
    settings: dict[str, Any] = {}
    if endpoint:
        settings["endpoint"] = endpoint
    if endpoint.startswith("http://"):
        options["allow_http"] = True
    try:
        stores = [
            S3Store.from_url(
                url.rstrip("/"),
                client_options=options,
                retry_config={"max_retries": retries},
                **settings,
            )
            for retries in (3, 0)
        ]
    except Exception as error:  # noqa: BLE001 - the library's own errors have no common class
        raise InvalidParamsError(
            f"{url}: {_first_line(error)}",
            hint="Set AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY as for other "
            "programs.",
        ) from None
    return over(*stores)


def over(reading: Any, writing: Any = None) -> Bucket:
    """A bucket over stores of the library.

    Args:
        reading: One that may ask again by itself.
        writing: One that does not; None for the same.
    """
    return _Obstore(reading, reading if writing is None else writing)


class _Obstore:
    """A bucket over obstore."""

    def __init__(self, reading: Any, writing: Any) -> None:
        import obstore  # noqa: PLC0415 - of an extra
        from obstore import exceptions  # noqa: PLC0415 - the same

        self._api: Any = obstore
        self._reading = reading
        self._writing = writing
        self._moved = (
            exceptions.AlreadyExistsError,
            exceptions.PreconditionError,
            FileNotFoundError,
        )
        self._refused = (
            exceptions.PermissionDeniedError,
            exceptions.UnauthenticatedError,
            exceptions.NotSupportedError,
            exceptions.InvalidPathError,
            exceptions.UnknownConfigurationKeyError,
        )
        self._unmodified = exceptions.NotModifiedError

    def get(self, name: str) -> tuple[bytes, str]:
        found = self.get_other(name, "")
        if found is None:
            raise ObjectStoreFailedError(
                f"{name}: the server answered 304 (not modified) to a read without a condition"
            )
        return found

    def get_other(self, name: str, tag: str) -> tuple[bytes, str] | None:
        options = {"if_none_match": tag} if tag else None
        try:
            answer = self._api.get(self._reading, name, options=options)
            return bytes(answer.bytes()), str(answer.meta["e_tag"] or "")
        except self._unmodified:
            return None
        except FileNotFoundError:
            raise UnknownItemError(name) from None
        except Exception as error:  # noqa: BLE001 - as above
            raise _failed(name, error) from None

    def get_ranges(self, name: str, ranges: list[tuple[int, int]]) -> list[bytes]:
        if not ranges:
            return []
        starts, lengths = [one for one, _ in ranges], [length for _, length in ranges]
        try:
            parts = self._api.get_ranges(self._reading, name, starts=starts, lengths=lengths)
            return [bytes(part) for part in parts]
        except FileNotFoundError:
            raise UnknownItemError(name) from None
        except Exception as error:  # noqa: BLE001 - as above
            if "range" in str(error).lower():
                raise UnknownItemError(name) from None
            raise _failed(name, error) from None

    def create(self, name: str, data: bytes) -> str:
        return self._put(name, data, "create")

    def swap(self, name: str, data: bytes, tag: str) -> str:
        return self._put(name, data, {"e_tag": tag})

    def _put(self, name: str, data: bytes, mode: Any) -> str:
        try:
            # In one request: of one in parts only the last has a condition, if any.
            done = self._api.put(self._writing, name, data, mode=mode, use_multipart=False)
        except self._moved:
            raise StaleItemError(name) from None
        except self._refused as error:
            raise _failed(name, error) from None
        except Exception as error:  # noqa: BLE001 - as above
            if " 409 " in f" {error} " or "409 Conflict" in str(error):
                raise StaleItemError(name) from None
            raise UnknownResultError(_first_line(error)) from None
        return str(done["e_tag"] or "")

    def replace(self, name: str, data: bytes) -> None:
        try:
            self._api.put(self._reading, name, data, use_multipart=False)
        except Exception as error:  # noqa: BLE001 - as above
            raise _failed(name, error) from None

    def delete(self, name: str) -> None:
        try:
            self._api.delete(self._reading, name)
        except FileNotFoundError:
            pass
        except Exception as error:  # noqa: BLE001 - as above
            raise _failed(name, error) from None

    def list(self, prefix: str) -> Iterator[BucketItem]:
        try:
            for page in self._api.list(self._reading, prefix or None):
                for one in page:
                    yield BucketItem(one["path"], one["size"], one["last_modified"].timestamp())
        except Exception as error:  # noqa: BLE001 - as above
            raise _failed(prefix, error) from None


def _failed(name: str, error: Exception) -> ObjectStoreFailedError:
    return ObjectStoreFailedError(
        f"the object store does not give {name or 'a listing'}: {_first_line(error)}",
        hint="Nothing was changed. Check that the server runs, and that this account may use it.",
        outcome="not_applied",
    )


def _first_line(error: Exception) -> str:
    """What an error says, without the library's account of itself."""
    return (str(error).strip().partition("\n")[0] or type(error).__name__)[:300]


def put_new(bucket: Bucket, name: str, data: bytes) -> None:
    """Write an object under a name that nobody else uses, however often it has to be tried.

    Raises:
        ObjectStoreFailedError: It could not be written.
    """
    said = ""
    for number in range(_TRIES):
        if number:
            time.sleep(_FIRST_WAIT * 2**number)
        try:
            bucket.create(name, data)
        except UnknownResultError as error:
            said = str(error)
            continue
        except StaleItemError:
            # It may be the one that we tried first, whose answer was lost.
            try:
                there = bucket.get(name)[0]
            except UnknownItemError:
                said = "409 Conflict"
                continue
            if content_id(there) != content_id(data):
                raise ObjectStoreFailedError(
                    f"another object has the name {name}, which only this program knows",
                    hint="Another program writes to this place.",
                    outcome="not_applied",
                ) from None
        return
    raise _failed(name, OSError(said))


# -- whether the server keeps conditions ----------------------------------------------------------


def probe(bucket: Bucket) -> None:
    """Try whether the server keeps the conditions that everything rests on, in a race as well.

    Raises:
        ObjectStoreUnsafeError: It does not: two writers could both believe that they were first.
        ObjectStoreFailedError: It cannot be tried.
    """
    name = f"probe/{os.urandom(8).hex()}"
    made: list[str] = []
    try:
        for number in range(_ROUNDS):
            made.append(f"{name}-{number}")
            _probe_one(bucket, made[-1])
    except UnknownResultError as error:
        raise _failed(name, error) from None
    finally:
        for one in made:
            bucket.delete(one)


def _probe_one(bucket: Bucket, name: str) -> None:
    won = _race(lambda number: bucket.create(name, str(number).encode()))
    if len(won) != 1:
        raise _unsafe(f"{len(won)} of {_RACERS} writers made the same new object at the same time")
    data, tag = bucket.get(name)
    if data != str(won[0]).encode() or not tag:
        raise _unsafe("a new object holds another writer's bytes, or has no tag")
    if bucket.get_other(name, tag) is not None:
        raise _unsafe("it ignores If-None-Match when an object is read")
    won = _race(lambda number: bucket.swap(name, f"next {number}".encode(), tag))
    if len(won) != 1:
        raise _unsafe(f"{len(won)} of {_RACERS} writers replaced the same state of an object")
    if bucket.get(name)[0] != f"next {won[0]}".encode():
        raise _unsafe("a replaced object does not hold what its writer wrote")
    try:
        bucket.swap(name, b"late", tag)
    except StaleItemError:
        return
    raise _unsafe("it ignores If-Match")


def _race(act: Callable[[int], object]) -> list[int]:
    """Which of some threads that do the same at once were told that they did it."""
    start, won, failed = Barrier(_RACERS), list[int](), list[Exception]()

    def run(number: int) -> None:
        start.wait()
        try:
            act(number)
        except StaleItemError:
            return
        except Exception as error:  # noqa: BLE001 - told below, in the thread that asked
            failed.append(error)
            return
        won.append(number)

    threads: Iterable[Thread] = [Thread(target=run, args=(one,)) for one in range(_RACERS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failed:
        raise failed[0]
    return won


def _unsafe(what: str) -> ObjectStoreUnsafeError:
    return ObjectStoreUnsafeError(
        f"this server is not safe for a shared workspace: {what}",
        hint="Use a server, or a version of it, that obeys If-Match and If-None-Match on writes.",
    )
