"""JSON objects from disk as Python objects: a field whose value has the wrong type costs itself, never the object.

    class Attempt(JsonObject):
        n: int = 0
        ended: float | None = None
        offsets: dict[str, int] = EMPTY

    attempt = Attempt.of({"n": 2, "ended": "soon", "later": 1})      # 2, None, {}; others: {"later": 1}
    attempt.as_json()                                                # {"n": 2, "offsets": {}, "later": 1}

The annotation of a field says what is read (`KINDS`). No msgspec here: with what that imports it would take 5 MiB of
each keeper, and it reads an object whole or not at all.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, Self, dataclass_transform

else:

    def dataclass_transform(**_):
        """For the type checker, which then knows what a class takes; loading `typing` would cost more."""
        return lambda cls: cls


EMPTY: Any = None
"""The default of a list or a dict that is never missing: each object gets its own."""

WRONG = object()
"""Stands for a value of the wrong type."""

LARGEST = 2**63
"""Numbers from here on are no times and no counts."""


def _text(value: object) -> object:
    return value if isinstance(value, str) else WRONG


def _text_or_none(value: object) -> object:
    """Numbers as text: some older runs have them, for example as a group."""
    if value is None or isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) else WRONG


def _integer(value: object) -> object:
    return value if type(value) is int else WRONG


def _integer_or_none(value: object) -> object:
    return value if value is None or type(value) is int else WRONG


def _time_or_none(value: Any) -> object:
    if value is None:
        return None
    return value if type(value) in (int, float) and abs(value) < LARGEST else WRONG  # NaN fails too


def _object(value: object) -> object:
    return value if isinstance(value, dict) else WRONG


def _object_or_none(value: object) -> object:
    return value if value is None or isinstance(value, dict) else WRONG


def _texts(value: object) -> object:
    return [str(text) for text in value] if isinstance(value, list) else WRONG


def _texts_or_none(value: object) -> object:
    return None if value is None else _texts(value)


def _counts(value: object) -> object:
    if not isinstance(value, dict) or any(type(number) is not int for number in value.values()):
        return WRONG
    return value


def _counts_or_none(value: object) -> object:
    return None if value is None else _counts(value)


def _anything(value: object) -> object:
    return value


KINDS: dict[str, tuple[Callable[[Any], object], str]] = {
    "str": (_text, "text"),
    "str | None": (_text_or_none, "text"),
    "int": (_integer, "an integer"),
    "int | None": (_integer_or_none, "an integer"),
    "float | None": (_time_or_none, "a time"),
    "list[str]": (_texts, "a list"),
    "list[str] | None": (_texts_or_none, "a list"),
    "dict[str, int]": (_counts, "an object of integers"),
    "dict[str, int] | None": (_counts_or_none, "an object of integers"),
    "dict[str, Any]": (_object, "an object"),
    "dict[str, Any] | None": (_object_or_none, "an object"),
    "Any": (_anything, "anything"),
}
"""How a field is read, by its annotation: (its value as the annotation says or `WRONG`, what it should have been)."""


def _ignore(_text: str, _field: str) -> None:
    """Problems that nobody asked for."""


@dataclass_transform(kw_only_default=True)
class JsonObject:
    """A JSON object of known fields. A field that is not in the file has its default.

    Attributes:
      others: fields that this version does not know; they are kept when the object is written again.
    """

    __slots__ = ("__dict__", "others")
    if TYPE_CHECKING:
        others: dict[str, Any]
        _kinds: ClassVar[dict[str, tuple[Callable[[Any], object], str]]]
        _own: ClassVar[dict[str, Callable[[], object]]]

    def __init_subclass__(cls) -> None:
        cls._kinds, cls._own = {}, {}
        for name, kind in cls.__annotations__.items():
            cls._kinds[name] = KINDS[kind]
            if not kind.endswith(" | None") and kind.startswith(("dict", "list")):
                cls._own[name] = dict if kind.startswith("dict") else list

    def __init__(self, **given: Any) -> None:
        if not given.keys() <= self._kinds.keys():
            raise TypeError(f"{type(self).__name__} has no field {min(given.keys() - self._kinds.keys())}")
        self.__dict__, self.others = given, {}
        for name, empty in self._own.items():
            if name not in given:
                given[name] = empty()

    @classmethod
    def of(cls, content: Mapping[str, object], say: Callable[[str, str], None] = _ignore) -> Self:
        """The object in a file. A field with a wrong type counts as missing.

        Args:
          say: called with a sentence and the field for each of them.
        """
        taken: dict[str, object] = {}
        others: dict[str, object] = {}
        kinds = cls._kinds
        for name, value in content.items():
            if name not in kinds:
                others[name] = value
                continue
            read, kind = kinds[name]
            found = read(value)
            if found is WRONG:
                say(f"{name} is not {kind}", name)
            else:
                taken[name] = found
        for name, empty in cls._own.items():
            if name not in taken:
                taken[name] = empty()
        made = cls.__new__(cls)  # `__init__` checks names, which are sound here
        made.__dict__, made.others = taken, others
        return made

    def as_json(self) -> dict[str, Any]:
        """The content of the file: the fields that were read or set, and the others."""
        return {**self.__dict__, **self.others}

    def set(self, **changed: Any) -> None:
        """Set fields at once: an exception of a signal handler leaves all or none of them."""
        if not changed.keys() <= self._kinds.keys():
            raise TypeError(f"{type(self).__name__} has no field {min(changed.keys() - self._kinds.keys())}")
        self.__dict__.update(changed)

    def complete(self, found: Mapping[str, object]) -> None:
        """Add fields that were neither read nor set; unknown ones become `others`."""
        for name, value in found.items():
            (self.__dict__ if name in self._kinds else self.others).setdefault(name, value)

    def but(self, **changed: Any) -> Self:
        """The same with other values."""
        made = type(self)(**{**self.__dict__, **changed})
        made.others = dict(self.others)
        return made

    def has(self, field: str) -> bool:
        """Whether a field was read or set, as None perhaps."""
        return field in self.__dict__

    def forget(self, *fields: str) -> None:
        """Take fields away, also unknown ones; each then has its default."""
        for name in fields:
            self.__dict__.pop(name, None)
            self.others.pop(name, None)
            if name in self._own:
                self.__dict__[name] = self._own[name]()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__ and self.others == other.others

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.as_json()!r})"
