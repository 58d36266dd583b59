"""Prompts and completions as text: they are strings, or conversations (lists of messages)."""

from __future__ import annotations

import json

__all__ = ["text_of"]


def text_of(value: object) -> str:
    """A string as it is; one message as its content; several as lines `role: content`.

    Pictures are left out, calls of tools are JSON, and what is no conversation is JSON too. Equal for a conversation
    in memory and for the same one read back from Parquet, where every message has the fields of all others.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)) or not all(isinstance(message, dict) for message in value):
        return json.dumps(value, ensure_ascii=False, default=str)
    if len(value) == 1 and not value[0].get("tool_calls"):
        return _content(value[0].get("content"))
    return "\n".join(_line(message) for message in value)


def _line(message: dict[str, object]) -> str:
    calls = message.get("tool_calls")
    said = _content(message.get("content"))
    if calls:
        said += json.dumps(_without_none(calls), ensure_ascii=False, default=str)
    return f"{message.get('role') or ''}: {said}"


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
