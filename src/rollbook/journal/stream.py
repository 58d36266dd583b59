"""One key set in one lane: fixed-width rows in a chain of segments."""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import struct
import time

from rollbook.journal import format as layout
from rollbook.journal import mapping
from rollbook.system.files import pread
from rollbook.system.guard import is_foreign, ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rollbook.journal.channel import Shape


def _seek_and_write(fd: int, data: Any, offset: int) -> int:
    os.lseek(fd, offset, os.SEEK_SET)
    return os.write(fd, data)


pwrite: Callable[[int, object, int], int] = getattr(os, "pwrite", _seek_and_write)
"""`os.pwrite`, else seek and write (safe, because a lane has one user at a time)."""


_NO_SPACE = (errno.EFBIG, errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
"""EFBIG, ENOSPC, EDQUOT."""


class _Slot:
    """One segment file of a stream, mapped (`buffer`) or open (`fd`)."""

    __slots__ = ("buffer", "fd", "header_size", "is_largest", "path", "size")

    def __init__(
        self, path: str, buffer: mmap.mmap | None, fd: int, header_size: int, size: int, is_largest: bool
    ) -> None:
        self.path, self.buffer, self.fd = path, buffer, fd
        self.header_size, self.size = header_size, size
        self.is_largest = is_largest

    def set_word(self, at: int, value: int) -> None:
        if self.buffer is not None:
            layout.WORD.pack_into(self.buffer, at, value)
        else:
            pwrite(self.fd, layout.WORD.pack(value), at)

    def word(self, at: int) -> int:
        if self.buffer is not None:
            number: int = layout.WORD.unpack_from(self.buffer, at)[0]
            return number
        data = pread(self.fd, 8, at) if self.fd >= 0 else b""
        return int.from_bytes(data, "little") if len(data) == 8 else 0

    def close(self) -> None:
        buffer, self.buffer = self.buffer, None
        if buffer is not None:
            buffer.close()
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class Stream:
    """The rows of one key set in one lane.

    The hot path reads `offset`, `last`, `width`, `buffer`, `pack` and `types`. It advances `offset` before it packs, so
    an interrupt in between leaves a hole, and never a row that is overwritten. Used by one thread at a time.

    An exception may arrive between any two instructions (Ctrl-C). Every change is ordered so that the next call finds
    either the former state or one from which it can continue: `last` is -1 while there is no segment to write to, a
    slot is listed twice rather than not at all, and changes of a slot's words can be repeated.
    """

    __slots__ = (
        "_first",
        "_folder",
        "_largest",
        "_looked_at",
        "_mapped",
        "_meta",
        "_next_size",
        "_numbers",
        "_pace",
        "_refusal",
        "_row",
        "_slot",
        "_spare",
        "_spent",
        "buffer",
        "last",
        "offset",
        "pack",
        "shape",
        "types",
        "width",
    )

    def __init__(
        self,
        folder: str,
        meta: dict[str, Any],
        *,
        shape: Shape,
        mapped: bool,
        first_size: int,
        largest_size: int,
    ) -> None:
        self._folder, self._meta, self.shape = folder, meta, shape
        self._mapped, self._first, self._next_size, self._largest = mapped, first_size, first_size, largest_size
        self._row = layout.row_struct(len(meta["clocks"]), meta["types"])
        self.width = self._row.size
        self.types: list[type] = []
        self.offset, self.last = 0, -1  # no segment yet: the first row calls `roll`
        self.buffer: object = None
        self.pack: Callable[..., None] = self._row.pack_into
        self._slot: _Slot | None = None
        self._spent: list[_Slot] = []  # left; kept mapped until sealed and reusable
        self._spare: _Slot | None = None
        self._numbers = itertools.count()  # the run's own thread creates spare slots in parallel
        self._looked_at = 0  # the offset when `prepare` last looked
        self._pace = 0  # bytes of rows from one look to the next
        self._refusal: tuple[float, tuple[object, ...]] | None = None  # until when, and the system's error

    @property
    def mapped_bytes(self) -> int:
        """The memory of this stream's mapped segments."""
        slots = [*self._spent, *(s for s in (self._slot, self._spare) if s is not None)]
        return sum(slot.size for slot in slots if slot.buffer is not None)

    def roll(self, next_seq: int, *, may_keep: bool) -> None:
        """Switch to a segment with room: a sealed one of this stream, the spare one, or a new file.

        Args:
          next_seq: rows in the segment will have sequence numbers of at least this.
          may_keep: keep the former segment mapped, to reuse it after it is sealed.
        Raises:
          OSError: no segment is available (no space, folder gone, read-only). The disk is tried at most once a second;
            in between the same error is raised again.
        """
        refusal = self._refusal
        if refusal is not None and time.monotonic() < refusal[0]:
            raise OSError(*refusal[1])
        self._settle()
        try:
            slot = self._reusable_slot() or self._spare
            if slot is None:
                slot = self._spare = self._new_slot()
        except OSError as err:
            if not is_foreign(err):
                self._refusal = (time.monotonic() + 1.0, err.args)
            raise
        self._refusal = None
        self._leave(may_keep)
        if slot in self._spent:
            generation = slot.word(layout.GENERATION_AT) | 1  # already odd if the last try was interrupted
            slot.set_word(layout.GENERATION_AT, generation)
            slot.set_word(layout.FIRST_SEQ_AT, next_seq)
            slot.set_word(layout.STATE_AT, layout.ACTIVE)
            slot.set_word(layout.GENERATION_AT, generation + 1)
        self._slot = slot
        self._settle()
        if slot.buffer is not None:
            self.buffer, self.pack = slot.buffer, self._row.pack_into
        else:
            self.buffer, self.pack = None, _pwrite_pack(slot.fd, self._row)
        self._looked_at = 0
        self.offset = slot.header_size
        self.last = slot.size - self.width

    def prepare(self) -> None:
        """Prepare room for the rows until the next look. Called by the run's own thread, off the hot path.

        The next segment is created in advance, and the pages of the next rows are faulted in. (A sync makes every page
        of a file clean, and the first store into a clean page costs some ten microseconds.)
        """
        slot, offset = self._slot, self.offset
        if slot is None or not self._mapped or offset == self._looked_at:
            return
        if self._looked_at:
            self._pace = offset - self._looked_at
        else:  # a new segment since the last look
            self._pace = max(self._pace, offset - slot.header_size)
        self._looked_at = offset
        coming = 2 * self._pace
        if self._spare is None and self._refusal is None and offset + max(coming, slot.size // 2) > slot.size:
            try:
                self._spare = self._new_slot()
            except ours(OSError):
                return  # `roll` will get the same error, and count it
        if slot.buffer is not None:
            mapping.populate(slot.buffer, offset, min(coming, slot.size - offset))
        following = self._reusable_slot() or self._spare
        if following is not None and following.buffer is not None and offset + coming > slot.size:
            mapping.populate(following.buffer, 0, min(coming, following.size))

    def fence(self) -> int:
        """The fence word of the current segment; not 0 means that another process took over the run."""
        return self._slot.word(layout.FENCE_AT) if self._slot is not None else 0

    def last_time(self, n_clocks: int) -> int:
        """When the last row was written (monotonic ns); 0 if unknown."""
        slot = self._slot
        if slot is None or self.offset <= slot.header_size:
            return 0
        at = self.offset - self.width + 8 * n_clocks
        if slot.buffer is not None:
            return int.from_bytes(slot.buffer[at : at + 8], "little", signed=True)
        return int.from_bytes(pread(slot.fd, 8, at), "little", signed=True)

    def committed(self, offset: int, seq: int) -> bool:
        """Whether the row with this sequence number is at `offset`, with its commit word."""
        slot, at = self._slot, offset + self.width - 8
        if slot is None or self.last < 0:
            return False
        return slot.word(at) == seq

    def close(self) -> None:
        """Leave all segments. The keeper seals and unlinks the unsealed ones. Can be repeated."""
        self._settle()
        self._leave(False)
        while self._spent:
            slot = self._spent[-1]
            if slot.word(layout.STATE_AT) == layout.SEALED:
                _unlink(slot.path)
            elif slot.buffer is not None:
                slot.set_word(layout.STATE_AT, layout.DROPPED)
            slot.close()
            self._spent.pop()
        spare = self._spare
        if spare is not None:
            _unlink(spare.path)
            spare.close()
            self._spare = None

    def forget(self) -> None:
        """Release the parent's segments in a forked child, without writing to the files."""
        for slot in (*self._spent, self._slot, self._spare):
            if slot is not None:
                slot.close()
        self._spent, self._slot, self._spare = [], None, None
        self.offset, self.last, self.buffer = 0, -1, None

    # -- below: never on the hot path

    def _settle(self) -> None:
        """Clean up after an interrupted roll: the current slot may still be in the list it was taken from."""
        slot = self._slot
        if slot is not None:
            if self._spare is slot:
                self._spare = None
            if slot in self._spent:
                self._spent.remove(slot)

    def _leave(self, may_keep: bool) -> None:
        slot = self._slot
        self.last = -1
        if slot is None:
            return
        keep = may_keep and slot.buffer is not None and slot.is_largest
        try:
            state = slot.word(layout.STATE_AT)
            if state == layout.ACTIVE or (state == layout.LEFT and not keep):
                slot.set_word(layout.STATE_AT, layout.LEFT if keep else layout.DROPPED)
        except ours(OSError):
            keep = False
        if keep:
            self._spent = [*self._spent, slot]
            self._slot = None
        else:
            self._slot = None
            slot.close()

    def _reusable_slot(self) -> _Slot | None:
        """A slot that is sealed, or whose taking was interrupted."""
        for slot in self._spent:
            if slot.word(layout.STATE_AT) in (layout.SEALED, layout.ACTIVE):
                return slot
        return None

    def _new_slot(self) -> _Slot:
        """A new file of the next size, or smaller if the disk has too little space."""
        wanted = self._next_size
        while True:
            try:
                slot = self._make_slot(wanted)
                break
            except OSError as err:
                if err.errno not in _NO_SPACE or wanted <= self._first or is_foreign(err):
                    raise
                wanted = max(self._first, wanted // 4)
        self._next_size = min(self._largest, wanted * 2)
        return slot

    def _make_slot(self, wanted: int) -> _Slot:
        number = next(self._numbers)  # taken before anything is created, and never twice
        meta = {**self._meta, "slot": number}
        header, header_size, width, capacity = layout.pack_header(meta, first_seq=1, size=wanted)
        size = header_size + width * capacity
        path = os.path.join(self._folder, layout.segment_name(meta["lane"], meta["stream"], number))
        is_largest = wanted >= self._largest
        if self._mapped:
            return _Slot(path, mapping.create(path, header, size), -1, header_size, size, is_largest)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        fd = os.open(path, flags, 0o666)
        try:
            if hasattr(os, "ftruncate"):  # its length says from the start how many rows it has room for
                os.ftruncate(fd, size)
            if pwrite(fd, header, 0) != len(header):
                raise OSError(errno.ENOSPC, "No space left on device", path)
        except BaseException:
            os.close(fd)
            _unlink(path)
            raise
        return _Slot(path, None, fd, header_size, size, is_largest)


def _pwrite_pack(fd: int, row: struct.Struct) -> Callable[..., None]:
    """The same bytes by one `pwrite` per row, for file systems where mapping is not safe."""
    scratch = bytearray(row.size)
    pack_into, size = row.pack_into, row.size

    def pack(_buffer: None, offset: int, *fields: object) -> None:
        pack_into(scratch, 0, *fields)
        if pwrite(fd, scratch, offset) != size:  # the commit word is last, so a partial row does not count
            raise OSError(errno.ENOSPC, "No space left on device")

    return pack


def _unlink(path: str) -> None:
    with tolerating(OSError):
        os.unlink(path)
