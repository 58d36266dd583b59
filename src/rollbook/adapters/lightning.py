"""Lightning and Fabric with a rollbook run: a logger.

    from rollbook.adapters.lightning import RollbookLogger

    trainer = Trainer(logger=RollbookLogger("my-project", name="ppo", seed=1))
    fabric = Fabric(loggers=RollbookLogger("my-project"))

The class is a `Logger` of the package that the program has loaded: `lightning`, `pytorch_lightning` or
`lightning_fabric`.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from rollbook.adapters._run import JoinedRun, go_on_at, harmless
from rollbook.schema.clocks import as_clock
from rollbook.system.guard import tolerating
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

    class _Base:
        pass

    def _rank_zero(method: F) -> F:
        return method

    def _rank_zero_experiment(method: F) -> F:
        return method
else:
    _PACKAGES = ("lightning.pytorch", "pytorch_lightning", "lightning.fabric", "lightning_fabric")
    _loaded = [name for name in _PACKAGES if f"{name}.loggers" in sys.modules]
    _there = [name for name in _PACKAGES if not _loaded and find_spec(name.partition(".")[0]) is not None]
    _package = (_loaded or _there or ["lightning.pytorch"])[0]
    _host = need(f"{_package}.loggers.logger", extra="lightning", why="RollbookLogger")
    _Base, _rank_zero_experiment = _host.Logger, _host.rank_zero_experiment
    _rank_zero = need(f"{_package}.utilities.rank_zero", extra="lightning", why="RollbookLogger").rank_zero_only

__all__ = ["RollbookLogger"]


class RollbookLogger(_Base):
    """A logger of Lightning and Fabric that writes to a run. Only the process of rank 0 opens and writes one.

    Args:
      project: of a run that is opened here.
      run: a run or a scope of a run. None uses the current run, or opens one at the first use.
      save_dir: where Lightning puts its own files (`<save_dir>/<run name>/<run id>/checkpoints`). With None, the same
        folders in the trainer's `default_root_dir`.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of `name`: the name of the program.
    """

    def __init__(
        self,
        project: str = "lightning",
        *,
        run: object = None,
        save_dir: str | os.PathLike[str] | None = None,
        **run_options: Any,
    ) -> None:
        super().__init__()
        self._project, self._given, self._options = project, run, run_options
        self._save_dir = None if save_dir is None else os.fspath(save_dir)
        self._joined: JoinedRun | None = None
        self._saved: dict[str, float] = {}
        self._begins_to_fit = False
        if run is not None:
            self._open()

    def _open(self) -> JoinedRun:
        if self._joined is None:
            from rollbook.run.arguments import program_name

            self._joined = JoinedRun(
                "RollbookLogger",
                self._given,
                self._project,
                program_name(),
                self._options,
                host=_Base.__module__.partition(".")[0],
            )
            seed = os.environ.get("PL_GLOBAL_SEED", "")  # of seed_everything
            self._joined.settings({}, int(seed) if seed.isdecimal() else None)
        return self._joined

    def _go_on(self) -> JoinedRun:
        """The run, continued if an earlier `fit` or `test` of this logger ended it."""
        joined = self._open()
        joined.go_on()
        return joined

    # -- what Lightning reads

    @property
    @_rank_zero_experiment
    def experiment(self) -> Any:
        """The run. On ranks other than 0: Lightning's object that accepts every call and does nothing."""
        return self._open().run

    @property
    def name(self) -> str:
        """The run's name; Lightning uses it as a folder for its checkpoints."""
        return str(getattr(getattr(self.experiment, "run", None), "name", self._project))

    @property
    def version(self) -> str:
        """The run's id; Lightning uses it as a folder for its checkpoints."""
        return str(getattr(getattr(self.experiment, "run", None), "id", ""))

    @property
    def save_dir(self) -> str | None:
        """Where Lightning's own files go, as given."""
        return self._save_dir

    @property
    def root_dir(self) -> str | None:
        """The same under Fabric's name."""
        return self._save_dir

    # -- what Lightning logs

    @_rank_zero
    @harmless
    def log_metrics(self, metrics: Mapping[str, object], step: int | None = None) -> None:
        """Log one row under the native keys, with the clock `step`, and `epoch` if Lightning passes one.

        Args:
          metrics: native key -> number. A whole `epoch` becomes the clock of that name.
          step: Lightning's global step. None: the run's clock `step` keeps its reading.
        """
        self._go_on().keep("metrics", "keeping metrics", self._row, metrics, step)

    def _row(self, metrics: Mapping[str, object], step: int | None) -> None:
        values = dict(metrics)
        epoch = as_clock(values.get("epoch"))
        if epoch is not None:
            del values["epoch"]
        if self._begins_to_fit and step is not None:
            self._begins_to_fit = False
            go_on_at(self._open().run, "step", int(step) - 1)  # behind the last step of `ckpt_path`
        self._go_on().log(values, step=step, epoch=epoch)

    @_rank_zero
    @harmless
    def log_hyperparams(self, params: Mapping[str, object] | Namespace | None, *args: Any, **kwargs: Any) -> None:
        """Add the parameters to the run's config. Existing entries stay.

        Args:
          params: a dict or a Namespace; None adds nothing.
          args: not used.
          kwargs: further settings; without `params` they are not used.
        """
        if params is not None:
            joined = self._go_on()
            joined.settings(params)
            joined.settings(kwargs)

    @_rank_zero
    def after_save_checkpoint(self, checkpoint_callback: object) -> None:
        """Register the files that a ModelCheckpoint saved since the last call, without moving them.

        Args:
          checkpoint_callback: the ModelCheckpoint whose list of files is read.
        """
        joined = self._go_on()
        joined.keep("checkpoint", "registering a checkpoint", self._register, joined.run, checkpoint_callback)

    def _register(self, run: Any, callback: Any) -> None:
        found: dict[str, Any] = {}
        for path, score in _saved_by(callback):
            if path and os.path.exists(path) and self._saved.get(path) != os.path.getmtime(path):
                found[path] = score
        for path, score in sorted(found.items(), key=lambda item: os.path.getmtime(item[0])):
            self._saved[path] = os.path.getmtime(path)
            run.run.save_checkpoint(
                path=path,
                score=None if score is None else float(score),
                higher_is_better=getattr(callback, "mode", "min") == "max",
                rng=False,
                through="step",
            )

    @_rank_zero
    def finalize(self, status: str) -> None:
        """Finish the run if it was opened here. Lightning calls this after each `fit`, `validate` and `test`; the next
        one of this logger continues the run.

        Args:
          status: Lightning's word for how it ended.
        """
        if self._joined is not None:
            from rollbook.run.failure import status_of

            kind = sys.exc_info()[0]
            failed = isinstance(status, str) and status == "failed"
            self._joined.finish(status_of(kind) if kind is not None else "crashed" if failed else "finished")

    @_rank_zero
    def log_graph(self, model: object, input_array: object = None) -> None:
        """A `fit`, `validate` or `test` begins: continue the run if an earlier one ended it. The graph is not kept.

        The first row of a `fit` says where it goes on: later rows of a resumed run are abandoned. A `test` of an early
        checkpoint abandons nothing.

        Args:
          model: its trainer knows what begins.
          input_array: not used.
        """
        with tolerating(Exception):  # a model without a trainer raises
            trainer: Any = getattr(model, "trainer", None)
            self._begins_to_fit = str(getattr(trainer.state.fn, "value", "")) == "fit"
        if self._joined is not None:
            self._joined.go_on()

    @_rank_zero
    def close(self) -> None:
        """Finish the run if it was opened here. At the end of the program this happens automatically."""
        if self._joined is not None:
            self._joined.finish()


def _saved_by(callback: Any) -> Iterator[tuple[str, Any]]:
    """(path, score) of the files that a ModelCheckpoint lists, read as Lightning's own loggers read them."""
    yield getattr(callback, "last_model_path", ""), getattr(callback, "current_score", None)
    yield getattr(callback, "best_model_path", ""), getattr(callback, "best_model_score", None)
    yield from getattr(callback, "best_k_models", {}).items()
