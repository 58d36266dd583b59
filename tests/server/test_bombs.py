"""Whatever is asked, the server goes on answering, and it and its processes stay below a ceiling of memory."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cases import some_of
from rollbook.server.settings import LIMITS
from waiting import PATIENCE, pause

psutil = pytest.importorskip("psutil")

MEGABYTES = 256
GREETING_SECONDS = 15.0
"""A guard against a server that stands still, no measure of its speed."""
SERVE = f"""
import sys
from rollbook.server.serving import listen
from rollbook.server.settings import Limits, ServerSettings
limits = Limits(sql_seconds=1.0, filter_seconds=1.0, sql_bytes={MEGABYTES} << 20)
with listen(ServerSettings((sys.argv[1],), limits=limits)) as server:
    print(server.settings.port, flush=True)
    sys.stdin.read()
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-c", SERVE, str(folder)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._child.stdout is not None
        self.port = int(self._child.stdout.readline())
        self.peak: dict[str, int] = {}

    def ask(self, path: str, body: Any = None, seconds: float = PATIENCE) -> tuple[int, bytes]:
        """(status, body) of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            content = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, content, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def look(self) -> None:
        """See how much memory the server and its processes have now."""
        server = psutil.Process(self._child.pid)
        for name, processes in (("server", [server]), ("child", server.children(recursive=True))):
            for process in processes:
                try:
                    resident = process.memory_info().rss
                except psutil.Error:  # it has ended
                    continue
                self.peak[name] = max(self.peak.get(name, 0), resident)

    def close(self) -> None:
        """End it."""
        self._child.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def server(rich_folder: Path) -> Iterator[Server]:
    """A server that shows one run with rows in every table."""
    server = Server(rich_folder)
    yield server
    server.close()


def sql(query: str) -> tuple[str, dict[str, Any]]:
    return "/api/sql", {"runs": ["RUN"], "query": query}


def where(condition: str, table: str = "samples") -> tuple[str, dict[str, Any]]:
    return f"/api/runs/RUN/{table}", {"where": condition}


def runs(condition: str) -> tuple[str, dict[str, Any]]:
    return "/api/runs", {"filter": condition}


BOMBS = [
    sql("select unnest(range(100000000))"),
    runs("len(range(100000000)) > 3"),
    where("len(range(100000000)) > 3"),
    runs("a" * 100_000),
    where(" or ".join(f"reward = {n}" for n in range(3_000))),
    ("/api/series", {"runs": ["RUN"], "keys": ["train/reward"], "points": 10**9}),
    sql("select repeat('x', 1000000000)"),
    sql("with recursive r(n) as (select 1 union all select n + 1 from r) select max(n) from r"),
    sql("select a.range, b.range from range(1000000) a, range(1000000) b order by hash(a.range + b.range)"),
    sql("select count(*) from range(1000000) a, range(1000000) b where hash(a.range + b.range) = 7"),
    sql("select list(range) from range(100000000)"),
    sql("select string_agg(range::varchar, '') from range(100000000)"),
    sql("select list_aggregate(range(100000000), 'histogram')"),
    sql("select list_sort(list_transform(range(50000000), lambda x: hash(x)))"),
    sql("select regexp_matches(repeat('a', 100000000), '(a?){1000}a{1000}')"),
    sql("select levenshtein(repeat('a', 1000000), repeat('b', 1000000))"),
    sql("select printf('%2000000000d', 1)"),
    sql("select lpad('', 2000000000, 'x')"),
    sql("select map(range(20000000), range(20000000))"),
    sql("select * from range(100000000) order by hash(range) limit 10000"),
    sql("select repeat('x', 1000000) from range(10000)"),
    sql("select range(100000) from range(10000)"),
    sql("select '" + "x" * 200_000 + "'"),
    sql("select " + "(" * 9_000 + "1" + ")" * 9_000),
    sql("select " + "[" * 9_000 + "]" * 9_000),
    sql("select 1" + " + 1" * 4_900),
    sql("select 10000000000::hugeint ** 1000, factorial(1000)"),
    where("repeat('x', 1000000000) = 'y'", "episodes"),
    where("reward in (" + ", ".join(map(str, range(20_000))) + ")"),
    where("(" * 9_000 + "true" + ")" * 9_000),
    where("levenshtein(repeat('a', 1000000), repeat('b', 1000000)) > 3", "episodes"),
    runs("repeat('x', 1000000000) = 'y'"),
    runs(" or ".join(f"name == 'x{n}'" for n in range(3_000))),
    runs("name in (" + ", ".join(repr(str(n)) for n in range(20_000)) + ")"),
    runs(" or ".join(f"last('key{n}') > 1" for n in range(500))),
    ("/api/runs", {"search": "a b " * 50_000}),
    ("/api/runs", {"sort": [{"column": f"config.a{n}"} for n in range(2_000)]}),
    ("/api/runs", {"columns": [f"last:key{n}" for n in range(5_000)]}),
    ("/api/runs", {"group_by": [f"config.a{n}" for n in range(5_000)]}),
    ("/api/runs", {"limit": 10**12}),
    ("/api/series", {"runs": ["RUN"], "keys": [f"key{n}" for n in range(20_000)]}),
    ("/api/series", {"runs": ["RUN"], "keys": ["train/reward"], "start": -1e308, "stop": 1e308, "points": 20_000}),
    ("/api/runs/RUN/samples", {"search": "a " * 50_000}),
    ("/api/runs/RUN/samples", {"offset": 2**62, "limit": 1_000}),
    ("/api/runs/RUN/samples", {"order_by": ", ".join(["reward"] * 5_000)}),
    ("/api/runs/RUN/novelty?points=1000000000", None),
    ("/api/runs/RUN/text", {"limit": 1_000_000_000}),
]


@pytest.mark.parametrize("number", some_of(range(len(BOMBS)), 2), ids=lambda n: str(BOMBS[n][1])[:60])
def test_a_question_that_would_stop_or_swell_the_server_is_bounded(server: Server, number: int) -> None:
    """Four askers at once, more than there are threads for questions; `api/hello` is answered meanwhile."""
    (run,) = json.loads(server.ask("/api/runs", {"sections": False})[1])["rows"]
    path, body = BOMBS[number]
    path = path.replace("RUN", run["run"])
    if body and "runs" in body:
        body = {**body, "runs": [run["run"]]}
    with ThreadPoolExecutor(4) as askers:
        asked = [askers.submit(server.ask, path, body) for _ in range(4)]
        while not all(each.done() for each in asked):
            assert server.ask("/api/hello", seconds=GREETING_SECONDS)[0] == 200
            server.look()
            pause(0.02)
        answers = [each.result() for each in asked]
    # The process of a bomb is gone, and the next question is answered.
    status, content = server.ask("/api/sql", {"runs": [run["run"]], "query": "select count(*) from episodes"})
    assert (status, json.loads(content)["rows"]) == (200, [[20]])
    for status, content in answers:
        assert status in (200, 400, 404, 413, 429, 504), content[:300]
        assert len(content) < LIMITS.sql_answer_bytes + (1 << 20)
    assert server.peak["server"] < 700 << 20
    assert server.peak.get("child", 0) < (MEGABYTES + 450) << 20


SLOW = {
    "half a header": b"GET /api/hello HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: b",
    "half a body": b"POST /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 200000\r\n\r\n{",
    "a live socket": b"GET /api/live HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    "answers unread": b"GET /api/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 2,
}


@pytest.mark.parametrize("kind", some_of(SLOW, 1))
def test_four_hundred_clients_that_wait_delay_no_other(server: Server, kind: str) -> None:
    with contextlib.ExitStack() as opened:
        for _ in range(400):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            client.sendall(SLOW[kind])
        assert server.ask("/api/hello", seconds=GREETING_SECONDS)[0] == 200
        assert server.ask("/api/runs", {"sections": False}, seconds=GREETING_SECONDS)[0] == 200
        server.look()
    assert server.peak["server"] < 700 << 20
