"""TensorBoard's event files: scalars, histograms and texts of every tag, with their steps and times."""

from __future__ import annotations

from pathlib import Path

from rollbook.ground.values import Histogram
from rollbook.protocols import ForeignRun, Row
from rollbook.sinks.event_files import read_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

__all__ = ["TensorBoard"]

_WHY = "reading event files"

_WORDS = {"image": "pictures", "images": "pictures", "audio": "sounds"}


class TensorBoard:
    """TensorBoard's event files, of whatever wrote them: a run for each folder that holds some.

    Every value comes with its own step and wall time, also those that TensorBoard would hide after a restart. Pictures,
    sounds, graphs and what other plugins keep are left out and counted.

    Args:
      clock: the clock that the steps of the files are readings of.
    """

    name = "tensorboard"
    files = ("*tfevents*",)
    gathers = True

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there are event files."""
        return next(iter(_files(path)), None) is not None

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each folder with event files; its name is the folder's, from `path` on."""
        folders: dict[Path, list[Path]] = {}
        for file in sorted(_files(path)):
            folders.setdefault(file.parent, []).append(file)
        base = path if path.is_dir() else path.parent
        for folder, files in sorted(folders.items()):
            below = "-".join(folder.relative_to(base).parts)
            run = ForeignRun(below or base.resolve().name or "run", clocks=(self._clock,), files=files)
            run.rows = lambda run=run: self._rows(run)  # type: ignore[misc]
            yield run

    def _rows(self, run: ForeignRun) -> Iterator[Row]:
        from rollbook.ground.optional import need

        parse = need("tensorboard.compat.proto.event_pb2", extra="tensorboard", why=_WHY).Event.FromString
        kinds: dict[str, str] = {}  # tag -> plugin: only the first value of a tag says it
        run.left_out.clear()
        for file in run.files:
            for data in read_records(file, run.leave_out):
                try:
                    event = parse(data)
                except Exception:  # the message's own errors; the checksum was right
                    run.leave_out("records that are no event")
                    continue
                values: dict[str, Any] = {}
                for value in event.summary.value if event.HasField("summary") else ():
                    self._take(value, values, kinds, run)
                if event.HasField("graph_def") or event.HasField("meta_graph_def"):
                    run.leave_out("graphs")
                if values and event.wall_time == event.wall_time:
                    yield Row(event.wall_time, {self._clock: event.step}, values)

    def _take(self, value: Any, values: dict[str, object], kinds: dict[str, str], run: ForeignRun) -> None:
        """Put one summary value under its tag, or count it as left out."""
        tag, form = value.tag, value.WhichOneof("value")
        plugin = value.metadata.plugin_data.plugin_name or kinds.get(tag, "")
        if value.metadata.plugin_data.plugin_name:
            kinds[tag] = plugin
        made: object = None
        if form == "simple_value":
            made = float(value.simple_value)
        elif form == "histo":
            made = _histogram_of(value.histo)
        elif form == "tensor" and plugin in ("scalars", "histograms", "text", ""):
            made = _of_tensor(value.tensor, plugin)
        if made is None:
            run.leave_out(_WORDS.get(form, "") or _WORDS.get(plugin, f"values of the plugin {plugin or form!r}"))
        else:
            values[tag] = made


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        if "tfevents" in path.name:
            yield path
    elif path.is_dir():
        yield from (file for file in path.rglob("*tfevents*") if file.is_file())


def _histogram_of(histo: Any) -> Histogram | None:
    """A histogram in TensorBoard's old form: upper edges and counts."""
    limits, counts = list(histo.bucket_limit), list(histo.bucket)
    if not limits or len(limits) != len(counts):
        return None
    first = histo.min if histo.min < limits[0] else limits[0]
    return Histogram(
        [first, *limits], counts, low=histo.min, high=histo.max, total=histo.sum, total_squares=histo.sum_squares
    )


def _of_tensor(tensor: Any, plugin: str) -> object:
    """A scalar, text or histogram in TensorBoard's newer form; None for others."""
    if tensor.string_val:
        texts = [text.decode("utf-8", "backslashreplace") for text in tensor.string_val]
        return "\n".join(texts) if plugin in ("text", "") else None
    from rollbook.ground.optional import need

    try:
        array = need("tensorboard.util.tensor_util", extra="tensorboard", why=_WHY).make_ndarray(tensor)
    except (TypeError, ValueError):
        return None
    if plugin == "histograms" and array.ndim == 2 and array.shape[1] == 3 and len(array):
        edges = [*array[:, 0].tolist(), float(array[-1, 1])]
        return Histogram(edges, array[:, 2].tolist())
    if array.size == 1 and array.dtype.kind in "fiub":
        return array.reshape(-1)[0].item()
    return None
