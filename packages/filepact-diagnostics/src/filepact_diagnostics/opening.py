"""Opens language servers for the folders of a workspace, and the tools of a solution."""

from __future__ import annotations

from os.path import basename, dirname
from typing import TYPE_CHECKING, Any, Final

from filepact.errors import InvalidParamsError
from filepact.fs.state import read_answers, write_answers, write_note
from filepact.values import replace
from filepact_cli.serve import shortened
from filepact_diagnostics.settings import TRUST_FILE, options_of, read_trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from contextlib import ExitStack

    from filepact.config.settings import Settings
    from filepact.opening import OpenFolders
    from filepact.tools.registry import Level, Tier, Toolset
    from filepact.workspace.guard import Guard
    from filepact.workspace.workspace import Workspace
    from filepact_diagnostics.judging import ServerJudge
    from filepact_diagnostics.lsp.diagnostics import ServerStatus
    from filepact_diagnostics.lsp.forkserver import ForkServer
    from filepact_diagnostics.lsp.pool import ServerPool
    from filepact_diagnostics.lsp.spec import ServerSpec
    from filepact_diagnostics.programs import Programs
    from filepact_diagnostics.settings import LanguageServerSettings, ServerTrust, Using
    from filepact_supervisor.server_sandbox import ServerSandbox

    Locate = Callable[[str], str | None]

__all__ = [
    "Diagnostics",
    "confines_servers",
    "open_for_person",
    "open_pool",
    "open_semantic_workspace",
    "open_solution",
    "solution_instructions",
    "solution_place",
    "start_fork_server",
    "try_server",
    "write_trust",
]

_MEBIBYTE: Final = 1_048_576


class Diagnostics:
    """The language servers of a program that serves an agent, or a person.

    Args:
        settings: What is in force.
        state: The state folder.
    """

    later: Final = (
        *("filepact_diagnostics.solution", "filepact_diagnostics.solution_engine"),
        *("filepact_diagnostics.lsp.pool", "filepact_diagnostics.lsp.session"),
        "filepact_diagnostics.judging",
    )
    """Modules that are loaded after a server's first answer."""

    def __init__(self, settings: Settings, state: str) -> None:
        self._settings, self._state = settings, state
        self._using = options_of(settings).diagnosing
        self._servers: tuple[ServerSpec, ...] = ()
        self._programs: Programs | None = None
        self._fork_server: ForkServer | None = None
        self._pool: ServerPool | None = None
        self.solution_place = solution_place
        self.instructions = solution_instructions

    @property
    def mode(self) -> Using:
        """When servers are asked."""
        return self._using.mode

    def prepare(
        self,
        stack: ExitStack,
        changeable: Callable[[], Sequence[str]],
        *,
        looks: bool,
        solution: bool,
    ) -> None:
        """Choose the servers, and have them started by another process before this one confines itself.

        Args:
            stack: Ends that process.
            changeable: Names the folders that agents may change; asked where a server may be started.
            looks: Whether agents change nothing.
            solution: Whether they get the tools of a solution.
        """
        if looks and not solution:
            # The seven tools have diagnostics for changes alone.
            self._using = replace(self._using, mode="off")
        elif solution and self._using.mode == "auto":
            # Who asks for a solution asks for its servers.
            self._using = replace(self._using, mode="always")
        if self._using.mode == "off":
            return
        self._servers, self._programs = self._chosen(changeable())
        if self._settings.guard.landlock != "off":
            # What is inside the sandbox starts no programs any more.
            self._fork_server = start_fork_server(self._using, self._servers, self._programs)
        if self._fork_server is not None:
            stack.callback(self._fork_server.close)

    def open(self, stack: ExitStack, folders: OpenFolders | Workspace) -> None:
        """Make ready, for some folders, what was chosen; a server is started when it is asked."""
        if self._programs is None:
            return
        self._pool = open_pool(
            folders,
            diagnosing=self._using,
            servers=self._servers,
            environment=self._programs.environment,
            locate=self._programs,
            fork_server=self._fork_server,
        )
        if self._pool is not None:
            stack.callback(self._pool.close)
        write_answers(self._state, self._programs.answers)

    def judge(self, stack: ExitStack, workspace: Workspace) -> ServerJudge | None:
        """The servers, for a workspace of these folders; None where there are none."""
        found = open_semantic_workspace(workspace, self._pool, self._using)
        if found is not None:
            stack.callback(found.close)
        return found

    def for_agents(self, workspace: Workspace) -> ServerJudge | None:
        """The servers that work for agents, in a program that is not confined; close them before the workspace."""
        if self._using.mode == "off":
            return None
        # Of several workspaces at once each has servers of its own.
        servers, programs = self._chosen(workspace.changeable)
        found = _opened(workspace, self._using, servers, programs)
        write_answers(self._state, programs.answers)
        return found

    def for_person(self, workspace: Workspace) -> ServerJudge | None:
        """The servers that work for a person, who waits for them to start; close them before the workspace."""
        if self._using.mode == "off":
            return None
        return open_for_person(workspace, self._settings, mode="always")

    def solution(
        self, workspace: Workspace, judge: ServerJudge | None, *, name: str, **shown: Any
    ) -> Toolset:
        """The tools of a solution; see `open_solution`."""
        only_new = {one.name for one in self._servers if one.only_new}
        return open_solution(workspace, judge, name=name, only_new=only_new, **shown)

    def waiting(self, folder: str) -> list[str]:
        """The installed servers that work for agents in a folder, absolute, only once a person trusts them."""
        from filepact_diagnostics.programs import Programs  # noqa: PLC0415 - only where servers may start

        options, trust = options_of(self._settings), read_trust(self._state)
        chosen = options.agents_servers(trust, confines=confines_servers(self._settings))
        programs = Programs([folder])
        return [one.name for one in programs.waiting(options.servers, chosen, folder)]

    def search_path(self, changeable: Sequence[str]) -> str:
        """The search path of programs, without folders that agents may change."""
        from filepact_diagnostics.programs import Programs  # noqa: PLC0415 - only where servers may start

        return Programs(changeable).environment.get("PATH", "")

    def _chosen(self, changeable: Sequence[str]) -> tuple[tuple[ServerSpec, ...], Programs]:
        """The servers that may work for agents, and the programs that may be started where agents may change these folders."""
        from filepact_diagnostics.programs import Programs  # noqa: PLC0415 - only where servers may start

        confines, trust = confines_servers(self._settings), read_trust(self._state)
        servers = options_of(self._settings).agents_servers(trust, confines=confines)
        return servers, Programs(changeable, kept=read_answers(self._state))


def open_for_person(
    workspace: Workspace, settings: Settings, *, mode: Using | None = None
) -> ServerJudge | None:
    """The servers that a person may use in a workspace; None where there are none.  Close them before it.

    Args:
        workspace: The folders.
        settings: What is in force.
        mode: When they are asked; None for as it is set.
    """
    from filepact_diagnostics.programs import Programs  # noqa: PLC0415 - only where servers may start

    options, programs = options_of(settings), Programs(workspace.changeable)
    using = replace(options.diagnosing, mode=mode) if mode else options.diagnosing
    servers = options.peoples_servers(confines=confines_servers(settings))
    return _opened(workspace, using, servers, programs)


def _opened(
    workspace: Workspace,
    using: LanguageServerSettings,
    servers: Sequence[ServerSpec],
    programs: Programs,
) -> ServerJudge | None:
    """The servers of one workspace, in a program that is not confined; None where there are none."""
    pool = open_pool(
        workspace,
        diagnosing=using,
        servers=servers,
        environment=programs.environment,
        locate=programs,
    )
    return open_semantic_workspace(workspace, pool, using)


def open_solution(
    workspace: Workspace,
    semantics: ServerJudge | None = None,
    *,
    name: str = "",
    only_new: AbstractSet[str] = frozenset(),
    tier: Tier = "full",
    max_level: Level = "dangerous",
    read_only: bool = False,
) -> Toolset:
    """The tools of a solution, as many of them as are to be shown.

    Args:
        workspace: Whose first root is the solution's folder.
        semantics: Its language servers; None asks nobody.
        name: The solution's file in that folder; empty for the folder itself.
        only_new: The servers of which only differences mean something.
        tier: Only tools of this set and the smaller ones.
        max_level: Only tools up to this level.
        read_only: Only tools that look.
    """
    from filepact.tools.registry import Toolset  # noqa: PLC0415 - as above
    from filepact_diagnostics.envelope import CALL_SECONDS, Envelope  # noqa: PLC0415 - as above
    from filepact_diagnostics.solution import SOLUTION_TOOLS  # noqa: PLC0415 - as above
    from filepact_diagnostics.solution_engine import SolutionEngine  # noqa: PLC0415 - as above

    return Toolset(
        SOLUTION_TOOLS,
        SolutionEngine(workspace, semantics, name, only_new),
        tier=tier,
        max_level=max_level,
        read_only=read_only,
        form=Envelope(),
        seconds=CALL_SECONDS,
    )


def start_fork_server(
    diagnosing: LanguageServerSettings, servers: Iterable[ServerSpec], locate: Locate
) -> ForkServer | None:
    """The fork server that starts language servers for a process about to confine itself.

    Call it before the process confines itself, and end it when the servers have ended.

    Args:
        diagnosing: How far servers are used.
        servers: Those that may be.
        locate: Where a program is that may be started, or None.

    Returns:
        None where no server will be started.
    """
    if diagnosing.mode == "off" or not _installed(servers, locate):
        return None
    from filepact_diagnostics.lsp.failures import ServerExitedError  # noqa: PLC0415 - only servers need it
    from filepact_diagnostics.lsp.forkserver import ForkServer  # noqa: PLC0415 - the same

    try:
        return ForkServer.start()
    except ServerExitedError:
        return None


def open_pool(
    folders: OpenFolders | Workspace,
    *,
    diagnosing: LanguageServerSettings,
    servers: Sequence[ServerSpec],
    environment: Mapping[str, str],
    locate: Locate,
    fork_server: ForkServer | None = None,
) -> ServerPool | None:
    """The language servers of some folders, none of them started yet; None where none can be.

    What a fork server may start for them is settled now.  The other arguments are those of `ServerPool`.
    """
    roots = [root.path for root in folders.guard.roots]
    servers = [one for one in servers if any(map(one.allowed_in, roots))]
    if diagnosing.mode == "off" or not _installed(servers, locate):
        return None
    from filepact_diagnostics.lsp.pool import ServerPool  # noqa: PLC0415 - only where there are some

    return ServerPool(
        servers,
        environment,
        locate,
        idle=diagnosing.idle,
        memory=diagnosing.memory * _MEBIBYTE,
        fork_server=fork_server,
        sandbox=_server_sandbox(folders.guard),
    )


def open_semantic_workspace(
    workspace: Workspace, pool: ServerPool | None, diagnosing: LanguageServerSettings
) -> ServerJudge | None:
    """The language servers of a workspace, if there are any; close them before the workspace."""
    if pool is None:
        return None
    from filepact_diagnostics.judging import ServerJudge  # noqa: PLC0415 - takes its time

    return ServerJudge(
        workspace,
        pool,
        mode=diagnosing.mode,
        budget=diagnosing.budget,
        new_errors=diagnosing.new_errors,
        warnings=diagnosing.receipts == "warnings",
    )


def confines_servers(settings: Settings) -> bool:
    """Whether language servers that only disclose are confined to a sandbox, instead of waiting for trust."""
    from filepact_supervisor.sandbox_process import can_confine_servers  # noqa: PLC0415 - only servers need it

    return settings.guard.landlock != "off" and can_confine_servers()


def _server_sandbox(guard: Guard) -> ServerSandbox:
    """The sandbox of the language servers of some folders, without what is a server's own."""
    from filepact_supervisor.server_sandbox import ServerSandbox  # noqa: PLC0415 - only servers need it

    rules = (guard.policy.rules, guard.policy.fallbacks)
    roots = tuple(root.path for root in guard.roots)
    return ServerSandbox("", roots, (), rules=rules, content=guard.net)


def write_trust(state_dir: str, trust: ServerTrust) -> None:
    """Keep what a person trusts; servers that run already learn of it at their next start.

    Raises:
        StateFailedError: It cannot be written; what was there stays.
    """
    write_note(state_dir, TRUST_FILE, trust.to_json())


def _installed(servers: Iterable[ServerSpec], locate: Locate) -> bool:
    """Whether any of some servers can be started; all of them are looked for.

    Inside the sandbox only names could still be looked at, and not what is in a folder.
    """
    places = [[locate(name) for name in (one.command[0], *one.needs)] for one in servers]
    return any(all(some) for some in places)


def try_server(
    server: ServerSpec,
    workspace: Workspace,
    root: str,
    files: Mapping[str, str],
    *,
    environment: Mapping[str, str],
    locate: Locate,
    seconds: float,
    memory: int,
) -> ServerStatus:
    """Start a language server by itself, have it look at files, and end it.

    Args:
        server: What is to be started.
        workspace: Its roots and rules count where the server is confined.
        root: The folder that it is to serve, absolute.
        files: Texts of files that it knows, by absolute path.
        environment: All variables that it sees.
        locate: Where a program is that may be started, or None.
        seconds: How long to wait for its diagnostics.
        memory: MiB that it may take.
    """
    from filepact_diagnostics.lsp.pool import ServerPool  # noqa: PLC0415 - only the doctor needs it

    sandbox = _server_sandbox(workspace.guard)
    pool = ServerPool((server,), environment, locate, memory=memory * _MEBIBYTE, sandbox=sandbox)
    try:
        pool.ask(root, files, {}, seconds, patient=True).result()
        return pool.status()[0]
    finally:
        pool.close()


_ENDS = (".sln", ".slnx", ".csproj")


def solution_place(paths: Sequence[str]) -> tuple[list[str], str]:
    """Split the paths of a command line into folders and the name of a solution.

    Args:
        paths: As they were typed: a solution, a project or a folder, then further folders.

    Returns:
        The folders, and the name of the file in the first; empty where a folder was named.

    Raises:
        InvalidParamsError: A file stands where only folders can.
    """
    first, *others = paths
    if any(map(_is_solution, others)):
        raise InvalidParamsError(
            "several solutions were named",
            hint="Start one server for each; what follows the solution are further folders.",
        )
    if not _is_solution(first):
        return [first, *others], ""
    return [dirname(first) or ".", *others], basename(first)


def _is_solution(path: str) -> bool:
    # The end of the name decides: nothing is opened before the roots are.
    return path.lower().endswith(_ENDS)


def solution_instructions(folders: OpenFolders | Workspace, name: str, *, changes: bool) -> str:
    """Write the instructions of a server for a solution.

    Args:
        folders: What the agent will work in.
        name: The solution's file; empty for a folder.
        changes: Whether files can be changed.
    """
    first, *others = (root.path for root in folders.guard.roots)
    what = f"The solution {shortened(name, 60)} in" if name else "The folder"
    said = [f"{what} {shortened(first, 120)}; relative paths start there."]
    if others:
        shown = ", ".join(shortened(one, 80) for one in others[:2])
        more = ", ..." if len(others) > 2 else ""
        said.append(f"Also {shown}{more}, by absolute path.")
    said.append(
        "Every answer is {success, data, meta, error}. Diagnostics of language servers count only "
        "where fresh is true."
    )
    if changes:
        said.append(
            "write_file previews, with the diagnostics that the text would add and remove; send "
            "applyChanges: true to write. applied: on the disk; workspaceUpdate.updated: taken up by "
            "the servers. With kind pending or stale call sync or get_diagnostics, and do not write "
            "again. Every change is recorded and the person can undo it."
        )
        if folders.mode == "preview":
            said.append(
                "Changes here wait for the person: with data.pending nothing is changed yet."
            )
    else:
        said.append("Nothing can be changed here.")
    return " ".join(said)
