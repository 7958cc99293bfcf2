"""`jt.materialize`, `jit(threads=)`, `jt.schedule`: results stay, `explain` shows them."""

import warnings

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.program.thread_limit import limited_text
from jitney.runtime.threads.pool import pool_stats

TABLE = np.linspace(-1, 1, 300 * 200).reshape(300, 200)


def kernels(function, *args, **options):
    return jt.jit(function, **options).lower(*args).kernels


def kept(x):
    y = jt.materialize(np.exp(x))
    return y * 2 + 1


def test_materialize_parts_loops_and_says_so():
    assert len(kernels(kept, TABLE)) == 2
    assert "jt.materialize stands between them" in jt.jit(kept).explain(TABLE)
    np.testing.assert_allclose(jt.jit(kept)(TABLE), np.exp(TABLE) * 2 + 1)
    assert np.array_equal(kept(TABLE), np.exp(TABLE) * 2 + 1)


def test_materialize_through_transformations_and_trees():
    grad = jt.grad(lambda x: (jt.materialize({"a": np.sin(x)})["a"] ** 2).sum())
    np.testing.assert_allclose(jt.jit(grad)(TABLE), 2 * np.sin(TABLE) * np.cos(TABLE))
    np.testing.assert_allclose(jt.jit(jt.vmap(kept))(TABLE), np.exp(TABLE) * 2 + 1)

    def loop(x, n):
        for _ in range(n):
            x = jt.materialize(np.tanh(x)) + 1
        return x

    want = np.tanh(np.tanh(TABLE) + 1) + 1
    np.testing.assert_allclose(jt.jit(loop)(TABLE, 2), want)
    np.testing.assert_allclose(jt.jit(loop)(TABLE[0, :2], 2), want[0, :2])
    np.testing.assert_allclose(jt.jit(loop)(0.5, 2), np.tanh(np.tanh(0.5) + 1) + 1)


@pytest.mark.parametrize("dtype", [np.complex64, np.float16, np.int8, bool])
def test_materialize_of_any_dtype(dtype):
    x = np.arange(6).astype(dtype)
    assert np.array_equal(jt.jit(lambda x: jt.materialize(x[::-1]))(x), x[::-1])


def test_materialized_values_may_be_updated():
    def f(x):
        y = jt.materialize(x + 1)
        z = y.copy()
        y[2] = 7
        return y, z

    got, want = jt.jit(f)(np.zeros(5)), f(np.zeros(5))
    assert all(map(np.array_equal, got, want))


def test_row_blocks_do_not_go_across():
    def f(x, w):
        return np.tanh(jt.materialize(x @ w))

    x = np.ones((512, 256))
    text = jt.jit(f).explain(x, np.eye(256))
    assert "blocks of rows" not in text
    assert "blocks of rows" in jt.jit(lambda x, w: np.tanh(x @ w)).explain(x, np.eye(256))


def work(x):
    return np.exp(x).sum(), np.sort(x)[:3], np.cumsum(x)[-1]


@pytest.mark.parametrize("threads", [1, 2, 3, 64])
def test_results_do_not_depend_on_threads(threads):
    x = np.random.default_rng(0).random(300_000)
    limited = jt.jit(work, threads=threads)
    assert all(map(np.array_equal, limited(x), jt.jit(work)(x)))
    assert f"threads={threads}" in limited.explain(x)


def test_one_thread_shares_nothing():
    x = np.random.default_rng(0).random(300_000)
    alone = jt.jit(work, threads=1)
    alone(x)
    before = pool_stats().forks
    alone(x)
    assert pool_stats().forks == before


def test_parts_are_whole_grains():
    text = limited_text("call void @jitney_parallel_for(ptr @f, ptr %c, i64 10, i64 2)", 3)
    assert "@jitney_parallel_for_of_few(ptr @f" in text and "udiv i64 %all, 3" in text
    assert limited_text("ret void", 3) == "ret void"


@pytest.mark.parametrize("threads", [0, -1, 2000, 1.5, True, "2"])
def test_threads_that_are_none(threads):
    with pytest.raises(ValueError, match="choose a number from 1 to 1024"):
        jt.jit(work, threads=threads)


def test_threads_are_for_compiled_code_on_the_cpu():
    with pytest.raises(ValueError, match="on the CPU"):
        jt.jit(work, threads=2, backend="interpreter")


CHOICES = [{"lanes": 1}, {"lanes": 4, "unroll": 2}, {"unroll": 1}, {"lanes": 64}]


@pytest.mark.parametrize("knobs", CHOICES)
def test_lanes_are_those_that_are_asked_for(knobs):
    def f(x):
        with jt.schedule(**knobs):
            return np.exp(x) + x.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(jt.jit(f)(TABLE), f(TABLE))
    told = jt.jit(f).explain(TABLE)
    assert "as jt.schedule(" in told
    if "lanes" in knobs:
        assert f", {knobs['lanes'] * knobs.get('unroll', 1)} lane" in told or "unroll" not in knobs


def test_equal_kernels_with_other_choices_are_other_code():
    def f(x):
        with jt.schedule(lanes=4, unroll=1):
            a = jt.materialize(np.exp(x))
        return a, jt.materialize(np.exp(x * 1.0))[::1], np.exp(a)

    notes = [k.note for k in kernels(f, TABLE)]
    assert len({note.split("lane")[0] for note in notes}) > 1


def test_tiles_are_those_that_are_asked_for():
    def f(x, y):
        with jt.schedule(tile=32):
            return x.T * 2 + y

    x = np.arange(512 * 512.0).reshape(512, 512)
    assert "tiles of 32, as jt.schedule(tile=32) asks" in jt.jit(f).explain(x, x)
    assert np.array_equal(jt.jit(f)(x, x), f(x, x))

    def product(x, y):
        with jt.schedule(tile=64):
            return np.tanh(x @ y)

    x = np.random.default_rng(0).random((300, 200))
    shown = jt.jit(product).explain(x, x.T)
    assert "64 rows at a time, as jt.schedule(tile=64) asks" in shown and "for each of 5" in shown
    assert np.allclose(jt.jit(product)(x, x.T), product(x, x.T), rtol=1e-12)


def test_scopes_nest_and_are_part_of_the_trace():
    def f(x):
        with jt.schedule(lanes=8):
            with jt.schedule(unroll=2):
                y = np.exp(x)
            return np.sin(y)

    graph = jt.jit(f).trace(TABLE)
    assert [str(op.loc.knobs) for op in graph.ops] == ["lanes=8, unroll=2", "lanes=8"]
    assert str(jt.parse_graph(str(graph))) == str(graph)
    assert [op.loc.knobs for op in jt.parse_graph(str(graph)).ops] == [
        op.loc.knobs for op in graph.ops
    ]


def test_a_choice_from_outside_is_a_guard():
    choice = {"lanes": 4}

    def f(x):
        with jt.schedule(lanes=choice["lanes"], unroll=1):
            return np.exp(x)

    compiled = jt.jit(f)
    compiled(TABLE)
    choice["lanes"] = 16
    compiled(TABLE)
    assert compiled.cache_info().misses == 2


WRONG = {
    "no power of two": ({"lanes": 3}, "choose a power of two from 1 to 64"),
    "too many": ({"lanes": 64, "unroll": 2}, "at most 64 together"),
    "a small tile": ({"tile": 4}, "choose a power of two from 8 to 1024"),
    "no number": ({"unroll": "2"}, "choose a power of two"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_choices_say_which_there_are(case):
    knobs, words = WRONG[case]
    with pytest.raises(ValueError, match=words):
        jt.schedule(**knobs)


def scan(x):
    with jt.schedule(lanes=8):
        return np.cumsum(x, axis=1)


def no_tiles(x):
    with jt.schedule(tile=64):
        return np.exp(x)


def no_loops(x):
    s = 0.0
    with jt.schedule(unroll=2):
        for i in range(x.shape[0]):
            s = np.sin(s) + x[i, 0]
    return s


def few_rows(x):
    with jt.schedule(tile=1024):
        return x @ x.T


def wide_product(x):
    with jt.schedule(lanes=8):
        return x @ x.T


IMPOSSIBLE = {
    scan: "lanes=8.*each element of a row needs the one before",
    no_tiles: "tile=64.*neither turns arrays over nor sums",
    no_loops: "unroll=2.*no loops that have it",
    few_rows: "tile=1024.*the product has 300 rows: choose no more",
    wide_product: "lanes=8.*those that fill the registers: choose tile=",
}


@pytest.mark.parametrize("function", IMPOSSIBLE)
def test_what_no_kernel_can_do_is_an_error_that_says_why(function):
    with pytest.raises(ValueError, match=IMPOSSIBLE[function]):
        jt.jit(function)(TABLE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(TABLE)  # Python does not ask


def test_on_a_gpu_schedules_are_refused():
    with pytest.raises(ValueError, match="not on a GPU"):
        jt.jit(no_tiles).ptx(TABLE)
