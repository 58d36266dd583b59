"""The program `rollbook`: its commands by name, each loaded when it is called."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword

import click

from rollbook.system.version import __version__

_SECTIONS = {
    "Record": {
        "demo": ("rollbook.cli.demo", "Let a real agent learn while rollbook records it."),
        "run": ("rollbook.cli.run", "Start a program and record what it logs to wandb or TensorBoard."),
    },
    "Look at runs": {
        "ui": ("rollbook.cli.ui", "Look at runs in a browser, live."),
        "board": ("rollbook.cli.board", "Save a view of the page: the charts that it opens with."),
        "ls": ("rollbook.cli.ls", "List runs."),
        "show": ("rollbook.cli.show", "Show what is in a run."),
        "watch": ("rollbook.cli.watch", "Watch a run live while another process trains it."),
        "tail": ("rollbook.cli.tail", "Print rows as they are written."),
        "logs": ("rollbook.cli.logs", "Print what the program of a run printed."),
        "cause": ("rollbook.cli.cause", "Show what happened near a point of a run."),
        "episodes": ("rollbook.cli.tables", "List the episodes of a run."),
        "samples": ("rollbook.cli.tables", "Search and sort the samples of a run."),
        "text": ("rollbook.cli.tables", "List the texts and notes of a run."),
        "media": ("rollbook.cli.tables", "List the pictures and videos of a run."),
        "rows": ("rollbook.cli.tables", "List rows of any table of a run."),
        "rollouts": ("rollbook.cli.rollouts", "Answer a question about the rollouts of a run."),
        "novelty": ("rollbook.cli.novelty", "Count new and repeated samples over training."),
        "unused": ("rollbook.cli.unused", "Say what a run was not trained on, and why."),
        "timings": ("rollbook.cli.timings", "Show where the time of a run went, by stage."),
        "checkpoints": ("rollbook.cli.checkpoints", "List the checkpoints of a run, or print the path of one."),
        "play": ("rollbook.cli.play", "Show or write the video of an episode."),
        "sql": ("rollbook.cli.sql", "Ask a run a question in SQL."),
        "wait": ("rollbook.cli.wait", "Wait until a condition on a run is true."),
        "mcp": ("rollbook.cli.mcp", "Answer the questions of an agent about runs."),
    },
    "Judge": {
        "compare": ("rollbook.cli.compare", "Say which group of runs is better, and how sure that is."),
        "series": ("rollbook.cli.series", "Print keys of runs along an axis, each run for itself."),
        "plot": ("rollbook.cli.plot", "Draw runs: curves with bands, intervals, stages and more."),
        "curves": ("rollbook.cli.curves", "Print the curves of groups of runs as numbers."),
        "diff": ("rollbook.cli.diff", "Show what differs between runs or groups of them."),
        "sweep": ("rollbook.cli.sweep", "Show which setting of a sweep matters."),
        "seeds": ("rollbook.cli.seeds", "Compute how many seeds each group needs."),
        "shared-prompts": ("rollbook.cli.shared_prompts", "Compare two runs on the prompts that both have."),
        "report": ("rollbook.cli.report", "Write one page about runs, to be mailed."),
        "plans": ("rollbook.cli.findings", "List the plans of comparisons that are stored with runs."),
        "findings": ("rollbook.cli.findings", "Report what is wrong with runs, the worst first."),
        "alerts": ("rollbook.cli.alerts", "List what health rules found in runs."),
        "check": ("rollbook.cli.check", "Run the health rules over existing runs."),
        "scores": ("rollbook.cli.scores", "Compare raw scores that a paper published."),
    },
    "Move": {
        "import": ("rollbook.cli.import_", "Bring runs that another tool wrote into a folder of runs."),
        "label": ("rollbook.cli.label", "Label runs of other tools with what their files do not say."),
        "export": ("rollbook.cli.export", "Write a table of a run to a file."),
        "push": ("rollbook.cli.remotes", "Upload a run to a remote (an object store)."),
        "pull": ("rollbook.cli.remotes", "Download runs from a remote."),
        "sync": ("rollbook.cli.remotes", "Upload and download what a run and its remote lack."),
        "forward": ("rollbook.cli.forward", "Replay a run into any sink."),
        "views": ("rollbook.cli.views", "Print views of all tables of many runs, for DuckDB."),
        "catalogue": ("rollbook.cli.remotes", "Show what a remote holds, or rebuild its catalogue."),
        "shapes": ("rollbook.cli.shapes", "Print what commands answer with --json."),
    },
    "Mend": {
        "verify": ("rollbook.cli.doctor", "Report what is wrong with a run, if anything."),
        "repair": ("rollbook.cli.doctor", "Save what can be saved of a damaged or orphaned run."),
        "seal": ("rollbook.cli.doctor", "Turn the journal of a run into Parquet now."),
        "join": ("rollbook.cli.join", "Bring a part of a run, kept by another host, into the run's folder."),
        "disk": ("rollbook.cli.disk", "Show what takes space."),
        "rm": ("rollbook.cli.disk", "Move runs into a bin, bring them back, empty it."),
        "trim": ("rollbook.cli.trim", "Make the rollouts of a run smaller: drop old token lists and texts."),
    },
}
"""Section of `rollbook --help` -> command -> (the module that has it, what it does); everyday commands first."""

_COMMANDS = {name: about for section in _SECTIONS.values() for name, about in section.items()}

_METRIC_OPTIONS = ("metric", "metrics", "key", "keys")
"""Options that name metrics. Each command has one of them; another one is answered with that."""


class _Lazy(click.Group):
    """Knows all commands by name and loads one when it is needed, so that --help is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = import_module(_COMMANDS[cmd_name][0])
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name.replace("-", "_")
        command: click.Command = getattr(module, name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (_module, text) in commands.items()], col_max=14)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            from rollbook.errors import did_you_mean

            raise click.UsageError(f"no command {args[0]!r}.{did_you_mean(args[0], list(_COMMANDS))}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        from rollbook.errors import RollbookError

        try:
            return super().invoke(ctx)
        except click.NoSuchOption as err:
            word = err.option_name.lstrip("-")
            if word in _METRIC_OPTIONS and err.ctx is not None:
                here = {option for param in err.ctx.command.params for option in param.opts}
                for name in _METRIC_OPTIONS:
                    if f"--{name}" in here:
                        raise click.UsageError(
                            f"No such option '{err.option_name}'. Did you mean '--{name}'?", err.ctx
                        ) from None
            if word not in _COMMANDS:
                raise
            raise click.UsageError(  # some users type it as an option
                f"No such option: {err.option_name}. There is a command: rollbook {word}", err.ctx
            ) from None
        except RollbookError as err:
            raise click.ClickException(_on_screen(str(err))) from None
        except click.UsageError as err:
            if type(err) is not click.UsageError:  # click words its own, such as a missing argument
                raise
            raise click.UsageError(_on_screen(err.message), err.ctx) from None
        except KeyboardInterrupt:
            click.echo(err=True)
            ctx.exit(130)
        except BrokenPipeError:  # `rollbook tail … | head`
            import os
            import sys

            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
            ctx.exit(0)
        except ImportError as err:  # an installed package that fails to import
            raise click.ClickException(
                _on_screen(
                    f"{err}. A package that rollbook needs does not load here. Install versions that fit each other: "
                    "pip install --upgrade rollbook"
                )
            ) from None
        except OSError as err:
            raise click.ClickException(_on_screen(_of_the_system(err))) from None


def _on_screen(message: str) -> str:
    """The message of an error behind the word that click prints in front of it."""
    from rollbook.cli.output import for_errors

    return for_errors(message, "Error: ")


def _of_the_system(err: OSError) -> str:
    """What the operating system refused, and what to do."""
    import errno

    advice = {
        errno.EROFS: "Commands that only read work there. To change a run, copy its folder to another disk first",
        errno.EACCES: "Ask its owner for the permission, or copy the folder to one of yours",
        errno.EPERM: "Ask its owner for the permission, or copy the folder to one of yours",
        errno.ENOSPC: "Nothing of the runs is lost by it. Make room, and give the command again",
    }.get(err.errno or 0)
    return f"{err.strerror}: {err.filename or 'no file is named'}. {advice}." if advice else str(err)


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, "--version", message="rollbook %(version)s")
def app() -> None:
    """The flight recorder of reinforcement-learning runs.

    RUN is a folder, a project, a name, an id, or "last". If several runs match, it is the newest one that has
    something to show. RUNS are all that match.

    \b
    Examples:
      rollbook demo                    watch a real agent learn CartPole
      rollbook ls                      runs below ./runs
      rollbook show last               what the newest run holds
      rollbook ui                      look at them in a browser
      rollbook watch cartpole/ppo      follow a run that is training
    """
