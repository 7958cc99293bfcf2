"""`jt.special` of complex numbers: SciPy's values, mpmath's digits, derivatives."""

import mpmath
import numpy as np
import pytest
import scipy.special

import jitney as jt

S = jt.special
RNG = np.random.default_rng(13)
Z = np.concatenate([RNG.normal(size=(40, 2)) @ [1, 1j] * s for s in (0.01, 1, 4)])
EXACT = {
    "wofz": (lambda z: mpmath.exp(-z * z) * mpmath.erfc(-1j * z), 4e-15),
    "erf": (mpmath.erf, 4e-15),
    "erfc": (mpmath.erfc, 4e-15),
    "erfcx": (lambda z: mpmath.exp(z * z) * mpmath.erfc(z), 4e-15),
    "erfi": (mpmath.erfi, 4e-15),
    "dawsn": (lambda z: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-z * z) * mpmath.erfi(z), 4e-15),
    "loggamma": (mpmath.loggamma, 3e-14),
    "gamma": (mpmath.gamma, 1e-13),
    "rgamma": (mpmath.rgamma, 1e-13),
    "digamma": (mpmath.digamma, 3e-14),
}


@pytest.mark.parametrize("name", EXACT)
def test_digits(name: str) -> None:
    exact, limit = EXACT[name]
    found = getattr(S, name)(Z)
    least = 1 if name in ("loggamma", "digamma") else 0
    for at, value in zip(Z.tolist(), found.tolist(), strict=True):
        with mpmath.workdps(60):
            wanted = exact(mpmath.mpc(at))
            assert abs(wanted - value) <= limit * max(abs(wanted), least), (at, value)
    assert getattr(S, name)(Z[:3].astype(np.complex64)).dtype == np.complex64


@pytest.mark.parametrize("name", EXACT)
def test_derivatives(name: str) -> None:
    f, z, h = getattr(S, name), np.array([0.4 + 0.3j, -0.7 - 1.2j, 2.1 + 0.2j]), 1e-6
    for way in (1.0, 1j):
        _, slope = jt.jvp(f, (z,), (np.full(3, way, complex),))
        np.testing.assert_allclose(slope, (f(z + h * way) - f(z - h * way)) / (2 * h), rtol=1e-7)


def test_logarithms() -> None:
    x, y = np.array([0, 1 + 2j, -2j]), np.array([0, 3 - 1j, 0.5j])
    np.testing.assert_allclose(S.xlogy(x, y), scipy.special.xlogy(x, y), rtol=1e-14)
    np.testing.assert_allclose(S.xlog1py(x, y), scipy.special.xlog1py(x, y), rtol=1e-14)
    np.testing.assert_allclose(S.log1p(y), scipy.special.log1p(y), rtol=1e-14)
    traced = jt.jit(lambda z: scipy.special.wofz(z) * scipy.special.loggamma(z))(Z)
    wanted = scipy.special.wofz(Z) * scipy.special.loggamma(Z)
    np.testing.assert_allclose(traced, wanted, rtol=1e-11)
    assert S.wofz(np.float32(1)).dtype == np.complex64 and np.isnan(S.loggamma(-1.5))


@pytest.mark.usefixtures("gpu")
def test_gpus_give_the_same_values() -> None:
    x, u = np.array([0.3, 1.7, 4.2, 12.5, -0.4]), np.array([0.1, 0.4, 0.6, 0.97, 0.5])
    calls = [("gammaln", x), ("expi", x), ("wofz", x + 1j * u), ("gammainc", abs(x), 30 * u)]
    for name, *args in calls:
        f = getattr(S, name)
        on_gpu = jt.jit(lambda *a, f=f: f(*a), device="cuda")(*args)
        np.testing.assert_allclose(np.asarray(on_gpu), f(*args), rtol=1e-15, err_msg=name)
