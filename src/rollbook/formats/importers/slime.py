"""slime's rollout dumps: one `.pt` file per rollout step, in the path of `--save-debug-rollout-data`.

A file holds {"rollout_id", "samples"}; a sample is the result of `Sample.to_dict` (THUDM/slime at 0d234f3,
slime/utils/types.py), also in miles, a fork of slime. The files are pickles. torch reads them with `weights_only=True`,
which executes nothing; a file that holds more than data is rejected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollbook.errors import MissingExtra
from rollbook.formats.importers._rollouts import dump_run, floats, whole
from rollbook.protocols import ForeignRun
from rollbook.system.guard import ours, tolerating

_FILE = re.compile(r"(?:.*[^0-9])?(\d+)\.pt")
_STATUSES = ("completed", "truncated", "aborted", "failed")


class Slime:
    """slime's `.pt` dumps as rollouts: prompt, response, reward, tokens, versions, status. Needs torch.

    `rollout_id` is the clock gradient_step; the first and last of `weight_versions` are the policy versions. The dumps
    are written before the training, so only samples that slime removed have fates. Files whose name has "eval" are
    evaluations.
    """

    name = "slime"
    what = "slime rollouts"
    files = ("rollout_data/*.pt", "*rollout*.pt", "[0-9]*.pt")

    def finds(self, path: Path) -> bool:
        """Whether there is a torch zip file that contains samples."""
        return any(_is_dump(file) for _step, file in _files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """One run for the folder."""
        files = _files(path)
        if not self.finds(path):
            return
        folder = path.resolve() if path.is_dir() else path.resolve().parent
        yield dump_run(folder.name or "slime", files, _rollouts)


def rollout_of(sample: dict[str, Any], step: int, number: int, mode: str) -> dict[str, Any]:
    """A sample of slime in the form for `_rollouts.rows_of`."""
    # The last `response_length` tokens are the response, the others the prompt.
    tokens, length = floats(sample.get("tokens")) or [], whole(sample.get("response_length")) or 0
    start = max(0, len(tokens) - length)
    versions = [int(cell) for cell in sample.get("weight_versions") or () if str(cell).isdigit()]
    reward, status = sample.get("reward"), str(sample.get("status"))
    parts = reward if isinstance(reward, dict) else {}
    prompt, mask = sample.get("prompt"), floats(sample.get("loss_mask"))
    sampled = length if mask is None else sum(1 for cell in mask if cell)
    clocks = {"gradient_step": step}
    if versions:
        clocks["policy_version"] = versions[0]
    turn = {
        "role": "assistant",
        "text": str(sample.get("response") or ""),
        "tokens": length,
        "trained": True,
    }
    return {
        "id": f"{mode}-{step}-{sample.get('index') if sample.get('index') is not None else number}",
        "clocks": clocks,
        "prompt": _text(prompt),
        "turns": [turn],
        "tokens": [
            {
                "turn": 0,
                "first": 0,
                "ids": tokens[start:] or None,
                "sampler_logprobs": floats(sample.get("rollout_log_probs")),
                "mask": mask,
            }
        ],
        "columns": {
            "mode": mode,
            "group": f"{mode}-{step}-{sample['group_index']}" if sample.get("group_index") is not None else None,
            "status": status if status in _STATUSES else "failed",
            "item": turn["text"],
            "reward": reward if isinstance(reward, (int, float)) else None,
            **{f"rewards/{name}": cell for name, cell in parts.items() if isinstance(cell, (int, float))},
            "policy_version_end": versions[-1] if versions else None,
            "prompt_tokens": start if tokens else None,
            "sampled_tokens": sampled,
            "other_tokens": length - sampled,
            "seconds/tools": sample.get("non_generation_time"),
            "label": sample.get("label"),
            "episode_id": sample.get("session_id"),
        },
        "fate": {"used": False, "reason": "removed"} if sample.get("remove_sample") else None,
    }


def _rollouts(step: int, file: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra(f"{file} needs torch, which is not installed: pip install torch") from None
    try:
        moment = os.stat(file).st_mtime
        held = torch.load(file, weights_only=True, map_location="cpu")
    except ours(Exception):  # any error of torch for a file that is damaged or holds more than data
        run.lose("files that are damaged, or hold more than data (read by weights_only)")
        return
    samples = held.get("samples") if isinstance(held, dict) else None
    if not isinstance(samples, list):
        run.lose("files without samples")
        return
    mode = "eval" if "eval" in file.name.lower() else "train"
    for number, sample in enumerate(samples):
        if isinstance(sample, dict):
            yield {**rollout_of(sample, step, number, mode), "time": moment}
        else:
            run.lose("samples that are no object")


def _text(prompt: object) -> str | None:
    if isinstance(prompt, list):
        messages = [f"{part.get('role')}: {part.get('content')}" for part in prompt if isinstance(part, dict)]
        return "\n\n".join(messages)
    return None if prompt in (None, "") else str(prompt)


def _files(path: Path) -> list[tuple[int, Path]]:
    """(step, file) of the files at a path that have a dump's name, by step."""
    there = [path] if path.is_file() else list(path.glob("*.pt")) if path.is_dir() else []
    return sorted((int(match[1]), file) for file in there if (match := _FILE.fullmatch(file.name)))


def _is_dump(file: Path) -> bool:
    """Whether a file is a torch file whose first bytes name samples."""
    with tolerating(OSError), open(file, "rb") as opened:
        first = opened.read(1 << 16)
        return first[:2] == b"PK" and b"rollout_id" in first and b"samples" in first
    return False
