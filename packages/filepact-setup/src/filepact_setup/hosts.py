"""Agents and editors that filepact knows: which files each reads, and what it wants in them.

All of it is data.  In strings ``{program}`` stands for the program that starts filepact and ``{hook}``
for the line that a hook runs, ``{or}`` for what is done where that fails; the item ``{arguments}`` of a
list, for what follows the program.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from filepact.config.folders import agents_place, state_folder
from filepact.faces.cli import isolated_command
from filepact.values import dataclass, field
from filepact_setup.hook_command import EXIT, GONE, NAMED, filled, hook_text
from filepact_setup.settings_edit import OWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact_setup.settings_edit import SettingsFormat

__all__ = [
    "GUARDS",
    "HOSTS",
    "NAMED",
    "Guarding",
    "Host",
    "HostEvents",
    "HostFile",
    "command_in",
    "hook_wants",
    "hook_words",
    "host_place",
]

Guarding = Literal["own-tools", "only-filepact", "record"]
"""How far a host's own tools are guarded: by hooks, by hooks and without those that write, or only
recorded."""

GUARDS: Final[tuple[Guarding, ...]] = ("own-tools", "only-filepact", "record")


@dataclass(frozen=True, slots=True)
class HostFile:
    """A settings file, and what is wanted in it.

    Attributes:
        path: Where; ``~`` for the home folder, else relative to the project.
        wants: What to put in; the whole text of a file that is ours alone.
        kind: Its format.
        others: Names that it may have instead.
    """

    path: str
    wants: Mapping[str, Any] | str
    kind: SettingsFormat | Literal["text"] = "json"
    others: tuple[str, ...] = ()

    @property
    def shared(self) -> bool:
        """Whether a team keeps it in its repository."""
        return not self.path.startswith("~") and ".local." not in self.path


@dataclass(frozen=True, slots=True)
class HostEvents:
    """The hooks of a host.

    Attributes:
        path: The settings file of the person, for all projects, as for `HostFile`.
        before: Events before something is done, which can be refused; first that of any tool.
        after: Other events; first the one after any tool.
        entry: What stands in the list of each event, where ``{event}`` is its name; or the whole
            text of a program that calls the hook, where ``{events}`` are the names of all.
        beside: What else that file has to hold.
        files: Further files that have to hold something for it.
        team: The file of a project that a team shares; empty for none.
        former: Another one of the project, in which earlier versions put them.
        upwards: Whether the project's file counts in the folders below it as well.
        plain: Whether the host reads its file only if that has no comments, and else says nothing.
        deny: What is printed to refuse a call; empty where an exit code of 2 does so.
        off: By what the host itself is told to call none: files, the keys of a setting, and its value.
    """

    path: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    entry: Mapping[str, Any] | str
    beside: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[HostFile, ...] = ()
    team: str = ""
    former: str = ""
    upwards: bool = False
    plain: bool = False
    off: tuple[tuple[tuple[str, ...], str, bool], ...] = ()
    deny: str = ""

    def wanted(self, path: str = "") -> tuple[HostFile, ...]:
        """The files with the hooks: the person's, or that of a project."""
        events = (*self.before, *self.after)
        files = () if path else self.files
        path = path or self.path
        if isinstance(self.entry, str):
            text = filled(self.entry, {"{events}": json.dumps(events)})
            return (HostFile(path, text, "text"), *files)
        lists: dict[str, Any] = {}
        for event in events:
            way = "{refuse}" if event in self.before else "exit 0"
            lists[event] = [filled(self.entry, {"{event}": event, "{or}": way})]
        return (HostFile(path, {**self.beside, "hooks": lists}), *files)


@dataclass(frozen=True, slots=True)
class Host:
    """An agent or editor that starts MCP servers.

    Attributes:
        name: What people type.
        title: What it is called.
        programs: What it is started with; the first that is found counts.
        server: Where it is told of the server.
        trust: What it still asks the person for; empty for nothing.
        inside: Whether it starts servers in the project's folder.
        terminal: Whether it is started in a terminal, and so finds the programs of the shell.
        hooks: How it calls hooks; None where it has none that filepact knows.
        only: What takes its own tools away that write; empty where no file can.
        by_hand: How they are taken away where no file can.
        tools: Whether it has any of its own that write.
        plugins: Where it is told of the plugin of ours, which brings server and hooks.
    """

    name: str
    title: str
    programs: tuple[str, ...]
    server: HostFile
    trust: str = ""
    inside: bool = True
    terminal: bool = False
    hooks: HostEvents | None = None
    only: tuple[HostFile, ...] = ()
    by_hand: str = ""
    tools: bool = True
    plugins: tuple[HostFile, ...] = ()

    @property
    def user_wide(self) -> bool:
        """Whether the server is told for all projects at once."""
        return self.server.path.startswith("~")

    def files(self, guard: Guarding | None, *, team: bool = False) -> tuple[HostFile, ...]:
        """Return the host's files for one way to guard; None for the server alone.

        Args:
            guard: The way.
            team: Whether the project's own file is to have the hooks as well.
        """
        found: tuple[HostFile, ...] = () if guard == "record" else (self.server,)
        if guard is not None and self.hooks is not None:
            found += self.hooks.wanted()
            if team and self.hooks.team:
                found += self.hooks.wanted(self.hooks.team)
        return found + (self.only if guard == "only-filepact" else ())

    def every_file(self) -> tuple[HostFile, ...]:
        """Return all files that the host may have, or had, for any way to guard."""
        found = (self.server, *self.only)
        if self.hooks is not None:
            projects = dict.fromkeys(filter(None, (self.hooks.team, self.hooks.former)))
            found += self.hooks.wanted()
            found += tuple(self.hooks.wanted(one)[0] for one in projects)
        return found


_ENTRY: Final = {"command": "{program}", "args": ["{arguments}"]}
_SERVERS: Final = {"mcpServers": {OWN: _ENTRY}}


def _group(command: str = "{hook} || {or}") -> dict[str, Any]:
    return {"matcher": "*", "hooks": [{"type": "command", "command": command}]}


_BY_EVENT: Final = "{hook} --event {event} || {or}"

_CLAUDE_PROJECT: Final = (".claude/settings.json", ".claude/settings.local.json")
_CLAUDE_SETTINGS: Final = ("~/.claude/settings.json", *_CLAUDE_PROJECT)
_CLAUDE_MANAGED: Final = f"{agents_place('/etc/claude-code')}/managed-settings.json"
_ZED: Final = f"{agents_place('~/.config/zed')}/settings.json"

_PLUGIN: Final = """\
// Written by `filepact setup opencode`; `filepact setup opencode --remove` takes it away.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { isAbsolute, join, relative } from "node:path"

const HOOK = {hook}
const EVENTS = {events}
const BEFORE = {before}
const GONE = "{gone}"
const turns = {}
// One plugin may be installed for all projects and one for this: a text of both is shown once.
const shown = (globalThis[Symbol.for("filepact.shown")] ??= new WeakMap())

// By its name it is none of the project's own.
function program(inside) {
  const [name] = HOOK
  if (isAbsolute(name)) return name
  const paths = (process.env.PATH ?? "").split(":").map((folder) => join(folder, name))
  const found = paths.find(existsSync) ?? ""
  const own = inside.some((folder) => !relative(folder, found).startsWith(".."))
  return isAbsolute(found) && !own ? found : ""
}

function ask(event, inside, facts) {
  if (!EVENTS.includes(event)) return Promise.resolve({})
  const failed = (why) => {
    const text = `${GONE} (${why})`
    return BEFORE.includes(event) ? { decision: "deny", reason: text } : { message: text }
  }
  return new Promise((done) => {
    const hook = spawn(program(inside) || "/dev/null", [...HOOK.slice(1), "--event", event], {
      cwd: facts.cwd,
      stdio: ["pipe", "pipe", "inherit"],
      env: Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PYTHON"))),
    })
    let said = ""
    hook.stdout.on("data", (part) => (said += part))
    hook.on("error", (error) => done(failed(error.message)))
    hook.on("close", (code) => {
      try {
        const answer = JSON.parse(code === 0 ? said || "{}" : "null")
        done(Object(answer) === answer ? answer : failed(`its hook ended with ${code}`))
      } catch (error) {
        done(failed(error.message))
      }
    })
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify(facts))
  })
}

export const Filepact = async ({ client, directory, worktree }) => {
  const inside = [directory, worktree ?? directory].filter((folder) => folder !== "/")
  async function tell(of, event, session, facts = {}) {
    const said = await ask(event, inside, {
      session_id: session ?? "",
      turn_id: turns[session] ?? "",
      cwd: directory,
      ...facts,
    })
    if (said.message && shown.get(of) !== said.message) {
      shown.set(of, said.message)
      await client.tui?.showToast({ body: { message: said.message, variant: "warning" } }).catch(() => {})
    }
    if (said.decision === "deny") throw new Error(said.reason)
  }
  return {
    event: async ({ event }) => {
      const name = event.type.replace("permission.v2.", "permission.")
      if (EVENTS.includes(name)) await tell(event, name, event.properties.info?.id ?? event.properties.sessionID)
    },
    "chat.message": async (input, output) => {
      turns[input.sessionID] = output.message?.id ?? input.messageID
      await tell(input, "chat.message", input.sessionID)
    },
    "tool.execute.before": async (input, output) =>
      tell(input, "tool.execute.before", input.sessionID, {
        tool: input.tool,
        tool_use_id: input.callID,
        args: output.args,
      }),
    "tool.execute.after": async (input) =>
      tell(input, "tool.execute.after", input.sessionID, {
        tool: input.tool,
        tool_use_id: input.callID,
        args: input.args,
      }),
  }
}
"""

HOSTS: Final = (
    Host(
        name="claude",
        title="Claude Code",
        programs=("claude",),
        terminal=True,
        server=HostFile(".mcp.json", _SERVERS),
        hooks=HostEvents(
            "~/.claude/settings.json",
            team=".claude/settings.json",
            former=".claude/settings.local.json",
            plain=True,
            off=(
                ((*_CLAUDE_SETTINGS, _CLAUDE_MANAGED), "disableAllHooks", True),
                ((_CLAUDE_MANAGED,), "allowManagedHooksOnly", True),
            ),
            before=("PreToolUse",),
            after=(
                *("PostToolUse", "PostToolUseFailure", "PermissionRequest", "UserPromptSubmit"),
                *("SessionStart", "SessionEnd", "Stop"),
            ),
            entry=_group(),
        ),
        only=(
            HostFile(
                ".claude/settings.local.json",
                {"permissions": {"deny": ["Bash", "Edit", "NotebookEdit", "Write"]}},
            ),
        ),
        trust="At its next start Claude Code asks whether you trust the folder and the server "
        "filepact: say yes.",
        plugins=tuple(
            HostFile(path, {"enabledPlugins": {"filepact@filepact": True}})
            for path in _CLAUDE_SETTINGS
        ),
    ),
    Host(
        name="codex",
        title="Codex",
        programs=("codex",),
        server=HostFile(
            "~/.codex/config.toml",
            # Otherwise its first turn does not wait for the server.
            {"mcp_servers": {OWN: {**_ENTRY, "required": True}}},
            "toml",
        ),
        hooks=HostEvents(
            "~/.codex/hooks.json",
            before=("PreToolUse",),
            after=("PostToolUse", "PermissionRequest", "UserPromptSubmit", "SessionStart", "Stop"),
            # It takes the person's shell, which may be of any kind.
            entry=_group('/bin/sh -c \'"$0" "$@" || {or}\' {hook}'),
            files=(HostFile("~/.codex/config.toml", {"features": {"hooks": True}}, "toml"),),
            off=((("~/.codex/config.toml",), "features.hooks", False),),
        ),
        only=(
            HostFile(
                "~/.codex/config.toml",
                {"sandbox_mode": "read-only", "features": {"shell_tool": False}},
                "toml",
            ),
        ),
        trust="Codex runs no new or changed hook before you trust it: start codex, type /hooks and press t.",
    ),
    Host(
        name="gemini",
        title="Gemini CLI",
        programs=("gemini",),
        terminal=True,
        server=HostFile(".gemini/settings.json", _SERVERS),
        hooks=HostEvents(
            "~/.gemini/settings.json",
            team=".gemini/settings.json",
            off=(
                (
                    ("~/.gemini/settings.json", ".gemini/settings.json"),
                    "hooksConfig.enabled",
                    False,
                ),
            ),
            before=("BeforeTool",),
            after=(
                *("AfterTool", "Notification", "BeforeAgent"),
                *("AfterAgent", "SessionStart", "SessionEnd"),
            ),
            entry=_group(),
        ),
        only=(
            HostFile(
                ".gemini/settings.json",
                {"tools": {"exclude": ["run_shell_command", "write_file", "replace"]}},
            ),
        ),
        trust="Gemini CLI uses none of it before you trust the folder: it asks, or type /permissions.",
        plugins=(
            HostFile("~/.gemini/extensions/filepact/gemini-extension.json", {"name": "filepact"}),
        ),
    ),
    Host(
        name="opencode",
        title="OpenCode",
        programs=("opencode",),
        terminal=True,
        server=HostFile(
            "opencode.json",
            {
                "mcp": {
                    OWN: {
                        "type": "local",
                        "command": ["{program}", "{arguments}"],
                        "enabled": True,
                    }
                }
            },
            others=("opencode.jsonc",),
        ),
        hooks=HostEvents(
            "~/.config/opencode/plugin/filepact.js",
            team=".opencode/plugin/filepact.js",
            upwards=True,
            before=("tool.execute.before",),
            after=(
                *("tool.execute.after", "chat.message"),
                *("session.created", "session.idle", "permission.asked"),
            ),
            entry=_PLUGIN,
        ),
        only=(
            HostFile(
                "opencode.json",
                {"permission": {"edit": "deny", "bash": "deny"}},
                others=("opencode.jsonc",),
            ),
        ),
    ),
    Host(
        name="copilot",
        title="Copilot CLI",
        programs=("copilot",),
        server=HostFile(
            "~/.copilot/mcp-config.json",
            {"mcpServers": {OWN: {"type": "local", **_ENTRY, "tools": ["*"]}}},
        ),
        hooks=HostEvents(
            "~/.copilot/hooks/filepact.json",
            before=("preToolUse",),
            after=(
                *("postToolUse", "postToolUseFailure", "userPromptSubmitted"),
                *("agentStop", "sessionStart", "sessionEnd"),
            ),
            entry={"type": "command", "bash": _BY_EVENT},
            deny='{"permissionDecision":"deny","permissionDecisionReason":"{gone}"}',
            beside={"version": 1},
        ),
        by_hand="Start it as: copilot --excluded-tools=bash,create,edit,apply_patch",
    ),
    Host(
        name="vscode",
        title="VS Code",
        programs=("code",),
        server=HostFile(".vscode/mcp.json", {"servers": {OWN: {"type": "stdio", **_ENTRY}}}),
        trust="VS Code asks whether you trust the server when it first starts it.",
        by_hand="Switch its own tools off in the tools menu of the chat.",
    ),
    Host(
        name="cursor",
        title="Cursor",
        programs=("cursor", "cursor-agent"),
        server=HostFile(".cursor/mcp.json", _SERVERS),
        hooks=HostEvents(
            "~/.cursor/hooks.json",
            team=".cursor/hooks.json",
            before=("preToolUse", "beforeReadFile", "beforeShellExecution"),
            after=(
                *("postToolUse", "postToolUseFailure", "afterFileEdit", "afterShellExecution"),
                *("beforeSubmitPrompt", "sessionStart", "sessionEnd", "stop"),
            ),
            entry={"command": _BY_EVENT},
            deny='{"permission":"deny","user_message":"{gone}","agent_message":"{gone}"}',
            beside={"version": 1},
        ),
        trust="Cursor starts the server once you switch it on in its settings, under MCP.",
        by_hand="Cursor has no setting for it; hooks can refuse what its own tools do.",
    ),
    Host(
        name="zed",
        title="Zed",
        programs=("zed", "zeditor"),
        server=HostFile(
            _ZED,
            {"context_servers": {OWN: {"source": "custom", **_ENTRY, "env": {}}}},
        ),
        only=(
            HostFile(
                _ZED,
                {
                    "agent": {
                        "tool_permissions": {
                            "tools": {
                                tool: {"default": "deny"}
                                for tool in (
                                    *("copy_path", "create_directory", "delete_path", "edit_file"),
                                    *("move_path", "restore_file_from_disk", "save_file"),
                                    *("terminal", "write_file"),
                                )
                            }
                        }
                    }
                },
            ),
        ),
    ),
    Host(
        name="windsurf",
        title="Windsurf",
        programs=("windsurf",),
        server=HostFile("~/.codeium/windsurf/mcp_config.json", _SERVERS),
        inside=False,
        trust="Press refresh in Windsurf's list of MCP servers.",
        by_hand="Windsurf has no setting for it.",
    ),
    Host(
        name="cline",
        title="Cline",
        programs=("cline",),
        server=HostFile("~/.cline/data/settings/cline_mcp_settings.json", _SERVERS),
        inside=False,
        by_hand="Cline has no setting for it; switch its automatic approval of edits and commands off.",
    ),
    Host(
        name="claude-desktop",
        title="Claude Desktop",
        programs=("claude-desktop",),
        server=HostFile(f"{agents_place('~/.config/Claude')}/claude_desktop_config.json", _SERVERS),
        inside=False,
        trust="Quit Claude Desktop and start it again.",
        tools=False,
    ),
)

_MOVED: Final = {
    "~/.claude": "CLAUDE_CONFIG_DIR",
    "~/.codex": "CODEX_HOME",
    "~/.copilot": "COPILOT_HOME",
    "~/.config": "XDG_CONFIG_HOME",
    "~/AppData/Roaming": "APPDATA",
}
"""Folders of settings that a variable of the host moves elsewhere."""


def host_place(path: str, project: Path) -> Path:
    """The absolute path of a settings file, links not followed."""
    for folder, variable in _MOVED.items():
        named = os.environ.get(variable)
        if named and path.startswith(f"{folder}/"):
            return Path(named).expanduser().absolute() / path[len(folder) + 1 :]
    return Path(path).expanduser() if path.startswith("~") else project / path


def command_in(host: Host, file: HostFile) -> tuple[str, ...]:
    """The command that starts this installation from a file of a host.

    In a file that a team shares it is a name, where the shell finds this installation by it.
    """
    found = shutil.which("filepact") if host.terminal and file.shared else None
    own = (Path(sys.executable).with_name("filepact"), Path(sys.argv[0]))
    if found and any(map(Path(found).samefile, filter(Path.is_file, own))):
        return NAMED
    return isolated_command()


def hook_words(
    host: Host,
    project: Path,
    options: Sequence[str],
    guard: Guarding = "own-tools",
    *,
    path: str = "",
) -> list[str]:
    """The command that a host's hooks run.

    Args:
        host: The host.
        project: The folder, which a hook for all projects, or for all of a team, finds by itself.
        options: Of every command line for a host.
        guard: What they are for; a hook for all projects finds that with the folder.
        path: The file of the project in which it stands; empty for the person's own.
    """
    if not path:
        # What a project's settings put into the environment must not choose the list of folders.
        place = () if "--state" in options else ("--state", state_folder())
        return [*isolated_command(), "hook", host.name, "--where-set-up", *place, *options]
    mode = {"own-tools": [], "only-filepact": ["--strict"], "record": ["--record"]}[guard]
    command = command_in(host, HostFile(path, ""))
    where = [] if command == NAMED else ["--root", str(project)]
    return [*command, "hook", host.name, *mode, *where, *options]


def hook_wants(hooks: HostEvents, file: HostFile, words: Sequence[str]) -> Any:
    """Return the settings of a file of hooks that run this command; hooks that only record refuse nothing."""
    records, gone = "--record" in words, GONE.replace("{path}", file.path)
    if isinstance(file.wants, str):
        before = json.dumps(() if records else hooks.before)
        lists = {"{hook}": json.dumps(words), "{before}": before, "{gone}": gone}
        return filled(file.wants, lists)
    refuse = "exit 0" if records else f"echo '{hooks.deny}'" if hooks.deny else EXIT
    lines = {"{hook}": hook_text(words), "{refuse}": refuse, "{gone}": gone}
    return filled(file.wants, lines)
