"""What branches leave in a variable, or loops hand on in it, is of different forms: it becomes a union.

See `control.unions`. What is joined here are values before and after (loops) or the ends of branches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.record import record
from ..containers.kinds import inherit
from ..control.regions import Out
from ..control.unions import Union, constant_tag, number_of, options_of, possible, tag_of
from ..core.trace import require_trace
from ..core.tracers import Tracer, emit, wrap
from ..data import pytree
from .variables import Undefined, is_traceable

_MOST = 8  # forms of one value


def narrowed(value: Any) -> Any:
    """A union that can be but one of its options here is that option."""
    if type(value) is Union:
        numbers = possible(value)
        if len(numbers) == 1:
            return value.options[numbers[0]]
    return value


@record
class Side:
    """What a branch leaves: `tag` is a known number or a leaf; of each option the structure, the leaves
    and the value."""

    tag: Any
    options: dict[int, tuple[pytree.TreeDef, list[Any], Any]]

    @staticmethod
    def of(value: Any, tree: pytree.TreeDef, leaves: Sequence[Any]) -> Side:
        if type(value) is not Union:
            number = number_of(value)
            return Side(number, {number: (tree, list(leaves), value)})
        tag, *rest = leaves
        trees, options = tree.children()[1:], {}
        for (number, option), part in zip(value.options.items(), trees, strict=True):
            own, rest = rest[: part.num_leaves], rest[part.num_leaves :]
            options[number] = part, own, option
        return Side(tag, options)


Leaf = Callable[[str, int, Sequence[Any], "list[bool]", Any], Callable[[Sequence[Value]], Any]]


def joined_sides(
    label: str, sides: Sequence[Side], is_inside: Callable[[Any], bool], leaf: Leaf, pred: Tracer
) -> Callable[[Sequence[Value]], Any] | None:
    """How to make the union of what two branches leave, of the op's results. `leaf` merges one leaf.
    None if they leave values of one form."""
    numbers = list(dict.fromkeys([*sides[0].options, *sides[1].options]))
    if len(numbers) == 1 or len(numbers) > _MOST:
        return None
    plans: dict[int, tuple[Any, list[Any], Any]] = {}
    for number in numbers:
        found = [side.options.get(number) for side in sides]
        some = next(x for x in found if x is not None)
        tree, count = some[0], some[0].num_leaves
        parts = []
        for i in range(count):
            pair = [(some if x is None else x)[1][i] for x in found]
            # What is outside of the branches is there for both of them.
            missing = [x is None and is_inside(pair[k]) for k, x in enumerate(found)]
            parts.append(leaf(label, i, pair, missing, tree))
        plans[number] = tree, parts, some[2]
    tag = None
    if not all(isinstance(side.tag, int) for side in sides):
        tags = [np.int64(s.tag) if isinstance(s.tag, int) else s.tag for s in sides]
        tag = leaf(label, 0, tags, [False, False], pytree.flatten(0)[1])

    def make(results: Sequence[Value]) -> Any:
        options = {}
        for number, (tree, parts, value) in plans.items():
            options[number] = pytree.unflatten(tree, [part(results) for part in parts])
            inherit(value, options[number])
        return Union(_chosen(pred, sides) if tag is None else tag(results), options)

    return make


def _chosen(pred: Tracer, sides: Sequence[Side]) -> Tracer:
    """The tag where each branch leaves one form."""
    no, yes = (constant_tag(side.tag).value for side in sides)
    return wrap(emit("select", pred.value, yes, no).value, scalar=True)


# Loops


def conformed(value: Any, to: Any) -> Any:
    """A value at the end of an iteration as the union that the loop carries, if that has its form."""
    if type(to) is not Union or isinstance(value, Undefined):
        return value
    value = narrowed(value)
    options = options_of(value)
    if not options.keys() <= to.options.keys():
        return value
    tag = tag_of(value)
    whole = {n: options[n] if n in options else to.options[n] for n in to.options}
    return Union(constant_tag(tag) if isinstance(tag, int) else tag, whole)


def widened(before: Any, after: Any, out: Callable[[int], Out]) -> Any:
    """The value before a loop as a union that takes in what an iteration gives, of whose leaves `out`
    tells the types. None if there is none."""
    numbers = dict.fromkeys([*options_of(before), *(_all(after))])
    if len(numbers) > _MOST or not is_joined_in_loops(before, after):
        return None
    options = dict(options_of(before)) if type(before) is not Union else dict(before.options)
    leaves = pytree.flatten(after)[0]
    start = 1 if type(after) is Union else 0
    for number, option in _all(after).items():
        own, tree = pytree.flatten(option)
        if number not in options:
            new = [
                empty(out(start + i)) if is_traceable(leaf) else leaf for i, leaf in enumerate(own)
            ]
            options[number] = pytree.unflatten(tree, new)
        start += len(own)
    assert start == len(leaves)
    tag = tag_of(before)
    return Union(constant_tag(tag) if isinstance(tag, int) else tag, options)


def _all(value: Any) -> dict[int, Any]:
    return value.options if type(value) is Union else options_of(value)


def is_joined_in_loops(before: Any, after: Any) -> bool:
    """Whether it is another form, and not the same one that grows from iteration to iteration."""
    growing = (list, dict, set)
    return not any(
        (type(x) is type(y) and isinstance(x, growing)) or _are_arrays(x, y)
        for n, x in _all(before).items()
        for m, y in _all(after).items()
        if n != m
    )


def _are_arrays(x: Any, y: Any) -> bool:
    return is_traceable(x) and is_traceable(y)


def empty(out: Out) -> Any:
    """What stands where an option is not the one that counts."""
    if out.weak is not None:
        return {"b": False, "i": 0, "f": 0.0, "c": 0j}[out.weak]
    return out.wrap(require_trace().builder.zeros(out.type))
