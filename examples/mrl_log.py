"""MRL's documented outline of a custom metric, on a small policy that learns to spell: only the import is changed.

pip install torch 'rollbook[pandas,plots]'
python examples/mrl_log.py
"""

from __future__ import annotations

import argparse

import rollbook
from rollbook.adapters.mrl import (  # instead of: from mrl.train.log import *, from mrl.train.callback import *
    Callback,
    Environment,
    Log,
    MaxCallback,
    to_device,
    torch,
)


class Speller(Callback):
    """A policy over words of four letters, rewarded for every C; learns by REINFORCE."""

    def __init__(self) -> None:
        super().__init__(name="speller")
        self.logits = torch.nn.Parameter(torch.zeros(4, 4))
        self.optimizer = torch.optim.Adam([self.logits], lr=0.1)

    def sample_batch(self) -> None:
        """Sample words."""
        batch_state = self.environment.batch_state
        self.letters = torch.distributions.Categorical(logits=self.logits).sample((self.environment.bs,))
        batch_state.samples += ["".join("CNOF"[i] for i in row) for row in self.letters.tolist()]
        batch_state.sources += ["live"] * self.environment.bs

    def compute_reward(self) -> None:
        """Reward them."""
        batch_state = self.environment.batch_state
        batch_state.rewards += torch.tensor([float(word.count("C")) for word in batch_state.samples])

    def compute_loss(self) -> None:
        """REINFORCE with the mean as baseline."""
        batch_state = self.environment.batch_state
        log_probs = torch.distributions.Categorical(logits=self.logits).log_prob(self.letters).sum(1)
        advantage = batch_state.rewards_final - batch_state.rewards_final.mean()
        batch_state.loss = batch_state.loss - (advantage * log_probs).mean()

    def zero_grad(self) -> None:
        """Forget the gradients."""
        self.optimizer.zero_grad()

    def step(self) -> None:
        """Step."""
        self.optimizer.step()


class MyCallback(Callback):
    """The outline of MRL's documentation."""

    def __init__(self) -> None:
        super().__init__(name="my_callback")

    def setup(self) -> None:
        """Name what is to be logged."""
        log = self.environment.log
        log.add_log(self.name)  # adding new term to batch log
        log.add_metric(self.name)  # adding new term to metrics

    def compute_reward(self) -> None:
        """Reward them."""
        batch_state = self.environment.batch_state
        bs = len(batch_state.samples)
        rewards = to_device(torch.ones(bs).float())
        batch_state.rewards += rewards
        batch_state[self.name] = rewards  # this is the value the batch log will pick up

    def after_compute_reward(self) -> None:
        """Log the mean."""
        log = self.environment.log
        my_metric = self.environment.batch_state[self.name].mean()
        log.update_metric(self.name, my_metric.detach().cpu().numpy())  # update metric value


def main() -> None:
    parser = argparse.ArgumentParser(description="MRL's log over a run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batches", type=int, default=40)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    with rollbook.init("spelling", "reinforce", seed=args.seed, config=args, sinks=["text"]) as run:
        log = Log(run)
        env = Environment(cbs=[Speller(), MyCallback(), MaxCallback("rewards", "live")], log=log)
        env.fit(bs=32, sl=4, iters=args.batches, report=10)
        print(f"rewards of batch 5: {log.batch_log['rewards'][5]}")
        print(f"last three means: {log.metrics['rewards'][-3:]}; {len(log.unique_samples)} unique words")
        print(log.df.sort_values("rewards").tail(3).to_string(index=False))

    book = rollbook.open("runs").one("spelling/reinforce", seed=args.seed, id=run.id)
    print(f"{book.samples().num_rows} samples and {book.timings().num_rows} stage times kept")


if __name__ == "__main__":
    main()
