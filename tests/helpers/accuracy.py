"""Errors of approximated functions in units in the last place; makes docs/concepts/accuracy.md.

    python tests/helpers/accuracy.py          # measures with many points and writes the table

float64 is compared with mpmath, float32 with NumPy's longdouble (and math.erf) on bit patterns taken at
regular distances over all of float32, both also where a function is known to be hard.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import mpmath
import numpy as np
from native import native

import jitney
from jitney.codegen.math import EXPANSIONS
from jitney.codegen.scalar import DType
from jitney.ir.ops.elementwise.erfinv import erfinv
from jitney.ir.types import F32, F64, dtype_name

UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh erf erfinv"
).split()
BINARY = "pow arctan2 hypot logaddexp logaddexp2".split()
# Where x + log1p(...) cancels, the error is counted in units of the larger operand.
RELATIVE_TO_OPERANDS = {"logaddexp", "logaddexp2"}

MP = {
    "exp2": lambda x: mpmath.mpf(2) ** x,
    "log2": lambda x: mpmath.log(x, 2),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "arcsin": mpmath.asin, "arccos": mpmath.acos, "arctan": mpmath.atan,
    "arcsinh": mpmath.asinh, "arccosh": mpmath.acosh, "arctanh": mpmath.atanh,
    "pow": lambda x, y: x**y,
    "arctan2": mpmath.atan2,
    "logaddexp": lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)),
    "logaddexp2": lambda x, y: mpmath.log(mpmath.mpf(2) ** x + mpmath.mpf(2) ** y, 2),
}  # fmt: skip


def numpy_function(name: str):
    if name == "erfinv":
        return lambda x: erfinv(x.astype(np.float64)).astype(np.longdouble)
    if name == "erf":
        return lambda x: np.array([math.erf(v) for v in x.tolist()], np.longdouble)
    return {"pow": np.power}.get(name) or getattr(np, name)


def domain(name: str) -> tuple[float, float]:
    """Where the function is a number; beyond it NumPy decides, in the tests of special values."""
    return {
        "log": (0, math.inf), "log2": (0, math.inf), "log10": (0, math.inf), "sqrt": (0, math.inf),
        "log1p": (-1, math.inf), "arccosh": (1, math.inf), "arcsin": (-1, 1), "arccos": (-1, 1),
        "arctanh": (-1, 1), "erfinv": (-1, 1),
    }.get(name, (-math.inf, math.inf))  # fmt: skip


def bit_patterns(dtype: DType, count: int, offset: int = 0) -> np.ndarray:
    """Numbers spread evenly over the bit patterns, that is over all exponents and both signs."""
    bits = 8 * dtype.itemsize
    step = 2**bits // count | 1
    start = (offset * 2654435761) % step
    raw = np.arange(count, dtype=np.uint64) * np.uint64(step) + np.uint64(start)
    return raw.astype(f"u{dtype.itemsize}").view(dtype)


def hard_points(name: str, dtype: DType, count: int, rng: np.random.Generator) -> np.ndarray:
    """Neighbourhoods of zeros, of branch limits, of overflow and of underflow."""
    f64 = dtype == F64
    parts = [rng.uniform(-1, 1, count), rng.uniform(-6, 6, count), rng.uniform(-100, 100, count)]
    parts.append(rng.choice([-1, 1], count) * np.exp2(rng.uniform(-40, 4, count)))
    if name in ("sin", "cos", "tan"):
        multiples = rng.integers(1, 2**40 if f64 else 2**26, count) * (np.pi / 2)
        parts += [multiples, np.exp2(rng.uniform(10, 1023 if f64 else 127, count))]
        parts.append(np.arange(1, 400) * (np.pi / 4))
    if name.startswith("log") or name in ("arccosh", "arctanh"):
        parts.append(1 + rng.choice([-1, 1], count) * np.exp2(rng.uniform(-45, 0, count)))
        parts.append(rng.uniform(0.5, 2, count))
    if name.startswith("arc") or name == "erfinv":
        parts.append(rng.choice([-1, 1], count) * (1 - np.exp2(rng.uniform(-50, -1, count))))
        parts.append(rng.uniform(0.4, 0.6, count))
    if name in ("exp", "expm1", "sinh", "cosh"):
        parts.append(rng.uniform(-746, 711, count) if f64 else rng.uniform(-105, 90, count))
    if name == "exp2":
        parts.append(rng.uniform(-1076, 1025, count) if f64 else rng.uniform(-151, 129, count))
    return np.concatenate(parts).astype(dtype)


def unary_points(name: str, dtype: DType, count: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    x = np.concatenate([bit_patterns(dtype, count), hard_points(name, dtype, count // 8, rng)])
    low, high = domain(name)
    return x[(x > low) & (x < high) & np.isfinite(x)]


def binary_points(name: str, dtype: DType, count: int) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(all="ignore"):
        return _binary_points(name, dtype, count, np.random.default_rng(2))


def _binary_points(
    name: str, dtype: DType, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    if name == "pow":
        x = np.exp2(rng.uniform(-30, 30, count))
        y = rng.uniform(-1, 1, count) * (1100 if dtype == F64 else 150) / np.abs(np.log2(x))
        near = 1 + rng.normal(size=count) * 1e-3
        far = bit_patterns(dtype, count).astype(np.float64)
        far = np.abs(far[np.isfinite(far) & (far != 0)])
        x = np.concatenate([x, near, far])
        y = np.concatenate([y, rng.uniform(-3e5, 3e5, near.size), rng.uniform(-3, 3, far.size)])
        return x.astype(dtype), y.astype(dtype)
    if name in RELATIVE_TO_OPERANDS:
        x = rng.uniform(-50, 50, count)
        return x.astype(dtype), (x + rng.normal(size=count) * 5).astype(dtype)
    x, y = bit_patterns(dtype, count, 1), rng.permutation(bit_patterns(dtype, count, 2))
    close = x * np.exp2(rng.uniform(-30, 30, x.size)).astype(dtype)
    plain = rng.normal(size=(2, 2 * count)).astype(dtype)
    x, y = np.concatenate([x, x, plain[0]]), np.concatenate([y, close, plain[1]])
    finite = np.isfinite(x) & np.isfinite(y) & (x != 0) & (y != 0)
    return x[finite], y[finite]


def ulp_errors(
    got: np.ndarray, high: np.ndarray, low: np.ndarray | float, scale: np.ndarray | None = None
) -> np.ndarray:
    """|got - (high + low)| in units of the last place of the exact value (or of `scale`)."""
    dtype = got.dtype
    with np.errstate(all="ignore"):
        rounded = high.astype(dtype)
        unit = np.spacing(np.abs(rounded if scale is None else scale.astype(dtype)))
        error = np.abs((got.astype(high.dtype) - high) - low) / unit.astype(high.dtype)
        exact = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        numbers = np.isfinite(got) & np.isfinite(rounded)
    return np.where(numbers, error, np.where(exact, 0.0, np.inf)).astype(np.float64)


def exact_values(name: str, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """mpmath's values of float64 arguments as a sum of two float64."""
    function = MP.get(name) or getattr(mpmath, name)
    high = np.empty(arrays[0].size)
    low = np.empty(arrays[0].size)
    tiny = 2.0**-1022
    with mpmath.workdps(40):
        for k, arguments in enumerate(zip(*(a.tolist() for a in arrays), strict=True)):
            value = mpmath.mpf(function(*map(mpmath.mpf, arguments)))
            high[k] = float(value)
            rest = value - mpmath.mpf(high[k]) if math.isfinite(high[k]) else 0
            low[k] = float(rest) if abs(high[k]) > tiny else 0.0
    return high, low


def measure(name: str, dtype: DType, count: int) -> tuple[float, tuple[float, ...]]:
    """The largest error of an op in ULP, and where."""
    if name in BINARY:
        arrays = binary_points(name, dtype, count)
    else:
        arrays = (unary_points(name, dtype, count),)
    got = native(EXPANSIONS[name], [dtype] * len(arrays))(*arrays)
    low: np.ndarray | float = 0.0
    if dtype == F64:
        high, low = exact_values(name, arrays)
    else:
        with np.errstate(all="ignore"):
            high = numpy_function(name)(*(a.astype(np.longdouble) for a in arrays))
    scale = None
    if name in RELATIVE_TO_OPERANDS:
        scale = np.maximum(np.maximum(np.abs(arrays[0]), np.abs(arrays[1])), np.abs(high))
    errors = ulp_errors(got, high, low, scale)
    worst = int(np.argmax(errors))
    return float(errors[worst]), tuple(float(a[worst]) for a in arrays)


def numpy_error(name: str, dtype: DType, count: int) -> float | None:
    """NumPy's own largest error on the same points, for comparison."""
    if name in ("erf", "erfinv"):
        return None
    arrays = (
        binary_points(name, dtype, count) if name in BINARY else (unary_points(name, dtype, count),)
    )
    with np.errstate(all="ignore"):
        got = numpy_function(name)(*arrays)
        if dtype == F64:
            high, low = exact_values(name, arrays)
        else:
            high, low = numpy_function(name)(*(a.astype(np.longdouble) for a in arrays)), 0.0
    scale = None
    if name in RELATIVE_TO_OPERANDS:
        scale = np.maximum(np.maximum(np.abs(arrays[0]), np.abs(arrays[1])), np.abs(high))
    return float(np.max(ulp_errors(got, high, low, scale)))


HEADER = """# Accuracy

The largest errors measured, in units in the last place (ULP) of the exact result: 0.5 is a correctly
rounded result, and nothing here exceeds 2.5. This page is written by `python tests/helpers/accuracy.py`;
the tests check smaller samples of the same points against the same limit.

float32: {f32_count:,} bit patterns spread evenly over all of float32 plus hard cases (multiples of pi/2,
arguments up to the largest number, neighbourhoods of 1 for logarithms, overflow and underflow),
against NumPy's longdouble. float64: about {f64_count:,} points of the same kinds against mpmath. The
columns "NumPy" are the errors of NumPy {numpy} on the same points, on the machine that wrote this page.

Special values (infinities, NaN, signed zeros, denormals, overflow, domain errors) are NumPy's, and
tested against it. Vectors and scalars, AVX-512 and AVX2 give the same bits. The operations that are not
listed (arithmetic, `sqrt`, rounding, `floor_divide`, `remainder`, `fmod` with quotients of any size,
`nextafter`, `ldexp`, `frexp`, comparisons, everything on integers) have no error beyond IEEE rounding.

| function | float32 | NumPy | float64 | NumPy |
|---|---|---|---|---|
"""
FOOTER = """
`logaddexp` and `logaddexp2`: in units of the largest of the operands and the result; where the sum
cancels to nearly 0, the error relative to the result grows, as in NumPy. `pow` with a constant exponent
of 2, 3, -1 or 1/2 is multiplied out, divided or rooted, with at most 1 ULP.
`jt.special`: see `special.md`.
"""


def main(path: Path) -> None:
    f32_count, f64_count = 4_000_000, 8_000
    rows = []
    for name in UNARY + BINARY:
        cells = [f"`{name}`"]
        for dtype, count in ((F32, f32_count), (F64, f64_count)):
            if dtype == F32 and name in (*BINARY, "erf"):
                count //= 4
            error, where = measure(name, dtype, count)
            reference = numpy_error(name, dtype, count)
            cells += [f"{error:.2f}", "" if reference is None else f"{reference:.2f}"]
            print(name, dtype_name(dtype), f"{error:.3f} at {where}", reference, flush=True)
        rows.append("| " + " | ".join(cells) + " |")
    head = HEADER.format(f32_count=f32_count, f64_count=f64_count, numpy=np.__version__)
    path.write_text(head + "\n".join(rows) + "\n" + FOOTER)


if __name__ == "__main__":
    default = Path(jitney.__file__).resolve().parent / "docs" / "concepts" / "accuracy.md"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
