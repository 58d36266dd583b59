"""The run's clocks in a small mapped file, so that sub-environments in other processes can read them.

Only the training loop knows `env_step`. The outer wrapper writes the current clocks before each step of the vector. A
recorder in a sub-process reads them when an episode ends. Without the outer wrapper the clocks stay unknown there, and
readers place the rows by time.
"""

from __future__ import annotations

import mmap
import os
import struct
import tempfile

from rollbook.schema.clocks import STANDARD, UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollbook.protocols import Recorder

_MOST = 32
_WORDS = struct.Struct(f"<{_MOST}q")
_COUNTS = struct.Struct("<2q")


class SharedClocks:
    """A table of clock readings in a temporary file. A pickled copy refers to the same table.

    A reader may see a mix of the clocks of two adjacent steps, but never half a number.

    Args:
      names: the clocks, at most 32; further ones stay unknown to the readers.
    """

    __slots__ = ("_map", "names", "path")

    def __init__(self, names: tuple[str, ...], path: str | None = None) -> None:
        self.names = names[:_MOST]
        self._map: mmap.mmap | None = None
        if path is None:
            handle, path = tempfile.mkstemp(prefix="rollbook-clocks-")
            with os.fdopen(handle, "wb") as file:
                file.write(_WORDS.pack(*[UNKNOWN] * _MOST) + _COUNTS.pack(UNKNOWN, 0))
        self.path = path

    def _open(self) -> mmap.mmap | None:
        if self._map is None:
            try:
                with open(self.path, "r+b") as file:
                    self._map = mmap.mmap(file.fileno(), _WORDS.size + _COUNTS.size)
            except (OSError, ValueError):  # on another host, or the run has ended
                return None
        return self._map

    def write(self, clocks: Mapping[str, int]) -> None:
        """Set the current clocks; missing names become unknown."""
        view = self._open()
        if view is not None:
            readings = [clocks.get(name, UNKNOWN) for name in self.names]
            _WORDS.pack_into(view, 0, *readings, *[UNKNOWN] * (_MOST - len(readings)))

    def read(self) -> dict[str, int]:
        """The known clocks."""
        view = self._open()
        if view is None:
            return {}
        readings = _WORDS.unpack_from(view, 0)
        return {name: reading for name, reading in zip(self.names, readings, strict=False) if reading != UNKNOWN}

    def write_counts(self, steps: int, episodes: int) -> None:
        """Publish the steps of all sub-environments and the number of episodes begun in earlier attempts."""
        view = self._open()
        if view is not None:
            _COUNTS.pack_into(view, _WORDS.size, steps, episodes)

    def read_counts(self) -> tuple[int | None, int]:
        """(steps of all sub-environments before this step of the vector, episodes of earlier attempts).

        The steps are None if no vector publishes them.
        """
        view = self._open()
        if view is None:
            return None, 0
        steps, episodes = _COUNTS.unpack_from(view, _WORDS.size)
        return None if steps == UNKNOWN else steps, episodes

    def remove(self) -> None:
        """Delete the file. Processes that have it open keep its readings."""
        try:
            os.unlink(self.path)
        except OSError:
            pass

    def __reduce__(self) -> tuple[object, ...]:
        return SharedClocks, (self.names, self.path)


def clock_names(recorder: Recorder) -> tuple[str, ...]:
    """All clocks of the recorder's run: the standard ones, the declared ones, and those known now."""
    writer = getattr(getattr(recorder, "internals", None), "writer", None)
    return tuple(dict.fromkeys((*STANDARD, *getattr(writer, "clocks", ()), *recorder.clocks_now())))
