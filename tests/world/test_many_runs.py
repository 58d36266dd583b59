"""Several trainings in one program, several programs in one project, several processes in one run."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.run import current
from rollbook.system.bill import Bill
from workers import attach_and_log

Begin = Callable[..., Any]


def _losses(book: Any) -> list[float]:
    return [row["loss"] for row in book.metrics(["loss"]).to_pylist() if row["loss"] is not None]


@pytest.mark.parametrize("finish", [True, False], ids=["finished", "left open"])
def test_each_round_of_a_loop_that_opens_a_run_is_a_run(begin: Begin, root: Path, finish: bool) -> None:
    for number in range(3):
        run = begin(f"round{number}", config={"round": number})
        rollbook.log({"loss": float(number)})
        if finish:
            run.finish()
    assert {book.name: _losses(book) for book in rollbook.open(root)} == {f"round{n}": [float(n)] for n in range(3)}
    assert {book.name: book.config["round"] for book in rollbook.open(root)} == {f"round{n}": n for n in range(3)}


def test_several_models_that_train_at_once_have_a_run_each(begin: Begin, root: Path) -> None:
    runs = [begin(f"net{n}") for n in range(3)]
    for step in range(4):
        for n, run in enumerate(runs):
            run.log({"loss": n + step / 10}, step=step)
    assert {book.name: len(_losses(book)) for book in rollbook.open(root)} == {f"net{n}": 4 for n in range(3)}


def test_threads_that_open_runs_do_not_write_into_each_others(begin: Begin, root: Path) -> None:
    """As a sweep with n_jobs=4: each objective opens, logs and ends a run of its own."""

    def objective(number: int) -> None:
        with begin(f"trial{number}", config={"number": number}) as run:
            for step in range(20):
                run.log({"loss": float(number)}, step=step)

    threads = [threading.Thread(target=objective, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {book.name: _losses(book) for book in rollbook.open(root)} == {
        f"trial{n}": [float(n)] * 20 for n in range(4)
    }


def test_jobs_that_start_at_once_in_one_project_lock_nobody_out(
    program: Callable[..., Any], outcome: Callable[..., Any], root: Path
) -> None:
    """No shared database: while one is read, others write."""
    text = """
import os, sys
with rollbook.init("world", "ablation", config={"n": int(sys.argv[1])}, **QUIET) as run:
    for step in range(50):
        run.log({"loss": float(sys.argv[1])}, step=step)
        if step % 10 == 0:
            [book.keys() for book in rollbook.open(os.environ["ROLLBOOK_DIR"])]
"""
    jobs = [program(text, str(n)) for n in range(3)]
    ends = [outcome(job) for job in jobs]
    assert [code for code, _, _ in ends] == [0, 0, 0], ends
    assert sorted(_losses(book) for book in rollbook.open(root)) == [[float(n)] * 50 for n in range(3)]


def test_processes_that_attach_write_into_one_run(begin: Begin, root: Path) -> None:
    run = begin()
    spawned = multiprocessing.get_context("spawn")
    workers = [spawned.Process(target=attach_and_log, args=(run.id, n)) for n in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    run.finish()
    (book,) = rollbook.open(root)
    assert sorted(_losses(book)) == [0.0] * 5 + [1.0] * 5


def test_verbs_without_a_run_do_nothing_on_the_ranks_that_open_none(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only rank 0 opens a run; the code after that is the same on every rank."""
    monkeypatch.setattr(current, "opened", [])
    monkeypatch.setattr(current, "_no_run", Bill())  # as in a new process: it is said once in each
    with pytest.warns(rollbook.errors.RollbookWarning):
        rollbook.log({"loss": 1.0}, step=1)
    rollbook.log({"loss": 2.0}, step=2)
    rollbook.save_checkpoint({"w": 1})
    assert not root.exists()


def test_trials_that_are_pruned_fail_or_return_nothing_are_rows_of_the_sweep(begin: Begin) -> None:
    from datetime import timedelta
    from types import SimpleNamespace

    from rollbook.adapters.optuna import RollbookCallback

    def trial(number: int, state: str, values: list[float] | None) -> Any:
        return SimpleNamespace(
            number=number,
            state=SimpleNamespace(name=state),
            values=values,
            value=values[0] if values else None,
            params={"lr": 0.1 * number},
            duration=timedelta(seconds=1),
        )

    ended = [
        trial(0, "COMPLETE", [0.5]),
        trial(1, "PRUNED", None),
        trial(2, "FAIL", None),
        trial(3, "COMPLETE", [0.25]),
    ]
    study = SimpleNamespace(
        study_name="sweep",
        directions=[SimpleNamespace(name="MINIMIZE")],
        sampler=SimpleNamespace(),
        pruner=SimpleNamespace(),
        metric_names=["loss"],
        best_trial=ended[3],
    )
    run = begin()
    callback = RollbookCallback(run)
    for one in ended:
        callback(study, one)
    numbers = [row["step"] for row in run.book.metrics(["params/lr"], x="step").to_pylist()]
    assert numbers == [0, 1, 2, 3]
    assert run.book.metrics(["loss"], x="step").num_rows == 2


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("CartPole-v1__ppo__{seed}__17000001{seed}3", "CartPole-v1__ppo"),
        ("ppo_s{seed}", "ppo"),
        ("dqn seed_{seed}", "dqn"),
        ("2026-05-0{seed}_12-33-01 sac", "sac"),
        ("layers-2 ({seed})", "layers-2"),
    ],
)
def test_runs_that_carry_their_seed_in_their_name_are_seeds_of_one_group(
    begin: Begin, root: Path, name: str, shown: str
) -> None:
    for seed in (1, 2, 3):
        begin(name.format(seed=seed), seed=seed, config={"lr": 0.1}).log({"return": float(seed)}, env_step=1)
    runs = rollbook.open(root)
    assert {label: len(members) for label, members in runs.curves("return").members.items()} == {shown: 3}
    assert list(runs.group_by("auto")) == [shown]


def test_a_number_in_a_name_that_is_no_seed_tells_groups_apart(begin: Begin, root: Path) -> None:
    for layers in (1, 2):
        for seed in (1, 2):
            begin(f"layers-{layers}", seed=seed).log({"return": 1.0}, env_step=1)
    assert sorted(rollbook.open(root).group_by("auto")) == ["layers-1", "layers-2"]


@pytest.mark.parametrize("given", [{"a": []}, 3, [], "", [1], ["auto", "config.algo"]], ids=str)
@pytest.mark.parametrize("verb", ["compare", "curves", "refined_curves", "groups", "plot", "diff", "group_by", "seeds"])
def test_groups_by_what_names_no_fields_are_refused_with_what_is_possible(
    begin: Begin, root: Path, verb: str, given: Any
) -> None:
    for seed in (0, 1):
        begin("ppo", seed=seed, config={"algo": "ppo", "env": "ant"}).log({"return": 1.0}, env_step=1)
    runs: Any = rollbook.open(root)
    ask = {
        "groups": lambda: runs.groups(given),
        "group_by": lambda: runs.group_by(given),
        "diff": lambda: runs.diff(by=given),
        "refined_curves": lambda: list(runs.refined_curves("return", by=given)),
    }.get(verb, lambda: getattr(runs, verb)("return", by=given))
    with pytest.raises(rollbook.errors.BadInput, match=r"auto|none of the groups has a run"):
        ask()


def test_each_pair_of_two_settings_is_a_group(begin: Begin, root: Path) -> None:
    for algo in ("ppo", "dqn"):
        for lr in (0.001, 0.01):
            for seed in (0, 1):
                config = {"algo": algo, "opt": {"lr": lr}, "a,b": {"seed": seed}}
                begin(algo, seed=seed, config=config).log({"return": lr + seed}, env_step=1)
    runs = rollbook.open(root)
    labels = ["algo ppo lr 0.001", "algo ppo lr 0.01", "algo dqn lr 0.001", "algo dqn lr 0.01"]
    for by in ("config.algo,config.opt.lr", "config.algo, config.opt.lr", ["config.algo", "config.opt.lr"]):
        assert list(runs.curves("return", by=by).members) == labels
        assert set(runs.group_by(by)) == {("ppo", 0.001), ("ppo", 0.01), ("dqn", 0.001), ("dqn", 0.01)}
    assert [group.label for group in runs.compare("return").groups] == [label.replace("algo ", "") for label in labels]
    assert set(runs.group_by("config.a,b.seed")) == {0, 1}, "a comma in the name of a setting"
