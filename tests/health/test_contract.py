"""Every rule of the registry keeps the contract of rules, and speaks where there is trouble."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases import some_of
from rollbook import health, testing
from rollbook.protocols import Alert, Row
from rollbook.schema import aliases
from rollbook.schema.columns import columns_of
from trouble import TROUBLE, rows, updates


class TooGood:
    """A return above the best that the task can give: a project's own rule."""

    name = "too_good"
    tables = frozenset({"metrics"})
    key = "charts/episodic_return"

    def __init__(self, most: float = 500.0) -> None:
        self.most = most

    def open(self, run: Any) -> None:
        self.said = False

    def look(self, columns: Any, now: float) -> Any:
        if self.said or self.key not in columns.keys("metrics"):
            return
        returns = columns.column(self.key)
        if max(returns.values) > self.most:
            i = next(i for i, value in enumerate(returns.values) if value > self.most)
            where, self.said = returns.where(i), True
            words = f"{self.key} is {returns.values[i]:g}, more than the task can give"
            yield Alert(self.name, "warn", words, {"most": self.most, **where}, clocks=where["clocks"])


class RowByRow(TooGood):
    """The same, one number after the other."""

    def look(self, columns: Any, now: float) -> Any:
        for key in columns.keys("metrics"):
            column = columns.column(key)
            for i, value in enumerate(column.values):
                where = column.where(i)
                if key == self.key and value > self.most and where:
                    yield from super().look(columns, now)


NO_ROWS = {"silent", "settings", "steps_again", "below_earlier", "unlike_earlier"}
"""They speak of rows that do not come, of the configuration, and of earlier runs: test_rules.py, test_earlier.py."""


@pytest.mark.parametrize("name", health.names())
def test_a_rule_keeps_the_contract(name: str, tmp_path: Path) -> None:
    testing.check_rule(lambda: health.make(name), tmp_path, TROUBLE.get(name, ()))


def test_a_rule_of_ones_own_keeps_the_contract(tmp_path: Path) -> None:
    testing.check_rule(TooGood, tmp_path, rows(60, charts__episodic_return=lambda i: 10.0 * i))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            lambda: TooGood(100),
            r"false alarms on healthy trainings \([2-9] false.*ppo-cartpole-healthy-s0: .*more than",
        ),
        (RowByRow, r"costs too much \(0 false alarms.*of Python a row"),
    ],
    ids=["a limit that healthy trainings exceed", "row by row"],
)
def test_a_rule_that_reports_healthy_trainings_or_costs_much_breaks_the_contract(
    made: Any, words: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=words):
        testing.RULE_CHECKS["is_silent_on_healthy_trainings_and_cheap"](made, tmp_path, ())


def test_what_a_rule_costs_and_says_of_healthy_trainings_is_measured() -> None:
    measured = testing.measure_rule(TooGood)
    assert (measured.trainings, measured.pages, measured.notes) == (11, (), ())
    assert measured.rows > 5_000
    assert measured.lines_a_row < 1 < measured.lines_a_look


@pytest.mark.parametrize("name", health.names())
def test_the_quantities_that_a_rule_names_are_canonical_names(name: str) -> None:
    meanings = getattr(health.make(name), "meanings", ())
    assert [key for key in meanings if aliases.describe(key) is None] == []


def test_every_rule_of_the_registry_has_its_trouble_here() -> None:
    listed = set(health.names())
    assert listed - {*TROUBLE, *NO_ROWS} == set(), "tests/support/trouble.py has no rows that must raise these"
    assert {*TROUBLE, *NO_ROWS} - listed == set(), "no rules have these names"
    assert set(health.DEFAULT) <= set(health.names())


@pytest.mark.parametrize("name", sorted(TROUBLE))
def test_a_quantity_that_is_logged_by_two_names_is_an_alert_once(name: str) -> None:
    def spoken(twice: bool) -> list[tuple[str, str]]:
        rule = health.make(name)
        rule.open(testing.some_run(Path("run")))
        rows = []
        for row in TROUBLE[name]:
            values = {"losses/value_loss" if key == "loss" else key: value for key, value in row.values.items()}
            again = {aliases.canonical(key) or key: value for key, value in values.items()} if twice else {}
            rows.append(replace(row, values={**values, **again}))
        return [(alert.level, alert.message) for row in rows for alert in rule.look(columns_of([row]), row.time)]

    once = spoken(twice=False)
    assert once
    assert spoken(twice=True) == once


def spelled(row: Row, framework: str, last: bool) -> Row:
    """A row with the names that a framework has for its values, where it has one; the first or the last of them."""
    values = {}
    for key, value in row.values.items():
        entry = aliases.describe(key)
        own = [native.key for native in entry.natives if native.framework == framework] if entry is not None else []
        values[own[-1 if last else 0].replace("*", "default_policy") if own else key] = value
    return replace(row, values=values)


@pytest.mark.parametrize(
    "name",  # the two of the most rows in `make test-long`
    some_of(sorted(TROUBLE.keys() - {"rollouts"}), lambda name: name not in ("learns_nothing", "short_sighted")),
)
def test_a_rule_speaks_whatever_framework_wrote_the_keys_with_and_without_its_prefix(name: str) -> None:
    keys = {key for row in TROUBLE[name] for key in row.values}
    written = [entry.natives for key in keys if (entry := aliases.describe(key)) is not None]
    seen: set[tuple[str, ...]] = set()
    for framework, last in sorted({(native.framework, last) for of in written for native in of for last in (0, 1)}):
        logged = columns_of([spelled(row, framework, bool(last)) for row in TROUBLE[name]])
        if (own := tuple(sorted(logged.keys("metrics")))) not in seen:
            rule = health.make(name)
            rule.open(testing.some_run(Path("run")))
            assert list(rule.look(logged, 1.7e9)), own
        seen.add(own)


@pytest.mark.parametrize("key", ["kl", "frac_reward_zero_std", "entropy", "grad_norm", "learning_rate"])
def test_what_hugging_face_logs_means_the_same_with_its_prefix(key: str) -> None:
    assert aliases.canonical(f"train/{key}") == aliases.canonical(key)
    assert aliases.canonical(f"eval/{key}") is None


def test_a_quantity_that_a_callback_and_a_tracker_log_is_an_alert_once() -> None:
    rule = health.make("zero_variance_groups")
    rule.open(testing.some_run(Path("run")))
    both = rows(60, frac_reward_zero_std=lambda i: 0.9, train__frac_reward_zero_std=lambda i: 0.9)
    assert len(list(rule.look(columns_of(both), 1.7e9))) == 1


UNNAMED: dict[str, tuple[dict[str, Any], list[Row]]] = {
    "learning rate 0": ({}, rows(60, train__learning_rate=lambda i: 0.0)),
    "an environment that never ends": ({}, TROUBLE["no_episode"]),
    "never trained": ({}, TROUBLE["never_updated"]),
    "gamma 1.05": ({"gamma": 1.05}, []),
    "ent_coef -0.1": ({"ent_coef": -0.1}, []),
    "value loss x 1e6": ({}, rows(90, train__value_loss=lambda i: (3.0 + i % 7) * (1e6 if i >= 45 else 1))),
    "gradient norm x 1e6": ({}, rows(90, losses__grad_norm=lambda i: (3.0 + i % 7) * (1e6 if i >= 45 else 1))),
    "Q grows by 1.5 a row": ({}, rows(90, losses__q_values=lambda i: 1.5**i, charts__episodic_return=lambda i: i % 3)),
    "return 500 to 10": (
        {},
        rows(300, charts__episodic_return=lambda i: min(500, 5 * i) + i % 5 if i < 200 else 10 + i % 5),
    ),
    "clip fraction 0.9": ({}, rows(90, train__clip_fraction=lambda i: 0.9)),
    "loss NaN for 39 rows": ({}, rows(90, train__loss=lambda i: math.nan if i < 39 else 1.0 + i % 7)),
    "constant reward": ({}, rows(240, charts__episodic_return=lambda i: 3.0)),
    "a KL of 26.7 in its first updates": ({}, rows(60, train__approx_kl=lambda i: 26.7 if i == 2 else 0.01)),
}
"""Faults of which 0.1.0 said nothing: the configuration and the rows of each."""


@pytest.mark.parametrize("fault", UNNAMED)
def test_faults_that_an_earlier_version_passed_over_are_named_by_the_default_rules(fault: str) -> None:
    config, logged = UNNAMED[fault]
    found = []
    for name in health.DEFAULT:
        rule = health.make(name)
        rule.open(replace(testing.some_run(Path("run")), config=config))
        for row in logged or rows(3, train__loss=lambda i: 1.0):
            found += rule.look(columns_of([row]), row.time)
    assert found


@pytest.mark.parametrize("name", sorted(TROUBLE))
def test_an_alert_says_where_it_was_what_usually_causes_it_or_what_to_look_at(name: str) -> None:
    rule = health.make(name)
    rule.open(testing.some_run(Path("run")))
    for alert in rule.look(columns_of(TROUBLE[name]), 1.7e9):
        assert re.search(r"\b(env_step|policy_version|gradient_step) \d", alert.message), alert.message
        hint = re.search(r"usually|look", alert.message)
        assert hint, f"say what the cause usually is, or where to look: {alert.message}"


ODD = {
    "gamma": 10**400,
    "learning_rate": math.nan,
    "lr": "fast",
    "target_kl": True,
    "more": {"target_kl": -math.inf, "gamma": None, "ent_coef": [1], "learning_rate": 10**400},
}


@pytest.mark.parametrize("name", health.names())
def test_a_rule_bears_whatever_a_configuration_holds(name: str) -> None:
    rule = health.make(name)
    rule.open(replace(testing.some_run(Path("run")), config=ODD))
    assert [*rule.look(columns_of(rows(30, **{"train/loss": math.sin})), 1.7e9)] == []


ROLLOUTS = [
    ({"reward": lambda i: 0.0}, {"group/solved_none"}),
    ({"reward": lambda i: 1.0}, {"group/solved_all"}),
    ({"reward": lambda i: float(i // 2 % 2)}, {"group/zero_std"}),
    ({"status": lambda i: "truncated"}, {"rollout/truncated"}),
    ({"status": lambda i: "failed" if i % 3 else "aborted"}, {"rollout/failed"}),
    ({"tool_errors": lambda i: 1}, {"rollout/tool_errors"}),
    ({"used": lambda i: i % 6 == 0}, {"rollout/wasted"}),
    ({"advantage": lambda i: 0.0}, {"rollout/wasted"}),
    ({"gap_mean": lambda i: 0.3}, {"policy/gap_mean"}),
    ({}, set()),
]


@pytest.mark.parametrize(
    ("later", "found"), ROLLOUTS, ids=[",".join(case[0]) + str(n) for n, case in enumerate(ROLLOUTS)]
)
def test_each_trouble_of_rollouts_is_reported_by_its_own_name_once(later: Any, found: set[str]) -> None:
    rule = health.make("rollouts")
    rule.open(testing.some_run(Path("run")))
    alerts = list(rule.look(columns_of(updates(60, **later)), 1.7e9))
    assert sorted(alert.key for alert in alerts) == sorted(found)
    for alert in alerts:
        assert alert.message.startswith(f"{alert.key} was above ")
        assert alert.evidence["values"][-1] > alert.evidence["limit"]
