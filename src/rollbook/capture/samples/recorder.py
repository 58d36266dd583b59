"""Samples: one row per item of a batch, with any columns, and at once whether each item is new.

    logged = run.log_samples(prompts, reward=rewards, advantage=advantages, group=group_ids, policy_version=7)
    bonus = [0.1 if new else 0.0 for new in logged.new]

Items are text or any structured data, identified by their content. Neither the cost per item nor the memory grows with
the run (see `SampleLog`).
"""

from __future__ import annotations

import os
import time

from rollbook.capture.batch_columns import BatchColumns, is_column, pieces
from rollbook.capture.samples.items import Items
from rollbook.capture.samples.seen import Seen
from rollbook.capture.samples.seen_file import SeenFile
from rollbook.capture.shared_clocks import clock_names
from rollbook.errors import BadInput
from rollbook.system.bill import counted
from rollbook.system.guard import handled_by, tolerating
from rollbook.values import flatten
from rollbook.values.arrays import array_or_none
from rollbook.values.content import fingerprint_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from rollbook.protocols import Recorder

_OWN = frozenset(
    ("sample_id", "item", "item_type", "item_raw", "item_path", "item_size", "is_new", "first_seen", "batch")
)


class LoggedSamples:
    """The result of `log_samples` for one batch.

    Attributes:
      new: one bool per item: whether this run sees it for the first time. If a batch has equal items, the first is new.
      ids: one id per item: the caller's, or one that no other row of the run has.
      count: number of items.
      batch: the number of the batch in the run.
    """

    __slots__ = ("batch", "count", "ids", "new")

    def __init__(self, new: list[bool], ids: list[str], batch: int) -> None:
        self.new, self.ids, self.batch = new, ids, batch
        self.count = len(new)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<LoggedSamples: {sum(self.new)} of {self.count} new>"


class SampleLog:
    """The sample log of a run: its table, and the set of items seen before.

    The first million different items are recognised exactly (18 MB; 64-bit fingerprints, so the chance of any confusion
    among them is 3e-8). Beyond that, a filter of fixed size decides. It never takes a known item for a new one. It
    takes a new item for a known one with the chance `seen.error`: 1e-4 at 4.5 million items in the default 16 MiB. The
    set is stored in `data/seen` and survives a resume; items that a rewind abandoned count as not seen. Each process
    that logs samples has its own set.

    Args:
      run: the run (or a scope of it); provides its folder, attempt and bill.
      exact: how many items are recognised exactly; "always" for all of them, in memory that grows by 18 to 36 bytes
        each.
      filter_bytes: the size of the filter.
      inline_bytes: longer items are stored in separate files under `data/items`, with only their beginning in the
        table.
      apart_bytes: for items longer than this only the beginning is stored (counted).
      curves: also log `samples/new`, `samples/diversity`, `samples/count` and `samples/unique` with each batch.
    Raises:
      BadInput: an invalid limit.
    """

    def __init__(
        self,
        run: Recorder,
        *,
        exact: int | str = 1_000_000,
        filter_bytes: int = 16 * 1024 * 1024,
        inline_bytes: int = 256 * 1024,
        apart_bytes: int = 64 * 1024 * 1024,
        curves: bool = True,
    ) -> None:
        if isinstance(exact, str) and exact != "always":
            raise BadInput(f"SampleLog(exact={exact!r}): give how many items to tell apart exactly, or 'always'.")
        self._run = run
        self.seen = Seen(None if isinstance(exact, str) else int(exact), filter_bytes)
        self.curves = curves
        self._items = Items(run, inline_bytes, apart_bytes)
        self._columns = BatchColumns(run, "log_samples", "sample_columns")
        self._file = SeenFile(run.folder)
        self._attempt: int | None = None
        self._prefix = ""
        self._batch = 0
        self._reported_filter = False
        self._clock_names = frozenset(clock_names(run))

    def log_samples(
        self,
        recorder: Recorder,
        items: Iterable[object],
        ids: Sequence[object] | None = None,
        group: object = None,
        **columns: object,
    ) -> LoggedSamples:
        """Append one row per item to `samples`, through `recorder` (the run or a scope of it).

        Args:
          recorder: the run or the scope that gets the rows.
          items: a list of texts or of structured data, or an array whose first axis counts items.
          ids: one id per item, for items with an identity (prompt 812). By default each row gets one.
          group: one value per item, or one for all.
          columns: name -> n values (list, array or tensor), one value for all, or a dict of those ("rewards" by
            component becomes `rewards/<component>`). May include clocks. A column of another length is cut or filled
            with None, and reported.
        Returns:
          Which items are new. After a failure (counted) all count as seen.
        """
        listed = _listed(items)
        with handled_by(self._failed):
            return self._log(recorder, listed, ids, group, columns)
        return LoggedSamples([False] * len(listed), [""] * len(listed), self._batch)

    def _failed(self, err: Exception) -> None:
        self._run.count(
            "samples",
            1,
            f"log_samples() failed with {type(err).__name__}: {err}; training is not affected, (part of) this "
            "batch is missing from the run",
        )

    def _log(
        self, recorder: Recorder, items: list[Any], ids: object, group: object, columns: Mapping[str, object]
    ) -> LoggedSamples:
        n = len(items)
        self._follow_attempt()
        if not n:
            return LoggedSamples([], [], self._batch)
        batch = self._batch
        self._batch = batch + 1
        prints, texts, sizes, special = self._items.read(items)
        new, first_seen, fresh = self._look_up(prints, batch)
        sample_ids = [f"{self._prefix}-{batch}-{index}" for index in range(n)]
        if ids is not None:
            given = self._columns.column("ids", ids, n)
            sample_ids = [
                own if given_id is None else str(given_id) for given_id, own in zip(given, sample_ids, strict=True)
            ]
        clocks, clock_columns, values = self._sorted(columns, n)
        if group is not None:
            values["group"] = self._columns.column("group", group, n)
        values.update(special)
        values["content"] = [f"{key:016x}" if key is not None else None for key in prints]
        values.update(sample_id=sample_ids, item=texts, is_new=new, first_seen=first_seen, batch=[batch] * n)
        for start, stop in pieces(sizes):
            part = {name: column[start:stop] for name, column in values.items()}
            readings = {name: column[start:stop] for name, column in clock_columns.items()}
            recorder.record("samples", part, stop - start, clock_columns=readings or None, **clocks)
        self._remember(fresh, batch)
        if self.curves:
            known = [key for key in prints if key is not None]
            diversity = (len(set(known)) + n - len(known)) / n
            recorder.log(
                {
                    "samples/new": sum(new) / n,
                    "samples/diversity": diversity,
                    "samples/count": n,
                    "samples/unique": self.seen.count,
                },
                **clocks,
            )
        return LoggedSamples(new, sample_ids, batch)

    # -- seen before

    def is_seen(self, item: object) -> bool:
        """Whether an item was logged before. Does not add it. Objects without readable content never count as seen.

        Args:
          item: a text, structured data or an array.
        """
        self._follow_attempt()
        key = fingerprint_of(item)
        return key is not None and key in self.seen

    def unique(self) -> int:
        """How many different items were logged, over all effective attempts of the run."""
        self._follow_attempt()
        return self.seen.count

    def _follow_attempt(self) -> None:
        """Load the set of seen items at the first batch and after a rewind."""
        attempt = int(getattr(getattr(self._run, "run", self._run), "attempt", 1))
        if attempt == self._attempt:
            return
        self._attempt = attempt
        self._prefix = os.urandom(4).hex()  # batch numbers restart in each process, and after a rewind
        self.reload()

    def reload(self) -> None:
        """Forget the seen items, and load them again from the run's effective history."""
        self.seen.clear()
        self._batch = 0
        for batch, prints in self._file.blocks():
            for key in prints:
                self.seen.add(key, batch)
            self._batch = max(self._batch, batch + 1)

    def _look_up(self, prints: list[int | None], batch: int) -> tuple[list[bool], list[int | None], list[int]]:
        add = self.seen.add
        new: list[bool] = []
        first_seen: list[int | None] = []
        fresh: list[int] = []
        for key in prints:
            if key is None:
                new.append(True)
                first_seen.append(batch)
                continue
            first = add(key, batch)
            if first == -1:
                new.append(True)
                first_seen.append(batch)
                fresh.append(key)
            else:
                new.append(False)
                first_seen.append(first if first >= 0 else None)
        if self.seen.filtered and not self._reported_filter:
            self._reported_filter = True
            self._run.count(
                "seen_filter",
                1,
                f"more than {self.seen.exact:,} different samples were logged; from here on a filter of "
                f"{self.seen.filter_bytes:,} bytes says whether one is new, and takes a few new ones for known ones "
                "(1 in 10,000 at 4.5 million in 16 MiB). Ask for SampleLog(exact='always') if that matters",
            )
        return new, first_seen, fresh

    def _remember(self, fresh: list[int], batch: int) -> None:
        if not fresh:
            return
        with counted(
            self._run.count,
            "seen_not_kept",
            "the set of seen samples could not be written",
            "; a resumed run will take them for new",
            kinds=OSError,
        ):
            writer = getattr(getattr(self._run, "internals", None), "writer", None)
            positions = {} if writer is None else writer.positions()
            self._file.append(fresh, batch, self._attempt or 1, time.time_ns(), positions)

    # -- columns

    def _sorted(self, columns: Mapping[str, object], n: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """(clocks for all rows, clocks per row, columns), each column with n values."""
        clocks: dict[str, object] = {}
        clock_columns: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for name, value in flatten({name: _whole(value) for name, value in columns.items()}):
            if name in self._clock_names:
                if is_column(value):
                    clock_columns[name] = _as_list(self._columns.column(name, value, n))
                elif value is not None:
                    clocks[name] = value
                continue
            column = self._columns.column(name, value, n)
            if column is not None:
                values[f"given/{name}" if name in _OWN or name in ("content", "group") else name] = column
        for name, column in list(clock_columns.items()):
            if any(type(reading) is not int for reading in column):
                values[f"clock/{name}"] = clock_columns.pop(name)
        return clocks, clock_columns, values


def _listed(items: Any) -> list[Any]:
    if isinstance(items, list):
        return items
    if isinstance(items, (str, bytes)) or hasattr(items, "keys"):
        return [items]
    array = array_or_none(items)
    if array is not None and array.ndim:
        return list(array)
    with tolerating(TypeError):
        return list(items)
    return [items]


def _whole(value: object) -> object:
    """Convert a pandas column to a list; it looks like a dict."""
    return value.tolist() if hasattr(value, "tolist") and hasattr(value, "items") else value


def _as_list(column: Any) -> list[object]:
    return column.tolist() if hasattr(column, "tolist") else list(column)
