"""One application of a function to arguments, kept open so that derivatives can be appended to it.

`apply` traces the function and puts its ops where they belong:

- outside of tracing the function runs eagerly, and `Application` holds the ndarray of every value;
- inside an eager trace it runs eagerly too, and its ops are appended to that trace;
- inside any other trace its ops wait for the derivative that they become part of.

A derivative graph (`ir.autodiff`) shares the ops and values of the graph it was made from, except for
loops and branches, which it replaces. `adopt` runs or appends what is not there yet, so the
forward computation is never done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Graph, Op, Value
from ...ir.passes.simplify import last_of_loops
from ...ir.record import replace
from ...ir.types import TOKEN, is_inexact
from ..core.specs import Spec, Static, spec_of
from ..core.threaded_state import BorrowedStates, settle
from ..core.trace import Array, EagerBuilder, Trace, current_trace
from ..core.tracers import Tracer, as_value, concrete
from ..core.tracing import Result, Traced, trace_function
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .outer_state import OuterState
from .presented import Leaf


class _Env(dict[Value, Leaf]):
    """Values known by now; what is missing is asked of `resolve` once."""

    def __init__(self, resolve: Callable[[Value], Leaf]) -> None:
        super().__init__()
        self._resolve = resolve

    def __missing__(self, value: Value) -> Leaf:
        leaf = self[value] = self._resolve(value)
        return leaf


class Application:
    """A traced call. `owner` is the trace that it is part of, or None outside of tracing."""

    def __init__(self, traced: Traced, owner: Trace | None, env: dict[Value, Leaf]) -> None:
        self.traced = traced
        self.owner = owner
        self._env = env
        # The ops that were run or appended already.
        self._placed = set[Op]() if owner is not None and not owner.eager else set(self.graph.ops)
        self._instead: dict[Value, Value] = {}
        # States that the function advances are results behind its own.
        first = len(self.graph.outputs)
        self._states = [Result(output=first + i) for i in range(len(traced.advanced))]
        self.graph.outputs += [value for _, value in traced.advanced]
        self._settled = False

    @property
    def graph(self) -> Graph:
        return self.traced.graph

    @property
    def results(self) -> list[Result]:
        return self.traced.results

    @property
    def arrays(self) -> list[Result]:
        """What the function computes: its results that are outputs of the graph, then states."""
        return [r for r in self.traced.results if r.output is not None] + self._states

    def output(self, result: Result) -> Value:
        assert result.output is not None
        return self.graph.outputs[result.output]

    def inexact(self, results: Sequence[Result]) -> list[int]:
        """Which of `results`, the first of all, have derivatives. A value returned twice is two."""
        return [i for i, r in enumerate(results) if is_inexact(self.output(r).dtype)]

    def over(self, results: Iterable[Result]) -> Graph:
        """The graph with nothing but these results as outputs, ready to be differentiated."""
        graph = Graph(self.graph.name)
        graph.params = self.graph.params
        graph.ops = self.graph.ops
        graph.outputs = [self.output(result) for result in results]
        return last_of_loops(graph) if self._placed.isdisjoint(graph.ops) else graph

    def adopt(
        self, derivative: Graph, results: Sequence[Result], seeds: Sequence[Leaf] | None = None
    ) -> list[Op]:
        """Run or append a derivative of `over(results)`, from which `results` are read from now on.

        Without values for its seeds (the parameters beyond the function's own) only what does not
        depend on them; the ops that do are given back.
        """
        waiting = derivative.params[len(self.graph.params) :]
        late: list[Op] = []
        if seeds is None:
            dependent = set(waiting)
            for op in derivative.ops:
                if not dependent.isdisjoint(op.operands):
                    dependent.update(op.results)
                    late.append(op)
        else:
            self._env.update(zip(waiting, seeds, strict=True))
        skipped = self._placed.union(late)
        env = _Env(self._resolve)
        env.update(self._env)
        append([op for op in derivative.ops if op not in skipped], env)
        self._env = dict(env)
        self._placed.update(derivative.ops)
        replaced = zip([self.output(r) for r in results], derivative.outputs, strict=False)
        self._instead = {old: new for old, new in replaced if old is not new}
        self._settle()
        return late

    def _settle(self) -> None:
        """Once they are known, let states of enclosing traces be what the function makes of them."""
        storages = [storage for storage, _ in self.traced.advanced]
        if storages and not self._settled:
            leaves = self.read(map(self.output, self._states))
            settle(storages, [v for v in leaves if isinstance(v, Value)])
            self._settled = True

    def read(self, values: Iterable[Value]) -> list[Leaf]:
        """What `values` of the graph are here."""
        return [self._resolve(v) for v in values]

    def extend(self, ops: Iterable[Op], leaves: dict[Value, Leaf]) -> _Env:
        """Run (or append to the current trace) ops over values of this application and `leaves`."""
        env = _Env(self._resolve)
        env.update(leaves)
        append(ops, env)
        return env

    def keep_only(self, ops: Iterable[Op], outputs: Iterable[Value]) -> None:
        """Forget every value but those that `ops` and `outputs` read."""
        self._placed.clear()
        needed = {v for op in ops for v in op.operands}.union(outputs)
        self._env = {v: x for v, x in self._env.items() if v in needed}

    def _resolve(self, value: Value) -> Leaf:
        leaf = self._env[self._instead.get(value, value)]
        here, owner = current_trace(), self.owner
        if here is owner:
            return leaf
        if owner is None:
            return as_value(leaf)  # an array of an earlier eager run, used in a trace
        assert isinstance(leaf, Value)
        if here is not None and not owner.done and owner.encloses(here):
            return here.lift(leaf, owner)
        complain(
            errors.LeakedTracerError,
            f"this function belongs to a call of {owner.what} ({owner.graph.name}) that has ended",
            "call what jt.vjp returns inside the function that called jt.vjp.",
        )


def append(ops: Iterable[Op], env: Any, arrays: dict[Value, Array] | None = None) -> None:
    """Append copies of `ops` to the current trace, or outside of tracing run them.

    Effects join the trace's own thread of order tokens. An eager trace does not compute again what is
    `arrays`, the arrays of all results of `ops`.
    """
    trace = current_trace()
    if trace is not None:
        for op in ops:
            if op.name == "create_token" and trace.token is not None:
                env[op.result] = trace.token
                continue
            if arrays is not None and isinstance(trace.builder, EagerBuilder):
                trace.builder.next_results = tuple([arrays[v] for v in op.results])
            new = trace.builder.copy(op, env)
            for value in new.results:
                if value.type is TOKEN:
                    trace.token = value
        return
    from ...ir.interpreter import evaluate_op

    for op in ops:
        results = evaluate_op(op, [env[v] for v in op.operands])
        env.update(zip(op.results, results, strict=True))


def mark_cotangents(leaves: Sequence[Leaf]) -> list[Leaf]:
    """The seeds of a backward part, by a name where `jit(save=...)` will look for it."""
    trace = current_trace()
    if trace is None or trace.parent is not None or trace.eager:
        return list(leaves)
    if not trace.options.mark_cotangents:
        return list(leaves)
    from ...ir.passes.inline_calls import COTANGENT

    label = f"{COTANGENT}{len(trace.graph.ops)}"
    return [
        trace.builder.op("checkpoint_name", v, label=label) if isinstance(v, Value) else v
        for v in leaves
    ]


def apply(
    function: Callable[..., Any],
    leaves: Sequence[Any],
    tree: pytree.TreeDef,
    traced: Sequence[bool],
    differentiated: Sequence[bool],
    *,
    what: str,
    copy: bool = False,
    detached: bool = False,
    present: Callable[[Any], Any] | None = None,
) -> Application:
    """Trace `function(*args, **kwargs)` here; `tree` unflattens `leaves` to `(args, kwargs)`.

    The leaves marked in `traced` become the parameters, in order, and some of them are
    `differentiated`; the others reach the function as they are. With `copy`, arrays are copied
    first, for derivatives that are computed after the caller has moved on. With `detached` no
    enclosing trace differentiates what happens in the function, so its values may become numbers.
    `present` makes the result of what the function returns.
    """
    here = current_trace()
    eager = here is None or here.eager
    specs: list[Spec | Static] = []
    outer: list[Leaf] = []
    for leaf, chosen, active in zip(leaves, traced, differentiated, strict=True):
        if chosen:
            outer.append(_outer(leaf, here, copy))
            active = active or (not detached and _is_active(outer[-1], here))
            specs.append(replace(spec_of(leaf), active=active))
        else:
            specs.append(Static(leaf))
    arrays = [x if isinstance(x, np.ndarray) else concrete(x) for x in outer] if eager else None
    if here is None:
        result = OuterState.of(function, leaves).trace(
            *(function, specs, tree, arrays or []), what=what, present=present, copy=copy
        )
        assert result.arrays is not None
        return Application(result, None, dict(result.arrays))
    result = trace_function(
        *(function, specs, tree),
        what=what,
        eager=eager,
        concrete=arrays,
        borrowed=BorrowedStates(),
        present=present,
        lent=() if eager else [x for x in outer if isinstance(x, Value)],
    )
    env: dict[Value, Leaf] = dict(zip(result.graph.params, outer, strict=False))
    env.update((capture.param, capture.outer) for capture in result.captures)
    if eager:
        append(result.graph.ops, env, result.arrays)
    return Application(result, here, env)


def _outer(leaf: Any, here: Trace | None, copy: bool) -> Leaf:
    if here is not None or isinstance(leaf, Tracer):
        return as_value(leaf)
    array = np.asarray(leaf)
    return array.copy() if copy and array is leaf else array


def _is_active(value: Leaf, here: Trace | None) -> bool:
    """Whether the enclosing eager trace differentiates `value`."""
    return (
        here is not None and isinstance(here.builder, EagerBuilder) and value in here.builder.active
    )
