"""Dtypes and values of every ufunc and operator, against NumPy, over all dtypes and special values."""

from __future__ import annotations

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import chosen
from support import check, check_raises, run, same

import jitney as jt
from jitney.ir.types import BASIC
from jitney.tracer.arrays.lowerings import LOWERINGS
from jitney.tracer.data.promotion import result_dtype, ufunc_dtypes
from jitney.tracer.functions import value_shapes

DTYPES = list(BASIC.values())
UFUNCS = [getattr(np, name) for name in sorted(set(LOWERINGS) - {"erf"})]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, 1e-3, 7.25, -19.0, np.inf, -np.inf, np.nan, 120.0]
COMPLEX = [0j, 1 + 0j, -1j, 0.5 + 2j, -2.5 - 1j, 3.5 + 0.1j, 1e-3 + 1e-3j, -0.75 + 0.25j]


def sample(dtype: np.dtype, count: int = 14, seed: int = 0) -> np.ndarray:
    """Values of a dtype with its corners; the order depends on the seed."""
    random = np.random.default_rng(seed)
    if dtype.kind == "b":
        values = np.arange(count) % 2 == 0
    elif dtype.kind == "f":
        values = np.array(FLOATS[:count], dtype)
    elif dtype.kind == "c":
        values = np.resize(np.array(COMPLEX, dtype), count)
    else:
        info = np.iinfo(dtype)
        corners = [0, 1, 2, 3, 5, 7, 12, info.max, info.max - 1, info.min, info.min + 1]
        values = np.resize(np.array(corners, dtype), count)
    return random.permutation(values)


def refused(ufunc: np.ufunc, dtypes: tuple[np.dtype, ...]) -> bool:
    try:
        ufunc.resolve_dtypes((*dtypes, *[None] * ufunc.nout))
    except TypeError:
        return True
    return False


def differential(ufunc: np.ufunc, arrays: list[np.ndarray]) -> None:
    dtypes = tuple(a.dtype for a in arrays)
    if refused(ufunc, dtypes):
        check_raises(ufunc, *arrays)
    else:
        check(lambda *xs: ufunc(*xs), *arrays, rtol=1e-5 if np.float32 in dtypes else None)


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS if u.nin == 1], ids=lambda u: u.__name__)
def test_unary_ufuncs_over_all_dtypes(ufunc: np.ufunc) -> None:
    for dtype in DTYPES:
        differential(ufunc, [sample(dtype)])


@pytest.mark.parametrize("ufunc", [u for u in UFUNCS if u.nin == 2], ids=lambda u: u.__name__)
def test_binary_ufuncs_over_all_pairs_of_dtypes(ufunc: np.ufunc, all_cases: bool) -> None:
    """Equal dtypes, and a quarter of the other pairs, another one for each ufunc; or all."""
    for i, left in enumerate(DTYPES):
        for j, right in enumerate(DTYPES):
            if not (i == j or all_cases or chosen(f"{ufunc.__name__} {left} {right}")):
                continue
            x, y = sample(left, seed=i), sample(right, seed=50 + j)
            if ufunc is np.power and right.kind in "iu" and left.kind in "biu":
                y = np.clip(y, 0, 7).astype(right)
            differential(ufunc, [x, y])


SCALARS = [
    True,
    0,
    3,
    -2,
    2.5,
    np.float32(1.5),
    np.int8(3),
    np.float64(2.0),
    np.bool_(True),
    1.5 - 2j,
    np.complex64(1j),
]
OPERATORS = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv),
    *(operator.mod, operator.lt, operator.eq, operator.and_, operator.lshift),
]


@pytest.mark.parametrize("op", OPERATORS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_operators_with_scalars_on_both_sides(op, dtype: np.dtype) -> None:
    x = sample(dtype)
    for scalar in SCALARS:
        for f in (lambda x, s=scalar: op(x, s), lambda x, s=scalar: op(s, x)):
            try:
                with np.errstate(all="ignore"):
                    f(x)
            except (TypeError, OverflowError):
                check_raises(f, x)
                continue
            check(f, x)


def test_python_scalar_out_of_range() -> None:
    x = np.array([1, 2], np.uint8)
    assert "out of bounds for uint8" in check_raises(lambda x: x + 300, x)
    check_raises(lambda x: x * -1, x)
    check_raises(lambda x: np.clip(x, 300, None), x)
    check(lambda x: (np.select([x > 1], [x], -1), np.clip(x, -5, 300)), x)


@pytest.mark.parametrize("wraps", [True, False])
def test_python_ints_of_where(wraps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy before 2.5 wraps what is out of range."""
    x = np.array([1, 2], np.uint8)
    monkeypatch.setattr(value_shapes, "_where_wraps", lambda: wraps)
    f = jt.jit(lambda x, c: np.where(c, x, 300), backend="interpreter")
    if wraps:
        np.testing.assert_array_equal(f(x, x > 1), np.array([44, 2], np.uint8))
    else:
        with pytest.raises(OverflowError, match="300 out of bounds for uint8"):
            f(x, x > 1)
    np.testing.assert_array_equal(jt.jit(lambda x: np.where(x > 1, x, 200))(x), [200, 2])


def test_python_ints_that_are_compared() -> None:
    x = np.array([1, 2], np.uint8)
    check(lambda x: (x < 300, x == -1, x > -5, x <= 300, x != 256), x)


INTEGERS = [d for d in DTYPES if d.kind in "iu"]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_python_integers_at_the_ends_of_the_range(dtype: np.dtype) -> None:
    """The last that fits is taken by every operation, and the next one is refused as NumPy does."""
    x, info = np.array([0, 1, 100], dtype), np.iinfo(dtype)
    for value in (int(info.min), int(info.max)):
        check(
            lambda x, v=value: (x + v, v - x, x == v, np.bitwise_xor(v, x), np.where(x > 1, x, v)),
            x,
        )
        check(lambda x, v=value: np.full_like(x, v) + x, x)
    for value in (int(info.min) - 1, int(info.max) + 1):
        with pytest.raises(OverflowError):
            np.add(x, value)
        with pytest.raises(OverflowError):
            run(lambda x, v=value: x + v, x)


def test_negative_integer_power() -> None:
    assert "negative integer powers" in check_raises(lambda x: x**-1, np.arange(1, 4))
    check(lambda x: (x**2, x**0, x**1, 2**x), np.arange(4))
    check(lambda x: (x + range(4), range(4) * x, x == range(4), x[1] - range(2)), np.arange(4.0))
    check(lambda x: (x**2, x**0.5, x**-1, x**0, x**1, x**3, 2**x, x**1.5), np.linspace(0.1, 2, 5))


WEAK = st.one_of(st.booleans(), st.integers(-50, 50), st.floats(-9, 9, allow_subnormal=False))


@settings(max_examples=30)
@given(a=WEAK, b=WEAK)
def test_python_scalars_stay_python_scalars(a, b) -> None:
    """Arguments that are Python numbers behave as such: weak, and Python's result types."""

    def f(a, b):
        results = [a + b, a - b, a * b, -a, +b, abs(a), a < b, a == b, a + 1, 2.0 * b, a / 3, 7 - b]
        return [*results, np.float32(1) * a, np.float32(2) + b]

    for got, want in zip(run(f, a, b), f(a, b), strict=True):
        assert type(got) is type(want), (got, want)
        assert got == pytest.approx(want, nan_ok=True, rel=1e-6)


def test_weak_arguments_promote_as_python_scalars() -> None:
    x = np.arange(4, dtype=np.float32)
    assert check(lambda x, s: x * s, x, 2.5).dtype == np.float32
    assert check(lambda x, s: x * s, x, 2).dtype == np.float32
    assert check(lambda x, s: x * s, x, np.float64(2.5)).dtype == np.float64
    assert check(lambda x, s: x + s, x.astype(np.int8), 2).dtype == np.int8
    assert check(lambda x, s: x + s * 2 + 1, x.astype(np.int8), 2).dtype == np.int8
    assert check(lambda x, s: np.where(x > 1, x, s), x, 2.5).dtype == np.float32
    assert check(lambda s: np.sin(s), 2.5).dtype == np.float64


def test_in_place_keeps_the_dtype() -> None:
    def f(x, y):
        x += y
        x *= 2
        x[1:] -= y[1:]
        return x

    check(f, np.arange(4, dtype=np.float32), np.arange(4.0))
    message = check_raises(f, np.arange(4), np.arange(4.0))
    assert "Cannot cast ufunc 'add' output" in message and "test_promotion.py" in message


def test_out_and_where() -> None:
    def f(x, y):
        out = np.zeros_like(x)
        kept = np.add(x, y, out=out, where=x > 1)
        np.multiply(x, 2, out)
        return out, kept is out, np.add(x, 1, dtype=np.float64), np.divmod(x, 3)

    check(f, np.arange(4, dtype=np.float32), np.ones(4, np.float32))

    def into(x, y):
        np.sqrt(x, out=x)
        np.cumsum(y, out=y)
        np.sum(x[:, None] * y, axis=1, out=y)

    check(into, np.arange(1.0, 5), np.arange(4.0))
    check_raises(lambda x, y: np.add(x, y, out=x), np.arange(3), np.arange(3.0))
    check_raises(lambda x, y: np.add(x, y, out=x), np.arange(3.0), np.ones((2, 3)))


def test_out_of_a_numpy_array_says_what_to_use() -> None:
    add = jt.jit(lambda x: np.add(x, 1, out=np.empty(3)), autograph=False)
    with pytest.raises(TypeError, match="jt.empty"):
        add(np.arange(3.0))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_astype_between_all_dtypes(dtype: np.dtype) -> None:
    for target in DTYPES:
        x = sample(dtype)
        if dtype.kind == "f" and target.kind in "iu":
            x = np.array([0.0, 1.7, 100.9, 3.0], dtype)  # elsewhere C leaves the result open
        check(lambda x, t=target: x.astype(t), x)


@settings(max_examples=40)
@given(st.lists(st.sampled_from([*DTYPES, int, float, complex]), min_size=1, max_size=4))
def test_result_dtype_is_numpys(kinds) -> None:
    samples = {int: 0, float: 0.0, complex: 0j}
    want = np.result_type(*(samples.get(k, k) for k in kinds))
    if want in DTYPES:
        assert result_dtype(*kinds) == want


def test_ufunc_dtypes_of_reductions() -> None:
    for dtype in DTYPES:
        want = np.sum(np.zeros(2, dtype)).dtype
        assert ufunc_dtypes(np.add, (dtype,), reduction=True)[-1] == want


def test_small_integers_give_float16() -> None:
    for f in (np.sin, np.sqrt, lambda x: np.arctan2(x, x), lambda x: np.round(x > 1)):
        check(lambda x, f=f: f(x), np.arange(5, dtype=np.int8))


def test_longdouble_is_refused_with_a_remedy() -> None:
    with pytest.raises(TypeError, match=r"(?s)longdouble|float128"):
        run(lambda x: x.astype(np.longdouble), np.ones(3))


def test_shape_mismatch_shows_both_shapes_and_the_line() -> None:
    message = check_raises(lambda x, y: x + y, np.ones((2, 3)), np.ones(4))
    assert "(2,3) (4,)" in message and "test_promotion.py" in message and "f64[2,3]" in message


def test_same_distinguishes() -> None:
    """The comparison that all differential tests rest on."""
    same(np.float32(1), np.float32(1))
    for got, want in [
        (np.float64(1), np.float32(1)),
        (np.zeros(1), np.zeros(2)),
        (np.array(1.0), np.float64(1)),
        (np.array([1.0]), np.array([1.1])),
        ([1], [1, 2]),
    ]:
        with pytest.raises(AssertionError):
            same(got, want)
