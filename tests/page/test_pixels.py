"""No extreme, gap or NaN is lost at any zoom: the pixels of the chart are compared with the raw rows."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import rollbook

ROWS = 300_000
GAPS = [(100_000, 104_000), (200_000, 200_400)]
LOST = [50_000, 150_001, 299_000]
"""Single rows that are no number."""
SPIKES = np.arange(7_919, ROWS, 15_013)

PIXELS = """() => {
    const area = document.querySelector('.slot.big .plotarea');
    const canvas = area.querySelector('.clip canvas');
    const {width, height} = canvas;
    const data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
    let ink = '';
    for (let x = 0; x < width; x++) {
        const column = [];
        for (let y = 0, down = false; y < height; y++) {
            const on = data[(y * width + x) * 4 + 3] > 24;
            if (on !== down) column.push(y);
            down = on;
        }
        ink += column.join(',') + ';';
    }
    return {drawn: area.dataset.drawn, ink};
}"""


def curve() -> npt.NDArray[np.float64]:
    """Noise with single rows far above and below, stretches without a number, and single rows without."""
    rng = np.random.default_rng(5)
    values = rng.normal(size=ROWS) * 0.2 + np.sin(np.arange(ROWS) / 9_000)
    values[SPIKES[::2]] = 6 + rng.random(len(SPIKES[::2]))
    values[SPIKES[1::2]] = -6 - rng.random(len(SPIKES[1::2]))
    for start, stop in GAPS:
        values[start:stop] = np.nan
    values[LOST] = [np.nan, np.inf, -np.inf]
    return values


class Drawn(NamedTuple):
    """A chart as it stands on the screen.

    Attributes:
      axes: (x0, x1, y0, y1). box: (left, right, top, bottom) in pixels.
      ink: of each column of pixels the rows at which ink begins and ends, in turn.
    """

    axes: tuple[float, float, float, float]
    box: tuple[float, float, float, float]
    ink: list[list[int]]

    def column(self, x: float) -> float:
        """The column of pixels, from the left of the plot, of a place on the axis."""
        x0, x1 = self.axes[:2]
        return (x - x0) / (x1 - x0) * (self.box[1] - self.box[0])

    def row(self, value: float) -> float:
        """The row of pixels of a value."""
        _, _, y0, y1 = self.axes
        return self.box[3] - (value - y0) / (y1 - y0) * (self.box[3] - self.box[2])

    def reach(self, place: int, foot: float) -> tuple[float, float] | None:
        """(highest, lowest) ink of a column above the foot, where what is no number is marked."""
        column = self.ink[place]
        pairs = [(begin, min(end, foot)) for begin, end in zip_longest(column[::2], column[1::2], fillvalue=foot)]
        above = [(begin, end) for begin, end in pairs if begin < foot]
        return (min(begin for begin, _ in above), max(end for _, end in above)) if above else None


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, npt.NDArray[np.float64]]:
    folder = tmp_path_factory.mktemp("pixels") / "runs"
    values = curve()
    with rollbook.init("pixels", "one", dir=folder, sinks=[], keeper="inline") as run:
        run.log_many({"p/value": values}, env_step=np.arange(ROWS))
    return folder, run.id, values


def looked_at(page: Any, address: str, run: str, low: int, high: int) -> Drawn:
    page.open(address, f"#/runs?show={run}.1&pin=p/value&all=1&marks=0&z={low}_{high}").drawn().settled()
    said = None
    while (now := page.tab.evaluate(PIXELS)) != said:  # until a picture stays
        said = now
        page.let_pass(100)
    numbers = [float(word) for word in said["drawn"].split()]
    ink = [[int(row) for row in column.split(",") if row] for column in said["ink"].split(";")[:-1]]
    return Drawn(tuple(numbers[:4]), tuple(numbers[4:]), ink)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 299_999), (60_000, 160_000), (95_000, 110_000), (149_000, 151_000), (199_500, 200_900), (7_900, 7_940)],
)
def test_every_extreme_and_every_gap_of_the_rows_is_among_the_pixels(
    page: Any, serve: Any, shown: tuple[Path, str, npt.NDArray[np.float64]], low: int, high: int
) -> None:
    folder, run, values = shown
    drawn = looked_at(page, serve(folder), run, low, high)
    x0, x1 = drawn.axes[:2]
    assert (x0, x1) == pytest.approx((low, high), abs=1.5)
    columns = len(drawn.ink)
    has_marks = not np.isfinite(values[low : high + 1]).all()
    foot = drawn.box[3] - 13 if has_marks else drawn.box[3] + 1
    tops, bottoms = np.full(columns, np.inf), np.full(columns, -np.inf)
    there = np.zeros(columns, dtype=bool)
    for step in range(max(0, int(np.ceil(x0))), min(ROWS - 1, int(x1)) + 1):
        place = min(columns - 1, max(0, int(drawn.column(step))))
        if np.isfinite(values[step]):
            row = drawn.row(values[step])
            tops[place], bottoms[place] = min(tops[place], row), max(bottoms[place], row)
            there[place] = True
    reach = [drawn.reach(place, foot) for place in range(columns)]
    for place in np.flatnonzero(there & (tops < foot)).tolist():
        near = [one for one in reach[max(0, place - 1) : place + 2] if one is not None]
        assert near, f"rows at column {place} of {columns} left no ink"
        assert min(top for top, _ in near) <= tops[place] + 2, f"the highest of column {place} is cut off"
        assert max(bottom for _, bottom in near) >= min(bottoms[place], foot) - 2, f"the lowest of {place} is cut off"
    for place, ink in enumerate(reach):
        if ink is None:
            continue
        around = slice(max(0, place - 3), place + 4)
        if not there[around].any() and (high - low) > columns:
            raise AssertionError(f"column {place} of {columns} has ink although no row there has a value")
        if (high - low) > columns and 0 < place < columns - 1:  # a line to a row outside has its width at the edge
            assert ink[0] >= tops[around].min() - 3, f"ink above every value near column {place}"
            assert ink[1] <= bottoms[around].max() + 3, f"ink below every value near column {place}"


def test_what_is_no_number_is_marked_where_it_was_logged(
    page: Any, serve: Any, shown: tuple[Path, str, npt.NDArray[np.float64]]
) -> None:
    folder, run, _ = shown
    drawn = looked_at(page, serve(folder), run, 0, ROWS - 1)
    foot = drawn.box[3] - 6
    for step in (*LOST, *(start for start, _ in GAPS)):
        place = int(drawn.column(step))
        marked = [row for column in drawn.ink[max(0, place - 4) : place + 5] for row in column if row >= foot]
        assert marked, f"nothing is marked where row {step} is no number"
