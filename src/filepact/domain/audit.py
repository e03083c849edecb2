"""The audit log as lines of JSON: each names the line before it by its hash, so that none can be changed alone.

A signed head is a record that says how many there are and what the last one's hash is, signed; a copy of
it that is kept elsewhere shows whether the log was cut off or written anew.
"""

from __future__ import annotations

import hashlib
import json
import time
from binascii import b2a_base64
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from filepact.text.signed_note import can_sign, read_note
from filepact.values import dataclass, field, json_writer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = [
    "NOTHING",
    "AuditCheck",
    "AuditCheckResult",
    "AuditProblem",
    "digest",
    "follows",
    "head_text",
    "line_of",
    "ocsf_event",
    "parse",
]

NOTHING: Final = "0" * 64
"""Stands for the hash of the line before the first."""

_as_json: Final = json_writer(ascii_only=True)
_MOST_PROBLEMS: Final = 1_000
_NO_RECORD: Final = "is no record"
_REMEMBERED: Final = 1 << 20  # hashes of lines, for heads that are kept elsewhere


def line_of(seq: int, before: str, event: str, facts: Mapping[str, Any], when: float) -> bytes:
    """One line of the log, with its newline.

    Args:
        seq: The record's number, from 1.
        before: The hash of the line before it.
        event: What happened, in one word.
        facts: What is told of it: names, sizes and hashes, and never what files hold.
        when: Seconds since the epoch.
    """
    stamp = f"{_second(int(when))}.{int(when * 1000) % 1000:03}Z"
    record = {"seq": seq, "time": stamp, "before": before, "event": event, **facts}
    return _as_json(record).encode("ascii") + b"\n"


@lru_cache(maxsize=4)
def _second(when: int) -> str:
    """The date and time of a second; many records have the same."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(when))


def digest(line: bytes) -> str:
    """The hash by which the next line names this one; its newline does not count."""
    return hashlib.sha256(line.removesuffix(b"\n")).hexdigest()


def parse(line: bytes) -> dict[str, Any] | None:
    """A line as an object; None for anything else."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or type(found.get("seq")) is not int:
        return None
    return found


def follows(line: bytes, seq: int, before: str) -> bool:
    """Whether a line is the next one after the record with this number and hash."""
    record = parse(line)
    return record is not None and (record["seq"], record.get("before")) == (seq + 1, before)


def head_text(origin: str, seq: int, last: str) -> str:
    """What a signed head signs: whose log it is, how many records it has, and the hash of the last one."""
    return f"{origin}\n{seq}\n{b2a_base64(bytes.fromhex(last)).decode('ascii')}"


# -- checking --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """Something that is wrong with the log.

    Attributes:
        file: The name of its file; empty where it is about no single one.
        line: The line's number, from 1; 0 for none.
        said: What is wrong, a sentence without a full stop.
    """

    file: str
    line: int
    said: str


@dataclass(frozen=True, slots=True)
class AuditCheckResult:
    """The result of a check of the audit log.

    Attributes:
        records: How many were read.
        first: The number of the first.
        last: The number of the last.
        signed: Up to which number a signed head vouches for it; 0 for none.
        kept: How many heads that are kept elsewhere were compared.
        keys: The verifier keys by which heads were signed.
        problems: What is wrong; at most a thousand.
        notes: What is not wrong, and worth knowing.
    """

    records: int
    first: int
    last: int
    signed: int
    kept: int
    keys: tuple[str, ...]
    problems: tuple[AuditProblem, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Stray:
    """Bytes that are no record of the chain, until a later record owns up to them."""

    file: str
    line: int
    data: bytes


@dataclass(slots=True)
class AuditCheck:
    """Checks a log, line by line; what was wrong is told at the end.

    Attributes:
        trusted: Verifier keys that may have signed heads; empty for those that the log itself names.
        heads: Signed heads that were kept elsewhere.
    """

    trusted: Collection[str] = ()
    heads: Iterable[str] = ()
    _file: str = ""
    _line: int = 0
    _records: int = 0
    _first: int = 0
    _seq: int = 0
    _hash: str = NOTHING
    _start: tuple[int, str] = (0, NOTHING)
    _retired: set[tuple[int, str]] = field(default_factory=set)
    _signed: int = 0
    _able: bool = field(default_factory=can_sign)
    _unchecked: int = 0
    _keys: dict[str, None] = field(default_factory=dict)
    _hashes: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _stray: _Stray | None = None
    _problems: list[AuditProblem] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)

    def begin(self, file: str) -> None:
        """The lines that follow are those of a file."""
        self._file, self._line = file, 0

    def add(self, line: bytes) -> None:
        """Check the next line, with its newline if it has one."""
        self._line += 1
        record = parse(line) if line.endswith(b"\n") else None
        if record is None:
            self._strays(line)
            return
        if not self._records:
            self._first, self._start = record["seq"], (record["seq"] - 1, str(record.get("before")))
            self._seq, self._hash = self._start
        if self._stray is not None:
            self._settle(record)
        said = self._misplaced(record)
        if said:
            self._problem(said)
        self._seq, self._hash = record["seq"], digest(line)
        self._records += 1
        self._hashes.append((self._seq, self._hash))
        self._look_into(record)

    def end(self, head: tuple[int, str] | None) -> AuditCheckResult:
        """What came of it.

        Args:
            head: The number and hash of the last record, as the log's own note has them; None for none.
        """
        if self._stray is not None:
            self._problem(_NO_RECORD, self._stray)
        self._file, self._line = "", 0
        if self._start[0] and self._start not in self._retired:
            self._problem(
                f"the records before {self._first} are gone, and none says that they were given up"
            )
        if not self._start[0] and self._start[1] != NOTHING and self._records:
            self._problem("the first record names one before it")
        self._compare_end(head)
        kept = self._compare()
        if self._unchecked:
            said = (
                "1 signed head was"
                if self._unchecked == 1
                else f"{self._unchecked:,} signed heads were"
            )
            self._notes.append(
                f"{said} not checked: that needs the extra, pip install 'filepact[sign]'"
            )
        return AuditCheckResult(
            *(self._records, self._first, self._seq, self._signed, kept, tuple(self._keys)),
            tuple(self._problems),
            tuple(self._notes),
        )

    def _compare_end(self, head: tuple[int, str] | None) -> None:
        if head is None:
            if self._records:
                said = "the note of the last record is gone, so the end may have been cut off"
                self._problem(said)
            return
        written, last = head
        if written > self._seq:
            self._problem(
                f"the end is cut off: {written:,} records were written, the last one is {self._seq:,}"
            )
        elif dict(self._hashes).get(written, NOTHING) != last:
            self._problem("the record that was written last is not there")
        elif written < self._seq:
            more = self._seq - written
            self._notes.append(
                f"{more:,} at the end that the note of the last record does not tell of yet"
            )

    def _misplaced(self, record: Mapping[str, Any]) -> str:
        """What is wrong with a record's place in the chain; empty for nothing."""
        if record.get("before") != self._hash:
            return "does not follow the line before it"
        if record["seq"] != self._seq + 1:
            return f"the records {self._seq + 1:,} to {record['seq'] - 1:,} are missing"
        return ""

    def _strays(self, line: bytes) -> None:
        if self._stray is None:
            self._stray = _Stray(self._file, self._line, line)
        elif len(self._stray.data) < 1 << 20:
            self._stray.data += line

    def _settle(self, record: Mapping[str, Any]) -> None:
        """Bytes that are no record: of a line that was cut off, which the next record says, or a problem."""
        stray, self._stray = self._stray, None
        assert stray is not None  # noqa: S101 - for the type checker; callers have looked
        owned = (
            record.get("event") == "torn"
            and record.get("sha256") == hashlib.sha256(stray.data).hexdigest()
        )
        if not owned:
            self._problem(_NO_RECORD, stray)
            return
        self._notes.append(
            f"{stray.file}, line {stray.line}: a line was cut off there, as by a power cut"
        )

    def _look_into(self, record: Mapping[str, Any]) -> None:
        event = record.get("event")
        if event == "retired":
            last = int(record.get("last") or 0)
            self._retired.add((last, str(record.get("hash"))))
            self._notes.append(f"the records up to {last:,} were given up, at {record.get('time')}")
        elif event == "lost head":
            self._problem(
                "the note of the last record was gone when this was written, so records before it may be missing"
            )
        elif event == "head":
            self._check_head(record)

    def _check_head(self, record: Mapping[str, Any]) -> None:
        expected = (int(record["seq"]) - 1, str(record.get("before")))
        self._keys[str(record.get("key"))] = None
        if not self._able:
            self._unchecked += 1
            return
        if self._signer(str(record.get("note")), expected):
            self._signed = expected[0]
        else:
            self._problem("a signed head that no known key has signed for this place")

    def _signer(self, note: str, expected: tuple[int, str]) -> str:
        """The key that has signed that the log is so long and ends so; empty for none."""
        for key in self.trusted or self._keys:
            try:
                text = read_note(note, key)
            except ValueError:
                continue
            if text == head_text(key.partition("+")[0], *expected):
                return key
        return ""

    def _compare(self) -> int:
        """Compare heads that are kept elsewhere; how many there were."""
        known = dict(self._hashes)
        heads = tuple(self.heads)
        for note in heads:
            lines = note.splitlines()
            seq = int(lines[1]) if len(lines) > 1 and lines[1].isdecimal() else 0
            if 0 < seq < self._first:
                continue  # what it is about was given up
            if seq > self._seq:
                self._problem(
                    f"a head that is kept elsewhere has {seq:,} records, and the log only {self._seq:,}: its end is cut off"
                )
            elif not self._signer(note, (seq, known.get(seq, NOTHING))):
                self._problem(
                    f"a head that is kept elsewhere, of record {seq:,}, is not of this log: it was written anew"
                )
        return len(heads)

    def _problem(self, said: str, at: _Stray | None = None) -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            file, line = (self._file, self._line) if at is None else (at.file, at.line)
            self._problems.append(AuditProblem(file, line, said))


# -- for other programs ----------------------------------------------------------------------------

_ACTIVITIES: Final[Mapping[str, int]] = {"create": 1, "read": 2, "change": 3, "delete": 4}
_CLASS: Final = 1001  # File System Activity
_SEVERITIES: Final = {True: 1, False: 3}  # informational, medium


def ocsf_event(record: Mapping[str, Any], version: str) -> list[dict[str, Any]]:
    """A record as events of the class File System Activity of OCSF 1.6, one for each file; often none.

    Args:
        record: As it was read from the log.
        version: Of filepact.
    """
    event = record.get("event")
    if event == "read":
        return [_ocsf(record, version, {"path": record.get("path"), **_held(record)}, "read")]
    if event == "refused":
        return [_ocsf(record, version, {"path": record.get("asked")}, "")]
    if event in ("intent", "external", "proposed"):
        files = record.get("files")
        some = [one for one in files if isinstance(one, dict)] if isinstance(files, list) else []
        return [_ocsf(record, version, _file(one), _activity(one)) for one in some]
    return []


def _activity(change: Mapping[str, Any]) -> str:
    if not change.get("before"):
        return "create"
    return "change" if change.get("after") else "delete"


def _file(change: Mapping[str, Any]) -> dict[str, Any]:
    held = change.get("after") or change.get("before") or {}
    path = f"{change.get('root')}/{change.get('path')}"
    return {"path": path, **_held(held if isinstance(held, dict) else {})}


def _held(side: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if side.get("sha256"):
        facts["hashes"] = [{"algorithm_id": 3, "algorithm": "SHA-256", "value": side["sha256"]}]
    if "size" in side:
        facts["size"] = side["size"]
    return facts


def _ocsf(
    record: Mapping[str, Any], version: str, file: Mapping[str, Any], activity: str
) -> dict[str, Any]:
    number = _ACTIVITIES.get(activity, 0)
    path = str(file.get("path") or "")
    allowed = record.get("event") not in ("refused", "proposed")
    session = record.get("session")
    session = session if isinstance(session, dict) else {}
    return {
        "category_uid": 1,
        "class_uid": _CLASS,
        "activity_id": number,
        "type_uid": _CLASS * 100 + number,
        "severity_id": _SEVERITIES[allowed],
        "time": _milliseconds(str(record.get("time"))),
        "action_id": 1 if allowed else 2,
        "disposition_id": 1 if allowed else 2,
        "status_id": 1 if allowed else 2,
        "metadata": {
            "version": "1.6.0",
            "uid": str(record.get("seq")),
            "product": {"name": "filepact", "vendor_name": "filepact", "version": version},
            "original_event_uid": record.get("change"),
        },
        "actor": {
            "app_name": session.get("name"),
            "session": {"uid": session.get("id")},
        },
        "device": {"type_id": 0},
        "file": {**file, "name": path.rpartition("/")[2], "type_id": 1},
        **({"firewall_rule": {"name": record["rule"]}} if record.get("rule") else {}),
    }


def _milliseconds(stamp: str) -> int:
    """A time as records have it, in milliseconds since the epoch; 0 for anything else."""
    from datetime import datetime  # noqa: PLC0415 - what records needs none

    try:
        return int(datetime.fromisoformat(stamp).timestamp() * 1_000)
    except ValueError:
        return 0
