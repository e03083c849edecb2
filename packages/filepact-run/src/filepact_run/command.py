"""Commands `run` and `runs`: a program behind overlays, and the layers that are left of such runs."""

from __future__ import annotations

import gc
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact.config.person import home_folder, read_settings, state_folder
from filepact.errors import FilepactError, InvalidParamsError, StateFailedError
from filepact.text.confusables import shown_name
from filepact.workspace.file_snapshot import some_names, unwatched_said
from filepact_cli.context import CommandContext, agent_of, find_context, opened
from filepact_cli.render import age, count
from filepact_cli.screen import FAILED, NOTHING, CommandAnswer, plain, remark
from filepact_run.runs import (
    ProgramFailed,
    Run,
    RunFolder,
    ask_commit,
    commit_run,
    is_going_on,
    kept_files,
    list_runs,
)
from filepact_run.settings import RunSettings

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from filepact.workspace.workspace import Workspace
    from filepact_cli.screen import Terminal
    from filepact_run.layer import LayerResult
    from filepact_run.runs import RunRecord

__all__ = ["run", "runs"]

_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_SHOWN, _LISTED = 20, 5
_WIDTH = 79


def _settings(arguments: Namespace) -> RunSettings:
    chosen: RunSettings | None = read_settings(arguments.config).extensions.get("run")
    return chosen or RunSettings()


def run(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Run a program, and commit what it changed."""
    gc.disable()  # until the program runs: nothing that is loaded and read before goes
    words = arguments.words[1:] if arguments.words[:1] == ["--"] else arguments.words
    if arguments.layers == "off" and arguments.resume:
        raise InvalidParamsError("--resume continues layers, and --layers off has none")
    if arguments.resume:
        return _resume(arguments, words, screen)
    agent = agent_of(words)
    with opened(arguments, find_context(arguments)) as workspace:
        if arguments.layers == "off":
            return _observe(workspace, words)
        roots = [root.path for root in workspace.guard.roots]
        folder = RunFolder.make(
            workspace.state_folder,
            command=words,
            agent=agent,
            mode=arguments.mode,
            roots=roots,
            folder=_start(roots),
        )
        with folder:
            return _carry_out(workspace, folder, words, arguments, screen)


def _resume(arguments: Namespace, words: list[str], screen: Terminal) -> CommandAnswer:
    state = os.path.realpath(state_folder(arguments.state))
    with RunFolder.open(state, arguments.resume) as folder:
        folder.record.check_places()
        context = CommandContext(folder.record.roots, state, "journal")
        with opened(arguments, context) as workspace:
            words = words or list(folder.record.command)
            return _carry_out(workspace, folder, words, arguments, screen)


def _start(roots: Sequence[str]) -> str:
    """The present folder, if the program sees it as it is; else the first root."""
    here = str(Path.cwd())
    return here if any(Path(here).is_relative_to(root) for root in roots) else roots[0]


def _carry_out(
    workspace: Workspace,
    folder: RunFolder,
    words: list[str],
    arguments: Namespace,
    screen: Terminal,
) -> CommandAnswer:
    from filepact.app import secret_places  # noqa: PLC0415 - loads the database

    home, settings = home_folder(), _settings(arguments)
    listed = [f"{home}{one[1:]}" if one[0] == "~" else one for one in settings.writable]
    _note_itself(workspace, words)
    run_ = Run(
        workspace,
        folder,
        home=home,
        secrets=() if home is None else secret_places(home),
        writable=[os.path.realpath(one) for one in (*arguments.writable, *listed)],
        builds=settings.builds,
        quiet=(arguments.commit or settings.commit) == "quiet",
    )
    environment = {**os.environ, "FILEPACT_RUN": folder.record.id}
    try:
        program = run_.start(environment, words)
    except ProgramFailed as refused:
        if not arguments.resume:
            folder.discard()
        if not refused.namespaces:
            return _not_started(words[0], refused)
        if arguments.layers == "required":
            raise InvalidParamsError(
                f"layers are required, but the system refused: {refused}",
                hint="With --layers auto the program runs without them and changes the files directly.",
            ) from None
        _say(f"filepact: no layers here ({refused}):")
        _say("  it changes the files itself, and is recorded only afterwards; secrets are not")
        _say("  hidden from it. Hooks ask before each call: `filepact setup AGENT --write`")
        return _observe(workspace, words)
    except FilepactError:
        if not arguments.resume:
            folder.discard()
        raise
    gc.freeze()
    gc.enable()
    status = run_.attend(program)
    if run_.full:
        _say("filepact: the program was ended: the disk with its layers is nearly full")
        _say("filepact: nothing is lost; make room, and then")
        _say(f"filepact: `filepact runs --commit {folder.record.id}` commits what it changed")
        run_.rest()
        return CommandAnswer((), {"run": folder.record.id, "exit": status}, status)
    try:
        result = run_.commit()
    except FilepactError as error:
        error.hint = (
            f"{error.hint} What it changed is kept: `filepact runs --commit {folder.record.id}`."
        )
        raise
    _tell(result, folder, screen)
    return CommandAnswer((), {**_facts(result, folder), "exit": status}, status)


def _note_itself(workspace: Workspace, words: list[str]) -> None:
    """Whatever runs below us is that program, and decides nothing."""
    from filepact.app import ancestors, note_host  # noqa: PLC0415 - loads the database

    note_host(workspace.state_folder, ancestors(os.getpid())[0], agent_of(words))


def _say(line: str) -> None:
    """Write a line to standard error, with names as they are shown everywhere, through a pipe as well."""
    remark(f"{shown_name(line)}\n")


def _not_started(program: str, refused: ProgramFailed) -> CommandAnswer:
    _say(f"filepact: {program} cannot be started: {os.strerror(refused.number)}")
    missing = refused.number == 2
    return CommandAnswer((), {"exit": 127}, _NOT_FOUND if missing else _NOT_RUNNABLE)


def _tell(result: LayerResult, folder: RunFolder, screen: Terminal) -> None:
    """Say on standard error what has become of the changes; standard output is the program's."""
    if screen.json:
        return
    done = [one for one in result.receipts if one.status == "applied"]
    for receipt in done if len(done) <= _LISTED else ():
        _say(f"filepact: {count(len(receipt.files), 'file')} changed: {receipt.operation}")
    if len(done) > _LISTED:
        files = {one.path for receipt in done for one in receipt.files}
        _say(f"filepact: {count(len(files), 'file')} changed in {len(done):,} operations")
    if len(done) == 1:
        _say(f"filepact: `filepact undo {done[0].operation}` takes that back")
    elif done:
        _say(f"filepact: `filepact undo --session run-{folder.record.id[1:]}` takes that back")
    for receipt in result.receipts:
        if receipt.status != "applied":
            wait = "waits" if len(receipt.files) == 1 else "wait"
            what = f"{count(len(receipt.files), 'file')} {wait} for you"
            _say(f"filepact: {what}: {receipt.operation} ({receipt.rule})")
            _say(f"filepact: `filepact approve {receipt.operation}` shows and decides")
    notes = [note for receipt in result.receipts for note in receipt.notes]
    for note in dict.fromkeys([*notes, *result.notes]):
        _say(f"filepact: {note}")
    if result.moved:
        _say(
            f"filepact: in place without a record, so no undo changes it: {some_names(result.moved)}"
        )
        _say('filepact: (`builds = "record"` under `[run]` in the settings has it recorded)')
    if result.dropped:
        _say(f"filepact: not kept, as programs fill it: {some_names(result.dropped)}")
    if result.left:
        name = folder.record.id
        _say(f"filepact: not committed, and kept as {name}:")
        for path, why in list(result.left.items())[:_SHOWN]:
            _say(f"  {path}: {why.removeprefix(f'{path}: ')}")
        if len(result.left) > _SHOWN:
            _say(f"  and {len(result.left) - _SHOWN:,} more")
        _say(f"filepact: `filepact runs --commit {name}` tries again")
        _say(f"filepact: `filepact runs --discard {name}` drops it")


def _facts(result: LayerResult, folder: RunFolder) -> dict[str, object]:
    return {
        "run": folder.record.id,
        "operations": [one.operation for one in result.receipts if one.status == "applied"],
        "proposals": [one.operation for one in result.receipts if one.status == "pending"],
        "left": result.left,
        "notes": list(result.notes),
        "moved": list(result.moved),
        "dropped": list(result.dropped),
    }


# -- without layers -------------------------------------------------------------------------------


def _observe(workspace: Workspace, words: list[str]) -> CommandAnswer:
    """Run a program with nothing between it and the files; what it changes is found afterwards."""
    import signal  # noqa: PLC0415 - rarely needed
    import subprocess  # noqa: PLC0415 - with it

    from filepact.domain.operation import Actor, Session  # noqa: PLC0415 - with it

    gc.enable()
    session = Session(f"run-{os.urandom(4).hex()}", Actor("agent", agent_of(words)))
    _note_itself(workspace, words)
    unwatched = workspace.external.snapshot().unwatched
    _tell_unwatched(unwatched)
    # Keys at a terminal are for the program, and what it did is recorded all the same.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        status = subprocess.run(words, check=False).returncode  # noqa: S603 - what the person named
    except OSError as error:
        return _not_started(words[0], ProgramFailed(words[0], error.errno or 1, namespaces=False))
    finally:
        signal.signal(signal.SIGINT, before)
    status = 128 - status if status < 0 else status
    found = workspace.external.detect(session, tool="run")
    for operation in found.operations:
        _say(f"filepact: {count(len(operation.changes.changes), 'file')} changed: {operation.id}")
        if operation.was_unasked:
            _say(f"filepact: {operation.note.partition(';')[0]}")
        if operation is found.lost:
            lost = some_names(found.unkept)
            _say(f"filepact: no undo brings these back, from elsewhere or not kept: {lost}")
            continue
        _say(f"filepact: `filepact undo {operation.id}` takes that back")
    if workspace.external.unwatched > unwatched:
        _tell_unwatched(workspace.external.unwatched)
    ids = [one.id for one in found.operations]
    return CommandAnswer((), {"operations": ids, "exit": status}, status)


def _tell_unwatched(files: int) -> None:
    if files:
        _say(f"filepact: {unwatched_said(files)}")


# -- what is left ---------------------------------------------------------------------------------


def runs(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """List the runs that have layers; commit or discard those of one."""
    state = os.path.realpath(state_folder(arguments.state))
    if arguments.commit and arguments.discard:
        raise InvalidParamsError("a run is committed or discarded, not both")
    if arguments.discard:
        with RunFolder.open(state, arguments.discard) as folder:
            folder.discard()
            return CommandAnswer(
                plain(f"{folder.record.id} is discarded\n"), {"run": folder.record.id}
            )
    if arguments.commit:
        going = [one.id for one in list_runs(state) if one.id.startswith(arguments.commit)]
        if len(going) == 1 and is_going_on(state, going[0]):
            answer = ask_commit(state, going[0])
            if answer is not None:
                return _answered(answer, going[0])
        with RunFolder.open(state, arguments.commit) as folder:
            context = CommandContext(folder.record.roots, state, "journal")
            with opened(arguments, context) as workspace:
                result = commit_run(workspace, folder, _settings(arguments).builds)
        _tell(result, folder, screen)
        code = FAILED if result.left else 0
        return CommandAnswer((), _facts(result, folder), code)
    for one in list_runs(state):
        if one.ended is None and not is_going_on(state, one.id):
            _drop_empty(state, one.id)
    found = list_runs(state)
    if not found:
        return CommandAnswer(plain("no runs are left\n"), {"runs": []}, NOTHING)
    lines = [_line(one, state) for one in found]
    return CommandAnswer(plain("".join(lines)), {"runs": [_run_facts(one, state) for one in found]})


def _drop_empty(state: str, name: str) -> None:
    """Discard a run that was cut off before its program wrote anything."""
    with suppress(FilepactError), RunFolder.open(state, name) as folder:
        if folder.is_empty:
            folder.discard()


def _answered(answer: dict[str, Any], name: str) -> CommandAnswer:
    """What a run said that goes on."""
    if "refused" in answer:
        raise StateFailedError(
            f"the run {name} was not committed: {answer['refused']}",
            hint="Its program goes on; what it changed is committed at its end, or try again.",
        )
    operations, waiting = answer["operations"], answer["waiting"]
    lines = [f"committed: {one}; `filepact undo {one}` takes it back\n" for one in operations]
    if not operations:
        lines.append("nothing to commit by now\n")
    if waiting:
        shown = ", ".join(map(shown_name, waiting[:_SHOWN])) + (
            " and others" if len(waiting) > _SHOWN else ""
        )
        lines.append(f"not before the program's end: {shown}\n")
    return CommandAnswer(plain("".join(lines)), {"run": name, **answer})


def _line(record: RunRecord, state: str) -> str:
    going = is_going_on(state, record.id)
    what = "goes on" if going else f"{count(kept_files(state, record), 'file')} left"
    if not going and record.ended is None:
        what = f"cut off, {what}"
    if record.mode == "review":
        what += ", in review"
    said = f"{record.id}  {age(record.created, time.time()):>5}  {what:<15}  "
    command = shown_name(" ".join(" ".join(record.command).split()))
    room = _WIDTH - len(said)
    return f"{said}{command if len(command) <= room else f'{command[: room - 1]}…'}\n"


def _run_facts(record: RunRecord, state: str) -> dict[str, object]:
    return {
        "run": record.id,
        "created": record.created,
        "command": list(record.command),
        "mode": record.mode,
        "roots": list(record.roots),
        "going_on": is_going_on(state, record.id),
        "exit": record.ended,
        "kept": kept_files(state, record),
        "left": record.left,
    }
