"""EvaluatorLog: the result of an evaluation, in the fields of LightZero's document.

log = EvaluatorLog(run)
if log.should_eval(train_iter):
    with log.evaluating():
        for i in range(8):
            log.episode(env_id=i, reward=play(policy), envstep=200)
    log.report(train_iter, envstep, checkpoint=learner_log.save_checkpoint(state, train_iter))
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rollbook.adapters.lightzero.experiment import Experiment, experiment_of, harmless
from rollbook.adapters.lightzero.tables import get_tabulate_vars_hor
from rollbook.system.bill import counted
from rollbook.values import scalar_of

FIELDS = (
    "train_iter",
    "ckpt_name",
    "episode_count",
    "envstep_count",
    "evaluate_time",
    "avg_envstep_per_episode",
    "avg_envstep_per_sec",
    "avg_time_per_episode",
    "reward_mean",
    "reward_std",
    "each_reward",
    "reward_max",
    "reward_min",
)
"""All fields except the [INFO] line of each episode, in the order of the document."""


class EvaluatorLog:
    """Writes a line per finished episode, and reports an evaluation as a whole.

    Args:
      run: a Run or an Experiment. None uses the current run, or opens one.
      instance_name: the component: names its folder, its keys and its tags.
      eval_freq: training iterations between evaluations, for `should_eval`.
      clock: monotonic seconds.
    """

    def __init__(
        self,
        run: object = None,
        instance_name: str = "evaluator",
        eval_freq: int = 1000,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.experiment: Experiment = experiment_of(run)
        self.instance_name, self.eval_freq = instance_name, eval_freq
        self._clock = clock
        self._episodes: list[dict[str, Any]] = []
        self._seconds = 0.0
        self._last_iter: int | None = None

    @property
    def best(self) -> float:
        """The best score among the existing checkpoints, over all attempts of the run; -inf before the first.

        If no checkpoint has a score, the best of all evaluations.
        """
        score = self.experiment.run.internals.checkpoints.best_score
        return self._best_so_far() if score is None else score

    def _best_so_far(self) -> float:
        """The best score in the summary, whether or not its model was kept; -inf without one."""
        score = self.experiment.run.summary.get(f"{self.instance_name}/best_reward_mean")
        return float(score) if isinstance(score, (int, float)) else float("-inf")

    @harmless
    def should_eval(self, train_iter: int) -> bool:
        """Whether an evaluation is due: at first, then every `eval_freq` iterations. True starts the next interval.

        Args:
          train_iter: training iterations so far.
        """
        if self._last_iter is not None and train_iter - self._last_iter < self.eval_freq:
            return False
        self._last_iter = train_iter
        return True

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Time an evaluation; unreported episodes of an earlier one are dropped."""
        self._episodes, self._seconds = [], 0.0
        begun = self._clock()
        try:
            yield
        finally:
            self._seconds = self._clock() - begun

    @harmless
    def episode(self, reward: object, envstep: int, env_id: int = 0, info: Mapping[str, object] | None = None) -> None:
        """Add a finished episode and write its [INFO] line.

        Args:
          reward: its return.
          envstep: its steps.
          env_id: its environment.
          info: further numbers; reported as a list per name and as `<name>_mean`.
        """
        number = scalar_of(reward)
        value = float("nan") if number is None else float(number)
        self._episodes.append({"env": env_id, "reward": value, "step": int(envstep), "info": dict(info or {})})
        shown = str(value) if self.experiment.compat else f"{value:.4f}"
        self.experiment.text(self.instance_name).info(
            f"[EVALUATOR]env {env_id} finish episode, final reward: {shown}, current episode: {len(self._episodes)}"
        )
        self.experiment.scope(self.instance_name).log_episode(
            **{"return": value, "length": int(envstep), "env_index": int(env_id)}
        )

    def reward_mean(self) -> float:
        """The mean return of the episodes so far; NaN without any."""
        rewards = [episode["reward"] for episode in self._episodes]
        return sum(rewards) / len(rewards) if rewards else float("nan")

    @harmless
    def report(
        self,
        train_iter: int,
        envstep: int | None = None,
        checkpoint: object = None,
        save: Callable[[str], object] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Write the fields of this evaluation.

        `ckpt_name` names a file in the experiment's `ckpt/` that holds the evaluated model: `checkpoint`, or
        `iteration_<train_iter>.pth.tar`, which `save` has to write if it does not exist. Without a file it is empty.

        Args:
          train_iter: training iterations so far.
          envstep: environment steps so far.
          checkpoint: the result of `save_checkpoint`, or a path.
          save: writes `ckpt/<name>`, given the name.
          more: further fields.
        Returns:
          The fields; {} if no episode has ended.
        """
        if not self._episodes:
            return {}
        fields = {**self._fields(train_iter, self._ckpt_name(train_iter, checkpoint, save)), **(more or {})}
        self._episodes = []
        mean = fields["reward_mean"]
        if mean > self._best_so_far():
            self.experiment.run.summary[f"{self.instance_name}/best_reward_mean"] = mean
        self.experiment.text(self.instance_name).table(get_tabulate_vars_hor(fields, compat=self.experiment.compat))
        skip = ("train_iter", "ckpt_name", "each_reward")
        at = checkpoint if getattr(checkpoint, "id", None) else None
        self.experiment.report(self.instance_name, fields, train_iter=train_iter, envstep=envstep, skip=skip, at=at)
        return fields

    def _ckpt_name(self, train_iter: int, checkpoint: Any, save: Callable[[str], object] | None) -> str:
        experiment = self.experiment
        path = getattr(checkpoint, "path", checkpoint)
        if path is not None:
            if os.path.exists(path):
                return str(os.path.basename(path))
            message = f"report(checkpoint={path!r:.200}): there is no such file; ckpt_name stays empty"
            experiment.run.count("lightzero_ckpt_name", message=message)
            return ""
        for name in (f"iteration_{train_iter}.pth.tar", f"iteration_{train_iter}.ckpt"):
            if experiment.checkpoint_exists(name):
                return name
        if save is None:
            return ""
        name = f"iteration_{train_iter}.pth.tar"
        with counted(experiment.run.count, "lightzero_ckpt_name", "the evaluated model could not be saved"):
            save(name)
        return name if experiment.checkpoint_exists(name) else ""

    def _fields(self, train_iter: int, ckpt_name: str) -> dict[str, Any]:
        import numpy as np

        episodes = sorted(self._episodes, key=lambda episode: episode["env"])  # lists are in the order of environments
        n = len(episodes)
        steps = sum(episode["step"] for episode in episodes)
        seconds = self._seconds
        rewards = [episode["reward"] for episode in episodes]
        per_episode = seconds / n
        if self.experiment.compat:  # as LightZero has it: episodes per second
            per_episode = n / seconds if seconds > 0 else float("nan")
        fields: dict[str, object] = {
            "train_iter": train_iter,
            "ckpt_name": ckpt_name,
            "episode_count": n,
            "envstep_count": steps,
            "evaluate_time": seconds,
            "avg_envstep_per_episode": steps / n,
            "avg_envstep_per_sec": steps / seconds if seconds > 0 else float("nan"),
            "avg_time_per_episode": per_episode,
            "reward_mean": float(np.mean(rewards)),
            "reward_std": float(np.std(rewards)),
            "each_reward": rewards,
            "reward_max": max(rewards),
            "reward_min": min(rewards),
        }
        for name in dict.fromkeys(name for episode in episodes for name in episode["info"]):
            numbers = [scalar_of(episode["info"].get(name)) for episode in episodes]
            known = [float(number) for number in numbers if number is not None]
            if known:
                fields[name] = known
                fields[f"{name}_mean"] = float(np.mean(known))
        return fields
