"""Healthy trainings of a framework that many use, so that the rules are not silent in our own loops alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["make_healthy"]

_TRAININGS: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("PPO", "CartPole-v1", 8_000, {"n_steps": 256, "batch_size": 64, "n_epochs": 4}),
    ("PPO", "Acrobot-v1", 10_000, {"n_steps": 256, "batch_size": 64, "n_epochs": 4}),
    ("PPO", "Pendulum-v1", 10_000, {"n_steps": 512, "n_epochs": 5, "gamma": 0.9, "learning_rate": 1e-3}),
    ("A2C", "CartPole-v1", 8_000, {}),
    ("DQN", "CartPole-v1", 8_000, {"learning_rate": 1e-3, "learning_starts": 500, "target_update_interval": 500}),
    ("SAC", "Pendulum-v1", 1_500, {"learning_rate": 1e-3, "learning_starts": 200, "policy_kwargs": {"net_arch": [32]}}),
)
_SEEDS = 4


def make_healthy(folder: Path) -> None:
    """Train what the folder lacks, one process, one thread. Needs stable-baselines3 and gymnasium."""
    import stable_baselines3
    import torch
    from stable_baselines3.common.logger import Logger

    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(_SEEDS):
        for algorithm, env, steps, settings in _TRAININGS:
            path = folder / f"sb3-{algorithm.lower()}-{env.lower()}-healthy-s{seed}.jsonl"
            if path.exists():
                continue
            model = getattr(stable_baselines3, algorithm)("MlpPolicy", env, seed=seed, device="cpu", **settings)
            rows = _rows()
            model.set_logger(Logger(None, [rows]))
            model.learn(steps, log_interval=50 if algorithm == "A2C" else 1)
            config = {
                "algorithm": algorithm,
                "task": env,
                "fault": "healthy",
                "strength": "",
                "injected": None,
                "steps": steps,
                "hold_out": True,
                "outcome": rows.outcome(),
                "gamma": float(model.gamma),
                "learning_rate": float(model.learning_rate),
            }
            head = json.dumps({"name": path.stem, "seed": seed, "config": config})
            path.write_text("\n".join([head, *rows.lines]) + "\n")
            print(path.stem, len(rows.lines), flush=True)


def _rows() -> Any:
    """Takes what Stable-Baselines3 dumps."""
    from stable_baselines3.common.logger import KVWriter

    class Rows(KVWriter):  # type: ignore[misc]
        def __init__(self) -> None:
            self.lines: list[str] = []

        def write(self, values: dict[str, Any], _excluded: object, step: int = 0) -> None:
            numbers = {key: float(value) for key, value in values.items() if not isinstance(value, str)}
            updates = int(numbers.get("train/n_updates", 0))
            self.lines.append(json.dumps({"env_step": step, "gradient_step": updates, **numbers}))

        def outcome(self) -> str:
            """By the mean return of the last hundred episodes against that of the first ones."""
            returns = [
                one["rollout/ep_rew_mean"] for one in map(json.loads, self.lines) if "rollout/ep_rew_mean" in one
            ]
            return "learned" if returns[-1] > returns[0] else "learned nothing"

        def close(self) -> None:
            """Nothing is open."""

    return Rows()
