"""The contracts of rollbook's extension points as checks, for sinks and filters of ours and of anybody else.

    @pytest.mark.parametrize("check", rollbook.testing.SINK_CHECKS.values(), ids=rollbook.testing.SINK_CHECKS)
    def test_my_sink_keeps_the_contract(check, tmp_path):
        check(MySink, tmp_path)

A check takes a function that makes a fresh sink (or puts a fresh filter in front of a given sink) and an empty folder,
and raises AssertionError. `check_sink` and `check_filter` run all of them. No test framework is needed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from rollbook.protocols import Row, RunInfo, Sink
from rollbook.values import Histogram, Image, Video

__all__ = [
    "FILTER_CHECKS",
    "SINK_CHECKS",
    "check_filter",
    "check_sink",
    "count_operations",
    "some_run",
    "training_rows",
]

MakeSink: TypeAlias = Callable[[], Sink]
MakeFilter: TypeAlias = Callable[[Sink], Sink]

START = 1_700_000_000.0
CLOCKS = ("env_step", "gradient_step", "epoch")
HOSTILE = (
    "\x1b[2J\x1b[31mred",
    "line\nbreak\r\n",
    "tab\tand\x00nul",
    "../../../outside",
    "/absolute",
    "a,b;\"c\"'d'",
    "=1+1",
    "\u202etxt.exe",
    "\x9b31m",
    "éß漢字🎈",
    "\udc80half",
    "",
    " ",
    "con",
    "time",
    "x" * 400,
)
KINDS: tuple[Any, ...] = (
    1.5,
    7,
    True,
    "some text",
    Histogram([0.0, 0.5, 1.0], [3, 4]),
    Image("media/frame.png", 2, 1),
    Video("media/film.mp4", 2, 1, 30, 15.0),
)
EXTREMES: tuple[Any, ...] = (
    float("nan"),
    float("inf"),
    float("-inf"),
    -0.0,
    5e-324,
    1.7976931348623157e308,
    2**63,
    -(2**64),
    10**400,
    -(10**5000),
)


def some_run(folder: Path, *, attempt: int = 1, clocks: Sequence[str] = CLOCKS) -> RunInfo:
    """A run to open a sink for, with everything set. `attempt` above 1 means that it was resumed."""
    return RunInfo(
        folder=folder,
        project="cartpole",
        name="ppo",
        id="k3v9x2ab",
        attempt=attempt,
        clocks=tuple(clocks),
        config={"lr": 3e-4, "net": {"hidden": [64, 64]}},
        seed=3,
        group="sweep",
        tags=("quick",),
        notes="a note",
        x=clocks[0] if clocks else "",
        resumed=attempt > 1,
    )


def training_rows(n: int, *, late_keys: int = 0) -> list[Row]:
    """n rows as a training makes them: episodes, updates, timings, now and then an evaluation, a note, a dump mark.

    Args:
      late_keys: so many further keys, each appearing for the first time somewhere along the way.
    """
    rows = []
    for i in range(n):
        clocks = {"env_step": 64 * i, "gradient_step": 4 * i}
        scope, mark = "", ""
        values: dict[str, Any]
        if i % 97 == 96:
            values, mark = {}, "dump"
        elif i % 50 == 49:
            values, scope = {"test/return": 0.5 * i, "test/episodes": 20}, "test"
        elif i % 41 == 40:
            values = {"note": f"row {i}"}
        elif i % 3 == 0:
            values, scope = {"train/return": i / 7, "train/length": i, "train/solved": i % 2 == 0}, "train"
        elif i % 3 == 1:
            values, scope = {"update/loss/policy": -1 / (i + 1), "update/loss/value": 1e3 / (i + 1)}, "update"
        else:
            values = {"time/collect_seconds": 0.01 * (i % 5)}
        if late_keys and values and i and i % max(1, n // (late_keys + 1)) == 0:
            values[f"late/key{i}"] = float(i)
        rows.append(Row(START + 0.25 * i, clocks, values, scope, "w1", 0, i + 1, 1, mark))
    return rows


def check_sink(make_sink: MakeSink, tmp_path: Path) -> None:
    """Run every check of `SINK_CHECKS`, each in a folder of its own below `tmp_path`."""
    for name, check in SINK_CHECKS.items():
        folder = tmp_path / name
        folder.mkdir()
        check(make_sink, folder)


def check_filter(make_filter: MakeFilter, tmp_path: Path) -> None:
    """Run every check of `FILTER_CHECKS`."""
    for name, check in FILTER_CHECKS.items():
        folder = tmp_path / name
        folder.mkdir()
        check(make_filter, folder)


def _fill(sink: Sink, folder: Path, batches: Sequence[Sequence[Row]]) -> None:
    sink.open(some_run(folder / "run"))
    for batch in batches:
        sink.write(batch)
    sink.close()


def _row(seq: int, values: dict[str, Any], scope: str = "") -> Row:
    return Row(START + seq, {"env_step": seq}, values, scope, "w1", 0, seq)


def _final(seq: int) -> Row:
    return Row(START + seq, {}, {}, "", "w1", 0, seq, 1, "final")


def closes_twice(make_sink: MakeSink, folder: Path) -> None:
    """`close` may be called twice, and without a row before it."""
    sink = make_sink()
    sink.open(some_run(folder / "run"))
    sink.close()
    sink.close()
    sink = make_sink()
    _fill(sink, folder, [training_rows(10)])
    sink.close()


def takes_marks_and_empty_rows(make_sink: MakeSink, folder: Path) -> None:
    """Marks, rows without values or clocks, and empty batches are no trouble."""
    dump = Row(START, {}, {}, "train", "w1", 0, 1, 1, "dump", ("train/return",))
    bare = Row(START, {}, {"x": 1.0})
    _fill(make_sink(), folder, [[], [_row(2, {})], [dump, bare], [_final(4)]])


def takes_any_kind_of_value(make_sink: MakeSink, folder: Path) -> None:
    """`accepts` names kinds of values; a value of another kind is skipped, and its row's others are kept."""
    sink = make_sink()
    if not isinstance(sink.accepts, frozenset) or not all(isinstance(kind, type) for kind in sink.accepts):
        raise AssertionError(f"accepts has to be a frozenset of types; found {sink.accepts!r}")
    values = {f"kinds/{type(value).__name__}": value for value in KINDS}
    _fill(sink, folder, [[_row(1, values)], [_row(2, {"kinds/float": 2.5}), _final(3)]])


def takes_any_number(make_sink: MakeSink, folder: Path) -> None:
    """NaN, infinities, the smallest and the largest floats, and integers of any length are numbers like others."""
    rows = [_row(i + 1, {"train/x": value, "train/y": 1.0}, "train") for i, value in enumerate(EXTREMES)]
    _fill(make_sink(), folder, [rows, [_final(99)]])


def takes_keys_at_any_time(make_sink: MakeSink, folder: Path) -> None:
    """Keys may appear, disappear and come back at any row, and change their kind."""
    rows = [_row(i + 1, {f"k{j}": float(j) for j in range(i % 7 + 1)}) for i in range(40)]
    rows += [_row(50, {"k0": 3}), _row(51, {"k0": "text"}), _row(52, {"k0": True})]
    _fill(make_sink(), folder, [rows[:5], rows[5:], [_final(60)]])


def takes_hostile_text(make_sink: MakeSink, folder: Path) -> None:
    """Keys, scopes and texts are untrusted: they leave the run's folder alone, and reach no terminal through a .txt."""
    rows = []
    for i, text in enumerate(HOSTILE):
        rows.append(_row(3 * i + 1, {text: 1.0, f"{text}/inner": 2.0}))
        rows.append(_row(3 * i + 2, {f"{text}/note": text, "note": text}, text))
        rows.append(_row(3 * i + 3, {f"train/{text}": 1}, "train"))
    (folder / "run").mkdir()
    _fill(make_sink(), folder, [rows, [_final(999)]])
    beside = [path.name for path in folder.iterdir()]
    if beside != ["run"]:
        raise AssertionError(f"something was written outside the run's folder: {beside}")
    for path in (folder / "run").rglob("*.txt"):
        text = path.read_bytes().decode("utf-8")
        strange = sorted({char for char in text if char != "\n" and not char.isprintable()})
        if strange:
            raise AssertionError(f"{path.name} has characters in it that could drive a terminal: {strange!r}")


def costs_grow_with_the_rows(make_sink: MakeSink, folder: Path) -> None:
    """Four times the rows cost about four times the work, however many of their keys appear late."""
    _fill(make_sink(), folder / "first", [training_rows(10)])  # what is loaded at the first use is not counted
    for late_keys in (0, 200):
        costs = []
        for n in (1_000, 4_000):
            rows = training_rows(n, late_keys=late_keys * n // 1000)
            place = folder / f"{late_keys}-{n}"
            batches = [rows[i : i + 100] for i in range(0, n, 100)]
            costs.append(count_operations(lambda p=place, b=batches: _fill(make_sink(), p, b)))  # type: ignore[misc]
        for small, large, what, spare in zip(*costs, ("calls", "bytes read and written"), (0, 65_536), strict=True):
            if large > 6 * small + spare:
                raise AssertionError(
                    f"4,000 rows with {late_keys * 4} late keys took {large} {what}, 1,000 rows with {late_keys} took "
                    f"{small}; a sink's work has to grow with the rows alone"
                )


def restarts_without_loss_or_repetition(make_sink: MakeSink, folder: Path) -> None:
    """A file sink that is killed, cut back to a saved position and given the rows after it has the same bytes.

    Sinks without `position` and `truncate` pass: they promise less.
    """
    if not hasattr(make_sink(), "position"):
        return
    rows = training_rows(240, late_keys=12)
    _fill(make_sink(), folder / "whole", [rows])
    expected = _files(folder / "whole" / "run")
    for saved, died in ((0, 30), (1, 2), (90, 91), (100, 240), (240, 240)):
        place = folder / f"{saved}-{died}" / "run"
        first = make_sink()
        first.open(some_run(place))
        for i in range(0, saved, 7):
            first.write(rows[i : min(i + 7, saved)])
        position, state = _saved(first)
        for path, length in position.items():
            if (place / path).stat().st_size != length:
                raise AssertionError(
                    f"position() says {length} bytes for {path}, which has {(place / path).stat().st_size}"
                )
        first.write(rows[saved:died])
        for path in position:  # what a write that was cut short by a kill leaves
            with (place / path).open("ab") as file:
                file.write(b"\x10half a row")
        second = make_sink()
        second.open(some_run(place, attempt=1))
        second.truncate(position)  # type: ignore[attr-defined]
        if state is not None:
            second.set_state(state)  # type: ignore[attr-defined]
        for i in range(saved, len(rows), 50):
            second.write(rows[i : i + 50])
        second.close()
        found = _files(place)
        if found != expected:
            strange = sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))
            raise AssertionError(
                f"killed at row {died}, cut back to row {saved}: not the bytes of an uninterrupted run in {strange}"
            )


def goes_on_without_a_position(make_sink: MakeSink, folder: Path) -> None:
    """A later attempt appends to what an earlier one left, also where that ends in half a row."""
    place = folder / "run"
    for attempt in (1, 2):
        sink = make_sink()
        sink.open(some_run(place, attempt=attempt))
        sink.write([_row(attempt, {"train/x": 1.0}, "train")])
        before = _files(place)
        sink.close()
        for path in before:
            if attempt == 1 and hasattr(sink, "position"):
                with (place / path).open("ab") as file:
                    file.write(b"\x10half a row")
    if hasattr(sink, "position"):
        for path, data in _files(place).items():
            if b"half a row" in data:
                raise AssertionError(f"{path} kept half a row of the earlier attempt in its middle")


def passes_marks_in_order(make_filter: MakeFilter, folder: Path) -> None:
    """Every mark reaches `to`, once, in order; rows held back come before the final one."""
    to = _Kept()
    rows = [*training_rows(200), _final(201)]
    _fill(make_filter(to), folder, [rows[:90], rows[90:]])
    expected = [row.mark for row in rows if row.mark]
    if [row.mark for row in to.rows if row.mark] != expected or to.rows[-1].mark != "final":
        raise AssertionError(f"marks went in as {expected}, came out as {[row.mark for row in to.rows if row.mark]}")


def is_a_sink_itself(make_filter: MakeFilter, folder: Path) -> None:
    """It says what `to` accepts, opens and closes it, and has positions only if `to` has."""
    to = _Kept()
    made = make_filter(to)
    if not to.accepts <= made.accepts:
        raise AssertionError(f"it accepts {made.accepts!r}, but what is behind it accepts {to.accepts!r}")
    if hasattr(made, "position"):
        raise AssertionError("it has a position(), but what is behind it has none")
    made.open(some_run(folder))
    if to.opened != 1:
        raise AssertionError(f"open() opened what is behind it {to.opened} times")
    made.write([])
    made.close()
    made.close()
    if not to.closed or to.rows:
        raise AssertionError(f"close() without rows: closed={to.closed}, rows={to.rows!r}")
    placed = make_filter(_Placed())
    if placed.position() != {"file": 3}:  # type: ignore[attr-defined]
        raise AssertionError("what is behind it has a position(), which it does not pass on")


def leaves_rows_as_they_are(make_filter: MakeFilter, folder: Path) -> None:
    """Rows belong to whoever made them: a filter makes new ones."""
    rows, same = training_rows(120), training_rows(120)
    _fill(make_filter(_Kept()), folder, [rows])
    if rows != same:
        raise AssertionError("rows that went in have been changed in place")


def goes_on_from_its_state(make_filter: MakeFilter, folder: Path) -> None:
    """Stopped anywhere and started again from its state, it lets the same rows through."""
    rows = [*training_rows(150), _final(151)]
    whole = _Kept()
    _fill(make_filter(whole), folder, [rows])
    for split in range(0, len(rows), 11):
        first, second = _Kept(), _Kept()
        made = make_filter(first)
        made.open(some_run(folder))
        made.write(rows[:split])
        _, state = _saved(made)
        made = make_filter(second)
        made.open(some_run(folder, attempt=2))
        if state is not None:
            made.set_state(state)  # type: ignore[attr-defined]
        made.write(rows[split:])
        made.close()
        _same(whole.rows, first.rows + second.rows, f"stopped after {split} rows and started from its state")


def is_never_half_done(make_filter: MakeFilter, folder: Path) -> None:
    """Where what is behind it fails, the same rows offered again come out as if nothing had happened."""
    rows = [*training_rows(150), _final(151)]
    whole, failing = _Kept(), _Kept()
    _fill(make_filter(whole), folder, [rows])
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


SINK_CHECKS: dict[str, Callable[[MakeSink, Path], None]] = {
    check.__name__: check
    for check in (
        closes_twice,
        takes_marks_and_empty_rows,
        takes_any_kind_of_value,
        takes_any_number,
        takes_keys_at_any_time,
        takes_hostile_text,
        costs_grow_with_the_rows,
        restarts_without_loss_or_repetition,
        goes_on_without_a_position,
    )
}
"""Name -> check(make_sink, empty folder)."""

FILTER_CHECKS: dict[str, Callable[[MakeFilter, Path], None]] = {
    check.__name__: check
    for check in (
        passes_marks_in_order,
        is_a_sink_itself,
        leaves_rows_as_they_are,
        goes_on_from_its_state,
        is_never_half_done,
    )
}
"""Name -> check(make_filter, empty folder)."""


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


class _Placed(_Kept):
    """The same with a position."""

    def position(self) -> dict[str, int]:
        return {"file": 3}

    def truncate(self, position: Any) -> None:
        return None


def count_operations(action: Callable[[], object]) -> tuple[int, int]:
    """How much work an action is: calls of functions, and bytes read and written where the system counts them.

    Counts, unlike seconds, are the same on a busy machine.
    """
    calls = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before, bytes_before = sys.getprofile(), _bytes_moved()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls, _bytes_moved() - bytes_before


def _bytes_moved() -> int:
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(("rchar", "wchar")))


def _saved(sink: Sink) -> tuple[dict[str, int], Any]:
    """Position and state as they come back from a file of JSON."""
    position = sink.position() if hasattr(sink, "position") else {}
    state = sink.state() if hasattr(sink, "state") else None
    back = json.loads(json.dumps([position, state], allow_nan=False))
    return back[0], back[1]


def _files(folder: Path) -> dict[str, bytes]:
    """Every file that is not empty, by its path below `folder`."""
    if not folder.is_dir():
        return {}
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): data for path in files if (data := path.read_bytes())}


def _same(expected: Sequence[Row], found: Sequence[Row], when: str) -> None:
    for i, (a, b) in enumerate(zip(expected, found, strict=False)):
        if a != b:
            raise AssertionError(f"{when}: row {i} came out as {b!r} instead of {a!r}")
    if len(expected) != len(found):
        raise AssertionError(f"{when}: {len(found)} rows came out instead of {len(expected)}")
