"""What a person says on the page about runs of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import rollbook
import wild
from page_server import client_of, record
from rollbook.formats.foreign import laid_out


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for place in ("x/one", "x/two", "y/three"):
        wild.put_sb3_tensorboard(tmp_path / "study" / place, iter([1.0, 2.0, 3.0]))
    wild.put_any_table(tmp_path / "study" / "tables", iter([1.0, 2.0, 3.0]))
    return tmp_path / "study"


def label(client: TestClient, runs: list[str], fields: dict[str, str]) -> Any:
    token = client.get("/api/hello").json()["edit_token"]
    return client.post("/api/label", json={"runs": runs, "fields": fields}, headers={"x-rollbook-edit": token})


def keys_of(client: TestClient) -> dict[str, str]:
    return {row["name"]: row["run"] for row in client.post("/api/runs", json={}).json()["rows"] if row["kind"] == "run"}


def listed(root: Path) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rollbook.open(root).rows()}


def test_rows_that_are_chosen_get_fields_in_one_file_beside_them_and_lose_them_again(study: Path) -> None:
    files = {path: path.read_bytes() for path in study.rglob("*") if path.is_file()}
    folder, _ = laid_out(study)
    with client_of(Path(str(folder))) as client:
        assert client.get("/api/hello").json()["labels"] is True
        keys = keys_of(client)
        chosen = [keys["x-one"], keys["y-three"], keys["tables"]]
        answer = label(client, chosen, {"algo": "ppo", "seed": "3", "width": "64", "group": "my runs"})
        said = answer.json()
        assert (said["files"], said["labelled"], said["refused"]) == ([str(study / "rollbook.labels")], 3, [])
        rows = listed(study)
        for name in ("x-one", "y-three", "tables"):
            row = rows[name]
            assert (row["algo"], row["seed"], row["config"]["width"], row["group"]) == ("ppo", 3, 64, "my runs")
        assert rows["x-two"]["algo"] is None
        assert label(client, chosen, {"algo": "", "seed": "", "width": "", "group": ""}).json()["refused"] == []
        assert listed(study)["x-one"]["algo"] is None
    assert {path: path.read_bytes() for path in study.rglob("*") if path.is_file() and path in files} == files


def test_a_nearer_file_that_says_something_else_is_changed_too(study: Path) -> None:
    (study / "x" / "rollbook.labels").write_text("one algo=sac\n")
    folder, _ = laid_out(study)
    with client_of(Path(str(folder))) as client:
        keys = keys_of(client)
        answer = label(client, [keys["x-one"], keys["y-three"]], {"algo": "td3"})
        assert answer.json()["refused"] == []
    assert {listed(study)[name]["algo"] for name in ("x-one", "y-three")} == {"td3"}


def test_nothing_is_written_where_nothing_may_be(study: Path, tmp_path: Path) -> None:
    """A page that is read only, a page of another site, a run of rollbook, and fields that are none."""
    folder, _ = laid_out(study)
    with client_of(Path(str(folder)), writable=False) as client:
        keys = keys_of(client)
        assert label(client, list(keys.values()), {"algo": "ppo"}).status_code == 403
    with client_of(Path(str(folder))) as client:
        asked = {"runs": list(keys.values()), "fields": {"algo": "ppo"}}
        assert client.post("/api/label", json=asked).status_code == 403
        for fields in ({}, {"seed": "three"}, {"a b": "1"}, {"algo": "a\nb"}, {"x" * 300: "1"}):
            assert label(client, list(keys.values()), fields).status_code == 400, fields
    assert not list(study.rglob("rollbook.labels"))
    record(tmp_path / "runs", "ppo", 0, 1e-3, rows=10)
    with client_of(tmp_path / "runs") as client:
        assert client.get("/api/hello").json()["labels"] is False
        (key,) = keys_of(client).values()
        (refused,) = label(client, [key], {"algo": "ppo"}).json()["refused"]
        assert "is a run of rollbook" in refused["why"]
    assert not list(tmp_path.rglob("rollbook.labels"))
