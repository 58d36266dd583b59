"""SQL answers for the column that was named, upper and lower case as written, or names those that it could be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rollbook
from cases import some_of
from rollbook.errors import BadInput
from rollbook.schema.sql_names import SqlNames, inner, outer
from rollbook.server.shared.sql import with_book

pytest.importorskip("duckdb")

KEYS = {"Loss": 1.0, "loss": 2.0, "lOSS/a": 3.0, "Loss/A": 4.0, "Ähre": 5.0, "ähre": 6.0, "Step": 7.0, "max": 8.0}
KEYS |= {"Max": 9.0, "": 10.0, "Time": 11.0, "alone": 12.0, 'a"B': 13.0, 'A"b': 14.0, "date": 15.0, "Date": 16.0}


@pytest.fixture(scope="module", params=["one row", "a row each"])
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with all keys; in one row (and file), or a row each; and one of which each setting is another's twin."""
    folder = tmp_path_factory.mktemp("names")
    options: dict[str, Any] = {"dir": folder, "sinks": [], "keeper": "inline"}
    with rollbook.init("p", "a", config={"LR": 0.1, "lr": 0.2}, **options) as run:
        for row in [KEYS] if request.param == "one row" else [{key: value} for key, value in KEYS.items()]:
            for _ in range(10):
                run.log(row, step=1)
        for n in range(3):
            run.log_episode(**{"return": 1.0 * n, "length": 1, "Speed": 0.0, "speed": 9.0, "Return": -1.0, "loss": 5.0})
    with rollbook.init("p", "b", config={"Lr": 0.3}, **options) as run:
        run.log({"loss": 20.0})
    return folder


def _quoted(key: str) -> str:
    return '"' + key.replace('"', '""') + '"'


def _by_python(folder: Path) -> Callable[[str], list[Any]]:
    return lambda query: list(rollbook.open(folder).one("p/a").sql(query).fetchall()[0])


def _by_set(folder: Path) -> Callable[[str], list[Any]]:
    return lambda query: list(rollbook.open(folder).where("name = 'a'").sql(query).fetchall()[0])


def _by_server(folder: Path) -> Callable[[str], list[Any]]:
    book = rollbook.open(folder).one("p/a")

    def ask(query: str) -> list[Any]:
        table, _ = with_book(book, ["metrics"], lambda db: db.first(query, 10, 1 << 20))
        return [column[0].as_py() for column in table.columns]

    return ask


DOORS = [_by_python, _by_set, _by_server]


@pytest.mark.parametrize(
    ("door", "scanned"),
    some_of(
        [(door, scanned) for door in DOORS for scanned in (False, True)],
        lambda case: case[1] == (case[0] is not _by_set),
    ),
)
def test_each_key_is_answered_for_itself(
    runs: Path, door: Callable[[Path], Callable[[str], list[Any]]], scanned: bool, tuned: Callable[..., None]
) -> None:
    if scanned:
        tuned(scan_rows=1)
    ask = door(runs)
    query = ", ".join(f"max({_quoted(key)})" for key in KEYS)
    assert ask(f"select {query} from metrics") == list(KEYS.values())
    assert ask("select max(loss) from metrics") == [2.0]
    assert ask("select max(m.Loss) as loss from metrics m") == [1.0]
    assert ask("select max(Alone)::int from metrics") == [12]
    assert ask("select max(cast(alone as date)) is null from (select null as alone from metrics)") == [True]
    assert ask("select max(X) from (select loss as X, 1 as x2 from metrics)") == [2.0]
    assert ask("select 'Loss -- loss' /* LOSS */ from metrics -- LOSS") == ["Loss -- loss"]
    for wrong, candidates in {
        "LOSS": ['"Loss"', '"loss"'],
        '"ALONE"': ['"alone"'],
        "STEP": ['"Step"', '"step"'],
    }.items():
        with pytest.raises(BadInput) as refused:
            ask(f"select max({wrong}) from metrics")
        assert all(each in str(refused.value) for each in candidates)


def test_all_columns_keep_their_names(runs: Path) -> None:
    names = rollbook.open(runs).one("p/a").sql("select * from metrics").to_arrow_table().column_names
    assert set(KEYS) - {""} <= set(names)
    assert len(set(names)) == len(names)


def test_conditions_on_rows_take_the_column_as_written(runs: Path) -> None:
    book = rollbook.open(runs).one("p/a")
    assert book.episodes(where='speed > 5 and Speed < 5 and "return" > 0.5').num_rows == 2
    assert book.episodes(where='"Return" > 0').num_rows == 0
    with pytest.raises(BadInput, match='"Speed" and "speed"'):
        book.episodes(where="SPEED > 5")


def test_settings_of_runs_are_told_apart(runs: Path) -> None:
    found = rollbook.open(runs)
    for where, names in {
        "config.lr = 0.2": ["a"],
        "config.LR = 0.1": ["a"],
        "config.lr = 0.1": [],
        "config.Lr = 0.3": ["b"],
        "config.LR = 0.1 and config.lr = 0.2": ["a"],
        "config.LR = 0.1 or config.Lr = 0.3": ["a", "b"],
    }.items():
        assert sorted(row["name"] for row in found.where(where).rows()) == names, where
    settings = '"config.LR", "config.lr", "config.Lr"'
    assert found.sql(f"select {settings} from runs order by name").fetchall() == [(0.1, 0.2, None), (None, None, 0.3)]
    answer = found.sql(f'select {settings}, max("loss"), max("Loss") from metrics group by all')
    rows = sorted(answer.fetchall(), key=str)
    assert rows == [(0.1, 0.2, None, 2.0, 1.0), (None, None, 0.3, 20.0, None)]


def test_a_name_goes_into_a_query_and_out_of_it_unchanged() -> None:
    names = SqlNames({"t": ["Loss", "loss", "n"]})
    for untouched in ["select n from t", "select 'loss'", "select $$loss$$ || $a$Loss$a$", "select loss(n), Loss(1)"]:
        assert names.query(untouched) == untouched
    assert outer(names.query("select loss")) == 'select "loss"'
    assert names.query('select t."loss"') == f'select t."{inner("loss")}"'
