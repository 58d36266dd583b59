"""`rollbook run`: an unchanged program, with its logging to other tools recorded."""

from __future__ import annotations

import os
import sys

import click


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--wandb",
    type=click.Choice(["replace", "beside"]),
    help="`import wandb` means rollbook (replace), or the real one, recorded as well (beside).",
)
@click.option("--tensorboard", is_flag=True, help="SummaryWriters and tf.summary write the book, too.")
@click.option("--dir", "root", default=None, help="The folder of all runs; default: $ROLLBOOK_DIR or runs.")
@click.argument("program", nargs=-1, required=True, metavar="PROGRAM [ARGUMENTS]...", type=click.UNPROCESSED)
def run(wandb: str | None, tensorboard: bool, root: str | None, program: tuple[str, ...]) -> None:
    """Start a Python program and record what it logs to wandb or TensorBoard, without a change to it.

    PROGRAM is a file, or -m and a module. The program's own children are recorded, too. Nothing is installed anywhere.

    \b
    Examples:
      rollbook run train.py --wandb replace
      rollbook run --wandb replace train.py --lr 3e-4
      rollbook run --wandb beside -m my_package.train
      rollbook run --tensorboard train.py -- --lr 3e-4
    """
    words = list(program)
    if wandb is None and "--wandb" in words:  # also accepted after the program
        index = words.index("--wandb")
        wandb = words[index + 1] if index + 1 < len(words) else ""
        if wandb not in ("replace", "beside"):
            raise click.UsageError(f"--wandb {wandb}: there are replace and beside")
        del words[index : index + 2]
    if not tensorboard and "--tensorboard" in words:
        words.remove("--tensorboard")
        tensorboard = True
    if wandb is None and not tensorboard:
        raise click.UsageError("say what is to be recorded: --wandb replace, --wandb beside or --tensorboard")
    from rollbook.adapters.wandb import started

    if "--" in words[1:2]:  # between the program and its arguments, as other launchers have it
        del words[1]
    environment = dict(os.environ)
    hooks = os.path.abspath(next(iter(started.__path__)))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [hooks, environment.get("PYTHONPATH")]))
    if wandb is not None:
        environment["ROLLBOOK_WANDB"] = wandb
    if tensorboard:
        environment["ROLLBOOK_TENSORBOARD"] = "1"
    if root is not None:
        environment["ROLLBOOK_DIR"] = os.path.abspath(root)
    if os.name == "nt":  # exec would return the terminal before the program ends
        import subprocess

        sys.exit(subprocess.call([sys.executable, *words], env=environment))
    os.execve(sys.executable, [sys.executable, *words], environment)
