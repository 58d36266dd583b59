"""Thirty questions about fixed runs: an agent finds each answer in at most three calls and 2,000 tokens altogether.

No model is asked. A question stands with the calls that a reader of the tools' descriptions would make, and with the
answer that has to be found in what they return.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.server.agents import BUDGET, AgentTools

Answers = list[dict[str, Any]]
Call = tuple[str, dict[str, Any]]
TOKEN = re.compile(r" ?[A-Za-z]{1,6}|\d{1,3}| ?[^\sA-Za-z\d]{1,2}|\s+")
"""What counts as a token: more of them than the vocabularies of models make, which have longer words and signs."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> AgentTools:
    """cartpole: ppo and dqn, 3 seeds each; dqn learns less, its seed 2 crashes, its seed 1 has NaN. sums: samples."""
    root = tmp_path_factory.mktemp("questions") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ROLLBOOK_RUN_ID", raising=False)
        for algo, slope in (("ppo", 5.0), ("dqn", 2.0)):
            for seed in range(3):
                try:
                    cartpole(root, algo, seed, slope)
                except RuntimeError:
                    pass
        with rollbook.init(
            "sums", "grpo", dir=root, sinks=[], keeper="import", config={"model": "tiny", "lr": 1e-6}
        ) as run:
            for step in range(4):
                run.log_samples(
                    [f"2+{step}=?", "1+1=?"], reward=[step / 4, 1.0], gradient_step=step, ids=[f"a{step}", "b"]
                )
                run.log({"update/kl": 0.01 * step}, gradient_step=step)
    return AgentTools(root)


def cartpole(root: Path, algo: str, seed: int, slope: float) -> None:
    config = {"algo": algo, "lr": 3e-4 if algo == "ppo" else 1e-3, "env": "CartPole-v1"}
    with rollbook.init(
        "cartpole", algo, seed=seed, dir=root, sinks=[], keeper="import", config=config, rules=()
    ) as run:
        for step in range(0, 1000, 10):
            with run.timer("collect" if step % 20 else "update"):
                score = slope * step / 10 + seed + (500.0 if (algo, seed, step) == ("ppo", 0, 770) else 0.0)
                loss = math.nan if (algo, seed, step) == ("dqn", 1, 500) else 1.0
                run.log({"test/return": score, "update/loss": loss}, env_step=step)
            if step % 250 == 0:
                run.log_episode(return_=score, length=step + 1, env_step=step)
                run.save_checkpoint({"step": step}, score=score)
            if (algo, seed, step) == ("dqn", 1, 500):
                row = {
                    "rule": "non_finite",
                    "level": "fail",
                    "message": "update/loss became nan",
                    "evidence": "{}",
                    "source": "",
                    "key": "update/loss",
                }
                run.record("alerts", row, env_step=step)
            if (algo, seed, step) == ("dqn", 2, 600):
                raise RuntimeError("the simulator went away")


def cells(name: str, row: int = 0, call: int = -1) -> Callable[[Answers], Any]:
    return lambda answers: answers[call]["rows"][row][name]


def sql(run: str, query: str) -> Call:
    return ("sql", {"run": run, "query": query})


def ids(answers: Answers) -> set[tuple[str, int]]:
    return {(row["name"], row["seed"]) for row in answers[-1]["rows"]}


COMPARED: Call = ("compare", {"metric": "test/return", "by": "config.algo", "where": "project = 'cartpole'"})
QUESTIONS: list[tuple[str, list[Call], Callable[[Answers], Any], Any]] = [
    ("How many runs are there?", [("probe", {})], lambda a: a[0]["runs"], 7),
    (
        "Which projects are there?",
        [("probe", {})],
        lambda a: {r["project"] for r in a[0]["rows"]},
        {"cartpole", "sums"},
    ),
    ("Has any run crashed?", [("runs", {"where": "status = 'crashed'"})], ids, {("dqn", 2)}),
    (
        "Which learning rate did PPO use?",
        [("runs", {"where": "name = 'ppo'", "columns": ["config.lr"]})],
        cells("config.lr"),
        3e-4,
    ),
    (
        "Which runs have a learning rate above 5e-4?",
        [("runs", {"where": "config.lr > 5e-4"})],
        ids,
        {("dqn", 0), ("dqn", 1), ("dqn", 2)},
    ),
    (
        "What is the last return of PPO with seed 2?",
        [("runs", {"where": "name = 'ppo' and seed = 2", "metrics": ["test/return"]})],
        cells("test/return"),
        497.0,
    ),
    (
        "What was the best return of all?",
        [("runs", {"where": "project = 'cartpole'", "metrics": ["test/return=max"]})],
        lambda a: max(r["test/return"] for r in a[0]["rows"]),
        885.0,
    ),
    (
        "Which run had it?",
        [("runs", {"where": "project = 'cartpole'", "metrics": ["test/return=max"]})],
        lambda a: max(a[0]["rows"], key=lambda r: r["test/return"])["seed"],
        0,
    ),
    (
        "At which step was it?",
        [
            ("runs", {"where": "name = 'ppo' and seed = 0"}),
            ("sql", {"run": "{id}", "query": 'select env_step from metrics order by "test/return" desc limit 1'}),
        ],
        cells("env_step"),
        770,
    ),
    ("Is PPO better than DQN?", [COMPARED], lambda a: "ppo" in a[0]["rows"][0]["sentence"].split(":")[0], True),
    (
        "How many seeds of each count, without the crashed one?",
        [COMPARED],
        lambda a: {r["group"]: r["n"] for r in a[0]["rows"] if r.get("group")},
        {"ppo": 3, "dqn": 2},
    ),
    (
        "How many seeds of each are needed at least?",
        [COMPARED],
        lambda a: a[0]["rows"][-1]["enough"],
        4,
    ),
    ("Did a health rule find anything?", [("alerts", {})], lambda a: [r["rule"] for r in a[0]["rows"]], ["non_finite"]),
    (
        "Which key was not finite, and when?",
        [("alerts", {"where": "project = 'cartpole'"})],
        lambda a: (a[0]["rows"][0]["key"], a[0]["rows"][0]["clocks"]["env_step"]),
        ("update/loss", 500),
    ),
    (
        "What else was logged at that point?",
        [("alerts", {}), ("cause", {"run": "{run}", "x": "env_step", "at": 500, "everything": True})],
        lambda a: (
            {r.get("table") for r in a[-1]["rows"]} >= {"metrics", "episodes"}
            and a[-1]["checkpoint_before"] is not None
        ),
        True,
    ),
    (
        "How many episodes did a run record?",
        [("runs", {"where": "name = 'ppo' and seed = 1"}), ("probe", {"of": "{id}"})],
        lambda a: a[-1]["tables"]["episodes"],
        4,
    ),
    (
        "How long was its longest episode?",
        [("runs", {"where": "name = 'ppo' and seed = 1"}), sql("{id}", "select max(length) as longest from episodes")],
        cells("longest"),
        751,
    ),
    (
        "Which keys does the newest CartPole run have?",
        [("probe", {"of": "cartpole"})],
        lambda a: {r["key"] for r in a[0]["rows"] if "key" in r} >= {"test/return", "update/loss"},
        True,
    ),
    (
        "How does the return develop in five points?",
        [
            ("runs", {"where": "name = 'ppo' and seed = 1"}),
            ("series", {"runs": "{id}", "keys": "test/return", "points": 5}),
        ],
        lambda a: len(a[-1]["rows"]) <= 6 and a[-1]["rows"][-1][1] > a[-1]["rows"][1][1],
        True,
    ),
    (
        "Where does the time go?",
        [
            ("runs", {"where": "name = 'ppo' and seed = 1"}),
            sql("{id}", "select name, count(*) as n from timings group by 1 order by 1"),
        ],
        lambda a: [(r["name"], r["n"]) for r in a[-1]["rows"]],
        [("collect", 50), ("update", 50)],
    ),
    (
        "Which checkpoint is the best?",
        [
            ("runs", {"where": "name = 'ppo' and seed = 1"}),
            sql("{id}", "select env_step from checkpoints order by score desc limit 1"),
        ],
        cells("env_step"),
        750,
    ),
    (
        "How many checkpoints are there?",
        [("runs", {"where": "name = 'ppo' and seed = 1"}), sql("{id}", "select count(*) as n from checkpoints")],
        cells("n"),
        4,
    ),
    (
        "Which runs finished?",
        [("runs", {"where": "status = 'finished' and project = 'cartpole'"})],
        lambda a: len(a[0]["rows"]),
        5,
    ),
    (
        "Which sample has the lowest reward?",
        [("samples", {"run": "grpo", "order_by": "reward", "limit": 1})],
        cells("item"),
        "2+0=?",
    ),
    ("How many different samples were seen?", [("samples", {"run": "grpo", "unique": True})], lambda a: a[0]["of"], 5),
    (
        "What is the mean reward of the samples?",
        [sql("grpo", "select avg(reward) as mean from samples")],
        cells("mean"),
        pytest.approx((0 + 1 + 2 + 3) / 4 / 8 + 0.5),
    ),
    (
        "Which model was trained?",
        [("runs", {"where": "project = 'sums'", "columns": ["config.model"]})],
        cells("config.model"),
        "tiny",
    ),
    (
        "How large was the KL at the end?",
        [("runs", {"where": "project = 'sums'", "metrics": ["update/kl"]})],
        cells("update/kl"),
        pytest.approx(0.03),
    ),
    (
        "Has the return passed 400 already?",
        [
            ("runs", {"where": "name = 'ppo' and seed = 0"}),
            ("wait", {"run": "{id}", "until": 'last("test/return") > 400', "timeout": 0}),
        ],
        lambda a: a[-1]["outcome"],
        "met",
    ),
    (
        "At which step did the crashed run end?",
        [("runs", {"where": "status = 'crashed'"}), sql("{id}", "select max(env_step) as step from metrics")],
        cells("step"),
        600,
    ),
]


def test_there_are_thirty() -> None:
    assert len(QUESTIONS) == len({question for question, *_ in QUESTIONS}) == 30


@pytest.mark.parametrize(("question", "calls", "answer", "expected"), QUESTIONS, ids=[q for q, *_ in QUESTIONS])
def test_an_answer_takes_at_most_three_calls(
    question: str, calls: list[Call], answer: Callable[[Answers], Any], expected: object, tools: AgentTools
) -> None:
    """{id} and {run} of a later call come from the first row of the one before."""
    assert len(calls) <= 3
    by_name = {tool.__name__: tool for tool in tools.tools()}
    found: Answers = []
    tokens = 0
    for name, arguments in calls:
        first = found[-1]["rows"][0] if found else {}
        text = by_name[name](**{k: first[v[1:-1]] if v in ("{id}", "{run}") else v for k, v in arguments.items()})
        assert len(text) <= BUDGET
        tokens += len(TOKEN.findall(text))
        found.append(json.loads(text))
    assert tokens <= 2_000
    assert answer(found) == expected
