"""After whatever happens to files, a server that runs says what one would that is started now."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.servers.asking import delta_of, preview_of, report_of
from tests.servers.real_servers import SECONDS, Tree
from tests.servers.sync_trees import PROJECTS, Project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SLOW = ("basedpyright", "clangd", "gopls", "filepact-csharp")
"""Each start of these takes seconds, so every eighth case has to do, others for each; with LSP_ALL set it is all."""


@pytest.fixture(
    params=[
        name if name == "ty" else pytest.param(name, marks=pytest.mark.slow) for name in PROJECTS
    ]
)
def project(request: pytest.FixtureRequest) -> Project:
    return PROJECTS[request.param]


@pytest.fixture
def tree(project: Project, tmp_path: Path) -> Iterator[Tree]:
    root = tmp_path / "deep" / "enough" / "project"
    root.mkdir(parents=True)
    made = Tree(root.resolve(), project.server)
    for name, text in project.settings.items():
        made.write(name, text)
    made.write(project.dependency, project.right)
    made.write(project.user, project.user_text)
    yield made
    made.close()


def edit_open_file(tree: Tree, project: Project) -> None:
    tree.report()
    tree.tell(tree.write(project.dependency, project.wrong))


def edit_closed_file(tree: Tree, project: Project) -> None:
    tree.report(project.user)
    tree.tell(tree.write(project.dependency, project.wrong))


def new_file_imported(tree: Tree, project: Project) -> None:
    tree.tell(tree.write(project.user, project.wants_new))
    tree.report(project.user)
    tree.tell(tree.write(project.new, project.new_text))


def deleted_file(tree: Tree, project: Project) -> None:
    tree.report(project.user)
    tree.tell(tree.delete(project.dependency))


def renamed_file(tree: Tree, project: Project) -> None:
    tree.report()
    tree.tell(tree.rename(project.dependency, project.moved))
    tree.report()
    tree.tell(tree.write(project.user, project.moved_user))


def reverted(tree: Tree, project: Project) -> None:
    tree.report(project.user)
    tree.tell(tree.write(project.dependency, project.wrong))
    tree.report(project.user)
    tree.tell(tree.write(project.dependency, project.right))


def changed_from_outside(tree: Tree, project: Project) -> None:
    tree.report()
    changes = [
        tree.write(project.dependency, project.wrong),
        tree.write(project.user, project.user_text + "\n"),
    ]
    tree.report(project.dependency)
    tree.tell(*changes)


def two_files_in_one_set(tree: Tree, project: Project) -> None:
    tree.report()
    tree.tell(
        tree.write(project.new, project.new_text), tree.write(project.user, project.wants_new)
    )


def new_folder(tree: Tree, project: Project) -> None:
    tree.tell(tree.write(project.user, project.folder_user))
    tree.report(project.user)
    tree.tell(*(tree.write(name, text) for name, text in project.folder.items()))


def syntax_error_and_back(tree: Tree, project: Project) -> None:
    tree.report()
    tree.tell(tree.write(project.dependency, project.broken))
    tree.report()
    tree.tell(tree.write(project.dependency, project.right))


def only_saved(tree: Tree, project: Project) -> None:
    tree.report()
    tree.tell(tree.write(project.dependency, project.right))


def overlay_and_withdrawn(tree: Tree, project: Project) -> None:
    texts = {tree.path(name): tree.text(name) for name in tree.files()}
    proposed = {tree.path(project.dependency): project.wrong}
    (seen,) = preview_of(tree.pool, str(tree.root), proposed, texts, 60.0)
    assert delta_of(seen) is not None
    assert seen.complete
    if tree.server.role == "types":
        assert [one.path for one in delta_of(seen).new if one.severity == "error"]


def shown_while_it_was_gone(tree: Tree, project: Project) -> None:
    """A question that was on its way shows a text whose file has gone meanwhile."""
    tree.report()
    tree.tell(tree.delete(project.dependency))
    tree.report(project.user)
    texts = {tree.path(project.dependency): project.right}
    report_of(tree.pool, str(tree.root), texts, SECONDS)
    tree.tell(tree.write(project.dependency, project.right))


def seen_before_it_was_told(tree: Tree, project: Project) -> None:
    """A server that looks by itself finds a file that it has not heard of, and then another."""
    tree.report(project.user)
    tree.tell(tree.delete(project.dependency))
    tree.report(project.user)
    tree.write(project.dependency, project.right)
    tree.tell(tree.write(project.user, project.user_text + "\n"))
    tree.tell(tree.write("unrelated" + os.path.splitext(project.user)[1], ""))
    tree.report(project.user)
    tree.tell(replace(tree.write(project.dependency, project.wrong), kind="created"))


def another_of_the_same_date(tree: Tree, project: Project) -> None:
    tree.report(project.user)
    before = (tree.root / project.dependency).stat()
    change = tree.write(project.dependency, project.wrong)
    os.utime(tree.root / project.dependency, ns=(before.st_atime_ns, before.st_mtime_ns))
    tree.tell(replace(change, same_date=True))


def gone_while_it_looked(tree: Tree, project: Project) -> None:
    """A server learns its project anew while a file is gone, and hears of that when it is back."""
    tree.report(project.user)
    gone = tree.delete(project.dependency)
    tree.tell(tree.write(project.new, project.new_text))
    tree.report(project.user, project.new)
    back = replace(tree.write(project.dependency, project.right), kind="created", same_date=True)
    tree.tell(gone, back)


STEPS = [
    edit_open_file,
    edit_closed_file,
    new_file_imported,
    deleted_file,
    renamed_file,
    reverted,
    changed_from_outside,
    two_files_in_one_set,
    new_folder,
    syntax_error_and_back,
    only_saved,
    overlay_and_withdrawn,
    shown_while_it_was_gone,
    seen_before_it_was_told,
    another_of_the_same_date,
    gone_while_it_looked,
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_server_kept_in_step_says_what_a_new_one_says(
    tree: Tree, project: Project, step: Callable[[Tree, Project], None]
) -> None:
    place = STEPS.index(step) + 2 * SLOW.index(project.server) if project.server in SLOW else 0
    if place % 8 and "LSP_ALL" not in os.environ:
        pytest.skip("one of the cases of a slow server that are left to LSP_ALL=1")
    step(tree, project)
    # First while the others are as the server finds them, and then with all of them shown to it.
    alone = tree.report(project.user)[project.user]
    warm, cold = tree.report(), tree.cold()
    assert alone.diagnostics == cold[project.user].diagnostics
    assert {name: one.diagnostics for name, one in warm.items()} == {
        name: one.diagnostics for name, one in cold.items()
    }
    for name, one in [*warm.items(), *cold.items()]:
        # It proves what it says of sources, and of no file of settings.
        assert (one.fresh and one.complete) or name == "go.mod", one


def test_the_steps_make_a_difference_that_servers_see(tree: Tree, project: Project) -> None:
    """Otherwise the comparison above would compare nothing."""
    before = tree.report(project.user)[project.user]
    edit_closed_file(tree, project)
    after = tree.report(project.user)[project.user]
    if tree.server.role == "types":
        assert len(after.diagnostics) > len(before.diagnostics)
