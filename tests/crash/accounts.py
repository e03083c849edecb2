"""Works in folders until it is killed in the midst of some call, by itself: ``accounts.py FOLDER NUMBER SEED``.

Changes, deletions, undos, proposals that are decided about and changes that are found, one after the other.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from tests.workspace.acting import delete, edit, write

if TYPE_CHECKING:
    from filepact.workspace.workspace import Workspace

PERSON = Approval(Actor("person", "ann"))


def main(base: Path, number: str, seed: str) -> None:
    chance = random.Random(seed)
    session = Session(f"s{number}", Actor("agent", "crash"))
    roots = [str(base / "shared"), str(base / f"own{number}")]
    workspace = open_workspace(roots, state_dir=str(base / "state"), home=str(base))
    write(workspace, session, f"{base}/own{number}/{seed}.txt", "what is loaded first is loaded\n")
    workspace.external.resnapshot()
    left = chance.randrange(100, 60_000)

    def hook(_frame: object, event: str, _argument: object) -> None:
        nonlocal left
        if event == "c_call":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(hook)
    while True:
        name = f"{base}/{chance.choice(('shared', f'own{number}'))}/{chance.randrange(5)}.txt"
        with suppress(FilepactError):
            act(workspace, session, name, chance.randrange(7))


def act(workspace: Workspace, session: Session, name: str, what: int) -> None:
    workspace.mode = "preview" if what in (4, 5) else "auto"
    if what == 0:
        delete(workspace, session, name)
    elif what == 1:
        workspace.undo(session, dry_run=False)
    elif what == 6:
        Path(name).write_text(f"{random.random()}\n")
        workspace.external.detect(session)
    elif Path(name).exists():
        edit(workspace, session, name, Path(name).read_text(), f"{random.random()}\n")
    else:
        write(workspace, session, name, "new\n")
    for one in workspace.pending():
        if what == 4:
            workspace.approve(one.id, PERSON)
        else:
            workspace.reject(one.id, PERSON)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
