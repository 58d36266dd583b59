"""Rollouts of agents: what writing costs the training process, bytes on disk, and how long each question takes.

python -m benchmarks.rollouts                        50,000 rollouts of 16 turns, tokens of one in 16
python -m benchmarks.rollouts --rollouts 500000      what the goals are for: about ten minutes
python -m benchmarks.rollouts --all-tokens           the token lists of every rollout
python -m benchmarks.rollouts --in FOLDER            the run stays there, and is asked again if it is there already

Texts are stretches of one long text of 4,000 words drawn by a power law, so that they compress about as prose does; ids
of tokens are drawn by Zipf's law from a vocabulary of 150,000 (11 bits each). The writing is processor time of this
process, without the keeper, which seals in between. Bytes are counted when all is sealed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rollbook
from benchmarks import harness
from benchmarks.lines import Context, Line
from rollbook.values.array_types import NDArray

MANY, GOALS_ARE_FOR = 100_000, 500_000
GROUP, TURNS, SAMPLED, VOCABULARY = 16, 16, 2_000, 150_000
_WORDS, _CHARACTERS, _TASKS = 8_000_000, 560, 2_000
QUESTIONS: dict[str, Any] = {
    "one rollout with its turns": lambda book, name: book.rollout(name).turns(),
    "its group": lambda book, name: book.rollout(name).group(),
    "its task over training": lambda book, name: book.rollout(name).history(),
    "how often each prompt is solved": lambda book, name: book.rollout_prompts(),
    "which groups taught nothing": lambda book, name: book.rollout_answer("groups"),
    "staleness and clipping": lambda book, name: book.rollout_answer("staleness"),
    "worst gaps": lambda book, name: book.rollout_answer("gaps", limit=20),
    "worst gaps by token": lambda book, name: book.rollout_answer("tokens", limit=20),
    "which tool breaks": lambda book, name: book.rollout_answer("tools"),
    "where the time went": lambda book, name: book.rollout_answer("time"),
    "words of high advantage": lambda book, name: book.rollout_answer("words"),
    "what was lost": lambda book, name: book.rollout_answer("lost"),
    "a text in a window of steps": lambda book, name: book.rollouts(
        "gradient_step between 100 and 110 and contains(item, 'pword15 ')", limit=20
    ),
    "curves": lambda book, name: book.rollout_curves(),
}


GOALS = {
    "one rollout with its turns": 300,
    "its group": 300,
    "its task over training": 300,
    "curves": 1_500,
    "a text in a window of steps": 1_000,
    "how often each prompt is solved": None,
    "words of high advantage": None,
}
"""Milliseconds of processor time of 500,000 rollouts; 500 for every other question, None for those without a goal."""


def write(run: Any, rollouts: int, all_tokens: bool = False) -> float:
    """Log rollouts in groups, each with its fate; processor seconds of this process for the calls alone."""
    rng = np.random.default_rng(0)
    words = [f"{'abcdefghijklmnop'[n % 16]}word{n}" for n in range(4_000)]
    text = " ".join(words[place] for place in np.minimum(rng.zipf(1.3, _WORDS), 3_999).tolist())
    cost, tokens = 0.0, _tokens(rng)
    for number in range(rollouts // GROUP):
        task = f"task {int(rng.integers(0, _TASKS))}"
        talks = [_talk(rng, text, tokens, task, keep=all_tokens or number % GROUP == 0) for _ in range(GROUP)]
        rewards = (rng.random(GROUP) < 0.5).astype(float)
        lists, gaps, largest = _of_the_trainer(rng, talks)
        before = time.process_time()
        ids = run.rollouts.log_many(
            talks, rewards={"tests": rewards}, group=f"g{number}", policy_version=number // 32, mode="train"
        )
        run.rollouts.trained(
            ids,
            advantage=rewards - rewards.mean(),
            gradient_step=number // 32 + 1,
            trained_version=number // 32 + 2,
            clipped=gaps / 10,
            gap_mean=gaps,
            gap_max=largest,
            trainer_logprobs=lists,
        )
        cost += time.process_time() - before
    return cost


def _tokens(rng: np.random.Generator) -> NDArray:
    """One long text as ids, of which each stretch may be taken."""
    weights = np.cumsum(1 / (np.arange(VOCABULARY) + 2.7))
    ranks = np.searchsorted(weights, rng.random(1_000_000) * weights[-1])
    return rng.permutation(VOCABULARY).astype(np.int32)[ranks]


def _talk(rng: np.random.Generator, text: str, tokens: NDArray, task: str, keep: bool) -> list[dict[str, Any]]:
    talk: list[dict[str, Any]] = [{"role": "user", "content": task}]
    each = SAMPLED // (TURNS // 2)
    for start in rng.integers(0, len(text) - 2 * _CHARACTERS, TURNS // 2).tolist():
        middle = start + _CHARACTERS
        said = {"role": "assistant", "content": text[start:middle], "tokens": each}
        if keep:
            first = int(rng.integers(0, len(tokens) - each))
            lists = {"tokens": tokens[first : first + each]}
            said |= {**lists, "logprobs": -rng.gamma(1, 0.4, each).astype(np.float16)}
        answer = text[middle : middle + _CHARACTERS]
        talk += [{**said, "seconds": 1.0}, {"role": "tool", "name": "bash", "content": answer, "seconds": 0.5}]
    return talk


def _of_the_trainer(rng: np.random.Generator, talks: list[list[dict[str, Any]]]) -> tuple[Any, NDArray, NDArray]:
    """(the trainer's log-probabilities of each, None where the sampler's are not kept; mean gap; largest gap)."""
    means = rng.gamma(2, 0.05, GROUP)
    largest, lists = means * 5, []
    for row, talk in enumerate(talks):
        of_turns = [turn["logprobs"] for turn in talk if "logprobs" in turn]
        if of_turns:
            sampler = np.concatenate(of_turns)
            lists.append((sampler + rng.laplace(0, means[row], len(sampler))).astype(np.float16))
            gaps = np.abs(lists[row].astype(np.float32) - sampler)
            means[row], largest[row] = gaps.mean(), gaps.max()
        else:
            lists.append(None)
    return (lists if any(cells is not None for cells in lists) else None), means, largest


def measure(rollouts: int, folder: str, all_tokens: bool = False, asks: bool = True) -> dict[str, Any]:
    """Processor time, bytes and milliseconds of each question; a run that is in the folder already is not written."""
    seconds = 0.0
    if not any(Path(folder).iterdir()):
        with rollbook.init("bench", "rollouts", dir=folder, sinks=[], rules=()) as run:
            seconds = write(run, rollouts, all_tokens)
        subprocess.run([sys.executable, "-m", "rollbook", "seal", str(run.folder)], check=True, capture_output=True)
    took: dict[str, list[tuple[float, float]]] = {}
    book = rollbook.open(folder).one()
    tables = {table.name: table for table in (Path(book.path) / "data").iterdir() if table.is_dir()}
    sizes = {name: sum(file.stat().st_size for file in table.rglob("*.parquet")) for name, table in tables.items()}
    rollouts, name = book.sql("select count(*), min(rollout_id) from rollouts").fetchall()[0]
    for question, ask in QUESTIONS.items() if asks else ():
        times = took[question] = []
        for _ in range(3):
            fresh = rollbook.open(folder).one()
            before, worked = time.perf_counter(), time.process_time()
            ask(fresh, str(name))
            times.append((1e3 * (time.perf_counter() - before), 1e3 * (time.process_time() - worked)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rollouts": rollouts, "writer_seconds": seconds, "bytes": sizes, "milliseconds": took, "peak_mib": peak}


def rows(context: Context) -> Iterator[Line]:
    """Lines for the table of numbers: written in one process, asked in another.

    A fifth of what the goals are for, since the table has half an hour: what grows with the rollouts has a fifth of its
    goal, the questions have none, and this program prints theirs with --rollouts 500000.
    """
    many = context.size(MANY)
    words = ["-m", "benchmarks.rollouts", "--json", f"--rollouts={many}", f"--in={context.root}/rollouts"]
    written, asked = (json.loads(harness.python(context.root, *words, *more)) for more in (["--write-only"], []))
    seconds, size = written["writer_seconds"], sum(written["bytes"].values()) / 1e9
    note, share = "16 turns, tokens of one in 16", many / GOALS_ARE_FOR
    yield Line("R", f"writing {many:,} rollouts, CPU", seconds, "s", goal=57 * share, note=note)
    yield Line("R", f"{many:,} rollouts on disk", size, "GB", goal=3 * share)
    for question, turns in asked["milliseconds"].items():
        worked = [cpu for _elapsed, cpu in turns]
        yield Line("R", f"{question}, CPU", worked, "ms")
    yield Line("R", "memory of the process that asks all of these", asked["peak_mib"], "MiB", goal=500)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollouts")
    parser.add_argument("--rollouts", type=int, default=50_000)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--all-tokens", action="store_true", help="token lists of every rollout, not of one in 16")
    parser.add_argument("--write-only", action="store_true", help="ask nothing")
    parser.add_argument("--in", dest="folder", help="where the run is, or is to be")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if given.folder:
        Path(given.folder).mkdir(parents=True, exist_ok=True)
        found = measure(given.rollouts, given.folder, given.all_tokens, not given.write_only)
    else:
        with tempfile.TemporaryDirectory(prefix="rollbook-bench-") as folder:
            found = measure(given.rollouts, folder, given.all_tokens, not given.write_only)
    if given.json:
        print(json.dumps(found))
        return
    per = 1e6 * found["writer_seconds"] / found["rollouts"]
    cost = found["writer_seconds"]
    print(f"{found['rollouts']:,} rollouts of {TURNS} turns: {cost:.1f} s in the writer, {per:.0f} us each")
    print(f"5e5 of them: {per / 2:.0f} s of processor time (scaled)")
    for name, size in sorted(found["bytes"].items(), key=lambda item: -item[1]):
        if size:
            print(f"{name:12s}{size / 2**20:10.1f} MiB{size / found['rollouts']:10.0f} bytes a rollout")
    for question, turns in found["milliseconds"].items():
        elapsed, worked = (harness.median(list(each)) for each in zip(*turns, strict=True))
        goal = GOALS.get(question, 500) if found["rollouts"] >= GOALS_ARE_FOR else None
        met = "" if goal is None else f"   goal {goal:,} ms: {'met' if worked <= goal else 'missed'}"
        print(f"{question:32s}{elapsed:10.0f} ms{worked:10.0f} ms of processors{met}")
    print(f"peak of this process: {found['peak_mib']:.0f} MiB")


if __name__ == "__main__":
    main()
