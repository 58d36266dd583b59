"""Scores the health rules on the set: which rule speaks of which fault, how soon, and how often of none."""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.health.faults import FAULTS
from benchmarks.health.showing import Healthy
from rollbook import health
from rollbook.health._earlier import FEWEST, Earlier, kin
from rollbook.protocols import Alert, Row, RunInfo
from rollbook.runs.checking import AFTERWARDS, alerts_of
from rollbook.schema import aliases
from rollbook.schema.columns import RowsPiece

__all__ = ["PARTS", "Scored", "earned", "keep", "kept", "late", "matrix", "poisson", "report", "score", "wilson"]

RARE = ("update/step_norm", "update/policy_step_norm", "update/first_ratio_error")
"""Keys that few programs log yet."""

SOON = 0.05
"""Of the steps of a training, after the fault could be seen."""

_WITHOUT = "as if nobody had logged the norm of steps and the first ratio, which few programs do yet"
_AFTER = "after five healthy trainings of the same settings in the same project"
_HELD_OUT = "The eighth part, held out"
PARTS: dict[str, tuple[bool, tuple[str, ...], bool]] = {
    f"{_HELD_OUT}, each training alone": (True, (), False),
    f"{_HELD_OUT}, each training {_AFTER}": (True, (), True),
    f"{_HELD_OUT}, each training alone, {_WITHOUT}": (True, RARE, False),
    "The part on which rules were made, each training alone": (False, (), False),
    f"The part on which rules were made, each training {_AFTER}": (False, (), True),
    f"The part on which rules were made, each training alone, {_WITHOUT}": (False, RARE, False),
}
"""What is scored for the docs: words -> (whether it is held out, keys that are left out, whether after others)."""


@dataclass(frozen=True)
class Scored:
    """What the rules said of one training.

    Attributes:
      config: what was trained.
      said: rule -> environment step of its first alert that is no note (`unlike_earlier/entropy`: by quantity).
      noted: the same of its first alert of any level.
      messages: the sentences.
      shows: the environment step from which on the fault can be seen (`showing.Healthy.shows`); where it never can, the
        one at which it was put in.
    """

    name: str
    config: dict[str, Any]
    said: dict[str, int]
    noted: dict[str, int]
    messages: list[str]
    shows: int

    @property
    def fault(self) -> str:
        """ "healthy" or the word of the fault."""
        return str(self.config["fault"])

    @property
    def is_harmful(self) -> bool:
        """Whether it did not come to the return that healthy ones reach."""
        return bool(self.config["outcome"] != "learned")

    def named(self, within: float = math.inf, with_notes: bool = False, by: Collection[str] | None = None) -> bool:
        """Whether a rule named the cause, and not before it was there.

        Args:
          within: so soon after that, as a share of the steps.
          with_notes: a note is enough.
          by: of these rules; None: of all.
        """
        steps = self.config["steps"]
        rules = FAULTS[self.fault].named_by if by is None else FAULTS[self.fault].named_by & set(by)
        return any(
            self.config["injected"] <= at <= self.shows + within * steps
            for rule, at in (self.noted if with_notes else self.said).items()
            if rule in rules
        )

    def delay(self) -> float | None:
        """How much of the steps passed from when the fault could be seen until its cause was named; below 0 where a
        rule was sooner, None where none named it."""
        said = self._said()
        return (min(said.values()) - self.shows) / self.config["steps"] if said else None

    def first(self) -> str:
        """The rule that named the cause first, "" for none."""
        said = self._said()
        return min(said, key=said.__getitem__) if said else ""

    def _said(self) -> dict[str, int]:
        own = FAULTS[self.fault].named_by
        return {rule: at for rule, at in self.said.items() if rule in own and at >= self.config["injected"]}


def trainings(
    folder: Path, hold_out: bool | None, without: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, Any], list[Any]]]:
    """(name, configuration, rows) of each, or of those (not) held out; without some keys."""
    for path in sorted(folder.glob("*.jsonl")):
        with path.open() as lines:
            about = json.loads(next(lines))
            if hold_out is not None and about["config"]["hold_out"] is not hold_out:
                continue
            rows = []
            for n, line in enumerate(lines):
                values = json.loads(line)
                for key in without:
                    values.pop(key, None)
                clocks = {clock: values.pop(clock) for clock in ("env_step", "gradient_step")}
                rows.append(Row(1.7e9 + n, clocks, values, seq=n + 1))
        yield about["name"], about["config"], rows


def score(folder: Path, hold_out: bool | None = None, without: Sequence[str] = ()) -> tuple[list[Scored], list[Scored]]:
    """What the default rules say of each training: alone; and as if five healthy trainings of the same settings and
    other seeds, of which the rules said no more than notes, had been made before in the same project.

    Args:
      hold_out: of those that are (not) held out; None: of all.
      without: keys that are left out.
    """
    healthy = Healthy(
        (config, rows) for _name, config, rows in trainings(folder, hold_out) if config["fault"] == "healthy"
    )
    alone, after = [], []
    alerts_of_each: dict[str, list[Alert]] = {}
    known: dict[str, list[Earlier]] = {}
    for name, config, rows in trainings(folder, hold_out, without):
        alerts, left = _said(AFTERWARDS, folder, name, config, rows)
        alerts_of_each[name] = alerts
        if config["fault"] == "healthy" and all(alert.level == "note" for alert in alerts):
            known[name] = left
        shows = None if config["fault"] == "healthy" else healthy.shows(config, rows)
        alone.append(_scored(name, config, alerts, config["injected"] or 0 if shows is None else shows))
    comparing = [rule for rule in AFTERWARDS if hasattr(health.make(rule), "given")]
    for (name, config, rows), run in zip(trainings(folder, hold_out, without), alone, strict=True):
        own = kin(_info(folder, name, config))
        others = [left for other, left in known.items() if other != name and any(it.kin == own for it in left)]
        chosen = Random(name).sample(others, FEWEST) if len(others) >= FEWEST else []
        earlier = [it for left in chosen for it in left]
        alerts, _left = _said(comparing, folder, name, config, rows, earlier)
        alerts += [alert for alert in alerts_of_each[name] if alert.rule not in comparing]
        after.append(_scored(name, config, alerts, run.shows))
    return alone, after


def _scored(name: str, config: dict[str, Any], alerts: Sequence[Alert], shows: int) -> Scored:
    said: dict[str, int] = {}
    noted: dict[str, int] = {}
    for alert in alerts:
        for of in (noted,) if alert.level == "note" else (said, noted):
            of.setdefault(_told(alert), int(alert.clocks.get("env_step", 0)))
    messages = [f"{alert.rule}: {alert.message}" for alert in alerts if alert.level != "note"]
    return Scored(name, config, said, noted, messages, shows)


def _told(alert: Alert) -> str:
    """The rule; for one about any of several quantities, also which, for that is the cause."""
    name = (aliases.canonical(alert.key) or alert.key).removeprefix("update/")
    return f"{alert.rule}/{name}" if alert.rule == "unlike_earlier" else alert.rule


_LABELS = frozenset({"fault", "strength", "injected", "hold_out", "outcome"})


def _info(folder: Path, name: str, config: dict[str, Any]) -> RunInfo:
    """A training as the rules know it: without its labels."""
    settings = {key: value for key, value in config.items() if key not in _LABELS}
    return RunInfo(
        folder,
        "health",
        "training",
        name,
        clocks=("env_step", "gradient_step"),
        config=settings,
        total={"env_step": config["steps"]},
    )


def _said(
    names: Sequence[str],
    folder: Path,
    name: str,
    config: dict[str, Any],
    rows: list[Any],
    earlier: Sequence[Earlier] = (),
) -> tuple[list[Alert], list[Earlier]]:
    """The alerts of some rules, and what later runs know of this one, as if it had been long before."""
    rules: list[Any] = [health.make(rule) for rule in names]
    for rule in rules:
        if hasattr(rule, "given"):
            rule.given = earlier
    alerts = alerts_of(rules, _info(folder, name, config), [RowsPiece("metrics", rows)])
    left = [run for rule in rules if hasattr(rule, "left") and (run := rule.left(name))]
    for run in left:
        run.ended = 0.0
    return alerts, left


def keep(scored: dict[str, list[Scored]], to: Path) -> None:
    """Write the scores of some parts, so that tables can be made of them later without asking a rule again.

    Args:
      scored: of each of `PARTS`.
      to: a file, JSON Lines in gzip.
    """
    lines = [json.dumps({"part": part, **asdict(run)}) + "\n" for part, runs in scored.items() for run in runs]
    to.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def kept(path: Path) -> dict[str, list[Scored]]:
    """What `keep` wrote."""
    scored: dict[str, list[Scored]] = {part: [] for part in PARTS}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            it = json.loads(line)
            part = it.pop("part")
            if part in scored:  # else of a part that was held out before
                scored[part].append(Scored(**it))
    return scored


def report(scored: dict[str, list[Scored]], counts: str, page: str) -> tuple[str, str]:
    """What came of each of `PARTS` in Markdown: the counts, and the page of their matrices.

    Args:
      scored: of some parts; what stands of the others is left as it is.
      counts, page: what stands there.
    """
    counted = dict(re.findall(r"^(\S.*):\n\n((?:- .*\n)+)", counts + "\n", re.MULTILINE))
    sections = dict(re.findall(r"^## (.*)\n\n((?:(?!## ).*\n)+)", page, re.MULTILINE))
    for part, runs in scored.items():
        if runs:
            table = matrix(runs)
            counted[part] = "".join(f"- {line}\n" for line in table.splitlines() if line and not line.startswith("|"))
            sections[part] = f"{table}\n\n{earned(runs)}\n\n{late(runs)}\n"
            if PARTS[part][1]:
                sections[part] = f"{earned(runs)}\n"
    return (
        "\n".join(f"{part}:\n\n{counted[part]}" for part in PARTS if part in counted),
        _PAGE + "\n".join(f"## {part}\n\n{sections[part].strip()}\n" for part in PARTS if part in sections),
    )


def earned(runs: Sequence[Scored]) -> str:
    """A table in Markdown: which faulty trainings each rule named, and which none but it.

    A rule that names no fault alone may still be the only one to name it soon.
    """
    faulty = [run for run in runs if run.fault != "healthy"]
    lines = [
        "### What only this rule found",
        "",
        "Faulty runs whose cause the rule named; those that no other rule named; those that no other rule named "
        "soon. In brackets: the harmful ones.",
        "",
        "| rule | named | only it | soon only by it |",
        "|---|---|---|---|",
    ]
    for rule in sorted(set().union(*(fault.named_by for fault in FAULTS.values()))):
        named = [run for run in faulty if run.named(by={rule})]
        others = {run.name: FAULTS[run.fault].named_by - {rule} for run in named}
        alone = [run for run in named if not run.named(by=others[run.name])]
        soon = [run for run in named if run.named(SOON, by={rule}) and not run.named(SOON, by=others[run.name])]
        cells = (f"{len(some)} ({sum(run.is_harmful for run in some)})" for some in (named, alone, soon))
        lines.append(f"| `{rule}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def late(runs: Sequence[Scored]) -> str:
    """A table in Markdown: the harmful faults that were named late or never, those most often first."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for run in runs:
        if run.fault != "healthy" and run.is_harmful:
            fault = FAULTS[run.fault]
            groups[f"{fault.words}: {getattr(fault, run.config['strength']).words}"].append(run)
    lines = [
        "### Harmful faults that were named late or never",
        "",
        "Late: how much of the training's steps after the fault became visible (median), and by which rule first.",
        "",
        "| fault | harmful | soon | late | after | by | never |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = []
    for words, own in groups.items():
        soon, named = sum(run.named(SOON) for run in own), sum(run.named() for run in own)
        slow = [run for run in own if run.named() and not run.named(SOON)]
        delays = sorted(delay for run in slow if (delay := run.delay()) is not None)
        by = Counter(rule for run in slow if (rule := run.first()))
        rules = ", ".join(f"`{rule}` {n}" for rule, n in by.most_common())
        after = f"{delays[len(delays) // 2]:.0%}" if delays else ""
        if soon < len(own):
            line = f"| {words} | {len(own)} | {soon} | {named - soon} | {after} | {rules} | {len(own) - named} |"
            rows.append((soon - len(own), line))
    return "\n".join([*lines, *(line for _n, line in sorted(rows))])


_PAGE = """# Which health rule names which fault

Made by `python -m benchmarks.health --score FOLDER --write docs`. [Health rules](health.md) says what the trainings are
and what the columns mean. A rule's column counts the runs in which it reported anything but a note; bold: it is about
this cause.

"""


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, by Wilson."""
    z = 1.959964
    middle, half = (hits + z * z / 2) / (n + z * z), z * math.sqrt(hits * (n - hits) / n + z * z / 4) / (n + z * z)
    return max(0.0, middle - half), min(1.0, middle + half)


def poisson(hits: int) -> float:
    """The upper end of the one-sided 95 % interval of the mean of a Poisson count."""
    low, high = float(hits), hits + 20.0 + 5 * hits
    while high - low > 1e-6:
        mean = (low + high) / 2
        term = total = math.exp(-mean)
        for k in range(1, hits + 1):
            term *= mean / k
            total += term
        low, high = (mean, high) if total > 0.05 else (low, mean)
    return high


def matrix(scored: Iterable[Scored]) -> str:
    """The table rule x fault in Markdown, and what follows from it."""
    runs = list(scored)
    groups: dict[str, list[Scored]] = defaultdict(list)
    for run in runs:
        key = run.fault if run.fault == "healthy" else f"{run.fault} {run.config['strength']}"
        groups[key].append(run)
    rules = sorted({rule for run in runs for rule in run.said})
    lines = [
        "| fault | runs | harmful | named | 95 % | soon | " + " | ".join(f"`{rule}`" for rule in rules) + " |",
        "|---|---|---|---|---|---|" + "---|" * len(rules),
    ]
    healthy = groups.pop("healthy", [])
    for fault, entry in FAULTS.items():
        for strength in ("weak", "strong"):
            own = groups.get(f"{fault} {strength}", [])
            if not own:
                continue
            named, soon = sum(run.named() for run in own), sum(run.named(SOON) for run in own)
            low, high = wilson(named, len(own))
            counts = Counter(rule for run in own for rule in run.said)
            cells = [
                f"**{counts[rule]}**" if counts[rule] and rule in entry.named_by else str(counts[rule] or "")
                for rule in rules
            ]
            words = f"{entry.words}: {getattr(entry, strength).words}"
            lines.append(
                f"| {words} | {len(own)} | {sum(run.is_harmful for run in own)} | {named} | {low:.0%} to {high:.0%} | "
                f"{soon} | " + " | ".join(cells) + " |"
            )
    if healthy:
        counts = Counter(rule for run in healthy for rule in run.said)
        cells = [str(counts[rule] or "") for rule in rules]
        lines.insert(2, f"| nothing | {len(healthy)} | | | | | " + " | ".join(cells) + " |")
        pages, paged = sum(counts.values()), sum(bool(run.said) for run in healthy)
        low, high = wilson(paged, len(healthy))
        lines += [
            "",
            f"False pages: {pages} in {len(healthy)} healthy runs, {pages / len(healthy):.3f} a run (95 %: at most "
            f"{poisson(pages) / len(healthy):.3f}); runs with one: {paged} ({low:.0%} to {high:.0%}).",
            f"Notes of other rules: {sum(len(run.noted.keys() - run.said) for run in healthy)} in healthy runs, in "
            f"{sum(bool(run.noted.keys() - run.said) for run in healthy)} of them.",
        ]
    faulty = [run for run in runs if run.fault != "healthy"]
    for words, own in (
        ("Faulty runs", faulty),
        ("Harmful ones (the return of a healthy training was not reached)", [run for run in faulty if run.is_harmful]),
    ):
        if own:
            named, soon, spoken = (
                sum(them) for them in zip(*((run.named(), run.named(SOON), bool(run.said)) for run in own), strict=True)
            )
            low, high = wilson(named, len(own))
            lines.append(
                f"{words}: {len(own)}; the cause named in {named} ({named / len(own):.0%}; 95 %: {low:.0%} to "
                f"{high:.0%}), within {SOON:.0%} of the steps in {soon} ({soon / len(own):.0%}); "
                f"spoken of at all: {spoken}."
            )
            named, soon = (sum(run.named(within, with_notes=True) for run in own) for within in (math.inf, SOON))
            lines.append(
                f"{words}, counting notes: the cause named in {named} ({named / len(own):.0%}), within {SOON:.0%} of "
                f"the steps in {soon} ({soon / len(own):.0%})."
            )
    return "\n".join(lines)
