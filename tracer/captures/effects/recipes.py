"""Recipes: how results, and what a function changes outside, are made of the outputs of compiled code.

A recipe says how to make a value of the outputs (`Leaf`), of objects that are there at the call
(`Known`) and of constants. The changes are made when the code has run, one after the other; if it raises
there are none. A process that finds its programs on disk loads this, and nothing that traces.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import optree

from ....ir.record import record
from ...data import pytree
from ..frozen import attributes_of
from ..heap_nodes import DICTS, put_content, put_root
from ..kept import ShownLater
from ..paths import ABSENT

if TYPE_CHECKING:
    from ..heap import Heap

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


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

    @property
    def is_buildable(self) -> bool:
        """Whether native code can make all values, one after the other."""
        return _is_buildable(self)

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


def _is_buildable(effects: Effects) -> bool:
    finished: set[int] = set()

    def visit(recipe: Recipe) -> bool:
        if isinstance(recipe, Again):
            return recipe.number in finished  # not one that it is a part of itself
        if isinstance(recipe, Made):
            whole = all(map(visit, recipe.parts))
            finished.add(recipe.number)
            return whole
        return isinstance(recipe, (Leaf, Constant, Known, Which))

    kinds = {"attribute", "item", "root", "content", "extend"}
    values = (w.value for w in effects.writes)
    gone = any(isinstance(value, Constant) and value.value is ABSENT for value in values)
    supported = not gone and all(w.kind in kinds for w in effects.writes)
    return supported and all([visit(effects.result), *(visit(w.value) for w in effects.writes)])


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
    is_container = cls in (list, deque, set, *DICTS)
    new: Any = _empty(cls, recipe.detail) if is_container else object.__new__(cls)
    made[recipe.number] = new
    items = [build(part, leaves, nodes, made) for part in recipe.parts]
    if cls in (list, deque):
        new.extend(items)
    elif cls is set:
        new.update(items)
    elif cls in DICTS:
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
