"""Finding, filtering and grouping runs."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook.errors import AmbiguousRun, BadInput, RunNotFound
from rollbook.runs import catalog
from rollbook.runs.conditions import holds
from rollbook.schema import manifest


def make(root: Path, project: str, name: str, identity: str, **about: Any) -> Path:
    """A run that is nothing but its run.json."""
    folder = root / project / f"{name}-{identity}"
    folder.mkdir(parents=True)
    page = {
        "format": 1,
        "id": identity,
        "project": project,
        "name": name,
        "status": "finished",
        "seed": None,
        "tags": [],
        "config": {},
        "summary": {},
        "clocks": ["env_step"],
        "attempts": [{"n": 1, "parent": None, "cut": None, "writer": "w"}],
        **about,
    }
    (folder / "run.json").write_text(json.dumps(page))
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "runs"
    for seed in range(3):
        make(root, "cartpole", "ppo", f"p{seed}", seed=seed, config={"lr": 10.0 ** -(seed + 2), "algo": "ppo"})
    make(root, "cartpole", "dqn", "d0", seed=0, config={"lr": 1e-3, "algo": "dqn"}, tags=["paper"], status="crashed")
    make(root, "ant", "sac", "s0", seed=0, config={"algo": "sac", "net": {"layers": 2}}, summary={"best": 5000})
    (root / "notes").mkdir()
    (root / "notes" / "todo.txt").write_text("not a run")
    return root


def ids(runs: rollbook.RunSet) -> list[str]:
    return sorted(row["id"] for row in runs.rows())


def test_open_finds_all_runs_a_projects_runs_or_the_one_run(root: Path, tmp_path: Path) -> None:
    assert ids(rollbook.open(root)) == ["d0", "p0", "p1", "p2", "s0"]
    assert ids(rollbook.open(root / "ant")) == ["s0"]
    assert ids(rollbook.open(root / "ant" / "sac-s0")) == ["s0"]
    assert len(rollbook.open(root / "notes")) == 0
    with pytest.raises(RunNotFound, match="no such folder"):
        rollbook.open(root / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunNotFound, match=r"this is a file\. Pass a folder of runs"):
        rollbook.open(tmp_path / "file")


def test_what_a_listing_keeps_for_the_next_one_is_for_the_eyes_of_its_user_alone(
    root: Path, tmp_path: Path, tuned: Callable[..., None]
) -> None:
    tuned(cached_runs=1)
    assert len(ids(rollbook.open(root))) == 5
    cache = tmp_path / "cache" / "rollbook"
    assert list(cache.glob("catalog-*.json"))
    assert cache.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("config.lr < 5e-3", ["d0", "p1", "p2"]),
        ("config.algo == 'ppo' and seed in [0, 2]", ["p0", "p2"]),
        ("not status == 'finished'", ["d0"]),
        ("tags has 'paper' or summary.best >= 5000", ["d0", "s0"]),
        ("config.net.layers == 2", ["s0"]),
        ("config['lr'] < 5e-3 and config[\"algo\"] = 'ppo'", ["p1", "p2"]),
        ("config['net'] ['layers'] == 2", ["s0"]),
        ("name = 'config[\"lr\"]'", []),
        ("config.lr == None", ["s0"]),
        ("config.lr between 1e-4 and 9e-3", ["d0", "p1", "p2"]),
        ("project != 'ant' and name not in ('dqn')", ["p0", "p1", "p2"]),
        ("name like 's%' or notes = 'good'", ["s0"]),
        ("config.lr is not null and seed >= 1", ["p1", "p2"]),
        ("group is null and seed = 0", ["d0", "p0", "s0"]),
        ("seed == -1", []),
        ("seed + 1 = 2", ["p1"]),
    ],
)
def test_where_keeps_the_runs_for_which_the_condition_holds(root: Path, condition: str, expected: list[str]) -> None:
    assert ids(rollbook.open(root).where(condition)) == expected


def test_runs_that_disagree_about_the_kind_of_a_setting_are_found_by_its_text(tmp_path: Path) -> None:
    """As SB3's ent_coef, a number or 'auto': as soon as one run differed no run had the text any more, in silence."""
    for name, value in {"a": "auto", "b": 0.1, "c": ["auto", 1], "d": None, "e": '"auto"'}.items():
        rollbook.init("p", name, config={"ent_coef": value}, dir=tmp_path, sinks=[], keeper="inline").finish()
    runs = rollbook.open(tmp_path)
    assert [book.name for book in runs.where("config.ent_coef = 'auto'")] == ["a"]
    assert sorted(book.name for book in runs.where("config.ent_coef in ['auto', '0.1']")) == ["a", "b"]
    assert [book.name for book in runs.where("try_cast(config.ent_coef as double) < 1")] == ["b"]
    assert set(runs.table(["config.ent_coef"])["config.ent_coef"].to_pylist()) == {
        "auto",
        "0.1",
        "auto, 1",
        None,
        '"auto"',
    }


@pytest.mark.parametrize(
    "condition",
    [
        "",
        "config.lr <",
        "__import__('os').system('true')",
        "seed = (select 1)",
        "seed = 1; drop table runs",
        "seed = 1) union select (true",
        "exists (from read_text('/etc/passwd'))",
        "config.algo > 3",
    ],
)
def test_a_condition_is_one_expression_or_a_clear_error(root: Path, condition: str) -> None:
    with pytest.raises(BadInput, match=r"Write it like|cannot be answered"):
        rollbook.open(root).where(condition)


@pytest.mark.parametrize(
    ("ask", "suggestion"),
    [
        (lambda runs: runs.where("sed == 1"), "Did you mean 'seed'"),
        (lambda runs: runs.where("config.lrr > 3"), "Did you mean 'config.lr'"),
        (lambda runs: runs.where("config.layers == 2"), "Did you mean 'config.net.layers'"),
        (lambda runs: runs.where('status = "finished"'), "single quotes"),
        (lambda runs: runs.group_by("confg.algo"), "Did you mean 'config.algo'"),
        (lambda runs: runs.one(sed=3), "Did you mean 'seed'"),
        (lambda runs: runs.table(columns=["config.lrr"]), "Did you mean 'config.lr'"),
    ],
)
def test_a_field_that_no_run_has_is_an_error_with_a_suggestion(root: Path, ask: Any, suggestion: str) -> None:
    with pytest.raises(BadInput, match=suggestion):
        ask(rollbook.open(root))


def test_a_setting_is_found_by_its_own_name_where_no_other_has_it() -> None:
    nested = {
        "agent": {"passes": 3, "net": {"width": 8}},
        "critic": {"net": {"width": 9}},
        "depth": 2,
        "net": {"depth": 5},
    }
    runs = rollbook.RunSet([{"seed": 1, "config": nested, "name": "a"}])
    asked = ["passes = 3", "agent.net.width > 7", "depth = 2", "seed = 1", "net.depth = 5", "critic.net.width = 9"]
    assert [len(runs.where(condition)) for condition in asked] == [1] * len(asked)
    assert list(runs.group_by("passes")) == [3]
    with pytest.raises(BadInput, match=r"'config\.agent\.net\.width' or 'config\.critic\.net\.width'"):
        runs.where("width > 7")


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(BadInput):
        assert len(holds(text, [{"seed": 1}])) == 1


def test_a_run_is_meant_by_the_same_words_everywhere(root: Path) -> None:
    runs = rollbook.open(root)
    assert runs.one("ant").id == runs.one("sac").id == runs.one("ant/sac").id == runs.one("sac-s0").id == "s0"
    with pytest.raises(AmbiguousRun, match="newest=True"):
        runs.one("ppo")
    assert runs.one("ppo", newest=True).name == "ppo"
    assert runs.one("last").id == runs.last().id


def test_one_gives_the_book_or_lists_the_candidates(root: Path) -> None:
    runs = rollbook.open(root)
    assert runs.one("cartpole/ppo", seed=1).id == "p1"
    assert runs.one("d0").id == "d0"
    assert runs.one(config={"algo": "sac"}).id == runs.one(algo="sac").id == "s0"
    with pytest.raises(AmbiguousRun, match=r"3 runs fit.*p0 \(seed 0"):
        runs.one("cartpole/ppo")
    with pytest.raises(RunNotFound, match="Candidates: cartpole/ppo"):
        runs.one("ppo", seed=9)


def test_group_by_splits_a_set_by_a_field(root: Path) -> None:
    groups = rollbook.open(root).group_by("config.algo")
    assert {name: ids(group) for name, group in groups.items()} == {
        "dqn": ["d0"],
        "ppo": ["p0", "p1", "p2"],
        "sac": ["s0"],
    }
    assert ids(rollbook.open(root).filter(lambda row: row["seed"] == 2)) == ["p2"]
    assert ids(rollbook.open(root)[:2]) == sorted(row["id"] for row in rollbook.open(root).rows()[:2])


def test_damaged_runs_are_passed_over(root: Path) -> None:
    (root / "ant" / "sac-s0" / "run.json").write_bytes(b"\x00\xff{")
    assert ids(rollbook.open(root)) == ["d0", "p0", "p1", "p2"]


def test_a_change_is_seen_at_the_next_listing(root: Path) -> None:
    before = rollbook.open(root)
    path = root / "ant" / "sac-s0" / "run.json"
    page = json.loads(path.read_text())
    page["summary"] = {"best": 6000}
    path.write_text(json.dumps(page) + " ")
    assert before.where("summary.best == 5000").rows()
    assert ids(rollbook.open(root).where("summary.best == 6000")) == ["s0"]


def test_a_large_folder_is_listed_from_the_cache_without_reading_runs(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(300):
        make(root, "many", "run", f"{n:04d}", seed=n)
    first = rollbook.open(root).rows()
    monkeypatch.setattr(catalog, "_known", {})  # another process
    read = []
    real = manifest.read
    monkeypatch.setattr(manifest, "read", lambda path: read.append(path) or real(path))
    assert rollbook.open(root).rows() == first
    assert not read
    assert not [name for _, _, names in os.walk(root) for name in names if "catalog" in name], "nothing is put in a run"


def test_a_run_whose_process_vanished_is_crashed_and_one_elsewhere_stale(root: Path) -> None:
    from rollbook.system import liveness

    for name, change in (("dead", {"pid": 2**22 + 1}), ("far", {"boot_id": "other", "host": "elsewhere"})):
        folder = make(root, "p", name, name, status="running", attempts=[{"n": 1, "writer": "w"}])
        journal = folder / "data" / "journal" / "w"
        journal.mkdir(parents=True)
        (journal / "writer.json").write_text(json.dumps({**liveness.identity(), **change}))
        os.utime(folder / "run.json", (0, 0))  # nothing was heard of it for long
    status = {row["id"]: row["status"] for row in rollbook.open(root / "p").rows()}
    assert status == {"dead": "crashed", "far": "stale"}
