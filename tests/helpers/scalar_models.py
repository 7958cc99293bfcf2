"""NumPy models of the scalar primitives, with operands that make trouble."""

from __future__ import annotations

import numpy as np

from jitney.ir.types import BASIC, BOOL, DTYPE_NAMES, F32, F64
from jitney.runtime.native.host import current_target

I8, U8, U32, U64 = (DTYPE_NAMES[n] for n in ("i8", "u8", "u32", "u64"))
INTS = [d for d in BASIC.values() if d.kind in "iu"]
FLOATS = [F32, F64]
NUMBERS = INTS + FLOATS
ALL = [BOOL, *NUMBERS]


def samples(dtype, seed=0, count=200):
    """Edge values and random bit patterns, a multiple of 64 of them."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return rng.integers(0, 2, 256).astype(bool)
    raw = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8).view(dtype)
    if dtype.kind == "f":
        tiny = np.finfo(dtype).tiny
        edges = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -2.5,
            np.inf,
            -np.inf,
            np.nan,
            tiny,
            -tiny,
        ]
        edges += [
            tiny / 4,
            -tiny / 8,
            np.finfo(dtype).max,
            1e10,
            -1e10,
            255.9,
            -128.7,
            2.0**31,
            2.0**63,
        ]
        mixed = rng.normal(size=count) * 10.0 ** rng.uniform(-6, 12, count)
        values = np.concatenate([np.array(edges, dtype), raw, mixed.astype(dtype)])
    else:
        info = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1]
        small = rng.integers(max(info.min, -20), 20, count).astype(dtype)
        values = np.concatenate([np.array(edges, dtype), raw, small])
    size = -(-values.size // 64) * 64
    return np.resize(rng.permutation(values), size)


def same(got, want):
    """Equal bits, except that any NaN is as good as another."""
    assert got.dtype == want.dtype
    if got.dtype.kind == "f":
        np.testing.assert_array_equal(got, want)
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
    else:
        np.testing.assert_array_equal(got, want)


def widths(dtype):
    target = current_target()
    return sorted({1, target.lanes(max(4, dtype.itemsize)), target.lanes(dtype.itemsize)})


def signed_exactly(op):
    """Integer division that truncates, in Python's integers."""

    def model(a, b):
        out = []
        for x, y in zip(a.tolist(), b.tolist(), strict=True):
            q = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            out.append(q if op == "div" else x - q * y)
        return np.array(out, object).astype(a.dtype)

    return model


def nonzero(a, b):
    """Operands on which integer division is defined."""
    b = np.where(b == 0, 1, b).astype(b.dtype)
    if a.dtype.kind == "i":
        b = np.where((b == -1) & (a == np.iinfo(a.dtype).min), 1, b).astype(b.dtype)
    return a, b


def shift_amount(a, b):
    return a, (b & np.array(a.dtype.itemsize * 8 - 1).astype(b.dtype)).astype(b.dtype)


def as_unsigned(a):
    return a.view(f"u{a.dtype.itemsize}")


def logical_right(a, b):
    return (as_unsigned(a) >> as_unsigned(b)).view(a.dtype)


def arithmetic_right(a, b):
    return (a.view(f"i{a.dtype.itemsize}") >> b.view(f"i{b.dtype.itemsize}")).view(a.dtype)


def count_bits(which):
    def model(a):
        bits = a.dtype.itemsize * 8
        out = []
        for v in as_unsigned(a).tolist():
            text = f"{v:0{bits}b}"
            if which == "ctpop":
                out.append(text.count("1"))
            else:
                text = text if which == "ctlz" else text[::-1]
                out.append(text.index("1") if "1" in text else bits)
        return np.array(out).astype(a.dtype)

    return model


def high_product(a, b):
    bits = a.dtype.itemsize * 8
    return np.array([(int(x) * int(y)) >> bits for x, y in zip(a, b, strict=True)], a.dtype)


def fused(a, b, c):
    """a * b + c with one rounding, through exact rationals where all three are finite."""
    from fractions import Fraction

    out = []
    for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
        if not all(np.isfinite([x, y, z])):
            with np.errstate(all="ignore"):
                out.append(float(np.float64(x) * np.float64(y) + np.float64(z)))
            continue
        exact = Fraction(x) * Fraction(y) + Fraction(z)
        if exact == 0:
            out.append(np.float64(x) * np.float64(y) + np.float64(z) if x * y == 0 else 0.0)
        else:
            out.append(exact)
    return np.array([v if isinstance(v, float) else nearest(v, a.dtype) for v in out], a.dtype)


def nearest(value, dtype):
    """A rational rounded to `dtype`."""
    import mpmath

    bits, lowest, top = (24, -149, 128) if dtype == F32 else (53, -1074, 1024)
    with mpmath.workprec(400):
        x = mpmath.mpf(value.numerator) / value.denominator
        ulp = max(mpmath.floor(mpmath.log(abs(x), 2)) - bits + 1, lowest)
        rounded = mpmath.nint(mpmath.ldexp(x, -int(ulp)))  # ties to even
        result = mpmath.ldexp(rounded, int(ulp))
        if abs(result) >= mpmath.mpf(2) ** top:
            return float(np.copysign(np.inf, float(value > 0) - 0.5))
        return float(result)


def quiet(f):
    def call(*arrays):
        with np.errstate(all="ignore"):
            return np.asarray(f(*arrays)).astype(arrays[0].dtype)

    return call


# op -> (dtypes, model, a function that makes operands legal)
ARITHMETIC = {
    "add": (NUMBERS, np.add, None),
    "sub": (NUMBERS, np.subtract, None),
    "mul": (NUMBERS, np.multiply, None),
    "div": (INTS, signed_exactly("div"), nonzero),
    "rem": (INTS, signed_exactly("rem"), nonzero),
    "mulhi": ([d for d in INTS if d.kind == "u"], high_product, None),
    "neg": (FLOATS, np.negative, None),
    "fma": (FLOATS, fused, None),
    "sqrt": (FLOATS, np.sqrt, None),
    "abs": ([d for d in NUMBERS if d.kind != "u"], np.abs, None),
    "floor": (FLOATS, np.floor, None),
    "ceil": (FLOATS, np.ceil, None),
    "trunc": (FLOATS, np.trunc, None),
    "rint": (FLOATS, np.rint, None),
    "copysign": (FLOATS, np.copysign, None),
    "min": (NUMBERS, lambda a, b: np.where(b < a, b, a), None),
    "max": (NUMBERS, lambda a, b: np.where(b > a, b, a), None),
    "and": ([BOOL, *INTS], np.bitwise_and, None),
    "or": ([BOOL, *INTS], np.bitwise_or, None),
    "xor": ([BOOL, *INTS], np.bitwise_xor, None),
    "not": ([BOOL, *INTS], np.invert, None),
    "shl": (INTS, np.left_shift, shift_amount),
    "lshr": (INTS, logical_right, shift_amount),
    "ashr": (INTS, arithmetic_right, shift_amount),
    "ctlz": (INTS, count_bits("ctlz"), None),
    "cttz": (INTS, count_bits("cttz"), None),
    "ctpop": (INTS, count_bits("ctpop"), None),
}
COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
FITS = {
    "add_fits": lambda x, y: x + y,
    "sub_fits": lambda x, y: x - y,
    "mul_fits": lambda x, y: x * y,
}
CASES = [(op, d) for op, (dtypes, _, _) in ARITHMETIC.items() for d in dtypes]


def to_integer_model(a, dtype):
    """The documented rule for floats: the machine's conversion of 32 or 64 bits, then truncation."""
    bits = max(32, dtype.itemsize * 8)
    half, mask = 2 ** (bits - 1), 2**bits - 1
    out = []
    for v in a.astype(np.float64).tolist():
        flip = dtype.kind == "u" and dtype.itemsize >= 4 and v >= half
        if flip:
            v -= half
        fits = np.isfinite(v) and abs(v) < half
        n = (int(v) if fits else -half) & mask
        out.append((n ^ half if flip else n) & (2 ** (dtype.itemsize * 8) - 1))
    return np.array(out, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
