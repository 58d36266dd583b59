"""Random clocks, checkpoints, `keep=`, rewinds, restores, resumes and deaths against a small model, in every table."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rollbook
from cases import examples
from rollbook.errors import MissingExtra, UnknownKey
from rollbook.run import own_past
from rollbook.run.current import opened
from rollbook.storage.sealing.folder import seal

_ACTIONS = st.one_of(
    st.tuples(st.just("train"), st.integers(1, 9), st.integers(1, 3)),  # steps, and how far the clock moves in each
    st.tuples(st.just("log"), st.integers(1, 9), st.integers(1, 3)),  # numbers alone
    st.tuples(st.just("write"), st.integers(1, 9), st.integers(1, 3)),  # every table but numbers
    st.tuples(st.just("save"), st.sampled_from([None, 1, 2]), st.booleans()),  # keep=, through=
    st.tuples(st.just("rewind"), st.floats(0, 1)),
    st.tuples(st.just("restore"), st.integers(0, 3)),
    st.tuples(st.just("resume"), st.booleans()),  # sealed before
)


class Model:
    """What counts: one entry per row in the order of writing, and where each checkpoint was saved."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int]] = []  # table, env_step, number of the row
        self.saved: list[
            tuple[str, int, int, bool, list[tuple[str, int, int]]]
        ] = []  # id, step, length of rows, through
        self.step = 0
        self.made = 0

    def write(self, *tables: str) -> int:
        self.made += 1
        self.rows += [(table, self.step, self.made) for table in tables]
        return self.made

    def cut_at(self, step: int) -> bool:
        """Before the first row that is higher; whether any row with a reading comes before it."""
        n = next((i for i, row in enumerate(self.rows) if row[1] > step), len(self.rows))
        return self.cut(n)

    def cut(self, n: int) -> bool:
        if not n:
            return False
        del self.rows[n:]
        self.step = self.rows[-1][1]
        self.saved = [each for each in self.saved if each[2] <= n]
        return True

    def restore(self, which: int) -> None:
        _, step, n, through, _ = self.saved[which]
        while through and n < len(self.rows) and self.rows[n][1] <= step:
            n += 1
        self.cut(n)
        self.step = step


def written(run: rollbook.Run, number: int, step: int, numbers: bool, rest: bool) -> None:
    if numbers:
        run.log({"loss": float(number)}, env_step=step)
    if rest:
        run.log_text("note", str(number), env_step=step)
        run.log_episode(return_=float(number), length=1, env_step=step)
        run.log_samples([f"item {number}"], batch_number=number, env_step=step)
        run.log_histogram("weights", [float(number)], env_step=step)
        run.record("mine", {"number": number}, env_step=step)
        run.record("timings", {"name": ["collect"], "seconds": [float(number)]}, env_step=step)


def found(run: rollbook.Run) -> dict[str, list[tuple[int, int]]]:
    """(env_step, number) of each row, table by table."""
    book = run.book

    def rows(table: Any, column: str) -> list[tuple[int, int]]:
        if column not in table.column_names:
            return []
        steps, numbers = table["env_step"].to_pylist(), table[column].to_pylist()
        return sorted((s, int(n[0] if isinstance(n, list) else n)) for s, n in zip(steps, numbers, strict=True))

    metrics = book.metrics(["loss"]) if "loss" in list(book.keys()) else book.table("mine").slice(0, 0)
    return {
        "metrics": rows(metrics, "loss"),
        "text": rows(book.text(), "text"),
        "episodes": rows(book.episodes(), "return"),
        "samples": rows(book.samples(), "batch_number"),
        "histograms": rows(book.table("histograms"), "values"),
        "mine": rows(book.table("mine"), "number"),
        "timings": rows(book.table("timings"), "seconds"),
    }


REST = ("text", "episodes", "samples", "histograms", "mine", "timings")


def play(root: Path, actions: list[tuple[Any, ...]], core: bool) -> None:
    model = Model()

    def started() -> rollbook.Run:
        return rollbook.init(
            "project",
            "name",
            dir=root,
            run_id="r1",
            resume="allow",
            sinks=[],
            rules=[],
            keeper="inline",
        )

    run = started()
    written(run, model.write("metrics", *REST), model.step, True, True)
    for action, *words in actions:
        if action in ("train", "log", "write"):
            steps, stride = words
            for _ in range(steps):
                model.step += stride
                numbers, rest = action != "write", action != "log"
                tables = (*(["metrics"] if numbers else []), *(REST if rest else ()))
                written(run, model.write(*tables), model.step, numbers, rest)
        elif action == "save":
            keep, through = words
            saved = run.save_checkpoint(
                {"step": model.step}, keep=keep, through="env_step" if through else (), env_step=model.step
            )
            model.saved.append((saved.id, model.step, len(model.rows), through, []))
        elif action == "rewind":
            step = int(words[0] * (model.step + 2)) - 1
            if core:
                past = own_past.OwnPast(run.folder)
                try:
                    places = past.cut_at("env_step", step), run.book.cut_at("env_step", step)
                    assert places[0][0] == places[1][0]
                    assert places[0][1].writers == places[1][1].writers
                    assert places[0][2] == places[1][2]
                except (UnknownKey, MissingExtra):  # the second: part of it is sealed
                    pass
            if step < 0:
                with pytest.raises(UnknownKey):
                    run.rewind(env_step=step)
            else:
                assert model.cut_at(step)
                run.rewind(env_step=step)
                assert run.clocks_now()["env_step"] == model.step
        elif action == "restore":
            present = [i for i, (identity, *_) in enumerate(model.saved) if _is_there(run, identity)]
            if present:
                which = present[-1 - words[0] % len(present)]
                restored = run.restore(model.saved[which][0])
                assert restored is not None
                model.restore(which)
                assert run.clocks_now()["env_step"] == model.step == restored.state["step"]
        else:
            run.finish()
            if words[0]:
                seal(run.folder, take_over=True, final=True)
            run = started()
            run.clock(env_step=model.step)
        expected = {
            table: sorted((step, number) for name, step, number in model.rows if name == table)
            for table in ("metrics", *REST)
        }
        assert found(run) == expected, (action, words)
        assert run.internals.reached().get("env_step") == max(step for _, step, _ in model.rows)


def _is_there(run: rollbook.Run, identity: str) -> bool:
    return run.book.checkpoint_history().choose(identity) is not None


@settings(deadline=None, max_examples=examples(3))
@given(actions=st.lists(_ACTIONS, min_size=2, max_size=9), core=st.booleans())
@example(  # keep= deletes a checkpoint: the row that says so has that checkpoint's clock
    [("train", 20, 1), ("save", 2, False), ("train", 20, 1), ("save", 2, False), ("train", 20, 1), ("save", 2, False),
     ("train", 20, 1), ("rewind", 0.86)],
    False,
)  # fmt: skip
@example(  # an abandoned checkpoint is deleted: the row that says so has a clock that is not reached yet
    [("train", 9, 2), ("save", None, False), ("train", 9, 3), ("save", None, False), ("rewind", 0.2), ("train", 3, 1),
     ("save", 1, False), ("train", 9, 3), ("rewind", 0.8), ("resume", True), ("rewind", 0.5)],
    True,
)  # fmt: skip
@example([("save", None, True), ("write", 5, 1), ("resume", False), ("restore", 0)], True)
def test_a_rewind_goes_where_it_says_in_every_table(actions: list[tuple[Any, ...]], core: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            play(Path(folder), actions, core)
        finally:
            for run in list(opened):
                run.finish()
