"""Families of objects created by name: sinks, filters, rules, importers. A new member is one file and one line.

Other packages offer a member as an entry point in the family's group, with the name of the member and its class.
Nothing is imported before it is used.
"""

from __future__ import annotations

from rollbook.errors import BadInput, UnknownOption, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any


_TAKES_MORE = 0x04 | 0x08
"""Flags of code that takes *args or **options."""


class Registry:
    """The members of one family.

    Args:
      what: the word for a member in errors, such as "sink".
      room: the package with rollbook's own members.
      own: name -> "module:Class" in that package.
      group: the group of entry points of other packages, "" for none.
    """

    def __init__(self, what: str, room: str, own: Mapping[str, str], group: str = "") -> None:
        self._what, self._room, self.own, self.group = what, room, own, group

    def names(self) -> list[str]:
        """All names, including those of installed packages."""
        return sorted({*self.own, *self._entry_points()})

    def summary(self, name: str, *, made: object = None) -> str:
        """The first line of a member's docstring; its name without one.

        Args:
          made: its class, if it was loaded from elsewhere.
        """
        made = self.load(name) if made is None else made
        return (getattr(made, "__doc__", None) or name).strip().splitlines()[0].rstrip(".")

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._entry_points()

    def load(self, name: str) -> Any:
        """The class with this name. Other packages may offer any callable that creates a member.

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
        """The error for an unknown name."""
        return UnknownOption(f"no {self._what} is named {name!r}.", did_you_mean(str(name), self.names()))

    def check_options(self, name: str, given: Iterable[str], takes: Sequence[str], also: Sequence[str] = ()) -> None:
        """Raise UnknownOption for options that are not accepted; suggestions include those in `also`."""
        for option in given:
            if option not in takes:
                hint = did_you_mean(str(option), [*takes, *also])
                raise UnknownOption(f"{self._what} {name!r} has no option {option!r}.", hint)

    def make(
        self, name: str, options: Mapping[str, Any], *before: Any, made: Any = None, also: Sequence[str] = ()
    ) -> Any:
        """Create the member with this name.

        Args:
          before: arguments that each member of the family takes before its options.
          made: its class, if it was loaded from elsewhere.
          also: options that the caller uses itself; see `check_options`.
        Raises:
          UnknownOption: there is no such member, or it has no such option.
          BadInput: an option with a value that it cannot use.
        """
        made = self.load(name) if made is None else made
        takes: Sequence[str] = ()
        if options:
            takes = options_of(made)[len(before) :]
            self.check_options(name, options, takes, also)
        try:
            return made(*before, **options)
        except TypeError as err:
            takes = takes or options_of(made)[len(before) :]
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
    """The parameters of a class or another callable."""
    begin, make = getattr(made, "__init__", None), getattr(made, "__new__", None)
    code = getattr(begin, "__code__", None)
    is_plain = type(made) is type and make == object.__new__ and not hasattr(begin, "__wrapped__")
    if is_plain and code is not None and not code.co_flags & _TAKES_MORE:
        return list(code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount])
    import inspect  # with what it imports, 1 MiB of each keeper

    return [option for option in inspect.signature(made).parameters if option != "self"]
