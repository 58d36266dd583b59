"""The contracts of rollbook's extension points as checks, for sinks, filters, rules and importers of ours and others.

    @pytest.mark.parametrize("check", rollbook.testing.SINK_CHECKS.values(), ids=rollbook.testing.SINK_CHECKS)
    def test_my_sink_keeps_the_contract(check, tmp_path):
        check(MySink, tmp_path)

A check takes a function that makes a fresh sink (or puts a fresh filter in front of a given sink) and an empty folder,
and raises AssertionError. `check_sink`, `check_filter`, `check_rule` and
`check_importer` run all of them. No test framework is needed.
"""

from __future__ import annotations

from rollbook.testing.counting import count_operations
from rollbook.testing.filters import FILTER_CHECKS, check_filter
from rollbook.testing.importers import IMPORTER_CHECKS, check_importer
from rollbook.testing.kinds import KIND_CHECKS, check_kind
from rollbook.testing.rows import CLOCKS, HOSTILE, some_run, training_rows
from rollbook.testing.rules import RULE_CHECKS, check_rule
from rollbook.testing.sinks import SINK_CHECKS, check_sink

__all__ = [
    "CLOCKS",
    "FILTER_CHECKS",
    "HOSTILE",
    "IMPORTER_CHECKS",
    "KIND_CHECKS",
    "RULE_CHECKS",
    "SINK_CHECKS",
    "check_filter",
    "check_importer",
    "check_kind",
    "check_rule",
    "check_sink",
    "count_operations",
    "some_run",
    "training_rows",
]
