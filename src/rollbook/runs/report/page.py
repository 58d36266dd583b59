"""The report page: HTML with inline style, light or dark by the reader's system setting. No scripts."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence

from rollbook.plots import Picture
from rollbook.plots._style import css
from rollbook.system.texts import number_text, printable

_LONGEST = 200


def safe(text: object) -> str:
    """Text of a run, escaped for the page."""
    words = printable(text)
    return html.escape(words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…", quote=True)


def cell(value: object) -> str:
    """A table cell: numbers with six digits, "-" for nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number_text(value)
    return f"{value:,}" if isinstance(value, int) else safe(value)


class Page:
    """A page, written from top to bottom.

    Args:
      title: the title of the page.
    """

    def __init__(self, title: str) -> None:
        self._title, self._parts = title, [f"<h1>{safe(title)}</h1>"]

    def text(self, words: str, kind: str = "p") -> None:
        """A paragraph ("p"), a heading ("h2") or the verdict ("verdict")."""
        if kind == "verdict":
            self._parts.append(f'<p class="verdict">{safe_long(words)}</p>')
        else:
            self._parts.append(f"<{kind}>{safe_long(words)}</{kind}>")

    def sentences(self, each: Iterable[str]) -> None:
        """A list of sentences; nothing if there are none."""
        items = "".join(f"<li>{safe_long(words)}</li>" for words in each)
        if items:
            self._parts.append(f"<ul>{items}</ul>")

    def table(self, rows: Sequence[Mapping[str, object]], columns: Sequence[str] | None = None) -> None:
        """Rows as a table; numbers are right-aligned."""
        if not rows:
            return
        names = list(columns or rows[0])
        number = {name: all(isinstance(row.get(name), (int, float, type(None))) for row in rows) for name in names}
        head = "".join(f"<th{' class=n' if number[name] else ''}>{safe(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td{' class=n' if number[n] else ''}>{cell(row.get(n))}</td>" for n in names) + "</tr>"
            for row in rows
        )
        self._parts.append(
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def picture(self, picture: Picture) -> None:
        """A chart, in the colours of the page."""
        self._parts.append(f'<figure data-chart="{safe(picture.chart)}">{picture.svg()}</figure>')

    def html(self) -> str:
        """The whole page."""
        light = ";".join(f"{name}:{pair[0]}" for name, pair in css().items())
        dark = ";".join(f"{name}:{pair[1]}" for name, pair in css().items())
        return (
            '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            'img-src data:">'
            f"<title>{safe(self._title)}</title><style>:root{{color-scheme:light dark;{light}}}"
            f"@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{_SHEET}</style></head>"
            f"<body><main>{''.join(self._parts)}</main></body></html>\n"
        )


def safe_long(text: str) -> str:
    """A sentence, escaped for the page."""
    return html.escape(printable(text), quote=True)


_SHEET = (
    "body{margin:0;background:var(--rb-ground);color:var(--rb-ink);"
    "font:14px/1.5 -apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}"
    "main{max-width:860px;margin:0 auto;padding:32px 20px 64px}"
    "h1{font-size:22px;margin:0 0 4px;overflow-wrap:anywhere}h2{font-size:16px;margin:32px 0 8px}"
    "p,li{color:var(--rb-ink-2);overflow-wrap:anywhere}ul{padding-left:18px}"
    ".verdict{font-size:18px;color:var(--rb-ink);margin:16px 0}"
    "figure{margin:20px 0}figure svg{width:100%;height:auto;display:block}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:12.5px;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:4px 12px 4px 0;border-bottom:1px solid var(--rb-grid);white-space:nowrap}"
    "th{color:var(--rb-ink-3);font-weight:600}.n{text-align:right}"
    "@media print{main{max-width:none}}"
)
