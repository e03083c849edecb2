"""What agent programs say to four kinds of model servers, and how each wants its answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["DIALECTS", "Answer", "Call", "Dialect", "Heard", "Reply", "dialect_of"]

Call = tuple[str, dict[str, object]]
"""A tool's name and its arguments."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered, as the agent reported it to the model."""

    tool: str
    text: str


@dataclass(frozen=True, slots=True)
class Heard:
    """A request, whatever its dialect.

    Attributes:
        tools: Names of the tools that the model may call.
        turns: What people, tools and the agent itself said, in order: a text, or a tool's answer.
    """

    tools: tuple[str, ...]
    turns: tuple[str | Answer, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says: calls of tools, several to be made at once, or a sentence.

    Attributes:
        number: How much was said before.  It makes the ids, which no two answers of a conversation
            may share: agents take those that do for parts of one.
        calls: Empty for a sentence.
    """

    number: int
    calls: tuple[Call, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One kind of server.

    Attributes:
        ending: How the path of a request ends, without its query.
        hear: A request's body.
        say: The body of an answer in one piece.
        stream: The events of an answer in pieces: name (or none) and data.
    """

    name: str
    ending: str
    hear: Callable[[dict[str, Any]], Heard]
    say: Callable[[Reply], dict[str, Any]]
    stream: Callable[[Reply], Iterator[tuple[str, str]]]


def dialect_of(path: str) -> Dialect | None:
    """The dialect that a request's path belongs to."""
    plain = path.partition("?")[0]
    return next((one for one in DIALECTS if plain.endswith(one.ending)), None)


def _flat(content: Any) -> str:
    """The text in a message, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    known = [text for text in texts if isinstance(text, str)]
    return "\n".join(known) if known else json.dumps(content, ensure_ascii=False)


# -- OpenAI's chat completions ----------------------------------------------------------------


def _hear_chat(request: dict[str, Any]) -> Heard:
    names: dict[str, str] = {}
    turns: list[str | Answer] = []
    for message in request.get("messages", ()):
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
        if message["role"] == "tool":
            called = message.get("tool_call_id", "")
            # An agent may have made a call itself, to tell how a command in the background ended.
            if called.startswith("call_"):
                turns.append(Answer(names.get(called, ""), _flat(message.get("content"))))
        elif message["role"] == "user":
            turns.append(_flat(message.get("content")))
    tools = [one["function"]["name"] for one in request.get("tools") or () if "function" in one]
    return Heard(tuple(tools), tuple(turns))


def _chat_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": f"call_{reply.number + index}",
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps(arguments)},
        }
        for index, (tool, arguments) in enumerate(reply.calls)
    ]


_CHAT_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _say_chat(reply: Reply) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.calls:
        message["tool_calls"] = _chat_calls(reply)
    reason = "tool_calls" if reply.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**_chat_head(reply, "chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}


def _chat_head(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": 1, "model": "scripted"}


def _stream_chat(reply: Reply) -> Iterator[tuple[str, str]]:
    delta: dict[str, Any] = {"role": "assistant", "content": reply.text}
    if reply.calls:
        delta = {"role": "assistant", "content": None, "tool_calls": _chat_calls(reply)}
    reason = "tool_calls" if reply.calls else "stop"
    head = _chat_head(reply, "chat.completion.chunk")
    first = {"index": 0, "delta": delta, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": reason}
    yield "", json.dumps({**head, "choices": [first]})
    yield "", json.dumps({**head, "choices": [last], "usage": _CHAT_USAGE})
    yield "", "[DONE]"


# -- Anthropic's messages ---------------------------------------------------------------------


def _hear_messages(request: dict[str, Any]) -> Heard:
    names: dict[str, str] = {}
    turns: list[str | Answer] = []
    for message in request.get("messages", ()):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks or ():
            if block["type"] == "tool_use":
                names[block["id"]] = block["name"]
            elif block["type"] == "tool_result":
                name = names.get(block["tool_use_id"], "")
                turns.append(Answer(name, _flat(block.get("content", ""))))
            elif block["type"] == "text" and message["role"] == "user":
                turns.append(block["text"])
    return Heard(tuple(one["name"] for one in request.get("tools") or ()), tuple(turns))


_MESSAGE_USAGE = {"input_tokens": 1, "output_tokens": 1}


def _message_blocks(reply: Reply) -> list[dict[str, Any]]:
    return [
        {"type": "tool_use", "id": f"toolu_{reply.number + index}", "name": tool, "input": given}
        for index, (tool, given) in enumerate(reply.calls)
    ] or [{"type": "text", "text": reply.text}]


def _message_head(
    reply: Reply, content: list[dict[str, Any]], reason: str | None
) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.number}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": _MESSAGE_USAGE,
    }


def _say_messages(reply: Reply) -> dict[str, Any]:
    return _message_head(reply, _message_blocks(reply), "tool_use" if reply.calls else "end_turn")


def _stream_messages(reply: Reply) -> Iterator[tuple[str, str]]:
    def event(kind: str, **more: object) -> tuple[str, str]:
        return kind, json.dumps({"type": kind, **more})

    yield event("message_start", message=_message_head(reply, [], None))
    for index, block in enumerate(_message_blocks(reply)):
        if reply.calls:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            empty = {**block, "input": {}}
        else:
            delta, empty = {"type": "text_delta", "text": reply.text}, {**block, "text": ""}
        yield event("content_block_start", index=index, content_block=empty)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    reason = "tool_use" if reply.calls else "end_turn"
    stopped = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=stopped, usage=_MESSAGE_USAGE)
    yield event("message_stop")


# -- Gemini's generateContent -----------------------------------------------------------------


def _hear_contents(request: dict[str, Any]) -> Heard:
    tools = [
        declaration["name"]
        for group in request.get("tools") or ()
        for declaration in group.get("functionDeclarations", ())
    ]
    turns: list[str | Answer] = []
    for content in request.get("contents", ()):
        for part in content.get("parts", ()):
            if "functionResponse" in part:
                said = part["functionResponse"]
                text = json.dumps(said["response"], ensure_ascii=False)
                turns.append(Answer(said["name"], text))
            elif content.get("role") == "user" and "text" in part:
                turns.append(part["text"])
    return Heard(tuple(tools), tuple(turns))


def _say_contents(reply: Reply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [
        {"functionCall": {"name": tool, "args": arguments}} for tool, arguments in reply.calls
    ]
    content = {"role": "model", "parts": parts or [{"text": reply.text}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage}


def _stream_contents(reply: Reply) -> Iterator[tuple[str, str]]:
    yield "", json.dumps(_say_contents(reply))


# -- OpenAI's responses -----------------------------------------------------------------------


def _hear_responses(request: dict[str, Any]) -> Heard:
    names: dict[str, str] = {}
    turns: list[str | Answer] = []
    for item in request.get("input", ()):
        if item["type"] in ("function_call", "custom_tool_call"):
            names[item["call_id"]] = _in_space(item.get("namespace"), item["name"])
        elif item["type"] in ("function_call_output", "custom_tool_call_output"):
            turns.append(Answer(names.get(item["call_id"], ""), _flat(item["output"])))
        elif item["type"] == "message" and item["role"] == "user":
            turns.append(_flat(item["content"]))
    tools: list[str] = []
    for tool in request.get("tools") or ():
        inner = tool.get("tools") if tool["type"] == "namespace" else None
        tools += [_in_space(tool["name"], one["name"]) for one in inner or ()]
        tools += [tool["name"]] if tool["type"] in ("function", "custom") else []
    return Heard(tuple(tools), tuple(turns))


def _in_space(namespace: str | None, name: str) -> str:
    """A tool's name in a script: one of a server stands in the server's namespace, with a dot."""
    return f"{namespace}.{name}" if namespace else name


def _response_items(reply: Reply) -> list[dict[str, Any]]:
    if not reply.calls:
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        head = {"type": "message", "id": f"msg_{reply.number}", "role": "assistant"}
        return [{**head, "content": [text]}]
    return [_response_call(reply.number + index, *one) for index, one in enumerate(reply.calls)]


def _response_call(number: int, tool: str, arguments: dict[str, object]) -> dict[str, Any]:
    if [*arguments] == ["input"]:
        # A tool of free form: its input is no object.
        head = {"type": "custom_tool_call", "id": f"ctc_{number}", "name": tool}
        return {**head, "call_id": f"call_{number}", **arguments}
    namespace, dot, name = tool.rpartition(".")
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": json.dumps(arguments),
        **({"namespace": namespace} if dot else {}),
    }


def _say_responses(reply: Reply) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    head = {"id": f"resp_{reply.number}", "object": "response", "status": "completed"}
    return {**head, "output": _response_items(reply), "usage": usage}


def _stream_responses(reply: Reply) -> Iterator[tuple[str, str]]:
    def event(kind: str, **more: object) -> tuple[str, str]:
        return kind, json.dumps({"type": kind, **more})

    yield event("response.created", response={"id": f"resp_{reply.number}"})
    for index, item in enumerate(_response_items(reply)):
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=_say_responses(reply))


DIALECTS = (
    Dialect("openai", "/chat/completions", _hear_chat, _say_chat, _stream_chat),
    Dialect("openai", "/responses", _hear_responses, _say_responses, _stream_responses),
    Dialect("anthropic", "/messages", _hear_messages, _say_messages, _stream_messages),
    Dialect("gemini", ":generateContent", _hear_contents, _say_contents, _stream_contents),
    Dialect("gemini", ":streamGenerateContent", _hear_contents, _say_contents, _stream_contents),
)
"""Every kind of server that the agents here speak to."""
