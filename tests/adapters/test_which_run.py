"""Which run an adapter writes to, over all adapters that can open one."""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rollbook
from rollbook import adapters
from rollbook.adapters._run import end_training, find_run, go_on
from rollbook.run import training
from syntax import tree as tree_of
from waiting import until


def _acme(**options: Any) -> Any:
    from rollbook.adapters.acme import RollbookLogger

    return RollbookLogger(label="learner", **options).run


def _acme_factory(**options: Any) -> Any:
    from rollbook.adapters.acme import LoggerFactory

    return LoggerFactory(time_delta=None, **options)("learner").run  # type: ignore[attr-defined]


def _acme_default(**options: Any) -> Any:
    from rollbook.adapters.acme import make_default_logger

    return make_default_logger("learner", save_data=False, **options)._book.run  # type: ignore[attr-defined]


def _acme_stack(**options: Any) -> Any:
    from rollbook.adapters.acme import make_logger

    return make_logger(None, "learner", **options)._book.run


def _sb3_output(**options: Any) -> Any:
    from rollbook.adapters.sb3 import RollbookOutputFormat

    return RollbookOutputFormat(**options).run


def _spinningup(**options: Any) -> Any:
    from rollbook.adapters.spinningup import EpochLogger

    return EpochLogger("logs/vpg_s3", **options).run


def _tensorboard(**options: Any) -> Any:
    from rollbook.adapters.tensorboard import SummaryWriter

    return SummaryWriter("logs/ppo", events=False, **options).run


def _tianshou(**options: Any) -> Any:
    from rollbook.adapters.tianshou import RollbookLogger

    return RollbookLogger(**options).run


def _tianshou_factory(**options: Any) -> Any:
    from rollbook.adapters.tianshou import LoggerFactory

    return LoggerFactory(**options).create_logger("logs", "experiment").run


def _lightzero(**options: Any) -> Any:
    from rollbook.adapters.lightzero import build_logger

    return build_logger("logs", "learner", need_text=False, **options)[1]._run  # type: ignore[union-attr]


OPENERS: dict[str, Callable[..., Any]] = {
    "acme.RollbookLogger": _acme,
    "acme.LoggerFactory": _acme_factory,
    "acme.make_default_logger": _acme_default,
    "acme.make_logger": _acme_stack,
    "lightzero.build_logger": _lightzero,
    "sb3.RollbookOutputFormat": _sb3_output,
    "spinningup.EpochLogger": _spinningup,
    "tensorboard.SummaryWriter": _tensorboard,
    "tianshou.RollbookLogger": _tianshou,
    "tianshou.LoggerFactory": _tianshou_factory,
}

ACMES = ("acme.make_default_logger", "acme.make_logger")
"""Functions with Acme's and the article's arguments: they keep a book only if they are told to."""

ELSEWHERE = {
    "accelerate.py": "tests/adapters/accelerate: Accelerate says when",
    "lightning.py": "tests/adapters/lightning: opens its run where a training begins",
    "mrl": "tests/adapters/mrl",
    "optuna.py": "tests/adapters/optuna",
    "rsl_rl.py": "tests/adapters/rsl_rl: its arguments are a configuration's",
    **{
        f"{name}.py": "tests/adapters/test_loops.py"
        for name in (
            "skrl",
            "rl_games",
            "d3rlpy",
            "elements",
            "stoix",
            "pufferlib",
            "torchrl",
            "brax",
            "keras",
        )
    },
    **{
        f"{name}.py": "tests/adapters/test_rollout_hosts.py"
        for name in ("slime", "prime_rl", "nemo_rl", "tinker", "openrlhf")
    },
    "rllib": "tests/frameworks/test_rllib_real.py: a run an algorithm, opened by its callback",
    "sb3/callback.py": "tests/frameworks/test_sb3.py: opens its run where a training begins",
    "trl": "tests/frameworks/test_trl_real.py: opens its run where a training begins",
    "verl.py": "tests/adapters/verl: its arguments are a configuration's",
}
"""Adapters that open a run only inside of a framework, and where that is tested."""


@pytest.fixture
def options(tmp_path: Path) -> dict[str, Any]:
    return {"dir": tmp_path / "books", "sinks": (), "keeper": "inline", "tags": ["sweep"], "seed": 5}


@pytest.mark.parametrize("name", list(OPENERS))
def test_run_options_are_the_arguments_of_init(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    run = OPENERS[name](run_options=options)
    assert run.folder.is_relative_to(tmp_path / "books")
    assert (run.seed, run.book.info.tags) == (5, ["sweep"])


@pytest.mark.parametrize("name", list(OPENERS))
def test_without_options_the_open_run_is_joined(name: str, run: Any) -> None:
    if name == "tianshou.LoggerFactory":
        pytest.skip("a run an experiment: it never joins")
    if name in ACMES:
        assert OPENERS[name](run_options={}).id == run.id
    else:
        assert OPENERS[name]().id == run.id


@pytest.mark.parametrize("name", [name for name in OPENERS if name not in ACMES])
def test_project_can_be_named(name: str, options: dict[str, Any]) -> None:
    assert OPENERS[name](project="cartpole", run_options=options).project == "cartpole"


def test_every_adapter_that_opens_runs_is_held_to_this() -> None:
    home = Path(next(iter(adapters.__path__)))
    known = {name.partition(".")[0] for name in OPENERS}
    for path in sorted(home.rglob("*.py")):
        place = path.relative_to(home).as_posix()
        if path.name.startswith("_") or place.startswith("_"):
            continue
        source = path.read_text(encoding="utf-8")
        if not re.search(r"\b(find_run|init|JoinedRun)\(", source):
            continue
        calls = [
            node
            for node in ast.walk(tree_of(source))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("find_run", "init", "JoinedRun")
        ]
        if calls:
            assert place.partition("/")[0] in known or place.partition("/")[0] in ELSEWHERE or place in ELSEWHERE, place


pytestmark = pytest.mark.usefixtures("nothing_is_sealed", "sb3_host")  # which run it is, is said by its page

LOOPS = [name for name in OPENERS if not name.startswith("lightzero")]  # its loggers are components of one experiment


def test_what_ended_before_the_next_training_begins_is_finished_then_even_if_its_objects_refer_to_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    from rollbook.adapters.tianshou import RollbookLogger

    runs: list[Any] = []
    for _ in range(3):
        logger: Any = RollbookLogger()
        logger.itself = logger
        runs.append(logger.run)
        del logger
        assert [run.status for run in runs] == ["finished"] * (len(runs) - 1) + ["running"]
    assert len({run.id for run in runs}) == 3
    runs[-1].finish()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("DQN_20261128232253", "DQN"),
        ("carts_28-23-22-53", "carts"),
        ("26-11-28_23-22-53-123456_PPO", "PPO"),
        ("PPO_CartPole-v1_2026-11-28_23-22-53", "PPO_CartPole-v1"),
        ("2026-11-28_23-22-53", "2026-11-28_23-22-53"),
        ("ppo-2-3", "ppo-2-3"),
        ("sac_1e-3_64-64", "sac_1e-3_64-64"),
        ("HalfCheetah-v5", "HalfCheetah-v5"),
    ],
)
def test_a_moment_in_a_frameworks_name_is_left_out_so_that_seeds_have_one_name(
    name: str, kept: str, options: dict[str, Any]
) -> None:
    run, _ = find_run(None, project="p", name=name, user=SimpleNamespace(), defaults=options)
    assert run is not None
    assert run.name == kept
    run.finish()
    named, _ = find_run(None, project="p", name="n", user=SimpleNamespace(), options={**options, "name": name})
    assert named is not None
    assert named.name == name, "what the program says stays"
    named.finish()


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_over_trainings_makes_a_run_for_each(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    runs = [OPENERS[name](run_options={"keeper": "inline"}) for _ in range(3)]
    assert len({run.id for run in runs}) == 3
    until(lambda: all(run.status != "running" for run in runs[:2]), "the ends of those whose loggers are gone")
    for run in runs:
        run.finish()


def test_a_training_that_says_otherwise_than_the_callers_run_gets_its_own_and_one_line_says_so(
    run: Any, options: dict[str, Any], recwarn: pytest.WarningsRecorder
) -> None:
    first, second = SimpleNamespace(), SimpleNamespace()
    known: dict[str, Any] = {"project": "p", "name": "n", "kind": "kind", "defaults": {**options, "seed": None}}
    assert find_run(None, user=first, seed=1, algorithm="PPO", **known)[0] is run
    assert find_run(None, user=first, seed=1, algorithm="PPO", **known)[0] is run, "the same training joins again"
    for says in ({"algorithm": "A2C"}, {"seed": 2}, {}):
        other, opened = find_run(None, user=second, **{**says, **known})
        assert other is not None
        assert (opened, other.id != run.id) == (True, True)
        end_training(other, second)
        assert other.status == "finished"
    words = [str(warning.message) for warning in recwarn.list]
    assert [word.partition("open: ")[2].partition(".")[0] for word in words] == [
        "it says algorithm PPO, and this training says algorithm A2C",
        "it says seed 1, and this training says seed 2",
        "it has another training of this kind",
    ]
    assert all(run.id in word and "recorded as run" in word.partition(run.id)[0] for word in words)


@pytest.mark.parametrize(
    ("config", "says", "joins"),
    [
        ({"algo": "ppo", "env": "CartPole-v1"}, {"algorithm": "PPO", "environment": "CartPole-v1"}, True),
        ({"algo": "ppo"}, {"algorithm": "A2C"}, False),
        ({"env_id": "CartPole-v1"}, {"environment": "Pendulum-v1"}, False),
        ({"algo": "my own", "env": "atari"}, {"algorithm": "PPO", "environment": "ALE/Pong-v5"}, True),
        ({"seed": 3}, {}, True),
    ],
)
def test_a_configuration_contradicts_only_by_names_that_everybody_uses(
    config: dict[str, Any], says: dict[str, Any], joins: bool, options: dict[str, Any]
) -> None:
    with rollbook.init("p", "n", config=config, **{**options, "seed": None}) as run:
        found, opened = find_run(None, project="p", name="n", user=options, defaults=options, kind="k", **says)
        assert found is not None
        assert (found.id == run.id) is joins
        if opened:
            found.finish()


def test_a_second_door_joins_the_training_that_an_adapter_records_and_other_threads_do_not(
    options: dict[str, Any],
) -> None:
    first, second, third = SimpleNamespace(), SimpleNamespace(), SimpleNamespace()
    run, opened = find_run(None, project="p", name="n", user=first, kind="one", defaults=options)
    assert opened
    assert run is not None
    assert find_run(None, project="p", name="n", user=second, kind="two", defaults=options)[0] is run
    beside: list[Any] = []
    thread = threading.Thread(
        target=lambda: beside.append(find_run(None, project="p", name="n", user=third, kind="two", defaults=options)[0])
    )
    thread.start()
    thread.join()
    assert beside[0].id != run.id
    end_training(run, second)
    assert run.status == "running", "it belongs to the first"
    end_training(run, first)
    assert run.status == "finished"
    again = go_on(run)
    assert (again.id, again.attempt, again.status) == (run.id, 1, "running")
    end_training(again, first)
    beside[0].finish()


def test_the_loggers_of_an_experiment_share_the_run_that_the_first_one_opened(options: dict[str, Any]) -> None:
    from rollbook.adapters.acme import LoggerFactory, RollbookLogger

    first = RollbookLogger(label="train", run_options=options)
    second = RollbookLogger(label="eval", run_options=options)
    third = LoggerFactory(time_delta=None)("learner")
    assert first.run is second.run is third.run  # type: ignore[attr-defined]
    first.close()
    first.close()
    second.close()
    assert first.run.status == "running"
    third.close()
    assert first.run.status == "finished"
    with pytest.raises(rollbook.errors.BadInput, match="leave the logger out"):
        RollbookLogger(False)


def test_a_run_that_is_being_ended_because_its_adapter_is_gone_is_joined_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLBOOK_DIR", str(tmp_path / "runs"))
    started: list[Any] = []
    monkeypatch.setattr(training, "start_new_thread", lambda finish, arguments: started.append((finish, arguments)))
    first = _acme()
    until(lambda: started or training.end_if_left(first))
    assert first.status == "running"
    assert _acme().id != first.id
    for finish, arguments in started:
        finish(*arguments)
