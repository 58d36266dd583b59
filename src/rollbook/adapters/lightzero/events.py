"""EventWriter: replaces the TensorBoard writer of LightZero and DI-engine, and writes to a run.

Tags and steps go unchanged into the run's single event file. In the book, the clock shows the kind of step:
`<instance>_step/` tags and DI-engine's `-env_step` ones count environment steps, the others iterations.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

from rollbook.adapters._pixels import as_uint8
from rollbook.adapters._run import reached, reported
from rollbook.adapters.lightzero.counters import as_given
from rollbook.errors import RollbookError
from rollbook.schema.finished import keeper_file
from rollbook.schema.run_files import RunFile
from rollbook.system.bill import Bill, counted
from rollbook.values import Histogram, flatten, scalar_of
from rollbook.values.arrays import host_array
from rollbook.values.describe import histogram_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.run.run import Run
    from rollbook.run.scope import Scope
    from rollbook.values import Histogram
    from rollbook.values.array_types import NDArray


def sinks_of(run: Scope) -> set[str]:
    """The names of the sinks that the run's keeper writes to."""
    sinks = keeper_file(run.folder, RunFile.PLAN).get("sinks")
    return {str(sink.get("name")) for sink in sinks or () if isinstance(sink, dict)}


def clock_of(tag: str) -> str:
    """The clock that a tag's steps count."""
    scope = tag.partition("/")[0]
    if scope.endswith("_step") or tag.endswith("-env_step") or (scope == "basic" and not tag.endswith("-train_iter")):
        return "env_step"
    return "gradient_step"


def _bill_of_run(self: Any, name: str, err: Exception) -> None:
    Bill(to=self._run).failed(f"lightzero_{name}", f"EventWriter.{name}()", err)


_harmless = reported(_bill_of_run)


class EventWriter:
    """Writes TensorBoard events of a run; also has the methods of `SummaryWriter` that frameworks call.

    Arguments as in `torch.utils.tensorboard.SummaryWriter` for the methods that it shares with that class.

    Threads: any number. Nothing raises: failures are counted on the run.

    Args:
      run: the Run.
      to_book: whether `add_scalar` and the like also write to the book. The logs of this adapter write there
        themselves, so they use `write`.

    Attributes:
      counters: as an Experiment's; converts the steps passed to the `SummaryWriter` methods.
    """

    def __init__(self, run: Run, *, to_book: bool = True) -> None:
        self._run, self._to_book = run, to_book
        self._lock = threading.Lock()
        self._last_step = 0
        self._more: Any = None
        self.counters: Callable[[str, int], int] = as_given
        self._marks = False
        self._sink = None if "tensorboard" in sinks_of(run) else self._open_sink()
        self.logdir = self.log_dir = str(run.folder / "log" / "serial")

    def _open_sink(self) -> Any:
        try:
            from rollbook.sinks.tensorboard import TensorBoard

            sink = TensorBoard()
            sink.open_for_steps(self._run)
            self._marks = self._run.resumed
            return sink
        except (RollbookError, ImportError, OSError) as err:
            self._run.count("lightzero_events", message=f"no TensorBoard file is written: {err}")
            return None

    # -- one or many events

    @_harmless
    def write(self, events: Iterable[tuple[Mapping[str, Any], int]]) -> None:
        """Append events to the file, in order, with one write.

        Args:
          events: ({tag: value}, step); values that are None are left out.
        """
        now = time.time()
        steps: list[tuple[int, Mapping[str, Any]]] = []
        for values, step in events:
            given = {tag: value for tag, value in values.items() if value is not None}
            if given:
                steps.append((int(step), given))
                self._last_step = int(step)
        if self._sink is None or not steps:
            return
        with counted(self._run.count, "lightzero_events", "TensorBoard events could not be written"), self._lock:
            if self._marks:
                self._marks = False
                steps.insert(0, self._new_attempt())
            self._sink.write_steps(steps, now)

    def _new_attempt(self) -> tuple[int, Mapping[str, Any]]:
        """An event that marks the start of this attempt: TensorBoard hides all earlier events from its step on.

        The file has two axes, and a mark has one step for both. So its step is above the counts of both axes, and
        abandoned events stay visible on the axis of smaller numbers.
        """
        last = max(
            (step for name, step in reached(self._run).items() if name in ("env_step", "gradient_step")), default=-1
        )
        return last + 1, {"rollbook/attempt": self._run.attempt}

    # -- called by frameworks

    @_harmless
    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        display_name: str = "",
        summary_description: str = "",
        **_: object,
    ) -> None:
        """Log one number of one tag."""
        del walltime, display_name, summary_description
        number = scalar_of(scalar_value)
        if number is None:
            self._run.count(
                "lightzero_scalar", message=f"add_scalar({tag!r}, {scalar_value!r:.80}): this must be a number"
            )
            return
        at = self._at(tag, global_step)
        self.write([({tag: number}, step) for step in at.values()])
        if self._to_book:
            self._run.log({tag.rstrip("/"): number}, **at)

    @_harmless
    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, object],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Log several numbers, as `<main_tag>/<name>`."""
        for name, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{name}", value, global_step, walltime)

    @_harmless
    def add_histogram(
        self,
        tag: str,
        values: object,
        global_step: int | None = None,
        bins: object = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
        **_: object,
    ) -> None:
        """Log a distribution."""
        del bins, walltime, max_bins
        self.histogram(tag, values, **self._at(tag, global_step))

    @_harmless
    def histogram(self, tag: str, values: Any, **clocks: int) -> None:
        """Log a distribution at values of the run's clocks; the event file uses the first one.

        Args:
          tag: the tag.
          values: numbers, of any shape.
          clocks: clock -> reading, at least one.
        """
        step = next(iter(clocks.values()))
        with counted(self._run.count, "lightzero_histogram", f"add_histogram({tag!r})"):
            self.write([({tag: _binned(values)}, step)])
        if self._to_book:
            self._run.log_histogram(tag, values, **clocks)

    @_harmless
    def add_text(
        self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None
    ) -> None:
        """Log a text."""
        del walltime
        at = self._at(tag, global_step)
        self.write([({tag: str(text_string)}, step) for step in at.values()])
        if self._to_book:
            self._run.log_text(tag, str(text_string), **at)

    @_harmless
    def add_video(
        self,
        tag: str,
        vid_tensor: object,
        global_step: int | None = None,
        fps: float = 4,
        walltime: float | None = None,
        dataformats: str = "NTCHW",
    ) -> None:
        """Log videos [n, time, channels, height, width] as files of the run, under `<tag>` or `<tag>/<i>`."""
        del walltime
        at = self._at(tag, global_step)
        with counted(self._run.count, "lightzero_video", f"add_video({tag!r})"):
            videos = _videos(vid_tensor, dataformats)
            for number, frames in enumerate(videos):
                key = tag.rstrip("/") if len(videos) == 1 else f"{tag.rstrip('/')}/{number}"
                self._run.log_video(key, as_uint8(host_array(frames)), fps=float(fps), **at)

    @_harmless
    def add_figure(
        self,
        tag: str,
        figure: object,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Log a matplotlib figure (or each of a list) as an image of the run."""
        del walltime
        figures = list(figure) if isinstance(figure, (list, tuple)) else [figure]
        for number, drawn in enumerate(figures):
            key = tag if len(figures) == 1 else f"{tag}/{number}"
            self._run.log_figure(key, drawn, **self._at(tag, global_step))
            if close and (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
                pyplot.close(drawn)

    @_harmless
    def add_image(
        self,
        tag: str,
        img_tensor: object,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Log an image as a file of the run."""
        del walltime

        image = host_array(img_tensor)
        axes = [dataformats.upper().index(axis) for axis in "HWC" if axis in dataformats.upper()]
        if image.ndim == len(axes):
            image = image.transpose(axes)
        self._run.log_image(tag, as_uint8(image), **self._at(tag, global_step))

    @_harmless
    def add_hparams(
        self, hparam_dict: Any, metric_dict: Any = None, name: str | None = None, global_step: int | None = None
    ) -> None:
        """Add hyper-parameters to the run's config, and their results to its summary."""
        del name, global_step
        with counted(self._run.count, "lightzero_hparams", "add_hparams()"):
            self._run.config.update(dict(flatten(hparam_dict or {})))
        if metric_dict is not None:
            for key, value in dict(metric_dict).items():
                number = scalar_of(value)
                self._run.summary[key] = value if number is None else number

    @_harmless
    def flush(self) -> None:
        """Does nothing: everything written is already with the operating system."""
        if self._more is not None:
            self._more.flush()

    @_harmless
    def close(self) -> None:
        """Does nothing: no file is open. A closed writer may be used again."""
        if self._more is not None:
            self._more.close()
            self._more = None

    def get_logdir(self) -> str:
        """The folder of the event file."""
        return self.logdir

    def _at(self, tag: str, given: int | None) -> dict[str, int]:
        """The clock that the tag's steps count, and its reading."""
        clock = clock_of(tag)
        return {clock: self._last_step if given is None else self.counters(clock, int(given))}

    def _others(self) -> Any:
        """A writer for methods without a form in the single event file; its events go to a subfolder."""
        if self._more is None:
            from rollbook.adapters.tensorboard import SummaryWriter

            folder = str(self._run.folder / "log" / "serial" / "others")
            self._more = SummaryWriter(folder, run=self._run, clock="gradient_step", scope="")
        return self._more


def _delegated(name: str, theirs: Callable[..., object]) -> Callable[..., object]:
    @wraps(theirs)
    def call(self: EventWriter, *args: object, **kwargs: object) -> Any:
        return getattr(self._others(), name)(*args, **kwargs)

    return _harmless(call)


def _add_other_verbs() -> None:
    """Add all methods of tensorboardX's and torch's writers that programs may call, even if frameworks do not."""
    from rollbook.adapters.tensorboard.writer import SummaryWriter

    for kind in reversed(SummaryWriter.__mro__[:-1]):
        for name, theirs in vars(kind).items():
            if callable(theirs) and name[0] != "_" and name not in vars(EventWriter):
                setattr(EventWriter, name, _delegated(name, theirs))


def _binned(values: object) -> Histogram | None:
    """A histogram of any array, made as in `log_histogram`; None if no number is finite."""
    return values if isinstance(values, Histogram) else histogram_of(host_array(values))


def _videos(tensor: object, dataformats: str = "NTCHW") -> NDArray:
    """[n, t, c, h, w] (or [t, c, h, w], or the axes in `dataformats`) as n videos [t, h, w, c]."""

    videos = host_array(tensor)
    if videos.ndim == 4:
        videos = videos[None]
    if videos.ndim != 5:
        raise ValueError(f"videos have the shape [n, time, channels, height, width]; found {videos.shape}")
    return videos.transpose([dataformats.upper().index(axis) for axis in "NTHWC"])


_add_other_verbs()
