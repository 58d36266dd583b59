"""A whole GRPO training by TRL, killed and resumed: every number is the trainer's, every rollout has one fate.

Two reward functions, one of them a model; an environment with tools that also owns a reward; a filter that leaves
groups of one reward out of the loss; SIGKILL in the middle of a batch. The trainer runs in processes of its own and
writes what it sees into files, with which the book is compared.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("trl",)

pytest.importorskip("trl")

import numpy as np  # noqa: E402
from pyarrow import parquet  # noqa: E402

import rollbook  # noqa: E402
from rollbook.adapters.trl import completions  # noqa: E402

STEPS, KILLED, MOST_CALLS = 8, 5, 2


def column(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row[name] for row in rows]


def recorded_rows(book: Any) -> list[dict[str, Any]]:
    """The trainer's rows as it would print them."""
    clocks, ours = ("time", "gradient_step", "policy_version", "epoch", "inferred"), ("host/", "rollbook/")
    found = []
    for row in book.metrics().to_pylist():
        kept = {name.removeprefix("value/"): cell for name, cell in row.items() if cell is not None}
        kept = {name: cell for name, cell in kept.items() if name not in clocks or f"value/{name}" in row}
        kept = {name: cell for name, cell in kept.items() if not name.startswith(ours)}
        if set(kept) - {"step"}:
            found.append(kept)
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was killed within a batch, after a checkpoint, and resumed from it."""
    return killed_and_resumed(tmp_path_factory.mktemp("proof"), KILLED, "resumed", log_every=1)


def killed_and_resumed(place: Path, kill: int, how: str, log_every: int) -> Path:
    program = Path(__file__).with_name("trl_house.py")
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TRL_EXPERIMENTAL_SILENCE": "1"}
    for attempt, more, code in (("first", {"KILL_AT": str(kill)}, -signal.SIGKILL), (how, {}, 0)):
        env = {**os.environ, **offline, "LOG_EVERY": str(log_every), **more}
        done = subprocess.run([sys.executable, program, place, attempt], env=env, capture_output=True, text=True)
        assert done.returncode == code, done.stderr[-3000:]
    return place


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kill", "how"), [(KILLED, "resumed"), (2, "anew")])
def test_a_cut_holds_for_rollouts_where_no_scalar_was_logged_since_the_checkpoint(
    tmp_path: Path, kill: int, how: str
) -> None:
    """`logging_steps` of 10: only rollouts and fates tell how far the dead attempt came."""
    place = killed_and_resumed(tmp_path, kill, how, log_every=10)
    book = rollbook.open(place / "runs").one()
    ours = completions(book).to_pylist()
    steps = column(ours, "policy_version")
    assert {step: steps.count(step) for step in range(STEPS)} == dict.fromkeys(range(STEPS), 16)
    assert sorted(column(book.table("fates").to_pylist(), "rollout_id")) == sorted(column(ours, "rollout_id"))
    assert len(book.table("rollouts", attempts="all")) > len(ours)
    remarks = json.loads((place / "remarks.json").read_text())
    assert bool(remarks.get("begun_anew")) == (how == "anew")


@pytest.mark.timeout(300)
@pytest.mark.core
def test_a_killed_and_resumed_training_has_the_trainers_numbers_and_one_fate_a_rollout(place: Path) -> None:
    book = rollbook.open(place / "runs").one()
    native = json.loads((place / "log.json").read_text())
    assert [row["step"] for row in native] == [*range(1, STEPS + 1), STEPS]
    rows = recorded_rows(book)
    assert rows == native
    assert json.loads((place / "drops.json").read_text()) == {}

    ours = completions(book).to_pylist()
    assert len(ours) == 16 * STEPS
    fates = book.table("fates").to_pylist()
    assert sorted(column(fates, "rollout_id")) == sorted(column(ours, "rollout_id"))  # each has exactly one

    # what compute_loss got, of the lives that count
    lines = [json.loads(line) for line in (place / "seen.jsonl").read_text().splitlines()]
    seen: dict[int, list[Any]] = {}
    for line in lines:
        seen.setdefault(line["step"], []).append((line["ids"], line["advantage"], line["kept"]))
    late = {step: rows[-16:] for step, rows in seen.items()}
    ids: dict[str, list[int]] = {}
    for row in book.table("tokens").sort_by([("rollout_id", "ascending"), ("first", "ascending")]).to_pylist():
        ids.setdefault(row["rollout_id"], []).extend(token for token in row["ids"] or () if token > 1)
    for step, inputs in late.items():
        told = [
            (ids[row["rollout_id"]], row["advantage"], row["used"]) for row in fates if row["gradient_step"] == step
        ]
        assert sorted(told) == sorted(inputs), step

    # rewards of all three sources, and the advantages, as in TRL's own files
    for step in range(1, STEPS + 1):
        theirs = parquet.read_table(place / "out" / "completions" / f"completions_{step:05d}.parquet").to_pylist()
        own = [row for row in ours if row["policy_version"] == step - 1]
        for name in ("says_cat", "judge", "House"):
            assert np.float32(column(own, f"rewards/{name}")).tolist() == column(theirs, name), (step, name)
        assert column(own, "advantage") == column(theirs, "advantage")
        (mean,) = [row["reward"] for row in native if row["step"] == step and "reward" in row]
        assert sum(column(own, "reward")) / len(own) == pytest.approx(mean, rel=1e-5)


@pytest.mark.core
def test_tool_calls_failures_and_filtered_groups_are_the_trainers(place: Path) -> None:
    book = rollbook.open(place / "runs").one()
    native = {row["step"]: row for row in json.loads((place / "log.json").read_text()) if "reward" in row}
    ours = completions(book).to_pylist()
    turns: dict[str, list[Any]] = {}
    for row in book.table("turns").to_pylist():
        turns.setdefault(row["rollout_id"], []).append(row)
    compared = failed = 0
    for step, row in native.items():
        own = [one for one in ours if one["policy_version"] == step - 1]
        assert sum(column(own, "sampled_tokens")) / 16 == row["completions/mean_length"]
        told = [turn for one in own for turn in turns[one["rollout_id"]]]
        answers = [turn for turn in told if turn["role"] == "tool"]
        spoken = [[turn for turn in turns[one["rollout_id"]] if turn["role"] == "assistant"] for one in own]
        calls = sum(len(json.loads(turn["calls"])) for talk in spoken for turn in talk[:MOST_CALLS] if turn["calls"])
        assert calls / 16 == pytest.approx(row["tools/call_frequency"])
        if len(answers) == calls:  # TRL takes answers back that do not fit
            errors = [turn["error"] for turn in answers if turn["error"] is not None]
            assert len(errors) / max(1, calls) == pytest.approx(row["tools/failure_frequency"])
            compared, failed = compared + 1, failed + len(errors)
    assert compared >= STEPS / 2
    assert failed
    assert {one["name"] for some in turns.values() for one in some if one["role"] == "tool"} == {"look"}
    dropped = [row for row in ours if not row["used"]]
    assert {row["reason"] for row in dropped} <= {"zero_std"}
    (curves,) = [book.rollout_curves()]
    wasted = {row["gradient_step"]: row["rollout/used"] for row in curves.to_pylist()}
    assert wasted == {step: 1 - sum(row["policy_version"] == step - 1 for row in dropped) / 16 for step in native}
