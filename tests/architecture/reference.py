"""The pages of the reference that say what the code says already: tools and commands.

`scripts/reference` writes them; a test compares.  What a person should read there is therefore
written where it is used: in a tool's description and in a command's help.
"""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from acp_conformance import GROUPS
from filepact.tools.engine import SERVER_TOOLS
from filepact_cli.main import build_parser
from filepact_diagnostics.lsp.builtin import builtin_servers
from filepact_diagnostics.solution import SOLUTION_TOOLS
from tests.architecture.project import REFERENCE
from tests.servers.random_edits import LANGUAGES
from tests.servers.situations import CASES, TRIED
from tests.servers.sync_trees import PROJECTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

COMMON = "options of every command"

_TOOLS = """\
# Tools

<!-- Made by scripts/reference from the tools themselves; change them instead of this page. -->

What an agent may call. A tool's *level* says what it can do: `safe` tools only look, `moderate` ones change files. Its *tier*
says how much it is needed; `filepact mcp --tier` and `--max-level` show fewer tools.

A path is relative to the first root, or absolute inside any root. Every path passes the guard, and so does each single hit of
a search. The page [Errors](errors.md) says what a refusal means; [How files are read](../explanation/reading.md) what comes of long
lines, large files, bytes and pictures, and [What is searched](../explanation/what-is-searched.md) what searches leave out.

What may be left out may also be sent empty (`""`, `[]`, `{}` or null), since some programs send every parameter; only `new_string` and `old_string`
of `edit_file` mean an empty text by it. `"null"`, `"None"` and `"undefined"` say nothing either where they cannot be meant as a text, nor do 0 and false for
a list or a word to choose from. A list may be sent as JSON in a text, and one item stands for a list of it.
"""

_SOLUTION = """\
# The toolset `solution`

<!-- Made by scripts/reference from the tools themselves; change them instead of this page. -->

What an agent may call behind `filepact mcp --toolset solution PATH`. How to use it: [Serve a solution](../how-to/solution-toolset.md).

`PATH` is a `.sln`, `.slnx` or `.csproj` file, whose folder is the root, or a folder that any language server understands. Projects that a
solution names above or outside of its folder are not covered; `load` names them in its `messages`. Further folders may follow `PATH`.

## The envelope

Every answer, a refusal too, is one object; the text of the answer is the same object as JSON.

| field | |
| --- | --- |
| `success` | whether the call did what it was asked for |
| `data` | what came of it, below; null after a refusal |
| `meta.durationMs` | how long it took |
| `meta.cancelled` | whether the caller gave the call up; what was written by then stays, and `data` says so |
| `meta.timedOut` | whether the call ended because its time was over |
| `meta.timeoutMs` | the time that one call is allowed, 20 minutes |
| `meta.news` | only if there is any: what a person said meanwhile to changes that waited, and what became of calls whose answers nobody wanted |
| `error` | null, or `{code, message, hint}`, both texts together in at most 1,200 characters; the codes are those of [Errors](errors.md) |

Paths in an answer are absolute, or with `pathStyle: "relative"` count from the root; what lies in a further folder is always absolute.
Lists come in pages, `paging: {skip, take, returned, total}`. Lines and columns begin at 1, columns count characters, and the end of a
place is the first character behind it.

## What `write_file` answers

| field of `data` | |
| --- | --- |
| `filePath` | the file |
| `changed` | whether the text differs from what the file holds; of a preview, whether it would |
| `applied` | whether it is on the disk now because of this call |
| `created` | whether the file is new; of a preview, whether it would be |
| `filesChanged`, `changedFiles` | the files, each with `filePath`, `changeCount` (places that differ) and `diff` |
| `unifiedDiff` | the difference; null with `includeDiff: false`. Cut at a line, and the last line then says how much is missing |
| `workspaceUpdate` | how the language servers took it, below |
| `operation` | the id under which it is undone; null if nothing was written |
| `pending` | `{id, rule, message}` if a person has to approve it first: nothing is written yet. Else null |
| `notes` | what else should be known, such as that somebody else's change was merged |
| `hints.nextSteps` | what the caller can do now, one sentence each; empty if all is well |

A preview counts as having read the file: if somebody changes it before `applyChanges`, both changes are merged by lines, and where
that cannot be done the answer is `STALE_FILE`.

## What the tools of servers' edits answer

`rename_symbol` and `code_action` do what a language server would do, as one change: previewed, judged by the rules file by file, written whole
or not at all, and undone under one id. The server is shown every file that it names, with what editors have not saved and what the session
has proposed; a file that is another by the time of the change is `STALE_FILE`. Nothing is changed where one of the files lies outside or may
not be read or written (`PATH_BLOCKED`), where the server has nothing to do or its edits fit nothing (`SERVER_REFUSED`), or where none offers it
(`NO_SERVER`). A folder to which the server gives another name goes with all that is in it, ignored files, pictures and empty folders too; it is
refused where the name is taken, where its steps, tried one after the other on a model, come to something else than the one change, and
where there are more than 5,000 files and folders in it (`FILE_TOO_LARGE`). A folder that the server would delete stays (`SERVER_REFUSED`).

A name is found by `line` and `column`, by `line` and `name`, or by `name` alone where the file declares it once; else `AMBIGUOUS_MATCH` lists
the places. Paths in these answers count from the root. A server has 60 seconds, its start included.

- `rename_symbol` answers as `write_file` does. Of a change of several files `unifiedDiff` holds all, and `diff` of each is null. A note names the
  files that hold the old name as a word and stay as they are: texts, comments, and what the server takes for another name, such as one that
  TypeScript exports once more. Uses in code that seem to be meant all the same are listed, and refused with `NAMES_LEFT` where the change is to be
  written, unless `leaveUses` is true: the server says that they lead to what gets another name, or, in a typed language, knows no meaning of them (code for
  another system, what the compiler skips).
- `find_references` answers with `name`, `references` (each with `filePath`, `line`, `column`, `endColumn`, and `text`, the line), `paging`, `files` (how
  many), `hidden` (uses in files that may not be read), `outside` (uses outside of all roots), and `server`.
- `code_action` answers with `actions`, each with `title`, `kind`, `server` and `disabled` (why it cannot be done, or null); or, where a `title` was sent,
  with `applied`, `operation`, and `change`, which is as `write_file` answers. `Format document` formats the whole file. Commands of a server
  are not executed, since they would write past the workspace: an action that has one is refused.

## `workspaceUpdate`

| field | |
| --- | --- |
| `kind` | what became of it, below; the worst of all servers |
| `updated` | whether every server that claims the file is proven to have taken the new text |
| `inWorkspaceBefore`, `inWorkspaceAfter` | whether a project includes the file; a file that lies on the disk and belongs to no project is not in the workspace |
| `message` | what a reader should know, or null |
| `servers` | each with `name`, `kind`, `event` (what it was told), `confirmedBy` (`version`, `pull`, `probe`, `order`, `quiet window`, `none`), `revisionBefore`, `revisionAfter`, `ms`, `message` |
| `diagnostics` | null if no server has answered; else `scope`, `fresh`, `complete`, `compared` (whether all of it is known as it was before), `new`, `fixed` (at most 50 each, the errors first), `newCount`, `fixedCount`, and `total`, null where only differences mean something |

| kind | |
| --- | --- |
| `none` | no server claims the file, or no project includes it |
| `preview` | nothing was done, and what is told is what would be |
| `updated`, `added`, `removed`, `renamed` | taken up |
| `reloaded` | servers were started anew, or projects were read again, to take it up |
| `pending` | told, but not confirmed in time: call `sync`, or `get_diagnostics` |
| `stale` | a server is known not to have taken it: call `reload` |
| `failed` | a server is not there to take it; `server_status` says why |

Diagnostics whose `fresh` is false say nothing about the present text.

"""

_COMMANDS = """\
# The command `filepact`

<!-- Made by scripts/reference from the command itself; change its help instead of this page. -->

For people: look at what agents did, take it back, and do the same by hand. `filepact COMMAND --help` says the same as this
page.
"""

_EXITS = """\
## Exit statuses

| status | meaning |
| --- | --- |
| 0 | done |
| 1 | refused or failed; the answer says why |
| 2 | the command line, or a settings file, is wrong |
| 3 | nothing was found, or there was nothing to do |
| 4 | `audit verify`: the log could not be compared with anything |
| 130 | interrupted |
"""


_CHECKS = """\
# The checks of `acp-conformance`

<!-- Made by scripts/reference from the checks themselves; change them instead of this page. -->

In the order in which they run. How to run them: [README](README.md).

A *must* is demanded by the protocol's documents for version 1, by its schema, or by JSON-RPC 2.0. A *should* is advised there, or is
*practice*: no document says it, but agents that are in use rely on it, or a client without it can be harmed. Pages are named by
their titles in the protocol's documentation; *best practices* stand in the longer edition of its page on the file system.
"""


def tools_page() -> str:
    return "\n".join([_TOOLS, *map(_tool, SERVER_TOOLS)])


def solution_page() -> str:
    return "\n".join([_SOLUTION.rstrip(), "", *map(_tool, SOLUTION_TOOLS)])


def _tool(tool: Any) -> str:
    lines = [f"## `{tool.name}`", "", f"*{tool.level}, {tool.tier}.* {tool.description}", ""]
    lines += ["| parameter | takes | default | |", "| --- | --- | --- | --- |"]
    required = tool.schema.get("required", ())
    for name, schema in tool.schema["properties"].items():
        default = "needed" if name in required else _value(schema.get("default"))
        cells = (f"`{name}`", _kind(schema), default, schema.get("description", ""))
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join([*lines, ""])


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "")
    if kind == "array":
        of = schema.get("items", {})
        if of.get("type") == "object":
            return "list of {" + ", ".join(f"`{name}`" for name in of["properties"]) + "}"
        return f"list of {_kind(of)}"
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return str(kind)
    return f"{kind}, {least}-{most}" if most is not None else f"{kind} from {least}"


def _value(default: object) -> str:
    if default is None:
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def commands_page() -> str:
    parser = build_parser()
    page = [
        _COMMANDS,
        "## Options of every command",
        "",
        _table(parser, lambda _action: True),
        _EXITS,
    ]
    return "\n".join([*page, *(_command(name, one) for name, one in commands(parser))])


def commands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that does something, with its parser; hidden ones are left out."""
    groups = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    for group in groups:
        for choice in group._choices_actions:
            yield from commands(group.choices[choice.dest])
    if not groups:
        yield parser.prog, parser


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    parts = [f"## `{name}`", "", _cell(parser.description or ""), ""]
    example = re.search(r"example:\s*(.+)", parser.epilog or "")
    if example:
        parts += ["```sh", example[1].strip(), "```", ""]
    table = _table(parser, lambda action: not _is_common(action))
    parts += [table] if table else []
    answers = getattr(parser, "answers", "")
    return "\n".join([*parts, *([f"With `--json`: {answers}.", ""] if answers else [])])


def _is_common(action: argparse.Action) -> bool:
    return getattr(action, "container", None) is not None and action.container.title == COMMON


def _table(parser: argparse.ArgumentParser, wanted: Callable[[argparse.Action], bool]) -> str:
    rows = []
    for action in parser._actions:
        hidden = action.help == argparse.SUPPRESS or isinstance(
            action, (argparse._HelpAction, argparse._SubParsersAction)
        )
        if not hidden and wanted(action):
            rows.append(f"| {_written(action)} | {_cell(action.help or '')} |")
    return "\n".join(["| argument | |", "| --- | --- |", *rows, ""]) if rows else ""


def _written(action: argparse.Action) -> str:
    """How an argument is typed."""
    if action.choices is not None and action.metavar is None:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    else:
        value = str(action.metavar or action.dest.upper())
    if not action.option_strings:
        shape = {"?": "[{}]", "+": "{} ...", "*": "[{} ...]", "...": "[{} ...]"}.get(
            str(action.nargs), "{}"
        )
        return f"`{shape.format(value)}`"
    takes = "" if action.nargs == 0 else f" {value}"
    return ", ".join(f"`{option}{takes}`" for option in action.option_strings)


def checks_page() -> str:
    parts = [_CHECKS]
    for group in GROUPS:
        parts += [f"## {group.title}", "", "| check | level | source | what a client has to do |"]
        parts.append("| --- | --- | --- | --- |")
        for check in group.checks:
            cells = (f"`{check.id}`", check.level, check.source, check.says)
            parts.append(f"| {' | '.join(map(_cell, cells))} |")
        parts.append("")
    return "\n".join(parts)


_SERVERS = """\
# Language servers

<!-- Made by scripts/reference from the tables themselves; change packages/filepact-diagnostics/src/filepact_diagnostics/lsp/builtin.py instead of this page. -->

Those that are known without settings, in order of preference: of one role, the first that is installed serves a file, unless the project has settings for another. None
comes with filepact. `filepact doctor` lists the same with what was found, and
[settings](settings.md#serversname) change them or add others.

| server | role | files | how to install it | used for agents | [proof](../explanation/diagnostics.md#fresh-or-nothing) | held to | tried |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""

_SERVERS_END = """
Those that are **confined** see for agents nothing but the project and their toolchain, and
[nothing that is protected](../explanation/sandbox.md#language-servers-that-disclose).

Those that are **not unasked** are used for agents only in folders where you trusted them with [`filepact trust`](cli.md#filepact-trust),
or where your settings say [`trusted = true`](settings.md#serversname): what an agent writes could [run programs](../explanation/diagnostics.md#what-a-server-may-do) through
them. Where the system cannot confine a server it is not used unasked either.

Whose answers are tried in the **situations**: while a long file is edited faster than it is checked, at the start, after the server was killed, after
questions that were given up, after one check that took five seconds, and on a machine that ten others want as well or that gives it a quarter of each
moment. No list may be told as fresh then that is about another text. The last column names the versions of which none was. *Not tried* in them are those that could not be had
where that was done, and ours for C#.

The column before it says what filepact's own tests hold a server to, with the real program:

- **all cases**: after files were edited, open and closed, made, imported, deleted, renamed, reverted, changed from outside, two at
  once, in new folders, under their old dates, and seen or shown before they were told of, the server that runs says what one says
  that is started then; in hundreds of random edits and proposals nothing that is not so any more is given out as being so; and
  what it says once it is quiet is true after two agents and another program wrote, foresaw and removed files at the same moments
  (not tried with `ruff`, which looks at one file at a time).
- **an edit, a proposal**: the first list is right, an edit is seen, a proposed text is judged, and leaves no trace; and the situations.
- **the situations**: these alone, and only where somebody has the program: tests install none of it.
- **form alone**: errors of form, and only what differs.
- **its documentation**: what it is told follows what its authors say; that this is enough is not shown.

## What is particular

- `clangd` tells the texts of an included file apart by their length and the second in which it got them. A second edit of equal length
  within one second is therefore sent again when the second is over: such an answer may take a second longer. It is never told of
  saves, because it dates all open texts anew then.
- `ty` goes by dates. A file whose date is that of the text before, or that had gone and came again, is therefore opened and closed
  once, so that it is read again.
- `php` and `yaml` publish what they find without saying which text it is about. They check only the last text that they have, and
  nothing while they answer something else. So a list counts if it came after the server had answered a question that was sent
  behind the text. Before `php` has read the project it knows nothing, and nothing counts. A file of 600 lines takes it two seconds, so its
  errors mostly come with a later answer.
- `typescript-language-server` publishes errors of the text before while it checks the new one. So TypeScript's own server is asked through it.
- `gopls` is asked by `gopls/diagnoseFiles`, the request behind its own command `gopls check`: it publishes all errors of a source before it
  answers. Debian 12's knows it. Lists of a `gopls` that does not, and of `go.mod`, are proven by versions alone. Where
  they come without a version, nothing shows which text they are about, and they are told as not fresh. With one they are
  fresh and never complete, since they are published in several steps.
- `jdtls` names no version. It is asked by its command `java.project.refreshDiagnostics`, which publishes before it is answered, once it has said that it is ready
  (`ServiceReady`): half a minute after its start.
- `lua` and `rust-analyzer` answer before they have read the project, and find nothing then: no answer counts, and no place is asked for, before they have said that they
  have. What ails `rust-analyzer` by its own word (its `serverStatus`), such as a missing library, is told with its answers, and they are not complete.
- Of a file that belongs to no crate (`unlinked-file`) or to no class path, `rust-analyzer` and `jdtls` find errors of form at most: it counts as not known to them.
- For Vue, Ruby, Kotlin, Dart and Elixir no server is known here. Of Vue's, `@vue/language-server` 3 answers nothing unless the editor asks TypeScript's
  own server for it; of the others, of `phpactor` and of `lua-language-server` none could be had. One that your settings add with `quiet` alone is told as the quiet window that it is: never fresh.
- `typescript-language-server` sees that files come and go only after seconds of its own; it is started anew for each. `typescript`, the
  compiler's own server from version 7 on, needs none of this and goes first.
- `roslyn` looks for projects by itself until a solution is opened in it (`filepact mcp --toolset solution`). Only that tells it of new
  files; without one it is started anew for them.
- `filepact-csharp` takes a proposed file that is not on the disk yet as if it were there, also for other files. It takes 200 to 350 MiB.
- `csharp-projects` finds no errors: it says which files belong to which project, whichever server judges them.
- `bash` finds nothing without ShellCheck, and is not used without it.
- `yaml` fetches no schemas, unless your settings say so.
- A server that takes more memory than [`memory`](settings.md#diagnostics) allows, with all that it has started, is ended within a few
  seconds and started again when it is next needed. Where the system has no `/proc`, nothing is counted.

## Projects

A file that no project includes is not in the workspace, and the answer to a change says so. Of TypeScript, JavaScript, C and C++ filepact
reads that itself. Of other languages it asks a server of the role `projects`, if one is installed, by `workspace/executeCommand` with the
command `filepact.projects` and one argument: an object of `uri`, the file, and `opened`, the solution, project or folder that was opened.
Without `uri` all projects are meant. The answer is an object:

| member | what it holds |
| --- | --- |
| `projects` | the names of the projects that include the file, or would if it were there |
| `approximate` | whether something about them is not known for sure |
| `messages` | what, each an object of `path`, `line` (0 for the whole file) and `text` |
"""


_USE = {
    "": "yes",
    "runs": "not unasked: it runs what build files say",
    "discloses": "confined",
    "evaluates": "yes, confined where the system can",
}


def servers_page() -> str:
    """What `reference/language-servers.md` has to say."""
    rows = [
        f"| `{one.name}` | {one.role} | {', '.join(f'`{glob}`' for glob, _ in one.files)} "
        f"| {one.install} | {_USE[one.risk]} | {_proof(one)} | {_held_to(one.name)} | {TRIED.get(one.name, 'not tried')} |\n"
        for one in builtin_servers()
    ]
    return _SERVERS + "".join(rows) + _SERVERS_END


def _proof(server: Any) -> str:
    """What proves that its lists are about the text that it was sent."""
    if server.role == "projects":
        return "none needed: it finds no errors"
    if server.asking == "tsserver":
        return "pull, of TypeScript's own server"
    if server.asking == "pull":
        return "pull"
    steps = "version, never complete; not fresh without one"
    if server.probe:
        return f"probe; where it knows none, {steps}" if server.quiet else "probe"
    if server.ordered:
        return "order"
    return "version" if server.once else steps


def _held_to(server: str) -> str:
    if server in PROJECTS and server in LANGUAGES:
        return "all cases"
    if server in ("csharp-syntax", "csharp-projects"):
        return "form alone" if server == "csharp-syntax" else "its projects"
    if server in TRIED:
        return "an edit, a proposal" if server in CASES else "the situations"
    return "its documentation"


PAGES = {
    "language-servers.md": servers_page,
    "tools.md": tools_page,
    "solution.md": solution_page,
    "cli.md": commands_page,
    "../../packages/acp-conformance/CHECKS.md": checks_page,
}

if __name__ == "__main__":
    for page, make in PAGES.items():
        (REFERENCE / page).write_text(make(), encoding="utf-8")
