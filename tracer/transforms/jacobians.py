"""Jacobians: `jacrev`, `jacfwd`, `hessian`, by rows or columns.

Few of them are computed abreast in compiled code, as by `vmap`: what they have in common is computed
once. Many, whose values between would take much memory, in a `fori_loop`, and outside of jit one after
the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

import numpy as np

from ..control.control import fori_loop
from ..core import threaded_state
from ..core.specs import is_inexact_leaf
from ..core.trace import current_trace
from ..core.tracers import Tracer
from ..core.tracing import twin_of
from ..data import pytree
from ..data.callables import Function, check_callable, function_name
from ..data.entering import open_call
from ..data.opened import closed, opened
from ..data.opened import leaves as leaves_of
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from .derivatives import jvp, vjp
from .differentiable import check_inexact_leaves, check_result
from .linear import linearize
from .outer_state import changes_state
from .vmap import vmap
from .wrapping import named, normal_positions

P = ParamSpec("P")

ABREAST = 64  # rows or columns, up to which all are computed at once


@shortened
def jacrev(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False
) -> Callable[P, Any]:
    """The Jacobian by reverse mode: one backward pass per element of the result.

    `jacrev(f)(x)` has the structure of `f(x)`, and in place of each array y of it the structure of x,
    with an array of shape `y.shape + x.shape` for each array x. Best for few outputs.

    The function is real (of real or complex arguments, see `grad`), or `holomorphic`.

    >>> jt.jacrev(np.square)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_callable(fun, "jacrev")
    positions = normal_positions(argnums)

    @named("jacrev", fun)
    def jacrev_fun(*args: Any, **kwargs: Any) -> Any:
        function, primals = _close(fun, positions, args, kwargs, "jacrev", holomorphic)
        out, vjp_fn = vjp(function, *primals)
        outs, out_tree = pytree.flatten(opened(out))
        _check_results(outs, fun, "jacrev", holomorphic)
        inputs, in_tree = pytree.flatten(primals)
        blocks = []
        for k, y in enumerate(outs):

            def row(i: Any, k: int = k) -> list[Any]:
                cotangent = [
                    _basis(z, i) if j == k else np.zeros(_shape(z), _dtype(z))[()]
                    for j, z in enumerate(outs)
                ]
                return leaves_of(vjp_fn(closed(pytree.unflatten(out_tree, cotangent))))

            rows = _for_each(row, math.prod(_shape(y)), inputs)
            block = [_reshaped(r, _shape(y) + _shape(x)) for r, x in zip(rows, inputs, strict=True)]
            blocks.append(_of_arguments(closed(pytree.unflatten(in_tree, block)), argnums))
        return closed(pytree.unflatten(out_tree, blocks))

    return jacrev_fun


@shortened
def jacfwd(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False
) -> Callable[P, Any]:
    """The Jacobian by forward mode: one forward pass per element of the arguments.

    The result is that of `jacrev`. Best for few inputs, which are real unless `holomorphic`.

    >>> jt.jacfwd(np.square)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    check_callable(fun, "jacfwd")
    positions = normal_positions(argnums)

    @named("jacfwd", fun)
    def jacfwd_fun(*args: Any, **kwargs: Any) -> Any:
        function, primals = _close(fun, positions, args, kwargs, "jacfwd", holomorphic)
        inputs, in_tree = pytree.flatten(primals)
        drawn = threaded_state.draws()
        push: Function = functools.partial(_pushed, function, primals)
        if changes_state(fun, (args, kwargs)):
            result, push = linearize(function, *primals)  # all columns are of one call
        else:
            result = _result(function, inputs, in_tree)
        outs, out_tree = pytree.flatten(opened(result))
        _check_results(outs, fun, "jacfwd", holomorphic)
        if threaded_state.draws() != drawn:  # they are of the same numbers, too
            _, push = linearize(function, *primals)
        columns_of = []
        for k, x in enumerate(inputs):

            def column(i: Any, k: int = k) -> list[Any]:
                tangent = [
                    _basis(z, i) if j == k else np.zeros(_shape(z), _dtype(z))[()]
                    for j, z in enumerate(inputs)
                ]
                return leaves_of(push(*pytree.unflatten(in_tree, tangent)))

            columns_of.append(_for_each(column, math.prod(_shape(x)), outs))
        blocks = []
        for j, y in enumerate(outs):
            block = [
                _reshaped(_last(columns[j]), _shape(y) + _shape(x))
                for columns, x in zip(columns_of, inputs, strict=True)
            ]
            blocks.append(_of_arguments(closed(pytree.unflatten(in_tree, block)), argnums))
        return closed(pytree.unflatten(out_tree, blocks))

    return jacfwd_fun


@shortened
def hessian(
    fun: Callable[P, Any], argnums: int | Sequence[int] = 0, holomorphic: bool = False
) -> Callable[P, Any]:
    """The matrix of second derivatives, forward over reverse.

    >>> jt.hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacfwd(jacrev(fun, argnums, holomorphic), argnums, holomorphic)


def _for_each(derivative: Callable[[Any], list[Any]], count: int, like: Sequence[Any]) -> list[Any]:
    """The derivatives along each element of a basis, in arrays of `count` times what they are like."""
    if current_trace() is not None and 0 < count <= ABREAST:

        def one(i: Any) -> list[Any]:
            return [d.astype(_dtype(x)) for d, x in zip(derivative(i), like, strict=True)]

        abreast: list[Any] = vmap(one)(np.arange(count))
        return abreast

    def step(i: Any, rows: list[Any]) -> list[Any]:
        for row, value in zip(rows, derivative(i), strict=True):
            row[i] = value
        return rows

    return fori_loop(0, count, step, [np.zeros((count, *_shape(x)), _dtype(x)) for x in like])


def _close(
    fun: Function,
    positions: Sequence[int],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    what: str,
    holomorphic: bool,
) -> tuple[Function, tuple[Any, ...]]:
    """`fun` as a function of the chosen arguments alone, and these arguments."""
    real = what == "jacfwd"
    fun, args = open_call(fun, args, positions)
    chosen = check_inexact_leaves(positions, args, fun, what, holomorphic=holomorphic, real=real)

    @functools.wraps(fun)  # autograph finds its way by that
    def function(*primals: Any) -> Any:
        full = list(args)
        for position, primal in zip(chosen, primals, strict=True):
            full[position] = primal
        return fun(*full, **kwargs)

    function.__name__ = function.__qualname__ = function_name(fun)
    return function, tuple(args[p] for p in chosen)


def _check_results(outs: Sequence[Any], fun: Function, what: str, holomorphic: bool) -> None:
    for y in outs:
        if not is_inexact_leaf(y):
            complain(
                errors.DTypeError,
                f"{what} needs float results; {function_name(fun)} returned another",
                "only float and complex results have derivatives.",
                operands={"result": y},
            )
        if what == "jacrev" or holomorphic:
            check_result(_dtype(y), what, fun, holomorphic)


def _result(function: Function, inputs: Sequence[Any], in_tree: pytree.TreeDef) -> Any:
    """`closed` of the inputs; outside of tracing in steps, so that what it draws is noticed."""
    if current_trace() is not None:
        return twin_of(function)(*pytree.unflatten(in_tree, map(_copy, inputs)))
    zeros = [np.zeros(_shape(x), _dtype(x))[()] for x in inputs]
    return jvp(function, *(pytree.unflatten(in_tree, x) for x in (inputs, zeros)))[0]


def _pushed(function: Function, primals: tuple[Any, ...], *tangents: Any) -> Any:
    return jvp(function, primals, tangents)[1]


def _shape(x: Any) -> tuple[int, ...]:
    return x.shape if isinstance(x, Tracer) else np.shape(x)


def _dtype(x: Any) -> np.dtype[Any]:
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, (np.ndarray, Tracer)) else x


def _basis(x: Any, i: Any) -> Any:
    """Element i of the standard basis of arrays like `x`."""
    shape = _shape(x)
    return (np.arange(math.prod(shape)) == i).astype(_dtype(x)).reshape(shape)[()]


def _last(columns: Any) -> Any:
    """The first axis moved to the end."""
    return columns.transpose((*range(1, columns.ndim), 0))


def _reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    """A fresh array of that shape, a scalar where that is 0-d."""
    return array.reshape(shape).copy() if shape else array.reshape(-1)[0]


def _of_arguments(block: tuple[Any, ...], argnums: int | Sequence[int]) -> Any:
    return block[0] if isinstance(argnums, int) else block
