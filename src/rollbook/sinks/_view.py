"""The layout of a board: a block of lines for a terminal, or one line for a log."""

from __future__ import annotations

import math
import re

from rollbook.sinks._plain import cut, plain, whole_number, wide
from rollbook.sinks._trend import spark
from rollbook.sinks.board import MEAN_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollbook.sinks.board import Board, Key

SPARK_CELLS = 10
LONGEST_NAME = 30
VALUE_CELLS = 9
GAP = 4
_HEADLINE = re.compile(r"(^|[/_])(return|reward|score|success)s?([/_]|$)")
_LAST = 3
_LOSS = re.compile(r"(^|[/_])loss(es)?([/_]|$)")
_BOLD, _DIM, _RED, _GREEN, _CYAN, _END = "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[36m", "\x1b[0m"


def lines(
    board: Board,
    *,
    width: int = 80,
    height: int = 24,
    now: float | None = None,
    unicode: bool = True,
    colour: bool = False,
) -> list[str]:
    """The board as at most `height` lines of at most `width` columns: title, progress, keys by scope, time by stage.

    Args:
      now: unix time for the elapsed time; by default that of the last row.
      unicode: draw bars and curves with block characters; otherwise ASCII.
      colour: add terminal colours. Text from a run cannot add any: keys and names are escaped.
    """
    paint = _Paint(colour)
    width, height = max(width, 20), max(height, 4)
    top = [_title(board, width, now, paint), *_progress(board, width, unicode, paint)]
    bottom = _stages(board, width, unicode, paint)
    room = height - len(top) - len(bottom) - bool(bottom) - 1
    middle = _keys(board, width, room, unicode, paint) if room > 0 else []
    gap = _legend(board, width, paint)
    out = [*top, *([gap] if middle else []), *middle, *([""] if bottom and middle else []), *bottom]
    return out[:height]


def compact(board: Board, *, width: int = 0, now: float | None = None) -> str:
    """The board in one plain line: run, progress, speed, returns and losses, time by stage.

    Metrics of the host and of rollbook are only in the larger view.
    """
    parts = [f"[{duration(_elapsed(board, now))}] {plain(board.title)}"]
    clock = board.main_clock
    if clock:
        progress = f"{clock} {board.clocks[clock]:,}"
        done = board.share_done()
        if math.isfinite(done):
            progress += f" of {board.total[clock]:,} ({done:.0%})"
        speed = board.steps_per_second()
        if math.isfinite(speed):
            progress += f", {short(speed)}/s"
        left = board.seconds_left()
        if math.isfinite(left) and not board.status:
            progress += f", {duration(left)} left"
        parts.append(progress)
    chosen = sorted((key for key in board.keys if _rank(key) < _LAST), key=_rank)[:5]
    if chosen:
        mean = f" (~ mean of {MEAN_SECONDS} s)" if any(board.keys[key].is_mean for key in chosen) else ""
        parts.append("  ".join(f"{plain(key)} {_number(key, board.keys[key])}" for key in chosen) + mean)
    shares = [f"{plain(stage)} {share:.0%}" for stage, share in list(board.stage_shares().items())[:4]]
    if shares:
        parts.append("time: " + ", ".join(shares))
    if board.status:
        parts.append(board.status)
    line = " | ".join(parts)
    return cut(line, width) if width else line


def short(value: float) -> str:
    """A number in about nine columns or less; easy to read rather than exact."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) < 10**8:
            return f"{value:,}"
        try:
            return f"{value:.3e}"
        except OverflowError:
            return whole_number(value)[:6] + ".."
    size = abs(value)
    if not math.isfinite(value):
        return str(float(value))
    if size == 0:
        return "0"
    if size >= 1e6 or size < 1e-3:
        return f"{value:.3g}"
    if value == int(value) and size < 1e5:
        return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}"
    places = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 1 else 4
    return f"{value:,.{places}f}"


def size(n_bytes: float) -> str:
    """A number of bytes in the unit that fits: 812 B, 4.6 GB."""
    if not math.isfinite(n_bytes) or abs(n_bytes) >= 1e18:
        return short(n_bytes)
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while abs(n_bytes) >= 1000 and len(units) > 1:
        n_bytes, units = n_bytes / 1000, units[1:]
    return f"{n_bytes:.{0 if units[0] == 'B' else 1}f} {units[0]}"


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, 1:02:03, preceded by days if there are any."""
    if not math.isfinite(seconds):
        return "-:--:--"
    whole = int(max(0.0, seconds))
    days, rest = divmod(whole, 86_400)
    clock = f"{rest // 3600}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}d {clock}" if days else clock


class _Paint:
    """Adds colours if they are wanted."""

    def __init__(self, colour: bool) -> None:
        self.bold = _BOLD if colour else ""
        self.dim = _DIM if colour else ""
        self.red = _RED if colour else ""
        self.green = _GREEN if colour else ""
        self.cyan = _CYAN if colour else ""
        self.end = _END if colour else ""


def _elapsed(board: Board, now: float | None) -> float:
    until = board.latest if now is None or board.status else max(now, board.latest)
    return until - board.started


def _legend(board: Board, width: int, paint: _Paint) -> str:
    if not any(key.is_mean for key in board.keys.values()):
        return ""
    return f"{paint.dim}{f'~ mean of {MEAN_SECONDS} s':>{width}}{paint.end}"


def _title(board: Board, width: int, now: float | None, paint: _Paint) -> str:
    right = duration(_elapsed(board, now)) if math.isfinite(board.started) else ""
    if board.status:
        right = f"{board.status} in {right}"
    left = plain(board.title)
    if board.attempt > 1:
        left += f"  attempt {board.attempt}"
    left = cut(left, width - len(right) - 1)
    return f"{paint.bold}{left}{paint.end}{' ' * (width - wide(left) - len(right))}{paint.dim}{right}{paint.end}"


def _progress(board: Board, width: int, unicode: bool, paint: _Paint) -> list[str]:
    clock = board.main_clock
    if not clock:
        return []
    reading = board.clocks[clock]
    end, done = board.total.get(clock), board.share_done()
    speed, left = board.steps_per_second(), board.seconds_left()
    facts = [f"{reading:,}" if end is None else f"{reading:,} / {end:,}"]
    if math.isfinite(speed):
        facts.append(f"{short(speed)}/s")
    if math.isfinite(left) and not board.status:
        facts.append(f"{duration(left)} left")
    others = []
    for name, value in board.clocks.items():
        if name != clock:
            others.append(f"{name} {value:,}" + (f" / {board.total[name]:,}" if name in board.total else ""))
    name = cut(clock, 20)
    if end is None:
        rest = f"   {'   '.join([*facts, *others])}"
        return [paint.cyan + name + paint.end + cut(rest, width - len(name))]
    text = f"  {done:4.0%}  {'   '.join(facts)}"
    cells = max(0, min(40, width - len(name) - 2 - len(text)))
    bar = _bar(done, cells, unicode)
    line = paint.cyan + name + paint.end + "  " + paint.green + bar + paint.end + text
    if wide(name) + 2 + cells + wide(text) > width:
        line = cut(f"{name}  {text.strip()}", width)
    rest = "   ".join(others)
    return [line, *([paint.dim + cut(rest, width) + paint.end] if rest else [])]


def _bar(share: float, cells: int, unicode: bool, *, ground: bool = True) -> str:
    eighths = round(share * cells * 8)
    if not unicode:
        full = round(share * cells)
        return "#" * full + ("." * (cells - full) if ground else "")
    full, part = divmod(eighths, 8)
    bar = "█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")
    return bar + ("░" * (cells - len(bar)) if ground else "")


def _stages(board: Board, width: int, unicode: bool, paint: _Paint) -> list[str]:
    shares = board.stage_shares()
    if not shares:
        return []
    out, used = [], 4
    for stage, share in shares.items():
        name = cut(plain(stage), LONGEST_NAME)
        bar = _bar(share, 12, unicode, ground=False)
        part = f"{name} {bar}{' ' if bar else ''}{share:.0%}"
        if used + 3 + wide(part) > width:
            break
        used += 3 + wide(part)
        out.append(f"{name} {paint.green}{bar}{paint.end}{' ' if bar else ''}{share:.0%}")
    return [f"{paint.cyan}time{paint.end}   {'   '.join(out)}"] if out else []


def _keys(board: Board, width: int, room: int, unicode: bool, paint: _Paint) -> list[str]:
    """The keys by scope, in as many columns as fit. The last line counts keys that do not fit into `room` lines."""
    ranked = sorted(board.keys, key=_rank)
    shown = len(ranked)
    while shown:
        chosen = set(ranked[:shown])
        rows = _grid([key for key in board.keys if key in chosen], board, width, unicode, paint)
        left_out = len(ranked) - shown
        if len(rows) + bool(left_out) <= room:
            if left_out:
                rows.append(f"{paint.dim}and {left_out} more keys{paint.end}")
            return rows
        shown -= max(1, (len(rows) - room) // 2)
    return []


def _grid(keys: Sequence[str], board: Board, width: int, unicode: bool, paint: _Paint) -> list[str]:
    groups: dict[str, list[str]] = {}
    for key in keys:
        first, slash, _ = key.partition("/")
        groups.setdefault(first if slash else "", []).append(key)
    names = {key: cut(plain(key.partition("/")[2] or key), LONGEST_NAME) for key in keys}
    name_cells = max(map(wide, names.values()), default=0)
    cell = 2 + name_cells + 1 + VALUE_CELLS + 2 + SPARK_CELLS
    columns = max(1, (width + GAP) // (cell + GAP))
    has_curves = cell <= width
    if not has_curves:
        cell = width
        name_cells = min(name_cells, max(6, width - 2 - 1 - VALUE_CELLS - 2))
    blocks = []
    for group, members in groups.items():
        block = [(paint.bold + cut(plain(group), cell) + paint.end, min(wide(plain(group)), cell))] if group else []
        block += [_cell(names[key], board.keys[key], name_cells, has_curves, unicode, paint) for key in members]
        blocks.append(block)
    return _side_by_side(blocks, min(columns, max(1, len(blocks))), cell)


def _cell(name: str, key: Key, name_cells: int, curve: bool, unicode: bool, paint: _Paint) -> tuple[str, int]:
    number = _number(name, key)
    name = cut(name, name_cells)
    pad = " " * (name_cells - wide(name))
    sparks = spark(key.trend.points, SPARK_CELLS, unicode=unicode) if curve else ""
    bad = paint.red if not math.isfinite(key.last) else ""
    text = f"  {name}{pad} {bad}{number:>{VALUE_CELLS}}{paint.end if bad else ''}"
    used = 2 + name_cells + 1 + max(VALUE_CELLS, len(number))
    if sparks:
        text += f"  {paint.green}{sparks}{paint.end}"
        used += 2 + len(sparks)
    return text, used


def _side_by_side(blocks: Sequence[Sequence[tuple[str, int]]], columns: int, cell: int) -> list[str]:
    """Put blocks into columns of about equal height, in order, without splitting a block."""
    whole = sum(map(len, blocks))
    best: list[list[tuple[str, int]]] = []
    for target in range(-(-whole // columns), whole + 1):
        stacks: list[list[tuple[str, int]]] = [[]]
        for block in blocks:
            if stacks[-1] and len(stacks[-1]) + len(block) > target:
                stacks.append([])
            stacks[-1].extend(block)
        best = stacks
        if len(stacks) <= columns:
            break
    out = []
    for i in range(max(map(len, best), default=0)):
        line = ""
        pad = 0
        for stack in best:
            text, used = stack[i] if i < len(stack) else ("", 0)
            line += " " * pad + text
            pad = cell - used + GAP
        out.append(line)
    return out


def _number(name: str, key: Key) -> str:
    write = size if name.endswith("_bytes") else short
    return f"~{write(key.shown)}" if key.is_mean else write(key.shown)


def _rank(key: str) -> int:
    """What to keep when not everything fits: returns, then losses, then the rest; host and rollbook metrics last."""
    if key.startswith(("host/", "rollbook/")):
        return _LAST
    if _HEADLINE.search(key):
        return 0
    return 1 if _LOSS.search(key) else 2
