"""Which group is better: direction of a score, repeated seeds, plans that stay what they were, mixed environments."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from cases import some_of
from rollbook import compare, stats
from rollbook.errors import BadInput, UnknownOption
from rollbook.runs.report.write import write
from rollbook.schema.aliases import SCORES

pytestmark = pytest.mark.usefixtures("nothing_is_sealed")  # 150 runs, of which one number each is read

LOWER = (
    "test/regret",
    "update/loss/policy",
    "LossPi",
    "train/cost",
    "eval/td_error",
    "time/seconds",
    "constraint_violations",
    "eval/wer",
    "eval/fid",
    "eval/bits_per_byte",
    "eval/crash_rate",
    "eval/time_to_goal",
    "metrics/exploitability",
)
NEUTRAL = ("anything", "eval/score", "rollout/ep_rew_mean", "eval/win_rate", "eval/bleu", "eval/elo")


def entries(groups: dict[str, Any], **more: Any) -> list[compare.Entry]:
    return [
        compare.Entry(label, f"{label} {seed}", seed, "", float(score), **more)
        for label, scores in groups.items()
        for seed, score in enumerate(scores)
    ]


def judged(groups: dict[str, Any], metric: str = "test/return", **more: Any) -> compare.Comparison:
    return compare.compare(entries(groups), metric=metric, by="config.algo", how="last", **more)


def apart(n: int = 14) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(4)
    return {"low": rng.normal(1, 0.5, n), "high": rng.normal(5, 0.5, n)}


@pytest.mark.parametrize("planned", [False, True])
@pytest.mark.parametrize("metric", some_of([*SCORES, *LOWER, *NEUTRAL], [SCORES[0], LOWER[0], NEUTRAL[0]].count))
def test_negating_every_score_swaps_the_verdict_and_a_named_direction_swaps_it_back(metric: str, planned: bool) -> None:
    groups = apart()
    negated = {label: -scores for label, scores in groups.items()}
    usual = "low" if metric in LOWER else "high"
    other = "high" if metric in LOWER else "low"
    asked: dict[str, Any] = {"metric": metric, "planned": planned}
    plain, flipped = judged(groups, **asked).pairs[0], judged(negated, **asked).pairs[0]
    assert (plain.better, flipped.better) == (usual, other)
    assert plain.sentence().startswith(f"{usual} is better than {other}: ")
    assert ("lower is better" in plain.sentence()) == (metric in LOWER)
    for direction, better in (("higher", "high"), ("lower", "low")):
        comparison = judged(groups, direction=direction, **asked)
        assert comparison.pairs[0].better == better
        (best,) = (label for label in groups if label == better)
        chances = {pair.a: pair.improvement for pair in comparison.pairs}
        assert chances["low"] == (1.0 if best == "low" else 0.0)
    if planned:
        (verdict,) = (judged(groups, **asked).plan_data() or {})["verdicts"]
        assert verdict["better"] == usual


def test_a_direction_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(UnknownOption, match="higher"):
        judged(apart(), direction="up")


def test_scores_on_a_common_scale_are_better_where_they_are_higher() -> None:
    on_scale = judged(apart(), metric="test/regret", normalise={"": (10.0, 0.0)})
    assert on_scale.pairs[0].better == "low", "0 regret is worth 1"


@pytest.mark.parametrize("statistic", ["iqm", "mean", "median"])
def test_every_number_of_a_comparison_is_of_one_statistic_and_the_verdict_does_not_depend_on_it(statistic: str) -> None:
    rng = np.random.default_rng(0)
    groups = {"a": rng.normal(10, 0.1, 12), "b": rng.normal(8, 0.1, 12)}
    groups["a"][0] = 200.0
    comparison = judged(groups, statistic=statistic)
    a, b = (group.interval.estimate for group in comparison.groups if group.interval is not None)
    (pair,) = comparison.pairs
    assert pair.difference == pytest.approx(a - b)
    assert pair.sentence() == judged(groups).pairs[0].sentence()
    assert comparison.statistic in comparison.table()[0]


@pytest.mark.parametrize("arms", [2, 3, 5, 8])
def test_pairs_share_the_error_and_a_picture_names_all_of_them(arms: int) -> None:
    rng = np.random.default_rng(1)
    groups = {f"arm {n}": rng.normal(0, 1, 9) for n in range(arms)}
    comparison = judged(groups)
    pairs = arms * (arms - 1) // 2
    for pair in comparison.pairs:
        assert pair.verdict is not None
        assert pair.verdict.limit == pytest.approx(0.03 / pairs)
        assert (f"decides at {pairs} pairs of groups" in pair.sentence()) == (pairs > 1)
    words = " ".join(comparison._bars().remarks)
    for pair in comparison.pairs:
        assert pair.a in words or "pairs" in words
    undecided = sum(pair.better is None for pair in comparison.pairs)
    assert undecided <= 3 or f"{undecided} of {pairs} pairs" in words
    assert "--" not in words, "a figure gives no advice about options"


def test_what_is_so_for_all_pairs_is_said_once_with_what_to_do() -> None:
    """Five groups of five: ten pairs, of which none can be decided."""
    groups = {f"arm {n}": np.arange(5.0) + 100 * n for n in range(5)}
    first, order = judged(groups).verdicts()
    assert first == (
        "5 seeds of each cannot decide among 10 pairs of groups, whatever they score: 6 of each can; so can fewer "
        "pairs: --against GROUP compares each group with one alone (4 pairs)."
    )
    assert order == "In the order of their scores: arm 4, arm 3, arm 2, arm 1, arm 0."
    three = judged({name: groups[name][:3] for name in ("arm 0", "arm 1", "arm 2")}).verdicts()
    assert three[0] == "No verdict among 3 pairs of groups from 3 seeds of each: it takes 5 of each."
    assert three[1] == "arm 1 is ahead of arm 0: it wins 9 of 9 pairs of seeds (p = 0.1 alone)."
    assert judged(groups).next_seeds() == dict.fromkeys(groups, 1)
    with_one = judged({name: groups[name] for name in ("arm 0", "arm 1", "arm 2", "arm 3")}, against="arm 0")
    assert [pair.better for pair in with_one.pairs] == ["arm 1", "arm 2", "arm 3"]
    with pytest.raises(UnknownOption, match="no such group"):
        judged(groups, against="arm 9")


def test_of_many_pairs_each_winner_has_one_sentence_and_no_pair_is_lost() -> None:
    rng = np.random.default_rng(0)
    groups = {f"v{n}": rng.normal(10 * n, 6, 9) for n in range(6)}
    found = judged(groups)
    words = found.verdicts()
    assert len(words) <= len(groups) + 2
    for pair in found.pairs:
        if pair.better is not None:
            (line,) = (each for each in words if each.startswith(f"{pair.better} is better than "))
            other = pair.b if pair.better == pair.a else pair.a
            assert other in line.split("(p ")[0], "by the winner's sentence"
    undecided = sum(pair.better is None for pair in found.pairs)
    assert undecided, "so that there is something to say"
    assert [each for each in words if each.startswith(f"Not decided: {undecided} of {len(found.pairs)} pairs")]
    assert words[-2] == f"In the order of their scores: {', '.join(f'v{n}' for n in range(5, -1, -1))}."


def test_the_size_of_a_difference_is_told_with_its_interval_whatever_the_direction() -> None:
    groups = apart()
    for metric in ("test/return", "train/cost"):
        (line,) = (each for each in judged(groups, metric=metric).sentences() if each.startswith("Difference"))
        (pair,) = judged(groups, metric=metric).pairs
        assert pair.interval is not None
        assert pair.interval.low is not None
        assert line.startswith("Difference of the IQMs: high minus low ")
        low, high = sorted((abs(pair.interval.low), abs(pair.interval.high or 0)))
        assert f"{abs(pair.difference):,.4g} ({low:,.4g} to {high:,.4g}); nominally 95 % interval" in line


def test_the_best_of_many_rows_is_not_compared_with_the_best_of_few_in_silence() -> None:
    made = [
        compare.Entry(label, f"{label} {seed}", seed, "", float(seed), rows=rows)
        for label, rows in (("a", 50), ("b", 5))
        for seed in range(5)
    ]
    for how, told in (("best", True), ("max", True), ("last", False), ("mean of the last 10%", False)):
        found = compare.compare(made, metric="test/return", by="g", how=how)
        assert ("rows differ" in {fact.kind for fact in found.facts}) == told, how


def test_seeds_that_change_nothing_count_once_and_so_does_a_setting_without_effect_tell(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    curve = np.cumsum(rng.random(20))
    for seed in range(5):
        own = np.cumsum(np.random.default_rng(seed).random(20))
        for algo, values in (("a", own), ("b", own), ("stuck", curve), ("ceiling", np.full(20, 500.0))):
            with rollbook.init(
                "p", algo, dir=tmp_path, seed=seed, config={"algo": algo}, sinks=[], keeper="import"
            ) as r:
                r.log_many({"test/return": values}, env_step=np.arange(20))
    found = rollbook.open(tmp_path).compare("test/return", by="config.algo")
    assert {group.label: len(group.seeds_R) for group in found.groups} == {"a": 5, "b": 5, "stuck": 1, "ceiling": 5}
    assert [len(fact.runs) for fact in found.facts if fact.kind == "same curve"] == [4]
    (fact,) = (fact for fact in found.facts if fact.kind == "groups of same curves")
    assert {fact.values["a"], fact.values["b"]} == {"a", "b"}


def test_groups_of_one_run_each_come_with_a_field_that_makes_larger_ones(tmp_path: Path) -> None:
    for n in range(4):
        for algo in ("a", "b"):
            with rollbook.init("p", f"{algo}_{n}", dir=tmp_path, config={"algo": algo}, sinks=[], keeper="import") as r:
                r.log({"test/return": float(n)})
    runs = rollbook.open(tmp_path)
    (fact,) = (fact for fact in runs.compare("test/return").facts if fact.kind == "one run each")
    assert fact.values["groups"] == 2
    assert len(runs.compare("test/return", by=fact.values["field"]).groups) == 2


def test_a_run_that_did_not_finish_counts_as_worse_than_all_that_did_and_is_said() -> None:
    for lower in (False, True):
        sign = -1 if lower else 1
        made = entries({"a": [sign * x for x in (9, 8, 7, 6, 5)], "b": [sign * x for x in (4, 3, 2)]})
        made += [compare.Entry("b", f"b {n}", n, "", sign * 100.0, crashed=True) for n in (3, 4)]
        found = compare.compare(made, metric="m", by="g", how="last", direction="lower" if lower else "higher")
        assert found.pairs[0].better == "a"
        said = found.pairs[0].verdict
        assert (said.won, said.failed_b, said.n_b) == (25, 2, 5)  # type: ignore[union-attr]
        (fact,) = (fact for fact in found.facts if fact.kind == "crashed")
        assert "they count as worse than all that did" in fact.sentence
        assert "--floor" in fact.sentence


def ended(root: Path, name: str, seed: int, value: float, last: int, status: str, clock: str = "env_step") -> None:
    """A run of 51 rows that end at `last`, with a status."""
    with rollbook.init("study", name, dir=root, seed=seed, config={"algo": name}, sinks=[], keeper="import") as opened:
        opened.log_many(
            {"test/return": np.linspace(0.0, value, 51)}, **{clock: np.linspace(0, last, 51).astype(np.int64)}
        )
    path = Path(opened.folder) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": status}))


@pytest.mark.parametrize("status", ["killed", "crashed"])
def test_a_run_that_failed_after_its_training_counts_with_its_score_and_one_that_failed_before_as_the_worst(
    tmp_path: Path, status: str
) -> None:
    for seed in range(5):
        ended(tmp_path, "a", seed, 10.0 + seed, 1000, "finished" if seed < 3 else status)
        ended(tmp_path, "b", seed, 5.0 + seed / 10, 1000 if seed < 4 else 500, "finished" if seed < 4 else status)
    found = rollbook.open(tmp_path).compare("test/return", by="config.algo")
    (pair,) = found.pairs
    assert pair.better == "a"
    assert pair.verdict is not None
    assert (pair.verdict.failed_a, pair.verdict.failed_b) == (0, 1)
    told = {fact.kind: fact.runs for fact in found.facts}
    assert told["unfinished"] == (f"a seed 3 {status}", f"a seed 4 {status}")
    assert told["crashed"] == (f"b seed 4 {status}",)


@pytest.mark.parametrize("status", ["killed", "crashed", "running"])
def test_runs_of_which_none_has_finished_are_compared_where_all_have_come(tmp_path: Path, status: str) -> None:
    for seed in range(5):
        ended(tmp_path, "a", seed, 10.0 + seed, 1000, status)
        ended(tmp_path, "b", seed, 5.0 + seed / 10, 800, status)
    runs = rollbook.open(tmp_path)
    found = runs.compare("test/return", by="config.algo")
    assert found.pairs[0].verdict.outcome == "no scores"  # type: ignore[union-attr]
    assert [fact.values["first"] for fact in found.facts if fact.kind == "none finished"] == [800]
    there = runs.compare("test/return", by="config.algo", at=800)
    assert there.pairs[0].better == "a"
    assert {fact.kind for fact in there.facts if fact.runs} == {"unfinished"}


def test_steps_along_different_clocks_are_not_compared_and_other_scores_say_so(tmp_path: Path) -> None:
    """10 epochs are not fewer than 100,000 environment steps."""
    for seed in range(5):
        ended(tmp_path, "a", seed, 10.0 + seed, 1000, "finished")
        ended(tmp_path, "b", seed, 5.0 + seed / 10, 50, "finished", clock="epoch")
    runs = rollbook.open(tmp_path)
    for how in ({"score": "steps to 4"}, {"at": "common end"}, {"at": 500}):
        found = runs.compare("test/return", by="config.algo", **how)  # type: ignore[arg-type]
        assert found.pairs == (), how
        (fact,) = (fact for fact in found.facts if fact.kind == "on another axis")
        assert (fact.group, fact.values) == ("b", {"axis": "env_step", "own": "epoch"})
    own = runs.compare("test/return", by="config.algo")
    assert own.pairs[0].better == "a"
    assert [fact.values["axes_of"] for fact in own.facts if fact.kind == "axes differ"] == [
        {"a": ["env_step"], "b": ["epoch"]}
    ]


def test_a_run_that_never_reached_a_level_is_slower_than_all_that_did() -> None:
    made = entries({"a": [100.0, 110, 120, 130, 140], "b": [150.0, 160]})
    made += [compare.Entry("b", f"b {n}", n, "", None, span=("env_step", 0.0, 9.0), never=True) for n in (2, 3, 4)]
    found = compare.compare(made, metric="m", by="g", how="steps to 5", direction="lower")
    assert (found.pairs[0].better, found.pairs[0].verdict.won) == ("a", 25)  # type: ignore[union-attr]
    assert not [fact for fact in found.facts if fact.kind == "without score"], "they count"


def test_no_seeds_are_asked_for_where_no_number_is_known_to_decide() -> None:
    rng = np.random.default_rng(0)
    alike = rng.normal(size=12)
    found = judged({"a": alike, "b": alike + rng.normal(size=12) * 1e-3})
    assert found.pairs[0].verdict.more is None  # type: ignore[union-attr]
    assert found.next_seeds() == {}
    assert judged({"a": [5.0, 6, 7], "b": [1.0, 2, 3]}).next_seeds() == {"a": 1, "b": 1}


def run(root: Path, algo: str, seed: int | None, value: float, project: str = "study", **config: Any) -> str:
    asked = {"algo": algo, **config}
    with rollbook.init(project, algo, dir=root, seed=seed, config=asked, sinks=[], keeper="import") as opened:
        opened.log_many({"test/return": np.array([0.0, value])}, env_step=[0, 100])
    return opened.folder


def test_the_same_seed_run_again_counts_once_and_the_sentence_says_so(tmp_path: Path) -> None:
    for _ in range(2):
        for seed in range(3):
            run(tmp_path, "a", seed, 10.0 + seed)
            run(tmp_path, "b", seed, 5.0 + seed)
    comparison = rollbook.open(tmp_path).compare("test/return", by="config.algo", score="last")
    assert [row["n"] for row in comparison.table()] == [3, 3]
    assert comparison.pairs[0].better is None
    said = " ".join(comparison.sentences())
    assert "a, b: 6 runs" in said
    assert "same configuration, seed and code; each such seed counts once" in said


def test_a_seed_that_failed_and_was_run_again_counts_with_the_run_that_finished(tmp_path: Path) -> None:
    for seed in range(5):
        run(tmp_path, "a", seed, 10.0 + seed)
        run(tmp_path, "b", seed, 5.0 + seed)
    path = Path(run(tmp_path, "a", 7, 3.0)) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "crashed"}))
    run(tmp_path, "a", 7, 17.0)
    (a, _) = rollbook.open(tmp_path).compare("test/return", by="config.algo", score="last", floor=0.0).groups
    assert sorted(a.seeds_R) == [10, 11, 12, 13, 14, 17]


@pytest.mark.parametrize("seeds", [[None] * 3, [1, 2, 3]])
def test_runs_without_a_seed_or_of_another_seed_or_configuration_are_runs_of_their_own(
    tmp_path: Path, seeds: list[int | None]
) -> None:
    for n, seed in enumerate(seeds):
        run(tmp_path, "a", seed, 10.0 + n)
        run(tmp_path, "b", 1, 10.0 + n, lr=0.1 * n)
    comparison = rollbook.open(tmp_path).compare("test/return", by="config.algo", score="last")
    assert [row["n"] for row in comparison.table()] == [3, 3]


def stored(root: Path) -> list[Path]:
    return sorted(path for path in (root / "comparisons").rglob("*.json"))


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("planned")
    for seed in range(6):
        run(root, "a", seed, 10.0 + seed / 7)
        run(root, "b", seed, 9.9 + seed / 5)
    rollbook.open(root).compare("test/return", by="config.algo", plan="p", seeds=8, floor=0.0, delta=0.01)
    return root


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        ({}, True), ({"floor": 0.0}, True), ({"floor": 9.0}, False), ({"delta": 0.01}, True), ({"delta": 50.0}, False),
        ({"direction": "higher"}, True), ({"direction": "lower"}, False), ({"statistic": "mean"}, True),
        ({"seeds": 8}, True), ({"seeds": 30}, False), ({"against": "a"}, False), ({"score": "last"}, False),
    ],
)  # fmt: skip
def test_what_a_plan_was_made_with_cannot_be_changed_after_its_first_look(
    planned: Path, other: dict[str, Any], fits: bool
) -> None:
    runs, (kept,) = rollbook.open(planned), stored(planned)
    before = kept.read_text()
    if fits:
        comparison = runs.compare("test/return", by="config.algo", plan="p", **other)
        assert comparison.study is not None
        assert (comparison.study.plan.floor, comparison.study.plan.delta) == (0.0, 0.01)
    else:
        with pytest.raises(BadInput, match="plan"):
            runs.compare("test/return", by="config.algo", plan="p", **other)
    assert kept.read_text() == before


def test_a_plan_keeps_the_runs_that_were_looked_at_and_says_its_end_and_its_first_look(planned: Path) -> None:
    runs = rollbook.open(planned)
    run(planned, "a", 6, 10.0)
    run(planned, "b", 6, 10.0)
    others = rollbook.open(planned).where("seed > 0")
    with pytest.raises(BadInput, match="had a score at the last look"):
        others.compare("test/return", by="config.algo", plan="p")
    more = rollbook.open(planned).compare("test/return", by="config.algo", plan="p")
    assert more.study is not None
    assert [look.n_a for look in more.study.looks] == [6, 7]
    assert len(runs) == 12
    (plan,) = runs.plans()
    assert (plan["name"], plan["seeds"], plan["first_look"]) == ("p", 8, 5)
    assert plan["verdicts"][0]["sentence"] == more.pairs[0].sentence()


def test_plans_of_one_name_in_two_projects_are_two_plans(tmp_path: Path) -> None:
    for project in ("one", "two"):
        for seed in range(4):
            run(tmp_path, "a", seed, 10.0 + seed, project=project)
            run(tmp_path, "b", seed, 5.0 + seed, project=project)
    runs = rollbook.open(tmp_path)
    for project, seeds in (("one", 4), ("two", 9)):
        answer = runs.named(project).compare("test/return", by="config.algo", score="last", plan="p", seeds=seeds)
        assert answer.study is not None
        assert answer.study.plan.seeds == seeds
    assert [plan["asked"]["projects"] for plan in runs.plans()] != []
    assert {plan["seeds"] for plan in runs.plans()} == {4, 9}
    with pytest.raises(BadInput, match="--plan NAME"):
        runs.compare("test/return", by="config.algo", seeds=9)


def test_each_further_look_allows_for_those_before_it_and_looking_again_costs_nothing(tmp_path: Path) -> None:
    def limits(**how: Any) -> tuple[float, int]:
        verdict = rollbook.open(tmp_path).compare("test/return", by="config.algo", score="last", **how).pairs[0].verdict
        assert verdict is not None
        assert verdict.limit is not None
        return verdict.limit, verdict.look

    for seed in range(5):
        run(tmp_path, "a", seed, 10.0 + seed)
        run(tmp_path, "b", seed, 10.5 + seed)
    assert limits() == limits() == (pytest.approx(0.03), 1)
    assert limits(statistic="mean") == (pytest.approx(0.03), 1)
    for seed in range(5, 10):
        run(tmp_path, "a", seed, 10.0 + seed)
        run(tmp_path, "b", seed, 10.5 + seed)
    assert limits() == limits() == (pytest.approx(0.016, rel=0.01), 2)
    assert limits(x="env_step", at="common end")[1] == 1, "another question has its own looks"
    assert len(stored(tmp_path)) == 2


def test_a_folder_that_cannot_be_written_to_says_so_and_the_verdict_stands(tmp_path: Path) -> None:
    for seed in range(5):
        run(tmp_path, "a", seed, 10.0 + seed)
        run(tmp_path, "b", seed, 5.0 + seed)
    (tmp_path / "comparisons").write_text("a file where the folder would be")
    answer = rollbook.open(tmp_path).compare("test/return", by="config.algo", score="last")
    assert answer.pairs[0].better == "a"
    assert any("could not be kept" in note for note in answer.notes)


def test_looks_of_another_version_are_counted_anew_and_a_plan_of_one_is_refused(tmp_path: Path) -> None:
    for seed in range(5):
        run(tmp_path, "a", seed, 10.0 + seed)
        run(tmp_path, "b", seed, 10.5 + seed)
    runs = rollbook.open(tmp_path)
    for plan in (None, "p"):
        runs.compare("test/return", by="config.algo", score="last", plan=plan)
    for path in stored(tmp_path):
        kept = json.loads(path.read_text())
        kept["study"]["format"] = 1
        path.write_text(json.dumps(kept))
    answer = runs.compare("test/return", by="config.algo", score="last")
    assert answer.pairs[0].verdict.look == 1  # type: ignore[union-attr]
    with pytest.raises(BadInput, match="Take a new name"):
        runs.compare("test/return", by="config.algo", score="last", plan="p")
    assert runs.plans() == []


@pytest.mark.parametrize(
    ("where", "by", "task", "said"),
    [
        ({"a": ["cart"], "b": ["pole"]}, "config.algo", None, "a in cart and b in pole"),
        ({"a": ["cart"], "b": ["cart", "pole"]}, "config.algo", None, "differ in their environment"),
        ({"a": ["cart", "pole"], "b": ["cart", "pole"]}, "config.algo", None, "2 environments"),
        ({"a": ["cart"], "b": ["cart"]}, "config.algo", None, ""),
        ({"a": ["cart", "pole"], "b": ["cart", "pole"]}, "config.algo", "config.env", ""),
        ({"a": ["cart"], "b": ["pole"]}, "config.env", None, ""),
    ],
)
def test_environments_that_go_along_with_the_groups_are_named(
    tmp_path: Path, where: dict[str, list[str]], by: str, task: str | None, said: str
) -> None:
    for algo, environments in where.items():
        for n, env in enumerate(environments):
            run(tmp_path, algo, n, 1.0, env=env)
    notes = rollbook.open(tmp_path).compare("test/return", by=by, task=task).notes
    careful = [note for note in notes if "Careful" in note]
    assert bool(careful) == bool(said)
    if said:
        assert said in careful[0]
        assert "--task config.env" in careful[0]


def benchmark(root: Path, name: str = "{algo}-{env}", environments: tuple[str, ...] = ("Cart-v1", "Pole-v5")) -> None:
    """A study as papers have it: two algorithms, several environments on scales of their own, five seeds."""
    for scale, env in enumerate(environments, 1):
        for algo, ahead in (("ppo", 0.0), ("sac", 20.0)):
            for seed in range(5):
                short = env.removeprefix("ALE/").partition("-")[0].removesuffix("NoFrameskip").lower()
                called = name.format(algo=algo, env=env, seed=seed, short=short)
                asked = {"algo": algo, "env": env}
                with rollbook.init("study", called, dir=root, seed=seed, config=asked, sinks=[], keeper="import") as it:
                    it.log({"test/return": 100.0**scale + seed + ahead}, env_step=100)


def verdicts_of(answer: compare.Comparison) -> dict[tuple[str, str], tuple[Any, ...]]:
    found = {}
    for pair in answer.pairs:
        assert pair.verdict is not None
        found[pair.a, pair.b] = (pair.better, pair.verdict.p, pair.verdict.limit, pair.verdict.pairs)
    return found


def test_each_environment_is_judged_as_if_its_runs_had_been_chosen_alone(tmp_path: Path) -> None:
    benchmark(tmp_path)
    runs = rollbook.open(tmp_path)
    together = runs.compare("test/return", score="last")
    alone: dict[tuple[str, str], tuple[Any, ...]] = {}
    for env in ("Cart-v1", "Pole-v5"):
        chosen = runs.where(f"config.env = '{env}'")
        alone |= verdicts_of(chosen.compare("test/return", by="name", score="last"))
    assert verdicts_of(together) == alone
    assert [pair.better for pair in together.pairs] == ["sac-Cart-v1", "sac-Pole-v5"]
    assert together.sentences()[0].startswith("Each environment (config.env) is judged by itself")
    assert not [note for note in together.notes if "Careful" in note]


def test_a_group_alone_in_its_environment_is_compared_with_those_of_others_and_the_reader_warned_first(
    tmp_path: Path,
) -> None:
    for env in ("cart", "pole"):
        for seed in range(4):
            run(tmp_path, "ppo", seed, float(seed), env=env)
    answer = rollbook.open(tmp_path).compare("test/return", score="last")
    assert [(pair.a, pair.b) for pair in answer.pairs] == [("ppo env cart", "ppo env pole")]
    assert answer.sentences()[0].startswith("Careful: the groups differ in their environment, too")


@pytest.mark.parametrize(
    ("name", "environments"),
    [
        ("{algo}-{env}", ("Cart-v1", "Pole-v5")),
        ("{env}__{algo}__{seed}__1700000000", ("Cart-v1", "Pole-v5")),
        ("{short} {algo} (seed {seed})", ("ALE/Pong-v5", "PongNoFrameskip-v4")),
        ("{algo}.{short}", ("ALE/Pong-v5", "ALE/SpaceInvaders-v5")),
        ("{env}", ("Cart-v1", "Pole-v5")),
    ],
)
def test_a_task_in_the_names_of_runs_makes_no_groups_of_its_own(
    tmp_path: Path, name: str, environments: tuple[str, ...]
) -> None:
    benchmark(tmp_path, name, environments)
    answer = rollbook.open(tmp_path).compare("test/return", task="config.env", score="last")
    assert len(answer.groups) == 2
    assert [len(group.seeds_R) for group in answer.groups] == [5, 5]
    assert answer.pairs[0].better == next(group.label for group in answer.groups if "sac" in group.label)


def test_environments_in_which_every_seed_ran_are_its_tasks(tmp_path: Path) -> None:
    benchmark(tmp_path)
    runs = rollbook.open(tmp_path)
    unasked, asked = (runs.compare("test/return", by="config.algo", task=task, score="last") for task in (None, "env"))
    assert unasked.tasks == asked.tasks == ("Cart-v1", "Pole-v5")
    assert verdicts_of(unasked) == verdicts_of(asked)
    assert unasked.pairs[0].verdict.of == 25, "five seeds of each, not ten"  # type: ignore[union-attr]
    assert unasked.sentences()[0].startswith("Each environment (config.env: Cart-v1, Pole-v5) is a task")


def test_a_sweep_over_environments_says_first_that_their_scores_are_taken_together(tmp_path: Path) -> None:
    benchmark(tmp_path)
    runs = rollbook.open(tmp_path)
    careful = [words for words in runs.sweep("test/return").sentences() if "Careful" in words]
    assert careful == [
        "Careful: scores of 2 environments (config.env: Cart-v1, Pole-v5) are taken together. Choose the runs of one."
    ]
    assert not any(
        "Careful" in words for words in runs.where("config.env = 'Cart-v1'").sweep("test/return").sentences()
    )


def test_curves_and_reports_take_environments_as_compare_does(tmp_path: Path) -> None:
    benchmark(tmp_path)
    runs = rollbook.open(tmp_path)
    curves = runs.curves("test/return", by="config.algo")
    answer = runs.compare("test/return", by="config.algo")
    said = "Each environment (config.env: Cart-v1, Pole-v5) is a task of every seed."
    assert said in curves.notes
    assert said in answer.notes
    assert [[*group.n_P][-1] for group in curves.groups] == [5, 5], "seeds, not runs"
    write(runs, tmp_path / "report.html", by="config.algo")
    words = (tmp_path / "report.html").read_text()
    assert words.index(said) < words.index("sac is better than ppo")
    assert words.count("What no test can tell") == 1


def test_projects_may_be_the_tasks(tmp_path: Path) -> None:
    for project in ("cart", "pole"):
        for algo, value in (("ppo", 1.0), ("sac", 9.0)):
            for seed in range(4):
                run(tmp_path, algo, seed, value + seed / 10, project)
    answer = rollbook.open(tmp_path).compare("test/return", task="project", score="last")
    assert [group.label for group in answer.groups] == ["ppo", "sac"]
    assert answer.pairs[0].better == "sac"


def test_a_figure_has_no_advice_about_commands(tmp_path: Path) -> None:
    """Figures go into papers; what to type next is said beside them."""
    for algo, env in (("a", "cart"), ("b", "pole")):
        for seed in range(6):
            run(tmp_path, algo, seed, float(seed), env=env)
    runs = rollbook.open(tmp_path)
    comparison = runs.compare("test/return", by="config.algo")
    assert "--task" in " ".join(comparison.notes)
    pictures = [comparison.plot(chart) for chart in ("intervals", "aggregates", "profiles", "improvement")]
    for picture in (*pictures, runs.curves("test/return", by="config.algo").plot()):
        words = re.sub(
            r"<!--.*?-->|<metadata>.*?</metadata>|<style.*?</style>", "", picture.bytes("svg").decode(), flags=re.DOTALL
        )
        for advice in ("--task", "plan=", "--plan", "rollbook "):
            assert advice not in words, picture


def test_projects_that_go_along_with_the_groups_are_named(tmp_path: Path) -> None:
    run(tmp_path, "a", 0, 1.0, project="one")
    run(tmp_path, "b", 0, 1.0, project="two")
    notes = rollbook.open(tmp_path).compare("test/return", by="config.algo").notes
    assert any("differ in their project" in note for note in notes)


def test_a_run_that_ends_in_nan_is_named(tmp_path: Path) -> None:
    folder = run(tmp_path, "a", 0, 1.0)
    run(tmp_path, "a", 1, float("nan"))
    run(tmp_path, "b", 0, 1.0)
    comparison = rollbook.open(tmp_path).compare("test/return", by="config.algo", score="last")
    assert any("ends with a row that is NaN or infinite" in note and "a: 1 run" in note for note in comparison.notes)
    assert folder


def test_an_end_of_an_interval_that_is_zero_reads_zero() -> None:
    scores = [0.0, 4.02199, 4.19867, 4.55371, 5.68977]
    answer = compare.compare(
        [compare.Entry("a", f"a {seed}", seed, "", score) for seed, score in enumerate(scores)],
        metric="m",
        by="g",
        how="last",
    )
    low = answer.groups[0].interval.low  # type: ignore[union-attr]
    assert low == 0.0 or abs(low) > 1e-9


def test_groups_of_equal_scores_are_not_ahead_of_each_other() -> None:
    (pair,) = judged({"1": [3.0] * 6, "2": [3.0] * 6}).pairs
    assert pair.sentence().startswith("1 and 2: no difference seen: all 12 scores are 3.")
    assert "ahead" not in pair.sentence()


def test_curves_count_the_same_seed_run_again_once(tmp_path: Path) -> None:
    for value in (10.0, 12.0):
        for seed in range(5):
            run(tmp_path, "a", seed, value + seed)
    curves = rollbook.open(tmp_path).curves("test/return", by="config.algo")
    (group,) = curves.groups
    assert group.n_P.tolist() == [5, 5]
    assert group.legend() == "a: IQM of 5 seeds, 95 % at each point (at worst 80 %)"
    assert group.band.centre_P[-1] == pytest.approx(13.0)
    assert "a: 5 runs repeat earlier ones of the same configuration, seed and code" in " ".join(curves.sentences())
    assert curves.reached(11.0).n == (5,)


@pytest.mark.parametrize(("key", "share"), [("test/return", 1.0), ("test/regret", 0.0)])
def test_a_score_is_reached_from_the_side_that_is_worse(key: str, share: float) -> None:
    lines = {str(seed): compare.RunCurve(np.arange(3.0), np.array([5.0, 8.0, 24.4375])) for seed in range(5)}
    curves = compare.curves({"a": lines}, key=key, axis="x")
    assert curves.reached(20.0).share_GP[0, -1] == 1.0
    assert curves.reached(4.0).share_GP[0, -1] == share
    assert curves.reached().level in (24.0, 5.0), "a round level that is reached"
    assert curves.reached(20.0, "lower").share_GP[0, 0] == 1.0


def test_groups_without_the_metric_are_named_once() -> None:
    """A study beside which nine others lie: one sentence, not one of each."""
    others = [compare.Entry(f"other {n}", f"{n}", n, "", None) for n in (0, 1, 1, 2, 3, 4, 5, 6)]
    found = compare.compare([*entries({"a": [1.0, 2.0]}), *others], metric="test/return", by="config.algo", how="last")
    assert [note for note in found.notes if "not compared" in note] == [
        "No finite value, so not compared: other 0 (1 run), other 1 (2 runs), other 2 (1 run), other 3 (1 run), "
        "other 4 (1 run), other 5 (1 run) and 1 more group."
    ]


def test_a_group_that_alone_has_scores_is_not_taken_for_all_runs_of_one_setting() -> None:
    alone = judged({"a": [1.0, 2.0, 3.0]})
    beside = compare.compare(
        [*entries({"a": [1.0, 2.0, 3.0]}), compare.Entry("b", "b 0", 0, "", None)],
        metric="test/return",
        by="config.algo",
        how="last",
    )
    for comparison, same in ((alone, True), (beside, False)):
        (note,) = (note for note in comparison.notes if "nothing to compare it with" in note)
        assert ("All runs have the same config.algo" in note, "Only a has scores" in note) == (same, not same)


def test_anchors_of_a_published_table_need_no_second_option_where_the_environment_is_known(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for algo, level in (("dqn", 1.0), ("rainbow", 2.0)):
        for env, (low, high) in {"ALE/Pong-v5": (-20.7, 14.6), "ALE/Breakout-v5": (1.7, 30.5)}.items():
            for seed in range(5):
                asked = {"algo": algo, "env": env}
                with rollbook.init("p", algo, dir=tmp_path, seed=seed, config=asked, sinks=[], keeper="import") as run:
                    run.log({"test/return": low + (high - low) * rng.normal(level, 0.1)})
    runs = rollbook.open(tmp_path)
    found = runs.compare("test/return", normalise="atari")
    assert set(found.tasks) == {"ALE/Pong-v5", "ALE/Breakout-v5"}
    assert {group.label: round(group.interval.estimate) for group in found.groups if group.interval} == {
        "dqn": 1,
        "rainbow": 2,
    }
    (fact,) = (each for each in runs.compare("test/return", task="env").facts if each.kind == "tasks not on one scale")
    assert fact.values["table"] == "atari"


def test_three_seeds_give_no_verdict_but_the_size_of_the_difference_with_welchs_interval() -> None:
    groups = {"full": [90.0, 87.0, 93.0], "ablated": [60.0, 55.0, 67.0]}
    found = judged(groups)
    (pair,) = found.pairs
    assert pair.better is None
    assert pair.interval is not None
    expected = stats.difference(groups["full"], groups["ablated"], "mean", rng=np.random.default_rng(0))
    assert (pair.interval.low, pair.interval.high) == (expected.low, expected.high)
    (line,) = (
        each for each in found.sentences() if each.startswith("Difference of the means: full minus ablated 29.33 (")
    )
    assert "nominally 95 % interval (Welch's t)" in line


@pytest.mark.parametrize("status", ["killed", "crashed"])
def test_a_group_that_was_stopped_as_a_whole_has_not_lost_one_that_crashed_as_a_whole_has(
    tmp_path: Path, status: str
) -> None:
    for seed in range(5):
        ended(tmp_path, "a", seed, 10.0 + seed, 1000, "finished")
        ended(tmp_path, "b", seed, 50.0 + seed / 10, 400, status)
    found = rollbook.open(tmp_path).compare("test/return", by="config.algo")
    assert found.pairs[0].better == (None if status == "killed" else "a")
    kinds = {fact.kind for fact in found.facts if fact.group == "b"}
    assert kinds == ({"stopped"} if status == "killed" else {"crashed"})
    at = rollbook.open(tmp_path).compare("test/return", by="config.algo", at=400)
    assert at.pairs[0].better == "b"
