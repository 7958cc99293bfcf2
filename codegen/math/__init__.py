"""Elementwise ops as scalar expressions.

`EXPANSIONS[name](*operands, **attrs)` is the elementwise graph op `name` in terms of the primitives of
`codegen.scalar`. A target that implements those has every op; nothing here knows about vectors or about
LLVM. Results follow NumPy, special values included; docs/concepts/accuracy.md lists the largest errors
measured.

The algorithms stand in one module per family; `docs/minimax.py` made their
coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..scalar import Expr, binary, bitcast, compare, convert, fma, select, unary
from . import (
    arithmetic,
    error_function,
    exponential,
    floats,
    integers,
    inverse,
    logarithm,
    power,
    random,
    small_floats,
    trigonometry,
)

Expansion = Callable[..., Expr]


def _primitive(name: str, arity: int) -> Expansion:
    if arity == 1:
        return lambda x: unary(name, x)
    return lambda x, y: binary(name, x, y)


def _comparison(name: str) -> Expansion:
    return lambda x, y: compare(name, x, y)


def _by_kind(floats: Expansion, others: Expansion) -> Expansion:
    def expand(x: Expr, y: Expr) -> Expr:
        return floats(x, y) if x.dtype.kind == "f" else others(x, y)

    return expand


EXPANSIONS: dict[str, Expansion] = {
    # exact, one primitive each
    **{name: _primitive(name, 1) for name in ("floor", "ceil", "trunc", "rint", "sqrt")},
    **{name: _primitive(name, 2) for name in ("add", "sub", "mul", "div", "copysign")},
    **{name: _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{name: _comparison(name) for name in ("add_fits", "sub_fits", "mul_fits")},
    "bitwise_and": _primitive("and", 2),
    "bitwise_or": _primitive("or", 2),
    "bitwise_xor": _primitive("xor", 2),
    "invert": _primitive("not", 1),
    "select": select,
    "fma": fma,
    "convert": convert,
    "bitcast": bitcast,
    "stop_gradient": lambda x: x,
    # exact, composed
    "neg": arithmetic.negative,
    "abs": arithmetic.absolute,
    "sign": arithmetic.sign,
    "isnan": arithmetic.is_nan,
    "isinf": arithmetic.is_infinite,
    "isfinite": floats.is_finite,
    "signbit": arithmetic.signbit,
    "maximum": arithmetic.maximum,
    "minimum": arithmetic.minimum,
    "fmax": arithmetic.fmax,
    "fmin": arithmetic.fmin,
    "heaviside": arithmetic.heaviside,
    "nextafter": arithmetic.nextafter,
    "ldexp": arithmetic.ldexp,
    "frexp_fraction": arithmetic.frexp_fraction,
    "frexp_exponent": arithmetic.frexp_exponent,
    "floor_divide": _by_kind(arithmetic.floor_divide, integers.floor_divide),
    "remainder": _by_kind(arithmetic.remainder, integers.remainder),
    "fmod": _by_kind(arithmetic.fmod, integers.fmod),
    "left_shift": integers.left_shift,
    "right_shift": integers.right_shift,
    "gcd": integers.gcd,
    "lcm": integers.lcm,
    "threefry": random.threefry,
    # approximated
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "arcsinh": logarithm.arcsinh,
    "arccosh": logarithm.arccosh,
    "arctanh": logarithm.arctanh,
    "logaddexp": logarithm.logaddexp,
    "logaddexp2": logarithm.logaddexp2,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "tan": trigonometry.tan,
    "arcsin": inverse.arcsin,
    "arccos": inverse.arccos,
    "arctan": inverse.arctan,
    "arctan2": inverse.arctan2,
    "erf": error_function.erf,
    "erfinv": error_function.erfinv,
    "pow": _by_kind(power.power, integers.power),
    "cbrt": power.cbrt,
    "hypot": power.hypot,
    # floats of 16 and 8 bits
    "widen": small_floats.widen,
    "narrow": small_floats.narrow,
}


def expand(name: str, *operands: Expr, **attrs: Any) -> Expr:
    """The elementwise op `name` of these operands."""
    return EXPANSIONS[name](*operands, **attrs)


__all__ = ["EXPANSIONS", "Expansion", "expand"]
