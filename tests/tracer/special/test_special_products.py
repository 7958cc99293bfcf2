"""`jt.special`: products of gamma, transforms, Owen's T: values, digits, derivatives."""

import math

import mpmath
import numpy as np
import pytest
import scipy.special

import jitney as jt

S = jt.special
INF, NAN = math.inf, math.nan
RNG = np.random.default_rng(11)
N = 50
POSITIVE, BOTH, UNIT = RNG.uniform(0, 20, N), RNG.uniform(-20, 20, N), RNG.uniform(0, 1, N)
EDGES = np.array([0.0, 1, -1, 2, -2, 0.5, -0.5, -3.5, 8, 1e9, INF, -INF, NAN])

# SciPy's arguments; then, of the positive ones, where the derivative is checked.
VALUES = {
    "rgamma": [(BOTH,), (EDGES,)],
    "poch": [(POSITIVE, POSITIVE[::-1]), (BOTH, POSITIVE), (-2.0, [1.0, 3.0, 0.0])],
    "binom": [(POSITIVE * 3, POSITIVE[::-1]), ([5.0, 50, -1, 7.5], [2.0, 25, 2, 3])],
    "comb": [(np.floor(POSITIVE), np.floor(UNIT * 9)), ([5.0, 2, 3, -1], [2.0, 3, -1, 1])],
    "factorial": [(POSITIVE,), ([0.0, 5, 10, 15, -1, NAN, INF],)],
    "zetac": [(BOTH,), (POSITIVE * 3,), (EDGES,)],
    "exprel": [(BOTH,), (BOTH / 1e4,), (EDGES,)],
    "cosm1": [(BOTH,), (BOTH / 1e4,)],
    "erfi": [(BOTH,), (BOTH / 1e4,), (EDGES,)],
    "boxcox": [(POSITIVE, BOTH / 5), (POSITIVE, 0.0), ([0.0, INF, 0.0, INF], [0.0, 0, 2, -2])],
    "boxcox1p": [(POSITIVE, BOTH / 5), (POSITIVE, 0.0), ([-1.0, INF], [0.5, 0])],
    "inv_boxcox": [(POSITIVE, POSITIVE / 9), (BOTH, 0.0), ([INF, -INF], [0.5, 0])],
    "inv_boxcox1p": [(POSITIVE, POSITIVE / 9), (BOTH, 0.0)],
    "huber": [(UNIT, BOTH), ([-1.0, 0], [1.0, 1])],
    "pseudo_huber": [(UNIT, BOTH), ([-1.0, 0, 1, 1], [1.0, 1, INF, 0])],
    "powm1": [(1 + UNIT / 1e3, BOTH), (POSITIVE, BOTH), (-2.0, [3.0, 0.5])],
    "owens_t": [(BOTH / 5, BOTH[::-1] / 5), ([0.0, INF, 1, NAN], [2.0, 1, INF, 1])],
    "softplus": [(BOTH,), (EDGES,)],
    **{n: [(BOTH,), (EDGES,)] for n in ("expm1", "exp2", "exp10", "cbrt")},
    "log1p": [(POSITIVE,), (EDGES,)],
}
FLAT = ("huber",)  # has no derivative where it changes its form


@pytest.mark.parametrize("name", VALUES)
def test_values_are_scipys(name: str) -> None:
    ours = getattr(S, name)
    for args in VALUES[name]:
        given = [np.asarray(a, np.float64) for a in args]
        with np.errstate(all="ignore"):
            wanted = getattr(scipy.special, name)(*given)
        np.testing.assert_allclose(ours(*given), wanted, rtol=3e-13, atol=1e-300)
    single = [np.float32(a) for a in VALUES[name][0]]
    assert ours(*single).dtype == np.float32


@pytest.mark.parametrize("name", sorted(VALUES.keys() - {"comb", "factorial", *FLAT}))
def test_derivatives(name: str) -> None:
    count = len(VALUES[name][0])
    args = (np.array([0.4, 1.7, 3.2]), np.array([0.9, 1.3, 0.25]))[:count]
    args = tuple(a + 2.0 for a in args) if name in ("zetac", "binom") else args
    jt.check_grads(getattr(S, name), args, order=1, rtol=2e-5)


def test_digits() -> None:
    for at, found in zip(BOTH.tolist(), S.rgamma(BOTH).tolist(), strict=True):
        assert abs(mpmath.rgamma(at) - found) <= 8 * math.ulp(found)
    h, a = np.array([0.1, 1.0, 3.0, 9.0, 9.0]), np.array([0.5, 1.0, 3.0, 0.7, 2.0])
    for at, to, found in zip(h.tolist(), a.tolist(), S.owens_t(h, a).tolist(), strict=True):
        with mpmath.workdps(30):
            wanted = mpmath.quad(
                lambda x, at=at: mpmath.exp(-at * at * (1 + x * x) / 2) / (1 + x * x),
                mpmath.linspace(0, to, 9),
            ) / (2 * mpmath.pi)
        assert abs(wanted - found) <= 20 * math.ulp(found), (at, to)


def test_exact_counts() -> None:
    n = np.arange(17)
    assert [int(v) for v in S.factorial(n)] == [math.factorial(k) for k in n.tolist()]
    assert [int(v) for v in S.comb(40, n)] == [math.comb(40, k) for k in n.tolist()]


def test_sums_over_dimensions() -> None:
    # SciPy's B4 is off.
    np.testing.assert_allclose(S.bernoulli(20), scipy.special.bernoulli(20), rtol=1e-11)
    wanted = scipy.special.multigammaln(POSITIVE + 2, 4)
    np.testing.assert_allclose(S.multigammaln(POSITIVE + 2, 4), wanted, rtol=1e-13, atol=1e-13)
    jt.check_grads(lambda a: S.multigammaln(a, 3), (np.array([2.5, 7.0]),))
    with pytest.raises(ValueError, match="dimension"):
        S.multigammaln(3.0, 0)
    with pytest.raises(ValueError, match="counts from 0"):
        S.bernoulli(-1)
