"""Functions that call themselves and change what lives outside: arrays, attributes, variables, lists."""

import copy
import math
import sys
import threading

import numpy as np
import pytest

import jitney as jt


def run_both(function, arguments, compiled=None):
    """Call both twice; arguments and what they hold afterwards are compared, too."""
    compiled = compiled or jt.jit(function)
    for _ in range(2):
        one, other = copy.deepcopy(arguments), copy.deepcopy(arguments)
        expected, got = function(*one), compiled(*other)
        np.testing.assert_equal(got, expected)
        assert type(got) is type(expected)
        np.testing.assert_equal(other, one)
    return compiled


def is_native(compiled, *args):
    graph = str(compiled.trace(*args))
    return "recurse" in graph and "callback" not in str(compiled.explain(*args))


GRID = np.zeros((9, 9), np.int64)
GRID[3, 1:8] = GRID[3:7, 7] = 1


def fill(grid, i, j, old, new):
    if i < 0 or j < 0 or i >= grid.shape[0] or j >= grid.shape[1]:
        return
    if grid[i, j] != old:
        return
    grid[i, j] = new
    fill(grid, i + 1, j, old, new)
    fill(grid, i - 1, j, old, new)
    fill(grid, i, j + 1, old, new)
    fill(grid, i, j - 1, old, new)


def flooded(grid, i, j):
    fill(grid, i, j, grid[i, j], 2)
    return grid.sum()


def quicksort(a, low, high):
    if low < high:
        pivot, i = a[high], low
        for j in range(low, high):
            if a[j] <= pivot:
                a[i], a[j] = a[j], a[i]
                i += 1
        a[i], a[high] = a[high], a[i]
        quicksort(a, low, i - 1)
        quicksort(a, i + 1, high)


def sorted_in_place(a):
    quicksort(a, 0, len(a) - 1)


def merge_sort(a, other, low, high):
    if high - low <= 1:
        return
    middle = (low + high) // 2
    merge_sort(a, other, low, middle)
    merge_sort(a, other, middle, high)
    i, j = low, middle
    for k in range(low, high):
        if j >= high or (i < middle and a[i] <= a[j]):
            other[k] = a[i]
            i += 1
        else:
            other[k] = a[j]
            j += 1
    for k in range(low, high):
        a[k] = other[k]


def merged(a, n):
    merge_sort(a, np.empty_like(a), 0, n)
    return a


def queens(row, n, columns, up, down):
    if row == n:
        return 1
    found = 0
    for c in range(n):
        if not columns[c] and not up[row + c] and not down[row - c + n - 1]:
            columns[c] = up[row + c] = down[row - c + n - 1] = True
            found += queens(row + 1, n, columns, up, down)
            columns[c] = up[row + c] = down[row - c + n - 1] = False
    return found


def counted_queens(start, n=6):
    return queens(start, n, np.zeros(n, bool), np.zeros(2 * n - 1, bool), np.zeros(2 * n - 1, bool))


def find(parents, x):
    if parents[x] != x:
        parents[x] = find(parents, parents[x])
    return parents[x]


def united(edges, n):
    parents = np.arange(n)
    for a, b in edges:
        parents[find(parents, a)] = find(parents, b)
    return parents


def paths(maze):
    seen = np.zeros(maze.shape, int)

    def solve(x, y):
        if x == maze.shape[0] - 1 and y == maze.shape[1] - 1:
            seen[x, y] = 1
            return True
        if 0 <= x < maze.shape[0] and 0 <= y < maze.shape[1] and maze[x, y] and not seen[x, y]:
            seen[x, y] = 1
            if solve(x + 1, y) or solve(x, y + 1) or solve(x - 1, y) or solve(x, y - 1):
                return True
            seen[x, y] = 0
        return False

    return solve(0, 0), seen


MAZE = np.array([[1, 0, 0, 0], [1, 1, 0, 1], [0, 1, 0, 0], [1, 1, 1, 1]])
RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (flooded, (GRID, np.int64(0), np.int64(0))),
        (sorted_in_place, (RANDOM.normal(size=40),)),
        (sorted_in_place, (RANDOM.integers(0, 9, 200),)),
        (merged, (RANDOM.normal(size=100), np.int64(90))),
        (counted_queens, (np.int64(0),)),
        (united, (RANDOM.integers(0, 20, (15, 2)), 20)),
        (paths, (MAZE,)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_arrays_are_changed_in_their_place(function, arguments):
    compiled = run_both(function, arguments)
    assert is_native(compiled, *arguments)


def test_the_interpreter_runs_what_native_code_cannot():
    def spread(x, n):
        if n > 0:
            x[n] = np.sort(x * n)[n] + x[n - 1]
            spread(x, n - 1)

    def f(x, n):
        spread(x, n)
        return x.sum()

    run_both(f, (np.arange(100.0), np.int64(5)))
    run_both(f, (np.arange(6.0), np.int64(5)), jt.jit(f, backend="interpreter"))


class Graph:
    def __init__(self, adjacent):
        self.adjacent, self.seen = adjacent, np.zeros(len(adjacent), bool)
        self.count, self.deepest, self.order = 0, 0, []

    def visit(self, v, depth=0):
        self.seen[v] = True
        self.count += 1
        self.deepest = max(self.deepest, depth)
        self.order.append(v)
        for u in range(len(self.adjacent)):
            if self.adjacent[v, u] and not self.seen[u]:
                self.visit(u, depth + 1)

    def run(self, start):
        self.visit(start)
        return self.count, self.deepest


def test_methods_change_their_object():
    adjacent = RANDOM.random((12, 12)) < 0.2
    one, other = Graph(adjacent), Graph(adjacent)
    compiled = jt.jit(other.run)
    for start in (np.int64(0), np.int64(11)):
        assert compiled(start) == one.run(start)
        np.testing.assert_equal(other.seen, one.seen)
        assert (other.count, other.deepest, other.order) == (one.count, one.deepest, one.order)
        for graph in (one, other):
            graph.seen[:] = False


def moves(n):
    count, last = 0, None
    total = {"far": 0}

    def hanoi(n, a, b, c):
        nonlocal count, last
        if n > 0:
            hanoi(n - 1, a, c, b)
            count += 1
            total["far"] += abs(a - c)
            last = a, c
            hanoi(n - 1, b, a, c)

    hanoi(n, 0, 1, 2)
    return count, last, total["far"]


def test_variables_of_functions_around_and_items():
    run_both(moves, (np.int64(5),))


def searched(a, x, low, high):
    if low > high:
        return None
    middle = (low + high) // 2
    if a[middle] == x:
        return middle, a[middle] / 2
    if a[middle] < x:
        return searched(a, x, middle + 1, high)
    return searched(a, x, low, middle - 1)


def test_results_of_several_forms():
    for x in (33, 34):
        run_both(searched, (np.arange(0, 100, 3), np.int64(x), 0, np.int64(33)))


def root(x, guess):
    if abs(guess * guess - x) < 1e-9:
        return guess
    return root(x, (guess + x / guess) / 2)


def test_an_int_at_first_and_floats_later():
    for x, guess in ((2.0, 1), (4.0, 2), (2, 1)):
        compiled = jt.jit(root)
        assert repr(compiled(x, guess)) == repr(root(x, guess))


def smoothed(x, n):
    return x if n == 0 else smoothed(0.5 * (x + np.roll(x, 1)), n - 1)


def test_arrays_that_differ_from_call_to_call():
    compiled = run_both(smoothed, (np.arange(5.0), np.int64(3)))
    assert "recurse" in str(compiled.trace(np.arange(5.0), np.int64(3)))

    @jt.recursive
    def taking_turns(x, other):
        if x[0] > 0:
            x[0] -= 1
            taking_turns(other, x)

    with pytest.raises(jt.errors.OuterMutationError, match="same array at each call"):
        jt.jit(lambda x, other: taking_turns(x, other))(np.ones(3), np.ones(3))


@jt.recursive
def cumulative(n, m, x):
    if n == 0:
        return 0.0
    y = np.cumsum(x[:m] * n)
    z = np.zeros(70)
    for i in range(70):
        z[i] = n + i
    below = cumulative(n - 1, m, x)
    return y[n] + z[n] + below


def test_each_call_has_arrays_of_its_own():
    x = np.arange(100.0)
    compiled = jt.jit(lambda n, m, x: cumulative(n, m, x))
    assert is_native(compiled, np.int64(5), np.int64(50), x)
    assert compiled(np.int64(5), np.int64(50), x) == cumulative(5, 50, x)
    assert compiled(np.int64(9), np.int64(50), x) == cumulative(9, 50, x)


def test_calls_that_need_more_memory_than_the_stack_has():
    x = np.arange(100.0)
    f = jt.jit(lambda n, x: cumulative(n, np.int64(50), x))
    outcomes = []

    def deep():
        with pytest.raises(RecursionError, match="more memory than the stack has"):
            f(np.int64(9000), np.zeros(10_000))
        outcomes.append(f(np.int64(3), x))

    deep()
    thread = threading.Thread(target=deep)
    thread.start()
    thread.join()
    assert outcomes == [cumulative(3, 50, x)] * 2


def test_integers_of_pythons_do_not_wrap():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    f = jt.jit(factorial)
    assert f(20) == math.factorial(20)
    with pytest.raises(OverflowError, match=r"needs more than 64 bits"):
        f(25)


def test_two_of_one_name():
    def outer(n, x):
        def rec(k):
            def rec(j):
                if j > 0:
                    x[j] += k
                    rec(j - 1)

            if k > 0:
                rec(k)
                x[0] += 1
                inner(k - 1)

        inner = rec
        inner(n)
        return x

    run_both(outer, (np.int64(4), np.zeros(6)))


def test_a_failure_leaves_all_as_it_was():
    def down(x, n):
        x[n] = -1
        if x[n - 1] == 3:
            raise ValueError("three")
        down(x, n - 1)

    x = np.arange(10.0)
    with pytest.raises(ValueError, match="three"):
        jt.jit(down)(x, np.int64(8))
    np.testing.assert_array_equal(x, np.arange(10.0))


def shifted(a, i):
    if i >= len(a):
        return a[0]
    a[i] = a[i] / 2 + a[i - 1]
    return a[i] + shifted(a, i + 1)


def powers(z, n):
    return z if n <= 0 else powers(z * z + 0.3j, n - 1)


def test_types_that_are_stored_as_others():
    for dtype in (np.float16, np.float32, np.complex64, np.complex128):
        run_both(shifted, (np.arange(6).astype(dtype), np.int64(1)))
    run_both(powers, (0.2 + 0.1j, np.int64(9)))


def kept_rows(g, i):
    if i >= len(g):
        return 0.0
    row, before = g[i], g[0].copy()
    g[i, 0] += 1
    g[:i] += 1
    below = kept_rows(g, i + 1)
    result = below + row[0] - row.sum() + before.sum()
    g[0] = before
    return result


def test_views_see_what_calls_change_and_copies_do_not():
    for rows in (4, 40):
        run_both(kept_rows, (np.arange(3.0 * rows).reshape(rows, 3), np.int64(0)))


TABLE = np.zeros(6)


def counted_in_the_table(n):
    if n > 0:
        TABLE[n] += n
        counted_in_the_table(n - 1)


def test_a_global_array():
    def f(n):
        TABLE[:] = 1
        counted_in_the_table(n)
        return TABLE.sum()

    compiled = jt.jit(f)
    for n in (4, 2):
        assert compiled(np.int64(n)) == f(n)
    assert TABLE.tolist() == [1, 2, 3, 1, 1, 1]


def test_what_a_native_function_cannot_do_is_what_is_said():
    def walked(a, i):
        if a[i] < 0:
            raise ValueError("negative")
        return a[i] + walked(a, i + a[i])

    def f(a):
        try:
            return walked(a, 0)
        except (ValueError, RecursionError):
            return -2

    with pytest.raises(jt.errors.TransformError, match="a handler is there for RecursionError"):
        jt.jit(f)(np.array([1, 2, 9, -1]))


def test_the_depth_is_pythons_where_that_is_more():
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    with pytest.raises(RecursionError, match="more than 10000 calls"):
        jt.jit(lambda n: down(n[0]))(np.array([12_000]))
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(15_000)
    try:
        assert jt.jit(lambda n: down(n[0]))(np.array([12_000])) == 12_000
    finally:
        sys.setrecursionlimit(before)
