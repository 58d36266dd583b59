"""`Picture`: a chart with its data, drawn when it is shown or saved, in light or in dark.

picture = runs.plot("test/return", by="config.algo")
picture.save("x.png"); picture.save("x.pdf", theme="dark")
picture.save("paper.pdf", title="PPO and DQN", notes=False)
picture.figure()                  # a matplotlib figure to change further
print(picture.text(width=80))     # in characters
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace

from rollbook.errors import BadInput, UnknownOption, did_you_mean
from rollbook.plots._style import Style, css, style
from rollbook.system.optional import need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

_drawing = threading.RLock()
"""matplotlib's settings are global to the process; only one chart is drawn or written at a time."""


class Picture:
    """One chart with its data.

    Args:
      chart: its name in the registry.
      draw: function of (figure, style) that draws it.
      size: default width and height in inches.
      text: function of (width, height, colour) that returns the chart in characters; None if there is none.
      theme: the default, "light" or "dark".
    """

    def __init__(
        self,
        chart: str,
        draw: Callable[[object, Style], None],
        *,
        size: tuple[float, float] = (7.0, 4.0),
        text: Callable[[int, int, bool], str] | None = None,
        theme: str = "light",
    ) -> None:
        self.chart, self.theme, self._size = chart, style(theme).theme, size
        self._draw, self._text = draw, text

    def __repr__(self) -> str:
        return f"<Picture {self.chart!r}; .save('x.png') writes it, .figure() gives the matplotlib figure>"

    def figure(self, theme: str | None = None, *, title: str | None = None, notes: bool = True) -> Figure:
        """A new matplotlib `Figure`, made without pyplot: it need not be closed.

        Args:
          theme: "light" or "dark". None: the picture's own.
          title: the text above it. None: the picture's own; "": nothing.
          notes: the sentences below it. Without them, say elsewhere what the bands are.
        Raises:
          MissingExtra: matplotlib is not installed.
        """
        with _drawing:
            return self._figure(style(theme or self.theme), title, notes)

    def save(
        self, path: str | os.PathLike[str], *, theme: str | None = None, title: str | None = None, notes: bool = True
    ) -> str:
        """Write it to a file, and return the path.

        Args:
          path: its suffix selects the format: .png, .svg or .pdf. A missing folder is made.
          theme: "light" or "dark". None: the picture's own.
          title, notes: see `figure`.
        Raises:
          UnknownOption: another suffix.
          OSError: the file cannot be written.
        """
        name = os.fspath(path)
        ending = os.path.splitext(name)[1].lower().lstrip(".")
        if ending not in FORMATS:
            raise UnknownOption(
                f"save({name!r}): the name has to end in a format.",
                did_you_mean("." + ending, [".png", ".svg", ".pdf"]),
            )
        written = self.bytes(ending, theme=theme, title=title, notes=notes)
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb") as file:
            file.write(written)
        return name

    def bytes(
        self, format: str = "png", *, theme: str | None = None, title: str | None = None, notes: bool = True
    ) -> bytes:
        """The chart as bytes of this format. The same data give the same SVG, byte for byte.

        Args:
          format: "png", "svg" or "pdf".
          theme: "light" or "dark". None: the picture's own.
          title, notes: see `figure`.
        """
        chosen = style(theme or self.theme)
        metadata: Mapping[str, object] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(format, {})
        matplotlib = need("matplotlib", extra="plots", why="a picture")
        with _drawing, warnings.catch_warnings(), matplotlib.rc_context(chosen.settings()):
            warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name with letters the font lacks
            buffer = io.BytesIO()
            self._figure(chosen, title, notes).savefig(buffer, format=format, metadata=metadata)
        return buffer.getvalue()

    def svg(self) -> str:
        """An <svg> for a page that defines the colours of `_style.css()`; it follows the theme of the page."""
        text = self.bytes("svg", theme="light").decode("utf-8")
        text = text[text.index("<svg") :]
        names = {pair[0]: name for name, pair in css().items()}
        text = re.sub(
            r"#[0-9a-f]{6}\b", lambda match: f"var({names[match[0]]})" if match[0] in names else match[0], text
        )
        unique = f"p{_digest(text)}"  # ids of several pictures on one page must differ
        text = re.sub(r'(\bid="|href="#|url\(#)', lambda match: f"{match[1]}{unique}", text)
        return re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" role="img">', text, count=1)

    def text(self, width: int = 80, height: int = 20, *, colour: bool = False) -> str:
        """The chart in characters.

        Args:
          width: at most this many columns, from 30 on.
          height: lines for the curves, from 5 on; axis and legend come on top. Bars take a line each.
          colour: use a terminal's colours and braille dots, with escape sequences, instead of plain characters.
        Raises:
          BadInput: this chart has no text form, or there is too little room.
        """
        if self._text is None:
            raise BadInput(f"the chart {self.chart!r} cannot be drawn in characters; save it as .png, .svg or .pdf")
        if width < 30 or height < 5:
            raise BadInput(f"text(width={width}, height={height}): 30 columns and 5 lines are the least")
        return self._text(width, height, colour)

    def _figure(self, chosen: Style, title: str | None = None, notes: bool = True) -> Figure:
        matplotlib = need("matplotlib", extra="plots", why="a picture")
        need("matplotlib.figure", extra="plots", why="a picture")
        with warnings.catch_warnings(), matplotlib.rc_context(chosen.settings()):
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            figure: Figure = matplotlib.figure.Figure(figsize=self._size, layout="constrained")
            self._draw(figure, chosen if notes else replace(chosen, notes=False))
            if title is not None:
                _entitle(figure, title)
            return figure

    def _repr_png_(self) -> object:
        return self.bytes("png")

    def _repr_html_(self) -> str:
        light, dark = (";".join(f"{name}:{pair[n]}" for name, pair in css().items()) for n in (0, 1))
        svg = self.svg()
        box = f"rb{_digest(svg)}"
        return (
            f"<style>.{box}{{{light};max-width:52em;background:var(--rb-ground)}}"
            f"@media (prefers-color-scheme:dark){{.{box}{{{dark}}}}}"
            f'[data-jp-theme-light="false"] .{box}{{{dark}}}[data-jp-theme-light="true"] .{box}{{{light}}}</style>'
            f'<div class="{box}">{svg}</div>'
        )


def _entitle(figure: Figure, title: str) -> None:
    """A title in the place of the chart's own; above all panels, where each has one."""
    titled = [axes for axes in figure.axes if axes.get_title(loc="left") or axes.get_title()]
    if len(titled) == 1:
        titled[0].set_title(title)
    elif title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=10, fontweight="bold")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
