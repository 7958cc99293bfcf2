"""Native containers that leave the compiled function: Python's own are made of them when it has run.

All that leave one call do so together, as handles and the address of the first container of the call:
whoever makes the Python objects gives the memory back.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import optree

from ...ir.record import record
from ..core.trace import require_trace
from ..core.tracers import as_value, emit
from ..core.tracing import LastingView, Presented
from ..data import pytree
from .arrays import GrownArray, array_of, left
from .boxes import check_still
from .kinds import Kind, current, make_native
from .making import objects_of
from .packed import Packed, check_numbers, refuse_rows
from .stand_ins import Container, root, run
from .tables import View, refuse_view

Target = tuple[np.dtype[Any] | None, bool, Any] | None  # of an array; see `arrays.array_of`


def leaving(result: Any) -> Any:
    """What a function gives, with native containers as what they will be in Python."""
    check_numbers()
    check_still()
    require_trace().holding.clear()  # the function is over, and assigns no more
    result = _with_own_lists(result)
    kinds = current()
    if kinds is None:
        return result
    _make_native(result)
    if kinds.root is None and not kinds.entered:
        return result
    found: list[Container] = []
    targets: list[Target] = []

    def is_container(x: Any) -> bool:
        return isinstance(x, (Container, View, GrownArray))

    def number(x: Any) -> Any:
        target = None
        if isinstance(x, View):
            refuse_view(x)
        elif isinstance(x, GrownArray):
            x, target = left(x)
        if not isinstance(x, Container):
            return x
        found.append(x)
        targets.append(target)
        return _Place(len(found) - 1)

    placed = optree.tree_map(number, result, is_leaf=is_container, namespace=pytree.NAMESPACE)
    if not found:
        return result  # the entry gives all of them back
    entered = kinds.entered
    handles = [as_value(x.handle) for x in found]
    handles += [run("end", root())[0], *(as_value(x.handle) for x in entered)]
    parts = [emit("reshape", v, shape=(1,)).value for v in handles]
    together = emit("concat", *parts, axis=0)
    plans = Plans([x.kind for x in found], targets, bool(kinds.classes), [x.kind for x in entered])

    def present(x: Any) -> Any:
        return Presented(together, Leaving(x.number, plans)) if isinstance(x, _Place) else x

    return optree.tree_map(present, placed, namespace=pytree.NAMESPACE)


def _with_own_lists(result: Any) -> Any:
    """Lists that are arrays leave as what an argument leaves as, or as new ones."""

    def own(x: Any) -> Any:
        if not isinstance(x, Packed):
            return x
        if x.site[0] == "argument":
            return x.data
        if x.site[0] == "row":
            refuse_rows()
        return Presented(x.data, list if x.weak is None else np.ndarray.tolist)

    return optree.tree_map(own, result, namespace=pytree.NAMESPACE)


def _make_native(result: Any) -> None:
    """Sets and Counters of Python's can only leave as native ones."""
    leaves = optree.tree_leaves(result, namespace=pytree.NAMESPACE)
    make_native([leaf for leaf in leaves if type(leaf) in (set, Counter)])


@record
class _Place:
    """Which container of those that leave."""

    number: int


class Plans:
    """What the containers that leave a call together become."""

    def __init__(
        self,
        kinds: list[Kind],
        targets: list[Target],
        objects: bool = False,
        entered: Sequence[Kind] = (),
    ) -> None:
        self.kinds, self.targets = kinds, targets
        self.objects = objects  # whether there are some of users' classes
        self.entered = entered  # of those that were there before the call

    @property
    def is_native(self) -> bool:
        """Whether native code makes all of them."""
        return not self.objects and not any(self.targets)

    @cached_property
    def native(self) -> tuple[Any, int]:
        """The same for native code: its words, and the address of those of each container."""
        from .native_plans import planned  # which needs the code generator, as their making did

        pairs = zip(self.kinds, self.targets, strict=True)
        words = planned([None if target else kind.root for kind, target in pairs])
        return words, ctypes.addressof(words)

    def made(self, handles: np.ndarray[Any, Any]) -> list[Any]:
        """The Python objects for the containers with these handles, after which come one that leads to
        all, and those of what was there before the call."""
        entered = handles[len(self.kinds) + 1 :].tolist()
        handles = handles[: len(self.kinds) + 1]
        if self.objects or int(handles[-1]) & 1:
            plans = zip(self.kinds, self.targets, strict=True)
            return objects_of(handles, plans, zip(entered, self.entered, strict=True))
        from ...runtime.call import objects
        from .native_plans import columns

        count = len(self.kinds)
        arrays = {}
        try:
            for k, target in enumerate(self.targets):
                if target is not None and handles[k]:
                    form = self.kinds[k].value
                    arrays[k] = array_of(columns(int(handles[k]), form), form, *target)
        except BaseException:
            count = 0
            raise
        finally:
            at = handles.ctypes.data + 8 * (len(self.kinds) - count)
            made = objects.leave()(at, count, self.native[1], entered[0] if entered else 0)
        for k, array in arrays.items():
            made[k] = array
        return made


class Leaving(LastingView):
    """Of the handles that leave a call, the Python object for one of them."""

    def __init__(self, number: int, plans: Plans) -> None:
        self.number, self.plans = number, plans

    def __call__(self, handles: Any) -> Any:
        if len(self.plans.kinds) == 1:
            return self.plans.made(np.asarray(handles))[0]
        made = _MADE.get(id(handles))
        if made is None:
            key = id(handles)
            made = _MADE[key] = self.plans.made(np.asarray(handles))
            weakref.finalize(handles, _MADE.pop, key, None)
        return made[self.number]


_MADE: dict[int, list[Any]] = {}
"""What was made of arrays of handles, by their ids, as long as these are there."""
