"""Which axes of a function's calls have lengths: those that were asked for, or have had several."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from ...ir.record import replace
from ...ir.types import TensorType
from ..core.specs import Spec
from ..data.shapes import ShapeDtype
from .sized import Sized

Call = Any  # a jit.dispatch.Call, which lies above

# Primes, a little above a power of two, that hardly an axis of anybody's has: for each length in turn,
# by how long it is at most. A longer one is compiled anew.
_CAPACITIES = (
    (8419, 8429, 8461, 8501, 8537, 8573, 8597, 8623),
    (131501, 131519, 131543, 131561, 131591, 131627, 131671, 131701),
    (2097911, 2097941, 2097967, 2097989, 2098009, 2098027, 2098051, 2098079),
    (33555019, 33555037, 33555073, 33555131, 33555149, 33555191, 33555241, 33555271),
)
_SEEN = 2  # sizes that are compiled for themselves first
_FAMILIES = 256  # kept per function

Sizes = tuple[int, ...]  # of the first axes of a call's arrays


class Length(NamedTuple):
    """A length of a call: its name, its capacity, and the rows that a copy has (0: there is none)."""

    name: str
    capacity: int
    padded: int = 0

    @property
    def most(self) -> int:
        return self.padded or self.capacity


class _Family:
    """Calls that differ in the sizes of first axes only."""

    def __init__(self) -> None:
        self.seen: list[
            Sizes
        ] = []  # the first ones, each compiled for itself, and one for each change
        self.static: dict[Sizes, None] = {}
        self.padded = ""  # why loops cannot end at lengths, and arguments are copied
        self.refused = ""
        self.least = 2  # until a program says otherwise


class Lengths:
    """Which axes of a function's calls have lengths."""

    def __init__(self, asked: Any) -> None:
        self.asked: Mapping[str, str] | None = None if asked == "auto" else dict(asked)
        self._families: dict[Hashable, _Family] = {}

    def widen(self, call: Call, looked_at: bool = False) -> None:
        """Give arrays of a call axes of any length, where that is asked for or has been found, or a
        ShapeDtype says so. What is only `looked_at` counts for nothing."""
        if not call.on_cpu:
            return
        arrays = [
            k
            for k, (spec, leaf) in enumerate(zip(call.specs, call.leaves, strict=True))
            if isinstance(spec, Spec) and spec.type.shape and spec.holder is None
            if isinstance(leaf, (np.ndarray, ShapeDtype))
        ]
        family = self._family(call, arrays)
        family = deepcopy(family) if looked_at else family
        call.family = family
        if family.refused:
            call.why_static = family.refused
            return
        sizes = tuple(_size(call.leaves[k], call.specs[k]) for k in arrays)
        opened = _opened(call)
        if self.asked is not None or opened:
            names = self._named(call, arrays)
        else:
            names = _found(family, sizes)
        if opened:
            family.least = 0
        by_name: dict[str, int] = {}
        for name, size in zip(names, sizes, strict=True):
            if name and by_name.setdefault(name, size) != size:
                return  # the function says what is wrong with it, or nothing
        if not by_name or min(by_name.values()) < family.least:
            return
        self._give(call, arrays, names, by_name)

    def reason(self, call: Call, why: str) -> str:
        """Why a call is compiled, with what is to be said of lengths."""
        if call.why_static:
            return f"{why}; {call.why_static}"
        if call.lengths and self.asked is None:
            why = f"{why}: the third size, from which it may have any"
        if call.lengths and call.family.padded:
            most = " and ".join(str(length.most) for length in call.lengths)
            why += f"; for any size up to {most}, in a copy: {call.family.padded}"
        return why

    def _give(
        self, call: Call, arrays: Sequence[int], names: Sequence[str], by_name: Mapping[str, int]
    ) -> None:
        taken = {n for k in arrays for n in call.specs[k].type.shape[1:]}
        lengths: dict[str, Length] = {}
        for name, size in by_name.items():
            used = {*taken, *(length.capacity for length in lengths.values())}
            padded = _rows(size) if call.family.padded else 0
            capacity = _capacity(padded or size, used)
            if capacity is None:
                return
            lengths[name] = Length(name, capacity, padded)
        for k, name in zip(arrays, names, strict=True):
            spec = call.specs[k]
            if name and isinstance(spec, Spec):
                shape = (lengths[name].capacity, *spec.type.shape[1:])
                type = TensorType(shape, spec.type.dtype)
                holder = Sized(name, lengths[name].padded)
                call.specs[k] = replace(spec, type=type, strides=None, holder=holder)
        call.lengths = tuple(lengths.values())

    def _named(self, call: Call, arrays: Sequence[int]) -> list[str]:
        names = call.leaf_names()
        asked = {**(self.asked or {}), **_opened(call)}
        found = []
        for k in arrays:
            own = [n for root, n in asked.items() if _is_of(names[k], root)]
            found.append((own[0] or names[k]) if own else "")
        return found

    def _family(self, call: Call, arrays: Sequence[int]) -> _Family:
        specs = tuple(
            (spec.type.dtype, spec.type.shape[1:])
            if k in set(arrays) and isinstance(spec, Spec)
            else repr(spec)
            for k, spec in enumerate(call.specs)
        )
        key = call.structure, specs
        family = self._families.get(key)
        if family is None:
            if len(self._families) >= _FAMILIES:
                self._families.pop(next(iter(self._families)))
            family = self._families[key] = _Family()
        return family


def _opened(call: Call) -> dict[str, str]:
    """Of the leaves that stand for arrays of any length: their names, and those of the lengths."""
    pairs = zip(call.leaf_names(), call.leaves, strict=True)
    return {
        name: leaf.length
        for name, leaf in pairs
        if isinstance(leaf, ShapeDtype) and leaf.length is not None
    }


def opened(call: Call, known: Lengths | None) -> Lengths | None:
    """What a function knows of lengths, with those of a call that has some itself; else None."""
    found = _opened(call)
    if not found:
        return None
    asked = {} if known is None or known.asked is None else dict(known.asked)
    return Lengths({**asked, **found})


def refuse(call: Call, error: Exception) -> None:
    """Calls like this one are compiled in another way from now on: for copies of the arguments if only
    loops cannot end at lengths, else for each size."""
    from ...codegen.sizes import NotSized  # with a code generator

    why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, NotSized) and not call.family.padded and not _opened(call):
        call.family.padded = why
    else:
        call.family.refused = f"no axis of any length: {why}"


def _found(family: _Family, sizes: Sizes) -> list[str]:
    """Names for the first axes that have had several sizes; those that were always alike share one."""
    none = [""] * len(sizes)
    if sizes in family.static:
        return none
    if len(family.seen) < _SEEN:
        family.seen.append(sizes)
        family.static[sizes] = None
        return none
    columns = list(zip(*family.seen, sizes, strict=True))
    changing = [column if len(set(column)) > 1 else None for column in columns]
    known = list(zip(*family.seen, strict=True))
    if _groups(known) != _groups(columns):
        family.seen.append(sizes)  # another axis changes, or two are not alike after all
    order = list(dict.fromkeys(c for c in changing if c is not None))
    return ["" if c is None else f"n{order.index(c)}" for c in changing]


def _groups(columns: Sequence[Sizes]) -> list[int]:
    changing = [c if len(set(c)) > 1 else None for c in columns]
    return [-1 if c is None else changing.index(c) for c in changing]


def _size(leaf: Any, spec: Any) -> int:
    return int(spec.type.shape[0])


def _capacity(size: int, used: set[int]) -> int | None:
    for level in _CAPACITIES:
        for capacity in level:
            if size <= capacity and capacity not in used:
                return capacity
    return None


def _rows(size: int) -> int:
    """How many rows a copy of so many has: steps are smaller where work may grow as a power of them."""
    return next((n for n in (64, 256) if size <= n), 1 << max(size - 1, 512).bit_length())


def _is_of(leaf: str, root: str) -> bool:
    """Whether a leaf is an argument, or in it: `params['w']` is in `params`."""
    return leaf == root or (leaf.startswith(root) and leaf[len(root)] in "[.")


def normal_form(dynamic: Any) -> Any:
    """The option `dynamic` of `jit`: None, "auto", or pairs of an argument and the name of its length.

    TypeError and ValueError for what it does not have.
    """
    if dynamic is None or dynamic is False:
        return None
    if dynamic is True or dynamic == "auto":
        return "auto"
    if not isinstance(dynamic, Mapping):
        raise TypeError(
            f"dynamic={dynamic!r}: give 'auto', or the axes by argument, as in {{'x': {{0: 'batch'}}}}"
        )
    pairs = []
    for name, axes in dynamic.items():
        if isinstance(axes, int):
            axes = {axes: None}
        if not isinstance(axes, Mapping):
            axes = dict.fromkeys(axes)
        for axis, length in axes.items():
            if axis != 0:
                raise ValueError(
                    f"dynamic: axis {axis} of {name}: a first axis may have any length, others are "
                    "compiled for each size; move the axis to the front"
                )
            pairs.append((str(name), "" if length is None else str(length)))
    return tuple(pairs)
