"""The registry of the API: one line per subject."""

from __future__ import annotations

from rollbook.server import (
    alerts,
    boards,
    cause,
    colours,
    curves,
    edits,
    episodes,
    export_csv,
    files,
    health,
    hello,
    keys,
    logs,
    offered_columns,
    one_run,
    rollouts,
    samples,
    series,
    sql,
    sweeps,
    table_of_runs,
    timings,
    verdicts,
)

__all__ = ["ENDPOINTS"]

ENDPOINTS = [
    *hello.ENDPOINTS,
    *table_of_runs.ENDPOINTS,
    *offered_columns.ENDPOINTS,
    *one_run.ENDPOINTS,
    *keys.ENDPOINTS,
    *series.ENDPOINTS,
    *curves.ENDPOINTS,
    *verdicts.ENDPOINTS,
    *sweeps.ENDPOINTS,
    *alerts.ENDPOINTS,
    *cause.ENDPOINTS,
    *episodes.ENDPOINTS,
    *samples.ENDPOINTS,
    *rollouts.ENDPOINTS,
    *timings.ENDPOINTS,
    *health.ENDPOINTS,
    *logs.ENDPOINTS,
    *files.ENDPOINTS,
    *edits.ENDPOINTS,
    *boards.ENDPOINTS,
    *colours.ENDPOINTS,
    *sql.ENDPOINTS,
    *export_csv.ENDPOINTS,
]
