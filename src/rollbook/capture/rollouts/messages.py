"""Messages of a conversation as plain dicts, whoever made them: objects of a client library, parts with pictures."""

from __future__ import annotations

from rollbook.capture.batch_columns import is_column
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_FIELDS = ("role", "content", "tool_calls", "tool_call_id", "name", "reasoning_content", "refusal")
"""Fields of a message that are taken from an object that cannot list its own."""


def conversation(messages: object) -> tuple[object, list[dict[str, Any]]]:
    """(the task, the turns after it) of a list of messages; a text is one turn of the assistant.

    The task is the messages before the first one of the assistant; a single message becomes its text.
    """
    if isinstance(messages, (str, bytes)) or not is_column(messages):
        return None, turns_of(messages)
    listed = turns_of(messages)
    first = next((n for n, message in enumerate(listed) if message.get("role") == "assistant"), len(listed))
    before = listed[:first]
    plain_one = len(before) == 1 and isinstance(before[0].get("content"), str) and "parts" not in before[0]
    task = before[0]["content"] if plain_one else [dict(message) for message in before] or None
    return task, listed[first:]


def turns_of(completion: object) -> list[dict[str, Any]]:
    """A text, a message or a list of messages, as messages. The answer of a tool has the name of the tool."""
    if isinstance(completion, (str, bytes)):
        return [{"role": "assistant", "content": completion}]
    if not is_column(completion):
        return [as_message(completion) if _is_message(completion) else {"role": "assistant", "content": completion}]
    listed: list[Any] = completion if type(completion) is list else list(completion)  # type: ignore[call-overload]
    messages = [as_message(message) for message in listed]
    tools = {
        call.get("id"): call["function"].get("name")
        for message in messages
        for call in message.get("tool_calls") or ()
        if type(call) is dict and type(call.get("function")) is dict
    }
    for n, message in enumerate(messages):
        tool = tools.get(message.get("tool_call_id")) if tools and not message.get("name") else None
        if tool is not None:
            messages[n] = {**message, "name": tool}
    return messages


def task_of(prompt: Any) -> Any:
    """A prompt: a text, or messages as `as_message` has them."""
    if type(prompt) is not list and type(prompt) is not tuple:
        return prompt
    return [message if isinstance(message, str) else as_message(message) for message in prompt]


def as_message(message: Any) -> Any:
    """A message as a dict with a text for its content, and its calls as plain data.

    Args:
      message: a dict; an object of a client library, such as OpenAI's `ChatCompletionMessage` or a `Choice` that holds
        one; a text, which is the assistant's. Anything else is kept as its printed form.
    """
    if type(message) is not dict:
        message = _fields_of(message)
    content, calls = message.get("content"), message.get("tool_calls")
    if type(content) is list or type(content) is tuple:
        message = {**message, "content": _text_of(content)}
        if any(type(part) is dict and part.get("type") not in _TEXTS for part in content):
            message["parts"] = list(content)
    if calls and is_column(calls) and any(type(call) is not dict for call in calls):
        message = {**message, "tool_calls": [_dumped(call) or call for call in calls]}
    return message


_TEXTS = ("text", "input_text", "output_text")


def _text_of(parts: Iterable[Any]) -> str:
    """The text of a message in parts; for a picture, a sound or a file what it is."""
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif hasattr(part, "get"):
            text = part.get("text")
            texts.append(text if isinstance(text, str) else f"[{part.get('type') or 'part'}]")
        else:
            texts.append(str(part))
    return "\n".join(texts)


def _fields_of(message: Any) -> dict[str, Any]:
    if isinstance(message, (str, bytes)):
        return {"role": "assistant", "content": message}
    if hasattr(message, "get") and hasattr(message, "keys"):
        return dict(message)
    inner = getattr(message, "message", None)
    if _is_message(inner):
        reason = getattr(message, "finish_reason", None)
        return {**as_message(inner), **({"finish_reason": reason} if isinstance(reason, str) else {})}
    dumped = _dumped(message)
    if dumped is not None:
        return dumped
    given = {name: getattr(message, name, None) for name in _FIELDS}
    if given["role"] is None:
        return {"role": "unknown", "content": repr(message)}
    return {name: value for name, value in given.items() if value is not None}


def _is_message(value: Any) -> bool:
    """Whether a value is a message, or a choice of a model that holds one."""
    if hasattr(value, "get"):
        return "role" in value
    return hasattr(value, "role") or (hasattr(value, "message") and hasattr(value.message, "role"))


def _dumped(value: Any) -> dict[str, Any] | None:
    """A model of pydantic as a dict without what it leaves open; None for anything else."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        with tolerating(Exception):
            dumped = dump(exclude_none=True)
            return dumped if type(dumped) is dict else None
    return None


def rendered(messages: Iterable[Any]) -> str:
    """Messages as one text, one paragraph each."""
    parts = []
    for message in messages:
        if hasattr(message, "get"):
            content = message.get("content")
            parts.append(f"{message.get('role')}: {content if isinstance(content, str) else repr(content)}")
        else:
            parts.append(str(message))
    return "\n\n".join(parts)
