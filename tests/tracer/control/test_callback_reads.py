"""Callbacks have the user's own objects, arrays and names, never what stands in for them."""

from functools import partial

import numpy as np
import pytest

import jitney as jt

ONES = np.ones(3)
W = np.arange(3.0)


class Plot:
    """Reads an array and keeps a log."""

    def __init__(self):
        self.w = np.arange(3.0)
        self.log = []

    def show(self, value):
        self.log.append((float(value), float(self.w.sum())))

    def bare(self, value):
        SEEN.append((float(value), float(self.w.sum())))


SEEN = []


def bound_to_object(plot, x):
    jt.io_callback(plot.show, None, x.sum())
    return x * plot.w


def bound_to_list(plot, x):
    jt.io_callback(plot.log.append, None, x.sum())
    return x * plot.w


def closing_over_object(plot, x):
    def note(value):
        plot.log.append((float(value), float(plot.w.sum())))

    jt.io_callback(note, None, x.sum())
    return x * plot.w


def closing_over_list(plot, x):
    log = plot.log
    jt.io_callback(lambda value: log.append(value), None, x.sum())
    return x * plot.w


def default_argument(plot, x):
    def note(value, plot=plot):
        plot.show(value)

    jt.io_callback(note, None, x.sum())
    return x * plot.w


def partially(plot, x):
    jt.io_callback(partial(Plot.show, plot), None, x.sum())
    return x * plot.w


def static_argument(plot, x):
    jt.io_callback(lambda plot, value: plot.show(value), None, plot, x.sum())
    return x * plot.w


def in_a_loop(plot, x):
    for _ in range(60):
        jt.io_callback(plot.show, None, x.sum())
        x = x + 1
    return x * plot.w


def while_it_changes(plot, x):
    plot.w += x
    jt.debug_print("{}", x[0])
    jt.io_callback(plot.log.append, None, x.sum())
    return x * plot.w


PROGRAMS = [
    bound_to_object,
    bound_to_list,
    closing_over_object,
    closing_over_list,
    default_argument,
    partially,
    static_argument,
    in_a_loop,
    while_it_changes,
]


def logs(call):
    """What several objects have noted, after calls with them in turn and new arrays in one."""
    plots = [Plot(), Plot()]
    results = []
    for plot in (plots[0], plots[1], plots[0]):
        results.append(call(plot, ONES).tolist())
        plot.w = plot.w + 1
    return [plot.log for plot in plots], results


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_objects_that_are_arguments(program):
    assert logs(jt.jit(program)) == logs(program)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_objects_that_are_closed_over(program):
    def closed(wrap):
        current = None
        compiled = wrap(lambda x: program(current, x))

        def call(plot, x):
            nonlocal current
            current = plot
            return compiled(x)

        return call

    assert logs(closed(jt.jit)) == logs(closed(lambda f: f))


def test_objects_that_only_callbacks_change():
    """Then nothing of what is traced changes anything."""
    plot = Plot()
    f = jt.jit(lambda x: (jt.io_callback(plot.bare, None, x.sum()), x * plot.w)[1])
    SEEN.clear()
    f(ONES)
    plot.w = plot.w + 1
    f(ONES)
    plot = Plot()
    f(ONES)
    assert SEEN == [(3.0, 3.0), (3.0, 6.0), (3.0, 3.0)]


def test_arrays_and_names_are_read_when_the_callback_runs():
    global W
    own = np.arange(3.0)
    seen = []

    @jt.jit
    def f(x):
        jt.io_callback(lambda: seen.append((W.sum(), own.sum())), None)
        return x * W * own

    before = W
    try:
        f(ONES)
        W = W + 1
        f(ONES)
        own = own + 2
        f(ONES)
    finally:
        W = before
    assert seen == [(3.0, 3.0), (6.0, 3.0), (6.0, 9.0)]


def test_containers_that_are_arguments():
    @jt.jit
    def f(log, x):
        jt.io_callback(log.append, None, x.sum())
        return x

    first, second = [], [5.0]
    for log in (first, second, first):
        f(log, ONES)
    assert (first, second) == ([3.0, 3.0], [5.0, 3.0])


def test_a_list_that_takes_the_place_of_another():
    seen = []

    @jt.jit
    def f(x):
        jt.io_callback(seen.append, None, x.sum())
        return x

    f(ONES)
    old, seen = seen, []
    f(ONES)
    f(ONES)
    assert (old, seen) == ([3.0], [3.0, 3.0])


def test_a_rule_of_a_derivative_has_callbacks_too():
    plot = Plot()

    @jt.custom_vjp
    def f(x):
        return x**2

    def backward(x, cotangent):
        jt.io_callback(plot.show, None, cotangent)
        return (2 * x * cotangent,)

    f.defvjp(lambda x: (f(x), x), backward)
    step = jt.jit(jt.grad(lambda x: f(x) * 3))
    assert step(2.0) == 12.0
    plot, old = Plot(), plot
    assert step(2.0) == 12.0
    assert (old.log, plot.log) == ([(3.0, 3.0)], [(3.0, 3.0)])


def test_a_traced_value_is_no_number_yet():
    @jt.jit
    def f(x):
        inner = x * 2
        jt.io_callback(lambda: print(inner), None)
        return x

    with pytest.raises(
        jt.errors.LeakedTracerError, match=r"reads the traced value `inner`"
    ) as error:
        f(ONES)
    assert "jt.io_callback(function, None, inner)" in str(error.value)


def test_recursive_callbacks():
    seen = []

    @jt.jit
    def f(x):
        def count(n):
            seen.append(int(n))
            if n > 0:
                count(n - 1)

        jt.io_callback(count, None, x)
        return x

    f(3)
    assert seen == [3, 2, 1, 0]


class Counter:
    """Changed by compiled code and looked at by a callback."""

    def __init__(self):
        self.n, self.w, self.d, self.other = 0, np.zeros(3), {}, 1.0

    def count(self, value):
        self.n += 1

    def look(self, value):
        print(self.inner())

    def inner(self):
        return self.w.sum()

    def note(self, value):
        self.d[99] = value

    def harmless(self, value):
        SEEN.append((float(value), self.other))


def grows(log, x):
    for i in range(50):
        if x[i % 3] > 0:
            log.append(float(i))
    jt.io_callback(log.append, None, x.sum())


def counts(counter, x):
    counter.n += 1
    jt.io_callback(counter.count, None, x.sum())


def writes_in_place(counter, x):
    jt.io_callback(counter.look, None, x.sum())
    counter.w += x


def adds_keys(counter, x):
    for i in range(50):
        if x[i % 3] > 0:
            counter.d[i] = 1.0
    jt.io_callback(counter.note, None, x.sum())


@pytest.mark.parametrize(
    "program", [grows, counts, writes_in_place, adds_keys], ids=lambda p: p.__name__
)
def test_what_compiled_code_changes_is_no_callbacks(program):
    owner = [] if program is grows else Counter()
    with pytest.raises(jt.errors.TransformError, match="which the compiled function changes"):
        jt.jit(program)(owner, ONES)
    assert owner == [] if program is grows else (owner.n, owner.d) == (0, {})


def test_other_attributes_are():
    counter = Counter()

    @jt.jit
    def f(x):
        counter.w += x
        counter.n += 1
        jt.io_callback(counter.harmless, None, x.sum())

    SEEN.clear()
    f(ONES)
    f(ONES)
    assert SEEN == [(3.0, 1.0)] * 2
    assert (counter.n, counter.w.tolist()) == (2, [2.0] * 3)
