"""Every extension point of rollbook in one file. No inheritance is needed: a class with these methods is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from rollbook.schema.records import Alert, Row, RunInfo
from rollbook.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from rollbook.schema.columns import Columns

__all__ = [
    "Alert",
    "Exporter",
    "ForeignRun",
    "Importer",
    "Probe",
    "Recorder",
    "Row",
    "Rule",
    "RunInfo",
    "RunInternals",
    "Scalars",
    "Sink",
    "Stateful",
    "Truncatable",
    "Value",
]


@dataclass(frozen=True, slots=True)
class Scalars:
    """Many rows as columns, in order: each row has one float and one clock reading. The fastest input of
    `Run.write_rows`.

    Attributes:
      clock: the clock of the readings.
      keys: the key names that `key_R` indexes.
      key_R, times_R, readings_R, numbers_R: numpy arrays of one length R: index of the key; unix seconds, 1970 to 2191;
        readings from 0 on (int64); the float64 value.
    """

    clock: str
    keys: Sequence[str]
    key_R: Any
    times_R: Any
    readings_R: Any
    numbers_R: Any

    def __len__(self) -> int:
        return len(self.key_R)

    def part(self, start: int, stop: int) -> Scalars:
        """Some of the rows.

        Args:
          start, stop: numbers of rows, from 0; the row `stop` is not among them.
        """
        cut = slice(start, stop)
        return Scalars(
            self.clock, self.keys, self.key_R[cut], self.times_R[cut], self.readings_R[cut], self.numbers_R[cut]
        )

    def rows(self) -> Iterator[Row]:
        """The same rows, one by one."""
        columns = (self.key_R.tolist(), self.times_R.tolist(), self.readings_R.tolist(), self.numbers_R.tolist())
        for key, moment, reading, number in zip(*columns, strict=True):
            yield Row(moment, {self.clock: reading}, {self.keys[key]: number})


@runtime_checkable
class Sink(Protocol):
    """A destination for rows.

    The forwarder calls it from one thread at a time. If `open` or `write` raise, the failure is counted and reported
    once, and the same rows are offered again later, with growing pauses. The training process never sees the exception.
    """

    accepts: frozenset[type]
    """The kinds of values it takes, e.g. {float, int, bool}. Others are counted as refused and not sent."""

    def open(self, run: RunInfo) -> None:
        """Get ready. Called once before the first `write`.

        Args:
          run: the run whose rows follow.
        """

    def write(self, rows: Sequence[Row]) -> None:
        """Take these rows, in order. They count as delivered when this returns. Marks come through here too.

        Args:
          rows: none, or many.
        """

    def close(self) -> None:
        """Flush and release everything. A second call does nothing. No `write` follows."""


@runtime_checkable
class Truncatable(Protocol):
    """A file sink that reports its position and can go back to it. Restarts then neither lose nor repeat rows."""

    def position(self) -> dict[str, int]:
        """Output file (relative to the run folder) -> its length in bytes, all flushed to the operating system."""

    def truncate(self, position: Mapping[str, int]) -> None:
        """Cut the output back to `position`. Called after `open` and before the first `write`.

        A file that is missing in `position` is emptied.

        Args:
          position: an earlier result of `position`.
        """


@runtime_checkable
class Stateful(Protocol):
    """A sink or filter with memory. The state is saved together with the cursor and returned at the next start."""

    def state(self) -> dict[str, Any]:
        """The whole memory, as plain JSON data."""

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`. Called after `open` and before the first `write`.

        Args:
          state: an earlier result of `state`, after a conversion to JSON and back.
        """


Probe: TypeAlias = Callable[[], Mapping[str, float]]
"""Reads something about the host and returns it by key, e.g. {"host/cpu_percent": 12.5}. Never blocks for long."""


@runtime_checkable
class Rule(Protocol):
    """A health check over a run's rows. The keeper calls it in a separate thread; nothing of it reaches training.

    It gets columns, not rows: a Python loop over each value would cost more than logging did. Check a column's extremes
    first (`min`, `max`, `sum` of its values), and look closer only where they are odd.

    Exceptions are counted and reported. A rule is switched off after it raises in three looks in a row, or takes ten
    seconds for one. A rule with `state` and `set_state` (see `Stateful`) keeps its memory over restarts of the keeper.
    A rule with a method `rows_missed()` is told before a `look` if rows before it were left out, so that it takes no
    gap between rows for an event. Of a finished run, a rule with `cells`, a set of columns, gets these alone of the
    rows of tables other than `metrics`: texts of rollouts take gigabytes.
    """

    name: str
    """Its name in `init(rules=…)` and in the table `alerts`."""

    tables: frozenset[str]
    """The tables whose rows it gets."""

    def open(self, run: RunInfo) -> None:
        """Get ready for a run. Called before the first `look`, and again after the run went back to a checkpoint.

        Args:
          run: the run whose rows follow.
        """

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """Check the new rows of its tables; return alerts, usually none.

        The number of rows per call has no meaning. A problem may begin in one look and continue in the next; the alerts
        must not depend on where a look ends. Rows of the keeper itself (the host) and marks are not included. If
        training logs more than can be checked, some rows are left out. While the run is written, `look` is also called
        every few seconds without rows (`len(columns)` is 0).

        Args:
          columns: the new rows by key, see `rollbook.schema.columns`. Valid during the call; shared with other rules.
          now: unix seconds; stops while the machine is suspended.
        """


@dataclass(slots=True)
class ForeignRun:
    """One run that another tool wrote, as an importer returns it.

    Attributes:
      name: the name of the run; unique among the runs that are imported together.
      rows: yields the rows in order, the same ones at each call. Counts unreadable ones with `leave_out`. A row of the
        table `media` has the bytes of its file in `content`, and their later place in `path`.
      parts: for runs of which several files grow: a name per file -> its rows, in a fixed order; set by `give`.
      config, seed, notes, project, group, job_type, tags: if the other tool stored them.
      status: how the run ended: "finished", "killed" or "crashed". Read after the last row, so `rows` may set it.
      clocks: clocks that its rows name, in addition to the standard ones.
      files: the files that are read. An import does nothing if they have not changed.
      left_out: description of what could not be read or stored -> count.
      lost: those descriptions that mean damage.
      tables: the tables that its rows name, in writing order; `rows` is called once for each.
      columns: yields the same rows in the same order, many at once where they are single numbers; for large files.
      made_by: what wrote it, for people, where that is more than the format says.
      details: sets what is stored in further files, such as `config` and `seed`; called by `read_details`, so that
        folders of thousands of runs are listed without reading those.
      folder: the folder of the run, if the tool has no name of its own for it: its path then makes the name, and may
        contain algorithm, environment and seed. None: the tool named it.
      part: which part of the folder it is, if other parts are runs of their own; "" for all of it.
      key: what identifies it at the next import among the runs of its folder or tool; None: its part, or its name.
      algo, env: its algorithm and environment, where the files say them outside of a configuration.
      failure: why it ended early, in the words of the tool; read with `status`.
      started, ended: unix seconds, where the tool has a record of them.
      sources: field ("config", "seed") -> the file or the words that say so.
      boards: charts that the tool put together: name of a board -> lists of keys; read with `status`.
    """

    name: str
    rows: Callable[[], Iterable[Row]] = tuple
    config: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    notes: str = ""
    project: str | None = None
    group: str | None = None
    job_type: str | None = None
    tags: Sequence[str] = ()
    status: str = "finished"
    clocks: tuple[str, ...] = ()
    files: Sequence[Path] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    parts: Mapping[str, Callable[[], Iterable[Row]]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    columns: Callable[[], Iterable[Row | Scalars]] | None = None
    made_by: str = ""
    details: Callable[[], None] | None = None
    folder: Path | None = None
    part: str = ""
    key: str | None = None
    algo: str = ""
    env: str = ""
    failure: str = ""
    started: float | None = None
    ended: float | None = None
    sources: dict[str, str] = field(default_factory=dict)
    boards: dict[str, list[list[str]]] = field(default_factory=dict)

    def read_details(self) -> ForeignRun:
        """Return the run with all that its tool stored about it; called before its rows are read."""
        if self.details is not None:
            self.details()
            self.details = None
        return self

    def give(self, parts: Mapping[str, Callable[[], Iterable[Row]]]) -> None:
        """Set the rows as separate parts; see `parts`."""

        def rows() -> Iterable[Row]:
            self.left_out.clear()
            for of_part in self.parts.values():
                yield from of_part()

        self.parts, self.rows = parts, rows

    def leave_out(self, what: str, n: int = 1) -> None:
        """Count something that is not imported.

        Args:
          what: its name in the plural, such as "pictures".
          n: how many.
        """
        self.left_out[what] = self.left_out.get(what, 0) + n

    def lose(self, what: str, n: int = 1) -> None:
        """Count something damaged. It is left out, and reported to everyone who opens the folder.

        Args:
          what: its name in the plural, such as "records with a wrong checksum".
          n: how many.
        """
        self.lost.add(what)
        self.leave_out(what, n)


@runtime_checkable
class Importer(Protocol):
    """Reads runs that another tool wrote. A new object for each import, used by one thread.

    Five attributes are optional. `what`: the kind of run in words, for a list ("W&B offline run"). `files`: patterns of
    file names ("*.wandb", or "scalars/*.csv" with the name of their folder); folders with such files open without an
    import. `gathers`: true if files of several folders belong together; `runs` is then called once for the whole tree
    and not for each folder with such a file. `includes`: the importers whose files it also reads. `is_last_resort`:
    true if its files only repeat what others have in a better form; folders in, next to or below which another format
    has a file are then not given to it.
    """

    name: str

    def finds(self, path: Path) -> bool:
        """Whether something looks like what this importer reads. Fast; never raises.

        Args:
          path: a file or a folder.
        """

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The runs of a file or a folder, in a fixed order. Damage is counted (`ForeignRun.leave_out`), never raised.

        Args:
          path: a path that `finds` accepts.
        """


@runtime_checkable
class Exporter(Protocol):
    """Writes runs as a file of another tool. A new object for each export, with that tool's options."""

    name: str

    table: str
    """The table that a run must have, such as "steps"; the newest run with it is written. "" writes all runs."""

    def write(self, runs: Any, out: Path) -> dict[str, int]:
        """Write runs to a file.

        Args:
          runs: a `RunSet`.
          out: a path that does not exist yet; the caller moves the file into place afterwards.
        Returns:
          What was written and what was left out: description -> count.
        Raises:
          BadInput: there is nothing to write.
          MissingExtra: a package is not installed.
        """


class RunInternals(Protocol):
    """What framework adapters use of an open run in addition to the public verbs: `run.internals`, `scope.internals`.

    Any version may add a name. An existing name keeps its meaning within a major version.
    """

    @property
    def scope(self) -> str:
        """The scope's name, "" for the run itself."""

    @property
    def writer(self) -> Any:
        """The writing end of this process: `main`, `clocks` (names), `channel`, `time_offset` (ns to unix time)."""

    @property
    def about(self) -> Any:
        """The content of run.json as a dict. Do not change it."""

    @property
    def checkpoints(self) -> Any:
        """The checkpoints saved by this process: `best_score`, `retire(which)`."""

    @property
    def era(self) -> int:
        """Number of the current stretch of history; it changes with a resume and with each rewind."""

    def reading(self, clock: str) -> int | None:
        """The current reading of a standard clock in this scope; None if it is not known. `clocks_now` has all."""

    @property
    def offsets(self) -> dict[str, int]:
        """What to add to the counters of a framework that restart at 0 after a resume."""

    def episodes_before(self) -> tuple[int, int]:
        """(episodes begun, environment steps counted) in this scope, in the effective history."""

    def take_counter(self, counter: Any) -> None:
        """A recorder of episodes in this scope: checkpoints keep what its `count_all()` gives, the steps counted."""

    def latest(self) -> dict[str, tuple[Any, dict[str, int], float]]:
        """{key: (value, clocks, unix seconds)} of the last value of each key, before a resume too; needs no book."""

    def reached(self) -> dict[str, int]:
        """The highest reading of each clock in the effective history, in all tables; needs no book."""

    def saved_as(self, path: str | PathLike[str]) -> str | None:
        """The id of the newest checkpoint in the effective history that is this file or folder; None if it is none."""

    def begin_anew(self, why: str) -> None:
        """In a resumed run, before its first row: abandon all rows of earlier attempts, and report it.

        Args:
          why: what was seen, as the first part of a sentence.
        """

    def continue_clocks(self, *names: str) -> dict[str, int]:
        """Store the current readings of the named clocks as `offsets`, and return the offsets."""

    def fill_in(
        self, *, seed: int | None = None, total: Mapping[str, Any] | None = None, algo: str | None = None
    ) -> None:
        """Set values that became known after `init`. Values that `init` was given stay.

        Args:
          seed: the run's seed. None: unknown.
          total: clock -> planned last reading; numbers below 1 are ignored. None: unknown.
          algo: the algorithm, where the configuration has it under no name that everybody uses. None: unknown.
        """

    def lies_beside(self, folder: str) -> None:
        """The program's own files of this training, such as event files, are in that folder: readers show it once.

        Args:
          folder: its path.
        """

    def formatted_config(self, text: str) -> None:
        """Set the text of `formatted_total_config.py`, in a form from which the framework can start again.

        Args:
          text: the file's text.
        """

    def keep_boards(self, boards: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Boards that the program asks for: name -> charts, each the keys that it shows together."""

    def write_about(self) -> None:
        """Write run.json now (the main writer only); failures are counted."""


class Recorder(Protocol):
    """The writing end as the capture modules use it: a `Run` or a `Scope`. Nothing here raises in training."""

    @property
    def folder(self) -> Path:
        """The run's folder."""

    def log(self, values: Mapping[str, object], **clocks: Any) -> None:
        """Append one row of scalars; keys get the scope's prefix.

        Args:
          values: as in `Scope.log`.
        """

    def record(
        self,
        table: str,
        columns: Mapping[str, Any],
        n: int = 1,
        *,
        clock_columns: Mapping[str, object] | None = None,
        time_column: Any = None,
        receipt: Any = None,
        **clocks: Any,
    ) -> int:
        """Append n rows to a table as one frame and return its sequence number (0 if it was refused).

        Args:
          table: its name.
          columns: name -> n values: a list of plain data (None, bool, int, float, str, bytes, lists and dicts of
            these), or an array whose first axis is n. With n = 1 a plain value needs no list.
          n: how many rows.
          clock_columns: clock -> n readings. None: all rows have the readings in `clocks`, or the current ones.
          time_column: n times in monotonic ns (`rollbook.schema.clocks.now`). None: now.
          receipt: rows that an earlier call with the same one wrote are not written again. None: write always.
        """

    def clocks_now(self) -> dict[str, int]:
        """The clocks that are known now: name -> reading."""

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Add to the bill. The first time, warn with `message`; with strict=True, raise it.

        Args:
          cause: a short name for what happened.
          n: how often it happened.
          message: what happened, and what to do.
        """
