"""What may be differentiated: the checks of arguments, results, tangents and cotangents.

Each raises an error that names the leaf or the result, its dtype and shape, and the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.types import F64, is_complex, is_inexact
from ...runtime.cuda.array import DeviceArray
from ..core.specs import is_inexact_leaf
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value
from ..core.tracing import Result
from ..data import pytree
from ..data.accept import check_array, refuse
from ..data.callables import Function, function_name, parameter_name
from ..indexing.bounded import Bounded, filled, require_equal
from ..messages import errors
from ..messages.errors import complain
from .application import Application
from .presented import Leaf


def tangent_leaves(
    tree: Any,
    definition: pytree.TreeDef,
    types: Sequence[Any],
    what: str,
    whose: str,
    lengths: Mapping[int, Any] | None = None,
) -> list[Leaf]:
    """The leaves of a tangent or cotangent, checked; those of integer leaves (None) left out.

    `lengths` are the leaves that are lengths of arrays: the tangent's must be the same."""
    tree = pytree.map_whole(_zeros_behind, tree) if lengths else tree
    try:
        leaves = definition.flatten_up_to(tree)
    except ValueError:
        complain(
            errors.TransformError,
            f"the {what} must have the structure of the {whose}, {definition}, not "
            f"{pytree.flatten(tree)[1]}",
            f"give one array for each array of the {whose}, in the same containers.",
        )
    seeds: list[Leaf] = []
    for k, (leaf, type) in enumerate(zip(leaves, types, strict=True)):
        if lengths and k in lengths:
            require_equal(lengths[k], leaf, f"the {what} has length {{1}}, the {whose} has {{0}}")
            continue
        if not is_inexact(type.dtype):
            if leaf is not None:
                complain(
                    errors.TransformError,
                    f"a {whose} of type {type} has no derivative, and so takes no {what}",
                    "write None there.",
                    operands={what: leaf},
                )
            continue
        if isinstance(leaf, (bool, int, float, complex)) and not type.shape:
            leaf = type.dtype.type(leaf)
        if not isinstance(leaf, (Tracer, np.ndarray, np.generic, DeviceArray)):
            complain(
                errors.TransformError,
                f"the {what} of a {whose} of type {type} must be an array like it",
                f"give an array of shape {type.shape} and dtype {type.dtype}.",
                operands={what: leaf},
            )
        if leaf.shape != type.shape:
            complain(
                errors.ShapeError,
                f"the {what} has shape {leaf.shape}, and the {whose} has shape {type.shape}",
                f"give a {what} of shape {type.shape}.",
                operands={what: leaf},
            )
        if leaf.dtype != type.dtype:
            complain(
                errors.DTypeError,
                f"the {what} has dtype {leaf.dtype}, and the {whose} has dtype {type.dtype}",
                f"convert it: {what}.astype({str(type.dtype)!r}).",
                operands={what: leaf},
            )
        inside = current_trace() is not None or isinstance(leaf, Tracer)
        value: Any = as_value(leaf) if inside else leaf
        here = inside or isinstance(leaf, DeviceArray)
        seeds.append(value if here else np.asarray(leaf))
    return seeds


def _zeros_behind(x: Any) -> Any:
    """What is behind the length of an array has no part in a derivative."""
    return Bounded(filled(x, 0), x.counts) if isinstance(x, Bounded) else x


def scalar_loss(
    application: Application,
    tree: pytree.TreeDef,
    results: Sequence[Result],
    fun: Function,
    holomorphic: bool,
) -> Result:
    """The one result that grad differentiates, checked to be a float scalar (else a complex one)."""
    if tree.num_leaves != 1 or tree.num_nodes != 1:
        shown = pytree.unflatten(tree, ["*"] * len(results))
        complain(
            errors.TransformError,
            f"grad needs a function that returns one scalar; {function_name(fun)} returned "
            f"{show(shown)}",
            "return the loss alone; for (loss, extra results) write jt.grad(f, has_aux=True); for "
            "several results use jt.vjp or jt.jacrev.",
        )
    value = application.output(results[0])
    if value.shape:
        complain(
            errors.TransformError,
            f"grad needs a function that returns a scalar; {function_name(fun)} returned "
            f"{value.type}, an array of shape {value.shape}",
            "reduce it to a scalar with np.sum or np.mean, or use jt.jacrev for the Jacobian, or "
            "jt.vjp for a product with it.",
        )
    if not is_inexact(value.dtype):
        complain(
            errors.DTypeError,
            f"grad needs a function that returns a float; {function_name(fun)} returned a scalar "
            f"of dtype {value.dtype}",
            "only float results have derivatives: argmax, comparisons and conversions to integers "
            "have none.",
        )
    check_result(value.dtype, "grad", fun, holomorphic)
    return results[0]


def check_result(dtype: Any, what: str, fun: Function, holomorphic: bool) -> None:
    """A real result, or with `holomorphic` a complex one."""
    if is_complex(dtype) and not holomorphic:
        complain(
            errors.DTypeError,
            f"{what} needs a function that returns real numbers; {function_name(fun)} returned "
            f"{dtype}",
            f"pass holomorphic=True to jt.{what} if the function is complex-differentiable; return "
            "a real number (abs(z)**2, z.real) for a loss; use jt.vjp or jt.jvp otherwise.",
        )
    if holomorphic and not is_complex(dtype):
        complain(
            errors.DTypeError,
            f"{what} with holomorphic=True needs a function that returns complex numbers; "
            f"{function_name(fun)} returned {dtype}",
            "leave holomorphic out: the result is real.",
        )


def check_inexact_leaves(
    positions: Sequence[int],
    args: Sequence[Any],
    fun: Function,
    what: str = "grad",
    *,
    holomorphic: bool = False,
    real: bool = False,
) -> list[int]:
    """`positions`, made non-negative, of arguments whose leaves all have derivatives.

    With `holomorphic` all have to be complex, and with `real` (but not `holomorphic`) real.
    """
    chosen = []
    for position in positions:
        if not -len(args) <= position < len(args):
            complain(
                errors.TransformError,
                f"argnums={position}, but {function_name(fun)} was called with {len(args)} "
                "positional arguments",
                "pass the argument that is differentiated by position.",
            )
        chosen.append(position % len(args))
    if len(set(chosen)) < len(chosen):
        complain(
            errors.TransformError,
            f"argnums={tuple(positions)} names an argument of {function_name(fun)} twice",
            "name it once, and use its derivative twice.",
        )
    for position in chosen:
        lengths = pytree.lengths_among(args[position])
        for i, leaf in enumerate(pytree.flatten(args[position])[0]):
            if i in lengths:
                continue
            if not is_inexact_leaf(leaf):
                _refuse_leaf(leaf, _name(args, fun, position, i))
            complex_leaf = isinstance(leaf, complex) or is_complex(getattr(leaf, "dtype", F64))
            if holomorphic and not complex_leaf:
                complain(
                    errors.DTypeError,
                    f"{what} with holomorphic=True needs complex arguments; "
                    f"{_name(args, fun, position, i)} is real",
                    "convert it with .astype(np.complex128), or leave holomorphic out.",
                    operands={"x": leaf},
                )
            if real and complex_leaf and not holomorphic:
                complain(
                    errors.DTypeError,
                    f"{what} needs real arguments; {_name(args, fun, position, i)} is complex",
                    f"pass holomorphic=True to jt.{what} if the function is complex-differentiable; "
                    "use jt.jvp otherwise.",
                    operands={"x": leaf},
                )
    return chosen


def _name(args: Sequence[Any], fun: Function, position: int, leaf: int) -> str:
    return pytree.leaf_names(args[position], parameter_name(fun, position))[leaf]


def _refuse_leaf(leaf: Any, name: str) -> NoReturn:
    if isinstance(leaf, np.ndarray):
        check_array(leaf)
    if isinstance(leaf, (bool, np.bool_)) or getattr(leaf, "dtype", None) == np.bool_:
        remedy = "differentiate with respect to a float argument; argnums= chooses which."
    elif isinstance(leaf, (int, Tracer, np.ndarray, np.generic)):
        written = f"{leaf}.0" if isinstance(leaf, int) else f"{name}.astype(np.float64)"
        remedy = f"pass {written}, or choose another argument with argnums=."
    else:
        refuse(leaf, f"{name}, a {type(leaf).__name__}, as an argument of grad")
    dtype = leaf.dtype if hasattr(leaf, "dtype") else type(leaf).__name__
    complain(
        errors.DTypeError,
        f"grad needs float arguments; {name} is {dtype}, and only float and complex "
        "values have derivatives",
        remedy,
        operands={name: leaf},
    )


def check_leaves(leaves: Sequence[Any], what: str) -> None:
    """Every primal of vjp and jvp must be an array or a number."""
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            check_array(leaf)
        elif not isinstance(leaf, (Tracer, np.generic, bool, int, float, complex)):
            refuse(leaf, f"a {type(leaf).__name__} as an argument of {what}")


def require_tuples(name: str, tangent: str, **entries: Any) -> None:
    """An error of the transformation `name` for arguments that are not given as tuples."""
    for argument, value in entries.items():
        if not isinstance(value, (tuple, list)):
            complain(
                errors.TransformError,
                f"{name} takes its {argument} as a tuple, one entry per argument",
                f"write jt.{name}(f, (x,), ({tangent},)) for a function of one argument.",
                operands={argument: value},
            )


def show(out: Any) -> str:
    """A result, as text for messages."""
    return "None" if out is None else f"a {type(out).__name__}, {out!r:.60}"
