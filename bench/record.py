"""The record of a run: what was measured, on what machine, with which versions."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["FORMAT", "machine", "problems", "versions"]

FORMAT = 1
_PROJECT = Path(__file__).resolve().parent.parent


def machine(folder: Path) -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory, GiB": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "file system": _file_system(folder),
        "load at the start": round(os.getloadavg()[0], 1),
    }


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    try:
        found["filepact"] = version("filepact")
    except PackageNotFoundError:
        found["filepact"] = "not installed"
    words = ["git", "-C", str(_PROJECT), "describe", "--always", "--dirty"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        found["commit"] = done.stdout.strip()
    return found


def problems(record: Any) -> list[str]:
    """What is wrong with the shape of a record; nothing, if it is one."""
    found: list[str] = []

    def want(holder: Any, where: str, **kinds: type | tuple[type, ...]) -> bool:
        if not isinstance(holder, dict):
            found.append(f"{where} is no object")
            return False
        for name, kind in kinds.items():
            if not isinstance(holder.get(name), kind):
                found.append(f"{where}.{name} is {holder.get(name)!r}")
        return True

    number = (int, float)
    if not want(
        record,
        "record",
        format=int,
        when=str,
        seed=int,
        machine=dict,
        versions=dict,
        missing=dict,
        results=list,
        growth=list,
        stale=list,
        facts=dict,
    ):
        return found
    try:
        datetime.fromisoformat(str(record["when"]))
    except ValueError:
        found.append(f"record.when is {record['when']!r}")
    for place, one in enumerate(record["results"]):
        where = f"results[{place}]"
        # Whether the answers agree is not known where they are of other forms.
        kinds = {"operation": str, "peer": str, "tree": str, "rounds": int, "ratio": dict}
        if want(one, where, agree=(bool, type(None)), **kinds):
            for side in ("ours", "theirs", "ratio"):
                for clock in ("wall", "cpu"):
                    three = one.get(side, {}).get(clock)
                    if not (isinstance(three, list) and len(three) == 3):
                        found.append(f"{where}.{side}.{clock} is {three!r}")
                    elif three != sorted(three) or not all(isinstance(n, number) for n in three):
                        found.append(f"{where}.{side}.{clock} is not in order: {three!r}")
    for place, one in enumerate(record["growth"]):
        want(one, f"growth[{place}]", grows=str, work=str, ratio=dict, holds=bool)
    for place, one in enumerate(record["stale"]):
        want(one, f"stale[{place}]", asked=int, wrong=int, kinds=dict)
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _file_system(folder: Path) -> str:
    """The kind of the mount that a folder is on."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return sys.platform
    best = ("", "unknown")
    for line in mounts:
        _, point, kind, *_ = line.split()
        inside = folder == Path(point) or Path(point) in folder.parents
        if inside and len(point) >= len(best[0]):
            best = (point, kind)
    return best[1]
