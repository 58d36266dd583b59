"""`rollbook mcp`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option


@click.command()
@dir_option
@click.option(
    "--budget",
    default=4_400,
    type=click.IntRange(min=1_000),
    show_default=True,
    help="At most this many characters an answer.",
)
def mcp(root: str, budget: int) -> None:
    """Answer the questions of an agent about the runs below --dir, over the standard streams.

    Tools that only read: probe and runs, which say what is there, and one for
    each question: series, cause, compare, curves, sweep, seeds, diff, findings,
    alerts, plans, samples, novelty, unused, rows, rollouts, shared_prompts, logs,
    sql, wait.
    It needs: pip install 'rollbook[mcp]'.

    \b
    Example, as the command of a server in an agent's settings:
      rollbook mcp --dir runs
    """
    from rollbook.server.agents import serve_streams

    serve_streams(root, budget)
