"""A run of agents with tools, hostile texts and every fate, made without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import rollbook

HOSTILE = '<script>alert("hi")</script> \u202egnp.exe \x1b[31m <img src=x onerror=alert(1)>'
TASKS = ("dateparse: 24:00 loses a day", "lru: size 0 keeps one entry", f"ini: {HOSTILE} in a key", "2 + 2?")
SIZE = 4


def record_agents(folder: Path, updates: int = 8, tasks: int = 2) -> Any:
    """A finished run: in each update some groups of four rollouts; returns its id."""
    rng = np.random.default_rng(7)
    with rollbook.init("agents", "grpo", seed=1, dir=folder, sinks=[], keeper="import", rules=()) as run:
        for step in range(1, updates + 1):
            for n in range(tasks):
                _group(run, rng, step, n, TASKS[(step + n) % len(TASKS)], step / updates)
            run.log({"reward": step / updates}, gradient_step=step)
    return run.id


def _group(run: Any, rng: np.random.Generator, step: int, n: int, task: str, skill: float) -> None:
    ids, rewards = [], []
    version = max(0, step - 1 - int(rng.integers(0, 4)))
    prompt = [
        {"role": "system", "content": "You are careful. Tools: read, run_tests."},
        {"role": "user", "content": task},
    ]
    for _ in range(SIZE):
        is_right = rng.random() < 0.15 + 0.7 * skill
        with run.rollouts.begin(
            task=prompt, group=f"{step}-{n}", policy_version=version, mode="train", temperature=1.0, gradient_step=step
        ) as rollout:
            for turn in range(int(rng.integers(1, 4))):
                text = f"I read line {turn} of the parser, then I check that this is the cause."
                _report(rollout, rng, text, calls=[{"name": "read", "arguments": {"lines": f"{turn}-{turn + 9}"}}])
                is_broken = rng.random() < 0.15
                rollout.turn(
                    "tool",
                    "\n".join(f"{k} def _clock(text: str):  # {HOSTILE}" for k in range(12)),
                    name="read" if turn else "run_tests",
                    tokens=120,
                    seconds=float(rng.gamma(2, 0.5)),
                    error="TimeoutError: no sandbox within 9 s" if is_broken else None,
                )
            answer = (
                "Fixed by pytest.skip of the failing test."
                if rng.random() < skill / 3
                else "The day is added in parse."
            )
            _report(rollout, rng, f"{answer} {HOSTILE}", finish_reason="stop")
            rollout.reward(tests=float(is_right), format=0.1)
            rollout.stop(
                "answer" if rng.random() < 0.9 else "length", prompt_tokens=40, seconds={"queue": 0.5, "reward": 0.2}
            )
        ids.append(rollout.id)
        rewards.append(float(is_right))
    mean = sum(rewards) / SIZE
    if (step, n) == (5, 1):
        return  # its fate is never reported
    if mean in (0.0, 1.0):
        run.rollouts.trained(ids, advantage=0.0, reason="zero_std", trained_version=step - 1, gradient_step=step)
    elif rng.random() < 0.15:
        run.rollouts.dropped(ids, reason="stale", gradient_step=step)
    else:
        gaps = rng.gamma(2, 0.05, SIZE)
        run.rollouts.trained(
            ids,
            advantage=[reward - mean for reward in rewards],
            trained_version=step - 1,
            gradient_step=step,
            clipped=rng.random(SIZE) * 0.1,
            gap_mean=gaps,
            gap_max=gaps * 5,
            ratio_mean=1 + gaps / 10,
        )


def _report(rollout: Any, rng: np.random.Generator, text: str, **more: Any) -> None:
    n = len(text.split())
    logprobs = -rng.gamma(1, 0.4, n).astype(np.float32)
    ids = rng.integers(0, 50_000, n).astype(np.int32)
    entropy = rng.gamma(2, 0.3, n).astype(np.float32)
    rollout.turn(
        "assistant", text, tokens=ids, logprobs=logprobs, entropy=entropy, seconds=float(rng.gamma(2, 1)), **more
    )
