"""Neptune: rows to Neptune's client, and the logger of the RL-logging article over its experiments and runs.

Neptune's hosted service has ended. The client still writes its offline folder, and self-hosted servers still accept it.
For a new project, see the sinks `wandb`, `mlflow` and `trackio`.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rollbook.sinks._steps import step_of
from rollbook.sinks._trackers import flat_config
from rollbook.system.optional import need
from rollbook.values import Image, scalar_of
from rollbook.values.scalars import as_float

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rollbook.protocols import Row, RunInfo

__all__ = ["Neptune", "NeptuneLogger"]


class NeptuneLogger:
    """Sends each value of a mapping to a Neptune experiment or run, under `<prefix>/<key>`.

        logger = NeptuneLogger(experiment, prefix="train", index_name="episodes")
        logger.write({"episode_return": 21.5, "episodes": 0})

    Args:
      experiment: an object with `log_metric` (experiments of the old client), or a run of today's, whose
        `run[name].append(value, step=...)` is used.
      prefix: put before each name; None for none.
      index_name: the key whose value is the index (0 is one) of the others, and is not sent itself; None, or a mapping
        without it: no index.
    """

    def __init__(self, experiment: object, prefix: str | None = None, index_name: str | None = None) -> None:
        self._experiment = experiment
        self._prefix = prefix
        self._index_name = index_name

    def write(self, values: Mapping[str, object]) -> None:
        """Send these values. None is left out; a value that is no number goes as text.

        Args:
          values: name -> value. Not changed.
        """
        index = None if self._index_name is None else values.get(self._index_name)
        number = None if index is None else scalar_of(index)
        for key, value in values.items():
            if value is not None and key != self._index_name:
                send(self._experiment, f"{self._prefix}/{key}" if self._prefix else key, value, number)

    def close(self) -> None:
        """Does nothing: the experiment stays open for its owner."""


class Neptune:
    """One Neptune run per rollbook run, found again by its custom id.

    Values are sent with their times. Neptune wants steps that increase within a key: a row with a lower step (an
    evaluation of an older checkpoint) is sent without a step. NaN and infinities are left out: Neptune does not store
    them.

    Args:
      experiment: an open experiment or run to use; by default one is made, and closed in the end.
      project: "workspace/name"; by default from Neptune's own settings.
      mode: "async", "sync", "offline" or "debug"; by default "async".
      prefix: put before each key.
      x: the clock to use as the step; by default the run's own choice.
    """

    is_service = True
    thinned = (1.0, "key")
    needs = ("neptune", "neptune")
    accepts: frozenset[type] = frozenset({float, int, bool, str, Image})

    def __init__(
        self,
        experiment: object = None,
        *,
        project: str | None = None,
        mode: str | None = None,
        prefix: str | None = None,
        x: str = "",
    ) -> None:
        self._given = experiment
        self._project = project
        self._mode = mode
        self._prefix = f"{prefix}/" if prefix else ""
        self._asked_x = self._x = x
        self._clocks: tuple[str, ...] = ()
        self._run: Any = None
        self._folder = Path()
        self._last: dict[str, int] = {}

    def open(self, run: RunInfo) -> None:
        """Begin the run, or resume the one with this id, and send the configuration."""
        self._folder, self._clocks = Path(run.folder), run.clocks
        self._x = self._asked_x or run.x
        self._run = self._given if self._given is not None else self._made(run)
        for key, value in {**flat_config(run.config), "seed": run.seed}.items():
            if value is not None:
                _set(self._run, f"{self._prefix}config/{key}", value)

    def write(self, rows: Sequence[Row]) -> None:
        """Pass these rows to the client."""
        for row in rows:
            step, _ = step_of(row, self._x, self._clocks)
            for key, value in row.values.items():
                name = f"{self._prefix}{key}"
                if isinstance(value, Image):
                    self._picture(name, value)
                    continue
                if isinstance(value, float) and not math.isfinite(value):
                    continue
                at = step if step > self._last.get(key, step - 1) else None
                if at is not None:
                    self._last[key] = at
                send(self._run, name, value, at, row.time)

    def close(self) -> None:
        """Wait until the client has sent everything; an experiment given by the caller stays open."""
        run, self._run = self._run, None
        if run is not None and self._given is None:
            run.stop()

    def _made(self, run: RunInfo) -> object:
        neptune = need("neptune", extra="neptune", why="the Neptune sink")
        asked = {
            "project": self._project,
            "mode": self._mode,
            "custom_run_id": run.id,
            "name": run.name or None,
            "tags": [*run.tags, *([run.group] if run.group else [])] or None,
            "capture_hardware_metrics": False,
            "capture_stdout": False,
            "capture_stderr": False,
            "capture_traceback": False,
            "git_ref": False,
            "source_files": [],
        }
        return neptune.init_run(**{name: value for name, value in asked.items() if value is not None})

    def _picture(self, name: str, image: Image) -> None:
        path = (self._folder / image.path).resolve()
        if not path.is_relative_to(self._folder.resolve()) or not path.is_file():
            return
        if _offers(self._run, "log_image"):
            self._run.log_image(name, str(path))
            return
        types = need("neptune.types", extra="neptune", why="the Neptune sink")
        try:
            self._run[name].append(types.File(str(path)))
        except Exception:  # the client reads the file; one it does not accept as a picture would be refused every time
            return


def send(experiment: Any, name: str, value: object, index: float | None, time: float | None = None) -> None:
    """One value to an experiment of the old client or a run of today's.

    Args:
      index: the step; 0 is one, None is none.
      time: unix seconds, for runs of today's client.
    """
    number = scalar_of(value)
    if number is not None:
        number = as_float(number)
    sent = str(value) if number is None else number
    if _offers(experiment, "log_metric"):
        log = experiment.log_text if number is None else experiment.log_metric
        if index is None:
            log(name, sent)
        else:
            log(name, index, sent)
        return
    more = {} if time is None else {"timestamp": time}
    experiment[name].append(sent, step=index, **more)


def _offers(experiment: object, method: str) -> bool:
    """Whether an experiment has a method of the old client. Today's runs raise their own error when asked."""
    try:
        return callable(getattr(experiment, method))
    except Exception:
        return False


def _set(experiment: Any, name: str, value: Any) -> None:
    if _offers(experiment, "set_property"):
        experiment.set_property(name, value)
    else:
        experiment[name] = value
