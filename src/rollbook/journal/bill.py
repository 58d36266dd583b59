"""What rollbook cost and what it could not do: counted per cause, said once, listed at the end."""

from __future__ import annotations

from rollbook.errors import LoggingFailed, RollbookWarning
from rollbook.foreign import is_foreign

__all__ = ["Bill"]


_MOST_NAMES = 100
_MOST_SAID = 10


class Bill:
    """Counts per cause. Many threads may add; a count may then be short by a few, a warning is never lost.

    Attributes:
      counts: cause -> how often.
      names: cause -> name (a key, a clock, a column) -> how often, for the first hundred names of a cause.
      strict: raise instead of warning (tests use it).
    """

    __slots__ = ("_said", "counts", "names", "strict")

    def __init__(self, strict: bool = False) -> None:
        self.counts: dict[str, int] = {}
        self.names: dict[str, dict[str, int]] = {}
        self.strict = strict
        self._said: dict[str, set[str]] = {}

    def count(self, cause: str, n: int = 1, message: str = "", name: str = "") -> None:
        """Add n under `cause`; warn with `message` the first time, for each `name` anew (ten names a cause).

        Raises:
          LoggingFailed: under strict=True, if there is a message.
        """
        self.counts[cause] = self.counts.get(cause, 0) + n
        if name:
            names = self.names.setdefault(cause, {})
            if name in names or len(names) < _MOST_NAMES:
                names[name] = names.get(name, 0) + n
        if not message:
            return
        if self.strict:
            raise LoggingFailed(f"{message} [{cause}]")
        said = self._said.setdefault(cause, set())
        if name in said or len(said) >= _MOST_SAID:
            return
        said.add(name)
        last = "; further names of this cause are only counted" if len(said) == _MOST_SAID else ""
        try:
            import warnings

            text = f"{message} [{cause}; said once, counted in run.bill(){last}]"
            warnings.warn(text, RollbookWarning, stacklevel=_callers_level())
        except Exception as err:  # a filter that turns warnings into errors must not reach the training loop
            if is_foreign(err):
                raise
            import sys

            sys.stderr.write(f"rollbook: {message} [{cause}]\n")


def _callers_level() -> int:
    """The `stacklevel` at which a warning names the first line outside rollbook."""
    import os
    import sys

    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and os.path.abspath(frame.f_code.co_filename).startswith(ours):
        frame, level = frame.f_back, level + 1
    return level
