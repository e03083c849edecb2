"""Requests that are sent again: what was done for them once is answered, and nothing is done twice.

A request that changes something gives its change the id: made of the key that the client sent, or of the
session and the request's own id.  The journal takes an id once, whatever worker comes with it, and whatever
became of the worker that began it.

A key means one request for as long as it is known.  An id does so only until its answer has arrived: clients
that go on with a session begin to count anew, and what they ask for then is another request.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from hashlib import sha256
from hmac import digest
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from filepact.domain.deadline import Deadline
from filepact.domain.operation import following
from filepact.errors import FilepactError, InvalidParamsError, OtherRequestError, TimedOutError
from filepact.tools.answers import CallContext, repeated
from filepact.tools.registry import TRIES
from filepact.values import dataclass, replace
from filepact_mcp.results import RECEIPT_KEY, call_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from filepact.domain.operation import Session
    from filepact.tools.registry import Toolset
    from filepact_gateway.shared_store import PostgresGatewayStore
    from filepact_gateway.store import SqliteGatewayStore
    from filepact_wire.messages import RequestId

__all__ = ["RequestHistory", "RequestName", "RequestRecord"]

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_LONGEST: Final = 255
_ATTEMPTS: Final = 400
_MEANWHILE: Final = 1.0  # seconds that whoever came first with a request has to answer it
_NAP: Final = 0.02
_SECONDS: Final = 25.0  # that another worker is waited for, which carries the same request out


class RequestName(NamedTuple):
    """What a request is known by that can come again.

    Attributes:
        kind: Whether its client sent a key, or it has only the id that it has in its session.
        whose: The user and the realm, and of several requests that came as one the place in their list; or the session.
        name: The key, or the id.
    """

    kind: Literal["key", "id"]
    whose: tuple[str, ...]
    name: RequestId

    @classmethod
    def of(
        cls, sent: Sequence[str], session: str, id_: RequestId, whose: tuple[str, str], place: int
    ) -> RequestName | None:
        """The key of a request; None where it cannot come again.

        Args:
            sent: The keys that the client sent, mostly one; several count as one.
            session: Its session; empty where there are none.
            id_: The request's own.
            whose: The user and the realm.
            place: In the list that it came in, from 1; each has the key for itself there.

        Raises:
            InvalidParamsError: The client's key is none.
        """
        key = ", ".join(dict.fromkeys(sent))
        if len(key) > _LONGEST or not (key.isprintable() and all(one.strip('" ') for one in sent)):
            raise InvalidParamsError(f"an Idempotency-Key has 1 to {_LONGEST} visible characters")
        if key:
            return cls("key", (*whose, str(place)) if place else whose, key)
        return cls("id", (session,), id_) if session else None

    def digest(self, asked: str) -> str:
        """The same, as it is kept, for a request that asks for this."""
        facts = repr((self.kind, *self.whose, self.name))
        if self.kind == "id":
            # An id that a client uses for another request by mistake is no repetition.
            facts = f"{facts} {asked}"
        return sha256(facts.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request that may be sent again.

    Attributes:
        key: What it is known by.
        asked: What is asked for, in short; of an id, one use of it.
        by_id: Whether it is known by its id alone.
        fresh: Whether nobody has come with it before.
        change: The id of the change that it makes.
        first: That of the first try, which is the same at every machine.
    """

    key: str
    asked: str
    by_id: bool
    fresh: bool
    change: str
    first: str


class RequestHistory:
    """Recognises requests that are sent again.

    Args:
        store: What all workers know of them.
        secret: What ids of changes are made with, so that nobody can tell them in advance.
    """

    def __init__(self, store: SqliteGatewayStore | PostgresGatewayStore, secret: bytes) -> None:
        self.store = store
        self._secret = secret

    def begin(
        self, known: RequestName, tools: Toolset, called: Mapping[str, Any], session: Session
    ) -> RequestRecord | dict[str, Any] | None:
        """Note a request before it is carried out.

        Returns:
            The answer, if it was carried out before; None where it changes nothing, so that it may be
            carried out as often as it comes.

        Raises:
            OtherRequestError: Its key was used for another request.
            TimedOutError: Another worker carries it out, and has not come to an end.
        """
        name = called.get("name")
        tool = next((one for one in tools.tools if one.name == name), None)
        if tool is None or tool.kind == "reads":
            return None
        facts = json.dumps([name, called.get("arguments")], sort_keys=True)
        asked = sha256(facts.encode()).hexdigest()
        key, by_id = known.digest(asked), known.kind == "id"
        if by_id:
            asked = token_hex(8)
        before = self._claim(key, asked)
        if before is not None and before[0] != asked:
            if not by_id:
                raise OtherRequestError(
                    "this Idempotency-Key was sent with another request",
                    hint="Use a new key for each request.",
                )
            asked = before[0]
        first = change = self._change(f"{key} {asked}" if by_id else key)
        # Of what nobody has asked for before, nobody else can have begun anything.
        asking = replace(session, request="" if before is None else first)
        for _ in range(_ATTEMPTS):
            done = self._done(tools, change, asking, settle=True)
            if done is None:
                if before is not None and before[1] is not None:
                    # It came to nothing that the journal has.
                    return dict(before[1])
                return RequestRecord(key, asked, by_id, before is None, change, first)
            if done:
                return done
            change = following(change)
        raise TimedOutError("this request was undone too often", hint="Use a new key.")

    def _claim(self, key: str, asked: str) -> tuple[str, Mapping[str, Any] | None] | None:
        """As of the store, once whoever came first has answered; who takes long may be gone.

        A change is made once in any case, but two that make it at a time may not answer the same.
        """
        until = time.monotonic() + _MEANWHILE
        while True:
            before = self.store.claim(key, asked)
            if before is None or before[1] is not None or time.monotonic() > until:
                return before
            time.sleep(_NAP)

    def end(
        self, repeated: RequestRecord, result: Mapping[str, Any], tools: Toolset, session: Session
    ) -> Mapping[str, Any]:
        """Note what came of a request; the answer to send."""
        made = result.get("_meta", {}).get(RECEIPT_KEY, {}).get("operation")
        if made not in _tries(repeated.change):
            # Another worker may have carried it out meanwhile, so that there was nothing left to do.
            asking = replace(session, request=repeated.first)
            try:
                result = self.found(tools, repeated.change, asking) or result
            except FilepactError:
                # What became of it is looked up when it comes again.
                return result
        # It was done, or not, whether this can be noted just now or not.
        with suppress(FilepactError):
            if result.get("isError") is False:
                if not repeated.by_id:
                    self.store.keep(repeated.key, _again(result))
            elif repeated.fresh:
                self.store.release(repeated.key, repeated.asked)
        return result

    def settle(
        self, repeated: RequestRecord, result: Mapping[str, Any], *, delivered: bool
    ) -> None:
        """Note that the answer to a request that is known by its id has arrived, or is lost."""
        with suppress(FilepactError):
            if delivered:
                self.store.release(repeated.key, repeated.asked)
            else:
                self.store.keep(repeated.key, _again(result))

    def change_of(self, known: RequestName) -> str:
        """The id of the change that a request with a key makes first."""
        return self._change(known.digest(""))

    def found(self, tools: Toolset, change: str, session: Session) -> dict[str, Any] | None:
        """The answer to what was done in one of the tries of a call; None or empty for nothing."""
        for one in _tries(change):
            done = self._done(tools, one, session, settle=False)
            if done != {}:
                return done
        return None

    def _done(
        self, tools: Toolset, change: str, session: Session, *, settle: bool
    ) -> dict[str, Any] | None:
        """The answer to what was done under an id; empty for what was taken back, None for nothing."""
        call = CallContext(session, deadline=Deadline(_SECONDS))
        found = tools.done_before(call, change, settle=settle)
        if found is None:
            return None
        return {} if found == "taken back" else call_result(found)

    def _change(self, key: str) -> str:
        made = digest(self._secret, key.encode(), "sha256")
        return "c" + "".join(_ALPHABET[byte % 32] for byte in made[:10])


def _again(result: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as it is given to whoever asks for it again."""
    first, *more = result["content"]
    return {**result, "content": [{**first, "text": repeated(time.time(), first["text"])}, *more]}


def _tries(change: str) -> list[str]:
    """The ids under which a call may have made a change, beginning with one."""
    found = [change]
    while len(found) < TRIES:
        found.append(following(found[-1]))
    return found
