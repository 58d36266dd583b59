"""DI-engine's learner, which LightZero also uses, reporting through a LearnerLog."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from rollbook.adapters.lightzero.collecting import lent
from rollbook.adapters.lightzero.experiment import Experiment
from rollbook.adapters.lightzero.learner import LearnerLog
from rollbook.system.bill import counted
from rollbook.system.guard import handled_by, tolerating
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
        with self._counted():
            if engine.rank == 0:
                self._show(hook, engine, engine.log_buffer)
        with self._counted():
            for buffer in engine.log_buffer.values():
                buffer.clear()

    def _counted(self) -> handled_by:
        return counted(self._experiment.run.count, "lightzero_learner", "an iteration could not be kept")

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
                self._write(theirs, hook, engine, self._redirected)
                return
            path, step = None, 0
            with self._counted():
                if engine.rank == 0 and engine.last_iter.val % hook._freq == 0:
                    instance = engine.instance_name
                    step = self._experiment.counters("gradient_step", engine.last_iter.val)
                    if engine.ckpt_name is None and (instance, step) in self._evaluated:
                        return
                    path = self._checkpoint_path(instance, engine.ckpt_name, step)
            if path is None:
                theirs(hook, engine)
                return
            hidden = path.with_name(f".partial-{os.getpid()}-{os.urandom(4).hex()}.pth.tar")  # torch asks for a suffix
            try:
                self._write(theirs, hook, engine, str(hidden.absolute()))
                with counted(self._experiment.run.count, "checkpoint", "a checkpoint could not be registered"):
                    os.replace(hidden, path)
                    self._register(path, step, engine.collector_envstep)
                    engine.info(f"{engine.instance_name} save ckpt in {path}")
            finally:
                with tolerating(OSError):
                    hidden.unlink(missing_ok=True)

        return save

    def _write(self, theirs: Callable[..., object], hook: LearnerHook, engine: BaseLearner, path: str) -> None:
        """Let their hook write to an absolute path, without its log line."""
        with lent(self._counted, engine, ckpt_name=path, info=lambda *_: None):
            theirs(hook, engine)

    def _checkpoint_path(self, instance: str, name: str | None, step: int) -> Path:
        """The file of a checkpoint that the learner saves, in a folder that exists."""
        folder = self._experiment.folder / ("ckpt" if instance == "learner" else f"ckpt_{instance}")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / (name or _free(folder, f"iteration_{step}.pth.tar"))

    def _register(self, path: Path, step: int, native_env_step: int) -> None:
        clocks = {"gradient_step": step}
        if native_env_step >= 0:
            clocks["env_step"] = self._experiment.counters("env_step", native_env_step)
        self._experiment.run.save_checkpoint(path=path, through=("gradient_step", "env_step"), **clocks)


def _free(folder: Path, name: str) -> str:
    stem, _, suffix = name.partition(".")
    number = 2
    while (folder / name).exists():
        name, number = f"{stem}_{number}.{suffix}", number + 1
    return name
