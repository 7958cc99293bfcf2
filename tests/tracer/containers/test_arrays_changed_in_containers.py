"""Arrays in containers that grow are assigned into where they lie: right, or refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

OUTSIDE = np.array([1.0, 2.0])


def some(x: Any) -> list[Any]:
    rows = []
    for v in x:
        if v > 0:
            rows.append(np.array([v, v * 2]))
    return rows


def counted(x: Any) -> Any:
    counts: Any = defaultdict(lambda: np.zeros(3))
    for i, v in enumerate(x):
        counts[int(abs(v))][i % 3] += v
    return dict(counts), sum(c.sum() for c in counts.values())


def means(x: Any) -> Any:
    sums: dict[int, Any] = {}
    numbers: dict[int, int] = {}
    for v in x:
        k = int(abs(v)) % 2
        if k in sums:
            sums[k] += np.array([v, 1.0])
            numbers[k] += 1
        else:
            sums[k] = np.array([v, 1.0])
            numbers[k] = 1
    return {k: sums[k] / numbers[k] for k in sums}, sums


def in_a_loop(x: Any) -> Any:
    rows = some(x)
    for row in rows:
        row[1] = row[0] * 2
        row *= 3
    for i in range(len(rows)):
        for j in range(2):
            rows[i][j] += rows[0][0]
    return rows


def by_two_names(x: Any) -> Any:
    rows = some(x)
    rows.append(rows[0])
    rows[0][1] = 7
    swapped = [row for row in rows if len(row) == 2]
    swapped[0], swapped[1] = swapped[1], swapped[0]
    swapped[0][0] = 77
    found = {}
    for row in rows:
        found[int(row[0])] = row
    for k in found:
        found[k][0] += 1
    return rows, swapped, rows[1:], found


def copies(x: Any) -> Any:
    rows = some(x)
    before = np.array(rows)
    rows[0][0] = -1
    after, others = np.array(rows), [row.copy() for row in rows]
    rows[0][0] = -2
    others[1][1] = 5
    total = np.zeros(2)
    for row in rows:
        total += row
    rows[0] += total
    return before, after, rows, others, total


def large(x: Any) -> Any:
    tables: dict[int, Any] = {}
    for v in x:
        k = int(abs(v)) % 2
        if k not in tables:
            tables[k] = np.zeros(40)
        tables[k] += v
        tables[k][3:5] *= 2
    return tables


def steps(x: Any) -> Any:
    weights, moments = [], []
    for v in x:
        if v > -5:
            weights.append(np.array([v, v]))
            moments.append(np.array([1.0, 0.5]))
    for _ in range(3):
        for i in range(len(weights)):
            weights[i] -= 0.1 * moments[i]
            moments[i] *= 0.9
    return weights, moments


class Particle:
    def __init__(self, x: Any, v: Any) -> None:
        self.x, self.v = x, v


def moved(x: Any) -> Any:
    particles = []
    for v in x:
        if v > 0:
            particles.append(Particle(np.array([v, 0.0]), np.zeros(2)))
    for _ in range(5):
        for p in particles:
            p.v += np.array([0.1, 0.2])
            p.x += p.v * 0.5
    return [p.x for p in particles], [p.v for p in particles]


def called(x: Any) -> Any:
    rows = some(x)

    def add(row: Any, k: int) -> None:
        row[k] += 10

    for i in range(len(rows)):
        add(rows[i], 0)
    return rows


@pytest.mark.parametrize(
    "function", [counted, means, in_a_loop, by_two_names, copies, large, steps, moved, called]
)
def test_they_are_changed_in_place(function: Callable[..., Any]) -> None:
    compiled = jt.jit(function)
    for x in (np.array([1.0, -2, 3, 4.5]), np.array([2.0, 1, -7, 5])):
        assert repr(compiled(x)) == repr(function(x))


def two_reads(x: Any) -> Any:
    rows = some(x)
    a, b = rows[0], rows[0]
    a[0] = 9
    return b[0]


def a_view(x: Any) -> Any:
    rows = some(x)
    part = rows[0][1:]
    rows[0][1] = 50
    return part


def rows_of_a_matrix(x: Any) -> Any:
    m, rows = np.zeros((4, 2)), []
    for i in range(4):
        if x[i] > 0:
            rows.append(m[i])
    rows[0][0] = 5
    return m


def through_a_loop(x: Any) -> Any:
    rows = some(x)
    best = rows[0]
    for i in range(len(x)):
        if i < len(rows) and rows[i][0] > best[0]:
            best = rows[i]
    best[1] = 100
    return rows


def put_and_changed(x: Any) -> Any:
    rows = []
    for v in x:
        row = np.zeros(2)
        if v > 0:
            rows.append(row)
        row[1] = 7
    return rows


def anybodys(x: Any) -> Any:
    rows = []
    for v in x:
        if v > 0:
            rows.append(OUTSIDE)
    rows[0][0] = 5
    return rows


def somebodys(x: Any) -> Any:
    known, rows = np.array([1.0, 2.0]), []
    for v in x:
        if v > 0:
            rows.append(known)
    rows[0][0] = 5
    return rows, known


@pytest.mark.parametrize(
    "function",
    [two_reads, a_view, rows_of_a_matrix, through_a_loop, put_and_changed, anybodys, somebodys],
)
def test_others_that_would_have_to_see_it_are_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(jt.errors.OuterMutationError, match="which the container would have to see"):
        jt.jit(function)(np.array([1.0, -2, 3, 4.5]))
