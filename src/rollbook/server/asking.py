"""The HTTP door: the shape of a request is made from the question, and its fields become the question again."""

from __future__ import annotations

import functools
import operator
import typing
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec

from rollbook.errors import BadInput
from rollbook.runs.questions import Groups
from rollbook.schema.question import Question, alternatives, item_of, of_text, options, title_of
from rollbook.server.shared.shapes import Ask, OfRun, Refused
from rollbook.server.shared.state import ServerContext

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rollbook.server.shared.catalogue import RunRow

Q = TypeVar("Q", bound=Question)


class NamedRuns(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Runs that are taken together.

    Attributes:
      name: of the group; runs: as the table of runs names them.
    """

    name: str
    runs: list[str]


def shape_of(
    question: type[Question],
    *own: tuple[str, Any, Any],
    several: Mapping[str, str] | None = None,
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> type[Ask]:
    """The request of a question: its fields, except those that let it write, and the runs that it is about.

    Args:
      own: further fields, (name, type, default), of this door alone, which change no number.
      several: {field: the name under which one request gives several of it, each an answer of its own}.
      defaults: of this door, for fields that say how much of the answer is wanted.

    A mapping of groups is a list of `NamedRuns` here, since names such as "10" lose their order as keys of an object.
    """
    about = "which runs, as the table of runs names them; null: those of the groups, or all."
    runs = ("runs", Annotated[list[str] | None, msgspec.Meta(description=about)], None)
    return _shape(question, Ask, [*_fields(question, several or {}, defaults), *own, runs])


def shape_of_one(
    question: type[Question], *own: tuple[str, Any, Any], defaults: Mapping[str, object] = MappingProxyType({})
) -> type[Any]:
    """The request of a question about one run: its fields, and which run; `own` and `defaults` as in `shape_of`."""
    return typing.cast("type[Any]", _shape(question, OfRun, [*_fields(question, defaults=defaults), *own]))


def _fields(
    question: type[Question],
    several: Mapping[str, str] = MappingProxyType({}),
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> list[Any]:
    fields: list[Any] = []
    for option in options(question):
        if not option.writes:
            kinds = [list[NamedRuns] if kind == Groups else kind for kind in of_text(option)]
            if item_of(option) is str:  # a text alone is a list of one
                kinds = [kind for kind in kinds if kind is not str]
            kind: Any = functools.reduce(operator.or_, kinds)
            described: Any = Annotated[kind, msgspec.Meta(description=option.words)]
            usual = defaults[option.name] if option.amount and option.name in defaults else option.default
            default = () if usual is msgspec.NODEFAULT else (usual,)
            if option.name in several:
                described = Annotated[list[kind], msgspec.Meta(description=option.words)]
                default = default and ([],)
            fields.append((several.get(option.name, option.name), described, *default))
    return fields


def _shape(question: type[Question], base: type[Ask], fields: list[Any]) -> type[Ask]:
    shape = msgspec.defstruct(
        f"{title_of(question)}Ask",
        fields,
        bases=(base,),
        namespace={"__doc__": question.__doc__},
        module=__name__,
        kw_only=True,
        forbid_unknown_fields=True,
    )
    return typing.cast("type[Ask]", shape)


def of_one_run(ask: OfRun, question: type[Q]) -> Q:
    """The question of a request about one run."""
    return question(**{option.name: getattr(ask, option.name) for option in options(question) if not option.writes})


def asked_of(context: ServerContext, ask: Ask, question: type[Q], **one: object) -> tuple[Q, list[RunRow]]:
    """The question of a request, and the runs that it is about.

    Args:
      one: fields of which the request gives several, with the value that the question has meanwhile.
    Raises:
      Refused: more runs than may be asked about at once, or an unknown one. BadInput: two groups of one name.
    """
    asked = [option.name for option in options(question) if not option.writes and option.name not in one]
    given = {name: getattr(ask, name) for name in asked} | one
    named: list[str] = []
    for name, value in given.items():
        if isinstance(value, list) and value and isinstance(value[0], NamedRuns):
            groups: dict[str, list[str]] = {}
            for group in value:
                if group.name in groups:
                    raise BadInput(f"two groups are called {group.name!r:.80}.", "Give each a name of its own")
                groups[group.name] = [row.folder for row in context.rows(group.runs)]
                named += group.runs
            given[name] = groups
        elif isinstance(value, list) and not value and any(kind == Groups for kind in _kinds(question, name)):
            given[name] = {}
    runs = getattr(ask, "runs", None)
    rows = (
        context.rows(runs)
        if runs is not None
        else context.rows(named)
        if named
        else [*context.catalogue.snapshot().rows.values()]
    )
    if len(rows) > context.limits.runs:
        raise Refused("too_large", f"more than {context.limits.runs:,} runs at once", "Choose fewer.")
    return question(**given), rows


def _kinds(question: type[Question], name: str) -> list[Any]:
    return next(alternatives(option.type) for option in options(question) if option.name == name)
