"""The contract of health rules."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from rollbook.protocols import Alert, Row, Rule, RunInfo, Stateful
from rollbook.schema.columns import columns_of
from rollbook.testing.healthy import measure_rule
from rollbook.testing.naming import naming
from rollbook.testing.rows import EXTREMES, HOSTILE, KINDS, START, folder_of_check, some_run, training_rows

_MOST_LINES_A_ROW, _MOST_LINES_A_LOOK = 8.0, 200.0
"""The most lines of Python of a rule (`RuleMeasure`). Half of rollbook's own need less than 1 and 20, the dearest 6
and 160. A row that is logged and sealed takes about as long as 200 lines."""

MakeRule: TypeAlias = Callable[[], Rule]


def check_rule(make_rule: MakeRule, tmp_path: Path, trouble: Sequence[Row] = ()) -> None:
    """Run every check of `RULE_CHECKS`.

    Args:
      make_rule: makes a new rule.
      tmp_path: an empty folder, or none yet.
      trouble: rows at which the rule must raise an alert; with them the alert's content is checked, too.
    Raises:
      AssertionError: a check failed. A note names the rule of the contract, also at what the rule itself raises.
    """
    for name, check in RULE_CHECKS.items():
        with naming(name, check):
            check(make_rule, folder_of_check(tmp_path, name), trouble)


def says_what_it_is(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """It has a name for its alerts, and lists the tables it reads."""
    rule = make_rule()
    if not rule.name or not isinstance(rule.name, str):
        raise AssertionError(f"name is {rule.name!r}; it has to be a word")
    if isinstance(rule.tables, str) or not all(isinstance(table, str) for table in rule.tables) or not rule.tables:
        raise AssertionError(f"tables is {rule.tables!r}; it has to be a set of names")
    if not (type(rule).__doc__ or "").strip():
        raise AssertionError("its class has no docstring: the first line is what `rollbook` says of the rule")


def is_quiet_on_an_ordinary_training(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """An ordinary training gives no alert, however its rows are split."""
    rows = training_rows(2_000, late_keys=5)
    for size in (1, 7, 2_000):
        alerts = _alerts_of(make_rule(), folder, rows, size)
        if alerts:
            raise AssertionError(f"on an ordinary training it reports {alerts[0].message!r}")


def is_silent_on_healthy_trainings_and_cheap(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """It reports nothing but notes on the healthy trainings that come with rollbook, without a loop over each of their
    rows. `measure_rule` has the numbers."""
    measured = measure_rule(make_rule)
    if measured.pages:
        raise AssertionError(f"false alarms on healthy trainings ({measured}): {'; '.join(measured.pages)}")
    if measured.lines_a_row > _MOST_LINES_A_ROW or measured.lines_a_look > _MOST_LINES_A_LOOK:
        raise AssertionError(
            f"it costs too much ({measured}); at most {_MOST_LINES_A_ROW:g} and {_MOST_LINES_A_LOOK:g}. Ask for the "
            "least and the largest of a column's values first, and go through them only if those are odd"
        )


def bears_whatever_is_logged(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """Texts, pictures, extremes, hostile keys, rows without values or clocks: it never raises."""
    rows = [Row(START, {}, {}, seq=1)]
    for n, key in enumerate(HOSTILE):
        rows += [Row(START + n, {}, {key: value}, seq=len(rows) + k) for k, value in enumerate((*KINDS, *EXTREMES))]
    tables = sorted(make_rule().tables)
    rows = [_of_table(row, tables[n % len(tables)]) for n, row in enumerate(rows)]
    for alert in _alerts_of(make_rule(), folder, rows, 5):
        _check_alert(alert, make_rule().name)


def leaves_columns_as_they_are(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """Other rules read the same columns, so it does not change them."""
    rule = make_rule()
    rule.open(some_run(folder))
    own = [row for row in (*training_rows(300), *trouble) if row.table in rule.tables]
    columns = columns_of(own)
    values = {(key, table): columns.column(key, table).values for table in rule.tables for key in columns.keys(table)}
    before = copy.deepcopy(values)
    list(rule.look(columns, START))
    if repr(values) != repr(before):
        raise AssertionError("the values of a column were changed in place")


def says_the_same_however_rows_come_in(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """One row at a time, a few or all at once: the same alerts with the same evidence."""
    if not trouble:
        return
    whole = _alerts_of(make_rule(), folder, trouble, len(trouble))
    if not whole:
        raise AssertionError(f"it reports none of the {len(trouble)} rows that have its problem")
    for alert in whole:
        _check_alert(alert, make_rule().name)
        if not alert.evidence:
            raise AssertionError(f"no evidence for {alert.message!r}")
    for size in (1, 2, 7, 64):
        some = _alerts_of(make_rule(), folder, trouble, size)
        if repr(some) != repr(whole):  # by repr: NaN does not equal NaN
            raise AssertionError(f"given {size} rows at a time it reports {some!r}, given all at once {whole!r}")


def goes_on_after_a_restart(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """A rule with `state` and `set_state` gives the same alerts over a restart of the keeper; its state is plain JSON
    data."""
    if not isinstance(make_rule(), Stateful):
        return
    whole = _alerts_of(make_rule(), folder, trouble, 10)
    for stop in range(0, len(trouble), max(1, len(trouble) // 8)):
        rule, later = make_rule(), make_rule()
        found = _alerts_of(rule, folder, trouble[:stop], 10)
        assert isinstance(rule, Stateful)
        assert isinstance(later, Stateful)
        try:
            state = json.loads(json.dumps(rule.state()))
        except (TypeError, ValueError) as err:
            raise AssertionError(f"its state is not plain JSON data: {err}") from None
        later.open(some_run(folder))
        later.set_state(state)
        found += _looked(later, trouble[stop:], 10)
        if repr(found) != repr(whole):
            raise AssertionError(f"restarted after {stop} rows it reports {found!r}, without a restart {whole!r}")


def starts_again_when_the_run_went_back(make_rule: MakeRule, folder: Path, trouble: Sequence[Row]) -> None:
    """After `open` it has forgotten earlier rows: the same rows give the same alerts again."""
    rule = make_rule()
    first = _alerts_of(rule, folder, trouble, 10)
    second = _alerts_of(rule, folder, trouble, 10)
    if [alert.message for alert in first] != [alert.message for alert in second]:
        raise AssertionError(f"opened again it reports {second!r}, the first time {first!r}")


RULE_CHECKS: dict[str, Callable[[MakeRule, Path, Sequence[Row]], None]] = {
    check.__name__: check
    for check in (
        says_what_it_is,
        is_quiet_on_an_ordinary_training,
        is_silent_on_healthy_trainings_and_cheap,
        bears_whatever_is_logged,
        leaves_columns_as_they_are,
        says_the_same_however_rows_come_in,
        goes_on_after_a_restart,
        starts_again_when_the_run_went_back,
    )
}
"""Name -> check(make_rule, empty folder, rows that are trouble or none)."""


def _alerts_of(rule: Rule, folder: Path, rows: Sequence[Row], size: int) -> list[Alert]:
    run: RunInfo = some_run(folder)
    rule.open(run)
    return _looked(rule, rows, size)


def _looked(rule: Rule, rows: Sequence[Row], size: int) -> list[Alert]:
    alerts: list[Alert] = []
    for first in range(0, len(rows), size):
        batch = [row for row in rows[first : first + size] if row.table in rule.tables]
        now = max((row.time for row in batch), default=START)
        alerts += rule.look(columns_of(batch), now)
        if size > 1:
            alerts += rule.look(columns_of(()), now)
    return alerts


def _of_table(row: Row, table: str) -> Row:
    from dataclasses import replace

    return replace(row, table=table)


def _check_alert(alert: Alert, name: str) -> None:
    if alert.rule != name or alert.level not in ("note", "warn", "fail") or not alert.message.strip():
        raise AssertionError(f"an alert needs the rule's name, 'note', 'warn' or 'fail', and words: {alert!r}")
    try:
        json.dumps({"evidence": dict(alert.evidence), "clocks": dict(alert.clocks)})
    except (TypeError, ValueError) as err:
        raise AssertionError(f"the evidence of {alert.message!r} is not plain JSON data: {err}") from None
