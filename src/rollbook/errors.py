"""Every exception and warning of rollbook, in one tree.

    RollbookError
    ├── BadInput (also ValueError)      an argument that cannot be used
    │   ├── InvalidName                 a project, run, scope or key name
    │   ├── InvalidClock                a clock nobody declared, or no integer
    │   ├── UnknownOption               a choice outside the list (sink, mode, keeper …)
    │   ├── UnknownKey                  a key, table or clock the book does not hold
    │   └── AmbiguousKey                a canonical name that stands for several keys of the book
    ├── RunError
    │   ├── NotARun                     a folder without a run.json that can be read
    │   │   └── ForeignManifest         its run.json is another tool's
    │   ├── RunNotFound                 nothing matches
    │   ├── AmbiguousRun                more than one matches
    │   ├── RunIsLive                   another living process writes this run
    │   ├── RunExists                   there is a run of the id that a new one was to have
    │   ├── NothingToResume             resume="must", and there is nothing
    │   └── NewerFormat                 written by a later rollbook
    ├── PlaceError                      a place where runs are kept cannot be used
    │   ├── NoSuchBucket                there is no such bucket or container
    │   ├── NoPermission                the credentials do not allow it, or there are none
    │   ├── CredentialsExpired          a token that was good once
    │   ├── WrongRegion                 the bucket is elsewhere
    │   ├── NotARunPlace                something else lies under the prefix
    │   └── PlaceAway                   no answer; later it may work
    ├── Damaged                         bytes on disk that are not what they should be
    ├── LoggingFailed                   strict=True only: what would have been counted and warned about
    └── MissingExtra (also ImportError) a package is not installed, or does not load

    RollbookWarning (UserWarning)       reported once per cause; each is counted in `run.bill()`

Messages have three parts: what was asked, what was found, what to do.
"""

from __future__ import annotations

__all__ = [
    "AmbiguousKey",
    "AmbiguousRun",
    "BadInput",
    "CredentialsExpired",
    "Damaged",
    "ForeignManifest",
    "InvalidClock",
    "InvalidName",
    "LoggingFailed",
    "MissingExtra",
    "NewerFormat",
    "NoPermission",
    "NoSuchBucket",
    "NotARun",
    "NotARunPlace",
    "NothingToResume",
    "PlaceAway",
    "PlaceError",
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
    """The root of everything rollbook raises on purpose."""


class BadInput(RollbookError, ValueError):
    """An argument that cannot be used."""


class InvalidName(BadInput):
    """A name that is no single, printable path component."""


class InvalidClock(BadInput):
    """A clock that was not declared, or a value that is no integer."""


class UnknownOption(BadInput):
    """A choice outside the list of choices."""


class UnknownKey(BadInput, KeyError):
    """A key, table or clock that the book does not hold."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0]) if self.args else ""


class AmbiguousKey(BadInput, LookupError):
    """A canonical name that stands for several keys of the book."""


class RunError(RollbookError):
    """Something about a run as a whole."""


class NotARun(RunError):
    """A folder without a readable run.json."""


class ForeignManifest(NotARun):
    """The run.json of a folder was written by another tool, which is the owner of it: it is left as it is."""


class RunNotFound(RunError, LookupError):
    """No run matches what was asked."""


class AmbiguousRun(RunError, LookupError):
    """More than one run matches what was asked."""


class RunIsLive(RunError):
    """Another living process writes this run."""


class RunExists(RunError):
    """There is a run of the id that a new one was to have."""


class NothingToResume(RunError):
    """There is no run, or no checkpoint, to go on from."""


class NewerFormat(RunError):
    """The run was written by a later version of rollbook."""


class PlaceError(RollbookError):
    """A place where runs are kept cannot be used."""


class NoSuchBucket(PlaceError):
    """There is no such bucket or container."""


class NoPermission(PlaceError):
    """The credentials do not allow it, or there are none."""


class CredentialsExpired(PlaceError):
    """A token was good once, and is not any more."""


class WrongRegion(PlaceError):
    """The bucket is in another region than was asked."""


class NotARunPlace(PlaceError):
    """Something else than runs lies under the prefix."""


class PlaceAway(PlaceError):
    """The place gives no answer; later it may."""


class Damaged(RollbookError):
    """Bytes on disk are not what they should be."""


class LoggingFailed(RollbookError):
    """Raised under strict=True where rollbook would otherwise count and warn."""


class MissingExtra(RollbookError, ImportError):
    """An optional package is not installed."""


class RollbookWarning(UserWarning):
    """Something was refused, dropped or changed; reported once per cause."""


_MOST_CHOICES = 60


_LONGEST_NAME = 500


def did_you_mean(asked: str, choices: list[str]) -> str:
    """The tail of an error message: the nearest choice, if one is near, then all of them, sorted."""
    import difflib

    # What is longer than any name would take long to compare.
    near = difflib.get_close_matches(asked, choices, n=1) if len(asked) <= _LONGEST_NAME else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    # Names come from files, too: what could drive a terminal is written out.
    shown = [name if name.isprintable() and name else repr(name) for name in sorted(choices)[:_MOST_CHOICES]]
    more = f" and {len(choices) - _MOST_CHOICES:,} more" if len(choices) > _MOST_CHOICES else ""
    return f"{hint} Available: {', '.join(shown) or 'none'}{more}."


def suggesting(function: Callable[P, R]) -> Callable[P, R]:
    """The same function; a keyword that it does not take is a TypeError that names the nearest one it does."""
    code: Any = function.__code__
    takes = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    shown = [name for name in takes if name != "self"]

    def call(*arguments: P.args, **named: P.kwargs) -> R:
        for name in named:
            if name not in takes:
                raise TypeError(f"{function.__name__}() takes no argument {name!r}.{did_you_mean(name, shown)}")
        return function(*arguments, **named)

    # As functools.wraps does it, which the training process need not load.
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(call, name, getattr(function, name))
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call
