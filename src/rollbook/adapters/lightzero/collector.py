"""CollectorLog: the collection of episodes, in the 18 fields of LightZero's document.

log = CollectorLog(run)
while training:
    with log.collecting():
        for episode in collect(policy):
            log.episode(reward=episode.reward, envstep=len(episode))
    if log.is_due(train_iter):
        log.report(train_iter)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rollbook.adapters.lightzero.experiment import Experiment, experiment_of, harmless
from rollbook.values import scalar_of

FIELDS = (
    "episode_count",
    "envstep_count",
    "train_sample_count",
    "avg_envstep_per_episode",
    "avg_sample_per_episode",
    "avg_envstep_per_sec",
    "avg_train_sample_per_sec",
    "avg_episode_per_sec",
    "collect_time",
    "reward_mean",
    "reward_std",
    "each_reward",
    "reward_max",
    "reward_min",
    "total_envstep_count",
    "total_train_sample_count",
    "total_episode_count",
    "total_duration",
)
"""All fields, in the order of the document."""


class CollectorLog:
    """Gathers finished episodes and reports them, per stage and in total.

    A stage is everything collected since the last report. Times are seconds of wall time spent in `collecting()`
    blocks; without such blocks, the seconds of the episodes themselves. A resumed run continues its totals.

    Args:
      run: a Run or an Experiment. None uses the current run, or opens one.
      instance_name: the component: names its folder, its keys and its tags.
      print_freq: training iterations between reports, for `is_due`.
      clock: monotonic seconds.
    """

    def __init__(
        self,
        run: object = None,
        instance_name: str = "collector",
        print_freq: int = 100,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.experiment: Experiment = experiment_of(run)
        self.instance_name, self.print_freq = instance_name, print_freq
        self._clock = clock
        self._episodes: list[dict[str, Any]] = []
        self._stage_seconds = 0.0
        self._begun: float | None = None
        self._last_iter = 0
        totals = ("total_envstep_count", "total_train_sample_count", "total_episode_count", "total_duration")
        self.totals: dict[str, Any] = {name: self.experiment.last(f"{instance_name}/{name}") or 0 for name in totals}
        # An attempt that ended between two reports has episodes in the book that no report counted.
        episodes, steps = self.experiment.episodes_before(instance_name)
        missed = max(0, steps - self.totals["total_envstep_count"])
        self.totals["total_episode_count"] = max(self.totals["total_episode_count"], episodes)
        self.totals["total_envstep_count"] += missed
        self.totals["total_train_sample_count"] += missed

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Time a collection. Blocks must not overlap."""
        self._begun = self._clock()
        try:
            yield
        finally:
            self._lap()
            self._begun = None

    @harmless
    def episode(
        self,
        reward: object,
        envstep: int,
        train_sample: int | None = None,
        seconds: float | None = None,
        **more: object,
    ) -> None:
        """Add a finished episode.

        Args:
          reward: the sum of its rewards.
          envstep: the number of its environment steps.
          train_sample: the number of training samples from it. None: one per step.
          seconds: its duration.
          more: further numbers, reported as means (visit_entropy …).
        """
        number = scalar_of(reward)
        episode = {
            "reward": float("nan") if number is None else float(number),
            "step": int(envstep),
            "train_sample": int(envstep if train_sample is None else train_sample),
            "time": float(seconds or 0.0),
            **{name: value for name, value in more.items() if scalar_of(value) is not None},
        }
        self._episodes.append(episode)
        self.totals["total_envstep_count"] += episode["step"]
        self.totals["total_train_sample_count"] += episode["train_sample"]
        self.totals["total_episode_count"] += 1
        columns = {"return": episode["reward"], "length": episode["step"]}
        if seconds is not None:
            columns["seconds"] = episode["time"]
        self.experiment.scope(self.instance_name).log_episode(**columns)

    @property
    def pending(self) -> int:
        """How many episodes wait for a report."""
        return len(self._episodes)

    @harmless
    def is_due(self, train_iter: int) -> bool:
        """Whether a report is due: `print_freq` iterations after the last, if an episode has ended since.

        Args:
          train_iter: training iterations so far.
        """
        return bool(self._episodes) and train_iter - self._last_iter >= self.print_freq

    @harmless
    def report(
        self, train_iter: int, envstep: int | None = None, more: Mapping[str, object] | None = None
    ) -> dict[str, object]:
        """Write the fields of this stage, and begin the next.

        Args:
          train_iter: training iterations so far.
          envstep: environment steps so far; None takes the total of this log.
          more: further fields.
        Returns:
          The fields; {} if no episode has ended.
        """
        if not self._episodes:
            return {}
        self._lap()
        fields = {**self._fields(), **(more or {})}
        self._last_iter = train_iter
        self._episodes, self._stage_seconds = [], 0.0
        step = self.totals["total_envstep_count"] if envstep is None else envstep
        compat = self.experiment.compat  # the layout of LightZero 0.2.0 as released
        lines = "\n".join(f"{'' if compat else '  '}{name}: {value}" for name, value in fields.items())
        heading = "collect end:" if compat else "Collector Training Summary:"
        self.experiment.text(self.instance_name).table(f"{heading}\n{lines}")
        self.experiment.report(self.instance_name, fields, train_iter=train_iter, envstep=step, skip=("each_reward",))
        return fields

    def _lap(self) -> None:
        if self._begun is not None:
            now = self._clock()
            self._stage_seconds += now - self._begun
            self.totals["total_duration"] += now - self._begun
            self._begun = now

    def _fields(self) -> dict[str, object]:
        import numpy as np

        episodes = self._episodes
        n = len(episodes)
        steps, samples = sum(e["step"] for e in episodes), sum(e["train_sample"] for e in episodes)
        seconds = self._stage_seconds
        if not seconds:  # the collection was not timed
            seconds = sum(e["time"] for e in episodes)
            self.totals["total_duration"] += seconds
        rewards = [e["reward"] for e in episodes]

        def per_second(count: float) -> float:
            return count / seconds if seconds > 0 else float("nan")

        fields = {
            "episode_count": n,
            "envstep_count": steps,
            "train_sample_count": samples,
            "avg_envstep_per_episode": steps / n,
            "avg_sample_per_episode": samples / n,
            "avg_envstep_per_sec": per_second(steps),
            "avg_train_sample_per_sec": per_second(samples),
            "avg_episode_per_sec": per_second(n),
            "collect_time": seconds,
            "reward_mean": float(np.mean(rewards)),
            "reward_std": float(np.std(rewards)),
            "each_reward": rewards,
            "reward_max": max(rewards),
            "reward_min": min(rewards),
            **self.totals,
        }
        own = {"reward", "step", "train_sample", "time"}
        for name in dict.fromkeys(name for episode in episodes for name in episode if name not in own):
            fields[name] = float(np.mean([float(e[name]) for e in episodes if name in e]))
        return fields
