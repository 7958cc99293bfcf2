"""A graph as boxes in boxes: ops, around them their scopes or kernels, regions inside of their ops.

An edge belongs to the innermost box that has both of its ends, and goes between two things in there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ...ir.graph import Graph, Op, Value
from ...ir.record import field, record
from ..messages.source import shown_file

Path = tuple[str, ...]
MOST_INSIDE = 60  # things in one box; more of them are put into boxes of so many


@record(frozen=False, eq=False)
class Box:
    """A thing to draw: an op, a parameter or a result if it has no `inside`.

    kind    op, param, output, constant, scope, kernel, region, ops
    edges   between things inside, by their places there: how many, and the type of the first
    """

    label: str
    kind: str
    title: str = ""
    inside: list[Box] = field(default_factory=list)
    edges: dict[tuple[int, int], tuple[int, str]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many ops and values are in it."""
        return sum(box.count for box in self.inside) if self.inside else 1

    def leaves(self) -> Iterator[Box]:
        """Those without anything inside."""
        if not self.inside:
            yield self
        for box in self.inside:
            yield from box.leaves()

    def summary(self) -> str:
        """What is in it, the most frequent first."""
        counts = Counter(leaf.label for leaf in self.leaves() if leaf.kind == "op")
        names = [f"{name} x{n}" if n > 1 else name for name, n in counts.most_common(4)]
        return ", ".join(names + ["..."] * (len(counts) > 4))


def boxes(graph: Graph, around: Callable[[Op], Path], kind: str) -> Box:
    """The box of a graph; `around` gives the names of the boxes, of a `kind`, that an op is in."""
    top = Box(graph.name, "graph")
    leaves = _Leaves(top, kind)
    for k, param in enumerate(graph.params):
        made = Box(param.name or f"param {k}", "param", str(param.type))
        leaves.place(made, (), [param])
    for op in graph.ops:
        made = Box(op.name, "constant" if op.name == "constant" else "op", _title(op))
        names = _region_names(op)
        made.inside = [
            _named(boxes(region, around, kind), name)
            for name, region in zip(names, op.regions, strict=True)
        ]
        name = next((v.name for v in op.results if v.name), "")
        if name:
            made.label = f"{name.rpartition('/')[2]} = {op.name}"
        if made.inside:
            made.kind = "region op"
        leaves.place(made, around(op), op.results, op.operands)
    for k, output in enumerate(graph.outputs):
        leaves.place(Box(f"output {k}", "output", str(output.type)), (), (), [output])
    return _divided(top)


def _region_names(op: Op) -> list[str]:
    """What the regions of an op are there for."""
    count = len(op.regions)
    if op.name == "while" and count == 2:
        return ["test", "body"]
    if op.name == "cond":
        return ["else", "if"] if count == 2 else [f"case {k}" for k in range(count)]
    return ["body"] if count == 1 else [f"{region.name} {k}" for k, region in enumerate(op.regions)]


def _named(box: Box, name: str) -> Box:
    box.label, box.kind = name, "region"
    return box


def _title(op: Op) -> str:
    types = ", ".join(str(v.type) for v in op.results)
    place = f" at {shown_file(op.loc.file)}:{op.loc.line}{op.loc.named}" if op.loc else ""
    return f"{op.name}: {types}{place}"


class _Leaves:
    """Puts things where they belong, and edges where both ends are."""

    def __init__(self, top: Box, kind: str) -> None:
        self._top, self._kind = top, kind
        self._groups: dict[Path, Box] = {(): top}
        self._places: dict[int, int] = {}  # of a box in the one around it, by identity
        self._sources: dict[Value, tuple[Box, ...]] = {}  # the boxes around, outermost first

    def place(
        self, box: Box, path: Path, gives: Sequence[Value], takes: Sequence[Value] = ()
    ) -> None:
        """Put a thing into the boxes of `path`; it reads `takes`."""
        chain = [self._group(path[:k]) for k in range(len(path) + 1)]
        self._add(chain[-1], box)
        own = (*chain, box)
        self._sources.update((value, own) for value in gives)
        for value in takes:
            source = self._sources[value]
            depth = 0
            while source[depth + 1] is own[depth + 1]:
                depth += 1
            ends = self._places[id(source[depth + 1])], self._places[id(own[depth + 1])]
            count, text = source[depth].edges.get(ends, (0, str(value.type)))
            source[depth].edges[ends] = count + 1, text

    def _group(self, path: Path) -> Box:
        group = self._groups.get(path)
        if group is None:
            group = self._groups[path] = Box(path[-1], self._kind, "/".join(path))
            self._add(self._group(path[:-1]), group)
        return group

    def _add(self, outer: Box, box: Box) -> None:
        self._places[id(box)] = len(outer.inside)
        outer.inside.append(box)


def _divided(box: Box) -> Box:
    """The box, where too many things are inside of one put into boxes, in their order."""
    for inner in box.inside:
        if inner.kind != "region op" and inner.kind != "region":
            _divided(inner)
    while len(box.inside) > MOST_INSIDE:
        _divide(box)
    return box


def _span(things: Sequence[Box], first: int) -> str:
    """What a box of some of many things is called: by the scopes in it, or by their places."""
    scopes = [box.label for box in things if box.kind == "scope"]
    if len(scopes) > len(things) // 2:
        return f"{scopes[0]} to {scopes[-1]}"
    return f"{first + 1} to {first + len(things)}"


def _divide(box: Box) -> None:
    things = box.inside
    size = MOST_INSIDE
    parts = [
        Box(_span(things[k : k + size], k), "ops", inside=things[k : k + size])
        for k in range(0, len(things), size)
    ]
    outer: dict[tuple[int, int], tuple[int, str]] = {}
    for (a, b), (count, text) in box.edges.items():
        if a // size == b // size:
            parts[a // size].edges[a % size, b % size] = count, text
        else:
            ends = a // size, b // size
            before = outer.get(ends, (0, text))
            outer[ends] = before[0] + count, before[1]
    box.inside, box.edges = parts, outer
