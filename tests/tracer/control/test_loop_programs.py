"""Whole programs made of loops, with known answers: values and derivatives, on every backend.

An adaptive ODE solver against the analytic solution and the adjoint method, Newton's method, an LSTM,
beam search, Fibonacci numbers, and a heat simulation whose gradient runs in bounded memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import warm

import jitney as jt

BACKENDS = ["interpreter", "native", "cuda"]


@pytest.fixture(params=BACKENDS)
def jit(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    if request.param != "cuda":
        yield lambda f: jt.jit(f, backend=request.param)
        return
    with jt.config(cuda="emulate"):  # which leaves the setting untouched, as it was
        yield lambda f: jt.jit(f, device="cuda")


# An ODE solver with adaptive steps: Bogacki and Shampine's pair of orders 3 and 2.


def solve(f: Callable[..., Any], y0: Any, t0: Any, t1: Any, tol: float) -> Any:
    """`(y(t1), accepted, rejected)` for y' = f(t, y)."""
    direction = np.sign(t1 - t0)

    def cond(state: Any) -> Any:
        return (t1 - state["t"]) * direction > 0

    def body(state: Any) -> Any:
        t, y, h, k1 = state["t"], state["y"], state["h"], state["k1"]
        left = t1 - t
        final = np.abs(h) >= np.abs(left)
        h = np.where(final, left, h)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + 3 * h / 4, y + 3 * h / 4 * k2)
        new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = f(t + h, new)
        error = h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)
        size = jt.stop_gradient(np.max(np.abs(error)) / tol) + 1e-12
        good = size <= 1
        return {
            "t": np.where(good, np.where(final, t1, t + h), t),
            "y": np.where(good, new, y),
            "k1": np.where(good, k4, k1),
            "h": h * np.clip(0.9 * size ** (-1 / 3), 0.2, 5.0),
            "steps": state["steps"] + np.where(good, np.array([1, 0]), np.array([0, 1])),
        }

    init = {
        "t": t0,
        "y": y0,
        "k1": f(t0, y0),
        "h": 0.05 * (t1 - t0),
        "steps": np.zeros(2, np.int64),
    }
    last = jt.while_loop(cond, body, init)
    return last["y"], last["steps"]


def oscillator(w: Any) -> Callable[..., Any]:
    return lambda t, y: np.stack([y[1], -w * w * y[0]])


def test_ode_solver_and_its_gradient_against_the_solution(jit: Callable[..., Any]) -> None:
    def end(w: Any, t: Any) -> Any:
        return solve(oscillator(w), np.array([1.0, 0.0]), 0.0, t, 1e-6)

    w, t = 1.7, 3.0
    y, steps = jit(end)(w, t)
    np.testing.assert_allclose(y, [np.cos(w * t), -w * np.sin(w * t)], atol=1e-4)
    assert steps[0] > 40 and steps.dtype == np.int64
    rough = jit(lambda w, t: solve(oscillator(w), np.array([1.0, 0.0]), 0.0, t, 1e-3))(w, t)[1]
    assert 5 < rough[0] < steps[0] / 5, "the step follows the tolerance"
    dw, dt = jit(jt.grad(lambda w, t: end(w, t)[0][0], (0, 1)))(w, t)
    np.testing.assert_allclose(dw, -t * np.sin(w * t), atol=1e-3)
    np.testing.assert_allclose(dt, -w * np.sin(w * t), atol=1e-3)
    forward = jit(lambda w: jt.jvp(lambda w: end(w, t)[0][0], (w,), (1.0,))[1])(w)
    np.testing.assert_allclose(forward, dw, rtol=1e-9)


def pendulum(g: Any) -> Callable[..., Any]:
    return lambda t, y: np.stack([y[1], -g * np.sin(y[0])])


def test_ode_gradient_against_the_adjoint_method(jit: Callable[..., Any]) -> None:
    """dL/dy0 and dL/dg of L = y0(T)^2 from the adjoint equation, solved backwards in time."""
    start, g, end, tol = np.array([2.0, 0.3]), 1.3, 2.5, 1e-7

    def loss(y0: Any, g: Any) -> Any:
        return solve(pendulum(g), y0, 0.0, end, tol)[0][0] ** 2

    def adjoint(y0: Any, g: Any) -> Any:
        y = solve(pendulum(g), y0, 0.0, end, tol)[0]

        def backwards(t: Any, state: Any) -> Any:
            y, a = state[:2], state[2:4]
            _, pull = jt.vjp(lambda y, g: pendulum(g)(t, y), y, g)
            ay, ag = pull(a)
            return np.concatenate([pendulum(g)(t, y), -ay, np.reshape(-ag, 1)])

        last = np.concatenate([y, np.stack([2 * y[0], 0.0 * y[0], 0.0 * y[0]])])
        state = solve(backwards, last, end, 0.0, tol)[0]
        return state[2:4], state[4]

    (dy0, dg), (want_y0, want_g) = jit(
        lambda y0, g: (jt.grad(loss, (0, 1))(y0, g), adjoint(y0, g))
    )(start, g)
    np.testing.assert_allclose(dy0, want_y0, rtol=1e-4)
    np.testing.assert_allclose(dg, want_g, rtol=1e-4)


# Newton's method: the derivative of a root, through the loop and by the implicit function theorem.


def newton(f: Callable[..., Any], x0: Any, a: Any, **options: Any) -> Any:
    def step(state: Any) -> Any:
        x, _, n = state
        move = f(x, a) / jt.grad(f)(x, a)
        return x - move, np.abs(move), n + 1

    going = lambda s: (s[1] > 1e-14) & (s[2] < 50)  # noqa: E731
    return jt.while_loop(going, step, (x0, np.inf, 0), **options)[0]


def kepler(x: Any, a: Any) -> Any:
    """Kepler's equation: mean anomaly 1, eccentricity a."""
    return x - a * np.sin(x) - 1.0


@pytest.mark.parametrize("checkpoint", ["all", "sqrt", 2])
def test_newton_differentiated_through(jit: Callable[..., Any], checkpoint: Any) -> None:
    root = lambda a: newton(kepler, a * 0 + 1.0, a, checkpoint=checkpoint)  # noqa: E731
    compiled = jit(jt.value_and_grad(root))
    for a in (0.1, 0.5, 0.9):
        x, slope = compiled(a)
        assert abs(kepler(x, a)) < 1e-14
        implicit = np.sin(x) / (1 - a * np.cos(x))  # -(df/da) / (df/dx)
        np.testing.assert_allclose(slope, implicit, rtol=1e-12)
    second = jit(jt.grad(jt.grad(root)))(0.5)
    step = 1e-5
    difference = (jt.grad(root)(0.5 + step) - jt.grad(root)(0.5 - step)) / (2 * step)
    np.testing.assert_allclose(second, difference, rtol=1e-8)


def test_newton_by_the_implicit_function_theorem(jit: Callable[..., Any]) -> None:
    @jt.custom_vjp
    def root(a: Any) -> Any:
        return newton(kepler, a * 0 + 1.0, a)

    def forward(a: Any) -> Any:
        x = root(a)
        return x, (x, a)

    def backward(saved: Any, ct: Any) -> Any:
        fx, fa = jt.grad(kepler, (0, 1))(*saved)
        return (-ct * fa / fx,)

    root.defvjp(forward, backward)
    through = jt.grad(lambda a: newton(kepler, a * 0 + 1.0, a) ** 2)
    for a in (0.1, 0.9):
        got = jit(jt.grad(lambda a: root(a) ** 2))(a)
        np.testing.assert_allclose(got, through(a), rtol=1e-12)


# LSTM


def lstm_cell(p: Any, state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = np.split(p["wx"] @ x + p["wh"] @ h + p["b"], 4)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (h, c), h


def lstm_data(hidden: int = 4, width: int = 3, length: int = 7) -> Any:
    rng = np.random.default_rng(3)
    shapes = {"wx": (4 * hidden, width), "wh": (4 * hidden, hidden), "b": (4 * hidden,)}
    p = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    return p, rng.normal(size=(length, width)), rng.normal(size=(length, hidden))


@pytest.mark.parametrize("unroll", [1, 3])
def test_lstm_by_scan_against_unrolled_python(jit: Callable[..., Any], unroll: int) -> None:
    p, xs, targets = lstm_data()

    def by_scan(p: Any, xs: Any) -> Any:
        start = (np.zeros(4), np.zeros(4))
        return jt.scan(lambda s, x: lstm_cell(p, s, x), start, xs, unroll=unroll)[1]

    def in_python(p: Any, xs: Any) -> Any:
        state, hs = (np.zeros(4), np.zeros(4)), []
        for x in xs:
            state, h = lstm_cell(p, state, x)
            hs.append(h)
        return np.stack(hs)

    def loss(model: Any) -> Any:
        return lambda p, xs: np.mean((model(p, xs) - targets) ** 2)

    np.testing.assert_allclose(jit(by_scan)(p, xs), in_python(p, xs), rtol=1e-12)
    want = jt.value_and_grad(loss(in_python), (0, 1))(p, xs)
    got = jit(jt.value_and_grad(loss(by_scan), (0, 1)))(p, xs)
    for a, b in zip(jt.tree.leaves(got), jt.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_lstm_learns(jit: Callable[..., Any]) -> None:
    p, xs, targets = lstm_data()
    targets = np.tanh(targets)

    def train(p: Any, xs: Any, steps: Any) -> Any:
        def loss(p: Any) -> Any:
            start = (np.zeros(4), np.zeros(4))
            hs = jt.scan(lambda s, x: lstm_cell(p, s, x), start, xs)[1]
            return np.mean((hs - targets) ** 2)

        def step(_: Any, p: Any) -> Any:
            return jt.tree.map(lambda w, g: w - 2.0 * g, p, jt.grad(loss)(p))

        return loss(p), loss(jt.fori_loop(0, steps, step, p))

    before, after = jit(train)(p, xs, 60)
    assert after < 0.6 * before


# Beam search: while_loop, which stops when all beams have ended, and TensorArrays of back pointers.


def beam_search(scores: Any, start: Any, width: int, end: int, length: int) -> Any:
    """The best `width` sequences of tokens, and their scores, of a Markov chain of log scores.

    A sequence that has come to the token `end` stays there at no cost.
    """
    tokens = scores.shape[0]
    stay = np.where(np.arange(tokens) == end, 0.0, -np.inf)

    def going(state: Any) -> Any:
        t, last, *_ = state
        return (t < length) & np.any(last != end)

    def grow(state: Any) -> Any:
        t, last, total, parents, words = state
        following = np.where((last == end)[:, None], stay, scores[last])
        flat = np.reshape(total[:, None] + following, -1)
        best = np.argsort(-flat, kind="stable")[:width]
        parent, word = best // tokens, best % tokens
        return t + 1, word, flat[best], parents.write(t, parent), words.write(t, word)

    arrays = [jt.TensorArray(np.int64, length, (width,)) for _ in range(2)]
    first = np.where(np.arange(width) == 0, 0.0, -np.inf)  # one live beam
    init = (0, np.zeros(width, np.int64) + start, first, *arrays)
    t, _, total, parents, words = jt.while_loop(going, grow, init)

    def back(i: Any, state: Any) -> Any:
        at, found = state
        k = t - 1 - i
        return parents.read(k)[at], found.write(k, words.read(k)[at])

    found = jt.TensorArray(np.int64, length, (width,))
    found = jt.fori_loop(0, t, back, (np.arange(width), found))[1]
    return found.stack(fill_value=end).T, total, t


def test_beam_search(jit: Callable[..., Any]) -> None:
    tokens, length, end = 3, 4, 0
    search = jit(lambda s, start: beam_search(s, start, width=60, end=end, length=length))
    for seed in range(4):
        scores = np.random.default_rng(seed).normal(size=(tokens, tokens)) - 1.0
        scores[:, end] += 0.5 * seed
        found, total, _ = search(scores, 1)
        every = {}
        for words in itertools.product(range(tokens), repeat=length):
            last, score = 1, 0.0
            for word in words:
                score += (0.0 if word == end else -np.inf) if last == end else scores[last, word]
                last = word
            every[words] = score
        ranked = sorted((s for s in every.values() if np.isfinite(s)), reverse=True)
        np.testing.assert_allclose(total[:10], ranked[:10], rtol=1e-12)
        for words, score in zip(found[:10].tolist(), total[:10], strict=True):
            np.testing.assert_allclose(every[tuple(words)], score, rtol=1e-12)


def test_beam_search_stops_early(jit: Callable[..., Any]) -> None:
    scores = np.full((3, 3), -5.0)
    scores[:, 0] = -0.1  # everything ends at once
    found, total, steps = jit(lambda s: beam_search(s, 1, width=1, end=0, length=50))(scores)
    assert steps == 1 and found.tolist() == [[0] * 50]
    np.testing.assert_allclose(total, [-0.1])


# Fibonacci numbers, four ways.


def test_fibonacci(jit: Callable[..., Any]) -> None:
    def by_while(n: Any) -> Any:
        step = lambda s: (s[1], s[0] + s[1], s[2] - 1)  # noqa: E731
        return jt.while_loop(lambda s: s[2] > 0, step, (0, 1, n))[0]

    def by_for(n: Any) -> Any:
        return jt.fori_loop(0, n, lambda _, s: (s[1], s[0] + s[1]), (0, 1))[0]

    def by_scan(n: Any) -> Any:
        _, table = jt.scan(lambda s, _: ((s[1], s[0] + s[1]), s[0]), (0, 1), None, length=60)
        return table[n]

    def by_tensor_array(n: Any) -> Any:
        ta = jt.TensorArray(np.int64, 61).write(0, 0).write(1, 1)
        step = lambda i, ta: ta.write(i, ta.read(i - 1) + ta.read(i - 2))  # noqa: E731
        return jt.fori_loop(2, n + 1, step, ta).read(n)

    def by_matrices(n: Any) -> Any:
        steps = np.broadcast_to(np.array([[1, 1], [1, 0]]), (60, 2, 2))
        return jt.associative_scan(lambda a, b: b @ a, steps)[n - 1][0, 1]

    for f in (by_while, by_for, by_scan, by_tensor_array, by_matrices):
        g = jit(f)
        assert [int(g(n)) for n in (1, 2, 10, 50)] == [1, 1, 55, 12586269025], f.__name__


# Heat in a plate: explicit steps, differentiated with memory bounded by checkpoints.


def heat(u: Any, kappa: Any, steps: Any, **options: Any) -> Any:
    def step(_: Any, u: Any) -> Any:
        flow = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += kappa * flow
        return u

    return jt.fori_loop(0, steps, step, u, **options)


def test_heat_equation_decays_as_it_should(jit: Callable[..., Any]) -> None:
    n, steps, kappa = 17, 120, 0.2
    grid = np.sin(np.pi * np.arange(n) / (n - 1))
    u = np.outer(grid, grid)  # an eigenvector of the discrete Laplacian
    rate = 1 - 4 * kappa * (1 - np.cos(np.pi / (n - 1)))
    np.testing.assert_allclose(jit(heat)(u, kappa, steps), u * rate**steps, atol=1e-12)
    middle = lambda k, **o: heat(u, k, steps, **o)[n // 2, n // 2]  # noqa: E731
    want = steps * rate ** (steps - 1) * -4 * (1 - np.cos(np.pi / (n - 1)))
    for options in ({}, {"checkpoint": "all"}, {"checkpoint": "sqrt"}, {"checkpoint": 8}):
        got = jit(jt.grad(lambda k, o=options: middle(k, **o)))(kappa)
        np.testing.assert_allclose(got, want, rtol=1e-10, err_msg=str(options))


PEAK = """
import re, sys
import numpy as np
import jitney as jt
sys.path.insert(0, {folder!r})
from test_loop_programs import heat

loss = lambda u, k: np.sum(heat(u, k, 500, checkpoint={checkpoint!r}) ** 2)
u = np.random.default_rng(0).normal(size=(160, 160))
gradient = jt.jit(jt.grad(loss, (0, 1)))
gradient.lower(u, 0.2)  # so that what follows is the memory of the call

def peak():  # of this program: what getrusage says includes the process that started it
    return int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])

before = peak()
du, dk = gradient(u, 0.2)
print(peak() - before, repr(float(dk)), du.sum())
"""


def test_checkpoints_bound_the_memory_of_the_heat_gradient() -> None:
    """500 copies of the plate are 98 MiB. The bounded ones keep 8, or about 2 sqrt(500)."""
    folder = __file__.rpartition("/")[0]
    found = {}
    for checkpoint in ("all", "sqrt", 8):
        out = warm.run(PEAK.format(folder=folder, checkpoint=checkpoint))
        found[checkpoint] = [float(x) for x in out.split()]
    kilobytes = {k: v[0] for k, v in found.items()}
    assert kilobytes["all"] > 60_000, kilobytes
    assert kilobytes["sqrt"] < 30_000 and kilobytes[8] < 30_000, kilobytes
    for values in found.values():
        np.testing.assert_allclose(values[1:], found["all"][1:], rtol=1e-9)
