"""What autograph refuses, how it says so, and what it leaves alone."""

# The programs under test are written as users write them.

from __future__ import annotations

import functools
import linecache
import math
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from autograph_support import X, auto, both, clipped, fails

import jitney as jt
from jitney.ir.build import Builder

pytestmark = pytest.mark.usefixtures("traced_numbers")

# Errors


def test_a_variable_of_one_path() -> None:
    def f(x):
        if x > 0:
            y = x * 2
        return y + 1

    assert jt.jit(f)(1.0) == 3.0
    place = f"variable 'y' where it is not .*\n.*errors.py:{f.__code__.co_firstlineno + 3}, in .*f"
    with pytest.raises(UnboundLocalError, match=place):
        jt.jit(f)(-1.0)

    def g(x, n):
        for i in range(n):
            last = x * i
        return last

    assert auto(g)(2.0, 3) == 4.0
    with pytest.raises(UnboundLocalError, match="variable 'last' where it is not"):
        auto(g)(1.0, 0)

    def h(x):
        z = 1.0
        if x > 0:
            del z
        return (lambda: z)()

    assert auto(h)(-1.0) == 1.0
    with pytest.raises(NameError, match="'z'"):
        auto(h)(1.0)


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
            out.append(x * i * 1j)
        return out

    fails(appends, TypeError, "'out'", "cannot grow", "TensorArray", args=(X, 3))


def test_branches_that_differ() -> None:
    def keys(x):
        y = {"a": x * 1j}
        if x[0] > 0:  # here
            y["b"] = x * 1j
        return y

    fails(keys, TypeError, "'y'", "if: {'a': *, 'b': *}", "else: {'a': *}", args=(X,))

    def appended(x):
        out = [x * 1j]
        if x[0] > 0:  # here
            out.append(x)
        return out

    fails(appended, TypeError, "'out'", args=(X,))


def test_what_is_not_transformed_says_so() -> None:
    def generator(x):
        def values():
            if x > 0:  # here
                yield x

        return list(values())

    fails(generator, TypeError, "a generator", args=(1.0,))

    def comprehension(x):
        return [v for u in range(3) if (v := 2 * u) < x]  # here

    fails(comprehension, TypeError, "a comprehension", args=(1.0,))

    def float_range(x):
        for _ in range(x):  # here
            x = x + 1
        return x

    fails(float_range, TypeError, "range() needs integers", args=(3.5,))

    with pytest.raises(TypeError, match="async function"):
        exec_async: dict[str, Any] = {}
        exec("async def f(x): return x", exec_async)
        jt.jit(exec_async["f"], autograph=True)


class NotConverged(Exception):
    def __init__(self, message: str, steps: Any = 0) -> None:
        super().__init__(message, steps)
        self.steps = steps


def test_exceptions_of_the_user_under_a_traced_condition() -> None:
    @auto
    def f(x):
        if x < 0:
            raise NotConverged(f"{x:.1f} is negative", x * 2)
        if x > 100:
            raise NotConverged("large")
        return np.sqrt(x)

    assert f(4.0) == 2.0
    for _ in range(2):
        with pytest.raises(NotConverged, match=r"-1\.0 is negative") as info:
            f(-1.0)
        assert info.value.args == ("-1.0 is negative", -2.0)
        with pytest.raises(NotConverged, match="large"):
            f(200.0)
    assert f(9.0) == 3.0


def test_other_exceptions_under_a_traced_condition_tell_why() -> None:
    @auto
    def f(x):
        if x < 0:
            return len(3)
        return np.sqrt(x)

    with pytest.raises(TypeError, match="has no len") as info:
        f(4.0)
    assert any("both branches" in note for note in info.value.__notes__)


def test_variables_that_are_given_a_value_where_nothing_was_returned() -> None:
    def f(x):
        if x > 0:
            c = 1.0
        else:
            if x < -5:
                return 7.0
            c = 2.0
        return c

    def g(x, n):
        for i in range(n):
            if x < -5:
                return 7.0
            if x > i:
                y = x * i
            else:
                if x < -3:
                    return 8.0
                y = -x
            x = x + y
        return x

    for x in (3.0, -2.0, -4.0, -9.0):
        assert auto(f)(x) == f(x)
        assert auto(g)(x, 4) == g(x, 4)

    @auto
    def unbound(x):
        if x < -5:
            return 7.0
        if x > 0:
            c = 1.0
        return c

    assert (unbound(1.0), unbound(-6.0)) == (1.0, 7.0)
    with pytest.raises(UnboundLocalError, match="'c'"):
        unbound(-1.0)


def test_source_that_cannot_be_found() -> None:
    """It is traced as it stands, and an error says what autograph would have done."""
    made: dict[str, Any] = {"np": np}
    exec("def f(x):\n    return x if x > 0 else -x\ndef g(x):\n    return x + 1", made)
    with pytest.raises(
        TypeError, match=r"(?s)loops of f were not.*not available.*a file.*jt\.cond"
    ):
        auto(made["f"])(1.0)
    assert auto(made["g"])(1.0) == 2.0


@pytest.mark.skipif(sys.version_info < (3, 13), reason="Python keeps what follows -c")
def test_source_that_follows_c() -> None:
    lines = (
        "import jitney as jt",
        "@jt.jit",
        "def f(x):",
        "    if x > 0:",
        "        x = -x",
        "    return x",
    )
    program = "\n".join((*lines, "print(f(2.0))"))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "-2.0\n", done.stderr


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
                    total = total + len(3)  # fails
        return total

    with pytest.raises(TypeError) as info:
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


def test_without_autograph_the_error_names_it() -> None:
    with pytest.raises(TypeError, match=r"leave out autograph=False"):
        jt.jit(clipped, backend="interpreter", autograph=False)(1.0)
    assert jt.jit(clipped, backend="interpreter")(5.0) == 3.0


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


def test_ranges_of_traced_numbers_are_for_loops() -> None:
    def start(n):
        return range(n).start

    def length(n):
        return len(range(n))

    def member(n):
        return 3 in range(n)

    def item(n):
        return range(n)[1]

    for f in (start, length, member, item):
        assert jt.jit(f)(3) == f(3)  # the number is compiled in
        with pytest.raises(TypeError, match="only a `for` statement"):
            jt.jit(lambda x, f=f: jt.map_fn(f, x))(np.arange(3))


def no_key(x, i):
    x[i] += 1.0
    return {}["here"]


def no_divisor(x, i):
    x[i] += 1.0
    return 1 // 0


def no_good(x, i):
    x[i] += 1.0
    raise RuntimeError("bad")


def never_true(x, i):
    assert x[i] > 0.0, "first"
    x[i] += 1.0
    limit = 0.0
    assert limit != 0.0, "second"


def no_element(x, i):
    x[i] += 1.0
    return x[100]


@pytest.mark.parametrize("f", [no_key, no_divisor, no_good, never_true, no_element])
def test_what_always_raises_does_so_after_what_may_raise(f: Callable[..., Any]) -> None:
    compiled = jt.jit(lambda x, start, n: f(x, start + n))
    for start, n in ((1, 1), (4, 2), (-3, -1)):  # the second and third are out of bounds
        with pytest.raises(Exception) as want:
            f(np.ones(3), start + n)
        with pytest.raises(type(want.value)) as got:
            compiled(np.ones(3), np.int64(start), np.int64(n))
        said, message = (str(e.value.args[0]).partition("\n")[0] for e in (got, want))
        assert said == message


def test_a_fault_of_ours_is_no_exception_of_the_program(monkeypatch: Any) -> None:
    """What Python code raises may be handled, or end a loop; what making a graph raises may not."""

    def f(x):
        i = 0
        while i < len(x):
            if x[i] > 0:
                x[i] = i
            i += 1
        return x

    def faulty(self, op, env):
        raise KeyError(op)

    monkeypatch.setattr(Builder, "copy", faulty)
    with pytest.raises(KeyError):
        jt.jit(f)(np.zeros(4))
