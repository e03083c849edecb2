"""Tools made from functions: what is shown of them, what they accept, and how they answer."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from contextlib import contextmanager
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filepact.domain.operation import Actor, Session
from filepact.errors import CODES, InvalidParamsError, NotFoundError, StateFailedError
from filepact.tools.parameters import TEXT_LIMIT, about, expected
from filepact.tools.read import read_file
from filepact.tools.registry import (
    CallContext,
    CallResult,
    ContentAnswer,
    ParameterName,
    Toolset,
    UnknownToolError,
    tool,
)
from filepact.values import dataclass
from filepact.workspace.pending import SessionEvent

CALL = CallContext(Session("s1", Actor("agent", "tester")))


@dataclass(frozen=True, slots=True)
class Swap:
    """Two texts."""

    old_string: str
    new_string: str
    replace_all: bool = False


@tool(title="Look", level="safe", tier="essential")
def look(
    files,
    path: Annotated[str, about(min_length=1, description="A file.")],
    encoding: Annotated[Literal["utf-8", "base64"], about(description="How.")] = "utf-8",
    depth: Annotated[int, about(ge=1, le=10, description="Levels.")] = 3,
    lines: Annotated[int | None, about(ge=0, description="Lines.")] = None,
    include_files: Annotated[bool, about(description="Files too.")] = True,
    max_results: Annotated[
        int, about(ge=1, description="Most."), ParameterName("maxResults")
    ] = 100,
) -> str | ContentAnswer:
    """Look at a file
    or a folder.

    More about it.

    Raises:
        NotFoundError: Not for agents.
    """
    if path == "missing":
        raise NotFoundError("missing: no such file", hint="Look elsewhere.")
    if path == "odd":
        return "name \udcff"
    if path == "broken":
        raise OSError("/home/somebody/secret")
    if encoding == "base64":
        return ContentAnswer(b"\x00\xff")
    return json.dumps([path, encoding, depth, lines, include_files, max_results])


@tool(title="Change", level="moderate", tier="standard", idempotent=True)
def change(
    draft,
    path: Annotated[str, about(description="A file.")],
    edits: Annotated[list[Swap], about(min_length=1, description="Swaps.")],
    create_dirs: Annotated[
        bool, about(description="Folders."), ParameterName("createDirs", ("mkdir_p",))
    ] = False,
) -> str:
    """Change a file."""
    draft.append((path, [(one.old_string, one.new_string) for one in edits], create_dirs))
    return f"change {path}"


@tool(title="Remove", level="dangerous", tier="full")
def remove(draft, size: Annotated[float, about(description="Size.")] = 0) -> str:
    """Remove everything."""
    return "remove"


@tool(title="Nothing", level="safe", tier="full")
def nothing(files) -> str:
    """Take no parameters."""
    return "nothing"


TOOLS = (look, change, remove, nothing)


class Engine:
    def __init__(self) -> None:
        self.drafts = []
        self.open = 0
        self.news_text = ""
        self.acknowledged = []
        self.recorded = []

    def port(self, call, _name):
        assert call.session is CALL.session
        return object()

    @contextmanager
    def draft(self, call, tool):
        assert call.session is CALL.session
        self.open += 1
        draft = []
        yield draft
        self.open -= 1
        self.drafts.append((tool, draft))

    def submit(self, _call, _draft, summary):
        assert self.open == 1
        return summary

    def answer(self, _call, _draft, summary):
        assert self.open == 0
        return CallResult(
            f"Done: {summary} \udc80", receipt={"status": "applied", "files": ["\udc80"]}
        )

    def events(self, call):
        assert call is CALL
        if self.news_text is None:
            raise StateFailedError("the journal cannot be read")
        return [SessionEvent(line, line) for line in self.news_text.split("\n") if line]

    def acknowledge(self, call, news):
        assert call is CALL
        self.acknowledged += [one.text for one in news]

    def record(self, call, tool, asked, code, seconds):
        assert call is CALL
        assert seconds >= 0
        self.recorded.append((tool, asked, code))

    def gather_records(self):
        return lambda: None


@pytest.fixture
def engine():
    return Engine()


@pytest.fixture
def toolbox(engine):
    return Toolset(TOOLS, engine)


def test_the_schema_is_compact_and_says_everything():
    assert look.schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "A file.", "minLength": 1},
            "encoding": {
                "type": "string",
                "description": "How.",
                "enum": ["utf-8", "base64"],
                "default": "utf-8",
            },
            "depth": {
                "type": "integer",
                "description": "Levels.",
                "default": 3,
                "minimum": 1,
                "maximum": 10,
            },
            "lines": {"type": "integer", "description": "Lines.", "minimum": 0},
            "include_files": {"type": "boolean", "description": "Files too.", "default": True},
            "maxResults": {
                "type": "integer",
                "description": "Most.",
                "default": 100,
                "minimum": 1,
            },
        },
        "required": ["path"],
        "additionalProperties": False,
    }


def test_nested_objects_stand_where_they_are_used():
    assert change.schema["properties"]["edits"] == {
        "type": "array",
        "description": "Swaps.",
        "minItems": 1,
        "items": {
            "type": "object",
            "properties": {
                "old_string": {"type": "string"},
                "new_string": {"type": "string"},
                "replace_all": {"type": "boolean", "default": False},
            },
            "required": ["old_string", "new_string"],
            "additionalProperties": False,
        },
    }


def test_a_parameter_has_one_type():
    def either(files, size: Annotated[float | str, about(description="Size.")]) -> str:
        """Do."""

    with pytest.raises(TypeError, match="no type of a parameter"):
        tool(title="x", level="safe")(either)


def test_the_description_is_the_docstring_without_its_sections():
    assert look.description == "Look at a file or a folder.\nMore about it."


def test_the_port_decides_whether_a_tool_reads_or_writes():
    shown = [(one.kind, one.idempotent, one.destructive) for one in (look, change, remove)]
    assert shown == [
        ("reads", True, False),
        ("writes", True, True),
        ("writes", False, True),
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda reader: reader, "first parameter", id="foreign port"),
        pytest.param(lambda: "", "first parameter", id="no port"),
        pytest.param(lambda files: files, "no docstring", id="no docstring"),
    ],
)
def test_a_function_of_another_shape_is_no_tool(make, message):
    with pytest.raises(TypeError, match=message):
        tool(title="x", level="safe")(make)


def test_a_parameter_needs_a_description():
    def bare(files, path: str) -> str:
        """Do."""

    with pytest.raises(TypeError, match="path has no description"):
        tool(title="x", level="safe")(bare)


def test_two_parameters_cannot_share_a_name():
    def twice(
        files,
        one: Annotated[str, about(description="1")],
        two: Annotated[str, about(description="2"), ParameterName("one")],
    ) -> str:
        """Do."""

    with pytest.raises(TypeError, match="two parameters are called one"):
        tool(title="x", level="safe")(twice)


# fmt: off
TAKEN = [
    ({}, ["utf-8", 3, None, True, 100]),
    ({"depth": "7"}, ["utf-8", 7, None, True, 100]),
    ({"depth": 7.0}, ["utf-8", 7, None, True, 100]),
    ({"include_files": "false"}, ["utf-8", 3, None, False, 100]),
    ({"maxResults": 5}, ["utf-8", 3, None, True, 5]),
    ({"max_results": "5"}, ["utf-8", 3, None, True, 5]),
    ({"depth": None, "lines": None, "encoding": None}, ["utf-8", 3, None, True, 100]),
    ({"lines": 0}, ["utf-8", 3, 0, True, 100]),
    ({"max_results": 0}, ["utf-8", 3, None, True, 100]),
    ({"depth": "", "lines": [], "encoding": "", "include_files": {}, "maxResults": ""}, ["utf-8", 3, None, True, 100]),
]
# fmt: on


@pytest.mark.parametrize(("sent", "taken"), TAKEN)
def test_what_is_meant_is_taken(toolbox, sent, taken):
    outcome = toolbox.call("look", {"path": "p", **sent}, CALL)
    assert json.loads(outcome.text) == ["p", *taken]


# fmt: off
REFUSED = [
    ({}, "path is missing"),
    ({"path": None}, "path: null is not accepted, send a text that is not empty"),
    ({"path": ""}, 'path: "" is not accepted, send a text that is not empty'),
    ({"path": 5}, "path: 5 is not accepted, send a text that is not empty"),
    ({"path": ["p"]}, "path: a list is not accepted"),
    ({"path": {"p": 1}}, "path: an object is not accepted"),
    ({"path": "p", "depth": 11}, "depth: 11 is not accepted, send a whole number from 1 to 10"),
    ({"path": "p", "depth": "many"}, 'depth: "many" is not accepted, send a whole number from 1'),
    ({"path": "p", "depth": 2.5}, "depth: 2.5 is not accepted"),
    ({"path": "p", "lines": -1}, "lines: -1 is not accepted, send a whole number of at least 0"),
    ({"path": "p", "include_files": "maybe"}, 'include_files: "maybe" is not accepted, send true or false'),
    ({"path": "p", "encoding": "latin-1"}, 'encoding: "latin-1" is not accepted, send one of utf-8, base64'),
    ({"path": "p", "maxResults": -1}, "maxResults: -1 is not accepted, send a whole number of at least 1"),
    ({"path": "p", "max_results": -1}, "maxResults: -1 is not accepted"),
    ({"path": "p", "maxResults": 1, "max_results": 1}, "maxResults and max_results are the same parameter"),
    ({"path": "p", "lines": 10**30}, "lines: a number that large is not accepted"),
    ({"path": "p", "depth": 10**30}, "depth: a number that large is not accepted"),
    ({"path": "\ud800"}, "path: line 1, column 1 holds half of a surrogate pair, \\ud800, which is no text; send the whole character there, or leave the half out"),
    ({"path": "one\n\U0001f600 two\udcff"}, "path: line 2, column 6 holds half of a surrogate pair, \\udcff"),
    ({"path": "p", "\ud83d": 1}, "unknown parameter \\ud83d"),
    ({"path": "x" * (TEXT_LIMIT + 1)}, "path: 10,000,001 bytes are too many, send at most 10,000,000"),
    ({"path": "é" * 5_000_001}, "path: 10,000,002 bytes are too many"),
    ({"path": "p", "x" * 500: 1}, "unknown parameter " + "x" * 40 + "..."),
]
# fmt: on


@pytest.mark.parametrize(("sent", "said"), REFUSED)
def test_what_does_not_fit_is_refused_in_words(toolbox, sent, said):
    outcome = toolbox.call("look", sent, CALL)
    assert (outcome.failed, outcome.code) == (True, "INVALID_PARAMS")
    message, usage = outcome.text.split("\n")
    assert message.startswith("INVALID_PARAMS: ")
    assert said in message
    assert usage == (
        "look takes path (required), encoding, depth, lines, include_files, maxResults."
    )


# fmt: off
FOREIGN = [
    ("file_path", "path"), ("filePath", "path"), ("filename", "path"), ("uri", "path"),
    ("directory", "path"), ("Path", "path"), ("max-results", "maxResults"),
    ("limit", "lines"), ("level", "depth"), ("include_fils", "include_files"), ("encodng", "encoding"),
]
# fmt: on


@pytest.mark.parametrize(("sent", "meant"), FOREIGN)
def test_a_foreign_name_is_refused_with_the_right_one(toolbox, sent, meant):
    outcome = toolbox.call("look", {sent: "x"}, CALL)
    assert f"unknown parameter {sent}, did you mean {meant}?" in outcome.text


@pytest.mark.parametrize("written", ["include_files", "includeFiles"])
@pytest.mark.parametrize("most", ["maxResults", "max_results"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf8", "UTF-8", "UTF8"])
def test_names_and_words_are_understood_however_a_model_writes_them(
    toolbox, written, most, encoding
):
    sent = {"path": "p", written: False, most: 7, "encoding": encoding}
    assert json.loads(toolbox.call("look", sent, CALL).text) == ["p", "utf-8", 3, None, False, 7]


def test_a_list_and_the_names_in_it_are_taken_as_models_and_hosts_write_them(toolbox, engine):
    edit = {"oldString": "a", "new_string": "b", "replaceAll": True}
    sent_as = ([edit], edit, [json.dumps(edit)], json.dumps([edit]), json.dumps(edit))
    for sent in sent_as:
        assert not toolbox.call("change", {"path": "p", "edits": sent}, CALL).failed
    twice = [{"oldString": "a", "old_string": "c", "new_string": "b"}]
    assert toolbox.call("change", {"path": "p", "edits": twice}, CALL).code == "INVALID_PARAMS"
    assert engine.drafts == [("change", [("p", [("a", "b")], False)])] * len(sent_as)


def test_a_line_number_that_counts_from_1_is_not_taken_for_an_offset():
    with pytest.raises(InvalidParamsError) as error:
        read_file.parameters.check({"path": "p", "start_line": 5})
    assert "offset, which counts from 0" in error.value.message


def test_a_name_that_resembles_nothing_gets_no_suggestion(toolbox):
    outcome = toolbox.call("nothing", {"zzzz": 1}, CALL)
    assert outcome.text == ("INVALID_PARAMS: unknown parameter zzzz\nnothing takes no parameters.")


# fmt: off
NESTED = [
    ([{"oldText": "a", "new_string": "b"}], "unknown parameter edits[0].oldText, did you mean old_string?"),
    ([{"old_string": "a"}], "edits[0].new_string is missing"),
    ([{"old_string": "a", "new_string": 5}], "edits[0].new_string: 5 is not accepted, send a text"),
    ([5], "edits[0]: 5 is not accepted, send an object with old_string, new_string, replace_all"),
    ([], "edits: a list is not accepted, send a list of a length of at least 1"),
    ("[not json", 'edits: "[not json" is not accepted'),
    ("[" * 100_000, "is not accepted"),
    ([{"old_string": "a", "new_string": "x" * (TEXT_LIMIT + 1)}], "edits[0].new_string: 10,000,001 bytes"),
]
# fmt: on


@pytest.mark.parametrize(("edits", "said"), NESTED)
def test_nested_values_are_checked_and_named_by_their_place(toolbox, engine, edits, said):
    outcome = toolbox.call("change", {"path": "p", "edits": edits}, CALL)
    assert outcome.code == "INVALID_PARAMS"
    assert said in outcome.text
    assert engine.drafts == []


@pytest.mark.parametrize("name", ["createDirs", "create_dirs", "mkdir_p"])
def test_a_list_sent_as_text_and_every_spelling_are_taken(toolbox, engine, name):
    edits = json.dumps([{"old_string": "a", "new_string": "b"}])
    outcome = toolbox.call("change", {"path": "p", "edits": edits, name: True}, CALL)
    assert not outcome.failed
    assert engine.drafts == [("change", [("p", [("a", "b")], True)])]


def test_a_choice_of_types_is_said_in_words_and_once(toolbox):
    outcome = toolbox.call("remove", {"size": [1]}, CALL)
    assert outcome.text == (
        "INVALID_PARAMS: size: a list is not accepted, send a number\nremove takes size."
    )


# fmt: off
EXPECTED = [
    ({"const": "x", "type": "string"}, "x"),
    ({"type": "number", "maximum": 2}, "a number of at most 2"),
    ({"type": "string", "minLength": 8}, "a text of a length of at least 8"),
    ({"type": "array"}, "a list"),
]
# fmt: on


@pytest.mark.parametrize(("schema", "words"), EXPECTED)
def test_what_a_schema_allows_can_be_said(schema, words):
    assert expected(schema) == words


@given(st.dictionaries(st.text(max_size=12), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
), max_size=5))  # fmt: skip
def test_whatever_is_sent_is_taken_or_refused(sent):
    for one in TOOLS:
        try:
            one.parameters.check(sent)
        except InvalidParamsError as refused:
            refused.report().encode()


def test_bytes_are_answered_in_base64(toolbox):
    outcome = toolbox.call("look", {"path": "p", "encoding": "base64"}, CALL)
    assert outcome == CallResult(b64encode(b"\x00\xff").decode(), data=b"\x00\xff")


def test_a_change_answers_its_text_and_its_receipt(toolbox):
    edits = [{"old_string": "a", "new_string": "b"}]
    outcome = toolbox.call("change", {"path": "p", "edits": edits}, CALL)
    assert outcome.text == "Done: change p \\x80"
    assert outcome.receipt == {"status": "applied", "files": ["\\x80"]}


def test_an_answer_also_tells_what_the_caller_should_hear(toolbox, engine):
    engine.news_text = "Proposal c1 was rejected by a person."
    assert toolbox.call("nothing", {}, CALL).text == f"nothing\n\n{engine.news_text}"
    data = toolbox.call("look", {"path": "p", "encoding": "base64"}, CALL)
    assert data.text == b64encode(b"\x00\xff").decode()
    data.on_sent()
    assert engine.acknowledged == []


def test_an_answer_counts_as_heard_when_it_was_sent_and_not_before(toolbox, engine):
    engine.news_text = "one\ntwo"
    answer = toolbox.call("nothing", {}, CALL)
    refusal = toolbox.call("look", {}, CALL)
    assert refusal.failed
    assert engine.acknowledged == []
    for outcome in (answer, refusal):
        assert outcome.text.endswith("\n\none\ntwo")
        outcome.on_sent()
        assert engine.acknowledged == ["one", "two"]
        engine.acknowledged.clear()


def test_a_journal_that_cannot_be_asked_does_not_hide_what_was_done(toolbox, engine):
    engine.news_text = None
    edits = [{"old_string": "a", "new_string": "b"}]
    assert not toolbox.call("change", {"path": "p", "edits": edits}, CALL).failed


def test_names_that_are_not_utf_8_are_sent_in_escapes(toolbox):
    assert toolbox.call("look", {"path": "odd"}, CALL).text == "name \\xff"


def test_an_error_of_ours_is_its_report(toolbox):
    outcome = toolbox.call("look", {"path": "missing"}, CALL)
    assert outcome.text == "NOT_FOUND: missing: no such file\nLook elsewhere."
    assert (outcome.failed, outcome.code, outcome.receipt) == (True, "NOT_FOUND", None)


def test_any_other_error_is_logged_and_not_told(toolbox, caplog):
    with caplog.at_level(logging.ERROR):
        outcome = toolbox.call("look", {"path": "broken"}, CALL)
    assert outcome.text.startswith("INTERNAL: look failed unexpectedly")
    assert "secret" not in outcome.text
    assert (outcome.failed, outcome.code) == (True, "INTERNAL")
    assert "INTERNAL" not in CODES
    assert "/home/somebody/secret" in caplog.text


# fmt: off
SHOWN = [
    ({}, "look change remove nothing"),
    ({"tier": "essential"}, "look"),
    ({"tier": "standard"}, "look change"),
    ({"max_level": "safe"}, "look nothing"),
    ({"max_level": "moderate"}, "look change nothing"),
    ({"read_only": True}, "look nothing"),
    ({"read_only": True, "tier": "standard"}, "look"),
]
# fmt: on


@pytest.mark.parametrize(("limits", "names"), SHOWN)
def test_tier_level_and_read_only_choose_what_is_shown(engine, limits, names):
    assert [one.name for one in Toolset(TOOLS, engine, **limits).tools] == names.split()


def test_a_tool_that_is_not_shown_does_not_exist(engine):
    with pytest.raises(UnknownToolError, match="known: look, nothing") as caught:
        Toolset(TOOLS, engine, read_only=True).call("change", {}, CALL)
    assert caught.value.known == ("look", "nothing")


def test_an_empty_box_says_so(engine):
    with pytest.raises(UnknownToolError, match="known: none"):
        Toolset((), engine).call("look", {}, CALL)


def test_two_tools_cannot_share_a_name(engine):
    with pytest.raises(ValueError, match="share a name"):
        Toolset((look, look), engine)


def test_a_call_needs_only_a_session():
    CALL.progress(1, "x")
    assert not CALL.cancelled()


def test_a_tool_runs_without_a_box():
    assert json.loads(look.run(None, {"path": "p"}))[0] == "p"


def test_each_call_is_recorded_with_what_it_named_and_how_it_ended():
    engine = Engine()
    tools = Toolset(TOOLS, engine)
    tools.call("look", {"path": "a.txt"}, CALL)
    tools.call("look", {"nonsense": 1}, CALL)
    tools.call("nothing", {}, CALL)
    assert engine.recorded == [
        ("look", "a.txt", "OK"),
        ("look", "", "INVALID_PARAMS"),
        ("nothing", "", "OK"),
    ]
