"""The audit log as lines of JSON: each names the line before it by its hash, so that none can be changed alone.

A signed head is a record that says how many there are and what the last one's hash is, signed; a copy of
it that is kept elsewhere shows whether the log was cut off or written anew.  The journal is the other account of what was
done: of each operation it has the number of the record in which the log tells of it.
"""

from __future__ import annotations

import hashlib
import json
import time
from binascii import b2a_base64
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from filepact.values import dataclass, field, json_writer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = [
    "NOTHING",
    "AuditCheck",
    "AuditCheckResult",
    "AuditProblem",
    "JournalSummary",
    "digest",
    "follows",
    "head_text",
    "line_of",
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
    """The text that a signed head signs: whose log, how many records, and the hash of the last one."""
    return f"{origin}\n{seq}\n{b2a_base64(bytes.fromhex(last)).decode('ascii')}"


# -- checking --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """Something that is wrong with the log.

    Attributes:
        file: The name of its file; empty where it is about no single one.
        line: The line's number, from 1; 0 for none.
        said: What is wrong, a sentence without a full stop.
        next: What a person does then; empty where that follows from the log being wrong.
    """

    file: str
    line: int
    said: str
    next: str = ""


@dataclass(frozen=True, slots=True)
class JournalSummary:
    """A journal's account of operations, as far as the audit log has them too.

    Attributes:
        name: Which journal this is; records name it.
        operations: By its id, the place of each, when it was begun, and the number of the log's record of it: None
            for none, 0 for one in a log elsewhere.
        waiting: The ids of proposals that wait and of approvals in advance that were not revoked.
        drops: Whether its oldest operations may be dropped.
    """

    name: str
    operations: Mapping[str, tuple[int, float, int | None]]
    waiting: frozenset[str] = frozenset()
    drops: bool = False


@dataclass(frozen=True, slots=True)
class AuditCheckResult:
    """The result of a check of the audit log.

    Attributes:
        records: How many were read.
        first: The number of the first.
        last: The number of the last.
        signed: Up to which number a signed head vouches for it; 0 for none.
        kept: How many heads that are kept elsewhere are of this log.
        keys: The verifier keys by which heads were signed.
        problems: What is wrong; at most a thousand.
        notes: What is not wrong, and worth knowing.
        operations: How many operations both the log and the journal tell of.
        unlogged: How many the journal has of which it says that no log told of them.
        taken: When a head was last kept outside, as a record has it; empty for never.
        late: Whether a later head was signed, and not kept there.
        apart: Whether the log and the journal tell different things.
    """

    records: int
    first: int
    last: int
    signed: int
    kept: int
    keys: tuple[str, ...]
    problems: tuple[AuditProblem, ...]
    notes: tuple[str, ...]
    operations: int = 0
    unlogged: int = 0
    taken: str = ""
    late: bool = False
    apart: bool = False

    @property
    def compared(self) -> bool:
        """Whether there was anything that it could be compared with."""
        return bool(self.operations or self.kept)


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
        place: The place outside of which all that it has is among them, as records name it; empty for none.
    """

    trusted: Collection[str] = ()
    heads: Iterable[str] = ()
    place: str = ""
    _other: _JournalCheck | None = None
    _taken: tuple[int, str] = (0, "")
    _newest: int = 0
    _file: str = ""
    _line: int = 0
    _records: int = 0
    _first: int = 0
    _seq: int = 0
    _hash: str = NOTHING
    _start: tuple[int, str] = (0, NOTHING)
    _retired: set[tuple[int, str]] = field(default_factory=set)
    _signed: int = 0
    _unchecked: int = 0
    _keys: dict[str, None] = field(default_factory=dict)
    _hashes: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _stray: _Stray | None = None
    _problems: list[AuditProblem] = field(default_factory=list)
    _notes: list[str] = field(default_factory=list)

    def against(self, journal: JournalSummary | None) -> None:
        """Compare the lines that follow with what the journal tells; to be called before the first."""
        self._other = None if journal is None else _JournalCheck(journal, dict(journal.operations))

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
        """End the check, and return its result.

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
        other, apart = self._other, []
        if other is not None:
            apart = other.problems(self._first, self._seq)
            for said in apart:
                self._problem(said, after=_AFTER)
            self._notes += other.notes
        if self._unchecked:
            said = (
                "1 signed head was"
                if self._unchecked == 1
                else f"{self._unchecked:,} signed heads were"
            )
            self._notes.append(f"{said} not checked: that needs filepact's extra `sign`")
        return AuditCheckResult(
            self._records,
            self._first,
            self._seq,
            self._signed,
            kept,
            tuple(self._keys),
            tuple(self._problems),
            tuple(self._notes),
            *((0, 0) if other is None else (other.both, other.unlogged)),
            self._taken[1],
            self._newest > self._taken[0],
            bool(apart),
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
        """The fault in a record's place in the chain; empty for none."""
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
        if self._other is not None and event in _TOLD_TWICE:
            self._other.add(record)
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
        elif event == "kept" and record.get("place") == self.place:
            self._taken = (int(record.get("head") or 0), str(record.get("time")))

    def _check_head(self, record: Mapping[str, Any]) -> None:
        expected = (int(record["seq"]) - 1, str(record.get("before")))
        self._newest = expected[0]
        self._keys[str(record.get("key"))] = None
        from filepact.text.signed_note import can_sign  # noqa: PLC0415 - who writes the log checks none

        if not can_sign():
            self._unchecked += 1
            return
        if self._signer(str(record.get("note")), expected):
            self._signed = expected[0]
        else:
            self._problem("a signed head that no known key has signed for this place")

    def _signer(self, note: str, expected: tuple[int, str]) -> str:
        """The key that has signed that the log is so long and ends so; empty for none."""
        from filepact.text.signed_note import read_note  # noqa: PLC0415 - as above

        for key in self.trusted or self._keys:
            try:
                text = read_note(note, key)
            except ValueError:
                continue
            if text == head_text(key.partition("+")[0], *expected):
                return key
        return ""

    def _compare(self) -> int:
        """Compare heads that are kept elsewhere; how many are of this log."""
        known = dict(self._hashes)
        kept = newest = 0
        for note in self.heads:
            lines = note.splitlines()
            seq = int(lines[1]) if len(lines) > 1 and lines[1].isdecimal() else 0
            newest = max(newest, seq)
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
            else:
                kept += 1
        taken, when = self._taken
        if newest < taken:
            self._problem(
                f"the head of record {taken:,}, which was kept outside at {when}, is not there any more: what is kept"
                " there was emptied, cut off or put back",
                after="Look who can write there; `filepact audit sign` keeps a head there anew.",
            )
        return kept

    def _problem(self, said: str, at: _Stray | None = None, after: str = "") -> None:
        if len(self._problems) < _MOST_PROBLEMS:
            file, line = (self._file, self._line) if at is None else (at.file, at.line)
            self._problems.append(AuditProblem(file, line, said, after))


# -- the other account -----------------------------------------------------------------------------

_TOLD_TWICE: Final = ("intent", "external", "outcome", "decided", "start", "repaired")
_ENDS: Final = ("applied", "rolled_back", "interrupted")
_DAY: Final = 86_400.0
_AT_ONCE: Final = 60.0  # seconds in which operations of several processes may come in another order
_AFTER: Final = (
    "Keep a copy of the state folder, and compare your files with a backup or with Git. If it was you (a backup put back,"
    " a folder removed), or a power cut: `filepact doctor --repair` writes that down, and from there on both are compared anew."
)


@dataclass(slots=True)
class _JournalCheck:
    """Compares what the log tells, record by record, with what the journal does.

    A change is told of by the log first, then by the journal, and its end by the journal first: whoever is killed
    in between leaves an intention without an operation, or an operation without an end, which is nothing wrong.

    Attributes:
        journal: What the journal tells.
        left: Of that, what the log has not told yet.
        both: How many operations both tell of.
        notes: What is not wrong, and worth knowing.
    """

    journal: JournalSummary
    left: dict[str, tuple[int, float, int | None]]
    both: int = 0
    notes: list[str] = field(default_factory=list)
    _alone: dict[str, str] = field(default_factory=dict)
    _lost: dict[str, str] = field(default_factory=dict)
    _again: dict[str, str] = field(default_factory=dict)
    _moved: list[str] = field(default_factory=list)

    @property
    def unlogged(self) -> int:
        return sum(number is None for _, _, number in self.left.values())

    def add(self, record: Mapping[str, Any]) -> None:
        event, change, when = record["event"], str(record.get("change")), str(record.get("time"))
        if event in ("intent", "external"):
            self._begun(change, int(record["seq"]), when)
        elif event == "decided":
            # A decision is told of when the journal has it.
            name = change if record.get("verdict") == "rejected" else str(record.get("grant"))
            if record.get("verdict") in ("rejected", "revoked") and name in self.journal.waiting:
                self._again[name] = when
        elif record.get("journal") != self.journal.name:
            return
        elif event == "repaired":
            self._accept(int(record.get("place") or 0), when)
        else:
            held = change if event == "outcome" else str(record.get("newest") or "")
            ended = event == "start" or record.get("state") in _ENDS
            if held and ended and held not in self.journal.operations:
                self._lost.setdefault(held, self._alone.get(held, when))

    def _begun(self, change: str, seq: int, when: str) -> None:
        told = self.left.get(change)
        if change not in self.journal.operations:
            self._alone[change] = when
        if told is None or told[2] not in (None, seq):
            return
        del self.left[change]
        self.both += 1
        if abs(_seconds(when) - told[1]) > _DAY:
            self._moved.append(change)

    def _accept(self, place: int, when: str) -> None:
        """Accept the present differences: a person, or a repair of the journal, has seen and recorded them."""
        gone = [one for one, (at, _, number) in self.left.items() if at <= place and number]
        for change in gone:
            del self.left[change]
        if gone or self._lost or self._again or self._moved:
            self.notes.append(
                f"log and journal differed up to {when}, when `filepact doctor --repair` wrote that down:"
                f" {len(gone):,} operations were in the journal alone, {len(self._lost):,} in the log alone"
            )
        for found in (self._lost, self._again, self._moved):
            found.clear()

    def problems(self, first: int, last: int) -> list[str]:
        """The faults, each a sentence without a full stop.

        Args:
            first: The number of the log's first record; earlier ones were given up.
            last: That of its last.
        """
        found = []
        left = [(at, one, number) for one, (at, _, number) in self.left.items() if number]
        if left := sorted(each for each in left if each[2] >= first):
            how = "the end of the log was cut off" if left[0][2] > last > 0 else _REMOVED
            found.append(
                f"the audit log does not tell of {_so_many(left)} of the journal, the newest {left[-1][1]}: {how}"
            )
        lost = self._lost
        if self.journal.drops:
            oldest = min((begun for _, begun, _ in self.journal.operations.values()), default=0.0)
            lost = {
                one: when
                for one, when in lost.items()
                if oldest and _seconds(when) > oldest + _AT_ONCE
            }
        if lost:
            found.append(
                f"the journal does not tell of {_so_many(lost)} of the audit log, the newest {[*lost][-1]} of"
                f" {[*lost.values()][-1]}: it was put back to an older copy, or removed"
            )
        if self._again:
            found.append(
                f"what the audit log says was rejected or revoked is open again in the journal ({', '.join(self._again)}):"
                " it was put back to an older copy"
            )
        if self._moved:
            found.append(
                f"the journal has another day than the audit log for {_so_many(self._moved)}, such as {self._moved[0]}"
            )
        return found


_REMOVED: Final = "the log, or a part of it, was removed or put back to an older copy"


def _so_many(operations: Collection[object]) -> str:
    return f"{len(operations):,} operation{'s' * (len(operations) != 1)}"


def _seconds(stamp: str) -> float:
    """A time as records have it, in seconds since the epoch; 0 for anything else."""
    from datetime import datetime  # noqa: PLC0415 - what records needs none

    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0
