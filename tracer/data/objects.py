"""Objects that are trees where one asks for a tree: modules, variables.

For compiled code they are objects like others: it reads and changes them where they are. For `jt.tree`
and for transformations an object of a class that was registered here is a node, `Opened`, whose
children are its arrays: those of its attributes, and of the registered objects and containers in these.
One array in two places, or in two of the objects, is one child.

A function that is given an opened object sees the object itself: while it runs, what is computed with
stands in the place of the arrays (`entering`). So whatever else it assigns stays assigned, and two names
of one object are two names of one.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import optree

from ...ir.forks import renewed
from ...ir.record import field, record
from ...ir.types import is_inexact, is_supported
from ...runtime.cuda.array import DeviceArray
from ..messages.errors import TracerBase
from . import pytree
from .callables import Function

standing_in = renewed(threading.RLock())  # held while tracers stand in objects of the user's


@record
class Kind:
    """What is known of a class. `untrained` gives the names of attributes that are not differentiated;
    `check` is asked before an object is differentiated; a `cell` is its attribute `value` alone."""

    untrained: Callable[[Any], Container[str]]
    check: Callable[[Any], None]
    cell: bool


_kinds: dict[type, Kind] = {}
_known: dict[type, Kind | None] = {}  # of subclasses, and of others
_CONTAINERS = (list, tuple, dict)
_SETTINGS = (bool, int, float, complex, str, bytes, np.generic, np.dtype, type(None))


def register_object(
    cls: type,
    untrained: Callable[[Any], Container[str]] = lambda obj: (),
    check: Callable[[Any], None] = lambda obj: None,
    *,
    cell: bool = False,
) -> None:
    """Let objects of `cls` and its subclasses be trees for `jt.tree` and transformations.

    Their leaves are the arrays among their attributes, in the order of these, and in the lists,
    tuples, dicts and registered objects there. They have to have a `__dict__`. `untrained(obj)` names
    attributes whose arrays have no derivative; those of integers have none either. `check(obj)` may
    raise before one is differentiated. A `cell` stands for the array in its attribute `value`.

    >>> class Line:
    ...     def __init__(self):
    ...         self.slope, self.name = np.ones(2), "line"
    >>> jt.tree.register_object(Line)
    >>> jt.tree.leaves_with_path(Line())
    [('slope', array([1., 1.]))]
    """
    _kinds[cls] = Kind(untrained, check, cell)
    pytree.keep_whole(cls)
    _known.clear()


def kind_of(value: Any) -> Kind | None:
    """What is known of the class of a value; None if nobody registered it."""
    cls = type(value)
    try:
        return _known[cls]
    except KeyError:
        found = next((_kinds[base] for base in cls.__mro__ if base in _kinds), None)
        _known[cls] = found
        return found


def in_cell(value: Any) -> Any:
    """The array that a value stands for, if it is a cell; else the value."""
    kind = kind_of(value)
    return value.value if kind is not None and kind.cell else value


def is_leaf_array(value: Any) -> bool:
    """Whether an attribute is an array, and no setting."""
    if isinstance(value, TracerBase):
        return not getattr(value, "scalar", False)
    return type(value) is DeviceArray or (type(value) is np.ndarray and is_supported(value.dtype))


@record
class Place:
    """Where an array is: an attribute, or an element; `inner` leads on into tuples."""

    holder: Any
    key: Any
    inner: tuple[int, ...] = ()

    def get(self) -> Any:
        """What is there."""
        value = self._outer()
        for index in self.inner:
            value = value[index]
        return value

    def put(self, value: Any) -> None:
        """Let `value` be there."""
        new = _replaced(self._outer(), self.inner, value)
        if isinstance(self.holder, (list, dict)):
            self.holder[self.key] = new
        else:
            vars(self.holder)[self.key] = new

    def _outer(self) -> Any:
        held = self.holder if isinstance(self.holder, (list, dict)) else vars(self.holder)
        return held[self.key]


def _replaced(value: Any, inner: Sequence[int], new: Any) -> Any:
    """A tuple with something else in one place."""
    if not inner:
        return new
    items = list(value)
    items[inner[0]] = _replaced(items[inner[0]], inner[1:], new)
    return type(value)._make(items) if hasattr(value, "_fields") else type(value)(items)


@record(frozen=False, eq=False)
class Parameter:
    """An array of an object: its names, its places."""

    array: Any
    paths: list[str]
    places: list[Place]
    trained: bool

    @property
    def has_derivative(self) -> bool:
        """Whether it is differentiated."""
        return self.trained and is_inexact(self.array.dtype)


@record(frozen=False, eq=False)
class _Walk:
    """Arrays found on the way through objects, each once."""

    found: list[Parameter] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    by_id: dict[int, Parameter] = field(default_factory=dict)

    def enter(self, value: Any, path: str, place: Place | None, trained: bool) -> None:
        kind = kind_of(value)
        if place is not None and is_leaf_array(value):
            self._array(value, path, place, trained)
        elif kind is not None and id(value) not in self.seen:
            self.seen.add(id(value))
            untrained = kind.untrained(value)
            if kind.cell:
                own = trained and "value" not in untrained
                self.enter(value.value, path, Place(value, "value"), own)
                return
            for name, item in list(vars(value).items()):
                own = trained and name not in untrained
                self.enter(item, f"{path}.{name}" if path else name, Place(value, name), own)
        elif isinstance(value, _CONTAINERS) and place is not None:
            inside = isinstance(value, tuple)
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in list(pairs):
                there = Place(value, key)
                if inside:
                    there = Place(place.holder, place.key, (*place.inner, key))
                self.enter(item, f"{path}[{key!r}]", there, trained)

    def _array(self, value: Any, path: str, place: Place, trained: bool) -> None:
        one = self.by_id.get(id(value))
        if one is None:
            one = self.by_id[id(value)] = Parameter(value, [path], [place], trained)
            self.found.append(one)
            return
        one.paths.append(path)
        one.places.append(place)
        one.trained &= trained


def parameters(obj: Any) -> list[Parameter]:
    """The arrays of a registered object, each once, with the names of all its places."""
    walk = _Walk()
    walk.enter(obj, "", None, True)
    return walk.found


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


class _Entry(optree.GetAttrEntry):
    """The way to an array of an object, as Python writes it."""

    def codify(self, node: str = "") -> str:
        """An expression for what is there."""
        return f"{node}.{self.entry}" if self.entry else node


def _flatten(opened: Opened) -> tuple[list[Any], Plan, tuple[str, ...]]:
    return opened.leaves, opened.plan, tuple(p.paths[0] for p in opened.plan.parameters)


def _unflatten(plan: Any, leaves: Any) -> Opened:
    return Opened(plan, leaves)


optree.register_pytree_node(
    Opened, _flatten, _unflatten, path_entry_type=_Entry, namespace=pytree.NAMESPACE
)


def opened(tree: Any, gradient: bool = False) -> Any:
    """A tree with its registered objects opened; the tree itself if there are none. For a `gradient`
    only what is differentiated is a child."""
    if not _kinds:
        return tree
    leaves, definition = pytree.flatten(tree)
    if not any(kind_of(leaf) is not None for leaf in leaves):
        return tree
    walk = _Walk()
    parts = [_opened(leaf, walk, gradient) if kind_of(leaf) else leaf for leaf in leaves]
    return pytree.unflatten(definition, parts)


def _opened(obj: Any, walk: _Walk, gradient: bool) -> Opened:
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
    return isinstance(value, Opened)


def _map_opened(function: Callable[[Opened], Any], tree: Any) -> Any:
    return optree.tree_map(
        lambda x: function(x) if _is_opened(x) else x,
        tree,
        is_leaf=_is_opened,
        namespace=pytree.NAMESPACE,
    )


def opened_in(tree: Any) -> list[Opened]:
    """The opened objects in a tree."""
    leaves = optree.tree_leaves(tree, is_leaf=_is_opened, namespace=pytree.NAMESPACE)
    return [leaf for leaf in leaves if isinstance(leaf, Opened)]


def closed(tree: Any) -> Any:
    """A tree with new objects in the place of opened ones: of the same classes, with the leaves as
    arrays. In gradients other arrays, and generators, are None, and an array stands in the place of a
    cell."""
    found = opened_in(tree)
    if not found:
        return tree
    values = {
        id(p): leaf
        for one in found
        for p, leaf in zip(one.plan.parameters, one.leaves, strict=True)
    }
    memo: dict[int, Any] = {}

    def made(one: Opened) -> Any:
        by_path = {path: values.get(id(p)) for path, p in one.plan.shared}
        by_path |= {path: values[id(p)] for p in one.plan.parameters for path in p.paths}
        return _copy(one.plan.obj, "", by_path, memo, one.plan.gradient)

    return _map_opened(made, tree)


def _copy(
    value: Any, path: str, by_path: dict[str, Any], memo: dict[int, Any], gradient: bool
) -> Any:
    kind = kind_of(value)
    if is_leaf_array(value) or (kind is not None and kind.cell and gradient):
        return by_path.get(path)
    if kind is not None:
        if id(value) in memo:
            return memo[id(value)]
        new = memo[id(value)] = object.__new__(type(value))
        for name, item in vars(value).items():
            below = path if kind.cell else f"{path}.{name}" if path else name
            vars(new)[name] = _copy(item, below, by_path, memo, gradient)
        return new
    if not isinstance(value, _CONTAINERS):
        settings = isinstance(value, _SETTINGS) or callable(value)
        return value if settings or not gradient else None
    if isinstance(value, dict):
        new = value.copy()
        new.update(
            {k: _copy(x, f"{path}[{k!r}]", by_path, memo, gradient) for k, x in value.items()}
        )
        return new
    items = [_copy(x, f"{path}[{i!r}]", by_path, memo, gradient) for i, x in enumerate(value)]
    return type(value)._make(items) if hasattr(value, "_fields") else type(value)(items)


def open_like(like: Any, tree: Any) -> Any:
    """A tree with its objects opened as those in the same places of `like` are, by the paths of these:
    for tangents and cotangents."""
    if not opened_in(like):
        return tree
    leaves, definition = optree.tree_flatten(like, is_leaf=_is_opened, namespace=pytree.NAMESPACE)
    parts = definition.flatten_up_to(tree)
    pairs = zip(leaves, parts, strict=True)
    return pytree.unflatten(
        definition, [taken_like(x, part) if _is_opened(x) else part for x, part in pairs]
    )


def taken_like(like: Opened, obj: Any) -> Opened:
    """An object opened as another one is; None where it has no array."""
    return Opened(like.plan, arrays_at(obj, [p.paths[0] for p in like.plan.parameters]))


def arrays_at(obj: Any, paths: Sequence[str]) -> list[Any]:
    """The arrays at these paths of an object; None where there is none. An array is its own."""
    if paths == [""] and kind_of(obj) is None:
        return [obj]
    by_path = {path: p.array for p in parameters(obj) for path in p.paths}
    return [by_path.get(path) for path in paths]


# Calls


def open_call(fun: Function, args: Sequence[Any], positions: Sequence[int] | None = None) -> Any:
    """`fun` and its arguments, with the objects among those at `positions` (all of them if None) opened
    for derivatives: the function enters them. Both as they were if there are none."""
    count = len(args)
    chosen = [
        p % count for p in (range(count) if positions is None else positions) if -count <= p < count
    ]
    parts = opened(tuple(args[p] for p in chosen), gradient=True)
    found = opened_in(parts)
    if not found:
        return fun, tuple(args)
    full = list(args)
    for position, part in zip(chosen, parts, strict=True):
        full[position] = part
    return entering(fun, found), tuple(full)


def entering(fun: Function, found: Sequence[Opened]) -> Function:
    """`fun`, which is called with opened objects and sees the objects."""

    @functools.wraps(fun)
    def entered(*args: Any, **kwargs: Any) -> Any:
        with standing(args, kwargs) as (own, named):
            return fun(*own, **named)

    entered.__jitney_opened__ = tuple(found)  # type: ignore[attr-defined]
    return entered


def opened_for(function: Function) -> tuple[Opened, ...]:
    """The opened objects that a function is called with."""
    return getattr(function, "__jitney_opened__", ())


@contextmanager
def standing(args: Any, kwargs: Any) -> Iterator[tuple[Any, Any]]:
    """The arguments with objects in the place of opened ones, in which the leaves stand meanwhile.
    What the function has put in their place stays there."""
    with standing_in:
        before: list[tuple[Place, Any, Any]] = []
        whole = False
        try:
            for one in opened_in((args, kwargs)):
                for parameter, leaf in zip(one.plan.parameters, one.leaves, strict=True):
                    for place in parameter.places:
                        before.append((place, place.get(), leaf))
                        place.put(leaf)
            yield _map_opened(lambda one: one.plan.obj, (args, kwargs))
            whole = True
        finally:
            for place, held, leaf in reversed(before):
                if not whole or place.get() is leaf:
                    place.put(held)
