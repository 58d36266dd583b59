"""Numbers that are none, values of other makes, and configurations that hold more than JSON does."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import enum
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app

Begin = Callable[..., Any]


def _column(book: Any, key: str) -> list[Any]:
    return [row[key] for row in book.metrics([key]).to_pylist() if row[key] is not None]


def test_nan_twice_at_one_step_hinders_nothing_that_comes_after_it(begin: Begin) -> None:
    run = begin()
    for value in (math.nan, math.nan, 0.5):
        run.log({"loss": value}, step=3)
    run.save_checkpoint({"weights": [1.0]}, score=0.5, step=3)
    assert _column(run.book, "loss") == pytest.approx([math.nan, math.nan, 0.5], nan_ok=True)
    assert run.restore("last").state == {"weights": [1.0]}


def test_infinity_is_infinity_and_no_very_large_number(begin: Begin) -> None:
    run = begin()
    run.log({"up": math.inf, "down": -math.inf})
    assert (_column(run.book, "up"), _column(run.book, "down")) == ([math.inf], [-math.inf])
    (row,) = run.book.sql("select max(up) as up, min(down) as down from metrics").fetchall()
    assert row == (math.inf, -math.inf)


def test_one_metric_that_is_nan_leaves_the_rest_of_the_run_readable(begin: Begin, root: Path) -> None:
    with begin() as run:
        for step in range(4):
            run.log({"loss": math.nan, "return": float(step)}, step=step)
    shown = CliRunner().invoke(app, ["show", "last", "--json", "--dir", str(root)])
    assert json.loads(shown.stdout)["keys"]["return"]["value"] == 3.0
    listed = CliRunner().invoke(app, ["ls", "--metric", "loss=last", "--metric", "return=last", "--dir", str(root)])
    assert (listed.exit_code, "3" in listed.stdout) == (0, True)


def test_nan_within_a_series_keeps_its_place_between_its_neighbours(begin: Begin) -> None:
    run = begin()
    for step, value in enumerate((0.1, math.nan, 1.0)):
        run.log({"value": value}, step=step)
    rows = run.book.metrics(["value"], x="step").to_pylist()
    assert [(row["step"], math.isnan(row["value"])) for row in rows] == [(0, False), (1, True), (2, False)]


class _Schedule(enum.Enum):
    COSINE = "cosine"


@dataclasses.dataclass
class _Adapter:
    rank: int = 8
    targets: frozenset[str] = frozenset({"q", "v"})
    initial: type = float
    schedule: _Schedule = _Schedule.COSINE


def test_a_configuration_with_objects_that_are_no_json_opens_the_run_and_is_kept(begin: Begin, root: Path) -> None:
    odd = {
        "adapter": _Adapter(),
        "bytes": b"\x00\xff",
        "call": len,
        "array": np.arange(3),
        "kind": np.float32,
        3: "three",
    }
    with begin(config=odd) as run:
        run.config.update({"late": {1, 2}, "nested": {"type": int}})
        run.log({"loss": 1.0})
    config = rollbook.open(root).one().config
    assert set(config) >= {"adapter", "bytes", "call", "array", "kind", "late", "nested"}
    assert config["adapter"]["rank"] == 8
    json.dumps(config)


def test_a_metric_that_appears_later_gets_a_column_and_loses_no_row(root: Path) -> None:
    with rollbook.init("world", "late", sinks=["csv"], keeper="inline", rules=()) as run:
        for epoch in range(4):
            run.log({"loss": 1.0 / (epoch + 1)}, epoch=epoch)
            if epoch >= 2:
                run.log({"hit_rate": 0.5, "precision": 0.25}, epoch=epoch)
    book = rollbook.open(root).one()
    assert (len(_column(book, "loss")), len(_column(book, "hit_rate"))) == (4, 2)
    kept = [row for file in Path(run.folder).rglob("*.csv") for row in csv.DictReader(file.open())]
    assert all(None not in row for row in kept)
    assert sum(bool(row.get("hit_rate")) for row in kept) == 2


def test_integers_are_not_rounded_to_floats(begin: Begin) -> None:
    run = begin()
    run.log({"tokens": 2**53 + 1})
    run.log({"tokens": 2**63 - 1})
    assert _column(run.book, "tokens") == [2**53 + 1, 2**63 - 1]


@pytest.mark.parametrize("make", [float, np.float32, np.float64, np.int8, np.array, lambda x: np.array([x])])
def test_a_number_is_a_number_whoever_made_it(begin: Begin, make: Callable[[float], Any]) -> None:
    run = begin()
    run.log({"value": make(3)})
    assert _column(run.book, "value") == [3]


def test_a_duration_is_its_seconds_and_a_moment_and_a_path_are_texts(begin: Begin) -> None:
    """`{"elapsed": datetime.now() - start, "checkpoint": Path(…)}` in a row costs none of its values."""
    run = begin()
    moment = datetime.datetime(2026, 11, 29, 12, 30)
    row = {"elapsed": datetime.timedelta(minutes=1.5), "moment": moment, "file": Path("out/model.pt"), "loss": 1.0}
    for step in range(10):
        run.log(row, env_step=step)
    table = run.book.metrics(["elapsed", "loss"])
    assert (table["elapsed"].to_pylist(), table["loss"].to_pylist()) == ([90.0] * 10, [1.0] * 10)
    texts = run.book.text()
    assert set(zip(texts["key"].to_pylist(), texts["text"].to_pylist(), strict=True)) == {
        ("moment", str(moment)),
        ("file", str(Path("out/model.pt"))),
    }
    assert not run.bill()["drops"]
