"""The seven tools over a real server process, through the official client, in both eras."""

from __future__ import annotations

import base64
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

from tests.faces.command_line import command
from tests.hostile.sweeps import often
from tests.pictures import png

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from mcp.types import CallToolResult

ERAS = ["legacy", "auto"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_bytes(b"def main():\r\n\tprint('hello')\r\n")
    (folder / "README.md").write_text("# Title\n\nSome text.\n")
    (folder / "latin.txt").write_bytes(b"caf\xe9\nplain\n")
    (folder / "image.png").write_bytes(png(2, 3))
    (folder / ".env").write_text("KEY=SECRET\n")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "x.py").write_text("hello\n")
    return folder


@asynccontextmanager
async def connected(root: Path, era: str, *options: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "filepact", "mcp", str(root), "--state", str(root.parent / "state"), *options],
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    async with Client(
        server, mode=era, client_info=Implementation(name="acceptance", version="7")
    ) as client:
        yield client


def drive(root: Path, era: str, steps: Callable[[Client], Awaitable[None]], *options: str) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with connected(root, era, *options) as client:
                await steps(client)

    anyio.run(main)


def text_of(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if part.type == "text")


async def call(client: Client, tool: str, **arguments: Any) -> tuple[str, dict[str, Any] | None]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert result.structured_content is None
    return text_of(result), (result.meta or {}).get("filepact/receipt")


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text_of(result)
    assert result.structured_content is None
    assert "SECRET" not in text_of(result)
    return text_of(result).partition(":")[0]


def filepact(root: Path, *arguments: str) -> str:
    said = command(*arguments, "--root", str(root), "--state", str(root.parent / "state"))
    assert said.code == 0, said
    return said.out


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("era", ERAS)
def test_all_seven_tools_do_their_work_and_everything_can_be_taken_back(
    root: Path, era: str
) -> None:
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    async def steps(client: Client) -> None:
        text, facts = await call(client, "read_file", path="src/main.py")
        assert facts is None
        assert text.startswith(
            "1\u2502def main():\n2\u2502\tprint('hello')\n[lines 1-2 of 2 | revision "
        )
        assert "CRLF" in text
        revision = text.partition("revision ")[2][:12]

        text, facts = await call(
            client,
            "edit_file",
            path="src/main.py",
            old_string="\tprint('hello')\n",
            new_string="\tprint('bye')\n\treturn\n",
            dry_run=True,
        )
        assert facts is not None
        assert "+\tprint('bye')" in text
        assert facts["status"] == "preview"
        assert facts["operation"] is None
        assert (root / "src/main.py").read_bytes() == before[root / "src/main.py"]

        done, facts = await call(
            client,
            "edit_file",
            path="src/main.py",
            old_string="\tprint('hello')\n",
            new_string="\tprint('bye')\n\treturn\n",
            expected_revision=revision,
        )
        assert facts is not None
        assert facts["status"] == "applied"
        assert facts["operation"] in done
        assert facts["files"][0]["before"] == revision
        assert (facts["files"][0]["added"], facts["files"][0]["removed"]) == (2, 1)
        assert done.partition("--- a/")[2] == text.partition("--- a/")[2]
        assert (root / "src/main.py").read_bytes() == (
            b"def main():\r\n\tprint('bye')\r\n\treturn\r\n"
        )

        await call(client, "write_file", path="new/deep/a.txt", content="a\n", createDirs=True)
        await call(client, "write_file", path="new/deep/a.txt", content="b\n", append=True)
        assert (root / "new/deep/a.txt").read_text() == "a\nb\n"
        _, facts = await call(client, "write_file", path="new/deep/a.txt", content="a\nb\n")
        assert facts is not None
        assert facts["status"] == "unchanged"

        await call(
            client,
            "edit_file",
            path="README.md",
            edits=[
                {"old_string": "Title", "new_string": "New title"},
                {"old_string": "New title", "new_string": "Newer title"},
            ],
        )
        assert (root / "README.md").read_text() == "# Newer title\n\nSome text.\n"

        patch = (
            "--- a/README.md\n+++ b/README.md\n@@ -1,3 +1,3 @@\n # Newer title\n \n"
            "-Some text.\n+Other text.\n"
            "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+made\n"
        )
        await call(client, "patch_apply", patch=patch)
        assert (root / "README.md").read_text() == "# Newer title\n\nOther text.\n"
        assert (root / "made.txt").read_text() == "made\n"
        await call(client, "patch_apply", patch=patch, reverse=True)
        assert (root / "README.md").read_text() == "# Newer title\n\nSome text.\n"
        assert not (root / "made.txt").exists()

        text, _ = await call(client, "search_files", pattern="**/*.py")
        assert "src/main.py" in text
        assert "node_modules/x.py" not in text
        text, _ = await call(client, "search_files", pattern="*.py", directory="node_modules")
        assert "node_modules/x.py" in text

        text, _ = await call(client, "grep", pattern="BYE", context=1)
        assert "src/main.py:2: \tprint('bye')" in text
        assert "src/main.py-1- def main():" in text
        text, _ = await call(client, "grep", pattern="KEY|SECRET")
        assert "SECRET" not in text
        text, _ = await call(client, "grep", pattern="BYE", case_sensitive=True)
        assert "main.py" not in text

        text, _ = await call(client, "directory_tree")
        assert "main.py" in text
        assert "x.py" not in text
        assert ".env" not in text

        text, _ = await call(client, "read_file", path="image.png", encoding="base64")
        assert base64.b64decode(text) == before[root / "image.png"]
        looked = await client.call_tool("read_file", {"path": "image.png"})
        image, about = looked.content
        assert (image.type, image.mime_type) == ("image", "image/png")
        assert base64.b64decode(image.data) == before[root / "image.png"]
        assert "image.png" in about.text
        text, _ = await call(client, "read_file", paths=["src/main.py", "gone", "README.md"])
        assert all(word in text for word in ("def main", "NOT_FOUND: gone", "Newer"))
        text, _ = await call(client, "read_file", path="latin.txt")
        assert "caf\u00e9" in text
        await call(client, "edit_file", path="latin.txt", old_string="plain", new_string="x")
        assert (root / "latin.txt").read_bytes() == b"caf\xe9\nx\n"

    drive(root, era, steps)
    log = filepact(root, "log")
    assert "acceptance 7" in log
    for _ in range(7):
        filepact(root, "undo", "--unattended")
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
    assert not (root / "new").exists()


def test_every_error_code_is_reached_over_the_protocol(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("SECRET")
    (root / "out").symlink_to("../outside")
    (root / "dangling").symlink_to("../outside/new.txt")
    (root / "twice.txt").write_text("same\nsame\n")
    os.mkfifo(root / "pipe")
    with (root / "huge.log").open("wb") as stream:
        stream.truncate(100_000_000)
    (root / "wall.txt").write_text("a" * 60 + "!\n")
    (root / "bytes.bin").write_bytes(b"\0\1\2\xff" * 9)

    async def steps(client: Client) -> None:
        for path in ("../outside/secret.txt", "/etc/passwd", "out/secret.txt", ".env", "pipe"):
            assert await refused(client, "read_file", path=path) == "PATH_BLOCKED", path
        for path in ("dangling", "out/new.txt", ".git/hooks/pre-commit", "a\0b"):
            code = await refused(client, "write_file", path=path, content="x")
            assert code == "PATH_BLOCKED", path
        assert await refused(client, "read_file", path="missing.txt") == "NOT_FOUND"
        assert await refused(client, "write_file", path="no/a.txt", content="x") == "NOT_FOUND"
        assert await refused(client, "read_file", path="src") == "NOT_A_FILE"
        edit = {"path": "huge.log", "old_string": "a", "new_string": "b"}
        assert await refused(client, "edit_file", **edit) == "FILE_TOO_LARGE"
        assert await refused(client, "read_file", path="bytes.bin") == "BINARY_FILE"
        edit = {"path": "latin.txt", "old_string": "plain", "new_string": "\u00fc"}
        assert await refused(client, "edit_file", **edit) == "ENCODING_UNSAFE"
        edit = {"path": "README.md", "old_string": "some text", "new_string": "x"}
        assert await refused(client, "edit_file", **edit) == "STRING_NOT_FOUND"
        edit = {"path": "twice.txt", "old_string": "same", "new_string": "x"}
        assert await refused(client, "edit_file", **edit) == "AMBIGUOUS_MATCH"
        edit = {"path": "twice.txt", "old_string": "same", "new_string": "same"}
        assert await refused(client, "edit_file", **edit) == "NO_CHANGE"

        await call(client, "read_file", path="README.md")
        (root / "README.md").write_text("# Title\n\nTheir text.\n")
        stale = {"path": "README.md", "content": "# Title\n\nMy text.\n"}
        assert await refused(client, "write_file", **stale) == "STALE_FILE"
        assert "Their" in (root / "README.md").read_text()

        hunk = "@@ -1,2 +1,2 @@\n"
        codes = {
            "garbage": "PATCH_MALFORMED",
            f"{hunk}-none\n+x\n same\n": "PATCH_CONTEXT_MISMATCH",
            "@@ -9 +9 @@\n-same\n+x\n": "PATCH_AMBIGUOUS",
        }
        for patch, code in codes.items():
            assert await refused(client, "patch_apply", path="twice.txt", patch=patch) == code
        (root / "new.txt").write_text("one\n2\n")
        done = f"{hunk} one\n-two\n+2\n"
        assert await refused(client, "patch_apply", path="new.txt", patch=done) == (
            "PATCH_ALREADY_APPLIED"
        )
        assert await refused(client, "read_file", path="README.md", lines="many") == (
            "INVALID_PARAMS"
        )
        assert await refused(client, "read_file", file="README.md") == "INVALID_PARAMS"
        assert await refused(client, "read_file") == "INVALID_PARAMS"
        assert await refused(client, "edit_file", path="README.md", edits=[]) == "INVALID_PARAMS"
        assert await refused(client, "grep", pattern="(") == "SEARCH_ERROR"
        # Linear time: this would keep a backtracking engine busy for longer than the universe.
        text, _ = await call(client, "grep", pattern="(a+)+$", path="wall.txt")
        assert "wall.txt" not in text
        assert (root / "twice.txt").read_text() == "same\nsame\n"

    drive(root, "legacy", steps)
    assert not (tmp_path / "outside" / "new.txt").exists()


def test_a_hundred_megabytes_are_read_in_windows(root: Path) -> None:
    with (root / "big.log").open("wb") as stream:
        stream.writelines(b"%09d %s\n" % (n, b"x" * 90) for n in range(1_000_000))

    async def steps(client: Client) -> None:
        text, _ = await call(client, "read_file", path="big.log", lines=20)
        assert "20\u2502000000019" in text
        assert "next: offset=20" in text
        text, _ = await call(client, "read_file", path="big.log", lines=2, offset=999_999)
        assert "1000000\u2502000999999" in text
        assert "next" not in text.splitlines()[-1]

    drive(root, "legacy", steps)


def test_fewer_tools_are_shown_when_asked(root: Path) -> None:
    async def names(client: Client) -> None:
        shown = [tool.name for tool in (await client.list_tools()).tools]
        assert shown == ["read_file", "search_files", "grep", "directory_tree"]

    drive(root, "auto", names, "--max-level", "safe")
    drive(root, "auto", names, "--read-only")

    async def essential(client: Client) -> None:
        shown = [tool.name for tool in (await client.list_tools()).tools]
        assert "patch_apply" not in shown
        assert len(shown) == 6

    drive(root, "auto", essential, "--tier", "essential")


def test_a_preview_server_only_proposes_and_a_person_approves(root: Path) -> None:
    ids: list[str] = []

    async def steps(client: Client) -> None:
        text, facts = await call(client, "write_file", path="p.txt", content="p\n")
        assert facts is not None
        assert facts["status"] == "pending"
        assert "filepact review --list" in text
        ids.append(facts["operation"])

    drive(root, "auto", steps, "--mode", "preview")
    assert not (root / "p.txt").exists()
    assert ids[0] in filepact(root, "pending")
    filepact(root, "approve", "--unattended", ids[0])
    assert (root / "p.txt").read_text() == "p\n"


def test_sixteen_edits_sent_at_once_leave_sixteen_edits(root: Path) -> None:
    (root / "many.txt").write_text("".join(f"line {n}.\n" for n in range(16)))

    async def steps(client: Client) -> None:
        async def one(number: int) -> None:
            await call(
                client,
                "edit_file",
                path="many.txt",
                old_string=f"line {number}.\n",
                new_string=f"LINE {number}.\n",
            )

        async with anyio.create_task_group() as group:
            for number in range(16):
                group.start_soon(one, number)

    drive(root, "auto", steps)
    assert (root / "many.txt").read_text() == "".join(f"LINE {n}.\n" for n in range(16))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_servers_with_many_edits_of_eight_agents_each_lose_none(root: Path) -> None:
    each = often(25, 100)
    lines = 2 * 8 * each
    (root / "many.txt").write_text("".join(f"line {n}.\n" for n in range(lines)))

    async def work(server: int) -> None:
        async with connected(root, "auto") as client:

            async def agent(number: int) -> None:
                for turn in range(each):
                    line = (server * 8 + number) * each + turn
                    await call(
                        client,
                        "edit_file",
                        path="many.txt",
                        old_string=f"line {line}.\n",
                        new_string=f"LINE {line}.\n",
                    )

            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(agent, number)

    async def main() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(work, 0)
            group.start_soon(work, 1)

    anyio.run(main)
    assert (root / "many.txt").read_text() == "".join(f"LINE {n}.\n" for n in range(lines))


@pytest.mark.slow(after=2)
@pytest.mark.parametrize(
    "options",
    [
        ("--tier", "essential"),
        ("--read-only",),
        (),
        ("--tier", "standard"),
        ("--max-level", "moderate"),
        ("--max-level", "safe"),
    ],
)
def test_instructions_say_what_the_tools_that_are_shown_can_do(root, options):
    async def steps(client: Client) -> None:
        said = client.instructions or ""
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert ("history undoes your own" in said) == ("history" in names)
        assert ("Nothing can be changed here" in said) == ("edit_file" not in names)

    drive(root, "legacy", steps, *options)
