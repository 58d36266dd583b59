"""A run whose episodes say its return, and no metric does, answers for `train/return` by every door."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import rollbook
from page_server import client_of
from rollbook.book import Book
from rollbook.book import episode_curves as subject
from rollbook.capture.gym import RecordEpisodes
from rollbook.cli.app import app
from rollbook.runs.run_set import RunSet
from rollbook.server.shared.catalogue import Catalogue

RETURNS = {"short": [1.5, 2.5, 4.0], "long": [3.0, 7.0]}
"""By name of the run; each episode of it has 10 steps."""


def of(root: Path, name: str, **more: Any) -> Any:
    return rollbook.init("p", name, dir=root, sinks=[], keeper="inline", strict=True, **more)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two loops of one's own that log no return: one within the run, one within its scope of training."""
    folder = tmp_path_factory.mktemp("runs")
    for name, returns in RETURNS.items():
        with of(folder, name, seed=0, config={"algo": name}) as run:
            scope = run if name == "short" else run.scope("train")
            for n, value in enumerate(returns, 1):
                scope.log_episode(return_=value, length=10, env_step=10 * n)
                run.log({"loss": 1 / n}, env_step=10 * n)
    return folder


@pytest.fixture(scope="module")
def page(root: Path) -> Iterator[TestClient]:
    with client_of(root) as client:
        yield client


@pytest.fixture
def books(root: Path) -> dict[str, Book]:
    return {book.name: book for book in rollbook.open(root)}


@pytest.mark.parametrize("name", RETURNS)
def test_a_book_answers_from_the_episodes(books: dict[str, Book], name: str) -> None:
    book, returns = books[name], RETURNS[name]
    steps = [10 * n for n in range(1, len(returns) + 1)]
    assert book.keys() == ["loss", "train/length", "train/return"]
    assert book.canonical()["train/return"] == "train/return"
    for series in (book.series("train/return"), book.batch(["train/return"])["train/return"]):
        assert (series.axis, series.x.tolist(), series.mean.tolist()) == ("env_step", steps, returns)
    assert book.series("train/return", points=1).max.tolist() == [max(returns)]
    assert book.series("train/return", start=15).mean.tolist() == returns[1:]
    assert book.arrays("train/length", x="env_step")["train/length"].tolist() == [10] * len(returns)
    assert book.latest()["train/return"][:2] == (returns[-1], {"env_step": steps[-1]})
    assert {"key": "train/return", "value": returns[1], "env_step": 20} in [
        {name: cell for name, cell in row.items() if name != "time"}
        for row in book.at(env_step=25)["metrics"].to_pylist()
    ]
    assert book.sql('select sum("train/return"), count("train/length") from metrics').fetchall() == [
        (sum(returns), len(returns))
    ]
    assert book.table("metrics").num_rows == book.row_count("metrics") == 2 * len(returns)
    assert book.table_rows()["metrics"] == len(returns), "what is stored, as `rollbook show` says it"
    assert (book.summary["train/return.last"], book.summary["train/return.best"]) == (returns[-1], max(returns))


def test_a_set_of_runs_answers_from_the_episodes(root: Path) -> None:
    runs = rollbook.open(root)
    assert sorted(runs.table(metrics=["train/return"])["train/return"].to_pylist()) == [4.0, 7.0]
    assert sorted(len(each["train/return"]) for each in runs.series(["train/return"]).values()) == [2, 3]
    compared = runs.compare("train/return", by="config.algo")
    assert {group.label: group.seeds_R.tolist() for group in compared.groups} == {"long": [7.0], "short": [4.0]}
    assert len(rollbook.open(root, where="summary.train/return.best > 5")) == 1


def asked(*words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_commands_answer_from_the_episodes(root: Path) -> None:
    listed = {row["name"]: row for row in asked("ls", str(root))}
    assert {name: row["summary"]["train/return.best"] for name, row in listed.items()} == {"short": 4.0, "long": 7.0}
    groups = asked("compare", "--dir", str(root), "--metric", "train/return", "--by", "config.algo")["groups"]
    assert {group["group"]: group["iqm"] for group in groups} == {"long": 7.0, "short": 4.0}


def test_the_page_answers_from_the_episodes(root: Path, page: TestClient) -> None:
    keys = {Path(row.folder).name: key for key, row in Catalogue([str(root)]).snapshot().rows.items()}
    told = page.post("/api/keys", json={"runs": [*keys.values()]}).json()
    assert {entry["key"]: entry["runs"] for entry in told["keys"]} == {"loss": 2, "train/length": 2, "train/return": 2}
    compared = page.post(
        "/api/compare", json={"runs": [*keys.values()], "metric": "train/return", "by": "config.algo"}
    ).json()
    assert {group["name"]: group["centre"] for group in compared["groups"]} == {"long": 7.0, "short": 4.0}


def test_whoever_else_says_the_return_is_believed(tmp_path: Path) -> None:
    with of(tmp_path, "framework") as run:
        for n, value in enumerate([1.0, 3.0], 1):
            run.scope("train").log_episode(return_=value, length=10, env_step=10 * n)
        run.log({"rollout/ep_rew_mean": 2.0}, env_step=20)
    book = Book(run.folder)
    assert book.series("train/return").mean.tolist() == [2.0], "the metric of the framework, and nothing beside it"
    assert book.keys() == ["rollout/ep_rew_mean", "train/length"], "only what no metric says"


def test_evaluations_and_other_scopes_are_told_apart_and_unfinished_episodes_left_out(tmp_path: Path) -> None:
    with of(tmp_path, "mixed") as run:
        run.log_episode(return_=1.0, length=4, env_step=4)
        run.scope("test").log_episode(return_=50.0, length=9, env_step=4)
        run.scope("agent0").log_episode(return_=-9.0, length=4, env_step=4)
        run.scope("train").log_episode(return_=2.0, length=3, complete=True, env_step=7)
        run.scope("train").log_episode(return_=0.5, length=1, complete=False, env_step=8)
    book = Book(run.folder)
    assert book.series("train/return").mean.tolist() == [1.0, 2.0]
    assert book.series("test/return").mean.tolist() == [50.0]
    assert book.keys() == ["test/length", "test/return", "train/length", "train/return"]


def test_a_return_that_is_no_number_is_no_metric(tmp_path: Path) -> None:
    with of(tmp_path, "words") as run:
        run.log_episode(return_="high", length=4, env_step=4)
    book = Book(run.folder)
    assert book.keys() == ["train/length"]
    with pytest.raises(rollbook.errors.UnknownKey):
        book.series("train/return")


def test_what_a_resume_abandons_is_abandoned_here_too(tmp_path: Path) -> None:
    with of(tmp_path, "resumed") as run:
        for n in range(1, 5):
            run.log_episode(return_=float(n), length=1, env_step=n)
        run.rewind(env_step=2)
        run.log_episode(return_=30.0, length=1, env_step=3)
    book = Book(run.folder)
    assert book.series("train/return").mean.tolist() == [1.0, 2.0, 30.0]
    assert book.series("train/return", attempts="all").mean.tolist() == [1.0, 2.0, 3.0, 30.0, 4.0]
    assert book.series("train/return", attempts=[1]).mean.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_live_run_and_the_sealed_one_give_the_same(tmp_path: Path) -> None:
    run = of(tmp_path, "live")
    env = RecordEpisodes(gymnasium.make("CartPole-v1", max_episode_steps=5), run.scope("train"), curves=False)
    for _ in range(3):
        env.reset(seed=0)
        while not any(env.step(0)[2:4]):
            pass
    live = Book(run.folder).series("train/return")
    run.finish()
    sealed = Book(run.folder).series("train/return")
    assert live.mean.tolist() == sealed.mean.tolist() == [5.0] * 3
    assert live.x.tolist() == sealed.x.tolist()


def test_a_run_without_episodes_is_not_asked_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with of(tmp_path, "plain") as run:
        run.log({"loss": 1.0}, env_step=1)
    monkeypatch.setattr(subject, "_without_a_key", None)
    book = Book(run.folder)
    assert book.keys() == ["loss"]
    assert book.series("loss").mean.tolist() == [1.0]


def test_a_set_says_which_key_is_missing_where_no_run_has_episodes(tmp_path: Path) -> None:
    with of(tmp_path, "plain") as run:
        run.log({"loss": 1.0}, env_step=1)
    runs: RunSet = rollbook.open(tmp_path)
    with pytest.raises(rollbook.errors.UnknownKey):
        runs.series(["train/return"])
