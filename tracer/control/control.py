"""Structured control flow: `cond`, `switch`, `case`, `while_loop`, `fori_loop`.

Outside of tracing, and on the values of an eager trace, they are plain Python. While a graph is
traced they become one op with regions, and only what runs is computed:

- Arrays and traced values that a branch or body closes over are found and passed in.
- A loop owns its carry: in-place assignment to it inside the body works and never reaches the
  arrays that `init` was made of. A branch may assign to its operands, which then change for the
  caller too, as in Python; so do other arrays of outside that a branch or body assigns to.
- A carry keeps its structure, shapes and dtypes. A Python bool in `init` enters as NumPy's, and a
  number takes the type that the body makes of it, as in `jt.fori_loop(0, n, lambda i, c: c + x[i], 0.0)`
  with a float32 x.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.types import BOOL, I32, I64, is_integer
from ...runtime.cuda.array import DeviceArray
from ..core.effects import check
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value, emit, weak_kind, wrap
from ..data.callables import Function
from ..data.opened import closed
from ..data.promotion import kind_of, result_dtype
from ..devices.device_calls import compiled_on_devices
from ..messages import errors
from ..messages.errors import complain, describe
from ..messages.tracebacks import shortened
from .branches import branch_region
from .carries import arranger, own, parameter_name
from .loops import condition_remedy, scan_region, while_region
from .object_carries import of_objects, opened_carry


@compiled_on_devices("true_fn", "false_fn", among="pred")
def cond(pred: Any, true_fn: Function, false_fn: Function, *operands: Any) -> Any:
    """`true_fn(*operands)` if `pred` else `false_fn(*operands)`; `pred` is a scalar bool.

    Under jit both are traced and only the one taken is computed; they must return the same
    structure, shapes and dtypes. A predicate that is an ordinary Python bool just chooses. What the
    functions need may be operands, or simply be closed over: `jt.cond(x > 0, lambda: x, lambda: -x)`.

    >>> jt.cond(True, np.sin, np.cos, 0.0)
    np.float64(0.0)
    """
    check_callable("cond", "true_fn", true_fn)
    check_callable("cond", "false_fn", false_fn)
    _check_bool(pred, "the predicate of cond")
    if not _is_traced(pred):
        return (true_fn if pred else false_fn)(*operands)
    index = _op("convert", as_value(pred), dtype=I32)
    return branch_region("cond", index, [false_fn, true_fn], ["false_fn", "true_fn"], operands)


@shortened
def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """`branches[index](*operands)`, the index clamped into the range of branches.

    Raises jt.errors.ShapeError without branches.

    >>> jt.switch(1, [np.sin, np.cos], 0.0)
    np.float64(1.0)
    """
    branches = tuple(branches)
    if not branches:
        complain(errors.ShapeError, "switch was given no branch", "give it a list of functions.")
    for i, branch in enumerate(branches):
        check_callable("switch", f"branches[{i}]", branch)
    _check_integer(index, "the index of switch")
    return _switch(index, branches, *operands)


@compiled_on_devices("branches", among="index")
def _switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
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


@shortened
def case(
    pred_fn_pairs: Sequence[tuple[Any, Function]] | Mapping[Any, Function],
    default: Function | None = None,
    exclusive: bool = False,
) -> Any:
    """`fn()` of the first pair whose predicate is True, `default()` if none is.

    With `exclusive`, and without a default if no predicate is True, AssertionError is raised: at once
    where the predicates are known, otherwise by the compiled code.

    Raises jt.errors.TransformError for what is no pair, ShapeError where there is nothing to choose.

    >>> jt.case([(False, lambda: 1), (True, lambda: 2)], lambda: 3)
    2
    """
    pairs = pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs
    preds, functions = [], []
    for i, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            complain(
                errors.TransformError,
                f"case takes pairs (predicate, function); pair {i} is {describe(pair)}",
                "write jt.case([(x > 0, lambda: x), (x < 0, lambda: -x)], default=lambda: 0.0).",
            )
        _check_bool(pair[0], f"predicate {i} of case")
        check_callable("case", f"function {i}", pair[1])
        preds.append(pair[0])
        functions.append(pair[1])
    if default is not None:
        check_callable("case", "default", default)
    elif not functions:
        complain(errors.ShapeError, "case was given no pair", "give it (predicate, function).")
    return _chosen_case(tuple(preds), tuple(functions), default, exclusive)


@compiled_on_devices("functions", "default", "exclusive")
def _chosen_case(
    preds: Sequence[Any], functions: Sequence[Function], default: Function | None, exclusive: bool
) -> Any:
    if not any(map(_is_traced, preds)):
        return _case(preds, functions, default, exclusive)
    case = as_value(len(preds), I32)
    count = as_value(0, I32)
    for i, pred in reversed([*enumerate(map(as_value, preds))]):
        case = _op("select", pred, as_value(i, I32), case)
        count = _op("add", count, _op("convert", pred, dtype=I32))
    if exclusive:
        check(wrap(count) <= 1, _SEVERAL)
    names = [f"function {i}" for i in range(len(functions))]
    if default is None:
        check(wrap(count) >= 1, _NONE)
    else:
        functions, names = [*functions, default], [*names, "default"]
    return branch_region("case", case, functions, names, ())


_SEVERAL = "several predicates of case(exclusive=True) are True"
_NONE = "no predicate of case is True, and it has no default"


def _case(
    preds: Sequence[Any], functions: Sequence[Function], default: Function | None, exclusive: bool
) -> Any:
    chosen = [f for pred, f in zip(preds, functions, strict=True) if pred]
    if exclusive and len(chosen) > 1:
        complain(errors.CaseError, _SEVERAL, "leave exclusive out for the first of them.")
    if not chosen and default is None:
        complain(errors.CaseError, _NONE, "give it one: default=lambda: value.")
    return chosen[0]() if chosen else default()  # type: ignore[misc]


@compiled_on_devices("cond_fn", "body_fn", "checkpoint")
def while_loop(
    cond_fn: Function, body_fn: Function, init: Any, *, checkpoint: str | int = "all"
) -> Any:
    """`carry = init; while cond_fn(carry): carry = body_fn(carry)`; returns the last carry.

    The carry is any tree of arrays and numbers, or of objects that are trees, such as modules: `body_fn`
    is given new ones. `cond_fn` returns a scalar bool. Dicts keep the order that their keys have in
    `init`.

    `checkpoint` bounds the memory of reverse mode through a compiled loop of n iterations. The gradient
    does not depend on it:

        "all"       memory O(n): each iteration keeps what its backward part needs, and is computed once
        "sqrt"      memory O(sqrt n): about sqrt(2 n) copies of the carry; an iteration is computed twice
        a number k  k copies of the carry, whatever n; an iteration is computed about r times more, where
                    n <= (k + r)! / (k! r!): r = 3 for 1000 iterations and k = 17

    Loops with effects other than checks keep everything.

    >>> jt.while_loop(lambda n: n < 100, lambda n: 2 * n, 1)
    128
    """
    check_callable("while_loop", "cond_fn", cond_fn)
    check_callable("while_loop", "body_fn", body_fn)
    _check_checkpoint(checkpoint)
    first = opened_carry(init)
    if first is not init:
        test = of_objects(cond_fn, "while_loop", None)
        body = of_objects(body_fn, "while_loop")
        return closed(while_loop(test, body, first, checkpoint=checkpoint))
    if not is_plain():
        return while_region(
            cond_fn,
            body_fn,
            init,
            "while_loop",
            variable=parameter_name(body_fn, 0),
            checkpoint=checkpoint,
        )
    carry, arranged = own(init), arranger(init)
    while True:
        go_on = cond_fn(carry)
        _check_bool(go_on, "the condition of while_loop")
        if not go_on:
            return carry
        carry = arranged(body_fn(carry))


@compiled_on_devices("body_fn", "unroll", "checkpoint")
def fori_loop(
    lower: Any,
    upper: Any,
    body_fn: Function,
    init: Any,
    *,
    unroll: int | bool = 1,
    checkpoint: str | int | None = None,
) -> Any:
    """`carry = init; for i in range(lower, upper): carry = body_fn(i, carry)`; the last carry.

    The bounds are integers, and may be traced. `i` is a Python int if both bounds are, otherwise an
    integer of their common dtype.

    With bounds known while tracing, compiled loops make `unroll` steps in an iteration (all with
    True), and reverse mode stacks what it needs. `checkpoint` bounds its memory, as for
    `while_loop`; it is "all" for traced bounds.

    Raises jt.errors.DTypeError for bounds of no common integer dtype, TransformError for `unroll` of
    bounds that are not known.

    >>> jt.fori_loop(0, 5, lambda i, total: total + i, 0)
    10
    """
    check_callable("fori_loop", "body_fn", body_fn)
    _check_integer(lower, "the lower bound of fori_loop")
    _check_integer(upper, "the upper bound of fori_loop")
    if checkpoint is not None:
        _check_checkpoint(checkpoint)
    first = opened_carry(init)
    if first is not init:
        step = of_objects(body_fn, "fori_loop", 1)
        return closed(fori_loop(lower, upper, step, first, unroll=unroll, checkpoint=checkpoint))
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
    if is_plain():
        unroll_count(unroll, 1, "fori_loop")
        carry, arranged = own(init), arranger(init)
        for i in range(operator.index(lower), operator.index(upper)):
            carry = arranged(body_fn(i if dtype is None else dtype.type(i), carry))
        return carry
    static = not _is_traced(lower) and not _is_traced(upper)
    length = max(operator.index(upper) - operator.index(lower), 0) if static else 0
    steps = unroll_count(unroll, length, "fori_loop")
    if dtype is not None:
        lower, upper = (wrap(as_value(bound, dtype)) for bound in (lower, upper))

    def body(carry: tuple[Any, Any]) -> tuple[Any, Any]:
        i, rest = carry
        return i + 1, body_fn(i, rest)

    if static and checkpoint is None:
        (_, carry), _ = scan_region(
            lambda carry, _: (body(carry), None),
            (lower, init),
            None,
            length,
            "fori_loop",
            unroll=steps,
            counted=True,
            variable=parameter_name(body_fn, 1),
            body_name="body_fn",
        )
        return carry
    if unroll is not False and unroll != 1:
        complain(
            errors.TransformError,
            "fori_loop can only be unrolled over bounds that are known while tracing"
            if not static
            else "fori_loop takes unroll or checkpoint, not both",
            "leave unroll out.",
        )
    return while_region(
        lambda c: c[0] < upper,
        body,
        (lower, init),
        "fori_loop",
        counted=True,
        variable=parameter_name(body_fn, 1),
        checkpoint=checkpoint or "all",
    )[1]


def unroll_count(unroll: Any, length: int, what: str) -> int:
    """How many of `length` steps an iteration of a compiled loop makes."""
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    if isinstance(unroll, int) and unroll >= 1:
        return unroll
    complain(
        errors.TransformError,
        f"unroll of {what} must be a positive int or a bool, not {describe(unroll)}",
        "1 is the default; a small number such as 4 suits small bodies.",
    )


def is_plain() -> bool:
    """Whether values are at hand here, so that Python's own control flow serves."""
    trace = current_trace()
    return trace is None or trace.eager


def _is_traced(x: Any) -> bool:
    """Whether `x` is known only when the traced graph runs. An ndarray may change until then."""
    return not is_plain() and isinstance(x, (Tracer, np.ndarray))


def _op(name: str, *values: Value, **attrs: Any) -> Value:
    return emit(name, *values, **attrs).value


def _check_bool(x: Any, what: str) -> None:
    if isinstance(x, (bool, np.bool_)):
        return
    if isinstance(x, (Tracer, np.ndarray, DeviceArray)) and x.dtype == BOOL and x.shape == ():
        return
    complain(
        errors.TransformError,
        f"{what} must be a scalar bool, not {describe(x)}",
        condition_remedy(type(x) is int or (isinstance(x, Tracer) and x.weak == "i")),
    )


def _check_integer(x: Any, what: str) -> None:
    if isinstance(x, int) and not isinstance(x, bool):
        return
    if (
        isinstance(x, (Tracer, np.ndarray, np.integer, DeviceArray))
        and is_integer(x.dtype)
        and x.shape == ()
    ):
        return
    complain(
        errors.TransformError,
        f"{what} must be an integer scalar, not {describe(x)}",
        "pass an int, or convert with .astype(np.int64).",
    )


def _check_checkpoint(checkpoint: Any) -> None:
    slots = isinstance(checkpoint, int) and not isinstance(checkpoint, bool) and checkpoint > 0
    if not slots and checkpoint not in ("all", "sqrt"):
        complain(
            errors.TransformError,
            f'checkpoint must be "all", "sqrt" or a positive number of slots, not '
            f"{describe(checkpoint)}",
            "the gradient is the same with each; they trade memory for time.",
        )


def check_callable(what: str, name: str, function: Any) -> None:
    """TransformError unless `function` is one."""
    if not callable(function):
        complain(
            errors.TransformError,
            f"{name} of {what} must be callable, not {describe(function)}",
            f"pass a function: jt.{what} calls it.",
        )
