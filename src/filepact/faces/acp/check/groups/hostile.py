"""What could stop a client or end the connection; it stands at the end for that reason."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from filepact.faces.acp.check.group import ADVICE, JSON_RPC, PRACTICE, TRANSPORT, Group
from filepact.faces.acp.check.outcome import Skipped
from filepact.faces.acp.check.peer import NoAnswer
from filepact.faces.acp.check.scene import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filepact.faces.acp.check.scene import Scene

__all__ = ["GROUP"]

GROUP = Group("hostile", "What could stop a client")


@GROUP.should(PRACTICE, "A named pipe is refused, and holds nothing up.")
def pipe(scene: Scene) -> None:
    if not scene.announced(READ):
        raise Skipped("the client does not announce readTextFile")
    with _released(scene):
        scene.read(scene.folder.pipe("pipe")).refused()
        scene.alive()


@GROUP.should(PRACTICE, "Writing to a named pipe holds nothing up either.")
def write_to_pipe(scene: Scene) -> None:
    if not scene.announced(WRITE):
        raise Skipped("the client does not announce writeTextFile")
    with _released(scene):
        scene.write(scene.folder.pipe("pipe"), "text\n").refused()
        scene.alive()


@GROUP.should(ADVICE, "A device is not read.")
def device(scene: Scene) -> None:
    # One that harms nobody who reads it all the same.
    scene.read("/dev/null").refused()
    scene.read(scene.folder.link("null", "/dev/null")).refused()
    scene.alive()


@GROUP.should(TRANSPORT, "A line that is no JSON is skipped, or answered with -32700.")
def no_json(scene: Scene) -> None:
    scene.peer.send_bytes(b'Loading model...\n{"jsonrpc": "2.0", "id":\n\n   \n{]\n')
    scene.alive()


@GROUP.should(TRANSPORT, "Bytes that are no UTF-8 end nothing.")
def no_utf_8(scene: Scene) -> None:
    scene.peer.send_bytes(b'\xff\xfe\x00caf\xe9\n{"jsonrpc": "2.0", "method": "\xff"}\n')
    scene.alive()


@GROUP.should(PRACTICE, "A message that is nested very deeply ends nothing.")
def deep(scene: Scene) -> None:
    nested = b"[" * 50_000 + b"]" * 50_000
    scene.peer.send_bytes(
        b'{"jsonrpc": "2.0", "method": "x/y", "params": {"a": ' + nested + b"}}\n"
    )
    scene.alive()


@GROUP.should(PRACTICE, "A long line of 8 MB that means nothing ends nothing.")
def long_line(scene: Scene) -> None:
    filler = b"x" * 8_000_000
    scene.peer.send_bytes(
        b'{"jsonrpc": "2.0", "method": "x/y", "params": {"a": "' + filler + b'"}}\n'
    )
    scene.alive()


@GROUP.should(JSON_RPC, "A message without a method, an id or a result ends nothing.")
def hollow(scene: Scene) -> None:
    scene.peer.send_bytes(
        b'{}\n{"jsonrpc": "2.0"}\n{"jsonrpc": "2.0", "id": null}\n'
        b'{"jsonrpc": "2.0", "method": 7}\n{"jsonrpc": "2.0", "method": "x/y", "params": 7}\n'
    )
    scene.alive()


@GROUP.should(JSON_RPC, "A batch, which the protocol does not use, is refused or ignored.")
def batch(scene: Scene) -> None:
    scene.peer.send_bytes(b"[]\n[{}]\n")
    scene.alive()


@GROUP.should(JSON_RPC, "A line that is JSON but no object is refused or ignored.")
def scalar(scene: Scene) -> None:
    scene.peer.send_bytes(b'7\n"text"\ntrue\n')
    scene.alive()


@GROUP.should(JSON_RPC, "A line that is only `null` is refused or ignored, and is no end.")
def null(scene: Scene) -> None:
    scene.peer.send_bytes(b"null\n")
    scene.alive()


@contextmanager
def _released(scene: Scene) -> Iterator[None]:
    """Let go a client that waits at the pipe, so that it can be asked other things."""
    try:
        yield
    except NoAnswer:
        scene.folder.release("pipe")
        raise
