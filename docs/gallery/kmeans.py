"""k-means

Points are given to the nearest centre, and centres move to the mean of their points, until nothing
moves.

Method: S. P. Lloyd (1957, 1982), begun by k-means++ (D. Arthur and S. Vassilvitskii, 2007).
"""

import numpy as np

import jitney as jt


def plus_plus(points, k, rng):
    centres = np.empty((k, points.shape[1]))
    centres[0] = points[rng.integers(len(points))]
    nearest = ((points - centres[0]) ** 2).sum(axis=1)
    for c in range(1, k):
        total = np.cumsum(nearest)
        centres[c] = points[np.searchsorted(total, rng.random() * total[-1])]
        nearest = np.minimum(nearest, ((points - centres[c]) ** 2).sum(axis=1))
    return centres


@jt.jit
def kmeans(points, k, rng, limit=100):
    centres = plus_plus(points, k, rng)
    labels = np.full(len(points), -1)
    for turn in range(limit):  # noqa: B007
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = np.argmin(distance, axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        for c in range(k):
            mine = points[labels == c]
            if len(mine) > 0:
                centres[c] = mine.mean(axis=0)
    return centres, labels, turn


def main(n=100_000, k=8):
    """The points, the centres, the label of each point, and how many turns it took."""
    rng = np.random.default_rng(3)
    middles = rng.uniform(-10, 10, size=(k, 2))
    points = middles[rng.integers(k, size=n)] + rng.normal(size=(n, 2))
    return points, *kmeans(points, k, rng)


def picture(ax):
    points, centres, labels, _ = main(3000)
    ax.scatter(*points.T, c=labels, s=3, cmap="tab10", rasterized=True)
    ax.plot(*centres.T, "k+", markersize=12)
