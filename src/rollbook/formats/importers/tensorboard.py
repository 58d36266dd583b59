"""TensorBoard's event files: scalars, histograms, texts, images and videos of every tag, with steps and times."""

from __future__ import annotations

import re
import struct
import time
from pathlib import Path

from rollbook.formats.importers._events import (
    Tagged,
    histogram_of,
    hparams_of,
    images_of,
    last_moment,
    layout_of,
    records,
    tag_values,
    tensor_of,
)
from rollbook.formats.importers._media import media_row
from rollbook.formats.importers._metadata import describe, files_below, of_table
from rollbook.formats.importers._names import EVENT_FILE
from rollbook.formats.importers._wire import BadMessage, double, fields, signed
from rollbook.protocols import ForeignRun, Row, Scalars
from rollbook.system.files import run_name_of
from rollbook.values import Histogram

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_HEAD = 8 * 1024
"""The first bytes of a run's files describe it."""

_SUB_WRITER = re.compile(r"\d{9,11}\.\d+")
"""The folder that `SummaryWriter.add_hparams` makes; its name is a time."""

_MOST_SHAPES = 100_000
_MANY = 16_384
_LATEST = 7e9
"""The range of valid unix seconds: to 2191, as in `Run.write_rows`."""

_WORDS = {"audio": "sounds"}
_GRAPHS = (4, 9)


class TensorBoard:
    """TensorBoard's event files, of whatever wrote them: a run for each folder that holds some.

    Files that a training left in the folder of an earlier one are a run of their own: they begin after its end, at its
    first step or before. Those that go on behind it, or were written at the same time, are of one run.

    Every value has its own step and wall time, also those that TensorBoard would hide after a restart. The
    configuration is that of the hparams plugin, of a table "|param|value|" as CleanRL logs it, or of a file next to the
    event files. Images and videos become files of the run with the same bytes, layouts of charts boards of the page.
    Sounds, graphs and the data of other plugins are left out and counted.

    Args:
      clock: the clock that the steps of the files count.
    """

    name = "tensorboard"
    what = "TensorBoard event files"
    files = ("*tfevents*",)
    gathers = True

    def __init__(self, clock: str = "step") -> None:
        self._clock = clock

    def finds(self, path: Path) -> bool:
        """Whether there are event files."""
        return next(iter(_files(path)), None) is not None

    def runs(self, path: Path) -> Iterable[ForeignRun]:
        """A run for each training that left event files; its name is the path of the folder below `path`.

        If a folder has several trainings, the newest has that name, and other files there are about it;
        the earlier ones have the time of their begin behind it.
        """
        folders: dict[Path, list[Path]] = {}
        for file in sorted(_files(path)):
            folders.setdefault(file.parent, []).append(file)
        parts: dict[Path, dict[Path, str]] = {}  # of sub-writers: their files belong to the run above
        for folder in [folder for folder in folders if folder.parent in folders]:
            part = "" if _SUB_WRITER.fullmatch(folder.name) else _part_of(folder.name, folders[folder])
            if part is not None:
                parts.setdefault(folder.parent, {}).update(dict.fromkeys(folders[folder], part))
        for folder in folders:
            if folder.parent not in folders and (whole := _whole_of(folder, folders)) is not None:
                parts.setdefault(whole[0], {}).update(dict.fromkeys(folders[folder], whole[1]))
        parted = {file for files in parts.values() for file in files}
        base = path if path.is_dir() else path.parent
        for folder, files in sorted({**{parent: list[Path]() for parent in parts}, **folders}.items()):
            if files and files[0] in parted:
                continue
            parts_below = folder.relative_to(base).parts
            own = folder.name if folder.parent in folders else run_name_of(folder)
            below = "-".join(parts_below if own == folder.name else (*parts_below[:-2], own))
            called = below or base.resolve().name or "run"
            trainings = _trainings(files) or [files]
            for n, (mark, under) in enumerate(_with_parts(trainings, parts.get(folder, {})).items()):
                is_newest = n == len(trainings) - 1
                run = ForeignRun(called if is_newest else f"{called}-{mark}", clocks=(self._clock,), files=tuple(under))
                run.folder, run.part, run.key = folder, "" if is_newest else mark, mark if n else ""
                run.details = lambda run=run, folder=folder: _describe(run, folder)
                run.rows = lambda run=run, under=under: one_by_one(self._columns(run, under))  # type: ignore[misc]
                run.columns = lambda run=run, under=under: self._columns(run, under)
                yield run

    def _columns(self, run: ForeignRun, under: dict[Path, str]) -> Iterator[Row | Scalars]:
        kinds: dict[str, str] = {}  # tag -> plugin: only the first value of a tag has it
        run.left_out.clear()
        run.boards.clear()
        run.status = "finished"
        shapes: dict[bytes, int] = {}  # of events of one number: all bytes between step and number -> tag
        tags: list[str] = []
        for file in under:
            part = f"/{under[file]}" if under[file] else ""
            plain = _Plain(self._clock, tags, part)
            for data in records(file, run):
                behind = _behind_step(data)
                number = shapes.get(data[behind:-4]) if behind else None
                if number is not None:
                    if plain.add(number, data, behind):
                        yield from plain.given()
                    continue
                values: dict[str, Any] = {}
                images: list[tuple[str, int, int, bytes]] = []
                read: list[Tagged] = []
                try:
                    moment, step, summaries = _event(data, run)
                    for summary in summaries:
                        for one in tag_values(summary):
                            read.append(one)
                            self._take(one, values, images, kinds, run, part)
                except (BadMessage, struct.error):
                    run.lose("records that are no event")
                    continue
                is_one = behind and len(read) == 1 and read[0].form == "simple" and read[0].tag in values
                if is_one and data.endswith(read[0].content) and len(shapes) < _MOST_SHAPES:
                    shapes[data[behind:-4]] = len(tags)
                    tags.append(read[0].tag)
                if (values or images) and moment == moment:
                    yield from plain.given()
                    if values:
                        yield Row(moment, {self._clock: step}, {f"{tag}{part}": value for tag, value in values.items()})
                    for tag, width, height, content in images:
                        row = media_row(moment, {self._clock: step}, f"{tag}{part}", content, width, height)
                        if row is None:
                            run.lose("images that are no PNG, JPEG, GIF or WebP")
                        else:
                            yield row
            yield from plain.given()

    def _take(
        self,
        value: Tagged,
        values: dict[str, object],
        images: list[tuple[str, int, int, bytes]],
        kinds: dict[str, str],
        run: ForeignRun,
        part: str,
    ) -> None:
        """Put one summary value under its tag, its images to the others, or count it as left out."""
        plugin = value.plugin or kinds.get(value.tag, "")
        if value.plugin:
            kinds[value.tag] = plugin
        made: object = None
        if value.form == "image" or (value.form == "tensor" and plugin == "images"):
            images += [(value.tag, *image) for image in images_of(value)]
            return
        if value.form == "simple":
            made = double(value.content)
        elif value.form == "histo":
            made = histogram_of(value.content)
        elif value.form == "tensor" and plugin in ("scalars", "histograms", "text", ""):
            made = _of_tensor(value.content, plugin)
        if plugin == "hparams":
            if hparams_of(value.about)[2] == 2:
                run.status = "crashed"
        elif plugin == "custom_scalars":
            for name, charts in layout_of(value).items():
                known = run.boards.setdefault(name, [])
                own = ([f"{tag}{part}" for tag in chart] for chart in charts)
                known.extend(chart for chart in own if chart not in known)
        elif made is None:
            what = _WORDS.get(value.form, "") or _WORDS.get(plugin, f"values of the plugin {plugin or value.form!r}")
            run.leave_out(what)
        else:
            values[value.tag] = made


def _behind_step(data: bytes) -> int:
    """The offset of the summary in an event of a time, optionally a step, and then a summary; 0 for others."""
    if len(data) < 20 or data[0] != 0x09 or data[-5] != 0x15:  # field 1, eight bytes; field 2 of a value, four bytes
        return 0
    at = 9
    if data[at] == 0x10:
        at += 1
        while data[at] > 127 and at < 19:
            at += 1
        at += 1
    return at if data[at] == 0x2A else 0


class _Plain:
    """Events of one number, collected as the bytes of their times, steps and numbers.

    Args:
      tags: the tags of their numbers; it grows.
      part: the suffix of each tag.
    """

    def __init__(self, clock: str, tags: list[str], part: str) -> None:
        self._clock, self._tags, self._part = clock, tags, part
        self._keys: list[int] = []
        self._moments: list[bytes] = []
        self._steps: list[int] = []
        self._numbers: list[bytes] = []
        self._known: dict[bytes, int] = {}

    def add(self, tag: int, data: bytes, behind: int) -> bool:
        """Add one event. Returns whether there are many now."""
        encoded = data[10:behind]
        step = self._known.get(encoded)
        if step is None:
            if len(self._known) > _MOST_SHAPES:
                self._known.clear()
            step = self._known[encoded] = _step(encoded)
        self._keys.append(tag)
        self._moments.append(data[1:9])
        self._steps.append(step)
        self._numbers.append(data[-4:])
        return len(self._keys) >= _MANY

    def given(self) -> Iterator[Row | Scalars]:
        """The collected events, in order, as a block; those that no block can hold as rows."""
        if not self._keys:
            return
        import numpy as np  # only where there are rows: listing runs stays light

        times = np.frombuffer(b"".join(self._moments), dtype="<f8")
        steps = np.array(self._steps, dtype=np.int64)
        numbers = np.frombuffer(b"".join(self._numbers), dtype="<f4").astype(np.float64)
        keys = [f"{tag}{self._part}" for tag in self._tags]
        block = Scalars(self._clock, keys, np.array(self._keys), times, steps, numbers)
        self._keys, self._moments, self._steps, self._numbers = [], [], [], []
        odd = np.flatnonzero(~((times >= 0) & (times < _LATEST) & (steps >= 0)))
        start = 0
        for index in odd.tolist():
            if index > start:
                yield block.part(start, index)
            yield from (row for row in block.part(index, index + 1).rows() if row.time == row.time)
            start = index + 1
        if start < len(block):
            yield block.part(start, len(block))


def _step(encoded: bytes) -> int:
    step = 0
    for byte in reversed(encoded):
        step = step << 7 | byte & 127
    step &= 0xFFFFFFFFFFFFFFFF
    return step - (1 << 64) if step >= 1 << 63 else step


def one_by_one(rows: Iterable[Row | Scalars]) -> Iterator[Row]:
    """The rows, including those of blocks."""
    for row in rows:
        if isinstance(row, Scalars):
            yield from row.rows()
        else:
            yield row


def _event(data: bytes, run: ForeignRun) -> tuple[float, int, list[bytes]]:
    """(wall time, step, summaries) of an event."""
    moment, step, summaries = 0.0, 0, []
    for number, value in fields(data):
        if number == 1:
            moment = double(value) or 0.0
        elif number == 2:
            step = signed(value)
        elif number == 5 and isinstance(value, bytes):
            summaries.append(value)
        elif number in _GRAPHS:
            run.leave_out("graphs")
    return moment, step, summaries


class _Head:
    """The beginning of an event file.

    Args:
      all_steps: read all of it for `steps`; else only for the configuration, which costs less.
    Attributes:
      config: of the hparams plugin, or from a table in a text.
      group: of the hparams plugin.
      tags: those of the first values.
      steps: tag -> its first two steps, or the only one.
    """

    __slots__ = ("config", "group", "steps", "tags")

    def __init__(self, file: Path, *, all_steps: bool = False) -> None:
        self.config: dict[str, Any] = {}
        self.group = ""
        self.tags: set[str] = set()
        self.steps: dict[str, list[int]] = {}
        try:
            with open(file, "rb") as stream:
                head = stream.read(_HEAD + 1024)  # a record that begins within the head names itself
            has_config = b"hparams" in head or b"|param|" in head
            for data in records(file, ForeignRun(""), most=_HEAD):
                if self.tags and not has_config and not all_steps:
                    return
                if self.tags and not all_steps and b"hparams" not in data and b"|param|" not in data:
                    continue
                _moment, step, summaries = _event(data, ForeignRun(""))
                for summary in summaries:
                    for value in tag_values(summary):
                        self._take(value)
                        known = self.steps.setdefault(value.tag, [])
                        if len(known) < 2 and step not in known:
                            known.append(step)
        except (OSError, BadMessage, struct.error):
            pass

    def _take(self, value: Tagged) -> None:
        if value.plugin == "hparams":
            group, settings, _status = hparams_of(value.about)
            self.config.update(settings)
            self.group = self.group or group
            return
        self.tags.add(value.tag)
        if value.form == "tensor":
            text = _of_tensor(value.content, "text")
            self.config.update((of_table(text) if isinstance(text, str) else None) or {})


def _describe(run: ForeignRun, folder: Path) -> None:
    """Set what is known about a run from the beginnings of its files and from the files next to them."""
    config: dict[str, Any] = {}
    for head in map(_Head, [file for file in run.files if "tfevents" in file.name]):
        config.update(head.config)
        run.group = run.group or head.group or None
    describe(run, folder, config)


def _begun(file: Path) -> float | None:
    """Unix seconds at which an event file was begun, as its name says; None for other names."""
    match = EVENT_FILE.match(file.name)
    return float(match[1]) if match else None


def _trainings(files: list[Path]) -> list[list[Path]]:
    """The event files of one folder, in the order of their beginnings, those of each training together; [] for none.

    A file begins a training if it was begun after the end of the one before, and the tags that both have start where
    they did there or with their first interval: at step 4,096 of every 4,096.
    """
    trainings: list[list[Path]] = []
    first: dict[str, list[int]] = {}
    for file in sorted(files, key=lambda file: (_begun(file) or 0.0, file.name)):
        steps = _Head(file, all_steps=True).steps if len(files) > 1 else {}
        same = steps.keys() & first.keys()
        moved = any(len(first[tag]) > 1 or len(steps[tag]) > 1 for tag in same)
        began = _begun(file)
        if not trainings or (
            moved
            and began is not None
            and min(steps[tag][0] for tag in same)
            <= max(min(first[tag][0] for tag in same), min(steps[tag][-1] - steps[tag][0] for tag in same))
            and _ended(trainings[-1]) <= began + 1.0
        ):
            trainings.append([file])
            first = {}
        else:
            trainings[-1].append(file)
        for tag, read in steps.items():
            first[tag] = sorted({*first.get(tag, ()), *read})[:2]
    return trainings


def _ended(files: list[Path]) -> float:
    """The time of the latest last event of some files."""
    return max(map(last_moment, files))


def _with_parts(trainings: list[list[Path]], parts: dict[Path, str]) -> dict[str, dict[Path, str]]:
    """The files of each training, by the time of its begin, with those of sub-writers, which began later."""
    begun = [_begun(files[0]) or 0.0 if files else 0.0 for files in trainings]
    made: dict[str, dict[Path, str]] = {}
    for n, (files, began) in enumerate(zip(trainings, begun, strict=True)):
        mark = time.strftime("%Y-%m-%d_%H-%M-%S", time.gmtime(began))
        mark = mark if mark not in made else f"{mark}-{n}"
        made[mark] = dict.fromkeys(files, "")
    marks = [*made]
    for file, part in parts.items():
        at = _begun(file)
        own = 0 if at is None else max((n for n, began in enumerate(begun) if began <= at + 1.0), default=0)
        made[marks[own]][file] = part
    return made


def _part_of(name: str, files: list[Path]) -> str | None:
    """Which part of a tag the folder of a sub-writer is for (`add_scalars` makes them); None for other folders."""
    tags = set().union(*(_Head(file).tags for file in files))
    if len(tags) != 1:
        return None
    stem = tags.pop().replace("/", "_") + "_"
    return name.removeprefix(stem) if name.startswith(stem) and name != stem else None


def _whole_of(folder: Path, folders: Mapping[Path, list[Path]]) -> tuple[Path, str] | None:
    """The folder of the run whose `add_scalars` made this one, and the part of the tag that it is for; else None.

    tensorboardX writes `<run>/<tag>/<part>`, with one tag, which may have several parts itself.
    """
    above = folder.parents[1 : 1 + _MOST_PARTS]
    if folder.name != folder.parent.name and not any(parent in folders for parent in above):
        return None
    tags = set().union(*(_Head(file).tags for file in folders[folder]))
    if len(tags) != 1:
        return None
    tag = Path(tags.pop()).parts
    for below in range(1, _MOST_PARTS + 1):  # a part's name may have several parts, too
        path, part = folder.parts[:-below], folder.parts[-below:]
        if path[-len(tag) :] == tag and len(path) > len(tag):
            return Path(*path[: -len(tag)]), "" if part == tag else "/".join(part)
    return None


_MOST_PARTS = 4
"""A tag of `add_scalars` is looked for above its folder if it has at most this many parts separated by "/"."""


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        if "tfevents" in path.name:
            yield path
    elif path.is_dir():
        yield from files_below(path, "*tfevents*")


def _of_tensor(data: bytes, plugin: str) -> object:
    """A scalar, text or histogram in TensorBoard's newer form; None for others."""
    tensor = tensor_of(data)
    if tensor is None:
        return None
    if isinstance(tensor, list):
        texts = [text.decode("utf-8", "backslashreplace") for text in tensor]
        return "\n".join(texts) if texts and plugin in ("text", "") else None
    if plugin == "histograms" and tensor.ndim == 2 and tensor.shape[1] == 3 and len(tensor):
        edges = [*tensor[:, 0].tolist(), float(tensor[-1, 1])]
        return Histogram(edges, tensor[:, 2].tolist())
    if tensor.size == 1:
        return tensor.reshape(-1)[0].item()
    return None
