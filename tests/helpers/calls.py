"""What a table of calls is made of: operands, and expressions over them (`function_calls.py`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import jitney as jt
from jitney.ir.record import record
from jitney.ir.types import BOOL, F64, I64, is_complex, is_float, real_dtype

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
SIZES = {"b": 2, "m": 3, "n": 4, "k": 5}


@record
class Operand:
    """What an array argument may be.

    `dims` are letters for sizes, or "*" for any shape (all operands with "*" share it). Values are apart
    from each other, and from `low` to `high`. `kinds` are the kinds of dtypes that make sense: bool,
    ints, unsigned ints, floats, complex numbers; "B" is uint8 alone. `form` is what a matrix is made to
    be, or "sorted"; `least` the smallest size of a dim.
    """

    dims: str
    low: float = -2.0
    high: float = 2.0
    kinds: str = "biufc"
    form: str = ""
    least: int = 0

    def default(self, dtype: Any) -> np.dtype[Any]:
        """The dtype itself, if its kind makes sense here."""
        if self.kinds in "bB":
            return BOOL if self.kinds == "b" else np.dtype(np.uint8)
        if "f" not in self.kinds:
            return I64
        return real_dtype(np.dtype(dtype)) if "c" not in self.kinds else np.dtype(dtype)


def _names(expression: str) -> list[str]:
    """Names of operands and choices, in the order of their first mention."""
    nodes = sorted(
        (n.lineno, n.col_offset, n.id)
        for n in ast.walk(ast.parse(expression.strip(), mode="eval"))
        if isinstance(n, ast.Name)
    )
    return list(dict.fromkeys(name for *_, name in nodes))


class Call:
    """One expression of the table."""

    def __init__(
        self,
        expression: str,
        operands: Mapping[str, Operand],
        choices: Mapping[str, tuple[Any, ...]],
        elementwise: bool = False,
    ) -> None:
        names = _names(expression)
        self.expression = expression
        self.elementwise = elementwise  # an element of the result comes of one of each operand
        self.operands = {n: operands[n] for n in names if n in operands}
        self.choices = {n: choices[n] for n in names if n in choices}

    def __repr__(self) -> str:
        return self.expression

    def bind(self, chosen: Mapping[str, Any] = {}) -> Callable[..., Any]:
        """The function of its operands, with the given choices (by default the first of each)."""
        space = {"jt": jt, "np": np, **{n: chosen.get(n, c[0]) for n, c in self.choices.items()}}
        made: Callable[..., Any] = eval(
            f"lambda {', '.join(self.operands)}: {self.expression}", space
        )
        made.__name__ = "call"
        return made

    @property
    def function(self) -> Callable[..., Any]:
        """The function of its operands."""
        return self.bind()

    def arguments(self, dtype: Any = F64, seed: int = 0) -> list[Array]:
        """Small operands of the default shapes, of `dtype` where that makes sense."""
        rng = np.random.default_rng(seed)
        made = []
        for operand in self.operands.values():
            made.append(values(operand, default_shape(operand), operand.default(dtype), rng))
        return made


def default_shape(operand: Operand) -> Shape:
    if operand.dims == "*":
        return 3, 4
    return tuple(SIZES.get(c) or int(c) for c in operand.dims)


def values(operand: Operand, shape: Shape, dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """An array of the operand's domain, its elements apart from each other where that is possible."""
    count = int(np.prod(shape))
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    low, high = operand.low, operand.high
    if not (is_float(dtype) or is_complex(dtype)):
        if "f" in operand.kinds:  # a domain of floats
            low, high = (np.ceil(low) if low > 0 else -9), 10
        low = max(low, 0) if dtype.kind == "u" else low
        flat = rng.integers(int(low), int(high), count)
        flat = np.sort(flat) if operand.form == "sorted" else flat
        return flat.reshape(shape).astype(dtype)
    flat = _apart(low, high, count, rng)
    flat = np.sort(flat) if operand.form == "sorted" else flat
    if is_complex(dtype):
        flat = flat + 1j * _apart(-1, 1, count, rng)
    made = flat.reshape(shape)
    if operand.form in ("regular", "definite"):
        made = _invertible(made, operand.form == "definite")
    return made.astype(dtype)


def _apart(low: float, high: float, count: int, rng: np.random.Generator) -> Array:
    grid = (np.arange(count) + rng.uniform(0.2, 0.8, count)) / max(count, 1)
    return rng.permutation(low + (high - low) * grid)


def _invertible(a: Array, definite: bool) -> Array:
    n = a.shape[-1]
    if not definite:
        return a + 3 * np.eye(n)
    return a @ a.conj().swapaxes(-1, -2) + np.diag(1.0 + np.arange(n))
