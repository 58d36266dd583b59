"""The contract bites: each kind of broken sink or filter is found by the check that is about it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from rollbook import health, testing
from rollbook.formats import importers
from rollbook.sinks import Jsonl
from rollbook.sinks.filters import Filter
from rollbook.testing import FILTER_CHECKS, SINK_CHECKS


class CloseOnce(Jsonl):
    def close(self):
        del self._lengths


class OnlyNumbers(Jsonl):
    def write(self, rows):
        for row in rows:
            for value in row.values.values():
                float(value)
        super().write(rows)


class NoMarks(Jsonl):
    def write(self, rows):
        for row in rows:
            next(iter(row.values))
        super().write(rows)


class NoLateKeys(Jsonl):
    keys: tuple[str, ...] = ()

    def write(self, rows):
        for row in rows:
            self.keys = self.keys or tuple(row.values)
            if set(row.values) - set(self.keys):
                raise KeyError("a new column")
        super().write(rows)


class RewritesEverything(Jsonl):
    def write(self, rows):
        super().write(rows)
        for path in self._lengths:
            file = self._folder / path
            file.write_bytes(file.read_bytes())


class Escapes(Jsonl):
    def write(self, rows):
        with (self._folder / "log.txt").open("a", encoding="utf-8", errors="replace") as file:
            for row in rows:
                file.write("\n".join(row.values))


class LeavesTheFolder(Jsonl):
    def write(self, rows):
        for row in rows:
            if row.scope.startswith(".."):
                (self._folder.parent / "outside").touch()


class ForgetsToCut(Jsonl):
    def truncate(self, position):
        self._ready = True


class DependsOnBatches(Jsonl):
    def _render(self, rows):
        yield "log/jsonl/metrics.jsonl", f"{len(rows)}\n".encode()


class KeepsTornEnds(Jsonl):
    def _get_ready(self):
        self._ready = True


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (CloseOnce, "closes_twice"),
        (OnlyNumbers, "takes_any_kind_of_value"),
        (NoMarks, "takes_marks_and_empty_rows"),
        (NoLateKeys, "takes_keys_at_any_time"),
        (RewritesEverything, "costs_grow_with_the_rows"),
        (Escapes, "takes_hostile_text"),
        (LeavesTheFolder, "takes_hostile_text"),
        (ForgetsToCut, "restarts_without_loss_or_repetition"),
        (DependsOnBatches, "restarts_without_loss_or_repetition"),
        (KeepsTornEnds, "goes_on_without_a_position"),
    ],
)
def test_a_broken_sink_is_found(broken, check, tmp_path: Path) -> None:
    (tmp_path / "sound").mkdir()
    SINK_CHECKS[check](Jsonl, tmp_path / "sound")
    (tmp_path / "broken").mkdir()
    with pytest.raises((AssertionError, AttributeError, TypeError, ValueError, StopIteration, KeyError)):
        SINK_CHECKS[check](broken, tmp_path / "broken")


def test_a_failed_check_names_its_rule(tmp_path: Path) -> None:
    class Raises(Jsonl):
        def write(self, rows):
            raise ValueError("disk")

    with pytest.raises(ValueError, match="disk") as caught:
        testing.check_sink(Raises, tmp_path)
    (note,) = caught.value.__notes__
    assert note.startswith("The contract's rule ")
    assert any(name in note for name in SINK_CHECKS)


class SwallowsMarks(Filter):
    def _mark(self, row):
        return ()


class ForgetsOnRestart(Filter):
    seen = 0

    def _row(self, row):
        self.seen += 1
        return (row,) if self.seen % 2 else ()

    def _remember(self):
        return self.seen

    def _recall(self, token):
        self.seen = token


class ForgetsToUndo(ForgetsOnRestart):
    def _recall(self, token):
        return None


class ChangesInPlace(Filter):
    def _row(self, row):
        row.values["more"] = 1
        return (row,)


class OpensTwice(Filter):
    def open(self, run):
        self.to.open(run)
        self.to.open(run)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (SwallowsMarks, "passes_marks_in_order"),
        (ForgetsOnRestart, "goes_on_from_its_state"),
        (ForgetsToUndo, "is_never_half_done"),
        (ChangesInPlace, "leaves_rows_as_they_are"),
        (OpensTwice, "is_a_sink_itself"),
    ],
)
def test_a_broken_filter_is_found(broken, check, tmp_path: Path) -> None:
    testing.check_filter(Filter, tmp_path)
    with pytest.raises(AssertionError):
        FILTER_CHECKS[check](broken, tmp_path)


def test_what_other_threads_read_and_write_is_no_work_of_the_sink(tmp_path: Path) -> None:
    def besides() -> None:
        thread = threading.Thread(target=(tmp_path / "other").write_bytes, args=(bytes(1 << 20),))
        thread.start()
        thread.join()

    _, moved = testing.count_operations(besides)
    assert moved < 1 << 19


SAMPLE = Path(__file__).parents[1] / "importers" / "samples" / "acme"
CHECKS = {
    "sink": lambda place: testing.check_sink(Jsonl, place),
    "filter": lambda place: testing.check_filter(Filter, place),
    "rule": lambda place: testing.check_rule(lambda: health.make("kl"), place),
    "importer": lambda place: testing.check_importer(lambda: importers.make("acme"), SAMPLE, place),
}


@pytest.mark.parametrize("kind", CHECKS)
def test_a_file_in_place_of_the_folder_is_named(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file: pass an empty folder"):
        CHECKS[kind](tmp_path / "file")


@pytest.mark.long
@pytest.mark.parametrize("kind", CHECKS)
def test_a_missing_folder_is_made_and_one_that_was_used_is_named(kind: str, tmp_path: Path) -> None:
    CHECKS[kind](tmp_path / "missing" / "place")
    with pytest.raises(ValueError, match="of an earlier check: pass an empty folder"):
        CHECKS[kind](tmp_path / "missing" / "place")


def test_an_importer_without_its_sample_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no sample .*nowhere"):
        testing.check_importer(lambda: importers.make("csv"), tmp_path / "nowhere", tmp_path)
