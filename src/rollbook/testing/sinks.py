"""The contract of sinks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from rollbook.protocols import Row, Sink
from rollbook.testing.counting import count_operations
from rollbook.testing.naming import naming
from rollbook.testing.rows import (
    EXTREMES,
    HOSTILE,
    KINDS,
    START,
    fill,
    final,
    folder_of_check,
    made_run,
    row,
    saved,
    training_rows,
)

MakeSink: TypeAlias = Callable[[], Sink]


def check_sink(make_sink: MakeSink, tmp_path: Path) -> None:
    """Run every check of `SINK_CHECKS`, each in a separate folder below `tmp_path`.

    Args:
      make_sink: makes a new sink at each call.
      tmp_path: an empty folder, or none yet.
    Raises:
      AssertionError: a check failed. A note names the rule, also at what the sink itself raises.
      ValueError: `tmp_path` is a file, or holds an earlier check.
    """
    for name, check in SINK_CHECKS.items():
        with naming(name, check):
            check(make_sink, folder_of_check(tmp_path, name))


def closes_twice(make_sink: MakeSink, folder: Path) -> None:
    """`close` may be called twice, even without a row before it."""
    sink = make_sink()
    sink.open(made_run(folder / "run"))
    sink.close()
    sink.close()
    sink = make_sink()
    fill(sink, folder, [training_rows(10)])
    sink.close()


def takes_marks_and_empty_rows(make_sink: MakeSink, folder: Path) -> None:
    """Marks, rows without values or clocks, and empty batches are accepted."""
    dump = Row(START, {}, {}, "train", "w1", 0, 1, 1, "dump", ("train/return",))
    rewind = Row(START, {}, {}, "", "w2", 0, 1, 2, "rewind")
    bare = Row(START, {}, {"x": 1.0})
    fill(make_sink(), folder, [[], [row(2, {})], [dump, rewind, bare], [final(4)]])


def takes_any_kind_of_value(make_sink: MakeSink, folder: Path) -> None:
    """`accepts` lists kinds of values; a value of another kind is skipped, and the row's other values are kept."""
    sink = make_sink()
    if not isinstance(sink.accepts, frozenset) or not all(isinstance(kind, type) for kind in sink.accepts):
        raise AssertionError(f"accepts has to be a frozenset of types; found {sink.accepts!r}")
    values = {f"kinds/{type(value).__name__}": value for value in KINDS}
    fill(sink, folder, [[row(1, values)], [row(2, {"kinds/float": 2.5}), final(3)]])


def takes_any_number(make_sink: MakeSink, folder: Path) -> None:
    """NaN, infinities, the smallest and the largest floats, and integers of any length are accepted."""
    rows = [row(i + 1, {"train/x": value, "train/y": 1.0}, "train") for i, value in enumerate(EXTREMES)]
    fill(make_sink(), folder, [rows, [final(99)]])


def takes_keys_at_any_time(make_sink: MakeSink, folder: Path) -> None:
    """Keys may appear, disappear and return at any row, and change their kind."""
    rows = [row(i + 1, {f"k{j}": float(j) for j in range(i % 7 + 1)}) for i in range(40)]
    rows += [row(50, {"k0": 3}), row(51, {"k0": "text"}), row(52, {"k0": True})]
    fill(make_sink(), folder, [rows[:5], rows[5:], [final(60)]])


def takes_hostile_text(make_sink: MakeSink, folder: Path) -> None:
    """Keys, scopes and texts are untrusted: no file appears outside the run's folder, and no escape sequence in a .txt
    file."""
    rows = []
    for i, text in enumerate(HOSTILE):
        rows.append(row(3 * i + 1, {text: 1.0, f"{text}/inner": 2.0}))
        rows.append(row(3 * i + 2, {f"{text}/note": text, "note": text}, text))
        rows.append(row(3 * i + 3, {f"train/{text}": 1}, "train"))
    fill(make_sink(), folder, [rows, [final(999)]])
    outside = [path.name for path in folder.iterdir()]
    if outside != ["run"]:
        raise AssertionError(f"something was written outside the run's folder: {outside}")
    for path in (folder / "run").rglob("*.txt"):
        text = path.read_bytes().decode("utf-8")
        strange = sorted({char for char in text if char != "\n" and not char.isprintable()})
        if strange:
            raise AssertionError(f"{path.name} has characters in it that could drive a terminal: {strange!r}")


def costs_grow_with_the_rows(make_sink: MakeSink, folder: Path) -> None:
    """Four times the rows cost about four times the work, however many of their keys appear late."""
    fill(make_sink(), folder / "first", [training_rows(10)])  # imports at the first use do not count
    for late_keys in (0, 200):
        costs = []
        for n in (1_000, 4_000):
            rows = training_rows(n, late_keys=late_keys * n // 1000)
            run_folder = folder / f"{late_keys}-{n}"
            batches = [rows[i : i + 100] for i in range(0, n, 100)]
            costs.append(count_operations(lambda p=run_folder, b=batches: fill(make_sink(), p, b)))  # type: ignore[misc]
        for small, large, what, spare in zip(*costs, ("calls", "bytes read and written"), (0, 65_536), strict=True):
            if large > 6 * small + spare:
                raise AssertionError(
                    f"4,000 rows with {late_keys * 4} late keys took {large} {what}, 1,000 rows with {late_keys} took "
                    f"{small}; a sink's work has to grow with the rows alone"
                )


def restarts_without_loss_or_repetition(make_sink: MakeSink, folder: Path) -> None:
    """A file sink that is killed, cut back to a saved position and given the later rows has the same bytes.

    Sinks without `position` and `truncate` pass: they promise less.
    """
    if not hasattr(make_sink(), "position"):
        return
    rows = training_rows(240, late_keys=12)
    fill(make_sink(), folder / "whole", [rows])
    expected = _files(folder / "whole" / "run")
    for survived, died in ((0, 30), (1, 2), (90, 91), (100, 240), (240, 240)):
        run_folder = folder / f"{survived}-{died}" / "run"
        first = make_sink()
        first.open(made_run(run_folder))
        for i in range(0, survived, 7):
            first.write(rows[i : min(i + 7, survived)])
        position, state = saved(first)
        for path, length in position.items():
            if (run_folder / path).stat().st_size != length:
                raise AssertionError(
                    f"position() says {length} bytes for {path}, which has {(run_folder / path).stat().st_size}"
                )
        first.write(rows[survived:died])
        for path in position:  # the torn end that a kill during a write leaves
            with (run_folder / path).open("ab") as file:
                file.write(b"\x10half a row")
        second = make_sink()
        second.open(made_run(run_folder, attempt=1))
        second.truncate(position)  # type: ignore[attr-defined]
        if state is not None:
            second.set_state(state)  # type: ignore[attr-defined]
        for i in range(survived, len(rows), 50):
            second.write(rows[i : i + 50])
        second.close()
        files = _files(run_folder)
        if files != expected:
            strange = sorted(name for name in {*files, *expected} if files.get(name) != expected.get(name))
            raise AssertionError(
                f"killed at row {died}, cut back to row {survived}: not the bytes of an uninterrupted run in {strange}"
            )


def goes_on_without_a_position(make_sink: MakeSink, folder: Path) -> None:
    """A later attempt appends to an earlier one's output, even if that ends within a row."""
    run_folder = folder / "run"
    for attempt in (1, 2):
        sink = make_sink()
        sink.open(made_run(run_folder, attempt=attempt))
        sink.write([row(attempt, {"train/x": 1.0}, "train")])
        before = _files(run_folder)
        sink.close()
        for path in before:
            if attempt == 1 and hasattr(sink, "position"):
                with (run_folder / path).open("ab") as file:
                    file.write(b"\x10half a row")
    if hasattr(sink, "position"):
        for path, data in _files(run_folder).items():
            if b"half a row" in data:
                raise AssertionError(f"{path} kept half a row of the earlier attempt in its middle")


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


def _files(folder: Path) -> dict[str, bytes]:
    """Every file that is not empty, by its path below `folder`."""
    if not folder.is_dir():
        return {}
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): data for path in files if (data := path.read_bytes())}
