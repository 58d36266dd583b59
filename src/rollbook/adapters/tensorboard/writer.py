"""`SummaryWriter`: the verbs of torch's and tensorboardX's writer, each said to the run and to the event files."""

from __future__ import annotations

import os
import weakref
from functools import partial

from rollbook.adapters._run import Counter, find_run
from rollbook.adapters.tensorboard import native
from rollbook.values import Histogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self

    from rollbook.run.run import Run
    from rollbook.run.scope import Scope

__all__ = ["SummaryWriter"]

_open_writers: weakref.WeakSet[SummaryWriter] = weakref.WeakSet()


class SummaryWriter:
    """Takes the arguments of both libraries' writers (`log_dir` and `logdir` are one).

    Args:
      log_dir, comment, purge_step, max_queue, flush_secs, filename_suffix: as there. With `purge_step`, a resumed run
        is rewound to that step, too: its curves have no zigzag.
      run: the run; None takes the current one or opens one; False keeps no book.
      clock: which clock `global_step` is, beside `step`: "env_step" (what reinforcement-learning scripts count),
        "gradient_step", any declared one, or None for `step` alone.
      events: who writes event files: "auto" (torch or tensorboardX where the program uses it, else rollbook), one of
        "torch", "tensorboardX", "rollbook", or False for the book alone.
      scope: prefix of all keys in the book. Default: none; the folder's name for a second writer on the same run.
      project, run_options: of a run that is opened here; arguments of `rollbook.init`.
      more: what tensorboardX takes besides; `write_to_disk=False` means events=False.
    One process writes to one run: a writer that finds a run open joins it. A run that a writer opened is finished when
    its last writer is closed.
    Threads: any. After the constructor nothing raises unless the run is strict; causes are counted and said once.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
        write_to_disk: bool = True,
        *,
        logdir: str | os.PathLike[str] | None = None,
        run: Any = None,
        clock: str | None = "env_step",
        events: Any = "auto",
        scope: str | None = None,
        project: str | None = None,
        run_options: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        folder = log_dir if log_dir is not None else logdir
        self.log_dir = self.logdir = os.fspath(folder) if folder else native.default_folder(comment or "")
        self.purge_step = purge_step
        options = {"max_queue": max_queue, "flush_secs": flush_secs, "filename_suffix": filename_suffix, **more}
        if purge_step is not None:
            options["purge_step"] = purge_step
        self.native = native.open_events(events if write_to_disk else False, self.log_dir, options)
        self._clock = clock
        self.run: Run | None
        self.run, self._owned = self._find_run(run, project, run_options)
        self._count = Counter(self.run)
        self._book: Scope | None = None
        self._closed = False
        if self.run is not None:
            name = self._scope_name() if scope is None else scope
            self._book = self.run.scope(name) if name else self.run
            if clock is not None and clock not in self.run.run.writer.clocks:
                self._clock = None
                self._count("unknown_clock", message=f"clock={clock!r} was not declared; global_step is kept as `step`")
            if purge_step is not None and self.run.run.resumed:
                self._count.guard("rewind", f"rewinding to purge_step={purge_step}", self._rewind)
        _open_writers.add(self)

    # -- numbers

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
        **more: Any,
    ) -> None:
        """One number (or 0-d array or tensor) under `tag`."""
        book = self._book
        if book is not None and not self._closed:
            if walltime is None:
                book.log({tag: scalar_value}, **self._at(global_step))
            else:
                self._guard(lambda: self._log_at(walltime, {tag: scalar_value}, global_step))
        if self.native is not None:
            modern = {"new_style": new_style, "double_precision": double_precision}
            more.update({key: True for key, wanted in modern.items() if wanted})
            self._pass_on("add_scalar", tag, scalar_value, global_step, walltime, **more)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Several numbers, `<main_tag>/<name>` in the book; event files get a folder for each, as TensorBoard wants."""
        values = {f"{main_tag}/{name}": value for name, value in tag_scalar_dict.items()}
        if walltime is None:
            self._keep(lambda book: book.log(values, **self._at(global_step)))
        else:
            self._keep(lambda _: self._log_at(walltime, values, global_step))
        self._pass_on("add_scalars", main_tag, tag_scalar_dict, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
        **more: Any,
    ) -> None:
        """A distribution of the numbers in `values`; in the book raw, up to 4,096 of them."""
        self._keep(lambda book: book.log_histogram(tag, values, **self._at(global_step)))
        if max_bins is not None:
            more["max_bins"] = max_bins
        if bins != "tensorflow":
            more["bins"] = bins
        self._pass_on("add_histogram", tag, values, global_step, walltime=walltime, **more)

    def add_histogram_raw(
        self,
        tag: str,
        min: float,
        max: float,
        num: float,
        sum: float,
        sum_squares: float,
        bucket_limits: Any,
        bucket_counts: Any,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """A distribution that was binned already: `bucket_limits` are the upper edges."""
        limits, counts = [float(x) for x in bucket_limits], [float(x) for x in bucket_counts]

        def keep(book: Scope) -> None:
            first = min if limits and min < limits[0] else limits[0] - 1.0
            histogram = Histogram([first, *limits], counts, low=min, high=max, total=sum, total_squares=sum_squares)
            book.log_histogram(tag, histogram, **self._at(global_step))

        self._keep(keep)
        raw = (tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step, walltime)
        self._pass_on("add_histogram_raw", *raw)

    # -- texts, pictures, films

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """A text. A table of hyper-parameters, as CleanRL's programs write it, also becomes the run's configuration."""
        self._keep(lambda book: book.log_text(tag, str(text_string), **self._at(global_step)))
        if tag == "hyperparameters":
            from rollbook.adapters.tensorboard.hyper import read_table

            self._guard(lambda: self._configure(read_table(text_string)))
        self._pass_on("add_text", tag, text_string, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture: uint8, or floats in [0, 1], with its axes named by `dataformats` (CHW, HWC, HW)."""
        from rollbook.adapters._pixels import as_picture

        self._keep(lambda book: book.log_image(tag, as_picture(img_tensor, dataformats), **self._at(global_step)))
        self._pass_on("add_image", tag, img_tensor, global_step, walltime, dataformats=dataformats)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """A batch of pictures, kept as one with the others beside it."""
        from rollbook.adapters._pixels import as_picture

        self._keep(lambda book: book.log_image(tag, as_picture(img_tensor, dataformats), **self._at(global_step)))
        if self.native is not None and not hasattr(self.native, "add_images"):
            self._pass_on("add_image", tag, img_tensor, global_step, walltime, dataformats=dataformats)
        else:
            self._pass_on("add_images", tag, img_tensor, global_step, walltime, dataformats=dataformats)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: Any = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """A matplotlib figure, or a list of them; closed afterwards unless close=False."""
        figures = list(figure) if isinstance(figure, (list, tuple)) else [figure]
        for number, one in enumerate(figures):
            key = tag if len(figures) == 1 else f"{tag}/{number}"
            self._keep(partial(self._figure, key, one, global_step))
        if self.native is not None and hasattr(self.native, "add_figure"):
            self._pass_on("add_figure", tag, figure, global_step, close, walltime)
            return
        from rollbook.adapters.tensorboard.figures import close_figures, pixels_of

        if self.native is not None:
            for one in figures:
                pixels = self._guard(partial(pixels_of, one))
                if pixels is not None:
                    self._pass_on("add_image", tag, pixels, global_step, walltime, dataformats="HWC")
        if close:
            self._guard(lambda: close_figures(figures))

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: float = 4,
        walltime: float | None = None,
        **more: Any,
    ) -> None:
        """A film [n, time, channels, height, width], uint8 or floats in [0, 1]; several stand side by side."""
        from rollbook.adapters._pixels import as_frames

        self._keep(lambda book: book.log_video(tag, as_frames(vid_tensor), fps=fps, **self._at(global_step)))
        self._pass_on("add_video", tag, vid_tensor, global_step, fps, walltime, **more)

    # -- hyper-parameters, and the rest

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Hyper-parameters (into the run's configuration) and results (a row, and the run's summary)."""
        self._guard(lambda: self._configure(dict(hparam_dict)))
        if metric_dict:
            self._keep(lambda book: book.log(dict(metric_dict), **self._at(global_step)))
            self._guard(lambda: self._summarise(metric_dict))
        options = {"hparam_domain_discrete": hparam_domain_discrete, "run_name": run_name, "global_step": global_step}
        given = {key: value for key, value in options.items() if value is not None}
        if "run_name" in given and type(self.native).__module__.startswith("tensorboardX"):
            given["name"] = given.pop("run_name")
        self._pass_on("add_hparams", hparam_dict, metric_dict, **given)

    def __getattr__(self, name: str) -> Any:
        """Further verbs (add_graph, add_custom_scalars …) reach the event files; the book counts them."""
        if not name.startswith("add_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

        def verb(*args: Any, **kwargs: Any) -> None:
            self._count(f"ignored_{name}", message=f"SummaryWriter.{name}() is not kept in the book")
            if self.native is not None and hasattr(self.native, name):
                self._pass_on(name, *args, **kwargs)

        return verb

    @property
    def file_writer(self) -> Any:
        """What holds the event file, as in torch; None without event files."""
        return getattr(self.native, "file_writer", self.native)

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def flush(self) -> None:
        """Bring pending events to the files. The book needs no flushing."""
        self._pass_on("flush")

    def close(self) -> None:
        """Close the event files, and finish the run if this was the last writer of one that a writer opened."""
        self._pass_on("close")
        if self._closed:
            return
        self._closed = True
        _open_writers.discard(self)
        if self.run is None:
            return
        siblings = [other for other in _open_writers if other.run is self.run]
        if self._owned and siblings:
            siblings[0]._owned = True  # it finishes the run in our place
        elif self._owned:
            self.run.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- parts

    def _find_run(self, run: Any, project: str | None, options: Mapping[str, Any] | None) -> tuple[Run | None, bool]:
        from rollbook.run.arguments import program_name

        name = os.path.basename(os.path.normpath(self.log_dir))
        if project is not None:
            options = {"project": project, **(options or {})}
        if run is None:
            running = [
                other.run for other in _open_writers if other.run is not None and other.run.run.status == "running"
            ]
            if running and options:  # arguments are for a run that is not open yet; one process has one run
                run = running[0]
        return find_run(run, project=program_name(), name=name, options=options)

    def _scope_name(self) -> str:
        """Two writers on one run would mix their keys: the second one gets its folder's name as a prefix."""
        others = [other for other in _open_writers if other.run is self.run and other.log_dir != self.log_dir]
        if not others:
            return ""
        inside = os.path.relpath(self.log_dir, others[0].log_dir)
        name = os.path.basename(os.path.normpath(self.log_dir)) if inside.startswith("..") else inside
        return name.replace(os.sep, "/")

    def _figure(self, key: str, figure: Any, step: Any, book: Any) -> None:
        book.log_figure(key, figure, **self._at(step))

    def _at(self, step: Any) -> dict[str, Any]:
        if step is None:
            return {}
        return {"step": step} if self._clock is None else {"step": step, self._clock: step}

    def _log_at(self, walltime: float, values: Mapping[str, Any], step: Any) -> None:
        from rollbook.values import scalar_of

        book: Any = self._book
        moment = int(walltime * 1e9) - book.run.writer.time_offset
        numbers = {tag: number for tag, value in values.items() if (number := scalar_of(value)) is not None}
        prefix = f"{book.name}/" if book is not book.run else ""
        book.record(
            "metrics", {f"{prefix}{tag}": [n] for tag, n in numbers.items()}, time_column=[moment], **self._at(step)
        )

    def _keep(self, work: Callable[[Any], Any]) -> None:
        book = self._book
        if book is None:
            return
        if self._closed:
            self._count("closed", message="a closed SummaryWriter was written to; the book does not get these values")
            return
        self._guard(lambda: work(book))

    def _guard(self, work: Callable[[], Any]) -> Any:
        return self._count.guard("summary_writer", "SummaryWriter", work)

    def _pass_on(self, verb: str, *args: Any, **kwargs: Any) -> None:
        if self.native is not None:
            method = getattr(self.native, verb)
            self._count.guard("event_file", f"{verb}() of the event file", lambda: method(*args, **kwargs))

    def _configure(self, config: Mapping[str, Any]) -> None:
        if self.run is not None and config:
            settings = self.run.run.config
            settings.update({key: value for key, value in config.items() if key not in settings})

    def _summarise(self, metrics: Mapping[str, Any]) -> None:
        from rollbook.values import scalar_of

        if self.run is not None:
            self.run.run.summary.update({key: scalar_of(value) for key, value in metrics.items()})

    def _rewind(self) -> None:
        if self.run is not None and self.purge_step is not None:
            self.run.run.rewind(**{self._clock or "step": int(self.purge_step) - 1})  # the step itself goes, too
