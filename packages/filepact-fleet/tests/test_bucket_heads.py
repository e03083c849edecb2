"""A head and its shards as somebody else may have written them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from filepact.compression import compress
from filepact.domain.document import content_id
from filepact.errors import SharedDamagedError
from filepact_fleet.manifest import ManifestEntry
from filepact_fleet.objects.heads import (
    HEAD,
    Head,
    ManifestPage,
    read_head,
    read_shard,
    shard_count,
    shard_of,
    shown_head,
    shown_shard,
)

if TYPE_CHECKING:
    from fleet_objects import Shared

HASH = "ab" * 32
ENTRY = ManifestEntry(HASH, 10, 0o644, "packs/c0000-0", 0, 10)
GOOD = Head(
    *("w0000", 3, "c0003", "c0002", "somebody", 1.5),
    shards=(ManifestPage("shards/c0001-0", HASH, 1),),
    delta={"a": ENTRY, "ä/ö 猫.txt": ENTRY, "gone": None},
    latest=("c0003", "c0002"),
)


def told(**changed: Any) -> bytes:
    return json.dumps({**json.loads(shown_head(GOOD)), **changed}).encode()


def test_a_head_is_read_as_it_was_written() -> None:
    assert read_head(shown_head(GOOD), "") == GOOD


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff\xfe", b"[]", b"{}", b"null", b"[" * 100_000, b"x" * (2 << 20), told(form="filepact workspace 2"),
        told(number=-1), told(number=1.5), told(number=True), told(change="../x"), told(change=""),
        told(workspace="W"), told(shards=[]), told(shards=[["shards/c0001-0", HASH, 1]] * 3),
        told(shards=[["shards/c0001-0", HASH, 10**9]]), told(shards=[["packs/c0001-0", HASH, 1]]),
        told(shards=[["shards/../head", HASH, 1]]), told(shards=[["shards/c0001-0", "x", 1]]), told(shards=[[1, 2]]),
        told(latest=["c0001"] * 600), told(latest=[1]), told(latest=5), told(delta=[]), told(at="now"), told(at=10**400), told(at=float("nan")), told(by="\ud800"), told(by=5),
    ],
)  # fmt: skip
def test_what_is_no_head_is_refused(data: bytes) -> None:
    with pytest.raises(SharedDamagedError):
        read_head(data, "")


@pytest.mark.parametrize(
    "path",
    [
        "", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "./a", "a/.", "a\0b", "x" * 256, "a/" * 3_000 + "b",
        ".git/hooks/post-checkout", "sub/.GIT/config", ".git", ".git ./config", "git~1/config", ".filepact-c1-0.tmp", "\udc80",
        ".g\u200cit/config",
    ],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(SharedDamagedError):
        read_head(told(delta={path: list(ENTRY)}), "")


@pytest.mark.parametrize(
    "entry",
    [
        [], [HASH, 10, 0o644, "c0000-0", 0], [HASH, 10, 0o120000, "c0000-0", 0, 10], [HASH, 10, 0o4755, "c0000-0", 0, 10],
        [HASH, 10, 0o644, "../head", 0, 10], [HASH, 10, 0o644, "c0000-0", -1, 10], [HASH, 10, 0o644, "c0000-0", 0, 11],
        [HASH, 10**12, 0o644, "c0000-0", 0, 10], ["AB" * 32, 10, 0o644, "c0000-0", 0, 10], [HASH, "10", 0o644, "c0000-0", 0, 10],
        [HASH, 10, 0o644, 7, 0, 10], "text", 5, {"a": 1},
    ],
)  # fmt: skip
def test_an_entry_that_is_no_ordinary_file_is_refused(entry: object) -> None:
    with pytest.raises(SharedDamagedError):
        read_head(told(delta={"a": entry}), "")


def test_a_shard_is_read_as_it_was_written() -> None:
    data = shown_shard({"a": ENTRY, "b/c": ENTRY})
    assert read_shard(data, ManifestPage("s", content_id(data), 2)) == {"a": ENTRY, "b/c": ENTRY}


@pytest.mark.parametrize(
    "data",
    [
        b"", b"not compressed", compress(b"[]"), compress(b"\xff"), compress(b'{"../x": null}'), compress(b'{"a": null}'),
        compress(b"{}"), shown_shard({"a": ENTRY, "b": ENTRY}), b"\x28\xb5\x2f\xfd\x20", b"\x28\xb5\x2f\xfd\x00\x58\x01\x00\x00",
        b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 8 + b"\0" * 8, compress(b"0" * (65 << 20), 1),
    ],
)  # fmt: skip
def test_what_is_no_shard_is_refused(data: bytes) -> None:
    with pytest.raises(SharedDamagedError):
        read_shard(data, ManifestPage("s", content_id(data), 1))


def test_a_shard_with_other_bytes_than_the_head_says_is_refused() -> None:
    with pytest.raises(SharedDamagedError):
        read_shard(shown_shard({"a": ENTRY}), ManifestPage("s", HASH, 1))


def test_every_path_has_one_shard_and_their_number_grows_with_the_files() -> None:
    assert [shard_count(n) for n in (0, 1, 1_024, 1_025, 10_000, 10**6)] == [1, 1, 1, 2, 16, 256]
    places = {shard_of(f"file {n}", 8) for n in range(200)}
    assert places == set(range(8))


def test_a_manifest_in_which_a_file_is_a_folder_is_refused(shared: Shared) -> None:
    shared.put({"a": b"1"})
    head = json.loads(shared.bucket.get(HEAD)[0])
    head["delta"]["a/b"] = head["delta"]["a"]
    shared.bucket.replace(HEAD, json.dumps(head).encode())
    with pytest.raises(SharedDamagedError):
        shared.again().read()


def test_a_shard_that_is_gone_is_damage(shared: Shared) -> None:
    head = shared.put({"a": b"1"})
    shared.bucket.delete(head.shards[0].name)
    with pytest.raises(SharedDamagedError):
        shared.again().read()


def test_a_bomb_in_a_pack_is_not_unpacked(shared: Shared) -> None:
    shared.put({"a": b"1" * 100})
    head = json.loads(shared.bucket.get(HEAD)[0])
    bomb = compress(b"0" * (1 << 24))
    shared.bucket.replace("packs/" + head["delta"]["a"][3], bomb)
    head["delta"]["a"][5] = len(bomb)
    head["delta"]["a"][1] = len(bomb) + 1
    shared.bucket.replace(HEAD, json.dumps(head).encode())
    with pytest.raises(SharedDamagedError):
        shared.again().read()
