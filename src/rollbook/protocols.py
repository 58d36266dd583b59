"""Every extension point of rollbook in one file. Nobody has to inherit from these: having the methods is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from rollbook.ground.values import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.ground.columns import Columns

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
class Row:
    """What one `log` call said.

    Attributes:
      time: unix time in seconds.
      clocks: the clocks that are known for this row, by name.
      values: full key (scope included) -> value. Missing keys are absent; NaN and infinities are kept.
      scope: the opened scope it was logged through, "" for the run itself.
      writer, lane, seq: the identity of the row: together unique for ever, also across restarts; `seq` grows
        within (writer, lane). Sinks that may be handed a row twice use it as the idempotency key.
      attempt: the life of the run that wrote it.
      mark: "" for a row of values; "dump" for a dump mark (`values` is empty, `keys` names what was dumped, empty
        for all); "rewind" where the run went back to a checkpoint: rows came before it that are abandoned now (run.json
        says up to where); "final" for the last thing a finished run says. `values` is empty in all of them.
      at: the id of the checkpoint it was logged at, "" for most rows.
      table: the table it belongs to. Sinks get rows of the tables that `tables.FORWARDED` lists; whoever asks a reader
        for others (episodes, samples, …) gets their cells by column, None left out.
    """

    time: float
    clocks: Mapping[str, int]
    values: Mapping[str, Value]
    scope: str = ""
    writer: str = ""
    lane: int = 0
    seq: int = 0
    attempt: int = 1
    mark: str = ""
    keys: tuple[str, ...] = ()
    at: str = ""
    table: str = "metrics"


@dataclass(frozen=True, slots=True)
class Scalars:
    """Many rows of one float and one reading each, in order, as columns: what `Run.write_rows` takes the fastest.

    Attributes:
      clock: of the readings. keys: the names that `key_R` counts.
      key_R, times_R, readings_R, numbers_R: numpy arrays of one length R: which key, unix seconds from 1970 to 2191,
        readings from 0 on (int64), and the float64 itself.
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
        """Some of the rows."""
        cut = slice(start, stop)
        return Scalars(
            self.clock, self.keys, self.key_R[cut], self.times_R[cut], self.readings_R[cut], self.numbers_R[cut]
        )

    def rows(self) -> Iterator[Row]:
        """The same one by one."""
        columns = (self.key_R.tolist(), self.times_R.tolist(), self.readings_R.tolist(), self.numbers_R.tolist())
        for key, moment, reading, number in zip(*columns, strict=True):
            yield Row(moment, {self.clock: reading}, {self.keys[key]: number})


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What a sink learns about its run when it is opened.

    Attributes:
      folder: the run's folder.
      clocks: all clock names of the run, the standard ones first.
      x: the clock a sink with one step axis should use ("" means: the first one that a row knows, in this order).
      resumed: the run was continued; a file sink appends.
      total: how far the run will go, by clock.
    """

    folder: Path
    project: str
    name: str
    id: str
    attempt: int = 1
    clocks: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    group: str | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    x: str = ""
    resumed: bool = False
    total: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class Sink(Protocol):
    """A place rows go.

    The forwarder calls it from one thread at a time. Whatever `open` or `write` raise is counted and reported once, and
    the same rows are offered again later with growing pauses; the training process never sees it.
    """

    accepts: frozenset[type]
    """The kinds of values it takes, e.g. {float, int, bool}. Others are counted as refused and not sent."""

    def open(self, run: RunInfo) -> None:
        """Get ready. Called once before the first `write`."""

    def write(self, rows: Sequence[Row]) -> None:
        """Take these rows, in order. Returning means they are delivered. Marks come through here too."""

    def close(self) -> None:
        """Flush and let go. Calling it twice is fine; nothing is written afterwards."""


@runtime_checkable
class Truncatable(Protocol):
    """A file sink that can say where it is and go back there; with it, restarts neither lose nor repeat rows."""

    def position(self) -> dict[str, int]:
        """Output file (relative to the run folder) -> its length in bytes, all of it flushed to the system."""

    def truncate(self, position: Mapping[str, int]) -> None:
        """Cut the output back to `position`. Called after `open` and before the first `write`.

        A file that `position` does not name is emptied.
        """


@runtime_checkable
class Stateful(Protocol):
    """A sink or filter with memory. The state is saved beside the cursor and given back at the next start."""

    def state(self) -> dict[str, Any]:
        """All memory, as plain JSON data."""

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`. Called after `open` and before the first `write`."""


Probe: TypeAlias = Callable[[], Mapping[str, float]]
"""Reads something about the host and returns it by key, e.g. {"host/cpu_percent": 12.5}. Never blocks for long."""


@dataclass(frozen=True, slots=True)
class Alert:
    """What a health rule found. `rollbook.capture.alerts.Alerts` says and keeps it.

    Attributes:
      rule: the word of the rule.
      level: "note" (an oddity, counts as no alarm), "warn" or "fail".
      message: one sentence for people, with the numbers that made it speak.
      evidence: those numbers: rows, steps, limits; plain JSON data.
      source: where the rule's threshold comes from, or who found it.
      key: the series it is about, "" for none. An alert is reported once per rule and key.
      clocks: where in training it was; {} for now.
    """

    rule: str
    level: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    key: str = ""
    clocks: Mapping[str, int] = field(default_factory=dict)


@runtime_checkable
class Rule(Protocol):
    """A health check over a run's rows, asked by the keeper in a thread of its own; nothing of it reaches training.

    It is shown columns, not rows: a rule that looks at each value in Python costs more than logging it did. Ask a
    column for its extremes first (`min`, `max`, `sum` of its values), and look closer where they are odd.

    What it raises is counted and reported; a rule that raises at three looks in a row, or takes ten seconds for one, is
    asked no more. One with `state` and `set_state` (see `Stateful`) keeps its memory over restarts of the keeper.
    """

    name: str
    """Its word in `init(rules=…)` and in the table `alerts`."""

    tables: frozenset[str]
    """The tables whose rows it wants to see."""

    def open(self, run: RunInfo) -> None:
        """Get ready for a run. Called before the first `look`, and again when the run went back to a checkpoint."""

    def look(self, columns: Columns, now: float) -> Iterable[Alert]:
        """Look at the rows that are new, of its tables alone; say what is wrong, usually nothing.

        How many rows come at once says nothing: a trouble may begin in one look and go on in the next, and what is said
        must not depend on where one look ended. Rows of the keeper itself (the host) are not among them, nor are marks.
        Where more was logged than can be looked at, some rows are left out. Called without rows (`len(columns)` is 0)
        every few seconds while the run is being written.

        Args:
          columns: the new rows by key, see `rollbook.ground.columns`. Valid during the call; other rules get the same.
          now: unix seconds; does not go on while the machine is suspended.
        """


@dataclass(slots=True)
class ForeignRun:
    """One run that another tool wrote, as an importer gives it.

    Attributes:
      name: what the run is to be called; one of its own in what was imported together.
      rows: gives the rows in order, the same ones at each call; counts what cannot be read by `leave_out` on the way.
      parts: where several of its files grow: a word for each -> its rows, in an order of their own; said by `give`.
      config, seed, notes, project, group, job_type, tags: what the other tool kept of them.
      status: how the run ended, "finished", "killed" or "crashed"; asked after the last row, so that `rows` may set it.
      clocks: clocks that its rows name, beside the standard ones.
      files: what is read; an import of files that have not changed has nothing to do.
      left_out: what could not be read or has no place here, in words -> how often.
      tables: the tables that its rows name, in the order in which they are written; `rows` is gone through for each.
      columns: gives the same rows in the same order, many at once where they are single numbers; for large files.
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
    parts: Mapping[str, Callable[[], Iterable[Row]]] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    columns: Callable[[], Iterable[Row | Scalars]] | None = None

    def give(self, parts: Mapping[str, Callable[[], Iterable[Row]]]) -> None:
        """Say that the rows come in parts; see `parts`."""

        def rows() -> Iterable[Row]:
            self.left_out.clear()
            for of_part in self.parts.values():
                yield from of_part()

        self.parts, self.rows = parts, rows

    def leave_out(self, what: str, n: int = 1) -> None:
        """Count something that is not brought over; `what` is a plural, such as "pictures"."""
        self.left_out[what] = self.left_out.get(what, 0) + n


@runtime_checkable
class Importer(Protocol):
    """Reads runs that another tool wrote. Made anew for each import, used by one thread.

    Four attributes are looked at where it has them: `what`, what such a run is, in words for a list ("W&B offline
    run"); `files`, patterns of file names ("*.wandb", or "scalars/*.csv" with the name of their folder) by which a
    folder of such runs is opened without an import; `gathers`, true where files of several folders belong together:
    then `runs` is asked for the whole tree at once and not for each folder with such a file; and `includes`, the
    importers whose files it reads, too.
    """

    name: str

    def finds(self, path: Path) -> bool:
        """Whether `path` looks like something this importer reads. Cheap; never raises."""

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """The runs at `path`, in an order of their own. Damage is counted (`ForeignRun.leave_out`), never raised."""


@runtime_checkable
class Exporter(Protocol):
    """Writes runs as a file of another tool. Made anew for each export, with that tool's options."""

    name: str

    table: str
    """The table that a run must have, such as "steps"; of several the newest that has it is written. "": all are."""

    def write(self, runs: Any, out: Path) -> dict[str, int]:
        """Write a `RunSet` to `out`, which does not exist yet and is put into its place afterwards.

        Returns what was written and what was left out, in words -> how many. Raises BadInput where there is nothing to
        write; what it needs and is not installed is MissingExtra.
        """


class RunInternals(Protocol):
    """What an adapter of a framework uses of an open run beside the verbs of users: `run.internals`, `scope.internals`.

    A name may be added in any version; one that is here keeps its meaning within a major version.
    """

    @property
    def scope(self) -> str:
        """The scope's name, "" for the run itself."""

    @property
    def writer(self) -> Any:
        """The writing end of this process: `main`, `clocks` (names), `channel`, `time_offset` (ns to unix time)."""

    @property
    def about(self) -> Any:
        """What run.json says, a dict. Not to be changed."""

    @property
    def checkpoints(self) -> Any:
        """The checkpoints that this process saved: `best_score`, `retire(which)`."""

    @property
    def era(self) -> int:
        """Which stretch of the run's history is being written: another number after a resume and after each rewind."""

    @property
    def offsets(self) -> dict[str, int]:
        """What to add to the counters of a framework that counts from 0 again after a resume."""

    def episodes_before(self) -> tuple[int, int]:
        """(episodes begun, environment steps counted) in this scope, as the run's history stands now."""

    def continue_clocks(self, *names: str) -> dict[str, int]:
        """Keep where the named clocks stand now as `offsets`, and return those."""

    def fill_in(self, *, seed: int | None = None, total: Mapping[str, Any] | None = None) -> None:
        """Set what `init` was not given and became known later; what it was given stays."""

    def formatted_config(self, text: str) -> None:
        """Let `formatted_total_config.py` hold this text: a framework's form that it starts from again."""

    def write_about(self) -> None:
        """Write run.json now (the main writer only); failures are counted."""


class Recorder(Protocol):
    """The writing end as the capture rooms see it: a `Run` or a `Scope` of one. Nothing here raises in training."""

    @property
    def folder(self) -> Path:
        """The run's folder."""

    def log(self, values: Mapping[str, object], **clocks: Any) -> None:
        """Append one row of scalars; keys get the scope's prefix."""

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

        `columns` maps a name to n values: a list of plain data (None, bool, int, float, str, bytes, lists and dicts of
        those), or an array whose first axis is n. With n = 1 plain values may stand without the list. Rows that an
        earlier call with the same `receipt` has written are not written again.
        """

    def clocks_now(self) -> dict[str, int]:
        """The clocks that are known at this moment."""

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Add n to the bill under `cause`; the first time, warn with `message`. Under strict=True, raise it."""
