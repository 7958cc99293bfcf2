"""Derivatives as users call them: `vjp`, `jvp`, `stop_gradient`, and the calls of `gradients`.

Outside of jit the function runs eagerly, on values: Python may branch on them, print them and stop
in a debugger. Inside it becomes part of what is traced. Both use the same derivative graph.

Rules that hold for all of them:

- Float and complex leaves have derivatives, of the same dtype. Integer and bool leaves have none:
  `grad` refuses them, and for `vjp` and `jvp` None stands where their derivative would be.
- Arrays and outer tracers that the function closes over are constants of its differentiation.
- Complex derivatives follow JAX (see `ops.elementwise.complex`): cotangents pair with tangents without
  conjugation, and the gradient of a real function is the conjugate of the direction of ascent.
- In-place assignment inside of the function is differentiated, also to its array arguments: the
  derivative is with respect to the argument's value at entry. The assignment stays inside: unlike a
  plain call, a differentiated call does not change the caller's array.
- Containers that are differentiated, dataclasses among them, are made anew for the function, so what it
  assigns to their fields and elements stays inside, too. Objects that `jt.tree.register_object` knows
  (modules, variables) are entered themselves: elements that are assigned to in a differentiated array
  stay inside, and every other assignment, a new array for such an attribute among them, is there
  afterwards. So is what the function assigns to objects that are not differentiated, other arguments
  or closed over.
- Texts and functions in containers and objects are settings: None stands for their derivatives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from ...ir.autodiff.transform import jvp_graph, vjp_graph
from ...ir.graph import Graph, Op, Value
from ...ir.opdef import DerivativeError
from ...ir.types import TAPE, is_inexact, type_of
from ..checks.eager import watched_outside
from ..control.unions import only
from ..core.specs import is_array, is_inexact_leaf
from ..core.trace import current_trace
from ..core.tracers import Tracer, as_value, emit, weak_kind
from ..core.tracing import Result, opened_results
from ..data import pytree
from ..data.callables import check_callable, function_name
from ..data.entering import open_call
from ..data.opened import closed, open_like, tree_map
from ..devices.device_calls import compiled_on_devices
from ..devices.devices import holds_device_arrays
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from .application import Application, apply, mark_cotangents
from .device_transforms import run_apart
from .differentiable import (
    Function,
    check_inexact_leaves,
    check_leaves,
    require_tuples,
    scalar_loss,
    show,
    tangent_leaves,
)
from .presented import Leaf, present

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def gradient_of_call(
    fun: Function,
    positions: tuple[int, ...],
    has_aux: bool,
    holomorphic: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Any, tuple[Any, ...]]:
    """What `value_and_grad(fun, positions, ...)(*args, **kwargs)` gives."""
    entering, args = open_call(fun, args, positions)
    chosen = check_inexact_leaves(positions, args, fun, holomorphic=holomorphic)
    leaves, tree = pytree.flatten((args, kwargs))
    spans = _spans(args)
    lengths = pytree.lengths_among((args, kwargs))  # which have no derivatives
    targets = [i for p in chosen for i in range(*spans[p]) if i not in lengths]
    active = [i in set(targets) for i in range(len(leaves))]
    traced = [a or is_array(leaf) for a, leaf in zip(active, leaves, strict=True)]
    traced = [t and i not in lengths for i, t in enumerate(traced)]
    aux = _Aux() if has_aux else None
    function = aux.split(entering) if aux else entering
    application = apply(function, leaves, tree, traced, active, what="grad", present=_loss)
    out_tree, results = _out_tree(application, aux)
    loss = scalar_loss(application, out_tree, results, fun, holomorphic)
    wrt = [sum(traced[:i]) for i in targets]
    returned = application.arrays
    backward = _derivative(vjp_graph, application.over(returned), wrt, [returned.index(loss)])
    seed = _ones(application.output(loss))
    application.adopt(backward, returned, mark_cotangents([seed]))
    pulled = application.read(backward.outputs[len(returned) :])
    remaining = iter(_present_gradients(pulled, [leaves[i] for i in targets]))
    given = [leaf if i in lengths else None for i, leaf in enumerate(leaves)]
    gradients = tuple(
        pytree.unflatten(
            pytree.flatten(args[p])[1],
            [leaf if leaf is not None else next(remaining) for leaf in given[slice(*spans[p])]],
        )
        for p in chosen
    )
    value = _present_results(application, [loss])[0]
    if has_aux:
        value = (value, _present_aux(application, aux, 1))
    return value, closed(gradients)


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[Any, ...]], A]: ...
@overload
def vjp(fun: Function, *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...


@shortened
@watched_outside
def vjp(fun: Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """`fun(*primals)` and the function that pulls a cotangent of the result back to the primals.

        out, vjp_fn = jt.vjp(f, x, y)
        ct_x, ct_y = vjp_fn(ct)             # ct has out's structure, shapes and dtypes

    `vjp_fn` may be called many times. With `has_aux`, `fun` returns `(out, aux)` and the result is
    `(out, vjp_fn, aux)`. The primals' values are kept: changing the arrays later changes nothing.

    >>> jt.vjp(lambda x: x**3, 2.0)[1](1.0)
    (12.0,)
    """
    check_callable(fun, "vjp")
    if current_trace() is None and holds_device_arrays(primals):
        return _vjp_on_device(fun, primals, has_aux)
    fun, primals = open_call(fun, primals)
    leaves, in_tree = pytree.flatten(primals)
    check_leaves(leaves, "vjp")
    floats = [is_inexact_leaf(leaf) for leaf in leaves]
    lengths = pytree.lengths_among(primals)
    application, aux = _apply_to_primals(fun, primals, leaves, has_aux, "vjp", copy=True)
    wrt = _float_parameters(leaves, lengths)
    out_tree, results = _out_tree(application, aux)
    returned = application.arrays
    pulled = application.inexact(results)
    backward = _derivative(vjp_graph, application.over(returned), wrt, pulled)
    ops = application.adopt(backward, returned)
    out = pytree.unflatten(out_tree, _present_results(application, results))
    side = _present_aux(application, aux, len(results))
    ends = _lengths_in(out)
    whole, out = out, closed(out)

    gradients = backward.outputs[len(returned) :]
    seeds = backward.params[len(application.graph.params) :]
    types = [application.output(r).tensor for r in results]
    float_leaves = [leaf for leaf, chosen in zip(leaves, floats, strict=True) if chosen]
    again = tape_makers(backward.ops, ops)
    application.keep_only([*again, *ops], gradients)
    unread = True

    @shortened
    @watched_outside
    def vjp_fn(cotangent: Any) -> tuple[Any, ...]:
        nonlocal unread
        cotangent = open_like(whole, cotangent)
        cotangents = tangent_leaves(cotangent, out_tree, types, "cotangent", "result", ends)
        here = current_trace() is application.owner
        first, unread = unread and here, unread and not here
        if not first:  # a tape is read once; the next call, or one in a loop, needs its own
            refuse_effects(again, "what jt.vjp returns, called again or in a loop,")
        cotangents = mark_cotangents(cotangents)
        env = application.extend(
            ops if first else [*again, *ops], dict(zip(seeds, cotangents, strict=True))
        )
        remaining = iter(_present_gradients([env[v] for v in gradients], float_leaves, fresh=False))
        pulled = [
            next(remaining) if chosen else leaves[i] if i in lengths else None
            for i, chosen in enumerate(floats)
        ]
        return closed(pytree.unflatten(in_tree, pulled))

    return (out, vjp_fn, side) if has_aux else (out, vjp_fn)


def _vjp_on_device(fun: Function, primals: tuple[Any, ...], has_aux: bool) -> tuple[Any, ...]:
    def split(*primals: Any) -> tuple[Any, Function, Any]:
        out, vjp_fn, *side = vjp(fun, *primals, has_aux=has_aux)
        return (out, side), vjp_fn, out

    (out, side), vjp_fn = run_apart(split, primals, "vjp")
    return (out, vjp_fn, *side)


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, Any]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, A]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, Any, A]: ...
@overload
def jvp(
    fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool
) -> tuple[Any, ...]: ...


@compiled_on_devices("fun", "has_aux")
@watched_outside
def jvp(
    fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False
) -> tuple[Any, ...]:
    """`fun(*primals)` and its directional derivative along `tangents`: `(out, tangent_out)`.

    `tangents` has the structure, shapes and dtypes of `primals`. With `has_aux`, `fun` returns
    `(out, aux)` and the result is `(out, tangent_out, aux)`.

    Raises jt.errors.TransformError for primals and tangents that are not tuples of one length.

    >>> jvp(lambda x: x**3, (2.0,), (1.0,))
    (8.0, 12.0)
    """
    check_callable(fun, "jvp")
    require_tuples("jvp", "t", primals=primals, tangents=tangents)
    if len(primals) != len(tangents):
        complain(
            errors.TransformError,
            f"jvp was given {len(primals)} primals and {len(tangents)} tangents",
            "give one tangent, of the same structure, for each primal.",
        )
    fun, primals = open_call(fun, primals)
    tangents = open_like(primals, tuple(tangents))
    leaves, in_tree = pytree.flatten(primals)
    check_leaves(leaves, "jvp")
    types = [
        leaf.type if isinstance(leaf, Tracer) else type_of(np.asarray(leaf)) for leaf in leaves
    ]
    lengths = _lengths_in(primals)
    seeds = tangent_leaves(tangents, in_tree, types, "tangent", "primal", lengths)
    application, aux = _apply_to_primals(fun, primals, leaves, has_aux, "jvp")
    wrt = _float_parameters(leaves, lengths)
    out_tree, results = _out_tree(application, aux)
    returned = application.arrays
    pushed = application.inexact(results)
    forward = _derivative(jvp_graph, application.over(returned), wrt, pushed)
    application.adopt(forward, returned, seeds)
    leaves_out = application.read(forward.outputs[len(returned) :])
    out = pytree.unflatten(out_tree, _present_results(application, results))
    moved = present_tangents(results, pushed, leaves_out)
    for k, length in _lengths_in(out).items():
        moved[k] = length
    tangent_out = closed(pytree.unflatten(out_tree, moved))
    out = closed(out)
    side = _present_aux(application, aux, len(results))
    return (out, tangent_out, side) if has_aux else (out, tangent_out)


def stop_gradient(x: Any) -> Any:
    """`x`, a tree of arrays, as a constant of every differentiation.

    >>> jt.grad(lambda x: x * jt.stop_gradient(x))(3.0)
    3.0
    """
    return tree_map(
        lambda leaf: (
            emit("stop_gradient", as_value(leaf), weak=leaf.weak)
            if isinstance(leaf, Tracer) and is_inexact(leaf.dtype)
            else leaf
        ),
        x,
    )


class _Aux:
    """Takes `(value, aux)` apart: leaves of aux that are no arrays pass by the trace."""

    def __init__(self) -> None:
        self.tree: pytree.TreeDef | None = None
        self.value_tree: pytree.TreeDef | None = None
        self.leaves: list[Any] = []
        self.traced: list[bool] = []

    def split(self, fun: Function) -> Function:
        @functools.wraps(fun)
        def flat(*args: Any, **kwargs: Any) -> Any:
            out = fun(*args, **kwargs)
            if not isinstance(out, tuple) or len(out) != 2:
                complain(
                    errors.TransformError,
                    f"with has_aux=True the function returns a pair (value, aux), not {show(out)}",
                    f"return (value, aux) from {function_name(fun)}, or leave has_aux out.",
                )
            values, self.value_tree = pytree.flatten(opened_results(out[0]))
            self.leaves, self.tree = pytree.flatten(opened_results(out[1]))
            self.traced = [is_array(leaf) for leaf in self.leaves]
            arrays = [x for x, t in zip(self.leaves, self.traced, strict=True) if t]
            self.leaves = [None if t else x for x, t in zip(self.leaves, self.traced, strict=True)]
            return [*values, *arrays]

        return flat

    def join(self, arrays: Sequence[Any]) -> Any:
        remaining = iter(arrays)
        assert self.tree is not None
        leaves = zip(self.leaves, self.traced, strict=True)
        return closed(pytree.unflatten(self.tree, [next(remaining) if t else x for x, t in leaves]))


def _out_tree(application: Application, aux: _Aux | None) -> tuple[pytree.TreeDef, list[Result]]:
    """The structure of the differentiated result, and its leaves."""
    if aux is None:
        return application.traced.out_tree, application.results
    assert aux.value_tree is not None
    return aux.value_tree, application.results[: aux.value_tree.num_leaves]


def refuse_effects(ops: Sequence[Op], who: str) -> None:
    """An error if running `ops` would make effects happen again."""
    for op in ops:
        if op.has_effect:
            complain(
                errors.TransformError,
                f"{who} has to run the {op.name} of the function once more, and it has effects "
                "(callbacks, checks), which would happen again",
                "use jt.grad or jt.jvp, which run everything once.",
                line=op.loc,
            )


def tape_makers(ops: Sequence[Op], late: Sequence[Op]) -> list[Op]:
    """The ops that fill the tapes that `late` ops read. A tape is read once, so they run again."""
    makers: set[Op] = set()
    pending = [*late]
    readers = set(late)
    while pending:
        for v in pending.pop().operands:
            maker = v.op
            if v.type == TAPE and maker is not None and maker not in readers | makers:
                makers.add(maker)
                pending.append(maker)
    return [op for op in ops if op in makers]


def _derivative(
    transform: Callable[[Graph, Sequence[int], Sequence[int]], Graph],
    graph: Graph,
    wrt: Sequence[int],
    outputs: Sequence[int],
) -> Graph:
    try:
        return transform(graph, wrt, outputs)
    except DerivativeError as error:
        remedy = "jt.stop_gradient(x) makes x a constant, where that is what you mean."
        if transform is vjp_graph and _has_forward_mode(graph, wrt, outputs):
            remedy = (
                "forward mode goes through it: jt.jvp(f, primals, tangents) or jt.jacfwd(f); and "
                "outside of jit, where loops run in Python, jt.grad does too."
            )
        complain(
            errors.TransformError,
            f"this program cannot be differentiated: {error}",
            remedy,
            line=getattr(error.op, "loc", None),
            cause=error,
        )


def _has_forward_mode(graph: Graph, wrt: Sequence[int], outputs: Sequence[int]) -> bool:
    try:
        jvp_graph(graph, wrt, outputs)
    except DerivativeError:
        return False
    return True


def _spans(args: Sequence[Any]) -> list[tuple[int, int]]:
    """For each positional argument, where its leaves stand among those of `(args, kwargs)`."""
    spans, start = [], 0
    for arg in args:
        stop = start + len(pytree.flatten(arg)[0])
        spans.append((start, stop))
        start = stop
    return spans


def _apply_to_primals(
    fun: Function,
    primals: tuple[Any, ...],
    leaves: Sequence[Any],
    has_aux: bool,
    what: str,
    copy: bool = False,
) -> tuple[Application, _Aux | None]:
    aux = _Aux() if has_aux else None
    tree = pytree.flatten((primals, {}))[1]
    lengths = pytree.lengths_among(primals)
    traced = [_is_traced(leaf) and i not in lengths for i, leaf in enumerate(leaves)]
    active = [is_inexact_leaf(leaf) for leaf in leaves]
    function = aux.split(fun) if aux else fun
    return apply(function, leaves, tree, traced, active, what=what, copy=copy), aux


def _loss(result: Any) -> Any:
    """What is differentiated: a number that is None on other ways has a derivative where it is one."""
    return only(result, message="the function that grad differentiates returned None")


def _is_traced(leaf: Any) -> bool:
    """Whether vjp and jvp trace a leaf: floats and arrays; a Python int stays what it is."""
    return is_array(leaf) or is_inexact_leaf(leaf)


def _lengths_in(tree: Any) -> dict[int, Any]:
    """The leaves of a tree that are lengths of arrays, by where they stand."""
    leaves = pytree.flatten(tree)[0]
    return {i: leaves[i] for i in sorted(pytree.lengths_among(tree))}


def _float_parameters(leaves: Sequence[Any], lengths: Container[int]) -> list[int]:
    """The parameters with derivatives, among those of the traced leaves."""
    traced = [leaf for i, leaf in enumerate(leaves) if _is_traced(leaf) and i not in lengths]
    return [i for i, leaf in enumerate(traced) if is_inexact_leaf(leaf)]


def _ones(value: Value) -> Leaf:
    one = value.dtype.type(1)
    return np.asarray(one) if current_trace() is None else as_value(one)


def _present_results(application: Application, results: Sequence[Result]) -> list[Any]:
    leaves = application.read([application.output(r) for r in results])
    return [present(x, r.weak, r.scalar) for x, r in zip(leaves, results, strict=True)]


def present_tangents(
    results: Sequence[Result], pushed: Sequence[int], tangents: Sequence[Leaf]
) -> list[Any]:
    """The tangents of `results`, each like its result; None where no tangent was `pushed`."""
    tangents_out: list[Any] = [None] * len(results)
    for index, tangent in zip(pushed, tangents, strict=True):
        tangents_out[index] = present(tangent, results[index].weak, results[index].scalar)
    return tangents_out


def _present_aux(application: Application, aux: _Aux | None, start: int) -> Any:
    """aux, whose arrays stand at `start` of the results; None if there is none."""
    if aux is None:
        return None
    return aux.join(_present_results(application, application.results[start:]))


def _present_gradients(
    gradients: Sequence[Leaf], primals: Sequence[Any], fresh: bool = True
) -> list[Any]:
    """Gradients as the caller sees them: each like its primal, sharing memory with nothing."""
    seen = {id(x) for x in primals}
    presented = []
    for gradient, primal in zip(gradients, primals, strict=True):
        scalar = primal.scalar if isinstance(primal, Tracer) else not np.ndim(primal)
        private = fresh and id(gradient) not in seen
        presented.append(present(gradient, weak_kind(primal), scalar, fresh=private))
        seen.add(id(gradient))
    return presented
