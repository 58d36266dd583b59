"""The door of the command line: the options of a command are made from the fields of its question."""

from __future__ import annotations

import typing
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import click
import msgspec

from rollbook.schema.question import Option, Question, alternatives, item_of, of_text, options

F = TypeVar("F", bound=Callable[..., Any])


def asks(
    question: type[Question],
    *,
    short: Mapping[str, str] | None = None,
    arguments: Collection[str] = (),
    of: str = "",
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> Callable[[F], F]:
    """A decorator: the command takes each field of the question as the option --name, and gets it under that name.

    Args:
      question: which.
      short: {field: other names of the option}, such as {"metric": "-m"}.
      arguments: fields that the command takes in another way.
      defaults: of this command, for fields that say how much of the answer is wanted.
      of: for a command of several questions, what these options are about. They are None unless they are given.
    """

    def decorated(command: F) -> F:
        for option in reversed(options(question)):
            if option.name not in arguments:
                if option.amount and option.name in defaults:
                    option = option._replace(default=defaults[option.name])
                command = _option(option, (short or {}).get(option.name), of)(command)
        return command

    return decorated


def _option(option: Option, letter: str | None, of: str) -> Callable[[F], F]:
    default = None if option.default is msgspec.NODEFAULT else option.default
    named = letter.split() if letter else []
    words = _as_typed(option)
    if default not in (None, "", ()) and option.type is not bool:
        words += f"; default: {default}"
    words = f"{of}: {words}." if of else f"{words[:1].upper()}{words[1:]}."
    name = f"--{option.name.replace('_', '-')}"
    if option.type is bool:
        return click.option(*named, name, option.name, is_flag=True, default=None if of else False, help=words)
    if item_of(option) is not None:
        words = f"{words[:-1]}; may be given several times."
        kind: Any = _Kind(option._replace(type=item_of(option) | _words_of(option.type)))
        return click.option(
            *named,
            name,
            option.name,
            multiple=True,
            type=kind,
            help=words,
            callback=lambda _context, _option, given: None if of and not given else _of_list(given, option.default),
        )
    return click.option(*named, name, option.name, default=None if of else default, type=_Kind(option), help=words)


def _as_typed(option: Option) -> str:
    """What an option means, to somebody who types it: there is no None in a shell, and no `runs.table` to look into."""
    words = option.words.rstrip(".").replace("see `table`", "see rollbook ls --help").replace("`", "")
    if _takes_none(option):
        return words.replace("None:", "none:")
    return words.replace("or None:", "default:").replace("None:", "default:")


def _words_of(kind: Any) -> Any:
    """The words that may stand for a list, as a type; None if there are none."""
    return next((one for one in alternatives(kind) if typing.get_origin(one) is Literal or one is str), None)


def _of_list(given: tuple[Any, ...], default: Any) -> Any:
    """What was given several times; a word that stands for a list is alone."""
    if not given:
        return None if default is msgspec.NODEFAULT else default
    if isinstance(default, str) and any(isinstance(one, str) for one in given):
        if len(given) > 1:
            raise click.BadParameter(f"{', '.join(map(str, given))}: a word stands for all; give it alone, or numbers")
        return given[0]
    return list(given)


def kind_of(question: type[Question], name: str) -> click.ParamType:  # type: ignore[type-arg]
    """The type of one field of a question, for a command that has an option of its own for it."""
    return _Kind(next(option for option in options(question) if option.name == name))


def _takes_none(option: Option) -> bool:
    """Whether the word "none" is needed to say None: it is no default."""
    return option.default is not None and type(None) in alternatives(option.type)


class _Kind(click.ParamType):  # type: ignore[type-arg]
    """A value of one of the types that text can say, the narrowest first."""

    def __init__(self, option: Option) -> None:
        kinds = [kind for kind in of_text(option) if kind is not type(None)]
        self._takes_none = _takes_none(option)
        self._words = [word for kind in kinds if typing.get_origin(kind) is Literal for word in typing.get_args(kind)]
        self._is_int, self._is_float, self._is_text = int in kinds, float in kinds, str in kinds
        self.name = "text" if self._is_text else "integer" if self._is_int else "float" if self._is_float else "text"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """What stands for the value in the help."""
        if not self._words:
            return None
        return "[" + "|".join([*self._words, *(["number"] if self._is_float else [])]) + "]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, or click's error."""
        if not isinstance(value, str) or value in self._words:
            return value
        if self._takes_none and value == "none":
            return None
        for is_so, kind in ((self._is_int, int), (self._is_float, float)):
            if is_so:
                try:
                    return kind(value)
                except ValueError:
                    continue
        if self._is_text:
            return value
        what = [*map(repr, self._words), *(["a number"] if self._is_float or self._is_int else [])]
        raise click.BadParameter(f"{value!r} is not {' or '.join(what)}", ctx, param)
