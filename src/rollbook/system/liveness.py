"""Identifies processes, checks whether they live, and notices their end at once.

    me = identity()                  # goes into writer.json
    is_alive(me)                     # True; False: known dead; None: cannot be judged from here
    with Watch(me) as watch:
        watch.wait(1.0)              # True as soon as it has ended

A file lock is not enough (a forked child keeps it), and pids are reused. So a process is identified by boot, pid
namespace, pid and start time. Light on purpose: the training process imports this file.

$ROLLBOOK_HOST declares that processes belong to another host, with a separate name and boot. This simulates several
nodes on one machine (which share boot, pid namespace and host name), and names a host that has no unique name.
"""

from __future__ import annotations

import os
import sys

from rollbook.system.guard import ours, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any

    from rollbook.system.identity import Identity

HOST_VARIABLE = "ROLLBOOK_HOST"
"""Names the host to which a process belongs; unset or empty: the host on which it runs."""

_NO_NAMES = frozenset({"", "localhost", "localhost.localdomain", "(none)"})
"""Host names that many machines share: equal names prove nothing."""


def identity() -> Identity:
    """This process as {boot_id, machine, pid_ns, pid, start_time, image, host}; plain JSON data. "" means unknown."""
    pid = os.getpid()
    _, started, image = _look_at(pid)
    return {
        "boot_id": boot_id(),
        "pid_ns": pid_namespace(),
        "pid": pid,
        "start_time": started,
        "image": image,
        "host": host_name(),
        "machine": machine(),
    }


def is_alive(identity: Mapping[str, object]) -> bool | None:
    """Whether the process that called `identity()` still runs; a zombie does not, nor one that `os.execv` has replaced.

    Args:
      identity: the result of `identity()`, or a writer.json. It comes from a file, so any field may be missing or
        wrong.
    Returns:
      True, False, or None if unknown: another host, another pid namespace, or a system that hides it.
    """
    if not shares_pids(identity):
        if _text(identity, "host") == host_name() not in _NO_NAMES and _rebooted(identity):
            return False
        return None
    pid = _pid(identity)
    if pid is None:
        return None
    alive, start_time, image = _look_at(pid)
    if alive is not True:
        return alive
    asked, its_image = _text(identity, "start_time"), _text(identity, "image")
    if not asked or not start_time:
        return None
    return start_time == asked and (image == its_image or not image or not its_image)


def shares_pids(identity: Mapping[str, object]) -> bool:
    """Whether that process shares this one's boot and pid namespace: only then may this host change its journal."""
    boot, here = _text(identity, "boot_id"), boot_id()
    if boot and here:
        return boot == here and _text(identity, "pid_ns") == pid_namespace()
    # A system without boot ids: use the host's name and the start time of the process.
    return _text(identity, "host") == host_name() not in _NO_NAMES and _text(identity, "pid_ns") == pid_namespace()


class Watch:
    """Notices the end of one process: by pidfd, kqueue or process handle, else by polling (pid, start time).

    Args:
      identity: of the process.
      poll_seconds: how often `wait` looks on systems without notification.
    Attributes:
      how: "pidfd", "kqueue", "handle", "poll", "dead" (it had already ended) or "unknown" (cannot be judged from here;
        `dead` then stays False).
    """

    __slots__ = ("_dead", "_fd", "_handle", "_identity", "_kqueue", "_poll_seconds", "_windows", "how")

    def __init__(self, identity: Mapping[str, object], *, poll_seconds: float = 0.25) -> None:
        self._identity, self._poll_seconds = dict(identity), poll_seconds
        self._dead = False
        self._fd = -1
        self._kqueue: Any = None
        self._handle: Any = None
        self._windows: Any = None
        self.how = "poll"
        pid = _pid(identity)
        if pid is None or not shares_pids(identity):
            self._dead = is_alive(identity) is False
            self.how = "dead" if self._dead else "unknown"
            return
        # Open the process first, then compare its start time: after that the pid cannot mean another process.
        self._hold(pid)
        alive = is_alive(identity)
        if alive is not True:
            self.close()
            self._dead = alive is False
            self.how = "dead" if self._dead else "unknown"

    def _hold(self, pid: int) -> None:
        opened = getattr(os, "pidfd_open", None)
        if opened is not None:
            with tolerating(OSError):  # an old kernel, a seccomp rule, no descriptor left, or the process is gone
                self._fd = opened(pid)
                self.how = "pidfd"
                return
        import select

        make_queue = getattr(select, "kqueue", None)  # macOS and the BSDs
        if make_queue is not None:
            queue = None
            with tolerating(OSError):
                queue = make_queue()
                queue.control([_exit_event(select, pid)], 0)
                self._kqueue, self._fd, self.how = queue, queue.fileno(), "kqueue"
                return
            if queue is not None:
                queue.close()
        if sys.platform == "win32":
            self._windows = _kernel32()
            self._handle = self._windows.OpenProcess(0x00100000, False, pid)  # SYNCHRONIZE
            if self._handle:
                self.how = "handle"

    def dead(self) -> bool:
        """Whether it is known to have ended. Does not block."""
        return self.wait(0.0)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds (None: without limit) for the end; True as soon as it is known to have ended."""
        import time

        until = None if timeout is None else time.monotonic() + timeout
        while not self._dead:
            left = None if until is None else max(0.0, until - time.monotonic())
            self._dead = self._look(left)
            if self._dead or (left is not None and left <= 0.0):
                break
        if self._dead:
            self._release()
        return self._dead

    def _look(self, left: float | None) -> bool:
        if self._kqueue is not None:
            return bool(self._kqueue.control(None, 1, left))
        if self._fd >= 0:
            import select

            # poll, not select: a trainer may have more than 1,024 open descriptors.
            poller = select.poll()
            poller.register(self._fd, select.POLLIN)
            return bool(poller.poll(None if left is None else int(left * 1000) + (left > 0.0)))
        if self._handle:
            wait_ms = 0xFFFFFFFF if left is None else min(int(left * 1000), 0x7FFFFFFF)
            return bool(self._windows.WaitForSingleObject(self._handle, wait_ms) == 0)
        import time

        if self.how == "poll" and is_alive(self._identity) is False:
            return True
        if left is None or left > 0.0:
            time.sleep(self._poll_seconds if left is None else min(left, self._poll_seconds))
            return self.how == "poll" and is_alive(self._identity) is False
        return False

    def fileno(self) -> int:
        """A descriptor that becomes readable when the process ends, for select and asyncio; -1 without one."""
        return self._fd

    def _release(self) -> None:
        if self._kqueue is not None:
            self._kqueue.close()
        elif self._fd >= 0:
            os.close(self._fd)
        if self._handle:
            self._windows.CloseHandle(self._handle)
        self._kqueue, self._fd, self._handle = None, -1, None

    def close(self) -> None:
        """Release the process. An end that was not noticed before is not noticed any more."""
        self._release()
        self.how = "dead" if self._dead else "unknown"

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        with tolerating(OSError, AttributeError, TypeError):  # partly constructed, or the interpreter is shutting down
            self._release()


def _exit_event(select: ModuleType, pid: int) -> object:
    return select.kevent(pid, filter=select.KQ_FILTER_PROC, flags=select.KQ_EV_ADD, fflags=select.KQ_NOTE_EXIT)


def boot_id() -> str:
    """An id that changes with each boot of this machine, "" if the system has none."""
    declared = os.environ.get(HOST_VARIABLE, "")
    return f"{_boot_id()}/{declared}" if declared else _boot_id()


def _boot_id() -> str:
    with tolerating(OSError, UnicodeDecodeError), open("/proc/sys/kernel/random/boot_id", "rb") as file:
        return file.read().decode().strip()
    return _mac_boot_id() if sys.platform == "darwin" else ""


def pid_namespace() -> str:
    """The pid namespace (a container has its own) as text, "" on systems without them."""
    with tolerating(OSError):
        return str(os.stat("/proc/self/ns/pid").st_ino)
    return ""


def host_name() -> str:
    """The name of this host, "" if it has none."""
    declared = os.environ.get(HOST_VARIABLE, "")
    if declared:
        return declared
    with tolerating(AttributeError):  # Windows
        return os.uname().nodename  # type: ignore[attr-defined,unused-ignore]
    return os.environ.get("COMPUTERNAME", "")


def machine() -> str:
    """A short id that separates hosts with the same name and survives a reboot; "" if unknown."""
    with tolerating(OSError) as missed, open("/etc/machine-id", "rb") as file:
        number = file.read(64).strip()
    if missed:
        return ""
    import zlib  # hashlib takes milliseconds to import, and this needs no security

    return f"{zlib.crc32(number):08x}" if number else ""


def start_time(pid: int) -> str | None:
    """Start time of process `pid`, in the system's unit; None if it is missing, hidden or a zombie."""
    return _look_at(pid)[1] or None


def _look_at(pid: int) -> tuple[bool | None, str, str]:
    """(alive, start time, image) of a pid: (False, "", "") if it is gone or a zombie, (None, "", "") if hidden.

    The image is where its stack begins: the system draws a new one at each `exec`, which keeps pid and start time. It
    is "" where it is not known, as of another user's process.
    """
    if sys.platform == "win32":
        return (*_windows_look_at(pid), "")
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command is in brackets and may itself contain brackets and spaces.
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in b"ZX" and int(fields[17]) <= 1:
            return False, "", ""
        return True, fields[19].decode(), fields[25].decode() if fields[25] != b"0" else ""
    except ours(OSError, IndexError, ValueError) as err:
        if not isinstance(err, (FileNotFoundError, ProcessLookupError)):  # no free descriptor, no permission
            return None, "", ""
    # gone, hidden by a mount option, or no /proc
    start_time = _mac_start_time(pid) if sys.platform == "darwin" else ""
    if start_time:
        return True, start_time, ""
    with tolerating(OSError), tolerating(ProcessLookupError) as gone:
        os.kill(pid, 0)
    return False if gone else None, "", ""


def _text(identity: Mapping[str, object], name: str) -> str:
    value = identity.get(name)
    return "" if value is None else str(value)


def _pid(identity: Mapping[str, object]) -> int | None:
    pid = identity.get("pid")
    return pid if type(pid) is int and 0 < pid < 2**31 else None


def _rebooted(identity: Mapping[str, object]) -> bool:
    """Whether a process belongs to an earlier boot of this host, and not to another host with the same name."""
    boot, here, theirs, ours = _text(identity, "boot_id"), boot_id(), _text(identity, "machine"), machine()
    if theirs and ours and theirs != ours:
        return False
    return bool(boot and here and boot != here)


def _mac_boot_id() -> str:
    with tolerating(OSError, AttributeError, ImportError):
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        buffer, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        if libc.sysctlbyname(b"kern.bootsessionuuid", buffer, ctypes.byref(size), None, 0) == 0:
            return str(buffer.value.decode())
    return ""


def _mac_start_time(pid: int) -> str:
    """From proc_pidinfo(PROC_PIDTBSDINFO): status at byte 4, start in seconds and microseconds at byte 120."""
    with tolerating(OSError, AttributeError, ImportError):
        import ctypes
        import struct

        libc = ctypes.CDLL(None, use_errno=True)
        buffer = ctypes.create_string_buffer(136)
        if libc.proc_pidinfo(pid, 3, ctypes.c_uint64(0), buffer, 136) != 136:
            return ""
        (status,) = struct.unpack_from("<I", buffer, 4)
        seconds, micros = struct.unpack_from("<QQ", buffer, 120)
        return "" if status == 5 else f"{seconds}.{micros:06d}"  # 5: SZOMB
    return ""


def _kernel32() -> Any:
    import ctypes

    library = ctypes.WinDLL("kernel32", use_last_error=True)  # type: ignore[attr-defined,unused-ignore]
    library.OpenProcess.restype = ctypes.c_void_p
    library.OpenProcess.argtypes = [ctypes.c_uint32, ctypes.c_int, ctypes.c_uint32]
    library.WaitForSingleObject.argtypes = [ctypes.c_void_p, ctypes.c_uint32]
    library.CloseHandle.argtypes = [ctypes.c_void_p]
    library.GetProcessTimes.argtypes = [ctypes.c_void_p] + [ctypes.c_void_p] * 4
    return library


def _windows_look_at(pid: int) -> tuple[bool | None, str]:
    """By creation time: an open handle keeps the pid of an ended process in use."""
    import ctypes

    library = _kernel32()
    handle = library.OpenProcess(0x00101000, False, pid)  # SYNCHRONIZE | PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return (None, "") if ctypes.get_last_error() == 5 else (False, "")  # type: ignore[attr-defined,unused-ignore]
    try:
        times = (ctypes.c_uint64 * 4)()
        at = [ctypes.byref(times, 8 * i) for i in range(4)]
        if library.WaitForSingleObject(handle, 0) == 0:
            return False, ""
        return (True, str(times[0])) if library.GetProcessTimes(handle, *at) else (None, "")
    finally:
        library.CloseHandle(handle)
