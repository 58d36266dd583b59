"""What differs between runs: configuration (of every attempt), code, packages, machine; and how results differ."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.compare import Association, association
from rollbook.errors import BadInput, RollbookError
from rollbook.runs.comparing import NO_SCORE, scores_at
from rollbook.runs.fields import flat, group_key
from rollbook.runs.groups import grouped
from rollbook.runs.measures import score_named
from rollbook.runs.questions import Diff as Question
from rollbook.runs.source import Row, Source
from rollbook.schema import manifest
from rollbook.system.brief import brief
from rollbook.system.texts import amount, number_text
from rollbook.values.arrow import floats, from_numpy, strings

LACKING = "(not set)"
_CODE = ("commit", "branch", "dirty", "diff", "remote")
"""`diff` is the checksum of the patch of uncommitted changes."""
_LONGEST = 200


@brief
@dataclass(frozen=True, slots=True)
class Difference:
    """A thing that may differ between the runs.

    Attributes:
      kind: "config", "attempt" (a setting that an earlier attempt had otherwise), "code", "packages" or "machine".
      name: what differs, such as "config.lr" or "numpy".
      values: value as text -> ids of the runs that have it, "(not set)" for runs without it.
      of_group: group -> the different values in it, as they were recorded; a run is its own group if none were asked
        for.
      differs: whether a group has other values than the first one.
      association: how the result differs between the values; None without a metric.
    """

    kind: str
    name: str
    values: Mapping[str, tuple[str, ...]]
    of_group: Mapping[str, tuple[object, ...]]
    differs: bool
    association: Association | None = None


class Diff(Sequence[Difference]):
    """The differences, those associated with the result first.

    Attributes:
      metric: the key of the results, "" if none.
      groups: what is compared: group -> ids of its runs.
      equal: what is the same in all groups.
      runs: how many runs were compared.
    """

    def __init__(
        self,
        differences: Sequence[Difference],
        metric: str,
        groups: Mapping[str, Sequence[str]],
        equal: Sequence[Difference] = (),
        paths: Sequence[str] = (),
    ) -> None:
        self._differences, self.metric, self.groups, self.equal = list(differences), metric, groups, tuple(equal)
        self._paths = tuple(paths)
        self.runs = sum(map(len, groups.values()))

    def __len__(self) -> int:
        return len(self._differences)

    def __getitem__(self, index: Any) -> Any:
        return self._differences[index]

    def __repr__(self) -> str:
        return (
            f"<Diff of {amount(self.runs, 'run')}: {', '.join(d.name for d in self._differences) or 'nothing differs'}>"
        )

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid

        return card(
            amount(len(self), "difference"),
            f"between {amount(self.runs, 'run')}",
            grid(self.table().drop("runs").to_pylist()),
        )

    def sentences(self) -> list[str]:
        """Remarks about the differences."""
        whose = amount(self.runs, "run")
        if len(self.groups) < self.runs:
            whose += f" in {amount(len(self.groups), 'group')}"
        if not self._differences:
            return [f"{whose}: nothing differs in configuration, code, packages or machine."]
        sentences = [f"{whose}: {amount(len(self), 'difference')}."]
        if self.metric:
            sentences.append(f"mean: of {self.metric}; explained: the share of its variance that goes along.")
        return sentences

    def patch(self) -> str:
        """How the uncommitted changes of code differ, as `diff -u` prints it; "" if all runs have the same.

        If there are more than two different patches, each is compared with that of the first run.
        """
        from rollbook.book import Book

        names: dict[str, str] = {}  # patch -> the first run with it
        for path in self._paths:
            book = Book(path)
            names.setdefault(book.patch(), f"{book.name} {book.id}")
        texts = list(names)
        lines: list[str] = []
        for text in texts[1:]:
            lines += difflib.unified_diff(
                texts[0].splitlines(), text.splitlines(), names[texts[0]], names[text], lineterm=""
            )
        return "\n".join(line for line in lines if not line[1:].startswith("index "))

    def table(self) -> pa.Table:
        """One row per difference and value: kind, name, value, runs, n, mean (of the metric), explained."""
        lines = [(each, value, runs) for each in self._differences for value, runs in each.values.items()]
        means = [each.association and each.association.means.get(value) for each, value, _ in lines]
        shares = [each.association and each.association.explained for each, _, _ in lines]
        columns = {
            "kind": strings([each.kind for each, _, _ in lines]),
            "name": strings([each.name for each, _, _ in lines]),
            "value": strings([value for _, value, _ in lines]),
            "runs": strings([", ".join(runs) for _, _, runs in lines]),
            "n": from_numpy(np.array([len(runs) for _, _, runs in lines], dtype=np.int64)),
            "mean": floats(means),
            "explained": floats(shares),
        }
        return pa.Table.from_arrays(list(columns.values()), names=list(columns))


def diff(ask: Question, source: Source) -> Diff:
    """The answer; see `RunSet.diff` for what it raises."""
    unknown = [kind for kind in ask.kinds or () if kind not in _KINDS]
    if unknown:
        raise BadInput(f"diff(kinds={list(ask.kinds or ())!r:.80}): there are {', '.join(_KINDS)}")
    rows, labels = _side_by_side(ask, source)
    results = None
    if ask.metric is not None:
        scored = scores_at(source, rows, ask.metric, score_named(ask.score, ask.metric), None, "own end")[0]
        results = [scored.get(str(row["path"]), NO_SCORE).score for row in rows]
    kinds = set(_KINDS if ask.kinds is None else ask.kinds)
    found = [dict(_facts(row, kinds)) for row in rows]
    groups: dict[str, list[int]] = {}
    for index, label in enumerate(labels):
        groups.setdefault(label, []).append(index)
    differences: list[Difference] = []
    equal: list[Difference] = []
    for kind, name in dict.fromkeys(name for each in found for name in each):
        one = _difference(kind, name, [each.get((kind, name), LACKING) for each in found], rows, groups, results)
        (differences if one.differs else equal).append(one)
    differences.sort(key=lambda each: -_explained(each.association, -1.0))
    ids = {label: tuple(str(rows[index]["id"]) for index in indices) for label, indices in groups.items()}
    return Diff(differences, ask.metric or "", ids, equal, [str(row["path"]) for row in rows])


def _side_by_side(ask: Question, source: Source) -> tuple[list[Row], list[str]]:
    """The runs, and the group of each; without groups each is its own."""
    if ask.by is not None:
        return grouped(source.rows, ask.by, f"diff({ask.metric!r})")
    return [*source.rows], [str(row["path"]) for row in source.rows]


def _difference(
    kind: str,
    name: str,
    values: Sequence[object],
    rows: Sequence[Row],
    groups: Mapping[str, Sequence[int]],
    results: Sequence[float | None] | None,
) -> Difference:
    keys = [group_key(value) for value in values]
    texts = _texts(dict(zip(keys, values, strict=True)))
    indices_of: dict[str, list[int]] = {}
    for index, key in enumerate(keys):
        indices_of.setdefault(key, []).append(index)
    held = {label: {keys[index]: values[index] for index in sorted(indices)} for label, indices in groups.items()}
    first = next(iter(held.values()), {})
    along = None
    if results is not None:
        along = association({texts[key]: [results[index] for index in indices] for key, indices in indices_of.items()})
    return Difference(
        kind,
        name,
        {texts[key]: tuple(str(rows[index]["id"]) for index in indices) for key, indices in indices_of.items()},
        {label: tuple(each.values()) for label, each in held.items()},
        any(each.keys() != first.keys() for each in held.values()),
        along,
    )


def _texts(values: Mapping[str, object]) -> dict[str, str]:
    """A short text of each value, different for different ones."""
    short = {key: _text(value) for key, value in values.items()}
    often = Counter(short.values())
    return {key: text if often[text] == 1 else key for key, text in short.items()}


def _explained(association: Association | None, nothing: float) -> float:
    return nothing if association is None or association.explained is None else association.explained


def _facts(row: Row, kinds: Collection[str]) -> Iterator[tuple[tuple[str, str], object]]:
    """((kind, name), value) of what a run recorded about its origin."""
    config = row.get("config") or {}
    if "config" in kinds:
        yield from ((("config", name), value) for name, value in flat(config, "config.").items())
    if kinds == {"config"}:
        return
    try:
        about = manifest.read(str(row["path"]))
    except (RollbookError, OSError):
        return
    if "attempt" in kinds:
        mine = flat(config, "config.")
        for attempt in manifest.attempts(about):
            for name, value in flat(attempt["config"] or {}, "config.").items():
                if name not in mine or group_key(value) != group_key(mine[name]):
                    yield ("attempt", f"attempt {attempt['n']}: {name}"), value
    if "code" in kinds:
        git = about.git or {}
        for name in _CODE:
            if git.get(name) is not None:
                yield ("code", f"git {name}"), git[name]
        yield ("code", "python"), about.python
        yield ("code", "rollbook"), about.rollbook or None
    for name, version in (about.packages or {}).items() if "packages" in kinds else ():
        yield ("packages", name), version
    if "machine" in kinds:
        yield ("machine", "host"), about.host


def _text(value: object) -> str:
    if isinstance(value, str):
        text = value
    else:
        text = number_text(value) if isinstance(value, float) else json.dumps(value, default=str, sort_keys=True)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_KINDS = ("config", "attempt", "code", "packages", "machine")
