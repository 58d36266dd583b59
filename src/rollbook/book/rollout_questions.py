"""The questions about the rollouts of a run, each as one SQL query, or several; `questions.answered` asks them.

`answer_query("tools")` is over the tables of rollouts and the view `rollouts_now`. `prompts` and `curves` are
questions, too; see `questions/prompts.py` and `questions/rollout_curves.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from rollbook.errors import BadInput, did_you_mean
from rollbook.schema.expressions import literal
from rollbook.schema.solved import solved_sql, threshold_query

ROLLOUT_QUESTIONS: dict[str, str] = {
    "fates": "What became of the rollouts?",
    "curves": "How did reward, length, failures, groups, staleness and waste go over training?",
    "history": "How does the policy answer one prompt over training?",
    "prompts": "Which prompt is never solved?",
    "groups": "Which groups taught nothing, and why?",
    "staleness": "How stale was what was trained on, and does it hurt?",
    "gaps": "Where do sampler and trainer disagree most?",
    "tokens": "On which tokens do they disagree?",
    "tools": "Which tool breaks agents?",
    "time": "Where did the time go?",
    "words": "Is the reward hacked: which words grew among high advantage?",
    "lost": "What was lost: which rollouts have no fate?",
}
"""Question -> what it asks."""

ABOVE = threshold_query("rollouts")
"""The query of the reward above which a task is solved, and its answer."""

SOLVED = solved_sql(ABOVE)
"""The default condition of a solved task: see `schema.solved`."""


def wilson(k: str, n: str, prefix: str = "") -> str:
    """Two columns, `low` and `high`: the 95 % interval of a share (Wilson 1927); null if n is 0.

    Args:
      k, n: columns; k of n are counted.
      prefix: of the names of the two columns.
    """
    z = 1.959964
    middle = f"({k} + {z * z / 2}) / ({n} + {z * z})"
    half = f"{z} / ({n} + {z * z}) * sqrt({k} * ({n} - {k}) / {n} + {z * z / 4})"
    return (
        f"case when {n} = 0 then null when {k} = 0 then 0.0 else {middle} - {half} end as {prefix}low, "
        f"case when {n} = 0 then null when {k} = {n} then 1.0 else {middle} + {half} end as {prefix}high"
    )


FATE = """case when used is null and mode = 'eval' then 'evaluation' when used is null then 'no fate yet'
  when not used then coalesce(reason, 'dropped') when reason is not null then reason else 'used' end"""
"""What became of a rollout, in a word."""

_MOST_UNUSUAL = (20, 200)
"""The rollouts whose tokens are compared: those with the largest gaps; more only if these have no lists."""
_MOST_BY_NAME = 1000
"""If more rollouts than this lack a reported gap, the lists of all are compared."""

_FINITE = "case when isfinite(reward::double) then reward end"
_FATES = f"""select {FATE} as fate, count(*) as rollouts,
    count(distinct hash("group", task_id, batch)) filter ("group" is not null) as groups,
    sum(sampled_tokens)::bigint as sampled_tokens, avg({_FINITE}) as reward
  from rollouts_now where mode is distinct from 'eval' group by 1 order by rollouts desc, fate"""
# The reason of most of its rollouts is that of a group. While more of them wait than have a fate, it may still teach.
_GROUPS = """select reason, count(*) as groups, sum(n)::bigint as rollouts,
    sum(sampled_tokens)::bigint as sampled_tokens, min(first) as first, max(last) as last
  from (select arg_max(reason, (n, was_used, reason)) as reason, sum(n) filter (reason is not null) as n,
      sum(sampled_tokens) filter (reason is not null) as sampled_tokens,
      min(first) filter (reason is not null) as first,
      max(last) filter (reason is not null) as last
    from (select "group", task_id, batch, case when used is null then null when reason is not null then reason
          when used then 'zero advantage' else 'dropped' end as reason, bool_or(used) as was_used, count(*) as n,
        bool_or(used and reason is null and advantage is distinct from 0) as taught,
        sum(sampled_tokens) as sampled_tokens, min(coalesce(gradient_step, policy_version)) as first,
        max(coalesce(gradient_step, policy_version)) as last
      from rollouts_now where "group" is not null and mode is distinct from 'eval' group by 1, 2, 3, 4)
    group by "group", task_id, batch
    having not coalesce(bool_or(taught), false)
      and sum(n) filter (reason is not null) >= coalesce(sum(n) filter (reason is null), 0))
  group by 1 order by groups desc, reason"""
_STALENESS = f"""select staleness, count(*) as n, avg(clipped) as clipped, avg(gap_mean) as gap_mean,
    max(gap_max) as gap_max, avg({_FINITE}) as reward
  from rollouts_now where used and staleness is not null group by 1 order by 1"""
_GAPS = """select rollout_id, gap_max, gap_mean, ratio_max, clipped, staleness, reward,
    coalesce(gradient_step, policy_version) as at, task_id
  from rollouts_now where gap_max is not null order by gap_max desc, rollout_id"""
# Lists of the trainer may be one row for the whole rollout (without a turn): they are cut where the turn begins.
_CELLS = """with listed as {kept} (select rollout_id, turn, first, ids, sampler_logprobs, trainer_logprobs from tokens),
  own as (select * from listed where sampler_logprobs is not null),
  late as (select rollout_id, trainer_logprobs as logprobs from listed
    where turn is null and trainer_logprobs is not null and sampler_logprobs is null),
  pairs as (select o.rollout_id, o.turn, o.ids, o.sampler_logprobs as sampler, coalesce(o.trainer_logprobs,
      l.logprobs[coalesce(o.first, 0) + 1 : coalesce(o.first, 0) + len(o.sampler_logprobs)])::double[] as trainer
    from own o left join late l using (rollout_id)),
  cells as (select rollout_id, turn, unnest(range(len(sampler))) as token_index, unnest(ids) as token,
      unnest(trainer) - unnest(sampler) as gap
    from pairs where len(sampler) = len(trainer) and len(ids) = len(sampler))"""
_TOKENS = f"""{_CELLS.format(kept="materialized")}
  select token::bigint as token, count(*) as times, avg(abs(gap)) as gap_mean, max(abs(gap)) as gap_max,
    max_by(rollout_id, abs(gap)) as rollout_id, max_by(turn, abs(gap)) as turn,
    max_by(token_index, abs(gap)) as token_index
  from cells where not isnan(gap) group by 1 order by gap_max desc, token"""
_HAS_TRAINER = "select 1 from tokens where trainer_logprobs is not null limit 1"
_KNOWN = "gap_max is not null and not isnan(gap_max)"
# If a rollout was used twice, the gap may be known for one use only.
_RANKED = f"""with t as materialized (select rollout_id, bool_or(turn is not null) as has_turns,
    bool_or(turn is null) as has_late from tokens group by 1),
  f as (select rollout_id, max(gap_max) filter ({_KNOWN}) as most, bool_or(not ({_KNOWN})) as lacks_one
    from fates semi join t using (rollout_id) group by 1),
  r as (select rollout_id, case when has_turns then most end as most,
      has_late and (f.most is null or lacks_one) as is_unreported,
      row_number() over (order by case when has_turns then most end desc nulls last, rollout_id) as rank
    from t left join f using (rollout_id))
  select rollout_id, most is not null and rank <= $first as is_first, is_unreported from r
  where is_unreported or (most is not null and rank <= $first)
  order by is_first desc, rank limit $first + {_MOST_BY_NAME}"""
_HAS_SAMPLER = "select 1 from tokens where sampler_logprobs is not null limit 1"
_COMPUTED = f"""{_CELLS.format(kept="not materialized")} select rollout_id from cells where not isnan(gap) group by 1
  order by max(abs(gap)) desc, 1"""
# One list of both quantiles: each would keep all seconds in memory.
_TOOLS = """with t as (select name, count(*) as calls, count(error) as failed, any_value(error) as error,
      quantile_cont(seconds, [0.5, 0.95]) as cuts from turns where role = 'tool' group by 1)
  select name, calls, failed, failed / calls as share, cuts[1] as seconds, cuts[2] as slow, error
  from t order by failed desc, calls desc"""
_PARTS = ("model", "tools", "reward", "queue")
_TIME = f"""select part, seconds, seconds / sum(seconds) over () as share from (
    select unnest([{", ".join(f"'{part}'" for part in _PARTS)}]) as part,
      unnest([{", ".join(f'sum("seconds/{part}")' for part in _PARTS)}]) as seconds from rollouts)
  where seconds is not null order by seconds desc"""
_TENTHS = """with newest as (select rollout_id, advantage, time from rollouts_now
    where used and advantage is not null order by time desc, rollout_id limit {newest}),
  ranked as (select rollout_id, ntile(10) over (order by advantage, rollout_id) as tenth from newest)
  select rollout_id, tenth, (select epoch_us(min(time)) from newest) as since, (select count(*) from newest) as n
  from ranked where tenth in (1, 10)"""
_NEWER = """select epoch_us(min(time)) as since, count(*) as n
  from (select time from rollouts order by time desc limit {newer})"""
# The ids as one text: DuckDB takes longer over thousands of literals than over their rollouts.
_CHOSEN = """with chosen as materialized (select unnest(string_split({high}, {end})) as rollout_id, true as is_high
    union all select unnest(string_split({low}, {end})), false)"""
_WORDS = """, words as (select is_high, unnest(list_distinct(
      regexp_extract_all(lower(left(item, 4000)), '[[:alnum:]_.]{3,40}'))) as word
    from rollouts join chosen using (rollout_id) where item is not null)
  select word, count(*) filter (is_high) as high, count(*) filter (not is_high) as low from words group by 1
  having count(*) filter (is_high) >= 3 and count(*) filter (is_high) > 2 * count(*) filter (not is_high)
  order by (count(*) filter (is_high) + 1) / (count(*) filter (not is_high) + 1) desc, high desc, word"""
_LOST = """select coalesce(status, '-') as status, count(*) as rollouts, min(time) as first, max(time) as last,
    max_by(rollout_id, time) as rollout_id
  from rollouts anti join fates using (rollout_id) where mode is distinct from 'eval' group by 1 order by 2 desc, 1"""
_HISTORY = f"""with one as (select task_id, mode from rollouts where rollout_id = $id limit 1)
  select *, {wilson("solved", "rollouts")} from (
    select coalesce(policy_version, gradient_step) as version, count(*) as rollouts,
      avg({_FINITE}) as reward, max({_FINITE}) as best, count(*) filter ($solved) as solved,
      count(*) filter (used) as used, max_by(rollout_id, ({_FINITE}, rollout_id)) as rollout_id
    from rollouts_now where task_id = (select task_id from one) and mode is not distinct from (select mode from one)
    group by 1) order by version nulls first"""
_QUERIES = {
    "fates": _FATES,
    "history": _HISTORY,
    "groups": _GROUPS,
    "staleness": _STALENESS,
    "gaps": _GAPS,
    "tokens": _TOKENS,
    "tools": _TOOLS,
    "time": _TIME,
    "lost": _LOST,
}


def worst_tokens(
    ask: Callable[[str], pa.Table], among: Callable[[str, str], pa.Table], limit: int | None = None
) -> pa.Table:
    """The answer to `tokens`. What the fates say of the gaps decides whose token lists are read.

    Args:
      ask: the answer to a query.
      among: the same where the table tokens has only the rows that meet a condition.
      limit: of the answer's rows; None: all.
    """
    query = _TOKENS if limit is None else f"{_TOKENS} limit {limit}"
    first, more = _MOST_UNUSUAL

    def names(ranking: pa.Table, which: str = "") -> list[str]:
        rows = ranking.to_pylist()
        return [str(row["rollout_id"]) for row in rows if not which or row[which]]

    def of(ids: list[str]) -> str:
        return f"rollout_id in ({_listed(ids)})"

    def ranked(most: int) -> pa.Table:
        return ask(_RANKED.replace("$first", str(most)))

    ranking = ranked(first)
    chosen, unreported = names(ranking, "is_first"), names(ranking, "is_unreported")
    if unreported and ask(_HAS_SAMPLER).num_rows:  # they may have larger ones
        computed = f"{_COMPUTED} limit {first}"
        are_all = ranking.num_rows < first + _MOST_BY_NAME
        chosen += names(among(computed, of(unreported)) if are_all else ask(computed))
    found = among(query, of(chosen))
    if not found.num_rows and ask(_HAS_TRAINER).num_rows:
        found = among(query, of(names(ranked(more), "is_first")))
        found = found if found.num_rows else among(query, of(names(ask(f"{_COMPUTED} limit {first}"))))
    return found


def words_of_high_advantage(
    ask: Callable[[str], pa.Table],
    among: Callable[[str, str], pa.Table],
    limit: int | None = None,
    of: Callable[[str, str], pa.Table] | None = None,
    newest: int = 20_000,
) -> pa.Table:
    """The answer to `words`: of the `newest` used rollouts, the tenths with most and with least advantage. Only
    their texts are read.

    Args:
      ask: the answer to a query.
      among: the same where the table rollouts has only the rows that meet a condition.
      limit: of the answer's rows; None: all.
      of: the same where rollouts_now has only the rollouts that meet a condition, if that is faster.
      newest: how many of the used rollouts are looked at.
    """
    query = _TENTHS.format(newest=newest)
    tenths: list[dict[str, Any]] = []
    if of is not None:  # if enough of twice as many are used, no others need be joined with their fates
        (newer,) = ask(_NEWER.format(newer=2 * newest)).to_pylist()
        if newer["n"] == 2 * newest:  # else these are all
            tenths = of(query, f"time >= make_timestamp({newer['since'] or 0})").to_pylist()
    if not tenths or tenths[0]["n"] < newest:
        tenths = ask(query).to_pylist()
    high = {str(row["rollout_id"]) for row in tenths if row["tenth"] == 10}
    low = {str(row["rollout_id"]) for row in tenths} - high
    letters = set().union(*high, *low)
    end = next(letter for letter in map(chr, range(32, 0x10000)) if letter not in letters)
    ids = {name: literal(end.join(sorted(names))) for name, names in (("high", high), ("low", low))}
    most = "" if limit is None else f" limit {int(limit)}"
    since = tenths[0]["since"] if tenths else 0
    return among(f"{_CHOSEN.format(end=literal(end), **ids)}{_WORDS}{most}", f"time >= make_timestamp({since})")


def _listed(ids: Iterable[str]) -> str:
    return ", ".join(map(literal, ids)) or "null"


def answer_query(question: str, rollout_id: str | None = None, solved: str = SOLVED) -> str:
    """The query for a question; the most important row comes first.

    Args:
      rollout_id: for `history`: one rollout of the prompt, whose mode the others have, too.
      solved: for `history`: the condition of a solved task.
    Raises:
      BadInput: there is no such question, or `history` without a rollout.
    """
    if question not in _QUERIES:
        raise BadInput(f"no question {question!r}.", did_you_mean(question, list(ROLLOUT_QUESTIONS)))
    if question != "history":
        return _QUERIES[question]
    if rollout_id is None:
        raise BadInput("the question 'history' is about one prompt: pass the id of one of its rollouts")
    return _HISTORY.replace("$id", literal(rollout_id)).replace("$solved", solved)
