"""The doors of libraries of training loops, each with what its host asks of it but without the host."""

from __future__ import annotations

import importlib
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rollbook
from rollbook.errors import BadInput, MissingExtra
from rollbook.run.run import Run


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes the modules of a host with these names in the last one, and gives the adapter loaded beside them."""

    def make(adapter: str, module: str, **names: object) -> Any:
        parts = module.split(".")
        for n in range(len(parts)):
            made = ModuleType(".".join(parts[: n + 1]))
            made.__path__ = []
            monkeypatch.setitem(sys.modules, made.__name__, made)
        vars(made).update(names)
        monkeypatch.delitem(sys.modules, f"rollbook.adapters.{adapter}", raising=False)
        loaded = importlib.import_module(f"rollbook.adapters.{adapter}")
        monkeypatch.setitem(sys.modules, f"rollbook.adapters.{adapter}", loaded)
        return loaded

    return make


class Agent:
    """What skrl's agents have in common."""

    def __init__(self, folder: Path) -> None:
        self.experiment_dir = str(folder / "pendulum" / "sac")
        self.tracking_data: dict[str, list[float]] = defaultdict(list)
        self.memory = SimpleNamespace(num_envs=4)
        self.cfg = {"gamma": 0.9}
        self.checkpoint_modules: dict[str, object] = {}

    def write_tracking_data(self, *, timestep: int, timesteps: int) -> None:
        self.tracking_data.clear()

    def write_checkpoint(self, *, timestep: int, timesteps: int) -> None:
        path = Path(self.experiment_dir) / "checkpoints" / f"agent_{timestep}.pt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("weights")


def test_skrl_a_row_is_what_the_agent_is_about_to_write(run: Run, rows: Any, tmp_path: Path) -> None:
    from rollbook.adapters.skrl import attach

    agent = Agent(tmp_path)
    assert attach(agent, run) is run
    for timestep in (10, 20):
        agent.tracking_data["Reward / Total reward (mean)"] += [1.0, 2.0]
        agent.tracking_data["Reward / Total reward (max)"] += [1.0, 2.0 + timestep]
        agent.tracking_data["Reward / Total reward (min)"] += [1.0, 2.0]
        agent.tracking_data["nothing yet"] = []
        agent.write_tracking_data(timestep=timestep, timesteps=20)
    agent.write_checkpoint(timestep=20, timesteps=20)
    assert not agent.tracking_data, "the agent's own method ran"
    assert rows(run, "Reward / Total reward (max)", x="step") == [(10, 12.0), (20, 22.0)]
    assert rows(run, "Reward / Total reward (min)", x="env_step") == [(40, 1.0), (80, 1.0)]
    assert run.book.series("train/return").mean.tolist() == [1.5, 1.5]
    assert run.config["agent"] == {"gamma": 0.9}
    assert [Path(row["path"]).name for row in run.book.checkpoints().to_pylist()] == ["agent_20.pt"]
    assert run.bill()["drops"] == {}


def test_skrl_what_fails_costs_the_training_nothing(run: Run, tmp_path: Path) -> None:
    from rollbook.adapters.skrl import attach

    agent = Agent(tmp_path)
    attach(agent, run)
    agent.tracking_data["odd"] = ["no number"]  # type: ignore[list-item]
    with pytest.warns(rollbook.errors.RollbookWarning, match="tracking data"):  # type: ignore[attr-defined]
        agent.write_tracking_data(timestep=1, timesteps=2)
    assert not agent.tracking_data
    with pytest.raises(BadInput, match="Pass an agent of skrl 2"):
        attach(object())


def test_rl_games_the_observer_stands_before_the_writer_and_calls_the_one_it_holds(
    host: Callable[..., Any], run: Run, rows: Any, tmp_path: Path
) -> None:
    base = type("AlgoObserver", (), {})
    adapter = host("rl_games", "rl_games.common.algo_observer", AlgoObserver=base, DefaultAlgoObserver=base)
    called: list[str] = []

    class Own:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: called.append(name)

    event_file: list[tuple[str, float, int]] = []
    native = SimpleNamespace(add_scalar=lambda *point: event_file.append(point), flush=lambda: None)
    algo = SimpleNamespace(
        writer=native, config={"gamma": 0.9, "features": {}}, epoch_num=3, frame=96, num_agents=1,
        save=lambda name: Path(f"{name}.pth").write_text("weights"),
    )  # fmt: skip
    observer = adapter.RollbookObserver(Own(), run)
    assert isinstance(observer, base)
    observer.before_init("ppo", {}, "first")
    observer.after_init(algo)
    observer.after_init(algo)
    for ending, step in (("step", 96), ("iter", 3), ("time", 17)):
        algo.writer.add_scalar(f"rewards/{ending}", 1.5, step)
    algo.writer.flush()
    algo.save(str(tmp_path / "model"))
    observer.process_infos({}, [])
    observer.after_steps()
    observer.after_clear_stats()
    observer.after_print_stats(96, 3, 17.0)
    assert [tag for tag, *_ in event_file] == ["rewards/step", "rewards/iter", "rewards/time"]
    assert rows(run, "rewards/step", x="env_step") == [(96, 1.5)]
    assert rows(run, "rewards/step", x="epoch") == [(3, 1.5)]
    assert [key for key in (*run.book.keys(),) if key.startswith("rewards")] == ["rewards/step"]
    assert run.config["gamma"] == 0.9
    assert [Path(row["path"]).name for row in run.book.checkpoints().to_pylist()] == ["model.pth"]
    assert called == [
        "before_init", "after_init", "after_init", "process_infos", "after_steps", "after_clear_stats",
        "after_print_stats",
    ]  # fmt: skip


def test_d3rlpy_a_training_is_a_run_of_whole_rows(tmp_path: Path) -> None:
    from rollbook.adapters.d3rlpy import RollbookAdapterFactory

    factory = RollbookAdapterFactory(project="cartpole", seed=5, dir=tmp_path / "runs", sinks=(), keeper="inline")
    algo: Any = SimpleNamespace(impl=None, save=lambda path: Path(path).write_text("weights"))
    for name in ("first", "second"):
        adapter = factory.create(algo, name, 50)
        adapter.write_params({"gamma": 0.9})
        for epoch in (1, 2):
            adapter.watch_model(epoch, 50 * epoch)
            adapter.before_write_metric(epoch, 50 * epoch)
            adapter.write_metric(epoch, 50 * epoch, "loss", 1.0 / epoch)
            adapter.write_metric(epoch, 50 * epoch, "evaluation", 2.0 * epoch)
            adapter.after_write_metric(epoch, 50 * epoch)
            adapter.save_model(50 * epoch, algo)
        adapter.close()
        adapter.close()
    runs = rollbook.open(tmp_path / "runs")
    assert sorted((book.name, book.seed, book.status) for book in runs) == [
        ("first", 5, "finished"), ("second", 5, "finished"),
    ]  # fmt: skip
    for book in runs:
        assert book.metrics(["loss", "evaluation"], x="step").to_pylist()[0]["evaluation"] == 2.0
        assert book.series("test/return", x="epoch").x.tolist() == [1, 2]
        assert book.config["gamma"] == 0.9
        assert len(book.checkpoints()) == 2


@pytest.mark.parametrize(("adapter", "package"), [("rl_games", "rl_games")])
def test_without_the_library_the_line_that_installs_it_is_named(
    adapter: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"rollbook.adapters.{adapter}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'rollbook\[{adapter}\]'"):
        importlib.import_module(f"rollbook.adapters.{adapter}")
