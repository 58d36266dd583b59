"""The fates of completions: the update that trained on each and its advantage, or why there was none.

Two attributes of the trainer are read; neither is changed. `_logs` holds the last generated batch in its order, with
rewards and advantages; it is used only if its texts are the batch's. `_buffered_inputs` holds the same completions
shuffled and cut into the chunks that are trained on, one per micro-batch. There a completion is identified by its
tokens and its advantage, so completions that are equal in both are interchangeable.
"""

from __future__ import annotations

import math

from rollbook.adapters.trl.batches import Batch, Link, link_of, number, texts, totals, write
from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from rollbook.run.scope import Scope

    Use = tuple[Batch, list[int], dict[str, list[Any]]]


class Fates:
    """The fates of one training. The callback calls it after each micro-batch.

    Args:
      run: a run or a scope of a run.
    """

    def __init__(self, run: Scope) -> None:
        self._run = run
        self._link = link_of(run)
        self._uses: list[Use] = []
        self._batch: Batch | None = None
        self._bill = Bill(to=run)

    def settle(self) -> None:
        """Compare the waiting batches with the trainer's record, and write those that are not written yet."""
        link = self._link
        with link.lock:
            waiting, link.waiting = link.waiting, []
        trainer = _trainer(link)
        for batch in waiting:
            _complete(batch, trainer, link.rank)
            write(self._run, batch)
            if batch.mode == "eval":
                self._run.run.rollouts.dropped(batch.ids, reason="evaluation", advantage=batch.advantages)

    def used(self) -> None:
        """After the backward pass of a micro-batch: note which completions it held."""
        self.settle()
        batch = self._link.current
        if batch is not self._batch:
            self._leave()
            self._batch = batch
        if batch is None or not batch.ids:
            return
        chunk, rows = _chunk(_trainer(self._link))
        if chunk not in batch.indices:
            batch.indices[chunk] = _indices_in(batch, rows, self._link, self._bill)
        indices, facts = batch.indices[chunk]
        self._uses.append((batch, indices, {**facts, "epoch": [batch.uses[index] for index in indices]}))
        for index in indices:
            batch.uses[index] += 1

    def updated(self, step: int) -> None:
        """After optimizer step number `step` (from 1), made with the micro-batches since the last one."""
        uses, self._uses = self._uses, []
        for batch, indices, facts in uses:
            self._report(batch, indices, facts, step)

    def end(self) -> None:
        """At the end of training, write the fates of completions that were not trained on."""
        self.settle()
        self._uses.clear()
        self._batch = self._batch or self._link.current
        self._leave()
        self._batch = self._link.current = None

    def _leave(self) -> None:
        """Completions left when the next batch begins, or at the end, are not trained on."""
        batch = self._batch
        left = [] if batch is None else [index for index, n in enumerate(batch.uses) if not n]
        if batch is not None and left:
            advantages = None if batch.advantages is None else [batch.advantages[index] for index in left]
            ids = [batch.ids[index] for index in left]
            self._run.run.rollouts.dropped(ids, reason="surplus", advantage=advantages)

    def _report(self, batch: Batch, indices: list[int], facts: dict[str, list[Any]], step: int) -> None:
        reasons = _reasons(batch)
        out = [reason is not None for reason in facts["reason"]]
        for is_out in (False, True):
            chosen = [k for k, dropped in enumerate(out) if dropped == is_out]
            if not chosen:
                continue
            ids = [batch.ids[indices[k]] for k in chosen]
            columns = {name: [cells[k] for k in chosen] for name, cells in facts.items()}
            clocks: dict[str, Any] = {
                "gradient_step": step,
                "trained_version": step - 1,
                "policy_version": batch.step,
            }
            if is_out:  # a group filter masks whole groups; the group has the reason
                own = zip(columns["reason"], (reasons[indices[k]] for k in chosen), strict=True)
                columns["reason"] = [why or reason if reason == "masked" else reason for reason, why in own]
                self._run.run.rollouts.dropped(ids, **columns, **clocks)
            else:
                columns["reason"] = [reasons[indices[k]] for k in chosen]
                self._run.run.rollouts.trained(ids, **columns, **clocks)


def _trainer(link: Link) -> Any:
    return link.trainer() if link.trainer is not None else None


def _complete(batch: Batch, trainer: Any, rank: int) -> None:
    """Read the advantages, and the rewards of functions that are not wrapped, from the trainer's record."""
    logs = getattr(trainer, "_logs", None)
    if not isinstance(logs, dict) or not {"prompt", "completion", "advantages"} <= set(logs):
        return
    n, advantages = len(batch), list(logs["advantages"])
    rows = list(zip(texts(logs["prompt"]), texts(logs["completion"]), strict=False))
    mine = list(zip(texts(batch.prompts), texts(batch.completions), strict=True))
    if len(rows) != len(advantages) or not n:
        return
    start = rank * n if rows[rank * n : (rank + 1) * n] == mine else _last_block(rows, mine)
    if start is None:
        return
    batch.advantages = [float(value) for value in advantages[start : start + n]]
    judged: Any = logs.get("rewards")
    if batch.written or not hasattr(judged, "items"):
        return
    for name, values in judged.items():
        column = list(values)[start : start + n]
        if name not in batch.rewards and len(column) == n:
            cells = [number(value) for value in column]
            batch.rewards[name] = [None if cell is None or math.isnan(cell) else cell for cell in cells]
            batch.names = [*batch.names, name]


def _last_block(rows: Sequence[tuple[str, str]], mine: list[tuple[str, str]]) -> int | None:
    n = len(mine)
    for start in range(len(rows) - n, -1, -1):
        if rows[start] == mine[0] and list(rows[start : start + n]) == mine:
            return start
    return None


def _chunk(trainer: Any) -> tuple[int, Any]:
    """(number of the chunk that was just trained on, its tensors); (0, None) if the trainer keeps none."""
    buffered, step = getattr(trainer, "_buffered_inputs", None), getattr(trainer, "_step", None)
    if not isinstance(buffered, list) or not buffered or not isinstance(step, int) or step < 1:
        return 0, None
    chunk = (step - 1) % len(buffered)
    return chunk, buffered[chunk]


def _indices_in(batch: Batch, rows: Any, link: Link, bill: Bill) -> tuple[list[int], dict[str, list[Any]]]:
    """(the completions of the batch in a chunk, the known data of each)."""
    n = len(batch)
    taken = {index for indices, _ in batch.indices.values() for index in indices}
    if rows is None or "completion_ids" not in rows or batch.tokens is None:
        left = [i for i in range(n) if i not in taken]
        advantages = [None] * n if batch.advantages is None else batch.advantages
        return left, {"advantage": [advantages[i] for i in left], "reason": [None] * len(left)}
    free: dict[Any, list[int]] = {}
    for i in range(n - 1, -1, -1):
        if i not in taken:
            advantage = None if batch.advantages is None else batch.advantages[i]
            free.setdefault((_stripped(batch.tokens[i], link), advantage), []).append(i)
    shown = rows["completion_ids"].tolist()
    advantages = rows["advantages"].tolist()
    mask = rows["completion_mask"] * rows["tool_mask"] if "tool_mask" in rows else rows["completion_mask"]
    trained = mask.sum(dim=-1).tolist()
    more = _numbers_of(rows, mask)
    indices: list[int] = []
    facts: dict[str, list[Any]] = {name: [] for name in ("advantage", "reason", *more)}
    for k, ids in enumerate(shown):
        advantage = advantages[k] if not isinstance(advantages[k], list) else None
        key = (_stripped(ids, link), None if batch.advantages is None else advantage)
        if not free.get(key):
            bill.report(
                "trl_fate",
                "RollbookCallback: the trainer trains on a completion that no reward function was asked about; it has "
                "no row, so its fate is not kept",
            )
            continue
        index = free[key].pop()
        indices.append(index)
        facts["advantage"].append(advantage if batch.advantages is None else batch.advantages[index])
        length = len(batch.tokens[index])
        is_cut = link.masks_truncated and length and int(batch.tokens[index][-1]) not in link.ends
        facts["reason"].append(None if trained[k] or not length else "overlong" if is_cut else "masked")
        for name, cells in more.items():
            facts[name].append(cells[k][:length] if isinstance(cells[k], list) else cells[k])
    return indices, facts


def _stripped(ids: Sequence[int], link: Link) -> tuple[int, ...]:
    """The tokens without end and padding tokens."""
    end = len(ids)
    while end and int(ids[end - 1]) in link.ends:
        end -= 1
    return tuple(int(token) for token in ids[:end])


def _numbers_of(rows: Any, mask: Any) -> dict[str, list[Any]]:
    """The chunk's numbers for each completion besides its advantage: policy against generating engine."""
    found: dict[str, list[Any]] = {}
    n = mask.sum(dim=-1).clamp(min=1)
    if "old_per_token_logps" in rows:
        old = rows["old_per_token_logps"]
        found["trainer_logprobs"] = old.float().tolist()
        if "sampling_per_token_logps" in rows:
            gap = ((old - rows["sampling_per_token_logps"]).abs() * mask).nan_to_num()
            found["gap_mean"] = (gap.sum(dim=-1) / n).tolist()
            found["gap_max"] = gap.amax(dim=-1).tolist()
    ratio = rows.get("importance_sampling_ratio")
    if ratio is not None:
        weight = ratio.squeeze(-1) if ratio.shape[-1] == 1 else (ratio * mask).sum(dim=-1) / n
        found["weight"] = weight.tolist()
    return found


def _reasons(batch: Batch) -> list[str | None]:
    """Why training on a completion had no effect: all rewards of its group are equal, or it has none."""
    sums = totals(batch)
    cells = list(zip(*(map(number, batch.rewards[name]) for name in batch.rewards), strict=True))
    values: list[Any] = cells if sums is None else sums
    groups: dict[str, set[Any]] = {}
    sizes: dict[str, int] = {}
    for group, value in zip(batch.groups, values, strict=False):
        groups.setdefault(group, set()).add(value)
        sizes[group] = sizes.get(group, 0) + 1
    reasons: list[str | None] = []
    for i, group in enumerate(batch.groups):
        judged = not cells or any(cell is not None and not math.isnan(cell) for cell in cells[i])
        alone = len(groups.get(group, ())) == 1 and sizes[group] > 1
        reasons.append("zero_std" if judged and alone else None if judged else "unscorable")
    return reasons
