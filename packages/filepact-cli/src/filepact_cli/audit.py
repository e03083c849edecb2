"""Commands `audit ...`: whether the audit log is whole, what is in it, and signed heads of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from filepact import VERSION
from filepact.app import check_audit, open_audit
from filepact.config.person import read_settings, state_folder
from filepact.domain.audit import parse
from filepact.errors import FilepactError, InvalidParamsError, NotFoundError
from filepact.text.signed_note import can_sign, check_verifier, split_notes
from filepact_cli.context import opened
from filepact_cli.render import CheckResult, count
from filepact_cli.screen import (
    DONE,
    FAILED,
    NOTHING,
    UNCOMPARED,
    CommandAnswer,
    TerminalText,
    plain,
)
from filepact_cli.turns import time_named
from filepact_cli.wording import size, with_install_line

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Mapping

    from filepact.config.settings import Settings
    from filepact.domain.audit import AuditCheckResult
    from filepact.workspace.audit import AuditLog
    from filepact_cli.screen import Style, Terminal

__all__ = ["check_accounts", "export", "ocsf_event", "sign", "stats", "verify"]

_SHOWN: Final = 20
_MOST: Final = 10  # rows of one table


def verify(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Check every line of the log, every signature, and heads that were kept elsewhere."""
    heads = split_notes(_text(arguments.heads)) if arguments.heads else []
    if (heads or arguments.key) and not can_sign():
        raise NotFoundError(
            "the package that checks signatures is not installed: cryptography",
            hint="Install filepact's extra `sign`.",
        )
    for key in arguments.key or ():
        try:
            check_verifier(key)
        except ValueError as error:
            raise InvalidParamsError(
                f"--key: {error}",
                hint="`filepact audit verify` prints the keys that the log names.",
            ) from None
    settings = read_settings(arguments.config)
    found = check_audit(
        state_folder(arguments.state),
        settings,
        screen.patience(),
        heads=heads,
        keys=arguments.key or (),
    )
    if not found.records and not found.problems:
        said = "nothing was recorded yet\n"
        return CommandAnswer(plain(said), {"records": 0, "sound": None, "compared": False}, NOTHING)
    # Who names heads wants the log compared with them, and with the journal besides.
    compared = bool(found.kept) if arguments.heads else found.compared
    facts = {
        "sound": False if found.problems else True if compared else None,
        "compared": compared,
        "records": found.records,
        "first": found.first,
        "last": found.last,
        "signed": found.signed,
        "heads": found.kept,
        "taken": found.taken or None,
        "operations": found.operations,
        "unlogged": found.unlogged,
        "keys": list(found.keys),
        "problems": [
            {"file": one.file, "line": one.line, "said": one.said, "next": one.next}
            for one in found.problems
        ],
        "notes": list(found.notes),
    }
    code = FAILED if found.problems else DONE if compared else UNCOMPARED
    verdict = tuple(_verdict(found, compared=compared))
    return CommandAnswer(verdict, facts, code, long=len(found.problems) > _SHOWN)


def check_accounts(
    state: str, settings: Settings, tell: Callable[[str], None]
) -> Iterator[CheckResult]:
    """Whether the audit log is whole and tells what the journal tells, and when a signed head was last kept outside."""
    name = "audit log"
    try:
        found = check_audit(state, settings, tell)
    except FilepactError as error:
        yield CheckResult(name, "fail", error.message, error.hint)
        return
    records = count(found.records, "record")
    if found.problems:
        first = found.problems[0]
        said = f"{first.said}{f', and {len(found.problems) - 1} more' * (len(found.problems) > 1)}"
        yield CheckResult(name, "fail", said, first.next or "`filepact audit verify` says where.")
    elif found.compared:
        both = count(found.operations, "operation")
        yield CheckResult(name, "ok", f"{records}, whole; {both} as the journal tells them")
    elif found.records:
        said = "; ".join((f"{records}, and nothing to compare them with", *found.notes))
        yield CheckResult(name, "none", said)
    if settings.audit is None or not (settings.audit.enabled and settings.audit.heads):
        return
    after = "`filepact audit sign` keeps one there now."
    last = f"the last signed head was kept there at {found.taken}" if found.taken else ""
    if found.late:
        said = f"{last or 'none was kept there yet'}, and a newer one was not"
        yield CheckResult("heads outside", "warn", said, after)
    elif found.taken:
        yield CheckResult("heads outside", "ok", last)
    else:
        yield CheckResult("heads outside", "none", "no signed head was kept there yet", after)


def _verdict(found: AuditCheckResult, *, compared: bool) -> Iterator[TerminalText]:
    records = f"{count(found.records, 'record')}, {found.first:,} to {found.last:,}"
    if found.problems:
        yield TerminalText("not whole", "bad")
        yield TerminalText(f": {records}, {count(len(found.problems), 'problem')}\n")
    elif compared:
        yield TerminalText("whole", "good")
        yield TerminalText(f": {records}\n")
    else:
        yield TerminalText("not compared", "warn")
        yield TerminalText(f": {records}, whole as far as they tell themselves\n")
    for problem in found.problems[:_SHOWN]:
        where = f"{problem.file}:{problem.line}: " if problem.line else ""
        yield TerminalText(f"  {where}{problem.said}\n", "warn")
    for after in dict.fromkeys(one.next for one in found.problems if one.next):
        yield TerminalText(f"  {after}\n")
    if len(found.problems) > _SHOWN:
        yield TerminalText(f"  and {len(found.problems) - _SHOWN} more; --json lists them\n")
    for note in found.notes[:_SHOWN]:
        yield TerminalText(f"  {with_install_line(note)}\n")
    signed = f"up to record {found.signed:,}" if found.signed else "nothing yet"
    how = (
        "`filepact audit sign` signs the rest"
        if can_sign()
        else with_install_line("that needs filepact's extra `sign`")
    )
    yield from _row("signed", f"{signed}; {how}")
    both = f"{count(found.operations, 'operation')} in both"
    if found.unlogged:
        both += f", {found.unlogged:,} from when there was no audit log"
    yield from _row("journal", both)
    taken = f", the last taken at {found.taken}" if found.taken else ""
    yield from _row(
        "kept",
        f"{count(found.kept, 'head')} from elsewhere compared{taken}" if found.kept else _ADVICE,
    )
    for key in found.keys:
        yield from _row("key", key)


_ADVICE: Final = "no heads from elsewhere; only they show that log and journal were put back or written anew together"


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
