"""Changes on disks that are nearly full, of forty sizes: whole or not there, and told as it is.

Run as a program: ``python -m tests.crash.near_full [--sizes N]``.  It mounts small file systems in
memory, in a namespace of its own, as root or where a user may have one.  On each a file takes all
the room but a little; then three files are changed, some taken back, and the room comes back.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filepact.app import open_workspace
from filepact.domain.operation import Actor, Session
from filepact.errors import FilepactError
from filepact.workspace.receipt import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from filepact.workspace.workspace import Workspace

AGENT = Session("s", Actor("agent", "crash"))
NAMES = ("f1.txt", "f2.txt", "f3.txt")
_DETACH = 2  # MNT_DETACH of <sys/mount.h>
OLD = "one\ntwo\n" + "pad\n" * 2_000


def fill(place: Path, leave: int) -> None:
    """Take all the room of a disk but so many bytes."""
    with place.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4_096)
        except OSError:
            pass
        file.truncate(max(0, file.tell() - leave))


def unmount(place: Path) -> None:
    """Take a file system away again; the command of that name asks /proc, which a test may have covered."""
    if ctypes.CDLL(None, use_errno=True).umount2(os.fsencode(place), _DETACH):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system in memory at a new folder; the test is skipped where none can be mounted."""
    import pytest  # noqa: PLC0415 - the program does without

    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "filepact-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(words, check=False).returncode != 0:
        pytest.skip("only an administrator can mount")
    try:
        yield place
    finally:
        unmount(place)


@contextmanager
def loop_disk(place: Path, kind: str, size: int = 400 << 20) -> Iterator[Path]:
    """A file system of a kind (``xfs``, ``btrfs``) in a file, at a new folder; the test is skipped where there is none."""
    import pytest  # noqa: PLC0415 - the program does without

    image = place.with_name(f"{place.name}.img")
    image.touch()
    os.truncate(image, size)
    make = shutil.which(f"mkfs.{kind}")
    if os.geteuid() != 0 or make is None:
        pytest.skip(f"only an administrator who has mkfs.{kind} can make and mount one")
    place.mkdir()
    for words in ([make, "-q", str(image)], ["mount", "-o", "loop", str(image), str(place)]):
        if subprocess.run(words, check=False, capture_output=True).returncode != 0:
            pytest.skip(f"no {kind} can be mounted here")
    try:
        yield place
    finally:
        unmount(place)


def change(workspace: Workspace, texts: list[str]) -> Receipt:
    with workspace.draft(AGENT, "patch_apply") as draft:
        for target, text in zip(draft.open_all(NAMES), texts, strict=True):
            draft.write(target, text)
        return workspace.submit(draft, "three")


def tried(act: Callable[[], Receipt]) -> tuple[Receipt, FilepactError | None]:
    """What an act answers; or why it was refused."""
    try:
        return act(), None
    except FilepactError as error:
        return Receipt(None, "unchanged", ""), error


def one(base: Path, leave: int, *, together: bool) -> str:
    """One size; what came of it.

    Args:
        base: An empty disk.
        leave: How much room there is.
        together: Whether the files are on that disk as well as the state.

    Raises:
        AssertionError: Something was not as it was promised.
    """
    root = base / "root" if together else Path(tempfile.mkdtemp())
    root.mkdir(exist_ok=True)
    for name in NAMES:
        (root / name).write_text(OLD)
    before = [(root / name).read_text() for name in NAMES]
    after = [before[0].replace("one", os.urandom(3_000).hex()) for _ in NAMES]
    try:
        with open_workspace([str(root)], state_dir=str(base / "state")) as workspace:
            with workspace.draft(AGENT, "write_file") as draft:
                draft.write(draft.open("warm.txt"), "x")
                workspace.submit(draft, "warm")
            fill(base / "fill", leave)

            def now() -> list[str]:
                return [(root / name).read_text() for name in NAMES]

            receipt, refusal = tried(lambda: change(workspace, after))
            if refusal is None:
                answer = "done" if receipt.confirmed else "done, not confirmed"
                assert now() == after, "told as done, and is not"
                _, refusal = tried(lambda: workspace.undo(AGENT, dry_run=False))
                answer += ", and undone" if refusal is None else ", and the undo refused"
                wanted = before if refusal is None else after
                assert now() == wanted, f"told as {answer}, and is not"
            else:
                answer = refusal.code
                assert refusal.details.get("outcome") == "not_applied", refusal.report()
                assert now() == before, f"told as refused, and is there: {refusal.report()}"
            held = now()
            (base / "fill").unlink()
            workspace.log()
            assert not workspace.unfinished(), "not settled when there was room again"
        with open_workspace([str(root)], state_dir=str(base / "state")) as workspace:
            assert now() == held, "the next start has changed files"
            if held == after:
                assert workspace.operation(receipt.operation).state == "applied"
                workspace.undo(AGENT, dry_run=False)
                assert now() == before, "undo does not bring back what was there"
        left = [path.name for path in root.rglob(".filepact-*")]
        assert not left, f"left: {left}"
        return answer
    finally:
        if not together:
            shutil.rmtree(root)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tests.crash.near_full", description=__doc__)
    parser.add_argument("--sizes", type=int, default=40, help="how many disks")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if not given.inside:
        namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "-r"])]
        if shutil.which("unshare") is None:
            raise SystemExit("skipped: there is no unshare here")
        tried = subprocess.run(
            [*namespace, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], check=False, capture_output=True
        )
        if tried.returncode:
            raise SystemExit("skipped: nothing can be mounted here")
        words = [sys.executable, "-m", "tests.crash.near_full", *arguments, "--inside"]
        return subprocess.run([*namespace, *words], check=False).returncode
    answers: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(given.sizes):
        together, leave = number % 2 == 0, (number // 2) * 16_384
        with tempfile.TemporaryDirectory() as folder:
            disk = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=700", "tmpfs", folder]
            subprocess.run(disk, check=True)
            try:
                answers[one(Path(folder), leave, together=together)] += 1
            except AssertionError as error:
                where = "files and state" if together else "state"
                wrong.append(f"{where} on a disk with {leave:,} bytes of room: {error}")
            finally:
                subprocess.run(["umount", "-l", folder], check=True)
    for said in wrong:
        print(said)
    print(f"{given.sizes} disks, {len(wrong)} wrong: {dict(answers)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
