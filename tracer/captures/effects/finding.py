"""What a traced function leaves behind: its result, and its changes of the heap, as `recipes`."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import optree

from ....ir.types import I64
from ...containers.arrays import GrownArray
from ...containers.kinds import CLASSES, Enters, current, enters, fits
from ...containers.stand_ins import Container
from ...containers.tables import View
from ...control.unions import exact
from ...core.sharing import trace_again
from ...core.tracers import Tracer, as_value, emit, wrap
from ...data import pytree
from ...messages import errors
from ...messages.errors import complain
from ..frozen import attributes_of, is_random_state
from ..heap import Heap, Snapshot, number_spec
from ..heap_nodes import DICTS, Fixed, Inner, Input
from ..kept import Kept, ShownLater
from ..paths import ABSENT
from ..subjects import is_object
from .recipes import (
    Again,
    Constant,
    Effects,
    Held,
    Known,
    Leaf,
    Made,
    Recipe,
    Shown,
    Tree,
    Which,
    Write,
)

_CONSTANTS = (
    *(bool, int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis), np.generic),
    *(np.dtype, np.ufunc, type, FunctionType, BuiltinFunctionType, ModuleType, frozenset),
    *(type(NotImplemented), BaseException),
)


_RESIZING = ("content", "item", "delete item")
_NATIVE = (Container, View, GrownArray)


class _Finder:
    def __init__(self, heap: Heap, arrays: Sequence[Any], kept: Kept) -> None:
        self.heap, self.kept = heap, kept
        self._storages = {x._storage: x for x in arrays if isinstance(x, Tracer) and not x.scalar}
        self.leaves: list[Any] = []
        self._numbers: dict[int, int] = {}  # of leaves, by id
        self._left: dict[int, Recipe] = {}  # of arrays, by their storage's id
        self._nodes = {id(node.value): n for n, node in enumerate(heap.nodes)}
        self._nodes |= {id(node.standing): n for n, node in enumerate(heap.nodes)}
        self._made: dict[int, int] = {}
        self._alive: list[Any] = []

    def recipe(self, value: Any, name: str) -> Recipe:
        """How a value that the traced function has left is made; `name` is how users call it."""
        value = exact(value)
        cls = type(value)
        if isinstance(value, Tracer):
            if value._storage.trace.done:
                _refuse_inner(name)
            return self._leaf(value) if value.scalar or value._view else self._array(value, name)
        if isinstance(value, _CONSTANTS):
            return Constant(value)
        if isinstance(value, _NATIVE):
            return self._leaf(value)
        if isinstance(value, ShownLater):
            return Shown(value.shown, tuple([self.recipe(part, name) for part in value.values]))
        if id(value) in self._nodes:
            return Known(self._nodes[id(value)])
        if id(value) in self._made:
            return Again(self._made[id(value)])
        if is_random_state(value) and (held := self._held(value)) is not None:
            return held
        if cls.__name__ == "Undefined":
            value.refuse()
        containers = (list, tuple, deque, set, *DICTS)
        if cls not in containers and not hasattr(cls, "_fields") and not is_object(value):
            self.kept.refuse(value)
            if hasattr(cls, "refuse_kept"):
                value.refuse_kept()
            leaves, tree = pytree.flatten(value)
            if tree.is_leaf():
                return self._leaf(value)
            if any(isinstance(part, _NATIVE) for part in pytree.nodes(value)):
                leaves, tree = optree.tree_flatten(
                    value, is_leaf=lambda x: isinstance(x, _NATIVE), namespace=pytree.NAMESPACE
                )
            return Tree(tree, tuple([self.recipe(leaf, name) for leaf in leaves]))
        self.kept.refuse(value)
        number = self._made[id(value)] = len(self._made)
        self._alive.append(value)
        if isinstance(value, dict):
            items = {f"{name}[{key!r}]": part for key, part in value.items()}
            keys = tuple(value)
        elif is_object(value):
            attributes = attributes_of(value) or {}
            items = {f"{name}.{key}": part for key, part in attributes.items()}
            keys = tuple(attributes)
        else:
            items, keys = {f"{name}[{i}]": part for i, part in enumerate(value)}, ()
        parts = tuple([self.recipe(p, n) for n, p in items.items()])
        return Made(number, cls, keys, parts, _detail_of(value))

    def _held(self, generator: Any) -> Held | None:
        """Where a generator is found at the call."""
        for number, node in enumerate(self.heap.nodes):
            for key, slot in node.slots.items():
                one = self.heap.inputs[slot.number] if isinstance(slot, Input) else slot
                if not isinstance(one, Inner) and one.value is generator:
                    return Held(number, key)
        return None

    def _array(self, value: Tracer, name: str) -> Recipe:
        """An array, which perhaps is one of those that left before it."""
        storage = value._storage
        which = storage.which
        recipe = self._leaf(value) if which is None else self._which(value, which)
        for relation in storage.perhaps:
            earlier = self._left.get(id(relation.other()))
            if earlier is None or relation.steps or not relation.is_alive:
                continue
            if relation.holds is None:
                trace_again()
                _refuse_unknown(name)
            elif relation.holds is True:
                recipe = earlier
            else:
                number = wrap(emit("convert", as_value(relation.holds), dtype=I64).value, "i")
                recipe = Which(self._leaf(number), ((1, earlier),), recipe)
        self._left.setdefault(id(storage), recipe)
        return recipe

    def _which(self, value: Tracer, which: Any) -> Recipe:
        """An array that is one of others, or new. Nobody can tell it from those that were made here and
        are gone."""
        origins = []
        for number, storage in enumerate(value._storage.trace.origins or (), 1):
            if storage is not value._storage and storage in self._storages:
                origins.append((number, self._leaf(self._storages[storage])))
        if isinstance(which, int):
            return next((r for n, r in origins if n == which), self._leaf(value))
        return Which(self._leaf(which), tuple(origins), self._leaf(value))

    def _leaf(self, value: Any) -> Leaf:
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self.leaves)
            self.leaves.append(value)
        return Leaf(number)

    # Changes

    def change_entered(self) -> None:
        """Let containers get what is in the native ones of them: one that leaves leads to all."""
        kinds = current()
        if kinds is not None and kinds.entered and any(k.changes for k, *_ in kinds.numbers):
            self._leaf(kinds.entered[0])

    def writes(self, before: Snapshot) -> list[Write]:
        writes: list[Write] = []
        for number, (path, _) in enumerate(self.heap.roots):
            now = path.find()
            if path.kind in ("cell", "global") and now is not before.roots[number]:
                writes.append(Write("root", number, None, self._or_absent(now, str(path))))
        for number, held in enumerate(before.nodes):
            if held is not None:
                writes += self._of_node(number, held)
        return writes

    def _or_absent(self, value: Any, name: str) -> Recipe:
        return Constant(ABSENT) if value is ABSENT else self.recipe(value, name)

    def _of_node(self, number: int, before: Any) -> list[Write]:
        node = self.heap.nodes[number]
        value, name, writes = node.value, node.name, []
        if node.log:
            if isinstance(node.standing, Container):
                writes.append(Write("extend", number, None, self._leaf(node.standing)))
            elif node.standing:
                writes.append(Write("extend", number, None, self._content(node.standing, name)))
            return writes
        if node.is_object or isinstance(value, dict):
            now = value if isinstance(value, dict) else attributes_of(value) or {}
            kind, shown = ("attribute", "{}.{}") if node.is_object else ("item", "{}[{!r}]")
            common = [key for key in before if key in now]
            if kind == "item" and list(now)[: len(common)] != common:
                return [Write("content", number, None, self._content(value, name))]
            for key in before.keys() - now.keys():
                writes.append(Write(f"delete {kind}", number, key, Constant(None)))
            for key, held in now.items():
                if isinstance(before.get(key), Container) and key not in self.heap.mentions.stored:
                    continue  # one that nobody assigns to, but loops carry it
                if key not in before or before[key] is not held:
                    recipe = self.recipe(held, shown.format(name, key))
                    writes.append(Write(kind, number, key, recipe))
        elif len(value) != len(before) or isinstance(value, deque):
            same = len(value) == len(before) and all(map(_is, value, before))
            if not same:
                writes.append(Write("content", number, None, self._content(value, name)))
        else:
            for i, (now, held) in enumerate(zip(value, before, strict=True)):
                if now is not held:
                    writes.append(Write("item", number, i, self.recipe(now, f"{name}[{i}]")))
        return writes

    def _content(self, holder: Any, name: str) -> Recipe:
        """A container of the same content as one of the heap."""
        copy = dict(holder) if isinstance(holder, dict) else list(holder)
        self._alive.append(copy)
        return self.recipe(copy, name)


def _detail_of(value: Any) -> Any:
    if isinstance(value, defaultdict):
        return value.default_factory
    return value.maxlen if isinstance(value, deque) else None


def _is(a: Any, b: Any) -> bool:
    return a is b


def _refuse_inner(name: str) -> None:
    complain(
        errors.LeakedTracerError,
        f"{name} was assigned a value inside of a function that jitney calls more or less often than "
        "once (a body of jt.while_loop, jt.scan, jt.cond, jt.vmap), and means nothing outside of it",
        "return the value from that function, or hand it on in the carry, and assign it outside.",
    )


def _refuse_unknown(name: str) -> None:
    complain(
        errors.OuterMutationError,
        f"{name} may be the same array as another one that is left, or not, as is known only when the "
        "compiled function runs, and it cannot be told",
        "give each of them an array of its own, with .copy().",
    )


def _enter_resized(heap: Heap, writes: Sequence[Write]) -> None:
    """Containers that have another length now are native ones, which may have any: each length would be
    another trace."""
    nodes = [heap.nodes[write.target] for write in writes if write.kind in _RESIZING]
    resized = [n for n in nodes if n.cls in CLASSES and not n.log and len(n.value) != len(n.slots)]
    places = {node.place for node in resized if fits(node.value) and enters(node.value)}
    places -= heap.policy.natives
    if places and not heap.policy.barred:
        raise Enters(places)


def collect(
    heap: Heap, before: Snapshot, arrays: Sequence[Any], result: Any, kept: Kept
) -> tuple[Effects, set[tuple[int, Any]]]:
    """The effects of a function that has returned `result`, and which numbers it has assigned to that
    are no inputs: then it has to be traced again. `arrays` are those that it was given, `kept` the
    containers that it was given taken apart."""
    finder = _Finder(heap, arrays, kept)
    recipe = finder.recipe(result, "the result")
    writes = finder.writes(before)
    _enter_resized(heap, writes)
    finder.change_entered()
    missed: set[tuple[int, Any]] = set()
    for write in writes:
        if write.kind not in ("item", "attribute"):
            continue
        node = heap.nodes[write.target]
        held = node.slots.get(write.key)
        if isinstance(held, Fixed) and number_spec(held.value) is not None:
            missed |= {(write.target, key) for key in node.slots}
    effects = Effects(recipe, writes, finder.leaves)
    targets = {write.target for write in writes if write.kind != "root"}
    classes = {heap.nodes[i].cls for i in targets}
    for cls in sorted(classes, key=str):
        group = [(n, n in targets) for n, node in enumerate(heap.nodes) if node.cls is cls]
        if len(group) > 1:
            heap.apart.append(group)
    return effects, missed
