"""What reaches a browser by itself: runs that begin, grow, end and die; logs that grow; and nothing to who sleeps."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

import rollbook
import waiting
from page_server import client_of, record
from rollbook.server.shared import state as readers

Message = dict[str, Any]
LIVE = "ws://127.0.0.1:7655/api/live"


def until(socket: Any, wanted: Callable[[Message], bool]) -> Message:
    """The first message that fits; the test's own time limit ends the waiting."""
    while True:
        message: Message = json.loads(socket.receive_text())
        if wanted(message):
            return message


def watch(socket: Any, *topics: str) -> None:
    """Say what is on screen; returns when the server has looked once."""
    socket.send_text(json.dumps({"type": "watch", "topics": list(topics)}))
    socket.send_text(json.dumps({"type": "ping", "n": 7}))
    until(socket, lambda message: message["type"] == "pong")


def test_a_socket_greets_and_answers(client: TestClient) -> None:
    with client.websocket_connect(LIVE) as socket:
        hello = json.loads(socket.receive_text())
        assert hello["type"] == "hello"
        assert hello["server"] == client.get("/api/hello").json()["server"]
        for nonsense in ("", "{}", "[1]", '{"type": "watch"}', '{"type": "watch", "topics": [1]}'):
            socket.send_text(nonsense)
            assert json.loads(socket.receive_text())["error"]["code"] == "bad_input"


def test_a_run_that_begins_and_ends_is_reported(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    with client_of(tmp_path) as client, client.websocket_connect(LIVE) as socket:
        watch(socket, "runs")
        live = client.app.app.state.live  # type: ignore[attr-defined]
        waiting.until(lambda: live._known is not None)
        with rollbook.init("p", "new", dir=tmp_path, sinks=[], keeper="inline") as run:
            run.log({"a": 1.0})
            begun = until(socket, lambda message: message["type"] == "status")
            assert (begun["name"], begun["status"], begun["was"]) == ("new", "running", None)
        ended = until(socket, lambda message: message["type"] == "status")
        assert (ended["run"], ended["status"], ended["was"]) == (begun["run"], "finished", "running")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_run_that_dies_is_reported_with_the_line_that_continues_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "import rollbook, sys, time\n"
        f"run = rollbook.init('p', 'doomed', dir={str(tmp_path)!r}, sinks=[], keeper='inline')\n"
        "run.log({'a': 1.0}); print('ready', flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        with client_of(tmp_path) as client, client.websocket_connect(LIVE) as socket:
            watch(socket, "runs")
            live = client.app.app.state.live  # type: ignore[attr-defined]
            waiting.until(lambda: live._known)
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            died = until(socket, lambda message: message["type"] == "status")
    assert (died["status"], died["was"]) == ("crashed", "running")
    assert 'resume="must"' in died["resume_line"]
    (folder,) = (tmp_path / "p").iterdir()
    monkeypatch.setattr(readers, "time", SimpleNamespace(time=itertools.count().__next__, time_ns=time.time_ns))
    heart = folder / "data" / "keeper" / "heartbeat"
    if heart.exists():
        os.utime(heart, ns=(0, 0))
    assert readers.stamp_of(str(folder)) == readers.stamp_of(str(folder)), "the dead write nothing"


def test_new_rows_of_a_run_on_screen_are_reported_and_can_be_read(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline") as run:
        run.log({"a": 1.0}, env_step=1)
        with client_of(tmp_path) as client, client.websocket_connect(LIVE) as socket:
            watch(socket, f"run:{run.id}")
            for step in range(2, 2_000):
                run.log({"a": float(step)}, env_step=step)
            until(socket, lambda message: message["type"] == "run" and message["run"] == run.id)
            answer = client.post("/api/series", json={"runs": [run.id], "keys": ["a"], "points": 10})
            assert b'"rows":1999' in answer.content


def test_a_log_on_screen_follows_its_file(tmp_path: Path) -> None:
    identity = record(tmp_path, "r", 0, 1e-3, rows=5)
    (folder,) = (tmp_path / "cartpole").iterdir()
    path = folder / "log" / "train.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("first line\n")
    with client_of(tmp_path) as client, client.websocket_connect(LIVE) as socket:
        watch(socket, f"log:{identity}:log/train.txt")
        with path.open("a") as file:
            file.write("second line\nhalf a li")
        message = until(socket, lambda message: message["type"] == "log")
        assert [line["text"] for line in message["lines"]] == ["second line", "half a li"]
        with path.open("a") as file:
            file.write("ne\n")
        message = until(socket, lambda message: message["type"] == "log")
        assert [line["text"] for line in message["lines"]] == ["half a line"], "in the place of its beginning"
        socket.send_text(json.dumps({"type": "watch", "topics": [f"log:{identity}:../run.json"]}))
        assert until(socket, lambda message: message["type"] == "error")["error"]["code"] == "not_found"


def test_nothing_is_looked_at_while_everybody_sleeps(client: TestClient) -> None:
    live = client.app.app.state.live  # type: ignore[attr-defined]
    with client.websocket_connect(LIVE) as socket:
        assert not live.is_looking
        watch(socket, "runs")
        assert live.is_looking
        watch(socket)
        waiting.until(lambda: not live.is_looking)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"host": "evil.example"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_a_socket_from_another_site_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect(LIVE, headers=headers) as socket:
        socket.receive_text()


def test_a_socket_without_the_token_is_refused_with_the_reason(recorded: Path) -> None:
    with client_of(recorded, token="secret", host="0.0.0.0") as client:
        with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect(LIVE) as socket:
            socket.receive_text()
        assert refused.value.code == 4401
        client.get("/?token=secret", follow_redirects=False)
        with client.websocket_connect(LIVE) as socket:
            assert json.loads(socket.receive_text())["type"] == "hello"


def test_there_are_no_more_sockets_than_may_be(recorded: Path) -> None:
    from rollbook.server.settings import Limits

    with client_of(recorded, limits=Limits(sockets=1)) as client, client.websocket_connect(LIVE) as first:
        first.receive_text()
        with pytest.raises(WebSocketDisconnect) as refused, client.websocket_connect(LIVE) as second:
            second.receive_text()
        assert refused.value.code == 4429
