"""The keeper as a separate process: not a child of the trainer, unaffected by Ctrl-C, without the trainer's
descriptors."""

from __future__ import annotations

import os
import sys

from rollbook.keeper.launch import PATH_VARIABLE
from rollbook.system.files import is_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from rollbook.keeper.main import Keeper

_USAGE = (
    "usage: python -m rollbook.keeper RUN\n       python -m rollbook.keeper --many FOLDER\n\n"
    "Looks after the run in the folder RUN until its writers have gone, or after all runs that share it.\n"
)


def main(arguments: list[str] | None = None) -> None:
    """Keep the run named on the command line. Exits 0 when done, or at once if another keeper is at work."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    background = "--background" in words or "--detach" in words
    many = "--many" in words
    folders = [word for word in words if not word.startswith("-")]
    if len(folders) != 1:
        sys.stderr.write(_USAGE)
        raise SystemExit(2)
    folder = os.path.abspath(folders[0])
    if not is_folder(folder):
        sys.stderr.write(f"{folder} is not a folder. {_USAGE}")
        raise SystemExit(2)
    _extend_path()
    if background:
        _let_go_of_trainer("--detach" in words)
        os.chdir("/" if os.name == "posix" else folder)
    _allow_many_files()

    if many:
        from rollbook.keeper.many_runs import main as look_after_many

        look_after_many(folder)
    from rollbook.keeper.main import Keeper

    keeper = Keeper(folder)
    waker = _Waker(keeper)
    keeper.reports.signal_name = waker.signal_name
    phase = keeper.run(waker.wait)
    if not background and phase == "taken":
        sys.stderr.write(f"another keeper is at work in {folder}\n")


def _extend_path() -> None:
    """The interpreter was started without `site`: look for packages where the trainer found them."""
    for path in os.environ.get(PATH_VARIABLE, "").split(os.pathsep):
        if path and path not in sys.path:
            sys.path.append(path)


def _let_go_of_trainer(fork: bool) -> None:
    if os.name != "posix":
        return
    # Otherwise descriptors that the trainer inherited (a pipe of `| tee`, of a test) stay open here.
    _close_all_but_standard()
    if fork and os.fork():
        os._exit(0)
    try:
        os.setsid()
    except OSError:  # it is already a session leader
        pass


def _close_all_but_standard() -> None:
    try:
        # Listing is quicker than trying a million numbers if the system has no call for it.
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        numbers = list(range(3, 4096))
    for number in numbers:
        if number > 2:
            try:
                os.close(number)
            except OSError:
                continue


def _allow_many_files() -> None:
    """Readers keep segments open: allow as many descriptors as the system permits."""
    try:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (ImportError, OSError, ValueError):
        return


class _Waker:
    """Waits for time, the end of a writer, or a signal. SIGUSR1: look now. SIGTERM: hurry."""

    def __init__(self, keeper: Keeper) -> None:
        import signal

        self._keeper = keeper
        self.signal_name = ""
        self._read = -1
        for name in ("SIGINT", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_IGN)
        if hasattr(signal, "SIGTERM"):
            signal.signal(signal.SIGTERM, self._on_term)
        if os.name == "posix":
            self._read, self._write = os.pipe()
            os.set_blocking(self._read, False)
            os.set_blocking(self._write, False)
            signal.signal(signal.SIGUSR1, self._on_signal)
            signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
            self.signal_name = "USR1"

    def wait(self, seconds: float, descriptors: list[int]) -> None:
        """Wait up to `seconds`."""
        from rollbook.keeper.main import wait

        if self._read < 0:
            wait(min(seconds, 0.25), descriptors)  # no event can wake us here
            return
        wait(seconds, [*descriptors, self._read])
        try:
            os.read(self._read, 4096)
        except BlockingIOError:
            return

    def _on_term(self, _number: int, _frame: FrameType | None) -> None:
        self._keeper.hurry()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        return
