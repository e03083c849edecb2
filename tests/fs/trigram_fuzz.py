"""Random inputs for the library in C, built with sanitizers; see ``trigram_fuzz.c``.

Run as a program: ``trigram_fuzz.py --tries N [--seed S]``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "native"
_FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1", "-D_GNU_SOURCE")
_STRICT = ("-Wall", "-Wextra", "-Werror")


def build(folder: Path) -> Path | None:
    """The program; None where no compiler has sanitizers."""
    plain, program = folder / "plain.c", folder / "fuzz"
    plain.write_text("int main(void) { return 0; }\n")
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    command = [compiler, *_FLAGS, *_STRICT]
    if subprocess.run([*command, "-o", program, plain], check=False).returncode:
        return None
    source = Path(__file__).with_suffix(".c")
    subprocess.run([*command, f"-I{SOURCES}", "-o", program, source], check=True)
    return program


def run(program: Path, folder: Path, seed: int, rounds: int) -> int:
    """The exit status after so many rounds: 0 where nothing was wrong."""
    (folder / "a").write_bytes(b"a" * 1_000)
    (folder / "b").write_bytes(b"")
    (folder / "link").unlink(missing_ok=True)
    (folder / "link").symlink_to("a")
    done = subprocess.run([program, str(seed), str(rounds)], cwd=folder, check=False)
    return done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="trigram_fuzz", description="Random inputs for C code.")
    parser.add_argument("--tries", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        if program is None:
            print("no compiler with sanitizers here")
            return 1
        status = run(program, Path(folder), given.seed, given.tries)
    print(f"{given.tries:,} rounds with seed {given.seed}: status {status}")
    return status


if __name__ == "__main__":
    sys.exit(main())
