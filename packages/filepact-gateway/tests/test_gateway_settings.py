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
