"""JAX itself, on the CPU: rows from inside jit, scan, while_loop and cond."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GROUPS = ("jax",)

jax = pytest.importorskip("jax")
jnp = jax.numpy

import rollbook  # noqa: E402
from rollbook.adapters.jax import flush, log  # noqa: E402
from rollbook.errors import BadInput  # noqa: E402

from hostile import HOSTS  # noqa: E402  # isort: skip


@pytest.fixture
def run(own_place: Path) -> Iterator[Any]:
    run = rollbook.init("jax", "test", dir=own_place / "runs", sinks=(), keeper="inline")
    yield run
    run.finish()


def column(run: Any, key: str, x: str | None = None) -> list[Any]:
    """In the order in which the rows were written."""
    flush()
    found = run.book.metrics([key]).to_pylist()
    return [(row[x], row[key]) if x else row[key] for row in found if row[key] is not None]


@pytest.mark.core
def test_a_thousand_steps_of_a_scan_arrive_in_order(run: Any) -> None:
    traced = 0

    @jax.jit
    def train(weight: Any) -> Any:
        def update(weight: Any, step: Any) -> Any:
            nonlocal traced
            traced += 1
            weight = weight * 0.999
            log(run, {"update": {"loss": weight, "big": step > 500}}, env_step=step * 64, gradient_step=step)
            return weight, weight

        return jax.lax.scan(update, weight, jnp.arange(1000))

    _, expected = train(1.0)
    assert column(run, "update/loss", x="env_step") == list(
        zip(range(0, 64_000, 64), [float(value) for value in expected], strict=True)
    )
    assert column(run, "update/big") == [step > 500 for step in range(1000)]
    assert traced == 1
    train(1.0)  # other numbers, the same program
    train(2.0)
    assert len(column(run, "update/loss")) == 3000
    assert traced == 1
    assert train._cache_size() == 1
    assert run.bill()["drops"] == {}


def test_the_run_waits_in_finish_for_rows_that_are_under_way(own_place: Path) -> None:
    with rollbook.init("jax", "late", dir=own_place / "runs", sinks=(), keeper="inline") as run:
        scan = jax.jit(lambda x: jax.lax.scan(lambda c, i: (c, log(run, {"i": i})), x, jnp.arange(2000))[0])
        scan(1.0)  # nothing waits for the result
    assert len(run.book.metrics(["i"])) == 2000
    assert run.book.status == "finished"


def test_loops_and_branches_log_what_they_do(run: Any) -> None:
    @jax.jit
    def work(n: Any) -> Any:
        def body(i: Any) -> Any:
            jax.lax.cond(i % 2 == 0, lambda: log(run, {"even": i}), lambda: log(run, {"odd": i}))
            return i + 1

        return jax.lax.while_loop(lambda i: i < n, body, 0)

    work(5)
    assert column(run, "even") == [0, 2, 4]
    assert column(run, "odd") == [1, 3]


def test_a_gradient_is_the_same_with_logging_in_the_loss(run: Any) -> None:
    def loss(x: Any, report: bool) -> Any:
        value = jnp.sum(x**3)
        if report:
            log(run, {"loss": value, "x": x})
        return value

    x = jnp.array([1.0, 2.0])
    value, gradient = jax.jit(jax.value_and_grad(lambda x: loss(x, True)))(x)
    assert gradient.tolist() == jax.grad(lambda x: loss(x, False))(x).tolist()
    assert column(run, "loss") == [float(value)]
    assert [row["key"] for row in run.book.histograms().to_pylist()] == ["x"]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("jit", [True, False])
def test_rows_of_a_loop_that_is_differentiated_are_not_lost(run: Any, jit: bool, ordered: bool) -> None:
    def loss(x: Any) -> Any:
        def body(x: Any, i: Any) -> Any:
            x = x * 0.5
            log(run, {"x": x, "i": i}, ordered=ordered, env_step=i)
            return x, None

        return jax.lax.scan(body, x, jnp.arange(4))[0]

    gradient = jax.grad(loss)
    assert float((jax.jit(gradient) if jit else gradient)(8.0)) == 0.0625
    assert sorted(column(run, "x", x="env_step")) == [(0, 4.0), (1, 2.0), (2, 1.0), (3, 0.5)]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("shape", ["vmap", "vmap of jit", "jit of vmap", "vmap of scan"])
def test_under_vmap_the_error_says_what_to_do_instead(run: Any, shape: str, ordered: bool) -> None:
    def single(x: Any) -> Any:
        log(run, {"x": x}, ordered=ordered)
        return x

    def scanned(x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (single(c), None), x, None, length=3)[0]

    made = {
        "vmap": jax.vmap(single),
        "vmap of jit": jax.vmap(jax.jit(single)),
        "jit of vmap": jax.jit(jax.vmap(single)),
        "vmap of scan": jax.vmap(scanned),
    }[shape]
    with pytest.raises(BadInput, match=r"(?s)jax\.vmap, found 3 copies.*rollbook\.siblings"):
        made(jnp.arange(3.0))
    assert run.book.keys() == []


@pytest.mark.parametrize(
    ("shape", "ordered"),
    [("vmap", True), ("vmap of jit", True), ("jit of vmap of scan", True), ("jit of vmap of scan", False)],
)
def test_inside_a_vmap_over_seeds_each_sibling_gets_its_own_rows(own_place: Path, shape: str, ordered: bool) -> None:
    where = {"project": "jax", "dir": own_place / "runs", "sinks": (), "keeper": "inline", "rules": ()}
    with rollbook.siblings(3, seeds=range(3), **where) as seeds:
        traced = []

        def single(x: Any, step: Any = 0) -> Any:
            traced.append(1)
            log(
                seeds,
                {"x": x, "inner": {"vector": jnp.stack([x, x + 1])}, "word": "go"},
                ordered=ordered,
                env_step=step,
            )
            return x + 10

        def scanned(x: Any) -> Any:
            return jax.lax.scan(lambda c, step: (single(c, step), None), x, jnp.arange(3))[0]

        made = {
            "vmap": jax.vmap(single),
            "vmap of jit": jax.vmap(jax.jit(single)),
            "jit of vmap of scan": jax.jit(jax.vmap(scanned)),
        }[shape]
        made(jnp.arange(3.0))
        flush()
        once = len(traced)
        made(jnp.arange(3.0) + 100)
        if shape.startswith("jit"):
            assert len(traced) == once, "a second call compiles nothing again"
    for seed, run in enumerate(seeds):
        steps = 3 if "scan" in shape else 1
        expected = [start + seed + 10.0 * step for start in (0.0, 100.0) for step in range(steps)]
        table = run.book.metrics(["x"])
        found = list(zip(table["x"].to_pylist(), table["env_step"].to_pylist(), strict=True))
        assert sorted(found) == sorted((x, n % steps) for n, x in enumerate(expected))
        if ordered:
            assert [x for x, _ in found] == expected
        assert run.book.table("histograms").num_rows == len(expected)


def test_a_vmap_over_something_else_than_the_siblings_is_refused(own_place: Path) -> None:
    with rollbook.siblings(
        2, seeds=range(2), project="jax", dir=own_place / "runs", sinks=(), keeper="inline"
    ) as seeds:

        def single(x: Any) -> Any:
            log(seeds, {"x": x})
            return x

        with pytest.raises(BadInput, match=r"2 siblings inside a jax\.vmap over 3"):
            jax.vmap(single)(jnp.arange(3.0))


def test_vmapped_seeds_are_siblings(own_place: Path) -> None:
    @jax.vmap
    def train(seed: Any) -> Any:
        noise = jax.random.normal(jax.random.key(seed), (4,))
        return {"return": noise}

    with rollbook.siblings(3, seeds=range(3), project="jax", dir=own_place / "runs", sinks=(), keeper="inline") as runs:
        history = train(jnp.arange(3))
        runs.log_many(history, env_step=[0, 10, 20, 30])
    books = rollbook.open(own_place / "runs")
    assert len(books) == 3
    assert sorted(len(book.metrics(["return"])) for book in books) == [4, 4, 4]


def test_without_order_every_row_arrives_all_the_same(run: Any) -> None:
    @jax.jit
    def work(n: Any) -> Any:
        return jax.lax.fori_loop(0, n, lambda i, _: log(run, {"i": i}, ordered=False), None)

    work(50)
    assert sorted(column(run, "i")) == list(range(50))


def test_eager_calls_are_ordinary_ones(run: Any) -> None:
    for step in range(3):
        log(run, {"a": jnp.float32(step) / 4, "b": 0.1}, env_step=jnp.int32(step))
    assert column(run, "b", x="env_step") == [(0, 0.1), (1, 0.1), (2, 0.1)]
    assert column(run, "a") == [0.0, 0.25, 0.5]


def test_numbers_keep_their_type_and_their_digits(run: Any) -> None:
    @jax.jit
    def work(x: Any) -> None:
        log(run, {"half": x.astype(jnp.bfloat16), "int": x.astype(jnp.int32), "constant": 0.1, "text": "so"})

    work(jnp.float32(1.5))
    assert (column(run, "half"), column(run, "int"), column(run, "constant")) == ([1.5], [1], [0.1])
    assert isinstance(column(run, "int")[0], int)
    assert [row["text"] for row in run.book.text().to_pylist()] == ["so"]


def test_what_is_no_number_is_left_out_and_named(run: Any) -> None:
    with pytest.warns(UserWarning, match="'key'.*left out"):
        jax.jit(lambda x: log(run, {"x": x, "key": jax.random.key(0), "z": 1j * x}))(2.0)
    assert column(run, "x") == [2.0]
    assert run.bill()["drops"] == {"unloggable": 2}


def test_large_arrays_do_not_block_the_computation(run: Any) -> None:
    work = jax.jit(lambda x: jax.lax.scan(lambda c, _: (c + 1, log(run, {"weights": c})), x, None, length=5)[0])
    assert float(work(jnp.zeros(300_000))[0]) == 5.0
    flush()
    assert run.book.histograms().num_rows == 5


def test_the_module_stands_for_whichever_run_is_current(own_place: Path) -> None:
    step = jax.jit(lambda x: log(rollbook, {"x": x}))
    found = []
    for number in (1.0, 2.0):
        with rollbook.init("jax", f"r{number}", dir=own_place / "runs", sinks=(), keeper="inline") as run:
            step(number)
            flush()
        found.append(run.book.metrics(["x"])["x"].to_pylist())
    assert found == [[1.0], [2.0]]


def test_what_is_no_run_is_refused_at_once() -> None:
    with pytest.raises(BadInput, match="found a dict, not a run"):
        log({}, {"x": 1.0})


@pytest.mark.filterwarnings("ignore::rollbook.errors.RollbookWarning")
@pytest.mark.parametrize("way", ["at once", "jit", "grad"])
def test_a_computation_ends_as_without_us_whatever_it_logs(run: Any, way: str) -> None:
    def compute(x: Any) -> Any:
        for host in HOSTS.values():
            log(run, host())
            log(run, {"odd": host(), "x": x})
            log(run, {"late": x}, gradient_step=host())
        return 2.0 * x

    wrapped = {"at once": compute, "jit": jax.jit(compute), "grad": jax.grad(compute)}[way]
    assert float(wrapped(1.5)) == (2.0 if way == "grad" else 3.0)
    assert column(run, "x") == [1.5] * len(HOSTS)
