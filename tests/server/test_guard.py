"""Who may ask: names, other sites, the token, and what an answer lets a browser do."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from page_server import client_of


def code(answer: object) -> str:
    """The code of a refusal."""
    return str(answer.json()["error"]["code"])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:7655", "", "localhost:7655:1", "a b", "[::1]x"]
)
def test_a_name_that_was_bent_to_this_machine_is_refused(client: TestClient, host: str) -> None:
    for path in ("/api/hello", "/", "/api/openapi.json"):
        answer = client.get(path, headers={"host": host})
        assert answer.status_code == 403
        assert code(answer) == "forbidden"


@pytest.mark.parametrize("host", ["127.0.0.1:7655", "localhost:1", "[::1]:80", "LOCALHOST"])
def test_the_names_of_this_machine_are_let_in(client: TestClient, host: str) -> None:
    assert client.get("/api/hello", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_another_site_gets_nothing(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/api/hello", headers=headers).status_code == 403
    assert client.post("/api/runs", json={}, headers=headers).status_code == 403


def test_a_link_from_another_site_may_open_the_page_but_no_data(client: TestClient) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=headers).status_code in (200, 503)
    assert client.get("/api/hello", headers=headers).status_code == 403


def test_a_form_of_another_site_cannot_ask(client: TestClient) -> None:
    answer = client.post("/api/runs", content="{}", headers={"content-type": "text/plain"})
    assert answer.status_code == 400


def test_with_a_token_no_request_without_it_is_answered(recorded: Path) -> None:
    with client_of(recorded, token="secret", host="0.0.0.0") as client:
        assert code(client.get("/api/hello")) == "no_token"
        assert client.get("/api/openapi.json").status_code == 401
        assert client.get("/api/hello?token=secret").status_code == 401  # it would stay in logs and histories
        assert client.get("/api/hello", headers={"authorization": "Bearer wrong"}).status_code == 401
        assert client.get("/api/hello", headers={"authorization": "Bearer secret"}).status_code == 200
        answer = client.get("/?token=secret&x=1", follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == "./?x=1"
        cookie = answer.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/api/hello").status_code == 200


def test_every_answer_forbids_a_browser_what_the_page_does_not_need(client: TestClient) -> None:
    for path in ("/", "/api/hello", "/api/none", "/assets/none.js", "/mcp"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
    for path in ("/api/hello", "/mcp"):
        assert client.get(path).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/../pyproject.toml", "/%2e%2e/app.py", "/assets/../../app.py", "/assets/..%2f..%2fapp.py", "//etc/passwd"]
)
def test_no_address_leads_out_of_the_page(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in (404, 503)
    assert b"rollbook.server" not in answer.content


def test_a_body_that_is_too_large_is_not_read(client: TestClient) -> None:
    answer = client.post("/api/runs", content=b" " * 400_000, headers={"content-type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize("body", ["", "[]", "1", "{", '{"limit": "many"}', '{"nonsense": 1}', "[" * 100_000])
def test_a_body_that_is_not_a_question_is_refused(client: TestClient, body: str) -> None:
    answer = client.post("/api/runs", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert code(answer) == "bad_input"


def test_an_unknown_address_or_method_is_a_plain_no(client: TestClient) -> None:
    assert code(client.get("/api/nothing")) == "not_found"
    assert code(client.delete("/api/hello")) == "not_found"
    assert code(client.get("/api/runs/nothing")) == "not_found"
