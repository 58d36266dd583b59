"""The value of a setting is written in one way by every door: 3e-4, 0.003, 100000."""

from __future__ import annotations

import json
import math
from pathlib import Path

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook.cli.app import app
from rollbook.runs.grouping import groups_of
from rollbook.system.texts import number_text, setting_text

_CASES = Path(__file__).parents[2] / "dashboard" / "src" / "data" / "settings.cases.json"


def test_the_page_writes_settings_as_python_does() -> None:
    for value, text in json.loads(_CASES.read_text(encoding="utf-8")):
        assert setting_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_with_all_its_figures_is_that_number(value: float) -> None:
    assert float(number_text(value, None)) == value
    assert math.isclose(float(number_text(value)), value, rel_tol=1e-5, abs_tol=5e-324)


def test_names_tables_sentences_and_differences_write_a_setting_alike(tmp_path: Path) -> None:
    for lr, steps in ((3e-4, 100_000), (3e-3, 100_000), (3e-3, 2_000_000)):
        with rollbook.init(
            "p", "ppo", config={"lr": lr, "steps": steps}, dir=tmp_path, sinks=[], keeper="import"
        ) as run:
            run.log({"test/return": lr}, env_step=1)
    runs = rollbook.open(tmp_path)
    names = " ".join(group.name for group in groups_of(runs.rows(), ["config.lr", "config.steps"]))
    texts = {"groups": names}
    for command in (
        ("ls", str(tmp_path), "--columns", "lr,steps"),
        ("diff", str(tmp_path)),
        ("sweep", str(tmp_path), "--metric", "test/return"),
        ("show", str(runs.rows()[0]["path"])),
    ):
        done = CliRunner().invoke(app, command, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        texts[command[0]] = done.output
    for door, text in texts.items():
        for other in ("0.0003", "3e-04", "100,000", "2,000,000", "2e+06", "1e+05", "3e-3 "):
            assert other not in text, f"{door} has {other}: {text}"
    assert all("0.003" in texts[door] for door in ("groups", "ls", "diff"))
    assert all("3e-4" in texts[door] for door in ("groups", "ls", "diff"))
