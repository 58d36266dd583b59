"""What an agent gets to know of runs: strict JSON of a bounded length, page by page, and nothing outside the folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from left_behind import children
from rollbook.errors import RollbookError
from rollbook.server.agents import AgentTools
from rollbook.server.serving import listen
from rollbook.server.settings import ServerSettings

HOSTILE = "x" * 50_000 + "\x1b[2J\ud800"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of two algorithms with three seeds each, and a run with texts longer than any answer."""
    root = tmp_path_factory.mktemp("agents") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROLLBOOK_RUN_ID", raising=False)
        for algo in ("ppo", "dqn"):
            for seed in range(3):
                with rollbook.init("cartpole", f"{algo}-{seed}", dir=root, sinks=[], keeper="import", seed=seed,
                                   config={"algo": algo, "lr": 0.1}) as run:  # fmt: skip
                    for step in range(200):
                        peak = 1000.0 if step == 77 else 0.0
                        run.log({"test/return": seed + step + peak + 50 * (algo == "ppo")}, env_step=step)
                    (run.folder / "log").mkdir()
                    (run.folder / "log" / "console.log").write_text(
                        "".join(f"2026-11-29 03:10:{n:02}Z epoch {n}\n" for n in range(60))
                    )
                    run.log_episode(return_=3.0, length=3, env_step=10)
                    row = {"rule": "kl", "level": "warn", "message": algo, "evidence": "{}", "source": "", "key": ""}
                    run.record("alerts", row, env_step=5)
        with rollbook.init("odd", HOSTILE[:80], dir=root, sinks=[], keeper="import", notes=HOSTILE,
                           config={"text": HOSTILE, "nested": {"a": [HOSTILE] * 50}}) as run:  # fmt: skip
            for n in range(60):
                run.log({f"key{n}/{HOSTILE[:100]}": float("nan")}, env_step=n)
            run.log_samples([HOSTILE] * 30, reward=[float("inf")] * 30)
            run.log_text("said", HOSTILE[:-1], env_step=1)
    return root


BUDGET = 2_000
CALLS: dict[str, list[dict[str, Any]]] = {
    "probe": [{}, {"of": "cartpole"}, {"of": "odd"}],
    "runs": [
        {},
        {
            "where": "config.algo = 'ppo'",
            "columns": ["config.algo"],
            "metrics": ["test/return=max"],
            "sort": ["-test/return"],
        },
        {"by": "config.algo", "metrics": ["test/return"]},
    ],
    "series": [
        {"runs": "ppo-1", "keys": "test/return", "points": 100},
        {"runs": "ppo-1", "keys": ["test/return"], "x": "time"},
    ],
    "logs": [{"run": "ppo-1"}, {"run": "ppo-1", "search": "epoch 3", "lines": 5}],
    "cause": [
        {"run": "dqn-2", "x": "env_step", "at": 77, "everything": True},
        {"run": "odd", "x": "env_step", "at": 3},
    ],
    "curves": [{"key": "test/return", "by": "config.algo", "where": "project = 'cartpole'", "points": 5}],
    "sweep": [{"project": "cartpole"}, {"metric": "test/return", "where": "project = 'cartpole'", "at": 50}],
    "compare": [{"metric": "test/return", "by": "config.algo", "where": "project = 'cartpole'"}],
    "alerts": [{}, {"where": "project = 'cartpole'", "since": 0.0}],
    "diff": [{"runs": "cartpole"}, {"metric": "test/return", "where": "project = 'cartpole'", "by": "config.algo"}],
    "findings": [{}, {"since": 0.0}],
    "plans": [{}],
    "verify": [{"runs": "ppo-1"}, {"quick": True}],
    "stages": [{"run": "ppo-1"}, {"run": "odd", "stretches": 3}],
    "seeds": [{"metric": "test/return", "by": "config.algo", "where": "project = 'cartpole'"}],
    "novelty": [{"run": "odd"}, {"run": "odd", "points": 2}],
    "unused": [{"run": "odd"}],
    "shared_prompts": [{"run": "ppo-1", "other": "odd"}],
    "samples": [{"run": "odd"}, {"run": "odd", "unique": True}],
    "rows": [{"run": "ppo-1", "table": "checkpoints", "limit": 3}, {"run": "odd", "table": "samples", "offset": 20}],
    "rollouts": [{"run": "odd", "question": "fates"}, {"run": "ppo-1", "question": "prompts", "limit": 3}],
    "sql": [
        {"run": "ppo-0", "query": 'select env_step, "test/return" from metrics order by 1, 2'},
        {"run": "odd", "query": "select repeat('x', 100000) as a, 'nan'::double as b from range(5)"},
    ],
    "wait": [{"run": "ppo-0", "until": 'last("test/return") > 10'}, {"run": "odd", "until": 'max("nothing") > 10'}],
}
ASKED = [(name, arguments) for name, several in CALLS.items() for arguments in several]


def strict(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    text.encode()  # raises at half of a surrogate pair
    return json.loads(text, parse_constant=refuse)


def pages(tool: Callable[..., str], **arguments: Any) -> Iterator[dict[str, Any]]:
    answer = strict(tool(**arguments))
    yield answer
    while answer["next"]:
        answer = strict(tool(**arguments, cursor=answer["next"]))
        yield answer


def test_the_pages_of_one_answer_give_each_row_once_whatever_the_order_and_what_others_ask(root: Path) -> None:
    tools = AgentTools(root, BUDGET)
    query = "select env_step, {} as n from metrics where env_step >= 100 order by random()"
    rows: list[int] = []
    for n, answer in enumerate(pages(tools.sql, run="ppo-0", query=query.format(0))):
        rows += [row["env_step"] for row in answer["rows"]]
        strict(tools.sql("ppo-0", query.format(n)))  # others ask the same and similar things in between
    assert n
    assert sorted(rows) == list(range(100, 200))


def test_a_page_of_an_answer_that_is_long_forgotten_is_asked_anew(root: Path) -> None:
    tools = AgentTools(root, BUDGET)
    query = 'select env_step from metrics order by env_step, "test/return"'
    first = strict(tools.sql("ppo-0", query))
    later = AgentTools(root, BUDGET)  # as after a restart of the server
    assert (
        strict(later.sql("ppo-0", query, first["next"]))["rows"]
        == strict(tools.sql("ppo-0", query, first["next"]))["rows"]
    )


def test_every_tool_is_asked() -> None:
    names = [tool.__name__ for tool in AgentTools("runs").tools()]
    assert sorted(names) == sorted(CALLS)
    words = [tool.__doc__ or "" for tool in AgentTools("runs").tools()]
    assert all(words)
    assert sum(map(len, words)) < 16_000, "each conversation of an agent begins with all of them"


@pytest.mark.parametrize(
    ("name", "arguments"),
    some_of(ASKED, ASKED[::6].count, ids=[f"{name} {n}" for n, (name, _) in enumerate(ASKED)]),
)
def test_pages_within_the_budget_make_up_the_whole_answer(name: str, arguments: dict[str, Any], root: Path) -> None:
    small, large = (getattr(AgentTools(root, budget), name) for budget in (BUDGET, 40_000_000))
    first = strict(large(**arguments))
    assert first["next"] is None
    rows = []
    for answer in pages(small, **arguments):
        assert len(json.dumps(answer)) <= BUDGET
        assert answer["of"] == first["of"] == len(first["rows"])
        assert answer["rows"] or not first["rows"], "each page goes on"
        rows += answer["rows"]
    assert len(rows) == first["of"]
    if "odd" not in arguments.values() and name != "probe":
        assert rows == first["rows"]


def test_a_peak_of_one_row_is_in_a_series_of_few_points(root: Path) -> None:
    head, *points = strict(AgentTools(root).series("test/return", runs="ppo-1", points=5))["rows"]
    assert (head["name"], head["rows"], head["points"]) == ("ppo-1", 200, len(points))
    assert len(points) <= 5
    assert max(row[3] for row in points) == 77 + 1000 + 1 + 50
    assert sum(row[4] for row in points) == 200


def test_a_comparison_has_the_pair_its_verdict_and_the_seeds_that_it_takes(root: Path) -> None:
    rows = strict(AgentTools(root).compare("test/return", "config.algo", where="project = 'cartpole'"))["rows"]
    (pair,) = (row for row in rows if "pair" in row)
    assert sorted(pair["pair"]) == ["dqn", "ppo"]
    assert (pair["outcome"], pair["better"], pair["enough"], pair["more"]) == ("too few seeds", None, 4, None)
    assert pair["of"] == 9
    assert any("sentence" in row for row in rows)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("probe", {"of": "cartpol"}),
        ("probe", {"of": "/"}),
        ("probe", {"of": "../.."}),
        ("runs", {"where": "x ="}),
        ("runs", {"where": "(select 1) = 1"}),
        ("runs", {"cursor": "-1"}),
        ("runs", {"cursor": "²"}),
        ("series", {"runs": "ppo-1", "keys": "nothing"}),
        ("series", {"runs": "ppo-1", "keys": "test/return", "points": 0}),
        ("cause", {"run": "ppo-1", "x": "rows", "at": 1}),
        ("samples", {"run": "odd", "limit": 10**9}),
        ("samples", {"run": "odd", "where": "reward < (select count(*) from read_text('/etc/hostname'))"}),
        ("samples", {"run": "odd", "order_by": "(select 1 from read_text('/etc/hostname'))"}),
        ("sql", {"run": "ppo-1", "query": "select * from read_text('/etc/hostname')"}),
        ("sql", {"run": "ppo-1", "query": "drop table metrics"}),
        ("wait", {"run": "ppo-1", "until": "statsu = 1"}),
        ("wait", {"run": "ppo-1", "until": "seed = 9", "timeout": 1e9}),
        ("wait", {"run": "ppo-1", "until": "read_text('/etc/hostname') = ''"}),
    ],
)
def test_what_cannot_be_answered_is_an_error_in_words(name: str, arguments: dict[str, Any], root: Path) -> None:
    with pytest.raises(RollbookError):
        getattr(AgentTools(root), name)(**arguments)


def test_a_wait_ends_with_the_time_that_a_server_gives_it(tmp_path: Path) -> None:
    with rollbook.init("p", "live", dir=tmp_path, sinks=[], keeper="import"):
        waited = strict(AgentTools(tmp_path, longest_wait=0.0).wait("live", "seed = 9", timeout=300.0))
    assert (waited["outcome"], waited["status"]) == ("timeout", "running")


def test_a_run_outside_the_folder_is_not_seen(root: Path) -> None:
    for run in (str(root / "odd"), "ppo-1", "cartpole/ppo-1"):
        with pytest.raises(RollbookError):
            AgentTools(root / "odd").probe(run)


def test_asking_changes_no_file(root: Path) -> None:
    def files() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}

    before, tools = files(), AgentTools(root)
    for name, arguments in ASKED:
        getattr(tools, name)(**arguments)
    assert files() == before


@pytest.mark.long
def test_an_agent_gets_the_same_over_the_standard_streams_and_from_the_server_of_the_page(root: Path) -> None:
    mcp = pytest.importorskip("mcp", reason="the extra rollbook[mcp]")
    import anyio
    from mcp.client.streamable_http import streamable_http_client

    async def asked(streams: Any) -> tuple[list[dict[str, Any]], list[Any]]:
        calls = [
            ("runs", {"where": "config.algo = 'ppo'"}),
            ("samples", {"run": "odd", "where": "reward > 1", "limit": 2}),
            ("probe", {"of": "cartpol"}),
            ("runs", {"condition": "config.algo = 'ppo'"}),
            ("train", {}),
        ]
        async with streams as (read, write, *_), mcp.ClientSession(read, write) as session:
            await session.initialize()
            tools = [tool.model_dump() for tool in (await session.list_tools()).tools]
            return tools, [await session.call_tool(*call) for call in calls]

    command = mcp.StdioServerParameters(command=sys.executable, args=["-m", "rollbook", "mcp", "--dir", str(root)])
    tools, answers = anyio.run(asked, mcp.stdio_client(command))
    with listen(ServerSettings((str(root),), title=str(root))) as server:
        assert anyio.run(asked, streamable_http_client(server.address + "mcp")) == (tools, answers)
        assert children("sql_process")
    assert not children("sql_process"), "a server that was stopped leaves no process behind"
    assert sorted(tool["name"] for tool in tools) == sorted(CALLS)
    assert all(tool["annotations"]["read_only_hint"] for tool in tools)
    texts = [answer.content[0].text for answer in answers]
    assert [answer.is_error for answer in answers] == [False, False, True, True, True]
    assert [strict(text)["of"] for text in texts[:2]] == [3, 2]
    assert "cartpole/ppo-1" in texts[2], "it names what there is"
    assert "condition" in texts[3], "an argument that there is not is no answer about all runs"
    assert "where" in texts[3], "it names those that there are"
    assert "probe" in texts[4]
