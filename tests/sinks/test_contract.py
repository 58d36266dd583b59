"""Every sink that needs no service keeps the contract of sinks, with and without the filters in front of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from cases import some_of
from rollbook import sinks, testing
from rollbook.protocols import Sink

LAYOUTS = [(name, {}) for name in sinks.needs_no_service()] + [
    ("csv", {"per_scope": False}),
    ("text", {"layout": "blocks"}),
    ("text", {"all": True}),
    ("tensorboard", {"all": True}),
    ("tensorboard", {"all": True, "x": "gradient_step"}),
    ("jsonl", {"filters": [["smooth", {"keys": "return"}], ["every", {"rows": 3, "per": "key"}], "clocked"]}),
]


def made(name: str, options: dict[str, object]) -> Sink:
    if name == "terminal":
        options = {"stream": io.StringIO(), "every_seconds": 0, **options}
    return sinks.make(name, **options)


@pytest.mark.parametrize(
    ("name", "options", "check"),
    some_of(
        [(name, options, check) for name, options in LAYOUTS for check in testing.SINK_CHECKS],
        lambda case: case[2] != "costs_grow_with_the_rows" or case[0] == "csv",  # thousands of rows each
    ),
    ids=lambda part: str(part),
)
def test_a_sink_keeps_the_contract(name, options, check, tmp_path: Path) -> None:
    testing.SINK_CHECKS[check](lambda: made(name, options), tmp_path)


def test_the_whole_contract_can_be_checked_in_one_call(tmp_path: Path) -> None:
    testing.check_sink(sinks.Jsonl, tmp_path)
