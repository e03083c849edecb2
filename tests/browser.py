"""A headless Chromium, driven by real clicks and keys over the pipe of its own protocol."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CHROMIUM", "Browser"]

CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
"""Where it is; None where there is none."""

_FLAGS: Final = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # for root, as which CI runs
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
    "--metrics-recording-only",
    "--password-store=basic",
    "--window-size=1360,900",
)
_HIGH: Final = 50
_SECONDS: Final = 60_000
_KEYS: Final = {"Enter": 13, "Escape": 27, "Tab": 9}


class Browser:
    """One tab of a browser with a profile of its own."""

    def __init__(self) -> None:
        assert CHROMIUM is not None
        self._profile = tempfile.mkdtemp(prefix="chromium")
        there, to_it = os.pipe()
        from_it, here = os.pipe()
        its = [fcntl.fcntl(one, fcntl.F_DUPFD, _HIGH) for one in (there, here)]
        os.close(there)
        os.close(here)

        def at_three_and_four() -> None:
            os.dup2(its[0], 3)
            os.dup2(its[1], 4)

        self.process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=at_three_and_four,  # noqa: PLW1509 - it only names descriptors
            env={**os.environ, "HOME": self._profile},
        )
        for one in its:
            os.close(one)
        self._to, self._from = to_it, from_it
        self._heard = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.getTargets")["targetInfos"][0]["targetId"]
        joined = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = joined["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        with suppress(OSError, EOFError):
            self.send("Browser.close")
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    # -- the protocol ---------------------------------------------------------------------

    def send(
        self, method: str, params: dict[str, object] | None = None, /, **more: object
    ) -> dict[str, Any]:
        """Do one thing, and wait for what it says of it."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {
            "id": number,
            "method": method,
            "params": {**(params or {}), **more},
        }
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            heard = self._hear()
            if heard.get("id") == number:
                if "error" in heard:
                    raise LookupError(heard["error"]["message"])
                found: dict[str, Any] = heard["result"]
                return found
            if "method" in heard:
                self.events.append(heard)

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._heard:
            part = os.read(self._from, 1 << 16)
            if not part:
                raise EOFError
            self._heard += part
        message, _, self._heard = self._heard.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    # -- what a person does ---------------------------------------------------------------

    def go(self, address: str) -> None:
        """Open a page, as by its address, and wait until it is whole."""
        self.send("Page.navigate", url=address)
        self.until("location.href !== 'about:blank' && document.readyState === 'complete'")

    def leave(self) -> None:
        """Leave the page, and forget what it said."""
        self.send("Page.navigate", url="about:blank")
        self.events.clear()

    def settle(self) -> None:
        """Wait until what the page looks like by now is on the screen."""
        drawn = "requestAnimationFrame(() => requestAnimationFrame(() => is(true)))"
        script = f"new Promise((is) => {{ {drawn}; setTimeout(() => is(false), 1_000); }})"
        self.send("Runtime.evaluate", expression=script, awaitPromise=True)

    def says(self, script: str) -> Any:
        """What a script of the test's own finds in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in found:
            raise LookupError(found["exceptionDetails"]["exception"].get("description", script))
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until something is so in the page, whichever is there by then."""
        script = (
            "new Promise((is) => { const look = () => { let so = false; try { so = "
            f"({condition}); }} catch {{}} so ? is(true) : setTimeout(look, 20); }}; look(); "
            f"setTimeout(() => is(false), {_SECONDS}); }})"
        )
        for _ in range(50):
            with suppress(LookupError):  # The page was left meanwhile: the next one is asked.
                found = self.send(
                    "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
                )
                assert found["result"].get("value") is True, f"{condition}: {self.text()}"
                return
        raise AssertionError(condition)

    def click(self, selector: str) -> None:
        """Press the mouse's button over the middle of an element that can be seen."""
        place = self.says(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); "
            "e.scrollIntoView({block: 'center', behavior: 'instant'}); "
            "const r = e.getClientRects()[0]; "
            "return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent",
                {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1},
            )

    def key(self, key: str) -> None:
        """Press one key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = _KEYS.get(key) or ord(key.upper())
        for kind in ("keyDown", "keyUp"):
            typed = text if kind == "keyDown" else {}
            self.send(
                "Input.dispatchKeyEvent",
                {"type": kind, "key": key, "windowsVirtualKeyCode": code, **typed},
            )

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.send("Input.insertText", text=text)

    def text(self) -> str:
        """All that a person reads in the page."""
        return str(self.says("document.body.innerText"))

    # -- pictures -------------------------------------------------------------------------

    def look(self, *, dark: bool, width: int = 1360, height: int = 900) -> None:
        """What the person prefers, and how large the window is."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def picture(self, file: Path) -> None:
        """What the window shows."""
        found = self.send("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(found["data"]))
