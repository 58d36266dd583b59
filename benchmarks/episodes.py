"""What recording episodes costs per environment step, beside the bare environment and gymnasium's own statistics.

python -m benchmarks.episodes              the table, in about a minute
python -m benchmarks.episodes --quick      fewer repetitions
python -m benchmarks.episodes --bytecodes  how many bytecodes of Python a step and an episode add; no clock is read
python -m benchmarks.episodes --json       the figures of some of them for a program
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import RecordEpisodeStatistics as VectorStatistics

import rollbook
from benchmarks import harness
from benchmarks.harness import median
from benchmarks.lines import FORMER, Context, Line
from rollbook.capture.gym import RecordEpisodes

Wrap = Callable[[Any, Any], Any]


class Still(gymnasium.Env[Any, Any]):
    """Does nothing, so that only the wrappers' own cost is left. Episodes of 200 steps; an info, if asked for."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, info: dict[str, Any] | None = None) -> None:
        self._obs, self._info, self._t = np.zeros(4, np.float32), info, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._t = 0
        return self._obs, {}

    def step(self, action: Any) -> Any:
        self._t += 1
        return self._obs, 1.0, False, self._t == 200, dict(self._info) if self._info else {}


def pixels() -> Any:
    """84 x 84 x 3 observations."""
    env = Still()
    env.observation_space = gymnasium.spaces.Box(0, 255, (84, 84, 3), np.uint8)
    env._obs = np.zeros((84, 84, 3), np.uint8)
    return env


class Discretized(gymnasium.ActionWrapper[Any, Any, Any]):
    """Takes the action 0."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.action_space, self._torque = gymnasium.spaces.Discrete(1), np.zeros(1, np.float32)

    def action(self, action: Any) -> Any:
        return self._torque


class Least(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds up the rewards of an episode, and writes at its end what rollbook writes of it: a row, and three numbers.

    Nothing that records each episode at once can be below it. It writes a wrong row where an episode is cut short, has
    an info, or gets rewards that are no floats.
    """

    def __init__(self, env: Any, run: Any) -> None:
        super().__init__(env)
        self._run, self._total, self._length, self._count, self._steps = run, 0.0, 0, 0, 0

    def step(self, action: Any) -> Any:
        result = self.env.step(action)
        self._total, self._length = self._total + result[1], self._length + 1
        if result[2] or result[3]:
            self._steps, self._count = self._steps + self._length, self._count + 1
            numbers = {"return": self._total, "length": self._length, "counted_env_step": self._steps}
            row = {
                **numbers, "episode_id": f"0.{self._count}", "seconds": 0.0, "terminated": result[2],
                "truncated": result[3], "complete": True, "seed": None, "env_index": 0, "number": self._count,
                "options": None, "policy_version_at_start": None, "steps_kept": None,
            }  # fmt: skip
            self._run.record("episodes", row)
            self._run.log(numbers)
            self._total, self._length = 0.0, 0
        return result


class NoRows:
    """A scope that writes no rows of `episodes`: what is left of the recorder's cost without them."""

    def __init__(self, scope: Any) -> None:
        self._scope = scope

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scope, name)

    def record(self, *_: object, **__: object) -> int:
        return 0


RUNNING = {"data": {"running": {"speed": 0.5, "height": 1.25}}}
MUJOCO = {"x_position": 0.1, "x_velocity": 0.2, "reward_forward": 1.0, "reward_ctrl": -0.1, "reward_survive": 0.1}

SINGLE: dict[str, Callable[[], Any]] = {
    "CartPole-v1": lambda: gymnasium.make("CartPole-v1"),
    "Pendulum-v1, episodes of 200 steps": lambda: Discretized(gymnasium.make("Pendulum-v1")),
    "an environment that does nothing": Still,
    "the same, infos as MuJoCo's": lambda: Still(dict(MUJOCO)),
    "the same, running data": lambda: Still(RUNNING),
    "the same, 84x84x3 pixels": pixels,
}
WRAPPERS: dict[str, Wrap] = {
    "bare": lambda env, run: env,
    "RecordEpisodeStatistics": lambda env, run: RecordEpisodeStatistics(env),
    "least": Least,
    "rollbook": lambda env, run: RecordEpisodes(env, run),
    "rollbook, no rows": lambda env, run: RecordEpisodes(env, NoRows(run)),
    "rollbook, no curves": lambda env, run: RecordEpisodes(env, run, curves=False),
    "rollbook, neither": lambda env, run: RecordEpisodes(env, NoRows(run), curves=False),
    "rollbook, driving a clock": lambda env, run: RecordEpisodes(env, run, clock="env_step"),
    "rollbook, steps of every 100th": lambda env, run: RecordEpisodes(env, run, steps="every 100"),
    "rollbook, steps of the best": lambda env, run: RecordEpisodes(env, run, steps="best"),
    "rollbook, all steps": lambda env, run: RecordEpisodes(env, run, steps=True),
}
VECTOR: dict[str, Wrap] = {
    "bare": lambda envs, run: envs,
    "RecordEpisodeStatistics": lambda envs, run: VectorStatistics(envs),
    "rollbook, inside": lambda envs, run: RecordEpisodes(envs, run),
    "rollbook, around": lambda envs, run: RecordEpisodes(envs, run, inside=False),
    "rollbook, all steps": lambda envs, run: RecordEpisodes(envs, run, steps=True),
}


def single(make: Callable[[], Any], wrap: Wrap, run: Any, steps: int) -> float:
    """Nanoseconds of this thread per step."""
    env = wrap(make(), run)
    env.reset(seed=0)
    step, reset = env.step, env.reset
    start = time.thread_time_ns()
    for action in (0, 0, 1, 1) * (steps // 4):
        _, _, terminated, truncated, _ = step(action)
        if terminated or truncated:
            reset()
    return (time.thread_time_ns() - start) / steps


def vector(wrap: Wrap, run: Any, steps: int) -> float:
    """Nanoseconds of this thread per step of one of 16 sub-environments."""
    envs = wrap(SyncVectorEnv([Still] * 16, autoreset_mode=AutoresetMode.SAME_STEP), run)
    envs.reset(seed=0)
    actions = np.ones(16, dtype=np.int64)
    start = time.thread_time_ns()
    for _ in range(steps):
        envs.step(actions)
    return (time.thread_time_ns() - start) / steps / 16


Costs = dict[str, float]
"""ns per step by wrapper."""


def in_turns(wrappers: dict[str, Wrap], measure: Callable[[Wrap], float], repeat: int) -> Costs:
    """The least of each wrapper in turns, in ns per step: a turn lasts a millisecond; other work only adds."""
    found = dict.fromkeys(wrappers, math.inf)
    for _ in range(repeat):
        for name, wrap in wrappers.items():
            gc.collect()
            found[name] = min(found[name], measure(wrap))
    return found


def table(what: str, found: Costs) -> None:
    """Print one environment's costs; the last column is the added cost over that of gymnasium's statistics."""
    bare, peer = found["bare"], found["RecordEpisodeStatistics"]
    print(f"\n{what}")
    print(f"  {'':34s}{'ns/step':>10s}{'over bare':>11s}{'x bare':>9s}{'/ RecordEpisodeStatistics':>27s}")
    for name, cost in found.items():
        added = f"{(cost - bare) / (peer - bare):>26.2f}" if name != "bare" else ""
        print(f"  {name:34s}{cost:10.0f}{cost - bare:11.0f}{cost / bare:9.2f} {added}")


STATISTICS = "RecordEpisodeStatistics"
STILL, CARTPOLE, SIXTEEN = "an environment that does nothing", "CartPole-v1", "a SyncVectorEnv of 16"
FEW = ("bare", "RecordEpisodeStatistics", "least", "rollbook", "rollbook, inside", "rollbook, around")


def figures(run: Any, repeat: int, steps: int, *, few: bool = False) -> Iterator[tuple[str, Costs]]:
    """(environment, ns per step by wrapper) of all environments, or of the three that stand in the table of numbers."""
    for what, make in SINGLE.items():
        if not few or what in (STILL, CARTPOLE):
            wrappers = {name: wrap for name, wrap in WRAPPERS.items() if not few or name in FEW}
            yield what, in_turns(wrappers, lambda wrap, make=make: single(make, wrap, run, steps), repeat)  # type: ignore[misc]
    wrappers = {name: wrap for name, wrap in VECTOR.items() if not few or name in FEW}
    yield SIXTEEN, in_turns(wrappers, lambda wrap: vector(wrap, run, steps // 2), repeat)


def rows(context: Context) -> Iterator[Line]:
    """Lines for the table of numbers; each turn is a process, and one of the other commit where there is one.

    E2 has few steps an episode, so that writing it counts. See `Least` for what "least" is: measured at 9c3d9d5e, it is
    1.6 to 2.2 times RecordEpisodeStatistics, which keeps an episode in memory alone. So the goal of 2 is about what
    writing each episode at once costs alone. docs/figures.md has what its row and its curves cost.
    """
    words = ["-m", "benchmarks.episodes", "--json", *(["--quick"] if context.repeat < 5 else [])]
    sources = {"rollbook": harness.SOURCES, **({FORMER: harness.Job.former} if FORMER in context.peers else {})}
    turns: dict[str, list[dict[str, Costs]]] = {name: [] for name in sources}
    for _ in range(1 if context.dry else context.repeat):
        for name, place in sources.items():
            turns[name].append(json.loads(harness.python(context.root, *words, sources=place)))
    for number, what, ours, goal in (
        ("E1", STILL, "rollbook", 2.0),
        ("E2", CARTPOLE, "rollbook", 2.0),
        ("E3", SIXTEEN, "rollbook, around", 2.0),
        ("E3", SIXTEEN, "rollbook, inside", 3.0),
    ):
        label = f"recording a step of {what}" + ours.removeprefix("rollbook")
        added = _added(turns["rollbook"], what, ours)
        if FORMER in turns:
            yield Line(number, label, added, "ns", FORMER, _added(turns[FORMER], what, ours))
            continue
        bare, with_ours, with_theirs = (
            median([turn[what][name] for turn in turns["rollbook"]]) for name in ("bare", ours, STATISTICS)
        )
        note = f"x {with_ours / bare:.2f} of the bare environment, {STATISTICS} x {with_theirs / bare:.2f}"
        theirs = _added(turns["rollbook"], what, STATISTICS)
        yield Line(number, label, added, "ns", STATISTICS, theirs, goal, note=note)
        if number == "E2":
            yield Line(number, label, added, "ns", "least", _added(turns["rollbook"], what, "least"))


def _added(turns: list[dict[str, Costs]], what: str, wrapper: str) -> list[float]:
    """What a wrapper adds to the bare environment, in each turn."""
    return [turn[what][wrapper] - turn[what]["bare"] for turn in turns]


def bytecodes(env: Any, episodes: int, steps: int) -> tuple[int, int, int]:
    """(bytecodes, steps, episodes) until so many episodes have ended or so many steps are done."""
    counted, done, ended = 0, 0, 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal counted
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        counted += event == "opcode"
        return trace

    env.reset(seed=0)
    sys.settrace(trace)
    try:
        while ended < episodes and done < steps:
            _, _, terminated, truncated, _ = env.step((0, 0, 1, 1)[done % 4])
            done += 1
            if terminated or truncated:
                ended += 1
                env.reset()
    finally:
        sys.settrace(None)
    return counted, done, ended


def count(run: Any) -> None:
    """Print the bytecodes that a wrapper adds to a step, to an episode besides, and so to a step of CartPole."""
    print(f"bytecodes added{'':21s}{'a step':>10s}{'an episode':>12s}{'a step of ' + CARTPOLE:>26s}")
    for name in (STATISTICS, "rollbook"):
        added = {}
        for what, episodes, steps in ((STILL, 1, 100), (CARTPOLE, 50, 100_000)):
            counts = []
            for wrap in (WRAPPERS[name], WRAPPERS["bare"]):
                env = wrap(SINGLE[what](), run)
                bytecodes(env, 10, 100)  # imports, caches, the first rows of a key
                counts.append(bytecodes(env, episodes, steps))
            added[what] = (counts[0][0] - counts[1][0], *counts[0][1:])
        a_step = added[STILL][0] / added[STILL][1]
        all_of_them, steps, episodes = added[CARTPOLE]
        an_episode = (all_of_them - a_step * steps) / episodes
        words = f"(episodes of {steps / episodes:.0f} steps)"
        print(f"{name:36s}{a_step:10.0f}{an_episode:12.0f}{all_of_them / steps:26.0f}  {words}")


def main() -> None:
    """Print a table per environment."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.episodes")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--bytecodes", action="store_true", help="count bytecodes instead of measuring time")
    parser.add_argument("--json", action="store_true", help="print the figures of three environments as JSON")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    repeat, steps = (20, 400) if given.quick else (50, 400)  # two episodes of 200 steps, some ten of CartPole
    with (
        tempfile.TemporaryDirectory(prefix="rollbook-bench-") as folder,
        rollbook.init("bench", dir=folder, sinks=[], keeper="inline") as run,
    ):
        scope = run.scope("train")
        if given.bytecodes:
            count(scope)
            return
        if given.json:
            print(json.dumps(dict(figures(scope, repeat, steps, few=True))))
            return
        for what, found in figures(scope, repeat, steps):
            table(what, found)


if __name__ == "__main__":
    main()
