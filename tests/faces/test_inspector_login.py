"""The MCP Inspector logs its user in at an issuer by itself, on its command line and in its page, and edits a file."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from gateway_logins import PATIENCE, GuardedGateway, commands, follow
from tests.browser import CHROMIUM, Browser
from tests.needs import LINUX_PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.node_programs import Programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), LINUX_PROGRAMS]

BACK = "http://127.0.0.1/oauth/callback"
CHANGE = {"path": "a.txt", "old_string": "two", "new_string": "2"}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[GuardedGateway]:
    with GuardedGateway(tmp_path) as made:
        (made.root / "a.txt").write_text("one\ntwo\n")
        yield made


def inspector(programs: Programs) -> list[str]:
    return programs.command("@modelcontextprotocol/inspector", "clients/launcher/build/index.js")


def environment(programs: Programs, folder: Path) -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return programs.environment(home) | {
        "MCP_INSPECTOR_SECRET_STORE": "file",
        # Else every one of them comes back to the same port.
        "MCP_OAUTH_CALLBACK_URL": f"http://127.0.0.1:{free_port()}/oauth/callback",
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def call(programs: Programs, guarded: GuardedGateway, tool: str, arguments: Any, *more: str) -> Any:
    """The result of one tool, with the login of before."""
    (listing,) = commands("MCP Inspector", inspector(programs), guarded.url)[:1]
    words = [*listing[: listing.index("--method")], "--method", "tools/call", "--tool-name", tool]
    done = subprocess.run(
        [*words, "--tool-args-json", json.dumps(arguments), "--stored-auth-only", *more],
        env=environment(programs, guarded.base),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def test_its_command_line_logs_in_and_edits(programs: Programs, guarded: GuardedGateway) -> None:
    listing, _page = commands("MCP Inspector", inspector(programs), guarded.url)
    said = follow(listing, environment(programs, guarded.base), guarded.root)
    assert '"edit_file"' in said
    assert {"/register", "/authorize", "/token", "/keys"} <= set(guarded.issuer.asked)
    read = call(programs, guarded, "read_file", {"path": "a.txt"}, "--protocol-era", "modern")
    assert "two" in read["content"][0]["text"]
    done = call(programs, guarded, "edit_file", CHANGE, "--protocol-era", "legacy")
    assert (guarded.root / "a.txt").read_text() == "one\n2\n"
    assert "for ann" in guarded.says("show", done["_meta"]["filepact/receipt"]["operation"])
    assert guarded.issuer.asked.count("/authorize") == 1


def test_it_logs_in_with_an_id_that_the_issuer_gave_it(
    programs: Programs, guarded: GuardedGateway
) -> None:
    guarded.issuer.registers = False
    guarded.issuer.clients["ours"] = {"client_name": "ours", "redirect_uris": [BACK]}
    words = [*_edit(programs, guarded), "--client-id", "ours"]
    follow(words, environment(programs, guarded.base), guarded.root)
    assert (guarded.root / "a.txt").read_text() == "one\n2\n"
    assert [one["client_id"] for one in guarded.issuer.issued] == ["ours"]


RULES = """
[[access]]
scopes = ["write"]

[[access]]
mode = "read-only"
"""


def test_it_logs_in_again_where_a_call_wants_another_scope(
    programs: Programs, tmp_path: Path
) -> None:
    with GuardedGateway(tmp_path, RULES) as guarded:
        (guarded.root / "a.txt").write_text("one\ntwo\n")
        guarded.issuer.scope = "files write"
        guarded.issuer.clients["ours"] = {"client_name": "ours", "redirect_uris": [BACK]}
        words = [*_edit(programs, guarded), "--client-id", "ours"]
        said = follow(words, environment(programs, tmp_path), guarded.root)
        assert "additional scope: write" in said
        assert (guarded.root / "a.txt").read_text() == "one\n2\n"
        granted = [one["scope"] for one in guarded.issuer.grants]
        assert (granted[0], granted[-1]) == ("files", "files write")


class _Document(BaseHTTPRequestHandler):
    """What the people who run a program say of it."""

    def do_GET(self) -> None:
        address = f"https://127.0.0.1:{self.server.server_address[1]}{self.path}"
        said = {"client_id": address, "client_name": "Ours", "redirect_uris": [BACK]}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nobody reads along."""


@pytest.fixture
def document(tmp_path: Path, guarded: GuardedGateway) -> Iterator[str]:
    """The address of a document, with a certificate that the issuer believes."""
    certificate = tmp_path / "certificate.pem"
    certificate.write_bytes(_certificate())
    guarded.issuer.trusted = ssl.create_default_context(cafile=str(certificate))
    with HTTPServer(("127.0.0.1", 0), _Document) as server:
        proved = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        proved.load_cert_chain(certificate)
        server.socket = proved.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}/client.json"
        server.shutdown()
        thread.join()


def _certificate() -> bytes:
    """A key, and a certificate by itself for the loopback address."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    plain = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key.private_bytes(*plain) + made.public_bytes(Encoding.PEM)


def test_it_logs_in_by_a_document_that_the_issuer_fetches(
    programs: Programs, guarded: GuardedGateway, document: str
) -> None:
    guarded.issuer.documents = True
    words = [*_edit(programs, guarded), "--client-metadata-url", document]
    follow(words, environment(programs, guarded.base), guarded.root)
    assert (guarded.root / "a.txt").read_text() == "one\n2\n"
    assert [one["client_id"] for one in guarded.issuer.issued] == [document]
    assert "/register" not in guarded.issuer.asked


def _edit(programs: Programs, guarded: GuardedGateway) -> list[str]:
    """The command line that edits the file, without a login of before."""
    (listing, _page) = commands("MCP Inspector", inspector(programs), guarded.url)
    words = [*listing[: listing.index("--method")], "--method", "tools/call"]
    return [*words, "--tool-name", "edit_file", "--tool-args-json", json.dumps(CHANGE)]


# -- its page ------------------------------------------------------------------------------------------


@pytest.fixture
def page(programs: Programs, guarded: GuardedGateway) -> Iterator[str]:
    """The address of the page, served by its own program."""
    _listing, words = commands("MCP Inspector", inspector(programs), guarded.url)
    port = str(free_port())
    more = {"CLIENT_PORT": port, "HOST": "127.0.0.1", "MCP_AUTO_OPEN_ENABLED": "false"}
    process = subprocess.Popen(
        words,
        env=environment(programs, guarded.base) | more,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout as said:
        yield next(
            found[0] for line in said if (found := re.search(rf"http://127.0.0.1:{port}\S+", line))
        )
        process.terminate()


def press(browser: Browser, selector: str, so: str) -> None:
    """Press something, again where it was not there any more, until something is so."""
    where = (
        f"JSON.stringify(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
    )
    still = f"window.still = window.at === (window.at = {where}) ? window.still + 1 : 0, window.still > 5"
    for _ in range(20):
        browser.until(still)  # What moves is missed.
        browser.says("window.pressed = Date.now(), window.at = null")
        browser.click(selector)
        browser.until(f"({so}) || Date.now() - window.pressed > 5000")
        with contextlib.suppress(LookupError):
            if browser.says(so):
                return
    raise AssertionError(so, browser.text())


def reads(text: str) -> str:
    return f"document.body.innerText.includes({json.dumps(text)})"


def name(browser: Browser, found: str, called: str) -> str:
    """Give an element a name by which it is found again, once it is there."""
    browser.until(f"({found}).id = {json.dumps(called)}")
    return f"#{called}"


def use(browser: Browser, tool: str, **arguments: str) -> None:
    """Fill in the form of a tool, and press its button."""
    entry = f"[...document.querySelectorAll('button *')].find(e => e.textContent === {tool!r})"
    field = "[...document.querySelectorAll('label')].find(e => e.innerText.split(' ')[0] === '{}')"
    last = field.format(list(arguments)[-1])
    press(browser, name(browser, entry, f"to-{tool}"), f"!!{last}")
    for key, value in arguments.items():
        where = f"document.getElementById({field.format(key)}.htmlFor)"
        press(
            browser, name(browser, where, f"in-{key}"), f"document.activeElement.id === 'in-{key}'"
        )
        browser.type(value)
    button = "[...document.querySelectorAll('button')].find(e => e.innerText.startsWith('Execute'))"
    browser.until(f"!({button}).disabled")
    press(browser, name(browser, button, "execute"), reads("Results"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is here (package chromium)")
    with Browser() as made:
        made.look(dark=False)
        yield made


def test_its_page_logs_in_and_edits(browser: Browser, guarded: GuardedGateway, page: str) -> None:
    guarded.issuer.asks = True
    browser.go(page)
    press(browser, ".mantine-Switch-track", f"!({reads('Disconnected')})")
    browser.until("document.querySelector('#allow')")
    # The issuer says whom and what for, and where the browser goes back to.
    said = browser.text()
    assert all(one in said for one in (guarded.url, "ann", "files", "127.0.0.1"))
    press(browser, "#allow", "!document.querySelector('#allow')")
    press(browser, "label[for$='-Tools']", reads("edit_file"))
    use(browser, "read_file", path="a.txt")
    browser.until(reads("[lines 1-2 of 2"))
    use(browser, "edit_file", **CHANGE)
    browser.until(reads("Done: edit a.txt"))
    assert (guarded.root / "a.txt").read_text() == "one\n2\n"
    assert {"/register", "/authorize", "/allow", "/token", "/keys"} <= set(guarded.issuer.asked)


CLIENT = """
(async () => {
  const post = async (method, params, headers) => {
    const answer = await fetch(URL_, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return answer;
  };
  const refused = await post('ping', {}, {});
  const where = refused.headers.get('www-authenticate').match(/resource_metadata="([^"]+)"/)[1];
  const told = await (await fetch(where, { headers: { 'mcp-protocol-version': '2025-11-25' } })).json();
  const token = { authorization: 'Bearer ' + TOKEN };
  const hello = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } };
  const opened = await post('initialize', hello, token);
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') };
  const call = { name: 'read_file', arguments: { path: 'a.txt' } };
  const read = await (await post('tools/call', call, { ...token, ...session })).json();
  return [refused.status, told.authorization_servers[0], read.result.content[0].text];
})()
"""
"""A client in a page, that a browser lets have no more of answers than is shared with it."""


def test_a_page_that_may_ask_is_a_client_like_any_other(
    browser: Browser, guarded: GuardedGateway
) -> None:
    issuer = guarded.issuer
    browser.go(f"{issuer.url}/page")
    words = {"URL_": json.dumps(guarded.url), "TOKEN": json.dumps(issuer.token(guarded.url))}
    script = CLIENT
    for word, value in words.items():
        script = script.replace(word, value)
    found = browser.send(
        "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
    )
    assert "exceptionDetails" not in found, found["exceptionDetails"]
    status, where, text = found["result"]["value"]
    assert (status, where) == (401, issuer.url)
    assert "two" in text
