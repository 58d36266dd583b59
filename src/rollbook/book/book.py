"""`Book` reads one run. It works the same for running, crashed and finished runs.

    book = Book("runs/cartpole/ppo-k3v9x2ab")
    book.metrics(["train/return"], x="env_step")        # pyarrow.Table
    book.series("train/return", points=2000)            # numpy arrays
    book.episodes(); book.sql("select avg(length) from episodes")

Reading never changes the folder and never executes anything found in it.
"""

from __future__ import annotations

import rollbook.system.readers  # noqa: F401 - first: it explains a package that does not load

# isort: split

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollbook.book.batch import batch
from rollbook.book.checkpoints import checkpoint_rows
from rollbook.book.envelope import envelope
from rollbook.book.episode import Episode, find_episode
from rollbook.book.episode_curves import read_metrics, with_episodes
from rollbook.book.hosts import WriterHosts, writers_of
from rollbook.book.inspection import inspected
from rollbook.book.latest import Latest, latest_values, rows_of
from rollbook.book.media_files import video_of, waiting_pixels
from rollbook.book.metrics import all_keys
from rollbook.book.nearest import nearest_rows, read_near, values_at
from rollbook.book.odd_fates import odd_fates, odd_rewards
from rollbook.book.odd_integers import odd_integers
from rollbook.book.odd_lists import odd_lists
from rollbook.book.questions.asked import AboutRollouts
from rollbook.book.read_context import AxisRange, Context
from rollbook.book.results import all_marks, results_written, summary_of
from rollbook.book.rollout import Rollout, find_rollout
from rollbook.book.rollout_curves import RolloutQueries
from rollbook.book.row_groups import RowGroups
from rollbook.book.run_fields import RunFields
from rollbook.book.scan import Scan, scan_of
from rollbook.book.select import canonical_keys, select_metrics
from rollbook.book.series import Series
from rollbook.book.sql import Database, Opened
from rollbook.book.tables import binned, count_rows, read_metrics_rows, read_table
from rollbook.errors import BadInput, Damaged, UnknownKey, did_you_mean, suggesting
from rollbook.journal import JournalReader
from rollbook.protocols import Row, RunInfo
from rollbook.schema import run_files as layout
from rollbook.schema import source, status
from rollbook.schema.checkpoint_rows import CheckpointHistory, SavedCheckpoint, counts_in
from rollbook.schema.default_axis import own_axis
from rollbook.schema.expressions import condition, order
from rollbook.schema.manifest import Attempts, main_writers
from rollbook.schema.problems import Problem
from rollbook.schema.tables import FORWARDED, TABLES, table_of
from rollbook.storage import IDENTITY, CheckpointRow, History, Pieces, RunFiles, SealedRows, identity
from rollbook.system.files import read_regular
from rollbook.system.guard import tolerating
from rollbook.system.tuning import TUNING
from rollbook.values.arrow import arrays, in_microseconds, take_table, to_numpy

T = TypeVar("T")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.book.questions import LogFile, LogLine, Overview, Page, Surroundings, Window
    from rollbook.book.undumped import StoredValues
    from rollbook.plots import Picture
    from rollbook.schema.manifest import Cut
    from rollbook.values.array_types import NDArray


_INTERNAL = frozenset(
    ("asked", "checkpoint_history", "chosen", "context", "cut_at", "cut_behind", "episode_counts", "files", "marks",
     "own_summary", "reached", "row_groups", "rows_so_far", "run_info", "scan", "table_rows", "undumped", "video_of")
)  # fmt: skip
"""Names that other rollbook modules use; completion leaves them out."""


_IN_TIME = '"time", "writer", "lane", "seq", "index"'


class Book(RunFields):
    """One run, read from its folder. Cheap to create; every call reads the current files.

    Use a book from one thread at a time. Where a method takes `attempts`, "effective" (the default) means the history
    without the rows that rewinds and resumes abandoned, "all" every row, and numbers the rows of these attempts.

    Args:
      path: the run's folder.
    Attributes:
      path: the run's folder.
    Raises:
      NotARun: there is no readable run.json.
      NewerFormat: a later rollbook wrote the run.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._folder = os.fspath(path)
        source.freshen(self._folder)
        super().__init__(self._folder)
        self.files = RunFiles(self._folder)
        self._hosts = WriterHosts(self._folder)
        folder = os.path.abspath(layout.data_folder(self._folder))
        self._database = Database(self._stream, folder, self.files.leave_out)

    def __repr__(self) -> str:
        return f"<Book of {self.project}/{self.name} {self.id}, {self.status}: {self._folder}>"

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - _INTERNAL)

    def _repr_html_(self) -> str:
        from rollbook.book.charts import book_card

        return book_card(self, self.status, self.seed)

    # -- status and overview

    @property
    def summary(self) -> dict[str, Any]:
        """The results of the run (see `book.results`); values that the run set itself take precedence."""
        return {**results_written(self), **self.own_summary}

    @property
    def status(self) -> str:
        """running, finished, killed, crashed, stale or part. Crashed and stale depend on which processes live now."""
        return status.derived(self._folder, self.info)

    @property
    def writers(self) -> list[dict[str, Any]]:
        """Every process that wrote, in order of arrival: id, host, pid, attempt, rank, main, whereabouts and `state`.

        `state` is "closed" (closed cleanly), "writing", "died" (ended without closing) or "unknown" (on another host,
        whose keeper has not reported it dead). The keepers' own writers are left out.
        """
        return writers_of(self._folder)

    def keys(self) -> list[str]:
        """The keys of metrics, sorted. A key with the name of a clock or a fixed column is listed as value/<key>."""

        def work(pieces: Pieces) -> list[str]:
            return sorted(all_keys(pieces, self.context(pieces, "all").clocks).values())

        return read_metrics(self.files, work)

    def canonical(self) -> dict[str, str]:
        """{canonical name: the key it is read from}. A canonical name means the same in every framework.

        Canonical names are accepted wherever keys are. A name that matches several keys of this book is left out.
        """

        def work(pieces: Pieces) -> dict[str, str]:
            return canonical_keys(all_keys(pieces, self.context(pieces, "all").clocks))

        return read_metrics(self.files, work)

    def problems(self, *, deep: bool = True) -> list[Problem]:
        """What is wrong with the run: what cannot be read or sealed, what is missing, and what cannot be right.

        Args:
          deep: True reads every page of every sealed file, a row group at a time, every record of the journal and every
            checkpoint, and counts the records of each writer: the answer of `rollbook verify`. False reports what
            opening the files shows and what was found so far. For a run in a remote, True acts as False. The lengths of
            token lists of rollouts are compared; with False only if the table `tokens` takes less than 16 MiB. Fates
            are compared with their rollouts; with False only below 50,000. Integers that readers round to 64-bit floats
            are named.
        Returns:
          Sentences, sorted; empty if all is well. Each has its `kind`, the `path` of the file that it is about, and how
          many it counts: `n`.
        """
        deep = deep and not source.is_view(self._folder)
        if deep:
            self.files.read(self._tables(), lambda tables: None)
            odd = self._cannot_be_right(deep)
        else:
            odd = self.files.read(self._tables(), lambda tables: self._cannot_be_right(deep))  # one look at the files
        met = [Problem(words, "unreadable", path) for path, words in self.files.problems.items()]
        met += self.files.missing()
        if deep:
            return sorted({*inspected(self._folder, self, met), *odd})
        unsealed = [Problem(words, "unsealed") for words in [status.why_unsealed(self._folder)] if words]
        return sorted({*met, *unsealed, *odd})

    def _cannot_be_right(self, deep: bool) -> list[Problem]:
        """Rows that can be read and contradict each other, or lose something when they are read; see `problems`."""
        size = self.files.read(["tokens"], lambda tables: sum(piece.bytes for piece in tables["tokens"]))
        odd = odd_lists(self) if deep or size < TUNING.scan_bytes else []
        rows = self.files.read(
            ["rollouts", "fates"], lambda tables: [sum(piece.rows for piece in tables[name]) for name in tables]
        )
        if any(rows) and (deep or max(rows) < TUNING.scan_rows):
            with tolerating(pa.ArrowException, BadInput):  # columns of these names, but of other kinds
                odd += odd_rewards(lambda query: self._database.arrow(query, self._tables()))
                odd += odd_fates(self)
        few = self.files.read(["metrics"], lambda tables: sum(p.rows for p in tables["metrics"] if p.is_long))
        if deep or few < TUNING.scan_rows:
            odd += self.files.read(["metrics"], lambda tables: odd_integers(tables["metrics"]))
        return odd

    # -- metrics

    @suggesting
    def metrics(
        self,
        keys: str | Sequence[str] | None = None,
        *,
        x: str | None = None,
        start: float | None = None,
        stop: float | None = None,
        since: float | datetime | None = None,
        until: float | datetime | None = None,
        attempts: Attempts = "effective",
        exact: bool | None = None,
    ) -> pa.Table:
        """Rows of metrics that have at least one of `keys`.

        Args:
          keys: the keys to read; None means all. Canonical names (see `canonical`) are accepted; their columns have
            these names.
          x: order by this clock or key, or by "time" (unix seconds). A row without `x` is placed by time, through the
            writer that knows `x`, if that writer is on the same host; such rows are True in the column `inferred`.
            Rows that cannot be placed are left out.
          start, stop: only rows with start <= x < stop. From sealed files only matching blocks are read.
          since, until: only rows with since <= time < until, in unix seconds or as datetimes.
          attempts: "effective", "all", or attempt numbers.
          exact: True leaves out rows without their own `x`, and the column `inferred`. False also places rows of other
            hosts by time; the measured difference between the hosts' clocks is corrected.
        Returns:
          Every clock that some row knows, `time` (UTC, microseconds), one column per key (null: the row lacks it), and
          `inferred` if x is given. Ordered by x, then by time; without x by time.
        Raises:
          UnknownKey: a key or an x that the book does not have.
          AmbiguousKey: a canonical name that matches several keys.
          BadInput: start or stop without x; since or until that is not a point in time.
        """
        wanted = [keys] if isinstance(keys, str) else None if keys is None else list(keys)
        table = read_metrics(
            self.files,
            lambda pieces: select_metrics(
                pieces,
                self.context(pieces, attempts),
                wanted,
                x=x,
                start=start,
                stop=stop,
                since=since,
                until=until,
                exact=exact,
            ),
            None if wanted is None else [*wanted, x],
        )
        return in_microseconds(table)

    def arrays(
        self, keys: str | Sequence[str] | None = None, *, x: str | None = None, **more: Any
    ) -> dict[str, NDArray]:
        """`metrics` as numpy arrays by column.

        Args:
          keys, x, more: the arguments of `metrics`.

        A column is float64 with NaN where a row lacks the value, and keeps its own type if no row does. `time` is
        datetime64[us] in UTC. Unlike `metrics(...).to_pandas()` or a column's `.to_numpy()`, this does not import
        pandas, which takes most of a second.
        """
        return arrays(self.metrics(keys, x=x, **more))

    @suggesting
    def series(
        self,
        key: str,
        *,
        x: str | None = None,
        points: int | None = None,
        start: float | None = None,
        stop: float | None = None,
        attempts: Attempts = "effective",
    ) -> Series:
        """One key along an axis.

        Args:
          key: the key to read.
          x: a clock, a key, or "time" (unix seconds). None means the run's own axis if these rows know it, else the
            best known of their clocks (env_step, gradient_step …), else time.
          points: reduce to at most this many points, each with mean, min and max of its rows; None returns every row.
            Time grows with the number of points, not of rows, and little memory is needed.
          start, stop: only rows with start <= x < stop.
          attempts: "effective", "all", or attempt numbers.
        Raises:
          UnknownKey: no such key or axis.
          BadInput: points below 1.
        """
        return self._along("series", key, envelope, attempts, AxisRange(x, points, start, stop))

    def batch(
        self,
        keys: Sequence[str],
        *,
        x: str | None = None,
        points: int | None = None,
        start: float | None = None,
        stop: float | None = None,
        attempts: Attempts = "effective",
        raw: int = 0,
    ) -> dict[str, Series]:
        """`series` for several keys in one read: {key: Series}. Keys that the book does not have are left out.

        Args:
          keys: full keys or canonical names.
          x, points, start, stop, attempts: see `series`.
          raw: if at most this many rows are in range, return all of them, even if they are more than `points`.
        Raises:
          AmbiguousKey: a canonical name that matches several keys.
          BadInput: points below 1.
        """
        return self._along("batch", keys, batch, attempts, AxisRange(x, points, start, stop), raw)

    def _along(
        self,
        verb: str,
        asked: str | Sequence[str],
        work: Callable[..., T],
        attempts: Attempts,
        axis: AxisRange,
        *more: object,
    ) -> T:
        """Apply `work` to metrics along an axis, with `more` arguments of `work`."""
        points = axis.points
        if points is not None and (not isinstance(points, (int, np.integer)) or points < 1):
            raise BadInput(
                f"{verb}({asked!r:.80}, points={points!r:.80}): ask for at least 1 point, or None for every row"
            )
        keys = [asked] if isinstance(asked, str) else asked
        return read_metrics(
            self.files, lambda pieces: work(pieces, self.context(pieces, attempts), asked, axis, *more), [*keys, axis.x]
        )

    def latest(self, attempts: Attempts = "effective") -> Latest:
        """The newest value of every key: {key: (value, known clocks, unix seconds)}. Cheap."""
        return read_metrics(self.files, lambda pieces: latest_values(pieces, self.context(pieces, attempts)))

    # -- the other tables

    @suggesting
    def table(
        self,
        name: str,
        attempts: Attempts = "effective",
        *,
        where: tuple[str, str] | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """All rows of a table in time order, with the columns that identify each row.

        Args:
          name: the table.
          attempts: "effective", "all", or attempt numbers.
          where: only rows with this text in a column, such as ("episode_id", "e1"); not for metrics. In large tables
            only the blocks with such rows are read.
          columns: read only these of the logged ones, with those that identify each row; not for metrics. None: all.
            One that no row has is empty.
        Raises:
          UnknownKey: the book has no such table.
          BadInput: where= or columns= for metrics.
        """
        if name in layout.HIDDEN_TABLES:
            raise self._no_table(name)
        if columns is not None and name == "metrics":
            raise BadInput(f"table('metrics', columns={columns!r}): ask metrics({list(columns)!r}) for some keys")
        if where is not None and name == "metrics":
            raise BadInput(f"table('metrics', where={where!r}): metrics hold numbers; ask metrics(keys) for a range")

        def work(tables: dict[str, Pieces]) -> pa.Table:
            pieces = with_episodes(self.files, tables) if name == "metrics" else tables[name]
            if not pieces and name not in TABLES:
                raise self._no_table(name)
            run = self.context(pieces, attempts)
            if name == "metrics":
                return read_metrics_rows(pieces, run)
            if where is None:
                return read_table(name, pieces, run, columns=columns)
            column, text = where
            rows = read_table(name, pieces, run, lambda piece: piece.rows_with(column, text))
            others = set(rows.column_names) - {"time", *run.clocks, *IDENTITY, *(columns or rows.column_names)}
            return rows.drop_columns(sorted(others))

        is_text = where is not None and table_of(name).columns.get(where[0]) == "text"
        return in_microseconds(self.files.read([name], work, where if is_text else None))

    @suggesting
    def rows(
        self,
        table: str,
        *,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        search: str | None = None,
        offset: int = 0,
    ) -> pa.Table:
        """Rows of any table, with the columns that identify each row.

        Args:
          table: the table, such as checkpoints, or one that `record` made.
          where: a condition in SQL, such as "reward > 1".
          order_by: columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
        Raises:
          UnknownKey: the run has no such table.
          BadInput: a condition or order that cannot be understood, or an unknown column in it.
        """
        from rollbook.book.questions import Rows

        return self._rows(
            Rows(
                table=table,
                where=where,
                order_by=order_by,
                limit=limit,
                attempts=attempts,
                search=search,
                offset=offset,
            )
        ).table

    @suggesting
    def episodes(
        self,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        *,
        search: str | None = None,
        offset: int = 0,
        outcome: Sequence[Literal["terminated", "truncated", "cut"]] = (),
        video: bool = False,
        traces: bool = False,
    ) -> pa.Table:
        """The episodes, one row each.

        Args:
          where: a condition in SQL, such as "reward > 1".
          order_by: columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
          outcome: only those that ended so.
          video: only those with a video.
          traces: only those whose steps were kept.
        Returns:
          The columns of the table. Conditions and orders may also name `outcome`, `video` and `traces`.
        """
        from rollbook.book.questions import MADE, Episodes

        found = self._rows(
            Episodes(
                where=where,
                order_by=order_by,
                limit=limit,
                attempts=attempts,
                search=search,
                offset=offset,
                outcome=outcome,
                video=video,
                traces=traces,
            )
        )
        return found.table.select([name for name in found.table.column_names if name not in MADE])

    def episode(self, which: str) -> Episode:
        """One episode, with its steps, rewards, media and alerts.

        Args:
          which: an id; or, among complete episodes, "best" or "worst" (by return), "first" or "last".
        Raises:
          UnknownKey: there is no such episode.
        """
        return find_episode(self, str(which))

    def steps(self, episode_id: str | None = None, attempts: Attempts = "effective") -> pa.Table:
        """The recorded steps of one episode, or of all, in order. One episode costs about its size.

        Args:
          episode_id: the id of the episode. None: all episodes.
        """
        return self.table("steps", attempts, where=None if episode_id is None else ("episode_id", str(episode_id)))

    @suggesting
    def samples(
        self,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        *,
        unique: bool = False,
        search: str | None = None,
        offset: int = 0,
    ) -> pa.Table:
        """The logged samples: what a model generated or was trained on.

        Args:
          where: a condition in SQL, such as "reward > 1".
          order_by: columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          unique: one row for each different item: its newest, with `times_seen`, `first_seen` and `last_seen` (batches)
            and `first_time`. `time` is then when it was last seen, and `where` applies to these rows.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
        Returns:
          The columns of the table, with an `advantage` that was recorded later, in the table `advantages`.
        """
        from rollbook.book.questions import Samples

        return self._rows(
            Samples(
                where=where,
                order_by=order_by,
                limit=limit,
                attempts=attempts,
                search=search,
                offset=offset,
                unique=unique,
            )
        ).table

    def _rows(self, question: Window) -> Page:
        from rollbook.book.questions import Files, chosen_rows

        return chosen_rows(question, Files(self))

    @suggesting
    def rollouts(
        self,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        *,
        search: str | None = None,
        offset: int = 0,
        group: str | None = None,
        task: str | None = None,
        by_group: bool = False,
        solved: str | float | None = None,
    ) -> pa.Table:
        """The rollouts, one row each, with their prompt and their newest fate.

        Args:
          where: a condition in SQL, such as "reward > 1".
          order_by: columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
          group: the id of a rollout: only those of its group.
          task: the id of a rollout: only those of its task.
          by_group: one row for each group of these rollouts: its newest one, with columns about the group, `group_n`
            and so on. Groups are ordered by the means of numbers.
          solved: the reward above which a rollout solved its task, or a condition in SQL such as 'reward >= 1';
            default: midway between the low and the high rewards of the run.
        Returns:
          The columns of the view `rollouts_now` of `sql`, and `prompt`. Of a group: `group_n` rollouts fit;
          `group_marks` has a sign for each (1 solved, 0 not, x without a reward), `group_mean` and `group_spread` are
          of their rewards; `group_stale`, `group_turns`, `group_tokens`, `group_fates`.
        """
        from rollbook.book.questions import Files, Rollouts, chosen_rollouts

        return chosen_rollouts(
            Rollouts(
                where=where,
                order_by=order_by,
                limit=limit,
                attempts=attempts,
                search=search,
                offset=offset,
                group=group,
                task=task,
                by_group=by_group,
                solved=solved,
            ),
            Files(self),
        ).table

    @suggesting
    def completions(
        self,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        *,
        search: str | None = None,
        offset: int = 0,
    ) -> pa.Table:
        """Samples and rollouts together, one row each: the view `completions` of `sql`.

        `kind` is "sample" or "rollout", `id` the sample_id or rollout_id; rollouts have their newest fate and
        `prompt`. Columns of only one of the two tables are null in rows of the other. Like `rows("completions")`.

        Args:
          where, order_by: SQL, such as "reward > 1" and "reward desc".
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
        """
        return self.rows(
            "completions", where=where, order_by=order_by, limit=limit, attempts=attempts, search=search, offset=offset
        )

    @suggesting
    def novelty(self, x: str | None = None, points: int = 60) -> pa.Table:
        """How many samples of a run were new, and how many had been seen before, over training.

        Args:
          x: the axis: a clock, a column of the samples, "time" or "relative"; default: the run's own.
          points: into how many equal parts the axis is divided, at most.
        Returns:
          One row for each part that has samples: its middle, called as the axis, rows, new, repeated.
        """
        from rollbook.book.questions import Files, Novelty, counted_new

        return counted_new(Novelty(x=x, points=points), Files(self)).table

    @suggesting
    def unused(self, at: float | None = None, x: str | None = None) -> pa.Table:
        """What a run was not trained on: the groups of samples of one batch, by what became of them, and why.

        Args:
          at: the position of the batch: the nearest one is taken; default: the last.
          x: the axis: a clock, a column of the samples, "time" or "relative"; default: the run's own.
        Returns:
          One row for each reason, those that were trained on first: the position, called as the axis, reason, groups,
          rows, and ids, one sample of each of at most 50 groups. Where the run reports no reason, a group whose
          rewards are all equal taught nothing.
        """
        from rollbook.book.questions import Files, Unused, groups_unused

        return groups_unused(Unused(at=at, x=x), Files(self)).table

    @suggesting
    def rollout_curves(
        self,
        x: Literal["gradient_step", "policy_version"] | None = None,
        *,
        mode: str | None = None,
        solved: str | float | None = None,
    ) -> pa.Table:
        """The rollouts of each update: reward and its parts, length, failures, groups, staleness, waste.

        Args:
          x: the axis: the first update of a rollout, or the policy version that began it; default: the update if at
            least half of the rollouts have one, or none has a version.
          mode: only rollouts of this mode; default: all but evaluations.
          solved: the reward above which a rollout solved its task, or a condition in SQL such as 'reward >= 1';
            default: midway between the low and the high rewards of the run.
        Returns:
          One row per value of `x`, in order; a column is empty where nothing was reported for it. At updates, a rollout
          that waits counts where rollouts of its policy version were first handled; `x` is null in the last row if
          rollouts wait and no update is known. Rewards that are not finite are left out and counted in
          `rollout/not_finite`. A group counts at each `x` where one of its rollouts counts, with all its rollouts.
        """
        from rollbook.book.questions import Files, RolloutCurves, chosen_curves

        return chosen_curves(RolloutCurves(x=x, mode=mode, solved=solved), Files(self))

    @suggesting
    def rollout_prompts(
        self,
        x: Literal["gradient_step", "policy_version"] | None = None,
        *,
        mode: str | None = None,
        solved: str | float | None = None,
        only: Literal["never", "sometimes", "always"] | None = None,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        search: str | None = None,
        offset: int = 0,
        stretches: int = 0,
    ) -> pa.Table:
        """The prompts of the rollouts, one row each: how often each was tried and solved; the least solved come first.

        Args:
          x: the axis: the first update of a rollout, or the policy version that began it; default: the update if at
            least half of the rollouts have one, or none has a version.
          mode: only rollouts of this mode; default: all but evaluations.
          solved: the reward above which a rollout solved its task, or a condition in SQL such as 'reward >= 1';
            default: midway between the low and the high rewards of the run.
          only: only prompts that are solved this often.
          where: a condition in SQL, such as "rate < 0.2 and rollouts > 8".
          order_by: columns in SQL, such as "rollouts desc"; ties, and rows without an order, are sorted by rate.
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
          stretches: into how many equal parts training is divided, at most, for `strip`; 0: without it.
        Returns:
          By `rate`, then by most attempts: `task_id`, `prompt`, `rollouts` (attempts; without a reward it is not
          solved), `groups`, `solved`, `rate` and its 95 % interval `low`, `high` (Wilson); the same in the last fifth
          of the readings of `x`: `recent_rollouts`, `recent_solved`, `recent_rate`, `recent_low`, `recent_high`, and
          where it begins: `recent_from`; `first` and `last` reading; the `best` reward; `rollout_id` of the newest
          rollout. Rollouts without a task are left out. With stretches: where they `begin`, their `width`, and
          `strip`, a list of {stretch, n, k}: k of n attempts solved it.
        """
        from rollbook.book.questions import Files, Prompts, chosen_prompts

        return chosen_prompts(
            Prompts(
                x=x,
                mode=mode,
                solved=solved,
                only=only,
                where=where,
                order_by=order_by,
                limit=limit,
                attempts=attempts,
                search=search,
                offset=offset,
                stretches=stretches,
            ),
            Files(self),
        ).table

    def solved_above(self) -> float | None:
        """The reward above which a rollout counts as solved, unless `solved=` says something else.

        It is midway between the low and the high rewards of the run, without the lowest twentieth and the highest
        hundredth (at least one reward each) and without rewards that are not finite. Evaluations count only in a run
        that has no other rollouts. None: there are no rewards.
        """
        if not self.row_count("rollouts"):
            return None
        (row,) = self._database.arrow(RolloutQueries.ABOVE, self._tables()).to_pylist()
        above: float | None = row["above"]
        return above

    def reward_parts(self) -> list[str]:
        """The parts that the rewards of the rollouts are made of, sorted; [] if there are none."""
        scan = self._stream("rollouts")
        return sorted(name[8:] for name in scan.columns if name.startswith("rewards/") and name not in scan.empty)

    @suggesting
    def rollout_answer(
        self,
        question: AboutRollouts,
        *,
        rollout_id: str | None = None,
        limit: int | None = None,
        solved: str | float | None = None,
    ) -> pa.Table:
        """One of the questions about the rollouts of a run; the most important row of its answer comes first.

        Args:
          question: "fates", "curves" (over training), "history" (of one prompt), "prompts", "groups" (that taught
            nothing), "staleness", "gaps" (between sampler and trainer), "tokens" (of the 20 rollouts with the largest
            gaps), "tools", "time", "words" (in rewarded answers), "lost".
          rollout_id: for "history": one rollout of the prompt.
          limit: the largest number of rows.
          solved: for "prompts" and "history": the reward above which a rollout solved its task, or a condition in SQL
            such as 'reward >= 1'; default: midway between the low and the high rewards of the run.
        Raises:
          BadInput: there is no such question, or it lacks its rollout.
          UnknownKey: there is no such rollout.
        """
        from rollbook.book.questions import Files, RolloutAnswer, answered

        ask = RolloutAnswer(question=question, rollout_id=rollout_id, limit=limit, solved=solved)
        return answered(ask, Files(self))

    def rollout(self, rollout_id: str) -> Rollout:
        """One rollout, with its turns, tokens, group, history, task and fates.

        Args:
          rollout_id: its id.
        Raises:
          UnknownKey: there is none.
        """
        return find_rollout(self, str(rollout_id))

    def timings(self, name: str | None = None, attempts: Attempts = "effective") -> pa.Table:
        """Durations of stages: name (a/b if nested) and seconds.

        Args:
          name: only this stage, such as "update" or "update/backward". None: all.
        """
        table = self.table("timings", attempts)
        return table if name is None else _where(table, "name", name)

    @suggesting
    def stages(
        self,
        attempts: Attempts = "effective",
        *,
        x: str | None = None,
        start: float | None = None,
        stop: float | None = None,
        stretches: int = 0,
    ) -> pa.Table:
        """Where the time of a run went: each stage that it timed, the one that took longest itself first.

        Args:
          attempts: "effective", "all", or attempt numbers.
          x: the axis of `start`, `stop` and `stretches`: a clock, "time" or "relative"; default: the run's own.
          start: only what was timed from this position on.
          stop: only what was timed before this position.
          stretches: into how many equal parts the axis is divided, for `strip`; 0: without it.
        Returns:
          Columns: name (a/b is a part of a), calls, seconds (parts included), own (without them), share (what own is of
          the time of all stages), of one call median, p99 and longest, in seconds, and `first`, when it was first
          begun (unix seconds). With stretches: where they `begin` on the axis, their `width`, and `strip`, a list of
          {stretch, calls, seconds, own}; those in which a stage did not end are left out.
        """
        from rollbook.book.questions import Files, Stages, chosen_stages

        ask = Stages(x=x, start=start, stop=stop, attempts=attempts, stretches=stretches)
        return chosen_stages(ask, Files(self)).table

    def histograms(self, key: str | None = None, bins: int | None = None, attempts: Attempts = "effective") -> pa.Table:
        """Logged distributions (of one `key`): raw values, or edges and counts; with `bins` all are binned.

        Args:
          key: only this one, in full. None: all.
          bins: bin raw values into this many equal bins. None: they stay raw.
        """
        table = self.table("histograms", attempts)
        table = table if key is None else _where(table, "key", key)
        return table if bins is None else binned(table, bins)

    @suggesting
    def media(
        self,
        kind: Literal["image", "video", "figure"] | None = None,
        *,
        key: str | None = None,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        search: str | None = None,
        offset: int = 0,
    ) -> pa.Table:
        """The pictures, videos and figures of the run.

        Args:
          kind: "image", "video" or "figure"; default: all.
          key: only this one, in full.
          where: a condition in SQL, such as "reward > 1".
          order_by: columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
        Returns:
          `path` is the final name of the file, `file` the file that exists now, both relative to the run's folder. Raw
          pixels wait in `media/.spool` until a keeper (or `rollbook repair`) encodes them; see `pixels`. `file` is null
          if there is no file, for example after it was evicted.
        """
        from rollbook.book.questions import MediaQuestion

        return self._rows(
            MediaQuestion(
                kind=kind,
                key=key,
                where=where,
                order_by=order_by,
                limit=limit,
                attempts=attempts,
                search=search,
                offset=offset,
            )
        ).table

    def pixels(self, path: str) -> npt.NDArray[np.uint8]:
        """The pixels of a picture or video that is not encoded yet: [frames, height, width, channels], uint8.

        Args:
          path: the column `path` of `media`.
        Raises:
          UnknownKey: it is not in the spool; the message names its file.
        """
        return waiting_pixels(self._folder, path)

    def video_of(self, episode: str) -> Path:
        """The video file of an episode; see `media_files.video_of`. Internal."""
        return video_of(self, episode)

    @suggesting
    def checkpoints(
        self,
        attempts: Attempts = "effective",
        *,
        everything: bool = False,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        search: str | None = None,
        offset: int = 0,
    ) -> pa.Table:
        """The checkpoints of a run, one row each; those whose files are there.

        Args:
          attempts: "effective", "all", or attempt numbers.
          everything: also those that were deleted or whose file is gone; the column `status` says which.
          where: a condition in SQL, such as "reward > 1".
          order_by: columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.
          limit: the largest number of rows.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
        Returns:
          Among others `checkpoint_id`, `path`, `score`, the clocks, `status` ("kept", "deleted" by rollbook, or
          "missing": its file is gone), and `is_best`: true for the one that is there and has the best score.
        """
        from rollbook.book.questions import Checkpoints

        return self._rows(
            Checkpoints(
                everything=everything,
                where=where,
                order_by=order_by,
                limit=limit,
                attempts=attempts,
                search=search,
                offset=offset,
            )
        ).table

    def checkpoint(self, which: str = "last") -> SavedCheckpoint:
        """One kept checkpoint of the effective history: its path, score, clocks and more.

        Args:
          which: "last", "best" (by score), or an id.
        Raises:
          UnknownKey: there is no such checkpoint.
        """
        return self.checkpoint_history().find(str(which), self.clocks)

    def alerts(self, attempts: Attempts = "effective") -> pa.Table:
        """What health rules found."""
        return self.table("alerts", attempts)

    @suggesting
    def text(
        self,
        key: str | None = None,
        *,
        where: str | None = None,
        order_by: str | None = None,
        limit: int | None = None,
        attempts: Attempts = "effective",
        search: str | None = None,
        offset: int = 0,
    ) -> pa.Table:
        """The logged texts; notes have the key "note".

        Args:
          key: only this one, in full.
          where: a condition in SQL, such as "reward > 1".
          order_by: columns in SQL, such as "reward desc"; ties, and rows without an order, are sorted by time.
          limit: the largest number of rows.
          attempts: "effective", "all", or attempt numbers.
          search: words that must all occur in the texts of a row; case is ignored.
          offset: how many matching rows to skip.
        """
        from rollbook.book.questions import Text

        return self._rows(
            Text(key=key, where=where, order_by=order_by, limit=limit, attempts=attempts, search=search, offset=offset)
        ).table

    def at(self, rows: int = 5, **clock: int) -> dict[str, pa.Table]:
        """The state of the run at a point, such as `at(env_step=5000)`.

        Args:
          rows: how many rows of each other table.
        Returns:
          "metrics": the newest value of each key at or before the point. Every other table that knows the clock: the
          `rows` rows nearest to the point.
        Raises:
          BadInput: not exactly one clock.
          UnknownKey: a clock that the run does not have.
        """
        if len(clock) != 1:
            raise BadInput(f"at({clock}): name exactly one clock, such as env_step=5000")
        ((name, value),) = clock.items()
        if name not in self.clocks:
            raise UnknownKey(f"at({name}={value}): no such clock.", did_you_mean(name, list(self.clocks)))
        metrics = read_metrics(
            self.files, lambda pieces: values_at(pieces, self.context(pieces, "effective"), name, int(value))
        )
        tables = {}
        for table in self._tables():
            if table != "metrics":
                tables[table] = in_microseconds(
                    self.files.read([table], partial(self._near, clock=name, value=int(value), rows=rows))
                )
        near = nearest_rows(tables, name, int(value), rows, self.clocks)
        return {"metrics": metrics, **near} if metrics.num_rows else near

    @suggesting
    def cause(
        self,
        at: float,
        key: str | None = None,
        x: str | None = None,
        rows: int = 6,
        window: float | None = None,
        everything: bool = False,
    ) -> Surroundings:
        """What went on near a point: the keys that left their usual range there, and what every table has.

        Args:
          at: the position on the axis.
          key: the key that the point is on; canonical names are accepted.
          x: the axis: a clock, a key, "time" or "relative"; default: the run's own.
          rows: the largest number of rows of each table.
          window: the distance on the axis that counts as near; by default it follows from how often the key was logged.
          everything: also the newest value of each key at or before the point, and the nearest rows of the other tables
            that know the clock.
        Returns:
          A `Surroundings`: `sentences()`, `as_data()`, and the rows of each table as `episodes.table` and so on.
        Raises:
          UnknownKey: the run has no such key or axis.
          BadInput: `at` or `window` is not a number, or `rows` not a count.
        """
        from rollbook.book.questions import Cause, Files, around

        ask = Cause(at=float(at), key=key, x=x, rows=rows, window=window, everything=everything)
        return around(ask, Files(self))

    def patch(self, attempt: int | None = None) -> str:
        """The uncommitted changes of the program's repository when an attempt began, as `git diff` prints them.

        Args:
          attempt: its number; None is the newest.
        Returns:
          The patch, with secrets hidden; "" if there was none, or if git did not answer. Files that did not fit, and
          files that git does not know, are named in `attempts[…]["git"]`.
        """
        chosen = [each for each in self.attempts if attempt in (None, each["n"])]
        git = (chosen[-1].get("git") if chosen else None) or {}
        name = str(git.get("patch") or "")
        if not name or name != os.path.basename(name):
            return ""
        with tolerating(OSError, Damaged):
            return read_regular(os.path.join(self._folder, name)).decode("utf-8", "replace")
        return ""

    def logs(self) -> list[LogFile]:
        """The text logs in the run's folder: what the program printed first, those of sinks, the keeper's last."""
        from rollbook.book.questions import log_files

        return log_files(str(self._folder))

    def log(self, name: str = "", lines: int = 200, search: str = "", near: float | None = None) -> list[LogLine]:
        """Lines of a log of a run: what its program printed, stdout and stderr, or another log.

        Args:
          name: which log, by its name or label; "" is the first, so what the program printed if that was kept.
          lines: how many; the last ones.
          search: only lines with all these words.
          near: the lines around a moment (unix seconds) instead; all of them, whatever `search` says.
        Returns:
          Lines with `text`, `time` (unix seconds or None), `bare()` (the text without its time) and `is_error()`.
        Raises:
          BadInput: there is no such log.
        """
        from rollbook.book.questions import Log, asked_log

        return asked_log(Log(name=name, lines=lines, search=search, near=near), str(self._folder)).lines

    def overview(self) -> Overview:
        """What is in the run, as `rollbook show` prints it.

        Returns:
          An `Overview`: its identity and how it ended, seconds by stage, the last value of every key, what was lost and
          what is wrong. `sentences()` are the remarks, `as_data()` is what `rollbook show --json` prints.
        """
        from rollbook.book.questions.overview import overview

        return overview(self)

    def asked(
        self,
        names: Sequence[str],
        work: Callable[[Opened], T],
        attempts: Attempts = "effective",
        *,
        frugal: bool = False,
    ) -> T:
        """The result of `work` on some tables in DuckDB; see `questions.Source`. Internal."""
        folder = os.path.abspath(layout.data_folder(self._folder))

        def scan(name: str, tries: int = 0) -> Scan:
            return self._stream(name, tries, attempts)

        if frugal:
            # Rows of the journal are decoded meanwhile. One thread: over 500,000 rollouts it takes less memory and less
            # processor time than two.
            at_once = 7 if any(scan(name).stream is not None for name in names) else 1
            most = TUNING.curve_bytes // at_once
            try:
                return Database(scan, folder, self.files.leave_out, threads=1, most_bytes=most).asked(names, work)
            except BadInput as err:  # a condition of the caller's may need all rows in memory, as a median does
                if "Out of Memory" not in str(err):
                    raise
            return Database(scan, folder, self.files.leave_out, threads=1).asked(names, work)
        return Database(scan, folder, self.files.leave_out, self._database).asked(names, work)

    def _near(self, tables: dict[str, Pieces], clock: str, value: int, rows: int) -> pa.Table:
        """Rows of one table that include the nearest ones."""
        ((table, pieces),) = tables.items()
        run = self.context(pieces, "effective")
        return read_near(table, pieces, run, clock, value, rows)

    def sql(self, query: str, *, unlocked: bool = False) -> Any:
        """Query this run's tables with DuckDB; returns a relation.

        The tables have the names of the methods (metrics, episodes, …). `rollouts_now` has the rollouts with their
        newest fates, `completions` these and the samples. Keys with a slash need quotes: "train/return". Times are in
        UTC, without a time zone. From large tables only the columns and blocks that the query needs are read.

        Args:
          query: a read-only statement: SELECT, FROM, WITH, DESCRIBE, SUMMARIZE, PIVOT, EXPLAIN.
          unlocked: also allow other statements, access to other files and the network, and changes of settings.
        Raises:
          BadInput: the query is invalid, or it does more than read and is not `unlocked`.
        """
        return self._database.sql(query, self._tables(), unlocked=unlocked)

    def chosen(
        self,
        rows: str,
        where: str | None,
        order_by: str | None,
        limit: int | None,
        attempts: Attempts = "effective",
        *,
        tables: Sequence[str] = (),
        of: str | pa.Table = "",
        cells: str = "*",
    ) -> pa.Table:
        """Rows of a view, or of a subquery over `tables`, in time order or as requested. Internal.

        `of` is a condition on the rows of the view alone, or a table of their ids; `cells` are the columns.
        """
        chosen = "" if where is None else f" where {condition(where, of_rows=True).text}"
        in_order = _IN_TIME if order_by is None else f"{order(order_by).text}, {_IN_TIME}"
        most = "" if limit is None else f" limit {int(limit)}"
        folder = os.path.abspath(layout.data_folder(self._folder))
        database = Database(
            lambda name, tries: self._stream(name, tries, attempts), folder, self.files.leave_out, self._database
        )
        query = f"select {cells} from {rows}{chosen} order by {in_order}{most}"
        return database.arrow(query, tables, of)

    def scan(self, table: str, tries: int = 0, attempts: Attempts = "effective", *, streamed: bool = False) -> Scan:
        """A table for SQL, after files moved during `tries` earlier attempts to read it. Internal.

        With `streamed`, rows of the journal may be a stream.
        """

        def work(tables: dict[str, Pieces]) -> Scan:
            parts_now = partial(self.files.part_pieces, table) if streamed else None
            pieces = with_episodes(self.files, tables) if table == "metrics" else tables[table]
            return scan_of(table, pieces, self.context(pieces, attempts), tries, parts_now=parts_now)

        return self.files.read([table], work)

    def _stream(self, table: str, tries: int = 0, attempts: Attempts = "effective") -> Scan:
        return self.scan(table, tries, attempts, streamed=True)

    def show(self, height: int = 640) -> Any:
        """The live page of this run in a notebook cell. This process serves it on 127.0.0.1.

        Args:
          height: pixels.
        """
        from rollbook.system.views import show

        return show(self._folder, height)

    def tail(
        self, from_start: bool = False, poll_seconds: float = 0.2, stop: Callable[[], bool] | None = None
    ) -> Iterator[Row]:
        """Rows as they are logged, until `stop()` is true; without `stop`, until the run ends.

        Args:
          from_start: start with the first row, not with the next new one.
          poll_seconds: seconds between two polls.
          stop: called after each poll.
        """
        cursor: dict[str, dict[int, int]] = {}
        with JournalReader(self._folder, sealed=SealedRows(self._folder), tables=FORWARDED) as reader:
            if not from_start:
                reader.skip(cursor)
            while True:
                ended = stop() if stop is not None else self.status in ("finished", "killed", "crashed")
                yield from reader.rows_since(cursor)
                if ended:
                    return
                time.sleep(poll_seconds)

    # -- pictures

    def plot(
        self,
        key: str | Sequence[str] = (),
        *,
        x: str | None = None,
        chart: str = "curves",
        theme: str = "light",
        **options: object,
    ) -> Picture:
        """A chart of the run.

        Args:
          key: one or several keys of metrics, or of histograms; charts of other tables need none.
          x: a clock, a key, or "time"; see `series`.
          chart: "curves", "small_multiples", "stages", "timeline", "histograms", "episodes", "novelty", "rewards".
          theme: "light" or "dark".
          options: points=1000 for curves, and options of the chart, such as limits=(0, 500).
        Returns:
          A `rollbook.plots.Picture`: `save("x.png")`, `figure()`, `text()`.
        Raises:
          UnknownOption: there is no such chart of one run.
          UnknownKey: no such key.
          BadInput: the chart needs a key.
        """
        from rollbook.book.charts import picture_of

        keys = [key] if isinstance(key, str) else list(key)
        return picture_of(self, [word for word in keys if word], x=x, chart=chart, theme=theme, options=options)

    def trace(self, path: str | os.PathLike[str]) -> str:
        """Write the timings in the Chrome trace format, for https://ui.perfetto.dev or chrome://tracing.

        One span per call, nested like the stages, with its clocks. Checkpoints and alerts are instants. Returns the
        path.
        """
        from rollbook.book.export import write_trace

        return write_trace(self, path)

    # -- what a resumed run reads about itself

    @property
    def own_summary(self) -> dict[str, Any]:
        """The summary that the run set itself, including values that are not yet in run.json."""
        return summary_of(self)

    def marks(self) -> list[dict[str, Any]]:
        """The marks of all attempts, oldest first: `mark`, `attempt`, `writer` …, and `payload`, the mark's data.

        A payload that is not an object is read as {}.
        """
        return all_marks(self)

    def checkpoint_history(self) -> CheckpointHistory:
        """The checkpoints of the effective history: which ones are kept, and where their files are."""
        return CheckpointHistory(checkpoint_rows(self.table("checkpoints")), self.path)

    def episode_counts(self) -> list[tuple[str, object, object]]:
        """(scope, number, environment steps counted) of each episode of the effective history, and (scope, None, steps
        counted) when a checkpoint was saved.
        """
        saved = [count for row in self.checkpoint_history().rows for count in counts_in(row)]
        table = self.table("episodes")
        names = ("scope", "number", "counted_env_step")
        if not set(names) <= set(table.column_names):
            return saved
        return [*saved, *zip(*(table[name].to_pylist() for name in names), strict=True)]

    def undumped(self) -> dict[tuple[str, str], dict[str, StoredValues]]:
        """The open windows of `store` in the effective history.

        Only windows of the processes that opened the run: each process aggregates its own values.

        Returns:
          (scope, id of its checkpoint or "") -> full key -> the values stored since the last dump, possibly none.
        """
        from rollbook.book.undumped import read_undumped

        return read_undumped(self)

    def cut_at(self, clock: str, value: int) -> tuple[int, Cut, dict[str, int]]:
        """The position in the effective history where a clock passed `value`: before the first row with a higher one.

        Returns:
          (attempt, cut, clocks): the attempt that wrote the last row to keep; the cut behind that row, for each writer;
          the clocks of that row.
        Raises:
          UnknownKey: no row before that has a reading of the clock.
        """
        from rollbook.book.rewind import cut_at

        return cut_at(self, clock, value)

    def cut_behind(self, checkpoint: Mapping[str, Any]) -> tuple[int, Cut]:
        """The position after a row of `checkpoint_history`, or where the clocks that it reaches `through` advance.

        Returns:
          (attempt, cut): the attempt that saved it, and the cut in it for each writer (see `schema.cuts`).
        """
        from rollbook.book.rewind import cut_behind

        return cut_behind(self, checkpoint)

    def reached(self) -> dict[str, int]:
        """The highest reading of each clock in the effective history, in all tables."""
        from rollbook.book.rewind import reached

        return reached(self)

    # -- what the methods above use

    def _tables(self) -> list[str]:
        return [*dict.fromkeys([*TABLES, *layout.table_names(self._folder)])]

    def _no_table(self, name: str) -> UnknownKey:
        return UnknownKey(f"{self._folder} has no table {name!r}.", did_you_mean(name, self._tables()))

    def row_count(self, table: str, attempts: Attempts = "effective") -> int:
        """The number of rows that `table` returns; 0 if there is no such table. Reads at most the identity columns.

        Args:
          table: its name.
        """
        return self._rows_of(table, attempts, with_episodes if table == "metrics" else None)

    def _rows_of(
        self, table: str, attempts: Attempts, more: Callable[[RunFiles, dict[str, Pieces]], Pieces] | None = None
    ) -> int:
        """How many rows of a table are stored, and those of metrics that only the episodes know if `more` adds them."""

        def work(tables: dict[str, Pieces]) -> int:
            pieces = tables[table] if more is None else more(self.files, tables)
            return count_rows(pieces, self.context(pieces, attempts))

        return self.files.read([table], work)

    def table_rows(self) -> dict[str, int]:
        """How many stored rows each table has, where it has some, those that the program recorded itself last; of
        checkpoints, how many were saved. Internal."""
        return self.files.read(self._tables(), lambda _: self._table_rows())  # one look at the files for all tables

    def _table_rows(self) -> dict[str, int]:
        saved = self.table("checkpoints")  # a row for each event of one: saved, no longer kept
        counts = {name: self._rows_of(name, "effective") for name in TABLES if name != "checkpoints"}
        counts["checkpoints"] = len(set(saved.column("checkpoint_id").to_pylist())) if saved.num_rows else 0
        own = {name: self._rows_of(name, "effective") for name in self.files.known() if name not in TABLES}
        return {name: rows for name, rows in ({name: counts[name] for name in TABLES} | own).items() if rows}

    def run_info(self) -> RunInfo:
        """What a sink or a health rule learns about the run. Internal."""
        return RunInfo(
            folder=self.path,
            project=self.project,
            name=self.name,
            id=self.id,
            attempt=len(self.attempts) or 1,
            clocks=tuple(self.clocks),
            config=self.config,
            seed=self.seed,
            group=self.group,
            tags=tuple(self.tags),
            notes=self.info.notes,
            x=self.info.x,
            total=dict(self.info.total),
        )

    def rows_so_far(self) -> list[Row]:
        """The time spent in every stage and the newest value of every key, as a live view takes them. Internal."""
        began = self.info.created or 0.0
        return rows_of(self.latest(), self.timings(), began, len(self.attempts))

    def row_groups(self, table: str, attempts: Attempts = "effective") -> RowGroups:
        """The row groups of a table, to be read one at a time. Internal."""
        return RowGroups(self.files, table, attempts, lambda pieces: self.context(pieces, attempts))

    def context(self, pieces: Pieces, attempts: Attempts) -> Context:
        """What other rollbook modules need to know besides the rows. Internal."""
        info = self.info
        clocks = dict.fromkeys([*self.clocks, *(clock for piece in pieces for clock in piece.meta["clocks"])])
        history, own = History(info, self._checkpoint_rows), own_axis(info.x, info.total)
        return Context(self._folder, tuple(clocks), history, attempts, main_writers(info), own, self._hosts)

    def _checkpoint_rows(self) -> dict[str, CheckpointRow]:
        """The position of the first row of each checkpoint."""

        def work(tables: dict[str, Pieces]) -> dict[str, CheckpointRow]:
            rows: dict[str, CheckpointRow] = {}
            for piece in tables["checkpoints"]:
                table = identity(piece.read(), piece.meta)
                if "checkpoint_id" not in table.column_names:
                    continue
                names = ("attempt", "writer", "lane", "seq")
                cells = [table[name].to_pylist() for name in names]
                times = to_numpy(table["time"])[0].tolist()
                for checkpoint, *row in zip(table["checkpoint_id"].to_pylist(), *cells, times, strict=True):
                    known = rows.get(str(checkpoint))
                    if known is None or tuple(row[3:]) < known[3:]:
                        rows[str(checkpoint)] = (row[0], row[1], row[2], row[3], row[4])
            return rows

        return self.files.read(["checkpoints"], work)


def _where(table: pa.Table, column: str, value: object) -> pa.Table:
    """The rows with this text in a column."""
    cells = table[column].to_pylist()
    return take_table(table, np.flatnonzero([str(cell) == str(value) for cell in cells]).astype(np.int64))
