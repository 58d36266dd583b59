"""The rollout summaries of the Tinker cookbook: `<split>_rollout_summaries.jsonl` in the folder of each iteration.

A line is a trajectory (schema_version 1): split, iteration, group_idx, traj_idx, tags, sampling_client_step,
total_reward, final_reward, trajectory_metrics, final_ob_len, and its steps with step_idx, ob_len, ac_len, reward,
episode_done, stop_reason, metrics, logs (thinking-machines-lab/tinker-cookbook at 08ee6ea,
tinker_cookbook/rl/rollout_logging.py, `serialize_rollout_summaries`). Schema version 3 adds `conversation`, `status`,
`error_type`, `error_message` and `stop_reason` (tinker_chef's types of the same repository).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollbook.formats.importers._rollouts import TABLES, records_of, rows_of, trainings, with_metrics
from rollbook.formats.importers._tinker_transcripts import conversation_of, transcripts
from rollbook.protocols import ForeignRun, Row

_NAME = "*_rollout_summaries.jsonl"
_LIMITS = (
    "length",
    "max_turns",
    "max_tokens",
    "max_sampled_tokens",
    "max_tool_calls",
    "context_overflow",
    "rollout_timeout",
)
"""Stop reasons that cut a trajectory short (tinker_cookbook/rl/types.py of 0.6.1: `StopReason`)."""


class Tinker:
    """Rollout summaries of the Tinker cookbook: rewards, groups, versions, and the turns.

    Texts come from the summaries (schema version 3), or from the transcripts next to them, which exist for some groups.
    Without texts there is a turn for each step.

    `sampling_client_step` is the policy version, `iteration` the clock gradient_step. Values that a step logs are
    columns `logs/…` of its turn. The summaries have no advantages, so there are no fates.
    """

    name = "tinker"
    what = "Tinker rollouts"
    files = (_NAME,)
    gathers = True
    includes = ("jsonl",)

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each training: the folder above `iteration_<n>`, with its metrics.jsonl and config.json."""
        for name, (folder, files) in trainings(_files(path.absolute()), _training_of).items():
            talks = [tree for file in files if (tree := _transcripts_of(file)).is_file()]
            run = ForeignRun(name or "tinker", files=[*files, *talks], tables=TABLES)
            run.rows = functools.partial(self._rows, files, run)
            yield with_metrics(run, folder)

    def _rows(self, files: list[Path], run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        return rows_of(one for file in files for one in _rollouts(file, run))


def _rollouts(file: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    # Read all summaries first: their texts are in another file and are found by group.
    summaries = []
    found = list(records_of(file, run))
    moment = found[0][1] if found else 0.0
    for summary, _moment in found:
        steps, iteration = summary.get("steps"), summary.get("iteration")
        if not isinstance(steps, list) or not isinstance(iteration, int) or isinstance(iteration, bool):
            run.lose("lines that are no trajectory")
        else:
            summaries.append({**summary, "steps": [step for step in steps if isinstance(step, dict)]})
    for summary, messages in _with_texts(summaries, file, run):
        steps, iteration = summary["steps"], summary["iteration"]
        split, group = str(summary.get("split")), summary.get("group_idx")
        version = summary.get("sampling_client_step")
        clocks = {"gradient_step": iteration}
        if isinstance(version, int) and not isinstance(version, bool):
            clocks["policy_version"] = version
        metrics = summary.get("trajectory_metrics")
        lengths = [step["ac_len"] for step in steps if isinstance(step.get("ac_len"), int)]
        last = steps[-1] if steps else {}
        stop = summary.get("stop_reason") or last.get("stop_reason")
        prompt, turns = _turns(steps, messages)
        columns = {
            "mode": "train" if split == "train" else "eval",
            "env": split,
            "group": f"{split}-{iteration}-{group}",
            "reward": summary.get("total_reward"),
            "rewards/final": summary.get("final_reward"),
            "stop_reason": stop,
            "status": "failed" if summary.get("status") == "error" else "truncated" if stop in _LIMITS else "completed",
            "error": ": ".join(str(summary[name]) for name in ("error_type", "error_message") if summary.get(name))
            or None,
            "item": next((turn["text"] for turn in reversed(turns) if turn.get("text") is not None), None),
            "sampled_tokens": sum(lengths),
            "prompt_tokens": steps[0].get("ob_len") if steps else None,
            "tags": ", ".join(map(str, summary["tags"])) if isinstance(summary.get("tags"), list) else None,
            **{f"metrics/{name}": cell for name, cell in (metrics if isinstance(metrics, dict) else {}).items()},
        }
        yield {
            "id": f"{split}-{iteration}-{group}-{summary.get('traj_idx')}",
            "time": moment,
            "clocks": clocks,
            "prompt": prompt,
            "turns": turns,
            "columns": columns,
            "fate": None,
        }


def _with_texts(
    summaries: list[dict[str, Any]], file: Path, run: ForeignRun
) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each summary with its messages; [] if there are none."""
    groups: dict[object, list[dict[str, Any]]] = {}
    for summary in summaries:
        groups.setdefault(summary.get("group_idx"), []).append(summary)
    tree = _transcripts_of(file)
    known = transcripts(tree)
    if not known and tree.is_file():
        run.lose("transcripts (_logtree.json) without a message that can be read")
    keys = {group: tuple(_lengths(summary) for summary in members) for group, members in groups.items()}
    used = set()
    for group, members in groups.items():
        talks: list[list[dict[str, Any]]] = [[] for _ in members]
        if list(keys.values()).count(keys[group]) == 1 and keys[group] in known:
            talks = known[keys[group]]
            used.add(keys[group])
        for summary, talk in zip(members, talks, strict=True):
            yield summary, conversation_of(summary) or talk
    for lengths in known.keys() - used:
        run.leave_out("transcripts (_logtree.json) of groups that the summaries do not have", len(lengths))


def _lengths(summary: dict[str, Any]) -> tuple[tuple[int, int], ...]:
    return tuple((step.get("ob_len"), step.get("ac_len")) for step in summary["steps"])


def _turns(steps: list[dict[str, Any]], messages: list[dict[str, Any]]) -> tuple[str | None, list[dict[str, Any]]]:
    """(the prompt, the turns): the messages from the first one of the assistant on, whose turns are the steps."""
    first = next((n for n, message in enumerate(messages) if message.get("role") == "assistant"), None)
    if first is None:
        return None, [_turn(step) for step in steps]
    own = iter(steps)
    turns = []
    for message in messages[first:]:
        is_model = message.get("role") == "assistant"
        more = _turn(next(own, {})) if is_model else {"tokens": message.get("token_count")}
        content = {name: message.get(name) for name in ("role", "name")}
        turns.append(
            {**more, **content, "text": message.get("content"), "calls": message.get("tool_calls"), "trained": is_model}
        )
    prompt = "\n\n".join(f"{message.get('role')}: {message.get('content')}" for message in messages[:first])
    return prompt, turns


def _turn(step: dict[str, Any]) -> dict[str, Any]:
    logs = step.get("logs")
    return {
        "role": "assistant",
        "tokens": step.get("ac_len"),
        "reward": step.get("reward"),
        "finish_reason": step.get("stop_reason"),
        **{f"logs/{name}": cell for name, cell in (logs if isinstance(logs, dict) else {}).items() if name[:1] != "_"},
    }


def _transcripts_of(summaries: Path) -> Path:
    return summaries.with_name(summaries.name.replace("_rollout_summaries.jsonl", "_logtree.json"))


def _training_of(file: Path) -> Path:
    return file.parent.parent if file.parent.name.startswith("iteration_") else file.parent


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.match(_NAME) else []
    return sorted(path.rglob(_NAME)) if path.is_dir() else []
