"""What a question is: one frozen struct, whose fields are the only list of its options; each door is made from it.

    class Compare(Question):
        '''Which group is better, how certain that is, and what would decide it.'''
        metric: Annotated[str, words("a key; canonical names are accepted.")]

`options(Compare)` lists name, type, default and words of each field. `RunSet.compare`, `rollbook compare`,
`POST /api/compare` and the agents' tool `compare` offer exactly these (`tests/questions`). A door may add
what is its own: which runs, a format of output, a budget of characters; nothing that changes a number.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a question. Where data has its name, as in `Series`, the class is called `SeriesQuestion`."""


def title_of(question: type[Question]) -> str:
    """The name of a question as shapes of requests have it: that of `SeriesQuestion` is Series."""
    return question.__name__.removesuffix("Question")


def name_of(question: type[Question]) -> str:
    """The name that doors give a question: `SharedPrompts` is shared_prompts, `SeriesQuestion` is series."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", title_of(question)).lower()


def words(text: str, *, writes: bool = False, amount: bool = False, commas: bool = False) -> msgspec.Meta:
    """What an option means, in one or two sentences.

    Args:
      text: the sentences.
      writes: whether the option makes the question write files; doors that only read leave it out.
      amount: whether the option says how much of the answer is wanted; a door may have a default of its own for it.
      commas: whether one text says a list, with commas; doors that take text then need no list.
    """
    return msgspec.Meta(description=text, extra={"writes": writes, "amount": amount, "commas": commas})


class Option(NamedTuple):
    """A field of a question.

    Attributes:
      name, type, default, words: as the struct has them; `default` is `msgspec.NODEFAULT` if there is none.
      writes: whether it makes the question write files.
      amount: whether it says how much of the answer is wanted.
      commas: whether one text says a list of it.
    """

    name: str
    type: Any
    default: Any
    words: str
    writes: bool
    amount: bool = False
    commas: bool = False


def options(question: type[Question]) -> list[Option]:
    """The options of a question, in the order of its fields; those without a default first."""
    hints = typing.get_type_hints(question, include_extras=True)
    found = []
    for field in msgspec.structs.fields(question):
        hint = hints[field.name]
        meta = next((extra for extra in typing.get_args(hint)[1:] if isinstance(extra, msgspec.Meta)), msgspec.Meta())
        bare = typing.get_args(hint)[0] if typing.get_origin(hint) is typing.Annotated else hint
        extra = meta.extra or {}
        found.append(
            Option(
                field.name,
                bare,
                field.default,
                meta.description or "",
                bool(extra.get("writes")),
                bool(extra.get("amount")),
                bool(extra.get("commas")),
            )
        )
    return sorted(found, key=lambda option: option.default is not msgspec.NODEFAULT)


def alternatives(kind: Any) -> list[Any]:
    """The members of a union, or the type itself."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [*typing.get_args(kind)]
    return [kind]


def of_text(option: Option) -> list[Any]:
    """The alternatives of an option's type that text or JSON can say: no functions, and no list that a text says."""
    return [
        one
        for one in alternatives(option.type)
        if typing.get_origin(one) is not Callable and not _is_callable(one) and not (option.commas and _is_list(one))
    ]


def item_of(option: Option) -> Any:
    """The type of the items if the option takes a list; None if it does not."""
    lists = [one for one in of_text(option) if _is_list(one)]
    return typing.get_args(lists[0])[0] if lists else None


def _is_list(kind: Any) -> bool:
    return typing.get_origin(kind) in (Sequence, list)


def _is_callable(kind: Any) -> bool:
    origin = typing.get_origin(kind)
    return isinstance(origin, type) and issubclass(origin, Callable)  # type: ignore[arg-type]
