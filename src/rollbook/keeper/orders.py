"""What `init` asks of the keeper: sinks and health rules, checked at once and written as data/keeper/plan.json."""

from __future__ import annotations

import os

from rollbook.keeper.own_files import keeper_folder
from rollbook.schema.run_files import RunFile
from rollbook.system.files import make_folders, write_json
from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rollbook.schema.shapes import KeeperOrders


class Orders:
    """The sinks of a run (those the keeper makes by name, and those that live in this process) and its health rules."""

    def __init__(
        self, for_keeper: list[dict[str, object]], local: list[object], rules: list[dict[str, object]]
    ) -> None:
        self.for_keeper, self.local, self.rules = for_keeper, local, rules

    def write(self, run_folder: str, x: str) -> None:
        """Write them where the keeper reads them; `x` is the clock for sinks with one step axis."""
        make_folders(keeper_folder(run_folder), inside=run_folder)
        asked: KeeperOrders = {"sinks": self.for_keeper, "x": x, "host_seconds": 10, "rules": self.rules}
        write_json(os.path.join(keeper_folder(run_folder), RunFile.PLAN), asked)

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
    """The orders for a run with these sinks and rules, as `init` takes them; None: the default ones.

    Raises:
      UnknownOption, BadInput: a sink, filter or rule that does not exist, or with invalid options.
    """
    from rollbook import health
    from rollbook.sinks.asked import sorted_sinks

    for_keeper, local = sorted_sinks(sinks)
    return Orders(for_keeper, local, health.check(health.DEFAULT if rules is None else rules))
