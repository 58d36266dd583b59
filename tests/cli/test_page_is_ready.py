"""What `rollbook ui` shows is there before a browser opens: built first in a checkout, or said in the terminal."""

from __future__ import annotations

import importlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rollbook
from rollbook.cli.app import app
from rollbook.server.app import BuiltPage

ui: Any = importlib.import_module("rollbook.cli.ui")
ROOT = Path(__file__).resolve().parents[2]

BUILDS = (
    "import pathlib\npage = pathlib.Path({page!r})\npage.mkdir()\n(page / 'index.html').write_text('<!doctype html>')"
)
FAILS = "import sys\nsys.exit('no node was found')"


class Served:
    """A server that ends at once."""

    settings = None
    address = "http://there/"

    def run(self) -> None:
        """Serve nobody."""


@pytest.mark.parametrize("script", [BUILDS, FAILS, None], ids=["builds", "no Node", "broken wheel"])
def test_the_page_is_built_or_the_terminal_says_why_not_before_a_browser_opens(
    script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, checkout = tmp_path / "page", tmp_path / "rollbook of \u00fc"
    monkeypatch.setattr("rollbook.server.app.BuiltPage", lambda: BuiltPage(page))
    monkeypatch.setattr(ui, "_CHECKOUT", checkout)
    for folder in ("scripts", "dashboard", "runs"):
        (checkout / folder).mkdir(parents=True)
    if script is not None:
        (checkout / "dashboard" / "package.json").write_text("{}")
        (checkout / "scripts" / "build_page.py").write_text(script.format(page=str(page)))
    opened: list[str] = []
    monkeypatch.setattr(ui, "open_browser", opened.append)
    monkeypatch.setattr(ui, "_server", lambda settings, any_port: Served())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "")  # as it was afterwards
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL")
    done = CliRunner().invoke(app, ["ui", str(checkout / "runs")], catch_exceptions=False)
    assert done.exit_code == 0
    assert os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "system", "another one keeps what was freed"
    assert opened == (["http://there/"] if script == BUILDS else [])
    if script == BUILDS:
        assert "Building the page" in done.stderr
    elif script == FAILS:
        assert "no node was found" in done.stderr
        assert f"make -C '{checkout}' page" in done.stderr
    else:
        assert "Install rollbook again" in done.stderr


def test_the_demo_of_a_checkout_builds_the_page_that_it_proposes() -> None:
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert recipe is not None
    lines = recipe[1].replace("\\\n", " ")
    assert lines.index(" page >") < lines.index("rollbook demo") < lines.index("wait ") < lines.index("exit $$status")
    assert Path(rollbook.__file__).resolve().is_relative_to(ROOT / "src"), "an editable install, whose page make builds"
