"""Scalar primitives spelled as LLVM instructions, for one lane or for a vector of lanes.

`INSTRUCTIONS[op](e, node, lanes, *operands)` emits `node` through the emitter `e` and returns its
value. All operands have the same number of lanes. Fast-math flags stand nowhere but in additions and
products whose node says so (sums whose order is nobody's), and no value that a program can see is
poison: an operation that LLVM leaves undefined for some operands is either excluded by the primitive's
contract or guarded here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from ...ir.types import BASIC, BOOL, DTYPE_NAMES, F32, F64, I32, I64
from ..scalar import DType, Expr
from .builder import Value, poison, vector

if TYPE_CHECKING:
    from .text import TextEmitter

U32 = DTYPE_NAMES["u32"]
U64 = DTYPE_NAMES["u64"]
SCALAR_TYPES: dict[DType, str] = {
    dtype: "i1" if name == "bool" else f"i{dtype.itemsize * 8}" for name, dtype in BASIC.items()
} | {F32: "float", F64: "double"}


@cache
def type_text(dtype: DType, lanes: int) -> str:
    """The LLVM type of `lanes` values in registers; a bool is one bit there."""
    scalar = SCALAR_TYPES[dtype]
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def suffix(dtype: DType, lanes: int) -> str:
    """How intrinsics are overloaded: `f32`, `v16f32`, `v8i64`."""
    name = f"f{dtype.itemsize * 8}" if dtype.kind == "f" else SCALAR_TYPES[dtype]
    return name if lanes == 1 else f"v{lanes}{name}"


def number(value: Any, dtype: DType) -> str:
    """A number as an LLVM constant. Floats are hexadecimal: exact, NaN and infinities included."""
    if dtype.kind == "f":
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(dtype.type(value))))[0]:016X}"
    if dtype.kind == "b":
        return "true" if value else "false"
    return str(int(value))


def constant(value: Any, dtype: DType, lanes: int) -> Value:
    """A number of a dtype as a literal, or a vector of `lanes` copies of it."""
    text = number(value, dtype)
    if lanes > 1:
        text = f"splat ({SCALAR_TYPES[dtype]} {text})"
    return Value(type_text(dtype, lanes), text)


Instruction = Callable[..., Value]


def _arithmetic(floating: str, integral: str) -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, a: Value, b: Value) -> Value:
        kind = node.dtype.kind
        name = floating if kind == "f" else integral
        if node.attr and kind == "f":
            name = " ".join((name, *sorted(node.attr)))
        return e.binary(name, a, b)

    return emit


def _comparison(floating: str, signed: str, unsigned: str) -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, a: Value, b: Value) -> Value:
        dtype = node.args[0].dtype
        if dtype.kind == "f":
            return e.compare_floats(floating, a, b)
        return e.compare(signed if dtype.kind == "i" else unsigned, a, b)

    return emit


def _intrinsic(name: str, *flags: bool) -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, *operands: Value) -> Value:
        return e.intrinsic(name, type_text(node.dtype, lanes), *operands, *flags)

    return emit


def _sqrt(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    return e.intrinsic("sqrt", a.type, a, flags=_estimated(e, node.dtype))


def _estimated(e: TextEmitter, dtype: DType) -> str:
    """The flags by which LLVM may divide, and take roots, by an estimate and a step of Newton's."""
    return "reassoc arcp contract afn " if dtype == F32 and e.target.fastmath else ""


def _abs(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    if node.dtype.kind == "f":
        return e.intrinsic("fabs", a.type, a)
    return e.intrinsic("abs", a.type, a, False)


def _not(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    ones = constant(True if node.dtype == BOOL else -1, node.dtype, lanes)
    return e.binary("xor", a, ones)


def _neg(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    return e.negated(a)


def _min_max(name: str, test: str) -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, a: Value, b: Value) -> Value:
        dtype = node.dtype
        if dtype.kind != "f":
            return e.intrinsic(("s" if dtype.kind == "i" else "u") + name, a.type, a, b)
        return e.select(e.compare_floats(test, b, a), b, a)

    return emit


def _select(e: TextEmitter, node: Expr, lanes: int, c: Value, a: Value, b: Value) -> Value:
    return e.select(c, a, b)


def _divide(e: TextEmitter, node: Expr, lanes: int, a: Value, b: Value) -> Value:
    """Integer vectors up to 32 bits divide in floating point, which is exact there: the distance of
    a quotient from the next integer is more than the rounding error. x86 has no vector division;
    a constant divisor becomes a multiplication inside LLVM."""
    dtype = node.dtype
    ty = type_text(dtype, lanes)
    if dtype.kind == "f":
        return e.binary(f"fdiv {_estimated(e, dtype)}".strip(), a, b)
    sign = "s" if dtype.kind == "i" else "u"
    if lanes == 1 or dtype.itemsize == 8 or node.args[1].op == "const":
        return e.binary(f"{sign}div", a, b)
    real = type_text(F32 if dtype.itemsize < 4 else F64, lanes)
    wide = type_text(I32 if dtype != U32 else U32, lanes)
    if dtype.itemsize < 4:  # LLVM converts no narrow vectors well
        extend = "sext" if sign == "s" else "zext"
        a, b = (e.convert(extend, x, wide) for x in (a, b))
    to_float = "sitofp" if sign == "s" or dtype.itemsize < 4 else "uitofp"
    x, y = (e.convert(to_float, v, real) for v in (a, b))
    quotient = e.binary("fdiv", x, y)
    back = "fptosi" if to_float == "sitofp" else "fptoui"
    q = e.convert(back, quotient, wide)
    return q if dtype.itemsize == 4 else e.convert("trunc", q, ty)


def _remainder(e: TextEmitter, node: Expr, lanes: int, a: Value, b: Value) -> Value:
    if lanes == 1 or node.dtype.itemsize == 8 or node.args[1].op == "const":
        return e.binary(f"{'s' if node.dtype.kind == 'i' else 'u'}rem", a, b)
    q = _divide(e, node, lanes, a, b)
    return e.binary("sub", a, e.binary("mul", q, b))


def _high_product(e: TextEmitter, node: Expr, lanes: int, a: Value, b: Value) -> Value:
    ty = type_text(node.dtype, lanes)
    bits = node.dtype.itemsize * 8
    if bits < 64 or lanes == 1:
        wide = f"i{2 * bits}" if lanes == 1 else f"<{lanes} x i{2 * bits}>"
        x, y = (e.convert("zext", v, wide) for v in (a, b))
        product = e.binary("mul", x, y)
        return e.convert("trunc", e.binary("lshr", product, bits), ty)
    low, half = 0xFFFFFFFF, 32
    a0, b0 = (e.binary("and", v, low) for v in (a, b))
    a1, b1 = (e.binary("lshr", v, half) for v in (a, b))
    p00, p01, p10, p11 = (
        e.binary("mul", x, y) for x, y in ((a0, b0), (a0, b1), (a1, b0), (a1, b1))
    )
    middle = e.binary("add", e.binary("lshr", p00, half), e.binary("and", p01, low))
    middle = e.binary("add", middle, e.binary("and", p10, low))
    high = e.binary("add", p11, e.binary("lshr", p01, half))
    high = e.binary("add", high, e.binary("lshr", p10, half))
    return e.binary("add", high, e.binary("lshr", middle, half))


def _fits(name: str) -> Instruction:
    """CPUs tell by a flag, which LLVM joins with the operation itself where that is emitted too."""

    def emit(e: TextEmitter, node: Expr, lanes: int, a: Value, b: Value) -> Value:
        dtype = node.args[0].dtype
        if lanes > 1 or not e.has_flags:
            return _fits_by_signs(e, name, node, lanes, a, b)
        full = f"llvm.{'s' if dtype.kind == 'i' else 'u'}{name}.with.overflow.{a.type}"
        pair = f"{{ {a.type}, i1 }}"
        e.declare(full, f"declare {pair} @{full}({a.type}, {a.type})")
        return ~e.field(e.op(pair, f"call {pair} @{full}({a!r}, {b!r})"), 1)

    return emit


def _fits_by_signs(e: TextEmitter, name: str, node: Expr, lanes: int, a: Value, b: Value) -> Value:
    dtype, zero = node.args[0].dtype, constant(0, node.args[0].dtype, lanes)
    signed = dtype.kind == "i"
    r = e.binary(name, a, b)
    if name == "mul":
        upper = _high_product(e, node.args[0], lanes, a, b)
        if not signed:
            return e.compare("eq", upper, zero)
        for x, y in ((a, b), (b, a)):  # of unsigned numbers, so far
            upper = e.binary("sub", upper, e.select(e.compare("slt", x, zero), y, zero))
        bits = constant(8 * dtype.itemsize - 1, dtype, lanes)
        return e.compare("eq", upper, e.binary("ashr", r, bits))
    if not signed:
        return e.compare("uge", r, a) if name == "add" else e.compare("uge", a, b)
    other = r if name == "add" else a
    signs = e.binary("and", e.binary("xor", a, r), e.binary("xor", b, other))
    return e.compare("sge", signs, zero)


def _scale2(e: TextEmitter, node: Expr, lanes: int, a: Value, n: Value) -> Value:
    dtype = node.dtype
    ty, count = type_text(dtype, lanes), type_text(I32, lanes)
    if e.has_scalef and lanes > 1:  # one instruction, vscalef
        return e.ldexp(a, n)

    def shifted(amount: Value) -> Value:
        """2**amount, for an exponent of normal numbers."""
        whole = type_text(I32 if dtype == F32 else I64, lanes)
        if dtype == F64:
            amount = e.convert("sext", amount, whole)
        fraction_bits, bias = (23, 127) if dtype == F32 else (52, 1023)
        integer = I32 if dtype == F32 else I64
        biased = e.binary("add", amount, constant(bias, integer, lanes))
        raw = e.binary("shl", biased, constant(fraction_bits, integer, lanes))
        return e.convert("bitcast", raw, ty)

    def times(x: Value, amount: Value) -> Value:
        return e.binary("fmul", x, shifted(amount))

    def minus(x: Value, y: Value) -> Value:
        return e.binary("sub", x, y)

    if node.attr:  # two halves: the first product is a normal number, so only the second one rounds
        limit = 254 if dtype == F32 else 2044
        n = e.intrinsic("smax", count, n, constant(-limit, I32, lanes))
        n = e.intrinsic("smin", count, n, constant(limit, I32, lanes))
        half = e.binary("ashr", n, constant(1, I32, lanes))
        return times(times(a, half), minus(n, half))
    # Steps of at most `top` up, where nothing rounds, and of `down` below `bottom`: what is
    # denormal after such a step is so small that the remaining steps make it zero either way.
    bottom, down, top, steps = (
        (-126, -126 + 24, 127, 2) if dtype == F32 else (-1022, -1022 + 53, 1023, 2)
    )
    span = 380 if dtype == F32 else 2200
    n = e.intrinsic("smax", count, n, constant(-span, I32, lanes))
    n = e.intrinsic("smin", count, n, constant(span, I32, lanes))
    for _ in range(steps):
        low = e.compare("slt", n, constant(bottom, I32, lanes))
        capped = e.intrinsic("smin", count, n, constant(top, I32, lanes))
        step = e.select(low, constant(down, I32, lanes), capped)
        a, n = times(a, step), minus(n, step)
    n = e.intrinsic("smax", count, n, constant(bottom, I32, lanes))
    return times(a, n)


def _convert(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    source, dtype = node.args[0].dtype, node.dtype
    old, new = type_text(source, lanes), type_text(dtype, lanes)
    if dtype == BOOL:
        if source.kind == "f":
            return e.compare_floats("une", a, constant(0.0, source, lanes))
        return e.compare("ne", a, constant(0, source, lanes))
    if source.kind == "f":
        if dtype.kind == "f":
            widen = dtype.itemsize > source.itemsize
            return e.convert("fpext" if widen else "fptrunc", a, new)
        return _to_integer(e, a, source, dtype, lanes, fits=bool(node.attr))
    if dtype.kind == "f":
        return e.convert("sitofp" if source.kind == "i" else "uitofp", a, new)
    if old == new:
        return a
    if source != BOOL and dtype.itemsize < source.itemsize:
        return e.convert("trunc", a, new)
    return e.convert("sext" if source.kind == "i" else "zext", a, new)


def _to_integer(
    e: TextEmitter, a: Value, source: DType, dtype: DType, lanes: int, fits: bool
) -> Value:
    """NumPy's conversion on x86-64: through the instruction of 32 or 64 bits, whose answer to what
    does not fit is the smallest integer; u32 and u64 take off the upper half first."""
    ty = type_text(source, lanes)
    bits = max(dtype.itemsize * 8, 32)
    wide_dtype = I32 if bits == 32 else I64
    wide = type_text(wide_dtype, lanes)
    if e.as_on_x86 and lanes == 1 and not (dtype.kind == "u" and dtype.itemsize >= 4):
        r = _truncated(e, a, source, wide)
    elif fits:
        unsigned = dtype.kind == "u" and dtype.itemsize >= 4
        r = e.convert("fptoui" if unsigned else "fptosi", a, wide)
    else:
        half = constant(2.0 ** (bits - 1), source, lanes)
        smallest = constant(-(2 ** (bits - 1)), wide_dtype, lanes)
        upper = None
        if dtype.kind == "u" and dtype.itemsize >= 4:
            upper = e.compare_floats("oge", a, half)
            a = e.select(upper, e.binary("fsub", a, half), a)
        fitting = e.compare_floats("olt", e.intrinsic("fabs", ty, a), half)
        r = e.convert("fptosi", a, wide)
        r = e.select(fitting, r, smallest)
        if upper is not None:
            r = e.select(upper, e.binary("xor", r, smallest), r)
    return r if dtype.itemsize * 8 == bits else e.convert("trunc", r, type_text(dtype, lanes))


def _truncated(e: TextEmitter, a: Value, source: DType, wide: str) -> Value:
    """The instruction of x86-64 itself."""
    name, lanes = ("sse.cvttss2si", 4) if source == F32 else ("sse2.cvttsd2si", 2)
    several = vector(lanes, a.type)
    full = f"llvm.x86.{name}{'64' if wide == 'i64' else ''}"
    e.declare(full, f"declare {wide} @{full}({several})")
    given = e.insert(poison(several), a, 0)
    return e.op(wide, f"call {wide} @{full}({given})")


def _half_to_float(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    value = e.convert("bitcast", a, _half_type(lanes))
    return e.convert("fpext", value, type_text(F32, lanes))


def _float_to_half(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    half = _half_type(lanes)
    value = e.convert("fptrunc", a, half)
    return e.convert("bitcast", value, type_text(node.dtype, lanes))


def _half_type(lanes: int) -> str:
    return "half" if lanes == 1 else f"<{lanes} x half>"


def _bitcast(e: TextEmitter, node: Expr, lanes: int, a: Value) -> Value:
    old, new = type_text(node.args[0].dtype, lanes), type_text(node.dtype, lanes)
    return a if old == new else e.convert("bitcast", a, new)


def _table(e: TextEmitter, node: Expr, lanes: int, index: Value) -> Value:
    dtype = node.dtype
    table = e.table([e.scalar(v, dtype) for v in node.attr], "table")
    addresses = e.offset(table, index, SCALAR_TYPES[dtype])
    if lanes == 1:
        return e.load_elements(dtype, addresses, 1, stays=True)
    every, rest = constant(True, BOOL, lanes), poison(type_text(dtype, lanes))
    return e.gather(addresses, every, rest, dtype.itemsize)


INSTRUCTIONS: dict[str, Instruction] = {
    "add": _arithmetic("fadd", "add"),
    "sub": _arithmetic("fsub", "sub"),
    "mul": _arithmetic("fmul", "mul"),
    "div": _divide,
    "rem": _remainder,
    "mulhi": _high_product,
    "neg": _neg,
    "fma": _intrinsic("fma"),
    "sqrt": _sqrt,
    "abs": _abs,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "rint": _intrinsic("rint"),
    "copysign": _intrinsic("copysign"),
    "min": _min_max("min", "olt"),
    "max": _min_max("max", "ogt"),
    "scale2": _scale2,
    "and": _arithmetic("", "and"),
    "or": _arithmetic("", "or"),
    "xor": _arithmetic("", "xor"),
    "not": _not,
    "shl": _arithmetic("", "shl"),
    "lshr": _arithmetic("", "lshr"),
    "ashr": _arithmetic("", "ashr"),
    "ctlz": _intrinsic("ctlz", False),
    "cttz": _intrinsic("cttz", False),
    "ctpop": _intrinsic("ctpop"),
    "eq": _comparison("oeq", "eq", "eq"),
    "ne": _comparison("une", "ne", "ne"),
    "lt": _comparison("olt", "slt", "ult"),
    "le": _comparison("ole", "sle", "ule"),
    "gt": _comparison("ogt", "sgt", "ugt"),
    "ge": _comparison("oge", "sge", "uge"),
    "add_fits": _fits("add"),
    "sub_fits": _fits("sub"),
    "mul_fits": _fits("mul"),
    "select": _select,
    "convert": _convert,
    "half_to_float": _half_to_float,
    "float_to_half": _float_to_half,
    "bitcast": _bitcast,
    "table": _table,
}
