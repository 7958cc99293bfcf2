"""`jt.special`: values against SciPy and mpmath, edges, dtypes, broadcasting, derivatives."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special

import jitney as jt

S = jt.special
INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(7)
N = 60

SMALL, WIDE = RNG.uniform(0, 12, N), 10 ** RNG.uniform(-300, 300, N)
BOTH, PROBABLE = RNG.uniform(-30, 30, N), RNG.uniform(0, 1, N)
A, B = 10 ** RNG.uniform(-2, 2.5, N), 10 ** RNG.uniform(-2, 2.5, N)
X = A * 10 ** RNG.uniform(-1, 0.7, N)
EDGES = np.array(
    [0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, -3.5, 8, 1e-300, -1e-300, 1e9, INF, -INF, NAN]
)

GAMMA_EDGES = ([0.0, 1, INF, -1, NAN, 2], [1, INF, 1, 1, 1, -1])

VALUES = {
    "gammaln": [(SMALL,), (WIDE,), (BOTH,), (EDGES,)],
    "gammasgn": [(WIDE,), (BOTH,), (EDGES,)],
    "gamma": [(SMALL,), (WIDE,), (BOTH,), (5 * BOTH,), (EDGES,)],
    "digamma": [(SMALL,), (WIDE,), (BOTH,)],
    "psi": [(SMALL,)],
    "polygamma": [(np.floor(SMALL), A), (2, A)],
    "zeta": [(1 + SMALL, B), (BOTH,), (np.floor(SMALL) + 2, BOTH)],
    "beta": [(A, B), (SMALL, SMALL[::-1])],
    "betaln": [(SMALL, SMALL[::-1]), (10 * A, 10 * B)],
    **{n: [(A, X), (SMALL, 0.0), GAMMA_EDGES] for n in ("gammainc", "gammaincc")},
    "betainc": [(A, B, PROBABLE), (2.0, 3.0, [0.0, 1.0, NAN, -0.5, 1.5])],
    "betaincc": [(A, B, PROBABLE), (2.0, 3.0, [0.0, 1.0, NAN, -0.5, 1.5])],
    **{n: [(BOTH,), (20 * BOTH,), (WIDE**0.001,)] for n in ("i0", "i1", "i0e", "i1e")},
    "expi": [(BOTH,), (WIDE**0.005,), (EDGES,)],
    "exp1": [(SMALL,), (WIDE**0.005,), (EDGES,)],
    "expn": [(np.floor(SMALL), X), (3, WIDE**0.005), ([0.0, 1, 2, -1, 2], [0.0, 0, 0, 1, INF])],
    "dawsn": [(BOTH / 2,), (WIDE**0.1,), (EDGES,)],
    "spence": [(SMALL,), (WIDE**0.03,), (EDGES[:-3],)],
    **{n: [(BOTH,), (WIDE**0.01,), (EDGES[:-4],)] for n in ("j0", "j1")},
    **{n: [(SMALL,), (WIDE**0.01,), (EDGES[:-4],)] for n in ("y0", "y1")},
    **{n: [(SMALL,), (WIDE**0.01,), (EDGES,)] for n in ("k0", "k0e", "k1", "k1e")},
    **{n: [(BOTH / 2,), (WIDE**0.001,), (EDGES,)] for n in ("erf", "erfc", "erfcx", "ndtr")},
    "log_ndtr": [(BOTH / 3,), (-WIDE**0.1,), (EDGES[:-4],)],
    "erfinv": [(2 * PROBABLE - 1,), ([1.0, -1, 2, NAN],)],
    "erfcinv": [(2 * PROBABLE,), (np.minimum(WIDE, 1 / WIDE),), ([0.0, 1, 2, -1, 3, NAN],)],
    "ndtri": [(PROBABLE,), (np.minimum(WIDE, 1 / WIDE),), ([0.0, 0.5, 1, -1, 3, NAN],)],
    "expit": [(BOTH,), (30 * BOTH,), (EDGES,)],
    "log_expit": [(BOTH,), (30 * BOTH,), (EDGES,)],
    "logit": [(PROBABLE,), ([0.0, 0.5, 1, -1, 3, NAN],)],
    "xlogy": [(A, B), (EDGES[:, None], EDGES)],
    "xlog1py": [(A, B), (EDGES[:, None], EDGES)],
    "entr": [(A,), (EDGES,)],
    "rel_entr": [(A, B), (EDGES[:, None], EDGES[:-3])],
    "kl_div": [(A, B), (EDGES[:-4, None], EDGES[:-4])],
}  # fmt: skip

BY_HAND = ("gammaln", "gammainc", "betainc", "erfc", "expit", "j0")
LIKE_OTHERS = "gammaincc betaincc betaln i0 i1e y1 k0e k1 psi log_expit xlog1py erfcinv".split()
WAVES = ("j0", "j1", "y0", "y1")  # right to an absolute error near their zeros


@pytest.mark.parametrize("name", VALUES)
def test_values_are_scipys_eagerly_and_compiled(name: str) -> None:
    ours, compiled = getattr(S, name), jt.jit(getattr(S, name))
    for k, args in enumerate(VALUES[name]):
        given = [np.asarray(a, np.float64) for a in args]
        with np.errstate(all="ignore"):
            wanted = getattr(scipy.special, name)(*given)
        found = ours(*given)
        tolerance = 1e-15 if name in WAVES else 1e-307
        # SciPy itself is off by 1e-12 in places; the accuracy of ours is held below.
        np.testing.assert_allclose(found, wanted, rtol=2e-11, atol=tolerance)
        if k == 0 and name in BY_HAND:  # others run as compiled code eagerly, too
            np.testing.assert_allclose(compiled(*given), found, rtol=2e-13, atol=1e-307)
        if k or name in LIKE_OTHERS:
            continue
        with np.errstate(all="ignore"):
            single = [np.float32(a) for a in given]
            wanted = getattr(scipy.special, name)(*(np.float64(a) for a in single))
            wanted = wanted.astype(np.float32)
        result = compiled(*single) if name in ("erfc", "expit") else ours(*single)
        assert result.dtype == np.float32
        np.testing.assert_allclose(result, wanted, rtol=1e-6, atol=max(tolerance, 1e-37))


def _log_gamma(x: mpmath.mpf) -> mpmath.mpf:
    return mpmath.loggamma(x).real


EXACT = {
    "expi": (mpmath.ei, 6, RNG.uniform(-50, 60, N), 0.3725 + SMALL / 1e5),
    "exp1": (mpmath.e1, 6, SMALL, RNG.uniform(0, 60, N)),
    "dawsn": (lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(-x * x) * mpmath.erfi(x), 5, SMALL),
    "spence": (lambda x: mpmath.polylog(2, 1 - x).real, 5, SMALL, 1 + BOTH / 1e5),
    "k0": (lambda x: mpmath.besselk(0, x), 8, SMALL),
    "k1": (lambda x: mpmath.besselk(1, x), 8, SMALL),
    "gammaln": (_log_gamma, 6, RNG.uniform(0, 20, N), np.concatenate([1 + SMALL / 1e3, WIDE])),
    "gamma": (mpmath.gamma, 8, RNG.uniform(-160, 171, N), SMALL),
    "digamma": (mpmath.digamma, 4, SMALL, 1.46 + SMALL / 1e3),
    "erfc": (mpmath.erfc, 6, RNG.uniform(-6, 26, N)),
    "erfcx": (lambda x: mpmath.exp(x * x) * mpmath.erfc(x), 4, RNG.uniform(-20, 100, N)),
    "ndtr": (mpmath.ncdf, 6, RNG.uniform(-37, 9, N)),
    "log_ndtr": (lambda x: mpmath.log(mpmath.ncdf(x)), 6, RNG.uniform(-40, 8, N)),
    "i0": (lambda x: mpmath.besseli(0, x), 6, RNG.uniform(-700, 700, N), BOTH),
    "i1": (lambda x: mpmath.besseli(1, x), 6, RNG.uniform(-700, 700, N), BOTH),
    "i0e": (lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), 5, BOTH),
    "i1e": (lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x), 5, BOTH),
}


@pytest.mark.parametrize("name", EXACT)
def test_errors_are_a_few_units_in_the_last_place(name: str) -> None:
    exact, limit, *points = EXACT[name]
    for x in points:
        with mpmath.workdps(50):
            for at, found in zip(x.tolist(), getattr(S, name)(x).tolist(), strict=True):
                wanted = exact(mpmath.mpf(at))
                if 1e-300 < abs(wanted) < 1e300:
                    ulp = math.ulp(float(wanted))
                    assert abs(wanted - found) <= limit * ulp, (at, found)


def test_softmax_family() -> None:
    x = RNG.normal(size=(3, 4, 5)) * 100
    x[0, 1] = -INF
    x[0, 1, 2] = 3
    for axis in (None, 1, -1, (0, 2)):
        for name in ("logsumexp", "softmax", "log_softmax"):
            eager = getattr(S, name)
            compiled = (jt.jit(eager, static_argnames="axis"),) if axis == 1 else ()
            for f in (eager, *compiled):
                wanted = getattr(scipy.special, name)(x, axis=axis)
                np.testing.assert_allclose(f(x, axis=axis), wanted, rtol=1e-13, atol=1e-15)
    b = RNG.normal(size=(4, 1))
    wanted = scipy.special.logsumexp(x, axis=0, b=b, keepdims=True, return_sign=True)
    found = S.logsumexp(x, axis=0, b=b, keepdims=True, return_sign=True)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-13)
    np.testing.assert_array_equal(found[1], wanted[1])
    assert S.logsumexp([INF, 1.0]) == INF and S.logsumexp([-INF, -INF]) == -INF
    assert np.isnan(S.logsumexp([NAN, 1.0])) and np.isnan(S.logsumexp([1.0, 2.0], b=[1, -1]))
    assert S.logsumexp(np.zeros(0)) == -INF and S.softmax(np.zeros((0, 3)), axis=0).shape == (0, 3)
    y = RNG.normal(size=(3, 4))
    for f in (S.logsumexp, S.softmax, S.log_softmax):
        jt.check_grads(lambda v, f=f: f(v, axis=1), (y,), order=2)
    assert S.softmax(np.float16([1, 2])).dtype == np.float16


def test_dtypes_and_shapes() -> None:
    for name, count in (("gammaln", 1), ("erfc", 1), ("gammainc", 2), ("xlogy", 2)):
        f = getattr(S, name)
        for g in (f, jt.jit(f)) if name == "erfc" else (f,):
            assert g(*[np.arange(3, 5, dtype=np.int8)] * count).dtype == np.float64
            assert g(*[np.ones(2, np.float16)] * count).dtype == np.float16
            assert g(*[jt.bfloat16(1.5)] * count).dtype == jt.bfloat16
            assert g(*[np.zeros((0, 3), np.float32)] * count).shape == (0, 3)
            assert g(*[np.ones((4, 6))[::-2, 1:].T] * count).shape == (5, 2)
    assert S.beta(np.ones((3, 1), np.float32), 2.0).dtype == np.float32
    assert S.betainc(np.ones((3, 1)), np.ones((1, 4), np.float32), 0.5).shape == (3, 4)
    assert isinstance(S.gamma(5), np.float64) and S.gamma(5) == 24


def test_misuse_says_what_is_wrong() -> None:
    with pytest.raises(TypeError, match="gammaln is not defined for complex"):
        S.gammaln(1j)
    with pytest.raises(TypeError, match="beta.. takes 2 operands, got 1"):
        S.beta(1.0)
    with pytest.raises(ValueError, match="broadcast"):
        S.beta(np.ones(2), np.ones(3))


def test_pairs_of_integrals() -> None:
    for x in (np.concatenate([BOTH, WIDE**0.02, [0.0, -0.0, INF, NAN, 1e17]]),):
        for name in ("sici", "fresnel"):
            found, wanted = getattr(S, name)(x), getattr(scipy.special, name)(x)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-15)  # SciPy's is off there
            assert isinstance(found, tuple) and S.sici(np.float32(1))[0].dtype == np.float32
    at = np.array([-6.5, -1.4, 0.6, 1.7, 12.0])
    jt.check_grads(lambda x: S.sici(x)[0], (at,), order=2, rtol=2e-5)
    jt.check_grads(lambda x: S.sici(x)[1], (abs(at),), order=1)
    jt.check_grads(S.fresnel, (at[:4],), order=1, rtol=2e-5)
    jt.check_grads(lambda x: S.expn(3, x), (abs(at),), order=1)


def test_scipys_functions_trace() -> None:
    x = np.array([0.3, 2.5])
    for name in ("erf", "gammaln", "psi", "digamma", "ndtr", "expit"):
        f = getattr(scipy.special, name)
        np.testing.assert_allclose(jt.jit(lambda x, f=f: f(x))(x), f(x), rtol=1e-14)
    slope = jt.grad(lambda x: scipy.special.betaln(x, 2.0).sum())(x)
    np.testing.assert_allclose(slope, scipy.special.psi(x) - scipy.special.psi(x + 2), rtol=1e-13)


def test_any_length_runs_in_blocks() -> None:
    for shape in ((), (0,), (63,), (5, 13), (4097,), (3, 1, 2000)):
        x = np.linspace(0.1, 9, math.prod(shape)).reshape(shape)
        found = S.expit(x)
        assert np.shape(found) == shape
        np.testing.assert_allclose(found, scipy.special.expit(x), rtol=1e-15)
    assert isinstance(S.expit(1.0), np.float64) and S.expit(np.float32(1)).dtype == np.float32


def test_beta_of_all_signs_and_sizes() -> None:
    cases = [
        *((2.5, 0.3), (7.9, 8.1), (1e-300, 1e-300), (1e-16, 0.2), (1e5, 3e4), (1e20, 8.9)),
        *((1e50, 1.5), (-1.5, 0.7), (-15.5, 2.25), (-3.5, 1e9), (-2.5, -4.75), (-0.3, 0.3)),
    ]
    for a, b in cases:
        with mpmath.workdps(400):
            exact = float(mpmath.beta(mpmath.mpf(a), mpmath.mpf(b)))
            log = float(mpmath.log(abs(mpmath.beta(mpmath.mpf(a), mpmath.mpf(b)))))
        np.testing.assert_allclose(S.beta([a, b], [b, a]), exact, rtol=1e-14)
        np.testing.assert_allclose(S.betaln(a, b), log, rtol=4e-15, atol=1e-15)
    assert abs(S.beta(-2.0, 2.0) - 0.5) < 1e-15 and S.beta(-2.0, 3.0) == INF
    np.testing.assert_allclose(
        S.betaln(1.3834578157213107e29, 2323.0944308266953), -140199.14600113293, rtol=1e-14
    )


def test_tails_of_incomplete_gamma() -> None:
    a = np.array([0.02, 0.3, 5.0, 10.3, 15.0, 40.0, 300.0, 3000.0])
    for z in (-20.0, -6.0, -0.5, 0.3, 5.0, 25.0):
        x = np.where(a + z * np.sqrt(a) > 0, a + z * np.sqrt(a), a / 10)
        for name, ends in (("gammainc", (0, None)), ("gammaincc", (None, mpmath.inf))):
            for at, to, found in zip(a.tolist(), x.tolist(), getattr(S, name)(a, x), strict=True):
                with mpmath.workdps(40):
                    low, high = (to if end is None else end for end in ends)
                    wanted = mpmath.gammainc(at, low, high, regularized=True)
                if wanted > 1e-290:
                    assert abs(found - float(wanted)) <= 30 * math.ulp(float(wanted)), (at, to)


def test_quantiles_to_the_ends() -> None:
    p = np.concatenate([PROBABLE, np.minimum(WIDE, 1 / WIDE)])
    for at, found in zip(p.tolist(), S.ndtri(p).tolist(), strict=True):
        with mpmath.workdps(30):
            error = (mpmath.ncdf(found) - mpmath.mpf(at)) / mpmath.npdf(found)
        assert abs(error) <= 4 * math.ulp(found), (at, found)
