"""jit(autograph=True): the same functions as plain Python and compiled, traced values or not."""

# The programs under test are written as users write them.
# ruff: noqa: B007, B905, F821, SIM201, SIM300

from __future__ import annotations

import copy
import functools
import linecache
import math
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import jitney as jt

BACKENDS = ["interpreter", "native"]
X = np.linspace(-1.0, 2.0, 5)
auto = functools.partial(jt.jit, autograph=True, backend="interpreter")


def agree(got: Any, want: Any, rtol: float = 1e-12) -> None:
    leaves, others = jt.tree.leaves(got), jt.tree.leaves(want)
    assert len(leaves) == len(others), (got, want)
    for a, b in zip(leaves, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol)


def both(f: Callable[..., Any], *calls: Sequence[Any], native: bool = True) -> None:
    """Plain Python and compiled code agree on the results and on what becomes of the arguments."""
    for backend in BACKENDS if native else BACKENDS[:1]:
        compiled = jt.jit(f, autograph=True, backend=backend)
        for arguments in calls:
            mine, its = copy.deepcopy(arguments), copy.deepcopy(arguments)
            want = f(*mine)
            agree(compiled(*its), want)
            agree(its, mine)


PROGRAMS: list[tuple[Callable[..., Any], list[Any]]] = []


def program(*calls: Any) -> Callable[[Any], Any]:
    """Enter a program, with the arguments of the calls to compare."""

    def enter(f: Any) -> Any:
        PROGRAMS.append((f, list(calls)))
        return f

    return enter


# Branches


@program((2.0,), (-3.0,), (0.0,))
def absolute(x):
    if x > 0:
        y = x
    else:
        y = -x
    return y


@program((2.0,), (0.5,), (-3.0,), (-0.5,))
def nested_branches(x):
    y = 0.0
    if x > 0:
        if x > 1:
            y = x * 10
        else:
            y = x + 5
        y += 1
    elif x < -1:
        y = x * x
    return y


@program((X, 1), (X, 2), (X, 3))
def elif_chain(x, n):
    if n == 1:
        kind, y = 1.0, x + 1
    elif n == 2:
        kind, y = 2.0, x * 2
    else:
        kind, y = 3.0, -x
    return {"kind": kind, "y": y}


@program((1.0,), (-1.0,))
def variable_of_one_branch_unused_later(x):
    if x > 0:
        t = x * 2
        r = t + 1
    else:
        r = x
    t = r
    return t


@program((X, 0.5), (X, -0.5))
def assignment_into_an_array_in_a_branch(x, p):
    y = x * 1.0
    z = y[1:]
    if p > 0:
        y[0] = 100.0
        z[1] = -7.0
    else:
        y[-1] += p
    return y, z.sum()


@program((np.arange(4.0), 1.0), (np.arange(4.0), -1.0))
def argument_changed_in_a_branch(x, p):
    if p > 0:
        x[1:3] = p
    return x.sum()


@program((3.0, 4.0), (3.0, 2.0), (5.0, 1.0))
def early_returns(x, y):
    if x < y:
        return x
    if x > 4:
        if y > 2:
            return y
        return x * y
    z = x - y
    return z


@program((3,), (10,), (-3,))
def return_of_tuples(n):
    if n > 5:
        return n, {"big": n * 2.0}
    return -n, {"big": 0.0}


@program((1.0, True), (-1.0, False))
def return_nothing_on_every_path(x, flag):
    if x > 0:
        return None
    y = x * 2
    if y > 3:
        return


# Expressions


@program((1.0, 2.0), (2.0, 1.0), (2.0, 2.0), (-1.0, 0.0))
def chained_comparisons(x, y):
    a = 0 < x < y
    b = 0 <= x <= y <= 2
    c = x != y != 0
    return a, b, c


@program((1.0, 2), (-1.0, 2), (1.0, 0), (-1.0, 0))
def mixed_logic(x, n):
    k = 3
    a = x > 0 and n > 1
    b = x > 0 or n > 1 or k == 3
    c = not (x > 0 and k > 2) or not n
    d = k > 2 and x > 0 and (n > 1 or k < 0)
    return a, b, c, d


@program((5.0,), (0.5,), (-5.0,))
def ternaries(x):
    return (1.0 if x > 1 else 2.0) + (x if x > 0 else -x * 3 if x < -1 else 0.0)


@program((X, 2), (X, 7), (X, -9))
def short_circuit_keeps_an_index_in_range(x, i):
    if 0 <= i and i < 5 and x[i] > 0:
        return x[i]
    return -1.0


@program((3,), (4,), (0,))
def truth_of_numbers(n):
    if n:
        r = 1
    else:
        r = 2
    while not (n % 4 == 0):
        n += 1
    return r, n, not n


@program((3,), (8,))
def membership(n):
    return n in (1, 2, 3), n not in [4, 5], 7 if n in range(5, 10) else 0


@program((2.7, -3), (-2.2, 5))
def conversions(x, n):
    return (
        int(x),
        float(n),
        max(x, n, 1),
        min(n, x),
        abs(x),
        any([x > 2, n > 2]),
        all([x < 3, n < 3]),
    )


@program((np.array([3.0]),), (np.array([-3.0]),))
def truth_of_an_array_of_one(x):
    if x:
        x = x + 1
    return x if x > 0 else -x


# Loops


@program((12, 18), (7, 13), (0, 5), (5, 0))
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@program((27,), (1,), (6,))
def collatz(n):
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@program((0.0, 2.0), (1.0, 1.0), (-3.0, 5.0))
def bisection(low, high):
    middle = low
    for _ in range(200):
        middle = 0.5 * (low + high)
        if high - low < 1e-9:
            break
        if middle * middle < 2 or middle < 0:
            low = middle
        else:
            high = middle
    return middle


@program((30, np.zeros(30, bool)), (7, np.zeros(30, bool)))
def sieve(n, composite):
    count = 0
    for i in range(2, n):
        if composite[i]:
            continue
        count += 1
        for j in range(i * i, n, i):
            composite[j] = True
    return count


@program((X, 0.1), (X, 10.0), (X, -10.0))
def return_from_a_loop(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return i
    return -1


@program((np.arange(12.0).reshape(3, 4), 5.5), (np.arange(12.0).reshape(3, 4), 99.0))
def return_from_nested_loops(m, limit):
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > limit:
                return i * 10 + j
    return -1


@program((20,), (3,), (0,))
def branch_in_a_loop_in_a_loop(n):
    total = 0
    for i in range(n):
        k = i
        while k > 1:
            if k % 2:
                if k % 3 == 0:
                    total += k
                    break
                k = k - 1
            else:
                k = k // 2
        else:
            total += 100
    return total


@program((1.0,), (90.0,))
def endless_loop_with_a_break(x):
    while True:
        y = x * 2
        if y > 100:
            break
        x = x + y
    return x, y


@program((1.0,), (150.0,))
def endless_loop_with_a_return(x):
    n = 0
    while True:
        if x > 100:
            return x, n
        x = x * 3
        n += 1


@program((5,), (15,))
def while_else(n):
    i = 0
    while i < n:
        if i == 7:
            r = i * 10
            break
        i += 1
    else:
        r = -i
    return r


@program((X, 0.6), (X, 9.0))
def for_else(x, limit):
    for v in x:
        if v > limit:
            found = v
            break
    else:
        found = -100.0
    return found


@program((10, 2, -1), (0, 10, 3), (5, 5, 1), (3, -9, -4))
def range_with_a_traced_step(a, b, step):
    total = 0
    for i in range(a, b, step):
        total = total * 3 + i
    return total


@program((7,))
def ranges_backwards(n):
    total = 0
    for i in range(n, -3, -2):
        total = total * 2 + i
    for i in reversed(range(n)):
        total = total - i * i
    return total


@program((np.arange(12.0).reshape(3, 4),))
def rows(m):
    s, last = 0.0, m[0]
    for row in m:
        s = s + row.max() * row.sum()
        last = row * 2
    return s, last


@program((np.arange(12.0).reshape(3, 4),))
def rows_are_views(m):
    for i, row in enumerate(m):
        row[i] = -1.0
        row += 1
    return m.sum()


@program((X, X * 2))
def zipped(x, y):
    total = 0.0
    for i, (a, b) in enumerate(zip(x, y), 3):
        total = total + i * a * b
    return total


@program((4,), (0,), (12,))
def filling_an_array(n):
    out = jt.zeros(12)
    for i in range(n):
        out[i] = i * 0.5
        if i > 2:
            out[i] += out[i - 1]
    return out


@program((5,))
def filling_an_array_of_numpy(n):
    out = np.zeros(6)
    for i in range(n):
        out[i + 1] = out[i] * 2 + 1
    return out


@program((X, 3), (X, 0))
def shifting(x, n):
    y = x * 1.0
    for _ in range(n):
        y = np.roll(y, 1)
        y[0] = y.sum()
        y[1:] *= 0.5
    return y


@program((X, 3), (X, 0))
def updated_in_place_through_another_name(x, n):
    y = x + 0.0
    z = y
    half = y[:2]
    for i in range(n):
        y += 1
        half *= 2
    return y, z, half


@program((6,), (0,))
def lists_and_dicts_carried(n):
    fib = [0, 1]
    state = {"sum": 0.0, "pair": (1, 2)}
    for i in range(n):
        fib[0], fib[1] = fib[1], fib[0] + fib[1]
        state["sum"] += i
        a, b = state["pair"]
        state["pair"] = (b, a + b)
    return fib, state


@program((5, 1), (5, 9), (0, 0))
def continue_in_while(n, skip):
    i, total = 0, 0
    while i < n:
        i += 1
        if i == skip:
            continue
        if i > 3:
            total += 100
            continue
        total += i
    return total


@program((3.0,))
def walrus_in_a_condition(x):
    n = 0
    while (y := x * 0.5) > 0.1:
        x = y
        n += 1
    return x, n


@program((5,), (1,))
def two_loops_with_one_variable(n):
    t = 1.5
    for i in range(n):
        t = i
        if t > 2:
            break
    total = 0.0
    for i in range(3):
        total += i * t
    return total


def square(x):
    return x * x


def clipped(x, low=0.0, *, high=3.0):
    if x < low:
        return low
    return high if x > high else x


@program((2.0,), (-4.0,), (8.0,))
def functions_that_are_called(x):
    def local(v):
        if v > 3:
            return v - 1
        return v + 1

    return clipped(x) + clipped(x, -2.0) + clipped(high=4.0, x=x) + local(square(x))


@program((1.5,), (-1.5,))
def lambdas_and_closures(x):
    scale = 3.0
    f = lambda v: v * scale if v > 0 else -v  # noqa: E731
    if x > 0:
        scale = 5.0
    return f(x) + sum([g(x) for g in (f, lambda v: v + scale)])


@program((2.0, 3), (0.5, 0))
def recursion_on_static_values(x, n):
    def power(k):
        if k == 0:
            return 1.0
        half = power(k // 2)
        if k % 2:
            return half * half * x if x > 1 else half * half * -x
        return half * half

    return power(5) + n


class Clock:
    def __init__(self, limit):
        self.limit = limit
        self.__secret = 2

    def __call__(self, x):
        return x if x < self.limit else self.wrapped(x)

    def wrapped(self, x):
        while x >= self.limit:
            x = x - self.__secret
        return x

    @property
    def double(self):
        return self.limit * 2


class Precise(Clock):
    def wrapped(self, x):
        if x > 100:
            return -1.0
        return super().wrapped(x) + 0.0


@program((3.0,), (20.0,), (200.0,))
def objects_and_methods(x):
    return Precise(7)(x) + Clock(9).wrapped(x) + Clock(4).double


@program((3,), (-3,))
def attributes_assigned_in_branches(n):
    class Box:
        pass

    box = Box()
    box.value = 1
    if n > 0:
        box.value = n
    for i in range(n):
        box.value += i
    return box.value


@program((X,))
def passed_to_transforms(x):
    def loss(v):
        total = 0.0
        for a in v:
            if a > 0:
                total = total + a * a
            else:
                total = total - a
        return total

    return jt.grad(loss)(x), jt.value_and_grad(lambda v: v[0] if v[1] > 0 else v[2] * 3)(x)


@program((4.0,), (-4.0,))
def match_statement(x):
    kind = "square"
    match kind:
        case "cube":
            y = x**3
        case "square" if kind:
            y = x * x if x > 0 else 0.0
        case _:
            y = x
    return y


@pytest.mark.parametrize(("f", "calls"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_as_in_python(f: Callable[..., Any], calls: list[Any]) -> None:
    both(f, *calls)


@pytest.mark.parametrize(("f", "calls"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_transformed_code_on_ordinary_values(f: Callable[..., Any], calls: list[Any]) -> None:
    """With every argument a constant, nothing is traced but NumPy arrays made on the way."""
    from jitney.tracer.autograph import twins

    for arguments in calls:
        mine, its = copy.deepcopy(arguments), copy.deepcopy(arguments)
        want = f(*mine)
        twin = twins._function(f)
        assert twin is not f and twin.__code__ is not f.__code__
        agree(twin(*its), want)
        agree(its, mine)


# Effects and errors at run time


@pytest.mark.parametrize("backend", BACKENDS)
def test_assertions_hold_at_run_time(backend: str) -> None:
    @jt.jit(autograph=True, backend=backend)
    def f(x, n):
        assert x.ndim == 1, "checked while tracing"
        assert x[0] > 0
        total = 0.0
        for i in range(n):
            if i > 2:
                assert x[i] < 10, "too {large}"
            total += x[i]
        return total

    x = np.array([1.0, 20.0, 3.0, 4.0, 50.0])
    assert f(x, 4) == 28.0
    with pytest.raises(AssertionError, match="too {large}"):
        f(x, 5)
    with pytest.raises(AssertionError, match=r"x\[0\] > 0"):
        f(-x, 1)
    with pytest.raises(AssertionError, match="checked while"):
        f(x[0], 1)


def test_side_effects_of_ordinary_code_are_those_of_python() -> None:
    def f(items, log):
        for item in items:
            if item is None or log.append(item) or item == 2:
                continue
            try:
                if item == 4:
                    break
                log.append(-item)
            finally:
                log.append("end")
        else:
            log.append("else")
        while items and items.pop():
            log.append(len(items))
        del item
        try:
            item  # noqa: B018
        except UnboundLocalError as error:
            log.append(str(error))
        return log

    for items in ([1, None, 2, 3], [1, 4, 5], []):
        want = []
        try:
            f(list(items), want)
        except UnboundLocalError as error:
            want.append(str(error))
        got = []

        @auto
        def run(x, items=items, got=got):
            try:
                f(list(items), got)
            except UnboundLocalError as error:
                got.append(str(error))
            return x if x > 0 else -x

        run(1.0)
        assert got == want and len(got) > 1


def test_only_the_branch_taken_is_traced_for_ordinary_conditions() -> None:
    called = []

    @auto(static_argnames="training")
    def f(x, training):
        if training:
            called.append("yes")
            return x * 2
        called.append("no")
        return x

    assert f(1.0, training=True) == 2.0 and called == ["yes"]


def test_globals_and_closures_are_live_and_guarded() -> None:
    table = np.arange(3.0)
    rate = 2.0

    def helper(x):
        return x * rate if x > 0 else x + table[0] + LIMIT

    @auto
    def f(x):
        if x > LIMIT:
            return x - table[1]
        return helper(x)

    global LIMIT
    LIMIT = 10.0
    assert (f(11.0), f(2.0), f(-1.0)) == (10.0, 4.0, 9.0)
    LIMIT, rate = 1.0, 3.0
    table[:] = 100.0
    assert (f(11.0), f(0.5), f(-1.0)) == (-89.0, 1.5, 100.0)
    assert f.cache_info().misses == 2
    f(2.0)
    assert f.cache_info().misses == 2


LIMIT = 0.0
COUNT = 0


def test_nonlocal_and_global_variables_in_branches() -> None:
    def f(x):
        count = 0

        def bump():
            nonlocal count
            if x > 0:
                count += 2
            for _ in range(3):
                count += 1

        bump()
        bump()
        return count

    both(f, (1.0,), (-1.0,), native=False)

    @auto
    def g(x):
        global COUNT
        if COUNT < 10:
            COUNT += 1
        return x if x > 0 else -x

    assert g(-1.0) == 1.0 and COUNT == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives(backend: str) -> None:
    def branchy(x):
        total = 0.0
        for v in x:
            if v > 0:
                total = total + np.sqrt(v) * v
            elif v < -0.5:
                total = total - v * v
        return total

    def looping(x):
        y = np.sum(x * x)
        n = 0
        while y < 1000.0:
            y = y * (x[1] + 3.0)
            n += 1
            if n > 50:
                break
        return y

    def filling(x):
        out = jt.zeros_like(x)
        for i in range(1, len(x)):
            out[i] = out[i - 1] * 0.5 + x[i] * x[i]
            if out[i] > 2.0:
                out[i] = out[i] * x[i]
        return out.sum()

    for f in (branchy, looping, filling):
        eager = jt.grad(f)(X)
        compiled = jt.jit(jt.grad(f), autograph=True, backend=backend)
        np.testing.assert_allclose(compiled(X), eager, rtol=1e-12)
        step = np.cos(np.arange(5.0)) * 1e-6
        numeric = (f(X + step) - f(X - step)) / 2e-6
        np.testing.assert_allclose(eager @ (step / 1e-6), numeric, rtol=1e-5)
        tangent = jt.jit(
            lambda x, t, f=f: jt.jvp(f, (x,), (t,))[1], autograph=True, backend=backend
        )
        np.testing.assert_allclose(tangent(X, step / 1e-6), numeric, rtol=1e-5)
        inner = jt.jit(f, autograph=True, backend=backend)
        np.testing.assert_allclose(jt.jit(jt.grad(inner), backend=backend)(X), eager, rtol=1e-12)
        np.testing.assert_allclose(jt.grad(inner)(X), eager, rtol=1e-12)


def test_gradient_of_a_branch_is_that_of_the_one_taken() -> None:
    """No NaN of the other side, as jt.where would let through."""

    def f(x):
        if x > 0:
            return np.sqrt(x)
        return x * 2.0

    assert jt.jit(jt.grad(f), autograph=True)(0.0) == 2.0
    assert jt.jit(jt.grad(lambda x: np.log(x) if x > 0 else x), autograph=True)(0.0) == 1.0


def test_vmap_of_branches_and_loops() -> None:
    def steps(x):
        n = 0
        while x > 1.0:
            x = x * 0.5 if n % 2 == 0 else x - 1.0
            n += 1
        return n

    xs = np.array([0.3, 1.7, 40.0, 9.0])
    for f in (
        jt.jit(jt.vmap(steps), autograph=True),
        jt.vmap(jt.jit(steps, autograph=True)),
        jt.jit(jt.vmap(jt.jit(steps, autograph=True))),
    ):
        np.testing.assert_array_equal(f(xs), [steps(x) for x in xs])


# Errors


def fails(f: Callable[..., Any], kind: type[Exception], *says: str, args: Sequence[Any]) -> str:
    """The message has all of `says`, the user's file, and the line marked `# here`."""
    with pytest.raises(kind) as info:
        jt.jit(f, autograph=True, backend="interpreter")(*args)
    message = str(info.value)
    for part in says:
        assert part in message, message
    code = f.__code__
    lines = linecache.getlines(code.co_filename)
    marked = next(n for n in range(code.co_firstlineno, len(lines)) if "# here" in lines[n - 1])
    assert f"test_autograph.py:{marked}" in message, message
    return message


def test_a_variable_of_one_path() -> None:
    def f(x):
        if x > 0:
            y = x * 2
        return y + 1  # here

    fails(f, UnboundLocalError, "'y'", "only one of its branches", args=(1.0,))

    def g(x, n):
        for i in range(n):
            last = x * i
        return last  # here

    fails(g, NameError, "'last'", "`for` loop", "no trip", args=(1.0, 3))

    def h(x):
        z = 1.0
        if x > 0:
            del z
        return (lambda: z)()  # here

    fails(h, NameError, "'z'", args=(1.0,))


def test_a_loop_variable_that_changes_its_type() -> None:
    def grows(x, n):
        y = x
        for _ in range(n):  # here
            y = np.concatenate([y, x])
        return y

    fails(grows, jt.errors.CarryError, "'y'", "f64[5]", "f64[10]", "TensorArray", args=(X, 3))

    def converts(x, n):
        total = np.float32(0)
        while n > 0:  # here
            total = total + x
            n -= 1
        return total

    fails(converts, TypeError, "'total'", "f32[]", "f64[]", "astype", args=(X[1:].sum(), 3))

    def inside(x, n):
        state = {"a": x, "b": 0}
        for _ in range(n):  # here
            state = {"a": state["a"][1:], "b": 0}
        return state

    fails(inside, TypeError, "state['a']", "f64[5]", "f64[4]", args=(X, 3))

    def appends(x, n):
        out = []
        for i in range(n):  # here
            out.append(x * i)
        return out

    fails(appends, TypeError, "'out'", "cannot grow", "TensorArray", args=(X, 3))

    def text(x, n):
        mode = "start"
        for _ in range(n):  # here
            x, mode = (x * 2, "go") if mode == "start" else (x, mode)
        return x

    fails(text, TypeError, "'mode'", "'start'", "'go'", args=(X, 3))


def test_branches_that_differ() -> None:
    def shapes(x):
        if x[0] > 0:  # here
            y = x
        else:
            y = x[1:]
        return y

    fails(shapes, TypeError, "'y'", "if: f64[5]", "else: f64[4]", args=(X,))

    def structure(x):
        y = x
        if x[0] > 0:  # here
            y = (x, x)
        return y

    fails(structure, TypeError, "'y'", "if: (*, *)", "else: *", args=(X,))

    def returned(x):
        if x[0] > 0:  # here
            return x
        return None

    fails(returned, TypeError, "the returned value", "None", args=(X,))

    def falls_off(x):
        for v in x:
            if v > 1:
                return v  # here

    fails(falls_off, TypeError, "None on others", args=(X,))

    def appended(x):
        out = [x]
        if x[0] > 0:  # here
            out.append(x)
        return out

    fails(appended, TypeError, "'out'", args=(X,))

    def expression(x):
        return x if x[0] > 0 else "none"  # here

    fails(expression, TypeError, "conditional expression", "'none'", args=(X,))


def test_what_is_not_transformed_says_so() -> None:
    def generator(x):
        def values():
            if x > 0:  # here
                yield x

        return list(values())

    fails(generator, TypeError, "a generator", args=(1.0,))

    def comprehension(x):
        return [v for v in range(3) if v < x]  # here

    fails(comprehension, TypeError, "a comprehension", args=(1.0,))

    def guarded(x):
        try:
            if x > 0:  # here
                x = x + 1
        finally:
            x = x * 2
        return x

    fails(guarded, TypeError, "`try` block", args=(1.0,))

    def as_list(n):
        return list(range(n))  # here

    fails(as_list, TypeError, "`for` statement", args=(3,))

    def float_range(x):
        for _ in range(x):  # here
            x = x + 1
        return x

    fails(float_range, TypeError, "range() needs integers", args=(3.5,))

    with pytest.raises(TypeError, match="async function"):
        exec_async: dict[str, Any] = {}
        exec("async def f(x): return x", exec_async)
        jt.jit(exec_async["f"], autograph=True)


def test_an_exception_under_a_traced_condition_tells_why() -> None:
    @auto
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return np.sqrt(x)

    with pytest.raises(ValueError, match="negative") as info:
        f(4.0)
    assert any("both branches" in note and "assert" in note for note in info.value.__notes__)


def test_source_that_cannot_be_found() -> None:
    made: dict[str, Any] = {"np": np}
    exec("def f(x):\n    return x if x > 0 else -x", made)
    with pytest.raises(TypeError, match=r"(?s)cannot read f.*not available.*jt\.cond"):
        auto(made["f"])(1.0)


def test_notebook_cells() -> None:
    name, text = "<ipython-input-7-abc>", "def f(x):\n    return x if x > 0 else -x\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    made: dict[str, Any] = {}
    exec(compile(text, name, "exec"), made)
    assert auto(made["f"])(-3.0) == 3.0


def test_tracebacks_show_the_lines_of_the_user() -> None:
    def f(x):
        total = 0.0
        for row in x:
            if row[0] > 0:
                while total < 1:
                    total = total + 1 / len([])  # fails
        return total

    with pytest.raises(ZeroDivisionError) as info:
        auto(f)(np.ones((3, 2)))
    frames = [
        s for s in traceback.extract_tb(info.value.__traceback__) if "test_autograph" in s.filename
    ]
    assert frames[-1].line.endswith("# fails") and {s.name for s in frames[1:]} == {"f"}
    names = {
        op.loc.line - f.__code__.co_firstlineno for op in auto(g_trace).trace(1.0).ops if op.loc
    }
    assert names


def g_trace(x):
    return x if x > 0 else -x


def test_ops_carry_the_line_of_the_user() -> None:
    def f(x):
        if x > 0:
            y = np.sin(x)
        else:
            y = np.cos(x)
        return y

    graph = auto(f).trace(1.0)
    first = f.__code__.co_firstlineno
    lines = {op.name: op.loc.line - first for g in (graph, *graph.ops[-1].regions) for op in g.ops}
    assert lines["cond"] == 1 and lines["sin"] == 2 and lines["cos"] == 4
    assert {op.loc.function.rpartition(".")[2] for op in graph.ops} == {"f"}


def test_without_the_option_the_error_names_it() -> None:
    with pytest.raises(TypeError, match=r"jit\(autograph=True\)"):
        jt.jit(absolute, backend="interpreter")(1.0)


def test_option_leaves_the_function_alone() -> None:
    f = jt.jit(clipped, autograph=True)
    assert f.__wrapped__ is clipped and f.__name__ == "clipped"
    assert f(5.0) == 3.0 and f(5.0, high=9.0) == 5.0 and f(-1.0, 0.5) == 0.5
    assert clipped(5.0) == 3.0
    assert jt.jit(functools.partial(clipped, high=7.0), autograph=True)(9.0) == 7.0


class Model:
    def __init__(self) -> None:
        self.limit = 2.0
        self.weights = np.arange(3.0)

    @auto
    def __call__(self, x):
        if x > self.limit:
            return self.weights[0] + x
        return self.weights.sum()


def test_jitted_methods() -> None:
    model = Model()
    assert (model(5.0), model(1.0)) == (5.0, 3.0)
    model.limit, model.weights = 0.5, np.ones(3)
    assert (model(5.0), model(1.0), model(0.0)) == (6.0, 2.0, 3.0)


def test_lambdas_on_one_line() -> None:
    f, g = (lambda x: 1.0 if x > 0 else 2.0), (lambda x: 3.0 if x > 0 else 4.0)
    assert (auto(f)(1.0), auto(f)(-1.0), auto(g)(1.0), auto(g)(-1.0)) == (1.0, 2.0, 3.0, 4.0)


def test_library_code_is_left_alone() -> None:
    def f(x):
        largest = functools.reduce(lambda a, b: a if a > b else b, [x, 3.0])
        return math.floor(2.5) + np.clip(x, 0, 1) + largest

    both(f, (5.0,), (0.5,), native=False)


# Random programs


class Writer:
    """Writes a random function of (a: int, x: float, v: array) as text. Every loop ends."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.lines: list[str] = []
        self.loops = 0

    def pick(self, *choices: Any) -> Any:
        choice = choices[self.random.integers(len(choices))]
        return choice() if callable(choice) else choice

    def integer(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick("a", "b", "1", "2", "5")
        inner = functools.partial(self.integer, depth - 1)
        return self.pick(
            inner,
            lambda: f"({inner()} + {inner()})",
            lambda: f"({inner()} - {inner()})",
            lambda: f"({inner()} * {self.pick(2, 3)} % 11)",
            lambda: f"({inner()} if {self.condition(depth - 1)} else {inner()})",
            lambda: f"abs({inner()})",
        )

    def real(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick("x", "y", "0.5", "v[1]", "v[a % 4]", "v.sum()")
        inner = functools.partial(self.real, depth - 1)
        return self.pick(
            inner,
            lambda: f"({inner()} * 0.5 + {inner()})",
            lambda: f"np.sin({inner()})",
            lambda: f"({inner()} if {self.condition(depth - 1)} else {inner()})",
            lambda: f"bounded({inner()})",
            lambda: f"(-{inner()})",
        )

    def condition(self, depth: int = 2) -> str:
        if depth == 0:
            return self.pick("a > b", "x < y", "a % 2 == 0", "k > 2", "b", "v[0] > x", "k == 4")
        inner = functools.partial(self.condition, depth - 1)
        return self.pick(
            inner,
            lambda: f"{self.real(depth - 1)} < {self.real(depth - 1)}",
            lambda: f"-3 < {self.integer(depth - 1)} <= {self.integer(depth - 1)}",
            lambda: f"({inner()} and {inner()})",
            lambda: f"({inner()} or {inner()})",
            lambda: f"not {inner()}",
        )

    def block(self, depth: int, indent: str, loop: str | None) -> None:
        for _ in range(self.random.integers(1, 4)):
            self.statement(depth, indent, loop)

    def statement(self, depth: int, indent: str, loop: str | None) -> None:
        write = lambda text: self.lines.append(indent + text)  # noqa: E731
        kind = self.pick(
            *("assign assign assign array array if if".split() if depth else ["assign", "array"]),
            *(["if", "while", "for", "for", "try"] if depth else []),
            *(["jump", "jump"] if loop else []),
            *(["return"] if self.random.random() < 0.3 else []),
        )
        inner = indent + "    "
        if kind == "assign":
            write(
                self.pick(
                    lambda: f"a = {self.integer()} % 50",
                    lambda: f"b += {self.integer()} % 7",
                    lambda: f"x = {self.real()}",
                    lambda: f"y, x = x, {self.real()}",
                    lambda: f"y -= {self.real()}",
                    lambda: f"k = {self.pick(1, 4, 'k')}",
                )
            )
        elif kind == "array":
            write(
                self.pick(
                    lambda: f"v[{self.integer(1)} % 4] = {self.real()}",
                    lambda: f"v += {self.real()}",
                    lambda: "v = v * 0.5 + v[::-1]",
                    lambda: f"w[1:3] = {self.real()}",
                    lambda: f"items[0] = {self.real()}",
                    lambda: f"items[1]['n'] += {self.integer(1)}",
                )
            )
        elif kind == "if":
            write(f"if {self.condition()}:")
            self.block(depth - 1, inner, loop)
            if self.random.random() < 0.4:
                write(f"elif {self.condition()}:")
                self.block(depth - 1, inner, loop)
            if self.random.random() < 0.5:
                write("else:")
                self.block(depth - 1, inner, loop)
        elif kind in ("while", "for"):
            self.loops += 1
            counter = f"c{self.loops}"
            if kind == "while":
                write(f"{counter} = 0")
                write(f"while {counter} < 5 and {self.condition()}:")
                self.lines.append(f"{inner}{counter} += 1")
            else:
                over = self.pick(
                    "range(a % 4)", "range(3)", "range(b % 5, -2, -1)", "w", "[1.5, x]"
                )
                write(f"for {counter} in {over}:")
                self.lines.append(f"{inner}x = x + {counter} * 0.25")
            self.block(depth - 1, inner, counter)
            if self.random.random() < 0.25:
                write("else:")
                self.block(0, inner, loop)
        elif kind == "jump":
            write(f"if {self.condition(1)}:")
            self.block(0, inner, None)
            self.lines.append(inner + self.pick("break", "continue"))
        elif kind == "try":
            write("if k > 0:")
            self.block(depth - 1, inner, loop)
        else:
            write(f"if {self.condition(1)}:")
            self.lines.append(f"{inner}return a, x, v, w, items")


def written(seed: int) -> tuple[Callable[..., Any], str]:
    writer = Writer(seed)
    writer.block(3, "    ", None)
    own = "v = v + 0.0\n    " if seed % 4 else ""  # else the argument itself may be assigned into
    head = f"def f(a, x, v):\n    {own}b, y, k, w, items = a % 3, x * 0.5, 3, v + 1.0, [x, {{'n': a}}]\n"
    text = head + "\n".join(writer.lines) + "\n    return a, x, v, w, items\n"
    name = f"<random program {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    made: dict[str, Any] = {"np": np, "bounded": bounded}
    exec(compile(text, name, "exec"), made)
    return made["f"], text


def bounded(x):
    if x > 4:
        return 4.0 + np.sin(x)
    while x < -4:
        x = x * 0.5
        if x > -5:
            return x
    return x


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    f, text = written(seed)
    try:
        with np.errstate(all="ignore"):
            for a, x in ((3, 0.5), (8, -1.5), (1, 3.0)):
                v = np.array([0.1, -0.7, 2.0, 0.3])
                mine, its = v.copy(), v.copy()
                want = f(a, x, mine)
                backend = "native" if seed % 10 == 0 else "interpreter"
                compiled = jt.jit(f, autograph=True, backend=backend)
                got = compiled(a, x, its)
                agree(got, want, rtol=1e-9)
                agree(its, mine, rtol=1e-9)
    except jt.errors.OuterMutationError:
        assert seed % 4 == 0, text  # only there may `v` be the argument, or not
    except Exception:
        print(text)
        raise


# Arrays under several names


def test_which_array_is_assigned_into() -> None:
    def fresh(x, p):
        y = x + 1
        if p > 0:
            y = y * 2
        y[0] = 5
        for i in range(p):
            y[i] += 1
            y = y * 2
        return y

    def moved(x, n):
        y, z = x + 0, x * 2
        for _ in range(n):
            z = y
            y = y + 1
            z[0] = 2
        return y, z

    def held(x, n):
        y = x + 0
        items = [y]
        for _ in range(n):
            y += 1
            items[0][1] += 1
        return y, items

    def numpys(x, n):
        out, box = np.zeros(4), {"a": np.ones(4)}
        for i in range(n):
            if x[i] > 0:
                out[i] = x[i]
            box["a"][i] += i
        return out, box

    for f in (fresh, moved, held, numpys):
        both(f, (np.arange(4.0), 3), (np.arange(4.0), 0))


@pytest.mark.parametrize("kind", ["argument", "alias", "loop", "carried", "numpy"])
def test_an_array_that_may_be_another_one(kind: str) -> None:
    def argument(x, n):
        if n > 0:
            x = x * 2
        x[0] = 5.0  # here
        return x

    def alias(x, n):
        z = y = x + 1
        if n > 0:
            y = y * 2
        y[0] = 5.0  # here
        return y, z

    def loop(x, n):
        y, z = x + 0, x * 2
        for _ in range(n):
            y = y + 1
            z = y
        z[0] = 1.0  # here
        return y, z

    def carried(x, n):
        z = y = x + 1
        for _ in range(n):  # here
            y[0] += 1
            y = y * 2
        return y, z

    def numpy(x, n):
        z = y = np.zeros(3)
        if n > 0:
            y[0] = 1.0  # here
        return y, z

    fails(locals()[kind], ValueError, "may be the same", "copy()", args=(np.arange(3.0), 1))


def test_tensor_arrays_in_loops() -> None:
    def f(x, n):
        rows = jt.TensorArray(np.float64, 5)
        for i in range(5):
            rows = rows.write(i, x * i)
            if n < 0:
                break
        total = 0.0
        for row in rows.stack():
            total = total + row.sum() * n
        return total

    def growing(x, n):
        values = jt.TensorArray(np.float64, 8)
        i = 0
        while i < 8:
            values = values.write(i, x * i + n)
            i = i + 1 if n > 0 else i + 2 - 1
        return values.stack()

    assert auto(f)(X, 2) == f(X, 2)
    agree(auto(growing)(X, 2), np.outer(np.arange(8), X) + 2)


def test_decorators_and_defaults() -> None:
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * 2

        return wrapper

    @auto
    @doubled
    def f(x, *rest, low=0.0, **options):
        if x < low:
            x = low
        for r in rest:
            x = x + r if r > 0 else x
        return x * options.get("scale", 1.0)

    assert f(-3.0, 1.0, -5.0, low=-1.0, scale=4.0) == 0.0
    assert f(3.0) == 6.0
    assert jt.jit(jt.jit(absolute), autograph=True)(-2.0) == 2.0
