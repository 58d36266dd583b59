"""The rollout summaries of the Tinker cookbook: `<split>_rollout_summaries.jsonl` in the folder of each iteration.

A line is a trajectory (schema_version 1): split, iteration, group_idx, traj_idx, tags, sampling_client_step,
total_reward, final_reward, trajectory_metrics, final_ob_len, and its steps with step_idx, ob_len, ac_len, reward,
episode_done, stop_reason, metrics, logs (thinking-machines-lab/tinker-cookbook at 08ee6ea,
tinker_cookbook/rl/rollout_logging.py, `serialize_rollout_summaries`).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollbook.formats.importers._rollouts import TABLES, lines_of, rows_of
from rollbook.protocols import ForeignRun, Row

__all__ = ["Tinker"]

_NAME = "*_rollout_summaries.jsonl"


class Tinker:
    """Rollout summaries of the Tinker cookbook: rewards, groups, versions, and a turn for each step, without texts.

    `sampling_client_step` is the policy version, `iteration` the clock gradient_step. Values that a step logs are
    columns `logs/…` of its turn. The summaries have no advantages, so there are no fates.
    """

    name = "tinker"
    what = "Tinker rollouts"
    gathers = True
    includes = ("jsonl",)

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """One run for the tree."""
        files = _files(path)
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        run = ForeignRun(folder.name or "tinker", files=files, tables=TABLES)
        run.rows = functools.partial(self._rows, files, run)
        yield run

    def _rows(self, files: list[Path], run: ForeignRun) -> Iterator[Row]:
        run.left_out.clear()
        for folder in dict.fromkeys(file.parent for file in files):
            if any(folder.glob("*_logtree.json")):
                run.leave_out("transcripts (_logtree.json): they do not name the trajectory of a message")
        return rows_of(one for file in files for one in _rollouts(file, run))


def _rollouts(file: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    try:
        data, moment = file.read_bytes(), os.stat(file).st_mtime
    except OSError:
        run.leave_out("files that cannot be read")
        return
    for said in lines_of(data, run.leave_out):
        steps, iteration = said.get("steps"), said.get("iteration")
        if not isinstance(steps, list) or not isinstance(iteration, int) or isinstance(iteration, bool):
            run.leave_out("lines that are no trajectory")
            continue
        steps = [step for step in steps if isinstance(step, dict)]
        split, group = str(said.get("split")), said.get("group_idx")
        version = said.get("sampling_client_step")
        clocks = {"gradient_step": iteration}
        if isinstance(version, int) and not isinstance(version, bool):
            clocks["policy_version"] = version
        metrics = said.get("trajectory_metrics")
        lengths = [step["ac_len"] for step in steps if isinstance(step.get("ac_len"), int)]
        last = steps[-1] if steps else {}
        columns = {
            "mode": "train" if split == "train" else "eval",
            "env": split,
            "group": f"{split}-{iteration}-{group}",
            "reward": said.get("total_reward"),
            "rewards/final": said.get("final_reward"),
            "stop_reason": last.get("stop_reason"),
            "status": "truncated" if last.get("stop_reason") == "length" else "completed",
            "sampled_tokens": sum(lengths),
            "prompt_tokens": steps[0].get("ob_len") if steps else None,
            "tags": ", ".join(map(str, said["tags"])) if isinstance(said.get("tags"), list) else None,
            **{f"metrics/{name}": cell for name, cell in (metrics if isinstance(metrics, dict) else {}).items()},
        }
        yield {
            "id": f"{split}-{iteration}-{group}-{said.get('traj_idx')}",
            "time": moment,
            "clocks": clocks,
            "prompt": None,
            "turns": [_turn(step) for step in steps],
            "columns": columns,
            "fate": None,
        }


def _turn(step: dict[str, Any]) -> dict[str, Any]:
    logs = step.get("logs")
    return {
        "role": "assistant",
        "tokens": step.get("ac_len"),
        "reward": step.get("reward"),
        "finish_reason": step.get("stop_reason"),
        **{f"logs/{name}": cell for name, cell in (logs if isinstance(logs, dict) else {}).items()},
    }


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.match(_NAME) else []
    return sorted(path.rglob(_NAME)) if path.is_dir() else []
