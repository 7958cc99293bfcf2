"""What is compiled in without being named: flags, names, functions, numbers that tracing asks for."""

import enum
import importlib
import inspect
import sys

import numpy as np
import pytest

import jitney as jt
from jitney import errors
from jitney.tracer.captures.purity_allow_list import origin
from jitney.tracer.jit.numbers import CompiledNumbers

X = np.arange(12.0)


class Kind(enum.Enum):
    MEAN = 1
    SUM = 2


def misses(function):
    return function.cache_info().misses


def test_a_bool_is_the_bool_of_python():
    @jt.jit
    def f(x, flag):
        if flag is True:
            return x[:3]
        return x

    assert f(X, True).shape == (3,)
    assert f(X, False).shape == (12,)
    assert f(X, True).shape == (3,)
    assert misses(f) == 2


def test_a_bool_in_a_container_is_traced():
    f = jt.jit(lambda flags: [np.logical_not(flag) for flag in flags])
    for flags in ([True, False], [False, False]):
        assert f(flags) == [not flag for flag in flags]
    assert misses(f) == 1


@pytest.mark.parametrize(
    "values",
    [
        ("mean", "sum"),
        (b"mean", b"sum"),
        (Kind.MEAN, Kind.SUM),
        (np.mean, np.sum),
        (lambda x: x.mean(), lambda x: x.sum()),
        (np.dtype("f4"), np.dtype("f8")),
        (np.float32, float),
        (slice(1, 5), slice(1, 7)),
        (range(3), range(4)),
        (None, ...),
        (2**70, 2**71),
        (np, np.linalg),
    ],
)
def test_what_no_array_stands_for_is_static(values):
    f = jt.jit(lambda x, how: (x + 1, how["it"][0] is values[0]))
    for value in (*values, *values):
        found, first = f(X, {"it": [value]})
        np.testing.assert_array_equal(found, X + 1)
        assert first == (value is values[0])
    assert misses(f) == 2


def test_a_string_chooses_and_raises_as_in_python():
    @jt.jit
    def f(x, mode="mean"):
        if mode == "mean":
            return x.mean()
        if mode == "sum":
            return x.sum()
        raise ValueError(mode)

    assert f(X) == X.mean()
    assert f(X, mode="sum") == X.sum()
    with pytest.raises(ValueError, match="median"):
        f(X, "median")


def zeros(x, n):
    out = np.zeros(n)
    for i in range(n):
        out[i] = x[i] * i
    return out


def triangle(x, n):
    a = np.zeros((n, n))
    for i in range(n):
        a[i, : i + 1] = x[: i + 1]
    return a


def euler(a, b, h):
    n = int(np.ceil((b - a) / h))
    y = np.zeros(n + 1)
    y[0] = 1
    for i in range(n):
        y[i + 1] = y[i] - h * y[i]
    return y


ASKING = [
    (lambda x, n: x.reshape(n, -1), (X, 3), (X, 4)),
    (lambda n: np.arange(n) ** 2, (5,), (6,)),
    (lambda a, b, n: np.linspace(a, b, n), (0.0, 1.0, 5), (0.0, 1.0, 6)),
    (lambda x, n: x[:n].sum(), (X, 5), (X, 3)),
    (lambda x, axis: x.reshape(3, 4).sum(axis), (X, 0), (X, 1)),
    (lambda x, n: np.repeat(x, n), (X, 2), (X, 3)),
    (lambda x, n: np.tile(x, n), (X, 2), (X, 3)),
    (lambda x, n: np.histogram(x, n)[0], (X, 4), (X, 5)),
    (lambda n, k: np.eye(n, k=k), (4, 1), (5, 1)),
    (lambda r: np.mgrid[0:r, 0:r].sum(0), (4,), (3,)),
    (lambda x, n: x[:n] * 2, (X, np.int64(4)), (X, np.int64(5))),
    (lambda x, ks: [x.reshape(k, -1).sum(0)[0] for k in ks], (X, [2, 3]), (X, [3, 4])),
    (zeros, (X, 5), (X, 6)),
    (triangle, (X, 5), (X, 4)),
    (euler, (0.0, 1.0, 0.1), (0.0, 1.0, 0.2)),
]


@pytest.mark.parametrize(("function", "first", "second"), ASKING)
def test_a_number_is_compiled_in_where_tracing_asks_for_it(function, first, second):
    f = jt.jit(function)
    for arguments in (first, second, first):
        found, wanted = f(*arguments), function(*arguments)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
        assert type(found) is type(wanted)
    assert misses(f) == 2
    name = list(inspect.signature(function).parameters)[-1]
    assert f"{name}" in str(f.cache_info())
    assert f.lower(*second).graph is not None


def test_numbers_that_nobody_asks_for_stay_traced():
    @jt.jit
    def f(x, n, k):
        return x.reshape(n, -1) * k

    for k in range(5):
        np.testing.assert_array_equal(f(X, 3, k), X.reshape(3, -1) * k)
    assert misses(f) == 1
    assert "n = 3, k: Python int" in str(f.cache_info())


def test_the_error_is_that_of_the_first_attempt_where_numbers_do_not_help():
    f = jt.jit(lambda x, n: x @ np.ones((3, 3)) * n)
    with pytest.raises(errors.ShapeError):
        f(X, 2)
    g = jt.jit(lambda x, n: jt.map_fn(lambda v: np.zeros(int(v) + n), x))
    with pytest.raises(errors.TracerIndexError, match="integer"):
        g(X, 2)


def test_what_python_raises_for_the_number_is_raised():
    f = jt.jit(lambda n: np.zeros(n))
    with pytest.raises(ValueError, match="negative"):
        f(-1)
    assert f(2).shape == (2,)


def test_methods_and_keywords():
    class Windows:
        size = 2.0

        @jt.jit
        def cut(self, x, *, n, scale=1.0):
            return x[:n] * self.size * scale

    windows = Windows()
    for n in (2, 3, 2):
        np.testing.assert_array_equal(windows.cut(X, n=n, scale=0.5), X[:n])


def test_transformations_ask_through():
    def f(x, n):
        return (x.reshape(n, -1) ** 2).sum()

    np.testing.assert_array_equal(jt.jit(jt.grad(f))(X, 3), 2 * X)
    mapped = jt.jit(lambda x, n: jt.vmap(lambda row: row.reshape(n, -1))(x))
    assert mapped(np.ones((2, 12)), 4).shape == (2, 4, 3)


def test_functions_of_numpy_are_compared_by_identity():
    """Or each call would look into them."""
    f = jt.jit(lambda x: np.concatenate([np.roll(x, 1), np.tile(x, 2), np.linalg.norm(x)[None]]))
    f(X)
    ((entry,),) = [bucket.entries for bucket in f._buckets.values()]
    assert all(g.by_identity or g.how == "code" for g in entry.captured.guards)


def test_recursion_on_numbers():
    def gcd(a, b):
        return a if b == 0 else gcd(b, a % b)

    def factorial(n):
        return 1 if n == 0 else n * factorial(n - 1)

    def largest(numbers, first, last):
        if first == last:
            return numbers[first]
        middle = (first + last) // 2
        left, right = largest(numbers, first, middle), largest(numbers, middle + 1, last)
        return left if left >= right else right

    for f, *arguments in ((gcd, 12, 18), (factorial, 12), (largest, [3, 1, 7, 2], 0, 3)):
        assert jt.jit(f)(*arguments) == f(*arguments)

    def halved(x):
        return x if x < 1 else halved(x / 2)

    assert jt.jit(halved)(5.0) == 0.625
    assert jt.jit(halved)(np.array(5.0)) == 0.625

    def doubled(x):
        return x if x.sum() > 5 else doubled(2 * x)

    np.testing.assert_array_equal(jt.jit(doubled)(np.ones(2)), [4.0, 4.0])

    def grown(x):
        return x.sum() if x.sum() > 5 else grown(np.append(x, 1))

    with pytest.raises(errors.CarryError, match="(?s)'x' changes its type in the calls of grown"):
        jt.jit(grown)(np.ones(2))


def test_recursion_may_be_as_deep_as_in_python():
    def count(x, n):
        return x if n == 0 else count(x + 1, n - 1)

    assert jt.jit(count)(1.0, 400) == 401.0
    limit = sys.getrecursionlimit()
    with pytest.raises(RecursionError):
        jt.jit(count)(1.0, -1)
    assert sys.getrecursionlimit() == limit


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def factorial(n):
    r = 1
    for i in range(2, n + 1):
        r *= i
    return r


def doubled(n):
    x, i = 1, 0
    while i < n:
        x, i = 2 * x, i + 1
    return x


def power(x, n):
    r = 1
    while n:
        if n & 1:
            r *= x
        x, n = x * x, n >> 1
    return r


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def generator(n):
    s = 1
    for _ in range(n):
        s = (1103515245 * s + 12345) % 2**31
    return s


def sums_of_sums(n):
    s = t = 0
    for i in range(n):
        t += i
        s += t
    return s


@pytest.mark.parametrize(
    ("function", "arguments", "traced"),
    [
        (fibonacci, (100,), False),
        (factorial, (25,), False),
        (doubled, (70,), False),
        (power, (3, 50), False),
        (collatz, (27,), True),
        (generator, (1000,), True),
        (sums_of_sums, (50,), True),
    ],
)
def test_integers_that_outgrow_64_bits_are_pythons(function, arguments, traced):
    f = jt.jit(function)
    assert f(*arguments) == function(*arguments)
    assert ("n: Python int" in str(f.cache_info())) == traced


def test_where_they_cannot_be_compiled_in_growing_integers_raise_in_the_end():
    def f(x):
        a, b, i = 0, 1, 0
        while i < x[0]:
            a, b, i = b, a + b, i + 1
        return a

    compiled = jt.jit(f)
    assert compiled(np.array([90])) == f([90])
    with pytest.raises(OverflowError, match=r"(?s)64 bits.*np\.int64.*a \+ b"):
        compiled(np.array([100]))


def test_what_a_table_holds_does_not_grow_with_its_index():
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]

    def climb(x, i, j):
        while 0 < i < len(x) - 1 and 0 < j < len(x) - 1:
            k = np.argmax([x[i, j + 1], x[i + 1, j], x[i, j - 1], x[i - 1, j]])
            i, j = i + steps[k][0], j + steps[k][1]
        return i, j

    x = np.add.outer(np.arange(6.0), np.arange(6.0) ** 2)
    f = jt.jit(climb)
    assert f(x, 2, 2) == climb(x, 2, 2)
    assert "i: Python int" in str(f.cache_info())


def test_many_numbers_of_one_argument_take_few_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x, places, k):
        total = 0.0
        for p in places:
            total += x[:p].sum() if p > 3 else np.ones(p + 1).sum()
        return total * k

    rounds: list[int] = []
    add = CompiledNumbers._add

    def counted(self, call, leaves):
        rounds.append(len(leaves))
        return add(self, call, leaves)

    monkeypatch.setattr(CompiledNumbers, "_add", counted)
    x, places = np.arange(9.0), [3, 1, 4, 1, 5, 2, 6, 5, 3, 5, 2, 2, 0, 1, 3, 4]
    compiled = jt.jit(f)
    assert compiled(x, places, 2) == f(x, places, 2)
    assert len(rounds) < 10
    assert compiled(x, places, 3) == f(x, places, 3)
    assert compiled.cache_info().misses == 1  # `k` is no neighbour


def test_a_file_of_the_users_may_have_the_name_of_a_module_of_pythons(tmp_path, monkeypatch):
    (tmp_path / "statistics.py").write_text(
        "import numpy as np\n"
        "def f(x, steps):\n"
        "    for step in range(steps):\n"
        "        x = x + np.sin(0.5 * step)\n"
        "    return x if x[0] > 0 else -x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "statistics", raising=False)
    plain = importlib.import_module("statistics").f
    f = jt.jit(plain)
    for steps in (3, 40):
        np.testing.assert_allclose(f(X, steps), plain(X, steps), rtol=1e-13)
    assert misses(f) == 1  # a loop, and `steps` is traced
    assert origin("statistics") == "user"  # it may read files, as Python's does not
    assert origin("fractions") == "listed"
