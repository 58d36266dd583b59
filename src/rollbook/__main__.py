"""`python -m rollbook` is the program `rollbook`."""

from __future__ import annotations

from rollbook.cli import main

main()
