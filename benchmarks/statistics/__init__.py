"""The simulations behind docs/statistics.md: what intervals cover, how often a verdict errs, what they cost.

    python -m benchmarks.statistics.coverage            intervals: does the truth lie inside?
    python -m benchmarks.statistics.grid                what is claimed at worst: coverage, verdicts, evidence
    python -m benchmarks.statistics.speed               the bootstrap of the IQM; beside rliable where it is installed
    python -m benchmarks.statistics.curves              bands along training

Each prints Markdown tables and takes a number of studies; the same number and seed give the same table.
"""
