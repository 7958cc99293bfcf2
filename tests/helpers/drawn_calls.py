"""Arguments for the calls of `function_calls.py`, drawn by hypothesis: dtypes, shapes, layouts, edges.

    @given(arguments(call))
    def test(drawn): agree(call, drawn)

With JITNEY_EXAMPLES=1000 each call gets that many, and not the few of a CI run.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from calls import SIZES, Array, Call, Operand, Shape, values
from hypothesis import strategies as st

import jitney as jt
from jitney.ir.opdef import GraphError
from jitney.ir.record import record
from jitney.ir.types import (
    BOOL,
    C128,
    DTYPE_NAMES,
    F64,
    I64,
    dtype_kind,
    finfo,
    is_complex,
    is_extended,
    is_float,
    is_inexact,
    is_small,
    real_dtype,
)

DType = np.dtype[Any]
EXAMPLES = int(os.environ.get("JITNEY_EXAMPLES", "0"))

# Doubles come often, since that is where most functions are most themselves.
_NAMES = "f64 f64 f32 f32 i64 c128 bool i8 u8 c64 f16 bf16 i32 u64 i16 u16 u32".split()
DTYPES = [DTYPE_NAMES[name] for name in _NAMES]
SIDES = [1, 2, 0, 3, 5, 17, 67]
SHAPES: list[Shape] = [
    *((), (1,), (7,), (0,), (2, 3, 4), (67,), (1, 1), (3, 0), (4, 4), (2, 131), (3, 1, 5)),
]
LAYOUTS = "C F reversed strided stretched frozen misaligned".split()
EDGES = "none none nan inf zero tiny huge".split()


# Where compiled code gives a result and NumPy an error, and why.
LAXER = {
    "gradient": "NumPy looks for more elements than it needs",
    "roots": "NaN gives NaN",
    "extract": "a mask that is too long is, where it is true, seen when the values are chosen",
    "shift": "a 0-d array has nothing to shift",
}

# What compiled code refuses in words like these, and NumPy takes.
STRICTER = {
    "not defined for complex numbers": "docs/concepts/complex.md says which",
    "is read-only": "NumPy's ufunc.at writes to arrays that are read-only",
    "Cannot cast": "NumPy's ufunc.at casts as it likes",
    "too small to calculate": "NumPy takes what it does not use",
    "axis without entries": "there is nothing to repeat",
    "cannot be empty": "polynomials have coefficients",
}


@record
class Drawn:
    """Arguments of a call: choices by name, arrays (or Python numbers) by place."""

    chosen: dict[str, Any]
    arrays: list[Any]
    edges: str

    def __repr__(self) -> str:
        shown = [_text(x) if isinstance(x, np.ndarray) else repr(x) for x in self.arrays]
        return f"{self.chosen or ''} {self.edges}: {', '.join(shown)}"


def _text(x: Array) -> str:
    steps = tuple(s / x.itemsize for s in x.strides)
    notes = [
        n
        for n, is_so in (("frozen", not x.flags.writeable), ("misaligned", not x.flags.aligned))
        if is_so
    ]
    return f"{x.dtype.name}{list(x.shape)} by {steps}{notes or ''} {x.ravel()[:12].tolist()}"


@st.composite
def arguments(draw: Any, call: Call) -> Drawn:
    """Choices and arrays for a call."""
    chosen = {name: draw(st.sampled_from(found)) for name, found in call.choices.items()}
    main = draw(st.sampled_from(DTYPES))
    mixed = draw(st.integers(0, 4)) == 4
    usual = draw(st.booleans())
    sizes = SIZES if usual else {c: draw(st.sampled_from(SIDES)) for c in SIZES}
    shape = (3, 4) if usual else draw(st.sampled_from(SHAPES))
    edges = draw(st.sampled_from(EDGES))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    arrays: list[Any] = []
    for operand in call.operands.values():
        dtype = _dtype(draw, operand, draw(st.sampled_from(DTYPES)) if mixed else main)
        own = _shape(draw, operand, shape, sizes, first=not arrays)
        array = values(operand, own, dtype, rng)
        if "f" in operand.kinds and not operand.form:
            array = _with_edges(array, edges, call, rng)
        python = own == () and operand.dims == "*" and dtype in (I64, F64, C128)
        if python and draw(st.integers(0, 2)) == 0:
            arrays.append(array.item())
        else:
            layout = draw(st.sampled_from(LAYOUTS))
            arrays.append(
                laid_out(array, "C" if operand.form and layout == "stretched" else layout)
            )
    return Drawn(chosen, arrays, edges)


def _dtype(draw: Any, operand: Operand, wanted: DType) -> DType:
    if operand.kinds == "B":
        return np.dtype(np.uint8)
    if dtype_kind(wanted) in operand.kinds:
        return wanted
    return draw(st.sampled_from([d for d in DTYPES if dtype_kind(d) in operand.kinds]))


def _shape(draw: Any, operand: Operand, shape: Shape, sizes: dict[str, int], first: bool) -> Shape:
    if operand.dims != "*":
        found = (sizes[c] if c in sizes else int(c) for c in operand.dims)
        return tuple(max(n, operand.least) for n in found)
    if first or draw(st.integers(0, 3)):
        return shape
    few = shape[draw(st.integers(0, len(shape))) :]  # broadcasts to the shape
    return tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in few)


def _with_edges(array: Array, edges: str, call: Call, rng: np.random.Generator) -> Array:
    """Some elements replaced by edge values."""
    found = _edge_values(array.dtype, edges)
    if not found or not _takes_edges(call, edges, array.dtype):
        return array
    some = rng.random(array.shape) < 0.4
    taken = rng.choice(len(found), array.shape)
    return np.where(some, np.array(found, array.dtype)[taken], array)


def _takes_edges(call: Call, edges: str, dtype: DType) -> bool:
    """Whether results are defined well enough to be compared."""
    text = call.expression
    if is_complex(dtype):
        return edges in ("zero", "tiny")  # infinities: docs/concepts/complex.md
    if any(name in text for name in ("linalg.", "geomspace", "period", "poly", "roots")):
        return (
            False  # LAPACK's answers to NaN are many, series need one sign, degrees a first number
        )
    if edges == "inf" and "fft" in text:
        return False  # infinities meet on the way, and each algorithm has its own
    if edges == "nan" and is_extended(dtype) and "isin" in text:
        return False  # which NumPy does not sort to the end
    if is_float(dtype):  # sums may overflow on the way, in another order
        return edges != "huge" or call.elementwise
    return not any(name in text for name in ("quantile", "percentile"))  # NumPy's differences wrap


def _edge_values(dtype: DType, edges: str) -> list[Any]:
    if dtype == BOOL or edges == "none":
        return []
    if is_complex(dtype):
        parts = [*_edge_values(real_dtype(dtype), edges), 1.0]
        return [complex(a, b) for a in parts for b in parts]
    if not is_float(dtype):
        info = np.iinfo(dtype)
        return [0] if edges == "zero" else [int(info.min), int(info.max), int(info.max) - 1]
    f = finfo(dtype)
    return {
        "nan": [np.nan],
        "inf": [np.inf, -np.inf],
        "zero": [0.0, -0.0],
        "tiny": [float(f.smallest_subnormal), float(f.tiny), -float(f.tiny)],
        "huge": [float(f.max), float(f.min)],
    }[edges]


def laid_out(array: Array, layout: str) -> Array:
    """The same elements (of the first row, if "stretched"), lying otherwise in memory."""
    turn = (slice(None, None, -1),) * array.ndim
    room: Array
    if layout == "F":
        return array.copy(order="F")
    if layout == "reversed":
        return array[turn].copy()[turn]
    if layout == "strided" and array.ndim:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    if layout == "stretched" and array.ndim and array.shape[0]:
        return np.broadcast_to(array[:1].copy(), array.shape)
    if layout == "misaligned":
        room = np.zeros(array.nbytes + 1, np.uint8)
        other = room[1:].view(array.dtype).reshape(array.shape)
        other[...] = array
        return other
    array = array.copy()
    array.flags.writeable = layout != "frozen"
    return array


def twin(x: Any) -> Any:
    """A copy that lies in memory as `x` does."""
    if not isinstance(x, np.ndarray):
        return x
    if not x.flags.aligned:
        return laid_out(x, "misaligned")
    if 0 in x.strides and x.size:
        return laid_out(x, "stretched")
    itemsize = x.itemsize
    if x.ndim and x.shape[-1] > 1 and x.strides[-1] == 2 * itemsize:
        return laid_out(x, "strided")
    turned = any(s < 0 for s in x.strides)
    made = laid_out(x, "reversed") if turned else x.copy(order="K")
    made.flags.writeable = x.flags.writeable
    return made


_RAISED = (OverflowError, IndexError, TypeError, ValueError, ArithmeticError)


def agree(call: Call, drawn: Drawn, backend: str = "interpreter") -> None:
    """Compiled, a call gives what NumPy gives: value, dtype, shape, and what it assigned to arguments.
    Where NumPy raises, it raises what the same `except` catches."""
    f = call.bind(drawn.chosen)
    theirs, mine = ([twin(x) for x in drawn.arrays] for _ in range(2))
    extended = any(is_extended(np.asarray(x).dtype) for x in drawn.arrays)
    python = any(not isinstance(x, np.ndarray) for x in drawn.arrays)
    compiled = jt.jit(f) if backend == "native" else jt.jit(f, backend=backend)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            want = f(*theirs)
        except Exception as error:
            if extended:  # NumPy knows little of them: see docs/concepts/small_floats.md
                return
            try:
                got = compiled(*mine)
            except (*_RAISED, AttributeError) as other:
                assert not isinstance(other, GraphError), other
                return
            # What a traced Python number is, is known later, and it is an array by then.
            late = python and isinstance(error, (OverflowError, AttributeError))
            nothing = "read-only" in str(error) and any(np.size(x) == 0 for x in drawn.arrays)
            if late or nothing or any(name in call.expression for name in LAXER):
                return
            raise AssertionError(f"NumPy raised {error!r}, compiled it is {got!r}") from error
        try:
            got = compiled(*mine)
        except (TypeError, ValueError) as error:
            if extended or any(text in str(error) for text in STRICTER):
                return
            raise
    same(call, got, want, drawn.arrays)
    same(call, mine, theirs, drawn.arrays, "argument")


def same(call: Call, got: Any, want: Any, given: Sequence[Any], where: str = "result") -> None:
    """Assert equal structure, dtype, shape, kind of scalar, and values.

    Values are equal within the rounding of what was `given`, relative to the largest number, or for
    elementwise calls to each. Floats that NumPy itself does not know may give other dtypes.
    """
    inputs = [np.asarray(x).dtype for x in given]
    extended = any(map(is_extended, inputs))
    scale = max((_largest(x) for x in given), default=0.0)
    if isinstance(want, (list, tuple)):
        assert isinstance(got, (list, tuple)) and len(got) == len(want), f"{where}: {got} {want}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            same(call, g, w, given, f"{where}[{i}]")
        return
    if want is None or isinstance(want, (str, np.dtype)):
        assert got == want, where
        return
    g, w = np.asarray(got), np.asarray(want)
    assert g.shape == w.shape, f"{where}: shape {g.shape}, NumPy has {w.shape}"
    if "unique" not in call.expression:  # of whose 0-d results NumPy makes arrays, in one version
        kinds = isinstance(got, np.ndarray), isinstance(want, np.ndarray)
        assert kinds[0] == kinds[1], f"{where}: {got!r} {want!r}"
    if not extended and not isinstance(want, int):  # one beyond int64 stays a uint64 while traced
        assert g.dtype == w.dtype, f"{where}: dtype {g.dtype}, NumPy has {w.dtype}"
    coarse = max((d for d in (g.dtype, w.dtype, *inputs) if is_inexact(d)), key=_unit, default=None)
    if isinstance(want, int):
        assert int(got) == want, where
        return
    if coarse is None or not is_inexact(w.dtype):
        np.testing.assert_array_equal(g, w, err_msg=where)
        return
    rtol = _tolerance(call, real_dtype(coarse))
    wide = C128 if is_complex(w.dtype) else F64
    g, w = g.astype(wide), w.astype(wide)
    largest = _largest(w) if call.elementwise else max(scale, _largest(w))
    atol = rtol * (min(1.0, largest) if call.elementwise else largest)
    np.testing.assert_allclose(g, w, rtol=rtol, atol=min(atol, 1e300), err_msg=where)
    extremum = any(name in call.expression for name in ("max", "min"))  # 0 and -0 are equal
    if call.elementwise and wide == F64 and not extremum:
        zeros = (g == 0) & (w == 0)
        assert (np.signbit(g) == np.signbit(w))[zeros].all(), f"{where}: signs of zeros"


def _largest(x: Any) -> float:
    """The largest finite modulus."""
    a = np.asarray(x)
    a = abs(a.astype(C128 if is_complex(a.dtype) else F64))
    return float(np.max(a[np.isfinite(a)], initial=0))


def _tolerance(call: Call, dtype: DType) -> float:
    if is_small(dtype):  # NumPy rounds partial sums
        return (4 if call.elementwise else 32) * _unit(dtype)
    if call.elementwise:
        return 16 * _unit(dtype)
    return 1e-10 if dtype == F64 else 2e-5


def _unit(dtype: DType) -> float:
    """How far numbers are from each other at 1."""
    return float(finfo(real_dtype(dtype)).eps)
