"""The contract of filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TypeAlias

from rollbook.protocols import Row, RunInfo, Sink
from rollbook.testing.naming import naming
from rollbook.testing.rows import fill, final, folder_of_check, saved, some_run, training_rows

MakeFilter: TypeAlias = Callable[[Sink], Sink]


def check_filter(make_filter: MakeFilter, tmp_path: Path) -> None:
    """Run every check of `FILTER_CHECKS`.

    Args:
      make_filter: makes the filter in front of the sink that it is given.
      tmp_path: an empty folder, or none yet; each check gets one below it.
    Raises:
      AssertionError: a check failed. A note names the rule, also at what the filter itself raises.
      ValueError: `tmp_path` is a file, or holds an earlier check.
    """
    for name, check in FILTER_CHECKS.items():
        with naming(name, check):
            check(make_filter, folder_of_check(tmp_path, name))


def passes_marks_in_order(make_filter: MakeFilter, folder: Path) -> None:
    """Every mark reaches `to`, once, in order; rows held back come before the final one."""
    to = _Kept()
    rows = [*training_rows(200), final(201)]
    rows.insert(120, Row(rows[120].time, {}, {}, "", "w2", 0, 1, 2, "rewind"))
    fill(make_filter(to), folder, [rows[:90], rows[90:]])
    expected = [row.mark for row in rows if row.mark]
    if [row.mark for row in to.rows if row.mark] != expected or to.rows[-1].mark != "final":
        raise AssertionError(f"marks went in as {expected}, came out as {[row.mark for row in to.rows if row.mark]}")
    if to.rows[-1].keys != rows[-1].keys:
        raise AssertionError(f"the run ended as {rows[-1].keys}, which came out as {to.rows[-1].keys}")


def is_a_sink_itself(make_filter: MakeFilter, folder: Path) -> None:
    """It reports what `to` accepts, opens and closes it, and has positions only if `to` has."""
    to = _Kept()
    made = make_filter(to)
    if not to.accepts <= made.accepts:
        raise AssertionError(f"it accepts {made.accepts!r}, but the sink behind it accepts {to.accepts!r}")
    if hasattr(made, "position"):
        raise AssertionError("it has a position(), but the sink behind it has none")
    made.open(some_run(folder))
    if to.opened != 1:
        raise AssertionError(f"open() opened the sink behind it {to.opened} times")
    made.write([])
    made.close()
    made.close()
    if not to.closed or to.rows:
        raise AssertionError(f"close() without rows: closed={to.closed}, rows={to.rows!r}")
    positioned = make_filter(_Positioned())
    if positioned.position() != {"file": 3}:  # type: ignore[attr-defined]
        raise AssertionError("the sink behind it has a position(), which it does not pass on")


def leaves_rows_as_they_are(make_filter: MakeFilter, folder: Path) -> None:
    """Rows may be shared: a filter makes new ones instead of changing them."""
    rows, same = training_rows(120), training_rows(120)
    fill(make_filter(_Kept()), folder, [rows])
    if rows != same:
        raise AssertionError("rows that went in have been changed in place")


def keeps_what_it_does_not_own(make_filter: MakeFilter, folder: Path) -> None:
    """A filter may change values, clocks and keys; every other field of a row stays unchanged."""
    own = ("clocks", "values", "keys", "mark", "seq")
    marked: dict[str, object] = {}
    for field in fields(Row):
        if field.name not in own:  # a value other than its default
            given = getattr(training_rows(1)[0], field.name)
            marked[field.name] = f"some {field.name}" if isinstance(given, str) else given + 3
    rows = [replace(row, **marked) for row in [*training_rows(300), final(301)]]
    for split in (0, 150):
        for row in _stopped_after(split, rows, make_filter, folder):
            for name, given in marked.items():
                if getattr(row, name) != given:
                    raise AssertionError(f"row.{name} went in as {given!r}, came out as {getattr(row, name)!r}")


def goes_on_from_its_state(make_filter: MakeFilter, folder: Path) -> None:
    """Stopped at any row and started again from its state, it lets the same rows through."""
    rows = [*training_rows(150), final(151)]
    whole = _Kept()
    fill(make_filter(whole), folder, [rows])
    for split in range(0, len(rows), 11):
        kept = _stopped_after(split, rows, make_filter, folder)
        _same(whole.rows, kept, f"stopped after {split} rows and started from its state")


def _stopped_after(split: int, rows: list[Row], make_filter: MakeFilter, folder: Path) -> list[Row]:
    """What comes out if the filter stops after some rows and another one continues from its state."""
    first, second = _Kept(), _Kept()
    made = make_filter(first)
    made.open(some_run(folder))
    made.write(rows[:split])
    _, state = saved(made)
    made = make_filter(second)
    made.open(some_run(folder, attempt=2))
    if state is not None:
        made.set_state(state)  # type: ignore[attr-defined]
    made.write(rows[split:])
    made.close()
    return first.rows + second.rows


def is_never_half_done(make_filter: MakeFilter, folder: Path) -> None:
    """If the sink behind it fails, the same rows offered again come out as if the failure had not happened."""
    rows = [*training_rows(150), final(151)]
    whole, failing = _Kept(), _Kept()
    fill(make_filter(whole), folder, [rows])
    made = make_filter(failing)
    made.open(some_run(folder))
    for i in range(0, len(rows), 10):
        failing.fails = True
        try:
            made.write(rows[i : i + 10])
        except OSError:
            failing.fails = False
            made.write(rows[i : i + 10])
        failing.fails = False
    made.close()
    _same(whole.rows, failing.rows, "each batch refused once and offered again")


FILTER_CHECKS: dict[str, Callable[[MakeFilter, Path], None]] = {
    check.__name__: check
    for check in (
        passes_marks_in_order,
        is_a_sink_itself,
        leaves_rows_as_they_are,
        keeps_what_it_does_not_own,
        goes_on_from_its_state,
        is_never_half_done,
    )
}
"""Name -> check(make_filter, empty folder)."""


def every_row(row: Row) -> Row:
    """The simplest function that is a filter."""
    return row


class _Kept:
    """A sink that keeps what it gets, and fails when told to."""

    accepts: frozenset[type] = frozenset({float, int, bool, str})

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.opened = 0
        self.closed = self.fails = False

    def open(self, run: RunInfo) -> None:
        self.opened += 1

    def write(self, rows: Sequence[Row]) -> None:
        if self.fails:
            raise OSError("told to fail")
        self.rows.extend(rows)

    def close(self) -> None:
        self.closed = True


class _Positioned(_Kept):
    """The same, with a position."""

    def position(self) -> dict[str, int]:
        return {"file": 3}

    def truncate(self, position: object) -> None:
        return None


def _same(expected: Sequence[Row], actual: Sequence[Row], when: str) -> None:
    for i, (a, b) in enumerate(zip(expected, actual, strict=False)):
        if a != b:
            raise AssertionError(f"{when}: row {i} came out as {b!r} instead of {a!r}")
    if len(expected) != len(actual):
        raise AssertionError(f"{when}: {len(actual)} rows came out instead of {len(expected)}")
