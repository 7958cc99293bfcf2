"""Python's own numbers raise as Python's do; NumPy's as NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")


def divided(a, b):
    return a / b


def floored(a, b):
    return a // b


def left_over(a, b):
    return a % b


def root(a, b):
    return math.sqrt(a - b)


def logarithm(a, b):
    return math.log(a) + b


def exponential(a, b):
    return math.exp(a * 1000.0) * b


def sine(a, b):
    return math.sin(a * 1e300 * 1e300 * b)


def arc(a, b):
    return math.acos(a + b)


def power(a, b):
    return float(a) ** b


def power_of_math(a, b):
    return math.pow(a, b)


def whole(a, b):
    return int(a * 1e300 * 1e300 * b)


def shifted(a, b):
    return (int(a) << int(b)) + (int(a) >> int(b))


def in_a_loop(a, b):
    s = 0.0
    for i in range(int(a)):
        s += 1.0 / (i - b)
    return s


def in_a_nest(a, b):
    s = 0.0
    for i in range(int(a)):
        for j in range(int(a)):
            if i > j:
                s += math.sqrt(i - j - b)
    return s


def integers_in_a_loop(a, b):
    s = 0
    for i in range(int(a)):
        s += int(a) // (i - int(b))
    return s


def in_a_while(a, b):
    s, i = 0.0, 0
    while i < a:
        s += 1.0 / (i - b)
        i += 1
    return s


def in_a_long_loop(a, b):
    out = np.zeros(300)
    for i in range(300):
        out[i] = math.sqrt(i * a - b)
    return out


def guarded(a, b):
    return a / b if b != 0 else -1.0


FUNCTIONS = [
    *(divided, floored, left_over, root, logarithm, exponential, sine, arc, power, power_of_math),
    *(
        whole,
        shifted,
        in_a_loop,
        in_a_nest,
        integers_in_a_loop,
        in_a_while,
        in_a_long_loop,
        guarded,
    ),
]


def outcome(f, *args):
    try:
        return f(*args)
    except (ZeroDivisionError, ValueError, OverflowError) as error:
        return type(error), str(error).split("\n")[0].split(",")[0]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("kind", [int, float])
def test_as_in_python(f, kind):
    compiled = jt.jit(f)
    for a, b in [(6, 3), (6, 0), (6, -1), (-6, 2), (0, 0), (0, -1), (1, 0)]:
        wanted, got = outcome(f, kind(a), kind(b)), outcome(compiled, kind(a), kind(b))
        if isinstance(wanted, tuple) or isinstance(got, tuple):
            assert got == wanted
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_the_error_names_the_line():
    with pytest.raises(ZeroDivisionError) as caught:
        jt.jit(in_a_nest.__globals__["in_a_loop"])(6, 3)
    assert "test_python_errors.py" in caught.value.__notes__[0]


def test_numpys_numbers_raise_nothing():
    def f(x, n):
        return x[0] / n, x[1] // n, np.sqrt(x[2]), np.float64(n) / 0

    with np.errstate(all="ignore"):
        x = np.array([1.0, 2.0, -3.0])
        np.testing.assert_equal(jt.jit(f)(x, 0), f(x, 0))


def cubed(x):
    x **= 3
    return x


def test_powers_that_are_too_large_raise():
    powers = (
        lambda x, y: x**y,
        lambda x, y: x**2,
        lambda x, y: x**0.5 + 2.0**x,
        lambda x, y: cubed(x),
    )
    for f in powers:
        compiled = jt.jit(f)
        for x, y in [(10.0, 400.0), (1e200, 2.0), (1e-200, -2.0), (2.0, 3.0), (math.inf, 2.0)]:
            want, got = outcome(f, x, y), outcome(compiled, x, y)
            assert got == want, (x, y)


OF_ELEMENTS = {
    "sqrt": lambda x: math.sqrt(x[0]),
    "sqrt in a loop": lambda x: sum([math.sqrt(v) for v in x]),
    "log": lambda x: math.log(x[2]),
    "acos": lambda x: math.acos(x[1]),
    "pow": lambda x: math.pow(x[0], 0.5),
    "fmod": lambda x: math.fmod(x[1], x[2]),
    "of a reduction": lambda x: math.sqrt(x.min()),
    "int": lambda x: int(x[2] / x[2]),
    "int of inf": lambda x: int(x[3]),
    "floor": lambda x: math.floor(x[3]),
    "round": lambda x: round(x[4]),
    "what is defined": lambda x: (math.sqrt(x[1]), math.log(x[1]), int(x[0]), math.exp(x[0])),
    "exp": lambda x: math.exp(x[1] * 400),
    "exp in a loop": lambda x: [math.exp(700 + 9 * v) for v in x if v > 0],
    "cosh": lambda x: math.cosh(x[0] * 800),
    "pow that is large": lambda x: math.pow(x[1] * 1e200, x[1]),
    "hypot": lambda x: math.hypot(x[1] * 8e307, x[0] * 8e307),
    "what is not too large": lambda x: (
        math.exp(709.782712893384 * x[1] / x[1]),
        math.exp2(x[0] * 2000),
        math.expm1(x[1]),
        math.sinh(x[0] * 710.4758),
        math.hypot(x[0] * 1.2e308, x[0] * 1.2e308),
        math.pow(x[3], x[1]),
    ),
    "of nothing": lambda x: (math.sqrt(x[4]), math.exp(x[3]), math.hypot(x[3], x[4])),
}


@pytest.mark.parametrize("what", OF_ELEMENTS)
def test_math_of_numpys_numbers_raises_as_of_pythons(what):
    x, f = np.array([-1.0, 2.0, 0.0, np.inf, np.nan]), OF_ELEMENTS[what]
    with np.errstate(all="ignore"):
        want, got = outcome(f, x), outcome(jt.jit(f), x)
    if type(want) is tuple and isinstance(want[0], type):
        assert got == want
    else:
        np.testing.assert_allclose(got, want, rtol=1e-13)


def test_fastmath_does_not_ask():
    assert jt.jit(divided, fastmath=True)(1.0, 0.0) == math.inf


def test_what_cannot_fail_is_not_checked():
    def f(n, x):
        s = 0.0
        for i in range(n):
            s += 1.0 / (i + 1) + math.sqrt(x * x + 1.0) / math.sqrt(i + 0.5)
        return s / 7

    assert "assert" not in str(jt.jit(f).trace(5, 2.0))


def test_vector_loops_carry_a_flag():
    graph = str(jt.jit(in_a_long_loop).trace(2.0, 1.0))
    loop = graph[graph.index("graph run") : graph.rindex("}\n  }")]
    assert "bitwise_or" in loop and "assert" not in loop


def test_formulas_of_ours_divide_as_numpy_does():
    assert jt.jit(lambda x: np.nan_to_num(np.mean(np.array([x]) / x)))(0.0) == 0.0
    assert jt.jit(lambda x: jt.special.xlogy(x, x))(0.0) == 0.0


def test_gradients_and_batches():
    f = jt.jit(jt.grad(lambda x, y: x / y))
    assert f(1.0, 2.0) == 0.5
    with pytest.raises(ZeroDivisionError):
        f(1.0, 0.0)
    batched = jt.jit(lambda xs, y: jt.vmap(lambda x: x * (1.0 / y))(xs))
    np.testing.assert_array_equal(batched(np.ones(3), 2.0), np.full(3, 0.5))
    with pytest.raises(ZeroDivisionError):
        batched(np.ones(3), 0.0)


TABLE, NOTHING, NAMES = [1, 2], 0, {"a": 1.0}


def beyond(a, x):
    return a[5] if x > 0 else np.float64(1.5)


def written_beyond(a, x):
    if x > 0:
        a[7] = 1
    return 1.5


def by_nothing(a, x):
    if x > 0:
        return 1.0 / NOTHING
    return 1.5


def missing_key(a, x):
    if x > 0:
        return NAMES["b"]
    return 1.5


def missing_number(a, x):
    if x > 0:
        return {1: 2.0}[5]
    return 1.5


def beyond_the_list(a, x):
    if x > 0:
        return float(TABLE[4])
    return 1.5


def no_root(a, x):
    if x > 0:
        return math.sqrt(-1.0)
    return 1.5


def no_largest(a, x):
    return float(a[:0].max()) if x > 0 else 1.5


def not_so(a, x):
    if x > 0:
        assert NOTHING, "no"
    return 1.5


def of_both(a, x):
    return bool(x > 0 and a[6] > 1)


def in_a_range(a, x):
    s = 0.0
    for _ in range(int(x)):
        s += a[9]
    return s


def raised_in_a_range(a, x):
    for k in range(int(x)):
        a[0] = k
        raise ValueError("at once")
    return 1.5


def in_a_while(a, x):
    k = 0
    while k < x:
        k += 1
        a[3] = 4
    return k


@pytest.mark.parametrize(
    "f",
    [
        *(beyond, written_beyond, by_nothing, missing_key, missing_number, beyond_the_list),
        *(no_root, no_largest, not_so, of_both, in_a_range, raised_in_a_range, in_a_while),
    ],
    ids=lambda f: f.__name__,
)
def test_what_is_not_reached_raises_nothing(f):
    def of_element(a, x):
        return f(a, float(x[0]))

    compiled = jt.jit(of_element)
    for x in (-1.0, 2.0, 0.0):
        a, b = np.arange(3.0), np.arange(3.0)
        try:
            want = f(a, x)
        except Exception as error:
            with pytest.raises(type(error)) as found:
                compiled(b, np.array([x]))
            assert str(error).split("\n")[0].strip("'") in str(found.value)
            assert np.array_equal(b, np.arange(3.0))
        else:
            assert compiled(b, np.array([x])) == want and np.array_equal(a, b)


def test_methods_of_numbers_and_what_picks_one():
    def numbers(a):
        n = int(a[0] * 4)
        return n.bit_length(), (-n).bit_count(), float(a[1]).is_integer(), a[1].is_integer()

    def picked(a):
        least = min(float(v) for v in a)
        return least, max(map(float, a)), max(range(3), key=lambda i: abs(a[i])), max([], default=7)

    for a in (np.array([1.5, -2.0, 3.5]), np.array([np.inf, 2.25, -7.0])):
        if np.isfinite(a).all():
            assert repr(jt.jit(numbers)(a)) == repr(numbers(a))
        assert repr(jt.jit(picked)(a)) == repr(picked(a))


def counted(a, x, b):
    for i in range(x.shape[0]):
        a[int(x[i] * 4.0)] += 1


def counted_if(a, x, b):
    for i in range(x.shape[0]):
        k = int(x[i] * 4.0)
        if k > 1 or k < 0:
            a[k] += 1


def by_a_quotient(a, x, b):
    for i in range(x.shape[0]):
        a[int(float(x[i]) / float(b))] += 1


def by_a_root(a, x, b):
    for i in range(x.shape[0]):
        for j in range(2):
            a[j + int(math.sqrt(x[i] + b))] += 1


@pytest.mark.parametrize("f", [counted, counted_if, by_a_quotient, by_a_root])
@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, -1.5, 1e30, 1.0])
def test_what_an_index_is_made_of_raises_before_the_index(f, wrong):
    for b in (0.0, 1.0):
        x = np.full(70, 0.5)
        x[66] = wrong
        try:
            f(np.zeros(8), x, b)
        except Exception as error:
            kind = OverflowError if wrong == 1e30 else type(error)
            with pytest.raises(kind):
                jt.jit(f)(np.zeros(8), x, b)
        else:
            want, got = np.zeros(8), np.zeros(8)
            f(want, x, b)
            jt.jit(f)(got, x, b)
            assert np.array_equal(got, want)
