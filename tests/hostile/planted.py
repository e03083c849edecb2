"""Planted secrets: files that an agent may not read, in a hundred forms, and every door to them.

Each form holds a word, a size, a number of lines and a hash that nothing else has.  An agent does all
that it can with each; none of these may stand in any answer, whatever happens to the file meanwhile.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filepact.app import open_toolbox, open_workspace
from filepact.domain.document import Revision
from filepact.domain.operation import Actor, Approval, Session
from filepact.errors import FilepactError
from filepact.tools.registry import CallContext
from tests.faces.acp.sides import AgentSide, ClientSide, ProxySide, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from filepact.tools.registry import Toolset
    from filepact.workspace.workspace import Workspace
    from tests.faces.acp.sides import Side

__all__ = ["FORMS", "SIDES", "Form", "Planted", "at_the_editor", "look_everywhere", "seen_in"]

AGENT = Actor("agent", "tester", "7")
SIDES = (ProxySide, AgentSide, ClientSide)
PERSON = Approval(Actor("person", "anna"))
MODES = (0o600, 0o640, 0o644, 0o664)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o640)


@dataclass(frozen=True, slots=True)
class Form:
    """A way in which a secret can lie there.

    Attributes:
        name: The file that the agent names, below a folder of the form's own.
        wrap: Makes the file's bytes of lines with the secret in them.
        plant: Puts the file there; where it lies otherwise than as a file of that name.
        turns: It is an ordinary file first, and becomes a secret one while a change of it waits.
    """

    name: str
    wrap: Callable[[list[str]], bytes]
    plant: Callable[[Path, bytes], None] = _write
    turns: bool = False
    what: str = ""

    def __str__(self) -> str:
        return f"{self.what} {self.name}".strip()


def _linked(target: str, *, hard: bool = False) -> Callable[[Path, bytes], None]:
    """The secret lies at ``target``, and the name is a link to it."""

    def plant(path: Path, data: bytes) -> None:
        there = path.parent / target
        _write(there, data)
        if path.is_symlink() or path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if hard:
            path.hardlink_to(there)
        else:
            path.symlink_to(os.path.relpath(there, path.parent))

    return plant


# -- what such a file holds -----------------------------------------------------------------------


def _plain(lines: list[str]) -> bytes:
    return "".join(f"KEY{at}={line}\n" for at, line in enumerate(lines)).encode()


def _encoded(codec: str, end: str = "\n") -> Callable[[list[str]], bytes]:
    return lambda lines: _plain(lines).decode().replace("\n", end).encode(codec)


def _long(lines: list[str]) -> bytes:
    return _plain(lines) + b"# " + b"z" * 11_000_000 + b"\n"


def _binary(lines: list[str]) -> bytes:
    return b"\0\1\2\xff" + _plain(lines)


def _pem(lines: list[str], label: str = "RSA PRIVATE KEY") -> str:
    body = "\n".join(line.ljust(64, "A") for line in lines)
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"


def _key(
    wrap: Callable[[str], str] = lambda text: text,
    codec: str = "utf-8",
    label: str = "RSA PRIVATE KEY",
) -> Callable[[list[str]], bytes]:
    return lambda lines: wrap(f"\n{_pem(lines, label)}").encode(codec)


def _each(before: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{before}{line}\n" for line in text.split("\n"))


NAMES = (
    ".env", ".env.production", "deploy/.env.local", "prod.env", "config/database.yml", "id_rsa", "id_ed25519",
    "keys/server.key", "cert.pem", "store.jks", "credentials.json", ".netrc", ".npmrc", ".pypirc", ".pgpass",
    ".aws/credentials", ".ssh/config", ".docker/config.json", ".kube/config", ".gnupg/secring.gpg", ".bash_history",
    "secrets.yml", "secrets.toml", ".htpasswd", "terraform.tfstate", "service-account.json", ".git/config",
    ".vault-token", "kubeconfig.yaml", "wallet.dat", "pass.kdbx", ".mysql_history", "auth.json", "wg0.conf",
    "local.settings.json", "app.p12", ".git-credentials", "deploy/.secrets/token",
    ".ENV", "Id_Rsa", "\uff0eenv", ".e\u200bnv", ".env.", ".env ",
)  # fmt: skip
"""Names that rules protect, some of them disguised."""

COPIES = (
    ".env~", "credentials.json.bak", "server.key.old", ".database.yml.swp", "#id_rsa#", "secrets.yml.orig",
    "key.pem.save", ".netrc.1", "prod.env copy", "credentials copy.json", ".ssh.bak/config", ".pgpass.2024-05-31",
)  # fmt: skip
"""What editors, systems and people call copies of them."""

FORMS: list[Form] = [Form(name, _plain, what="name") for name in NAMES]
FORMS += [Form(name, _plain, what="copy") for name in COPIES]
FORMS += [
    Form(".env", wrap, what=what)
    for what, wrap in (
        ("utf-16", _encoded("utf-16")),
        ("utf-16 without a mark", _encoded("utf-16-le")),
        ("utf-8 with a mark", _encoded("utf-8-sig")),
        ("crlf", _encoded("utf-8", "\r\n")),
        ("cr", _encoded("utf-8", "\r")),
        ("one line", _encoded("utf-8", ";")),
        ("binary", _binary),
        ("latin-1", lambda lines: _plain(lines) + "caf\xe9\n".encode("latin-1")),
        ("shift_jis", lambda lines: _plain(lines) + "\u8868\n".encode("shift_jis")),
        ("too large to be edited", _long),
        ("a private key as well", lambda lines: _plain(lines) + _pem(lines).encode()),
    )
]
FORMS += [
    Form("plain.txt", _plain, _linked(".env"), what="link"),
    Form("plain.txt", _plain, _linked(".env", hard=True), what="hard link"),
    Form("plain.txt", _plain, _linked("deep/er/id_rsa", hard=True), what="hard link below"),
    Form(
        "plain.txt", _plain, _linked(".aws/credentials", hard=True), what="hard link to a folder's"
    ),
    Form("plain.txt", _encoded("utf-16"), _linked("x.key~", hard=True), what="hard link to a copy"),
    Form("plain.txt", _plain, _linked("deep/er/id_rsa"), what="link below"),
    Form("plain.txt", _plain, _linked("../.env.moved"), what="link beside"),
]
FORMS += [
    Form("notes.txt", wrap, what=what)
    for what, wrap in (
        ("key", _key()),
        ("key in crlf", _key(lambda text: text.replace("\n", "\r\n"))),
        ("key in utf-16", _key(codec="utf-16")),
        ("key in utf-16-be", _key(codec="utf-16-be")),
        ("key in utf-32", _key(codec="utf-32")),
        ("key with a mark", _key(codec="utf-8-sig")),
        ("key of openssh", _key(label="OPENSSH PRIVATE KEY")),
        ("key without a kind", _key(label="PRIVATE KEY")),
        ("key of pgp", _key(label="PGP PRIVATE KEY BLOCK")),
        ("key in yaml", _key(_each("    "))),
        ("key in json", _key(lambda text: json.dumps({"key": text}))),
        ("key in a variable", _key(lambda text: f'KEY="{text}"\n'.replace("\n", "\\n"))),
        ("key in source", _key(lambda text: f"K = '''{text}'''\n")),
        ("key below text", _key(lambda text: "a line of text\n" * 9_000 + text)),
        ("key of putty", lambda lines: (
            "PuTTY-User-Key-File-3: ssh-rsa\nEncryption: none\nPrivate-Lines: 9\n" + "\n".join(lines) + "\n"
        ).encode()),
        ("key in a mail", _key(_each("> "))),
        ("key in a comment", _key(_each("// "))),
        ("key on one line", _key(lambda text: text.replace("\n", " ").strip())),
        ("key in json of windows", _key(lambda text: json.dumps({"key": text.replace("\n", "\r\n")}))),
        ("key in json in json", _key(lambda text: json.dumps(json.dumps({"key": text})))),
        ("web key", lambda lines: json.dumps(
            {"kty": "RSA", "e": "AQAB", "d": "".join(lines), "p": lines[0].ljust(40, "A")}
        ).encode()),
        ("key in a binary file", lambda lines: b"\0\1\xff" + _pem(lines).encode()),
    )
]  # fmt: skip
FORMS += [
    Form("draft.txt", wrap, turns=True, what=f"meanwhile {what}")
    for what, wrap in (
        ("key", _key()),
        ("key in crlf", _key(lambda text: text.replace("\n", "\r\n"))),
        ("key in json", _key(lambda text: json.dumps({"key": text}))),
        ("key of openssh", _key(label="OPENSSH PRIVATE KEY")),
        ("key below the old text", _key(lambda text: f"one\ntwo\nthree\n{text}")),
        ("key above the old text", _key(lambda text: f"{text}\none\ntwo\nthree\n")),
    )
]


# -- one world ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Planted:
    """One form in a folder of its own.

    Attributes:
        path: The name that the agent sends.
    """

    form: Form
    number: int
    root: Path

    @property
    def path(self) -> str:
        return f"f{self.number:03}/{self.form.name}"

    @property
    def there(self) -> Path:
        return self.root / self.path

    def word(self, state: int) -> str:
        return f"S3CR3T{self.number:03}q{state}x"

    def data(self, state: int) -> bytes:
        """What the file holds in one of its states; each differs in everything."""
        count = 307 + 2 * self.number + state
        return self.form.wrap([f"{self.word(state)}{at:04}" for at in range(count)])

    def plant(self, state: int) -> None:
        self.form.plant(self.there, self.data(state))

    def traces(self) -> Iterator[tuple[str, re.Pattern[str]]]:
        """What of it must not be in an answer."""
        for state in (0, 1, 2):
            data, word = self.data(state), self.word(state)
            yield "text", re.compile(re.escape(word))
            for lead in range(3):
                shown = base64.b64encode(b" " * lead + word.encode()).decode()
                yield "base64", re.compile(re.escape(shown[4 if lead else 0 : -4]))
            yield "hash", re.compile(hashlib.sha256(data).hexdigest()[:8])
            for mode in MODES:
                yield "revision", re.compile(Revision.of(data, mode).short[:8])
            size, lines = len(data), data.count(b"\n")
            yield "size", re.compile(rf"(?<![\w,.-])(?:{size}|{size:,}) ?(?:bytes|characters|B)\b")
            if lines > 100:
                yield "lines", re.compile(rf"(?<![\w,.-])(?:{lines}|{lines:,}) lines\b")


def seen_in(transcript: str, planted: Sequence[Planted]) -> list[str]:
    """What of the secrets stands in a transcript."""
    return sorted(
        {
            f"{what} of {one.number} ({one.form}): ...{transcript[max(found.start() - 300, 0) : found.end()]}"
            for one in planted
            for what, trace in one.traces()
            if (found := trace.search(transcript)) is not None
        }
    )


class Agent:
    """An agent that tries everything with one file, through the library's tools."""

    def __init__(self, workspace: Workspace, toolbox: Toolset, session: Session) -> None:
        self.workspace = workspace
        self.toolbox = toolbox
        self.session = session
        self.heard: list[str] = []

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        outcome = self.toolbox.call(tool, arguments, CallContext(self.session))
        parts = [
            f"\n>>> {tool} {json.dumps(arguments)[:200]}\n",
            outcome.text,
            json.dumps(outcome.receipt),
        ]
        if outcome.data:
            parts.append(outcome.data.decode("latin-1").replace("\0", ""))
        self.heard += parts
        return dict(outcome.receipt or {})

    def approve(self, receipt: dict[str, Any], *, to_agent: bool = True) -> None:
        """A person says yes in the agent's own dialog, whose answer goes to the agent."""
        if receipt.get("status") != "pending":
            return
        try:
            done = self.workspace.approve(str(receipt["operation"]), PERSON, to_agent=to_agent)
            said = repr(done)
        except FilepactError as error:
            said = f"{error.report()} {error.details}"
        if to_agent:
            self.heard += ["\n>>> approve\n", said]


def _look(agent: Agent, path: str) -> None:
    agent.call("read_file", path=path)
    agent.call("read_file", path=path, offset=4, lines=20)
    agent.call("read_file", path=path, offset=-20)
    agent.call("read_file", path=path, encoding="base64")
    agent.call("read_file", paths=[path, "ok.txt"])
    agent.call("grep", path=path, pattern="S3CR|A|=")
    agent.call("grep", path=path, pattern="S3CR", mode="count")
    agent.call("search_files", pattern="**/*", directory=str(Path(path).parent))
    agent.call("directory_tree", path=str(Path(path).parent), depth=4)


def _try(agent: Agent, one: Planted, state: int) -> None:
    """Every change that shows only, and every refusal."""
    path, data = one.path, one.data(state)
    agent.call("edit_file", path=path, old_string="KEY0", new_string="X", dry_run=True)
    agent.call("edit_file", path=path, old_string="nothing like it", new_string="X", dry_run=True)
    agent.call("write_file", path=path, content="A=1\n", dry_run=True)
    agent.call("write_file", path=path, content="A=1\n", append=True, dry_run=True)
    short = Revision.of(data, 0o640).short
    # A right guess is answered as a wrong one is, which is asked first.
    agent.call("write_file", path=path, content="A=1\n", expected_revision="00000000")
    start = len(agent.heard)
    agent.call("write_file", path=path, content="A=1\n", expected_revision=short, dry_run=True)
    agent.heard[start:] = [text.replace(short, "") for text in agent.heard[start:]]
    for patch in (
        f"--- a/{path}\n+++ b/{path}\n@@ -1,2 +1,2 @@\n-KEY0=x\n+KEY0=y\n KEY1=1\n",
        f"--- a/{path}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-KEY0=x\n-KEY1=y\n",
        f"diff --git a/{path} b/{path}.txt\nsimilarity index 100%\nrename from {path}\nrename to {path}.txt\n",
        f"*** Begin Patch\n*** Update File: {path}\n@@\n-KEY0\n+KEY\n*** End Patch\n",
        f"*** Begin Patch\n*** Update File: {path}\n*** Move to: f{one.number:03}/x.txt\n@@\n KEY1\n*** End Patch\n",
    ):
        agent.call("patch_apply", patch=patch, dry_run=True)
    agent.call("manage_files", action="move", path=path, to=f"{path}-moved.txt", dry_run=True)
    agent.call("manage_files", action="delete", path=path, dry_run=True)


def _live(agent: Agent, one: Planted) -> None:
    """A change that waits while the file moves, is done, and is taken back while it moves again."""
    path = one.path
    if one.form.turns:
        agent.call("write_file", path=path, content="one\ntwo\nthree\n", createDirs=True)
        waits = agent.call("write_file", path=path, content="one\ntwo\n3\n")
    else:
        waits = agent.call("write_file", path=path, content="A=1\nB=2\n")
    agent.call("history", action="diff")
    agent.call("history", action="status")
    one.plant(1)
    agent.approve(waits)
    again = agent.call("write_file", path=path, content="C=3\n", append=True)
    agent.approve(again)
    agent.call("history", action="log")
    agent.call("history", action="diff")
    undone = agent.call("history", action="undo", dry_run=True)
    one.plant(2)
    undone = agent.call("history", action="undo")
    agent.approve(undone)
    agent.approve(agent.call("write_file", path=path, content="D=4\n"), to_agent=False)
    agent.call("read_file", path="ok.txt")
    agent.call("history", action="redo")
    for change in (waits, again, undone):
        if change.get("operation"):
            agent.call("history", action="diff", change=str(change["operation"]))


def _guess(workspace: Workspace, toolbox: Toolset, one: Planted) -> list[str]:
    """What differs between the answers to a right guess of what a file holds, and to a wrong one."""
    right = one.data(0).decode("utf-8", "replace").replace("\0", "")
    if len(right) > 1_000_000:
        return []
    answers: list[list[str]] = []
    for number, text in enumerate((right, right.replace("0000", "0009", 1))):
        one.plant(0)
        agent = Agent(workspace, toolbox, Session(f"g{one.number}-{number}", AGENT))
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        count = len(text.splitlines())
        for patch in (
            f"--- /dev/null\n+++ b/{one.path}\n@@ -0,0 +1,{count} @@\n{lines}",
            f"*** Begin Patch\n*** Add File: {one.path}\n{lines}*** End Patch\n",
        ):
            agent.call("patch_apply", patch=patch, dry_run=True)
        agent.call("write_file", path=one.path, content=text, dry_run=True)
        agent.approve(agent.call("write_file", path=one.path, content=text))
        agent.call("history", action="diff")
        agent.approve(agent.call("history", action="undo"))
        agent.call("history", action="log")
        said = [part for part in agent.heard if not part.startswith("\n>>> ")]
        answers.append([re.sub(r"\bc[a-z0-9]{10}\b|\d+ s ago", "ID", part) for part in said])
    return [
        f"sameness of {one.number} ({one.form}): {first[:200]!r} and {second[:200]!r}"
        for first, second in zip(*answers, strict=False)
        if first != second
    ]


def make(folder: Path, forms: Sequence[Form]) -> list[Planted]:
    """A folder with these forms in it."""
    root = folder / "project"
    root.mkdir(parents=True)
    (root / "ok.txt").write_text("fine\n")
    planted = [Planted(form, number, root) for number, form in enumerate(forms, start=1)]
    for one in planted:
        if not one.form.turns:
            one.plant(0)
    return planted


def look_everywhere(folder: Path, forms: Sequence[Form]) -> tuple[list[str], int]:
    """Plant these forms and try everything; what was seen of them, and in how many answers."""
    planted = make(folder, forms)
    root = planted[0].root
    with closing(
        open_workspace([str(root)], state_dir=str(folder / "state"), home=str(folder))
    ) as workspace:
        toolbox = open_toolbox(workspace, own=True)
        agent = Agent(workspace, toolbox, Session("all", AGENT))
        agent.call("grep", pattern="S3CR3T")
        agent.call("grep", pattern="S3CR3T", mode="files")
        agent.call("directory_tree", path=".", depth=4)
        agent.call("search_files", pattern="**/*")
        heard = agent.heard
        for one in planted:
            agent = Agent(workspace, toolbox, Session(f"s{one.number}", AGENT))
            if not one.form.turns:
                _look(agent, one.path)
                _try(agent, one, 0)
            _live(agent, one)
            _look(agent, one.path)
            _try(agent, one, 2)
            heard += agent.heard
        told = [
            line
            for one in planted
            if one.form.turns is False
            for line in _guess(workspace, toolbox, one)
        ]
    return [*seen_in("".join(heard), planted), *told], len(heard)


def at_the_editor(side: Side, form: Form) -> list[str]:
    """The same for an agent behind an editor, whose person says yes to everything it asks."""
    one = Planted(form, 1, side.work)
    heard: list[str] = []

    def ask(call: Callable[[], object]) -> None:
        try:
            heard.append(repr(call()))
        except Refused as refused:
            heard.append(f"{refused.message} {refused.kind} {json.dumps(refused.data)}")

    def write(text: str, then: int | None) -> None:
        side.screen.on_ask = lambda: one.plant(then) if then is not None else None
        ask(lambda: side.write(one.path, text))

    with side:
        one.plant(0)
        ask(lambda: side.read(one.path))
        write("A=1\n", 1)
        write("B=2\n", None)
        one.plant(2)
        write("C=3\n", None)
        one.plant(2)
        for tool, arguments in (
            ("write_file", {"content": "D=4\n", "append": True}),
            ("write_file", {"content": "E=5\n", "expected_revision": "00000000"}),
            ("edit_file", {"old_string": "KEY0", "new_string": "X"}),
            ("read_file", {}),
        ):
            side.screen.on_ask = lambda: one.plant(0)
            ask(lambda: side.tool(tool, {"path": one.path, **arguments}))  # noqa: B023
        side.screen.on_ask = lambda: None
        ask(lambda: side.tool("write_file", {"path": one.path, "content": "F=6\n", "append": True}))
        ask(lambda: side.read(one.path))
    return seen_in("\n".join(heard), [one])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Plant secrets and look for them in every answer.")
    parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="filepact-planted-") as folder:
        seen, answers = look_everywhere(Path(folder), FORMS)
        for number, (side, form) in enumerate((side, form) for side in SIDES for form in FORMS):
            place = Path(folder) / f"editor{number}"
            place.mkdir()
            if not form.turns:
                seen += [f"{side.__name__}: {line}" for line in at_the_editor(side(place), form)]
    for line in seen:
        print(line)
    print(f"{len(FORMS)} forms, {answers:,} answers: {len(seen)} traces seen")
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
