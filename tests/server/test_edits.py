"""What the page may change: tags, notes, names, boards, and a run into the bin and back; only the page itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from page_server import client_of, record


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one small run. Not to be changed."""
    folder = tmp_path_factory.mktemp("edits") / "runs"
    record(folder, "ppo", 0, 1e-3, rows=10)
    return folder


@pytest.fixture
def folder(recorded_once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(recorded_once, tmp_path / "runs"))


def change(client: TestClient, **body: Any) -> Any:
    """The answer to a change by the page itself."""
    token = client.get("/api/hello").json()["edit_token"]
    return client.post("/api/edit", json=body, headers={"x-rollbook-edit": token})


def only_run(client: TestClient) -> str:
    """The name of the one run."""
    return str(client.post("/api/runs", json={"archived": True}).json()["rows"][0]["run"])


def everything_but_the_manifest(folder: Path) -> dict[str, bytes]:
    """All files of a run folder but run.json and the lock beside it."""
    return {
        str(path): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("run.json", "page.lock", "manifest.lock")
    }


def test_tags_notes_and_names_are_kept_in_the_manifest_and_nothing_else_is_touched(folder: Path) -> None:
    before = everything_but_the_manifest(folder)
    with client_of(folder) as client:
        run = only_run(client)
        answer = change(client, runs=[run], set={"notes": "good", "name": "ppo best", "tags": ["paper"]})
        assert answer.status_code == 200, answer.text
        assert answer.json()["refused"] == []
        row = answer.json()["runs"][0]
        assert (row["name"], row["notes"], row["tags"]) == ("ppo best", "good", ["paper"])
        assert change(client, runs=[run], set={"tags": []}).json()["runs"][0].get("tags", []) == []
    assert everything_but_the_manifest(folder) == before


def test_an_archived_run_leaves_the_table_and_can_come_back(folder: Path) -> None:
    with client_of(folder) as client:
        run = only_run(client)
        change(client, runs=[run], set={"archived": True})
        answer = client.post("/api/runs", json={}).json()
        assert (answer["matched"], answer["archived"]) == (0, 1)
        change(client, runs=[run], set={"archived": False})
        assert client.post("/api/runs", json={}).json()["matched"] == 1


def test_an_edit_of_a_run_that_is_being_written_is_not_overwritten(tmp_path: Path) -> None:
    import rollbook

    with rollbook.init("p", "live", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0}, env_step=1)
        with client_of(tmp_path) as client:
            name = only_run(client)
            assert change(client, runs=[name], set={"notes": "mine", "tags": ["keep"]}).status_code == 200
        run.summary["best"] = 1.0
    about = json.loads((run.folder / "run.json").read_text())
    assert about["status"] == "finished"
    assert about["summary"] == {"best": 1.0}
    assert about["notes"] == "mine"
    assert about["tags"] == ["keep"]


def test_without_the_edit_token_nothing_changes(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("run.json")}
    with client_of(folder) as client:
        run = only_run(client)
        for headers in ({}, {"x-rollbook-edit": "wrong"}, {"x-rollbook-edit": ""}):
            answer = client.post("/api/edit", json={"runs": [run], "set": {"notes": "x"}}, headers=headers)
            assert answer.status_code == 403
            assert client.put("/api/boards/a", json={"state": {}}, headers=headers).status_code == 403
            assert client.delete("/api/boards/a", headers=headers).status_code == 403
    with client_of(folder, writable=False) as client:
        assert client.get("/api/hello").json()["edit_token"] == ""
        assert client.post("/api/edit", json={"runs": [run]}, headers={"x-rollbook-edit": ""}).status_code == 403
    assert {path: path.read_bytes() for path in folder.rglob("run.json")} == before


@pytest.mark.parametrize(
    "said",
    [
        {"tags": [""]},
        {"tags": ["x" * 101]},
        {"name": " "},
        {"name": "a\x1b[2J"},
        {"notes": "x" * 30_000},
        {"id": "other"},
    ],
)
def test_what_is_no_tag_name_or_note_is_refused(folder: Path, said: dict[str, Any]) -> None:
    with client_of(folder) as client:
        assert change(client, runs=[only_run(client)], set=said).status_code in (400, 413)


def test_boards_are_saved_beside_the_runs(folder: Path) -> None:
    with client_of(folder) as client:
        headers = {"x-rollbook-edit": client.get("/api/hello").json()["edit_token"]}
        assert client.get("/api/boards").json()["boards"] == []
        name = "PPO <on> half/cheetah"
        saved = client.put(
            "/api/boards/PPO%20%3Con%3E%20half", json={"state": {"x": "env_step", "n": [1, 2]}}, headers=headers
        )
        assert saved.status_code == 200, saved.text
        assert name.startswith(saved.json()["name"])
    with client_of(folder) as client:
        (board,) = client.get("/api/boards").json()["boards"]
        assert board["state"] == {"x": "env_step", "n": [1, 2]}
        headers = {"x-rollbook-edit": client.get("/api/hello").json()["edit_token"]}
        assert client.delete("/api/boards/PPO%20%3Con%3E%20half", headers=headers).status_code == 200
        assert client.get("/api/boards").json()["boards"] == []
        assert client.post("/api/runs", json={}).json()["total"] == 1


def test_a_run_goes_into_the_bin_and_back_and_only_the_page_itself_may_ask(folder: Path) -> None:
    with client_of(folder) as client:
        run = only_run(client)
        identity = run.rpartition("/")[2].rpartition("-")[2]
        token = client.get("/api/hello").json()["edit_token"]

        def ask(what: str, **body: Any) -> Any:
            return client.post(f"/api/{what}", json=body, headers={"x-rollbook-edit": token})

        for what, body in (("remove", {"runs": [run]}), ("restore", {"ids": [identity]})):
            assert client.post(f"/api/{what}", json=body).status_code == 403
        dry = ask("remove", runs=[run], dry_run=True).json()
        assert (dry["ids"], dry["refused"]) == ([identity], [])
        assert dry["bytes"] > 0
        assert only_run(client) == run
        assert ask("remove", runs=[run]).json()["ids"] == [identity]
        answer = client.post("/api/runs", json={"archived": True}).json()
        assert (answer["rows"], answer["binned"]) == ([], 1)
        assert ask("restore", ids=["nothing"]).json()["refused"][0]["why"] == "no bin of these folders has it"
        assert ask("restore", ids=[identity]).json()["ids"] == [identity]
        assert only_run(client) == run


def test_a_page_of_one_project_brings_back_no_run_of_another(folder: Path) -> None:
    other = Path(shutil.copytree(folder / "cartpole", folder / "other"))
    with client_of(folder) as client:
        token = client.get("/api/hello").json()["edit_token"]
        rows = client.post("/api/runs", json={"archived": True}).json()["rows"]
        names = [row["run"] for row in rows]
        client.post("/api/remove", json={"runs": names}, headers={"x-rollbook-edit": token})
    with client_of(other) as client:
        token = client.get("/api/hello").json()["edit_token"]
        identity = next(folder.glob(".bin/*/cartpole/*")).name.rpartition("-")[2]
        client.post("/api/restore", json={"ids": [identity]}, headers={"x-rollbook-edit": token})
    assert not list((folder / "cartpole").glob("*"))
