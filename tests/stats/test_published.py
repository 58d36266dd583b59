"""Raw scores that a paper published give the numbers that rliable, with which it was made, gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rollbook.cli.app import app
from rollbook.compare import Comparison, published
from rollbook.errors import BadInput

DIAMOND = Path(__file__).with_name("DIAMOND.json")
"""Five runs of each of 26 games: results/data of github.com/eloialonso/diamond (MIT, (c) 2024 Eloi Alonso)."""
OF_RLIABLE = {
    "median": 0.3734144796647372,
    "iqm": 0.6407874597037997,
    "mean": 1.459023657572432,
    "optimality_gap": 0.48019553652768376,
}
"""What rliable 1.2.0 makes of it."""
OF_THE_PAPER = {
    "SimPLe": {"median": 0.13405558483729887, "mean": 0.3319978533732483},  # 5 runs of each of 26 games
    "SPR": {"median": 0.39562938291779215, "mean": 0.6157957428691673},  # 100 runs
}
"""What the authors of rliable printed of their Atari 100k scores, of which they made the figures of "Deep Reinforcement
Learning at the Edge of the Statistical Precipice": deep_rl_precipice_colab.ipynb of github.com/google-research/rliable,
ccd9f4d. Their raw scores, numbers alone, lie beside this file as they are in results/data of
github.com/eloialonso/iris, 24326aa. Neither place states a licence for the scores themselves, so
the sdist leaves them out."""


@pytest.fixture(scope="module")
def diamond() -> Comparison:
    return published([DIAMOND], normalise="atari")


def test_published_scores_give_rliables_aggregates(diamond: Comparison) -> None:
    """What the command prints, to 1e-12."""
    done = CliRunner().invoke(app, ["scores", str(DIAMOND), "--normalise", "atari", "--json"], catch_exceptions=False)
    rows = json.loads(done.output)
    assert {row["statistic"]: row["estimate"] for row in rows} == pytest.approx(OF_RLIABLE, rel=1e-12)
    assert all(row["low"] < row["estimate"] < row["high"] for row in rows)


@pytest.mark.skipif(not DIAMOND.with_name("SPR.json").exists(), reason="the scores are in the repository alone")
def test_published_scores_give_the_numbers_and_the_bars_that_the_paper_published() -> None:
    """One command, 105 runs of each game: what is printed and what is drawn equals the authors' own output to 1e-12."""
    files = [str(DIAMOND.with_name(f"{name}.json")) for name in OF_THE_PAPER]
    done = CliRunner().invoke(app, ["scores", *files, "--normalise", "atari", "--json"], catch_exceptions=False)
    rows = json.loads(done.output)
    bars = {each.title.lower(): each for each in published(files, normalise="atari")._aggregates("runs")}
    for name, statistics in OF_THE_PAPER.items():
        for statistic, printed in statistics.items():
            (row,) = [row for row in rows if (row["algorithm"], row["statistic"]) == (name, statistic)]
            assert row["estimate"] == pytest.approx(printed, rel=1e-12)
            drawn = dict(zip(bars[statistic].labels, bars[statistic].values, strict=True))
            assert drawn[name] == pytest.approx(printed, rel=1e-12)


def test_a_paper_says_more_of_scores_than_their_mean(diamond: Comparison) -> None:
    assert r"DIAMOND & 5 & $0.373$ ($" in diamond.latex("runs")
    assert [bars.title for bars in diamond._aggregates("runs")] == ["Median", "IQM", "Mean", "Optimality gap"]
    assert diamond.plot("aggregates", resample="runs", size="column").bytes("svg").startswith(b"<?xml")


def test_whole_seeds_and_single_runs_are_drawn_as_asked(diamond: Comparison) -> None:
    """Of equal scores on all tasks, single runs average out and whole seeds do not."""
    alike = {"a": {f"task {n}": [0.1, 0.5, 0.9, 0.4, 0.6] for n in range(10)}}
    answer = published(alike, normalise=dict.fromkeys(alike["a"], (0, 1)))
    by_seed, by_run = answer.aggregates("seeds")["a"], answer.aggregates("runs")["a"]
    for seeds, runs in zip(by_seed[1:3], by_run[1:3], strict=True):
        assert None not in (seeds.high, seeds.low, runs.high, runs.low)
        assert seeds.high - seeds.low > 2 * (runs.high - runs.low)  # type: ignore[operator]


def test_scores_without_anchors_have_no_optimality_gap_and_few_runs_no_interval() -> None:
    (row,) = published({"a": {"x": [3.0, 5.0], "y": [10.0, 20.0, 30.0]}}).aggregates("runs").values()
    assert [each.statistic for each in row] == ["median", "iqm", "mean"]
    assert all(each.low is None for each in row)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({}, "no scores"),
        ({"a": {"x": [1.0]}, "b": {"y": [1.0]}}, "different tasks"),
        ({"a": {"x": [float("nan")]}}, "finite"),
        ({"a": {"x": ["much"]}}, "finite"),
        ({"a": {"x": []}}, "finite"),
    ],
)
def test_scores_that_cannot_be_compared_are_refused_by_name(scores: dict, said: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(BadInput, match=said):
        published(scores)


def test_improvement_is_over_the_group_that_is_named() -> None:
    answer = published({"a": {"x": [1.0, 2.0, 3.0]}, "b": {"x": [4.0, 5.0, 6.0]}, "c": {"x": [7.0, 8.0, 9.0]}})
    assert answer._improvement("c").labels == ("c over a", "c over b")
    assert answer._improvement("c").values.tolist() == [1.0, 1.0]


def test_equal_seeds_are_compared_with_each_other() -> None:
    from rollbook.compare import Entry, compare

    easy = [10.0, 200.0, 35.0, 80.0, 120.0, 60.0]
    entries = [
        Entry(group, f"{group} {seed}", seed, "", score + gain)
        for group, gain in (("a", 1.0), ("b", 0.0))
        for seed, score in enumerate(easy[: 5 if group == "a" else 6])
    ]
    entries[0] = Entry("a", "a 0", 0, "", 10.5)
    answer = compare(entries, metric="m", by="g", how="last", paired=True)
    (pair,) = answer.paired()
    assert pair.differences_N.tolist() == pytest.approx([0.5, 1.0, 1.0, 1.0, 1.0])
    assert (pair.better_in, pair.alone, pair.seeds) == (5, 1, (0, 1, 2, 3, 4))
    assert pair.sentence().endswith("Left out, without a partner: 1 run.")
    assert pair.sentence() in answer.sentences()
    assert answer.pairs[0].sentence() == (
        "a and b: 5 seed pairs cannot decide, whatever they score. So far a wins 5 of 5 seeds. 7 can."
    )


def test_the_picture_of_some_pairs_reports_nothing_of_others() -> None:
    answer = published({"a": {"pong": [1.0, 4.0]}, "b": {"pong": [2.0, 3.0]}, "c": {"pong": [0.0, 5.0]}})
    assert answer._improvement("c").remarks == ("Not decided: c and a; c and b.",)
    assert answer._improvement().remarks == ("Not decided: a and b; a and c; b and c.",)
