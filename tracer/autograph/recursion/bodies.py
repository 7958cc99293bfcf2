"""The body of a function that calls itself, while it is traced: what its calls hand over, and the op."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from ....ir.graph import Value
from ....ir.opdef import OPS
from ....ir.types import dtype_name
from ...control.regions import Out, TracedRegion, have_effects, trace_region
from ...core.effects import advance, order_token
from ...core.sharing import settle_doubts
from ...core.specs import Spec
from ...core.trace import Trace, require_trace
from ...core.tracers import Storage, Tracer, wrap
from ...core.views import OuterPartError
from ...data import pytree
from ...data.callables import Function, function_name
from ...messages import errors
from ...messages.errors import complain
from ...messages.source import user_line
from ..adoption import Adoption, write
from ..carried import CarriedVariable
from ..joins import changed_in
from ..raising import Raised, raised
from ..surroundings import Slot, Surroundings
from ..variables import Undefined, refuse_unseen
from .handed import End, Handed

_TRIES = 60
_TIMES = "in one call", "in another"  # of what is handed on, in messages
_ENDLESS = "what a function returns is not known yet where it calls itself"
T = TypeVar("T")


class _Other(errors.Anew):
    """A call hands over what the types do not take yet."""

    def __init__(self, found: Sequence[tuple[Handed, End, Any]]) -> None:
        self.found = found

    def settle(self) -> None:
        """Let the types take it in; containers of another length have to be native ones."""
        for handed, end, holder in self.found:
            carried = handed.carried
            if end.tree != carried.tree:
                values = [carried.value if holder is None else holder, end.value]
                changed_in(values, [carried.tree, end.tree])
            handed.take(end)


class _More(errors.Anew):
    """A call finds something changed that is not handed over yet."""


class Body:
    """The body of one function that calls itself. `expected` is a tree of numbers like its result."""

    def __init__(
        self,
        function: Function,
        depth: int,
        expected: End | None,
        args: Any,
        kwargs: Any,
        taken: Sequence[str],
    ) -> None:
        self.function, self.depth = function, depth
        self.name = function_name(function).rpartition(".")[2]
        label = "".join(c if c.isalnum() else "_" for c in self.name)
        others = (f"{label}_{k}" for k in range(len(taken) + 1))
        self.label = label if label not in taken else next(x for x in others if x not in taken)
        self.where = f"the calls of {self.name} by itself"
        self.examples = _are_examples()
        self.signature = _signature(function)
        values = self._named(args, kwargs)
        self.surroundings = Surroundings([(self.name, function), *values.items()])
        self.arguments = {name: self._outside(name, value) for name, value in values.items()}
        self.slots: dict[Slot, Handed] = {}
        self.storages: list[Storage] = []
        self.result = None if expected is None else self._result(expected)
        self.is_guess = False  # that it is a number, as each way calls the function
        self.effects = False
        self.trace: Trace | None = None

    def _named(self, args: Any, kwargs: Any) -> dict[str, Any]:
        if self.signature is None:
            return {"args": tuple(args), "kwargs": dict(kwargs)}
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError:
            self.function(*args, **kwargs)  # says what is wrong
            raise
        bound.apply_defaults()
        return dict(bound.arguments)

    def _outside(self, name: str, value: Any) -> Handed:
        """What is the same in all calls, as far as is known."""
        carried = CarriedVariable.of(name, self.where, value)
        carried.outs, carried.times = [None for _ in carried.outs], _TIMES
        return Handed(carried, False, self.examples)

    def _result(self, end: End) -> Handed:
        return Handed.result(f"what {self.name} returns", self.where, end, self.examples)

    # The types

    def traced(self) -> TracedRegion:
        """Trace the body until what calls hand over is what they are given."""
        for _ in range(_TRIES):
            before = self._state()
            region, end = None, End.of(0)
            try:
                region, end = self._once()
            except _Other as other:
                other.settle()
                continue
            except _More:
                continue
            except OuterPartError as error:
                if error.storage in self.storages:
                    raise
                self.storages.append(error.storage)
                continue
            except Exception as error:
                if self.result is not None or Raised.of(error) is None:
                    raise
                # Each way calls it, or raises.
            if self.result is None or region is None:
                self.result, self.is_guess = self._result(end), region is None
                continue
            self.effects = self.effects or have_effects([region])
            if self.is_guess and end.tree != self.result.carried.tree:
                self.result = self._result(end)
            elif not self.result.takes(end):
                _Other([(self.result, end, None)]).settle()
            elif self._state() == before:
                return region
        complain(
            errors.CarryError,
            f"what {self.name} is called with, or returns, has other types from call to call",
            "convert it, so that it has one type in all calls.",
        )

    def _state(self) -> Any:
        result = None if self.result is None else self.result.state()
        handed = [one.state() for one in (*self.arguments.values(), *self.slots.values())]
        return result, handed, len(self.storages), self.effects

    @property
    def _changing(self) -> list[Out]:
        """The types of the slots that calls change: numbers, then arrays."""
        outs = [out for one in self.slots.values() for out in one.types]
        return _numbers_first(outs, [bool(out.type.shape) for out in outs])

    @property
    def states(self) -> int:
        """How many arrays calls change."""
        return len(self.storages) + sum(bool(out.type.shape) for out in self._changing)

    # Tracing

    def _once(self) -> tuple[TracedRegion, End]:
        function = self.function
        given = [out for one in self.arguments.values() for out in one.types]
        specs = [
            Spec(o.type, o.weak, o.scalar, strides=o.strides) for o in (*given, *self._changing)
        ]
        here = require_trace()
        specs += [Spec(here.lift(s.value, s.trace).tensor) for s in self.storages]
        tree = pytree.flatten((tuple(range(len(specs))), {}))[1]
        ends: list[End] = []

        @functools.wraps(function, updated=())
        def body(*leaves: Any) -> list[Any]:
            trace = require_trace()
            adoption = Adoption(trace)
            trace.counts, trace.wraps = False, trace.wraps or self.examples
            self.trace = trace
            try:
                args, kwargs = self._enter([leaf.value for leaf in leaves], adoption)
                ends.append(self._end(function(*args, **kwargs)))
                out = self._left(ends[-1])
                final = {s: s.value for s, _, _ in adoption.owners}
                self.storages += [s for s in final if s not in self.storages]
                return [*out, *(wrap(final[s], scalar=False) for s in self.storages)]
            finally:
                self.trace = None
                self.doubts = adoption.doubts
                adoption.finish()
                self.surroundings.restore()

        region = trace_region(body, specs, tree, f"the body of {self.name}")
        return region, ends[-1]

    def _enter(self, values: Sequence[Value], adoption: Adoption) -> tuple[Any, Any]:
        """Set what calls change to what a call finds. Gives its arguments."""
        given = iter(values)
        for one in (*self.arguments.values(), *self.slots.values()):
            one.arrays = []
        named = {name: one.built(given) for name, one in self.arguments.items()}
        self._put(given)
        for storage, value in zip(self.storages, given, strict=True):
            adoption.adopt(storage, value)
        if self.signature is None:
            return named["args"], named["kwargs"]
        bound = inspect.BoundArguments(self.signature, named)
        return bound.args, bound.kwargs

    def _put(self, values: Iterator[Value]) -> None:
        """Set the slots that calls change."""
        count = sum(len(one.types) for one in self.slots.values())
        slots = iter(self._in_place([next(values) for _ in range(count)]))
        for slot, one in self.slots.items():
            slot.put(one.built(slots))

    def _in_place(self, values: Sequence[T]) -> list[T]:
        """What belongs to slots in their order, of numbers first and then arrays."""
        types = [out for one in self.slots.values() for out in one.types]
        arrays = iter(values[sum(not out.type.shape for out in types) :])
        numbers = iter(values)
        return [next(arrays if out.type.shape else numbers) for out in types]

    def _end(self, value: Any) -> End:
        """What a call returns. Arrays that live outside are what they are there."""
        end = End.of(value) if self.result is None else self.result.end(value)
        for i, leaf in enumerate(end.leaves):
            if isinstance(leaf, Tracer) and not leaf.scalar and self._is_outside(leaf):
                if leaf._view is not None:
                    self._refuse_part(leaf)
                end.outs[i] = None
        return end

    def _is_outside(self, x: Tracer) -> bool:
        trace = require_trace()
        adopted = any(x._storage is storage for storage, _, _ in trace.adoption.owners)
        return adopted or x._storage.trace is not trace

    def _left(self, end: End) -> list[Any]:
        """What a call leaves: its result, and the slots that calls change."""
        self._note_changes()
        for one in (*self.arguments.values(), *self.slots.values()):
            for x in one.arrays:
                if x._storage.version:
                    self._refuse_assignment(x)
        if self.result is None or not self.result.takes(end):
            return []
        out = [wrap(v) for v in self.result.given(end)]
        return [*out, *(wrap(v, scalar=False) for v in self._changed())]

    def _note_changes(self) -> None:
        """Find out what calls change beside arrays."""
        more = False
        for slot, old in self.surroundings.changes():
            if isinstance(old, Undefined):
                self._refuse_new(slot)
            if slot.kind == "content" and isinstance(slot.holder, set):
                refuse_unseen([slot.holder], self.where)
            if slot not in self.slots:
                carried = CarriedVariable.of(slot.name, self.where, old)
                carried.is_content, carried.times = slot.kind == "content", _TIMES
                self.slots[slot] = Handed(carried, False, self.examples)
                more = True
        if more:
            raise _More

    def _changed(self) -> list[Value]:
        """What is now in the slots that calls change: numbers, then arrays."""
        slots = [(one, slot.get(), slot.holder) for slot, one in self.slots.items()]
        values = _handed(slots)
        return _numbers_first(values, [bool(v.shape) for v in values])

    # Calls

    def again(self, args: Any, kwargs: Any) -> Any:
        """The function calls itself."""
        self._note_changes()
        named = self._named(args, kwargs)
        pairs = [(one, named[name]) for name, one in self.arguments.items()]
        operands = _handed([(one, value, None) for one, value in pairs])
        for one, value in pairs:
            self._refuse_aliases(one, value)
        operands += self._changed()
        if self.result is None:
            raise raised(RecursionError(_ENDLESS))
        numbers = [out.type for out in self.result.types]
        numbers += [out.type for out in self._changing if not out.type.shape]
        attrs = {
            "label": self.label,
            "dtypes": tuple(dtype_name(t.dtype) for t in numbers),
            "shapes": tuple(t.shape for t in numbers),
            "states": self.states,
        }
        token = [order_token()] if self.effects else []
        operands += [*self._stored(), *token]
        builder = require_trace().builder
        with builder.at(user_line(3)):
            made = builder.append(OPS["recurse"], operands, attrs).results
        advance(made)
        return self._taken(made)

    def first(self) -> Any:
        """The call from outside: trace the body, and append the op."""
        region = self.traced()
        trace = require_trace()
        assert self.result is not None
        operands = [v for one in self.arguments.values() for v in one.start()]
        slots = [v for one in self.slots.values() for v in one.start()]
        operands += _numbers_first(slots, [bool(v.shape) for v in slots])
        operands += self._stored()
        token = [order_token()] if self.effects else []
        nothing = [None for _ in token]
        types = [out.type for out in (*self.result.types, *self._changing)]
        body = region.close(
            region.captured,
            [*region.values, *nothing],
            [*types, *(v.tensor for v in self._stored()), *nothing],
            captures_first=True,
            token_at=len(operands) if token else None,
        )
        consts = len(region.captured)
        attrs = {"consts": consts, "label": self.label, "depth": self.depth, "states": self.states}
        with trace.builder.at(user_line(3)):
            operands = [*region.captured, *operands, *token]
            op = trace.builder.append(OPS["recursion"], operands, attrs, [body])
        advance(op.results)
        value = self._taken(op.results)
        settle_doubts(self.doubts)
        return value

    def _stored(self) -> list[Value]:
        """What is now in the arrays that calls change."""
        here = require_trace()
        return [here.lift(s.value, s.trace) for s in self.storages]

    def _taken(self, results: Sequence[Value]) -> Any:
        """What a call returns, of what the op gives; what it changes is that from now on."""
        assert self.result is not None
        given = iter(results)
        value = self.result.built(given)
        self._put(given)
        for storage, new in zip(self.storages, given, strict=False):
            write(storage, new)
        return value

    # Errors

    def _refuse_aliases(self, handed: Handed, value: Any) -> None:
        """Another array at each call is handed over by its elements, which others must not change."""
        leaves = pytree.flatten(value)[0]
        for leaf, out in zip(leaves, handed.carried.outs, strict=False):
            if out is None or not out.type.shape or not isinstance(leaf, Tracer):
                continue
            if leaf._storage in self.storages or leaf._storage.perhaps:
                self._refuse_assignment(leaf)

    def _refuse_assignment(self, x: Any) -> NoReturn:
        complain(
            errors.OuterMutationError,
            f"{self.name} calls itself with another array than it was called with, and arrays of these "
            "are assigned to",
            "pass the same array at each call, and numbers that tell which part of it is meant.",
            operands={"array": x},
        )

    def _refuse_part(self, x: Any) -> NoReturn:
        complain(
            errors.OuterMutationError,
            f"{self.name} calls itself, and returns a part of an array that lives outside of it",
            "return a copy, or numbers that tell which part is meant.",
            operands={"part": x},
        )

    def _refuse_new(self, slot: Slot) -> None:
        complain(
            errors.UndefinedVariableError,
            f"{slot.name} has no value before {self.name} is called, which calls itself",
            f"give {slot.name} a value of the type that it has later before the call.",
        )


def _handed(values: Sequence[tuple[Handed, Any, Any]]) -> list[Value]:
    """What is handed over for values, each with the container, if any, that it is the content of."""
    ends = [(one, one.end(value), holder) for one, value, holder in values]
    others = [each for each in ends if not each[0].takes(each[1])]
    if others:
        raise _Other(others)
    return [v for one, end, _ in ends for v in one.given(end)]


def _numbers_first(values: Sequence[T], are_arrays: Sequence[bool]) -> list[T]:
    pairs = list(zip(values, are_arrays, strict=True))
    return [v for v, is_array in pairs if not is_array] + [v for v, is_array in pairs if is_array]


def _signature(function: Function) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _are_examples() -> bool:
    """Whether numbers are elements of arrays in the end, which have no classes."""
    trace: Trace | None = require_trace()
    while trace is not None and trace.what != "vmap":
        trace = trace.parent
    return trace is not None
