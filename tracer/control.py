"""Structured control flow: `cond`, `switch`, `while_loop`, `fori_loop`.

Outside of tracing, and on the values of an eager trace, they are plain Python. While a graph is
traced they become one op with regions, and only what runs is computed:

- Arrays and traced values that a branch or body closes over are found and passed in.
- A loop owns its carry: in-place assignment to it inside the body works and never reaches the
  arrays that `init` was made of. A branch may assign to its operands, which then change for the
  caller too, as in Python.
- A carry keeps its structure, shapes and dtypes. A Python number in `init` takes the type that the
  body makes of it, as in `jt.fori_loop(0, n, lambda i, c: c + x[i], 0.0)` with a float32 x.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.graph import Value
from ..ir.types import BOOL, I32, I64, is_integer
from . import errors, pytree
from .application import is_array
from .branches import branch_region
from .core import Tracer, as_value, current_trace, emit, weak_kind, wrap
from .errors import complain, describe
from .loops import while_region
from .promotion import kind_of, result_dtype

Function = Callable[..., Any]


def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """`true_fn(*operands)` if `pred` else `false_fn(*operands)`; `pred` is a scalar bool.

    Under jit both are traced and only the one taken is computed; they must return the same
    structure, shapes and dtypes. A predicate that is an ordinary Python bool just chooses.
    """
    _check_callable("cond", "true_fn", true_fn)
    _check_callable("cond", "false_fn", false_fn)
    _check_bool(pred, "the predicate of cond")
    if not _is_traced(pred):
        return (true_fn if pred else false_fn)(*operands)
    index = _op("convert", as_value(pred), dtype=I32)
    return branch_region("cond", index, [false_fn, true_fn], ["false_fn", "true_fn"], operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """`branches[index](*operands)`, the index clamped into the range of branches."""
    branches = list(branches)
    if not branches:
        complain(errors.ShapeError, "switch was given no branch", "give it a list of functions.")
    for i, branch in enumerate(branches):
        _check_callable("switch", f"branches[{i}]", branch)
    _check_integer(index, "the index of switch")
    last = len(branches) - 1
    if not _is_traced(index):
        return branches[min(max(operator.index(index), 0), last)](*operands)
    value = as_value(index)
    if last <= np.iinfo(value.dtype).max:  # else no value of this dtype is beyond the last
        value = _op("minimum", value, as_value(last, value.dtype))
    if value.dtype != I64:
        value = _op("convert", value, dtype=I64)
    value = _op("maximum", value, as_value(0, I64))
    names = [f"branch {i}" for i in range(len(branches))]
    return branch_region("switch", _op("convert", value, dtype=I32), branches, names, operands)


def while_loop(cond_fn: Function, body_fn: Function, init: Any) -> Any:
    """`carry = init; while cond_fn(carry): carry = body_fn(carry)`; returns the last carry.

    The carry is any tree of arrays and numbers; `cond_fn` returns a scalar bool.
    """
    _check_callable("while_loop", "cond_fn", cond_fn)
    _check_callable("while_loop", "body_fn", body_fn)
    if not _is_plain():
        return while_region(cond_fn, body_fn, init, "while_loop")
    carry = _own(init)
    while True:
        go_on = cond_fn(carry)
        _check_bool(go_on, "the condition of while_loop")
        if not go_on:
            return carry
        carry = body_fn(carry)


def fori_loop(lower: Any, upper: Any, body_fn: Function, init: Any) -> Any:
    """`carry = init; for i in range(lower, upper): carry = body_fn(i, carry)`; the last carry.

    The bounds are integers, and may be traced. `i` is a Python int if both bounds are, otherwise an
    integer of their common dtype.
    """
    _check_callable("fori_loop", "body_fn", body_fn)
    _check_integer(lower, "the lower bound of fori_loop")
    _check_integer(upper, "the upper bound of fori_loop")
    dtype = None
    if not weak_kind(lower) == weak_kind(upper) == "i":
        dtype = result_dtype(*(kind_of(np.result_type(x), weak_kind(x)) for x in (lower, upper)))
        if not is_integer(dtype):
            complain(
                errors.DTypeError,
                f"no integer dtype holds both bounds of fori_loop: NumPy promotes them to {dtype}",
                "convert one of them with .astype(np.int64).",
                operands={"lower": lower, "upper": upper},
            )
    if _is_plain():
        carry = _own(init)
        for i in range(operator.index(lower), operator.index(upper)):
            carry = body_fn(i if dtype is None else dtype.type(i), carry)
        return carry
    if dtype is not None:
        lower, upper = (wrap(as_value(bound, dtype)) for bound in (lower, upper))

    def body(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        i, rest = carry
        return i + 1, body_fn(i, rest)

    loop = while_region(lambda c: c[0] < upper, body, (lower, init), "fori_loop", counted=True)
    return loop[1]


def _is_plain() -> bool:
    """Whether values are at hand here, so that Python's own control flow serves."""
    trace = current_trace()
    return trace is None or trace.eager


def _is_traced(x: Any) -> bool:
    """Whether `x` is known only when the traced graph runs. An ndarray may change until then."""
    return not _is_plain() and isinstance(x, (Tracer, np.ndarray))


def _own(init: Any) -> Any:
    """The carry as arrays that the loop may write to."""

    def copy(leaf: Any) -> Any:
        if current_trace() is not None and is_array(leaf):
            return wrap(as_value(leaf), weak_kind(leaf), scalar=getattr(leaf, "scalar", False))
        return leaf.copy() if isinstance(leaf, np.ndarray) else leaf

    return pytree.tree_map(copy, init)


def _op(name: str, *values: Value, **attrs: Any) -> Value:
    return emit(name, *values, **attrs).value


def _check_bool(x: Any, what: str) -> None:
    if isinstance(x, (bool, np.bool_)):
        return
    if isinstance(x, (Tracer, np.ndarray)) and x.dtype == BOOL and x.shape == ():
        return
    complain(
        errors.TransformError,
        f"{what} must be a scalar bool, not {describe(x)}",
        "reduce an array with np.any or np.all; compare a number: x != 0.",
    )


def _check_integer(x: Any, what: str) -> None:
    if isinstance(x, int) and not isinstance(x, bool):
        return
    if isinstance(x, (Tracer, np.ndarray, np.integer)) and is_integer(x.dtype) and x.shape == ():
        return
    complain(
        errors.TransformError,
        f"{what} must be an integer scalar, not {describe(x)}",
        "pass an int, or convert with .astype(np.int64).",
    )


def _check_callable(what: str, name: str, function: Any) -> None:
    if not callable(function):
        complain(
            errors.TransformError,
            f"{name} of {what} must be callable, not {describe(function)}",
            f"pass a function: jt.{what} calls it.",
        )
