"""Statistics of groups of runs: arrays in, numbers out. Uses only numpy and scipy; no runs, files or plots.

    alignment     curves of several runs on one grid, without invented points
    smooth        TensorBoard's average, and the warm-up average
    aggregates    mean, median, IQM, optimality gap, profile, probability of improvement, ranks
    aggregate_row median, IQM, mean and optimality gap over tasks, each with its interval
    common_scale  scores of several tasks on one scale, by published anchors (`reference_scores`) or your own
    intervals     an interval by the method valid for the statistic and number of seeds, or why there is none
    bands         the same along a curve; a band for the whole curve
    closed_forms, bootstrap   those methods; `draws`, `replicates` and `iqm_bootstrap` make the resamples
    differences   intervals of the difference of two groups, and of the probability of improvement
    two_samples   tests of means: Welch's, and by permutation
    exact_ranks   exact p of sums of ranks, with ties
    judging       the two tests behind a verdict about two arms
    boundaries    the error that each look at growing data may spend
    plan          how groups are compared, and what each look may spend
    study         is A better than B: a plan and its looks
    verdict       the verdict about two groups, as a sentence
    deciding      how many seeds decide; `sample_size` has the power of a t test
    variance_shares  the variance explained by each setting of a sweep, by its seeds, and by chance

Axes in array names: R or N runs (seeds), T tasks, P points, B draws, V = runs x tasks. Random choices take
`rng: np.random.Generator` and use only that. docs/statistics.md shows by simulation where each method is valid.
"""

from rollbook.stats.aggregate_row import Aggregate, aggregate_row
from rollbook.stats.aggregates import (
    AGGREGATES,
    aggregate,
    iqm,
    mean,
    median,
    median_of_task_means,
    optimality_gap,
    performance_profile,
    probability_of_improvement,
    profile_of_task_means,
    rank_distribution,
)
from rollbook.stats.alignment import Aligned, OrderedRows, align, common_grid, ordered_rows, overlap
from rollbook.stats.bands import Band, band, whole_curve_band
from rollbook.stats.bootstrap import bca, bootstrap_t, expanded_percentile, percentile
from rollbook.stats.boundaries import boundaries, nominal_levels, open_ended, spent
from rollbook.stats.closed_forms import (
    clopper_pearson,
    order_statistics,
    order_statistics_coverage,
    student_t,
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
from rollbook.stats.differences import Difference, difference, improvement
from rollbook.stats.draws import run_counts, seed_counts
from rollbook.stats.exact_ranks import any_shape
from rollbook.stats.intervals import DECISIONS, Decision, Interval, complete_seeds, decide, interval, pointwise
from rollbook.stats.iqm_bootstrap import IqmReplicates, RefinedIqm, iqm_of_counts, refined_iqm
from rollbook.stats.judging import FEWEST, Tested, holds_with_one_more_failure, judge, least_p, unseen_share
from rollbook.stats.plan import Plan
from rollbook.stats.reference_scores import ATARI, D4RL, REFERENCES, Reference
from rollbook.stats.replicates import jackknife, replicates
from rollbook.stats.sample_size import power
from rollbook.stats.smooth import ema, warm_up_average
from rollbook.stats.study import Look, Study
from rollbook.stats.two_samples import (
    TwoSampleTest,
    permutation,
    welch,
    welch_interval,
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
    "band",
    "bca",
    "bootstrap_t",
    "boundaries",
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
    "improvement",
    "interval",
    "iqm",
    "iqm_of_counts",
    "jackknife",
    "judge",
    "least_p",
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
    "power_to_decide",
    "probability_of_improvement",
    "profile_of_task_means",
    "rank_distribution",
    "refined_iqm",
    "replicates",
    "run_counts",
    "seed_counts",
    "seeds_for_difference",
    "seeds_to_decide",
    "spent",
    "student_t",
    "unseen_share",
    "warm_up_average",
    "welch",
    "welch_interval",
    "whole_curve_band",
    "winsorised_t",
]
