"""Scalar primitives spelled as LLVM instructions, for one lane or for a vector of lanes.

`INSTRUCTIONS[op](e, node, lanes, *operands)` emits `node` through the emitter `e` and returns the name
of the value. All operands are texts of the same number of lanes. There is no fast-math flag
anywhere, and no value that a program can see is poison: an operation that LLVM leaves undefined for
some operands is either excluded by the primitive's contract or guarded here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from ...ir.types import BASIC, BOOL, DTYPE_NAMES, F32, F64, I32, I64
from ..scalar import DType, Expr

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


def constant(value: Any, dtype: DType, lanes: int) -> str:
    text = number(value, dtype)
    return text if lanes == 1 else f"splat ({SCALAR_TYPES[dtype]} {text})"


Instruction = Callable[..., str]


def intrinsic(
    e: TextEmitter, name: str, dtype: DType, lanes: int, operands: Sequence[str], extra: str = ""
) -> str:
    """Call `llvm.<name>`, overloaded on `dtype`: all operands and the result have that type."""
    key = (name, dtype, lanes)
    known = e.signatures.get(key)
    if known is None:
        ty = type_text(dtype, lanes)
        symbol = f"@llvm.{name}.{suffix(dtype, lanes)}"
        flag = ", i1" if extra else ""
        e.declarations.add(f"declare {ty} {symbol}({', '.join([ty] * len(operands))}{flag})")
        known = e.signatures[key] = (ty, symbol)
    ty, symbol = known
    arguments = ", ".join([f"{ty} {x}" for x in operands])
    return e.value_of(f"call {ty} {symbol}({arguments}{extra})")


def _arithmetic(floating: str | None, signed: str, unsigned: str | None = None) -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, a: str, b: str) -> str:
        kind = node.dtype.kind
        name = floating if kind == "f" else unsigned if kind != "i" and unsigned else signed
        return e.value_of(f"{name} {type_text(node.dtype, lanes)} {a}, {b}")

    return emit


def _comparison(floating: str, signed: str, unsigned: str) -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, a: str, b: str) -> str:
        dtype = node.args[0].dtype
        test = floating if dtype.kind == "f" else signed if dtype.kind == "i" else unsigned
        return e.value_of(f"{test} {type_text(dtype, lanes)} {a}, {b}")

    return emit


def _intrinsic(name: str, extra: str = "") -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, *operands: str) -> str:
        return intrinsic(e, name, node.dtype, lanes, operands, extra)

    return emit


def _abs(e: TextEmitter, node: Expr, lanes: int, a: str) -> str:
    if node.dtype.kind == "f":
        return intrinsic(e, "fabs", node.dtype, lanes, (a,))
    return intrinsic(e, "abs", node.dtype, lanes, (a,), ", i1 false")


def _not(e: TextEmitter, node: Expr, lanes: int, a: str) -> str:
    ones = constant(True if node.dtype == BOOL else -1, node.dtype, lanes)
    return e.value_of(f"xor {type_text(node.dtype, lanes)} {a}, {ones}")


def _neg(e: TextEmitter, node: Expr, lanes: int, a: str) -> str:
    return e.value_of(f"fneg {type_text(node.dtype, lanes)} {a}")


def _min_max(name: str, test: str) -> Instruction:
    def emit(e: TextEmitter, node: Expr, lanes: int, a: str, b: str) -> str:
        dtype = node.dtype
        if dtype.kind != "f":
            return intrinsic(e, ("s" if dtype.kind == "i" else "u") + name, dtype, lanes, (a, b))
        ty = type_text(dtype, lanes)
        better = e.value_of(f"fcmp {test} {ty} {b}, {a}")
        return _choose(e, better, ty, b, a, lanes)

    return emit


def _choose(e: TextEmitter, condition: str, ty: str, a: str, b: str, lanes: int) -> str:
    return e.value_of(f"select {type_text(BOOL, lanes)} {condition}, {ty} {a}, {ty} {b}")


def _select(e: TextEmitter, node: Expr, lanes: int, c: str, a: str, b: str) -> str:
    return _choose(e, c, type_text(node.dtype, lanes), a, b, lanes)


def _divide(e: TextEmitter, node: Expr, lanes: int, a: str, b: str) -> str:
    """Integer vectors up to 32 bits divide in floating point, which is exact there: the distance of
    a quotient from the next integer is more than the rounding error. x86 has no vector division;
    a constant divisor becomes a multiplication inside LLVM."""
    dtype = node.dtype
    ty = type_text(dtype, lanes)
    if dtype.kind == "f":
        return e.value_of(f"fdiv {ty} {a}, {b}")
    sign = "s" if dtype.kind == "i" else "u"
    if lanes == 1 or dtype.itemsize == 8 or node.args[1].op == "const":
        return e.value_of(f"{sign}div {ty} {a}, {b}")
    real = type_text(F32 if dtype.itemsize < 4 else F64, lanes)
    wide = type_text(I32 if dtype != U32 else U32, lanes)
    if dtype.itemsize < 4:  # LLVM converts no narrow vectors well
        extend = "sext" if sign == "s" else "zext"
        a, b = (e.value_of(f"{extend} {ty} {x} to {wide}") for x in (a, b))
    to_float = "sitofp" if sign == "s" or dtype.itemsize < 4 else "uitofp"
    x, y = (e.value_of(f"{to_float} {wide} {v} to {real}") for v in (a, b))
    quotient = e.value_of(f"fdiv {real} {x}, {y}")
    back = "fptosi" if to_float == "sitofp" else "fptoui"
    q = e.value_of(f"{back} {real} {quotient} to {wide}")
    return q if dtype.itemsize == 4 else e.value_of(f"trunc {wide} {q} to {ty}")


def _remainder(e: TextEmitter, node: Expr, lanes: int, a: str, b: str) -> str:
    ty = type_text(node.dtype, lanes)
    if lanes == 1 or node.dtype.itemsize == 8 or node.args[1].op == "const":
        return e.value_of(f"{'s' if node.dtype.kind == 'i' else 'u'}rem {ty} {a}, {b}")
    q = _divide(e, node, lanes, a, b)
    return e.value_of(f"sub {ty} {a}, {e.value_of(f'mul {ty} {q}, {b}')}")


def _high_product(e: TextEmitter, node: Expr, lanes: int, a: str, b: str) -> str:
    ty = type_text(node.dtype, lanes)
    bits = node.dtype.itemsize * 8
    op = e.value_of
    if bits < 64 or lanes == 1:
        wide = f"i{2 * bits}" if lanes == 1 else f"<{lanes} x i{2 * bits}>"
        amount = str(bits) if lanes == 1 else f"splat (i{2 * bits} {bits})"
        x, y = (op(f"zext {ty} {v} to {wide}") for v in (a, b))
        product = op(f"mul {wide} {x}, {y}")
        return op(f"trunc {wide} {op(f'lshr {wide} {product}, {amount}')} to {ty}")
    low, half = f"splat (i64 {0xFFFFFFFF})", "splat (i64 32)"
    a0, b0 = (op(f"and {ty} {v}, {low}") for v in (a, b))
    a1, b1 = (op(f"lshr {ty} {v}, {half}") for v in (a, b))
    p00, p01, p10, p11 = (
        op(f"mul {ty} {x}, {y}") for x, y in ((a0, b0), (a0, b1), (a1, b0), (a1, b1))
    )
    middle = op(f"add {ty} {op(f'lshr {ty} {p00}, {half}')}, {op(f'and {ty} {p01}, {low}')}")
    middle = op(f"add {ty} {middle}, {op(f'and {ty} {p10}, {low}')}")
    high = op(f"add {ty} {p11}, {op(f'lshr {ty} {p01}, {half}')}")
    high = op(f"add {ty} {high}, {op(f'lshr {ty} {p10}, {half}')}")
    return op(f"add {ty} {high}, {op(f'lshr {ty} {middle}, {half}')}")


def _scale2(e: TextEmitter, node: Expr, lanes: int, a: str, n: str) -> str:
    dtype = node.dtype
    ty, count = type_text(dtype, lanes), type_text(I32, lanes)
    if e.has_scalef and lanes > 1:  # one instruction, vscalef
        symbol = f"@llvm.ldexp.{suffix(dtype, lanes)}.{suffix(I32, lanes)}"
        e.declarations.add(f"declare {ty} {symbol}({ty}, {count})")
        return e.value_of(f"call {ty} {symbol}({ty} {a}, {count} {n})")

    def shifted(amount: str) -> str:
        """2**amount, for an exponent of normal numbers."""
        whole = type_text(I32 if dtype == F32 else I64, lanes)
        if dtype == F64:
            amount = e.value_of(f"sext {count} {amount} to {whole}")
        fraction_bits, bias = (23, 127) if dtype == F32 else (52, 1023)
        integer = I32 if dtype == F32 else I64
        biased = e.value_of(f"add {whole} {amount}, {constant(bias, integer, lanes)}")
        raw = e.value_of(f"shl {whole} {biased}, {constant(fraction_bits, integer, lanes)}")
        return e.value_of(f"bitcast {whole} {raw} to {ty}")

    def times(x: str, amount: str) -> str:
        return e.value_of(f"fmul {ty} {x}, {shifted(amount)}")

    def minus(x: str, y: str) -> str:
        return e.value_of(f"sub {count} {x}, {y}")

    if node.attr:  # two halves: the first product is a normal number, so only the second one rounds
        limit = 254 if dtype == F32 else 2044
        n = intrinsic(e, "smax", I32, lanes, (n, constant(-limit, I32, lanes)))
        n = intrinsic(e, "smin", I32, lanes, (n, constant(limit, I32, lanes)))
        half = e.value_of(f"ashr {count} {n}, {constant(1, I32, lanes)}")
        return times(times(a, half), minus(n, half))
    # Steps of at most `top` up, where nothing rounds, and of `down` below `bottom`: what is
    # denormal after such a step is so small that the remaining steps make it zero either way.
    bottom, down, top, steps = (
        (-126, -126 + 24, 127, 2) if dtype == F32 else (-1022, -1022 + 53, 1023, 2)
    )
    span = 380 if dtype == F32 else 2200
    n = intrinsic(e, "smax", I32, lanes, (n, constant(-span, I32, lanes)))
    n = intrinsic(e, "smin", I32, lanes, (n, constant(span, I32, lanes)))
    for _ in range(steps):
        low = e.value_of(f"icmp slt {count} {n}, {constant(bottom, I32, lanes)}")
        capped = intrinsic(e, "smin", I32, lanes, (n, constant(top, I32, lanes)))
        step = _choose(e, low, count, constant(down, I32, lanes), capped, lanes)
        a, n = times(a, step), minus(n, step)
    n = intrinsic(e, "smax", I32, lanes, (n, constant(bottom, I32, lanes)))
    return times(a, n)


def _convert(e: TextEmitter, node: Expr, lanes: int, a: str) -> str:
    source, dtype = node.args[0].dtype, node.dtype
    old, new = type_text(source, lanes), type_text(dtype, lanes)
    if dtype == BOOL:
        if source.kind == "f":
            return e.value_of(f"fcmp une {old} {a}, {constant(0.0, source, lanes)}")
        return e.value_of(f"icmp ne {old} {a}, {constant(0, source, lanes)}")
    if source.kind == "f":
        if dtype.kind == "f":
            widen = dtype.itemsize > source.itemsize
            return e.value_of(f"{'fpext' if widen else 'fptrunc'} {old} {a} to {new}")
        return _to_integer(e, a, source, dtype, lanes, fits=bool(node.attr))
    if dtype.kind == "f":
        return e.value_of(f"{'sitofp' if source.kind == 'i' else 'uitofp'} {old} {a} to {new}")
    if old == new:
        return a
    if source != BOOL and dtype.itemsize < source.itemsize:
        return e.value_of(f"trunc {old} {a} to {new}")
    return e.value_of(f"{'sext' if source.kind == 'i' else 'zext'} {old} {a} to {new}")


def _to_integer(e: TextEmitter, a: str, source: DType, dtype: DType, lanes: int, fits: bool) -> str:
    """NumPy's conversion on x86-64: through the instruction of 32 or 64 bits, whose answer to what
    does not fit is the smallest integer; u32 and u64 take off the upper half first."""
    ty = type_text(source, lanes)
    bits = max(dtype.itemsize * 8, 32)
    wide_dtype = I32 if bits == 32 else I64
    wide = type_text(wide_dtype, lanes)
    if fits:
        unsigned = dtype.kind == "u" and dtype.itemsize >= 4
        r = e.value_of(f"{'fptoui' if unsigned else 'fptosi'} {ty} {a} to {wide}")
    else:
        half = constant(2.0 ** (bits - 1), source, lanes)
        smallest = constant(-(2 ** (bits - 1)), wide_dtype, lanes)
        upper = ""
        if dtype.kind == "u" and dtype.itemsize >= 4:
            upper = e.value_of(f"fcmp oge {ty} {a}, {half}")
            a = _choose(e, upper, ty, e.value_of(f"fsub {ty} {a}, {half}"), a, lanes)
        fitting = e.value_of(f"fcmp olt {ty} {intrinsic(e, 'fabs', source, lanes, (a,))}, {half}")
        r = e.value_of(f"fptosi {ty} {a} to {wide}")
        r = _choose(e, fitting, wide, r, smallest, lanes)
        if upper:
            r = _choose(e, upper, wide, e.value_of(f"xor {wide} {r}, {smallest}"), r, lanes)
    return (
        r
        if dtype.itemsize * 8 == bits
        else e.value_of(f"trunc {wide} {r} to {type_text(dtype, lanes)}")
    )


def _half_to_float(e: TextEmitter, node: Expr, lanes: int, a: str) -> str:
    if not e.has_half:
        return e.half_by_bits(node, lanes, a)
    bits, half = type_text(node.args[0].dtype, lanes), _half_type(lanes)
    value = e.value_of(f"bitcast {bits} {a} to {half}")
    return e.value_of(f"fpext {half} {value} to {type_text(F32, lanes)}")


def _float_to_half(e: TextEmitter, node: Expr, lanes: int, a: str) -> str:
    if not e.has_half:
        return e.half_by_bits(node, lanes, a)
    half = _half_type(lanes)
    value = e.value_of(f"fptrunc {type_text(F32, lanes)} {a} to {half}")
    return e.value_of(f"bitcast {half} {value} to {type_text(node.dtype, lanes)}")


def _half_type(lanes: int) -> str:
    return "half" if lanes == 1 else f"<{lanes} x half>"


def _bitcast(e: TextEmitter, node: Expr, lanes: int, a: str) -> str:
    old, new = type_text(node.args[0].dtype, lanes), type_text(node.dtype, lanes)
    return a if old == new else e.value_of(f"bitcast {old} {a} to {new}")


def _table(e: TextEmitter, node: Expr, lanes: int, index: str) -> str:
    dtype = node.dtype
    scalar, size = SCALAR_TYPES[dtype], dtype.itemsize
    elements = ", ".join(f"{scalar} {number(v, dtype)}" for v in node.attr)
    space = e.table_space
    base = e.define(
        "@table",
        f"private unnamed_addr {space}constant [{len(node.attr)} x {scalar}] [{elements}], align 64",
    )
    it = type_text(node.args[0].dtype, lanes)
    if lanes == 1:
        place = e.value_of(f"getelementptr {scalar}, ptr {space}{base}, {it} {index}")
        return e.value_of(f"load {scalar}, ptr {space}{place}, align {size}")
    ty, pointers, mask = type_text(dtype, lanes), f"<{lanes} x ptr>", type_text(BOOL, lanes)
    places = e.value_of(f"getelementptr {scalar}, ptr {base}, {it} {index}")
    symbol = f"@llvm.masked.gather.{suffix(dtype, lanes)}.v{lanes}p0"
    e.declarations.add(f"declare {ty} {symbol}({pointers}, {mask}, {ty})")
    every = f"{mask} {constant(True, BOOL, lanes)}"
    return e.value_of(f"call {ty} {symbol}({pointers} align {size} {places}, {every}, {ty} poison)")


INSTRUCTIONS: dict[str, Instruction] = {
    "add": _arithmetic("fadd", "add"),
    "sub": _arithmetic("fsub", "sub"),
    "mul": _arithmetic("fmul", "mul"),
    "div": _divide,
    "rem": _remainder,
    "mulhi": _high_product,
    "neg": _neg,
    "fma": _intrinsic("fma"),
    "sqrt": _intrinsic("sqrt"),
    "abs": _abs,
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "rint": _intrinsic("rint"),
    "copysign": _intrinsic("copysign"),
    "min": _min_max("min", "olt"),
    "max": _min_max("max", "ogt"),
    "scale2": _scale2,
    "and": _arithmetic(None, "and"),
    "or": _arithmetic(None, "or"),
    "xor": _arithmetic(None, "xor"),
    "not": _not,
    "shl": _arithmetic(None, "shl"),
    "lshr": _arithmetic(None, "lshr"),
    "ashr": _arithmetic(None, "ashr"),
    "ctlz": _intrinsic("ctlz", ", i1 false"),
    "cttz": _intrinsic("cttz", ", i1 false"),
    "ctpop": _intrinsic("ctpop"),
    "eq": _comparison("fcmp oeq", "icmp eq", "icmp eq"),
    "ne": _comparison("fcmp une", "icmp ne", "icmp ne"),
    "lt": _comparison("fcmp olt", "icmp slt", "icmp ult"),
    "le": _comparison("fcmp ole", "icmp sle", "icmp ule"),
    "gt": _comparison("fcmp ogt", "icmp sgt", "icmp ugt"),
    "ge": _comparison("fcmp oge", "icmp sge", "icmp uge"),
    "select": _select,
    "convert": _convert,
    "half_to_float": _half_to_float,
    "float_to_half": _float_to_half,
    "bitcast": _bitcast,
    "table": _table,
}
