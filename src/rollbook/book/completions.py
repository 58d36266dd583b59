"""`completions`: samples and rollouts in one view, so that one query reads what `log_samples` and `rollouts` wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from rollbook.book.late_facts import view
from rollbook.schema.expressions import named_tables, quoted

COMPLETIONS = "completions"

COMPLETIONS_OF = ("samples", "rollouts", "fates", "tasks")
"""The tables of the view."""


def asks_for_completions(query: str, tables: Iterable[str]) -> bool:
    """Whether a query names the view, and no table of the run has its name."""
    return bool(named_tables(query, [COMPLETIONS])) and COMPLETIONS not in tables


def completions(columns: Mapping[str, Collection[str]]) -> str:
    """The query of the view: a row for each sample and each rollout.

    `kind` is "sample" or "rollout", `id` the sample_id or rollout_id. Rollouts have their newest fate, and the
    prompt of their task. The reward of a sample that has only parts is their sum. All other columns are joined by name.

    Args:
      columns: of the tables in `COMPLETIONS_OF`, as they are now.
    """
    of_samples, of_rollouts = columns["samples"], columns["rollouts"]
    parts = " + ".join(quoted(name) for name in of_samples if name.startswith("rewards/"))
    known = ["reward"] if "reward" in of_samples else []
    reward = f", coalesce({', '.join([*known, *([parts] if parts else [])])}) as reward" if known or parts else ""
    samples = f"'sample' as kind, sample_id as id, {_all(of_samples, 'kind', 'id', 'reward')}{reward}"
    by = ["task_id", *(["run"] if "run" in columns["tasks"] else [])]  # for rows of several runs
    prompts = f"select {', '.join(by)}, any_value(prompt) as prompt from tasks group by all"
    rollouts = f"'rollout' as kind, rollout_id as id, {_all(of_rollouts, 'kind', 'id', 'prompt', of='r')}, t.prompt"
    return f"""select {rollouts} from ({view("rollouts_now", columns)}) r
      left join ({prompts}) t using ({", ".join(by)})
    union all by name select {samples} from samples"""


def _all(columns: Collection[str], *ours: str, of: str = "samples") -> str:
    """All columns but those that the view makes itself."""
    own = [name for name in ours if name in columns]
    return f"{of}.*" + (f" exclude ({', '.join(own)})" if own else "")
