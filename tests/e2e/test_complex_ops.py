"""Every op over complex numbers: native against the interpreter, layouts, wild values, accuracy."""

from __future__ import annotations

import ctypes
import itertools
import math
import mmap
import warnings

import mpmath
import numpy as np
import pytest
from native import avx2_target, has_avx2
from sampling import Case, cases

from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.ops.collectives.records import ALONG_AXES
from jitney.ir.passes import optimise, split_complex
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.types import C64, C128, F32, I64, TensorType
from jitney.ir.verify import verify
from jitney.runtime.compile import compile

# Overflow and NaN in the middle of a product depend on the order of the factors.
ORDER_MATTERS = {"prod", "cumprod", "dot", "scan", "while", "lanes_while", "sum", "cumsum"} | {
    "conv",
    "window_sum",
    "window_prod",
}
NAN_IN_NUMPY = {"expm1"}  # exp(inf) * 0 there; here as in exp


def is_complex(case: Case) -> bool:
    graph = case.graph()
    types = [v.type for v in (*graph.params, *graph.outputs)]
    return any(isinstance(t, TensorType) and t.dtype.kind == "c" for t in types)


# What goes along a named axis is other ops before code is made.
COMPILED = [definition for definition in OPS.values() if definition.name not in ALONG_AXES]
CASES = [c for definition in COMPILED for c in cases(definition) if is_complex(c)]
NAMES = sorted({c.definition.name for c in CASES})


def close(got: np.ndarray, want: np.ndarray, label: str, parts_alike: bool = True) -> None:
    """Equal within rounding relative to the modulus; infinities and NaNs in the same parts."""
    assert got.shape == want.shape and got.dtype == want.dtype, label
    if want.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, want, err_msg=label)
        return
    eps = float(np.finfo(want.dtype).eps)
    with np.errstate(all="ignore"):
        size = np.abs(want)
    size = np.where(np.isfinite(size), size, 0)
    if label.startswith(("conv(", "dot(")):  # sums of products that may cancel
        size = np.maximum(size, size.max(initial=0) / 8)
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        finite = np.isfinite(w)
        if parts_alike:  # the sign of an infinity beside a NaN is left open by C
            np.testing.assert_array_equal(np.isnan(g), np.isnan(w), err_msg=label)
            np.testing.assert_array_equal(np.isinf(g), np.isinf(w), err_msg=label)
        with np.errstate(all="ignore"):
            wrong = finite & ~(np.abs(g - w) <= 64 * eps * np.maximum(size, np.abs(w)) + 1e-300)
        assert not wrong.any(), f"{label}: {got[wrong][:3]} is not {want[wrong][:3]}"


@pytest.mark.parametrize("name", NAMES)
def test_op(name: str) -> None:
    for case in CASES:
        small = case.dtype == C64 and case.example is not case.definition.extra["examples"][0]
        if case.definition.name != name or small:
            continue
        graph = case.graph()
        split = split_complex(graph)
        verify(split)
        verify(optimise(split, verify=True))
        assert "c64" not in print_graph(split) and "c128" not in print_graph(split)
        executable = compile(graph)
        for seed, wild in ((1, False), (2, False), (3, True)):
            arrays = case.sample(np.random.default_rng(seed), wild)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                want = evaluate(graph, arrays)
            if wild and name in ORDER_MATTERS | NAN_IN_NUMPY:
                continue
            for g, w in zip(executable.run(arrays), want, strict=True):
                close(g, w, f"{case} {arrays}")


@pytest.mark.parametrize("layout", ["strided", "reversed", "transposed", "broadcast"])
@pytest.mark.parametrize("dtype", [C64, C128], ids=str)
def test_layouts(layout: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(0)
    base = (rng.normal(size=(9, 14)) + 1j * rng.normal(size=(9, 14))).astype(dtype)
    x = {
        "strided": base[1::2, ::3],
        "reversed": base[::-1, ::-2],
        "transposed": base.T,
        "broadcast": np.broadcast_to(base[:, :1], (9, 5)),
    }[layout]
    x.setflags(write=False)
    graph = Graph("f")
    b = Builder(graph)
    z = graph.add_param(TensorType(x.shape, dtype), "z")
    graph.outputs = [
        b.mul(z, b.conj(z)),
        b.sum(z, axes=(0,)),
        b.transpose(z, perm=(1, 0)),
        b.abs(z),
    ]
    strides = [tuple(s // x.itemsize for s in x.strides)]
    for got, want in zip(compile(graph, None, strides).run([x]), evaluate(graph, [x]), strict=True):
        close(got, want, layout)
        assert got.flags.c_contiguous and got.flags.owndata and got.flags.writeable


def test_large_arrays_and_threads() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=300_001) + 1j * rng.normal(size=300_001)
    graph = Graph("f")
    b = Builder(graph)
    z = graph.add_param(TensorType(x.shape, C128))
    graph.outputs = [b.exp(z), b.sum(z, axes=(0,)), b.max(z, axes=(0,)), b.argmin(z, axis=0)]
    for got, want in zip(compile(graph).run([x]), evaluate(graph, [x]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


# Accuracy against mpmath, relative to the modulus.

FUNCTIONS = (
    "exp expm1 log log1p sqrt sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh"
).split()
MPMATH = {"log": "ln", "arcsin": "asin", "arccos": "acos", "arctan": "atan"} | {
    "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh"
}  # fmt: skip


def unary(name: str, dtype: np.dtype, count: int):
    graph = Graph(name)
    z = graph.add_param(TensorType((count,), dtype))
    graph.outputs = [Builder(graph).op(name, z)]
    return compile(graph)


def points(dtype: np.dtype) -> np.ndarray:
    """All scales, on both sides of the axes, near the branch points and poles."""
    rng = np.random.default_rng(5)
    sizes = [1e-30, 1e-8, 1e-3, 0.3, 0.999999, 1.0, 1.0000002, 1.7, 3.0, 20.0, 80.0, 1e5]
    axis = [s * k for s in sizes for k in (1, -1)]
    grid = [complex(x, y) for x, y in itertools.product(axis, axis)]
    cloud = rng.normal(size=300) + 1j * rng.normal(size=300)
    near = [1 + 1e-7 * w for w in cloud[:40]] + [1j + 1e-7 * w for w in cloud[:40]]
    near += [-1 + 1e-7 * w for w in cloud[:20]] + [cmath_unit(w) for w in cloud[:40]]
    return np.array([*grid, *cloud, *near], dtype)


def cmath_unit(w: complex) -> complex:
    return w / abs(w)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [C64, C128], ids=str)
def test_accuracy(name: str, dtype: np.dtype) -> None:
    z = points(dtype)
    (got,) = unary(name, dtype, z.size).run([z])
    info = np.finfo(dtype)
    worst = 0.0
    with mpmath.workdps(60):
        for at, found in zip(z, got, strict=True):
            w = mpmath.mpc(float(at.real), float(at.imag))
            if name == "log1p":
                exact = mpmath.log(1 + w)
            elif name == "expm1":
                exact = mpmath.expm1(w)
            else:
                exact = getattr(mpmath, MPMATH.get(name, name))(w)
            size = abs(exact)
            if not float(info.tiny) * 16 < size < float(info.max) / 4:
                continue
            error = abs(mpmath.mpc(float(found.real), float(found.imag)) - exact) / size
            worst = max(worst, float(error) / float(info.eps))
    assert worst < 2.5, f"{worst} eps"


def test_division_and_modulus_do_not_overflow() -> None:
    big, tiny = 1e300, 1e-300
    graph = Graph("f")
    b = Builder(graph)
    x, y = (graph.add_param(TensorType((4,), C128)) for _ in range(2))
    graph.outputs = [b.div(x, y), b.abs(x), b.sqrt(x)]
    u = np.array([complex(big, big), complex(tiny, -tiny), complex(big, tiny), complex(3, 4)])
    v = np.array([complex(big, -big), complex(tiny, tiny), complex(big, big), complex(0, 0)])
    quotient, modulus, root = compile(graph).run([u, v])
    np.testing.assert_allclose(quotient[:3], [1j, -1j, 0.5 - 0.5j], rtol=1e-15)
    assert np.isinf(quotient[3].real)
    np.testing.assert_allclose(
        modulus, [big * math.sqrt(2), tiny * math.sqrt(2), big, 5], rtol=1e-15
    )
    np.testing.assert_allclose(root**2 / u, 1, rtol=1e-14)


def test_signed_zeros_choose_the_side_of_a_cut() -> None:
    above, below = complex(-4.0, 0.0), complex(-4.0, -0.0)
    beyond = [complex(2.0, 0.0), complex(2.0, -0.0)]
    for name, at in [
        *((n, [above, below]) for n in ("sqrt", "log", "arccosh")),
        *((n, beyond) for n in ("arcsin", "arccos", "arctanh")),
    ]:
        z = np.array(at)
        (got,) = unary(name, C128, 2).run([z])
        np.testing.assert_allclose(got, getattr(np, name)(z), rtol=1e-14)
        assert got[0] != got[1]


@pytest.mark.parametrize("dtype", [C64, C128])
def test_quotients_of_zeros_infinities_and_nans_are_numpys(dtype: np.dtype) -> None:
    parts = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    every = np.array([complex(a, b) for a in parts for b in parts], dtype)
    x, y = (v.ravel() for v in np.meshgrid(every, every))
    graph = Graph("f")
    b = Builder(graph)
    graph.outputs = [b.div(*(graph.add_param(TensorType(x.shape, dtype)) for _ in range(2)))]
    (got,) = compile(graph).run([x, y])
    with np.errstate(all="ignore"):
        want = x / y
    np.testing.assert_array_equal(got.real, want.real)
    np.testing.assert_array_equal(got.imag, want.imag)


def test_integer_powers_are_products() -> None:
    graph = Graph("f")
    b = Builder(graph)
    z = graph.add_param(TensorType((3,), C128))
    graph.outputs = [b.pow(z, b.full_like(z, n)) for n in (-3, -1, 0, 1, 2, 3, 5, 12)]
    at = np.array([1 + 2j, -0.5 + 0.1j, 3j])
    for got, n in zip(compile(graph).run([at]), (-3, -1, 0, 1, 2, 3, 5, 12), strict=True):
        np.testing.assert_allclose(got, at**n, rtol=1e-14)
    (got,) = compile(graph).run([np.zeros(3, complex)])[3:4]
    assert not got.any()


def test_sorting_is_numpys_order() -> None:
    rng = np.random.default_rng(2)
    parts = rng.choice([0.0, 1.0, -2.0, np.nan, np.inf], size=(2, 6, 11))
    z = np.empty((6, 11), complex)
    z.real, z.imag = parts
    graph = Graph("f")
    b = Builder(graph)
    v = graph.add_param(TensorType(z.shape, C128))
    for axis in (0, 1):
        graph.outputs += [b.sort(v, axis=axis, stable=True), b.argsort(v, axis=axis, stable=True)]
    for got, want in zip(compile(graph).run([z]), evaluate(graph, [z]), strict=True):
        np.testing.assert_array_equal(got, want)


def test_text_form() -> None:
    text = """\
graph f(%z: c64[2]) -> c64[2], f32[2] {
  %k = constant value={(1.0, -0.0), (inf, nan)} : c64[2]
  %y = mul %z, %k                               : c64[2]
  %a = abs %y                                   : f32[2]
  return %y, %a
}
"""
    graph = parse_graph(text)
    assert print_graph(graph) == text
    value = graph.ops[0].attrs["value"]
    assert value.dtype == C64 and np.signbit(value[0].imag) and np.isnan(value[1].imag)
    with pytest.raises(ValueError, match="complex number"):
        parse_graph(text.replace("(1.0, -0.0)", "1.0"))


def test_split_docstring() -> None:
    graph = parse_graph("graph f(%z: c64[8]) -> c64[8] {\n %y = conj %z : c64[8]\n return %y\n}")
    assert print_graph(split_complex(graph)) == (
        "graph f(%z_re: f32[8], %z_im: f32[8]) -> f32[8], f32[8] {\n"
        "  %0 = neg %z_im : f32[8]\n"
        "  return %z_re, %0\n"
        "}\n"
    )
    real = parse_graph("graph f(%x: f32[8]) -> f32[8] {\n %y = sin %x : f32[8]\n return %y\n}")
    assert split_complex(real) is real


def test_tapes_and_loops_hold_pairs() -> None:
    """A while loop over complex carries, differentiated: records of complex numbers on a tape."""
    from jitney.ir.autodiff.transform import vjp_graph
    from jitney.ir.ops.control.structured import region

    types = [TensorType((3,), C128), TensorType((), I64), TensorType((3,), C128)]
    test = region("test", types, lambda b, w, n, z: [b.gt(n, b.const(0, I64))])
    body = region(
        "body", types, lambda b, w, n, z: [b.sub(n, b.const(1, I64)), b.add(b.mul(b.sin(z), w), z)]
    )
    for checkpoint in ("all", "sqrt"):
        graph = Graph("f")
        params = [graph.add_param(t) for t in types]
        attrs = {"consts": 1, "checkpoint": checkpoint}
        graph.outputs = [Builder(graph).op("while", *params, regions=(test, body), **attrs)[1]]
        backward = vjp_graph(graph, [0, 2])
        verify(split_complex(backward))
        rng = np.random.default_rng(0)
        w, z, ct = (rng.normal(size=3) + 1j * rng.normal(size=3) for _ in range(3))
        arrays = [w, np.int64(5)[()], z, ct]
        arrays[1] = np.asarray(arrays[1])
        for got, want in zip(
            compile(backward).run(arrays), evaluate(backward, arrays), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_float32_parts_stay_float32() -> None:
    graph = Graph("f")
    z = graph.add_param(TensorType((2,), C64))
    b = Builder(graph)
    graph.outputs = [b.real(z), b.abs(z)]
    assert all(v.dtype == F32 for v in graph.outputs)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 64, 65, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_every_other_element_up_to_the_end_of_memory(n: int, dtype: type) -> None:
    """Vectors over x[::2] must not touch what lies behind the last element."""
    page = mmap.PAGESIZE
    pages = -(-2 * n * 8 // page) + 1
    memory = mmap.mmap(-1, (pages + 1) * page)
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    none, both = 0, 3
    assert libc.mprotect(ctypes.c_void_p(start + pages * page), page, none) == 0
    try:
        raw = np.frombuffer(memory, np.uint8)[: pages * page].view(dtype)
        x = raw[raw.size - (2 * n - 1) :][::2]
        x[...] = np.arange(n)
        graph = Graph("f")
        b = Builder(graph)
        v = graph.add_param(TensorType((n,), x.dtype))
        graph.outputs = [b.add(v, v), b.sum(v, axes=(0,))]
        double, total = compile(graph, None, [(2,)]).run([x])
        np.testing.assert_array_equal(double, 2 * np.arange(n))
        assert total == n * (n - 1) // 2
    finally:
        libc.mprotect(ctypes.c_void_p(start + pages * page), page, both)


def test_narrower_vectors() -> None:
    """The same bits from a machine without AVX-512."""
    if not has_avx2():
        pytest.skip("needs AVX2")
    rng = np.random.default_rng(4)
    for dtype in (C64, C128):
        z = (rng.normal(size=101) + 1j * rng.normal(size=101)).astype(dtype)
        graph = Graph("f")
        b = Builder(graph)
        v = graph.add_param(TensorType(z.shape, dtype))
        graph.outputs = [b.exp(v), b.div(v, b.conj(v))]
        wide = compile(graph).run([z])
        narrow = compile(graph, target=avx2_target()).run([z])
        for a, c in zip(wide, narrow, strict=True):
            np.testing.assert_array_equal(a, c)
