"""Rollouts as they are written: whatever happens in the block, whatever is handed over, in whichever process."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import rollbook
from cases import some_of
from waiting import PATIENCE

pytestmark = pytest.mark.filterwarnings("ignore:.*run.rollouts")


def counted(run: Any) -> dict[str, int]:
    return dict(run.internals.writer.bill.counts)


def rows(run: Any, table: str) -> list[dict[str, Any]]:
    return [{name: cell for name, cell in row.items() if cell is not None} for row in run.book.table(table).to_pylist()]


@pytest.mark.parametrize("sealed", [False, True], ids=["live", "sealed"])
def test_a_rollout_is_a_row_with_its_turns_and_its_tokens(sealed: bool, tmp_path: Path) -> None:
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", rules=(), strict=True)
    with run.rollouts.begin(task="2 + 2?", group="g", policy_version=7, env="sums", mode="train") as rollout:
        ids, logprobs = np.arange(5, dtype=np.int32), np.full(5, -0.5, np.float32)
        rollout.turn("assistant", "add", calls=[{"name": "python"}], tokens=ids, logprobs=logprobs, seconds=0.5)
        rollout.turn("tool", "4", name="python", tokens=3, seconds=0.25)
        rollout.turn("assistant", "4", tokens=[1, 2], logprobs=[-1.0, -2.0], entropy=np.ones(2, np.float16))
        rollout.reward(accuracy=1.0, format=0.5)
        rollout.stop("eos", prompt_tokens=6, seconds={"reward": 0.125}, metrics={"pass": True})
    if sealed:
        run.finish()
    (row,) = rows(run, "rollouts")
    wanted = {
        "rollout_id": rollout.id, "group": "g", "mode": "train", "status": "completed", "stop_reason": "eos",
        "policy_version": 7, "policy_version_end": 7, "turns": 3, "prompt_tokens": 6, "sampled_tokens": 7,
        "other_tokens": 3, "tool_calls": 1, "reward": 1.5, "rewards/accuracy": 1.0, "rewards/format": 0.5,
        "metrics/pass": 1.0, "seconds/model": 0.5, "seconds/tools": 0.25, "seconds/reward": 0.125, "item": "4",
    }  # fmt: skip
    assert {name: row.get(name) for name in wanted} == wanted
    assert row["seconds"] >= 0
    assert row["started"] > 1e9
    (task,) = rows(run, "tasks")
    assert (task["task_id"], task["prompt"], task["env"]) == (row["task_id"], "2 + 2?", "sums")
    columns = ("turn", "role", "text", "tokens", "trained")
    assert [tuple(turn[name] for name in columns) for turn in rows(run, "turns")] == [
        (0, "assistant", "add", 5, True),
        (1, "tool", "4", 3, False),
        (2, "assistant", "4", 2, True),
    ]
    tokens = run.book.table("tokens")
    assert tokens["first"].to_pylist() == [0, 8]
    assert tokens["ids"].to_pylist() == [[0, 1, 2, 3, 4], [1, 2]]
    assert tokens["sampler_logprobs"].to_pylist() == [[-0.5] * 5, [-1.0, -2.0]]
    assert tokens["entropy"].to_pylist() == [None, [1.0, 1.0]]
    run.finish()


@pytest.mark.parametrize("sealed", [False, True], ids=["live", "sealed"])
@pytest.mark.parametrize(
    ("kind", "kept"), [("float32", "float"), ("int32", "int32"), ("float16", "float"), ("int8", "int8")]
)
def test_lists_of_numbers_keep_their_type(kind: str, kept: str, sealed: bool, tmp_path: Path) -> None:
    """Half floats become float32: no reader of Parquet need know them."""
    run = rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", rules=(), strict=True)
    cells = [np.array(numbers, kind) for numbers in ([1, 2, 3], [4])]
    ids = run.rollouts.log_many(prompts=["a", "b"], completions=["c", "d"], logprobs=cells)
    run.rollouts.trained(ids, trainer_logprobs=cells)
    if sealed:
        run.finish()
    table = run.book.table("tokens")
    for name in ("sampler_logprobs", "trainer_logprobs"):
        assert [cell for cell in table[name].to_pylist() if cell] == [[1, 2, 3], [4]]
        assert str(table[name].type.value_type) == kept
    run.finish()


@pytest.mark.parametrize("are_frequent", [False, True], ids=["any ids", "some frequent"])
def test_half_floats_and_token_ids_take_no_more_bytes_on_disk_than_in_memory(
    are_frequent: bool, tmp_path: Path
) -> None:
    """Two bytes for a half float, though it can be read as a float32. Fewer than three for the ids of a vocabulary, and
    fewer than two if some are frequent, as in any language."""
    draw = np.random.default_rng(0)
    logprobs = [-draw.gamma(1, 0.4, 4_000).astype(np.float16) for _ in range(8)]
    ids = draw.zipf(1.3, 32_000) % 150_000 if are_frequent else draw.integers(0, 150_000, 32_000)
    with rollbook.init("p", "r", dir=tmp_path, sinks=[], keeper="inline", rules=(), strict=True) as run:
        tokens = list(draw.permutation(150_000)[ids].astype(np.int32).reshape(8, -1))
        run.rollouts.log_many(completions=["a"] * 8, tokens=tokens, logprobs=logprobs)
    (part,) = Path(run.folder, "data", "tokens").rglob("*.parquet")
    group = pq.ParquetFile(part).metadata.row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    taken = {column.path_in_schema.split(".")[0]: column.total_compressed_size / 32_000 for column in columns}
    assert taken["sampler_logprobs"] < 2.1
    assert taken["ids"] < (2 if are_frequent else 3)


def test_a_batch_is_the_same_rows_as_rollouts_one_by_one(run: Any) -> None:
    talk = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": None, "tool_calls": [{"name": "python"}], "tokens": 4},
        {"role": "tool", "content": "4", "name": "python", "error": "late"},
        {"role": "assistant", "content": "4", "tokens": [9], "policy_version": 6},
    ]
    (batch,) = run.rollouts.log_many([talk], rewards={"a": [1.0], "b": [2.0]}, group="g", policy_version=(5, 6))
    with run.rollouts.begin(task=talk[:2], group="g", policy_version=5) as rollout:
        rollout.turn("assistant", calls=[{"name": "python"}], tokens=4)
        rollout.turn("tool", "4", name="python", error="late")
        rollout.turn("assistant", "4", tokens=[9], policy_version=6)
        rollout.reward(a=1.0, b=2.0)
    own = {"rollout_id", "time", "seq", "index", "seconds", "started"}
    for table, n in (("rollouts", 1), ("turns", 3), ("tokens", 1)):
        both = {
            name: [
                {column: cell for column, cell in row.items() if column not in own}
                for row in rows(run, table)
                if row["rollout_id"] == name
            ]
            for name in (batch, rollout.id)
        }
        assert both[batch] == both[rollout.id]
        assert len(both[batch]) == n
    assert len(rows(run, "tasks")) == 1
    assert "be brief" in rows(run, "tasks")[0]["messages"]


@pytest.mark.parametrize(
    ("raised", "status"),
    [(ValueError("no JSON"), "failed"), (KeyboardInterrupt(), "aborted"), (GeneratorExit(), "aborted")],
)
def test_what_a_block_raises_goes_on_and_the_rollout_has_a_row(raised: BaseException, status: str, run: Any) -> None:
    with pytest.raises(type(raised)), run.rollouts.begin(task="t", policy_version=1) as rollout:  # noqa: PT012
        rollout.turn("assistant", "half")
        raise raised
    (row,) = rows(run, "rollouts")
    assert (row["status"], row["turns"], row["item"]) == (status, 1, "half")
    assert row["error"].startswith(type(raised).__name__)


@pytest.mark.parametrize("kind", ["lists without numpy", "lists", "float16"])
def test_gaps_that_the_trainer_did_not_report_are_computed_from_both_lists(
    kind: str, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the tokens that are trained on and have both numbers; None where this process cannot know the sampler's."""

    def as_given(*cells: float) -> Any:
        return np.array(cells, kind) if kind == "float16" else list(cells)

    log, sampled = run.rollouts, as_given(-1.0, -2.0)
    said = {"role": "assistant", "content": "a", "tokens": [5, 6], "logprobs": sampled}
    tool = {"role": "tool", "content": "b", "tokens": 1}
    (several,) = log.log_many([[said, tool, {**said, "mask": [0, 1]}]])
    with log.begin() as one:
        one.turn("assistant", "a", tokens=[5, 6], logprobs=sampled)
        one.turn("assistant", "not trained on", tokens=1, logprobs=sampled[:1], trained=False)
    sampled[:] = as_given(-9.0, -9.0)
    odd, bare = log.log_many(completions=["a"] * 2, tokens=[[1, 2]] * 2, logprobs=[[-1.0, -2.0], None])
    nan = float("nan")
    for name, trainer, more in [
        (several, (-1.5, -2.0, -7.0, -7.0, -2.25), {}),
        (several, (-1.5, -2.0, -7.0, -7.0, -2.25), {"mask": [0, 1, 1, 1, 1]}),
        (several, (-1.5, -2.0, -7.0, -7.0, -2.25), {"gap_max": 0.125}),
        (one.id, (-1.0, nan, -9.0), {}),
        (one.id, (nan, nan, -9.0), {}),
        (one.id, (-1.0, -float("inf"), -9.0), {}),
        (odd, (-1.0, -2.0, -3.0), {}),
        (bare, (-1.0, -2.0), {}),
        (bare, (-1.0, -2.0), {"sampler_logprobs": [as_given(-1.5, -2.25)]}),
    ]:
        with monkeypatch.context() as hidden:
            if kind == "lists without numpy":
                hidden.setitem(sys.modules, "numpy", None)
            log.trained([name], trainer_logprobs=[as_given(*trainer)], **more)
    gaps = [(row["gap_mean"], row["gap_max"]) for row in run.book.table("fates").to_pylist()]
    nothing, endless = (None, None), (float("inf"),) * 2
    assert gaps == [(0.25, 0.5), (0.125, 0.25), (None, 0.125), (0, 0), nothing, endless, nothing, nothing, (0.375, 0.5)]


@pytest.mark.parametrize(("reason", "status"), [("eos", "completed"), ("length", "truncated"), (None, "completed")])
def test_the_status_follows_from_the_reason_unless_it_is_given(reason: Any, status: str, run: Any) -> None:
    with run.rollouts.begin() as rollout:
        rollout.stop(reason)
    with run.rollouts.begin() as other:
        other.stop(reason, status="aborted")
    assert [row["status"] for row in rows(run, "rollouts")] == [status, "aborted"]


def test_the_reward_is_the_sum_of_the_parts_and_unknown_where_one_is(run: Any) -> None:
    run.rollouts.log_many(completions=["a"] * 3, rewards={"a": [1.0, 2.0, 3.0], "b": [1.0, None, 1.0]})
    run.rollouts.log_many(completions=["a"], rewards={"a": [1.0]}, reward=[0.25])
    run.rollouts.log_many(completions=["a"], rewards=[0.75])
    assert run.book.rollouts()["reward"].to_pylist() == [2.0, None, 4.0, 0.25, 0.75]


UNSTORABLE = "unstorable/policy_version"
ODD: list[tuple[str, Any, str]] = [
    ("turn with an object as text", lambda o, r: r.turn("assistant", object()), "sample_without_content"),
    ("turn with broken text", lambda o, r: r.turn("assistant", "a\ud800b"), ""),
    ("turn with bytes", lambda o, r: r.turn("assistant", b"\xff\xfe"), ""),
    ("turn with tokens that are none", lambda o, r: r.turn("assistant", "a", tokens="ids"), "rollout_value"),
    ("turn with fewer logprobs", lambda o, r: r.turn("assistant", "a", tokens=[1, 2], logprobs=[0]), "rollout_columns"),
    ("turn with logprobs of text", lambda o, r: r.turn("assistant", "a", tokens=[1], logprobs=["x"]), "rollout_value"),
    ("turn with an odd version", lambda o, r: r.turn("assistant", "a", policy_version="new"), "rollout_value"),
    ("turn with odd seconds", lambda o, r: r.turn("assistant", "a", seconds="long"), "rollout_value"),
    ("turn with odd calls", lambda o, r: r.turn("assistant", "a", calls=[object()]), "rollout_value"),
    ("odd reward", lambda o, r: r.reward(accuracy="good"), "rollout_value"),
    ("odd status", lambda o, r: r.stop("eos", status="fine"), "rollout_value"),
    ("odd column", lambda o, r: r.stop("eos", temperature="hot"), "rollout_value"),
    ("an error of a megabyte", lambda o, r: r.turn("tool", "a", error="x" * 2**20), "rollout_text"),
    ("task without content", lambda o, r: o.begin(task=object()).end(), "rollout_value"),
    ("odd version at the start", lambda o, r: o.begin(policy_version=object()).end(), "rollout_value"),
    ("a version that goes back", lambda o, r: o.begin(policy_version=(5, 4)).end(), "rollout_version"),
    ("a turn of an older version than the turn before", lambda o, r: (
        r.turn("assistant", "a", policy_version=5), r.turn("assistant", "b", policy_version=3)), "rollout_version"),
    ("a batch with turns of older versions", lambda o, r: o.log_many([[
        {"role": "assistant", "content": "a", "policy_version": k} for k in (4, 6, 5)]]), "rollout_version"),
    ("a batch of nothing iterable", lambda o, r: o.log_many(5), "rollouts"),
    ("a batch with a short column", lambda o, r: o.log_many(completions=["a", "b"], reward=[1]), "rollout_columns"),
    ("a batch with a long column", lambda o, r: o.log_many(completions=["a"], group=[1, 2]), "rollout_columns"),
    ("a batch with an odd column", lambda o, r: o.log_many(completions=["a"], mode=object()), "unstorable/mode"),
    ("a batch with an odd version", lambda o, r: o.log_many(completions=["a"], policy_version=open), UNSTORABLE),
    ("a batch of odd messages", lambda o, r: o.log_many([[5, None], None, "text", {}]), ""),
    ("fate of an unknown rollout", lambda o, r: o.trained(["nobody"]), "unknown_rollout"),
    ("fate of one that is to come", lambda o, r: o.dropped([r.id[:11] + "99999"]), "unknown_rollout"),
    ("fates of nothing", lambda o, r: o.trained(None), "unknown_rollout"),
    ("fates with a short column", lambda o, r: o.trained([r.id, r.id], advantage=[1.0]), "rollout_columns"),
    ("fates with a short list", lambda o, r: (o.trained(
        o.log_many(completions=["a"], tokens=[[1, 2, 3]]), trainer_logprobs=[[-1.0]])), "rollout_columns"),
    ("fates with an odd number", lambda o, r: o.trained([r.id], advantage=["much"]), "rollout_value"),
    ("two fates of one use", lambda o, r: o.trained(r.id, gradient_step=1, advantage=9.0), "rollout_fates"),
    ("trained on and dropped by one update", lambda o, r: (
        o.trained([r.id], gradient_step=2), o.dropped([r.id], gradient_step=2)), "rollout_fates"),
    ("one rollout twice in a call", lambda o, r: o.trained([r.id] * 2, gradient_step=3), "rollout_fates"),
    ("broken text in every place", lambda o, r: (
        o.dropped(r.id, reason="a\ud800"), r.turn("to\udc00l", name="\ud800", error="\ud800", calls=["\ud800"]),
        o.begin(task="\ud800", group="\ud800", env="\ud800").end(),
        o.log_many([[{"role": "user", "content": "\ud800"}, {"role": "\ud800", "\ud800": 1}]])), ""),
    ("fates of an older version", lambda o, r: o.trained(r.id, trained_version=1, policy_version=3), "rollout_version"),
    ("fates of an older version than the batch's", lambda o, r: o.trained(
        o.log_many(completions=["a", "b"], policy_version=[1, 3]), trained_version=2), "rollout_version"),
    ("a fate of an older version than the rollout's", lambda o, r: (
        (begun := o.begin(policy_version=3)).end(), o.trained(begun.id, trained_version=2)), "rollout_version"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "cause"),
    some_of([odd[1:] for odd in ODD], [odd[1:] for odd in ODD[::4]].count, ids=[odd[0] for odd in ODD]),
)
def test_odd_input_is_counted_and_costs_nothing_else(call: Any, cause: str, run: Any) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with run.rollouts.begin(task="good", group="good", policy_version=2) as good:
            good.turn("assistant", "before", tokens=[1, 2, 3])
            call(run.rollouts, good)
            call(run.rollouts, good)
            good.turn("assistant", "after", tokens=[4])
            good.reward(1.0)
        run.rollouts.trained([good.id], advantage=[0.5], trained_version=3)
    causes = {name: n for name, n in counted(run).items() if n}
    assert set(causes) <= {cause} - {""}, causes
    assert causes.get(cause, 0) >= 1 or not cause
    assert len([each for each in warned if "run.rollouts" in str(each.message)]) == len(causes)
    found = run.book.rollout(good.id)
    assert (found["reward"], found["advantage"], found["staleness"], found["status"]) == (1.0, 0.5, 1, "completed")
    texts = found.turns()["text"].to_pylist()
    assert (texts[0], texts[-1]) == ("before", "after")
    told = {
        "rollout_columns": "the trainer",
        "unknown_rollout": "fates of",
        "rollout_fates": "uses with",
        "rollout_version": "trained by an older",
    }.get(cause, "-")
    assert all(problem.startswith(f"rollouts: {told}") for problem in run.book.problems())


@pytest.mark.parametrize("sealed", [False, True], ids=["live", "sealed"])
def test_long_and_broken_texts_are_kept_whole(sealed: bool, run: Any) -> None:
    long = "word " * 2_000_000
    with run.rollouts.begin(task=long) as rollout:
        rollout.turn("assistant", long)
        rollout.turn("tool", "a\ud800b")
    if sealed:
        run.finish()
    first, second = rollbook.open(run.folder).one().rollout(rollout.id).turns().to_pylist()
    assert first["item_size"] == len(long)
    assert Path(run.folder, first["item_path"]).read_text("utf-8") == long
    assert second["item_raw"] == "a\ud800b".encode("utf-8", "surrogatepass")
    assert not {name: n for name, n in counted(run).items() if n}


def test_no_two_rollouts_share_an_id_in_threads_forks_and_further_writers(run: Any) -> None:
    ids: list[str] = []

    def work() -> None:
        for _ in range(20):
            with run.rollouts.begin(task="same") as rollout:
                ids.append(rollout.id)
        ids.extend(run.rollouts.log_many(completions=["same"] * 5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    n = len(ids)
    if hasattr(os, "fork"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if not child:
            run.rollouts.log_many(completions=["same"] * 5)
            run.rollouts.dropped(ids[:2], reason="stale")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        n += 5
        assert run.book.sql("select count(*) from fates where reason = 'stale'").fetchall() == [(2,)]
    subprocess.run([sys.executable, "-c", ATTACHED, str(run.folder), ids[0]], check=True, timeout=PATIENCE)
    table = run.book.rollouts()
    assert len(set(table["rollout_id"].to_pylist())) == table.num_rows == n + 1
    found = run.book.rollout(ids[0])
    assert (found["used"], found["advantage"], found.fates().num_rows) == (True, 0.5, 2 if hasattr(os, "fork") else 1)


ATTACHED = """
import sys, rollbook
run = rollbook.attach(sys.argv[1])
with run.rollouts.begin(task="same") as rollout:
    rollout.turn("assistant", "same")
run.rollouts.trained([sys.argv[2]], advantage=[0.5], gradient_step=3)
run.finish()
"""


def test_a_task_is_there_after_a_rewind_that_hid_its_row(run: Any) -> None:
    run.log({"loss": 1.0}, env_step=1)
    run.log({"loss": 1.0}, env_step=2)
    run.rollouts.log_many(prompts=["later"], completions=["a"])
    run.rewind(env_step=1)
    (again,) = run.rollouts.log_many(prompts=["later"], completions=["a"])
    assert run.book.table("tasks")["prompt"].to_pylist() == ["later"]
    assert run.book.rollouts()["rollout_id"].to_pylist() == [again]


def test_a_rollout_that_dies_with_its_process_keeps_its_turns(run: Any) -> None:
    program = (
        "import os, sys, rollbook\n"
        "rollout = rollbook.attach(sys.argv[1]).rollouts.begin(task='t')\n"
        "rollout.turn('assistant', 'half')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(run.folder)], check=False, timeout=PATIENCE)
    assert run.book.table("turns")["text"].to_pylist() == ["half"]
    lost = "select count(distinct rollout_id) from turns anti join rollouts using (rollout_id)"
    assert run.book.sql(lost).fetchall() == [(1,)]
