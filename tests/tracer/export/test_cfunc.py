"""`f.cfunc`: native functions by address, called by ctypes and by SciPy's compiled code."""

from __future__ import annotations

import ctypes
import gc
import math
from typing import Any

import numpy as np
import pytest

import jitney as jt

W = np.arange(4.0)
M, R = np.asfortranarray(np.arange(8.0).reshape(2, 4)), W[::-1]


def branchy(x: Any) -> Any:
    total = 0.0
    k = 0
    while k < 10:
        if x > k:
            total += math.sin(x * k)
        k += 1
    return total


SCALARS = {
    "exp": ("double (double)", lambda x: math.exp(-x * x), (0.5,)),
    "identity": ("double (double)", lambda x: x, (4.25,)),
    "two": ("double (double x, const double y)", lambda x, y: np.hypot(x, y) + 1, (3.0, 4.0)),
    "loops": ("float64(float64)", branchy, (3.7,)),
    "float32": ("float (float, float)", lambda x, y: x * y + np.float32(1), (1.5, 2.5)),
    "integers": ("int64_t (int64_t, int32)", lambda n, m: n * 3 - m, (1 << 40, 7)),
    "bool": ("bool (double)", lambda x: x > 1, (2.0,)),
    "unsigned": ("uint8(uint8)", lambda x: x * np.uint8(3), (9,)),
    "outside": ("double (double)", lambda x: (W * x).sum(), (2.0,)),
    "layouts": ("double (double)", lambda x: (M.T @ np.array([x, x + 1]) * R).sum(), (2.0,)),
    "arrays": ("double (double)", lambda x: np.sort(np.sin(x * np.arange(100.0)))[50], (0.3,)),
    "gradient": ("double (double)", jt.grad(lambda x: np.sin(x) ** 2), (0.7,)),
    "user data": ("double (double, void *)", lambda x: x + 1, (0.7, None)),
    "nothing": ("double (void)", lambda: W.sum(), ()),
}


@pytest.mark.parametrize("name", SCALARS)
def test_numbers(name: str) -> None:
    signature, f, args = SCALARS[name]
    c = jt.jit(f).cfunc(signature)
    plain = [a for a in args if a is not None]
    if name == "unsigned":
        plain = [np.uint8(9)]
    np.testing.assert_allclose(c(*args), f(*plain), rtol=1e-6 if name == "float32" else 1e-14)
    assert c.address == ctypes.cast(c.ctypes, ctypes.c_void_p).value
    assert c.signature == signature


def test_the_code_lives_as_long_as_what_ctypes_has() -> None:
    function = jt.jit(lambda x: x + 2.5).cfunc("double (double)").ctypes
    gc.collect()
    assert function(1.0) == 3.5


def test_numbers_side_by_side() -> None:
    f = jt.jit(lambda x, a, b: a * x + b).cfunc("double (int, double *)")
    values = (ctypes.c_double * 3)(2.0, 3.0, 4.0)
    assert f(3, values) == 10.0
    assert math.isnan(f(2, values))
    g = jt.jit(lambda v: (v * v).sum()).cfunc("double (int n, double *v, void *)", size=3)
    assert g(3, values, None) == 29.0 and math.isnan(g(4, values, None))
    h = jt.jit(lambda x, p: x * p.sum()).cfunc("double (double, void *)", data=jt.ShapeDtype(3))
    assert h(2.0, ctypes.addressof(values)) == 18.0
    k = jt.jit(lambda x, y, p: x * y + p[0]).cfunc(
        "double (int, double *, void *)", data=jt.ShapeDtype(3)
    )
    assert k(2, values, ctypes.addressof(values)) == 8.0


def test_errors_are_nan() -> None:
    table = np.arange(5.0)
    f = jt.jit(lambda x: table[int(x)]).cfunc("double (double)")
    assert f(3.0) == 3.0 and math.isnan(f(17.0))
    window = jt.jit(lambda w: table[int(w[0])]).cfunc(
        "int (double *, ssize_t, double *, void *)", size=2
    )
    values, told = (ctypes.c_double * 2)(1.0, 2.0), ctypes.c_double()
    assert window(values, 2, ctypes.byref(told), None) == 1 and told.value == 1.0
    values[0] = 99.0
    assert window(values, 2, ctypes.byref(told), None) == 0
    assert window(values, 3, ctypes.byref(told), None) == 0


def refuses() -> dict[str, tuple[Any, str, type[Exception], str, dict[str, Any]]]:
    counter = {"n": 0}

    def counts(x: Any) -> Any:
        counter["n"] += 1
        return x

    def callback(x: Any) -> Any:
        return jt.pure_callback(lambda v: v, jt.ShapeDtype(()), x)

    def grows(x: Any) -> Any:
        found = [0.0]
        for k in range(100):
            if x > k:
                found.append(x * k)
        return sum(found)

    plain = "double (double)"
    export, argument = jt.errors.ExportError, jt.errors.ArgumentError
    return {
        "no signature": (lambda x: x, "double double", argument, "no signature", {}),
        "no type": (lambda x: x, "double (widget)", argument, "'widget', which is no type", {}),
        "pointer": (lambda x: x, "double * (double)", argument, "is no signature", {}),
        "no size": (lambda w: w.sum(), "int (double *, intptr_t, double *, void *)", argument,
                    "says `size`", {}),
        "size of numbers": (lambda x: x, plain, argument, "no array that could", {"size": 3}),
        "unknown form": (lambda w: w.sum(), "double (double, double *)", argument, "none of the sig",
                         {"size": 3}),
        "array": (lambda x: x * W, plain, export, r"returns f64\[4\], which is not what", {}),
        "container": (lambda x: (x, x), plain, export, "returns a container", {}),
        "another type": (lambda x: x > 0, plain, export, r"returns bool\[\], which is not", {}),
        "constant": (lambda x: 2.0, plain, export, "whatever it is given", {}),
        "effects": (counts, plain, export, "changes what is outside", {}),
        "Python": (callback, plain, export, "calls Python", {}),
        "random": (lambda x: x + np.random.rand(), plain, export, "uses rand from outside", {}),
        "memory": (lambda x: np.sort(np.arange(9e4) * x)[7], plain, export, "more than a stack", {}),
        "growing": (grows, plain, export, "grow", {}),
        "LAPACK": (lambda x: np.linalg.eigvalsh(x * np.eye(3))[0], plain, export, "linear algebra", {}),
        "a shape": (lambda n: np.ones(n).sum(), "double (int64_t)", export, "compiles in `n`", {}),
        "failing integer": (lambda n: np.arange(3)[n], "int64_t (int64_t)", export,
                            "can fail .*no sign of it", {}),
    }  # fmt: skip


@pytest.mark.parametrize("name", refuses())
def test_what_cannot_be_is_refused(name: str) -> None:
    f, signature, kind, message, options = refuses()[name]
    with pytest.raises(kind, match=message):
        jt.jit(f).cfunc(signature, **options)


# SciPy


def test_quad() -> None:
    scipy = pytest.importorskip("scipy")
    integrate = pytest.importorskip("scipy.integrate")
    for f, signature, args in (
        (lambda x: math.exp(-x * x), "double (double)", ()),
        (lambda x: math.exp(-x * x), "double (double, void *)", ()),
        (lambda x, a, b: a * x**2 + math.sin(b * x), "double (int, double *)", (2.0, 3.0)),
        (lambda x, a: a * np.tanh(x), "double (int, double *, void *)", (2.0,)),
    ):
        low = scipy.LowLevelCallable(jt.jit(f).cfunc(signature).ctypes)
        got = integrate.quad(low, 0, 2, args=args)[0]
        assert got == pytest.approx(integrate.quad(f, 0, 2, args=args)[0], rel=1e-12)
    two = jt.jit(lambda y, x: y * x * x).cfunc("double (int, double *)")
    low = scipy.LowLevelCallable(two.ctypes)
    assert integrate.dblquad(low, 0, 2, 0, 3)[0] == pytest.approx(12.0)


def test_user_data_of_quad() -> None:
    scipy = pytest.importorskip("scipy")
    integrate = pytest.importorskip("scipy.integrate")
    f = jt.jit(lambda x, p: p[0] + p[1] * x).cfunc("double (double, void *)", data=jt.ShapeDtype(2))
    values = np.array([1.0, 2.0])
    pointer = ctypes.cast(values.ctypes.data, ctypes.c_void_p)
    low = scipy.LowLevelCallable(f.ctypes, pointer)
    assert integrate.quad(low, 0, 3)[0] == pytest.approx(12.0)


def test_filters() -> None:
    scipy = pytest.importorskip("scipy")
    ndimage = pytest.importorskip("scipy.ndimage")
    image = np.random.default_rng(0).normal(size=(23, 31))

    def spread(window: Any) -> Any:
        return np.median(window) - window.mean() * window.max()

    native = jt.jit(spread).cfunc("int (double *, intptr_t, double *, void *)", size=15)
    got = ndimage.generic_filter(image, scipy.LowLevelCallable(native.ctypes), size=(3, 5))
    np.testing.assert_allclose(got, ndimage.generic_filter(image, spread, size=(3, 5)), rtol=1e-12)

    def smooth(line: Any) -> Any:
        return (line[:-2] + 2 * line[1:-1] + line[2:]) / 4

    def smooth_into(line: Any, out: Any) -> None:
        out[...] = smooth(line)

    signature = "int (double *, intptr_t, double *, intptr_t, void *)"
    native = jt.jit(smooth).cfunc(signature, size=33)
    got = ndimage.generic_filter1d(image, scipy.LowLevelCallable(native.ctypes), 3)
    np.testing.assert_allclose(got, ndimage.generic_filter1d(image, smooth_into, 3), rtol=1e-12)
