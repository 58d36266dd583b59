"""Asking many runs at once: tables, series, SQL, differences, curves, comparisons."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from cases import some_of
from rollbook.errors import BadInput, RollbookError, UnknownKey
from rollbook.runs import results
from rollbook.runs.fields import field_names

STEPS = 40


def learn(
    root: Path, algorithm: str, seed: int, *, better: float = 0.0, status: str = "finished", steps: int = STEPS
) -> None:
    """A run whose return rises to 10 (+ better), with noise that depends on the seed."""
    rng = np.random.default_rng([seed, len(algorithm)])
    with rollbook.init("study", algorithm, dir=root, seed=seed, config={"algo": algorithm, "lr": 0.1 * (1 + seed % 2)},
                       sinks=[], keeper="import", tags=["paper"]) as run:  # fmt: skip
        for n in range(steps):
            value = 10 * n / STEPS + better + rng.normal()
            run.log({"test/return": value, "loss": 1 / (n + 1)}, env_step=100 * n)
            if n % 7 == 3:
                run.log({"late": -value if n > 10 else float("nan")}, gradient_step=n)
        run.log_episode(return_=float(seed), length=3, env_step=5)
    if status != "finished":
        path = Path(run.folder) / "run.json"
        page = json.loads(path.read_text())
        path.write_text(json.dumps({**page, "status": status}))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> rollbook.RunSet:
    root = tmp_path_factory.mktemp("study")
    for seed in range(5):
        learn(root, "ppo", seed)
        learn(root, "dqn-long", seed, better=6.0)
    learn(root, "ppo", 9, status="crashed", steps=10)
    return rollbook.open(root)


def test_a_table_has_configuration_and_results_as_columns(runs: rollbook.RunSet) -> None:
    how = {"test/return": ["best", "last", "mean of the last 20"], "loss": "best"}
    table = runs.table(columns=["seed", "config.algo"], metrics=how)
    assert table.column_names == [
        "seed",
        "config.algo",
        "test/return best",
        "test/return last",
        "test/return mean of the last 20",
        "loss",
    ]
    for row, book in zip(table.to_pylist(), runs, strict=True):
        values = book.arrays("test/return", x="env_step")["test/return"]
        assert row["test/return best"] == values.max()
        assert row["test/return last"] == values[-1]
        assert row["test/return mean of the last 20"] == pytest.approx(values[-20:].mean())
        assert row["loss"] == book.arrays("loss")["loss"].min(), "a loss is best where it is lowest"
        assert row["seed"] == book.seed
    assert "config.lr" in runs.table().column_names
    last_tenth = runs.table(metrics={"test/return": "mean of the last 10%"}, x="env_step")["test/return"].to_pylist()
    first = runs[0].arrays("test/return", x="env_step")
    inside = first["env_step"] >= first["env_step"][-1] * 0.9
    assert last_tenth[0] == pytest.approx(first["test/return"][inside].mean())


@pytest.mark.parametrize("function", [np.max, max, lambda values: values.max(), lambda x, values: values.max()])
def test_a_result_may_be_any_function_of_the_values_or_of_both(runs: rollbook.RunSet, function: Any) -> None:
    table = runs.table([], metrics={"test/return": function}, x="env_step")
    assert table["test/return"] == runs.table([], metrics={"test/return": "max"}, x="env_step")["test/return"]


def test_a_function_of_other_arguments_is_an_error_that_says_which_are_given(runs: rollbook.RunSet) -> None:
    with pytest.raises(BadInput, match=r"takes \(values\) or \(x, values\)"):
        runs.table([], metrics={"test/return": lambda a, b, c: 1.0})


def test_a_number_may_be_made_by_a_function(runs: rollbook.RunSet) -> None:
    table = runs.table(columns=[], metrics={"test/return": lambda x, values: x[values.argmax()]}, x="env_step")
    assert all(value % 100 == 0 for value in table["test/return"].to_pylist())


@pytest.mark.parametrize("how", ["lats", "mean of the last 0", "mean of the last -3"])
def test_a_word_that_makes_no_number_is_an_error(runs: rollbook.RunSet, how: str) -> None:
    with pytest.raises(BadInput, match="is not a way"):
        runs.table(metrics={"test/return": how})


@pytest.mark.parametrize(
    ("x", "points", "start", "stop"),
    some_of(
        [
            (x, *stretch)
            for x in (None, "env_step", "time", "loss")
            for stretch in ((None, None, None), (7, None, None), (7, 500, 2500), (100, 0, 9e9))
        ],
        lambda case: (
            case
            in (
                (None, None, None, None),
                ("env_step", 7, 500, 2500),
                ("time", 7, None, None),
                ("loss", 100, 0, 9e9),
                ("loss", 7, 500, 2500),
            )
        ),
    ),
)
def test_series_of_a_set_are_those_of_its_books(
    runs: rollbook.RunSet, x: str | None, points: int | None, start: float | None, stop: float | None
) -> None:
    keys = ["test/return", "loss", "late"]
    batch = runs.series(keys, x=x, points=points, start=start, stop=stop)
    assert list(batch) == [str(book.path) for book in runs]
    for book in runs:
        together = book.batch(keys, x=x, points=points, start=start, stop=stop, raw=4 * (points or 0))
        for key, series in batch[str(book.path)].items():
            alone = together[key]
            assert series.axis == alone.axis
            for name in ("x", "mean", "min", "max", "count"):
                np.testing.assert_array_equal(getattr(series, name), getattr(alone, name), err_msg=f"{key} {name}")


def test_a_key_of_no_run_is_an_error_with_a_suggestion(runs: rollbook.RunSet) -> None:
    key = "test/retrun"
    asked = (runs.series, runs.metrics, runs.curves, lambda key: runs.compare(key, by="config.algo"))
    for ask in asked:
        with pytest.raises(UnknownKey, match="Did you mean 'test/return'"):
            ask(key)


def test_metrics_of_all_runs_stand_under_each_other(runs: rollbook.RunSet) -> None:
    table = runs.metrics(["test/return"], x="env_step")
    assert table.num_rows == sum(book.metrics(["test/return"]).num_rows for book in runs)
    assert set(table["run"].to_pylist()) == {book.id for book in runs}


def test_sql_reaches_every_table_with_the_run_beside_each_row(runs: rollbook.RunSet) -> None:
    query = (
        'select "config.algo", count(distinct run) as n, max("test/return") as best from metrics group by 1 order by 1'
    )
    answer = runs.sql(query).fetchall()
    assert [(algorithm, n) for algorithm, n, _ in answer] == [("dqn-long", 5), ("ppo", 6)]
    assert answer[0][2] > answer[1][2]
    assert runs.sql("select count(*), count(distinct run_seed) from episodes").fetchall() == [(11, 6)]
    assert runs.sql('select count(*) from runs where "config.lr" > 0.15').fetchall()[0][0] == 5
    assert runs.sql("select e.run from episodes e join runs r on r.id = e.run where r.status = 'crashed'").fetchall()
    with pytest.raises(BadInput, match="cannot be answered"):
        runs.sql("select nothing from metrics")


def test_a_difference_says_with_which_result_it_goes_along(runs: rollbook.RunSet) -> None:
    found = runs.diff(metric="test/return")
    names = [each.name for each in found]
    assert names.index("config.algo") < names.index("config.lr"), "what explains more comes first"
    algorithm = found[names.index("config.algo")]
    assert {value: len(ids) for value, ids in algorithm.values.items()} == {"ppo": 6, "dqn-long": 5}
    assert algorithm.association is not None
    assert (algorithm.association.explained or 0) > 0.5
    assert "config" not in names
    assert "seed" not in names
    table = found.table()
    assert set(table["kind"].to_pylist()) >= {"config"}
    assert len(runs.where("seed = 1 and config.algo = 'ppo'").diff()) == 0


def test_a_key_of_which_no_run_has_a_row_along_the_axis_is_an_unknown_key(runs: rollbook.RunSet) -> None:
    with pytest.raises(UnknownKey, match="along 'epoch'"):
        runs.curves("test/return", by="config.algo", x="epoch")


def test_a_difference_shows_the_configuration_of_an_earlier_attempt(tmp_path: Path) -> None:
    options: dict[str, Any] = {"dir": tmp_path, "sinks": [], "keeper": "inline", "rules": ()}
    rollbook.init("p", "a", config={"lr": 0.1}, **options).finish()
    rollbook.init("p", "a", config={"lr": 0.2}, resume="must", **options).finish()
    rollbook.init("p", "b", config={"lr": 0.2}, **options).finish()
    names = [each.name for each in rollbook.open(tmp_path).diff()]
    assert "attempt 1: config.lr" in names
    assert "config.lr" not in names


def test_curves_count_the_runs_at_each_point(runs: rollbook.RunSet) -> None:
    curves = runs.curves("test/return", x="env_step", by="config.algo", points=40)
    ppo, dqn = curves["ppo"], curves["dqn-long"]
    assert ppo.n_P.max() == 6
    assert ppo.n_P[-1] == 5, "the run that crashed ends, and n says so"
    assert any("did not finish" in said for said in curves.sentences())
    assert np.all(dqn.min_P <= dqn.band.centre_P)
    assert np.all(dqn.band.centre_P <= dqn.max_P)
    assert "5" in dqn.legend()
    again = runs.curves("test/return", x="env_step", by="config.algo", points=40)
    for name, column in curves.columns().items():
        assert column.tobytes() == again.columns()[name].tobytes() or column.dtype == object
    seeds = curves.seeds()
    assert set(seeds["group"]) == {"ppo", "dqn-long"}
    assert len(seeds["run"]) == int(ppo.n_P.sum() + dqn.n_P.sum())


@pytest.mark.parametrize("threads", [2, 4])
def test_curves_are_the_same_bytes_on_any_number_of_threads(
    runs: rollbook.RunSet, monkeypatch: pytest.MonkeyPatch, tuned: Callable[..., None], threads: int
) -> None:
    tuned(threaded_runs=2)
    tuned(most_threads=1)
    monkeypatch.setattr(results.os, "cpu_count", lambda: 8)
    alone = runs.curves("test/return", by="config.algo")
    tuned(most_threads=threads)
    together = runs.curves("test/return", by="config.algo")
    for name, column in alone.columns().items():
        other = together.columns()[name]
        assert column.tolist() == other.tolist() if column.dtype == object else column.tobytes() == other.tobytes()
    with pytest.raises(UnknownKey, match="test/return"):
        runs.curves("test/retrun")


def test_a_batch_is_what_each_key_alone_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with rollbook.init("study", "many", dir=tmp_path, sinks=[], keeper="import") as run:
        odd = rng.normal(size=500)
        odd[7] = np.inf
        run.log_many({"a": rng.normal(size=500), "b": odd, "c": np.arange(500)}, env_step=np.arange(500) * 3)
        for n in range(40):
            run.log({"late": n / 7, "a": float(n)}, env_step=1500 + n // 2)
        run.log({"alone": 1.0}, gradient_step=2)
    book = rollbook.Book(run.folder)
    keys = ["a", "b", "c", "late", "alone"]
    for asked in ({}, {"points": 60}, {"points": 60, "start": 100, "stop": 900}, {"x": "time"}, {"points": 1}):
        together = book.batch(keys, **asked)
        for key in keys:
            alone = book.series(key, **asked)
            assert together[key].axis == alone.axis
            for name in ("x", "min", "max", "count"):
                assert np.array_equal(getattr(together[key], name), getattr(alone, name), equal_nan=True), (key, asked)
            # Rows in several pieces may be added in another order.
            assert np.allclose(together[key].mean, alone.mean, rtol=1e-12, equal_nan=True), (key, asked)


def test_a_series_of_sealed_rows_is_what_its_table_says(tmp_path: Path) -> None:
    with rollbook.init("study", "steps", dir=tmp_path, sinks=[], keeper="import") as run:
        run.log_many({"loss": np.arange(100.0)}, env_step=np.arange(100) * 10)
        run.log_many({"loss": [7.0, 8.0]}, env_step=[990, 1000])  # 990 twice: the later row stands behind
        run.log_many({"other": [1.0]}, gradient_step=[3])
    book = rollbook.Book(run.folder)
    for asked in ({}, {"start": 500}, {"stop": 500}, {"start": 500, "stop": 995}):
        series, table = book.series("loss", **asked), book.arrays("loss", x="env_step", **asked)
        assert series.axis == "env_step"
        assert series.x.tolist() == table["env_step"].tolist()
        assert series.mean.tolist() == table["loss"].tolist()


TASKS = {"easy": (0, 1), "hard": (0, 10), "odd": (0, 100), "long": (0, 5), "flat": (0, 2)}


def several_tasks(root: Path, seeds: int) -> rollbook.RunSet:
    for task, (_, scale) in TASKS.items():
        for seed in range(seeds):
            noise = np.random.default_rng([seed, scale]).normal(size=30) / 9
            with rollbook.init(
                "tasks", "ppo", dir=root, seed=seed, config={"env": task}, sinks=[], keeper="import"
            ) as run:
                run.log_many({"test/return": scale * (np.arange(30) / 30 + noise)}, env_step=np.arange(30))
    return rollbook.open(root)


def test_a_band_over_tasks_takes_whole_seeds_on_one_scale(tmp_path: Path) -> None:
    runs = several_tasks(tmp_path, 3)
    curves = runs.curves("test/return", task="config.env", normalise=TASKS, points=10)
    (group,) = curves.groups
    assert group.legend() == "ppo: IQM of 3 seeds x 5 tasks, nominally 95 % at each point"
    assert group.units == ("seed 0", "seed 1", "seed 2")
    assert set(group.n_P) == {3}
    assert 0.7 < group.band.centre_P[-1] < 1.2
    assert np.isfinite(group.band.low_P).all()
    picture = runs.plot("test/return", task="config.env", normalise=TASKS).bytes("svg").decode()
    assert "3 seeds x 5 tasks" in picture
    unscaled = runs.curves("test/return", task="config.env", points=10)
    assert "not on one scale" in " ".join(unscaled.sentences()[:2])
    with pytest.raises(BadInput, match="these are several"):
        curves.reached()


def test_runs_are_grouped_by_what_differs_where_nobody_says_it_and_the_answer_says_so(
    runs: rollbook.RunSet, tmp_path: Path
) -> None:
    curves = runs.curves("test/return", points=5)
    by_lr = {"ppo lr 0.1", "ppo lr 0.2", "dqn-long lr 0.1", "dqn-long lr 0.2"}
    assert {group.label for group in curves.groups} == by_lr
    assert curves.sentences()[0] == "4 groups, by what differs: name, config.lr."
    assert curves.plot().text(100, 20).count("ppo") == runs.plot("test/return", points=5).text(100, 20).count("ppo")
    pooled = runs.curves("test/return", by=None, points=5)
    assert [group.label for group in pooled.groups] == ["all runs"]
    assert not any("by what differs" in sentence for sentence in pooled.sentences())
    alone = runs.where("config.algo = 'ppo' and config.lr < 0.15").curves("test/return", points=5)
    assert [group.label for group in alone.groups] == ["ppo"]
    assert alone.sentences()[0] == "One group: the configuration is the same in all runs, but for seeds."
    assert alone.by == ""
    tasks = several_tasks(tmp_path, 2)
    assert len(tasks.curves("test/return", points=5).groups) == len(TASKS)
    of_tasks = tasks.curves("test/return", task="config.env", normalise=TASKS, points=5)
    assert [group.label for group in of_tasks.groups] == ["ppo"], "what a task decides makes no groups"
    compared = tasks.compare("test/return", by="auto", task="config.env", normalise=TASKS)
    assert [group.label for group in compared.groups] == ["ppo"]
    assert "All runs have the same configuration" in " ".join(compared.sentences())


def test_a_band_for_the_whole_curve_comes_on_request_and_is_wider(runs: rollbook.RunSet) -> None:
    chosen = runs.where("status = 'finished'")
    pointwise = chosen.curves("test/return", by="config.algo", statistic="mean")["dqn-long"].band
    group = chosen.curves("test/return", by="config.algo", whole_curve=True)["dqn-long"]
    assert group.legend() == "dqn-long: mean of 5 seeds, nominally 95 % for the whole curve"
    there = np.isfinite(group.band.low_P)
    assert there.any()
    assert (group.band.high_P - group.band.low_P)[there].mean() > (pointwise.high_P - pointwise.low_P)[there].mean()
    assert "whole curve" in chosen.plot("test/return", by="config.algo", whole_curve=True).bytes("svg").decode()
    with pytest.raises(BadInput, match="mean alone"):
        chosen.curves("test/return", statistic="median", whole_curve=True)


def test_groups_have_parted_where_they_stay_apart(runs: rollbook.RunSet) -> None:
    curves = runs.where("status = 'finished'").curves("test/return", by="config.algo")
    (parted,) = curves.parted()
    assert parted.ahead == "dqn-long"
    assert parted.last == 3900
    assert parted.x is not None
    assert 0 <= parted.x < 2000
    assert "no verdict" in parted.sentence()
    few = runs.where("seed < 3").curves("test/return", by="config.algo").parted()[0]
    assert few.x is None
    assert "5 seeds of each" in few.sentence()


def test_the_first_of_refined_curves_says_that_it_is_preliminary(runs: rollbook.RunSet) -> None:
    first, last = runs.refined_curves("test/return", by="config.algo", stages=(200, 1999))
    assert first.preliminary
    assert not last.preliminary
    assert "preliminary (200 draws)" in first["dqn-long"].legend()
    assert "preliminary (200 draws)" in first.plot().bytes("svg").decode()
    asked = runs.curves("test/return", by="config.algo")
    assert last["dqn-long"].band.low_P.tobytes() == asked["dqn-long"].band.low_P.tobytes()


def test_a_comparison_answers_and_says_who_is_missing(runs: rollbook.RunSet) -> None:
    comparison = runs.compare("test/return", by="config.algo")
    assert [(row["group"], row["n"]) for row in comparison.table()] == [("ppo", 5), ("dqn-long", 5)]
    (pair,) = comparison.pairs
    assert pair.difference < -4
    assert pair.improvement == 0.0
    assert any("did not finish. In the verdict it counts as worse" in note for note in comparison.notes)
    floored = runs.compare("test/return", by="config.algo", floor=0.0)
    assert {row["group"]: row["n"] for row in floored.table()}["ppo"] == 6


def test_a_plan_is_kept_beside_the_runs_before_its_first_look(tmp_path: Path) -> None:
    for seed in range(5):
        learn(tmp_path, "ppo", seed)
        learn(tmp_path, "dqn-long", seed, better=30.0)
    runs = rollbook.open(tmp_path)
    first = runs.compare("test/return", by="config.algo", plan="returns")
    (path,) = (Path(runs.root) / "comparisons").glob("returns-*.json")
    kept = json.loads(path.read_text())
    assert kept["asked"]["metric"] == "test/return"
    assert first.study is not None
    assert first.pairs[0].verdict is not None
    again = rollbook.open(tmp_path).compare("test/return", by="config.algo", plan="returns")
    assert again.study is not None
    assert again.study.looks == first.study.looks, "looking again at the same seeds changes nothing"
    (kept,) = rollbook.open(tmp_path).plans()
    assert kept["name"] == "returns"
    assert kept["asked"]["metric"] == "test/return"
    assert kept["looks"] == [], "of 22 seeds, five cannot decide"
    assert kept["verdicts"][0]["sentence"] == again.pairs[0].sentence()
    assert json.loads(json.dumps(again.plan_data())) == again.plan_data()
    with pytest.raises(BadInput, match="this plan was made for"):
        runs.compare("loss", by="config.algo", plan="returns")
    assert len(rollbook.open(tmp_path)) == 10, "a plan is no run"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda runs: runs[:0].curves("test/return"), "the set is empty"),
        (lambda runs: runs[:0].compare("test/return", by="seed"), "the set is empty"),
        (lambda runs: runs.compare("test/return", by="config.alg"), "Did you mean"),
        (lambda runs: runs.compare("test/return", by="config.algo", plan="../x"), "file's name"),
        (lambda runs: runs.compare("test/return", by="config.algo", task="config.env"), "no.*field|none of"),
        (lambda runs: runs["ppo"], "runs.one"),
    ],
)
def test_bad_input_is_reported(runs: rollbook.RunSet, ask: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        ask(runs)


def test_a_question_opens_each_run_once(runs: rollbook.RunSet, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: Counter[str] = Counter()
    open_book = rollbook.Book.__init__

    def counted(book: rollbook.Book, path: Any) -> None:
        opened[str(path)] += 1
        open_book(book, path)

    monkeypatch.setattr(rollbook.Book, "__init__", counted)
    runs.compare("test/return", by="config.algo", at="common end")
    assert set(opened.values()) == {1}
    assert len(opened) == len(runs)


@pytest.fixture(scope="module")
def odd_runs(tmp_path_factory: pytest.TempPathFactory) -> rollbook.RunSet:
    """Groups that were measured at different times, one of NaN, one of another metric."""
    root = tmp_path_factory.mktemp("odd")
    steps, bad = np.arange(0, 100, 10), np.full(10, 2.0)
    bad[3:5] = np.nan, np.inf
    for algorithm, key, x, y in (
        ("early", "test/return", steps, np.arange(10.0)),
        ("late", "test/return", steps + 500, np.arange(10.0)),
        ("bad", "test/return", steps, bad),
        ("other", "loss", steps, np.arange(10.0)),
    ):
        for seed in range(2):
            with rollbook.init(
                "odd", algorithm, dir=root, seed=seed, config={"algo": algorithm}, sinks=[], keeper="inline"
            ) as run:
                run.log_many({key: y}, env_step=x)
    return rollbook.open(root)


def test_groups_that_do_not_overlap_on_the_clock_are_not_compared(odd_runs: rollbook.RunSet) -> None:
    runs = odd_runs.where("config.algo in ('early', 'late')")
    said = "was measured from 0 to 90 env_step, late from 500 to 590: no common point"
    comparison = runs.compare("test/return", by="config.algo", plan="apart")
    assert comparison.pairs[0].sentence() == (
        "early and late: not compared; they were measured at no common point of the axis."
    )
    assert said in " ".join(comparison.notes)
    assert comparison.study is not None
    assert comparison.study.looks == ()
    assert said in " ".join(runs.curves("test/return", by="config.algo").sentences())
    assert "no common point" in runs.plot("test/return", by="config.algo").bytes("svg").decode()


def test_curves_say_who_has_no_row_and_whose_rows_are_not_finite(odd_runs: rollbook.RunSet) -> None:
    said = " ".join(odd_runs.curves("test/return", by="config.algo").sentences())
    assert "other: none of its 2 runs has a row of test/return; it is not drawn." in said
    assert "bad: 4 rows of 2 of 2 runs are NaN or infinite" in said


def test_one_run_and_one_group_are_answered_too(runs: rollbook.RunSet) -> None:
    alone = runs.where("config.algo = 'ppo' and seed = 0")
    assert alone.curves("test/return").groups[0].n_P.max() == 1
    comparison = alone.compare("test/return", by="config.algo")
    assert not comparison.pairs
    assert any("one group" in note for note in comparison.notes)
    assert comparison.groups[0].interval is not None
    assert not comparison.groups[0].interval.is_honest


def test_a_field_that_only_one_run_nests_deeper_is_a_field() -> None:
    rows = [{"config": {"a": 1}}, {"config": {"a": {"b": 2}}}, {"config": {"a": 3}, "summary": {"best": 1.0}}]
    assert {"config.a", "config.a.b", "summary.best"} <= set(field_names(rows))


def written(folder: Path, name: str, x: list[int], values: list[float], **more: object) -> None:
    with rollbook.init("scores", name, dir=folder, sinks=[], keeper="import", rules=(), **more) as run:  # type: ignore[arg-type]
        for step, value in zip(x, values, strict=True):
            run.log({"test/return": value, "loss": -value}, env_step=step)


def test_an_area_is_the_mean_height_of_a_curve_and_steps_are_those_to_the_first_row_at_the_level(
    tmp_path: Path,
) -> None:
    written(tmp_path, "rises", [0, 10, 40], [0.0, 2.0, 8.0])
    written(tmp_path, "never", [0, 10, 40], [0.0, 1.0, 1.0])
    written(tmp_path, "once", [7], [9.0])
    runs = rollbook.open(tmp_path)
    how = {"test/return": ["area", "steps to 2"], "loss": "steps to -2"}
    by_name = {row["name"]: row for row in runs.table(["name"], how, x="env_step").to_pylist()}
    area = {name: row["test/return area"] for name, row in by_name.items()}
    assert area == {"rises": pytest.approx((10 * 1 + 30 * 5) / 40), "never": pytest.approx((5 + 30) / 40), "once": 9.0}
    assert {name: row["test/return steps to 2"] for name, row in by_name.items()} == {
        "rises": 10,
        "never": None,
        "once": 7,
    }
    assert {name: row["loss"] for name, row in by_name.items()} == {
        "rises": 10,
        "never": None,
        "once": 7,
    }  # lower is better


def test_fewer_steps_to_a_level_are_better_and_groups_that_never_reach_it_are_reported(tmp_path: Path) -> None:
    for seed in range(8):
        for algo, pace in (("quick", 10), ("slow", 30)):
            x = [0, pace + seed, 200]
            written(tmp_path, algo, x, [0.0, 5.0, 5.0], seed=seed)
        written(tmp_path, "lost", [0, 200], [0.0, 1.0], seed=seed)
    answer = rollbook.open(tmp_path).compare("test/return", "name", score="steps to 5", x="env_step")
    assert answer.lower_is_better
    pair = next(pair for pair in answer.pairs if {pair.a, pair.b} == {"quick", "slow"})
    assert "quick is" in pair.sentence()
    assert any("8 of 24 runs never reached 5" in note for note in answer.notes)


def test_a_slice_and_the_newest_keep_what_the_set_knows_of_its_folder(tmp_path: Path) -> None:
    written(tmp_path, "one", [0], [1.0])
    runs = rollbook.open(tmp_path)
    runs.problems.append("a damaged folder")
    runs.as_of, runs.unread = 5.0, 3
    for part in (runs[:1], runs.newest(1), runs.where("name = 'one'"), runs.filter(lambda row: True)):
        assert (part.problems, part.as_of, part.unread) == (["a damaged folder"], 5.0, 3)


def test_of_runs_of_which_one_cannot_be_read_the_others_are_answered_and_it_is_said(tmp_path: Path) -> None:
    for seed in range(2):
        with rollbook.init("p", "a", seed=seed, dir=tmp_path, sinks=[], keeper="inline", rules=()) as run:
            run.log_many({"loss": [1.0, 2.0]}, env_step=[0, 1])
    both = rollbook.open(tmp_path)
    shutil.rmtree(both[0].path)
    found = both.series("loss")
    assert [len(of_run) for of_run in found.values()] == [0, 1]
    (sentence,) = found.sentences()
    assert "cannot be read" in sentence
    shutil.rmtree(both[1].path)
    with pytest.raises(RollbookError):
        both.series("loss")


def test_settings_that_read_alike_are_groups_of_their_own(tmp_path: Path) -> None:
    for lr in (0.12345678, 0.12345679):
        config = {"algo": "ppo", "lr": lr}
        with rollbook.init("p", "ppo", seed=0, config=config, dir=tmp_path, sinks=[], keeper="import") as run:
            run.log({"return": lr}, env_step=1)
    labels = list(rollbook.open(tmp_path).curves("return", by="config.algo,config.lr").members)
    assert labels == ['config.algo="ppo", config.lr=0.12345678', 'config.algo="ppo", config.lr=0.12345679']
