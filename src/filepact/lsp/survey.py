"""Which files of a whole project a server finds something wrong with, where it can be asked that.

It says which files are worth being asked about one by one: their texts are not known here, so that
places in them cannot be either.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filepact.lsp.failures import LateError, ServerError
from filepact.wire.uris import path_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.lsp.client import Client

__all__ = ["Affected", "Survey", "survey"]

_ANSWER: Final = "filepact-survey"
_MOST_FILES: Final = 20_000


@dataclass(frozen=True, slots=True)
class Affected:
    """A file that a server finds something wrong with.

    Attributes:
        path: Absolute.
        errors: How many diagnostics are errors.
        others: How many are not.
    """

    path: str
    errors: int
    others: int


@dataclass(frozen=True, slots=True)
class Survey:
    """What one server finds in a whole project.

    Attributes:
        server: Its name.
        files: Those that something is wrong with, by path.
        complete: Whether the server has said that this is all; some answer bit by bit and never
            end, and then this is what came in time.
        seconds: How long it took.
        reason: Why it is not complete; else empty.
    """

    server: str
    files: tuple[Affected, ...]
    complete: bool
    seconds: float
    reason: str = ""


async def survey(server: str, client: Client, seconds: float) -> Survey:
    """Ask a server about the whole project.

    Args:
        server: Its name.
        client: The conversation with it.
        seconds: How long to wait.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    if not client.surveys:
        return Survey(server, (), False, 0.0, "the server does not look at whole projects")
    parts = client.partial.setdefault(_ANSWER, [])
    params = {"previousResultIds": [], "partialResultToken": _ANSWER}
    reason = ""
    try:
        parts.append(await client.peer.request("workspace/diagnostic", params, seconds))
    except LateError:
        reason = "the server goes on looking"
    except ServerError as error:
        reason = str(error)
    finally:
        del client.partial[_ANSWER]
    found: dict[str, Affected] = {}
    for one in (one for part in parts for one in _files(part)):
        found[one.path] = one  # a later part replaces what was said before
    files = sorted((one for one in found.values() if one.errors or one.others), key=_path)
    whole = not reason and len(files) <= _MOST_FILES
    return Survey(server, tuple(files[:_MOST_FILES]), whole, loop.time() - began, reason)


def _path(one: Affected) -> str:
    return one.path


def _files(part: Any) -> Iterator[Affected]:
    items = part.get("items") if isinstance(part, dict) else None
    for item in items if isinstance(items, list) else ():
        uri = item.get("uri") if isinstance(item, dict) else None
        path = path_of(uri) if isinstance(uri, str) else None
        found = item.get("items") if path is not None else None
        if path is None or item.get("kind") != "full" or not isinstance(found, list):
            continue
        severities = [one.get("severity", 1) for one in found if isinstance(one, dict)]
        yield Affected(path, severities.count(1), len(severities) - severities.count(1))
