"""Which names may come from a package that was not restored."""

from __future__ import annotations

import pytest

from filepact_csharp.diagnostics import CompilerDiagnostic
from filepact_csharp.doubts import GLOBAL_USING, doubted, unresolved


def missing(text: str, name: str, code: str = "CS0246") -> CompilerDiagnostic:
    start = text.index(name)
    return CompilerDiagnostic(start, start + len(name), 1, code, f"'{name}' is not there")


@pytest.mark.parametrize(
    ("text", "name", "leads_nowhere"),
    [
        ("using Xunit;\n", "Xunit", True),
        ("using System;\r\nusing Xunit.Sdk;\n", "Xunit", True),
        ("using System; using Xunit;", "Xunit", True),
        ("namespace A\n{\n    using Xunit;\n}\n", "Xunit", True),
        ("global using Xunit;", "Xunit", True),
        ("using static Xunit.Assert;", "Xunit", True),
        ("using X = Xunit.Assert;", "Xunit", True),
        ("using X = global::Xunit.Set<int, string>;", "Xunit", True),
        ("class A { void M() { using Missing x = new(); } }", "Missing", False),
        ("class A { void M() { using (Missing x = new()) { } } }", "Missing", False),
        ("class A { void M() { using var x = new Missing(); } }", "Missing", False),
        ("class A { Missing x; }", "Missing", False),
        ("// using Xunit\nclass A : Xunit { }", "Xunit { }", False),
        ("using Xunit", "Xunit", False),
    ],
)
def test_a_using_is_told_from_what_begins_alike(text: str, name: str, leads_nowhere: bool) -> None:
    assert unresolved(text, [missing(text, name)]) is leads_nowhere
    assert not unresolved(text, [missing(text, name, "CS1002")])


@pytest.mark.parametrize(("code", "severity"), [("CS0103", 2), ("CS0246", 2), ("CS0029", 1)])
def test_only_names_that_are_not_found_are_doubted(code: str, severity: int) -> None:
    one = CompilerDiagnostic(1, 2, 1, code, "no such name.")
    told = doubted(one)
    assert told.severity == severity
    assert (told == one) is (severity == 1)
    assert doubted(told) == told


def test_a_file_that_speaks_for_all_others_is_known_by_its_text() -> None:
    assert GLOBAL_USING.search("// all\n  global  using System;")
    assert not GLOBAL_USING.search("using System; // no global using here\n")
