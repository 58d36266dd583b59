"""`rollbook alerts`."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime

import click

from rollbook.cli.find import find_runs, format_options, runs_options
from rollbook.cli.output import ago, print_finding, print_rows, remark

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_LEVELS = {"never": (), "warn": ("warn", "fail"), "fail": ("fail",)}


@click.command()
@runs_options
@click.option("--since", default=None, help='"30m", "2h", "1d" ago; or a time: ISO 8601 or unix seconds.')
@click.option(
    "--fail-on",
    type=click.Choice(list(_LEVELS)),
    default="never",
    show_default=True,
    help="Exit with 1 if an alert of this level or a higher one is listed.",
)
@format_options
def alerts(
    runs: tuple[str, ...], root: str, since: str | None, where: str | None, fail_on: str, as_json: bool, as_csv: bool
) -> None:
    """List what health rules found in runs, oldest first.

    \b
    Examples:
      rollbook alerts last
      rollbook alerts cartpole --since 30m --json
      rollbook alerts --where "status = 'running'" --fail-on fail
    """
    rows = find_runs(runs, root, where).alerts(None if since is None else moment(since))
    if as_json or as_csv:
        print_rows(rows, as_json=as_json, as_csv=as_csv, columns=None if rows else ())
    elif rows:
        for row in rows:
            print_finding(row, ago(row["seconds"]))
    else:
        remark("no alerts")
    if any(row["level"] in _LEVELS[fail_on] for row in rows):
        raise SystemExit(1)


def moment(text: str) -> float:
    """A time in unix seconds."""
    span = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if span:
        return time.time() - float(span.group(1)) * _UNITS[span.group(2)]
    try:
        return float(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} cannot be read as a time. Write 30m, 2h or 1d to count back from now, an ISO 8601 time, "
            "or unix seconds",
            param_hint="--since",
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
