"""DI-engine's learner, which LightZero uses as well, reporting through a LearnerLog."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from rollbook.adapters.lightzero.experiment import Experiment
from rollbook.adapters.lightzero.learner import LearnerLog
from rollbook.values import scalar_of

__all__ = ["LearnerBridge"]


class LearnerBridge:
    """Stands behind the learner's two hooks that show and save.

    Attributes:
      score: asked for the score of a model that is saved as the best one.
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._logs: dict[str, LearnerLog] = {}
        self._last: dict[str, tuple[int, int]] = {}
        self.score: Callable[[], float | None] = lambda: None

    def log(self, engine: Any, freq: int) -> LearnerLog:
        """The log of a learner."""
        name = engine.instance_name
        if name not in self._logs:
            self._logs[name] = LearnerLog(
                self._experiment, name, show_freq=freq, monitor_vars=engine.policy.monitor_vars(), rank=engine.rank
            )
        return self._logs[name]

    def finish(self) -> None:
        """Show the averages of the iterations since the last table."""
        for instance, (iteration, envstep) in self._last.items():
            if self._logs[instance].pending:
                self._logs[instance].show(iteration, envstep)

    def show(self, hook: Any, engine: Any) -> None:
        """After every iteration: all it reported goes to the book; every `freq` iterations there is a table."""
        buffers = engine.log_buffer
        if engine.rank == 0:
            try:
                self._show(hook, engine, buffers)
            except Exception as err:
                self._experiment.run.count("lightzero_learner", message=f"an iteration could not be kept: {err}")
        for buffer in buffers.values():
            buffer.clear()

    def _show(self, hook: Any, engine: Any, buffers: Any) -> None:
        values = dict(buffers["scalar"])
        for name, value in values.items():  # their monitor takes floats alone, and other hooks may read it
            number = scalar_of(value)
            if number is not None:
                try:
                    setattr(engine.monitor, name, float(number))
                except (TypeError, AttributeError):
                    continue
        engine.monitor.time.step()
        iteration, envstep = engine.last_iter.val, engine.collector_envstep
        self._last[engine.instance_name] = iteration, envstep
        for name, several in buffers["scalars"].items():
            parts = several.items() if hasattr(several, "items") else enumerate(several)
            values.update((f"{name}/{part}", value) for part, value in parts)
        self.log(engine, hook._freq).log(values, iteration, envstep)
        for name, array in buffers["histogram"].items():
            self._experiment.events.add_histogram(f"{engine.instance_name}/{name}", array, iteration)

    def saving(self, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """The hook that saves: what it wrote is registered with the run, the best model with its score."""

        @wraps(theirs)
        def save(hook: Any, engine: Any) -> None:
            theirs(hook, engine)
            if engine.rank != 0 or engine.last_iter.val % hook._freq != 0:
                return
            name = engine.ckpt_name or f"iteration_{engine.last_iter.val}.pth.tar"
            folder = "ckpt" if engine.instance_name == "learner" else f"ckpt_{engine.instance_name}"
            path = self._experiment.folder / folder / name
            if not os.path.exists(path):
                return
            clocks = {"gradient_step": engine.last_iter.val}
            if engine.collector_envstep >= 0:
                clocks["env_step"] = engine.collector_envstep
            score = self.score() if name.startswith("ckpt_best") else None
            self._experiment.run.save_checkpoint(path=path, score=score, **clocks)

        return save
