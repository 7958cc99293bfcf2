"""What a traced function leaves behind: its result, and what it has changed in the heap, as recipes.

A recipe says how to make a value of the outputs of compiled code (`Leaf`), of objects that are there at
the call (`Known`) and of constants. The changes are made when the code has run, one after the other; if
it raises there are none.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
import optree

from ...ir.record import record
from ...ir.types import I64
from ..containers.arrays import GrownArray
from ..containers.kinds import CLASSES, Enters, current, enters, fits
from ..containers.stand_ins import Container
from ..containers.tables import View
from ..control.unions import exact
from ..core.sharing import trace_again
from ..core.tracers import Tracer, as_value, emit, wrap
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .frozen import attributes_of, is_random_state
from .heap import Heap, Snapshot, number_spec
from .heap_nodes import Fixed, Inner, Input, put_content, put_root
from .kept import Kept, ShownLater
from .paths import ABSENT
from .subjects import is_object

_CONSTANTS = (
    *(bool, int, float, complex, str, bytes, range, slice, type(None), type(Ellipsis), np.generic),
    *(np.dtype, np.ufunc, type, FunctionType, BuiltinFunctionType, ModuleType, frozenset),
    *(type(NotImplemented), BaseException),
)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_DICTS = (dict, OrderedDict, defaultdict, Counter)


@record
class Leaf:
    """An array or a number that the compiled function gives."""

    number: int


@record
class Constant:
    """A value that nothing changes, known while tracing."""

    value: Any


@record
class Known:
    """The object that is in the place of a node at the call."""

    node: int


@record
class Held:
    """The generator that is in a slot of the object in the place of a node at the call."""

    node: int
    key: Any


@record
class Made:
    """A new object of `cls`: `keys` are attributes or the keys of a dict. `number` tells those of one
    call apart; `detail` is what a defaultdict or deque has besides elements."""

    number: int
    cls: type
    keys: tuple[Any, ...]
    parts: tuple[Recipe, ...]
    detail: Any = None


@record
class Again:
    """The object that `Made` of this number made."""

    number: int


@record
class Which:
    """Of the arrays in `origins` the one whose number `number` gives; `otherwise` a new one, say."""

    number: Recipe
    origins: tuple[tuple[int, Recipe], ...]
    otherwise: Recipe


@record
class Tree:
    """A pytree of another kind."""

    tree: Any
    leaves: tuple[Recipe, ...]


@record
class Shown:
    """A text with values in it: `show` makes it of them."""

    show: Callable[[Sequence[Any]], str]
    parts: tuple[Recipe, ...]


Recipe = Leaf | Constant | Known | Held | Made | Again | Which | Tree | Shown


@record
class Write:
    """One change. `kind` is "attribute", "item", "delete attribute", "delete item", "content" or
    "extend" of the node of number `target`, or "root" of that number."""

    kind: str
    target: int
    key: Any
    value: Recipe


@record(frozen=False, eq=False)
class Effects:
    """The result and the changes of one traced call; `leaves` is what the recipes count, while that is
    traced."""

    result: Recipe
    writes: list[Write]
    leaves: list[Any]

    @property
    def is_plain(self) -> bool:
        """Whether another process can make sense of the constants."""
        return all(_is_plain(r) for r in (self.result, *(w.value for w in self.writes))) and all(
            type(w.key) in _PLAIN for w in self.writes
        )

    def finish(self, heap: Heap, leaves: Sequence[Any], nodes: Sequence[Any]) -> Any:
        """Make the result and the changes; where one cannot be made, none is."""
        made: dict[int, Any] = {}
        result = build(self.result, leaves, nodes, made)
        values = [build(write.value, leaves, nodes, made) for write in self.writes]
        undo: list[Callable[[], None]] = []
        try:
            for write, value in zip(self.writes, values, strict=True):
                undo.append(apply_to(heap, write, value, nodes))
        except BaseException:
            for back in reversed(undo):
                back()
            raise
        return result


def _is_plain(recipe: Recipe) -> bool:
    if isinstance(recipe, Constant):
        return type(recipe.value) in _PLAIN
    if isinstance(recipe, Made):
        plain = all(type(key) in _PLAIN for key in (*recipe.keys, recipe.detail))
        return plain and all(map(_is_plain, recipe.parts))
    if isinstance(recipe, Which):
        return True
    if isinstance(recipe, Held):
        return type(recipe.key) in _PLAIN
    return not isinstance(recipe, (Tree, Shown))


# Making values


def build(recipe: Recipe, leaves: Sequence[Any], nodes: Sequence[Any], made: dict[int, Any]) -> Any:
    """The value that a recipe makes; `made` is what the recipes before it have made."""
    if isinstance(recipe, Leaf):
        return leaves[recipe.number]
    if isinstance(recipe, Constant):
        return recipe.value
    if isinstance(recipe, Known):
        return nodes[recipe.node]
    if isinstance(recipe, Held):
        holder = nodes[recipe.node]
        attributes = attributes_of(holder)
        return holder[recipe.key] if attributes is None else attributes[recipe.key]
    if isinstance(recipe, Again):
        return made[recipe.number]
    if isinstance(recipe, Which):
        number = build(recipe.number, leaves, nodes, made)
        chosen = next((r for n, r in recipe.origins if n == number), recipe.otherwise)
        return build(chosen, leaves, nodes, made)
    if isinstance(recipe, Shown):
        return recipe.show([build(part, leaves, nodes, made) for part in recipe.parts])
    if isinstance(recipe, Tree):
        parts = [build(part, leaves, nodes, made) for part in recipe.leaves]
        return _with_texts(pytree.unflatten(recipe.tree, parts))
    cls = recipe.cls
    if issubclass(cls, tuple):
        items = [build(part, leaves, nodes, made) for part in recipe.parts]
        whole = cls(items) if cls is tuple else cls._make(items)  # type: ignore[attr-defined]
        made[recipe.number] = whole
        return whole
    is_container = cls in (list, deque, set, *_DICTS)
    new: Any = _empty(cls, recipe.detail) if is_container else object.__new__(cls)
    made[recipe.number] = new
    items = [build(part, leaves, nodes, made) for part in recipe.parts]
    if cls in (list, deque):
        new.extend(items)
    elif cls is set:
        new.update(items)
    elif cls in _DICTS:
        content = zip(recipe.keys, items, strict=True)
        dict.update(new, content) if cls is Counter else new.update(content)
    else:
        for name, item in zip(recipe.keys, items, strict=True):
            object.__setattr__(new, name, item)
    return new


def _with_texts(tree: Any) -> Any:
    """A tree of known values with its texts as they are shown."""
    if not any(isinstance(node, ShownLater) for node in pytree.nodes(tree)):
        return tree
    return optree.tree_map(
        lambda x: str(x) if isinstance(x, ShownLater) else x,
        tree,
        is_leaf=lambda x: isinstance(x, ShownLater),
        namespace=pytree.NAMESPACE,
    )


def _empty(cls: type, detail: Any) -> Any:
    if cls is deque:
        return deque(maxlen=detail)
    return defaultdict(detail) if cls is defaultdict else cls()


def apply_to(heap: Heap, write: Write, value: Any, nodes: Sequence[Any]) -> Callable[[], None]:
    """Make one change; returns what takes it back."""
    if write.kind != "root":
        return apply(write, nodes[write.target], value)
    path = heap.roots[write.target][0]
    before = path.find()
    put_root(path, value)
    return lambda: put_root(path, before)


def apply(write: Write, holder: Any, value: Any) -> Callable[[], None]:
    """Make one change of an object; returns what takes it back."""
    kind, key = write.kind, write.key
    if kind.endswith("attribute"):
        old = (attributes_of(holder) or {}).get(key, ABSENT)
        _set_attribute(holder, key, value if kind == "attribute" else ABSENT)
        return lambda: _set_attribute(holder, key, old)
    saved = holder.copy()
    if kind == "content":
        put_content(holder, value)
    elif kind == "extend":
        adding(type(holder))(holder, value)
    elif kind == "item":
        holder[key] = value
    else:
        del holder[key]
    return lambda: put_content(holder, saved)


def adding(cls: type) -> Callable[[Any, Any], Any]:
    """What adds several elements to a list, deque or set."""
    method: Callable[[Any, Any], Any] = set.update if cls is set else cls.extend  # type: ignore[attr-defined]
    return method


def _set_attribute(holder: Any, name: str, value: Any) -> None:
    if value is not ABSENT:
        object.__setattr__(holder, name, value)
    elif name in (attributes_of(holder) or {}):
        object.__delattr__(holder, name)


_RESIZING = ("content", "item", "delete item")
_NATIVE = (Container, View, GrownArray)


# Finding what was changed


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
        containers = (list, tuple, deque, set, *_DICTS)
        if cls not in containers and not hasattr(cls, "_fields") and not is_object(value):
            self.kept.refuse(value)
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
