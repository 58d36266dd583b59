"""What an export costs per episode: 20,000 recorded episodes of 10 steps as JSON lines, RLlib's rows and LeRobot's.

python -m benchmarks.datasets --json       the figures for a program
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import rollbook
from benchmarks import harness
from benchmarks.lines import Context, Line
from rollbook.capture.gym.single import RecordEpisodes
from rollbook.formats import datasets

GOAL_US = 100.0
EPISODES, STEPS, TURNS = 20_000, 10, 3


class Short(gymnasium.Env[Any, Any]):
    """Episodes of ten steps that do nothing."""

    observation_space = gymnasium.spaces.Box(-10, 10, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._t = 0
        return np.zeros(4, np.float32), {}

    def step(self, action: Any) -> Any:
        self._t += 1
        return np.full(4, self._t / 3, np.float32), 1.0, self._t >= STEPS, False, {}


def record(root: str, episodes: int) -> Any:
    """The book of a run with so many recorded episodes."""
    with rollbook.init("bench", "datasets", dir=root, sinks=(), keeper="inline") as run:
        env = RecordEpisodes(Short(), run.scope("train"), steps=True)
        for _ in range(episodes):
            env.reset()
            for action in range(STEPS):
                env.step(action % 2)
        env.close()
    return run.book


def measure(episodes: int) -> dict[str, float]:
    """Microseconds of processor time per episode of each export, and the most memory in MiB."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as root:
        book = record(root, episodes)
        few = datasets.StepSource(book).keys[0][0]
        datasets.to_jsonl(book, Path(root) / "warm.jsonl", episodes=[few])
        datasets.to_rllib(book, Path(root) / "warm", episodes=[few])
        datasets.to_lerobot(book, Path(root) / "warm too", episodes=[few])
        exports: dict[str, Callable[..., Any]] = {
            "jsonl": datasets.to_jsonl,
            "rllib": datasets.to_rllib,
            "lerobot": datasets.to_lerobot,
        }
        for name, export in exports.items():
            start = time.process_time()
            told = export(book, Path(root) / name)
            found[name] = (time.process_time() - start) / episodes * 1e6
            assert (told.episodes, told.steps) == (episodes, STEPS * episodes), told
    found["memory_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def rows(context: Context) -> Iterator[Line]:
    """Lines for the table of numbers, measured in a process of its own."""
    episodes = context.size(EPISODES)
    words = ["-m", "benchmarks.datasets", "--json", f"--episodes={episodes}"]
    turns = [json.loads(harness.python(context.root, *words)) for _ in range(min(TURNS, context.repeat))]
    memory = max(turn["memory_mib"] for turn in turns)
    note = f"{episodes:,} episodes of {STEPS} steps, most memory {memory:.0f} MiB"
    for name, rows_of in (("jsonl", "JSON lines"), ("rllib", "RLlib's rows"), ("lerobot", "LeRobot's rows")):
        yield Line("D1", f"an episode to {rows_of}", [turn[name] for turn in turns], "us", goal=GOAL_US, note=note)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.datasets")
    parser.add_argument("--episodes", type=int, default=EPISODES)
    parser.add_argument("--json", action="store_true", help="for a program")
    given = parser.parse_args()
    found = measure(given.episodes)
    if given.json:
        print(json.dumps(found))
        return
    print("  ".join(f"{name} {value:.1f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
