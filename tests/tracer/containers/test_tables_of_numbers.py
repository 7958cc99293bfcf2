"""Lists of lists of numbers as arguments: one array, and lists to the function and its caller."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(7)
N: list[list[int]] = RNG.integers(0, 9, (4, 5)).tolist()
F: list[list[float]] = RNG.uniform(-2, 2, (4, 5)).tolist()
S: list[list[float]] = RNG.uniform(1, 2, (4, 4)).tolist()
B: list[list[int]] = (RNG.random((5, 5)) < 0.5).astype(int).tolist()
X: list[list[np.float64]] = [list(row) for row in np.array(F)]
CASES: list[tuple[Callable[..., Any], tuple[Any, ...], bool]] = []


def given(*arguments: tuple[Any, ...], packed: bool = True) -> Callable[[Any], Any]:
    """Cases, and whether the table is one array for them."""

    def add(function: Any) -> Any:
        CASES.extend((function, args, packed) for args in arguments)
        return function

    return add


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b)
    if isinstance(a, float):
        return bool(np.isclose(a, b, rtol=1e-12))
    return bool(a == b)


@given((S,), ([[1] * 4 for _ in range(4)],))
def shortest_paths(d):
    n = len(d)
    for k in range(n):
        for i in range(n):
            for j in range(n):
                if d[i][k] + d[k][j] < d[i][j]:
                    d[i][j] = d[i][k] + d[k][j]
    return d


@given((F, S + S[:1]), (X, [[*row] for row in (*X, X[0])]))
def product(a, b):
    c = [[0.0] * len(b[0]) for _ in range(len(a))]
    for i in range(len(a)):
        for j in range(len(b[0])):
            s = 0.0
            for k in range(len(b)):
                s += a[i][k] * b[k][j]
            c[i][j] = s
    return c, [
        [sum(x * y for x, y in zip(r, c, strict=True)) for c in zip(*b, strict=True)] for r in a
    ]


@given((B, 2, 2, 7))
def flood(g, i, j, v):
    old, stack, n = g[i][j], [(i, j)], 0
    while stack:
        a, b = stack.pop()
        if 0 <= a < len(g) and 0 <= b < len(g[0]) and g[a][b] == old:
            g[a][b] = v
            n += 1
            stack += [(a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)]
    return n


@given((S,), (B,), ([[x > 0 for x in row] for row in B],))
def transposed(g):
    for i in range(len(g)):
        for j in range(i + 1, len(g)):
            g[i][j], g[j][i] = g[j][i], g[i][j]
    return g


@given((N, 2), (F, -1), (X, 1))
def rows(d, k):
    s = 0
    for i, row in enumerate(d):
        for j, x in enumerate(row):
            s += x * (i - j)
        row[0] = row[1]
    row = d[k]
    row[1] = row[0] + row[2]
    other = row
    other[2] = d[k][1]
    return s, len(d), len(row), row[-1], [x for r in reversed(d) for x in r]


@given((N,), (F,))
def folds(d):
    columns = [sum(c) for c in zip(*d, strict=True)]
    return (
        sum(map(sum, d)),
        max(map(max, d)),
        min(min(r) for r in d),
        columns,
        any(3 in r for r in d),
    )


@given((N,), (F,))
def copies(d):
    out = [row[:] for row in d]
    for i in range(len(out)):
        for j in range(1, len(out[0])):
            out[i][j] = d[i][j - 1]
    own = copy.deepcopy(d)
    own[0][0] = d[1][1]
    return out, own, [[x * 2 for x in r] for r in d], np.array(d), np.sum(d, axis=0), d[0] + d[1]


@given((N, copy.deepcopy(N)), (N, F), (N, [*map(list, N[:3]), [1] * 5]))
def compared(a, b):
    return a == b, a != b, a < b, a[1] == b[1], a is b, a == a


@given((N,), (F,))
def rows_in_lists(d):
    rest = d[1:]
    e = list(d)
    e[0] = [1, 2]
    e[1][0] = e[2][1]
    first, *_ = d
    first[3] = rest[0][0]
    return len(e), e[0]


@given((N, 1, 4), (N, -4, -5), (N, 4, 0), (N, 0, 5), (N, -5, 0), (N, 0, -6))
def a_place(d, i, j):
    d[0][0] = 7
    return d[i][j]


# What an array cannot do


@given((N,), (F,), packed=False)
def swapped(d):
    d[0], d[1] = d[1], d[0]
    return d


@given((S,), packed=False)
def determinant(a):
    n, d = len(a), 1.0
    for c in range(n):
        p = c
        for r in range(c + 1, n):
            if abs(a[r][c]) > abs(a[p][c]):
                p = r
        if p != c:
            a[c], a[p] = a[p], a[c]
            d = -d
        d *= a[c][c]
        for r in range(c + 1, n):
            f = a[r][c] / a[c][c]
            for k in range(c, n):
                a[r][k] -= f * a[c][k]
    return d


@given((N,), packed=False)
def put_in(d):
    d[1] = [x + 1 for x in d[0]]
    d.append([1, 2])
    d[0].append(5)


@given((N,), packed=False)
def turned(d):
    d.reverse()


@given((N,), packed=False)
def ordered(d):
    return sorted(d), max(d), d.index(d[1]), d[2] in d, [1] in d


@given((N,), packed=False)
def which(d):
    return d[0] is d[0], d[0] is d[1]


@given((N,), packed=False)
def a_row(d):
    return d[1]


@given((N,), packed=False)
def of_another_class(d):
    d[1][1] = 0.5


@given((N,), packed=False)
def as_a_shape(d):
    return np.zeros(d[0][0] + 1)


@pytest.mark.parametrize(
    ("function", "args", "packed"), CASES, ids=lambda x: getattr(x, "__name__", "")
)
def test_a_table_is_what_it_is_in_python(function: Any, args: Any, packed: bool) -> None:
    given, compiled = copy.deepcopy(args), jt.jit(function)
    try:
        wanted, error = function(*given), None
    except IndexError as raised:
        wanted, error, given = None, raised, args
    for _ in range(2):
        mine = copy.deepcopy(args)
        held = [list(x) for x in mine if type(x) is list]
        if error is not None:
            with pytest.raises(IndexError):
                compiled(*mine)
        else:
            found = compiled(*mine)
            assert same(found, wanted), (found, wanted)
            assert wanted is not given[0] or found is mine[0]
        assert same(list(mine), list(given)), (mine, given)
        if packed:  # the rows are the caller's own
            tables = [x for x in mine if type(x) is list]
            assert all(
                a is b for x, y in zip(tables, held, strict=True) for a, b in zip(x, y, strict=True)
            )
    if error is None:
        assert ("lists of" in str(compiled.cache_info())) == packed


def test_the_interpreter_agrees() -> None:
    for function, args in ((shortest_paths, [S]), (flood, [B, 2, 2, 7]), (copies, [N])):
        given, mine = copy.deepcopy(args), copy.deepcopy(args)
        wanted = function(*given)
        assert same(jt.jit(function, backend="interpreter")(*mine), wanted)
        assert same(mine, given)


def test_an_error_leaves_the_table_as_it_was() -> None:
    @jt.jit
    def change(d, i):
        d[0][0] = 5
        return d[i][0] // d[1][0]

    for values, error in (
        ([[1] * 5 for _ in range(4)], IndexError),
        ([[0] * 5 for _ in range(4)], ZeroDivisionError),
    ):
        mine = copy.deepcopy(values)
        with pytest.raises(error):
            change(mine, 9 if error is IndexError else 2)
        assert mine == values

    @jt.jit
    def total(d):
        s = 0
        for row in d:
            for x in row:
                s += x
        return s

    with pytest.raises(OverflowError):
        total([[1 << 62] * 5 for _ in range(4)])


def test_tables_that_share_rows() -> None:
    def change(a, b):
        a[0][0] = 55
        return b[0][0]

    compiled = jt.jit(change)
    long = [[1] * 20, [2] * 20]
    for make in (
        lambda d: (d, d),
        lambda d: (d, [d[0], d[1][:]]),
        lambda d: (d, d[::-1]),
        lambda d: (d, [d])[:1] * 2,
    ):
        for _ in range(2):
            mine, given = copy.deepcopy(long), copy.deepcopy(long)
            assert compiled(*make(mine)) == change(*make(given))
            assert mine == given


def test_lists_that_are_no_tables() -> None:
    @jt.jit
    def total(d):
        d[0][0] = d[1][0]
        return sum(sum(row) for row in d)

    for values in (
        [[1, 2], [3, 4]],
        [[1.5] * 9, [1] * 9],
        [[1] * k for k in range(1, 8)],
        N,
        F,
    ):
        for _ in range(2):
            mine, given = copy.deepcopy(values), copy.deepcopy(values)
            assert same(total(mine), total.__wrapped__(given))
            assert same(mine, given)


def waves(u, before, t, stop):
    """A table of its own takes the place of an argument in each iteration."""
    while t < stop:
        t += 1
        new = [[0.0] * len(u[0]) for _ in range(len(u))]
        for i in range(1, len(u) - 1):
            for j in range(1, len(u[0]) - 1):
                new[i][j] = 2 * u[i][j] - before[i][j] + u[i + 1][j] * u[i][j - 1]
        before = u
        u = new
    return u


def doubled(u, before, t, stop):
    new = [[0.0] * len(u[0]) for _ in range(len(u))]
    for i in range(len(u)):
        for j in range(len(u[0])):
            new[i][j] = 2 * u[i][j]
    if t < stop:
        u = new
    return sum([sum(row) for row in u]), u


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (shortest_paths, lambda n: ([[1] * n for _ in range(n)],)),
        (waves, lambda n: (_grid(n), _grid(n), 0, 2)),
        (doubled, lambda n: (_grid(n), None, 0, 2)),
    ],
)
def test_the_program_does_not_grow_with_the_table(function: Any, args: Any) -> None:
    lines = [str(jt.jit(function).trace(*args(n))) for n in (20, 30)]
    assert len(lines[0].splitlines()) == len(lines[1].splitlines())
    whole = [[*range(6)] for _ in range(6)]
    for start in (args(6), (whole, *args(6)[1:])):
        mine, given = copy.deepcopy(start), copy.deepcopy(start)
        assert same(jt.jit(function)(*mine), function(*given))
        assert same(mine, given)


def _grid(n: int) -> list[list[float]]:
    return [[0.5 * i - j for j in range(n)] for i in range(n)]
