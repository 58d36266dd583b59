"""Statistics of groups of runs: arrays in, numbers out. Uses only numpy and scipy; no runs, files or plots.

    alignment     curves of several runs on one grid, without invented points
    smooth        TensorBoard's average, the warm-up average, rolling mean and median
    aggregates    mean, median, IQM, optimality gap, profiles, probability of improvement, ranks, area under the curve
    aggregate_row median, IQM, mean and optimality gap over tasks, each with its interval
    common_scale  scores of several tasks on one scale, by published or own anchors
    intervals     an interval by the method valid for the statistic and number of seeds, or why there is none
    bands         the same along a curve; a band for the whole curve
    differences   intervals of the difference of two groups, of the probability of improvement, of a profile
    two_samples   Welch, permutation and rank tests
    several       many comparisons at once: Holm, step-down over tasks
    variance_shares  the variance explained by each setting of a sweep, by its seeds, and by chance
    sample_size   the power to detect a difference, before the study
    boundaries    the error that each look at growing data may spend
    exact_ranks   exact p of sums of ranks, with ties
    judging       the two tests behind a verdict about two arms
    deciding      how many seeds decide
    plan          how groups are compared, and what each look may spend
    study         is A better than B: a plan and its looks
    verdict       the verdict about two groups, as a sentence

Axes in array names: R or N runs (seeds), T tasks, P points, B draws, V = runs x tasks. Random choices take
`rng: np.random.Generator` and use only that. docs/statistics.md shows by simulation where each method is valid.
"""

from rollbook.stats.aggregate_row import Aggregate, aggregate_row
from rollbook.stats.aggregates import (
    AGGREGATES,
    aggregate,
    area_under_curve,
    iqm,
    mean,
    median,
    median_of_task_means,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_of_task_means,
    rank_distribution,
    sample_efficiency,
    steps_to_reach,
)
from rollbook.stats.alignment import Aligned, OrderedRows, align, common_grid, ordered_rows, overlap
from rollbook.stats.bands import Band, band, centre_line, whole_curve_band
from rollbook.stats.bootstrap import bca, bootstrap_t, expanded_percentile, percentile
from rollbook.stats.boundaries import boundaries, classical_constant, nominal_levels, open_ended, spent
from rollbook.stats.closed_forms import (
    clopper_pearson,
    order_statistics,
    order_statistics_coverage,
    student_t,
    tolerance,
    winsorised_t,
)
from rollbook.stats.common_scale import anchors_of, normalise
from rollbook.stats.deciding import (
    detectable,
    difference_of_share,
    fewest_that_decide,
    power_to_decide,
    seeds_for_difference,
    seeds_to_decide,
)
from rollbook.stats.differences import Difference, difference, improvement, profile_band
from rollbook.stats.draws import run_counts, seed_counts
from rollbook.stats.exact_ranks import any_shape
from rollbook.stats.intervals import DECISIONS, Decision, Interval, complete_seeds, decide, interval, pointwise
from rollbook.stats.iqm_bootstrap import IqmReplicates, RefinedIqm, iqm_of_counts, refined_iqm
from rollbook.stats.judging import FEWEST, Tested, holds_with_one_more_failure, judge, least_p, unseen_share
from rollbook.stats.multiple_comparisons import holm, step_down_tasks
from rollbook.stats.plan import Plan
from rollbook.stats.reference_scores import ATARI, D4RL, REFERENCES, Reference
from rollbook.stats.replicates import jackknife, replicates
from rollbook.stats.sample_size import power, power_table, seeds_for
from rollbook.stats.smooth import ema, rolling_mean, rolling_median, warm_up_average
from rollbook.stats.study import Look, Study
from rollbook.stats.two_samples import (
    TwoSampleTest,
    brunner_munzel,
    mann_whitney,
    permutation,
    welch,
    welch_interval,
    yuen,
)
from rollbook.stats.verdict import Verdict

__all__ = [
    "AGGREGATES",
    "ATARI",
    "D4RL",
    "DECISIONS",
    "FEWEST",
    "REFERENCES",
    "Aggregate",
    "Aligned",
    "Band",
    "Decision",
    "Difference",
    "Interval",
    "IqmReplicates",
    "Look",
    "OrderedRows",
    "Plan",
    "Reference",
    "RefinedIqm",
    "Study",
    "Tested",
    "TwoSampleTest",
    "Verdict",
    "aggregate",
    "aggregate_row",
    "align",
    "anchors_of",
    "any_shape",
    "area_under_curve",
    "band",
    "bca",
    "bootstrap_t",
    "boundaries",
    "brunner_munzel",
    "centre_line",
    "classical_constant",
    "clopper_pearson",
    "common_grid",
    "complete_seeds",
    "decide",
    "detectable",
    "difference",
    "difference_of_share",
    "ema",
    "expanded_percentile",
    "fewest_that_decide",
    "holds_with_one_more_failure",
    "holm",
    "improvement",
    "interval",
    "iqm",
    "iqm_of_counts",
    "jackknife",
    "judge",
    "least_p",
    "mann_whitney",
    "mean",
    "median",
    "median_of_task_means",
    "nominal_levels",
    "normalise",
    "open_ended",
    "optimality_gap",
    "order_statistics",
    "order_statistics_coverage",
    "ordered_rows",
    "overlap",
    "percentile",
    "performance_profile",
    "permutation",
    "pointwise",
    "power",
    "power_table",
    "power_to_decide",
    "probability_of_improvement",
    "profile_band",
    "profile_of_task_means",
    "rank_distribution",
    "refined_iqm",
    "replicates",
    "rolling_mean",
    "rolling_median",
    "run_counts",
    "sample_efficiency",
    "seed_counts",
    "seeds_for",
    "seeds_for_difference",
    "seeds_to_decide",
    "spent",
    "step_down_tasks",
    "steps_to_reach",
    "student_t",
    "tolerance",
    "unseen_share",
    "warm_up_average",
    "welch",
    "welch_interval",
    "whole_curve_band",
    "winsorised_t",
    "yuen",
]
