"""`wandb.Run`, its configuration, summary and settings, over a run of rollbook."""

from __future__ import annotations

import os
import time
from fnmatch import fnmatchcase
from functools import cache, partial

from rollbook.adapters._run import host_that_calls, records
from rollbook.adapters.wandb._artifacts import Artifact, find
from rollbook.adapters.wandb._current import forget, termlog
from rollbook.adapters.wandb._data import Table, Value, copied
from rollbook.adapters.wandb.util import settings_in
from rollbook.schema.counters import clock_columns, clocks_of
from rollbook.system.bill import counted
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any, Self

    from rollbook.run.run import Run as Recorder


_PLAIN: set[type] = {bool, float, int, str}
"""Types whose values go to `rollbook.Run.log` as they are; `_sort` adds those that it met (numpy's, torch's)."""

_SUMMARIES = {"min", "max", "mean", "best", "first", "last"}
"""What `define_metric(summary=…)` may name, besides "copy" and "none"."""

_KILLED = (130, 137, 143, 255)
"""Exit codes of Ctrl-C, SIGKILL and SIGTERM in a shell; 255 is what wandb itself passes after Ctrl-C."""


class Settings:
    """The settings of `wandb.init(settings=…)`. Any name is accepted; known ones are used.

    Arguments as in `wandb.Settings`.

    Known are run_id, run_name, run_group, run_job_type, run_notes, run_tags, project, entity, mode, root_dir and
    resume.
    """

    def __init__(self, **settings: object) -> None:
        self.__dict__.update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None

    def update(self, source: object = None, **settings: object) -> None:
        """Copy the settings of another object, or of a dict."""
        given: Any = {}
        if source is not None:
            given = source if isinstance(source, dict) else vars(source)
        self.__dict__.update(given, **settings)

    def __repr__(self) -> str:
        return f"Settings({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class Config:
    """`wandb.config`: settings by name, as attributes or as items. Arguments as in `wandb.Config`.

    Settings of a sweep's trial are locked: they stay as the sweep set them, and a change is reported, as in wandb.

    Args:
      values: the settings so far.
    """

    def __init__(self, values: dict[str, Any]) -> None:
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_locked", set())

    def _set(self, settings: Mapping[str, object]) -> None:
        for name, value in settings.items():
            if name not in self._locked:
                self._values[name] = value
            elif value != self._values.get(name):
                termlog(f"config: {name!r} is set by the sweep; it stays {self._values.get(name)!r}", repeat=False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_values" not in self.__dict__:  # asked by copy and pickle
            raise AttributeError(name)
        try:
            return self._values[name]
        except KeyError:
            raise AttributeError(f"wandb.config has no setting {name!r}") from None

    def __setattr__(self, name: str, value: object) -> None:
        self._set({name: value})

    def __delattr__(self, name: str) -> None:
        del self._values[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._set({name: value})

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Any:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(dict(self._values))

    def get(self, name: str, default: object = None) -> Any:
        """The setting of that name."""
        return self._values.get(name, default)

    def keys(self) -> Any:
        """The names."""
        return self._values.keys()

    def values(self) -> Any:
        """The settings."""
        return self._values.values()

    def items(self) -> Any:
        """(name, setting) pairs."""
        return self._values.items()

    def as_dict(self) -> dict[str, Any]:
        """A copy as a dict."""
        return dict(self._values)

    def update(self, d: Any = None, allow_val_change: bool | None = None, **more: object) -> None:
        """Add settings from a dict, an argparse namespace or a similar object."""
        self._set({**plain(d), **more})

    def setdefaults(self, d: Any) -> None:
        """Add settings that do not exist yet."""
        for name, value in plain(d).items():
            self._values.setdefault(name, value)

    def update_locked(self, d: Any, user: str | None = None, _allow_val_change: bool | None = None) -> None:
        """Add settings and lock them."""
        self._values.update(plain(d))
        self._locked.update(plain(d))


def plain(config: Any) -> dict[str, Any]:
    """A program's configuration as a dict: of a mapping, of an object with attributes, or of the name of a YAML file.

    Raises:
      ConfigError: there is no such file, or it has no settings.
      TypeError: another kind of object.
    """
    if config is None:
        return {}
    if isinstance(config, Config):
        return config.as_dict()
    if isinstance(config, str):
        return settings_in(config)
    if hasattr(config, "keys"):
        return {str(name): config[name] for name in config}
    from rollbook.adapters._plain import described

    attributes: Any = vars(config) if hasattr(config, "__dict__") else described(config)
    if not hasattr(attributes, "items"):
        raise TypeError(f"config must be a dict or have a __dict__ attribute, got {type(config).__name__}")
    return {str(name): value for name, value in dict(attributes).items() if not str(name).startswith("_")}


class Metric:
    """The arguments of `define_metric` for a key."""

    def __init__(self, name: str, step_metric: str | None, summary: Iterable[str]) -> None:
        self.name, self.step_metric, self.summary = name, step_metric, tuple(summary)


class Summary:
    """`wandb.summary`: entries that the program wrote; for every other key the last logged value, also of the earlier
    attempts of a run that goes on, with wandb's `_step`, `_timestamp` and `_runtime` of those.

    Arguments as in `wandb.Summary`.

    Args:
      kept: the entries that the program wrote so far.
      earlier: reads the last values of earlier attempts; asked when they are needed first.
    """

    def __init__(self, kept: dict[str, Any], earlier: Callable[[], dict[str, Any]] = dict) -> None:
        object.__setattr__(self, "_kept", kept)
        object.__setattr__(self, "_last", {})
        object.__setattr__(self, "_earlier", cache(earlier))

    def __getitem__(self, name: str) -> Any:
        for entries in (self._kept, self._last):
            if name in entries:
                return entries[name]
        return self._earlier()[name]

    def __setitem__(self, name: str, value: object) -> None:
        self._kept[name] = value

    def __delitem__(self, name: str) -> None:
        for entries in (self._kept, self._last, self._earlier()):
            entries.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_earlier" not in self.__dict__:  # asked by copy and pickle
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"wandb.summary has no {name!r}") from None

    def _as_dict(self) -> dict[str, Any]:
        return {**self._earlier(), **self._last, **self._kept}

    @property
    def _json_dict(self) -> dict[str, Any]:
        return self._as_dict()

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value

    def __contains__(self, name: object) -> bool:
        return name in self._kept or name in self._last or name in self._earlier()

    def __iter__(self) -> Any:
        return iter(self._as_dict())

    def __len__(self) -> int:
        return len(self._as_dict())

    def __repr__(self) -> str:
        return repr(self._as_dict())

    def get(self, name: str, default: object = None) -> Any:
        """The value of that name."""
        try:
            return self[name]
        except KeyError:
            return default

    def keys(self) -> Any:
        """The names."""
        return self._as_dict().keys()

    def items(self) -> Any:
        """(name, value) pairs."""
        return self._as_dict().items()

    def update(self, d: Mapping[str, object] | None = None, **more: object) -> None:
        """Add the entries of a dict."""
        given: Any = d or {}
        self._kept.update(given, **more)


class Run:
    """`wandb.Run` over a run of rollbook. Without one (mode "disabled") it accepts everything and records nothing.

    Arguments as in `wandb.Run`.

    Args:
      recorder: the run of rollbook.
      settings: arguments of `init`: entity, project, sweep_id, ….
    """

    def __init__(self, recorder: Recorder | None, settings: Settings) -> None:
        self._recorder, self.settings = recorder, settings
        self.config = Config(recorder.config if recorder is not None else {})
        self.summary = Summary(recorder.summary if recorder is not None else {}, partial(_earlier_values, recorder))
        self.start_time = time.time()
        self._metrics: dict[str, Metric] = {}
        self._means: dict[str, tuple[int, float]] = {}
        self._step = self.starting_step = _next_step(recorder)
        self._watched: list[Callable[[], None]] = []
        self._plain_rows: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}  # which columns of them are clocks
        self._finished = False
        settings.update(run_id=self.id, run_name=self.name)

    # -- what it is

    @property
    def _settings(self) -> Settings:
        return self.settings

    def __deepcopy__(self, _memo: object) -> Run:
        return self  # programs copy objects that hold their run

    @property
    def rollbook(self) -> Recorder | None:
        """The run of rollbook, with all its methods."""
        return self._recorder

    @property
    def id(self) -> str:
        """The run's id."""
        return self._recorder.id if self._recorder is not None else "disabled"

    @property
    def _attach_id(self) -> str:
        """What `wandb._attach` takes; Lightning stores it with its logger."""
        return self.id

    @property
    def name(self) -> str:
        """The run's name."""
        return str(self._about("name")) if self._recorder is not None else "disabled"

    @name.setter
    def name(self, name: str) -> None:
        self._edit(name=str(name))

    @property
    def notes(self) -> str:
        """The run's notes."""
        return str(self._about("notes") or "")

    @notes.setter
    def notes(self, notes: str) -> None:
        self._edit(notes=str(notes))

    @property
    def tags(self) -> tuple[str, ...]:
        """The run's tags."""
        return tuple(self._about("tags") or ())

    @tags.setter
    def tags(self, tags: Iterable[str]) -> None:
        self._edit(tags=list(tags))

    @property
    def project(self) -> str:
        """The run's project."""
        return self._recorder.project if self._recorder is not None else str(self.settings.project or "uncategorized")

    @property
    def entity(self) -> str:
        """The entity passed to `init`; rollbook has none."""
        return str(self.settings.entity or "")

    @property
    def group(self) -> str:
        """The run's group."""
        return str(self._about("group") or "")

    @property
    def job_type(self) -> str:
        """The run's job type."""
        return str(self._about("job_type") or "")

    @property
    def dir(self) -> str:
        """A folder for the program's own files, inside the run's folder."""
        if self._recorder is None:
            import tempfile

            return tempfile.gettempdir()
        folder = self._recorder.folder / "files"
        folder.mkdir(exist_ok=True)
        return str(folder)

    @property
    def path(self) -> str:
        """entity/project/id."""
        return "/".join(filter(None, (self.entity, self.project, self.id)))

    @property
    def url(self) -> str | None:
        """None: a run of rollbook is a folder. View it with `rollbook ui`."""
        return None

    project_url = sweep_url = url

    def get_url(self) -> str | None:
        """None, as `url`."""
        return None

    get_project_url = get_sweep_url = get_url

    @property
    def step(self) -> int:
        """The step that the next row without a step gets."""
        return self._step

    @property
    def resumed(self) -> bool:
        """Whether the run continues an existing one."""
        return self._recorder is not None and self._recorder.resumed

    @property
    def disabled(self) -> bool:
        """Whether nothing is recorded."""
        return self._recorder is None

    @property
    def offline(self) -> bool:
        """True: nothing is uploaded."""
        return True

    @property
    def sweep_id(self) -> str | None:
        """The sweep that started it."""
        sweep = self.settings.sweep_id
        return None if sweep is None else str(sweep)

    @property
    def config_static(self) -> Config:
        """A copy of the configuration."""
        return Config(self.config.as_dict())

    @property
    def status(self) -> str:
        """The status of rollbook's run."""
        return self._recorder.status if self._recorder is not None else "disabled"

    # -- logging

    def log(
        self, data: Mapping[str, Any], step: int | None = None, commit: bool | None = None, sync: object = None
    ) -> None:
        """Log a row.

        Each call is written at once: there is no wait for a commit, and a killed program loses no row. A row without
        `step` gets the run's counter, which then advances unless commit=False. `step` sets the counter. A step below
        the counter is kept (wandb drops it).

        Raises:
          TypeError: `data` is not a mapping.
        """
        if type(data) is not dict and not hasattr(data, "items"):
            raise TypeError(f"wandb.log takes a dict of values by name, got {type(data).__name__}")
        if step is None:
            at = self._step
            if commit or commit is None:
                self._step = at + 1
        else:
            at = self._step_of(step)
            self._step = max(self._step, at) + bool(commit)
        recorder = self._recorder
        if recorder is None or (recorder._parts.trainings and records(recorder, host_that_calls())):
            return  # nothing is recorded, or an adapter stores what this framework logs
        columns = self._plain_rows.get(tuple(data))
        if columns is not None and _PLAIN.issuperset(map(type, data.values())):
            self._write(recorder, data, columns, at)
        else:
            self._keep(recorder, data, at)

    def _step_of(self, step: Any) -> int:
        """A step as a whole number; anything else is counted, and the row gets the run's own counter."""
        with tolerating(Exception):
            return int(step)
        if self._recorder is not None:
            message = f"wandb.log(step=…): a {type(step).__name__} is no step, so the row stands at the run's counter"
            self._recorder.count("wandb_step", message=message)
        return self._step

    def _keep(self, recorder: Recorder, data: Mapping[str, Any], at: int) -> None:
        values: dict[str, Any] = {}
        special: list[tuple[str, Any]] = []
        for name, value in data.items():
            key = str(name)
            if type(value) in _PLAIN:
                values[key] = value
            else:
                with counted(recorder.count, "wandb_not_kept", f"wandb.log: {key!r} was not kept"):
                    _sort(key, value, values, special)
        if values:
            columns = clock_columns(values)
            if len(values) == len(data) and len(self._plain_rows) < 1000:
                self._plain_rows[tuple(values)] = columns
            self._write(recorder, values, columns, at)
        for key, value in special:
            with counted(recorder.count, "wandb_not_kept", f"wandb.log: {key!r} was not kept"):
                value.keep(recorder, key, at)

    def _write(
        self, recorder: Recorder, values: Mapping[str, Any], columns: tuple[tuple[str, str], ...], at: int
    ) -> None:
        if columns:
            clocks = clocks_of(values, columns)
            clocks["step"] = at
            recorder.log(values, **clocks)
        else:
            recorder.log(values, step=at)
        self.summary._last.update(values)
        if self._metrics:
            self._summarise(values)

    def _summarise(self, values: Mapping[str, Any]) -> None:
        """The summaries requested by `define_metric`: min, max, mean, best, last."""
        for key, value in values.items():
            metric = self._metrics.get(key) or self._fitting(key)
            if metric is None or not isinstance(value, (int, float)):
                continue
            for word in metric.summary:
                name = f"{key}.{word}"
                known = self.summary._kept.get(name)
                if word == "mean":
                    n, total = self._means.get(key, (0, 0.0))
                    self._means[key] = n + 1, total + value
                    self.summary._kept[name] = (total + value) / (n + 1)
                elif (
                    known is None
                    or word == "last"
                    or (word == "min" and value < known)
                    or (word in ("max", "best") and value > known)
                ):
                    self.summary._kept[name] = value

    def _fitting(self, key: str) -> Metric | None:
        return next((m for name, m in self._metrics.items() if "*" in name and fnmatchcase(key, name)), None)

    def define_metric(
        self,
        name: str,
        step_metric: Any = None,
        step_sync: bool | None = None,
        hidden: bool | None = None,
        summary: str | None = None,
        goal: str | None = None,
        overwrite: bool | None = None,
    ) -> Metric:
        """Set the x-axis of a key, and which of its summaries are kept; `name` may contain "*".

        In rollbook any key can be the x-axis of any other, so a step metric is only noted in the run's notes. A summary
        that wandb does not know is counted (`wandb_not_kept`) and reported once; wandb raises.
        """
        asked = {word.strip().lower() for word in str(summary or "").split(",")} - {"", "none", "copy"}
        unknown = asked - _SUMMARIES
        if unknown and self._recorder is not None:
            why = f"wandb.define_metric({name!r}): there is no summary {sorted(unknown)[0]!r}"
            self._recorder.count("wandb_not_kept", len(unknown), f"{why}, only {', '.join(sorted(_SUMMARIES))}")
        metric = Metric(name, getattr(step_metric, "name", step_metric), sorted(asked & _SUMMARIES))
        self._metrics[name] = metric
        if self._recorder is not None and metric.step_metric:
            self._recorder.log_text("wandb/define_metric", f"{name} over {metric.step_metric}", step=self._step)
        return metric

    def watch(
        self,
        models: Any,
        criterion: object = None,
        log: str | None = "gradients",
        log_freq: int = 1000,
        idx: int | None = None,
        log_graph: bool = False,
    ) -> None:
        """Log histograms of the gradients (with log="parameters" or "all", also of the parameters) of torch modules."""
        if self._recorder is None or log is None:
            return
        if log_graph:
            self._recorder.count("wandb_not_kept", 1, "wandb.watch(log_graph=True): the graph of the model is not kept")
        for n, model in enumerate(models if isinstance(models, (list, tuple)) else [models]):
            self._watched.append(
                _watch(self, self._recorder, model, log, max(1, log_freq), f"{idx or n}" if idx or n else "")
            )

    def unwatch(self, models: Any = None) -> None:
        """Stop `watch` for all models."""
        for end in self._watched:
            end()
        self._watched.clear()

    # -- files

    def save(self, glob_str: Any = None, base_path: Any = None, policy: str = "live") -> bool | list[str]:
        """Copy the files that match a pattern into the run's folder, in their present state."""
        if glob_str is None:
            return True
        import glob

        if self._recorder is None:
            return []
        kept = []
        base = os.fspath(base_path) if base_path is not None else None
        for path in sorted(glob.glob(os.fspath(glob_str))):
            name = os.path.relpath(path, base) if base is not None else os.path.basename(path)
            if os.path.isfile(path):
                target = copied(self._recorder, path, name, f"files/{name}", None)
                kept += [str(target)] if target is not None else []
        return kept

    def log_artifact(
        self,
        artifact_or_path: Any,
        name: str | None = None,
        type: str | None = None,
        aliases: Iterable[str] | None = None,
        tags: object = None,
    ) -> Artifact:
        """Copy an artifact's files into `<run>/files/artifacts/<name>/v<n>`."""
        artifact = artifact_or_path
        if not isinstance(artifact, Artifact):
            artifact = Artifact(name or os.path.basename(os.fspath(artifact_or_path)), type or "unspecified")
            if os.path.isdir(artifact_or_path):
                artifact.add_dir(artifact_or_path)
            else:
                artifact.add_file(artifact_or_path)
        if self._recorder is not None:
            with counted(self._recorder.count, "wandb_not_kept", f"the artifact {artifact.name!r} was not kept"):
                artifact.log_to(self._recorder, aliases or (), self._step)
            for name, value in artifact.objects.items():
                self._keep(self._recorder, {f"{artifact.collection}/{name}": value}, self._step)
        return artifact

    def log_model(self, path: Any, name: str | None = None, aliases: Iterable[str] | None = None) -> None:
        """Copy a model's files, as an artifact of type model."""
        self.log_artifact(path, name=name or f"run-{self.id}-model", type="model", aliases=aliases)

    def use_model(self, name: str) -> str:
        """The folder of a model that this run logged.

        Raises:
          FileNotFoundError: it logged no model of that name. There is no registry to download from.
        """
        found = find(name, [] if self._recorder is None else [self._recorder.folder])
        if found.folder is None:
            raise FileNotFoundError(f"wandb.use_model({name!r}): this run logged no such model. Pass its path instead")
        return str(found.folder)

    def link_model(self, path: Any, registered_model_name: str, name: str | None = None, **_options: object) -> None:
        """Same as `log_model`: there is no registry."""
        self.log_model(path, name or registered_model_name)

    def pin_config_keys(self, keys: Iterable[str]) -> None:
        """Does nothing: no view here has pinned settings."""

    def write_logs(self, text: str) -> None:
        """Log a line of text, as `wandb/logs`."""
        if self._recorder is not None:
            self._recorder.log_text("wandb/logs", text, step=self._step)

    @property
    def sync_dir(self) -> str:
        """The run's folder."""
        return self.dir if self._recorder is None else str(self._recorder.folder)

    def use_artifact(self, artifact_or_name: Any, type: str | None = None, **_options: object) -> Any:
        """Note that an artifact was used, and find it: in this run, or in the newest run of the project that has it."""
        if isinstance(artifact_or_name, Artifact):
            found = artifact_or_name
        else:
            found = find(str(artifact_or_name), _folders(self._recorder), type)
        if self._recorder is not None:
            self._recorder.log_text("wandb/use_artifact", found.name, step=self._step)
        return found

    def link_artifact(
        self, artifact: Artifact, target_path: str = "", aliases: Iterable[str] | None = None
    ) -> Artifact:
        """Same as `log_artifact`: there is no registry."""
        return self.log_artifact(artifact, aliases=aliases)

    upsert_artifact = finish_artifact = log_artifact

    def log_code(
        self, root: str | None = ".", name: str | None = None, include_fn: Any = None, exclude_fn: Any = None
    ) -> Artifact | None:
        """Copy the source files below a folder, as an artifact of type code; None if there are none.

        Without `include_fn` (of a path, or of a path and the root), files that end in ".py"; hidden folders, virtual
        environments and the folder of runs are left out.
        """
        if self._recorder is None:
            return None
        artifact = Artifact(name or f"source-{self.project}", "code")
        runs = os.path.realpath(self._recorder.folder.parent.parent)
        base = os.path.realpath(root or os.curdir)
        for path in _sources(base, runs):
            is_in = path.endswith(".py") if include_fn is None else _of_path(include_fn, path, base)
            if is_in and not (exclude_fn is not None and _of_path(exclude_fn, path, base)):
                artifact.add_file(path, os.path.relpath(path, base))
        return self.log_artifact(artifact) if artifact.files_added else None

    def restore(self, name: str, run_path: str | None = None, replace: bool = False, root: str | None = None) -> Any:
        """Open a file that this run saved, or the run `run_path` of this project; None if it does not exist."""
        from rollbook.schema import manifest

        wanted = self.id if run_path is None else run_path.rpartition("/")[2]
        for folder in _folders(self._recorder):
            if manifest.look(folder).id == wanted:
                path = folder / "files" / name
                return open(path) if path.is_file() else None
        return None

    # -- words

    def alert(self, title: str, text: str = "", level: Any = None, wait_duration: object = None) -> None:
        """Log an alert, as a health rule does."""
        if self._recorder is None:
            return
        word = str(getattr(level, "value", level) or "INFO").upper()
        row = {"rule": "wandb", "level": {"ERROR": "fail", "WARN": "warn"}.get(word, "note"), "source": "the program"}
        self._recorder.record(
            "alerts", {**row, "message": f"{title}: {text}" if text else title, "evidence": "{}", "key": ""}
        )

    def mark_preempting(self) -> None:
        """Note that the machine is about to be preempted."""
        if self._recorder is not None:
            self._recorder.note("preempting")

    def display(self, height: int = 420, hidden: bool = False) -> bool:
        """Show the run in a notebook."""
        return False

    def to_html(self, height: int = 420, hidden: bool = False) -> str:
        """A one-line description of the run."""
        return f"<p>rollbook: {self.project}/{self.name}, id {self.id}</p>"

    def _label(self, *_labels: object, **_more: object) -> None:
        """Called by transformers to name the logging program; does nothing."""

    # -- its end

    def finish(self, exit_code: int | None = None, quiet: bool | None = None) -> None:
        """Finish the run: finished, killed by the exit code of a signal, crashed by another one. Twice is fine."""
        if not self._finished:
            self._finished = True
            self.unwatch()
            if self._recorder is not None:
                killed = exit_code in _KILLED
                self._recorder.finish("killed" if killed else "crashed" if exit_code else "finished")
        forget(self)

    join = finish

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._recorder is not None and not self._finished:
            self._finished = True
            self._recorder.__exit__(kind, error, trace)  # type: ignore[arg-type]
        forget(self)

    def __repr__(self) -> str:
        return f"<wandb.Run {self.project}/{self.name} {self.id}, kept by rollbook>"

    def _about(self, name: str) -> Any:
        return getattr(self._recorder.internals.about, name) if self._recorder is not None else None

    def _edit(self, **fields: Any) -> None:
        if self._recorder is not None:
            from rollbook.schema import manifest

            manifest.edit(self._recorder.folder, fields)
            self._recorder.internals.about.set(**fields)


def _sources(base: str, runs: str) -> Iterable[str]:
    """Files below a folder, without hidden folders, virtual environments and the folder of runs."""
    for folder, folders, files in os.walk(base):
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name[0] != "." and os.path.join(folder, name) != runs]
        yield from (os.path.join(folder, name) for name in sorted(files))


def _of_path(function: Any, path: str, root: str) -> bool:
    """A function of a path, or of a path and the root: wandb takes both."""
    import inspect

    takes = len(inspect.signature(function).parameters)
    return bool(function(path, root) if takes > 1 else function(path))


def _sort(key: str, value: Any, values: dict[str, Any], special: list[tuple[str, Any]]) -> None:
    """Put numbers, texts and other scalars into `values`, and objects with their own `keep` into `special`."""
    if isinstance(value, Value):
        special.append((key, value))
    elif hasattr(value, "items") and not hasattr(value, "shape"):
        for inner, content in value.items():
            _sort(f"{key}.{inner}", content, values, special)
    elif isinstance(value, (list, tuple)) and value and all(isinstance(item, Value) for item in value):
        special += [(f"{key}/{n}", item) for n, item in enumerate(value)]
    elif hasattr(value, "savefig"):
        from rollbook.adapters.wandb._data import Image

        special.append((key, Image(value)))
    elif hasattr(value, "itertuples"):
        special.append((key, Table(dataframe=value)))
    elif hasattr(value, "to_plotly_json"):
        from rollbook.adapters.wandb._data import Plotly

        special.append((key, Plotly(value)))
    else:
        values[key] = value
        if not isinstance(value, (list, tuple)):
            _PLAIN.add(type(value))


def _folders(recorder: Recorder | None) -> Iterable[Path]:
    """The folder of a run, then those of the other runs next to it, newest first."""
    if recorder is None:
        return
    yield recorder.folder
    others = {path.parent: path.stat().st_mtime for path in recorder.folder.parent.glob("*/run.json")}
    others.pop(recorder.folder, None)
    yield from sorted(others, key=lambda folder: -others[folder])


def _earlier_values(recorder: Recorder | None) -> dict[str, Any]:
    """The last values of the earlier attempts of a run; none of one that just began."""
    if recorder is not None and recorder.resumed:
        with tolerating(Exception):
            from rollbook.adapters.wandb._api import last_values
            from rollbook.schema import manifest

            return last_values(recorder.internals.latest(), manifest.look(recorder.folder).created or 0.0)
    return {}


def _next_step(recorder: Recorder | None) -> int:
    """The first value of a run's counter: after the last step of its earlier attempts."""
    if recorder is None or not recorder.resumed:
        return 0
    with tolerating(Exception):
        last = recorder.clocks_now().get("step")
        if last is None:
            readings = [clocks.get("step") for _value, clocks, _time in recorder.internals.latest().values()]
            last = max((int(step) for step in readings if step is not None), default=-1)
        return int(last) + 1
    return 0


def _watch(run: Run, recorder: Recorder, model: Any, log: str, every: int, mark: str) -> Callable[[], None]:
    """Add hooks to a torch module; returns the function that removes them."""
    handles = []
    calls = {"n": 0}

    def of(name: str) -> Any:
        def hook(gradient: Any) -> None:
            if calls["n"] % every == 0:
                recorder.log_histogram(f"gradients/{mark}{name}", gradient, step=run.step)

        return hook

    def forward(_module: Any, _inputs: object, _output: object) -> None:
        if log in ("parameters", "all") and calls["n"] % every == 0:
            for name, parameter in model.named_parameters():
                recorder.log_histogram(f"parameters/{mark}{name}", parameter, step=run.step)
        calls["n"] += 1

    if log in ("gradients", "all"):
        handles += [p.register_hook(of(name)) for name, p in model.named_parameters() if p.requires_grad]
    handles.append(model.register_forward_hook(forward))

    def end() -> None:
        for handle in handles:
            handle.remove()

    return end
