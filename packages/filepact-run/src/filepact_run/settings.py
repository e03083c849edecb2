"""The settings of `filepact run`: the table `run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.config.keys import one_of, read_table
from filepact.extension import SettingInfo
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RUN_KEYS", "RunSettings", "read_run"]

RUN_KEYS: Final = (
    SettingInfo(
        "run",
        "builds",
        '"move"',
        "what becomes of node_modules and the like after `run`",
        one_of("move", "record", "discard"),
    ),
    SettingInfo(
        "run",
        "commit",
        '"quiet"',
        "when what `run` may commit is committed",
        one_of("quiet", "end"),
    ),
    SettingInfo(
        "run",
        "writable",
        "[]",
        "folders that programs behind `run` change as they are",
        {"type": "array", "items": {"type": "string", "pattern": "^(/|~/)"}},
        form="a list of paths that begin with / or ~/",
    ),
)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of `filepact run`.

    Attributes:
        builds: What becomes of folders that programs fill, such as ``node_modules``, when the program
            has ended: moved into the root as they are, judged and recorded file by file, or thrown away.
        commit: Whether what the rules allow is committed at each quiet moment, or only at the end.
        writable: What programs may change as it is, absolute or beginning with ``~/``.
    """

    builds: Literal["move", "record", "discard"] = "move"
    writable: tuple[str, ...] = ()
    commit: Literal["quiet", "end"] = "quiet"


def read_run(found: Mapping[str, Any], text: str, name: str) -> RunSettings:
    """How programs are run.

    Args:
        found: The file's keys, as the TOML reader gives them.
        text: What the file holds.
        name: How it is called in messages.

    Raises:
        InvalidParamsError: A key or a value in the table is not one that is known.
    """
    return RunSettings(**read_table(found, "run", text, name, RUN_KEYS))
