"""Log: MRL's log callback over a rollbook run.

    log = Log(run)                                   # Log() takes the current run, or opens one
    env = Environment(..., log=log)                  # MRL's own environment, or ours
    env.fit(200, 90, 50, 4)
    log.batch_log["rewards"][5]; log.metrics["new"][-10:]; log.df; log.get_df()

Every item is a row of the run's `samples` (scope "batch"), every metric a value of `metrics/<name>`, every stage a row
of `timings`. All have the batch's number as the clocks `step` and `gradient_step`. The log reads from these tables.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from rollbook.adapters._run import find_run
from rollbook.adapters.mrl import reading
from rollbook.adapters.mrl.callback import Callback
from rollbook.adapters.mrl.frame import FirstSeen, frame_of
from rollbook.adapters.mrl.history import BatchHistory, SeriesHistory
from rollbook.adapters.mrl.plots import plot_dict
from rollbook.adapters.mrl.tensors import mean_of, zeros
from rollbook.adapters.mrl.views import BatchLog, Metrics, TimeLog, TimeSeries, UniqueSamples
from rollbook.errors import BadInput, RollbookWarning
from rollbook.system.bill import counted
from rollbook.values import scalar_of
from rollbook.values.arrays import host_array, host_tensor
from rollbook.values.content import fingerprint_of
from rollbook.values.devices import copy_on_device, is_deferred

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from rollbook.adapters.mrl.history import Columns
    from rollbook.values.array_types import NDArray

_KEEP_ITEMS, _KEEP_VALUES = 20_000, 2048
_METRICS = ("rewards", "rewards_final", "new", "diversity", "bs")
_TERMS = ("samples", "sources", "rewards", "rewards_final")
_STAGES = ("build_buffer", "sample_batch", "compute_reward", "get_model_outputs", "compute_loss", "after_batch")
"""The stages that an environment times in each batch, in order."""


class Log(Callback):
    """Records each batch in a run, and shows it as MRL's log does.

    Nothing raises into the training. Faults are reported once, counted, and shift no other values: a metric that was
    not updated in a batch, or updated twice; a term that the batch lacks or that has another length than the batch.

    Args:
      run: a run. None uses the current run, or opens one (project "mrl").
      run_options: arguments of `rollbook.init`, if a run has to be opened.
      keep_items, keep_values: how many items of the newest batches, and how many of the newest values of each metric
        and stage, stay in memory; older ones are read from the run's files.

    Attributes:
      metrics: name -> one value per batch.
      batch_log: term -> one sequence per batch.
      timelog: stage -> seconds per batch.
      unique_samples: sample -> its first reward. These four are lazy, over the run's files.
      df: a DataFrame with one row per unique sample and the values of its first occurrence.
      iterations: the number of complete batches, over all attempts of the run.
      report: the number of batches between shown rows.
      pbar: where rows are shown; None prints (fastprogress's master bar is also accepted).
    Raises:
      BadInput: run=False: the log reads back from the run.
    """

    def __init__(
        self,
        run: object = None,
        *,
        run_options: Mapping[str, object] | None = None,
        keep_items: int = _KEEP_ITEMS,
        keep_values: int = _KEEP_VALUES,
    ) -> None:
        super().__init__(name="log", order=100)
        self._keep_items, self._keep_values = keep_items, keep_values
        run_or_scope, _ = find_run(run, project="mrl", name="run", options=run_options, user=self)
        if run_or_scope is None:
            raise BadInput("Log(run=False): the log reads back from the run, so it needs one; pass a run or nothing")
        self.pbar: Any = None
        self.report = 1
        self._begin(getattr(run_or_scope, "run", run_or_scope))
        for name in _METRICS:
            self.add_metric(name)
        for term in _TERMS:
            self.add_log(term)
        self._own = frozenset(self.__dict__)
        if self.run.resumed:
            self._guard("resume", self._reload)

    def _begin(self, run: Any) -> None:
        """Create empty containers over a run."""
        self.run: Any = run
        self._iterations = 0
        self._attempt = self.run.attempt
        self.metrics = Metrics(self.update_metric, self.add_metric)
        self.batch_log = BatchLog(BatchHistory(self._load_batches, keep=self._keep_items))
        self.timelog = TimeLog(self._make_stage)
        self.unique_samples = UniqueSamples(self._is_seen, self._count_seen, self._first_reward, self._first_rewards)
        self._stages: dict[str, SeriesHistory] = {}
        self._rewarded: dict[object, object] = {}  # samples of this batch that have a reward, not in the book yet
        self._skipped: set[str] = set()
        self._first_seen: FirstSeen | None = None
        self._metric_scope = self.run.scope("metrics")
        self._batch_scope = self.run.scope("batch")
        is_saved = isinstance(run, _SavedRun)
        self._log_time = run.log if is_saved else run.internals.writer.make_log(run.internals.writer.channel("timings"))

    def __getstate__(self) -> dict[str, object]:
        """Everything the log shows, as plain data, and attributes that callbacks added; without the run."""
        history = self.batch_log.history
        extra = {name: value for name, value in self.__dict__.items() if name not in self._own}
        return {
            "settings": {"name": self.name, "order": self.order, "report": self.report},
            "event_timelog": self.event_timelog,
            "iterations": self.iterations,
            "metrics": {name: list(values)[: self.iterations] for name, values in self.metrics.items()},
            "terms": list(self.batch_log.terms),
            "batches": [history.get(batch) for batch in range(history.length)],
            "timelog": {stage: list(seconds) for stage, seconds in self.timelog.items()},
            "rewards": dict(self.unique_samples.items()),
            "first_seen": self._first_seen,
            "extra": extra,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A log that shows the data of the pickled one, and continues in memory only."""
        self.__dict__.update(state["settings"], pbar=None, event_timelog=state["event_timelog"])
        self._keep_items, self._keep_values = _KEEP_ITEMS, _KEEP_VALUES
        self._begin(_SavedRun(state["rewards"]))
        self._iterations = state["iterations"]
        for name, values in state["metrics"].items():
            self.metrics.series[name] = SeriesHistory.holding(values)
        for term in state["terms"]:
            self.add_log(term)
        self.batch_log.history = BatchHistory.holding(state["batches"])
        for stage, seconds in state["timelog"].items():
            self.timelog.put(stage, self._stage_of(stage, SeriesHistory.holding(seconds)))
        self._first_seen = state["first_seen"]
        self._own = frozenset(self.__dict__)
        self.__dict__.update(state["extra"])

    @property
    def iterations(self) -> int:
        """The number of complete batches; after a rewind (`run.restore`), of those that remain."""
        if self.run.attempt != self._attempt:
            self._guard("rewind", self._reload)
        return self._iterations

    # -- called by callbacks

    def add_metric(self, name: str) -> None:
        """Track a metric: one value per batch. Adding it again changes nothing.

        Args:
          name: its name.
        """
        if name not in self.metrics.series:
            self.metrics.series[name] = self._history(self._metric_loader(name), self.iterations)

    def add_log(self, name: str) -> None:
        """Record one term of every batch: one value per item, or one for all. Twice is fine.

        Args:
          name: the entry of `batch_state`.
        """
        self.batch_log.terms.setdefault(name)

    def update_metric(self, name: str, value: object) -> None:
        """Set the value of a metric in the current batch.

        Args:
          name: its name.
          value: a number, a 0-d array or tensor, or a text.
        """
        if name not in self.metrics.series:
            message = f"update_metric({name!r}): this metric was not added before; it is tracked from now on"
            self.count("mrl_unknown_metric", message=message)
            self.add_metric(name)
        if name in self.metrics.pending:
            self.count(
                f"mrl_double_metric/{name}",
                message=f"the metric {name!r} was updated twice in batch {self.iterations}; the later value counts",
            )
        self.metrics.pending[name] = _plain(value)

    def skip_metric(self, name: str) -> None:
        """Mark a metric as missing in this batch, without a warning.

        Args:
          name: its name.
        """
        self._skipped.add(name)

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Add to the run's bill, and report the cause once.

        Args:
          cause: a short name for what happened.
          n: how often.
          message: what happened, and what to do.
        """
        self.run.count(cause, n, message)

    # -- events

    def setup(self) -> None:
        """Does nothing: terms and metrics may be added at any time."""

    def before_train(self) -> None:
        """Show the names of the columns. Data of an unfinished batch is dropped."""
        self.metrics.pending.clear()
        for stage in self.timelog.values():
            stage.pending = None
        self._rewarded = {}
        self._show(["iterations", *self.metrics])

    def after_sample(self) -> None:
        """Measure the samples, and allocate their rewards."""
        state = self.environment.batch_state
        samples = state.samples
        state.rewards = self._rewards_for(samples, state)
        self._guard("samples", lambda: self._measure(samples))

    def after_compute_reward(self) -> None:
        """Record the rewards before modification."""
        state = self.environment.batch_state
        rewards = state.rewards
        state.rewards_final = copy_on_device(rewards)
        self._guard("rewards", lambda: self._take_rewards(state.samples, rewards))

    def after_reward_modification(self) -> None:
        """Measure the final rewards."""
        state = self.environment.batch_state
        self._guard("rewards", lambda: self._update_or_skip("rewards_final", mean_of(state.rewards_final)))

    def after_batch(self) -> None:
        """Write the batch, and show its row if it is due."""
        self.update_log()
        self.report_batch()

    def update_log(self) -> None:
        """Write the current batch to the book: its items, and its metrics as one row."""
        self._guard("batch", self._write_items)
        self._guard("metrics", self._write_metrics)
        self._rewarded = {}
        self._skipped.clear()

    def report_batch(self) -> None:
        """Show the row of the last written batch, if it is due; begin the next batch."""
        if self.iterations % max(1, int(self.report)) == 0:
            values = [
                series.get(self.iterations) if series.length > self.iterations else None
                for series in self.metrics.series.values()
            ]
            self._show([str(self.iterations), *map(_shown, values)])
        self._guard("times", self._write_times)
        self._iterations += 1

    # -- reading

    @property
    def df(self) -> pd.DataFrame:
        """One row per unique sample: the values of its first occurrence, in the order of the samples."""
        first = self._first_seen
        if first is None:
            first = FirstSeen()
            for columns in self._batches(self.batch_log.terms):
                first.add(columns)
            self._first_seen = first
        if first.is_empty:
            return frame_of({term: [] for term in self.batch_log.terms})
        return first.frame()

    @df.setter
    def df(self, frame: object) -> None:
        """Replace it with the program's own DataFrame; new samples are added to it."""
        self._first_seen = FirstSeen.of(frame)

    def _batches(self, terms: Iterable[str]) -> Iterator[Columns]:
        """The columns of every complete batch, from memory if all are there."""
        history = self.batch_log.history
        if history.holds_all:
            yield from (history.get(batch) for batch in range(history.length))
        else:
            yield from (columns for _, columns in reading.all_batches(self.run.book, terms))

    def add_data(self, new_df: pd.DataFrame) -> None:
        """Add to `df` the rows of another DataFrame whose sample is new.

        Args:
          new_df: with the columns of `df`.
        """
        _ = self.df  # the run's own rows come first
        if self._first_seen is not None:
            self._first_seen.add({str(name): new_df[name].tolist() for name in new_df.columns})

    def get_df(self) -> pd.DataFrame:
        """One row per item of every batch: the number of the batch, then every term."""
        return log_to_df(self.batch_log)

    def plot_metrics(self, cols: int = 4, smooth: bool = True) -> Figure:
        """A matplotlib figure of all metrics.

        Args:
          cols, smooth: as in `plot_dict`.
        """
        return plot_dict(self.metrics, cols=cols, smooth=smooth)

    def plot_timelog(self, cols: int = 4, smooth: bool = True) -> Figure:
        """A matplotlib figure of the seconds of all stages.

        Args:
          cols, smooth: as in `plot_dict`.
        """
        return plot_dict(self.timelog, cols=cols, smooth=smooth)

    # -- one batch

    def _rewards_for(self, samples: Sequence[object], state: Any) -> object:
        """Rewards, one value per sample. Values added before the samples were known are kept if they fit."""
        before = state.rewards
        shape = tuple(getattr(before, "shape", ()))
        if shape == (len(samples),):
            return before
        fresh = zeros(len(samples))
        if not shape or shape == (1,):
            return fresh + before
        self.count(
            "mrl_early_rewards",
            message=f"batch_state.rewards had the shape {shape} before the {len(samples)} samples stood; it begins at "
            "zeros. Add rewards in compute_reward",
        )
        return fresh

    def _measure(self, samples: Sequence[object]) -> None:
        n = len(samples)
        self._update_or_skip("new", sum(not self._is_seen(sample) for sample in samples) / n if n else None)
        self.update_metric("diversity", len({_identity(sample) for sample in samples}) / n if n else 0.0)
        self.update_metric("bs", n)

    def _take_rewards(self, samples: Sequence[object], rewards: object) -> None:
        values = host_array(rewards)
        self._update_or_skip("rewards", mean_of(values))
        if values.shape[:1] == (len(samples),):
            for sample, reward in zip(samples, values.tolist(), strict=True):
                self._rewarded.setdefault(_identity(sample), reward)

    def _update_or_skip(self, name: str, value: object) -> None:
        if value is None:
            self.skip_metric(name)
        else:
            self.update_metric(name, value)

    def _write_items(self) -> None:
        state = self.environment.batch_state
        samples = list(state.samples)
        columns = {"samples": samples}
        for term in self.batch_log.terms:
            if term != "samples":
                values = self._column(state, term, len(samples))
                if values is not None:
                    columns[term] = values
        if samples:
            clocks = {"step": self.iterations, "gradient_step": self.iterations}
            given = {self._column_name(term): values for term, values in columns.items() if term != "samples"}
            self._batch_scope.log_samples(samples, **given, **clocks)
        if self._first_seen is not None:
            self._first_seen.add(columns)
        while self.batch_log.history.length < self.iterations:  # an earlier batch that could not be written
            self.batch_log.history.append({})
        self.batch_log.history.append(columns)

    def _column(self, state: Mapping[str, Any], term: str, n: int) -> Any:
        """One value per item, as an array or a list; None if the batch has none (reported)."""
        try:
            column = state[term]
        except KeyError:
            self.count(
                f"mrl_missing_term/{term}",
                message=f"batch {self.iterations} has no {term!r}, which is a term of the log; it is missing there",
            )
            return None
        values = host_array(column) if hasattr(column, "shape") else column
        if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
            number = scalar_of(values)
            return [values if number is None else number] * n
        if len(values) != n:
            self.count(
                f"mrl_uneven_term/{term}",
                message=f"batch {self.iterations} has {len(values)} values of {term!r} for {n} samples; they are left "
                "out",
            )
            return None
        return values if hasattr(values, "dtype") and values.dtype.kind in "biuf" else list(values)

    def _column_name(self, term: str) -> str:
        """The column of a term in `samples`, also for a term that has the name of a clock."""
        return f"term/{term}" if term in self.run.internals.writer.clocks else term

    def _write_metrics(self) -> None:
        pending = self.metrics.pending
        row = {}
        for name, series in self.metrics.series.items():
            value = pending.pop(name, None)
            if value is None and name not in self._skipped:
                self.count(
                    f"mrl_missed_metric/{name}",
                    message=f"the metric {name!r} was not updated in batch {self.iterations}; it is missing there",
                )
            elif value is not None:
                row[name] = value
            while series.length < self.iterations:  # an earlier batch that could not be written
                series.append(None)
            series.append(value)
        self._metric_scope.log(row, step=self.iterations, gradient_step=self.iterations)

    def _write_times(self) -> None:
        for stage in self.timelog.values():
            stage.complete()

    # -- samples seen before

    def _is_seen(self, sample: object) -> bool:
        return _identity(sample) in self._rewarded or self.run.samples.is_seen(sample)

    def _count_seen(self) -> int:
        samples = self.run.samples
        return int(samples.unique()) + sum(not samples.is_seen(sample) for sample in self._rewarded)

    def _first_reward(self, sample: object) -> object:
        if not self.run.samples.is_seen(sample):
            return self._rewarded[_identity(sample)]
        if isinstance(self.run, _SavedRun):
            return self.run.rewards[_identity(sample)]
        return reading.first_reward(self.run.book, sample, fingerprint_of(sample))

    def _first_rewards(self) -> dict[object, object]:
        """Every sample seen so far -> its first reward, in order of appearance."""
        if isinstance(self.run, _SavedRun):
            return {**self._rewarded, **self.run.rewards}
        known: dict[object, object] = {}
        for columns in self._batches(("samples", "rewards")):
            rewards = columns.get("rewards")
            values = [None] * len(columns["samples"]) if rewards is None else _listed(rewards)
            for sample, reward in zip(columns["samples"], values, strict=True):
                known.setdefault(_identity(sample), reward)
        for sample, reward in self._rewarded.items():
            known.setdefault(sample, reward)
        return known

    # -- reading back

    def _metric_loader(self, name: str) -> Callable[[int, int], list[object]]:
        return lambda start, stop: reading.metric(self.run.book, f"metrics/{name}", start, stop)

    def _history(self, load: Callable[[int, int], Sequence[object]], length: int = 0) -> SeriesHistory:
        """A series that reads older values from the run's book; without a run it keeps all of them."""
        if isinstance(self.run, _SavedRun):
            return SeriesHistory.holding([None] * length)
        return SeriesHistory(load, length, keep=self._keep_values)

    def _load_batches(self, start: int, stop: int) -> dict[int, Columns]:
        return reading.batches(self.run.book, self.batch_log.terms, start, stop)

    def _make_stage(self, stage: str) -> TimeSeries:
        history = self._history(
            lambda start, stop: reading.timings(self.run.book, stage, start, stop, stage in _STAGES)
        )
        if self.run.resumed:
            history.forget(reading.timings_count(self.run.book, stage, self._iterations if stage in _STAGES else None))
        return self._stage_of(stage, history)

    def _stage_of(self, stage: str, history: SeriesHistory) -> TimeSeries:
        """The series of a stage. Stages of a batch have one value per complete batch."""

        def write(seconds: float) -> None:
            # The stage `after_batch` ends after the batch was counted: its row belongs to the previous batch.
            number = max(0, self.iterations - (stage == "after_batch"))
            while stage in _STAGES and history.length < number:  # a batch that was not timed
                history.append(float("nan"))
            self._log_time({stage: seconds}, step=number, gradient_step=number)

        return TimeSeries(history, write, waits=stage in _STAGES and stage != "after_batch")

    def _reload(self) -> None:
        """Continue at the end of the run's effective history."""
        self._attempt = self.run.attempt
        book = self.run.book
        self._iterations = reading.batch_count(book)
        for series in self.metrics.series.values():
            series.forget(self._iterations)
        self.batch_log.history.forget(self._iterations)
        self.timelog = TimeLog(self._make_stage)
        self.metrics.pending.clear()
        self._rewarded, self._first_seen = {}, None

    # -- helpers

    def _show(self, cells: Sequence[str]) -> None:
        def show() -> None:
            if self.pbar is None:
                sys.stdout.write("\t".join(cells) + "\n")
            else:
                self.pbar.write(list(cells), table=True)

        self._guard("report", show)

    def _guard(self, what: str, work: Callable[[], object]) -> None:
        with counted(self.count, f"mrl_{what}", f"the log could not keep the {what} of a batch"):
            work()


def log_to_df(log: Mapping[str, Sequence[Sequence[object]]], keys: Sequence[str] | None = None) -> pd.DataFrame:
    """A DataFrame of a batch log: the number of the batch, then one column per term, one row per item.

    Args:
      log: term -> one sequence per batch; all terms have the same number.
      keys: which terms; None for all.
    """
    wanted = list(log) if keys is None else list(keys)
    batches: list[int] = []
    parts: dict[str, list[Sequence[object]]] = {key: [] for key in wanted}
    for number in range(len(log[wanted[0]]) if wanted else 0):
        for key in wanted:
            parts[key].append(log[key][number])
        batches += [number] * len(parts[wanted[0]][-1])
    return frame_of({"batch": batches, **{key: _joined(values) for key, values in parts.items()}})


def _joined(parts: Sequence[Any]) -> Sequence[object] | NDArray:
    """Join batches of values: arrays to an array of their type, other values to a list."""
    if parts and all(hasattr(part, "dtype") for part in parts):
        import numpy as np

        return np.concatenate(parts)
    return [value for part in parts for value in _listed(part)]


def _listed(values: Any) -> list[Any]:
    return list(values.tolist()) if hasattr(values, "tolist") else list(values)


def _identity(sample: object) -> object:
    """A sample as a dict key; if it is not hashable, its content is used."""
    try:
        hash(sample)
    except TypeError:
        return repr(sample)
    return sample


def _plain(value: object) -> object:
    """A metric in the stored form: a copied number or text. A tensor on a device stays there."""
    if isinstance(value, str) or value is None:
        return value
    if is_deferred(value):
        return copy_on_device(value)
    number = scalar_of(value)
    return number if number is not None else host_tensor(value)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    number = scalar_of(host_tensor(value))
    if number is None:
        return str(value)
    return str(number) if type(number) is int else f"{number:.3f}"


class _SavedRun:
    """Replaces the run of a log restored from a pickle: remembers which samples were seen, and writes nothing.

    Args:
      rewards: sample -> its first reward.
    """

    attempt = 0
    resumed = False

    def __init__(self, rewards: dict[object, object]) -> None:
        self.rewards = rewards
        self.samples = self.writer = self.internals = self
        self.clocks: tuple[str, ...] = ("step",)
        self._warned: set[str] = set()

    def is_seen(self, sample: object) -> bool:
        """Whether a sample has a reward."""
        try:
            return sample in self.rewards
        except TypeError:  # not hashable: identified by its content
            return repr(sample) in self.rewards

    def unique(self) -> int:
        """How many samples were seen."""
        return len(self.rewards)

    def scope(self, name: str) -> _SavedRun:
        """The same object, for every scope."""
        del name
        return self

    def log(self, row: object, **clocks: object) -> None:
        """Warn once that nothing is recorded."""
        del row, clocks
        self.count(
            "mrl_no_run",
            message="this log was read from a pickle and has no run: it goes on in memory alone. Give the environment "
            "a new Log(run) to record",
        )

    def log_samples(self, samples: Sequence[object], **columns: Sequence[Any]) -> None:
        """Remembers the samples' first rewards."""
        rewards = columns.get("rewards")
        for i, sample in enumerate(samples):
            if not self.is_seen(sample):
                key = sample if sample.__hash__ is not None else repr(sample)
                self.rewards[key] = None if rewards is None else float(rewards[i])

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Report each cause once."""
        del n
        if message and cause not in self._warned:
            self._warned.add(cause)
            warnings.warn(message, RollbookWarning, stacklevel=4)
