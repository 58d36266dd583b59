"""prime-rl with a rollbook run: a monitor, which gets metrics, episodes and what is learned of them later.

    import prime_rl.monitors as monitors
    monitors.setup(...)
    await rollbook.adapters.prime_rl.join(monitors)

Written against PrimeIntellect-ai/prime-rl 17df50b (src/prime_rl/monitors/base.py: `Monitor`); the records of episodes
are those of verifiers at 00eee6c (`Episode.to_record`).
"""

from __future__ import annotations

from rollbook.adapters._run import JoinedRun, harmless
from rollbook.errors import BadInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["RollbookMonitor", "join"]

_CUT_SHORT = ("length", "max_turns", "max_total_tokens", "prompt_too_long", "context_length", "timeout")
_MOST_TRACES = 200_000


class RollbookMonitor:
    """The methods of prime-rl's `Monitor`; writes to a run.

    prime-rl calls its methods. Arguments as in `prime_rl.monitors.base.Monitor`: `step` is the trainer's step, the
    clock `gradient_step`.

    Every episode is a rollout for each of its traces, or a failed one if it has none. Episodes that come again as
    shipped (`subset="effective"`) are not logged twice. What is learned later (`log_annotations`) is the fate of a
    trace: its advantage, and the step that trained on it.

    Args:
      config: prime-rl's configuration of a monitor; not used.
      run: a run or a scope of a run. None uses the current run, or opens one.
      project, name: of a run that is opened here.
      run_options: further arguments of `rollbook.init`.
    """

    run_id: str | None = None

    def __init__(
        self,
        config: object = None,
        run: object = None,
        *,
        project: str = "prime-rl",
        name: str = "train",
        **run_options: object,
    ) -> None:
        self.config = config
        self._joined = JoinedRun("RollbookMonitor", run, project, name, run_options, host="prime_rl")
        self.run = self._joined.run
        self._ids: dict[str, str] = {}
        self._logged: dict[str, object] = {}
        if self.run is not None:
            self.run_id = self.run.run.id

    async def init(self, **kwargs: Any) -> None:
        """Keep prime-rl's configuration (`run_config`)."""
        config = kwargs.get("run_config")
        if config is not None:
            self._joined.keep("config", "keeping the configuration", self._config, config)

    def _config(self, config: Any) -> None:
        dump = getattr(config, "model_dump", None)
        self._joined.settings(dump(mode="json") if dump is not None else config)

    @harmless
    async def log(self, data: Any, step: int | None, kind: str = "train", subset: str = "effective") -> None:
        """Log metrics (a dict), or an episode or a list of them."""
        if isinstance(data, dict):
            await self.log_metrics(data, step=step)
        else:
            episodes = data if isinstance(data, list) else [data]
            await self.log_episodes(episodes, step=int(step or 0), kind=kind, subset=subset)

    @harmless
    async def log_metrics(self, metrics: dict[str, Any], step: int | None) -> None:
        """Log one row under the native keys. Rows of inference have no step."""
        self._joined.log(metrics, step=step, gradient_step=step)

    @harmless
    async def log_episodes(self, episodes: list[Any], step: int, kind: str, subset: str) -> None:
        """Log episodes as rollouts; of those known already, that they were shipped to the trainer."""
        for episode in episodes:
            self._joined.keep("prime_rollouts", "keeping an episode", self._episode, episode, step, kind, subset)

    @harmless
    async def log_annotations(self, updates: list[dict[str, Any]]) -> None:
        """Log what became known of traces: the advantage, and the step that trained on them."""
        for update in updates:
            self._joined.keep("prime_fates", "keeping an annotation", self._annotation, update)

    async def log_live(self, events: list[dict[str, Any]]) -> None:
        """Nothing: unfinished traces are not kept."""

    async def log_eval_plan(self, env_name: str, step: int, expected: int, group_size: int = 0) -> None:
        """Nothing: the plan of an evaluation is not kept."""

    async def log_eval_epoch(self, env_name: str, step: int, episodes: list[Any]) -> None:
        """Nothing: these episodes came by `log`."""

    async def finalize(self) -> None:
        """Finish the run if it was opened here."""
        self._joined.finish()

    # -- episodes

    def _episode(self, episode: Any, step: int, kind: str, subset: str) -> None:
        record = episode if isinstance(episode, dict) else episode.to_record()
        traces = [trace for trace in record.get("traces") or () if isinstance(trace, dict)]
        if subset == "effective" and any(str(trace.get("id")) in self._ids for trace in traces):
            return
        shared = {
            "group": _of(record, "group", "id"),
            "env": _of(record, "env", "name") or _of(record, "env", "id"),
            "episode_id": record.get("id"),
            "mode": kind,
            "batch": str(step),
            "gradient_step": step,
        }
        for trace in traces:
            self._trace(trace, record, shared)
        if not traces:
            errors = record.get("errors") or [{}]
            self._log([], {**shared, "status": "failed", "error": _error(errors[-1]) or "no trace"})

    def _trace(self, trace: Mapping[str, Any], record: Mapping[str, Any], shared: dict[str, Any]) -> None:
        calls = {call.get("node"): call for call in trace.get("calls") or ()}
        nodes = trace.get("nodes") or []
        first = next((n for n, node in enumerate(nodes) if _of(node, "message", "role") == "assistant"), len(nodes))
        messages = [_message(node, calls.get(index) or {}, index, first) for index, node in enumerate(nodes)]
        policy = _of(record, "run", "work", "policy") or {}
        errors = trace.get("errors") or ()
        stop, timing = trace.get("stop_condition"), trace.get("timing") or {}
        cut = stop in _CUT_SHORT or bool(messages and messages[-1].get("finish_reason") == "length")
        rewards = {
            name: cell.get("score", 0) * cell.get("weight", 1.0) for name, cell in (trace.get("rewards") or {}).items()
        }
        seconds = {
            "model": _of(timing, "agent", "model", "duration"),
            "tools": _of(timing, "agent", "harness", "duration"),
        }
        details = {
            **shared,
            "agent": _of(trace, "agent", "name"),
            "stop_reason": stop,
            "rewards": rewards,
            "metrics": dict(trace.get("metrics") or {}),
            "started": timing.get("start"),
            "seconds": seconds,
            "status": "failed" if errors else "truncated" if cut else "completed",
            "error": _error(errors[-1]) if errors else None,
            "policy_version": (policy.get("start"), policy.get("end")),
        }
        (name,) = self._log(messages, details)
        if len(self._ids) >= _MOST_TRACES:
            self._logged.pop(self._ids.pop(next(iter(self._ids))), None)
        self._ids[str(trace.get("id"))] = name

    def _log(self, messages: list[dict[str, Any]], details: dict[str, Any]) -> list[str]:
        names: list[str] = self._joined.run.run.rollouts.log_many([messages], **_one_each(details))
        return names

    # -- what became of them

    def _annotation(self, update: Mapping[str, Any]) -> None:
        name, info = self._ids.get(str(update.get("trace_id"))), update.get("info") or {}
        own = info.get("train") or {}
        at = own.get("trained_at_step")
        if name is None or (at is None and info.get("advantage") is None) or self._logged.get(name, -1) == at:
            return
        self._logged[name] = at
        columns = {"advantage": info.get("advantage"), "trained_version": at, "gradient_step": at}
        if own.get("effective", True):
            self._joined.run.run.rollouts.trained([name], **columns)
        else:
            self._joined.run.run.rollouts.dropped([name], reason=own.get("reason") or "filtered", **columns)


async def join(monitors: Any, run: object = None, **options: Any) -> RollbookMonitor:
    """Add a rollbook run to the registered monitors of this process.

    Args:
      monitors: the module `prime_rl.monitors`, after its `setup`; it keeps its monitors in the list `_monitors`.
      run, options: see `RollbookMonitor`.
    Raises:
      BadInput: there is no such list.
    """
    if not isinstance(getattr(monitors, "_monitors", None), list):
        raise BadInput(f"join({monitors!r:.100}): it has no list of monitors. Pass the module prime_rl.monitors")
    own = RollbookMonitor(None, run, **options)
    await own.init()
    monitors._monitors.append(own)
    return own


def _message(node: Mapping[str, Any], call: Mapping[str, Any], index: int, first: int) -> dict[str, Any]:
    import numpy as np

    message = node.get("message") or {}
    ids, mask = node.get("token_ids") or [], node.get("mask") or []
    parent, span = node.get("parent"), call.get("time") or {}
    logprobs = _spread(node.get("logprobs") or [], mask)
    found = {
        "role": message.get("role"),
        "content": _text(message.get("content")),
        "name": message.get("name"),
        "tool_calls": message.get("tool_calls"),
        "trained": bool(node.get("sampled")),
        "finish_reason": call.get("finish_reason") or node.get("finish_reason"),
        "error": _error(call.get("error")),
        "seconds": span["end"] - span["start"] if span.get("end") and span.get("start") is not None else None,
        "tokens": np.asarray(ids, np.int32) if ids else None,
        "mask": [int(bool(cell)) for cell in mask] or None,
        "logprobs": None if logprobs is None else np.asarray(logprobs, np.float32),
        "parent": None if parent is None or parent == index - 1 or parent < first else parent - first,
    }
    return {name: cell for name, cell in found.items() if cell is not None}


def _spread(values: list[Any], mask: list[Any]) -> list[Any] | None:
    """Values of the sampled tokens, one for each token; NaN for those that were not sampled."""
    if not values:
        return None
    rest = iter(values)
    return [next(rest, float("nan")) if cell else float("nan") for cell in mask]


def _one_each(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of a batch of one rollout."""
    more = {name: columns[name] for name in ("rewards", "metrics", "seconds") if columns.get(name)}
    plain = {name: [cell] for name, cell in columns.items() if name not in ("rewards", "metrics", "seconds")}
    first, last = columns.get("policy_version") or (None, None)
    plain["policy_version"] = ([first], [last])  # type: ignore[assignment]
    return {**plain, **{name: {key: [cell] for key, cell in cells.items()} for name, cells in more.items()}}


def _of(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _text(content: object) -> str | None:
    if isinstance(content, list):
        return "".join(str(part.get("text", f"<{part.get('type')}>")) for part in content if isinstance(part, dict))
    return None if content is None else str(content)


def _error(error: object) -> str | None:
    return f"{error.get('type')}: {error.get('message')}" if isinstance(error, dict) and error else None
