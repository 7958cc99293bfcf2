"""What nothing traced reaches runs as Python: functions and loops, with the same results and effects."""

import functools
import itertools

import numpy as np
import pytest

import jitney as jt
from jitney.tracer.autograph import runtime

COUNT = 0
LOG: list[int] = []
TABLE = [1.0] * 20


class Box:
    scale = 3

    def __init__(self, n):
        self.n = n
        self.items = []

    def add(self, v):
        self.items.append(v * self.scale)
        return len(self.items)

    @property
    def total(self):
        return sum(self.items)


BOX = Box(4)


def is_prime(n):
    if n < 2:
        return False
    for d in range(2, n):
        if d * d > n:
            break
        if n % d == 0:
            return False
    return True


def primes(x, n=300):
    count = 0
    for i in range(n):
        if is_prime(i):
            count += 1
    return x * count


def jumps_and_effects(x, n=40):
    global COUNT
    s = 0
    for i in range(n):
        if i % 2:
            continue
        if i > 30:
            break
        COUNT += 1
        LOG.append(i)
        s += i
    else:
        s = -1
    return x + s + i


def objects(x):
    box = Box(3)
    for i in range(50):
        box.add(i)
        if box.total > 300:
            return x + box.total
    return x


def object_outside(x):
    for i in range(30):
        BOX.add(i)
    return x * BOX.total


def traced_late(x):
    out = []
    t = 0
    for i in range(30):
        t += i
        if i > 25:
            out.append(x * t)
    return sum(out)


def first_bound_inside(x):
    for i in range(20):
        if i == 17:
            z = i
    return x + z


def unbound(x):
    for i in range(20):
        if i > 50:
            q = 1
        if i == 19:
            return x + q
    return x


def handlers(x):
    d = {}
    m = 0
    for k in "hello world this is":
        try:
            d[k] += 1
        except KeyError:
            d[k] = 1
        finally:
            m += 1
    return x + m + d["l"]


def squares(n):
    for i in range(n):
        yield i * i


def iterators(x):
    s = 0
    for v in squares(40):
        s += v
    for a, b in zip(range(40), squares(40)):  # noqa: B905
        s += a * b
    for a, b in itertools.combinations(range(12), 2):
        s += a ^ b
    for i, c in enumerate("abcdefghijklmnopqrstu"):
        s += i * ord(c)
    return x + s


@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def cached(x):
    return x + fibonacci(60)


def functions_inside(x, n=25):
    def inner(k):
        t = 0
        for j in range(k):
            t += j
        return t

    s = 0
    for i in range(n):
        s += inner(i)
        f = lambda v: v + i  # noqa: B023, E731
        s += f(1)
    return x + s


def large_integers(x):
    a, b, k = 0, 1, 0
    while True:
        a, b = b, a + b
        k += 1
        if a > 10**30:
            break
    while k > 0:
        k -= 1
        if k == 7:
            continue
        b -= k
    return x + float(a) + float(b % 1000)


def matched(x):
    s = 0
    for v in range(30):
        match v % 4:
            case 0 | 1:
                s += 1
            case 2 if v > 10:
                s += 10
            case _:
                s -= 1
    return x + s


def inside_a_traced_loop(x):
    s, i = 0.0, 0
    while i < x:
        t = 0
        for k in range(30):
            t += k
        s += t
        i += 1
    return s + x


def table_outside(x):
    s = 0.0
    for i in range(20):
        s += TABLE[i]
    return x * s


def raised_in_a_branch(x):
    if x > 5:
        for i in range(100):
            if i == 50:
                raise ValueError("fifty")
    return x


@jt.jit
def common(a, b, n, m):
    if n == 0 or m == 0:
        return 0
    if a[n - 1] == b[m - 1]:
        return 1 + common(a, b, n - 1, m - 1)
    return max(common(a, b, n - 1, m), common(a, b, n, m - 1))


def jitted(x):
    return x * common("stencil", "pencils", 7, 7)


PROGRAMS = [
    jitted,
    primes,
    jumps_and_effects,
    objects,
    object_outside,
    traced_late,
    first_bound_inside,
    unbound,
    handlers,
    iterators,
    cached,
    functions_inside,
    large_integers,
    matched,
    inside_a_traced_loop,
    table_outside,
    raised_in_a_branch,
]


def outcome(f, x):
    try:
        return f(x)
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]


def played(f):
    """Results of a few calls, between which the world changes, and what they leave."""
    global COUNT
    COUNT = 0
    LOG.clear()
    BOX.items.clear()
    TABLE[:] = [1.0] * 20
    results = []
    for x in (2.0, 3.0, 9.0):
        results.append(outcome(f, x))
        TABLE[3] += 1.0
    return results, COUNT, list(LOG), list(BOX.items)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_as_python(f):
    assert played(jt.jit(f)) == played(f)


@pytest.mark.parametrize(
    "f", [primes, objects, iterators, large_integers, inside_a_traced_loop, jitted]
)
def test_helpers_are_called_a_few_times_only(f, monkeypatch):
    calls = []

    def counted(*args):
        calls.append(args)
        return if_stmt(*args)

    if_stmt = runtime.if_stmt
    monkeypatch.setattr(runtime, "if_stmt", counted)
    jt.jit(f).trace(2.0)
    assert len(calls) < 40


def test_what_has_effects_is_done_at_each_call(capsys):
    def shout(n):
        for i in range(n):
            print(i)
        return n

    f = jt.jit(lambda x: x + shout(14))
    f(1.0)
    f(2.0)
    assert capsys.readouterr().out.split() == [str(i) for i in range(14)] * 2


def test_arrays_made_by_helpers_are_new_at_each_call():
    def fresh(n):
        return np.zeros(n)

    f = jt.jit(lambda x: (fresh(3), x))
    first = f(1.0)[0]
    first[0] = 5.0
    assert f(1.0)[0][0] == 0.0


def test_state_of_an_object_goes_on():
    class Cell:
        def __init__(self):
            self.w = 1.0
            self.history = []

        def step(self, x):
            for k in range(20):
                self.history.append(k)
            self.w += 1.0
            return x * self.w + len(self.history)

    ours, python = Cell(), Cell()
    step = jt.jit(Cell.step)
    assert [step(ours, 2.0) for _ in range(3)] == [python.step(2.0) for _ in range(3)]
    assert (ours.w, ours.history) == (python.w, python.history)


def test_a_global_that_becomes_traced_meanwhile():
    global COUNT

    def count(n):
        total = 0
        for _ in range(n):
            total += COUNT
        return total

    def f(x):
        global COUNT
        COUNT = 1
        a = count(20)
        COUNT = x
        return a + count(20)

    before = COUNT
    assert jt.jit(f)(3.0) == 80.0 and COUNT == 3.0
    COUNT = before


def test_a_method_that_is_replaced_while_tracing():
    class Rule:
        def value(self, n):
            return sum(i for i in range(n))

    def doubled(self, n):
        return 2 * sum(i for i in range(n))

    def f(x):
        total = 0
        for _ in range(15):
            total += Rule().value(4)
        Rule.value = doubled
        for _ in range(15):
            total += Rule().value(4)
        return x + total

    plain = Rule.value
    want = f(1.0)
    Rule.value = plain
    assert jt.jit(f)(1.0) == want
