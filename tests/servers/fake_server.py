"""A language server that behaves as its orders say, for what no real one does on demand.

Started as a program with a JSON object of orders.  It finds one error for each line of a document
that holds the word ``wrong``, and one for each ``missing: NAME`` whose file it has not been told
to exist.  With ``across`` it finds in each document what is wrong in those files as well.  With
``late`` it publishes so many seconds after a text came, what it then had held; with ``newest`` only for
a text that is still the last.  With ``crossing`` the first so many answers to ``probe files`` cross with
an empty list.  With ``reading`` it tells for so long that it reads the project, and
finds nothing meanwhile; with ``says`` by that notification, with ``health`` and what ails it.  With
``tsserver`` it passes requests on.  With ``command`` it publishes when it is asked to by that, after so long.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time

ORDERS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
documents: dict[str, tuple[int, str]] = {}
counts = {"asked": 0, "changed": 0}
one_at_a_time = threading.Lock()
read = threading.Event()


def send(message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with one_at_a_time:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        sys.stdout.buffer.flush()


def receive():
    length = 0
    while (line := sys.stdin.buffer.readline()) != b"\r\n":
        if not line:
            sys.exit(3)
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return json.loads(sys.stdin.buffer.read(length))


def known(path):
    """What a file holds: an open document, or what is on the disk."""
    if "file://" + path in documents:
        return documents["file://" + path][1]
    with open(path, encoding="utf-8") as file:
        return file.read()


def found(uri):
    if "reading" in ORDERS and not read.is_set():
        return []
    _version, text = documents.get(uri, (0, ""))
    text = "\n".join([text, *map(known, ORDERS.get("across", []))])
    return [
        {
            "range": {
                "start": {"line": number, "character": match.start()},
                "end": {"line": number, "character": match.end()},
            },
            "severity": 1,
            "code": "wrong",
            "message": "this is wrong",
        }
        for number, line in enumerate(text.split("\n"))
        for match in re.finditer("wrong", line)
    ]


def publish(uri, items=None):
    version = documents[uri][0]
    items = found(uri) if items is None else items
    if "late" in ORDERS:
        threading.Timer(ORDERS["late"], tell, (uri, items, version)).start()
    else:
        tell(uri, items, version)


def tell(uri, items, version):
    if ORDERS.get("newest") and documents.get(uri, (0,))[0] != version:
        return
    params = {"uri": uri, "diagnostics": items}
    if ORDERS.get("versions", True):
        params["version"] = version + ORDERS.get("lie", 0)
    send({"method": "textDocument/publishDiagnostics", "params": params})


def read_project():
    progress = ({"kind": "begin", "title": "reads the project"}, {"kind": "end"})
    said = {
        "$/progress": [{"token": "reading", "value": value} for value in progress],
        "language/status": [{"type": "Starting"}, {"type": "ServiceReady"}],
        "experimental/serverStatus": [
            {"quiescent": done, **ORDERS.get("health", {"health": "ok"})} for done in (False, True)
        ],
    }
    method = ORDERS.get("says", "$/progress")
    for params in said[method]:
        send({"method": method, "params": params})
        time.sleep(ORDERS["reading"])
        read.set()


def pass_on(message):
    kind, asked = message["params"]["arguments"]
    time.sleep(ORDERS["tsserver"])
    body = []
    for one in found("file://" + asked["file"]) if kind.startswith("semantic") else ():
        places = {
            side: {"line": place["line"] + 1, "offset": place["character"] + 1}
            for side, place in one["range"].items()
        }
        body.append({**places, "text": one["message"], "code": 1, "category": "error"})
    send({"id": message["id"], "result": {"success": True, "body": body}})


def count(name):
    """How often something has happened, over all starts of this server."""
    path = ORDERS["notes"] + "." + name
    with open(path, "a") as notes:
        notes.write("x")
    return os.path.getsize(path)


def capabilities():
    if "capabilities" in ORDERS:
        return ORDERS["capabilities"]
    said = {"textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": True}}}
    if ORDERS.get("kind", "pull") == "pull" and not ORDERS.get("late_pull"):
        whole = "survey" in ORDERS
        said["diagnosticProvider"] = {"interFileDependencies": True, "workspaceDiagnostics": whole}
    if ORDERS.get("symbols"):
        said["documentSymbolProvider"] = True
    if "tsserver" in ORDERS:
        said["executeCommandProvider"] = {"commands": ["typescript.tsserverRequest"]}
    if "command" in ORDERS:
        said["executeCommandProvider"] = {"commands": ["look"]}
    if ORDERS.get("utf8"):
        said["positionEncoding"] = "utf-8"
    return said


def change(params):
    uri = params["textDocument"]["uri"]
    text = documents[uri][1]
    counts["changed"] += 1
    if "sticky" in ORDERS and counts["changed"] > ORDERS["sticky"]:
        return
    for one in params["contentChanges"]:
        if "range" not in one:
            text = one["text"]
            continue
        starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
        places = []
        for side in ("start", "end"):
            place = one["range"][side]
            line = text[starts[place["line"]] :]
            units = line.encode("utf-16-le")[: place["character"] * 2]
            places.append(starts[place["line"]] + len(units.decode("utf-16-le")))
        text = text[: places[0]] + one["text"] + text[places[1] :]
    documents[uri] = (params["textDocument"]["version"], text)
    if ORDERS.get("kind") == "push" and not ORDERS.get("mute"):
        publish(uri)


def diagnose(message):
    counts["asked"] += 1
    asked = counts["asked"]
    number = message["id"]
    if ORDERS.get("hang") or asked == ORDERS.get("hang_at"):
        return
    if ORDERS.get("crash") and asked >= ORDERS["crash"]:
        os._exit(7)
    if asked <= ORDERS.get("busy", 0):
        error = {"code": -32802, "message": "later", "data": {"retriggerRequest": True}}
        send({"id": number, "error": error})
        return
    if asked <= ORDERS.get("modified", 0):
        send({"id": number, "error": {"code": -32801, "message": "content modified"}})
        return
    if ORDERS.get("refuse"):
        send({"id": number, "error": {"code": -32603, "message": "no"}})
        return
    time.sleep(ORDERS.get("slow", 0))
    uri = message["params"]["textDocument"]["uri"]
    text = documents.get(uri, (0, ""))[1]
    result = {"kind": "full", "resultId": str(hash(text)), "items": found(uri)}
    if "limits" in ORDERS:
        result["filepact"] = ORDERS["limits"]
    if message["params"].get("previousResultId") == result["resultId"]:
        result = {"kind": "unchanged", "resultId": result["resultId"]}
    if "answer" in ORDERS:
        result = ORDERS["answer"]
    send({"id": number, "result": result})


def begin(message):
    if ORDERS.get("first_words"):
        sys.stdout.buffer.write(ORDERS["first_words"].encode())
        sys.stdout.buffer.flush()
    if "notes" in ORDERS and count("starts") <= ORDERS.get("fail_starts", 0):
        sys.stderr.write("cannot work today\n")
        os._exit(9)
    if ORDERS.get("garbage_after"):
        sys.stdout.buffer.write(b"Content-Length: x\r\n\r\n{}")
        sys.stdout.buffer.flush()
    answer = ORDERS.get(
        "first_answer", {"capabilities": capabilities(), "serverInfo": {"version": "7"}}
    )
    send({"id": message["id"], "result": answer})


def begun():
    if "reading" in ORDERS:
        threading.Thread(target=read_project, daemon=True).start()
    if ORDERS.get("register"):
        params = {"registrations": ORDERS["register"]}
        send({"id": 901, "method": "client/registerCapability", "params": params})
    if ORDERS.get("late_pull"):
        one = {
            "id": "d",
            "method": "textDocument/diagnostic",
            "registerOptions": {"identifier": "i"},
        }
        send({"id": 900, "method": "client/registerCapability", "params": {"registrations": [one]}})
    for number in range(ORDERS.get("flood", 0)):
        send({"method": "window/logMessage", "params": {"type": 3, "message": f"{number} " * 50}})
    if ORDERS.get("loud"):
        for _ in range(ORDERS["loud"]):
            os.write(2, b"complaint " * 1000)
    for item in ORDERS.get("nonsense", []):
        send(item)
    if ORDERS.get("child"):
        bear(ORDERS["child"])


def bear(note):
    """Have a child in a session of its own, whose number is noted before anything else is said."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.write(writer, b"x")
        held = b"x" * ORDERS.get("eat", 0)
        time.sleep(600)
        del held
    os.read(reader, 1)
    with open(note, "w") as noted:
        noted.write(str(pid))


def main():
    while True:
        message = receive()
        method = message.get("method")
        if "log" in ORDERS:
            with open(ORDERS["log"], "a") as log:
                log.write(json.dumps(message) + "\n")
        if method == "initialize":
            begin(message)
        elif method == "initialized":
            begun()
        elif method == "shutdown":
            send({"id": message["id"], "result": None})
        elif method == "exit":
            if not ORDERS.get("stay"):
                sys.exit(0)
            time.sleep(600)
        elif method == "textDocument/didOpen":
            item = message["params"]["textDocument"]
            documents[item["uri"]] = (item["version"], item["text"])
            if ORDERS.get("kind") == "push" and not ORDERS.get("mute"):
                publish(item["uri"], [] if "slow" in ORDERS else None)
        elif method == "textDocument/didChange":
            change(message["params"])
        elif method == "textDocument/didClose":
            documents.pop(message["params"]["textDocument"]["uri"], None)
        elif method == "workspace/executeCommand" and "tsserver" in ORDERS:
            pass_on(message)
        elif method == "workspace/executeCommand" and "command" in ORDERS:
            time.sleep(ORDERS["command"])
            uri, *more = message["params"]["arguments"]
            if (message["params"]["command"], more) == ("look", ["thisFile", False]):
                publish(uri)
            send({"id": message["id"], "result": None})
        elif method == "textDocument/diagnostic":
            diagnose(message)
        elif method == "test/ask":
            send(
                {
                    "id": "ask",
                    "method": message["params"]["method"],
                    "params": message["params"]["params"],
                }
            )
            reply = receive()
            send({"id": message["id"], "result": reply})
        elif method == "workspace/diagnostic" and "survey" in ORDERS:
            token = message["params"]["partialResultToken"]
            for part in ORDERS["survey"]["parts"]:
                send({"method": "$/progress", "params": {"token": token, "value": part}})
            if "end" in ORDERS["survey"]:
                send({"id": message["id"], "result": ORDERS["survey"]["end"]})
        elif method in ORDERS.get("replies", {}):
            counts[method] = counts.get(method, 0) + 1
            if method in ORDERS.get("writes", {}) and counts[method] == 1:
                path, text = ORDERS["writes"][method]
                with open(path, "w") as written:
                    written.write(text)
            reply = ORDERS["replies"][method]
            refused = isinstance(reply, dict) and "refused" in reply
            answer = {"error": {"code": -32602, "message": reply["refused"]}} if refused else {}
            send({"id": message["id"], **(answer or {"result": reply})})
        elif method == "textDocument/documentSymbol" and "slow" in ORDERS:
            time.sleep(ORDERS["slow"])
            send({"id": message["id"], "result": []})
            time.sleep(ORDERS["slow"])
            for uri in documents:
                publish(uri)
        elif "id" in message and method:
            known = ORDERS.get("knows", ["textDocument/documentSymbol", "probe"])
            # Asked about files it publishes, and sometimes an earlier list right behind.
            for uri in (message.get("params") or {}).get("files", ()) if method == "probe" else ():
                publish(uri)
                counts["asked"] += 1
                if counts["asked"] <= ORDERS.get("crossing", 0):
                    publish(uri, [])
            if method in known:
                send({"id": message["id"], "result": []})
            else:
                send({"id": message["id"], "error": {"code": -32601, "message": "unknown"}})


main()
