"""What derivative rules give, held to what they have to give: one array for each, of its type.

Errors name both structures and the line where the rule is defined.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.graph import SourceLine
from ...ir.types import TensorType, is_inexact
from ..control.regions import show_tree
from ..core.specs import is_inexact_leaf
from ..core.trace import require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..data.callables import Function, function_name
from ..messages import errors
from .custom_call import CustomCall


def checked_cotangents(cotangents: Any, call: CustomCall, rule: Function) -> list[Any]:
    """What a backward rule gave, checked: one array per leaf with a derivative."""
    name = f"{function_name(rule)}, the backward rule of {call.name},"
    if not isinstance(cotangents, (tuple, list)) or len(cotangents) != len(call.primals):
        refuse_rule(
            f"{name} must return a tuple with one cotangent per argument, "
            f"{len(call.primals)} of them, not {shown(cotangents)}",
            "return a tuple, also for one argument: (ct_x,); None stands for zero.",
            rule,
        )
    leaves: list[Any] = []
    for k, (cotangent, primal) in enumerate(zip(cotangents, call.primals, strict=True)):
        definition = pytree.flatten(primal)[1]
        what = f"the cotangent of argument {call.moving[k]}"
        leaves += _leaves_like(cotangent, definition, name, what, rule)
    wanted = set(call.floats())
    checked = []
    for i, leaf in enumerate(leaves):
        if i in wanted:
            type = _type_of(call.leaves[i])
            checked.append(_like(leaf, type, f"{name} gave a cotangent", "the argument", rule))
        elif leaf is not None and not is_inexact_leaf(call.leaves[i]):
            refuse_rule(
                f"{name} gave a cotangent for an argument without a derivative, "
                f"{errors.describe(call.leaves[i])}",
                "return None in its place.",
                rule,
            )
    return checked


def checked_tangents(
    pair: Any,
    out_tree: pytree.TreeDef,
    outs: Sequence[TensorType],
    call: CustomCall,
    rule: Function,
) -> list[Any]:
    """What a tangent rule gave, checked: one array per float result."""
    name = f"{function_name(rule)}, the tangent rule of {call.name},"
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        refuse_rule(
            f"{name} must return a pair (result, tangent), not {shown(pair)}",
            "return the value of the function first, then its tangent.",
            rule,
        )
    tree = pytree.flatten(pair[0])[1]
    if tree != out_tree:
        refuse_rule(
            f"{name} returned a result of the structure {show_tree(tree)}, and {call.name} returns "
            f"{show_tree(out_tree)}",
            "return the value of the function itself as the first of the pair.",
            rule,
        )
    leaves = _leaves_like(pair[1], out_tree, name, "the tangent", rule)
    checked = []
    for leaf, type in zip(leaves, outs, strict=True):
        if is_inexact(type.dtype):
            checked.append(_like(leaf, type, f"{name} gave a tangent", "the result", rule))
    return checked


def _leaves_like(
    tree: Any, definition: pytree.TreeDef, name: str, what: str, rule: Function
) -> list[Any]:
    """The leaves of `tree`, a tree like `definition` in which None may stand for anything."""
    if tree is None:
        return [None] * definition.num_leaves
    try:
        leaves = list(definition.flatten_up_to(tree))
    except ValueError:
        leaves = [tree]
    single = (x is None or pytree.flatten(x)[1].is_leaf() for x in leaves)
    if len(leaves) == definition.num_leaves and all(single):
        return leaves
    refuse_rule(
        f"{name} returned {what} with another structure:\n"
        f"  expected {show_tree(definition)}\n"
        f"  returned {show_tree(pytree.flatten(tree)[1])}",
        "return the same containers, with one array for each array.",
        rule,
    )


def _like(leaf: Any, type: TensorType, what: str, whose: str, rule: Function) -> Any:
    """An array of `type`; zeros for None."""
    if leaf is None:
        return wrap(require_trace().builder.zeros(type), scalar=not type.shape)
    if isinstance(leaf, (bool, int, float, complex)) or (isinstance(leaf, Tracer) and leaf.weak):
        if not type.shape:
            return wrap(as_value(leaf, type.dtype))
    elif not isinstance(leaf, (Tracer, np.ndarray, np.generic)):
        refuse_rule(f"{what} that is no array, {shown(leaf)}", f"give an array {type}.", rule)
    shape, dtype = np.shape(leaf) if not isinstance(leaf, Tracer) else leaf.shape, _dtype_of(leaf)
    if shape != type.shape or dtype != type.dtype:
        refuse_rule(
            f"{what} of shape {shape} and dtype {dtype}; {whose} has shape {type.shape} and dtype "
            f"{type.dtype}",
            f"give an array of shape {type.shape} and dtype {type.dtype}.",
            rule,
        )
    return leaf


def _dtype_of(leaf: Any) -> np.dtype[Any]:
    return leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype


def _type_of(leaf: Any) -> TensorType:
    return leaf.type if isinstance(leaf, Tracer) else TensorType(leaf.shape, leaf.dtype)


def shown(value: Any) -> str:
    """What a rule returned, as text for messages."""
    if value is None:
        return "None"
    return f"a {type(value).__name__}, {show_tree(pytree.flatten(value)[1])}"


def refuse_rule(what: str, remedy: str, rule: Function) -> NoReturn:
    """Raise TransformError at the line of the rule."""
    code = getattr(inspect.unwrap(rule), "__code__", None)
    line = None
    if code is not None:
        line = SourceLine(code.co_filename, code.co_firstlineno, code.co_qualname)
    errors.complain(errors.TransformError, what, remedy, line=line)
