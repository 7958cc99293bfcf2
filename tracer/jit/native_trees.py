"""Containers in call programs: what stands for their leaves, their fields, what takes them apart."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.traced import Result
from ..data import pytree
from ..data.exact import Exact
from ..data.lists import kind_of_list, kind_of_table
from .native_guards import NotNative

if TYPE_CHECKING:
    from ..containers.leaving import Plans


class Number(int):
    """The number of a leaf, in the place of the leaf."""


class Node(NamedTuple):
    """In the place of an object of a registered class: its children, and what makes it of them."""

    parts: tuple[Any, ...]
    make: Callable[..., Any] | None = None


def with_numbers(value: Any, numbers: Iterator[int], packs: bool = False) -> Any:
    """`value` with the numbers of its leaves in their place. With `packs` long lists of numbers are
    leaves, and tables of them."""
    cls = type(value)
    if value is None:
        return None
    if packs and (kind_of_list(value) or kind_of_table(value)) is not None:
        return Number(next(numbers))
    if flatten := pytree.flattening(value):
        parts = as_tuples(partial(taken_apart, flatten), value)[0]
        return Node(tuple([with_numbers(part, numbers, packs) for part in parts]))
    if cls is dict:
        return {key: with_numbers(item, numbers, packs) for key, item in value.items()}
    if cls in (tuple, list):
        return cls([with_numbers(item, numbers, packs) for item in value])
    if isinstance(value, tuple) and hasattr(cls, "_fields"):
        return cls(*[with_numbers(item, numbers, packs) for item in value])
    if pytree.dataclass_fields(cls):
        children, static = plain_fields(cls)
        items = [with_numbers(getattr(value, name), numbers, packs) for name in children]
        made = object.__new__(cls)
        fixed = [getattr(value, name) for name in static]
        for name, item in zip((*children, *static), (*items, *fixed), strict=True):
            object.__setattr__(made, name, item)
        return made
    return Number(next(numbers))


def rebuilt(tree: pytree.TreeDef, leaves: Sequence[Any]) -> Any:
    """The tree of that structure; NotNative if it does not take such leaves."""
    try:
        return pytree.unflatten(tree, leaves)
    except Exception:  # a class of the user's
        raise NotNative from None


def result_sample(tree: pytree.TreeDef, leaves: Iterator[Any]) -> Any:
    """As `rebuilt`, with a `Node` for each object that a function of the user's makes."""
    if tree.is_leaf():
        return next(leaves)
    parts = [result_sample(child, leaves) for child in tree.children()]
    node: Any = tree.one_level()
    if (chooser := getattr(tree.type, "_jitney_chooser", None)) is not None:  # a Union's
        return Node(tuple(parts), chooser(node.unflatten(parts).numbers))
    if tree.type is not None and pytree.flatten_function(tree.type):
        return Node(tuple(parts), lambda *items: node.unflatten(items))
    return rebuilt(node, parts)


def taken_apart(flatten: Callable[[Any], Any], value: Any) -> Any:
    """What a function of the user's gives; NotNative if it raises."""
    try:
        return flatten(value)
    except Exception:  # Python's dispatch says so
        raise NotNative from None


def as_tuples(flatten: Callable[[Any], Any], value: Any) -> tuple[tuple[Any, ...], Any]:
    """What a function of the user's gives, where it does not give tuples."""
    children, static, *_ = flatten(value)
    return tuple(children), static


def check_equal(wanted: Exact, hashed: int, static: Any) -> None:
    """As keys of a dict are compared: one that has changed inside since then is another."""
    exact = Exact(static)
    if hash(exact) != hashed or exact != wanted:
        raise LookupError


def plain_fields(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields of a dataclass; NotNative if it is none, or if reading them runs code."""
    fields = pytree.dataclass_fields(cls)
    if fields is None or _own_reading(cls):
        raise NotNative
    for name in (*fields[0], *fields[1]):
        member = inspect.getattr_static(cls, name, None)
        if hasattr(type(member), "__set__") and not isinstance(member, MemberDescriptorType):
            raise NotNative
    return fields


def _own_reading(cls: type) -> bool:
    reading: Any = cls.__getattribute__
    return reading is not object.__getattribute__


def left_natively(result: Result) -> Plans | None:
    """What all containers of a call become, if users see of a result one that native code makes."""
    plans: Plans | None = getattr(result.views[0], "plans", None) if result.views else None
    return plans if plans is not None and len(result.views) == 1 and plans.is_native else None


def number_of(result: Result) -> int:
    """Which of them it is."""
    view: Any = result.views[0]
    number: int = view.number
    return number


def is_plain(value: Any) -> bool:
    """Whether a result consists of containers that native code makes."""
    if isinstance(value, dict):
        return type(value) is dict and all(map(is_plain, value.values()))
    if type(value) is Node:
        return all(map(is_plain, value.parts))
    if isinstance(value, (tuple, list)):
        is_sequence = type(value) in (tuple, list) or hasattr(type(value), "_fields")
        return is_sequence and all(map(is_plain, value))
    if value is None or type(value) is Result:
        return True
    fields = pytree.dataclass_fields(type(value))
    return fields is not None and all(is_plain(getattr(value, name)) for name in fields[0])
