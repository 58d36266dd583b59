"""Every exception and warning of rollbook, in one tree.

    RollbookError
    ├── BadInput (also ValueError)      an argument that cannot be used
    │   ├── InvalidName                 a project, run, scope or key name
    │   ├── InvalidClock                a clock that was not declared, or a reading that is not an integer
    │   ├── UnknownOption               a choice outside the list (sink, mode, keeper …)
    │   ├── UnknownKey                  a key, table or clock that is not in the book
    │   └── AmbiguousKey                a canonical name that stands for several keys of the book
    ├── RunError
    │   ├── NotARun                     a folder without a readable run.json
    │   │   └── ForeignManifest         its run.json belongs to another tool
    │   ├── RunNotFound                 nothing matches
    │   ├── AmbiguousRun                more than one matches
    │   ├── RunIsLive                   another living process writes this run
    │   ├── RunExists                   a run with the id of the new run exists already
    │   ├── NothingToResume             resume="must", and there is no such run
    │   └── NewerFormat                 written by a later rollbook
    ├── RemoteError                     a remote cannot be used
    │   ├── NoSuchBucket                the bucket or container does not exist
    │   ├── NoPermission                the credentials are missing or do not allow it
    │   ├── CredentialsExpired          the token has expired
    │   ├── WrongRegion                 the bucket is in another region
    │   ├── ForeignRemote               the prefix holds other files than runs
    │   └── RemoteUnreachable           the remote does not answer; a later try may work
    ├── Damaged                         a file on disk has wrong content
    ├── LoggingFailed                   strict=True only: raised instead of a count and a warning
    └── MissingExtra (also ImportError) a package is not installed or fails to import

    RollbookWarning (UserWarning)       reported once per cause; each is counted in `run.bill()`

Each message has three parts: what was asked, what was found, what to do.
"""

from __future__ import annotations

__all__ = [
    "AmbiguousKey",
    "AmbiguousRun",
    "BadInput",
    "CredentialsExpired",
    "Damaged",
    "ForeignManifest",
    "ForeignRemote",
    "InvalidClock",
    "InvalidName",
    "LoggingFailed",
    "MissingExtra",
    "NewerFormat",
    "NoPermission",
    "NoSuchBucket",
    "NotARun",
    "NothingToResume",
    "RemoteError",
    "RemoteUnreachable",
    "RollbookError",
    "RollbookWarning",
    "RunError",
    "RunExists",
    "RunIsLive",
    "RunNotFound",
    "UnknownKey",
    "UnknownOption",
    "WrongRegion",
    "did_you_mean",
    "suggesting",
]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    R = TypeVar("R")


class RollbookError(Exception):
    """Base class of all exceptions that rollbook raises on purpose.

    Args:
      message: what was asked and what was found.
      advice: what to do; the text of the error has it after the message.
      more: attributes of a further base class, such as the `name` of an ImportError.
    Attributes:
      message, advice: as above.
    """

    def __init__(self, message: str = "", advice: str = "", **more: object) -> None:
        self.message, self.advice = str(message), str(advice).strip()
        super().__init__(f"{self.message} {self.advice}" if self.advice else message, **more)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the lines outside of rollbook that led to the error, and the message."""
        import os
        import traceback

        inside = os.path.dirname(__file__) + os.sep
        frames = [each for each in traceback.extract_tb(self.__traceback__) if not each.filename.startswith(inside)]
        users = [each for each in frames if f"{os.sep}IPython{os.sep}" not in each.filename]
        cause = [f"({type(self.__cause__).__name__}: {self.__cause__})"] if self.__cause__ else []
        return [*(line.rstrip() for line in traceback.format_list(users)), f"{type(self).__name__}: {self}", *cause]


class BadInput(RollbookError, ValueError):
    """An argument that cannot be used."""


class InvalidName(BadInput):
    """A name that is not a single, printable path component."""


class InvalidClock(BadInput):
    """A clock that was not declared, or a clock reading that is not an integer."""


class UnknownOption(BadInput):
    """A value that is not in the list of choices."""


class UnknownKey(BadInput, KeyError):
    """A key, table or clock that is not in the book."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0]) if self.args else ""


class AmbiguousKey(BadInput, LookupError):
    """A canonical name that stands for several keys of the book."""


class RunError(RollbookError):
    """Base class of errors about a whole run."""


class NotARun(RunError):
    """A folder without a readable run.json."""


class ForeignManifest(NotARun):
    """Another tool wrote and owns the run.json of this folder. rollbook does not change it."""


class RunNotFound(RunError, LookupError):
    """No run matches the request."""


class AmbiguousRun(RunError, LookupError):
    """More than one run matches the request."""


class RunIsLive(RunError):
    """Another living process writes this run."""


class RunExists(RunError):
    """A run with the id of the new run exists already."""


class NothingToResume(RunError):
    """There is no run or no checkpoint to continue from."""


class NewerFormat(RunError):
    """A later version of rollbook wrote the run."""


class RemoteError(RollbookError):
    """A remote cannot be used."""


class NoSuchBucket(RemoteError):
    """The bucket or container does not exist."""


class NoPermission(RemoteError):
    """The credentials are missing or do not allow it."""


class CredentialsExpired(RemoteError):
    """The token has expired."""


class WrongRegion(RemoteError):
    """The bucket is in another region than the requested one."""


class ForeignRemote(RemoteError):
    """The prefix holds other files than runs."""


class RemoteUnreachable(RemoteError):
    """The remote does not answer. A later try may work."""


class Damaged(RollbookError):
    """A file on disk has wrong content."""


class LoggingFailed(RollbookError):
    """Raised with strict=True. Otherwise rollbook counts the failure and warns."""


class MissingExtra(RollbookError, ImportError):
    """An optional package is not installed or fails to import."""


class RollbookWarning(UserWarning):
    """Data was refused, dropped or changed. Reported once per cause."""


_MOST_CHOICES = 12


_LONGEST_NAME = 500


def nearest_name(asked: str, choices: list[str]) -> str | None:
    """The choice that is spelled most like a name; None if none is similar."""
    return next(iter(_alike(asked, choices, 1, 0.6)), None)


def _alike(asked: str, choices: list[str], most: int, least: float) -> list[str]:
    """At most `most` choices with a spelling similar to a name, the nearest first. least: the similarity, 0 to 1."""
    import difflib

    # Comparing very long texts is slow, and no name is that long.
    return difflib.get_close_matches(asked, choices, most, least) if len(asked) <= _LONGEST_NAME else []


def did_you_mean(asked: str, choices: list[str]) -> str:
    """The end of an error message: the closest choice, if any is similar, then the choices, sorted, each once.

    If there are more than twelve, the most similar come first, then others up to twelve, then the number of the rest.

    Args:
      asked: the name that was not found.
      choices: the names that exist.
    """
    choices = sorted(set(choices))
    near = nearest_name(asked, choices)
    hint = f" Did you mean {near!r}?" if near is not None else ""
    # Names can come from files. Escape control characters, so that they cannot drive a terminal.
    few = choices
    if len(choices) > _MOST_CHOICES:
        few = list(dict.fromkeys([*_alike(asked, choices, _MOST_CHOICES, 0.4), *choices]))[:_MOST_CHOICES]
    shown = [name if name.isprintable() and name else repr(name) for name in few]
    more = f" and {len(choices) - len(few):,} more" if len(few) < len(choices) else ""
    return f"{hint} Available: {', '.join(shown) or 'none'}{more}."


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap `function`: an unknown keyword raises a TypeError that suggests the closest valid keyword.

    Args:
      function: any function; its arguments and result stay.
    """
    code: Any = function.__code__
    takes = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    shown = [name for name in takes if name != "self"]

    def call(*arguments: P.args, **named: P.kwargs) -> R:
        for name in named:
            if name not in takes:
                raise TypeError(f"{function.__name__}() takes no argument {name!r}.{did_you_mean(name, shown)}")
        return function(*arguments, **named)

    # Does what functools.wraps does, without loading functools into the training process.
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(call, name, getattr(function, name))
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call
