"""Real multi-agent environments of PettingZoo, both kinds."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from rollbook.capture.multiagent import RecordAEC, RecordParallel

GROUPS = ("data",)


class Rows:
    """Keeps everything in lists."""

    def __init__(self) -> None:
        self.name, self.folder = "train", None
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.counts: dict[str, str] = {}

    def record(self, table: str, columns: dict[str, Any], n: int = 1, **_: Any) -> int:
        for i in range(n):
            self.rows.setdefault(table, []).append({name: column[i] for name, column in columns.items()})
        return 1

    def log(self, values: Any, **_: Any) -> None:
        self.rows.setdefault("logged", []).append(dict(values))

    def clocks_now(self) -> dict[str, int]:
        return {}

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        self.counts[cause] = message


def mpe(name: str) -> Any:
    """A scenario of mpe2 by its bare name, whatever its version is today."""
    import mpe2

    found = sorted(module for module in mpe2.__all__ if module.startswith(name)) if hasattr(mpe2, "__all__") else []
    for candidate in [*found, *(f"{name}_v{n}" for n in (5, 4, 3, 2))]:
        try:
            return importlib.import_module(f"mpe2.{candidate}")
        except ModuleNotFoundError:
            continue
    raise LookupError(name)


@pytest.mark.core
@pytest.mark.parametrize("name", ["simple_spread", "simple_tag"])
def test_a_parallel_environment_is_recorded_and_behaves_as_before(name: str) -> None:
    book, module = Rows(), mpe(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, recorded = (module.parallel_env(max_cycles=7), module.parallel_env(max_cycles=7))
        recorded = RecordParallel(recorded, book, steps=True)
    paid: dict[str, float] = {}
    a, b = plain.reset(seed=2), recorded.reset(seed=2)
    while plain.agents:
        assert plain.agents == recorded.agents
        for agent in a[0]:
            np.testing.assert_array_equal(a[0][agent], b[0][agent])
        actions = {agent: i % 5 for i, agent in enumerate(plain.agents)}
        a, b = plain.step(actions), recorded.step(actions)
        assert a[1] == b[1]
        for agent, reward in a[1].items():
            paid[agent] = paid.get(agent, 0.0) + reward
    (episode,) = book.rows["episodes"]
    assert (episode["length"], episode["truncated"], episode["complete"]) == (7, True, True)
    assert episode["return"] == pytest.approx(sum(paid.values()))
    sums = {row["agent"]: row["sum"] for row in book.rows["rewards"] if row["agent"]}
    assert sums == pytest.approx(paid)
    for agent in paid:
        rows = [row for row in book.rows["steps"] if row["agent"] == agent]
        assert [row["t"] for row in rows] == list(range(8))
        assert all(row["obs"].dtype == np.float32 for row in rows)
    assert book.counts == {}


def test_a_turn_based_environment_pays_what_its_parallel_form_pays() -> None:
    book, module = Rows(), mpe("simple_spread")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel = module.parallel_env(max_cycles=6)
        turns = RecordAEC(module.env(max_cycles=6), book, steps=True)
    parallel.reset(seed=5)
    paid: dict[str, float] = {}
    while parallel.agents:
        for agent, reward in parallel.step(dict.fromkeys(parallel.agents, 1))[1].items():
            paid[agent] = paid.get(agent, 0.0) + reward
    turns.reset(seed=5)
    for agent in turns.agent_iter():
        over = turns.terminations[agent] or turns.truncations[agent]
        turns.step(None if over else 1)
    (episode,) = book.rows["episodes"]
    assert (episode["complete"], episode["truncated"], episode["length"]) == (True, True, 6 * len(paid))
    sums = {row["agent"]: row["sum"] for row in book.rows["rewards"] if row["agent"]}
    assert sums == pytest.approx(paid)
    for agent in paid:
        rows = [row for row in book.rows["steps"] if row["agent"] == agent]
        assert [row["t"] for row in rows] == list(range(7))
        assert [row.get("truncated") for row in rows] == [False] * 5 + [True, None]
    assert book.counts == {}


def test_the_api_tests_of_pettingzoo_pass_on_recorded_environments() -> None:
    from pettingzoo.test import parallel_seed_test

    module = mpe("simple_spread")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parallel_seed_test(lambda: RecordParallel(module.parallel_env(), Rows()), num_cycles=20)
