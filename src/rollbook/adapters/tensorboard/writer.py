"""`SummaryWriter`: the methods of torch's and tensorboardX's writer, writing to the run and to event files."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial

from rollbook.adapters._run import (
    Users,
    find_run,
    go_on_at,
    host_that_calls,
    keep_config,
    lies_beside,
    options_of,
    records,
    reported,
)
from rollbook.adapters.tensorboard import native
from rollbook.adapters.tensorboard.events import RARE
from rollbook.adapters.tensorboard.file_verbs import OF_EVALUATIONS, file_verb, is_one_experiment, read_table
from rollbook.adapters.tensorboard.layouts import DEFAULT_CATEGORY, DEFAULT_TITLE, boards_of
from rollbook.adapters.tensorboard.names import named_by
from rollbook.run.arguments import GoesOn
from rollbook.run.training import opener_of
from rollbook.schema.clocks import as_clock
from rollbook.system.bill import Bill
from rollbook.system.files import run_name_of
from rollbook.system.guard import tolerating
from rollbook.values import Histogram, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any, Self

    from rollbook.run.run import Run
    from rollbook.run.scope import Scope

_KIND = "rollbook.SummaryWriter"
_writers = Users()
_left: dict[str, tuple[Mapping[str, object], int]] = {}
"""Folder -> what continues the run that a writer of it opened and ended in this process: the arguments of `init`; and
the last step."""
_EPISODES = "eval/episodic_return"


def _failed(self: Any, verb: str, err: Exception) -> None:
    self._failed("summary_writer", verb, err)


_counted = reported(_failed)
"""Decorates verbs: failures, including those of their arguments, are counted and reported once."""


class SummaryWriter:
    """Has the methods and arguments of both libraries' writers (`log_dir` and `logdir` are the same).

    Args:
      log_dir, logdir, comment, purge_step, max_queue, flush_secs, filename_suffix: as in the libraries. With
        `purge_step`, a resumed run is also rewound to that step, so its curves do not go back and forth.
      write_to_disk: False means events=False, as in tensorboardX.
      run: the run. None uses the current one or opens one; False records nothing.
      clock: the clock that `global_step` sets in addition to `step`: "env_step" (what reinforcement-learning scripts
        count), "gradient_step", any declared one, or None for `step` only.
      events: what writes event files: "auto" (torch.utils.tensorboard or tensorboardX if the program has loaded it,
        else rollbook), one of "torch", "tensorboardX", "rollbook", or False for no event files.
      scope: prefix of all keys in the book. Default: none; the folder's name for a second writer on the same run.
      project, run_options: of a run that is opened here; arguments of `rollbook.init`.
      more: further options of tensorboardX.
    A writer joins the current run if the caller opened it, and the run of an open writer whose folder belongs to the
    same experiment: the same one, one inside of the other, or parts such as `train` and `test` side by side. Any other
    gets a run of its own. A run that a writer opened is finished when its last writer is closed or gone.
    A writer that a framework makes itself opens its run with the first number; while an adapter of that framework
    records the training, it writes event files only, so that each number is stored once.
    Threads: any. Only the constructor raises, unless the run is strict: later failures are counted and reported once
    per method and kind of error, as `event_file_<verb>_<error>` and, for the book, `summary_writer_<verb>_<error>`.
    """

    writes_a_run = True
    """Distinguishes this class and its subclasses from the libraries' where one has the name of another."""

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
        run: object = None,
        clock: str | None = "env_step",
        events: object = "auto",
        scope: str | None = None,
        project: str | None = None,
        run_options: Mapping[str, object] | None = None,
        **more: object,
    ) -> None:
        folder = log_dir if log_dir is not None else logdir
        self.log_dir = self.logdir = os.fspath(folder) if folder else native.default_folder(comment or "")
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self._hparams: list[str] = []  # the entries of the configuration that add_hparams made
        self._defaults: tuple[object, float | None] | None = None  # of use_metadata()
        self._accepted: dict[str, frozenset[str] | None] = {}
        self._points: dict[str, list[object]] = {}
        self._evaluated: int | None = None  # episodes of CleanRL's evaluation so far; -1: not an evaluation
        self._exported: dict[str, tuple[str, int]] = {}  # by add_scalars: folder -> key, rows already exported
        options = {"max_queue": max_queue, "flush_secs": flush_secs, "filename_suffix": filename_suffix, **more}
        if purge_step is not None:
            options["purge_step"] = purge_step
        self.native = native.open_events(events if write_to_disk else False, self.log_dir, options)
        self._clock = clock
        self.run: Run | None = None
        self._count = Bill()
        self._book: Scope | None = None
        self._closed = False
        self._host = "" if run is False else host_that_calls()
        self._held: list[Callable[[], object]] = []
        self._open_late: Callable[[], None] | None = None
        self._first_step: object = None
        open_now = partial(self._open, run, project, run_options, scope)
        own = run is None and project is None and not run_options
        self._before = _left.get(os.path.abspath(self.log_dir)) if own else None
        if self._host or self._before is not None:  # the first step says whether it is the same training
            self._open_late = open_now
        else:
            open_now()
        unknown = [key for key in more if key != "comet_config"]
        if unknown and not self._is_tensorboardx():
            self._count("unknown_argument", message=f"SummaryWriter() knows no argument {unknown[0]!r}; it is not used")

    def _open(
        self, run: object, project: str | None, run_options: Mapping[str, object] | None, scope: str | None
    ) -> None:
        """Find or open the run."""
        clock, purge_step = self._clock, self.purge_step
        self.run, opened = self._find_run(run, project, run_options)
        self._count = Bill(to=self.run)
        if self.run is not None:
            name = self._scope_name() if scope is None else scope
            self._book = self.run.scope(name) if name else self.run
            if clock is not None and clock not in self.run.run.internals.writer.clocks:
                self._clock = None
                self._count("unknown_clock", message=f"clock={clock!r} was not declared; global_step is kept as `step`")
            if purge_step is not None and self.run.run.resumed:
                self._count.guard("rewind", f"rewinding to purge_step={purge_step}", self._rewind)
            _writers.join(self.run, self, opened)
            if self.native is not None:
                lies_beside(self.run, self.log_dir)

    # -- numbers

    def add_scalar(
        self,
        tag: str,
        scalar_value: object,
        global_step: object = None,
        walltime: float | None = None,
        new_style: Any = False,
        double_precision: Any = False,
        display_name: str = "",
        summary_description: str = "",
    ) -> None:
        """Log one number (or array or tensor of one element) under `tag`.

        Args:
          tag: the native key.
          scalar_value: a number, or an array or tensor of one element.
          global_step: sets `step` and the constructor's `clock`; a fraction (seconds, as rl_games and rsl_rl pass them)
            is cut off, as in event files. None: both keep their readings.
          walltime: Unix seconds. None: now.
          new_style, double_precision: torch's fifth and sixth positional arguments.
          display_name, summary_description: tensorboardX's; texts in the fifth and sixth position are these.
        """
        if self._defaults is not None:
            global_step, walltime = self._step_and_time(global_step, walltime)
        try:
            book: Any = self._book if not self._host else self._book_of_host(global_step)
            if book is None or self._closed:
                book = self._opened_now(global_step)
            if book is not None:
                if tag == _EPISODES and self._counts_episodes(global_step):
                    book.log({tag: scalar_value}, step=global_step)
                elif walltime is None:
                    book.log({tag: scalar_value}, **self._at(global_step))
                else:
                    self._log_at(walltime, {tag: scalar_value}, global_step)
        except Exception as err:
            self._failed("summary_writer", "add_scalar", err)
        event_file = self.native
        if event_file is None:
            return
        if new_style or display_name or double_precision or summary_description:
            if isinstance(new_style, str):
                display_name, summary_description = new_style, double_precision or ""
                new_style = double_precision = False
            options = {
                "new_style": new_style,
                "double_precision": double_precision,
                "display_name": display_name,
                "summary_description": summary_description,
            }
            given = {key: value for key, value in options.items() if value}
            self._pass_on("add_scalar", tag, scalar_value, global_step, walltime, **given)
            return
        try:
            event_file.add_scalar(tag, scalar_value, global_step, walltime)
        except Exception as err:
            self._failed("event_file", "add_scalar", err)

    @_counted
    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, object],
        global_step: object = None,
        walltime: float | None = None,
    ) -> None:
        """Log several numbers, as `<main_tag>/<name>` in the book; event files have a folder for each.

        Args:
          main_tag: what the keys begin with.
          tag_scalar_dict: name -> number.
          global_step, walltime: as in `add_scalar`.
        """
        global_step, walltime = self._step_and_time(global_step, walltime)
        values = {f"{main_tag}/{name}": value for name, value in tag_scalar_dict.items()}
        if walltime is None:
            self._keep("add_scalars", lambda book: book.log(values, **self._at(global_step)), global_step)
        else:
            self._keep("add_scalars", lambda _: self._log_at(walltime, values, global_step), global_step)
        for name, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, main_tag, name)
            if self._book is not None:
                self._exported.setdefault(folder, (f"{main_tag}/{name}", 0))
            elif not self._is_tensorboardx():
                self._guard("add_scalars", partial(self._remember, folder, walltime, global_step, value))
        self._pass_on("add_scalars", main_tag, tag_scalar_dict, global_step, walltime)

    def export_scalars_to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the values of `add_scalars` since the last export to a file, as tensorboardX does.

        The file: {"<folder>/<main_tag>/<name>": [[unix seconds, step, value], …]}. Values are read from the book, so
        they take no memory, unlike in tensorboardX. Without a book they are kept in memory.

        Args:
          path: the file. An existing one is replaced.
        """
        if self._is_tensorboardx():
            self._pass_on("export_scalars_to_json", path)
        else:
            self._guard("export_scalars_to_json", lambda: self._export(path))

    def add_histogram(
        self,
        tag: str,
        values: object,
        global_step: object = None,
        bins: object = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Log the distribution of `values`: up to 4,096 raw values in the book, bins in the event files.

        Args:
          tag: the native key.
          values: numbers, of any shape.
          global_step: as in `add_scalar`.
          walltime: Unix seconds, for the event files. The book has the time of the call.
          bins, max_bins: of the event files only; as in the libraries.
        """
        global_step, walltime = self._step_and_time(global_step, walltime)
        self._keep("add_histogram", lambda book: book.log_histogram(tag, values, **self._at(global_step)), global_step)
        more: dict[str, object] = {} if max_bins is None else {"max_bins": max_bins}
        if not (isinstance(bins, str) and bins == "tensorflow"):
            more["bins"] = bins
        self._pass_on("add_histogram", tag, values, global_step, walltime=walltime, **more)

    @_counted
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
        global_step: object = None,
        walltime: float | None = None,
    ) -> None:
        """Log a distribution that is already binned.

        Args:
          tag: the native key.
          min, max: the smallest and the largest value.
          num: how many values there are.
          sum, sum_squares: of the values, and of their squares.
          bucket_limits: the upper edges of the bins, ascending.
          bucket_counts: values in each bin, as many as `bucket_limits`.
          global_step, walltime: as in `add_histogram`.
        """
        global_step, walltime = self._step_and_time(global_step, walltime)

        def keep(book: Scope) -> None:
            limits, counts = [float(x) for x in bucket_limits], [float(x) for x in bucket_counts]
            first = min if limits and min < limits[0] else limits[0] - 1.0
            histogram = Histogram([first, *limits], counts, low=min, high=max, total=sum, total_squares=sum_squares)
            book.log_histogram(tag, histogram, **self._at(global_step))

        self._keep("add_histogram_raw", keep, global_step)
        raw = (tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step, walltime)
        self._pass_on("add_histogram_raw", *raw)

    # -- text, images, videos

    @_counted
    def add_text(self, tag: str, text_string: str, global_step: object = None, walltime: float | None = None) -> None:
        """Log a text. A table of hyper-parameters, as CleanRL's programs write it, also goes to the run's config.

        Args:
          tag: the native key. "hyperparameters" is CleanRL's table.
          text_string: the text; Markdown for TensorBoard.
          global_step, walltime: as in `add_histogram`.
        """
        global_step, walltime = self._step_and_time(global_step, walltime)
        self._keep("add_text", lambda book: book.log_text(tag, str(text_string), **self._at(global_step)), global_step)
        if tag == "hyperparameters":
            self._guard("add_text", lambda: self._configure(read_table(text_string)))
        self._pass_on("add_text", tag, text_string, global_step, walltime)

    @_counted
    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: object = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Log an image.

        Args:
          tag: the native key.
          img_tensor: uint8, or floats in [0, 1].
          global_step, walltime: as in `add_histogram`.
          dataformats: the order of its axes: CHW, HWC or HW.
        """
        self._image("add_image", tag, img_tensor, global_step, walltime, dataformats)

    @_counted
    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: object = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Log a batch of images as one grid.

        Args:
          tag: the native key.
          img_tensor: uint8, or floats in [0, 1]; an array, or a list of images.
          global_step, walltime: as in `add_histogram`.
          dataformats: the order of the axes. For a list, it may lack its N.
        """
        if isinstance(img_tensor, (list, tuple)) and "N" not in dataformats.upper():
            dataformats = f"N{dataformats}"
            if self.native is not None and not self._is_tensorboardx():
                img_tensor = self._guard("add_images", lambda: _stacked(img_tensor))
        if img_tensor is None:
            return
        self._image("add_images", tag, img_tensor, global_step, walltime, dataformats)

    @_counted
    def add_figure(
        self,
        tag: str,
        figure: object,
        global_step: object = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Log a matplotlib figure, or a list of them.

        Args:
          tag: the native key; of several figures, followed by "/" and a number from 0.
          figure: the figure or figures.
          global_step, walltime: as in `add_histogram`.
          close: close them afterwards.
        """
        global_step, walltime = self._step_and_time(global_step, walltime)
        figures = list(figure) if isinstance(figure, (list, tuple)) else [figure]
        for number, each in enumerate(figures):
            key = tag if len(figures) == 1 else f"{tag}/{number}"
            self._keep("add_figure", partial(self._figure, key, each, global_step), global_step)
        if self.native is not None:
            self._pass_on("add_figure", tag, figure, global_step, close, walltime)
        elif close:
            from rollbook.adapters.tensorboard.figures import close_figures

            self._guard("add_figure", lambda: close_figures(figures))

    @_counted
    def add_video(
        self,
        tag: str,
        vid_tensor: object,
        global_step: object = None,
        fps: float = 4,
        walltime: float | None = None,
        dataformats: str = "NTCHW",
    ) -> None:
        """Log a video; several are put side by side.

        Args:
          tag: the native key.
          vid_tensor: [n, time, channels, height, width]; uint8, or floats in [0, 1].
          global_step, walltime: as in `add_histogram`.
          fps: frames per second.
          dataformats: the order of the axes: the letters of NTCHW.
        """
        from rollbook.adapters._pixels import as_frames, as_uint8
        from rollbook.values.arrays import host_array

        global_step, walltime = self._step_and_time(global_step, walltime)

        def keep(book: Scope) -> None:
            book.log_video(tag, as_uint8(as_frames(vid_tensor, dataformats)), fps=fps, **self._at(global_step))

        self._keep("add_video", keep, global_step)
        video = vid_tensor
        if self.native is not None and dataformats.upper() != "NTCHW":  # the only order that torch's writer knows
            video = self._guard(
                "add_video",
                lambda: host_array(video).transpose([dataformats.upper().index(axis) for axis in "NTCHW"]),
            )
        if video is not None:
            self._pass_on("add_video", tag, video, global_step, fps, walltime)

    # -- hyper-parameters, and the rest

    @_counted
    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[object]]]) -> None:
        """Charts of several tags. Each category is a board of the page; the layout goes to the event file, too.

        Args:
          layout: category -> title of a chart -> ["Multiline", tags] or ["Margin", [value, lower, upper]].
        """
        self._lay_out("add_custom_scalars", layout)
        self._to_file("add_custom_scalars", layout)

    @_counted
    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = DEFAULT_CATEGORY, title: str = DEFAULT_TITLE
    ) -> None:
        """One chart of several tags, as `add_custom_scalars`.

        Args:
          tags: those that it shows.
          category, title: where it stands.
        """
        self._lay_out("add_custom_scalars_multilinechart", {category: {title: ["Multiline", tags]}})
        self._to_file("add_custom_scalars_multilinechart", tags, category, title)

    @_counted
    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = DEFAULT_CATEGORY, title: str = DEFAULT_TITLE
    ) -> None:
        """One chart of a value and its margin, as `add_custom_scalars`; the page draws three curves.

        Args:
          tags: value, lower, upper.
          category, title: where it stands.
        """
        self._lay_out("add_custom_scalars_marginchart", {category: {title: ["Margin", tags]}})
        self._to_file("add_custom_scalars_marginchart", tags, category, title)

    @_counted
    def add_hparams(
        self,
        hparam_dict: Mapping[str, object],
        metric_dict: Mapping[str, object],
        hparam_domain_discrete: object = None,
        run_name: object = None,
        global_step: object = None,
        *,
        name: str | None = None,
    ) -> None:
        """Log hyper-parameters (into the run's config) and results (a row, and the run's summary).

        Args:
          hparam_dict: parameter -> value.
          metric_dict: key -> number. Empty: no row.
          hparam_domain_discrete: parameter -> all of its values.
          run_name, name: name of the folder on the HPARAMS page, in torch's and tensorboardX's word. A text in the
            third position is also the name, and a number after it the step, as in tensorboardX.
          global_step: as in `add_scalar`.
        """
        if isinstance(hparam_domain_discrete, str):
            name, hparam_domain_discrete = hparam_domain_discrete, None
            if run_name is not None and not isinstance(run_name, str):
                global_step, run_name = run_name, None
        global_step, _ = self._step_and_time(global_step, None)
        self._guard("add_hparams", lambda: self._configure_again(hparam_dict, metric_dict))
        if metric_dict:
            self._keep("add_hparams", lambda book: book.log(dict(metric_dict), **self._at(global_step)), global_step)
            self._guard("add_hparams", lambda: self._summarise(metric_dict))
        options = {
            "hparam_domain_discrete": hparam_domain_discrete,
            "name" if self._is_tensorboardx() else "run_name": run_name if name is None else name,
            "global_step": global_step,
        }
        given = {key: value for key, value in options.items() if value is not None}
        self._pass_on("add_hparams", hparam_dict, metric_dict, **given)

    @contextmanager
    def use_metadata(self, *, global_step: object = None, walltime: float | None = None) -> Iterator[Self]:
        """In `with writer.use_metadata(global_step=10):`, calls without a step or time use these.

        Args:
          global_step: the step of these calls. None: none.
          walltime: their time, Unix seconds. None: now.
        """
        before = self._defaults
        self._defaults = (global_step, walltime)
        try:
            yield self
        finally:
            self._defaults = before

    def __getattr__(self, name: str) -> Any:
        """Unknown methods (add_…) of later library versions go to the event files only; the bill counts them."""
        if not name.startswith("add_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return partial(self._only_file, name)

    @property
    def file_writer(self) -> Any:
        """The object that holds the event file, as in torch; None without event files."""
        return getattr(self.native, "file_writer", self.native)

    @property
    def all_writers(self) -> Any:
        """The event files by folder, as in torch; None without event files."""
        return getattr(self.native, "all_writers", None)

    @property
    def default_bins(self) -> Any:
        """The edges of bins="tensorflow"."""
        from rollbook.sinks.event_files import default_edges

        return list(default_edges())

    def _get_file_writer(self) -> object:
        make = getattr(self.native, "_get_file_writer", None)
        return self.file_writer if make is None else make()

    def get_logdir(self) -> str:
        """The folder of the event files."""
        return self.log_dir

    def flush(self) -> None:
        """Write pending events to the files. The book needs no flushing."""
        self._pass_on("flush")

    def close(self) -> None:
        """Close the event files. Finish the run if a writer opened it and this was the last one."""
        self._pass_on("close")
        if self._closed:
            return
        if self._held and self._before is not None:  # texts alone: they belong to the run that is there
            self._book_of_host()
        self._closed = True
        if self.run is not None:
            self._note_left(self.run.run)
            _writers.leave(self.run, self)

    def _note_left(self, whole: Any) -> None:
        """The run, for a later writer of the same folder."""
        opener = opener_of(whole)
        if opener is not None and opener.kind == _KIND and opener.arguments is not None:
            reached = whole.clocks_now().get("step", -1)
            again = {"run_id": str(whole.id), "resume": GoesOn(whole.internals.writer.id)}
            _left[os.path.abspath(self.log_dir)] = {**opener.arguments, **again}, int(reached)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- parts

    def _find_run(
        self, run: object, project: str | None, options: Mapping[str, object] | None
    ) -> tuple[Run | None, bool]:
        from rollbook.run.arguments import program_name

        name, seed = run_name_of(self.log_dir), None
        if (options or {}).get("resume", "never") == "never":  # an earlier run is found by its name
            name, seed = named_by(self.log_dir, program_name())
        options = options_of(project, options)
        if run is None and self._before is not None and not options:
            arguments, last = self._before
            first = as_clock(_whole(self._first_step))
            if first is None or first > last:
                options = {**arguments}
        if run is None:  # also with options, which only apply to a new run
            near = (other.run for other in _writers.open() if is_one_experiment(self.log_dir, other.log_dir))
            run = next((found for found in near if found.run.status == "running"), None)
        return find_run(
            run,
            project=program_name(),
            name=name,
            seed=seed,
            options=options,
            user=self,
            kind=_KIND,
            host=self._host,
            shares=True,
        )

    def _opened_now(self, step: object) -> Scope | None:
        """The book of a writer that waited for its first step, or is written to after it was closed, as torch's may be:
        its run goes on, or, where steps begin again, a new one begins."""
        if self._closed and self.run is not None:
            self._closed = False
            if self.run.run.status == "running":  # it belongs to others
                _writers.join(self.run, self, False)
                return self._book
            self._before = _left.get(os.path.abspath(self.log_dir))
            self._open_late = partial(self._open, None, None, None, None)
        return self._book_of_host(step)

    def _book_of_host(self, step: object = None) -> Scope | None:
        """The scope for the numbers of a framework's own writer; None if an adapter of the framework stores them."""
        if self._open_late is not None:
            self._first_step = step
            open_now, self._open_late = self._open_late, None
            self._guard("__init__", open_now)
            held, self._held = self._held, []
            for work in held:
                work()
        return None if self.run is None or records(self.run, self._host) else self._book

    def _is_held(self, work: Callable[[], object]) -> bool:
        """Whether this waits for the first number of a framework's own writer."""
        if self._open_late is None:
            return False
        self._held.append(work)
        return True

    def _scope_name(self) -> str:
        """Two writers on one run would mix their keys, so the second gets its folder's name as a prefix; so does the
        first one if it is that of evaluations, which Keras makes before that of the training."""
        others = (
            [] if self.run is None else [writer for writer in _writers.of(self.run) if writer.log_dir != self.log_dir]
        )
        if not others:
            own = os.path.basename(os.path.normpath(self.log_dir))
            return own if own.casefold() in OF_EVALUATIONS else ""
        inside = os.path.relpath(self.log_dir, others[0].log_dir)
        name = os.path.basename(os.path.normpath(self.log_dir)) if inside.startswith("..") else inside
        return name.replace(os.sep, "/")

    def _step_and_time(self, global_step: object, walltime: float | None) -> tuple[object, float | None]:
        """Step and time of a call; missing ones come from `use_metadata`."""
        if self._defaults is None:
            return global_step, walltime
        step, moment = self._defaults
        return (step if global_step is None else global_step), (moment if walltime is None else walltime)

    def _image(
        self, verb: str, tag: str, picture: object, global_step: object, walltime: float | None, dataformats: str
    ) -> None:
        from rollbook.adapters._pixels import as_picture, as_uint8

        def keep(book: Scope) -> None:
            book.log_image(tag, as_uint8(as_picture(picture, dataformats)), **self._at(global_step))

        global_step, walltime = self._step_and_time(global_step, walltime)
        self._keep(verb, keep, global_step)
        if isinstance(picture, (list, tuple)) and self._is_tensorboardx():
            dataformats = dataformats.upper().replace("N", "")  # as it wants lists
        self._pass_on(verb, tag, picture, global_step, walltime, dataformats=dataformats)

    def _remember(self, folder: str, walltime: float | None, step: object, value: object) -> None:
        """Keep a number in memory for `export_scalars_to_json` if there is no book."""
        import time

        from rollbook.adapters.tensorboard.events import number_of

        moment = time.time() if walltime is None else walltime
        self._points.setdefault(folder, []).append([moment, step, number_of(value)])

    def _export(self, path: str | os.PathLike[str]) -> None:
        import json

        book: Any = self._book
        points: dict[str, object] = {**self._points}
        self._points.clear()
        prefix = f"{book.name}/" if book is not None and book is not book.run else ""
        for folder, (key, already) in self._exported.items():
            name = f"{prefix}{key}"
            rows = book.run.book.metrics([name], x="step").to_pylist()
            series = [[row["time"].timestamp(), row["step"], row[name]] for row in rows if row[name] is not None]
            if series[already:]:
                points[folder] = series[already:]
            self._exported[folder] = (key, len(series))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(points, file)

    def _figure(self, key: str, figure: object, step: object, book: Scope) -> None:
        book.log_figure(key, figure, **self._at(step))

    def _counts_episodes(self, step: object) -> bool:
        """Whether the step of an evaluation is the number of the episode (0, 1, 2 …), as in CleanRL after training.

        In that case env_step does not change. If an evaluation starts at step 0 before any training, its steps are
        environment steps.
        """
        if self._evaluated is None:
            book: Any = self._book
            reached = book.clocks_now().get(self._clock or "step", 0)
            self._evaluated = 0 if step == 0 and reached > 0 else -1
        if self._evaluated < 0 or step != self._evaluated:
            return False
        self._evaluated += 1
        return True

    def _at(self, step: object) -> dict[str, Any]:
        if step is None:
            return {}
        if not isinstance(step, int):
            step = _whole(step)
        return {"step": step} if self._clock is None else {"step": step, self._clock: step}

    def _log_at(self, walltime: float, values: Mapping[str, object], step: object) -> None:
        from rollbook.values import scalar_of

        book: Any = self._book
        moment = int(walltime * 1e9) - book.run.internals.writer.time_offset
        numbers = {tag: number for tag, value in values.items() if (number := scalar_of(value)) is not None}
        prefix = f"{book.name}/" if book is not book.run else ""
        book.record(
            "metrics", {f"{prefix}{tag}": [n] for tag, n in numbers.items()}, time_column=[moment], **self._at(step)
        )

    def _keep(self, verb: str, work: Callable[[Any], object], step: object) -> None:
        if (verb in ("add_text", "add_hparams") or verb.startswith("add_custom")) and self._is_held(
            lambda: self._keep(verb, work, step)
        ):
            return
        book: object = self._book if not self._host else self._book_of_host(step)
        if book is None or self._closed:
            book = self._opened_now(step)
        if book is None:
            return
        self._guard(verb, lambda: work(book))

    def _guard(self, verb: str, work: Callable[[], object]) -> object:
        try:
            return work()
        except Exception as err:
            self._failed("summary_writer", verb, err)
            return None

    def _failed(self, where: str, verb: str, err: Exception) -> None:
        what = f"SummaryWriter.{verb}()" if where == "summary_writer" else f"{verb}() of the event file"
        self._count.failed(f"{where}_{verb}_{type(err).__name__}", what, err)

    def _lay_out(self, verb: str, layout: Mapping[str, Mapping[str, Sequence[object]]]) -> None:
        """Keep charts of several keys for the page."""

        def keep(book: Any) -> None:
            prefix = f"{book.name}/" if book is not book.run else ""
            book.run.internals.keep_boards(boards_of(layout, prefix))

        self._keep(verb, keep, None)

    def _only_file(self, verb: str, *args: object, **kwargs: object) -> None:
        if self._book is not None:
            self._count(f"ignored_{verb}", message=f"SummaryWriter.{verb}() is not kept in the book")
        self._to_file(verb, *args, **kwargs)

    def _to_file(self, verb: str, *args: object, **kwargs: object) -> None:
        if self.native is None:
            return
        try:
            method = getattr(self.native, verb, None)
        except Exception as err:  # the package that has it is not installed
            self._failed("event_file", verb, err)
            return
        if method is not None:
            args, kwargs = self._with_defaults(method, args, kwargs)
            self._pass_on(verb, *args, **kwargs)
        else:
            who = type(self.native).__module__.partition(".")[0]
            others = "events='torch' or 'tensorboardX' may" if who == "rollbook" else "another choice of events= may"
            self._count(
                f"event_file_lacks_{verb}", message=f"the event writer of {who} has no {verb}(); {others} have it"
            )

    def _with_defaults(self, method: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """The arguments of a call, with the step and the time of `use_metadata` where it has none."""
        if self._defaults is None:
            return args, kwargs
        import inspect

        call = inspect.signature(method).bind_partial(*args, **kwargs)
        for name, value in zip(("global_step", "walltime"), self._defaults, strict=True):
            if name in call.signature.parameters and call.arguments.get(name) is None and value is not None:
                call.arguments[name] = value
        return call.args, call.kwargs

    def _pass_on(self, verb: str, *args: object, **kwargs: object) -> None:
        if self.native is None:
            return
        try:
            method = getattr(self.native, verb)
            if kwargs:
                kwargs = self._understood(verb, method, kwargs)
            method(*args, **kwargs)
        except Exception as err:
            self._failed("event_file", verb, err)

    def _understood(self, verb: str, method: Any, options: dict[str, object]) -> dict[str, object]:
        """The options that the underlying library accepts. Options of the other library are counted, not raised."""
        if verb not in self._accepted:
            import inspect

            parameters = inspect.signature(method).parameters.values()
            takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
            self._accepted[verb] = None if takes_all else frozenset(parameter.name for parameter in parameters)
        accepted = self._accepted[verb]
        if accepted is None or options.keys() <= accepted:
            return options
        for name in options.keys() - accepted:
            self._count(
                f"event_file_{verb}_without_{name}",
                message=f"{verb}() of the event file takes no {name}=; the rest of the call is written",
            )
        return {name: value for name, value in options.items() if name in accepted}

    def _is_tensorboardx(self) -> bool:
        return type(self.native).__module__.partition(".")[0] == "tensorboardX"

    def _configure(self, config: Mapping[str, object]) -> None:
        if self._is_held(lambda: self._configure(config)) or self.run is None or not config:
            return
        run = self.run.run
        keep_config(run, config)
        total = config.get("total_timesteps")
        run.internals.fill_in(total={self._clock or "step": total} if isinstance(total, (int, float)) else None)

    def _configure_again(self, given: object, metrics: Mapping[str, object]) -> None:
        """Keep a pair of settings and results as a row of `hparams`; the newest settings are those of the run."""
        from rollbook.run.origin.config import entries_of
        from rollbook.values import scalar_of

        if self.run is None:
            return
        config, kept = entries_of(given), self.run.run.config
        for name in self._hparams:
            kept.pop(name, None)
        self._hparams = [name for name in config if name not in kept]
        self._configure(config)
        columns: dict[str, object] = {key_of(name): scalar_of(value) for name, value in (metrics or {}).items()}
        columns |= {key_of(name): value for name, value in config.items() if isinstance(value, (str, bool, int, float))}
        if columns:
            self.run.record("hparams", columns)

    def _summarise(self, metrics: Mapping[str, object]) -> None:
        from rollbook.values import scalar_of

        if self.run is not None:
            self.run.run.summary.update({key: scalar_of(value) for key, value in metrics.items()})

    def _rewind(self) -> None:
        if self.run is not None and self.purge_step is not None:
            go_on_at(self.run, self._clock or "step", max(-1, int(self.purge_step) - 1))  # the step itself goes, too


LEFT_TO_LIBRARIES = (*RARE, "add_openvino_graph")
"""Methods that torch's or tensorboardX's own writer has to have; the last one only tensorboardX's has."""

for _name in LEFT_TO_LIBRARIES:
    if not hasattr(SummaryWriter, _name):
        setattr(SummaryWriter, _name, file_verb(_name))


def _whole(step: object) -> object:
    """A step with a fraction, without it; anything else as it is."""
    if as_clock(step) is None and not isinstance(step, (str, bytes)):
        with tolerating(Exception):
            return int(step)  # type: ignore[call-overload]
    return step


def _stacked(pictures: Sequence[object]) -> object:
    """Images of one size as one array."""
    import numpy as np

    from rollbook.values.arrays import host_array

    return np.stack([host_array(picture) for picture in pictures])
