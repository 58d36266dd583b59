"""A canonical name reads the same quantity out of the book of any framework; native names stay what they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fake_writer import FakeWriter, make_run

from rollbook.book.book import Book
from rollbook.errors import AmbiguousKey, UnknownKey
from rollbook.schema import aliases
from rollbook.storage.sealing.folder import seal

WRITTEN = {
    "cleanrl": {"charts/episodic_return": "train/return", "losses/approx_kl": "update/approx_kl"},
    "sb3": {"rollout/ep_rew_mean": "train/return", "eval/mean_reward": "test/return"},
    "spinningup": {"AverageEpRet": "train/return", "AverageTestEpRet": "test/return", "KL": "update/approx_kl_k1"},
    "acme": {"train_loop/episode_return": "train/return", "eval_loop/episode_return": "test/return"},
    "tianshou": {"training/returns_stat/mean": "train/return", "test/returns_stat/mean": "test/return"},
    "lightzero": {
        "collector/reward_mean": "train/return",
        "evaluator/reward_mean": "test/return",
        "learner/cur_lr": "update/learning_rate",
    },
    "rsl_rl": {"Train/mean_reward": "train/return", "Loss/surrogate": "update/loss/policy"},
    "skrl": {"Reward / Total reward (mean)": "train/return", "Loss / Policy loss": "update/loss/policy"},
    "rl_games": {"rewards/step": "train/return", "losses/c_loss": "update/loss/value"},
    "d3rlpy": {"rollout_return": "train/return", "evaluation": "test/return"},
    "brax": {"episode/sum_reward": "train/return", "eval/episode_reward": "test/return"},
    "stoix": {"actor/episode_return/mean": "train/return", "evaluator/episode_return/mean": "test/return"},
    "benchmarl": {
        "collection_reward_episode_reward_mean": "train/return",
        "train/agents/loss_critic": "update/loss/value",
    },
    "pufferlib": {"environment/episode_return": "train/return", "agent_steps": "time/env_steps"},
    "dreamerv3": {"episode/score": "train/return", "episode/length": "train/length"},
    "mrl": {"metrics/rewards": "train/reward"},
    "rollbook": {"return": "train/return", "length": "train/length"},
    "rllib": {
        "env_runners/episode_return_mean": "train/return",
        "learners/default_policy/policy_loss": "update/loss/policy",
        "evaluation/env_runners/episode_return_mean": "test/return",
    },
    "mlagents": {"Environment/Cumulative Reward": "train/return", "Environment/Episode Length": "train/length"},
    "berkeley": {
        "Train_AverageReturn": "train/return",
        "Eval_AverageReturn": "test/return",
        "Train_EnvstepsSoFar": "time/env_steps",
    },
    "rllab": {"AverageReturn": "train/return"},
    "garage": {"Evaluation/AverageReturn": "test/return", "TotalEnvSteps": "time/env_steps"},
    "baselines": {"eprewmean": "train/return", "eplenmean": "train/length", "TimestepsSoFar": "time/env_steps"},
    "rlkit": {"exploration/Average Returns": "train/return", "evaluation/Average Returns": "test/return"},
    "pymarl": {"return_mean": "train/return", "test_return_mean": "test/return"},
    "tf_agents": {"train/Metrics/AverageReturn": "train/return", "eval/Metrics/AverageReturn": "test/return"},
    "dopamine": {"Train/AverageReturns": "train/return", "Eval/AverageReturns": "test/return"},
    "sample_factory": {"reward/reward": "train/return", "len/len": "train/length"},
    "onpolicy": {"average_episode_rewards": "train/return", "eval_average_episode_rewards": "test/return"},
    "rlpyt": {"ReturnAverage": "train/return", "CumSteps": "time/env_steps"},
    "drq": {"train/episode_reward": "train/return"},
    "jaxrl": {"training/return": "train/return", "evaluation/return": "test/return"},
    "coach": {"Training Reward": "train/return", "Evaluation Reward": "test/return", "Total steps": "time/env_steps"},
    "torchbeast": {"mean_episode_return": "train/return"},
    "pfrl": {"eval/mean": "test/return"},
    "table": {"episode_reward": "train/return", "ep_len": "train/length", "eval_reward": "test/return"},
    "trl": {"reward": "train/reward", "train/kl": "update/kl_to_reference"},
    "openrlhf": {"train/reward": "train/reward", "train/ppo_kl": "update/approx_kl_k1"},
    "slime": {"rollout/raw_reward": "train/reward", "train/pg_clipfrac": "update/clip_fraction"},
    "verl": {"critic/score/mean": "train/reward", "actor/ppo_kl": "update/approx_kl_k1"},
}


def written(root: Path, keys: list[str], rows: int = 3) -> Book:
    """A book in which key number k has the values k, k + 100, k + 200 at env_step 10, 20, 30."""
    run = make_run(root, x="env_step")
    writer = FakeWriter(run)
    lane = writer.lane()
    for k, key in enumerate(keys):
        stream = lane.stream(key)
        for i in range(rows):
            stream.log(k + 100.0 * i, env_step=10 * (i + 1))
    return Book(run)


@pytest.mark.parametrize("framework", WRITTEN)
def test_one_name_reads_the_quantity_out_of_every_frameworks_book(tmp_path: Path, framework: str) -> None:
    names = WRITTEN[framework]
    book = written(tmp_path, list(names))
    for k, (native, canonical) in enumerate(names.items()):
        series = book.series(canonical)
        assert series.mean.tolist() == [k, k + 100, k + 200]
        assert series.x.tolist() == [10, 20, 30]
        assert book.series(native).mean.tolist() == series.mean.tolist()
        assert book.series(canonical, points=2).count.sum() == 3
        table = book.metrics([canonical], x="env_step")
        assert table[canonical].to_pylist() == [k, k + 100, k + 200], "the column has the name that was asked for"
    assert book.keys() == sorted(names), "an alias is no key"
    assert {native: canonical for canonical, native in book.canonical().items()} == names


def test_the_rewards_of_an_older_tianshou_are_returns_where_their_lengths_are_beside_them(tmp_path: Path) -> None:
    book = written(tmp_path, ["train/reward", "train/length", "test/reward", "test/length"])
    assert book.series("train/return").mean.tolist() == [0, 100, 200]
    assert book.series("test/return").mean.tolist() == [2, 102, 202]
    assert "train/return" not in written(tmp_path / "other", ["train/reward", "loss"]).canonical()


def test_a_framework_in_a_scope_has_the_canonical_names_of_that_scope(tmp_path: Path) -> None:
    book = written(tmp_path, ["agent0/rollout/ep_rew_mean", "agent0/train/approx_kl", "loss"])
    of_scope = {
        "agent0/train/return": "agent0/rollout/ep_rew_mean",
        "agent0/update/approx_kl": "agent0/train/approx_kl",
    }
    assert book.canonical().items() >= of_scope.items()
    assert book.series("agent0/train/return").mean.tolist() == [0, 100, 200]
    assert book.series("train/return").mean.tolist() == [0, 100, 200], "nobody else has one"
    assert book.metrics(["train/return"]).column_names == ["env_step", "time", "train/return"]


def test_of_two_scopes_neither_is_the_run(tmp_path: Path) -> None:
    book = written(tmp_path, ["agent0/rollout/ep_rew_mean", "agent1/rollout/ep_rew_mean"])
    assert set(book.canonical()) == {"agent0/train/return", "agent1/train/return"}
    with pytest.raises(AmbiguousKey, match="agent0/rollout/ep_rew_mean, agent1/rollout/ep_rew_mean"):
        book.series("train/return")
    beside = written(tmp_path / "beside", ["rollout/ep_rew_mean", "agent1/rollout/ep_rew_mean"])
    assert beside.series("train/return").mean.tolist() == [0, 100, 200], "the run's own comes first"


@pytest.mark.parametrize("key", ["agent0/return", "evaluation/agent0/rollout/ep_rew_mean"])
def test_what_may_be_something_else_is_no_key_of_a_scope(tmp_path: Path, key: str) -> None:
    assert written(tmp_path, [key]).canonical() == {}


def test_every_framework_of_the_table_is_tried_here() -> None:
    assert {native.framework for entry in aliases.TABLE for native in entry.natives} == set(WRITTEN)


def test_a_canonical_name_reads_sealed_rows_too(tmp_path: Path) -> None:
    book = written(tmp_path, ["rollout/ep_rew_mean"])
    seal(book.path, final=True, take_over=True)
    assert book.series("train/return", x="env_step").mean.tolist() == [0, 100, 200]


def test_a_key_of_that_very_name_wins_over_the_alias(tmp_path: Path) -> None:
    book = written(tmp_path, ["rollout/ep_rew_mean", "train/return"])
    assert book.series("train/return").mean.tolist() == [1, 101, 201]
    assert book.canonical()["train/return"] == "train/return"


def test_a_name_for_several_keys_is_an_error_that_lists_them(tmp_path: Path) -> None:
    book = written(tmp_path, ["learners/red/entropy", "learners/blue/entropy", "learners/red/vf_loss"])
    with pytest.raises(AmbiguousKey, match=r"update/entropy.*learners/blue/entropy.*learners/red/entropy|red.*blue"):
        book.series("update/entropy")
    assert book.canonical() == {"update/loss/value": "learners/red/vf_loss"}


@pytest.mark.parametrize(
    "keys", [["train_loop/episode_return", "actor/episode_return"], ["rollout/ep_rew_mean", "AverageEpRet"]]
)
def test_two_loops_or_two_frameworks_in_a_run_are_two_quantities(tmp_path: Path, keys: list[str]) -> None:
    book = written(tmp_path, keys)
    with pytest.raises(AmbiguousKey) as caught:
        book.metrics(["train/return"])
    assert all(key in str(caught.value) for key in keys)


def test_several_spellings_of_one_framework_are_one_quantity(tmp_path: Path) -> None:
    book = written(tmp_path, ["collector_iter/reward_mean", "collector/reward_mean", "collector_step/reward_mean"])
    assert book.canonical()["train/return"] == "collector/reward_mean"
    assert book.series("train/return").mean.tolist() == [1, 101, 201]


def test_an_axis_may_be_a_canonical_name(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    stream = FakeWriter(run).lane().stream("TotalEnvInteracts", "AverageEpRet")
    for i in range(4):
        stream.log(4000.0 * (3 - i), float(i))
    book = Book(run)
    series = book.series("train/return", x="time/env_steps")
    assert (series.x.tolist(), series.mean.tolist()) == ([0, 4000, 8000, 12000], [3, 2, 1, 0])
    assert book.series("train/return", x="time/env_steps", start=4000, stop=12000).mean.tolist() == [2, 1]
    table = book.metrics(x="time/env_steps")
    assert table["time/env_steps"].to_pylist() == table["TotalEnvInteracts"].to_pylist() == [0, 4000, 8000, 12000]


def test_a_key_may_be_asked_for_under_both_names(tmp_path: Path) -> None:
    table = written(tmp_path, ["rollout/ep_rew_mean"]).metrics(["rollout/ep_rew_mean", "train/return"])
    assert table["rollout/ep_rew_mean"].to_pylist() == table["train/return"].to_pylist() == [0, 100, 200]


def test_a_name_that_no_key_of_the_book_stands_for_says_what_there_is(tmp_path: Path) -> None:
    book = written(tmp_path, ["train/loss"])
    with pytest.raises(
        UnknownKey, match=r"no key 'train/return', nor any .*charts/episodic_return.*Available: train/loss"
    ):
        book.series("train/return")
    with pytest.raises(UnknownKey, match=r"no key 'train/los'\. Did you mean 'train/loss'"):
        book.series("train/los")
    with pytest.raises(UnknownKey, match=r"x='train/return'.*no such clock or key"):
        book.series("train/loss", x="train/return")


def test_reading_native_names_does_not_load_the_table(tmp_path: Path) -> None:
    book = written(tmp_path, ["rollout/ep_rew_mean"])
    code = (
        "import sys; from rollbook.book.book import Book; "
        f"Book({str(book.path)!r}).series('rollout/ep_rew_mean'); assert 'rollbook.schema.aliases' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
