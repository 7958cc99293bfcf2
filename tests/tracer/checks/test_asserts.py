"""`jt.check`, `jt.assert_...` and `assert`: values and line of what fails, compiled as in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt

X = np.arange(6.0).reshape(2, 3)
N = np.arange(4)
FAILING: list[Any] = []


def failing(*args: Any, says: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function whose assertion in the line with `# here` fails so."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        FAILING.append(pytest.param(function, args, says, id=function.__name__))
        return function

    return add


def marked(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if "# here" in line)


@failing(X, says="sum 15.0 and 1.000")
def numbers_in_a_message(x: Any) -> Any:
    jt.check(x.sum() < 3, "sum {} and {s:.3f}", x.sum(), s=x[0, 1])  # here


@failing(np.int64(4), says="n = 4")
def one_number(n: Any) -> Any:
    jt.check(n > 4, "n = {}", n)  # here


@failing(X, says="")
def no_message(x: Any) -> Any:
    jt.check(x < 3)  # here


@failing(X, says="{0} is literal, 5.0 is not")
def braces(x: Any) -> Any:
    jt.check(x.max() < 3, "{{0}} is literal, {0} is not", x.max())  # here


@failing(X, says="assert_less: 2 of 6 elements, the first at [1, 1]: 4.0 is not less than 4")
def less(x: Any) -> Any:
    jt.assert_less(x, 4)  # here


@failing(
    X, says="assert_less_equal: 1 of 6 elements, the first at [1, 2]: 5.0 is greater than 4 or nan"
)
def less_equal(x: Any) -> Any:
    jt.assert_less_equal(x, 4)  # here


@failing(X, says="assert_greater: 1 of 6 elements, the first at [0, 0]: 0.0 is not greater than 0")
def greater(x: Any) -> Any:
    jt.assert_greater(x, 0)  # here


@failing(
    X, says="assert_greater_equal: 1 of 6 elements, the first at [0, 0]: 0.0 is less than 1 or nan"
)
def greater_equal(x: Any) -> Any:
    jt.assert_greater_equal(x, 1)  # here


@failing(X, says="assert_equal: 1 of 6 elements, the first at [1, 2]: 5.0 is not equal to 0.0")
def equal(x: Any) -> Any:
    jt.assert_equal(x, x * (x < 5))  # here


@failing(N, says="assert_equal: 1 of 4 elements, the first at [3]: 3 is not equal to 0")
def equal_integers(n: Any) -> Any:
    jt.assert_equal(n, n % 3)  # here


@failing(X, says="assert_not_equal: 1 of 6 elements, the first at [0, 2]: 2.0 is equal to 2")
def not_equal(x: Any) -> Any:
    jt.assert_not_equal(x, 2)  # here


@failing(np.float64(0.5), says="assert_close: 0.5 is not within rtol=0.1, atol=0 of 1")
def close(x: Any) -> Any:
    jt.assert_close(x, 1, rtol=0.1, atol=0)  # here


@failing(
    X, says="assert_in_range: 3 of 6 elements, the first at [1, 0]: 3.0 is not between 0 and 2.5"
)
def in_range(x: Any) -> Any:
    jt.assert_in_range(x, 0, 2.5)  # here


@failing(X, says="assert_finite: 1 of 6 elements, the first at [0, 1]: inf is not finite")
def finite(x: Any) -> Any:
    jt.assert_finite(np.where(x == 1, np.inf, x))  # here


@failing(np.float64(np.nan), says="assert_finite: nan is not finite")
def finite_number(x: Any) -> Any:
    jt.assert_finite(x)  # here


@failing(X - 1, says="assert_positive: 2 of 6 elements, the first at [0, 0]: -1.0 is not positive")
def positive(x: Any) -> Any:
    jt.assert_positive(x)  # here


@failing(X, says="assert_negative: 6 of 6 elements, the first at [0, 0]: 0.0 is not negative")
def negative(x: Any) -> Any:
    jt.assert_negative(x)  # here


@failing(
    X - 1, says="assert_non_negative: 1 of 6 elements, the first at [0, 0]: -1.0 is negative or nan"
)
def non_negative(x: Any) -> Any:
    jt.assert_non_negative(x)  # here


@failing(
    X, says="assert_non_positive: 5 of 6 elements, the first at [0, 1]: 1.0 is positive or nan"
)
def non_positive(x: Any) -> Any:
    jt.assert_non_positive(x)  # here


@failing(
    np.zeros((2, 1, 3, 1, 1, 2)),
    says="assert_positive: 12 of 12 elements, the first at [0, 0, 0, 0, 0, 0]: 0.0 is not positive",
)
def many_dims(x: Any) -> Any:
    jt.assert_positive(x)  # here


@failing(
    X.astype(np.float32),
    says="assert_less: 1 of 6 elements, the first at [1, 2]: 5.0 is not less than 5.0",
)
def float32(x: Any) -> Any:
    jt.assert_less(x, np.float32(5))  # here


@failing(X, says="x[1] is 1.0")
def in_a_python_loop(x: Any) -> Any:
    for i in range(3):
        jt.check(x[0, i] < 1, "x[{}] is {}", i, x[0, i])  # here


@failing(np.arange(300.0), says="x[200] is 200.0")
def in_a_compiled_loop(x: Any) -> Any:
    total = 0.0
    for i in range(300):
        jt.check(x[i] < 200, "x[{}] is {}", i, x[i])  # here
        total += x[i]
    return total


@failing(X, says="row 1: 12.0")
def in_scan(x: Any) -> Any:
    def step(i: Any, row: Any) -> Any:
        jt.check(row.sum() < 5, "row {}: {}", i, row.sum())  # here
        return i + 1, row

    return jt.scan(step, 0, x)


@failing(X, says="4.0")
def in_a_branch(x: Any) -> Any:
    if x.sum() > 3:
        jt.check(x[1, 1] < 2, "{}", x[1, 1])  # here
        return x
    return -x


@failing(X, says="12.0")
def under_vmap(x: Any) -> Any:
    def one(row: Any) -> Any:
        jt.check(row.sum() < 5, "{}", row.sum())  # here
        return row

    return jt.vmap(one)(x)


@failing(X, says="assert_less: 2 of 3 elements, the first at [1]: 4.0 is not less than 4")
def elements_under_vmap(x: Any) -> Any:
    def one(row: Any) -> Any:
        jt.assert_less(row, 4)  # here
        return row

    return jt.vmap(one)(x)


@failing(X, says="15.0")
def under_grad(x: Any) -> Any:
    def loss(x: Any) -> Any:
        jt.check(x.sum() < 2, "{}", x.sum())  # here
        return (x * x).sum()

    return jt.grad(loss)(x)


@failing(X, says="sum is 15.00 of (2, 3)")
def an_f_string(x: Any) -> Any:
    assert x.sum() < 0, f"sum is {x.sum():.2f} of {x.shape}"  # here


@failing(X, says="x[0] = 3.0")
def an_f_string_in_a_loop(x: Any) -> Any:
    for i in range(3):
        assert x[1, i] < 3, f"x[{i}] = {x[1, i]}"  # here


@failing(X, says="max 5")
def an_old_format(x: Any) -> Any:
    assert x.max() < 5, "max %d" % x.max()  # noqa: UP031  # here


@pytest.mark.parametrize(("function", "args", "says"), FAILING)
def test_values_and_line(function: Any, args: Any, says: str) -> None:
    with pytest.raises(AssertionError) as plain:
        function(*args)
    assert str(plain.value).partition("\nassert ")[0] == says
    compiled = jt.jit(function)
    for _ in range(2):
        with pytest.raises(AssertionError) as caught:
            compiled(*args)
        assert str(caught.value).strip() == says
        notes = "\n".join(caught.value.__notes__)
        assert f"test_asserts.py:{marked(function)}, in " in notes


def test_there_are_thirty() -> None:
    assert len(FAILING) >= 30


def test_what_holds_is_silent_and_stays() -> None:
    def f(x: Any) -> Any:
        jt.check(x.sum() > 0, "{}", x.sum())
        jt.assert_finite(x)
        return 1.0  # nothing of x is needed for it

    compiled = jt.jit(f)
    assert compiled(X) == 1.0
    assert str(compiled.trace(X)).count("assert") >= 2
    with pytest.raises(AssertionError, match="-15.0"):
        compiled(-X)


def test_order() -> None:
    seen = []

    def f(x: Any) -> Any:
        jt.io_callback(lambda a: seen.append(float(a)), None, x[0, 1])
        jt.check(x[0, 0] > 0, "second")
        jt.io_callback(lambda a: seen.append(float(a)), None, x[0, 2])

    with pytest.raises(AssertionError, match="second"):
        jt.jit(f)(X)
    assert seen == [1.0]


def test_arrays_in_messages_are_short() -> None:
    with pytest.raises(AssertionError) as caught:
        jt.jit(lambda x: jt.check(x < 5, "x = {}", x))(np.arange(1000.0))
    assert str(caught.value) == "x = [  0.   1.   2. ... 997. 998. 999.]"


STATIC: list[Any] = [
    (lambda x: jt.assert_rank(x, 3), "assert_rank: the rank is 2, not 3"),
    (lambda x: jt.assert_rank(x, (0, 1)), "assert_rank: the rank is 2, not 0 or 1"),
    (lambda x: jt.assert_shape(x, (2, 4)), r"the shape is \[2, 3\], not \[2, 4\]"),
    (lambda x: jt.assert_shape(x, "n n"), r"the shape is \[2, 3\], not \[n, n\]: n is 2"),
    (lambda x: jt.assert_shape(x, (..., 1, 2, 3)), r"not \[..., 1, 2, 3\]"),
    (lambda x: jt.assert_shapes((x, "n k"), (x.T, "n k")), "n is 2"),
    (lambda x: jt.assert_dtype(x, np.float32), "the dtype is float64, not float32"),
    (lambda x: jt.assert_dtype(x, ("integral", np.bool_)), "not integral or bool"),
    (lambda x: jt.assert_compatible(x, x.T), r"\[2, 3\] and \[3, 2\] do not broadcast"),
    (lambda x: jt.assert_equal(x, x.T), "assert_equal: the shapes do not go together"),
]


@pytest.mark.parametrize(("f", "says"), STATIC)
def test_shapes_and_dtypes(f: Any, says: str) -> None:
    for g in (f, jt.jit(f)):
        with pytest.raises(jt.errors.FailedAssertion, match=says):
            g(X)


def test_shapes_and_dtypes_that_hold() -> None:
    def f(x: Any) -> Any:
        jt.assert_rank(x, (1, 2))
        jt.assert_shape(x, "rows 3")
        jt.assert_shape(x, (None, ...))
        jt.assert_shapes((x, "n k"), (x.T, "k n"), (x.sum(), ""))
        jt.assert_dtype(x, "real floating")
        jt.assert_compatible(x, x[0], 1.0)
        return x

    f(X)
    np.testing.assert_array_equal(jt.jit(f)(X), X)


def test_wrong_messages_are_errors_at_once() -> None:
    with pytest.raises(IndexError):
        jt.check(True, "{}")
    with pytest.raises(TypeError, match="the message of jt.check is a string"):
        jt.check(True, 3)  # type: ignore[arg-type]


def test_other_exceptions() -> None:
    def f(n: int) -> int:
        jt.check(n > 0, "n = {}", n, error=ValueError)
        jt.check(n < 9, "error = {error}", error=n)  # a value by that name is a value
        return n

    for function in (f, jt.jit(f)):
        assert function(2) == 2
        with pytest.raises(ValueError, match="n = -1"):
            function(-1)
        with pytest.raises(AssertionError, match="error = 10"):
            function(10)
    with pytest.raises(TypeError, match=r"jt.check raises .*, not KeyboardInterrupt"):
        jt.check(True, error=KeyboardInterrupt)
