"""Groups of runs: their curves, which is better, what differs. The page says what the library says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import rollbook
from page_server import client_of, record
from rollbook.server.frames import unpack


def groups_of(runs: list[str]) -> list[dict[str, Any]]:
    """The two learning rates, as the page names them."""
    return [{"name": "low", "runs": runs[:3]}, {"name": "high", "runs": runs[3:]}]


def curves(client: TestClient, **ask: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(entry, arrays) of each curve."""
    answer = client.post("/api/curves", json=ask)
    assert answer.status_code == 200, answer.text
    return [
        (entry, arrays[n]) for header, arrays in unpack(answer.content) for n, entry in enumerate(header["entries"])
    ]


def test_a_group_has_a_centre_its_extremes_and_how_many_seeds_stand_behind_each_point(
    client: TestClient, runs: list[str], recorded: Path
) -> None:
    found = curves(client, groups=groups_of(runs), keys=["train/return"], points=50)
    assert [entry["group"] for entry, _ in found] == ["low", "high"]
    low, arrays = found[0]
    assert low["seeds"] == 3
    assert set(arrays["count"].tolist()) == {3}
    assert np.isnan(arrays["low"]).all()  # three seeds: no honest interval
    assert "IQM of 3 seeds, no band" in low["sentence"]
    assert (arrays["min"] <= arrays["centre"] + 1e-3).all()
    book_curves = rollbook.open(recorded).curves("train/return", x="env_step", by="config.lr", points=50)
    expected = book_curves["0.0003"].band.centre_P
    assert np.allclose(arrays["centre"], expected, rtol=1e-5, atol=1e-3, equal_nan=True)


def test_a_part_of_the_axis_has_as_many_points(client: TestClient, runs: list[str]) -> None:
    ((_, arrays), _) = curves(client, groups=groups_of(runs), keys=["train/return"], points=40, start=1000, stop=2000)
    assert len(arrays["x"]) == 40
    assert (arrays["x"][0], arrays["x"][-1]) == (1000, 2000)


def test_a_member_without_the_key_is_named(client: TestClient, runs: list[str]) -> None:
    ((entry, _),) = curves(client, groups=[{"name": "g", "runs": runs}], keys=["nothing"])
    assert entry["kind"] == "none"
    assert entry["missing"] == runs


def test_two_groups_of_one_name_are_refused(client: TestClient, runs: list[str]) -> None:
    twice = [{"name": "g", "runs": runs[:1]}, {"name": "g", "runs": runs[1:]}]
    assert client.post("/api/curves", json={"groups": twice, "keys": ["train/return"]}).status_code == 400


def test_a_comparison_says_which_is_better_and_how_sure_that_is(client: TestClient, runs: list[str]) -> None:
    answer = client.post("/api/compare", json={"groups": groups_of(runs), "key": "train/return"}).json()
    assert answer["at"] == 4999.0
    assert answer["at_why"] == "reached by all 6 finished runs"
    assert [group["n"] for group in answer["groups"]] == [3, 3]
    (pair,) = answer["pairs"]
    assert pair["verdict"] == "undecided"  # three seeds against three cannot decide
    assert pair["difference"] < -50
    assert pair["better"] == 0.0
    assert "not decided" in answer["sentence"]
    assert {entry["counted"] for group in answer["groups"] for entry in group["seeds"]} == {True}
    assert [row["todo"] for row in answer["plan"]] == ["run 2 more, then look"] * 2
    assert answer["profile"]["groups"]["high"][0] == 1.0 or answer["profile"]["groups"]["high"][1] == 1.0


def test_a_comparison_says_where_groups_parted_and_what_the_plans_beside_them_say(tmp_path: Path) -> None:
    for lr in (3e-4, 1e-3):
        for seed in range(5):
            record(tmp_path, "ppo", seed, lr, rows=60)
    rollbook.open(tmp_path).compare("train/return", by="config.lr", plan="which-lr")
    os.symlink(tmp_path / "comparisons" / "which-lr.json", tmp_path / "comparisons" / "elsewhere.json")
    with client_of(tmp_path) as client:
        found = client.post("/api/runs", json={"group_by": ["config.lr"]}).json()["rows"]
        groups = [{"name": row["name"], "runs": row["runs"]} for row in found]
        answer = client.post("/api/compare", json={"groups": groups, "key": "train/return"}).json()
    (pair,) = answer["parted"]
    assert {pair["a"], pair["b"]} == {"lr 0.0003", "lr 0.001"}
    assert pair["ahead"] == "lr 0.001"
    assert 0 < pair["x"] < pair["last"] == 59
    assert "no verdict" in pair["sentence"]
    (plan,) = answer["plans"]
    assert (plan["name"], plan["metric"], plan["by"]) == ("which-lr", "train/return", "config.lr")
    assert plan["looks"][0]["n"] == 5
    assert plan["verdicts"][0]["sentence"]


def test_a_comparison_at_a_step_uses_nothing_behind_it(client: TestClient, runs: list[str]) -> None:
    ask = {"groups": groups_of(runs), "key": "train/return", "at": 100, "score": "last"}
    answer = client.post("/api/compare", json=ask).json()
    assert all(abs(entry["value"]) < 20 for group in answer["groups"] for entry in group["seeds"])


@pytest.mark.parametrize("ask", [{"groups": []}, {"score": "nonsense"}, {"statistic": "mode"}])
def test_what_cannot_be_compared_is_said(client: TestClient, runs: list[str], ask: dict[str, Any]) -> None:
    whole = {"groups": groups_of(runs), "key": "train/return", **ask}
    assert client.post("/api/compare", json=whole).status_code == 400


def test_differences_of_configuration_come_first(client: TestClient, runs: list[str]) -> None:
    answer = client.post("/api/diff", json={"groups": groups_of(runs)}).json()
    assert answer["groups"] == ["low", "high"]
    assert answer["rows"][0] == {"path": "lr", "values": [3e-4, 1e-3], "differs": True}
    assert answer["equal"] == 2
