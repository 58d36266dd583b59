"""PPO and A2C in the shape of CleanRL's single files, some seeds side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.health.collecting import Broken, Collector, Rows, draw, stale
from benchmarks.health.networks import Net

__all__ = ["on_policy"]

Array = np.ndarray[Any, np.dtype[Any]]
_UNITS = {"Reach": (20.0, 5.0), "Hover": (0.05, 3.0)}
"""Tasks whose observations come in units that only a running normaliser makes fit for a network."""

_KL = {
    "k3": lambda x: (np.exp(np.clip(x, -50, 50)) - 1 - x).mean(1),
    "k1": lambda x: -x.mean(1),
    "-k3": lambda x: (np.exp(np.clip(x, -50, 50)) - 1 + x).mean(1),
}
"""Estimators of a divergence from logarithms of ratios (Schulman, Approximating KL Divergence): right and wrong."""


class _Policy:
    """Categorical or Gaussian, and a value function beside it."""

    def __init__(self, collector: Collector, hidden: int, rng: np.random.Generator) -> None:
        task, seeds = collector.task, collector.task.shape[0]
        self.continuous, self.rng = task.continuous, rng
        self.net = Net(
            seeds, (task.observations, hidden, task.actions), rng, 0.01, task.actions if task.continuous else 0
        )
        self.value = Net(seeds, (task.observations, hidden, 1), rng)

    def outputs(self, x: Array) -> tuple[Array, Array]:
        """Means or log-probabilities; entropies."""
        out = self.net(x)
        if self.continuous:
            return out, np.broadcast_to(self.net.own.sum(-1) + out.shape[-1] * 1.4189385, out.shape[:2])
        top = out - out.max(-1, keepdims=True)
        logs = top - np.log(np.exp(top).sum(-1, keepdims=True))
        return logs, -(np.exp(logs) * logs).sum(-1)

    def act(self, x: Array) -> Array:
        """Actions by chance."""
        out, _entropy = self.outputs(x)
        if self.continuous:
            return out + np.exp(self.net.own) * self.rng.normal(size=out.shape)
        return draw(np.exp(out), self.rng)

    def log_p(self, out: Array, actions: Array) -> Array:
        """Of actions that were taken."""
        if self.continuous:
            log_std = self.net.own
            return (-0.5 * ((actions - out) * np.exp(-log_std)) ** 2 - log_std - 0.9189385).sum(-1)
        return np.take_along_axis(out, actions[..., None], -1)[..., 0]

    def gradients(self, out: Array, entropy: Array, actions: Array, by_log_p: Array, by_entropy: float) -> list[Array]:
        """Of the parameters, from those of the log-probabilities and of the mean entropy."""
        n = out.shape[1]
        if self.continuous:
            z = (actions - out) * np.exp(-self.net.own)
            gradients = self.net.gradient(by_log_p[..., None] * z * np.exp(-self.net.own))[0]
            return [*gradients, (by_log_p[..., None] * (z**2 - 1)).sum(1, keepdims=True) + by_entropy]
        p = np.exp(out)
        chosen = np.zeros_like(p)
        np.put_along_axis(chosen, actions[..., None], 1.0, -1)
        by_out = by_log_p[..., None] * (chosen - p) - by_entropy / n * p * (out + entropy[..., None])
        return self.net.gradient(by_out)[0]


class _Normaliser:
    """Running means and deviations of what is seen."""

    def __init__(self, seeds: int, width: int, used: bool) -> None:
        self.n, self.used = 1e-4, used
        self.mean, self.square = np.zeros((seeds, 1, width)), np.ones((seeds, 1, width))

    def __call__(self, x: Array) -> Array:
        if not self.used:
            return x
        self.n += x.shape[1]
        share = x.shape[1] / self.n
        self.mean += share * (x.mean(1, keepdims=True) - self.mean)
        self.square += share * ((x**2).mean(1, keepdims=True) - self.square)
        return self.fixed(x)

    def fixed(self, x: Array) -> Array:
        """Without learning from it."""
        deviation = np.sqrt(np.maximum(self.square - self.mean**2, 1e-8))
        return np.clip((x - self.mean) / deviation, -10, 10) if self.used else x


def on_policy(
    task: str, seeds: int, steps: int, settings: dict[str, Any], broken: Broken, rng: np.random.Generator
) -> tuple[Rows, list[list[float]]]:
    """Train; what was logged, and the returns of each seed.

    Args:
      settings: learning_rate, gamma, ent_coef, hidden, num_envs, num_steps (of each of them), evaluate (each so many
        updates), and of PPO: clip_coef (0: A2C), update_epochs, num_minibatches.
    """
    rows, copies, length = Rows(seeds), settings["num_envs"], settings["num_steps"]
    units = _UNITS.get(task, (1.0, 0.0))
    collector = Collector(task, (seeds, copies), rng, broken, rows, units)
    policy = _Policy(collector, settings["hidden"], rng)
    normal = _Normaliser(seeds, collector.task.observations, units != (1.0, 0.0))
    old_x, x, update = None, normal(collector.look()), 0
    told: dict[str, Any] = {}
    while collector.steps < steps:
        seen, taken, gained, over = [], [], [], []
        for _ in range(length):
            actions = policy.act(x)
            now, _last, reward, terminated, truncated = collector.step(actions)
            seen.append(x)
            taken.append(actions)
            gained.append(reward)
            over.append(terminated | truncated)
            x = normal(now)
        wrong = broken(collector.steps)
        if wrong.get("never_trained"):
            continue
        gamma = wrong.get("gamma", settings["gamma"])
        values = [policy.value(y)[..., 0] for y in seen]
        advantage, later, value_later = [np.zeros(0)] * length, np.zeros((seeds, copies)), policy.value(x)[..., 0]
        for i in reversed(range(length)):
            alive = 1.0 - over[i]
            later = gained[i] + gamma * value_later * alive - values[i] + gamma * 0.95 * alive * later
            advantage[i], value_later = later, values[i]
        flat = [np.concatenate(them, 1) for them in (seen, taken, advantage, values)]
        observed, actions, advantages, valued = flat
        targets = advantages + valued
        if "value_sign" in wrong:
            targets = targets * wrong["value_sign"]
        out, _entropy = policy.outputs(observed)
        old = policy.log_p(out, actions)
        if "old_policy_noise" in wrong:
            old = old + wrong["old_policy_noise"] * rng.normal(size=old.shape)
        if wrong.get("stale_rollout") and old_x is not None:
            observed = old_x
        old_x = flat[0]
        told = stale(_learn(policy, observed, actions, advantages, targets, old, settings, wrong, rng), told, wrong)
        update += 1
        collector.updates = update
        residual, spread = advantages.var(1), (advantages + valued).var(1)
        explained = np.where(spread > 0, 1 - residual / np.where(spread > 0, spread, 1), np.nan)
        rows.add(
            collector.steps,
            update,
            **told,
            losses__explained_variance=explained,
            charts__learning_rate=settings["learning_rate"] * wrong.get("rate_times", 1.0),
        )
        if update % settings["evaluate"] == 0:
            rows.add(collector.steps, update, eval__episodic_return=_evaluated(task, policy, normal, units, wrong, rng))
    return rows, collector.finished


def _learn(
    policy: _Policy,
    x: Array,
    actions: Array,
    advantages: Array,
    targets: Array,
    old: Array,
    settings: dict[str, Any],
    wrong: dict[str, Any],
    rng: np.random.Generator,
) -> dict[str, Any]:
    rate = settings["learning_rate"] * wrong.get("rate_times", 1.0)
    policy_rate = 0.0 if wrong.get("frozen") else rate
    value_rate = 0.0 if wrong.get("frozen") == "all" else rate
    entropy_weight = wrong.get("ent_coef", settings["ent_coef"])
    clip, first, moved = wrong.get("clip_coef", settings["clip_coef"]), None, np.zeros(x.shape[0])
    told: dict[str, Any] = {}
    clipped: list[Array] = []
    for epoch in range(settings["update_epochs"]):
        order = rng.permutation(x.shape[1])
        for number, some in enumerate(np.array_split(order, settings["num_minibatches"])):
            y, a, advantage, target, before = (
                x[:, some],
                actions[:, some],
                advantages[:, some],
                targets[:, some],
                old[:, some],
            )
            n = y.shape[1]
            if clip:
                advantage = (advantage - advantage.mean(1, keepdims=True)) / (advantage.std(1, keepdims=True) + 1e-8)
            advantage = advantage * wrong.get("policy_sign", 1.0)
            out, entropy = policy.outputs(y)
            log_ratio = policy.log_p(out, a) - before
            ratio = np.exp(np.clip(log_ratio, -50, 50))
            if clip:
                outside = abs(ratio - 1) > clip
                cut = outside & ((ratio > 1) == (advantage > 0))
                by_log_p = np.where(cut, 0.0, -advantage * ratio) / n
                loss = -np.minimum(ratio * advantage, np.clip(ratio, 1 - clip, 1 + clip) * advantage).mean(1)
                clipped.append(outside.mean(1))
            else:
                by_log_p, loss = -advantage / n, -(advantage * (log_ratio + before)).mean(1)
            value = policy.value(y)[..., 0]
            error = value - target
            gradients = policy.gradients(out, entropy, a, by_log_p, -entropy_weight)
            values = policy.value.gradient((error / n)[..., None] * 0.5)[0]
            if epoch == number == 0:
                first = abs(ratio - 1).mean(1)
                if "nan_weight" in wrong:
                    policy.value.parameters[4][:, 0, 0] = np.nan
            norm, step = policy.net.step(gradients, policy_rate, 0.5)
            value_norm, value_step = policy.value.step(values, value_rate, 0.5)
            moved += np.hypot(step, value_step)
            told = {
                "losses__value_loss": 0.5 * (error**2).mean(1),
                "losses__policy_loss": loss,
                "losses__entropy": entropy.mean(1),
                "losses__grad_norm": np.hypot(norm, value_norm),
                "losses__old_approx_kl": -log_ratio.mean(1),
                "losses__approx_kl": _KL[wrong.get("kl_is", "k3")](log_ratio),
            }
    told["update__step_norm"] = moved
    if clip:
        told.update(losses__clipfrac=np.mean(clipped, 0), update__first_ratio_error=first)
    else:
        del told["losses__old_approx_kl"], told["losses__approx_kl"]
    return told


def _evaluated(
    task: str,
    policy: _Policy,
    normal: _Normaliser,
    units: tuple[float, float],
    wrong: dict[str, Any],
    rng: np.random.Generator,
) -> Array:
    """The mean return of four episodes of each seed."""
    collector = Collector(task, (policy.net.parameters[0].shape[0], 4), rng, lambda step: {}, None, units)
    normal_now = (lambda x: x) if wrong.get("evaluation_unnormalised") else normal.fixed
    first, going = np.zeros(collector.task.shape), np.ones(collector.task.shape, bool)
    x = collector.look()
    while going.any():
        x, _last, reward, terminated, truncated = collector.step(policy.act(normal_now(x)))
        first += reward * going
        going &= ~(terminated | truncated)
    return first.mean(1)
