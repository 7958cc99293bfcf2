"""Complex numbers in programs: NumPy code as it stands, control flow, batching, callbacks, layouts."""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np
import pytest
from support import check, check_raises

import jitney as jt

RNG = np.random.default_rng(0)


def normal(*shape: int, dtype: Any = complex) -> np.ndarray:
    return (RNG.normal(size=shape) + 1j * RNG.normal(size=shape)).astype(dtype)


Z, W = normal(4, 6), normal(4, 6)
S = normal(4, 6, dtype=np.complex64)

EXPRESSIONS = {
    "arithmetic": lambda z, w: (z + w, z - w, z * w, z / w, -z, +z, z**2, z**-1, z**3, z**0.5, z**w),
    "numbers": lambda z, w: (z + 1j, 2 * z, z - 0.5, 1 / z, z * (1 - 2j), z**1j, 2**z),
    "in place": lambda z, w: in_place(z.copy() + 0, w),
    "parts": lambda z, w: (z.real, z.imag, np.real(z), np.imag(w), z.conj(), np.conj(w), abs(z)),
    "angle": lambda z, w: (np.angle(z), np.angle(w, deg=True), np.sign(z), np.absolute(w)),
    "predicates": lambda z, w: (np.isnan(z), np.isfinite(z / 0), np.isinf(z * np.inf), z == w, z != z),
    "kinds": lambda z, w: (np.iscomplex(z), np.isreal(z), np.iscomplexobj(z), np.isrealobj(z.real)),
    "order": lambda z, w: (z < w, z >= w, np.maximum(z, w), np.fmin(z, w), np.sort(z, axis=0)),
    "extremes": lambda z, w: (z.max(), z.min(axis=1), z.argmax(axis=0), np.argmin(w), np.ptp(z)),
    "choice": lambda z, w: (np.where(z.real > 0, z, w), np.where(z.imag > 0, z, 1.5), np.clip(z, 0, 1)),
    "sums": lambda z, w: (z.sum(), z.mean(axis=0), z.prod(axis=1), np.cumsum(z), np.cumprod(z, 1)),
    "statistics": lambda z, w: (z.var(), z.std(axis=0, ddof=1), np.average(z, weights=abs(w))),
    "norms": lambda z, w: (np.linalg.norm(z), np.linalg.norm(z, axis=1), np.linalg.norm(z, 1, axis=0)),
    "products": lambda z, w: (z @ w.T, z.dot(w[0]), np.vdot(z, w), np.inner(z, w), np.outer(z[0], w)),
    "einsum": lambda z, w: (np.einsum("ij,ij->i", z, w.conj()), np.tensordot(z, w, 2), np.kron(z, w)),
    "mixed": lambda z, w: (z * abs(w), z + w.real, z.real @ w.T, (z * 2).astype(np.complex64) + z),
    "movement": lambda z, w: (z.T, z[::-1, ::2], np.concatenate([z, w]), np.stack([z, w.real])),
    "padding": lambda z, w: (np.pad(z, 1), np.roll(z, 2), np.tile(z, 2), np.flip(z), np.repeat(z, 2, 0)),
    "indexing": lambda z, w: (z[[2, 0]], z[1, [0, 0]], z.take([1, 1], 1), np.diag(z[:, :4]), z[1, 2]),
    "conversion": lambda z, w: (z.astype(np.complex64), z.real.astype(complex), z.astype(bool)),
    "round": lambda z, w: (np.round(z, 2), np.rint(z * 3), np.nan_to_num(z / 0, True, 0, 1, 2)),
    "creation": lambda z, w: (np.zeros_like(z) + 1, np.full_like(z, 2 - 1j), np.ones_like(w, float)),
    "diff": lambda z, w: (np.diff(z), np.gradient(z[0]), np.trapezoid(z, axis=1), np.cumsum(w, axis=1)),
    "signals": lambda z, w: (np.convolve(z[0], w[1]), np.correlate(z[0], w[1, :3]), np.vecdot(z, w)),
    "covariance": lambda z, w: (np.cov(z), np.corrcoef(z, w)),
    "lines": lambda z, w: (np.linspace(z[0, 0], w[0, 0], 7), np.geomspace(z[0, 0], w[0, 0], 5)),
    "tables": lambda z, w: (np.interp(w[0].real, np.arange(6.0), z[0]), np.median(z, axis=0)),
    "sorted": lambda z, w: (np.sort_complex(z.ravel()), np.sort_complex(z.real[0]), z.argsort(1)),
    "with nan": lambda z, w: (np.nansum(z), np.nanmean(z * np.where(z.real > 0, 1, np.nan), axis=0)),
    "where": lambda z, w: (z.sum(where=z.real > 0), z.max(where=z.real > 0, initial=-5), z.mean(1)),
    "polynomials": lambda z, w: (np.polyval(z[0], w[0]), np.vander(z[0]), np.power(z, 2.5)),
    "numbers of": lambda z, w: (z[0, 0].item() * 2, (1 + 2j) * z[0, 1], z.size, z.itemsize),
}  # fmt: skip


def in_place(x: Any, w: Any) -> Any:
    x += w
    x *= 2j
    x[1:] -= w[1:]
    x[0, 0] = 3
    x.real[1] = 7
    x.imag[:, 2:] *= -1
    x[2].real += x[2].imag
    x.imag = x.imag + 1
    return x, x.real.sum()


@pytest.mark.parametrize("backend", ["interpreter", "native"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_numpy_code(name: str, backend: str) -> None:
    check(EXPRESSIONS[name], Z, W, backend=backend)
    few = ("arithmetic", "parts", "in place", "products")
    if name != "lines" and (backend == "interpreter" or name in few):
        check(EXPRESSIONS[name], S, S[::-1] * 2, backend=backend, rtol=2e-4)


def test_arguments_are_changed_through_their_parts() -> None:
    def f(z: Any) -> None:
        z.real[:, 1] = 5
        z.imag[0] -= 1
        np.multiply(z, 2, out=z)

    for layout in (lambda z: z, lambda z: z[::2, ::-1], lambda z: z.T):
        mine, theirs = Z.copy(), Z.copy()
        jt.jit(f)(layout(mine))
        f(layout(theirs))
        np.testing.assert_array_equal(mine, theirs)


def test_results_that_are_views_of_arguments() -> None:
    z = Z.copy()
    part = jt.jit(lambda z: z.imag)(z)
    part[0, 0] = 99
    assert z[0, 0].imag == 99 and np.shares_memory(part, z)


def test_python_complex_numbers() -> None:
    def f(a: complex, x: Any) -> Any:
        return a * 2, a + 1, abs(a), a.real, a.imag, a.conjugate(), a == 1, -a, a**2, x * a, x + 1j

    for x in (np.float32(2), np.arange(3, dtype=np.int8), np.ones(2, np.float32), np.ones(2)):
        want, got = f(3 - 4j, x), jt.jit(f)(3 - 4j, x)
        for w, g in zip(want, got, strict=True):
            assert type(w) is type(g) and np.asarray(w).dtype == np.asarray(g).dtype, (w, g)
            np.testing.assert_allclose(g, w)
    assert jt.jit(lambda a: a + 1j)(2) == 2 + 1j and type(jt.jit(lambda a: a + 1j)(2)) is complex
    check(lambda x: x * 1j, np.arange(3, dtype=np.int16))
    assert jt.complex64 is np.complex64 and jt.complex128 is np.complex128


def test_functions_of_jitney() -> None:
    for name in ("real", "imag", "conj", "angle", "conjugate", "abs"):
        want = getattr(np, name)(Z)
        np.testing.assert_allclose(getattr(jt, name)(Z), want)
        np.testing.assert_allclose(jt.jit(getattr(jt, name))(Z), want)


@pytest.mark.parametrize(
    "f",
    [
        *(np.floor, np.ceil, np.trunc, np.cbrt, np.signbit, np.invert, np.degrees, np.fabs),
        *(lambda z: np.arctan2(z, z), lambda z: z % 2, lambda z: z // 2, lambda z: np.hypot(z, 1)),
        *(lambda z: z & 1, lambda z: np.fmod(z, z), lambda z: np.logaddexp(z, z)),
    ],
)
def test_what_complex_numbers_do_not_have(f: Any) -> None:
    message = check_raises(lambda z: f(z), Z)
    assert "test_complex.py" in message and "not supported" in message


@pytest.mark.usefixtures("traced_numbers")
def test_errors_name_the_line() -> None:
    with pytest.raises(TypeError, match=r"(?s)test_complex\.py.*no order|Python complex"):
        jt.jit(lambda a: a < 2)(1j)
    for f in (
        lambda z: jt.erf(z),
        lambda z: np.quantile(z, 0.5),
        lambda z: np.histogram(z),
        lambda z: np.interp(z, [0.0, 1.0], [1.0, 2.0]),
    ):
        with pytest.raises(TypeError, match=r"(?s)not defined for complex.*test_complex\.py"):
            jt.jit(f)(Z)
    with pytest.raises(TypeError, match=r"(?s)same_kind.*test_complex\.py"):

        def f(x: Any, z: Any) -> None:
            x += z

        jt.jit(f)(np.ones(3), np.ones(3) * 1j)


def test_arguments_of_any_layout() -> None:
    base = normal(8, 9)
    frozen = base.copy()
    frozen.setflags(write=False)
    swapped = base.astype(base.dtype.newbyteorder())
    for x in (
        base[::2, ::-3],
        base.T,
        np.broadcast_to(base[:1], (5, 9)),
        frozen,
        base[:0],
    ):
        check(lambda z: (np.exp(z) * 1j, z.sum(), z.T), x, backend="native")
    np.testing.assert_allclose(jt.jit(np.exp)(swapped), np.exp(base))


def test_control_flow() -> None:
    @jt.jit
    def powers(z: Any, n: Any) -> Any:
        return jt.fori_loop(0, n, lambda i, a: a * z, 1 + 0j)

    assert powers(1j, 6) == pytest.approx((1j) ** 6)

    @jt.jit
    def rotate(z: Any, w: Any) -> Any:
        def step(carry: Any, w: Any) -> Any:
            return carry * w, carry.real

        return jt.scan(step, z, w)

    last, reals = rotate(1 + 1j, W[0])
    want = 1 + 1j
    for w, r in zip(W[0], reals, strict=True):
        assert r == pytest.approx(want.real)
        want = want * w
    assert last == pytest.approx(want)

    @jt.jit
    def branch(flag: Any, z: Any) -> Any:
        return jt.cond(flag, lambda z: z.conj(), lambda z: z * 1j, z)

    np.testing.assert_array_equal(branch(True, Z), Z.conj())
    np.testing.assert_allclose(branch(False, Z), Z * 1j)

    @jt.jit
    def collected(z: Any) -> Any:
        def body(i: Any, array: Any) -> Any:
            return array.write(i, z * i)

        return jt.fori_loop(0, 3, body, jt.TensorArray(np.complex128, 3)).stack()

    np.testing.assert_allclose(collected(Z), np.stack([Z * i for i in range(3)]))

    @jt.jit(autograph=True)
    def escape(c: Any) -> Any:
        z = 0j
        n = 0
        while abs(z) <= 2 and n < 50:
            z = z * z + c
            n += 1
        return n

    assert escape(0.5 + 0.5j) == 5 and escape(0j) == 50


def test_carries_settle_on_complex() -> None:
    """A loop that starts from a Python number and goes on with complex ones."""
    got = jt.jit(lambda z: jt.fori_loop(0, 3, lambda i, a: a + z, 0.0))(2j)
    assert got == 6j and isinstance(got, complex)
    with pytest.raises(TypeError, match="complex128"):
        jt.jit(lambda x, z: jt.fori_loop(0, 3, lambda i, a: a + z, x))(np.ones(2), np.ones(2) * 1j)


def test_vmap() -> None:
    np.testing.assert_allclose(jt.vmap(lambda z, w: np.vdot(z, w))(Z, W), (Z.conj() * W).sum(1))
    np.testing.assert_allclose(
        jt.jit(jt.vmap(jt.grad(lambda z: np.sum(abs(z) ** 2))))(Z), 2 * Z.conj()
    )

    def newton(z: Any) -> Any:
        return jt.while_loop(
            lambda z: abs(z**3 - 1) > 1e-12, lambda z: z - (z**3 - 1) / (3 * z**2), z
        )

    roots = jt.jit(jt.vmap(newton))(Z.ravel())
    np.testing.assert_allclose(roots**3, 1, atol=1e-10)
    assert "lanes_while" in str(jt.jit(jt.vmap(newton)).trace(Z.ravel()))


def test_callbacks() -> None:
    seen = []

    def host(z: Any, n: Any) -> Any:
        seen.append((z.dtype, np.asarray(n).dtype))
        return np.fft.fft(z), z.real

    like = (jt.ShapeDtype((6,), complex), jt.ShapeDtype((6,), float))
    got = jt.jit(lambda z: jt.pure_callback(host, like, z * 1, 3))(Z[0])
    np.testing.assert_allclose(got[0], np.fft.fft(Z[0]))
    np.testing.assert_allclose(got[1], Z[0].real)
    assert seen[0][0] == np.complex128
    with pytest.raises(ValueError, match="stop"):

        def fails(z: Any) -> Any:
            raise ValueError("stop")

        jt.jit(lambda z: jt.pure_callback(fails, jt.ShapeDtype((), complex), z))(1j)


def test_debug_print(capfd: Any) -> None:
    jt.jit(lambda z: jt.debug_print("z={} |z|={:.1f}", z, abs(z)))(3 + 4j)
    assert "z=(3+4j) |z|=5.0" in capfd.readouterr().out


def test_globals_that_are_complex_are_guarded() -> None:
    scope: dict[str, Any] = {"k": 2j}
    exec("def f(x):\n    return x * k", scope)
    f = jt.jit(scope["f"])
    assert f(1.0) == 2j
    scope["k"] = 3j
    assert f(1.0) == 3j


# Programs


def test_fft_by_hand() -> None:
    def fft(x: Any) -> Any:
        n = len(x)
        if n == 1:
            return x
        even, odd = fft(x[::2]), fft(x[1::2])
        turn = np.exp(-2j * np.pi * np.arange(n // 2) / n) * odd
        return np.concatenate([even + turn, even - turn])

    z = normal(64)
    compiled = jt.jit(fft)
    np.testing.assert_allclose(compiled(z), np.fft.fft(z), atol=1e-12)
    np.testing.assert_allclose(compiled(z.real), np.fft.fft(z.real), atol=1e-12)
    gradient = jt.jit(jt.grad(lambda z: np.sum(np.abs(fft(z)) ** 2)))(z)
    np.testing.assert_allclose(gradient, 2 * 64 * z.conj(), atol=1e-10)  # Parseval


def test_mandelbrot() -> None:
    def escape(c: Any) -> Any:
        def body(carry: Any) -> Any:
            n, z = carry
            return n + 1, z * z + c

        return jt.while_loop(lambda carry: (abs(carry[1]) <= 2) & (carry[0] < 60), body, (0, 0j))[0]

    y, x = np.mgrid[-1.2:1.2:25j, -2:0.6:31j]
    c = x + 1j * y
    got = jt.jit(jt.vmap(escape))(c.ravel()).reshape(c.shape)
    want = np.zeros(c.shape, int)
    for index in np.ndindex(c.shape):
        z, n = 0j, 0
        while abs(z) <= 2 and n < 60:
            z, n = z * z + c[index], n + 1
        want[index] = n
    np.testing.assert_array_equal(got, want)


def test_newton_fractal() -> None:
    def basins(z: Any) -> Any:
        for _ in range(40):
            z = z - (z**3 - 1) / (3 * z**2)
        roots = np.exp(2j * np.pi * np.arange(3) / 3)
        return np.argmin(np.abs(z[..., None] - roots), axis=-1)

    y, x = np.mgrid[-1.5:1.5:40j, -1.5:1.5:40j]
    z = x + 1j * y
    assert np.mean(jt.jit(basins)(z) == basins(z)) > 0.995  # chaotic at the borders


def test_ac_circuit() -> None:
    """Node voltages of an RLC ladder by Gaussian elimination with pivoting, over frequencies."""

    def solve(a: Any, b: Any) -> Any:
        n = len(b)
        a, b = a.copy(), b.copy()
        for k in range(n):
            p = k + np.argmax(np.abs(a[k:, k]))
            swap = np.arange(n)
            order = np.where(swap == k, p, np.where(swap == p, k, swap))
            a, b = a[order], b[order]
            factors = a[k + 1 :, k] / a[k, k]
            a[k + 1 :] -= factors[:, None] * a[k]
            b[k + 1 :] -= factors * b[k]
        x = jt.zeros(n, b.dtype) if not isinstance(b, np.ndarray) else np.zeros(n, b.dtype)
        for k in range(n - 1, -1, -1):
            x[k] = (b[k] - np.sum(a[k, k + 1 :] * x[k + 1 :])) / a[k, k]
        return x

    def voltages(omega: Any) -> Any:
        r, coil, c = 50.0, 1e-3, 1e-6
        series, shunt = 1 / (r + 1j * omega * coil), 1j * omega * c
        n = 5
        main = np.full(n, 2.0) * series + shunt
        y = np.diag(main) - series * (np.eye(n, k=1) + np.eye(n, k=-1))
        return solve(y, np.eye(n)[0] * 0.01 + 0 * y[0])

    for omega in (1e2, 3e4, 1e5):
        np.testing.assert_allclose(jt.jit(voltages)(omega), voltages(omega), rtol=1e-12)
    response = jt.jit(jt.vmap(lambda w: np.abs(voltages(w)[-1])))(np.array([1e2, 3e4, 1e5]))
    assert response[0] > response[1] > response[2]  # a low-pass filter
    slope = jt.jit(jt.grad(lambda w: np.abs(voltages(w)[-1])))(3e4)
    high, low = (np.abs(voltages(3e4 + h)[-1]) for h in (1, -1))
    assert slope == pytest.approx((high - low) / 2, rel=1e-5)


def test_two_level_system() -> None:
    """Rabi oscillation: the Schroedinger equation by Runge-Kutta, against the closed form."""
    delta, rabi, steps, dt = 0.7, 1.3, 400, 0.01
    h = 0.5 * np.array([[-delta, rabi], [rabi, delta]])

    def derivative(psi: Any) -> Any:
        return -1j * (h @ psi)

    def step(psi: Any, _: Any) -> Any:
        k1 = derivative(psi)
        k2 = derivative(psi + dt / 2 * k1)
        k3 = derivative(psi + dt / 2 * k2)
        k4 = derivative(psi + dt * k3)
        psi = psi + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return psi, np.abs(psi[1]) ** 2

    psi, excited = jt.jit(lambda psi: jt.scan(step, psi, np.arange(steps)))(np.array([1, 0j]))
    t = dt * np.arange(1, steps + 1)
    omega = np.hypot(delta, rabi)
    np.testing.assert_allclose(excited, (rabi / omega * np.sin(omega * t / 2)) ** 2, atol=1e-8)
    assert np.sum(np.abs(psi) ** 2) == pytest.approx(1, abs=1e-9)
    assert np.angle(psi[0]) == pytest.approx(cmath.phase(psi[0]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("value", (-3.25, np.inf, -np.inf, np.nan, 5e9, -5e9))
def test_numbers_beyond_uint32(value):
    z = np.full((1, 4), value + 0j)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(jt.jit(lambda z: z.astype("u4"))(z), z.astype("u4"))
