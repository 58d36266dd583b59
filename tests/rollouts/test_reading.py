"""Rollouts as they are read: with the newest fate of each, and each question one line."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from rollbook.book.rollout_curves import CURVES
from rollbook.cli.app import app
from rollbook.errors import BadInput, UnknownKey

ZERO, USED, LATE, FAILED = "zero std", "used", "late", "failed"


@pytest.fixture(scope="module", params=["live", "sealed"])
def book(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Three groups of two of one task over three versions, one of another task; an agent whose tool breaks."""
    root = tmp_path_factory.mktemp("rollouts")
    run = rollbook.init("p", "r", dir=root, sinks=[], keeper="import", rules=(), strict=True)
    for version, (rewards, words) in enumerate([((0, 0), "no no"), ((0, 1), "no yes"), ((1, 1), "yes yes")]):
        ids = run.rollouts.log_many(
            prompts=["2 + 2?"] * 2,
            completions=words.split(),
            tokens=[np.array([5, 6], np.int32)] * 2,
            logprobs=[np.array([-1, -1], np.float32)] * 2,
            rewards={"exact": list(rewards)},
            group=f"sum-{version}",
            policy_version=version,
        )
        if rewards[0] == rewards[1]:
            run.rollouts.dropped(ids, reason="zero_std", gradient_step=10 + version)
        else:
            late = {"trained_version": 4, "clipped": [0.0, 0.5], "gap_mean": [0.1, 0.3], "gap_max": [0.2, 2.0]}
            run.rollouts.trained(ids, advantage=[0.9, 0.9], gradient_step=11, trained_version=3)
            lists = [np.array([-1, -1.25], np.float32), np.array([-3, -1], np.float32)]
            run.rollouts.trained(ids, advantage=[-1.0, 1.0], gradient_step=12, trainer_logprobs=lists, **late)
    for error in (None, "no module"):
        with run.rollouts.begin(task="plot it", group="plots", policy_version=3) as rollout:
            rollout.turn("assistant", "run this", seconds=2.0)
            rollout.turn("tool", "out", name="python", error=error, seconds=1.0)
            rollout.stop(seconds={"queue": 0.5}, status="failed" if error else None)
    if request.param == "sealed":
        run.finish()
    yield run.book
    run.finish()


def test_the_newest_fate_stands_in_the_row_and_all_are_kept(book: Any) -> None:
    table = book.rollouts("used", "reward")
    assert table["advantage"].to_pylist() == [-1.0, 1.0]
    assert table["gradient_step"].to_pylist() == [12, 12]
    assert table["staleness"].to_pylist() == [3, 3]
    assert table["policy_version"].to_pylist() == [1, 1]
    found = book.rollout(table["rollout_id"][0].as_py())
    assert found.fates()["advantage"].to_pylist() == [0.9, -1.0]
    assert (found["item"], found.task()["prompt"]) == ("no", "2 + 2?")
    assert repr(found).startswith(f"<Rollout {found.id}: completed, reward 0.0, used")
    tokens = found.tokens().to_pylist()
    assert [(row["turn"], row["sampler_logprobs"], row["trainer_logprobs"]) for row in tokens] == [
        (0, [-1.0, -1.0], None),
        (None, None, [-1.0, -1.25]),
    ]
    with pytest.raises(UnknownKey, match="has no rollout 'nobody'"):
        book.rollout("nobody")


def test_rollouts_are_chosen_ordered_and_counted_by_what_became_of_them(book: Any) -> None:
    assert book.rollouts().num_rows == 8
    assert book.rollouts("staleness > 2 and used", "advantage desc", 1)["item"].to_pylist() == ["yes"]
    assert book.rollouts("used is null")["group"].to_pylist() == ["plots", "plots"]
    assert book.rollouts("reason = 'zero_std'", "policy_version", limit=3)["item"].to_pylist() == ["no", "no", "yes"]
    with pytest.raises(BadInput):
        book.rollouts("reward > 1 order by reward")


def test_lists_of_the_trainer_of_another_length_are_problems_of_the_book(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        ids = run.rollouts.log_many(prompts=["p"] * 3, completions=["a b"] * 3, tokens=[[5, 6]] * 3, rewards=[0, 1, 1])
        assert run.book.problems() == []
        lists = [np.array([-1.0] * k, np.float32) for k in (2, 3, 5)]
        run.rollouts.trained(ids, trainer_logprobs=lists, gradient_step=1)
        live = run.book.problems()
    sealed = rollbook.open(tmp_path).one()
    said = f"trainer_logprobs of another length than their tokens for 2, such as 3 numbers for the 2 tokens of {ids[1]}"
    for problems in (live, sealed.problems(), sealed.problems(deep=False)):
        assert [said in problem for problem in problems] == [True]
    assert said in " ".join(CliRunner().invoke(app, ["show", "last", "--dir", str(tmp_path)]).output.split())


def test_samples_and_rollouts_are_read_together(book: Any, tmp_path: Path) -> None:
    with rollbook.init("p", "both", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        run.log_samples(["C", "CC"], rewards={"valid": [0.5, 1.0]}, group=[0, 0], source="live", policy_version=1)
        run.rollouts.log_many(prompts=["2?"], completions=["two"], rewards={"valid": [0.75]}, policy_version=2)
        live = run.book.completions(order_by="reward desc").to_pylist()
    sealed = rollbook.open(tmp_path).one()
    for rows in (
        live,
        sealed.completions(order_by="reward desc").to_pylist(),
        sealed.completions(None, "reward desc", 9).to_pylist(),
    ):
        assert [(row["kind"], row["item"], row["reward"], row["prompt"], row["source"]) for row in rows] == [
            ("sample", "CC", 1.0, None, "live"),
            ("rollout", "two", 0.75, "2?", None),
            ("sample", "C", 0.5, None, "live"),
        ]
    assert {row["id"] for row in live} == {
        *sealed.samples()["sample_id"].to_pylist(),
        *sealed.rollouts()["rollout_id"].to_pylist(),
    }
    assert sealed.completions("kind = 'rollout' and used is null", limit=1)["item"].to_pylist() == ["two"]
    asked = 'select kind, count(*), avg("rewards/valid") from completions group by 1 order by 1'
    assert sealed.sql(asked).fetchall() == [("rollout", 1, 0.75), ("sample", 2, 0.75)]
    assert rollbook.open(tmp_path).sql(asked).fetchall() == [("rollout", 1, 0.75), ("sample", 2, 0.75)]
    only_rollouts = book.completions("used", "reward desc", 1)
    assert (only_rollouts["item"].to_pylist(), only_rollouts["prompt"].to_pylist()) == (["yes"], ["2 + 2?"])


CONDITIONS = [
    "gradient_step between 11 and 12 and contains(item, 'yes')",
    "staleness >= 0 and used and item = 'no'",
    "contains(item, 'yes') and (reward > 0 or contains(item, 'no'))",
    "policy_version >= 1 and (contains(item, 'yes') or reward = 0)",
    "contains(item, 'yes')",
    "item like 'n%' and rollout_id in (select rollout_id from rollouts where reward = 0)",
    "policy_version > 0 and ITEM ilike 'YES' -- said",
]


@pytest.mark.parametrize(
    ("where", "scanned"),
    some_of(
        itertools.product(CONDITIONS, [False, True]),
        lambda case: CONDITIONS.index(case[0]) in ((1,), (2, 6))[case[1]],
    ),
)
def test_a_search_in_the_answers_finds_what_a_query_of_all_rows_finds(
    where: str, scanned: bool, book: Any, tuned: Callable[..., None]
) -> None:
    tuned(scan_rows=1 if scanned else 10**6)
    fresh = rollbook.open(book.path).one()
    asked = "select rollout_id from rollouts_now where {} order by rollout_id"
    expected = [row[0] for row in fresh.sql(asked.format(f"({where}\n)")).fetchall()]
    assert expected
    for limit in (None, 100):
        assert fresh.rollouts(where, "rollout_id", limit)["rollout_id"].to_pylist() == expected
    assert fresh.rollouts(where, "rollout_id desc", 1)["rollout_id"].to_pylist() == expected[-1:]
    one = fresh.rollout(expected[0])
    alike = {row["rollout_id"] for row in fresh.rollouts().to_pylist() if row["task_id"] == one["task_id"]}
    assert {row["rollout_id"] for row in one.history().to_pylist()} == alike


def test_this_prompt_over_training(book: Any) -> None:
    history = book.rollout(book.rollouts("item = 'no'", limit=1)["rollout_id"][0].as_py()).history()
    assert history["policy_version"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert history["reward"].to_pylist() == [0, 0, 0, 1, 1, 1]
    group = book.rollout(history["rollout_id"][2].as_py()).group()
    assert group["group"].to_pylist() == ["sum-1"] * 2


QUESTIONS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "which groups taught nothing, and why": (
        """select reason, count(distinct "group") from rollouts_now where gradient_step between 10 and 12
           and not used group by 1""",
        [("zero_std", 2)],
    ),
    "how stale was what I trained on; does it hurt": (
        "select staleness, avg(clipped), avg(gap_mean) from rollouts_now where used group by 1",
        [(3, 0.25, 0.2)],
    ),
    "where do sampler and trainer disagree": (
        "select item, gap_max from rollouts_now where gap_max is not null order by gap_max desc",
        [("yes", 2.0), ("no", 0.2)],
    ),
    "and at which tokens": (
        """select s.ids[i] as token, abs(t.trainer_logprobs[i] - s.sampler_logprobs[i]) as gap
           from tokens s join tokens t using (rollout_id), range(1, 3) as places(i)
           where s.ids is not null and t.trainer_logprobs is not null order by gap desc limit 2""",
        [(5, 2.0), (6, 0.25)],
    ),
    "which tool breaks agents": (
        """select name, avg((error is not null)::int), avg(seconds) from turns where role = 'tool' group by 1""",
        [("python", 0.5, 1.0)],
    ),
    "where did the time go": (
        """select sum("seconds/model"), sum("seconds/tools"), sum("seconds/queue") from rollouts""",
        [(4.0, 2.0, 1.0)],
    ),
    "is the reward hacked": (
        """select word, count(*) filter (advantage > 0) as high, count(*) filter (advantage < 0) as low
           from (select advantage, unnest(string_split(item, ' ')) as word from rollouts_now where used)
           group by 1 order by high desc""",
        [("yes", 1, 0), ("no", 0, 1)],
    ),
    "what was lost": (
        "select status, count(*) from rollouts anti join fates using (rollout_id) group by 1 order by 1",
        [("completed", 1), ("failed", 1)],
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_each_question_is_one_query(question: str, book: Any) -> None:
    query, answer = QUESTIONS[question]
    assert [tuple(row) for row in book.sql(query).fetchall()] == [
        tuple(pytest.approx(cell) if isinstance(cell, float) else cell for cell in row) for row in answer
    ]


def test_curves_have_a_row_for_each_update_no_matter_who_reported_its_facts(book: Any) -> None:
    """The rollouts of a group that was used twice count once, at its first update; uses count each."""
    rows = {row["gradient_step"]: row for row in book.rollout_curves().to_pylist()}
    assert set(rows) == {10, 11, 12}
    wanted = {
        "rollout/n": (2, 2, 4), "rollout/reward": (0, 0.5, 1), "rollout/exact": (0, 0.5, 1),
        "rollout/length": (2, 2, 2), "rollout/truncated": (0, 0, 0), "rollout/used": (0, 1, 0),
        "rollout/waiting": (0, 0, 2), "group/solved_all": (0, 0, 0.5), "group/solved_none": (1, 0, 0.5),
        "group/zero_std": (1, 0, 1), "group/used": (0, 1, 0), "tokens/sampled": (4, 4, 4),
        "tokens/wasted": (4, 0, 4), "policy/staleness_mean": (None, 2, 3),
    }  # fmt: skip
    assert {name: tuple(rows[step][name] for step in (10, 11, 12)) for name in wanted} == wanted
    by_version = {row["policy_version"]: row for row in book.rollout_curves("policy_version").to_pylist()}
    assert set(by_version) == {0, 1, 2, 3}
    assert [by_version[1][name] for name in ("policy/staleness_max", "policy/gap_max", "policy/clipped")] == [
        3,
        2.0,
        0.25,
    ]
    tools = by_version[3]
    assert [tools[name] for name in ("rollout/failed", "rollout/waiting", "time/tools_seconds")] == [0.5, 2, 2.0]
    assert book.rollout_curves(mode="eval").num_rows == 0
    assert book.rollout_curves(solved="reward > 5")["group/solved_none"].to_pylist() == [1.0, 1.0, 1.0]
    with pytest.raises(BadInput, match="policy_version"):
        book.rollout_curves("episode")


@pytest.mark.parametrize("kilobytes", some_of([0, 1024, 8192], 1))
def test_curves_are_the_same_with_little_memory(book: Any, tuned: Callable[..., None], kilobytes: int) -> None:
    enough = book.rollout_curves()
    tuned(curve_bytes=kilobytes << 10, scan_rows=1)
    assert book.rollout_curves().equals(enough)


def test_a_book_that_was_asked_is_freed_with_its_last_reference(book: Any, tuned: Callable[..., None]) -> None:
    tuned(scan_rows=1)
    other = rollbook.open(book.path).one()
    assert other.sql("select count(*) as n from fates").filter("n > 0").fetchall()
    alive = weakref.ref(other)
    del other
    gc.collect()
    assert alive() is None


def test_prompts_are_counted_in_all_and_in_the_last_fifth_of_training(book: Any) -> None:
    """By hand: by Wilson, 3 of 6 is 0.1876 to 0.8124, and 2 of 2 is 0.3424 to 1."""
    never, sums = book.rollout_prompts().to_pylist()
    counted = ("prompt", "rollouts", "groups", "solved", "rate", "first", "last", "best")
    assert [never[name] for name in counted] == ["plot it", 2, 1, 0, 0.0, None, None, None]
    assert [sums[name] for name in counted] == ["2 + 2?", 6, 3, 3, 0.5, 10, 12, 1.0]
    assert [sums[name] for name in ("low", "high")] == pytest.approx([0.1876, 0.8124], abs=1e-4)
    assert [sums[f"recent_{name}"] for name in ("from", "rollouts", "solved", "rate", "high")] == [12, 2, 2, 1.0, 1.0]
    assert sums["recent_low"] == pytest.approx(0.3424, abs=1e-4)
    assert [never[f"recent_{name}"] for name in ("rollouts", "rate", "low", "high")] == [0, None, None, None]
    assert book.rollout(never["rollout_id"])["group"] == "plots"
    by_version = book.rollout_prompts("policy_version", solved="reward >= 0").to_pylist()
    assert [(row["rollouts"], row["solved"], row["first"], row["last"]) for row in by_version] == [
        (2, 0, 3, 3),
        (6, 6, 0, 2),
    ]
    assert book.rollout_prompts(mode="eval").num_rows == 0
    with pytest.raises(BadInput, match="policy_version"):
        book.rollout_prompts("episode")


def test_many_runs_answer_together_and_no_fate_goes_to_another_run(book: Any) -> None:
    runs = rollbook.open(Path(book.path).parent.parent)
    assert runs.sql("select run, count(*), count(used) from rollouts_now group by 1").fetchall() == [(book.id, 8, 6)]


def test_a_run_without_rollouts_has_none_and_every_column(tmp_path: Path) -> None:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=())
    assert run.book.rollouts().num_rows == 0
    assert {"rollout_id", "reward", "used", "reason", "staleness", "gradient_step", "policy_version"} <= set(
        run.book.rollouts("staleness > 4 and used", "advantage").column_names
    )
    run.log_samples(["a"], reward=[1.0])
    assert run.book.samples()["item"].to_pylist() == ["a"]
    assert run.book.rollouts().num_rows == 0
    assert run.book.rollout_curves().num_rows == 0
    assert run.book.rollout_prompts().num_rows == 0
    assert set(CURVES) < set(run.book.rollout_curves("policy_version").column_names)
    run.finish()


def test_fates_that_a_rewind_abandoned_do_not_count(tmp_path: Path) -> None:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=())
    run.log({"loss": 1.0}, env_step=1)
    (name,) = run.rollouts.log_many(completions=["a"])
    run.log({"loss": 1.0}, env_step=2)
    run.rollouts.trained([name])
    assert run.book.rollout(name)["used"] is True
    run.rewind(env_step=1)
    assert run.book.rollouts("used").num_rows == 0
    assert run.book.rollout(name)["used"] is None
    run.finish()


def test_what_is_known_at_once_stands_beside_what_is_known_later(tmp_path: Path) -> None:
    """A column of a fate that the rollout brought itself is shown until a fate has another value."""
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=())
    ids = run.rollouts.log_many(completions=["a", "b"], advantage=[0.5, 0.25], staleness=[2, 3])
    run.rollouts.trained(ids[:1], advantage=[1.0])
    table = run.book.rollouts()
    assert table["advantage"].to_pylist() == [1.0, 0.25]
    assert table["staleness"].to_pylist() == [2, 3]
    run.finish()


def test_a_use_that_two_processes_report_counts_once(tmp_path: Path) -> None:
    """A trainer that was killed reports again what it may have reported; every row stays in the table."""
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=())
    ids = run.rollouts.log_many(completions=["a", "b"], reward=[0.0, 1.0], group="g", policy_version=0)
    run.rollouts.trained(ids, clipped=[0.5, 1.0], gradient_step=1, epoch=0)
    again = type(run.rollouts)(run.run)  # what another process has
    again.trained(ids[:1], clipped=[0.0], gradient_step=1, epoch=0)
    again.trained(ids[:1], clipped=[0.0], gradient_step=1, epoch=1)
    (row,) = run.book.rollout_curves().to_pylist()
    assert row["policy/clipped"] == pytest.approx(1 / 3)
    assert row["rollout/n"] == 2
    assert run.book.rollout(ids[0]).fates()["clipped"].to_pylist() == [0.5, 0.0, 0.0]
    run.finish()


def test_fates_that_cannot_be_right_are_problems_whichever_process_reported_them(tmp_path: Path) -> None:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=())
    ids = run.rollouts.log_many(completions=["a"] * 4, reward=[0.0] * 4, group="g", policy_version=5)
    trainer = type(run.rollouts)(run.run)  # what another process has
    trainer.trained(ids, trained_version=6, gradient_step=1, epoch=0)
    trainer.trained(ids, trained_version=6, gradient_step=1, epoch=1)
    trainer.dropped(ids)
    trainer.dropped(ids)  # of no update: not a use
    assert run.book.problems() == []
    run.rollouts.trained(ids[:2], trained_version=4, gradient_step=1, epoch=0)
    trainer.trained(["nobody-1"], gradient_step=1)
    problems = run.book.problems(deep=False)
    assert [
        sum(words in line for line in problems) for words in ("does not have: 1, such as of nobody-1", "epoch=")
    ] == [1, 1]
    assert any("fate: 2, such as of" in line for line in problems)
    assert any("older version" in line and "generated them: 2, such as" in line for line in problems)
    assert len(problems) == 3
    run.finish()
    shown = CliRunner().invoke(app, ["show", "last", "--dir", str(tmp_path)]).output
    assert shown.count("problem: rollouts: ") == 3
    assert "rollout_version" not in shown, "said twice, once as a count without words"
    assert "rollout_version" in rollbook.open(str(tmp_path)).one().info.drops
