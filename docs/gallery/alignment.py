"""Edit distances and time warping

How far is one text from another, one curve from another? Two dynamic programs: Levenshtein's over
strings, and dynamic time warping over samples, with the path that it takes.

Method: V. Levenshtein (1965), by R. Wagner and M. Fischer's table (1974); H. Sakoe and S. Chiba
(1978).
"""

import numpy as np

import jitney as jt


@jt.jit
def levenshtein(a, b):
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a):
        current = [i + 1]
        for j, y in enumerate(b):
            current.append(min(previous[j + 1] + 1, current[j] + 1, previous[j] + (x != y)))
        previous = current
    return previous[-1]


@jt.jit
def warp(x, y):
    n, m = len(x), len(y)
    cost = np.full((n + 1, m + 1), np.inf)
    cost[0, 0] = 0.0
    for i in range(n):
        for j in range(m):
            before = min(cost[i, j], cost[i, j + 1], cost[i + 1, j])
            cost[i + 1, j + 1] = abs(x[i] - y[j]) + before
    path = []
    i, j = n, m
    while i > 0 and j > 0:
        path.append((i - 1, j - 1))
        before = np.argmin(np.array([cost[i - 1, j - 1], cost[i - 1, j], cost[i, j - 1]]))
        if before == 0:
            i, j = i - 1, j - 1
        elif before == 1:
            i -= 1
        else:
            j -= 1
    return cost[n, m], path[::-1]


def main(n=2000):
    """The edit distance of two texts; two curves, how far apart they are, the path between them."""
    rng = np.random.default_rng(12)
    first = "".join(rng.choice(list("acgt"), size=n))
    second = "".join(rng.choice(list("acgt"), size=n // 4)) + first[: 3 * n // 4]
    time = np.linspace(0, 1, n)
    x = np.sin(2 * np.pi * 3 * time)
    y = np.sin(2 * np.pi * 3 * time**1.5) + 0.05 * rng.normal(size=n)
    distance, path = warp(x, y)
    return levenshtein(first, second), x, y, distance, np.array(path)


def picture(ax):
    _, x, y, _, path = main(200)
    ax.plot(x + 2.5)
    ax.plot(y)
    for i, j in path[::6]:
        ax.plot([i, j], [x[i] + 2.5, y[j]], color="silver", linewidth=0.6, zorder=0)
    ax.set_yticks([])
