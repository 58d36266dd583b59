"""PPO of PufferLib on one of its own environments, recorded by a logger.

pip install rollbook pufferlib
python examples/pufferlib_train.py
"""

from __future__ import annotations

import sys

from pufferlib import pufferl

import rollbook
from rollbook.adapters.pufferlib import RollbookLogger


def main() -> None:
    sys.argv = sys.argv[:1]  # PufferLib reads the command line itself
    args = pufferl.load_config("puffer_breakout")
    args["train"]["total_timesteps"] = 1_000_000
    pufferl.train("puffer_breakout", args=args, logger=RollbookLogger(project="breakout", name="ppo", config=args))

    book = rollbook.open("runs").one("breakout/ppo")
    print(f"return: {book.series('train/return').mean[-1]:.2f} at the end")


if __name__ == "__main__":
    main()
