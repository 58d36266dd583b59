"""`Scope`: a prefix of a run's keys, and all verbs that write.

`scope.log` is the journal's own function, bound when the object is made. All other verbs may take some microseconds and
load what they need at their first use.
"""

from __future__ import annotations

import os
import weakref

from rollbook.errors import BadInput, InvalidName
from rollbook.run.internals import Internals
from rollbook.schema.clocks import UNKNOWN
from rollbook.system.guard import handled_by, raising
from rollbook.values import key_of
from rollbook.values.arrays import host_array, is_tensor
from rollbook.values.describe import histogram_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from rollbook.capture import Checkpoint, LoggedSamples, Store, Timers
    from rollbook.journal import Channel, Receipt, Writer
    from rollbook.run.open_run import OpenRun

LOGS: weakref.WeakValueDictionary[str, Callable[..., None]] = weakref.WeakValueDictionary()
"""The `log` functions of this process by their names, by which pickle passes them to other processes."""
_PICKLED_BY = "rollbook.run.attaching"
"""The module in which pickle looks for them."""

_ROWS_PER_FRAME = 65_536
_MOST_NUMBERED = 20


class Scope:
    """A prefix of a run's keys. `run.scope("update").log({"loss": x})` equals `run.log({"update/loss": x})`.

    Made by `run.scope`. Threads: any number of threads may call every method. Failures are counted and reported once
    (`run.bill()`). Nothing raises into a training loop unless the run is strict.

    `**clocks` of a method are readings of the run's clocks, such as env_step=2048, as for `log`. A clock that is not
    given keeps its current reading.

    Attributes:
      name: the scope's name (for a `Run`: the run's name).
      run: the run it belongs to.
    """

    def __init__(self, run: OpenRun, name: str, channel: Channel) -> None:
        self.run, self.name, self._channel = run, name, channel
        writer: Writer = run._writer
        self.__dict__["log"] = log = writer.make_log(channel)  # replaces the method `log`, which only documents it
        _name(log, run, channel)
        self._unusual = writer.unusual(channel)
        self._store: Store | None = None
        self._timers: Timers | None = None

    def log(
        self,
        values: Mapping[str, object],
        *,
        env_step: int | None = None,
        gradient_step: int | None = None,
        epoch: int | None = None,
        episode: int | None = None,
        policy_version: int | None = None,
        step: int | None = None,
        **declared: object,
    ) -> None:
        """Append one row: `run.log({"loss": 0.3, "lr": 1e-3}, env_step=2048)`.

        Args:
          values: a dict of name -> number, 0-d array, device tensor (fetched later), text, or array (stored as a
            histogram). Nested dicts are joined with "/"; None is left out. Each row may have other columns.
          env_step: environment steps so far. Clocks that are not given keep the run's current reading.
          gradient_step: optimizer steps so far.
          epoch: passes over the data so far.
          episode: episodes so far.
          policy_version: how often the acting policy has been replaced.
          step: a counter of your own.
          declared: readings of the clocks that were declared with init(clocks=…).

        The row is safe when this returns, after about 2 µs. Values that cannot be stored are counted and reported once
        per cause and key (`run.bill()`). Nothing is raised unless the run is strict.

        Raises:
          TypeError: called in another way, such as log("loss", 0.3).
        """
        clocks = (env_step, gradient_step, epoch, episode, policy_version, step)
        self._unusual(values, clocks, declared)

    # -- what capture rooms use (protocols.Recorder)

    @property
    def internals(self) -> Internals:
        """What framework adapters use in addition to the public verbs (`protocols.RunInternals`)."""
        return Internals(self.run, self._channel)

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.run.folder

    def count(self, cause: str, n: int = 1, message: str = "", name: str = "") -> None:
        """Add n to the bill under `cause`. The first time, warn with `message` (with strict=True: raise it).

        Args:
          cause: a short name for what happened.
          n: how often.
          message: the text of the warning.
          name: the key, clock or column it is about; each name is reported once.
        """
        self.run._writer.bill.count(cause, n, message, name)

    def clocks_now(self) -> dict[str, int]:
        """The clocks that are known now: name -> reading."""
        names = self.run._writer.clocks
        return {name: value for name, value in zip(names, self._channel.current, strict=True) if value != UNKNOWN}

    def clock(self, **clocks: object) -> None:
        """Set the current clocks. Later rows carry these readings unless they pass their own."""
        self._guard(self._unusual.set_clocks, clocks)

    def record(
        self,
        table: str,
        columns: Mapping[str, object] | Iterable[Mapping[str, object]],
        n: int = 1,
        *,
        clock_columns: Mapping[str, object] | None = None,
        time_column: object = None,
        receipt: Receipt | None = None,
        **clocks: object,
    ) -> int:
        """Append n rows to a table as one frame.

        A column without exactly n values is left out and counted by name; the other columns are stored.

        Args:
          table: a standard table (episodes, steps, samples, …), or a name of your own. Rows of all rounds go into one
            table, with the round as a clock or column; another name is another table, also where only a number differs.
          columns: name -> n values: a list of plain data, or an array whose first axis is n. A single number, text or
            None is used for all n rows. With n = 1 other plain values need no list either. Or a list of rows, each a
            dict (what a row lacks is None), or a data frame of pandas or polars; these say themselves how many rows.
          n: number of rows.
          clock_columns: clock -> n readings, if they differ from row to row.
          time_column: n times in monotonic ns (`rollbook.schema.clocks.now`).
          receipt: for rows that must be written only once. Nothing is written if an earlier call with the same receipt
            wrote them, even if an exception from outside (Ctrl-C, a time limit) interrupted that call.
        Returns:
          The frame's sequence number; 0 if it was refused (counted).
        """
        with handled_by(self.run._writer.failed, "record"):
            if table[-1:].isdecimal():
                self._note_numbered(table)
            if type(columns) is not dict:
                columns, n = _as_columns(table, columns, n)
                if not n:
                    return 0
            channel = self._channel
            readings = [*channel.current]
            if clocks:
                readings, refused = self._unusual.clocks((), clocks)
                if refused:
                    columns = {**columns, **self._unusual.cells_of(refused)}
            payload: dict[str, object] = {
                "table": table,
                "scope": channel.scope,
                "at": channel.at,
                "clocks": readings,
                "n": n,
                "columns": self._columns(table, columns, n),
            }
            if clock_columns:
                payload["clock_columns"] = self._columns(table, clock_columns, n) if n != 1 else dict(clock_columns)
            if time_column is not None and (n == 1 or self._columns(table, {"time": time_column}, n)):
                payload["time_column"] = time_column
            if receipt is not None:
                self.run._writer.frame_once(receipt, payload)
                return receipt.seq
            return self.run._write_aside(payload) if table == "text" else self.run._writer.frame(payload)
        return 0

    def _note_numbered(self, table: str) -> None:
        """Report once that a program makes a table of each round: each is a folder, and is sealed on its own."""
        stem = table.rstrip("0123456789")
        names = self.run._parts.numbered.setdefault(stem, set())
        if len(names) < _MOST_NUMBERED and table not in names:
            names.add(table)
            if len(names) == _MOST_NUMBERED:
                self.run._writer.bill.remark(
                    "numbered_tables",
                    f"record({table!r}, …): {_MOST_NUMBERED} tables are called {stem!r} with a number. Each is kept, "
                    f"and costs as much at the end as one with all rows. Record one table {stem.rstrip('_-.')!r}, with "
                    "the number as a clock or a column",
                )

    def _columns(self, table: str, columns: Mapping[str, object], n: int) -> dict[str, Any]:
        """The columns that can be stored: those that have n values."""
        if n == 1:
            if type(columns) is dict and set(map(type, columns.values())) == {list}:
                return columns
            return {
                name: cells if type(cells) is list or _is_one(cells) else [cells] for name, cells in columns.items()
            }
        fitting = {}
        for name, cells in columns.items():
            length = _length(cells)
            if length == n:
                fitting[name] = cells
            elif length is None:
                fitting[name] = [cells] * n
            else:
                self.run._writer.bill.count(
                    "uneven_columns",
                    message=f"record({table!r}, …, n={n}): the column {name!r} has {length} values; it was left out, "
                    "the others were kept. Pass one value for each row",
                    name=f"{table}/{name}",
                )
        return fitting

    # -- write now

    def log_many(self, columns: Mapping[str, object], **clocks: object) -> None:
        """Append T rows in one call: {key: array of T}; each clock is a number or an array of T.

        Args:
          columns: key -> T numbers (a list, or an array of shape [T]). All columns have the same length.
          clocks: readings; an array of T sets one per row.
        """
        self._guard(lambda: self._log_many(columns, clocks))

    def _log_many(self, columns: Mapping[str, object], clocks: Mapping[str, object]) -> None:
        prefix = self._channel.prefix
        cells = {f"{prefix}{key_of(key)}": _host_column(column) for key, column in columns.items()}
        lengths = {len(column) for column in cells.values()}
        if len(lengths) != 1:
            lengths_by_key = {key: len(column) for key, column in cells.items()}
            self.count(
                "uneven_columns",
                message=f"log_many() takes columns of one length; it was given {lengths_by_key}. "
                "Nothing of this call was kept",
                name=", ".join(map(str, columns)),
            )
            return
        (n,) = lengths
        single: dict[str, Any] = {name: value for name, value in clocks.items() if not _is_column(value)}
        arrays = {name: _host_column(value) for name, value in clocks.items() if _is_column(value)}
        uneven = [name for name, column in arrays.items() if len(column) != n]
        for name in uneven:
            self.count(
                "uneven_columns",
                message=f"log_many(): the clock {name} has {len(arrays.pop(name))} readings for {n} rows",
                name=name,
            )
        unknown = [name for name in arrays if name not in self.run._writer.clocks]
        for name in unknown:
            cells[f"{prefix}clock/{name}"] = arrays.pop(name)
            self.count("unknown_clock", message=f"log_many(): no clock {name!r} was declared; kept as 'clock/{name}'")
        if not n:
            return
        for start in range(0, n, _ROWS_PER_FRAME):
            part = slice(start, start + _ROWS_PER_FRAME)
            self.record(
                "metrics",
                {key: column[part] for key, column in cells.items()} if n > 1 else cells,
                n=min(_ROWS_PER_FRAME, n - start),
                clock_columns={name: column[part] for name, column in arrays.items()},
                **single,
            )
        for name, column in arrays.items():
            self.clock(**{name: column[-1]})

    def log_text(self, key: str, text: str, **clocks: Any) -> None:
        """Store a text under a key.

        Args:
          key: its key, below the scope's name.
          text: the text. Other objects are converted with `str`.
        """
        self._guard(lambda: self.record("text", {"key": self._full(key), "text": str(text)}, **clocks))

    def note(self, text: str, **clocks: Any) -> None:
        """Store a note by the person who runs the training. Its key is "note".

        Args:
          text: the note. Other objects are converted with `str`.
        """
        self._guard(lambda: self.record("text", {"key": "note", "text": str(text)}, **clocks))

    def log_histogram(self, key: str, values: Any, **clocks: Any) -> None:
        """Store a distribution: an array of numbers, or a `rollbook.values.Histogram`.

        Args:
          key: its key, below the scope's name.
          values: up to 4,096 numbers are stored raw and binned when read. Larger arrays are binned now (64 bins), with
            their exact minimum, maximum, sum and sum of squares.
        """
        full = self._full(key)
        self._guard(lambda: self.record("histograms", {"key": [full], **self._binned(full, values)}, **clocks))

    def _binned(self, key: str, values: object) -> dict[str, object]:
        found = f"log_histogram({key!r}, …): found {type(values).__name__}"
        wanted = "numbers, an array of numbers or a rollbook.values.Histogram"
        with raising(lambda err: BadInput(f"{found} ({err}); pass {wanted}"), TypeError, ValueError):
            return histogram_columns(values)

    def log_image(self, key: str, image: object, **clocks: object) -> None:
        """Store an image.

        Args:
          key: its key, below the scope's name.
          image: [height, width] or [height, width, 1, 3 or 4], uint8, or floats in [0, 1].
        """
        self._guard(lambda: self.run.media.log_image(self, self._full(key), image, **clocks))

    def log_video(self, key: str, frames: object, fps: float = 30.0, **clocks: object) -> None:
        """Store a video.

        Args:
          key: its key, below the scope's name.
          frames: [time, height, width, channels], uint8, or floats in [0, 1].
          fps: frames per second.
        """
        self._guard(lambda: self.run.media.log_video(self, self._full(key), frames, fps=fps, **clocks))

    def log_figure(self, key: str, figure: object, **clocks: object) -> None:
        """Store a matplotlib figure as an image.

        Args:
          key: its key, below the scope's name.
          figure: the figure; it stays open.
        """
        self._guard(lambda: self.run.media.log_figure(self, self._full(key), figure, **clocks))

    def log_episode(self, **columns: Any) -> int:
        """Append one row to the table `episodes`.

        Args:
          columns: `return_` (the column `return`: the sum of the rewards), `length` (steps), `seconds`, `terminated`,
            `truncated`, `episode_id` (made if it is not given), and any columns of your own. Arguments with the name of
            a clock set that clock.
        Returns:
          The sequence number of the row; 0 if it was refused (counted).
        """
        names = self.run._writer.clocks
        clocks = {name: columns.pop(name) for name in list(columns) if name in names}
        if "return_" in columns:  # `return` cannot be the name of a Python argument
            columns["return"] = columns.pop("return_")
        columns.setdefault("episode_id", f"{self.run._writer.id}-{os.urandom(4).hex()}")
        return self.record("episodes", columns, **clocks)

    def log_samples(self, items: object, ids: object = None, group: object = None, **columns: object) -> LoggedSamples:
        """Append one row per item of a batch, with any per-item columns; `.new` of the result tells which are new.

        Args:
          items: a list of texts or of structured data, or an array whose first axis counts items.
          ids: one id per item, for items with an identity (prompt 812). By default each row gets one.
          group: one value per item, or one for all.
          columns: name -> n values (list, array or tensor), one value for all, or a dict of those ("rewards" by
            component becomes `rewards/<component>`). May include clocks. A column of another length is cut or filled
            with None, and reported.
        Returns:
          Which items are new. After a failure (counted) all count as seen.
        """
        logged: LoggedSamples = self.run.samples.log_samples(self, items, ids=ids, group=group, **columns)
        return logged

    # -- store, then log

    def store(self, values: Mapping[str, object] | None = None, /, **more: object) -> None:
        """Keep values for the next `dump`, and write each at once, raw, under its key.

        Args:
          values: name -> number, as for `log`.
          more: further values by name, and clocks.
        """
        self._guard(lambda: self._do_store({**(values or {}), **more}))

    def _do_store(self, values: dict[str, Any]) -> None:
        names = self.run._writer.clocks
        clocks = {name: values.pop(name) for name in list(values) if name in names}
        store = self._stored()  # before logging: a resumed run reads its window back from its rows
        self.log(values, **clocks)
        store.store(values)
        if new := store.new_keys():  # a later restore then knows which rows belong to the window
            self._report("store", new)

    def dump(
        self,
        keys: Iterable[str] | str | None = None,
        with_min_and_max: bool = False,
        average_only: bool = False,
        **clocks: Any,
    ) -> dict[str, float]:
        """Write one row of statistics over the values stored since the last dump, and a dump mark.

        For each key: `<key>/mean`, `/std` (population), `/median`, `/n` and, on request, `/min`, `/max`. A key without
        new values gives only `/n` = 0. A dump without keys writes nothing.

        Args:
          keys: the keys to dump; None means all keys that were ever stored.
          with_min_and_max: also write the minimum and the maximum.
          average_only: write only the mean and `/n`.
        Returns:
          The row, without the scope's prefix.
        """
        row: dict[str, float] = {}

        wanted: list[str] | None = None

        def work() -> None:
            nonlocal wanted
            wanted = None if keys is None else [keys] if isinstance(keys, str) else list(keys)
            row.update(self._stored().dump(wanted, with_min_and_max, average_only, write=write))

        def write(row: dict[str, float]) -> None:
            self.log(row, **clocks)
            self._report("dump", wanted or dict.fromkeys(name.rpartition("/")[0] for name in row))

        self._guard(work)
        return row

    def _report(self, mark: str, keys: Iterable[str]) -> None:
        """Write a mark about keys of this scope."""
        channel = self._channel
        full = [f"{channel.prefix}{key}" for key in keys]
        common = {"scope": channel.scope, "at": channel.at, "clocks": list(channel.current)}
        self.run._writer.frame({"mark": mark, **common, "keys": full})

    def _stored(self) -> Store:
        if self._store is None:
            self._store = self.run._store_of(self._channel.scope, self._channel.at)
        return self._store

    # -- time

    def timer(self, name: str) -> Any:
        """Measure the stage `name`: `with run.timer("collect"): …`, or as a decorator. Nested stages are "outer/inner".

        Each exit writes one row to `timings` (seconds, wall time). Stages of different threads do not nest.

        Args:
          name: the stage, such as "collect".
        """
        if self._timers is None:
            from rollbook.capture import Timers

            channel = self.run._writer.channel("timings", scope=self._channel.scope, current=self._channel.current)
            self._timers = Timers(self.run._writer.make_log(channel))
        return self._timers(name)

    # -- odds and ends

    def scope(self, name: str, at: Checkpoint | str | None = None) -> Scope:
        """A scope below this one.

        Args:
          name: what its keys begin with, after this scope's name.
          at: a checkpoint (or its id); rows then get its clocks, however late they arrive.
        Raises:
          InvalidName: the name is empty or has control characters.
          BadInput: the run has no such checkpoint.
        """
        if not isinstance(name, str) or not name.strip("/"):
            raise InvalidName(f"scope({name!r}): a scope's name is text without control characters, such as 'train'")
        scope: Scope = self.run._open_scope(f"{self._channel.prefix}{key_of(name)}", at)
        return scope

    def _full(self, key: object) -> str:
        """A key with this scope's prefix."""
        return f"{self._channel.prefix}{key_of(key)}"

    def _guard(self, work: Callable[..., object], *arguments: object) -> None:
        with handled_by(self.run._writer.failed, "log"):
            work(*arguments)

    def __repr__(self) -> str:
        return f"<Scope {self.name!r} of {self.run!r}>"


def _as_columns(table: str, given: Any, n: int) -> tuple[dict[str, object], int]:
    """(the columns, the number of rows) of columns, a list of rows or a data frame.

    Raises:
      TypeError: it is none of them.
    """
    names = getattr(given, "columns", None)
    if names is not None and hasattr(given, "to_dict"):  # a frame of pandas or polars
        return {str(name): given[name].to_list() for name in names}, len(given)
    if hasattr(given, "items"):
        return dict(given), n
    rows = list(given) if hasattr(given, "__iter__") and not isinstance(given, (str, bytes)) else [given]
    if any(not hasattr(row, "items") for row in rows):
        raise TypeError(
            f"record({table!r}, …) takes columns, such as {{'return': [1.0, 2.0]}} with n=2, or a list of rows, such "
            f"as [{{'return': 1.0}}, {{'return': 2.0}}]; it was given {type(given).__name__} {given!r:.80}"
        )
    keys = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in keys}, len(rows)


def _length(cells: object) -> int | None:
    """How many rows a column has; None for a single value, which is that of all rows."""
    if cells is None or isinstance(cells, (str, bytes, int, float)):
        return None
    shape = getattr(cells, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else None
    return len(cells) if hasattr(cells, "__len__") and not hasattr(cells, "keys") else None


def _name(log: Any, run: OpenRun, channel: Channel) -> None:
    """Name a `log` by what `attaching.unpickle_scope` needs, and by what tells it from others of its scope."""
    address = (run._writer.run_folder, run._about.nonce, channel.scope, channel.at, channel.id)
    name = f"log{address!a}".replace(".", r"\x2e")  # pickle takes a dot for the attribute of an attribute
    log.__module__, log.__qualname__ = _PICKLED_BY, name
    LOGS[name] = log


def _is_one(value: Any) -> bool:
    """Whether `value` is a column of one row, not the cell itself: a list, or an array whose first axis is 1."""
    return isinstance(value, list) or (hasattr(value, "__array_interface__") and value.shape[:1] == (1,))


def _is_column(value: object) -> bool:
    if isinstance(value, (list, tuple, range)):
        return True
    shape = getattr(value, "shape", None)
    return shape is not None and len(shape) > 0


def _host_column(value: Any) -> Any:
    """A column in host memory that can be sliced and encoded: a list, or an array of numbers."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    if is_tensor(value):
        return host_array(value)
    if not hasattr(value, "dtype") or not hasattr(value, "tobytes"):
        return list(value)
    return value if hasattr(value, "__array_interface__") else host_array(value)
