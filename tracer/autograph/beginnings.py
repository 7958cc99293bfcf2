"""Where an ordinary loop begins: its first iteration can be taken back, when all are to be one op.

    for i in range(100_000):        # the first iteration was traced as it stands, to see its length;
        out[i] = f(x[i])            # then the op does that one too, and the program has the body once

Not so if the first iteration makes something of another kind: a value where there was none, an array of
a number, another length of a list, an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ir.graph import Op
from ...ir.types import F64, I64, TOKEN
from ..containers.packed import Packed
from ..core.threaded_state import draws
from ..core.trace import Trace, require_trace
from ..core.tracers import Storage, Tracer
from ..data import pytree
from ..records.arrays import Records
from .surroundings import Surroundings
from .variables import Containers, State, Undefined

Kept = dict[Storage, tuple[Any, Any]]  # storages: their traces and values
_EXACT = 1 << 53  # integers up to which floats are


class Beginning:
    """The state of the trace and of what a loop can reach, before the loop."""

    def __init__(self, state: State) -> None:
        self.state, self.trace = state, require_trace()
        state.own_arrays()
        self.count, self.token, self.draws = len(self.trace.graph.ops), self.trace.token, draws()
        self.entry = state.get()
        self.containers = Containers(list(state.containers().values()))
        self.surroundings = Surroundings(state.roots())
        self.storages = storages_of(state, self.surroundings, self.containers)

    def kinds(self) -> list[Any]:
        """Of what kinds the values of the variables are before the loop."""
        pairs = zip(self.state.live, self.entry, strict=True)
        return [_kind(x) if live else None for live, x in pairs]

    def changes(self, run: Callable[[], Any]) -> bool:
        """Whether `run` changes anything that can be reached. Afterwards it is as if it had not run, but
        for ops that nobody uses."""
        run()
        state = self.state
        changed = any(True for _ in self.surroundings.changes())
        changed |= any(not _unchanged(now, before) for now, before in self.containers.saved)
        changed |= any(s.value is not value for s, (_, value) in self.storages.items())
        changed |= any(a is not b for a, b in zip(state.get(), self.entry, strict=True))
        put_back(self.storages)
        state.set(self.entry)
        self.containers.restore()
        self.surroundings.restore()
        self.trace.token = self.token
        return changed

    def takes_back(self) -> bool:
        """Take back what was traced since, where an op can do it as well. False: nothing changes."""
        if not self._same_kinds():
            return False
        put_back(self.storages)
        self.state.set(self.entry)
        _take_back(self.trace, self.count, self.token)
        return True

    def _only_checks(self) -> bool:
        """Whether the iteration has had no effects but checks, which the op makes, too."""
        return _only_check(self.trace.graph.ops[self.count :])

    def _same_kinds(self) -> bool:
        state, trace = self.state, self.trace
        if require_trace() is not trace or not self._only_checks() or draws() != self.draws:
            return False
        if not self.surroundings.complete or any(True for _ in self.surroundings.changes()):
            return False
        if any(not _unchanged(now, before) for now, before in self.containers.saved):
            return False
        for storage, (owner, value) in self.storages.items():
            if storage.trace is not owner:
                return False
            if storage.value is not value and storage.value.type != value.type:
                return False
        known = set(self.storages)
        for live, before, now in zip(state.live, self.entry, state.get(), strict=True):
            if live and not _alike(before, now, known):
                return False
        return True


@contextmanager
def supposed() -> Iterator[None]:
    """What is done inside leaves no effect in the program: it only shows of what kind an answer is."""
    trace = require_trace()
    count, token, arrived = len(trace.graph.ops), trace.token, set(trace.arrived)
    try:
        yield
    finally:
        _take_back(trace, count, token)
        trace.arrived.intersection_update(arrived)


def _take_back(trace: Trace, count: int, token: Any) -> None:
    """Let there be none of the ops since the first `count` that have effects, nor what is computed of
    their results; what else was computed may be known to be there, and nobody may use it."""
    trace.token = token
    gone: set[Any] = set()
    kept = []
    for op in trace.graph.ops[count:]:
        if op.regions or op.definition.effect or any(v in gone for v in op.operands):
            gone.update(op.results)
        else:
            kept.append(op)
    trace.graph.ops[count:] = kept


def storages_of(state: State, surroundings: Surroundings, containers: Containers) -> Kept:
    """The storages of the arrays that a loop may write, and what they hold."""
    held = [x for _, holder, content, _ in surroundings.saved for x in _items(content)]
    reached: list[Any] = [*state.get(), *(x for _, x in state.roots()), *held]
    kept: Kept = {}
    for x in (*reached, *(copy for _, copy in containers.saved)):
        leaves = pytree.flatten(x)[0] if isinstance(x, (list, tuple, dict, Records)) else [x]
        for leaf in leaves:
            leaf = leaf.data if isinstance(leaf, Packed) else leaf
            if isinstance(leaf, Tracer):
                kept[leaf._storage] = leaf._storage.trace, leaf._storage.value
    return kept


def put_back(kept: Kept) -> None:
    """Let storages hold what they held."""
    for storage, (_, value) in kept.items():
        if storage.value is not value:
            storage.value = value
            storage.version += 1


def _only_check(ops: Iterable[Op]) -> bool:
    """Whether ops have no effects but checks, in their regions neither."""
    effects = [op for op in ops if any(v.type is TOKEN for v in op.results)]
    return all(
        op.name in ("assert", "create_token")
        or (bool(op.regions) and all(_only_check(region.ops) for region in op.regions))
        for op in effects
    )


def _kind(x: Any) -> Any:
    if isinstance(x, Tracer):
        return x.shape, x.dtype, x.weak
    if type(x) in (int, float):
        return (), I64 if type(x) is int else F64, "i" if type(x) is int else "f"
    if isinstance(x, np.number):
        return (), x.dtype, None
    return type(x), id(x)


def _items(content: Any) -> list[Any]:
    if isinstance(content, dict):
        return list(content.values())
    return list(content) if isinstance(content, (list, tuple, set)) else [content]


def _unchanged(now: Any, before: Any) -> bool:
    if isinstance(now, dict):
        now, before = [*now, *now.values()], [*before, *before.values()]
    a, b = list(now), list(before)
    return len(a) == len(b) and all(x is y for x, y in zip(a, b, strict=True))


def _alike(before: Any, now: Any, known: set[Storage]) -> bool:
    """Whether a variable held the same kind of value before the first iteration as after it."""
    if before is now and not isinstance(before, Undefined):
        return True
    if isinstance(before, Tracer) and isinstance(now, Tracer):
        if before.shape or now.shape:
            return before._storage is now._storage
        same = before.dtype == now.dtype and before.weak == now.weak
        return same and before.scalar == now.scalar
    if type(before) in (int, float):
        if type(now) is type(before):
            return True
        if not isinstance(now, Tracer) or now.shape or isinstance(before, bool):
            return False
        wide = now.dtype.kind in "iu" if type(before) is int else now.dtype.kind == "f"
        if type(before) is int and now.dtype.kind == "f":
            wide = abs(before) < _EXACT
        return bool(wide and now.dtype.itemsize == 8)
    if isinstance(before, np.number):
        if isinstance(now, Tracer):
            return now.scalar and now.weak is None and now.dtype == before.dtype
        return type(now) is type(before)
    return False
