"""Programs whose containers grow in compiled loops: plain Python, compiled, interpreted."""

from __future__ import annotations

import bisect
import heapq
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

RNG = np.random.default_rng(0)
NODES = 60
DEGREES = RNG.integers(0, 6, NODES)
ROWS = np.concatenate([[0], np.cumsum(DEGREES)])
COLUMNS = RNG.integers(0, NODES, ROWS[-1])
WEIGHTS = RNG.random(ROWS[-1])
GRAPH = (ROWS, COLUMNS)
INTS = RNG.integers(0, 20, 80)

Program = tuple[Callable[..., Any], tuple[Any, ...]]
PROGRAMS: list[Program] = []


def program(*args: Any) -> Callable[[Any], Any]:
    def add(f: Any) -> Any:
        PROGRAMS.append((f, args))
        return f

    return add


@program(*GRAPH, 0)
def breadth_first(rows, columns, start):
    distance = np.full(len(rows) - 1, -1)
    distance[start] = 0
    queue = deque([start])
    while queue:
        u = queue.popleft()
        for k in range(rows[u], rows[u + 1]):
            v = columns[k]
            if distance[v] < 0:
                distance[v] = distance[u] + 1
                queue.append(v)
    return distance


@program(*GRAPH, WEIGHTS, 0)
def dijkstra(rows, columns, weights, start):
    distance = [float("inf")] * (len(rows) - 1)
    distance[start] = 0
    heap = [(0, start)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > distance[u]:
            continue
        for k in range(rows[u], rows[u + 1]):
            v, longer = columns[k], d + weights[k]
            if longer < distance[v]:
                distance[v] = longer
                heapq.heappush(heap, (longer, v))
    return distance


@program(200)
def primes(n):
    found = []
    for k in range(2, n):
        is_prime = True
        for p in found:
            if p * p > k:
                break
            if k % p == 0:
                is_prime = False
                break
        if is_prime:
            found.append(k)
    return found


@program(300)
def sieve(n):
    is_prime, found = [True] * (n + 1), []
    for i in range(2, n + 1):
        if is_prime[i]:
            found.append(i)
            for j in range(i * i, n + 1, i):
                is_prime[j] = False
    return found


@program(INTS)
def longest_consecutive(x):
    there, best = set(x), 0
    for v in there:
        if v - 1 not in there:
            k = v
            while k in there:
                k += 1
            best = max(best, k - v)
    return best


@program(50)
def collatz(n):
    lengths = {1: 1}
    best = where = 0
    for i in range(1, n):
        k, steps = i, 0
        while k not in lengths:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            steps += 1
        lengths[i] = lengths[k] + steps
        if lengths[i] > best:
            best, where = lengths[i], i
    return where, best, lengths


@program(INTS)
def words(x):
    plain, counter, default, asked = {}, Counter(), defaultdict(int), {}
    for v in x:
        plain[v] = plain.get(v, 0) + 1
        counter[v] += 1
        default[v % 7] += v
        if v in asked:
            asked[v] += 1
        else:
            asked[v] = 1
    return plain, counter, default, asked, max(plain.values()), counter.most_common(3)


@program(INTS)
def neighbours(x):
    around, after, order = defaultdict(set), defaultdict(lambda: defaultdict(int)), []
    for i in range(len(x)):
        around[i % 20].add(x[i])
        around[x[i]].add(i % 20)
        after[x[i] % 3][x[i - 1] % 4] += 1
    seen, stack = set(), [0]
    while stack:
        u = stack.pop()
        if u not in seen:
            seen.add(u)
            order.append(u)
            for v in around[u]:
                if v not in seen:
                    stack.append(v)
    return order, after


@program(12, 10)
def paths(n, m):
    memo = {}
    for i in range(n):
        for j in range(m):
            if i == 0 or j == 0:
                memo[(i, j)] = 1
            else:
                memo[(i, j)] = memo[(i - 1, j)] + memo[(i, j - 1)]
    return memo[(n - 1, m - 1)]


@program(40)
def union_find(n):
    parent = list(range(n))

    def find(x):
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    for i in range(n - 1):
        if i % 3 != 0:
            a, b = find(i), find(i + 1)
            if a != b:
                parent[a] = b
    roots = 0
    for i in range(n):
        if find(i) == i:
            roots += 1
    return roots


@program(*GRAPH)
def topological(rows, columns):
    n = len(rows) - 1
    left = [0] * n
    for u in range(n):
        for k in range(rows[u], rows[u + 1]):
            if columns[k] > u:
                left[columns[k]] += 1
    queue, order = deque(), []
    for u in range(n):
        if left[u] == 0:
            queue.append(u)
    while queue:
        u = queue.popleft()
        order.append(u)
        for k in range(rows[u], rows[u + 1]):
            v = columns[k]
            if v > u:
                left[v] -= 1
                if left[v] == 0:
                    queue.append(v)
    return order


@program(*GRAPH, 0)
def levels(rows, columns, start):
    seen, frontier, sizes = {start}, [start], []
    while frontier:
        sizes.append(len(frontier))
        following = []
        for u in frontier:
            for k in range(rows[u], rows[u + 1]):
                v = columns[k]
                if v not in seen:
                    seen.add(v)
                    following.append(v)
        frontier = following
    return sizes, seen


@program(*GRAPH, 0)
def lists_of_neighbours(rows, columns, start):
    n = len(rows) - 1
    neighbours = [[] for _ in range(n)]
    for u in range(n):
        for k in range(rows[u], rows[u + 1]):
            neighbours[u].append(columns[k])
    seen, stack, order = [False] * n, [(start, 0)], []
    while stack:
        u, depth = stack.pop()
        if seen[u]:
            continue
        seen[u] = True
        order.append((u, depth))
        for v in neighbours[u]:
            stack.append((v, depth + 1))
    return order, neighbours


@program(INTS)
def methods_of_lists(x):
    a = []
    for v in x:
        if v % 3 == 0:
            a.append(v)
        elif v % 3 == 1:
            a.insert(0, v)
        elif a:
            a.pop()
    a.reverse()
    a.sort()
    b = a[1:5]
    b.extend(a)
    del b[0]
    b.remove(b[2])
    c = a[::-2] + b[-3:]
    return a, b, c, len(a), sum(a), max(a), min(a), a.index(a[2]), a.count(3), a[-1]


@program(INTS)
def orders(x):
    a = []
    for v in x:
        if v > 3:
            a.append((v % 5, -v))
    by_second = sorted(a, key=lambda pair: pair[1])
    by_first = sorted(a, key=lambda pair: pair[0], reverse=True)
    return sorted(a), by_second, by_first, min(a), max(a, key=lambda pair: pair[1])


@program(INTS)
def longest_increasing(x):
    tails = []
    for v in x:
        i = bisect.bisect_left(tails, v)
        if i == len(tails):
            tails.append(v)
        else:
            tails[i] = v
    return len(tails), np.array(tails), np.asarray(tails, dtype=np.float32)


@program(INTS)
def groups(x):
    found = defaultdict(list)
    for v in x:
        found[v % 4].append(v)
    return found


@program(INTS, 3)
def sliding_maximum(x, k):
    queue, out = deque(), []
    for i in range(len(x)):
        while queue and x[queue[-1]] <= x[i]:
            queue.pop()
        queue.append(i)
        if queue[0] <= i - k:
            queue.popleft()
        if i >= k - 1:
            out.append(x[queue[0]])
    return out


@program(INTS)
def least_recently_used(x):
    cache, ordered, hits, last = {}, OrderedDict(), 0, deque(maxlen=3)
    for v in x:
        last.append(v)
        if v in cache:
            hits += 1
            cache[v] = cache.pop(v) + 1
            ordered.move_to_end(v)
        else:
            if len(cache) >= 5:
                del cache[next(iter(cache))]
                ordered.popitem(last=False)
            cache[v] = 0
            ordered[v] = v / 2
    return hits, cache, ordered, last


@program(6)
def hanoi(n):
    stack, moves = [(n, 0, 2, 1)], []
    while stack:
        k, a, b, c = stack.pop()
        if k == 1:
            moves.append((a, b))
        else:
            stack.append((k - 1, c, b, a))
            stack.append((1, a, b, c))
            stack.append((k - 1, a, c, b))
    return moves


@program(INTS)
def items_of_dicts(x):
    d = {}
    for v in x:
        d[v % 9] = d.get(v % 9, 0) + v
    total, best, where = 0, -1, -1
    for k, v in d.items():
        total += k * v
    for k in d:
        if d[k] > best:
            best, where = d[k], k
    doubled = {k: 2 * v for k, v in d.items()}
    by_value = sorted(d.items(), key=lambda item: item[1])
    return total, best, where, doubled, by_value, list(d.keys()), sorted(d), list(d.values())


@program(RNG.random((30, 2)), 0.5, 0.4)
def nearest_by_stack(points, x, y):
    """A walk over a tree in an array: the children of node i are 2 i + 1 and 2 i + 2."""
    best, where, visited = float("inf"), -1, 0
    stack = [(0, 0)]
    while stack:
        node, axis = stack.pop()
        if node >= len(points):
            continue
        visited += 1
        dx, dy = points[node, 0] - x, points[node, 1] - y
        if dx * dx + dy * dy < best:
            best, where = dx * dx + dy * dy, node
        stack.append((2 * node + 1, 1 - axis))
        stack.append((2 * node + 2, 1 - axis))
    return best, where, visited


def shown(x: Any) -> Any:
    """A value with its classes and orders, as it is compared; ints among NumPy's floats are floats."""
    if isinstance(x, (list, tuple, deque)):
        return type(x).__name__, [shown(v) for v in x]
    if isinstance(x, dict):
        return type(x).__name__, [(shown(k), shown(v)) for k, v in x.items()]
    if isinstance(x, set):
        return "set", sorted(x)
    if isinstance(x, np.ndarray):
        return x.dtype, x.tolist()
    return x


@pytest.mark.parametrize(("function", "args"), PROGRAMS, ids=lambda x: getattr(x, "__name__", ""))
def test_programs(function: Any, args: Any) -> None:
    want = shown(function(*args))
    compiled = jt.jit(function)
    assert shown(compiled(*args)) == want
    assert shown(compiled(*args)) == want
    assert shown(jt.jit(function, backend="interpreter")(*args)) == want


def test_another_call_of_the_same_code() -> None:
    compiled = jt.jit(words)
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 20, 80)
        assert shown(compiled(x)) == shown(words(x))
    assert compiled.cache_info().misses == 1


def test_what_a_container_is_in_two_places() -> None:
    def f(n):
        a = []
        b = a
        while n > 0:
            if n % 2 == 0:
                a.append(n)
            else:
                b.append(-n)
            n -= 1
        return a, b

    a, b = jt.jit(f)(5)
    assert a is b and a == f(5)[0]


def test_which_container_it_is_can_be_data() -> None:
    def f(n):
        a = []
        b, c, i = a, [], 0
        while i < n[0]:
            a.append(i)
            c.append(-i)
            i += 1
            if i == 2:
                b = c
        b.append(100)
        return a is b, b is c, a, c

    compiled = jt.jit(f)
    for n in (1, 4):
        assert compiled(np.array([n])) == f(np.array([n]))


def test_elements_are_of_the_types_that_python_has() -> None:
    def f(x, n):
        ints, floats, bools, numpys, pairs = [], [], [], [], []
        for i in range(n):
            ints.append(i)
            floats.append(i / 2)
            bools.append(i > 1)
            numpys.append(x[i])
            pairs.append((i, x[i]))
        return ints, floats, bools, numpys, pairs

    def types(x: Any) -> Any:
        return [types(v) for v in x] if isinstance(x, (list, tuple)) else type(x)

    for dtype in (np.float32, np.int8, np.uint64, np.bool_):
        x = np.arange(4).astype(dtype)
        got = jt.jit(f)(x, 4)
        assert got == f(x, 4)
        assert types(got) == types(f(x, 4))


def test_what_is_never_filled_can_be_run_over() -> None:
    def f(x):
        a, d, s, q, total = [], {}, set(), deque(), 0
        for v in x:
            for w in a:
                total += w * v
            for i, w in enumerate(reversed(a)):
                total += w * i
            for (k, n), w in zip(d.items(), q):  # noqa: B905
                total += k * n + w
            for w in s:
                total += w
            for w in q:
                a.append(w)
            if v > 100:
                a.append(v)
                d[v] = v
                s.add(v)
                q.append(v)
        return total, a, d, len(s), q

    compiled = jt.jit(f)
    for x in (INTS, INTS[:0], INTS + 95):
        assert compiled(x) == f(x)


def test_zip_of_a_native_list_and_an_ordinary_one() -> None:
    def f(x):
        known, grown, total = [1, 2, 3], [], 0
        for v in x:
            grown.append(v)
        for u, w in zip(known, grown):  # noqa: B905
            total += u * w
        return total

    compiled = jt.jit(f)
    for n in (0, 2, 5):
        assert compiled(INTS[:n]) == f(INTS[:n])


def test_lists_change_while_they_are_run_over() -> None:
    def f(x):
        a, b, c, seen = [], [], [], 0
        for v in x:
            a.append(v)
            b.append(v)
            c.append(v)
        for i, v in enumerate(a):
            seen += i * v
            if len(a) < 20:
                a.append(v + i)
        for v, w in zip(b, a):  # noqa: B905
            seen += v * w
            if len(b) < 30:
                b.append(w)
                b.append(v)
        for v in reversed(c):
            seen = seen * 3 + v
            if len(c) > 1:
                c.pop()
                c.pop(0)
            else:
                c.append(v)
        return seen, a, b, c

    compiled = jt.jit(f)
    for n in (0, 1, 2, 7, 12):
        assert compiled(INTS[:n]) == f(INTS[:n])


def test_a_list_that_grew_or_another_one_goes_into_a_list() -> None:
    def digits(x):
        found, others = [], []
        for v in x:
            bits = []
            while v:
                bits.append(v & 1)
                v = v >> 1
            found.append(bits or [7])
            if not bits:
                bits = [8, 9]
            others.append(bits)
        return found, others

    compiled = jt.jit(digits)
    for x in ([5, 0, 2, 12], [0, 0, 1, 8]):
        assert compiled(np.array(x)) == digits(np.array(x))


def test_lists_among_values_with_a_default() -> None:
    def grouped(x):
        places, longer, rows, total = {}, {}, {}, 0
        for i, v in enumerate(x):
            if v > 2:
                places.setdefault(v, []).append(i)
            longer[i % 3] = longer.get(i % 3, [0])
            longer[i % 3].append(v)
            row = rows.get(v)
            if row is None:
                row = rows[v] = [0, 0.0]
            row[0] += 1
            row[1] += i * 0.5
        for v in x:
            for j in places.get(v, []):
                total += j
        return places, longer, rows, total

    compiled = jt.jit(grouped)
    for seed in (0, 1):
        x = np.random.RandomState(seed).randint(0, 6, 20)
        assert repr(compiled(x)) == repr(grouped(x))
        assert repr(compiled(x.tolist())) == repr(grouped(x.tolist()))


def test_a_table_of_constants_does_not_take_the_place_of_a_hint():
    """Code of sets has hints, by number; a set that starts with several values has a table of them."""

    def f(n, x):
        empty, some, count = {}, {x[n % 4], x[1], x[n % 4]}, 0
        for _ in range(n):
            try:
                some |= some
            except ValueError:
                count += 1
        return empty, some, list(empty), count

    x = np.array([-2.0, -0.5, 1.0, 0.0])
    assert jt.jit(f)(4, x) == f(4, x)
