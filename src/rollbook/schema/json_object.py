"""JSON objects from disk as Python objects: a field whose value has the wrong type costs itself, never the object.

    class Attempt(JsonObject):
        n: int = 0
        ended: float | None = None
        offsets: dict[str, int] = EMPTY

    attempt = Attempt.of({"n": 2, "ended": "soon", "later": 1})      # 2, None, {}; others: {"later": 1}
    attempt.as_json()                                                # {"n": 2, "offsets": {}, "later": 1}

The annotation of a field says how it is read (`READERS`). Why this is not a `msgspec.Struct`: a Struct is read whole or
not at all, does not know which fields were in the file (a file is written again with just these), and cannot set
several fields at once. Read field by field with `msgspec.convert`, a run.json takes four times as long, and msgspec
takes 3 MiB of each keeper, which needs it for nothing else. Four readers have rules that it has not: NaN is not a time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, ClassVar, Self, TypeAlias, dataclass_transform

    Reader: TypeAlias = Callable[[Any], object]
    """Returns a value as the annotation says, or `WRONG`."""

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


def _text_or_number(value: object) -> object:
    """Numbers as text: some older runs have them, for example as a group."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) else WRONG


def _integer(value: object) -> object:
    return value if type(value) is int else WRONG


def _time(value: Any) -> object:
    return value if type(value) in (int, float) and abs(value) < LARGEST else WRONG  # NaN fails too


def _object(value: object) -> object:
    return value if isinstance(value, dict) else WRONG


def _texts(value: object) -> object:
    return [str(text) for text in value] if isinstance(value, list) else WRONG


def _texts_by_name(value: object) -> object:
    is_wrong = not isinstance(value, dict) or any(not isinstance(text, str) for text in value.values())
    return WRONG if is_wrong else value


def _counts(value: object) -> object:
    is_wrong = not isinstance(value, dict) or any(type(number) is not int for number in value.values())
    return WRONG if is_wrong else value


READERS: dict[str, tuple[Reader, str]] = {
    "str": (_text, "text"),
    "str | None": (_text_or_number, "text"),
    "int": (_integer, "an integer"),
    "float": (_time, "a time"),
    "list[str]": (_texts, "a list"),
    "dict[str, int]": (_counts, "an object of integers"),
    "dict[str, str]": (_texts_by_name, "an object of texts"),
    "dict[str, Any]": (_object, "an object"),
    "Any": (lambda value: value, "anything"),
}
"""How a field is read, by its annotation: (its reader, what its value should be). One that ends in ` | None` is read as
the same without it, unless it has a reader of its own; null is no matter of readers."""


def ignore(_text: str, _field: str) -> None:
    """For reads that report no problems."""


@dataclass_transform(kw_only_default=True)
class JsonObject:
    """A JSON object of known fields. A field that is not in the file has its default.

    Attributes:
      others: fields that this version does not know; they are kept when the object is written again.
    """

    __slots__ = ("__dict__", "others")
    if TYPE_CHECKING:
        others: dict[str, Any]
        _readers: ClassVar[dict[str, tuple[Reader, str, bool]]]
        _empty: ClassVar[dict[str, Callable[[], object]]]  # fields of lists and dicts that are never missing

    def __init_subclass__(cls) -> None:
        cls._readers, cls._empty = {}, {}
        for name, kind in cls.__annotations__.items():
            bare = kind.removesuffix(" | None")
            if kind not in READERS and bare not in READERS:
                raise TypeError(
                    f"{cls.__name__}.{name} is annotated {kind!r}, and nothing reads that from JSON. Use one of "
                    f"{', '.join(READERS)}, or add a reader to READERS of schema/json_object.py"
                )
            cls._readers[name] = (*(READERS.get(kind) or READERS[bare]), kind != bare)
            if kind == bare and kind.startswith(("dict", "list")):
                cls._empty[name] = dict if kind.startswith("dict") else list

    def __init__(self, **given: Any) -> None:
        if not given.keys() <= self._readers.keys():
            raise self._unknown(given)
        self.__dict__, self.others = given, {}
        self._complete_empty()

    @classmethod
    def of(cls, content: Mapping[str, object], report: Callable[[str, str], None] = ignore) -> Self:
        """The object in a file. A field with a wrong type counts as missing.

        Args:
          report: called with a sentence and the field for each of them.
        """
        made = cls.__new__(cls)
        fields: dict[str, object] = {}  # one's own: a dict that instances share the keys of is slower to copy
        made.__dict__, made.others = fields, {}
        readers = cls._readers
        for name, value in content.items():
            if name not in readers:
                made.others[name] = value
                continue
            read, kind, takes_null = readers[name]
            found = None if value is None and takes_null else read(value)
            if found is WRONG:
                report(f"{name} is not {kind}", name)
            else:
                fields[name] = found
        made._complete_empty()
        return made

    def as_json(self) -> dict[str, Any]:
        """The content of the file: the fields that were read or set, and the others."""
        return {**self.__dict__, **self.others}

    def set(self, **changed: Any) -> None:
        """Set fields at once: an exception of a signal handler leaves all or none of them."""
        if not changed.keys() <= self._readers.keys():
            raise self._unknown(changed)
        self.__dict__.update(changed)

    def complete(self, found: Mapping[str, object]) -> None:
        """Add fields that were neither read nor set; unknown ones become `others`."""
        for name, value in found.items():
            (self.__dict__ if name in self._readers else self.others).setdefault(name, value)

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
        self._complete_empty()

    def _unknown(self, given: Mapping[str, object]) -> TypeError:
        return TypeError(f"{type(self).__name__} has no field {min(given.keys() - self._readers.keys())}")

    def _complete_empty(self) -> None:
        for name, empty in self._empty.items():
            if name not in self.__dict__:
                self.__dict__[name] = empty()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__ and self.others == other.others

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.as_json()!r})"
