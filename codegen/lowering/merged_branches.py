"""Branches that write the same elements become selections of what is written.

    before: if c: t[i, j] = x           after: t[i, j] = x if c else y
            else: t[i, j] = y

A branch that writes less writes back what is there. Which way the data go need not be guessed then, and
LLVM can make vectors. Only where all that is computed is cheap, and nothing in it can fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..loop_ir.index import Index
from ..loop_ir.kernel import Access, Array
from ..loop_ir.scalar_code import Body, Let, Write, data_at, within
from ..scalar import FREE, Expr, select
from .pointwise import load

MOST = 32  # operations of all branches together
MOST_WRITES = 4

Place = tuple[Array, tuple[Index, ...]]


def merged(index: Expr, blocks: Sequence[Body]) -> list[Let | Write] | None:
    """The statements that do what a choice of blocks does, without results; None if they should not."""
    computed: list[Expr] = []
    written: dict[Place, dict[int, Expr]] = {}
    for k, block in enumerate(blocks):
        own: set[Array] = set()
        for s in block.statements:
            if isinstance(s, Let) and not own:
                computed += s.values
            elif isinstance(s, Write) and s.array not in own:
                if own & {node.attr.array for node in within([s.value]) if node.op == "load"}:
                    return None
                written.setdefault((s.array, s.index), {})[k] = s.value
                own.add(s.array)
            else:
                return None
    targets = [*written]
    if not targets or len(targets) > MOST_WRITES or len({a for a, _ in targets}) < len(targets):
        return None
    computed += (value for values in written.values() for value in values.values())
    at_places = (node for _, place in targets for node in data_at(place))
    nodes = {*within([*computed, *at_places])}
    if not all(map(_is_harmless, nodes)) or sum(n.op not in FREE for n in nodes) > MOST:
        return None
    lets: list[Expr] = [*computed]
    writes: list[Let | Write] = []
    for (array, place), values in written.items():
        old = load(Access(array, place), None)
        ways = [values.get(k, old) for k in range(len(blocks))]
        value = ways[-1]
        for k in reversed(range(len(ways) - 1)):
            value = value if ways[k] is value else select(index <= k, ways[k], value)
        lets.append(value)
        writes.append(Write(array, place, value))
    return [Let(lets), *writes]


def _is_harmless(node: Expr) -> bool:
    if node.op in ("bounded", "demanded", "call", "loop", "result"):
        return False
    if node.op in ("div", "rem") and node.dtype.kind in "iu":
        return node.args[1].op == "const"
    return not (node.op == "load" and node.args)
