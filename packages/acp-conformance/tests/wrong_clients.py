"""Clients that are wrong on purpose, each with the checks that have to find it.

Many are what clients in the field do.
"""

from __future__ import annotations

# ruff: noqa: ARG002 - the signatures are those of the right client and the package
import asyncio
import os
from pathlib import Path

from acp.schema import ReadTextFileResponse, RequestPermissionResponse, WriteTextFileResponse

from right_client import BOM, RightClient

WRONG = {}
"""Name of a client -> how one is made, and the checks that it fails."""

LOOSE = {}
"""The same for clients that do one thing otherwise -> one made, the checks of all the groups concerned
that it fails, and those that cannot be judged then."""

WIRES = {
    "speaks too early": ["capabilities.initialize-first"],
    "version is a text": ["capabilities.version"],
    "capabilities are a list": ["capabilities.form"],
    "modes are a list": ["capabilities.extensions"],
    "client has no name": ["capabilities.client-info"],
    "cwd is relative": ["sessions.absolute-cwd"],
    "servers are missing": ["sessions.mcp-servers"],
    "prints what it does": ["ids.lines"],
    "answers twice": ["ids.once"],
    "forgets the version": ["ids.form"],
    "takes 0 for none": ["ids.zero"],
    "takes ids for numbers": ["ids.text"],
    "has 31 bits for ids": ["ids.numbers"],
    "reads Latin-1": ["ids.escapes"],
    "takes a chunk for a line": ["ids.pieces"],
    "errors are texts": ["errors.form"],
    "results are texts": ["reads.answer", "writes.answer"],
    "ends at an unknown notification": ["robustness.unknown-notification"],
    "ends at an unknown update": ["robustness.unknown-update"],
    "ends at any update": ["robustness.update"],
    "ends at an unknown answer": ["robustness.unknown-answer"],
    "ends at an unknown cancel": ["cancellation.unknown-request"],
    "stalls on a device": ["hostile.device"],
}
"""A wire that spoils what a right client says -> the checks that it fails."""

DEADLY = {
    "stalls on a pipe": ["hostile.pipe", "hostile.write-to-pipe"],
    "believes in methods": ["hostile.deep", "hostile.long-line", "hostile.hollow"],
    "believes in JSON": [
        "hostile.no-json",
        "hostile.no-utf-8",
        "hostile.batch",
        "hostile.scalar",
        "hostile.null",
    ],
}
"""The same, but each check ends the connection, so that each needs one of its own."""


def wrong(*checks):
    def take(client):
        WRONG[client.__name__] = (client, list(checks))
        return client

    return take


def loose(*checks, untried=()):
    def take(client):
        LOOSE[client.__name__] = (client, list(checks), list(untried))
        return client

    return take


def crlf_less(text):
    return text.replace("\r\n", "\n")


# -- what is announced, and sessions -----------------------------------------------------------


@wrong("capabilities.announced-is-served")
class ServesNothing(RightClient):
    async def read(self, params):
        return self.unknown("")

    write = read


@wrong("capabilities.not-announced-is-refused")
class ServesUnannounced(RightClient):
    reads = False

    def not_announced(self, method, params):
        return {"content": "text\n"}


@wrong(
    *("capabilities.no-terminal", "capabilities.no-elicitation"),
    *("robustness.unknown-method", "robustness.unknown-extension"),
)
class AnswersEverything(RightClient):
    def unknown(self, method):
        return None


@wrong("sessions.early-request")
class ForgetsEarlyRequests(RightClient):
    def opened(self, session, roots):
        async def later():
            # Everything that came with the answer is dealt with before.
            for _ in range(50):
                await asyncio.sleep(0)
            self.roots[session] = roots

        self.task = asyncio.get_running_loop().create_task(later())


@wrong(
    "sessions.no-session",
    "sessions.unknown-session",
    "sessions.odd-session",
    "sessions.two-sessions",
)
class HasOneSession(RightClient):
    def parameters(self, params, *required):
        return super().parameters({**params, "sessionId": "one"}, *required)

    def session_roots(self, session):
        return [root for roots in self.everywhere for root in roots]

    def opened(self, session, roots):
        self.everywhere = [*getattr(self, "everywhere", []), roots]


@wrong("sessions.closed-session")
class NeverCloses(RightClient):
    def closed(self, session):
        pass


@wrong("sessions.additional-directories")
class HasOneFolder(RightClient):
    def opened(self, session, roots):
        self.roots[session] = roots[:1]


# -- reading -----------------------------------------------------------------------------------


@wrong("reads.whole", "writes.read-back")
class StripsText(RightClient):
    def decode(self, data):
        return super().decode(data).strip()


@wrong("reads.empty")
class TakesEmptyForMissing(RightClient):
    def load(self, path, sent):
        data = super().load(path, sent)
        if not data:
            raise self.missing(sent)
        return data


@wrong("reads.characters", "encodings.other-bytes")
class DropsBytes(RightClient):
    def decode(self, data):
        return data.decode("ascii", errors="ignore")


@wrong(
    "reads.no-final-line-end",
    "reads.separators",
    "windows.only-lf",
)
class SplitsLines(RightClient):
    def window(self, text, line, limit):
        lines = text.splitlines(keepends=True)[max(line or 1, 1) - 1 :]
        joined = "\n".join(one.rstrip("\x0b\x0c\x1c\x85\u2028\u2029\n") for one in lines[:limit])
        return f"{joined}\n"


@wrong("reads.crlf", "encodings.crlf-kept", "encodings.round-trip")
class KnowsOnlyLf(RightClient):
    def decode(self, data):
        return crlf_less(super().decode(data))

    def encode(self, old, content):
        return content.encode()


@wrong("reads.names")
class TakesPathsForAddresses(RightClient):
    def real(self, path):
        return super().real(path.replace("%20", " ").partition("#")[0])


@wrong("reads.fresh")
class RemembersTexts(RightClient):
    def load(self, path, sent):
        memory = self.__dict__.setdefault("memory", {})
        return memory.setdefault(path, super().load(path, sent))


@wrong("reads.at-once")
class AnswersTheLast(RightClient):
    async def read(self, params):
        self.last = params
        await asyncio.sleep(0.05)
        return await super().read(self.last)


@wrong("reads.ten-megabytes", "reads.lines-of-a-large-file")
class ReadsMegabyte(RightClient):
    def load(self, path, sent):
        data = super().load(path, sent)
        if len(data) > 1_000_000:
            raise self.refusal(-32603, "The file is too large to be read.")
        return data


# -- some lines --------------------------------------------------------------------------------


@wrong("windows.line-and-limit")
class TakesLimitForTheLastLine(RightClient):
    def window(self, text, line, limit):
        last = limit if line is None or limit is None else max(limit - line + 1, 0)
        return super().window(text, line, last)


@wrong("windows.limit-beyond-the-end", "windows.largest")
class RefusesLongLimits(RightClient):
    def window(self, text, line, limit):
        if limit is not None and limit > 1_000:
            raise self.refusal(-32602, "The limit is too large.")
        return super().window(text, line, limit)


@wrong("windows.line-null", "windows.limit-null")
class RefusesNull(RightClient):
    async def read(self, params):
        if any(params.get(name, 0) is None for name in ("line", "limit")):
            raise self.refusal(-32602, "This has to be a number.")
        return await super().read(params)


@wrong("windows.line")
class CountsFromZero(RightClient):
    def window(self, text, line, limit):
        return super().window(text, None if line is None else line + 1, limit)


@wrong("windows.limit")
class LimitsOnlyWithLine(RightClient):
    def window(self, text, line, limit):
        return super().window(text, line, limit if line else None)


@wrong("windows.limit-from-line-one", "windows.line-zero", "windows.exact")
class IgnoresLineOne(RightClient):
    def window(self, text, line, limit):
        return text if line in {0, 1} else super().window(text, line, limit).rstrip("\n")


@wrong("windows.limit-zero")
class TakesZeroForAll(RightClient):
    def window(self, text, line, limit):
        return super().window(text, line, limit or None) if limit is not None else ""


@wrong("windows.past-the-end", "windows.largest")
class RefusesPastTheEnd(RightClient):
    def window(self, text, line, limit):
        if line and line > len(self.lines(text)):
            raise self.refusal(-32602, "Attempt to read beyond the end.")
        return super().window(text, line, limit)


@wrong("windows.parts-are-the-whole")
class SkipsBlankLines(RightClient):
    def lines(self, text):
        return [line for line in super().lines(text) if line != "\n"]


@wrong("windows.crlf")
class CountsEveryBreak(RightClient):
    def lines(self, text):
        return text.replace("\r", "\n").splitlines(keepends=True)


@wrong("windows.odd-numbers")
class CrashesAtOddNumbers(RightClient):
    def number(self, value):
        if value is not None and (type(value) is not int or value < 0):
            raise self.refusal(-32603, "Something went wrong with this number.")
        return value


# -- writing -----------------------------------------------------------------------------------


@wrong("writes.new-file", "writes.parents", "writes.at-once", "writes.five-megabytes")
class WritesOnlyExisting(RightClient):
    def store(self, path, data):
        if not path.exists():
            raise self.missing(str(path))
        path.write_bytes(data)


@wrong("writes.replaced", "encodings.lf-kept", "encodings.no-bom")
class WritesOver(RightClient):
    def store(self, path, data):
        with path.open("r+b" if path.exists() else "wb") as file:
            file.write(data)
            if data:
                file.write(b"\n")


@wrong("writes.empty", "writes.no-final-line-end")
class EndsEveryText(RightClient):
    def store(self, path, data):
        super().store(path, data if data.endswith(b"\n") else data + b"\n")


@wrong("writes.characters")
class WritesLatin(RightClient):
    def encode(self, old, content):
        return content.encode("latin-1", errors="replace")


@wrong("writes.unchanged")
class RefusesSameText(RightClient):
    def store(self, path, data):
        if path.exists() and path.read_bytes() == data:
            raise self.refusal(-32603, "Nothing would change.")
        super().store(path, data)


@wrong("writes.mode", "writes.nothing-left")
class WritesBeside(RightClient):
    def store(self, path, data):
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f"{path.name}.tmp")
        beside.write_bytes(data)
        path.with_name(f"{path.name}~").write_bytes(data)
        beside.replace(path)


@wrong("writes.in-order", "writes.read-behind-write")
class WritesSmallFirst(RightClient):
    async def write(self, params):
        await asyncio.sleep(len(params["content"]) / 100_000)
        return await super().write(params)


# -- encodings ---------------------------------------------------------------------------------


@wrong("encodings.crlf-once")
class DoublesReturns(RightClient):
    def encode(self, old, content):
        return content.replace("\n", "\r\n").encode()


@wrong("encodings.lone-cr")
class KnowsEveryReturn(RightClient):
    def encode(self, old, content):
        return super().encode(old, content.replace("\r", "\n"))


@wrong("encodings.bom-kept")
class ForgetsMark(RightClient):
    def encode(self, old, content):
        return super().encode(old.removeprefix(BOM), content)


@wrong("encodings.utf-16")
class ShowsReplacements(RightClient):
    def decode(self, data):
        return data.decode(errors="replace")


@wrong("encodings.half-a-pair")
class WritesHalves(RightClient):
    def encode(self, old, content):
        return content.encode(errors="replace")


# -- boundaries --------------------------------------------------------------------------------


@wrong(
    "boundaries.read-outside",
    "boundaries.write-outside",
    "boundaries.dot-dot",
    "boundaries.similar-name",
    "boundaries.link-to-file",
    "boundaries.write-through-link",
    "boundaries.link-to-folder",
    "boundaries.dangling-link",
    "boundaries.link-and-dot-dot",
)
class KnowsNoBounds(RightClient):
    def inside(self, path, roots):
        return True


@wrong("boundaries.similar-name")
class ComparesBeginnings(RightClient):
    def inside(self, path, roots):
        return any(path.startswith(root) for root in roots)


@wrong("boundaries.link-to-file", "boundaries.dangling-link", "boundaries.link-to-folder")
class ComparesNames(RightClient):
    def real(self, path):
        return os.path.normpath(path)

    def check(self, path):
        if path.is_dir():
            raise self.refusal(-32602, "This is a folder.")


@wrong("boundaries.link-inside")
class RefusesLinks(RightClient):
    def real(self, path):
        if os.path.islink(path):
            raise self.refusal(-32603, "Links are not followed here.")
        return super().real(path)


# -- refusals ----------------------------------------------------------------------------------


@wrong("errors.missing-file", "errors.missing-uri", "errors.reason", "errors.no-host-path")
class TellsAndHides(RightClient):
    def load(self, path, sent):
        if not path.is_file():
            raise self.refusal(-32603, "Internal error", real=str(path))
        return super().load(path, sent)

    def inside(self, path, roots):
        if not super().inside(path, roots):
            raise self.refusal(-32603, "Internal error", real=path)
        return True


@wrong("errors.folder-code")
class RefusesFoldersInAnotherWay(RightClient):
    def check(self, path):
        if path.is_dir():
            raise self.refusal(-32603, "This is a folder.")


@wrong("errors.no-file")
class ReadsFolders(RightClient):
    def load(self, path, sent):
        return b"a b c\n" if path.is_dir() else super().load(path, sent)


@wrong("errors.relative-path", "errors.nul-in-path")
class MakesPathsWhole(RightClient):
    def place(self, params):
        path = params["path"].partition("\0")[0]
        root = self.roots[params["sessionId"]][0]
        return super().place({**params, "path": os.path.join(root, path.removeprefix("~/"))})


@wrong("errors.no-exception", "errors.long-path")
class TellsExceptions(RightClient):
    def check(self, path):
        return None

    def place(self, params):
        return Path(params["path"])

    def load(self, path, sent):
        if len(str(path)) > 290:
            return b""
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.refusal(-32603, str(error)) from None


@wrong("errors.required-code")
class RefusesParametersInAnotherWay(RightClient):
    def parameters(self, params, *required):
        for name in required:
            if not isinstance(params.get(name), str):
                raise self.refusal(-32600, f"{name} has to be a text.")
        return params


@wrong("errors.required", "robustness.odd-params")
class TakesAnything(RightClient):
    async def handle(self, method, params, is_notification):
        if not isinstance(params, dict) or "path" not in params or "content" in params:
            return {"content": ""}
        return await super().handle(method, params, is_notification)


@wrong("errors.no-echo")
class EchoesParameters(RightClient):
    def parameters(self, params, *required):
        for name in required:
            if not isinstance(params.get(name), str):
                raise self.refusal(-32602, "Invalid parameters.", input=params)
        return params


# -- _meta -------------------------------------------------------------------------------------


@wrong("meta.read-path", "meta.write-path", "meta.content", "meta.window", "meta.session")
class LetsMetaOverride(RightClient):
    def parameters(self, params, *required):
        return super().parameters({**params, **(params.get("_meta") or {})}, *required)


@wrong("meta.anything", "meta.odd", "meta.unknown-parameter")
class KnowsItsParameters(RightClient):
    def parameters(self, params, *required):
        if params.keys() - {"sessionId", "path", "content", "line", "limit"}:
            raise self.refusal(-32602, "There are unknown parameters.")
        return super().parameters(params, *required)


# -- permissions and cancelling ----------------------------------------------------------------


@wrong("permissions.by-kind", "permissions.only-refusals")
class AllowsTheFirst(RightClient):
    async def permission(self, options):
        first = options[0]["optionId"]
        if len(options) == 2:
            first = "option-allow_once"
        return {"outcome": {"outcome": "selected", "optionId": first}}


@wrong("permissions.answer")
class ChoosesByName(RightClient):
    async def permission(self, options):
        return {"outcome": {"outcome": "selected", "optionId": options[0]["name"]}}


@wrong("permissions.at-cancel")
class LeavesQuestionsOpen(RightClient):
    async def permission(self, options):
        await asyncio.Event().wait()


@wrong("cancellation.late-write-code")
class RefusesLateInAnotherWay(RightClient):
    def late(self):
        return self.refusal(-32603, "The turn was cancelled before this was written.")


@wrong("cancellation.late-write")
class WritesLate(RightClient):
    def cancel(self, session):
        pass


@wrong("cancellation.next-turn")
class NeverForgives(RightClient):
    def cancel(self, session):
        self.closed(session)


@wrong("cancellation.request", "cancellation.write")
class DropsCancelled(RightClient):
    async def handle(self, method, params, is_notification):
        if method == "$/cancel_request":
            self.dropped = True
        elif not is_notification:
            await asyncio.sleep(0.02)
            if getattr(self, "dropped", False) and not params["path"].endswith("alive.txt"):
                self.dropped = False
                await asyncio.Event().wait()
        return await super().handle(method, params, is_notification)


# -- on the package, without a step of its own ---------------------------------------------------


@wrong(
    "meta.read-path",
    "meta.content",
    "capabilities.no-terminal",
    "errors.no-exception",
    "hostile.pipe",
    "hostile.write-to-pipe",
    "hostile.device",
    "hostile.batch",
)
class StandsOnThePackage:
    """What a first client on the protocol's package looks like."""

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        return ReadTextFileResponse(content=Path(path).read_text())  # noqa: ASYNC240 - as first clients do

    async def write_text_file(self, session_id, path, content, **_):
        Path(path).write_text(content)  # noqa: ASYNC240 - as first clients do
        return WriteTextFileResponse()

    async def request_permission(self, session_id, tool_call, options, **_):
        outcome = {"outcome": "selected", "optionId": options[0].option_id}
        return RequestPermissionResponse.model_validate({"outcome": outcome})

    async def session_update(self, session_id, update, **_):
        pass


# -- one thing done otherwise, and nothing else to blame for it ----------------------------------


@loose(
    "sessions.unknown-session",
    "sessions.two-sessions",
    untried=["sessions.closed-session"],
)
class ChecksNoIds(RightClient):
    """Its files are those of all sessions; it looks at no id, wherever one stands."""

    def session_roots(self, session):
        return [root for roots in self.everywhere for root in roots]

    def opened(self, session, roots):
        self.everywhere = [*getattr(self, "everywhere", []), roots]


@loose("meta.session", "meta.read-path", "meta.write-path", "meta.content", "meta.window")
class OverriddenByMeta(RightClient):
    def parameters(self, params, *required):
        meta = params.get("_meta")
        return super().parameters({**params, **(meta if isinstance(meta, dict) else {})}, *required)


@loose(
    "windows.line",
    "windows.limit",
    untried=[
        *("reads.lines-of-a-large-file", "windows.line-and-limit", "windows.limit-from-line-one"),
        *("windows.limit-beyond-the-end", "windows.line-zero", "windows.limit-zero"),
        *("windows.past-the-end", "windows.largest", "windows.exact", "windows.only-lf"),
        *("windows.parts-are-the-whole", "windows.crlf"),
    ],
)
class KnowsNoWindows(RightClient):
    def window(self, text, line, limit):
        return text


@loose("permissions.answer", untried=["permissions.by-kind", "permissions.only-refusals"])
class AsksNobody(RightClient):
    async def permission(self, options):
        return self.unknown("session/request_permission")


@loose("windows.exact", untried=["windows.parts-are-the-whole"])
class JoinsLines(RightClient):
    """Splits at LF, and joins what is asked for: the last line has no end."""

    def window(self, text, line, limit):
        part = super().window(text, line, limit)
        return part if line is None and limit is None else part.removesuffix("\n")


@loose(
    *("boundaries.read-outside", "boundaries.write-outside", "boundaries.dot-dot"),
    *("boundaries.similar-name", "boundaries.link-to-file", "boundaries.write-through-link"),
    *("boundaries.link-to-folder", "boundaries.dangling-link", "boundaries.link-and-dot-dot"),
    untried=["sessions.two-sessions"],
)
class HasNoBounds(RightClient):
    def inside(self, path, roots):
        return True


@loose("errors.missing-file")
class SaysMissingInAnotherWay(RightClient):
    def missing(self, sent):
        return self.refusal(-32603, "There is no such file.", uri=sent)


@loose("errors.missing-file", "errors.no-file", untried=["errors.missing-uri"])
class MissingIsEmpty(RightClient):
    def load(self, path, sent):
        self.check(path)
        return path.read_bytes() if path.is_file() else b""
