"""Settings that are missing, groups of runs by them, and what is asked while a training goes on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.errors import RollbookWarning

Begin = Callable[..., Any]


class Unfilled(Mapping[str, Any]):
    """Settings as OmegaConf reads them from a file: one is mandatory and missing, one refers to what is not there."""

    given: Mapping[str, Any] = {"lr": 0.1, "layers": 3}
    missing = ("entity", "data_dir")

    def __getitem__(self, name: str) -> Any:
        if name in self.missing:
            raise LookupError(f"Missing mandatory value: {name}")
        return self.given[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.given, *self.missing])

    def __len__(self) -> int:
        return len(self.given) + len(self.missing)


@pytest.mark.filterwarnings("ignore::rollbook.errors.RollbookWarning")
@pytest.mark.parametrize("when", ["at the beginning", "later", "within others"])
def test_settings_that_are_not_filled_in_stop_no_training_and_cost_no_other(begin: Begin, when: str) -> None:
    settings: Any = Unfilled()
    with begin(config={"model": settings} if when == "within others" else settings if when != "later" else {}) as run:
        if when == "later":
            run.config.update(settings)
        run.log({"loss": 1.0})
    config = run.book.config["model"] if when == "within others" else run.book.config
    assert (config["lr"], config["layers"]) == (0.1, 3)
    assert run.book.status == "finished"


def test_jobs_that_start_at_the_same_instant_have_a_folder_each(
    begin: Begin, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    jobs = [threading.Thread(target=lambda n=n: begin("same", config={"n": n}).log({"loss": n})) for n in range(4)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert {book.config["n"]: book.latest()["loss"][0] for book in rollbook.open(root)} == {n: n for n in range(4)}
    assert len({book.path for book in rollbook.open(root)}) == 4


def test_the_summary_of_an_earlier_attempt_is_kept_beside_the_new_one(begin: Begin, root: Path) -> None:
    with begin("job", resume="allow") as run:
        run.summary["parameters"] = 1_000
        run.log({"loss": 1.0}, step=1)
    with begin("job", resume="allow") as run:
        run.log({"loss": 0.5}, step=2)
        run.summary["best"] = 0.5
    summary = rollbook.open(root).one().summary
    assert (summary["parameters"], summary["best"]) == (1_000, 0.5)


def test_a_learning_rate_is_one_group_however_it_is_written(begin: Begin, root: Path) -> None:
    for n, lr in enumerate([0.003, 3e-3, np.float64(0.003), 0.03]):
        with begin(f"r{n}", seed=n, config={"lr": lr}) as run:
            run.log({"score": float(n)}, step=1)
    groups = rollbook.open(root).group_by("config.lr")
    assert {lr: len(runs) for lr, runs in groups.items()} == {0.003: 3, 0.03: 1}
    assert [len(group.seeds_R) for group in rollbook.open(root).compare("score", by="config.lr").groups] == [3, 1]


def test_methods_with_settings_of_their_own_are_compared_with_those_that_lack_them(begin: Begin, root: Path) -> None:
    settings = [{"method": "a"}, {"method": "b", "beta": 1}, {"method": "b", "beta": 2}]
    for n, config in enumerate(settings):
        with begin(f"r{n}", config=config) as run:
            run.log({"score": float(n)}, step=1)
    groups = rollbook.open(root).group_by("config.beta")
    assert {beta: runs[0].config["method"] for beta, runs in groups.items()} == {None: "a", 1: "b", 2: "b"}


def test_the_return_can_be_asked_while_the_training_goes_on_and_needs_no_metric(begin: Begin) -> None:
    run = begin()
    for episode, gained in enumerate([-348.0, -200.0, -20.0]):
        run.log_episode(return_=gained, length=16, env_step=16 * (episode + 1))
        assert run.book.latest()["train/return"][0] == gained
    assert run.book.series("train/return").mean.tolist() == [-348.0, -200.0, -20.0]


@pytest.mark.parametrize("shape", [(16, 1, 17, 16), (3,), (0, 4, 3), (4, 4, 7)])
def test_an_output_that_is_no_picture_ends_no_training(begin: Begin, shape: tuple[int, ...]) -> None:
    run = begin()
    with pytest.warns(RollbookWarning, match="outputs"):
        run.log_image("outputs", np.zeros(shape))
    run.log({"loss": 1.0})
    assert run.book.latest()["loss"][0] == 1.0
