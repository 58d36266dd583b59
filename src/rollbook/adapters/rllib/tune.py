"""RollbookTune: one run per trial, written by the driver, which survives failed trials.

tune.Tuner("PPO", param_space=config, run_config=tune.RunConfig(name="plant", callbacks=[RollbookTune(dir="runs")]))
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from ray.tune.logger import LoggerCallback

from rollbook.adapters._run import lies_beside, reached, reported
from rollbook.adapters.rllib.data import Evaluations, take_episode_data
from rollbook.adapters.rllib.files import write_episode_data
from rollbook.adapters.rllib.identity import RunOptions, names_of, open_run, plain_config, run_id
from rollbook.adapters.rllib.walk import Walker, clocks_of, file_step, flatten_result
from rollbook.errors import BadInput
from rollbook.system.bill import Bill, counted
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ray.tune.experiment import Trial
    from ray.tune.logger import Logger as LegacyLogger

    from rollbook.adapters.rllib.walk import Patterns


def _bill_of_callback(self: Any, name: str, err: Exception) -> None:
    self._count.failed("rllib/tune", f"{type(self).__name__}.{name}()", err)


_harmless = reported(_bill_of_callback)


class RollbookTune(LoggerCallback):  # type: ignore[misc]
    """Logs the results of every trial (all values, or those that pass the filters), its checkpoints and its end.

    Its hooks are called by Tune. Arguments as in `ray.tune.logger.LoggerCallback`.

    Together with `callbacks(...)` in the algorithm's configuration, both write one run; `dir` and `project` then come
    from there unless given. No exception leaves this class: Tune would end the experiment.

    Args:
      dir, project: see `callbacks`.
      include, exclude: regular expressions on the names of results.
      episode_data: write `<trial>/episode_data/data-<step>.json` for each result; needs `callbacks(episode_data=True)`.
        The episodes are removed from the result, so that result.json does not contain them again.
      options: further arguments of `rollbook.init`.
    Raises:
      BadInput: an argument cannot be used.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str] | None = None,
        project: str | None = None,
        *,
        include: Patterns = None,
        exclude: Patterns = None,
        episode_data: bool = False,
        **options: object,
    ) -> None:
        if episode_data not in (True, False):
            raise BadInput(f"episode_data={episode_data!r:.80}: pass True or False")
        self._given = (dir, project)
        self._settings = RunOptions(dir, project, None, options)
        self._filters = (include, exclude)
        Walker(include, exclude)
        self._episode_data = bool(episode_data)
        self._trials: dict[str, _Trial] = {}
        self._ending: list[threading.Thread] = []
        self._count = Bill()

    def __getstate__(self) -> dict[str, object]:
        """Tune pickles its callbacks to resume the experiment; runs stay in this process."""
        return {**self.__dict__, "_trials": {}, "_ending": [], "_count": Bill()}

    # -- hooks of Tune

    @_harmless
    def on_step_begin(self, iteration: int, trials: list[Trial], **_: object) -> None:
        """Open the runs of trials that are about to start, before the trial's own process does."""
        for trial in trials:
            self._guard("opening a trial's run", partial(self._look, trial))

    def _look(self, trial: Trial) -> None:
        known = self._trials.get(trial.trial_id)
        if known is not None and known.config is not trial.config:  # the scheduler has exchanged it
            self._guard("going on with other settings", partial(known.went_on, trial))
        if known is None and trial.status in ("PENDING", "RUNNING") and _is_placed(trial):
            self._of(trial)

    @_harmless
    def log_trial_start(self, trial: Trial) -> None:
        """The trial's process has started, maybe again: from a checkpoint of another trial, with its settings."""
        known = self._trials.get(trial.trial_id)
        if known is None:
            self._guard("opening a trial's run", lambda: self._of(trial))
        else:
            self._guard("going on with other settings", lambda: known.went_on(trial))

    @_harmless
    def on_trial_recover(self, iteration: int, trials: list[Trial], trial: Trial, **_: object) -> None:
        """The trial failed and will be retried: rows after its checkpoint are hidden, and kept."""
        self._guard("going back to the checkpoint", lambda: self._of(trial).rewind(trial))

    @_harmless
    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, object]) -> None:
        """Log one result."""
        self._guard("recording a result", lambda: self._of(trial).result(trial, result, self._episode_data))

    @_harmless
    def log_trial_save(self, trial: Trial) -> None:
        """The trial has saved a checkpoint."""
        self._guard("registering a checkpoint", lambda: self._of(trial).saved(trial))

    @_harmless
    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        """The trial has ended. Its run is sealed while the experiment continues."""
        known = self._trials.pop(trial.trial_id, None)
        if known is None:
            return
        self._guard("ending a trial's run", lambda: known.last_words(trial, failed))
        thread = threading.Thread(target=known.finish, args=(failed,), name="rollbook-finish", daemon=True)
        thread.start()
        self._ending = [ending for ending in self._ending if ending.is_alive()] + [thread]

    @_harmless
    def on_experiment_end(self, trials: list[Trial], **_: object) -> None:
        """Wait until the runs are sealed; open runs were interrupted."""
        for known in self._trials.values():
            self._guard("ending a trial's run", partial(known.run.finish, "killed"))
        self._trials = {}
        for thread in self._ending:
            thread.join(timeout=60)
        self._ending = []

    # -- inside

    def _of(self, trial: Trial) -> _Trial:
        known = self._trials.get(trial.trial_id)
        if known is None:
            known = self._trials[trial.trial_id] = _Trial(trial, self._settings_for(trial), Walker(*self._filters))
        return known

    def _settings_for(self, trial: Trial) -> RunOptions:
        """The settings of the trial's own callback, where this one has none."""
        theirs = _callback_settings(trial.config)
        if theirs is None:
            return self._settings
        dir, project = self._given
        chosen = RunOptions(
            self._settings.dir if dir is not None else theirs.dir,
            project if project is not None else theirs.project,
            theirs.name,
            {**theirs.options, **self._settings.options},
        )
        if (chosen.dir, chosen.project) != (theirs.dir, theirs.project):
            self._count(
                "rllib/two_places",
                message=f"RollbookTune writes to {chosen.dir} (project {chosen.project}), the callback in the "
                f"configuration to {theirs.dir} (project {theirs.project}): each trial gets two runs. Name the place "
                "once",
            )
        return chosen

    def _guard(self, what: str, work: Callable[[], object]) -> None:
        with counted(self._count, "rllib/tune", f"{what} failed", "; the experiment goes on"):
            work()


class _Trial:
    """The run of one trial."""

    def __init__(self, trial: Trial, settings: RunOptions, walker: Walker) -> None:
        experiment, name = names_of(trial.storage)
        self.run = open_run(
            settings,
            experiment=experiment,
            trial=name,
            trial_name=str(trial),
            config=plain_config(trial.config),
            user=self,
        )
        self.config: object = trial.config
        self._settings = plain_config(trial.config)
        self._origin = ""
        self._walker, self._evaluations = walker, Evaluations()
        self._is_function = _is_function(trial)
        self._saved: dict[str, str] = {}
        if self.run.resumed and self.run.internals.writer.main:
            self.rewind(trial)  # before anything is written, so this attempt begins at the checkpoint
        lies_beside(self.run, trial, "local_path")
        self.run.summary["trial_id"] = str(trial.trial_id)

    def result(self, trial: Trial, result: dict[str, object], episode_data: bool) -> None:
        fresh = self._evaluations.without_repeated(result)
        if episode_data:
            texts = take_episode_data(fresh)
            write_episode_data(trial.local_path, file_step(result), texts)
        if self.run.internals.writer.main:  # otherwise the trial's own callback came first and logs its results
            self._walker.log(self.run, fresh, self._unreported(fresh) if self._is_function else None)

    def _unreported(self, result: dict[str, object]) -> Iterator[tuple[str, object]]:
        """The values that the algorithm inside the function has not logged itself, in this run and at this step."""
        clocks, latest = clocks_of(result), self.run.book.latest()
        axis = "env_step" if "env_step" in clocks else "epoch"
        known = {
            name for name, (_, at, _) in latest.items() if at.get(axis) is not None and at[axis] == clocks.get(axis)
        }
        leaves = list(flatten_result(result))
        whole = any(name in known for name, _ in leaves)
        for name, value in leaves:
            if name not in known and not (whole and scalar_of(value) is None):
                yield name, value

    def saved(self, trial: Trial) -> None:
        checkpoint = trial.checkpoint
        path = getattr(checkpoint, "path", None)
        if path is None or path in self._saved:
            return
        if not os.path.exists(path):
            self.run.note(f"checkpoint at {path}", **clocks_of(trial.last_result or {}))
            return
        clocks: dict[str, Any] = dict(clocks_of(trial.last_result or {}))
        saved = self.run.save_checkpoint(path=path, through=("epoch", "env_step"), **clocks)
        self._saved[str(path)] = saved.id

    def rewind(self, trial: Trial) -> None:
        """Rewind to the checkpoint from which the trial will continue; without one, to the beginning."""
        checkpoint = trial.checkpoint
        path = str(getattr(checkpoint, "path", "") or "")
        identity = self._saved.get(path) or (path and self.run.internals.saved_as(path))
        if identity:
            self.run.restore(identity, random_states=False)
        elif path:
            iteration = (_checkpoint_metrics(trial) or {}).get("training_iteration")
            if iteration is not None:
                self.run.rewind(epoch=int(iteration))
        else:
            self.run.internals.begin_anew(f"the trial {trial} begins anew, without a checkpoint")

    def went_on(self, trial: Trial) -> None:
        """Population-based training has given the trial the checkpoint of another one, or other settings: begin a new
        attempt with that configuration, at the iteration of the checkpoint.

        Ray calls no hook for it (2.60 has `on_trial_restore` and never calls it), so it is seen before a step, and
        where the trial's process starts.
        """
        settings, before = plain_config(trial.config), self._settings
        path = str(getattr(trial.checkpoint, "path", "") or "")
        own = self._saved.get(path) or (path and self.run.internals.saved_as(path))
        names = sorted(name for name in {*settings, *before} if settings.get(name) != before.get(name))
        is_foreign = bool(path) and not own and path != self._origin
        self.config, self._settings = trial.config, settings
        if (not names and not is_foreign) or not self.run.internals.writer.main:
            return
        metrics = _checkpoint_metrics(trial) or {}
        if own:
            self.run.restore(own, random_states=False)
        else:
            reading = min(int(metrics.get("training_iteration") or 0), reached(self.run).get("epoch", 0))
            self.run.rewind(epoch=reading)
        for name in names:
            if name in settings:
                self.run.config[name] = settings[name]
            else:
                self.run.config.pop(name, None)
        self.run.internals.write_about()
        changes = ", ".join(f"{name} {before.get(name)} -> {settings.get(name)}" for name in names)
        if is_foreign:
            self._origin = path
            donor = os.path.basename(os.path.dirname(path))
            experiment, _ = names_of(trial.storage)
            origin = f"trial {donor} (run {run_id(experiment, donor)})" if experiment else path
            at = metrics.get("training_iteration")
            self.run.note(
                f"goes on from a checkpoint of {origin} at training_iteration {at}; {changes or 'no changes'}"
            )
        else:
            self.run.note(f"goes on with other settings: {changes}")

    def last_words(self, trial: Trial, failed: bool) -> None:
        for name, value in clocks_of(trial.last_result or {}).items():
            self.run.summary[f"last/{name}"] = value
        error = getattr(trial, "error_file", None)
        if failed and error and os.path.exists(error):
            with open(error, encoding="utf-8", errors="replace") as file:
                self.run.log_text("error", file.read()[-20_000:])

    def finish(self, failed: bool) -> None:
        self.run.finish("crashed" if failed else "finished")


class OldLoggers(LoggerCallback):  # type: ignore[misc]
    """Runs loggers with the older interface (`_init`, `on_result`, `close`) in today's Tune.

    tune.run("PPO", config=..., callbacks=[OldLoggers(NeptuneLogger)])      # was: loggers=DEFAULT_LOGGERS + (…,)

    A logger that fails is reported once and not used again in its trial; the experiment continues.

    Args:
      classes: instantiated once per trial as `cls(config, logdir, trial)`.
    """

    def __init__(self, *classes: object) -> None:
        self._classes = classes
        self._loggers: dict[str, list[LegacyLogger]] = {}
        self._count = Bill()

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_loggers": {}, "_count": Bill()}

    @_harmless
    def log_trial_start(self, trial: Trial) -> None:
        """Create the loggers of a trial; a trial that starts again keeps its loggers."""
        if trial.trial_id not in self._loggers:
            trial.init_local_path()
            made = [
                self._try(lambda c=logger_class: c(dict(trial.config), trial.local_path, trial))
                for logger_class in self._classes
            ]
            self._loggers[trial.trial_id] = [logger for logger in made if logger is not None]

    @_harmless
    def log_trial_result(self, iteration: int, trial: Trial, result: dict[str, object]) -> None:
        """Pass a result to them."""
        working = []
        for logger in self._loggers.get(trial.trial_id, ()):
            if self._try(lambda logger=logger: (logger.on_result(result),)) is not None:
                working.append(logger)
        self._loggers[trial.trial_id] = working

    @_harmless
    def log_trial_end(self, trial: Trial, failed: bool = False) -> None:
        """Close them."""
        for logger in self._loggers.pop(trial.trial_id, ()):
            self._try(logger.close)

    def _try(self, work: Any) -> object:
        with counted(self._count, "rllib/old_logger", "a logger failed", "; it is left out"):
            return work()
        return None


def _is_placed(trial: Trial) -> bool:
    """Whether Tune has given the trial a folder; it does so when it requests the trial's process."""
    path: Any = getattr(trial, "local_path", None)
    return bool(path) and os.path.isdir(path)


def _is_function(trial: Trial) -> bool:
    """Whether a trial is a function, which chooses what it reports; False for an algorithm."""
    from ray.tune.trainable import FunctionTrainable

    trainable = trial.get_trainable_cls()
    return isinstance(trainable, type) and issubclass(trainable, FunctionTrainable)


def _callback_settings(config: object) -> RunOptions | None:
    get = getattr(config, "get", None)
    given = get("callbacks_class", None) if callable(get) else None
    if given is None and callable(get):
        given = get("callbacks", None)
    for callback in given if isinstance(given, (list, tuple)) else [given]:
        settings = getattr(callback, "settings", None)
        if isinstance(settings, RunOptions):
            return settings
    return None


def _checkpoint_metrics(trial: Trial) -> dict[str, Any] | None:
    metrics = getattr(getattr(trial, "latest_checkpoint_result", None), "metrics", None)
    return metrics if isinstance(metrics, dict) else None
