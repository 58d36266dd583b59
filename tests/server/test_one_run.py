"""What the page shows of one run: cause, episodes, samples, timings, logs, files."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import rollbook
from page_server import client_of, record
from rollbook.book import Book
from rollbook.cli.app import app
from rollbook.server.curves import one_run
from rollbook.server.frames import unpack
from rollbook.server.settings import Limits
from rollbook.server.shared import rows


def got(client: TestClient, path: str, **query: Any) -> dict[str, Any]:
    """The JSON of a GET that is answered."""
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def asked(client: TestClient, path: str, **body: Any) -> dict[str, Any]:
    """The JSON of a POST that is answered."""
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_run_says_all_that_it_knows_of_itself(rich: TestClient, run: str) -> None:
    answer = got(rich, f"/api/runs/{run}")
    assert answer["name"] == "grpo"
    assert answer["config"] == {"lr": 1e-6}
    assert answer["status"] == "finished"
    assert answer["tables"]["episodes"] == 20
    assert answer["attempts"][0]["effective"]
    assert answer["resume_line"].startswith("rollbook.init('rich', 'grpo', run_id=")


def test_attempts_that_never_ended_are_not_shown_as_running_and_rows_are_counted_as_show_counts_them(
    tmp_path: Path,
) -> None:
    quiet: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": (), "run_id": "aaaaaaaa"}
    for resume, lr in (("never", 0.1), ("must", 0.2)):
        with rollbook.init("p", "twice", resume=resume, config={"lr": lr, "net": 64}, **quiet) as run:
            for step in range(20):
                run.log({"train/return": 1.0}, env_step=step)
    manifest = next(tmp_path.rglob("run.json"))
    killed = json.loads(manifest.read_text())
    killed["attempts"][0].update(status="running", ended=None)  # a SIGKILL leaves it like this
    manifest.write_text(json.dumps(killed))
    with client_of(tmp_path) as client:
        answer = got(client, "/api/runs/aaaaaaaa")
    assert [attempt["status"] for attempt in answer["attempts"]] == ["crashed", "finished"]
    assert answer["attempts"][1]["config_changes"] == [{"path": "lr", "before": 0.1, "after": 0.2}]
    assert answer["tables"] == Book(manifest.parent).table_rows()
    assert 0 not in answer["tables"].values()


def test_a_run_that_came_from_another_one_names_it_wherever_it_was_moved_to(tmp_path: Path) -> None:
    quiet: dict[str, Any] = {"dir": tmp_path / "here", "sinks": [], "keeper": "inline", "rules": ()}
    with rollbook.init("p", "first", seed=3, **quiet) as first:
        saved = first.save_checkpoint(write=lambda path: Path(path).write_bytes(b"state"), env_step=7)
    ids = []
    for more in (
        {"forked_from": saved},
        {"forked_from": str(saved.path)},
        {"forked_from": saved.id},
        {"parent": first.id},
    ):
        with rollbook.init("p", "later", **quiet, **more) as run:
            ids.append(run.id)
    (tmp_path / "here").rename(tmp_path / "there")
    with client_of(tmp_path / "there") as client:
        whole, path, bare, child = (got(client, f"/api/runs/{run}") for run in ids)
    named = {"run": first.id, "name": "first", "seed": 3}
    assert whole["forked_run"] == path["forked_run"] == child["parent_run"] == named
    assert saved.id in whole["forked_from"]
    assert bare["forked_from"] == saved.id
    assert (bare["forked_run"], bare["parent_run"], whole["parent_run"]) == (None, None, None)


def test_a_click_on_a_spike_shows_what_went_on_there(rich: TestClient, run: str) -> None:
    answer = got(rich, f"/api/runs/{run}/cause", at=1200, key="train/reward", x="env_step")
    assert answer["value"] == {"key": "train/reward", "value": 26.2, "before": 1.19, "at": 1200.0}
    assert {entry["key"] for entry in answer["unusual"]} == {"train/reward", "update/kl"}
    assert answer["unusual"][0]["times"] >= answer["unusual"][1]["times"] > 100
    assert [alert["rule"] for alert in answer["alerts"]] == ["kl"]
    assert [row["episode_id"] for row in answer["episodes"]["rows"]] == ["e120"]
    assert answer["samples"]["total_in_window"] == 4
    assert answer["checkpoint"]["before"]["env_step"] == 500
    assert answer["checkpoint"]["after"]["env_step"] == 1500
    assert answer["timings"]["stages"][0]["name"].startswith("update")
    assert [line["text"] for line in answer["text"]] == ["look here <b>now</b>"]
    assert [video["key"] for video in answer["videos"]] == ["eval/view"]


@pytest.mark.parametrize("axis", ["relative", "time", "update/kl"])
def test_a_point_on_any_axis_has_its_cause(rich: TestClient, run: str, axis: str) -> None:
    answer = rich.post("/api/series", json={"runs": [run], "keys": ["train/reward"], "x": axis})
    ((_, arrays),) = unpack(answer.content)
    highest = int(arrays[0]["y"].argmax())
    found = got(rich, f"/api/runs/{run}/cause", at=float(arrays[0]["x"][highest]), key="train/reward", x=axis)
    assert found["clocks"] == {"env_step": 1200}
    assert found["value"]["value"] == pytest.approx(26.2)


def test_where_nothing_is_near_the_nearest_is_named(rich: TestClient, run: str) -> None:
    answer = got(rich, f"/api/runs/{run}/cause", at=1250, key="train/reward", x="env_step", window=10)
    assert answer["episodes"]["rows"] == []
    assert answer["episodes"]["nearest"]["away"] == -50.0


def test_rows_of_a_key_can_be_walked(rich: TestClient, run: str) -> None:
    there = got(rich, f"/api/runs/{run}/step", at=1200, key="train/reward", x="env_step", by=1)["at"]
    assert there == 1210.0
    assert got(rich, f"/api/runs/{run}/step", at=there, key="train/reward", x="env_step", by=-1)["at"] == 1200.0
    assert got(rich, f"/api/runs/{run}/step", at=0, key="train/reward", x="env_step", by=-1)["at"] is None


def test_marks_stand_where_they_were_made(rich: TestClient, run: str) -> None:
    marks = asked(rich, "/api/marks", runs=[run], x="env_step")["marks"]
    assert [(mark["kind"], mark["x"]) for mark in marks] == [
        ("checkpoint", 500.0),
        ("note", 1200.0),
        ("alert", 1200.0),
        ("checkpoint", 1500.0),
    ]


def test_episodes_are_filtered_by_outcome_and_by_a_condition(rich: TestClient, run: str) -> None:
    everything = asked(rich, f"/api/runs/{run}/episodes")
    assert everything["total"] == everything["matched"] == 20
    ended = asked(rich, f"/api/runs/{run}/episodes", outcome=["terminated"], where='"return" > 100', limit=3)
    assert ended["matched"] == 4
    assert len(ended["rows"]) == 3
    box = 'env_step between 0 and 100 and "return" between 5 and 50'
    assert [row["episode_id"] for row in asked(rich, f"/api/runs/{run}/episodes", where=box)["rows"]] == ["e10"]
    wrong = rich.post(f"/api/runs/{run}/episodes", json={"where": "returned >"})
    assert wrong.status_code == 400


def test_the_scatter_has_every_episode_and_names_them(rich: TestClient, run: str) -> None:
    ((header, arrays),) = unpack(rich.get(f"/api/runs/{run}/scatter").content)
    assert header["entries"][0]["n"] == 20
    assert arrays[0]["y"].tolist() == [float(step) for step in range(0, 200, 10)]
    row = int(arrays[0]["row"][12])
    assert got(rich, f"/api/runs/{run}/episode-ids", rows=[row])["ids"] == ["e120"]


@pytest.mark.usefixtures("sealed")
def test_the_command_that_shows_an_episode_names_its_run_among_seeds_of_one_name(tmp_path: Path) -> None:
    runs = []
    for seed in range(2):
        with rollbook.init("p", "ppo", seed=seed, dir=tmp_path, sinks=[], keeper="inline") as run:
            run.record("episodes", {"episode_id": [f"e{seed}"], "return": [1.0]}, n=1, env_step=1)
            run.log_video("video", np.zeros((2, 8, 8, 3), np.uint8), episode_id=f"e{seed}", env_step=1)
        runs.append(run)
    first = runs[0]
    line = got(client_of(tmp_path), f"/api/runs/{first.id}/episodes/e0")["replay_line"]
    done = CliRunner().invoke(app, [*shlex.split(line)[1:], "--dir", str(tmp_path), "--no-open"])
    assert done.exit_code == 0, done.output
    assert str(first.folder) in done.output


def test_an_episode_comes_with_its_traces(rich: TestClient, run: str) -> None:
    answer = got(rich, f"/api/runs/{run}/episodes/e120")
    assert answer["rank"] == {"lower": 12, "equal": 1, "of": 20}
    assert [alert["rule"] for alert in answer["alerts"]] == ["kl"]
    assert (answer["previous"], answer["next"]) == ("e110", "e130")
    assert {trace["name"]: trace["group"] for trace in answer["traces"]} == {
        "reward": "reward",
        "obs[0]": "observation",
        "obs[1]": "observation",
        "info/speed": "info",
    }
    ((_, arrays),) = unpack(rich.get(f"/api/runs/{run}/episodes/e120/traces").content)
    assert arrays[0]["reward"].tolist() == [1.0, 2.0]
    assert arrays[0]["obs[1]"][0] == 1.5


def test_samples_are_searched_sorted_and_windowed_on_the_server(rich: TestClient, run: str) -> None:
    answer = asked(
        rich, f"/api/runs/{run}/samples", search="<script>alert(0)</SCRIPT> it IS", order_by="reward", limit=2
    )
    assert answer["total"] == 40
    assert answer["matched"] == 10
    assert len(answer["rows"]) == 2
    cell = answer["rows"][0]["cells"]["completion"]
    assert cell["length"] > len(cell["text"]) == 300
    whole = got(rich, f"/api/runs/{run}/sample", id=answer["rows"][0]["id"])
    assert len(whole["cells"]["completion"]) == cell["length"]


def test_windows_of_a_sorted_table_give_each_row_once_where_all_are_equal(tmp_path: Path) -> None:
    quiet: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": ()}
    with rollbook.init("p", "equal", **quiet) as run:
        run.log_samples([str(n) for n in range(3_000)], reward=[1.0] * 3_000)
    with client_of(tmp_path) as client:
        windows = [
            asked(
                client,
                f"/api/runs/{run.id}/samples",
                order_by="reward desc",
                offset=n,
                limit=430,
            )["rows"]
            for n in range(0, 3_000, 430)
        ]
    texts = [row["cells"]["item"] for window in windows for row in window]
    assert texts == [str(n) for n in range(3_000)]


def test_the_group_of_a_prompt_has_all_its_completions(rich: TestClient, run: str) -> None:
    row = asked(rich, f"/api/runs/{run}/samples", where="reward = 0", limit=1)["rows"][0]
    group = got(rich, f"/api/runs/{run}/sample/group", id=row["id"])
    assert [entry["cells"]["reward"] for entry in group["rows"]] == [0.0, 1.0]
    assert (group["right"], group["mean"], group["sd"]) == (1, 0.5, 0.5)


def test_a_prompt_is_followed_over_training(rich: TestClient, run: str) -> None:
    row = asked(rich, f"/api/runs/{run}/samples", where="prompt = 'what is 3 plus 0?'", limit=1)["rows"][0]
    answer = got(rich, f"/api/runs/{run}/sample/history", id=row["id"], x="env_step")
    assert answer["times_seen"] == 4
    assert [group["x"] for group in answer["groups"]] == [1200.0, 1400.0]
    assert [group["all_equal"] for group in answer["groups"]] == [False, False]


def test_groups_that_teach_nothing_are_counted(rich: TestClient, run: str) -> None:
    answer = got(rich, f"/api/runs/{run}/unused", at=1200)
    assert {reason["reason"]: reason["groups"] for reason in answer["reasons"]} == {
        "trained on": 1,
        "all rewards equal, 1": 1,
    }
    novelty = got(rich, f"/api/runs/{run}/novelty", points=10)
    assert sum(point["rows"] for point in novelty["points"]) == 40
    assert sum(point["new"] for point in novelty["points"]) < 40


def test_time_is_shown_by_stage(rich: TestClient, run: str) -> None:
    answer = got(rich, f"/api/runs/{run}/timings", stretches=10)
    stages = {stage["name"]: stage for stage in answer["stages"]}
    assert set(stages) == {"update", "update/backward"}
    assert stages["update"]["calls"] == 200
    assert stages["update"]["own"] <= stages["update"]["total"]
    line = got(rich, f"/api/runs/{run}/timeline")
    assert sum(span[5] for span in line["spans"]) > 0
    assert got(rich, f"/api/runs/{run}/cost")["rows"] >= 200


def test_logs_are_read_from_either_end(rich: TestClient, run: str) -> None:
    names = [entry["name"] for entry in got(rich, f"/api/runs/{run}/logs")["logs"]]
    assert names
    tail = got(rich, f"/api/runs/{run}/log", name=names[0], lines=5)
    before = got(rich, f"/api/runs/{run}/log", name=names[0], lines=5, before=tail["start"])
    assert len(tail["lines"]) == 5
    assert before["lines"][-1]["offset"] < tail["lines"][0]["offset"]
    again = got(rich, f"/api/runs/{run}/log", name=names[0], lines=10, **{"from": before["start"]})
    assert [line["text"] for line in again["lines"]] == [line["text"] for line in [*before["lines"], *tail["lines"]]]
    assert rich.get(f"/api/runs/{run}/log", params={"name": "../../secret"}).status_code == 404


def test_files_texts_media_and_configuration_are_listed(rich: TestClient, run: str) -> None:
    files = got(rich, f"/api/runs/{run}/files")
    listed = {entry["path"] for entry in files["files"]}
    assert {"run.json", "data/writers.parquet"} <= listed
    own = re.compile(r"data/(journal|keeper|marks|fills|pyramid|seen)/|media/\.spool/|ckpt/\.index")
    assert not [path for path in listed if own.match(path)], "what only rollbook reads is no file of the user's"
    assert files["bytes"] > sum(entry["bytes"] for entry in files["files"]), "it takes space all the same"
    assert [row["env_step"] for row in files["checkpoints"]] == [1500, 500]
    media = asked(rich, f"/api/runs/{run}/media")["media"]
    assert [entry["there"] for entry in media] == [True]
    picture = rich.get("/" + media[0]["url"])
    assert picture.headers["content-type"] == "image/png"
    assert asked(rich, f"/api/runs/{run}/text", key="note")["rows"][0]["text"] == "look here <b>now</b>"
    assert got(rich, f"/api/runs/{run}/config")["attempts"][0]["config"] == {"lr": 1e-6}
    assert asked(rich, f"/api/runs/{run}/rows", table="rewards")["total"] == 0
    assert rich.post(f"/api/runs/{run}/rows", json={"table": "nothing"}).status_code == 404


def test_health_names_alerts_and_what_is_quiet(rich: TestClient, run: str) -> None:
    answer = got(rich, f"/api/runs/{run}/health")
    assert [alert["message"] for alert in answer["alerts"]] == ["moved too far"]
    every = asked(rich, "/api/findings")
    (found,) = every["findings"]
    assert (every["total"], found["level"], [one["run"] for one in found["runs"]]) == (1, "act", [run])
    assert answer["alerts"][0]["key"] == found["runs"][0]["key"] == "update/kl"


def test_health_names_the_rules_that_looked_and_found_nothing(tmp_path: Path) -> None:
    run = record(tmp_path, "ppo", 0, 1e-3, rows=100)
    with client_of(tmp_path) as client:
        answer = got(client, f"/api/runs/{run}/health")
        plan = next(tmp_path.glob("cartpole/*/data/keeper")) / "plan.json"
        plan.write_text(json.dumps({"rules": [{"name": "kl"}, {"name": "os:system"}, 3]}))
        strange = got(client, f"/api/runs/{run}/health")
    assert {"kl", "entropy", "silent"} <= {rule["rule"] for rule in answer["quiet"]}
    assert "healthy trainings" in answer["promise"]
    assert [rule["label"] for rule in strange["quiet"]][-1] == "os:system", "named, not imported"
    assert strange["promise"] is None


def test_rows_leave_as_csv(rich: TestClient, run: str) -> None:
    answer = rich.get("/api/export.csv", params={"run": run, "key": "update/kl", "x": "env_step", "stop": 30})
    lines = answer.text.splitlines()
    assert answer.headers["content-disposition"].startswith("attachment")
    assert lines[0].startswith("run,name,seed,")
    assert len(lines) == 4
    assert rich.get("/api/export.csv", params={"run": run, "table": "episodes"}).text.count("\n") == 21


def test_tables_of_many_rows_are_asked_and_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None]
) -> None:
    """The same answers, whether rows are scanned where they lie or read; and no answer reads a large table whole."""
    n = 400
    ids = [f"e{i}" for i in range(n)]
    with rollbook.init("p", "many", dir=tmp_path, sinks=[], keeper="inline") as run:
        for table, columns in (
            ("text", {"key": ["note", "audit"] * (n // 2), "text": [f"line {i}" for i in range(n)]}),
            ("timings", {"name": ["collect", "update"] * (n // 2), "seconds": [0.5, 0.25] * (n // 2)}),
            (
                "media",
                {"key": "video", "kind": "video", "path": "media/gone.mp4", "episode_id": ids},
            ),
            ("episodes", {"episode_id": ids, "return": [float(i) for i in range(n)]}),
        ):
            run.record(table, columns, n=n, clock_columns={"env_step": list(range(n))})
        run.log({"train/return": 1.0}, env_step=200)
        name = run.id
    questions: dict[str, dict[str, Any]] = {
        "timings": {},
        "timeline": {},
        "episodes/e30": {},
        "cause": {"x": "env_step", "at": 200, "key": "train/return", "rows": 4},
    }

    def all_of(client: TestClient) -> dict[str, Any]:
        answers = {what: got(client, f"/api/runs/{name}/{what}", **asked) for what, asked in questions.items()}
        bodies: dict[str, dict[str, Any]] = {
            "episodes": {"limit": 2, "order_by": '"return" desc', "video": True},
            "text": {"search": "line 39", "limit": 3, "order_by": 'time desc, seq desc, "index" desc'},
            "media": {"limit": 2},
            "rows": {"table": "text", "offset": 5, "limit": 2},
        }
        answers |= {what: asked(client, f"/api/runs/{name}/{what}", **body) for what, body in bodies.items()}
        for answer in answers.values():
            answer.pop("took_ms", None)
        return answers

    with client_of(tmp_path) as client:
        read = all_of(client)
    tuned(scan_rows=1)
    whole = rows.table_of

    def few(context: Any, row: Any, table: str, attempts: str = "effective") -> Any:
        assert table not in ("text", "timings", "media", "episodes"), f"{table} was read whole"
        return whole(context, row, table, attempts)

    for room in (rows, one_run):
        monkeypatch.setattr(room, "table_of", few)
    with client_of(tmp_path, limits=Limits(whole_rows=1)) as client:
        scanned = all_of(client)
    assert scanned == read
    assert read["text"]["total"] == 14
    assert [line["text"] for line in read["text"]["rows"]] == ["line 399", "line 398", "line 397"]
    assert [line["text"] for line in read["rows"]["rows"]] == ["line 5", "line 6"]
    assert read["episodes/e30"]["rank"] == {"lower": 30, "equal": 1, "of": n}
    assert (read["episodes/e30"]["previous"], read["episodes/e30"]["next"]) == ("e29", "e31")
    assert [row["episode_id"] for row in read["episodes"]["rows"]] == ["e399", "e398"]
    assert [(stage["name"], stage["total"], stage["calls"]) for stage in read["timings"]["stages"]] == [
        ("collect", 100.0, 200),
        ("update", 50.0, 200),
    ]


def test_a_run_that_names_no_axis_has_one_all_the_same(rich: TestClient, run: str) -> None:
    assert rich.get(f"/api/runs/{run}").json()["x"] == "env_step"
