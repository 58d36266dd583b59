"""What the page is told of rollouts: searched, sorted, one as a conversation, its group, and what became of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import rollbook
from agent_rollouts import HOSTILE, SIZE, record_agents
from page_server import client_of
from rollbook.book import Retention


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("agents") / "runs"
    record_agents(folder)
    with client_of(folder) as client:
        yield client


@pytest.fixture(scope="module")
def place(client: TestClient) -> str:
    (row,) = client.post("/api/runs", json={"sections": False}).json()["rows"]
    return f"/api/runs/{row['run']}"


def asked(client: TestClient, place: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"{place}/rollouts", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_rollouts_are_searched_filtered_sorted_and_windowed(client: TestClient, place: str) -> None:
    everything = asked(client, place, limit=5, offset=2, order_by="reward desc")
    assert (everything["total"], everything["matched"], len(everything["rows"])) == (64, 64, 5)
    assert {"reward", "used", "reason", "staleness", "prompt", "item"} <= {c["name"] for c in everything["columns"]}
    found = asked(client, place, search="<SCRIPT> pytest.skip", where="used and advantage > 0 or not used")
    assert 0 < found["matched"] < 64
    assert all("pytest.skip" in str(row["cells"]["item"]) for row in found["rows"])
    assert asked(client, place, search="nowhere at all")["matched"] == 0
    for bad in ({"where": "reward >"}, {"order_by": "rewrad"}, {"where": "1); drop table rollouts"}):
        assert client.post(f"{place}/rollouts", json=bad).status_code == 400
    assert client.post(f"{place}/rollouts", json={"limit": 10**9}).status_code == 413


def test_groups_are_rows_of_what_their_rollouts_are(client: TestClient, place: str) -> None:
    groups = asked(client, place, by_group=True, order_by="reward desc")
    assert (groups["groups"], groups["matched"], len(groups["rows"])) == (16, 64, 16)
    means = [row["group"]["mean"] for row in groups["rows"]]
    assert means == sorted(means, reverse=True)
    assert (
        asked(client, place, by_group=True, limit=3, offset=14)["rows"]
        == asked(client, place, by_group=True)["rows"][14:]
    )
    for row in groups["rows"]:
        own = [one["cells"] for one in asked(client, place, group=row["id"])["rows"]]
        rewards = [cells["reward"] for cells in own]
        assert row["group"]["mean"] == pytest.approx(sum(rewards) / len(own))
        assert (row["group"]["n"], len(row["group"]["marks"])) == (len(own), len(own))
        assert row["group"]["marks"].count("1") == sum(reward > 0.6 for reward in rewards)
        assert row["group"]["fates"] == Counter(_fate(cells) for cells in own)
    few = asked(client, place, by_group=True, where="reason = 'zero_std'", search="<SCRIPT>")
    assert few["matched"] == sum(row["group"]["n"] for row in few["rows"]) == few["fates"]["zero_std"]
    assert asked(client, place, by_group=True, where="reward > 9")["groups"] == 0
    assert client.post(f"{place}/rollouts", json={"by_group": True, "order_by": "no"}).status_code == 400


@pytest.mark.long
def test_answers_are_the_same_from_tables_so_large_that_only_parts_are_read(
    client: TestClient, place: str, tuned: Callable[..., None]
) -> None:
    asks: list[dict[str, Any]] = [
        {}, {"offset": 60, "limit": 10}, {"offset": 64}, {"order_by": "reward", "limit": 7},
        {"where": "not used"}, {"search": "nowhere at all"},
        {"search": "day", "where": "gradient_step > 3 and not used"}, {"where": "contains(item, 'skip') and used"},
        {"order_by": "prompt", "limit": 7}, {"by_group": True}, {"by_group": True, "where": "not used"},
    ]  # fmt: skip

    def answers() -> list[Any]:
        found = [[asked(client, place, **ask)[name] for name in ("matched", "rows")] for ask in asks]
        fates = client.get(f"{place}/fates").json()
        return [*found, [fates[name] for name in ("layers", "gaps", "tokens")]]

    small = answers()
    tuned(scan_rows=1)
    assert answers() == small
    assert answers() == small  # kept
    ids = [row["id"] for row in small[0][1]]
    assert [row["id"] for row in small[1][1]] == ids[60:]


def test_a_condition_on_the_update_bounds_the_search_and_the_counts_of_fates(client: TestClient, place: str) -> None:
    bound = "gradient_step between 2 and 6"
    found = asked(client, place, search="pytest.skip", where=f"used and {bound}")
    rows = asked(client, place, where=f"{bound} and contains(item, 'pytest.skip')")["rows"]
    assert found["fates"] == Counter(_fate(row["cells"]) for row in rows)
    assert [row["id"] for row in found["rows"]] == [row["id"] for row in rows if row["cells"]["used"]]
    assert 0 < found["matched"] < sum(found["fates"].values())


def _fate(cells: dict[str, Any]) -> str:
    return str(cells["reason"] or ("no fate yet" if cells["used"] is None else "used"))


def test_kept_answers_are_computed_again_when_files_of_a_run_change(tmp_path: Path, tuned: Callable[..., None]) -> None:
    tuned(scan_rows=1)
    record_agents(tmp_path, updates=3)
    with client_of(tmp_path) as client:
        (row,) = client.post("/api/runs", json={"sections": False}).json()["rows"]
        place = f"/api/runs/{row['run']}"
        before = asked(client, place, search="day")["matched"]
        Retention(rollbook.open(tmp_path).one()).trim(1)  # texts go
        assert asked(client, place, search="day")["matched"] < before


def test_the_page_of_sql_knows_the_views_of_rollouts(client: TestClient, place: str) -> None:
    query = "select kind, count(*), count(prompt), count(reason) from completions group by 1"
    body = {"runs": [place.removeprefix("/api/runs/")], "query": query}
    united = client.post("/api/sql", json=body).json()["rows"]
    assert united[0][:3] == ["rollout", 64, 64]
    now = {**body, "query": "select 'rollout', count(*), 64, count(reason) from rollouts_now"}
    assert client.post("/api/sql", json=now).json()["rows"] == united


def test_tokens_come_with_their_texts_where_each_has_one(tmp_path: Path) -> None:
    with rollbook.init("p", "n", dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
        for more in ({"token_texts": ["It", " is"]}, {}, {"token_texts": ["It"]}):
            with run.rollouts.begin(task="t") as rollout:
                rollout.turn("assistant", "It is", tokens=[5, 6], logprobs=[-0.1, -0.2], **more)
    with client_of(tmp_path) as client:
        (row,) = client.post("/api/runs", json={"sections": False}).json()["rows"]
        place = f"/api/runs/{row['run']}"
        rows = asked(client, place, order_by="time, seq")["rows"]
        turns = [client.get(f"{place}/rollouts/{row['id']}").json()["turns"][0] for row in rows]
    assert [turn["tokens"]["text"] for turn in turns] == [["5", "6"]] * 3
    assert [turn["tokens"]["texts"] for turn in turns] == [["It", " is"], [], []]


def test_one_rollout_is_a_conversation_with_its_tokens_fates_and_history(client: TestClient, place: str) -> None:
    row = asked(client, place, where="used and clipped is not null and tool_errors > 0", limit=1)["rows"][0]
    one = client.get(f"{place}/rollouts/{row['id']}").json()
    assert one["cells"]["reward"] == row["cells"]["reward"]
    assert "You are careful" in one["messages"]
    roles = [turn["role"] for turn in one["turns"]]
    assert roles == ["assistant", "tool"] * (len(roles) // 2) + ["assistant"]
    assert HOSTILE.split(" ")[0] in one["turns"][1]["text"]
    assert any(turn["error"] for turn in one["turns"])
    spoken = one["turns"][0]
    assert (spoken["trained"], len(spoken["tokens"]["text"])) == (True, spoken["n_tokens"])
    assert set(spoken["tokens"]["columns"]) == {"sampler", "entropy"}
    assert one["turns"][1]["tokens"] is None
    assert [fate["used"] for fate in one["fates"]] == [True]
    assert sum(version["n"] for version in one["history"]) == asked(client, place, task=row["id"])["matched"]
    assert all(v["low"] <= v["solved"] / v["n"] <= v["high"] for v in one["history"])
    group = asked(client, place, group=row["id"])
    assert group["matched"] == SIZE
    assert {other["cells"]["group"] for other in group["rows"]} == {row["cells"]["group"]}
    assert client.get(f"{place}/rollouts/nobody").status_code == 404
    assert asked(client, place, group="nobody")["matched"] == 0


def test_every_rollout_stands_in_one_layer_of_the_fates(client: TestClient, place: str) -> None:
    fates = client.get(f"{place}/fates").json()
    assert (fates["x"], fates["total"]) == ("gradient_step", 64)
    assert fates["layers"][0]["reason"] == "used"
    assert {"zero_std", "no fate yet"} <= {layer["reason"] for layer in fates["layers"]}
    assert sum(sum(layer["n"]) for layer in fates["layers"]) == 64
    assert all(len(cells) == len(fates["starts"]) for cells in fates["curves"].values())
    assert len(client.get(f"{place}/fates?points=3").json()["starts"]) <= 3
    assert {row["name"] for row in fates["tools"]} == {"read", "run_tests"}
    known = asked(client, place, where="used and staleness is not null and clipped is not null")["matched"]
    assert sum(sum(column["n"]) for column in fates["clipping"]) == known > 0
    passes = fates["passes"]
    assert sum(passes["n"]) == 64
    for n, solved, low, high in zip(*(passes[name] for name in ("n", "solved", "low", "high")), strict=True):
        assert low <= solved / n <= high
    brief = client.get(f"{place}/fates?brief=true").json()
    assert (brief["layers"], brief["passes"], brief["tools"]) == (fates["layers"], passes, [])
    assert brief["curves"] == fates["curves"]
    counts = client.get(f"{place}/fates?counts=true").json()
    assert counts == {**brief, "curves": {}, "took_ms": counts["took_ms"]}
    curves, *parts = (
        client.get(f"{place}/fates?part={part}").json() for part in ("curves", "fates", "tools", "tokens", "words")
    )
    assert curves == {**brief, "took_ms": curves["took_ms"]}
    for part, names in zip(parts, (("clipping", "stale", "gaps"), ("tools",), ("tokens",), ("words",)), strict=True):
        filled = {name: fates[name] for name in names}
        assert {name: cells for name, cells in part.items() if cells and name in _TABLES} == {
            name: cells for name, cells in filled.items() if cells
        }


_TABLES = ("layers", "curves", "clipping", "stale", "gaps", "tools", "tokens", "words")


def test_a_part_of_training_has_the_fates_that_the_layers_have_there(client: TestClient, place: str) -> None:
    fates = client.get(f"{place}/fates").json()
    for low, high in ((2, 3), (3, 7), (0, 99)):
        inside = [i for i, at in enumerate(fates["starts"]) if low <= at <= high]
        counted = {layer["reason"]: sum(layer["n"][i] for i in inside) for layer in fates["layers"]}
        counted.pop("no fate yet")  # of which no update is known but their own
        found = asked(client, place, where=f"gradient_step between {low} and {high}")
        assert {name: n for name, n in found["fates"].items() if name != "no fate yet"} == {
            name: n for name, n in counted.items() if n
        }
        assert found["matched"] == sum(found["fates"].values())


def test_late_numbers_of_the_trainer_stand_beside_the_turns_that_they_are_about(tmp_path: Path) -> None:
    import rollbook
    import rollbook.errors

    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        talk = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "a b", "tokens": [1, 2], "logprobs": [-1.0, -2.0]},
            {"role": "tool", "content": "c", "tokens": 3},
            {"role": "assistant", "content": "d", "tokens": [6], "logprobs": [-3.0]},
        ]
        ids = run.rollouts.log_many([talk, talk])
        with pytest.warns(rollbook.errors.RollbookWarning, match="has 4 numbers for the 6 tokens"):
            run.rollouts.trained(ids, trainer_logprobs=[[-1.5, -2.0, 0, 0, 0, -1.0], [-1.5, -2.0, 0, 0]])
    with client_of(tmp_path) as client:
        (row,) = client.post("/api/runs", json={"sections": False}).json()["rows"]
        found, odd = (client.get(f"/api/runs/{row['run']}/rollouts/{name}").json() for name in ids)
    assert [turn["tokens"] and turn["tokens"]["columns"]["gap"] for turn in found["turns"]] == [
        [-0.5, 0.0],
        None,
        [2.0],
    ]
    assert found["odd_lists"] == []
    assert [turn["tokens"]["columns"].get("gap") for turn in odd["turns"] if turn["tokens"]] == [[-0.5, 0.0], None]
    assert len(odd["odd_lists"]) == 1
    assert "4 numbers (trainer) for the 6 tokens" in odd["odd_lists"][0]


def test_prompts_are_listed_by_how_often_they_are_solved(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        for step in range(10):
            long = f"system: {'Be careful. ' * 99}\nuser: late"
            named = {"prompts": [HOSTILE, HOSTILE, long, "easy"], "completions": ["a"] * 4, "gradient_step": step}
            run.rollouts.log_many(**named, reward=[0.0, 0.0, float(step == 9), 1.0], group=["g", "g", "h", "i"])
        run.rollouts.log_many(prompts=["only tested"], completions=["a"], reward=[1.0], mode="eval")
    with client_of(tmp_path) as client:
        place = f"/api/runs/{run.id}/prompts"
        found = client.post(place, json={}).json()
        never, always = (client.post(place, json={"only": only}).json() for only in ("never", "always"))
        second = client.post(place, json={"offset": 1, "limit": 1, "order_by": "solved"}).json()
        assert client.post(place, json={"offset": 9}).json()["rows"] == []
        for bad in ({"only": "often"}, {"order_by": "solvd"}):
            assert client.post(place, json=bad).status_code == 400
    assert [found[name] for name in ("total", "never", "sometimes", "always", "above")] == [3, 1, 1, 1, 0.5]
    assert (found["x"], found["recent_from"]) == ("gradient_step", 8)
    assert [row["prompt"] for row in found["rows"]] == [HOSTILE, "late", "easy"]
    assert (found["begin"], found["width"]) == (0, 1)
    assert [(row["tried"], row["solved_in"]) for row in found["rows"]] == [
        ([2] * 10, [0] * 10),
        ([1] * 10, [0] * 9 + [1]),
        ([1] * 10, [1] * 10),
    ]
    assert [(row["rollouts"], row["groups"], row["solved"], row["best"]) for row in found["rows"]] == [
        (20, 1, 0, 0.0),
        (10, 1, 1, 1.0),
        (10, 1, 10, 1.0),
    ]
    assert (never["matched"], never["rows"]) == (1, found["rows"][:1])
    assert (always["matched"], always["rows"]) == (1, found["rows"][2:])
    assert second["rows"] == found["rows"][1:2]


def test_two_runs_are_compared_on_the_prompts_that_both_have(tmp_path: Path) -> None:
    ids = []
    for rewards in ([0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]):
        with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
            more = ["alone"] if not ids else []
            prompts = [HOSTILE, HOSTILE, "same", "same", *more]
            run.rollouts.log_many(
                prompts=prompts, completions=["a"] * len(prompts), reward=[*rewards, 0.0][: len(prompts)]
            )
            run.rollouts.log_many(prompts=["same"], completions=["a"], reward=[9.0], mode="eval")
        ids.append(run.id)
    with client_of(tmp_path) as client:
        found = client.get(f"/api/runs/{ids[0]}/shared-prompts?other={ids[1]}").json()
        assert client.get(f"/api/runs/{ids[0]}/shared-prompts?other=nobody").status_code == 404
        few = client.get(f"/api/runs/{ids[0]}/shared-prompts?other={ids[1]}&limit=1").json()
    assert (found["shared"], found["only"], found["better"], found["worse"]) == (2, [1, 0], 1, 0)
    assert found["mean"] == [0.25, 0.5]
    assert [(row["n"], row["mean"]) for row in found["rows"]] == [([2, 2], [0.0, 0.0]), ([2, 2], [0.5, 1.0])]
    assert len(few["rows"]) == 1
