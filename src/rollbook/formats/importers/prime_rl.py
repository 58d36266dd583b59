"""prime-rl's episodes: `traces.jsonl` of each step, later annotations of them, and the trainer's token exports.

An episode is one line, as serialized by verifiers (PrimeIntellect-ai/verifiers at 00eee6c, verifiers/v1: episode.py
`Episode.to_record`, trace.py `Trace`, graph.py `MessageNode`; also 0.4.0 on PyPI), in
`traces/step_<n>/{train,eval}/traces.jsonl`, or in `rollouts/step_<n>/{train,eval}/{all,effective}/traces.jsonl` of
earlier versions (PrimeIntellect-ai/prime-rl at 0b77f23, src/prime_rl/monitors/file.py). Next to the first are
`annotations/{orchestrator,trainer}.jsonl` with data that became known later, one line per trace
(src/prime_rl/utils/trace_updates.py). `token_exports/step_<n>/rank_<r>.jsonl` has the trainer's values for each token
(src/prime_rl/trainer/rl/token_export.py, schema_version 1). It names no trace, so an export belongs to the trace that
has its tokens.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollbook.formats.importers._rollouts import TABLES, floats, records_of, rows_of, trainings, whole, with_metrics
from rollbook.protocols import ForeignRun, Row

_STEP = re.compile(r"step_(\d+)")
_CUT_SHORT = frozenset(("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed"))
_FROM_TRAINER = {"trainer_logprobs": "trainer_logprobs", "entropy": "entropy", "advantages": "advantages"}
_ON_NODES = {"trainer_logprobs": "trainer_logprobs", "entropy": "entropies", "advantages": "advantages"}
"""The same in the nodes of verifiers 0.4, one for each sampled token; an export has them for all tokens."""


class PrimeRL:
    """prime-rl's episodes as rollouts, a trace each: messages, tokens, rewards, versions, errors, and its fates.

    A rollout's gradient_step is the step of its folder, a fate's is the step of the training. An episode without a
    trace is a failed rollout. Traces without a record of their training have no fate.
    """

    name = "prime_rl"
    what = "prime-rl episodes"
    files = ("traces.jsonl",)
    includes = ("jsonl",)
    gathers = True

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_files(path, "traces.jsonl"))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each training (the folder above `rollouts`, `traces`, `token_exports`), with its metrics.jsonl."""
        path = path.absolute()
        exports = _files(path, "rank_*.jsonl")
        for name, (folder, files) in trainings(_files(path, "traces.jsonl"), _training_of).items():
            own = [file for file in exports if _training_of(file) == folder]
            annotations = [file for traces in files for file in (traces.parent / "annotations").glob("*.jsonl")]
            run = ForeignRun(name or "prime_rl", files=[*files, *annotations, *own], tables=TABLES)
            run.rows = functools.partial(self._rows, files, own, run)
            yield with_metrics(run, folder)

    def _rows(self, files: list[Path], exports: list[Path], run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        tokens = _Exports(exports, run)
        yield from rows_of(one for file in files for one in _rollouts(file, files, tokens, run))
        if tokens.left():
            run.leave_out("token exports of no trace", tokens.left())


class _Exports:
    """The trainer's exports, by their tokens."""

    def __init__(self, files: list[Path], run: ForeignRun) -> None:
        self._line_of: dict[bytes, tuple[Path, int]] = {}
        self._run = run
        for file in files:
            for number, record in enumerate(_lines(file, run)):
                ids = floats(record.get("token_ids"))
                if ids:
                    self._line_of[_print(ids)] = (file, number)
        self._held: tuple[Path | None, list[dict[str, Any]]] = (None, [])
        self._found: set[bytes] = set()

    def of(self, ids: list[int]) -> dict[str, Any]:
        """The export of a sequence; {} if there is none."""
        key = _print(ids)
        file, number = self._line_of.get(key, (None, 0))
        if file is None:
            return {}
        self._found.add(key)
        if self._held[0] != file:
            self._held = (file, list(_lines(file, self._run)))
        return self._held[1][number]

    def left(self) -> int:
        """The number of exports that belong to no requested trace."""
        return len(self._line_of) - len(self._found)


def _rollouts(file: Path, files: list[Path], exports: _Exports, run: ForeignRun) -> Iterator[dict[str, Any]]:
    parts = file.parent.parts
    if parts[-1] == "effective" and file.parent.parent / "all" / file.name in files:
        return  # the same traces again: the other file says which of them are used
    mode = "eval" if "eval" in parts[-2:] else "train"
    steps = [int(match[1]) for part in parts if (match := _STEP.fullmatch(part))]
    step = steps[-1] if steps else 0
    later = _annotations(file.parent, run)
    if parts[-1] == "all":
        for record in _lines(file.parent.parent / "effective" / file.name, run):
            for trace in _dicts(record.get("traces")):
                later.setdefault(str(trace.get("id")), []).append({"info": {mode: {"effective": True}}})
    for number, record in enumerate(_lines(file, run)):
        traces = _dicts(record.get("traces"))
        if "traces" not in record and "nodes" in record:
            traces = [record]
        for trace in traces:
            yield _of_trace(trace, record, mode, step, later.get(str(trace.get("id")), []), exports)
        if not traces:
            yield _without_trace(record, mode, step, number)


def _of_trace(
    trace: dict[str, Any], episode: dict[str, Any], mode: str, step: int, later: list[dict[str, Any]], exports: _Exports
) -> dict[str, Any]:
    nodes = _dicts(trace.get("nodes"))
    first = next((n for n, node in enumerate(nodes) if node.get("sampled")), len(nodes))
    tokens = _tokens(nodes, first, exports)
    info = _merged([trace.get("info"), *(update.get("info") for update in later)])
    own = _dict(info.get(mode))
    trained = whole(own.get("trained_at_step"))
    used = mode == "train" and bool(own.get("effective"))
    policy = _dict(_dict(_dict(episode.get("run")).get("work")).get("policy"))
    version = whole(policy.get("start"))
    prompt = [_dict(node.get("message")) for node in nodes[:first]]
    turns = _turns(nodes, first, _dicts(trace.get("calls")))
    sampled = sum(sum(part["mask"] or ()) for part in tokens)
    return {
        **_identity(episode, mode, step, str(trace.get("id"))),
        "time": _time(_dict(trace.get("timing")).get("start")),
        "clocks": {"gradient_step": step, **({} if version is None else {"policy_version": version})},
        "prompt": "\n\n".join(f"{part.get('role')}: {_text(part.get('content'))}" for part in prompt) or None,
        "turns": turns,
        "tokens": tokens,
        "columns": {
            **_shared(episode, mode, step),
            **_outcome(trace, turns),
            "policy_version_end": whole(policy.get("end")),
            "prompt_tokens": sum(len(floats(node.get("token_ids")) or ()) for node in nodes[:first]) or None,
            "sampled_tokens": sampled,
            "other_tokens": sum(len(part["ids"] or ()) for part in tokens) - sampled,
        },
        "fate": {"used": True, "advantage": info.get("advantage"), "trained_version": trained} if used else None,
        "fate_clocks": {"gradient_step": step if trained is None else trained},
    }


def _turns(nodes: list[dict[str, Any]], first: int, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A turn for each node from the first sampled one on."""
    by_node = {call.get("node"): call for call in calls}
    turns = []
    for index, node in enumerate(nodes[first:], first):
        message, call, parent = _dict(node.get("message")), by_node.get(index, {}), whole(node.get("parent"))
        turns.append(
            {
                "role": message.get("role"),
                "name": message.get("name"),
                "text": _text(message.get("content")),
                "calls": message.get("tool_calls") if isinstance(message.get("tool_calls"), list) else None,
                "tokens": len(floats(node.get("token_ids")) or ()) or None,
                "trained": bool(node.get("sampled")),
                "parent_turn": None if parent is None or parent in (index - 1, first - 1) else max(0, parent - first),
                "seconds": _span(call.get("time")),
                "finish_reason": call.get("finish_reason") or node.get("finish_reason"),
                "error": _error(call.get("error")),
            }
        )
    return turns


def _tokens(nodes: list[dict[str, Any]], first: int, exports: _Exports) -> list[dict[str, Any]]:
    """The tokens of the same nodes; `first` of each is its index among the tokens behind the prompt."""
    exported, tokens, at = _exported(nodes, exports), [], 0
    for index, node in enumerate(nodes[first:], first):
        ids, mask = floats(node.get("token_ids")) or [], floats(node.get("mask")) or []
        tokens.append(
            {
                "turn": index - first,
                "first": at,
                "ids": ids or None,
                "sampler_logprobs": _spread(floats(node.get("logprobs")), mask),
                "mask": [int(bool(cell)) for cell in mask] or None,
                **{column: _spread(floats(node.get(name)), mask) for column, name in _ON_NODES.items()},
                **exported.get(index, {}),
            }
        )
        at += len(ids)
    return tokens


def _outcome(trace: dict[str, Any], turns: list[dict[str, Any]]) -> dict[str, Any]:
    """How a trace ended: columns of its rollout."""
    stop, timing = trace.get("stop_condition"), _dict(trace.get("timing"))
    agent = _dict(timing.get("agent"))
    cut = stop in _CUT_SHORT or (bool(turns) and turns[-1]["finish_reason"] == "length")
    error = next((_error(error) for error in reversed(_dicts(trace.get("errors")))), None)
    rewards = {name: cell for name, cell in _dict(trace.get("rewards")).items() if isinstance(cell, dict)}
    values = {name: cell.get("score", 0) * cell.get("weight", 1.0) for name, cell in rewards.items()}
    return {
        "agent": _dict(trace.get("agent")).get("name"),
        "status": "failed" if error is not None else "truncated" if cut else "completed",
        "stop_reason": stop,
        "error": error,
        "item": next((turn["text"] for turn in reversed(turns) if turn["role"] == "assistant"), None),
        "reward": sum(values.values()) if values else None,
        **{f"rewards/{name}": cell for name, cell in values.items()},
        **{f"metrics/{name}": cell for name, cell in _dict(trace.get("metrics")).items()},
        "tool_calls": sum(len(turn["calls"] or ()) for turn in turns) or None,
        "seconds/model": _dict(agent.get("model")).get("duration"),
        "seconds/tools": _dict(agent.get("harness")).get("duration"),
        "seconds/reward": _span(timing.get("scoring")),
        "started": timing.get("start"),
    }


def _exported(nodes: list[dict[str, Any]], exports: _Exports) -> dict[int, dict[str, Any]]:
    """{node: the trainer's values for its tokens}, for the branch that ends in the last node."""
    path, index = [], len(nodes) - 1
    while 0 <= index < len(nodes) and index not in path:
        path.append(index)
        index = -1 if (parent := whole(nodes[index].get("parent"))) is None else parent
    ids = {index: floats(nodes[index].get("token_ids")) or [] for index in reversed(path)}
    export = exports.of([cell for own in ids.values() for cell in own]) if any(ids.values()) else {}
    found, start = {}, 0
    for index, own in ids.items():
        stop = start + len(own)
        found[index] = {
            column: values[start:stop] for name, column in _FROM_TRAINER.items() if (values := floats(export.get(name)))
        }
        start = stop
    return found


def _without_trace(episode: dict[str, Any], mode: str, step: int, number: int) -> dict[str, Any]:
    """A rollout for an episode that failed before it had a trace."""
    error = next((_error(error) for error in reversed(_dicts(episode.get("errors")))), None)
    return {
        **_identity(episode, mode, step, f"{number}"),
        "time": 0.0,
        "clocks": {"gradient_step": step},
        "prompt": None,
        "turns": [],
        "columns": {**_shared(episode, mode, step), "status": "failed", "error": error or "no trace"},
        "fate": None,
    }


def _identity(episode: dict[str, Any], mode: str, step: int, name: str) -> dict[str, Any]:
    return {"id": f"{mode}-{step}-{episode.get('id') or ''}-{name}"}


def _shared(episode: dict[str, Any], mode: str, step: int) -> dict[str, Any]:
    """The columns that the rollouts of one episode share."""
    group = _dict(episode.get("group")).get("id")
    env = _dict(episode.get("env"))
    return {
        "mode": mode,
        "group": None if group is None else str(group),
        "batch": str(step),
        "episode_id": episode.get("id"),
        "env": env.get("name") or env.get("id"),
    }


def _annotations(folder: Path, run: ForeignRun) -> dict[str, list[dict[str, Any]]]:
    """{trace: later annotations}, the orchestrator's before the trainer's."""
    found: dict[str, list[dict[str, Any]]] = {}
    for producer in ("orchestrator", "trainer"):
        for record in _lines(folder / "annotations" / f"{producer}.jsonl", run):
            found.setdefault(str(record.get("trace_id")), []).append(record)
    return found


def _merged(parts: Iterable[object]) -> dict[str, Any]:
    """Merge nested dicts; the later value of each key is used."""
    whole_one: dict[str, Any] = {}
    for part in parts:
        for name, value in _dict(part).items():
            old = whole_one.get(name)
            whole_one[name] = _merged([old, value]) if isinstance(old, dict) and isinstance(value, dict) else value
    return whole_one


def _spread(values: list[Any] | None, mask: list[Any]) -> list[Any] | None:
    """Values of the sampled tokens, one per token; NaN for tokens that were not sampled."""
    if not values:
        return None
    rest = iter(values)
    return [next(rest, math.nan) if cell else math.nan for cell in mask]


def _text(content: object) -> str | None:
    if isinstance(content, list):
        return "".join(str(part.get("text", f"<{part.get('type')}>")) for part in content if isinstance(part, dict))
    return None if content is None else str(content)


def _error(error: object) -> str | None:
    fields = _dict(error)
    return f"{fields.get('type')}: {fields.get('message')}" if fields else None


def _span(span: object) -> float | None:
    start, end = _dict(span).get("start"), _dict(span).get("end")
    return max(0.0, end - start) if isinstance(start, (int, float)) and isinstance(end, (int, float)) and end else None


def _time(start: object) -> float:
    return float(start) if isinstance(start, (int, float)) else 0.0


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _print(ids: list[Any]) -> bytes:
    return hashlib.blake2b(array("q", map(int, ids)).tobytes(), digest_size=16).digest()


def _lines(file: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    if file.exists():
        yield from (record for record, _moment in records_of(file, run))


def _training_of(file: Path) -> Path:
    """The folder of the training: two above its last `step_<n>`."""
    steps = [folder for folder in file.parents if _STEP.fullmatch(folder.name)]
    return steps[0].parent.parent if steps else file.parent


def _files(path: Path, pattern: str) -> list[Path]:
    """The matching files below `step_<n>` folders of a path, by step."""
    there = [path] if path.is_file() else list(path.rglob(pattern)) if path.is_dir() else []
    keyed = [
        (int(match[1]), str(file), file)
        for file in there
        for part in file.resolve().parts[-5:]
        if (match := _STEP.fullmatch(part)) and file.match(pattern)
    ]
    return [file for _step, _name, file in sorted(keyed)]
