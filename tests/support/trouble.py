"""Rows of trainings that are in trouble: for each rule of the registry some at which it has to raise an alert."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from rollbook.protocols import Row

__all__ = ["TROUBLE", "later", "rows", "updates"]


def rows(n: int, **values: Any) -> list[Row]:
    """n rows a second apart; each value a function of its row's number."""
    return [
        Row(
            1.7e9 + i,
            {"env_step": 2000 * i},
            {key.replace("__", "/"): make(i) for key, make in values.items()},
            seq=i + 1,
        )
        for i in range(n)
    ]


def later(n: int, some: list[Row]) -> list[Row]:
    """The same rows after n others."""
    return [
        replace(row, time=row.time + n, clocks={"env_step": row.clocks["env_step"] + 2000 * n}, seq=row.seq + n)
        for row in some
    ]


def updates(n: int, **later: Any) -> list[Row]:
    """n updates of six groups of two rollouts each, and their fates; from the middle on with other cells."""
    made: list[Row] = []
    for i in range(n * 12):
        version, group = divmod(i // 2, 6)
        cells = {
            "group": f"{version}-{group}",
            "status": "completed",
            "reward": float(i % 2),
            "tool_calls": 1,
            "tool_errors": 0,
        }
        fate = {"used": True, "advantage": 0.5, "gap_mean": 0.01}
        if version >= n // 2:
            for given in (cells, fate):
                given.update({name: make(i) for name, make in later.items() if name in given})
        made.append(Row(1.7e9 + i, {"policy_version": version}, cells, seq=2 * i + 1, table="rollouts"))
        made.append(Row(1.7e9 + i + 0.5, {"gradient_step": version}, fate, seq=2 * i + 2, table="fates"))
    return made


TROUBLE: dict[str, list[Row]] = {
    "short_sighted": rows(
        400,
        losses__qf1_values=lambda i: -1.0,
        charts__episodic_return=lambda i: -20.0 + i % 3,
        charts__episodic_length=lambda i: 20.0,
    ),
    "alpha": rows(60, losses__alpha=lambda i: math.exp(0.2 * i)),
    "clip_fraction": rows(60, losses__clipfrac=lambda i: 0.1 if i < 30 else 0.9),
    "constant": rows(120, losses__value_loss=lambda i: math.sin(i) if i < 40 else 0.25),
    "displacement": rows(
        80, rewards__chosen=lambda i: -0.1 * i + 0.01 * (i % 3), rewards__rejected=lambda i: -0.3 * i + 0.01 * (i % 5)
    ),
    "entropy": rows(
        80, losses__entropy=lambda i: 0.69 if i < 40 else 0.01, charts__episodic_return=lambda i: 20.0 + i % 7
    ),
    "evaluation_gap": rows(
        120, charts__episodic_return=lambda i: float(i), eval__episodic_return=lambda i: 5.0 + i % 3
    ),
    "explained_variance": rows(60, losses__explained_variance=lambda i: 0.4 if i < 30 else -0.8),
    "exploration": rows(
        300, charts__epsilon=lambda i: 1.0 if i >= 20 else 0.99, charts__episodic_return=lambda i: 20.0 + i % 7
    ),
    "first_ratio": rows(60, update__first_ratio_error=lambda i: 1e-7 if i < 30 else 0.2),
    "frozen": rows(60, losses__approx_kl=lambda i: 0.01 if i < 30 else 1e-15),
    "jump": rows(90, losses__value_loss=lambda i: 3.0 + i % 7 if i < 60 else 9e4),
    "kl": rows(60, losses__approx_kl=lambda i: 0.01 if i < 40 else 0.3),
    "kl_below_zero": rows(60, losses__approx_kl=lambda i: 0.01 if i % 3 else -0.01),
    "learns_nothing": rows(2_200, charts__episodic_return=lambda i: 20.0 + i % 7),
    "learning_rate": rows(60, charts__learning_rate=lambda i: 1e-3 if i < 30 else 0.0),
    "never_updated": [
        *rows(60, losses__value_loss=lambda i: 1.0 + i % 7, charts__episodic_return=lambda i: 20.0 + i % 7),
        *later(60, rows(60, charts__episodic_return=lambda i: 20.0 + i % 7)),
    ],
    "no_episode": [
        *rows(60, losses__value_loss=lambda i: 1.0 + i % 7, charts__episodic_return=lambda i: 20.0 + i % 7),
        *later(60, rows(60, losses__value_loss=lambda i: 1.0 + i % 7)),
    ],
    "no_signal": rows(240, charts__episodic_return=lambda i: 3.0),
    "non_finite": rows(60, loss=lambda i: 1.0 / (i + 1) if i < 50 else math.nan),
    "overfitting": rows(80, train__loss=lambda i: 2.0 / (i + 1), eval__loss=lambda i: 1.0 + abs(i - 30) / 30),
    "q_bound": rows(
        90,
        losses__q_values=lambda i: 1.1**i,
        charts__episodic_return=lambda i: 1.0 + i % 3,
        charts__episodic_length=lambda i: 10.0,
    ),
    "return_fall": rows(200, charts__episodic_return=lambda i: i % 7 + (20.0 if i < 20 else 200.0 if i < 100 else 9.0)),
    "reward_hacking": rows(
        80,
        kl=lambda i: 0.02 if i < 40 else 15.0,
        completions__mean_length=lambda i: 100.0 if i < 40 else 800.0,
        completions__clipped_ratio=lambda i: 0.05 if i < 40 else 0.98,
    ),
    "rollouts": updates(60, status=lambda i: "truncated", reward=lambda i: 0.0, gap_mean=lambda i: 0.3),
    "sampler_mismatch": rows(60, **{"sampling/sampling_logp_difference/mean": lambda i: 0.01 if i < 30 else 0.4}),
    "throughput": [
        *rows(600, losses__value_loss=lambda i: 3.0 + i % 7),
        *(
            replace(row, clocks={"env_step": 1_200_000 + 400 * i})
            for i, row in enumerate(later(600, rows(1_200, losses__value_loss=lambda i: 3.0 + i % 7)))
        ),
    ],
    "value_scale": rows(60, losses__value_loss=lambda i: 3.0 + i % 7 if i < 30 else 4e6 + i),
    "zero_variance_groups": rows(60, frac_reward_zero_std=lambda i: 0.2 if i < 30 else 0.9),
}
