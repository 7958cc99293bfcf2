"""Programs with lists, dicts, sets and heaps that grow, unchanged in Python, in Numba, in jitney.

    python -m benchmarks.containers             all; or some, by name

A line for each: the best of several calls in alternation, in microseconds, and how many times faster
than Python and than Numba jitney is. Results are compared. Numba has no deque: queues are lists with a
first place. Without Numba that column is empty.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .kernels.__main__ import best, copied, repeated, same

Make = Callable[[np.random.Generator], tuple[Any, ...]]
PROGRAMS: list[tuple[Callable[..., Any], Make]] = []


def program(make: Make) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter the decorated function into the table, with what makes its arguments."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append((function, make))
        return function

    return enter


def graph(r: np.random.Generator, n: int = 2000, degree: int = 5) -> tuple[Any, ...]:
    return np.arange(0, degree * n + 1, degree), r.integers(0, n, degree * n)


@program(graph)
def breadth_first(first, neighbours):
    found = {0: 0}
    queue = [0]
    k = 0
    while k < len(queue):
        u = queue[k]
        k += 1
        for e in range(first[u], first[u + 1]):
            v = int(neighbours[e])
            if v not in found:
                found[v] = found[u] + 1
                queue.append(v)
    total = 0
    for u in queue:
        total += found[u]
    return total


@program(lambda r: (*graph(r), r.random(10_000)))
def dijkstra(first, neighbours, lengths):
    n = len(first) - 1
    distance = np.full(n, np.inf)
    distance[0] = 0.0
    heap = [(0.0, 0)]
    while len(heap) > 0:
        d, u = heapq.heappop(heap)
        if d <= distance[u]:
            for e in range(first[u], first[u + 1]):
                v = neighbours[e]
                if d + lengths[e] < distance[v]:
                    distance[v] = d + lengths[e]
                    heapq.heappush(heap, (float(distance[v]), int(v)))
    return distance


@program(lambda r: (r.zipf(1.5, 20_000) % 1000,))
def word_counts(words):
    counts = {0: 0}
    for w in words:
        k = int(w)
        counts[k] = counts.get(k, 0) + 1
    most = 0
    for k in counts:
        most = max(most, counts[k])
    return most, len(counts)


@program(lambda r: (3000,))
def memo(n):
    steps = {1: 0}
    longest = 0
    for start in range(2, n):
        x, taken = start, 0
        while x not in steps:
            x = x // 2 if x % 2 == 0 else 3 * x + 1
            taken += 1
        steps[start] = steps[x] + taken
        longest = max(longest, steps[start])
    return longest


@program(lambda r: (20_000,))
def sieve(n):
    crossed = [False] * n
    primes = [2]
    for k in range(3, n, 2):
        if not crossed[k]:
            primes.append(k)
            for j in range(k * k, n, 2 * k):
                crossed[j] = True
    return len(primes), primes[-1]


@program(lambda r: (np.concatenate([np.full(51, -1), r.integers(0, 4, 20_000)]),))
def stack_machine(code):
    stack = [1]
    for c in code:
        if c == -1 or len(stack) < 2:
            stack.append(len(stack))
        elif c == 0:
            stack.append(stack[-1])
        else:
            b = stack.pop()
            a = stack.pop()
            stack.append((a + b if c == 1 else a - b if c == 2 else a * b) % 1009)
    return len(stack), stack[-1]


@program(lambda r: (r.integers(0, 3000, (4000, 2)),))
def union_find(pairs):
    parent = [0]
    for k in range(1, 3000):
        parent.append(k)
    joined = 0
    for k in range(len(pairs)):
        a, b = int(pairs[k, 0]), int(pairs[k, 1])
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a != b:
            parent[a] = b
            joined += 1
    return joined


def main() -> int:
    try:
        from numba import njit
    except ImportError:
        njit = None
    wrong = False
    print(f"{'':16}{'Python':>10}{'Numba':>10}{'jitney':>10}{'x Python':>10}{'x Numba':>9}")
    for function, make in PROGRAMS:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        args = make(np.random.default_rng(0))
        forms = [function, jt.jit(function), *([njit(function)] if njit else [])]
        results = [form(*copied(args)) for form in forms]
        right = all(same(result, results[0]) for result in results)
        wrong |= not right
        times = best([repeated(form, args) for form in forms], time.process_time)
        plain, ours, theirs = (*times, float("nan"))[:3]
        row = f"{plain * 1e6:10.1f}{theirs * 1e6:10.1f}{ours * 1e6:10.1f}"
        row += f"{plain / ours:10.1f}{theirs / ours:9.2f}"
        print(f"{function.__name__:16}{row}{'' if right else '   WRONG'}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
