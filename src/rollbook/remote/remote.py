"""`Remote`: a remote that stores pieces of runs and offers conditional puts. `perform` runs steps against one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from rollbook.remote.steps import Delete, Get, List, ListedObject, LookAgain, Operation, Put, Steps, Stored

T = TypeVar("T")

WORKERS = 8
"""How many operations of one list run at once."""


class Remote(Protocol):
    """A folder or a bucket. Several threads may use it at once.

    Every method may raise a `RemoteError`: a problem of the remote as a whole that retrying does not solve, such as a
    missing bucket or an expired token.

    Attributes:
      url: its address; never holds a credential.
    """

    url: str

    def get(self, key: str, into: str = "") -> Stored:
        """The content of a key; with `into`, written to that file. Raises Missing, Away."""

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Byte ranges [start, stop) of the content of a key. Raises Missing, Away."""

    def put(self, key: str, data: Any, *, create: bool = False, etag: str | None = None) -> str:
        """Store bytes, or the content of a file (a path): all of it appears, or nothing. Returns the new etag.

        Args:
          create: only if the key is free. etag: only if the stored version has this etag.
        Raises:
          Refused: the condition did not hold, so far as is known. Unknown: no answer.
        """

    def listing(self, prefix: str, known: Sequence[str] = ()) -> Iterator[ListedObject]:
        """All names with a prefix, in order. Raises Away.

        Args:
          known: names that existed earlier, in order: a store may list the stretches between some of them in parallel.
        """

    def folders(self, prefix: str) -> list[str]:
        """The names directly below a prefix (empty or ending with "/") that have more below them. Raises Away."""

    def delete(self, key: str) -> None:
        """Delete a key. A missing key is no error. Raises Unknown."""


def perform(steps: Steps[T], remote: Remote) -> T:
    """Perform the operations that steps yield; return what the steps return.

    Raises:
      RemoteError: the remote cannot be used. Also what the steps raise.
    """
    answer: Any = None
    pool: Any = None
    try:
        while True:
            try:
                asked = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
            except StopIteration as ended:
                result: T = ended.value
                return result
            if not isinstance(asked, list):
                answer = _outcome(asked, remote)
            elif len(asked) <= 1:
                answer = [_outcome(operation, remote) for operation in asked]
            else:
                if pool is None:
                    from rollbook.system.daemon_threads import DaemonThreads

                    pool = DaemonThreads(WORKERS, "rollbook-remote")
                answer = list(pool.map(lambda operation: _outcome(operation, remote), asked))
    finally:
        steps.close()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _outcome(asked: Operation, remote: Remote) -> Any:
    try:
        if isinstance(asked, Get):
            return remote.get(asked.key, asked.into)
        if isinstance(asked, List):
            return list(remote.listing(asked.prefix))
        if isinstance(asked, Put):
            try:
                data = asked.source()
            except FileNotFoundError as err:
                return LookAgain(str(err))
            return remote.put(asked.key, data, create=asked.create, etag=asked.etag)
        assert isinstance(asked, Delete)
        return remote.delete(asked.key)
    except Exception as err:
        return err
