"""Our ignore rules and Git's say the same about the same trees."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from filepact.text.gitignore import IgnoreRules, IgnoreRuleSet
from tests.hostile.sweeps import often

if TYPE_CHECKING:
    from pathlib import Path

GIT = shutil.which("git")
pytestmark = pytest.mark.skipif(GIT is None, reason="needs git")

FOLDERS = ["a", "b", "foo", "a/b", "a/foo", "foo/a", "foo/foo", "a/b/foo", "foo/a/b", "foobar"]
NAMES = ["a", "b", "foo", "a.o", "foo.a", "#a", "!b", "a b", "a ", "foobar", ".o", "[a]", "a\\b"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    top = tmp_path_factory.mktemp("repository")
    environment = git_environment(top)
    subprocess.run([GIT, "init", "-q", "."], cwd=top, check=True, env=environment)
    paths = dict.fromkeys(FOLDERS, True)
    for folder in ["", *FOLDERS]:
        for name in NAMES:
            path = f"{folder}/{name}" if folder else name
            if path not in paths:
                paths[path] = False
    for path, is_dir in paths.items():
        if is_dir:
            (top / path).mkdir(parents=True, exist_ok=True)
    for path, is_dir in paths.items():
        if not is_dir:
            (top / path).touch()
    return top, paths


def git_environment(top: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
    return kept | {
        "HOME": str(top),
        "GIT_CONFIG_NOSYSTEM": "1",
        "XDG_CONFIG_HOME": str(top / ".none"),
        "LC_ALL": "C.UTF-8",
    }


def ignored_by_git(top: Path, paths: dict[str, bool]) -> set[str]:
    done = subprocess.run(
        [GIT, "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=top,
        input="\0".join(paths).encode(),
        capture_output=True,
        check=False,
        env=git_environment(top),
    )
    assert done.returncode in (0, 1), done.stderr
    return {path for path in done.stdout.decode().split("\0") if path}


def ignored_by_us(files: dict[str, str], exclude: str, paths: dict[str, bool]) -> set[str]:
    def stack(path: str) -> IgnoreRuleSet:
        found = IgnoreRuleSet(defaults=frozenset())
        found = found.with_rules("exclude", IgnoreRules.parse(exclude, "."))
        for base in sorted(files, key=lambda base: (base != ".", len(base))):
            if base == "." or path.startswith(f"{base}/"):
                found = found.with_rules("gitignore", IgnoreRules.parse(files[base], base))
        return found

    def hides(path: str, is_dir: bool) -> bool:
        prefix = path[: path.rfind("/") + 1]
        return not stack(path).sift(prefix, [path[len(prefix) :] + ("/" if is_dir else "")]).kept

    result = set()
    for path, is_dir in paths.items():
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        if any(hides(p, True) for p in above) or hides(path, is_dir):
            result.add(path)
    return result


def both(tree, files: dict[str, str], exclude: str = "") -> tuple[set[str], set[str]]:
    top, paths = tree
    for base in [".", *FOLDERS]:
        (top / base / ".gitignore").unlink(missing_ok=True)
    for base, text in files.items():
        (top / base / ".gitignore").write_bytes(text.encode())
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "exclude").write_bytes(exclude.encode())
    return ignored_by_us(files, exclude, paths), ignored_by_git(top, paths)


ATOMS = [
    "a", "b", "foo", "o", ".o", "bar", "*", "**", "?", "/", "/", "/**/", "**/", "/**", "[a-f]",
    "[!a]", "[^b]", "[]a]", "[", "]", "[[:alpha:]]", "[a-", "[.-0]", "\\", "\\*", "\\[a\\]", "\\#",
    "\\!", "\\ ", " ", "#", "!", "\t", "[b-a]", "***", "\\/",
]  # fmt: skip
LINE = st.builds(
    lambda sign, slash, atoms, end: sign + slash + "".join(atoms) + end,
    st.sampled_from(["", "", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(ATOMS), max_size=5),
    st.sampled_from(["", "", "/", " ", "\\ ", "  "]),
)
TEXT = st.builds(
    lambda bom, end, lines, last: bom + end.join(lines) + last,
    st.sampled_from(["", "", "\ufeff"]),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.lists(LINE, max_size=6),
    st.sampled_from(["", "\n", "\r"]),
)


@pytest.mark.slow
@settings(
    max_examples=int(os.environ.get("FILEPACT_EXAMPLES", often(60, 250))),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    files=st.dictionaries(st.sampled_from([".", "a", "foo", "a/b"]), TEXT, min_size=1, max_size=3),
    exclude=st.one_of(st.just(""), TEXT),
)
def test_generated_ignore_files_say_what_git_says(tree, files, exclude):
    ours, gits = both(tree, files, exclude)
    assert ours == gits


TABLE = {
    "a folder below an ignored one stays ignored": ("a/\n!a/b/\n", ""),
    "contents brought back": ("foo/*\n!foo/a\n", ""),
    "double star first": ("**/foo\n", ""),
    "double star in the middle": ("foo/**/b\n", ""),
    "double star last": ("a/**\n", ""),
    "double star behind a literal": ("foo**/b\n", ""),
    "escaped blank": ("a\\ \n", ""),
    "trailing blanks": ("foo.a  \n", ""),
    "trailing tab stays": ("foo.a\t\n", ""),
    "escaped number sign and exclamation mark": ("\\#a\n\\!b\n", ""),
    "comment": ("#a\n", ""),
    "windows line ends": ("foo.a\r\na.o\r\n", ""),
    "byte-order mark": ("\ufefffoo\n", ""),
    "exclude file is weaker": ("!foo\n", "foo\nb\n"),
    "backslash in a name": ("a\\\\b\n", ""),
    "class with bracket": ("[[]a]\n", ""),
    "class not closed": ("[a\n", ""),
    "backslash at the end": ("foo\\\n", ""),
    "only a slash": ("/\n", ""),
    "only an exclamation mark": ("!\n", ""),
    "everything but folders": ("*\n!*/\n!*.o\n", ""),
}


@pytest.mark.parametrize("case", TABLE)
def test_known_cases_say_what_git_says(tree, case):
    text, exclude = TABLE[case]
    ours, gits = both(tree, {".": text}, exclude)
    assert ours == gits
