"""Rows to sinks: each once, in order, whatever fails."""

from __future__ import annotations

import itertools
import json
import math
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from rollbook.errors import NotARun
from rollbook.keeper.cursors import cursor_path
from rollbook.keeper.feeding import Feeding
from rollbook.keeper.forward import Forwarder, run_info
from rollbook.keeper.replaying import replay
from rollbook.keeper.sinks import LocalSinks, Sinks, build
from rollbook.protocols import Row, RunInfo
from waiting import PATIENCE


class Service:
    """A sink that cannot say where it is: it keeps what it was given."""

    accepts: frozenset[type] = frozenset({float, int})

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.broken = False
        self.closed = 0
        self.info: RunInfo | None = None

    def open(self, run: RunInfo) -> None:
        self.info = run

    def write(self, rows: Sequence[Row]) -> None:
        if self.broken:
            raise ConnectionError("no network")
        self.rows.extend(rows)

    def close(self) -> None:
        self.closed += 1

    def values(self) -> list[Any]:
        return [value for row in self.rows for value in row.values.values()]


class TinyFile:
    """A file sink of one line a row. `die_after` raises in the middle of a write, half of it done."""

    accepts = frozenset({float, int})
    die_after: int | None = None

    def open(self, run: RunInfo) -> None:
        self.path = run.folder / "tiny.txt"
        self.path.touch()

    def write(self, rows: Sequence[Row]) -> None:
        for count, row in enumerate(rows):
            if TinyFile.die_after is not None and count == TinyFile.die_after:
                raise OSError(28, "No space left on device")
            with self.path.open("a") as file:
                file.write("".join(f"{value}\n" for value in row.values.values()))

    def position(self) -> dict[str, int]:
        return {"tiny.txt": self.path.stat().st_size}

    def truncate(self, position: Mapping[str, int]) -> None:
        with self.path.open("r+b") as file:
            file.truncate(position.get("tiny.txt", 0))

    def close(self) -> None:
        return


@pytest.fixture(autouse=True)
def _heal() -> Any:
    yield
    TinyFile.die_after = None


def numbers(path: Path) -> list[float]:
    return [float(line) for line in path.read_text().splitlines()]


def test_every_row_reaches_the_sink_in_order(make_run: Any) -> None:
    run, sink = make_run(), Service()
    log = run.log()
    for i in range(100):
        log({"i": float(i)}, env_step=i)
    forwarder = Forwarder(run.folder, sink, name="service")
    assert forwarder.step() is True
    assert sink.values() == [float(i) for i in range(100)]
    assert [row.clocks["env_step"] for row in sink.rows] == list(range(100))
    log({"i": 100.0})
    forwarder.step()
    assert sink.values()[-2:] == [99.0, 100.0]
    assert forwarder.rows == 101


def test_a_new_attempt_goes_on_where_the_last_one_stopped(make_run: Any) -> None:
    run = make_run()
    log = run.log()
    first, second = Service(), Service()
    for i in range(10):
        log({"i": float(i)})
    Forwarder(run.folder, first, name="service").step()
    for i in range(10, 20):
        log({"i": float(i)})
    Forwarder(run.folder, second, name="service").step()
    assert first.info is not None
    assert second.info is not None
    assert (first.info.resumed, second.info.resumed) == (False, True)
    assert first.values() + second.values() == [float(i) for i in range(20)]


def test_a_file_that_got_rows_whose_cursor_was_not_saved_is_cut_back(make_run: Any) -> None:
    run = make_run()
    log = run.log()
    for i in range(10):
        log({"i": float(i)})
    Forwarder(run.folder, TinyFile(), name="tiny").step()
    saved = Path(cursor_path(str(run.folder), "tiny")).read_text()
    for i in range(10, 20):
        log({"i": float(i)})
    Forwarder(run.folder, TinyFile(), name="tiny").step()
    Path(cursor_path(str(run.folder), "tiny")).write_text(saved)  # as if the second one was killed before its save
    Forwarder(run.folder, TinyFile(), name="tiny").step()
    assert numbers(run.folder / "tiny.txt") == [float(i) for i in range(20)]


def test_a_file_sink_that_failed_half_way_is_begun_again_and_repeats_nothing(make_run: Any, clock: Any) -> None:
    run = make_run()
    log = run.log()
    forwarder = Forwarder(run.folder, TinyFile, name="tiny", clock=clock)
    for i in range(10):
        log({"i": float(i)})
    forwarder.step()
    for i in range(10, 20):
        log({"i": float(i)})
    TinyFile.die_after = 5
    assert forwarder.step() is False
    assert len(numbers(run.folder / "tiny.txt")) == 15
    TinyFile.die_after = None
    clock.now += 60
    assert forwarder.step() is True
    assert numbers(run.folder / "tiny.txt") == [float(i) for i in range(20)]


def test_a_damaged_cursor_file_means_from_the_start_and_still_no_repetition(make_run: Any) -> None:
    run = make_run()
    for i in range(10):
        run.log()({"i": float(i)})
    Forwarder(run.folder, TinyFile(), name="tiny").step()
    for text in (
        "",
        "{",
        "[]",
        '{"cursor": 3, "position": [], "state": 1, "rows": "x"}',
        '{"cursor": {"w": {"a": 1}}}',
    ):
        Path(cursor_path(str(run.folder), "tiny")).write_text(text)
        Forwarder(run.folder, TinyFile(), name="tiny").step()
        assert numbers(run.folder / "tiny.txt") == [float(i) for i in range(10)]


def test_a_sink_that_fails_is_offered_the_same_rows_after_growing_pauses(make_run: Any, clock: Any) -> None:
    run, sink = make_run(), Service()
    said: list[str] = []
    forwarder = Forwarder(run.folder, sink, name="service", clock=clock, report=lambda cause, words: said.append(words))
    run.log()({"i": 1.0})
    sink.broken = True
    tries: list[float] = []
    for _ in range(4000):
        before = forwarder.failures
        forwarder.step()
        if forwarder.failures > before:
            tries.append(clock.now)
        clock.now += 0.1
    pauses = [b - a for a, b in itertools.pairwise(tries)]
    assert pauses[0] == pytest.approx(0.5, abs=0.11)
    assert pauses[1] == pytest.approx(1.0, abs=0.11)
    assert max(pauses) == pytest.approx(60.0, abs=0.11)
    assert forwarder.failing
    assert "no network" in said[0]
    assert forwarder.trouble.startswith("sink service fails")
    assert "no network" in forwarder.trouble
    sink.broken = False
    clock.now += 60
    assert forwarder.step() is True
    assert sink.values() == [1.0]
    assert not forwarder.failing


def test_a_row_that_a_service_gets_again_is_known_by_its_place(make_run: Any, clock: Any) -> None:
    run, sink = make_run(), Service()
    log = run.log()
    for i in range(20):
        log({"i": float(i)} if i % 3 else {"i": float(i), "rare": 0.0})
    before = sink.write

    def write_and_fail(rows: Sequence[Row]) -> None:
        before(rows)
        raise ConnectionError("the answer was lost")

    sink.write = write_and_fail  # type: ignore[method-assign]
    forwarder = Forwarder(run.folder, sink, name="service", clock=clock)
    assert forwarder.step() is False
    sink.write = before  # type: ignore[method-assign]
    clock.now += 100.0
    assert forwarder.step() is True
    assert len(sink.rows) == 40, "each row twice"
    places = {(row.writer, row.lane, row.seq): row.values["i"] for row in sink.rows}
    assert sorted(places.values()) == [float(i) for i in range(20)]


def test_values_a_sink_does_not_take_are_counted_and_the_rest_of_the_row_goes_on(make_run: Any) -> None:
    run, sink = make_run(), Service()
    run.log()({"a": 1.5, "b": True, "c": "text", "d": 2})
    forwarder = Forwarder(run.folder, sink, name="service")
    forwarder.step()
    assert {key: value for row in sink.rows for key, value in row.values.items()} == {"a": 1.5, "d": 2}
    assert forwarder.refused == 2


def test_nan_and_infinity_reach_the_sink_as_they_are(make_run: Any) -> None:
    run, sink = make_run(), Service()
    run.log()({"a": math.nan, "b": math.inf})
    Forwarder(run.folder, sink).step()
    assert math.isnan(sink.values()[0])
    assert sink.values()[1] == math.inf


def test_a_thinned_sink_gets_the_newest_row_of_each_stream_and_reads_no_others(make_run: Any, clock: Any) -> None:
    run, sink = make_run(), Service()
    log = run.log()
    forwarder = Forwarder(run.folder, sink, name="service", every_seconds=1.0, clock=clock)
    for i in range(100):
        log({"loss": float(i)})
        log({"return": float(-i)})
    forwarder.step()
    assert sorted(sink.values()) == [-99.0, 99.0]
    log({"loss": 100.0})
    clock.now += 0.5
    forwarder.step()
    assert len(sink.rows) == 2  # not its time yet
    clock.now += 0.5
    forwarder.step()
    assert sink.values()[-1] == 100.0
    log({"loss": 101.0})
    forwarder.step(flush=True)
    assert sink.values()[-1] == 101.0


def test_a_run_without_new_rows_is_at_rest_when_a_thinned_sink_has_its_newest_row(make_run: Any, clock: Any) -> None:
    feeding = Feeding(str(make_run().folder), clock, lambda cause, words: None, in_turn=True)
    feeding.use([{"name": "text", "every_seconds": 5}], "")
    feeding.open()
    feeding.changed_at = clock.now
    assert feeding.needs_time()
    clock.now += 6
    assert not feeding.needs_time()
    feeding.close(ended=True)


def test_two_threads_rows_are_all_there_and_in_order_within_each(make_run: Any) -> None:
    import threading

    run, sink = make_run(), Service()
    log = run.log()

    def work(name: str) -> None:
        for i in range(500):
            log({name: float(i)})

    threads = [threading.Thread(target=work, args=(name,)) for name in ("a", "b")]
    forwarder = Forwarder(run.folder, sink, name="service")
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        forwarder.step()
    forwarder.step()
    for name in ("a", "b"):
        assert [row.values[name] for row in sink.rows if name in row.values] == [float(i) for i in range(500)]


@pytest.mark.parametrize("seed", range(5))
def test_attempts_that_end_at_any_point_give_every_row_once(make_run: Any, seed: int) -> None:
    """An attempt is cut off by an error raised from the sink or from saving the cursor, without any clean-up."""
    chance = random.Random(seed)
    run = make_run()
    log, logged = run.log(), 0

    class Dying(TinyFile):
        def write(self, rows: Sequence[Row]) -> None:
            if chance.random() < 0.3:
                TinyFile.die_after = chance.randrange(len(rows) + 1)
            super().write(rows)
            if chance.random() < 0.3:
                raise KeyboardInterrupt  # written, not yet noted

    for _ in range(40):
        for _ in range(chance.randrange(30)):
            log({"i": float(logged)})
            logged += 1
        forwarder = Forwarder(run.folder, Dying(), name="tiny")
        try:
            forwarder.step()
        except KeyboardInterrupt:
            pass
        TinyFile.die_after = None
    Forwarder(run.folder, TinyFile(), name="tiny").step()
    assert numbers(run.folder / "tiny.txt") == [float(i) for i in range(logged)]


def test_filters_remember_across_attempts(make_run: Any) -> None:
    run = make_run()
    spec = {"name": "jsonl", "filters": [["smooth", {"coeff": 0.9, "keys": "loss"}]]}
    sink, seconds = build(spec)
    assert seconds is None
    log = run.log()
    for value in (1.0, 3.0):
        log({"loss": value})
    Forwarder(run.folder, sink, name="jsonl").step()
    log({"loss": 5.0})
    Forwarder(run.folder, build(spec)[0], name="jsonl").step()
    other = make_run("other")
    log = other.log()
    for value in (1.0, 3.0, 5.0):
        log({"loss": value})
    Forwarder(other.folder, build(spec)[0], name="jsonl").step()

    def content(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{key: value for key, value in line.items() if key != "time"} for line in lines]

    assert content(run.lines()) == content(other.lines())


def test_a_glance_that_is_thinned_by_time_is_fed_by_reading_less() -> None:
    assert build({"name": "text"})[1] == 1.0
    assert build({"name": "text", "every_seconds": 5})[1] == 5.0
    assert build({"name": "text", "options": {"every_seconds": 5}})[1] == 5.0
    assert build({"name": "text", "all": True})[1] is None
    assert build({"name": "jsonl"})[1] is None
    assert build({"name": "text", "filters": [["DropNone", {}]]})[1] is None
    sink, _ = build({"name": "csv", "filters": [["DropNone", {}]]})
    assert type(sink()).__name__ == "DropNone"  # type: ignore[operator]


def test_one_broken_sink_does_not_keep_the_others_from_their_rows(make_run: Any) -> None:
    run, good, bad = make_run(), Service(), Service()
    said: list[str] = []
    bad.broken = True
    specs = [{"name": "nonsense"}, bad, good]
    sinks = Sinks(str(run.folder), specs, inline=True, report=lambda cause, words: said.append(words))
    run.log()({"i": 1.0})
    sinks.step()
    assert good.values() == [1.0]
    assert sinks.failing() == ["Service"]
    assert any("nonsense" in words for words in said)
    sinks.close(ended=False)
    assert (good.closed, bad.closed) == (1, 1)


def test_a_service_that_hangs_delays_no_other(make_run: Any, eventually: Callable[..., Any]) -> None:
    import threading

    let_go = threading.Event()

    class Hanging(Service):
        def write(self, rows: Sequence[Row]) -> None:
            let_go.wait(PATIENCE)
            super().write(rows)

    run, slow, quick = make_run(), Hanging(), Service()
    run.log()({"i": 1.0})
    sinks = Sinks(str(run.folder), [slow, quick])
    eventually(lambda: quick.values() == [1.0])
    sinks.ask_all()
    assert sinks.step() is False  # the slow one is not done
    let_go.set()
    eventually(sinks.step)
    assert slow.values() == [1.0]
    sinks.close(ended=False)
    assert (slow.closed, quick.closed) == (1, 1)


def test_what_is_asked_for_is_delivered_before_step_says_so(make_run: Any, eventually: Callable[..., Any]) -> None:
    run, sink = make_run(), Service()
    log = run.log()
    log({"i": -1.0})
    sinks = Sinks(str(run.folder), [sink])
    for i in range(20):
        log({"i": float(i)})
        sinks.ask_all()
        eventually(sinks.step)
        assert sink.values()[-1] == float(i)
    sinks.close(ended=True)
    assert sink.rows[-1].mark == "final"


def test_a_step_that_leaves_nothing_has_delivered_what_came_while_a_backlog_was_worked_off(
    make_run: Any, clock: Any
) -> None:
    run, sink = make_run(), Service()
    log = run.log()
    for i in range(10_000):
        log({"i": float(i)})
    forwarder = Forwarder(run.folder, sink, name="service", clock=clock)
    give = sink.write
    sink.write = lambda rows: (setattr(clock, "now", clock.now + 2.0), give(rows))  # type: ignore[method-assign,assignment]
    assert forwarder.step() is False, "it stops in the middle of the backlog"
    log({"i": 10_000.0})
    while not forwarder.step():
        pass
    assert sink.values() == [float(i) for i in range(10_001)]


def test_replay_forwards_a_run_from_its_first_row(make_run: Any) -> None:
    run, sink = make_run(), Service()
    log = run.log()
    for i in range(50):
        log({"i": float(i)}, env_step=i)
    run.writer.close()
    assert replay(run.folder, sink, most_rows=7) == 50
    assert sink.values() == [float(i) for i in range(50)]
    assert [row.mark for row in sink.rows if row.mark] == ["final"]
    assert sink.closed == 1
    assert replay(run.folder, TinyFile()) == replay(run.folder, TinyFile()) == 50
    assert numbers(run.folder / "tiny.txt") == [float(i) for i in range(50)]


def test_replay_says_what_is_wrong_with_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(NotARun, match=r"no run\.json"):
        replay(tmp_path, Service())


def test_a_sink_learns_about_its_run(make_run: Any) -> None:
    run = make_run()
    run.write_info(config={"lr": 0.1}, seed=3, group="g", tags=["a"], notes="hello", x="env_step")
    info = run_info(run.folder)
    assert (info.project, info.name, info.id, info.attempt) == ("p", "n", "abc", 1)
    assert (info.config, info.seed, info.group, info.tags, info.notes) == ({"lr": 0.1}, 3, "g", ("a",), "hello")
    assert info.x == "env_step"
    assert info.folder == run.folder


def test_sinks_in_the_training_process_get_the_rest_at_the_end(make_run: Any) -> None:
    run, sink = make_run(), Service()
    local = LocalSinks(str(run.folder), [sink])
    log = run.log()
    log({"i": 1.0})
    local.step()
    log({"i": 2.0})
    local.close()
    local.close()
    assert sink.values() == [1.0, 2.0]
    assert sink.closed == 1


def test_a_sink_object_that_fails_in_the_training_process_warns_once(make_run: Any) -> None:
    run, sink = make_run(), Service()
    sink.broken = True
    local = LocalSinks(str(run.folder), [sink])
    run.log()({"i": 1.0})
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        local.step()
        local.step()
        local.close()
    assert ["no network" in str(warning.message) for warning in found] == [True]


def test_a_screen_does_not_show_earlier_attempts_again(make_run: Any) -> None:
    run, sink = make_run(), Service()
    run.log()({"i": 1.0})
    info = json.loads((run.folder / "run.json").read_text())
    second = run.add_writer(main=True, attempt=2)
    info["attempts"].append({"n": 2, "writer": second.id})
    (run.folder / "run.json").write_text(json.dumps(info))
    run.log(second)({"i": 2.0})
    Forwarder(run.folder, sink, this_attempt=True).step()
    assert sink.values() == [2.0]
