"""A server that really listens, the built page, the copy of it, and the frame in a notebook."""

from __future__ import annotations

import asyncio
import functools
import json
import socket
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from websockets.sync.client import connect

import rollbook
from agent_rollouts import record_agents
from page_server import client_of, record, record_rich
from rollbook.cli.app import app
from rollbook.cli.ui import ui
from rollbook.errors import BadInput, RollbookError
from rollbook.server.frames import unpack
from rollbook.server.serving import Listening, address_of, bound, listen, prepared
from rollbook.server.settings import ServerSettings, is_loopback
from rollbook.server.static_copy import export
from waiting import PATIENCE

get = functools.partial(httpx2.get, timeout=PATIENCE)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A small built page."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(
        '<!doctype html><meta name="rollbook" content="live" /><div id="page"></div><script src="./assets/a.js">'
    )
    (folder / "assets" / "a.js").write_text("let a = 1;" * 100)
    (folder / "assets" / "a.js.map").write_text("{}")
    return folder


def test_a_real_server_answers_on_a_free_port_and_ends(recorded: Path) -> None:
    with listen(ServerSettings((str(recorded),))) as server:
        assert server.settings.port
        answer = get(server.address + "api/hello")
        assert answer.json()["runs"] == 6
        assert "server" not in answer.headers
        with connect(server.address.replace("http", "ws") + "api/live", open_timeout=PATIENCE) as socket:
            assert json.loads(socket.recv())["type"] == "hello"
        series = {"runs": [answer.json()["server"]], "keys": ["a"]}
        assert httpx2.post(server.address + "api/series", json=series, timeout=PATIENCE).status_code == 404
    with pytest.raises(httpx2.ConnectError):
        get(server.address + "api/hello")


def test_a_port_that_is_taken_is_reported(recorded: Path) -> None:
    with listen(ServerSettings((str(recorded),))) as server, pytest.raises(RollbookError, match="--port"):
        Listening(ServerSettings((str(recorded),), port=server.settings.port))


def test_no_part_of_an_answer_waits_until_the_browser_acknowledges_the_part_before() -> None:
    async def has_no_delay() -> int:
        asked: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def began(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection = writer.get_extra_info("socket")
            asked.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = bound("127.0.0.1", 0)
        async with await asyncio.start_server(began, sock=listening):
            _, client = await asyncio.open_connection(*listening.getsockname())
            client.close()
            return await asked

    assert asyncio.run(has_no_delay())


def test_only_loopback_goes_without_a_token() -> None:
    assert prepared(ServerSettings(("runs",))).token is None
    for host in ("127.0.0.1", "localhost", "::1", "127.8.8.8"):
        assert is_loopback(host)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        settings = prepared(ServerSettings(("runs",), host=host, port=80))
        assert settings.token is not None
        assert len(settings.token) >= 32
        assert f"?token={settings.token}" in address_of(settings)


def test_the_page_is_served_compressed_and_kept_by_the_browser(recorded: Path, page: Path) -> None:
    with client_of(recorded, page=page) as client:
        index = client.get("/")
        assert index.headers["cache-control"] == "no-cache"
        assert "script-src 'self'" in index.headers["content-security-policy"]
        script = client.get("/assets/a.js")
        assert script.headers["content-encoding"] == "gzip"
        assert "immutable" in script.headers["cache-control"]
        assert script.text == "let a = 1;" * 100
        assert client.get("/assets/a.js", headers={"if-none-match": script.headers["etag"]}).status_code == 304
        assert client.get("/assets/a.js.map").status_code == 404


def test_a_page_that_is_not_built_says_how_to_build_it(recorded: Path, tmp_path: Path) -> None:
    with client_of(recorded, page=tmp_path / "none") as client:
        answer = client.get("/")
        assert answer.status_code == 503
        assert "make page" in answer.text
        assert client.get("/api/hello").status_code == 200


@pytest.mark.long
@pytest.mark.usefixtures("sealed")
def test_a_copy_has_everything_as_files(tmp_path: Path, page: Path) -> None:
    identity = record_rich(tmp_path / "runs")
    agents = record_agents(tmp_path / "runs", 1, 1)
    index = export([str(tmp_path / "runs")], tmp_path / "copy", page=page)
    assert '<meta name="rollbook" content="static">' in index.read_text()
    assert "Content-Security-Policy" in index.read_text()
    assert "python -m http.server" in index.read_text()  # what a browser shows that may not run its script: file://
    data = tmp_path / "copy" / "data"

    def read(name: str) -> Any:
        return json.loads((data / name).read_text())

    assert read("hello.json")["static"]["points"] == 2_000
    assert read("hello.json")["edit_token"] == ""
    assert {row["run"] for row in read("runs.json")["rows"] if row["kind"] == "run"} == {identity, agents}
    ids = [row["id"] for row in read(f"runs/{agents}/rollouts.json")["rows"]]
    conversations = [read(f"runs/{agents}/rollouts/{name}.json") for name in ids]
    assert len(conversations) == 4
    assert all(one["turns"] for one in conversations)
    assert read(f"runs/{agents}/fates.json")["layers"]
    (prompt,) = read(f"runs/{agents}/prompts.json")["rows"]
    assert prompt["rollouts"] == 4
    assert prompt["example"] in ids
    files = read(f"series/{identity}/index.json")["train/reward"]
    ((header, arrays),) = unpack((data / "series" / identity / files["default"]).read_bytes())
    assert header["entries"][0]["rows"] == 200
    assert len(arrays[0]["y"]) == 200
    assert read(f"runs/{identity}/episodes.json")["total"] == 20
    assert read(f"runs/{identity}/episodes/e120.json")["steps"] == 2
    assert (data / "runs" / identity / "episodes" / "e120" / "traces.bin").exists()
    for name in ("run", "health", "config", "files", "timings", "cost", "samples", "logs", "text", "media"):
        read(f"runs/{identity}/{name}.json")
    (video,) = read(f"runs/{identity}/media.json")["media"]
    assert (tmp_path / "copy" / video["url"]).read_bytes()[:4] == b"\x89PNG"
    export([str(tmp_path / "runs")], tmp_path / "copy", page=page)  # again, over the earlier copy


def test_a_copy_has_the_newest_rollouts(tmp_path: Path, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollbook.server.static_copy._MOST_ROLLOUTS", 2)
    with rollbook.init("p", "grpo", dir=tmp_path / "runs", sinks=[], keeper="import", rules=()) as run:
        ids = [run.rollouts.log_many(completions=["a"], reward=[1.0], group=str(n))[0] for n in range(4)]
    export([str(tmp_path / "runs")], tmp_path / "copy", page=page)
    (copied,) = (tmp_path / "copy" / "data").glob("runs/*/rollouts.json")
    assert [row["id"] for row in json.loads(copied.read_text())["rows"]] == ids[:1:-1]


def test_a_copy_of_a_run_with_many_keys_has_the_last_results_in_its_table(tmp_path: Path, page: Path) -> None:
    """By their canonical names: LightZero calls what a test returned evaluator/reward_mean."""
    with rollbook.init("p", "muzero", dir=tmp_path / "runs", sinks=[], keeper="inline") as run:
        run.log({**{f"buffer/{i}": 0.0 for i in range(100)}, "evaluator/reward_mean": 9.5}, env_step=1)
    export([str(tmp_path / "runs")], tmp_path / "copy", page=page)
    (row,) = json.loads((tmp_path / "copy" / "data" / "runs.json").read_text())["rows"]
    assert row["cells"]["last:evaluator/reward_mean"] == 9.5
    assert len(row["cells"]) > 20


def test_a_copy_overwrites_nothing_of_others(tmp_path: Path, page: Path, recorded: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("important")
    with pytest.raises(BadInput, match="something else"):
        export([str(recorded)], tmp_path / "mine", page=page)
    run = next((recorded / "cartpole").glob("*/run.json")).parent
    with pytest.raises(BadInput, match="is a run"):
        export([str(recorded)], run / "copy", page=page)
    with pytest.raises(RollbookError, match="not built"):
        export([str(recorded)], tmp_path / "copy", page=tmp_path / "none")


def test_a_notebook_embeds_the_page_of_a_run(tmp_path: Path) -> None:
    from rollbook.server import serving as notebook

    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0})
        shown = run.show(height=300)
    try:
        assert shown.address in shown._repr_html_()
        assert 'height="300"' in shown._repr_html_()
        assert f"rollbook ui {run.folder}" in shown._repr_html_(), "a saved notebook is read without its kernel"
        assert run.book.show().address == shown.address  # one server for one folder
        answer = get(shown.address + "api/hello")
        assert answer.json()["only"] == run.id
        assert "http://localhost:*" in get(shown.address).headers["content-security-policy"]
        assert get(shown.address + "api/hello", headers={"origin": "http://localhost:8888"}).status_code == 403
    finally:
        notebook._stop_all()


def test_the_command_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(ui, ["nothing/like/this", "--no-open"])
    assert answer.exit_code != 0
    answer = CliRunner().invoke(ui, ["--help"])
    assert "--export" in answer.output


def test_the_runs_of_a_store_are_shown_and_cannot_be_edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`rollbook ui file://…`: all of its runs, under its own address."""
    pytest.importorskip("obstore")
    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "cache"))
    for seed in range(2):
        record(tmp_path / "runs", "ppo", seed, 1e-3, rows=5)
    store = f"file://{tmp_path / 'store'}"
    for run in sorted(path.parent for path in (tmp_path / "runs" / "cartpole").glob("*/run.json")):
        assert CliRunner().invoke(app, ["push", str(run), store]).exit_code == 0
    shown: list[ServerSettings] = []
    monkeypatch.setattr(
        sys.modules["rollbook.cli.ui"], "_server", lambda settings, any_port: shown.append(settings) or Shown()
    )
    said = CliRunner().invoke(app, ["ui", store, "--no-open"])
    assert said.exit_code == 0, said.output
    assert f"rollbook shows {store} on" in said.output
    with client_of(*shown[0].roots, title=shown[0].title, writable=shown[0].writable) as client:
        hello = client.get("/api/hello").json()
        assert (hello["title"], hello["runs"], hello["writable"]) == (store, 2, False)
        assert len(client.post("/api/runs", json={}).json()["rows"]) == 2
        (row, _) = client.post("/api/runs", json={"columns": ["last:train/return"]}).json()["rows"]
        assert client.get(f"/api/runs/{row['run']}").json()["name"] == "ppo"
    (one,) = rollbook.open(store).where("seed = 1")
    assert CliRunner().invoke(app, ["ui", f"{store}/cartpole/{one.path.name}", "--no-open"]).exit_code == 0
    with client_of(*shown[1].roots) as client:
        assert client.get("/api/hello").json()["only"] == one.id


class Shown:
    """A server that is not started."""

    address = "nowhere"

    def run(self) -> None:
        """It ends at once."""
