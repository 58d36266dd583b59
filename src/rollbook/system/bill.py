"""rollbook's cost and failures: counted per cause, reported once, listed at the end."""

from __future__ import annotations

import sys
from _thread import get_ident

from rollbook.errors import LoggingFailed, RollbookWarning
from rollbook.system.guard import PACKAGE, handled_by, is_foreign, tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")


_MOST_NAMES = 100
_MOST_WARNED = 10
_LONGEST_WORDS = 500


class Bill:
    """Counts per cause. Many threads may add. A count may then be short by a few; a warning is never lost.

    Args:
      strict: raise instead of warning (for tests).
      to: a run or scope whose `count` gets everything and reports it. None: this bill warns itself.
      who: prefix of reports, if there is no run.
      deliver: takes (cause, message) of each report, instead of a RollbookWarning.
    Attributes:
      counts: cause -> how often.
      names: cause -> name (a key, a clock, a column) -> how often, for the first hundred names of a cause.
      remarks: cause -> how often, for reports without loss of data; not part of `counts`.
      words: cause -> what its first report says.
    """

    __slots__ = (
        "_deliver",
        "_held",
        "_holding",
        "_to",
        "_warned_names",
        "_who",
        "counts",
        "names",
        "remarks",
        "strict",
        "words",
    )

    def __init__(
        self,
        strict: bool = False,
        *,
        to: Any = None,
        who: str = "",
        deliver: Callable[[str, str], object] | None = None,
    ) -> None:
        self.counts: dict[str, int] = {}
        self.names: dict[str, dict[str, int]] = {}
        self.remarks: dict[str, int] = {}
        self.words: dict[str, str] = {}
        self.strict = strict
        self._to, self._who, self._deliver = to, who, deliver
        self._warned_names: dict[str, set[str]] = {}
        self._holding: set[int] = set()
        self._held: list[LoggingFailed] = []

    def count(self, cause: str, n: int = 1, message: str = "", name: str = "") -> None:
        """Add n under `cause`. Warn with `message` the first time, and once per `name` (up to ten names a cause).

        Raises:
          LoggingFailed: with strict=True, if there is a message; inside `whole` it is delayed.
        """
        self.counts[cause] = self.counts.get(cause, 0) + n
        if name:
            names = self.names.setdefault(cause, {})
            if name in names or len(names) < _MOST_NAMES:
                names[name] = names.get(name, 0) + n
        if self._to is not None:
            self._to.count(cause, n, message, name)
            return
        if not message:
            return
        if self.strict:
            failure = LoggingFailed(f"{message} [{cause}]")
            if get_ident() not in self._holding:
                raise failure
            self._held.append(failure)
            return
        self._report_once(cause, message, name)

    __call__ = count

    def remark(self, cause: str, message: str) -> None:
        """Count an event without loss of data, and report `message` the first time. Never raises, even if strict."""
        self.remarks[cause] = self.remarks.get(cause, 0) + 1
        self._report_once(cause, message, "")

    def report(self, cause: str, message: str) -> None:
        """Count one under `cause`, and report `message` the first time."""
        self.count(cause, message=message)

    def whole(self, work: Callable[..., object], *arguments: object) -> None:
        """Do all of `work`: exceptions of strict=True are held until `raise_held`."""
        outermost = get_ident() not in self._holding
        self._holding.add(get_ident())
        try:
            work(*arguments)
        finally:
            if outermost:
                self._holding.discard(get_ident())

    def raise_held(self) -> None:
        """Raise the first held exception.

        Raises:
          LoggingFailed: if one was held.
        """
        held, self._held = self._held, []
        if held:
            raise held[0]

    def guard(self, cause: str, what: str, work: Callable[..., T], *arguments: object) -> T | None:
        """Do `work` and return its result. Its exceptions are counted under `cause` and reported once ("<what> failed:
        …").

        Raises:
          LoggingFailed: with strict=True. Exceptions from outside (`is_foreign`) pass through.
        """
        try:
            return work(*arguments)
        except Exception as err:
            self.failed(cause, what, err)
            return None

    def failed(self, cause: str, what: str, err: Exception) -> None:
        """The exception handling of `guard`, for loops where a call per step would be too slow."""
        if isinstance(err, LoggingFailed) or is_foreign(err):
            raise err
        self.count(cause, message=f"{what} failed: {type(err).__name__}: {err}")

    def _report_once(self, cause: str, message: str, name: str) -> None:
        self.words.setdefault(cause, message[:_LONGEST_WORDS])
        names_warned = self._warned_names.setdefault(cause, set())
        if name in names_warned or len(names_warned) >= _MOST_WARNED:
            return
        names_warned.add(name)
        if self._deliver is not None:
            self._deliver(cause, message)
        else:
            self._warn(cause, message, is_last=len(names_warned) == _MOST_WARNED)

    def _warn(self, cause: str, message: str, is_last: bool) -> None:
        message = f"{self._who}: {message}" if self._who else message
        more = "; further names of this cause are only counted" if is_last else ""
        where = "" if self._who else " in run.bill()"
        warn_caller(f"{message} [{cause}; reported once, counted{where}{more}]")


def counted(
    count: Callable[..., object],
    cause: str,
    what: str,
    then: str = "",
    kinds: type[Exception] | tuple[type[Exception], ...] = Exception,
) -> handled_by:
    """`with counted(run.count, "samples", "samples could not be kept"):` counts failures and reports them once.

    Args:
      count: `count` of a run, scope or `Bill`.
      cause: the cause of the count.
      what: what failed; the report adds the exception.
      then: the end of the report: what is lost, what continues.
      kinds: which exceptions it counts. `LoggingFailed` and exceptions from outside pass through.
    """
    return handled_by(_count_failure, count, cause, what, then, kinds=kinds)


def _count_failure(count: Callable[..., object], cause: str, what: str, then: str, err: Exception) -> None:
    count(cause, 1, f"{what} ({type(err).__name__}: {err}){then}"[:500])


def warn_caller(text: str) -> None:
    """A RollbookWarning at the first line outside rollbook; a line on stderr if warnings are errors."""
    with tolerating(Exception) as missed:  # a filter that turns warnings into errors must not affect training
        import warnings

        if sys.meta_path is not None:  # else the interpreter is ending, and no reader is left
            warnings.warn(text, RollbookWarning, stacklevel=_callers_level())
    if missed:
        with tolerating(Exception):  # stderr may be closed, or None
            sys.stderr.write(f"rollbook: {text}\n")


def _callers_level() -> int:
    """The `stacklevel` of the first line outside rollbook."""
    import os

    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
