"""Which functions have a heap, and where it starts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from ..data.objects import kind_of
from ..records.kinds import is_structured_array
from .free_variables import FreeVariables
from .heap_nodes import Policy
from .hidden import is_traceable_array
from .mentions import mentions_of
from .paths import ABSENT, Path
from .subjects import is_object

if TYPE_CHECKING:
    from .heap import Heap

_CODE = (FunctionType, MethodType, BuiltinFunctionType, ModuleType, type, partial, property)


def find_heap(variables: FreeVariables, objects: Sequence[Path], policy: Policy) -> Heap | None:
    """The heap of a function that may change what is outside of it, or gives back what it is given; None
    if it does neither."""
    written = {**variables.written, **variables.added}
    roots: dict[Any, tuple[Path, bool]] = {}
    holds_others = False  # objects or containers, that could be changed inside
    for path in (*objects, *written.values(), *(path for path, _ in variables.values.values())):
        base = path.base
        value = base.find()
        live = base.key in variables.written
        inside = not isinstance(value, _CODE) and _has_inside(value)
        if live or inside or is_traceable_array(value):
            roots.setdefault(base.key, (base, live))
            holds_others |= inside
    wanted = policy.objects or any(_has_arrays(path.find()) for path in objects)
    if not written and not holds_others and not wanted:
        return None
    mentions = mentions_of(variables.codes)
    if not written and not mentions.writes and not wanted:
        return None
    from .heap import Heap  # most functions have none

    return Heap(list(roots.values()), mentions, policy)


def _has_arrays(value: Any) -> bool:
    """Whether an argument is a container, or an object that is known to hold arrays."""
    return not is_object(value) or kind_of(value) is not None


def _has_inside(value: Any) -> bool:
    if isinstance(value, (list, dict, set, tuple)) or is_structured_array(value):
        return True
    return hasattr(type(value), "popleft") or is_object(value)


def is_covered(path: Path, value: Any, key: Sequence[Any]) -> bool:
    """Whether the heap sees to what a path leads to: data, and attributes that are not there."""
    how = key[-1] if isinstance(key[-1], str) else ""
    if how == "absent":
        return bool(path.attrs)
    if how == "is":
        return is_object(value)  # its class is compared
    return not how and (value is ABSENT or not isinstance(value, _CODE))
