"""What verl's trainers hold of their rollouts when they dump them: batches, versions, fates, and what a filter drops.

verl hands its rollouts to no logger. `join` therefore wraps four methods of the trainers of this process, which do the
same as before: `_log_rollout_data` (the batch that was trained on) and `_dump_generations` (its texts, and those of
validations) of `RayPPOTrainer` and of the V1 `PPOTrainer`, and `_evict_terminal_groups` and `_clear_groups` of the V1
`ReplayBuffer` (groups that are dropped). Written against verl 0.9.1.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections import Counter

from rollbook.system.bill import Bill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["Rollouts", "join", "storable"]

_TRAINERS = (
    ("verl.trainer.ppo.ray_trainer", "RayPPOTrainer"),
    ("verl.trainer.ppo.v1.trainer_base", "PPOTrainer"),
)
_BUFFER = ("verl.trainer.ppo.v1.replay_buffer", "ReplayBuffer")
_LISTS = ("responses", "response_mask", "rollout_log_probs", "old_log_probs", "advantages", "rollout_is_weights")
_MORE = ("uid", "prompts", "rm_scores", "data_source")
_OWN = {"gts": "ground_truth"}
_TAKEN = {
    "rollout_id", "task_id", "group", "batch", "mode", "status", "error", "turns", "tokens", "item", "reward",
    "prompt", "prompts", "completions", "messages", "rewards", "step", "env", "policy_version", "gradient_step",
    "mask", "logprobs", "entropy", "tools", "score", "prompt_tokens", "episode_id",
}  # fmt: skip
"""Names of columns of rollouts; a result of the reward function of such a name becomes metrics/NAME."""


class Rollouts:
    """The rollouts of one training, written to a run.

    Args:
      run: a run or a scope of a run.
      trainer: verl's settings of that name.
      token_groups: keep the token lists of every n-th group; 0: of none.
    """

    def __init__(self, run: Any, trainer: Mapping[str, Any], token_groups: int = 1) -> None:
        self._run, self._every = run, token_groups
        self.bill = Bill(to=run)
        self._folders = {
            str(folder): mode
            for mode, name in (("train", "rollout_data_dir"), ("eval", "validation_data_dir"))
            if (folder := trainer.get(name))
        }
        self._warmup = int(trainer.get("critic_warmup") or 0)
        self._batch: Any = None
        self._reasons: dict[str, str] = {}
        self._dropped: list[dict[str, Any]] = []
        self._groups: dict[str, bool] = {}
        self._n_groups = 0
        self.written: set[tuple[str, int]] = set()
        """(mode, step) of dumps whose rollouts are written, so that their files need not be read."""

    @property
    def is_asked(self) -> bool:
        """Whether verl is to dump its training rollouts."""
        return "train" in self._folders.values()

    # -- what the trainers call

    def begin(self, module: Any, batch: Any) -> None:
        """The batch that the next dump has the texts of."""
        self._batch = None
        self._batch = _of_transfer_queue(module.tq, batch) if hasattr(batch, "tags") else _of_data_proto(batch)

    def end(self) -> None:
        """The dump is on its way."""
        self._batch = None

    def dump(self, trainer: Any, given: Mapping[str, Any]) -> None:
        """The texts of a dump, as `_dump_generations` gets them."""
        mode = self._folders.get(str(given["dump_path"]))
        step = int(trainer.global_steps)
        if mode is None:
            return
        extra = dict(given.get("reward_extra_infos_dict") or {})
        texts = {name: list(given[name]) for name in ("inputs", "outputs", "scores")}
        n = len(texts["outputs"])
        more = {name: list(cells) for name, cells in {**extra, "gts": given.get("gts") or [None] * n}.items()}
        batch, self._batch = self._batch, None
        if mode == "train":
            self._leave(trainer)
        if mode == "train" and batch is not None and len(batch["key"]) == n:
            self._train(trainer, step, texts, more, batch)
        else:
            self.texts(step, mode, texts["inputs"], texts["outputs"], texts["scores"], more)
        self.written.add((mode, step))

    def evicting(self, reasons: Sequence[Any]) -> None:
        """Why the groups that are cleared next are dropped: (stale, without a difference, failed) names of groups."""
        self._reasons = {
            str(uid): why
            for uids, why in zip(reversed(reasons[:3]), ("error", "zero_std", "stale"), strict=True)
            for uid in uids
        }

    def clearing(self, module: Any, buffer: Any, partition: str, uids: set[str]) -> None:
        """Groups of the replay buffer that are dropped, before their data are gone."""
        if partition != "train" or not self.is_asked:
            return
        tags = {key: tag for key, tag in buffer.partitions[partition].items() if key.split("_")[0] in uids}
        reasons = {uid: self._reasons.get(uid, "surplus") for uid in uids}
        if tags:
            queue = module.tq
            found = _of_transfer_queue(queue, _Keys(partition, list(tags), list(tags.values())))
            self._dropped.append({**found, "reason": [reasons[_uid(key)] for key in found["key"]]})
        failed = [uid for uid in uids - {_uid(key) for key in tags} if reasons[uid] == "error"]
        if failed:
            self._dropped.append({"key": failed, "reason": ["error"] * len(failed)})

    def finish(self) -> None:
        """Write what was dropped after the last dump."""
        self._leave(None)

    # -- rows

    def texts(
        self,
        step: int,
        mode: str,
        prompts: list[Any],
        answers: list[Any],
        scores: list[Any],
        more: dict[str, list[Any]],
    ) -> None:
        """Rollouts of which only a dump is known: text, score and results of the reward function, and that verl trained
        on those of a training step."""
        n, uids = len(answers), more.get("uid")
        if uids is not None:
            groups = [_uid(uid) for uid in uids]
        else:
            attempt = getattr(self._run.run, "attempt", 1)
            prefix = f"{mode}-{step}" if attempt == 1 else f"a{attempt}-{mode}-{step}"
            numbers: dict[str, int] = {}
            groups = [f"{prefix}-{numbers.setdefault(str(prompt), len(numbers))}" for prompt in prompts]
        ids = self._log(step, mode, prompts, answers, scores, groups, more, {})
        if mode == "train" and len(ids) == n:
            self._fates(ids, step, step - 1, {"reason": [None] * n})

    def _train(self, trainer: Any, step: int, texts: dict[str, Any], more: Any, batch: dict[str, list[Any]]) -> None:
        """The rollouts of an update, and that it used them."""
        batch = _in_dump_order(batch, more.pop("uid", None))
        real = [k for k, tag in enumerate(batch.get("tag") or [{}] * len(batch["key"])) if not tag.get("is_padding")]
        n_dumped = len(texts["outputs"])
        batch, texts = _rows(batch, real), _rows(texts, real)
        more = _rows({name: cells for name, cells in more.items() if len(cells) == n_dumped}, real)
        columns = self._columns(trainer, batch)
        ids = self._log(
            step, "train", texts["inputs"], texts["outputs"], texts["scores"], columns.pop("group"), more, columns
        )
        if len(ids) != len(real):
            return
        facts = _facts(batch, [self._keeps(group) for group in batch["group"]])
        facts["policy_version"] = columns["policy_version"][0]
        version = getattr(trainer, "current_param_version", None)
        self._fates(ids, step, step - 1 if version is None else int(version), facts)

    def _fates(self, ids: list[str], step: int, version: int, facts: dict[str, list[Any]]) -> None:
        rollouts = self._run.run.rollouts
        warming = step < self._warmup
        reasons = ["critic_warmup"] * len(ids) if warming else facts.pop("reason")
        facts.pop("reason", None)
        for is_out in (False, True):
            chosen = [k for k, why in enumerate(reasons) if (why in ("masked", "critic_warmup")) is is_out]
            if chosen:
                columns = {name: [cells[k] for k in chosen] for name, cells in facts.items()}
                report = rollouts.dropped if is_out else rollouts.trained
                report(
                    [ids[k] for k in chosen],
                    reason=[reasons[k] for k in chosen],
                    trained_version=version,
                    gradient_step=step,
                    **columns,
                )

    def _leave(self, trainer: Any) -> None:
        """Write the groups that were dropped since the last dump."""
        waiting, self._dropped = self._dropped, []
        decode = getattr(getattr(trainer, "tokenizer", None), "decode", None)
        step = None if trainer is None else int(trainer.global_steps)
        clocks = {} if step is None else {"gradient_step": step}
        for batch in waiting:
            n, reasons = len(batch["key"]), batch.pop("reason")
            if "responses" not in batch:  # nothing is left of a group that failed
                ids = self._run.run.rollouts.log_many(
                    completions=[[]] * n, group=batch["key"], mode="train", status="failed", **clocks
                )
            else:
                texts = {
                    name: [
                        None if decode is None else decode(list(map(int, row)), skip_special_tokens=True)
                        for row in batch[name]
                    ]
                    for name in ("prompts", "responses")
                }
                scores = [float(row.sum()) if len(row) else None for row in batch.get("rm_scores") or [()] * n]
                columns = self._columns(trainer, batch)
                ids = self._log(
                    step, "train", texts["prompts"], texts["responses"], scores, columns.pop("group"), {}, columns
                )
            if ids:
                self._run.run.rollouts.dropped(ids, reason=reasons, **clocks)

    def _columns(self, trainer: Any, batch: dict[str, list[Any]]) -> dict[str, Any]:
        import numpy as np

        lengths = [len(row) for row in batch["responses"]]
        data = getattr(getattr(trainer, "config", None), "data", None)
        limit = batch["limit"][0] if "limit" in batch else (data or {}).get("max_response_length")
        kept = [self._keeps(key) for key in batch["group"]]
        tokens = [
            row.astype(np.int32) if keep and len(row) else len(row)
            for row, keep in zip(batch["responses"], kept, strict=True)
        ]
        columns: dict[str, Any] = {
            "group": batch["group"],
            "tokens": tokens,
            # verl's own definitions: response/aborted_ratio and response_length/clip_ratio
            "status": ["aborted" if not k else "truncated" if k == limit else "completed" for k in lengths],
            "prompt_tokens": [len(row) for row in batch["prompts"]],
            "policy_version": (batch["first"], batch["last"]),
        }
        for name, column, kind in (("rollout_log_probs", "logprobs", np.float32), ("response_mask", "mask", np.int8)):
            if name in batch and any(kept):
                columns[column] = [
                    row.astype(kind) if keep and len(row) else None for row, keep in zip(batch[name], kept, strict=True)
                ]
        if "data_source" in batch:
            columns["env"] = [None if cell is None else str(cell) for cell in batch["data_source"]]
        if "tag" in batch:
            columns["episode_id"] = [key.rpartition("_")[0] for key in batch["key"]]
        return columns

    def _keeps(self, group: str) -> bool:
        """Whether the token lists of a group are kept."""
        if group not in self._groups:
            if len(self._groups) > 10_000:
                self._groups.clear()
            self._groups[group] = bool(self._every) and self._n_groups % self._every == 0
            self._n_groups += 1
        return self._groups[group]

    def _log(
        self,
        step: int | None,
        mode: str,
        prompts: list[Any],
        answers: list[Any],
        scores: list[Any],
        groups: list[str],
        more: dict[str, list[Any]],
        columns: dict[str, Any],
    ) -> list[str]:
        own = {
            _OWN.get(name, name if name not in _TAKEN else f"metrics/{name}"): storable(cells)
            for name, cells in more.items()
            if name != "uid" and len(cells) == len(answers)
        }
        clocks = {} if step is None else {"gradient_step": step, "step": step}
        if step is not None and "train_iter" in self._run.run.internals.writer.clocks:
            clocks["train_iter"] = step
        ids: list[str] = self._run.run.rollouts.log_many(
            prompts=prompts,
            completions=["" if answer is None else str(answer) for answer in answers],
            reward=scores,
            group=groups,
            mode=mode,
            **({} if step is None else {"batch": str(step)}),
            **{**own, **columns},
            **clocks,
        )
        return ids


def join(current: Callable[[], Rollouts | None]) -> None:
    """Let the trainers of verl that are loaded in this process hand over their rollouts. Again: does nothing.

    Args:
      current: the rollouts of the training; None if nothing is recorded.
    """

    def handed(work: Callable[[Rollouts], object]) -> None:
        rollouts = current()
        if rollouts is not None:
            rollouts.bill.guard("verl_rollouts", "keeping rollouts", work, rollouts)

    # Trainers log and dump rollouts: wrap both methods, and call the original ones whatever happens here.
    def trainer(module: Any, owner: Any) -> None:
        log, dump = owner._log_rollout_data, owner._dump_generations
        names = inspect.signature(dump)

        @functools.wraps(log)
        def log_rollout_data(self: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
            handed(lambda rollouts: rollouts.begin(module, batch))
            try:
                return log(self, batch, *args, **kwargs)
            finally:
                handed(lambda rollouts: rollouts.end())

        @functools.wraps(dump)
        def dump_generations(self: Any, *args: Any, **kwargs: Any) -> Any:
            handed(lambda rollouts: rollouts.dump(self, names.bind(self, *args, **kwargs).arguments))
            return dump(self, *args, **kwargs)

        owner._log_rollout_data, owner._dump_generations = log_rollout_data, dump_generations

    # The replay buffer drops groups: note which, and why.
    def buffer(module: Any, owner: Any) -> None:
        evict, clear = owner._evict_terminal_groups, owner._clear_groups

        @functools.wraps(evict)
        def evict_terminal_groups(self: Any, global_steps: int, partition_id: str, eviction_reasons: Any) -> Any:
            handed(lambda rollouts: rollouts.evicting(eviction_reasons))
            try:
                return evict(self, global_steps, partition_id, eviction_reasons)
            finally:
                handed(lambda rollouts: rollouts.evicting(((), (), ())))

        @functools.wraps(clear)
        def clear_groups(self: Any, partition_id: str, uids: Any) -> Any:
            handed(lambda rollouts: rollouts.clearing(module, self, partition_id, set(uids)))
            return clear(self, partition_id, uids)

        owner._evict_terminal_groups, owner._clear_groups = evict_terminal_groups, clear_groups

    # Wrap what is loaded, once, and only if this version has the methods.
    for name, kind, wrap, needed in (
        *((*one, trainer, ("_log_rollout_data", "_dump_generations")) for one in _TRAINERS),
        (*_BUFFER, buffer, ("_evict_terminal_groups", "_clear_groups")),
    ):
        module = sys.modules.get(name)
        owner: Any = getattr(module, kind, None)
        if owner is None or not all(hasattr(owner, method) for method in needed):
            continue
        if "_rollbook_joined" not in vars(owner):
            wrap(module, owner)
            owner._rollbook_joined = True


class _Keys:
    """The attributes of TransferQueue's `KVBatchMeta` that are read here."""

    def __init__(self, partition_id: str, keys: list[str], tags: list[dict[str, Any]]) -> None:
        self.partition_id, self.keys, self.tags = partition_id, keys, tags


def _of_data_proto(batch: Any) -> dict[str, list[Any]]:
    """The columns of a `DataProto`, tokens without padding."""
    tensors, others = batch.batch, batch.non_tensor_batch
    width = tensors["prompts"].shape[1]
    seen = _array(tensors["attention_mask"]) != 0
    lengths = seen[:, width:].sum(axis=1).tolist()
    found = {
        name: [row[:k] for row, k in zip(_array(tensors[name]), lengths, strict=True)]
        for name in _LISTS
        if name in tensors.keys()  # noqa: SIM118 (a TensorDict)
    }
    found["prompts"] = [row[own] for row, own in zip(_array(tensors["prompts"]), seen[:, :width], strict=True)]
    n = len(lengths)
    uids = [str(uid) for uid in others["uid"]] if "uid" in others else [str(k) for k in range(n)]
    found |= {"key": uids, "group": uids, "limit": [tensors["responses"].shape[1]] * n}
    for name, column in (("min_global_steps", "first"), ("max_global_steps", "last")):
        found[column] = [_version(cell) for cell in others[name]] if name in others else [None] * n
    if "data_source" in others:
        found["data_source"] = list(others["data_source"])
    return found


def _of_transfer_queue(queue: Any, batch: Any) -> dict[str, list[Any]]:
    """The columns of the keys of a batch in TransferQueue."""
    data = queue.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=[*_LISTS, *_MORE])
    there = set(data.keys())
    found: dict[str, list[Any]] = {
        name: [_array(row) for row in data[name].unbind(0)]
        for name in (*_LISTS, "prompts", "rm_scores")
        if name in there
    }
    if "data_source" in there:
        found["data_source"] = list(data["data_source"].tolist())
    found |= {"key": list(batch.keys), "tag": list(batch.tags), "group": [_uid(key) for key in batch.keys]}
    for name, column in (("min_global_steps", "first"), ("max_global_steps", "last")):
        found[column] = [_version(tag.get(name)) for tag in batch.tags]
    return found


def _rows(columns: Mapping[str, list[Any]], rows: Sequence[int]) -> dict[str, list[Any]]:
    """These rows of all columns, in this order."""
    return {name: [cells[k] for k in rows] for name, cells in columns.items()}


def _in_dump_order(batch: dict[str, list[Any]], keys: Sequence[str] | None) -> dict[str, list[Any]]:
    """The batch in the order of a dump, which sorts the rows of TransferQueue by their keys."""
    if keys is None or "tag" not in batch:
        return batch
    index_of = {key: k for k, key in enumerate(batch["key"])}
    return _rows(batch, [index_of[key] for key in keys])


def _facts(batch: dict[str, list[Any]], keeps_tokens: list[bool]) -> dict[str, list[Any]]:
    """What an update did with each rollout: columns for `run.rollouts.trained`, from the tokens that the mask counts.

    Args:
      keeps_tokens: for which rollouts lists with a value per token are kept, too.
    """
    import numpy as np

    masks = [np.asarray(cells) != 0 for cells in batch.get("response_mask") or [np.ones(0)] * len(batch["key"])]

    def counted(rows: list[Any]) -> list[Any]:
        return [cells[mask[: len(cells)]] for cells, mask in zip(rows, masks, strict=True)]

    facts: dict[str, list[Any]] = {"reason": [None if mask.any() else "masked" for mask in masks]}
    if "advantages" in batch:
        advantages = counted(batch["advantages"])
        facts["advantage"] = [float(cells[0]) if len(cells) else None for cells in advantages]
        level = _without_difference(batch["group"], advantages)
        facts["reason"] = [
            "zero_std" if why is None and group in level else why
            for why, group in zip(facts["reason"], batch["group"], strict=True)
        ]
    if {"old_log_probs", "rollout_log_probs"} <= set(batch):
        pairs = zip(batch["old_log_probs"], batch["rollout_log_probs"], strict=True)
        gaps = counted([np.abs(trainer - sampler) for trainer, sampler in pairs])
        facts["gap_mean"] = [float(gap.mean()) if gap.size else None for gap in gaps]
        facts["gap_max"] = [float(gap.max()) if gap.size else None for gap in gaps]
    if "rollout_is_weights" in batch:
        weights = counted(batch["rollout_is_weights"])
        facts["weight"] = [float(cells.mean()) if len(cells) else None for cells in weights]
    for name, column in (("old_log_probs", "trainer_logprobs"), ("advantages", "advantages")):
        if name in batch and any(keeps_tokens):
            facts[column] = [cells if keep else None for cells, keep in zip(batch[name], keeps_tokens, strict=True)]
    return facts


def _without_difference(groups: list[str], advantages: list[Any]) -> set[str]:
    """Groups of several rollouts, all of whose advantages are 0: nothing is learned from them."""
    differ = {group for group, cells in zip(groups, advantages, strict=True) if cells.any()}
    return {group for group, n in Counter(groups).items() if n > 1} - differ


def _array(tensor: Any) -> Any:
    import numpy as np

    tensor = tensor.detach().cpu()
    return np.asarray(tensor.float() if str(tensor.dtype) in ("torch.bfloat16", "torch.float16") else tensor)


def _version(cell: Any) -> int | None:
    return None if cell is None else int(cell)


def _uid(key: object) -> str:
    """The group of a key `{uid}_{session}_{index}`."""
    return str(key).rsplit("_", 2)[0]


def storable(values: list[Any]) -> list[object]:
    """One type per column: numbers, booleans and texts unchanged, anything else (or a mixture) as JSON."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 and kinds <= {str, int, float, bool}:
        return values
    if kinds <= {int, float}:
        return [None if value is None else float(value) for value in values]
    return [value if value is None or isinstance(value, str) else json.dumps(value, default=str) for value in values]
