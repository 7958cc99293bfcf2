"""Functions that change objects: results and all that is reached are what Python leaves."""

from __future__ import annotations

import signal
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import state_classes as classes
from native_calls import native_hits
from state_cases import CASES, Box, Item
from stateful import compare, portrait
from support import misses

import jitney as jt

RNG = np.random.RandomState(3)
PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[..., Any], list[Any]]] = {
    "counter": (classes.Counter, classes.Counter.step, [(float(k),) for k in range(5)]),
    "kalman": (classes.Kalman, classes.Kalman.step, [(float(x),) for x in RNG.randn(5)]),
    "adam": (
        lambda: classes.Adam([np.ones((3, 4)), np.zeros(4)]),
        classes.Adam.step,
        [([RNG.randn(3, 4), RNG.randn(4)],) for _ in range(5)],
    ),
    "network": (
        classes.Network,
        classes.Network.train,
        [(RNG.randn(6, 4), RNG.randn(6, 2), 0.1) for _ in range(4)],
    ),
    "life": (classes.Life, classes.Life.step, [()] * 4),
    "life, a loop": (classes.Life, classes.Life.run, [(3,), (2,), (0,)]),
    "ema": (classes.Ema, classes.Ema.update, [(1.0,), (2.0,), (4.0,)]),
    "welford": (lambda: classes.RunningStats(3), classes.RunningStats.add, [(RNG.randn(3),)] * 4),
    "cart pole": (classes.CartPole, classes.CartPole.step, [(1,)] * 30 + [(0,)] * 3),
    "ring buffer": (lambda: classes.Queue(3), classes.Queue.push, [(float(k),) for k in range(7)]),
    "raising": (classes.Checked, classes.Checked.step, [(1,), (9,), (2,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_small_functions(name: str) -> None:
    compare(*CASES[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_classes_as_people_write_them(name: str) -> None:
    compare(*PROGRAMS[name])


@pytest.mark.parametrize("backend", ["interpreter"])
@pytest.mark.parametrize("name", ["adam", "network", "cart pole", "raising"])
def test_without_native_code(name: str, backend: Any) -> None:
    compare(*PROGRAMS[name], backend=backend)


# What is compiled, and when


@pytest.mark.parametrize("name", ["counter", "kalman", "adam", "network", "life", "ring buffer"])
def test_another_object_runs_the_same_code(name: str) -> None:
    make, function, calls = PROGRAMS[name]
    f = compare(make, function, calls)
    count = misses(f)
    other = make()
    hits = native_hits(f)
    for args in calls:
        f(other, *args)
    assert misses(f) == count == 1 and native_hits(f) == hits + len(calls)


def test_arrays_of_one_shape_may_be_exchanged() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w, self.n = np.ones(3), 0

        @jt.jit(autograph=True)
        def __call__(self, x: Any) -> Any:
            self.n += 1
            return x * self.w

    layer = Layer()
    for k in range(4):
        layer.w = np.full(3, float(k))
        np.testing.assert_array_equal(layer(np.ones(3)), layer.w)
    assert misses(Layer.__call__) == 1 and layer.n == 4
    layer.w = np.ones(2)
    np.testing.assert_array_equal(layer(np.ones(2)), [1, 1])
    assert misses(Layer.__call__) == 2


def test_what_the_function_does_not_touch_is_no_matter() -> None:
    def f(s: Any, x: Any) -> Any:
        s.n += 1
        return x

    g, s = jt.jit(f, autograph=True), Box(n=0, name="a", history=[])
    for k in range(4):
        s.name, s.other = str(k), k
        s.history.append(k)
        g(s, 1.0)
    assert misses(g) == 1 and s.n == 4


def test_parameters_are_updated_in_place_without_a_copy() -> None:
    adam = classes.Adam([np.ones((3, 4))])
    f = jt.jit(classes.Adam.step, autograph=True)
    text = f.explain(adam, [np.ones((3, 4))])
    assert "copies" not in text
    p = adam.params[0]
    f(adam, [np.ones((3, 4))])
    assert adam.params[0] is p and p[0, 0] < 1


def test_forms_of_methods() -> None:
    class Total:
        def __init__(self) -> None:
            self.t = 0.0

        @jt.jit(autograph=True)
        def decorated(self, x: Any) -> Any:
            self.t += x
            return self

        def plain(self, x: Any) -> None:
            self.t += x

    a, b = Total(), Total()
    assert a.decorated(1.0) is a and Total.decorated(a, 2.0) is a and a.t == 3.0
    bound = a.decorated
    bound(1.0)
    assert a.t == 4.0 and bound.__self__ is a
    assert "add" in str(bound.trace(1.0)) and a.t == 4.0
    of_b = jt.jit(b.plain, autograph=True)
    for _ in range(3):
        of_b(2.0)
    assert b.t == 6.0 and a.t == 4.0


def test_dataclasses_and_containers_among_the_arguments() -> None:
    def move(items: Any, dt: Any) -> None:
        for item in items:
            item.x += item.v * dt

    from dataclasses import dataclass

    @dataclass
    class Particle:
        x: float
        v: float

    f = jt.jit(move, autograph=True)
    items = [Particle(0.0, 1.0), Particle(1.0, 2.0)]
    for _ in range(3):
        f(items, 0.5)
    assert items == [Particle(1.5, 1.0), Particle(4.0, 2.0)] and misses(f) == 1

    def count(table: Any, x: Any) -> Any:
        table["n"] += 1
        table["w"] = table["w"] * x
        return table["n"]

    g, table = jt.jit(count, autograph=True), {"n": 0, "w": np.ones(2)}
    assert [g(table, 2.0) for _ in range(3)] == [1, 2, 3] and misses(g) == 1
    np.testing.assert_array_equal(table["w"], [8, 8])


def test_closures_and_globals() -> None:
    n, history, settings = 0, [], {"k": 1.0}

    def f(x: Any) -> Any:
        nonlocal n
        n += 1
        history.append(x * n)
        settings["k"] = settings["k"] + x
        return x * n

    g = jt.jit(f, autograph=True)
    assert [g(2.0) for _ in range(3)] == [2.0, 4.0, 6.0]
    assert n == 3 and history == [2.0, 4.0, 6.0] and settings == {"k": 7.0} and misses(g) == 1


def test_generators_of_ours_in_attributes() -> None:
    class Noise:
        def __init__(self) -> None:
            self.rng, self.n = jt.random.default_rng(3), 0

        @jt.jit(autograph=True)
        def step(self, x: Any) -> Any:
            self.n += 1
            return self.rng.normal() * x

    noise, rng = Noise(), jt.random.default_rng(3)
    assert [noise.step(1.0) for _ in range(3)] == [rng.normal() for _ in range(3)]
    assert noise.n == 3


# Refusals


def test_attributes_that_may_have_no_value() -> None:
    def branch(s: Any, x: Any) -> Any:
        if x[0] > 0:
            s.last = x
        return x

    def loop(s: Any, x: Any) -> Any:
        for i in range(x[0]):
            s.last = i * 2.0
        return x

    for f, x in ((branch, np.ones(2)), (loop, np.array([3]))):
        s = Box(n=0)
        with pytest.raises(jt.errors.UndefinedVariableError, match=r"s\.last"):
            jt.jit(f, autograph=True)(s, x)
        assert vars(s) == {"n": 0}


def test_what_differs_by_example_is_to_be_reduced() -> None:
    def attribute(s: Any, x: Any) -> Any:
        def one(r: Any) -> Any:
            s.last = r
            return r * x

        return jt.vmap(one)(s.w)

    def in_place(s: Any, x: Any) -> Any:
        def one(r: Any) -> Any:
            s.w[0] += r
            return r * x

        return jt.vmap(one)(s.w)

    for f in (attribute, in_place):
        s = Box(last=0.0, w=np.arange(3.0))
        before = portrait(s)
        with pytest.raises(jt.errors.OuterMutationError, match="reduce it first"):
            jt.jit(f, autograph=True)(s, 2.0)
        assert portrait(s) == before


def test_derivatives_of_methods_that_count() -> None:
    class Model:
        def __init__(self) -> None:
            self.w, self.n, self.last = np.arange(3.0), 0, 0.0

        def loss(self, w: Any) -> Any:
            self.n += 1
            self.last = (w * w).sum()
            return self.last

        @jt.jit(autograph=True)
        def step(self, x: Any) -> Any:
            g = jt.grad(self.loss)(self.w * x)
            self.w -= 0.1 * g
            return g

        @jt.jit(autograph=True)
        def checkpointed(self, x: Any) -> Any:
            return jt.grad(lambda w: jt.checkpoint(self.loss)(w * x))(self.w)

    m = Model()
    np.testing.assert_allclose(m.step(1.0), [0, 2, 4])
    assert (m.n, m.last) == (1, 5.0)
    np.testing.assert_allclose(m.w, [0, 0.8, 1.6])
    np.testing.assert_allclose(m.checkpointed(1.0), 2 * m.w)
    assert m.n == 2 and np.isclose(m.last, (m.w**2).sum())


# Other threads, signals, processes


def test_other_threads_never_see_tracers() -> None:
    s, stop, seen = Box(w=np.ones(3), n=0), threading.Event(), []

    def double(s: Any, x: Any) -> Any:
        s.n += 1
        s.w = s.w * x
        return s.w.sum()

    def read(s: Any) -> Any:
        s.m = s.w.sum()
        return s.m

    f, g = jt.jit(double, autograph=True), jt.jit(read, autograph=True)

    def work() -> None:
        while not stop.is_set():
            seen.append(g(s))

    thread = threading.Thread(target=work)
    thread.start()
    for dtype in (np.float64, np.float32, np.float64, np.float32):
        s.w = np.ones(3, dtype)
        f.clear_cache()
        f(s, 1.0)
    stop.set()
    thread.join()
    assert seen and all(value == 3.0 for value in seen)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_an_interrupt_leaves_all_or_nothing() -> None:
    s = Box(n=0, w=np.zeros(4), log=[])

    def f(s: Any, x: Any) -> None:
        s.n += 1
        s.w = s.w + x
        s.log.append(s.n)

    g = jt.jit(f, autograph=True)
    g(s, 1.0)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(20):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-4 * (1 + k % 5))
                while True:
                    g(s, 1.0)
            except KeyboardInterrupt:
                assert s.n == len(s.log) == int(s.w[0])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert s.n > 20


def test_a_second_process_traces_nothing(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent("""
        import numpy as np
        import jitney as jt

        class Model:
            def __init__(self):
                self.w, self.n, self.log, self.inner = np.ones(3), 0, [], {"k": 1.0}

            @jt.jit(autograph=True)
            def step(self, x):
                self.n += 1
                self.log.append(self.n * x)
                self.inner["k"] += x
                if x > 1:
                    self.w = self.w * x
                return self.w

        m = Model()
        w = m.w
        assert m.step(1.0) is w
        m.step(2.0)
        m.step(3.0)
        (entry,) = Model.step.cache_info().entries
        print(m.w.tolist(), m.n, m.log, m.inner, "recall" in entry.seconds)
        """)
    )
    import os
    import subprocess

    environment = {**os.environ, "JITNEY_CACHE_DIR": str(tmp_path / "cache")}
    shown = [
        subprocess.run(
            [sys.executable, str(program)], env=environment, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    want = "[6.0, 6.0, 6.0] 3 [1.0, 4.0, 9.0] {'k': 7.0}"
    assert [one.stdout.strip() for one in shown] == [f"{want} False", f"{want} True"], shown


def test_objects_are_let_go_of() -> None:
    import gc
    import weakref

    f = jt.jit(lambda s, x: s.bump(x), autograph=True)
    s = Item(n=1.0)
    for _ in range(4):
        f(s, 1.0)
    kept = weakref.ref(s)
    del s
    gc.collect()
    assert kept() is None


def test_what_python_asks_for_is_not_changed_while_tracing() -> None:
    """Where the values of arrays are asked for, one that also changes some has changed nothing then."""
    buf, sizes = np.zeros(3), np.array([2, 1])

    def f(x: Any) -> Any:
        buf[1] += 1
        return np.ones(int(sizes[0])) * x

    compiled = jt.jit(f)
    for calls, size in ((1, 2), (2, 3), (3, 2)):
        sizes[0] = size
        assert compiled(2.0).tolist() == [2.0] * size
        assert buf.tolist() == [0, calls, 0]
    sizes[0] = 2

    def each(x: Any) -> Any:
        buf[1] += 1
        return jt.map_fn(lambda size: np.ones(size) * x, sizes)

    buf[:] = 0
    with pytest.raises(jt.errors.TracerIndexError):
        jt.jit(each)(2.0)
    assert not buf.any()

    def g(x: Any) -> Any:
        parts = []
        for size in sizes:
            parts.append(np.ones(int(size)) * x)
        return np.concatenate(parts)

    compiled = jt.jit(g)
    for changed in (2, 4):
        sizes[0] = changed
        np.testing.assert_array_equal(compiled(3.0), g(3.0))


class Mixture:
    """Asks for a number of its own, draws numbers, and then for what cannot be compiled."""

    def __init__(self) -> None:
        self.count, self.rng = 2, np.random

    def fit(self, x: Any) -> Any:
        self.priors = x.sum() * np.ones(self.count)
        self.start = x[np.random.choice(range(len(x)))]
        return np.busday_offset(self.priors, 1)


def test_what_cannot_be_compiled_is_named_and_leaves_the_object_as_it_was() -> None:
    mixture = Mixture()
    before = dict(vars(mixture))
    for _ in range(2):
        with pytest.raises(
            jt.errors.UnsupportedFunctionError, match="busday_offset"
        ):  # not self.count
            jt.jit(mixture.fit)(np.arange(3.0))
        assert vars(mixture) == before


def test_operators_that_are_replaced_count() -> None:
    class Table:
        def __init__(self) -> None:
            self.scale = 2.0
            self.calls = 0

        def __getitem__(self, k: Any) -> float:
            return 3.0

        def __len__(self) -> int:
            return 4

    class Longer(Table):
        pass

    table = Longer()

    def f(x: Any) -> Any:
        table.calls += 1
        return x * table[0] * len(table) * table.scale

    compiled = jt.jit(f)
    assert compiled(1.0) == 24.0
    Table.__getitem__ = lambda self, k: 5.0  # type: ignore[method-assign]
    assert compiled(1.0) == 40.0
    Table.__len__ = lambda self: 1  # type: ignore[method-assign]
    assert compiled(1.0) == 10.0
    assert compiled(2.0) == 20.0
    assert table.calls == 4


def test_arrays_that_python_asks_for_while_numbers_change() -> None:
    class Curve:
        def __init__(self, times: Any) -> None:
            self.times, self.dates, self.first = times, [], None

        def build(self, step: Any) -> Any:
            self.dates, t = [], 0.0
            while t < self.times[-1]:  # a list cannot grow so, but with the numbers as they are
                self.dates.append((t, 1j if t else 2j))
                t += step
            return len(self.dates)

        def keep(self, step: Any) -> Any:
            self.first = self.times
            return self.build(step)

    compiled = jt.jit(Curve.build)
    for last in (2.0, 2.0, 3.0, 1.0):
        curve, other = Curve(np.array([0.0, last])), Curve(np.array([0.0, last]))
        assert compiled(curve, 0.5) == other.build(0.5) and curve.dates == other.dates
    assert misses(compiled) == 3
    # An array that is stored is the caller's own, or this is refused.
    kept = jt.jit(Curve.keep)
    for _ in range(2):
        curve = Curve(np.array([0.0, 2.0]))
        try:
            kept(curve, 0.5)
        except jt.errors.JitneyError:
            assert curve.first is None
        else:
            assert curve.first is curve.times


class Buffers:
    """Two arrays that change places, in a method that a loop calls."""

    def __init__(self) -> None:
        self.now, self.next, self.count = np.arange(40), np.zeros(40, np.int64), 0

    def tick(self) -> None:
        a, b = self.now, self.next
        for i in range(1, len(a) - 1):
            b[i] = (a[i - 1] + a[i + 1]) % 7
            self.count += 1
        self.now, self.next = b, a

    def run(self, trips: int) -> int:
        for _ in range(trips):
            self.tick()
        return self.count


def test_buffers_that_change_places_in_a_loop() -> None:
    """An attempt to make one op of the loop is taken back with what it has written."""
    plain, mine = Buffers(), Buffers()
    first = mine.now
    assert jt.jit(Buffers.run)(mine, 3) == Buffers.run(plain, 3)
    assert vars(plain).keys() == vars(mine).keys() and mine.next is first
    assert np.array_equal(plain.now, mine.now) and np.array_equal(plain.next, mine.next)


class Setting:
    def __init__(self, w: float, squared: bool = True) -> None:
        self.w, self.squared, self.calls = w, squared, 0

    def restart(self, squared: bool) -> None:
        self.__init__(self.w, squared)  # type: ignore[misc]


def test_bools_that_constructors_set_are_compared() -> None:
    def f(s: Any, x: Any) -> Any:
        s.calls += 1
        other = Setting(s.w, False)
        return (x**2, other.w) if s.squared else (x, 1)

    g = jt.jit(f)
    for squared in (True, False, True):
        s, plain = Setting(2.0, squared), Setting(2.0, squared)
        assert g(s, 3.0) == f(plain, 3.0) and vars(s) == vars(plain)
    assert misses(g) == 2


def test_bools_that_constructors_set_again_are_state() -> None:
    def f(s: Any, x: Any) -> Any:
        s.restart(x > 0)
        return x * 2 if s.squared else x

    g = jt.jit(f)
    for x in (1.0, -1.0, 2.0):
        s, plain = Setting(2.0), Setting(2.0)
        assert g(s, x) == f(plain, x) and vars(s) == vars(plain)
