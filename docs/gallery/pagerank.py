"""PageRank on a sparse graph

Pages link to pages; a surfer who follows links, and jumps now and then, is on each page with a
certain chance. The graph is SciPy's sparse matrix; the same by hand, as a loop over its compressed
rows.

Method: S. Brin and L. Page (1998), by the power method.
"""

import numpy as np
from scipy import sparse

import jitney as jt


@jt.jit
def pagerank(links, damping=0.85, tolerance=1e-10):
    n = links.shape[0]
    out = np.asarray(links.sum(axis=1)).ravel()
    dangling = out == 0
    rank = np.full(n, 1 / n)
    turns = 0
    while True:
        share = np.where(dangling, 0.0, rank / np.where(dangling, 1.0, out))
        new = damping * (links.T @ share + rank[dangling].sum() / n) + (1 - damping) / n
        turns += 1
        change = np.abs(new - rank).sum()
        rank = new
        if change < tolerance:
            return rank, turns


@jt.jit
def by_hand(indptr, indices, damping=0.85, tolerance=1e-10):
    n = len(indptr) - 1
    rank = np.full(n, 1 / n)
    turns, change = 0, 1.0
    while change >= tolerance:
        new = np.zeros(n)
        lost = 0.0
        for page in range(n):
            links = indptr[page + 1] - indptr[page]
            if links == 0:
                lost += rank[page]
            for k in range(indptr[page], indptr[page + 1]):
                new[indices[k]] += rank[page] / links
        change = 0.0
        for page in range(n):
            new[page] = damping * (new[page] + lost / n) + (1 - damping) / n
            change += abs(new[page] - rank[page])
        rank = new
        turns += 1
    return rank, turns


def web(n, links, rng):
    """A graph in which few pages have most links."""
    popular = (n * rng.random(links * n) ** 3).astype(np.int64)
    source = rng.integers(0, n, links * n)
    ones = np.ones(len(source))
    graph = sparse.csr_array((ones, (source, popular)), shape=(n, n))
    graph.data[:] = 1.0
    return graph


def main(n=50_000, links=8):
    """The ranks by SciPy's matrix and by hand, and how many turns each took."""
    graph = web(n, links, np.random.default_rng(10))
    rank, turns = pagerank(graph)
    other, its_turns = by_hand(graph.indptr, graph.indices)
    return rank, other, turns, its_turns


def picture(ax):
    rank, *_ = main(2000)
    ax.loglog(np.arange(1, len(rank) + 1), np.sort(rank)[::-1])
    ax.set_xlabel("place")
    ax.set_ylabel("rank")
