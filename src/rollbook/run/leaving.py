"""Whether a run is finished because an exception leaves the program's block: by `finish()` in a `finally`, by a context
manager of the program's own, or in an `except` that raises again.

    try:
        train(run)  # raises
    finally:
        run.finish()  # the run is crashed, and keeps the reason

An exception that the program has caught ends nothing: in an `except` that does not raise, and where a second training
runs in it, the run is finished. Python itself does not tell these apart, so the source is asked.
"""

from __future__ import annotations

import os
import sys

from rollbook.system.guard import tolerating

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from types import FrameType, TracebackType
    from typing import Any

_OWN = os.path.dirname(os.path.dirname(__file__))
_FARTHEST = 8
"""Functions between the block and the call of `finish`, such as a program's own `cleanup()`."""


def leaving_exception() -> BaseException | None:
    """The exception that leaves the block in which rollbook was called; None if none does, or the source is unknown."""
    error = sys.exc_info()[1]
    if error is None or isinstance(error, GeneratorExit):
        return None
    with tolerating(Exception):  # a source that changed meanwhile, or of another language
        if (block := _block_of(error.__traceback__)) is not None:
            frame, raised_at = block
            if _leaves(frame, raised_at):
                return error
    return None


def _block_of(trace: TracebackType | None) -> tuple[FrameType, int] | None:
    """The frame around the call whose block the exception has reached, and the line of it that raised."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    for _ in range(_FARTHEST):
        if frame is None or trace is None:
            return None
        if trace.tb_frame is frame:
            return frame, trace.tb_lineno
        frame = frame.f_back
    return None


def _leaves(frame: FrameType, raised_at: int) -> bool:
    """Whether what was raised at a line of a frame leaves the block that the frame is in now."""
    import ast
    import inspect
    import linecache
    import textwrap

    lines, first = linecache.getlines(frame.f_code.co_filename, frame.f_globals), 1
    if frame.f_code.co_name != "<module>":
        first = frame.f_code.co_firstlineno
        lines = inspect.getblock(lines[first - 1 :])
    here, there = frame.f_lineno - first + 1, raised_at - first + 1
    tree = ast.parse(textwrap.dedent("".join(lines)))
    blocks = [block for node in ast.walk(tree) for block in _blocks(node, here, there)]
    return max(blocks, default=(0, False))[1]  # that of the innermost


def _blocks(node: ast.AST, here: int, there: int) -> list[tuple[int, bool]]:
    """(line, whether it passes an exception on) of the blocks of a statement that `here` is in and that get what was
    raised `there`."""
    import ast

    if isinstance(node, (ast.With, ast.AsyncWith)):
        is_header = node.lineno <= here < node.body[0].lineno
        return [(node.lineno, True)] if is_header and _has(node.body, there) else []
    if not isinstance(node, (ast.Try, ast.TryStar)):
        return []
    found = []
    if _has(node.finalbody, here) and _has([*node.body, *node.handlers, *node.orelse], there):
        found.append((node.finalbody[0].lineno, True))
    for handler in node.handlers:
        if _has(handler.body, here) and _has(node.body, there):
            found.append((handler.lineno, _ends(handler.body[-1])))
    return found


def _has(nodes: list[Any], line: int) -> bool:
    return bool(nodes) and nodes[0].lineno <= line <= (nodes[-1].end_lineno or 0)


def _ends(last: ast.stmt) -> bool:
    """Whether a block ends the program, or passes on what was raised."""
    import ast

    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return isinstance(last, ast.Raise)
    return getattr(last.value.func, "attr", getattr(last.value.func, "id", "")) in ("exit", "_exit")
