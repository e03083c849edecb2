"""What Python asks on macOS for the proxies of the system: there are none."""

from __future__ import annotations


def _get_proxies() -> dict[str, str]:
    return {}


def _get_proxy_settings() -> dict[str, object]:
    return {"exclude_simple": True, "exceptions": []}
