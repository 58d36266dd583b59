"""The log: its containers, its table, its frames; what it does when callbacks err; that it survives."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rollbook
from rollbook.adapters.mrl import (
    Callback,
    Environment,
    Log,
    MaxCallback,
    MeanCallback,
    MinCallback,
    PercentileCallback,
    SaveLogDF,
    StatsCallback,
    log_to_df,
)
from rollbook.errors import BadInput, RollbookWarning


class Source(Callback):
    """Two samples a batch, `s<i>` and `s<i+1>`, rewarded with i and i + 1; every second one comes from the buffer."""

    def __init__(self, per_batch: int = 2) -> None:
        super().__init__("source")
        self.per_batch = per_batch

    def sample_batch(self) -> None:
        state = self.environment.batch_state
        start = self.environment.log.iterations
        state.samples += [f"s{start + i}" for i in range(self.per_batch)]
        state.sources += ["live" if i % 2 == 0 else "live_buffer" for i in range(self.per_batch)]

    def compute_reward(self) -> None:
        state = self.environment.batch_state
        add = np.array([float(sample[1:]) for sample in state.samples], np.float32)
        if hasattr(state.rewards, "detach"):
            import torch

            state.rewards += torch.from_numpy(add)
        else:
            state.rewards = state.rewards + add


def trained(run: Any, iters: int = 4, cbs: Any = (), report: int = 1, per_batch: int = 2, **keep: int) -> Log:
    log = Log(run, **keep)
    Environment(cbs=[Source(per_batch), *cbs], log=log).fit(2, 90, iters, report)
    return log


# -- the documented outline


OUTLINE = """
import torch
from rollbook.adapters.mrl import *
from rollbook.adapters.mrl.environment import *

class MyCallback(Callback):
    def __init__(self):
        super().__init__(name='my_callback')

    def setup(self):
        log = self.environment.log
        log.add_log(self.name) # adding new term to batch log
        log.add_metric(self.name) # adding new term to metrics

    def compute_reward(self):
        # make tensor of dummy rewards
        batch_state = self.environment.batch_state
        bs = len(batch_state.samples)
        rewards = to_device(torch.ones(bs).float())
        batch_state.rewards += rewards
        batch_state[self.name] = rewards # this is the value the batch log will pick up

    def after_compute_reward(self):
        log = self.environment.log
        batch_state = self.environment.batch_state
        my_callback_rewards = batch_state[self.name]
        my_metric = my_callback_rewards.mean()
        log.update_metric(self.name, my_metric.detach().cpu().numpy()) # update metric value
"""


def test_the_outline_of_mrls_documentation_runs_with_its_import_changed(run: Any) -> None:
    pytest.importorskip("torch")
    names: dict[str, Any] = {}
    exec(OUTLINE, names)
    log = trained(run, cbs=[names["MyCallback"]])
    assert list(log.metrics["my_callback"]) == [1.0] * 4
    np.testing.assert_array_equal(log.batch_log["my_callback"][2], [1.0, 1.0])
    np.testing.assert_array_equal(log.batch_log["rewards"][2], [3.0, 4.0])
    assert run.book.metrics(["metrics/my_callback"], x="step").column("metrics/my_callback").to_pylist() == [1.0] * 4


def test_the_star_brings_the_log_and_what_stands_beside_it_but_no_environment() -> None:
    names: dict[str, Any] = {}
    exec("from rollbook.adapters.mrl import *", names)
    assert set(names) - {"__builtins__"} == {
        "Log",
        "MaxCallback",
        "MeanCallback",
        "MinCallback",
        "PercentileCallback",
        "SaveLogDF",
        "StatsCallback",
        "log_to_df",
    }


# -- containers


def test_metrics_and_terms_are_those_of_mrl(run: Any) -> None:
    log = Log(run)
    assert list(log.metrics) == ["rewards", "rewards_final", "new", "diversity", "bs"]
    assert list(log.batch_log) == ["samples", "sources", "rewards", "rewards_final"]
    assert (log.name, log.order, log.report, log.iterations) == ("log", 100, 1, 0)


def test_batch_log_gives_the_items_of_a_batch(run: Any) -> None:
    log = trained(run, 7)
    np.testing.assert_array_equal(log.batch_log["rewards"][5], [5.0, 6.0])
    np.testing.assert_array_equal(log.batch_log["rewards"][-1], [6.0, 7.0])
    assert log.batch_log["samples"][1:3] == [["s1", "s2"], ["s2", "s3"]]
    assert log.batch_log["sources"][0] == ["live", "live_buffer"]
    assert len(log.batch_log["rewards"]) == 7
    with pytest.raises(IndexError, match="7 are complete"):
        log.batch_log["rewards"][7]
    with pytest.raises(KeyError):
        log.batch_log["nothing"]


def test_metrics_are_like_lists_of_one_value_per_batch(run: Any) -> None:
    log = trained(run, 5)
    assert list(log.metrics["rewards"]) == [0.5, 1.5, 2.5, 3.5, 4.5]
    assert log.metrics["new"][:] == [1.0, 0.5, 0.5, 0.5, 0.5]
    assert log.metrics["bs"] == [2, 2, 2, 2, 2]
    assert np.array(log.metrics["rewards"][-3:]).mean() == 3.5
    np.testing.assert_array_equal(np.array(log.metrics["diversity"]), np.ones(5))
    assert log.metrics["rewards"][-1] == 4.5


def test_metrics_can_be_added_to_and_copied_as_lists_are(run: Any) -> None:
    log = trained(run, 3)
    rewards = log.metrics["rewards"]
    assert add(rewards, [9.0]) == [0.5, 1.5, 2.5, 9.0]
    assert add([9.0], rewards) == [9.0, 0.5, 1.5, 2.5]
    assert rewards * 2 == list(rewards) * 2
    assert pickle.loads(pickle.dumps(rewards)) == rewards.copy() == [0.5, 1.5, 2.5]
    assert pickle.loads(pickle.dumps(log.metrics))["rewards"] == [0.5, 1.5, 2.5]
    assert pickle.loads(pickle.dumps(log.unique_samples)) == dict(log.unique_samples) == {
        "s0": 0.0, "s1": 1.0, "s2": 2.0, "s3": 3.0,
    }  # fmt: skip
    log.metrics["mine"] = []
    log.metrics["mine"].append(3.0)
    assert log.metrics["mine"][-1] == 3.0
    with pytest.raises(TypeError, match="earlier batches remain in the book"):
        log.metrics["mine"] = [1.0, 2.0]


def test_a_frame_of_ones_own_can_stand_for_df(run: Any) -> None:
    log = trained(run, 3)
    log.df = log.df[log.df.rewards > 1.0]
    assert log.df.samples.tolist() == ["s2", "s3"]
    log.environment.fit(2, 90, 1, 1)
    assert log.df.samples.tolist() == ["s2", "s3", "s4"]


def test_both_frames_have_the_type_of_the_rewards(run: Any) -> None:
    log = trained(run, 6, keep_items=4)
    assert not log.batch_log.history.holds_all
    assert log.df.rewards.dtype == log.get_df().rewards.dtype == np.float32


def test_a_pickled_log_shows_the_same_and_goes_on_in_memory(run: Any) -> None:
    log = trained(run, 6, keep_items=4)
    again = pickle.loads(pickle.dumps(log))
    assert again.metrics == {name: list(values) for name, values in log.metrics.items()}
    assert again.get_df().equals(log.get_df())
    assert again.df.equals(log.df)
    assert again.unique_samples == dict(log.unique_samples)
    assert again.environment.log is again
    with pytest.warns(RollbookWarning, match="read from a pickle and has no run"):
        again.environment.fit(2, 90, 1, 1)
    assert again.metrics["rewards"][-2:] == [5.5, 6.5]
    assert len(again.timelog["sample_batch"]) == 7
    assert len(log.metrics["rewards"]) == 6
    assert run.book.samples().num_rows == 12


def test_a_batch_that_breaks_off_leaves_no_times_behind(run: Any) -> None:
    class Broken(Callback):
        done = False

        def compute_loss(self) -> None:
            if self.environment.log.iterations == 2 and not self.done:
                self.done = True
                raise RuntimeError("broken")

    log = Log(run)
    env = Environment(cbs=[Source(), Broken("broken")], log=log)
    with pytest.raises(RuntimeError):
        env.fit(2, 90, 4, 1)
    env.fit(2, 90, 2, 1)
    assert {len(times) for times in log.timelog.values()} == {4}
    assert sorted(row["step"] for row in run.book.timings().to_pylist() if row["name"] == "sample_batch") == [
        0,
        1,
        2,
        3,
    ]


def test_the_running_batch_counts_as_soon_as_a_metric_is_updated(run: Any) -> None:
    seen: list[list[float]] = []

    class Reader(Callback):
        def after_batch(self) -> None:
            seen.append(log.metrics["rewards"][-2:])

    log = Log(run)
    Environment(cbs=[Source(), Reader("reader")], log=log).fit(2, 90, 3, 1)
    assert seen == [[0.5], [0.5, 1.5], [1.5, 2.5]]


def test_timelog_has_one_time_per_stage_and_batch_and_rows_in_the_book(run: Any) -> None:
    log = trained(run, 3)
    stages = ["build_buffer", "sample_batch", "compute_reward", "get_model_outputs", "compute_loss", "after_batch"]
    assert list(log.timelog) == stages
    assert all(len(log.timelog[stage]) == 3 for stage in stages)
    assert all(seconds > 0 for seconds in log.timelog["sample_batch"])
    rows = run.book.timings().to_pylist()
    assert sorted((r["name"], r["step"]) for r in rows) == sorted((stage, i) for stage in stages for i in range(3))


def test_old_batches_and_values_come_out_of_the_book(run: Any) -> None:
    log = trained(run, 140, report=200, keep_items=8, keep_values=5)
    assert list(log.metrics["rewards"]) == [i + 0.5 for i in range(140)]
    for batch in (0, 3, 17, 63, 64, 130, 139):
        np.testing.assert_array_equal(log.batch_log["rewards"][batch], [batch, batch + 1])
        assert log.batch_log["samples"][batch] == [f"s{batch}", f"s{batch + 1}"]
    assert len(list(log.timelog["step" if "step" in log.timelog else "sample_batch"])) == 140


def test_unique_samples_is_a_set_that_knows_first_rewards(run: Any) -> None:
    log = trained(run, 4)
    assert len(log.unique_samples) == 5
    assert "s0" in log.unique_samples
    assert "s99" not in log.unique_samples
    assert log.unique_samples["s3"] == 3.0
    assert sorted(log.unique_samples) == ["s0", "s1", "s2", "s3", "s4"]
    with pytest.raises(KeyError):
        log.unique_samples["s99"]


def test_samples_count_as_seen_once_they_have_a_reward(run: Any) -> None:
    found: list[tuple[bool, bool]] = []

    class Novelty(Callback):
        def before_compute_reward(self) -> None:
            self.before = "s1" in self.environment.log.unique_samples

        def reward_modification(self) -> None:
            found.append((self.before, "s1" in self.environment.log.unique_samples))

    trained(run, 1, cbs=[Novelty("novelty")])
    assert found == [(False, True)]


def test_df_holds_the_first_occurrence_and_get_df_all(run: Any) -> None:
    pytest.importorskip("pandas")
    log = trained(run, 3)
    df = log.df
    assert list(df.columns) == ["samples", "sources", "rewards", "rewards_final"]
    assert df.samples.tolist() == ["s0", "s1", "s2", "s3"]
    assert df.sources.tolist() == ["live", "live_buffer", "live_buffer", "live_buffer"]
    assert df.rewards.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert df.index.tolist() == [0, 1, 2, 3]
    assert df[df.rewards > 1.5].shape == (2, 4)
    everything = log.get_df()
    assert list(everything.columns) == ["batch", "samples", "sources", "rewards", "rewards_final"]
    assert everything.batch.tolist() == [0, 0, 1, 1, 2, 2]
    assert everything.samples.tolist() == ["s0", "s1", "s1", "s2", "s2", "s3"]


def test_df_grows_while_the_training_reads_it(run: Any) -> None:
    pytest.importorskip("pandas")
    sizes: list[int] = []

    class Reader(Callback):
        def reward_modification(self) -> None:
            df = self.environment.log.df
            sizes.append(len(df))
            df.drop_duplicates(subset="samples", inplace=True)

    log = trained(run, 5, cbs=[Reader("reader")])
    assert sizes == [0, 2, 3, 4, 5]
    assert len(log.df) == 6


def test_rows_of_another_frame_can_be_added(run: Any) -> None:
    pandas = pytest.importorskip("pandas")
    log = trained(run, 1)
    log.add_data(pandas.DataFrame({"samples": ["s1", "x"], "sources": ["a", "b"], "rewards": [9.0, 8.0]}))
    assert log.df.samples.tolist() == ["s0", "s1", "x"]
    assert log.df.rewards.tolist() == [0.0, 1.0, 8.0]


def test_log_to_df_takes_any_batch_log() -> None:
    pytest.importorskip("pandas")
    found = log_to_df({"a": [[1, 2], [3]], "b": [["x", "y"], ["z"]]})
    assert found.to_dict("list") == {"batch": [0, 0, 1], "a": [1, 2, 3], "b": ["x", "y", "z"]}
    assert list(log_to_df({"a": [[1]], "b": [[2]]}, keys=["b"]).columns) == ["batch", "b"]


# -- the table


def test_a_row_is_shown_every_report_batches(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    trained(run, 5, report=4)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "iterations\trewards\trewards_final\tnew\tdiversity\tbs",
        "0\t0.500\t0.500\t1.000\t1.000\t2",
        "4\t4.500\t4.500\t0.500\t1.000\t2",
    ]


def test_a_progress_bar_is_written_to(run: Any) -> None:
    rows: list[list[str]] = []

    class Bar:
        def write(self, row: list[str], table: bool) -> None:
            assert table
            rows.append(row)

    log = Log(run)
    log.pbar = Bar()
    Environment(cbs=[Source()], log=log).fit(2, 90, 1, 1)
    assert rows[1] == ["0", "0.500", "0.500", "1.000", "1.000", "2"]


# -- when callbacks err


def test_a_missed_metric_is_named_and_shifts_nothing(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    class Forgetful(Callback):
        def setup(self) -> None:
            self.environment.log.add_metric("mine")

        def after_batch(self) -> None:
            log = self.environment.log
            if log.iterations != 1:
                log.update_metric("mine", log.iterations)

    with pytest.warns(RollbookWarning, match="'mine' was not updated in batch 1"):
        log = trained(run, 4, cbs=[Forgetful("forgetful")])
    values = list(log.metrics["mine"])
    assert math.isnan(values[1])
    assert [values[0], *values[2:]] == [0, 2, 3]
    table = run.book.metrics(["metrics/mine"], x="step")
    column = table.column("metrics/mine")
    steps = [s for s, v in zip(table.column("step").to_pylist(), column.to_pylist(), strict=True) if v is not None]
    assert steps == [0, 2, 3]
    assert capsys.readouterr().out.splitlines()[2].endswith("\t-")


def test_a_doubled_metric_is_named_and_shifts_nothing(run: Any) -> None:
    class Doubling(Callback):
        def setup(self) -> None:
            self.environment.log.add_metric("mine")

        def after_sample(self) -> None:
            self.environment.log.update_metric("mine", 1)
            self.environment.log.update_metric("mine", 2)

    with pytest.warns(RollbookWarning, match="'mine' was updated twice in batch 0"):
        log = trained(run, 3, cbs=[Doubling("doubling")])
    assert list(log.metrics["mine"]) == [2, 2, 2]


def test_a_metric_that_was_never_added_is_tracked_from_then_on(run: Any) -> None:
    class Late(Callback):
        def after_sample(self) -> None:
            if self.environment.log.iterations >= 2:
                self.environment.log.update_metric("late", 5.0)

    with pytest.warns(RollbookWarning, match="was not added"):
        log = trained(run, 4, cbs=[Late("late_one")])
    values = list(log.metrics["late"])
    assert [math.isnan(values[0]), math.isnan(values[1]), values[2:]] == [True, True, [5.0, 5.0]]


def test_a_missing_or_uneven_term_is_named_and_the_batch_stays_whole(run: Any) -> None:
    class Odd(Callback):
        def setup(self) -> None:
            for name in ("absent", "uneven", "one"):
                self.environment.log.add_log(name)

        def after_sample(self) -> None:
            self.environment.batch_state.uneven = [1.0]
            self.environment.batch_state.one = 7

    with pytest.warns(RollbookWarning) as said:
        log = trained(run, 2, cbs=[Odd("odd")])
    messages = " ".join(str(w.message) for w in said)
    assert "has no 'absent'" in messages
    assert "1 values of 'uneven' for 2 samples" in messages
    np.testing.assert_array_equal(log.batch_log["rewards"][1], [1.0, 2.0])
    assert list(log.batch_log["absent"][1]) == [None, None]
    assert list(log.batch_log["one"][1]) == [7, 7]


def test_an_empty_batch_is_a_batch_without_means(run: Any) -> None:
    log = trained(run, 2, per_batch=0)
    assert list(log.metrics["bs"]) == [0, 0]
    assert math.isnan(log.metrics["rewards"][0])
    assert list(log.batch_log["samples"][1]) == []
    assert log.iterations == 2


def test_rewards_that_were_there_before_the_samples_are_kept(run: Any) -> None:
    class Early(Callback):
        def before_batch(self) -> None:
            self.environment.batch_state.rewards += 1.0

    log = trained(run, 1, cbs=[Early("early")])
    np.testing.assert_array_equal(log.batch_log["rewards"][0], [1.0, 2.0])


def test_texts_can_be_metrics_and_tuples_samples(run: Any) -> None:
    class Texts(Callback):
        def sample_batch(self) -> None:
            self.environment.batch_state.samples += [("C", 1), ("C", 1)]
            self.environment.batch_state.sources += ["a", "b"]

        def setup(self) -> None:
            self.environment.log.add_metric("phase")

        def after_sample(self) -> None:
            self.environment.log.update_metric("phase", "warm-up")

    log = Log(run)
    Environment(cbs=[Texts("texts")], log=log).fit(2, 90, 2, 1)
    assert list(log.metrics["phase"]) == ["warm-up", "warm-up"]
    assert ("C", 1) in log.unique_samples
    assert len(log.unique_samples) == 1
    assert list(log.metrics["new"]) == [1.0, 0.0]
    assert list(log.metrics["diversity"]) == [0.5, 0.5]


def test_a_log_without_a_book_is_refused() -> None:
    with pytest.raises(BadInput, match="reads back"):
        Log(False)


# -- statistics


def test_statistics_of_a_source_become_metrics(run: Any) -> None:
    cbs = [
        MaxCallback("rewards", "live"),
        MinCallback("rewards", "live", include_buffer=False),
        MeanCallback("rewards", None),
        PercentileCallback("rewards", "live", 90),
        MaxCallback("rewards", "elsewhere"),
    ]
    log = trained(run, 2, cbs=cbs, per_batch=4)
    assert list(log.metrics["rewards_live_max"]) == [3.0, 4.0]
    assert list(log.metrics["rewards_live_min"]) == [0.0, 1.0]
    assert list(log.metrics["rewards_mean"]) == [1.5, 2.5]
    assert log.metrics["rewards_live_p90"][0] == pytest.approx(np.percentile([0, 1, 2, 3], 90))
    assert all(math.isnan(value) for value in log.metrics["rewards_elsewhere_max"])


def test_only_the_ending_makes_a_source_a_buffer(run: Any) -> None:
    """MRL takes `_buffer` out of the middle of a name as well."""

    class Names(Callback):
        def sample_batch(self) -> None:
            self.environment.batch_state.samples += ["a", "b", "c"]
            self.environment.batch_state.sources += ["my_buffered", "my_buffered_buffer", "myed"]

        def compute_reward(self) -> None:
            self.environment.batch_state.rewards += 1.0

    log = Log(run)
    stats = StatsCallback("rewards", "my_buffered")
    env = Environment(cbs=[Names("names"), stats], log=log)
    env.fit(3, 90, 1, 1)
    assert len(stats.get_values()) == 2


def test_a_percentile_outside_of_0_to_100_is_refused() -> None:
    with pytest.raises(BadInput, match="101"):
        PercentileCallback("rewards", None, 101)


def test_save_log_df_holds_the_batches_its_name_says(run: Any, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    where = tmp_path / "made" / "here"
    trained(run, 5, cbs=[SaveLogDF(2, where)])
    assert sorted(path.name for path in where.iterdir()) == ["log_df_2.csv", "log_df_4.csv", "log_df_5.csv"]
    assert pandas.read_csv(where / "log_df_2.csv").samples.tolist() == ["s0", "s1", "s2"]
    assert len(pandas.read_csv(where / "log_df_5.csv")) == 6
    assert (where / "log_df_2.csv").read_text().splitlines()[0] == "samples,sources,rewards,rewards_final"


def test_figures_have_a_plot_per_name(run: Any) -> None:
    pytest.importorskip("matplotlib")
    log = trained(run, 3)
    log.add_metric("empty")
    assert [ax.get_title() for ax in log.plot_metrics(cols=2).axes][:6] == list(log.metrics)
    assert len(log.plot_timelog(cols=1, smooth=False).axes) == 6
    assert len(log.plot_metrics().axes[0].lines) == 2
    assert len(log.plot_metrics(smooth=False).axes[0].lines) == 1


# -- durable, bounded


def test_a_killed_training_goes_on_where_its_log_ends(tmp_path: Path) -> None:
    code = textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import rollbook
        from test_mrl_log import Environment, Log, Source
        run = rollbook.init("p", "mrl", dir={str(tmp_path)!r}, sinks=[], keeper="inline", run_id="one")
        Environment(cbs=[Source()], log=Log(run)).fit(2, 90, 3, 1)
        os.kill(os.getpid(), 9)
    """)
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == -9
    with rollbook.init("p", "mrl", dir=tmp_path, sinks=[], keeper="inline", run_id="one", resume="must") as run:
        log = Log(run)
        assert log.iterations == 3
        assert list(log.metrics["rewards"]) == [0.5, 1.5, 2.5]
        assert "s3" in log.unique_samples
        assert log.unique_samples["s3"] == 3.0
        assert len(log.timelog["sample_batch"]) == 3
        Environment(cbs=[Source()], log=log).fit(2, 90, 2, 1)
        assert list(log.metrics["rewards"]) == [0.5, 1.5, 2.5, 3.5, 4.5]
        assert list(log.metrics["new"]) == [1.0, 0.5, 0.5, 0.5, 0.5]
        np.testing.assert_array_equal(log.batch_log["rewards"][1], [1.0, 2.0])
        assert run.book.metrics(["metrics/bs"], x="step").column("step").to_pylist() == [0, 1, 2, 3, 4]


def test_a_restored_checkpoint_takes_the_log_back_with_it(run: Any) -> None:
    log = Log(run)
    env = Environment(cbs=[Source()], log=log)
    env.fit(2, 90, 2, 1)
    run.save_checkpoint({"w": 1.0}, step=2)
    env.fit(2, 90, 3, 1)
    assert log.iterations == 5
    run.restore("last")
    env.fit(2, 90, 1, 1)
    assert log.iterations == 3
    assert list(log.metrics["rewards"]) == [0.5, 1.5, 2.5]
    assert "s5" not in log.unique_samples


def test_memory_does_not_grow_with_the_number_of_batches(run: Any) -> None:
    log = Log(run, keep_items=2000)
    env = Environment(cbs=[Source(100)], log=log)
    tracemalloc.start()
    env.fit(100, 90, 30, 1000)
    before = tracemalloc.get_traced_memory()[0]
    env.fit(100, 90, 150, 1000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 600_000  # journal buffers and the last values of metrics; 15,000 items kept would be 2.6 MB
    assert log.iterations == 180


def test_a_pickled_log_takes_new_metrics_terms_and_stages(run: Any) -> None:
    again = pickle.loads(pickle.dumps(trained(run, 4, keep_values=2)))
    again.add_metric("mine")
    again.add_log("term")
    assert np.isnan(list(again.metrics["mine"])).tolist() == [True] * 4
    for number in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RollbookWarning)
            again.environment.fit(2, 90, 1, 1)
        again.timelog["own"].append(float(number))
    assert np.isnan(list(again.metrics["mine"])).tolist() == [True] * 9
    assert len(again.metrics["rewards"]) == 9
    assert not np.isnan(list(again.metrics["rewards"])).any()
    assert list(again.timelog["own"]) == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert again.batch_log["term"] == [[None, None]] * 9
    again.update_metric("late", 1.0)
    assert np.isnan(list(again.metrics["late"])[:9]).all()
