"""Importing rollbook costs the training process next to nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import rollbook

HEAVY = {"numpy", "pyarrow", "torch", "pandas", "polars", "duckdb", "rich", "click", "asyncio", "matplotlib"}


def loaded_by(code: str, cwd: Path) -> set[str]:
    """The modules a fresh interpreter has loaded after `code`."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_rollbook_loads_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded_by("import rollbook", tmp_path) & HEAVY


def test_opening_a_run_and_logging_loads_neither_numpy_nor_pyarrow_nor_torch(tmp_path: Path) -> None:
    code = (
        "import rollbook\n"
        "run = rollbook.init('light', 'run', dir='runs', sinks=[])\n"
        "for i in range(100): run.log({'a': float(i)}, env_step=i)\n"
    )
    assert not {"numpy", "pyarrow", "torch"} & loaded_by(code, tmp_path)


def test_listing_runs_loads_neither_numpy_nor_pyarrow(tmp_path: Path) -> None:
    with rollbook.init("light", "run", dir=tmp_path / "runs", sinks=[], keeper="inline") as run:
        run.log({"a": 1.0}, env_step=1)
    code = "import rollbook\nassert len(rollbook.open('runs').newest().rows()) == 1"
    assert not {"numpy", "pyarrow", "pandas"} & loaded_by(code, tmp_path)


def test_a_run_is_sealed_and_read_where_pandas_is_not_installed(tmp_path: Path) -> None:
    """Some versions of pyarrow look for it when they are asked for numpy's name of a type."""
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "import rollbook\n"
        "with rollbook.init('light', 'run', dir='runs', sinks=[], keeper='inline', strict=True) as run:\n"
        "    for i in range(100): run.log({'a': float(i), 'n': i, 'yes': i > 3}, env_step=i)\n"
        "    run.log_episode(return_=1.0, length=3)\n"
        "book = rollbook.open('runs').one()\n"
        "assert book.problems() == []\n"
        "assert book.metrics(['a', 'n', 'yes'], x='env_step').num_rows == 100\n"
        "assert len(book.series('a', points=10).x) and book.sql('select 1 as one').fetchall() == [(1,)]\n"
        "assert rollbook.open('runs').table(metrics=['a']).num_rows == 1\n"
    )
    loaded_by(code, tmp_path)
    from_pandas = re.compile(r"\.to_pandas_dtype\(")
    sources = Path(rollbook.__file__).parent.rglob("*.py")
    assert [path.name for path in sources if from_pandas.search(path.read_text("utf-8"))] == []


def test_looking_at_a_run_loads_no_pandas(tmp_path: Path) -> None:
    with rollbook.init("light", "run", dir=tmp_path / "runs", sinks=[], keeper="inline") as run:
        run.log({"a": 1.0}, env_step=1)
        run.log_episode(return_=1.0, length=3)
        run.note("words")
    place = str(run.folder)
    asked = [["show", place], ["episodes", place], ["verify", place], ["ls", "--dir", str(tmp_path / "runs")]]
    code = (
        "import contextlib, io, sys\n"
        "from rollbook.cli import main\n"
        f"for words in {asked!r}:\n"
        "    sys.argv = ['rollbook', *words]\n"
        "    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit): main()\n"
        "    assert said.getvalue(), words\n"
    )
    assert "pandas" not in loaded_by(code, tmp_path)


def test_every_name_in_all_can_be_had() -> None:
    for name in rollbook.__all__:
        assert getattr(rollbook, name) is not None


def test_the_version_is_stated_once() -> None:
    from importlib.metadata import version

    assert rollbook.__version__ == version("rollbook-core")
