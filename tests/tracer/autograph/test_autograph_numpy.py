"""What autograph sees and NumPy's protocols do not: arrays that NumPy made, lists, `math`, `raise`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")

VECTOR = np.array([0.5, 2.0, 1.25])
TABLE = np.arange(4.0)


def agrees(function: Any, *args: Any) -> None:
    want = function(*args)
    got = jt.jit(function, autograph=True)(*args)
    parts = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for have, expected in parts:
        assert np.asarray(have).dtype == np.asarray(expected).dtype
        np.testing.assert_allclose(have, expected, rtol=1e-12)


# Arrays that NumPy made


def into_an_array(x):
    grid = np.linspace(0, 1, 5)
    grid[1:4] = x
    grid[0] += x[1]
    grid[::2] *= grid[1]
    return grid


def by_a_traced_index(x):
    order = np.arange(3) * 2
    order[np.argmax(x)] = 7
    return order


def whole_arrays(x):
    y = np.ones(3) * 2
    y += x
    y /= x.sum()
    return y


def in_containers(x):
    layers = [np.arange(3.0) for _ in range(2)]
    state = {"a": {"b": np.arange(3.0)}}
    for i in range(2):
        layers[i] -= x * i
        layers[i][0] = x[1]
    state["a"]["b"][1:] *= x[1:]
    return layers[0], layers[1], state["a"]["b"]


def itself_or_a_copy(x):
    x = x * 2
    same, copied = np.asarray(x), np.array(x)
    same[0] += 1.0
    copied[1] = 9.0
    y = np.ascontiguousarray(x, dtype=np.float32) + np.asfortranarray(x)
    convert = np.asanyarray
    z = convert(*(x,), dtype=np.int64)
    return copied, np.require(x, np.float64, ["C"]), y, z, np.asarray_chkfinite(x), x.copy()


def operands_that_numpy_does_not_ask(x):
    order = np.argsort(x)
    taken = np.take([1.0, 2.0, 3.0], order), np.take(TABLE, order), np.compress([1, 0, 1], x)
    return *taken, 1 if np.isscalar(x[0]) and not np.isscalar(x) else 0, np.squeeze([x[:, None]])


class Net:
    def __init__(self):
        self.weights = [np.arange(3.0) + 1, np.arange(2.0)]
        self.bias = np.linspace(0, 1, 3)

    def step(self, x):
        for i in reversed(range(len(self.weights))):
            self.weights[i] -= 0.5 * x[: len(self.weights[i])]
        self.bias[1] = x[0]
        self.bias[2:] += x[2]
        self.bias -= x


def in_attributes(x):
    net = Net()
    net.step(x)
    net.step(x * 2)
    return net.weights[0], net.weights[1], net.bias


def several_targets(x):
    a, b = np.arange(3) / 2, np.arange(4) / 2
    a[0], (b[1], *b[2:]) = x[0], x
    i, b[0] = 1, x[1]
    a[i] = b[3] = x[2]
    return a, b


def swapped(x):
    a = np.arange(4) / 3
    a[0] = x[0]
    a[[0, 2]] = a[[2, 0]]
    a[1], a[3] = a[3], a[1]
    return a


def in_loops_and_branches(x):
    a = np.arange(3) / 2
    n = 0
    while a[0] < 3:
        a[n % 3] += x[0]
        if a[0] > 1:
            a[1] = x[1]
        n += 1
    return a, n


@pytest.mark.parametrize(
    "function",
    [
        into_an_array,
        by_a_traced_index,
        whole_arrays,
        in_containers,
        itself_or_a_copy,
        operands_that_numpy_does_not_ask,
        in_attributes,
        several_targets,
        swapped,
        in_loops_and_branches,
    ],
)
def test_arrays_that_numpy_made(function: Any) -> None:
    agrees(function, VECTOR)


def test_arrays_of_the_module_are_not_rebound() -> None:
    def f(x):
        TABLE[0] = x[0]
        return TABLE * 1

    before = TABLE.copy()
    np.testing.assert_array_equal(jt.jit(f, autograph=True)(VECTOR), [0.5, 1, 2, 3])
    assert TABLE[0] == 0.5
    TABLE[:] = before


# Lists of traced values, and other calls


def lists(x):
    a, b = [x[0], x[1]], [x[2]]
    return np.diag(a) + np.diag(b, 1), np.maximum.reduce([x, x[::-1]]), np.add(a, b), np.mean(a)


def joined(x):
    return np.r_[0.0, x, 1:3], np.c_[np.ones(3), x, x * 2], np.c_[x[:, None], x]


def scalar_types(x):
    z = complex(x[0], x[1])
    return z * z, np.float32(x[2]), np.int64(x[1]), abs(complex(1, x[0])) + float(x[1])


def mathematics(x):
    y = (
        math.sqrt(x[0])
        + math.exp(x[1])
        + math.atan2(x[0], x[1])
        + math.log(x[2])
        + math.log(x[1], 3)
    )
    z = math.erf(x[0]) + math.gamma(x[1]) + math.lgamma(x[2]) + math.hypot(x[0], x[2])
    return y * math.pi, z, math.floor(x[1] * 3.7), math.ceil(x[0])


def halves(x):
    if len(x) == 1:
        return x
    return halves(x[::2]) + halves(x[1::2]) * 2


@pytest.mark.parametrize("function", [lists, joined, scalar_types, mathematics])
def test_calls(function: Any) -> None:
    agrees(function, VECTOR)


def test_methods_of_arrays_that_are_known() -> None:
    def f(x, i, m):
        a, v = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 2.0, 4.0])
        taken = a.take(i), a.take(i, axis=1), v.item(i), a.repeat(i), v.compress(m)
        chosen = np.array([0, 1, 1]).choose([v, v * x[0]])
        reduced = a.sum(where=x > 1.0), v.max(initial=x[1]), v.mean(where=m)
        return a.dot(x), *taken, chosen, *reduced, v.searchsorted(x), v.clip(x[0], 3.0)

    agrees(f, np.array([1.5, 2.5]), 1, np.array([True, False, True]))


def test_recursion_by_a_global_name() -> None:
    agrees(halves, np.arange(8.0))


def test_parts_of_what_a_mask_selects() -> None:
    def f(x, mask):
        part = x[:, mask]
        x[:, mask] = part[[2, 0, 1]]
        x[1:, mask] += part[:2]
        x[..., mask] *= part[::-1]
        return x

    x, mask = np.arange(24.0).reshape(3, 4, 2), np.arange(8).reshape(4, 2) % 3 == 0
    want = f(x.copy(), mask)
    np.testing.assert_array_equal(jt.jit(f)(x.copy(), mask), want)
    for one in (
        lambda x, m: x[:, m][:, 1],
        lambda x, m: x[0][m][0],
        lambda x, m: x[:, m][[2, 0], 1],
    ):
        np.testing.assert_array_equal(jt.jit(one)(x, mask), one(x, mask))


# raise


def checked(x, n):
    if n < 0:
        raise ValueError(f"{n} is negative, not {x[0]:.1f} {{}}")
    total = 0.0
    for value in x:
        if value == 0:
            raise ZeroDivisionError("division by zero")
        elif value > 100:
            total = total + 1
            raise OverflowError
        total += 1 / value
    while total > 1:
        total = total / 2
        if total < 0.6:
            if n > 3:
                raise KeyError("n")
            else:
                raise RuntimeError("total")
    return total


@pytest.mark.parametrize(
    "x, n",
    [
        ([1.0, 2.0, 4.0], 1),
        ([1.0, 2.0, 4.0], -1),
        ([1.0, 0.0, 4.0], 1),
        ([1.0, 101.0, 0.0], 1),
        ([1.0, 1.0, 3.0], 1),
        ([1.0, 1.0, 3.0], 4),
    ],
)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_raise(x: list[float], n: int, backend: str) -> None:
    compiled = jt.jit(checked, autograph=True, backend=backend)
    try:
        want = checked(np.array(x), n)
    except Exception as error:
        with pytest.raises(type(error)) as info:
            compiled(np.array(x), n)
        assert type(info.value) is type(error)
        assert info.value.args == error.args
    else:
        assert compiled(np.array(x), n) == want


def test_what_raises_has_derivatives() -> None:
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x * x

    assert jt.grad(jt.jit(f, autograph=True))(3.0) == 6.0
    np.testing.assert_array_equal(jt.jit(jt.vmap(f), autograph=True)(np.arange(3.0)), [0, 1, 4])
    with pytest.raises(ValueError, match="negative"):
        jt.jit(jt.vmap(f), autograph=True)(np.arange(3.0) - 1)


class Sampler:
    def __init__(self, n):
        self.order = np.arange(n)

    def epochs(self, x):
        for _ in range(3):
            np.random.shuffle(self.order)
            x = x[self.order] + 1
        return x, self.order


def shuffled(x):
    np.random.seed(1)
    order = np.arange(len(x))
    for _ in range(2):
        np.random.shuffle(order)
        x = x[order] * 2
    return x, order


def shuffled_by_an_own_generator(x):
    order = np.arange(len(x))
    np.random.default_rng(3).shuffle(order)
    return x[order]


def shuffled_while(x):
    np.random.seed(2)
    order, n = np.arange(len(x)), 0
    while n < x[0]:
        np.random.shuffle(order)
        n += 1
    return order


def shuffled_attributes(x):
    np.random.seed(0)
    return Sampler(len(x)).epochs(x)


def put_into(x):
    y, z, m = np.arange(5.0), np.linspace(0, 1, len(x)), np.arange(9.0).reshape(3, 3)
    np.put(y, x.astype(int) % 5, x)
    if x[0] > 1:
        np.copyto(z, x)
    np.fill_diagonal(m, x[1])
    return y, z, m


@pytest.mark.parametrize(
    "function",
    [shuffled, shuffled_by_an_own_generator, shuffled_while, shuffled_attributes, put_into],
)
def test_functions_write_into_arrays_that_numpy_made(function: Any) -> None:
    compiled = jt.jit(function)
    for x in (np.array([2.0, 3.0, 1.0, 7.0]), np.array([0.0, 1.0, 1.0, 9.0])):
        np.random.seed(7)
        want = function(x)
        np.random.seed(7)
        got = compiled(x)
        for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
            np.testing.assert_array_equal(a, b)


def rows_in_their_order(x):
    total = np.zeros(x.size // len(x))
    for row in x:
        total = total * 2 + row.ravel("K")
    return total, [row.strides for row in x], [row.flags.c_contiguous for row in x]


def rows_of_a_while_loop(x):
    total, n = np.zeros(x.size // len(x)), 0
    while total[0] < 200:
        total = total * 2 + x[n].ravel("K") + 1
        n += 1
    return total, n


def carried_in_their_order(x):
    y, n = x.copy("K"), 0
    while n < x[0, 0, 1]:
        y, n = y + 1, n + 1
    return y.ravel("K"), y.strides


@pytest.mark.parametrize(
    "function", [rows_in_their_order, rows_of_a_while_loop, carried_in_their_order]
)
@pytest.mark.parametrize("length", [2, 40])
def test_parts_of_arrays_lie_in_memory_as_numpys(function: Any, length: int) -> None:
    x = np.arange(length * 12).reshape(length, 3, 4)
    if length == 2 and function is rows_of_a_while_loop:
        return
    for y in (x, x.transpose(0, 2, 1), np.asfortranarray(x), x[:, ::-1]):
        for got, want in zip(jt.jit(function)(y), function(y), strict=True):
            np.testing.assert_array_equal(got, want)


def table_of_products(n):
    return np.array([[i * j for j in range(n)] for i in range(n)])


def rows_that_grow(x):
    rows = []
    while len(rows) < x[0]:
        rows.append([x[1], x[0]])
    return np.array(rows)


def test_arrays_of_lists_of_lists_are_no_arrays_of_handles() -> None:
    with pytest.raises(jt.errors.JitneyError):
        jt.jit(rows_that_grow)(np.array([2.0, 3.0]))
    with pytest.raises(jt.errors.JitneyError):  # numbers stay traced in these tests
        jt.jit(table_of_products)(4)


# Objects and classes of NumPy's

SERIES = {
    "Polynomial": np.polynomial.Polynomial([1.0, 2.0, 3.0]),
    "Chebyshev": np.polynomial.Chebyshev([1.0, 2.0, 3.0], domain=[0, 4]),
    "fit": np.polynomial.Polynomial.fit(VECTOR, VECTOR**2, 2),
    "deriv": np.polynomial.Legendre([1.0, 2.0, 3.0]).deriv(),
    "poly1d": np.poly1d([1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", SERIES)
def test_polynomials_of_outside(name: str) -> None:
    series = SERIES[name]
    agrees(lambda x: series(x) * 2, VECTOR)
    agrees(lambda x: series(x[0]), VECTOR)
    for gradient in (
        jt.grad(lambda x: series(x).sum()),
        jt.jit(jt.grad(lambda x: series(x).sum())),
    ):
        np.testing.assert_allclose(gradient(VECTOR), series.deriv()(VECTOR), rtol=1e-12)


@pytest.mark.parametrize("name", ["poly1d", "matrix"])
def test_classes_that_traced_values_cannot_make(name: str) -> None:
    with pytest.raises(
        jt.errors.UnsupportedFunctionError, match=f"numpy.{name} cannot be compiled"
    ):
        jt.jit(lambda x: getattr(np, name)(x))(VECTOR)
