"""REINFORCE with TorchRL's collector on CartPole, recorded by a logger of TorchRL.

pip install 'rollbook[torchrl]' gymnasium
python examples/torchrl_reinforce.py
"""

from __future__ import annotations

import argparse

import torch
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.modules import OneHotCategorical, ProbabilisticActor

import rollbook
from rollbook.adapters.torchrl import RollbookLogger


def main() -> None:
    parser = argparse.ArgumentParser(description="REINFORCE with TorchRL on CartPole")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=20)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    env = TransformedEnv(GymEnv("CartPole-v1"), RewardSum())
    env.append_transform(StepCounter())
    env.set_seed(args.seed)
    network = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    module = TensorDictModule(network, in_keys=["observation"], out_keys=["logits"])
    policy = ProbabilisticActor(
        module, in_keys=["logits"], out_keys=["action"], distribution_class=OneHotCategorical, return_log_prob=True
    )
    optimizer = torch.optim.Adam(network.parameters(), 1e-2)
    total = 500 * args.batches
    logger = RollbookLogger("reinforce", project="cartpole", seed=args.seed)
    logger.log_hparams({"lr": 1e-2, "frames": total})
    frames = 0
    for batch in Collector(env, policy, frames_per_batch=500, total_frames=total):
        frames += batch.numel()
        done = batch["next", "done"].squeeze(-1)
        rewards, returns, running = batch["next", "reward"].squeeze(-1), torch.zeros(batch.numel()), 0.0
        for n in reversed(range(batch.numel())):
            running = float(rewards[n]) + (0.0 if done[n] else 0.99 * running)
            returns[n] = running
        advantage = (returns - returns.mean()) / (returns.std() + 1e-6)
        log_prob = policy.get_dist(batch).log_prob(batch["action"])
        loss = -(log_prob * advantage).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        episodes = batch["next", "episode_reward"].squeeze(-1)[done]
        logger.log_metrics({"train/loss": loss, "train/episode_reward": episodes.mean()}, step=frames)
    logger.close()

    book = rollbook.open("runs").one("cartpole/reinforce", seed=args.seed)
    returns_ = book.series("train/episode_reward")
    print(f"return: {returns_.mean[0]:.1f} in the first batch, {returns_.mean[-1]:.1f} in the last")


if __name__ == "__main__":
    main()
