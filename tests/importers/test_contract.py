"""Every importer of the registry keeps the contract of importers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from foreign_samples import SAMPLES
from rollbook import testing
from rollbook.formats import importers
from rollbook.formats.importers import _registry as importers_registry
from rollbook.formats.importers._found import FoundRun
from rollbook.formats.importers._into_runs import EARLY, early_fields
from rollbook.formats.importers._names import as_name


@pytest.mark.parametrize("check", testing.IMPORTER_CHECKS.values(), ids=testing.IMPORTER_CHECKS)
@pytest.mark.parametrize("name", importers.names())
def test_an_importer_keeps_the_contract(name: str, check: Any, tmp_path: Path) -> None:
    (tmp_path / "sample").mkdir()
    (tmp_path / "work").mkdir()
    check(lambda: importers.make(name), SAMPLES[name](tmp_path / "sample"), tmp_path / "work")


@pytest.mark.parametrize(
    "name", some_of(importers.names(), lambda name: name in ("csv", "jsonl", "tensorboard", "wandb"))
)
def test_hydras_configuration_next_to_the_files_is_the_runs_where_the_tool_has_no_other(
    name: str, tmp_path: Path
) -> None:
    sample = SAMPLES[name](tmp_path)
    runs = [run.read_details() for run in importers.make(name).runs(sample)]
    for run in runs:
        hydra = run.files[0].parent / ".hydra"
        hydra.mkdir(exist_ok=True)
        (hydra / "config.yaml").write_text("robot: {name: ant, mass: 0.5}\nseed: 11\n")
    done = importers.import_runs(sample, format=name, dir=tmp_path / "imported")
    for run, imported in zip(runs, done, strict=True):
        (book,) = rollbook.open(imported.folder)
        assert book.config["robot"] == {"name": "ant", "mass": 0.5}
        assert {name: book.config[name] for name in run.config} == run.config
        assert book.seed == (11 if run.seed is None else run.seed)


@pytest.mark.parametrize("name", importers.names())
def test_what_is_known_of_a_run_before_its_rows_are_read_is_in_its_listing_too(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name](tmp_path)
    known = [
        early_fields(FoundRun(run, name, sample), "", as_name(run.project or sample.stem))
        for run in importers.make(name).runs(sample)
    ]
    for before, imported in zip(known, importers.import_runs(sample, format=name, dir=tmp_path / "runs"), strict=True):
        (after,) = rollbook.open(imported.folder).rows()
        assert {field: before[field] for field in EARLY if field != "id"} == {
            field: after[field] for field in EARLY if field != "id"
        }


@pytest.mark.parametrize("name", importers.names())
def test_an_importer_says_what_its_runs_are(name: str) -> None:
    what = importers_registry.what(name)
    assert what != name
    assert 0 < len(what) <= 30


def test_every_importer_of_the_registry_has_a_sample_here() -> None:
    assert set(SAMPLES) == set(importers.names())


def _told() -> dict[str, list[str]]:
    """Format -> the cells of the table of docs/importers.md about what comes with the rows."""
    text = (Path(__file__).parents[2] / "docs" / "importers.md").read_text(encoding="utf-8")
    head = "| format | configuration | seed | group | project | tags | notes | a failed run |\n"
    lines = text.partition(head)[2].splitlines()[1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[: lines.index("")]]
    return {row[0].strip("`"): row[1:] for row in rows}


@pytest.mark.parametrize("name", sorted(set(importers.names()) - {"slime"}))  # it needs torch, and has none of these
def test_the_docs_say_what_comes_with_the_rows(name: str, tmp_path: Path) -> None:
    runs = [run.read_details() for run in importers.make(name).runs(SAMPLES[name](tmp_path))]
    for run in runs:
        list(run.rows())
    found = [
        any(has(run) for run in runs)
        for has in (
            lambda run: bool(run.config),
            lambda run: run.seed is not None,
            lambda run: run.group is not None,
            lambda run: run.project is not None,
            lambda run: bool(run.tags),
            lambda run: bool(run.notes),
            lambda run: run.status != "finished",
        )
    ]
    assert _told().get(name, [""] * 7) == ["yes" if one else "" for one in found]
