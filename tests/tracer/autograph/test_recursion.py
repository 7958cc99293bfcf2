"""Functions of numbers that call themselves, native and interpreted, as in Python."""

import math

import numpy as np
import pytest
import warm

import jitney as jt
from jitney.codegen.lowering import lower_recursion
from jitney.ir.text_parser import parse_graph


@jt.recursive
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@jt.recursive
def gcd(a, b):
    if b == 0:
        return a
    return gcd(b, a % b)


@jt.recursive
def ackermann(m, n):
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@jt.recursive
def total(node, left, right, value):
    if node < 0:
        return 0.0
    below = total(left[node], left, right, value) + total(right[node], left, right, value)
    return value[node] + below


@jt.recursive
def simpson(a, b, depth):
    middle = (a + b) / 2
    whole = (b - a) / 6 * (math.sin(a) + 4 * math.sin(middle) + math.sin(b))
    if depth == 0:
        return whole
    return simpson(a, middle, depth - 1) + simpson(middle, b, depth - 1)


@jt.recursive
def is_even(n):
    return True if n == 0 else not is_even(n - 1)


@jt.recursive(result_like=(0, 0.0))
def powers(n, x):
    if n == 0:
        return 0, 1.0
    count, power = powers(n - 1, x)
    return count + 1, power * x


@jt.recursive
def paths(i, j, blocked):
    if i < 0 or j < 0:
        return 0
    if blocked[i, j]:
        return 0
    if i == 0 and j == 0:
        return 1
    found = 0
    for k in range(2):
        found += paths(i - (k == 0), j - (k == 1), blocked)
    return found


LEFT, RIGHT = np.array([1, 3, -1, -1, -1]), np.array([2, 4, -1, -1, -1])
BLOCKED = np.zeros((5, 5), bool)
BLOCKED[1, 2] = BLOCKED[3, 3] = True


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (fib, (np.int64(12),)),
        (fib, (12,)),
        (gcd, (np.int64(252), np.int64(105))),
        (ackermann, (2, 3)),
        (total, (np.int64(0), LEFT, RIGHT, np.arange(5.0))),
        (total, (0, LEFT, RIGHT, np.arange(5, dtype=np.float32))),
        (simpson, (0.0, 1.0, 4)),
        (is_even, (np.int64(7),)),
        (powers, (np.int64(5), 2.0)),
        (paths, (np.int64(4), np.int64(4), BLOCKED)),
    ],
)
def test_results_are_pythons(f, args, backend):
    options = {} if backend == "native" else {"backend": "interpreter"}
    got = jt.jit(lambda *args: f(*args), **options)(*args)
    expected = f(*args)
    jt.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, expected)
    assert jt.tree.structure(got) == jt.tree.structure(expected)


def test_in_loops_and_of_each_other():
    @jt.recursive
    def outer(n):
        return 0 if n == 0 else gcd(n, 12) + outer(n - 1)

    @jt.jit
    def table(out):
        for i in range(out.size):
            out[i] = outer(i) + fib(i % 7)
        return out

    expected = [outer(i) + fib(i % 7) for i in range(40)]
    np.testing.assert_array_equal(table(np.zeros(40, int)), expected)


def test_what_a_function_closes_over_is_the_same_in_all_calls():
    def f(n, scale):
        @jt.recursive
        def inner(k):
            return 1.0 if k == 0 else scale * inner(k - 1)

        return inner(n) + inner(n + 1)

    assert jt.jit(f)(np.int64(3), 2.0) == f(3, 2.0) == 24.0


def test_each_example_has_calls_of_its_own():
    a, b = np.arange(1, 13), np.full(12, 18)
    np.testing.assert_array_equal(jt.jit(jt.vmap(gcd))(a, b), np.gcd(a, b))
    np.testing.assert_array_equal(jt.vectorize(gcd)(a[:, None], b), np.gcd(a[:, None], b))

    def guarded(n):
        return fib(n) if n > 0 else -1

    np.testing.assert_array_equal(jt.jit(jt.vmap(guarded))(np.array([-5, 6, 0])), [-1, 8, -1])


def test_text_is_the_same_graph():
    graph = jt.jit(lambda n: fib(n)).trace(np.int64(3))
    again = parse_graph(str(graph))
    assert str(again) == str(graph)
    assert {"recursion", "recurse"} <= {op.name for op in again.walk()}


def test_it_is_native_and_not_a_callback():
    text = str(jt.jit(lambda n: fib(n)).explain(np.int64(3)))
    assert "callback" not in text


def test_a_callback_where_native_code_has_no_such_functions():
    with jt.config(cuda="emulate"):
        x = jt.device_put(np.arange(8), "cuda")
        got = jt.jit(lambda x: fib(x.max()))(x)
        assert int(np.asarray(got)) == 13


# Without being told.


@jt.jit
def bare(n):
    if n < 2:
        return n
    return bare(n - 1) + bare(n - 2)


def even(n):
    return True if n == 0 else odd(n - 1)


def odd(n):
    return False if n == 0 else even(n - 1)


def test_functions_that_call_themselves_without_end_while_they_are_traced():
    assert bare(10) == 55
    assert bare(np.int64(15)) == 610
    before = len(bare.cache_info())
    assert bare(20) == 6765
    assert len(bare.cache_info()) == before
    f = jt.jit(even)
    assert [bool(f(np.int64(n))) for n in range(4)] == [True, False, True, False]


# What does not go.


def test_too_many_calls_inside_of_each_other():
    @jt.recursive(depth=50)
    def down(n):
        return 0 if n == 0 else 1 + down(n - 1)

    assert jt.jit(lambda n: down(n))(np.int64(50)) == 50
    for options in ({}, {"backend": "interpreter"}):
        with pytest.raises(RecursionError, match="more than 50 calls inside of each other"):
            jt.jit(lambda n: down(n), **options)(np.int64(51))


def test_errors_in_the_depth_are_pythons():
    @jt.recursive
    def find(n, x):
        if n > 20:
            raise ValueError("nothing found")
        return n if x[n] > 0.5 else find(n + 1, x)

    f = jt.jit(lambda n, x: find(n, x))
    x = np.zeros(30)
    x[7] = 1
    assert f(np.int64(0), x) == 7
    with pytest.raises(ValueError, match="nothing found"):
        f(np.int64(8), x)
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        f(np.int64(0), x[:5])


def test_types_that_change_from_call_to_call():
    @jt.recursive
    def halves(n, x):
        return x if n == 0 else halves(n - 1, x / 2)

    for n, x in ((2, 4.0), (2, 4), (0, 4)):
        assert repr(jt.jit(lambda n, x: halves(n, x))(np.int64(n), x)) == repr(halves(n, x))

    @jt.recursive
    def other(n, x):
        return x[0] if n == 0 else other(n - 1, x + 1)

    x = np.arange(3.0)
    assert jt.jit(lambda n, x: other(n, x))(np.int64(2), x) == other(2, x)

    @jt.recursive
    def pair(n):
        return (n, n) if n == 0 else pair(n - 1)

    assert jt.jit(lambda n: pair(n))(np.int64(2)) == (0, 0)

    @jt.recursive
    def named(n, name):
        return n if name == "b" else named(n + 1, "b" if n > 2 else name)

    assert jt.jit(lambda n: named(n, "a"))(np.int64(2)) == named(2, "a")

    @jt.recursive
    def kept(n, box):
        return n if n == 0 else kept(n - 1, object())

    with pytest.raises(jt.errors.CarryError, match="'box' changes its structure in the calls"):
        jt.jit(lambda n: kept(n, None))(np.int64(2))


def test_derivatives_are_refused():
    with pytest.raises(jt.errors.TransformError, match="recursion.*no reverse-mode derivative"):
        jt.jit(jt.grad(lambda x: simpson(x, 1.0, 2)))(0.0)


def test_options_are_checked():
    with pytest.raises(jt.errors.TransformError, match="depth=0 is no number of calls"):
        jt.recursive(lambda n: n, depth=0)


SETS = """
import jitney as jt

class Sets:
    def __init__(self, n):
        self.parents = list(range(n))

    def find(self, x):
        if self.parents[x] != x:
            self.parents[x] = self.find(self.parents[x])
        return self.parents[x]

sets = Sets(8)
sets.parents[1:4] = [2, 3, 4]
print(jt.jit(sets.find)(1), sets.parents)
"""


def test_a_list_of_outside_that_only_calls_of_itself_change(tmp_path):
    """The rules of containers are there in a process that has compiled none, too."""
    (tmp_path / "sets_of_numbers.py").write_text(SETS)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import sets_of_numbers"
    assert warm.run(program, JITNEY_CACHE="0") == "4 [0, 4, 4, 4, 4, 5, 6, 7]\n"


def ways(grid, row, column, seen):
    if min(row, column) < 0 or row == len(grid) or column == len(grid[0]):
        return 0
    if (row, column) in seen or grid[row][column] == 1:
        return 0
    if row == len(grid) - 1 and column == len(grid[0]) - 1:
        return 1
    seen.add((row, column))
    found = ways(grid, row + 1, column, seen) + ways(grid, row, column + 1, seen)
    seen.remove((row, column))
    return found


def test_a_container_beside_a_table():
    for n, m in ((2, 9), (4, 4), (6, 12)):
        grid = [[int((3 * i + 5 * j) % 7 == 6) for j in range(m)] for i in range(n)]
        seen = set()
        assert jt.jit(ways)(grid, 0, 0, seen) == ways(grid, 0, 0, set())
        assert not seen


ELEMENTS = [0, 5, 3, 9, 1, 98, 2, 7]


def greatest(low, high, a, b):
    if high < a or low > b:
        return -math.inf
    if low == high:
        return ELEMENTS[low]
    middle = (low + high) // 2
    return max(greatest(low, middle, a, b), greatest(middle + 1, high, a, b))


def halved(n):
    if n == 0:
        return 1
    before = halved(n - 1)
    return before * 2 if n % 3 else before / 2


@jt.recursive
def sum_of(values, n):
    return 0 if n == 0 else values[n - 1] + sum_of(values, n - 1)


@jt.recursive(result_like=(0.0, 0.0))
def quotients(n):
    if n == 0:
        return 1, 2.5
    a, b = quotients(n - 1)
    return (a / 2, b) if n > 2 else (a, b + 1)


def test_numbers_of_several_classes():
    cases = [
        (greatest, [(0, 7, 1, 3), (0, 7, 9, 9), (0, 7, 4, 6)]),
        (halved, [(n,) for n in range(5)]),
        (quotients, [(0,), (2,), (4,)]),
        (sum_of, [(np.arange(3.0), 0), (np.arange(3.0), 3)]),
    ]
    for f, calls in cases:
        compiled = jt.jit(f)
        assert "recurse" in str(compiled.trace(*calls[0]))
        for call in calls:
            assert repr(compiled(*call)) == repr(f(*call))
    many = jt.jit(jt.vmap(lambda n: quotients(n)[0]))(np.arange(4))
    np.testing.assert_array_equal(many, [1.0, 1.0, 1.0, 0.5])


def test_a_container_beside_what_only_the_interpreter_runs(monkeypatch):
    def unfit(*_, **__):
        raise lower_recursion.Unfit

    monkeypatch.setattr(lower_recursion, "_called", unfit)
    grid = [[int((3 * i + 5 * j) % 11 == 6) for j in range(10)] for i in range(4)]
    with pytest.raises(
        jt.errors.UnsupportedFunctionError, match=r"(?s)ways calls itself.*stack\.append"
    ):
        jt.jit(ways)(grid, 0, 0, set())


def filled(grid, size):
    seen = set()

    def fill(i, j):
        if not (0 <= i < size and 0 <= j < size) or (i, j) in seen or grid[i, j] != 0:
            return 0
        seen.add((i, j))
        return 1 + fill(i + 1, j) + fill(i, j + 1) + fill(i - 1, j) + fill(i, j - 1)

    return fill(0, 0)


@pytest.mark.parametrize("size", [12, 60])
def test_a_function_inside_that_calls_itself_four_times(size):
    """Traced call by call there would be four times as many of them at each depth."""
    grid = np.zeros((size, size), np.int64)
    grid[3, 2:9] = grid[3:8, 9] = 1
    assert jt.jit(filled)(grid, size) == size * size - 12
