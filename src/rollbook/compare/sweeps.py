"""Analysis of a sweep: which settings affect the score, which configuration may be the best, what to run next."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from rollbook import stats
from rollbook.compare.group_curve import Floats
from rollbook.compare.scores import Entry
from rollbook.compare.seeding import generator
from rollbook.stats.variance_shares import variance_shares
from rollbook.system.brief import brief
from rollbook.system.texts import amount, setting_text

_LEVEL = 0.95
_FEWEST = 6
"""With fewer configurations of several settings than this, the effects of settings cannot be separated."""
_MOST_LEVELS = 4
_SHOWN = 3


@brief
@dataclass(frozen=True, slots=True)
class Tried:
    """One configuration and its seeds.

    Attributes:
      group: its name among the entries.
      settings: name -> value of the settings that differ in the sweep; None if not set.
      names, scores_R: the runs that count and their scores.
      crashed, running, without_score: names of the runs that do not count.
      mean, std: of the scores (std with n - 1); NaN if there are too few.
      may_be_best: whether this configuration may be the best one, given its seeds.
    """

    group: str
    settings: Mapping[str, object]
    names: tuple[str, ...]
    scores_R: Floats
    crashed: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    without_score: tuple[str, ...] = ()
    mean: float = math.nan
    std: float = math.nan
    may_be_best: bool = False


@brief
@dataclass(frozen=True, slots=True)
class Importance:
    """How much of the variance of the scores a setting explains. It does not show causes.

    Attributes:
      name: the setting; together: other settings that always change with it, so that their effects are inseparable.
      share: of the variance of the scores, from 0 to 1, beyond what the settings before it explain and minus what other
        settings and seeds give to any setting, so shares may be added; NaN if unknown; `why` has the reason.
      low, high: 90 % interval over other seeds of the same configurations; NaN if no configuration has two seeds.
      alone: the share if no other setting is looked at; NaN if unknown.
      goes_with: the setting before it that explains most of the rest of `alone`; "" if none does.
      alike: whether neither of the two explains anything beyond the other, so these runs cannot tell which one matters.
      levels: its values, or the ranges of values that it was cut into.
    """

    name: str
    together: tuple[str, ...] = ()
    share: float = math.nan
    low: float = math.nan
    high: float = math.nan
    alone: float = math.nan
    goes_with: str = ""
    alike: bool = False
    levels: int = 0
    why: str = ""


@brief
@dataclass(frozen=True, slots=True)
class Sweep:
    """The analysis of a sweep.

    Attributes:
      tried: configurations, the best first; those without a score last.
      settings: the most important first.
      seeds: the share of the variance between seeds of one configuration; NaN if none has two.
      chance: the share that the first of this many settings reaches in 5 % of sweeps where no setting matters.
      sentence: the answer; todo: what to run next; notes: remarks about the numbers.
    """

    tried: tuple[Tried, ...]
    settings: tuple[Importance, ...]
    seeds: float
    chance: float
    sentence: str
    todo: str
    notes: tuple[str, ...] = field(default=())


def sweep(
    entries: Sequence[Entry],
    settings: Mapping[str, Mapping[str, object]],
    *,
    metric: str,
    higher_is_better: bool = True,
    seed: int = 0,
) -> Sweep:
    """Rate the configurations of a sweep and their settings by the scores of their runs.

    Args:
      entries: runs; `group` is the configuration of a run.
      settings: configuration -> name -> value. Settings that do not differ are left out; the seed is not a setting.
      metric: the name of the score, for sentences.
      higher_is_better: False for a loss.
      seed: seed of the permutations that estimate chance, 0 or more.
    Raises:
      BadInput: a seed below 0.
    """
    names = [n for n in dict.fromkeys(n for each in settings.values() for n in each) if _differs(n, settings)]
    tried, again = _tried(entries, settings, names, higher_is_better)
    scored = [each for each in tried if len(each.scores_R)]
    importances, seeds, chance, why = _importances(scored, names, generator(seed))
    return Sweep(
        tried=tuple(tried),
        settings=tuple(importances),
        seeds=seeds,
        chance=chance,
        sentence=_sentence(scored, importances, chance, metric, why),
        todo=_todo(scored),
        notes=tuple(_notes(tried, again)),
    )


def _tried(
    entries: Sequence[Entry], settings: Mapping[str, Mapping[str, object]], names: Sequence[str], higher: bool
) -> tuple[list[Tried], int]:
    """The configurations, best first, and how many runs repeat another with the same configuration, seed and code."""
    of_group: dict[str, list[Entry]] = {group: [] for group in settings}
    for entry in entries:
        of_group[entry.group].append(entry)
    tried, again = [], 0
    for group, mine in of_group.items():
        units: set[str] = set()
        counted: list[Entry] = []
        for entry in mine:
            if entry.score is None or entry.crashed or entry.running:
                continue
            again += entry.unit in units
            if entry.unit not in units:
                counted.append(entry)
            units |= {entry.unit} - {""}
        scores = np.array([entry.score for entry in counted], dtype=np.float64)
        tried.append(
            Tried(
                group=group,
                settings={name: settings[group].get(name) for name in names},
                names=tuple(entry.name for entry in counted),
                scores_R=scores,
                crashed=tuple(e.name for e in mine if e.crashed),
                running=tuple(e.name for e in mine if e.running and not e.crashed),
                without_score=tuple(e.name for e in mine if e.score is None and not e.crashed and not e.running),
                mean=float(scores.mean()) if len(scores) else math.nan,
                std=float(scores.std(ddof=1)) if len(scores) > 1 else math.nan,
            )
        )
    sign = -1.0 if higher else 1.0
    tried.sort(key=lambda each: (not len(each.scores_R), sign * each.mean if len(each.scores_R) else 0.0))
    return _with_best(tried, sign), again


def _with_best(tried: list[Tried], sign: float) -> list[Tried]:
    """Mark those that may be the best: no other beats them in a one-sided Welch test, at 5 % divided by the others.

    For normal scores this excludes the truly best configuration in at most about 5 % of sweeps (Bonferroni). A
    configuration with a single seed beats none and is beaten by none.
    """
    scored = [each for each in tried if len(each.scores_R)]
    level = (1 - _LEVEL) / max(1, len(scored) - 1)

    def beats(a: Tried, b: Tried) -> bool:
        few = min(len(a.scores_R), len(b.scores_R))
        if few < 2 or sign * (b.mean - a.mean) <= 0:
            return False
        found = stats.welch(a.scores_R, b.scores_R)
        return found.p / 2 <= level and (found.error > 0 or few > 2)

    return [
        replace(each, may_be_best=len(each.scores_R) > 0 and not any(beats(other, each) for other in scored))
        for each in tried
    ]


def _differs(name: str, settings: Mapping[str, Mapping[str, object]]) -> bool:
    return len({_word(each.get(name)) for each in settings.values()}) > 1


def _word(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _importances(
    tried: Sequence[Tried], names: Sequence[str], rng: np.random.Generator
) -> tuple[list[Importance], float, float, str]:
    """Settings, the share of seeds, the share reached by chance, and why no setting can be rated, if so."""
    scores = [each.scores_R for each in tried]
    many = len(scores)
    parted: dict[tuple[int, ...], list[str]] = {}
    for name in names:
        labels = _levels([each.settings[name] for each in tried], alone=len(names) == 1)
        if len(set(labels)) > 1:
            parted.setdefault(labels, []).append(name)
    alone = len(parted) == 1
    why = ""
    if not parted:
        why = "no setting differs between the configurations that have a score"
    elif not alone and many < _FEWEST:
        why = f"{many} configurations of {len(parted)} settings; at least {_FEWEST} are needed to tell them apart"
    elif alone and not any(len(each) > 1 for each in scores):
        why = "one seed each: the effect of the setting cannot be separated from that of the seed"
    lacks: dict[str, str] = {}
    for labels, (name, *_) in parted.items():
        own = len(set(labels)) == many and not alone
        lacks[name] = why or ("every configuration has a value of its own" if own else "")
    labels_of = {names[0]: labels for labels, names in parted.items() if not lacks[names[0]]}
    shares = variance_shares(scores, labels_of, rng, whole=not alone)
    rank = {name: at for at, name in enumerate(shares.settings)}
    found = []
    for labels, (name, *others) in parted.items():
        rating = shares.settings.get(name)
        rated = {} if rating is None else asdict(rating)
        unknown = rating is not None and math.isnan(rating.share)
        reason = f"{many} configurations are too few to tell it from the settings above" if unknown else lacks[name]
        found.append(Importance(name, tuple(others), **rated, levels=len(set(labels)), why=reason))
    found.sort(key=lambda each: rank.get(each.name, len(rank)))
    return found, shares.seeds, shares.chance, why


def _levels(values: Sequence[object], alone: bool) -> tuple[int, ...]:
    """The level of each configuration: its value, or for many numbers one of a few equally filled ranges."""
    distinct = {_word(value): value for value in values}
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)]
    ranges = min(_MOST_LEVELS, len(values) // 3)
    if alone or len(numbers) < len(values) or len(distinct) * 2 <= len(values) or ranges < 2:
        level: dict[Hashable, int] = {word: number for number, word in enumerate(distinct)}
        return tuple(level[_word(value)] for value in values)
    order = np.sort(np.array(numbers, dtype=np.float64))
    edges = [order[len(order) * cut // ranges] for cut in range(1, ranges)]
    return tuple(int(np.searchsorted(edges, float(v), side="right")) for v in numbers)


def _short(name: str) -> str:
    return name.removeprefix("config.")


def _settings_of(tried: Tried, scored: Sequence[Tried]) -> str:
    """What distinguishes a configuration from the others with a score, its own settings first; else its name."""
    settings = {each.group: each.settings for each in scored}
    telling = [name for name in tried.settings if _differs(name, settings)] or list(tried.settings)
    telling.sort(key=lambda name: tried.settings[name] is None)
    words = [f"{_short(name)} {_value_text(tried.settings[name])}" for name in telling[:_SHOWN]]
    more = len(telling) - _SHOWN
    return ", ".join(words) + (f" and {more} more" if more > 0 else "") or tried.group


def _value_text(value: object) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else setting_text(value)


def _sentence(scored: Sequence[Tried], importances: Sequence[Importance], chance: float, metric: str, why: str) -> str:
    if not scored:
        return f"No finished run has a value of {metric}."
    best = scored[0]
    others = sum(each.may_be_best for each in scored[1:])
    lines = []
    first = importances[0] if importances else None
    if why or first is None:
        lines.append(f"Nothing can be said about the settings: {why}.")
    elif math.isfinite(first.share):
        names = " with ".join(map(_short, (first.name, *first.together)))
        span = "" if math.isnan(first.low) else f" ({100 * first.low:.0f} … {100 * first.high:.0f})"
        alike = [each for each in importances if each.alike and each.goes_with == first.name]
        if first.share > chance and alike:
            either = [names, *(" with ".join(map(_short, (each.name, *each.together))) for each in alike)]
            lines.append(
                f"{100 * first.share:.0f} %{span} of the spread of {metric} goes with {' or '.join(either)}: these "
                "runs cannot tell which, as their values go together."
            )
        else:
            # If settings are related, a later one may add more than the first explains alone.
            more = max(importances, key=lambda each: each.share if math.isfinite(each.share) else 0.0)
            is_more = round(100 * more.share) > round(100 * first.share)
            beyond = f"; {_short(more.name)} adds {100 * more.share:.0f} % to that" if is_more else ""
            share = f"{100 * first.share:.0f} %{span} of the spread of {metric}"
            if first.share > chance:
                by_itself = "explains the most by itself" if beyond else "matters most"
                lines.append(f"{names} {by_itself}: {share} goes with it{beyond}.")
            else:
                lines.append(
                    f"No setting stands out: by itself {names} explains the most, {share}{beyond}, and chance alone "
                    f"reaches {100 * chance:.0f} %."
                )
    n = len(best.scores_R)
    lines.append(f"The best so far is {_settings_of(best, scored)}: mean {best.mean:,.4g} of {amount(n, 'seed')}.")
    if n < 2:
        lines.append("One seed cannot say which is best.")
    elif not others:
        lines.append("It is ahead of all others.")
    elif others == len(scored) - 1:
        lines.append(f"All {others} others may be as good." if others > 1 else "The other one may be as good.")
    else:
        lines.append(f"{others} of the other {len(scored) - 1} may be as good.")
    return " ".join(lines)


def _todo(scored: Sequence[Tried]) -> str:
    """What to run next, in one line."""
    if len(scored) < 2:
        return "Run a second configuration."
    single = sum(len(each.scores_R) < 2 for each in scored)
    open_ = [each for each in scored if each.may_be_best]
    if single == len(scored):
        return f"A second and third seed of the first {min(5, len(scored))}: one seed cannot say which is best."
    if len(open_) < 2:
        return "Nothing more is needed to name the best of these; its neighbours were not tried."
    wanted = [each for each in open_ if len(each.scores_R) < 2] or open_
    if wanted == list(scored[: len(wanted)]):
        few = f"the first {len(wanted)}"
    elif wanted == open_:
        few = f"the {len(wanted)} marked ones"
    else:
        few = "the one with a single seed" if len(wanted) == 1 else f"the {len(wanted)} with a single seed"
    behind = len(scored) - len(open_)
    left = "; the last one is behind" if behind == 1 else f"; the {behind} others are behind" if behind else ""
    one_of = "which" if len(wanted) == len(open_) else f"of the {len(open_)} that"
    return f"More seeds of {few}, {one_of} may be the best{left}."


def _notes(tried: Sequence[Tried], again: int) -> list[str]:
    crashed, running = sum(len(each.crashed) for each in tried), sum(len(each.running) for each in tried)
    notes = []
    if crashed:
        where = sum(bool(each.crashed) for each in tried)
        notes.append(
            f"{amount(crashed, 'crashed run')} of {amount(where, 'configuration')} left out, which flatters "
            f"{'it' if where == 1 else 'those'}."
        )
    if running:
        notes.append(f"{amount(running, 'run')} still going on: not counted yet.")
    if again:
        notes.append(f"{amount(again, 'run')} left out: the same configuration, seed and code as another one.")
    if tried and max(len(each.scores_R) for each in tried) > 1:
        single = sum(len(each.scores_R) == 1 for each in tried)
        if single:
            have, they = ("has", "it") if single == 1 else ("have", "they")
            notes.append(
                f"{single} of {len(tried)} configurations {have} one seed: {they} can be neither named nor left out."
            )
    return notes
