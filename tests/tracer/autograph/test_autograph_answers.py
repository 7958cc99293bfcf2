"""What traced values answer under autograph, and the text that they are in: as Python, or an error."""

# The programs under test are written as users write them.
# ruff: noqa: E721, UP031

from __future__ import annotations

import collections
import functools
import io
import itertools
import numbers
import operator
import queue
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from autograph_support import auto

import jitney as jt

pytestmark = pytest.mark.usefixtures("traced_numbers")

VALUES = [
    True,
    3,
    2.5,
    1 + 2j,
    np.float32(1.5),
    np.int64(4),
    np.bool_(True),
    np.ones(3),
    np.ones(()),
]
KINDS = [
    *(bool, int, float, complex, str, numbers.Number, numbers.Integral, np.ndarray, np.generic),
    *(np.floating, np.integer, np.float64, np.number, object, (int, float), int | float),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_the_class_is_that_of_the_value(value: Any) -> None:
    def f(x: Any) -> Any:
        same = type(x) is int, type(x) == np.ndarray, type(x) is np.float32, type(x) is float
        names = [hasattr(x, name) for name in ("shape", "is_integer", "bit_length", "conj", "foo")]
        names += [hasattr(x, name) for name in ("__name__", "mro", "__class__", "__iter__")]
        return [isinstance(x, kind) for kind in KINDS], same, names, callable(x), np.isscalar(x)

    assert auto(f)(value) == f(value)


def test_the_class_makes_values() -> None:
    assert auto(lambda x, y: type(x)(y))(3, 4.7) == 4
    assert auto(lambda x, y: type(x)(y))(3.0, 4) == 4.0
    assert auto(lambda x: type(x).__name__)(3.0) == "float"


def test_is_of_bools() -> None:
    def f(p: Any, q: Any) -> Any:
        return p is True, p is not False, p is None, p is q, (p is True) and q is not True

    for p, q in itertools.product((True, False), repeat=2):
        assert auto(f)(p, q) == f(p, q)
    assert auto(lambda x: 1 if x is True else 2)(np.bool_(True)) == 2


def test_in_sets_and_dicts() -> None:
    def f(x: Any) -> Any:
        return (
            x in {1, 2},
            x in {1: "a", 5: "b"},
            x in frozenset((3,)),
            x not in {"1": 2}.values(),
            x in {"3"},
        )

    for x in (1, 2.0, 3, 5, -1):
        assert auto(f)(x) == f(x)


def test_python_numbers_and_lists() -> None:
    assert auto(lambda n: n == [1, 2])(2) is False
    with pytest.raises(TypeError, match="concatenate list"):
        auto(lambda n: [1, 2] + n)(2)
    np.testing.assert_array_equal(auto(lambda x: [1, 2] + x)(np.float64(2)), [3, 4])


@pytest.mark.parametrize(
    "show",
    [
        lambda x: len(str(x)),
        lambda x: f"{x}" == "3",
        lambda x: {f"{x}": 1},
        lambda x: f"{x}"[::-1],
        lambda x: int(str(x)),
        lambda x: "3" in repr(x),
        lambda x: f"{x}".encode(),
        lambda x: ("%s" % x)[0],
        lambda x: "-".join([str(x), "a"]).split("-"),
        lambda x: hash(x),
    ],
)
@pytest.mark.parametrize("autograph", [True, False])
def test_text_that_would_be_a_value_is_refused(show: Callable[[Any], Any], autograph: bool) -> None:
    if not autograph and "repr" in show.__code__.co_names:
        return  # debuggers ask for it
    with pytest.raises(jt.errors.Refusal):
        jt.jit(show, autograph=autograph)(3)


def test_print_happens_at_every_call(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, n: Any, flag: Any) -> Any:
        print("start", n, sep="-", end="!\n")
        print(f"{x.sum():.2f} of {len(x)}", "%d and %r" % (n, flag), str(n) + "!", [n, x[0]])
        for i in range(n):
            if x[i] > 1:
                print("large:", i, f"{x[i]:>6}|{x[i] * 2}")
        print()
        print("-".join(str(v) for v in (n, 2)), x)
        return x * 2

    compiled = auto(f)
    for x, n in ((np.array([1.0, 2.5]), 2), (np.array([3.0, 0.5]), 1)):
        f(x, n, True)
        want = capsys.readouterr().out
        compiled(x, n, True)
        assert capsys.readouterr().out == want


def test_messages_show_values() -> None:
    def f(x: Any, i: Any) -> Any:
        assert x[i] > 0, "element %d is %.1f" % (i, x[i])
        if x[i] > 5:
            raise ValueError(f"{x[i]} > 5 at {i!r}")
        return x[i]

    compiled = auto(f)
    x = np.array([-1.0, 2.0, 7.0, 10.0])
    assert compiled(x, 1) == 2.0
    for i in (0, 2):
        with pytest.raises((AssertionError, ValueError)) as want:
            f(x, i)
        with pytest.raises(type(want.value)) as got:
            compiled(x, i)
        assert str(got.value) == str(want.value).partition("\nassert")[0]  # pytest adds to it


def test_handlers_do_not_take_refusals() -> None:
    def shape(n: Any) -> Any:
        try:
            return np.ones((n, 2) if n else 3).sum()
        except Exception:
            return 0

    def text(n: Any) -> Any:
        try:
            return len(str(n))
        except TypeError:
            return 0

    def bare(n: Any) -> Any:
        try:
            return np.ones((2, n) if n else 3).sum()
        except:  # noqa: E722
            return 0

    for f in (shape, text, bare):

        def each(k: Any, f: Any = f) -> Any:
            total = 0.0
            for n in range(k):
                total += f(n)
            return total

        with pytest.raises(jt.errors.Refusal):
            auto(each)(3)

    def pythons_own(x: Any) -> Any:
        try:
            return x @ np.ones(7)
        except ValueError:
            return -x

    np.testing.assert_array_equal(auto(pythons_own)(np.ones(3)), -np.ones(3))


def test_match() -> None:
    class Point:
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

    def f(n: Any, v: Any) -> Any:
        match n:
            case 0 | 1:
                r = 10
            case int(k) if k > 5:
                r = k * 2
            case True | None:
                r = -1
            case _:
                r = n + 1
        match v:
            case (a, 0):
                r += 1
            case (a, b) if b > 2:
                r += b + a
            case Point(x=0, y=y):
                r += y
            case float() | int() as z:
                r += z
        return r

    for n, v in itertools.product((0, 1, 3, 7), ((1, 0), (1, 3), (1, 1), 2.0)):
        assert auto(f)(n, v) == f(n, v), (n, v)
    assert auto(lambda y: f(2, Point(0, y)))(5) == f(2, Point(0, 5))


@pytest.mark.parametrize(
    "make, change",
    [
        (queue.Queue, operator.methodcaller("put", 1)),
        (lambda: iter([1, 2]), next),
        (itertools.count, next),
        (lambda: array("d", [0.0]), operator.methodcaller("append", 1.0)),
        (bytearray, operator.methodcaller("append", 7)),
        (io.StringIO, operator.methodcaller("write", "abc")),
    ],
)
def test_objects_that_branches_change_are_refused(make: Any, change: Any) -> None:
    def f(x: Any) -> Any:
        kept = make()
        if x > 0:
            change(kept)
        return x

    with pytest.raises(jt.errors.JitneyError):
        auto(f)(1.0)


def test_deques_are_merged() -> None:
    def f(x: Any) -> Any:
        q = collections.deque([1.0, 2.0])
        if x > 0:
            q.rotate(1)
        return q[0] * 10 + q[1]

    assert auto(f)(1.0) == f(1.0) and auto(f)(-1.0) == f(-1.0)


def test_loops_without_end_are_refused() -> None:
    def f(x: Any) -> Any:
        for i in itertools.cycle((1, 2)):
            if i > x:
                return i
        return -1

    with pytest.raises(jt.errors.TransformError, match="has no end"):
        auto(f)(3)


def test_containers_that_are_one_of_several_are_changed() -> None:
    """In Python both names see a change. What is chosen here is a third container."""

    def chosen(t: Any) -> Any:
        xs, ys = [1.0, 2.0], [3.0, 4.0]
        c = xs if t else ys
        c[0] = 9.0
        return xs, ys

    def after(t: Any) -> Any:
        xs, ys = [1.0, 2.0], [3.0, 4.0]
        c = xs if t else ys
        ys[0] = 9.0
        return c

    def of_dicts(t: Any) -> Any:
        d, e = {1: 1.0}, {1: 2.0}
        c = d
        if t:
            c = e
        c[1] = 5.0
        return d, e

    def of_rows(t: Any) -> Any:
        m = [[1.0, 2.0], [3.0, 4.0]]
        r = m[0]
        if t:
            r = m[1]
        r[0] = 9.0
        return m

    def inside(t: Any) -> Any:
        a, b = [1.0, 2.0], [3.0, 4.0]
        c = (a, 0.0) if t else (b, 0.0)
        c[0][0] = 9.0
        return a, b, c

    def looped(t: Any) -> Any:
        xs, ys, i = [1.0, 2.0], [3.0, 4.0], 0
        c = xs
        while i < t:
            c, i = ys, i + 1
        c[0] = 9.0
        return xs, ys

    def popped(t: Any) -> Any:
        xs, ys, out = [1.0, 2.0], [3.0, 4.0], []
        while xs and ys:
            out.append((xs if t > xs[0] else ys).pop(0))
        return xs, ys, out

    for f in (chosen, after, of_dicts, of_rows, inside, looped, popped):
        compiled = auto(f)
        for t in (0, 1, 2):
            assert compiled(np.int64(t)) == f(np.int64(t)), f.__name__


def test_one_of_several_dicts_is_changed() -> None:
    def of_names(t: Any, xs: Any, ys: Any) -> Any:
        d, e = {"a": 1.0}, {"a": 2.0}
        c = d
        if t:
            c = e
        c["a"] = 5.0
        return d, e

    for t in (0, 1):
        args = np.int64(t), [1.0, 2.0], [3.0, 4.0]
        assert auto(of_names)(*args) == of_names(*args)


def test_one_of_several_lists_that_were_given_is_changed() -> None:
    def change(t: Any, xs: Any, ys: Any) -> Any:
        c = xs if t else ys
        c[0] = 9.0
        return xs[0] + ys[0]

    for t, x, y in ((1, 9.0, 3.0), (0, 1.0, 9.0)):
        xs, ys = [1.0, 2.0], [3.0, 4.0]
        assert auto(change)(np.int64(t), xs, ys) == x + y
        assert (xs, ys) == ([x, 2.0], [y, 4.0])


def test_containers_that_nobody_else_sees_are_chosen_and_changed() -> None:
    def replaced(t: Any) -> Any:
        x = [1.0, [2.0]]
        if t:
            x = [3.0, [4.0]]
        x[0] = 7.0
        x[1][0] += 1
        return x

    def made(t: Any) -> Any:
        x = [3.0, {"a": 4.0}] if t else [5.0, {"a": 6.0}]
        x[0] = 7.0
        x[1]["a"] = 8.0
        return x

    def read(t: Any) -> Any:
        xs, ys = [1.0, 2.0], [3.0, 4.0]
        c = xs if t else ys
        return c[0] * 10 + c[1]

    def returned(t: Any) -> Any:
        xs, ys = [1.0, 2.0], [3.0, 4.0]
        if t:
            return xs
        return ys

    for f in (replaced, made, read, returned):
        for t in (np.True_, np.False_):
            assert auto(f)(t) == f(t)


FUNCTIONS_GIVEN_AWAY = {
    "str": lambda xs: list(map(str, itertools.permutations(xs, 2))),
    "repr": lambda xs: ", ".join(map(repr, zip(xs, xs, strict=True))),
    "type": lambda xs: list(map(type, xs)),
    "isinstance": lambda xs: [*map(isinstance, xs, [int, float, int])],
    "max": lambda xs: list(map(max, xs, reversed(xs))),
    "int": lambda xs: functools.partial(int)(xs[0] / 2),
}


@pytest.mark.parametrize("name", FUNCTIONS_GIVEN_AWAY)
def test_functions_that_others_call(name: str) -> None:
    function = FUNCTIONS_GIVEN_AWAY[name]
    compiled = jt.jit(function)
    for xs in ([3, -2, 1], [-1, 0, 5]):
        assert compiled(list(xs)) == function(list(xs))


def test_classes_as_arguments_of_our_functions_stay_what_they_are() -> None:
    def f(x):
        return x.astype(int), np.zeros(2, dtype=float) + x[0], jt.asarray(x, bool)

    for found, want in zip(jt.jit(f)(np.ones(2)), f(np.ones(2)), strict=True):
        assert found.dtype == want.dtype


def test_tuples_and_lists_are_compared_in_turn() -> None:
    def f(a):
        x, y = float(a[0]), float(a[1])
        p, q = (x, (y, x)), (x, (1.0, x))
        return [
            *((x, y) == (1.0, 2.0), (x, y) != (y, x), (x, y) < (y, x), [x] >= [y], (x,) == (x, y)),
            *((x, y) < (x, y, 1.0), (x,) <= (x,), p == q, p < q, p >= q, (x, y) == [x, y]),
            *(1 if (x, y) > (1.0, 1.0) else 2, (0.0, 0.0) < (x, y) <= (2.0, x)),
        ]

    def nearest(a):
        best = (9.0, 0)
        for i in range(20):
            d = abs(i - a[0] * 3)
            if (d, i) < best:
                best = (d, i)
        return best[1]

    for pair in itertools.product((1.0, 2.0, -0.0), repeat=2):
        a = np.array(pair)
        assert repr(jt.jit(f)(a)) == repr(f(a))
        assert jt.jit(nearest)(a) == nearest(a)


def test_the_condition_of_a_loop_that_returns_is_any_truth() -> None:
    def f(a, n):
        todo = [n]
        while len(todo):
            k = todo.pop()
            if a[k] > 2:
                return k
            if k + 1 < len(a):
                todo.append(k + 1)
        return -1

    for a in (np.array([1.0, 2.0, 3.0]), np.zeros(3)):
        assert jt.jit(f)(a, 0) == f(a, 0)


TAKEN_WHOLE = {
    "sum with a condition": lambda a, n: sum(int(v) for v in a if v > 1),
    "sum over a range": lambda a, n: sum((float(a[k]) for k in range(n) if a[k] > 0.5), 0.0),
    "largest over a range": lambda a, n: max(int(a[k]) for k in range(n + 1)),
    "least": lambda a, n: min(float(v * 2) for v in a if v < 100),
    "sorted": lambda a, n: sorted(float(v) for v in a if v > 0),
    "nested": lambda a, n: sum(a[i] * a[j] for i in range(3) for j in range(i)),
    "tuple": lambda a, n: tuple(float(v) + 1 for v in a),
    "counted": lambda a, n: sum(1 for v in a if 0 < v < 3),
    "default": lambda a, n: max((float(v) for v in a if v > 50), default=-1.0),
    "list of a range": lambda a, n: len([k for k in range(n)]),  # noqa: C416
}


@pytest.mark.parametrize("name", TAKEN_WHOLE)
def test_generators_that_are_taken_whole(name: str) -> None:
    f = TAKEN_WHOLE[name]

    def of_element(a, m):
        return f(a, int(m[0]))

    compiled = jt.jit(of_element)
    for n in (2, 3, 0):
        for a in (np.array([1.5, -2.0, 3.0, -0.5]), np.array([0.5, 2.0, 2.5, 7.0])):
            assert repr(compiled(a, np.array([n]))) == repr(f(a, n))
