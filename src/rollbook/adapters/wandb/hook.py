"""`import wandb` in a program that was started by `rollbook run --wandb replace|beside`.

replace: the name `wandb` is this package; the real one is not loaded. beside: the real one is loaded, and its logged
data is also recorded here. The hook is active in the started process and its children, by $ROLLBOOK_WANDB and a
sitecustomize on their PYTHONPATH; no Python environment is modified.
"""

from __future__ import annotations

import sys

from rollbook.adapters._imported import when_imported
from rollbook.errors import BadInput
from rollbook.system.other_names import SameModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from importlib.metadata import Distribution
    from typing import Any

MODES = ("replace", "beside")


def install(mode: str) -> None:
    """Set the meaning of `import wandb` in this process, from now on.

    Raises:
      BadInput: another mode; or replace, but the real wandb is already loaded.
    """
    if mode not in MODES:
        raise BadInput(f"wandb={mode!r}: there are {' and '.join(MODES)}")
    if mode == "beside":
        if "wandb" in sys.modules:
            mirror(sys.modules["wandb"])
        else:
            when_imported({"wandb": mirror})
        return
    there = sys.modules.get("wandb")
    if there is not None and not there.__name__.startswith("rollbook."):
        raise BadInput("wandb='replace': the program has imported the real wandb already. Start it with: rollbook run")
    sys.meta_path.insert(0, _Replace())


class _Replace:
    """Finds this package under the name `wandb`, also for those that ask which version is installed."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "wandb" and not name.startswith("wandb."):
            return None
        from importlib.machinery import ModuleSpec
        from importlib.util import find_spec

        here = "rollbook.adapters." + name
        try:
            found = find_spec(here) is not None
        except ModuleNotFoundError:  # nor is its parent package
            found = False
        if not found:
            raise ModuleNotFoundError(
                f"No module named {name!r} here: rollbook does not stand in for it. Start the program by rollbook run "
                "--wandb beside, which loads the real wandb",
                name=name,
            )
        return ModuleSpec(name, SameModule(here), is_package=name == "wandb")  # type: ignore[arg-type]

    @staticmethod
    def find_distributions(context: Any) -> list[Distribution]:
        """Required by `importlib.metadata`."""
        if context.name is None or context.name.lower() != "wandb":
            return []
        from importlib.metadata import Distribution

        from rollbook.adapters.wandb import __version__

        class Wandb(Distribution):
            def read_text(self, filename: str) -> str | None:
                return (
                    f"Metadata-Version: 2.1\nName: wandb\nVersion: {__version__}\n" if filename == "METADATA" else None
                )

            def locate_file(self, path: Any) -> Any:
                return path

        return [Wandb()]


def mirror(wandb: Any) -> None:
    """Also record here what runs of the real wandb log. Failures here never reach the program."""
    kind = wandb.sdk.wandb_run.Run
    if getattr(kind, "of_rollbook", False):
        return
    begin, log, finish, leave = wandb.init, kind.log, kind.finish, kind.__exit__
    mirrors: dict[str, Any] = {}

    def of(run: Any) -> Any:
        from rollbook.adapters.wandb._run import Run, Settings
        from rollbook.adapters.wandb._state import keep_tensorboard, opened

        if run.id not in mirrors:
            recorder = opened(
                project=run.project or "uncategorized",
                name=run.name or None,
                run_id=None,
                resume=None,
                config=dict(run.config),
                group=run.group or None,
                job_type=run.job_type or None,
                notes=run.notes or "",
                tags=list(run.tags or ()),
                folder=None,
            )
            mirrors[run.id] = Run(recorder, Settings(project=run.project, entity=run.entity))
            recorder.note(f"beside the wandb run {run.id}")
            if wandb.patched["tensorboard"]:  # its service reads the event files, which bypasses `log`
                keep_tensorboard(recorder)
        return mirrors[run.id]

    # Each of wandb's functions does its own work; a failure of ours is reported and ignored.
    def opening(*arguments: Any, **options: Any) -> Any:
        run = begin(*arguments, **options)
        _kept(lambda: None if run.disabled else of(run))
        return run

    def logging(self: Any, data: Any, step: int | None = None, *more: Any, **options: Any) -> Any:
        _kept(lambda: of(self).log(_ours(data), self.step if step is None else step))
        return log(self, data, step, *more, **options)

    def finishing(self: Any, exit_code: int | None = None, *more: Any, **options: Any) -> Any:
        _kept(lambda: _end(self, exit_code))
        return finish(self, exit_code, *more, **options)

    def leaving(self: Any, kind: Any, error: Any, trace: Any) -> Any:
        _kept(lambda: _end(self, 1 if error is not None else 0))
        return leave(self, kind, error, trace)

    def _end(run: Any, exit_code: int | None) -> None:
        kept = mirrors.pop(run.id, None)
        if kept is not None:
            kept.config.update(dict(run.config))
            kept.finish(exit_code)

    # Put them in place, once per process.
    kind.log, kind.finish, kind.__exit__, kind.of_rollbook = logging, finishing, leaving, True
    wandb.init = opening


def _kept(work: Any) -> None:
    from rollbook.system.bill import warn_caller
    from rollbook.system.guard import handled_by

    what = "what wandb logs was not recorded here"
    with handled_by(lambda err: warn_caller(f"{what}: {type(err).__name__}: {err}")):
        work()


def _ours(data: Any) -> dict[str, Any]:
    """A row with the real wandb's value objects replaced by ours; `log` counts unknown ones."""
    from rollbook.adapters.wandb import _data

    row: dict[str, Any] = {}
    for key, value in dict(data).items():
        name = type(value).__name__
        if not type(value).__module__.startswith("wandb."):
            row[key] = value
        elif name == "Histogram":
            row[key] = _data.Histogram(np_histogram=(value.histogram, value.bins))
        elif name == "Table":
            row[key] = _data.Table(columns=value.columns, data=value.data)
        elif getattr(value, "_path", None):
            row[key] = _data.Image(str(value._path))
    return row
