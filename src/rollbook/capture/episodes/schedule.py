"""Which episodes keep their full trajectory: the first ones, every n-th, the best, the worst, those with an alert.

Schedule(first=1, every=100, best=True, on_alert=True)
Schedule.of("first, every 100, best")        # the same, as in a configuration file
"""

from __future__ import annotations

from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_FORMS = (
    "True or 'all', False or 'never', a number n for every n-th, a text such as 'first, every 100, best, worst, "
    "alert', a function of the episode's number, or a Schedule"
)


class Schedule:
    """Decides for each episode whether its trajectory is kept.

    Args:
      first: this many episodes from the start.
      every: each episode whose number is a multiple of this; 0 for none.
      best, worst: an episode with a higher (lower) return than all before it. This is only known at the end, so every
        episode is held in memory until then (see the limits of `EpisodeRecorder`).
      on_alert: an episode with an alert from the auditor or the caller. Also held in memory.
      choose: a function of the episode's number, counted from 0, that returns a bool; it must not raise.
    """

    __slots__ = ("best", "choose", "every", "first", "on_alert", "worst")

    def __init__(
        self,
        *,
        first: int = 0,
        every: int = 0,
        best: bool = False,
        worst: bool = False,
        on_alert: bool = False,
        choose: Callable[[int], bool] | None = None,
    ) -> None:
        if first < 0 or every < 0:
            raise BadInput(f"Schedule(first={first}, every={every}): both count episodes; give 0 or more.")
        self.first, self.every, self.best, self.worst = int(first), int(every), bool(best), bool(worst)
        self.on_alert, self.choose = bool(on_alert), choose

    def __repr__(self) -> str:
        settings = [f"{name}={getattr(self, name)!r}" for name in self.__slots__ if getattr(self, name)]
        return f"Schedule({', '.join(settings)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schedule) and all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    @property
    def in_hindsight(self) -> bool:
        """Whether some episodes are chosen only after their end."""
        return self.best or self.worst or self.on_alert

    @property
    def never(self) -> bool:
        """Whether no episode is ever chosen."""
        return not (self.first or self.every or self.choose or self.in_hindsight)

    def from_start(self, number: int) -> bool:
        """Whether the episode with this number (from 0) is chosen before it begins."""
        if number < self.first or (self.every and number % self.every == 0):
            return True
        return self.choose is not None and bool(self.choose(number))

    @classmethod
    def of(cls, given: object) -> Schedule:
        """The schedule that `given` describes.

        Raises:
          BadInput: not a valid form; the message lists the forms.
        """
        if isinstance(given, Schedule):
            return given
        if given is None or given is False:
            return cls()
        if given is True:
            return cls(every=1)
        if isinstance(given, int):
            return cls(every=given)
        if isinstance(given, (list, tuple)):
            given = ", ".join(map(str, given))
        if isinstance(given, str):
            return cls._of_text(given)
        if callable(given):
            return cls(choose=given)
        raise BadInput(f"a schedule of episodes was given as {given!r:.80}; it can be {_FORMS}.")

    @classmethod
    def _of_text(cls, given: str) -> Schedule:
        chosen: dict[str, Any] = {}
        for part in filter(None, (piece.strip().lower() for piece in given.split(","))):
            word, _, number = part.replace("_", " ").partition(" ")
            if word in ("first", "every") and (not number or number.strip().isdigit()):
                chosen[word] = int(number or 1)
            elif part == "all":
                chosen["every"] = 1
            elif word in ("best", "worst") and not number:
                chosen[word] = True
            elif part in ("alert", "on alert", "on_alert"):
                chosen["on_alert"] = True
            elif part != "never":
                raise BadInput(
                    f"a schedule of episodes was given as {given!r}, where {part!r} is not known; it can be {_FORMS}."
                )
        return cls(**chosen)
