"""A project file and what it imports, worked through in the order in which the build does it.

Properties first, from top to bottom, imports where they stand; items afterwards, with the final properties.
What cannot be decided without building is not guessed: a property that depends on it counts as unknown, and that is
said only where somebody wants to know it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from filepact.errors import FilepactError
from filepact_csharp.expressions import ProjectProperties, UnknownPropertyError, holds
from filepact_csharp.projects import FilePattern, ProjectMessage
from filepact_csharp.safe_xml import XmlElement, XmlError, parse

if TYPE_CHECKING:
    from filepact_csharp.projects import FileTree
    from filepact_csharp.sdk_projects import SdkProject

__all__ = ["MAX_BYTES", "Evaluate", "Parsed", "PendingItem", "ProjectReader"]

MAX_BYTES: Final = 4_000_000
"""Largest project file that is read."""

_MAX_IMPORTS: Final = 200
_MAX_MESSAGES: Final = 50
# Where the tools of the build lie: what they bring is known without reading it.
_TOOLS: Final = (
    "$(msbuildtoolspath",
    "$(msbuildextensionspath",
    "$(msbuildbinpath",
    "$(msbuildsdkspath",
    "$(vstoolspath",
    "$(nugetpackageroot",
)


_BY_TARGETS: Final = {
    "compile": "a target changes which sources are compiled",
    "internalsvisibleto": "a target may let other assemblies see what is internal",
    "assemblyattribute": "a target may let other assemblies see what is internal",
    "using": "a target changes the usings of all sources",
    "reference": "a target changes the references",
    "referencepath": "a target changes the references",
    "projectreference": "a target changes the references",
    "packagereference": "a target changes the packages",
}
"""What targets do that changes how a project is compiled, by the items that they name."""

_FRIENDLY: Final = ("internalsvisibleto", "assemblyattribute")


Evaluate = Callable[[str, Mapping[str, str]], "SdkProject | None"]
"""Evaluates a project file with properties that it cannot change; None where that cannot be done."""

Parsed = dict[str, "XmlElement | ProjectMessage"]
"""Files that were read, or what is wrong with them, by path; of all projects of a solution."""


@dataclass(frozen=True, slots=True)
class PendingItem:
    """An item whose turn comes when all properties are known."""

    element: XmlElement
    conditions: tuple[str, ...]
    path: str


class ProjectReader:
    """One project while it is read.

    Args:
        path: The project file.
        root: The folder that is not left.
        files: Where files are.
        fixed: Properties that a project cannot change.
        parsed: What other projects have read, and this one adds to.

    Attributes:
        properties: As far as they are known by now.
        messages: What a reader should know.
        inputs: Files that have a say, or would have one if they were there.
        approximate: Whether something was not taken into account.
        pending: The items whose turn comes when all properties are known.
        unread: Whether the project file itself could not be read.
        maybe_friends: Whether a target may let other assemblies see what is internal.
        evaluated: The same as an SDK has evaluated it, in place of all this; None for none.
        on_sdk: What to do where a project imports a file of an SDK; gets its name and the file's.
    """

    def __init__(
        self, path: str, root: str, files: FileTree, fixed: Mapping[str, str], parsed: Parsed
    ) -> None:
        self.path, self.root, self.files = path, root.rstrip("/") or "/", files
        self.messages: list[ProjectMessage] = []
        self.inputs: list[str] = []
        self.approximate = False
        self.unread = False
        self.maybe_friends = False
        self.evaluated: SdkProject | None = None
        self.on_sdk: Callable[[str, str], None] = lambda _sdk, _file: None
        self.properties = ProjectProperties(files, self.root, frozenset(map(str.lower, fixed)))
        self.pending: list[PendingItem] = []
        self._parsed = parsed
        self._imported: set[str] = set()
        self._this = path
        name = posixpath.basename(path)
        for key, value in {
            "MSBuildProjectDirectory": posixpath.dirname(path),
            "MSBuildProjectFullPath": path,
            "MSBuildProjectFile": name,
            "MSBuildProjectName": posixpath.splitext(name)[0],
            "MSBuildProjectExtension": posixpath.splitext(name)[1],
            "OS": "Unix",
            **fixed,
        }.items():
            self.properties.force(key, value)

    @property
    def folder(self) -> str:
        """The project's folder."""
        return posixpath.dirname(self.path)

    def say(
        self, text: str, path: str = "", line: int = 0, *, harmless: bool = False, code: str = ""
    ) -> None:
        """Tell the reader something.

        Args:
            text: What.
            path: The file that it is about; the project's own if empty.
            line: The line there, if it is about one.
            harmless: Whether the model is as good as without it.
            code: Under which a build says the same; empty where it says nothing.
        """
        message = ProjectMessage(path or self.path, line, " ".join(text.split()), code)
        self.approximate = self.approximate or not harmless
        if len(self.messages) < _MAX_MESSAGES and message not in self.messages:
            self.messages.append(message)

    def within(self, path: str) -> bool:
        """Whether a path lies beneath the root."""
        return path.startswith("/" if self.root == "/" else f"{self.root}/")

    def load(self, path: str) -> XmlElement | None:
        """The outermost element of a file; None, and said why, if it cannot be read."""
        self.inputs.append(path)
        if path not in self._parsed:
            self._parsed[path] = self._read(path)
        found = self._parsed[path]
        if isinstance(found, XmlElement):
            return found
        self.say(found.text, found.path, found.line, code=found.code)
        return None

    def _read(self, path: str) -> XmlElement | ProjectMessage:
        try:
            text = self.files.text(path, MAX_BYTES)
            if text is None:
                return ProjectMessage(path, 0, "the file is not there")
            element = parse(text)
        except FilepactError as error:
            return ProjectMessage(path, 0, error.message)
        except XmlError as error:
            return ProjectMessage(path, error.line, str(error), error.code)
        if element.name == "Project":
            return element
        start = f"it starts with <{element.name[:40]}> and not with <Project>"
        return ProjectMessage(path, element.line, start, "MSB4068")

    def take_above(self, name: str) -> str:
        """Import the nearest file of a name at or above the project's folder, within the root.

        The answer is its path; empty if there is none.
        """
        for path in self._above(name):
            if self.files.has(path):
                self._import(path, "", 0)
                return path
            self.inputs.append(path)
        return ""

    def take_evaluated(self, evaluated: SdkProject) -> bool:
        """Take what an SDK has evaluated, and see what targets would change; False if a file cannot be read."""
        for path in dict.fromkeys((self.path, *evaluated.imports)):
            element = self.load(path)
            if element is None:
                return False
            self._this = path
            for one in element.all():
                if one.name == "Target":
                    self._target(one)
        self._this = self.path
        for name in (
            "Directory.Build.props",
            "Directory.Build.targets",
            "Directory.Packages.props",
        ):
            self.inputs += self._above(name)
        self.evaluated = evaluated
        return True

    def _above(self, name: str) -> Iterator[str]:
        """Where a file of a name may lie, at or above the project's folder, within the root."""
        folder = self.folder
        yield posixpath.join(folder, name)
        while folder != self.root and self.within(folder):
            folder = posixpath.dirname(folder)
            yield posixpath.join(folder, name)

    def take(self, element: XmlElement, path: str) -> None:
        """Work through the elements of a file."""
        before, self._this = self._this, path
        self.enter(path)
        self._walk(element.children, ())
        self._this = before
        self.enter(before)

    def value(self, name: str, default: str = "") -> str:
        """The final value of a property, without blanks around it; that it is unknown is said."""
        if self.evaluated is not None:
            return self.evaluated.values[name] or default
        key = name.lower()
        if why := self.properties.spoiled.get(key):
            self.say(f"{name} is not known: {why.text}", why.path, why.line)
        return self.properties.get(name).strip() or default

    def enter(self, path: str) -> None:
        """Set the properties that name the present file."""
        folder, name = posixpath.split(path)
        for key, value in {
            "MSBuildThisFile": name,
            "MSBuildThisFileName": posixpath.splitext(name)[0],
            "MSBuildThisFileExtension": posixpath.splitext(name)[1],
            "MSBuildThisFileFullPath": path,
            "MSBuildThisFileDirectory": f"{folder.rstrip('/')}/",
        }.items():
            self.properties.force(key, value)

    def holds(self, condition: str, folder: str = "") -> bool:
        """Whether a condition holds.

        Args:
            condition: As it stands in a file.
            folder: From where the names of files in it count; empty for the project's folder.

        Raises:
            UnknownPropertyError: It cannot be decided here.
        """

        def exists(path: str) -> bool:
            name = path.replace("\\", "/")
            return self.files.has(posixpath.normpath(posixpath.join(folder or self.folder, name)))

        return holds(condition, self.properties.expand, exists)

    def _walk(self, elements: tuple[XmlElement, ...], conditions: tuple[str, ...]) -> None:
        for element in elements:
            match element.name:
                case "PropertyGroup":
                    self._properties(element)
                case "ItemGroup":
                    found = (*conditions, element.get("Condition"))
                    self.pending += [
                        PendingItem(one, found, self._this) for one in element.children
                    ]
                case "Import":
                    self._import_element(element)
                case "ImportGroup":
                    if self._decides(element, importing=True):
                        for one in element.children:
                            self._import_element(one)
                case "Choose":
                    self._choose(element, conditions)
                case "Target":
                    self._target(element)
                case "Sdk":
                    self.say(
                        f"what the SDK {element.get('Name')[:80]} adds is not read",
                        self._this,
                        element.line,
                    )
                case _:
                    pass

    def _properties(self, group: XmlElement) -> None:
        for element in group.children:
            try:
                if self.holds(group.get("Condition")) and self.holds(element.get("Condition")):
                    self.properties.put(element.name, self.properties.expand(element.text))
            except UnknownPropertyError as error:
                why = ProjectMessage(self._this, element.line, f"not evaluated here: {error}")
                self.properties.spoil(element.name, why)

    def _choose(self, choose: XmlElement, conditions: tuple[str, ...]) -> None:
        for element in choose.children:
            if element.name == "Otherwise" or self._decides(element):
                self._walk(element.children, conditions)
                return

    def _target(self, target: XmlElement) -> None:
        """Targets run when it is built; what they bring is not there for us, and is said."""
        for element in target.all():
            item = element.get("Include") or element.get("Remove")
            what = _BY_TARGETS.get(element.name.lower()) if item else None
            if what is None:
                continue
            friendly = element.name.lower() in _FRIENDLY
            self.maybe_friends = self.maybe_friends or friendly
            self.say(
                f"{what} only when it is built, so that is not known", self._this, element.line
            )

    def _import_element(self, element: XmlElement) -> None:
        project = element.get("Project").strip()
        if not self._decides(element, importing=True):
            return
        if sdk := element.get("Sdk").strip():
            self.on_sdk(sdk, project)
            return
        if not project or project.lower().startswith(_TOOLS):
            return
        try:
            text = self.properties.expand(project)
        except UnknownPropertyError as error:
            self.say(f"the import is not evaluated here: {error}", self._this, element.line)
            return
        if not text:
            return
        pattern = FilePattern.parse(text, posixpath.dirname(self._this))
        if pattern is None:
            self.say("the import names no file", self._this, element.line)
        elif not self.within(pattern.folder):
            self.say(
                f"{text[:200]} lies outside of the root and is not read", self._this, element.line
            )
        elif pattern.parts:
            for path in sorted(self.files.below(pattern.folder, pattern.ending)):
                if pattern.matches(path):
                    self._import(path, self._this, element.line)
        else:
            self._import(pattern.folder, self._this, element.line)

    def _import(self, path: str, importer: str, line: int) -> None:
        if path in self._imported or path == self.path:
            # The build overlooks it too, so that circles end.
            return
        if len(self._imported) >= _MAX_IMPORTS:
            self.say(f"more than {_MAX_IMPORTS} imports are not read", importer, line)
            return
        self._imported.add(path)
        if not self.files.has(path):
            self.inputs.append(path)
            name = posixpath.basename(path)[:80]
            self.say(f"the imported file {name} is not there", importer, line, code="MSB4019")
            return
        element = self.load(path)
        if element is not None:
            self.take(element, path)

    def _decides(self, element: XmlElement, *, importing: bool = False) -> bool:
        """Whether an element's condition holds; what cannot be decided does not, and is said."""
        # Conditions of imports count from the file that imports, all others from the project.
        folder = posixpath.dirname(self._this) if importing else ""
        try:
            return self.holds(element.get("Condition"), folder)
        except UnknownPropertyError as error:
            self.say(f"the condition is not evaluated here: {error}", self._this, element.line)
            return False
