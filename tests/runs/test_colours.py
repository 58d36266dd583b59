"""A run and a group keep their colour: in charts of any kind, whatever else is drawn, and over time."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import rollbook
from rollbook.plots._style import THEMES
from rollbook.runs.colours import COLOURS, colours_of_groups, keep, kept
from rollbook.runs.groups import looks_of


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three algorithms, two seeds each."""
    folder = tmp_path_factory.mktemp("colours") / "runs"
    for algo in ("ppo", "dqn", "sac"):
        for seed in (1, 2):
            with rollbook.init(
                "cartpole", algo, seed=seed, config={"algo": algo}, dir=folder, sinks=[], keeper="import"
            ) as run:
                for step in range(20):
                    run.log({"train/return": float(step * seed)}, env_step=step)
    return folder


def curves(runs: Any, theme: str = "light") -> dict[str, int]:
    """Group -> its colour in a chart of curves, as a number from 1."""
    (legend,) = runs.plot("train/return", by="config.algo").figure(theme).legends
    return {
        text.get_text().split(":")[0]: THEMES[theme].series.index(line.get_color()) + 1
        for line, text in zip(legend.get_lines(), legend.get_texts(), strict=True)
    }


def test_a_group_has_one_colour_in_every_chart_however_many_others_are_drawn(recorded: Path) -> None:
    runs = rollbook.open(recorded)
    alone = curves(runs.where("config.algo = 'sac'"))
    every = curves(runs)
    assert len(set(every.values())) == 3
    assert alone["sac"] == every["sac"]
    assert curves(runs.where("config.algo != 'ppo'")) == {name: every[name] for name in ("dqn", "sac")}
    comparison = runs.compare("train/return", by="config.algo")
    for chart in ("intervals", "profiles"):
        svg = comparison.plot(chart).svg()
        drawn = {int(n) for n in re.findall(r"--rb-series-(\d+)", svg.partition("</style>")[2] or svg)}
        assert set(every.values()) <= drawn, f"{chart}: {every} {drawn}"
    assert curves(runs, "dark") == every


def test_numbers_keep_no_colours_and_have_those_that_a_picture_would_keep(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    shutil.copytree(recorded, folder, ignore=shutil.ignore_patterns(".rollbook"))
    runs = rollbook.open(folder)
    numbers = runs.curves("train/return", by="config.algo").looks
    assert runs.compare("train/return", by="config.algo").looks == numbers
    assert not list(folder.rglob("colours.json"))
    assert curves(runs) == {name: look + 1 for name, look in numbers.items()}
    assert list(folder.rglob("colours.json"))


def test_colours_are_kept_beside_the_runs_and_move_with_them(recorded: Path, tmp_path: Path) -> None:
    every = curves(rollbook.open(recorded))
    shutil.copytree(recorded, tmp_path / "elsewhere")
    assert curves(rollbook.open(tmp_path / "elsewhere").where("config.algo = 'sac'"))["sac"] == every["sac"]


def rows_of(folder: Path, names: list[str]) -> list[list[dict[str, str]]]:
    return [[{"path": str(folder / name), "id": name}] for name in names]


def test_twelve_groups_have_twelve_colours_and_a_chosen_one_stays(tmp_path: Path) -> None:
    names = [f"g{n}" for n in range(13)]
    colours = colours_of_groups(rows_of(tmp_path, names))
    assert sorted(colours[:COLOURS]) == list(range(1, COLOURS + 1))
    assert colours_of_groups(rows_of(tmp_path, names[::-1])) == colours[::-1]
    (row,) = rows_of(tmp_path, ["g3"])
    keep(row, {}, {"g3": 9})
    assert kept(row)["g3"] == (0, colours[3]), "a colour is given once"
    keep(row, {}, {"g3": 9}, chosen=True)
    assert colours_of_groups([row]) == [9]


def test_groups_that_share_a_colour_differ_in_their_dashes(tmp_path: Path) -> None:
    names = [f"g{n}" for n in range(2 * COLOURS + 1)]
    rows = [{"path": str(tmp_path / name), "id": name, "config": {"algo": name}} for name in names]
    looks = looks_of(rows, str(tmp_path), "config.algo")
    assert sorted(looks.values()) == sorted([*range(2 * COLOURS), looks["g24"]])
    assert looks["g24"] // COLOURS == 2


def test_where_nothing_can_be_written_colours_follow_from_the_ids(tmp_path: Path) -> None:
    names = ["a1", "b7", "3f2a91"]
    gone = rows_of(tmp_path / "no folder", names)
    assert colours_of_groups(gone) == colours_of_groups(gone[::-1])[::-1] == [2, 3, 6]
    assert colours_of_groups(rows_of(tmp_path, names), local=False) == [2, 3, 6]


def test_where_nothing_can_be_kept_twelve_groups_have_twelve_colours(tmp_path: Path) -> None:
    names = [f"{number:08x}" for number in range(COLOURS)]
    groups = rows_of(tmp_path, names)
    assert sorted(colours_of_groups(groups, local=False)) == list(range(1, COLOURS + 1))
    assert colours_of_groups(groups[:1], local=False) == colours_of_groups(groups, local=False)[:1]
    assert not (tmp_path / ".rollbook").exists()


@pytest.mark.parametrize("content", ["", "[]", '{"a1": 3}', '{"a1": [0, 99]}', '{"a1": [true, "x"]}', "{" * 5000])
def test_a_file_that_holds_no_colours_is_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / ".rollbook").mkdir()
    (tmp_path / ".rollbook" / "colours.json").write_text(content)
    assert kept(rows_of(tmp_path, ["a1"])[0]) == {}
    assert colours_of_groups(rows_of(tmp_path, ["a1"])) == [1]
