"""Command `serve`: the gateway, with its workers."""

from __future__ import annotations

import ipaddress
import logging
import os
import secrets
import sys
from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from filepact import VERSION
from filepact.app import open_toolbox, open_workspace
from filepact.config.person import read_settings, state_folder
from filepact.errors import InvalidParamsError, StateFailedError
from filepact_cli.screen import CommandAnswer, plain, remark
from filepact_cli.serve import instructions
from filepact_gateway.guard import OpenGatewayGuard, TokenGatewayGuard
from filepact_gateway.handler import GatewayHandler, GatewayOptions
from filepact_gateway.issuer import TokenIssuer
from filepact_gateway.limits import LimitChecks
from filepact_gateway.metrics import Metrics
from filepact_gateway.opening import open_gateway_store
from filepact_gateway.realms import Realms
from filepact_gateway.repeats import RequestHistory
from filepact_gateway.requests import RequestChecks
from filepact_gateway.server import GatewaySockets, GatewayWorker, WorkerPipes, listen, run_workers
from filepact_gateway.settings import GatewaySettings, RealmAccess
from filepact_gateway.tokens import SessionTokens, TokenFile
from filepact_index import open_indexes

if TYPE_CHECKING:
    from argparse import Namespace

    from filepact.config.settings import Settings
    from filepact.tools.registry import Toolset
    from filepact.workspace.workspace import Mode, Workspace
    from filepact_cli.screen import Terminal

__all__ = ["serve"]


def serve(arguments: Namespace, _screen: Terminal) -> CommandAnswer | None:
    """Serve folders over HTTP until this process is told to end."""
    if arguments.new_token:
        return _new_token(arguments.new_token)
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="filepact: %(levelname)s: %(message)s"
    )
    settings = read_settings(arguments.config)
    chosen = settings.extensions.get("gateway", GatewaySettings())
    workers = arguments.workers or chosen.workers
    main = _address(arguments.listen, "--listen")
    if not _is_loopback(main[0]) and not chosen.knows_users:
        raise InvalidParamsError(
            f"{main[0]} can be reached from other machines, and callers need no token",
            hint="Listen at 127.0.0.1, or name an issuer or tokens in [serve].",
        )
    _check(arguments, settings, chosen)
    health = listen(_address(arguments.health, "--health")) if arguments.health else None
    listeners = GatewaySockets(listen(main), health)
    metrics = Metrics(workers)
    host, port = listeners.main.getsockname()[:2]
    told = f"filepact: serving at http://{_joined(host, port)}/mcp\n"
    if health is not None:
        told += f"filepact: watched over at http://{_joined(*health.getsockname()[:2])}\n"
    remark(told)
    if workers == 1:
        _work(arguments, settings, chosen, listeners, metrics, None)
        return None
    links = WorkerPipes(workers)

    def work(number: int) -> None:
        metrics.worker = number
        metrics.begin_again()
        _work(arguments, settings, chosen, listeners, metrics, links)

    if run_workers(links, work, metrics.beats, drain=chosen.drain):
        raise StateFailedError("a worker did not start", hint="Its message is above.")
    return None


def _work(
    arguments: Namespace,
    settings: Settings,
    chosen: GatewaySettings,
    listeners: GatewaySockets,
    metrics: Metrics,
    links: WorkerPipes | None,
) -> None:
    """One worker, from its start to its end."""
    with ExitStack() as stack:
        state = state_folder(arguments.state)
        realms = _realms(arguments, settings, chosen, state)
        stack.callback(realms.close)
        realms.open_all()
        store = open_gateway_store(state, _roots(arguments, chosen), settings.store)
        stack.callback(store.close)
        sessions = SessionTokens(
            store.secret("sessions", os.urandom(32)),
            lasts=chosen.session_hours * 3_600,
            has_ended=store.has_ended,
            clock=store.now,
            up_to_date=store.up_to_date,
            hear=store.hear,
        )
        host, port = listeners.main.getsockname()[:2]
        hosts = [_joined(host, port), f"localhost:{port}", *chosen.hosts]
        checks = RequestChecks(hosts, [f"http://{one}" for one in hosts[:2]] + [*chosen.origins])

        def cancelled(session: str, wanted: int | str) -> None:
            if links is not None:
                links.tell(metrics.worker, session, wanted)

        endpoint = GatewayHandler(
            _guard(realms, _access(arguments), chosen, f"http://{_joined(host, port)}"),
            checks,
            sessions,
            LimitChecks(chosen),
            metrics,
            GatewayOptions(
                chosen.megabytes * 1_000_000,
                chosen.patience,
                chosen.threads,
                waits=settings.server.timeout,
            ),
            ended=store.end,
            cancelled=cancelled,
            repeats=RequestHistory(store, store.secret("changes", os.urandom(32))),
        )
        worker = GatewayWorker(
            listeners,
            endpoint,
            metrics,
            drain=chosen.drain,
            patience=chosen.patience,
            ready=store.ready,
            links=links,
        )
        worker.serve()


def _roots(arguments: Namespace, chosen: GatewaySettings) -> dict[str, tuple[str, ...]]:
    """The folders of each realm."""
    roots = dict(chosen.realms)
    if arguments.roots:
        roots[""] = tuple(arguments.roots)
    return roots


def _realms(
    arguments: Namespace, settings: Settings, chosen: GatewaySettings, state: str
) -> Realms:
    def opened(folders: tuple[str, ...], mode: Mode) -> Workspace:
        workspace = open_workspace(folders, state_dir=state, mode=mode, settings=settings)
        shared_by = VERSION if settings.server.shared_index else ""
        workspace.keep_search_index(partial(open_indexes, shared_by=shared_by))
        return workspace

    def tools(workspace: Workspace, access: RealmAccess) -> Toolset:
        return open_toolbox(
            workspace,
            own=True,
            tier=access.tier,
            max_level=access.max_level,
            read_only=access.mode == "read-only",
            seconds=settings.server.timeout,
        )

    def facts(workspace: Workspace, access: RealmAccess) -> tuple[str, str, str]:
        changes = access.mode != "read-only" and access.max_level != "safe"
        own = changes and access.tier != "essential"
        said = instructions(workspace, changes=changes, own=own, moves=False)
        return "filepact", VERSION, said

    roots = _roots(arguments, chosen)
    return Realms(roots, opened=opened, tools=tools, facts=facts, page=settings.server.page)


def _guard(
    realms: Realms, access: RealmAccess, chosen: GatewaySettings, address: str
) -> OpenGatewayGuard:
    """Who may ask."""
    if not chosen.knows_users:
        return OpenGatewayGuard(realms, access)
    issuer = None
    if chosen.issuer:
        issuer = TokenIssuer(
            chosen.issuer,
            algorithms=chosen.algorithms,
            leeway=chosen.leeway,
            types=chosen.token_types,
            user_claim=chosen.user_claim,
        )
    return TokenGatewayGuard(
        realms,
        access,
        chosen,
        url=chosen.url or address,
        issuer=issuer,
        tokens=TokenFile(chosen.tokens) if chosen.tokens else dict,
    )


def _new_token(name: str) -> CommandAnswer:
    """A token for somebody, and the line that lets it in."""
    if not name.isascii() or not name.isprintable() or " " in name or name.startswith("#"):
        raise InvalidParamsError(
            f"{name!r} cannot be the name of a token", hint="Take letters, digits, - and _."
        )
    token = f"fpt_{secrets.token_urlsafe(32)}"
    line = f"{name} {sha256(token.encode()).hexdigest()}"
    said = (
        f"{token}\n\nThis is shown once; give it to {name}. The gateway knows it by this line in the file "
        f"that tokens in [serve] names:\n\n{line}\n"
    )
    return CommandAnswer(plain(said), {"name": name, "token": token, "line": line})


def _check(arguments: Namespace, settings: Settings, chosen: GatewaySettings) -> None:
    """Refuse what could not be served, before anything listens."""
    if not arguments.roots and not chosen.realms:
        raise InvalidParamsError(
            "no folder was named", hint="Name at least one, or a workspace in the settings."
        )
    if settings.guard.landlock == "required":
        raise InvalidParamsError(
            "the settings require the kernel's sandbox, and a gateway has none",
            hint="Serve with `filepact mcp`, or set landlock in [guard] to auto.",
        )


def _access(arguments: Namespace) -> RealmAccess:
    chosen: dict[str, Any] = {"tier": arguments.tier, "max_level": arguments.max_level}
    return RealmAccess(arguments.mode, **chosen)


def _address(text: str, option: str) -> tuple[str, int]:
    """An address as it is typed.

    Raises:
        InvalidParamsError: It is none.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdecimal() and int(port[:6]) <= 65_535):
        raise InvalidParamsError(
            f"{option} {text}: not an address", hint="Give it as HOST:PORT, such as 127.0.0.1:8750."
        )
    return host, int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
