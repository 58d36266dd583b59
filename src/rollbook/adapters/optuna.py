"""Optuna with a rollbook run: a callback that records a study, one row per trial.

    from rollbook.adapters.optuna import RollbookCallback

    study.optimize(objective, n_trials=100, callbacks=[RollbookCallback(project="sweep", name="tpe")])

A trial is a configuration. To record what the objective trains, open a separate run in the objective.
"""

from __future__ import annotations

import threading

from rollbook.adapters._run import JoinedRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RollbookCallback"]


class RollbookCallback:
    """A callback of `study.optimize`. Threads of `n_jobs` may share it.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: arguments of `rollbook.init`. If any is given, a new run is opened instead of using the current one.
        Defaults: `project` is "optuna" and `name` the name of the program.
    Raises:
      BadInput: `run` has another type, or an option cannot be used.
    """

    def __init__(self, run: object = None, **run_options: Any) -> None:
        from rollbook.run.arguments import program_name

        self._joined = JoinedRun("RollbookCallback", run, "optuna", program_name(), run_options, host="optuna")
        self.run: Any = self._joined.run
        self._lock, self._has_settings = threading.Lock(), False

    def __call__(self, study: Any, trial: Any) -> None:
        """Log one row for a trial that ended, with the trial's number as the clock `step`.

        Args:
          study: the study; its settings become the run's config at the first call.
          trial: the trial that ended (`FrozenTrial`).
        """
        if self.run is None:
            return
        with self._lock:
            if not self._has_settings:
                self._has_settings = True
                self._joined.keep("config", "keeping the study's settings", self._keep_settings, study)
            self._joined.keep("trial", "keeping a trial", self._keep_trial, study, trial)

    def close(self) -> None:
        """Finish the run if it was opened here. At the end of the program this happens automatically."""
        self._joined.finish()

    def _keep_settings(self, study: Any) -> None:
        settings = {
            "study_name": study.study_name,
            "directions": [direction.name.lower() for direction in study.directions],
            "sampler": type(study.sampler).__name__,
            "pruner": type(study.pruner).__name__,
        }
        self._joined.settings(settings)

    def _keep_trial(self, study: Any, trial: Any) -> None:
        state = trial.state.name
        row: dict[str, object] = {"state": state}
        values = list(trial.values or ())  # a trial that failed has none, whatever the study's metrics are called
        names = list(getattr(study, "metric_names", None) or ([] if len(values) != 1 else ["value"]))
        names += [f"value_{n}" for n in range(len(names), len(values))]
        scope = (
            "" if state == "COMPLETE" else f"{state.lower()}/"
        )  # Optuna calls a pruned trial's last report its value
        row.update({f"{scope}{name}": value for name, value in zip(names, values, strict=False)})
        row.update({f"params/{name}": value for name, value in trial.params.items()})
        if trial.duration is not None:
            row["duration_seconds"] = trial.duration.total_seconds()
        self._joined.log(row, step=trial.number)
        if state == "COMPLETE" and len(study.directions) == 1:
            best = study.best_trial
            self.run.run.summary.update(
                {"best_value": best.value, "best_trial": best.number, "best_params": dict(best.params)}
            )
