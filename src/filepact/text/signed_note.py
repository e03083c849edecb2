"""Signed notes (C2SP signed-note, version 1): a text, and under it an Ed25519 signature by a named key.

Other programs that read such notes can check ours, with the verifier key that `verifier` writes.
"""

from __future__ import annotations

import binascii
import hashlib
import json
from contextlib import suppress
from typing import Final

__all__ = ["can_sign", "check_verifier", "new_key", "read_note", "sign", "split_notes", "verifier"]

_ED25519: Final = b"\x01"
_MARK: Final = "\u2014 "
_TOLD: Final = "audit head "
"""Stands before a note, as JSON, in a line of a system's log."""
_KEY_BYTES: Final = 32


def can_sign() -> bool:
    """Whether the package that makes and checks signatures is installed; it is an extra."""
    from importlib.util import find_spec  # noqa: PLC0415 - as what it looks for

    return find_spec("cryptography") is not None


def new_key() -> bytes:
    """A new private key, 32 bytes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - slow

    return Ed25519PrivateKey.generate().private_bytes_raw()


def verifier(name: str, key: bytes) -> str:
    """The verifier key of a private one: ``NAME+HASH+KEY``, to be given to whoever checks notes."""
    public = _public(key)
    return f"{name}+{_key_hash(name, public).hex()}+{_text(_ED25519 + public)}"


def sign(name: str, key: bytes, text: str) -> str:
    """The note of a text, which ends with a newline.

    Args:
        name: Whose key it is; without spaces and plus signs.
        key: The private key.
        text: What is signed.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - slow

    signature = Ed25519PrivateKey.from_private_bytes(key).sign(text.encode())
    return f"{text}\n{_MARK}{name} {_text(_key_hash(name, _public(key)) + signature)}\n"


def read_note(note: str, verifier_key: str) -> str:
    """The text of a note that a key has signed.

    Raises:
        ValueError: It is no note, or that key has not signed it.
    """
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - slow
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415 - slow

    name, hashed, public = _verifier_parts(verifier_key)
    text, between, signatures = note.rpartition("\n\n")
    if not between:
        raise ValueError("it is not a signed note")
    text += "\n"
    for line in signatures.splitlines():
        if not line.startswith(f"{_MARK}{name} "):
            continue
        data = _bytes(line.rpartition(" ")[2])
        if data[:4] != hashed:
            continue
        try:
            Ed25519PublicKey.from_public_bytes(public).verify(data[4:], text.encode())
        except InvalidSignature:
            raise ValueError("the signature is not of this text") from None
        return text
    raise ValueError("it is not signed by this key")


def check_verifier(verifier_key: str) -> None:
    """Refuse what is no verifier key.

    Raises:
        ValueError: It is none, or it is damaged.
    """
    _verifier_parts(verifier_key)


def _verifier_parts(verifier_key: str) -> tuple[str, bytes, bytes]:
    name, hashed, encoded = (*verifier_key.strip().split("+", 2), "", "")[:3]
    public = _bytes(encoded)
    if public[:1] != _ED25519 or len(public) != _KEY_BYTES + 1:
        raise ValueError("it is not a verifier key for Ed25519")
    public = public[1:]
    if not name or _key_hash(name, public).hex() != hashed:
        raise ValueError("the verifier key is damaged")
    return name, _key_hash(name, public), public


def _public(key: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415 - slow

    return Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw()


def _key_hash(name: str, public: bytes) -> bytes:
    return hashlib.sha256(f"{name}\n".encode() + _ED25519 + public).digest()[:4]


def _text(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return b""


def split_notes(text: str) -> list[str]:
    """The notes of a file to which one was appended after the other, or that a system's log has as lines."""
    notes: list[str] = []
    lines: list[str] = []
    signed = False
    for line in text.splitlines(keepends=True):
        _, told, said = line.partition(_TOLD)
        if told:
            with suppress(ValueError):
                notes.append(str(json.loads(said)))
            continue
        if signed and not line.startswith(_MARK):
            notes.append("".join(lines))
            lines, signed = [], False
        if lines or line.strip():
            lines.append(line)
        signed = line.startswith(_MARK)
    return [*notes, "".join(lines)] if lines else notes
