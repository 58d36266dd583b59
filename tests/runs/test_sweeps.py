"""A sweep says what its scores say: which setting matters, what may be the best, and when nothing can be said."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from rollbook.compare import Entry, Sweep, sweep
from rollbook.stats.variance_shares import over_seeds, seeds_share, share_of_levels

Settings = Mapping[str, Mapping[str, object]]


def tried(
    settings: Settings, score: Callable[[Mapping[str, object]], float], seeds: int = 3, noise: float = 0.0, **more: bool
) -> Sweep:
    """A sweep whose scores are those of a function of the settings, and noise."""
    rng = np.random.default_rng(3)
    entries = [
        Entry(name, f"{name}-{seed}", seed, "", score(each) + noise * rng.standard_normal())
        for name, each in settings.items()
        for seed in range(seeds)
    ]
    return sweep(entries, settings, metric="test/return", **more)


GRID = {
    f"{lr} {clip} {size}": {"config.lr": lr, "config.clip": clip, "config.size": size, "config.gamma": 0.99}
    for lr in (1e-4, 1e-3, 1e-2)
    for clip in (0.1, 0.2)
    for size in (32, 64)
}


def test_the_setting_that_the_score_depends_on_comes_first_and_stands_above_chance() -> None:
    found = tried(GRID, lambda each: 1e5 * float(str(each["config.lr"])), noise=1.0)
    assert found.settings[0].name == "config.lr"
    assert found.settings[0].share > 0.9 > found.chance
    assert all(each.share < found.chance for each in found.settings[1:])
    assert "lr matters most" in found.sentence


def test_a_setting_that_never_varies_is_not_shown() -> None:
    found = tried(GRID, lambda each: 0.0, noise=1.0)
    assert {each.name for each in found.settings} == {"config.lr", "config.clip", "config.size"}


def test_where_no_setting_does_anything_none_is_shown_to_matter() -> None:
    found = tried(GRID, lambda each: 0.0, noise=1.0)
    assert "No setting stands out" in found.sentence


def test_settings_that_always_change_together_are_reported_as_one() -> None:
    settings = {name: {**each, "config.batch": float(str(each["config.lr"])) * 7} for name, each in GRID.items()}
    found = tried(settings, lambda each: 1e5 * float(str(each["config.lr"])), noise=1.0)
    assert (found.settings[0].name, found.settings[0].together) == ("config.lr", ("config.batch",))


@pytest.mark.parametrize("higher", [True, False])
def test_the_best_configuration_comes_first_and_those_far_behind_are_not_the_best(higher: bool) -> None:
    found = tried(GRID, lambda each: 1e5 * float(str(each["config.lr"])), noise=1.0, higher_is_better=higher)
    assert found.tried[0].settings["config.lr"] == (1e-2 if higher else 1e-4)
    assert found.tried[0].may_be_best
    assert not found.tried[-1].may_be_best


def test_one_seed_each_says_that_seeds_and_settings_cannot_be_distinguished() -> None:
    found = tried({str(lr): {"config.lr": lr} for lr in (1, 2, 3, 4)}, lambda each: float(str(each["config.lr"])), 1)
    assert math.isnan(found.settings[0].share)
    assert math.isnan(found.seeds)
    assert "one seed each" in found.settings[0].why
    assert all(each.may_be_best for each in found.tried)
    assert "one seed" in found.todo


def test_of_too_few_configurations_nothing_is_reported_about_several_settings() -> None:
    few = dict(list(GRID.items())[:5])
    found = tried(few, lambda each: 1e5 * float(str(each["config.lr"])), noise=1.0)
    assert all(math.isnan(each.share) for each in found.settings)
    assert "5 configurations" in found.sentence


def test_runs_that_crashed_or_go_on_do_not_count_and_are_named() -> None:
    settings = {"a": {"config.lr": 1}, "b": {"config.lr": 2}}
    entries = [
        Entry("a", "a-0", 0, "", 1.0),
        Entry("a", "a-1", 1, "", 100.0, crashed=True),
        Entry("b", "b-0", 0, "", 2.0),
        Entry("b", "b-1", 1, "", 100.0, running=True),
        Entry("b", "b-2", 2, "", None),
    ]
    found = sweep(entries, settings, metric="test/return")
    assert [each.names for each in found.tried] == [("b-0",), ("a-0",)]
    assert found.tried[0].running == ("b-1",)
    assert found.tried[0].without_score == ("b-2",)
    assert "1 crashed" in " ".join(found.notes)


def test_a_run_that_repeats_another_of_the_same_seed_and_code_counts_once() -> None:
    entries = [Entry("a", f"a-{n}", 0, "", 1.0, unit="same") for n in range(3)] + [Entry("b", "b", 0, "", 2.0)]
    found = sweep(entries, {"a": {"config.lr": 1}, "b": {"config.lr": 2}}, metric="test/return")
    assert len(found.tried[1].scores_R) == 1
    assert "2 runs left out: the same configuration, seed and code" in " ".join(found.notes)


def test_no_score_at_all_is_reported() -> None:
    found = sweep([Entry("a", "a", 0, "", None)], {"a": {"config.lr": 1}}, metric="test/return")
    assert found.sentence == "No finished run has a value of test/return."


def test_shares_are_the_same_whatever_the_unit_of_the_score() -> None:
    rng = np.random.default_rng(0)
    scores = [rng.standard_normal(3) + place for place in range(6)]
    labels = [0, 0, 1, 1, 2, 2]
    scaled = [1e6 * each - 5e6 for each in scores]
    assert share_of_levels(scores, labels) == pytest.approx(share_of_levels(scaled, labels))
    assert seeds_share(scores) == pytest.approx(seeds_share(scaled))
    low, high = over_seeds(scores, labels)
    assert low <= share_of_levels(scores, labels) <= high


def test_the_best_is_described_by_what_it_does_not_share_with_all_others() -> None:
    found = tried(GRID, lambda each: 1e5 * float(str(each["config.lr"])), noise=0.1)
    assert "The best so far is lr 0.01, clip " in found.sentence
    assert "gamma" not in found.sentence
    crashed = {**GRID, "no configuration": {"config.lr": 1e-4}}
    entries = [Entry(name, f"{name}-{s}", s, "", float(s)) for name in GRID for s in range(2)]
    entries.append(Entry("no configuration", "lost", 0, "", None, crashed=True))
    lost = sweep(entries, crashed, metric="test/return")
    assert "gamma" not in lost.sentence, "that a run without a score lacks it tells nothing"
    assert "1 crashed run of 1 configuration left out, which flatters it." in lost.notes


def both(*values: object) -> Settings:
    """Twelve configurations: lr in three steps, an optimiser that mostly goes with it, and a size that does not."""
    return {
        f"c{i}": {
            "config.lr": i % 3,
            "config.optimiser": values[i] if i < len(values) else int(i % 3 == 2),
            "config.size": i // 6,
        }
        for i in range(12)
    }


def test_a_setting_that_only_goes_with_another_has_no_share_of_its_own_and_names_the_other() -> None:
    found = tried(both(1), lambda each: 50.0 * (each["config.lr"] == 2), noise=1.0)
    lr, optimiser = (next(one for one in found.settings if one.name == f"config.{n}") for n in ("lr", "optimiser"))
    assert found.settings[0] is lr
    assert lr.share > 0.9
    assert optimiser.share < 0.05 < 0.3 < optimiser.alone
    assert (optimiser.goes_with, optimiser.alike) == ("config.lr", False)
    assert "lr matters most" in found.sentence


def test_settings_that_nothing_tells_apart_are_named_together() -> None:
    # Two settings agree in 23 of 24 configurations; where they do not, the score lies in between.
    settings = {f"c{i}": {"config.a": i % 2, "config.b": 1 - i % 2 if i == 5 else i % 2} for i in range(24)}
    found = tried(settings, lambda each: 5.0 * (int(str(each["config.a"])) + int(str(each["config.b"]))), noise=6.0)
    second = found.settings[1]
    assert (second.goes_with, second.alike) == (found.settings[0].name, True)
    assert "or" in found.sentence
    assert "cannot tell which" in found.sentence


@pytest.mark.parametrize("case", range(40))
def test_shares_and_seeds_may_be_added(case: int) -> None:
    rng = np.random.default_rng(case)
    many = int(rng.integers(6, 30))
    base = rng.integers(0, 4, many)
    # Each setting is that of the first with some of its values drawn anew: from the same to unrelated.
    settings: dict[str, dict[str, object]] = {f"c{i}": {} for i in range(many)}
    for number in range(int(rng.integers(2, 6))):
        drawn = np.where(rng.random(many) < rng.random(), rng.integers(0, 4, many), base)
        for i in range(many):
            settings[f"c{i}"][f"config.s{number}"] = f"v{drawn[i]}"
    entries = [
        Entry(f"c{i}", f"c{i}-{s}", s, "", float(base[i] + rng.normal() * (0.1 + case % 4)))
        for i in range(many)
        for s in range(1 + case % 3)
    ]
    found = sweep(entries, settings, metric="test/return")
    known = [one.share for one in found.settings if math.isfinite(one.share)]
    assert all(0 <= share <= 1 for share in known)
    assert sum(known) + (0 if math.isnan(found.seeds) else found.seeds) <= 1 + 1e-9
    for one in found.settings:
        assert math.isfinite(one.share) or one.why
    # A share above that of the first is said beside it, and then the first is not called the one that matters most.
    percent = [round(100 * share) for share in known]
    is_more = bool(percent) and max(percent) > percent[0] and not any(one.alike for one in found.settings)
    assert (f"adds {max(percent, default=0)} % to that" in found.sentence) == is_more
    assert "matters most" not in found.sentence or max(percent) == percent[0]


def test_one_setting_is_rated_by_its_seeds_where_each_configuration_has_a_value_of_its_own() -> None:
    settings = {str(lr): {"config.lr": lr} for lr in (1, 2)}
    found = tried(settings, lambda each: 10.0 * float(str(each["config.lr"])), seeds=5, noise=1.0)
    assert found.settings[0].share > 0.8
    assert "lr matters most" in found.sentence
    assert "It is ahead of all others." in found.sentence


def test_the_first_setting_has_the_share_that_it_has_alone() -> None:
    found = tried(GRID, lambda each: 1e3 * float(str(each["config.lr"])), noise=3.0)
    first = found.settings[0]
    assert first.share == pytest.approx(min(first.alone, 1 - found.seeds))
    assert first.low <= first.share <= first.high


def test_what_to_run_next_counts_those_that_it_means() -> None:
    entries = [Entry(name, f"{name}-{s}", s, "", 1.0 + s) for name in GRID for s in range(3)]
    few = [one for one in entries if one.group not in [*GRID][4:6] or one.seed == 0]
    assert "2 with a single seed, of the 12 that may be the best" in sweep(few, GRID, metric="r").todo
    assert "More seeds of the first 12, which may be the best." in sweep(entries, GRID, metric="r").todo


def test_the_sentence_says_all_and_names_what_has_no_settings() -> None:
    alike = [Entry(name, f"{name}-{s}", s, "", float(s)) for name in "abc" for s in range(2)]
    settings = {"a": {"config.lr": 1}, "b": {"config.lr": 2}, "c": {"config.lr": 3}}
    assert "All 2 others may be as good." in sweep(alike, settings, metric="test/return").sentence
    assert "The other one may be as good." in sweep(alike[:4], settings, metric="test/return").sentence
    one = sweep(alike[:2], {"a": {}}, metric="test/return")
    assert "The best so far is a: mean 0.5 of 2 seeds." in one.sentence
