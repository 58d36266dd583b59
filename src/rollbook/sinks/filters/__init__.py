"""Filters: sinks that hold another sink, called `to`, and change what reaches it.

    Every(Csv(), seconds=1)                     one row a second of each kind
    Smooth(Every(Csv(), seconds=1), "return")   smooth first, thin afterwards: the outer one sees the rows first

What a filter drops or reduces is still complete in the book. `make` builds one from its name and plain JSON options.
Instead of a filter, a plain function `Row -> Row | None` can be given; see `Apply`.
"""

from __future__ import annotations

from rollbook.errors import BadInput
from rollbook.system.lazy import attach
from rollbook.system.registry import Registry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rollbook.protocols import Sink
    from rollbook.sinks.filters._base import Filter
    from rollbook.sinks.filters.aggregate import Aggregate
    from rollbook.sinks.filters.apply import Apply
    from rollbook.sinks.filters.clocked import Clocked
    from rollbook.sinks.filters.drop import DropNone, DropNonFinite
    from rollbook.sinks.filters.every import Every
    from rollbook.sinks.filters.gate import Gate
    from rollbook.sinks.filters.keys import Prefix, Rename, Select
    from rollbook.sinks.filters.merge import Merge
    from rollbook.sinks.filters.smooth import Smooth

__all__ = [
    "Aggregate",
    "Apply",
    "Clocked",
    "DropNonFinite",
    "DropNone",
    "Every",
    "Filter",
    "Gate",
    "Merge",
    "Prefix",
    "Rename",
    "Select",
    "Smooth",
    "make",
    "names",
    "plain_specs",
    "spec_of",
]

_FILTERS = {
    "aggregate": "aggregate:Aggregate",
    "apply": "apply:Apply",
    "clocked": "clocked:Clocked",
    "drop_none": "drop:DropNone",
    "drop_non_finite": "drop:DropNonFinite",
    "every": "every:Every",
    "gate": "gate:Gate",
    "merge": "merge:Merge",
    "prefix": "keys:Prefix",
    "rename": "keys:Rename",
    "select": "keys:Select",
    "smooth": "smooth:Smooth",
}

_REGISTRY = Registry("filter", __name__, _FILTERS)


names = _REGISTRY.names


def make(name: str, to: Sink, **options: object) -> Filter:
    """The filter of that name in front of a sink.

    Args:
      name: one of `names()`.
      to: the sink behind.
      options: those of the filter.
    Raises:
      UnknownOption: no filter has that name, or it has no such option.
      BadInput: an option it has, with a value it cannot use.
    """
    filter_: Filter = _REGISTRY.make(name, options, to)
    return filter_


def spec_of(asked: object) -> tuple[str, dict[str, object]]:
    """A filter as it is written in the options of a sink: "drop_none", or ["smooth", {"keys": "loss"}].

    The class name ("DropNone") is also accepted; a function, or "package.module:function", means `Apply` of it.

    Args:
      asked: a name, [name, {option: value}], or a function of a row.
    Raises:
      BadInput: it is none of these.
    """
    if callable(asked) and not isinstance(asked, type):
        return "apply", {"function": asked}
    name: Any = None
    options: Any = {}
    if isinstance(asked, str):
        name = asked
    elif isinstance(asked, (list, tuple)) and len(asked) == 2:
        name, options = asked
    if not isinstance(name, str) or not hasattr(options, "items"):
        raise BadInput(
            f"filters=[… {asked!r:.200} …]: a filter is its name, [name, {{option: value}}], or a function of a row"
        )
    if ":" in name and not options:
        return "apply", {"function": name}
    if name[:1].isupper():
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
    return name, dict(options)


def plain_specs(asked: object) -> object:
    """The filters of a sink as plain data, so that another process can make them. Plain data stays unchanged.

    Args:
      asked: the filters, as `spec_of` takes each.
    Raises:
      BadInput: a function that only this process can find.
    """
    if isinstance(asked, (str, bytes)) or not hasattr(asked, "__iter__"):
        return asked
    from rollbook.sinks.filters.apply import name_of

    plain = []
    for spec in asked:
        if callable(spec) and not isinstance(spec, type):
            name = name_of(spec)
            if name is None:
                raise BadInput(
                    f"filters=[… {spec!r:.200} …]: the keeper makes sinks in another process, which cannot find this "
                    "function. Put it into a module of its own, or make the sink yourself and pass the object: "
                    "rollbook.sinks.filters.Apply(rollbook.sinks.Csv(), function)"
                )
            spec = name
        plain.append(spec)
    return plain


_HOMES = [path.split(":") for path in (*_FILTERS.values(), "_base:Filter")]
__getattr__, __dir__ = attach(
    __name__, {f"{__name__}.{module}": [name for home, name in _HOMES if home == module] for module, _ in _HOMES}
)
