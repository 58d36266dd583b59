"""Groups of runs: their curves, which is better, what differs. The page says what the library says."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import rollbook
from page_server import client_of, record
from rollbook.book.book import Book
from rollbook.server.frames import unpack
from rollbook.server.settings import Limits


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
    found = curves(client, by=groups_of(runs), keys=["train/return"], points=50)
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


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """Each read of rows: the run and the keys."""
    reads: list[tuple[str, list[str]]] = []
    batch = Book.batch

    def counting(book: Book, keys: Any, **more: Any) -> Any:
        reads.append((book.path.name, list(keys)))
        return batch(book, keys, **more)

    monkeypatch.setattr(Book, "batch", counting)
    return reads


def test_the_rows_of_a_group_are_read_once_and_again_of_the_run_that_has_more(
    tmp_path: Path, asked: list[tuple[str, list[str]]]
) -> None:
    for seed in range(3):
        record(tmp_path, "ppo", seed, 1e-3, rows=50)
    with client_of(tmp_path) as client:
        rows = client.post("/api/runs", json={"sections": False}).json()["rows"]
        runs = [row["run"] for row in rows]
        ask = {"by": [{"name": "g", "runs": runs}], "keys": ["train/return", "update/loss"]}
        curves(client, **ask)
        assert len(asked) == 3  # both keys of a run at once
        curves(client, **ask, points=30)
        curves(client, **ask, statistic="mean")
        client.post("/api/compare", json={"by": [{"name": "g", "runs": runs}], "metric": "train/return"})
        assert len(asked) == 3
        folder = tmp_path / "cartpole" / asked[0][0]
        with rollbook.init("cartpole", "ppo", dir=tmp_path, run_id=folder.name.rpartition("-")[2], resume="must",
                           sinks=[], keeper="import") as run:  # fmt: skip
            run.log({"train/return": 1e6}, env_step=60)
        (_, arrays), _ = curves(client, **ask)
    assert np.nanmax(arrays["max"]) > 9e5
    assert {name for name, _ in asked[3:]} == {folder.name}


def test_bands_that_take_long_come_first_from_few_draws(recorded: Path, runs: list[str]) -> None:
    ask = {"by": [{"name": "g", "runs": runs}], "keys": ["train/return"], "points": 31}
    with client_of(recorded, limits=Limits(draft_points=1)) as client:
        first, then = curves(client, **ask, refine=True)
        assert [entry.get("preliminary", False) for entry, _ in (first, then)] == [True, False]
        assert "preliminary (200 draws)" in first[0]["sentence"]
        assert np.array_equal(first[1]["centre"], then[1]["centre"], equal_nan=True)
        (kept,) = curves(client, **ask, refine=True)
        assert "preliminary" not in kept[0]
        assert kept[1]["low"].tobytes() == then[1]["low"].tobytes()
        (alone,) = curves(client, **{**ask, "points": 32})
        assert "preliminary" not in alone[0]


def test_two_remarks_about_a_curve_are_two_sentences(tmp_path: Path) -> None:
    ids = [record(tmp_path, "ppo", seed, 1e-3, rows=rows) for seed, rows in enumerate((20, 40))]
    with (
        contextlib.suppress(ZeroDivisionError),
        rollbook.init("cartpole", "ppo", seed=2, dir=tmp_path, sinks=[], keeper="import") as run,
    ):
        run.log_many({"train/return": [1.0, 2.0]}, env_step=[0, 30])
        raise ZeroDivisionError
    ids.append(run.id)
    with client_of(tmp_path) as client:
        ((entry, _),) = curves(client, by=[{"name": "ppo", "runs": ids}], keys=["train/return"], points=9)
    assert ". 1 of 3 runs did not finish; " in entry["sentence"]
    assert ".." not in entry["sentence"]


def test_the_first_curve_of_very_many_runs_is_of_some_and_says_so(
    recorded: Path, runs: list[str], asked: list[tuple[str, list[str]]]
) -> None:
    ask = {"by": groups_of(runs), "keys": ["train/return"], "points": 31}
    few = Limits(group_bytes=1, many_runs=5, first_runs=2)
    with client_of(recorded, limits=few) as client:
        (low, some), _, (_, whole), _ = curves(client, **ask, refine=True)
        assert low["preliminary"]
        assert low["sentence"].startswith("1 of 3 runs so far. ")
        assert (low["seeds"], set(some["count"].tolist()), set(whole["count"].tolist())) == (3, {1}, {3})
        assert len(asked) == 2 + 6  # some, then each once, although nothing could be kept
        (_, at_once), _ = curves(client, **ask)
        assert {name: row.tobytes() for name, row in whole.items()} == {n: row.tobytes() for n, row in at_once.items()}
        judged = client.post("/api/compare", json={"by": groups_of(runs), "metric": "train/return"}).json()
        assert [len(group["seeds"]) for group in judged["groups"]] == [3, 3]


def test_a_new_range_of_very_many_runs_is_of_some_first_and_then_of_all(recorded: Path, runs: list[str]) -> None:
    ask = {"by": groups_of(runs), "keys": ["train/return"], "points": 31}
    with client_of(recorded, limits=Limits(many_runs=5, first_runs=2)) as client:
        curves(client, **ask)
        (low, some), _, (_, whole), _ = curves(client, **ask, start=1000, stop=2000, refine=True)
        assert low["sentence"].startswith("1 of 3 runs so far. ")
        assert (set(some["count"].tolist()), set(whole["count"].tolist())) == ({1}, {3})


def test_a_part_of_the_axis_has_as_many_points(client: TestClient, runs: list[str]) -> None:
    ((_, arrays), _) = curves(client, by=groups_of(runs), keys=["train/return"], points=40, start=1000, stop=2000)
    assert len(arrays["x"]) == 40
    assert (arrays["x"][0], arrays["x"][-1]) == (1000, 2000)


def test_a_member_without_the_key_is_named(client: TestClient, runs: list[str]) -> None:
    ((entry, _),) = curves(client, by=[{"name": "g", "runs": runs}], keys=["nothing"])
    assert entry["kind"] == "none"
    assert entry["missing"] == runs


def test_a_group_of_no_run_has_no_curve_and_spoils_nothing(client: TestClient, runs: list[str]) -> None:
    empty = {"name": "nobody", "runs": []}
    ((entry, _),) = curves(client, by=[empty], keys=["train/return"])
    assert entry["kind"] == "none"
    both = curves(client, by=[empty, groups_of(runs)[0]], keys=["train/return"], points=50)
    assert [(entry["group"], entry["kind"]) for entry, _ in both] == [("nobody", "none"), ("low", "curve")]


def test_two_groups_of_one_name_are_refused(client: TestClient, runs: list[str]) -> None:
    twice = [{"name": "g", "runs": runs[:1]}, {"name": "g", "runs": runs[1:]}]
    assert client.post("/api/curves", json={"by": twice, "keys": ["train/return"]}).status_code == 400


def test_a_comparison_says_which_is_better_and_how_sure_that_is(client: TestClient, runs: list[str]) -> None:
    answer = client.post("/api/compare", json={"by": groups_of(runs), "metric": "train/return"}).json()
    assert answer["at"] is None
    assert answer["at_why"] == "each run at its own end"
    assert {(one["rows"], one["of"]) for group in answer["groups"] for one in group["seeds"]} == {(4994, 4994)}
    assert [group["n"] for group in answer["groups"]] == [3, 3]
    (pair,) = answer["pairs"]
    assert pair["verdict"] == "undecided"  # three seeds against three cannot decide
    assert pair["difference"] < -50
    assert pair["better"] == 0.0
    assert (pair["outcome"], pair["winner"], pair["enough"]) == ("too few seeds", None, 4)
    assert (pair["ahead"], pair["won"], pair["of"]) == ("high", 9, 9)
    assert "no verdict from 3 seeds of each" in answer["sentence"]
    assert {entry["counted"] for group in answer["groups"] for entry in group["seeds"]} == {True}
    assert [row["todo"] for row in answer["plan"]] == ["train 1 more seed"] * 2
    assert answer["profile"]["groups"]["high"][0] == 1.0 or answer["profile"]["groups"]["high"][1] == 1.0


def test_a_comparison_says_where_groups_parted_and_what_the_plans_beside_them_say(tmp_path: Path) -> None:
    for lr in (3e-4, 1e-3):
        for seed in range(5):
            record(tmp_path, "ppo", seed, lr, rows=60)
    rollbook.open(tmp_path).compare("train/return", by="config.lr", plan="which-lr", seeds=5)
    (stored,) = (tmp_path / "comparisons").glob("*.json")
    os.symlink(stored, tmp_path / "comparisons" / "elsewhere.json")
    with client_of(tmp_path) as client:
        found = client.post("/api/runs", json={"group_by": ["config.lr"]}).json()["rows"]
        groups = [{"name": row["name"], "runs": row["runs"]} for row in found]
        answer = client.post("/api/compare", json={"by": groups, "metric": "train/return"}).json()
    (pair,) = answer["parted"]
    assert {pair["a"], pair["b"]} == {"lr 3e-4", "lr 0.001"}
    assert pair["ahead"] == "lr 0.001"
    assert 0 < pair["x"] < pair["last"] == 59
    assert "no verdict" in pair["sentence"]
    (plan,) = answer["plans"]
    assert (plan["name"], plan["metric"], plan["by"]) == ("which-lr", "train/return", "config.lr")
    assert (plan["seeds"], plan["first_look"], plan["looks"][0]["n_a"]) == (5, 5, 5)
    assert plan["verdicts"][0]["sentence"]


def test_what_a_plan_says_on_the_page_names_no_option(tmp_path: Path) -> None:
    for algo in ("a", "b"):
        for seed in range(6):
            with rollbook.init(
                "p", algo, seed=seed, dir=tmp_path, sinks=[], keeper="inline", rules=(), config={"algo": algo}
            ) as run:
                run.log_many({"test/return": [10.0, 500.0]}, env_step=[1, 2])
    found = rollbook.open(tmp_path).compare("test/return", by="algo", plan="which", seeds=6, score="last")
    assert '--score "steps to 500"' in str(found)
    with client_of(tmp_path) as client:
        runs = client.post("/api/runs", json={"group_by": ["config.algo"]}).json()["rows"]
        groups = [{"name": row["name"], "runs": row["runs"]} for row in runs]
        answer = client.post("/api/compare", json={"by": groups, "metric": "test/return", "score": "last"}).json()
    (verdict,) = answer["plans"][0]["verdicts"]
    assert verdict["sentence"].endswith("compare the steps needed to reach it.")
    assert verdict["best"] == 500
    assert "--" not in verdict["sentence"]


def test_a_page_that_a_person_opens_is_a_look_and_one_that_draws_itself_again_is_none(tmp_path: Path) -> None:
    for lr in (3e-4, 1e-3):
        for seed in range(5):
            record(tmp_path, "ppo", seed, lr, rows=60)
    with client_of(tmp_path) as client:
        found = client.post("/api/runs", json={"group_by": ["config.lr"]}).json()["rows"]
        ask = {"by": [{"name": row["name"], "runs": row["runs"]} for row in found], "metric": "train/return"}
        client.post("/api/compare", json=ask)
        assert not (tmp_path / "comparisons").exists()
        client.post("/api/compare", json={**ask, "opened": True})
    (kept,) = (tmp_path / "comparisons" / "looks").iterdir()
    assert '"looks"' in kept.read_text()


def test_a_sweep_shows_the_settings_that_vary_and_the_same_scores_as_a_comparison(
    client: TestClient, runs: list[str]
) -> None:
    answer = client.post("/api/sweep", json={"metric": "train/return"}).json()
    assert [setting["column"] for setting in answer["settings"]] == ["config.lr"]  # and no seed
    compared = client.post("/api/compare", json={"by": groups_of(runs), "metric": "train/return", "statistic": "mean"})
    means = {frozenset(group["runs"]): group["centre"] for group in compared.json()["groups"]}
    assert {frozenset(one["runs"]): one["mean"] for one in answer["configurations"]} == pytest.approx(means)
    assert answer["configurations"][0]["values"] == [1e-3]
    assert answer["at_why"] == compared.json()["at_why"]


def test_a_sweep_of_another_project_or_of_no_run_says_so(client: TestClient) -> None:
    assert client.post("/api/sweep", json={"project": "nowhere"}).status_code == 400
    none = client.post("/api/sweep", json={"filter": "config.lr > 5"}).json()
    assert none["configurations"] == []


def test_a_comparison_at_a_step_uses_nothing_behind_it(client: TestClient, runs: list[str]) -> None:
    ask = {"by": groups_of(runs), "metric": "train/return", "at": 100, "score": "last"}
    answer = client.post("/api/compare", json=ask).json()
    assert all(abs(entry["value"]) < 20 for group in answer["groups"] for entry in group["seeds"])


@pytest.mark.parametrize("ask", [{"by": []}, {"score": "nonsense"}, {"statistic": "mode"}])
def test_what_cannot_be_compared_is_reported(client: TestClient, runs: list[str], ask: dict[str, Any]) -> None:
    whole = {"by": groups_of(runs), "metric": "train/return", **ask}
    assert client.post("/api/compare", json=whole).status_code == 400


def test_differences_of_configuration_come_first(client: TestClient, runs: list[str]) -> None:
    answer = client.post("/api/diff", json={"by": groups_of(runs), "kinds": ["config"]}).json()
    assert answer["groups"] == ["low", "high"]
    first = answer["rows"][0]
    assert (first["name"], first["values"], first["differs"]) == ("config.lr", [3e-4, 1e-3], True)
    assert answer["equal"] == 2


@pytest.mark.parametrize("floor", [None, -1.0])
@pytest.mark.parametrize("crashed", [False, True])
def test_a_run_that_did_not_finish_counts_as_the_floor_or_is_named_as_left_out(
    floor: float | None, crashed: bool, tmp_path: Path
) -> None:
    for seed in (0, 1):
        run = rollbook.init("p", "ppo", seed=seed, dir=tmp_path, sinks=[], keeper="import", rules=())
        run.log({"train/return": 5.0}, env_step=1)
        if not (crashed and seed):
            run.log({"train/return": 5.0}, env_step=100)
        run.finish("crashed" if crashed and seed else "finished")
    with client_of(tmp_path) as client:
        names = [row["run"] for row in client.post("/api/runs", json={"sections": False}).json()["rows"]]
        ask = {"by": [{"name": "g", "runs": names}], "metric": "train/return", "floor": floor}
        (group,) = client.post("/api/compare", json=ask).json()["groups"]
    is_left_out = crashed and floor is None
    assert (group["n"], len(group["missing"])) == ((1, 1) if is_left_out else (2, 0))
    seeds = {one["seed"]: (one["value"], one["counted"]) for one in group["seeds"]}
    assert seeds[0] == (5.0, True)
    assert seeds[1] == (floor if crashed and floor is not None else 5.0, not is_left_out)


def test_what_differs_for_every_run_names_it_and_is_no_setting(tmp_path: Path) -> None:
    for n in range(7):
        with rollbook.init(
            "p", f"run {n}", config={"out": f"a{n}", "lr": n // 2}, dir=tmp_path, sinks=[], keeper="import"
        ) as run:
            run.log({"test/return": float(n)}, env_step=1)
    with client_of(tmp_path) as client:
        answer = client.post("/api/sweep", json={}).json()
    assert [setting["column"] for setting in answer["settings"]] == ["config.lr"]


@pytest.mark.parametrize(
    ("logged", "shown"),
    [(["eval/mean_reward"], "eval/mean_reward"), (["eval/mean_reward", "eval/episodic_return"], "test/return")],
)
def test_a_sweep_is_of_the_key_as_it_was_logged_unless_its_runs_name_it_differently(
    logged: list[str], shown: str, tmp_path: Path
) -> None:
    for n in range(4):
        with rollbook.init(
            "p", "ppo", seed=n % 2, config={"lr": n // 2}, dir=tmp_path, sinks=[], keeper="import", rules=()
        ) as run:
            run.log({logged[n // 2 % len(logged)]: float(n)}, env_step=1)
    with client_of(tmp_path) as client:
        assert client.post("/api/sweep", json={}).json()["key"] == shown


def test_the_notes_of_a_comparison_tell_runs_by_name_and_seed_and_by_id_where_two_are_called_the_same(
    tmp_path: Path,
) -> None:
    runs = []
    good = [("ppo (lr=1, wd=2)", seed, "test/return") for seed in range(3)]
    for name, seed, key in [*good, *[("dqn, new (2)", 1, "update/loss")] * 2]:
        with rollbook.init("p", name, seed=seed, dir=tmp_path, sinks=[], keeper="import") as run:
            run.log({key: float(seed)}, env_step=1)
            runs.append(run.id)
    bad = runs[3:]
    groups = [
        {"name": name, "runs": runs}
        for name, runs in zip("abc", ([runs[0]], [runs[1], bad[0]], [runs[2], *bad]), strict=True)
    ]
    with client_of(tmp_path) as client:
        answer = client.post("/api/compare", json={"by": groups, "metric": "test/return"}).json()
        alone = client.post("/api/compare", json={"by": groups[:2], "metric": "test/return"}).json()
    said = [note["sentence"] for note in answer["notes"]]
    lacking = " without a finite value; not among the scores."
    first, second = (f"dqn, new (2) seed 1 ({run})" for run in bad)
    assert f"b, c: 2 runs ({first}, {second}){lacking}" in said
    assert f"b: 1 run (dqn, new (2) seed 1){lacking}" in [note["sentence"] for note in alone["notes"]]
    assert [each["run"] for each in answer["groups"][2]["missing"]] == bad
    assert [each["run"] for each in answer["groups"][2]["seeds"]] == [runs[2], *bad]
