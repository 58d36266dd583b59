"""One training, one run: loops, ranks and jobs, as real programs."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from cases import some_of
from waiting import until

Run = Callable[..., Any]

RANK = """
import os, pathlib, sys, time
rank = int(os.environ.get("SLURM_PROCID", os.environ.get("RANK", "0")))
seed = rank if sys.argv[1] == "own seed" else 0
given = eval(sys.argv[2])
with rollbook.init("world", "ranks", seed=seed, config={"seed": seed}, **QUIET, **given) as run:
    here = pathlib.Path(os.environ["ROLLBOOK_DIR"] + "-here")  # a barrier, as ranks that train together have
    here.mkdir(exist_ok=True)
    (here / f"{os.environ.get('TEST_ROUND', '')}-{rank}").touch()
    while len(list(here.glob(f"{os.environ.get('TEST_ROUND', '')}-*"))) < int(os.environ.get("WORLD_SIZE", "1")):
        time.sleep(0.01)
    for step in range(3):
        run.log({f"rank{rank}/loss": float(rank)}, step=step)
"""


def _keys(book: Any) -> set[str]:
    return {key for key in [*book.keys()] if key.startswith("rank")}


def _slurm(rank: int, size: int) -> dict[str, str]:
    return {
        "SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": str(rank), "SLURM_NTASKS": str(size),
        "SLURM_STEP_NUM_TASKS": str(size), "SLURM_LOCALID": str(rank), "SLURM_NODEID": "0",
    }  # fmt: skip


def _torchrun(rank: int, size: int, port: int = 29511) -> dict[str, str]:
    return {
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "job",
    }  # fmt: skip


def test_tasks_of_one_job_with_seeds_of_their_own_are_runs_of_their_own(program: Run, outcome: Run, root: Path) -> None:
    tasks = [program(RANK, "own seed", "{}", **_slurm(n, 3)) for n in range(3)]
    assert [outcome(task)[0] for task in tasks] == [0, 0, 0]
    assert {book.seed: _keys(book) for book in rollbook.open(root)} == {n: {f"rank{n}/loss"} for n in range(3)}


@pytest.mark.parametrize("given", ["{}", "{'resume': 'allow'}", "{'run_id': 'abc'}"])
def test_ranks_that_say_the_same_write_one_run(program: Run, outcome: Run, root: Path, given: str) -> None:
    ranks = [program(RANK, "one seed", given, **_torchrun(n, 2)) for n in range(2)]
    ends = [outcome(rank) for rank in ranks]
    assert [code for code, _, _ in ends] == [0, 0], ends
    (book,) = rollbook.open(root)
    assert _keys(book) == {"rank0/loss", "rank1/loss"}


def test_a_job_that_starts_again_at_the_same_address_is_a_new_run(program: Run, outcome: Run, root: Path) -> None:
    """The container was lost with all of its processes; the second rank is up before the first."""
    hang = RANK.replace("float(rank)}, step=step)", "-1.0}, step=step)") + "    time.sleep(600)\n"
    lost = [program(hang, "one seed", "{}", **_torchrun(n, 2)) for n in range(2)]
    until(lambda: root.exists() and [_keys(book) for book in rollbook.open(root)] == [{"rank0/loss", "rank1/loss"}])
    for rank in lost:
        os.kill(rank.pid, signal.SIGKILL)
        outcome(rank)
    (dead,) = rollbook.open(root)
    again = [program(RANK, "one seed", "{}", TEST_ROUND="2", **_torchrun(n, 2)) for n in (1, 0)]
    assert [outcome(rank)[0] for rank in again] == [0, 0]
    (new,) = [book for book in rollbook.open(root) if book.id != dead.id]
    assert _keys(new) == {"rank0/loss", "rank1/loss"}
    assert rollbook.open(root).one(id=dead.id).metrics(["rank1/loss"])["rank1/loss"].to_pylist() == [-1.0] * 3


def test_a_logger_made_in_a_loop_over_seeds_is_a_run_each(root: Path, tmp_path: Path) -> None:
    from rollbook.adapters.spinningup import EpochLogger

    for seed in range(3):
        logger = EpochLogger(output_dir=str(tmp_path / f"vpg_s{seed}"), exp_name="vpg")
        logger.save_config({"seed": seed, "lr": 0.1})
        for epoch in range(2):
            logger.log_tabular("Epoch", epoch)
            logger.log_tabular("Loss", float(seed))
            logger.dump_tabular()
        del logger
    books = list(rollbook.open(root))
    assert len(books) == 3
    losses = sorted(book.metrics(["Loss"])["Loss"].to_pylist() for book in books)
    assert losses == [[float(seed)] * 2 for seed in range(3)]


def test_a_writer_of_the_same_folder_goes_on_with_its_run_and_begins_one_where_steps_begin_again(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In TensorBoard a folder is a run, whoever opens a file in it; a training that is started again is another one."""
    from rollbook.adapters.tensorboard import SummaryWriter

    monkeypatch.chdir(tmp_path)
    for step in range(3):  # a writer for each evaluation
        with SummaryWriter("logs/a", events=False) as writer:
            writer.add_scalar("return", float(step), step)
    for step in range(3, 6):  # and after it was closed, at the end of each epoch
        writer.add_scalar("return", float(step), step)
        writer.close()
    for _ in range(2):
        writer = SummaryWriter("logs/b", events=False)
        for step in range(3):
            writer.add_scalar("return", float(step), step)
        writer.close()
    returns = sorted((book.name, book.metrics(["return"])["return"].to_pylist()) for book in rollbook.open(root))
    assert returns == [("a", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), ("b", [0.0, 1.0, 2.0]), ("b", [0.0, 1.0, 2.0])]
    assert [(len(book.attempts), book.status) for book in rollbook.open(root)] == [(1, "finished")] * 3


@pytest.mark.parametrize(
    ("first", "kind"),
    some_of(
        itertools.product(["scalar", "scalars", "histogram", "image", "text"], [int, float, np.int64]),
        lambda case: case[0] == "scalar" or case[1] is float,
    ),
)
def test_whatever_a_writer_of_the_same_folder_logs_first_says_whether_a_training_begins_again(
    first: str, kind: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program without event files of its own trains twice in one folder; steps come as its libraries count them."""
    from rollbook.adapters.tensorboard import SummaryWriter

    monkeypatch.chdir(tmp_path)
    log = {
        "scalar": lambda writer, step: writer.add_scalar("a", 1.0, step),
        "scalars": lambda writer, step: writer.add_scalars("b", {"c": 1.0}, step),
        "histogram": lambda writer, step: writer.add_histogram("d", np.arange(9.0), step),
        "image": lambda writer, step: writer.add_image("e", np.zeros((3, 4, 4), np.uint8), step),
        "text": lambda writer, step: writer.add_text("f", "settings"),
    }[first]
    for _ in range(2):
        with SummaryWriter("logs/a", events=False) as writer:
            for step in range(3):
                log(writer, kind(step))
                writer.add_scalar("return", float(step), kind(step))
    with SummaryWriter("logs/a", events=False) as writer:
        writer.add_text("judged", "good")
    books = sorted(rollbook.open(root), key=lambda book: book.info.created or 0.0)
    assert [book.metrics(["return"])["return"].to_pylist() for book in books] == [[0.0, 1.0, 2.0]] * 2
    assert ["judged" in book.text()["key"].to_pylist() for book in books] == [False, True]


@pytest.mark.parametrize(
    ("config", "seed"),
    [
        ({"SEED": 3}, 3),
        ({"random_seed": 3.0}, 3),
        ({"seed": "3"}, 3),
        ({"seed_everything": 3, "model": {"lr": 1.0}}, 3),
        ({"experiment": {"train": {"seed": 3}}}, 3),
        ({"train.seed": 3}, 3),
        ({"train/seed": 3}, 3),
        ({"train_seed": 3, "eval_seed": 100}, 3),
        ({"env": {"id": "CartPole-v1", "seed": 3}}, 3),
        ({"seed": 3, "env": {"seed": 7}}, 3),
        ({"seed": None, "agent": {"seed": 3}}, 3),
        ({"train": {"seed": 3}, "env": {"seed": 7}, "eval": {"seed": 9}, "data": {"split": {"seed": 0}}}, 3),
        ({"actor": {"seed": 3}, "critic": {"seed": 7}}, None),
        ({"eval": {"seed": 7}}, None),
        ({"seed": -1}, None),
        ({"seed": True, "max_seed": 4, "seeds": [1, 2], "n_seeds": 5}, None),
    ],
)
def test_a_seed_is_found_wherever_a_configuration_names_it(
    begin: Callable[..., Any], config: dict[str, Any], seed: int | None
) -> None:
    """Given to `init`, set afterwards as with `wandb.config.seed = …`, or below other names in the trees of Hydra."""
    with begin(config=config) as given:
        assert given.seed == seed
    with begin() as later:
        later.config.update(config)
        assert later.seed == seed
    assert (given.book.seed, later.book.seed) == (seed, seed)


def test_seeds_that_the_configuration_alone_names_are_the_runs_seeds(begin: Callable[..., Any], root: Path) -> None:
    """They pair runs, name them in a table, and tell which run goes on."""
    for seed in range(3):
        for algo in ("ppo", "dqn"):
            with begin(algo, config={"algo": algo, "seed": seed, "lr": 1e-3}) as run:
                run.log({"return": float(seed + (algo == "ppo"))}, env_step=1)
    runs = rollbook.open(root)
    assert sorted(book.seed for book in runs) == [0, 0, 1, 1, 2, 2]
    answer = runs.compare("return", by="config.algo", paired=True)
    assert "seed in common" not in str(answer)
    with begin("ppo", config={"algo": "ppo", "seed": 7, "lr": 1e-3}, resume="allow") as another:
        assert (another.attempt, another.book.seed) == (1, 7)
    with begin("ppo", config={"algo": "ppo", "seed": 1, "lr": 1e-3}, resume="allow") as again:
        assert (again.attempt, again.book.seed) == (2, 1)
    with begin("ppo", seed=4, config={"seed": "of the day"}) as said:
        assert said.book.seed == 4
