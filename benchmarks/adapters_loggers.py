"""What the adapters for Acme, Tianshou, MRL, LightZero, Spinning Up and RLlib cost, beside the framework's own logger.

    .venvs/main/bin/python benchmarks/adapters_loggers.py acme tianshou     (made by scripts/framework_env.py)
    .venvs/mrl/bin/python benchmarks/adapters_loggers.py mrl
    .venvs/lightzero/bin/python benchmarks/adapters_loggers.py lightzero
    ROLLBOOK_SPINNINGUP=<checkout> .venvs/spinningup/bin/python benchmarks/adapters_loggers.py spinningup
    .venvs/rllib/bin/python benchmarks/adapters_loggers.py rllib

Each figure is CPU time per call of this process, both loggers in turn, the median of several rounds, and their ratio.
"""

from __future__ import annotations

import argparse
import gc
import io
import logging
import os
import statistics
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import rollbook
from rollbook.run import current


def open_run(folder: Path) -> Any:
    return rollbook.init("bench", "adapter", dir=folder, sinks=(), keeper="inline")


def cost(call: Callable[[int], Any], n: int) -> float:
    """Microseconds of CPU per call."""
    for i in range(max(3, n // 10)):
        call(i)
    gc.collect()
    start = time.process_time()
    for i in range(n):
        call(i)
    return (time.process_time() - start) / n * 1e6


def compare(what: str, makers: dict[str, Callable[[Path], Callable[[int], Any]]], n: int, rounds: int = 5) -> None:
    """Measure each maker's call in turn and show the medians; the last is ours, ratios are ours to the others."""
    found: dict[str, list[float]] = {name: [] for name in makers}
    for _ in range(rounds):
        for name, make in makers.items():
            with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
                found[name].append(cost(make(Path(folder)), n))
                for run in list(current.opened):
                    run.finish()
    medians = {name: statistics.median(times) for name, times in found.items()}
    ours = medians.popitem()[1]
    beside = ", ".join(f"{name} {value:.1f} µs (ours {ours / value:.2f} x)" for name, value in medians.items())
    print(f"{what}: ours {ours:.1f} µs; {beside}")


def acme() -> None:
    """One record of an environment loop."""
    from acme.utils import loggers as native

    from rollbook.adapters import acme as ours

    def record(i: int) -> dict[str, Any]:
        return {
            "episode_length": 20,
            "episode_return": -3.25,
            "steps_per_second": 900.5,
            "episodes": i,
            "steps": 20 * i,
        }

    compare(
        "acme, one record",
        {
            "CSV": lambda folder: (lambda logger: lambda i: logger.write(record(i)))(native.CSVLogger(str(folder))),
            "rollbook": lambda folder: (lambda logger: lambda i: logger.write(record(i)))(
                ours.RollbookLogger(open_run(folder), "train_loop")
            ),
        },
        2000,
    )


def tianshou() -> None:
    """One gradient step of a trainer, and one collect."""
    import numpy as np
    from tianshou.utils import TensorboardLogger
    from torch.utils.tensorboard import SummaryWriter

    from rollbook.adapters.tianshou import RollbookLogger

    stat = {"mean": 20.0, "std": 1.0, "max": 22.0, "min": 18.0}
    collect = {
        "n_collected_episodes": 1,
        "n_collected_steps": 20,
        "collect_time": 0.1,
        "collect_speed": 200.0,
        "returns": np.array([20.0]),
        "returns_stat": stat,
        "lens": np.array([20]),
        "lens_stat": stat,
    }
    update = {"train_time": 0.01, "smoothed_loss": {"loss": 0.5}, "loss": 0.4}
    native = lambda folder: TensorboardLogger(SummaryWriter(str(folder)), 1, 1, 1, 1)  # noqa: E731
    ours = lambda folder: RollbookLogger(open_run(folder), 1, 1, 1, 1)  # noqa: E731
    for what, verb, data in (("update", "log_update_data", update), ("collect", "log_training_data", collect)):
        compare(
            f"tianshou, one {what}",
            {
                "TensorBoard": lambda f, v=verb, d=data: (lambda log: lambda i: getattr(log, v)(d, i))(native(f)),  # type: ignore[misc]
                "rollbook": lambda f, v=verb, d=data: (lambda log: lambda i: getattr(log, v)(d, i))(ours(f)),  # type: ignore[misc]
            },
            500,
        )


def mrl() -> None:
    """A batch of 100 new items, early and after 20,000 of them."""
    from mrl.train import callback, log

    from rollbook.adapters import mrl as ours

    class Buffer(callback.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__("buffer", order=0)

        def __len__(self) -> int:
            return 0

    class Source(callback.Callback):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__("source")
            self.n = 0

        def sample_batch(self) -> None:
            state = self.environment.batch_state
            state.samples += [f"C{self.n + i}" for i in range(100)]
            state.sources += ["live"] * 100
            self.n += 100

    def stepping(made: Any, batches_before: int) -> Callable[[int], Any]:
        env = ours.Environment(cbs=[Source()], buffer=Buffer(), log=made)
        env.bs = env.sl = 100
        made.report = 1_000_000
        for _ in range(batches_before):
            env.step()
        return lambda i: env.step()

    for before in (0, 200):
        compare(
            f"mrl, a batch of 100 items after {100 * before:,}",
            {
                "MRL": lambda folder, b=before: stepping(log.Log(), b),  # type: ignore[misc]
                "rollbook": lambda folder, b=before: stepping(ours.Log(open_run(folder)), b),  # type: ignore[misc]
            },
            40,
            rounds=3,
        )


def lightzero() -> None:
    """A learner's table of 20 values, text and events."""
    from ding.utils import build_logger

    from rollbook.adapters.lightzero import LearnerLog

    values = {f"loss_{i}": 0.5 * i for i in range(20)}

    def native(folder: Path) -> Callable[[int], Any]:
        logging.disable(logging.NOTSET)
        text, events = build_logger(str(folder), "learner")
        text.propagate = False

        def show(i: int) -> None:
            text.info(f"=== Training Iteration {i} Result ===")
            text.info(text.get_tabulate_vars_hor(values))
            for name, value in values.items():
                events.add_scalar(f"learner_iter/{name}_avg", value, i)
                events.add_scalar(f"learner_step/{name}_avg", value, 10 * i)

        return show

    def ours(folder: Path) -> Callable[[int], Any]:
        log = LearnerLog(open_run(folder), show_freq=1)
        return lambda i: log.log(values, i, 10 * i)

    compare("lightzero, one table of 20 values", {"DI-engine": native, "rollbook": ours}, 300)


def spinningup() -> None:
    """An epoch: 400 values stored, 20 episodes, the reductions, one dump."""
    import numpy as np

    from rollbook.adapters.spinningup import EpochLogger

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "frameworks"))
    from spinup_program import enter  # type: ignore[import-not-found]

    checkout = os.environ.get("ROLLBOOK_SPINNINGUP")
    if checkout is None:
        raise SystemExit("set ROLLBOOK_SPINNINGUP to a checkout of openai/spinningup")
    enter(Path(checkout))
    from spinup.utils.logx import EpochLogger as Native  # type: ignore[import-not-found]

    def epochs(logger: Any) -> Callable[[int], Any]:
        value = np.array([0.5], dtype=np.float32)

        def epoch(i: int) -> None:
            for t in range(400):
                logger.store(VVals=value)
                if t % 20 == 19:
                    logger.store(EpRet=20.0, EpLen=20)
            logger.log_tabular("Epoch", i)
            logger.log_tabular("EpRet", with_min_and_max=True)
            logger.log_tabular("EpLen", average_only=True)
            logger.log_tabular("VVals", with_min_and_max=True)
            logger.log_tabular("TotalEnvInteracts", 400 * (i + 1))
            logger.dump_tabular()

        return epoch

    compare(
        "spinningup, an epoch of 400 steps",
        {
            "EpochLogger, which keeps the means": lambda folder: epochs(Native(str(folder / "native"))),
            "rollbook without the raw values": lambda folder: epochs(
                EpochLogger(str(folder / "ours"), run=open_run(folder), raw=False)
            ),
            "rollbook": lambda folder: epochs(EpochLogger(str(folder / "ours"), run=open_run(folder))),
        },
        40,
    )


def rllib() -> None:
    """One result of 90 numbers, logged by the driver."""
    from ray.tune.logger import CSVLoggerCallback, JsonLoggerCallback, TBXLoggerCallback

    from rollbook.adapters.rllib import RollbookTune

    result: dict[str, Any] = {"config": {f"option_{i}": i for i in range(200)}}  # RLlib's results hold all of it
    result["learners"] = {"default_policy": {f"value_{i}": 0.25 * i for i in range(40)}}
    result["env_runners"] = {f"value_{i}": 1.5 * i for i in range(40)} | {"num_env_steps_sampled_lifetime": 1}
    result["timers"] = {f"seconds_{i}": 0.01 * i for i in range(10)}

    class Trial:
        trial_id, status, checkpoint, error_file = "00000", "RUNNING", None, None
        latest_checkpoint_result = None

        def __init__(self, folder: Path) -> None:
            self.local_path, self.config, self.evaluated_params = str(folder), dict(result["config"]), {}
            self.storage = types.SimpleNamespace(experiment_dir_name="exp", trial_dir_name=folder.name)
            self.last_result: dict[str, Any] = {}

        def init_local_path(self) -> None:
            Path(self.local_path).mkdir(parents=True, exist_ok=True)

        def get_trainable_cls(self) -> type:
            return object

    def results(make: Callable[[Path], Any]) -> Callable[[Path], Callable[[int], Any]]:
        def started(folder: Path) -> Callable[[int], Any]:
            trial, logger = Trial(folder), make(folder)
            logger.log_trial_start(trial)

            def log(i: int) -> None:
                told = {**result, "training_iteration": i + 1, "num_env_steps_sampled_lifetime": 100 * (i + 1)}
                trial.last_result = told
                logger.log_trial_result(i, trial, told)

            return log

        return started

    compare(
        "rllib, one result of 90 numbers",
        {
            "JSON": results(lambda _: JsonLoggerCallback()),
            "CSV": results(lambda _: CSVLoggerCallback()),
            "TensorBoard": results(lambda _: TBXLoggerCallback()),
            "rollbook": results(lambda folder: RollbookTune(folder, sinks=(), keeper="inline")),
        },
        300,
    )


def main() -> None:
    choices = {
        "acme": acme,
        "tianshou": tianshou,
        "mrl": mrl,
        "lightzero": lightzero,
        "spinningup": spinningup,
        "rllib": rllib,
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("adapters", nargs="+", choices=list(choices))
    warnings.simplefilter("ignore")
    for name in parser.parse_args().adapters:
        choices[name]()


if __name__ == "__main__":
    main()
