"""A chat that shows MCP Apps: the protocol's own package for hosts, in a page of a real browser.

The page has the frame as the extension wants it: sandboxed, of no origin, with the policy that hosts have to give
what asks for nothing.  What the frame calls is handed to the test, which carries it to a server.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.browser import Browser

__all__ = ["ChatHost", "chat_host"]

_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'; frame-src 'none'"
)
_MAP: Final = {
    "@modelcontextprotocol/client": "@modelcontextprotocol/client/dist/index.mjs",
    "@modelcontextprotocol/client/_shims": "@modelcontextprotocol/client/dist/shimsBrowser.mjs",
    "@modelcontextprotocol/core": "@modelcontextprotocol/core/dist/index.mjs",
    "@modelcontextprotocol/core/internal": "@modelcontextprotocol/core/dist/internal.mjs",
    "zod/v4": "zod/v4/index.js",
    "eventsource-parser/stream": "eventsource-parser/dist/stream.js",
    "pkce-challenge": "pkce-challenge/dist/index.browser.js",
    "eventsource": "eventsource/dist/index.js",
    "eventsource-parser": "eventsource-parser/dist/index.js",
}
_PAGE: Final = """<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="importmap">%s</script>
<iframe id="frame" sandbox="allow-scripts" width="900" height="600"></iframe>
<script type="module">
import { AppBridge, PostMessageTransport } from "/m/@modelcontextprotocol/ext-apps/dist/src/app-bridge.js";
const frame = document.querySelector("#frame");
window.calls = [];
window.answers = {};
window.sizes = [];
window.problems = [];
const bridge = new AppBridge(
  null,
  { name: "test", version: "1" },
  { serverTools: {} },
  { hostContext: { theme: "dark" } },
);
bridge.oncalltool = async (params) => {
  const number = window.calls.push(params) - 1;
  return await new Promise((done) => { window.answers[number] = done; });
};
bridge.onsizechange = (size) => window.sizes.push(size);
bridge.onerror = (problem) => window.problems.push(String(problem));
window.result = (given, result) => bridge.sendToolInput({ arguments: given }).then(() => bridge.sendToolResult(result));
bridge.oninitialized = () => { document.body.dataset.ready = "yes"; };
await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
frame.src = "/frame";
</script>"""


class ChatHost:
    """The chat in one tab of a browser."""

    def __init__(
        self, browser: Browser, call: Callable[[str, dict[str, Any]], dict[str, Any]]
    ) -> None:
        self._browser = browser
        self._call = call
        self._done = 0
        self._frame = ""

    def attach(self) -> None:
        """Find the frame, once the protocol's handshake with it is over."""
        self._browser.until("document.body.dataset.ready === 'yes'")
        targets = self._browser.send("Target.getTargets")["targetInfos"]
        (frame,) = [one for one in targets if one["type"] == "iframe"]
        joined = self._browser.send(
            "Target.attachToTarget", targetId=frame["targetId"], flatten=True
        )
        self._frame = joined["sessionId"]

    @contextmanager
    def inside(self) -> Iterator[Browser]:
        """The browser, as it sees the frame's document."""
        top, self._browser._session = self._browser._session, self._frame
        try:
            yield self._browser
        finally:
            self._browser._session = top

    def result(self, given: dict[str, Any], result: dict[str, Any]) -> None:
        """Hand the frame what a call of the model's came to."""
        self._browser.says(f"void window.result({json.dumps(given)}, {json.dumps(result)})")

    def carry(self) -> tuple[str, dict[str, Any]]:
        """Carry the frame's next call to the server and back: its name and its arguments."""
        self._browser.until(f"window.calls.length > {self._done}")
        asked = self._browser.says(f"window.calls[{self._done}]")
        answer = self._call(asked["name"], asked.get("arguments", {}))
        self._browser.says(f"void window.answers[{self._done}]({json.dumps(answer)})")
        self._done += 1
        return asked["name"], asked.get("arguments", {})

    def says(self, script: str) -> Any:
        """What a script of the test's own finds in the host's page."""
        return self._browser.says(script)

    def click(self, selector: str) -> None:
        """Press the mouse's button over an element of the frame."""
        with self.inside() as browser:
            found = f"document.querySelector({json.dumps(selector)})"
            browser.says(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
            browser.settle()  # the mouse meets what is on the screen
            place = browser.says(
                f"(() => {{ const e = {found}; "
                "const r = e.getClientRects()[0]; return [r.x + r.width / 2, r.y + r.height / 2]; })()"
            )
        left, top = self._browser.says(
            "(() => { const r = document.querySelector('#frame').getBoundingClientRect(); "
            "return [r.x + 2, r.y + 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._browser.send(
                "Input.dispatchMouseEvent",
                {
                    "type": kind,
                    "x": place[0] + left,
                    "y": place[1] + top,
                    "button": "left",
                    "clickCount": 1,
                },
            )

    def until(self, condition: str) -> None:
        """Wait until something is so in the frame."""
        with self.inside() as browser:
            browser.until(condition)

    def text(self) -> str:
        """All that a person reads in the frame."""
        with self.inside() as browser:
            return browser.text()


@contextmanager
def chat_host(
    browser: Browser,
    modules: Path,
    html: str,
    call: Callable[[str, dict[str, Any]], dict[str, Any]],
) -> Iterator[ChatHost]:
    """A chat with the frame in it, which is served to the browser on this machine alone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, headers = self.path.partition("?")[0], {}
            if path == "/":
                places = {name: f"/m/{place}" for name, place in _MAP.items()}
                content, media = _PAGE % json.dumps({"imports": places}), "text/html"
            elif path == "/frame":
                content, media, headers = html, "text/html", {"Content-Security-Policy": _POLICY}
            elif (file := modules / path.removeprefix("/m/")).is_file():
                content, media = file.read_text("utf-8"), "text/javascript"
            else:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", f"{media}; charset=utf-8")
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content.encode())

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        browser.go(f"http://127.0.0.1:{server.server_address[1]}/")
        host = ChatHost(browser, call)
        host.attach()
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
