"""`jt.prange`: independent iterations; conflicts are errors that name both accesses."""

import numpy as np
import pytest

import jitney as jt
from jitney.ir.text_parser import parse_graph


def loops(graph):
    return [op for op in graph.walk() if op.name in ("scan", "while")]


def test_outside_of_compiled_functions_it_is_a_range():
    assert jt.prange(5) == range(5)
    assert jt.prange(1, 9, 2) == range(1, 9, 2)
    assert list(jt.prange(3)) == [0, 1, 2]
    with pytest.raises(TypeError):
        jt.prange(1.5)


def smooth(x, out):
    total, largest, above = 0.0, -np.inf, 0
    for i in jt.prange(1, x.size - 1):
        out[i] = (x[i - 1] + x[i] + x[i + 1]) / 3
        total += out[i]
        largest = max(largest, x[i])
        if x[i] > 0:
            above += 1
    return total, largest, above


def histogram(x, edges, counts):
    for i in jt.prange(x.size):
        k = 0
        while k < edges.size - 1 and x[i] > edges[k]:
            k += 1
        counts[k] += 1
    return counts


def columns(x, n):
    for j in jt.prange(n):
        s = 0.0
        for i in range(x.shape[0]):
            row = x[i]
            s += row[j]
        for i in range(x.shape[0]):
            x[i, j] = x[i, j] / s
    return x


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (smooth, (np.linspace(-1, 1, 50) ** 3, np.zeros(50))),
        (smooth, (np.ones(2), np.zeros(2))),
        (histogram, (np.linspace(0, 1, 40), np.linspace(0, 1, 5), np.zeros(5, int))),
        (columns, (np.arange(1.0, 13).reshape(3, 4), np.int64(4))),
        (columns, (np.arange(1.0, 13).reshape(3, 4), np.int64(0))),
    ],
)
def test_results_are_those_of_a_range(f, args):
    expected = f(*(np.copy(a) for a in args))
    got = jt.jit(f)(*(np.copy(a) for a in args))
    interpreted = jt.jit(f, backend="interpreter")(*(np.copy(a) for a in args))
    jt.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14), got, expected)
    jt.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-14), interpreted, expected)


def test_the_loop_is_marked_whatever_its_length_and_the_mark_is_text():
    def f(x, n):
        for i in jt.prange(3):
            x[i] += 1
        for i in jt.prange(n):
            x[i] += 1
        for i in range(n):
            x[i] += x[0]
        return x

    graph = jt.jit(f).trace(np.ones(40), np.int64(3))
    marks = [op.attrs.get("independent", False) for op in loops(graph)]
    assert marks == [True, True, False]
    again = parse_graph(str(graph))
    assert [op.attrs.get("independent", False) for op in loops(again)] == marks


def test_gradients_and_batches_of_independent_loops():
    def f(x):
        out = np.zeros(6)
        for i in jt.prange(1, 5):
            out[i] = x[i - 1] * x[i + 1]
        return (out**2).sum()

    x = np.linspace(1, 2, 6)
    jt.check_grads(jt.jit(f), (x,))
    xs = np.stack([x, 2 * x])
    np.testing.assert_allclose(jt.jit(jt.vmap(f))(xs), [f(x), f(2 * x)])

    def count(x, n):
        s = 0.0
        for i in jt.prange(n):
            s += x + i
        return s

    n = np.array([0, 3])
    np.testing.assert_allclose(jt.jit(jt.vmap(count))(np.ones(2), n), [0.0, 6.0])
    np.testing.assert_allclose(jt.jit(jt.vmap(jt.grad(count)))(np.ones(2), n), [0.0, 3.0])


def test_plain_tracing_takes_it_as_a_range():
    def f(x):
        for i in jt.prange(3):
            x = x + i
        return x

    assert jt.jit(f, autograph=False)(1.0) == 4.0


# Conflicts.


def recurrence(a):
    for i in jt.prange(1, 10):
        a[i] = a[i - 1] * 2


def one_place(a):
    for i in jt.prange(10):
        a[0] = i


def mirrored(a):
    for i in jt.prange(10):
        a[i] = a[9 - i]


def around_the_end(a):
    for i in jt.prange(9):
        a[i - 1] = a[i]


def unknown_length(a):
    n = a[0].astype(np.int64)
    for i in jt.prange(n):
        a[i] = a[i + 1]


def same_place_whatever_it_is(a):
    k = a[0].astype(np.int64)
    for i in jt.prange(4):
        a[k] = i


def updated_and_read(a):
    for i in jt.prange(9):
        a[i] += a[i + 1]


def two_operations(a):
    for _ in jt.prange(10):
        a[0] += 1.0
        a[0] *= 2.0


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (recurrence, "one writes a\\[1\\] at .*, and another reads it"),
        (one_place, "one writes a\\[0\\] at .*, and another writes it"),
        (mirrored, "writes a\\[.\\] at .*, and another reads it"),
        (around_the_end, "writes a\\[.\\] at .*, and another reads it"),
        (unknown_length, "writes a\\[.\\] at .*, and another reads it"),
        (same_place_whatever_it_is, "writes a\\[...\\] at .*, and another writes it"),
        (updated_and_read, "updates a\\[.\\] at .*, and another reads it"),
        (two_operations, "updates a\\[0\\] at .*, and another updates it"),
    ],
)
def test_a_conflict_names_both_accesses(f, words):
    with pytest.raises(jt.errors.ConflictError, match=f"(?s)not independent: one {words}|{words}"):
        jt.jit(f)(np.ones(10))


def test_the_lines_of_both_accesses_are_named():
    def f(a, b):
        for i in jt.prange(1, 8):
            b[i] = a[i]
            for j in range(3):
                a[i - 1] = b[j]

    first = f.__code__.co_firstlineno
    with pytest.raises(jt.errors.ConflictError) as error:
        jt.jit(f)(np.ones(10), np.ones(10))
    text = str(error.value)
    assert f":{first + 2}" in text
    assert f":{first + 4}" in text
    assert "loop over range(...)" in text.splitlines()[-1]


def test_rows_are_elements_too():
    def rows(a):
        for i in jt.prange(1, 5):
            a[i] = a[i - 1] * 2

    def cells(a):
        for i in jt.prange(5):
            row = a[i]
            for j in range(1, 6):
                row[j] += row[j - 1]
            a[4, i] = 0

    with pytest.raises(jt.errors.ConflictError, match="writes a\\[1, :\\]"):
        jt.jit(rows)(np.ones((5, 6)))
    with pytest.raises(jt.errors.ConflictError, match="writes a\\[4, 0\\]"):
        jt.jit(cells)(np.ones((5, 6)))


def filtered(a):
    s = 0.0
    for i in jt.prange(10):
        s = 0.5 * s + a[i]
    return s


def running_sum(a):
    s = 0.0
    for i in jt.prange(10):
        s += a[i]
        a[i] = s
    return a


def mixed(a):
    s = 0.0
    for i in jt.prange(10):
        s += a[i]
        s *= 2.0
    return s


def from_the_right(a):
    s = 0.0
    for i in jt.prange(10):
        s = a[i] - s
    return s


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (filtered, "s"),
        (running_sum, "s"),
        (mixed, "s"),
        (from_the_right, "s"),
    ],
)
def test_a_variable_that_one_iteration_hands_to_the_next(f, name):
    with pytest.raises(jt.errors.ConflictError, match=f"reads the variable '{name}' at .*assigns"):
        jt.jit(f)(np.ones(10))


def test_leaving_early_is_refused():
    def f(a):
        for i in jt.prange(10):
            if a[i] > 2:
                break
        return i

    with pytest.raises(jt.errors.TransformError, match="jt.prange would leave out iterations"):
        jt.jit(f)(np.ones(10))


def affine(write, read, n, m):
    """A loop that writes one element and reads another, and which elements these are."""
    (p, q, r), (s, t, u) = write, read

    def f(a, out):
        for i in jt.prange(n):
            for j in range(m):
                a[p * i + q * j + r] = a[s * i + t * j + u] + 1.0
        return a

    def touched(i):
        ways = [(p * i + q * j + r, s * i + t * j + u) for j in range(m)]
        return {w for w, _ in ways}, {r for _, r in ways}

    every = [touched(i) for i in range(n)]
    conflict = any(
        every[x][0] & (every[y][0] | every[y][1]) for x in range(n) for y in range(n) if x != y
    )
    return f, conflict


def test_conflicts_are_found_exactly_where_they_are():
    rng = np.random.default_rng(3)
    seen = set()
    for _ in range(60):
        n, m = rng.integers(2, 6), rng.integers(1, 4)
        write, read = (
            (int(rng.integers(-4, 5)), int(rng.integers(-1, 3)), 30 + int(rng.integers(0, 9)))
            for _ in range(2)
        )
        f, conflict = affine(write, read, int(n), int(m))
        seen.add(conflict)
        try:
            jt.jit(f).trace(np.ones(80), np.ones(80))
        except jt.errors.ConflictError:
            assert conflict, (write, read, n, m)
        else:
            assert not conflict, (write, read, n, m)
    assert seen == {True, False}


# Threads.


def roots(x):
    for k in range(12):
        x = np.sqrt(x + k)
    return x


def scattered(x, places, out):
    for i in jt.prange(x.size):
        out[places[i]] = roots(x[i])
    return out


def counted(x, places, out):
    for i in jt.prange(x.size):
        out[places[i] % 8] += roots(x[i])
    return out


def in_order(x, places, out):
    for i in range(x.size):
        out[places[i]] = roots(x[i])
    return out


N = 24_000


@pytest.fixture
def arguments():
    rng = np.random.default_rng(0)
    return rng.random(N), rng.permutation(N), np.zeros(N)


SHARED = "iterations on several threads"


def test_threads_share_what_only_the_user_knows_to_be_independent(arguments):
    shared = [SHARED in str(jt.jit(f).explain(*arguments)) for f in (scattered, counted, in_order)]
    assert shared == [True, False, False]
    expected = in_order(*arguments)
    for threads in (1, 2):
        with jt.threads(threads):
            np.testing.assert_array_equal(jt.jit(scattered)(*arguments), expected)


def test_an_error_in_a_thread_is_raised(arguments):
    x, places, out = arguments
    places[N // 2] = N + 7
    with pytest.raises(IndexError, match=f"index {N + 7} is out of bounds"):
        jt.jit(scattered)(x, places, out)
    assert not out.any()


@pytest.mark.parametrize("shape", [(1, 4), (3, 4), (1, 1)])
def test_parts_of_arrays_are_written_through_views(shape):
    def f(c):
        row = c[0]
        for i in jt.prange(shape[1]):
            row[i] *= i + 2
        return c

    assert jt.jit(f)(np.ones(shape)).tolist() == f(np.ones(shape)).tolist()
