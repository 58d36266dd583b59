"""`rollbook join`."""

from __future__ import annotations

import click

from rollbook.cli.find import dir_option, find_folder
from rollbook.cli.output import clean, json_option, print_json, remark
from rollbook.system.texts import amount


@click.command()
@click.argument("part")
@click.argument("run")
@dir_option
@click.option("--force", is_flag=True, help="Also if it is unknown whether a writer of the part is alive.")
@json_option
def join(part: str, run: str, root: str, force: bool, as_json: bool) -> None:
    """Bring a part of a run, kept by a host that does not see the run's folder, into that folder.

    The part is not changed. What was joined before is passed over.

    \b
    Examples:
      rollbook join /mnt/node-7/runs/ant/ppo-k3v9x2ab runs/ant/ppo-k3v9x2ab
    """
    from rollbook.book.repair import join as join_part

    done = join_part(part, find_folder(run, root), force=force)
    if as_json:
        print_json(vars(done))
    else:
        click.echo(f"joined {amount(done.files, 'file')} ({done.bytes:,} bytes); there already: {done.known:,}")
    for name in done.clashes:
        remark(f"left in the part, for the run has another file of that name: {clean(name)}")
