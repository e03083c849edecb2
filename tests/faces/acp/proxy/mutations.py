"""Thousands of mutated messages through a real proxy, with right ones in between.

    python -m tests.faces.acp.proxy.mutations [--tries N] [--seed N]

What has to come out: the proxy lives and logs no fault of its own; every request that can be read
is answered or passed on, once; nothing outside the work folder is changed, and none of it is in
anything that is heard; right requests are answered right.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.faces.acp.proxy.mutated import MINE, SESSIONS, Mutator, Place, odd_reply
from tests.faces.acp.proxy.rig import BOTH, Rig

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Report", "run"]

Message = dict[str, Any]

_CANARY: Final = "CANARY-f3a9"
_HIDDEN: Final = "TOKEN-77c1"
_BATCH: Final = 100
_SECOND: Final = 1.0
_PATIENCE: Final = 20.0
_QUESTIONS: Final = "filepact-"
_FILES: Final = ("fs/read_text_file", "fs/write_text_file")


@dataclass(slots=True)
class Report:
    """What came of it.

    Attributes:
        tries: Mutated messages.
        answered: How many of them were answered with an error or a result.
        passed: How many were passed on.
        longest: Most processor seconds of the proxy for a batch of them.
        wrong: What should not be.
    """

    tries: int = 0
    answered: int = 0
    passed: int = 0
    longest: float = 0.0
    wrong: list[str] = field(default_factory=list)


def make(folder: Path) -> Place:
    """A work folder with links out of it, and what must not be touched."""
    place = Place(folder / "work", folder / "outside")
    for made in (place.work / "sub", place.work / ".git", place.outside, folder / "work-evil"):
        made.mkdir(parents=True, exist_ok=True)
    for canary in (place.outside / "canary.txt", folder / "work-evil" / "canary.txt"):
        canary.write_text(_CANARY)
    (place.work / ".env").write_text(f"KEY={_HIDDEN}\n")
    (place.work / "away").symlink_to(place.outside)
    (place.work / "link.txt").symlink_to(place.outside / "canary.txt")
    (place.work / "loop").symlink_to("loop")
    for name in ("a.txt", "b.txt", "sub/c.txt"):
        (place.work / name).write_bytes(b"one\r\ntwo\r\n")
    return place


def _state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything outside that somebody might have touched, by inode, mode and content."""
    found = {}
    for top in (folder / "outside", folder / "work-evil"):
        for one in (top, *top.rglob("*")):
            status = one.lstat()
            data = one.read_bytes() if one.is_file() else b""
            found[str(one)] = (status.st_ino, status.st_mode, data)
    return found


class _Ends:
    """Both ends of the proxy: what was sent as mutation, and what became of it."""

    def __init__(
        self, rig: Rig, place: Place, chance: random.Random, report: Report, sender: str
    ) -> None:
        self._rig = rig
        self._sender = sender
        self._place = place
        self._chance = chance
        self._report = report
        self._changed = threading.Condition()
        self._heard: Counter[str] = Counter()
        self._right: dict[str, Message] = {}
        self.sent: dict[str, bytes] = {}
        self.named: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._hear, args=(name,), daemon=True)
            for name in ("agent", "editor")
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        for thread in self._threads:
            thread.join(_PATIENCE)

    def wait(self, side: str, wanted: str) -> Message | None:
        """The message with this id that a side hears."""
        with self._changed:
            self._changed.wait_for(lambda: f"{side} {wanted}" in self._right, _PATIENCE)
            return self._right.pop(f"{side} {wanted}", None)

    def settle(self, wanted: set[str]) -> None:
        """Every request was answered or passed on, and none twice."""
        with self._changed:
            if not self._changed.wait_for(lambda: wanted <= self._heard.keys(), _PATIENCE):
                lost = sorted(wanted - self._heard.keys())[:3]
                self._report.wrong.append(f"nobody heard of {[self.sent[one] for one in lost]}")
            twice = [self.sent[one] for one in wanted if self._heard[one] > self.named[one]]
            if twice:
                self._report.wrong.append(f"heard of twice: {twice[:3]}")

    # -- what is heard --------------------------------------------------------------------

    def _hear(self, side: str) -> None:
        peer = self._rig.agent if side == "agent" else self._rig.editor
        while True:
            try:
                line = peer._heard.get()
            except Exception:  # noqa: BLE001 - the end
                return
            if line is None:
                return
            self._look(side, line)

    def _look(self, side: str, line: bytes) -> None:
        # The person is shown all of a change that needs their word, in our own question.
        ours = side == "editor" and line.startswith(b'{"jsonrpc":"2.0","id":"filepact-')
        if _CANARY.encode() in line or (_HIDDEN.encode() in line and not ours):
            self._report.wrong.append(f"{side} heard {line[:200]!r}")
        if side == "editor":
            self._no_way_around(line)
        message = read(line)[0]
        wanted = None if message is None else message.get("id")
        if message is None or not isinstance(wanted, str):
            return
        if side == "editor" and wanted.startswith(_QUESTIONS) and "method" in message:
            self._reply(wanted, message)
            return
        with self._changed:
            if not wanted.startswith(MINE):
                self._right[f"{side} {wanted}"] = message
            elif (side == self._sender) != ("method" in message):
                # What the sender itself gives as an answer to anybody is none of these.
                self._heard[wanted] += 1
                if "method" in message:
                    self._report.passed += 1
                else:
                    self._report.answered += 1
            self._changed.notify_all()

    def _no_way_around(self, line: bytes) -> None:
        """No request about files reaches an editor but from the proxy, for whoever reads it."""
        for message in read(line):
            if message is None or message.get("method") not in _FILES:
                continue
            params = message.get("params")
            path = params.get("path") if isinstance(params, dict) else None
            ours = str(message.get("id")).startswith(_QUESTIONS)
            if not ours or not isinstance(path, str) or not self._inside(path):
                self._report.wrong.append(f"the editor was asked {line[:200]!r}")

    def _inside(self, path: str) -> bool:
        real, work = os.path.realpath(path), os.path.realpath(self._place.work)
        return real.startswith(f"{work}/")

    def _reply(self, wanted: str, message: Message) -> None:
        """Answer a question of the proxy's own, as often as not with nonsense before."""
        params = message.get("params")
        path = str(params.get("path")) if isinstance(params, dict) else ""
        if "probe" not in path and self._chance.random() < 0.7:
            self._rig.editor.raw(odd_reply(self._chance, wanted))
        result: Message = {}
        if message["method"] == "fs/read_text_file":
            try:
                result = {"content": Path(path).read_text(encoding="utf-8", errors="replace")}
            except (OSError, ValueError):
                result = {"content": ""}
        self._rig.editor.send({"id": wanted, "result": result})


def read(line: bytes) -> tuple[Message | None, Message | None]:
    """A line as those read it who take the last of two members of one name, and the first."""

    def first(pairs: list[tuple[str, Any]]) -> Message:
        return dict(reversed(pairs))

    try:
        messages = (json.loads(line), json.loads(line, object_pairs_hook=first))
    except (ValueError, RecursionError):
        return None, None
    one, other = (each if isinstance(each, dict) else None for each in messages)
    return one, other


def _counts(line: bytes) -> str | None:
    """The id of a request that everybody reads alike, and that has to be heard of again."""
    one, other = read(line)
    if one is None or one != other or line.count(b"[") + line.count(b"{") > 300:
        return None
    wanted = one.get("id")
    # A damaged id is nobody's that could be told from another's.
    whole = isinstance(wanted, str) and re.fullmatch(f"{MINE}[0-9]+", wanted) is not None
    right = whole and isinstance(one.get("method"), str)
    return wanted if right else None


def _spent(process: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Run:
    """One proxy, and the messages for it."""

    def __init__(
        self, place: Place, rig: Rig, chance: random.Random, report: Report, sender: str
    ) -> None:
        self._rig = rig
        self._report = report
        self._place = place
        self._ends = _Ends(rig, self._place, chance, report, sender)
        self._sender = sender
        self._mutator = Mutator(chance, self._place)
        self._count = 0

    def close(self) -> None:
        self._ends.close()

    def batch(self, count: int) -> None:
        """Mutated messages, and then right ones."""
        self._count += 1
        self._begin()
        before = _spent(self._rig.process.pid)
        wanted = set()
        for _ in range(count):
            if self._sender == "agent":
                line = self._mutator.from_agent()
                self._rig.agent.raw(line)
            else:
                line = self._mutator.from_editor()
                self._rig.editor.raw(line)
            # A mutated answer may have become a request, with the id of another.
            text = line.replace(b"\0", b"").decode("latin-1")
            self._ends.named.update(set(re.findall(f"{MINE}[0-9]+", text)))
            counted = _counts(line)
            if counted is not None:
                wanted.add(counted)
                self._ends.sent[counted] = line[:500]
        self._ends.settle(wanted)
        self._probe()
        self._report.longest = max(self._report.longest, _spent(self._rig.process.pid) - before)
        self._report.tries += count

    def _ask(self, side: str, method: str, params: Mapping[str, Any]) -> str:
        self._count += 1
        name = f"right-{self._count}-x"
        peer = self._rig.agent if side == "agent" else self._rig.editor
        peer.send({"id": name, "method": method, "params": params})
        return name

    def _expect(self, side: str, name: str) -> Message:
        found = self._ends.wait(side, name)
        if found is None:
            raise TimeoutError(f"{side} did not hear {name}")
        return found

    def _begin(self) -> None:
        """Sessions as they should be, each in a turn."""
        able = {"protocolVersion": 1, "clientCapabilities": {"fs": self._rig._fs or {}}}
        self._answered("initialize", able, {"protocolVersion": 1, "agentInfo": {"name": "far"}})
        opened = {"cwd": str(self._place.work), "mcpServers": []}
        for session in (*SESSIONS, "probe"):
            self._answered("session/load", {**opened, "sessionId": session}, {})
            name = self._ask("editor", "session/prompt", {"sessionId": session, "prompt": []})
            self._expect("agent", name)

    def _answered(self, method: str, params: Mapping[str, Any], result: Message) -> None:
        name = self._ask("editor", method, params)
        self._expect("agent", name)
        self._rig.agent.send({"id": name, "result": result})
        self._expect("editor", name)

    def _probe(self) -> None:
        """Right requests of both sides, which have to be answered right."""
        text = f"right \u00e9 {self._count}\n"
        path = self._place.work / f"probe{self._count % 3}.txt"
        params = {"sessionId": "probe", "path": str(path)}
        name = self._ask("agent", "fs/write_text_file", {**params, "content": text})
        self._same(self._expect("agent", name).get("result"), {}, "a right write")
        self._same(path.read_text(encoding="utf-8"), text, "the file")
        name = self._ask("agent", "fs/read_text_file", params)
        self._same(self._expect("agent", name).get("result"), {"content": text}, "a right read")
        for side, other in (("agent", "editor"), ("editor", "agent")):
            name = self._ask(side, "_vendor/probe", {"x": [1]})
            self._same(self._expect(other, name).get("params"), {"x": [1]}, "what passes")

    def _same(self, found: object, wanted: object, what: str) -> None:
        if found != wanted:
            self._report.wrong.append(f"{what} came out as {found!r:.200}, not {wanted!r:.200}")


def run(folder: Path, direction: str, tries: int, *, seed: int, serves: bool) -> Report:
    """Send mutated messages from one side.

    Args:
        folder: An empty one, with a short path.
        direction: ``agent`` or ``editor``: who sends them.
        tries: How many.
        seed: Which.
        serves: Whether the editor has methods for files of its own.
    """
    chance, report = random.Random(f"{seed} {direction} {serves}"), Report()
    place = make(folder)
    before = _state(folder)
    with Rig(folder, fs=BOTH if serves else None, checked=False) as rig:
        made = _Run(place, rig, chance, report, direction)
        try:
            while report.tries < tries and not report.wrong:
                made.batch(min(_BATCH, tries - report.tries))
        except (TimeoutError, OSError) as error:
            report.wrong.append(str(error))
        if rig.process.poll() is not None:
            report.wrong.append(f"the proxy ended with {rig.process.returncode}")
    made.close()
    said = bytes(rig.said)
    if b"Traceback" in said:
        start = max(0, said.index(b"Traceback") - 100)
        report.wrong.append(said[start : start + 6_000].decode(errors="replace"))
    if _state(folder) != before:
        report.wrong.append("something outside was changed")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=10_000, help="messages in each direction")
    parser.add_argument("--seed", type=int, default=1, help="which messages")
    given = parser.parse_args()
    right = True
    for direction in ("agent", "editor"):
        whole = Report()
        for serves in (False, True):
            with tempfile.TemporaryDirectory(dir="/tmp") as name:
                one = run(
                    *(Path(name).resolve(), direction, given.tries // 2),
                    seed=given.seed,
                    serves=serves,
                )
            whole.tries += one.tries
            whole.answered += one.answered
            whole.passed += one.passed
            whole.longest = max(whole.longest, one.longest)
            whole.wrong += one.wrong
        if whole.longest > _SECOND * 2:
            whole.wrong.append(f"{_BATCH} messages took {whole.longest:.1f} s of processor time")
        print(
            f"{whole.tries:,} messages of the {direction}: {whole.passed:,} passed on, "
            f"{whole.answered:,} answered, {len(whole.wrong)} wrong; a batch of {_BATCH} took "
            f"{whole.longest:.2f} s of processor time at most"
        )
        for wrong in whole.wrong:
            print(f"  {wrong}")
        right = right and not whole.wrong
    return int(not right)


if __name__ == "__main__":
    sys.exit(main())
