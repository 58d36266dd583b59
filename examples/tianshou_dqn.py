"""DQN of Tianshou 2 on CartPole, logged to a run through the trainer's `logger=`; kill it, start it again, it goes on.

    pip install 'rollbook[tianshou]'
    python examples/tianshou_dqn.py

The book holds every gradient step, every episode and every test; a checkpoint is saved each epoch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium
import torch
from tianshou.algorithm import DQN
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.trainer import OffPolicyTrainerParams
from tianshou.utils.net.common import Net

import rollbook
from rollbook.adapters.tianshou import RollbookLogger


def main() -> None:
    parser = argparse.ArgumentParser(description="DQN on CartPole-v1 with Tianshou")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--epoch-steps", type=int, default=2000, help="environment steps an epoch")
    parser.add_argument("--run-id", default="first", help="a run of this id is continued")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    env = gymnasium.make("CartPole-v1")
    net = Net(state_shape=env.observation_space.shape, action_shape=env.action_space.n, hidden_sizes=[64, 64])
    policy = DiscreteQLearningPolicy(model=net, action_space=env.action_space, eps_training=0.1, eps_inference=0.0)
    algorithm = DQN(policy=policy, optim=AdamOptimizerFactory(lr=1e-3), target_update_freq=200)
    training = DummyVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 4)
    collector = Collector(algorithm, training, VectorReplayBuffer(20_000, 4), exploration_noise=True)
    collector.reset()
    collector.collect(n_step=256)

    options = {"seed": args.seed, "config": args, "resume": "allow", "run_id": args.run_id, "sinks": ["text"]}
    with rollbook.init("CartPole-v1", "dqn", **options) as run:
        checkpoint = Path(run.folder) / "ckpt" / "policy.pth"
        if run.resumed and checkpoint.exists():
            algorithm.load_state_dict(torch.load(checkpoint))

        def save(epoch: int, env_step: int, gradient_step: int) -> str:
            checkpoint.parent.mkdir(exist_ok=True)
            torch.save(algorithm.state_dict(), checkpoint)
            return str(checkpoint)

        params = OffPolicyTrainerParams(
            training_collector=collector,
            test_collector=Collector(algorithm, DummyVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 4)),
            max_epochs=args.epochs,
            epoch_num_steps=args.epoch_steps,
            collection_step_num_env_steps=40,
            test_step_num_episodes=4,
            batch_size=64,
            update_step_num_gradient_steps_per_sample=0.5,
            logger=RollbookLogger(run),  # the one line
            save_checkpoint_fn=save,
            resume_from_log=run.resumed,
            show_progress=False,
        )
        algorithm.run_training(params)

    book = rollbook.open("runs").one("CartPole-v1/dqn", id=run.id)
    tests = book.series("test/return", x="env_step")  # Tianshou calls it test/returns_stat/mean
    print(f"tested at {[int(x) for x in tests.x]} steps: {[round(float(y), 1) for y in tests.mean]}")
    print(f"{book.episodes().num_rows} episodes, {len(book.series('update/loss').x)} gradient steps kept")


if __name__ == "__main__":
    main()
