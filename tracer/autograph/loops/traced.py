"""A loop whose end is traced, as a `while` op; one of known length over a traced array, as a `scan`.

The carry consists of the variables that the body binds anew and the arrays that it assigns into (see
`adoption`). Which those are shows when the body is traced: it is traced again until that, and the
types of the carry, have settled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn
from weakref import ref

import numpy as np

from ....ir.graph import Graph, Value
from ....ir.opdef import OPS
from ....ir.types import BOOL, I64, TensorType
from ...arrays.late_checks import settle_checks
from ...arrays.python_integers import TRIPS, note_reach, note_step
from ...containers.kinds import make_classes_native
from ...control.number_classes import Class, exact_parts, of_parts
from ...control.regions import Out, TracedRegion, have_effects, trace_region
from ...control.regions import union as captures
from ...control.unions import Union
from ...core.effects import advance, order_token
from ...core.sharing import Doubt, is_following
from ...core.specs import Spec
from ...core.trace import require_trace
from ...core.tracers import Storage, Tracer, as_value, wrap
from ...core.views import OuterPartError
from ...data import pytree
from ...messages import errors
from ...messages.errors import complain
from ...messages.source import user_line
from ..adoption import Adoption, write
from ..carried import CarriedVariable, NoneCarriedError, OthersChangedError
from ..identity.arrays import Link, Merged, confuse, links_of
from ..identity.containers import (
    CONTAINERS,
    OfOthers,
    belonging,
    is_callers,
    outer_ids,
    seen_by_others,
    watch,
)
from ..identity.number_classes import more_classes
from ..identity.origins import are_followed, refuse_lost, which_inside, which_outside
from ..identity.relations import Alike, Classes, Key, Which, alike, arrays_of, relate_leaves
from ..joins import changed_in, conformed
from ..surroundings import Slot, Surroundings
from ..syntax.jumps import RESULT
from ..variables import (
    Containers,
    State,
    Undefined,
    gone,
    is_array,
    is_own_array,
    is_traceable,
    made_of,
    out_of,
    refuse_unseen,
    settle,
    shown,
)

COUNTER = "_jt_count"


class TracedLoop:
    """One loop while it is traced."""

    counter = COUNTER

    def __init__(self, state: State, what: str, counted: bool, length: int | None) -> None:
        self.state, self.what, self.length = state, what, length
        self.line = line = user_line(4)
        self.where = f"the `{what}` loop at line {line.line}" if line else f"a `{what}` loop"
        self.ends = self.peels = self.is_rest = False
        self.doubts: list[Doubt] = []
        self.changed: set[int] = set()  # parameters that the body assigns into
        state.own_arrays()
        self.entry = state.get()
        self.own = belonging(self.entry, state.names)
        self.surroundings = Surroundings(state.roots())
        self.objects = state.containers()
        self.storages: list[Storage] = []
        # Of the leaves at an iteration's end:
        self.unknown: set[Alike] = set()  # the program does not tell whether they are one
        self.last: dict[Key, list[list[Link]]] = {}
        self.entered: dict[Key, Any] = {}  # what is carried, at the start of an iteration
        self.of_others = OfOthers((), self._is_seen)  # in that
        self.classes: dict[Any, tuple[Class, ...]] = {}  # of numbers, see `number_classes`
        # By position among the variables, by name, or by slot:
        self.carried: dict[Key, CarriedVariable] = {}
        self.undefined: dict[int, Undefined] = {}  # without a value before: they keep none
        # Containers that are there before, which variables without a value get (see `outer_ids`):
        self.outer = outer_ids([*self.entry, *self.objects.values()])
        self.got: dict[int, Any] = {}
        # Containers of others that a variable is bound to at an iteration's end:
        self.bound: dict[int | str | Slot, list[Any]] = {}
        for i, (name, value) in enumerate(zip(state.names, self.entry, strict=True)):
            if not state.live[i]:
                continue
            if isinstance(value, Undefined):
                self.undefined[i] = value
            elif is_array(value) and not state.rebound[i]:
                if name in state.inside and isinstance(value, Tracer):
                    self._include(value._storage)
            elif not isinstance(value, CONTAINERS) or (state.rebound[i] and not state.filled[i]):
                self.carried[i] = CarriedVariable.of(name, self.where, value)
                if "." in name:
                    self._follow(i, name, value)
        for name, value in self.objects.items():
            carried = self.carried[name] = CarriedVariable.of(name, self.where, value)
            carried.outs = [None for _ in carried.outs]  # until one is found to change
            carried.is_content = True
        if counted:
            self.carried[COUNTER] = CarriedVariable.of(COUNTER, self.where, 0)

    def _is_seen(self, container: Any) -> bool:
        """Whether perhaps not only a variable of the loop has it."""
        return id(container) not in self.own

    @property
    def has_unions(self) -> bool:
        return any(type(carried.value) is Union for carried in self.carried.values())

    def _include(self, storage: Storage) -> None:
        if storage not in self.storages:
            self.storages.append(storage)

    # Tracing

    def specs(self) -> list[Spec]:
        outs = [out for c in self.carried.values() for out in c.types]
        specs = [Spec(o.type, o.weak, o.scalar, strides=o.strides) for o in outs]
        here = require_trace()
        types = [here.lift(s.value, s.trace).tensor for s in self.storages]
        return [*specs, *(Spec(t) for t in types)]

    def enter(self, leaves: Sequence[Any], adoption: Adoption) -> Any:
        """Set the variables to the carry as the region sees it. Returns the iteration's number."""
        arrays = iter(leaves)
        values = list(self.entry)
        count = None
        built: dict[Key, Any] = {}
        for key, carried in self.carried.items():
            value = built[key] = self._built(carried, arrays)
            self._note_numbers(key, value)
            if isinstance(key, int):
                values[key] = value
            elif isinstance(key, Slot):
                key.put(value)
            elif isinstance(key, Which):
                self._held(key, values)._storage.which = value
            elif isinstance(key, Classes):
                of_parts(built[key.of], value, self.classes[key.of])
            elif isinstance(key, Alike):
                relate_leaves(key, value, built)
            elif key == COUNTER:
                count = value
                require_trace().counters.add(value.value)
                if isinstance(self.length, int):
                    require_trace().reaches[value.value] = 0, max(self.length - 1, 0)
            else:
                settle(self.objects[key], value)
        self.state.set(values)
        self.entered = built
        pairs = ((key, c) for key, c in self.carried.items() if isinstance(key, int))
        held = ((c.name, c.value, built[key]) for key, c in pairs if self.state.rebound[key])
        self.of_others = OfOthers(held, is_callers if self.is_rest else self._is_seen)
        for storage, tracer in zip(self.storages, arrays, strict=True):
            adoption.adopt(storage, tracer.value)
        return count

    @staticmethod
    def _built(carried: CarriedVariable, arrays: Any) -> Any:
        """What is carried as it is now; arrays that NumPy made are perhaps those."""
        value = carried.build(arrays)
        if any(map(is_own_array, carried.leaves)):
            for old, new in zip(carried.leaves, pytree.flatten(value)[0], strict=True):
                if new is not old and is_own_array(old):
                    made_of(new, old)
        return value

    def _note_numbers(self, key: Key, value: Any) -> None:
        """What is known of a Python integer that the loop hands on."""
        if not isinstance(value, Tracer) or value.weak != "i" or value.dtype != I64:
            return
        if key == COUNTER:
            most = TRIPS if self.length is None else max(self.length - 1, 0)
            note_reach(value.value, (0, most))
        else:
            note_step(value.value)

    def trace(self, function: Callable[[Any], Any], what: str) -> TracedRegion:
        """Trace `function(count)` in the state at the start of an iteration; it returns a list."""
        specs = self.specs()
        tree = pytree.flatten((tuple(range(len(specs))), {}))[1]
        containers = Containers(list(self.objects.values()))

        def run(*leaves: Any) -> list[Any]:
            adoption = Adoption(require_trace())
            require_trace().counts = self.ends
            try:
                out = function(self.enter(leaves, adoption))
                settle_checks()
                final = {s: s.value for s, _, _ in adoption.owners}
                for storage in final:
                    self._include(storage)
                finals = [final.get(s) for s in self.storages]
                return [*out, *(wrap(v, scalar=False) for v in finals if v is not None)]
            finally:
                self.doubts = adoption.doubts
                adoption.finish()
                self.state.set(self.entry)
                containers.restore()
                self.surroundings.restore()

        return trace_region(run, specs, tree, f"{what} of the `{self.what}` loop")

    def body(self, function: Callable[[Any], Any]) -> TracedRegion:
        """Trace the body until the carry has settled."""
        while True:
            sizes = self._sizes()
            missing = [c.missing for c in self.carried.values()]
            types = self._types()
            try:
                iteration = self._once(function)
            except OuterPartError as error:
                if error.storage in self.storages:
                    raise
                self._include(error.storage)
                continue
            if sizes != self._sizes():
                continue
            if missing != [c.missing for c in self.carried.values()]:
                continue
            if types == self._types():
                return iteration

    def _sizes(self) -> tuple[int, ...]:
        return len(self.storages), len(self.carried)

    def _types(self) -> list[Any]:
        """What has to stay as it is when the carry has settled."""
        outs = [out for c in self.carried.values() for out in c.outs]
        types = [out and (out.type, out.weak, out.strides) for out in outs]
        return [*types, *self.classes.items()]

    def _once(self, function: Callable[[Any], Any]) -> TracedRegion:
        several: dict[int | Slot, tuple[Class, ...]] = {}
        ends: list[tuple[Key, Any, Any, list[int | None]]] = []
        containers = Containers(list(self.objects.values()))
        changed = ""

        def run(count: Any) -> list[Any]:
            nonlocal changed
            function(count)
            changed = self.of_others.changed()
            refuse_unseen(containers.unseen(), self.where)
            values = self.state.get()
            out: list[Any] = []
            after = self._after(values) if is_following() else {}
            kept = [key for key in self.carried if isinstance(key, (int, Slot))]
            now = {key: self._value(values, key) for key in kept}
            several.update(more_classes(self.carried, self.entered, now, self.classes))
            now = {}  # or it would count among those that see what is in it
            for key, carried in self.carried.items():
                if isinstance(key, int):
                    value = values[key]
                elif isinstance(key, Slot):
                    value = key.get()
                elif isinstance(key, Which):
                    value = which_inside(self._held(key, values), require_trace())
                elif isinstance(key, Classes):
                    value = exact_parts(self._value(values, key.of), self.classes[key.of])
                elif isinstance(key, Alike):
                    value = after.get(key, False)
                elif key == COUNTER:
                    value = count + 1
                else:
                    value = self.objects[key]
                value = conformed(value, carried.value)
                leaves, tree = pytree.flatten(value)
                make_classes_native(leaves, inner=True)
                self.last[key] = [links_of(leaf) for leaf in leaves]
                numbers: list[int | None] = []
                for i, leaf in enumerate(leaves):
                    traceable = is_traceable(leaf)
                    if tree == carried.tree and carried.outs[i] is None:
                        traceable = False
                    numbers.append(len(out) if traceable else None)
                    if traceable:
                        # The type that the leaf has, whatever becomes of its storage
                        out.append(out_of(leaf).wrap(as_value(leaf)))
                ends.append((key, value, (leaves, tree), numbers))
            for i, value in enumerate(values):
                self._look_for_more(i, value)
            self.state.set(self.entry)
            containers.restore()
            values = value = ()  # or they would count among those that see it
            for key, end, _, _ in ends:
                if isinstance(key, int) and end is not self.entry[key]:
                    self.bound[key] = seen_by_others(end, 2)  # `ends`, and `end`
            for slot, old in self.surroundings.changes():
                if isinstance(old, Undefined):
                    self._refuse_new(slot)
                if slot.kind == "content" and isinstance(slot.holder, set):
                    refuse_unseen([slot.holder], self.where)
                if slot not in self.carried:
                    carried = self.carried[slot] = CarriedVariable.of(slot.name, self.where, old)
                    carried.is_content = slot.kind == "content"
                    self._follow(slot, slot.name, old)
            self._follow_arrays(after)
            for key, classes in several.items():
                self.classes[key] = classes
                before = exact_parts(self.carried[key].value, classes)
                self.carried[Classes(key)] = CarriedVariable.of("", self.where, before)
            return out

        region = self.trace(run, "the body")
        if changed:
            raise OthersChangedError(changed)
        self.changed = set(region.mutated)
        for key, value, (leaves, tree), numbers in ends:
            if isinstance(key, Classes) and key.of in several:
                continue  # it has other parts now
            if tree != self.carried[key].tree:
                before = self.carried[key]
                holder = key.holder if isinstance(key, Slot) else before.value
                changed_in([holder, value], [before.tree, tree])
                if self.peels and self.carried[key].value is None:
                    raise NoneCarriedError
            self.carried[key].settle(value, leaves, tree, numbers, region)
        return region

    def _follow(self, key: int | Slot, name: str, value: Any) -> None:
        """Carry which array an attribute holds."""
        which = which_outside(value) if are_followed() else 0
        if not isinstance(which, int) or which:
            self.carried[Which(key)] = CarriedVariable.of(name, self.where, which)

    # Which arrays are one

    def _after(self, values: Sequence[Any]) -> dict[Alike, Any]:
        """Which arrays are one after an iteration."""
        return alike(arrays_of(self.carried, partial(self._value, values)))

    def _value(self, values: Sequence[Any], key: Any) -> Any:
        """What a key of what is carried stands for now."""
        if isinstance(key, int):
            return values[key]
        return key.get() if isinstance(key, Slot) else self.objects.get(key)

    def _follow_arrays(self, after: dict[Alike, Any]) -> None:
        """Carry which arrays are one: those that are it before the loop, or after an iteration."""
        if not is_following():
            return
        before = alike(arrays_of(self.carried, lambda key: self.carried[key].value))
        for key in [*before, *after]:
            holds = before.get(key, False), after.get(key, False)
            if None in holds:
                self.unknown.add(key)
            elif key not in self.carried:
                self.carried[key] = CarriedVariable.of("", self.where, holds[0])

    @staticmethod
    def _held(key: Which, values: Sequence[Any]) -> Any:
        return values[key.of] if isinstance(key.of, int) else key.of.get()

    def refuse_changes_of_others(self, name: str) -> NoReturn:
        complain(
            errors.CarryError,
            f"{shown(name)} is changed in place in {self.where} and bound anew there, and may be the "
            "caller's before each iteration, or one of the loop's own",
            f"copy it before the loop, or give what is made in the loop another name than {name}.",
        )

    def _refuse_new(self, slot: Slot) -> None:
        complain(
            errors.UndefinedVariableError,
            f"{slot.name} has no value before {self.where}, which may make no iteration",
            f"give {slot.name} a value of the type that it has later before the loop.",
        )

    def _look_for_more(self, i: int, value: Any) -> None:
        """A variable that was thought to keep its object, or to have no value, and does not."""
        if i in self.carried or not self.state.live[i]:
            return
        name, old = self.state.names[i], self.entry[i]
        if i in self.undefined:
            if isinstance(value, Undefined):
                if value.why:
                    self.undefined[i] = value
                return
            if self.state.filled[i] and self._is_outer(value) and self.got.get(i, value) is value:
                self.got[i] = value
            elif self.state.filled[i]:
                carried = CarriedVariable.of(name, self.where, value)
                carried.forget()
                self.carried[i] = carried
                del self.undefined[i]
            elif old.is_form and self.state.read[i]:
                self.carried[i] = CarriedVariable.of(name, self.where, old)
                del self.undefined[i]
            else:
                self.undefined[i] = Undefined(
                    name,
                    f"only the body of {self.where} gives it one, and that may make no iteration",
                )
        elif value is not old:
            self.carried[i] = CarriedVariable.of(name, self.where, old)

    def _is_outer(self, value: Any) -> bool:
        """Whether it is a container that is there outside of the loop, or could be."""
        if not isinstance(value, CONTAINERS):
            return False
        leaves, trace = pytree.flatten(value)[0], require_trace()
        inside = any(isinstance(leaf, Tracer) and leaf._storage.trace is trace for leaf in leaves)
        return id(value) in self.outer or not inside

    # The op

    def emit(
        self, test: Callable[[Any], Any] | None, body: TracedRegion, independent: bool
    ) -> None:
        """Append the op and set the variables to what it gives."""
        trace = require_trace()
        outs = [out for c in self.carried.values() for out in c.types]
        types = [out.type for out in outs]
        start = [v for c in self.carried.values() for v in c.start()]
        inner = [trace.lift(s.value, s.trace) for s in self.storages]
        types += [v.tensor for v in inner]
        start += inner
        regions = [body]
        if test is not None:
            storages_before = len(self.storages)
            condition = self.trace(lambda count: [_bool(test(count))], "the condition")
            if len(self.storages) != storages_before:
                complain(
                    errors.TransformError,
                    f"the condition of {self.where} assigns into an array",
                    "assign in the body of the loop.",
                )
            regions.insert(0, condition)
        captured = captures(regions)
        token = [order_token()] if have_effects(regions) else []
        nothing = [None for _ in token]
        token_at = len(start) if token else None
        graphs: list[Graph] = []
        if test is not None:
            graphs.append(
                regions[0].close(
                    captured,
                    regions[0].values[:1],
                    [TensorType((), BOOL)],
                    captures_first=True,
                    token_at=token_at,
                )
            )
        graphs.append(
            body.close(
                captured,
                [*body.values, *nothing],
                [*types, *nothing],
                captures_first=True,
                token_at=token_at,
            )
        )
        operands = [*captured, *start, *token]
        attrs: dict[str, Any] = {"consts": len(captured)}
        if test is None:
            attrs |= {
                "carries": len(start) + len(token),
                "length": self.length,
                "reverse": False,
            }
        if independent:
            attrs["independent"] = True
        with trace.builder.at(user_line(2)):
            op = trace.builder.append(OPS["while" if test else "scan"], operands, attrs, graphs)
        if independent:
            from ...control.conflicts import refuse_conflicts  # few functions need it

            refuse_conflicts(op, self._names(), self.line)
        advance(op.results)
        self._leave(op.results, outs)

    def _names(self) -> list[str]:
        """What the user calls the carries of the op."""
        names = [
            "" if key == COUNTER else carried.name
            for key, carried in self.carried.items()
            for _ in carried.types
        ]
        pairs = list(zip(self.state.names, self.entry, strict=True))
        for storage in self.storages:
            own = [n for n, x in pairs if isinstance(x, Tracer) and x._storage is storage]
            names.append(own[0] if own else "")
        return names

    def _leave(self, results: Sequence[Value], outs: Sequence[Out]) -> None:
        for storage, value in zip(self.storages, results[len(outs) :], strict=False):
            write(storage, value)
        made = [out.wrap(value) for value, out in zip(results, outs, strict=False)]
        arrays = iter(made)
        pairs = zip(self.state.names, self.state.live, self.entry, strict=True)
        values = [old if is_live else gone(name) for name, is_live, old in pairs]
        built: dict[Key, Any] = {}
        for key, carried in self.carried.items():
            value = built[key] = self._built(carried, arrays)
            if isinstance(key, int):
                values[key] = value
                if self.bound.get(key):
                    among = [carried.value, *self.bound[key]]
                    watch(carried.name, value, among, self.line)
            elif isinstance(key, Slot):
                key.put(value)
            elif isinstance(key, Which):
                self._held(key, values)._storage.which = value
            elif isinstance(key, Classes):
                of_parts(built[key.of], value, self.classes[key.of])
            elif isinstance(key, Alike):
                relate_leaves(key, value, built)
            elif key != COUNTER:
                settle(self.objects[key], value)
        for key in self.unknown:
            relate_leaves(key, None, built)
        for i, undefined in self.undefined.items():
            refuse_lost(self.state.names[i], undefined)
            values[i] = self.got.get(i, undefined)
        self.state.set(values)
        if not is_following():
            self._look_for_sharing(made)

    def _look_for_sharing(self, made: Sequence[Tracer]) -> None:
        """A loop carries values: an assignment into a variable's array does not reach others that
        were the same array before an iteration."""
        results = iter(made)
        arrays = [
            Merged(carried.name, [links_of(leaf), after], result)
            for key, carried in self.carried.items()
            for leaf, out, after in zip(carried.leaves, carried.outs, self.last[key], strict=True)
            if out is not None and (result := next(results)) is not None
        ]
        confuse([array for array in arrays if array.result is not None and not array.result.scalar])
        for array in arrays:
            before = array.links[0][0].other if array.links[0] else None
            if any(before is s for s in self.storages) and array.name != RESULT:
                self.doubts.append(Doubt((ref(before),), self.line, array.name))
        for i in sorted(self.changed):
            if i < len(made) and made[i]._storage.perhaps:
                others = tuple(r.other for r in made[i]._storage.perhaps)
                self.doubts.append(Doubt(others, self.line, arrays[i].name))


def _bool(x: Any) -> Any:
    return x if isinstance(x, Tracer) else np.bool_(x)
