"""What is made of random bits, exactly as NumPy and Python make it.

A law is written as instructions where it is short and asked for often (uniform numbers, integers, the
polar method of RandomState's normal numbers). Everything else calls the functions that NumPy's own
generators call, by address: `Target.RANDOM:NAME`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ....ir.types import F32, F64, I64
from ...llvm.builder import Value, constant
from ...llvm.text import TextEmitter
from ...target import Target
from .sources import PCG64, SOURCES, PythonTwister, Source, float_constant, twist

DType = np.dtype[np.generic]
One = Callable[[Source, Sequence[Value], DType], Value]
Many = Callable[[Source, Sequence[Value], DType, Value, int], None]


class Law(NamedTuple):
    """How numbers are drawn: `one`, or `many` into memory; `imports` are NumPy's functions."""

    one: One | None
    many: Many | None = None
    imports: tuple[str, ...] = ()


def symbol(name: str) -> str:
    """What the runtime knows a function of NumPy's by."""
    return f"{Target.RANDOM}:{name}"


def _called(source: Source, result: str, name: str, *args: Value) -> Value:
    """A function of NumPy's, whose first argument is the bit generator."""
    b = source.b
    arguments = (source.bitgen, *args)
    types = ", ".join(a.type for a in arguments)
    b.declare(name, f'declare {result} @"{symbol(name)}"({types})')
    text = f'call {result} @"{symbol(name)}"({", ".join(repr(a) for a in arguments)})'
    if result == "void":
        b.line(text)
        return Value("void", "")
    return b.fresh(result, text)


# Uniform numbers


def _random(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    return source.single() if dtype == F32 else source.double()


def _many(one: One) -> Many:
    """One number after the other, with the state in registers where it can be."""

    def write(
        source: Source, params: Sequence[Value], dtype: DType, out: Value, count: int
    ) -> None:
        b = source.b
        head, body, end = b.later("draw"), b.later("drawn"), b.later("filled")
        start = () if dtype == F32 else source.begin()  # words of 32 bits go through memory
        (i, *held) = b.parameters(head, "i64", *(v.type for v in start))
        b.jump(head, 0, *start)
        b.at(head)
        b.fork(i.ult(count), body, (), end)
        b.at(body)
        with b.scope():
            source.resume(tuple(held))
            value = one(source, params, dtype)
            b.store(value, out, i, value.type, align=dtype.itemsize)
            b.jump(head, i + 1, *source.registers())
        b.at(end)
        source.end(tuple(held))

    return write


# Integers: `low` and `high`, both of which may come


def _span(params: Sequence[Value]) -> tuple[Value, Value]:
    low, high = params
    return low, high - low


_FILLS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


def _fill_integers(
    source: Source, params: Sequence[Value], dtype: DType, out: Value, count: int
) -> None:
    """NumPy's function for arrays of this width."""
    b = source.b
    low, span = _span(params)
    if dtype == np.dtype(bool):
        name, type = "random_bounded_bool_fill", "i8"
        low, span = low.trunc("i1").zext("i8"), span.trunc("i1").zext("i8")
    else:
        name, type = f"random_bounded_{_FILLS[dtype.itemsize]}_fill", f"i{8 * dtype.itemsize}"
        low, span = (v if type == "i64" else v.trunc(type) for v in (low, span))
    masked = "true" if source.is_legacy else "false"
    b.declare(
        name,
        f'declare void @"{symbol(name)}"(ptr, {type} zeroext, {type} zeroext, i64, i1 zeroext, ptr)'
        if type in ("i8", "i16")
        else f'declare void @"{symbol(name)}"(ptr, {type}, {type}, i64, i1 zeroext, ptr)',
    )
    extend = " zeroext" if type in ("i8", "i16") else ""
    b.line(
        f'call void @"{symbol(name)}"(ptr {source.bitgen.text}, {type}{extend} {low.text}, '
        f"{type}{extend} {span.text}, i64 {count}, i1 zeroext {masked}, ptr {out.text})"
    )


def _integer(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    """Small spans of wide integers by instructions, Lemire's way; what is left by NumPy's function."""
    b, type = source.b, f"i{8 * dtype.itemsize}"
    if dtype.itemsize < 4 or source.is_legacy or isinstance(source, PythonTwister):
        return _integer_called(source, params, dtype)
    low, span = _span(params)
    short, long, on = b.later("short"), b.later("long"), b.later("integer")
    (result,) = b.parameters(on, type)
    b.fork((span - 1).ult(0xFFFFFFFE), short, (), long, hint=b.likely())
    b.at(long)
    with b.scope():
        b.jump(on, _integer_called(source, params, dtype))
    b.at(short)
    with b.scope():
        number = _lemire(source, span)
        start = low if type == "i64" else low.trunc(type)
        b.jump(on, (number if type == "i64" else number.trunc(type)) + start)
    b.at(on)
    return result


def _lemire(source: Source, span: Value) -> Value:
    """From 0 to `span`, by multiplying 32 bits; what would make some numbers likelier is refused."""
    b = source.b
    size = span + 1
    first = source.word32().zext("i64") * size
    rare, again, done = b.later("rare"), b.later("again"), b.later("taken")
    (product,) = b.parameters(done, "i64")
    left = first & 0xFFFFFFFF
    b.fork(left.ult(size), rare, (), done, (first,), b.unlikely())
    b.at(rare)
    with b.scope():
        threshold = (0xFFFFFFFF - span) % size
        (tried,) = b.parameters(again, "i64")
        b.jump(again, first)
        b.at(again)
        following = b.later("refused")
        b.fork((tried & 0xFFFFFFFF).ult(threshold), following, (), done, (tried,))
        b.at(following)
        b.jump(again, source.word32().zext("i64") * size)
    b.at(done)
    return product >> 32


def _integer_called(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    type = "i8" if dtype == np.dtype(bool) else f"i{8 * dtype.itemsize}"
    slot = _slot(source.b, type)
    _fill_integers(source, params, dtype, slot, 1)
    value = source.b.load(type, slot, align=dtype.itemsize)
    return value.ne(0) if dtype == np.dtype(bool) else value


def _slot(b: TextEmitter, type: str, count: int = 1) -> Value:
    """Memory on the stack, of the function and not of a trip of its loops."""
    name = f"%slot{next(b.code.numbers)}"
    b.code.start.lines.append(f"  {name} = alloca {type}, i64 {count}, align 16")
    return Value("ptr", name, b)


# Functions of NumPy's


def _function(name: str, result: str = "double") -> One:
    def write(source: Source, params: Sequence[Value], dtype: DType) -> Value:
        if dtype == F32:
            return _called(source, "float", f"{name}_f", *params)
        return _called(source, result, name, *params)

    return write


def _filled(name: str) -> Many:
    """NumPy's functions for arrays."""

    def write(
        source: Source, params: Sequence[Value], dtype: DType, out: Value, count: int
    ) -> None:
        suffix = "_fill_f" if dtype == F32 else "_fill"
        number = source.b.literal("i64", count)
        _called(source, "void", name + suffix, number, out)

    return write


_LAYERS = 256  # of a ziggurat; see `runtime.random_functions`


def _ziggurat(name: str, layer_at: int, number_at: int, sign_at: int | None) -> One:
    """Marsaglia and Tsang's method: most numbers are a product, by the layer that some of the bits
    choose. For the others NumPy's function begins again with the same bits."""
    called = _function(f"random_standard_{name}")
    table_name = symbol(f"{name}_layers")

    def write(source: Source, params: Sequence[Value], dtype: DType) -> Value:
        if dtype == F32 or not isinstance(source, PCG64):
            return called(source, params, dtype)
        b = source.b
        b.declare(table_name, f'@"{table_name}" = external global i8')
        table = Value("ptr", f'@"{table_name}"', b)
        between = source.registers()  # those of a loop that draws
        if not between:
            source.resume(source.begin())
        (before,) = source.registers()
        bits = source.word64()
        (after,) = source.registers()
        layer = (bits >> layer_at) & (_LAYERS - 1)
        number = bits >> number_at
        if sign_at is not None:
            number = number & ((1 << 52) - 1)
        unit = b.load("double", table, layer, "double", align=8)
        below = b.load("i64", b.offset(table, 8 * _LAYERS), layer, "i64", align=8)
        x = number.to("uitofp", "double") * unit
        if sign_at is not None:
            turned = x.to("bitcast", "i64") ^ ((bits >> sign_at) << 63)
            x = turned.to("bitcast", "double")
        taken, refused, on = b.later("taken"), b.later("refused"), b.later("drawn")
        result, state = b.parameters(on, "double", after.type)
        b.fork(number.ult(below), taken, (), refused, hint=b.likely())
        b.at(taken)
        if not between:
            source.end((after,))
        b.jump(on, x, after)
        b.at(refused)
        with b.scope():
            if between:
                source.end((before,))
            other = called(source, params, dtype)
            b.jump(on, other, source.again() if between else after)
        b.at(on)
        source.resume((state,) if between else ())
        return result

    return write


def _layered(name: str, layer_at: int, number_at: int, sign_at: int | None) -> Law:
    one = _ziggurat(name, layer_at, number_at, sign_at)
    filled, many = _filled(f"random_standard_{name}"), _many(one)

    def write(
        source: Source, params: Sequence[Value], dtype: DType, out: Value, count: int
    ) -> None:
        how = many if dtype == F64 and isinstance(source, PCG64) else filled
        how(source, params, dtype, out, count)

    function = f"random_standard_{name}"
    return Law(one, write, (function, f"{function}_fill", f"{name}_layers"))


_BINOMIAL_WORDS = 40  # a binomial_t has 18 words: what NumPy keeps from one draw to the next


def _binomial(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    """NumPy's function keeps a table of the last n and p; ours begins empty, with the same numbers."""
    b = source.b
    n, p = params
    scratch = _slot(b, "i64", _BINOMIAL_WORDS)
    b.fill(scratch, 0, 8 * _BINOMIAL_WORDS)
    name = "random_binomial"
    b.declare(name, f'declare i64 @"{symbol(name)}"(ptr, double, i64, ptr)')
    arguments = ", ".join(map(repr, (source.bitgen, p, n, scratch)))
    return b.fresh("i64", f'call i64 @"{symbol(name)}"({arguments})')


def _legacy_binomial(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    """RandomState's choice between the two methods, which draws for n = 0 and p = 0, too."""
    b = source.b
    n, p = params
    scratch = _slot(b, "i64", _BINOMIAL_WORDS)
    b.fill(scratch, 0, 8 * _BINOMIAL_WORDS)
    half, one = (float_constant(x) for x in (0.5, 1.0))
    low = b.compare_floats("ole", p, half)
    q = b.select(low, p, Value("double", one.text, b) - p)
    few = b.compare_floats("ole", q * n.to("sitofp", "double"), float_constant(30.0))
    inverted, rejected, on = b.later("inversion"), b.later("btpe"), b.later("binomial")
    (result,) = b.parameters(on, "i64")
    b.branch(few, inverted, rejected)
    for block, name in ((inverted, "inversion"), (rejected, "btpe")):
        b.at(block)
        with b.scope():
            b.jump(on, _called(source, "i64", f"random_binomial_{name}", n, q, scratch))
    b.at(on)
    return b.select(low, result, n - result)


def _permutation(
    source: Source, params: Sequence[Value], dtype: DType, out: Value, count: int
) -> None:
    """Fisher and Yates: the last one trades places with one of those up to it."""
    b = source.b
    fill, filled, head, body, end = (
        b.later(h) for h in ("number", "numbered", "swap", "swapped", "shuffled")
    )
    (k,) = b.parameters(fill, "i64")
    b.jump(fill, 0)
    b.at(fill)
    with b.scope():
        b.store(k, out, k, "i64", align=8)
        b.fork((k + 1).ult(count), fill, (k + 1,), filled)
    b.at(filled)
    (i,) = b.parameters(head, "i64")
    b.jump(head, count - 1)
    b.at(head)
    b.fork(i > 0, body, (), end)
    b.at(body)
    with b.scope():
        if isinstance(source, PythonTwister):
            j = _below(source, [i + 1], dtype)
        else:
            j = _called(source, "i64", "random_interval", i)
        here, there = (b.load("i64", out, at, "i64", align=8) for at in (i, j))
        b.store(there, out, i, "i64", align=8)
        b.store(here, out, j, "i64", align=8)
        b.jump(head, i - 1)
    b.at(end)


# RandomState's own


def _logarithm(b: TextEmitter, x: Value) -> Value:
    """The C library's, which NumPy's code calls."""
    b.declare("log", "declare double @log(double)")
    return b.fresh("double", f"call double @log(double {x.text})")


_HAS_NORMAL, _NORMAL = 8, 16  # in an aug_bitgen_t


def _polar(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    """Marsaglia's polar method: two normal numbers at a time, of which the second is kept."""
    b = source.b
    kept, draw, found, on = (b.later(h) for h in ("kept", "polar", "found", "normal"))
    (number,) = b.parameters(on, "double")
    has = b.load("i32", source.place, _HAS_NORMAL, align=4)
    b.fork(has.ne(0), kept, (), draw)
    b.at(kept)
    with b.scope():
        old = b.load("double", source.place, _NORMAL, align=8)
        b.store(constant("i32", 0), source.place, _HAS_NORMAL, align=4)
        b.store(float_constant(0.0), source.place, _NORMAL, align=8)
        b.jump(on, old)
    b.at(draw)
    with b.scope():
        x, y = (source.double() * float_constant(2.0) - float_constant(1.0) for _ in range(2))
        square = x * x + y * y
        outside = b.compare_floats("oge", square, float_constant(1.0))
        outside = outside | b.compare_floats("oeq", square, float_constant(0.0))
        b.fork(outside, draw, (), found)
        b.at(found)
        ratio = _logarithm(b, square) * float_constant(-2.0)
        ratio = b.binary("fdiv", ratio, square)
        factor = b.intrinsic("sqrt", "double", ratio)
        b.store(factor * x, source.place, _NORMAL, align=8)
        b.store(constant("i32", 1), source.place, _HAS_NORMAL, align=4)
        b.jump(on, factor * y)
    b.at(on)
    return number


def _inverse_exponential(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    u = Value("double", float_constant(1.0).text, source.b) - source.double()
    return source.b.negated(_logarithm(source.b, u))


# Python's


def _bits(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    """1 to 32 bits, of one word."""
    (k,) = params
    return source.word32().zext("i64") >> (32 - k)


def _below(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    """From 0 to n - 1, for 1 <= n < 2**63: as many bits as n has, again if they are too many."""
    b = source.b
    (n,) = params
    size = 64 - b.intrinsic("ctlz", "i64", n, False)
    again, long, short, on, done = (b.later(h) for h in ("again", "long", "short", "bits", "below"))
    (drawn,) = b.parameters(on, "i64")
    (result,) = b.parameters(done, "i64")
    b.jump(again)
    b.at(again)
    with b.scope():
        first = source.word32().zext("i64")
        b.fork(size.ugt(32), long, (), short)
        b.at(long)
        with b.scope():
            rest = source.word32().zext("i64") >> (64 - size)
            b.jump(on, first | (rest << 32))
        b.at(short)
        with b.scope():
            b.jump(on, first >> (32 - size))
        b.at(on)
        b.fork(drawn.ult(n), done, (drawn,), again)
    b.at(done)
    return result


_KINDERMAN_MONAHAN = 4 * math.exp(-0.5) / math.sqrt(2.0)


def _ratio(source: Source, params: Sequence[Value], dtype: DType) -> Value:
    """`normalvariate`: a normal number as a ratio of uniform ones, after Kinderman and Monahan."""
    b = source.b
    again, done = b.later("again"), b.later("normal")
    (result,) = b.parameters(done, "double")
    b.jump(again)
    b.at(again)
    with b.scope():
        u = source.double()
        v = Value("double", float_constant(1.0).text, b) - source.double()
        scaled = (u - float_constant(0.5)) * float_constant(_KINDERMAN_MONAHAN)
        z = b.binary("fdiv", scaled, v)
        square = b.binary("fdiv", z * z, float_constant(4.0))
        accepted = b.compare_floats("ole", square, b.negated(_logarithm(b, v)))
        b.fork(accepted, done, (z,), again)
    b.at(done)
    return result


# Which there are


def _call(name: str, result: str = "double", function: str = "") -> Law:
    function = function or f"random_{name}"
    return Law(_function(function, result), None, (function,))


_SHARED = {
    "random": Law(_random, _many(_random)),
    "integers": Law(
        _integer,
        _fill_integers,
        tuple(f"random_bounded_{width}_fill" for width in ("bool", *_FILLS.values())),
    ),
    "permutation": Law(None, _permutation, ("random_interval",)),
    "laplace": _call("laplace"),
    "gumbel": _call("gumbel"),
    "logistic": _call("logistic"),
    "triangular": _call("triangular"),
    "poisson": _call("poisson", "i64"),
    "binomial": Law(_binomial, None, ("random_binomial",)),
}
_GENERATORS = {
    **_SHARED,
    "standard_normal": _layered("normal", 0, 9, 8),
    "standard_exponential": _layered("exponential", 3, 11, None),
    "standard_gamma": _call("standard_gamma"),
    "geometric": _call("geometric", "i64"),
    "negative_binomial": _call("negative_binomial", "i64"),
    "zipf": _call("zipf", "i64"),
    "logseries": _call("logseries", "i64"),
    "hypergeometric": _call("hypergeometric", "i64"),
    **{
        name: _call(name)
        for name in (
            *("beta", "chisquare", "f", "noncentral_chisquare", "noncentral_f", "standard_t"),
            *("standard_cauchy", "vonmises", "pareto", "weibull", "power", "lognormal"),
            *("rayleigh", "wald"),
        )
    },
}
_LEGACY = {
    **_SHARED,
    "standard_normal": Law(_polar, _many(_polar)),
    "standard_exponential": Law(_inverse_exponential, _many(_inverse_exponential)),
    "binomial": Law(_legacy_binomial, None, ("random_binomial_inversion", "random_binomial_btpe")),
}
_PYTHON = {
    "random": Law(_random),
    "below": Law(_below),
    "bits": Law(_bits),
    "permutation": Law(None, _permutation),
    "python.expovariate": Law(_inverse_exponential),
    "python.normalvariate": Law(_ratio),
}
OF_CLASS: Mapping[str, Mapping[str, Law]] = {
    "Generator": _GENERATORS,
    "RandomState": _LEGACY,
    "Random": _PYTHON,
}


def law_of(law: str, source: str, dtype: DType, options: tuple[object, ...]) -> Law | None:
    """How native code draws; None if it asks NumPy or Python to."""
    law_function = OF_CLASS[source.partition(":")[0]].get(law) if source in SOURCES else None
    if law_function is None or options:
        return None
    if law not in ("integers", "permutation") and dtype not in (F64, F32, I64):
        return None
    return law_function


def helpers_of(source: str) -> tuple[object, ...]:
    """Functions that a source calls in the module."""
    return (twist(),) if SOURCES[source] is PythonTwister else ()
