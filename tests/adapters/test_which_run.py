"""Which run an adapter writes to, over all adapters that can open one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook import adapters
from syntax import tree as tree_of


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


def _sb3_configure(**options: Any) -> Any:
    from rollbook.adapters.sb3 import configure

    return configure("logs", ["csv"], **options).output_formats[-1].run


def _sb3_make_output_format(**options: Any) -> Any:
    from rollbook.adapters.sb3 import make_output_format

    return make_output_format("rollbook", "logs", **options).run  # type: ignore[attr-defined]


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
    "sb3.configure": _sb3_configure,
    "sb3.make_output_format": _sb3_make_output_format,
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
    assert (run.seed, run.book.info["tags"]) == (5, ["sweep"])


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
        calls = [
            node
            for node in ast.walk(tree_of(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("find_run", "init", "JoinedRun")
        ]
        if calls:
            assert place.partition("/")[0] in known or place.partition("/")[0] in ELSEWHERE or place in ELSEWHERE, place


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
