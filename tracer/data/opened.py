"""Trees with objects opened: nodes whose children are the arrays of an object, and back.

`opened` puts an `Opened` in the place of each registered object, and for transformations a `Setting` in
the place of each text or function; `closed` makes objects of them again, new ones of the same classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import Any

import numpy as np
import optree

from ...ir.record import record
from ..messages.errors import TracerBase
from . import pytree
from .objects import (
    CONTAINERS,
    Parameter,
    Walk,
    is_leaf_array,
    kind_of,
    parameters,
    registered,
)

_ORDINARY = frozenset({np.ndarray, bool, int, float, complex, type(None)})
_SETTINGS = (bool, int, float, complex, str, bytes, np.generic, np.dtype, type(None))


@record(frozen=False, eq=False)
class Plan:
    """How an object was opened. `shared` are paths to arrays that are children of another one."""

    obj: Any
    parameters: list[Parameter]
    shared: list[tuple[str, Parameter]]
    gradient: bool  # what is made of it is no copy of the object, but has the derivatives in it

    def _key(self) -> tuple[Any, ...]:
        own = tuple(tuple(p.paths) for p in self.parameters)
        return type(self.obj), own, tuple(path for path, _ in self.shared)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return type(self.obj).__name__


class Opened:
    """In the place of an object: its arrays, or what stands for them."""

    __slots__ = ("leaves", "plan")

    def __init__(self, plan: Plan, leaves: Sequence[Any]) -> None:
        self.plan = plan
        self.leaves = list(leaves)

    def __repr__(self) -> str:
        return repr(self.plan)


class _Entry(optree.GetAttrEntry):
    """The way to an array of an object, as Python writes it."""

    def codify(self, node: str = "") -> str:
        """An expression for what is there."""
        return f"{node}.{self.entry}" if self.entry else node


def _flatten(opened: Opened) -> tuple[list[Any], Plan, tuple[str, ...]]:
    return opened.leaves, opened.plan, tuple(p.paths[0] for p in opened.plan.parameters)


def _unflatten(plan: Any, leaves: Any) -> Opened:
    return Opened(plan, leaves)


_register: Any = optree.register_pytree_node  # its hints ask for collections; any object will do
_register(Opened, _flatten, _unflatten, path_entry_type=_Entry, namespace=pytree.NAMESPACE)


class Setting:
    """In the place of a text or a function in a tree: a node without children."""

    __slots__ = ("gradient", "value")

    def __init__(self, value: Any, gradient: bool) -> None:
        self.value, self.gradient = value, gradient

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and (
            self.value is other.value or bool(self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash(type(self.value))

    def __repr__(self) -> str:
        return repr(self.value)


_register(
    Setting,
    lambda setting: ((), setting, ()),
    lambda setting, _: setting,
    namespace=pytree.NAMESPACE,
)


def opened(
    tree: Any, gradient: bool = False, settings: bool = False, walk: Walk | None = None
) -> Any:
    """A tree with its registered objects opened; the tree itself if there are none. For a `gradient`
    only what is differentiated is a child. With `settings`, texts and functions in containers are no
    leaves. What was found before on one `walk` is no child once more."""
    if not registered() and not settings:
        return tree
    leaves, definition = pytree.flatten(tree)
    settings &= not definition.is_leaf()
    walk = walk or Walk()
    parts = [_opened_leaf(leaf, walk, gradient, settings) for leaf in leaves]
    if all(part is leaf for part, leaf in zip(parts, leaves, strict=True)):
        return tree
    return pytree.unflatten(definition, parts)


def _opened_leaf(leaf: Any, walk: Walk, gradient: bool, settings: bool) -> Any:
    if type(leaf) in _ORDINARY:
        return leaf
    if kind_of(leaf) is not None:
        return _opened(leaf, walk, gradient)
    return Setting(leaf, gradient) if settings and is_setting(leaf) else leaf


def is_setting(leaf: Any) -> bool:
    """Whether a leaf is a text or a function, which no transformation computes with."""
    if isinstance(leaf, (str, bytes, Enum, np.dtype, partial)):
        return True
    return callable(leaf) and hasattr(leaf, "__name__") and not isinstance(leaf, TracerBase)


def _opened(obj: Any, walk: Walk, gradient: bool) -> Opened:
    kind = kind_of(obj)
    assert kind is not None
    if gradient:
        kind.check(obj)
    start = len(walk.found)
    before = {id(p): len(p.paths) for p in walk.found}
    walk.enter(obj, "", None, True)
    shared = [(path, p) for p in walk.found[:start] for path in p.paths[before[id(p)] :]]
    for p in walk.found[:start]:
        del p.paths[before[id(p)] :]
    own = [p for p in walk.found[start:] if p.has_derivative or not gradient]
    return Opened(Plan(obj, own, shared, gradient), [p.array for p in own])


def _is_opened(value: Any) -> bool:
    return isinstance(value, (Opened, Setting))


def map_opened(function: Callable[[Opened], Any], tree: Any, derivatives: bool = False) -> Any:
    """A tree with what a function gives in the place of opened objects, and settings as they were, or
    None among `derivatives`."""

    def one(x: Any) -> Any:
        if isinstance(x, Setting):
            return None if derivatives and x.gradient else x.value
        return function(x) if isinstance(x, Opened) else x

    return optree.tree_map(one, tree, is_leaf=_is_opened, namespace=pytree.NAMESPACE)


def opened_in(tree: Any) -> list[Opened | Setting]:
    """The opened objects in a tree, and its settings."""
    leaves = optree.tree_leaves(tree, is_leaf=_is_opened, namespace=pytree.NAMESPACE)
    return [leaf for leaf in leaves if isinstance(leaf, (Opened, Setting))]


def closed(tree: Any) -> Any:
    """A tree with new objects in the place of opened ones: of the same classes, with the leaves as
    arrays. In gradients other arrays, and generators, are None, and an array stands in the place of a
    cell."""
    found = opened_in(tree)
    if not found:
        return tree
    values = {
        id(p): _as_array(leaf)
        for one in found
        if isinstance(one, Opened)
        for p, leaf in zip(one.plan.parameters, one.leaves, strict=True)
    }
    memo: dict[int, Any] = {}

    def made(one: Opened) -> Any:
        by_path = {path: values.get(id(p)) for path, p in one.plan.shared}
        by_path |= {path: values[id(p)] for p in one.plan.parameters for path in p.paths}
        return _copy(one.plan.obj, "", by_path, memo, one.plan.gradient)

    return map_opened(made, tree, derivatives=True)


def _as_array(leaf: Any) -> Any:
    """A number, as operators make of arrays without axes, as the array that an attribute has to be."""
    if isinstance(leaf, TracerBase):
        return leaf if is_leaf_array(leaf) else leaf.reshape(())  # type: ignore[attr-defined]
    return np.asarray(leaf) if isinstance(leaf, (bool, int, float, complex, np.generic)) else leaf


def _copy(
    value: Any, path: str, by_path: dict[str, Any], memo: dict[int, Any], gradient: bool
) -> Any:
    kind = kind_of(value)
    if value is None or is_leaf_array(value) or (kind is not None and kind.cell and gradient):
        return by_path.get(path)
    if kind is not None:
        if id(value) in memo:
            return memo[id(value)]
        new = memo[id(value)] = object.__new__(type(value))
        for name, item in list(vars(value).items()):
            below = path if kind.cell else f"{path}.{name}" if path else name
            vars(new)[name] = _copy(item, below, by_path, memo, gradient)
        return new
    if not isinstance(value, CONTAINERS):
        settings = isinstance(value, _SETTINGS) or callable(value)
        return value if settings or not gradient else None
    if isinstance(value, dict):
        new = value.copy()
        new.update(
            {k: _copy(x, f"{path}[{k!r}]", by_path, memo, gradient) for k, x in value.items()}
        )
        return new
    items = [_copy(x, f"{path}[{i!r}]", by_path, memo, gradient) for i, x in enumerate(value)]
    cls: Any = type(value)
    return cls._make(items) if hasattr(cls, "_fields") else cls(items)


def open_like(like: Any, tree: Any) -> Any:
    """A tree with its objects opened as those in the same places of `like` are, by the paths of these:
    for tangents and cotangents."""
    if not opened_in(like):
        return tree
    leaves, definition = optree.tree_flatten(like, is_leaf=_is_opened, namespace=pytree.NAMESPACE)
    parts = definition.flatten_up_to(tree)
    pairs = zip(leaves, parts, strict=True)
    return pytree.unflatten(definition, [_part_like(x, part) for x, part in pairs])


def _part_like(like: Any, part: Any) -> Any:
    """An object opened as another one is, with None where it has no array. An array is its own."""
    if isinstance(part, Opened):
        return part
    if not isinstance(like, Opened):
        return like if isinstance(like, Setting) else part
    paths = [p.paths[0] for p in like.plan.parameters]
    if kind_of(part) is None:
        return Opened(like.plan, [part] if paths == [""] else [None] * len(paths))
    by_path = {path: p.array for p in parameters(part) for path in p.paths}
    return Opened(like.plan, [by_path.get(path) for path in paths])


def leaves(tree: Any) -> list[Any]:
    """The leaves of a tree, with those of the objects in it."""
    return pytree.flatten(opened(tree))[0]


def tree_map(function: Callable[[Any], Any], tree: Any) -> Any:
    """A function applied leaf by leaf; objects are copies."""
    return closed(pytree.tree_map(function, opened(tree)))


def spread(upper: Any, tree: Any) -> list[Any]:
    """For each leaf of a tree what stands in its place, or around it, in an upper part of the tree."""
    first = opened(tree)
    tops, definition = optree.tree_flatten(upper, none_is_leaf=False, namespace=pytree.NAMESPACE)
    parts = definition.flatten_up_to(first)
    return [top for top, part in zip(tops, parts, strict=True) for _ in pytree.flatten(part)[0]]


def combined(trees: Sequence[Any]) -> Any:
    """One tree: in each place what is not None in the first tree that has something there."""
    first, *rest = trees
    none_is_leaf: Any = {"none_is_leaf": True, "namespace": pytree.NAMESPACE}
    pytree.flatten(first)  # dataclasses become known
    leaves, definition = optree.tree_flatten(first, **none_is_leaf)
    columns = zip(leaves, *(definition.flatten_up_to(tree) for tree in rest), strict=True)
    return pytree.unflatten(definition, [_one_of(column) for column in columns])


def _one_of(column: Sequence[Any]) -> Any:
    found = [x for x in column if x is not None]
    if not found:
        return None
    kind = kind_of(found[0])
    if kind is None or kind.cell:
        return found[0]
    by_path: dict[str, Any] = {}
    for obj in reversed(found):
        by_path |= {path: p.array for p in parameters(obj) for path in p.paths}
    return _copy(found[0], "", by_path, {}, False)
