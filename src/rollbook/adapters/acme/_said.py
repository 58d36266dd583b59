"""What a logger without a run could not do: counted per cause, warned about once."""

from __future__ import annotations

from rollbook.errors import RollbookWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["Said"]


class Said:
    """Counts per cause; the first time a cause comes up, a `RollbookWarning` says what happened.

    Never raises: a filter that turns warnings into errors must not reach a training loop.

    Attributes:
      counts: cause -> how often.
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self.counts: dict[str, int] = {}

    def count(self, cause: str, message: str) -> None:
        """Add one under `cause`; the first time, warn with `message`."""
        self.counts[cause] = self.counts.get(cause, 0) + 1
        if self.counts[cause] > 1:
            return
        import warnings

        try:
            warnings.warn(f"{self._who}: {message} (said once, counted after)", RollbookWarning, stacklevel=4)
        except RollbookWarning as err:
            import sys

            sys.stderr.write(f"rollbook: {err}\n")

    def shielded(self, cause: str, work: Callable[..., Any], *args: Any) -> None:
        """Call `work`; what it raises is counted under `cause` instead."""
        try:
            work(*args)
        except Exception as err:
            self.count(cause, f"{cause} failed with {type(err).__name__}: {err}")
