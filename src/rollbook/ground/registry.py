"""Families of things that are made by name: sinks, filters, rules, importers. A new member is one file and one line.

A package of its own offers a member as an entry point in the family's group, named like the member and pointing at its
class. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from rollbook.errors import BadInput, UnknownOption, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

__all__ = ["Registry", "options_of", "summary_of"]


class Registry:
    """The members of one family.

    Args:
      what: what one is called in errors, such as "sink".
      room: the package that holds those of rollbook.
      own: name -> "module:Class" in that package.
      group: of the entry points of other packages, "" for none.
    """

    def __init__(self, what: str, room: str, own: Mapping[str, str], group: str = "") -> None:
        self._what, self._room, self.own, self.group = what, room, own, group

    def names(self) -> list[str]:
        """All there are, those of installed packages included."""
        return sorted({*self.own, *self._entry_points()})

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._entry_points()

    def load(self, name: str) -> Any:
        """The class of that name; what an outsider offers may be any callable that makes one.

        Raises:
          UnknownOption: there is none.
        """
        from importlib import import_module

        if name in self.own:
            module, _, member = self.own[name].partition(":")
            return getattr(import_module(f"{self._room}.{module}"), member)
        point = self._entry_points().get(name)
        if point is None:
            raise self.unknown(name)
        return point.load()

    def unknown(self, name: object) -> UnknownOption:
        """The error that says that there is none of that name."""
        return UnknownOption(f"no {self._what} is named {name!r}.{did_you_mean(str(name), self.names())}")

    def check_options(self, name: str, given: Iterable[str], takes: Sequence[str], also: Sequence[str] = ()) -> None:
        """Raise UnknownOption for what is given and not taken; `also` is offered where something like it was meant."""
        for option in given:
            if option not in takes:
                hint = did_you_mean(str(option), [*takes, *also])
                raise UnknownOption(f"{self._what} {name!r} has no option {option!r}.{hint}")

    def make(
        self, name: str, options: Mapping[str, Any], *before: Any, made: Any = None, also: Sequence[str] = ()
    ) -> Any:
        """The member of that name.

        Args:
          before: what each member of the family takes before its options.
          made: its class, where it has been loaded from somewhere else.
          also: options that the caller takes for itself; see `check_options`.
        Raises:
          UnknownOption: there is no such member, or it has no such option.
          BadInput: an option it has, with a value it cannot use.
        """
        made = self.load(name) if made is None else made
        takes = options_of(made)[len(before) :]
        self.check_options(name, options, takes, also)
        try:
            return made(*before, **options)
        except TypeError as err:
            message = (
                f"{self._what} {name!r} was given {dict(options)!r}: {err}. Its options: {', '.join(takes) or 'none'}."
            )
            raise BadInput(message) from None

    def _entry_points(self) -> Mapping[str, Any]:
        from importlib.metadata import entry_points

        if not self.group:
            return {}
        return {point.name: point for point in entry_points(group=self.group)}


def options_of(made: Any) -> list[str]:
    """The parameters that a class, or another callable that makes something, takes."""
    import inspect

    return [option for option in inspect.signature(made).parameters if option != "self"]


def summary_of(made: object, name: str) -> str:
    """What a class says of itself, in one line; its name where it says nothing."""
    return (getattr(made, "__doc__", None) or name).strip().splitlines()[0].rstrip(".")
