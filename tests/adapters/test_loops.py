"""Loggers and callbacks for libraries of training loops, each with what its host asks of it but without the host."""

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


def test_skrl_with_its_event_files_followed_too_each_number_is_in_the_run_once(
    run: Run, rows: Any, tmp_path: Path
) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from rollbook.adapters.skrl import attach
    from rollbook.adapters.tensorboard import event_files

    class Writing(Agent):
        def write_tracking_data(self, *, timestep: int, timesteps: int) -> None:
            for key in ("by attach", "by the program"):
                for number in self.tracking_data.pop(key, ()):
                    value = Summary.Value(tag=key, simple_value=number)
                    self.writer.add_event(Event(step=timestep, wall_time=1.7e9, summary=Summary(value=[value])))

    event_files.follow({"run": run})
    try:
        agent = Writing(tmp_path)
        agent.writer = EventFileWriter(agent.experiment_dir)  # type: ignore[attr-defined]
        written = agent.write_tracking_data
        attach(agent, run)
        for timestep in (1, 2):
            agent.tracking_data["by attach"] = [1.5]
            agent.write_tracking_data(timestep=timestep, timesteps=2)
        agent.tracking_data["by the program"] = [2.5]
        written(timestep=3, timesteps=3)
        agent.writer.close()  # type: ignore[attr-defined]
    finally:
        event_files.leave()
    assert rows(run, "by attach") == [(1.5,), (1.5,)]
    assert rows(run, "by the program") == [(2.5,)]


def test_skrl_a_followed_writer_that_attach_records_opens_no_run_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its trainer may have made it before `attach(agent, project=…)` opens one."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    from rollbook.adapters.skrl import attach
    from rollbook.adapters.tensorboard import event_files

    def write(step: int) -> None:
        value = Summary.Value(tag="loss", simple_value=step / 2)
        writer.add_event(Event(step=step, wall_time=1.7e9, summary=Summary(value=[value])))

    class Writing(Agent):
        def write_tracking_data(self, *, timestep: int, timesteps: int) -> None:
            write(timestep)
            self.tracking_data.clear()

    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    event_files.follow({})
    try:
        agent = Writing(tmp_path)
        writer = EventFileWriter(agent.experiment_dir)
        opened = attach(agent, project="carts", sinks=(), keeper="inline")
        agent.tracking_data["loss"] = [0.5]
        agent.write_tracking_data(timestep=1, timesteps=2)
        write(2)  # of the program itself
        writer.close()
    finally:
        event_files.leave()
        rollbook.finish()
    (book,) = rollbook.open(tmp_path / "runs")
    assert book.id == opened.id
    assert [(row["step"], row["loss"]) for row in book.metrics(["loss"], x="step").to_pylist()] == [(1, 0.5), (2, 1.0)]


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
        writer=native,
        config={"gamma": 0.9, "features": {}},
        epoch_num=3,
        frame=96,
        num_agents=1,
        save=lambda name: Path(f"{name}.pth").write_text("weights"),
    )
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
        "before_init",
        "after_init",
        "after_init",
        "process_infos",
        "after_steps",
        "after_clear_stats",
        "after_print_stats",
    ]


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
        ("first", 5, "finished"),
        ("second", 5, "finished"),
    ]
    for book in runs:
        assert book.metrics(["loss", "evaluation"], x="step").to_pylist()[0]["evaluation"] == 2.0
        assert book.series("test/return", x="epoch").x.tolist() == [1, 2]
        assert book.config["gamma"] == 0.9
        assert len(book.checkpoints()) == 2


def test_elements_the_numbers_of_a_step_are_one_row_and_arrays_what_their_shape_says(run: Run, rows: Any) -> None:
    import numpy as np

    from rollbook.adapters.elements import RollbookOutput

    output = RollbookOutput(run)
    picture = np.zeros((8, 8, 3), np.uint8)
    output(
        [
            (40, "episode/score", np.float32(1.5)),
            (40, "episode/length", np.int64(9)),
            (40, "note", "hello"),
            (40, "weights", np.arange(5.0)),
            (40, "view", picture),
            (40, "film", np.zeros((4, 8, 8, 3), np.uint8)),
            (80, "episode/score", np.float32(2.5)),
        ]
    )
    output.wait()
    assert run.book.series("train/return", x="env_step").x.tolist() == [40, 80]
    assert rows(run, "episode/length", x="env_step") == [(40, 9)]
    assert sorted(run.book.table("media")["key"].to_pylist()) == ["film", "view"]
    assert run.book.table("histograms")["key"].to_pylist() == ["weights"]
    assert run.book.table("text")["text"].to_pylist() == ["hello"]
    assert run.status == "running"
    assert run.bill()["drops"] == {}


def test_stoix_a_row_has_the_event_before_its_keys_and_both_counters(tmp_path: Path) -> None:
    from rollbook.adapters.stoix import RollbookLogger

    event = SimpleNamespace(ACT=SimpleNamespace(value="actor"), EVAL=SimpleNamespace(value="evaluator"))
    logger = RollbookLogger(
        base_exp_path=tmp_path / "cartpole",
        unique_token="x",
        system_name="ff_ppo",
        enabled=True,
        dir=tmp_path / "runs",
        sinks=(),
        keeper="inline",
    )
    logger.log_config({"arch": {"seed": 42}, "system": {"gamma": 0.9}})
    for n in (1, 2):
        logger.log_dict({"episode_return": {"mean": 1.0 * n, "std": 0.5}}, 100 * n, n, event.ACT)
        logger.log_stat("episode_return/mean", 10.0 * n, 100 * n, n, event.EVAL)
    logger.stop()
    (book,) = rollbook.open(tmp_path / "runs")
    assert (book.project, book.name, book.seed, book.status) == ("cartpole", "ff_ppo", 42, "finished")
    assert book.series("train/return", x="env_step").mean.tolist() == [1.0, 2.0]
    assert book.series("test/return", x="epoch").x.tolist() == [1, 2]
    assert book.config["system"] == {"gamma": 0.9}


def test_mava_hands_over_its_configuration_which_has_the_name_and_the_seed(tmp_path: Path) -> None:
    from rollbook.adapters.stoix import RollbookLogger

    config = {"logger": {"system_name": "ff_ippo"}, "arch": {"num_envs": 4}, "system": {"seed": 7}}
    logger = RollbookLogger(config, "token", dir=tmp_path / "runs", sinks=(), keeper="inline")
    logger.log_dict({"episode_return": {"mean": 2.0}}, 100, 1, SimpleNamespace(value="evaluator"))
    logger.stop()
    (book,) = rollbook.open(tmp_path / "runs")
    assert (book.project, book.name, book.seed, book.config) == ("mava", "ff_ippo", 7, config)


def test_pufferlib_a_logger_has_what_its_train_asks_for(tmp_path: Path) -> None:
    from rollbook.adapters.pufferlib import RollbookLogger

    model = tmp_path / "model.pt"
    model.write_text("weights")
    config = {"env_name": "breakout", "train": {"seed": 4, "gamma": 0.9}}
    logger = RollbookLogger(config=config, dir=tmp_path / "runs", sinks=(), keeper="inline")
    assert logger.download() is None
    logger.log({"SPS": 1e6, "epoch": 3, "agent_steps": 512, "environment/episode_return": 2.0}, 512)
    logger.close(str(model))
    (book,) = rollbook.open(tmp_path / "runs")
    assert (book.id, book.name, book.seed, book.status) == (logger.run_id, "breakout", 4, "finished")
    assert book.series("train/return", x="env_step").x.tolist() == [512]
    assert book.series("train/return", x="epoch").x.tolist() == [3]
    assert [row["path"] for row in book.checkpoints().to_pylist()] == [logger.download()]


def test_torchrl_a_row_of_metrics_is_a_row_and_a_name_makes_a_logger(
    host: Callable[..., Any], run: Run, rows: Any, tmp_path: Path
) -> None:
    def init(self: Any, exp_name: str, log_dir: str) -> None:
        self.experiment = self._create_experiment()

    adapter = host("torchrl", "torchrl.record.loggers.common", Logger=type("Logger", (), {"__init__": init}))
    loggers: Any = sys.modules["torchrl.record.loggers"]
    loggers.utils = ModuleType("utils")
    loggers.get_logger = loggers.utils.get_logger = lambda *names, **_: names
    logger = adapter.RollbookLogger("ppo", run=run)
    assert logger.experiment is run
    assert logger.log_metrics({"train/a": 1.0, "train/b": 2.0}, step=5) == {"train/a": 1.0, "train/b": 2.0}
    logger.log_scalar("c", 3.0, step=6)
    logger.log_hparams({"lr": 0.1})
    logger.log_histogram("h", [1.0, 2.0], step=6)
    logger.log_str("s", "text")
    logger.flush()
    logger.close()
    assert rows(run, "train/b", x="step") == [(5, 2.0)]
    assert rows(run, "c", x="step") == [(6, 3.0)]
    assert run.config["lr"] == 0.1
    assert run.status == "running"
    adapter.register()
    adapter.register()
    assert loggers.get_logger("csv", "logs", "exp") == ("csv", "logs", "exp")
    made = loggers.get_logger(
        "rollbook", str(tmp_path / "logs"), "exp", rollbook_kwargs={"project": "balance", "dir": tmp_path / "runs"}
    )
    made.close()
    assert [(book.project, book.name) for book in rollbook.open(tmp_path / "runs/balance")] == [("balance", "exp")]


def test_brax_progress_is_rows_and_parameters_are_checkpoints(
    run: Run, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    from rollbook.adapters.brax import checkpoints, progress

    jax: Any = ModuleType("jax")
    jax.tree_util = SimpleNamespace(
        tree_flatten_with_path=lambda tree: (list(tree.items()), None), keystr=lambda path: f"['{path}']"
    )
    monkeypatch.setitem(sys.modules, "jax", jax)
    called: list[object] = []
    report, keep = progress(run, lambda *given: called.append(given)), checkpoints(run)
    for step in (0, 1024):
        report(step, {"eval/episode_reward": np.float32(step), "training/sps": 10.0})
        keep(step, None, {"policy": np.arange(3.0)})
    assert run.book.series("test/return", x="env_step").mean.tolist() == [0.0, 1024.0]
    assert [row["env_step"] for row in run.book.checkpoints().to_pylist()] == [0, 1024]
    assert len(called) == 2
    assert run.bill()["drops"] == {}


def test_keras_epochs_are_rows_and_batches_count_on(host: Callable[..., Any], run: Run, rows: Any) -> None:
    base = type("Callback", (), {"params": {"epochs": 2, "steps": 3}, "model": SimpleNamespace(name="net")})
    adapter = host("keras", "keras", callbacks=SimpleNamespace(Callback=base))
    callback = adapter.RollbookCallback(run, every=2)
    callback.on_train_begin()
    for epoch in range(2):
        for batch in range(3):
            callback.on_train_batch_end(batch, {"loss": 10.0 * epoch + batch})
        callback.on_epoch_end(epoch, {"loss": 1.0 / (epoch + 1), "val_loss": 2.0})
    assert rows(run, "loss", x="epoch") == [(1, 1.0), (2, 0.5)]
    assert rows(run, "val_loss", x="step") == [(3, 2.0), (6, 2.0)]
    assert rows(run, "batch/loss", x="step") == [(2, 1.0), (4, 10.0), (6, 12.0)]
    assert run.config["fit"] == {"epochs": 2, "steps": 3}


@pytest.mark.parametrize(("adapter", "package"), [("rl_games", "rl_games"), ("torchrl", "torchrl"), ("keras", "keras")])
def test_without_the_library_the_line_that_installs_it_is_named(
    adapter: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"rollbook.adapters.{adapter}", raising=False)
    with pytest.raises(MissingExtra, match=rf"pip install 'rollbook(-core)?\[{adapter}\]'"):
        importlib.import_module(f"rollbook.adapters.{adapter}")
