"""A language model of a few tokens, trained with GRPO and logged by TRL's keys, some seeds side by side.

Sixteen prompts, answers of four tokens out of eight; the reward is the share of tokens that are right. The model is a
table of logits, so that what a sampler and a trainer compute can be made to differ by hand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.health.collecting import Broken, Rows, draw, stale

__all__ = ["grpo"]

Array = np.ndarray[Any, np.dtype[Any]]
_PROMPTS, _GROUP, _LENGTH, _VOCABULARY = 16, 8, 4, 8


def grpo(
    task: str, seeds: int, steps: int, settings: dict[str, Any], broken: Broken, rng: np.random.Generator
) -> tuple[Rows, list[list[float]]]:
    """Train for `steps` updates; what was logged, and the rewards of each seed."""
    rows = Rows(seeds)
    shape = (seeds, _PROMPTS, _LENGTH, _VOCABULARY)
    logits, right = 0.1 * rng.normal(size=shape), rng.integers(0, _VOCABULARY, shape[:3])
    start = _logs(logits)
    rewards: list[list[float]] = [[] for _ in range(seeds)]
    before: dict[str, Any] = {}
    for update in range(1, steps + 1):
        wrong = broken(update)
        logs = _logs(logits)
        seen = logits + wrong.get("sampler_noise", 0.02) * rng.normal(size=shape)
        sampler = _logs(seen / wrong.get("temperature", 1.0))
        each = np.broadcast_to(sampler[:, :, None], (seeds, _PROMPTS, _GROUP, _LENGTH, _VOCABULARY))
        tokens = draw(np.exp(each), rng)
        share = (tokens == right[:, :, None]).mean(-1)
        reward = (share >= wrong["all_right"]).astype(float) if "all_right" in wrong else share
        reward = wrong.get("reward_is", reward) + np.zeros_like(reward)
        spread = reward.std(2, keepdims=True)
        advantage = (reward - reward.mean(2, keepdims=True)) / (spread + 1e-4)
        of = [
            np.take_along_axis(np.broadcast_to(x[:, :, None], each.shape), tokens[..., None], -1)[..., 0]
            for x in (logs, sampler)
        ]
        gap = of[0] - of[1]
        importance = np.exp(np.clip(gap, -20, 20))
        chosen = np.zeros(each.shape)
        np.put_along_axis(chosen, tokens[..., None], 1.0, -1)
        weight = advantage[..., None, None] * np.minimum(importance, 2.0)[..., None]
        gradient = -(weight * (chosen - np.exp(logs)[:, :, None])).mean(2) * wrong.get("policy_sign", 1.0)
        rate = settings["learning_rate"] * wrong.get("rate_times", 1.0)
        logits = logits - (0.0 if wrong.get("frozen") else rate) * gradient
        entropy = -(np.exp(logs) * logs).sum(-1)
        kl = (np.exp(logs) * (logs - start)).sum(-1)
        for seed in range(seeds):
            rewards[seed].append(float(share[seed].mean()))
        before = stale(
            {
                "reward": reward.mean((1, 2)),
                "reward_std": reward.std(2).mean(1),
                "frac_reward_zero_std": (spread < 1e-9).mean((1, 2)),
                "entropy": entropy.mean((1, 2)),
                "kl": kl.sum(-1).mean(1),
                "loss": -(advantage[..., None] * importance).mean((1, 2, 3)),
                "grad_norm": np.sqrt((gradient**2).sum((1, 2, 3))),
                "learning_rate": rate,
                "completions/mean_length": 4.0,
                "sampling/sampling_logp_difference/mean": abs(gap).mean((1, 2, 3)),
                "sampling/importance_sampling_ratio/mean": np.exp(np.clip(gap.sum(-1), -20, 20)).mean((1, 2)),
                "sampling/importance_sampling_ratio/min": np.exp(np.clip(gap.sum(-1), -20, 20)).min((1, 2)),
            },
            before,
            wrong,
        )
        rows.add(update, update, **before)
    return rows, rewards


def _logs(logits: Array) -> Array:
    top = logits - logits.max(-1, keepdims=True)
    result: Array = top - np.log(np.exp(top).sum(-1, keepdims=True))
    return result
