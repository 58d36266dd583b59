"""Turns and rollouts by columns: the rows of one call to `log_many`, or of a single turn."""

from __future__ import annotations

from rollbook.capture.rollouts.rows import number, numbers
from rollbook.schema.clocks import as_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TypeAlias

    from rollbook.capture.rollouts.rows import Columns, RolloutRows

    Cells = list[Any]
    Back: TypeAlias = tuple[int, int]

LISTS = {"logprobs": "sampler_logprobs", "entropy": "entropy", "mask": "mask"}
"""Arguments of `turn` with one number per token -> their columns in `tokens`."""

TOTALS = ("sampled_tokens", "other_tokens", "tool_calls", "tool_errors", "seconds/model", "seconds/tools")
"""Columns of a rollout that are sums over its turns."""

_CUT_SHORT = frozenset(("length", "max_tokens", "max_length", "max_turns", "truncated", "overlong"))


class Turns:
    """Written turns, and their contribution to the rows of their rollouts.

    Attributes:
      totals: for each of `TOTALS` that some turn has: one number per turn, None if it adds nothing.
      readings: the policy version that was given for each turn.
      roles: the roles of the turns.
      texts: the columns of their texts: `text`, and `item_path`, `item_size`, … if some are long or not plain text.
      tokens: the number of tokens of each.
    """

    def __init__(self, rows: RolloutRows) -> None:
        self._rows = rows
        self.totals: dict[str, Cells] = {}
        self.readings: Cells | None = None
        self.roles: Cells = []
        self.texts: Columns = {}
        self.tokens: Cells | None = None

    def write(self, owners: list[str], numbers: list[int], versions: Cells, given: Columns, before: int = 0) -> None:
        """Write n turns, in order.

        Args:
          owners: the rollout id of each.
          numbers: the number of each in its rollout.
          versions: the policy version with which its rollout began.
          given: columns, named as in `OpenRollout.turn`.
          before: number of tokens of the first turn's rollout before that turn.
        """
        n, rows = len(owners), self._rows
        columns = dict(given)
        roles = self.roles = columns.setdefault("role", [None] * n)
        columns["trained"] = _trained(roles, columns.get("trained"))
        if "text" in columns:
            self.texts = rows.texts("text", columns.pop("text"))
        if "error" in columns:
            columns["error"] = self._errors(columns["error"])
        if "calls" in columns:
            columns["calls"] = self._calls(columns["calls"])
        if "seconds" in columns:
            self._add_seconds(columns["seconds"])
        columns["policy_version"] = self._versions(owners, versions, columns.get("policy_version"))
        # Lists of a turn's tokens belong to the table `tokens`; the turn keeps their number.
        lists: Columns = {name: columns.pop(name) for name in ("tokens", *LISTS) if name in columns}
        if lists:
            self._write_tokens(owners, numbers, columns["trained"], lists, before)
            columns["tokens"] = self.tokens or []
        columns |= {"rollout_id": owners, "turn": numbers}
        cells, clocks = rows.columns("turns", columns)
        rows.write("turns", cells | self.texts, clocks, n)

    def _errors(self, given: Cells) -> Cells:
        """The errors as texts; those of tools are counted."""
        errors = [_error(error) for error in given]
        pairs = zip(errors, self.roles, strict=True)
        self._total("tool_errors", [1 if error is not None and role == "tool" else None for error, role in pairs])
        return errors

    def _calls(self, given: Cells) -> Cells:
        """The calls of each turn as JSON; they are counted."""
        self._total(
            "tool_calls",
            [None if calls is None else len(calls) if isinstance(calls, (list, tuple)) else 1 for calls in given],
        )
        return [None if calls is None else self._rows.json("calls", calls) for calls in given]

    def _add_seconds(self, given: Cells) -> None:
        """Add the seconds of the model's turns up, and those of tools."""
        seconds = [cell if type(cell) is float or cell is None else number(cell) for cell in given]
        for name, role in (("seconds/model", "assistant"), ("seconds/tools", "tool")):
            self._total(name, [cell if own == role else None for cell, own in zip(seconds, self.roles, strict=True)])

    def _total(self, name: str, cells: Cells) -> None:
        if cells.count(None) < len(cells):
            self.totals[name] = cells

    def _versions(self, owners: list[str], versions: Cells, own: Cells | None) -> Cells:
        """The version of each turn: its own, or that of its rollout, which is the first known one."""
        if own is None:
            return versions
        self.readings = [version_of(self._rows, value) for value in own]
        known = dict(zip(owners, versions, strict=True))
        found = []
        for owner, reading in zip(owners, self.readings, strict=True):
            if reading is not None and known[owner] is None:
                known[owner] = reading
            found.append(known[owner] if reading is None else reading)
        return found

    def _write_tokens(
        self, owners: list[str], numbers: list[int], trained: Cells, lists: dict[str, Cells], before: int
    ) -> None:
        """Count the tokens of each turn, and write the tokens that were given as lists."""
        counts: Cells = lists.get("tokens") or [None] * len(owners)
        if lists.keys() == {"tokens"} and set(map(type, counts)) <= {int, type(None)}:  # only the number of tokens
            self.tokens = counts
            sampled: Cells = [None if k is None else k if of else 0 for k, of in zip(counts, trained, strict=True)]
        else:
            self.tokens, sampled = self._write_lists(owners, numbers, trained, lists, before)
        self._total("sampled_tokens", sampled)
        if "sampled_tokens" in self.totals:
            pairs = zip(self.tokens, sampled, strict=True)
            self._total("other_tokens", [None if k is None else k - of for k, of in pairs])

    def _write_lists(
        self, owners: list[str], numbers: list[int], trained: Cells, lists: dict[str, Cells], before: int
    ) -> tuple[Cells, Cells]:
        """Write the lists of tokens. Returns, for each turn, how many tokens it has, and how many are trained on."""
        n = len(owners)
        found: Cells = [None] * n
        sampled: Cells = [None] * n
        kept: list[tuple[int, int, dict[str, Any]]] = []
        owner, first = owners[0], before  # `first`: where the next turn's tokens begin in its rollout
        for row in range(n):
            if owners[row] != owner:
                owner, first = owners[row], 0
            own = {name: cells[row] for name, cells in lists.items() if cells[row] is not None}
            if not own:
                continue
            k, cells = self._lists_of(own)
            if cells:
                kept.append((row, first, cells))
            if k is not None:
                mask = cells.get("mask")
                found[row] = k
                sampled[row] = k * bool(trained[row]) if mask is None else sum(bool(cell) for cell in mask)
                first += k
        self._put_tokens(owners, numbers, kept)
        for row, first, cells in kept:
            if "sampler_logprobs" in cells and trained[row]:
                self._rows.remember_sampled(owners[row], first, cells["sampler_logprobs"], cells.get("mask"))
        return found, sampled

    def _lists_of(self, given: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
        """(number of tokens of a turn, its lists by column of `tokens`)."""
        rows, tokens = self._rows, given.get("tokens")
        ids = None if tokens is None else numbers(tokens)
        n = len(ids) if ids is not None else None if tokens is None else as_clock(tokens)
        if tokens is not None and n is None:
            rows.refused("tokens", tokens, "a list of ids, or how many there are")
        kept = {} if ids is None else {"ids": ids}
        for name, column in LISTS.items():
            if name not in given:
                continue
            cells = numbers(given[name])
            if cells is None:
                rows.refused(column, given[name], "a list of one number a token")
            elif n is not None and len(cells) != n:
                rows.run.count(
                    "rollout_columns",
                    1,
                    f"run.rollouts: turn({column}=…) has {len(cells)} numbers for {n} tokens; it was left out",
                )
            else:
                kept[column], n = cells, len(cells)
        return n, kept

    def _put_tokens(self, owners: list[str], numbers: list[int], kept: list[tuple[int, int, dict[str, Any]]]) -> None:
        if not kept:
            return
        columns: Columns = {
            "rollout_id": [owners[row] for row, _first, _cells in kept],
            "turn": [numbers[row] for row, _first, _cells in kept],
            "first": [first for _row, first, _cells in kept],
        }
        for name in ("ids", *LISTS.values()):
            cells = [own.get(name) for _row, _first, own in kept]
            if any(own is not None for own in cells):
                columns[name] = cells
        self._rows.write("tokens", columns, {}, len(kept))


def write_rollouts(
    rows: RolloutRows, columns: Columns, items: Columns, firsts: Cells, lasts: Cells, backs: Sequence[Back | None]
) -> None:
    """Write the rows of n rollouts whose turns are written.

    Args:
      columns: of `rollouts`; a None counts as not given.
      items: the columns of their last texts.
      firsts: the version with which each began.
      lasts: the newest version that generated one of its turns, or None.
      backs: `step_back` of the versions of its turns.
    """
    n = len(firsts)
    columns = dict(columns)
    reasons = columns.get("stop_reason") or [None] * n
    statuses = columns.get("status") or [None] * n
    columns["status"] = [
        status if status is not None else "truncated" if type(reason) is str and reason in _CUT_SHORT else "completed"
        for status, reason in zip(statuses, reasons, strict=True)
    ]
    parts = [column for name, column in columns.items() if name.startswith("rewards/")]
    if parts:
        given = columns.get("reward") or [None] * n
        columns["reward"] = [
            _sum(cells) if own is None else own for own, cells in zip(given, zip(*parts, strict=True), strict=True)
        ]
    ends = [first if last is None else last for first, last in zip(firsts, lasts, strict=True)]
    for first, end, back in zip(firsts, ends, backs, strict=True):
        newer, older = back or step_back((first, end)) or (None, None)
        if newer is not None:
            rows.run.count(
                "rollout_version",
                1,
                f"run.rollouts: the policy_version of a rollout went back from {newer} to {older}; both were kept as "
                "given",
            )
    rows.remember_versions(columns["rollout_id"], firsts)
    cells, clocks = rows.columns("rollouts", {**columns, "policy_version": firsts, "policy_version_end": ends})
    rows.write("rollouts", cells | items, clocks, n)


def step_back(versions: Iterable[int | None]) -> Back | None:
    """(the newest version so far, an older one after it), where versions go back for the first time; None: nowhere."""
    newest = None
    for version in versions:
        if version is not None and newest is not None and version < newest:
            return newest, version
        newest = newest if version is None else version
    return None


def version_of(rows: RolloutRows, value: object) -> int | None:
    """A policy version; None (counted) if it is not valid."""
    version = None if value is None else as_clock(value)
    if value is not None and version is None:
        rows.refused("policy_version", value, "a clock, which takes an integer")
    return version


def _trained(roles: Cells, given: Cells | None) -> Cells:
    """Whether each turn is trained on: as given, else what the model wrote is, and nothing else."""
    by_model = [role == "assistant" for role in roles]
    if given is None:
        return by_model
    return [own if cell is None else cell for own, cell in zip(by_model, given, strict=True)]


def _sum(cells: Sequence[Any]) -> float | None:
    """The sum of these reward parts, None while one is unknown."""
    known = [None if cell is None else number(cell) for cell in cells]
    return None if None in known else sum(known)  # type: ignore[arg-type]


def _error(error: object) -> str | None:
    if error is None or isinstance(error, str):
        return error
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)
