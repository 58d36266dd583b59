"""Sources as trees, each parsed once by a worker: tests of the house look at all of them."""

from __future__ import annotations

import ast
import functools
import gc


@functools.cache
def tree(source: str) -> ast.Module:
    """The syntax tree of some source; not to be changed.

    Without the collector of garbage: what it calls may parse, too, and CPython before 3.11.9 then says "recursion depth
    mismatch" (gh-106905).
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if was_on:
            gc.enable()
