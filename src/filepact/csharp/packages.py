"""What a project sees of its packages, and what cannot be known of them."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from filepact.csharp.assets import MAX_BYTES, AssetsError, read_assets
from filepact.errors import FilepactError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from filepact.csharp.assets import Assets
    from filepact.csharp.evaluation import Evaluation
    from filepact.csharp.frameworks import Framework

__all__ = ["Packages", "read_packages"]


@dataclass(frozen=True, slots=True)
class Packages:
    """What is known of a project's packages.

    Attributes:
        references: Their DLLs, absolute.
        missing: The names of those whose DLLs are not known.
        projects: Project files that are seen through others.
    """

    references: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


def read_packages(
    evaluation: Evaluation, framework: Framework, wanted: Mapping[str, str]
) -> Packages:
    """What a restore has left, if there was one; what is missing is said.

    Args:
        evaluation: The project, worked through to its end.
        framework: Its target framework.
        wanted: The packages that it names, by their names in lower case.
    """
    assets = _assets(evaluation, framework)
    if assets is None:
        if wanted:
            names = ", ".join(wanted.values())[:200]
            evaluation.say(
                f"nothing was restored, so what is in these packages is not known: {names}"
            )
        return Packages((), tuple(wanted.values()))
    missing = tuple(name for key, name in wanted.items() if key not in assets.packages)
    if missing:
        evaluation.say(f"not restored: {', '.join(missing)[:200]}")
    if assets.generators:
        names = ", ".join(assets.generators)[:200]
        evaluation.say(f"generators and analyzers do not run: {names}")
    projects = (one for one in assets.projects if evaluation.within(one))
    return Packages(assets.references, missing, tuple(filter(evaluation.files.has, projects)))


def _assets(evaluation: Evaluation, framework: Framework) -> Assets | None:
    value = evaluation.value
    folder = value("MSBuildProjectExtensionsPath") or value("BaseIntermediateOutputPath")
    name = posixpath.join(folder.replace("\\", "/"), "project.assets.json")
    path = posixpath.normpath(posixpath.join(evaluation.folder, name))
    evaluation.inputs.append(path)
    try:
        text = evaluation.files.text(path, MAX_BYTES) if evaluation.within(path) else None
        if text is not None:
            return read_assets(text, framework, evaluation.folder, evaluation.files)
    except FilepactError as error:
        evaluation.say(error.message, path)
    except AssetsError as error:
        evaluation.say(f"what was restored is not known: {error}", path)
    return None
