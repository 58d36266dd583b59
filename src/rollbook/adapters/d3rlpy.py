"""d3rlpy with a rollbook run: a factory of logger adapters.

    dqn.fit(dataset, n_steps=10_000, logger_adapter=RollbookAdapterFactory(project="cartpole", seed=1))

To keep d3rlpy's own files as well: `CombineAdapterFactory([FileAdapterFactory(), RollbookAdapterFactory()])`.
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun, harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["RollbookAdapter", "RollbookAdapterFactory"]


class RollbookAdapterFactory:
    """A factory for `fit(logger_adapter=…)` and `fit_online(logger_adapter=…)`: makes one adapter per training.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one for each training.
      models: store the models that d3rlpy saves in the run's folder.
      gradients: log a histogram of each parameter's gradients once an epoch.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Default of `project`: "d3rlpy"; of `name`: the experiment's name.
    """

    def __init__(self, run: object = None, *, models: bool = True, gradients: bool = False, **run_options: Any) -> None:
        self._given, self._models, self._gradients, self._options = run, models, gradients, run_options

    def create(self, algo: Any, experiment_name: str, n_steps_per_epoch: int) -> RollbookAdapter:
        """Make the adapter of one training; d3rlpy calls this.

        Args:
          algo: the algorithm, for its gradients.
          experiment_name: d3rlpy's name of the training; the default name of the run.
          n_steps_per_epoch: not used; d3rlpy passes it to every factory.
        """
        joined = JoinedRun(
            "RollbookAdapterFactory", self._given, "d3rlpy", experiment_name, self._options, host="d3rlpy"
        )
        return RollbookAdapter(joined, algo, models=self._models, gradients=self._gradients)


class RollbookAdapter:
    """Writes one training to a run. Made by the factory; d3rlpy calls its methods.

    Arguments as in `d3rlpy.logging.LoggerAdapter`.

    Args:
      joined: the run to write to.
      algo: the algorithm, for its gradients.
      models, gradients: see `RollbookAdapterFactory`.
    """

    def __init__(self, joined: JoinedRun, algo: Any, *, models: bool, gradients: bool) -> None:
        self.run = joined.run
        self._joined, self._algo, self._models, self._gradients = joined, algo, models, gradients
        self._row: dict[str, object] = {}
        self._watched: int | None = None

    @harmless
    def write_params(self, params: Mapping[str, object]) -> None:
        """Add the parameters to the run's config."""
        self._joined.settings(params)

    @harmless
    def before_write_metric(self, epoch: int, step: int) -> None:
        """Begin a row."""
        self._row = {}

    @harmless
    def write_metric(self, epoch: int, step: int, name: str, value: float) -> None:
        """Add one number to the row, under its native name."""
        self._row[name] = value

    @harmless
    def after_write_metric(self, epoch: int, step: int) -> None:
        """Log the complete row, with the clocks `step` and `epoch`."""
        self._joined.log(self._row, step=step, epoch=epoch)
        self._row = {}

    def watch_model(self, epoch: int, step: int) -> None:
        """Log histograms of the gradients once an epoch, if `gradients` is set; d3rlpy calls this at every step."""
        if self._gradients and epoch != self._watched and self._algo.impl is not None:
            self._watched = epoch
            self._joined.keep("gradients", "keeping gradients", self._watch, step)

    def _watch(self, step: int) -> None:
        for name, gradient in self._algo.impl.modules.get_gradients():
            self.run.log_histogram(f"gradients/{name}", gradient, step=step)

    def save_model(self, epoch: int, algo: Any) -> None:
        """Save the model into the run's folder; d3rlpy passes its step as `epoch`."""
        if self._models:
            self._joined.keep("checkpoint", "saving a model", self._save, epoch, algo)

    def _save(self, step: int, algo: Any) -> None:
        write = lambda path: algo.save(str(path))  # noqa: E731
        self.run.run.save_checkpoint(write=write, rng=False, through="step", step=step)

    def close(self) -> None:
        """Finish the run if it was opened for this training."""
        self._joined.finish()
