"""Wrong programs, and what jitney says about them.

Every message names the user's file and line with its source text (the line marked `# here`), says
what happened, and ends with the line to read: where, and what to write instead.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import math
import queue
import re
import secrets
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden_texts import Golden

import jitney as jt
from jitney.tracer.containers.stand_ins import fail

pytestmark = pytest.mark.filterwarnings("ignore:the matrix subclass")
jit = functools.partial(jt.jit, backend="interpreter")
plain = functools.partial(jit, autograph=False)
X = np.arange(3.0)
NUMBER = jt.ShapeDtype((), np.int64)  # a number that no call gives: it cannot be computed
M = np.ones((3, 4))
leaked: Any = queue.SimpleQueue()  # out of sight for what is written back


@dataclass(frozen=True)
class Wrong:
    """A wrong program: the exception's class, parts of the message, parts of its last line."""

    program: Callable[[], Any]
    kind: type[Exception]
    says: tuple[str, ...]
    remedy: tuple[str, ...]
    names_line: bool = True

    @property
    def name(self) -> str:
        return self.program.__name__


WRONG: list[Wrong] = []


def wrong(kind: type[Exception], says: str, remedy: str, names_line: bool = True) -> Any:
    """Enter a program; parts of the message are separated by `|`."""

    def enter(program: Callable[[], Any]) -> Callable[[], Any]:
        WRONG.append(
            Wrong(program, kind, tuple(says.split("|")), tuple(remedy.split("|")), names_line)
        )
        return program

    return enter


# Python asks for a value


@wrong(TypeError, "truth value|traced bool[]", "jt.where|jt.cond")
def branch_on_a_tracer() -> None:
    @plain
    def f(x):
        if x[0] > 0:  # here
            return x
        return -x

    f(X)


@wrong(TypeError, "truth value", "jt.while_loop")
def while_on_a_tracer() -> None:
    @plain
    def f(x):
        while x.sum() < 10:  # here
            x = x * 2
        return x

    f(X)


@wrong(TypeError, "truth value|`and`", "for logic")
def and_of_tracers() -> None:
    plain(lambda x: (x[0] > 0) and (x[1] > 0))(X)  # here


@wrong(TypeError, "truth value|comparisons in a chain", "& ")
def a_chained_comparison() -> None:
    plain(lambda x: 0 < x[0] < 1)(X)  # here


@wrong(ValueError, "truth value of an array with more than one element|traced bool[3]", "np.any")
def the_truth_of_a_whole_array() -> None:
    @jit
    def f(x):
        assert x > 0  # here
        return x

    f(X)


@wrong(TypeError, "float() needs a number|traced f64[]", "before the call|astype")
def float_of_a_tracer() -> None:
    plain(lambda x: x * float(x[0]))(X)  # here


@wrong(TypeError, "int() needs a number", "astype")
def int_of_a_tracer() -> None:
    plain(lambda x: x * int(x[0]))(X)  # here


@wrong(TypeError, "math functions", "jt.sin instead of math.sin")
def a_function_of_math() -> None:
    plain(lambda x: math.sin(x[0]))(X)  # here


@wrong(TypeError, "needs an integer|traced i64[]", "static_argnames='n'|fori_loop")
def range_of_a_tracer() -> None:
    @plain
    def f(x, n):
        for _ in range(n):  # here
            x = x * 2
        return x

    f.trace(X, NUMBER)


@wrong(TypeError, "needs an integer|traced i64[]", "static_argnames='n'")
def an_array_of_a_traced_size() -> None:
    jit(lambda x, n: x + np.zeros(n)).trace(X, NUMBER)  # here


@wrong(TypeError, "text of a traced value|traced f64[]", 'jt.debug_print("{:.3f}", x)')
def a_traced_number_in_a_formatted_string() -> None:
    plain(lambda x: print(f"{x.sum():.3f}"))(X)  # here


@wrong(TypeError, "integer", "static_argnames")
def a_list_indexed_by_a_tracer() -> None:
    jit(lambda x, n: [x, -x][n]).trace(X, NUMBER)  # here


@wrong(TypeError, "", "static_argnames|static")
def a_shape_from_a_tracer() -> None:
    jit(lambda x, n: jt.zeros(n) + x).trace(X, NUMBER)  # here


@wrong(TypeError, "an assignment into an array that NumPy made", "jt.zeros")
def a_numpy_array_filled_with_tracers() -> None:
    @plain
    def f(x):
        out = np.zeros(3)
        out[0] = x[0] * 2  # here
        return out

    f(X)


@wrong(TypeError, "np.asarray(x)", "jt.asarray")
def asarray_of_a_tracer() -> None:
    plain(lambda x: np.asarray(x) + 1)(X)  # here


@wrong(TypeError, "iteration over a 0-d", "fori_loop")
def iterate_over_a_scalar() -> None:
    jit(lambda x: list(x.sum()))(X)  # here


@wrong(TypeError, "len() of an unsized", "x.size")
def len_of_a_scalar() -> None:
    jit(lambda x: len(x.sum()))(X)  # here


# Shapes, dtypes, indices


@wrong(ValueError, "(3,)|(4,)", "", True)
def shapes_that_do_not_broadcast() -> None:
    jit(lambda x, y: x + y)(X, np.ones(4))  # here


@wrong(ValueError, "3|5", "")
def a_matmul_mismatch() -> None:
    jit(lambda a, b: a @ b)(M, np.ones((3, 5)))  # here


@wrong(ValueError, "reshape", "")
def a_reshape_that_does_not_fit() -> None:
    jit(lambda x: x.reshape(2, 2))(X)  # here


@wrong(ValueError, "(1, 3)|(1, 4)", "jt.stack")
def a_concatenate_mismatch() -> None:
    jit(lambda x, y: np.concatenate([x[None], y[None]]))(X, np.ones(4))  # here


@wrong(ValueError, "", "")
def an_assignment_of_the_wrong_shape() -> None:
    @jit
    def f(x):
        x[:2] = np.ones(3)  # here
        return x

    f(X.copy())


@wrong(np.exceptions.AxisError, "axis 2", "")
def an_axis_out_of_bounds() -> None:
    jit(lambda x: np.sum(x, axis=2))(M)  # here


@wrong(IndexError, "5|3", "")
def an_index_out_of_bounds() -> None:
    jit(lambda x: x[5])(X)  # here


@wrong(IndexError, "too many indices", "")
def too_many_indices() -> None:
    jit(lambda x: x[0, 0])(X)  # here


@wrong(IndexError, "", "")
def a_float_as_index() -> None:
    jit(lambda x: x[1.5])(X)  # here


@wrong(TypeError, "float64|int64", "")
def an_in_place_cast_error() -> None:
    @jit
    def f(x):
        x += 0.5  # here
        return x

    f(np.arange(3))


@wrong(TypeError, "f64", "")
def bitwise_and_of_floats() -> None:
    jit(lambda x: x & 1)(X)  # here


@wrong(TypeError, "bool", "")
def minus_of_booleans() -> None:
    jit(lambda x: x - x)(X > 0)  # here


@wrong(OverflowError, "300", "")
def a_python_int_that_does_not_fit() -> None:
    jit(lambda x: x + 300)(np.zeros(3, np.uint8))  # here


@wrong(TypeError, "scalar does not support item assignment", "keep the array")
def assignment_to_a_scalar() -> None:
    @jit
    def f(x):
        s = x.sum()
        s[...] = 1.0  # here
        return s

    f(X)


@wrong(ValueError, "read-only", "copy")
def assignment_to_a_read_only_argument() -> None:
    x = X.copy()
    x.flags.writeable = False

    @jit
    def f(x):
        x[0] = 1.0  # here

    f(x)


@wrong(TypeError, "", "")
def a_shape_that_depends_on_values() -> None:
    jit(jt.vmap(lambda x: x[x > 1].reshape(2, -1)))(M)  # here


# Functions


@wrong(TypeError, "np.is_busday|numpy.is_busday", "outside of the compiled function")
def an_unsupported_function() -> None:
    jit(lambda x: np.is_busday(x))(M @ M.T)  # here


@wrong(TypeError, "sliding_window_view|writeable", "leave out writeable")
def an_unsupported_option() -> None:
    jit(lambda x: jt.sliding_window_view(x, 2, axis=0, writeable=True))(M)  # here


@wrong(TypeError, "longdouble|float128", "")
def an_unsupported_dtype() -> None:
    jit(lambda x: x.astype(np.longdouble))(X)  # here


@wrong(TypeError, "sum() got an unexpected keyword argument 'axes'", "")
def an_unknown_keyword() -> None:
    jit(lambda x: jt.sum(x, axes=0))(X)  # here


# Arguments


@wrong(TypeError, "when, an array of dtype datetime64[D]", "")
def a_date_argument() -> None:
    jit(lambda x, when: x)(X, np.array(["2020-01-01"], "M8[D]"))  # here


@wrong(TypeError, "vectorize", "static_argnames='g'")
def an_object_that_can_be_called() -> None:
    jit(lambda x, g: g(x))(X, np.vectorize(math.sin))  # here


@wrong(TypeError, "object", "register_pytree")
def an_object_argument() -> None:
    jit(lambda o: o)(object())  # here


@wrong(TypeError, "dtype object", "number dtype")
def an_object_array() -> None:
    jit(lambda x: x)(np.array([1, None]))  # here


@wrong(TypeError, "'floor' not supported", "convert an operand")
def floor_of_complex_numbers() -> None:
    jit(lambda x: np.floor(x))(X + 1j)  # here


@wrong(TypeError, "real numbers", "holomorphic=True")
def a_complex_loss() -> None:
    jt.grad(lambda z: z * z)(1 + 2j)  # here


@wrong(TypeError, "masked array", "x.mask")
def a_masked_array() -> None:
    jit(lambda x: x)(np.ma.array([1.0, 2.0], mask=[0, 1]))  # here


@wrong(TypeError, "np.matrix", "np.asarray")
def a_matrix() -> None:
    jit(lambda x: x)(np.asmatrix(M))  # here


@wrong(TypeError, "strings|<U", "codes")
def an_array_of_strings() -> None:
    jit(lambda x: x)(np.array(["a", "b"]))  # here


@wrong(TypeError, "unhashable|list [1, 2]", "tuple")
def an_unhashable_static_argument() -> None:
    jit(lambda x, n: x, static_argnums=1)(X, [1, 2])  # here


@wrong(TypeError, "is static and an array", "leave it out")
def a_static_array() -> None:
    jit(lambda x, y: x, static_argnames="y")(X, X)  # here


@wrong(TypeError, "static_argnames has 'm'", "choose among x, n")
def an_unknown_static_name() -> None:
    jit(lambda x, n: x, static_argnames="m")  # here


@wrong(TypeError, "donate_argnums=3|has 1 positional parameter", "leave out donate_argnums")
def a_donated_argument_that_is_not_there() -> None:
    jit(lambda x: x, donate_argnums=3)  # here


@wrong(TypeError, "of a text and a number|'loss: ' and traced f64[]", "jt.debug_print")
def a_text_and_a_traced_number() -> None:
    jit(lambda x: print("loss: " + x.sum()))(X)  # here


@wrong(TypeError, "static_argnums=5", "static_argnames")
def an_unknown_static_position() -> None:
    jit(lambda x, n: x, static_argnums=5)  # here


# Life and purity of tracers


@wrong(ValueError, "was kept after its call|made at", "return the array")
def a_leaked_tracer() -> None:
    jit(lambda x: leaked.put(x + 1))(X)
    leaked.get() + 1  # here


@wrong(ValueError, "was kept after its call", "return the array")
def a_leaked_tracer_as_argument() -> None:
    jit(lambda x: leaked.put(x + 1))(X)
    jit(lambda x: x + 1)(leaked.get())  # here


@wrong(ValueError, "operating system", "as an argument")
def random_numbers() -> None:
    jit(lambda x: x + secrets.randbelow(3))(X)  # here


@wrong(ValueError, "differ", "pass it as an argument")
def an_impure_function() -> None:
    count = iter(range(10))

    @functools.partial(jit, check=True)
    def f(x):
        return x * float(next(count))  # here

    f(X)


@wrong(TypeError, "a generator", "return lists")
def a_generator_function() -> None:
    @jit  # here
    def f(x):
        yield x


@wrong(TypeError, "an async function", "plain functions")
def an_async_function() -> None:
    @jit  # here
    async def f(x):
        return x


@wrong(TypeError, "generator or coroutine", "return a list")
def a_returned_generator() -> None:
    jit(lambda x: (v for v in x))(X)  # here


@wrong(TypeError, "staticmethod object", "above @jt.jit")
def jit_above_staticmethod() -> None:
    class C:
        @jit  # here
        @staticmethod
        def f(x: Any) -> Any:
            return x

    del C


@wrong(TypeError, "needs a function", "@jt.jit")
def jit_of_no_function() -> None:
    jit(3)  # here


@wrong(TypeError, "a result of type object", "register_pytree")
def an_object_as_result() -> None:
    jit(lambda x: object())(X)  # here


# Control flow and derivatives


@wrong(TypeError, "f64[3]|f64[4]", "")
def a_carry_that_changes_its_shape() -> None:
    jit(
        lambda x: jt.while_loop(  # here
            lambda c: c.sum() < 9, lambda c: jt.concat([c, c[:1]]), x
        )
    )(X)


@wrong(TypeError, "", "")
def branches_of_different_dtypes() -> None:
    jit(
        lambda x: jt.cond(  # here
            x[0] > 0, lambda v: v, lambda v: v.astype(np.float32), x
        )
    )(X)


@wrong(ValueError, "from example to example", "return")
def mutation_of_an_outer_array_by_each_example() -> None:
    @jit
    def f(x):
        def example(v):
            x[0] = v  # here
            return v

        return jt.vmap(example)(x * 2)

    f(X.copy())


@wrong(TypeError, "scalar", "np.sum|np.mean")
def the_gradient_of_an_array() -> None:
    jit(lambda x: jt.grad(lambda v: v * 2)(x))(X)  # here


@wrong(TypeError, "int64", "")
def the_gradient_of_integers() -> None:
    jit(lambda x: jt.grad(lambda v: v.sum())(x))(np.arange(3))  # here


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_wrong_program(case: Wrong) -> None:
    with pytest.raises(case.kind) as info:
        case.program()
    message = str(info.value)
    print(f"{type(info.value).__name__}: {message}")
    for part in case.says:
        assert part in message
    last = message.splitlines()[-1]
    for part in case.remedy:
        assert part in last
    assert "test_errors.py:" in message
    assert "# here" in message
    assert last.startswith("test_errors.py:"), "the last line begins with the place"
    lines = message.splitlines()
    if isinstance(info.value, jt.errors.JitneyError) and info.value.what:
        assert lines[0].startswith(last.partition(" ")[0]), "so does the first"
    assert len(lines) <= 12, "it fits on a screen"
    GOLDEN.check(case.name, f"{type(info.value).__name__}: {_without_places(message)}")


@pytest.mark.parametrize(
    "asks",
    [lambda y: fail(AttributeError("other")), lambda y: np.sum(y, axis=9), lambda y: bool(y)],
)
def test_errors_that_are_caught_keep_no_arrays(asks: Callable[[Any], Any]) -> None:
    """In a circle with its traceback an error kept the arrays of its callers until the next collection:
    what grown containers hold could then not be assigned into."""
    left = []

    def f(x):
        y = x + 1
        left.append(weakref.ref(y))
        with contextlib.suppress(Exception):
            asks(y)
        del y
        left[0] = left[0]()
        return x

    gc.disable()
    try:
        plain(f)(X)
    finally:
        gc.enable()
    assert left[0] is None


def _without_places(message: str) -> str:
    """A message without what moves when this file changes, where it is, and what newer Pythons add:
    exact columns in f-strings, guesses at keywords."""
    message = re.sub(r"(/\S*/)?test_errors\.py:\d+", "test_errors.py:N", message)
    message = re.sub(r"(formatted_string.*, column )\d+", r"\1N", message)
    message = re.sub(r"\. Did you mean '\w+'\?", "", message)
    return re.sub(r"0x[0-9a-f]+", "0xN", message)


GOLDEN = Golden(Path(__file__).parents[2] / "golden" / "wrong_programs.txt")


def test_the_table_is_long() -> None:
    assert len(WRONG) >= 60


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.name)
def test_nothing_is_left_half_done(case: Wrong) -> None:
    with pytest.raises(case.kind):
        case.program()
    assert type(jt.sin(X)) is np.ndarray
    np.testing.assert_array_equal(jit(lambda x: x + 1)(X), X + 1)
