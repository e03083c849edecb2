"""The gateway's tables of a settings file."""

from __future__ import annotations

import pytest

from filepact.config.settings import parse_settings
from filepact.errors import InvalidParamsError


@pytest.mark.parametrize(
    "text",
    [
        '[serve]\nissuer = "https://[x"\n',
        '[serve]\nissuer = "https://a.example:99999"\n',
        '[serve]\nissuer = "https://me:secret@a.example"\n',
        '[serve]\nissuer = "http://a.example"\n',
        '[serve]\nhosts = ["https://a.example"]\n',
        '[serve]\nhosts = ["a.example/mcp"]\n',
        '[realms.default]\nroots = ["/a"]\n',
    ],
)
def test_what_a_gateway_could_not_be_reached_by_or_told_apart_is_refused(text: str) -> None:
    with pytest.raises(InvalidParamsError):
        parse_settings(text, name="f.toml")


@pytest.mark.parametrize(
    ("written", "spelt"),
    [
        ("https://Files.Example.com", "https://files.example.com"),
        ("https://files.example.com:443", "https://files.example.com"),
        ("https://files.example.com:80", "https://files.example.com:80"),
        ("http://LOCALHOST:80", "http://localhost"),
    ],
)
def test_addresses_of_a_gateway_are_spelt_as_clients_send_them_back(
    written: str, spelt: str
) -> None:
    text = f'[serve]\nurl = "{written}"\norigins = ["{written}"]\n'
    gateway = parse_settings(text, name="f.toml").extensions["gateway"]
    assert (gateway.url, gateway.origins) == (spelt, (spelt,))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("workers = true", "serve.workers: has to be a whole number from 1 to 64"),
        ("workers = 65", "serve.workers: has to be a whole number from 1 to 64"),
        ("leeway = 301", "serve.leeway: has to be a number from 0 to 300"),
        ("algorithms = []", "ES512, EdDSA, one at least"),
        ('algorithms = ["none"]', "serve.algorithms: has to be a list of any of RS256"),
        ('token_types = ["ID"]', "serve.token_types: has to be a list of any of at+jwt, JWT"),
        ('hosts = [""]', "serve.hosts: '' is not host[:port]"),
        ('proxies = ["x"]', "serve.proxies: 'x' is neither an address nor a network"),
        ('tokens = "tokens"', "serve.tokens: has to be an absolute path"),
        ('user_claim = ""', "serve.user_claim: has to be a text, and not empty"),
        ('issuer = "ftp://a"', "serve.issuer: has to be an address that begins with https://"),
        ('scopes = ["a b"]', "serve.scopes: 'a b' is not a scope"),
        ("worker = 2", "serve.worker: there is no such key; known are hosts, origins, workers"),
    ],
)
def test_a_key_or_a_value_that_is_not_known_is_named_with_what_would_be(
    line: str, said: str
) -> None:
    with pytest.raises(InvalidParamsError) as refused:
        parse_settings(f"[serve]\n{line}\n", name="f.toml")
    assert "f.toml, line 2, " in str(refused.value)
    assert said in str(refused.value)
