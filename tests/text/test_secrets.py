"""Private keys and tokens in texts: found where they stand, and nothing else taken for one."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from filepact.text.secrets import (
    FORMS,
    SecretPattern,
    find_secrets,
    holds_private_key,
    mentions_private_key,
    redact,
)

BODY = "MIIEpAIBAAKCAQEA7bq0vPz3kQ2xYt0m8Jr5s1d4LhWfC6uT9oNgZpVeXiRaBySk\n" * 3
PEM = "-----BEGIN {0}PRIVATE KEY{1}-----\n{2}-----END {0}PRIVATE KEY{1}-----\n"

KEYS = [
    PEM.format("", "", BODY),
    PEM.format("RSA ", "", BODY),
    PEM.format("EC ", "", BODY),
    PEM.format("OPENSSH ", "", BODY),
    PEM.format("ENCRYPTED ", "", BODY),
    PEM.format("PGP ", " BLOCK", "Version: GnuPG v2\nComment: me\n\n" + BODY),
    PEM.format("RSA ", "", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n" + BODY),
    PEM.format("", "", BODY).replace("\n", "\r\n"),
    '{"private_key": "' + PEM.format("", "", BODY).replace("\n", "\\n") + '"}',
    "key: |\n" + re.sub(r"(?m)^", "    ", PEM.format("", "", BODY)),
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "-----BEGIN RSA PRIVATE KEY-----\nSECRET\n-----END RSA PRIVATE KEY-----\n",
    "  -----BEGIN PRIVATE KEY-----\r\n  abc=\r\n",
    "-----BEGIN PRIVATE KEY-----\n",
    "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n",
    re.sub(r"(?m)^", "> ", PEM.format("RSA ", "", BODY)),
    re.sub(r"(?m)^", ">> # ", PEM.format("", "", BODY)),
    re.sub(r"(?m)^", "// ", PEM.format("RSA ", "", BODY)),
    PEM.format("RSA ", "", BODY).replace("\n", " "),
    '{"private_key": "' + PEM.format("", "", BODY).replace("\n", "\\r\\n") + '"}',
    '{"private_key": "' + PEM.format("", "", BODY).replace("\n", "\\\\n") + '"}',
    "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: x\n" + BODY,
    "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2 + "\n",
    "untrusted comment: minisign encrypted secret key\n" + BODY.replace("\n", ""),
]

JWK = [
    '{"private_key": 1, "kty": "RSA", "n": "abc", "e": "AQAB", "d": "' + BODY[:64] + '"}',
    '{"private_key": 1, "keys": [{"d": "' + BODY[:43] + '", "crv": "P-256", "kty" : "EC"}]}',
    '{"private_key": 1,\n  "kty": "oct",\n  "k": "' + BODY[:43] + '"\n}',
    '{"private_key": "{\\"kty\\":\\"OKP\\",\\"d\\":\\"' + BODY[:43] + '\\"}"}',
]
"""JSON Web Keys with a private or a secret part."""

MENTIONS = [
    'if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):\n    pass\n',
    'MARK = b"-----BEGIN PRIVATE KEY-----"\nEND = b"-----END PRIVATE KEY-----"\n',
    "-----BEGIN PUBLIC KEY-----\n" + BODY + "-----END PUBLIC KEY-----\n",
    "-----BEGIN CERTIFICATE-----\n" + BODY + "-----END CERTIFICATE-----\n",
    "The file begins with `-----BEGIN PRIVATE KEY-----` and then goes on.\n",
    're.compile(r"-----BEGIN ([A-Z ]+)PRIVATE KEY-----\\s+")\n',
    'fmt = "-----BEGIN PRIVATE KEY-----\\n%s\\n-----END PRIVATE KEY-----"\n',
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n",
    '{"kty": "RSA", "n": "' + BODY[:64] + '", "e": "AQAB"}',
    '{"kty": "RSA", "n": "x"}, {"d": "' + BODY[:64] + '"}',
    'type Key = { "kty": string; "d"?: string }\n',
    "-----BEGIN PRIVATE KEY----- goes before the key\n",
    "age keys begin with AGE-SECRET-KEY-1\n",
]


@pytest.mark.parametrize("text", KEYS)
def test_a_private_key_is_found_with_all_its_lines(text: str) -> None:
    around = f"before\n{text}"
    for codec in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-be"):
        assert holds_private_key(around.encode(codec))
    hidden = redact(around)
    assert hidden.startswith("before\n") or "private_key" in around
    assert "[private key, not shown]" in hidden
    assert BODY[:40] not in hidden


@pytest.mark.parametrize("text", JWK)
def test_a_web_key_with_its_private_part_is_one(text: str) -> None:
    assert holds_private_key(text.encode())
    assert holds_private_key(text.encode("utf-16-le"))
    # A NUL or a byte that is no text keeps it from nobody.
    assert holds_private_key(b"\xff\0 x\n" + text.encode())
    assert holds_private_key(text.encode().replace(b"\n", b"\0\n", 1))
    assert BODY[:40] not in redact(text)


@pytest.mark.parametrize("text", MENTIONS)
def test_what_only_mentions_a_private_key_holds_none(text: str) -> None:
    assert not holds_private_key(text.encode())
    assert redact(text) == text


EVERY = [(form, first) for form in FORMS for first in form.begins]


@pytest.mark.parametrize(("form", "first"), EVERY, ids=lambda value: str(value)[:24])
@given(data=st.data())
@settings(max_examples=5)
def test_a_token_is_found_wherever_it_stands(
    form: SecretPattern, first: str, data: st.DataObject
) -> None:
    pattern = re.compile(form.before + re.escape(first) + form.rest, re.ASCII)
    token = data.draw(st.from_regex(pattern, fullmatch=True))
    for around in ('key = "{}"\n', "{}", "a:{}\nb", "https://x/?t={}&u=1"):
        text = around.format(token)
        names = [finding.name for finding in find_secrets(text)]
        assert form.name in names or names, text
        assert token not in redact(text)


def test_a_hundred_planted_tokens_of_many_kinds_are_found_in_source() -> None:
    chance = random.Random(5)
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
    kinds = {
        "ghp_": 36, "glpat-": 20, "AIza": 35, "hf_": 0, "npm_": 36, "gsk_": 52, "whsec_": 40,
        "sk_live_": 24, "r8_": 37, "pplx-": 48, "lin_api_": 40, "GOCSPX-": 28, "figd_": 40,
        "dckr_pat_": 30, "hvs.": 30, "sq0csp-": 43, "ntn_": 46, "ATATT3": 80, "xai-": 80,
        "pypi-AgE": 60, "sk-proj-": 60, "sk-ant-api03-": 60,
    }  # fmt: skip
    planted: list[str] = []
    lines: list[str] = []
    for number in range(100):
        begins, size = list(kinds.items())[number % len(kinds)]
        body = "".join(chance.choices(letters[:50] if size else letters[:24], k=size or 34))
        planted.append(begins + body)
        lines += [f"value_{number} = {number}\n", f'TOKEN = "{begins + body}"\n']
    found = find_secrets("".join(lines))
    assert len(found) == 100
    hidden = redact("".join(lines))
    assert not any(token in hidden for token in planted)


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "prefixghp_" + "a" * 36,
        "ghp_short",
        "sk-learn and sk-" + "x" * 20,
        "keyboard-key-" + "z" * 40,
        "https://user@example.org/path",
        "npm_config_registry=https://example.org/with/a/long/path/that/goes/on",
        "glpat-" + "é" * 30,
    ],
)
def test_what_only_begins_like_a_token_is_none(text: str) -> None:
    assert find_secrets(text) == ()
    assert redact(text) is text


def test_findings_come_in_order_and_a_token_within_a_key_is_not_told_apart() -> None:
    token = "ghp_" + "a" * 36
    text = f"{token}\n{KEYS[0]}{token}\n"
    assert [finding.name for finding in find_secrets(text)] == [
        "GitHub token",
        "private key",
        "GitHub token",
    ]
    inside = PEM.format("", "", BODY + token + "\n" + BODY)
    assert redact(inside) == "[private key, not shown]\n"


@pytest.mark.parametrize(
    "text",
    [
        "ghp_" * 100_000,
        "A" * 1_000_000,
        "-----BEGIN PRIVATE KEY-----\n" * 10_000,
        "-----BEGIN " + "RSA " * 50_000,
        "1" * 300_000 + ":AA",
        "sk-ant-api03-" * 20_000,
        ("-----BEGIN PRIVATE KEY-----\n" + "a: b\n" * 20) * 2_000,
    ],
    ids=range(7),
)
def test_hostile_text_is_looked_through_in_bounded_time(text: str) -> None:
    redact(text)
    holds_private_key(text.encode())


def test_a_key_without_an_end_is_hidden_as_far_as_one_can_reach() -> None:
    text = KEYS[0].partition("-----END")[0] + "x\n" * 30_000
    hidden = redact(text)
    assert hidden.startswith("[private key, not shown]")
    assert len(hidden) > 10_000


KEY = b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIB" + b"\n" * 2


@pytest.mark.parametrize("at", [0, 1, 40, 4_000, 7_999])
@pytest.mark.parametrize("cut", range(1, 12))
def test_a_word_of_a_key_that_an_edit_completes_is_found_where_the_two_differ(
    at: int, cut: int
) -> None:
    around = b"some text\n" * 800
    word = b"PRIVATE KEY"
    # Before, a part of the word stands there already.
    before = around[:at] + word[:cut] + around[at:]
    after = around[:at] + word + around[at:]
    assert mentions_private_key(after, before) or mentions_private_key(before)
    assert mentions_private_key(around[:at] + KEY + around[at:], around)
    for codec in ("utf-16-le", "utf-32-be"):
        wide = [text.decode().encode(codec) for text in (after, before)]
        assert mentions_private_key(*wide) or mentions_private_key(wide[1])
    assert not mentions_private_key(around + b"more", around)
    assert not mentions_private_key(around[100:], around)


@pytest.mark.parametrize(
    "text",
    ["PuTTY-User-Key-File-3: ssh-ed25519\n", "-----" + "BEGIN RSA PRIVATE KEY-----\nMIIEow\n"],
)
@pytest.mark.parametrize("mark", [b"\xff", b"\xef\xbb\xbf"])
def test_key_behind_a_mark(text: str, mark: bytes) -> None:
    assert holds_private_key(mark + text.encode())
    assert holds_private_key(text.encode("utf-16"))
    assert holds_private_key(text.encode("utf-32"))
