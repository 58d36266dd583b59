"""No address reads a file outside of the run that it names, whatever stands in it."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from page_server import client_of, record

SECRET = b"do not read me"

PIECES = [
    "..",
    ".",
    "",
    "/",
    "\\",
    "%2e%2e",
    "%2f",
    "%5c",
    "..%2f",
    "data",
    "media",
    "run.json",
    "secret.png",
    "secret",
    "\0",
    "~",
    "ä",
]


@pytest.fixture(scope="module")
def trap(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root with a run full of links that lead out of it; the secret lies beside the root."""
    outside = tmp_path_factory.mktemp("trap")
    root = outside / "runs"
    (outside / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n" + SECRET)
    (outside / "secret").write_bytes(SECRET)
    record(root, "r", 0, 1e-3, rows=5)
    (folder,) = (root / "cartpole").iterdir()
    (folder / "media").mkdir(exist_ok=True)
    try:
        os.symlink(outside / "secret.png", folder / "media" / "link.png")
        os.symlink(outside, folder / "media" / "out")
        os.symlink(outside / "secret", folder / "log.txt")
        os.symlink(folder / "media" / "link.png", folder / "media" / "second.png")
    except OSError:
        pytest.skip("no links here")
    return root


@pytest.fixture(scope="module")
def thief(trap: Path) -> TestClient:
    """A client of a server that shows that root."""
    return client_of(trap)


def only_run(client: TestClient) -> str:
    """The name of the one run."""
    return str(client.post("/api/runs", json={}).json()["rows"][0]["run"])


@pytest.mark.parametrize(
    "path", ["media/link.png", "media/second.png", "media/out/secret.png", "log.txt", "media/out/secret"]
)
def test_links_out_of_a_run_are_not_followed(thief: TestClient, path: str) -> None:
    run = only_run(thief)
    for room in ("media", "files"):
        answer = thief.get(f"/{room}/{run}/{path}")
        assert answer.status_code == 404
        assert SECRET not in answer.content
    listed = thief.get(f"/api/runs/{run}/files").json()["files"]
    assert not {"log.txt", "media/link.png"} & {entry["path"] for entry in listed}
    assert "log.txt" not in {entry["name"] for entry in thief.get(f"/api/runs/{run}/logs").json()["logs"]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(PIECES), min_size=1, max_size=6), joined=st.sampled_from(["/", "", "%2f", "\\"]))
def test_no_path_leads_out(thief: TestClient, parts: list[str], joined: str) -> None:
    run = only_run(thief)
    for room in ("media", "files"):
        for path in (joined.join(parts), quote(joined.join(parts), safe="")):
            try:
                answer = thief.get(f"/{room}/{run}/{path}")
            except Exception:  # no address at all: it cannot even be sent
                continue
            assert SECRET not in answer.content
            assert answer.status_code in (200, 400, 403, 404, 503)


@pytest.mark.parametrize("name", ["page.svg", "page.html", "page.png", "page.js", "page.pdf", "page.PNG"])
def test_what_a_browser_could_run_is_only_saved(tmp_path: Path, name: str) -> None:
    record(tmp_path, "r", 0, 1e-3, rows=5)
    (folder,) = (tmp_path / "cartpole").iterdir()
    (folder / "media").mkdir(exist_ok=True)
    (folder / "media" / name).write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    with client_of(tmp_path) as client:
        for room in ("media", "files"):
            answer = client.get(f"/{room}/{only_run(client)}/media/{name}")
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"].startswith("attachment")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "sandbox" in answer.headers["content-security-policy"]
