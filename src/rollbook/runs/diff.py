"""What differs between runs: configuration (of every attempt), code, packages, machine; and how results differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollbook.compare import Association, association
from rollbook.errors import RollbookError
from rollbook.runs.fields import leaves
from rollbook.runs.results import scores_of
from rollbook.schema import manifest
from rollbook.system.brief import brief
from rollbook.system.texts import amount
from rollbook.values.arrow import floats, from_numpy, strings

_LACKING = "(not set)"
_CODE = ("commit", "branch", "dirty", "diff", "remote")


@brief
@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs between the runs.

    Attributes:
      kind: "config", "code", "packages" or "machine".
      name: what differs, such as "config.lr" or "numpy".
      values: value as text -> ids of the runs that have it, "(not set)" for runs without it.
      association: how the result differs between the values; None without a metric, or if it cannot be computed.
    """

    kind: str
    name: str
    values: Mapping[str, tuple[str, ...]]
    association: Association | None = None


class Diff(Sequence[Difference]):
    """The differences, those associated with the result first.

    Attributes:
      metric: the key of the results, "" if none.
      runs: how many runs were compared.
    """

    def __init__(self, differences: Sequence[Difference], metric: str, runs: int) -> None:
        self._differences, self.metric, self.runs = list(differences), metric, runs

    def __len__(self) -> int:
        return len(self._differences)

    def __getitem__(self, place: Any) -> Any:
        return self._differences[place]

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


def diff(rows: Sequence[Mapping[str, object]], metric: str | None, score: object) -> Diff:
    """See `RunSet.diff`."""
    facts = [dict(_facts(row)) for row in rows]
    names = dict.fromkeys(name for each in facts for name in each)
    results = None if metric is None else scores_of(rows, metric, score)
    differences = []
    for kind, name in names:
        values: dict[str, list[int]] = {}
        for place, each in enumerate(facts):
            values.setdefault(each.get((kind, name), _LACKING), []).append(place)
        if len(values) < 2:
            continue
        by_value = {value: tuple(str(rows[place]["id"]) for place in places) for value, places in values.items()}
        along = None
        if results is not None:
            along = association({value: [results[place] for place in places] for value, places in values.items()})
        differences.append(Difference(kind, name, by_value, along))
    differences.sort(key=lambda each: -_explained(each.association, -1.0))
    return Diff(differences, metric or "", len(rows))


def _explained(association: Association | None, nothing: float) -> float:
    return nothing if association is None or association.explained is None else association.explained


def _facts(row: Mapping[str, object]) -> Iterator[tuple[tuple[str, str], str]]:
    """((kind, name), value as text) of everything that a run recorded about its origin."""
    try:
        about = manifest.read(str(row["path"]))
    except (RollbookError, OSError):
        return
    for name, value in leaves(about["config"], "config"):
        yield ("config", name), _text(value)
    for attempt in manifest.attempts(about):
        for name, value in leaves(attempt["config"] or {}, "config"):
            if _text(value) != _text(_at(about["config"], name)):
                yield ("config", f"attempt {attempt['n']}: {name}"), _text(value)
    given = about.get("git")
    git: Mapping[str, object] = given if isinstance(given, Mapping) else {}
    for name in _CODE:
        if git.get(name) is not None:
            yield ("code", f"git {name}"), _text(git[name])
    for name in ("python", "rollbook"):
        yield ("code", name), _text(about.get(name))
    packages = about.get("packages")
    for name, version in packages.items() if isinstance(packages, Mapping) else ():
        yield ("packages", str(name)), _text(version)
    yield ("machine", "host"), _text(about.get("host"))


def _at(config: object, name: str) -> object:
    value = config
    for part in name.split(".")[1:]:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _text(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str, sort_keys=True)
    return text if len(text) <= 200 else text[:199] + "…"
