"""What rollbook cost and what it could not do: counted per cause, said once, listed at the end."""

from __future__ import annotations

from rollbook.errors import LoggingFailed, RollbookWarning

__all__ = ["Bill"]


class Bill:
    """Counts per cause. Many threads may add; a count may then be short by a few, a warning is never lost.

    Attributes:
      counts: cause -> how often.
      strict: raise instead of warning (tests use it).
    """

    __slots__ = ("_said", "counts", "strict")

    def __init__(self, strict: bool = False) -> None:
        self.counts: dict[str, int] = {}
        self.strict = strict
        self._said: set[str] = set()

    def count(self, cause: str, n: int = 1, message: str = "") -> None:
        """Add n under `cause`; the first time a cause has a message, warn with it.

        Raises:
          LoggingFailed: under strict=True, if there is a message.
        """
        self.counts[cause] = self.counts.get(cause, 0) + n
        if not message:
            return
        if self.strict:
            raise LoggingFailed(f"{message} [{cause}]")
        if cause in self._said:
            return
        self._said.add(cause)
        try:
            import warnings

            text = f"{message} [{cause}; said once, counted in run.bill()]"
            warnings.warn(text, RollbookWarning, stacklevel=_callers_level())
        except Exception:  # a filter that turns warnings into errors must not reach the training loop
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
