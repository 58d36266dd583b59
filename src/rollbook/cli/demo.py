"""`rollbook demo`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option


@click.command()
@click.option("--seed", type=int, default=None, help="Seed of the agent and its environments.")
@click.option(
    "--resume", is_flag=False, flag_value="", default=None, metavar="[ID]", help="Go on from the last checkpoint."
)
@click.option("--steps", type=int, default=None, help="Environment steps at most.")
@dir_option
def demo(seed: int | None, resume: str | None, steps: int | None, root: str) -> None:
    """Let a real agent learn CartPole-v1 while rollbook records it.

    \b
    Examples:
      rollbook demo
      rollbook demo --seed 7
      rollbook demo --resume           continue the newest demo run that was stopped
    """
    from rollbook.demo.train import main

    raise SystemExit(main(seed=seed, resume=resume, steps=steps, dir=root))
