"""What the adapters for Acme, Tianshou, MRL and LightZero cost, beside the framework's own logger.

    .venvs/main/bin/python benchmarks/adapters_loggers.py acme tianshou     (made by scripts/framework_env.py)
    .venvs/mrl/bin/python benchmarks/adapters_loggers.py mrl
    .venvs/lightzero/bin/python benchmarks/adapters_loggers.py lightzero

Each figure is CPU time per call of this process, both loggers in turn, the median of several rounds, and their ratio.
"""

from __future__ import annotations

import argparse
import gc
import io
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

import rollbook
from rollbook import _session


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
                for run in list(_session._opened):
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
        "n_collected_episodes": 1, "n_collected_steps": 20, "collect_time": 0.1, "collect_speed": 200.0,
        "returns": np.array([20.0]), "returns_stat": stat, "lens": np.array([20]), "lens_stat": stat,
    }  # fmt: skip
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


def main() -> None:
    choices = {"acme": acme, "tianshou": tianshou, "mrl": mrl, "lightzero": lightzero}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("adapters", nargs="+", choices=list(choices))
    warnings.simplefilter("ignore")
    for name in parser.parse_args().adapters:
        choices[name]()


if __name__ == "__main__":
    main()
