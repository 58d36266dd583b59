"""The auditor finds what others count wrongly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rollbook.capture import RewardLedger
from rollbook.capture.episodes.auditor import EpisodeAuditor, reported_in
from rollbook.capture.gym import RecordEpisodes

OLD_GYM = next((Path(__file__).parents[2] / ".venvs" / "gym122").glob("lib/python*/site-packages"), None)


def evidence(notebook: Any) -> list[dict[str, Any]]:
    return [json.loads(row["evidence"]) for row in notebook.table("alerts")]


def test_what_agrees_is_no_finding(notebook: Any) -> None:
    auditor = EpisodeAuditor(notebook)
    assert auditor.check("e", (3.0, 3), (np.float32(3.0).item(), 3), source="s") == ""
    assert auditor.check("e", (1234.56789, 1000), (1234.567871, 1000), source="s") == ""  # six digits, float32
    assert auditor.check("e", (float("nan"), 3), (float("nan"), 3), source="s") == ""
    assert notebook.counts == {}


@pytest.mark.parametrize(
    ("own", "reported", "wrong"),
    [
        ((3.0, 3), (2.0, 2), "off by one"),
        ((3.0, 3), (3.0, 5), "length differs"),
        ((3.0, 3), (3.5, 3), "return differs"),
        ((float("nan"), 3), (0.0, 3), "return differs"),
    ],
)
def test_each_kind_of_difference_has_its_name_and_its_evidence(
    notebook: Any, own: Any, reported: Any, wrong: str
) -> None:
    assert EpisodeAuditor(notebook).check("e7", own, reported, source="Monitor", env_index=2) == wrong
    (row,) = notebook.table("alerts")
    (found,) = evidence(notebook)
    assert (row["rule"], row["level"], row["source"]) == ("episode_audit", "warn", "Monitor")
    assert (found["episode_id"], found["reported_length"], found["own_length"]) == ("e7", reported[1], own[1])
    assert notebook.counts == {"episode_audit": 1}


def test_a_return_that_leaked_in_from_the_episode_before_is_recognised(notebook: Any) -> None:
    auditor = EpisodeAuditor(notebook)
    auditor.check("a", (3.0, 3), (3.0, 3), source="s")
    assert auditor.check("b", (4.0, 4), (7.0, 7), source="s") == "leaked return"
    assert auditor.check("c", (5.0, 5), (9.0, 5), source="s") == "leaked return"


def test_a_report_that_stops_coming_is_a_finding_one_that_never_came_is_not(notebook: Any) -> None:
    auditor = EpisodeAuditor(notebook)
    assert auditor.check("a", (3.0, 3), None, source="s") == ""
    auditor.check("b", (3.0, 3), (3.0, 3), source="s")
    assert auditor.check("c", (3.0, 3), None, source="s") == "missing final info"


def test_a_thousand_equal_findings_are_a_few_alerts_with_a_count(notebook: Any) -> None:
    auditor = EpisodeAuditor(notebook)
    for n in range(1234):
        auditor.check(f"e{n}", (3.0, 3), (2.0, 2), source="s")
    auditor.conclude()
    assert [found["count"] for found in evidence(notebook)] == [1, 10, 100, 1000, 1234]
    assert evidence(notebook)[-1]["first_episodes"] == ["e0", "e1", "e2"]
    assert notebook.counts["episode_audit"] == 1234


def test_what_was_checked_is_reported_and_what_was_not_and_why(notebook: Any) -> None:
    auditor = EpisodeAuditor(notebook)
    assert auditor.conclude() == "", "nothing is said of no episodes"
    for n in range(37):
        auditor.check(f"e{n}", (3.0, 3), (3.0, 3), source="s")
    for _ in range(4):
        auditor.check("x", (3.0, 3), (3.0, 3), source="s", compare_return=False, compare_length=False)
    assert auditor.conclude().startswith("37 of 41 episodes were compared")
    (row,) = notebook.table("text")
    assert row["key"] == "audit"
    assert "4 were not: 4 because a wrapper outside s may change rewards" in row["text"]
    assert row["text"].endswith(". None differed.")
    auditor.check("y", (3.0, 3), (2.0, 3), source="s")
    auditor.check("z", (3.0, 3), None, source="s")
    said = auditor.conclude()
    assert said.startswith("38 of 43 episodes were compared"), "an episode of which nothing was said is none of them"
    assert said.endswith("1 because s did not report them. 2 findings, see the alerts.")


class _Own(gymnasium.Wrapper):
    """A statistics wrapper as people write them, right unless `spoil` says otherwise."""

    def __init__(self, env: Any, spoil: Any = lambda told: told) -> None:
        super().__init__(env)
        self.spoil, self.total, self.length = spoil, 0.0, 0

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        self.total, self.length = self.total + float(reward), self.length + 1
        if terminated or truncated:
            told = self.spoil({"r": self.total, "l": self.length})
            if told is not None:
                info["episode"] = told
            self.total, self.length = 0.0, 0
        return obs, reward, terminated, truncated, info


class _Sub(gymnasium.wrappers.RecordEpisodeStatistics):
    def step(self, action: Any) -> Any:
        result = super().step(action)
        if "episode" in result[4]:
            result[4]["episode"]["l"] -= 1
        return result


class _Passing(gymnasium.Wrapper):
    """Changes nothing."""


SPOILT = {
    "length minus one": lambda told: {**told, "l": told["l"] - 1},
    "a tenth of the return": lambda told: {**told, "r": told["r"] / 10},
    "mean instead of sum": lambda told: {**told, "r": told["r"] / told["l"]},
    "another episode's": lambda told: {"r": 99.0, "l": 99},
}


@pytest.mark.parametrize("wrong", [*SPOILT, "a subclass", "a subclass further inside"])
def test_the_writer_of_a_report_is_compared_with(notebook: Any, make_env: Any, wrong: str) -> None:
    env = make_env([3, 4, 5])
    if wrong in SPOILT:
        env = _Own(env, SPOILT[wrong])
    else:
        env = _Sub(env) if wrong == "a subclass" else _Passing(_Sub(env))
    env = RecordEpisodes(env, notebook)
    play(env, 3)
    assert notebook.counts["episode_audit"] == 3
    assert len(evidence(notebook)) >= 1


@pytest.mark.parametrize("wrap", [_Own, lambda env: _Passing(_Own(env)), gymnasium.wrappers.RecordEpisodeStatistics])
def test_a_right_report_is_checked_and_no_finding(notebook: Any, make_env: Any, wrap: Any) -> None:
    env = RecordEpisodes(wrap(make_env([3, 4, 5])), notebook)
    play(env, 3)
    assert notebook.table("alerts") == []
    assert env.episodes.settings.auditor.conclude().startswith("3 of 3 episodes were compared")


class _Hides(gymnasium.Wrapper):
    """Resets by itself and says of no step that it was the last one."""

    def step(self, action: Any) -> Any:
        obs, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            obs, _ = self.env.reset()
        return obs, reward, False, False, info


def test_an_end_that_a_hidden_autoreset_swallows_is_a_finding(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(_Hides(gymnasium.wrappers.RecordEpisodeStatistics(make_env([3, 4]))), notebook)
    env.reset()
    for _ in range(12):
        env.step(0)
    assert {found["wrong"] for found in evidence(notebook)} == {"end not passed on"}
    assert notebook.counts["episode_audit"] == 3


def test_a_step_after_the_end_without_a_reset_is_a_finding(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([5]), notebook)
    env.reset()
    for _ in range(5):
        env.step(0)
    assert notebook.table("alerts") == []
    env.step(0)
    (found,) = evidence(notebook)
    assert found["wrong"] == "stepped after the end"
    env.reset()
    play(env, 1)
    assert len(evidence(notebook)) == 1, "after a reset all is well"


def test_what_was_stepped_without_a_reset_is_kept_by_a_schedule_for_alerts(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(make_env([5]), notebook, steps="alert")
    env.reset()
    for _ in range(8):
        env.step(0)
    play(env, 2)
    ended = [row["episode_id"] for row in notebook.table("episodes")]
    assert {row["episode_id"] for row in notebook.table("steps")} == set(ended[1:4]), "each of its steps ended one"


def play(env: Any, episodes: int) -> None:
    for _ in range(episodes):
        env.reset()
        over = False
        while not over:
            _, _, terminated, truncated, _ = env.step(0)
            over = terminated or truncated


def test_infos_of_all_makes_are_read() -> None:
    assert reported_in({"episode": {"r": 3.0, "l": 4, "t": 0.1}}) == (3.0, 4)
    assert reported_in({"episode": {"r": np.array([2.5], np.float32), "l": np.array([4])}}) == (2.5, 4)
    assert reported_in({"episode": 3}) is None
    assert reported_in({}) is None


def test_the_statistics_wrapper_of_one_environment_is_checked(notebook: Any, make_env: Any) -> None:
    class Wrong(gymnasium.wrappers.RecordEpisodeStatistics):
        def step(self, action: Any) -> Any:
            result = super().step(action)
            if "episode" in result[4]:
                result[4]["episode"]["r"] += 1
            return result

    Wrong.__name__ = "RecordEpisodeStatistics"
    for wrapper, alerts in ((gymnasium.wrappers.RecordEpisodeStatistics, 0), (Wrong, 1)):
        env = RecordEpisodes(wrapper(make_env([3])), notebook)
        env.reset()
        for _ in range(3):
            env.step(0)
        assert len(notebook.table("alerts")) == alerts


def test_a_wrapper_that_changes_rewards_in_between_is_no_finding(notebook: Any, make_env: Any) -> None:
    inner = gymnasium.wrappers.RecordEpisodeStatistics(make_env([3], reward=10.0))
    env = RecordEpisodes(gymnasium.wrappers.TransformReward(inner, lambda r: r / 10), notebook)
    env.reset()
    for _ in range(3):
        env.step(0)
    assert notebook.table("alerts") == []
    assert notebook.columns("episodes", "return") == [(3.0,)]


def test_a_monitor_inside_the_time_limit_never_reports_truncated_episodes(notebook: Any, make_env: Any) -> None:
    env = RecordEpisodes(
        gymnasium.wrappers.TimeLimit(gymnasium.wrappers.RecordEpisodeStatistics(make_env([9])), 4), notebook
    )
    env.reset()
    for _ in range(4):
        env.step(0)
    assert evidence(notebook)[0]["wrong"] == "missing final info"


@pytest.mark.parametrize("mode", list(AutoresetMode))
@pytest.mark.parametrize("inside", [True, False])
def test_the_statistics_wrapper_of_vectors_is_checked_episode_by_episode(
    notebook: Any, make_env: Any, mode: Any, inside: bool
) -> None:
    # gymnasium 1.4.0 with partial resets (DISABLED) forgets the sums of the sub-environments that were not reset: the
    # mask is taken out of the options before the wrapper looks for it. What a release gets wrong is found, no more.
    lengths = [[3], [2, 4]]
    vector = SyncVectorEnv([lambda n=n: make_env(n) for n in lengths], autoreset_mode=mode)
    envs = RecordEpisodes(gymnasium.wrappers.vector.RecordEpisodeStatistics(vector), notebook, inside=inside)
    envs.reset()
    wrong, seen = 0, [0, 0]
    for _ in range(20):
        _, _, terminated, truncated, infos = envs.step(np.array([0, 0]))
        over = np.logical_or(terminated, truncated)
        said = infos if "episode" in infos else infos.get("final_info", {})
        for i in np.flatnonzero(over):
            wrong += said["episode"]["l"][i] != lengths[i][seen[i] % len(lengths[i])]
            seen[i] += 1
        if mode is AutoresetMode.DISABLED and over.any():
            envs.reset(options={"reset_mask": over})
    assert sum(seen) > 8
    assert notebook.counts.get("episode_audit", 0) == wrong
    if gymnasium.__version__ == "1.4.0":
        assert bool(wrong) == (mode is AutoresetMode.DISABLED)


SAME_STEP_IN_1_2_2 = """
import sys
sys.path[:0] = [{tests!r}, {src!r}]
import gymnasium, json, numpy as np
from pathlib import Path
from gymnasium.vector import SyncVectorEnv, AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from conftest import Notebook, counting_env
from rollbook.capture.gym import RecordEpisodes
assert gymnasium.__version__ == "1.2.2", gymnasium.__version__
book = Notebook(Path({root!r}))
envs = RecordEpisodes(
    RecordEpisodeStatistics(SyncVectorEnv([lambda: counting_env([3])], autoreset_mode=AutoresetMode.SAME_STEP)), book
)
envs.reset()
for _ in range(6):
    envs.step(np.array([0]))
print(json.dumps([[row["return"] for row in book.table("episodes")], [row["evidence"] for row in
book.table("alerts")]]))
book.run.finish()
"""


@pytest.mark.skipif(OLD_GYM is None, reason="gymnasium 1.2.2 is not there (make test-frameworks installs it beside)")
def test_gymnasium_1_2_2_reports_2_for_a_return_of_3_when_it_resets_in_the_same_step(
    tmp_path: Path,
) -> None:
    here = Path(__file__).parent
    program = SAME_STEP_IN_1_2_2.format(tests=str(here), src=str(here.parents[1] / "src"), root=str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(OLD_GYM)!r})\n{program}"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    returns, alerts = json.loads(done.stdout)
    assert returns == [3.0, 3.0]  # what the reward stream says
    (found,) = map(json.loads, alerts)
    assert (found["own_return"], found["reported_return"]) == (3.0, 2.0)
    assert (found["own_length"], found["reported_length"]) == (3, 2)
    assert (found["wrong"], found["autoreset"]) == ("off by one", "SAME_STEP")


# -- the reward ledger


def test_the_ledger_puts_the_stages_of_a_reward_side_by_side(notebook: Any, make_env: Any) -> None:
    ledger = RewardLedger(notebook)
    env = ledger.stage(make_env([2], reward=5.0), "raw")
    env = ledger.stage(gymnasium.wrappers.TransformReward(env, lambda r: min(r, 1.0)), "clipped")
    env = RecordEpisodes(gymnasium.wrappers.TransformReward(env, lambda r: r / 2), notebook, ledger=ledger)
    for _ in range(2):
        env.reset()
        for _ in range(2):
            env.step(0)
    first, second = (row["episode_id"] for row in notebook.table("episodes"))
    for episode in (first, second):
        rows = {
            row["stage"]: (row["sum"], row["mean"], row["min"], row["max"], row["n"])
            for row in notebook.table("rewards")
            if row["episode_id"] == episode
        }
        assert rows == {
            "raw": (10.0, 5.0, 5.0, 5.0, 2),
            "clipped": (2.0, 1.0, 1.0, 1.0, 2),
            "final": (1.0, 0.5, 0.5, 0.5, 2),
        }
    assert notebook.logged[0]["return_raw"] == 10.0


def test_components_and_agents_are_kept_apart_and_checked_each(notebook: Any) -> None:
    ledger = RewardLedger(notebook)
    for _ in range(3):
        ledger.add("raw", {"goal": 1.0, "energy": -0.5}, agent="red")
        ledger.add("raw", 0.5, agent="red")
        ledger.add("raw", {"goal": 1.0}, agent="blue")
        ledger.add("raw", 2.0, agent="blue")
    (finding,) = ledger.check("e1")
    assert (finding["agent"], finding["total"], finding["components"], finding["difference"]) == (
        "blue",
        6.0,
        {"goal": 3.0},
        3.0,
    )
    columns, n = ledger.columns("e1")
    assert n == 5
    assert (
        dict(zip(zip(columns["agent"], columns["component"], strict=True), columns["sum"], strict=True))[
            "red", "energy"
        ]
        == -1.5
    )


def test_rounding_is_no_finding() -> None:
    ledger = RewardLedger()
    for value in np.random.default_rng(0).normal(size=1000):
        ledger.add("final", {"a": float(np.float32(value)), "b": -0.1})
        ledger.add("final", float(np.float32(value - 0.1)))
    assert ledger.check() == []


def test_a_reward_that_is_no_number_is_counted_not_raised(notebook: Any, make_env: Any) -> None:
    env = RewardLedger(notebook).stage(make_env([2], reward="much"), "raw")
    env.reset()
    assert env.step(0)[1] == "much"
    assert notebook.counts == {"reward_ledger_odd": 1}
