"""The writing end of a run: `Run`, and `Scope`, a prefix of it.

    with rollbook.init("cartpole", "ppo", seed=3) as run:
        update = run.scope("update")
        update.log({"loss/policy": 0.2}, env_step=2048, gradient_step=10)

`run.log` and `scope.log` are the journal's own functions, bound when the object is made; everything else here is the
ordinary path: it may take some microseconds, and loads what it needs at first use.
"""

from __future__ import annotations

import os
import time

from rollbook.clocks import UNKNOWN, as_clock
from rollbook.errors import BadInput, InvalidName, LoggingFailed, RollbookError
from rollbook.journal.slow import Slow, histogram_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from rollbook.capture.checkpoints import Checkpoint, Checkpoints
    from rollbook.capture.restoring import Restored
    from rollbook.capture.samples import LoggedSamples
    from rollbook.capture.timers import Timers
    from rollbook.journal.writer import Channel, Writer
    from rollbook.store.reader import Book

__all__ = ["Run", "Scope"]


class Scope:
    """A prefix of a run's keys. `run.scope("update").log({"loss": x})` is `run.log({"update/loss": x})`.

    Threads: every method may be called from any number of threads. Failures are counted and said once
    (`run.bill()`); nothing raises into a training loop unless the run is strict.

    Attributes:
      log: log(values, *, env_step=, gradient_step=, epoch=, episode=, policy_version=, step=, **declared): append one
      row.
        `values` is a dict (nested dicts are joined with "/") of numbers, 0-d arrays, device tensors, text or arrays.
        Clocks that are not given are the run's current ones. About 2 µs.
      name: the scope's name (of a `Run`: the run's name).
      run: the run it belongs to.
    """

    log: Callable[..., None]

    def __init__(self, run: Run, name: str, channel: Channel) -> None:
        self.run, self.name, self._channel = run, name, channel
        writer: Writer = run.writer
        self.log = writer.make_log(channel)
        self._slow = Slow(writer, channel)
        self._store: Any = None
        self._timers: Timers | None = None

    # -- what capture rooms use (protocols.Recorder)

    @property
    def scope_name(self) -> str:
        """The scope's name, "" for the run itself (whose `name` is the run's)."""
        return self._channel.scope

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.run.folder

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Add n to the bill under `cause`; the first time, warn with `message` (under strict=True: raise it)."""
        self.run.writer.bill.count(cause, n, message)

    def clocks_now(self) -> dict[str, int]:
        """The clocks that are known at this moment, by name."""
        names = self.run.writer.clocks
        return {name: value for name, value in zip(names, self._channel.current, strict=True) if value != UNKNOWN}

    def clock(self, **clocks: Any) -> None:
        """Set the current clocks; later rows carry them unless they bring their own."""
        self._guard(lambda: self._slow.take_declared(clocks))

    def record(
        self,
        table: str,
        columns: Mapping[str, Any],
        n: int = 1,
        *,
        clock_columns: Mapping[str, Any] | None = None,
        time_column: Any = None,
        **clocks: Any,
    ) -> int:
        """Append n rows to a table as one frame.

        Args:
          table: one of the tables of the glossary (episodes, steps, samples, …), or a name of your own.
          columns: name -> n values: a list of plain data or an array whose first axis is n. With n = 1 plain values may
            stand without a list.
          clock_columns: clock -> n readings, where they differ from row to row.
          time_column: n times in monotonic ns (`rollbook.journal.writer.now`).
        Returns:
          The frame's sequence number; 0 if it was refused (counted).
        """
        try:
            readings, refused = self._slow.clocks((), clocks)
            channel = self._channel
            payload: dict[str, Any] = {
                "table": table,
                "scope": channel.scope,
                "at": channel.at,
                "clocks": readings,
                "n": n,
                "columns": {
                    k: v if n != 1 or type(v) is list or _is_one(v) else [v] for k, v in {**columns, **refused}.items()
                },
            }
            if clock_columns:
                payload["clock_columns"] = dict(clock_columns)
            if time_column is not None:
                payload["time_column"] = time_column
            return self.run.writer.frame(payload)
        except LoggingFailed:
            raise
        except Exception as err:
            self.run.writer.failed("record", err)
            return 0

    # -- write now

    def log_many(self, columns: Mapping[str, Any], **clocks: Any) -> None:
        """Append T rows in one call: {key: array of T}, each clock a number or an array of T.

        Args:
          columns: key -> T numbers (a list, or an array of shape [T]). All of one length.
        """
        self._guard(lambda: self._log_many(columns, clocks))

    def _log_many(self, columns: Mapping[str, Any], clocks: Mapping[str, Any]) -> None:
        prefix = self._channel.prefix
        found = {f"{prefix}{key}": _host_column(column) for key, column in columns.items()}
        lengths = {len(column) for column in found.values()}
        if len(lengths) != 1:
            lengths_by_key = {key: len(column) for key, column in found.items()}
            self.count(
                "uneven_columns",
                message=f"log_many() takes columns of one length; it was given {lengths_by_key}. "
                "Nothing of this call was kept",
            )
            return
        (n,) = lengths
        single = {name: value for name, value in clocks.items() if not _is_column(value)}
        arrays = {name: _host_column(value) for name, value in clocks.items() if _is_column(value)}
        uneven = [name for name, column in arrays.items() if len(column) != n]
        for name in uneven:
            self.count(
                "uneven_columns",
                message=f"log_many(): the clock {name} has {len(arrays.pop(name))} readings for {n} rows",
            )
        unknown = [name for name in arrays if name not in self.run.writer.clocks]
        for name in unknown:
            found[f"{prefix}clock/{name}"] = arrays.pop(name)
            self.count("unknown_clock", message=f"log_many(): no clock {name!r} was declared; kept as 'clock/{name}'")
        if not n:
            return
        for start in range(0, n, _ROWS_PER_FRAME):
            part = slice(start, start + _ROWS_PER_FRAME)
            self.record(
                "metrics",
                {key: column[part] for key, column in found.items()} if n > 1 else found,
                n=min(_ROWS_PER_FRAME, n - start),
                clock_columns={name: column[part] for name, column in arrays.items()},
                **single,
            )
        for name, column in arrays.items():
            self.clock(**{name: column[-1]})

    def log_text(self, key: str, text: str, **clocks: Any) -> None:
        """Keep a text under a key. What is no text is kept as `str` writes it."""
        self._guard(lambda: self.record("text", {"key": f"{self._channel.prefix}{key}", "text": str(text)}, **clocks))

    def note(self, text: str, **clocks: Any) -> None:
        """Keep a remark of the person who runs the training; notes have the key "note"."""
        self._guard(lambda: self.record("text", {"key": "note", "text": str(text)}, **clocks))

    def log_histogram(self, key: str, values: Any, **clocks: Any) -> None:
        """Keep a distribution: an array of numbers, or a `rollbook.values.Histogram`.

        Up to 4,096 numbers are kept raw and binned when read; more are binned now (64 bins), with their exact minimum,
        maximum, sum and sum of squares.
        """
        full = f"{self._channel.prefix}{key}"
        self._guard(lambda: self.record("histograms", {"key": [full], **self._binned(full, values)}, **clocks))

    def _binned(self, key: str, values: Any) -> dict[str, Any]:
        try:
            return histogram_columns(values)
        except (TypeError, ValueError) as err:
            raise BadInput(
                f"log_histogram({key!r}, …): found {type(values).__name__} ({err}); pass numbers, an array of numbers "
                "or a rollbook.values.Histogram"
            ) from None

    def log_image(self, key: str, image: Any, **clocks: Any) -> None:
        """Keep a picture: [height, width] or [height, width, 1, 3 or 4], uint8, or floats in [0, 1]."""
        self._guard(lambda: self.run.media.log_image(self, f"{self._channel.prefix}{key}", image, **clocks))

    def log_video(self, key: str, frames: Any, fps: float = 30.0, **clocks: Any) -> None:
        """Keep a film: frames of [time, height, width, channels], uint8, or floats in [0, 1]."""
        self._guard(lambda: self.run.media.log_video(self, f"{self._channel.prefix}{key}", frames, fps=fps, **clocks))

    def log_figure(self, key: str, figure: Any, **clocks: Any) -> None:
        """Keep a matplotlib figure as a picture. The figure stays open."""
        self._guard(lambda: self.run.media.log_figure(self, f"{self._channel.prefix}{key}", figure, **clocks))

    def log_episode(self, **columns: Any) -> int:
        """Append one row to `episodes`: return_ or return, length, seconds, terminated, truncated, … and any other
        columns.

        Clocks among the arguments are taken as clocks.
        """
        names = self.run.writer.clocks
        clocks = {name: columns.pop(name) for name in list(columns) if name in names}
        if "return_" in columns:  # `return` is no name for a Python argument
            columns["return"] = columns.pop("return_")
        columns.setdefault("episode_id", f"{self.run.writer.id}-{os.urandom(4).hex()}")
        return self.record("episodes", columns, **clocks)

    def log_samples(self, items: Any, ids: Any = None, group: Any = None, **columns: Any) -> LoggedSamples:
        """Append one row per item of a batch, with any per-item columns; `.new` says which items were never seen
        before.
        """
        logged: LoggedSamples = self.run.samples.log_samples(self, items, ids=ids, group=group, **columns)
        return logged

    # -- store, then log

    def store(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> None:
        """Keep values for the next `dump`, and write each at once, raw, under its key. Clocks may be among the
        arguments.
        """
        self._guard(lambda: self._do_store({**(values or {}), **more}))

    def _do_store(self, values: dict[str, Any]) -> None:
        names = self.run.writer.clocks
        clocks = {name: values.pop(name) for name in list(values) if name in names}
        self.log(values, **clocks)
        store = self._stored()
        store.store(values)
        if new := store.new_keys():  # so that a later restore knows which rows make up the window
            self._say("store", new)

    def dump(
        self,
        keys: Iterable[str] | str | None = None,
        with_min_and_max: bool = False,
        average_only: bool = False,
        **clocks: Any,
    ) -> dict[str, float]:
        """Write one row about what was stored since the last dump, and a dump mark.

        For each key: `<key>/mean`, `/std` (population), `/median`, `/n` and, if asked, `/min`, `/max`; with
        `average_only`
        the mean and `/n`. A key without new values gives `/n` = 0 alone; a dump of nothing writes nothing.

        Args:
          keys: which ones; None means all that were ever stored.
        Returns:
          The row, without the scope's prefix.
        """
        row: dict[str, float] = {}

        def work() -> None:
            wanted = None if keys is None else [keys] if isinstance(keys, str) else list(keys)
            row.update(self._stored().dump(wanted, with_min_and_max=with_min_and_max, average_only=average_only))
            if not row:
                return
            self.log(row, **clocks)
            self._say("dump", wanted or dict.fromkeys(name.rpartition("/")[0] for name in row))

        self._guard(work)
        return row

    def _say(self, mark: str, keys: Iterable[str]) -> None:
        """A mark about keys of this scope."""
        channel = self._channel
        full = [f"{channel.prefix}{key}" for key in keys]
        common = {"scope": channel.scope, "at": channel.at, "clocks": list(channel.current)}
        self.run.writer.frame({"mark": mark, **common, "keys": full})

    def _stored(self) -> Any:
        if self._store is None:
            self._store = self.run.store_of(self._channel.scope, self._channel.at)
        return self._store

    # -- time

    def timer(self, name: str) -> Any:
        """Measure a stage: `with run.timer("collect"): …`, or as a decorator. Nested stages are named "outer/inner".

        Each exit writes one row to `timings` (seconds, wall time).
        """
        if self._timers is None:
            from rollbook.capture.timers import Timers

            channel = self.run.writer.channel("timings", scope=self.scope_name, current=self._channel.current)
            self._timers = Timers(self.run.writer.make_log(channel))
        return self._timers(name)

    # -- odds and ends

    def scope(self, name: str, at: Checkpoint | str | None = None) -> Scope:
        """A scope below this one. `at`: a checkpoint (or its id); rows then stand at its clocks, however late they
        come.
        """
        if not isinstance(name, str) or not name.strip("/"):
            raise InvalidName(f"scope({name!r}): a scope's name is text without control characters, such as 'train'")
        return self.run.open_scope(f"{self._channel.prefix}{name}", at)

    def _guard(self, work: Callable[..., Any], *arguments: Any) -> None:
        try:
            work(*arguments)
        except LoggingFailed:
            raise
        except Exception as err:
            self.run.writer.failed("log", err)

    def __repr__(self) -> str:
        return f"<Scope {self.name!r} of {self.run!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from rollbook._session import unpickle_scope

        return unpickle_scope, (*self.run.address(), self.scope_name, self._channel.at)


_ROWS_PER_FRAME = 65_536


class Run(Scope):
    """The writing end of one run. Made by `rollbook.init` and `rollbook.attach`.

    As a context manager it finishes at the end of the block: `finished`, `killed` on KeyboardInterrupt, `crashed` on
    any
    other exception. Pickled, it becomes a further writer of the same run where it is unpickled.

    Attributes:
      id, project, name, seed: identity. attempt: the life of the run, from 1.
      config: the configuration, a dict; changes are kept.
      summary: a dict of last words (best return, …); changes are kept.
      resumed: whether this is a later attempt.
    """

    def __init__(
        self,
        *,
        folder: Path,
        about: dict[str, Any],
        writer: Writer,
        end: Callable[[Run, str], None],
    ) -> None:
        self._folder, self.about, self.writer, self._end = folder, about, writer, end
        self.id: str = about["id"]
        self.project: str = about["project"]
        self.seed: int | None = about.get("seed")
        self.status = "running"
        self.tokens: list[Any] = []
        self._last_words: list[tuple[int, Callable[[str], object]]] = []
        self._parts: dict[str, Any] = {}
        super().__init__(self, "", writer.channel())
        self.name = about["name"]
        self.config: dict[str, Any] = _Watched(about.get("config") or {}, self._config_changed)
        self.summary: dict[str, Any] = _Watched(about.get("summary") or {}, self._summary_changed)
        self.config_changed = True

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._folder

    @property
    def attempt(self) -> int:
        """The life of the run that this process writes, from 1."""
        return self.writer.attempt

    @property
    def resumed(self) -> bool:
        """Whether the run was continued."""
        return self.writer.attempt > 1

    @property
    def offsets(self) -> dict[str, int]:
        """What to add to the counters of a framework that counts from 0 again after a resume (see
        `continue_clocks`).
        """
        return dict(self._attempt_entry().get("offsets") or {})

    @property
    def book(self) -> Book:
        """The reading end of this run, while it is being written."""
        from rollbook.store.reader import Book

        return Book(self._folder)

    def open_scope(self, name: str, at: Checkpoint | str | None = None) -> Scope:
        """See `scope`; takes the full name."""
        if not isinstance(name, str) or not name.strip("/") or any(ord(c) < 32 for c in name):
            raise InvalidName(f"scope({name!r}): a scope's name is text without control characters, such as 'train'")
        name = name.strip("/")
        writer = self.writer
        if at is None:
            return Scope(self, name, writer.channel(prefix=f"{name}/", scope=name, current=self._channel.current))
        checkpoint_id, clocks = self._resolve_checkpoint(at)
        channel = writer.channel(prefix=f"{name}/", scope=name, at=checkpoint_id)
        scope = Scope(self, name, channel)
        scope.clock(**clocks)
        return scope

    def _resolve_checkpoint(self, at: Any) -> tuple[str, dict[str, int]]:
        identity, clocks = getattr(at, "id", None), getattr(at, "clocks", None)
        if identity is not None and clocks is not None:
            return str(identity), dict(clocks)
        table = self.book.checkpoints()
        for row in table.drop_columns(["time"]).to_pylist() if table.num_rows else ():
            if row["checkpoint_id"] == at:
                return str(at), {name: row[name] for name in self.writer.clocks if row.get(name) is not None}
        raise BadInput(
            f"scope(…, at={at!r}): the run has no such checkpoint; pass what save_checkpoint() returned, or its id"
        )

    # -- capture rooms that belong to the run as a whole

    def store_of(self, scope: str, at: str = "") -> Any:
        """What was stored in a scope since its last dump (capture.store_dump): one window, however often it is opened.

        Args:
          at: the id of the checkpoint that the scope stands at.
        """
        stores: dict[tuple[str, str], Any] = self._parts.setdefault("stores", {})
        store = stores.get((scope, at))
        if store is None:
            from rollbook.capture.store_dump import Store

            store = stores.setdefault((scope, at), Store(count=self.count))
        return store

    @property
    def media(self) -> Any:
        """Pictures and films of the run (capture.media)."""
        if "media" not in self._parts:
            from rollbook.capture.media import Media

            self._parts["media"] = Media(self._folder, self.count)
        return self._parts["media"]

    @property
    def samples(self) -> Any:
        """The seen-before set and sample log of the run (capture.samples)."""
        if "samples" not in self._parts:
            from rollbook.capture.samples import SampleLog

            self._parts["samples"] = SampleLog(self)
        return self._parts["samples"]

    @property
    def checkpoints(self) -> Checkpoints:
        """The checkpoints of the run (capture.checkpoints)."""
        if "checkpoints" not in self._parts:
            from rollbook.capture.checkpoints import Checkpoints

            self._parts["checkpoints"] = Checkpoints(self, self._folder, positions=self.writer.positions)
        checkpoints: Checkpoints = self._parts["checkpoints"]
        return checkpoints

    def save_checkpoint(
        self,
        state: Any = None,
        *,
        score: float | None = None,
        write: Callable[[Path], None] | None = None,
        path: str | os.PathLike[str] | None = None,
        keep: int | None = None,
        higher_is_better: bool = True,
        rng: bool | Mapping[str, Any] = True,
        **clocks: Any,
    ) -> Checkpoint:
        """Save a checkpoint atomically and note exactly where in the run it was made.

        Args:
          state: a state dict; with torch tensors in it `torch.save` writes it, otherwise an open container of raw
          arrays.
          score: the better it is, the sooner it becomes `ckpt_best`; NaN never does.
          write: instead of `state`: a function that writes the file whose path it is given.
          path: instead of both: register a file or folder that a framework wrote.
          keep: how many to keep beside the best; older ones are deleted. None keeps all.
          higher_is_better: False for a loss.
          rng: keep the random states of this process; a dict names generators of your own to keep as well.
        Returns:
          The checkpoint: `id`, `path`, `clocks`, `score`, `is_best`. After a failure (counted) its path is None.
        """
        self.clock(**clocks)
        return self.checkpoints.save(
            state,
            score=score,
            write=write,
            path=path,
            keep=keep,
            clocks=self.clocks_now(),
            higher_is_better=higher_is_better,
            rng=rng,
        )

    def restore(
        self,
        which: str = "last",
        *,
        random_states: bool = True,
        generators: Mapping[str, Any] | None = None,
        weights_only: bool = True,
    ) -> Restored | None:
        """Go back to a checkpoint: the run continues from there, and what came after it is abandoned (hidden, kept).

        Args:
          which: "last", "best", or the id of a checkpoint.
          random_states: set the random number generators as they were.
          generators: your own generators by the names under which save_checkpoint(rng=…) kept their states.
          weights_only: passed to torch for checkpoints that torch wrote.
        Returns:
          What was restored: `.id`, `.path`, `.clocks`, `.state`, `.score`; None if the run has no such checkpoint
          (said once).
        Raises:
          Damaged, OSError: its file cannot be read; the run's history is then as it was.
        """
        from rollbook.capture.restoring import Restored, choose, known_clocks, place_of

        table = self.book.checkpoints()
        times = table["time"].cast("timestamp[ns]").cast("int64").to_pylist() if table.num_rows else []
        plain = table.drop_columns(["time"]).to_pylist() if table.num_rows else []  # ns have no Python type
        rows = [dict(row, time_ns=time_ns) for row, time_ns in zip(plain, times, strict=True)]
        row = choose(rows, which, self._folder)
        if row is None:
            self.count(
                "nothing_to_restore",
                message=f"restore({which!r}): run {self.id} has no such checkpoint to go back to; it has "
                f"{len(rows)} checkpoints in its history" + (". It begins anew" if not rows else ""),
            )
            if not rows:
                self._begin_anew()
            return None
        restored = Restored(row, self._folder, known_clocks(row, self.writer.clocks), weights_only)
        restored.load()
        self._rewind_to(*place_of(row), restored.id)
        self._set_clocks(restored.clocks)
        if random_states:
            for problem in restored.set_random_states(generators):
                self.count("random_state", message=problem)
        return restored

    def _begin_anew(self) -> None:
        """A resumed run without any checkpoint starts from 0: nothing that an earlier life wrote is effective."""
        entry = self._attempt_entry()
        if entry.get("parent") is None:
            return
        entry.update(parent=None, cut=None, checkpoint=None)
        self._rewound(None, None, None)

    def _set_clocks(self, clocks: dict[str, int]) -> None:
        self._channel.current[:] = [clocks.get(name, UNKNOWN) for name in self.writer.clocks]

    def rewind(self, **clock: int) -> None:
        """Go back to where a clock stood: rows after `env_step=…` (or another clock) are abandoned, hidden and kept.

        For checkpoints that rollbook did not save. The run's clocks are set to the readings of the last row that stays.
        """
        if len(clock) != 1:
            raise BadInput(f"rewind({clock}): name exactly one clock, such as env_step=5000")
        ((name, value),) = clock.items()
        reading = as_clock(value)
        if reading is None:
            raise BadInput(f"rewind({name}={value!r:.80}): a clock counts; pass the integer it stood at")
        from rollbook.store.history import cut_at

        attempt, cut, clocks = cut_at(self._folder, name, reading)
        self._rewind_to(attempt, cut, None)
        self._set_clocks(clocks)

    def _rewind_to(self, parent: int, cut: dict[str, Any], checkpoint: str | None) -> None:
        if self._was_taken_over():  # the next number is somebody else's
            return
        if self.writer.rows_written() or parent >= self.attempt:
            self._attempt_entry().update(ended=time.time(), status="rewound")
            number = max(entry["n"] for entry in self.about["attempts"]) + 1
            self.writer.begin_attempt(number)
            self.about["attempts"].append({**self._attempt_entry(number - 1), "n": number, "started": time.time()})
            self._attempt_entry().update(ended=None, status="running", writer=self.writer.id)
        self._attempt_entry().update(parent=parent, cut=cut, checkpoint=checkpoint)
        self._rewound(parent, cut, checkpoint)

    def _rewound(self, parent: int | None, cut: dict[str, Any] | None, checkpoint: str | None) -> None:
        self.write_about()  # first: who sees the mark finds the cut
        self.writer.frame({"mark": "rewind", "parent": parent, "cut": cut, "checkpoint": checkpoint})
        try:
            self._refill_stores()
        except Exception as err:
            self.writer.failed("read back what was stored", err)

    def _refill_stores(self) -> None:
        """What was stored since the last dump, as the history stands now, is waiting for the next dump again."""
        from rollbook.store.windows import read_windows

        self.writer.flush_deferred()
        windows = read_windows(self.book)
        for scope, at in {*windows, *self._parts.get("stores", ())}:
            before = f"{scope}/" if scope else ""
            own = windows.get((scope, at), {})
            self.store_of(scope, at).refill({key.removeprefix(before): values for key, values in own.items()})

    def continue_clocks(self, *names: str) -> dict[str, int]:
        """Keep where the named clocks stand now as offsets, for a framework whose counters begin at 0 again.

        The offsets are stored with the attempt: add `run.offsets` to the native counters, and log those as `step`.
        """
        now = self.clocks_now()
        offsets = {name: now[name] for name in names if name in now}
        self._attempt_entry()["offsets"] = {**self.offsets, **offsets}
        self.write_about()
        return self.offsets

    # -- the run's own page

    def _attempt_entry(self, number: int | None = None) -> dict[str, Any]:
        wanted = self.attempt if number is None else number
        for entry in self.about["attempts"]:
            if entry["n"] == wanted:
                found: dict[str, Any] = entry
                return found
        return {}

    def write_about(self) -> None:
        """Write run.json anew (the main writer only, unless another took the run over); failures are counted."""
        if not self.writer.main:
            return
        from rollbook._about import write_about
        from rollbook.journal.locks import PageLock

        if self.config:
            from rollbook.capture.config import plain

            config = plain(dict(self.config))[0]
            if repr(config) != repr(self.about.get("config")):  # also something deep inside of it
                self.config_changed = True
            self.about["config"] = config
        self.about["summary"] = {}
        if self.summary:
            from rollbook.capture.config import plain

            self.about["summary"] = plain(dict(self.summary))[0]
        self.about["drops"] = dict(self.writer.bill.counts)
        try:
            with PageLock(str(self._folder)):
                if not self._was_taken_over():
                    write_about(self._folder, self.about)
        except OSError as err:
            self.writer.failed("write run.json", err)

    def _was_taken_over(self) -> bool:
        """Whether run.json tells of a later attempt than ours: then it is not ours to write any more."""
        from rollbook._about import read_about

        try:
            attempts = read_about(self._folder)["attempts"]
        except RollbookError:  # there is none that can be read: ours is better
            return False
        newest = max((entry["n"] for entry in attempts if type(entry.get("n")) is int), default=0)
        if newest <= max(entry["n"] for entry in self.about["attempts"]):
            return False
        if not self.writer.fenced:
            self.writer.fenced = True
            self.count(
                "fenced",
                message="another process took this run over with resume='takeover'; what this process logs is kept, "
                "but does not count as the run's history",
            )
        return True

    def _config_changed(self, _key: str) -> None:
        self.config_changed = True

    def _summary_changed(self, key: str) -> None:
        from rollbook.capture.config import plain

        self._guard(lambda: self.writer.frame({"mark": "summary", "values": plain({key: self.summary.get(key)})[0]}))

    def bill(self) -> dict[str, Any]:
        """What rollbook cost this process so far and what it refused or dropped, by cause.

        Keys: rows, microseconds_per_row (measured now), seconds (rows times that), pending (device values),
        media (bytes handed over; files and bytes kept, evicted and failed; what is kept at most), drops {cause: count}.
        """
        cost = self.writer.measure_cost()
        rows = self.writer.rows_written()
        media = self._parts.get("media")
        return {
            "rows": rows,
            "microseconds_per_row": cost / 1000,
            "seconds": rows * cost / 1e9,
            "pending": len(self.writer.pending),
            "media": media.bill() if media is not None else {},
            "drops": dict(self.writer.bill.counts),
        }

    def address(self) -> tuple[str, str]:
        """What another process needs to become a writer of this run: folder and nonce."""
        return str(self._folder), str(self.about.get("nonce", ""))

    def on_finish(self, work: Callable[[str], object]) -> Callable[[str], object]:
        """Have `work(status)` called once when the run ends, while it can still be logged to; the last one asked first.

        Also when the run ends by itself: at the end of a `with` block or of the process, and at SIGTERM (`status` says
        which; there is little time then). Not in forked children. What it raises is counted. Returns `work`, so it can
        stand as a decorator.
        """
        self._last_words.append((os.getpid(), work))
        return work

    def finish(self, status: str = "finished") -> None:
        """End the run: fetch what is pending, seal, and let the sinks drain. Calling it again does nothing.

        Args:
          status: finished, killed or crashed.
        """
        while self.status == "running" and self._last_words:
            asked_in, work = self._last_words.pop()
            if asked_in == os.getpid():
                self._guard(work, status)
        if self.status == "running":
            self.status = status
            self._end(self, status)

    def __enter__(self) -> Self:
        from rollbook._session import enter

        enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from rollbook._session import leave, status_of

        leave(self)
        self.finish(status_of(kind))

    def __repr__(self) -> str:
        return f"<Run {self.project}/{self.name} {self.id}, attempt {self.attempt}, {self.status}>"

    def __reduce__(self) -> tuple[Any, ...]:
        from rollbook._session import unpickle_run

        return unpickle_run, self.address()


class _Watched(dict):  # type: ignore[type-arg]
    """A dict that tells when it was changed."""

    def __init__(self, values: Mapping[str, Any], changed: Callable[[str], None]) -> None:
        super().__init__(values)
        self._changed = changed

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._changed(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._changed(key)

    def update(self, *args: Any, **kwargs: Any) -> None:
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        value = super().pop(key, *default)
        self._changed(key)
        return value

    def popitem(self) -> tuple[str, Any]:
        key, value = super().popitem()
        self._changed(key)
        return key, value

    def clear(self) -> None:
        for key in list(self):
            del self[key]

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc]
        self.update(other)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def _is_one(value: Any) -> bool:
    """Whether `value` is a column of one row rather than the cell itself: a list, or an array whose first axis is 1."""
    return isinstance(value, list) or (hasattr(value, "__array_interface__") and value.shape[:1] == (1,))


def _is_column(value: Any) -> bool:
    if isinstance(value, (list, tuple, range)):
        return True
    shape = getattr(value, "shape", None)
    return shape is not None and len(shape) > 0


def _host_column(value: Any) -> Any:
    """A column in host memory that can be sliced and encoded: a list, or an array of numbers."""
    if isinstance(value, (list, tuple, range)):
        return list(value)
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    elif not hasattr(value, "dtype") or not hasattr(value, "tobytes"):
        value = list(value)
    if type(value).__module__.partition(".")[0] in ("jax", "jaxlib"):
        import numpy as np

        value = np.asarray(value)
    return value
