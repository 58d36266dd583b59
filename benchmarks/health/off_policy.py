"""DQN and SAC in the shape of CleanRL's single files, some seeds side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.health.collecting import Broken, Collector, Rows, stale
from benchmarks.health.networks import Net

__all__ = ["dqn", "sac"]

Array = np.ndarray[Any, np.dtype[Any]]


class _Replay:
    """Transitions of each seed; the oldest go."""

    def __init__(self, most: int, rng: np.random.Generator) -> None:
        self.most, self.n, self._rng = most, 0, rng
        self._cells: list[Array] = []

    def add(self, *cells: Array) -> None:
        """One transition of each copy, (seeds, copies, …) each."""
        if not self._cells:
            self._cells = [np.zeros((c.shape[0], self.most, *c.shape[2:])) for c in cells]
        at = (self.n + np.arange(cells[0].shape[1])) % self.most
        for cell, new in zip(self._cells, cells, strict=True):
            cell[:, at] = new
        self.n += cells[0].shape[1]

    def some(self, batch: int, newest: int | None = None) -> list[Array]:
        """A batch of each seed; of the newest few alone where asked."""
        held = min(self.n, self.most)
        at = self._rng.integers(0, held, batch)
        if newest is not None:
            at = (self.n - 1 - self._rng.integers(0, min(newest, held), batch)) % self.most
        return [cell[:, at] for cell in self._cells]


def dqn(
    task: str, seeds: int, steps: int, settings: dict[str, Any], broken: Broken, rng: np.random.Generator
) -> tuple[Rows, list[list[float]]]:
    """Train; what was logged, and the returns of each seed."""
    rows = Rows(seeds)
    collector = Collector(task, (seeds, settings["num_envs"]), rng, broken, rows)
    sizes = (collector.task.observations, settings["hidden"], collector.task.actions)
    net, target = Net(seeds, sizes, rng), Net(seeds, sizes, rng)
    target.copy_from(net)
    replay, x, update = _Replay(10_000, rng), collector.look(), 0
    before: dict[str, Any] = {}
    while collector.steps < steps:
        rate_of_chance = max(0.05, 1 - collector.steps / (0.3 * steps))
        actions = net(x).argmax(-1)
        random = rng.random(actions.shape) < rate_of_chance
        actions = np.where(random, rng.integers(0, collector.task.actions, actions.shape), actions)
        now, last, reward, terminated, _truncated = collector.step(actions)
        wrong = broken(collector.steps)
        if not wrong.get("replay_stale"):
            replay.add(x, actions, reward, last, terminated)
        x = now
        if collector.steps < settings["learning_starts"] or wrong.get("never_trained"):
            continue
        seen, taken, gained, later, over = replay.some(64, wrong.get("replay_newest"))
        best = target(later).max(-1)
        goal = gained * wrong.get("value_sign", 1.0) + wrong.get("gamma", settings["gamma"]) * best * (1 - over)
        values = net(seen)
        error = np.take_along_axis(values, taken.astype(int)[..., None], -1)[..., 0] - goal
        by_values = np.zeros_like(values)
        np.put_along_axis(by_values, taken.astype(int)[..., None], (2 * error / 64)[..., None], -1)
        rate = settings["learning_rate"] * wrong.get("rate_times", 1.0)
        if "nan_weight" in wrong:
            net.parameters[4][:, 0, 0] = np.nan
        norm, moved = net.step(net.gradient(by_values)[0], 0.0 if wrong.get("frozen") else rate)
        update += 1
        collector.updates = update
        if update % int(wrong.get("target_every", 100)) == 0:
            target.copy_from(net)
        if update % 25 == 0:
            told = {
                "losses__td_loss": (error**2).mean(1),
                "losses__q_values": (error + goal).mean(1),
                "losses__grad_norm": norm,
                "update__step_norm": moved,
                "charts__learning_rate": rate,
                "charts__epsilon": rate_of_chance,
            }
            before = stale(told, before, wrong)
            rows.add(collector.steps, update, **before)
    return rows, collector.finished


class _Actor:
    """A Gaussian squashed by tanh."""

    def __init__(self, seeds: int, inputs: int, hidden: int, actions: int, rng: np.random.Generator) -> None:
        self.net, self.actions, self._rng = Net(seeds, (inputs, hidden, 2 * actions), rng, 0.1), actions, rng

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Actions, and the logarithms of their densities."""
        out = self.net(x)
        self._std = np.exp(np.clip(out[..., self.actions :], -5, 2))
        self._inside = abs(out[..., self.actions :] + 1.5) < 3.5
        self._noise = self._rng.normal(size=self._std.shape)
        self._a = np.tanh(out[..., : self.actions] + self._std * self._noise)
        logs = -0.5 * self._noise**2 - np.log(self._std) - 0.9189385 - np.log(1 - self._a**2 + 1e-6)
        return self._a, logs.sum(-1)

    def gradients(self, by_action: Array, by_log: Array) -> list[Array]:
        """Of the parameters, of the last call."""
        by_u = by_action * (1 - self._a**2) + by_log[..., None] * 2 * self._a
        by_log_std = (by_u * self._std * self._noise - by_log[..., None]) * self._inside
        return self.net.gradient(np.concatenate([by_u, by_log_std], -1))[0]


def sac(
    task: str, seeds: int, steps: int, settings: dict[str, Any], broken: Broken, rng: np.random.Generator
) -> tuple[Rows, list[list[float]]]:
    """Train; what was logged, and the returns of each seed."""
    rows = Rows(seeds)
    collector = Collector(task, (seeds, settings["num_envs"]), rng, broken, rows)
    inputs, hidden, actions = collector.task.observations, settings["hidden"], collector.task.actions
    actor = _Actor(seeds, inputs, hidden, actions, rng)
    critics = [Net(seeds, (inputs + actions, hidden, 1), rng) for _ in range(2)]
    targets = [Net(seeds, (inputs + actions, hidden, 1), rng) for _ in range(2)]
    for critic, target in zip(critics, targets, strict=True):
        target.copy_from(critic)
    log_alpha, replay, x, update = np.zeros(seeds), _Replay(10_000, rng), collector.look(), 0
    before: dict[str, Any] = {}
    while collector.steps < steps:
        warm = collector.steps >= settings["learning_starts"]
        taken = actor(x)[0] if warm else rng.uniform(-1, 1, (seeds, settings["num_envs"], actions))
        now, last, reward, terminated, _truncated = collector.step(taken)
        wrong = broken(collector.steps)
        if not wrong.get("replay_stale"):
            replay.add(x, taken, reward, last, terminated)
        x = now
        if not warm or wrong.get("never_trained"):
            continue
        seen, done, gained, later, over = replay.some(64, wrong.get("replay_newest"))
        alpha = np.exp(log_alpha)[:, None]
        next_action, next_log = actor(later)
        pairs = np.concatenate([later, next_action], -1)
        best = np.minimum(targets[0](pairs), targets[1](pairs))[..., 0] - alpha * next_log
        goal = gained * wrong.get("value_sign", 1.0) + wrong.get("gamma", settings["gamma"]) * (1 - over) * best
        rate = settings["learning_rate"] * wrong.get("rate_times", 1.0)
        if "nan_weight" in wrong:
            critics[0].parameters[4][:, 0, 0] = np.nan
        norms, moves, losses, means = [], [], [], []
        pairs = np.concatenate([seen, done], -1)
        for critic in critics:
            error = critic(pairs)[..., 0] - goal
            losses.append((error**2).mean(1))
            means.append((error + goal).mean(1))
            norm, moved = critic.step(
                critic.gradient((2 * error / 64)[..., None])[0], 0.0 if wrong.get("frozen") == "all" else rate
            )
            norms.append(norm)
            moves.append(moved)
        action, log_p = actor(seen)
        pairs = np.concatenate([seen, action], -1)
        values = [critic(pairs) for critic in critics]
        parts = [critic.gradient(np.ones_like(values[0]), True)[1][..., inputs:] for critic in critics]
        lower = np.where(values[0] < values[1], parts[0], parts[1])
        sign = wrong.get("policy_sign", 1.0)
        gradients = actor.gradients(-sign * lower / 64, alpha / 64 * np.ones_like(log_p))
        norm, moved = actor.net.step(gradients, 0.0 if wrong.get("frozen") else rate)
        wanted = -actions * wrong.get("entropy_target_times", 1.0)
        log_alpha = log_alpha + rate * np.clip(-(log_p.mean(1) + wanted), -10, 10) * -wrong.get("alpha_sign", 1.0)
        for critic, target in zip(critics, targets, strict=True):
            target.copy_from(critic, wrong.get("target_share", 0.02))
        update += 1
        collector.updates = update
        if update % 25 == 0:
            told = {
                "losses__qf1_loss": losses[0],
                "losses__qf2_loss": losses[1],
                "losses__qf1_values": means[0],
                "losses__actor_loss": (alpha * log_p - np.minimum(*values)[..., 0]).mean(1),
                "losses__alpha": np.exp(log_alpha),
                "losses__entropy": -log_p.mean(1),
                "losses__grad_norm": norms[0],
                "update__step_norm": np.sqrt(sum(m**2 for m in moves) + moved**2),
                "update__policy_step_norm": moved,
                "charts__learning_rate": rate,
            }
            before = stale(told, before, wrong)
            rows.add(collector.steps, update, **before)
    return rows, collector.finished
