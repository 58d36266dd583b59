"""Recorded runs and a server that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from page_server import client_of, record, record_rich


@pytest.fixture(autouse=True)
def _sealing_has_tests_of_its_own(request: pytest.FixtureRequest) -> None:
    """Runs that a test records are not sealed, those of a module are; see `sealed`."""
    if "sealed" not in request.fixturenames:
        request.getfixturevalue("nothing_is_sealed")


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with six runs: two learning rates, three seeds each. Not to be changed."""
    folder = tmp_path_factory.mktemp("recorded") / "runs"
    for lr in (3e-4, 1e-3):
        for seed in range(3):
            record(folder, "ppo", seed, lr)
    return folder


@pytest.fixture
def client(recorded: Path) -> Iterator[TestClient]:
    """The client of a server that shows the recorded runs."""
    with client_of(recorded) as client:
        yield client


@pytest.fixture
def runs(client: TestClient) -> list[str]:
    """The API's names of the recorded runs, by learning rate and seed."""
    answer = client.post("/api/runs", json={"sort": [{"column": "config.lr"}, {"column": "seed"}], "sections": False})
    return [row["run"] for row in answer.json()["rows"]]


@pytest.fixture(scope="session")
def rich_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run that has rows in every table. Not to be changed."""
    folder = tmp_path_factory.mktemp("rich") / "runs"
    record_rich(folder)
    return folder


@pytest.fixture
def rich(rich_folder: Path) -> Iterator[TestClient]:
    """The client of a server that shows that run alone."""
    with client_of(rich_folder) as client:
        yield client


@pytest.fixture
def run(rich: TestClient) -> str:
    """The API's name of that run."""
    (row,) = rich.post("/api/runs", json={"sections": False}).json()["rows"]
    return str(row["run"])
