"""One training, one run, in the frameworks themselves: the loops that everybody writes."""

from __future__ import annotations

import functools
import gc
import os
from pathlib import Path
from typing import Any

import pytest

import rollbook
from loops_of_trainings import DOORS
from waiting import until

GROUPS = ("main", "trl", "loggers", "lightzero", "spinningup", "mrl", "loops", "rllib", "jax", "tianshou1")


@pytest.fixture(autouse=True)
def inline(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The adapters open their runs as they do in a program, but without a keeper's process."""
    from rollbook.run import session

    original = session.init

    @functools.wraps(original)  # adapters look which options it has
    def inline_init(*names: Any, **options: Any) -> Any:
        return original(*names, **{"keeper": "inline", **options})

    monkeypatch.setattr(session, "init", inline_init)


def books() -> list[Any]:
    return sorted(rollbook.open("runs"), key=lambda book: book.info.created)


def numbers(book: Any, key: str) -> list[float]:
    return [row[key] for row in book.metrics([key]).to_pylist() if row[key] is not None]


# -- every door


@pytest.mark.core
@pytest.mark.parametrize("name", [name for group, name in DOORS if group == os.environ["ROLLBOOK_FRAMEWORK_GROUP"]])
def test_a_loop_over_seeds_is_a_finished_run_each_by_every_door(name: str, own_place: Path) -> None:
    """Also for who opens the whole folder: the framework's own files of the same trainings are no further runs."""
    door = DOORS[os.environ["ROLLBOOK_FRAMEWORK_GROUP"], name]
    if name == "spinningup" and not os.environ.get("ROLLBOOK_SPINNINGUP"):
        pytest.skip("set ROLLBOOK_SPINNINGUP to a checkout of github.com/openai/spinningup")
    for seed in range(2):
        door.train(seed)
        assert len(rollbook.open(own_place)) == seed + 1
    if name == "wandbs_shape":
        rollbook.finish()  # as the end of the program does
    until(lambda: gc.collect() >= 0 and all(book.status != "running" for book in rollbook.open(own_place)))
    found = sorted(rollbook.open(own_place), key=lambda book: book.info.created)
    assert [book.seed for book in found] == ([0, 1] if door.seeded else [None, None])
    assert [(book.status, len(book.attempts)) for book in found] == [("finished", 1)] * 2
    for book in found:
        told = (book.name, book.info.algo, book.config.get("algo"), book.config.get("algorithm"))
        assert door.says.lower() in f"{told}".lower()
    first, second = (len(numbers(book, door.key)) for book in found)
    assert first == second > 0


# -- Stable-Baselines3


def ppo(algorithm: str = "PPO", **more: Any) -> Any:
    sb3 = pytest.importorskip("stable_baselines3")
    return getattr(sb3, algorithm)("MlpPolicy", "CartPole-v1", **{"n_steps": 16, "device": "cpu", **more})


@pytest.mark.core
def test_a_loop_over_algorithms_and_seeds_is_a_finished_run_each() -> None:
    pytest.importorskip("stable_baselines3")
    from rollbook.adapters.sb3 import RollbookCallback

    for algorithm in ("PPO", "A2C"):
        for seed in range(3):
            ppo(algorithm, seed=seed).learn(32, callback=RollbookCallback(), log_interval=1)
    found = [(book.project, book.name, book.seed, book.config["algo"], book.status) for book in books()]
    assert found == [
        ("CartPole-v1", algorithm, seed, algorithm, "finished") for algorithm in ("PPO", "A2C") for seed in range(3)
    ]
    assert all(numbers(book, "time/iterations") == [1, 2] for book in books())
    assert all(max(book.metrics(["time/iterations"])["env_step"].to_pylist()) == 32 for book in books())


def test_a_model_that_learns_again_is_a_run_each_and_one_that_goes_on_is_one() -> None:
    pytest.importorskip("stable_baselines3")
    from rollbook.adapters.sb3 import RollbookCallback, configure

    model = ppo(seed=0)
    model.set_logger(configure("logs", ["csv"], run=False))
    for _ in range(3):
        model.learn(16, callback=RollbookCallback())
    assert [numbers(book, "time/iterations") for book in books()] == [[1]] * 3
    for _ in range(2):
        model.learn(16, callback=RollbookCallback(), reset_num_timesteps=False)
    last = books()[-1]
    assert len(books()) == 3
    assert (len(last.attempts), last.status) == (1, "finished")
    assert [book.info.total for book in books()] == [{"env_step": 16}] * 2 + [{"env_step": 48}]
    assert last.metrics(["time/iterations"], x="env_step")["env_step"].to_pylist() == [16, 32, 48]
    again = RollbookCallback()
    for _ in range(2):
        ppo(seed=1).learn(16, callback=again)
    assert [len(book.attempts) for book in books()] == [1] * 5


def test_a_run_of_the_caller_takes_what_says_the_same_and_nothing_else(recwarn: pytest.WarningsRecorder) -> None:
    pytest.importorskip("stable_baselines3")
    from rollbook.adapters.sb3 import RollbookCallback

    with rollbook.init("mine", "ppo", seed=0, sinks=[]) as run:
        model = ppo(seed=0)
        for _ in range(2):
            model.learn(16, callback=RollbookCallback())
        ppo(seed=1).learn(16, callback=RollbookCallback())
        ppo("A2C", seed=0).learn(16, callback=RollbookCallback(), log_interval=1)
        assert run.status == "running"
    assert [(book.project, book.name, book.seed) for book in books()] == [
        ("mine", "ppo", 0),
        ("CartPole-v1", "PPO", 1),
        ("CartPole-v1", "A2C", 0),
    ]
    assert numbers(books()[0], "time/iterations") == [1, 1]
    said = [str(one.message) for one in recwarn.list if "recorded as run" in str(one.message)]
    assert [run.id in words for words in said] == [True, True]
    assert "seed 0, and this training says seed 1" in said[0]


def test_a_training_that_an_exception_ended_does_not_take_the_next_one() -> None:
    pytest.importorskip("stable_baselines3")
    from rollbook.adapters.sb3 import RollbookCallback

    def fails(_locals: Any, _globals: Any) -> bool:
        raise ValueError("as in a cell that is run again")

    from stable_baselines3.common.callbacks import CallbackList, ConvertCallback, EveryNTimesteps

    model = ppo(seed=0)
    with pytest.raises(ValueError, match="a cell"):
        model.learn(32, callback=CallbackList([RollbookCallback(), EveryNTimesteps(17, ConvertCallback(fails))]))
    model.learn(32, callback=RollbookCallback())
    assert [(book.status, numbers(book, "time/iterations")) for book in books()] == [
        ("crashed", [1]),
        ("finished", [1, 2]),
    ]


@pytest.mark.parametrize("scopes", [False, True])
def test_two_callbacks_store_each_number_once(scopes: bool) -> None:
    pytest.importorskip("stable_baselines3")
    from rollbook.adapters.sb3 import RollbookCallback

    with rollbook.init("p", "n", sinks=[], keeper="inline") as run:
        places = [run.scope("a"), run.scope("b")] if scopes else [run, run]
        ppo(seed=0).learn(32, callback=[RollbookCallback(place, checkpoint_every=16) for place in places])
    book = books()[0]
    for key in ("a/time/iterations", "b/time/iterations") if scopes else ("time/iterations",):
        assert numbers(book, key) == [1, 2]
    assert len(book.checkpoints(everything=True)) == (4 if scopes else 2)
    episodes = book.episodes().to_pylist()
    assert len({(row["scope"], row["episode"], row["env_index"]) for row in episodes}) == len(episodes)


@pytest.mark.parametrize("door", ["install", "wandb"])
def test_event_files_beside_the_callback_store_each_number_once(door: str, own_place: Path) -> None:
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("tensorboard")
    from rollbook.adapters import tensorboard, wandb
    from rollbook.adapters.sb3 import RollbookCallback

    if door == "install":
        tensorboard.install()
    else:
        wandb.init(project="p", sync_tensorboard=True)
    try:
        for seed in range(2):
            ppo(seed=seed, tensorboard_log="tb").learn(32, callback=RollbookCallback())
    finally:
        tensorboard.uninstall()
        wandb.finish()
    assert [numbers(book, "time/iterations") for book in books()] == [[]] * 0 + [[1, 2], [1, 2]]
    assert [book.seed for book in books()] == [0, 1]
    assert len(list((own_place / "tb").rglob("events*"))) == 2


def test_install_alone_is_a_run_a_training() -> None:
    pytest.importorskip("stable_baselines3")
    pytest.importorskip("tensorboard")
    from rollbook.adapters import tensorboard

    tensorboard.install()
    try:
        for seed in range(2):
            ppo(seed=seed, tensorboard_log="tb").learn(32)
    finally:
        tensorboard.uninstall()
    assert [(book.name, numbers(book, "time/fps") != []) for book in books()] == [("PPO_1", True), ("PPO_2", True)]


# -- transformers


def sft(own_place: Path, seed: int, **more: Any) -> Any:
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def forward(self, x: Any, labels: Any) -> dict[str, Any]:
            out = self.layer(x)
            return {"loss": ((out - labels) ** 2).mean(), "logits": out}

    data = [{"x": torch.ones(2) * i, "labels": torch.ones(1)} for i in range(8)]
    options = {"output_dir": str(own_place / "out"), "max_steps": 2, "logging_steps": 1, "save_strategy": "no"}
    options |= {"use_cpu": True, "disable_tqdm": True, "seed": seed, "report_to": []}
    callbacks = more.pop("callbacks", [])
    args = transformers.TrainingArguments(**{**options, **more})
    return transformers.Trainer(Net(), args, train_dataset=data, eval_dataset=data, callbacks=callbacks)


@pytest.mark.core
def test_trainers_in_one_program_are_a_run_each_and_an_evaluation_goes_on(own_place: Path) -> None:
    pytest.importorskip("transformers")
    from rollbook.adapters.trl import register

    register()
    for seed in (0, 0, 1):
        trainer = sft(own_place, seed, report_to=["rollbook"])
        trainer.train()
        assert books()[-1].status == "finished"
    assert [(book.seed, book.status) for book in books()] == [(0, "finished"), (0, "finished"), (1, "finished")]
    assert [book.metrics(["loss"], x="step")["step"].to_pylist() for book in books()] == [[1, 2]] * 3
    trainer.evaluate()
    assert [len(book.attempts) for book in books()] == [1] * 3
    assert len(numbers(books()[-1], "eval_loss")) == 1
    assert books()[-1].status == "finished"


@pytest.mark.parametrize("evaluates", [False, True])
def test_a_name_and_a_callback_store_each_number_once(
    evaluates: bool, own_place: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """Also if an evaluation before `train` has opened the run, and ended it."""
    pytest.importorskip("transformers")
    from rollbook.adapters.trl import RollbookCallback, register

    register()
    trainer = sft(own_place, 0, report_to=["rollbook"], callbacks=[RollbookCallback()])
    if evaluates:
        trainer.evaluate(trainer.train_dataset)
    trainer.train()
    (book,) = books()
    assert len(numbers(book, "loss")) == 2
    assert len(book.attempts) == 1
    assert any("two RollbookCallbacks" in str(one.message) for one in recwarn.list)


def test_tensorboard_and_the_callback_store_each_number_once(own_place: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("tensorboard")
    from rollbook.adapters import tensorboard
    from rollbook.adapters.trl import RollbookCallback

    tensorboard.install()
    try:
        sft(own_place, 0, report_to=["tensorboard"], callbacks=[RollbookCallback()]).train()
    finally:
        tensorboard.uninstall()
    (book,) = books()
    assert len(numbers(book, "loss")) == 2
    assert "train/loss" not in [*book.keys()]


# -- Lightning


def lightning_model() -> tuple[Any, Any]:
    pl = pytest.importorskip("lightning.pytorch")
    torch = pytest.importorskip("torch")

    class Model(pl.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(2, 1)

        def training_step(self, batch: Any, index: int) -> Any:
            loss = self.layer(batch).mean()
            self.log("loss", loss)
            return loss

        def test_step(self, batch: Any, index: int) -> None:
            self.log("tested", self.layer(batch).mean())

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    return Model(), torch.utils.data.DataLoader(torch.ones(4, 2), batch_size=2)


def test_lightnings_loggers_are_a_run_each_and_a_test_goes_on(own_place: Path) -> None:
    pl = pytest.importorskip("lightning.pytorch")
    from rollbook.adapters.lightning import RollbookLogger

    quiet = {"enable_progress_bar": False, "enable_checkpointing": False, "enable_model_summary": False}
    for _ in range(3):
        trainer = pl.Trainer(max_epochs=1, logger=RollbookLogger("p"), log_every_n_steps=1, accelerator="cpu", **quiet)
        model, data = lightning_model()
        trainer.fit(model, data)
        assert books()[-1].status == "finished"
    trainer.test(model, data, verbose=False)
    assert [(book.status, len(book.attempts), len(numbers(book, "loss"))) for book in books()] == [
        ("finished", 1, 2),
        ("finished", 1, 2),
        ("finished", 1, 2),
    ]
    assert len(numbers(books()[-1], "tested")) == 1
