"""Every chart of the registry keeps the same promises; a chart is tested the moment it is listed."""

from __future__ import annotations

import functools
import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

from cases import some_of
from rollbook import compare
from rollbook.errors import BadInput, UnknownOption
from rollbook.plots import CHARTS, Bars, Cells, Dots, Line, Mark, Panel, Spans, Stack, Threads, Trace, draw
from rollbook.plots._characters import panel_in_characters

GROUPS = 14
HOSTILE = ("_hidden", "$x_1$", "<script>alert(1)</script>", "a\x1b[31mred\n", "\ud800", "ж" * 300, "")
CASES = ("empty", "one point", "not finite", "many hostile names")


def _series(case: str) -> tuple[np.ndarray, np.ndarray]:
    n = {"empty": 0, "one point": 1}.get(case, 50)
    x = np.arange(n, dtype=float)
    y = np.sin(x) * 10
    if case == "not finite":
        y[5], y[9], y[12:15], y[20] = np.nan, np.inf, np.nan, -np.inf
    return x, y


def _names(case: str) -> list[str]:
    return [*HOSTILE, *(f"g{n}" for n in range(GROUPS - len(HOSTILE)))] if case == "many hostile names" else ["g0"]


@functools.cache
def _panel(case: str) -> Panel:
    """Through the numbers where there are any, so that charts are tested with what they get."""
    x, y = _series(case)
    if case == "empty":
        return Panel("test/return", "env_step", ())
    seeds = 1 if case in ("one seed", "one point") else 5
    groups = {
        name: {f"{name} {seed}": compare.RunCurve(x, y + seed + n) for seed in range(seeds)}
        for n, name in enumerate(_names(case))
    }
    panel = compare.curves(groups, key="test/return", axis="env_step", by="config.algo", draws=99, points=20).panel()
    marks = (Mark(3.0, "checkpoint"), Mark(4.0, "best"), Mark(5.0, "alert", _names(case)[0]), Mark(np.nan, "alert"))
    return Panel(panel.title, panel.axis, panel.lines, (Trace(x, y - 1),), marks, panel.remarks)


def _bars(case: str) -> Bars:
    names = [] if case == "empty" else _names(case)
    n = len(names)
    values = np.linspace(0, 1, n)
    points = np.array([0.0, 1.0, np.nan, np.inf]) if case == "not finite" else np.array([0.4])
    low = np.full(n, -np.inf if case == "not finite" else np.nan if case == "one seed" else 0.1)
    return Bars("score", "mean", tuple(names), values, low, values + 0.1, (points,) * n, ("95 %, n = 5",) * n, 0.5)


def _stack(case: str) -> Stack:
    x, y = _series(case)
    names = () if case == "empty" else tuple(_names(case))
    return Stack("parts", "env_step", "s", x, names, np.stack([y] * len(names)) if names else np.zeros((0, 0)), y)


def _spans(case: str) -> Spans:
    x, y = _series(case)
    names = _names(case)
    return Spans("time", tuple(names[n % len(names)] for n in range(len(x))), x, np.abs(y))


def _cells(case: str) -> Cells:
    x, _ = _series(case)
    n = len(x)
    counts = np.array([1.0, np.nan, 0.0]) if case == "not finite" else np.array([1.0, 4.0, 0.0])
    low = np.full(n, np.nan if case == "not finite" else 0.0)
    edges = (np.array([0.0, 1.0, 2.0, 3.0]),) * n
    return Cells(_names(case)[0], "env_step", x, edges, (counts,) * n, low, np.full(n, 3.0))


def _dots(case: str) -> Dots:
    x, y = _series(case)
    names = _names(case)
    return Dots("episodes", "env_step", "return", x, y, np.arange(len(x)) % len(names), tuple(names))


def _threads(case: str) -> Threads:
    _, y = _series(case)
    names = _names(case)
    columns = tuple(
        tuple([None, "a", 3][k % 3] if n == 0 else float(k) for k in range(len(y))) for n in range(len(names))
    )
    return Threads("sweep", tuple(names), columns, y, "test/return")


MAKERS: dict[str, Any] = {
    "curves": _panel, "small_multiples": lambda case: [_panel(case)] * (3 if case != "empty" else 0),
    "profiles": _panel,
    "aggregates": lambda case: [_bars(case)] * (4 if case == "many hostile names" else 2),
    "efficiency": _panel, "novelty": _panel, "intervals": _bars, "improvement": _bars, "stages": _stack,
    "rewards": _stack, "timeline": _spans, "histograms": _cells, "episodes": _dots, "parallel": _threads,
}  # fmt: skip


def test_every_chart_of_the_registry_is_tested_here() -> None:
    assert set(MAKERS) == set(CHARTS)


PAIRS = [(chart, case) for chart in CHARTS for case in CASES]


@pytest.mark.parametrize(("chart", "case"), some_of(PAIRS, lambda pair: PAIRS.index(pair) % 9 == 0))
def test_a_chart_draws_whatever_it_is_given(chart: str, case: str) -> None:
    picture = draw(chart, MAKERS[chart](case))
    theme = "dark" if CASES.index(case) % 2 else "light"
    svg = picture.bytes("svg", theme=theme).decode()
    ElementTree.fromstring(svg)  # well formed, whatever runs are called
    assert "<script" not in svg
    assert "\x1b" not in svg


@pytest.mark.parametrize("chart", some_of(CHARTS, 3))
def test_the_same_data_is_the_same_bytes(chart: str, tmp_path: Any) -> None:
    picture = draw(chart, MAKERS[chart]("one seed"))
    drawn = picture.bytes("svg", theme="light")
    ElementTree.fromstring(drawn.decode())
    picture.save(tmp_path / "x.svg", theme="light")
    assert (tmp_path / "x.svg").read_bytes() == drawn


def test_a_chart_is_written_in_every_format(tmp_path: Any) -> None:
    """One chart: what is drawn knows nothing of the format."""
    picture = draw("curves", _panel("one seed"))
    begins = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    for ending, theme in (("png", "light"), ("pdf", "dark"), ("svg", "dark")):
        with open(picture.save(tmp_path / f"x.{ending}", theme=theme), "rb") as file:
            assert file.read(8).startswith(begins[ending])


def test_a_figure_for_a_paper_has_the_title_that_it_is_given_and_no_notes() -> None:
    rows = {f"ppo {seed}": compare.RunCurve(np.arange(9.0), np.arange(9.0) + seed) for seed in range(3)}
    picture = compare.curves({"ppo": rows}, key="test/return", axis="env_step").plot()
    words = [text.get_text() for text in picture.figure().texts]
    assert any(" of 3 " in word or "seeds" in word for word in words), "what the curve is stands below it"
    figure = picture.figure(title="PPO on Hopper", notes=False)
    assert [axes.get_title(loc="left") or axes.get_title() for axes in figure.axes] == ["PPO on Hopper"]
    assert [text.get_text() for text in figure.texts] == []
    assert b"PPO on Hopper" not in picture.bytes("svg"), "the next one is as before"


@pytest.mark.parametrize("case", [*CASES, "one seed"])
@pytest.mark.parametrize("chart", [name for name, chart in CHARTS.items() if chart.in_characters])
def test_a_chart_in_characters_stays_within_its_columns(chart: str, case: str) -> None:
    text = draw(chart, MAKERS[chart](case)).text(60, 12)
    assert max(map(len, text.splitlines())) <= 60
    assert text.replace("\n", "").isprintable()
    coloured = draw(chart, MAKERS[chart](case)).text(60, 12, colour=True)
    seen = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert max(map(len, seen.splitlines())) <= 60
    assert seen.replace("\n", "").isprintable(), "no escape sequence but colours, whatever runs are called"


def test_a_band_in_characters_has_no_hole_between_two_points_and_a_line_none_either() -> None:
    x = np.array([0.0, 10.0])
    panel = Panel(
        "k", "x", (Line("a", x, np.array([5.0, 5.0]), low=np.array([0.0, 0.0]), high=np.array([10.0, 10.0])),)
    )
    plain = panel_in_characters(panel, 40, 5).splitlines()[1:6]
    assert [row.partition("|")[2] for row in plain] == ["." * 36, "." * 36, "*" * 36, "." * 36, "." * 36]
    dots = re.sub(r"\x1b\[[0-9;]*m", "", panel_in_characters(panel, 40, 5, colour=True)).splitlines()[1:6]
    middle = [row.partition("│")[2] for row in dots]
    assert middle[0] == "░" * 36
    assert len(set(middle[2])) == 1
    assert 0x2800 < ord(middle[2][0]) <= 0x28FF, "the line, in braille"


def test_stairs_in_characters_hold_their_value_until_the_next_point() -> None:
    line = Line("a", np.array([0.0, 34.0]), np.array([0.0, 10.0]), steps=True)
    rows = [row.partition("|")[2] for row in panel_in_characters(Panel("k", "x", (line,)), 40, 5).splitlines()[1:6]]
    assert rows[-1] == "*" * len(rows[-1])
    assert all(row.strip() == "*" for row in rows[:-1]), "up at the last point, at once"


def test_the_legend_says_what_the_band_is_and_of_how_many() -> None:
    x = np.arange(30.0)
    groups = {"ppo": {str(seed): compare.RunCurve(x, x + seed) for seed in range(5)}}
    assert (
        "IQM of 5 seeds, 95 % at each point"
        in draw("curves", compare.curves(groups, key="k", axis="x", draws=99).panel()).bytes("svg").decode()
    )
    few = {"ppo": {str(seed): compare.RunCurve(x, x + seed) for seed in range(3)}}
    curves = compare.curves(few, key="k", axis="x")
    panel = curves.panel()
    assert len(panel.lines[0].seeds) == 3, "without an honest band the seeds are the picture"
    assert panel.lines[0].low is None
    assert "no band" in panel.lines[0].label


def test_a_legend_claims_no_band_where_all_seeds_score_alike() -> None:
    x = np.arange(30.0)
    groups = {"ppo": {str(seed): compare.RunCurve(x, x) for seed in range(5)}}
    panel = compare.curves(groups, key="k", axis="x", draws=99).panel()
    assert panel.lines[0].low is None
    assert "95 %" not in panel.lines[0].label
    assert "all seeds score the same" in panel.remarks[0]


def test_the_first_and_the_last_value_are_whole_and_long_words_are_not_cut() -> None:
    words = " ".join(f"word{n}" for n in range(30))
    y = np.array([1.0, np.nan, 3.0, np.nan, 2.0])
    panel = Panel("k", "x", (Line(words, np.arange(5.0), y),), remarks=(words,))
    figure = draw("curves", panel).figure()
    (axes,) = figure.axes
    dots = [line for line in axes.lines if line.get_marker() == "o"]
    for line in dots:
        assert (
            not line.get_clip_on()
            or axes.get_xlim()[0] < line.get_xdata().min() <= line.get_xdata().max() < axes.get_xlim()[1]
        )
    assert [x for line in dots for x in line.get_xdata()] == [0.0, 2.0, 4.0]
    svg = draw("curves", panel).bytes("svg").decode()
    assert "\u2026" not in svg
    assert svg.count("word29") == 2


def test_a_spike_between_two_points_of_the_grid_is_in_the_extremes() -> None:
    x = np.arange(1000.0)
    y = np.zeros(1000)
    y[503] = 77.0
    groups = {"ppo": {str(seed): compare.RunCurve(x, y if seed == 2 else np.zeros(1000)) for seed in range(6)}}
    group = compare.curves(groups, key="k", axis="x", points=20, draws=99).groups[0]
    assert group.max_P.max() == 77.0
    assert group.min_P.min() == 0.0


def test_what_lies_beyond_the_limits_or_is_not_finite_has_a_mark_at_the_edge() -> None:
    x = np.arange(10.0)
    y = np.array([0, 1, 2, 50, 2, np.nan, np.inf, -np.inf, -9, 0.0])
    panel = Panel("k", "x", (Line("k", x, np.where(np.isfinite(y), y, np.nan), raw=Trace(x, y)),))
    svg = draw("curves", panel, limits=(0, 5)).bytes("svg").decode()
    for said in ("beyond the upper edge (1)", "beyond the lower edge (1)", "NaN (1)", "+infinite (1)", "-infinite (1)"):
        assert said in svg


def test_a_lone_value_between_gaps_is_a_dot() -> None:
    y = np.array([np.nan, 1.0, np.nan, 2.0, 3.0])
    figure = draw("curves", Panel("k", "x", (Line("k", np.arange(5.0), y),))).figure()
    dots = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [line.get_xdata().tolist() for line in dots] == [[1.0]]


def test_wrong_names_are_errors_with_a_suggestion(tmp_path: Any) -> None:
    with pytest.raises(UnknownOption, match="Did you mean 'curves'"):
        draw("curvse", _panel("one seed"))
    with pytest.raises(UnknownOption, match="Did you mean 'limits'"):
        draw("curves", _panel("one seed"), limit=(0, 1))
    with pytest.raises(UnknownOption, match="format"):
        draw("curves", _panel("one seed")).save(tmp_path / "x.bmp")
    with pytest.raises(BadInput, match="cannot be drawn in characters"):
        draw("stages", _bars("one seed")).text()
