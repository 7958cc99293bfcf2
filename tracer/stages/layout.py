"""Things and the edges between them in layers, from top to bottom, with few crossings.

An edge over several layers has a place of its own in each between, so that it passes beside what stands
there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

GAP_X, GAP_Y = 18, 34
_SWEEPS = 3

Edges = Mapping[tuple[int, int], Any]
Size = tuple[float, float]
Place = tuple[float, float]  # of the upper left corner
Route = list[
    tuple[float, float, float]
]  # where an edge passes layers: x, and y from where to where
_WAY = 4.0  # the width of an edge


def layered(
    sizes: Sequence[Size], edges: Edges
) -> tuple[list[Place], Size, dict[tuple[int, int], Route]]:
    """Where things of these sizes stand, the size of all of it, and the ways of long edges. An edge
    leads downwards, unless it leads back to a thing that comes earlier."""
    import networkx

    count = len(sizes)
    forward = networkx.DiGraph((a, b) for a, b in edges if a < b)
    forward.add_nodes_from(range(count))
    level = [0] * count
    for k, generation in enumerate(networkx.topological_generations(forward)):
        for node in generation:
            level[node] = k
    for node in range(count):  # what comes from nowhere stands right above who reads it
        readers = [level[b] for b in forward.successors(node)]
        if readers and not forward.in_degree(node):
            level[node] = min(readers) - 1
    layers: list[list[int]] = [[] for _ in range(max(level, default=0) + 1)]
    for node in range(count):
        layers[level[node]].append(node)
    ways = _with_ways(forward, layers, level)
    every = [*sizes, *[(_WAY, 0.0)] * sum(map(len, ways.values()))]
    places, size = _placed(layers, _ordered(layers, forward, every), every)
    heights = [max((every[n][1] for n in layer), default=0.0) for layer in layers]
    routes: dict[tuple[int, int], Route] = {}
    for edge in edges:
        node, start = edge[0], level[edge[0]]
        passed = [
            (places[n][0] + _WAY / 2, places[n][1], k) for k, n in enumerate(ways.get(edge, ()), 1)
        ]
        route = [(x, y, y + heights[start + k]) for x, y, k in passed]
        x, y = places[node]
        if sizes[node][1] < heights[start] and edge[0] < edge[1]:  # past what is taller beside it
            route.insert(0, (x + sizes[node][0] / 2, y + sizes[node][1], y + heights[start]))
        routes[edge] = route
    return places[:count], size, routes


def _with_ways(
    graph: Any, layers: list[list[int]], level: Sequence[int]
) -> dict[tuple[int, int], list[int]]:
    """Put a node into each layer that an edge passes, instead of the edge; those of each long edge."""
    ways: dict[tuple[int, int], list[int]] = {}
    following = len(level)
    for a, b in list(graph.edges):
        between = range(level[a] + 1, level[b])
        if not between:
            continue
        way = list(range(following, following + len(between)))
        following += len(between)
        graph.remove_edge(a, b)
        graph.add_edges_from(zip([a, *way], [*way, b], strict=True))
        for node, k in zip(way, between, strict=True):
            layers[k].append(node)
        ways[a, b] = way
    return ways


def _ordered(layers: list[list[int]], graph: Any, sizes: Sequence[Size]) -> dict[int, float]:
    """Sort each layer by where its neighbours stand, down and up again; the middle of each thing."""
    middle: dict[int, float] = {}
    for layer in layers:
        _set_out(layer, sizes, middle)
    for sweep in range(_SWEEPS):
        neighbours = graph.pred if sweep % 2 == 0 else graph.succ
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wish = {
                node: sum(middle[n] for n in neighbours[node]) / len(neighbours[node])
                if neighbours[node]
                else middle[node]
                for node in layer
            }
            layer.sort(key=wish.__getitem__)
            _set_out(layer, sizes, middle)
    return middle


def _set_out(layer: Sequence[int], sizes: Sequence[Size], middle: dict[int, float]) -> None:
    """One thing beside the other, the layer's middle at 0."""
    x = -(sum(sizes[n][0] for n in layer) + GAP_X * (len(layer) - 1)) / 2
    for node in layer:
        middle[node] = x + sizes[node][0] / 2
        x += sizes[node][0] + GAP_X


def _placed(
    layers: list[list[int]], middle: Mapping[int, float], sizes: Sequence[Size]
) -> tuple[list[Place], Size]:
    left = min((middle[n] - size[0] / 2 for n, size in enumerate(sizes)), default=0.0)
    right = max((middle[n] + size[0] / 2 for n, size in enumerate(sizes)), default=0.0)
    places: list[Place] = [(0.0, 0.0)] * len(sizes)
    y = 0.0
    for layer in layers:
        for node in layer:
            places[node] = middle[node] - sizes[node][0] / 2 - left, y
        y += max((sizes[n][1] for n in layer), default=0.0) + GAP_Y
    return places, (right - left, max(y - GAP_Y, 0.0))
