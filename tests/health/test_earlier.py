"""Rules that compare a run with earlier ones of the same settings: which these are, and what is said."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import rollbook
from rollbook import health, testing
from rollbook.book import Book
from rollbook.cli.app import app
from rollbook.protocols import Alert, Row, RunInfo
from rollbook.schema.columns import columns_of

SECOND = 1.7e9


def rows(values: Sequence[float], began: float = SECOND) -> list[Row]:
    """A return and an entropy of this value at each tenth step, a second apart."""
    return [
        Row(began + i, {"env_step": 10 * i}, {"charts/episodic_return": value, "losses/entropy": value}, seq=i + 1)
        for i, value in enumerate(values)
    ]


def info(folder: Path, n: int, **more: Any) -> RunInfo:
    return replace(
        testing.some_run(folder), **{"id": f"id{n}", "name": f"ppo-{n}", "seed": n, "config": {"lr": 0.1}, **more}
    )


def leave(
    below: Path,
    n: int,
    values: Sequence[float],
    said: Sequence[Any] = (),
    status: str = "finished",
    ended: float = SECOND - 3600,
    fields: Any = (),
    **more: Any,
) -> None:
    """A run that ended before `SECOND` and has left what its keeper leaves."""
    folder = below / f"run-{n}"
    memories: dict[str, Any] = {}
    for name in ("below_earlier", "unlike_earlier"):
        rule = health.make(name)
        rule.open(info(folder, n, **more))
        list(rule.look(columns_of(rows(values, ended - len(values))), ended))
        memories[name] = rule.state()
    (folder / "data" / "keeper").mkdir(parents=True)
    kept = {"cursor": {}, "said": list(said), "rules": memories}
    (folder / "data" / "keeper" / "rules.json").write_text(json.dumps(kept))
    (folder / "run.json").write_text(
        json.dumps({"format": 2, "id": f"id{n}", "status": status, "project": "cartpole", **dict(fields)})
    )


def heard(
    below: Path, values: Sequence[float], rule_name: str = "below_earlier", size: int = 1, **more: Any
) -> list[Alert]:
    rule, logged = health.make(rule_name), rows(values)
    rule.open(info(below / "new", 99, **more))
    found: list[Alert] = []
    for first in range(0, len(logged), size):
        found += rule.look(columns_of(logged[first : first + size]), SECOND)
    return found


def five(project: Path, **more: Any) -> None:
    """Returns that rise by 1 an episode: the n-th run's from n to n + 99. After 20 returns the lowest has a mean of
    9.5, the highest 13.5."""
    for n in range(5):
        leave(project, n, [float(n + i) for i in range(100)], **more)


def test_returns_far_below_the_lowest_of_five_are_reported_with_all_that_was_compared(tmp_path: Path) -> None:
    five(tmp_path)
    (alert,) = heard(tmp_path, [float(i % 2) for i in range(100)])
    # The mean stays 0.5. The lowest has m - 10.5 after m returns; 35 % of its gain are 28, 65 % of their width are 2.6.
    # Below from m = 40 on.
    assert (alert.level, alert.clocks) == ("warn", {"env_step": 10 * 39})
    assert alert.evidence["earlier"] == {f"id{n}": 29.5 + n for n in (0, 1, 2, 3, 4)}
    assert [alert.evidence[name] for name in ("gain", "width", "limit", "now")] == [80.0, 4.0, 1.5, 0.5]
    assert "at env_step 390, the last 20 returns are 0.5 on average; those of 5 earlier runs" in alert.message
    assert "were 29.5 or more from there on" in alert.message
    assert all(f"id{n}" in alert.message for n in range(5))


def test_returns_below_the_lowest_by_less_than_the_five_ever_differed_or_gained_are_not_reported(
    tmp_path: Path,
) -> None:
    for n in range(5):
        leave(tmp_path, n, [min(100.0, (1.0 + 0.2 * n) * i) for i in range(200)])
    for end, alerts in ((75.0, 0), (60.0, 1)):  # 35 % of 83, which the last one gains, are 29
        assert len(heard(tmp_path, [min(end, 2.0 * i) for i in range(200)])) == alerts


def test_a_value_outside_all_that_five_had_near_this_step_is_reported_with_what_they_had(tmp_path: Path) -> None:
    for n in range(5):
        leave(tmp_path, n, [5.0 + 0.1 * n + 0.01 * (i % 2) for i in range(100)])
    # They had 5 to 5.41: room of 0.41 and a tenth of 5.41 on both sides.
    for inside in (4.06, 6.36):
        assert heard(tmp_path, [5.0] * 50 + [inside] * 50, "unlike_earlier") == []
    for outside in (4.04, 6.37):
        assert heard(tmp_path, [5.0, outside] * 50, "unlike_earlier") == []  # two in a row are asked for
        (alert,) = heard(tmp_path, [5.0] * 50 + [outside] * 50, "unlike_earlier")
        assert (alert.level, alert.key, alert.clocks) == ("warn", "losses/entropy", {"env_step": 510})
        assert (alert.evidence["low"], alert.evidence["high"]) == (5.0, pytest.approx(5.41))
        assert f"losses/entropy is {outside} at env_step 510; in 5 earlier runs of the same" in alert.message
        assert "it was 5 to 5.41 there" in alert.message
        assert all(f"id{n}" in alert.message for n in range(5))


def test_a_run_that_learns_sooner_than_each_earlier_one_is_none_of_unlike_values(tmp_path: Path) -> None:
    for n in range(5):
        leave(tmp_path, n, [0.0] * (60 + n) + [9.0] * 40)
    assert heard(tmp_path, [0.0] * 30 + [9.0] * 70, "unlike_earlier") == []
    assert len(heard(tmp_path, [0.0] * 30 + [-9.0] * 70, "unlike_earlier")) == 1


def test_what_leaves_the_range_of_earlier_runs_after_the_first_key_is_a_note(tmp_path: Path) -> None:
    for n in range(5):
        rule = health.make("unlike_earlier", keys=["mine"])
        rule.open(info(tmp_path / f"run-{n}", n))
        both = [replace(row, values={**row.values, "mine": 1.0}) for row in rows([2.0] * 60, SECOND - 3700)]
        list(rule.look(columns_of(both), SECOND - 3600))
        leave(tmp_path, n, [2.0] * 60)
        path = tmp_path / f"run-{n}" / "data" / "keeper" / "rules.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "rules": {"unlike_earlier": rule.state()}}))
    rule = health.make("unlike_earlier", keys=["mine"])
    rule.open(info(tmp_path / "new", 99))
    lost = [
        replace(row, values={**row.values, "mine": 9.0 if i > 30 else 1.0}) for i, row in enumerate(rows([0.1] * 60))
    ]
    assert [(alert.key, alert.level) for alert in rule.look(columns_of(lost), SECOND)] == [
        ("losses/entropy", "warn"),
        ("mine", "note"),
    ]


def test_bad_runs_of_which_nobody_was_told_do_not_become_what_later_ones_are_compared_with(tmp_path: Path) -> None:
    five(tmp_path, ended=SECOND - 9000)
    for n in range(5, 20):  # from a change of the code on, each is bad
        leave(tmp_path, n, [float(i % 2) for i in range(100)], ended=SECOND - 8000 + n)
    (alert,) = heard(tmp_path, [float(i % 2) for i in range(100)])
    assert set(alert.evidence["earlier"]) == {f"id{n}" for n in range(5)}


def test_runs_that_people_call_good_are_compared_with_first_and_bad_ones_never(tmp_path: Path) -> None:
    tags = {0: ["good"], 1: ["good", "paper"], 8: ["bad"]}
    for n in range(9):
        fields = {"tags": tags.get(n, []), "git": {"commit": f"{n}" * 40}}
        leave(tmp_path, n, [float(n + i) for i in range(100)], ended=SECOND - 3600 + n, fields=fields)
    (alert,) = heard(tmp_path, [0.0, 1.0] * 50)
    assert set(alert.evidence["earlier"]) == {f"id{n}" for n in (0, 1, 5, 6, 7)}
    assert alert.message.endswith(
        "(compared with id1 of commit 11111111, id0 of commit 00000000, id7 of commit 77777777, id6 of commit "
        "66666666, id5 of commit 55555555)"
    )


def test_it_is_reported_again_only_after_the_run_had_been_as_good(tmp_path: Path) -> None:
    five(tmp_path)
    lost, well = [float(i % 2) for i in range(70)], [100.0] * 20
    assert len(heard(tmp_path, [*lost, *well])) == 1
    assert len(heard(tmp_path, [*lost, *well, *lost])) == 2


@pytest.mark.parametrize(
    "spoilt",
    [
        {"said": [["kl", "fail\0losses/approx_kl\0", 1]]},
        {"status": "crashed"},
        {"status": "running"},
        {"config": {"lr": 0.2}},
        {"total": {"env_step": 77}},
        {"group": "other"},
        {"name": "dqn-0"},
        {"seed": 1},
        {"project": "other"},
    ],
    ids=lambda spoilt: next(iter(spoilt)),
)
def test_four_and_one_that_does_not_count_are_too_few(spoilt: dict[str, Any], tmp_path: Path) -> None:
    lost = [float(i % 2) for i in range(100)]
    for n in range(1, 5):
        leave(tmp_path, n, [float(n + i) for i in range(100)])
    leave(tmp_path, 0, [float(i) for i in range(100)], **spoilt)
    assert heard(tmp_path, lost) == []
    leave(tmp_path, 7, [float(i) for i in range(100)], said=[["no_signal", "note\0train/return\0", 1]])
    assert len(heard(tmp_path, lost)) == 1


def test_the_seed_and_where_a_run_lies_are_no_settings(tmp_path: Path) -> None:
    for n in range(5):
        config = {"lr": 0.1, "seed": n, "env": {"env_seed": n, "id": "CartPole-v1"}, "log_dir": f"/runs/{n}"}
        leave(
            tmp_path, n, [float(n + i) for i in range(100)], config=config, name=f"CartPole-v1__ppo__{n}__16999{n}1234"
        )
    lost = [float(i % 2) for i in range(100)]
    config = {"lr": 0.1, "seed": 99, "env": {"env_seed": 9, "id": "CartPole-v1"}, "log_dir": "/elsewhere"}
    assert len(heard(tmp_path, lost, config=config, name="CartPole-v1__ppo__99__1700012345")) == 1
    assert heard(tmp_path, lost, config={**config, "env": {"id": "CartPole-v0"}}, name="CartPole-v1__ppo__99__1") == []


def test_runs_that_had_not_ended_when_this_one_began_are_not_earlier(tmp_path: Path) -> None:
    five(tmp_path)
    rule = health.make("below_earlier")
    rule.open(info(tmp_path / "new", 99))
    lost = rows([float(i % 2) for i in range(100)], SECOND - 3700)
    assert list(rule.look(columns_of(lost), SECOND)) == []


def test_equal_returns_are_reported_after_twenty_where_each_earlier_run_had_others_in_a_third_of_the_time(
    tmp_path: Path,
) -> None:
    for n in range(5):
        leave(tmp_path, n, [0.0] * (5 + n) + [1.0] * 40)
    (alert,) = heard(tmp_path, [0.0] * 100, "no_signal")
    assert (alert.level, alert.clocks) == ("warn", {"env_step": 270})
    assert "the last 28 returns is 0, and 5 earlier runs of the same settings had each" in alert.message
    assert heard(tmp_path, [0.0] * 27 + [1.0] * 50, "no_signal") == []
    leave(tmp_path, 8, [0.0] * 30 + [1.0] * 40, ended=SECOND - 60)  # the newest five count: one found its first later
    assert [alert.clocks for alert in heard(tmp_path, [0.0] * 100, "no_signal")] == [{"env_step": 900}]


HOSTILE: list[Any] = [
    b"", b"\x00\xff", b"[]", b"[" * 100_000, b'{"rules": null}', b'{"said": 3, "rules": {"below_earlier": {}}}',
    {"points": 3}, {"points": [[1, 2, 3]]}, {"points": [[5, 1.0], [2, 1.0]]}, {"points": [["a", "b"]]},
    {"points": [], "newest": None}, {"points": [[1, None]]}, {"points": [[1, 10**400]]}, {"points": [[math.nan, 1.0]]},
    {"memory": 3}, {"memory": {"losses/entropy": {}}}, {"memory": {"losses/entropy": {"points": [[1]], "open": 0}}},
    {"memory": {"losses/entropy": {"points": [], "open": [1, "a", math.nan]}}}, {"best": math.inf}, {"best": {}},
    {"clock": []}, {"seed": []}, {"began": None}, {"other": "soon"}, {"kin": 7},
]  # fmt: skip


@pytest.mark.parametrize("damage", HOSTILE, ids=[str(it)[:40] for it in HOSTILE])
def test_what_is_left_may_be_damaged(damage: Any, tmp_path: Path) -> None:
    five(tmp_path)
    for n in range(5):
        path = tmp_path / f"run-{n}" / "data" / "keeper" / "rules.json"
        kept = json.loads(path.read_text())
        for memory in kept["rules"].values():
            memory.update(damage if isinstance(damage, dict) else {})
        kin = kept["rules"]["below_earlier"]["kin"].encode() if not isinstance(damage, dict) else b""
        path.write_bytes(json.dumps(kept).encode() if isinstance(damage, dict) else damage + kin)
    heard(tmp_path, [float(i % 2) for i in range(100)])
    heard(tmp_path, [0.0] * 100, "no_signal")
    heard(tmp_path, [0.0] * 100, "unlike_earlier")
    for n in range(5):
        path = tmp_path / f"run-{n}" / "data" / "keeper" / "rules.json"
        path.unlink()
        os.mkfifo(path) if n % 2 else path.mkdir()
    assert heard(tmp_path, [float(i % 2) for i in range(100)]) == []


CURVES = st.lists(
    st.one_of(st.sampled_from([0.0, 1.0, -1e9, 1e300, math.nan, math.inf]), st.floats(-100, 100)),
    min_size=20,
    max_size=150,
)


@given(curves=st.lists(CURVES, min_size=5, max_size=5), which=st.integers(0, 4), size=st.integers(1, 200))
def test_a_run_that_equals_one_of_the_earlier_ones_is_never_reported(
    curves: list[list[float]], which: int, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    project = tmp_path_factory.mktemp("project")
    for n, curve in enumerate(curves):
        leave(project, n, curve)
    for name in ("below_earlier", "unlike_earlier"):
        assert heard(project, curves[which], name, size) == []


@pytest.mark.parametrize("name", ["below_earlier", "no_signal", "unlike_earlier"])
@pytest.mark.parametrize("check", [name for name in testing.RULE_CHECKS if not name.startswith("is_quiet")])
def test_rules_keep_their_contract_where_there_are_earlier_runs(name: str, check: str, tmp_path: Path) -> None:
    run = testing.some_run(tmp_path)
    for n in range(5):
        leave(
            tmp_path / "project",
            n,
            [float(n + i) for i in range(100)],
            **{field: getattr(run, field) for field in ("project", "name", "group", "total", "config")},
        )
    value = (lambda i: 0.0) if name == "no_signal" else (lambda i: float(i % 2))
    (tmp_path / "project" / "new").mkdir()
    testing.RULE_CHECKS[check](
        lambda: health.make(name), tmp_path / "project" / "new", rows([value(i) for i in range(100)])
    )


def test_a_keeper_leaves_what_later_runs_need_and_their_alert_reaches_people(tmp_path: Path) -> None:
    def train(seed: int, value: Any) -> rollbook.Run:
        options = {"rules": ["below_earlier"], "sinks": [], "keeper": "inline", "config": {"lr": 0.1}, "seed": seed}
        with rollbook.init("cartpole", f"ppo-{seed}", dir=tmp_path, **options) as run:
            for i in range(100):
                run.log({"charts/episodic_return": value(i)}, env_step=10 * i)
        return run

    for seed in range(5):
        train(seed, lambda i, seed=seed: float(i + seed))
    assert Book(train(5, lambda i: float(i + 1)).folder).alerts().num_rows == 0
    lost = train(6, lambda i: float(i % 2))
    (alert,) = Book(lost.folder).alerts().to_pylist()
    assert (alert["rule"], alert["level"]) == ("below_earlier", "warn")


def test_check_compares_the_runs_of_another_tool_with_those_before_them(tmp_path: Path) -> None:
    for n in range(6):
        (tmp_path / f"seed-{n}").mkdir()
        lines = [
            json.dumps(
                {
                    "time": SECOND + 1000 * n + i,
                    "step": 10 * i,
                    "charts/episodic_return": float(i % 2 if n == 5 else n + i),
                }
            )
            for i in range(100)
        ]
        (tmp_path / f"seed-{n}" / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    result = CliRunner().invoke(app, ["check", str(tmp_path), "--json"])
    assert [row["rule"] for row in json.loads(result.stdout)] == ["below_earlier"]
