"""`Run`: the writing end of one run.

with rollbook.init("cartpole", "ppo", seed=3) as run:
    update = run.scope("update")
    update.log({"loss/policy": 0.2}, env_step=2048, gradient_step=10)
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident

from rollbook.errors import BadInput, Damaged, InvalidName, NothingToResume
from rollbook.journal import InterruptSafeLock
from rollbook.run.process_state import Parts
from rollbook.run.scope import Scope
from rollbook.run.summary import SummaryWords, Watched
from rollbook.run.troubles import Troubles, keeper_bill
from rollbook.schema import manifest
from rollbook.schema.addresses import backlog
from rollbook.schema.clocks import UNKNOWN, as_clock, now
from rollbook.system.files import exists
from rollbook.system.guard import handled_by, ours, tolerating
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Any, Self

    from rollbook.book import Book
    from rollbook.capture import Checkpoint, Checkpoints, Media, Restored, RolloutLog, SampleLog
    from rollbook.journal import Writer
    from rollbook.run.own_past import OwnPast
    from rollbook.schema.manifest import Attempt, Cut, RunJson


class Run(Scope):
    """The writing end of one run. `rollbook.init` and `rollbook.attach` create it.

    As a context manager it finishes the run at the end of the block: `finished`, `killed` on KeyboardInterrupt,
    `crashed` on any other exception. A pickled run becomes a further writer of the same run in the process that
    unpickles it.

    Attributes:
      id, project, name: identity.
      config: the configuration of this attempt, a dict; changes are stored.
      summary: a dict of final values (best return, …); changes are stored.
      resumed: whether it goes on from earlier rows.
    """

    def __init__(
        self,
        *,
        folder: Path,
        about: RunJson,
        writer: Writer,
        end: Callable[[Run, str, bool], None],
    ) -> None:
        self._folder, self._about, self._writer, self._end = folder, about, writer, end
        self.id: str = about.id
        self.project: str = about.project
        self.status, self._ended, self._ending = "running", False, InterruptSafeLock()
        self._last_words: list[tuple[int, Callable[[str], object]]] = []
        self._parts = Parts()
        super().__init__(self, "", writer.channel())
        self.name = about.name
        self.config: dict[str, Any] = Watched(about.config, self._config_changed)
        self.summary: dict[str, Any] = Watched(about.summary, self._summary_changed)
        self._config_is_new = True
        self._manifest_due = False
        # Number of rows of this attempt that are not training (marks, texts such as an environment's description), by
        # thread. A program that goes back while it is still starting up does not count as an attempt.
        self._asides: dict[int, int] = {}
        self._troubles = Troubles(self)
        self._words = SummaryWords(self)
        # A resumed run reads its open windows back at their first use, or in a restore.
        self._goes_on = bool(about.attempts and about.attempts[-1].before)
        self._windows_due = writer.main and (writer.attempt > 1 or self._goes_on)
        self._era = 1 if self._windows_due else 0

    @property
    def seed(self) -> int | None:
        """The seed that was passed to `init`, or the one that `config` names. rollbook seeds nothing with it."""
        if self._about.seed is None and self._config_is_new:
            self._guard(self._read_config)
        return self._about.seed

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self._folder

    @property
    def attempt(self) -> int:
        """Number of the attempt that this process writes, from 1."""
        return self._writer.attempt

    @property
    def resumed(self) -> bool:
        """Whether the run has earlier rows: of other attempts, or of this one, which this process had finished."""
        return self._writer.attempt > 1 or self._goes_on

    @property
    def book(self) -> Book:
        """The `Book` of this run. Works while the run is written."""
        from rollbook.book import Book

        return Book(self._folder)

    @property
    def _past(self) -> Book | OwnPast:
        """What this run reads of its earlier rows: its book, or without the packages for that its journal."""
        from rollbook.system.optional import is_core_alone

        if not is_core_alone():
            return self.book
        from rollbook.run.own_past import OwnPast

        return OwnPast(self._folder)

    def show(self, height: int = 640) -> Any:
        """The live page of this run for a notebook cell. This process serves it on 127.0.0.1.

        Args:
          height: pixels.
        """
        from rollbook.system.views import show

        return show(self._folder, height)

    def _open_scope(self, name: str, at: Checkpoint | str | None = None) -> Scope:
        """See `scope`; takes the full name."""
        if not isinstance(name, str) or not name.strip("/") or any(ord(c) < 32 for c in name):
            raise InvalidName(f"scope({name!r}): a scope's name is text without control characters, such as 'train'")
        name = name.strip("/")
        writer = self._writer
        if at is None:
            return Scope(self, name, writer.channel(prefix=f"{name}/", scope=name, current=self._channel.current))
        checkpoint_id, clocks = self._resolve_checkpoint(at)
        channel = writer.channel(prefix=f"{name}/", scope=name, at=checkpoint_id)
        scope = Scope(self, name, channel)
        scope.clock(**clocks)
        return scope

    def _resolve_checkpoint(self, at: object) -> tuple[str, dict[str, int]]:
        identity, clocks = getattr(at, "id", None), getattr(at, "clocks", None)
        if identity is not None and clocks is not None:
            return str(identity), dict(clocks)
        for row in self._past.checkpoint_history().rows:
            if row["checkpoint_id"] == at:
                return str(at), {name: row[name] for name in self._writer.clocks if row.get(name) is not None}
        raise BadInput(
            f"scope(…, at={at!r}): the run has no such checkpoint; pass what save_checkpoint() returned, or its id"
        )

    # -- capture rooms that belong to the run as a whole

    def _store_of(self, scope: str, at: str = "") -> Any:
        """Values stored in a scope since its last dump (capture.store_dump). All objects of one scope share this
        window.

        Args:
          scope: the scope's name, "" for the run itself.
          at: the id of the checkpoint that the scope refers to.
        """
        stores = self._parts.stores
        if self._windows_due:
            self._guard(self._refill_stores)
        store = stores.get((scope, at))
        if store is None:
            from rollbook.capture import Store

            store = stores.setdefault((scope, at), Store(count=self.count))
        return store

    @property
    def media(self) -> Media:
        """Pictures and videos of the run (capture.media)."""
        if self._parts.media is None:
            from rollbook.capture import Media

            self._parts.media = Media(self._folder, self.count)
        return self._parts.media

    @property
    def samples(self) -> SampleLog:
        """The sample log of the run, and the set of samples seen before (capture.samples)."""
        if self._parts.samples is None:
            from rollbook.capture import SampleLog

            self._parts.samples = SampleLog(self)
        return self._parts.samples

    @property
    def rollouts(self) -> RolloutLog:
        """Rollouts of language models and agents: `begin`, `log_many`, `trained`, `dropped` (capture.rollouts)."""
        if self._parts.rollouts is None:
            from rollbook.capture import RolloutLog

            self._parts.rollouts = RolloutLog(self)
        return self._parts.rollouts

    @property
    def _checkpoints(self) -> Checkpoints:
        """The checkpoints of the run (capture.checkpoints)."""
        if self._parts.checkpoints is None:
            from rollbook.capture import Checkpoints

            self._parts.checkpoints = Checkpoints(
                self, self._folder, positions=self._writer.positions, counts=self._counts
            )
        return self._parts.checkpoints

    def _counts(self) -> dict[str, int]:
        """Scope -> the environment steps that its recorders of episodes have counted, unfinished episodes included."""
        found = {scope: [c.count_all() for c in own] for scope, own in self._parts.counters.items()}
        return {scope: max(counts) for scope, counts in found.items() if counts}

    def save_checkpoint(
        self,
        state: object = None,
        *,
        score: float | None = None,
        write: Callable[[Path], None] | None = None,
        path: str | os.PathLike[str] | None = None,
        keep: int | None = None,
        higher_is_better: bool = True,
        rng: bool | Mapping[str, object] = True,
        through: str | Collection[str] = (),
        **clocks: object,
    ) -> Checkpoint:
        """Save a checkpoint atomically and record its exact position in the run.

        Args:
          state: a state dict. If it contains torch tensors, `torch.save` writes it; otherwise it is stored in an open
            format of raw arrays.
          score: the best score so far makes this checkpoint `ckpt_best`. Higher is better by default; NaN is never
            best.
          write: instead of `state`: a function that writes the file at the given path.
          path: instead of both: a file or folder to register that a framework wrote.
          keep: how many checkpoints to keep in addition to the best; older ones are deleted. None keeps all.
          higher_is_better: False for a loss.
          rng: also store the random states of this process; pass a dict to store generators of your own by name as
            well.
          through: clocks, such as "env_step". A `restore` then also keeps rows logged after the save, as long as none
            of these clocks had advanced: for example an evaluation of the model just saved. By default all rows
            after the save are abandoned, and the program logs them again after a restore.
        Returns:
          The checkpoint: `id`, `path`, `clocks`, `score`, `is_best`. After a failure (counted) or after
          the end of the run, the result is false and its path is None.
        """
        if self.status != "running":
            from rollbook.capture import Checkpoint

            self.count(
                "checkpoint_after_finish",
                message="save_checkpoint() was called after finish(): nothing was saved and the book knows of no such "
                "checkpoint. Save before the run ends, or go on with it by init(resume='must')",
            )
            return Checkpoint("", None, {})
        self.clock(**clocks)
        through = [through] if isinstance(through, str) else list(through)
        for name in through:
            if name not in self._writer.clocks:
                known = ", ".join(self._writer.clocks)
                self.count(
                    "checkpoint_through",
                    message=f"save_checkpoint(through={name!r}): there is no such clock, so it is not used. "
                    f"The run has {known}",
                )
        return self._checkpoints.save(
            state,
            score=score,
            write=write,
            path=path,
            keep=keep,
            clocks=self.clocks_now(),
            higher_is_better=higher_is_better,
            rng=rng,
            through=through,
        )

    def restore(
        self,
        which: str = "last",
        *,
        random_states: bool = True,
        generators: Mapping[str, object] | None = None,
        weights_only: bool = True,
    ) -> Restored | None:
        """Go back to a checkpoint. The run continues from there; later rows are abandoned (hidden, not deleted).

        Args:
          which: "last", "best", or the id of a checkpoint. If the file of the last one is damaged, the one before it
            is taken, and a warning says so.
          random_states: set the random number generators as they were.
          generators: your own generators, by the names used in save_checkpoint(rng=…).
          weights_only: passed to torch for checkpoints that torch wrote.
        Returns:
          The restored checkpoint: `.id`, `.path`, `.clocks`, `.state`, `.score`. None if the run has no such checkpoint
          (reported once, unless the run is new and "last" was asked for).
        Raises:
          Damaged, OSError: the file cannot be read (with "last": that of no checkpoint). The run's history is then
            unchanged.
          NothingToResume: there is no such checkpoint, and the run was opened with resume="must".
        """
        from rollbook.capture import Restored

        past = self._past
        history = past.checkpoint_history()
        row, rows = history.choose(which), history.rows
        if row is None:
            if self._parts.must:
                raise NothingToResume(
                    f"restore({which!r}): run {self.id} was opened with resume='must' and has no such checkpoint to go "
                    f"back to; it has {len(rows)} in its history. Start a new run with resume='never', or "
                    "continue without one with resume='allow'"
                )
            if rows or self.resumed or which != "last":  # a new run has none, and a loop may ask all the same
                self.count(
                    "nothing_to_restore",
                    message=f"restore({which!r}): run {self.id} has no such checkpoint to go back to; it has "
                    f"{amount(len(rows), 'checkpoint')} in its history"
                    + (". Training starts from the beginning" if not rows else ""),
                )
            if not rows:
                self._start_again()
            return None
        while True:
            clocks = {name: int(row[name]) for name in self._writer.clocks if row.get(name) is not None}
            restored = Restored(row, history.file_of(row), clocks, weights_only)
            try:
                restored.load()
                break
            except ours(Damaged, OSError) as err:
                before = history.before(row) if which == "last" else None
                if before is None:
                    raise
                self.count(
                    "checkpoint_damaged",
                    message=f"restore('last'): checkpoint {restored.id} cannot be read ({err}); the run goes back to "
                    f"the one before it, {before['checkpoint_id']}",
                )
                row = before
        self._rewind_to(*past.cut_behind(row), restored.id)
        self._set_clocks(restored.clocks)
        if random_states:
            for problem in restored.set_random_states(generators):
                self.count("random_state", message=problem)
        return restored

    def _start_again(self) -> bool:
        """A resumed run starts from 0: all rows of earlier attempts are abandoned. Returns whether that is new."""
        entry = self._attempt_entry()
        if entry.parent is None:
            return False
        entry.set(parent=None, cut=None, checkpoint=None)
        self._rewound(None, None, None)
        return True

    def _set_clocks(self, clocks: dict[str, int]) -> None:
        self._channel.current[:] = [clocks.get(name, UNKNOWN) for name in self._writer.clocks]

    def write_rows(self, rows: object, *, table: str = "metrics", source: str = "") -> int:
        """Write rows that were made elsewhere, in order, each with its own clocks and its own time.

        For importers and for logs that were kept in another form. For current values use `log` and `record`. Rows are
        written in batches; all of them are safe when this returns.

        Args:
          rows: an Arrow table (or a reader of record batches), or an iterable of mappings or `protocols.Row`s. In a
            mapping, `time` is unix seconds or a datetime (default: now), names of the run's clocks are their readings,
            and `scope` is the scope of the row. All other entries are values by their full keys: numbers, texts and
            histograms. None is left out. The columns of an Arrow table are read the same way.
          table: the table of the rows. For a table other than metrics, the values are its columns.
          source: where the rows come from, such as a path. The run stores how many rows of a source it has. A later
            call with the same source skips those and continues with the next, in this attempt or after a kill and a
            resume. Rows at the start of the source must not have changed.
        Returns:
          The number of rows written by this call. Rows that cannot be used (not a mapping, an impossible time) and
          single values that cannot be used are left out and counted (`run.bill()`).
        Raises:
          BadInput: `rows` is not iterable, the source has changed, or the disk is full.
          Any exception that `rows` itself raises during iteration; earlier batches stay written.
        """
        if self._parts.foreign_rows is None:
            from rollbook.run.foreign_rows import ForeignRows

            self._parts.foreign_rows = ForeignRows(self)
        return self._parts.foreign_rows.write(rows, table, source)

    def rewind(self, **clock: int) -> None:
        """Go back to a clock reading: rows after `env_step=…` (or another clock) are abandoned (hidden, not deleted).

        For checkpoints that rollbook did not save. The run is cut before the first row whose reading is higher, in all
        tables. The run's clocks are set to the readings of the last row that remains.

        Args:
          clock: one clock and the reading to go back to.
        Raises:
          BadInput: not exactly one clock, or the reading is not an integer.
          UnknownKey: no row has a reading of the clock up to this one.
        """
        if len(clock) != 1:
            raise BadInput(f"rewind({clock}): name exactly one clock, such as env_step=5000")
        ((name, value),) = clock.items()
        reading = as_clock(value)
        if reading is None:
            raise BadInput(f"rewind({name}={value!r:.80}): a clock counts; pass the integer it stood at")
        attempt, cut, clocks = self._past.cut_at(name, reading)
        self._rewind_to(attempt, cut, None)
        self._set_clocks(clocks)

    def _rewind_to(self, parent: int, cut: Cut, checkpoint: str | None) -> None:
        if self._was_taken_over():  # the next number belongs to another process
            return
        entry = self._attempt_entry()
        former = entry if entry.n else manifest.newest(self._about)
        # An exception from outside rollbook may have interrupted the start of the new attempt.
        moved = self._writer.main and former.writer != self._writer.id
        if moved or self._has_training_rows() or parent >= self.attempt:
            manifest.close_origin(self._about)
            moment = self._moment()
            former.set(ended=moment, status="rewound")
            number = max(manifest.newest(self._about).n, self.attempt) + 1
            self._asides = {}
            entry = former.but(n=number, started=moment, ended=None, status="running")
            entry.set(parent=parent, cut=cut, checkpoint=checkpoint)
            entry.forget("origin")
            try:
                self._writer.begin_attempt(number)
            finally:
                if self.attempt == number:  # also after an exception from outside rollbook
                    self._about.attempts.append(entry.but(writer=self._writer.id))
        self._attempt_entry().set(parent=parent, cut=cut, checkpoint=checkpoint)
        self._rewound(parent, cut, checkpoint)

    def _moment(self) -> float:
        """Now in unix seconds, never before the rows of this attempt: the host's clock may have gone back."""
        return max(time.time(), (now() + self._writer.time_offset) / 1e9)

    def _write_aside(self, payload: dict[str, Any]) -> int:
        """Write a frame that is not part of training; returns its number, as `Writer.frame` does."""
        asides, thread = self._asides, get_ident()
        seq = self._writer.frame(payload)
        if seq:  # last: one too few costs an extra attempt, one too many would keep abandoned rows
            asides[thread] = asides.get(thread, 0) + 1
        return seq

    def _has_training_rows(self) -> bool:
        """Whether this attempt has written any training rows."""
        return self._writer.rows_written() > sum(list(self._asides.values()))

    def _program_rows(self) -> int:
        """How many rows the program has written: not those about rollbook's own cost, which come at any time."""
        ticker = self._parts.ticker
        return self._writer.rows_written() - (0 if ticker is None else ticker.own_rows)

    def _rewound(self, parent: int | None, cut: Cut | None, checkpoint: str | None) -> None:
        self._write_about()  # first: readers that see the mark must find the cut
        self._era += 1
        self._write_aside({"mark": "rewind", "parent": parent, "cut": cut and cut.as_json(), "checkpoint": checkpoint})
        with handled_by(self._writer.failed, "read back what was stored"):
            self._refill_stores()

    def _refill_stores(self) -> None:
        """Refill the stores for the next dump with the values that the effective history has since the last dump."""
        self._windows_due = False
        self._writer.device_values.flush()
        windows = self._past.undumped()
        for scope, at in {*windows, *self._parts.stores}:
            before = f"{scope}/" if scope else ""
            own = windows.get((scope, at), {})
            self._store_of(scope, at).refill({key.removeprefix(before): values for key, values in own.items()})

    def _episodes_of(self, scope: str) -> tuple[int, int]:
        """(episodes begun, environment steps counted) in a scope, in the effective history."""
        rows: list[Any] = [row[1:] for row in self._past.episode_counts() if row[0] == scope]
        numbers = [int(number) for number, _ in rows if number is not None]
        return max(numbers, default=-1) + 1, max((int(steps) for _, steps in rows if steps is not None), default=0)

    # -- the run's own page

    def _attempt_entry(self) -> Attempt:
        return manifest.entry_of(self._about, self.attempt)

    def _note_failure(self) -> None:
        """Write the exception that the run has been left by, which is why it ended if the process is killed now."""
        if self._parts.left_by is not None and self._writer.main and self.status == "running":
            self._attempt_entry().failure = self._parts.left_by[2]
            self._write_about()

    def _keep_formatted(self, text: str) -> None:
        self._parts.formatted_config = text
        self.write_config_files()

    def _write_config_files(self) -> None:
        is_there = exists(os.path.join(self._folder, "total_config.py"))  # an earlier attempt was asked for it
        if not self._parts.wants_config_files and not is_there:
            return
        from rollbook.run.origin.config import write_config_files

        # The given configuration keeps sets, tuples and keys that JSON lacks; later changes are plain data.
        native, self._parts.native_config = self._parts.native_config, None
        config, formatted = dict(self.config) if native is None else native, self._parts.formatted_config
        write_config_files(self.folder, config, attempt=self.attempt, formatted_text=formatted)

    def _write_about(self) -> None:
        """Write run.json again (only the main writer, and only if no other process took over); failures are counted."""
        if not self._writer.main:
            return
        failures = handled_by(self._writer.failed, "write run.json", kinds=OSError)
        # Read and write under the lock: the run's own thread also writes run.json, and must not overwrite newer data.
        with failures, manifest.ManifestLock(str(self._folder)):
            self._bring_up_to_date()
            if not self._was_taken_over():
                manifest.take_edits(self._about, manifest.look(self._folder))
                manifest.write(self._folder, self._about)
                self._writer.describe(config=self._about.config or None, seed=self._about.seed)

    def _bring_up_to_date(self) -> None:
        """Update configuration, summary, drops and remarks in the data that run.json is written from."""
        self._read_config()
        self._check_others()
        self._manifest_due = False  # later changes make it due again
        summary: dict[str, Any] = {}
        if self.summary:
            from rollbook.run.origin.config import plain

            summary = plain(dict(self.summary))[0]
        self._about.summary = summary
        changed = self._words.changed_keys(summary)
        if changed and not self._writer.closed:  # a nested value changed: write marks for all
            self._guard(self._write_summary, changed)
        self._about.drops = dict(self._writer.bill.counts)
        if self._writer.bill.remarks:
            self._about.remarks = dict(self._writer.bill.remarks)
        if self._writer.bill.words:
            from rollbook.run.origin.secrets import without_secrets

            self._about.reports = {cause: without_secrets(words) for cause, words in self._writer.bill.words.items()}

    def _read_config(self) -> None:
        """Update the configuration, and the seed that it names, in the data that run.json is written from."""
        if not self.config:
            return
        from rollbook.run.origin.config import plain
        from rollbook.schema.seeds import named_seed

        config = plain(dict(self.config))[0]
        if repr(config) != repr(self._about.config):  # also finds nested changes
            self._config_changed()
        self._about.config = config
        if self._about.seed is None:
            self._about.seed = named_seed(config)

    def _check_sinks(self) -> None:
        """Count what the keeper reports about failing sinks (and a failing remote) in the bill; report each once."""
        if self._writer.main and self._troubles.poll():
            self._manifest_due = True

    def _check_others(self) -> None:
        """Merge summary changes of other processes into the main writer's summary; the newer value of a key wins."""
        if self._writer.main and self._words.poll():
            self._manifest_due = True

    def _was_taken_over(self) -> bool:
        """Whether run.json has a later attempt than ours. Then another process owns it."""
        # Without a readable run.json, ours is better.
        newest = manifest.newest(manifest.look(self._folder)).n
        if newest <= max(entry.n for entry in self._about.attempts):
            return False
        if not self._writer.fenced:
            self._writer.fenced = True
            self.count(
                "fenced",
                message="another process took this run over with resume='takeover'; what this process logs is kept, "
                "but does not count as the run's history",
            )
        return True

    def _config_changed(self, _key: str = "") -> None:
        self._parts.native_config = None
        self._config_is_new = True

    def _summary_changed(self, key: str) -> None:
        self._guard(self._write_summary, [key])

    def _write_summary(self, keys: list[str]) -> None:
        self._words.report(keys)
        self._manifest_due = True

    def bill(self) -> dict[str, Any]:
        """What rollbook cost this process so far, and what it refused or dropped, grouped by cause.

        Keys: rows; seconds (time of the callers); microseconds_per_row (mean); pending (device values); media (bytes
        passed in; files and bytes kept, evicted and failed; the limits); drops {cause: count}; names {cause of a drop:
        {key: count}}; remarks {cause: count}, for warnings without loss of data; remote (for a run with a remote: the
        backlog, see `rollbook.schema.addresses.backlog`); keeper (at_work: whether one runs; how often one was
        restarted because it had died or hung; its troubles: {what: why}).
        """
        rows, spent = self._writer.rows_written(), self._writer.seconds_spent()
        media = self._parts.media
        return {
            "rows": rows,
            "microseconds_per_row": spent / max(1, rows) * 1e6,
            "seconds": spent,
            "pending": len(self._writer.device_values.numbers),
            "media": media.bill() if media is not None else {},
            "drops": dict(self._writer.bill.counts),
            "remote": backlog(self._folder, since=self._attempt_entry().started or 0.0) or {},
            "keeper": keeper_bill(self._folder, self._parts),
            "names": {cause: dict(names) for cause, names in self._writer.bill.names.items()},
            "remarks": dict(self._writer.bill.remarks),
        }

    def _address(self) -> tuple[str, str, dict[str, Any]]:
        """What another process needs to become a writer of this run: folder, nonce, and the data to make a part."""
        from rollbook.run.local_part import extract_of

        return str(self._folder), self._about.nonce, extract_of(self._about, self.attempt)

    def write_config_files(self) -> None:
        """Write the configuration as Python, too, and again when it changes: `total_config.py` and
        `formatted_total_config.py` in the run's folder, as LightZero does. They are there within a second, at the
        latest when the run ends.
        """
        self._parts.wants_config_files = True
        self._config_is_new = True

    def on_finish(self, work: Callable[[str], object]) -> Callable[[str], object]:
        """Call `work(status)` once when the run ends, while it still accepts rows. The last registered function is
        called first.

        This also covers a run that ends without finish(): at the end of a `with` block, at process exit, and at SIGTERM
        (the status tells which; time is short then). Forked children do not call it. Exceptions are counted.

        Args:
          work: a function of the status: "finished", "killed" or "crashed". What it returns is not used.
        Returns:
          `work`, so it can be used as a decorator.
        """
        self._last_words.append((os.getpid(), work))
        return work

    def on_alert(
        self, receiver: Callable[[dict[str, Any]], object] | str | Sequence[str], *, level: str = "warn"
    ) -> Any:
        """Pass alerts of the health rules to `receiver`, about one second after they are found, from a separate thread.

        Args:
          receiver: a function of one dict (run, project, name, time, rule, level, key, message, clocks); an http(s)
            address, which gets it as a JSON POST with a sentence in `text`; or a command as a list of words, which gets
            it on standard input. A command or address has ten seconds per alert and gets at most 30 alerts an hour.
          level: "note", "warn" or "fail": pass on alerts of this level and higher.
        Returns:
          `receiver`, so it can be used as a decorator.
        Raises:
          BadInput: `receiver` cannot be called, or the level does not exist. Exceptions of the receiver are counted.
        """
        from rollbook.run.alert_calls import AlertCalls

        if self._parts.alert_calls is None:
            about = {"run": self.id, "project": self.project, "name": self.name}
            self._parts.alert_calls = AlertCalls(
                str(self._folder), about, lambda cause, n, words: self.count(cause, n, words)
            )
        self._parts.alert_calls.add(receiver, level)
        return receiver

    def finish(self, status: str = "finished") -> None:
        """End the run: fetch pending values, seal, and let the sinks drain. A second call does nothing.

        Args:
          status: finished, killed or crashed. Called in a `finally` while an exception passes, finished becomes the
            status of that exception.
        Raises:
          LoggingFailed: strict=True only: the first failure on the way, raised after the run has ended.
        """
        bill = self._writer.bill
        bill.whole(self._finish, status)
        bill.raise_held()

    def _end_writing(self, status: str) -> None:
        """The part of `finish` that does not wait, for runs that end together: see `ending.finish_together`."""
        self._writer.bill.whole(self._finish, status, False)

    def _finish(self, status: str, waits: bool = True) -> None:
        if self.status == "running" and status == "finished" and sys.exc_info()[1] is not None:
            status = self._status_in_exception()
        if self.status == "running" and status != "finished" and self._parts.failure is None:
            from rollbook.run.ending import failure

            self._parts.failure = failure()
        while self.status == "running" and self._last_words:
            asked_in, work = self._last_words.pop()
            if asked_in == os.getpid():
                self._guard(work, status)
        if self.status == "running":
            self.status = status
        token = self._ending.acquire(0.0)
        if token is None:  # a signal handler called finish() while the run ends
            return
        try:
            if not self._ended:  # also after an exception during the end
                self._end(self, self.status, waits)
                self._ended = waits
        finally:
            self._ending.release(token)

    def _status_in_exception(self) -> str:
        """The status of a run that is finished while an exception is on its way, which may end it."""
        from rollbook.run.failure import describe, status_of
        from rollbook.run.leaving import leaving_exception

        error = leaving_exception()
        if error is None or id(error) == self._parts.begun_in:
            return "finished"
        self._parts.failure = describe(error)
        return status_of(type(error))

    def __enter__(self) -> Self:
        from rollbook.run.current import enter

        enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from rollbook.run.current import leave
        from rollbook.run.failure import status_of

        leave(self)
        self.finish(status_of(kind))

    def _repr_html_(self) -> str:
        """The run as a notebook shows it. Unreadable parts are left out: nothing may raise next to a training loop."""
        with tolerating(Exception):
            return str(self.book._repr_html_())
        import html

        return f"<code>{html.escape(repr(self))}</code>"

    def __repr__(self) -> str:
        return f"<Run {self.project}/{self.name} {self.id}, attempt {self.attempt}, {self.status}>"
