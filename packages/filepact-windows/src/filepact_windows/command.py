"""The command `review`: what waits for a person, on the whole screen, line by line, or in a browser."""

from __future__ import annotations

from contextlib import ExitStack, closing, suppress
from importlib.util import find_spec
from threading import Event
from typing import TYPE_CHECKING, Any

from filepact.errors import InvalidParamsError, UnattendedError
from filepact.values import replace
from filepact_cli.context import opened
from filepact_cli.history import at_terminal, decider
from filepact_cli.render import count
from filepact_cli.review import Review
from filepact_cli.screen import CommandAnswer, plain, remark
from filepact_cli.wording import install_line

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from filepact.domain.operation import Proposal, Session
    from filepact.workspace.workspace import Workspace
    from filepact_cli.screen import Terminal

__all__ = ["asking_servers", "review"]


def review(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Review what waits, until the person leaves."""
    if arguments.web:
        return _in_browser(arguments, screen)
    if arguments.unattended or not at_terminal(screen):
        raise UnattendedError(
            "`filepact review` needs a person at a terminal, and there is none",
            hint="A person types it in a terminal of their own; programs read `filepact review --list --json`.",
        )
    session = decider(arguments, screen)
    with opened(arguments) as workspace, ExitStack() as stack:
        about = Review(workspace, session, asking_servers(arguments, workspace, session, stack))
        whole = not arguments.plain and find_spec("textual") is not None
        if whole:
            from filepact_windows.review_window import ReviewProgram  # noqa: PLC0415 - an extra

            ReviewProgram(about, _notifying(arguments)).run()
            left = len(about.waiting())
        else:
            from filepact_windows.review_plain import review_plainly  # noqa: PLC0415 - one of two

            if not arguments.plain:
                said = f"This fills the screen once its package is installed:\n  {install_line('review')}"
                screen.write(plain(f"{said}\n\n"))
            left = review_plainly(about, screen)
    return _left(left)


def _notifying(arguments: Namespace) -> Callable[[Sequence[str]], object] | None:
    """Return the function that notifies the desktop; None where the person does not want that."""
    from filepact.config.person import read_settings  # noqa: PLC0415 - with the workspace

    if not read_settings(arguments.config).notify:
        return None
    from filepact_cli.deciding import notify  # noqa: PLC0415 - few want it

    return notify


def _left(left: int) -> CommandAnswer:
    said = f"{count(left, 'proposal')} {'waits' if left == 1 else 'wait'}.\n" if left else ""
    return CommandAnswer(plain(said), {"left": left})


def _in_browser(arguments: Namespace, screen: Terminal) -> CommandAnswer:
    """Serve the page until that is interrupted.

    Raises:
        InvalidParamsError: The port is in use.
        UnattendedError: No person is there who could open it.
    """
    session = decider(arguments, screen)
    from filepact_windows.web.server import serve  # noqa: PLC0415 - an extra

    how = f"page, cookie; started: {session.actor.version}"
    session = replace(session, actor=replace(session.actor, version=how))

    def told(link: str) -> None:
        remark(f"Open this in your browser. It works once; Ctrl-C ends it.\n{link}\n")

    with opened(arguments) as workspace, ExitStack() as stack:
        about = Review(workspace, session, asking_servers(arguments, workspace, session, stack))
        try:
            with suppress(KeyboardInterrupt):
                serve(about, port=arguments.port, told=told, ended=Event())
        except OSError as error:
            raise InvalidParamsError(
                f"the page cannot be served at port {arguments.port} ({error.strerror})",
                hint="Leave --port out, and any that is free is taken.",
            ) from error
        left = len(about.waiting())
    return _left(left)


def asking_servers(
    arguments: Namespace, workspace: Workspace, session: Session, stack: ExitStack
) -> Callable[[Proposal], str]:
    """Return a function for the findings of language servers in a proposal; its first call starts them.

    Args:
        arguments: The command's.
        workspace: Whose files.
        session: The person who asks.
        stack: Ends the servers.
    """
    opened_once: list[Any] = []

    def open_servers() -> Any:
        from filepact.config.person import read_settings, state_folder  # noqa: PLC0415 - the same
        from filepact.extension import open_diagnostics  # noqa: PLC0415 - servers take their time

        settings, state = read_settings(arguments.config), state_folder(arguments.state)
        found = open_diagnostics(settings, state).for_person(workspace)
        if found is not None:
            stack.enter_context(closing(found))
        return found

    def diagnose(proposal: Proposal) -> str:
        if not opened_once:
            opened_once.append(open_servers())
        (semantics,) = opened_once
        if semantics is None:
            return ""
        versions = workspace.approving.versions()
        update = semantics.preview(proposal.changes, versions, session=session, seconds=20.0)
        said: str = semantics.line(update, session=session)
        return said

    return diagnose
