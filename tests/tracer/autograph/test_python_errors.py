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
    assert "test_python_errors.py" in str(caught.value)


def test_numpys_numbers_raise_nothing():
    def f(x, n):
        return x[0] / n, x[1] // n, np.sqrt(x[2]), np.float64(n) / 0

    with np.errstate(all="ignore"):
        x = np.array([1.0, 2.0, -3.0])
        np.testing.assert_equal(jt.jit(f)(x, 0), f(x, 0))


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
