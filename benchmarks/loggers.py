"""The loggers that are measured, all with the same verbs: open, log, close, and read where they can."""

from __future__ import annotations

import glob
import os
import struct
from time import monotonic_ns
from typing import Any, ClassVar

import numpy as np

SeriesByKey = dict[str, tuple[Any, Any]]


class Logger:
    """The empty loop."""

    def open(self, out: str) -> None:
        """Begin a run in the folder `out`."""

    def log(self, step: int, values: dict[str, float]) -> None:
        """Log one row."""

    def close(self) -> None:
        """Return when all is written."""

    def read(self, out: str, only: str | None = None) -> SeriesByKey:
        """{key: (steps, values)} by the logger's own reader."""
        return {}


class Packing(Logger):
    """The same numbers into memory with `struct`: six clocks, the time, the values and a number. Nothing else."""

    def open(self, out: str) -> None:
        clocks = (0,) * 5
        row: struct.Struct | None = None
        buffer = bytearray()

        def write(step: int, values: dict[str, float]) -> None:
            nonlocal row, buffer
            if row is None:
                row = struct.Struct(f"<7q{len(values)}dQ")
                buffer = bytearray(4096 * row.size)
            row.pack_into(buffer, step % 4096 * row.size, step, *clocks, monotonic_ns(), *values.values(), step)

        self.log = write  # type: ignore[method-assign]


class Rollbook(Logger):
    """rollbook with a keeper process and the default health rules, no sinks."""

    options: ClassVar[dict[str, Any]] = {"sinks": []}

    def open(self, out: str) -> None:
        import rollbook

        self.run = rollbook.init("bench", "run", dir=out, **self.options)
        log = self.run.log

        def write(step: int, values: dict[str, float]) -> None:
            log(values, env_step=step)

        self.log = write  # type: ignore[method-assign]

    def close(self) -> None:
        self.run.finish()

    def read(self, out: str, only: str | None = None) -> SeriesByKey:
        from rollbook.book.book import Book

        (folder,) = glob.glob(os.path.join(out, "bench", "run-*"))
        book = Book(folder)
        if only:
            series = book.series(only, x="env_step")
            return {only: (series.x, series.mean)}
        columns = book.arrays(x="env_step")
        return {key: (columns["env_step"], column) for key, column in columns.items() if key.startswith("m/")}


class RollbookDefaults(Rollbook):
    """rollbook as it comes: the terminal, text files, host metrics, health rules."""

    options: ClassVar[dict[str, Any]] = {}


class RollbookNoRules(Rollbook):
    """The same as `Rollbook` without health rules."""

    options: ClassVar[dict[str, Any]] = {"sinks": [], "rules": ()}


class TensorBoard(Logger):
    """torch's SummaryWriter, read with TensorBoard's EventAccumulator."""

    def open(self, out: str) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(out)

    def log(self, step: int, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        self.writer.close()

    def read(self, out: str, only: str | None = None) -> SeriesByKey:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        (file,) = glob.glob(os.path.join(out, "**", "*tfevents*"), recursive=True)
        accumulator = EventAccumulator(file, size_guidance={"scalars": 0})
        accumulator.Reload()
        found = {}
        for key in [only] if only else accumulator.Tags()["scalars"]:
            events = accumulator.Scalars(key)
            found[key] = (np.array([e.step for e in events]), np.array([e.value for e in events]))
        return found


class Wandb(Logger):
    """W&B in offline mode."""

    def open(self, out: str) -> None:
        import wandb

        settings = wandb.Settings(silent=True, console="off", x_disable_stats=True, x_disable_meta=True)
        self.run = wandb.init(project="bench", dir=out, mode="offline", settings=settings)

    def log(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        self.run.finish()


class RollbookWandb(Wandb):
    """The same calls with rollbook's module in wandb's shape."""

    def open(self, out: str) -> None:
        import rollbook.wandb as wandb

        self.run = wandb.init(project="bench", dir=out)


class Sb3Csv(Logger):
    """Stable-Baselines3's logger with its CSV format."""

    def open(self, out: str) -> None:
        from stable_baselines3.common.logger import configure

        self.logger = configure(out, ["csv"])

    def log(self, step: int, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.logger.record(key, value)
        self.logger.dump(step)

    def close(self) -> None:
        self.logger.close()

    def read(self, out: str, only: str | None = None) -> SeriesByKey:
        import pandas

        table = pandas.read_csv(os.path.join(out, "progress.csv"))
        steps = np.arange(len(table))
        return {key: (steps, table[key].to_numpy()) for key in ([only] if only else table.columns)}


class AcmeCsv(Logger):
    """Acme's CSV logger."""

    def open(self, out: str) -> None:
        from acme.utils.loggers.csv import CSVLogger

        self.logger = CSVLogger(out, add_uid=False)

    def log(self, step: int, values: dict[str, float]) -> None:
        self.logger.write({"step": step, **values})

    def close(self) -> None:
        self.logger.close()


LOGGERS: dict[str, type[Logger]] = {
    "none": Logger,
    "packing": Packing,
    "rollbook": Rollbook,
    "rollbook-defaults": RollbookDefaults,
    "rollbook-no-rules": RollbookNoRules,
    "sb3-csv": Sb3Csv,
    "acme-csv": AcmeCsv,
    "wandb": Wandb,
    "rollbook-wandb": RollbookWandb,
    "tensorboard": TensorBoard,
}
MODULES = {"sb3-csv": "stable_baselines3", "acme-csv": "acme", "wandb": "wandb", "tensorboard": "tensorboard"}
"""What must be installed for a peer to be measured."""
