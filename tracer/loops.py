"""`while_loop` and `fori_loop` as one `while` op: the type of the carry, and the regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..ir.types import BOOL, TensorType
from . import errors, pytree
from .core import Tracer, as_value, refuse, require_trace, weak_kind, wrap
from .errors import complain
from .regions import Out, Region, common_type, fits, show_tree, trace_region, union
from .source import user_line
from .tracing import Spec

Function = Callable[..., Any]


def while_region(
    cond_fn: Function, body_fn: Function, init: Any, what: str, *, counted: bool = False
) -> Any:
    """Append a `while` op and return its carry. `what` names it in messages.

    With `counted` the carry is `(i, carry)` of a fori_loop, and messages speak of its second part.
    """
    leaves, carry_tree = pytree.flatten(init)
    call_tree = pytree.flatten(((init,), {}))[1]
    for leaf in leaves:
        if not isinstance(leaf, (Tracer, np.ndarray, np.generic, bool, int, float)):
            refuse(leaf, f"a {type(leaf).__name__} in the carry of {what}")
    values = [as_value(leaf) for leaf in leaves]
    given = [
        Out(v.tensor, weak_kind(leaf), _is_scalar(leaf))
        for v, leaf in zip(values, leaves, strict=True)
    ]
    names = ["i", *pytree.leaf_names(init[1], "carry")] if counted else []
    names = names or pytree.leaf_names(init, "carry")

    carry = given
    while True:
        body = trace_region(body_fn, _specs(carry), call_tree, f"the body of {what}")
        if body.tree != carry_tree:
            _refuse_structure(what, carry_tree, body.tree, counted)
        new = [
            _settle(before, after) or _refuse_type(what, names[i], given[i], after, body, i)
            for i, (before, after) in enumerate(zip(carry, body.outs, strict=True))
        ]
        if [(o.type, o.weak) for o in new] == [(o.type, o.weak) for o in carry]:
            break
        carry = new  # the types only grow stronger: Python int, Python float, array
    test = trace_region(cond_fn, _specs(carry), call_tree, f"the condition of {what}")
    _check_condition(test, what)

    captured = union([test, body])
    types = [out.type for out in carry]
    boolean = [TensorType((), BOOL)]
    regions = [
        test.close(captured, test.values, boolean, captures_first=True),
        body.close(captured, body.values, types, captures_first=True),
    ]
    start = [as_value(wrap(v), t.dtype) for v, t in zip(values, types, strict=True)]
    builder = require_trace().builder
    with builder.at(user_line()):
        results = builder.op("while", *captured, *start, consts=len(captured), regions=regions)
    results = results if isinstance(results, tuple) else (results,)
    return pytree.unflatten(
        carry_tree,
        [wrap(v, o.weak, scalar=o.scalar) for v, o in zip(results, new, strict=True)],
    )


def _settle(before: Out, after: Out) -> Out | None:
    """The type of a carry that goes in as `before` and comes out as `after`; None if it has none.

    An array keeps its type. A Python number takes the type that the body makes of it.
    """
    if before.weak is not None:
        return common_type([before, after])
    if before.type == after.type and after.weak is None:
        return Out(before.type, None, before.scalar or after.scalar)
    if before.type.shape == after.type.shape and after.weak and fits(after.weak, before.type.dtype):
        return Out(before.type, None, True)
    return None


def _specs(carry: Sequence[Out]) -> list[Spec]:
    return [Spec(out.type, out.weak, out.scalar) for out in carry]


def _is_scalar(leaf: Any) -> bool:
    return leaf.scalar if isinstance(leaf, Tracer) else not hasattr(leaf, "setflags")


def _check_condition(test: Region, what: str) -> None:
    if len(test.outs) != 1 or test.tree.num_nodes != 1:
        complain(
            errors.TransformError,
            f"the condition of {what} must return a scalar bool; it returned "
            f"{show_tree(test.tree)}",
            "return one comparison, such as carry[0] < n.",
        )
    (out,) = test.outs
    if out.type != TensorType((), BOOL):
        complain(
            errors.TransformError,
            f"the condition of {what} must return a scalar bool; it returned {out}"
            f"{test.made_at(0)}",
            "reduce it with np.any or np.all, or compare: x != 0.",
        )
    if test.mutated:
        complain(
            errors.OuterMutationError,
            f"the condition of {what} assigns to the carry",
            "assign in the body; the condition only looks at the carry.",
        )


def _refuse_structure(
    what: str, before: pytree.TreeDef, after: pytree.TreeDef, counted: bool
) -> NoReturn:
    if counted:
        before, after = before.child(1), after.child(1)
    returned = show_tree(after)
    complain(
        errors.CarryError,
        f"the carry of {what} changes its structure:\n"
        f"  it goes in as   {show_tree(before)}\n"
        f"  body_fn returns {returned}",
        "return the whole carry from body_fn: has it no `return`?"
        if returned == "None"
        else "return the carry in the containers that it came in.",
    )


def _refuse_type(
    what: str, name: str, before: Out, after: Out, body: Region, index: int
) -> NoReturn:
    remedy = (
        "keep its shape: for a result that grows write into an array of the final size, as in "
        "buffer[i] = value."
        if before.type.shape != after.type.shape
        else f"convert one of the two: init with the dtype {after.type.dtype}, or what body_fn "
        f"returns with .astype({str(before.type.dtype)!r})."
    )
    complain(
        errors.CarryError,
        f"the carry of {what} changes its type at {name}:\n"
        f"  it goes in as   {before}\n"
        f"  body_fn returns {after}{body.made_at(index)}",
        remedy,
    )
