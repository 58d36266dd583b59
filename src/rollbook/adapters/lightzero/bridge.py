"""The real LightZero and DI-engine, writing to a run: a `recording` replaces their logging while it lasts.

    with recording(run):
        train_muzero([main_config, create_config], seed=0, max_env_step=100_000)       # LightZero's own

Their entry functions create writers, text loggers and folders themselves and accept none as arguments. So during a
recording, the names of these classes and functions in their modules refer to ours; afterwards they are restored.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rollbook.adapters import _versions
from rollbook.adapters.lightzero.buffer import BufferLog
from rollbook.adapters.lightzero.collecting import CollectorBridge, collector_classes
from rollbook.adapters.lightzero.counters import Counters, as_given
from rollbook.adapters.lightzero.evaluating import EvaluatorBridge, evaluator_classes
from rollbook.adapters.lightzero.experiment import Experiment, experiment_of
from rollbook.adapters.lightzero.learning import LearnerBridge
from rollbook.adapters.lightzero.loading import watched
from rollbook.errors import BadInput
from rollbook.run.origin.config import literal, pretty
from rollbook.system.bill import counted
from rollbook.system.optional import need

LIGHTZERO, DI_ENGINE = ">=0.1,<0.3", ">=0.5,<0.6"
_WHY = "rollbook.adapters.lightzero.recording"


@contextmanager
def recording(
    run: object = None,
    *,
    save_evaluated: bool = True,
    keep_evaluated: int = 3,
    terminal: bool = True,
    compat: bool = False,
    **options: object,
) -> Iterator[Experiment]:
    """Inside this block, LightZero and DI-engine write to a run, and the run's folder is the experiment's.

    Args:
      run: a Run or an Experiment. None uses the current run, or opens one, which ends with the block.
      save_evaluated: save the model of every evaluation, so that `ckpt_name` names a file. With False, only models
        better than all before are saved, and the name is empty if there is no file.
      keep_evaluated: how many of the newest of those models to keep, in addition to the best. Files that the learner
        itself saves stay.
      terminal: also print messages to standard error.
      compat: LightZero's own numbers where they are wrong, and the text layouts of its release 0.2.0.
      options: of `rollbook.init`, if a run has to be opened.
    Raises:
      MissingExtra, UnsupportedVersion: DI-engine is not installed, or not in a supported version.
      BadInput: `keep_evaluated` is below 0.
    """
    _check_versions()
    if run is None and not options:
        experiment = experiment_of(None)
        if experiment.is_recorded:  # by a block before: this is another training
            experiment = Experiment(None)
    elif run is None:
        experiment = Experiment(None, options={"project": "lightzero", **options})
    else:
        experiment = experiment_of(run)
    if keep_evaluated < 0:
        raise BadInput(f"recording(keep_evaluated={keep_evaluated!r}): give a number of checkpoints, 0 or more")
    experiment.terminal, experiment.compat, experiment.is_recorded = terminal, compat, True
    experiment.counters = Counters(experiment.run)
    patches = _Patches()
    finishers: list[Callable[[], None]] = []
    status = "finished"
    try:
        finishers += _install(patches, experiment, save_evaluated, keep_evaluated)
        yield experiment
    except BaseException as err:
        status = "killed" if isinstance(err, KeyboardInterrupt) else "crashed"
        raise
    finally:
        patches.undo()
        for finish in finishers:  # data after the last table
            with counted(experiment.run.count, "lightzero_finish", "the last tables could not be written"):
                finish()
        experiment.counters = as_given
        if experiment.opened_here:
            experiment.run.finish(status)


def _check_versions() -> None:
    _versions.require("DI-engine", DI_ENGINE, extra="lightzero", why=_WHY, also="LightZero")
    version = _versions.installed("LightZero")
    if version is not None:
        _versions.check("LightZero", version, LIGHTZERO)


class _Patches:
    """Names that are replaced for a while."""

    def __init__(self) -> None:
        self._before: list[tuple[object, str, object]] = []

    def set(self, owner: object, name: str, value: object) -> None:
        self._before.append((owner, name, owner.__dict__[name]))
        setattr(owner, name, value)

    def everywhere(self, what: object, instead: object) -> None:
        """Replace `what` with `instead` under every name in their modules."""
        for title, module in list(sys.modules.items()):
            if title.partition(".")[0] not in ("ding", "lzero", "zoo", "dizoo"):
                continue
            for name, value in list(vars(module).items()):
                if value is what:
                    self.set(module, name, instead)

    def undo(self) -> None:
        for owner, name, value in reversed(self._before):
            setattr(owner, name, value)
        self._before = []


def _install(patches: _Patches, experiment: Experiment, save: bool, keep: int) -> list[Callable[[], None]]:
    """Install the replacements; returns the functions to call at the end."""
    _load_modules()
    log_helper = need("ding.utils.log_helper", extra="lightzero", why=_WHY, also="LightZero")
    patches.everywhere(log_helper.build_logger, _build_logger(experiment))
    config = need("ding.config.config", extra="lightzero", why=_WHY, also="LightZero")
    patches.everywhere(config.compile_config, _compile_config(config.compile_config, experiment))
    writer = need("tensorboardX", extra="lightzero", why=_WHY, also="LightZero").SummaryWriter
    patches.everywhere(writer, lambda *_, **__: experiment.events)

    torch = need("torch", extra="lightzero", why=_WHY, also="LightZero")
    patches.set(torch, "load", watched(torch.load, experiment))
    learner = LearnerBridge(experiment)
    hooks = need("ding.worker.learner.learner_hook", extra="lightzero", why=_WHY, also="LightZero")
    patches.set(hooks.LogShowHook, "__call__", lambda hook, engine: learner.show(hook, engine))
    patches.set(hooks.SaveCkptHook, "__call__", learner.saving(hooks.SaveCkptHook.__call__))
    evaluator = EvaluatorBridge(experiment, learner, save, keep)
    for cls in evaluator_classes():
        patches.set(cls, "eval", evaluator.around(cls.eval))
    collector = CollectorBridge(experiment)
    for cls in collector_classes():
        patches.set(cls, "collect", collector.around_collect(cls.collect))
        patches.set(cls, "_output_log", collector.around_output(cls._output_log))
    _install_buffer(patches, experiment)
    return [collector.finish, learner.finish]


def _load_modules() -> None:
    """Import the installed modules that hold the names; a module imported later would be missed."""
    from importlib import import_module

    for name in ("ding.entry", "ding.worker", "lzero.entry", "lzero.worker"):
        try:
            import_module(name)
        except ModuleNotFoundError:
            continue


def _build_logger(experiment: Experiment) -> Callable[..., object]:
    def build_logger(
        path: str, name: str | None = None, need_tb: bool = True, need_text: bool = True, text_level: object = None
    ) -> tuple[object, object]:
        del path, text_level
        return (experiment.text(name or "default") if need_text else None), (experiment.events if need_tb else None)

    return build_logger


def _compile_config(theirs: Callable[..., object], experiment: Experiment) -> Callable[..., object]:
    """Use the run's folder as the experiment's; the two configuration files are written here, from the same data."""

    def compile_config(cfg: Any, *args: object, **kwargs: object) -> Any:
        run, named = experiment.run, None
        with counted(run.count, "lightzero_config", "the experiment's folder could not be set"):
            named = cfg.get("exp_name")
            cfg["exp_name"] = _beside(experiment.folder)
        kwargs.update(save_cfg=False, renew_dir=False)
        compiled: Any = theirs(cfg, *args, **kwargs)
        with counted(run.count, "lightzero_config", "the configuration could not be kept"):
            from rollbook.run.origin.config import plain

            run.config.update(plain(compiled)[0])
            seed, kind = compiled.get("seed"), compiled.get("policy", {}).get("type")
            run.internals.fill_in(
                seed=seed if isinstance(seed, int) else None, algo=kind if isinstance(kind, str) else None
            )
            run.internals.write_about()
            create: Any = kwargs.get("create_cfg")
            if create is not None:
                run.internals.formatted_config(formatted(compiled, create, named))
        return compiled

    return compile_config


def _beside(folder: Path) -> str:
    try:
        return os.path.relpath(folder)
    except ValueError:  # another drive (Windows)
        return str(folder)


def _install_buffer(patches: _Patches, experiment: Experiment) -> None:
    """LightZero's two functions about the game buffer: their numbers become one report of the buffer log."""
    try:
        utils = need("lzero.entry.utils", extra="lightzero", why=_WHY, also="LightZero")
    except ImportError:
        return
    log = BufferLog(experiment)
    gathered = _Gathered()
    slow = _Rarely()

    def memory(train_iter: int, buffer: object, writer: object, *args: object, **kwargs: object) -> None:
        if writer is not None:
            slow(lambda: theirs_memory(train_iter, buffer, gathered, *args, **kwargs))

    def run_time(train_iter: int, buffer: object, writer: object, *args: object, **kwargs: object) -> None:
        if writer is None:
            return
        theirs_time(train_iter, buffer, gathered, *args, **kwargs)
        fields, gathered.values = gathered.values, {}
        with counted(experiment.run.count, "lightzero_buffer", "the state of the buffer could not be kept"):
            if fields:
                have = fields.get("num_of_transitions", fields.get("num_transitions"))
                step = experiment.counters("gradient_step", train_iter)
                log.report(step, current_have=have, **{name.replace("/", "_"): v for name, v in fields.items()})
                for tag, value in gathered.take_native().items():
                    experiment.events.write([({tag: value}, step)])

    theirs_memory = utils.log_buffer_memory_usage
    theirs_time = utils.log_buffer_run_time
    patches.everywhere(theirs_memory, memory)
    patches.everywhere(theirs_time, run_time)


class _Gathered:
    """Replaces a writer and stores its numbers: {name without "Buffer/" and "Task_0/": number}."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._native: dict[str, Any] = {}

    def add_scalar(self, tag: str, value: object, step: int | None = None, **_: object) -> None:
        del step
        self._native[tag] = value
        self.values[tag.removeprefix("Buffer/").removeprefix("Task_0/")] = value

    def take_native(self) -> Mapping[str, object]:
        natives, self._native = self._native, {}
        return natives


class _Rarely:
    """Skips calls that would take more than a twentieth of the time: LightZero measures its whole buffer."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def __call__(self, work: Callable[[], object]) -> None:
        begun = time.monotonic()
        if begun < self._not_before:
            return
        work()
        done = time.monotonic()
        self._not_before = done + 19 * (done - begun)


_HEAD = """# The compiled configuration of this run, in the two parts that LightZero and DI-engine are started with:
#     from formatted_total_config import main_config, create_config
# Written by rollbook.
from easydict import EasyDict
"""


def formatted(compiled: Mapping[str, Any], create: Mapping[str, Any], exp_name: str | None) -> str:
    """Python source that sets `main_config` and `create_config`.

    Args:
      compiled: the result of `compile_config`. The types of its parts go into `create`, as in the files of DI-engine.
      create: the create_config that the training was started with.
      exp_name: the name of the experiment as given; None: the one in `compiled`.
    """
    main = {name: value for name, value in compiled.items() if name != "seed"}
    if exp_name is not None:
        main["exp_name"] = str(exp_name)
    env = {name: value for name, value in main.get("env", {}).items() if name not in ("type", "import_names")}
    policy = {name: value for name, value in main.get("policy", {}).items() if name not in ("type", "import_names")}
    main.update(env=env, policy=policy)
    parts = [_HEAD]
    for name, part in (("main_config", main), ("create_config", create)):
        text = pretty(literal(part)[0], used=len(f"{name} = EasyDict("))
        parts.append(f"\n{name} = EasyDict({text})\n")
    return "".join(parts)
