"""EventWriter: what LightZero and DI-engine take for a TensorBoard writer, over a run.

Tags and steps go into the run's one event file as they are, and into the book, where the kind of step is told apart by
its clock: `<instance>_step/` tags and DI-engine's `-env_step` ones count environment steps, the others iterations.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any

from rollbook.errors import RollbookError
from rollbook.protocols import Row, RunInfo
from rollbook.values import flatten, scalar_of

__all__ = ["EventWriter", "clock_of", "sinks_of"]


def sinks_of(run: Any) -> set[str]:
    """The names of the sinks that the run's keeper feeds."""
    try:
        plan = json.loads((run.folder / "data" / "keeper" / "plan.json").read_text(encoding="utf-8"))
        return {str(sink.get("name")) for sink in plan.get("sinks", ()) if isinstance(sink, dict)}
    except (OSError, ValueError):
        return set()


def clock_of(tag: str) -> str:
    """The clock that a tag's steps are readings of."""
    scope = tag.partition("/")[0]
    if scope.endswith("_step") or tag.endswith("-env_step") or (scope == "basic" and not tag.endswith("-train_iter")):
        return "env_step"
    return "gradient_step"


class EventWriter:
    """Writes TensorBoard events of a run; also offers the methods of `SummaryWriter` that frameworks call.

    Threads: any number. Nothing raises: what cannot be written is counted on the run.

    Args:
      run: the Run.
      to_book: whether `add_scalar` and the like also write to the book; what the logs of this adapter report is there
        already, so they use `write`.
    """

    def __init__(self, run: Any, *, to_book: bool = True) -> None:
        self._run, self._to_book = run, to_book
        self._lock = threading.Lock()
        self._last_step = 0
        self._marks = False
        self._sink = None if "tensorboard" in sinks_of(run) else self._open_sink()
        self.logdir = self.log_dir = str(run.folder / "log" / "serial")

    def _open_sink(self) -> Any:
        try:
            from rollbook.sinks.tensorboard import TensorBoard

            sink = TensorBoard(x="step")
            run = self._run
            sink.open(
                RunInfo(
                    folder=run.folder,
                    project=run.project,
                    name=run.name,
                    id=run.id,
                    attempt=run.attempt,
                    clocks=("step",),
                    x="step",
                    resumed=run.resumed,
                )
            )
            if run.resumed:
                sink.set_state({"attempt": run.attempt - 1})
                self._marks = True
            return sink
        except (RollbookError, ImportError, OSError) as err:
            self._run.count("lightzero_events", message=f"no TensorBoard file is written: {err}")
            return None

    # -- one or many events

    def write(self, events: Iterable[tuple[Mapping[str, Any], int]]) -> None:
        """Append events to the file: ({tag: value}, step), in order, with one write."""
        now = time.time()
        rows = []
        for values, step in events:
            kept = {tag: value for tag, value in values.items() if value is not None}
            if kept:
                rows.append(Row(now, {"step": int(step)}, kept, attempt=self._run.attempt))
                self._last_step = int(step)
        if self._sink is None or not rows:
            return
        try:
            with self._lock:
                if self._marks:
                    self._marks = False
                    rows.insert(0, self._new_life(now))
                self._sink.write(rows)
        except Exception as err:
            self._run.count("lightzero_events", message=f"TensorBoard events could not be written: {err}")

    def _new_life(self, now: float) -> Row:
        """An event that marks where this life of the run begins: TensorBoard hides all earlier events from its step on.

        The file has two axes, and a mark has one step for both. So it stands beyond whatever counts on either; what was
        abandoned stays visible on the axis of smaller numbers.
        """
        reached = [
            at.get(name)
            for _value, at, _time in self._run.book.latest().values()
            for name in ("env_step", "gradient_step")
        ]
        last = max((step for step in reached if step is not None), default=-1)
        mine = self._run.attempt
        return Row(now, {"step": last + 1}, {"rollbook/attempt": mine}, attempt=mine)

    # -- what frameworks call

    def add_scalar(
        self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None, **_: Any
    ) -> None:
        """One number of one tag."""
        del walltime
        number = scalar_of(scalar_value)
        if number is None:
            self._run.count("lightzero_scalar", message=f"add_scalar({tag!r}, {scalar_value!r:.80}): this is no number")
            return
        step = self._step(global_step)
        self.write([({tag: number}, step)])
        if self._to_book:
            self._run.log({tag.rstrip("/"): number}, **{clock_of(tag): step})

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None) -> None:
        """Several numbers, as `<main_tag>/<name>`."""
        for name, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{name}", value, global_step)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = None, **_: Any) -> None:
        """A distribution."""
        del bins
        step = self._step(global_step)
        try:
            self.write([({tag: _binned(values)}, step)])
        except Exception as err:
            self._run.count("lightzero_histogram", message=f"add_histogram({tag!r}): {err}")
        if self._to_book:
            self._run.log_histogram(tag, values, **{clock_of(tag): step})

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, **_: Any) -> None:
        """A text."""
        step = self._step(global_step)
        self.write([({tag: str(text_string)}, step)])
        if self._to_book:
            self._run.log_text(tag, str(text_string), **{clock_of(tag): step})

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4, **_: Any) -> None:
        """Films [n, time, channels, height, width] become files of the run, under `<tag>` or `<tag>/<i>`."""
        step = self._step(global_step)
        try:
            films = _films(vid_tensor)
        except Exception as err:
            self._run.count("lightzero_video", message=f"add_video({tag!r}): {err}")
            return
        for number, frames in enumerate(films):
            key = tag.rstrip("/") if len(films) == 1 else f"{tag.rstrip('/')}/{number}"
            self._run.log_video(key, frames, fps=float(fps), **{clock_of(tag): step})

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, **_: Any) -> None:
        """A matplotlib figure becomes a picture of the run."""
        self._run.log_figure(tag, figure, **{clock_of(tag): self._step(global_step)})

    def add_image(
        self, tag: str, img_tensor: Any, global_step: int | None = None, dataformats: str = "CHW", **_: Any
    ) -> None:
        """A picture becomes a file of the run."""
        import numpy as np

        image = np.asarray(img_tensor)
        if dataformats == "CHW":
            image = np.moveaxis(image, 0, -1)
        self._run.log_image(tag, image, **{clock_of(tag): self._step(global_step)})

    def add_hparams(self, *args: Any, **kwargs: Any) -> None:
        """Hyper-parameters belong to the run's configuration."""
        for values in (*args[:1], kwargs.get("hparam_dict")):
            if values:
                self._run.config.update(dict(flatten(values)))

    def flush(self) -> None:
        """Nothing waits: what was written is with the system."""

    def close(self) -> None:
        """Nothing is held open."""

    def _step(self, given: int | None) -> int:
        return self._last_step if given is None else int(given)


def _binned(values: Any) -> Any:
    """A histogram of any array, made as `log_histogram` makes it."""
    import numpy as np

    from rollbook.values import Histogram

    if isinstance(values, Histogram):
        return values
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    array = np.asarray(values, dtype=np.float64).ravel()
    array = array[np.isfinite(array)]
    if not array.size:
        return None
    counts, edges = np.histogram(array, bins=64)
    return Histogram(
        edges.tolist(),
        counts.tolist(),
        low=float(array.min()),
        high=float(array.max()),
        total=float(array.sum()),
        total_squares=float(np.square(array).sum()),
    )


def _films(tensor: Any) -> Any:
    """[n, t, c, h, w] (or [t, c, h, w]) as n films [t, h, w, c]."""
    import numpy as np

    films = np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)
    if films.ndim == 4:
        films = films[None]
    if films.ndim != 5:
        raise ValueError(f"films have the shape [n, time, channels, height, width]; found {films.shape}")
    return np.moveaxis(films, 2, -1)
