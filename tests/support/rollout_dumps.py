"""What frameworks leave on disk of their rollouts, in their formats."""

from __future__ import annotations

import json
from pathlib import Path


def verl_dumps(folder: Path) -> Path:
    """Dumps of generations in the format of verl's `_dump_generations`."""
    made = folder / "rollouts"
    made.mkdir()
    for step in (1, 2):
        lines = [
            {"input": f"{n // 2} + 2?", "output": f"{n}", "gts": "4", "score": n % 2, "step": step, "acc": n % 2 == 1}
            for n in range(8)
        ]
        (made / f"{step}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return made


def tinker_summaries(folder: Path) -> Path:
    """Rollout summaries in the format of the Tinker cookbook's `serialize_rollout_summaries`."""
    made = folder / "tinker" / "iteration_000003"
    made.mkdir(parents=True)
    step = {"ob_len": 9, "ac_len": 4, "reward": 0.5, "episode_done": True, "stop_reason": "stop", "metrics": {}}
    lines = [
        {
            "schema_version": 1, "split": "train", "iteration": 3, "group_idx": n // 2, "traj_idx": n % 2,
            "tags": ["gsm8k"], "sampling_client_step": 2, "total_reward": 0.5 + n, "final_reward": float(n),
            "trajectory_metrics": {"correct": 1.0}, "final_ob_len": 13,
            "steps": [{"step_idx": 0, **step, "logs": {"answer": "4"}}],
        }
        for n in range(8)
    ]  # fmt: skip
    (made / "train_rollout_summaries.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return made.parent
