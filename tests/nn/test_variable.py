"""`jt.Variable`: usable wherever an array is, changed in program order."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.array([1.0, 2.0, 3.0])


def operators(v: Any, x: Any) -> Any:
    return [v + x, x + v, 2 * v - 1, 1 - v, -v, abs(v), v**2, v @ x, x @ v, v > 1, divmod(v, 2)[1]]


def functions(v: Any, x: Any) -> Any:
    return [
        *(np.sin(v), jt.sin(v), np.sum(v), jt.sum(v), v.sum(), np.maximum(v, x), np.dot(x, v)),
        *(np.concatenate([v, x]), jt.concatenate([v, x]), np.stack([v, v]), np.where(x > 1, v, x)),
        *(np.einsum("i,i->", v, x), jt.linalg.norm(v), np.zeros_like(v), np.asarray(v) * 2),
        *(np.array(v), np.clip(v, 0, 2), np.add.reduce(v), jt.where(x > 1, v, 0), v.reshape(3, 1)),
    ]


def elements(v: Any, x: Any) -> Any:
    y = x if v.sum() > 3 else -x
    return [
        v[1:],
        x[1] * v[0],
        sum(e for e in v),
        float(v[0]) * x,
        y,
        len(v) * x,
        v.T,
        v.dtype.type(1),
    ]


def transformations(v: Any, x: Any) -> Any:
    return [
        jt.jvp(lambda v: v * v, (v,), (x,)),
        jt.vjp(lambda v: v * v, v)[1](x),
        jt.grad(lambda d: (d["a"] * d["b"]).sum())({"a": v, "b": x}),
        jt.vmap(lambda e: e * v)(x),
        jt.scan(lambda c, e: (c + e * v, c), np.zeros(3), x)[0],
        jt.cond(x[0] > 0, lambda: v * 1, lambda: v * 2),
    ]


@pytest.mark.parametrize("function", [operators, functions, elements, transformations])
def test_it_stands_for_its_array(function: Any) -> None:
    want = function(X + 1, X.copy())
    for get in (function, jt.jit(function)):
        got = get(jt.Variable(X + 1), X.copy())
        pairs = zip(jt.tree.leaves(want), jt.tree.leaves(got), strict=True)
        for number, (a, b) in enumerate(pairs):
            assert type(a) is type(b) and np.asarray(a).dtype == np.asarray(b).dtype, number
            np.testing.assert_allclose(a, b, err_msg=str(number))


def assigns(v: Any, x: Any) -> Any:
    v += x
    v.assign_sub(1.0)[0] = 5
    v *= 2
    for _ in range(3):
        v.assign_add(x)
    if x[0] > 0:
        v.assign(v * 2)
    else:
        v -= 7
    n = 0
    while n < x.sum():
        n += 1
        v[1:] += n
    return v.sum()


def test_assignments_are_in_program_order() -> None:
    want = np.array([26.0, 20.0, 34.0])
    want[1:] += 21
    for run in (assigns, jt.jit(assigns)):
        v = jt.Variable(np.arange(3.0))
        array = v.value
        assert run(v, X) == want.sum() and v.value is array
        np.testing.assert_array_equal(array, want)


def test_it_is_assigned_to_while_another_is_differentiated() -> None:
    def loss(w: Any, count: Any, x: Any) -> Any:
        count += x.sum()
        count.assign(count * 3)
        return (w * 2 * x * count).sum()

    for run in (jt.value_and_grad(loss), jt.jit(jt.value_and_grad(loss))):
        w, count = jt.Variable(np.ones(3)), jt.Variable(0.0)
        value, gradient = run(w, count, X)
        assert (value, count.value) == (216.0, 18.0)
        np.testing.assert_array_equal(gradient, [36.0, 72.0, 108.0])
        assert type(gradient) is np.ndarray and type(w.value) is np.ndarray
        assert run(jt.Variable(X, trainable=False), count, X)[1] is None


def test_closed_over_copied_and_shown() -> None:
    count = jt.Variable(3, name="count", tags="step")

    @jt.jit
    def f(x: Any) -> Any:
        count.assign_add(1)
        return count * x

    np.testing.assert_array_equal([f(X), f(X)], [4 * X, 5 * X])
    assert count.value == 5 and count.value.dtype == np.int64 and count.tags == ("step",)
    for other in (copy.deepcopy(count), pickle.loads(pickle.dumps(count)), jt.Variable(count)):
        other += 1
        assert (other == 6) and count == 5
    assert repr(count) == "Variable('count', array(5), tags=('step',))"
    made = jt.jit(lambda v: jt.Variable(v * 2, name="twice"))(jt.Variable(X))
    assert made.name == "twice" and (made == 2 * X).all()
    with pytest.raises(ValueError, match="broadcast"):
        made.assign(np.ones(4))
    with pytest.raises(jt.errors.ShapeError, match="broadcast"):
        jt.jit(lambda v: v.assign(np.ones(4)))(made)
