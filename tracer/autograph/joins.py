"""What branches leave in a variable, or loops hand on in it, is of different forms: it becomes a union.

See `control.unions`. What is joined here are values before and after (loops) or the ends of branches.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...ir.graph import Value
from ...ir.record import record
from ..containers.elements.forms import same_tree
from ..containers.kinds import changed, inherit
from ..containers.packed import Packed
from ..control.regions import Out
from ..control.unions import (
    Union,
    class_of_leaf,
    constant_tag,
    narrowed,
    number_of_form,
    numbers_in,
    options_of,
    tag_of,
)
from ..core.trace import Trace, require_trace
from ..core.tracers import Tracer, emit, wrap
from ..data import pytree
from .variables import Undefined, is_traceable, same

_MOST = 8  # forms of one value


@record
class Side:
    """What a branch leaves: `tag` is a known number or a leaf; of each option the structure, the leaves
    and, where it is at hand, the value."""

    tag: Any
    options: dict[int, tuple[pytree.TreeDef, Sequence[Any], Any]]

    @staticmethod
    def of(
        tree: pytree.TreeDef, leaves: Sequence[Any], classify: Callable[[Any], Any], value: Any
    ) -> Side:
        if tree.type is not Union:
            number = number_of_form(tree, map(classify, leaves))
            return Side(number, {number: (tree, leaves, value)})
        (tag,), *parts = parts_of(tree, leaves)
        trees = tree.children()[1:]
        values = value.options if type(value) is Union else {}
        options = zip(numbers_in(tree), trees, parts, strict=True)
        return Side(tag, {n: (part, own, values.get(n)) for n, part, own in options})


def parts_of(tree: pytree.TreeDef, leaves: Sequence[Any]) -> list[Sequence[Any]]:
    """The leaves of each child."""
    ends = itertools.accumulate((child.num_leaves for child in tree.children()), initial=0)
    return [leaves[start:end] for start, end in itertools.pairwise(ends)]


def are_alike(one: pytree.TreeDef, other: pytree.TreeDef) -> bool:
    """Whether two structures are containers of one kind, with the same keys, so that what is in them can
    be joined one by one."""
    if one.is_leaf() or other.is_leaf() or one.type is not other.type or one.type is Union:
        return False
    first, second = one.one_level(), other.one_level()
    assert first is not None and second is not None
    return one.num_children > 0 and pytree.same_as_written(first, second)


Leaf = Callable[[str, int, Sequence[Any], "list[bool]", Any], Callable[[Sequence[Value]], Any]]


def joined_sides(
    label: str, sides: Sequence[Side], is_inside: Callable[[Any], bool], leaf: Leaf, pred: Tracer
) -> Callable[[Sequence[Value]], Any] | None:
    """How to make the union of what two branches leave, of the op's results. `leaf` merges one leaf.
    None if they leave values of one form."""
    numbers = list(dict.fromkeys([*sides[0].options, *sides[1].options]))
    if len(numbers) == 1 or len(numbers) > _MOST:
        return None
    _make_native([value for side in sides for _, _, value in side.options.values()])
    plans: dict[int, tuple[Any, list[Any] | None, Any]] = {}
    for number in numbers:
        found = [side.options.get(number) for side in sides]
        some = next(x for x in found if x is not None)
        tree, count = some[0], some[0].num_leaves
        outside = not any(map(is_inside, some[1])) or _is_outside(some[2])
        if None in found and some[2] is not None and outside:
            plans[number] = tree, None, some[2]  # it is there outside, itself
            continue
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
            if parts is None:
                options[number] = value
                continue
            options[number] = pytree.unflatten(tree, [part(results) for part in parts])
            inherit(value, options[number])
        return Union(_chosen(pred, sides) if tag is None else tag(results), options)

    return make


def _is_outside(value: Any) -> bool:
    """Whether it is an array from outside, in which the branch has perhaps written."""
    if not isinstance(value, Tracer) or value.scalar or value._view is not None:
        return False
    trace: Trace | None = require_trace()
    while trace is not None and trace is not value._storage.trace:
        trace = trace.parent
    return trace is not None


def _make_native(values: Sequence[Any]) -> None:
    """Trace again with native lists where arrays that stand for lists meet what is none: each,
    read in its own way, tables would be written out element by element."""
    for value in values:
        if isinstance(value, Packed):
            value.become_native()


def _chosen(pred: Tracer, sides: Sequence[Side]) -> Tracer:
    """The tag where each branch leaves one form."""
    no, yes = (constant_tag(side.tag).value for side in sides)
    return wrap(emit("select", pred.value, yes, no).value, scalar=True)


# Loops


def conformed(value: Any, to: Any) -> Any:
    """What an iteration leaves, with the unions that the loop carries, if it has their forms."""
    if isinstance(value, Undefined) and not value.is_form:
        return value
    if type(to) is not Union:
        tree, other = pytree.flatten(value)[1], pytree.flatten(to)[1]
        if tree == other or not are_alike(tree, other):
            return value
        pairs = zip(pytree.children(value), pytree.children(to), strict=True)
        return _made_of(tree, [conformed(part, wanted) for part, wanted in pairs])
    value = narrowed(value)
    options = options_of(value)
    if not options.keys() <= to.options.keys():
        return value
    tag = tag_of(value)
    whole = {n: options[n] if n in options else to.options[n] for n in to.options}
    return Union(constant_tag(tag) if isinstance(tag, int) else tag, whole)


def _made_of(tree: pytree.TreeDef, children: Sequence[Any]) -> Any:
    level = tree.one_level()
    assert level is not None
    return pytree.unflatten(level, children)


def widened(
    before: Any, tree: pytree.TreeDef, leaves: Sequence[Any], outs: Sequence[Out | None]
) -> Any:
    """The value before a loop with unions that take in what an iteration gives: `leaves`, of these
    types. Raises Unlike where there is none."""
    own_leaves, own = pytree.flatten(before)
    same_tree(own, tree)  # native containers of two sites are of one kind then
    if own == tree and all(map(_go_together, own_leaves, leaves)):
        return before
    _make_native([before])
    if are_alike(own, tree):
        parts = parts_of(tree, leaves), parts_of(tree, outs)
        together = zip(pytree.children(before), tree.children(), *parts, strict=True)
        return _made_of(own, [widened(*each) for each in together])
    after = Side.of(tree, list(zip(leaves, outs, strict=True)), lambda x: class_of_leaf(x[0]), None)
    options = dict(before.options if type(before) is Union else options_of(before))
    for number, (part, pairs, _) in after.options.items():
        if number in options:
            continue
        if any(_grows(x, part, pairs) for x in options.values()):
            raise Unlike
        made = [leaf if out is None else empty(out) for leaf, out in pairs]
        options[number] = pytree.unflatten(part, made)
    if len(options) > _MOST:
        raise Unlike
    tag = tag_of(before)
    return Union(constant_tag(tag) if isinstance(tag, int) else tag, options)


class Unlike(Exception):
    """A loop does not hand on what it took, nor a value of another form."""


def _go_together(one: Any, other: Any) -> bool:
    if is_traceable(one) and is_traceable(other):
        return not (_is_number(one) and _is_number(other)) or class_of_leaf(one) == class_of_leaf(
            other
        )
    return same(one, other)


def _is_number(leaf: Any) -> bool:
    return isinstance(class_of_leaf(leaf), str)


def _grows(before: Any, tree: pytree.TreeDef, pairs: Sequence[tuple[Any, Out | None]]) -> bool:
    """Whether it is not another form, but the same one that grows from iteration to iteration."""
    own = pytree.flatten(before)[1]
    if not own.is_leaf() or not tree.is_leaf():
        return own.type is tree.type and own.type in (list, dict, set, tuple)
    ((after, out),) = pairs
    are_arrays = out is not None and is_traceable(before)
    return are_arrays and not (_is_number(before) and _is_number(after))


def empty(out: Out) -> Any:
    """What stands where an option is not the one that counts."""
    if out.weak is not None:
        return {"b": False, "i": 0, "f": 0.0, "c": 0j}[out.weak]
    return out.wrap(require_trace().builder.zeros(out.type))


def changed_in(values: Sequence[Any], trees: Sequence[pytree.TreeDef]) -> None:
    """Tell (`changed`) of what one variable is on several ways, with these structures, the parts in
    which they differ: a dict that has the same keys on all ways stays Python's, whatever grows in it."""
    shapes = [pytree.unflatten(tree, range(tree.num_leaves)) for tree in trees]
    changed([*_differing(values, shapes)])
    changed([*values])


def _differing(values: Sequence[Any], shapes: Sequence[Any]) -> Iterator[Any]:
    """The parts of several values whose shapes are not the same."""
    cls = type(values[0])
    if cls in (dict, OrderedDict, list, tuple) and all(type(x) is cls for x in (*values, *shapes)):
        if issubclass(cls, dict) and all([*x] == [*shapes[0]] for x in (*values, *shapes)):
            values, shapes = ([[*x.values()] for x in each] for each in (values, shapes))
        is_dict = isinstance(shapes[0], dict)
        if not is_dict and all(len(x) == len(shapes[0]) for x in (*values, *shapes)):
            for parts in zip(*values, *shapes, strict=True):
                yield from _differing(parts[: len(values)], parts[len(values) :])
            return
    if len({str(pytree.flatten(x)[1]) for x in shapes}) > 1:
        yield from values
