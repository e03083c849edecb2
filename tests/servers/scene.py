"""A workspace over a throw-away tree with servers, and an agent that changes files in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact_diagnostics.judging import ServerJudge
from filepact_diagnostics.lsp.pool import ServerPool
from tests.servers.fakes import PAUSES
from tests.servers.real_servers import SECONDS, locate, node_folders, server

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from filepact.workspace.draft import Draft
    from filepact_diagnostics.lsp.spec import ServerSpec
    from filepact_diagnostics.semantic.updates import WorkspaceUpdate

AGENT = Session("s1", Actor("agent", "tester", "1.0"))

PYTHON = {
    "pyproject.toml": '[project]\nname = "p"\nversion = "1"\n',
    "lib.py": "def double(n: int) -> int:\n    return n * 2\n",
    "use.py": "from lib import double\n\nanswer: int = double(21)\n",
}
WRONG_LIB = "def double(n: str) -> str:\n    return n * 2\n"


class Scene:
    """A tree, its servers and what an agent does.

    Args:
        folder: An empty folder.
        servers: Names of real servers, or servers.
        files: What is there at first.
        rules: The project's own.
        roots: Folders in the tree that are shared; the whole tree by default.
        options: Of the semantics.
    """

    def __init__(
        self,
        folder: Path,
        servers: list[str] | list[ServerSpec],
        files: Mapping[str, str] = PYTHON,
        rules: str = "",
        roots: tuple[str, ...] = ("",),
        **options: Any,
    ) -> None:
        self.root = folder / "deep" / "enough" / "project"
        self.root.mkdir(parents=True)
        for name, text in files.items():
            self.put(name, text)
        chosen = [server(one) if isinstance(one, str) else one for one in servers]
        if rules:
            self.put(".filepact.toml", rules)
        real = all(isinstance(one, str) for one in servers)
        shared = [str(self.root / one) for one in roots]
        self.workspace = open_workspace(shared, state_dir=str(folder / "state"))
        self.environment = {
            "HOME": os.environ["HOME"],
            "PATH": ":".join([str(Path(sys.executable).parent), *node_folders(), "/usr/bin:/bin"]),
            "LANG": "C.UTF-8",
        }
        self.pool = ServerPool(chosen, self.environment, locate if real else _place, pauses=PAUSES)
        options = {"mode": "always", "budget": SECONDS, **options}
        self.semantics = ServerJudge(self.workspace, self.pool, **options)

    def close(self) -> None:
        self.semantics.close()
        self.workspace.close()

    def index_words(self) -> None:
        """Have the words of all files known, which the first question may have no time for."""
        for servers in self.semantics._servers.values():
            servers.disk.begin()
            while not servers.indexed:
                pass

    # -- past the doors -------------------------------------------------------------------

    def path(self, name: str) -> str:
        return str(self.root / name)

    def put(self, name: str, text: str | bytes) -> None:
        """Write as a program does that knows of no door."""
        place = self.root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode() if isinstance(text, str) else text)

    def get(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    # -- through the door -----------------------------------------------------------------

    def change(
        self,
        act: Callable[[Draft], None],
        *,
        dry: bool = False,
        remembered: bool = False,
        meanwhile: Callable[[], object] = bool,
        **options: Any,
    ) -> WorkspaceUpdate:
        """Do something with a draft, or only foresee it; `meanwhile` happens before servers are asked."""
        with self.workspace.draft(AGENT, "write_file") as draft:
            act(draft)
            changes, versions = draft.changes, draft.versions
            if dry:
                return self.semantics.preview(changes, versions, session=AGENT, **options)
            if remembered:
                self.semantics.baseline(changes, versions, session=AGENT)
            self.workspace.submit(draft, "a change")
        meanwhile()
        return self.semantics.verify(changes, versions, session=AGENT, **options)

    def write(self, texts: Mapping[str, str | bytes | None], **options: Any) -> WorkspaceUpdate:
        """Give files new texts, at once; None removes one."""

        def act(draft: Draft) -> None:
            for target, text in zip(draft.open_all(list(texts)), texts.values(), strict=True):
                if text is None:
                    draft.delete(target, emptied_by=None)
                elif isinstance(text, bytes):
                    draft.put(target, text)
                else:
                    draft.write(target, text)

        return self.change(act, **options)

    def move(self, old: str, new: str, **options: Any) -> WorkspaceUpdate:
        def act(draft: Draft) -> None:
            source, target = draft.open_all([old, new])
            draft.move(source, target, None)

        return self.change(act, **options)

    def foresee(self, texts: Mapping[str, str | bytes | None], **options: Any) -> WorkspaceUpdate:
        return self.write(texts, dry=True, **options)


def codes(update: WorkspaceUpdate, which: str = "new") -> list[tuple[str, str]]:
    """Files and codes of what is new, or fixed."""
    findings = update.findings
    assert findings is not None, update
    return sorted((Path(one.path).name, one.code) for one in getattr(findings, which))


def _place(name: str) -> str | None:
    return name if os.path.isabs(name) else locate(name)
