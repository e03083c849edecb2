"""The public names for programs that speak the Agent Client Protocol."""

from __future__ import annotations

from argparse import Namespace

from filepact.config.settings import Settings
from filepact.faces.acp import agent, client
from filepact.faces.acp.check.inside import check_client
from filepact.faces.acp.check.outcome import Report, Verdict
from filepact.faces.acp.client import Question
from filepact.faces.cli import place, settings
from filepact.text.position import Position
from filepact.workspace.buffers import Delivery, Typed

__all__ = [
    "AgentFiles",
    "ClientFileSystem",
    "Delivery",
    "Position",
    "Question",
    "Report",
    "Settings",
    "Typed",
    "Verdict",
    "check_client",
    "read_settings",
    "state_folder",
]


class AgentFiles(agent.AgentFiles):
    """The files of one connection, under the rules of the person whose client it is."""

    __doc__ = agent.AgentFiles.__doc__

    @staticmethod
    def own() -> tuple[Settings, str | None]:
        """The person's and the administrator's settings, and the person's home folder."""
        return read_settings(), place.home_folder()


class ClientFileSystem(client.ClientFileSystem):
    """The two methods on files, under the rules of the person whose program this is."""

    __doc__ = client.ClientFileSystem.__doc__

    @staticmethod
    def own() -> tuple[Settings, str | None]:
        """The person's and the administrator's settings, and the person's home folder."""
        return read_settings(), place.home_folder()


def read_settings(file: str = "") -> Settings:
    """What the person and the administrator have set, with the rules that protect their files.

    Args:
        file: The person's settings file, if it is not the usual one.

    Raises:
        InvalidParamsError: A file is wrong, or one that was named is not there.
    """
    return settings.read_settings(place.named_settings(Namespace(config=file)))


def state_folder() -> str:
    """The person's own state folder, where `filepact log` and `filepact undo` look."""
    return place.state_folder(Namespace(state=None))
