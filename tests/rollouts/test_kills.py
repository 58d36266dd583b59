"""Samplers and the trainer are killed at any moment: what a call returned for is in the book, once."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

import rollbook
from forked_programs import Interpreter
from waiting import PATIENCE, until

SAMPLER = """
import sys, rollbook
run = rollbook.attach(sys.argv[1])
n = 0
while True:
    answers = {"prompts": ["p"] * 4, "completions": ["a", "b", "c", "d"]}
    ids = run.rollouts.log_many(**answers, reward=[0.0, 1.0, 0.0, 1.0], group=f"{n}")
    with run.rollouts.begin(task="alone") as rollout:
        rollout.turn("assistant", "x", tokens=[1, 2])
    print(*ids, rollout.id, flush=True)
    n += 1
"""
TRAINER = """
import sys, rollbook
run = rollbook.attach(sys.argv[1])
for line in sys.stdin:
    ids = line.split()
    run.rollouts.trained(ids[:-1], advantage=0.5)
    run.rollouts.dropped(ids[-1:], reason="surplus")
    print(*ids, flush=True)
"""


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kills", [3, pytest.param(50, marks=pytest.mark.long)])
def test_killed_samplers_and_trainers_lose_nothing_that_was_reported(
    kills: int, tmp_path: Path, interpreter: Interpreter
) -> None:
    rng = random.Random(kills)
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", rules=())
    made: list[str] = []
    judged: list[str] = []
    for _ in range(kills):
        sampler = interpreter.start(SAMPLER, run.folder, env=os.environ)
        trainer = interpreter.start(TRAINER, run.folder, env=os.environ)
        for n in range(rng.randrange(1, 6)):
            line = sampler.stdout.readline()
            made += line.split()
            if n % 2 == 0:
                trainer.stdin.write(line)
                trainer.stdin.flush()
                judged += trainer.stdout.readline().split()
        for process in rng.sample([sampler, trainer], 2):
            process.kill()
            process.wait(PATIENCE)
            more = [each for each in process.stdout.read().splitlines(keepends=True) if each.endswith("\n")]
            (made if process is sampler else judged).extend(name for each in more for name in each.split())
    assert made
    assert judged
    until(lambda: set(made) <= set(run.book.rollouts()["rollout_id"].to_pylist()), "all rollouts are there")
    waiting = run.book.rollouts("used is null")["rollout_id"].to_pylist()
    run.rollouts.dropped(waiting, reason="cancelled")  # as a trainer does that begins again after a kill
    run.finish()
    book = rollbook.open(run.folder).one()
    table = book.rollouts()
    names = table["rollout_id"].to_pylist()
    assert len(names) == len(set(names))
    assert set(made) <= set(names)
    fates = book.table("fates")["rollout_id"].to_pylist()
    assert len(fates) == len(set(fates))
    assert set(fates) == set(names)
    assert set(judged).isdisjoint(waiting)
    turns = set(book.table("turns")["rollout_id"].to_pylist())
    assert set(made) <= turns
    assert book.problems() == []
