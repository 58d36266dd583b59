"""NeMo-RL's training batches: `train_data_step<N>.jsonl` in its log folder, one sequence per line.

Each line has `content`, `rewards`, `input_lengths`, `generation_logprobs`, `prev_logprobs` and `idx`; since 0.4 also
`token_ids`, `token_loss_mask`, `sample_loss_mask` and `advantages`; with dynamic sampling `filtered_rewards`. Each is a
list of one, because a line is a micro-batch of one sequence (NVIDIA-NeMo/RL at 7ea279a, nemo_rl/algorithms/grpo.py:
`log_data`, nemo_rl/utils/logger.py: `log_batched_dict_as_jsonl`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rollbook.formats.importers._rollouts import dump_run, floats, records_of, trainings, whole, with_metrics
from rollbook.protocols import ForeignRun

_FILE = re.compile(r"train_data_step(\d+)\.jsonl")


class NemoRL:
    """NeMo-RL's `train_data_step<N>.jsonl` as rollouts: text, reward, and of each token what sampler and trainer gave.

    Every line was trained on, so each has a fate; one whose `sample_loss_mask` is 0 was dropped as "masked". The lines
    have no groups: prompt and answer are one text, so equal prompts cannot be found.
    """

    name = "nemo_rl"
    what = "NeMo-RL batches"
    files = ("train_data_step*.jsonl",)
    includes = ("jsonl",)

    def finds(self, path: Path) -> bool:
        """Whether there is such a file."""
        return bool(_files(path))

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each folder with such files: NeMo-RL makes a new one (`exp_001`, …) at each start."""
        steps = {file: step for step, file in _files(path.absolute())}
        for name, (folder, files) in trainings(steps, lambda file: file.parent).items():
            run = dump_run(name or "nemo_rl", [(steps[file], file) for file in files], _rollouts)
            yield with_metrics(run, folder)


def _rollouts(step: int, file: Path, run: ForeignRun) -> Iterator[dict[str, Any]]:
    for number, (line, moment) in enumerate(records_of(file, run)):
        # Some cells are lists of one.
        sample = {name: cell[0] if isinstance(cell, list) and len(cell) == 1 else cell for name, cell in line.items()}
        if "content" not in sample:
            run.lose("lines without a content")
            continue
        length = whole(sample.get("input_lengths"))
        lists = {
            "ids": floats(sample.get("token_ids"), length),
            "sampler_logprobs": floats(sample.get("generation_logprobs"), length),
            "trainer_logprobs": floats(sample.get("prev_logprobs"), length),
            "advantages": floats(sample.get("advantages"), length),
            "mask": floats(sample.get("token_loss_mask"), length),
        }
        mask = lists["mask"]
        sampled = None if mask is None else int(sum(1 for cell in mask if cell))
        text = sample["content"] if isinstance(sample["content"], str) else str(sample["content"])
        # GRPO gives all tokens of a sample one advantage; if they differ, no single number is theirs.
        advantages = {cell for cell, kept in zip(lists["advantages"] or (), mask or (), strict=False) if kept}
        used = sample.get("sample_loss_mask") not in (0, 0.0)
        yield {
            "id": f"train-{step}-{sample.get('idx', number)}",
            "time": moment,
            "clocks": {"gradient_step": step},
            "prompt": None,
            "turns": [{"role": "assistant", "text": text, "tokens": length, "trained": True}],
            "tokens": [{"turn": 0, "first": 0, **lists}],
            "columns": {
                "mode": "train",
                "status": "completed",
                "item": text,
                "reward": sample.get("rewards"),
                "metrics/filtered_reward": sample.get("filtered_rewards"),
                "agent": sample.get("agent_ref"),
                "sampled_tokens": sampled,
                "other_tokens": None if sampled is None or length is None else length - sampled,
            },
            "fate": {
                "used": used,
                "reason": None if used else "masked",
                "advantage": advantages.pop() if len(advantages) == 1 else None,
                **_gap(lists, mask),
            },
        }


def _gap(lists: dict[str, list[Any] | None], mask: list[Any] | None) -> dict[str, float]:
    """The difference between the log-probabilities of sampler and trainer, on the tokens that are trained on."""
    pairs = zip(lists["sampler_logprobs"] or (), lists["trainer_logprobs"] or (), mask or (), strict=False)
    gaps = [abs(theirs - own) for own, theirs, kept in pairs if kept and own == own and theirs == theirs]
    return {"gap_mean": sum(gaps) / len(gaps), "gap_max": max(gaps)} if gaps else {}


def _files(path: Path) -> list[tuple[int, Path]]:
    """(step, file) of the batches at a path, by step; subfolders of experiments (`exp_001/…`) are searched."""
    there = [path] if path.is_file() else [*path.glob("*.jsonl"), *path.glob("*/*.jsonl")] if path.is_dir() else []
    return sorted((int(match[1]), file) for file in there if (match := _FILE.fullmatch(file.name)))
