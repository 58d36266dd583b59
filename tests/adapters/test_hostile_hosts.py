"""Every hook that a host calls, with a host that answers every question with an exception, or is something else.

Nothing reaches the training, and the run goes on. A new hook is found by itself: only `NOT_HOOKS` are left out.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import rollbook
from hostile import HOSTS, Endless, Hollow, Raises

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
    "lightzero collector": lambda run: _made("lightzero.CollectorLog", run),
    "lightzero evaluator": lambda run: _made("lightzero.EvaluatorLog", run),
    "lightzero learner": lambda run: _made("lightzero.LearnerLog", run),
    "lightzero buffer": lambda run: _made("lightzero.BufferLog", run),
    "lightzero writer": lambda run: _made("lightzero.EventWriter", run),
    "lightzero text": lambda run: _made("lightzero.TextLogger", "log", "learner"),
    "lightzero middleware": lambda run: _Functions(_made("lightzero.online_logger", run)),
    "lightzero bridge": lambda run: _of_lightzero(run),
    "lightning": lambda run: _of_lightning(run),
    "slime": lambda run: _Functions(_made_name("slime.log_rollout_data"), _made_name("slime.log_eval_rollout_data")),
    "rllib": lambda run: _of_rllib(run)[0],
    "rllib tune": lambda run: _of_rllib(run)[1],
    "rllib old loggers": lambda run: _of_rllib(run)[2],
}
NOT_HOOKS = frozenset(
    {
        "get_tabulate_vars",
        "get_tabulate_vars_hor",
        "download",
        "enable_event_steps",
        "join",
        "prepare_dict_for_logging",
        "restore_logged_data",
        "get_stats",
    }
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


def _of_lightzero(run: Any) -> Any:
    """What stands between LightZero's workers and their own methods, which run once whatever the workers answer."""
    from rollbook.adapters.lightzero import Experiment, bridge
    from rollbook.adapters.lightzero.collecting import CollectorBridge
    from rollbook.adapters.lightzero.evaluating import EvaluatorBridge
    from rollbook.adapters.lightzero.learning import LearnerBridge
    from rollbook.adapters.lightzero.loading import watched

    experiment = Experiment(run)
    collector, learner = CollectorBridge(experiment), LearnerBridge(experiment)
    evaluator = EvaluatorBridge(experiment, learner)
    called: list[str] = []

    def once(wrap: Any, parameters: int) -> Any:
        wrapped = wrap(lambda *_, **__: called.append("theirs"))

        def call(*arguments: Any) -> None:
            called.clear()
            wrapped(*arguments[:parameters])
            assert called == ["theirs"]

        return [lambda a: call(a), lambda a, b: call(a, b), None, lambda a, b, c, d: call(a, b, c, d)][parameters - 1]

    return _Functions(
        once(collector.around_collect, 1),
        once(collector.around_output, 2),
        once(evaluator.around, 4),
        once(learner.saving, 2),
        once(lambda theirs: watched(theirs, experiment), 1),
        once(lambda theirs: bridge._compile_config(theirs, experiment), 1),
        learner.show,
    )


def _of_rllib(run: Any) -> list[Any]:
    """The callback of an algorithm under way, that of an experiment, and what runs loggers of before."""
    spec = importlib.util.spec_from_file_location("fakes", Path(__file__).with_name("rllib") / "fakes.py")
    assert spec is not None
    assert spec.loader is not None
    fakes = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fakes)
    place, options = Path(run.folder).parent.parent, {"sinks": (), "keeper": "inline", "rules": ()}
    with pytest.MonkeyPatch.context() as patch:
        rllib = fakes.install(patch)
        callback = rllib.callbacks(place, transitions=True, episode_data=True, **options)()
        callback.on_algorithm_init(algorithm=fakes.Algorithm(place / "logs", runner := fakes.EnvRunner()))
        callback.on_episode_start(episode=fakes.Single(), env_runner=runner, env_index=0)
        tune, old = rllib.RollbookTune(place, episode_data=True, **options), rllib.OldLoggers(rllib.RollbookLogger)
        tune.log_trial_start(fakes.Trial(place))
    return [callback, tune, old]


def _of_lightning(run: Any) -> Any:
    package = "lightning.pytorch"
    names = {"Logger": object, "rank_zero_experiment": lambda method: method}
    rank = ModuleType(f"{package}.utilities.rank_zero")
    vars(rank)["rank_zero_only"] = lambda method: method
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, f"{package}.utilities", ModuleType("utilities"))
        patch.setitem(sys.modules, rank.__name__, rank)
        patch.setattr("importlib.util.find_spec", lambda name: name if name == "lightning" else None)
        logger = _beside(f"{package}.loggers.logger", names, "lightning.RollbookLogger")
    logger._given = run
    return logger


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


def _made_name(name: str) -> Any:
    module, _, made = name.partition(".")
    return getattr(importlib.import_module(f"rollbook.adapters.{module}"), made)


def _made(name: str, *arguments: Any, **named: Any) -> Any:
    return _made_name(name)(*arguments, **named)


def _hooks(adapter: Any) -> list[str]:
    names = [name for name in dir(adapter) if not name.startswith("_") and name not in NOT_HOOKS]
    hooks = [name for name in names if inspect.isroutine(getattr(adapter, name))]
    return [*hooks, *(["__call__"] if "__call__" in vars(type(adapter)) else [])]


def _asked(hook: Any, host: Callable[[], Any]) -> Any:
    """Call a hook with a host in the place of each of its arguments."""
    parameters = inspect.signature(hook).parameters.values()
    named = {each.name: host() for each in parameters if each.kind is each.KEYWORD_ONLY}
    return hook(
        *[host() for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.POSITIONAL_ONLY)], **named
    )


def test_a_failure_inside_of_mrls_log_is_counted_and_does_not_reach_the_training(new_run: Callable[[], Any]) -> None:
    from rollbook.adapters.mrl import Log

    log = Log(run := new_run())
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
def new_run(tmp_path: Path, nothing_is_sealed: None) -> Iterator[Callable[[], Any]]:
    """Opens runs, one after the other; whatever is open at the end is finished."""
    runs = []

    def new() -> Any:
        runs.append(rollbook.init("p", "r", dir=tmp_path, sinks=(), keeper="inline", rules=()))
        return runs[-1]

    yield new
    for run in runs:
        run.finish()


@pytest.mark.filterwarnings("ignore::rollbook.errors.RollbookWarning")
@pytest.mark.parametrize("name", list(ADAPTERS))
def test_no_hook_raises_whatever_the_host_answers(new_run: Callable[[], Any], name: str) -> None:
    """One run hears all hosts, as long as no hook finishes it."""
    runs, raised = [new_run()], {}
    for host, answers in HOSTS.items():
        if runs[-1].status != "running":
            runs.append(new_run())
        adapter = ADAPTERS[name](runs[-1])
        Endless.asked = 0
        for hook in _hooks(adapter):
            try:
                answer = _asked(getattr(adapter, hook), answers)
                if inspect.iscoroutine(answer):
                    asyncio.run(answer)
            except Exception as err:
                raised[f"{hook}, {host}"] = f"{type(err).__name__}: {err}"
        assert Endless.asked < Endless.MOST, "a host is asked for more and more"
        if runs[-1].status == "running":
            runs[-1].log({"after": 1.0})
    assert raised == {}
    runs[-1].finish()
    assert {run.book.status for run in runs} == {"finished"}
