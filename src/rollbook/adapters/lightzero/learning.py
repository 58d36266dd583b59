"""DI-engine's learner, which LightZero also uses, reporting through a LearnerLog."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from rollbook.adapters.lightzero.experiment import Experiment
from rollbook.adapters.lightzero.learner import LearnerLog
from rollbook.system.bill import counted
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ding.worker import BaseLearner, LearnerHook


class LearnerBridge:
    """Replaces the learner's two hooks that show and save."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._logs: dict[str, LearnerLog] = {}
        self._last: dict[str, tuple[int, int]] = {}
        self._redirected: str | None = None  # where the hook should write instead
        self._evaluated: set[tuple[str, int]] = set()  # learners and iterations whose model was saved as evaluated

    def log(self, engine: BaseLearner, freq: int) -> LearnerLog:
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

    def show(self, hook: LearnerHook, engine: BaseLearner) -> None:
        """After every iteration: log all its values to the book; every `freq` iterations also write a table."""
        buffers = engine.log_buffer
        if engine.rank == 0:
            with counted(self._experiment.run.count, "lightzero_learner", "an iteration could not be kept"):
                self._show(hook, engine, buffers)
        for buffer in buffers.values():
            buffer.clear()

    def _show(self, hook: LearnerHook, engine: BaseLearner, buffers: Any) -> None:
        values = dict(buffers["scalar"])
        for name, value in values.items():  # their monitor only accepts floats, and other hooks may read it
            number = scalar_of(value)
            if number is not None:
                try:
                    setattr(engine.monitor, name, float(number))
                except (TypeError, AttributeError):
                    continue
        engine.monitor.time.step()
        iteration = self._experiment.counters("gradient_step", engine.last_iter.val)
        envstep = engine.collector_envstep
        if envstep >= 0:
            envstep = self._experiment.counters("env_step", envstep)
        self._last[engine.instance_name] = iteration, envstep
        for name, several in buffers["scalars"].items():
            parts = several.items() if hasattr(several, "items") else enumerate(several)
            values.update((f"{name}/{part}", value) for part, value in parts)
        self.log(engine, hook._freq).log(values, iteration, envstep)
        for name, array in buffers["histogram"].items():
            self._experiment.events.histogram(f"{engine.instance_name}/{name}", array, gradient_step=iteration)

    # -- checkpoints

    def behind(self, save_ckpt_fn: object) -> object:
        """The learner that owns this `save_checkpoint`; None for other functions, which are called unchanged."""
        engine = getattr(save_ckpt_fn, "__self__", None)
        is_learner = getattr(save_ckpt_fn, "__name__", "") == "save_checkpoint" and hasattr(engine, "ckpt_name")
        return engine if is_learner else None

    def save_evaluated(self, engine: BaseLearner, score: float, train_step: int, env_step: int) -> Any:
        """Save the model that was just evaluated as `iteration_<train_step>`, or under a similar free name.

        Returns:
          The checkpoint of `run.save_checkpoint`.
        """
        clocks = {"gradient_step": train_step, **({"env_step": env_step} if env_step >= 0 else {})}

        def write(path: Path) -> None:
            self._redirected = f"{path.absolute()}.pth.tar"
            try:
                engine.save_checkpoint(os.path.basename(self._redirected))
            finally:
                self._redirected = None

        checkpoint = self._experiment.run.save_checkpoint(
            write=write, score=score, through=("gradient_step", "env_step"), **clocks
        )
        if checkpoint.path is not None:
            self._evaluated.add((engine.instance_name, train_step))
            engine.info(f"{engine.instance_name} save ckpt in {checkpoint.path}")
        return checkpoint

    def saving(self, theirs: Callable[..., object]) -> Callable[..., object]:
        """Wrap the hook that saves: a registered file never changes under its row.

        A file is written under a hidden name and renamed when complete. `iteration_<n>` counts over all attempts of the
        run. If the model of iteration n was evaluated, its file stays: theirs is one step later.
        """

        @wraps(theirs)
        def save(hook: LearnerHook, engine: BaseLearner) -> None:
            if self._redirected is not None:
                _write(theirs, hook, engine, self._redirected)
                return
            if engine.rank != 0 or engine.last_iter.val % hook._freq != 0:
                theirs(hook, engine)
                return
            instance, step = engine.instance_name, self._experiment.counters("gradient_step", engine.last_iter.val)
            name = engine.ckpt_name or f"iteration_{step}.pth.tar"
            folder = self._experiment.folder / ("ckpt" if instance == "learner" else f"ckpt_{instance}")
            if engine.ckpt_name is None:
                if (instance, step) in self._evaluated:
                    return
                name = _free(folder, name)
            folder.mkdir(parents=True, exist_ok=True)
            hidden = folder / f".partial-{os.getpid()}-{os.urandom(4).hex()}.pth.tar"  # torch asks for a suffix
            try:
                _write(theirs, hook, engine, str(hidden.absolute()))
                os.replace(hidden, folder / name)
            finally:
                hidden.unlink(missing_ok=True)
            engine.info(f"{instance} save ckpt in {folder / name}")
            with counted(self._experiment.run.count, "checkpoint", "a checkpoint could not be registered"):
                self._register(folder / name, step, engine.collector_envstep)

        return save

    def _register(self, path: Path, step: int, native_env_step: int) -> None:
        clocks = {"gradient_step": step}
        if native_env_step >= 0:
            clocks["env_step"] = self._experiment.counters("env_step", native_env_step)
        self._experiment.run.save_checkpoint(path=path, through=("gradient_step", "env_step"), **clocks)


def _write(theirs: Callable[..., object], hook: LearnerHook, engine: BaseLearner, path: str) -> None:
    """Let their hook write to an absolute path, without its log line."""
    before = engine.ckpt_name
    engine.ckpt_name, engine.info = path, lambda *_: None
    try:
        theirs(hook, engine)
    finally:
        engine.ckpt_name = before
        del engine.info  # restores the method of the class


def _free(folder: Path, name: str) -> str:
    stem, _, suffix = name.partition(".")
    number = 2
    while (folder / name).exists():
        name, number = f"{stem}_{number}.{suffix}", number + 1
    return name
