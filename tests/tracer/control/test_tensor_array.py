"""TensorArray: written once, read after, as a loop variable, under jit and grad, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt
from jitney import errors

X = np.linspace(-1.0, 2.0, 5)


# What it does.


def test_write_read_stack(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        ta = jt.TensorArray(np.float64, 3).write(2, x).write(0, x * 2).write(1, 1 - x)
        return ta.stack(), ta.read(1), ta.gather([2, 0]), ta.concat()

    stacked, one, some, joined = wrap(f)(X)
    want = np.stack([X * 2, 1 - X, X])
    np.testing.assert_array_equal(stacked, want)
    np.testing.assert_array_equal(one, want[1])
    np.testing.assert_array_equal(some, want[[2, 0]])
    np.testing.assert_array_equal(joined, want.reshape(-1))


def test_a_write_leaves_the_old_one_as_it_was(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        empty = jt.TensorArray(np.float64, 2, ())
        a = empty.write(0, x[0])
        b = a.write(1, x[1])
        c = a.write(1, x[2])  # a branch of history: its own buffer
        d = empty.write(0, x[3]).write(1, x[4])
        return a.stack(fill_value=-1), b.stack(), c.stack(), d.stack(), empty.stack(fill_value=9)

    a, b, c, d, empty = wrap(f)(X)
    np.testing.assert_array_equal(a, [X[0], -1])
    np.testing.assert_array_equal(b, [X[0], X[1]])
    np.testing.assert_array_equal(c, [X[0], X[2]])
    np.testing.assert_array_equal(d, [X[3], X[4]])
    np.testing.assert_array_equal(empty, [9, 9])


def test_results_share_no_memory_with_it() -> None:
    value = X.copy()
    ta = jt.TensorArray(np.float64, 2).write(0, value)
    value[:] = 7
    first = ta.read(0)
    first[:] = 8
    rows = ta.stack(fill_value=0)
    rows[:] = 9
    np.testing.assert_array_equal(ta.read(0), X)


def test_unstack_scatter_split(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        a = jt.TensorArray(np.float64, 5).unstack(x)
        b = jt.TensorArray(np.float64, 3).scatter([2, 0], x.reshape(5, 1)[:2])
        c = jt.TensorArray(np.float64, 2).split(x[:4], [2, 2])
        return a.stack(), a.read(3), b.write(1, x[4:]).stack(), c.stack(), c.concat()

    a, three, b, c, joined = wrap(f)(X)
    np.testing.assert_array_equal(a, X)
    assert three == X[3]
    np.testing.assert_array_equal(b, X[[1, 4, 0], None])
    np.testing.assert_array_equal(c, X[:4].reshape(2, 2))
    np.testing.assert_array_equal(joined, X[:4])


def test_traced_indices(wrap: Callable[..., Any]) -> None:
    def f(x: Any, i: Any, many: Any) -> Any:
        ta = jt.TensorArray(np.float64, 5, ()).scatter(many, x[:3]).write(i, x[4])
        return ta.read(i), ta.gather(many), ta.stack(fill_value=0.5), ta.read(many[0])

    one, some, stacked, first = wrap(f)(X, 1, np.array([4, 0, 2]))
    assert one == X[4] and first == X[0]
    np.testing.assert_array_equal(some, X[:3])
    np.testing.assert_array_equal(stacked, [X[1], X[4], X[2], 0.5, X[0]])


def test_as_a_loop_variable(wrap: Callable[..., Any]) -> None:
    def by_for(x: Any, n: Any) -> Any:
        ta = jt.TensorArray(np.float64, 5)  # the body tells the shape of the elements
        return jt.fori_loop(0, n, lambda i, ta: ta.write(i, x * i), ta).stack()

    def by_while(x: Any, n: Any) -> Any:
        ta = jt.TensorArray(np.float64, 5, x.shape)
        loop = jt.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1].write(c[0], x * c[0])), (0, ta)
        )
        return loop[1].stack()

    def by_scan(x: Any, n: Any) -> Any:
        ta = jt.TensorArray(np.float64, 5)
        (ta, _), seen = jt.scan(
            lambda c, i: ((c[0].write(i, x * i), c[1] + n), i), (ta, 0), np.arange(5)
        )
        return ta.stack() + 0 * seen[0]

    want = X * np.arange(5)[:, None]
    for f in (by_for, by_while, by_scan):
        np.testing.assert_allclose(wrap(f)(X, 5), want, rtol=1e-15)
    np.testing.assert_allclose(
        wrap(lambda x: by_for(x, 5))(X), want, rtol=1e-15, err_msg="static bounds"
    )


def test_reads_what_the_loop_wrote(wrap: Callable[..., Any]) -> None:
    def fibonacci(n: Any) -> Any:
        ta = jt.TensorArray(np.int64, 50).write(0, 0).write(1, 1)
        body = lambda i, ta: ta.write(i, ta.read(i - 1) + ta.read(i - 2))  # noqa: E731
        return jt.fori_loop(2, n, body, ta).stack(fill_value=-1)

    out = wrap(fibonacci)(50)
    assert out[:8].tolist() == [0, 1, 1, 2, 3, 5, 8, 13] and out[49] == 7778742049
    assert wrap(fibonacci)(10)[10:].tolist() == [-1] * 40


def test_through_cond_jit_and_trees(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        ta = jt.TensorArray(np.float64, 4, x.shape).write(0, x)

        def step(i: Any, ta: Any) -> Any:
            return jt.cond(i % 2 == 0, lambda t: t.write(i, x + i), lambda t: t.write(i, x - i), ta)

        return jt.fori_loop(1, 4, step, ta)

    ta = wrap(f)(X)
    assert isinstance(ta, jt.TensorArray) and ta.size() == 4 and ta.element_shape == (5,)
    np.testing.assert_array_equal(ta.stack(), np.stack([X, X - 1, X + 2, X - 3]))
    again = wrap(lambda ta: (ta.read(2), ta.stack()))(ta)
    np.testing.assert_array_equal(again[0], X + 2)
    with pytest.raises(AssertionError, match="element 1 was written before"):
        ta.write(1, X)
    assert len(jt.tree.leaves(ta)) == 2


def test_dtypes() -> None:
    ta = jt.TensorArray(np.float32, 2, ()).write(0, 1).write(1, 2.5)  # Python numbers fit
    assert ta.stack().dtype == np.float32 and isinstance(ta.read(0), np.float32)
    flags = jt.TensorArray(bool, 2).unstack(np.array([True, False]))
    assert flags.stack().tolist() == [True, False]
    with pytest.raises(TypeError, match=r"(?s)elements.*float32.*float64.*astype"):
        ta.write(0, np.float64(1))
    with pytest.raises(TypeError, match=r"(?s)elements.*int64.*float64"):
        jt.TensorArray(np.int64, 1).write(0, 0.5)


def test_dynamic_size() -> None:
    ta = jt.TensorArray(np.float64, dynamic_size=True)
    for i in range(5):
        ta = ta.write(i, X[i])
    np.testing.assert_array_equal(ta.stack(), X)
    ta = ta.write(7, 1.0)
    assert ta.size() == 8
    with pytest.raises(AssertionError, match="element 5"):
        ta.stack()
    assert jt.TensorArray(float, 0, dynamic_size=True).unstack(X).size() == 5
    gradient = jt.grad(
        lambda x: jt.TensorArray(float, dynamic_size=True).write(0, x).write(1, x * x).stack().sum()
    )
    assert gradient(3.0) == 7.0


def test_clear_after_read() -> None:
    ta = jt.TensorArray(np.float64, 2, (), clear_after_read=True).write(0, 3.0).write(1, 4.0)
    assert ta.read(0) == 3.0
    with pytest.raises(AssertionError, match="element 0 was read before"):
        ta.read(0)
    with pytest.raises(AssertionError, match="element 0"):
        ta.stack()
    assert ta.read(1) == 4.0


# Derivatives.


def test_gradient(wrap: Callable[..., Any]) -> None:
    def squares(x: Any, n: Any) -> Any:
        ta = jt.TensorArray(np.float64, 6)
        ta = jt.fori_loop(0, n, lambda i, ta: ta.write(i, np.sin(x) * i), ta)
        weights = np.arange(6.0)[:, None]
        return np.sum(ta.stack(fill_value=0) * weights) + np.sum(ta.gather([1, 2])) ** 2

    def plain(x: Any) -> Any:
        s = np.sin(x)
        return sum(np.sum(s * i * i) for i in range(4)) + np.sum(s * 3) ** 2

    want = jt.grad(plain)(X)
    np.testing.assert_allclose(wrap(jt.grad(squares))(X, 4), want, rtol=1e-12)
    np.testing.assert_allclose(
        wrap(jt.grad(lambda x: squares(x, 4)))(X), want, rtol=1e-12, err_msg="static bounds"
    )
    tangent = wrap(lambda x: jt.jvp(lambda x: squares(x, 4), (x,), (x,))[1])(X)
    np.testing.assert_allclose(tangent, want @ X, rtol=1e-12)


def test_gradient_through_reads_and_scatter(wrap: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        ta = jt.TensorArray(np.float64, 6, ()).scatter(np.array([1, 3]), x[:2]).write(0, x[2])
        ta = ta.write(2, ta.read(0) * ta.read(1))

        def body(i: Any, ta: Any) -> Any:
            return ta.write(i, ta.read(i - 1) * ta.read(i - 2))

        ta = jt.fori_loop(4, 6, body, ta)
        return ta.read(5)

    a, b, c = X[:3]  # element 5 = (b * (c * a)) * b
    want = [b * b * c, 2 * a * b * c, a * b * b, 0, 0]
    np.testing.assert_allclose(wrap(jt.grad(f))(X), want, rtol=1e-12)


def test_under_vmap_each_example_has_its_own_length(wrap: Callable[..., Any]) -> None:
    def f(x: Any, n: Any) -> Any:
        ta = jt.TensorArray(np.float64, 4, ())
        step = lambda s: (s[0] + 1, s[1].write(s[0], x * s[0]))  # noqa: E731
        return jt.while_loop(lambda s: s[0] < n, step, (0, ta))[1].stack(fill_value=-1)

    got = wrap(jt.vmap(f))(X[:3], np.array([2, 4, 1]))
    x, y = X[:2]
    want = [[0, x, -1, -1], [0, y, 2 * y, 3 * y], [0, -1, -1, -1]]
    np.testing.assert_allclose(got, want, rtol=1e-15)
    gradient = wrap(jt.vmap(jt.grad(lambda x, n: np.sum(f(x, n)))))(X[:3], np.array([2, 4, 1]))
    np.testing.assert_allclose(gradient, [1, 6, 0])


# Mistakes.


def test_second_write_is_an_error(jit: Callable[..., Any]) -> None:
    ta = jt.TensorArray(np.float64, 3, ()).write(1, 1.0)
    with pytest.raises(errors.TensorArrayError, match="element 1 was written before") as info:
        ta.write(1, 2.0)
    assert "test_tensor_array.py" in str(info.value).splitlines()[-1]
    with pytest.raises(errors.TensorArrayError, match="element 1"):  # while tracing
        jit(lambda x: jt.TensorArray(float, 2).write(1, x).write(1, x).stack())(1.0)
    with pytest.raises(AssertionError, match="element 2 was written before"):  # at run time
        jit(lambda x, i: jt.TensorArray(float, 3).write(2, x).write(i, x).stack(0))(1.0, 2)
    loop = jit(
        lambda x, n: jt.fori_loop(0, n, lambda i, t: t.write(i // 2, x), jt.TensorArray(float, 9))
    )
    with pytest.raises(AssertionError, match="element 0 was written before"):
        loop(1.0, 5)
    assert loop(1.0, 1).read(0) == 1.0
    for indices in ([0, 0], np.array([2, 1, 2])):
        with pytest.raises(errors.TensorArrayError, match="written before"):
            ta.scatter(indices, np.ones(len(indices)))
        with pytest.raises(AssertionError, match=f"element {indices[0]} was written before"):
            jit(lambda i: jt.TensorArray(float, 3).scatter(i, np.ones(i.shape)))(np.array(indices))


def test_reading_an_unwritten_element_is_an_error(jit: Callable[..., Any]) -> None:
    ta = jt.TensorArray(np.float64, 3, ()).write(1, 1.0)
    for read in (lambda t: t.read(2), lambda t: t.stack(), lambda t: t.gather([1, 0])):
        with pytest.raises(errors.TensorArrayError, match="has not been written"):
            read(ta)
        with pytest.raises(AssertionError, match="has not been written"):
            jit(read)(ta)
    with pytest.raises(AssertionError, match="element 2 cannot be read"):
        jit(lambda t, i: t.read(i))(ta, 2)
    with pytest.raises(AssertionError, match="element 0 cannot be read"):
        jit(lambda t, i: t.gather(i))(ta, np.array([1, 0]))
    with pytest.raises(errors.TensorArrayError, match="nothing has been written"):
        jt.TensorArray(float, 3).stack()
    assert jt.TensorArray(float, 0).stack().shape == (0,)


def test_indices_out_of_range(jit: Callable[..., Any]) -> None:
    ta = jt.TensorArray(np.float64, 3, ()).write(1, 1.0)
    for i in (3, -1):
        with pytest.raises(IndexError, match=f"index {i} is out of range for size 3"):
            ta.write(i, 1.0)
        with pytest.raises(AssertionError, match=f"index {i} is out of range for size 3"):
            jit(lambda t, i: t.read(i))(ta, i)
        with pytest.raises(AssertionError, match=f"index {i} is out of range for size 3"):
            jit(lambda t, i: t.gather(i))(ta, np.array([1, i]))
    with pytest.raises(IndexError, match="must be an integer"):
        ta.read(1.0)


def test_element_shapes_that_differ(jit: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match=r"shape \(5,\), the value has shape \(4,\)") as info:
        jt.TensorArray(float, 2).write(0, X).write(1, X[1:])
    assert "test_tensor_array.py" in str(info.value)
    with pytest.raises(ValueError, match=r"shape \(5,\), the value has shape \(2, 5\)"):
        jit(lambda x: jt.TensorArray(float, 2, 5).write(0, np.stack([x, x])))(X)
    with pytest.raises(ValueError, match="equal lengths"):
        jt.TensorArray(float, 2).split(X, [2, 3])
    with pytest.raises(ValueError, match="one slice for each of the 4 elements"):
        jt.TensorArray(float, 4).unstack(X)
    with pytest.raises(ValueError, match="concat.*0-d"):
        jt.TensorArray(float, 5).unstack(X).concat()


@pytest.mark.usefixtures("traced_numbers")
def test_sizes_that_are_not_known_under_jit(jit: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"(?s)dynamic_size=True.*size=n"):
        jit(lambda x: jt.TensorArray(float, 0, dynamic_size=True).write(0, x))(1.0)
    grown = jt.TensorArray(float, 1, dynamic_size=True).write(0, 1.0)
    assert jit(lambda t: t.read(0))(grown) == 1.0
    with pytest.raises(TypeError, match="dynamic_size=True"):
        jit(lambda t: t.write(1, 2.0))(grown)
    with pytest.raises(TypeError, match="size of a TensorArray"):
        jit(lambda n: jt.TensorArray(float, n).write(0, 1.0))(3)
    with pytest.raises(ValueError, match="non-negative"):
        jt.TensorArray(float, -1)


@pytest.mark.usefixtures("traced_numbers")
def test_a_branch_that_does_not_write_needs_the_element_shape(jit: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        ta = jt.TensorArray(float, 2)
        return jt.cond(x > 0, lambda: ta.write(0, x), lambda: ta).stack(0)

    with pytest.raises(TypeError, match="element_shape"):
        jit(f)(1.0)


# Random histories: a model in Python against every backend.

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(-1, 5), st.floats(-9, 9)),
        st.tuples(st.just("read"), st.integers(-1, 5)),
        st.tuples(st.just("scatter"), st.lists(st.integers(0, 4), min_size=1, max_size=3)),
    ),
    max_size=7,
)


def play(steps: Any, indices: Any) -> tuple[list[Any], Any]:
    ta = jt.TensorArray(np.float64, 5, ())
    seen: list[Any] = []
    for (kind, *_rest), i in zip(steps, indices, strict=True):
        if kind == "write":
            ta = ta.write(i, _rest[1])
        elif kind == "scatter":
            ta = ta.scatter(i, np.arange(len(_rest[0]), dtype=float))
        else:
            seen.append(ta.read(i))
    return seen, ta.stack(fill_value=-1.0)


def model(steps: Any) -> tuple[list[float], list[float]] | None:
    cells: dict[int, float] = {}
    seen = []
    for kind, where, *value in steps:
        if kind == "read":
            if where not in cells:
                return None
            seen.append(cells[where])
            continue
        places = where if kind == "scatter" else [where]
        for k, i in enumerate(places):
            if i in cells or not 0 <= i < 5:
                return None
            cells[i] = float(k) if kind == "scatter" else value[0]
    return seen, [cells.get(i, -1.0) for i in range(5)]


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_random_histories(steps: Any) -> None:
    indices = [np.asarray(step[1]) for step in steps]
    want = model(steps)
    for f in (play, lambda s, i: jt.jit(lambda i: play(s, i), backend="interpreter")(i)):
        for known in ([s[1] for s in steps], indices):
            if want is None:
                with pytest.raises((AssertionError, IndexError)):
                    f(steps, known)
            else:
                seen, cells = f(steps, known)
                assert [float(x) for x in seen] == want[0]
                np.testing.assert_array_equal(cells, want[1])


def test_a_long_loop_writes_in_place() -> None:
    """A copy of the buffer per trip would move 80 GB here."""

    def f(x: Any, n: Any) -> Any:
        ta = jt.TensorArray(np.float64, 100_000)
        return jt.fori_loop(0, n, lambda i, ta: ta.write(i, x * i), ta).stack().sum()

    x = np.ones(())
    assert jt.jit(f)(x, 100_000) == 4999950000.0
    assert jt.jit(jt.grad(f))(1.0, 100_000) == 4999950000.0
