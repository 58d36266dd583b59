"""Sinks by name: where each lives, how it is made, and what stands in front of it by default.

A new sink is one file and one line here; a package of its own offers one as an entry point in the group
`rollbook.sinks`, named like the sink and pointing at its class. Nothing is imported before it is asked for.

What a sink is, its class says, in attributes that it may leave out:
    needs        (package, extra of rollbook that brings it): missing, it is an error of `init`
    is_service   it talks to something beyond this machine
    is_live      it draws while training runs, in the training process
    thinned      (seconds, what has stretches of its own): how its rows are thinned unless the caller says otherwise
    is_glance    thinned or not, it is for a look by people: a keeper may hand it the newest rows without reading all
"""

from __future__ import annotations

from rollbook._optional import installed
from rollbook.errors import BadInput, UnknownOption, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rollbook.protocols import Sink

__all__ = ["GROUP", "check", "fact", "make", "names", "needs_no_service"]

GROUP = "rollbook.sinks"

_SINKS = {
    "csv": "csv:Csv",
    "jsonl": "jsonl:Jsonl",
    "memory": "memory:Memory",
    "mlflow": "mlflow:Mlflow",
    "neptune": "neptune:Neptune",
    "tensorboard": "tensorboard:TensorBoard",
    "terminal": "terminal:Terminal",
    "text": "text:Text",
    "trackio": "trackio:Trackio",
    "wandb": "wandb:Wandb",
}

_COMMON = ("all", "every_seconds", "filters")


def names() -> list[str]:
    """All sinks there are, those of installed packages included."""
    return sorted({*_SINKS, *_entry_points()})


def needs_no_service() -> list[str]:
    """The sinks of rollbook itself that work with nothing but this machine."""
    return [name for name in sorted(_SINKS) if not fact(name, "is_service", False)]


def fact(name: str, attribute: str, default: Any) -> Any:
    """What the class of a sink says of itself; see the top of this file."""
    return getattr(_load(name), attribute, default)


def make(name: str, **options: Any) -> Sink:
    """The sink of that name, with the filters that belong in front of it. Any process can do this from JSON data.

    Args:
      name: see `names()`.
      every_seconds: thin rows to one in so many seconds of their own time; by default 1 for text (each kind of row)
        and for services (each key), none for files that programs read. The terminal draws at most that often.
      all: True keeps every row, whatever `every_seconds` would be by default.
      filters: names or [name, options] of `rollbook.filters.make`, the one that sees the rows first standing first.
        They see all rows; thinning comes after them.
      options: those of the sink itself.
    Raises:
      UnknownOption: no sink has that name, or it has no such option.
    """
    made = _load(name)
    own = {option: value for option, value in options.items() if option not in _COMMON}
    takes = _parameters(made)
    if "every_seconds" in takes and "every_seconds" in options:
        own["every_seconds"] = options["every_seconds"]
    _check_options(name, takes, own)
    try:
        sink: Sink = made(**own)
    except TypeError as err:
        raise BadInput(f"sink {name!r} was given {own!r}: {err}. Its options: {', '.join(takes) or 'none'}.") from None
    seconds, per = getattr(made, "thinned", (None, "keyset"))
    seconds = None if options.get("all") else options.get("every_seconds", seconds)
    filters = options.get("filters", ())
    if isinstance(filters, (str, bytes)) or not hasattr(filters, "__iter__"):
        raise BadInput(
            f"sink {name!r} was given filters={filters!r}: a list of names or [name, options], such as "
            "[['smooth', {'keys': 'loss'}]]"
        )
    wanted: list[Any] = list(filters)
    if seconds and "every_seconds" not in takes:
        wanted.append(("every", {"seconds": seconds, "per": per}))
    return _filtered(sink, wanted)


def check(name: str, options: Mapping[str, Any] | None = None) -> None:
    """Raise what `make` would raise, without touching a service.

    Loads the sink's module only if there are options to look at.

    Raises:
      MissingExtra: its package is not installed.
      UnknownOption, BadInput: as `make`; of a sink that needs a service or comes from another package, what can be
        told from the names of its options and from the filters.
    """
    if name not in _SINKS and name not in _entry_points():
        raise UnknownOption(f"no sink is named {name!r}.{did_you_mean(str(name), names())}")
    made = _load(name) if name in _SINKS else None
    given = {option: value for option, value in (options or {}).items() if value is not None or option not in _COMMON}
    own = [option for option in given if option not in _COMMON]
    if own:
        _check_options(name, _parameters(_load(name)), own)
    common = {option: value for option, value in given.items() if option in _COMMON}
    if made is not None and not getattr(made, "is_service", False):
        make(name, **given)
    elif common:
        make("memory", **common)
    package, extra = getattr(made, "needs", ("", ""))
    if package:
        installed(package, extra=extra, why=f"the sink {name!r}")


def _filtered(sink: Sink, wanted: Sequence[Any]) -> Sink:
    if not wanted:
        return sink
    from rollbook import filters

    for one in reversed(wanted):
        filter_name, filter_options = filters.spec_of(one)
        sink = filters.make(filter_name, sink, **filter_options)
    return sink


def _load(name: str) -> Any:
    from importlib import import_module

    if name in _SINKS:
        module, _, member = _SINKS[name].partition(":")
        return getattr(import_module(f"rollbook.sinks.{module}"), member)
    point = _entry_points().get(name)
    if point is None:
        raise UnknownOption(f"no sink is named {name!r}.{did_you_mean(str(name), names())}")
    return point.load()


def _parameters(made: Any) -> list[str]:
    import inspect

    return [name for name in inspect.signature(made).parameters if name != "self"]


def _check_options(name: str, takes: Sequence[str], given: Mapping[str, Any] | Sequence[str]) -> None:
    for option in given:
        if option not in takes:
            hint = did_you_mean(str(option), [*takes, *_COMMON])
            raise UnknownOption(f"sink {name!r} has no option {option!r}.{hint}")


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=GROUP)}
