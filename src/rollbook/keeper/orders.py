"""What `init` asks of the keeper: sinks and health rules, checked at once and written as data/keeper/plan.json."""

from __future__ import annotations

import os

from rollbook.errors import BadInput
from rollbook.ground.files import make_folders, write_json
from rollbook.ground.foreign import tolerating
from rollbook.keeper.own_files import keeper_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rollbook.ground.shapes import Plan

__all__ = ["Orders", "orders_of"]


class Orders:
    """The sinks of a run (those the keeper makes by name, and those that live in this process) and its health rules."""

    def __init__(
        self, for_keeper: list[dict[str, object]], local: list[object], rules: list[dict[str, object]]
    ) -> None:
        self.for_keeper, self.local, self.rules = for_keeper, local, rules

    def write(self, run_folder: str, x: str) -> None:
        """Write them where the keeper reads them; `x` is the clock for sinks with one step axis."""
        make_folders(keeper_folder(run_folder))
        asked: Plan = {"sinks": self.for_keeper, "x": x, "host_seconds": 10, "rules": self.rules}
        write_json(os.path.join(keeper_folder(run_folder), "plan.json"), asked)

    def fed_here(self, keeper: str) -> list[object]:
        """The sinks that get their rows in this process, with a keeper as `init` takes it."""
        return self.local if keeper == "process" else [*self.local, *self.for_keeper]

    def import_needed(self, keeper: str) -> None:
        """Import what sinks and rules need in this process. A broken package is reported when its sink is made."""
        from rollbook.keeper.sinks import import_for

        if keeper != "process":
            from rollbook import health

            for rule in self.rules:
                options: dict[str, Any] = dict(rule)
                health.make(options.pop("name"), **options)
        for spec in self.fed_here(keeper):
            if isinstance(spec, dict):
                with tolerating(Exception):
                    import_for(spec)


def orders_of(sinks: Sequence[object] | None, rules: Sequence[object] | None = None) -> Orders:
    """Sort the sinks of a run, and check that its rules exist; None: the default ones.

    Raises:
      UnknownOption, BadInput: a sink, filter or rule that does not exist, or with invalid options.
    """
    from rollbook import health
    from rollbook.sinks import DEFAULT, LIVE

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
    return Orders(for_keeper, local, health.check(health.DEFAULT if rules is None else rules))


def _checked(spec: Mapping[str, Any]) -> dict[str, object]:
    """A sink's entry as plain data, with all names checked."""
    import json

    from rollbook.sinks import check

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
