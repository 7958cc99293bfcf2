"""Integrals and differential equations: SciPy's values step by step, and their derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt
from jitney import solve

P, Y0 = np.array([1.5, 1.0, 3.0, 1.0]), np.array([10.0, 5.0])
AT = np.linspace(0.5, 4, 8)


def hunt(t, y, p):
    return np.array([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]])


def stiff(t, y):
    return [
        -0.04 * y[0] + 1e4 * y[1] * y[2],
        0.04 * y[0] - 1e4 * y[1] * y[2] - 3e7 * y[1] ** 2,
        3e7 * y[1] ** 2,
    ]


def flight(t, y, g):
    return np.array([y[1], -g])


def ground(t, y, g):
    return y[0]


def top(t, y, g):
    return y[1]


ground.terminal, ground.direction = True, -1  # type: ignore[attr-defined]


def test_steps_are_scipys() -> None:
    integrate = pytest.importorskip("scipy.integrate")
    times = np.linspace(0, 4, 9)
    for span in ((0.0, 4.0), (4.0, 0.0)):
        res = solve.solve_ivp(hunt, span, Y0, args=(P,), dense_output=True)
        theirs = integrate.solve_ivp(hunt, span, Y0, args=(P,), dense_output=True)
        np.testing.assert_allclose(res.t, theirs.t, rtol=1e-9)
        np.testing.assert_allclose(res.y, theirs.y, rtol=1e-7)
        np.testing.assert_allclose(res.sol(times), theirs.sol(times), rtol=1e-7)
        assert res.sol(1.0).shape == (2,)
        assert (res.nfev, res.status, res.message) == (theirs.nfev, 0, theirs.message)
    options = {"method": "RK23", "t_eval": times, "max_step": 0.1, "first_step": 0.05}
    res = solve.solve_ivp(hunt, (0, 4), Y0, args=(P,), **options)
    theirs = integrate.solve_ivp(hunt, (0, 4), Y0, args=(P,), **options)
    np.testing.assert_allclose(res.y, theirs.y, rtol=1e-9)
    assert res.y.shape == (2, 9) and res.nfev == theirs.nfev


def test_memory_for_steps_grows() -> None:
    res = solve.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], max_step=1 / 2048)
    assert res.t.size == 2049 and res.success
    few = solve.solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], max_step=1 / 2048, max_steps=10)
    assert not few.success and "max_steps" in few.message and few.t.size == 11


def test_stiff_problems() -> None:
    times = np.array([0.4, 4.0, 40.0])
    res = solve.solve_ivp(stiff, (0, 40), [1.0, 0, 0], "BDF", t_eval=times, rtol=1e-6, atol=1e-10)
    known = [[0.98517, 3.3864e-05, 1.4794e-02], [0.90552, 2.2405e-05, 9.4458e-02]]
    np.testing.assert_allclose(res.y[:, :2].T, known, rtol=1e-4)
    assert res.success and res.nfev < 700
    lost = solve.solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0], t_eval=[0.5, 1.5])
    assert not lost.success and lost.t.tolist() == [0.5] and "step size" in lost.message


def test_events() -> None:
    integrate = pytest.importorskip("scipy.integrate")
    options = {"args": (9.8,), "events": [ground, top], "t_eval": np.linspace(0, 9, 19)}
    res = solve.solve_ivp(flight, (0, 9), [0.0, 20.0], **options)
    theirs = integrate.solve_ivp(flight, (0, 9), [0.0, 20.0], **options)
    assert res.status == 1 and res.message == theirs.message
    assert res.t.shape == theirs.t.shape
    for name in ("t_events", "y_events"):
        for found, wanted in zip(res[name], theirs[name], strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)

    def fall(g):
        res = solve.solve_ivp(flight, (0.0, 9.0), [0.0, 20.0], args=(g,), events=ground)
        return res.t_events[0][0] + 0 * res.y[0, -1]

    assert np.isclose(jt.jit(jt.grad(fall))(9.8), -40 / 9.8**2)


def energy(y0, p, at, **options):
    options = {"rtol": 1e-9, "atol": 1e-9, **options}
    y = solve.solve_ivp(hunt, (0.0, at[-1]), y0, args=(p,), t_eval=at, **options).y
    return np.sum(y**2 * np.arange(1, 3)[:, None])


def test_gradients() -> None:
    def numeric(i, k):
        step = np.zeros_like((Y0, P, AT)[i])
        step[k] = 1e-5
        up, down = (
            [a + s * step if j == i else a for j, a in enumerate((Y0, P, AT))] for s in (1, -1)
        )
        return (energy(*up, rtol=1e-11, atol=1e-11) - energy(*down, rtol=1e-11, atol=1e-11)) / 2e-5

    expected = [numeric(0, 0), numeric(1, 1), numeric(2, 3)]
    for options in ({"gradient": "steps"}, {"gradient": "adjoint"}):
        grads = jt.jit(jt.grad(lambda *a, o=options: energy(*a, **o), argnums=(0, 1, 2)))(Y0, P, AT)
        np.testing.assert_allclose([grads[0][0], grads[1][1], grads[2][3]], expected, rtol=1e-6)

    @jt.jit
    def along(p):
        def short(p):
            return energy(Y0, p, AT, method="RK23", rtol=1e-6, atol=1e-6)

        return jt.jvp(short, (p,), (np.eye(4)[1],))[1], jt.vmap(short)(np.stack([p, p]))

    slope, rows = along(P)
    assert np.isclose(slope, expected[1], rtol=1e-4) and rows[0] == rows[1]


def test_without_times_in_compiled_code() -> None:
    @jt.jit
    def end(y0):
        res = solve.solve_ivp(hunt, (0.0, 4.0), y0, args=(P,), rtol=1e-9, atol=1e-9)
        return res.y[:, -1], res.t, res.message

    y, t, message = end(Y0)
    np.testing.assert_allclose(
        y, solve.solve_ivp(hunt, (0, 4), Y0, args=(P,), rtol=1e-9, atol=1e-9).y[:, -1]
    )
    assert t[-1] == 4 and "status" in message


CASES = [
    (
        lambda x: np.sin(100 * x) * np.exp(-x),
        0.0,
        3.0,
        100 * (1 - np.exp(-3) * (np.cos(300) + np.sin(300) / 100)) / 10001,
    ),
    (lambda x: np.exp(-x * x), -np.inf, np.inf, np.sqrt(np.pi)),
    (lambda x: np.exp(-x * x), np.inf, 0.0, -np.sqrt(np.pi) / 2),
    (lambda x: np.exp(x), -np.inf, 1.0, np.e),
    (lambda x: 1 / np.sqrt(x), 0.0, 1.0, 2.0),
    (lambda x: x * x, 3, 1, -26 / 3),
]


def test_integrals() -> None:
    for f, a, b, wanted in CASES:
        found, error = solve.quad(f, a, b)
        assert abs(found - wanted) <= max(error, 1e-14) < 1e-7
    few = solve.quad(CASES[0][0], 0.0, 300.0, limit=3)
    assert few[1] > 1e-3

    def integral(w, b):
        return solve.quad(lambda x: np.exp(-w * x * x), 0.0, b, epsabs=1e-12)[0]

    grads = jt.jit(jt.grad(integral, argnums=(0, 1)))(2.0, 1.5)
    numeric = (integral(2.0 + 1e-5, 1.5) - integral(2.0 - 1e-5, 1.5)) / 2e-5
    np.testing.assert_allclose(grads, [numeric, np.exp(-4.5)], rtol=1e-6)
    rows = jt.jit(jt.vmap(lambda w: integral(w, np.inf)))(np.array([1.0, 4.0, 400.0]))
    np.testing.assert_allclose(rows, np.sqrt(np.pi / np.array([1.0, 4.0, 400.0])) / 2)
