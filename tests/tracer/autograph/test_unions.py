"""Values of several forms: None or a number, tuples of different lengths, texts; by branch, by loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alike import DOWN, NONE, UP, compare

import jitney as jt


def test_returns_by_value() -> None:
    def number(x):
        if x > 0:
            return None
        return x

    def tuples(x):
        return (x, 2) if x > 0 else (x, 2, 3)

    def text(n):
        return "even" if n % 2 == 0 else "odd"

    def array(x, y):
        if x > 0:
            return y * x
        if x < -5:
            return -1
        return None

    def nested(x):
        return (x, None) if x > 0 else (x, (x, 1.0))

    def falls_off(x):
        for i in range(len(x)):
            if x[i] > 2:
                return i

    def lists(x):
        return [x, x] if x > 0 else None

    for f in (number, tuples, nested, lists):
        compare(f, (1.0,), (-1.0,))
    compare(text, (3,), (4,))
    compare(array, (1.0, UP), (-1.0, UP), (-9.0, UP))
    compare(falls_off, (UP,), (np.zeros(4),))
    compare(number, (1.0,), (-1.0,), (0.0,), backend="native")
    compare(falls_off, (UP,), (np.zeros(4),), (NONE,), backend="native")


def test_variables_of_loops() -> None:
    def least(x):
        best = None
        for i in range(len(x)):
            if x[i] > 0 and (best is None or x[i] < best[1]):
                best = (i, x[i])
        return best

    def repeated_digit(n):
        last = None
        while n > 0:
            digit = n % 10
            if last is not None and digit == last:
                return digit
            last = digit
            n //= 10
        return None

    def states(x):
        state = "start"
        for i in range(len(x)):
            if state == "start":
                if x[i] > 1:
                    state = "middle"
            elif x[i] > 2:
                state = "end"
        return state

    def pair(x, total):
        for i in range(len(x)):
            for j in range(i + 1, len(x)):
                if x[i] + x[j] == total:
                    return i, j
        return None

    def spread(x):
        low = high = None
        for v in x:
            if low is None or v < low:
                low = v
            if high is None or v > high:
                high = v
        if low is None:
            return None
        return high - low

    def bisect(a, low, high):
        def f(x):
            return x * x - a

        if f(low) * f(high) > 0:
            return None
        while high - low > 1e-9:
            middle = (low + high) / 2
            if f(low) * f(middle) <= 0:
                high = middle
            else:
                low = middle
        return (low + high) / 2

    for f in (least, states, spread):
        compare(f, (UP,), (DOWN,), (NONE,), (np.arange(40.0) % 7,))
    compare(repeated_digit, (1223,), (1234,), (0,), backend="native")
    compare(least, (DOWN,), (-UP,), backend="native")
    compare(pair, (UP, 7.0), (UP, 70.0), (np.arange(40.0), 77.0), backend="native")
    compare(bisect, (2.0, 0.0, 2.0), (2.0, 5.0, 6.0))


def test_what_is_known_of_a_value_needs_no_check() -> None:
    def guarded(x, y):
        best = None
        if x > 0:
            best = x * 2
        other = y if y > 1 else None
        if best is not None and not other is None:  # noqa: E714
            return best + other
        if best is None:
            return -1.0
        return best

    calls = ((1.0, 2.0), (1.0, 0.0), (-1.0, 2.0), (-1.0, 0.0))
    compare(guarded, *calls)
    assert "assert" not in str(jt.jit(guarded).trace(1.0, 2.0))

    def asserted(x):
        y = x if x > 0 else None
        assert y is not None
        return y + 1

    def raised(x):
        y = x if x > 0 else None
        if y is None:
            raise ValueError("none")
        return y + 1

    for f in (asserted, raised):
        compare(f, (1.0,), (-1.0,))
        assert str(jt.jit(f).trace(1.0)).count("assert %") == 1


def test_uses_of_none_raise_as_in_python() -> None:
    def added(x):
        y = x if x > 0 else None
        return 1 + y

    def compared(x):
        y = None if x > 0 else x
        return 2 if y < 1 else 3

    def subscripted(x):
        y = (x, x) if x > 0 else None
        return y[1]

    def unpacked(x):
        y = (x, 2.0) if x > 0 else None
        a, b = y
        return a * b

    def called(x):
        y = x if x > 0 else None
        return math.sqrt(y) + abs(y)

    def attribute(x):
        y = np.array([x, x]) if x > 0 else None
        return y.size

    for f in (added, compared, subscripted, unpacked, called, attribute):
        compare(f, (1.0,), (-1.0,))

    def handled(x):
        y = x if x > 0 else None
        try:
            return y + 1
        except TypeError:
            return -1.0

    compare(handled, (1.0,), (-1.0,))


def test_uses_of_several_forms() -> None:
    def product(x):
        y = (x, 2.0) if x > 0 else np.array([x, x])
        return float(y[0] * y[1])

    def total(x):
        y = None if x < -5 else (x,) if x < 0 else (x, x)
        if isinstance(y, tuple):
            return sum(y) + len(y) if len(y) == 2 else y[0]
        return y

    def equal(x):
        y = "a" if x > 0 else None
        return y == "a", y != "a", y is None, not y, bool(y)

    def chosen(x):
        y = x if x > 0 else None
        return y or 3.0

    def of_numpy(x):
        y = np.array([x, 1.0]) if x > 0 else None
        return None if y is None else np.sqrt(y).sum()

    def in_containers(x):
        y = x if x > 0 else None
        d = {"y": y, "z": [y, 1.0]}
        return d

    compare(product, (2.0,), (-2.0,))
    compare(equal, (2.0,), (-2.0,))
    for f in (chosen, of_numpy):
        compare(f, (2.0,), (-2.0,))
    compiled = jt.jit(in_containers)
    assert [compiled(v) for v in (1.0, -1.0)] == [in_containers(v) for v in (1.0, -1.0)]
    compare(total, (1.0,), (-1.0,), (-9.0,))

    def unpacked(x):
        a, *_ = (x, 1.0) if x[0] > 0 else (x,)
        return a

    with pytest.raises(jt.errors.CarryError, match=r"a tuple is run over or unpacked"):
        jt.jit(unpacked)(UP)

    class Up:
        def step(self, x):
            return x + 1

    class Down(Up):
        def step(self, x):
            return x - 1 if x < 3 else None

    def methods(x):
        walker = Up() if x > 0 else Down()
        return walker.step(2 * x)

    compare(methods, (1.0,), (-1.0,), (5.0,))


def test_gradients_and_examples() -> None:
    def least(x):
        best = None
        for i in range(len(x)):
            if x[i] > 0 and (best is None or x[i] ** 2 < best):
                best = x[i] ** 2
        return best

    def positive(x):
        best = least(x)
        return 0.0 if best is None else best

    for x in (DOWN, -UP):
        plain = jt.grad(positive)(x)
        assert np.array_equal(jt.jit(jt.grad(positive))(x), plain)
    assert np.array_equal(jt.jit(jt.grad(least))(DOWN), [0.0, 0.0, 4.0, 0.0])
    with pytest.raises(TypeError, match="returned None"):
        jt.jit(jt.grad(least))(-UP)
    both = np.stack([DOWN, -UP])
    assert np.array_equal(jt.vmap(positive)(both), [4.0, 0.0])
    with pytest.raises(jt.errors.CarryError, match="under vmap a value is None"):
        jt.vmap(least)(both)


def test_conditions_of_loops() -> None:
    def until_found(x):
        found = None
        while found is None:
            x = x * 2
            if x > 10:
                found = x
        return found + 1

    def followed(following, start):
        node, seen = start, 0
        while node is not None:
            i = int(following[node])
            seen += 1
            node = i if 0 <= i < len(following) and i != start else None
        return seen

    compare(until_found, (1.0,), (20.0,))
    assert "assert" not in str(jt.jit(until_found).trace(1.0))
    compare(followed, (np.array([1, 2, 0]), 0), (np.array([1, -1, 0]), 0))


def test_what_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    def shown(x):
        y = 1 if x < 1 else x
        s = "low" if x < 1 else None
        print(y, s, f"{y} {s!r:>6}", [y, s], "%s" % y)  # noqa: UP031

    for x in (0.5, 2.0):
        shown(x)
        jt.jit(shown)(x)
        lines = capfd.readouterr().out.splitlines()
        assert len(lines) == 2 and lines[0] == lines[1]


def test_functions_that_change_what_they_are_given() -> None:
    def one(xs):
        xs.append(1)

    def two(xs):
        xs.append(2)
        xs[0] = -1

    def chosen(n):
        xs = [0]
        for k in (n, not n):
            f = one if k else two
            f(xs)
        return xs

    def by_place(n):
        table = {"a": [1.0, 2.0], "b": [3.0, 4.0]}
        xs = table["a"] if n > 0 else None
        for i in range(2):
            if xs is not None:
                xs[i + n - n] = 5.0
        return table

    for f in (chosen, by_place):
        compare(f, (0,), (1,))


def test_texts_choose() -> None:
    def of_a_table(x):
        mode = "a" if x > 0 else "b"
        table = {"a": 1.0, "b": x}
        return table[mode], mode in table, mode + "!"

    def dispatched(x):
        op = "+" if x > 0 else "-"
        if op == "+":
            return x + 1
        elif op == "-":
            return x - 1
        raise ValueError(op)

    def called(x):
        f = np.sin if x > 0 else np.cos
        return float(f(x)), getattr(np.ones(3) * x, "sum" if x > 0 else "mean")()

    for f in (of_a_table, dispatched, called):
        compare(f, (1.5,), (-1.5,))

    def stored(x):
        d = {}
        d["a" if x[0] > 0 else "b"] = x * 1j
        return d

    with pytest.raises(jt.errors.CarryError, match="'b' or 'a' is a key"):
        jt.jit(stored)(UP)


def test_loops_run_over_one_of_several() -> None:
    """An array that has lost a row on one way; a list here and a tuple there."""

    def distinct(x):
        p = np.asarray(x)
        if np.linalg.norm(p[0] - p[-1]) <= 1e-9:
            p = p[:-1]
        cleaned, total = [], 0.0
        for point in p:
            if not cleaned or np.linalg.norm(point - cleaned[-1]) > 1e-9:
                cleaned.append(point)
            total += point[0]
        return np.array(cleaned), total

    def weighted(x):
        weights = [1, 2, 3] if x[0, 0] > 0 else (4.0, 5.0)
        t, last = 0.0, None
        for i, w in enumerate(weights):  # noqa: B007
            t += w * x[0, 1]
            if t > 100:
                break
            last = w
        return t, last, i

    def perhaps(x):
        p, t = x if x[0, 0] > 0 else None, 0.0
        for row in p:
            t += row[0]
        return t

    x = np.random.default_rng(0).normal(size=(5, 2))
    for f in (distinct, weighted):
        compiled = jt.jit(f)
        for y in (x, -x, np.vstack([x, x[:1]]), -np.vstack([x, x[:1]]), x * 1000):
            assert repr(compiled(y)) == repr(f(y))
    compiled, y = jt.jit(perhaps), x * np.sign(x[0, 0])
    assert compiled(y) == perhaps(y)
    with pytest.raises(TypeError, match="'NoneType' object is not iterable"):
        compiled(-y)
