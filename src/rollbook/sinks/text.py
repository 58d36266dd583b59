"""Text: tables for readers, log/<component>/<component>_logger.txt."""

from __future__ import annotations

import os
import time

from rollbook.errors import UnknownOption, did_you_mean
from rollbook.sinks._files import FileSink
from rollbook.sinks._plain import as_number, file_name, leaving_out, plain, wide

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rollbook.protocols import Row

MOST_COMPONENTS = 64
LEFT_OUT = r"^(host|rollbook)/|^time/.*_seconds$"
_LAYOUTS = ("table", "blocks")


class Text(FileSink):
    """A table per row, under the component the row belongs to: collector, evaluator, learner, train, update, …

        [2026-01-02 03:04:06][INFO] env_step 2048, epoch 3
        +-------------+-----------+
        | Name        |     Value |
        +-------------+-----------+
        | loss/policy | -0.012346 |
        +-------------+-----------+

    The component is the scope the row was logged through, else the first part of each key, else "run". Times are local.
    Numbers have six significant digits (the book has all). Texts are on separate lines; terminal control characters are
    escaped. Components beyond 64 share log/other/.

    Args:
      leave_out: a regular expression; matching keys are not written. By default it excludes what would fill the logs
        without being read there: the host, rollbook's own cost, and the duration of every timed stage.
      layout: "table", one name a line, or "blocks", four names in a row as LightZero's learner writes them.
    Raises:
      UnknownOption: there is no such layout.
      BadInput: `leave_out` is not a regular expression.
    """

    thinned = (1.0, "keyset")
    is_glance = True
    accepts: frozenset[type] = frozenset({float, int, bool, str})

    def __init__(self, *, layout: str = "table", leave_out: str = LEFT_OUT) -> None:
        super().__init__()
        self._left_out = leaving_out(leave_out, "text")
        if layout not in _LAYOUTS:
            raise UnknownOption(f"the text sink has no layout={layout!r}.", did_you_mean(str(layout), list(_LAYOUTS)))
        self._table = table if layout == "table" else blocks
        self._components: set[str] = set()

    def _owned(self) -> Iterable[str]:
        log = self._at("log")
        if not os.path.isdir(log):
            return []
        with os.scandir(log) as entries:
            paths = [_path(entry.name) for entry in entries if entry.is_dir()]
        return sorted(path for path in paths if os.path.isfile(self._at(path)))

    def _reread(self) -> None:
        self._components = {path.split("/")[1] for path in self._lengths}

    def _remember(self) -> object:
        return set(self._components)

    def _recall(self, token: Any) -> None:
        self._components = token

    def _render(self, rows: Sequence[Row]) -> Iterator[tuple[str, bytes]]:
        for row in rows:
            for name, values in _by_component(row, self._left_out).items():
                component = file_name(name) if name else "run"
                if component not in self._components:
                    if len(self._components) >= MOST_COMPONENTS:
                        component = "other"
                    self._components.add(component)
                text = self._entry(row, name, values)
                yield _path(component), text.encode("utf-8", "backslashreplace")

    def _entry(self, row: Row, component: str, values: Mapping[str, object]) -> str:
        start = f"{component}/" if component else ""
        stamp = f"[{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(row.time))}][INFO]"
        clocks = ", ".join(f"{clock} {reading}" for clock, reading in row.clocks.items())
        numbers: list[tuple[str, float]] = []
        texts: list[tuple[str, str]] = []
        for key, value in values.items():
            name = plain(key.removeprefix(start)) or plain(key)
            if isinstance(value, (float, int)):
                numbers.append((name, value))
            else:
                texts.append((name, value if isinstance(value, str) else repr(value)))
        where = f" {clocks}" if clocks else ""
        out = []
        for name, content in texts:
            first, *more = plain(content, newlines=True).split("\n")
            out.append(f"{stamp}{where} {name}: {first}\n" + "".join(f"    {line}\n" for line in more))
        if numbers:
            out.append(f"{stamp}{where}\n{self._table(numbers)}")
        return "".join(out)


def table(values: Sequence[tuple[str, float]]) -> str:
    """Names and values in two columns, one name a line, ending in a line end."""
    cells = [("Name", "Value"), *((name, as_number(value)) for name, value in values)]
    left = max(wide(name) for name, _ in cells)
    right = max(len(value) for _, value in cells)
    rule = f"+{'-' * (left + 2)}+{'-' * (right + 2)}+\n"
    lines = [f"| {name}{' ' * (left - wide(name))} | {value:>{right}} |\n" for name, value in cells]
    return "".join([rule, lines[0], rule, *lines[1:], rule])


def blocks(values: Sequence[tuple[str, float]]) -> str:
    """Names above values, four in a row, as DI-engine's loggers write them, ending in a line end."""
    out = []
    for start in range(0, len(values), 4):
        some = [("Name", "Value"), *((name, _six_places(value)) for name, value in values[start : start + 4])]
        widths = [max(wide(name), len(value)) for name, value in some]
        rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"
        out.append(rule)
        for row in zip(*some, strict=True):
            cells = (f" {cell}{' ' * (width - wide(cell))} " for cell, width in zip(row, widths, strict=True))
            out += ["|" + "|".join(cells) + "|\n", rule]
    return "".join(out)


def _six_places(value: float) -> str:
    try:
        return f"{value:.6f}"
    except OverflowError:  # an integer too large for a float
        return as_number(value)


def _by_component(row: Row, left_out: re.Pattern[str] | None) -> dict[str, dict[str, Any]]:
    values = {key: value for key, value in row.values.items() if left_out is None or not left_out.search(key)}
    if row.scope:
        return {row.scope: values} if values else {}
    components: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        first, slash, _ = key.partition("/")
        components.setdefault(first if slash else "", {})[key] = value
    return components


def _path(component: str) -> str:
    return f"log/{component}/{component}_logger.txt"
