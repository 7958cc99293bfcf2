"""Long lists of numbers as arguments: one array each, and a list to the function and its caller."""

from __future__ import annotations

import bisect
import copy
import heapq
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(5)
F: list[float] = RNG.uniform(-2, 2, 24).tolist()
G: list[float] = RNG.uniform(-2, 2, 24).tolist()
N: list[int] = RNG.integers(-9, 9, 24).tolist()
B: list[bool] = (RNG.random(24) < 0.5).tolist()
X: list[np.float64] = list(np.array(F))
M: list[np.int64] = list(np.array(N))
CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []


def given(*arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    def add(function: Any) -> Any:
        CASES.extend((function, args) for args in arguments)
        return function

    return add


def same(a: Any, b: Any) -> bool:
    """Equal, of the same classes, floats up to rounding."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, equal_nan=True)
    if isinstance(a, (float, np.floating)):
        return bool(np.isclose(a, b, rtol=1e-12, equal_nan=True))
    return bool(a == b)


# Reading


@given((F,), (N,), (B,), (X,), (M,))
def places(items):
    return items[0], items[-1], items[len(items) // 2], len(items), bool(items)


@given((N, 3), (N, -3), (N, np.int64(2)), (F, 23))
def a_place(items, i):
    return items[i]


@given((F,), (N,))
def slices(items):
    return items[1:4], items[::-1], items[:], items[5:2], items[-3:], items.copy(), list(items)


@given((F, 2, 5), (N, -4, 100))
def a_slice(items, low, high):
    return items[low:high]


@given((N, 4), (N, 99), (F, 0.5), (B, True), (N, 2.0), (F, 1), (N, 2.5))
def is_there(items, x):
    return x in items, x not in items, items.count(x)


@given((F,), (N,), (B,), (X,), (M,))
def folds(items):
    return sum(items), min(items), max(items), any(items), all(items)


@given((F,), (N,), (X,), (M,))
def orders(items):
    by = sorted(items, key=lambda v: -v)
    return sorted(items), sorted(items, reverse=True), by, items.index(items[7])


@given((F,), (N,), (X,), (M,))
def of_numpy(items):
    a = np.asarray(items)
    return np.array(items), a @ a, np.sum(items), np.sin(items), np.cumsum(items), a.mean()


@given((N,))
def of_a_dtype(items):
    return np.array(items, dtype=np.float32), np.diff(items), np.sort(items), np.max(items)


@given((F,))
def with_arrays(items):
    x = np.arange(24.0)
    return x * items, items * x, x + items, x < items, x[::-1] @ np.array(items)


@given((F, G), (N, N[::-1]))
def pairs(a, b):
    s = 0.0
    for x, y in zip(a, b, strict=False):
        s += x * y
    for i, x in enumerate(a):
        s += i * x
    for x in reversed(b):
        s = 0.5 * s + x
    return s


@given((F,), (N,))
def comprehensions(items):
    return [x * 2 for x in items], [x for x in items if x > 0], sum(x * x for x in items)


@given((F,), (N,))
def comprehensions_by_class(items):
    mixed = [x if x > 0 else 0 for x in items]
    rows = [(i, x) for i, x in enumerate(items)], [[x * k for k in range(3)] for x in items]
    return (
        mixed,
        [x > 0 for x in items],
        [x // 3 for x in items],
        [np.sqrt(x * x) for x in items],
        rows,
    )


@given((F,))
def comprehensions_that_change_things(items):
    seen, count = [], [0]

    def numbered(x):
        count[0] += 1
        seen.append(x)
        items[0] = items[0] + x
        return x * count[0]

    return [numbered(x) for x in items], seen, count[0]


@given((F, 3))
def comprehensions_in_loops(items, n):
    w = [0.0 for _ in items]
    while n > 0:
        w = [a + 0.1 * (x - a) for a, x in zip(w, items, strict=False)]
        n -= 1
    return w, np.array(w).mean()


@given((F, G), (N, N))
def joins(a, b):
    return a + b, a * 2, 2 * b, a[:3] + b


@given((F, N), (X, F), (M, N))
def a_mixture(a, b):
    return a + b


@given((F,), (N,), (X,), (M,))
def classes(items):
    x = items[0]
    return type(items) is list, isinstance(items, list), type(x) is int, isinstance(x, float)


@given((N,), (F,))
def comparisons(items):
    return items == items, items == [1, 2], items != list(items), items < [100], items is items


@given((N,))
def in_tables(items):
    counts = {}
    for x in items:
        counts[x] = counts.get(x, 0) + 1
    return counts, len(set(items))


@given((F,), (N,))
def unpacked(items):
    x, *rest = items
    return x, len(rest), max(*items), tuple(items)


@given((N,))
def a_length(items):
    return np.zeros(len(items)), np.zeros(abs(items[0]) + 1)


@given(((F, N),), ([F, G],))
def in_containers(both):
    return sum(both[0]) + sum(both[1])


@given((F,))
def gradients(items):
    inside = jt.grad(lambda w: sum([w * x for x in items]))(2.0)
    return inside, jt.grad(lambda v: v[0] * v[1] + v[2])(items)


@given((N, 5))
def two_that_make(items, target):
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            if items[i] + items[j] == target:
                return [i, j]
    return None


@given((F,))
def kalman(items):
    x, p, out = 0.0, 1.0, []
    for z in items:
        p += 0.1
        k = p / (p + 0.2)
        x += k * (z - x)
        p *= 1 - k
        out.append(x)
    return np.array(out)


# Writing


@given((N,), (F,), (X,), (M,))
def doubled(items):
    for i in range(len(items)):
        items[i] = items[i] * 2
    return items


@given((F,), (N,), (X,), (M,))
def bubble(items):
    n = len(items)
    for i in range(n):
        for j in range(n - 1 - i):
            if items[j] > items[j + 1]:
                items[j], items[j + 1] = items[j + 1], items[j]


@given((F,), (N,))
def in_order(items):
    items.sort()
    return items[0], bisect.bisect_left(items, 1)


@given((N,), (F,), (X,), (M,))
def backwards(items):
    items.sort(reverse=True)
    items.reverse()
    return items


@given((F,))
def of_names(items):
    other = items
    other[0] = 9.0
    copied = items.copy()
    copied[1] = 8.0
    return items, other, copied, other is items, copied is items


@given((F,))
def in_branches(items):
    if items[0] > 0:
        items[1] = 5.0
    else:
        items[2] = 6.0


@given((F,))
def in_helpers(items):
    def swap(items, i, j):
        items[i], items[j] = items[j], items[i]

    for i in range(10):
        swap(items, i, i + 1)


@given((N,), (M,))
def of_another_class(items):
    items[2] = 0.5


@given((F,))
def of_numpys_class(items):
    items[2] = np.sqrt(2.0)


@given(({"x": F, "y": [1, 2]},))
def in_a_dict(parts):
    parts["x"][0] = 1.0
    return parts["x"][1] + parts["y"][0]


# Growing and shrinking


@given((N,), (F,), (X,), (M,))
def grown(items):
    for _ in range(5):
        items.append(items[-2])
    return items, len(items)


@given((N,))
def emptied(items):
    s = 0
    while items:
        s += items.pop()
    return s


@given((N, 3))
def changed_inside(items, i):
    items.insert(i, 5)
    items.insert(0, 1)
    del items[2]
    x = items.pop(0), items.pop(), items.pop(i)
    items.extend([1, 2, 3])
    items += items[:2]
    items[2:5] = [9]
    return x


@given((N,))
def a_heap(items):
    heapq.heapify(items)
    heapq.heappush(items, 3)
    return heapq.heappop(items)


@given((N,))
def refilled(items):
    items.clear()
    items.append(3)


@given((N,))
def quicksort(items):
    stack = [(0, len(items) - 1)]
    while stack:
        low, high = stack.pop()
        if low < high:
            pivot, i = items[high], low - 1
            for j in range(low, high):
                if items[j] <= pivot:
                    i += 1
                    items[i], items[j] = items[j], items[i]
            items[i + 1], items[high] = items[high], items[i + 1]
            stack.append((low, i))
            stack.append((i + 2, high))
    return items


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda x: getattr(x, "__name__", ""))
def test_a_list_is_what_it_is_in_python(function: Any, args: tuple[Any, ...]) -> None:
    given, compiled = copy.deepcopy(args), jt.jit(function)
    wanted = function(*given)
    for _ in range(3):  # traced, then natively
        mine = copy.deepcopy(args)
        found = compiled(*mine)
        assert same(found, wanted), (found, wanted)
        assert same(list(mine), list(given)), (mine, given)
        if wanted is given[0]:
            assert found is mine[0]


@pytest.mark.parametrize("function", [doubled, grown, kalman, joins])
def test_the_interpreter_agrees(function: Any) -> None:
    args = [F, G] if function is joins else [F]
    given, mine = copy.deepcopy(args), copy.deepcopy(args)
    wanted = function(*given)
    assert same(jt.jit(function, backend="interpreter")(*mine), wanted)
    assert same(mine, given)


def test_items_that_are_equal_stay_the_same_objects() -> None:
    @jt.jit
    def change(items):
        items[3] = items[3] + 1.0

    for _ in range(3):
        items = [float(k) for k in range(20)]
        before = list(items)
        change(items)
        assert [x is y for x, y in zip(items, before, strict=True)] == [k != 3 for k in range(20)]


def test_two_names_for_one_list() -> None:
    def first(a, b):
        a[0] = 5.0
        return b[0] + a[1]

    def longer(a, b):
        a.append(5.0)
        return len(b)

    def rows(m):
        m[0][0] = 1.5
        return m[1][0]

    for function in (first, longer):
        compiled = jt.jit(function)
        for _ in range(2):
            one, two = list(F), list(F)
            assert compiled(one, one) == function(two, two)
            assert one == two
            assert compiled(list(F), list(G)) == function(list(F), list(G))
    compiled = jt.jit(rows)
    for _ in range(2):
        row = list(F)
        assert compiled([row, row]) == 1.5
        assert compiled([list(F), list(G)]) == G[0]


def test_numbers_of_python_among_numpys_are_numpys() -> None:
    @jt.jit
    def change(items):
        items[2] = 0.5
        items[3] = 7

    for _ in range(3):
        items = list(X)
        change(items)
        assert items == [*X[:2], 0.5, 7, *X[4:]]
        assert set(map(type, items)) == {np.float64}


def test_an_error_leaves_the_list_as_it_was() -> None:
    @jt.jit
    def change(items, i):
        items[0] = 1.0
        items.append(2.0) if i < 0 else None
        return items[i]

    for i in (100, -100, 100):
        items = list(F)
        with pytest.raises(IndexError):
            change(items, i)
        assert items == F
    assert change(items, -1) == 2.0
    assert items == [1.0, *F[1:], 2.0]


def test_numbers_of_python_are_checked() -> None:
    @jt.jit
    def total(items):
        s = 0
        for x in items:
            s += x
        return s

    @jt.jit
    def inverse(items):
        return 1 / items[3]

    assert total([1 << 62, -(1 << 62)] * 20) == 0
    with pytest.raises(OverflowError):
        total([1 << 62] * 20)
    with pytest.raises(ZeroDivisionError):
        inverse([0] * 20)


def test_lists_of_other_kinds() -> None:
    @jt.jit
    def total(items):
        return sum(items)

    for items in (F, N, [1, 2.5] * 12, [1, 2, 3], [2**70] * 17, [np.float64(x) for x in F], F[:20]):
        for _ in range(2):
            assert same(total(items), sum(items))


def test_methods() -> None:
    class Meter:
        def __init__(self) -> None:
            self.total, self.kept = 0.0, None

        def add(self, items):
            for x in items:
                self.total += x
            items[0] = 0.0
            return self.total

        def keep(self, items):
            self.kept = items
            return items[0]

    add, keep = jt.jit(Meter.add), jt.jit(Meter.keep)
    one, two = Meter(), Meter()
    for _ in range(3):
        mine, given = list(F), list(F)
        assert add(one, mine) == pytest.approx(two.add(given))
        assert mine == given
        assert keep(one, mine) == given[0]
        assert one.kept is mine


def test_the_program_does_not_grow_with_the_list() -> None:
    def filtered(items, a):
        y = 0.0
        for i in range(len(items)):
            y = a * y + items[i]
            items[i] = y
        return y

    def spread(items):
        mean = sum(items) / len(items)
        return sum([(x - mean) ** 2 for x in items]) / len(items)

    for function, args in ((filtered, (0.9,)), (spread, ())):
        lines = [str(jt.jit(function).trace([0.5] * n, *args)) for n in (100, 10_000)]
        assert len(lines[0].splitlines()) == len(lines[1].splitlines())


def of_a_mask(x: Any, n: Any) -> Any:
    near = np.where(x > 0)[0]
    seeds = list(near)
    seeds.extend(x[:n].astype(int))
    total = 0
    while seeds:
        total += seeds.pop()
    return total


def grown_by_parts(x: Any, n: Any) -> Any:
    xs, ys = [1.5], []
    xs += list(x[:n])
    for i in range(n):
        ys.extend(np.nonzero(x > x[i])[0])
    return xs, ys, x[x > 0].tolist(), (x[:n] > 0).tolist()


def made_of_parts(x: Any, n: Any) -> Any:
    part = x[:n]
    return sorted(part), sorted(set((part * 4).astype(int))), {int(v): 1 for v in part}, list(part)


def regions(x: Any, n: Any) -> Any:
    """Groups of neighbours, as clustering by density finds them."""
    labels, group = np.full(len(x), -1), 0
    for i in range(len(x)):
        near = np.where(np.abs(x - x[i]) <= 0.4)[0]
        if labels[i] != -1 or len(near) < n:
            continue
        seeds = list(near)
        while seeds:
            j = seeds.pop()
            if labels[j] == -1:
                labels[j] = group
                beside = np.where(np.abs(x - x[j]) <= 0.4)[0]
                if len(beside) >= n:
                    seeds.extend(beside)
        group += 1
    return labels, group


@pytest.mark.parametrize("f", [of_a_mask, grown_by_parts, made_of_parts, regions])
def test_lists_of_arrays_whose_length_is_a_value(f: Any) -> None:
    compiled = jt.jit(f)
    for n in (3, 5):
        for x in (np.linspace(-2, 3, 9), np.array([3.25, 0.5, -1.0, 3.0, 0.75])):
            assert repr(compiled(x, n)) == repr(f(x, n))
