"""Signed notes: read with the key of whoever has signed them, and with no other."""

from __future__ import annotations

import pytest

from filepact.text.signed_note import check_verifier, read_note, sign, verifier

pytest.importorskip("cryptography", reason="cryptography is not installed")

TEXT = "a head\n12\n"
# The keys of the second and the third have the sign in them that stands between the parts.
KEYS = [bytes((number,)) * 32 for number in (0, 8, 10)]


@pytest.mark.parametrize("key", KEYS, ids=range(3))
@pytest.mark.parametrize("name", ["ada", "machine.example/log"])
def test_a_note_is_read_with_the_key_of_its_signer_alone(name: str, key: bytes) -> None:
    assert ("+" in verifier(name, key).split("+", 2)[2]) == (key != KEYS[0])
    note = sign(name, key, TEXT)
    check_verifier(verifier(name, key))
    assert read_note(note, verifier(name, key)) == TEXT
    assert read_note(note, f" {verifier(name, key)}\n") == TEXT
    with pytest.raises(ValueError, match="not signed by this key"):
        read_note(note, verifier(name, bytes(31) + b"x"))
    with pytest.raises(ValueError, match="not signed by this key"):
        read_note(note, verifier("eve", key))
    with pytest.raises(ValueError, match="signature"):
        read_note(note.replace("12", "13"), verifier(name, key))


@pytest.mark.parametrize(
    "changed",
    [
        "",
        "ada",
        "ada+acef3400",
        "+acef3400+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK",
        "eve+acef3400+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK",
        "ada+acef3401+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK",
        "ada+acef3400+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZP",
        "ada+acef3400+AhOY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK",
    ],
)
def test_what_is_no_verifier_key_is_refused(changed: str) -> None:
    check_verifier("ada+acef3400+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK")
    with pytest.raises(ValueError, match="verifier key"):
        check_verifier(changed)
