"""Prompts and completions as text: they are strings, or conversations (lists of messages)."""

from __future__ import annotations

import ast
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def is_conversation(value: object) -> bool:
    """Whether a prompt or completion is a list of messages."""
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(message, dict) for message in value)


def text_of(value: object) -> str:
    """A string unchanged; one message as its content; several as lines `role: content`.

    Images are left out; tool calls and anything that is not a conversation become JSON. The text is the same for a
    conversation in memory and for one read back from Parquet, where every message has the fields of all others.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)) or not all(isinstance(message, dict) for message in value):
        return json.dumps(value, ensure_ascii=False, default=str)
    if len(value) == 1 and not value[0].get("tool_calls"):
        return _content(value[0].get("content"))
    return "\n".join(_line(message) for message in value)


def turns_of(value: Any, lists: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages of a completion, each with its part of the token lists.

    Tokens of the policy and of tools must alternate in the mask as their messages do. Otherwise the lists stay whole,
    with the last message of the assistant.
    """
    messages = value if is_conversation(value) else [{"role": "assistant", "content": text_of(value)}]
    turns: list[dict[str, Any]] = []
    for message in messages:
        calls = message.get("tool_calls")
        turn = {"role": message.get("role"), "content": _content(message.get("content"))}
        more = {
            "name": message.get("name"),
            "tool_calls": None if calls is None else _without_none(calls),
            "error": _failure(_content(message.get("content"))) if turn["role"] == "tool" else None,
        }
        turns.append({**turn, **{name: cell for name, cell in more.items() if cell is not None}})
    mask = lists.get("mask")
    starts = [0, *(i for i in range(1, len(mask)) if mask[i] != mask[i - 1])] if mask is not None and len(mask) else []
    firsts = [i for i, turn in enumerate(turns) if not i or turn["role"] != turns[i - 1]["role"]]
    spoken = [turns[i]["role"] == "assistant" for i in firsts]
    if mask is not None and spoken == [bool(mask[start]) for start in starts]:
        for i, start, end in zip(firsts, starts, [*starts[1:], len(mask)], strict=True):
            turns[i].update({name: cells[start:end] for name, cells in lists.items()})
    elif lists:
        last = max((i for i, turn in enumerate(turns) if turn["role"] == "assistant"), default=None)
        if last is not None:
            turns[last].update(lists)
    return turns


def _failure(answer: str) -> str | None:
    """What the trainer answers for a tool that raised: the text of {"error": why}; None for other answers."""
    start, end = "{'error': ", "}"
    if not (answer.startswith(start) and answer.endswith(end)):
        return None
    try:
        parsed = ast.literal_eval(answer[len(start) : -len(end)])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return parsed if isinstance(parsed, str) else None


def _line(message: dict[str, object]) -> str:
    calls = message.get("tool_calls")
    text = _content(message.get("content"))
    if calls:
        text += json.dumps(_without_none(calls), ensure_ascii=False, default=str)
    return f"{message.get('role') or ''}: {text}"


def _content(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):  # blocks: {"type": "text", "text": …}, {"type": "image", …}
        texts = [block.get("text") if isinstance(block, dict) else block for block in content]
        return "".join(str(text) for text in texts if text is not None)
    return json.dumps(content, ensure_ascii=False, default=str)


def _without_none(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    if isinstance(value, (list, tuple)):
        return [_without_none(part) for part in value]
    return value
