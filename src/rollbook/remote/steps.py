"""What the commit protocol asks of a store, as values: the protocol itself is pure code that yields them.

    def touch(key: str) -> Steps[str]:
        stored = yield Get(key)                          # raises Missing, Away
        return (yield Put(key, stored.data, etag=stored.etag))    # raises Refused, Unknown

    perform(touch("a"), place)                           # against a place; tests drive the same code with a scheduler

A list of operations may be done in any order and at once; its answer is a list of results and exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

__all__ = [
    "Away",
    "Delete",
    "Entry",
    "Get",
    "List",
    "LookAgain",
    "Missing",
    "Operation",
    "Put",
    "Refused",
    "Steps",
    "Stored",
    "Unknown",
    "said_of",
]


class Missing(Exception):
    """There is nothing of that name."""


class Refused(Exception):
    """The condition of a put did not hold, or a retry of our own put found what the first one had made."""


class Unknown(Exception):
    """A put or delete got no answer that says what became of it: it may have happened, or may happen yet."""


class LookAgain(Exception):
    """What was to be stored is not there any more, or not as it was: files of a folder that changes."""


class Away(Exception):
    """A look that got no answer."""


def said_of(err: Exception, url: str) -> str:
    """What is wrong with a place, in words that name it once: places say of themselves why they give no answer."""
    said = str(err)
    return said if said.startswith(url) else f"{url}: {said or 'it gives no answer'}"


class Stored(NamedTuple):
    """What lies under a name; `modified` is unix seconds by the store's clock, 0.0 where that is not known."""

    data: bytes
    etag: str
    modified: float = 0.0


class Entry(NamedTuple):
    """A line of a listing; `modified` is unix seconds by the store's clock."""

    key: str
    size: int
    etag: str
    modified: float


class Get(NamedTuple):
    """Look at what lies under a name. Answers Stored (with no data if it went `into` a file); raises Missing, Away."""

    key: str
    into: str = ""


class List(NamedTuple):
    """All names that begin so. Answers a list of Entry; raises Away."""

    prefix: str


class Put(NamedTuple):
    """Lay something down. Answers its etag; raises Refused, Unknown.

    `source` gives what is to be stored, bytes or the path of a file, when the put is made. With `create` nothing may
    lie there; with `etag` just that.
    """

    key: str
    source: Callable[[], Any]
    create: bool = False
    etag: str | None = None


class Delete(NamedTuple):
    """Take away what lies there; nothing there is fine. Raises Unknown."""

    key: str


Operation: TypeAlias = Get | List | Put | Delete
T = TypeVar("T")
Steps: TypeAlias = Generator[Any, Any, T]
