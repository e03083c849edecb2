"""Who may ask a gateway: tokens of an issuer, tokens of its own, and what its rules say of them."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import re
import time
from contextlib import nullcontext
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import jwt
import pytest
from mcp import ClientSession
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

from filepact.errors import FilepactError, StateFailedError, UnauthorizedError
from filepact_gateway.guard import peer_of
from filepact_gateway.issuer import TokenIssuer, fetch_json
from filepact_gateway.requests import HttpRequest
from gateway_issuer import Issuer, Key
from gateway_running import RunningGateway
from tests.faces.small_server import wait_for
from tests.forked import run

if TYPE_CHECKING:
    from collections.abc import Iterator

PING = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}

SETTINGS = """
[serve]
issuer = "{issuer}"
scopes = ["files"]
tokens = "{base}/tokens"

[realms.docs]
roots = ["{base}/docs"]

[[access]]
users = ["ann", "token:*"]

[[access]]
claims = {{ groups = "readers" }}
realms = ["docs"]
mode = "read-only"

[[access]]
users = ["eve"]
scopes = ["more"]

[[access]]
users = ["sue"]
scopes = ["more"]

[[access]]
users = ["sue"]
mode = "read-only"
"""


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    made = Issuer()
    yield made
    made.end()


@pytest.fixture(scope="module")
def own(base: Path) -> str:
    """A token of the gateway's own, for `ci`."""
    made = json.loads(run(["--json", "serve", "--new-token", "ci"], capture_output=True).stdout)
    (base / "tokens").write_text(f"# ours\n{made['line']}\n")
    return made["token"]


@pytest.fixture(scope="module")
def guarded(base: Path, issuer: Issuer, own: str) -> Iterator[RunningGateway]:
    (base / "docs").mkdir()
    (base / "docs" / "d.txt").write_text("docs\n")
    settings = SETTINGS.format(issuer=issuer.url, base=base)
    running = RunningGateway(base, [str(base / "root")], settings=settings)
    yield running
    assert running.end() == 0


def resource(running: RunningGateway, path: str = "/mcp") -> str:
    return f"http://{running.address}{path}"


def asked(running: RunningGateway, token: str | None, path: str = "/mcp") -> Any:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return running.client(path, **headers).open()


# -- how a client comes to a token -----------------------------------------------------------------


class Storage:
    """Where a client keeps its token."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


async def use_all(url: str) -> list[Any]:
    """Log in as an ordinary client does, and read, edit and undo."""
    came: dict[str, str] = {}

    async def browse(address: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(address, follow_redirects=False)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        came.update({name: values[0] for name, values in query.items()})

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=came["code"], state=came["state"], iss=came["iss"])

    login = OAuthClientProvider(
        url,
        OAuthClientMetadata(
            redirect_uris=["http://127.0.0.1:1/callback"],
            client_name="tester",
            token_endpoint_auth_method="none",
        ),
        Storage(),
        browse,
        come_back,
    )
    async with (
        httpx2.AsyncClient(auth=login) as http,
        streamable_http_client(url, http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        read = await session.call_tool("read_file", {"path": "e.txt"})
        change = {"path": "e.txt", "old_string": "one", "new_string": "1"}
        edited = await session.call_tool("edit_file", change)
        undone = await session.call_tool("history", {"action": "undo"})
        return [read, edited, undone]


def test_an_ordinary_client_logs_in_and_reads_edits_and_undoes(guarded, issuer, base):
    (base / "root" / "e.txt").write_text("one\n")
    answers = asyncio.run(use_all(resource(guarded)))
    assert [one.is_error for one in answers] == [False, False, False]
    assert {"/register", "/authorize", "/token"} <= set(issuer.asked)
    assert (base / "root" / "e.txt").read_text() == "one\n"


def test_the_user_stands_in_the_journal_and_in_the_audit_log(guarded, issuer, base):
    client = guarded.client(authorization=f"Bearer {issuer.token(resource(guarded))}")
    client.open()
    done = client.call("write_file", path="mine.txt", content="x\n")
    operation = done.result["_meta"]["filepact/receipt"]["operation"]
    state = ["--state", str(base / "state"), "--root", str(base / "root")]
    shown = run([*state, "show", operation], capture_output=True).stdout.decode()
    assert "for ann" in shown
    audit = run([*state, "--json", "audit", "export"], capture_output=True).stdout.decode()
    assert '"user": "ann"' in audit or '"user":"ann"' in audit


# -- tokens that are not taken ---------------------------------------------------------------------


def test_without_a_token_a_client_is_told_where_one_is_to_be_had(guarded, issuer):
    answer = asked(guarded, None)
    assert (answer.status, answer.code) == (401, "UNAUTHORIZED")
    said = dict(re.findall(r'(\w+)="([^"]*)"', answer.headers["www-authenticate"]))
    assert said["scope"] == "files"
    assert "error" not in said
    told = guarded.client().send("GET", path=urlsplit(said["resource_metadata"]).path)
    assert told.message["resource"] == resource(guarded)
    assert told.message["authorization_servers"] == [issuer.url]
    assert told.message["scopes_supported"] == ["files"]
    docs = guarded.client().send("GET", path="/.well-known/oauth-protected-resource/mcp/docs")
    assert docs.message["resource"] == resource(guarded, "/mcp/docs")
    none = guarded.client().send("GET", path="/.well-known/oauth-protected-resource/mcp/none")
    assert none.status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "PUT"])
def test_it_is_told_so_whatever_the_method(guarded, issuer, method):
    """Some clients ask for the place to log in with HEAD, others with GET."""
    answer = guarded.client().send(method)
    assert answer.status == 401
    assert "resource_metadata=" in answer.headers["www-authenticate"]
    if method == "HEAD":
        assert answer.body == b""
    token = issuer.token(resource(guarded))
    if method != "DELETE":
        assert guarded.client(authorization=f"Bearer {token}").send(method).status == 405


def test_every_page_may_read_where_to_log_in_and_no_other_answer(guarded):
    """A client in a page of anybody's finds out like any other; browsers ask first because of its headers."""
    page = {"origin": "https://anybody.example"}
    where = "/.well-known/oauth-protected-resource/mcp"
    asks = {"access_control_request_headers": "mcp-protocol-version"}
    for method, more in (("OPTIONS", asks), ("GET", {})):
        answer = guarded.client().send(method, path=where, **page, **more)
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == "*"
        assert answer.headers["access-control-allow-headers"] == "*"
    answer = guarded.client(**page).open()
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


def unsigned(token: str) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none","typ":"at+jwt"}').rstrip(b"=").decode()
    return f"{head}.{token.split('.')[1]}."


def by_secret(token: str, issuer: Issuer) -> str:
    """Signed with what everybody knows, as if that were a secret."""
    claims = jwt.decode(token, options={"verify_signature": False})
    public = issuer.keys[0].public["n"]
    return jwt.encode(claims, public, algorithm="HS256", headers={"kid": "first"})


WRONG = {
    "expired": lambda issuer, to: issuer.token(to, exp=int(time.time()) - 100),
    "not yet": lambda issuer, to: issuer.token(to, nbf=int(time.time()) + 1_000),
    "made later than now": lambda issuer, to: issuer.token(to, iat=int(time.time()) + 1_000),
    **{
        f"with {name} {value!r}": lambda issuer, to, claim={name: value}: issuer.token(to, **claim)
        for name, values in {
            "exp": ("9999999999", 10**30, 1e30, float("inf"), float("nan"), True, [9999999999]),
            "nbf": ("1", -1, True),
            "iat": ("1", -(10**30), True),
        }.items()
        for value in values
    },
    "an ID token by what it says of itself": lambda issuer, to: issuer.token(
        to, header={"typ": "JWT"}, typ="ID"
    ),
    "an ID token with the hash of another": lambda issuer, to: issuer.token(
        to, header={"typ": None}, at_hash="x"
    ),
    "without an end": lambda issuer, to: issuer.token(to, exp=None),
    "for nobody": lambda issuer, to: issuer.token(to, aud=None),
    "for somebody else": lambda issuer, _to: issuer.token("https://other.example/mcp"),
    "for another realm": lambda issuer, to: issuer.token(f"{to}/docs"),
    "of another issuer": lambda issuer, to: issuer.token(to, iss="https://other.example"),
    "of nobody": lambda issuer, to: issuer.token(to, sub=None),
    "of a name of ours": lambda issuer, to: issuer.token(to, sub="token:ci"),
    "of a strange key": lambda issuer, to: issuer.token(to, key=Key("first")),
    "of an unknown key": lambda issuer, to: issuer.token(to, key=Key("strange")),
    "unsigned": lambda issuer, to: unsigned(issuer.token(to)),
    "by a secret": lambda issuer, to: by_secret(issuer.token(to), issuer),
    "of another type": lambda issuer, to: issuer.token(to, header={"typ": "dpop+jwt"}),
    "with what is critical": lambda issuer, to: issuer.token(to, header={"crit": ["x"], "x": 1}),
    "cut off": lambda issuer, to: issuer.token(to)[:-10],
    "too long": lambda issuer, to: issuer.token(to, filler="x" * 20_000),
    "nonsense": lambda _issuer, _to: "a.b.c",
    "ours, but another one": lambda _issuer, _to: "fpt_" + "x" * 43,
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_token_is_refused_that_is(guarded, issuer, kind):
    answer = asked(guarded, WRONG[kind](issuer, resource(guarded)))
    assert (answer.status, answer.code) == (401, "UNAUTHORIZED")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("audience", "types", "called", "taken"),
    [
        ("https://files.example.com/mcp", (), "JWT", True),
        ("https://files.example.com/mcp", (), None, True),
        ("https://files.example.com/mcp", (), "application/at+jwt", True),
        ("https://files.example.com/mcp", ("at+jwt",), "JWT", False),
        ("client-1", (), "at+jwt", True),
        ("client-1", (), "JWT", False),
        ("client-1", (), None, False),
        ("client-1", ("at+jwt", "JWT"), "JWT", True),
        ("client-1", ("JWT",), None, True),
        ("client-1", ("JWT",), "logout+jwt", False),
    ],
)
def test_an_id_token_is_no_access_token(issuer, audience, types, called, taken):
    """Its audience is the client, as that of an access token may be; only the type tells them apart."""
    reader = TokenIssuer(issuer.url, algorithms=["RS256"], leeway=0, types=types)
    token = issuer.token(audience, header={"typ": called})
    with nullcontext() if taken else pytest.raises(UnauthorizedError):
        assert asyncio.run(reader.read(token, audience)).user == "ann"


def test_a_token_that_was_taken_before_is_refused_when_it_has_expired(issuer):
    reader = TokenIssuer(issuer.url, algorithms=["RS256"], leeway=0)
    token = issuer.token("here", exp=int(time.time()) + 2)

    def refused() -> str:
        try:
            assert asyncio.run(reader.read(token, "here")).user == "ann"
        except FilepactError as error:
            return error.code
        return ""

    assert refused() == ""
    with pytest.raises(FilepactError):
        asyncio.run(reader.read(token, "elsewhere"))
    assert wait_for(refused)
    assert refused() == "UNAUTHORIZED"


@pytest.mark.parametrize(("claim", "by"), [("exp", -5), ("nbf", 5), ("iat", 5)])
def test_clocks_may_differ_a_little(guarded, issuer, claim, by):
    token = issuer.token(resource(guarded), **{claim: int(time.time()) + by})
    assert asked(guarded, token).status == 200


@pytest.mark.parametrize("scope", [5, True, [5], {"files": 1}, None])
def test_scopes_that_are_no_scopes_allow_nothing(guarded, issuer, scope):
    answer = asked(guarded, issuer.token(resource(guarded), scope=scope))
    assert (answer.status, answer.code) == (403, "FORBIDDEN")


def test_who_does_what_a_refusal_of_a_token_says_gets_on(guarded, issuer):
    def hint(answer: Any) -> str:
        return answer.message["error"]["data"]["hint"]

    good = issuer.token(resource(guarded))
    assert "Authorization: Bearer" in hint(asked(guarded, None))
    old = issuer.token(resource(guarded), exp=int(time.time()) - 600)
    assert "new token" in hint(asked(guarded, old))
    less = asked(guarded, issuer.token(resource(guarded), scope="none"))
    assert (less.code, "scopes that the answer names" in hint(less)) == ("FORBIDDEN", True)
    named = re.findall(r'scope="([^"]*)"', less.headers["www-authenticate"])
    assert asked(guarded, issuer.token(resource(guarded), scope=named[0])).status == 200
    assert asked(guarded, good).status == 200


@pytest.mark.parametrize("header", ["", "Basic YTpi", "Bearer", "Bearer "])
def test_only_bearer_tokens_are_looked_at(guarded, header):
    answer = guarded.client(authorization=header).open()
    assert (answer.status, answer.code) == (401, "UNAUTHORIZED")


def test_a_token_in_the_address_is_not_looked_at(guarded, issuer):
    token = issuer.token(resource(guarded))
    assert guarded.client(f"/mcp?access_token={token}").open().status == 401


# -- what they may ---------------------------------------------------------------------------------


def test_rules_say_who_may_use_what_and_how(guarded, issuer, own):
    docs = "/mcp/docs"
    reader = issuer.token(resource(guarded, docs), sub="bob", groups=["readers", "x"])
    client = guarded.client(docs, authorization=f"Bearer {reader}")
    assert client.open().status == 200
    names = {tool["name"] for tool in client.ask("tools/list").result["tools"]}
    assert "read_file" in names
    assert "write_file" not in names
    assert "docs" in client.call("read_file", path="d.txt").text
    for token, path in (
        (issuer.token(resource(guarded), sub="bob", groups=["readers"]), "/mcp"),
        (issuer.token(resource(guarded, docs), sub="bob", groups="writers"), docs),
    ):
        answer = asked(guarded, token, path)
        assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert asked(guarded, own, docs).status == 200


@pytest.mark.parametrize(
    ("claims", "wanted"),
    [
        ({"scope": "other"}, "files"),
        ({"scope": None}, "files"),
        ({"scope": "files", "sub": "eve"}, "files more"),
    ],
)
def test_a_token_that_does_not_allow_enough_is_told_what_is_missing(
    guarded, issuer, claims, wanted
):
    answer = asked(guarded, issuer.token(resource(guarded), **claims))
    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    said = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in said
    assert f'scope="{wanted}"' in said


def test_a_call_that_wants_another_scope_says_which_and_works_with_it(guarded, issuer, base):
    """So a client asks its user for more when that is used, and not at its first login."""
    file = base / "root" / "up.txt"
    file.write_text("one\n")
    change = {"path": "up.txt", "old_string": "one", "new_string": "two"}
    less = f"Bearer {issuer.token(resource(guarded), sub='sue')}"
    more = f"Bearer {issuer.token(resource(guarded), sub='sue', scope='more files')}"
    client = guarded.client(authorization=less)
    assert client.open().status == 200
    assert "edit_file" in {tool["name"] for tool in client.ask("tools/list").result["tools"]}
    assert "one" in client.call("read_file", path="up.txt").text
    for answer in (
        client.call("edit_file", **change),
        client.without_session("tools/call", name="edit_file", arguments=change),
    ):
        assert (answer.status, answer.code) == (403, "FORBIDDEN")
        said = dict(re.findall(r'(\w+)="([^"]*)"', answer.headers["www-authenticate"]))
        assert (said["error"], said["scope"]) == ("insufficient_scope", "files more")
        assert said["resource_metadata"].endswith("/.well-known/oauth-protected-resource/mcp")
    assert file.read_text() == "one\n"
    assert client.call("none").status == 200
    client.headers["authorization"] = more
    assert client.call("edit_file", **change).result["isError"] is False
    assert file.read_text() == "two\n"


def test_scopes_may_be_a_list(guarded, issuer):
    token = issuer.token(resource(guarded), scope=None, scp=["files", "more"], sub="eve")
    assert asked(guarded, token).status == 200


def test_a_session_is_its_users_alone(guarded, issuer, own):
    client = guarded.client(authorization=f"Bearer {issuer.token(resource(guarded))}")
    client.open()
    stranger = guarded.client(authorization=f"Bearer {own}")
    stranger.session = client.session
    assert stranger.ask("ping").code == "SESSION_UNKNOWN"
    assert stranger.send("DELETE", mcp_session_id=client.session).status == 404
    assert client.ask("ping").result == {}


def test_nobody_undoes_what_another_user_did(guarded, issuer, own, base):
    ann = guarded.client(authorization=f"Bearer {issuer.token(resource(guarded))}")
    ci = guarded.client(authorization=f"Bearer {own}")
    arguments = {"path": "hers.txt", "content": "x\n"}
    noted = {"_meta": {"ai.opencode/sessionID": "one"}}
    call = {"name": "write_file", "arguments": arguments}
    assert ann.without_session("tools/call", **call, **noted).status == 200
    undo = {"name": "history", "arguments": {"action": "undo"}}
    refused = ci.without_session("tools/call", **undo, **noted)
    assert refused.result["isError"] is True
    assert (base / "root" / "hers.txt").exists()
    assert ann.without_session("tools/call", **undo, **noted).result["isError"] is False
    assert not (base / "root" / "hers.txt").exists()


def test_a_token_of_our_own_ends_when_it_is_taken_out_of_the_file(guarded, own, base):
    client = guarded.client(authorization=f"Bearer {own}")
    assert client.open().status == 200
    tokens = base / "tokens"
    said = tokens.read_text()
    try:
        tokens.write_text("# nobody\n")
        assert client.ask("ping").code == "UNAUTHORIZED"
        tokens.write_text("one word too many\n")
        answer = client.ask("ping")
        assert (answer.status, answer.code) == (503, "STATE_ERROR")
        assert answer.headers["retry-after"] == "10"
        tokens.unlink()
        assert client.ask("ping").status == 503
    finally:
        tokens.write_text(said)
    assert client.ask("ping").result == {}


def test_a_session_goes_on_with_the_next_token_of_its_user(guarded, issuer):
    client = guarded.client(authorization=f"Bearer {issuer.token(resource(guarded))}")
    client.open()
    for late in ({"exp": int(time.time()) - 100}, {"sub": "bob"}):
        token = issuer.token(resource(guarded), **late)
        client.headers["authorization"] = f"Bearer {token}"
        assert client.ask("ping").status in (401, 403)
    client.headers["authorization"] = f"Bearer {issuer.token(resource(guarded), jti='next')}"
    assert client.ask("ping").result == {}


def test_no_token_is_kept_or_passed_on(guarded, issuer, own, base):
    """A token is for the gateway alone: nothing that it writes, or is told, has one."""
    tokens = [own, issuer.token(resource(guarded), jti="kept")]
    for token in tokens:
        client = guarded.client(authorization=f"Bearer {token}")
        client.open()
        client.call("write_file", path=f"kept-{len(token)}.txt", content="x\n")
        assert client.ask("nothing").status == 200
    written = [path.read_bytes() for path in (base / "state").rglob("*") if path.is_file()]
    assert any(b"kept-" in one for one in written)
    for token in tokens:
        assert not any(token.encode() in one or token[-40:].encode() in one for one in written)


# -- the issuer's keys -----------------------------------------------------------------------------


def test_new_keys_are_learnt_and_old_ones_forgotten():
    issuer, now = Issuer(), [0.0]
    try:
        reader = TokenIssuer(
            issuer.url, algorithms=["RS256", "ES256"], leeway=0, clock=lambda: now[0]
        )

        def read(token: str) -> str:
            return asyncio.run(reader.read(token, "here")).user

        old = issuer.token("here")
        assert read(old) == "ann"
        issuer.keys = [Key("second", "ES256")]
        fresh = issuer.token("here")
        with pytest.raises(FilepactError) as caught:
            read(fresh)  # they were asked for just now
        assert caught.value.code == "UNAUTHORIZED"
        now[0] = 11.0
        assert read(fresh) == "ann"
        with pytest.raises(FilepactError):
            read(old)
        assert issuer.asked.count("/keys") == 2
        issuer.keys = [Key("third")]
        now[0] = 700.0  # the keys are old by now, and are asked for although the token's is known
        with pytest.raises(FilepactError):
            read(fresh)
    finally:
        issuer.end()


def test_keys_count_for_a_while_when_the_issuer_does_not_answer():
    issuer, now = Issuer(), [0.0]
    reader = TokenIssuer(issuer.url, algorithms=["RS256"], leeway=0, clock=lambda: now[0])
    token = issuer.token("here", exp=int(time.time()) + 1_000)
    asyncio.run(reader.read(token, "here"))
    issuer.end()
    now[0] = 1_000.0
    assert asyncio.run(reader.read(token, "here")).user == "ann"
    now[0] = 100_000.0
    with pytest.raises(StateFailedError):
        asyncio.run(reader.read(token, "here"))


async def read_all(reader: TokenIssuer, tokens: list[str], issuer: Issuer) -> list[Any]:
    """What becomes of tokens that come at once; from then on the issuer tells its keys."""
    reading = (reader.read(one, "here") for one in tokens)
    try:
        return await asyncio.wait_for(asyncio.gather(*reading, return_exceptions=True), 4)
    finally:
        issuer.tells.set()


def test_an_issuer_that_is_slow_holds_up_nobody_whose_key_is_known(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("filepact_gateway.issuer._MOMENT", 0.1)
    issuer, now = Issuer(), [0.0]
    reader = TokenIssuer(issuer.url, algorithms=["RS256"], leeway=0, clock=lambda: now[0])
    token = issuer.token("here")
    try:
        asyncio.run(reader.read(token, "here"))
        issuer.tells.clear()
        now[0] = 700.0
        (found,) = asyncio.run(read_all(reader, [token], issuer))
        assert found.user == "ann"
    finally:
        issuer.end()


def test_a_new_key_is_asked_for_once_and_waited_for_so_long(monkeypatch: pytest.MonkeyPatch):
    issuer, now = Issuer(), [0.0]
    reader = TokenIssuer(issuer.url, algorithms=["RS256"], leeway=0, clock=lambda: now[0])
    try:
        asyncio.run(reader.read(issuer.token("here"), "here"))
        now[0] = 20.0
        issuer.keys = [Key("second")]
        many = [issuer.token("here") for _ in range(20)]
        assert {one.user for one in asyncio.run(read_all(reader, many, issuer))} == {"ann"}
        assert issuer.asked.count("/keys") == 2
        # Whether it is the issuer's cannot be known while that does not answer, so it is not refused for good.
        monkeypatch.setattr("filepact_gateway.issuer._SECONDS", 0.2)
        issuer.keys, now[0] = [Key("third")], 40.0
        issuer.tells.clear()
        many = [issuer.token("here") for _ in range(20)]
        found = asyncio.run(read_all(reader, many, issuer))
        assert {type(one) for one in found} == {StateFailedError}
    finally:
        issuer.end()


def test_a_new_key_is_not_refused_for_good_while_the_issuer_is_down():
    issuer, now = Issuer(), [0.0]
    reader = TokenIssuer(issuer.url, algorithms=["RS256"], leeway=0, clock=lambda: now[0])
    asyncio.run(reader.read(issuer.token("here"), "here"))
    issuer.keys = [Key("second")]
    token = issuer.token("here")
    issuer.end()
    now[0] = 20.0
    with pytest.raises(StateFailedError) as caught:
        asyncio.run(reader.read(token, "here"))
    assert caught.value.details["retry_after"] == 10


@pytest.mark.parametrize("path", ["late", "later"])
def test_an_answer_that_never_ends_is_not_waited_for(issuer: Issuer, path: str):
    with pytest.raises((OSError, HTTPException, ValueError)):
        fetch_json(f"{issuer.url}/{path}", seconds=0.2)


METADATA = {"issuer": "https://a.example/x", "jwks_uri": "https://a.example/keys"}


@pytest.mark.parametrize(
    "metadata",
    [
        METADATA | {"issuer": "https://b.example"},
        METADATA | {"jwks_uri": "http://a.example/keys"},
        METADATA | {"jwks_uri": "file:///etc/passwd"},
        METADATA | {"jwks_uri": "http://127.0.0.1/keys"},
        METADATA | {"jwks_uri": 5},
        METADATA | {"jwks_uri": None},
        METADATA | {"jwks_uri": ["https://a.example/keys"]},
        {"issuer": METADATA["issuer"]},
        [],
        None,
    ],
)
def test_an_issuer_that_says_something_else_of_itself_is_not_believed(metadata):
    said = {"https://a.example/.well-known/openid-configuration/x": metadata}
    fetched: list[str] = []

    def fetch(address: str) -> Any:
        fetched.append(address)
        return said.get(address)

    reader = TokenIssuer("https://a.example/x", algorithms=["RS256"], leeway=0, fetch=fetch)
    token = jwt.encode({}, Key("k").private, algorithm="RS256", headers={"kid": "k"})
    with pytest.raises(StateFailedError):
        asyncio.run(reader.read(token, "https://here.example"))
    assert fetched[0] == "https://a.example/.well-known/oauth-authorization-server/x"
    assert all("/.well-known/" in one for one in fetched)


def test_keys_that_cannot_sign_are_left_out():
    good = Key("good")
    keys = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"},
        good.public | {"kid": "encrypts", "use": "enc"},
        good.public | {"kid": "other", "alg": "RS512"},
        good.public | {"kid": "private", "d": "AQAB"},
        {"kty": "RSA", "kid": "broken", "n": "!"},
        "nonsense",
        good.public,
    ]
    answers = {
        "https://a.example/.well-known/oauth-authorization-server": METADATA
        | {"issuer": "https://a.example"},
        "https://a.example/keys": {"keys": keys},
    }
    reader = TokenIssuer("https://a.example", algorithms=["RS256"], leeway=0, fetch=answers.get)
    claims = {
        "iss": "https://a.example",
        "sub": "ann",
        "aud": "https://a.example",
        "exp": time.time() + 60,
    }
    for name in ("good", None):
        token = jwt.encode(
            claims, good.private, algorithm="RS256", headers={"kid": name} if name else {}
        )
        assert asyncio.run(reader.read(token, "https://a.example")).user == "ann"
    for name in ("encrypts", "other", "private", "broken", "shared"):
        token = jwt.encode(claims, good.private, algorithm="RS256", headers={"kid": name})
        with pytest.raises(FilepactError) as caught:
            asyncio.run(reader.read(token, "https://a.example"))
        assert caught.value.code == "UNAUTHORIZED"


def test_nothing_but_json_is_fetched(gateway):
    assert fetch_json(f"http://{gateway.address}/none") is None
    with pytest.raises(ValueError):
        fetch_json(f"http://{gateway.health}/metrics")


def test_json_that_is_deeper_than_it_can_be_read_is_none(issuer):
    with pytest.raises(ValueError):
        fetch_json(f"{issuer.url}/deep")


# -- whose address it is ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("peer", "told", "address"),
    [
        ("9.9.9.9", ["1.1.1.1"], "9.9.9.9"),
        ("10.0.0.1", ["6.6.6.6, 1.1.1.1"], "1.1.1.1"),
        ("10.0.0.1", ["1.1.1.1", "10.0.0.2"], "1.1.1.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("", ["1.1.1.1"], ""),
    ],
)
def test_only_proxies_that_are_named_are_believed(peer, told, address):
    request = HttpRequest("POST", "/mcp", {"x-forwarded-for": tuple(told)}, peer)
    assert peer_of(request, [ipaddress.ip_network("10.0.0.0/8")]) == address


# -- where nobody has to say who they are ----------------------------------------------------------


def test_only_a_loopback_address_is_served_to_everybody(tmp_path: Path):
    (tmp_path / "root").mkdir()
    done = run(
        ["serve", str(tmp_path / "root"), "--listen", "0.0.0.0:0", "--state", str(tmp_path / "s")],
        capture_output=True,
    )
    assert done.returncode == 2
    assert b"INVALID_PARAMS" in done.stderr


@pytest.mark.parametrize(
    "address", ["127.0.0.1:²", "127.0.0.1:65536", "127.0.0.1", "127.0.0.1:" + "9" * 5_000]
)
def test_what_is_no_address_is_told(tmp_path: Path, address: str):
    words = ["serve", str(tmp_path), "--listen", address, "--state", str(tmp_path / "s")]
    done = run(words, capture_output=True)
    assert done.returncode == 2
    assert b"INVALID_PARAMS" in done.stderr


# -- what the reference says -----------------------------------------------------------------------


def test_the_reference_names_tests_that_are_there():
    project = Path(__file__).resolve().parents[3]
    text = (project / "docs/reference/gateway-authorization.md").read_text()
    named = set(re.findall(r"`(test_\w+)`", text))
    here = [
        *Path(__file__).parent.glob("test_*.py"),
        project / "tests/faces/test_inspector_login.py",
    ]
    there = {
        one
        for file in here
        for one in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }
    assert named
    assert named - there == set()
