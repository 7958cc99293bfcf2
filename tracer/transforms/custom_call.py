"""One call of a function with a derivative rule, as a part of what is being traced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...ir.graph import Graph, Value
from ...ir.opdef import OpDef
from ...ir.types import TensorType, is_inexact
from ..control.regions import Out
from ..core.specs import is_array
from ..core.trace import current_trace, require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..core.tracing import Result
from ..data import pytree
from ..data.callables import Function, function_name
from ..messages.source import user_line
from .application import Application, apply

_DERIVATIVES = frozenset({"grad", "vjp", "jvp", "linearize", "linear_transpose"})


def pending_derivatives() -> int:
    """How many derivatives will be taken of what is traced now."""
    trace, count = current_trace(), 0
    while trace is not None:
        count += (trace.what in _DERIVATIVES) - trace.derivatives_taken
        trace = trace.parent
    return max(count, 0)


@contextmanager
def after(derivatives: int) -> Iterator[None]:
    """What is traced here comes into being by so many derivatives: fewer of it are to come."""
    trace = require_trace()
    trace.derivatives_taken += derivatives
    try:
        yield
    finally:
        trace.derivatives_taken -= derivatives


def lend(inner: Sequence[Any], outer: Sequence[Any]) -> None:
    """Inside of a rule's region, `inner` stand for the `outer` values, whenever the rule runs: those of
    an eager trace may be asked for, in an `if` say."""
    lent = require_trace().lent
    for x, value in zip(inner, outer, strict=False):
        if isinstance(value, Tracer):
            lent[as_value(x)] = value.value


class KnownCall:
    """The call of `function` whose rule is traced: the result is there if the rule calls it again."""

    def __init__(
        self,
        function: Any,
        fixed: Sequence[Any],
        leaves: Sequence[Any],
        results: Sequence[Tracer],
        out_tree: pytree.TreeDef,
    ) -> None:
        self.function = function
        self.arguments = [*fixed, *map(_held, leaves)]
        self.outs = [(as_value(x), x.weak, x.scalar) for x in results]
        self.out_tree = out_tree

    def is_of(self, function: Any, args: Sequence[Any]) -> bool:
        """Whether the call is that of `function` with these arguments, as they are now."""
        if function is not self.function:
            return False
        apart = function.nondiff_argnums
        fixed = [args[i] for i in apart]
        leaves = pytree.flatten(tuple([x for i, x in enumerate(args) if i not in apart]))[0]
        given = [*fixed, *map(_held, leaves)]
        same = len(given) == len(self.arguments)
        return same and all(a is b for a, b in zip(given, self.arguments, strict=True))

    def result(self) -> Any:
        """What it returned, in arrays that may be assigned to."""
        outs = [wrap(v, weak, scalar=scalar) for v, weak, scalar in self.outs]
        return pytree.unflatten(self.out_tree, outs)


def _held(leaf: Any) -> Any:
    """What tells whether a leaf is the same: of an array the value that it holds now."""
    return as_value(leaf) if isinstance(leaf, Tracer) else leaf


class CustomCall:
    """The arguments of one call: those with derivatives, the others (`fixed`), and their leaves."""

    def __init__(self, fun: Function, fixed: Sequence[int], args: tuple[Any, ...]) -> None:
        self.name = function_name(fun)
        self.args = args
        self.fixed = [args[i] for i in fixed]
        self.moving = [i for i in range(len(args)) if i not in fixed]
        self.primals = tuple(args[i] for i in self.moving)
        self.leaves, self.tree = pytree.flatten(self.primals)
        self.traced = [is_array(leaf) for leaf in self.leaves]
        self.inputs = [as_value(x) for x, t in zip(self.leaves, self.traced, strict=True) if t]

    def floats(self) -> list[int]:
        """The leaves with a derivative."""
        return [
            i
            for i, (leaf, t) in enumerate(zip(self.leaves, self.traced, strict=True))
            if t and is_inexact(leaf.dtype)
        ]

    def run(self, function: Function) -> tuple[Application, list[Value]]:
        """`function(*args)` as a part of the current trace, and the values of its results."""

        def positional(*primals: Any) -> Any:
            full = list(self.args)
            for i, primal in zip(self.moving, primals, strict=True):
                full[i] = primal
            return function(*full)

        tree = pytree.flatten((self.primals, {}))[1]
        nothing = [False] * len(self.leaves)
        application = apply(
            positional,
            self.leaves,
            tree,
            self.traced,
            nothing,
            what=f"a call of {self.name}",
            detached=not pending_derivatives(),
        )
        results = application.results
        computed = application.arrays
        application.adopt(application.over(computed), computed, [])
        leaves = application.read([application.output(r) for r in results])
        return application, [as_value(v) if not isinstance(v, Value) else v for v in leaves]

    def closed(self, application: Application) -> list[Value]:
        """The floats that the call closes over."""
        outer = [capture.outer for capture in application.traced.captures]
        floats = [v for v in outer if isinstance(v, Value) and isinstance(v.type, TensorType)]
        return [v for v in dict.fromkeys(floats) if is_inexact(v.dtype)]

    def append(
        self,
        definition: OpDef,
        raw: Sequence[Value],
        results: Sequence[Result | Out],
        closed: Sequence[Value],
        rest: Sequence[Value],
        rule: Graph,
    ) -> list[Any]:
        """The op that stands for the call; its results as tracers."""
        attrs = {
            "inputs": len(self.inputs),
            "outputs": len(raw),
            "closed": len(closed),
            "name": self.name,
        }
        builder = require_trace().builder
        with builder.at(user_line(3)):
            op = builder.append(definition, [*self.inputs, *raw, *closed, *rest], attrs, [rule])
        return [wrap(v, r.weak, scalar=r.scalar) for v, r in zip(op.results, results, strict=True)]
