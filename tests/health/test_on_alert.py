"""Alerts come to a function, a command or a web address, and none of them harms the training."""

from __future__ import annotations

import json
import shlex
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.errors import BadInput
from rollbook.run import alert_calls
from waiting import until


def opened(folder: Path, keeper: str = "inline", **more: Any) -> Any:
    return rollbook.init("told", dir=folder, sinks=[], rules=["learning_rate"], keeper=keeper, **more)


def lose_the_rate(run: Any) -> None:
    for i in range(60):
        run.log({"train/learning_rate": 0.0}, env_step=i)


def test_a_loop_receives_an_alert_while_it_trains(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    with opened(tmp_path, keeper="thread") as run:
        run.on_alert(heard.append)
        lose_the_rate(run)
        until(lambda: bool(heard))
        (alert,) = heard
        assert (alert["rule"], alert["level"], alert["clocks"]) == ("learning_rate", "fail", {"env_step": 19})
        assert (alert["run"], alert["project"], alert["name"]) == (run.id, "told", run.name)


def test_what_is_found_at_the_end_is_passed_on_before_finish_returns(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    with opened(tmp_path) as run:
        run.on_alert(heard.append, level="fail")
        lose_the_rate(run)
    assert [alert["rule"] for alert in heard] == ["learning_rate"]


PROGRAM = "import sys; open(sys.argv[1], 'w').write(sys.stdin.read())"


@pytest.mark.parametrize("how", ["on_alert", "alerts=", "$ROLLBOOK_ALERTS"])
def test_a_command_gets_the_alert_as_json(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "alert.json"
    command = [sys.executable, "-c", PROGRAM, str(out)]
    if how == "$ROLLBOOK_ALERTS":
        monkeypatch.setenv("ROLLBOOK_ALERTS", shlex.join(command))
    more = {"alerts": {"to": command, "level": "fail"}} if how == "alerts=" else {}
    with opened(tmp_path / "runs", **more) as run:
        if how == "on_alert":
            run.on_alert(command)
        lose_the_rate(run)
    assert json.loads(out.read_text())["rule"] == "learning_rate"


def test_a_loop_stops_itself_when_an_alert_says_so(tmp_path: Path) -> None:
    stop = threading.Event()
    with opened(tmp_path, keeper="thread", alerts={"to": lambda alert: stop.set(), "level": "fail"}) as run:
        lose_the_rate(run)
        until(stop.is_set)
    assert run.status == "finished"


def test_a_function_that_ends_the_run_does_not_wait_for_itself(tmp_path: Path) -> None:
    with opened(tmp_path, keeper="thread") as run:
        run.on_alert(lambda alert: run.finish())
        lose_the_rate(run)
        until(lambda: run.status == "finished")


def test_a_slow_function_holds_up_neither_the_loop_nor_the_end(tmp_path: Path, tuned: Callable[..., None]) -> None:
    tuned(alert_end_seconds=0.05)
    called, may_go = threading.Event(), threading.Event()

    def slow(alert: dict[str, Any]) -> None:
        called.set()
        may_go.wait()

    with opened(tmp_path, keeper="thread", alerts=slow) as run:
        lose_the_rate(run)
        until(called.is_set)
        lose_the_rate(run)
    assert (run.status, run.book.metrics().num_rows) == ("finished", 120)
    may_go.set()


def test_a_command_gets_no_more_than_so_many_alerts_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    counted: list[str] = []
    monkeypatch.setattr("subprocess.run", lambda words, *, input, **_: sent.append(json.loads(input)))
    path = Path(alert_calls.alerts_path(str(tmp_path)))
    path.parent.mkdir(parents=True)
    path.write_text("")
    calls = alert_calls.AlertCalls(str(tmp_path), {}, lambda cause, n, words: counted.append(words))
    path.write_text('{"level": "warn"}\n' * (alert_calls.MOST_AN_HOUR + 3))
    calls.add(["tell"], "warn")
    calls.end()
    assert (len(sent), len(counted)) == (alert_calls.MOST_AN_HOUR, 3)


def test_a_notebook_shows_what_the_rules_found(tmp_path: Path) -> None:
    with opened(tmp_path) as run:
        lose_the_rate(run)
    assert "fail learning_rate: train/learning_rate has been 0 in 20 updates in a row" in run.book._repr_html_()


def test_a_web_address_gets_the_alert_with_a_sentence(tmp_path: Path) -> None:
    got: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with opened(tmp_path) as run:
            run.on_alert(f"http://127.0.0.1:{server.server_port}/hook")
            lose_the_rate(run)
    finally:
        server.shutdown()
        server.server_close()
    assert "has been 0 in 20 updates" in got[0]["text"]


@pytest.mark.parametrize("receiver", [lambda alert: 1 / 0, ["/no/such/program"], "http://127.0.0.1:1/nobody"])
def test_a_receiver_that_fails_is_counted_and_no_more(receiver: Any, tmp_path: Path) -> None:
    run = opened(tmp_path)
    run.on_alert(receiver)
    lose_the_rate(run)
    with pytest.warns(UserWarning, match="not passed on"):
        run.finish()
    assert run.status == "finished"
    assert run.book.metrics().num_rows == 60


@pytest.mark.parametrize(
    ("receiver", "level"),
    [("ftp://x", "warn"), ("mail me", "warn"), ([], "warn"), (["https://x"], "warn"), (print, "?")],
)
def test_what_cannot_be_called_is_reported_at_once(receiver: Any, level: str, tmp_path: Path) -> None:
    with opened(tmp_path) as run, pytest.raises(BadInput):
        run.on_alert(receiver, level=level)
    with pytest.raises(BadInput):
        opened(tmp_path / "none", alerts={"to": receiver, "level": level})
    assert not (tmp_path / "none").exists()
