"""`rollbook findings` and `rollbook plans`."""

from __future__ import annotations

import click

from rollbook.cli.alerts import moment
from rollbook.cli.find import dir_option, find_runs, format_options, runs_options
from rollbook.cli.fitted_table import print_fitted, terminal_width
from rollbook.cli.output import print_json, print_rows, print_sentence, remark


@click.command()
@runs_options
@click.option("--since", default=None, help='"30m", "2h", "1d" ago; or a time: ISO 8601 or unix seconds.')
@format_options
def findings(
    runs: tuple[str, ...], root: str, since: str | None, where: str | None, as_json: bool, as_csv: bool
) -> None:
    """Report what is wrong with runs, the worst first, each thing once for all runs that have it.

    \b
    Examples:
      rollbook findings
      rollbook findings cartpole --since 1d
    """
    answer = find_runs(runs, root, where).findings(None if since is None else moment(since))
    if as_json:
        print_json(
            {
                "findings": answer.table(),
                "alerts": answer.alerts,
                "looked_at": answer.looked_at,
                "quiet": answer.quiet,
                "sentences": answer.sentences(),
            }
        )
    elif as_csv:
        print_rows(answer.table(), as_csv=True)
    else:
        width = terminal_width() or 80
        for sentence in answer.sentences():
            print_sentence(sentence, width)


@click.command()
@click.argument("runs", metavar="[RUNS]", default="")
@dir_option
@format_options
def plans(runs: str, root: str, as_json: bool, as_csv: bool) -> None:
    """List the plans of comparisons that are stored with runs, and what they say.

    \b
    Examples:
      rollbook plans
    """
    stored = find_runs(runs, root).plans()
    if as_json:
        print_json(stored)
        return
    rows = [
        {
            "plan": plan["name"],
            "metric": plan["asked"].get("metric"),
            "by": plan["asked"].get("by"),
            "seeds": plan["seeds"],
            "looks": len(plan["looks"]),
            "verdict": " ".join(str(verdict.get("sentence") or "") for verdict in plan["verdicts"]),
        }
        for plan in stored
    ]
    if as_csv:
        print_rows(rows, as_csv=True)
    elif rows:
        print_fitted(rows, list(rows[0]), width=terminal_width() or 80)
    else:
        remark("no plans; rollbook compare --plan NAME makes one")
