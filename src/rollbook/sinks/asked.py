"""What `init` asks for as sinks: names, dicts and objects, sorted and checked at once."""

from __future__ import annotations

import json
import os

from rollbook.errors import BadInput
from rollbook.sinks._registry import DEFAULT, LIVE, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def sorted_sinks(sinks: Sequence[object] | None) -> tuple[list[dict[str, object]], list[object]]:
    """Sort the sinks that `init` takes; None: `DEFAULT`.

    Returns:
      Those that a keeper makes, as plain data with a name, and those that live in the training process.
    Raises:
      UnknownOption, BadInput: a sink or filter that does not exist, or with invalid options.
    """
    sinks = DEFAULT if sinks is None else sinks
    if isinstance(sinks, (str, bytes)) or not hasattr(sinks, "__iter__") or hasattr(sinks, "items"):
        raise BadInput(
            f"sinks={sinks!r}: pass a list of names, dicts or sink objects, such as sinks=['terminal', 'csv']"
        )
    for_keeper: list[dict[str, object]] = []
    local: list[object] = []
    for sink in sinks:
        if not isinstance(sink, (str, dict)):
            missing = [verb for verb in ("open", "write", "close") if not callable(getattr(sink, verb, None))]
            if missing:
                raise BadInput(
                    f"sinks=[… {sink!r} …]: a sink object has open, write and close; this {type(sink).__name__} lacks "
                    f"{', '.join(missing)}. See rollbook.protocols.Sink"
                )
            local.append(sink)
            continue
        spec = {"name": sink} if isinstance(sink, str) else sink
        if spec.get("name") not in DEFAULT or len(spec) > 1:  # the default sinks need no import
            spec = _checked(spec)
        (local if spec["name"] in LIVE else for_keeper).append(spec)
    return for_keeper, local


def _checked(spec: Mapping[str, Any]) -> dict[str, object]:
    """A sink's entry as plain data, with all names checked."""
    if not isinstance(spec.get("name"), str):
        raise BadInput(f"sinks=[… {spec!r:.200} …]: it does not say which sink. Add its name: {{'name': 'csv', …}}")
    own = spec.get("options") or {}
    if not hasattr(own, "items"):
        raise BadInput(f"sinks=[… {spec!r:.200} …]: options are a dict of name -> value")
    options = {name: value for name, value in spec.items() if name not in ("name", "options")}
    check(spec["name"], {**options, **own})
    if "filters" in spec or "filters" in own:
        from rollbook.sinks.filters import plain_specs

        spec = {**spec, **({"filters": plain_specs(spec["filters"])} if "filters" in spec else {})}
        if "filters" in own:
            spec["options"] = {**own, "filters": plain_specs(own["filters"])}
    try:
        plain: dict[str, object] = json.loads(json.dumps(spec, default=_plain))
    except (TypeError, ValueError) as err:
        raise BadInput(
            f"sinks=[… {spec!r:.200} …]: a sink that is named is made by the keeper in another process, so its options "
            f"are plain data ({err}). Make it yourself and pass the object, such as rollbook.sinks.Csv(…)"
        ) from None
    return plain


def _plain(value: object) -> object:
    if hasattr(value, "__fspath__"):
        return os.fsdecode(value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    raise TypeError(f"a {type(value).__name__} is not plain data")
