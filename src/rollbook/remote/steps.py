"""The requests of the commit protocol to a store, as values: the protocol is pure code that yields them.

    def touch(key: str) -> Steps[str]:
        stored = yield Get(key)                          # raises Missing, Away
        return (yield Put(key, stored.data, etag=stored.etag))    # raises Refused, Unknown

    perform(touch("a"), remote)                          # against a remote; tests drive the same code with a scheduler

Operations of a list may run in any order and in parallel; the answer is a list of results and exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar


class Missing(Exception):
    """There is no such key."""


class Refused(Exception):
    """The condition of a put did not hold, or a retry of our own put found the result of the first one."""


class Unknown(Exception):
    """A put or delete got no clear answer: it may have happened, or may still happen."""


class LookAgain(Exception):
    """A file to be stored has gone or has changed: the folder is being written."""


class Away(Exception):
    """A read that got no answer."""


def message_of(err: Exception, url: str) -> str:
    """What is wrong with a remote, in words that name it once. Errors of a remote that does not answer name it
    already."""
    message = str(err)
    return message if message.startswith(url) else f"{url}: {message or 'it gives no answer'}"


class Stored(NamedTuple):
    """The content of a key; `modified` is unix seconds by the store's clock, 0.0 where that is not known."""

    data: bytes
    etag: str
    modified: float = 0.0


class ListedObject(NamedTuple):
    """A line of a listing; `modified` is unix seconds by the store's clock."""

    key: str
    size: int
    etag: str
    modified: float


class Get(NamedTuple):
    """Read a key. Answers Stored (without data if it went `into` a file); raises Missing, Away."""

    key: str
    into: str = ""


class List(NamedTuple):
    """All names with a prefix. Answers a list of ListedObject; raises Away."""

    prefix: str


class Put(NamedTuple):
    """Write a key. Answers its etag; raises Refused, Unknown.

    `source` returns what to store, bytes or the path of a file, when the put is made. With `create` the key must be
    free; with `etag` it must hold that version.
    """

    key: str
    source: Callable[[], Any]
    create: bool = False
    etag: str | None = None


class Delete(NamedTuple):
    """Delete a key. A missing key is no error. Raises Unknown."""

    key: str


Operation: TypeAlias = Get | List | Put | Delete
T = TypeVar("T")
Steps: TypeAlias = Generator[Any, Any, T]
