"""Graphs as pictures: boxes in boxes with edges between them, SVG of our own.

Small boxes are drawn where they stand; large ones are folded: a box with a name, and their inside below,
behind a line that opens (`<details>`, no script). Of very large graphs the insides end somewhere,
which is said; all of it is in the text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape

from ...ir.graph import Graph, Op
from .boxes import Box, Path, boxes
from .layout import Route, Size, layered
from .pages import fragment, save

_INLINE = 40  # things in a box that is drawn where it stands
_MOST = 3500  # things that are drawn in all
_LABELS = 60  # edges in one picture up to which their types are written
_LONGEST = 34  # characters of a name
_CHAR, _LINE, _PAD, _HEAD = 6.6, 22.0, 8.0, 20.0

_STYLE = """
.jitney svg { max-width: 100%; height: auto; overflow: visible; }
.jitney svg text, svg.jitney text { font: 11px system-ui, sans-serif; fill: var(--fg); }
.jitney svg .e, svg.jitney .e { fill: none; stroke: var(--dim); stroke-width: 1; }
.jitney svg .t, svg.jitney .t { fill: var(--dim); font-size: 9px; text-anchor: middle;
  paint-order: stroke; stroke: var(--bg); stroke-width: 4px; stroke-linejoin: round; }
.jitney svg .m, svg.jitney .m { text-anchor: middle; }
.jitney svg rect, svg.jitney rect { fill: var(--bg); stroke: var(--dim); rx: 4px; }
.jitney svg .scope, .jitney svg .kernel, .jitney svg .region, .jitney svg .ops,
.jitney svg .graph { fill: var(--box); stroke: var(--line); }
.jitney svg .kernel { stroke: #bf8700; stroke-width: 1.5; }
.jitney svg .region { stroke: #8250df; stroke-dasharray: 5 3; }
.jitney svg .scope { stroke: #0969da; }
.jitney svg .param, .jitney svg .output { stroke: #1a7f37; stroke-width: 1.5; }
.jitney svg .constant { stroke-dasharray: 2 2; }
.jitney svg .folded { stroke-width: 3; }
.jitney .inside { margin-left: 1.2em; }
"""


class Drawing:
    """A picture of a graph: a notebook shows it, `svg` is its outermost part, `save(path)` writes it."""

    def __init__(self, top: Box) -> None:
        self.top = top

    def __repr__(self) -> str:
        return f"<Drawing of {self.top.label}: {self.top.count} ops and values>"

    @property
    def svg(self) -> str:
        """The picture alone, without what is folded."""
        style = fragment([], _STYLE).partition("<style>")[2].partition("</style>")[0]
        body, size = _Picture(self.top).inside(self.top)
        css = style.replace(".jitney svg", "svg.jitney")
        return _svg(body, size, f"<style>{css}</style>", " class='jitney'")

    def _repr_html_(self) -> str:
        picture = _Picture(self.top)
        parts = [f"<div><b>{escape(self.top.label)}</b></div>", *picture.details(self.top)]
        return fragment(parts, _STYLE)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file: an SVG, or a page if its name ends in .html. Raises OSError."""
        save(path, self.top.label, self.svg, self._repr_html_())


def draw(graph: Graph) -> Drawing:
    """A picture of a graph with its scopes as boxes."""
    return Drawing(boxes(graph, _scope, "scope"))


def draw_kernels(graph: Graph, kernel_of: dict[Op, str]) -> Drawing:
    """A picture of a graph with its kernels as boxes."""

    def around(op: Op) -> Path:
        name = kernel_of.get(op)
        return () if name is None else (name,)

    return Drawing(boxes(graph, around, "kernel"))


def _scope(op: Op) -> Path:
    return tuple(op.loc.scope.split("/")) if op.loc is not None and op.loc.scope else ()


class _Picture:
    """Draws boxes, those that are `shown` (by identity); the inside of `folded` ones stands below."""

    def __init__(self, top: Box) -> None:
        self.shown = _chosen(top)
        self.folded: list[Box] = []

    def details(self, box: Box) -> Iterator[str]:
        """The inside of a box, and of those in it that are folded, as parts of a page."""
        outer, self.folded = self.folded, []
        body, size = self.inside(box)
        mine, self.folded = self.folded, outer
        yield _svg(body, size)
        for inner in mine:
            count = f"{inner.count:,} ops and values"
            title = (
                f"{escape(inner.label)} <span class='dim'>{count}: {escape(inner.summary())}</span>"
            )
            if id(inner) not in self.shown:
                yield f"<div class='inside'>{title} <span class='dim'>(not drawn)</span></div>"
                continue
            inside = "".join(self.details(inner))
            yield f"<details class='inside'><summary>{title}</summary>{inside}</details>"

    def inside(self, box: Box) -> tuple[str, Size]:
        """What is in a box, and how large that is."""
        drawn = [self._thing(inner) for inner in box.inside]
        places, size, routes = layered([size for _, size in drawn], box.edges)
        lines, labels = [], []
        written = len(box.edges) <= _LABELS
        told: set[tuple[int, str]] = set()
        for k, ((a, b), (count, text)) in enumerate(box.edges.items()):
            (ax, ay), (bx, by) = places[a], places[b]
            (aw, ah), (bw, _) = drawn[a][1], drawn[b][1]
            start, end = (ax + aw / 2, ay + ah), (bx + bw / 2, by)
            label = escape(text + (f" x{count}" if count > 1 else ""))
            route = routes.get((a, b), [])
            title = "" if written else f"<title>{label}</title>"
            lines.append(f"<path class='e' d='{_way(start, route, end)}'>{title}</path>")
            if written and (a, label) not in told:  # once for all who read the same
                told.add((a, label))
                labels.append(_label(start, route, end, label, k % 2))
        things = [
            f"<g transform='translate({x:.0f} {y:.0f})'>{body}</g>"
            for (body, _), (x, y) in zip(drawn, places, strict=True)
        ]
        return "".join([*lines, *labels, *things]), size

    def _thing(self, box: Box) -> tuple[str, Size]:
        title = f"<title>{escape(box.title)}</title>" if box.title else ""
        label = box.label if len(box.label) <= _LONGEST else box.label[: _LONGEST - 1] + "..."
        label = " ".join(label.split())
        if not box.inside:
            width = len(label) * _CHAR + 2 * _PAD
            rect = f"<rect class='{box.kind}' width='{width:.0f}' height='{_LINE:.0f}'/>"
            text = f"<text class='m' x='{width / 2:.0f}' y='15'>{escape(label)}</text>"
            return f"{title}{rect}{text}", (width, _LINE)
        kind = box.kind.replace("region op", "graph")
        if box.count > _INLINE:
            self.folded.append(box)
            label += f" ({box.count:,})"
            width = len(label) * _CHAR + 2 * _PAD
            rect = f"<rect class='{kind} folded' width='{width:.0f}' height='30'/>"
            text = f"<text class='m' x='{width / 2:.0f}' y='19'>{escape(label)}</text>"
            return f"{title}{rect}{text}", (width, 30.0)
        body, (width, height) = self.inside(box)
        width = max(width, len(label) * _CHAR) + 2 * _PAD
        height += _HEAD + _PAD
        rect = f"<rect class='{kind}' width='{width:.0f}' height='{height:.0f}'/>"
        text = f"<text x='{_PAD:.0f}' y='14'>{escape(label)}</text>"
        inner = f"<g transform='translate({_PAD:.0f} {_HEAD:.0f})'>{body}</g>"
        return f"{title}{rect}{text}{inner}", (width, height)


def _chosen(top: Box) -> set[int]:
    """The boxes whose inside is drawn, by identity: those that are far out first, until there are
    enough things in the picture."""
    found, left, queue = {id(top)}, _MOST, [top]
    for box in queue:
        here, folded = _things(box)
        if here > left and box is not top:
            continue
        found.add(id(box))
        left -= here
        queue += folded
    return found


def _things(box: Box) -> tuple[int, list[Box]]:
    """How many things are drawn in a box where they stand, and which are folded."""
    count, folded = len(box.inside), []
    for inner in box.inside:
        if inner.count > _INLINE:
            folded.append(inner)
        elif inner.inside:
            more, _ = _things(inner)
            count += more
    return count, folded


def _way(start: Size, route: Route, end: Size) -> str:
    """A path from one place to another by the places of layers between, straight through these."""
    x, y = start
    parts = [f"M{x:.0f} {y:.0f}"]
    for to, above, below in [*route, (*end, end[1])]:
        bend = max((above - y) / 2, 14.0)
        if above != y:
            parts.append(
                f"C{x:.0f} {y + bend:.0f} {to:.0f} {above - bend:.0f} {to:.0f} {above:.0f}"
            )
        if below > above:
            parts.append(f"V{below:.0f}")
        x, y = to, below
    return "".join(parts)


def _label(start: Size, route: Route, end: Size, text: str, odd: int) -> str:
    """The type of what flows, on the way; those of neighbours are not at one height."""
    part = 0.68 if odd else 0.42
    if route and route[0][1] == start[1]:  # something tall stands beside it
        end = start[0], start[1] + 20
    elif route:
        end = route[0][:2]
    x, y = start[0] + (end[0] - start[0]) * part, start[1] + (end[1] - start[1]) * part + 3
    return f"<text class='t' x='{x:.0f}' y='{y:.0f}'>{text}</text>"


def _svg(body: str, size: Size, style: str = "", attributes: str = "") -> str:
    width, height = size[0] + 4, size[1] + 4
    box = f"viewBox='-2 -2 {width:.0f} {height:.0f}' width='{width:.0f}' height='{height:.0f}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {box}{attributes}>{style}{body}</svg>"
