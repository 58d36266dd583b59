"""Libraries of training loops themselves, by their examples: what the host's own writer was given is in the book."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import rollbook

GROUPS = ("loops",)

pytest.importorskip("skrl")

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> Any:
    spec: Any = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def same(book: rollbook.Book, given: dict[str, list[tuple[int, float]]], clock: str) -> int:
    """How many points there are; each was given at that reading of the clock, with that value."""
    for key, points in given.items():
        series = book.series(key, x=clock)
        assert list(zip(series.x.tolist(), series.mean.tolist(), strict=True)) == points, key
    return sum(map(len, given.values()))


@pytest.mark.core
def test_skrl_every_number_of_its_event_files_is_in_the_book(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from skrl.utils.tensorboard import SummaryWriter

    given: dict[str, list[tuple[int, float]]] = defaultdict(list)
    write = SummaryWriter.add_scalar

    def add_scalar(self: Any, *, tag: str, value: float, timestep: int) -> None:
        given[tag].append((timestep, float(value)))
        write(self, tag=tag, value=value, timestep=timestep)

    monkeypatch.setattr(SummaryWriter, "add_scalar", add_scalar)
    example("skrl_dqn").trainer(400, seed=3).train()
    rollbook.finish()
    (book,) = rollbook.open("runs")
    assert (book.project, book.name, book.seed, book.status) == ("cartpole", "dqn", 3, "finished")
    assert same(book, given, "step") > 100
    assert book.series("Loss / Q-network loss", x="env_step").x[-1] == 2 * given["Loss / Q-network loss"][-1][0]
    assert [Path(row["path"]).name for row in book.checkpoints(everything=True).to_pylist()] == [
        "agent_200.pt",
        "agent_400.pt",
    ]
    assert "learning_starts" in str(book.config["agent"])
    assert book.problems() == []


@pytest.mark.core
@pytest.mark.parametrize("order", ["attached before its trainer was made", "after"])
def test_skrl_attached_under_tensorboard_is_one_run_that_has_each_number_once(
    own_place: Path, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    from skrl.utils.tensorboard import SummaryWriter

    from rollbook.adapters.skrl import attach
    from rollbook.adapters.tensorboard import event_files

    given: dict[str, list[tuple[int, float]]] = defaultdict(list)
    write = SummaryWriter.add_scalar

    def add_scalar(self: Any, *, tag: str, value: float, timestep: int) -> None:
        given[tag].append((timestep, float(value)))
        write(self, tag=tag, value=value, timestep=timestep)

    monkeypatch.setattr(SummaryWriter, "add_scalar", add_scalar)
    program = example("skrl_dqn")
    event_files.follow({})
    try:
        if order == "after":
            monkeypatch.setattr(program, "attach", lambda agent, **_options: None)
        trainer = program.trainer(400, seed=3)
        if order == "after":
            attach(trainer.agents, project="cartpole", name="dqn")
        trainer.train()
    finally:
        event_files.leave()
        rollbook.finish()
    (book,) = rollbook.open("runs")
    assert same(book, given, "step") > 100
    keys = book.keys()
    assert {key for key in keys if not key.startswith("rollbook/")} == set(given)
    for key, points in given.items():
        assert len(book.metrics([key])[key].drop_null()) == len(points), key


@pytest.mark.core
def test_rl_games_writes_one_number_where_its_event_file_has_three(own_place: Path) -> None:
    from rl_games.common.algo_observer import DefaultAlgoObserver

    from rollbook.adapters.rl_games import RollbookObserver

    given: dict[str, list[tuple[int, float]]] = defaultdict(list)

    class Watching(DefaultAlgoObserver):  # type: ignore[misc]
        """A program's own observer, made before; it writes by the algorithm's writer."""

        def after_init(self, algo: Any) -> None:
            native = algo.writer._native
            write = native.add_scalar

            def add_scalar(tag: str, value: Any, step: int) -> None:
                given[tag].append((step, float(value)))
                write(tag, value, step)

            native.add_scalar = add_scalar
            super().after_init(algo)

        def after_print_stats(self, frame: int, epoch_num: int, total_time: float) -> None:
            self.writer.add_scalar("mine", float(epoch_num), frame)

    example("rl_games_ppo").train(4, 3, RollbookObserver(Watching(), project="carts", name="ppo", seed=3))
    rollbook.finish()
    (book,) = rollbook.open("runs/carts")
    assert (book.seed, book.status) == (3, "finished")
    # rl_games 1.6.5 calls after_print_stats twice an epoch
    assert sorted(set(book.series("mine", x="epoch").x.tolist())) == [1, 2, 3, 4]
    kept = {tag: points for tag, points in given.items() if not tag.endswith(("/iter", "/time"))}
    assert "rewards/iter" in given
    assert same(book, kept, "env_step") > 50
    assert not [key for key in (*book.keys(),) if key.endswith(("/iter", "/time"))]
    returns = book.series("train/return", x="epoch")
    assert list(zip(returns.x.tolist(), returns.mean.tolist(), strict=True)) == given["rewards/iter"]
    assert [row["env_step"] for row in book.checkpoints(everything=True).to_pylist()] == [2048]
    assert book.problems() == []


@pytest.mark.core
def test_d3rlpy_rows_parameters_models_and_gradients_are_in_the_book(own_place: Path) -> None:
    import d3rlpy
    from d3rlpy.logging import CombineAdapterFactory, FileAdapterFactory

    from rollbook.adapters.d3rlpy import RollbookAdapterFactory

    ours = RollbookAdapterFactory(project="cartpole", seed=3, gradients=True)
    example("d3rlpy_dqn").train(150, 3, CombineAdapterFactory([FileAdapterFactory("theirs"), ours]))
    (book,) = rollbook.open("runs")
    assert (book.project, book.seed, book.status) == ("cartpole", 3, "finished")
    (folder,) = Path("theirs").iterdir()
    given = {}
    for key in ("loss", "time_step"):
        lines = [line.split(",") for line in (folder / f"{key}.csv").read_text().splitlines()]
        given[key] = [(int(step), float(value)) for _epoch, step, value in lines]
        series = book.series(key, x="step")
        assert list(zip(series.x.tolist(), series.mean.tolist(), strict=True)) == given[key]
        assert book.series(key, x="epoch").x.tolist() == [1, 2, 3]
    assert book.config["config"]["type"] == "dqn"
    assert len(book.checkpoints(everything=True)) == 3
    path = book.path / book.checkpoints(everything=True).to_pylist()[-1]["path"]
    assert isinstance(d3rlpy.load_learnable(str(path)), d3rlpy.algos.DQN)
    assert any(key.startswith("gradients/") for key in book.table("histograms")["key"].to_pylist())
    assert book.problems() == []
