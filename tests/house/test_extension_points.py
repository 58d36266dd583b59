"""The extension points: one entry in a registry makes a new thing appear, and what is listed is in the docs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook import health, sinks, testing
from rollbook.book import charts as book_charts
from rollbook.cli.app import app
from rollbook.errors import UnknownOption
from rollbook.formats import exporters, importers
from rollbook.formats.exporters import _registry as exporters_registry
from rollbook.formats.importers import _registry as importers_registry
from rollbook.health import _registry as rules_registry
from rollbook.plots import CHARTS
from rollbook.plots._registry import chart_named
from rollbook.protocols import ForeignRun, Row
from rollbook.runs import charts as runs_charts
from rollbook.runs import fields
from rollbook.schema.tables import TABLES
from rollbook.server.runs.columns import own_columns, value_of
from rollbook.server.shared.catalogue import RunRow
from rollbook.sinks import Memory, filters
from rollbook.sinks import _registry as sinks_registry
from rollbook.sinks.filters._base import Filter

DOCS = Path(__file__).resolve().parents[2] / "docs"


class OwnSink(Memory):
    """Keeps rows."""


class OwnFilter(Filter):
    """Hands on rows."""

    name = "mine"

    def __init__(self, to: Any) -> None:
        super().__init__(to)


class OwnRule:
    """Says nothing."""

    name, tables = "mine", frozenset({"metrics"})

    def open(self, run: Any) -> None:
        return None

    def look(self, rows: Any, now: float) -> Any:
        return ()


class OwnImporter:
    """Numbers, one a line."""

    name = "mine"

    def finds(self, path: Path) -> bool:
        return path.suffix == ".numbers" and path.is_file()

    def runs(self, path: Path) -> list[ForeignRun]:
        run = ForeignRun(path.stem, files=[path])
        run.rows = lambda: [
            Row(1.7e9 + n, {"step": n}, {"number": float(line)}) for n, line in enumerate(path.read_text().split())
        ]
        return [run]


class OwnExporter:
    """How many runs there are."""

    name, table = "mine", ""

    def write(self, runs: Any, out: Path) -> dict[str, int]:
        out.write_text(str(len(runs)))
        return {"runs": len(runs)}


DOORS: dict[str, tuple[Any, str, dict[str, str], type]] = {
    "sink": (sinks, "rollbook.sinks.mine", sinks_registry._SINKS, OwnSink),
    "filter": (filters, "rollbook.sinks.filters.mine", filters._FILTERS, OwnFilter),
    "rule": (health, "rollbook.health.mine", rules_registry._RULES, OwnRule),
    "importer": (importers, "rollbook.formats.importers.mine", importers_registry._IMPORTERS, OwnImporter),
    "exporter": (exporters, "rollbook.formats.exporters.mine", exporters_registry._EXPORTERS, OwnExporter),
}


@pytest.fixture(params=DOORS)
def door(request: Any, monkeypatch: Any) -> Any:
    """A room in which one file stands and one line lists it."""
    room, place, registry, made = DOORS[request.param]
    module = ModuleType(place)
    setattr(module, made.__name__, made)
    monkeypatch.setitem(sys.modules, place, module)
    monkeypatch.setitem(registry, "mine", f"mine:{made.__name__}")
    return request.param, room, made


def test_one_line_makes_it_known_by_name(door: Any) -> None:
    word, room, made = door
    assert "mine" in room.names()
    given = (Memory(),) if word == "filter" else ()
    assert type(room.make("mine", *given)) is made
    with pytest.raises(UnknownOption, match=f"(no {word} is|{word}) named 'mien'.*'mine'"):
        room.make("mien", *given)


def test_a_computed_field_is_a_column_by_every_door(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(fields.COMPUTED, "letters", lambda row: len(str(row["name"])))
    for name in ("ab", "abc"):
        rollbook.init("p", name, dir=tmp_path, sinks=[], keeper="import").finish()
    runs = rollbook.open(tmp_path)
    assert [run["name"] for run in runs.where("letters > 2").rows()] == ["abc"]
    assert sorted(runs.table(["letters"])["letters"].to_pylist()) == [2, 3]
    assert [run["name"] for run in runs.sorted("-letters").rows()] == ["abc", "ab"]
    assert len(runs.group_by("letters")) == 2
    shown = CliRunner().invoke(app, ["ls", str(tmp_path), "--columns", "name,letters", "--json"])
    assert sorted(row["letters"] for row in json.loads(shown.stdout)) == [2, 3]
    assert "letters" in own_columns()  # which the page offers
    for about in runs.rows():
        row = RunRow(about["id"], about["path"], about, ())
        assert value_of("letters", row, None) == len(about["name"])


def test_a_listed_importer_is_offered_by_the_command(monkeypatch: Any, tmp_path: Path) -> None:
    module = ModuleType("rollbook.formats.importers.mine")
    module.OwnImporter = OwnImporter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rollbook.formats.importers.mine", module)
    monkeypatch.setitem(importers_registry._IMPORTERS, "mine", "mine:OwnImporter")
    source = tmp_path / "old.numbers"
    source.write_text("1\n2\n3\n")
    assert "Numbers, one a line" in CliRunner().invoke(app, ["import", str(source), "--formats"]).output
    done = CliRunner().invoke(app, ["import", str(source), "--dir", str(tmp_path / "runs")])
    assert "3 rows" in done.output, done.output


def test_what_is_listed_stands_in_its_page() -> None:
    listed = {
        "sinks.md": [f"`{name}`" for name in (*sinks.names(), *filters.names())],
        "health.md": [f"| `{name}` |" for name in health.names()],
        "importers.md": [f"| `{name}` |" for name in importers.names()],
        "exporters.md": [f"| `{name}` |" for name in exporters.names()],
        "internals.md": [f"| {name} |" for name in sorted(TABLES.keys() - {"metrics"})],  # by scripts/reference.py
    }
    missing = [
        f"docs/{page} has no {line}"
        for page, lines in listed.items()
        for line in lines
        if line not in (DOCS / page).read_text("utf-8")
    ]
    assert missing == []


def test_a_listed_chart_is_named_where_another_was_asked_for(monkeypatch: Any) -> None:
    monkeypatch.setitem(CHARTS, "mine", CHARTS["curves"])
    assert chart_named("mine") is CHARTS["curves"]
    with pytest.raises(UnknownOption, match="'mine'"):
        chart_named("mien")


def test_every_listed_chart_has_data_to_draw() -> None:
    for makers, of in ((book_charts._MAKERS, "run"), (runs_charts._MAKERS, "runs")):
        assert set(makers) == {name for name, chart in CHARTS.items() if chart.of in (of, "both")}


def test_outsiders_can_run_every_contract() -> None:
    for word in ("sink", "filter", "rule", "importer", "kind"):
        assert callable(getattr(testing, f"check_{word}"))
