"""The test that docs/testing.md shows as an example passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import run_page

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_the_example_of_a_test_in_the_browser_passes(page: Any, serve: Any, recorded: Path) -> None:
    names: dict[str, Any] = {}
    (code,) = [code for _, code in run_page.blocks(PAGE.read_text("utf-8")) if "(page, serve, recorded)" in code]
    exec(code, names)
    names["test_the_square_of_a_run_hides_and_shows_its_curve"](page, serve, recorded)
