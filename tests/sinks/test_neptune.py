"""Neptune's logger and sink over objects with the methods of the old and the new client."""

from __future__ import annotations

import math

import pytest

from rollbook.protocols import Row
from rollbook.sinks import Neptune
from rollbook.sinks.neptune import NeptuneLogger
from rollbook.values import Image


class OldExperiment:
    """What `neptune.create_experiment()` of the article gave."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name in ("log_metric", "log_text", "log_image", "set_property"):
            return lambda *args: self.calls.append((name, *args))
        raise AttributeError(name)


class NewRun:
    """What `neptune.init_run()` gives today."""

    def __init__(self):
        self.series = {}
        self.fields = {}
        self.stopped = False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"the real client refuses {name} with an error that is no AttributeError")

    def __getitem__(self, name):
        run = self

        class Field:
            def append(self, value, *, step=None, timestamp=None):
                run.series.setdefault(name, []).append((step, value, timestamp))

        return Field()

    def __setitem__(self, name, value):
        self.fields[name] = value

    def stop(self):
        self.stopped = True


def test_the_articles_logger_sends_each_value_with_its_index():
    experiment = OldExperiment()
    values = {"episode_return": 21.5, "episodes": 3, "note": "hi", "nothing": None}
    NeptuneLogger(experiment, prefix="train", index_name="episodes").write(values)
    assert experiment.calls == [("log_metric", "train/episode_return", 3, 21.5), ("log_text", "train/note", 3, "hi")]
    assert values["episodes"] == 3


def test_index_zero_is_an_index():
    old, new = OldExperiment(), NewRun()
    for experiment in (old, new):
        NeptuneLogger(experiment, index_name="episodes").write({"r": 1.0, "episodes": 0})
    assert old.calls == [("log_metric", "r", 0, 1.0)]
    assert new.series == {"r": [(0, 1.0, None)]}


def test_without_an_index_values_go_alone():
    old, new = OldExperiment(), NewRun()
    for experiment in (old, new):
        NeptuneLogger(experiment).write({"r": 1})
        NeptuneLogger(experiment, index_name="episodes").write({"r": 2})
    assert old.calls == [("log_metric", "r", 1.0), ("log_metric", "r", 2.0)]
    assert new.series == {"r": [(None, 1.0, None), (None, 2.0, None)]}


def rows(*pairs):
    return [Row(100.0 + i, {"env_step": step}, values, seq=i) for i, (step, values) in enumerate(pairs)]


def test_the_sink_sends_configuration_and_metrics_with_steps_and_times(run):
    experiment = NewRun()
    sink = Neptune(experiment, prefix="p")
    sink.open(run)
    sink.write(rows((0, {"r": 1.5, "n": 2}), (10, {"r": 2.5, "note": "text"})))
    sink.close()
    assert experiment.fields["p/config/lr"] == 3e-4
    assert experiment.fields["p/config/net/hidden"] == "[64, 64]"
    assert experiment.fields["p/config/seed"] == 3
    assert experiment.series == {
        "p/r": [(0, 1.5, 100.0), (10, 2.5, 101.0)],
        "p/n": [(0, 2.0, 100.0)],
        "p/note": [(10, "text", 101.0)],
    }
    assert not experiment.stopped


def test_a_row_that_stands_further_back_goes_without_a_step_and_nan_stays_out(run):
    experiment = NewRun()
    sink = Neptune(experiment)
    sink.open(run)
    sink.write(rows((5, {"r": 1.0}), (3, {"r": 2.0}), (6, {"r": math.nan}), (7, {"r": 3.0})))
    assert [(step, value) for step, value, _ in experiment.series["r"]] == [(5, 1.0), (None, 2.0), (7, 3.0)]


def test_pictures_go_as_files_of_the_run_only(run):
    (run.folder / "a.png").write_bytes(b"png")
    (run.folder.parent / "b.png").write_bytes(b"png")
    experiment = OldExperiment()
    sink = Neptune(experiment)
    sink.open(run)
    experiment.calls.clear()
    sink.write(rows((1, {"pic": Image("a.png", 1, 1)}), (2, {"pic": Image("../b.png", 1, 1)})))
    assert experiment.calls == [("log_image", "pic", str(run.folder.resolve() / "a.png"))]


@pytest.mark.parametrize("experiment", [OldExperiment(), NewRun()])
def test_a_handed_in_experiment_can_be_closed_twice_and_belongs_to_its_maker(run, experiment):
    sink = Neptune(experiment)
    sink.open(run)
    sink.close()
    sink.close()
    logger = NeptuneLogger(experiment)
    logger.close()
    logger.write({"after": 1.0})
