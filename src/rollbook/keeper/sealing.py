"""The child that seals. It starts when enough is waiting, so that the keeper never loads pyarrow.

A program that imports runs has loaded it anyway and seals them itself: starting a child costs three times the work.
"""

from __future__ import annotations

from rollbook.keeper.child import Child, Ended
from rollbook.keeper.rules import rules_path
from rollbook.system.guard import ours
from rollbook.system.optional import is_core_alone
from rollbook.system.tuning import TUNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from typing import BinaryIO, ClassVar

    from rollbook.keeper.ballast import Ballast
    from rollbook.keeper.rules import Rules
    from rollbook.keeper.warm_children import WarmChild, WarmChildren

SEAL_SECONDS = 60.0
_MUCH = 16
"""This many times TUNING.seal_bytes are sealed without waiting for more."""

_IMPOSSIBLE = (
    "recorded by rollbook-core, which does not seal: the rows stay in the journal, where every reader finds them. To "
    "seal them: rollbook repair, where rollbook is installed"
)


class Sealing(Child):
    """Runs `python -m rollbook.keeper.sealing_child RUN [--final]` when it is due.

    Args:
      ballast: given up when the disk is full, so that sealing can free the rest.
      run_folder, clock, report, command: see `Child`.
      is_here: seal in this process, at once, without a child.
    Attributes:
      successes: how many children have succeeded.
      warm: if given, one of these does the last sealing of a run.
      due_since: since when sealing waits for the health rules; None while it does not.
      is_possible: False with rollbook-core alone; then rows stay in the journal, and no child is ever started.
    """

    module, cause, work = "rollbook.keeper.sealing_child", "seal", "sealing"
    longest_pause = 300.0
    warm: ClassVar[WarmChildren | None] = None

    def __init__(
        self,
        run_folder: str,
        ballast: Ballast,
        clock: Callable[[], float],
        report: Callable[[str, str], None],
        command: Sequence[str] | None = None,
        *,
        is_here: bool = False,
    ) -> None:
        super().__init__(run_folder, clock, report, command)
        self.is_here = is_here
        self._has_own_command = command is not None
        self.is_possible = self._has_own_command or not is_core_alone()
        self._ballast = ballast
        self._first_seen: dict[str, float] = {}
        self.successes = 0
        self.due_since: float | None = None
        self._up_to: tuple[str, ...] = (f"--up-to={rules_path(run_folder)}",)

    def may_start(self) -> bool:
        """See `Child.may_start`; never with rollbook-core alone."""
        return self.is_possible and super().may_start()

    def trouble(self) -> dict[str, object] | None:
        """See `Child.trouble`. That rollbook-core does not seal is stated there too; it is no failure."""
        return super().trouble() if self.is_possible else {"words": _IMPOSSIBLE, "failures": 0}

    def step(
        self,
        waiting: Sequence[tuple[str, int]],
        found_at: float = 0.0,
        rules: Rules | None = None,
    ) -> None:
        """Collect the child if it has ended; start one if 4 MiB have waited for 10 s, if 64 MiB wait, or if something
        has waited for 60 s.

        Args:
          waiting: (path, bytes) of the journal files that can be sealed.
          found_at: when they were found.
          rules: rows that the health rules have not seen stay in the journal.
        """
        self.poll()
        now = self._clock()
        paths = {path for path, _ in waiting}
        self._first_seen = {path: self._first_seen.get(path, now) for path in paths}
        if not waiting or not self.may_start():
            self.due_since = None
            return
        waited, size = now - min(self._first_seen.values()), sum(size for _, size in waiting)
        if (
            size >= TUNING.seal_bytes * (1 if waited >= TUNING.seal_rest_seconds else _MUCH)
            or waited >= SEAL_SECONDS
            or self._ballast.tight()
        ):
            self.due_since = found_at if self.due_since is None else self.due_since
            if rules is None or not rules.are_asked or self._ballast.tight():
                self._start(final=False)
            elif rules.has_looked_since(self.due_since):
                self.options = (*type(self).options, *self._up_to)
                self._start(final=False)
            elif now - self.due_since >= TUNING.seal_delay_seconds:
                self._start(final=False)

    def begin_last(self, *, final: bool, all_rows: bool) -> bool:
        """`begin` at the end of a run; without `all_rows`, what the health rules have not seen stays in the journal."""
        self.options = type(self).options if all_rows else (*type(self).options, *self._up_to)
        return self.begin(final=final)

    def _start(self, *, final: bool) -> None:
        self.due_since = None
        self._ballast.give_up_if_tight()
        super()._start(final=final)
        self.options = type(self).options

    def _begun(self, words: Sequence[str], log: BinaryIO, final: bool) -> subprocess.Popen[bytes] | WarmChild | Ended:
        if self.is_here:
            return Ended(_sealed_here(words, log))
        # A child that seals during a run has a low priority and cannot raise it again.
        if self.warm is None or not final or self._has_own_command:
            return super()._begun(words, log, final)
        return self.warm.take(words, self._log_path)

    def _ended(self, status: int) -> bool:
        if status == 0:
            self.successes += 1
            return True
        self._failed(
            f"sealing failed: {self._why(status)}. What is not sealed stays in the journal, and is sealed when that is "
            "mended, or by rollbook repair"
        )
        return False


def _sealed_here(words: Sequence[str], log: BinaryIO) -> int:
    """The status of the sealing child's work, done in this process."""
    import io
    import traceback

    from rollbook.keeper import sealing_child

    text = io.StringIO()
    try:
        return sealing_child.main(words, text)
    except ours(Exception):
        traceback.print_exc(file=text)
        return 1
    finally:
        log.write(text.getvalue().encode("utf-8", "backslashreplace"))
