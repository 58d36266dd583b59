"""The run as an Acme logger: every record becomes a row of the book.

    run = rollbook.init("cartpole", "dqn")
    loop = acme.EnvironmentLoop(environment, agent, counter=counter, logger=RollbookLogger(run, "train_loop"))

`make_logger` puts it in front of a stack of filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollbook.adapters._run import Users, find_run, needed, options_of
from rollbook.adapters._trackers import offers
from rollbook.adapters.acme.base import Logger, LoggingData, to_numpy
from rollbook.system.bill import counted
from rollbook.values import flatten, scalar_of

_users = Users()


def is_run(experiment: object) -> bool:
    """Whether this is a Run or a Scope, and not another tracker."""
    return offers(experiment, "log") and offers(experiment, "clocks_now")


class RollbookLogger(Logger):
    """Writes records to a run, under `<label>/<key>`, without thinning, rounding or renaming.

    Clocks are read from a record's counts, which also stay among the values. The counts of Acme's learner and actor
    counters are known by name (`learner_steps`: gradient_step; `actor_steps`: env_step; `actor_episodes`: episode). A
    component's own `steps` (or its `steps_key`) are gradient steps if the label names a learner, and environment steps
    otherwise. An evaluator's own steps do not move training forward: they are the clock `step`, and its rows take the
    run's current clocks.

    The loggers of an experiment, which have different labels, share the run that the first of them opened; a label that
    is there already begins another experiment. The run is finished when the last of its loggers is closed or gone.

    Args:
      run: a run or a scope of a run. None uses the current run, or opens one.
      label: the component: "train_loop", "learner", "evaluator" …
      steps_key: the entry that counts this component's steps.
      clocks: clock -> entry, instead of the rules above: {"env_step": "frames"}.
      instance: the number of the component if several have the same label; those above 0 use `<label>_<instance>`.
      project, run_options: of a run that is opened here; arguments of `rollbook.init`.
    Raises:
      BadInput: run=False.
    """

    def __init__(
        self,
        run: object = None,
        label: str | None = "",
        *,
        steps_key: str | None = None,
        clocks: Mapping[str, str] | None = None,
        instance: int | None = None,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
    ) -> None:
        name = f"{label}_{instance}" if label and instance else label
        options = options_of(project, run_options)
        self._label = name or ""
        if run is None:  # also with options, which only apply to a new run
            run = _experiment_without(self._label)
        found, opened = find_run(
            run, project="acme", name=name or "acme", options=options, user=self, kind="acme", host="acme", shares=True
        )
        self.run = needed(found, "RollbookLogger", "logger")
        _users.join(self.run, self, opened)
        self._scope = self.run.scope(name) if name else self.run
        if clocks is not None:
            self._entries: Mapping[str, Sequence[str]] = {clock: (entry,) for clock, entry in clocks.items()}
        else:
            self._entries = entries_of(label or "", steps_key)

    def write(self, data: LoggingData) -> None:
        """Append `data` as one row; nested names are joined with "/". None is left out.

        Args:
          data: the record.
        """
        self.write_part(data, data)

    def write_part(self, part: LoggingData, record: LoggingData) -> None:
        """Append `part` as one row with the clocks of `record`.

        Args:
          part: the values to append.
          record: the record that has the counts.
        """
        with counted(self._scope.count, "acme_record", "a record could not be read"):
            values = {key: value for key, value in flatten(part) if value is not None}
            self._scope.log(values, **self._readings(record))

    def close(self) -> None:
        """Finish the run if one of its loggers opened it and this is the last one to be closed."""
        _users.leave(self.run, self)

    def _readings(self, record: Mapping[str, object]) -> dict[str, Any]:
        readings: dict[str, object] = {}
        taken: set[str] = set()
        for clock, entries in self._entries.items():
            for entry in entries:
                reading = scalar_of(to_numpy(record[entry])) if entry in record and entry not in taken else None
                if reading is not None:
                    readings[clock] = reading
                    taken.add(entry)
                    break
        return readings


def _experiment_without(label: str) -> Any:
    """The run that loggers opened for the newest experiment, if none of them has this label; else None."""
    for run in reversed(_users.opened()):
        loggers = _users.of(run)  # none of them goes while it is asked
        if run.status == "running" and loggers:
            return run if all(logger._label != label for logger in loggers) else None
    return None


class BookFirst(Logger):
    """Writes each record unchanged to the book, then passes it to a stack of filters for the other destinations.

    Values that the filters compute (smoothed and aggregated) return to the book through `derived`, under their own
    names. Values that the record already held are not written twice.
    """

    def __init__(self, book: RollbookLogger) -> None:
        self._book = book
        self._to: Logger | None = None
        self._raw: set[str] = set()

    def in_front_of(self, to: Logger) -> BookFirst:
        """Set the stack of filters."""
        self._to = to
        return self

    @property
    def derived(self) -> Logger:
        """The end of the stack: writes the values that the filters added to the book."""
        return _Derived(self._book, self._raw)

    def write(self, data: LoggingData) -> None:
        """Write `data` to the book, then to the stack."""
        self._raw.update(data)
        self._book.write(data)
        if self._to is not None:
            self._to.write(data)

    def dump(self) -> None:
        """Dump the AggregateFilter, if the stack begins with one; otherwise pass on held records."""
        dump = getattr(self._to, "dump", None)
        if dump is not None:
            dump()
        else:
            self.flush()

    def flush(self) -> None:
        """Pass on held records."""
        flush = getattr(self._to, "flush", None)
        if flush is not None:
            flush()

    def close(self) -> None:
        """Close the stack and the book's logger. A run is finished by its opener."""
        try:
            if self._to is not None:
                self._to.close()
        finally:
            self._book.close()


class _Derived(Logger):
    """The last part of a stack: writes keys that no incoming record had."""

    def __init__(self, book: RollbookLogger, raw: set[str]) -> None:
        self._book, self._raw = book, raw

    def write(self, data: LoggingData) -> None:
        added = {key: value for key, value in data.items() if key not in self._raw}
        if added:
            self._book.write_part(added, data)


def entries_of(label: str, steps_key: str | None = None) -> dict[str, tuple[str, ...]]:
    """Clock -> the entries of a record that may hold its value, first choice first; an entry serves one clock."""
    name = label.lower()
    own = (steps_key,) if steps_key else ()
    if "eval" in name or "test" in name:
        return {
            "env_step": ("actor_steps",),
            "gradient_step": ("learner_steps",),
            "episode": ("actor_episodes",),
            "step": (*own, "evaluator_steps", "steps"),
        }
    if "learner" in name:
        # Next to `learner_steps`, a plain `steps` is the parent counter's: those of the environment loop.
        return {
            "gradient_step": (*own, "learner_steps", "steps"),
            "env_step": ("actor_steps", "steps"),
            "episode": ("actor_episodes", "episodes"),
        }
    episodes = (steps_key.replace("steps", "episodes"),) if steps_key and "steps" in steps_key else ()
    return {
        "env_step": (*own, "steps", "actor_steps"),
        "gradient_step": ("learner_steps",),
        "episode": (*episodes, "episodes", "actor_episodes"),
    }
