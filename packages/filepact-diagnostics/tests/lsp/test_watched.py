"""Servers hear of the events on the disk that they have asked for."""

from __future__ import annotations

import pytest

from filepact_diagnostics.lsp.documents import (
    DiskChange,
    FileEvent,
    FileWatchers,
    operation_notifications,
)

ROOT = "/house/project"


def wants(pattern: object, path: str, kind: str = "changed", kinds: int | None = None) -> bool:
    watchers = FileWatchers(ROOT)
    watcher = {"globPattern": pattern} | ({} if kinds is None else {"kind": kinds})
    watchers.register("1", {"watchers": [watcher]})
    return watchers.wants(FileEvent(path, kind))


@pytest.mark.parametrize(
    ("pattern", "path", "wanted"),
    [
        ("**/*.py", f"{ROOT}/a.py", True),
        ("**/*.py", f"{ROOT}/a/b.py", True),
        ("**/*.py", f"{ROOT}/a.ts", False),
        ("**/*.{ts,tsx}", f"{ROOT}/x/a.tsx", True),
        ("**", f"{ROOT}/x", True),
        ("src/**", f"{ROOT}/src/a/b", True),
        ("src/**", f"{ROOT}/lib/a", False),
        (f"{ROOT}/src/*.c", f"{ROOT}/src/a.c", True),
        (f"{ROOT}/src/*.c", f"{ROOT}/lib/a.c", False),
        ("/etc/*.conf", "/etc/a.conf", True),
        ("**/*.py", "/elsewhere/a.py", False),
        ({"baseUri": f"file://{ROOT}/src", "pattern": "*.py"}, f"{ROOT}/src/a.py", True),
        ({"baseUri": f"file://{ROOT}/src", "pattern": "*.py"}, f"{ROOT}/a.py", False),
        ({"baseUri": {"uri": f"file://{ROOT}", "name": "p"}, "pattern": "*.py"}, f"{ROOT}/a.py", True),
        # What cannot be understood stands for everything: too much said does no harm.
        ("[", f"{ROOT}/a.py", True),
        (7, f"{ROOT}/a.py", True),
        ({"baseUri": 7, "pattern": None}, f"{ROOT}/a.py", True),
    ],
)  # fmt: skip
def test_patterns_are_matched(pattern: object, path: str, wanted: bool) -> None:
    assert wants(pattern, path) is wanted


@pytest.mark.parametrize(("kinds", "kind", "wanted"), [
    (1, "created", True), (1, "changed", False), (6, "deleted", True), (None, "deleted", True),
    (0, "created", True),
])  # fmt: skip
def test_kinds_are_matched(kinds: int | None, kind: str, wanted: bool) -> None:
    assert wants("**", f"{ROOT}/a", kind, kinds) is wanted


def test_only_wanted_events_are_sent_unless_nothing_was_said() -> None:
    watchers = FileWatchers(ROOT)
    events = [FileEvent(f"{ROOT}/a.py", "created"), FileEvent(f"{ROOT}/b.c", "deleted")]
    assert watchers.notification(events) == []
    ((_, params),) = watchers.notification(events, unasked=True)
    assert [one["type"] for one in params["changes"]] == [1, 3]
    watchers.register("1", {"watchers": [{"globPattern": "**/*.py"}, "nonsense"]})
    assert watchers.count == 1
    ((_, params),) = watchers.notification(events)
    assert [one["uri"] for one in params["changes"]] == [f"file://{ROOT}/a.py"]
    watchers.unregister("1")
    assert watchers.notification(events) == []


def test_a_registration_without_patterns_is_taken() -> None:
    watchers = FileWatchers(ROOT)
    watchers.register("1", None)
    assert watchers.count == 0


def asked(glob: str, **more: str) -> dict:
    return {"filters": [{"scheme": "file", "pattern": {"glob": glob, **more}}]}


def test_operations_are_told_to_those_who_asked() -> None:
    operations = {
        "didCreate": asked("**/*.py"),
        "didRename": asked("**/*", matches="file"),
        "didDelete": asked("**/*", matches="folder"),
    }
    sent = operation_notifications(
        operations,
        ROOT,
        [
            DiskChange(f"{ROOT}/a.py", "created"),
            DiskChange(f"{ROOT}/b.c", "created"),
            DiskChange(f"{ROOT}/d", "deleted"),
            DiskChange(f"{ROOT}/y", "renamed", None, f"{ROOT}/x"),
        ],
    )
    assert sent == [
        ("workspace/didCreateFiles", {"files": [{"uri": f"file://{ROOT}/a.py"}]}),
        (
            "workspace/didRenameFiles",
            {"files": [{"oldUri": f"file://{ROOT}/x", "newUri": f"file://{ROOT}/y"}]},
        ),
    ]


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 0),
        ({"didCreate": None}, 0),
        ({"didCreate": {"filters": [None, {"pattern": {"glob": 7}}]}}, 0),
        ({"didCreate": asked("[")}, 1),
    ],
)
def test_filters_of_any_shape_are_taken(options: dict, count: int) -> None:
    assert (
        len(operation_notifications(options, ROOT, [DiskChange(f"{ROOT}/a", "created")])) == count
    )
