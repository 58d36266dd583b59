"""Scores the health rules on the set: which rule speaks of which fault, how soon, and how often of none."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.health.faults import FAULTS
from benchmarks.health.showing import Healthy

__all__ = ["Scored", "matrix", "poisson", "report", "score", "wilson"]

RARE = ("update/step_norm", "update/policy_step_norm", "update/first_ratio_error")
"""Keys that few programs log yet."""

SOON = 0.05
"""Of the steps of a training, after the fault could be seen."""


@dataclass(frozen=True)
class Scored:
    """What the rules said of one training.

    Attributes:
      config: what was trained.
      said: rule -> environment step of its first alert that is no note.
      messages: the sentences.
      shows: the environment step from which on the fault can be seen (`showing.Healthy.shows`); where it never can, the
        one at which it was put in.
    """

    name: str
    config: dict[str, Any]
    said: dict[str, int]
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

    def named(self, within: float = math.inf) -> bool:
        """Whether a rule named the cause, and not before it was there.

        Args:
          within: so soon after that, as a share of the steps.
        """
        steps = self.config["steps"]
        rules = FAULTS[self.fault].named_by
        return any(
            self.config["injected"] <= at <= self.shows + within * steps
            for rule, at in self.said.items()
            if rule in rules
        )

    def delay(self) -> float | None:
        """How much of the steps passed from when the fault could be seen until its cause was named; below 0 where a
        rule was sooner, None where none named it."""
        own = FAULTS[self.fault].named_by
        said = [at for rule, at in self.said.items() if rule in own and at >= self.config["injected"]]
        return (min(said) - self.shows) / self.config["steps"] if said else None


def trainings(
    folder: Path, hold_out: bool | None, without: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, Any], list[Any]]]:
    """(name, configuration, rows) of each, or of those (not) held out; without some keys."""
    from rollbook.protocols import Row

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


def score(folder: Path, hold_out: bool | None = None, without: Sequence[str] = ()) -> list[Scored]:
    """What the default rules say of each training."""
    from rollbook import health
    from rollbook.ground.columns import RowsPiece
    from rollbook.protocols import RunInfo
    from rollbook.runs.checking import AFTERWARDS, told

    healthy = Healthy(
        (config, rows) for _name, config, rows in trainings(folder, hold_out) if config["fault"] == "healthy"
    )
    scored = []
    for name, config, rows in trainings(folder, hold_out, without):
        info = RunInfo(folder, "health", name, name, clocks=("env_step", "gradient_step"), config=config,
                       total={"env_step": config["steps"]})  # fmt: skip
        alerts = told([health.make(rule) for rule in AFTERWARDS], info, [RowsPiece("metrics", rows)])
        pages = [alert for alert in alerts if alert.level != "note"]
        said: dict[str, int] = {}
        for alert in pages:
            said.setdefault(alert.rule, int(alert.clocks.get("env_step", 0)))
        messages = [f"{alert.rule}: {alert.message}" for alert in pages]
        shows = None if config["fault"] == "healthy" else healthy.shows(config, rows)
        scored.append(Scored(name, config, said, messages, config["injected"] or 0 if shows is None else shows))
    return scored


def report(folder: Path) -> tuple[str, str]:
    """What came of both parts in Markdown: the counts, and the page of their matrices."""
    counts, pages = [], []
    for words, hold_out, without in (
        ("The held-out part", True, ()),
        ("The held-out part as if nobody had logged the norm of steps and the first ratio, which few programs do yet",
         True, RARE),
        ("The part on which rules were made", False, ()),
    ):  # fmt: skip
        table = matrix(score(folder, hold_out=hold_out, without=without))
        lines = [f"- {line}" for line in table.splitlines() if line and not line.startswith("|")]
        counts.append("\n".join([f"{words}:", "", *lines]))
        if not without:
            pages.append(f"## {words}\n\n{table}\n")
    return "\n\n".join(counts), _PAGE + "\n".join(pages)


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
            cells = [f"**{counts[rule]}**" if counts[rule] and rule in entry.named_by else str(counts[rule] or "")
                     for rule in rules]  # fmt: skip
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
        ]
    faulty = [run for run in runs if run.fault != "healthy"]
    for words, own in (
        ("Faulty runs", faulty),
        ("Harmful ones (the return of a healthy training was not reached)", [run for run in faulty if run.is_harmful]),
    ):
        if own:
            named, soon, spoken = (sum(them) for them in zip(
                *((run.named(), run.named(SOON), bool(run.said)) for run in own), strict=True))  # fmt: skip
            low, high = wilson(named, len(own))
            lines.append(
                f"{words}: {len(own)}; the cause named in {named} ({named / len(own):.0%}; 95 %: {low:.0%} to "
                f"{high:.0%}), within {SOON:.0%} of the steps in {soon} ({soon / len(own):.0%}); "
                f"spoken of at all: {spoken}."
            )
    return "\n".join(lines)
