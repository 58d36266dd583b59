"""The registry of the API: one line a subject."""

from __future__ import annotations

from rollbook.server import keys, one_run, series, table_of_runs

__all__ = ["ENDPOINTS"]

ENDPOINTS = [
    *table_of_runs.ENDPOINTS,
    *one_run.ENDPOINTS,
    *keys.ENDPOINTS,
    *series.ENDPOINTS,
]
