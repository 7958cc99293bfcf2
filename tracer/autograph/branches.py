"""An `if` whose condition is traced, as a `cond` op."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import is_not
from typing import Any

from ...ir.graph import Op, Value
from ...ir.record import record
from ..arrays.late_checks import settle_checks
from ..containers.kinds import inherit
from ..control.regions import (
    Out,
    TracedRegion,
    trace_region,
)
from ..control.unions import (
    assume,
    given,
    implied,
)
from ..core.effects import watching
from ..core.sharing import Doubt, settle_doubts
from ..core.threaded_state import draws
from ..core.trace import require_trace
from ..core.tracers import Storage, Tracer, as_value, emit, wrap
from ..core.views import OuterPartError
from ..data import pytree
from ..messages import errors
from ..messages.source import user_line
from .adoption import Adoption, union, write
from .ends import Content, End, Inside, end_of
from .identity.containers import belonging, outer_ids, seen_by_others, watch
from .identity.origins import refuse_lost
from .merges import Merge
from .raising import Raised
from .surroundings import Slot, Surroundings
from .variables import (
    Containers,
    State,
    gone,
    out_of,
    refuse_unseen,
    settle,
)

_EMPTY = pytree.flatten(((), {}))[1]


class _Branch:
    """One traced branch: its region, the final values, and what it did to outer arrays."""

    def __init__(
        self,
        function: Callable[[], Any],
        state: State,
        objects: Sequence[Any],
        surroundings: Surroundings,
        what: str,
    ) -> None:
        self.function, self.state, self.objects, self.what = function, state, objects, what
        self.surroundings = surroundings
        parts: list[Storage] = []  # arrays from outside whose parts are assigned into
        while True:
            try:
                return self._trace(parts)
            except OuterPartError as error:
                if error.storage in parts:
                    raise
                parts.append(error.storage)

    def _trace(self, parts: Sequence[Storage]) -> None:
        function, state, objects = self.function, self.state, self.objects
        surroundings, what = self.surroundings, self.what
        self.slots: dict[Slot, End] = {}  # what called functions have changed
        self.ends: list[End] = []
        self.storages: dict[Storage, Value] = {}
        self.doubts: list[Doubt] = []
        self.result: Any = None
        self.raised: Raised | None = None
        self.hoisted = False  # nothing happens in the branch before it raises
        entry, containers = state.get(), Containers(objects)

        def run() -> list[Any]:
            trace = require_trace()
            adoption = Adoption(trace)
            for storage in parts:
                if storage.trace is not trace:
                    trace.adopt(storage)
            out: list[Any] = []
            try:
                try:
                    self.result = function()
                except Exception as error:
                    self.raised = Raised.of(error)
                    if self.raised is None:
                        raise
                    self._raise()
                    return []
                settle_checks()
                refuse_unseen(containers.unseen(sets=False), f"a branch of the `{what}`")
                values = [v for v, live in zip(state.get(), state.live, strict=True) if live]
                contents = [Content(x) for x in objects]
                self.ends = [
                    end_of(value, trace, out) for value in (self.result, *values, *contents)
                ]
                state.set(entry)
                containers.restore()
                for slot, _ in surroundings.changes():
                    self.slots[slot] = end_of(slot.get(), trace, out)
            finally:
                self.doubts = adoption.doubts
                self.storages = adoption.finish()
                state.set(entry)
                containers.restore()
                surroundings.restore()
            values = []
            for end in self.ends:
                value = end.value
                of_branch = 3 if end is self.ends[0] else 2  # `result`, the end itself, `value`
                end.shared = seen_by_others(value, of_branch)
            return [*out, *(wrap(v, scalar=False) for v in self.storages.values())]

        self.region: TracedRegion = trace_region(run, [], _EMPTY, what)
        if self.raised is not None:
            self.storages = {}
        self.count = len(self.region.values) - len(self.storages)
        self.storages = dict(zip(self.storages, self.region.values[self.count :], strict=True))

    def _raise(self) -> None:
        """The end of a branch that raises. What it has assigned to does not matter any more."""
        assert self.raised is not None
        trace = require_trace()
        inside = any(v._storage.trace is trace for v in self.raised.values)
        self.hoisted = trace.token is None and not inside
        if not self.hoisted and not self.raised.emitted:
            self.raised.emit(wrap(as_value(False)))

    def out(self, leaf: Any) -> Out:
        return self.region.outs[leaf.index] if isinstance(leaf, Inside) else out_of(leaf)

    def made_at(self, leaf: Any) -> str:
        return self.region.made_at(leaf.index) if isinstance(leaf, Inside) else ""


@record
class Trial:
    """What some code would do, traced as a region and taken back: its ops, those of them that happen in
    program order, whether it writes to arrays or containers, and whether functions that it calls change
    anything. `late` are checks that come after something was changed."""

    region: TracedRegion
    ops: Sequence[Op]
    effects: Sequence[Op]
    written: bool
    changed: bool
    late: Collection[Any]

    def is_late(self, op: Op) -> bool:
        """Whether something may have been changed before this op fails."""
        return op.name != "assert" or _check_of(op) in self.late


def _check_of(op: Op) -> Any:
    """What tells a check from others, in copies of its graph, too."""
    return op.loc, op.attrs["message"], op.attrs.get("error")


def trial(function: Callable[[], Any], state: State, what: str) -> Trial | None:
    """Trace a function, and take back what it did. None where it raises."""
    drawn = draws()
    objects = list(state.containers().values())
    before = [pytree.flatten(x)[0] for x in objects]

    outer, late = require_trace(), set[Any]()
    surroundings = Surroundings(state.roots())

    def apart() -> None:
        require_trace().counts = False  # checks are made at once, see `late_checks`
        function()

    def changed() -> bool:
        now = (pytree.flatten(x)[0] for x in objects)
        if any(
            len(a) != len(b) or any(map(is_not, a, b)) for a, b in zip(now, before, strict=True)
        ):
            return True
        trace = require_trace()
        while trace is not outer:
            if trace.adoption is None or trace.adoption.owners or trace.parent is None:
                return True
            trace = trace.parent
        return any(True for _ in surroundings.changes())

    def note(check: Op) -> None:
        if _check_of(check) not in late and changed():
            late.add(_check_of(check))

    try:
        with watching(note):
            one = _Branch(apart, state, objects, surroundings, what)
    except (errors.Anew, RecursionError):  # Python's stack is full, and would be once more
        raise
    except Exception:
        return None
    if one.raised is not None or draws() != drawn:
        return None
    ends = [end for end in one.ends if isinstance(end.value, Content)]
    filled = any(
        len(end.leaves) != len(old) or any(a is not b for a, b in zip(end.leaves, old, strict=True))
        for end, old in zip(ends, before, strict=True)
    )
    ops = one.region.traced.graph.ops
    effects = [op for op in ops if op.definition.effect and op.name != "assert"]
    written = filled or bool(one.storages)
    return Trial(one.region, ops, effects, written, bool(one.slots), late)


def branch(
    pred: Tracer,
    functions: Sequence[Callable[[], Any]],
    state: State,
    what: str = "if",
    names: Sequence[str] = ("else", "if"),
) -> Any:
    """`functions[pred]()`, decided at run time, with what it does to the variables of `state`.

    Returns what the functions return.
    """
    line = user_line(2)
    result, doubts, chosen = _branch(pred, functions, state, what, names)
    settle_doubts(doubts)
    for name, made, among in chosen:  # now that nothing of the branches refers to them any more
        watch(name, made, among, line)
    return result


def _branch(
    pred: Tracer,
    functions: Sequence[Callable[[], Any]],
    state: State,
    what: str,
    names: Sequence[str],
) -> tuple[Any, list[Doubt], list[tuple[str, Any, list[Any]]]]:
    line = user_line(3)
    where = f"line {line.line}" if line else "this line"
    state.own_arrays()
    live = state.live
    objects = state.containers()
    owners = belonging(state.get(), state.names)
    surroundings = Surroundings(state.roots())
    branches = []
    known = implied(pred)
    for function, name, facts in zip(functions, names, known, strict=True):
        try:
            branches.append(
                _Branch(
                    given(facts, function),
                    state,
                    list(objects.values()),
                    surroundings,
                    f"the {name} branch of {what}",
                )
            )
        except Exception as error:
            _note(
                error,
                f"the condition of the `{what}` at {where} is known only when the compiled "
                "function runs, so both branches are traced",
            )
            raise
    for k, one in enumerate(branches):
        if one.raised is not None:
            assume(known[1 - k])  # in what follows
            if one.hoisted:
                one.raised.emit(pred if k == 0 else emit("invert", as_value(pred)))
    outer = outer_ids([*state.get(), *objects.values()])
    merge = Merge(pred, branches, what, names, where, owners, outer)
    if all(one.raised is not None for one in branches):
        merge.emit(pred, [])
        raise Raised.by_now(branches[1].raised)
    labels = ["", *(n for n, is_live in zip(state.names, live, strict=True) if is_live)]
    filled = [False, *(f for f, is_live in zip(state.filled, live, strict=True) if is_live)]
    labels += objects
    filled += [False for _ in objects]
    plans = [
        merge.object(label, [b.ends[i] if b.raised is None else None for b in branches], fill)
        for i, (label, fill) in enumerate(zip(labels, filled, strict=True))
    ]
    slots: dict[Slot, Any] = dict.fromkeys(slot for b in branches for slot in b.slots)
    for slot in slots:
        now = end_of(slot.get(), None, [])
        ends = [b.slots.get(slot, now) if b.raised is None else None for b in branches]
        for end in ends:
            inherit(slot.holder, end and end.value)  # of a list, a copy of its content
        slots[slot] = merge.object(slot.name, ends, False, slot.kind == "content")
    storages = union([b.storages for b in branches])
    note = merge.relations()
    results = merge.emit(pred, storages)
    for storage, value in zip(storages, results[len(merge.outs) :], strict=False):
        write(storage, value)
    merged = [plan(results) for plan in plans]
    moved = [(slot, plan(results)) for slot, plan in slots.items()]
    note(results)
    for name, value in zip(labels, merged, strict=True):
        refuse_lost(name, value)
    for slot, value in moved:
        refuse_lost(slot.name, value)
    values = iter(merged[1:])
    state.set([next(values) if v else gone(n) for n, v in zip(state.names, live, strict=True)])
    for container, content in zip(objects.values(), values, strict=True):
        settle(container, content)
    for slot, value in moved:
        slot.put(value)
    return merged[0], [doubt for b in branches for doubt in b.doubts], merge.chosen


def _note(error: BaseException, text: str) -> None:
    if not isinstance(error, errors.JitneyError) and not getattr(error, "__notes__", None):
        error.add_note(text)
