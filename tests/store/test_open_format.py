"""A run is read by other programs as docs/disk-format.md says, whatever has happened to it."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from fake_writer import GONE, FakeWriter, make_run, write_run

import rollbook
from cases import some_of
from rollbook.book.book import Book
from rollbook.book.repair.doctor import repair, verify
from rollbook.errors import NewerFormat
from rollbook.schema import manifest
from rollbook.storage.sealing.folder import seal
from rollbook.system.liveness import identity

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "disk-format.md").read_text("utf-8")
OLD = Path(__file__).parent / "fixtures" / "format_one"
RECIPES = {
    name: next(
        code
        for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
        if f"import {name}" in code
    )
    for name in ("duckdb", "polars", "pandas")
}
KEY = "train/return"


def recipe(name: str, data: str, key: str) -> list[tuple[int, float]]:
    """What a recipe of the page gives, as (env_step, value)."""
    if name != "pandas":
        pytest.importorskip(name)
    code = "".join(line for line in RECIPES[name].splitlines(keepends=True) if not line.startswith("assert"))
    names: dict[str, Any] = {"data": data, "key": key}
    exec("import glob\n" + code, names)
    curve = names["curve"]
    if name == "polars":
        return [(row["env_step"], row["value"]) for row in curve.to_dicts()]
    return list(curve) if name == "duckdb" else list(zip(curve["env_step"], curve["value"], strict=True))


def ours(run: Path, key: str) -> list[tuple[int, float]]:
    table = Book(run).metrics([key], x="env_step", exact=True)
    return list(zip(table["env_step"].to_pylist(), map(float, table[key].to_pylist()), strict=True))


def ten_rows(root: Path) -> Path:
    with rollbook.init("p", "ten", dir=root, sinks=[], keeper="inline") as run:
        for step in range(10):
            run.log({KEY: float(step)}, env_step=step)
    return Path(run.folder)


def many_rows(root: Path) -> Path:
    with rollbook.init("p", "many", dir=root, sinks=[], keeper="inline") as run:
        steps = np.arange(100_000)
        run.log_many({KEY: np.sqrt(steps), "other": steps * 2.0}, env_step=steps)
        for step in range(100_000, 100_020):
            run.log({KEY: step, "other": 1.0}, env_step=step)
    return Path(run.folder)


def many_key_sets(root: Path) -> Path:
    with rollbook.init("p", "sets", dir=root, sinks=[], keeper="inline") as run:
        for step in range(1500):
            run.log({KEY: float(step), f"set/{step % 500}": 1}, env_step=step)
    return Path(run.folder)


def killed(root: Path, *, repaired: bool = False, attempts: int = 1) -> Path:
    run = make_run(root, name=f"killed-{repaired}-{attempts}", id=f"killed{attempts}{int(repaired)}")
    writer = FakeWriter(run, **identity())
    lane = writer.lane()
    stream = lane.stream(KEY, size=8192)
    for step in range(7):
        lane.rare({KEY: float(step)}, env_step=step)
    for step in range(7, 400):
        stream.log(float(step), env_step=step)
    seal(run)  # as the keeper of a living writer does
    (writer.folder / "writer.json").write_text(json.dumps({**writer.about, **GONE}))
    if repaired:
        repair(run, force=True)
    return run


def killed_and_repaired(root: Path) -> Path:
    return killed(root, repaired=True)


def rewound(root: Path) -> Path:
    """Attempt 2 goes back to seq 200 of attempt 1, in small and in large groups, and is merged with it."""
    attempts = [
        {"n": 1, "parent": None, "cut": None, "writer": "w1", "status": "crashed"},
        {"n": 2, "parent": 1, "cut": {"time": 0, "writers": {"w1": {"0": 1500}}}, "writer": "w2", "status": "finished"},
    ]
    run = make_run(root, name="rewound", id="rewound1", attempts=attempts)
    for number in (1, 2):
        writer = FakeWriter(run, f"w{number}", attempt=number, start=1.7e9 + 100 * number)
        lane = writer.lane()
        large, small = lane.stream(KEY), lane.stream(KEY, "few")
        for step in range(2000):
            (large if step % 10 else small).log(*[number * 10_000.0 + step] * (1 if step % 10 else 2), env_step=step)
        lane.rare({KEY: -1.0}, env_step=5000 * number)
        writer.close()
    seal(run, final=True, take_over=True)
    write_run(run, status="finished")
    return run


def resumed_at_a_checkpoint(root: Path) -> Path:
    with rollbook.init("p", "resumed", dir=root, sinks=[], keeper="inline", run_id="resumed1") as run:
        for step in range(3000):
            run.log({KEY: float(step)}, env_step=step)
            if step == 1000:
                half = run.save_checkpoint({"w": [1.0]})
    with rollbook.init("p", "resumed", dir=root, sinks=[], keeper="inline", run_id="resumed1", resume="must") as run:
        assert half is not None
        run.restore(half.id)
        for step in range(1001, 1400):
            run.log({KEY: -float(step)}, env_step=step)
    return Path(run.folder)


def old_and_sealed(root: Path) -> Path:
    run = root / "old" / "format-one-abcdefgh"
    shutil.copytree(OLD, run)
    seal(run, final=True)
    return run


def the_demo(root: Path) -> Path:
    pytest.importorskip("gymnasium")
    from rollbook.demo.loop import CONFIG, train

    config = {**CONFIG, "env_steps": 2048, "n_envs": 4, "rollout_steps": 32, "evaluation_episodes": 2}
    with rollbook.init("p", "demo", dir=root, sinks=[], keeper="inline", config=config) as run:
        train(run)
    return Path(run.folder)


STATES: list[Callable[[Path], Path]] = [
    ten_rows,
    many_rows,
    many_key_sets,
    killed_and_repaired,
    rewound,
    resumed_at_a_checkpoint,
    the_demo,
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("runs")
    return {make.__name__: make(root) for make in STATES}


@pytest.mark.parametrize(
    ("state", "name"),
    some_of(
        [(make.__name__, name) for make in STATES for name in RECIPES],
        lambda case: ([make.__name__ for make in STATES].index(case[0]) + [*RECIPES].index(case[1])) % 3 == 0,
    ),
)
def test_every_recipe_reads_what_the_book_reads(runs: dict[str, Path], state: str, name: str) -> None:
    expected = ours(runs[state], KEY)
    assert sorted(recipe(name, f"{runs[state]}/data", KEY)) == sorted(expected)
    assert len(expected) >= 10


@pytest.mark.parametrize("name", RECIPES)
def test_a_folder_of_runs_is_read_at_once(runs: dict[str, Path], name: str) -> None:
    root = next(iter(runs.values())).parents[1]
    expected = sorted(row for run in runs.values() for row in ours(run, KEY))
    if name == "pandas":
        pytest.skip("pandas.read_parquet takes no glob")
    assert sorted(recipe(name, f"{root}/*/*/data", KEY)) == expected


def test_filename_says_which_run_a_row_is_from(runs: dict[str, Path]) -> None:
    duckdb = pytest.importorskip("duckdb")
    root = next(iter(runs.values())).parents[1]
    files = f"read_parquet('{root}/*/*/data/metrics/*/*.parquet', union_by_name = true, filename = true)"
    found = duckdb.sql(f"select distinct parse_path(filename)[-5] from {files}").fetchall()
    assert {name for (name,) in found} == {run.name for run in runs.values()}


@pytest.mark.parametrize("name", RECIPES)
def test_of_a_killed_run_the_sealed_rows_are_read_before_repair(tmp_path: Path, name: str) -> None:
    run = killed(tmp_path)
    before = recipe(name, f"{run}/data", KEY)
    assert 0 < len(before) < 400
    assert set(before) <= set(ours(run, KEY))
    repair(run, force=True)
    assert sorted(recipe(name, f"{run}/data", KEY)) == sorted(ours(run, KEY)) == [(i, float(i)) for i in range(400)]


def test_every_file_has_its_form_and_every_identity_column(runs: dict[str, Path]) -> None:
    for run in runs.values():
        assert not list(run.glob("data/metrics/*.parquet"))
        for path in run.glob("data/*/**/*.parquet"):
            names = set(pq.read_schema(path).names)
            assert {"time", "scope", "at", "attempt", "writer", "lane", "seq"} <= names, path
            if path.parent.name in ("wide", "long"):
                assert ("digits" in names) == (path.parent.name == "long"), path


def test_what_fills_no_block_of_the_disk_is_stored_as_it_is_and_larger_tables_are_compressed(tmp_path: Path) -> None:
    def stored(rows: int) -> tuple[set[str], int]:
        """How the most rows of a run are compressed, and in how many bytes a row."""
        with rollbook.init("p", f"of {rows}", dir=tmp_path, sinks=[], rules=(), keeper="import") as run:
            for step in range(rows):
                run.log({KEY: step * 1.5}, env_step=step)
        assert ours(run.folder, KEY) == [(step, step * 1.5) for step in range(rows)]
        parts = list((run.folder / "data" / "metrics").rglob("*.parquet"))
        most = max(parts, key=lambda path: pq.read_metadata(path).num_rows)
        group = pq.read_metadata(most).row_group(0)
        return {group.column(i).compression for i in range(group.num_columns)}, most.stat().st_size // rows

    (small, _), (large, bytes_of_a_row) = stored(3), stored(3_000)
    assert (small, large) == ({"UNCOMPRESSED"}, {"ZSTD"})
    assert bytes_of_a_row < 20


def test_abandoned_rows_are_named_as_soon_as_a_rewind_is_sealed(runs: dict[str, Path]) -> None:
    for state in ("rewound", "resumed_at_a_checkpoint"):
        run = runs[state]
        everything = Book(run).table("metrics", "all")
        kept = Book(run).table("metrics")
        gone = pq.read_table(run / "data" / "abandoned.parquet").to_pylist()
        named = {(row["writer"], row["lane"], row["seq"]) for row in gone}
        rows = [
            set(zip(*(t[c].to_pylist() for c in ("writer", "lane", "seq")), strict=True)) for t in (everything, kept)
        ]
        assert rows[0] - named == rows[1]
        assert named & rows[0] == rows[0] - rows[1]
    assert pq.read_table(runs["ten_rows"] / "data" / "abandoned.parquet").num_rows == 0


def test_a_folder_of_format_one_is_read_and_becomes_format_two_when_it_is_sealed(tmp_path: Path) -> None:
    run = tmp_path / "old" / "format-one-abcdefgh"
    shutil.copytree(OLD, run)
    before = Book(run).metrics()
    assert before.num_rows == 2223
    assert before.column_names == ["env_step", "time", "a", "b", "c", "train/length", "train/return", "value/time"]
    assert sum(cell for cell in before["a"].to_pylist() if cell is not None) == 1152418900.0
    assert Book(run).table("episodes", "all").num_rows == 20
    seal(run, final=True)
    assert manifest.read(run).format == 2
    assert Book(run).metrics().equals(before)
    assert not list(run.glob("data/metrics/*.parquet"))
    assert verify(run) == []
    seal(run, final=True)
    assert Book(run).metrics().equals(before)
    found = sorted(recipe("duckdb", f"{run}/data", "a"))
    assert found == sorted(ours(run, "a"))


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    write_run(run, format=manifest.FORMAT + 1)
    with pytest.raises(NewerFormat, match="Upgrade"):
        Book(run)


def test_the_page_names_the_format_that_is_written(tmp_path: Path) -> None:
    run = ten_rows(tmp_path)
    assert json.loads((run / "run.json").read_text())["format"] == manifest.FORMAT
    assert f"| `format` | {manifest.FORMAT}." in PAGE
    assert textwrap.dedent("data/abandoned.parquet") in PAGE
