"""`implicit`: the solution of an equation, with the derivative of the implicit function theorem.

How it was found is no part of the derivative; `ir.ops.control.implicit` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...ir.ops.control.implicit import IMPLICIT
from ...ir.types import is_inexact
from ..control.regions import TracedRegion, show_tree, trace_region, union
from ..core.specs import spec_of
from ..core.trace import EagerBuilder, current_trace, require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..data.callables import Function, check_callable, function_name
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from ..messages.tracebacks import shortened
from .custom_call import after, lend, pending_derivatives
from .derivatives import jvp, stop_gradient, vjp

T = TypeVar("T")
Solver = Callable[[Function, Any], Any]


@shortened
def implicit(
    fun: Callable[[T], T], x: T, solve: Solver, transpose_solve: Solver | None = None
) -> T:
    """`x`, which solves `fun(x) == 0`, as a function of what `fun` closes over.

        x = jt.implicit(fun, found, solve)      # found by any means: they are not differentiated

    Derivatives, in both modes and of any order, are those of the implicit function theorem. `x` is an
    array of floats or a tree of such, and `fun` gives the same shapes. `solve(matvec, b)` gives the v
    with `matvec(v) == b`, where matvec is the derivative of `fun` at x, a linear function; so does
    `transpose_solve`, by default `solve`, for the transposed of it, which reverse mode asks for.

    Raises jt.errors.TransformError for an x of integers or complex numbers, and where `fun` or `solve`
    gives what has not the structure of x.

    >>> def root(a):
    ...     found = np.sqrt(jt.stop_gradient(a))
    ...     return jt.implicit(lambda x: x * x - a, found, lambda matvec, b: b / matvec(1.0))
    >>> jt.grad(root)(4.0)
    0.25
    """
    check_callable(fun, "implicit")
    check_callable(solve, "implicit")
    trace = current_trace()
    if trace is None or not pending_derivatives():
        return x
    if isinstance(trace.builder, EagerBuilder) and not trace.builder.active:
        return x
    leaves, tree = pytree.flatten(x)
    values = [as_value(leaf) for leaf in stop_gradient(leaves)]
    for value in values:
        if value.tensor.dtype.kind == "c" or not is_inexact(value.tensor.dtype):
            complain(
                errors.TransformError,
                f"implicit solves for real floats, not for {value.type}",
                "give the equation in floats (real and imaginary parts are two of them).",
            )
    cut = [
        wrap(v, scalar=x.scalar) if isinstance(x, Tracer) else wrap(v)
        for v, x in zip(values, leaves, strict=True)
    ]
    equation = _Equation(fun, cut, tree)
    with after(1):
        solver = equation.solver(solve, transposed=False)
        backwards = equation.solver(transpose_solve or solve, transposed=True)
    regions = [equation.region, solver, backwards]
    captured = union(regions)
    types = [v.tensor for v in values]
    graphs = [r.close(captured, r.values, types, captures_first=True) for r in regions]
    builder = require_trace().builder
    attrs = {"inputs": len(captured), "name": function_name(fun)}
    with builder.at(user_line(2)):
        op = builder.append(IMPLICIT, [*captured, *values], attrs, graphs)
    made = [wrap(v, scalar=c.scalar) for v, c in zip(op.results, cut, strict=True)]
    return pytree.unflatten(tree, made)


class _Equation:
    """`fun(x) == 0`, and the linear systems that its derivatives ask for."""

    def __init__(self, fun: Function, x: Sequence[Tracer], tree: pytree.TreeDef) -> None:
        self.fun, self.x, self.tree = fun, x, tree
        self.name = function_name(fun)
        self.region = self._traced(
            lambda *leaves: fun(pytree.unflatten(tree, leaves)), 1, self.name
        )

    def solver(self, solve: Solver, transposed: bool) -> TracedRegion:
        """`solve` as a region of x and the right side."""

        def linear(*leaves: Any) -> Any:
            n = len(self.x)
            x, b = (pytree.unflatten(self.tree, part) for part in (leaves[:n], leaves[n:]))
            if transposed:
                pull = vjp(self.fun, x)[1]
                return solve(lambda w: pull(w)[0], b)
            return solve(lambda v: jvp(self.fun, (x,), (v,))[1], b)

        return self._traced(linear, 2, f"{function_name(solve)}, the solver of {self.name},")

    def _traced(self, function: Function, times: int, what: str) -> TracedRegion:
        """A region of so many arguments like x, which gives what is like x."""

        def lent(*leaves: Any) -> Any:
            lend(leaves, self.x)
            return function(*leaves)

        specs = [spec_of(x) for x in self.x] * times
        tree = pytree.flatten((tuple(range(len(specs))), {}))[1]
        region = trace_region(lent, specs, tree, f"implicit({self.name})")
        wanted = [x.type for x in self.x]
        found = [out.type for out in region.outs]
        if region.tree != self.tree or [t.shape for t in found] != [t.shape for t in wanted]:
            complain(
                errors.TransformError,
                f"{what} gives {_shown(region.tree, found)}, and x is {_shown(self.tree, wanted)}",
                "give one number for each number of x, in the same structure.",
            )
        return region


def _shown(tree: pytree.TreeDef, types: Sequence[Any]) -> str:
    listed = ", ".join(map(str, types))
    return listed if len(types) == 1 else f"{show_tree(tree)} of {listed}"
