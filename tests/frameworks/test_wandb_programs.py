"""Libraries with a wandb of their own, unchanged: `--wandb replace` records the numbers of wandb's own offline file."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.schema.clocks import STANDARD
from wandb_files import history

GROUPS = ("loops", "puffer", "trl", "loggers", "cleanrl")

HERE = Path(__file__).resolve().parent
GROUP = os.environ.get("ROLLBOOK_FRAMEWORK_GROUP", "")
PROGRAMS = {"loops": ("skrl", "rl_games"), "puffer": ("pufferlib",), "trl": ("trl",), "loggers": ("lightning",)}
CLEANRL = Path(os.environ.get("ROLLBOOK_UPSTREAM", "")) / "cleanrl"
DISCRETE = "--total-timesteps 2000 --learning-starts 200 --buffer-size 2000"
CONTINUOUS = "--env-id Pendulum-v1 --total-timesteps 1200 --learning-starts 300"
FILES = {
    "ppo": "--total-timesteps 4096",
    "ppo_continuous_action": "--env-id Pendulum-v1 --total-timesteps 4096",
    "rpo_continuous_action": "--env-id Pendulum-v1 --total-timesteps 4096",
    "dqn": DISCRETE,
    "c51": DISCRETE,
    "ddpg_continuous_action": CONTINUOUS,
    "td3_continuous_action": CONTINUOUS,
    "sac_continuous_action": CONTINUOUS,
}
"""Single files of CleanRL, and what makes their trainings short."""
MEASURED = (
    "performance/",
    "profiling/",
    "/time",
    "time (ms)",
    "step_time",
    "uptime",
    "SPS",
    "per_second",
    "train_runtime",
)
"""Parts of the names of durations, of speeds, and of rl_games' numbers over time: no two trainings share them."""

FILLED = "train/global_step"
"""wandb repeats the x-axis of define_metric in rows that the program logged without it."""

CLOCKS = ("env_step", "step")

pytest.importorskip("wandb")


def numbers_of(rows: list[dict[str, Any]]) -> dict[str, list[tuple[int, float]]]:
    """(step, number) by key, of wandb's rows; words for what JSON has no number for are numbers again."""
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        for key, value in row.items():
            if value in ("NaN", "Infinity", "-Infinity"):
                value = float(value)
            if key.startswith("_") or key == FILLED or f"{key.rpartition('.')[0]}._type" in row:  # a part of a table
                continue
            if isinstance(value, (int, float)):
                found[key].append((row["global_step"] if "global_step" in row else row["_step"], float(value)))
    return found


def event_files(folder: Path) -> list[dict[str, Any]]:
    """Rows of one number, by tensorboard's own reader."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (path,) = folder.rglob("*tfevents*")
    reader = EventAccumulator(str(path), size_guidance={"scalars": 0})
    reader.Reload()
    return [{key: e.value, "_step": e.step} for key in reader.Tags()["scalars"] for e in reader.Scalars(key)]


def single(number: float) -> str:
    """In 32 bits, as event files have it."""
    return str(struct.unpack("f", struct.pack("f", number))[0])


@pytest.mark.core
@pytest.mark.parametrize("name", PROGRAMS.get(GROUP, ()))
def test_every_number_of_wandbs_own_file_is_in_the_book(name: str, own_place: Path) -> None:
    assert_equal(name, [str(HERE / "wandb_programs.py"), name], own_place)


@pytest.mark.core
@pytest.mark.parametrize("name", FILES if GROUP == "cleanrl" else ())
def test_every_number_that_a_file_of_cleanrl_gives_wandb_is_in_the_book(
    name: str, own_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(CLEANRL), os.environ.get("PYTHONPATH", "")]))
    assert_equal(name, [str(CLEANRL / "cleanrl" / f"{name}.py"), "--track", *FILES[name].split()], own_place)


def assert_equal(name: str, program: list[str], place: Path) -> None:
    """Run a program with wandb, then with rollbook in its place, and compare every number."""
    env = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "ROLLBOOK_DIR": str(place / "books")}
    env["TORCH_COMPILE_DISABLE"] = "1"
    ours = ["-m", "rollbook", "run", "--wandb", "replace", *program]
    for folder, command in (("theirs", program), ("ours", ours)):
        (place / folder).mkdir()
        subprocess.run([sys.executable, *command], cwd=place / folder, env=env, check=True, timeout=400)
    assert not (place / "ours" / "wandb").exists()
    (book,) = rollbook.open(place / "books")
    count = compared(name, place / "theirs", book)
    print(f"{name}: {count} numbers equal")
    assert count >= 20
    assert book.status == "finished"
    assert book.problems() == []


def compared(name: str, folder: Path, book: rollbook.Book) -> int:
    """How many numbers of wandb's file were found in the book, each at its step; all of them."""
    (file,) = folder.rglob("*.wandb")
    theirs = numbers_of(history(file, "."))
    theirs.pop("global_step", None)
    if name == "skrl":  # wandb 0.31 does not see the writer of skrl 2.1: its file has no number
        assert not theirs
        theirs = numbers_of(event_files(folder))
    count = 0
    for key, points in theirs.items():
        counter = key in STANDARD  # of Lightning: a clock of the other keys' rows
        keys = [other for other in theirs if other not in STANDARD] if counter else [key]
        rows = [row for row in book.metrics(keys, x="step").to_pylist() if row.get(key) is not None]
        if any(part in key for part in MEASURED):
            assert len(rows) >= len(points), key
            continue
        ours = {(row.get(clock), of(float(row[key]))) for row in rows for clock in CLOCKS for of in (str, single)}
        for step, number in points:
            assert (step, str(number)) in ours or (step, single(number)) in ours, (key, step, number)
        count += len(points)
    return count
