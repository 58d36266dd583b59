"""SQL from the page: it reads the tables of runs, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from starlette.testclient import TestClient

from cases import some_of
from page_server import client_of
from rollbook.errors import BadInput
from rollbook.server.settings import Limits
from rollbook.server.shared import sql as locked_sql
from rollbook.server.shared import sql_process
from rollbook.server.shared.shapes import Refused
from rollbook.server.shared.sql import Locked
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("sealed")

REFUSED = [
    "select * from read_csv('/etc/passwd')",
    "select * from '/etc/passwd'",
    "select * from read_text('/etc/hostname')",
    "select * from read_blob('run.json')",
    "select * from glob('/*')",
    "select * from read_parquet('**/*.parquet')",
    "from sniff_csv('/etc/passwd')",
    "copy (select 1) to 'out.csv'",
    "copy episodes from '/etc/passwd'",
    "export database 'out'",
    "attach 'x.db'",
    "install httpfs",
    "load httpfs",
    "set memory_limit = '100GB'",
    "set enable_external_access = true",
    "reset lock_configuration",
    "pragma database_list",
    "call pragma_version()",
    "create table t as select 1",
    "delete from episodes",
    "drop view episodes",
    "select 1; select 2",
    "select getenv('HOME')",
    "select * from os",
    "select * from table_of",
    "",
    "nonsense",
    "select '" + "x" * 30_000 + "'",
]


def test_what_a_library_prints_is_no_answer() -> None:
    """DuckDB prints the progress of queries that take seconds."""
    program = """if True:
        import os, rollbook.server.shared.sql_process as process
        table = process._Session.table
        process._Session.table = lambda *words: (os.write(1, b"  3% (~1.0 minutes remaining)"), table(*words))[1]
        process.main()
    """
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        assert sql_process.receive(child.stdout) == ({}, [])  # ready
        sql_process.send(child.stdin, {"verb": "open", "megabytes": 64, "folders": [], "tables": []})
        sql_process.receive(child.stdout)
        asked = {"verb": "table", "query": "select 7 as n", "values": [], "limit": None, "bytes": 1 << 20}
        sql_process.send(child.stdin, asked)
        _head, (body,) = sql_process.receive(child.stdout)
        child.stdin.close()
    assert sql_process.table_in(body).to_pylist() == [{"n": 7}]


def test_one_run_is_asked_by_the_names_of_its_tables(rich: TestClient, run: str) -> None:
    query = 'select count(*) as n, max("return") as best from episodes'
    answer = rich.post("/api/sql", json={"runs": [run], "query": query}).json()
    assert answer["rows"] == [[20, 190.0]]
    assert [column["name"] for column in answer["columns"]] == ["n", "best"]
    answer = rich.post("/api/sql", json={"runs": [run], "query": 'select max("update/kl") from metrics'}).json()
    assert answer["rows"][0][0] > 25


def test_several_runs_are_asked_together(client: TestClient, runs: list[str]) -> None:
    query = 'select run, run_seed, count("update/loss") from metrics group by all order by run_seed'
    answer = client.post("/api/sql", json={"runs": runs, "query": query}).json()
    assert [row[1:] for row in answer["rows"]] == [[seed, 5_000] for seed in (0, 0, 1, 1, 2, 2)]


@pytest.mark.parametrize("query", REFUSED)
def test_nothing_but_the_tables_can_be_reached(rich: TestClient, run: str, query: str) -> None:
    answer = rich.post("/api/sql", json={"runs": [run], "query": query})
    assert answer.status_code == 400, answer.text
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    ("place", "path"),
    some_of(
        [(place, path) for path in ("episodes", "samples") for place, query in enumerate(REFUSED) if query],
        lambda case: case[0] % 4 == (0 if case[1] == "episodes" else 2),
    ),
)
def test_a_condition_is_locked_in_the_same_way(rich: TestClient, run: str, place: int, path: str) -> None:
    query = REFUSED[place]
    escape = f"1 = 1) union all (select null from ({query})"
    for where in (query, escape, f"1 in ({query})"):
        answer = rich.post(f"/api/runs/{run}/{path}", json={"where": where})
        assert "root:" not in answer.text
        assert answer.status_code in (200, 400)


def test_rows_and_time_are_bounded(rich_folder: Path) -> None:
    with client_of(rich_folder, limits=Limits(sql_seconds=0.3)) as client:
        run = client.post("/api/runs", json={"sections": False}).json()["rows"][0]["run"]
        many = client.post(
            "/api/sql", json={"runs": [run], "query": "select * from range(1000000)", "limit": 10}
        ).json()
        assert len(many["rows"]) == 10
        assert many["more"]
        endless = "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r"
        answer = client.post("/api/sql", json={"runs": [run], "query": endless})
        assert answer.json()["error"]["code"] == "timeout"


def test_memory_is_bounded_however_much_time_there_is(rich_folder: Path) -> None:
    with client_of(rich_folder, limits=Limits(sql_seconds=PATIENCE, sql_bytes=64 << 20)) as client:
        run = client.post("/api/runs", json={"sections": False}).json()["rows"][0]["run"]
        ask = {"runs": [run], "query": "select len(list(range)) from range(30000000)"}  # 240 MB for a small answer
        error = client.post("/api/sql", json=ask).json()["error"]
        assert error["code"] == "too_large"
        assert "more than 64 MB of memory" in error["message"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nobody tells a process's own peak")
def test_a_large_server_does_not_start_a_process_for_each_question() -> None:
    ballast = np.ones(40 << 20)  # what a program had in memory is in the ru_maxrss of those that it starts
    locked_sql.end_idle()
    started = set()
    for _ in range(2):
        with Locked(Limits(process_bytes=256 << 20), {"mine": pa.table({"a": [1]})}) as one:
            one.table("select * from mine")
            assert one._process is not None
            started.add(one._process._child.pid)
    assert ballast[0] == 1.0
    assert len(started) == 1


def test_requests_that_share_a_database_see_only_their_own_tables() -> None:
    mine, others = pa.table({"a": [1]}), pa.table({"b": [2]})
    with Locked(Limits(process_bytes=256 << 20), {"mine": mine}) as one, Locked(Limits(), {"others": others}) as other:
        one.view("seen", "select * from mine")
        assert other.table("select * from others")["b"].to_pylist() == [2]
        for name in ("mine", "seen", "others_of_python"):
            others_of_python = mine  # noqa: F841  (DuckDB would find it, if it were let)
            with pytest.raises(Refused):
                other.table(f"select * from {name}")
        with pytest.raises((Refused, BadInput)):
            other.table("select * from duckdb_settings()")
    with Locked(Limits(), {}) as later, pytest.raises(Refused):
        later.table("select * from mine")
