"""Containers that were there before the call, which compiled loops and branches read and change.

Results, and what is in them afterwards, are as in plain Python, and of any length they compile once."""

import copy
import heapq
import sys
from collections import Counter, OrderedDict, defaultdict, deque

import numpy as np
import pytest

import jitney as jt

R = np.random.default_rng(3)
X = R.integers(0, 9, 40)


class Life:
    def __init__(self, cells):
        self.cells = cells

    def step(self):
        n = Counter()
        for x, y in self.cells:
            for dx in (-1, 0, 1):
                for dy in (-1, 0, 1):
                    if dx or dy:
                        n[x + dx, y + dy] += 1
        self.cells = {c for c, k in n.items() if k == 3 or (k == 2 and c in self.cells)}
        return len(self.cells)


class Shop:
    """State of all kinds, which one method reads and changes."""

    def __init__(self):
        self.counts, self.queue, self.seen, self.log, self.total = {}, deque(), set(), [], 0

    def feed(self, xs):
        for x in xs:
            k = int(x)
            self.counts[k] = self.counts.get(k, 0) + 1
            if k > 4:
                self.queue.append(k)
            elif self.queue:
                self.total += self.queue.popleft()
            if k not in self.seen:
                self.seen.add(k)
                self.log.append((k, self.total))
        return len(self.log), self.total


def grow(xs, n):
    i = 0
    while i < n:
        xs.append(xs[-1] + i)
        i += 1
    return len(xs)


def push(xs, x):
    xs.append(x)
    return len(xs), xs[0]


def count(counts, xs):
    for x in xs:
        counts[int(x)] += 1
    return counts.most_common(2)


def remember(seen, xs):
    known = 0
    for x in xs:
        if int(x) in seen:
            known += 1
        else:
            seen.add(int(x))
    return known


def group(groups, xs):
    for x in xs:
        groups[int(x) % 3].append(int(x))
    return len(groups)


def least_recent(cache, xs):
    hits = 0
    for x in xs:
        k = int(x)
        if k in cache:
            cache.move_to_end(k)
            hits += 1
        else:
            cache[k] = k * k
            if len(cache) > 4:
                cache.popitem(last=False)
    return hits


def window(last, xs):
    total = 0.0
    for x in xs:
        last.append(float(x))
        total += sum(last) / len(last)
    return total


def largest(heap, xs):
    out = 0.0
    for x in xs:
        heapq.heappush(heap, (float(x), int(x)))
        if len(heap) > 3:
            out += heapq.heappop(heap)[0]
    return out


def connect(graph, edges):
    for e in range(len(edges)):
        a, b = int(edges[e, 0]), int(edges[e, 1])
        graph[a].append(b)
        graph[b].append(a)
    return sum(len(row) for row in graph)


def reached(graph, start):
    dist, queue = {start: 0}, deque([start])
    while queue:
        u = queue.popleft()
        for v in graph[u]:
            if v not in dist:
                dist[v] = dist[u] + 1
                queue.append(v)
    return dist


def random_graph(n, seed):
    rng = np.random.default_rng(seed)
    return {i: [int(j) for j in rng.integers(0, n, int(rng.integers(0, 4)))] for i in range(n)}


def cells(n):
    return {(int(a), int(b)) for a, b in R.integers(0, 8, (n, 2))}


EDGES = R.integers(0, 6, (10, 2))
ROW = [1, 2]
MORE = [(X,), (X + 3,), (X,)]
PROGRAMS = {  # what makes the first argument, the function, and the others of each call
    "life": (lambda: Life(cells(20)), Life.step, [()] * 4),
    "state": (Shop, Shop.feed, MORE),
    "list": (lambda: [1, 2], grow, [(5,), (7,), (0,)]),
    "list, a step at a time": (lambda: [1.0], push, [(2.0,), (3.0,), (4.0,)]),
    "empty list": (list, push, [(2,), (3,), (4,)]),
    "counter": (Counter, count, MORE),
    "set": (lambda: {1, 2}, remember, MORE),
    "defaultdict": (lambda: defaultdict(list), group, MORE),
    "ordered": (OrderedDict, least_recent, MORE),
    "bounded deque": (lambda: deque([1.0], maxlen=3), window, MORE),
    "heap of tuples": (list, largest, MORE),
    "graph": (lambda: [[] for _ in range(6)], connect, [(EDGES,), (EDGES[::-1].copy(),)]),
    "one row twice": (lambda: [ROW, [3], ROW, [], [4], [5]], connect, [(EDGES,)] * 2),
}


def outcome(function, first, calls):
    first = copy.deepcopy(first)
    return [function(first, *args) for args in calls], first


def same(a, b):
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple, deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return same(vars(a), vars(b)) if hasattr(a, "__dict__") else a == b


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python_and_compiled_once(name, backend):
    make, function, calls = PROGRAMS[name]
    first = make()
    jitted = jt.jit(function, backend=backend)
    assert same(outcome(jitted, first, calls), outcome(function, first, calls))
    assert jitted.cache_info().misses == 1


def test_graphs_of_any_size():
    jitted = jt.jit(reached)
    for n in (9, 14, 20):
        graph = random_graph(n, n)
        assert jitted(graph, 0) == reached(graph, 0)
    assert jitted.cache_info().misses == 1


def test_containers_are_the_ones_that_were_there():
    g = [[1], [2], [3]]
    rows = list(g)

    @jt.jit
    def turn(g, i):
        g[i].append(7)
        g.append(g[i])
        g.reverse()
        return g

    assert turn(g, 1) is g
    assert g == [[2, 7], [3], [2, 7], [1]]
    assert g[0] is g[2] is rows[1] and g[3] is rows[0] and g[1] is rows[2]


def test_new_containers_go_into_old_ones():
    @jt.jit
    def split(groups, xs):
        for x in xs:
            if int(x) not in groups:
                groups[int(x)] = []
            groups[int(x)].append(float(x))

    groups = {7: [1.5]}
    first = groups[7]
    split(groups, X)
    plain = {7: [1.5]}
    for x in X:
        plain.setdefault(int(x), []).append(float(x))
    assert groups == plain and list(groups) == list(plain) and groups[7] is first


def test_closures_and_globals():
    cache = {}

    def square(xs):
        total = 0
        for x in xs:
            k = int(x)
            if k not in cache:
                cache[k] = k * k
            total += cache[k]
        return total

    jitted = jt.jit(square)
    assert [jitted(X), jitted(X + 2)] == [int((X**2).sum()), int(((X + 2) ** 2).sum())]
    assert cache == {k: k * k for k in cache} and len(cache) == 11


def test_what_fails_changes_nothing():
    @jt.jit
    def take(stack, n):
        total, i = 0, 0
        while i < n:
            total += stack.pop()
            i += 1
        return total

    stack = [1, 2, 3]
    assert take(stack, 1) == 3
    with pytest.raises(IndexError, match="pop from empty list"):
        take(stack, 5)
    assert stack == [1, 2]


def test_other_elements_are_another_compilation():
    @jt.jit
    def add(values, n, x):
        i = 0
        while i < n:
            values.append(x)
            i += 1

    ints, floats = [1], [0.5]
    add(ints, 2, 3)
    add(floats, 1, 2.5)
    assert ints == [1, 3, 3] and floats == [0.5, 2.5] and add.cache_info().misses == 2
    add(ints, 1, 2.5)
    assert ints == [1, 3, 3, 2.5] and type(ints[0]) is int


def test_large_ints_stay_pythons():
    values = [1 << 70]
    assert jt.jit(grow)(values, 2) == 3
    assert values == [1 << 70, 1 << 70, (1 << 70) + 1]


def test_a_row_that_is_given_as_well_is_that_row():
    @jt.jit
    def add(rows, row, i):
        rows[i].append(7)
        return len(row)

    rows = [[1], [2], [3]]
    assert add(rows, [5], 0) == 1
    assert [add(rows, rows[k], k) for k in (0, 1, 1)] == [3, 2, 3]
    assert add(rows, [5], 1) == 1
    assert rows == [[1, 7, 7], [2, 7, 7, 7], [3]]


class Events:
    def __init__(self):
        self.queue = []

    def schedule(self, time, kind):
        heapq.heappush(self.queue, (time, kind))


def test_functions_change_what_they_are_given():
    events, plain, schedule = Events(), Events(), jt.jit(Events.schedule)
    for time, kind in ((3.0, 1), (1.0, 0), (2.0, 1)):
        schedule(events, time, kind)
        plain.schedule(time, kind)
    assert events.queue == plain.queue and schedule.cache_info().misses == 1


class Prices:
    def __init__(self):
        self.of = {1: 2, 4: 3}

    def total(self, xs):
        total = 0
        for x in xs:
            total = (total + self.of.get(int(x), 1)) % 1000
        return total


def test_what_is_only_looked_up():
    prices, jitted = Prices(), jt.jit(Prices.total)
    for key in (7, 2, 8):
        assert jitted(prices, X) == prices.total(X)
        prices.of[key] = 5 * key
    assert jitted.cache_info().misses == 1


def partition(items):
    """The largest element to the end, in place; gives how many are before the last."""
    at = 0
    for i in range(len(items)):
        if items[i] > items[at]:
            at = i
    last = len(items) - 1
    items[at], items[last] = items[last], items[at]
    return last


def test_recursion_that_the_length_of_a_list_ends():
    """With a native list in its place nobody would know while tracing where it ends."""

    def sort(items):
        if len(items) > 1:
            at = partition(items)
            smaller = []
            for i in range(at):
                smaller.append(items[i])
            sort(smaller)
            for i in range(len(smaller)):
                items[i] = smaller[i]
        return items

    items = [3, 5, 1, 2]
    assert jt.jit(sort)(items) is items
    assert items == [1, 2, 3, 5]


def walked(graph, wanted):
    """The numbers of lists in a dict, some of which have more than a digit in Python."""
    total, there, queue = 0, 0, deque(graph)
    while queue:
        for x in graph[queue.popleft()]:
            total = total * 3 % 1000003 + x % 1000
            if x in wanted:
                there += 1
    return total, there


def test_numbers_of_all_lengths_are_read():
    edges = [0, 1, -1, 2**15, 2**30 - 1, 1 - 2**30, 2**30, -(2**30), 2**60, -(2**62), 2**63 - 1]
    graph = {k: edges[i:] + edges[:i] for i, k in enumerate([*edges, -(2**63)])}
    wanted = set(edges[::2])
    f = jt.jit(walked)
    assert f(graph, wanted) == walked(graph, wanted)
    graph[1].append(-5)  # the same lists, of other lengths and numbers
    graph[2**30][3] = 2**31
    wanted.discard(2**30)
    assert f(graph, wanted) == walked(graph, wanted)
    for wrong in (True, 2**64):
        graph[0][2] = wrong
        try:
            assert f(graph, wanted) == walked(graph, wanted)
        except (OverflowError, jt.errors.JitneyError):
            assert wrong is not True


def distances(graph, s):
    dist, queue = {s: 0}, deque([s])
    while queue:
        u = queue.popleft()
        for v in graph[u]:
            if v not in dist:
                dist[v] = dist[u] + 1
                queue.append(v)
    return dist


def lightest(graph, s):
    dist, heap = {s: 0.0}, [(0.0, s)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > dist[u]:
            continue
        for v, w in graph[u]:
            if v not in dist or d + w < dist[v]:
                dist[v] = d + w
                heapq.heappush(heap, (d + w, v))
    return dist


@pytest.mark.parametrize("form", [dict, list], ids=["dict", "list"])
@pytest.mark.parametrize("most", [5, 20, 40])
def test_many_lists_are_no_values_of_the_graph(form, most):
    rng = np.random.default_rng(most)
    rows = [rng.integers(0, 200, rng.integers(1, most) + most % 3).tolist() for _ in range(200)]
    graph = dict(enumerate(rows)) if form is dict else rows
    weights = {k: [(v, float(v % 7)) for v in row] for k, row in enumerate(rows)}
    f, g = jt.jit(distances), jt.jit(lightest)
    for s in (0, 3):
        assert [*f(graph, s).items()] == [*distances(graph, s).items()]
        assert g(weights, s) == lightest(weights, s)
    graph[0].append(199)
    assert f(graph, 0) == distances(graph, 0)
    assert f.cache_info().misses == 1 == g.cache_info().misses
    if most > 5:
        assert len(f.trace(graph, 0).params) < 4


def test_what_cannot_be_native_is_taken_apart_as_before():
    pairs = [(k % 7, k / 2) for k in range(1100)]

    def mean(points):
        return np.array(points).mean(axis=0)

    np.testing.assert_allclose(jt.jit(mean)(pairs), mean(pairs))
    rows = {k: [float(k + j) for j in range(8)] for k in range(70)}

    def slope(rows):
        return jt.grad(lambda x: sum(r[0] * r[1] for r in x.values()))(rows)[3][0]

    assert jt.jit(slope)(rows) == rows[3][1]


def test_results_are_made_without_python():
    def counted(items):
        found = {}
        for x in items:
            found[x] = found.get(x, 0) + 1
        return found, [*found]

    items = [k % 5 for k in range(50)]
    f = jt.jit(counted)
    f(items), f(items)
    called = []
    sys.setprofile(lambda frame, event, arg: called.append((event, frame.f_code.co_name)))
    try:
        result = f(items)
    finally:
        sys.setprofile(None)
    assert result == counted(items)
    assert [name for event, name in called if event == "call"] == []
