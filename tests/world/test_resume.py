"""Jobs that are killed, preempted and started again."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook

Begin = Callable[..., Any]


def _curve(book: Any, key: str = "loss", x: str = "step") -> list[tuple[int, float]]:
    return [(row[x], row[key]) for row in book.metrics([key], x=x).to_pylist() if row[key] is not None]


def _interrupted(begin: Begin, saved: int, reached: int) -> None:
    run = begin()
    for step in range(reached + 1):
        run.log({"loss": float(step)}, step=step)
        if step == saved:
            run.save_checkpoint({"step": step}, through="step")
    run.finish("killed")


def test_a_job_that_goes_back_to_a_checkpoint_goes_on_logging(begin: Begin) -> None:
    """It had reached step 20 and continues from 10: its new rows are kept, from the first on."""
    _interrupted(begin, 10, 20)
    run = begin(resume="must")
    assert run.restore().clocks["step"] == 10
    for step in range(11, 16):
        run.log({"loss": 100.0 + step}, step=step)
    assert _curve(run.book) == [*((n, float(n)) for n in range(11)), *((n, 100.0 + n) for n in range(11, 16))]


def test_what_was_trained_again_is_shown_once_and_the_old_rows_are_not_deleted(begin: Begin) -> None:
    _interrupted(begin, 12, 15)
    run = begin(resume="must")
    run.restore()
    for step in range(13, 17):
        run.log({"loss": -1.0}, step=step)
    assert [x for x, _ in _curve(run.book)] == [*range(17)]
    everything = run.book.metrics(["loss"], x="step", attempts="all")
    assert everything.num_rows == 16 + 4


def test_a_restart_that_names_no_id_continues_the_run_of_that_name(begin: Begin, root: Path) -> None:
    for attempt in range(3):
        with begin("requeued", resume="allow") as run:
            run.log({"loss": float(attempt)}, step=attempt)
    (book,) = rollbook.open(root)
    assert (len(book.attempts), _curve(book)) == (3, [(0, 0.0), (1, 1.0), (2, 2.0)])


@pytest.mark.skipif(sys.platform != "linux", reason="no other system tells that a program has replaced itself")
def test_a_program_that_restarts_itself_by_execv_goes_on_with_its_run(
    real_program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    text = """
import os, sys
life = int(sys.argv[1])
run = rollbook.init("world", "restarts", seed=1, resume="allow", **QUIET)
for step in range(10 * life, 10 * life + 10):
    run.log({"loss": float(step)}, step=step)
if life < 2:
    os.execv(sys.executable, [sys.executable, sys.argv[0], str(life + 1)])
"""
    assert outcome(real_program(text, "0"))[0] == 0
    (book,) = rollbook.open(root)
    assert (len(book.attempts), book.status) == (3, "finished")
    assert _curve(book) == [(step, float(step)) for step in range(30)]


def test_variables_of_the_job_alone_make_a_wandb_program_resume(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import rollbook.wandb as wandb

    monkeypatch.setenv("WANDB_RESUME", "allow")
    monkeypatch.setenv("WANDB_RUN_ID", "job4711")
    for attempt in range(2):
        wandb.init(project="world")
        wandb.log({"loss": float(attempt)}, step=attempt)
        wandb.finish()
    (book,) = rollbook.open(root)
    assert _curve(book) == [(0, 0.0), (1, 1.0)]


def test_a_job_killed_before_any_checkpoint_is_one_run_after_its_requeue(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    """SIGKILL, as a preempted node; the job starts from the beginning, and no step stands twice."""
    text = """
import os, signal, sys
run = rollbook.init("world", "job", resume="allow", **QUIET)
start = run.restore().state["next"] if run.resumed and run.book.row_count("checkpoints") else 0
for step in range(start, 6):
    run.log({"loss": float(step)}, step=step)
    if step == 3 and sys.argv[1] == "checkpoint":
        run.save_checkpoint({"next": 4}, through="step")
    if step == 4 and not run.resumed:
        os.kill(os.getpid(), signal.SIGKILL)
run.finish()
"""
    assert outcome(program(text, "checkpoint"))[0] == -signal.SIGKILL
    assert outcome(program(text, "checkpoint"))[0] == 0
    (book,) = rollbook.open(root)
    assert [status["status"] for status in book.attempts] == ["crashed", "finished"]
    assert _curve(book) == [(n, float(n)) for n in range(6)]


def test_csv_files_have_one_header_each_over_a_resume_that_brings_new_columns(root: Path) -> None:
    for step, values in enumerate(({"loss": 1.0}, {"loss": 0.5, "validation": 0.25})):
        with rollbook.init("world", "run", sinks=["csv"], keeper="inline", rules=(), resume="allow") as run:
            run.log(values, step=step)
    rows = [row for file in Path(run.folder).rglob("*.csv") for row in csv.DictReader(file.open())]
    assert all(None not in row and None not in row.values() for row in rows)
    kept = sorted((row["loss"], row.get("validation", "")) for row in rows)
    assert kept == [("0.5", "0.25"), ("1.0", "")]


def test_attempts_of_a_job_array_do_not_write_into_each_others_runs(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    text = """
import os
seed = int(os.environ["SLURM_ARRAY_TASK_ID"])
with rollbook.init("world", "array", seed=seed, config={"seed": seed}, **QUIET) as run:
    for step in range(3):
        run.log({"loss": float(seed)}, step=step)
"""
    jobs = [
        program(text, SLURM_JOB_ID=str(70 + n), SLURM_ARRAY_JOB_ID="70", SLURM_ARRAY_TASK_ID=str(n)) for n in (0, 1)
    ]
    assert [outcome(job)[0] for job in jobs] == [0, 0]
    books = {book.seed: [value for _, value in _curve(book)] for book in rollbook.open(root)}
    assert books == {0: [0.0] * 3, 1: [1.0] * 3}


def test_a_run_may_have_the_id_that_the_program_chose(begin: Begin, root: Path) -> None:
    chosen = "folder-of-the-model-17"
    with begin(run_id=chosen) as run:
        run.log({"loss": 1.0}, step=1)
    with begin(run_id=chosen, resume="must") as run:
        run.log({"loss": 0.5}, step=2)
    (book,) = rollbook.open(root)
    assert (book.id, len(_curve(book))) == (chosen, 2)
    assert json.loads((Path(book.path) / "run.json").read_text())["id"] == chosen
    assert os.path.basename(book.path).endswith(chosen)


def test_an_id_that_is_passed_as_resume_is_answered_with_the_call_that_resumes(begin: Begin) -> None:
    begin("ppo", run_id="k3f9x2ab").finish()
    with pytest.raises(rollbook.errors.UnknownOption, match="run_id='k3f9x2ab' and resume='must'"):
        begin("ppo", resume="k3f9x2ab")


@pytest.mark.parametrize("argument", ["resume", "run_id"])
def test_a_folder_that_is_passed_as_resume_is_answered_with_the_call_that_resumes(begin: Begin, argument: str) -> None:
    former = begin("ppo", run_id="the-second-one")
    former.finish()
    given = {"resume": "must", argument: str(former.folder)}
    with pytest.raises(rollbook.errors.BadInput) as raised:
        begin("ppo", **given)
    root = former.folder.parent.parent
    assert f"init('world', run_id='the-second-one', resume='must', dir={str(root)!r})" in str(raised.value)
    again = begin("ppo", run_id="the-second-one", resume="must", dir=root)
    assert (again.id, again.attempt) == (former.id, 2)


def test_a_wandb_program_that_goes_on_finds_in_its_summary_where_it_was(root: Path) -> None:
    """CleanRL: `starting_update = wandb.run.summary.get("charts/update") + 1`, which a SummaryWriter had logged."""
    import rollbook.wandb as wandb

    from rollbook.adapters.tensorboard import SummaryWriter

    def job() -> int:
        with wandb.init(project="world", id="goes-on", resume="allow", sync_tensorboard=True) as run:
            start = run.summary.get("charts/update", -1) + 1 if run.resumed else 0
            assert ("charts/update" in run.summary, run.summary.get("best")) == ((True, 3) if start else (False, None))
            assert run.summary._json_dict.get("_step") == (start * 10 - 10 if start else None)
            writer = SummaryWriter(str(root / "events"), run=run.rollbook)
            for update in range(start, start + 4):
                writer.add_scalar("charts/update", update, update * 10)
            run.summary["best"] = 3
            writer.close()
        return start

    assert [job(), job(), job()] == [0, 4, 8]
    (asked,) = wandb.Api().runs("world")
    assert (asked.summary["charts/update"], asked.summary["_step"]) == (11, 110)
    assert asked.summary["_runtime"] == pytest.approx(asked.summary["_timestamp"] - asked.created)
