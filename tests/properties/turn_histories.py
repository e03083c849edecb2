"""Random histories of an agent's turns beside a person: a tree, commands, saves; each printable as a shell script."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

Door = Literal["hook", "layers", "off", "guard"]
"""By what an agent's program is seen: hooks, `filepact run` with layers and without, a guard."""


@dataclass(frozen=True)
class Step:
    """A line of shell that somebody runs in the root; of ``late`` the next one of what goes on in the background."""

    who: Literal["agent", "person", "late"]
    line: str = ""


@dataclass(frozen=True)
class Call:
    """A call of an agent's own tool, and what happens while it is under way.

    Attributes:
        tool: Its name in Claude Code.
        steps: What happens, in order; what a person does before its first own step they do while they are asked.
        named: The file that it names, if it names one.
        behind: Lines that a command leaves in the background, each waiting until something else has happened.
        another: Whether it is a call of another agent, which works in the same folder.
    """

    tool: str
    steps: tuple[Step | Call, ...] = ()
    named: str = ""
    behind: tuple[str, ...] = ()
    another: bool = False

    @property
    def command(self) -> str:
        lines = [one.line for one in self.steps if isinstance(one, Step) and one.who == "agent"]
        return "\n".join([*lines, *(f"(sleep 9; {line}) &" for line in self.behind)])

    @property
    def own(self) -> bool:
        """Whether it is a tool of ours."""
        return self.tool.startswith("mcp__filepact__")


@dataclass(frozen=True)
class History:
    """What happens.

    Attributes:
        door: By what the agent is seen.
        back: The words after `filepact undo`.
        tree: Lines of shell that make the tree.
        earlier: An earlier turn of the agent, and what the person does after it.
        turn: What is taken back, and what the person does meanwhile.
        later: What the person does afterwards.
        host: Whether the processes above the hooks are known.
        killed: Whether the agent is killed in its last call, so that neither that nor the turn ends.
        others: Whether another agent is at work in the folder.
    """

    door: Door
    back: str
    tree: tuple[str, ...]
    earlier: tuple[Step | Call, ...]
    turn: tuple[Step | Call, ...]
    later: tuple[Step, ...]
    host: bool = False
    killed: bool = False
    others: bool = False


# -- what there is -------------------------------------------------------------------------

FILES = (
    *(f"f{at}.txt" for at in range(4)),
    *(f"d{at}/g{to}" for at in range(2) for to in range(2)),
)
_LINES = r"printf 'line %s of {0}\n' 1 2 3 4 5 6 7 8 9 10 11 12 > {0}"
_BASE = ("mkdir d0 d1", *(_LINES.format(name) for name in FILES), "echo mine > mine0")
_GIT = "git init -q --template= .; git add -A; git commit -qm start"
_TREES = (
    "ln -s f0.txt l0",
    "ln -s d0 l1",
    "ln -s nowhere l2",
    "mkdir -p empty/in",
    "mkdir d0/e; echo deep > d0/e/h; echo too > d0/e/i",
    "chmod 755 f1.txt",
    "chmod 600 f2.txt",
    "chmod 700 d1",
    r"printf '\000\377\001' > binary; chmod 600 binary",
    r"printf 'a\r\nb\r\n' > crlf.txt",
    ": > nothing",
    "ln f0.txt hard",
    "echo odd > 'with blank'; echo odd > -dash; echo odd > 'ü\"q'",
    r"echo odd > \"$(printf 'new\nline')\"".replace('\\"', '"'),
    r"""echo odd > "$(printf 'bad\377')" """.strip(),
    "echo '*.log' > .gitignore; echo old > a.log; echo old > d0/b.log",
    "echo 'out/' > .gitignore; mkdir out; echo old > out/x; echo mine > out/mine1",
    "printf '*.log\\nout/\\n' > .ignore; mkdir -p out; echo old > out/y",
    "mkdir -p build; echo old > build/rules.mk",
    "mkdir -p node_modules/p; echo old > node_modules/p/i.js",
    "mkdir sub; cd sub; git init -q --template= .; echo s > s; git add s; git commit -qm s; cd ..",
    "mkdir mine; echo 1 > mine/1; echo 2 > mine/2",
    "echo '*.tmp' > ../ignored; git config core.excludesFile ../ignored; echo old > old.tmp",
    "mkdir -p .git/info; echo 'out/' > .git/info/exclude; mkdir -p out; echo mine > out/mine1",
    "mkdir -p dist; echo 'made by hand' > dist/page",
)

# -- what the agent's programs do ----------------------------------------------------------

_BAD, _WORSE = (f"\"$(printf '{one}')\"" for one in (r"bad\377", r"worse\376"))
_SOCKET = """perl -MSocket -e 'socket(S,PF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un("{0}"))'"""
PROGRAMS = (
    "sed -i 's/line 3/LINE 3/' {a}",
    "sed -i '/line 7/d' {a} {b}",
    "echo more >> {a}",
    "awk '{{print NR\": \"$0}}' {a} > {n} && mv {n} {a}",
    "cp {a} {n}",
    "mv {a} {n}",
    "mv {a} {b}",
    "mv {a} {n}; echo more >> {n}",
    "mv {d} {n}; echo more >> {n}/g0",
    "mv {a} {b}; sed -i 's/line 2/LINE 2/' {b}",
    "mv node_modules {n}; echo more >> {n}/p/i.js",
    "mv {a} ../kept; mv ../kept {n}; echo more >> {n}",
    "find . -maxdepth 1 -name 'mine*' -type f -exec chmod u+x {{}} +",
    "ln -s {d} l2; echo through > l2/{n}; rm l2",
    "rm {a}",
    "rm -r {d}",
    "rm -r {d}; mkdir {d}; echo new > {d}/only",
    "mkdir -p {n}/x/y && cp {a} {n}/x/y/z",
    "mkdir -p {n}/only/folders",
    "mv {d} {n}",
    "cp -a {d} {n}",
    "find {d} -type f -exec sed -i s/line/LINE/ {{}} +",
    "ln -s {a} {n}",
    "ln -sfn {b} l0",
    "ln -sfn d1 l1",
    "rm l0; cp {a} l0",
    "rm {a}; ln -s {b} {a}",
    "rm {a}; ln -s nowhere {a}",
    "rm {a}; mkdir {a}; echo inside > {a}/f",
    "rm -r {d}; echo now a file > {d}",
    "rm -r {d}; ln -s f0.txt {d}",
    "rm l1; mkdir l1; echo inside > l1/f",
    "ln {a} {n}",
    "chmod 600 {a}",
    "chmod +x {a}",
    "chmod 700 {d}",
    "mkdir -m 700 {n}; echo key > {n}/key",
    "rm -r empty",
    "rmdir empty/in",
    "mkfifo {n}",
    "cp {a} {a}~; sed s/line/saved/ {a}~ > {a}; rm {a}~",
    "mv {a} {a}~; sed s/line/saved/ {a}~ > {a}",
    ": > {a}",
    "rm {a}; echo anew > {a}",
    "for i in 1 2 3; do echo $i > {n}.$i; done; rm {n}.2",
    "tar cf {n}.tar {a} {d}; rm -r {d}; tar xf {n}.tar; rm {n}.tar",
    "sort -r {a} -o {a}",
    r"printf '\000\001\002' > {a}",
    r"printf 'a\r\nb\r\n' > {a}",
    "mv {a} {A}",
    "rm -f 'with blank' -- -dash; echo new > 'an other'",
    "echo x > a.log; rm -f d0/b.log",
    "rm -rf out",
    "echo new > out/x; echo made > out/new",
    "echo '*.tmp' >> .gitignore; echo t > {n}.tmp",
    "echo 'd0/' > .gitignore",
    "rm -f .gitignore",
    "echo nothing > .gitignore",
    "mkdir -p node_modules; for i in 1 2 3 4 5 6 7 8 9; do mkdir -p node_modules/q$i; echo $i > node_modules/q$i/i.js; done",
    "rm -rf node_modules",
    "rm -r build",
    "echo s2 > sub/s; echo t > sub/t",
    "rm -rf sub",
    "rm -rf sub/.git",
    "mkdir {n}; cd {n}; git init -q --template= .; echo r > r; git add r; git commit -qm r; cd ..",
    "cd {d}; git init -q --template= .; git add -A; git commit -qm r; cd ..",
    "mv sub {n}",
    "cp -a sub {n}",
    "git clone -q sub {n}",
    "git init -q --template= .; git add -A; git commit -qm begun",
    "rm -rf .git",
    "mv {d} {D}",
    "chmod 400 {a} {b}",
    "chmod -R u+x {d}",
    "rm -f l1; ln -s {d} l1; echo through > l1/g0",
    "ln -sfn {n} l2; echo through > l2",
    "echo '{d}/' > .ignore; echo new > {d}/new",
    "rm -f .ignore; echo new > out/y",
    "rm -f .ignore .gitignore; echo x > a.log",
    "mkdir -p build; echo made > build/{n}; rm -f build/rules.mk",
    "rm -rf dist; mkdir dist; echo made > dist/{n}",
    "head -c 1100000 /dev/zero > {a}",
    "head -c 1100000 /dev/zero > {n}; rm {n}",
    "truncate -s 300000 {a}",
    "truncate -s 2000000 {n}; echo end >> {n}",
    "echo far | dd of={a} bs=1 seek=100000 conv=notrunc",
    "chmod 000 {a}",
    "chmod 4755 {a}",
    "chmod 1777 {d}",
    "chmod 2755 {d}; echo new > {d}/{n}",
    "chmod 555 {d}; echo new > {d}/{n}",
    "mkfifo {d}/{n}; mv {d} {n}",
    _SOCKET.format("{n}"),
    "rm {a}; " + _SOCKET.format("{a}"),
    f"echo more >> {_BAD}",
    f"mv {_BAD} {_WORSE}",
    f"rm -f {_BAD}; mkdir {_BAD}; echo in > {_BAD}/{_WORSE}",
    f"mv {{a}} {_BAD}",
    f"mv {{d}} {_WORSE}",
    f"ln -s {_BAD} {{n}}",
    "mv {a} {n}; mv {b} {a}; mv {n} {b}",
    "mv d0 {n}; mv d1 d0; mv {n} d1",
    "mv d0 d1/",
    "mv {d}/g0 .; mv {d}/g1 {n}",
    "mv {d} {n}; ln -s {n} {d}",
    "mv {d} {n}; mkdir {d}; cp {n}/g0 {d}/",
    "cp -rl {d} {n}",
    "ln -f {a} {b}",
    "ln -sfn ../{a} d0/link; ln -sfn . d1/here",
    "rm -f mine0; mkdir mine0; echo inside > mine0/f",
    "rm -rf mine; echo a file > mine",
    "mv mine {n}",
    "find {d} -name 'g*' -delete",
    "ls -d {d}/g* | xargs rm",
    "sed -i 's/line 2/LINE 2/' {a} & sed -i 's/line 4/LINE 4/' {b} & wait",
    "echo '!a.log' >> .gitignore; rm -f a.log",
    "mv .gitignore {n}",
    "rm -f .gitignore; ln -s {a} .gitignore",
    "rm -f .gitignore; mkdir .gitignore",
    "echo 'g*' > {d}/.gitignore; echo new > {d}/g9; rm {d}/g0",
    "rm -rf out; mkdir out; echo again > out/mine1",
    "mv out {n}",
    "mv {d} out/",
    "mv build {n}; mv {n} build",
    "mv node_modules {n}",
    "mkdir {n}; mv {d} {n}/; cd {n}; git init -q --template= .; cd ..",
    "mv sub/.git sub/git; echo s3 > sub/s",
    "mv sub/s {n}; rm -rf sub",
    "touch {a}; touch -d '2001-01-01' {b}",
)
IN_GIT = (
    "git stash -q -u",
    "git stash -q; git stash pop -q",
    "git checkout -q -- .",
    "git clean -qfd",
    "git clean -qfdx",
    "git reset -q --hard",
    "git add -A; git commit -qm agent",
    "git checkout -q -b other; echo other > {a}; git commit -qam other",
    "git checkout -q -b third; git rm -q {a}; git commit -qm gone; git checkout -q -",
    "git mv {a} {n}",
    "git mv {d} {n}",
    "git rm -q --cached {a}",
    "git add -f a.log",
    "mkdir -p .git/info; echo '*.log' >> .git/info/exclude; echo x > {n}.log",
    "rm -f .git/info/exclude; echo x > out/x",
    "echo '{d}/' > ../ignored; git config core.excludesFile ../ignored; echo x > {d}/{n}",
    "git config --unset core.excludesFile; echo x > {n}.tmp",
    "git worktree add -q {n}",
    "git -c protocol.file.allow=always submodule -q add ./sub {n}",
    (
        "git add -f out a.log; git commit -qm all; git rm -qr --cached out a.log; git commit -qm less; "
        "git checkout -q HEAD~; git checkout -q -"
    ),
    "git stash -q -a",
    "git mv d0 {n}; git commit -qm moved; git checkout -q HEAD~",
    "git rm -qr {d}; git commit -qm less; git revert --no-edit HEAD",
    "git checkout -q --orphan bare; git rm -rqf .; echo page > index.html",
    "git config core.ignoreCase true; git mv {a} {A}",
    "git diff > ../patch; git checkout -q -- .; git apply ../patch",
)
_READING = (
    *("Read", "Grep", "Glob", "AskUserQuestion", "ExitPlanMode", "WebFetch", "WebSearch"),
    *("TodoWrite", "BashOutput", "mcp__docs__search"),
)

# -- what the person does ------------------------------------------------------------------

_SAVES = (
    "echo {k} > {m}",
    "echo {k} > {m}.tmp; mv {m}.tmp {m}",
    "echo {k} >> {m}",
    "rm -f {m}",
    "mkdir -p mine; echo {k} > mine/{k}",
    "ln -sfn {k} mine-link",
    "mkdir -p {d}; echo {k} > {d}/mine{k}",
    "chmod 600 {m}",
    "echo {k} > out/mine1",
    "echo {k} > mine.log",
    "echo {k} > build/mine{k}",
    "echo {k} > sub/mine{k}",
    "echo {k} > mine.tmp",
    "rm -f l1; ln -s d1 l1",
    "mv {m} {m}.moved",
    "chmod +x {m}",
    "echo 'mine*' >> .gitignore",
    "rm -f .gitignore",
    "mv {a} mine{k}",
    "[ ! -f {a} ] || mv {a} {m}",
    "cp {a} {m}",
    "[ ! -d {d} ] || mv {d} mine{k}",
    "rm -rf {d}",
    "mkdir -p {d}; mv {m} {d}/",
    "rm -f {m}; mkdir {m}; echo {k} > {m}/in",
    "mkdir -p node_modules; echo {k} > node_modules/mine{k}",
    "chmod 700 {d}",
    "ln -f {m} {m}.twin",
    "rm -f {a}; ln -s {m} {a}",
    "echo {k} > \"$(printf 'mine\\377')\"",
    "git add -A; git commit -qm mine",
)
_FORMATTED = "[ ! -f {a} ] || sed -i 's/ of / OF /' {a}"
_SHARED = "[ ! -f {a} ] || echo 'person {k}' >> {a}"


class _Maker:
    """Makes one history of a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.made = 0
        self.git = False
        self.host = False
        self.others = False

    def number(self) -> int:
        self.made += 1
        return self.made

    def program(self) -> Step:
        some = IN_GIT if self.git and self.chance.random() < 0.2 else PROGRAMS
        a, b = self.chance.sample(FILES, 2)
        folder = f"d{self.chance.randrange(2)}"
        line = self.chance.choice(some).format(
            *(),
            a=a,
            b=b,
            d=folder,
            D=folder.upper(),
            n=f"n{self.number()}",
            A=a.upper() if "/" not in a else a + "X",
        )
        return Step("agent", line)

    def save(self) -> Step:
        number = self.number()
        line = _SHARED if self.chance.random() < 0.15 else self.chance.choice(_SAVES)
        name = f"mine{self.chance.randrange(3)}"
        a, folder = self.chance.choice(FILES), f"d{self.chance.randrange(2)}"
        return Step("person", line.format(k=number, m=name, a=a, d=folder))

    def saves(self, likely: float = 0.3) -> tuple[Step, ...]:
        return tuple(self.save() for _ in range(2) if self.chance.random() < likely)

    def command(self) -> Call:
        steps: list[Step | Call] = [*self.saves(0.15)]
        for _ in range(self.chance.randrange(1, 4)):
            steps += [self.program(), *self.saves(0.1)]
        behind: list[str] = []
        for _ in range(
            self.chance.randrange(1, 4) if self.host and self.chance.random() < 0.4 else 0
        ):
            name = self.chance.choice((*FILES, f"n{self.number()}", f"d0/n{self.made}"))
            behind.append(f"echo late {self.number()} >> {name}")
        return Call("Bash", tuple(steps), behind=tuple(behind))

    def own(self) -> Call:
        name = self.chance.choice((*FILES, f"n{self.number()}", f"w{self.made}/deep/x", "mine0"))
        step = Step("agent", f"written by ours {self.number()}")
        return Call("mcp__filepact__write_file", (*self.saves(0.1), step, *self.saves(0.1)), name)

    def write(self) -> Call:
        name = self.chance.choice((*FILES, f"n{self.number()}", f"w{self.made}/deep/x", "a.log"))
        lines = [f"sed -i 's/line 5/LINE 5/' {name}", f"echo written {self.number()} > {name}"]
        if "/" in name:
            lines[1] = f"mkdir -p {name.rpartition('/')[0]}; {lines[1]}"
        at = self.chance.randrange(2)
        steps = (*self.saves(0.2), Step("agent", lines[at]), *self.saves(0.2))
        if self.chance.random() < 0.1:
            steps = (*steps, Step("agent", _FORMATTED.format(a=name)))
        return Call(("Edit", "Write")[at], steps, name)

    def call(self, *, within: bool = True) -> Call:
        which = self.chance.random()
        if which < 0.45:
            return self.command()
        if which < 0.63:
            return self.write()
        if which < 0.7:
            return self.own()
        if which < 0.8 and within:
            inner: list[Step | Call] = []
            for _ in range(self.chance.randrange(3)):
                inner += [*self.saves(), self.call(within=False)]
            return Call("Task", (*inner, *self.saves()))
        return Call(self.chance.choice(_READING), self.saves(0.5))

    def beside(self, call: Call) -> tuple[Step | Call, ...]:
        """A call with one of another agent before it or within it, or within one of another agent."""
        another = self.command() if self.chance.random() < 0.6 else self.write()
        another = replace(another, another=True)
        which = self.chance.random()
        if which < 0.3:
            return another, call
        outer, inner = (call, another) if which < 0.7 else (another, call)
        if outer.tool not in ("Bash", "Edit", "Write"):
            return another, call
        at = self.chance.randrange(len(outer.steps) + 1)
        return (replace(outer, steps=(*outer.steps[:at], inner, *outer.steps[at:])),)

    def turn(self) -> tuple[Step | Call, ...]:
        made: list[Step | Call] = [*self.saves()]
        for _ in range(self.chance.randrange(1, 4)):
            call = self.call()
            if self.others and self.chance.random() < 0.5:
                made += [*self.beside(call), *self.saves()]
                continue
            made += [call, *self.saves()]
            if call.named and self.chance.random() < 0.1:
                made.append(Step("person", _FORMATTED.format(a=call.named)))
            if self.host and self.chance.random() < 0.6:
                made.append(Step("late"))
        return tuple(made)

    def history(self, door: Door, of: tuple[str, ...]) -> History:
        tree = [*_BASE, *self.chance.sample(_TREES, self.chance.randrange(7))]
        # Behind layers no program writes to what belongs to Git.
        self.git = door != "layers" and self.chance.random() < 0.6
        if of:
            self.git = _GIT in of
        self.host = door == "hook" and self.chance.random() < 0.3
        self.others = door == "hook" and not self.host and self.chance.random() < 0.3
        if self.git and not of:
            tree.insert(self.chance.randrange(len(_BASE), len(tree) + 1), _GIT)
        back = "--session" if door != "hook" or self.chance.random() < 0.3 else "--turn"
        if door == "hook":
            earlier = self.turn() if self.chance.random() < 0.3 else ()
            turn = self.turn()
        else:
            earlier, turn = (), (*self.saves(), self.command(), *self.saves())
        killed = self.host and self.chance.random() < 0.3
        return History(
            *(door, back, of or tuple(tree), earlier, turn, self.saves(0.4)),
            host=self.host,
            killed=killed,
            others=self.others,
        )


def history(seed: int, door: Door, of: tuple[str, ...] = ()) -> History:
    """The history of a seed; `of` a tree that is there already, if one is."""
    return _Maker(seed).history(door, of)


# -- smaller ones --------------------------------------------------------------------------


def _fewer(moves: tuple[Step | Call, ...]) -> Iterator[tuple[Step | Call, ...]]:
    """The same with one thing less."""
    for at, move in enumerate(moves):
        before, after = moves[:at], moves[at + 1 :]
        yield (*before, *after)
        if isinstance(move, Call):
            for less in _fewer(move.steps):
                yield (*before, replace(move, steps=less), *after)
            for out in range(len(move.behind)):
                less_behind = move.behind[:out] + move.behind[out + 1 :]
                yield (*before, replace(move, behind=less_behind), *after)
        elif "; " in move.line and "; do " not in move.line and move.line[0] != "[":
            parts = move.line.split("; ")
            for out in range(len(parts)):
                line = "; ".join(parts[:out] + parts[out + 1 :])
                # With an open quote a shell would wait for the rest of it.
                if not (line.count("'") % 2 or line.count('"') % 2):
                    yield (*before, replace(move, line=line), *after)


def smaller(one: History) -> Iterator[History]:
    """The same history with one thing less, for each of its things."""
    for turn in _fewer(one.turn):
        yield replace(one, turn=turn)
    for earlier in _fewer(one.earlier):
        yield replace(one, earlier=earlier)
    if one.killed:
        yield replace(one, killed=False)
    for at in range(len(one.later)):
        yield replace(one, later=one.later[:at] + one.later[at + 1 :])
    for at in range(len(one.tree)):
        yield replace(one, tree=one.tree[:at] + one.tree[at + 1 :])


# -- as a script ---------------------------------------------------------------------------

GIT = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@localhost",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@localhost",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    # No process more at every commit, which has nothing to do.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "maintenance.auto",
    "GIT_CONFIG_VALUE_0": "false",
}


ANOTHER = "t0"
"""The turn of the other agent: it has begun before all others, and goes on."""


def event(
    name: str, turn: str = "", call: Call | None = None, number: int = 0, **more: object
) -> dict[str, object]:
    """An event as Claude Code tells it."""
    session = "o" if turn == ANOTHER else "s"
    facts: dict[str, object] = {"session_id": session, "hook_event_name": name, **more}
    if turn:
        facts["prompt_id"] = turn
    if call is None:
        return facts
    given: dict[str, object] = {}
    if call.tool == "Bash":
        given = {"command": call.command}
    elif call.named or call.tool == "Read":
        given = {"file_path": call.named or "f0.txt"}
    facts |= {"tool_name": call.tool, "tool_input": given}
    if name != "PermissionRequest":
        facts["tool_use_id"] = f"toolu_{number}"
    return facts


def script(one: History) -> str:
    """A shell script that plays a history; `filepact` has to be on the path."""
    lines = ["#!/bin/sh", "B=$(mktemp -d); mkdir $B/root; cd $B/root"]
    lines += [
        "export HOME=$B FILEPACT_STATE_DIR=$B/state " + " ".join(f"{k}={v}" for k, v in GIT.items())
    ]
    lines += [f"({line})" if line.startswith("cd ") else line for line in one.tree]
    number = 0

    def say(facts: dict[str, object]) -> None:
        lines.append(f"filepact hook claude --root . <<'E'\n{json.dumps(facts)}\nE")

    def play(moves: tuple[Step | Call, ...], turn: str) -> None:
        nonlocal number
        for move in moves:
            if isinstance(move, Step):
                lines.append(f"({move.line})  # {move.who}")
            elif one.door == "hook":
                number += 1
                mine = number
                whose = ANOTHER if move.another else turn
                say(event("PreToolUse", whose, move, mine))
                play(move.steps, turn)
                say(event("PostToolUse", whose, move, mine))
            else:
                lines.append(f"# what runs under {one.door}:")
                play(move.steps, turn)

    if one.killed:
        lines.append(
            "# The agent is killed in its last call: that is not told as over, nor the turn."
        )
    if one.others:
        say(event("UserPromptSubmit", ANOTHER))
    for turn, moves in (("t1", one.earlier), ("t2", one.turn)):
        if moves and one.door == "hook":
            say(event("UserPromptSubmit", turn))
        play(moves, turn)
        if moves and one.door == "hook":
            say(event("Stop", turn))
    play(one.later, "")
    back = "--session s" if one.back == "--session" else one.back
    lines.append(
        f"filepact undo --unattended --root . {back}; find . -path ./.git -prune -o -print"
    )
    return "\n".join(lines)
