"""`rollbook trim`."""

from __future__ import annotations

import re

import click

from rollbook.cli.find import dir_option, find_book
from rollbook.cli.output import clean, json_option, print_json, remark

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}


def _size(_ctx: click.Context, _param: click.Parameter, value: str) -> int:
    """A number of bytes, such as 20GB or 500 MiB."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)\s*", value.lower())
    if found is None or found[2] not in _UNITS or float(found[1]) <= 0:
        raise click.BadParameter(f"{value!r} is not a size: write 20GB, 500MB or 300MiB")
    return max(1, int(float(found[1]) * _UNITS[found[2]]))


@click.command()
@click.argument("run")
@click.option("--keep", required=True, callback=_size, help="How much to keep: 20GB, 500MB, 300MiB.")
@dir_option
@json_option
def trim(run: str, keep: int, root: str, as_json: bool) -> None:
    """Make the rollouts of a run smaller: the oldest lose their token lists, then their texts.

    Rows, rewards and fates stay. Never trimmed: evaluations, the best and the worst rollout of each update, the 100
    largest gaps, and updates with an alert. What was trimmed cannot be brought back.

    \b
    Examples:
      rollbook trim last --keep 20GB
      rollbook trim agents/grpo --keep 500MB --json
    """
    from rollbook.book import Retention

    done = Retention(find_book(run, root)).trim(keep)
    remark(clean(Retention.words(done) or "nothing had to be trimmed"))
    if as_json:
        print_json(done)
