"""The style sheet of all charts: colours, fonts, line widths. The colours are those of the page, light and dark.

The twelve series colours are distinguishable with the common kinds of colour blindness. Beyond twelve groups the
dashes change.
"""

from __future__ import annotations

from dataclasses import dataclass

from rollbook.errors import UnknownOption, did_you_mean

Dashes = str | tuple[float, tuple[float, ...]]
"""A line style of matplotlib: a name, or an offset and the lengths of strokes and gaps."""


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a chart.

    Attributes:
      theme: "light" or "dark".
      ground, ink, ink_2, ink_3, line, grid: the background, three shades of text, the frame, the grid.
      good, warn, bad, accent: colours with a meaning.
      ghost: for abandoned data.
      series: twelve colours in the order of use.
      notes: whether the remarks of a chart are written below it.
    """

    theme: str
    ground: str
    ink: str
    ink_2: str
    ink_3: str
    line: str
    grid: str
    good: str
    warn: str
    bad: str
    accent: str
    ghost: str
    series: tuple[str, ...]
    notes: bool = True

    def colour(self, index: int) -> str:
        """The colour of the group with this index, from 0."""
        return self.series[index % len(self.series)]

    def dashes(self, index: int) -> Dashes:
        """The dashes of the group with this index: solid for the first twelve, then five other kinds."""
        kinds: tuple[Dashes, ...] = (
            "-",
            (0, (5, 2)),
            (0, (1.5, 1.5)),
            (0, (6, 2, 1.5, 2)),
            (0, (9, 3)),
            (0, (3, 1, 1, 1, 1, 1)),
        )
        return kinds[index // len(self.series) % len(kinds)]

    def settings(self) -> dict[str, object]:
        """The settings for `matplotlib.rc_context`."""
        return {
            "figure.facecolor": self.ground,
            "savefig.facecolor": self.ground,
            "figure.dpi": 100,
            "savefig.dpi": 160,
            "font.family": ["sans-serif"],
            "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica", "sans-serif"],
            "font.size": 9,
            "text.color": self.ink,
            "text.parse_math": False,  # a run's name may be $x_1$
            "text.usetex": False,
            "axes.unicode_minus": True,
            "axes.facecolor": self.ground,
            "axes.edgecolor": self.line,
            "axes.labelcolor": self.ink_2,
            "axes.labelsize": 9,
            "axes.titlesize": 10,
            "axes.titleweight": "bold",
            "axes.titlelocation": "left",
            "axes.titlecolor": self.ink,
            "axes.titlepad": 8,
            "axes.linewidth": 0.8,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.xmargin": 0.01,
            "axes.ymargin": 0.06,
            "axes.formatter.useoffset": False,
            "grid.color": self.grid,
            "grid.linewidth": 0.8,
            "xtick.color": self.line,
            "ytick.color": self.line,
            "xtick.labelcolor": self.ink_3,
            "ytick.labelcolor": self.ink_3,
            "xtick.labelsize": 8,
            "ytick.labelsize": 8,
            "lines.linewidth": 1.7,
            "lines.solid_capstyle": "round",
            "lines.solid_joinstyle": "round",
            "patch.linewidth": 0,
            "legend.frameon": False,
            "legend.fontsize": 8,
            "legend.labelcolor": self.ink_2,
            "legend.handlelength": 1.8,
            "svg.fonttype": "none",
            "svg.hashsalt": "rollbook",
            "pdf.fonttype": 42,
            "path.simplify": True,
            "path.simplify_threshold": 0.1,
        }


THEMES = {
    "light": Style(
        "light",
        "#ffffff",
        "#1b1a18",
        "#4d4a45",
        "#66625b",
        "#c9c6be",
        "#efede8",
        "#1a6b3c",
        "#85560a",
        "#b3261e",
        "#1b57b8",
        "#8f8b83",
        (
            "#292aab",
            "#a66600",
            "#0ea29d",
            "#77044d",
            "#1071bc",
            "#575100",
            "#af77e9",
            "#b5184b",
            "#8d9658",
            "#595f74",
            "#273408",
            "#4b017c",
        ),
    ),
    "dark": Style(
        "dark",
        "#17191c",
        "#e9e7e2",
        "#b9b6af",
        "#98958e",
        "#43474e",
        "#22252a",
        "#6fce95",
        "#e6b450",
        "#f58b82",
        "#86b0f7",
        "#777b82",
        (
            "#5b71f7",
            "#ae701e",
            "#0de1db",
            "#df4a9c",
            "#5caffe",
            "#d1cb79",
            "#a078cd",
            "#f98096",
            "#94a140",
            "#a1a9c4",
            "#d0f82d",
            "#bbfcf5",
        ),
    ),
}
"""By name."""


def style(theme: str) -> Style:
    """The style with this name.

    Raises:
      UnknownOption: there is none.
    """
    if theme not in THEMES:
        raise UnknownOption(f"theme={theme!r}: there is no such theme.", did_you_mean(theme, list(THEMES)))
    return THEMES[theme]


def css() -> dict[str, tuple[str, str]]:
    """{CSS variable: (its colour in light, in dark)}; a page uses these names for the colours of a picture."""
    light, dark = THEMES["light"], THEMES["dark"]
    names = ("ground", "ink", "ink_2", "ink_3", "line", "grid", "good", "warn", "bad", "accent", "ghost")
    colours = {f"--rb-{name.replace('_', '-')}": (getattr(light, name), getattr(dark, name)) for name in names}
    pairs = zip(light.series, dark.series, strict=True)
    return colours | {f"--rb-series-{n}": pair for n, pair in enumerate(pairs, 1)}
