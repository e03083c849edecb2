"""The settings of the ACP proxy: the table `acp`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from filepact.config.keys import SWITCH, read_table
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
    return ProxySettings(**read_table(found, "acp", text, name, PROXY_KEYS))
