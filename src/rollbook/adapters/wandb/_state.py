"""The functions of `wandb` that act on the current run."""

from __future__ import annotations

import enum
import os

from rollbook.adapters.wandb._current import CommError, Error, UsageError, current, enter, runs, termlog, trial
from rollbook.adapters.wandb._run import Run, Settings, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from rollbook.run.run import Run as Recorder

__all__ = [
    "AlertLevel", "CommError", "Error", "UsageError", "agent", "alert", "attached", "controller", "current",
    "current_or_waiting", "define_metric", "ensure_configured", "finish", "init", "join", "keep_tensorboard",
    "link_model", "log", "log_artifact", "log_code", "log_model", "login", "mark_preempting", "opened",
    "patch_tensorboard", "patched", "require", "restore", "save", "setup", "sweep", "teardown", "termerror", "termlog",
    "termsetup", "termwarn", "unwatch", "use_artifact", "use_model", "watch", "watch_videos",
]  # fmt: skip


_DEFAULTS = "config-defaults.yaml"
"""A file in the program's folder whose settings apply where `init(config=…)` has none."""


class AlertLevel(enum.Enum):
    """The severity of an alert."""

    INFO = "INFO"
    WARN = "WARN"
    ERROR = "ERROR"


class _BeforeInit:
    """Placeholder for the run before `init`: using it raises an error that explains this."""

    def __getattr__(self, name: str) -> Any:
        if name in ("config", "summary"):
            return self
        if name.startswith("__"):
            raise AttributeError(name)
        raise Error(f"You must call wandb.init() before {name!r} of wandb, wandb.config or wandb.summary")

    def __setattr__(self, name: str, value: object) -> None:
        raise Error("You must call wandb.init() before wandb.config and wandb.summary")

    def __getitem__(self, name: str) -> Any:
        raise Error("You must call wandb.init() before wandb.config and wandb.summary")

    __setitem__ = __setattr__


def current_or_waiting() -> Any:
    """The current run; before `init`, an object that raises Error when it is used."""
    return current() or _BeforeInit()


def init(
    entity: str | None = None,
    project: str | None = None,
    dir: str | os.PathLike[str] | None = None,
    id: str | None = None,
    name: str | None = None,
    notes: str | None = None,
    tags: Iterable[str] | str | None = None,
    config: Any = None,
    config_exclude_keys: Iterable[str] | None = None,
    config_include_keys: Iterable[str] | None = None,
    allow_val_change: bool | None = None,
    group: str | None = None,
    job_type: str | None = None,
    mode: str | None = None,
    force: bool | None = None,
    reinit: bool | str | None = None,
    resume: bool | str | None = None,
    resume_from: str | None = None,
    fork_from: str | None = None,
    save_code: bool | None = None,
    tensorboard: bool | None = None,
    sync_tensorboard: bool | None = None,
    monitor_gym: bool | None = None,
    settings: Any = None,
    anonymous: object = None,
) -> Run:
    """Open a run of rollbook with the arguments of `wandb.init`.

    Args:
      entity, force, save_code, anonymous, allow_val_change: accepted, without effect.
      project, name, group, job_type, tags, notes, config: as in `rollbook.init`; a `seed` in the configuration is the
        run's seed. `config` may be the name of a YAML file; settings of a `config-defaults.yaml` in the current folder
        hold where it has none. Default of the project: $WANDB_PROJECT, or "uncategorized".
      dir: the run is stored in `<dir>/runs`; default: $ROLLBOOK_DIR, or $WANDB_DIR/runs, or "runs".
      id, resume: the id of a run, and whether it is continued: "allow" (also True and "auto"), "must" or "never". An
        existing id is continued unless `resume` forbids it, so nothing is overwritten.
      config_exclude_keys, config_include_keys: settings of `config` to leave out, or the only ones to store.
      mode: "disabled" records nothing; every other mode records here.
      reinit: what happens to an open run: "finish_previous" (also True), "return_previous" (also False), or
        "create_new", which leaves `wandb.run` and `wandb.log` as they are. Default: it is returned; in a notebook, or
        if `id` or a setting of `config` is another one, it is finished.
      fork_from, resume_from: "<id>?_step=<n>": kept as a note.
      tensorboard: the older name of `sync_tensorboard`.
      sync_tensorboard: also record what SummaryWriters of torch and tensorboardX log.
      monitor_gym: store the video files of gymnasium's RecordVideo when they are complete.
      settings: a `Settings` or a dict; an argument that is given takes precedence.
    Raises:
      UsageError: resume="must" and there is no such run, or a value that makes no sense.
      ConfigError: the YAML file does not exist or cannot be read.
      TypeError: `config` is something else.
    """
    asked = Settings()
    asked.update(settings if settings is not None else {})
    mode = mode or asked.mode or os.environ.get("WANDB_MODE") or "offline"
    if os.environ.get("WANDB_DISABLED", "").lower() in ("1", "true", "yes"):
        mode = "disabled"
    if mode not in ("online", "offline", "disabled", "shared", "dryrun", "run"):
        raise UsageError(f"wandb.init(mode={mode!r}): there are online, offline, shared and disabled")
    if os.path.exists(_DEFAULTS):
        config = {**plain(_DEFAULTS), **plain(config)}
    # An agent of a sweep has chosen settings for the next run: they override the program's.
    searched = trial()
    if searched is not None:
        config = {**plain(config), **searched.settings}
        project, group = project or searched.project, group or f"sweep-{searched.sweep_id}"
        asked.update(sweep_id=searched.sweep_id)
    previous = _previous(reinit, id, plain(config))
    if previous is not None:
        return previous
    # For each field the argument comes first, then `settings`, then the environment, as in wandb.
    project = project or asked.project or os.environ.get("WANDB_PROJECT") or "uncategorized"
    asked.update(
        entity=entity or asked.entity or os.environ.get("WANDB_ENTITY") or "",
        project=project,
        mode=mode,
        sweep_id=asked.sweep_id or os.environ.get("WANDB_SWEEP_ID"),
    )
    recorder = (
        None
        if mode == "disabled"
        else opened(
            project=project,
            name=name or asked.run_name or os.environ.get("WANDB_NAME"),
            run_id=id or asked.run_id or os.environ.get("WANDB_RUN_ID"),
            resume=resume if resume is not None else asked.resume or os.environ.get("WANDB_RESUME"),
            config=_chosen(plain(config), config_exclude_keys, config_include_keys),
            group=group or asked.run_group or os.environ.get("WANDB_RUN_GROUP"),
            job_type=job_type or asked.run_job_type or os.environ.get("WANDB_JOB_TYPE"),
            notes=notes or asked.run_notes or os.environ.get("WANDB_NOTES") or "",
            tags=_tags(tags if tags is not None else asked.run_tags or os.environ.get("WANDB_TAGS")),
            folder=dir or asked.root_dir,
        )
    )
    # wandb's run around it, with what `init` asks to record besides.
    run = Run(recorder, asked)
    if recorder is None:
        run.config.update(_chosen(plain(config), config_exclude_keys, config_include_keys))
    else:
        for word, value in (("fork_from", fork_from), ("resume_from", resume_from)):
            if value:
                recorder.note(f"{word}={value}")
        if sync_tensorboard or tensorboard or asked.sync_tensorboard or _patched:
            keep_tensorboard(recorder)
        if monitor_gym:
            watch_videos(run)
    if searched is not None:
        run.config.update_locked(searched.settings)
    enter(run, is_current=reinit != "create_new")
    return run


def _previous(reinit: bool | str | None, id: str | None, config: Mapping[str, Any]) -> Run | None:
    """The open run, if `init` is to return it; if open runs are to be finished, finish them.

    A call that says otherwise than the open run begins another training, where `reinit` does not say what to do.
    """
    there = runs()
    if not there or reinit == "create_new":
        return None
    from rollbook.run.current import interactive

    if reinit in (True, "finish_previous") or (reinit in (None, "default") and interactive()):
        for run in there:
            run.finish()
        return None
    newest: Run = there[-1]
    if reinit in (None, "default") and (differs := _contradiction(newest, id, config)):
        termlog(f"run {newest.id} is finished, because init() was called with another {differs}: a run for each")
        newest.finish()
        return None
    return newest


def _contradiction(run: Run, id: str | None, config: Mapping[str, Any]) -> str:
    """The arguments of `init` that contradict the open run; "" for none. The name may differ, as in wandb."""
    if id is not None and run.rollbook is not None and id != run.id:
        return "id"
    for key, value in config.items():
        if key in run.config and run.config[key] != value:
            return f"config.{key}"
    return ""


def opened(
    *,
    project: str,
    name: str | None,
    run_id: str | None,
    resume: bool | str | None,
    config: dict[str, Any],
    group: str | None,
    job_type: str | None,
    notes: str,
    tags: list[str],
    folder: Any,
) -> Recorder:
    """A run of rollbook for the arguments of `init`; see there."""
    from rollbook.adapters._run import came_by, clean_name, split_name, takes_native_keys
    from rollbook.errors import NothingToResume
    from rollbook.run.arguments import program_name
    from rollbook.run.origin.config import plain as settings_of
    from rollbook.run.session import init as open_run
    from rollbook.schema.seeds import named_seed

    words = {True: "allow", "auto": "allow", "allow": "allow", "must": "must", "never": "never"}
    if resume not in (None, False, "", *words):
        raise UsageError(f"wandb.init(resume={resume!r}): there are allow, must, never, auto and True")
    how = words.get(resume or "", "allow" if run_id else "never")
    if resume in (True, "auto", "allow") and run_id is None and name is None:
        how = "never"
    root = os.environ.get("ROLLBOOK_DIR") or folder or os.environ.get("WANDB_DIR")
    runs = None if root is None else root if root == os.environ.get("ROLLBOOK_DIR") else os.path.join(root, "runs")
    seed = None
    if name and (how == "never" or run_id):  # an earlier run is found by its name
        name, seed = split_name(name)
        seed = seed if seed is None or named_seed(settings_of(config)[0]) is None else None
    try:
        run = open_run(
            clean_name(project, "uncategorized"),
            clean_name(name or program_name(), "run"),
            config=config or None,
            seed=seed,
            group=group,
            job_type=job_type,
            notes=notes,
            tags=tags,
            dir=runs,
            resume=how,
            run_id=clean_name(run_id, "run") if run_id else None,
        )
    except NothingToResume as err:
        raise UsageError(f"wandb.init(resume='must'): {err}") from None
    came_by(run, "wandb")
    takes_native_keys(run)
    return run


def _chosen(config: dict[str, Any], leave: Iterable[str] | None, take: Iterable[str] | None) -> dict[str, Any]:
    left, taken = set(leave or ()), None if take is None else set(take)
    return {name: value for name, value in config.items() if name not in left and (taken is None or name in taken)}


def _tags(tags: Any) -> list[str]:
    words = tags.split(",") if isinstance(tags, str) else tags or ()
    return [str(tag).strip() for tag in words if str(tag).strip()]


_patched: list[bool] = []
"""Not empty after `wandb.tensorboard.patch` was called before `init`."""


def patch_tensorboard(
    save: bool = True, tensorboard_x: bool | None = None, pytorch: bool | None = None, root_logdir: str = ""
) -> None:
    """`wandb.tensorboard.patch`: like init(sync_tensorboard=True), for the open run and later ones."""
    _patched.append(True)
    patched["tensorboard"][:] = [root_logdir]
    run = current()
    if run is not None and run.rollbook is not None:
        keep_tensorboard(run.rollbook)


def keep_tensorboard(recorder: Recorder) -> None:
    """Make every later SummaryWriter of torch and tensorboardX also write to the run."""
    from rollbook.adapters import tensorboard
    from rollbook.errors import MissingExtra

    try:
        tensorboard.install(run=recorder)
        patched["tensorboard"][:] = patched["tensorboard"] or [""]
    except MissingExtra as err:
        recorder.count("wandb_not_kept", 1, f"wandb.init(sync_tensorboard=True): {err}")


def watch_videos(run: Run | None = None) -> None:
    """Copy videos of gymnasium's RecordVideo into the current run when they are complete."""
    try:
        from gymnasium.wrappers import RecordVideo
    except ImportError:  # there is nothing to watch
        return
    kind: Any = RecordVideo
    name = next((name for name in _ENDS_OF_VIDEOS if hasattr(kind, name)), "")
    if not name:
        if run is not None and run.rollbook is not None:
            run.rollbook.count("wandb_not_kept", 1, "wandb.init(monitor_gym=True): this gymnasium is not known")
        return
    stop = getattr(kind, name)
    if getattr(stop, "of_rollbook", False):
        return

    def stop_recording(self: Any) -> Any:
        path = _video_of(self)
        result: object = stop(self)
        active = current()
        if path and active is not None and active.rollbook is not None and os.path.isfile(path):
            from rollbook.adapters.wandb._data import keep_file

            keep_file(active.rollbook, "videos", path, active.step)
        return result

    stop_recording.of_rollbook = True  # type: ignore[attr-defined]
    setattr(kind, name, stop_recording)


_ENDS_OF_VIDEOS = ("stop_recording", "close_video_recorder")
"""The method of RecordVideo that ends a video, since gymnasium 1.0 and before."""


def _video_of(recorder: Any) -> str:
    """The file of the video that a RecordVideo is writing; "" for none."""
    older = getattr(recorder, "video_recorder", None)
    if older is not None:
        return str(getattr(older, "path", None) or "")
    name = getattr(recorder, "_video_name", None)
    return os.path.join(str(recorder.video_folder), f"{name}.mp4") if name else ""


# -- on the current run


def log(data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, sync: object = None) -> None:
    """See `Run.log`. Arguments as in `wandb.log`."""
    current_or_waiting().log(data, step, commit)


def finish(exit_code: int | None = None, quiet: bool | None = None) -> None:
    """Finish the current run, if there is one. Arguments as in `wandb.finish`."""
    run = current()
    if run is not None:
        run.finish(exit_code)


def define_metric(name: str, step_metric: Any = None, **options: Any) -> Any:
    """See `Run.define_metric`. Arguments as in `wandb.define_metric`."""
    return current_or_waiting().define_metric(name, step_metric, **options)


def watch(
    models: Any, criterion: object = None, log: str | None = "gradients", log_freq: int = 1000, **more: Any
) -> None:
    """See `Run.watch`. Arguments as in `wandb.watch`."""
    current_or_waiting().watch(models, criterion, log, log_freq, **more)


def unwatch(models: Any = None) -> None:
    """See `Run.unwatch`. Arguments as in `wandb.unwatch`."""
    current_or_waiting().unwatch(models)


def save(glob_str: Any = None, base_path: Any = None, policy: str = "live") -> Any:
    """See `Run.save`. Arguments as in `wandb.save`."""
    return current_or_waiting().save(glob_str, base_path, policy)


def restore(name: str, run_path: str | None = None, replace: bool = False, root: str | None = None) -> Any:
    """See `Run.restore`. Arguments as in `wandb.restore`."""
    return current_or_waiting().restore(name, run_path)


def alert(title: str, text: str = "", level: Any = None, wait_duration: object = None) -> None:
    """See `Run.alert`. Arguments as in `wandb.Run.alert`."""
    current_or_waiting().alert(title, text, level)


def log_artifact(artifact_or_path: Any, **options: Any) -> Any:
    """See `Run.log_artifact`. Arguments as in `wandb.log_artifact`."""
    return current_or_waiting().log_artifact(artifact_or_path, **options)


def use_artifact(artifact_or_name: Any, type: str | None = None, **options: Any) -> Any:
    """See `Run.use_artifact`. Arguments as in `wandb.use_artifact`."""
    return current_or_waiting().use_artifact(artifact_or_name, type)


def log_model(path: Any, name: str | None = None, aliases: Iterable[str] | None = None) -> None:
    """See `Run.log_model`. Arguments as in `wandb.log_model`."""
    current_or_waiting().log_model(path, name, aliases)


def use_model(name: str) -> str:
    """See `Run.use_model`. Arguments as in `wandb.use_model`."""
    return str(current_or_waiting().use_model(name))


def link_model(path: Any, registered_model_name: str, name: str | None = None, **_options: object) -> None:
    """Same as `log_model`: there is no registry. Arguments as in `wandb.link_model`."""
    current_or_waiting().log_model(path, name or registered_model_name)


def log_code(*arguments: Any, **options: Any) -> Any:
    """See `Run.log_code`. Arguments as in `wandb.log_code`."""
    return current_or_waiting().log_code(*arguments, **options)


def mark_preempting() -> None:
    """See `Run.mark_preempting`."""
    current_or_waiting().mark_preempting()


join = finish


# -- what needs no run


def login(*_arguments: object, **_options: object) -> bool:
    """True: there is no service to log in to."""
    return True


def setup(settings: object = None) -> None:
    """Does nothing. Arguments as in `wandb.setup`."""


def require(*_arguments: object, **_options: object) -> None:
    """Does nothing: what wandb makes optional there is not needed here."""


def attached(attach_id: str | None = None, run_id: str | None = None, **_options: object) -> Run:
    """The open run of that id; another process joins a run by `rollbook.attach`.

    Raises:
      UsageError: this process has no such run.
    """
    wanted = attach_id or run_id
    found: Run | None = next((run for run in runs() if run.id == wanted), None)
    if found is None:
        raise UsageError(f"wandb._attach({wanted!r}): this process has no such run. Join it by rollbook.attach(folder)")
    return found


def ensure_configured() -> None:
    """Does nothing."""


def teardown(exit_code: int | None = None) -> None:
    """Finish all runs. Arguments as in `wandb.teardown`."""
    for run in runs():
        run.finish(exit_code)


termwarn = termerror = termlog


def termsetup(settings: Any = None, logger: object = None) -> None:
    """Does nothing: messages go to stderr anyway. Arguments as in `wandb.termsetup`."""


patched: dict[str, list[Any]] = {"tensorboard": [], "keras": [], "gym": []}
"""What wandb has changed in other packages; `tensorboard` is not empty while SummaryWriters write the run."""


# -- sweeps


def sweep(sweep: Any, entity: str | None = None, project: str | None = None, prior_runs: object = None) -> str:
    """Define a sweep; `agent` runs it. See `_sweep`. Arguments as in `wandb.sweep`."""
    from rollbook.adapters.wandb._sweep import new_sweep

    return new_sweep(sweep() if callable(sweep) else sweep, project)


def agent(
    sweep_id: str,
    function: Callable[[], object] | None = None,
    entity: str | None = None,
    project: str | None = None,
    count: int | None = None,
) -> None:
    """Run the trials of a sweep here, one after the other. See `_sweep`. Arguments as in `wandb.agent`."""
    from rollbook.adapters.wandb._sweep import run_agent

    run_agent(sweep_id, function, count)


def controller(*_arguments: object, **_options: object) -> Any:
    """Not supported.

    Raises:
      UsageError: always; the message names what to call instead.
    """
    raise UsageError("wandb.controller(): rollbook runs sweeps in this process. Call wandb.agent(sweep_id, function)")
