"""What paths say: whatever differs in them keeps runs apart, and only seed, date and number make repetitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rollbook
import wild
from rollbook.formats.importers._positions import read_paths
from rollbook.runs.groups import units_of

PLAIN = ("ppo", "SAC", "td3", "dqn", "tdmpc2", "dreamerv3")
SAID = (
    "pixels",
    "ours",
    "noent",
    "her",
    "big",
    "ablation",
    "noaug",
    "layernorm",
    "v2",
    "v3",
    "x2",
    "64",
    "state",
    "agent",
    "results",
)
METHODS = st.builds(
    lambda algo, before, sign, after: f"{before}{sign if before else ''}{algo}{sign if after else ''}{after}",
    st.sampled_from(PLAIN),
    st.sampled_from(("", "", "ours", "no", "my")),
    st.sampled_from("-_+."),
    st.sampled_from(("", *SAID)),
).filter(lambda name: ".64" not in name)  # td3.64 ends with a decimal number
UNKNOWN = st.sampled_from(("baseline", "ours", "ours-v2", "my_method", "old+new", "theirs"))
KNOWN_ENVS = ("Hopper-v4", "walker_walk", "PickCube-v1", "reach-v2", "coinrun", "crafter", "Ant-v5", "ALE-Pong-v5")
UNKNOWN_ENVS = ("MyMaze", "MyEnv-v0", "kitchen_sink", "TaskB")
LAYOUTS = (
    "{m}/{e}/seed_{s}",
    "{e}/{m}/seed_{s}",
    "{m}/{e}_s{s}",
    "{m}/{e}/2026-11-28_12-00-0{s}_seed{s}",
    "{e}/{m}_seed{s}",
)


@example(["tdmpc2", "tdmpc2-pixels", "SAC", "SAC-ours"], ["walker_walk"], "{m}/{e}/seed_{s}")
@example(["SAC", "SAC-v2", "ours", "ours-v2"], ["Hopper-v4", "MyEnv-v0"], "{e}/{m}/seed_{s}")
@example(["ppo", "ppo-64"], ["Hopper-v4"], "{m}/{e}/seed_{s}")
@example(["ppo", "ppo+her", "noent_ppo"], ["reach-v2"], "{e}/{m}_seed{s}")
@given(
    st.lists(METHODS | UNKNOWN, min_size=2, max_size=5, unique_by=str.lower),
    st.lists(st.sampled_from(KNOWN_ENVS), min_size=1, max_size=3, unique=True),
    st.sampled_from(LAYOUTS),
)
def test_a_variant_is_no_algorithm_of_another_and_seeds_alone_are_repetitions(
    methods: list[str], envs: list[str], layout: str
) -> None:
    methods = ["ppo", *(method for method in methods if method.lower() != "ppo")]
    places = [(m, e, s) for m in methods for e in envs for s in (0, 1, 2)]
    told = read_paths([layout.format(m=m, e=e, s=s).split("/") for m, e, s in places])
    for place, one in zip(places, told, strict=True):
        for other_place, other in zip(places, told, strict=True):
            is_repeated = place[:2] == other_place[:2]
            assert (one.repeated == other.repeated) == is_repeated, (place, other_place)
            assert (one.group == other.group) == is_repeated, (place, other_place)
            # With an algorithm unknown, what else the path says keeps runs apart.
            of_method = (one.algo.lower() or one.other) == (other.algo.lower() or other.other)
            assert of_method == (place[0] == other_place[0]), (place, one.algo, other_place, other.algo)
        assert one.seed == place[2]
        assert one.env == place[1], (place, one.env)


@given(
    st.lists(st.sampled_from(UNKNOWN_ENVS), min_size=1, max_size=3, unique=True),
    st.sampled_from(("{m}/{e}/seed_{s}", "{e}/{m}/seed_{s}", "{m}_{e}_{s}", "{m}/{e}_s{s}", "{e}/{m}_seed{s}")),
)
def test_an_environment_of_unknown_name_is_one_where_others_are(envs: list[str], layout: str) -> None:
    places = [(m, e, s) for m in ("ppo", "sac") for e in (*envs, "Hopper-v4") for s in (1, 2)]
    told = read_paths([layout.format(m=m, e=e, s=s).split("/") for m, e, s in places])
    assert [(one.algo, one.env) for one in told] == [(m, e) for m, e, _s in places]


@given(st.lists(st.sampled_from(("MyMaze", "TaskB", "kitchen_sink", "small")), min_size=2, max_size=3, unique=True))
def test_what_nobody_knows_is_a_field_of_its_own(words: list[str]) -> None:
    told = read_paths([[m, word, f"seed_{s}"] for m in ("ppo", "sac") for word in words for s in (0, 1)])
    assert [(one.algo, one.env, one.other) for one in told] == [
        (m, "", word) for m in ("ppo", "sac") for word in words for _s in (0, 1)
    ]


def test_numbers_that_are_sizes_are_no_trials() -> None:
    told = read_paths([["net_64"], ["net_128"], ["first_1"], ["first_2"], ["PPO_1"], ["PPO_3"]])
    assert [one.group for one in told] == ["net_64", "net_128", "first", "first", "PPO", "PPO"]


@pytest.mark.parametrize("said_by", ["path", "files"])
@pytest.mark.parametrize("other", ["sac-ours", "ours", "sac+her", "sac-v2", "noent_sac"])
def test_equal_files_in_folders_of_other_names_are_no_repetitions(
    other: str, said_by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Configuration and seed are equal and known; only the folder says what differs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known = {"seed": 0, "gamma": 0.9} | ({"algo": "sac"} if said_by == "files" else {})
    for name, level in (("sac", 1.0), (other, 300.0)):
        for run in ("seed_0", "2026-01-01_12-00-00"):
            folder = tmp_path / "study" / name / "Hopper-v4" / run
            wild.put_sb3_tensorboard(folder, iter([level, level, level + 1]))
            (folder / "config.json").write_text(json.dumps(known))
    runs = rollbook.open(tmp_path / "study")
    units = dict(zip((row["name"] for row in runs.rows()), units_of(runs.rows()), strict=True))
    assert len(set(units.values())) == 2, units
    assert "" not in units.values()
    compared = runs.compare("train/return", by="algo")
    if said_by == "files" and other == "ours":  # the files say one algorithm for both: it is said that paths differ
        assert any("whose folders say different things" in sentence for sentence in compared.sentences())
    else:
        assert sorted(group.label for group in compared.groups) == sorted(["sac", other])


def test_runs_of_unknown_algorithms_are_never_one_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for n, place in enumerate(("mine/MyMaze", "theirs/MyMaze", "theirs/Other")):
        for seed in (0, 1):
            wild.put_any_table(tmp_path / "study" / place / f"seed_{seed}", iter([1.0, 2.0, 3.0 + n]))
    compared = rollbook.open(tmp_path / "study").compare("train/return", by="algo")
    assert sorted(len(group.names) for group in compared.groups) == [2, 2, 2]
    by_task = rollbook.open(tmp_path / "study").compare("train/return", by="folder.level1", task="env")
    assert not any("IQM 3.5" in sentence for sentence in by_task.sentences())


def test_ten_thousand_paths_cost_no_more_than_ten_thousand_times_one() -> None:
    """Neither many folders side by side nor many names; by counting what is looked at, not by the clock."""
    import sys

    def calls(n: int) -> int:
        seen = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal seen
            seen += event in ("call", "c_call")

        paths = [[f"{algo}_x{k}y{n}", f"net_{k}_{n}"] for k in range(n) for algo in ("ppo", "ours")]
        sys.setprofile(count)
        try:
            read_paths(paths)
        finally:
            sys.setprofile(None)
        return seen

    assert calls(800) < 5 * calls(200)
