"""`jit(check="nan")` and its kin: the first op that made a NaN, infinity or wrapped integer is named."""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.ir.passes.watch import watch

X = np.linspace(-1.0, 2.0, 7)
POSITIVE = np.linspace(0.5, 2.0, 6)
Planted = tuple[Callable[..., Any], tuple[Any, ...], str]
PLANTED: list[Any] = []


def planted(
    *args: Any, says: str = "made nan"
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A function whose first NaN is made in the line with `# here`."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PLANTED.append(pytest.param(function, args, says, id=function.__name__))
        return function

    return add


def marked(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(inspect.unwrap(function))
    return first + next(k for k, line in enumerate(lines) if "# here" in line)


@planted(X, says=r"log made nan in 2 of 7 elements, first at \[0\]")
def logarithm(x: Any) -> Any:
    y = np.log(x + 0.1)  # here
    return y * 2 + 1


@planted(X, says="sqrt made nan")
def root_in_a_sum(x: Any) -> Any:
    y = x - 1
    return np.sum(np.sqrt(y)) + np.sum(x)  # here


@planted(np.zeros(3), np.zeros(3), says="div made nan")
def zero_by_zero(x: Any, y: Any) -> Any:
    z = x / y  # here
    return np.exp(z)


@planted(np.full(2, 1e308), says="sub made nan")
def infinity_less_infinity(x: Any) -> Any:
    y = x * 10
    return y - y  # here


@planted(X, says="arccos made nan")
def only_a_comparison_sees_it(x: Any) -> Any:
    y = np.arccos(x * 2)  # here
    return (y > 1).sum()


@planted(X, says="sqrt made nan")
def only_an_integer_sees_it(x: Any) -> Any:
    y = x**0.5  # here
    return y.astype(np.int64)


@planted(X)
def only_a_condition_sees_it(x: Any) -> Any:
    y = np.log(x).sum()  # here
    if y > 0:
        return x
    return -x


@planted(X)
def masked_first(x: Any) -> Any:
    safe = np.where(x > 0.01, np.log(x), 0.0)
    return safe + np.arcsin(x * 0.9)  # here


@planted(np.zeros((3, 3)), says="inv|div|solve")
def of_a_function_of_ours(x: Any) -> Any:
    return x / np.linalg.norm(x)  # here


@planted(np.float64(-2.0))
def a_number(x: Any) -> Any:
    return np.sqrt(x) + 1  # here


@planted(X, says="iteration 4 of the loop")
def in_a_loop(x: Any) -> Any:
    total = 0.0
    for i in range(300):
        total = total + np.log(x[0] + 4.5 - i)  # here
        total = total * 0.5
    return total + x[0]


@planted(np.float64(1.0), says="iteration 4 of the loop")
def in_while_loop(x: Any) -> Any:
    def body(state: Any) -> Any:
        i, y = state
        return i + 1, y + np.sqrt(3.0 - i)  # here

    return jt.while_loop(lambda s: s[0] < 9, body, (0.0, x))[1]


@planted(np.arange(6.0), says="iteration 4 of the loop")
def in_scan(x: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        y = np.log(4.0 - row - 0.5)  # here
        return carry + y, carry

    return jt.scan(step, 0.0, x)


@planted(np.arange(12.0).reshape(4, 3), says="iteration 2 of the loop")
def in_fori_loop(x: Any) -> Any:
    def step(i: Any, y: Any) -> Any:
        return y + np.sqrt(1.5 - i)  # here

    return jt.fori_loop(0, 4, step, x)


@planted(np.ones((40, 40)), says="iteration 30 of the loop")
def in_loops_in_each_other(x: Any) -> Any:
    y = np.zeros((40, 40))
    for i in range(40):
        for j in range(40):
            y[i, j] = np.sqrt(x[i, j] * 9.5 - i + 0.0 * j + 20.4) if i < 39 else 0.0  # here
    return y


@planted(np.float64(2.0))
def in_the_condition_of_a_loop(x: Any) -> Any:
    while np.log(x) > -1:  # here
        x = x - 3.0
    return x


@planted(np.float64(1.0))
def in_the_branch_that_is_taken(x: Any) -> Any:
    if x > 0:
        y = np.log(x - 2)  # here
    else:
        y = x
    return y * 3


@planted(X, np.int64(1))
def in_cond(x: Any, n: Any) -> Any:
    def true(x: Any) -> Any:
        return np.sqrt(x)  # here

    return jt.cond(n > 0, true, lambda x: x, x)


@planted(X, np.int64(2))
def in_switch(x: Any, n: Any) -> Any:
    def third(x: Any) -> Any:
        y = x * 2
        return np.arctanh(y)  # here

    return jt.switch(n, [np.sin, np.cos, third], x)


@planted(
    np.arange(8.0).reshape(4, 2), says=r"for example 0 of vmap in 1 of 8 elements, first at \[0\]"
)
def under_vmap(x: Any) -> Any:
    def one(row: Any) -> Any:
        return np.sum(row / (row - row))  # here

    return jt.vmap(one)(x)


@planted(np.array([3.0, 1.0, -2.0, 4.0]), says="log made nan for example 2 of vmap")
def under_vmap_in_a_branch(x: Any) -> Any:
    def one(a: Any) -> Any:
        if a < 2:
            return np.log(a)  # here
        return np.log(a)

    return jt.vmap(one)(x)


@planted(np.array([0.5, 2.0, 3.0]))
def under_vmap_in_a_loop(x: Any) -> Any:
    def one(a: Any) -> Any:
        while a < 10:
            a = a * np.sqrt(a - 1)  # here
        return a

    return jt.vmap(one)(np.array([2.5, 2.6, 0.5]) * x / x)


@planted(np.arange(4.0), says=r"grad of mul \(mul\) made nan in 1 of 4")
def backward_of_a_root(x: Any) -> Any:
    return jt.grad(lambda x: np.sqrt(x * x).sum())(x)  # here


@planted(np.arange(4.0))
def backward_of_a_norm(x: Any) -> Any:
    def loss(x: Any) -> Any:
        y = x * 0
        return np.sqrt((y * y).sum())  # here

    return jt.grad(loss)(x)


@planted(np.array([0.0, 1.0]))
def backward_of_a_power(x: Any) -> Any:
    def loss(x: Any) -> Any:
        z = x * 0.0
        y = np.sqrt(z)  # here
        return (y * x).sum()

    return jt.grad(loss)(x)


@planted(np.float64(0.0))
def backward_in_a_loop(x: Any) -> Any:
    def loss(x: Any) -> Any:
        for _ in range(3):
            x = np.sqrt(x * x)  # here
        return x

    return jt.grad(loss)(x)


@planted(X)
def value_and_grad(x: Any) -> Any:
    def loss(x: Any) -> Any:
        return np.log(x).sum()  # here

    return jt.value_and_grad(loss)(x)


@planted(X)
def forward_mode(x: Any) -> Any:
    def f(x: Any) -> Any:
        return np.sqrt(x - x[0]) * 2  # here

    return jt.jvp(f, (x,), (x * 0,))[1]


@planted(POSITIVE.astype(np.float32))
def float32(x: Any) -> Any:
    return np.log10(x - np.float32(1))  # here


@planted(POSITIVE.astype(np.complex128))
def complex_numbers(x: Any) -> Any:
    y = x * 0
    return x / y  # here


@planted(POSITIVE)
def in_place(x: Any) -> Any:
    x -= 1.0
    x[2:] = np.sqrt(x[:-2])  # here


@planted(POSITIVE)
def after_a_print_and_a_callback(x: Any) -> Any:
    jt.debug_print("{}", x.sum())
    y = jt.io_callback(lambda a: a - 1, jt.ShapeDtype(x.shape, x.dtype), x)
    return np.sqrt(y)  # here


@pytest.mark.parametrize(("function", "args", "says"), PLANTED)
def test_the_line_that_made_nan(function: Any, args: Any, says: str) -> None:
    given = [np.copy(a) for a in args]
    checked = jt.jit(function, check="nan")
    for _ in range(2):  # the second call is a native one
        with pytest.raises(jt.errors.NonFiniteError, match=says) as caught:
            checked(*args)
        assert caught.value.line is not None
        assert caught.value.line.line == marked(function)
        assert len(str(caught.value).splitlines()) <= 12
    for a, b in zip(args, given, strict=True):
        np.testing.assert_array_equal(a, b)  # what a failed call leaves is what was there


def test_there_are_thirty() -> None:
    assert len(PLANTED) >= 30


def quiet(f: Callable[..., Any], *args: Any, check: Any = "nan") -> None:
    """The function gives what it gives without the check, twice."""
    checked, plain = jt.jit(f, check=check), jt.jit(f)
    for _ in range(2):
        np.testing.assert_equal(checked(*args), plain(*args))


def test_what_is_not_used_does_no_harm() -> None:
    quiet(lambda x: np.where(x > 0, np.log(x), 0.0), X)
    quiet(lambda x: np.log(x)[-2:], X)
    quiet(lambda x: np.nan_to_num(np.log(x)), X)
    quiet(lambda x: np.where(np.isnan(np.sqrt(x)), 0.0, x), X)
    quiet(lambda x: (np.log(x), x)[1], X)
    quiet(jt.grad(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum()), X)


def test_nan_that_was_given_is_nobodys_fault() -> None:
    quiet(lambda x: np.log(x).sum(), np.array([1.0, np.nan]))
    quiet(lambda x: x + np.nan, X)
    quiet(lambda x: np.sort(x), np.array([1.0, np.nan, 0.0]))
    with pytest.raises(jt.errors.NonFiniteError, match=r"1 of 2 elements, first at \[1\]"):
        jt.jit(np.log, check="nan")(np.array([np.nan, -1.0]))


def test_infinity() -> None:
    quiet(lambda x: 1 / x, X[X != 0], check="inf")
    quiet(lambda x: np.exp(np.where(x > 0, x, -np.inf)).sum(), X, check="inf")
    quiet(lambda x: np.min(x, initial=np.inf), X, check="inf")
    for f, said in [
        (lambda x: 1 / (x * 0), "div made inf"),
        (lambda x: np.tanh(np.exp(x * 1000)), "exp made inf in 4 of 7"),
        (lambda x: (x * 1e200 * 1e200)[-1], "mul made inf"),
        (lambda x: 1 / np.log(x * 0), "log made inf"),
        (lambda x: np.float32(1e30) * x.astype(np.float32) * np.float32(1e30), "mul made inf"),
    ]:
        with pytest.raises(jt.errors.NonFiniteError, match=said):
            jt.jit(f, check={"inf"})(X)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_integers_that_do_not_fit(dtype: Any) -> None:
    info = np.iinfo(dtype)
    top, some = np.array([1, info.max, 2], dtype), np.array([1, 2, 3], dtype)
    quiet(
        lambda a: (a + a * a - a).sum() + a.prod() + (a @ a) + np.cumsum(a), some, check="overflow"
    )
    programs: list[Any] = [
        (lambda a: a + a, "add"),
        (lambda a: a * np.array(2, a.dtype), "mul"),
        (lambda a: np.array(1, a.dtype) - a - a, "sub"),
        (lambda a: np.sum(a, dtype=a.dtype), "sum"),
        (lambda a: np.prod(a, dtype=a.dtype), "prod"),
        (lambda a: a @ a, "dot"),
        (lambda a: np.cumsum(a, dtype=a.dtype), "cumsum"),
    ]
    for f, name in programs:
        with pytest.raises(jt.errors.IntegerOverflowError, match=f"{name} made integers"):
            jt.jit(f, check="overflow")(top)


LONG = np.linspace(0.5, 2.0, 3001)
SQUARE = np.linspace(-1.0, 1.0, 45 * 45).reshape(45, 45)


def escape(c: Any) -> Any:
    def one(c: Any) -> Any:
        return jt.while_loop(
            lambda s: (s[0] < 50) & (s[1] * s[1] <= 4),
            lambda s: (s[0] + 1, s[1] * s[1] + c * ((s[1] - 1.1234) / (s[1] - 1.1234))),
            (np.int32(0), 0 * c),
        )[0]

    return jt.vmap(one)(c)


def descent(x: Any, y: Any) -> Any:
    z = np.log(np.sqrt(x @ y) + 1.0)
    return (x * z[:, None]).T @ (z > 0.25)


# What is looked at where it is computed: a program, arguments, some with one wrong element, the op.
AT_ONCE: list[Any] = [
    (lambda x: np.log(x) * 2, [LONG], (0, 1234, -1.0), "log"),
    (lambda x: (np.log(x) > 0).sum(), [LONG], (0, 3000, -1.0), "log"),
    (lambda x: np.log(x).astype(np.float32), [LONG], (0, 0, -1.0), "log"),
    (lambda x, y: np.sqrt(x) @ y, [SQUARE + 1, SQUARE], (0, 2024, -1.0), "sqrt"),
    (lambda x, y: x @ y, [np.ones((67, 700)), np.full((700, 35), 9.0)], (0, 46_000, 1e308), "dot"),
    (descent, [SQUARE + 1, SQUARE[0] + 1], (0, 2000, -1e3), "sqrt"),
    (escape, [LONG], (0, 2999, 1.1234), "div"),
]


@pytest.mark.parametrize(("f", "args", "wrong", "name"), AT_ONCE)
def test_long_arrays_are_looked_at_where_they_are_computed(
    f: Any, args: Any, wrong: Any, name: str
) -> None:
    kind = "inf" if name == "dot" else "nan"
    quiet(f, *args, check=kind)
    bad = [np.copy(a) for a in args]
    bad[wrong[0]].flat[wrong[1]] = wrong[2]
    checked = jt.jit(f, check=kind)
    for given in (args, bad, bad, args):
        if given is bad:
            with pytest.raises(FloatingPointError, match=f"{name} made {kind}"):
                checked(*given)
        else:
            checked(*given)


def test_infinity_that_attention_hides() -> None:
    def f(q: Any, k: Any) -> Any:
        s = q @ k.swapaxes(-1, -2)
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True) @ q

    q = np.linspace(-1.0, 1.0, 1024).reshape(2, 64, 8)
    graph = watch(jt.jit(f).trace(q, q), {"inf"})
    assert graph is not None and {"attention"} == {op.name for op in graph.ops} & {
        "attention",
        "exp",
    }
    quiet(f, q, q, check="inf")
    big, other = q.copy(), q.copy()
    big[0, 5] *= 1e170
    other[0, 3] = -big[0, 5]
    with np.errstate(all="ignore"):
        assert np.isfinite(f(big, other)).all()
    with pytest.raises(FloatingPointError, match=r"dot made inf in 1 of .*first at \[0, 5, 3\]"):
        jt.jit(f, check="inf")(big, other)


def test_counters_are_not_looked_at() -> None:
    def f(x: Any, n: Any) -> Any:
        i = 0
        while i < n:
            x = x * 1.5
            i += 1
        return i, jt.fori_loop(0, 5, lambda k, c: c + k, np.int64(0))

    quiet(f, np.ones(2), np.int64(9), check="overflow")
    graph = watch(jt.jit(f).trace(np.ones(2), np.int64(9)), {"overflow"})
    assert str(graph).count("add_fits") == 1  # the sum that it makes, not the counters
    with pytest.raises(jt.errors.IntegerOverflowError):
        jt.jit(lambda n: jt.fori_loop(0, 70, lambda k, c: c + c, n), check="overflow")(np.int64(1))


def test_what_a_call_does_happens_once(capsys: Any) -> None:
    asked = []

    def ask(a: Any) -> Any:
        asked.append(a)
        return a - 1

    def f(x: Any) -> Any:
        jt.debug_print("sum {}", x.sum())
        y = jt.io_callback(ask, jt.ShapeDtype(x.shape, x.dtype), x)
        return np.sqrt(y)

    with pytest.raises(FloatingPointError):
        jt.jit(f, check="nan")(np.zeros(2))
    assert len(asked) == 1
    assert capsys.readouterr().out == "sum 0.0\n"


@pytest.mark.parametrize("source", ["numpy", "legacy", "python"])
def test_generators_go_on_where_they_were(source: str) -> None:
    make = {
        "numpy": lambda: np.random.default_rng(3),
        "legacy": lambda: np.random.RandomState(3),
        "python": lambda: random.Random(3),
    }[source]

    def f(g: Any, x: Any) -> Any:
        return np.log(x) + g.random() if source == "python" else np.log(x) + g.normal()

    g, other = make(), make()
    checked = jt.jit(f, check="nan")
    first = checked(g, np.ones(2))
    np.testing.assert_array_equal(first, f(other, np.ones(2)))
    with pytest.raises(FloatingPointError):
        checked(g, -np.ones(2))
    np.testing.assert_array_equal(checked(g, np.ones(2)), f(other, np.ones(2)))


def test_config() -> None:
    f = jt.jit(lambda x: np.log(x))
    assert np.isnan(f(-X)).any()
    with jt.config(check={"nan"}):
        for _ in range(2):
            with pytest.raises(jt.errors.NonFiniteError):
                f(-X)
    assert np.isnan(f(-X)).any()
    with pytest.raises(ValueError, match="check has 'nans'; choose among 'bounds', 'inf'"):
        jt.config.check = {"nans"}
    with pytest.raises(ValueError, match="check has 'nans'"):
        jt.jit(np.log, check="nans")


def test_config_and_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.n = 0

        @jt.jit
        def step(self, x: Any) -> Any:
            self.n += 1
            return np.log(x)

    model = Model()
    model.step(np.ones(2))
    with jt.config(check="nan"):
        model.step(np.ones(2))
        with pytest.raises(FloatingPointError):
            model.step(-np.ones(2))
    assert model.n == 2


def test_bounds_beside_boundscheck() -> None:
    f = jt.jit(lambda x, i: x[i], boundscheck=False)
    assert f(X, 99) == X[-1]
    with jt.config(check="bounds"), pytest.raises(IndexError):
        f(X, 99)


def test_the_interpreter_is_watched_too() -> None:
    f = jt.jit(logarithm, check="nan", backend="interpreter")
    with pytest.raises(FloatingPointError, match="log made nan"):
        f(X)
    f(POSITIVE)


def test_scopes_that_may() -> None:
    def f(x: Any) -> Any:
        with jt.name_scope("model"), jt.name_scope("logs"):
            y = np.log(x)
        return y + np.sqrt(x)

    g = jt.jit(f, check="nan")
    with pytest.raises(FloatingPointError, match="log made nan.*[\\s\\S]*scope model/logs"):
        g(X)
    for allowed in ("logs", ["model/logs", "other"], "model"):
        with jt.config(allow=allowed), pytest.raises(FloatingPointError, match="sqrt made nan"):
            g(X)
    with jt.config(allow="log"), pytest.raises(FloatingPointError, match="log made nan"):
        g(X)


def test_what_is_compiled_for_a_check_is_told() -> None:
    f = jt.jit(lambda x: x + 1)
    with jt.config(check="nan"):
        f(X)
        f(X)
    f(X)
    assert f.cache_info().misses == 2 and len(f.cache_info().entries) == 2
    f.clear_cache()
    assert f.cache_info().misses == 0


def test_on_a_gpu_it_is_refused() -> None:
    with (
        jt.config(cuda="emulate"),
        pytest.raises(
            jt.errors.UnsupportedFunctionError,
            match="to be watched for nan, which is done on the CPU",
        ),
    ):
        jt.jit(lambda x: np.log(x), check="nan", device="cuda")(X)


def test_what_is_looked_at_is_the_watched_program() -> None:
    f = jt.jit(lambda x: np.log(x) + 1)
    plain = f.trace(LONG)
    with jt.config(check="nan"):
        assert len(f.trace(LONG).outputs) == len(f.lower(LONG).graph.outputs) == 2
        assert "else it is told" in str(f.stages(LONG, after="fuse"))
        assert "watched for nan: " in str(f.explain(LONG))
        assert "watched" in f.explore(LONG)._repr_html_()
        with pytest.raises(jt.errors.UnsupportedFunctionError, match="watched for nan"):
            f.ptx(LONG)
    assert str(f.trace(LONG)) == str(plain) and "watched for" not in str(f.explain(LONG))
    text = str(jt.jit(lambda x: np.log(x), check={"nan", "inf"}).explain(LONG))
    assert re.search(r"watched for inf, nan: [+-]\d+% of the .*s that it takes without", text)


def test_a_branch_that_asserts_is_watched_for_what_it_computes() -> None:
    """A branch gives the order of its effects beside arrays."""

    @jt.jit(check="nan")
    def f(x: Any) -> Any:
        if x.sum() > -100:
            assert x.max() < 10
            x = np.log(x)
        return x.sum()

    with pytest.raises(FloatingPointError, match="log"):
        f(np.array([1.0, -1.0]))
    assert f(np.ones(3)) == 0.0
