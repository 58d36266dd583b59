"""Other engines count every row of many runs as docs/disk-format.md says: small, large, killed, merged and rewound."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_open_format import KEY, PAGE, killed_and_repaired, many_key_sets, resumed_at_a_checkpoint, ten_rows

import rollbook
from rollbook.book.book import Book
from rollbook.cli.app import app
from rollbook.errors import BadInput
from rollbook.remote import views
from rollbook.remote.push import push
from rollbook.runs.engine_views import view_sql

SECTION = PAGE.partition("## Read many runs without rollbook")[2].partition("\n## ")[0]
RECIPES = dict(
    zip(("duckdb", "polars", "pandas"), re.findall(r"^```python\n(.*?)^```$", SECTION, re.M | re.S), strict=True)
)


def many_rows(root: Path) -> Path:
    with rollbook.init("p", "many", dir=root, sinks=[], keeper="import") as run:
        steps = np.arange(10_000)
        run.log_many({KEY: np.sqrt(steps), "other": steps * 2.0}, env_step=steps)
        for step in range(10_000, 10_020):
            run.log({KEY: step, "other": 1.0}, env_step=step)
    return Path(run.folder)


def odd_names(root: Path) -> Path:
    with rollbook.init(
        "p", "odd", dir=root, sinks=[], keeper="import", clocks=["tokens"], seed=7, config={"lr": 3e-4}
    ) as run:
        for step in range(1500):
            run.log({KEY: step, "time": 1.0, "run": True}, env_step=step, tokens=step)
        run.log({"value/time": 2.0, "writer": 1.0})
        for step in range(20):
            run.log_samples([f"s{step}"], reward=float(step), run=step)
    return Path(run.folder)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("many") / "runs"
    for make in (ten_rows, many_rows, many_key_sets, killed_and_repaired, resumed_at_a_checkpoint, odd_names):
        make(root)
    return root


def expected(root: Path) -> dict[tuple[str, str], int]:
    return {(book.project, book.id): book.metrics([KEY]).num_rows for book in rollbook.open(root)}


@pytest.mark.parametrize("engine", RECIPES)
def test_every_recipe_counts_every_row_by_run(root: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    pytest.importorskip(engine)
    monkeypatch.chdir(root.parent)
    assert CliRunner().invoke(app, ["views"]).output == view_sql("runs")
    names: dict[str, Any] = {}
    exec(f"import glob\nimport {engine}\nimport pyarrow.dataset as dataset\n" + RECIPES[engine], names)
    means = names["means"]
    if engine == "pandas":
        found = {key: int(n) for key, n in means.items()}
    else:
        rows = means.fetchall() if engine == "duckdb" else means.rows()
        found = {(project, run): n for project, run, n in rows}
    assert found == expected(root)
    assert min(found.values()) == 10


@pytest.mark.parametrize("below", ["", "p", "one run"])
def test_views_give_every_value_of_every_table_of_a_folder(root: Path, below: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    books = [Book(path.parent) for path in root.glob("*/*/run.json") if not below or path.parent.name.startswith("odd")]
    where = root / below if below in ("", "p") else books[0].path
    books = [Book(path.parent) for path in root.glob("p/*/run.json")] if below == "p" else books
    with duckdb.connect() as connection:
        connection.execute(view_sql(where))
        _compare(connection, books)


def _compare(connection: Any, books: list[Book]) -> None:
    asked = "select run, key, count(value), any_value((project, run_name, run_seed)) from metrics group by all"
    found: dict[str, dict[str, int]] = {}
    for run, key, n, about in connection.execute(asked).fetchall():
        found.setdefault(run, {})[key] = n
        (book,) = (book for book in books if book.id == run)
        assert tuple(about.values() if isinstance(about, dict) else about) == (book.project, book.name, book.seed)
    assert len(found) == len(books)
    for book in books:
        table = book.metrics()
        names = [name for name in table.column_names if name != "time" and name not in book.clocks]
        assert sum(found[book.id].values()) == sum(len(table) - table[name].null_count for name in names)
        assert found[book.id][KEY] == len(table) - table[KEY].null_count
    samples = connection.execute("select run_name, sum(reward) from samples group by all").fetchall()
    assert samples == [("odd", 190.0)]


def test_views_of_a_remote_name_its_pieces_and_count_the_same(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb = pytest.importorskip("duckdb")
    monkeypatch.setenv("ROLLBOOK_CACHE", str(tmp_path / "cache"))
    views.forget()
    folders = [path.parent for path in root.glob("*/*/run.json") if not path.parent.name.startswith("many")]
    for folder in folders:
        push(folder, f"{tmp_path}/store")
    with duckdb.connect() as connection:
        connection.execute(view_sql(f"file://{tmp_path}/store"))
        _compare(connection, [Book(folder) for folder in folders])
    views.forget()


def test_views_for_an_s3_name_the_extension_the_endpoint_and_where_credentials_come_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rollbook.runs.engine_views import _secret

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:secret@127.0.0.1:9000")
    assert _secret("s3").split("\n")[:2] == [
        "install httpfs; load httpfs; install aws; load aws;",
        "create or replace secret rollbook (type s3, provider credential_chain, endpoint '127.0.0.1:9000', "
        "use_ssl false, url_style 'path');",
    ]


def test_where_nothing_is_sealed_views_say_what_to_do(root: Path, tmp_path: Path) -> None:
    (folder,) = root.glob("p/ten-*")
    shutil.copytree(folder, tmp_path / "p" / folder.name)
    (tmp_path / "p" / folder.name / "data" / "writers.parquet").unlink()
    with pytest.raises(BadInput, match="rollbook seal RUN"):
        view_sql(tmp_path)
    assert CliRunner().invoke(app, ["seal", str(tmp_path / "p" / folder.name)]).exit_code == 0
    assert "view metrics" in view_sql(tmp_path)
