"""`rollbook demo`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option


@click.command()
@click.option("--seed", type=int, default=None, help="Seed of the agent and its environments.")
@click.option(
    "--resume", is_flag=False, flag_value="", default=None, metavar="[ID]", help="Continue from the last checkpoint."
)
@click.option("--steps", type=int, default=None, help="At most this many environment steps.")
@click.option("--seeds", type=click.IntRange(min=1), default=None, help="Train this many seeds, one run each.")
@click.option("--ui", "with_page", is_flag=True, help="Open the page in a browser while the agent learns.")
@dir_option
def demo(
    seed: int | None, resume: str | None, steps: int | None, seeds: int | None, with_page: bool, root: str
) -> None:
    """Let a real agent learn CartPole-v1 while rollbook records it.

    \b
    Examples:
      rollbook demo
      rollbook demo --seed 7
      rollbook demo --seeds 5          five seeds, and how to compare them
      rollbook demo --ui               watch it learn in a browser
      rollbook demo --resume           continue the newest one that was stopped
    """
    from rollbook.demo.train import main, several

    if seeds is not None:
        if seed is not None or resume is not None or with_page:
            raise click.UsageError("--seeds trains new runs 0, 1, 2 …; it goes with --steps and --dir alone")
        raise SystemExit(several(seeds, steps=steps, dir=root))
    if not with_page:
        raise SystemExit(main(seed=seed, resume=resume, steps=steps, dir=root))
    import os
    import shlex

    from rollbook.cli.ui import open_browser, page_is_ready
    from rollbook.server.serving import listen
    from rollbook.server.settings import ServerSettings

    is_ready = page_is_ready()
    with listen(ServerSettings((os.path.abspath(root),))) as server:
        click.echo(f"The page is on {server.address}")
        if is_ready:
            open_browser(server.address)
        status = main(seed=seed, resume=resume, steps=steps, dir=root)
        if status == 0:
            click.echo(f"The page stays on {server.address} until Ctrl-C; later: rollbook ui {shlex.quote(root)}")
            server.wait()
    raise SystemExit(status)
