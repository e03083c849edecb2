"""The file system of a root, and others that are mounted beneath it.

A folder that is mounted inside a root holds what nobody has named: a home folder bound into a
container, another machine's disk.  It is refused unless the person permits it.  A single file that is mounted was
named by whoever mounted it, and belongs to the root; it has no second name beside it, so it is written in place, and
neither moved nor removed.  File systems that
the kernel makes up are refused even then, because reading their files acts, or tells about other
programs.
"""

from __future__ import annotations

import os
import select
import stat
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from filepact.errors import PathBlockedError
from filepact.fs.kernel import NO_MOUNTS, file_system, mount_of
from filepact.values import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from filepact.fs.home_secrets import SecretIndex

__all__ = ["MountWatcher", "RootMounts", "is_made_up", "rest_below"]

# Numbers of <linux/magic.h>.
_MADE_UP = frozenset(
    {
        0x0000_9FA0,  # proc
        0x6265_6572,  # sysfs
        0x0027_E0EB,  # cgroup
        0x6367_7270,  # cgroup2
        0x6462_6720,  # debugfs
        0x7472_6163,  # tracefs
        0x7363_6673,  # securityfs
        0x6265_6570,  # configfs
        0xF97C_FF8C,  # selinux
        0x4341_5D53,  # smack
        0x5A3C_69F0,  # apparmor
        0xCAFE_4A11,  # bpf
        0xDE5E_81E4,  # efivarfs
        0x6165_676C,  # pstore
        0x4249_4E4D,  # binfmt_misc
        0x6573_5543,  # fusectl
        0x6E73_6673,  # nsfs
        0x5049_4446,  # pidfs
        0x1980_0202,  # mqueue
        0x0000_1CD1,  # devpts
    }
)


def is_made_up(descriptor: int) -> bool:
    """Whether an open file or folder lies on a file system that the kernel makes up."""
    return file_system(descriptor) in _MADE_UP


def rest_below(path: str, folder: tuple[int, int]) -> str | None:
    """The part of an absolute path beneath a folder, by any name of that folder; None where it lies elsewhere."""
    rest: list[str] = []
    while True:
        with suppress(OSError):
            status = os.stat(path)
            if (status.st_dev, status.st_ino) == folder:
                return "/".join(reversed(rest)) or "."
        path, name = os.path.split(path)
        if not name:
            return None
        rest.append(name)


@dataclass(frozen=True, slots=True)
class RootMounts:
    """The limit of a root where other file systems are mounted beneath it.

    Attributes:
        device: The root's device.
        mount: The number of its mount; None where the system does not number them.  Then folders
            are told apart by their devices, and a single file that is mounted is not noticed.
        mounts: Whether other file systems may be entered.
        is_secret: Whether a file, by device and inode, is one of those elsewhere that are not read here either.
    """

    device: int
    mount: int | None
    mounts: bool
    is_secret: Callable[[int, int], bool] = lambda _device, _inode: False

    @classmethod
    def around(
        cls, folder: int, *, mounts: bool = False, secrets: SecretIndex | None = None
    ) -> Self:
        """The boundary of a folder that is held open."""
        found = cls(os.fstat(folder).st_dev, mount_of(folder), mounts)
        return found if secrets is None else replace(found, is_secret=secrets.holds)

    @property
    def resolve(self) -> int:
        """The flags of openat2 that keep its resolution within the boundary."""
        return 0 if self.mounts else NO_MOUNTS

    def encloses(self, descriptor: int, status: os.stat_result) -> bool:
        """Whether a file or folder lies within the boundary.

        Args:
            descriptor: A descriptor of it; -1 where the system has none that does not open it.
            status: What the system says of it.
        """
        if self.mounts:
            return status.st_dev == self.device or descriptor < 0 or not is_made_up(descriptor)
        if self.mount is not None and descriptor >= 0:
            if mount_of(descriptor) == self.mount:
                return True
            # A single file that is mounted, in a folder that lies within: whoever mounted it meant it to be used there.
            named = stat.S_ISREG(status.st_mode) and not is_made_up(descriptor)
            return named and not self.is_secret(status.st_dev, status.st_ino)
        # Some file systems give a file another device than the folder that it lies in.
        return status.st_dev == self.device or not stat.S_ISDIR(status.st_mode)

    def check(self, descriptor: int, status: os.stat_result, path: str) -> None:
        """Refuse what lies beyond the boundary; arguments as for `encloses`, and what the message calls it.

        Raises:
            PathBlockedError: It lies beyond.
        """
        if self.encloses(descriptor, status):
            return
        if self.mounts or is_made_up(descriptor):
            raise PathBlockedError(
                f"{path}: is on a file system of the kernel, such as /proc",
                hint="Work without it: such files show the state of programs and devices.",
                path=path,
            )
        raise PathBlockedError(
            f"{path}: another file system is mounted there",
            hint="Ask the person to name the mounted folder as a root of its own, or to set mounts = true below "
            "[guard] in filepact.toml.",
            path=path,
        )


class MountWatcher:
    """Notices that something is mounted beneath a folder, or is no longer; for all threads.

    That changes names and texts without a notice of the file system.  The list of mounts is opened with the folder,
    since a sandbox hides it later; where there is none, nothing is noticed.

    Args:
        folder: Its true path.
    """

    def __init__(self, folder: str) -> None:
        # As proc(5) has them in names: blanks, tabs, line ends, backslashes.
        written = (
            f"\\{byte:03o}" if byte in b" \t\n\\" else chr(byte) for byte in os.fsencode(folder)
        )
        self._inside = f"{''.join(written).rstrip('/')}/".encode("latin-1")
        self._lock = threading.Lock()
        self._there: list[bytes] | None = None
        self._changed = 0
        self._descriptor = -1
        with suppress(OSError):
            self._descriptor = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
            self._poll = select.poll()
            self._poll.register(self._descriptor, select.POLLPRI)

    def close(self) -> None:
        """Notice nothing any more."""
        with self._lock, suppress(OSError):
            os.close(self._descriptor)
            self._descriptor = -1

    def changed(self) -> int:
        """A number that rises with every such change, from the first time that it is asked for."""
        with self._lock:
            if self._descriptor >= 0 and (self._there is None or self._poll.poll(0)):
                with open(self._descriptor, "rb", closefd=False) as listed:
                    listed.seek(0)
                    places = [line.split(b" ", 5)[4] for line in listed]
                before = self._there
                self._there = [one for one in places if one.startswith(self._inside)]
                self._changed += before is not None and bool(before or self._there)
            return self._changed
