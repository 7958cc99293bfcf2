"""How special functions take their operands."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...ir.types import C128, F32, F64, complex_dtype, is_complex, is_float, is_inexact, is_small
from ..arrays.common import broadcast_shape, broadcast_values, common_dtype, operand
from ..arrays.table import function, refuse_complex
from ..core.tracers import as_value, wrap
from ..messages.source import one_line
from .eager import Blockwise

F = TypeVar("F", bound=Callable[..., Any])

_SHAPES = (
    "Elementwise; operands broadcast. The result has their common float dtype (float64 for ints)."
)
_REAL = "Complex operands raise jt.errors.DTypeError."
_COMPLEX = "Complex operands give complex results."
_COMPLEX_ONLY = "The result is complex."


def special(
    *names: str,
    example: str,
    wide: bool = True,
    optional: int = 0,
    of_complex: Callable[..., Any] | None = None,
    complex_only: bool = False,
) -> Callable[[F], F]:
    """Enter the decorated function of arrays into the table, as `special.name`.

    It gets its operands as arrays of one shape and one dtype, that of `wide` functions being float64 and
    that of others float32 or float64, and its result (or each of several) is rounded to the operands'
    common float dtype (integers count as float64). Up to `optional` of the last operands may be left
    out, or None. Complex operands go to `of_complex`, as complex128 if `wide`; with `complex_only` real
    operands do so too. The documentation says so, and shows the `example` "arguments -> result".
    """

    def enter(compute: F) -> F:
        # A function with a derivative rule has one.
        plain = getattr(compute, "__wrapped__", compute)
        count = plain.__code__.co_argcount

        def common(args: tuple[Any, ...]) -> tuple[list[Any], np.dtype[Any]]:
            """The operands that were given, and the dtype of the result."""
            arguments = args[: len(args) - sum(a is None for a in args)]
            if not count - optional <= len(arguments) <= count or len(args) > count:
                raise TypeError(f"{names[0]}() takes {count} operands, got {len(args)}")
            operands = [operand(x) for x in arguments]
            dtype = common_dtype(*operands)
            if of_complex is None and is_complex(dtype):
                refuse_complex(names[0])
            dtype = dtype if is_inexact(dtype) else F64
            return operands, complex_dtype(dtype) if complex_only and is_float(dtype) else dtype

        @functools.wraps(compute)
        def traced(*args: Any) -> Any:
            operands, dtype = common(args)
            if is_float(dtype):
                chosen: Any = compute
                inside = F64 if wide else F32 if is_small(dtype) else dtype
            else:
                chosen, inside = of_complex, C128 if wide else dtype
            values = broadcast_values(operands, [inside] * len(operands), "operands")
            with one_line():
                results = chosen(*(wrap(v) for v in values))
            if isinstance(results, tuple):
                return tuple(wrap(as_value(part, dtype)) for part in results)
            return wrap(as_value(results, dtype))

        of_kinds = _REAL if of_complex is None else _COMPLEX_ONLY if complex_only else _COMPLEX
        arguments, result = example.split(" -> ")
        shown = result if result.startswith(("(", "np.")) else f"np.float64({result})"
        traced.__doc__ = (
            f"{inspect.cleandoc(compute.__doc__ or '')}\n\n{_SHAPES} {of_kinds}\n\n"
            f">>> jt.special.{names[0]}({arguments})\n{shown}\n"
        )
        blockwise = Blockwise(traced)

        @functools.wraps(traced)
        def reference(*args: Any) -> Any:
            listed = (list, tuple)
            operands, dtype = common(tuple(np.asarray(x) if type(x) in listed else x for x in args))
            broadcast_shape(operands, "operands")
            with np.errstate(all="ignore"):
                return blockwise(*(np.asarray(x).astype(dtype, copy=False) for x in operands))

        function(*(f"special.{n}" for n in names), composed=True, reference=reference)(traced)
        return compute

    return enter
