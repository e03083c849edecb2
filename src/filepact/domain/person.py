"""Whose word a command is: what only a person decides, and by what one knows that an agent asks.

A list of programs is never complete.  What is not in it is known by what it does: it calls a hook, and
is noted with its process number and start time while that call is under way; or we run it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = [
    "AGENT_VARIABLES",
    "ANY_WORD",
    "DECIDING",
    "Ancestor",
    "Caller",
    "beyond_host",
    "caller",
    "command_place",
    "decides",
    "has_started",
    "host_among",
]

ANY_WORD: Final = "*"
"""In `DECIDING`: any word that is no option."""

_ALWAYS: Final[tuple[str, ...]] = ()

DECIDING: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("approve", "reject", "review", "undo", "redo", "restore"), _ALWAYS),
    **dict.fromkeys(("policy", "grants"), ("--revoke",)),
    "trust": (ANY_WORD,),
    "runs": ("--commit", "--discard"),
    "setup": ("--write", "--remove"),
    "config": ("edit",),
    "doctor": ("--repair", "--moved"),
    "state": ("repair", "move"),
    "store": ("migrate", "copy", "prune"),
    "guard": ("--stop",),
}
"""Commands that decide, or change what guards: each with the words that make it one, none for always."""

_ONLY_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("undo", "redo", "restore", "setup"), ("--dry-run",)),
    "review": ("--list", "--watch"),
}
_VALUES: Final = frozenset({"--root", "--state", "--config"})

AGENT_VARIABLES: Final[Mapping[str, str]] = {
    "FILEPACT_RUN": "filepact-run",
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "CODEX_SANDBOX_NETWORK_DISABLED": "codex",
    "CODEX_THREAD_ID": "codex",
    "CODEX_CI": "codex",
    "GEMINI_CLI": "gemini-cli",
    "QWEN_CODE": "qwen-code",
    "OPENCODE": "opencode",
    "COPILOT_CLI": "copilot",
    "CURSOR_AGENT": "cursor",
    "AI_AGENT": "agent",
}
"""Variables that agents' programs set for what they start, and the agent; they only ever refuse."""

_PROGRAMS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("claude", "claude-code-acp", "claude-agent-acp"), "claude-code"),
    **dict.fromkeys(("codex", "codex-acp"), "codex"),
    **dict.fromkeys(("gemini", "gemini-cli"), "gemini-cli"),
    **dict.fromkeys(("qwen", "qwen-code"), "qwen-code"),
    **dict.fromkeys(("kimi", "kimi-code"), "kimi-code"),
    **{
        one: one
        for one in ("opencode", "copilot", "crush", "aider", "goose", "amp", "droid", "auggie")
    },
    **{one: one for one in ("cline", "openhands", "iflow", "kilocode", "codebuff", "fast-agent")},
    "cursor-agent": "cursor",
    "vibe": "mistral-vibe",
}
_PACKAGES: Final[Mapping[str, str]] = {
    "@anthropic-ai/claude-": "claude-code",
    "@agentclientprotocol/claude-": "claude-code",
    "@zed-industries/claude-": "claude-code",
    "@openai/codex": "codex",
    "@google/gemini-cli": "gemini-cli",
    "@qwen-code/": "qwen-code",
    "@moonshot-ai/": "kimi-code",
    "@github/copilot": "copilot",
    "@sourcegraph/amp": "amp",
    "opencode-ai/": "opencode",
}
"""Packages below a `node_modules` whose scripts are agents, whatever the script is called."""

_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "tcsh", "csh", "nu"})
_INTERPRETERS: Final = (*_SHELLS, "node", "nodejs", "bun", "deno", "ruby", "perl", "tsx")
_WITH_VALUE: Final = frozenset({"-r", "--require", "--import", "--loader", "-W", "-X", "-o", "-O"})
_TEXTS: Final = frozenset({"-c", "-e", "-p", "--eval", "--print"})
_LAUNCHERS: Final = frozenset(
    {"env", "uv", "uvx", "pipx", "npm", "npx", "mise", "direnv", "timeout", "nice"}
)
_NO_HOSTS: Final = frozenset({
    "init", "systemd", "login", "sshd", "sshd-session", "su", "sudo", "tmux", "screen", "cron",
    "java", "idea", "pycharm", "webstorm", "goland", "clion", "rider", "emacs", "vim", "nvim",
    "zed", "zed-editor", "code", "code-insiders", "codium", "cursor", "windsurf", "server-main",
})  # fmt: skip
"""Programs below which a person has their shells, though they may start a server for an agent as well."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A process above another, as the system tells of it.

    Attributes:
        started: When, in the system's own count: no later process with this number has the same.
        name: Of its main thread, at most 15 characters.
        words: Its command line; empty where that was not asked for, or is not told.
    """

    process: int
    started: str
    name: str
    words: tuple[str, ...] = ()

    @property
    def called(self) -> str:
        """The name of the process's executable."""
        return _base(self.words[0]).lstrip("-") if self.words else self.name

    @property
    def program(self) -> str:
        """The name of its executable, or of the script that it interprets."""
        return _base(self.script) or self.called

    @property
    def is_shell(self) -> bool:
        """Whether the process is a shell that interprets no script."""
        return self.called in _SHELLS and not self.script

    @property
    def runs_text(self) -> bool:
        """Whether it is a shell that was given its commands as a word: it ends with them."""
        return self.is_shell and any(map(self._is_text, self.words[1:]))

    @property
    def script(self) -> str:
        """The file or module that an interpreter was told to run; empty for neither."""
        called = self.called
        if called not in _INTERPRETERS and not called.startswith(("python", "pypy")):
            return ""
        left = iter(self.words[1:])
        for word in left:
            if self._is_text(word):
                return ""
            if word == "-m" and called not in _SHELLS:
                return next(left, "").partition(".")[0]
            if word in _WITH_VALUE:
                next(left, "")
            elif not word.startswith("-") and word != "run":
                return word
        return ""

    def _is_text(self, word: str) -> bool:
        """Whether an option says that a word holds the commands."""
        if self.called in _SHELLS:
            return word.startswith("-") and word[1:].isalpha() and word.endswith("c")
        return word in _TEXTS

    @property
    def agent(self) -> str:
        """The agent that it is, by its name; empty for none that is known."""
        # The words of a program are its own: a folder or a file among them may have any name.
        for name in (self.program, self.name):
            if name in _PROGRAMS:
                return _PROGRAMS[name]
        path = self.script or (self.words[0] if self.words else "")
        inside = path.rpartition("/node_modules/")[2] if "/node_modules/" in path else ""
        if "/cursor-agent/versions/" in path:
            return "cursor"
        return next((agent for part, agent in _PACKAGES.items() if inside.startswith(part)), "")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who has called a command, as far as the system tells.

    Attributes:
        agent: The name that rules know it by; empty for none.
        because: What told so, for people.
        programs: The programs above, the nearest first.
        known: Whether the system told of all of them.
    """

    agent: str
    because: str
    programs: tuple[str, ...]
    known: bool

    def __str__(self) -> str:
        if self.agent:
            return f"below an agent ({self.because})"
        return "no agent above" if self.known else "what is above is not known"


def caller(
    above: Sequence[Ancestor],
    noted: Mapping[tuple[int, str], str],
    environment: Mapping[str, str],
    *,
    known: bool,
) -> Caller:
    """Work out who has called.

    Args:
        above: The processes above the command, the nearest first.
        noted: Processes with a call of their own under way, or that we run, each with the agent's name.
        environment: The command's.
        known: Whether these are all that there are.
    """
    programs = tuple(one.name for one in above)
    for one in above:
        agent = noted.get((one.process, one.started)) or one.agent
        if agent:
            return Caller(agent, f"{one.program}, process {one.process}", programs, known)
    for name, agent in AGENT_VARIABLES.items():
        if environment.get(name):
            return Caller(agent, f"{name} is set", programs, known)
    return Caller("", "", programs, known)


def host_among(above: Sequence[Ancestor]) -> Ancestor | None:
    """The program for which a hook was called, or a server started; None where a person may be it.

    Args:
        above: The processes above the hook or the server, the nearest first.
    """
    for one in above:
        if one.runs_text or one.program in _LAUNCHERS:
            continue
        own = any(
            word.startswith("--type=") for word in one.words
        )  # an editor's process for extensions
        name = one.program.partition(".")[0].partition(":")[0]
        return None if one.is_shell or (name in _NO_HOSTS and not own) else one
    return None


def beyond_host(above: Sequence[Ancestor]) -> Sequence[Ancestor]:
    """The processes above the one that a server serves; all, where that may be a shell of an agent's.

    Args:
        above: The processes above the server, the nearest first.
    """
    place = next((at for at, one in enumerate(above) if one.program not in _LAUNCHERS), 0)
    return above if not above or above[place].is_shell else above[place + 1 :]


def has_started(above: Sequence[Ancestor], below: Iterable[Ancestor]) -> bool:
    """Whether an agent's program, the first of some, has started what is below it, besides our hooks."""
    # One without words, or with those of the program, is about to become another, ours perhaps, or has ended.
    said = (" ".join(one.words) for one in below if one.words != above[0].words)
    return any(one and ("filepact" not in one or " hook " not in one) for one in said)


def command_place(words: Sequence[str]) -> int:
    """Where the command's name stands among the words after `filepact`; behind them all for none."""
    place = 0
    while words[place : place + 1] and words[place].startswith("-"):
        place += 2 if words[place] in _VALUES else 1
    return min(place, len(words))


def decides(words: Sequence[str]) -> bool:
    """Whether the words after `filepact` decide something, or change what guards.

    Args:
        words: As they were typed; options of every command may stand before the command's name.
    """
    end = words.index("--") if "--" in words else len(words)
    said = words[command_place(words) : end]
    command = said[0] if said else ""
    if command not in DECIDING or {"-h", "--help", *_ONLY_SHOWN.get(command, ())} & {*said}:
        return False
    wanted, rest = DECIDING[command], [*said[1:], *words[end:]]
    if not wanted:
        return True
    if ANY_WORD in wanted:
        return any(not one.startswith("-") for one in rest)
    return any(one.partition("=")[0] in wanted for one in rest)


def _base(path: str) -> str:
    return path.rpartition("/")[2]
