"""Every sink that needs no service keeps the contract of sinks, with and without the filters in front of it."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

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


SERVICES = sorted(set(sinks.names()) - set(sinks.needs_no_service()))
TAKES_ROWS = [check for check in testing.SINK_CHECKS if not check.startswith(("costs", "restarts", "goes_on"))]
"""The others are about what a sink writes to files."""


@pytest.mark.parametrize("name", SERVICES)
def test_the_sink_of_a_service_takes_whatever_was_logged(name: str, tmp_path: Path, monkeypatch) -> None:
    """Its client is one that takes everything: a row that the sink itself cannot convert would block all later ones."""
    module = import_module(type(made(name, {"all": True})).__module__)
    assert hasattr(module, "need"), f"sinks/{name}.py does not get its client by `need`: give the test one in its place"
    monkeypatch.setattr(module, "need", lambda package, **_why: MagicMock(name=package))
    for check in TAKES_ROWS:
        testing.SINK_CHECKS[check](lambda: made(name, {"all": True}), tmp_path / check)


def test_the_whole_contract_can_be_checked_in_one_call(tmp_path: Path) -> None:
    testing.check_sink(sinks.Jsonl, tmp_path)
