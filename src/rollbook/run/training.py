"""Which training a run records: what adapters know about it, and when a run that an adapter opened ends.

A run holds the trainings that adapters record in it. The first of a run that an adapter opened is its opener: the run
ends with it, or when nothing refers to it any more. A run that the caller opened has no opener.
"""

from __future__ import annotations

import gc
import re
import weakref
from _thread import get_ident, start_new_thread

from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

_WORDS = {
    "algorithm": ("algo", "algorithm", "algo_name", "agent"),
    "environment": ("env", "env_id", "env_name", "environment"),
}
"""The names that configurations use for what an adapter knows."""

_ALGORITHMS = (
    "a2c", "a3c", "appo", "ars", "bc", "cql", "crossq", "ddpg", "ddqn", "dpo", "dqn", "dreamer", "dreamerv3", "grpo",
    "her", "impala", "iql", "kto", "maskableppo", "muzero", "ppo", "qrdqn", "rainbow", "recurrentppo", "redq",
    "reinforce", "rloo", "sac", "sft", "td3", "td3bc", "tqc", "trpo", "vpg",
)  # fmt: skip
_ENVIRONMENT = re.compile(r"[\w./:-]+-v\d+")


class Training:
    """One training that an adapter records.

    Args:
      kind: what records it, such as "rollbook.adapters.sb3.RollbookCallback". Two of one kind are two trainings.
      host: the package that trains, such as "stable_baselines3"; "" if it is not known.
      user: the adapter's object. A run that it opened ends when it is gone.
      subject: what is trained, such as a model. None: each user has a training of its own.
      says: seed, algorithm and environment, if known.
      arguments: those of `rollbook.init`, if the run was opened for it.
      has_end: whether the host reports when training ends; a training that vanishes before is "crashed".
      scope: the scope of the run that gets it, "" for the run itself.
    Attributes:
      is_over: whether it has ended.
      has_gone_on: whether its run was finished and continued by this process.
    """

    __slots__ = (
        "_subject",
        "_user",
        "arguments",
        "has_end",
        "has_gone_on",
        "host",
        "is_over",
        "kind",
        "says",
        "scope",
        "thread",
    )

    def __init__(
        self,
        kind: str,
        host: str,
        user: object,
        subject: object,
        says: Mapping[str, object],
        arguments: Mapping[str, Any] | None,
        has_end: bool,
        scope: str = "",
    ) -> None:
        self.kind, self.host, self.arguments, self.has_end = kind, host, arguments, has_end
        self.says = {what: value for what, value in says.items() if value not in (None, "")}
        self._user, self._subject = weak(user), weak(user if subject is None else subject)
        self.scope, self.thread = scope, get_ident()
        self.is_over = self.has_gone_on = False

    @property
    def user(self) -> Any:
        """The adapter's object, None if it is gone."""
        return self._user()

    @property
    def is_live(self) -> bool:
        """Whether it is known to continue."""
        return not self.is_over and self.user is not None

    def is_about(self, subject: object) -> bool:
        """Whether this is what is trained."""
        return subject is not None and self._subject() is subject

    def take(self, user: object) -> None:
        """Another object of the adapter continues this training."""
        self._user = weak(user)


def weak(thing: object) -> Any:
    """A function that returns the object, or None once it is gone; one that cannot be watched is kept."""
    try:
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


def opener_of(run: Any) -> Training | None:
    """The training for which an adapter opened the run; None if the caller opened it."""
    opener: Training | None = run._parts.opener
    return opener


def trainings_of(run: Any) -> list[Training]:
    """The trainings that adapters have recorded in the run in this process, oldest first."""
    found: list[Training] = run._parts.trainings
    return found


def contradiction(run: Any, says: Mapping[str, object]) -> str:
    """What the run says and this training says otherwise, in words; "" if nothing.

    Only what is known on both sides counts: a seed; the algorithm and the environment of another training in the run,
    or those that the configuration names, if both are names that everybody uses.
    """
    known: list[tuple[str, object, object]] = [("seed", run.seed, says.get("seed"))]
    for other in trainings_of(run):
        known += [(what, value, says.get(what)) for what, value in other.says.items()]
    for what, words in _WORDS.items():
        for word in words:
            value = run.config.get(word)
            if isinstance(value, str) and _is_well_known(what, value) and _is_well_known(what, says.get(what)):
                known.append((what, value, says[what]))
    for what, there, here in known:
        if there is not None and here is not None and _plain(there) != _plain(here):
            return f"it says {what} {there}, and this training says {what} {here}"
    return ""


def _is_well_known(what: str, value: object) -> bool:
    if not isinstance(value, str):
        return False
    return _plain(value) in _ALGORITHMS if what == "algorithm" else _ENVIRONMENT.fullmatch(value) is not None


def _plain(value: object) -> object:
    return value.casefold().replace("-", "").replace("_", "") if isinstance(value, str) else value


def end_if_left(run: Any) -> None:
    """Finish a run whose opener is gone, in a thread of its own. The run's thread calls this once a second."""
    if _is_left(run):
        with tolerating(RuntimeError):  # the interpreter is ending: the run ends with it
            start_new_thread(run.finish, (_end_of(run),))


def end_those_left(runs: Collection[Any]) -> None:
    """Another training begins: finish the runs of this thread whose openers nothing in the program refers to.

    Objects of a training refer to each other, so they stay until the garbage collector looks: it is asked to, unless
    the program has switched it off.
    """
    mine = [run for run in runs if (opener := opener_of(run)) is not None and opener.thread == get_ident()]
    if any(run.status == "running" for run in mine) and gc.isenabled():
        gc.collect()
    for run in mine:
        if _is_left(run):
            run.finish(_end_of(run))


def _is_left(run: Any) -> bool:
    """Whether nothing records in this run any more. Says so once."""
    opener = opener_of(run)
    if opener is None or opener.is_over or opener.user is not None or run.status != "running":
        return False
    if any(training.is_live for training in trainings_of(run)):
        return False
    opener.is_over = True  # once; a run without an opener would be the caller's, to be joined by the next training
    return True


def _end_of(run: Any) -> str:
    opener = opener_of(run)
    return "crashed" if opener is not None and opener.has_end else "finished"
