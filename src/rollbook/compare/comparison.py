"""Groups of runs compared by one score, with tables and charts."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from rollbook import stats
from rollbook.compare.facts import BEFORE_VERDICTS, Fact, title_of, together
from rollbook.compare.group_curve import Floats
from rollbook.compare.paired import PairedSeeds, paired_seeds
from rollbook.compare.plans import plan_data
from rollbook.compare.scores import Entry, Group, Pair, in_a_sentence
from rollbook.compare.seeds import SeedPlan, as_seen
from rollbook.errors import UnknownOption, did_you_mean
from rollbook.stats import Aggregate, Difference, Interval, Study, Verdict
from rollbook.stats.differences import sentence_of_differences
from rollbook.stats.intervals import sentence_of_several
from rollbook.stats.verdict import TRAIN_MORE, better_than, cannot, short, statement, undecided, unseen
from rollbook.system.brief import screenful

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from rollbook.plots import Bars, Panel, Picture
    from rollbook.values.array_types import NDArray


_MOST_IN_WORDS = 6
"""Up to this many pairs have a sentence each."""


@dataclass(frozen=True, slots=True)
class ScoreEnd:
    """Where on the axis the scores of runs end.

    Attributes:
      kind: "own end": each run at its own. "common end": all at the first end of a run that counts. "chosen": all at a
        position that was asked for.
      axis: "" if the runs have several.
      at: the position where all end; None at their own ends.
      common_end: the first end of a run that counts; None if there is none.
      runs: how many runs count, that is, have finished and have a finite value.
    """

    kind: Literal["own end", "common end", "chosen"] = "own end"
    axis: str = ""
    at: float | None = None
    common_end: float | None = None
    runs: int = 0

    @property
    def why(self) -> str:
        """Why the scores end there."""
        if self.kind == "chosen":
            return "as chosen"
        if self.kind == "own end":
            return "each run at its own end"
        return (
            f"reached by all {self.runs} finished runs"
            if self.at is not None
            else ("no run has finished; each counts as far as it has come")
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Groups of runs compared by one score.

    Attributes:
      metric, by, how: the key, the field that forms the groups, and how a run's metric became one number.
      tasks: names of the tasks, ("",) for one.
      statistic: of the intervals.
      groups, pairs: in the order of the groups' first runs.
      thresholds_H, profiles_GH: performance profiles: the share of scores above each threshold, one row per group.
      study: the looks so far and the verdicts, and the plan, if there is one.
      facts: what readers should know besides: which runs were left out and why, what is not on one scale, whether
        another choice names another leader. `notes` has their sentences.
      preliminary: whether a result with more resamples will follow.
      lower_is_better: whether lower scores are better.
      normalised: whether scores are normalised by anchors, to 0 and 1.
      looks: label -> which colour and dashes of the style, from 0; without, those of a group's index.
      end: where on the axis the scores end, and why.
      entries: the runs that were asked about, with the rows that each score is made of.
    """

    metric: str
    by: str
    how: str
    tasks: tuple[str, ...]
    statistic: str
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]
    thresholds_H: Floats
    profiles_GH: Floats
    study: Study | None = None
    facts: tuple[Fact, ...] = ()
    preliminary: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    lower_is_better: bool = False
    normalised: bool = False
    looks: Mapping[str, int] = field(default_factory=dict)
    end: ScoreEnd = ScoreEnd()
    entries: tuple[Entry, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The facts in words; what holds of several groups is said once."""
        return tuple(fact.sentence for fact in together(self.facts))

    def sentences(self) -> list[str]:
        """What was compared at all, the verdicts, and what the numbers are."""
        return [*self.before(), *self.verdicts(), *self.after()]

    def before(self) -> list[str]:
        """What readers need before they read who won: environments judged by themselves, or taken together."""
        return [fact.sentence for fact in together(self.facts) if fact.kind in BEFORE_VERDICTS]

    def after(self) -> list[str]:
        """Sizes of differences, intervals, and the other notes."""
        paired = self.study is not None and self.study.plan.paired
        within = [pair.sentence() for pair in self.paired()] if paired else []
        rest = [fact.sentence for fact in together(self.facts) if fact.kind not in BEFORE_VERDICTS]
        return [*within, *self._differences(), *self._intervals(), *rest]

    def _intervals(self) -> list[str]:
        """The centre of each group and its interval; in one sentence if the same holds of all."""
        known = [(group.label, group.interval) for group in self.groups if group.interval is not None]
        together = sentence_of_several(known, self.metric) if len(known) > 1 else None
        if together is not None:
            return [together]
        return [f"{label}: {in_a_sentence(interval.sentence(self.metric))}" for label, interval in known]

    def _differences(self) -> list[str]:
        """By how much the groups differ, each pair once, the larger one first."""
        found = [pair for pair in self.pairs if pair.interval is not None and pair.difference != 0]
        if not found or len(self.pairs) > _MOST_IN_WORDS or (len(self.tasks) > 1 and not self.on_one_scale):
            return []
        by_statistic: dict[str, list[tuple[str, str, Difference]]] = {}
        for pair in found:
            if pair.interval is not None:
                by_statistic.setdefault(pair.interval.statistic, []).append((pair.a, pair.b, pair.interval))
        return [sentence_of_differences(some) for some in by_statistic.values()]

    @property
    def on_one_scale(self) -> bool:
        """Whether the scores of all tasks can be averaged."""
        return not any(fact.kind == "tasks not on one scale" for fact in self.facts)

    def verdicts(self) -> list[str]:
        """A sentence for each pair, of many pairs one for each winner; what holds for all pairs is stated once."""
        found = [pair.verdict for pair in self.pairs if pair.verdict is not None]
        unable = [verdict for verdict in found if verdict.outcome in ("cannot decide", "too few seeds")]
        alike = len({(v.outcome, v.n, v.enough, v.pairs) for v in unable}) == 1
        together = alike and len(unable) > 1 and (unable[0].outcome == "cannot decide" or len(unable) == len(found))
        lead = [cannot(unable[0], self._others_of(unable[0].a))] if together else []
        winners = [v.n_a if v.better == v.a else v.n_b for v in found if v.better is not None]
        end = [unseen(min(winners), stats.unseen_share(min(winners)))] if winners else []
        if len(self.pairs) > _MOST_IN_WORDS:
            return [*lead, *self._of_many_pairs(found, [] if together else unable), *end]
        pairs = []
        for pair in self.pairs:
            judged = pair.verdict
            pairs.append(short(judged) if together and judged is not None and judged in unable else pair.sentence())
        return [*lead, *pairs, *end]

    def _of_many_pairs(self, found: Sequence[Verdict], unable: Sequence[Verdict]) -> list[str]:
        """The verdicts of more pairs than anybody reads: by winner, how many are open, and all groups in order."""
        of_winner: dict[str, list[Verdict]] = {}
        for verdict in found:
            if verdict.better is not None:
                of_winner.setdefault(verdict.better, []).append(verdict)
        ranked = self._in_order()
        ranks = {label: rank for rank, label in enumerate(ranked)}
        words = [better_than(of_winner[winner]) for winner in sorted(of_winner, key=lambda label: ranks.get(label, 0))]
        open_pairs = [v for v in found if v.better is None and v.outcome not in ("cannot decide", "too few seeds")]
        words += [undecided([*open_pairs, *unable], len(self.pairs))] if open_pairs or unable else []
        apart = [f"{pair.a} and {pair.b}" for pair in self.pairs if pair.verdict is None]
        words += [f"Not compared, for lack of a common point of the axis: {'; '.join(apart)}."] if apart else []
        all_in_pairs = len(self.pairs) == math.comb(len(self.groups), 2)  # those of other environments are in none
        return [*words, f"In the order of their scores: {', '.join(ranked)}."] if all_in_pairs else words

    def _in_order(self) -> list[str]:
        """The groups with a score, the best first."""
        known = [group for group in self.groups if len(group.seeds_R)]
        centre = {group.label: float(stats.aggregate(self.statistic, group.seeds_R)) for group in known}
        return sorted(centre, key=lambda label: centre[label], reverse=not self.lower_is_better)

    def _others_of(self, label: str) -> int:
        """How many pairs there would be against one group alone; 0 if that is what is compared."""
        against = self.study.plan.against if self.study is not None else None
        others = sum(label in (pair.a, pair.b) for pair in self.pairs)
        return others if against is None and others > 1 else 0

    def next_seeds(self) -> dict[str, int]:
        """Label -> how many more finished seeds of it would decide the pair that is closest to it; {} if none would.

        The number is that for a chance of 80 % if the difference is as it looks now, or the fewest that can decide.
        """
        wanted: dict[str, int] = {}
        goals = [
            (goal, verdict)
            for pair in self.pairs
            if (verdict := pair.verdict) is not None and verdict.outcome in TRAIN_MORE
            if (goal := verdict.more if verdict.outcome == "not decided" else verdict.enough) is not None
        ]
        nearest = min((goal for goal, _ in goals), default=0)
        for goal, verdict in goals:
            for label, seeds in ((verdict.a, verdict.n_a), (verdict.b, verdict.n_b)):
                if goal == nearest and goal > seeds:
                    wanted[label] = max(wanted.get(label, 0), goal - seeds)
        return wanted

    def __repr__(self) -> str:
        counts = ", ".join(f"{group.label} {len(group.seeds_R)}" for group in self.groups)
        return screenful([f"<Comparison of {title_of(self.metric, self.by)}, {self.how}: {counts}>", *self.sentences()])

    def plan_data(self) -> dict[str, Any] | None:
        """The plan with its looks and verdicts as plain data for JSON; None without a plan. See `plans.plan_data`."""
        return None if self.study is None or self.study.plan.seeds is None else plan_data(self.study)

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid, sentences

        conclusions = self.sentences()
        return card(title_of(self.metric, self.by), self.how, sentences(conclusions), grid(self.table()))

    def table(self) -> list[dict[str, Any]]:
        """One row per group: group, n, estimate, low, high, method, claim, crashed, running."""
        return [
            {
                "group": group.label,
                "n": len(group.seeds_R),
                self.statistic: None if group.interval is None else group.interval.estimate,
                "low": None if group.interval is None else group.interval.low,
                "high": None if group.interval is None else group.interval.high,
                "method": "" if group.interval is None else group.interval.method,
                "claim": None if group.interval is None else group.interval.claim,
                "crashed": len(group.crashed),
                "running": len(group.running),
            }
            for group in self.groups
        ]

    def aggregates(self, resample: str = "seeds") -> dict[str, tuple[Aggregate, ...]]:
        """Median, IQM, mean and, for normalised scores, optimality gap of each group, as rliable defines them.

        Args:
          resample: "seeds" draws whole seeds with all their tasks. "runs" draws the runs of each task separately
            (stratified bootstrap, rliable's intervals), for scores whose runs are unrelated across tasks.
        Returns:
          Label -> one `Aggregate` per statistic, over the seeds that have all tasks; groups without any are left out.
        Raises:
          UnknownOption: another value of `resample`.
        """
        complete = {group.label: stats.complete_seeds(group.scores_RT)[0] for group in self.groups}
        return {
            label: stats.aggregate_row(
                scores_RT,
                gap=self.normalised and not self.lower_is_better,
                resample=resample,
                rng=np.random.default_rng(list(label.encode("utf-8", "surrogatepass"))),
            )
            for label, scores_RT in complete.items()
            if len(scores_RT)
        }

    def paired(self) -> list[PairedSeeds]:
        """Each pair of groups, seed by seed, for studies where equal seeds share something, such as their tasks; those
        with `against` alone, if one was named."""
        against = self.study.plan.against if self.study is not None else None
        return [
            paired_seeds(a, b, self.lower_is_better)
            for a, b in itertools.combinations(self.groups, 2)
            if against in (None, a.label, b.label)
        ]

    def seed_plan(self, difference: float | None, power: float, counts: Sequence[int]) -> SeedPlan:
        """How many seeds each group needs, from the scores seen so far; see `seeds.as_seen`."""
        verdicts = [pair.verdict for pair in self.pairs if pair.verdict is not None]
        scores = [group.seeds_R for group in self.groups]
        found = as_seen(scores, self.study or Study(), verdicts, difference, power, counts)
        return replace(found, verdicts=verdicts, verdict_sentences=self.verdicts())

    def as_data(self) -> dict[str, Any]:
        """Verdicts, groups and notes as plain data for JSON."""
        return {
            "sentences": self.sentences(),
            "pairs": [pair.as_data() for pair in self.pairs],
            "groups": self.table(),
            "more_seeds": self.next_seeds(),
            "facts": [
                {"kind": f.kind, "group": f.group, "runs": list(f.runs), "sentence": f.sentence} for f in self.facts
            ],
        }

    def latex(self, resample: str | None = None) -> str:
        """The groups as a LaTeX table (booktabs) with seeds, estimate and interval.

        Args:
          resample: "seeds" or "runs" gives a table of all `aggregates` instead.
        """

        if resample is not None:
            counts = {group.label: len(group.seeds_R) for group in self.groups}
            return aggregates_table(self.aggregates(resample), counts, self.metric, self.by)
        verdicts = [statement(pair.verdict) for pair in self.pairs if pair.verdict is not None]
        return latex_table(self.groups, self.metric, self.by, self.how, self.statistic, verdicts)

    def markdown(self) -> str:
        """The same as a table in Markdown, with what it is and the verdicts below it."""
        verdicts = [statement(pair.verdict) for pair in self.pairs if pair.verdict is not None]
        return markdown_table(self.groups, self.metric, self.by, self.how, self.statistic, verdicts)

    def plot(self, chart: str = "intervals", *, theme: str = "light", **options: Any) -> Picture:
        """The comparison as a chart.

        Args:
          chart: "intervals", "aggregates", "profiles" or "improvement".
          theme: "light" or "dark".
          options: options of the chart. "aggregates" also takes `resample`; "improvement" takes `against`, one group,
            to show only the pairs with it.
        Raises:
          UnknownOption: there is no such chart of a comparison.
        """
        from rollbook.plots import draw

        makers: dict[str, Callable[..., object]] = {
            "intervals": self._bars,
            "aggregates": self._aggregates,
            "profiles": self._profiles,
            "improvement": self._improvement,
        }
        if chart not in makers:
            raise UnknownOption(f"plot({chart!r}): a comparison has no such chart.", did_you_mean(chart, list(makers)))
        of_numbers = {"aggregates": "resample", "improvement": "against"}.get(chart)
        mine = {of_numbers: options.pop(of_numbers)} if of_numbers in options else {}
        return draw(chart, makers[chart](**mine), theme=theme, **options)

    def _bars(self) -> Bars:
        from rollbook.plots import Bars

        def ends(group: Group) -> tuple[float, float]:
            interval = group.interval
            if interval is None or interval.low is None or interval.high is None or not interval.is_honest:
                return math.nan, math.nan
            return interval.low, interval.high

        known = [group for group in self.groups if group.interval is not None]
        several = len(self.tasks) > 1
        return Bars(
            f"{self.metric}, {self.how}",
            f"{'IQM' if self.statistic == 'iqm' else self.statistic} (stroke), interval (bar), "
            f"{'seeds, averaged over tasks' if several else 'seeds'} (dots)",
            tuple(group.label for group in known),
            np.array([group.interval.estimate for group in known if group.interval is not None]),
            np.array([ends(group)[0] for group in known]),
            np.array([ends(group)[1] for group in known]),
            tuple(group.seeds_R for group in known),
            tuple(_how_sure(group.interval) for group in known if group.interval is not None),
            remarks=(*self._verdicts_in_a_picture(self.pairs), *self._notes_in_a_picture()),
            looks=self._looks_of(group.label for group in known),
        )

    def _aggregates(self, resample: str = "seeds") -> list[Bars]:
        from rollbook.plots import Bars

        found = self.aggregates(resample)
        if not found:
            return []
        draws = max(each.draws for row in found.values() for each in row)
        remarks = (*([_how_drawn(resample, draws)] if draws else []), *self._notes_in_a_picture())
        missing = [label for label, row in found.items() if row[0].low is None]
        if missing:
            remarks += (f"No interval of so few runs: {', '.join(missing)}.",)
        panels = []
        for one in range(len(next(iter(found.values())))):
            column = [row[one] for row in found.values()]
            panels.append(
                Bars(
                    column[0].name,
                    "lower is better"
                    if self.lower_is_better or column[0].statistic == "optimality_gap"
                    else self.metric,
                    tuple(found),
                    np.array([each.estimate for each in column]),
                    np.array([math.nan if each.low is None else each.low for each in column]),
                    np.array([math.nan if each.high is None else each.high for each in column]),
                    (np.zeros(0),) * len(column),
                    ("",) * len(column),
                    remarks=remarks,
                    looks=self._looks_of(found),
                )
            )
        return panels

    def _looks_of(self, labels: Iterable[str]) -> tuple[int, ...]:
        indices = {group.label: index for index, group in enumerate(self.groups)}
        return tuple(self.looks.get(label, indices[label]) for label in labels)

    def _verdicts_in_a_picture(self, pairs: Sequence[Pair]) -> list[str]:
        """The verdicts of these pairs, short and without advice: a picture is shown without its program."""
        decided = [p for p in pairs if p.better]
        open_pairs = [p for p in pairs if not p.better and p.verdict is not None]
        apart = [f"{p.a} and {p.b}" for p in pairs if p.verdict is None]
        if len(pairs) == 1 and not apart:
            return [statement(pairs[0].verdict)]  # type: ignore[arg-type]
        lower = " (lower is better)" if self.lower_is_better else ""
        better = [f"{p.better} is better than {p.b if p.better == p.a else p.a}" for p in decided]
        conclusions = [f"{'; '.join(better)}{lower}."] if decided else []
        how = " by the plan" if self.study is not None and self.study.plan.seeds is not None else ""
        some = "; ".join(f"{p.a} and {p.b}" for p in open_pairs)
        some = f"{len(open_pairs)} of {len(pairs)} pairs" if len(open_pairs) > 3 else some
        conclusions += [f"Not decided{how}{'' if decided else lower}: {some}."] if open_pairs else []
        return conclusions + ([f"Not compared: {'; '.join(apart)}."] if apart else [])

    def _notes_in_a_picture(self) -> tuple[str, ...]:
        return tuple(fact.statement for fact in together(self.facts))

    def _improvement(self, against: str | None = None) -> Bars:
        from rollbook.plots import Bars

        scores = {group.label: stats.complete_seeds(group.scores_RT)[0] for group in self.groups}
        if against is not None and against not in scores:
            raise UnknownOption(f"against={against!r}: there is no such group.", did_you_mean(against, list(scores)))
        known = [
            pair if against != pair.b else replace(pair, a=pair.b, b=pair.a, improvement=1 - pair.improvement)
            for pair in self.pairs
            if not math.isnan(pair.improvement) and against in (None, pair.a, pair.b)
        ]
        better = -1.0 if self.lower_is_better else 1.0
        found = [stats.improvement(better * scores[pair.a], better * scores[pair.b]) for pair in known]
        side = "lower" if self.lower_is_better else "higher"
        return Bars(
            f"{self.metric}: probability of improvement",
            f"how often a seed of the first scores {side} than one of the second (ties count half)",
            tuple(f"{pair.a} over {pair.b}" for pair in known),
            np.array([each.estimate for each in found]),
            np.array([math.nan if each.low is None else each.low for each in found]),
            np.array([math.nan if each.high is None else each.high for each in found]),
            tuple(np.zeros(0) for _ in known),
            tuple(
                f"{100 * each.estimate:.3g} % of {each.n_a} x {each.n_b} pairs of seeds; "
                + (f"no interval: {each.reason}" if each.low is None else f"interval: {each.method}, nominally 95 %")
                for each in found
            ),
            zero=0.5,
            span=(-0.02, 1.02),
            remarks=tuple(self._verdicts_in_a_picture(known)),
            neutral=True,
        )

    def _profiles(self) -> Panel:
        from rollbook.plots import Line, Panel

        lines = tuple(
            Line(
                f"{group.label}: share of {len(group.seeds_R)} seeds, no band",
                self.thresholds_H,
                shares,
                steps=True,
                look=look,
            )
            for group, shares, look in zip(
                self.groups, self.profiles_GH, self._looks_of(group.label for group in self.groups), strict=True
            )
        )
        title = f"{self.metric}: share of scores {'below' if self.lower_is_better else 'above'} a threshold"
        return Panel(title, f"threshold ({self.how})", lines, remarks=self._notes_in_a_picture())

    def to_pandas(self) -> pd.DataFrame:
        """`table()` as a data frame."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def to_polars(self) -> pl.DataFrame:
        """`table()` as a Polars data frame."""
        import polars as pl

        return pl.DataFrame(self.table())

    def scores(self) -> dict[str, NDArray]:
        """Every score in long form, as seaborn expects it: group, run, task, score."""
        rows = [
            (group.label, name, task, score)
            for group in self.groups
            for name, scores_T in zip(group.names, group.scores_RT, strict=True)
            for task, score in zip(self.tasks, scores_T.tolist(), strict=True)
            if not math.isnan(score)
        ]
        named = zip(("group", "run", "task"), range(3), strict=True)
        columns: dict[str, NDArray] = {name: np.array([row[n] for row in rows], object) for name, n in named}
        return columns | {"score": np.array([row[3] for row in rows], dtype=np.float64)}


def _how_drawn(resample: str, draws: int) -> str:
    """How the intervals of aggregates were computed, and what they do not guarantee."""
    if resample == "seeds":
        return (
            f"Nominally 95 %: expanded percentiles of {draws:,} bootstrap samples of whole seeds with all their tasks."
        )
    return (
        f"Nominally 95 %: percentiles of {draws:,} bootstrap samples, runs drawn task by task (stratified, as in "
        "rliable): too narrow where runs are few or share their luck over tasks."
    )


def _how_sure(interval: Interval) -> str:
    """What an interval claims, its method and its number of seeds, or why there is no interval."""
    if interval.is_honest:
        return f"{interval.method}: {_share_held(interval)}"
    why = interval.reason or f"{interval.method} of so few seeds does not hold at {100 * interval.level:g} %"
    return f"no interval, n = {interval.n}: {why}"


_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def latex_table(
    groups: tuple[Group, ...], metric: str, by: str, how: str, statistic: str, verdicts: Sequence[str] = ()
) -> str:
    """A `tabular` of group, seeds, estimate and interval, with comments above that explain the numbers and say the
    verdicts.

    Digits: as many as two significant digits of half the interval need; four without an interval.
    """
    name = "IQM" if statistic == "iqm" else statistic
    sure = dict.fromkeys(_share_held(group.interval) for group in groups if group.interval is not None)
    lines = [
        f"% {name} of {title_of(f'{metric} ({how})', by)}; needs \\usepackage{{booktabs}}",
        *(f"% interval: {words}" for words in sure if words),
        *(f"% {''.join(letter for letter in words if letter.isprintable())}" for words in verdicts),
        r"\begin{tabular}{lrrc}",
        r"\toprule",
        rf"{escaped(by.removeprefix('config.'))} & seeds & {escaped(name)} & interval \\",
        r"\midrule",
    ]
    for label, seeds, numbers in _numbers_of(groups):
        estimate, low, high = (f"${number}$" if number else "--" for number in numbers)
        lines.append(rf"{escaped(label)} & {seeds} & {estimate} & {low if low == '--' else f'{low} to {high}'} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def markdown_table(
    groups: tuple[Group, ...], metric: str, by: str, how: str, statistic: str, verdicts: Sequence[str] = ()
) -> str:
    """A table of group, seeds, estimate and interval in Markdown, and below it what the numbers are and the verdicts.

    Digits: as in `latex_table`.
    """
    name = "IQM" if statistic == "iqm" else statistic
    sure = dict.fromkeys(_share_held(group.interval) for group in groups if group.interval is not None)
    head = ("group" if by == "auto" else by.removeprefix("config."), "seeds", name, "interval")
    lines = [f"| {' | '.join(map(in_markdown, head))} |", "|---|---:|---:|---|"]
    for label, seeds, numbers in _numbers_of(groups):
        estimate, low, high = (number or "--" for number in numbers)
        lines.append(f"| {in_markdown(label)} | {seeds} | {estimate} | {low if low == '--' else f'{low} to {high}'} |")
    remarks = [f"interval: {words}" for words in sure if words]
    below = [f"{name} of {title_of(f'{metric} ({how})', by)}; {'; '.join(remarks)}".removesuffix("; ") + ".", *verdicts]
    return "\n".join([*lines, "", *(f"{in_markdown(words)}  " for words in below)]) + "\n"


def _numbers_of(groups: Iterable[Group]) -> Iterator[tuple[str, int, tuple[str, str, str]]]:
    """(label, seeds, (estimate, low, high)) of each group, with as many digits as half the interval knows; "" for
    none."""
    for group in groups:
        of = group.interval
        low, high = (None, None) if of is None else (of.low, of.high)
        known = low is not None and high is not None and math.isfinite(low) and math.isfinite(high)
        half = (high - low) / 2 if known and low is not None and high is not None else 0.0
        ends = (_digits(low, half), _digits(high, half)) if known else ("", "")
        yield group.label, len(group.seeds_R), (_digits(None if of is None else of.estimate, half), *ends)


def _share_held(interval: Interval) -> str:
    """What an interval claims: one number, and what it means; "" without an interval."""
    if interval.low is None or interval.high is None:
        return ""
    if interval.claim is not None:
        return f"holds the true value in at least {100 * interval.claim:g} % of such studies ({interval.n} seeds)"
    return f"{100 * interval.level:g} % if no rare kind of seed was missed ({interval.n} seeds)"


def aggregates_table(
    aggregates: Mapping[str, tuple[Aggregate, ...]], counts: Mapping[str, int], metric: str, by: str
) -> str:
    """A `tabular` with one row per group and one column per statistic, each with its interval in brackets."""
    names = [each.name for each in next(iter(aggregates.values()), ())]
    lines = [
        f"% aggregates of {title_of(metric, by)}, 95 % bootstrap intervals; needs \\usepackage{{booktabs}}",
        rf"\begin{{tabular}}{{lr{'c' * len(names)}}}",
        r"\toprule",
        rf"{escaped(by.removeprefix('config.'))} & runs & {' & '.join(map(escaped, names))} \\",
        r"\midrule",
    ]
    for label, row in aggregates.items():
        halves = [0.0 if each.low is None or each.high is None else (each.high - each.low) / 2 for each in row]
        cells = [
            f"{_number(each.estimate, half)} ({_number(each.low, half)} to {_number(each.high, half)})"
            if half
            else _number(each.estimate, half)
            for each, half in zip(row, halves, strict=True)
        ]
        lines.append(rf"{escaped(label)} & {counts[label]} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def escaped(text: str) -> str:
    """Text that LaTeX prints unchanged; unprintable characters are left out."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text if letter.isprintable())


def in_markdown(text: str) -> str:
    """Text that a Markdown table prints unchanged; unprintable characters are left out."""
    plain = "".join(letter for letter in text if letter.isprintable())
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", plain)


def _number(value: float | None, half: float) -> str:
    digits = _digits(value, half)
    return f"${digits}$" if digits else "--"


def _digits(value: float | None, half: float) -> str:
    if value is None or not math.isfinite(value):
        return ""
    if not half > 0:
        return f"{value:.4g}" if 1e-3 <= abs(value) < 1e6 or not value else f"{value:.3e}"
    return f"{value:.{max(0, 1 - math.floor(math.log10(half)))}f}"
