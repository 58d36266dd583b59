"""Every block of Python on the page of a framework runs in that framework, as it stands but for fewer steps."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import run_page
from around_pages import AROUND

GROUPS = (
    "main", "lightzero", "mrl", "rllib", "trackers", "neptune", "trl", "loggers", "loops", "puffer", "jax", "brax",
)  # fmt: skip

ROOT = Path(__file__).parents[2]
HERE = [page for page, around in AROUND.items() if around.group == os.environ.get("ROLLBOOK_FRAMEWORK_GROUP")]


@pytest.mark.core
@pytest.mark.parametrize("page", HERE)
def test_every_block_of_the_page_runs(own_place: Path, page: str) -> None:
    run_page.run(ROOT / "docs" / page.removeprefix("docs/"))


def test_every_group_with_a_page_is_named_above() -> None:
    assert {around.group for around in AROUND.values()} - {"", "places"} == set(GROUPS)
