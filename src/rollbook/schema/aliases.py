"""The canonical names of reinforcement learning: the meaning of each, and its name in every framework.

    native_names("update/approx_kl")     ('losses/approx_kl', 'train/approx_kl', …)
    canonical("rollout/ep_rew_mean")     'train/return'
    resolve("train/return", book.keys()) ['rollout/ep_rew_mean']
    describe("train/return").definition  'Sum of the undiscounted rewards of one training episode.'
    book.series("train/return")          # of any framework's run: readers resolve it by this table

A run keeps the names of its framework. A canonical name is an alias that readers resolve, so that runs of different
frameworks can be compared; it is never a second copy. Two native names share a canonical one only if they mean the same
quantity with the same sign and unit. The entry also has the estimator of each (every episode, or a mean of the last
hundred), because a comparison must report it. If the sign differs, the names differ: the entropy and the entropy loss
are two entries.

Plain data and the standard library; readers, adapters and the dashboard import it.
"""

from __future__ import annotations

__all__ = [
    "SCORES",
    "TABLE",
    "Canonical",
    "Native",
    "candidates",
    "canonical",
    "describe",
    "estimator",
    "lower_is_better",
    "native_names",
    "resolve",
    "scoped",
    "without_prefix",
]

import functools
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Native:
    """A quantity's name in one framework.

    Attributes:
      framework: the adapter's name: sb3, spinningup, acme, tianshou, lightzero, mrl, rllib, trl, rsl_rl, skrl,
        rl_games, d3rlpy, brax, stoix, pufferlib, dreamerv3, verl, openrlhf, slime; cleanrl and benchmarl through their
        writers; rollbook for what `RecordEpisodes` logs on a run instead of a scope; others whose files are read:
        baselines, rllab, garage, rlkit, berkeley (homework of CS 285), mlagents …; "table" for columns of tables of no
        known tool.
      key: its key. A part `*` matches any one part ("learners/*/entropy").
      estimator: how the number was computed from the observations.
    """

    __slots__ = ("estimator", "framework", "key")

    def __init__(self, framework: str, key: str, estimator: str) -> None:
        self.framework, self.key, self.estimator = framework, key, estimator

    def __repr__(self) -> str:
        return f"Native({self.framework!r}, {self.key!r}, {self.estimator!r})"


class Canonical:
    """One quantity.

    Attributes:
      name: `scope/name`, with the unit in the name if it has one.
      definition: one sentence.
      unit: "reward", "env steps", "seconds", "1/s", "nats", "1" (a plain number) …
      clock: the usual x-axis.
      natives: its names in the frameworks; those that a reporter prefixes also with the prefix, at the end.
    """

    __slots__ = ("clock", "definition", "name", "natives", "unit")

    def __init__(self, name: str, definition: str, unit: str, clock: str, *natives: tuple[str, str, str]) -> None:
        self.name, self.definition, self.unit, self.clock = name, definition, unit, clock
        given = {native[1] for native in natives}
        spelled = [
            (framework, _PREFIXES[framework] + key, estimator)
            for framework, key, estimator in natives
            if framework in _PREFIXES and _PREFIXES[framework] + key not in given
        ]
        self.natives: tuple[Native, ...] = tuple(Native(*native) for native in (*natives, *spelled))

    def __repr__(self) -> str:
        return f"Canonical({self.name!r}, unit={self.unit!r}, clock={self.clock!r}, natives={len(self.natives)})"


_EACH = "each episode"
_LAST_100 = "mean of the last 100 finished episodes"
_EPOCH = "mean of the episodes finished in the epoch"
_COLLECT = "mean of the episodes finished in one collect"
_ITERATION_ALL = "mean of the episodes finished in the iteration"
_ITERATION = "mean of the episodes finished in the iteration, at most 100"
_EVAL = "mean of the evaluation's episodes"
_UPDATE = "mean of the update's minibatches"
_STEP = "one gradient step"
_SUMMARY = "mean of the episodes finished since the last row"
_SEVERAL = "a mean of episodes; of which, the file does not say"
_SINCE_START = "since the start of learning"
_MOMENT = "at the moment of logging"
_SEVERAL_UPDATES = "of an update; how, the file does not say"

_PREFIXES = {"trl": "train/", "openrlhf": "train/", "rllib": "ray/tune/"}
"""Framework -> what its reporters (Hugging Face's Trainer, Ray Tune) put before its own keys in TensorBoard and W&B."""

TABLE: tuple[Canonical, ...] = (
    # -- episodes of training -------------------------------------------------------------------------------------
    Canonical(
        "train/return",
        "Sum of the undiscounted rewards of one training episode.",
        "reward",
        "env_step",
        ("rollbook", "return", _EACH),
        ("cleanrl", "charts/episodic_return", _EACH),
        ("sb3", "rollout/ep_rew_mean", _LAST_100),
        ("spinningup", "AverageEpRet", _EPOCH),
        ("acme", "episode_return", _EACH),
        ("acme", "train_loop/episode_return", _EACH),
        ("acme", "environment_loop/episode_return", _EACH),
        ("acme", "train/episode_return", _EACH),
        ("acme", "actor/episode_return", _EACH),
        ("tianshou", "training/returns_stat/mean", _COLLECT),
        ("tianshou", "train/returns_stat/mean", _COLLECT),
        ("lightzero", "collector/reward_mean", _COLLECT),
        ("lightzero", "collector_iter/reward_mean", _COLLECT),
        ("lightzero", "collector_step/reward_mean", _COLLECT),
        ("rllib", "env_runners/episode_return_mean", _ITERATION),
        ("rllib", "env_runners/episode_reward_mean", _ITERATION),
        ("rllib", "episode_reward_mean", _ITERATION),
        ("rsl_rl", "Train/mean_reward", _LAST_100),
        ("skrl", "Reward / Total reward (mean)", "mean of the last 100 finished episodes, over the write interval"),
        ("rl_games", "rewards/step", "mean of the last finished games, at most games_to_track"),
        ("d3rlpy", "rollout_return", "mean of the episodes finished since the last row"),
        ("pufferlib", "environment/episode_return", _ITERATION_ALL),
        ("brax", "episode/sum_reward", _ITERATION_ALL),
        ("dreamerv3", "episode/score", _EACH),
        ("stoix", "actor/episode_return/mean", _ITERATION_ALL),
        ("benchmarl", "collection_reward_episode_reward_mean", _COLLECT),
        ("benchmarl", "collection/reward/episode_reward_mean", _COLLECT),
        ("mlagents", "Environment/Cumulative Reward", _SUMMARY),
        ("berkeley", "Train_AverageReturn", _ITERATION_ALL),
        ("berkeley", "train_return", _ITERATION_ALL),
        ("rllab", "AverageReturn", _ITERATION_ALL),
        ("rllab", "TrueAverageReturn", _ITERATION_ALL),
        ("baselines", "eprewmean", _LAST_100),
        ("baselines", "ep_rewmean", _LAST_100),
        ("baselines", "EpRewMean", _LAST_100),
        ("baselines", "ep_reward_mean", _LAST_100),
        ("baselines", "mean 100 episode reward", _LAST_100),
        ("baselines", "rollout/return", _EPOCH),
        ("baselines", "eprew", _SEVERAL),
        ("rlkit", "exploration/Average Returns", _EPOCH),
        ("rlkit", "expl/Average Returns", _EPOCH),
        ("pymarl", "return_mean", _SUMMARY),
        ("tf_agents", "Metrics/AverageReturn", "mean of the last 10 episodes"),
        ("tf_agents", "train/Metrics/AverageReturn", "mean of the last 10 episodes"),
        ("dopamine", "Train/AverageReturns", _ITERATION_ALL),
        ("dopamine", "train_average_return", _ITERATION_ALL),
        ("sample_factory", "reward/reward", _LAST_100),
        ("sample_factory", "0_aux/avg_reward", _LAST_100),
        ("onpolicy", "average_episode_rewards", _ITERATION_ALL),
        ("onpolicy", "train_episode_rewards", _ITERATION_ALL),
        ("onpolicy", "aver_rewards", _ITERATION_ALL),
        ("rlpyt", "ReturnAverage", _ITERATION_ALL),
        ("drq", "train/episode_reward", _EACH),
        ("jaxrl", "training/return", _EACH),
        ("coach", "Training Reward", _EACH),
        ("torchbeast", "mean_episode_return", _ITERATION_ALL),
        ("table", "episode_reward", _EACH),
        ("table", "episode_rewards", _EACH),
        ("table", "episodic_return", _EACH),
        ("table", "episodic_reward", _EACH),
        ("table", "total_reward", _EACH),
        ("table", "ep_reward", _EACH),
        ("table", "ep_return", _EACH),
        ("table", "ep_ret", _EACH),
        ("table", "cumulative_reward", _EACH),
        ("table", "Episode Reward", _EACH),
        ("table", "returns", _EACH),
        ("table", "average_return", _SEVERAL),
        ("table", "avg_return", _SEVERAL),
        ("table", "mean_return", _SEVERAL),
        ("table", "mean_episode_reward", _SEVERAL),
        ("table", "avg_episode_reward", _SEVERAL),
        ("table", "average_episode_reward", _SEVERAL),
        ("table", "mean_reward", _SEVERAL),
        ("table", "avg_reward", _SEVERAL),
        ("table", "average_reward", _SEVERAL),
    ),
    Canonical(
        "train/length",
        "Environment steps of one training episode.",
        "env steps",
        "env_step",
        ("rollbook", "length", _EACH),
        ("cleanrl", "charts/episodic_length", _EACH),
        ("sb3", "rollout/ep_len_mean", _LAST_100),
        ("spinningup", "EpLen", _EPOCH),
        ("acme", "episode_length", _EACH),
        ("acme", "train_loop/episode_length", _EACH),
        ("acme", "environment_loop/episode_length", _EACH),
        ("acme", "train/episode_length", _EACH),
        ("acme", "actor/episode_length", _EACH),
        ("tianshou", "training/lens_stat/mean", _COLLECT),
        ("tianshou", "train/lens_stat/mean", _COLLECT),
        ("lightzero", "collector/avg_envstep_per_episode", _COLLECT),
        ("lightzero", "collector_iter/avg_envstep_per_episode", _COLLECT),
        ("lightzero", "collector_step/avg_envstep_per_episode", _COLLECT),
        ("rllib", "env_runners/episode_len_mean", _ITERATION),
        ("rllib", "episode_len_mean", _ITERATION),
        ("rsl_rl", "Train/mean_episode_length", _LAST_100),
        ("skrl", "Episode / Total timesteps (mean)", "mean of the last 100 finished episodes, over the write interval"),
        ("rl_games", "episode_lengths/step", "mean of the last finished games, at most games_to_track"),
        ("pufferlib", "environment/episode_length", _ITERATION_ALL),
        ("dreamerv3", "episode/length", _EACH),
        ("stoix", "actor/episode_length/mean", _ITERATION_ALL),
        ("mlagents", "Environment/Episode Length", _SUMMARY),
        ("berkeley", "Train_AverageEpLen", _ITERATION_ALL),
        ("berkeley", "train_ep_len", _ITERATION_ALL),
        ("baselines", "eplenmean", _LAST_100),
        ("baselines", "EpLenMean", _LAST_100),
        ("baselines", "ep_len_mean", _LAST_100),
        ("baselines", "ep_lenmean", _LAST_100),
        ("baselines", "eplen", _SEVERAL),
        ("rlkit", "exploration/path length Mean", _EPOCH),
        ("pymarl", "ep_length_mean", _SUMMARY),
        ("tf_agents", "Metrics/AverageEpisodeLength", "mean of the last 10 episodes"),
        ("tf_agents", "train/Metrics/AverageEpisodeLength", "mean of the last 10 episodes"),
        ("sample_factory", "len/len", _LAST_100),
        ("rlpyt", "LengthAverage", _ITERATION_ALL),
        ("jaxrl", "training/length", _EACH),
        ("table", "ep_len", _EACH),
        ("table", "ep_length", _EACH),
        ("table", "episodic_length", _EACH),
        ("table", "episode_steps", _EACH),
    ),
    Canonical(
        "train/success_rate",
        "Share of training episodes that ended in success (0 to 1).",
        "1",
        "env_step",
        ("sb3", "rollout/success_rate", _LAST_100),
        ("pymarl", "battle_won_mean", _SUMMARY),
        ("garage", "Training/SuccessRate", _ITERATION_ALL),
        ("table", "success_rate", _SEVERAL),
        ("table", "success_rates", _SEVERAL),
        ("table", "success", _EACH),
        ("table", "is_success", _EACH),
    ),
    Canonical(
        "train/reward",
        "Mean reward of the items of one batch (sequence models: one reward an item).",
        "reward",
        "gradient_step",
        ("mrl", "metrics/rewards", "mean of the batch"),
        ("trl", "reward", "mean of the batch"),
        ("trl", "objective/scores", "mean of the batch"),
        ("openrlhf", "reward", "mean of the batch"),
        ("slime", "rollout/raw_reward", "mean of the batch"),
        ("verl", "critic/score/mean", "mean of the batch"),
        ("verl", "critic/rewards/mean", "mean of the batch, after the penalty for the KL divergence"),
    ),
    Canonical(
        "train/completion_length",
        "Mean number of tokens of the answers of one batch.",
        "tokens",
        "gradient_step",
        ("trl", "completions/mean_length", "mean of the batch"),
        ("trl", "completion_length", "mean of the batch"),
        ("openrlhf", "response_length", "mean of the batch"),
        ("slime", "rollout/response_len/mean", "mean of the batch"),
        ("verl", "response_length/mean", "mean of the batch"),
    ),
    Canonical(
        "train/truncated_share",
        "Share of the answers of one batch that were cut at the limit of their length (0 to 1).",
        "1",
        "gradient_step",
        ("trl", "completions/clipped_ratio", "of the batch"),
        ("openrlhf", "truncated", "of the batch"),
        ("slime", "rollout/truncated_ratio", "of the batch"),
        ("verl", "response_length/clip_ratio", "of the batch"),
    ),
    Canonical(
        "train/exploration_rate",
        "Probability of a random action (epsilon).",
        "1",
        "env_step",
        ("sb3", "rollout/exploration_rate", "at the moment of logging"),
        ("cleanrl", "charts/epsilon", "at the moment of logging"),
        ("lightzero", "learner_iter/collect_epsilon_avg", "mean of the last 11 iterations"),
        ("pymarl", "epsilon", _MOMENT),
        ("table", "exploration_rate", _MOMENT),
    ),
    # -- evaluation -----------------------------------------------------------------------------------------------
    Canonical(
        "test/return",
        "Sum of the undiscounted rewards of one evaluation episode.",
        "reward",
        "env_step",
        ("cleanrl", "eval/episodic_return", _EACH),
        ("sb3", "eval/mean_reward", _EVAL),
        ("spinningup", "AverageTestEpRet", _EVAL),
        ("acme", "eval_loop/episode_return", _EACH),
        ("acme", "evaluator/episode_return", _EACH),
        ("acme", "eval/episode_return", _EACH),
        ("tianshou", "test/returns_stat/mean", _EVAL),
        ("lightzero", "evaluator/reward_mean", _EVAL),
        ("lightzero", "evaluator_iter/reward_mean", _EVAL),
        ("lightzero", "evaluator_step/reward_mean", _EVAL),
        ("lightzero", "basic/eval_episode_return_mean", _EVAL),
        ("rllib", "evaluation/env_runners/episode_return_mean", _EVAL),
        ("rllib", "evaluation/env_runners/episode_reward_mean", _EVAL),
        ("d3rlpy", "evaluation", _EVAL),
        ("brax", "eval/episode_reward", _EVAL),
        ("stoix", "evaluator/episode_return/mean", _EVAL),
        ("benchmarl", "eval_reward_episode_reward_mean", _EVAL),
        ("benchmarl", "eval/reward/episode_reward_mean", _EVAL),
        ("berkeley", "Eval_AverageReturn", _EVAL),
        ("berkeley", "eval_return", _EVAL),
        ("garage", "Evaluation/AverageReturn", _EVAL),
        ("baselines", "eval/return", _EVAL),
        ("rlkit", "evaluation/Average Returns", _EVAL),
        ("rlkit", "eval/Average Returns", _EVAL),
        ("tianshou", "test/reward", _EVAL),
        ("pymarl", "test_return_mean", _EVAL),
        ("tf_agents", "eval/Metrics/AverageReturn", _EVAL),
        ("tf_agents", "evaluation/Metrics/AverageReturn", _EVAL),
        ("dopamine", "Eval/AverageReturns", _EVAL),
        ("dopamine", "eval_average_return", _EVAL),
        ("onpolicy", "eval_average_episode_rewards", _EVAL),
        ("jaxrl", "evaluation/return", _EVAL),
        ("jaxrl", "evaluation/average_returns", _EVAL),
        ("coach", "Evaluation Reward", _EVAL),
        ("pfrl", "eval/mean", _EVAL),
        ("table", "eval_reward", _EVAL),
        ("table", "test_reward", _EVAL),
        ("table", "test_return", _EVAL),
        ("table", "evaluation_reward", _EVAL),
        ("table", "evaluation_return", _EVAL),
        ("table", "mean_eval_reward", _EVAL),
        ("table", "eval_mean_reward", _EVAL),
    ),
    Canonical(
        "test/length",
        "Environment steps of one evaluation episode.",
        "env steps",
        "env_step",
        ("sb3", "eval/mean_ep_length", _EVAL),
        ("spinningup", "TestEpLen", _EVAL),
        ("acme", "eval_loop/episode_length", _EACH),
        ("acme", "evaluator/episode_length", _EACH),
        ("acme", "eval/episode_length", _EACH),
        ("tianshou", "test/lens_stat/mean", _EVAL),
        ("lightzero", "evaluator/avg_envstep_per_episode", _EVAL),
        ("lightzero", "evaluator_iter/avg_envstep_per_episode", _EVAL),
        ("lightzero", "evaluator_step/avg_envstep_per_episode", _EVAL),
        ("rllib", "evaluation/env_runners/episode_len_mean", _EVAL),
        ("brax", "eval/avg_episode_length", _EVAL),
        ("stoix", "evaluator/episode_length/mean", _EVAL),
        ("benchmarl", "eval_reward_episode_len_mean", _EVAL),
        ("benchmarl", "eval/reward/episode_len_mean", _EVAL),
        ("berkeley", "Eval_AverageEpLen", _EVAL),
        ("berkeley", "eval_ep_len", _EVAL),
        ("rlkit", "evaluation/path length Mean", _EVAL),
        ("pymarl", "test_ep_length_mean", _EVAL),
        ("tf_agents", "eval/Metrics/AverageEpisodeLength", _EVAL),
        ("jaxrl", "evaluation/length", _EVAL),
        ("jaxrl", "evaluation/average_lengths", _EVAL),
    ),
    Canonical(
        "test/success_rate",
        "Share of evaluation episodes that ended in success (0 to 1).",
        "1",
        "env_step",
        ("sb3", "eval/success_rate", _EVAL),
        ("pymarl", "test_battle_won_mean", _EVAL),
        ("garage", "Evaluation/SuccessRate", _EVAL),
        ("table", "eval_success_rate", _EVAL),
        ("table", "test_success_rate", _EVAL),
        ("table", "eval_success", _EVAL),
    ),
    # -- updates --------------------------------------------------------------------------------------------------
    Canonical(
        "update/loss/total",
        "The loss that one optimizer descends, all weighted terms together.",
        "1",
        "gradient_step",
        ("sb3", "train/loss", "the update's last minibatch (on-policy), mean of its gradient steps (off-policy)"),
        ("cleanrl", "losses/loss", _STEP),
        ("tianshou", "update/loss", _STEP),
        ("tianshou", "update/loss/mean", _UPDATE),
        ("lightzero", "learner/total_loss", _STEP),
        ("lightzero", "learner_iter/total_loss_avg", "mean of the last 11 iterations"),
        ("rllib", "learners/*/total_loss", _UPDATE),
        ("trl", "loss", _STEP),
        ("trl", "train/loss_total", _STEP),
        ("brax", "training/total_loss", _UPDATE),
        ("stoix", "trainer/total_loss", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/total_loss", _UPDATE),
    ),
    Canonical(
        "update/loss/policy",
        "The loss that the policy's parameters descend.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/policy_loss", "the update's last minibatch"),
        ("cleanrl", "losses/actor_loss", _STEP),
        ("sb3", "train/policy_gradient_loss", _UPDATE),
        ("sb3", "train/policy_loss", _STEP),
        ("sb3", "train/actor_loss", "mean of the update's gradient steps"),
        ("spinningup", "LossPi", "before the update (on-policy); mean of the epoch's gradient steps (off-policy)"),
        ("tianshou", "update/actor_loss", _STEP),
        ("tianshou", "update/actor_loss/mean", _UPDATE),
        ("tianshou", "update/policy_loss", _STEP),
        ("lightzero", "learner/policy_loss", _STEP),
        ("lightzero", "learner_iter/policy_loss_avg", "mean of the last 11 iterations"),
        ("rllib", "learners/*/policy_loss", _UPDATE),
        ("rsl_rl", "Loss/surrogate", _UPDATE),
        ("skrl", "Loss / Policy loss", "mean of the write interval"),
        ("rl_games", "losses/a_loss", _UPDATE),
        ("d3rlpy", "actor_loss", "mean of the epoch's gradient steps"),
        ("brax", "training/policy_loss", _UPDATE),
        ("stoix", "trainer/actor_loss", _UPDATE),
        ("benchmarl", "train_agents_loss_objective", _UPDATE),
        ("benchmarl", "train/*/loss_objective", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/policy_loss", _UPDATE),
        ("trl", "loss/policy_avg", _UPDATE),
        ("openrlhf", "policy_loss", _UPDATE),
        ("slime", "train/pg_loss", _UPDATE),
        ("verl", "actor/pg_loss", _UPDATE),
        ("baselines", "loss/policy_loss", _UPDATE),
        ("mlagents", "Losses/Policy Loss", _UPDATE),
        ("jaxrl", "training/actor_loss", _STEP),
        ("table", "actor_loss", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/loss/value",
        "The loss of the state-value function. Some frameworks halve the squared error: compare shapes, not levels.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/value_loss", "half the squared error, the update's last minibatch"),
        ("sb3", "train/value_loss", "squared error, mean of the update's minibatches"),
        ("spinningup", "LossV", "squared error, before the update"),
        ("tianshou", "update/vf_loss", _STEP),
        ("tianshou", "update/vf_loss/mean", _UPDATE),
        ("lightzero", "learner/value_loss", _STEP),
        ("lightzero", "learner_iter/value_loss_avg", "mean of the last 11 iterations"),
        ("rllib", "learners/*/vf_loss", _UPDATE),
        ("rsl_rl", "Loss/value_function", _UPDATE),
        ("rsl_rl", "Loss/value", _UPDATE),
        ("skrl", "Loss / Value loss", "mean of the write interval"),
        ("rl_games", "losses/c_loss", _UPDATE),
        ("brax", "training/v_loss", _UPDATE),
        ("stoix", "trainer/value_loss", _UPDATE),
        ("benchmarl", "train_agents_loss_critic", _UPDATE),
        ("benchmarl", "train/*/loss_critic", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/vf_loss", _UPDATE),
        ("trl", "loss/value_avg", _UPDATE),
        ("verl", "critic/vf_loss", _UPDATE),
        ("baselines", "loss/value_loss", _UPDATE),
        ("mlagents", "Losses/Value Loss", _UPDATE),
        ("table", "value_loss", _SEVERAL_UPDATES),
        ("table", "vf_loss", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/loss/q",
        "The loss of the action-value functions, all critics together.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/qf_loss", _STEP),
        ("cleanrl", "losses/td_loss", _STEP),
        ("sb3", "train/critic_loss", "mean of the update's gradient steps"),
        ("spinningup", "LossQ", "mean of the epoch's gradient steps"),
        ("tianshou", "update/critic_loss", _STEP),
        ("rllib", "learners/*/qf_loss", _UPDATE),
        ("skrl", "Loss / Q-network loss", "mean of the write interval"),
        ("skrl", "Loss / Critic loss", "mean of the write interval"),
        ("d3rlpy", "critic_loss", "mean of the epoch's gradient steps"),
        ("brax", "training/critic_loss", _UPDATE),
        ("stoix", "trainer/q_loss", _UPDATE),
        ("jaxrl", "training/critic_loss", _STEP),
    ),
    Canonical(
        "update/loss/q1",
        "The loss of the first action-value function, where each has its own number.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/qf1_loss", _STEP),
        ("tianshou", "update/critic1_loss", _STEP),
        ("tianshou", "update/critic1_loss/mean", _UPDATE),
    ),
    Canonical(
        "update/loss/q2",
        "The loss of the second action-value function, where each has its own number.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/qf2_loss", _STEP),
        ("tianshou", "update/critic2_loss", _STEP),
        ("tianshou", "update/critic2_loss/mean", _UPDATE),
    ),
    Canonical(
        "update/loss/entropy_coefficient",
        "The loss that the weight of the entropy (temperature, alpha) descends.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/alpha_loss", _STEP),
        ("sb3", "train/ent_coef_loss", "mean of the update's gradient steps"),
        ("tianshou", "update/alpha_loss", _STEP),
        ("rllib", "learners/*/alpha_loss", _UPDATE),
    ),
    Canonical(
        "update/q_value",
        "Mean action value of the batch; of the first critic where there are several.",
        "reward",
        "gradient_step",
        ("cleanrl", "losses/q_values", _STEP),
        ("cleanrl", "losses/qf1_values", _STEP),
        ("spinningup", "AverageQVals", "mean of the epoch's gradient steps"),
        ("spinningup", "AverageQ1Vals", "mean of the epoch's gradient steps"),
        ("rllib", "learners/*/qf_mean", _UPDATE),
    ),
    Canonical(
        "update/q_value_2",
        "Mean action value of the batch by the second critic.",
        "reward",
        "gradient_step",
        ("cleanrl", "losses/qf2_values", _STEP),
        ("spinningup", "AverageQ2Vals", "mean of the epoch's gradient steps"),
    ),
    Canonical(
        "update/loss/entropy",
        "The entropy term of the loss: minus the mean entropy of the policy.",
        "nats",
        "gradient_step",
        ("sb3", "train/entropy_loss", _UPDATE),
        ("table", "entropy_loss", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/entropy",
        "Mean entropy of the policy's action distribution.",
        "nats",
        "gradient_step",
        ("cleanrl", "losses/entropy", "the update's last minibatch"),
        ("spinningup", "Entropy", "before the update"),
        ("lightzero", "learner/policy_entropy", _STEP),
        ("lightzero", "learner_iter/policy_entropy_avg", "mean of the last 11 iterations"),
        ("rllib", "learners/*/entropy", _UPDATE),
        ("rsl_rl", "Loss/entropy", _UPDATE),
        ("trl", "entropy", _STEP),
        ("stoix", "trainer/entropy", _UPDATE),
        ("benchmarl", "train_agents_entropy", _UPDATE),
        ("benchmarl", "train/*/entropy", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/entropy", _UPDATE),
        ("trl", "policy/entropy_avg", _UPDATE),
        ("verl", "actor/entropy", _UPDATE),
        ("verl", "actor/entropy_loss", _UPDATE),
        ("baselines", "loss/policy_entropy", _UPDATE),
        ("baselines", "policy_entropy", _UPDATE),
        ("mlagents", "Policy/Entropy", _UPDATE),
        ("jaxrl", "training/entropy", _STEP),
        ("drq", "train_actor/entropy", _STEP),
        ("table", "policy_entropy", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/approx_kl",
        "KL divergence from the old to the new policy, estimated on the batch as mean(ratio - 1 - log ratio) (k3).",
        "nats",
        "gradient_step",
        ("cleanrl", "losses/approx_kl", "k3, the update's last minibatch"),
        ("sb3", "train/approx_kl", "k3, mean of the last epoch's minibatches"),
        ("table", "approx_kl", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/kl_to_reference",
        "KL divergence from the reference model to the policy: how far training has come, not how far one update went.",
        "nats",
        "gradient_step",
        ("trl", "kl", "k3, to the reference model"),
        ("trl", "objective/kl", "k1, summed over the tokens of an answer, to the reference model"),
        ("openrlhf", "kl", "mean over tokens, to the reference model"),
        ("verl", "actor/kl_loss", "mean over tokens, to the reference model"),
        ("verl", "critic/kl", "mean over tokens, to the reference model"),
        ("verl", "actor/reward_kl_penalty", "mean over tokens, to the reference model"),
    ),
    Canonical(
        "update/approx_kl_k2",
        "KL divergence from the old to the new policy, estimated on the batch as mean(log ratio squared) / 2 (k2).",
        "nats",
        "gradient_step",
        ("trl", "policy/approxkl_avg", _UPDATE),
        ("baselines", "loss/approxkl", _UPDATE),
        ("baselines", "approxkl", _UPDATE),
    ),
    Canonical(
        "update/approx_kl_k1",
        "KL divergence from the old to the new policy, estimated on the batch as mean(-log ratio) (k1).",
        "nats",
        "gradient_step",
        ("cleanrl", "losses/old_approx_kl", "k1, the update's last minibatch"),
        ("spinningup", "KL", "k1, at the last policy step of the update"),
        ("verl", "actor/ppo_kl", _UPDATE),
        ("openrlhf", "ppo_kl", _UPDATE),
        ("benchmarl", "train/*/kl_approx", _UPDATE),
    ),
    Canonical(
        "update/kl",
        "KL divergence from the old to the new policy, computed from the distributions themselves.",
        "nats",
        "gradient_step",
        ("rllib", "learners/*/mean_kl_loss", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/kl", _UPDATE),
        ("sb3", "train/kl_divergence_loss", _UPDATE),
        ("rl_games", "info/kl", _UPDATE),
        ("sample_factory", "train/kl_divergence", _UPDATE),
        ("brax", "training/kl_mean", _UPDATE),
    ),
    Canonical(
        "update/clip_fraction",
        "Share of probability ratios outside the clipping range (0 to 1).",
        "1",
        "gradient_step",
        ("cleanrl", "losses/clipfrac", _UPDATE),
        ("sb3", "train/clip_fraction", _UPDATE),
        ("spinningup", "ClipFrac", "at the last policy step of the update"),
        ("tianshou", "update/clip_loss_fraction", _STEP),
        ("trl", "clip_ratio/region_mean", _STEP),
        ("trl", "clip_ratio", _STEP),
        ("trl", "policy/clipfrac_avg", _UPDATE),
        ("openrlhf", "ppo_clip_ratio", _UPDATE),
        ("slime", "train/pg_clipfrac", _UPDATE),
        ("verl", "actor/pg_clipfrac", _UPDATE),
        ("baselines", "loss/clipfrac", _UPDATE),
        ("sample_factory", "train/fraction_clipped", _UPDATE),
        ("benchmarl", "train/*/clip_fraction", _UPDATE),
        ("table", "clipfrac", _SEVERAL_UPDATES),
        ("table", "clip_frac", _SEVERAL_UPDATES),
        ("table", "clip_fraction", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/clip_range",
        "Half-width of the clipping range of the probability ratio.",
        "1",
        "gradient_step",
        ("sb3", "train/clip_range", "at the update"),
        ("rl_games", "info/e_clip", "at the moment of logging"),
    ),
    Canonical(
        "update/explained_variance",
        "1 - var(return - value) / var(return): 1 is a perfect critic, 0 one no better than a constant.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/explained_variance", "over the rollout"),
        ("sb3", "train/explained_variance", "over the rollout"),
        ("rllib", "learners/*/vf_explained_var", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/vf_explained_var", _UPDATE),
        ("verl", "critic/vf_explained_var", _UPDATE),
        ("baselines", "misc/explained_variance", "over the rollout"),
        ("table", "explained_variance", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/learning_rate",
        "Learning rate of the optimizer; of the policy's where there are several.",
        "1",
        "gradient_step",
        ("cleanrl", "charts/learning_rate", "at the update"),
        ("sb3", "train/learning_rate", "at the update"),
        ("lightzero", "learner/cur_lr", "at the update"),
        ("lightzero", "learner_iter/cur_lr_avg", "mean of the last 11 iterations"),
        ("rllib", "learners/*/default_optimizer_learning_rate", "at the update"),
        ("rsl_rl", "Loss/learning_rate", "at the update"),
        ("trl", "learning_rate", "at the update"),
        ("skrl", "Learning / Learning rate", "mean of the write interval"),
        ("rl_games", "info/last_lr", "at the moment of logging"),
        ("rllib", "info/learner/*/learner_stats/cur_lr", "at the update"),
        ("trl", "lr", "at the update"),
        ("openrlhf", "actor_lr", "at the update"),
        ("verl", "actor/lr", "at the update"),
        ("sample_factory", "train/lr", "at the update"),
        ("mlagents", "Policy/Learning Rate", "at the update"),
    ),
    Canonical(
        "update/entropy_coefficient",
        "Weight of the entropy (temperature, alpha).",
        "1",
        "gradient_step",
        ("cleanrl", "losses/alpha", "at the update"),
        ("sb3", "train/ent_coef", "mean of the update's gradient steps"),
        ("tianshou", "update/alpha", "at the update"),
        ("rllib", "learners/*/alpha_value", _UPDATE),
        ("rllib", "learners/*/curr_entropy_coeff", "at the update"),
        ("skrl", "Coefficient / Entropy coefficient", "mean of the write interval"),
        ("brax", "training/alpha", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/entropy_coeff", "at the update"),
        ("jaxrl", "training/temperature", _STEP),
        ("drq", "train_alpha/value", _STEP),
        ("table", "ent_coef", _SEVERAL_UPDATES),
    ),
    Canonical(
        "update/policy_std",
        "Mean standard deviation of a Gaussian policy.",
        "action",
        "gradient_step",
        ("sb3", "train/std", "at the update"),
        ("rsl_rl", "Policy/mean_noise_std", "at the update"),
        ("rsl_rl", "Policy/mean_std", "at the update"),
        ("skrl", "Policy / Standard deviation", "mean of the write interval"),
    ),
    Canonical(
        "update/gradient_norm",
        "Norm of the gradient of all parameters, before clipping.",
        "1",
        "gradient_step",
        ("cleanrl", "losses/grad_norm", _STEP),
        ("trl", "grad_norm", _STEP),
        ("lightzero", "learner/total_grad_norm_before_clip", _STEP),
        ("lightzero", "learner_iter/total_grad_norm_before_clip_avg", "mean of the last 11 iterations"),
        ("rllib", "learners/*/gradients_default_optimizer_global_norm", _UPDATE),
        ("rllib", "info/learner/*/learner_stats/grad_gnorm", _UPDATE),
        ("verl", "actor/grad_norm", _UPDATE),
        ("openrlhf", "actor_grad_norm", _UPDATE),
    ),
    Canonical(
        "update/step_norm",
        "Norm of the change of all parameters by one update: 0 where updates do not reach the parameters.",
        "1",
        "gradient_step",
    ),
    Canonical(
        "update/policy_step_norm",
        "The same of the policy's parameters alone.",
        "1",
        "gradient_step",
    ),
    Canonical(
        "update/first_ratio_error",
        "Mean distance of new / old probability from 1 at the first minibatch of an update, where it has to be 0.",
        "1",
        "gradient_step",
    ),
    Canonical(
        "update/zero_variance_groups",
        "Share of the groups of answers in which each has the same reward (0 to 1).",
        "1",
        "gradient_step",
        ("trl", "frac_reward_zero_std", "of the batch"),
    ),
    Canonical(
        "update/sampler_gap",
        "Mean absolute difference of the log-probabilities of a token by the sampler and by the trainer.",
        "nats",
        "gradient_step",
        ("trl", "sampling/sampling_logp_difference/mean", "of the batch"),
        ("slime", "train/train_rollout_logprob_abs_diff", "of the batch"),
    ),
    Canonical(
        "update/count",
        "Optimization passes so far, in the framework's own unit (epochs of minibatches on-policy, else steps).",
        "1",
        "gradient_step",
        ("sb3", "train/n_updates", "a counter"),
        ("tianshou", "update/gradient_step", "a counter"),
        ("tianshou", "update/update_step", "a counter"),
        ("tianshou", "info/update_step", "a counter"),
        ("acme", "learner_steps", "a counter"),
    ),
    # -- time -----------------------------------------------------------------------------------------------------
    Canonical(
        "time/env_steps_per_second",
        "Environment steps per second of wall time, all environments together.",
        "1/s",
        "env_step",
        ("cleanrl", "charts/SPS", _SINCE_START),
        ("sb3", "time/fps", _SINCE_START),
        ("acme", "steps_per_second", _EACH),
        ("acme", "train_loop/steps_per_second", _EACH),
        ("acme", "environment_loop/steps_per_second", _EACH),
        ("tianshou", "training/collect_speed", "of one collect"),
        ("tianshou", "train/collect_speed", "of one collect"),
        ("lightzero", "collector/avg_envstep_per_sec", "of one collect"),
        ("lightzero", "collector_iter/avg_envstep_per_sec", "of one collect"),
        ("lightzero", "collector_step/avg_envstep_per_sec", "of one collect"),
        ("rsl_rl", "Perf/total_fps", "of one iteration"),
        ("rl_games", "performance/step_inference_rl_update_fps", "of the last epoch"),
        ("pufferlib", "SPS", "since the last row"),
        ("brax", "training/sps", "of the last epoch"),
    ),
    Canonical(
        "time/elapsed_seconds",
        "Wall time since learning began.",
        "seconds",
        "env_step",
        ("sb3", "time/time_elapsed", "whole seconds"),
        ("spinningup", "Time", "seconds"),
        ("tianshou", "info/timing/total_time", "seconds"),
        ("rllib", "time_total_s", "seconds"),
        ("pufferlib", "uptime", "seconds"),
        ("brax", "training/walltime", "seconds"),
    ),
    Canonical(
        "time/env_steps",
        "Environment steps so far, all environments together.",
        "env steps",
        "env_step",
        ("sb3", "time/total_timesteps", "a counter"),
        ("spinningup", "TotalEnvInteracts", "a counter"),
        ("tianshou", "training/env_step", "a counter"),
        ("tianshou", "train/env_step", "a counter"),
        ("lightzero", "collector/total_envstep_count", "a counter"),
        ("lightzero", "collector_iter/total_envstep_count", "a counter"),
        ("rllib", "num_env_steps_sampled_lifetime", "a counter"),
        ("rllib", "env_runners/num_env_steps_sampled_lifetime", "a counter"),
        ("pufferlib", "agent_steps", "a counter"),
        ("benchmarl", "counters_total_frames", "a counter"),
        ("benchmarl", "counters/total_frames", "a counter"),
        ("berkeley", "Train_EnvstepsSoFar", "a counter"),
        ("baselines", "TimestepsSoFar", "a counter"),
        ("baselines", "tcount", "a counter"),
        ("baselines", "misc/total_timesteps", "a counter"),
        ("rlkit", "exploration/num steps total", "a counter"),
        ("rlkit", "Number of env steps total", "a counter"),
        ("garage", "TotalEnvSteps", "a counter"),
        ("coach", "Total steps", "a counter"),
        ("rlpyt", "CumSteps", "a counter"),
    ),
    Canonical(
        "time/episodes",
        "Finished training episodes so far.",
        "episodes",
        "env_step",
        ("sb3", "time/episodes", "a counter"),
        ("acme", "episodes", "a counter"),
        ("lightzero", "collector/total_episode_count", "a counter"),
        ("lightzero", "collector_iter/total_episode_count", "a counter"),
        ("rllib", "env_runners/num_episodes_lifetime", "a counter"),
        ("baselines", "EpisodesSoFar", "a counter"),
        ("coach", "Episode #", "a counter"),
    ),
    Canonical(
        "time/iterations",
        "Rounds of collecting and learning so far.",
        "1",
        "env_step",
        ("sb3", "time/iterations", "a counter"),
        ("spinningup", "Epoch", "a counter, from 0"),
        ("rllib", "training_iteration", "a counter"),
        ("rl_games", "info/epochs", "a counter"),
        ("berkeley", "Iteration", "a counter"),
        ("rllab", "Itr", "a counter"),
        ("garage", "Evaluation/Iteration", "a counter"),
    ),
)
"""Every canonical name, in a useful order for readers."""

_LABELLED = frozenset({"acme"})
"""Frameworks whose keys begin with a label chosen by the user: two labels are two loops, not two spellings."""

_BY_NAME = {entry.name: entry for entry in TABLE}
_EXACT: dict[str, tuple[Canonical, Native]] = {}
_PATTERNS: dict[tuple[int, str], list[tuple[tuple[str, ...], Canonical, Native]]] = {}
for _entry in TABLE:
    for _native in _entry.natives:
        if "*" in _native.key:
            _parts = tuple(_native.key.split("/"))
            _PATTERNS.setdefault((len(_parts), _parts[-1]), []).append((_parts, _entry, _native))
        elif _native.key != _entry.name:
            _EXACT.setdefault(_native.key, (_entry, _native))


_BESIDE = {"train/return": (("train/reward", "train/length"),)}
"""Old Tianshou's `train/reward` is a return, as the length next to it shows: name -> (key, which key shows it)."""


_TABLES = {name: pair for name, pair in _EXACT.items() if pair[1].framework == "table"}

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_STATISTICS = frozenset({"mean", "average", "avg", "ave"})
_WHOLE = frozenset({"episode", "episodes", "episodic", "ep", "eps", "total", "cumulative", "cum", "sum"})
_OF_TESTS = frozenset({"test", "testing", "eval", "evaluation", "evaluations"})
_STAGES = frozenset({*_OF_TESTS, "train", "training"})
_PLACES = frozenset({"performance", "metrics", "metric", "charts", "stats", "rollout", "scalars", "info", "per", "100"})
_RETURNS = frozenset({"return", "returns", "ret", "reward", "rewards", "rew", "score", "scores"})
_SPELLED_LENGTHS = frozenset({"length", "lengths", "len"})


def _spelled(native: str) -> tuple[Canonical, Native] | None:
    """What people mean by a return or a length, however they spell it: average-episode-return, Reward/Episode.

    All words have to be known, so that neither a spread nor one part of a reward passes for it; and one of them has to
    say that it is of whole episodes, for a reward alone may be one of a step.
    """
    inner = native.partition("/")[2]
    if "/" in inner and inner in _EXACT:  # another framework's tag below a stage: ambiguous
        return None
    words = [word.lower() for word in _WORD.findall(native)]
    if len(words) > 1 and words[0] == f"{words[-1]}s":  # rewards/total_reward
        words = words[1:]
    known_words = set(words)
    what = known_words & _RETURNS
    length = known_words & _SPELLED_LENGTHS
    if (
        len(words) != len(known_words)
        or len(what) + len(length) != 1
        or known_words - {*what, *length, *_STATISTICS, *_WHOLE, *_STAGES, *(_PLACES if what or length else ())}
    ):
        return None
    stage = "test" if known_words & _OF_TESTS else "train"
    whole, mean = bool(known_words & _WHOLE), bool(known_words & _STATISTICS)
    if length:
        is_told = bool(known_words & {"episode", "episodes", "episodic", "ep", "eps"})
    elif "/" in native:  # a writer's tag: `rewards/mean` may be of steps, or of one function
        is_told = (
            whole or (what <= {"return", "returns", "ret"} and (mean or len(words) > 1)) or (mean and stage == "test")
        )
    else:
        is_told = whole or mean or stage == "test"
    if not is_told:
        return None
    estimator = _EVAL if stage == "test" else _SEVERAL if mean else _EACH
    return _BY_NAME[f"{stage}/{'length' if length else 'return'}"], Native("table", native, estimator)


@functools.lru_cache(maxsize=1 << 14)
def _find(native: str) -> tuple[Canonical, Native] | None:
    pair = _EXACT.get(native)
    if pair is None and "/" not in native:  # people's own tables spell them as they like: Total_Reward, Mean Reward
        return _TABLES.get(native.strip().lower().replace(" ", "_").replace("-", "_")) or _spelled(native)
    if pair is None and "/" in native and native not in _BY_NAME:
        parts = native.split("/")
        for pattern, entry, name in _PATTERNS.get((len(parts), parts[-1]), ()):
            if all(p in ("*", part) for p, part in zip(pattern, parts, strict=True)):
                return entry, name
        return _spelled(native)
    return pair


def native_names(canonical: str) -> tuple[str, ...]:
    """The framework names of `canonical`: exact keys, without those that contain a `*`; () for an unknown name.

    Args:
      canonical: a canonical name, such as "train/return".
    """
    entry = _BY_NAME.get(canonical)
    return () if entry is None else tuple(n.key for n in entry.natives if "*" not in n.key and n.key != canonical)


def canonical(native: str) -> str | None:
    """The canonical name of a native key, or None if it has none (or is a canonical name itself).

    Args:
      native: a key as a framework writes it, such as "rollout/ep_rew_mean".
    """
    pair = _find(native)
    return None if pair is None else pair[0].name


def describe(name: str) -> Canonical | None:
    """The entry of a canonical or native name; None if there is none.

    Args:
      name: a canonical name or a native key.
    """
    entry = _BY_NAME.get(name)
    if entry is not None:
        return entry
    pair = _find(name)
    return None if pair is None else pair[0]


def estimator(native: str) -> str | None:
    """How a native key is computed from the observations, or None for a key that is not in the table.

    Args:
      native: a key as a framework writes it.
    """
    pair = _find(native)
    return None if pair is None else pair[1].estimator


def without_prefix(native: str) -> str:
    """A native key as the framework itself has it, without what its reporter puts before it.

    Args:
      native: a key, such as "train/kl" of Hugging Face's Trainer.
    """
    pair = _find(native)
    return native if pair is None else native.removeprefix(_PREFIXES.get(pair[1].framework, ""))


def resolve(name: str, available: Iterable[str]) -> list[str]:
    """The keys in `available` that contain `name`, best first: `name` itself, then native names in the table's order.

    A name that is neither available nor canonical gives [].

    Args:
      name: a canonical name or a native key.
      available: the keys of a run (`book.keys()`).
    """
    keys = list(available)
    if name in keys:
        return [name]
    entry = _BY_NAME.get(name)
    if entry is None:
        return []
    order = {native.key: i for i, native in enumerate(entry.natives)}
    ranked = [(len(order), key) for key, with_ in _BESIDE.get(name, ()) if key in keys and with_ in keys]
    for key in keys:
        hit = _find(key)
        if hit is not None and hit[0] is entry:
            ranked.append((order.get(hit[1].key, len(order) + 1 + (hit[1].estimator != _EACH)), key))
    return [key for _, key in sorted(ranked)]


SCORES = ("test/return", "test/success_rate", "train/return", "train/success_rate", "train/reward")
"""The canonical names that measure how good a policy is."""

_LOW_IS_GOOD = re.compile(
    r"(^|[/_. -])(loss(es)?|errors?|mse|mae|rmse|nll|perplexity|ppl|wer|cer|fid|bpb|bpd|bits_per_(dim|byte|char)|"
    r"regret|costs?|kl|seconds|latency|violations?|collisions?|crash(es)?|falls?|failures?|(optimality|duality)_gap|"
    r"exploitability|nash_?conv|(time|steps?|distance|dist)_to_\w+|(crash|fall|failure|collision|toxicity|error)_?rate)"
    r"([/_. -]|$)",
    re.IGNORECASE,
)


def lower_is_better(key: str) -> bool:
    """Whether lower values of a metric are better, by the words of its name: losses, errors, costs and durations."""
    return _LOW_IS_GOOD.search(canonical(key) or key) is not None


def candidates(name: str, available: Iterable[str]) -> list[str]:
    """The keys in `available` between which a reader of `name` has to choose; one if it is unambiguous.

    A framework that writes a quantity in several spellings (LightZero's collector/, collector_iter/, collector_step/)
    has one candidate, the first in the table's order. The modules of a multi-agent run, two loops, or two frameworks in
    one run are several candidates.

    Args:
      name: a canonical name or a native key.
      available: the keys of a run (`book.keys()`).
    """
    known = list(available)
    keys = resolve(name, known)
    if not keys:
        return _in_scopes(name, known)
    if len(keys) < 2:
        return keys
    chosen: dict[tuple[str, str], str] = {}
    for key in keys:
        hit = _find(key)
        if hit is None:  # one of `_BESIDE`
            return [key for key in keys if _find(key) is not None][:1] or keys[:1]
        native = hit[1]
        several = "*" in native.key or native.framework in _LABELLED
        chosen.setdefault((native.framework, key if several else ""), key)
    of_tools = [key for (framework, _), key in chosen.items() if framework != "table"]
    return of_tools or list(chosen.values())


_OF_EVALUATION = frozenset({"eval", "evaluation", "evaluator", "test", "val", "validation"})


@functools.lru_cache(maxsize=1 << 14)
def scoped(native: str) -> tuple[str, str] | None:
    """(scope, canonical name) of a framework's key below a scope of the run; None for any other key.

    `agent0/rollout/ep_rew_mean` is `train/return` of agent0. A name of one part is too short to be recognised so.

    Args:
      native: a key of a run.
    """
    if _find(native) is not None or native in _BY_NAME:
        return None
    parts = native.split("/")
    for depth in range(1, len(parts) - 1):
        rest = "/".join(parts[depth:])
        entry = _BY_NAME.get(rest) or (_EXACT[rest][0] if rest in _EXACT else None)
        if entry is not None and _OF_EVALUATION.isdisjoint(parts[:depth]):
            return "/".join(parts[:depth]), entry.name
    return None


def _in_scopes(name: str, available: list[str]) -> list[str]:
    """The keys of scopes that contain `name`, which may begin with a scope: one for each scope, its best spelling."""
    fitting: dict[str, list[str]] = {}
    for key in available:
        scope_and_name = scoped(key)
        if scope_and_name is not None and name in (scope_and_name[1], "/".join(scope_and_name)):
            fitting.setdefault(scope_and_name[0], []).append(key)
    chosen = []
    for scope, keys in sorted(fitting.items()):
        own = {key[len(scope) + 1 :]: key for key in keys}
        chosen += [own[rest] for rest in candidates(name.removeprefix(f"{scope}/"), own)]
    return chosen
