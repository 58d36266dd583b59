"""The tools for agents at /mcp: behind the same checks and limits as the page, over the runs that it shows."""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from page_server import client_of, record
from rollbook.server.settings import LIMITS

if importlib.util.find_spec("mcp") is None:  # importing it takes half a second, in each worker
    pytest.skip("the extra rollbook[mcp]", allow_module_level=True)

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def request(
    client: TestClient, method: str = "tools/list", headers: dict[str, str] | None = None, **params: Any
) -> Any:
    """The server's answer to a request of the protocol."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return client.post("/mcp", json=body, headers={**ACCEPT, **(headers or {})})


def call(client: TestClient, tool: str, **arguments: Any) -> tuple[bool, str]:
    """(whether a tool answered, its words)."""
    answer = request(client, "tools/call", name=tool, arguments=arguments)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    return not result.get("isError"), result["content"][0]["text"]


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}]
)
def test_another_site_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    answer = request(client, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_it_needs_the_token_if_the_page_does(recorded: Path) -> None:
    with client_of(recorded, token="secret", host="0.0.0.0") as client:
        assert request(client).status_code == 401
        assert client.post("/mcp?token=secret", json={}, headers=ACCEPT).status_code == 401
        assert len(request(client, headers={"authorization": "Bearer secret"}).json()["result"]["tools"]) >= 10


def test_a_body_that_is_too_large_is_not_read(client: TestClient) -> None:
    answer = client.post("/mcp", content=b" " * (LIMITS.body_bytes + 1), headers=ACCEPT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize("body", ["", "[]", "1", "{", "[" * 100_000, '{"jsonrpc": "2.0"}'])
def test_a_body_that_is_no_request_is_refused(client: TestClient, body: str) -> None:
    assert client.post("/mcp", content=body, headers=ACCEPT).status_code == 400
    assert client.post("/mcp", content=body, headers={**ACCEPT, "content-type": "text/plain"}).status_code == 400


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_session_to_open_or_end(client: TestClient, method: str) -> None:
    answer = client.request(method, "/mcp")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_without_the_extra_it_says_what_to_install(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.delitem(sys.modules, "mcp", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *of: None if name == "mcp" else find(name, *of))
    for answer in (request(client), client.get("/mcp")):
        assert answer.status_code == 404
        assert re.search(r"pip install 'rollbook(-core)?\[mcp\]'", answer.json()["error"]["message"])


def test_it_answers_about_the_runs_of_all_folders_that_the_page_shows_and_no_others(tmp_path: Path) -> None:
    for name in ("one", "two", "hidden"):
        record(tmp_path / name, name, 0, 1e-3, rows=5)
    (tmp_path / "one" / "link").symlink_to(tmp_path / "hidden" / "cartpole")
    with client_of(tmp_path / "one", tmp_path / "two") as client:
        _, text = call(client, "runs")
        assert {row["name"] for row in json.loads(text)["rows"]} == {"one", "two"}
        good, _ = call(client, "probe", of="hidden")
        assert not good


def test_a_call_that_takes_too_long_is_an_error_that_the_agent_reads(recorded: Path) -> None:
    with client_of(recorded, limits=replace(LIMITS, seconds=0.0)) as client:
        good, text = call(client, "probe")
        assert not good
        assert "took longer" in text


def test_the_root_logger_of_the_process_stays_as_it_was(client: TestClient) -> None:
    before = (logging.root.level, list(logging.root.handlers))
    assert call(client, "probe")[0]
    assert (logging.root.level, list(logging.root.handlers)) == before
