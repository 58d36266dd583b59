"""Names that stand beside each other say different things where they differ, at any width and by every door."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.cli.output import cut_apart
from rollbook.plots import draw
from rollbook.plots._bars_in_characters import bars_in_characters
from rollbook.plots._shapes import Bars, Line, Panel, Spans, Threads
from rollbook.system.short_names import short_names

_CASES = Path(__file__).parents[2] / "dashboard" / "src" / "data" / "names.cases.json"
_LABELS = ("lr", "gamma", "ent_coef", "net.width", "layers", "total_timesteps", "activation", "a")
_VALUES = ("0.99", "0.995", "0.999", "3e-4", "0.001", "1000", "10000", "relu", "tanh", "true", "none")

_settings = st.lists(st.tuples(st.sampled_from(_LABELS), st.sampled_from(_VALUES)), min_size=1, max_size=5)
_names = st.one_of(
    _settings.map(lambda pairs: "ppo " + " ".join(f"{label} {value}" for label, value in pairs)),
    _settings.map(lambda pairs: "sac-" + ",".join(f"{label}={value}" for label, value in pairs)),
    st.builds(
        "CartPole-v1__{}__{}__17000000{}".format,
        st.sampled_from(("ppo", "a2c")),
        st.integers(0, 3),
        st.integers(10, 30),
    ),
    st.text("ab1.…#-_ ,", min_size=1, max_size=30),
    st.text(min_size=1, max_size=30),
)


def sweep(many: int = 60) -> list[str]:
    """Names of groups of a sweep; the usual values of the last two settings are left out of them."""
    settings = itertools.product((0.99, 0.995, 0.999), ("3e-4", "0.001", "0.003"), (0, 0.01, 0.001), (1, 2), (64, 128))
    return [
        f"ppo lr {lr} gamma {gamma} ent_coef {ent}" + " layers 1" * (layers == 1) + " width 128" * (width == 128)
        for gamma, lr, ent, layers, width in settings
    ][:many]


def _told_apart(names: list[str], shown: list[str]) -> bool:
    of: dict[str, str] = {}
    return all(of.setdefault(short, name) == name for name, short in zip(names, shown, strict=True))


@given(st.lists(_names, min_size=1, max_size=40), st.integers(3, 60))
def test_two_names_that_differ_never_get_one_text(names: list[str], most: int) -> None:
    short = short_names(names, most)
    assert _told_apart(names, short)
    assert all(len(text) <= max(most, 3) for text in short)


def test_the_page_shortens_names_as_python_does() -> None:
    for case in json.loads(_CASES.read_text(encoding="utf-8")):
        assert short_names(case["names"], case["most"]) == case["short"], case


@pytest.mark.parametrize("most", [60, 40, 30, 20, 12, 9, 5])
def test_a_sweep_of_sixty_keeps_what_differs_and_whole_numbers(most: int) -> None:
    names = sweep()
    short = short_names(names, most)
    assert len(set(short)) == 60
    values = {word for name in names for word in name.split()}
    for name in short if most >= 12 else ():
        words = name.partition("…")[0].split()
        assert {word for word in words if word[0].isdigit()} <= values, "half a number says something else"


@given(st.lists(_names, min_size=1, max_size=20), st.integers(8, 60))
def test_a_column_of_a_table_tells_its_texts_apart(names: list[str], width: int) -> None:
    assert _told_apart(names, cut_apart(names, width))


def _line(label: str) -> Line:
    return Line(label, np.arange(3.0), np.arange(3.0))


@pytest.mark.parametrize("inches", [3.3, 7.0])
@pytest.mark.parametrize("door", ["curves", "intervals", "aggregates", "parallel", "small_multiples", "timeline"])
def test_every_chart_tells_the_names_of_a_large_sweep_apart(door: str, inches: float) -> None:
    names = sweep(40)
    long = [f"a study of the year 2026 by everybody/{name}" for name in names]
    n = len(long)
    ones = np.ones(n)
    bars = Bars("t", "a", tuple(long), ones, ones, ones, tuple(np.ones(1) for _ in long), tuple("" for _ in long))
    data: Any = {
        "curves": lambda: Panel("t", "a", tuple(map(_line, long))),
        "intervals": lambda: bars,
        "aggregates": lambda: [bars],
        "parallel": lambda: Threads("t", ("config.name",), (tuple(long[:9]),), np.arange(9.0), "r"),
        "small_multiples": lambda: [Panel(name, "a", (_line("x"),)) for name in long[:20]],
        "timeline": lambda: Spans("t", tuple(name.replace("/", " ") for name in long), np.arange(n) * 1.0, ones),
    }[door]()
    figure = draw(door, data, size=(inches, 3.0)).figure()
    axes = figure.axes
    shown = {
        "curves": lambda: [text.get_text() for text in figure.legends[0].get_texts()],
        "intervals": lambda: [text.get_text() for text in axes[0].get_yticklabels()],
        "aggregates": lambda: [text.get_text() for text in axes[0].get_yticklabels()],
        "parallel": lambda: [text.get_text() for text in axes[0].texts if text.get_text()],
        "small_multiples": lambda: [one.get_title("left") for one in axes],
        "timeline": lambda: [text.get_text() for text in axes[0].get_yticklabels()],
    }[door]()
    assert len(shown) >= 7
    assert len(set(shown)) == len(shown)


def test_a_terminal_tells_them_apart() -> None:
    names = sweep(30)
    ones = np.ones(len(names))
    lines = bars_in_characters(Bars("t", "a", tuple(names), ones, ones, ones, (), tuple(names)), 60, 20)
    rows = [line[:20] for line in lines.splitlines()[1:31]]
    assert len(set(rows)) == len(rows) == 30
