"""What is counted of rollouts: whole groups, reasons by rollout, those that wait, rewards that are no numbers, and
which of them solved their task. Every number here is counted by hand."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from cases import some_of
from page_server import client_of
from rollbook.cli.app import app
from rollbook.errors import BadInput
from rollbook.schema.solved import solved_above

Recorded = Callable[[], Any]


def _curve(book: Any, *names: str, x: str = "gradient_step", **more: Any) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in (x, *names)) for row in book.rollout_curves(x, **more).to_pylist()]


@pytest.mark.parametrize(("version", "batch"), some_of([(0, None), (None, "b"), (0, "b"), (None, None)], 2))
@pytest.mark.parametrize(("per_update", "iterations"), some_of([(1, 1), (2, 3), (8, 2), (2, 1), (4, 1), (1, 2)], 3))
def test_a_group_is_whole_at_every_update_that_trains_on_a_part_of_it(
    run: Any, version: int | None, batch: str | None, per_update: int, iterations: int
) -> None:
    """Two groups of four: half of the first is solved, the second never. No update sees a group of one reward less."""
    ids = run.rollouts.log_many(
        completions=list("abcdefgh"), reward=[0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], group=["g"] * 4 + ["h"] * 4,
        **({} if version is None else {"policy_version": version}), **({} if batch is None else {"batch": batch}),
    )  # fmt: skip
    order = [0, 4, 1, 5, 2, 6, 3, 7]  # as if shuffled: each update holds parts of both
    for step, (epoch, start) in enumerate(itertools.product(range(iterations), range(0, 8, per_update)), 1):
        chosen = [ids[place] for place in order[start : start + per_update]]
        run.rollouts.trained(chosen, advantage=1.0, gradient_step=step, epoch=epoch)
    found = {row[0]: row[1:] for row in _curve(
        run.book, "rollout/n", "group/n", "group/zero_std", "group/solved_none", "group/solved_all", "group/used"
    )}  # fmt: skip
    wanted = {}
    for update, start in enumerate(range(0, 8, per_update), 1):
        groups = {place < 4 for place in order[start : start + per_update]}
        share = sum(not is_mixed for is_mixed in groups) / len(groups)
        wanted[update] = (per_update, len(groups), share, share, 0.0, 1.0)
    assert {update: found[update] for update in wanted} == wanted
    assert sum(row[0] or 0 for row in found.values()) == 8


@pytest.mark.parametrize("versions", [True, False], ids=["with versions", "without"])
def test_a_name_that_comes_again_in_a_later_update_is_another_group(run: Any, versions: bool) -> None:
    """The loop that everybody writes: group=str(number of the prompt). First all fail, then all succeed."""
    for step in (1, 2):
        more = {"policy_version": step} if versions else {}
        ids = run.rollouts.log_many(completions=["a", "b"], reward=float(step - 1), group="0", **more)
        run.rollouts.trained(ids, gradient_step=step)
    wanted = [(1, 1, 1.0, 1.0, 0.0), (2, 1, 1.0, 0.0, 1.0)]
    assert _curve(run.book, "group/n", "group/zero_std", "group/solved_none", "group/solved_all") == wanted


def test_a_group_that_several_versions_began_is_whole_along_both_axes(run: Any) -> None:
    ids = run.rollouts.log_many(
        completions=list("abcd"), reward=[0.0, 0.0, 1.0, 1.0], group="g", policy_version=[3, 3, 4, 4]
    )
    run.rollouts.trained(ids, gradient_step=10)
    assert _curve(run.book, "group/n", "group/zero_std") == [(10, 1, 0.0)]
    assert _curve(run.book, "group/n", "group/zero_std", x="policy_version") == [(3, 1, 0.0), (4, 1, 0.0)]


@pytest.mark.parametrize(
    ("fates", "answer"),
    [
        ({"stale": 7, "error": 1}, ("stale", 8)),
        ({"error": 7, "stale": 1}, ("error", 8)),
        ({"error": 1, None: 7}, None),
        ({"stale": 7, None: 1}, ("stale", 7)),
        ({"stale": 3, "error": 2, None: 3}, ("stale", 5)),
        ({"stale": 7, "used": 1}, None),
        ({"zero_std": 8}, ("zero_std", 8)),
        ({None: 8}, None),
    ],
)  # fmt: skip
def test_a_group_taught_nothing_for_the_reason_of_most_of_its_rollouts(
    run: Any, fates: dict[str | None, int], answer: tuple[str, int] | None
) -> None:
    names = [name for name, n in fates.items() for _ in range(n)]
    ids = run.rollouts.log_many(completions=["x"] * len(names), group="g", policy_version=1)
    for name in dict.fromkeys(names):
        own = [rollout for rollout, one in zip(ids, names, strict=True) if one == name]
        if name in ("used", "zero_std"):
            run.rollouts.trained(own, advantage=1.0, gradient_step=1, **({} if name == "used" else {"reason": name}))
        elif name is not None:
            run.rollouts.dropped(own, reason=name, gradient_step=1)
    found = [(row["reason"], row["rollouts"]) for row in run.book.rollout_answer("groups").to_pylist()]
    assert found == ([] if answer is None else [answer])


def test_rollouts_without_a_fate_stay_on_the_curves(run: Any) -> None:
    """Lost ones stand where their version was first handled; those of the newest version at the last update."""
    for version in (0, 1):
        ids = run.rollouts.log_many(completions=list("abcd"), reward=0.0, group=f"{version}", policy_version=version)
        run.rollouts.trained(ids[:2], gradient_step=2 * version + 1)
        run.rollouts.trained(ids[2:3], gradient_step=2 * version + 2)
    run.rollouts.log_many(completions=["e"], reward=0.0, policy_version=2, status="failed")
    wanted = [(1, 3, 1, 0.0), (2, 1, 0, 0.0), (3, 3, 1, 0.0), (4, 2, 1, 0.5)]
    assert _curve(run.book, "rollout/n", "rollout/waiting", "rollout/failed") == wanted


@pytest.mark.parametrize("version", [7, None])
def test_before_the_first_update_all_rollouts_wait_in_one_row(run: Any, version: int | None) -> None:
    run.rollouts.log_many(
        completions=["a", "b"], reward=1.0, **({} if version is None else {"policy_version": version})
    )
    assert _curve(run.book, "rollout/n", "rollout/waiting") == [(None, 2, 2)]


@pytest.mark.parametrize("odd", some_of([math.nan, -math.inf, math.inf], 2))
def test_rewards_that_are_no_numbers_are_left_out_and_counted(run: Any, odd: float) -> None:
    rewards = [0.0, 1.0, odd, 1.0]
    ids = run.rollouts.log_many(
        prompts=["a"] * 4, completions=list("abcd"), rewards={"exact": rewards}, group="g", policy_version=0
    )
    run.rollouts.trained(ids, gradient_step=1, trained_version=1)
    book = run.book
    assert _curve(book, "rollout/n", "rollout/reward", "rollout/exact", "rollout/not_finite", "group/solved_none") == [
        (1, 4, pytest.approx(2 / 3), pytest.approx(2 / 3), 1, 0.0)
    ]
    (prompt,) = book.rollout_prompts().to_pylist()
    assert (prompt["solved"], prompt["rollouts"], prompt["best"]) == (2, 4, 1.0)
    for question in ("fates", "staleness"):
        assert book.rollout_answer(question)["reward"].to_pylist() == pytest.approx([2 / 3])
    history = book.rollout_answer("history", rollout_id=ids[0]).to_pylist()
    assert [(row["reward"], row["best"]) for row in history] == [(pytest.approx(2 / 3), 1.0)]
    kept = book.rollouts(order_by="rollout_id")["reward"].to_pylist()
    assert kept == pytest.approx(rewards, nan_ok=True)
    assert any("NaN or infinite: 1" in sentence and ids[2] in sentence for sentence in book.problems())


REWARDS: dict[str, tuple[list[float], float]] = {
    "two values": ([0.0, 1.0], 0.5),
    "one of them rare": ([0.0] * 999 + [1.0], 0.5),
    "the other one rare": ([1.0] * 999 + [0.0], 0.5),
    "a penalty": ([0.0] * 30 + [1.0] * 6 + [-10.0], 0.5),
    "a penalty beside a rare success": ([0.0] * 995 + [1.0] * 2 + [-10.0], 0.5),
    "penalties": ([-10.0] * 4 + [0.0] * 80 + [1.0] * 16, 0.5),
    "a bonus": ([0.0] * 30 + [1.0] * 6 + [100.0], 0.5),
    "nothing else": ([1.0] * 5, 1.0),
    "odd ones": ([math.nan, math.inf, -math.inf, 0.0, 1.0], 0.5),
    "parts": ([0.0, 0.2, 1.0, 1.2] * 10, 0.6),
}


@pytest.mark.parametrize("case", REWARDS)
def test_one_reward_does_not_decide_which_others_are_solved(case: str, run: Any) -> None:
    rewards, above = REWARDS[case]
    run.rollouts.log_many(completions=["x"] * len(rewards), reward=rewards)
    assert run.book.solved_above() == above
    assert solved_above(random.Random(0).sample(rewards, len(rewards))) == above


def test_the_threshold_is_one_rule_in_python_and_in_sql(tmp_path: Path) -> None:
    chance = random.Random(7)
    kinds = [0.0, 1.0, 0.5, -10.0, math.nan, math.inf]
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        so_far: list[float] = []
        for n in (1, 1, 1, 2, 15, 1, 19, 60, 101):
            more = [chance.choice([*kinds, chance.random()]) for _ in range(n)]
            run.rollouts.log_many(completions=["x"] * n, reward=more)
            so_far += more
            assert run.book.solved_above() == solved_above(so_far)


def test_evaluations_of_another_scale_do_not_decide_which_rollouts_of_training_are_solved(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with rollbook.init("p", name, dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
            ids = run.rollouts.log_many(
                prompts=["q"] * 20, completions=["x"] * 20, reward=[0.0] * 15 + [1.0] * 5, group="g"
            )
            run.rollouts.trained(ids, gradient_step=1)
            run.rollouts.log_many(prompts=["e"] * 40, completions=["x"] * 40, reward=[0.0, 100.0] * 20, mode="eval")
    runs = rollbook.open(tmp_path)
    for book in runs:
        assert book.solved_above() == 0.5
        assert [row["solved"] for row in book.rollout_prompts().to_pylist()] == [5]
        assert book.rollout_curves()["group/solved_none"].to_pylist() == [0.0]
    shared = runs.shared_prompts("one", "two")
    assert shared.above == (0.5, 0.5)
    assert [prompt.solved for prompt in shared.prompts] == [(5, 5)]


def test_of_evaluations_alone_they_say_what_is_solved(run: Any) -> None:
    run.rollouts.log_many(completions=["x"] * 4, reward=[0.0, 0.0, 100.0, 100.0], mode="eval")
    assert run.book.solved_above() == 50.0


def test_every_door_says_what_is_solved_and_lets_it_be_set(tmp_path: Path) -> None:
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="import", rules=()) as run:
        ids = run.rollouts.log_many(prompts=["q"] * 12, completions=["x"] * 12, reward=[0.0] * 11 + [-10.0], group="g")
        ids += run.rollouts.log_many(prompts=["p"] * 4, completions=["x"] * 4, reward=[0.0, 0.5, 1.0, 1.0], group="h")
        run.rollouts.trained(ids, gradient_step=1)
    book = rollbook.open(tmp_path).one()
    assert book.solved_above() == 0.5
    assert [row["solved"] for row in book.rollout_prompts().to_pylist()] == [0, 2]
    for solved in (0.25, "0.25", "reward > 0.25"):
        assert [row["solved"] for row in book.rollout_prompts(solved=solved).to_pylist()] == [0, 3], solved
        assert book.rollout_curves(solved=solved)["group/solved_none"].to_pylist() == [0.5]
    for wrong in (True, math.nan, "no such column > 1", ["reward"]):
        with pytest.raises(BadInput):
            book.rollout_prompts(solved=wrong)  # type: ignore[arg-type]
    said = CliRunner().invoke(app, ["rollouts", "r", "prompts", "--dir", str(tmp_path)])
    assert "a reward above 0.5" in said.stderr
    assert "--solved sets it" in said.stderr
    for words, most in (([], 2), (["--solved", "0.25"], 3), (["--solved", "reward >= 0"], 11)):
        asked = ["rollouts", "r", "prompts", "--json", "--dir", str(tmp_path), *words]
        assert max(row["solved"] for row in json.loads(CliRunner().invoke(app, asked).stdout)) == most


def test_a_page_of_two_runs_never_compares_rewards_of_different_parts(tmp_path: Path) -> None:
    """Two runs on one prompt. By the whole reward the second loses; it is the one that solves more."""

    def record(name: str, weights: list[float] | None = None, **parts: list[float]) -> str:
        config = {} if weights is None else {"reward_weights": weights}
        with rollbook.init("p", name, dir=tmp_path, config=config, sinks=[], keeper="import", rules=()) as run:
            run.rollouts.log_many(prompts=["q"] * 2, completions=["a", "b"], rewards=parts)
        return str(run.id)

    ids = {
        "long": record("long", accuracy=[0.0, 0.0], length=[5.0, 5.0]),
        "right": record("right", accuracy=[1.0, 0.0], format=[0.1, 0.1]),
        "again": record("again", accuracy=[1.0, 1.0], format=[0.1, 0.1]),
        "heavy": record("heavy", weights=[2.0, 0.1], accuracy=[1.0, 1.0], format=[0.1, 0.1]),
        "other": record("other", style=[3.0, 4.0]),
    }
    with client_of(tmp_path) as client:

        def ask(one: str, two: str, **more: object) -> dict[str, Any]:
            found = client.get(f"/api/runs/{ids[one]}/shared-prompts", params={"other": ids[two], **more})  # type: ignore[arg-type]
            assert found.status_code == 200, found.text
            return dict(found.json())

        unlike = ask("long", "right")
        assert (unlike["measure"], unlike["mean"], unlike["parts"]) == ("accuracy", [0.0, 0.5], ["accuracy"])
        assert (unlike["better"], unlike["worse"], unlike["above"]) == (1, 0, [0.5, 0.5])
        assert unlike["rows"][0]["solved"] == [0, 1]
        assert all(word in unlike["note"] for word in ("accuracy + length", "accuracy + format"))
        alike = ask("right", "again")
        assert (alike["measure"], alike["note"], alike["mean"]) == ("reward", "", pytest.approx([0.6, 1.1]))
        assert ask("right", "again", part="format")["mean"] == pytest.approx([0.1, 0.1])
        assert ask("again", "heavy")["measure"] == "accuracy + format"
        assert "weigh" in ask("again", "heavy")["note"]
        nothing = ask("right", "other")
        assert (nothing["measure"], nothing["parts"], nothing["mean"]) == ("share solved", [], [0.5, 0.5])
        assert (
            client.get(
                f"/api/runs/{ids['right']}/shared-prompts", params={"other": ids["other"], "part": "style"}
            ).status_code
            == 400
        )


def test_compare_ranks_runs_with_different_reward_functions_by_the_part_that_they_share(tmp_path: Path) -> None:
    """By the whole reward `long` wins; by the accuracy, which both measure, it loses."""
    rows = {
        "long": {"reward": 9.0, "rewards/accuracy/mean": 0.1, "rewards/length/mean": 8.9, "rewards/accuracy/std": 0.2},
        "right": {"reward": 1.0, "rewards/accuracy/mean": 0.9, "rewards/format/mean": 0.1, "rewards/accuracy/std": 0.2},
        "else": {"reward": 5.0, "rewards/style/mean": 5.0},
    }
    for name, seed in itertools.product(rows, range(3)):
        with rollbook.init("p", f"{name}-{seed}", dir=tmp_path, group=name, seed=seed, config={"algo": name}, sinks=[],
                           keeper="import", rules=()) as run:  # fmt: skip
            for step in range(5):
                run.log({key: value + seed / 100 for key, value in rows[name].items()}, gradient_step=step)
    runs = rollbook.open(tmp_path)
    two = runs.where("config.algo != 'else'")
    answer = two.compare("reward", by="config.algo")
    assert answer.metric == "rewards/accuracy/mean"
    assert {row["group"]: row["iqm"] for row in answer.table()} == pytest.approx({"long": 0.11, "right": 0.91})
    said = " ".join(answer.sentences())
    assert "accuracy + length; accuracy + format" in said
    with pytest.raises(BadInput, match="different parts"):
        runs.compare("reward", by="config.algo")
    assert two.compare("rewards/accuracy/mean", by="config.algo").metric == "rewards/accuracy/mean"
    assert runs.where("config.algo = 'long'").compare("reward", by="name").metric == "reward"
