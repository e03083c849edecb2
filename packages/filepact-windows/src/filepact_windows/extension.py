"""What the package adds to filepact: the command `review`, and what a server asks its person with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from filepact.extension import Extension

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import ExitStack

    from filepact.config.settings import ServerSettings
    from filepact.workspace.workspace import Workspace
    from filepact_cli.parser import CommandGroup
    from filepact_windows.elicitation import ElicitationReview
    from filepact_windows.web.app import ReviewFrame

__all__ = ["EXTENSION"]


def _add_commands(group: CommandGroup) -> None:
    from filepact_cli.parser import add_unattended, whole  # noqa: PLC0415 - as all here: when it is needed

    add = group.add(
        "review",
        "filepact_windows.command:review",
        "review what waits, hunk by hunk, and decide",
        "filepact review",
        "Uses the whole screen if `filepact[review]` is installed, else asks line by line. New proposals appear by "
        "themselves. Proposals whose files have changed are marked. Press ? for the keys. "
        "With --web: prints a link that works once, for one browser on this computer. Ctrl-C ends it. "
        "With --watch: prints a line for each change that waits. Then it prints a line for each new proposal, for each "
        "decision, and for each proposal whose files have changed, until you press Ctrl-C. The terminal bell rings for new "
        "ones; the setting `notify` adds desktop notifications. With --json each line is an object.",
        extra="web",
        place=("decide", "first"),
        answers="with --list: pending; of the page: left",
    )
    for option, does, said in (
        ("--list", "pending", "only list what waits"),
        ("--watch", "watch", "only list what waits, and go on as more comes"),
    ):
        add(option, dest="does", action="store_const", const=f"deciding:{does}", help=said)
    add(
        "--plain",
        action="store_true",
        help="questions and answers, line by line: for any terminal, and for screen readers",
    )
    add("--web", action="store_true", help="in a page of your own browser")
    add(
        "--port",
        metavar="N",
        type=whole,
        default=0,
        help="with --web: the port of the page (default: any that is free)",
    )
    add_unattended(add)


def _open_chat(
    settings: ServerSettings, stack: ExitStack, above: str
) -> Callable[[Workspace], ElicitationReview]:
    from filepact_windows.chat import ElicitationContext  # noqa: PLC0415

    return ElicitationContext(settings, stack, above).chat


def _open_frame(workspace: Workspace, chat: ElicitationReview | None) -> ReviewFrame:
    from functools import partial  # noqa: PLC0415

    from filepact_cli.review import Review  # noqa: PLC0415
    from filepact_windows.web.app import ReviewFrame  # noqa: PLC0415

    return ReviewFrame(partial(Review, workspace), chat)


EXTENSION: Final = Extension(
    "windows",
    add_commands=_add_commands,
    open_chat=_open_chat,
    open_frame=_open_frame,
    extras={
        "review": ("textual", "the review on the whole screen"),
        "web": ("starlette", "the review in a browser"),
    },
)
