"""Every adapter has its page and its example; every fault on the page of upstream faults has a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "tests" / "upstream-faults.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_framework_has_its_section_here_and_in_the_summary_for_users() -> None:
    summary = (ROOT / "docs" / "adapters" / "faults.md").read_text("utf-8")
    assert set(SECTIONS) == set(re.findall(r"^## (.+)$", summary, re.MULTILINE))


def test_every_test_that_shows_a_fault_gone_exists() -> None:
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    cited = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(cited) > 100
    assert cited - there == set()


def test_every_adapter_has_a_page_with_before_and_after_and_an_example() -> None:
    index = (ROOT / "docs" / "adapters" / "index.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| .*\| \[(\w+)\.md\]\(\w+\.md(?:#[\w-]+)?\) \| (.*) \|$", index, re.MULTILINE))
    adapters = ROOT / "src" / "rollbook" / "adapters"
    on_one_page = set(re.findall(r"`[^|]*rollbook\.adapters\.(\w+)[^|]*\| \[rollout_frameworks\.md\]", index))
    assert {*rows, *on_one_page} - {"rollout_frameworks"} == {
        p.stem for p in adapters.iterdir() if p.name[0] != "_" and p.stem != "keys"
    } | {"neptune"}
    for name, examples in rows.items():
        found = re.findall(r"\.\./\.\./(examples/\w+\.py)", examples)
        assert found
        assert all((ROOT / example).exists() for example in found), name
        text = (ROOT / "docs" / "adapters" / f"{name}.md").read_text("utf-8")
        assert "## Before and after" in text or name == "rollout_frameworks", name  # one section for each framework
