"""Complex derivatives: JAX's conventions, every rule against differences, the complex step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sampling import Case, cases

import jitney as jt
from jitney.ir.autodiff.transform import is_differentiable, jvp_graph, vjp_graph
from jitney.ir.interpreter import evaluate
from jitney.ir.opdef import OPS
from jitney.ir.types import C64, C128, TensorType

RNG = np.random.default_rng(0)
Z = RNG.normal(size=4) + 1j * RNG.normal(size=4)
W = RNG.normal(size=4) + 1j * RNG.normal(size=4)
X = np.array([0.3, 0.7, 0.45, 0.9])
STEP = 1e-6


def is_complex(case: Case) -> bool:
    graph = case.graph()
    types = [v.type for v in (*graph.params, *graph.outputs)]
    return any(isinstance(t, TensorType) and t.dtype == C128 for t in types)


CASES = [c for d in OPS.values() if d.vjp is not None for c in cases(d) if is_complex(c)]
NAMES = sorted({c.definition.name for c in CASES} - {"stop_gradient"})


def direction(array: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(array.size)
    t = rng.normal(size=array.shape)
    return t + 1j * rng.normal(size=array.shape) if array.dtype.kind == "c" else t


def product(cts: list[np.ndarray], tangents: list[np.ndarray]) -> float:
    """How cotangents pair with tangents: Re(ct t)."""
    return sum(float(np.sum((c * t).real)) for c, t in zip(cts, tangents, strict=True))


NARROW = ("complex64", "float32", "float16", "int16", "bool")


@pytest.mark.parametrize("name", NAMES)
def test_rules(name: str) -> None:
    """Forward mode against differences in a complex direction, reverse mode against forward."""
    for case in CASES:
        narrow = str(case.example.attrs.get("dtype")) in NARROW
        if case.definition.name != name or narrow:
            continue
        graph = case.graph()
        wrt = [i for i, v in enumerate(graph.params) if is_differentiable(v.type)]
        outs = [i for i, v in enumerate(graph.outputs) if is_differentiable(v.type)]
        if not wrt or not outs or case.dtype == C64:
            continue
        arrays = case.sample(np.random.default_rng(3))
        tangents = [direction(arrays[i]) for i in wrt]
        found = evaluate(jvp_graph(graph, wrt), [*arrays, *tangents])[len(graph.outputs) :]

        def moved(by: float, graph: Any = graph, wrt: Any = wrt, arrays: Any = arrays) -> list[Any]:
            steps = dict(zip(wrt, (direction(arrays[i]) for i in wrt), strict=True))
            return evaluate(
                graph, [a + by * steps[i] if i in steps else a for i, a in enumerate(arrays)]
            )

        high, low = moved(STEP), moved(-STEP)
        for t, i in zip(found, outs, strict=True):
            want = (high[i] - low[i]) / (2 * STEP)
            np.testing.assert_allclose(t, want, rtol=2e-5, atol=2e-5, err_msg=str(case))
            assert t.dtype == graph.outputs[i].dtype
        cts = [direction(np.asarray(high[i])) for i in outs]
        grads = evaluate(vjp_graph(graph, wrt), [*arrays, *cts])[len(graph.outputs) :]
        np.testing.assert_allclose(
            product(grads, tangents), product(cts, found), rtol=1e-9, atol=1e-9
        )


ANALYTIC = (
    "exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arctanh square reciprocal"
).split()


@pytest.mark.parametrize("name", [*ANALYTIC, "arccosh"])
def test_complex_step(name: str) -> None:
    """Im f(x + ih) / h is f'(x) to machine precision: no subtraction, so no step is too small."""
    f = getattr(np, name)
    x = X + 1 if name == "arccosh" else X

    def slope(x: Any) -> Any:
        return np.imag(f(x + 1e-20j)) / 1e-20

    step, single = jt.jit(lambda *xs: [slope(x) for x in xs])(x, x.astype(np.float32))
    np.testing.assert_allclose(step, jt.grad(lambda x: np.sum(f(x)))(x), rtol=2e-15)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, step, rtol=5e-6)


def test_complex_step_through_a_program() -> None:
    def f(x: Any) -> Any:
        return np.exp(x) / (np.sin(x) ** 3 + np.cos(x) ** 3)

    x = np.pi / 4  # Squire and Trapp's example
    step = jt.jit(lambda x: np.imag(f(x + 1e-200j)) / 1e-200)(x)
    assert step == pytest.approx(np.sqrt(2) * np.exp(x), rel=1e-14)  # the denominator is flat there
    assert step == pytest.approx(jt.grad(f)(x), rel=1e-14)


@pytest.mark.parametrize("name", ANALYTIC)
def test_analytic_functions(name: str) -> None:
    """Both modes multiply by f'(z), unconjugated; grad with holomorphic=True gives it."""
    f = getattr(np, name)
    slope = jt.grad(lambda z: np.sum(f(z)), holomorphic=True)(Z)
    estimate = (f(Z + STEP) - f(Z - STEP)) / (2 * STEP)
    np.testing.assert_allclose(slope, estimate, rtol=1e-6)
    estimate = (f(Z + STEP * 1j) - f(Z - STEP * 1j)) / (2j * STEP)  # the same along the other axis
    np.testing.assert_allclose(slope, estimate, rtol=1e-6)
    np.testing.assert_allclose(jt.jvp(f, (Z,), (W,))[1], slope * W, rtol=1e-12)
    np.testing.assert_allclose(jt.vjp(f, Z)[1](W)[0], slope * W, rtol=1e-12)
    jt.check_grads(f, (Z,), order=2)


@pytest.mark.parametrize("wrap", [lambda f: f, jt.jit], ids=["eager", "jit"])
def test_real_functions_of_complex_numbers(wrap: Any) -> None:
    """grad is df/dx - i df/dy."""
    for f in (
        lambda z: np.sum(np.abs(z) ** 2),
        lambda z: np.sum(z.real**2 * z.imag + np.angle(z)),
        lambda z: np.abs(np.vdot(z, W)),
        lambda z: np.linalg.norm(np.exp(z) * z),
        lambda z: np.var(z),
        lambda z: np.real(z @ (z * 1j) + np.prod(np.conj(z))),
        lambda z: np.sum(np.where(z.real > 0, np.abs(np.sqrt(z)), 0)),
    ):
        got = wrap(jt.grad(f))(Z)
        for k in range(Z.size):
            e = np.zeros(Z.size)
            e[k] = STEP
            along_x = (f(Z + e) - f(Z - e)) / (2 * STEP)
            along_y = (f(Z + 1j * e) - f(Z - 1j * e)) / (2 * STEP)
            assert got[k] == pytest.approx(along_x - 1j * along_y, rel=1e-6, abs=1e-8)
    np.testing.assert_allclose(wrap(jt.grad(lambda z: np.sum(np.abs(z) ** 2)))(Z), 2 * np.conj(Z))
    for f in (np.abs, np.sign, lambda z: np.sign(z) * np.abs(z) ** 3):
        jt.check_grads(f, (Z,), order=2)
    assert jt.grad(abs)(3 + 4j) == pytest.approx(0.6 - 0.8j)
    assert jt.grad(lambda z: abs(z))(0j) == 0


def test_transposes_are_jaxs() -> None:
    ct = np.array([0.5 - 1.5j, 2 + 0.3j, -0.4 - 0.8j, 1j])
    np.testing.assert_array_equal(jt.vjp(np.real, Z)[1](ct.real)[0], ct.real + 0j)
    np.testing.assert_array_equal(jt.vjp(np.imag, Z)[1](ct.real)[0], -1j * ct.real)
    np.testing.assert_array_equal(jt.vjp(np.conj, Z)[1](ct)[0], np.conj(ct))
    np.testing.assert_array_equal(jt.vjp(lambda x: x + 0j, X)[1](ct)[0], ct.real)
    np.testing.assert_array_equal(jt.vjp(lambda x: x * 1j, X)[1](ct)[0], (ct * 1j).real)
    np.testing.assert_allclose(jt.vjp(np.abs, Z)[1](ct.real)[0], ct.real * np.conj(Z) / np.abs(Z))
    np.testing.assert_allclose(jt.vjp(lambda z: z @ W, Z)[1](ct[0])[0], ct[0] * W)
    (transposed,) = jt.linear_transpose(lambda z: W * z, Z)(ct)
    np.testing.assert_allclose(transposed, W * ct)
    out, push = jt.linearize(np.exp, Z)
    np.testing.assert_allclose(push(W), np.exp(Z) * W)


def test_jacobians() -> None:
    def f(z: Any) -> Any:
        return z**2 * np.sum(z * W)

    want = np.diag(2 * Z * np.sum(Z * W)) + np.outer(Z**2, W)
    for made in (jt.jacrev(f, holomorphic=True), jt.jacfwd(f, holomorphic=True)):
        np.testing.assert_allclose(made(Z), want, rtol=1e-12)
        np.testing.assert_allclose(jt.jit(made)(Z), want, rtol=1e-12)
    found = jt.hessian(lambda z: np.sum(z**3), holomorphic=True)(Z)
    np.testing.assert_allclose(found, np.diag(6 * Z), atol=1e-12)
    waves = jt.jacfwd(lambda x: np.exp(1j * x))(X)  # of real numbers, with complex results
    np.testing.assert_allclose(waves, np.diag(1j * np.exp(1j * X)), atol=1e-14)
    np.testing.assert_allclose(
        jt.jacrev(lambda z: np.abs(z) ** 2)(Z), np.diag(2 * np.conj(Z)), atol=1e-12
    )


def test_what_needs_holomorphic_says_so() -> None:
    with pytest.raises(TypeError, match=r"(?s)real numbers.*holomorphic=True"):
        jt.grad(lambda z: z * z)(1 + 1j)
    with pytest.raises(TypeError, match="holomorphic=True needs complex arguments; x is real"):
        jt.grad(lambda x: x * x, holomorphic=True)(1.0)
    with pytest.raises(TypeError, match="returns complex numbers"):
        jt.grad(lambda z: abs(z), holomorphic=True)(1 + 1j)
    with pytest.raises(TypeError, match="jacfwd needs real arguments; z is complex"):
        jt.jacfwd(lambda z: z * z)(Z)
    with pytest.raises(TypeError, match="jacrev needs a function that returns real"):
        jt.jacrev(lambda z: z * z)(Z)


def test_the_branch_not_taken_contributes_nothing() -> None:
    def f(z: Any) -> Any:
        return np.sum(np.abs(np.where(z != 0, np.sqrt(z), 0)) ** 2)

    at = np.array([0j, 4 + 0j, -1 + 1j])
    for made in (jt.grad(f), jt.jit(jt.grad(f))):
        got = made(at)
        assert got[0] == 0 and np.isfinite(got).all()


def test_through_loops_and_branches() -> None:
    """Reverse mode through a while loop with complex carries, checked against unrolling."""

    def looped(z: Any, c: Any) -> Any:
        def body(carry: Any) -> Any:
            i, z = carry
            return i + 1, np.sin(z) * c + z

        return jt.while_loop(lambda carry: carry[0] < 4, body, (0, z))[1]

    def unrolled(z: Any, c: Any) -> Any:
        for _ in range(4):
            z = np.sin(z) * c + z
        return z

    def scanned(z: Any, c: Any) -> Any:
        return jt.scan(lambda z, k: (np.sin(z) * c + z, z), z, np.arange(4))[0]

    for f in (looped, scanned):
        loss, plain = (lambda z, c, g=g: np.sum(np.abs(g(z, c)) ** 2) for g in (f, unrolled))
        for got, want in zip(
            jt.jit(jt.grad(loss, (0, 1)))(Z, W), jt.grad(plain, (0, 1))(Z, W), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-10)
        jt.check_grads(jt.jit(f), (Z, W), order=1)

    def branched(z: Any) -> Any:
        return jt.cond(np.abs(z[0]) > 0, lambda z: z * z, lambda z: np.conj(z), z)

    np.testing.assert_allclose(jt.jit(lambda z: jt.vjp(branched, z)[1](W)[0])(Z), 2 * Z * W)


def test_custom_rules() -> None:
    @jt.custom_vjp
    def f(z: Any) -> Any:
        return np.exp(z)

    f.defvjp(lambda z: (f(z), z), lambda z, ct: (ct * 10 * z,))
    np.testing.assert_allclose(jt.jit(lambda z: jt.vjp(f, z)[1](W)[0])(Z), 10 * Z * W)

    @jt.custom_jvp
    def g(z: Any) -> Any:
        return np.exp(z)

    g.defjvp(lambda p, t: (g(p[0]), t[0] * p[0]))
    np.testing.assert_allclose(jt.jit(lambda z: jt.vjp(g, z)[1](W)[0])(Z), Z * W)
    np.testing.assert_allclose(jt.jvp(g, (Z,), (W,))[1], Z * W)
    remat = jt.checkpoint(lambda z: np.sin(np.exp(z)))
    np.testing.assert_allclose(
        jt.jit(lambda z: jt.vjp(remat, z)[1](W)[0])(Z), np.cos(np.exp(Z)) * np.exp(Z) * W
    )


def test_gradient_error_is_found() -> None:
    assert jt.compute_gradient_error(lambda z: z * np.conj(z) + np.sin(z), Z, 1e-5) < 1e-8

    @jt.custom_vjp
    def wrong(z: Any) -> Any:
        return z * z

    wrong.defvjp(lambda z: (wrong(z), z), lambda z, ct: (ct * 2 * np.conj(z),))
    assert jt.compute_gradient_error(wrong, Z, 1e-5) > 0.1
    with pytest.raises(AssertionError, match="reverse"):
        jt.check_grads(wrong, (Z,), modes=("rev",))
    jt.check_grads(lambda z: np.tanh(z), (Z.astype(np.complex64),))
    jt.check_grads(lambda z: z**2, (1 + 2j,))
