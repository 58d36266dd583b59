"""Where a framework goes on in a resumed run is where the run goes on, in every table; from the beginning: said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from rollbook.adapters._run import end_training, find_run, go_on, go_on_at
from rollbook.adapters.tensorboard import SummaryWriter
from rollbook.errors import RollbookWarning

pytestmark = pytest.mark.usefixtures("sealed")


def killed_at(folder: Path, steps: int) -> None:
    """A run in which only texts tell how far it came: numbers were logged at step 10 alone."""
    with rollbook.init("p", "n", dir=folder, sinks=[], keeper="inline", rules=(), run_id="r") as run:
        for step in range(1, steps + 1):
            run.log_text("answer", str(step), step=step)
            if step == 10:
                run.log({"loss": 1.0}, step=step)


def resumed(folder: Path) -> Any:
    return rollbook.init("p", "n", dir=folder, sinks=[], keeper="inline", rules=(), run_id="r", resume="must")


def answers(run: Any) -> list[int]:
    table = run.book.text()
    return sorted(
        int(text)
        for key, text in zip(table["key"].to_pylist(), table["text"].to_pylist(), strict=True)
        if key == "answer"
    )


@pytest.mark.parametrize(("at", "left"), [(10, 10), (17, 17), (30, 17), (4, 4)])
def test_what_was_recorded_beyond_is_abandoned_in_every_table(tmp_path: Path, at: int, left: int) -> None:
    killed_at(tmp_path, 17)
    with resumed(tmp_path) as run:
        go_on_at(run, "step", at)
        assert answers(run) == list(range(1, left + 1))
        assert run.attempt == 2
        assert not run.bill()["remarks"]


@pytest.mark.parametrize("at", [-1, 0])
def test_a_training_that_begins_anew_is_a_rewind_to_the_beginning_and_says_so(tmp_path: Path, at: int) -> None:
    killed_at(tmp_path, 7)
    with resumed(tmp_path) as run:
        with pytest.warns(RollbookWarning, match="hidden, not deleted"):
            go_on_at(run, "step", at)
        run.log_text("answer", "1", step=1)
        go_on_at(run, "step", -1)  # a second training in this run is none that begins anew
        assert answers(run) == [1]
        assert run.bill()["remarks"] == {"begun_anew": 1}
        assert run.book.table("text", attempts="all").num_rows == 8


def test_a_new_run_has_nothing_to_go_on_from(tmp_path: Path) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        run.log({"loss": 1.0}, step=5)
        go_on_at(run, "step", 2)
        assert run.attempt == 1


@pytest.mark.parametrize(("purge", "left"), some_of([(0, []), (5, [1, 2, 3, 4]), (1, [])], 2))
def test_a_writer_of_event_files_that_purges_from_a_step_goes_back_there(
    tmp_path: Path, purge: int, left: list[int]
) -> None:
    killed_at(tmp_path, 7)
    with resumed(tmp_path) as run:
        before = set(answers(run))
        writer = SummaryWriter(str(tmp_path / "events"), run=run, purge_step=purge, clock=None, events=False)
        assert answers(run) == left
        assert before == set(range(1, 8))
        writer.close()


def test_a_training_that_goes_on_in_its_attempt_finds_where_it_was(tmp_path: Path) -> None:
    """Counters of frameworks begin at 0 again in each call of learn(): adapters ask the run how far it was."""
    user = type("Model", (), {})()
    options = {"dir": tmp_path, "keeper": "inline", "rules": ()}
    run: Any = find_run(None, project="p", name="n", options=options, user=user, kind="k")[0]
    for step in range(1, 9):
        run.log({"loss": float(step)}, step=step, gradient_step=10 * step)
        run.store(ret=float(step))
        if step % 2 == 0:
            end_training(run, user)
            run = go_on(run)
            assert (run.attempt, run.resumed) == (1, True)
            assert {name: run.internals.reached()[name] for name in ("step", "gradient_step")} == {
                "step": step,
                "gradient_step": 10 * step,
            }
    assert run.dump()["ret/mean"] == 4.5, "what was stored before counts"
    end_training(run, user)
    (entry,) = run.book.attempts
    assert (entry["status"], len(entry["before"])) == ("finished", 4)
    assert run.book.metrics(["loss"], x="step", exact=True)["step"].to_pylist() == list(range(1, 9))
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", rules=(), resume="must") as later:
        later.rewind(step=5)
        later.log({"loss": 0.0}, step=6)
        assert later.book.metrics(["loss"], x="step")["step"].to_pylist() == [1, 2, 3, 4, 5, 6]
