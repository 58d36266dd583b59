"""Smoothing and aggregation in front of a sink go on after a rewind as if the abandoned rows had never been."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.keeper.replaying import replay
from rollbook.sinks.filters import Aggregate, Every, Merge, Select, Smooth
from rollbook.sinks.memory import Memory

FILTERS = [
    ["merge", {"clock": "env_step"}],
    ["select", {"drop": "noise"}],
    ["smooth", {"keys": "loss", "coeff": 0.9}],
    ["smooth", {"keys": "return", "coeff": 0.5, "mode": "bias_corrected"}],
    ["aggregate", {"keys": "loss|ret"}],
]
OWN = "rollbook/"
JSONL = {"name": "jsonl", "filters": FILTERS}


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., rollbook.Run]]:
    monkeypatch.delenv("ROLLBOOK_RUN_ID", raising=False)
    made = []

    def init(name: str, **options: Any) -> rollbook.Run:
        run = rollbook.init("p", name, dir=tmp_path, **{"sinks": [JSONL], "keeper": "inline", **options})
        made.append(run)
        return run

    yield init
    for run in made:
        run.finish()


def train(run: rollbook.Run, first: int, last: int, factor: float = 1.0) -> None:
    for i in range(first, last):
        run.log({"loss": factor / (i + 1), "noise": 1.0}, env_step=i)
        run.log({"ret": factor * (i * 7 % 11)})
        if i % 5 == 4:
            ck = run.save_checkpoint({"w": i})
            run.scope("test", at=ck).log({"return": factor * i})
        if i % 15 == 14:
            run.internals.writer.frame({"mark": "dump", "scope": "", "clocks": run._channel.current[:], "keys": []})


def lines(run: rollbook.Run) -> list[dict[str, Any]]:
    text = (run.folder / "log" / "jsonl" / "metrics.jsonl").read_text()
    every = [json.loads(line) for line in text.splitlines()]
    return [{k: v for k, v in line.items() if k not in ("time", "attempt") and not k.startswith(OWN)} for line in every]


def values(sink: Memory) -> list[dict[str, Any]]:
    """The values of each row, without what rollbook says about itself."""
    rows = [{k: v for k, v in row.values.items() if not k.startswith(OWN)} for row in sink.rows]
    return [row for row in rows if row]


def test_after_a_resume_every_filter_goes_on_as_if_nothing_had_happened(begin: Callable[..., rollbook.Run]) -> None:
    whole = begin("whole")
    train(whole, 0, 60)
    whole.finish()

    run = begin("cut")
    train(run, 0, 37)
    run.finish("crashed")
    again = begin("cut", resume="must")
    assert again.restore().clocks["env_step"] == 34  # type: ignore[union-attr]
    train(again, 35, 40, factor=1000.0)  # a second attempt that is abandoned as well
    again.rewind(env_step=34)
    train(again, 35, 60)
    again.finish()

    expected, found = lines(whole), lines(again)
    assert len(expected) == 4
    dumped = [line for line in found if line.get("env_step") in (14, 29, 44, 59)]
    for a, b in zip([line for line in dumped if line["env_step"] in (44, 59)], expected[2:], strict=True):
        assert {k: (a.get(k), b.get(k)) for k in a | b if a.get(k) != b.get(k)} == {}


def test_a_keeper_that_comes_late_sees_the_same(begin: Callable[..., rollbook.Run]) -> None:
    run = begin("late", sinks=[])
    train(run, 0, 37)
    run.restore()
    train(run, 35, 60)
    run.finish()
    inside = Memory()
    replay(run.folder, Smooth(Merge(inside, "env_step"), "loss", 0.9))
    whole = begin("whole", sinks=[])
    train(whole, 0, 60)
    whole.finish()
    straight = Memory()
    replay(whole.folder, Smooth(Merge(straight, "env_step"), "loss", 0.9))

    def smoothed(sink: Memory, attempt: int) -> dict[int, float]:
        rows = [row for row in sink.rows if row.attempt == attempt and "loss_smoothed_0.9" in row.values]
        return {row.clocks["env_step"]: row.values["loss_smoothed_0.9"] for row in rows}  # type: ignore[misc]

    expected = smoothed(straight, 1)
    assert smoothed(inside, 2) == {step: expected[step] for step in range(35, 60)}
    assert [row.mark for row in inside.rows if row.mark in ("rewind", "final")] == ["rewind", "final"]


def test_rows_held_back_at_a_rewind_are_neither_lost_nor_given_twice(begin: Callable[..., rollbook.Run]) -> None:
    run = begin("held", sinks=[])
    for i in range(8):
        run.log({"x": float(i)}, env_step=i // 2)
    run.save_checkpoint({"w": 1})
    run.log({"y": 1.0}, env_step=9)
    run.restore()
    run.log({"y": 2.0}, env_step=9)
    run.finish()
    merged, thinned = Memory(), Memory()
    replay(run.folder, Merge(merged, "env_step"))
    replay(run.folder, Select(Every(thinned, rows=100, per="all"), keys="^[xy]$"))
    assert values(merged) == [*({"x": float(i)} for i in range(8)), {"y": 1.0}, {"y": 2.0}]
    assert values(thinned) == [{"x": 0.0}, {"y": 1.0}, {"y": 2.0}]


def test_without_a_rewind_nothing_is_given_again(begin: Callable[..., rollbook.Run]) -> None:
    run = begin("plain", sinks=[])
    run.log({"loss": 1.0}, env_step=1)
    run.finish()
    again = begin("plain", sinks=[], resume="must")
    again.log({"loss": 3.0}, env_step=2)
    again.internals.writer.frame({"mark": "dump", "scope": "", "clocks": [], "keys": []})
    again.finish()
    inside = Memory()
    replay(again.folder, Aggregate(inside, "loss", statistics=["mean"]))
    assert values(inside) == [
        {"loss_mean": 1.0},
        {"loss_mean": 3.0},
    ]  # the first attempt ended, and its end was its dump
