"""Checks for the contracts of rollbook's extension points: sinks, filters, rules and importers, ours and others'.

    @pytest.mark.parametrize("check", rollbook.testing.SINK_CHECKS.values(), ids=rollbook.testing.SINK_CHECKS)
    def test_my_sink_keeps_the_contract(check, tmp_path):
        check(MySink, tmp_path)

A check takes an empty folder and a function that makes a new sink (or puts a new filter in front of a given sink). It
raises AssertionError if the contract is broken. `check_sink`, `check_filter`, `check_rule` and `check_importer` run all
checks. `measure_rule` says what a health rule costs, and what it says of healthy trainings. No test
framework is needed.
"""

from __future__ import annotations

from rollbook.testing.counting import count_operations
from rollbook.testing.filters import FILTER_CHECKS, check_filter
from rollbook.testing.healthy import RuleMeasure, measure_rule
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
    "RuleMeasure",
    "check_filter",
    "check_importer",
    "check_kind",
    "check_rule",
    "check_sink",
    "count_operations",
    "measure_rule",
    "some_run",
    "training_rows",
]
