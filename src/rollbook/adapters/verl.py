"""verl with a rollbook run: a back end for its `Tracking`, and its rollouts with their fates.

    VERL_USE_EXTERNAL_MODULES=rollbook.adapters.verl python -m verl.trainer.main_ppo \\
        trainer.logger='["console", "rollbook"]' trainer.rollout_data_dir=rollouts ...

verl has a fixed list of back ends. That variable adds this one; so does `register()` in the process that makes the
`Tracking`. `Tracking` of this module has the interface of verl's and does not need verl.
"""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path

from rollbook.adapters import _versions
from rollbook.adapters._run import end_training, find_run, keep_config, needed
from rollbook.adapters._verl_rollouts import Rollouts, join
from rollbook.errors import BadInput
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.run.scope import Scope

__all__ = ["SUPPORTED", "Backend", "Tracking", "import_rollouts", "register"]

SUPPORTED = ">=0.5,<1"
"""The versions of verl that this adapter supports."""

_FILE = re.compile(r"(\d+)\.jsonl")
_current: Backend | None = None
"""The newest back end of this process: the one that verl's trainer logs to."""


class Backend:
    """What verl calls a logger instance: `log(data, step)` and `finish()`.

    Each `log` is one row under the native keys. Clocks: `step` (and `train_iter`, if the run declares it) is verl's
    global step, `epoch` comes from `training/epoch`. What verl dumps to the folders of the configuration becomes
    rollouts: as the trainer holds it if `register` joined it, else from the files.

    Args:
      project_name, experiment_name: of a run that has to be opened.
      config: verl's configuration as a dict.
      run: a run or a scope of a run. None uses the current run, or opens one.
      run_options: further arguments of `rollbook.init`.
      token_groups: keep the token lists of one group in this many; 0: of none.
    """

    def __init__(
        self,
        project_name: str,
        experiment_name: str,
        config: Mapping[str, Any] | None = None,
        *,
        run: Scope | None = None,
        run_options: Mapping[str, object] | None = None,
        token_groups: int = 1,
    ) -> None:
        global _current
        config = config or {}
        trainer = config.get("trainer") or {}
        self.run = _run_for(self, project_name, experiment_name, trainer, run, dict(run_options or {}))
        self._count = Bill(to=self.run)
        self._count.guard("config", "keeping the configuration", lambda: self._keep_config(config))
        self.rollouts = Rollouts(self.run, trainer, token_groups)
        self._dumps = [
            _Dumps(self.run, Path(folder), mode, self.rollouts)
            for mode, name in (("train", "rollout_data_dir"), ("eval", "validation_data_dir"))
            if (folder := trainer.get(name))
        ]
        _current = self

    def log(self, data: Mapping[str, object], step: int) -> None:
        """Log one row. Also takes in dumps of earlier steps that no trainer handed over.

        Args:
          data: native key -> number.
          step: verl's global step.
        """
        self._count.guard("verl_row", "keeping a row", self._log, data, step)
        for dumps in self._dumps:
            self._count.guard("verl_dumps", "taking in a rollout dump", functools.partial(dumps.take, before=step))

    def _log(self, data: Mapping[str, object], step: int) -> None:
        clocks: dict[str, Any] = {"step": step}
        if "train_iter" in self.run.run.internals.writer.clocks:
            clocks["train_iter"] = step
        epoch = data.get("training/epoch")
        if epoch is not None:
            clocks["epoch"] = epoch
        self.run.log(data, **clocks)

    def finish(self, exit_code: int = 0) -> None:
        """Take in the last dumps. A run that was opened here ends as `finished` or `crashed`.

        Args:
          exit_code: 0: `finished`; another number: `crashed`.
        """
        for dumps in self._dumps:
            self._count.guard("verl_dumps", "taking in a rollout dump", dumps.take)
        self._count.guard("verl_rollouts", "keeping rollouts", self.rollouts.finish)
        self._count.guard("finish", "ending the run", self._end, exit_code)

    def _end(self, exit_code: int) -> None:
        end_training(self.run, self, "crashed" if exit_code else "finished")

    def _keep_config(self, config: Mapping[str, Any]) -> None:
        version = _versions.installed("verl")
        keep_config(self.run, config if version is None else {**config, "verl_version": version})


class Tracking:
    """verl's `Tracking` with rollbook: the same constructor, `log` and `finish`.

    Args:
      project_name, experiment_name, config: as in verl.
      default_backend: names of back ends; all except "rollbook" are passed to verl's own `Tracking`.
      run, run_options: see `Backend`.
    Raises:
      MissingExtra, UnsupportedVersion: other back ends are requested, and verl is missing or not in `SUPPORTED`.
    """

    def __init__(
        self,
        project_name: str,
        experiment_name: str,
        default_backend: str | list[str] = "rollbook",
        config: Any = None,
        *,
        run: Scope | None = None,
        run_options: Mapping[str, object] | None = None,
    ) -> None:
        names = [default_backend] if isinstance(default_backend, str) else list(default_backend)
        others = [name for name in names if name != "rollbook"]
        self._theirs: Any = None
        if others:
            self._theirs = _native().Tracking(project_name, experiment_name, others, config)
        self.logger: dict[str, Any] = dict(self._theirs.logger) if self._theirs is not None else {}
        self.logger["rollbook"] = Backend(project_name, experiment_name, config, run=run, run_options=run_options)

    @property
    def run(self) -> Any:
        """The run it writes to."""
        return self.logger["rollbook"].run

    def log(self, data: Mapping[str, object], step: int, backend: Any = None) -> None:
        """Send the row to every back end, or to those named in `backend`.

        Args:
          data: native key -> number.
          step: verl's global step.
          backend: names of back ends. None: all.
        """
        for name, tracker in self.logger.items():
            if backend is None or name in backend:
                tracker.log(data=data, step=step)

    def finish(self, exit_code: int = 0) -> None:
        """End every back end.

        Args:
          exit_code: as in `Backend.finish`; passed on to back ends that take one.
        """
        if self._theirs is not None:
            theirs = self._theirs.finish
            try:
                theirs(exit_code=exit_code)
            except TypeError:  # older releases have no exit code
                theirs()
        self.logger["rollbook"].finish(exit_code)


def register(run: object = None, *, token_groups: int = 1, **run_options: object) -> None:
    """Add the back end "rollbook" to verl's own `Tracking` in this process. Calling it again changes the options.

    When the `Tracking` is made, the trainers of verl that are loaded hand over what they dump: see `_verl_rollouts`.

    verl makes its `Tracking` in the process of the task runner. Set VERL_USE_EXTERNAL_MODULES=rollbook.adapters.verl
    there (in Ray's runtime environment); `import verl` then calls this function.

    Args:
      run: what to log to. None: the current run, or a new one with the names that verl is given.
      token_groups: keep the token lists of one group in this many; 0: of none.
      run_options: further arguments of `rollbook.init`.
    Raises:
      MissingExtra, UnsupportedVersion: verl is not installed, or not in a version of `SUPPORTED`.
    """
    tracking = _native().Tracking
    tracking._rollbook_options = {"run": run, "run_options": run_options, "token_groups": token_groups}
    if "rollbook" in tracking.supported_backend:
        return
    tracking.supported_backend = [*tracking.supported_backend, "rollbook"]
    make, finish = tracking.__init__, getattr(tracking, "finish", None)

    @functools.wraps(make)
    def init(
        self: Any, project_name: str, experiment_name: str, default_backend: Any = "console", config: Any = None
    ) -> None:
        names = [default_backend] if isinstance(default_backend, str) else list(default_backend)
        make(self, project_name, experiment_name, [name for name in names if name != "rollbook"], config)
        if "rollbook" in names:
            self.logger["rollbook"] = Backend(project_name, experiment_name, config, **tracking._rollbook_options)
            join(_rollouts_of)

    tracking.__init__ = init
    if finish is not None:

        @functools.wraps(finish)
        def finish_all(self: object, exit_code: int = 0) -> None:
            was_finished = getattr(self, "_finished", False)
            finish(self, exit_code)
            ours = getattr(self, "logger", {}).get("rollbook")
            if ours is not None and not was_finished:
                ours.finish(exit_code)

        tracking.finish = finish_all
    if hasattr(tracking, "__del__"):
        collected = tracking.__del__

        @functools.wraps(collected)
        def forget(self: object) -> None:
            # A collected object does not know how the training ended; the end of the process does.
            getattr(self, "logger", {}).pop("rollbook", None)
            collected(self)

        tracking.__del__ = forget


def _rollouts_of() -> Rollouts | None:
    return None if _current is None or _current.run.run.status != "running" else _current.rollouts


def import_rollouts(run: object, folder: str | os.PathLike[str], mode: str = "train") -> int:
    """Take verl's dumps (`<global step>.jsonl` of `rollout_data_dir` or `validation_data_dir`) as rollouts.

    One for each response: `item` (the response), its prompt, `reward`, `ground_truth`, and every further column under
    its own name. `group` is the `uid` without the number of the response; without a `uid`, equal prompts of a step form
    a group. With mode "train" each is reported as trained on at that step: verl dumps what it trained on.

    Args:
      run: a run or a scope of a run.
      folder: the folder of the dumps.
      mode: a word for the column of that name.
    Returns:
      The number of responses.
    Raises:
      BadInput: there is no such folder.
    """
    path = Path(folder)
    if not path.is_dir():
        raise BadInput(f"import_rollouts({str(folder)!r}): found no such folder. Pass verl's trainer.rollout_data_dir")
    return _Dumps(run, path, mode, Rollouts(run, {}), skip_present=False).take()


class _Dumps:
    """The dumps of one folder, and which of them are already taken."""

    def __init__(self, run: Any, folder: Path, mode: str, rollouts: Rollouts, skip_present: bool = True) -> None:
        self._run, self._folder, self._mode, self._rollouts = run, folder, mode, rollouts
        # Files of an earlier attempt of this training are in the book already, or belong to another run.
        self._taken = {path.name: stamp for _, path, stamp in self._present()} if skip_present else {}

    def _present(self) -> list[tuple[int, Path, tuple[int, int]]]:
        present = []
        for path in self._folder.glob("*.jsonl"):
            match = _FILE.fullmatch(path.name)
            if match is not None:
                about = path.stat()
                present.append((int(match[1]), path, (about.st_mtime_ns, about.st_size)))
        return sorted(present)

    def take(self, before: int | None = None) -> int:
        """Take new files (of steps before `before`). Returns the number of rows."""
        n = 0
        for step, path, stamp in self._present():
            if self._taken.get(path.name) == stamp or (before is not None and step >= before):
                continue
            if (self._mode, step) in self._rollouts.written:  # handed over by the trainer
                continue
            try:
                rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
            except json.JSONDecodeError:
                if before is None:
                    Bill(to=self._run)("verl_dumps", message=f"{path.name} is not whole; it was left out")
                continue  # still being written: the next step finds it whole
            self._taken[path.name] = stamp
            if rows:
                self._log(step, rows)
                n += len(rows)
        return n

    def _log(self, step: int, rows: list[dict[str, Any]]) -> None:
        names = dict.fromkeys(name for row in rows for name in row)
        columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in names if name != "step"}
        prompts, answers, scores = (columns.pop(name, [None] * len(rows)) for name in ("input", "output", "score"))
        self._rollouts.texts(step, self._mode, prompts, answers, scores, columns)


def _run_for(
    user: object, project: str, name: str, trainer: Mapping[str, Any], run: object, options: dict[str, Any]
) -> Any:
    defaults: dict[str, object] = {"clocks": ("train_iter",)}
    if trainer.get("total_training_steps"):
        defaults["total"] = {"step": int(trainer["total_training_steps"])}
    wanted = options if run is None else None
    found, _ = find_run(run, project=project, name=name, options=wanted, defaults=defaults, user=user, host="verl")
    return needed(found, "Backend", "back end 'rollbook'")


def _native() -> Any:
    _versions.require("verl", SUPPORTED, extra="verl", why="rollbook.adapters.verl")
    from importlib import import_module

    return import_module("verl.utils.tracking")


if __name__ in os.environ.get("VERL_USE_EXTERNAL_MODULES", "").split(","):
    register()
