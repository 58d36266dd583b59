"""What TensorFlow writes by `tf.summary` or its first version's FileWriter (TF-Agents, Keras, Dopamine) is recorded.

TensorFlow writes event files in C++, also from within a graph, where no Python sees a value. So the file that a writer
makes is read while it grows: once a second, when the writer is flushed or closed, and when the program ends. Numbers,
texts, histograms and images of every writer go to a `SummaryWriter` of ours for the same folder.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from functools import wraps

from rollbook.adapters._imported import when_imported
from rollbook.adapters.tensorboard.libraries import TENSORFLOWS
from rollbook.adapters.tensorboard.writer import SummaryWriter
from rollbook.system.bill import Bill
from rollbook.system.files import names_in
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_SECONDS = 1.0
_options: dict[str, Any] = {}
_own: list[tuple[object, str, object]] = []
"""(module or class, name, what it was), while TensorFlow is followed."""
_files: list[_Followed] = []
_lock = threading.RLock()
_reader: threading.Event | None = None
"""Ends the thread that reads; None where none does."""


def follow(options: dict[str, object]) -> None:
    """Let each writer of TensorFlow that is made from now on write to a run as well.

    Args:
      options: arguments of `SummaryWriter`, such as run=.
    """
    _options.clear()
    _options.update(options)
    changes = dict(zip(TENSORFLOWS, (_change_operations, _change_first_version), strict=True))
    for module in [module for module in changes if module in sys.modules]:
        changes.pop(module)(sys.modules[module])
    if changes:
        when_imported(changes)


def leave() -> None:
    """Put TensorFlow's own functions back. Files of writers that are open are not read any further."""
    for holder, name, before in _own:
        setattr(holder, name, before)
    _own.clear()
    _end()


def _change(holder: Any, name: str, after: Callable[..., object]) -> None:
    """Let `after` (the result, the arguments) look on whenever a function of TensorFlow has been called."""
    before = getattr(holder, name)
    if any(one is holder and its_name == name for one, its_name, _ in _own):
        return

    @wraps(before)
    def called(*arguments: Any, **named: Any) -> Any:
        result = before(*arguments, **named)
        with tolerating(Exception):
            after(*arguments, **named)
        return result

    _own.append((holder, name, before))
    setattr(holder, name, called)


def _change_operations(operations: Any) -> None:
    def made(writer: Any, logdir: Any, *_arguments: Any, **_named: Any) -> None:
        if not hasattr(writer, "numpy") or not hasattr(logdir, "numpy"):
            return  # within a graph: nothing is made now
        folder = os.fsdecode(logdir.numpy())
        newest = _newest(folder)
        if newest is not None:
            _Followed(folder, lambda: newest, weakref.ref(writer), operations.flush_summary_writer.__wrapped__)

    def written(writer: Any, *_arguments: Any, **_named: Any) -> None:
        for file in [file for file in _files if file.writer() is writer]:
            file.read()

    def closed(writer: Any, *_arguments: Any, **_named: Any) -> None:
        for file in [file for file in _files if file.writer() is writer]:
            file.close()

    _change(operations, "flush_summary_writer", written)
    _change(operations, "close_summary_writer", closed)
    _change(operations, "create_summary_file_writer", made)


def _change_first_version(module: Any) -> None:
    kind = module.EventFileWriter

    def made(self: Any, *_arguments: Any, **_named: Any) -> None:
        def path() -> str:
            return os.fsdecode(self._ev_writer.FileName())

        self.followed = _Followed(self.get_logdir(), path, weakref.ref(self), kind.flush.__wrapped__)

    _change(kind, "flush", lambda self: self.followed.read())
    _change(kind, "close", lambda self: self.followed.close())
    _change(kind, "__init__", made)


def _newest(folder: str) -> str | None:
    """The event file that this process has just begun in a folder and that is not read yet."""
    known = {file.path for file in _files}
    found = [os.path.join(folder, name) for name in names_in(folder) if f".{os.getpid()}." in name]
    new = [path for path in found if path not in known]
    return max(new, key=os.path.getmtime) if new else None


class _Followed:
    """A file of a writer of TensorFlow, and what has been read of it.

    Args:
      folder: as the program gave it to the writer.
      path: tells where the file is; "" as long as there is none.
      writer: refers to the writer; flush: writes what it holds into the file.
    """

    def __init__(
        self, folder: str, path: Callable[[], str], writer: Callable[[], Any], flush: Callable[[Any], object]
    ) -> None:
        self.path, self.writer, self._path, self._flush = "", writer, path, flush
        self._loader: Any = None
        self._kinds: dict[str, str] = {}
        self._count = Bill()
        self._book = SummaryWriter(**{**_options, "events": False, "log_dir": folder})
        with _lock:
            self.path = path()
            _files.append(self)
        _read_on()
        atexit.unregister(_end)
        atexit.register(_end)  # before that of the run, which ends it

    def read(self) -> None:
        """Record what has come since."""
        self._count.guard("tensorflow", "reading what TensorFlow has written", self._read)

    def close(self) -> None:
        """Record what has come since, and nothing that comes later."""
        with _lock:
            if self not in _files:
                return
            _files.remove(self)
        self.read()
        self._book.close()

    def flush(self) -> None:
        """Let the writer write, then record it. Without the writer, the file is complete."""
        writer = self.writer()
        if writer is None:
            self.close()
            return
        self._count.guard("tensorflow", "flushing TensorFlow's writer", lambda: self._flush(writer))
        self.read()

    def _read(self) -> None:
        with _lock:
            if self._loader is None:
                from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

                self.path = self.path or self._path()
                if not self.path or not os.path.exists(self.path):
                    return
                self._loader = EventFileLoader(self.path)
            for event in self._loader.Load():
                for value in event.summary.value:
                    self._count.guard("tensorflow", f"reading {value.tag}", self._keep, value, event)

    def _keep(self, value: Any, event: Any) -> None:
        """Record a value. The loader has brought those of the first version into the form of the second."""
        from tensorboard.util.tensor_util import make_ndarray

        book: Any = self._book
        at = {"global_step": int(event.step), "walltime": float(event.wall_time)}
        kind = value.metadata.plugin_data.plugin_name or self._kinds.get(value.tag, "")
        self._kinds[value.tag] = kind  # a writer says it with the first value of a tag alone
        if not value.HasField("tensor"):
            return
        content = make_ndarray(value.tensor)
        if kind == "scalars":
            book.add_scalar(value.tag, float(content), **at)
        elif kind == "text":
            words = [word.decode("utf-8", "replace") for word in content.ravel().tolist()]
            book.add_text(value.tag, "\n".join(words), **at)
        elif kind == "histograms" and content.size:
            left, right, counts = content.T
            middles = (left + right) / 2
            sums = float(counts @ middles), float(counts @ middles**2)
            edges = float(left[0]), float(right[-1])
            book.add_histogram_raw(value.tag, *edges, float(counts.sum()), *sums, right, counts, **at)
        elif kind == "images":
            for number, picture in enumerate(content.ravel().tolist()[2:]):
                tag = value.tag if number == 0 else f"{value.tag}/{number}"
                book.add_image(tag, _pixels(picture), dataformats="HWC", **at)


def _pixels(picture: bytes) -> Any:
    tensorflow: Any = sys.modules["tensorflow"]
    return tensorflow.io.decode_image(picture, expand_animations=False).numpy()


def _read_on() -> None:
    """Let a thread read all files until none is open."""
    global _reader
    with _lock:
        if _reader is None:
            _reader = threading.Event()
            threading.Thread(target=_read_all, args=(_reader,), name="rollbook-tensorflow", daemon=True).start()


def _read_all(ended: threading.Event) -> None:
    global _reader
    while not ended.wait(_SECONDS):
        with _lock:
            if not _files and _reader is ended:
                _reader = None
                return
        for file in list(_files):
            file.flush()


def _end() -> None:
    """Record the rest of every file."""
    global _reader
    with _lock:
        if _reader is not None:
            _reader.set()
            _reader = None
    for file in list(_files):
        file.flush()
        file.close()
