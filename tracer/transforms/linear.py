"""Derivatives as linear maps: `linearize`, `linear_transpose`, `hvp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ...ir.autodiff.transform import jvp_graph, vjp_graph
from ...ir.subgraphs import reached
from ...ir.types import TensorType, is_inexact
from ...runtime.cuda.array import DeviceArray
from ..checks.eager import watched_outside
from ..core.specs import Spec, is_inexact_leaf
from ..core.trace import current_trace
from ..core.tracers import Tracer, weak_kind
from ..core.tracing import trace_function
from ..data import pytree
from ..data.callables import Function, check_callable, function_name
from ..data.entering import open_call
from ..data.opened import closed, open_like
from ..data.opened import leaves as leaves_of
from ..data.shapes import ShapeDtype
from ..devices.device_calls import compiled_on_devices
from ..devices.devices import holds_device_arrays
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from .application import Application
from .derivatives import (
    _apply_to_primals,
    _derivative,
    _float_parameters,
    _present_results,
    jvp,
    present_tangents,
    refuse_effects,
    tape_makers,
)
from .device_transforms import run_apart
from .differentiable import check_leaves, require_tuples, tangent_leaves
from .gradients import grad
from .presented import Leaf, present

R = TypeVar("R")


@shortened
@watched_outside
def linearize(fun: Callable[..., R], *primals: Any) -> tuple[R, Function]:
    """`fun(*primals)` and its derivative there, a function that pushes tangents forward.

        out, f_lin = jt.linearize(f, x, y)
        out_tangent = f_lin(tx, ty)         # as jt.jvp(f, (x, y), (tx, ty))[1], without f again

    What does not depend on the tangents is computed once. None stands for the tangent of an integer.

    >>> out, push = jt.linearize(lambda x: x * x, 3.0)
    >>> out, push(1.0)
    (9.0, 6.0)
    """
    check_callable(fun, "linearize")
    if current_trace() is None and holds_device_arrays(primals):
        out, later = run_apart(lambda *x: _linearized(fun, x), primals, "linearize")
        return out, lambda *tangents: later(tangents)
    fun, primals = open_call(fun, primals)
    leaves, in_tree = pytree.flatten(primals)
    check_leaves(leaves, "linearize")
    application, _ = _apply_to_primals(fun, primals, leaves, False, "linearize", copy=True)
    results = application.results
    returned = application.arrays
    pushed = application.inexact(results)
    wrt = _float_parameters(leaves, pytree.lengths_among(primals))
    forward = _derivative(jvp_graph, application.over(returned), wrt, pushed)
    application.adopt(application.over(returned), returned, [])
    out_tree = application.traced.out_tree
    out = closed(pytree.unflatten(out_tree, _present_results(application, results)))
    ops = application.adopt(forward, returned)
    tangents_out = forward.outputs[len(returned) :]
    needed, _ = reached(ops, tangents_out, stop=())
    ops = [op for op in ops if op in needed]
    seeds = forward.params[len(application.graph.params) :]
    types = [
        leaf.type if isinstance(leaf, Tracer) else ShapeDtype.like(leaf).type for leaf in leaves
    ]
    ops = [*tape_makers(forward.ops, ops), *ops]
    refuse_effects(ops, "what jt.linearize returns")
    application.keep_only(ops, tangents_out)

    @shortened
    @watched_outside
    def f_lin(*tangents: Any) -> Any:
        opened = open_like(primals, tuple(tangents))
        leaves = tangent_leaves(opened, in_tree, types, "tangent", "primal")
        env = application.extend(ops, dict(zip(seeds, leaves, strict=True)))
        pushed_leaves = [env[v] for v in tangents_out]
        return closed(pytree.unflatten(out_tree, present_tangents(results, pushed, pushed_leaves)))

    return out, f_lin


def _linearized(fun: Function, primals: tuple[Any, ...]) -> tuple[Any, Function, Any]:
    out, f_lin = linearize(fun, *primals)
    return out, lambda tangents: f_lin(*tangents), primals


@shortened
def linear_transpose(fun: Function, *types: Any) -> Function:
    """The transpose of a linear function: `<fun(x), ct> == <x, transposed(ct)[0]>`.

        transposed = jt.linear_transpose(f, x)      # x: an array or jt.ShapeDtype; not its values
        (ct_x,) = transposed(ct)                    # one cotangent per argument

    Raises jt.errors.TransformError for what is not linear, DTypeError for arguments or results that are
    no floats.

    >>> jt.linear_transpose(lambda x: 3 * x, 0.0)(2.0)
    (6.0,)
    """
    check_callable(fun, "linear_transpose")
    leaves, in_tree = pytree.flatten(types)
    specs = []
    for leaf in leaves:
        type = leaf.type if isinstance(leaf, Tracer) else ShapeDtype.like(leaf).type
        if not is_inexact(type.dtype):
            complain(
                errors.DTypeError,
                f"linear_transpose needs float arguments; {function_name(fun)} was given one of "
                f"type {type}",
                "close over the integers: lambda x: f(x, n).",
            )
        scalar = isinstance(leaf, (float, complex, np.generic)) or bool(
            getattr(leaf, "scalar", False)
        )
        specs.append(Spec(type, weak_kind(leaf), scalar or weak_kind(leaf) is not None))
    tree = pytree.flatten((types, {}))[1]
    traced = trace_function(fun, specs, tree, what="linear_transpose")
    count = len(leaves)
    outers = [(capture.param, capture.outer) for capture in traced.captures]
    env: dict[Any, Leaf] = {
        param: np.asarray(outer) if isinstance(outer, DeviceArray) else outer
        for param, outer in outers
    }
    application = Application(traced, current_trace(), env)
    returned = application.arrays
    for r in returned:
        if not is_inexact(application.output(r).dtype):
            complain(
                errors.DTypeError,
                f"linear_transpose needs float results; {function_name(fun)} returned "
                f"{application.output(r).type}",
                "integers and bools are no linear functions of floats.",
            )
    backward = _derivative(
        vjp_graph, application.over(returned), range(count), range(len(returned))
    )
    gradients = backward.outputs[len(returned) :]
    arguments = application.graph.params[:count]
    ops_needed, used = reached(backward.ops, gradients, stop=set(arguments))
    if used:
        culprit = next(
            (op for op in backward.ops if op in ops_needed and used.intersection(op.operands)), None
        )
        complain(
            errors.TransformError,
            f"{function_name(fun)} is not linear in its arguments, so it has no transpose",
            "jt.vjp(f, x) gives the transpose of its derivative at x.",
            line=culprit.loc if culprit is not None else None,
        )
    ops = [op for op in backward.ops if op in ops_needed]
    seeds = backward.params[len(application.graph.params) :]
    out_tree = traced.out_tree
    out_types: list[TensorType] = [application.output(r).tensor for r in returned]

    @compiled_on_devices()
    @watched_outside
    def transposed(cotangent: Any) -> tuple[Any, ...]:
        leaves = tangent_leaves(cotangent, out_tree, out_types, "cotangent", "result")
        values = application.extend(ops, dict(zip(seeds, leaves, strict=True)))
        leaves_out = [
            present(values[v], s.weak, s.scalar) for v, s in zip(gradients, specs, strict=True)
        ]
        return pytree.unflatten(in_tree, leaves_out)

    return transposed


@compiled_on_devices("fun")
def hvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The product of the Hessian of a scalar function with a vector, forward over reverse.

        jt.hvp(f, (x,), (v,))           # like x; as jt.hessian(f)(x) @ v, at the cost of a gradient
        jt.hvp(f, (x, y), (u, v))       # a tuple: the rows of x and of y

    Arguments without floats (and their tangents, None) are constants.

    Raises jt.errors.TransformError for primals or tangents that are no tuples.

    >>> jt.hvp(lambda x: (x**3).sum(), (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    array([ 6., 12.])
    """
    check_callable(fun, "hvp")
    require_tuples("hvp", "v", primals=primals, tangents=tangents)
    moving = [
        i
        for i, primal in enumerate(primals)
        if any(is_inexact_leaf(leaf) for leaf in leaves_of(primal))
    ]
    argnums = moving[0] if len(primals) == 1 and moving else tuple(moving)
    product = jvp(grad(fun, argnums), tuple(primals), tuple(tangents))[1]
    if len(primals) == 1 or len(moving) == len(primals):
        return product
    rows = dict(zip(moving, product, strict=True))
    return tuple(rows.get(i) for i in range(len(primals)))
