"""Which of the compiler's messages are errors, warnings or nothing: as a build says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from project_tree import ProjectTree, sdk
from real_build import FRAMEWORK, errors_of_build, sdk_or_skip
from talk import Talk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MILD = "class Mild { void M() { int n; } void N() { int m = 1; } }\n"
"""A variable that is never used (CS0168, of level 3), and one to which only something is assigned (CS0219)."""


def _set(**values: str) -> str:
    lines = "".join(f"<{name}>{value}</{name}>" for name, value in values.items())
    return f"<PropertyGroup>{lines}</PropertyGroup>"


def _config(*lines: str) -> str:
    return "\n".join(("root = true", "[*.cs]", *lines, ""))


def _rules(*rules: tuple[str, str], every: str = "") -> str:
    named = "".join(f'<Rule Id="{code}" Action="{action}" />' for code, action in rules)
    listed = f'<Rules AnalyzerId="A" RuleNamespace="B">{named}</Rules>' if rules else ""
    included = f'<IncludeAll Action="{every}" />' if every else ""
    return f'<RuleSet Name="R" ToolsVersion="14.0">{included}{listed}</RuleSet>'


_UNUSED = "dotnet_diagnostic.CS0168.severity"

_OLD: dict[str, tuple[str, dict[str, str], dict[str, int]]] = {
    # Of each project: what it sets, files beside it, and what is said of its source, by code.
    "plain": ("", {}, {"CS0168": 2, "CS0219": 2}),
    "error": ("", {".editorconfig": _config(f"{_UNUSED} = error")}, {"CS0168": 1, "CS0219": 2}),
    "none": (
        _set(TreatWarningsAsErrors="true"),
        {".editorconfig": _config(f"{_UNUSED} = none")},
        {"CS0219": 1},
    ),
    "suggestion": (
        _set(TreatWarningsAsErrors="true"),
        {".editorconfig": _config(f"{_UNUSED} = suggestion")},
        {"CS0219": 1},
    ),
    "other files": (
        "",
        {".editorconfig": f"root = true\n[Other.cs]\n{_UNUSED} = error\n"},
        {"CS0168": 2, "CS0219": 2},
    ),
    "not looked for": (
        _set(DiscoverEditorConfigFiles="false"),
        {".editorconfig": _config(f"{_UNUSED} = error")},
        {"CS0168": 2, "CS0219": 2},
    ),
    "named": (
        '<ItemGroup><EditorConfigFiles Include="set/.editorconfig" /></ItemGroup>',
        {
            "set/.editorconfig": _config(f"{_UNUSED} = error"),
            "set/B.cs": _MILD.replace("Mild", "B"),
        },
        {"CS0168": 2, "CS0219": 2},
    ),
    "level": (_set(WarningLevel="2"), {}, {}),
    "no level": (_set(WarningLevel="0", WarningsAsErrors="CS0168"), {}, {}),
    "not errors": (
        _set(TreatWarningsAsErrors="true", WarningsNotAsErrors="CS0168"),
        {},
        {"CS0168": 2, "CS0219": 1},
    ),
    "rules": (
        _set(CodeAnalysisRuleSet="my.ruleset"),
        {"my.ruleset": _rules(("CS0168", "Error"), ("CS0219", "None"))},
        {"CS0168": 1},
    ),
    "rules for all": (
        _set(CodeAnalysisRuleSet="my.ruleset", WarningsNotAsErrors="CS0168"),
        {"my.ruleset": _rules(("CS0219", "Info"), every="Error")},
        {"CS0168": 2},
    ),
    "rules and errors": (
        _set(CodeAnalysisRuleSet="my.ruleset", TreatWarningsAsErrors="true", NoWarn="219"),
        {"my.ruleset": _rules(("CS0168", "Warning"), ("CS0219", "Error"))},
        {"CS0168": 1},
    ),
    "documented": (
        _set(GenerateDocumentationFile="true", WarningsAsErrors="CS1591", NoWarn="168;219"),
        {"B.cs": "public class B { }\n"},
        {"CS1591": 1},
    ),
}

_NEW: dict[str, tuple[str, dict[str, str], dict[str, int]]] = {
    "global": (
        "",
        {
            ".globalconfig": f"is_global = true\n{_UNUSED} = error\ndotnet_diagnostic.CS0219.severity = none\n"
        },
        {"CS0168": 1},
    ),
    "global and beside": (
        "",
        {
            ".globalconfig": f"is_global = true\n{_UNUSED} = error\n",
            ".editorconfig": _config(f"{_UNUSED} = none"),
        },
        {"CS0219": 2},
    ),
    "global by another name": (
        '<ItemGroup><GlobalAnalyzerConfigFiles Include="set\\my.config" /></ItemGroup>',
        {"set/my.config": f"is_global = true\n{_UNUSED} = error\n"},
        {"CS0168": 1, "CS0219": 2},
    ),
    "features": (
        _set(Features="strict"),
        {"B.cs": "class B { static class C { } bool M(object o) => o is C; }\n"},
        {"CS7023": 2},
    ),
}


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    tree = ProjectTree(tmp_path_factory.mktemp("severities"))
    for name, (body, files, _) in (_OLD | _NEW).items():
        put(tree, name.replace(" ", ""), body, files)
    made = Talk(tree.root)
    yield made
    made.kill()


def put(tree: ProjectTree, folder: str, body: str, files: dict[str, str], **more: str) -> None:
    tree.put(f"{folder}/{folder}.csproj", sdk(body, **more))
    for name, text in {"A.cs": _MILD, **files}.items():
        tree.put(f"{folder}/{name}", text)


def answer(talk: Talk, name: str) -> tuple[dict[str, Any], dict[str, int]]:
    told = talk.ask("textDocument/diagnostic", {"textDocument": {"uri": talk.uri(name)}})
    return told["filepact"], {one["code"]: one["severity"] for one in told["items"]}


@pytest.mark.parametrize("name", _OLD | _NEW)
def test_messages_are_what_the_settings_make_of_them(talk: Talk, name: str) -> None:
    _, files, wanted = (_OLD | _NEW)[name]
    source = "B.cs" if "B.cs" in files else "A.cs"
    caveats, found = answer(talk, f"{name.replace(' ', '')}/{source}")
    assert found == wanted
    assert caveats == {"known": True, "approximate": False, "notes": []}


def test_a_text_that_comes_later_has_the_same_severities_and_other_settings_count_at_once(
    talk: Talk,
) -> None:
    name = "error/A.cs"
    talk.open(name, _MILD.replace("int n", "int other"))
    assert answer(talk, name)[1] == {"CS0168": 1, "CS0219": 2}
    talk.write("error/.editorconfig", _config(f"{_UNUSED} = none"))
    assert answer(talk, name)[1] == {"CS0219": 2}
    talk.write("error/.editorconfig", _config("indent_size = 4"))
    assert answer(talk, name)[1] == {"CS0168": 2, "CS0219": 2}
    talk.write("error/.editorconfig", _config(f"{_UNUSED} = error"))
    talk.close(name)
    assert answer(talk, name)[1] == {"CS0168": 1, "CS0219": 2}


@pytest.mark.parametrize(
    ("body", "files", "says"),
    [
        (_set(CodeAnalysisRuleSet="no.ruleset"), {}, "no.ruleset"),
        (
            _set(CodeAnalysisRuleSet="a.ruleset"),
            {"a.ruleset": '<RuleSet><Include Path="b.ruleset" Action="Default" /></RuleSet>'},
            "a.ruleset",
        ),
        (_set(CodeAnalysisRuleSet="../../out.ruleset"), {}, "out.ruleset"),
        ('<ItemGroup><EditorConfigFiles Include="no.config" /></ItemGroup>', {}, "no.config"),
        (_set(WarningLevel="high"), {}, "WarningLevel"),
        (_set(CompilerResponseFile="more.rsp"), {}, "CompilerResponseFile"),
        ('<ItemGroup><AddModules Include="a.netmodule" /></ItemGroup>', {}, "modules"),
    ],
)
def test_what_is_not_given_to_the_compiler_is_named(
    tree: ProjectTree, body: str, files: dict[str, str], says: str
) -> None:
    put(tree, "P", body, files)
    project = tree.project("P/P.csproj")
    assert project.approximate
    (message,) = project.messages
    assert says in message.text


@pytest.mark.timeout(400)
def test_a_build_finds_the_same_errors(talk: Talk, tmp_path: Path) -> None:
    sdk_or_skip()
    tree = ProjectTree(tmp_path / "root")
    for name, (body, files, _) in _OLD.items():
        put(tree, name.replace(" ", ""), body, files, framework=FRAMEWORK)
    built = errors_of_build(tree, tmp_path / "home")
    for name, (_, files, wanted) in _OLD.items():
        source = "B.cs" if "B.cs" in files else "A.cs"
        errors = {(source, code) for code, severity in wanted.items() if severity == 1}
        found = {one for one in built.get(name.replace(" ", ""), set()) if one[0] == source}
        assert found == errors, name
