"""`Place`: somewhere that pieces of runs are kept, with puts that hold only under a condition; and doing steps against
one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from rollbook.remote.steps import Delete, Entry, Get, List, LookAgain, Operation, Put, Steps, Stored

__all__ = ["Place", "perform"]

T = TypeVar("T")

WORKERS = 8
"""Operations of one list that are done at once."""


class Place(Protocol):
    """A folder or a bucket. May be used by several threads at once.

    Every verb may raise a `PlaceError`: what is wrong with the place as a whole, such as a bucket that is not there or
    a token that has expired, which trying again does not mend.

    Attributes:
      url: what it is called; never holds a credential.
    """

    url: str

    def get(self, key: str, into: str = "") -> Stored:
        """What lies there; with `into` it goes to that file. Raises Missing, Away."""

    def get_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Stretches [start, stop) of what lies there. Raises Missing, Away."""

    def put(self, key: str, data: Any, *, create: bool = False, etag: str | None = None) -> str:
        """Lay bytes, or the content of a file (a path), down there; all of it or nothing appears. The new etag.

        Args:
          create: only if nothing lies there. etag: only if just that lies there.
        Raises:
          Refused: the condition did not hold, as far as can be told. Unknown: no answer.
        """

    def listing(self, prefix: str, known: Sequence[str] = ()) -> Iterator[Entry]:
        """Everything whose name begins so, in order of name. Raises Away.

        Args:
          known: names that were there, in order: a store may look at once into the stretches between some of them.
        """

    def folders(self, prefix: str) -> list[str]:
        """The names directly below a prefix (that is empty or ends with "/") that have more below them. Raises Away."""

    def delete(self, key: str) -> None:
        """Take away what lies there; nothing there is fine. Raises Unknown."""


def perform(steps: Steps[T], place: Place) -> T:
    """Do what steps ask for; what they return.

    Raises:
      PlaceError: the place cannot be used. What the steps raise.
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
                answer = _outcome(asked, place)
            elif len(asked) <= 1:
                answer = [_outcome(operation, place) for operation in asked]
            else:
                if pool is None:
                    from concurrent.futures import ThreadPoolExecutor

                    pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="rollbook-place")
                answer = list(pool.map(lambda operation: _outcome(operation, place), asked))
    finally:
        steps.close()
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _outcome(asked: Operation, place: Place) -> Any:
    try:
        if isinstance(asked, Get):
            return place.get(asked.key, asked.into)
        if isinstance(asked, List):
            return list(place.listing(asked.prefix))
        if isinstance(asked, Put):
            try:
                data = asked.source()
            except FileNotFoundError as err:
                return LookAgain(str(err))
            return place.put(asked.key, data, create=asked.create, etag=asked.etag)
        assert isinstance(asked, Delete)
        return place.delete(asked.key)
    except Exception as err:
        return err
