"""Many runs: find, filter, group and query them together.

runs = rollbook.open("runs")
runs.one("cartpole/ppo", seed=3)                       # a Book
runs.where("config.lr < 3e-4 and status = 'finished'")
for algorithm, group in runs.group_by("config.algo").items(): ...
runs.table(metrics={"test/return": "best"})            # an Arrow table, configuration as columns
runs.sql("select run, max(\"test/return\") from metrics group by all")
runs.compare("test/return", by="config.algo")          # verdicts and intervals
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, overload

from rollbook.errors import AmbiguousRun, BadInput, RunNotFound, suggesting
from rollbook.runs.absent import below, no_run_below, no_run_called
from rollbook.runs.fields import field_of, group_key, group_label, grouping_fields, value_at
from rollbook.schema.aliases import SCORES
from rollbook.system.texts import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pyarrow as pa
    import ray

    from rollbook.book import Book
    from rollbook.compare import Comparison, Curves
    from rollbook.compare.seeds import SeedPlan
    from rollbook.plots import Picture
    from rollbook.runs.boards import Boards
    from rollbook.runs.diff import Diff
    from rollbook.runs.disk import Disk
    from rollbook.runs.finding import FindingsOfRuns
    from rollbook.runs.mapping import Answer, Answers
    from rollbook.runs.reading import SeriesOfRuns
    from rollbook.runs.removing import Bin, Removal
    from rollbook.runs.shared_prompts import PromptsOfTwo
    from rollbook.runs.sweeping import Swept
    from rollbook.runs.verifying import Verified

Coloured = TypeVar("Coloured", "Curves", "Comparison")


class RunSet(Sequence["Book"]):
    """Books, in the order of their paths. Immutable; a book is opened when it is accessed.

    Args:
      rows: one dict per run: path, id, project, name, status, seed, group, job_type, tags, notes, created, ended,
        attempts (their number), config, summary and more of run.json.
      root: the folder that contains the runs; "" if several folders were opened together.
      problems: what could not be read in this folder.
    Attributes:
      root, problems: as above.
      as_of: for runs in a remote, when their catalogue was made (unix seconds); else None.
      unread: how many runs of other tools were not read (`rollbook.open(newest=…)`).
      not_ours: folders whose run.json another tool wrote, with a sentence about each.
      folders: the folders that were opened together: boards and the bin are those of the first.
    """

    def __init__(self, rows: Sequence[Mapping[str, object]], root: str = "", problems: Sequence[str] = ()) -> None:
        self._rows, self.root, self.problems = list(rows), root, list(problems)
        self.as_of: float | None = None
        self.unread = 0
        self.not_ours: dict[str, str] = {}
        self.folders = [root]

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Book: ...

    @overload
    def __getitem__(self, index: slice) -> RunSet: ...

    def __getitem__(self, index: int | slice) -> Book | RunSet:
        if isinstance(index, slice):
            return self._some(self._rows[index])
        if isinstance(index, str):
            raise BadInput(f"runs[{index!r}]: runs are numbered.", f"For a name or an id ask runs.one({index!r})")
        return _book(self._rows[index])

    def __iter__(self) -> Iterator[Book]:
        return (_book(row) for row in self._rows)

    def __repr__(self) -> str:
        return f"<RunSet of {amount(len(self._rows), 'run')} {below(self.root)}>"

    def __dir__(self) -> list[str]:
        return sorted(set(super().__dir__()) - {"count", "index"})  # from Sequence; not useful for runs

    def _repr_html_(self) -> str:
        from rollbook.plots.cards import card, grid

        names = ("project", "name", "id", "status", "seed", "group")
        shown: list[tuple[Mapping[str, Any], Any]] = [(row, row.get("summary") or {}) for row in self.newest()._rows]
        scores = (f"{key}.best" for key in SCORES if any(f"{key}.best" in summary for _, summary in shown))
        best = list(scores)[:1]  # the first canonical score that any of the runs has
        rows = [{name: row.get(name) for name in names} | {b: summary.get(b) for b in best} for row, summary in shown]
        return card(amount(len(self), "run"), f"{below(self.root)}, newest first", grid(rows))

    def rows(self) -> list[dict[str, Any]]:
        """One dict per run; see the class. Cheap: only run.json was read."""
        return [dict(row) for row in self._rows]

    # -- choosing

    def where(self, condition: str) -> RunSet:
        """The runs that match a condition.

        Args:
          condition: SQL over the fields of runs (`status`, `seed`, `project`, `config.lr`, `summary.best`, `created`
            …), such as "config.lr < 3e-4 and status = 'finished'"; also `tags has 'a'`. A run without a field matches
            only `is null` on that field. `last("test/return") > 400` compares a number of a key, see `table`.
        Raises:
          BadInput: the condition is invalid, or names a field that no run has.
          UnknownKey: a key that no run has.
        """
        from rollbook.runs.columns import fitting

        chosen = fitting(condition, self._rows)
        return self._some([row for row, wanted in zip(self._rows, chosen, strict=True) if wanted])

    def filter(self, wanted: Callable[[dict[str, Any]], bool]) -> RunSet:
        """The runs for which `wanted(row)` is true; `row` is a dict as in `rows`.

        Args:
          wanted: a function of a row, a dict as in `rows`; the runs for which it is true are kept.
        """
        return self._some([row for row in self._rows if wanted(dict(row))])

    def group_by(self, field: str | Sequence[str]) -> dict[Any, RunSet]:
        """Run sets by the value of a field such as "config.algo", in order of appearance; None: runs without it.

        1 and 1.0 are one value; True, and the text "1", are others. Next to 1, which is the same key in Python, True is
        "true".

        Args:
          field: a column of the runs, such as "config.algo" or 'last("epoch")'; several, "config.algo, config.lr" or a
            list: then the keys are tuples; "auto": what differs in the configuration, by names such as "ppo lr 0.001".
        Raises:
          BadInput: no run has the field.
        """
        from rollbook.runs.columns import values_of
        from rollbook.runs.groups import labels_of

        asked = f"group_by({field!r})"
        fields = grouping_fields(field, self._rows, asked)
        if fields == ["auto"]:
            automatic: dict[Any, list[Mapping[str, object]]] = {}
            for row, label in zip(self._rows, labels_of(self._rows, "auto", asked), strict=True):
                automatic.setdefault(label, []).append(row)
            return {label: self._some(rows) for label, rows in automatic.items()}
        columns = [values_of(self._rows, each, asked) for each in fields]
        groups: dict[str, list[Mapping[str, object]]] = {}
        names: dict[object, str] = {}
        for row, *values in zip(self._rows, *columns, strict=True):
            group = group_key(values)
            if group not in groups:
                parts = [value if value.__hash__ else repr(value) for value in values]
                name: object = parts[0] if len(fields) == 1 else tuple(parts)
                if name in names:
                    labels = [group_label(value) for value in values]
                    name = labels[0] if len(fields) == 1 else tuple(labels)
                names[name] = group
            groups.setdefault(group, []).append(row)
        return {name: self._some(groups[group]) for name, group in names.items()}

    def newest(self, n: int | None = None) -> RunSet:
        """The runs, newest first; at most `n` if given.

        Args:
          n: at most this many. None: all.
        """
        rows = sorted(self._rows, key=_created, reverse=True)
        return self._some(rows if n is None else rows[:n])

    @suggesting
    def sorted(self, by: str | Sequence[str], *, x: str | None = None) -> RunSet:
        """The runs in the order of a column, as `rollbook ls --sort` and the page sort them.

        Args:
          by: a column, or several, the first of which decides: a field such as "config.lr", or a number of a key, such
            as 'best("test/return")'; a key alone is its last row. "-test/return" has the highest first. Numbers come
            before texts; runs without a value, or with NaN, come last; equal ones newest first.
          x: the axis of metrics; default: the run's own.
        Raises:
          BadInput: a column that no run has. UnknownKey: a key that no run has.
        """
        from rollbook.runs.ordering import ordered

        return self._some(ordered(self._rows, by, x=x))

    def last(self) -> Book:
        """The run that started last.

        Raises:
          RunNotFound: there are no runs.
        """
        if not self._rows:
            raise no_run_below(self.root)
        return _book(max(self._rows, key=_created))

    def one(self, name: str | None = None, *, newest: bool = False, **fields: object) -> Book:
        """The only run that matches; with `newest`, the newest that matches.

        Args:
          name: an id, a name, project/name, name-id, project/name-id, a project, or "last" for the run that started
            last. The command line accepts the same names.
          newest: return the newest run if several match.
          fields: fields that must be equal: seed=3, status="finished", or a dict for nested ones, config={"lr": 1e-3}.
        Raises:
          RunNotFound, AmbiguousRun: no run matches, or several do; both list candidates.
          BadInput: a field that no run has.
        """
        wanted = [(field_of(field, self._rows, f"one({field}=…)"), value) for field, value in fields.items()]
        named = self._named(name)
        if name is not None and not named:
            raise no_run_called(name, self._rows, self.root)
        fitting = [row for row in named if all(_fits(value_at(row, field), value) for field, value in wanted)]
        if len(fitting) == 1 or (fitting and newest):
            return _book(max(fitting, key=_created))
        asked = ", ".join([repr(name)] * (name is not None) + [f"{field}={value!r}" for field, value in fields.items()])
        listed = fitting or named or self._rows
        shown = "; ".join(
            f"{row['project']}/{row['name']} {row['id']} (seed {row.get('seed')}, {row['status']})"
            for row in listed[:8]
        )
        more = f" and {len(listed) - 8} more" if len(listed) > 8 else ""
        if not fitting:
            raise RunNotFound(f"one({asked}): no run fits {below(self.root)}. Candidates: {shown or 'none'}{more}")
        raise AmbiguousRun(
            f"one({asked}): {len(fitting)} runs fit: {shown}{more}.",
            "Narrow it with a field or an id, or say newest=True",
        )

    def named(self, name: str) -> RunSet:
        """All runs with this name: an id, a name, project/name, name-id, project/name-id, a project, or "last".

        Args:
          name: an id, a name, project/name, name-id, project/name-id, a project, or "last".
        Raises:
          RunNotFound: no run has this name; suggests similar names.
        """
        fitting = self._named(name)
        if not fitting:
            raise no_run_called(name, self._rows, self.root)
        return self._some(fitting)

    def _named(self, name: str | None) -> list[Mapping[str, object]]:
        if name is None:
            return self._rows
        rows = [row for row in self._rows if _is_named(row, name)]
        if not rows and name == "last":
            return [max(self._rows, key=_created)] if self._rows else []
        return rows or [row for row in self._rows if row["project"] == name]

    def _some(self, rows: Sequence[Mapping[str, object]]) -> RunSet:
        some = RunSet(rows, self.root, self.problems)
        some.as_of, some.unread, some.folders = self.as_of, self.unread, self.folders
        return some

    # -- queries over all runs

    @suggesting
    def table(
        self,
        columns: Sequence[str] | None = None,
        metrics: Mapping[str, object] | Sequence[str] | None = None,
        *,
        x: str | None = None,
    ) -> pa.Table:
        """One row per run: fields, configuration and results as columns.

        Args:
          columns: dotted names such as "seed" and "config.lr", and numbers of keys, written as calls:
            'last("test/return")', 'best("test/return")', 'mean("test/return", last="10%")',
            'steps_to(475, "test/return")'. None takes the usual ones, and every configuration and
            summary value that any run has.
          metrics: {key: score}. A score turns a metric into one number: "last", "first", "best" (the highest; for a
            loss the lowest), "max", "min", "mean", "median", "count", "mean of the last 20" or "mean of the last 10%"
            (also "median of …"), "area" (under the curve, divided by the length of the axis: the mean height),
            "steps to 475" (where 475 is first reached; null if never), a function of (values) or of (x, values) that
            returns a number, or a list of these. A list of keys means "last". These keys are read. "last" is the
            newest row (along `x`: the last one there), NaN included; all others leave rows that are not finite out.
          x: the axis of metrics; default: the run's own.
        Returns:
          The columns in the requested order. A metric's column has the name of its key, or "<key> <score>" if there are
          several scores. null: the run has no such field, key or finite value.
        Raises:
          BadInput: a column that no run has, or an unknown score.
          UnknownKey: a key that no run has.
        """
        from rollbook.runs.results import run_table

        return run_table(self._rows, columns, metrics, x=x)

    @suggesting
    def groups(
        self,
        by: str | Sequence[str] = "auto",
        metrics: Mapping[str, object] | Sequence[str] | None = None,
        *,
        x: str | None = None,
    ) -> list[dict[str, Any]]:
        """Groups of runs as the page's table has them: who belongs to each, and the centre of their numbers.

        Args:
          by: the field that forms the groups, such as "config.algo", or several; "auto": what differs in the
            configuration, by names such as "ppo lr 0.001".
          metrics: numbers of keys, as of `table`.
          x: the axis of metrics; default: the run's own.
        Returns:
          One dict per group, in the order in which they began: group (its name), runs (ids), statuses {status: how
          many}, and for each metric {centre (IQM), low, high (95 %), n, method, sentence}.
        Raises:
          BadInput: a field that no run has, or an unknown score. UnknownKey: a key that no run has.
        """
        from rollbook.runs.group_rows import table_of_groups

        return table_of_groups(self._rows, by, metrics, x)

    @suggesting
    def series(
        self,
        keys: str | Sequence[str],
        *,
        x: str | None = None,
        points: int | None = None,
        start: float | None = None,
        stop: float | None = None,
        attempts: Literal["effective", "all"] | Sequence[int] = "effective",
    ) -> SeriesOfRuns:
        """Keys of runs along an axis, each run for itself: rows as they were logged, or points that keep extremes.

        Args:
          keys: the keys to read; canonical names are accepted. A run that lacks a key has no entry for it.
          x: a clock, a key, "time" (unix seconds) or "relative" (seconds since the run began); default: the run's own.
          points: how many points of each series, each with mean, min and max of its rows; None: every row. Up to four
            rows a point come as they were logged: means of so few would show waves that do not exist.
          start: only rows with x at or after it.
          stop: only rows with x before it.
          attempts: "effective": without what rewinds abandoned; "all"; or numbers of attempts.
        Returns:
          {path of the run: {key: Series}}; `sentences` says which runs have no row, or rows that are not finite. Each
          run is read once for all keys.
        Raises:
          UnknownKey: a key that none of the runs has.
          BadInput: points below 1, start or stop is not finite, or stop is before start.
        """
        from rollbook.runs.questions import SeriesQuestion
        from rollbook.runs.reading import SeriesOfFiles, read

        ask = SeriesQuestion(keys=keys, x=x, points=points, start=start, stop=stop, attempts=attempts)
        return read(ask, SeriesOfFiles(self._rows, self.root))

    def metrics(self, keys: str | Sequence[str] | None = None, *, x: str | None = None, **more: object) -> pa.Table:
        """Rows of metrics of all runs, concatenated, with the run's id in the column `run`.

        Args:
          keys, x, more: the arguments of `Book.metrics`.
        Raises:
          UnknownKey: a key that none of the runs has.
        """
        from rollbook.runs.results import metrics_of

        return metrics_of(self._rows, [keys] if isinstance(keys, str) else keys, x=x, **more)

    def sql(self, query: str) -> Any:
        """Query the tables of all runs with DuckDB; returns a relation.

        Tables have the names of `Book.sql`, with the additional columns run (id), project, run_name, run_seed, status
        and config.<…>. The table `runs` has one row per run. Keys with a slash need quotes: "train/return". Only
        tables and keys that the query names are read.

        Args:
          query: a read-only statement, as in `Book.sql`.
        Raises:
          BadInput: DuckDB rejects the query; the message has DuckDB's reason.
        """
        from rollbook.runs.sql import ask

        return ask(self._rows, query)

    @suggesting
    def map(
        self,
        function: Callable[[Book], object],
        *,
        on: str = "threads",
        workers: int | None = None,
        retries: int = 1,
        seconds: float | None = None,
        progress: Callable[[int, int, Answer], object] | None = None,
    ) -> Answers:
        """Call a function for each run, in parallel.

        Args:
          function: takes a Book. On processes and Ray, the function and its result are pickled.
          on: "threads" (starts fast; reading releases the GIL most of the time), "processes", or "ray" (tasks of the
            connected Ray cluster; its nodes need access to the runs' folders).
          workers: how many run at once. Default: the number of cores; on threads, four times that.
          retries: how often a run is retried if the function raises, or if its process or node dies.
          seconds: return the answers available after this time.
          progress: called as progress(done, of, answer) in the calling thread when a run is done.
        Returns:
          One answer per run, in order: `values` has the results, `failed` the reasons of failures, `missing` the runs
          that did not finish in time. A run that fails or ends its process does not affect the others.
        Raises:
          BadInput: an argument is invalid.
          MissingExtra: on="ray", and Ray is not installed.
        """
        from rollbook.runs.mapping import map_runs

        return map_runs(
            self._rows, function, on=on, workers=workers, retries=retries, seconds=seconds, progress=progress
        )

    def to_ray(self, table: str = "metrics") -> ray.data.Dataset:
        """A table of all runs as a `ray.data.Dataset`, read on the cluster, one run at a time.

        Adds the columns run (id), project, run_name and run_seed. The nodes need access to the runs' folders.

        Args:
          table: its name, as in `Book.table`.
        Raises:
          MissingExtra: Ray is not installed.
        """
        from rollbook.runs.mapping import to_ray

        return to_ray(self._rows, table)

    def disk(self) -> Disk:
        """What takes the space: bytes of each run by kind, the largest run first.

        Returns:
          A sequence of `RunSpace`, with `total`, `table()`, `sentences()` and `bins`.
        """
        from rollbook.runs.disk import disk

        return disk(self._rows)

    def remove(self, *, dry_run: bool = True, force: bool = False) -> Removal:
        """Move the runs into the bin next to their project, from which `bin.restore(id)` brings them back.

        A run that a process writes is never moved. What a remote holds stays there.

        Args:
          dry_run: report what would be moved, and change nothing.
          force: also runs of other hosts of which it is not known whether they are still written.
        Returns:
          A `Removal`: `moved`, `refused` (path -> why it stayed), `sentences()`.
        """
        from rollbook.runs.removing import remove

        return remove(self._rows, dry_run=dry_run, force=force)

    @property
    def bin(self) -> Bin:
        """The bin with the runs that `remove` took: `entries()`, `restore(id)`, `empty()`."""
        from rollbook.runs.removing import bin_of

        return bin_of(self.folders[0])

    @property
    def boards(self) -> Boards:
        """Saved views of the page: `save(name, charts, …)`, `entries()`, `remove(name)`.

        runs.boards.save("mine", ["test/return", "train/return - test/return"], first=True) is what the page opens with.
        """
        from rollbook.runs.boards import Boards

        return Boards(self.folders[0])

    @suggesting
    def diff(
        self,
        metric: str | None = None,
        score: str | Callable[..., float] = "mean of the last 10%",
        *,
        by: str | Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        kinds: Sequence[Literal["config", "attempt", "code", "packages", "machine"]] | None = None,
    ) -> Diff:
        """What differs between runs, or groups of them: configuration, code, packages, machine.

        Args:
          metric: a key; the answer then shows which difference goes with which score.
          score: how a run's metric becomes one number: "last", "best", "area", "steps to 475" …, see `table`.
          by: what is compared: the groups of a field, or of several, such as "config.algo, config.lr"; "auto";
            the groups themselves, {label: ids, names or paths of runs}; or None: each run.
          kinds: what to look at; None: all. "attempt": settings that differed in earlier attempts of a run.
        Returns:
          The differences, those associated with the result first; `equal` has what is the same.
        Raises:
          UnknownKey: a key that no run has. BadInput: a field that no run has, or an unknown kind.
        """
        from rollbook.runs.diff import diff
        from rollbook.runs.questions import Diff as Question
        from rollbook.runs.source import Files

        return diff(Question(metric=metric, score=score, by=by, kinds=kinds), Files(self._rows, self.root))

    @suggesting
    def curves(
        self,
        key: str = "",
        *,
        by: str | Sequence[str] | Mapping[str, Sequence[str]] | None = "auto",
        x: str | None = None,
        start: float | None = None,
        stop: float | None = None,
        points: int = 200,
        statistic: Literal["iqm", "mean", "median"] = "iqm",
        level: float = 0.95,
        whole_curve: bool = False,
        task: str | None = None,
        normalise: str | Mapping[str, tuple[float, float]] | None = None,
        span: Literal["any", "all"] = "any",
        spacing: Literal["linear", "log"] = "linear",
        interpolation: Literal["previous", "linear", "none"] = "previous",
        window: float | None = None,
        reduce: Literal["mean", "median", "max", "min"] = "mean",
        max_gap: float | None = None,
        crashed_as: Literal["count", "floor", "hold", "drop"] = "count",
        floor: float | None = None,
        nan: Literal["keep", "drop", "floor", "refuse"] = "keep",
        backwards: Literal["restart", "sort", "refuse"] = "restart",
        ties: Literal["last", "mean"] = "last",
        draws: int = 1999,
        seed: int = 0,
    ) -> Curves:
        """A key of groups of runs along an axis: centre, interval and the number of runs at each point.

        Args:
          key: a key; canonical names are accepted. "": the score that the runs have, that of tests before training.
          by: the field that forms the groups, or several, such as "config.algo, config.lr"; "auto": what differs in the
            configuration; the groups themselves, {label: ids, names or paths of runs}; or None: one group.
          x: a clock, a key, "time" (unix seconds) or "relative" (seconds since the run began); default: the axis of the
            first run.
          start: where on the axis curves begin.
          stop: where on the axis curves end.
          points: number of points of the common grid.
          statistic: the centre of the runs at each point: their interquartile mean, mean or median.
          level: of the intervals, from 0.5 to below 1.
          whole_curve: a simultaneous band, which covers the whole curve of the mean, not each point separately. It is
            1.6 to 4 times as wide.
          task: the field with a run's task, such as "config.env". The band is then over seeds x tasks, and whole seeds
            are resampled.
          normalise: for several tasks: {task: (random, human)}, as text in JSON, {"Hopper": [0, 3000]}; or the name of
            a published table ("atari", "d4rl").
          span: "any": from the first to the last x of any run; "all": only where all runs have begun and none ended.
          spacing: of the points; "log" needs x above 0.
          interpolation: a run's value between its rows: "previous": the last one; "linear": on the line between two
            rows; "none": only where it has a row.
          window: in units of x: the value at x is `reduce` of the run's rows in (x - window, x].
          reduce: how the rows of a window become one value.
          max_gap: in units of x: no value farther than this from the rows that it comes from.
          crashed_as: a crashed run after its last row: "count": no value; "floor": the value of `floor`; "hold": its
            last value; "drop": the whole run is left out.
          floor: the value of a crashed run with crashed_as="floor".
          nan: values that are NaN or infinite: "keep": no value there; "drop": as if not logged; "floor": the value of
            `floor`; "refuse": an error.
          backwards: where x goes back: "restart": the rows beyond were abandoned; "sort" the rows; "refuse": an error.
          ties: rows with the same x: the last one counts, or their mean.
          draws: number of resamples of the intervals.
          seed: seed of the resampling; the same seed gives the same numbers.
        Returns:
          See `rollbook.compare.Curves`.
        Raises:
          UnknownKey: a key that no run has. BadInput: a field that no run has, or options that conflict.
        """
        from rollbook.runs.curving import drawn
        from rollbook.runs.questions import Curves as Question
        from rollbook.runs.source import Files

        ask = Question(
            key=key,
            by=by,
            x=x,
            start=start,
            stop=stop,
            points=points,
            statistic=statistic,
            level=level,
            whole_curve=whole_curve,
            task=task,
            normalise=normalise,
            span=span,
            spacing=spacing,
            interpolation=interpolation,
            window=window,
            reduce=reduce,
            max_gap=max_gap,
            crashed_as=crashed_as,
            floor=floor,
            nan=nan,
            backwards=backwards,
            ties=ties,
            draws=draws,
            seed=seed,
        )
        return self._in_colours(drawn(ask, Files(self._rows, self.root)), ask)

    def refined_curves(self, key: str = "", *, stages: Sequence[int] = (200, 1999), **options: Any) -> Iterator[Curves]:
        """`curves` from few resamples at once, then from more. All but the last are `preliminary`; pictures show this.

        Args:
          key: the key.
          stages: number of resamples of each answer, increasing. The last answer equals `curves` with that number.
          options: those of `curves`.
        """
        from rollbook.runs.curving import refined
        from rollbook.runs.questions import Curves as Question
        from rollbook.runs.source import Files

        ask = Question(key=key, **options)
        answers = refined(ask, Files(self._rows, self.root), stages)
        return (self._in_colours(each, ask) for each in answers)

    def _in_colours(self, answer: Coloured, ask: Any) -> Coloured:
        """An answer about groups with the looks of its groups."""
        from rollbook.runs.groups import looks_of

        by = None if isinstance(ask.by, Mapping) else ask.by
        return replace(answer, looks=looks_of(self._rows, self.root, by, ask.task))

    @suggesting
    def compare(
        self,
        metric: str = "",
        by: str | Sequence[str] | Mapping[str, Sequence[str]] = "auto",
        *,
        score: str | Callable[..., float] = "mean of the last 10%",
        at: float | Literal["own end", "common end"] = "own end",
        x: str | None = None,
        task: str | None = None,
        normalise: str | Mapping[str, tuple[float, float]] | None = None,
        statistic: Literal["iqm", "mean", "median"] | None = None,
        against: str | None = None,
        paired: bool = False,
        plan: str | None = None,
        seeds: int | None = None,
        delta: float | None = None,
        floor: float | None = None,
        direction: Literal["higher", "lower"] | None = None,
        seed: int = 0,
    ) -> Comparison:
        """Which group is better, how certain that is, and what would decide it.

        Args:
          metric: a key; canonical names are accepted. "": the score that the runs have, that of tests before training.
          by: the field that forms the groups, or several, such as "config.algo, config.lr"; "auto": what differs in the
            configuration; or the groups themselves, {label: ids, names or paths of runs}.
          score: how a run's metric becomes one number: "last", "best", "area", "steps to 475" …, see `table`.
          at: where on the axis scores end: "own end": each run at its own; "common end": all at the first end of a
            finished run; or a position of the axis.
          x: the axis that defines "last"; default: the run's own.
          task: the field with a run's task, such as "config.env"; seeds are matched across tasks. By default,
            environments are tasks where every seed of every group ran in all of them; other ones are judged each by
            itself.
          normalise: for several tasks: {task: (random, human)}, as text in JSON, {"Hopper": [0, 3000]}; or the name of
            a published table ("atari", "d4rl").
          statistic: "iqm" (the default), "mean" or "median", for intervals, tables and pictures; verdicts do not depend
            on it.
          against: one group, which each other one is compared with; by default each with each. Fewer pairs need fewer
            seeds.
          paired: compare equal seeds with each other, where they share something, such as the tasks that they draw.
          plan: the name of a plan, stored with the runs: for a look after each seed up to an end that is fixed before.
            The first call creates it; the question and the seeds of each look are kept.
          seeds: the seeds of each group at the end of a new plan; 22 if none are named.
          delta: the largest difference of means that would not matter, in units of the score.
          floor: the score of a run that did not finish. Without it such runs are not in intervals, and in verdicts they
            count as worse than all that finished.
          direction: whether "higher" or "lower" is better. By default the metric's name decides: lower for losses,
            errors, regret, costs and durations, else higher.
          seed: seed of resampling and splits.
        Returns:
          See `rollbook.compare.Comparison`.
        Raises:
          UnknownKey: a key that no run has. BadInput: a field that no run has, an unknown score, options out of their
            range, or other ones than those of the plan.
          UnknownOption: no such group (`against`), statistic or direction.
        """
        from rollbook.runs.comparing import compared
        from rollbook.runs.questions import Compare
        from rollbook.runs.source import Files

        ask = Compare(
            metric=metric,
            by=by,
            score=score,
            at=at,
            x=x,
            task=task,
            normalise=normalise,
            statistic=statistic,
            against=against,
            paired=paired,
            plan=plan,
            seeds=seeds,
            delta=delta,
            floor=floor,
            direction=direction,
            seed=seed,
        )
        return self._in_colours(compared(ask, Files(self._rows, self.root)), ask)

    @suggesting
    def sweep(
        self,
        metric: str = "",
        project: str = "",
        *,
        score: str | Callable[..., float] = "mean of the last 10%",
        at: float | Literal["own end", "common end"] = "own end",
        x: str | None = None,
        direction: Literal["higher", "lower"] | None = None,
        seed: int = 0,
    ) -> Swept:
        """Which setting of a sweep goes along with a score, which configuration may be the best, and what to run next.

        Args:
          metric: a key; canonical names are accepted. "": the most informative one, such as a test return.
          project: of which project; "": the one with most configurations.
          score: how a run's metric becomes one number: "last", "best", "area", "steps to 475" …, see `table`.
          at: where on the axis scores end: "own end": each run at its own; "common end": all at the first end of a
            finished run; or a position of the axis.
          x: the axis that defines "last"; default: the run's own.
          direction: whether "higher" or "lower" is better. By default the metric's name decides, see `compare`.
          seed: seed of the permutations that estimate chance.
        Returns:
          Configurations (`table`), settings (`settings`), and what they say (`sentences`).
        Raises:
          BadInput: no run belongs to the project, or an unknown score.
          UnknownKey: a key that no run has.
        """
        from rollbook.runs.questions import Sweep
        from rollbook.runs.source import Files
        from rollbook.runs.sweeping import swept

        ask = Sweep(metric=metric, project=project, score=score, at=at, x=x, direction=direction, seed=seed)
        return swept(ask, Files(self._rows, self.root))

    @suggesting
    def seeds(
        self,
        metric: str = "",
        by: str | Sequence[str] | Mapping[str, Sequence[str]] = "auto",
        *,
        score: str | Callable[..., float] = "mean of the last 10%",
        against: str | None = None,
        difference: float | None = None,
        power: float = 0.8,
    ) -> SeedPlan:
        """How many seeds each group needs, and which difference a number of seeds can find.

        Args:
          metric: a key; canonical names are accepted. "": the score that the runs have, that of tests before training.
          by: the field whose values are compared, or several, such as config.algo; see `compare`.
          score: how a run's metric becomes one number: "last", "best", "area", "steps to 475" …, see `table`.
          against: one group, which each other one is compared with.
          difference: the difference to find, in units of the score.
          power: the probability with which `compare` is to name the better one.
        Returns:
          A plan: `needed`, `detectable`, `sentences` and more. It has the present verdicts, so a call is a look, as of
          `compare`.
        Raises:
          BadInput: no group has two seeds of different scores; and as `compare`.
        """
        from rollbook.runs.comparing import seeds_needed
        from rollbook.runs.questions import Seeds
        from rollbook.runs.source import Files

        ask = Seeds(metric=metric, by=by, score=score, against=against, difference=difference, power=power)
        plan: SeedPlan = seeds_needed(ask, Files(self._rows, self.root))
        return plan

    @suggesting
    def shared_prompts(
        self, run: str, other: str, part: str | None = None, *, above: float | None = None, limit: int = 200
    ) -> PromptsOfTwo:
        """Two runs on the prompts that both have: on which the other one is better, by what both measure alike.

        Args:
          run: a run: its id or name.
          other: the run that it is compared with.
          part: a part of the reward that both have; default: the reward, if its parts are the same in both.
          above: a rollout above this solved its prompt; default: midway between the low and the high ones of both runs.
          limit: the largest number of prompts: half where the other run loses most, half where it gains most.
        Returns:
          How many prompts both have, the mean of each run over them, and the prompts from the largest loss of the other
          run to its largest gain; `table` and `sentences` have them as rows and in words.
        Raises:
          RunNotFound, AmbiguousRun: no run has this name, or several do. BadInput: a part that one of them lacks.
        """
        from rollbook.runs.questions import SharedPrompts
        from rollbook.runs.shared_prompts import of_books

        ask = SharedPrompts(run=run, other=other, part=part, above=above, limit=limit)
        return of_books(ask, self.one(run), self.one(other))

    def findings(self, since: float | None = None) -> FindingsOfRuns:
        """What is wrong with runs, by health rules and how they ended: each thing once for all that have it.

        Args:
          since: only what was reported at this time or later, in unix seconds.
        Returns:
          Findings, the worst first; `table` and `sentences` have them as rows and in words.
        """
        from rollbook.runs.finding import found
        from rollbook.runs.questions import Findings
        from rollbook.runs.source import Files

        return found(Findings(since=since), Files(self._rows, self.root))

    def alerts(self, since: float | None = None) -> list[dict[str, Any]]:
        """The alerts of runs, oldest first: what health rules found, one by one.

        Args:
          since: only what was reported at this time or later, in unix seconds.
        Returns:
          One dict per alert: run (id), project, name, time (ISO 8601, UTC), seconds (unix), level ("note", "warn" or
          "fail"), rule, key, message, and the clocks that it knows.
        """
        from rollbook.runs.finding import alerted
        from rollbook.runs.questions import Alerts
        from rollbook.runs.source import Files

        return alerted(Alerts(since=since), Files(self._rows, self.root))

    def verify(self, quick: bool = False) -> Verified:
        """What is wrong with the files of runs: what cannot be read or sealed, what is missing, what cannot be right.

        Args:
          quick: only what opening the files shows, instead of reading all of every file, from remotes too.
        Returns:
          The problems of each run; `table` and `sentences` have them as rows and in words.
        """
        from rollbook.runs.questions import Verify
        from rollbook.runs.source import Files
        from rollbook.runs.verifying import verified

        return verified(Verify(quick=quick), Files(self._rows, self.root), self.problems)

    def plans(self) -> list[dict[str, Any]]:
        """The plans stored with runs, with their looks and verdicts.

        Returns:
          One dict per plan: name, asked, arms, seeds (at its end), first_look, alpha, delta, floor, looks, verdicts.
        """
        from rollbook.runs.looks import plans_below

        return [plan for folder in self.folders for plan in plans_below(folder)]

    def plot(
        self,
        key: str | Sequence[str] = "",
        *,
        by: str | Sequence[str] | None = "auto",
        x: str | None = None,
        chart: str = "curves",
        theme: str = "light",
        **options: object,
    ) -> Picture:
        """A chart of the runs.

        Args:
          key: the metric; "": the score that the runs have. chart="small_multiples" accepts several, or one with
            panels="config.env": one panel for each value of that field.
          by: the field that forms the groups, or several; "auto": what differs in the configuration; None: one group,
            for charts that compare nothing.
          x: see `curves`.
          chart: "curves", "small_multiples", "efficiency", "intervals", "aggregates", "profiles", "improvement",
            "parallel".
          theme: "light" or "dark".
          options: those of `curves` (statistic, points, alignment …) or `compare` (score, task, plan …), and of the
            chart.
        Returns:
          A `rollbook.plots.Picture`: `save("x.png")`, `figure()`, `text()`.
        Raises:
          UnknownOption: there is no such chart of several runs, or no such option.
          UnknownKey: a key that no run has.
        """
        from rollbook.runs.charts import picture_of

        return picture_of(self._rows, self.root, key, by=by, x=x, chart=chart, theme=theme, options=options)


def _book(row: Mapping[str, object]) -> Book:
    from rollbook.book import Book

    return Book(str(row["path"]))


def _created(row: Mapping[str, object]) -> float:
    created = row.get("created")
    return float(created) if isinstance(created, (int, float)) else 0.0


def _is_named(row: Mapping[str, object], name: str) -> bool:
    project, own = row["project"], f"{row['name']}-{row['id']}"
    return name in (row["id"], row["name"], f"{project}/{row['name']}", own, f"{project}/{own}")


def _fits(held: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(held, Mapping) and all(_fits(held.get(name), value) for name, value in wanted.items())
    return bool(held == wanted)
