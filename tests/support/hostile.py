"""Hosts that an adapter may meet: one that raises whatever it is asked, one without an end, something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock


class Raises:
    """Every question to it is an exception."""

    def _no(self, *_: object, **__: object) -> Any:
        raise RuntimeError("the host refuses")

    __getattr__ = __str__ = __repr__ = __len__ = __iter__ = __getitem__ = __bool__ = __float__ = __int__ = _no
    __index__ = __call__ = __eq__ = __ne__ = __lt__ = __gt__ = __contains__ = __reduce__ = __fspath__ = _no
    __add__ = __radd__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __mod__ = __enter__ = _no
    __hash__ = object.__hash__


class Endless:
    """Whatever is asked of it is one more of its kind, as of a mock: whoever looks for the innermost is never through.

    Attributes:
      asked: how often, since the test began. More than `MOST` is without an end.
    """

    MOST = 20_000
    asked = 0

    def __getattr__(self, name: str) -> Any:
        Endless.asked += 1
        if name.startswith("__") or Endless.asked > self.MOST:
            raise AttributeError(name)
        return Endless()

    def __call__(self, *_: object, **__: object) -> Any:
        return self.__getattr__("answer")


class Hollow:
    """It has nothing."""

    __slots__ = ()


HOSTS: dict[str, Callable[[], Any]] = {
    "raises": Raises,
    "hollow": Hollow,
    "none": lambda: None,
    "number": lambda: -1.5,
    "text": lambda: "text",
    "endless": Endless,
    "mock": MagicMock,
    "list": lambda: [Raises()],
    "dict": lambda: {"a": Raises(), "b": Hollow()},
}
