"""Loops as one op: `while` for a trip count known only at run time, `scan` for a known one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.build import Builder
from ...ir.graph import Graph, Value
from ...ir.opdef import OPS
from ...ir.types import BOOL, TensorType
from ..arrays.python_integers import note_step
from ..core import threaded_state
from ..core.effects import advance, order_token
from ..core.specs import Spec
from ..core.trace import require_trace
from ..core.tracers import Storage, Tracer, as_value, wrap
from ..data import pytree
from ..data.callables import Function
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import user_line
from .carries import LoopCarry
from .regions import TracedRegion, have_effects, show_tree, trace_region, union


def while_region(
    cond_fn: Function,
    body_fn: Function,
    init: Any,
    what: str,
    *,
    counted: bool = False,
    variable: str = "carry",
    checkpoint: str | int = "all",
) -> Any:
    """Append a `while` op and return its carry. `what` names it in messages; the rest: see Carry.

    States that the body advances (`streams`) are carried, too; those that the condition advances make
    the body compute the condition, for the next iteration.
    """

    def turned() -> Any:
        def body(carried: Any) -> Any:
            own = body_fn(carried[0])
            return own, cond_fn(own)

        first = (init, cond_fn(init))
        return while_region(
            lambda carried: carried[1], body, first, what, variable=variable, checkpoint=checkpoint
        )[0]

    def build(storages: list[Storage]) -> Any:
        if not storages:
            return _while_region(cond_fn, body_fn, init, what, counted, variable, checkpoint)
        join, part = _joined(counted)

        def body(carried: Any) -> Any:
            own, states = part(carried)
            return join(*threaded_state.inside(storages, states, body_fn, own))

        first = join(init, threaded_state.states(storages))
        carried = _while_region(
            lambda carried: cond_fn(part(carried)[0]),
            body,
            first,
            what,
            counted,
            variable,
            checkpoint,
        )
        result, after = part(carried)
        threaded_state.settle(storages, after)
        return result

    return threaded_state.threaded(build, None if counted else turned)


def _joined(counted: bool) -> tuple[Callable[[Any, Any], Any], Callable[[Any], tuple[Any, Any]]]:
    """How states join a carry, and how the two are taken apart."""
    if not counted:
        return (lambda carry, states: (carry, states)), (lambda carried: carried)
    return (
        lambda carry, states: (carry[0], (carry[1], states)),
        lambda carried: ((carried[0], carried[1][0]), carried[1][1]),
    )


def _while_region(
    cond_fn: Function,
    body_fn: Function,
    init: Any,
    what: str,
    counted: bool,
    variable: str,
    checkpoint: str | int,
) -> Any:
    carry = LoopCarry(init, what, "body_fn", counted=counted, variable=variable)

    def traced(function: Function, part: str) -> TracedRegion:
        tree = pytree.flatten(((carry.init,), {}))[1]
        return trace_region(_stepping(function), carry.specs, tree, f"the {part} of {what}")

    body = carry.settle(lambda: traced(body_fn, "body"), lambda body: body.tree)
    test = traced(cond_fn, "condition")
    _check_condition(test, what)

    captured = union([test, body])
    token = [order_token()] if have_effects([test, body]) else []
    nothing = [None for _ in token]
    token_at = len(carry.outs) if token else None
    types = [*(out.type for out in carry.outs), *nothing]
    bool_ = [TensorType((), BOOL)]
    regions = [
        test.close(captured, test.values, bool_, captures_first=True, token_at=token_at),
        body.close(
            captured, [*body.values, *nothing], types, captures_first=True, token_at=token_at
        ),
    ]
    operands = [*captured, *carry.start(), *token]
    attrs: dict[str, Any] = {"consts": len(captured)}
    if checkpoint != "all":
        attrs["checkpoint"] = checkpoint
    return carry.unflatten(_append("while", operands, attrs, regions))


def scan_region(
    function: Function,
    init: Any,
    xs: Any,
    length: int,
    what: str,
    *,
    reverse: bool = False,
    unroll: int = 1,
    counted: bool = False,
    variable: str = "carry",
    body_name: str = "f",
) -> tuple[Any, Any]:
    """Append a `scan` op; returns `(carry, ys)`. Every leaf of `xs` has `length` slices.

    With `unroll` an iteration of the op makes that many steps. States that the body advances
    (`streams`) are carried, too.
    """

    def build(storages: list[Storage]) -> Any:
        options = (xs, length, what, reverse, unroll, counted, variable, body_name)
        if not storages:
            return _scan_region(function, init, *options)
        join, part = _joined(counted)

        def body(carried: Any, x: Any) -> Any:
            own, states = part(carried)
            pair, after = threaded_state.inside(storages, states, function, own, x)
            if not (isinstance(pair, tuple) and len(pair) == 2):
                return pair  # refused as it is
            return join(pair[0], after), pair[1]

        carried, ys = _scan_region(body, join(init, threaded_state.states(storages)), *options)
        result, after = part(carried)
        threaded_state.settle(storages, after)
        return result, ys

    return threaded_state.threaded(build)


def _scan_region(
    function: Function,
    init: Any,
    xs: Any,
    length: int,
    what: str,
    reverse: bool,
    unroll: int,
    counted: bool,
    variable: str,
    body_name: str,
) -> tuple[Any, Any]:
    x_leaves, x_tree = pytree.flatten(xs)
    values = [as_value(x) for x in x_leaves]
    slices = [TensorType(v.shape[1:], v.dtype) for v in values]
    carry = LoopCarry(init, what, body_name, counted=counted, variable=variable)

    def trace_body() -> TracedRegion:
        tree = pytree.flatten(((carry.init, xs), {}))[1]
        specs = [*carry.specs, *(Spec(t, None, t.shape == ()) for t in slices)]
        return trace_region(_stepping(function), specs, tree, f"the body of {what}")

    def carried(body: TracedRegion) -> pytree.TreeDef:
        if body.tree.type is not tuple or body.tree.num_children != 2:
            complain(
                errors.CarryError,
                f"{body_name} of {what} must return a pair (carry, y); it returned "
                f"{show_tree(body.tree)}",
                "return the new carry and the result of this step, which may be None.",
            )
        return body.tree.child(0)

    body = carry.settle(trace_body, carried)
    count = len(carry.outs)
    captured = union([body])
    token = [order_token()] if have_effects([body]) else []
    nothing = [None for _ in token]
    ys = body.values[count:]
    region = body.close(
        captured,
        [*body.values[:count], *nothing, *ys],
        [*(out.type for out in carry.outs), *nothing, *(y.tensor for y in ys)],
        captures_first=True,
        token_at=count if token else None,
    )
    start = [*carry.start(), *token]
    results = _Scan(region, captured, len(start), reverse).run(start, values, length, unroll)
    stacked = [wrap(v, scalar=False) for v in results[len(start) :]]
    return carry.unflatten(results), pytree.unflatten(body.tree.child(1), stacked)


def _stepping(function: Function) -> Function:
    """`function` of a carry, whose Python integers are known to be handed on by a loop."""

    def noting(carry: Any, *rest: Any) -> Any:
        for leaf in pytree.flatten(carry)[0]:
            if isinstance(leaf, Tracer) and leaf.weak == "i":
                note_step(leaf.value)
        return function(carry, *rest)

    return noting


def _append(
    name: str, operands: Sequence[Value], attrs: dict[str, Any], regions: Sequence[Graph]
) -> Sequence[Value]:
    builder = require_trace().builder
    with builder.at(user_line(2)):
        results = builder.append(OPS[name], operands, attrs, regions).results
    advance(results)
    return results


class _Scan:
    """Scans with one body: as one op, with several steps in an iteration, or without any loop."""

    def __init__(self, body: Graph, consts: Sequence[Value], carries: int, reverse: bool) -> None:
        self.body, self.consts, self.carries, self.reverse = body, consts, carries, reverse

    def run(
        self, start: Sequence[Value], xs: Sequence[Value], length: int, unroll: int
    ) -> list[Value]:
        """The last carries, then the stacked ys."""
        builder = require_trace().builder
        unroll = min(unroll, length)
        if unroll <= 1:
            return self._op(self.body, start, xs, length)
        with builder.at(user_line(2)):
            if unroll == length:
                results = self._steps(builder, self.consts, start, xs, length)
                advance(tuple(results))
                return results
            iterations, rest = divmod(length, unroll)
            low, high = (rest, length) if self.reverse else (0, length - rest)
            many = [_window(builder, x, low, high) for x in xs]
            many = [builder.reshape(x, shape=(iterations, unroll, *x.shape[1:])) for x in many]
        results = self._op(self._unrolled(unroll), start, many, iterations)
        ys = []
        with builder.at(user_line(2)):
            for y in results[self.carries :]:
                ys.append(builder.reshape(y, shape=(iterations * unroll, *y.shape[2:])))
        if not rest:
            return [*results[: self.carries], *ys]
        low, high = (0, rest) if self.reverse else (length - rest, length)
        with builder.at(user_line(2)):
            few = [_window(builder, x, low, high) for x in xs]
        last = self._op(self.body, results[: self.carries], few, rest)
        with builder.at(user_line(2)):
            pairs = zip(ys, last[self.carries :], strict=True)
            ys = [builder.concat(*((b, a) if self.reverse else (a, b)), axis=0) for a, b in pairs]
        return [*last[: self.carries], *ys]

    def _op(
        self, body: Graph, start: Sequence[Value], xs: Sequence[Value], length: int
    ) -> list[Value]:
        attrs = {
            "consts": len(self.consts),
            "carries": self.carries,
            "length": length,
            "reverse": self.reverse,
        }
        return list(_append("scan", [*self.consts, *start, *xs], attrs, [body]))

    def _unrolled(self, unroll: int) -> Graph:
        """A body that makes `unroll` steps, over that many slices of each x."""
        body = self.body
        graph = Graph(body.name)
        builder = Builder(graph)
        cut = len(self.consts) + self.carries
        own = [graph.add_param(v.type, v.name) for v in body.params[:cut]]
        xs = [
            graph.add_param(v.tensor.with_shape((unroll, *v.shape)), v.name)
            for v in body.params[cut:]
        ]
        consts, carry = own[: len(self.consts)], own[len(self.consts) :]
        graph.outputs = self._steps(builder, consts, carry, xs, unroll)
        return graph

    def _steps(
        self,
        builder: Builder,
        consts: Sequence[Value],
        carry: Sequence[Value],
        xs: Sequence[Value],
        count: int,
    ) -> list[Value]:
        ys: list[list[Value]] = []
        for i in reversed(range(count)) if self.reverse else range(count):
            parts = [_window(builder, x, i, i + 1) for x in xs]
            slices = [builder.reshape(x, shape=x.shape[1:]) for x in parts]
            out = builder.inline(self.body, [*consts, *carry, *slices])
            carry = out[: self.carries]
            ys.append([builder.reshape(y, shape=(1, *y.shape)) for y in out[self.carries :]])
        if self.reverse:
            ys.reverse()
        return [*carry, *(builder.concat(*parts, axis=0) for parts in zip(*ys, strict=True))]


def _window(builder: Builder, x: Value, low: int, high: int) -> Value:
    """`x[low:high]`."""
    rest = x.shape[1:]
    return builder.slice(
        x,
        start=(low, *(0 for _ in rest)),
        stop=(high, *rest),
        step=(1,) * (1 + len(rest)),
    )


def condition_remedy(is_python_int: bool) -> str:
    """What to write where a condition is no bool."""
    if is_python_int:
        return (
            "`~` of a Python bool is -1 or -2: write jt.logical_not(x) for the other one; compare a "
            "number: x != 0."
        )
    return "reduce an array with np.any or np.all; compare a number: x != 0."


def _check_condition(test: TracedRegion, what: str) -> None:
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
            condition_remedy(out.weak == "i"),
        )
    if test.mutated:
        complain(
            errors.OuterMutationError,
            f"the condition of {what} assigns to the carry",
            "assign in the body; the condition only looks at the carry.",
        )
