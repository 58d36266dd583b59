"""Sinks by name: where each is defined, how it is made, and its default filters.

A new sink is one file and one line here. Another package offers one as an entry point in the group `rollbook.sinks`,
named like the sink and pointing at its class. Nothing is imported before it is used.

A sink class describes itself in these optional attributes:
    needs        (package, extra of rollbook that brings it): if it is missing, `init` raises an error
    is_service   it talks to something beyond this machine
    is_live      it draws during training, in the training process
    thinned      (seconds, "key" or "keyset"): how its rows are thinned unless the caller sets it
    is_glance    a live view for people: a keeper may give it the newest rows without reading all
"""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.system.optional import installed
from rollbook.system.registry import Registry, options_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rollbook.protocols import Sink

GROUP = "rollbook.sinks"

_SINKS = {
    "csv": "csv:Csv",
    "jsonl": "_jsonl:Jsonl",
    "memory": "memory:Memory",
    "mlflow": "mlflow:Mlflow",
    "neptune": "neptune:Neptune",
    "tensorboard": "tensorboard:TensorBoard",
    "terminal": "terminal:Terminal",
    "text": "text:Text",
    "trackio": "trackio:Trackio",
    "wandb": "wandb:Wandb",
}

LIVE: tuple[str, ...] = ("terminal",)
"""Sinks that draw in the training process; listed here so that no import is needed to know them."""

DEFAULT: tuple[str, ...] = LIVE
"""The sinks of a run that names none: a live table in the terminal."""

_REGISTRY = Registry("sink", "rollbook.sinks", _SINKS, GROUP)
_COMMON = ("all", "every_seconds", "filters")


names = _REGISTRY.names


def needs_no_service() -> list[str]:
    """rollbook's sinks that need nothing outside this machine."""
    return [name for name in sorted(_SINKS) if not fact(name, "is_service", False)]


def are_files(specs: Sequence[Any]) -> bool:
    """Whether these entries of a plan are all file sinks of rollbook, which any process may write.

    Args:
      specs: entries of a plan: dicts with `name`.
    """
    known = [isinstance(spec, dict) and spec.get("name") in _SINKS for spec in specs]
    return all(known) and all(hasattr(_REGISTRY.load(spec["name"]), "position") for spec in specs)


def without_live(sinks: Sequence[object] | None) -> list[object]:
    """The sinks, as `init` takes them, without those that draw; none for None.

    Args:
      sinks: as in `init`. None: the default.
    """
    return [sink for sink in sinks or () if (sink.get("name") if isinstance(sink, dict) else sink) not in LIVE]


def fact(name: str, attribute: str, default: object) -> object:
    """An attribute of a sink's class; see the top of this file."""
    return getattr(_REGISTRY.load(name), attribute, default)


def make(name: str, **options: object) -> Sink:
    """The sink of that name, with its default filters in front. Any process can do this from JSON data.

    Args:
      name: see `names()`.
      options: those of the sink and of the filters in front of it. `every_seconds` thins rows to one in this many
        seconds of their own time; by default 1 for text (each kind of row) and for services (each key), none for files
        that programs read; the terminal draws at most that often. `all=True` keeps every row, whatever that default
        is. `filters` are names or [name, options] of `sinks.filters.make`, in the order in which rows pass through
        them; they see all rows, and thinning comes after them.
    Raises:
      UnknownOption: no sink has that name, or it has no such option.
      BadInput: an option it has, with a value it cannot use.
    """
    made = _REGISTRY.load(name)
    own = {option: value for option, value in options.items() if option not in _COMMON}
    takes = options_of(made)
    if "every_seconds" in takes and "every_seconds" in options:
        own["every_seconds"] = options["every_seconds"]
    sink: Sink = _REGISTRY.make(name, own, made=made, also=_COMMON)
    seconds, per = getattr(made, "thinned", (None, "keyset"))
    seconds = None if options.get("all") else options.get("every_seconds", seconds)
    filters = options.get("filters", ())
    if isinstance(filters, (str, bytes)) or not hasattr(filters, "__iter__"):
        raise BadInput(
            f"sink {name!r} was given filters={filters!r}: a list of names or [name, options], such as "
            "[['smooth', {'keys': 'loss'}]]"
        )
    wanted: list[object] = list(filters)
    if seconds and "every_seconds" not in takes:
        wanted.append(("every", {"seconds": seconds, "per": per}))
    return _filtered(sink, wanted)


def check(name: str, options: Mapping[str, object] | None = None) -> None:
    """Raise what `make` would raise, without contacting a service.

    Loads the sink's module only if there are options to check.

    Args:
      name: see `names()`.
      options: as in `make`. None: none.
    Raises:
      MissingExtra: its package is not installed.
      UnknownOption, BadInput: as `make`. For a sink that needs a service or comes from another package, only the names
        of its options and the filters are checked.
    """
    if name not in _REGISTRY:
        raise _REGISTRY.unknown(name)
    made = _REGISTRY.load(name) if name in _SINKS else None
    given = {option: value for option, value in (options or {}).items() if value is not None or option not in _COMMON}
    own = [option for option in given if option not in _COMMON]
    if own:
        _REGISTRY.check_options(name, own, options_of(_REGISTRY.load(name)), _COMMON)
    common = {option: value for option, value in given.items() if option in _COMMON}
    if made is not None and not getattr(made, "is_service", False):
        make(name, **given)
    elif common:
        make("memory", **common)
    package, extra = getattr(made, "needs", ("", ""))
    if package:
        installed(package, extra=extra, why=f"the sink {name!r}")


def _filtered(sink: Sink, wanted: Sequence[object]) -> Sink:
    if not wanted:
        return sink
    from rollbook.sinks import filters

    for asked in reversed(wanted):
        filter_name, filter_options = filters.spec_of(asked)
        sink = filters.make(filter_name, sink, **filter_options)
    return sink
