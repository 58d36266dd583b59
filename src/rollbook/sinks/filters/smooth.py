"""Smooth: add a running average next to each matching value."""

from __future__ import annotations

import math
from typing import Any, Literal

from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.sinks.filters._base import Filter, is_number, with_values
from rollbook.sinks.filters.keys import pattern
from rollbook.values.describe import warm_average

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rollbook.protocols import Row, Sink

_MODES = ("warm_up", "bias_corrected")


class Smooth(Filter):
    """Adds `<key>_smoothed_<coeff>` to rows, after their own values, which stay unchanged.

    Both modes start with the first value; later, average = coeff * average + (1 - coeff) * value:

    - "warm_up": the coefficient begins at 0 and moves a tenth of the remaining distance to `coeff` with each value.
    - "bias_corrected": the exponential average from 0, divided by the weight it has seen, 1 - coeff ** n.

    NaN and infinities are not averaged: such a row gets no smoothed value, and the series continues after it.

    Args:
      to: the sink behind.
      keys: a regular expression; matching keys are smoothed, including the results of another Smooth.
      coeff: from 0 (no smoothing) up to, but not including, 1.
      mode: one of the two above.
    Raises:
      BadInput: a coefficient outside of its range, or `keys` is not a regular expression.
      UnknownOption: there is no such mode.
    """

    name = "smooth"

    def __init__(
        self,
        to: Sink,
        keys: str,
        coeff: float = 0.99,
        *,
        mode: Literal["warm_up", "bias_corrected"] = "warm_up",
    ) -> None:
        if not (is_number(coeff) and 0 <= coeff < 1):
            raise BadInput(f"Smooth was given coeff={coeff!r}; it has to be at least 0 and less than 1")
        if mode not in _MODES:
            raise UnknownOption(f"Smooth has no mode={mode!r}.", did_you_mean(str(mode), list(_MODES)))
        super().__init__(to, keys=keys, coeff=coeff, mode=mode)
        self._pattern = pattern(keys, "Smooth keys=")
        self._coeff = coeff
        self._warm_up = mode == "warm_up"
        self._names: dict[str, str] = {}  # key -> name of the smoothed one, "" for keys that do not match
        self._series: dict[str, tuple[float, float]] = {}  # key -> (average, coefficient or weight so far)

    def _row(self, row: Row) -> Iterable[Row]:
        added = {}
        for key, value in row.values.items():
            name = self._names.get(key)
            if name is None:
                name = f"{key}_smoothed_{self._coeff}" if self._pattern.search(key) else ""
                self._names[key] = name
            if name and is_number(value):
                average = self._next(key, value)
                if average is not None:
                    added[name] = average
        return (with_values(row, {**row.values, **added}),) if added else (row,)

    def _next(self, key: str, given: Any) -> float | None:
        try:
            value = float(given)
        except OverflowError:  # an integer too large for a float
            return None
        if not math.isfinite(value):
            return None
        average, c = self._series.get(key, (0.0, 0.0))
        if self._warm_up:
            self._series[key] = warm_average(average, c, value, self._coeff)
            return self._series[key][0]
        average = average * self._coeff + value * (1 - self._coeff)
        weight = c * self._coeff + (1 - self._coeff)
        self._series[key] = (average, weight)
        return average / weight

    def _remember(self) -> object:
        return dict(self._series)

    def _recall(self, token: Any) -> None:
        self._series = token

    def _save(self) -> dict[str, object]:
        return {"series": {key: list(pair) for key, pair in self._series.items()}}

    def _load(self, saved: Mapping[str, Any]) -> None:
        self._series = {key: (pair[0], pair[1]) for key, pair in saved.get("series", {}).items()}
