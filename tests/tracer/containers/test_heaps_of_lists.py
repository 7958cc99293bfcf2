"""Lists in heaps, and lists of lists in order: compared by what is in them."""

import heapq

import pytest

import jitney as jt


def heap(n):
    queue, out = [[0, 5]], []
    while queue and len(out) < n:
        d, u = heapq.heappop(queue)
        out.append((d, u))
        heapq.heappush(queue, [(u * 7) % 5, u + 1])
        heapq.heappush(queue, [(u * 3) % 4, u + 2])
    return out, queue


def ordered(n):
    rows = []
    for i in range(n):
        rows.append([(i * 7) % 5, i])
    down = sorted(rows, reverse=True)
    rows.sort()
    heapq.heapify(down)
    return rows, down


def in_tuples(n):
    queue = []
    for i in range(n):
        heapq.heappush(queue, ((i * 7) % 3, [i % 4, i]))
    return queue


@pytest.mark.parametrize(("function", "n"), [(heap, 12), (ordered, 9), (in_tuples, 9)])
def test_lists_are_compared_by_what_is_in_them(function, n):
    assert jt.jit(function)(n) == function(n)
