"""Parameters as clients of the two eras send them."""

from __future__ import annotations

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
CLIENT = {"name": "tester", "version": "7"}


def modern(**params) -> dict:
    meta = {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}, CLIENT_KEY: CLIENT}
    return {**params, "_meta": meta | params.get("_meta", {})}


def handshake(**changes) -> dict:
    return {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT} | changes
