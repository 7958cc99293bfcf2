"""Branches that write the same elements become selections of what is written.

    before: if c: t[i, j] = x           after: t[i, j] = x if c else y
            else: t[i, j] = y

    before: if a[j] > a[j + 1]: a[j], a[j + 1] = a[j + 1], a[j]
    after:  a[j], a[j + 1] = (a[j + 1], a[j]) if a[j] > a[j + 1] else (a[j], a[j + 1])

A branch that writes less writes back what is there, one that adds nothing adds -0.0, which changes no
number. Which way the data go need not be guessed then, and LLVM can make vectors. Only where all that is
computed is cheap, and nothing in it can fail.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..loop_ir.index import Index
from ..loop_ir.kernel import Access, Array
from ..loop_ir.scalar_code import Body, Let, Write, data_at, within
from ..loop_ir.split_sums import part_added
from ..scalar import FREE, Expr, const
from .elements import one_of
from .pointwise import load

MOST = 32  # operations of all branches together
MOST_WRITES = 4

Place = tuple[Array, tuple[Index, ...]]


def merged(
    index: Expr, blocks: Sequence[Body], results: Sequence[Sequence[Expr]] = ()
) -> list[Let | Write] | None:
    """The statements that do what a choice of blocks does; None if they should not.

    With results, which are chosen among then, only where all that is written are sums: the adjoint of
    a choice of elements, say.
    """
    computed: list[Expr] = [value for values in results for value in values]
    written: dict[Place, dict[int, Expr]] = {}
    for k, block in enumerate(blocks):
        own: set[Array] = set()
        for s in block.statements:
            if isinstance(s, Let) and not own:
                computed += s.values
            elif isinstance(s, Write) and k not in written.get((s.array, s.index), ()):
                if not _is_read(s.value, own, computed):
                    return None
                written.setdefault((s.array, s.index), {})[k] = s.value
                own.add(s.array)
            else:
                return None
    targets = [*written]
    if not 0 < len(targets) <= MOST_WRITES or not _in_order(written):
        return None
    computed += (value for values in written.values() for value in values.values())
    at_places = (node for _, place in targets for node in data_at(place))
    nodes = {*within([*computed, *at_places])}
    if any(_reads(values, blocks[k]) for k, values in enumerate(results)):
        return None
    if not all(map(_is_harmless, nodes)) or sum(n.op not in FREE for n in nodes) > MOST:
        return None
    lets: list[Expr] = [*computed]
    writes: list[Let | Write] = []
    for (array, place), values in written.items():
        old = load(Access(array, place), None)
        ways = [values.get(k) for k in range(len(blocks))]
        parts = [None if way is None else part_added(Write(array, place, way)) for way in ways]
        if all((way is None) is (part is None) for way, part in zip(ways, parts, strict=True)):
            nothing = const(-0.0 if array.dtype.kind == "f" else 0, array.dtype)
            part = _way(index, [nothing if x is None else x for x in parts])
            value = Expr("add", (old, part), array.dtype)
        elif any(results):
            return None
        else:
            value = _way(index, [old if x is None else x for x in ways])
        lets.append(value)
        writes.append(Write(array, place, value))
    return [Let(lets), *writes]


def _is_read(value: Expr, written: set[Array], computed: Sequence[Expr]) -> bool:
    """Whether all that a value takes of arrays that are `written` by now was read before."""
    late = {n for n in within([value]) if n.op == "load" and n.attr.array in written}
    return not late or late <= {*within(computed)}


def _in_order(written: Mapping[Place, Mapping[int, Expr]]) -> bool:
    """Whether branches write all places of an array or none, and each one after the same others: two may
    be one, and then the last counts."""
    by_array: dict[Array, list[list[int]]] = {}
    for (array, _), values in written.items():
        by_array.setdefault(array, []).append([*values])
    return all(all(who == ways[0] for who in ways) for ways in by_array.values())


def _way(index: Expr, ways: Sequence[Expr]) -> Expr:
    """What the index of a branch chooses."""
    value = ways[-1]
    for k in reversed(range(len(ways) - 1)):
        value = one_of(index, k, ways[k], value)
    return value


def _reads(values: Sequence[Expr], block: Body) -> bool:
    """Whether values are read from memory that their block writes."""
    written = {s.array for s in block.statements if isinstance(s, Write)}
    return any(node.op == "load" and node.attr.array in written for node in within(values))


def _is_harmless(node: Expr) -> bool:
    if node.op in ("bounded", "demanded", "call", "loop", "result"):
        return False
    if node.op in ("div", "rem") and node.dtype.kind in "iu":
        return node.args[1].op == "const"
    return not (node.op == "load" and node.args)
