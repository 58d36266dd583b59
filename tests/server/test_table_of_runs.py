"""The table of runs."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import rollbook
import waiting
from cases import some_of
from page_server import client_of, record
from rollbook.runs.grouping import telling_columns
from rollbook.server.settings import Limits
from rollbook.server.shared.state import FactsCache

pytestmark = pytest.mark.usefixtures("sealed")


def table(client: TestClient, **ask: Any) -> dict[str, Any]:
    """The answer to a question about the table, once all its numbers are there."""
    while True:
        answer = client.post("/api/runs", json=ask)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        if not found["pending"]:
            return found


def test_every_run_is_a_row_with_its_cells(client: TestClient) -> None:
    answer = table(client, columns=["config.lr", "last:train/return", "max:update/loss", "config.net.width"])
    assert answer["total"] == answer["matched"] == answer["rows_total"] == 6
    for row in answer["rows"]:
        assert row["kind"] == "run"
        assert row["status"] == "finished"
        assert row["cells"]["config.net.width"] == 64
        assert row["cells"]["max:update/loss"] == 1.0
        assert row["at"] == 4_999
        assert row["total"] == 5_000


def test_seeds_of_one_configuration_fold_into_one_row(client: TestClient) -> None:
    answer = table(client, group_by=["auto"], columns=["last:train/return", "seed"])
    assert [row["kind"] for row in answer["rows"]] == ["group", "group"]
    assert {row["name"] for row in answer["rows"]} == {"ppo lr 3e-4", "ppo lr 0.001"}
    assert all(row["cells"]["last:train/return"]["n"] == 3 for row in answer["rows"])
    assert answer["rows"][0]["cells"]["seed"] == {"distinct": 3, "values": [0, 1, 2]}
    opened = table(client, group_by=["auto"], open=[answer["rows"][0]["id"]])
    assert [row["kind"] for row in opened["rows"]] == ["group", "run", "run", "run", "group"]
    assert opened["rows"][1]["member_of"] == answer["rows"][0]["id"]


def test_a_group_is_named_after_what_it_has_of_its_own(tmp_path: Path) -> None:
    usual = {"lr": 3e-4, "clip": 0.2, "norm": True}
    for own in ({}, {"lr": 1e-3}, {"clip": 0.1}, {"norm": False}, {"lr": 1e-3, "norm": False}):
        for seed in range(2):
            config = {**usual, **own}
            rollbook.init("study", "ppo", seed=seed, config=config, dir=tmp_path, sinks=[], keeper="import").finish()
    with client_of(tmp_path) as client:
        rows = table(client, group_by=["auto"])["rows"]
    assert sorted(row["name"] for row in rows) == [
        "ppo clip 0.1",
        "ppo lr 0.001",
        "ppo lr 0.001 norm false",
        "ppo lr 3e-4",
        "ppo norm false",
    ]


def test_runs_of_one_name_and_seed_say_their_settings_and_repetitions_their_ids(tmp_path: Path) -> None:
    ids: dict[tuple[float, int], list[str]] = {}
    for lr, seed in ((3e-4, 0), (3e-4, 1), (1e-3, 0), (1e-3, 1), (1e-3, 1)):
        config = {"optim": {"lr": lr}, "batch": 64, "seed": seed}
        with rollbook.init("study", "ppo", seed=seed, config=config, dir=tmp_path, sinks=[], keeper="import") as run:
            ids.setdefault((lr, seed), []).append(run.id)
    for seed in range(2):
        rollbook.init("study", "dqn", seed=seed, config={"lr": seed}, dir=tmp_path, sinks=[], keeper="import").finish()
    rollbook.init("other", "ppo", seed=0, dir=tmp_path, sinks=[], keeper="import").finish()
    with client_of(tmp_path) as client:
        rows = table(client, sections=False)["rows"]
        own = {row["id"]: row.get("own", "") for row in rows if row["project"] == "study" and row["name"] == "ppo"}
        others = [row.get("own", "") for row in rows if row["id"] not in own]
        few = table(client, runs=ids[3e-4, 0], sections=False)["rows"]
        detail = client.get(f"/api/runs/{ids[3e-4, 0][0]}").json()
    twice = ids[1e-3, 1]
    assert own == {
        **{ids[3e-4, seed][0]: "lr 3e-4" for seed in range(2)},
        ids[1e-3, 0][0]: "lr 0.001",
        **{one: f"lr 0.001 {one}" for one in twice},
    }
    assert set(others) == {""}, "a name with its seed is enough where no other run of the project has both"
    assert few[0]["own"] == detail["own"] == "lr 3e-4", "a run is called the same, whichever others were asked for"


def test_runs_of_a_group_that_they_were_given_fold_whatever_their_names_are(tmp_path: Path) -> None:
    for name, group in (("brisk-sun-1", "old"), ("calm-sea-2", "old"), ("new", None), ("new", None)):
        rollbook.init("study", name, group=group, dir=tmp_path, sinks=[], keeper="import").finish()
    with client_of(tmp_path) as client:
        rows = table(client, group_by=["auto"])["rows"]
    assert {row["name"]: len(row["runs"]) for row in rows} == {"old": 2, "new": 2}


def test_a_group_is_called_by_as_few_words_as_distinguish_it() -> None:
    shared = {"config.env_steps": 100_000, "config.batch_size": None}
    other = {"config.env_steps": None, "config.batch_size": 64}
    many = [{**shared, "config.learning_rate": 0.0025}, {**other, "config.learning_rate": 0.0003}]
    assert telling_columns(many, list(many[0])) == ["config.learning_rate"]
    grid = [{"config.width": width, "config.lr": lr} for width in (32, 64) for lr in (0.1, 0.2)]
    assert telling_columns(grid, ["config.width", "config.lr"]) == ["config.lr", "config.width"]
    assert telling_columns([{}], []) == []


OTHERS = {
    "a field that no other has": {"lr": 1e-3, "seed": 7, "net": {"width": 64}, "clip": 0.1},
    "none of the fields": {"clip": 0.1},
    "another value of a field that was one": {"lr": 1e-3, "seed": 7, "net": {"width": 32}},
    "a seed": {"lr": 1e-3, "seed": 7, "net": {"width": 64}},
}


@pytest.mark.parametrize("config", some_of(OTHERS.values(), 2, ids=[*OTHERS]))
def test_a_group_keeps_its_id_whatever_other_runs_come(tmp_path: Path, config: dict[str, Any]) -> None:
    for lr in (1e-3, 3e-4):
        for seed in range(2):
            record(tmp_path, "ppo", seed, lr, rows=3)
    with client_of(tmp_path) as client:
        before = {row["id"]: set(row["runs"]) for row in table(client, group_by=["auto"])["rows"]}
        rollbook.init("cartpole", "ppo", config=config, dir=tmp_path, sinks=[], keeper="import").finish()
        waiting.until(lambda: table(client)["total"] == 5, "the new run is noticed")
        after = {row["id"]: set(row.get("runs", ())) for row in table(client, group_by=["auto"])["rows"]}
    assert {name: members & after[name] for name, members in before.items()} == before
    assert all(len(group) < 60 for group in before)


def test_a_filter_may_ask_for_configuration_and_for_metrics(client: TestClient) -> None:
    assert table(client, filter="config.lr < 5e-4")["matched"] == 3
    assert table(client, filter='last("train/return") > 150')["matched"] == 3
    assert table(client, filter="seed == 1 and config.lr == 1e-3")["matched"] == 1


def test_a_filter_that_cannot_be_read_says_where(client: TestClient) -> None:
    answer = client.post("/api/runs", json={"filter": "config.lr < 3 adn seed == 1"})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "bad_input"
    assert error["at"] == "config.lr < 3 adn seed == 1".index("adn")


def test_a_filter_that_names_an_unknown_field_says_which_one_may_be_meant(client: TestClient) -> None:
    answer = table(client, filter="config.learning_rate < 3e-4")
    assert answer["matched"] == 0
    assert answer["did_you_mean"] == "No run has config.learning_rate. Did you mean config.lr (6 runs)?"


@pytest.mark.parametrize("words", ["3e-4", "0.0003", " 3E-4 "])
def test_words_that_only_a_setting_has_are_answered_with_its_condition(client: TestClient, words: str) -> None:
    answer = table(client, search=words)
    assert answer["matched"] == 0
    assert answer["conditions"] == ["config.lr = 3e-4"]
    assert table(client, filter="config.lr = 3e-4")["matched"] == 3
    assert table(client, search="nobody has this")["conditions"] == []


def test_rows_are_sorted_by_a_metric_and_those_without_it_stay_last(client: TestClient) -> None:
    up = table(client, sort=[{"column": "last:train/return"}], columns=["last:train/return"])["rows"]
    values = [row["cells"]["last:train/return"] for row in up]
    assert values == sorted(values)
    down = table(client, sort=[{"column": "last:train/return", "descending": True}])["rows"]
    assert [row["run"] for row in down] == [row["run"] for row in reversed(up)]


def test_rows_are_in_order_as_soon_as_their_numbers_are_there(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FactsCache, "_announce", lambda self: None)
    up = table(client, sort=[{"column": "last:train/return"}], columns=["last:train/return"])["rows"]
    values = [row["cells"]["last:train/return"] for row in up]
    assert values == sorted(values)


def test_runs_are_sorted_by_an_extreme_that_no_window_has_shown(client: TestClient, recorded: Path) -> None:
    shown = table(client, columns=["max:train/return"], sections=False)["rows"]
    highest = max(shown, key=lambda row: row["cells"]["max:train/return"])
    lowest = min(shown, key=lambda row: row["cells"]["max:train/return"])
    for descending, first in ((True, highest), (False, lowest)):
        with client_of(recorded) as later:
            table(later, columns=["last:train/return"])  # what a run logged last is known, its extremes are not
            sort = [{"column": "max:train/return", "descending": descending}]
            (row,) = table(later, sort=sort, limit=1, sections=False)["rows"]
        assert row["run"] == first["run"]


def test_a_window_holds_no_more_than_was_asked_for(client: TestClient) -> None:
    whole = [row["id"] for row in table(client)["rows"]]
    parts = [row["id"] for place in range(0, 6, 4) for row in table(client, offset=place, limit=4)["rows"]]
    assert parts == whole
    answer = client.post("/api/runs", json={"limit": 100_000})
    assert answer.status_code == 413


def test_a_search_finds_all_of_its_words_anywhere(client: TestClient) -> None:
    assert table(client, search="PPO cart")["matched"] == 6
    assert table(client, search="ppo nothing")["matched"] == 0


@pytest.mark.parametrize("typed", ["3e-3", "0.003", "3E-03", ".003"])
def test_a_number_in_a_search_finds_what_it_is_however_it_is_written(tmp_path: Path, typed: str) -> None:
    for name in ("ppo-lr0.003", "ppo lr 3e-3", "ppo lr=3e-03", "ppo lr 0.3"):
        rollbook.init("p", name, dir=tmp_path, sinks=[], keeper="import").finish()
    with client_of(tmp_path) as client:
        assert table(client, search=f"ppo {typed}")["matched"] == 3


def test_a_new_run_is_in_the_table_without_a_restart(tmp_path: Path) -> None:
    with client_of(tmp_path) as client:
        assert table(client)["total"] == 0
        record(tmp_path, "late", 0, 1e-3, rows=10)
        while not (rows := table(client)["rows"]):  # looked at once a second
            pass
        assert [row["name"] for row in rows] == ["late"]


def test_runs_with_one_id_have_names_of_their_own(tmp_path: Path, recorded: Path) -> None:
    import shutil

    source = next((recorded / "cartpole").glob("*/run.json")).parent
    shutil.copytree(source, tmp_path / "a" / source.name)
    shutil.copytree(source, tmp_path / "b" / source.name)
    with client_of(tmp_path) as client:
        names = [row["run"] for row in table(client)["rows"]]
        assert len(set(names)) == 2
        for name in names:
            assert client.get(f"/api/runs/{name}").json()["run"] == name


def test_a_linked_folder_outside_of_the_root_is_not_shown(tmp_path: Path, recorded: Path) -> None:
    (tmp_path / "root").mkdir()
    try:
        (tmp_path / "root" / "outside").symlink_to(recorded / "cartpole")
    except OSError:
        pytest.skip("no links here")
    with client_of(tmp_path / "root") as client:
        assert table(client)["total"] == 0


def test_the_picker_of_columns_knows_what_differs(client: TestClient) -> None:
    while (answer := client.post("/api/columns", json={}).json())["pending"]:
        pass
    by_name = {entry["column"]: entry for entry in answer["config"]}
    assert by_name["config.lr"] == {
        "column": "config.lr",
        "runs": 6,
        "distinct": 2,
        "varies": True,
        "examples": by_name["config.lr"]["examples"],
    }
    assert not by_name["config.net.width"]["varies"]
    assert {"key": "train/return", "runs": 6, "canonical": None} in answer["metrics"]


def test_a_run_that_cannot_be_read_is_named_with_what_to_do(tmp_path: Path) -> None:
    record(tmp_path, "ppo", 0, 1e-3, rows=5)
    torn = tmp_path / "cartpole" / "ppo-torn"
    (torn / "data" / "journal").mkdir(parents=True)
    (torn / "run.json").write_text('{"id": "to')
    with client_of(tmp_path) as client:
        answer = client.post("/api/runs", json={"sections": False}).json()
        assert (answer["total"], answer["unreadable_total"]) == (1, 1)
        assert "ppo-torn" in answer["unreadable"][0]
        assert "rollbook repair" in answer["unreadable"][0]
        shutil.rmtree(torn)
        client.app.app.state.context.catalogue.refresh(full=True)  # type: ignore[attr-defined]
        assert client.post("/api/runs", json={}).json()["unreadable_total"] == 0


def test_a_folder_that_may_not_be_read_is_named_by_the_page_and_by_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, "ppo", 0, 1e-3, rows=5)
    shut = tmp_path / "cartpole" / "shut"
    shutil.copytree(next((tmp_path / "cartpole").iterdir()), shut)
    calls = {name: getattr(os, name) for name in ("stat", "scandir")}
    closed = [True]

    def guarded(name: str) -> Any:
        def call(path: Any = ".", *args: Any, **more: Any) -> Any:
            inside = str(path).startswith(f"{shut}{os.sep}") or (name == "scandir" and str(path) == str(shut))
            if closed[0] and inside:  # as without chmod u+rx; root may read everything
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return calls[name](path, *args, **more)

        return call

    for name in calls:
        monkeypatch.setattr(os, name, guarded(name))
    (said,) = rollbook.open(tmp_path).problems
    assert f"{shut} cannot be listed: Permission denied" in said
    assert "chmod" in said
    with client_of(tmp_path) as client:
        answer = client.post("/api/runs", json={}).json()
        assert (answer["total"], answer["unreadable"]) == (1, [said])
        closed[0] = False
        client.app.app.state.context.catalogue.refresh(full=True)  # type: ignore[attr-defined]
        answer = client.post("/api/runs", json={}).json()
        assert (answer["total"], answer["unreadable_total"]) == (2, 0)


def test_what_is_drawn_comes_with_the_table_so_that_its_curves_can_be_asked_for_at_once(client: TestClient) -> None:
    answer = table(client, group_by=["auto"], draw_first=5)
    runs = [run for row in answer["rows"] for run in row["runs"]]
    assert answer["drawn"]["runs"] == runs
    keys = client.post("/api/keys", json={"runs": runs}).json()
    assert answer["drawn"]["keys"] | {"took_ms": 0} == keys | {"took_ms": 0}
    second = answer["rows"][1]
    chosen = table(client, group_by=["auto"], drawn=[second["id"]], draw_first=5)
    assert chosen["drawn"]["runs"] == second["runs"]
    assert table(client, drawn=[runs[4], runs[0]])["drawn"]["runs"] == [runs[4], runs[0]]
    assert table(client, drawn=["nobody"], draw_first=5)["drawn"] is None
    assert table(client)["drawn"] is None


def test_of_more_runs_than_are_quickly_opened_some_give_their_keys_with_the_table(recorded: Path) -> None:
    with client_of(recorded, limits=Limits(first_runs=6)) as client:
        assert not table(client, group_by=["auto"], draw_first=5)["drawn"]["is_part"]
    with client_of(recorded, limits=Limits(first_runs=2)) as client:
        drawn = table(client, group_by=["auto"], draw_first=5)["drawn"]
        assert drawn["is_part"]
        assert len(drawn["runs"]) == 6
        assert {key["key"]: key["runs"] for key in drawn["keys"]["keys"]}["train/return"] == 2


def test_a_run_with_damaged_parts_says_so_in_its_row_and_in_its_groups(tmp_path: Path) -> None:
    for seed in range(3):
        identity = record(tmp_path / "runs", "ppo", seed, 1e-3)
    folder = next(path for path in (tmp_path / "runs").rglob("run.json") if identity in path.read_text()).parent
    for part in (folder / "data" / "metrics").rglob("*.parquet"):
        part.write_bytes(part.read_bytes()[: part.stat().st_size // 2])
    with client_of(tmp_path / "runs") as client:
        rows = {row["run"]: row for row in table(client, columns=["last:train/return"])["rows"]}
        assert "cannot be read" in rows[identity]["damaged"]
        assert [run for run, row in rows.items() if row.get("damaged")] == [identity]
        (group,) = table(client, group_by=["auto"], columns=["last:train/return"])["rows"]
        assert group["damaged"] == "1 of 3 runs have parts that cannot be read"
        assert client.get(f"/api/runs/{identity}").json()["problems"]


def test_a_page_finds_the_newest_run_that_has_something_to_show_however_old(tmp_path: Path) -> None:
    for number in range(12):
        with rollbook.init("p", f"n{number}", dir=tmp_path, sinks=[], keeper="import") as run:
            run.log({"train/return": 1.0}, env_step=1)
            if number in (0, 1):
                run.log_samples(["what?"], ["that"], reward=[1.0])
    with (
        rollbook.init("p", "live", dir=tmp_path, sinks=[], keeper="import") as live,
        client_of(tmp_path) as client,
    ):

        def newest(table: str) -> tuple[str, bool, int]:
            answer = client.get("/api/newest", params={"table": table}).json()
            names = {
                row["run"]: row["name"] for row in client.post("/api/runs", json={"sections": False}).json()["rows"]
            }
            return names[answer["run"]], answer["has"], answer["looked"]

        assert newest("samples") == ("n1", True, 12)
        assert newest("rollouts") == ("live", False, 13), "none has any: the newest of all"
        assert newest("") == ("live", True, 1)
        live.log_samples(["why?"], ["so"], reward=[1.0])
        waiting.until(lambda: newest("samples") == ("live", True, 1))


def test_sealed_runs_are_asked_for_a_table_without_being_read(tmp_path: Path) -> None:
    for number in range(5):
        record(tmp_path, f"n{number}", number, 1e-3, rows=20)
    with client_of(tmp_path) as client:
        assert client.get("/api/newest", params={"table": "rollouts"}).json()["looked"] == 5
        assert len(client.app.app.state.context.readers) == 0  # type: ignore[attr-defined]
