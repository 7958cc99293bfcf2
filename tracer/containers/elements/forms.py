"""What elements of native containers are: numbers, tuples of them, texts, one thing or another.

An element is words, one for each number in it. A text, and whatever else is no number and the same
object always, is the number of its form (`control.unions`), so it is read as a union of all the texts
that were put in; None among numbers is a union as well. `tree` and `leaves` are those of an element with
unions in these places (`varied`).
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np

from ....ir.record import record
from ....ir.types import BOOL, F64, I64
from ...control.number_classes import FLAGS, LETTERS, dtype_of, mixture
from ...core.tracers import WEAK_DTYPES, Tracer, weak_kind
from ...data import pytree
from ...data.exact import Exact
from . import varied
from .varied import Slot, Unfit

Leaf = tuple[np.dtype[Any], str | None]  # of an element: its dtype, and how it promotes

_MOST_LEAVES = 12
_MUTABLE = (list, dict, deque, set, Counter, defaultdict, OrderedDict)


class AnyKind:
    """What containers in an element are of (`kinds`)."""

    def can_be_one(self, other: Any) -> bool:
        """Whether it and another one may be made one."""
        raise NotImplementedError

    def unite(self, other: Any) -> None:
        """Make two kinds one."""
        raise NotImplementedError


@record
class Form:
    """What elements are: their structure, and what its leaves are."""

    tree: pytree.TreeDef
    leaves: tuple[Leaf, ...]

    @staticmethod
    def of(value: Any) -> Form:
        """The form of one element; Unfit if there is none."""
        value = varied.as_element(value)
        leaves, tree = pytree.flatten(value)
        structure: Any = pytree.as_written(value)[1]
        if not 0 < len(leaves) <= _MOST_LEAVES or any(map(_is_no_part, structure)):
            raise Unfit
        return Form(tree, tuple(map(_leaf, leaves)))

    @staticmethod
    def pair(one: Form, other: Form) -> Form:
        """The form of pairs."""
        leaves, tree = pytree.flatten(varied.again_marked((one.example, other.example)))
        return Form(tree, tuple(slot.leaf for slot in leaves))

    @property
    def numbers(self) -> tuple[np.dtype[Any], ...]:
        """Of the words of a record those that decide the order: one for each leaf."""
        return tuple(dtype for dtype, _ in self.leaves)

    @property
    def flags(self) -> tuple[np.dtype[Any], ...]:
        """The words behind them: of which class it is, for each number that may be an int."""
        return tuple(FLAGS[weak] for _, weak in self.leaves if weak in FLAGS)

    @property
    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return (*self.numbers, *self.flags)

    @cached_property
    def example(self) -> Any:
        """An element with a `Slot` in the place of each number."""
        return pytree.unflatten(self.tree, [Slot(leaf) for leaf in self.leaves])

    @cached_property
    def is_varied(self) -> bool:
        """Whether there are texts in elements, or what may be one thing or another."""
        return varied.has_unions(self.example)

    @cached_property
    def holds_arrays(self) -> bool:
        """Whether there are arrays in elements."""
        return varied.has_arrays(self.example)

    @property
    def is_mixed(self) -> bool:
        return any(weak in FLAGS for _, weak in self.leaves)

    def unmixed(self) -> Form:
        """The form with numbers of one class in the place of those of several: floats, or NumPy's."""
        plain = {weak: None if {*"dl"} & {*weak} else "f" for weak in FLAGS}
        return Form(self.tree, tuple((d, plain.get(w, w)) for d, w in self.leaves))  # type: ignore[arg-type]

    @property
    def holds_containers(self) -> bool:
        """Whether there are containers in the elements."""
        tree = pytree.unflatten(self.tree, range(len(self.leaves)))
        structure: Any = pytree.as_written(tree)[1]
        return any(_kind_in(token) is not None for token in structure)

    def only_adds(self, old: Form) -> bool:
        """Whether its elements are those of an older form in the same words, and more texts."""
        return self.leaves == old.leaves and self.tree != old.tree

    def joined(self, other: Form, are_keys: bool = False) -> Form | None:
        """The form of elements of both, or None. Kinds of containers in them become one. A bool here and
        a number there are two options of values, but may be one key."""
        try:
            join = _joined_of_keys if are_keys else _joined
            if same_tree(self.tree, other.tree) and len(self.leaves) == len(other.leaves):
                leaves = tuple(map(join, self.leaves, other.leaves))
                if None not in leaves:
                    return Form(self.tree, leaves)  # type: ignore[arg-type]
            both = varied.joined(self.example, other.example, join)
        except Unfit:
            return None
        slots, tree = pytree.flatten(both)
        return Form(tree, tuple(slot.leaf for slot in slots))

    def __str__(self) -> str:
        names = [_name(leaf) for leaf in self.leaves]
        tree = pytree.unflatten(self.tree, range(len(names)))
        text = repr(tree)
        for i in reversed(range(len(names))):
            text = text.replace(str(i), names[i]) if len(names) < 10 else text
        return text


def _is_no_part(token: Any) -> bool:
    """Whether a part of a structure is none of an element: one of Python's containers, an object that
    may be changed, a text that is shown later."""
    fields = getattr(token, "__dataclass_params__", None) if isinstance(token, type) else None
    is_object = fields is not None and not fields.frozen
    return is_object or token in _MUTABLE or hasattr(token, "as_result")


def form_of_keys(form: Form) -> str:
    """How keys are made of numbers, as sets have to know it (`ir.ops.control.store_sets`)."""
    return _written(form.example)


def _written(part: Any) -> str:
    if isinstance(part, Slot):
        return "."
    if isinstance(part, tuple):
        return f"({''.join(map(_written, part))})"
    if part is None and sys.version_info >= (3, 12):  # its hash is an address before
        return "N"
    words = sum(isinstance(leaf, Slot) for leaf in pytree.flatten(part)[0])
    return f"({'.' * words}?)" if words else "?"


def _name(leaf: Leaf) -> str:
    names = {"b": "bool", "i": "int", "f": "float", "d": "float64", "l": "int64"}
    return " or ".join(names[letter] for letter in leaf[1]) if leaf[1] else str(leaf[0])


def _leaf(x: Any) -> Leaf:
    if isinstance(x, Tracer):
        if x.shape or x.dtype.kind not in "biuf" or x.dtype.itemsize not in (1, 2, 4, 8):
            raise Unfit
        if x.dtype.kind == "f" and x.dtype.itemsize < 4:
            raise Unfit
        return mixture(x)
    weak = weak_kind(x)
    if weak in ("b", "i", "f"):
        if isinstance(x, IntEnum):  # it would be a number afterwards
            raise Unfit
        if weak == "i" and not -(1 << 63) <= x < 1 << 63:
            raise Unfit
        return WEAK_DTYPES[weak], weak
    if isinstance(x, np.generic) and x.dtype.kind in "biuf" and x.dtype.itemsize in (1, 4, 8):
        return x.dtype, None
    raise Unfit


_LETTERS: dict[Leaf, str] = {(I64, "i"): "i", (F64, "f"): "f", (F64, None): "d", (I64, None): "l"}


def _joined(a: Leaf, b: Leaf) -> Leaf | None:
    """What holds both."""
    if a == b:
        return a
    letters = [leaf[1] if leaf[1] in FLAGS else _LETTERS.get(leaf) for leaf in (a, b)]
    if None not in letters:
        weak = "".join(k for k in LETTERS if k in letters[0] + letters[1])  # type: ignore[operator]
        return dtype_of(weak), weak
    weaks = {a[1], b[1]}
    return (BOOL, None) if weaks == {"b", None} and a[0] == b[0] == BOOL else None


def _joined_of_keys(a: Leaf, b: Leaf) -> Leaf:
    leaf = _joined(a, b)
    if leaf is None or ("l" in (leaf[1] or "") and leaf[0] == F64):  # float or np.int64: neither
        raise Unfit
    return leaf


def same_tree(one: pytree.TreeDef, other: pytree.TreeDef) -> bool:
    """Whether two structures are equal, once the kinds of containers in them are made one."""
    if one == other:
        return True
    trees = (pytree.unflatten(tree, range(tree.num_leaves)) for tree in (one, other))
    first, second = (pytree.as_written(tree)[1] for tree in trees)
    if len(first) != len(second):  # type: ignore[arg-type]
        return False
    for a, b in zip(first, second, strict=True):  # type: ignore[call-overload]
        one_kind, other_kind = _kind_in(a), _kind_in(b)
        if one_kind is not None and other_kind is not None and one_kind.can_be_one(other_kind):
            one_kind.unite(other_kind)
        elif a != b:
            return False
    return True


def _kind_in(token: Any) -> AnyKind | None:
    """The kind that a part of a structure stands for."""
    value = token.value if isinstance(token, Exact) else None
    return value if isinstance(value, AnyKind) else None
