"""The texts of the Tinker cookbook's trajectories: in the summaries (schema version 3), or in `*_logtree.json`.

A logtree is {"title", "started_at", "root"}, a node {"tag", "attrs", "children" (nodes and escaped texts), "data"}
(thinking-machines-lab/tinker-cookbook, utils/logtree.py and rl/rollouts.py at 025e706; messages as `data` at 08ee6ea).
The section of a group has one "do_single_rollout" per trajectory, in order, with the messages, and below "Trajectory
<n> Episode" the lengths of each turn. It does not have the number of the group in the summaries, which leave out
groups; so a group is found by the lengths of all its turns, if only one group has these.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rollbook.system.guard import tolerating

Lengths = tuple[tuple[tuple[int, int], ...], ...]
"""(ob_len, ac_len) of each turn of each trajectory of a group."""

_EPISODE = re.compile(r"Trajectory (\d+) Episode")


def conversation_of(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The messages in a summary of schema version 3; [] in older ones."""
    whole = summary.get("conversation")
    if not isinstance(whole, list):
        steps = summary.get("steps")
        logs = [step.get("logs") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
        whole = _joined(log.get("_conversation") for log in logs if isinstance(log, dict))
    return _messages(whole)


def transcripts(path: Path) -> dict[Lengths, list[list[dict[str, Any]]]]:
    """The messages of each trajectory of the groups of a logtree, by the lengths of their turns.

    Groups that several have the lengths of, or whose transcripts do not belong to one trajectory each, are missing.
    """
    with tolerating(OSError, ValueError, RecursionError) as missed:
        tree = json.loads(path.read_text("utf-8", "replace"))
    if missed or not isinstance(tree, dict):
        return {}
    found: dict[Lengths, list[list[dict[str, Any]]]] = {}
    twice: set[Lengths] = set()
    for group in _sections(tree.get("root"), "do_group_rollout"):
        episodes = {
            int(number[1]): _lengths(node) for node, title in _titled(group) if (number := _EPISODE.fullmatch(title))
        }
        lengths = tuple(episodes.get(n, ()) for n in range(len(episodes)))
        talks = [_messages(_joined(_conversations(node))) for node in _sections(group, "do_single_rollout")]
        if lengths in found:
            twice.add(lengths)
        if lengths and len(talks) == len(lengths) and any(talks):
            found[lengths] = talks
    return {lengths: talks for lengths, talks in found.items() if lengths not in twice}


def _joined(parts: Iterable[object]) -> list[Any]:
    """Join parts into one conversation; a part that begins with all earlier messages continues them."""
    whole: list[Any] = []
    for part in parts:
        if isinstance(part, list):
            whole = part if part[: len(whole)] == whole else [*whole, *part]
    return whole


def _messages(listed: object) -> list[dict[str, Any]]:
    messages = [dict(message) for message in listed if isinstance(message, dict)] if isinstance(listed, list) else []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            texts = [_part(part) for part in content]
            message["content"] = "\n".join(text for text in texts if text)
    return messages


def _part(part: object) -> str:
    if isinstance(part, dict):
        texts = [part[name] for name in ("text", "thinking") if isinstance(part.get(name), str)]
        return texts[0] if texts else json.dumps(part, ensure_ascii=False, default=str)
    return str(part)


def _nodes(node: object) -> Iterator[dict[str, Any]]:
    """A node and all below it, in order."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            children = one.get("children")
            waiting += reversed(children) if isinstance(children, list) else []


def _titled(node: object) -> Iterator[tuple[dict[str, Any], str]]:
    """Each section with its title."""
    for one in _nodes(node):
        children = one.get("children")
        if one.get("tag") == "section" and isinstance(children, list) and children:
            yield one, _text(children[0])


def _sections(node: object, title: str) -> Iterator[dict[str, Any]]:
    return (one for one, own in _titled(node) if own == title)


def _text(node: object) -> str:
    if isinstance(node, str):
        return html.unescape(node)
    children = node.get("children") if isinstance(node, dict) else None
    return "".join(map(_text, children)) if isinstance(children, list) else ""


def _lengths(episode: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    lengths = []
    for turn, title in _titled(episode):
        rows = [
            one["children"] for one in _nodes(turn) if one.get("tag") == "tr" and len(one.get("children") or ()) == 2
        ]
        cells = {_text(name): _text(value) for name, value in rows}
        if title.startswith("Turn ") and cells.get("ob_len", "").isdigit() and cells.get("ac_len", "").isdigit():
            lengths.append((int(cells["ob_len"]), int(cells["ac_len"])))
    return tuple(lengths)


def _conversations(node: dict[str, Any]) -> Iterator[object]:
    for one in _nodes(node):
        data = one.get("data")
        if isinstance(data, dict) and data.get("type") == "conversation":
            yield data.get("messages")
