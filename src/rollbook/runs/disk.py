"""What takes the space: the files of runs by kind, as the file system counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollbook.runs.removing import Bin, bins_of
from rollbook.runs.space import KINDS, in_bytes, space_of
from rollbook.system.brief import brief
from rollbook.system.texts import amount


@brief
@dataclass(frozen=True, slots=True)
class RunSpace:
    """The space of a run.

    Attributes:
      bytes: kind -> bytes on the disk. A file that two names share (a hard link) counts once.
    """

    path: str
    project: str
    name: str
    id: str
    status: str
    bytes: Mapping[str, int]

    @property
    def total(self) -> int:
        """All kinds."""
        return sum(self.bytes.values())


class Disk(Sequence[RunSpace]):
    """The space of runs, the largest first.

    Attributes:
      bins: the bins next to them, with what can be given back.
    """

    def __init__(self, runs: Sequence[RunSpace], bins: Sequence[Bin]) -> None:
        self._runs = sorted(runs, key=lambda run: -run.total)
        self.bins = list(bins)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        return self._runs[index]

    def __repr__(self) -> str:
        return f"<Disk: {amount(len(self), 'run')}, {in_bytes(self.total)}>"

    @property
    def total(self) -> int:
        """Bytes of all runs."""
        return sum(run.total for run in self._runs)

    def table(self) -> list[dict[str, object]]:
        """A row per run: run, id, status, total and each kind, in bytes."""
        return [
            {
                "run": f"{run.project}/{run.name}",
                "id": run.id,
                "status": run.status,
                "total": run.total,
                **{kind: run.bytes.get(kind, 0) for kind in KINDS},
            }
            for run in self._runs
        ]

    def sentences(self) -> list[str]:
        """The total, the share of each kind, and what is in bins."""
        kinds = {kind: sum(run.bytes.get(kind, 0) for run in self._runs) for kind in KINDS}
        parts = [f"{kind} {in_bytes(size)}" for kind, size in sorted(kinds.items(), key=lambda pair: -pair[1]) if size]
        lines = [f"{amount(len(self), 'run')}: {in_bytes(self.total)}{': ' if parts else ''}{', '.join(parts)}."]
        for one in self.bins:
            if entries := one.entries():
                size = in_bytes(sum(entry.bytes for entry in entries))
                lines.append(f"The bin {one.folder} has {amount(len(entries), 'run')} ({size}): rollbook rm --empty")
        return lines


def disk(rows: Sequence[Mapping[str, object]]) -> Disk:
    """See `RunSet.disk`."""
    runs = [
        RunSpace(
            str(row["path"]),
            str(row["project"]),
            str(row["name"]),
            str(row["id"]),
            str(row["status"]),
            space_of(str(row["path"])),
        )
        for row in rows
    ]
    return Disk(runs, bins_of([run.path for run in runs]))
