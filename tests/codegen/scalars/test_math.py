"""Elementwise ops as scalar expressions: errors in ULP, special values, integers, all against NumPy."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from accuracy import BINARY, UNARY, binary_points, measure, unary_points
from native import avx2_target, has_avx2, native

import jitney
from jitney.codegen.math import EXPANSIONS
from jitney.codegen.scalar import const
from jitney.ir.opdef import OPS
from jitney.ir.ops.elementwise.erfinv import erfinv
from jitney.ir.types import BASIC, BOOL, F32, F64, I32

FLOATS = [F32, F64]
INTS = [d for d in BASIC.values() if d.kind in "iu"]
APPROXIMATED = [n for n in UNARY + BINARY if n != "sqrt"]
LIMIT = 2.5  # ULP, what docs/concepts/accuracy.md promises for all
# What the algorithms give, with a little room, so that a coefficient gone wrong is seen.
TIGHTER = {"tan": 2.3, "tanh": 1.6, "expm1": 1.6, "arccosh": 1.6, "sin": 1.5, "cos": 1.5} | {
    "arctan2": 1.5, "logaddexp": 1.8, "logaddexp2": 1.8, "arcsinh": 1.3, "arctanh": 1.4, "cbrt": 0.51,
    "erfinv": 2.1,
}  # fmt: skip
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1.5, -2.5, np.inf, -np.inf, np.nan,
    5e-324, -5e-324, 1e-310, -1e-310, 2.0**-1022, 1e-45, -1e-45, 1e-40, -1e-40, 2.0**-126,
    1e-30, -1e-30, 1e30, -1e30, 3.4e38, -3.4e38, 1e300, -1e300, 1.7e308, -1.7e308,
    700.0, -700.0, 709.7, 710.4, 711.0, 745.0, -745.2, -746.0, 88.7, 88.73, 89.4, 89.5, -87.4, -103.9,
    -104.0, 104.0, 127.0, 128.0, -149.0, -150.0, 1023.0, 1024.0, -1074.0, -1075.0, 20.0, -20.0,
    2.0**53, 2.0**53 + 2, -(2.0**53), 2.0**24, 2.0**25 + 4, 1e22, 1e5, -1e5,
]  # fmt: skip


def specials(dtype):
    with np.errstate(over="ignore"):
        return np.array(SPECIAL).astype(dtype)


def numpy_of(name):
    if name == "erfinv":
        return erfinv
    if name == "erf":
        import math

        return lambda x: np.array([math.erf(v) for v in x.tolist()]).astype(x.dtype)
    names = {"frexp_fraction": "frexp", "frexp_exponent": "frexp", "pow": "power"}
    function = getattr(np, names.get(name, name))
    if name.startswith("frexp"):
        return lambda x: function(x)[name == "frexp_exponent"]
    return function


def close(got, want, ulp=3.0):
    """The same infinities, NaNs and signed zeros; numbers within some ULP."""
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
    finite = np.isfinite(want) & np.isfinite(got)
    np.testing.assert_array_equal(got[numbers & ~finite], want[numbers & ~finite])
    wide = np.longdouble
    with np.errstate(over="ignore"):
        unit = np.spacing(np.abs(want[finite])).astype(wide)
    error = np.abs(got[finite].astype(wide) - want[finite].astype(wide)) / unit
    assert error.size == 0 or error.max() <= ulp, (error.max(), int(np.argmax(error)))


def test_every_elementwise_op_has_an_expansion():
    """But for those on complex numbers, which are pairs of real ones before code is generated."""
    wanted = {op.name for op in OPS.values() if op.family == "elementwise"}
    wanted -= {"complex", "real", "imag", "conj"}
    assert wanted <= EXPANSIONS.keys(), wanted - EXPANSIONS.keys()


# The errors.


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", APPROXIMATED)
def test_error(name, dtype):
    count = 1500 if dtype == F64 else 150_000 if name in UNARY and name != "erf" else 30_000
    error, where = measure(name, dtype, count)
    assert error <= TIGHTER.get(name, 1.2), f"{name}{where} is off by {error:.2f} ULP"


def test_the_page_tells_the_truth():
    """docs/concepts/accuracy.md lists every approximated function, with errors within the promise."""
    page = (
        Path(jitney.__file__).resolve().parent / "docs" / "concepts" / "accuracy.md"
    ).read_text()
    rows = {
        cells[1].strip("` "): cells
        for cells in (line.split("|") for line in page.splitlines() if line.startswith("| `"))
    }
    assert set(rows) == set(UNARY + BINARY)
    for name, cells in rows.items():
        assert float(cells[2]) <= LIMIT and float(cells[4]) <= LIMIT, name


# Special values.


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "name",
    [*UNARY, "floor", "ceil", "trunc", "rint", "neg", "abs", "frexp_fraction"],
)
def test_special_values_of_one_argument(name, dtype):
    x = specials(dtype)
    names = {"neg": "negative", "abs": "absolute"}
    with np.errstate(all="ignore"):
        want = numpy_of(names.get(name, name))(x)
    for width in (1, None):
        close(native(EXPANSIONS[name], [dtype], width)(x), want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "name", [*BINARY, "copysign", "nextafter", "heaviside", "fmod", "remainder"]
)
def test_special_values_of_two_arguments(name, dtype):
    x, y = (a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype)))
    with np.errstate(all="ignore"):
        want = numpy_of(name)(x, y)
    got = native(EXPANSIONS[name], [dtype] * 2)(x, y)
    if name in ("logaddexp", "logaddexp2"):  # x + log1p(..) may round to either side of 0
        small = np.abs(want) < 0.1
        np.testing.assert_allclose(got[small], want[small], atol=4 * np.finfo(dtype).eps)
        got, want = got[~small], want[~small]
    close(got, want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extremes_of_special_values(name, dtype):
    x, y = (a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype)))
    np.testing.assert_array_equal(native(EXPANSIONS[name], [dtype] * 2)(x, y), numpy_of(name)(x, y))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "name", ["isnan", "isinf", "isfinite", "signbit", "sign", "frexp_exponent"]
)
def test_classification(name, dtype):
    x = specials(dtype)
    with np.errstate(all="ignore"):
        want = numpy_of(name)(x)
    for width in (1, None):
        got = native(EXPANSIONS[name], [dtype], width)(x)
        assert got.dtype == want.dtype
        numbers = np.isfinite(x) if name == "frexp_exponent" else slice(None)
        np.testing.assert_array_equal(got[numbers], want[numbers])


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin", "floor_divide"])
def test_choices_and_quotients(name, dtype):
    x, y = (a.ravel() for a in np.meshgrid(specials(dtype), specials(dtype)))
    with np.errstate(all="ignore"):
        want = numpy_of(name)(x, y)
    for width in (1, None):
        np.testing.assert_array_equal(native(EXPANSIONS[name], [dtype] * 2, width)(x, y), want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide"])
def test_remainders_are_exact(name, dtype):
    """Random bits: quotients of every size, up to the largest number over the smallest."""
    rng = np.random.default_rng(0)
    raw = rng.integers(0, 256, (2, 40_000, dtype.itemsize), dtype=np.uint8).view(dtype)[..., 0]
    near = rng.uniform(-10, 10, (2, 40_000)).astype(dtype)
    x, y = np.concatenate([raw, near, np.round(near)], axis=1)
    with np.errstate(all="ignore"):
        want = numpy_of(name)(x, y)
    np.testing.assert_array_equal(native(EXPANSIONS[name], [dtype] * 2)(x, y), want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ldexp(dtype):
    x = np.repeat(specials(dtype), 12)
    n = np.tile([0, 1, -1, 24, -24, 149, -149, 300, -1074, 2098, 2**31 - 1, -(2**31)], x.size // 12)
    with np.errstate(all="ignore"):
        want = np.ldexp(x, n.astype(np.int32))
    for width in (1, None):
        close(native(EXPANSIONS["ldexp"], [dtype, I32], width)(x, n), want, 0.0)


# The same bits everywhere.


def bits_equal(a, b):
    np.testing.assert_array_equal(a, b)
    numbers = a == a
    np.testing.assert_array_equal(np.signbit(a[numbers]), np.signbit(b[numbers]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", [*UNARY, *BINARY, "fmod"])
def test_scalars_vectors_and_avx2_agree(name, dtype):
    if name in BINARY:
        arrays = binary_points(name, dtype, 2000)
    elif name == "fmod":
        arrays = binary_points("hypot", dtype, 2000)
    else:
        arrays = (np.concatenate([unary_points(name, dtype, 4000), specials(dtype)]),)
    dtypes = [dtype] * len(arrays)
    want = native(EXPANSIONS[name], dtypes)(*arrays)
    bits_equal(native(EXPANSIONS[name], dtypes, 1)(*arrays), want)
    if has_avx2():
        bits_equal(native(EXPANSIONS[name], dtypes, None, avx2_target())(*arrays), want)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, 2.5, -2, 10])
def test_powers_with_constant_exponents(exponent, dtype):
    x = np.concatenate([specials(dtype), unary_points("exp", dtype, 4000)])
    f = native(lambda v: EXPANSIONS["pow"](v, const(exponent, dtype)), [dtype])
    with np.errstate(all="ignore"):
        want = np.power(x, np.full_like(x, exponent))  # NumPy takes a root for a scalar 0.5
    close(f(x), want, 2.0)


# Integers.


def integers(dtype, seed):
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    edges = np.array([0, 1, 2, 3, 5, 7, 12, info.max, info.max - 1, info.min, info.min + 1], dtype)
    raw = rng.integers(0, 256, 200 * dtype.itemsize, dtype=np.uint8).view(dtype)
    small = rng.integers(max(info.min, -30), 30, 200).astype(dtype)
    return np.concatenate([edges, raw, small])


def pairs(dtype):
    a, b = integers(dtype, 1), integers(dtype, 2)
    edge = np.array(list(itertools.product(a[:11], b[:11])), dtype)
    rng = np.random.default_rng(3)
    return (
        np.concatenate([edge[:, 0], a, rng.permutation(a)]),
        np.concatenate([edge[:, 1], b, rng.permutation(b)]),
    )


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize(
    "name",
    "floor_divide remainder fmod gcd lcm left_shift right_shift maximum minimum fmax fmin".split(),
)
def test_integer_pairs(name, dtype):
    x, y = pairs(dtype)
    if name == "lcm" and dtype.kind == "i":  # NumPy's lcm of the smallest number is undefined in C
        keep = (x != np.iinfo(dtype).min) & (y != np.iinfo(dtype).min)
        x, y = x[keep], y[keep]
    with np.errstate(all="ignore"):
        want = numpy_of(name)(x, y)
    for width in (1, None):
        np.testing.assert_array_equal(native(EXPANSIONS[name], [dtype] * 2, width)(x, y), want)


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("name", ["abs", "sign", "neg", "invert"])
def test_integer_unary(name, dtype):
    x = integers(dtype, 4)
    function = {"neg": np.negative, "abs": np.absolute}.get(name) or getattr(np, name)
    for width in (1, None):
        np.testing.assert_array_equal(native(EXPANSIONS[name], [dtype], width)(x), function(x))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integer_powers(dtype):
    x = integers(dtype, 5)
    y = np.random.default_rng(6).integers(0, 100, x.size).astype(dtype)
    y[:40] = np.arange(40) % 70
    for width in (1, None):
        got = native(EXPANSIONS["pow"], [dtype] * 2, width)(x, y)
        np.testing.assert_array_equal(got, np.power(x, y))
    for n in (0, 1, 2, 3, 7, 10, 64):
        f = native(lambda v, n=n: EXPANSIONS["pow"](v, const(n, dtype)), [dtype])
        np.testing.assert_array_equal(f(x), np.power(x, dtype.type(n)))
    if dtype.kind == "i":
        y = -1 - np.abs(integers(dtype, 7).astype(np.int64)) % 100
        want = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
        got = native(EXPANSIONS["pow"], [dtype] * 2)(x, y.astype(dtype))
        np.testing.assert_array_equal(got, want.astype(dtype))


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("n", [0, 1, -1, 2, 7, 10, -3, 64])
def test_integers_by_constants(n, dtype):
    if n < 0 and dtype.kind == "u":
        pytest.skip("unsigned")
    x = integers(dtype, 8)
    for name in ("floor_divide", "remainder", "fmod", "left_shift", "right_shift"):
        f = native(lambda v, name=name: EXPANSIONS[name](v, const(n, dtype)), [dtype])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(f(x), numpy_of(name)(x, dtype.type(n)), err_msg=name)


def test_bool_ops():
    x, y = np.tile([False, True], 64), np.repeat([False, True], 64)
    for name, function in (
        ("bitwise_and", np.logical_and), ("bitwise_or", np.logical_or), ("bitwise_xor", np.logical_xor),
        ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("ge", np.greater_equal),
    ):  # fmt: skip
        got = native(EXPANSIONS[name], [BOOL] * 2)(x, y)
        np.testing.assert_array_equal(got, function(x, y))
    np.testing.assert_array_equal(native(EXPANSIONS["invert"], [BOOL])(x), ~x)
