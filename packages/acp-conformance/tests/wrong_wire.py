"""Stands between a client and the agent, and spoils what passes: a client whose wire is wrong.

The first word names the fault, the others start the agent.
"""

import json
import os
import subprocess
import sys
import threading

FAULT = sys.argv[1]
STALLS = {"stalls on a pipe": b'/pipe"', "stalls on a device": b"/dev/null"}


# -- what the client sends ---------------------------------------------------------------------


def from_client(message):
    """The lines to send in the place of a client's message."""
    plain = json.dumps(message)
    number = message.get("id")
    asked = {"initialize": {}, "session/new": {}}.get(message.get("method"))
    if asked is not None:
        params = message["params"]
        if message["method"] == "initialize":
            changes = {
                "version is a text": {"protocolVersion": "1"},
                "capabilities are a list": {"clientCapabilities": {"fs": ["readTextFile"]}},
                "modes are a list": {"clientCapabilities": {"elicitation": ["form"]}},
                "client has no name": {"clientInfo": {"title": "none"}},
            }
        else:
            changes = {
                "cwd is relative": {"cwd": "."},
                "servers are missing": {"mcpServers": "none"},
                "directories are unwanted": {"additionalDirectories": ["/tmp"]},
            }
        params |= changes.get(FAULT, {})
        spoilt = json.dumps(message)
        if FAULT == "speaks too early" and message["method"] == "initialize":
            return [json.dumps({"jsonrpc": "2.0", "method": "hello"}), spoilt]
        return [spoilt]
    if "method" in message:
        return [plain]
    return answer(message, number, plain)


def answer(message, number, plain):
    match FAULT:
        case "prints what it does":
            return ["serving...", plain]
        case "answers twice":
            return [plain, plain]
        case "forgets the version":
            del message["jsonrpc"]
        case "takes 0 for none" if number == 0:
            return []
        case "takes ids for numbers" if isinstance(number, str):
            return []
        case "has 31 bits for ids" if isinstance(number, int):
            message["id"] = number & 0x7FFFFFFF
        case "errors are texts" if "error" in message:
            message["error"] = {"code": "ERR", "message": None}
        case "results are texts" if "result" in message:
            message["result"] = "done"
    return [json.dumps(message)]


# -- what the agent sends -----------------------------------------------------------------------


def from_agent(line):
    """The bytes to hand on in the place of an agent's line; None ends everything."""
    if FAULT == "reads Latin-1":
        return line.decode("latin-1").encode()
    if FAULT == "takes a chunk for a line" and b"ids.pieces" in line:
        return line[:40] + b"\n" + line[40:]
    if FAULT == "believes in JSON":
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        whole = isinstance(message, dict) and ("method" in message or "id" in message)
        if not whole or len(line) > 4_000_000:
            return None
    if FAULT == "believes in methods" and b'"method": "x/y"' in line:
        return None
    for fault, mark in STALLS.items():
        if fault == FAULT and mark in line:
            threading.Event().wait()
    for fault, mark in {
        "ends at an unknown notification": b"craft/bare",
        "ends at an unknown update": b"from_the_future",
        "ends at any update": b"agent_message_chunk",
        "ends at an unknown answer": b'"id": 987654, "result"',
        "ends at an unknown cancel": b'{"requestId": 987654}',
    }.items():
        if fault == FAULT and mark in line:
            return None
    return line


def main():
    agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def to_client():
        for line in agent.stdout:
            spoilt = from_agent(line)
            if spoilt is None:
                break
            put(spoilt)
        os._exit(0)

    threading.Thread(target=to_client, daemon=True).start()
    for line in sys.stdin.buffer:
        for one in from_client(json.loads(line)):
            agent.stdin.write(one.encode() + b"\n")
        agent.stdin.flush()


def put(data):
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


main()
