"""How arguments and results are nested, as plain data that a file can hold.

    described({"w": (Leaf(0), None)})     ["dict", [["w", ["tuple", [["leaf", 0], ["none"]]]]]]

Containers are tuples, lists, dicts whose keys are texts or ints, namedtuples (as which others of the
same name and fields come back) and None. Nothing of a description is ever evaluated.
"""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from ...ir.record import record

_DEEPEST = 100


@record
class Leaf:
    """Stands for a leaf by its number."""

    number: int


def described(tree: Any) -> Any:
    """A tree of `Leaf`s as plain data. Raises TypeError for containers of other kinds."""
    if isinstance(tree, Leaf):
        return ["leaf", tree.number]
    if tree is None:
        return ["none"]
    cls = type(tree)
    if cls in (tuple, list):
        return [cls.__name__, [described(item) for item in tree]]
    if cls in (dict, OrderedDict) and all(type(key) in (str, int) for key in tree):
        return ["dict", [[key, described(item)] for key, item in tree.items()]]
    if isinstance(tree, tuple) and hasattr(cls, "_fields"):
        return ["named", cls.__name__, list(cls._fields), [described(item) for item in tree]]
    raise TypeError(f"a {cls.__name__}")


def check(tree: Any, leaves: int, depth: int = 0) -> Iterator[int]:
    """The leaves of a description that was read. Raises ValueError if it is none."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    match tree:
        case ["leaf", int(k)] if not isinstance(k, bool) and 0 <= k < leaves:
            yield k
        case ["none"]:
            pass
        case ["tuple" | "list", list(items)]:
            for item in items:
                yield from check(item, leaves, depth + 1)
        case ["dict", list(items)]:
            keys = [item[0] for item in items if isinstance(item, list) and len(item) == 2]
            plain = all(type(key) in (str, int) for key in keys)
            if not plain or len(keys) != len(items) or len(set(keys)) != len(keys):
                raise ValueError("keys of a dict")
            for _, item in items:
                yield from check(item, leaves, depth + 1)
        case ["named", str(name), list(fields), list(items)] if len(fields) == len(items):
            if not all(type(field) is str for field in fields):
                raise ValueError("names of fields")
            _named(name, tuple(fields))
            for item in items:
                yield from check(item, leaves, depth + 1)
        case _:
            raise ValueError("no description of a container")


@lru_cache(maxsize=256)
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields)  # ValueError for what is no name


def built(tree: Any, leaves: Callable[[int], Any]) -> Any:
    """The containers of a description, with leaves by their numbers."""
    kind = tree[0]
    if kind == "leaf":
        return leaves(tree[1])
    if kind == "none":
        return None
    if kind == "dict":
        return {key: built(item, leaves) for key, item in tree[1]}
    if kind == "named":
        return _named(tree[1], tuple(tree[2]))(*(built(item, leaves) for item in tree[3]))
    items = [built(item, leaves) for item in tree[1]]
    return tuple(items) if kind == "tuple" else items


def taken_apart(tree: Any, value: Any, leaves: list[Any], path: str) -> None:
    """Put the leaves of `value` where they belong. Raises TypeError for another nesting."""
    kind = tree[0]
    if kind == "leaf":
        leaves[tree[1]] = value
        return
    if kind == "none":
        if value is not None:
            raise TypeError(f"{path} was None when the function was exported, not {_kind(value)}")
        return
    if kind == "dict":
        keys = [key for key, _ in tree[1]]
        if not isinstance(value, dict) or set(value) != set(keys):
            raise TypeError(f"{path} is a dict with the keys {keys}, not {_kind(value)}")
        check_order(list(value), keys, path)
        for key, item in tree[1]:
            taken_apart(item, value[key], leaves, f"{path}[{key!r}]")
        return
    items = tree[3] if kind == "named" else tree[1]
    if kind == "list":
        fits = isinstance(value, list)
    else:
        fits = isinstance(value, tuple) and (kind == "named") == hasattr(value, "_fields")
    if fits and kind == "named":
        fits = list(value._fields) == tree[2]
    if not fits or len(value) != len(items):
        what = f"{tree[1]}{tuple(tree[2])}" if kind == "named" else f"{kind} of {len(items)}"
        raise TypeError(f"{path} is a {what}, not {_kind(value)}")
    for k, (item, part) in enumerate(zip(items, value, strict=True)):
        name = f".{tree[2][k]}" if kind == "named" else f"[{k}]"
        taken_apart(item, part, leaves, path + name)


def check_order(given: Sequence[Any], keys: Sequence[Any], path: str) -> None:
    """TypeError for keys in another order than those that were exported: the function can see it."""
    if list(given) != list(keys):
        raise TypeError(
            f"{path} had its keys in the order {list(keys)} when the function was exported, which "
            f"may have looked at it, not {list(given)}"
        )


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return f"one with {list(value)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"{value!r}" if value is None else f"of type {type(value).__name__}"


def paths(tree: Any, root: str) -> list[tuple[str, int]]:
    """What each leaf could be called, by its path, in the order of their numbers."""
    return sorted(_paths(tree, root), key=lambda pair: pair[1])


def _paths(tree: Any, path: str) -> Iterator[tuple[str, int]]:
    kind = tree[0]
    if kind == "leaf":
        yield path, tree[1]
    elif kind != "none":
        named = zip(tree[2], tree[3], strict=True) if kind == "named" else enumerate(tree[1])
        for key, item in tree[1] if kind == "dict" else named:
            yield from _paths(item, f"{path}_{key}")
