"""Experiment: the experiment folder of LightZero's document, over a run.

<run>/ckpt/{ckpt_best,iteration_0,iteration_10000}.pth.tar
<run>/log/{buffer,collector,evaluator,learner}/<component>_logger.txt
<run>/log/serial/events.out.tfevents.<timestamp>.<hostname>
<run>/{total_config,formatted_total_config}.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rollbook.adapters._run import find_run, reported
from rollbook.adapters.lightzero.counters import as_given
from rollbook.adapters.lightzero.events import EventWriter, sinks_of
from rollbook.adapters.lightzero.text import TextLogger
from rollbook.errors import BadInput
from rollbook.system.bill import Bill, counted
from rollbook.system.guard import tolerating
from rollbook.values import scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.run.scope import Scope


class Experiment:
    """The destinations of one run's logs: text files, one event file, the book.

    The four logs use the given clock values unchanged; a recording sets `counters`. The native files are written here,
    in the training process. If the run was opened with the sink "text" or "tensorboard", that sink writes these files
    instead, from the book and in its own layout.

    Args:
      run: a run. None uses the current one, or opens one without those sinks.
      terminal: also print messages to standard error.
      compat: LightZero's own numbers where they are wrong (`avg_time_per_episode` in episodes per second).
      options: of `rollbook.init`, if a run has to be opened.
    Raises:
      BadInput: run=False.
    """

    def __init__(
        self,
        run: object = None,
        *,
        terminal: bool = False,
        compat: bool = False,
        options: Mapping[str, object] | None = None,
    ) -> None:
        run_or_scope, self.opened_here = find_run(
            run, project="lightzero", name="experiment", options=options, defaults={"sinks": ()}, user=self
        )
        if run_or_scope is None:
            raise BadInput("an experiment of LightZero needs a run: pass one, or nothing to open one")
        self.run: Any = getattr(run_or_scope, "run", run_or_scope)
        self.run.write_config_files()
        self.terminal, self.compat, self.is_recorded = terminal, compat, False
        self._text_is_ours = "text" not in sinks_of(self.run)
        self.events = EventWriter(self.run)
        self._texts: dict[str, TextLogger] = {}
        self._scopes: dict[str, Scope] = {}
        self._counters: Callable[[str, int], int] = as_given
        self.run.lightzero_experiment = self  # so that all logs of a run share it

    @property
    def counters(self) -> Callable[[str, int], int]:
        """(clock, value of a counter that may restart at 0 in each attempt) -> the run's value."""
        return self._counters

    @counters.setter
    def counters(self, counters: Callable[[str, int], int]) -> None:
        self._counters = self.events.counters = counters

    @property
    def folder(self) -> Path:
        """The experiment's folder: the run's."""
        return Path(self.run.folder)

    def text(self, instance: str) -> TextLogger:
        """The text logger of a component. Its messages are also in the book, under `<component>/log`.

        Args:
          instance: the component, such as "learner".
        """
        logger = self._texts.get(instance)
        if logger is None:
            scope = self.scope(instance)
            logger = self._texts[instance] = TextLogger(
                self.folder / "log" / instance,
                instance,
                terminal=sys.stderr if self.terminal else None,
                keep=lambda message: scope.log_text("log", message),
                write_file=self._text_is_ours,
                failed=lambda err: self.run.count("lightzero_text", message=f"a text log could not be written: {err}"),
            )
        return logger

    def scope(self, instance: str) -> Scope:
        """The scope of a component.

        Args:
          instance: the component, such as "learner".
        """
        scope = self._scopes.get(instance)
        if scope is None:
            scope = self._scopes[instance] = self.run.scope(instance)
        return scope

    def report(
        self,
        instance: str,
        fields: Mapping[str, object],
        *,
        train_iter: int,
        envstep: int | None,
        skip: tuple[str, ...] = (),
        at: Any = None,
    ) -> None:
        """Write fields of a component to the book and to the event file.

        Args:
          instance: the component, such as "learner".
          fields: name -> number, text, or list of numbers. The event file gets the numbers, as `<instance>_iter/<name>`
            at `train_iter` and `<instance>_step/<name>` at `envstep`.
          train_iter: training iterations so far; the clock `gradient_step`.
          envstep: environment steps so far; the clock `env_step`. None or below 0: unknown.
          skip: names that the event file does not get.
          at: the checkpoint that the fields describe: a run that returns to it keeps them.
        """
        clocks = clocks_at(train_iter, envstep)
        scope = self.scope(instance) if at is None else self.run.scope(instance, at=at)
        row = {name: _kept(value) for name, value in fields.items()}
        scope.log({name: value for name, value in row.items() if value is not None}, **clocks)
        numbers = {name: scalar_of(value) for name, value in fields.items() if name not in skip}
        known = {name: value for name, value in numbers.items() if value is not None}
        events = [({f"{instance}_iter/{name}": value for name, value in known.items()}, train_iter)]
        if "env_step" in clocks:
            events.append(({f"{instance}_step/{name}": value for name, value in known.items()}, clocks["env_step"]))
        self.events.write(events)

    def last(self, key: str) -> Any:
        """The last value of a key in the book, for logs that continue after a resume; None if there is none.

        Args:
          key: its full name.
        """
        if not self.run.resumed:
            return None
        with counted(self.run.count, "lightzero_resume", "the totals of the earlier attempt could not be read"):
            newest = self.run.internals.latest().get(key)
            return newest[0] if newest is not None else None
        return None

    def episodes_before(self, instance: str) -> tuple[int, int]:
        """The number of episodes of a component in earlier attempts of the run, and their steps.

        Args:
          instance: the component, such as "collector".
        """
        if not self.run.resumed:
            return 0, 0
        with counted(self.run.count, "lightzero_resume", "the episodes of the earlier attempt could not be read"):
            table = self.run.book.episodes()
            rows = zip(table["scope"].to_pylist(), table["length"].to_pylist(), strict=True)
            lengths = [length for scope, length in rows if scope == instance]
            return len(lengths), int(sum(length or 0 for length in lengths))
        return 0, 0

    def checkpoint_exists(self, name: str) -> bool:
        """Whether a checkpoint is a file.

        Args:
          name: of the file, in `ckpt`.
        """
        return (self.folder / "ckpt" / name).is_file()


def experiment_of(run: object, options: Mapping[str, object] | None = None) -> Experiment:
    """The experiment of `run`: the existing one, or a new one. An Experiment is returned unchanged.

    Args:
      options: arguments of `rollbook.init`, if no run is open.
    """
    if isinstance(run, Experiment):
        return run
    if run is None:
        from rollbook.run.current import current_run

        run = current_run()
    known = getattr(getattr(run, "run", run), "lightzero_experiment", None)
    return known if isinstance(known, Experiment) else Experiment(run, options=options if run is None else None)


_EMPTY: dict[str, Callable[[], object]] = {
    **dict.fromkeys(("report", "log", "show"), dict),
    **dict.fromkeys(("is_due", "should_eval"), bool),
}


def _bill_of_run(self: Any, name: str, err: Exception) -> object:
    """What a method of a log returns when it failed; the failure is counted."""
    Bill(to=self.experiment.run).failed("lightzero_log", f"{type(self).__name__}.{name}()", err)
    return _EMPTY[name]() if name in _EMPTY else None


harmless = reported(_bill_of_run)
"""Decorates methods of a log so that nothing raises into the loop, whatever it passes."""


def clocks_at(train_iter: Any, envstep: Any) -> dict[str, Any]:
    """The clocks of a row: `gradient_step`, and `env_step` unless it is None or below 0, which is unknown."""
    clocks = {"gradient_step": train_iter}
    with tolerating(Exception):  # whatever a loop takes for a number of steps
        if envstep is not None and envstep >= 0:
            clocks["env_step"] = envstep
    return clocks


def _kept(value: object) -> object:
    """A value in a form that the book accepts: a list of numbers as an array, which is stored raw."""
    if isinstance(value, (list, tuple)):
        import numpy as np

        try:
            array = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            return str(value)
        return array if array.size else None
    return value
