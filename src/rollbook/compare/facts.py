"""What readers of an answer should know besides its numbers: facts as data, and their sentences, made here alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from rollbook.system.texts import amount, quantity


class Fact(msgspec.Struct, frozen=True):
    """One remark about an answer. Code reads its fields, people its sentence; no code reads a sentence.

    Attributes:
      kind: one of the names in `KINDS`.
      group: the group that it is about; "" for the whole answer.
      runs: what the runs that it is about are called.
      values: its numbers and names; each function below says which.
    """

    kind: str
    group: str = ""
    runs: tuple[str, ...] = ()
    values: dict[str, Any] = {}

    @property
    def statement(self) -> str:
        """What is so, without advice: for pictures, which are shown without their program."""
        return KINDS[self.kind](self).statement

    @property
    def advice(self) -> str:
        """What to do about it, in words for every reader."""
        return KINDS[self.kind](self).advice

    @property
    def remark(self) -> str:
        """What is so, and what to do about it, in words for every reader; the page has controls of its own."""
        statement, advice, _how = KINDS[self.kind](self)
        return " ".join(filter(None, [statement, advice]))

    @property
    def sentence(self) -> str:
        """What is so, what to do about it, and how Python and the command line do it."""
        return " ".join(filter(None, KINDS[self.kind](self)))


def together(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Facts for readers: those about runs that differ only in their group and its runs are one, about all these groups.

    Args:
      facts: one for each group, as programs read them.
    """
    alike: dict[object, list[Fact]] = {}
    for index, fact in enumerate(facts):
        about = (fact.kind, repr(fact.values)) if fact.group and fact.runs else index
        alike.setdefault(about, []).append(fact)
    answer = []
    for first, *others in alike.values():
        groups = dict.fromkeys(fact.group for fact in (first, *others))
        runs = dict.fromkeys(run for fact in (first, *others) for run in fact.runs)
        answer.append(Fact(first.kind, few([*groups]), (*runs,), first.values) if others else first)
    return tuple(answer)


class Words(NamedTuple):
    """What is so; what to do about it; and by which options of Python and of the command line: only `how` names any."""

    statement: str
    advice: str = ""
    how: str = ""


def title_of(key: str, by: str) -> str:
    """A key of groups as a title: by which field, or, for "auto", by what differs."""
    return f"{key} by {'what differs' if by == 'auto' else by}" if by else key


def _usual_score(fact: Fact) -> Words:
    return Words(f"By {fact.values['metric']}, the score that these runs have.")


def _grouped_by_what_differs(fact: Fact) -> Words:
    if fact.values["groups"] == 1:
        return Words("One group: the configuration is the same in all runs, but for seeds.")
    return Words(f"{fact.values['groups']} groups, by what differs: {few(fact.values['fields'])}.")


def _crashed(fact: Fact) -> Words:
    floor = fact.values.get("floor")
    if floor is None:
        return Words(
            f"{fact.group}: {_runs(fact)} did not finish. In the verdict {_verb(fact, 'it counts', 'they count')} as "
            f"worse than all that did; {_verb(fact, 'it is', 'they are')} not in the interval.",
            "If that was not the fault of what is compared, leave such runs out, or say what one is worth.",
            "--where \"status = 'finished'\" leaves them out, --floor NUMBER says what one is worth.",
        )
    return Words(f"{fact.group}: {_runs(fact)} did not finish and {_verb(fact, 'counts', 'count')} as {floor:g}.")


def _crashed_alone(fact: Fact) -> Words:
    return Words(
        f"{fact.group}: {_runs(fact)} did not finish, and {_verb(fact, 'its seed has', 'their seeds have')} no run of "
        f"another task: no verdict counts {_verb(fact, 'it', 'them')}.",
        "Train these seeds on the other tasks, too: a failure that is not counted flatters its group.",
    )


def _none_finished(fact: Fact) -> Words:
    running, of = fact.values["running"], len(fact.runs)
    state = f": {running} {'is' if running == 1 else 'are'} still being written" if running else ""
    statement = f"None of {amount(of, 'run')} has finished{state}."
    if "first" not in fact.values:
        return Words(statement)
    at = fact.values["first"]
    return Words(
        f"{statement} All have come to {_position(at)} {fact.values['axis']}.",
        "There they can be compared.",
        f"--at {at:.15g} (at={at:.15g}) does so.",
    )


def _unfinished(fact: Fact) -> Words:
    what = _verb(fact, "its score counts", "their scores count")
    return Words(f"{fact.group}: {_runs(fact)} did not finish, but came as far as is compared: {what}.")


def _stopped(fact: Fact) -> Words:
    return Words(
        f"{fact.group}: {_runs(fact)} {_verb(fact, 'was', 'were')} stopped before any run of the group had finished; "
        f"{_verb(fact, 'it is', 'they are')} not among the scores.",
        "Compare at a position that they have passed.",
        "--at NUMBER does so.",
    )


def _running(fact: Fact) -> Words:
    return Words(f"{fact.group}: {_runs(fact)} {_are(fact)} still being written; not among the scores yet.")


def _without_score(fact: Fact) -> Words:
    return Words(f"{fact.group}: {_runs(fact)} without a finite value; not among the scores.")


def _ends_in_nan(fact: Fact) -> Words:
    what = _verb(fact, "ends with a row that is", "end with rows that are")
    return Words(f"{fact.group}: {_runs(fact)} {what} NaN or infinite; the last finite rows are the score.")


def _repeated(fact: Fact) -> Words:
    verb = _verb(fact, "repeats an earlier one", "repeat earlier ones")
    return Words(
        f"{fact.group}: {_runs(fact)} {verb} of the same configuration, seed and code; each such seed counts once, "
        "with the mean of its finished runs."
    )


def _no_row_of_group(fact: Fact) -> Words:
    runs = fact.values["runs"]
    whose = "its run has no" if runs == 1 else f"none of its {runs} runs has a"
    return Words(f"{fact.group}: {whose} row of {fact.values['metric']}; it is not drawn.")


def _rows_not_finite(fact: Fact) -> Words:
    whose = f"{fact.values['rows']:,} rows of {fact.values['in']} of {fact.values['of']} runs"
    return Words(f"{fact.group}: {whose} are NaN or infinite; no value there, and a mark at the edge.")


def _repeated_in_curve(fact: Fact) -> Words:
    repeat = "1 run repeats an earlier one" if len(fact.runs) == 1 else f"{len(fact.runs)} runs repeat earlier ones"
    return Words(f"{fact.group}: {repeat} of the same configuration, seed and code; each such seed counts once.")


def _reduced(fact: Fact) -> Words:
    return Words(
        f"{fact.group}: {_runs(fact)} {_verb(fact, 'is', 'are')} long, and drawn from means of "
        f"{fact.values['stretches']:,} stretches."
    )


def _no_row_of_key(fact: Fact) -> Words:
    have = _verb(fact, "has", "have")
    return Words(f"{fact.values['key']}: of {amount(fact.values['of'], 'run')}, {_runs(fact)} {have} no row.")


def _rows_of_key_not_finite(fact: Fact) -> Words:
    rows, verb = fact.values["rows"], "is" if fact.values["rows"] == 1 else "are"
    return Words(f"{fact.values['key']}: {amount(rows, 'row')} of {_runs(fact)} {verb} NaN or infinite.")


def _no_reading(fact: Fact) -> Words:
    whose = f" of {_runs(fact)}" if fact.runs else ""
    return Words(f"{fact.values['key']}: no row{whose} has a reading of {fact.values['x']}.", "Choose another axis.")


def _not_read(fact: Fact) -> Words:
    return Words(f"{_runs(fact)} cannot be read: {fact.values['why']}")


def _groups_without_score(fact: Fact) -> Words:
    of_each = [f"{label} ({amount(n, 'run')})" for label, n in fact.values["runs_of"].items()]
    rest = f" and {amount(len(of_each) - 6, 'more group')}" if len(of_each) > 6 else ""
    return Words(f"No finite value, so not compared: {', '.join(of_each[:6])}{rest}.")


def _one_group(fact: Fact) -> Words:
    by = fact.values["by"]
    by = "configuration" if by == "auto" else by
    why = f"All runs have the same {by}" if fact.values["alone"] else f"Only {fact.group} has scores"
    return Words(f"{why}: there is one group, and nothing to compare it with.")


def _one_run_each(fact: Fact) -> Words:
    field, groups = fact.values["field"], fact.values["groups"]
    return Words(
        f"Each group has one run. By {field} there are {groups} groups.",
        "Group by a setting that several runs share.",
        f"--by {field} does so.",
    )


def _rows_differ(fact: Fact) -> Words:
    counts = [f"{rows:,} in {label}" for label, rows in fact.values["rows_of"].items()]
    return Words(
        f"Careful: {fact.values['how']!r} is one row of so many: {few(counts)}. Of more rows the best is better by "
        "chance alone.",
        "Score by a mean, or give all groups as many rows.",
        '--score "mean of the last 10%" is the default.',
    )


def _same_curve(fact: Fact) -> Words:
    return Words(
        f"Careful: {fact.group}: {_runs(fact)} {_verb(fact, 'has', 'have')} the very rows of another seed: the seed "
        f"changed nothing, and {_verb(fact, 'it is', 'they are')} not counted.",
        "Look at where the seed goes in the program.",
    )


def _groups_of_same_curves(fact: Fact) -> Words:
    v = fact.values
    return Words(
        f"Careful: {v['n']} of {v['of']} seeds have the very rows in {v['a']} as in {v['b']}: what differs between the "
        "two changed nothing there.",
        "Look at whether the setting reaches the program.",
    )


def _tasks_not_on_one_scale(fact: Fact) -> Words:
    table = fact.values.get("table")
    how = f"--normalise {table} (normalise={table!r})" if table else "normalise={task: (random, human)}"
    return Words(
        f"Scores of {fact.values['tasks']} tasks are not on one scale: IQM, mean and interval mix them. The verdict "
        "ranks within each task and needs none.",
        how=f"{how} puts them on one.",
    )


def _no_common_point(fact: Fact) -> Words:
    of_a, of_b = fact.values["span_a"], fact.values["span_b"]
    return Words(
        f"{fact.values['a']} was measured from {_position(of_a[0])} to {_position(of_a[1])} {fact.values['axis']}, "
        f"{fact.values['b']} from {_position(of_b[0])} to {_position(of_b[1])}: no common point, nothing is compared."
    )


def _never_reached(fact: Fact) -> Words:
    level = fact.values["level"]
    return Words(
        f"{fact.values['n']} of {fact.values['of']} runs never reached {level}. In the verdict they count as slower "
        "than all that did; they are not in the intervals, which flatters their groups.",
        how=f'runs.curves("{fact.values["metric"]}", by=…).reached({level}) counts them.',
    )


def _look_not_kept(fact: Fact) -> Words:
    return Words(
        f"This look could not be kept ({fact.values['why']}), so later looks will not allow for it.",
        "Compare in a folder that can be written to, so that the error is shared among all looks.",
    )


def _by_environment(fact: Fact) -> Words:
    field, groups = fact.values["field"], fact.values["of_environment"]
    each = [f"{name} ({amount(len(labels), 'group')})" for name, labels in groups.items()]
    return Words(
        f"Each {_kind_of_field(field)} ({field}) is judged by itself: {few(each)}.",
        how=f"--task {field} (task={field!r}) judges all together.",
    )


def _environments_are_tasks(fact: Fact) -> Words:
    field, every = fact.values["field"], fact.values["all"]
    return Words(f"Each {_kind_of_field(field)} ({field}: {few(every)}) is a task of every seed.")


def _groups_differ_in(fact: Fact) -> Words:
    field, what = fact.values["field"], _kind_of_field(fact.values["field"])
    ran = " and ".join(f"{label} in {few(values)}" for label, values in fact.values["of_group"].items())
    return Words(
        f"Careful: the groups differ in their {what}, too ({field}): {ran}.",
        "Choose the runs of one.",
        f"--task {field} (task={field!r}) takes scores of several on one scale.",
    )


def _taken_together(fact: Fact) -> Words:
    field, every = fact.values["field"], fact.values["all"]
    return Words(
        f"Careful: scores of {len(every)} {_kind_of_field(field)}s ({field}: {few(every)}) are taken together.",
        "Choose the runs of one.",
        f"--task {field} (task={field!r}) keeps them apart.",
    )


def _several_algorithms(fact: Fact) -> Words:
    found = fact.values["algorithms"]
    return Words(
        f"Careful: {fact.group} takes {len(found)} algorithms together ({few(found)}).",
        "Group by algorithm, or choose the runs of one.",
        "--by algo groups so.",
    )


def _of_several_folders(fact: Fact) -> Words:
    others = [other or "no more" for other in fact.values["others"]]
    return Words(
        f"Careful: {fact.group} takes runs together whose folders say different things ({few(others)}).",
        "Group by what their folders say.",
        "--by group, or --by folder.other, groups so.",
    )


def _cannot_be_told_apart(fact: Fact) -> Words:
    return Words(
        f"Careful: of {fact.values['runs']} runs of {fact.group}, neither files nor paths say the algorithm or the "
        "configuration; they may differ.",
        how="rollbook label says it for them.",
    )


def _rewards_of_unlike_parts(fact: Fact) -> Words:
    v = fact.values
    more = f" They also share {', '.join(v['others'])}." if v["others"] else ""
    return Words(
        f"Compared by {v['instead']}, which all runs have, and not by {v['metric']}: the rewards {v['what']}.{more}"
    )


def _ends_differ(fact: Fact) -> Words:
    first, last, axis = fact.values["first"], fact.values["last"], fact.values["axis"]
    of_group = fact.values.get("of_group", {})
    where = f"Runs end at different positions, from {_position(first)} to {_position(last)} {axis}"
    if 1 < len(of_group) <= 4:
        each = ", ".join(f"{label} at {_position(at)}" for label, at in of_group.items())
        where = f"Groups end at different positions of {axis}: {each}"
    if fact.values["at"] == "own end":
        own = f"{where}; each is scored at its own end."
        return Words(own, how='At "common end" (at=, --at) all are scored at the first.')
    common = f"{where}; all are scored at the first, whatever came later."
    return Words(common, how='At "own end" (at=, --at) each counts whole.')


def _axes_differ(fact: Fact) -> Words:
    along = " and ".join(f"{label} along {few(axes)}" for label, axes in fact.values["axes_of"].items())
    return Words(
        f"Careful: runs are measured along different axes, {along}; each is scored at its own end, however long that "
        "took.",
        "Log one clock in all of them.",
    )


def _on_another_axis(fact: Fact) -> Words:
    own, axis = fact.values["own"], fact.values["axis"]
    return Words(
        f"{fact.group}: {_runs(fact)} {_verb(fact, 'is', 'are')} measured along {own} and {_verb(fact, 'has', 'have')} "
        f"no {axis}: not compared along {axis}.",
        "Log one clock in all of them.",
    )


def _leaders_differ(fact: Fact) -> Words:
    v = fact.values
    name = "IQM" if v["statistic"] == "iqm" else v["statistic"]
    own = f"at the runs' own ends {v['own_leader']} is ahead ({name} {v['side']} by {quantity(abs(v['own']))})"
    common = (
        f"at their common end ({v['axis']} {_position(v['common_end'])}) {v['common_leader']} is ahead "
        f"({name} {v['side']} by {quantity(abs(v['common']))})"
    )
    return Words(f"Careful: which of {v['a']} and {v['b']} leads depends on where runs are scored: {own}, {common}.")


def _position(x: float) -> str:
    """A position of an axis, with its digits: 3,920,000, not 3.92e+06."""
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e15 else f"{x:.6g}"


def _uneven_tasks(fact: Fact) -> Words:
    least, most = fact.values["least"], fact.values["most"]
    return Words(f"{fact.group}: {least} of up to {most} runs a task; the first {least} of each task are taken.")


def _kind_of_field(field: str) -> str:
    return "project" if field == "project" else "environment"


def few(names: Sequence[str]) -> str:
    """At most three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _verb(fact: Fact, one: str, many: str) -> str:
    return one if len(fact.runs) == 1 else many


def _are(fact: Fact) -> str:
    return _verb(fact, "is", "are")


def _runs(fact: Fact) -> str:
    return f"{amount(len(fact.runs), 'run')} ({', '.join(fact.runs[:3])}{', …' if len(fact.runs) > 3 else ''})"


KINDS: dict[str, Callable[[Fact], Words]] = {
    "usual score": _usual_score,
    "grouped by what differs": _grouped_by_what_differs,
    "crashed": _crashed,
    "crashed alone": _crashed_alone,
    "running": _running,
    "unfinished": _unfinished,
    "stopped": _stopped,
    "none finished": _none_finished,
    "without score": _without_score,
    "ends in nan": _ends_in_nan,
    "repeated": _repeated,
    "no row of group": _no_row_of_group,
    "rows not finite": _rows_not_finite,
    "repeated in curve": _repeated_in_curve,
    "reduced": _reduced,
    "no row of key": _no_row_of_key,
    "rows of key not finite": _rows_of_key_not_finite,
    "no reading": _no_reading,
    "not read": _not_read,
    "groups without score": _groups_without_score,
    "one group": _one_group,
    "one run each": _one_run_each,
    "rows differ": _rows_differ,
    "same curve": _same_curve,
    "groups of same curves": _groups_of_same_curves,
    "tasks not on one scale": _tasks_not_on_one_scale,
    "no common point": _no_common_point,
    "never reached": _never_reached,
    "look not kept": _look_not_kept,
    "by environment": _by_environment,
    "environments are tasks": _environments_are_tasks,
    "groups differ in": _groups_differ_in,
    "taken together": _taken_together,
    "several algorithms": _several_algorithms,
    "of several folders": _of_several_folders,
    "cannot be told apart": _cannot_be_told_apart,
    "rewards of unlike parts": _rewards_of_unlike_parts,
    "ends differ": _ends_differ,
    "axes differ": _axes_differ,
    "on another axis": _on_another_axis,
    "leaders differ": _leaders_differ,
    "uneven tasks": _uneven_tasks,
}
"""kind -> its words."""

BEFORE_VERDICTS = frozenset(
    (
        "usual score",
        "by environment",
        "environments are tasks",
        "groups differ in",
        "taken together",
        "several algorithms",
        "of several folders",
        "cannot be told apart",
    )
)
"""What was compared at all: kinds that readers need before they read who won."""
