"""Commands `audit ...`: whether the audit log is whole, what is in it, and signed heads of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact import VERSION
from filepact.app import open_audit
from filepact.config.person import state_folder
from filepact.domain.audit import AuditCheck, ocsf_event, parse
from filepact.errors import InvalidParamsError, NotFoundError
from filepact.faces.cli.context import opened
from filepact.faces.cli.render import count, size
from filepact.faces.cli.screen import DONE, FAILED, NOTHING, CommandAnswer, TerminalText, plain
from filepact.faces.cli.turns import time_named
from filepact.text.signed_note import can_sign, check_verifier, split_notes

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping

    from filepact.domain.audit import AuditCheckResult
    from filepact.faces.cli.screen import Style, Terminal
    from filepact.workspace.audit import AuditLog

__all__ = ["export", "sign", "stats", "verify"]

_SHOWN: Final = 20
_MOST: Final = 10  # rows of one table


def verify(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Check every line of the log, every signature, and heads that were kept elsewhere."""
    heads = split_notes(_text(arguments.heads)) if arguments.heads else []
    if (heads or arguments.key) and not can_sign():
        raise NotFoundError(
            "the package that checks signatures is not installed: cryptography",
            hint="Install filepact with its extra: pip install 'filepact[sign]'.",
        )
    for key in arguments.key or ():
        try:
            check_verifier(key)
        except ValueError as error:
            raise InvalidParamsError(
                f"--key: {error}",
                hint="`filepact audit verify` prints the keys that the log names.",
            ) from None
    folder = state_folder(arguments.state)
    log = open_audit(folder)
    if log is None and not heads:
        return CommandAnswer(
            plain("nothing was recorded yet\n"), {"records": 0, "sound": None}, NOTHING
        )
    check, head = AuditCheck(arguments.key or (), heads), None
    if log is not None:
        head = log.file.check(check, screen.patience())
        log.close()
    found = check.end(head)
    facts = {
        "sound": not found.problems,
        "records": found.records,
        "first": found.first,
        "last": found.last,
        "signed": found.signed,
        "heads": found.kept,
        "keys": list(found.keys),
        "problems": [
            {"file": one.file, "line": one.line, "said": one.said} for one in found.problems
        ],
        "notes": list(found.notes),
    }
    code = FAILED if found.problems else DONE
    return CommandAnswer(tuple(_verdict(found)), facts, code, long=len(found.problems) > _SHOWN)


def _verdict(found: AuditCheckResult) -> Iterator[TerminalText]:
    records = f"{count(found.records, 'record')}, {found.first:,} to {found.last:,}"
    if found.problems:
        yield TerminalText("not whole", "bad")
        yield TerminalText(f": {records}, {count(len(found.problems), 'problem')}\n")
    else:
        yield TerminalText("whole", "good")
        yield TerminalText(f": {records}\n")
    for problem in found.problems[:_SHOWN]:
        where = f"{problem.file}:{problem.line}: " if problem.line else ""
        yield TerminalText(f"  {where}{problem.said}\n", "warn")
    if len(found.problems) > _SHOWN:
        yield TerminalText(f"  and {len(found.problems) - _SHOWN} more; --json lists them\n")
    for note in found.notes[:_SHOWN]:
        yield TerminalText(f"  {note}\n")
    signed = f"up to record {found.signed:,}" if found.signed else "nothing yet"
    how = (
        "`filepact audit sign` signs the rest"
        if can_sign()
        else "that needs pip install 'filepact[sign]'"
    )
    yield from _row("signed", f"{signed}; {how}")
    yield from _row(
        "kept", f"{count(found.kept, 'head')} from elsewhere compared" if found.kept else _ADVICE
    )
    for key in found.keys:
        yield from _row("key", key)


_ADVICE: Final = (
    "no heads from elsewhere; only with --heads is a log that was written anew found out"
)


def sign(arguments: Namespace, _screen: Terminal) -> CommandAnswer:
    """Sign the present end of the log, and print the signed head."""
    with opened(arguments) as workspace:
        if workspace.audit is None:
            raise NotFoundError(
                "there is no audit log: [audit] enabled is false",
                hint="Remove that line from your settings.",
            )
        note = workspace.audit.sign()
    return CommandAnswer(plain(note), {"head": note})


def export(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Print the records, one JSON object in a line, as they are or as OCSF has them."""
    log = _log(arguments)
    version = VERSION if arguments.format == "ocsf" else ""

    def chosen() -> Iterator[Mapping[str, Any]]:
        for record in _records(log, arguments):
            if arguments.format == "ocsf":
                yield from ocsf_event(record, version)
            else:
                yield record

    if screen.json:
        found = list(chosen())
        return CommandAnswer((), {"records": found}, DONE if found else NOTHING)
    records = chosen()
    first = next(records, None)
    if first is None:
        return CommandAnswer((), {}, NOTHING)
    screen.write(
        TerminalText(json.dumps(one, separators=(",", ":")) + "\n")
        for one in chain((first,), records)
    )
    return CommandAnswer(())


def stats(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Count records by what happened, by agent, by tool and by error code."""
    log = _log(arguments)
    tables: dict[str, Counter[str]] = {"events": Counter(), "agents": Counter(), "codes": Counter()}
    times: dict[str, list[float]] = {}
    days: set[str] = set()
    tell = screen.patience()
    for number, record in enumerate(_records(log, arguments)):
        if not number % 10_000:
            tell(f"{number:,} records")
        days.add(str(record.get("time"))[:10])
        tables["events"][str(record.get("event"))] += 1
        session = record.get("session")
        if isinstance(session, dict) and session.get("kind") == "agent":
            tables["agents"][str(session.get("name"))] += 1
        if record.get("event") == "call":
            tables["codes"][str(record.get("code"))] += 1
            times.setdefault(str(record.get("tool")), []).append(float(record.get("ms") or 0))
    files = log.file.files()
    taken = sum(one.size for one in files)
    tools = {
        name: {
            "calls": len(some),
            "median_ms": _quantile(some, 0.5),
            "p95_ms": _quantile(some, 0.95),
        }
        for name, some in sorted(times.items(), key=lambda pair: -len(pair[1]))
    }
    total = sum(tables["events"].values())
    facts = {
        "records": total,
        "days": len(days),
        "files": len(files),
        "bytes": taken,
        **{name: dict(table.most_common()) for name, table in tables.items()},
        "tools": tools,
    }
    return CommandAnswer(tuple(_tables(facts, tables, tools)), facts, DONE if total else NOTHING)


def _tables(
    facts: Mapping[str, Any],
    tables: Mapping[str, Counter[str]],
    tools: Mapping[str, Mapping[str, Any]],
) -> Iterator[TerminalText]:
    yield from _row(
        "records", f"{facts['records']:,} on {count(facts['days'], 'day')}, {size(facts['bytes'])}"
    )
    for name, table in tables.items():
        rows = [f"{one} {number:,}" for one, number in table.most_common(_MOST)]
        if rows:
            yield from _row(name, ", ".join(rows))
    for name, row in list(tools.items())[:_MOST]:
        yield TerminalText(f"  {name[:22]:<22}", "dim")
        yield TerminalText(
            f"{count(row['calls'], 'call'):>14}, median {row['median_ms']:.1f} ms, "
            f"95 % {row['p95_ms']:.1f} ms\n"
        )


def _quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def _log(arguments: Namespace) -> AuditLog:
    log = open_audit(state_folder(arguments.state))
    if log is None:
        raise NotFoundError(
            "nothing was recorded yet",
            hint="The audit log begins with the first call of an agent or a command that looks at files.",
        )
    return log


def _records(log: AuditLog, arguments: Namespace) -> Iterator[dict[str, Any]]:
    """The records that are wanted, oldest first; lines that are none are left to `verify`."""
    since = ""
    if arguments.since is not None:
        begun = time_named(arguments.since, time.time())
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(begun))
    for file in log.file.files():
        for line in log.file.lines(file.name):
            record = parse(line)
            if record is None or str(record.get("time")) < since:
                continue
            session = record.get("session")
            known = session if isinstance(session, dict) else {}
            if arguments.agent and known.get("name") != arguments.agent:
                continue
            if arguments.session and not str(known.get("id", "")).startswith(arguments.session):
                continue
            yield record


def _text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidParamsError(
            f"{name}: cannot be read ({getattr(error, 'strerror', None) or 'not UTF-8'})",
            hint="Name the file that signed heads were written to.",
        ) from None


def _row(name: str, value: str, style: Style = "plain") -> Iterator[TerminalText]:
    yield TerminalText(f"{name:<9}", "dim")
    yield TerminalText(f"{value}\n", style)
