"""Objects in what a loop carries: each iteration has new ones, of the same classes, with the arrays that
it was given."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ..data.callables import Function
from ..data.objects import CONTAINERS, is_leaf_array, kind_of
from ..data.opened import Opened, closed, opened, opened_in
from ..messages import errors
from ..messages.errors import complain


def opened_carry(tree: Any) -> Any:
    """A tree with its objects opened, and its texts and functions no leaves; itself without any."""
    return opened(tree, settings=True)


def of_objects(
    function: Function, what: str, carry: int | None = 0, *, pair: bool = False
) -> Function:
    """`function` of opened trees, which sees objects. The argument number `carry` comes back, alone or
    as the first of a `pair`: only the arrays of its objects may have changed."""

    @functools.wraps(function)
    def seeing(*args: Any) -> Any:
        result = function(*closed(args))
        parts = pair and type(result) is tuple
        result = tuple(map(opened_carry, result)) if parts else opened_carry(result)
        if carry is not None:
            pairs = zip(opened_in(args[carry]), opened_in(result), strict=False)
            for before, after in pairs:
                if isinstance(before, Opened) and isinstance(after, Opened):
                    _check_settings(before.plan.obj, after.plan.obj, what)
        return result

    return seeing


def _check_settings(before: Any, after: Any, what: str) -> None:
    if type(before) is not type(after):
        return  # a carry of another structure, which has an error of its own
    old, new = dict(_settings(before, "")), dict(_settings(after, ""))
    for path in [*old, *(path for path in new if path not in old)]:
        a, b = old.get(path), new.get(path)
        if a is not b and not (type(a) is type(b) and bool(a == b)):
            complain(
                errors.CarryError,
                f"{what} carries a {type(before).__name__}, and a step changes its {path[1:]}, which is "
                f"no array, from {a!r} to {b!r}",
                f"let it be an array, such as np.asarray({a!r}), or carry it beside the object."
                if isinstance(a, (bool, int, float, complex))
                else "what is no array stays as it is from step to step.",
            )


def _settings(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """What is no array in an object, with the path to it."""
    if value is None or is_leaf_array(value):
        return
    if kind_of(value) is not None:
        for name, item in list(vars(value).items()):
            yield from _settings(item, f"{path}.{name}")
    elif isinstance(value, CONTAINERS):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from _settings(item, f"{path}[{key!r}]")
    else:
        yield path, value
