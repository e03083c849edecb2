"""A client without a fault, as plain as it can be, for others to be made wrong from.

It stands on the protocol's package for its connection only; messages reach it as they are.
"""

from __future__ import annotations

# ruff: noqa: ARG002 - subclasses use what this one does not
import os
import stat
from pathlib import Path

from acp import RequestError
from acp.schema import ClientCapabilities, FileSystemCapabilities

BOM = b"\xef\xbb\xbf"
READ, WRITE = "fs/read_text_file", "fs/write_text_file"


class RightClient:
    """Each step is a method, for a subclass to do otherwise."""

    reads = writes = True

    def __init__(self):
        self.roots = {}
        self.cancelled = set()
        self.opening = {}

    def capabilities(self):
        fs = FileSystemCapabilities(read_text_file=self.reads, write_text_file=self.writes)
        return ClientCapabilities(fs=fs)

    # -- the connection ---------------------------------------------------------------------

    def on_connect(self, connection):
        wire = connection._conn
        receive = wire._transport.receive

        async def receive_all():
            # The package takes a line that is only `null` for the end.
            while (message := await receive()) is None and not wire._transport._reader.at_eof():
                pass
            return message

        wire._transport.receive = receive_all
        wire._handler = self.handle
        request, notify, process = wire.send_request, wire.send_notification, wire._process_message

        async def send_request(method, params=None):
            if method == "session/new":
                self.opening[wire._next_request_id] = [
                    params["cwd"],
                    *(params.get("additionalDirectories") or ()),
                ]
            answer = await request(method, params)
            if method == "session/prompt":
                self.cancelled.discard(params["sessionId"])
            elif method == "session/close":
                self.closed(params["sessionId"])
            return answer

        async def send_notification(method, params=None):
            if method == "session/cancel":
                self.cancel(params["sessionId"])
            await notify(method, params)

        def process_message(message):
            if self.is_message(message):
                opened = self.opening.pop(message.get("id"), None)
                if opened and "result" in message:
                    self.opened(message["result"]["sessionId"], opened)
                process(message)

        wire.send_request, wire.send_notification = send_request, send_notification
        wire._process_message = process_message

    def is_message(self, message):
        return isinstance(message, dict)

    def opened(self, session, roots):
        self.roots[session] = roots

    def closed(self, session):
        self.roots.pop(session, None)

    def cancel(self, session):
        self.cancelled.add(session)

    # -- methods ----------------------------------------------------------------------------

    async def handle(self, method, params, is_notification):
        if is_notification:
            return None
        if method not in {READ, WRITE, "session/request_permission"}:
            return self.unknown(method)
        if not isinstance(params, dict):
            raise self.refusal(-32602, "The parameters are no object.")
        if method == "session/request_permission":
            return await self.permission(params["options"])
        if not (self.reads if method == READ else self.writes):
            return self.not_announced(method, params)
        return await (self.read(params) if method == READ else self.write(params))

    def unknown(self, method):
        raise self.refusal(-32601, "There is no such method.")

    def not_announced(self, method, params):
        raise self.refusal(-32601, "This was not announced.")

    async def permission(self, options):
        for option in options:
            if option["kind"] == "reject_once":
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        return {"outcome": {"outcome": "cancelled"}}

    async def read(self, params):
        params = self.parameters(params, "sessionId", "path")
        path = self.place(params)
        text = self.decode(self.load(path, params["path"]))
        line, limit = (self.number(params.get(name)) for name in ("line", "limit"))
        return {"content": self.window(text, line, limit)}

    async def write(self, params):
        params = self.parameters(params, "sessionId", "path", "content")
        if params["sessionId"] in self.cancelled:
            raise self.late()
        path = self.place(params)
        old = path.read_bytes() if path.is_file() else b""
        self.check(path)
        self.store(path, self.encode(old, params["content"]))
        return {}

    # -- steps ------------------------------------------------------------------------------

    def refusal(self, code, message, **data):
        return RequestError(code, message, data or None)

    def late(self):
        return self.refusal(-32800, "The turn was cancelled before this was written.")

    def parameters(self, params, *required):
        for name in required:
            if not isinstance(params.get(name), str):
                raise self.refusal(-32602, f"{name} has to be a text.")
        return params

    def number(self, value):
        return value if type(value) is int and value >= 0 else None

    def place(self, params):
        roots = self.session_roots(params["sessionId"])
        path = params["path"]
        if not path.startswith("/") or "\0" in path:
            raise self.refusal(-32602, "The path has to be absolute.")
        try:
            real = self.real(path)
        except OSError:
            raise self.refusal(-32602, "The path leads nowhere.") from None
        if not self.inside(real, roots):
            raise self.refusal(-32603, "The path is outside of the session's folders.")
        return Path(real)

    def session_roots(self, session):
        if session not in self.roots:
            raise self.refusal(-32602, "No such session is open.")
        return self.roots[session]

    def real(self, path):
        return os.path.realpath(path)

    def inside(self, path, roots):
        return any(path == root or path.startswith(f"{root}/") for root in roots)

    def check(self, path):
        """Refuse what is there and no regular file."""
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError:
            raise self.refusal(-32602, "The path leads nowhere.") from None
        if not stat.S_ISREG(found.st_mode):
            raise self.refusal(-32602, "This is no regular file.")

    def load(self, path, sent):
        self.check(path)
        if not path.is_file():
            raise self.missing(sent)
        return path.read_bytes()

    def missing(self, sent):
        return self.refusal(-32002, "There is no such file.", uri=sent)

    def decode(self, data):
        try:
            return data.removeprefix(BOM).decode()
        except UnicodeDecodeError:
            raise self.refusal(-32603, "The file is no UTF-8.") from None

    def encode(self, old, content):
        try:
            new = content.encode()
        except UnicodeEncodeError:
            raise self.refusal(-32602, "The text has half a character.") from None
        if b"\r\n" in old and old.count(b"\n") == old.count(b"\r\n"):
            new = new.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        return (BOM if old.startswith(BOM) else b"") + new.removeprefix(BOM)

    def store(self, path, data):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError:
            raise self.refusal(-32602, "Nothing can be written there.") from None

    def window(self, text, line, limit):
        lines = self.lines(text)[max(line or 1, 1) - 1 :]
        return "".join(lines if limit is None else lines[:limit])

    def lines(self, text):
        parts = text.split("\n")
        return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
