"""Finds private keys and tokens in a text by the forms that their makers gave them.

Every form begins with letters that nothing else begins with, so ordinary text is not taken for
one; there is no guessing from how random a word looks.  The work grows with the text only: the
first letters are looked for, and only where they stand the form is compared, over a bounded
length.  A match is never put into a message.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from filepact.text.lines import common_head, common_tail
from filepact.values import dataclass, late_regex

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "FORMS",
    "KEY_WORDS",
    "LONGEST_KEY",
    "LONGEST_WORD",
    "SecretMatch",
    "SecretPattern",
    "find_secrets",
    "holds_private_key",
    "may_hold_secrets",
    "mentions_private_key",
    "redact",
]


@dataclass(frozen=True, slots=True)
class SecretMatch:
    """A secret in a text.

    Attributes:
        name: What it is.
        start: Offset of its first character.
        end: Offset behind its last one.
    """

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SecretPattern:
    """The form of one kind of token.

    Attributes:
        name: How people call it.
        begins: Its first letters, one of them.
        rest: An expression for what follows.
        before: An expression for what stands before the first letters and belongs to it.
    """

    name: str
    begins: tuple[str, ...]
    rest: str
    before: str = ""


FORMS: Final[tuple[SecretPattern, ...]] = (
    SecretPattern("AWS access key", ("AKIA", "ASIA"), r"(?![A-Z2-7]{9}EXAMPLE)[A-Z2-7]{16}"),
    SecretPattern("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"[A-Za-z0-9]{36,255}"),
    SecretPattern("GitHub token", ("github_pat_",), r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    SecretPattern(
        "GitLab token",
        ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "glsoat-", "glft-", "glagent-"),
        r"[A-Za-z0-9_-]{20,64}",
    ),
    SecretPattern(
        "Slack token",
        ("xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-"),
        r"[0-9A-Za-z][A-Za-z0-9-]{19,250}",
    ),
    SecretPattern("Slack token", ("xapp-",), r"[0-9]-[A-Z0-9]{5,30}-[0-9]{5,30}-[a-z0-9]{20,100}"),
    SecretPattern(
        "Slack address", ("hooks.slack.com/",), r"(?:services|workflows)/[A-Za-z0-9+/_-]{40,80}"
    ),
    SecretPattern(
        "Stripe key",
        ("sk_live_", "rk_live_", "sk_test_", "rk_test_"),
        r"[A-Za-z0-9]{20,250}",
    ),
    SecretPattern("Stripe secret", ("whsec_",), r"[A-Za-z0-9]{32,64}"),
    SecretPattern("Google key", ("AIza",), r"[A-Za-z0-9_-]{35}"),
    SecretPattern("Google secret", ("GOCSPX-",), r"[A-Za-z0-9_-]{28}"),
    SecretPattern("Google token", ("ya29.",), r"[A-Za-z0-9_-]{40,300}"),
    SecretPattern("OpenAI key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), r"[A-Za-z0-9_-]{40,250}"),
    SecretPattern("OpenAI key", ("sk-",), r"[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    SecretPattern(
        "Anthropic key", ("sk-ant-",), r"(?:api|admin|oat|sid)[0-9]{2}-[A-Za-z0-9_-]{40,250}"
    ),
    SecretPattern("OpenRouter key", ("sk-or-v1-",), r"[a-f0-9]{64}"),
    SecretPattern("Hugging Face token", ("hf_",), r"[A-Za-z]{34}"),
    SecretPattern("Groq key", ("gsk_",), r"[A-Za-z0-9]{52}"),
    SecretPattern("xAI key", ("xai-",), r"[A-Za-z0-9]{80}"),
    SecretPattern("Replicate token", ("r8_",), r"[A-Za-z0-9]{37}"),
    SecretPattern("Perplexity key", ("pplx-",), r"[A-Za-z0-9]{48}"),
    SecretPattern("npm token", ("npm_",), r"[A-Za-z0-9]{36}"),
    SecretPattern("PyPI token", ("pypi-AgE",), r"[A-Za-z0-9_-]{50,300}"),
    SecretPattern("RubyGems key", ("rubygems_",), r"[a-f0-9]{48}"),
    SecretPattern("SendGrid key", ("SG.",), r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    SecretPattern("Twilio key", ("SK",), r"[0-9a-f]{32}"),
    SecretPattern("Mailgun key", ("key-",), r"[0-9a-f]{32}"),
    SecretPattern("DigitalOcean token", ("doo_v1_", "dop_v1_", "dor_v1_"), r"[a-f0-9]{64}"),
    SecretPattern("Docker token", ("dckr_pat_", "dckr_oat_"), r"[A-Za-z0-9_-]{27,40}"),
    SecretPattern("Databricks token", ("dapi",), r"[a-f0-9]{32}(?:-[0-9])?"),
    SecretPattern("Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"[a-fA-F0-9]{32}"),
    SecretPattern("Square token", ("sq0atp-", "sq0csp-", "sq0idp-"), r"[A-Za-z0-9_-]{22,60}"),
    SecretPattern("Telegram token", (":AA",), r"[A-Za-z0-9_-]{33}", before=r"[0-9]{8,10}"),
    SecretPattern(
        "Discord address",
        ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        r"[0-9]{17,20}/[A-Za-z0-9_-]{60,80}",
    ),
    SecretPattern("Azure storage key", ("AccountKey=",), r"[A-Za-z0-9+/]{86}=="),
    SecretPattern("age key", ("AGE-SECRET-KEY-1",), r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    SecretPattern("Vault token", ("hvs.", "hvb.", "hvr."), r"[A-Za-z0-9_-]{24,300}"),
    SecretPattern(
        "Terraform token", (".atlasv1.",), r"[A-Za-z0-9_-]{60,70}", before=r"[A-Za-z0-9]{14}"
    ),
    SecretPattern("Linear key", ("lin_api_",), r"[A-Za-z0-9]{40}"),
    SecretPattern("Notion token", ("ntn_",), r"[A-Za-z0-9]{46}"),
    SecretPattern("Postman key", ("PMAK-",), r"[a-f0-9]{24}-[a-f0-9]{34}"),
    SecretPattern("Grafana token", ("glsa_",), r"[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    SecretPattern("Grafana token", ("glc_",), r"[A-Za-z0-9+/]{32,400}={0,2}"),
    SecretPattern("Sentry token", ("sntrys_", "sntryu_"), r"[A-Za-z0-9+/=_-]{40,400}"),
    SecretPattern("New Relic key", ("NRAK-",), r"[A-Z0-9]{27}"),
    SecretPattern("Atlassian token", ("ATATT3",), r"[A-Za-z0-9_=-]{60,300}"),
    SecretPattern(
        "Doppler token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), r"[A-Za-z0-9_.-]{40,80}"
    ),
    SecretPattern("Pulumi token", ("pul-",), r"[a-f0-9]{40}"),
    SecretPattern("Fly.io token", ("FlyV1 fm1_", "FlyV1 fm2_"), r"[A-Za-z0-9+/=_-]{40,700}"),
    SecretPattern("Supabase token", ("sbp_",), r"[a-f0-9]{40}"),
    SecretPattern(
        "PlanetScale token",
        ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
        r"[A-Za-z0-9_.-]{32,64}",
    ),
    SecretPattern("Figma token", ("figd_",), r"[A-Za-z0-9_-]{40}"),
)
"""The forms of tokens that their makers gave fixed first letters."""

# A word that the first letters stand in the middle of is no token.
_AFTER = r"(?![A-Za-z0-9_])"

_BLOCK_WORDS = (
    "PRIVATE KEY",
    "PuTTY-User-Key-File-",
    "AGE-SECRET-KEY-",
    '"kty',
    "<RSAKeyValue>",
    "minisign encrypted",
)
_WIDE_WORDS = tuple(
    word.encode(codec)[:-3] for word in _BLOCK_WORDS for codec in ("utf-16-le", "utf-32-le")
)
"""The same in wide units, without the end that tells apart which byte comes first."""
KEY_WORDS: Final = tuple(word.encode() for word in _BLOCK_WORDS)
"""Of these words each private key has one, in an encoding that extends ASCII."""

LONGEST_WORD: Final = max(map(len, (*KEY_WORDS, *_WIDE_WORDS)))
"""Bytes that such a word takes at most."""

_END = r"(?:\r?\n|\r|(?:\\{1,4}r)?\\{1,4}n)"
"""The end of a line, also as strings write it."""
_QUOTE = r"[ \t>|#*;/]{0,16}"
"""What mails and comments put before a line."""
_START = r"^[^\x00-\x7f]{0,4}"
"""The start of a line, behind a byte order mark or a few foreign bytes."""

# The label, then what a key's lines are made of: headers, base64, or its end.  Source that only
# mentions the label goes on with a quote, a backslash or a bracket.
_BLOCK = late_regex(
    rf"-----?[ ]?BEGIN (?:[A-Z0-9]+ ){{0,3}}PRIVATE KEY(?: BLOCK)?[ ]?-----?[ \t]*"
    rf"(?:{_END}|\Z)"
    rf"(?:(?:{_QUOTE}(?:[A-Za-z][A-Za-z-]{{2,20}}: [^\r\n]{{0,200}})?{_END}){{0,8}}"
    rf"{_QUOTE}[A-Za-z0-9+/=]{{24,}}|\s{{0,8}}\Z)"
    # blanks in the place of line ends
    r"|-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----[ \t]{1,4}[A-Za-z0-9+/=]{40,}"
    # A label that has its line for itself needs no more than one word below it.
    rf"|{_START}[ \t]*-----BEGIN (?:[A-Z0-9]+ ){{0,3}}PRIVATE KEY(?: BLOCK)?-----[ \t]*\r?\n"
    r"[ \t]*[A-Za-z0-9+/=]+[ \t]*\r?$"
    rf"|{_START}PuTTY-User-Key-File-[0-9]: [^\r\n]{{0,80}}\r?$"
    r"|AGE-SECRET-KEY-(?:PQ-)?1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"
    r"|<RSAKeyValue>[^<]{0,40}(?:<(?!D>)[A-Za-z]{1,10}>[^<]{0,3000}</[A-Za-z]{1,10}>[^<]{0,40}){0,8}<D>"
    r"|minisign encrypted secret key[ \t]*\r?\n[A-Za-z0-9+/=]{100,}",
    re.MULTILINE,
)

# A JSON Web Key (RFC 7517, 7518): an object with its kind and a private or a secret part.
_JWK_KIND = late_regex(r"""\\{0,3}"kty\\{0,3}"\s{0,8}:\s{0,8}\\{0,3}"(?:RSA|EC|OKP|oct)\b""")
_JWK_PART = late_regex(r"""\\{0,3}"(?:d|k)\\{0,3}"\s{0,8}:\s{0,8}\\{0,3}"[A-Za-z0-9_+/=-]{20,}""")
_JWK_LONGEST = 8_000
_BLOCK_END = late_regex(r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
LONGEST_KEY: Final = 40_000
"""Characters that a private key takes at most."""


@cache
def _expression(form: SecretPattern, first: str) -> re.Pattern[str]:
    # Nothing stands before plain first letters, so that the search can jump to them.
    return re.compile(form.before + re.escape(first) + form.rest + _AFTER)


def find_secrets(text: str) -> tuple[SecretMatch, ...]:
    """Every private key and every token in a text, in order."""
    found = _tokens(text)
    if any(word in text for word in _BLOCK_WORDS):
        found += _blocks(text)
    return tuple(sorted(found, key=lambda finding: finding.start))


def redact(text: str) -> str:
    """The text with a note in place of each secret; how long it was is not to be seen."""
    found = find_secrets(text)
    if not found:
        return text
    pieces: list[str] = []
    at = 0
    for finding in found:
        if finding.start < at:
            continue
        pieces += [text[at : finding.start], f"[{finding.name}, not shown]"]
        at = finding.end
    return "".join([*pieces, text[at:]])


@cache
def _first_letters() -> Any:
    """All first letters of secrets, as one pattern."""
    import re2  # noqa: PLC0415 - as in `query`, for searches only

    words = [*(first for form in FORMS for first in form.begins), *_BLOCK_WORDS]
    return re2.compile(b"|".join(re2.escape(word.encode()) for word in words))


def may_hold_secrets(text: bytes, start: int, end: int) -> bool:
    """Whether `find_secrets` has to look at a part of a text, which is UTF-8."""
    return _first_letters().search(text, start, end) is not None


def mentions_private_key(data: bytes, like: bytes | None = None) -> bool:
    """Whether a file may hold a private key, for it has a word that each of them has.

    Args:
        data: Its bytes, as for `holds_private_key`.
        like: Others that have no such word, and from which these were made: one that they have
            stands where the two differ.
    """
    if like is not None:
        head = common_head(data, like)
        tail = common_tail(data[head:], like[head:])
        data = data[max(head - LONGEST_WORD, 0) : len(data) - tail + LONGEST_WORD]
    if any(word in data for word in KEY_WORDS):
        return True
    # Most of what has a NUL is mostly NULs, among which a word is sought slowly.
    thin = data.translate(None, b"\0") if b"\0" in data else b""
    return any(word[:-1] in thin for word in KEY_WORDS) and any(x in data for x in _WIDE_WORDS)


def holds_private_key(data: bytes) -> bool:
    """Whether a file holds a private key.

    Args:
        data: Its bytes, in any encoding that extends ASCII, or in UTF-16 or UTF-32.
    """
    if not mentions_private_key(data):
        return False
    # A NUL within a key keeps no program from reading what stands beside it.
    for each in {data, data.translate(None, b"\0")}:
        text = each.decode("latin-1")
        if _BLOCK.search(text) is not None or next(_web_keys(text), None) is not None:
            return True
    return False


def _web_keys(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the private parts of JSON Web Keys."""
    at = 0
    while (kind := _JWK_KIND.search(text, at)) is not None:
        first = max(text.rfind("{", max(0, kind.start() - _JWK_LONGEST), kind.start()), 0)
        last = text.find("}", kind.end(), kind.end() + _JWK_LONGEST)
        last = last if last >= 0 else min(kind.end() + _JWK_LONGEST, len(text))
        for part in _JWK_PART.finditer(text, first, last):
            yield part.span()
        at = last


def _tokens(text: str) -> list[SecretMatch]:
    found: list[SecretMatch] = []
    for form in FORMS:
        for first in form.begins:
            if first not in text:
                continue
            for match in _expression(form, first).finditer(text):
                before = text[match.start() - 1 : match.start()]
                if not (before.isascii() and before.isalnum()) and before != "_":
                    found.append(SecretMatch(form.name, *match.span()))
    return found


def _blocks(text: str) -> list[SecretMatch]:
    """Private keys with all their lines, up to their end or as far as one can reach."""
    found: list[SecretMatch] = []
    at = 0
    while (block := _BLOCK.search(text, at)) is not None:
        furthest = block.start() + LONGEST_KEY
        end = _BLOCK_END.search(text, block.start(), furthest)
        at = end.end() if end is not None else min(furthest, len(text))
        found.append(SecretMatch("private key", block.start(), at))
    found += [SecretMatch("private key", *span) for span in _web_keys(text)]
    return found
