"""The table of canonical names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.schema import aliases as keys

SCOPES = {"train", "test", "update", "info", "time", "host", "rollbook"}
CLOCKS = {"env_step", "gradient_step", "epoch", "episode"}


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ("charts/episodic_return", "train/return"),
        ("rollout/ep_rew_mean", "train/return"),
        ("AverageEpRet", "train/return"),
        ("AverageTestEpRet", "test/return"),
        ("eval/mean_reward", "test/return"),
        ("train/approx_kl", "update/approx_kl"),
        ("KL", "update/approx_kl_k1"),
        ("charts/SPS", "time/env_steps_per_second"),
        ("time/fps", "time/env_steps_per_second"),
        ("learners/default_policy/policy_loss", "update/loss/policy"),
        ("learners/agent_7/entropy", "update/entropy"),
        ("training/returns_stat/mean", "train/return"),
        *(
            (f"losses/{native}", f"update/{name}")
            for native, name in (
                ("td_loss", "loss/q"),
                ("q_values", "q_value"),
                ("qf_loss", "loss/q"),
                ("qf1_loss", "loss/q1"),
                ("qf2_loss", "loss/q2"),
                ("qf1_values", "q_value"),
                ("qf2_values", "q_value_2"),
                ("actor_loss", "loss/policy"),
                ("alpha", "entropy_coefficient"),
                ("alpha_loss", "loss/entropy_coefficient"),
            )
        ),
        ("Train/mean_reward", "train/return"),
        ("Train/mean_episode_length", "train/length"),
        ("Loss/value_function", "update/loss/value"),
        ("Loss/surrogate", "update/loss/policy"),
        ("Loss/entropy", "update/entropy"),
        ("Perf/total_fps", "time/env_steps_per_second"),
    ],
)
def test_what_a_framework_calls_a_quantity_has_one_canonical_name(native: str, expected: str) -> None:
    assert keys.canonical(native) == expected
    entry = keys.describe(native)
    assert entry is not None
    assert entry.name == expected
    assert keys.estimator(native)


def test_opposite_signs_are_different_quantities() -> None:
    assert keys.canonical("train/entropy_loss") == "update/loss/entropy"
    assert keys.canonical("losses/entropy") == "update/entropy"


def test_the_two_estimators_of_the_kl_divergence_are_distinguished() -> None:
    assert keys.canonical("losses/approx_kl") != keys.canonical("losses/old_approx_kl")
    assert "k3" in (keys.estimator("train/approx_kl") or "")
    assert "k1" in (keys.estimator("KL") or "")


def test_no_native_name_means_two_things() -> None:
    seen: dict[str, str] = {}
    for entry in keys.TABLE:
        for native in entry.natives:
            assert seen.setdefault(native.key, entry.name) == entry.name, native.key
    for entry in keys.TABLE:
        assert seen.get(entry.name, entry.name) == entry.name, "a native name may not be the canonical one of another"


OWN = {"update/step_norm", "update/policy_step_norm", "update/first_ratio_error"}
"""Names that no framework logs: a loop of one's own does, for health rules that need them."""


def test_every_entry_says_what_it_is_in_which_unit_on_which_clock() -> None:
    names = [entry.name for entry in keys.TABLE]
    assert len(names) == len(set(names))
    for entry in keys.TABLE:
        assert entry.name.split("/")[0] in SCOPES
        assert entry.definition.endswith(".")
        assert entry.unit
        assert entry.clock in CLOCKS
        assert entry.natives or entry.name in OWN
        assert all(native.estimator and native.framework for native in entry.natives)


def test_an_unknown_name_has_no_alias() -> None:
    assert keys.canonical("my/own/metric") is None
    assert keys.native_names("my/own/metric") == ()
    assert keys.describe("my/own/metric") is None
    assert keys.estimator("my/own/metric") is None
    assert keys.resolve("my/own/metric", ["loss"]) == []


def test_a_key_that_is_there_is_never_replaced_by_an_alias() -> None:
    assert keys.resolve("train/return", ["rollout/ep_rew_mean", "train/return"]) == ["train/return"]
    assert keys.resolve("rollout/ep_rew_mean", ["rollout/ep_rew_mean"]) == ["rollout/ep_rew_mean"]


def test_a_canonical_name_finds_every_module_of_a_multi_agent_run() -> None:
    there = ["learners/a/entropy", "learners/b/entropy", "learners/a/vf_loss"]
    assert keys.resolve("update/entropy", there) == ["learners/a/entropy", "learners/b/entropy"]


@given(st.sampled_from([n.key for e in keys.TABLE for n in e.natives if n.key != e.name and "*" not in n.key]))
def test_names_and_aliases_lead_to_each_other(native: str) -> None:
    name = keys.canonical(native)
    assert name is not None
    assert native in keys.native_names(name)
    assert keys.resolve(name, [native]) == [native]
    assert keys.canonical(name) is None


@given(st.text(max_size=40))
def test_any_text_is_a_fair_question(text: str) -> None:
    name = keys.canonical(text)
    assert name is None or name in {entry.name for entry in keys.TABLE}


def test_the_table_loads_nothing_heavy() -> None:
    code = (
        "import json, sys; before = set(sys.modules); import rollbook.schema.aliases; "
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not {"numpy", "torch", "typing", "dataclasses", "pyarrow"} & set(json.loads(done.stdout))


def test_the_page_of_adapters_lists_every_name_with_its_definition() -> None:
    page = (Path(__file__).parents[2] / "docs" / "names.md").read_text(encoding="utf-8")
    for entry in keys.TABLE:
        assert f"| `{entry.name}` | {entry.definition} | {entry.unit} | {entry.clock} |" in page
