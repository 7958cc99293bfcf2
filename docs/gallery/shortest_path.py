"""Shortest paths through a maze: Dijkstra and A*

Mountains cost more than plains. A heap of tuples, a dict of where one came from, a path that is
built backwards: Python's own containers.

Method: E. W. Dijkstra (1959); P. E. Hart, N. J. Nilsson and B. Raphael (1968).
"""

import heapq

import numpy as np

import jitney as jt


@jt.jit
def search(cost, start, goal, guided):
    """The path of least cost, and in which order cells were looked at."""
    height, width = cost.shape
    distance = np.full(cost.shape, np.inf)
    order = np.zeros(cost.shape, dtype=np.int64)
    distance[start] = 0.0
    came_from = {}
    heap = [(0.0, start)]
    seen = 0
    while heap:
        _, here = heapq.heappop(heap)
        if order[here] > 0:
            continue
        seen += 1
        order[here] = seen
        if here == goal:
            break
        i, j = here
        for y, x in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1)):
            if 0 <= y < height and 0 <= x < width:
                new = distance[here] + cost[y, x]
                if new < distance[y, x]:
                    distance[y, x] = new
                    came_from[y, x] = here
                    guess = abs(y - goal[0]) + abs(x - goal[1]) if guided else 0
                    heapq.heappush(heap, (new + guess, (y, x)))
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    path.reverse()
    return path, distance[goal], order


def landscape(size, rng):
    """Costs of at least 1, high on mountains."""
    waves = rng.normal(size=(6, 6)) + 1j * rng.normal(size=(6, 6))
    spectrum = np.zeros((size, size), dtype=complex)
    spectrum[:6, :6] = waves
    hills = np.fft.ifft2(spectrum).real
    return 1 + 20 * np.maximum(hills / hills.std(), 0) ** 2


def main(size=400):
    """Costs, the two paths, their length, and the orders of search."""
    cost = landscape(size, np.random.default_rng(11))
    start, goal = (size // 8, size // 8), (size - size // 8, size - size // 8)
    path, length, order = search(cost, start, goal, False)
    guided, same, directed = search(cost, start, goal, True)
    return cost, np.array(path), np.array(guided), np.array([length, same]), order, directed


def picture(axes):
    cost, path, guided, _, order, directed = main(200)
    for ax, way, seen, title in zip(
        axes, (path, guided), (order, directed), ("Dijkstra", "A*"), strict=True
    ):
        ax.imshow(cost, cmap="terrain")
        ax.contourf(seen > 0, levels=[0.5, 1.5], colors="red", alpha=0.3)
        ax.plot(way[:, 1], way[:, 0], "k")
        ax.set_title(title)
        ax.axis("off")
