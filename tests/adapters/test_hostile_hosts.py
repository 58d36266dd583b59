"""Every hook that a host calls, with a host that answers every question with an exception, or is something else.

Nothing reaches the training, and the run goes on. A new hook is found by itself: only `NOT_HOOKS` are left out.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

import rollbook


class Raises:
    """Every question to it is an exception."""

    def _no(self, *_: object, **__: object) -> Any:
        raise RuntimeError("the host refuses")

    __getattr__ = __str__ = __repr__ = __len__ = __iter__ = __getitem__ = __bool__ = __float__ = __int__ = _no
    __index__ = __call__ = __eq__ = __ne__ = __lt__ = __gt__ = __contains__ = __reduce__ = __fspath__ = _no
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __mod__ = __enter__ = _no
    __hash__ = object.__hash__


class Endless:
    """Whatever is asked of it is one more of its kind, as of a mock: whoever looks for the innermost is never through.

    Attributes:
      asked: how often, since the test began. More than `MOST` is without an end.
    """

    MOST = 20_000
    asked = 0

    def __getattr__(self, name: str) -> Any:
        Endless.asked += 1
        if name.startswith("__") or Endless.asked > self.MOST:
            raise AttributeError(name)
        return Endless()

    def __call__(self, *_: object, **__: object) -> Any:
        return self.__getattr__("answer")


class Hollow:
    """It has nothing."""

    __slots__ = ()


HOSTS: dict[str, Callable[[], Any]] = {
    "raises": Raises, "hollow": Hollow, "none": lambda: None, "number": lambda: -1.5, "text": lambda: "text",
    "endless": Endless, "mock": MagicMock,
    "list": lambda: [Raises()], "dict": lambda: {"a": Raises(), "b": Hollow()},
}  # fmt: skip

ADAPTERS: dict[str, Callable[[Any], Any]] = {
    "d3rlpy": lambda run: _made("d3rlpy.RollbookAdapterFactory", run).create(Hollow(), "name", 10),
    "nemo_rl": lambda run: _made("nemo_rl.RollbookLogger", run),
    "openrlhf": lambda run: _made("openrlhf.RollbookLogger", None, run),
    "optuna": lambda run: _made("optuna.RollbookCallback", run),
    "prime_rl": lambda run: _made("prime_rl.RollbookMonitor", None, run),
    "pufferlib": lambda run: _made("pufferlib.RollbookLogger", run),
    "stoix": lambda run: _made("stoix.RollbookLogger", run=run),
    "tinker": lambda run: _made("tinker.RollbookLogger", run),
    "elements": lambda run: _made("elements.RollbookOutput", run),
    "brax": lambda run: _Functions(_made("brax.progress", run), _made("brax.checkpoints", run)),
    "acme": lambda run: _made("acme.RollbookLogger", run),
    "tianshou": lambda run: _made("tianshou.RollbookLogger", run),
    "verl": lambda run: _made("verl.Backend", "project", "name", run=run),
    "rsl_rl": lambda run: _beside("rsl_rl.utils.log_writer", {"LogWriter": object}, "rsl_rl.RollbookWriter", "f", run),
    "torchrl": lambda run: _beside(
        "torchrl.record.loggers.common", {"Logger": _Base}, "torchrl.RollbookLogger", "n", None, run
    ),
    "trl": lambda run: _beside("transformers", {"TrainerCallback": object}, "trl.RollbookCallback", run),
    "rl_games": lambda run: _of_rl_games(run),
    "skrl": lambda run: _of_skrl(run),
    "keras": lambda run: _beside(
        "keras", {"callbacks": SimpleNamespace(Callback=_Callback)}, "keras.RollbookCallback", run
    ),
    "spinningup": lambda run: _made("spinningup.EpochLogger", None, run=run),
    "tensorboard": lambda run: _made("tensorboard.SummaryWriter", "tb", run=run, events=False),
}
NOT_HOOKS = frozenset(
    {"download", "enable_event_steps", "join", "prepare_dict_for_logging", "restore_logged_data", "get_stats"}
)


class _Functions:
    def __init__(self, *functions: Callable[..., object]) -> None:
        for number, function in enumerate(functions):
            setattr(self, f"function_{number}", function)


class _Algorithm:
    """An algorithm of rl_games that fails when it is asked how far it is."""

    experiment_name, config = "name", {"env_name": "env"}

    def __init__(self) -> None:
        self.writer = SimpleNamespace(add_scalar=lambda *_: None)
        self.save: Any = lambda _fn: None

    epoch_num = frame = property(Raises._no)


def _of_rl_games(run: Any) -> Any:
    names = {"AlgoObserver": object, "DefaultAlgoObserver": object}
    quiet = SimpleNamespace(after_init=lambda _algo: None)
    observer = _beside("rl_games.common.algo_observer", names, "rl_games.RollbookObserver", quiet, run)
    observer.after_init(algo := _Algorithm())
    return _Functions(algo.writer.add_scalar, algo.save)


class _Callback:
    """The base of Keras's callbacks, whose model and arguments the host sets before it calls a hook."""

    model, params = Raises(), Raises()


def _of_keras(run: Any) -> Any:
    callbacks = SimpleNamespace(Callback=_Callback)
    return _beside("keras", {"callbacks": callbacks}, "keras.RollbookCallback", run)


def _of_skrl(run: Any) -> Any:
    """An agent of skrl whose data, once it is attached, refuse every question."""
    agent = SimpleNamespace(experiment_dir="logs/dqn", write_tracking_data=lambda **_: None, cfg=Raises())
    agent.write_checkpoint = lambda **_: None
    agent.post_interaction = lambda **_: None
    _made("skrl.attach", agent, run)
    agent.tracking_data = agent.memory = agent.experiment_dir = agent.checkpoint_modules = Raises()
    return _Functions(
        lambda: agent.write_tracking_data(timestep=1, timesteps=2),
        lambda: agent.write_checkpoint(timestep=1, timesteps=2),
        lambda: agent.post_interaction(timestep=1, timesteps=2),
    )


class _Base:
    def __init__(self, exp_name: str, log_dir: str) -> None: ...


def _beside(host: str, names: dict[str, Any], name: str, *arguments: Any) -> Any:
    """An object of an adapter that is loaded beside a stand-in for its host, both only while it is made."""
    module, parts = ModuleType(host), host.split(".")
    vars(module).update(names)
    loaded = {".".join(parts[: n + 1]): ModuleType(parts[n]) for n in range(len(parts))} | {host: module}
    adapter, package = name.partition(".")[0], vars(importlib.import_module("rollbook.adapters"))
    own = f"rollbook.adapters.{adapter}"
    before, attribute = _modules_of(own), package.get(adapter)
    with pytest.MonkeyPatch.context() as patch:
        for known, each in loaded.items():
            patch.setitem(sys.modules, known, each)
        try:
            return _made(name, *arguments)
        finally:
            _modules_of(own)
            sys.modules.update(before)
            package.pop(adapter, None)
            package.update({} if attribute is None else {adapter: attribute})


def _modules_of(package: str) -> dict[str, ModuleType]:
    """The loaded modules of a package, which are then loaded no more."""
    names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    return {name: sys.modules.pop(name) for name in names}


def _made(name: str, *arguments: Any, **named: Any) -> Any:
    module, _, made = name.partition(".")
    return getattr(importlib.import_module(f"rollbook.adapters.{module}"), made)(*arguments, **named)


def _hooks(adapter: Any) -> list[str]:
    names = [name for name in dir(adapter) if not name.startswith("_") and name not in NOT_HOOKS]
    hooks = [name for name in names if inspect.isroutine(getattr(adapter, name))]
    return [*hooks, *(["__call__"] if "__call__" in vars(type(adapter)) else [])]


def _arguments(hook: Any, host: Callable[[], Any]) -> list[Any]:
    parameters = inspect.signature(hook).parameters.values()
    return [
        host() for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD or each.kind is each.POSITIONAL_ONLY
    ]


def test_a_failure_inside_of_mrls_log_is_counted_and_does_not_reach_the_training(run: Any) -> None:
    from rollbook.adapters.mrl import Log

    log = Log(run)
    log.pbar = Raises()
    log.environment = SimpleNamespace(batch_state=SimpleNamespace(samples=["a"], rewards=0.0))
    with pytest.warns(rollbook.errors.RollbookWarning, match="could not keep the report"):
        log.before_train()
    log.environment.batch_state.rewards_final = Raises()
    with pytest.warns(rollbook.errors.RollbookWarning, match="could not keep the rewards"):
        log.after_reward_modification()
    run.finish()
    assert run.book.status == "finished"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    with rollbook.init("p", "r", dir=tmp_path, sinks=(), keeper="inline", rules=()) as run:
        yield run


@pytest.mark.filterwarnings("ignore::rollbook.errors.RollbookWarning")
@pytest.mark.parametrize("name", list(ADAPTERS))
@pytest.mark.parametrize("host", list(HOSTS))
def test_no_hook_raises_whatever_the_host_answers(run: Any, name: str, host: str) -> None:
    adapter = ADAPTERS[name](run)
    raised = {}
    Endless.asked = 0
    for hook in _hooks(adapter):
        function = getattr(adapter, hook)
        try:
            answer = function(*_arguments(function, HOSTS[host]))
            if inspect.iscoroutine(answer):
                asyncio.run(answer)
        except Exception as err:
            raised[hook] = f"{type(err).__name__}: {err}"
    assert raised == {}
    assert Endless.asked < Endless.MOST, "a host is asked for more and more"
    if run.status == "running":
        run.log({"after": 1.0})
    run.finish()
    assert run.book.status == "finished"
