"""What a function changes outside of it while a transformation runs it eagerly.

    class BatchNorm:
        def __call__(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
            ...

    jt.value_and_grad(loss)(params, batch)

As in compiled code, tracers stand in for the arrays of the objects while the function runs
(`captures.heap`), and what it has assigned is put into the objects when it has returned: here the
arrays behind the tracers, which are known. A function that raises has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..captures.effects.finding import collect
from ..captures.effects.recipes import Effects
from ..captures.free_variables import FreeVariables, find_free_variables
from ..captures.heap import Heap, Policy
from ..captures.heap_roots import find_heap
from ..captures.kept import Kept
from ..captures.leaks import refuse_leaks
from ..captures.mentions import converts_values, fills_arrays, mentions_of
from ..captures.paths import Path
from ..captures.subjects import Subject, is_object
from ..core.specs import Spec, Static, is_array, spec_of
from ..core.threaded_state import BorrowedStates
from ..core.trace import Array, current_trace
from ..core.tracers import Tracer, concrete
from ..core.tracing import Traced, numpy_views, trace_function, twin_of
from ..data import pytree
from ..data.entering import opened_for
from ..data.opened import closed
from .presented import present

# Numbers and containers are Python's own: their values are known.
_POLICY = Policy(fixed=True, barred=True)


class OuterState:
    """The objects and containers outside of a function that it may change, with the arrays in them.

    Where its code makes numbers or arrays of values, or fills arrays of NumPy's, autograph's twin runs
    in its place: Python itself would ask traced values for numbers, and derivatives would be lost.
    """

    def __init__(
        self, heap: Heap | None, variables: FreeVariables, places: Mapping[int, int]
    ) -> None:
        self.changes = heap is not None or bool(variables.of_code)
        arrays = any(isinstance(value, np.ndarray) for _, value in variables.values.values())
        self.fills = arrays and any(map(fills_arrays, variables.codes))  # arrays by themselves
        self._heap = heap or Heap([], mentions_of(variables.codes), _POLICY)
        self._variables = variables
        self._converts = _converts_values(variables)
        # Arrays that are leaves of the arguments: what stands for these there does so here.
        pairs = [(i, places.get(id(i.value))) for i in self._heap.inputs]
        self._given = {id(i): place for i, place in pairs if place is not None}
        # Generators draw themselves, and arrays on devices stay there: nothing stands in for these.
        self._inputs = [
            i
            for i, place in pairs
            if place is None and type(i.value) is np.ndarray and i.spec.holder is None
        ]
        self._effects: Effects | None = None
        self._left: list[Any] = []  # what the recipes of the effects count
        self._written: list[tuple[Array, Array]] = []  # arrays and what is in them afterwards

    @staticmethod
    def of(function: Callable[..., Any], leaves: Sequence[Any]) -> OuterState:
        """That of a function, and of the objects among the leaves of its arguments, and those that these
        are arrays of."""
        objects: list[Path] = []
        opened = opened_for(function)
        for leaf in (*leaves, *(one.plan.obj for one in opened)):
            if is_object(leaf):
                subject = Subject()
                subject.put(leaf)
                objects.append(Path("object", subject, f"argument {len(objects)}"))
        variables = find_free_variables(function, objects)
        own = {id(x) for one in opened for x in one.leaves}
        places = {id(leaf): i for i, leaf in enumerate(leaves) if id(leaf) in own}
        return OuterState(find_heap(variables, objects, _POLICY), variables, places)

    def trace(
        self,
        function: Callable[..., Any],
        specs: Sequence[Spec | Static],
        tree: pytree.TreeDef,
        arrays: Sequence[Array],
        *,
        what: str,
        present: Callable[[Any], Any] | None = None,
        copy: bool = False,
    ) -> Traced:
        """`trace_function` with values: the arrays of the state are parameters behind the others, with
        `copy` copies of them. Afterwards the state is what the function has made of it."""
        how: dict[str, Any] = {"what": what, "eager": True, "present": present}
        how |= {"converts": self._converts}
        if not self.changes:
            states = BorrowedStates()
            return trace_function(function, specs, tree, concrete=arrays, borrowed=states, **how)
        own = [i.value.copy() if copy else i.value for i in self._inputs]
        call = pytree.unflatten(tree, range(len(specs)))
        _, tree = pytree.flatten(((call, [0] * len(own)), {}))

        def stateful(call: tuple[Any, Any], tracers: Sequence[Tracer]) -> Any:
            args, kwargs = call
            flat = pytree.flatten(call)[0]
            standing = {id(i): x for i, x in zip(self._inputs, tracers, strict=True)}
            standing |= {number: flat[place] for number, place in self._given.items()}
            every = [standing.get(id(i), i.value) for i in self._heap.inputs]
            with self._heap.entered(every) as before:
                result = twin_of(function)(*args, **kwargs)
                refuse_leaks(self._variables)
                given = [*tracers, *flat]
                self._effects, _ = collect(self._heap, before, given, None, Kept((), ()))
                self._note(tracers, flat)
            return result

        every = [*specs, *(i.spec for i in self._inputs)]
        traced = trace_function(stateful, every, tree, concrete=[*arrays, *own], **how)
        self._change(traced)
        return traced

    def run(self, function: Callable[..., Any], leaves: Sequence[Any], tree: pytree.TreeDef) -> Any:
        """`function(*args, **kwargs)` of the arguments with these leaves."""
        specs = [spec_of(leaf) if is_array(leaf) else Static(leaf) for leaf in leaves]
        arrays = [leaf for leaf in leaves if is_array(leaf)]
        traced = self.trace(function, specs, tree, arrays, what="vmap")
        assert traced.arrays is not None
        outputs = traced.graph.outputs
        parts = [
            present(traced.arrays[outputs[r.output]], r.weak, r.scalar)
            for r in traced.results
            if r.output is not None
        ]
        return closed(pytree.unflatten(traced.out_tree, parts))

    def _note(self, tracers: Sequence[Tracer], flat: Sequence[Any]) -> None:
        """Remember what the function has left, before its trace ends."""
        assert self._effects is not None
        pairs = list(zip(self._inputs, tracers, strict=True))
        self._written = [(i.value, concrete(x)) for i, x in pairs if x._storage.version]
        own = {x._storage: i.value for i, x in pairs}
        numbers = {id(i): i.value for i in self._heap.inputs}
        for number, place in self._given.items():
            own[flat[place]._storage] = numbers[number]
        self._left = [_value(x, own) for x in self._effects.leaves]

    def _change(self, traced: Traced) -> None:
        """Let the state be what the function has made of it. Values of the trace that lie in arrays
        which are written are copied before: derivatives are computed of them."""
        assert self._effects is not None and traced.arrays is not None
        written = [(array, after.copy()) for array, after in self._written]
        for array, after in written:
            for value, held in traced.arrays.items():
                if held.size and np.may_share_memory(held, array):
                    traced.arrays[value] = held.copy()
            array[...] = after
        self._effects.finish(self._heap, self._left, [node.value for node in self._heap.nodes])


def _converts_values(variables: FreeVariables) -> bool:
    ends = [value for _, value in variables.values.values()]
    return any(map(converts_values, variables.codes)) or any(map(_asks_for_numbers, ends))


def _asks_for_numbers(value: Any) -> bool:
    """Whether it is a function of `math`, or a polynomial of NumPy's."""
    module = type(value).__module__
    return getattr(value, "__module__", None) in ("math", "cmath") or (
        isinstance(module, str) and module.startswith("numpy.polynomial")
    )


def changes_state(function: Callable[..., Any], arguments: Any) -> bool:
    """Whether a function may change what is outside of it, called here with these arguments."""
    trace = current_trace()
    if trace is None:
        state = OuterState.of(function, pytree.flatten(arguments)[0])
        return state.changes or state.fills
    return trace.watched is not None


def _value(x: Any, own: dict[Any, Array]) -> Any:
    """What an attribute or element is given in place of a tracer: an array of the state is itself."""
    if not isinstance(x, Tracer):
        return x
    steps = numpy_views(x) if x._storage in own else None
    if steps is None:
        return present(concrete(x), x.weak, x.scalar)
    array = own[x._storage]
    for step in steps:
        array = step(array)
    return array
