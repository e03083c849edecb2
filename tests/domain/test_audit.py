"""The chain of an audit log: whatever is done to it is found, but for what only heads elsewhere show."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from filepact.domain.audit import (
    NOTHING,
    AuditCheck,
    AuditCheckResult,
    digest,
    head_text,
    line_of,
    parse,
)
from filepact.text.signed_note import new_key, read_note, sign, split_notes, verifier
from filepact_cli.audit import ocsf_event

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "filepact-audit"
KEY = new_key()
FILES, EACH = 4, 25
SIGNED = 20


@dataclass
class Log:
    """A log in memory: its files, and the note of its last record."""

    files: list[list[bytes]] = field(default_factory=list)
    head: tuple[int, str] | None = (0, NOTHING)
    heads: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[tuple[int, int]]:
        return [(one, at) for one, file in enumerate(self.files) for at in range(len(file))]

    def append(self, event: str, **facts: object) -> None:
        seq, last = self.head or (0, NOTHING)
        line = line_of(seq + 1, last, event, facts, 1_800_000_000.0 + seq)
        self.files[-1].append(line)
        self.head = (seq + 1, digest(line))

    def sign(self, key: bytes = KEY) -> None:
        note = sign(NAME, key, head_text(NAME, *(self.head or (0, NOTHING))))
        self.heads.append(note)
        self.append("head", key=verifier(NAME, key), note=note)

    def check(self, heads: list[str] | None = None, *keys: str) -> AuditCheckResult:
        check = AuditCheck(keys, heads or [])
        for number, file in enumerate(self.files):
            check.begin(f"{number}.jsonl")
            for line in file:
                check.add(line)
        return check.end(self.head)


def whole() -> Log:
    """A sound log of a hundred records in four files, with a signed head every twenty."""
    log = Log()
    for file in range(FILES):
        log.files.append([])
        for at in range(EACH):
            number = file * EACH + at
            if number % SIGNED == SIGNED - 1:
                log.sign()
            else:
                log.append("read", path=f"/project/{number}.py", size=number)
    return log


def anew(log: Log, start: int, key: bytes | None = None) -> None:
    """Give every record from one on the hashes that it needs, as somebody does who knows how it is made."""
    seq, last = 0, NOTHING
    for one, at in log.lines:
        record = parse(log.files[one][at])
        assert record is not None
        seq += 1
        if seq >= start:
            record["before"] = last
            if key is not None and record["event"] == "head":
                record["note"] = sign(NAME, key, head_text(NAME, seq - 1, last))
                record["key"] = verifier(NAME, key)
            log.files[one][at] = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        last = digest(log.files[one][at])
    log.head = (seq, last)


def somewhere(log: Log, dice: random.Random) -> tuple[int, int]:
    return dice.choice(log.lines)


def flip(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    line = bytearray(log.files[one][at])
    line[dice.randrange(len(line))] ^= 1 << dice.randrange(8)
    log.files[one][at] = bytes(line)


def drop(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    del log.files[one][at]


def swap(log: Log, dice: random.Random) -> None:
    (one, at), (two, there) = dice.sample(log.lines, 2)
    files = log.files
    files[one][at], files[two][there] = files[two][there], files[one][at]


def neighbours(log: Log, dice: random.Random) -> None:
    one, at = dice.randrange(FILES), dice.randrange(EACH - 1)
    file = log.files[one]
    file[at], file[at + 1] = file[at + 1], file[at]


def repeat(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    log.files[one].insert(at, log.files[one][at])


def insert(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    record = parse(log.files[one][at]) or {}
    line = line_of(record["seq"], record["before"], "read", {"path": "/forged"}, 0.0)
    log.files[one].insert(at, line)


def garbage(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    log.files[one].insert(at, dice.randbytes(20).replace(b"\n", b"") + b"\n")


def empty_line(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    log.files[one].insert(at, b"\n")


def cut_tail(log: Log, dice: random.Random) -> None:
    del log.files[-1][-dice.randrange(1, EACH) :]


def cut_line(log: Log, dice: random.Random) -> None:
    line = log.files[-1][-1]
    log.files[-1][-1] = line[: dice.randrange(1, len(line))]


def replace_fact(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    record = parse(log.files[one][at]) or {}
    record[dice.choice(["path", "event", "time", "size"])] = "other"
    log.files[one][at] = json.dumps(record, separators=(",", ":")).encode() + b"\n"


def renumber(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    record = parse(log.files[one][at]) or {}
    record["seq"] += dice.choice([-1, 1, 100])
    log.files[one][at] = json.dumps(record, separators=(",", ":")).encode() + b"\n"


def unchain(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    record = parse(log.files[one][at]) or {}
    record["before"] = dice.randbytes(32).hex()
    log.files[one][at] = json.dumps(record, separators=(",", ":")).encode() + b"\n"


def spaces(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    log.files[one][at] = json.dumps(parse(log.files[one][at])).encode() + b"\n"


def drop_file(log: Log, dice: random.Random) -> None:
    del log.files[dice.randrange(FILES)]


def swap_files(log: Log, dice: random.Random) -> None:
    one, two = dice.sample(range(FILES), 2)
    log.files[one], log.files[two] = log.files[two], log.files[one]


def empty_file(log: Log, dice: random.Random) -> None:
    log.files[dice.randrange(FILES)] = []


def move_line(log: Log, dice: random.Random) -> None:
    one, at = somewhere(log, dice)
    log.files[(one + 1 + dice.randrange(FILES - 1)) % FILES].append(log.files[one].pop(at))


def lose_note(log: Log, _dice: random.Random) -> None:
    log.head = None


def change_note(log: Log, dice: random.Random) -> None:
    seq, last = log.head or (0, "")
    log.head = dice.choice([(seq + 1, last), (seq, dice.randbytes(32).hex()), (seq - 1, last)])


def change_signature(log: Log, dice: random.Random) -> None:
    at = dice.randrange(100 // SIGNED)
    one, line = divmod((at + 1) * SIGNED - 1, EACH)
    record = parse(log.files[one][line]) or {}
    note = record["note"]
    record["note"] = (
        note.replace("\u2014 ", "\u2014 x") if dice.random() < 0.5 else note[:-9] + "AAAAAAA=\n"
    )
    log.files[one][line] = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    anew(log, (at + 1) * SIGNED)


def write_anew(log: Log, dice: random.Random) -> None:
    """Change a record and every hash after it, and the note; only signatures stay what they were."""
    start = dice.randrange(2, 100 - SIGNED)
    one, at = divmod(start - 1, EACH)
    record = parse(log.files[one][at]) or {}
    if record["event"] == "head":
        at += 1
        record = parse(log.files[one][at]) or {}
    record["path"] = "/forged"
    log.files[one][at] = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    anew(log, start)


KINDS: tuple[Callable[[Log, random.Random], None], ...] = (
    *(flip, drop, swap, neighbours, repeat, insert, garbage, empty_line, cut_tail, cut_line),
    *(replace_fact, renumber, unchain, spaces, drop_file, swap_files, empty_file, move_line),
    *(lose_note, change_note, change_signature, write_anew),
)


def test_a_log_that_nobody_touched_is_whole() -> None:
    found = whole().check()
    assert not found.problems
    assert (found.records, found.first, found.last, found.signed) == (100, 1, 100, 99)
    assert found.keys == (verifier(NAME, KEY),)


@pytest.mark.parametrize("tamper", KINDS, ids=lambda one: one.__name__)
def test_whatever_is_done_to_a_log_is_found(tamper: Callable[[Log, random.Random], None]) -> None:
    for seed in range(50):
        log = whole()
        before = [list(file) for file in log.files], log.head
        tamper(log, random.Random(seed))
        assert ([list(file) for file in log.files], log.head) != before, seed
        assert log.check().problems, seed


def test_a_log_that_is_written_anew_with_another_key_is_found_by_a_head_that_was_kept_elsewhere() -> (
    None
):
    log = whole()
    kept = log.heads[1:3]
    mine = verifier(NAME, KEY)
    anew(log, 1, new_key())
    assert not log.check().problems
    assert log.check(kept).problems
    assert log.check([], mine).problems


def test_a_tail_that_is_cut_off_with_its_note_is_found_by_a_head_that_was_kept_elsewhere() -> None:
    log = whole()
    kept = log.heads[-1:]
    del log.files[-1][-10:]
    anew(log, 1_000)
    assert not log.check().problems
    assert log.check(kept).problems
    assert not whole().check(kept).problems


def test_records_that_were_given_up_are_no_problem_once_the_log_says_so() -> None:
    log = whole()
    record = parse(log.files[1][0]) or {}
    log.append("retired", first=1, last=EACH, hash=record["before"])
    del log.files[0]
    found = log.check([], verifier(NAME, KEY))
    assert not found.problems
    assert (found.first, found.last) == (EACH + 1, 101)


def test_a_head_that_was_kept_of_records_that_were_given_up_says_nothing() -> None:
    log = whole()
    kept = log.heads[:1]
    record = parse(log.files[1][0]) or {}
    log.append("retired", first=1, last=EACH, hash=record["before"])
    del log.files[0]
    assert not log.check(kept).problems
    # What is no head at all is none of this log.
    assert log.check(["", "elsewhere"]).problems


def test_of_a_log_that_is_nothing_but_problems_the_first_thousand_are_told() -> None:
    log = whole()
    foreign = [one for _ in range(2_000) for one in log.files[0][:1]]
    log.files = [foreign]
    assert len(log.check().problems) == 1_000


def test_bytes_that_are_no_record_are_one_problem_however_many_lines_they_are() -> None:
    log = whole()
    log.files[-1] += [b"x" * (1 << 20), b"y\n", b"z\n"]
    (problem,) = log.check().problems
    assert (problem.file, problem.line) == (f"{FILES - 1}.jsonl", EACH + 1)


def test_a_line_that_was_cut_off_is_no_problem_once_the_next_record_owns_up_to_it() -> None:
    log = whole()
    stray = b'{"seq":101,"ti\n'
    log.files[-1].append(stray)
    assert log.check().problems
    log.append("torn", bytes=len(stray), sha256=hashlib.sha256(stray).hexdigest())
    found = log.check()
    assert not found.problems
    assert found.notes
    log.files[-1][-2] = b'{"seq":101,"tx\n'
    assert log.check().problems


def test_notes_of_one_file_are_told_apart_and_signed_by_one_key_alone() -> None:
    heads = whole().heads
    assert split_notes("".join(heads)) == heads
    assert split_notes("\n\n".join(heads)) == heads
    assert read_note(heads[0], verifier(NAME, KEY)).startswith(f"{NAME}\n19\n")
    for wrong in (
        verifier(NAME, new_key()),
        verifier("other", KEY),
        "nonsense",
        f"{NAME}+00000000+AAAA",
        "",
    ):
        with pytest.raises(ValueError, match=r"\w"):
            read_note(heads[0], wrong)
    for note in ("", "text\n", heads[0].replace("19", "20"), heads[0].partition("\u2014")[0]):
        with pytest.raises(ValueError, match=r"\w"):
            read_note(note, verifier(NAME, KEY))


def test_events_for_other_programs_say_what_became_of_each_file() -> None:
    session = {"id": "s1", "kind": "agent", "name": "bot"}
    side = {"sha256": "ab", "size": 3, "mode": "644"}
    files = [
        {"root": "/r", "path": "new", "after": side},
        {"root": "/r", "path": "old", "before": side},
        {"root": "/r", "path": "both", "before": side, "after": side},
    ]
    facts = {"session": session, "change": "c1", "files": files}
    intent = parse(line_of(7, NOTHING, "intent", facts, 1_800_000_000.5)) or {}
    found = ocsf_event(intent, "1.0")
    assert [one["activity_id"] for one in found] == [1, 4, 3]
    assert [one["type_uid"] for one in found] == [100101, 100104, 100103]
    assert found[0]["file"]["path"] == "/r/new"
    assert found[0]["file"]["hashes"][0]["value"] == "ab"
    assert found[0]["time"] == 1_800_000_000_500
    read = ocsf_event({"event": "read", "path": "/r/a", "session": session, "time": "?"}, "1.0")
    assert (read[0]["activity_id"], read[0]["time"]) == (2, 0)
    refused = {"event": "refused", "asked": ".env", "rule": "accounts", "session": 3}
    (told,) = ocsf_event(refused, "1.0")
    assert (told["disposition_id"], told["firewall_rule"]["name"]) == (2, "accounts")
    assert ocsf_event({"event": "call"}, "1.0") == []


def test_signatures_that_cannot_be_checked_are_counted_and_no_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = whole()
    monkeypatch.setitem(sys.modules, "cryptography", None)
    found = log.check()
    assert (found.problems, found.signed) == ((), 0)
    assert len(found.notes) == 1
