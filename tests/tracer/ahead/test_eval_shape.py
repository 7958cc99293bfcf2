"""`jt.eval_shape`: what a call gives, as shapes and dtypes, and nothing computed."""

import numpy as np
import pytest

import jitney as jt

S = jt.ShapeDtype


def like(tree):
    """The shapes and dtypes of what a call gave."""
    arrays = (np.ndarray, np.generic, float, int)
    return jt.tree.map(lambda x: S.like(x) if isinstance(x, arrays) else x, tree)


def in_lists(x):
    out = []
    for k in range(3):
        out.append(x[k] * k)
    return out, {"sum": x.sum(), "none": None, "text": "t"}


def views(x):
    return x, x.T, x[1:], x[::2].reshape(-1), np.broadcast_to(x, (2, *x.shape))


def assigns(x):
    x[0] = 1
    return x


def branches(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    while y.max() < 100:
        y = y * 2
    return y, len(x)


FUNCTIONS = {
    "lists": in_lists,
    "views": views,
    "assigns": assigns,
    "branches": branches,
    "gradient": jt.grad(lambda x: (x**2).sum()),
    "batched": jt.vmap(lambda row: (row.sum(), row.argmax())),
    "jitted": jt.jit(lambda x: np.sort(x, axis=1)[:, :2]),
    "decomposed": lambda x: np.linalg.svd(x),
    "scalar": lambda x: float(x[0, 0]) if isinstance(x, float) else x[0, 0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_what_a_call_gives(name, dtype):
    function, x = FUNCTIONS[name], np.arange(20, dtype=dtype).reshape(5, 4) + 1
    wanted = like(jt.jit(function)(x.copy()))
    assert like(jt.eval_shape(function, S(x.shape, dtype))) == wanted
    assert like(jt.eval_shape(function, x)) == wanted


def test_arrays_may_be_of_any_size():
    big = S((3_000_000, 2_000_000), np.float32)
    assert jt.eval_shape(lambda a: (a @ a.T).sum(0), big) == S(3_000_000, np.float32)


def test_nothing_is_changed():
    class Box:
        total = np.zeros(3)

    box, seen = Box(), []

    def f(x):
        box.total = box.total + x
        jt.debug_print("{}", x)
        return box.total * 2

    assert jt.eval_shape(f, S(3)) == S(3)
    assert not box.total.any() and not seen


def test_static_arguments_and_keywords_are_those_of_jit():
    @jt.jit(static_argnames="n")
    def f(x, *, n):
        return np.zeros((n, *x.shape)) + x

    assert jt.eval_shape(f, S(3), n=4) == S((4, 3))


def test_inside_of_a_trace_tracers_are_shapes():
    f = jt.jit(lambda x: x * jt.eval_shape(lambda y: y.sum(0), x).shape[0])
    assert np.array_equal(f(np.ones((3, 5))), np.full((3, 5), 5.0))


def test_what_has_no_shape_is_refused():
    def grows(n):
        found = []
        for k in range(n):
            found.append(k * 0.5)
        return found

    with pytest.raises(jt.errors.TransformError, match="return an array"):
        jt.eval_shape(grows, 5)
    with pytest.raises(ValueError, match="matmul"):
        jt.eval_shape(lambda a, b: a @ b, S((3, 4)), S((3, 4)))


def test_inside_of_vmap() -> None:
    def f(x):
        return x * jt.eval_shape(lambda v: v.reshape(3, -1), x).shape[1]

    np.testing.assert_array_equal(jt.jit(jt.vmap(f))(np.ones((2, 6))), np.full((2, 6), 2.0))
