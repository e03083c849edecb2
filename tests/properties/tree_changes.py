"""Whatever can happen to the files of a tree, by people, programs and Git, drawn at random."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from filepact.fs.kernel import EXCHANGE, renameat2

AT_FDCWD = -100
WORDS = ["alpha", "beta", "gamma", "delta", "render", "commit", "createdAt", "handle_error", "TODO"]
WORDS += ["K\u212a", "\u017ftone", "\u00e9t\u00e9"]


def line(dice):
    return "".join(
        " ".join(dice.choice(WORDS) for _ in range(dice.randint(0, 6)))
        + dice.choice(["\n", "\r\n"])
        for _ in range(dice.randint(0, 12))
    )


def files_in(folder):
    return sorted(Path(one) for one in _below(folder) if one.is_file(follow_symlinks=False))


def folders_in(folder):
    return sorted(Path(one) for one in _below(folder) if one.is_dir(follow_symlinks=False))


def _below(folder):
    """All that lies in a folder and in its folders, without what is Git's."""
    with suppress(PermissionError), os.scandir(folder) as entries:
        for one in entries:
            if one.name != ".git":
                yield one
                if one.is_dir(follow_symlinks=False):
                    yield from _below(one)


def disturb(folder, dice, *, mounts=False):
    """Something that people and programs do to files; its name.

    Args:
        folder: The tree.
        dice: Says what.
        mounts: Whether something may be mounted in it, too.
    """
    if not files_in(folder):
        (folder / "first").write_text(line(dice))
    files, folders = files_in(folder), [folder, *folders_in(folder)]
    file, other = dice.choice(files), dice.choice(folders)
    what = dice.choice(
        [
            *("write", "write", "append", "same stamp", "new", "new folder", "rename", "replace"),
            *(
                "delete",
                "move folder",
                "delete folder",
                "ignore",
                "binary",
                "link",
                "many",
                "charset",
            ),
            *("copy tree", "truncate", "folder again", "exchange", "second name", "build folder"),
            *("name outside", "written outside", "memory map", "held open", "unnamed", "hole"),
            *("copied range", "case", "folder exchange", "folder for file", "linked rules"),
            *(("mount", "unmount") if mounts else ()),
            *(GIT if (folder / ".git").is_dir() else ("new file",)),
        ]
    )
    if what in GIT:
        git_does(what, folder, dice)
    elif what == "write":
        file.write_text(line(dice))
    elif what == "append":
        with file.open("a") as stream:
            stream.write("createdAt\n")
    elif what == "same stamp":
        before = file.stat()
        file.write_bytes(bytes(dice.choice(b"abc\n") for _ in range(before.st_size)))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif what == "new":
        (other / f"new{dice.randrange(50)}.py").write_text(line(dice))
    elif what == "new folder":
        made = other / f"n{dice.randrange(50)}" / "deep"
        made.mkdir(parents=True, exist_ok=True)
        (made / "x.txt").write_text(line(dice))
    elif what == "rename":
        file.rename(other / f"r{dice.randrange(50)}.txt")
    elif what == "replace":
        temporary = other / "saving.tmp"
        temporary.write_text(line(dice))
        temporary.replace(file)
    elif what == "delete":
        file.unlink(missing_ok=True)
    elif what == "move folder" and other != folder:
        other.rename(folder / f"m{dice.randrange(1_000_000)}")
    elif what == "delete folder" and other != folder:
        shutil.rmtree(other)
    elif what == "ignore":
        rules = [f"{dice.choice('abc')}*.txt\n", "f1/\n", "*.md\n!*1.md\n", ""]
        (other / dice.choice([".gitignore", ".ignore"])).write_text(dice.choice(rules))
    elif what == "binary":
        file.write_bytes(b"createdAt\0\1\2")
    elif what == "link":
        link = other / f"l{dice.randrange(50)}"
        link.unlink(missing_ok=True)
        link.symlink_to(file)
    elif what == "many":
        for number in range(40):
            (other / f"many{number}.txt").write_text(line(dice))
    elif what == "charset":
        (other / ".editorconfig").write_text(
            f"root = true\n[*]\ncharset = {dice.choice(['latin1', 'utf-8'])}\n"
        )
    elif what == "copy tree":
        shutil.copytree(other, folder.parent / "copied", symlinks=True)
        (folder.parent / "copied").rename(folder / f"c{dice.randrange(1_000_000)}")
    elif what == "truncate":
        file.write_bytes(b"")
    elif what == "folder again" and other != folder:
        inside = [(one.name, one.read_bytes()) for one in other.iterdir() if one.is_file()]
        shutil.rmtree(other)
        other.mkdir()
        for name, data in inside[1:]:
            (other / name).write_bytes(data)
    elif what == "exchange" and len(files) > 1:
        exchange(file, dice.choice(files))
    elif what == "second name":
        # Written by the second name before anybody has looked: that name was seen to come.
        second = other / f"second{dice.randrange(1_000_000)}.txt"
        os.link(file, second)
    elif what == "build folder":
        made = other / dice.choice(["dist", "build", "node_modules", "venv"])
        made.mkdir(exist_ok=True)
        (made / f"{dice.choice('abc')}.txt").write_text(line(dice))
    elif what == "new file":
        (folder / f"top{dice.randrange(50)}.md").write_text(line(dice))
    elif what in ("name outside", "written outside"):
        written_outside(what, folder, file, dice)
    elif what in ("mount", "unmount"):
        mounts_change(what, folder, other, dice)
    elif what in LOW:
        low_level(what, file, other, dice)
    elif what in ("case", "folder exchange", "folder for file", "linked rules"):
        names_change(what, folder, file, other, dice)
    return what


def written_outside(what, folder, file, dice):
    """A file gets a name outside of the root, or is written by one that it got, maybe long ago."""
    outside = folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    known = sorted(outside.iterdir())
    if what == "name outside" or not known:
        os.link(file, outside / f"{len(known)}")
    else:
        with dice.choice(known).open("a") as stream:
            stream.write("createdAt\n")


def mounts_change(what, folder, other, dice):
    """Something is mounted over a folder, or that is taken away; neither makes a notice."""
    if what == "unmount":
        unmount(folder, dice)
    elif other != folder and ".git" not in {*other.parts, *os.listdir(other)}:
        kind = dice.choice(["tmpfs", "bind"])
        if kind == "bind":
            (folder.parent / "bound").mkdir(exist_ok=True)
            (folder.parent / "bound" / "inside.txt").write_text("createdAt\n")
            subprocess.run(["mount", "--bind", folder.parent / "bound", other], check=True)
        else:
            subprocess.run(["mount", "-t", "tmpfs", "t", other], check=True)
            (other / "inside.txt").write_text("createdAt\n")


def mounted(folder):
    """What is mounted below a folder, the latest first, which nothing hides."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [one.split()[4].encode().decode("unicode_escape") for one in lines]
    return [one for one in places if one.startswith(f"{folder}/")][::-1]


def unmount(folder, dice=None):
    """Take away one of what is mounted below a folder, or all of it."""
    for place in mounted(folder)[: None if dice is None else 1]:
        subprocess.run(["umount", "--lazy", place], check=True)


LOW = ("memory map", "held open", "unnamed", "hole", "copied range")


def low_level(what, file, other, dice):
    """A file changes in a way that is not the usual one."""
    size = file.stat().st_size
    if what == "memory map" and size:
        with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as view:
            view[dice.randrange(size)] = dice.choice(b"abct\n")
    elif what == "held open":
        with file.open("r+b") as stream:
            os.rename(file, other / f"held{dice.randrange(50)}.txt")
            stream.write(b"TODO render\n")
    elif what == "unnamed":
        folder = os.open(other, os.O_RDONLY | os.O_DIRECTORY)
        made = os.open(other, os.O_TMPFILE | os.O_RDWR)
        os.write(made, line(dice).encode())
        with suppress(FileExistsError):
            # Only with a folder the link of the system is followed.
            os.link(f"/proc/self/fd/{made}", f"unnamed{dice.randrange(50)}.txt", dst_dir_fd=folder)
        os.close(made)
        os.close(folder)
    elif what == "hole" and size:
        with file.open("r+b") as stream:
            stream.truncate(size // 2)
            stream.truncate(size)
    elif what == "copied range":
        made = other / f"copied{dice.randrange(50)}.txt"
        made.touch()
        if not os.path.samefile(file, made):
            with file.open("rb") as source, made.open("r+b") as stream:
                copy = dice.choice([os.copy_file_range, lambda a, b, n: os.sendfile(b, a, 0, n)])
                copy(source.fileno(), stream.fileno(), size)


def names_change(what, folder, file, other, dice):
    """Names become others, or what they stand for."""
    folders = [one for one in folders_in(folder) if one != other]
    if what == "case":
        file.rename(file.with_name(file.name.swapcase()))
    elif what == "folder exchange" and other != folder and folders:
        third = dice.choice(folders)
        if third not in other.parents and other not in third.parents:
            exchange(third, other)
    elif what == "folder for file":
        file.unlink()
        file.mkdir()
        (file / "inside.txt").write_text(line(dice))
    elif what == "linked rules":
        rules = other / ".gitignore"
        rules.unlink(missing_ok=True)
        rules.symlink_to(file)


GIT = (
    *(
        "git commit",
        "git branch",
        "git checkout",
        "git checkout",
        "git add forced",
        "git rm cached",
    ),
    *("git add and a name", "git stash", "git stash pop", "git reset", "git exclude", "git clean"),
    *(
        "git index gone",
        "nested repository",
        "nested gone",
        "linked work tree",
        "git checkout and a name",
    ),
    *("work tree gone", "work tree moved", "git excludes file", "git submodule", "git sparse"),
    *("git skip work tree", "git intent", "git split index", "git index version", "git mv"),
    *("git link elsewhere", "git folder moved"),
)
"""What happens to names, and to what is tracked of them, in a repository."""


def git(folder, *words):
    """Run Git in a folder; it may refuse, as it does to people."""
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "core.fsync=none")
    subprocess.run(["git", "-C", folder, *who, *words], check=False, capture_output=True)


def git_does(what, folder, dice):
    """One of `GIT`, somewhere in a repository."""
    tops = [folder, *(one.parent for one in folder.rglob(".git") if one.parent != folder)]
    top = dice.choice(tops)
    files = [one for one in files_in(top) if ".git" not in one.parts]
    file = dice.choice(files) if files else top / "first"
    name = f"b{dice.randrange(3)}"
    if what == "git commit":
        git(top, "add", "-A")
        git(top, "commit", "-qm", "x")
    elif what == "git branch":
        git(top, "checkout", "-qb", name)
        git(top, "add", "-f", file)
        git(top, "commit", "-qam", "y")
    elif what.startswith("git checkout"):
        git(top, "checkout", "-qf", name)
        if what.endswith("name"):
            (top / f"top{dice.randrange(50)}.txt").write_text("createdAt\n")
    elif what.startswith("git add"):
        git(top, "add", "-f", file)
        if what.endswith("name"):
            (top / f"top{dice.randrange(50)}.txt").write_text("createdAt\n")
    elif what == "git rm cached":
        git(top, "rm", "-q", "--cached", file)
        (top / f"top{dice.randrange(50)}.txt").write_text("createdAt\n")
    elif what == "git exclude":
        info = top / ".git" / "info"
        if info.is_dir():
            (info / "exclude").write_text(dice.choice(["a*.txt\n", "*.py\n", "", "f0/\n"]))
    elif what == "git clean":
        git(top, "clean", "-fdq")
    elif what == "git index gone":
        (top / ".git" / "index").unlink(missing_ok=True) if (top / ".git").is_dir() else None
    elif what == "nested repository":
        inner = dice.choice(folders_in(folder) or [folder])
        git(inner, "init", "-q")
        git(inner, "add", "-A")
        git(inner, "commit", "-qm", "n")
    elif what == "nested gone" and top != folder and (top / ".git").is_dir():
        shutil.rmtree(top / ".git")
    elif what == "linked work tree":
        git(folder, "worktree", "add", "-qf", "--detach", f"tree{dice.randrange(9)}")
    elif what in ("work tree gone", "work tree moved"):
        trees = sorted(folder.glob("tree*"))
        more = ["remove", "-f"] if what.endswith("gone") else ["move"]
        new = [] if what.endswith("gone") else [folder / f"tree{dice.randrange(9)}"]
        git(folder, "worktree", *more, dice.choice(trees or [folder]), *new)
    elif what == "git excludes file":
        (top / "somewhere").write_text(dice.choice(["b*.py\n", "*.txt\n", ""]))
        git(top, "config", "core.excludesFile", str(top / "somewhere"))
    elif what == "git submodule":
        git(
            *(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "-f"),
            *(str(folder), f"sub{dice.randrange(5)}"),
        )
    elif what == "git sparse":
        git(top, "sparse-checkout", *dice.choice([("set", "f0", "f1"), ("disable",)]))
    elif what == "git skip work tree":
        no = dice.choice(["", "no-"])
        git(top, "update-index", f"--{no}skip-worktree", file)
        if not no:
            file.unlink(missing_ok=True)
    elif what == "git intent":
        git(top, "add", "-fN", file)
    elif what == "git split index":
        git(top, "update-index", dice.choice(["--split-index", "--no-split-index"]))
    elif what == "git index version":
        git(top, "update-index", "--index-version", dice.choice("234"))
    elif what == "git mv":
        git(top, "mv", "-k", file, f"moved{dice.randrange(50)}.txt")
    elif what == "git link elsewhere" and top != folder:
        # Its own folder, or that of another tree, may be called.
        if (top / ".git").is_dir():
            shutil.rmtree(top / ".git")
        (top / ".git").write_text(f"gitdir: {dice.choice(tops)}/.git\n")
    elif what == "git folder moved" and (top / ".git").is_dir():
        (top / ".git").rename(top / "git-was")
        if dice.random() < 0.5:
            (top / "git-was").rename(top / ".git")
    else:
        git(
            top,
            *{"git stash": ("stash", "-qu"), "git stash pop": ("stash", "pop", "-q")}.get(
                what, ("reset", "-q", "--hard")
            ),
        )


def disturbed(folder, dice, *, mounts=False):
    """As `disturb`; what cannot be done where something is mounted, or a name is taken, is done in part."""
    try:
        return disturb(folder, dice, mounts=mounts)
    except OSError as error:
        return f"{error.strerror}"


def exchange(one, other):
    """Exchange two names in one step."""
    if one != other:
        renameat2(AT_FDCWD, str(one), str(other), EXCHANGE)
