"""Python's operators: the ufunc that each is on arrays, and what holds for those that assign."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tracers import Tracer
from ..data.promotion import same_kind
from ..messages import errors
from ..messages.errors import complain

UNARY: dict[str, np.ufunc] = {
    "neg": np.negative,
    "pos": np.positive,
    "abs": np.absolute,
    "invert": np.invert,
}
BINARY: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
COMPARISONS: dict[str, np.ufunc] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}
SYMBOLS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
}


def check_in_place(ufunc: np.ufunc, dtype: np.dtype[Any], target: Tracer) -> None:
    """NumPy's same_kind rule for `target op= value` with a result of `dtype`."""
    if not same_kind(dtype, target.dtype):
        complain(
            errors.CastingError,
            f"Cannot cast ufunc '{ufunc.__name__}' output from {dtype!r} to {target.dtype!r} with "
            "casting rule 'same_kind'",
            f"write x = x {SYMBOLS.get(ufunc.__name__, 'op')} y for a result of dtype {dtype}, or "
            f"convert y with .astype(np.{target.dtype.name}).",
            operands={"x": target},
        )
