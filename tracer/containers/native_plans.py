"""What native containers become in Python, as native code reads it, and arrays of their elements."""

from __future__ import annotations

import ctypes
from collections import OrderedDict, defaultdict, deque
from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import numpy as np
import optree

from ...codegen.kernels.stores import layout
from ...ir.record import record
from ...runtime.call import objects, objects_ir
from ...runtime.native.layout import instance_layout
from ..control.number_classes import FLAGS, LETTERS
from ..control.unions import Union
from ..data import pytree
from .boxes import BoxKind
from .elements import varied
from .elements.forms import Form
from .kinds import Kind, empty_maker, lies_as_in_python
from .objects import UNKNOWN, ClassKind, Field
from .stand_ins import Container


@record
class _Place:
    """Which leaf of an element."""

    number: int


def planned(kinds: Sequence[Kind | None]) -> Any:
    """Words that begin with where each kind is described, 0 for None."""
    plans = objects.Plans()
    known: dict[Kind, int] = {}
    first = plans.reserve(len(kinds))
    for k, kind in enumerate(kinds):
        if kind is not None:
            plans.write(first + k, [_planned(plans, kind, known)], [0])
    return plans.finished()


def _planned(plans: objects.Plans, kind: Kind, known: dict[Kind, int]) -> int:
    """Where it is said what containers of a kind are."""
    if kind in known:
        return known[kind]
    place = known[kind] = plans.reserve(objects_ir.KIND_WORDS)
    if isinstance(kind, BoxKind):
        words = [objects_ir.ARRAY, plans.ref(kind.empty), 0, 0, kind.dtype.itemsize, layout.WORD]
        like = [plans.ref(kind.dtype), len(kind.shape), *kind.shape]
        shape = plans.reserve(len(like))
        plans.write(shape, like)
        plans.write(place, [*words, plans.ref(kind.cls), 0, 0, shape], [9])
        return place
    if isinstance(kind, ClassKind):
        shared = instance_layout()
        fields = plans.reserve(len(kind.fields) * objects_ir.FIELD_WORDS)
        for k, (name, field) in enumerate(kind.fields.items()):
            at = None if shared is None else shared.place(kind.cls, name)
            about = [plans.ref(name), int(field.optional), len(field.dtypes) - 1, 0]
            about.append(-1 if at is None else at)
            about[3] = _attribute(plans, field, known)
            plans.write(fields + k * objects_ir.FIELD_WORDS, about, [3])
        keys = 0 if shared is None else shared.keys_of(kind.cls)
        words = [objects_ir.RECORD, keys, fields, 0, len(kind.fields)]
        nbytes = layout.WORD * len(kind.dtypes)
        plans.write(place, [*words, nbytes, plans.ref(kind.cls), int(kind.changes), 0, 0], [2])
        return place
    filled = _FILLED.get(kind.cls, objects_ir.DICT)
    if kind.cls in (set, frozenset) and not lies_as_in_python(kind):
        filled = objects_ir.ADDED
    words, places = [filled, plans.ref(empty_maker(kind)), 0, 0], []
    nbytes = lead = 0 if kind.key is None else layout.WORD
    for k, form in ((2, kind.key), (3, kind.value)):
        if form is not None:
            nbytes += layout.WORD * len(form.dtypes)
            words[k] = _element(plans, form, known)
            places.append(k)
    held_in = _DETAILS.get(kind.cls)
    detail = (0, 0) if held_in is None else (plans.ref(held_in), plans.ref(kind.detail))
    how = [plans.ref(kind.cls), int(kind.changes), *detail]
    plans.write(place, [*words, lead, nbytes, *how], places)
    return place


_FILLED: dict[type, int] = {
    list: objects_ir.LIST,
    deque: objects_ir.DEQUE,
    set: objects_ir.SET,
    frozenset: objects_ir.SET,
    tuple: objects_ir.FROZEN,
    OrderedDict: objects_ir.MAPPING,
}

_DETAILS: dict[type, str] = {deque: "maxlen", defaultdict: "default_factory"}


def _attribute(plans: objects.Plans, field: Field, known: dict[Kind, int]) -> int:
    """Where it is said what an attribute holds that is there, and not None."""
    form = field.form
    if form is not None:
        return _element(plans, form, known)
    place = plans.reserve(3)
    static = None if field.static is UNKNOWN else field.static
    how = objects_ir.SAME if varied.is_constant(static) else objects_ir.CONSTANT
    plans.write(place, [how, 0, plans.ref(static)])
    return place


def _element(plans: objects.Plans, form: Form, known: dict[Kind, int]) -> int:
    """Where it is said what elements of a form are."""
    nodes: list[tuple[int, int, int]] = []
    several = [k for k, (_, weak) in enumerate(form.leaves) if weak in FLAGS]
    flags = {k: len(form.leaves) + n for n, k in enumerate(several)}
    whole = pytree.unflatten(form.tree, [*map(_Place, range(len(form.leaves)))])

    def parts(made: int, items: Any, how: int) -> None:
        nodes.append((how, len(items), made))
        for item in items:
            node(item)

    def node(x: Any) -> None:
        if isinstance(x, _Place):
            dtype, weak = form.leaves[x.number]
            if weak in FLAGS:
                codes = sum(1 << LETTERS.index(letter) for letter in weak)
                kind = objects_ir.SEVERAL if dtype.kind == "f" else objects_ir.SEVERAL_INTS
                nodes.append((kind, codes, layout.WORD * (flags[x.number] - x.number)))
                return
            kind = objects_ir.SCALAR if weak is None else _NUMBERS[weak]
            nodes.append((kind, plans.ref(dtype.type), plans.ref(dtype)))
        elif isinstance(x, Container):
            nodes.append((objects_ir.CONTAINER, 0, _planned(plans, x.kind.root, known)))
        elif type(x) is Union and all(map(varied.is_constant, x.options.values())):
            table = plans.reserve(2 * len(x.options))
            pairs = [(n, plans.ref(option)) for n, option in x.options.items()]
            plans.write(table, [word for pair in pairs for word in pair])
            nodes.append((objects_ir.CHOICE, len(pairs), table))
        elif type(x) is Union:
            others = {n: o for n, o in x.options.items() if not varied.has_no_words(o)}
            which = {n: list(others).index(n) for n in others}
            constants = {n: option for n, option in x.options.items() if n not in others}
            chosen = partial(_chosen, constants, which)
            parts(plans.ref(chosen), [x.tag, *others.values()], objects_ir.CALL)
        elif type(x) is tuple:
            parts(0, x, objects_ir.TUPLE)
        elif not pytree.flatten(x)[0]:
            nodes.append((objects_ir.CONSTANT, 0, plans.ref(x)))
        else:
            items, tree = _opened(x)
            parts(plans.ref(partial(_of_parts, tree)), items, objects_ir.CALL)

    node(whole)
    place = plans.reserve(3 * len(nodes))
    by_place = (objects_ir.CONTAINER, objects_ir.CHOICE)
    moved = [3 * k + 2 for k, (what, *_) in enumerate(nodes) if what in by_place]
    plans.write(place, [word for node in nodes for word in node], moved)
    return place


def _opened(x: Any) -> tuple[list[Any], Any]:
    """The parts of an element, of which each is one word."""
    return optree.tree_flatten(
        x, is_leaf=lambda y: isinstance(y, (Container, _Place)), namespace=pytree.NAMESPACE
    )


def _chosen(constants: dict[int, Any], which: dict[int, int], tag: Any, *options: Any) -> Any:
    """Of the options of a union the one that the tag names."""
    number = int(tag)
    return constants[number] if number in constants else options[which[number]]


def _of_parts(tree: Any, *parts: Any) -> Any:
    return pytree.unflatten(tree, parts)


_NUMBERS = {"b": objects_ir.BOOL, "i": objects_ir.INT, "f": objects_ir.FLOAT}


def columns(handle: int, form: Form | None) -> list[Any]:
    """Of what native code has left, a column for each leaf of a list's elements."""
    if form is None:
        return []
    header = (ctypes.c_int64 * (layout.HEADER_BYTES // 8)).from_address(handle)
    count = header[layout.LENGTH // 8]
    if not count:
        return [np.empty(0, dtype) for dtype in form.dtypes]
    records = _record(form.dtypes)
    memory: Any = (ctypes.c_char * (count * records.itemsize)).from_address(
        header[layout.FIRST // 8]
    )
    found = np.frombuffer(memory, records)
    return [found[name].copy() for name in records.names or ()]


@cache
def _record(dtypes: tuple[np.dtype[Any], ...]) -> np.dtype[Any]:
    numbers = range(len(dtypes))
    return np.dtype(
        {
            "names": [f"x{k}" for k in numbers],
            "formats": list(dtypes),
            "offsets": [layout.WORD * k for k in numbers],
            "itemsize": layout.WORD * len(dtypes),
        }
    )
