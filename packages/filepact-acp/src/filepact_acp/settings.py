"""The settings of the ACP proxy: the table `acp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.config.problems import refusal
from filepact.config.settings import known_table
from filepact.config.template import SWITCH
from filepact.extension import SettingInfo
from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PROXY_KEYS", "ProxySettings", "read_proxy"]

PROXY_KEYS: Final = (
    SettingInfo("acp", "answer_own", "true", "answer for the proxy's own reading tools", SWITCH),
)


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """The ACP proxy's settings.

    Attributes:
        answer_own: Whether it answers questions whether its own reading tools may be used.
    """

    answer_own: bool = True


def read_proxy(found: Mapping[str, Any], text: str, name: str) -> ProxySettings:
    """What is done between editors and agents.

    Args:
        found: The file's keys, as the TOML reader gives them.
        text: What the file holds.
        name: How it is called in messages.

    Raises:
        InvalidParamsError: A key or a value in the table is not one that is known.
    """
    chosen = known_table(found.get("acp", {}), ("acp",), ("answer_own",), text, name)
    for key, value in chosen.items():
        if type(value) is not bool:
            raise refusal(text, name, ("acp", key), "has to be one of true, false")
    return ProxySettings(**chosen)
