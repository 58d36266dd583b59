"""One run per trial: how the driver, the trial and later processes find the same run.

The run's id is computed from the names of experiment and trial, so two processes that know both names open one run:
the first creates it, the others join it.
"""

from __future__ import annotations

import hashlib
import os
import time

from rollbook.adapters._plain import described
from rollbook.adapters._run import clean_name, is_opened_for
from rollbook.errors import BadInput, NotARun, RunExists, RunIsLive, RunNotFound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rollbook.run.run import Run

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_JOIN_SECONDS = 10.0
_POLL_SECONDS = 0.02


def run_id(experiment: str, trial: str) -> str:
    """The id of a trial's run: ten letters and digits (50 bits), computed from the names of its folders."""
    digest = hashlib.blake2b(f"{experiment}\0{trial}".encode(), digest_size=10).digest()
    return "".join(_LETTERS[byte & 31] for byte in digest)


def names_of(storage: object) -> tuple[str | None, str]:
    """The names of the experiment's and the trial's folder, which driver and trial both know; (None, "") without Tune.

    Args:
      storage: Tune's storage of a trial: `trial.storage` in the driver, `_storage` of a trainable.
    """
    experiment = getattr(storage, "experiment_dir_name", None)
    trial = getattr(storage, "trial_dir_name", None)
    return (str(experiment), str(trial)) if experiment and trial else (None, "")


def function_storage() -> object:
    """Tune's storage for the trial of this process, if the trial is a function; else None."""
    import warnings

    from ray import tune

    with warnings.catch_warnings():  # outside of one, Ray returns None and warns
        warnings.simplefilter("ignore")
        return tune.get_context().get_storage()


class RunOptions:
    """The location and names of runs. Plain data, so that it can be sent to other processes.

    Args:
      dir: root of all runs. Made absolute at once, because trials change their working folder.
      project: default: the experiment's name; without Tune, the environment's.
      name: default: the trial's name; without Tune, the algorithm's.
      options: further arguments of `rollbook.init`.
    Raises:
      BadInput: an argument that `rollbook.init` would reject.
    """

    def __init__(
        self,
        dir: str | os.PathLike[str] | None = None,
        project: str | None = None,
        name: str | None = None,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self.dir = os.path.abspath(os.fspath(dir) if dir is not None else os.environ.get("ROLLBOOK_DIR") or "runs")
        for what, value in (("project", project), ("name", name)):
            if value is not None and (not isinstance(value, str) or clean_name(value, "") != value):
                raise BadInput(
                    f"{what}={value!r:.200} cannot be a folder's name. Use letters, digits, - _ . and spaces; or "
                    "leave it out"
                )
        self.project, self.name = project, name
        from inspect import signature

        from rollbook.run.session import init

        self.options: dict[str, Any] = {"sinks": (), **(options or {})}

        known = [*signature(init).parameters]
        unknown = [key for key in self.options if key not in known]
        if unknown:
            raise BadInput(f"{unknown[0]!r} is neither an option of this adapter nor of rollbook.init()")


def open_run(
    settings: RunOptions,
    *,
    experiment: str | None = None,
    trial: str = "",
    trial_name: str = "",
    fallback: tuple[str, str] = ("rllib", "run"),
    config: object = None,
    user: object,
) -> Run:
    """Create the run of a trial, continue it if it has ended, or join it if another process writes it now.

    Args:
      experiment, trial: names of their folders (see `names_of`); None without Tune: then each call creates a new run.
      trial_name: the run's name, unless the settings have one.
      fallback: project and name if neither the settings nor Tune have them.
      config: the algorithm's configuration.
      user: the run ends no later than this object: the algorithm, or the one that represents the trial.
    Returns:
      The run; `run.internals.writer.main` is true if this process is its main writer.
    Raises:
      RollbookError: any error of `rollbook.init`; RunIsLive if the run could not be joined within ten seconds.
    """
    from rollbook.run.session import attach, init

    options = dict(settings.options)
    identity = options.pop("run_id", None) or (run_id(experiment, trial) if experiment is not None else None)
    project = settings.project or clean_name(experiment, fallback[0]) if experiment is not None else settings.project
    project = project or clean_name(fallback[0], "rllib")
    name = settings.name or clean_name(trial_name, fallback[1])
    resume = options.pop("resume", "allow" if experiment is not None else "never")
    if experiment is not None:
        options.setdefault("group", experiment)
    options.setdefault("config", config)
    seed = config.get("seed") if isinstance(config, dict) else None  # of config.debugging(seed=…)
    options.setdefault("seed", seed if isinstance(seed, int) else None)
    try:
        run = init(project, name, run_id=identity, resume=resume, dir=settings.dir, **options)
        is_opened_for(run, user, "rllib", "ray")
        return run
    except (RunExists, RunIsLive):
        if identity is None:
            raise
    deadline = time.monotonic() + _JOIN_SECONDS
    while True:  # its creator has made the folder and is about to write run.json
        try:
            return attach(identity, dir=settings.dir, strict=bool(options.get("strict", False)))
        except (RunNotFound, NotARun):
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_SECONDS)


def plain_config(config: object) -> dict[str, object]:
    """An AlgorithmConfig, or a similar dict, as plain data; other objects become text without addresses."""
    to_dict = getattr(config, "to_dict", None)
    if callable(to_dict):
        config = to_dict()
    if not hasattr(config, "items"):
        return {}
    return {str(key): described(value) for key, value in config.items() if key != "__trial_info__"}
