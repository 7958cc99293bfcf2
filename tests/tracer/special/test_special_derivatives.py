"""`jt.special`: derivatives, also at seams and edges and by parameters."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import jitney as jt

S = jt.special
POSITIVE = np.array([0.3, 0.9, 1.7, 4.2, 9.5])
UNIT = POSITIVE / 10
LINE = "gammaln gamma digamma i0 i0e i1 i1e erf erfc erfcx ndtr log_ndtr expit log_expit".split()
DERIVED = {
    **dict.fromkeys(("exp1", "spence", "y0", "y1", "k0", "k0e", "k1", "k1e"), (POSITIVE,)),
    **dict.fromkeys(("expi", "dawsn", "j0", "j1"), (np.array([-6.5, -1.4, -0.3, 0.6, 1.7]),)),
    **{name: (np.array([-9.3, -1.4, -0.3, 0.6, 1.7, 9.5]),) for name in LINE},
    **dict.fromkeys(("entr", "logit", "erfinv", "erfcinv", "ndtri"), (UNIT,)),
    **{
        name: (POSITIVE, POSITIVE[::-1].copy())
        for name in ("beta", "betaln", "xlogy", "xlog1py", "rel_entr", "kl_div")
    },
    "zeta": (POSITIVE + 1.2, POSITIVE[::-1].copy()),
}


@pytest.mark.parametrize("name", DERIVED)
def test_derivatives(name: str) -> None:
    args = DERIVED[name]
    if name == "erfcx":
        args = (POSITIVE,)
    slow = (
        "ndtri",
        "erfcinv",
        "gamma",
        "gammaln",
        "digamma",
        "beta",
        "betaln",
        "zeta",
        "i0",
        "i1",
        "i0e",
        "i1e",
    )
    f = getattr(S, name)
    jt.check_grads(f, args, modes=("fwd",), rtol=2e-5)
    jt.check_grads(f, args, order=1 if name in slow else 2, modes=("rev",), rtol=2e-5)


def test_derivatives_of_incomplete_functions() -> None:
    a, b, x = (np.array(v) for v in ([0.3, 4.2], [9.5, 0.9], [0.03, 0.95]))
    jt.check_grads(S.gammainc, (a, b))
    jt.check_grads(S.gammaincc, (a, b), modes=("fwd",))
    jt.check_grads(S.betainc, (a, b, x), modes=("fwd",))
    jt.check_grads(lambda a: S.betaincc(a, 3.0, 0.4), (a,), modes=("rev",))
    jt.check_grads(lambda x: S.polygamma(2, x), (b,))


def test_derivatives_at_seams_and_edges() -> None:
    d = jt.vmap(jt.grad(S.gammaln))(np.array([0.5, 1.0, 1.5, 2.0, 2.5, 8.0]))
    np.testing.assert_allclose(d, scipy.special.digamma([0.5, 1.0, 1.5, 2.0, 2.5, 8.0]), rtol=1e-14)
    assert jt.grad(S.i0)(0.0) == 0 and jt.grad(S.i1)(0.0) == 0.5 and jt.grad(S.expit)(0.0) == 0.25
    assert jt.grad(S.xlogy)(0.0, 2.0) == math.log(2) and jt.grad(S.xlogy, 1)(0.0, 0.0) == 0
    assert abs(jt.grad(S.log_ndtr)(-1e5) - 1e5) < 1e-4
    assert jt.grad(S.gammainc, 1)(1.0, 0.0) == 1 and jt.grad(S.betainc, 2)(1.0, 3.0, 0.0) == 3


def test_parameters_for_which_a_fraction_ends() -> None:
    """Its value is found then, but not its derivative by the parameter."""

    def gamma(a: Any, x: Any) -> Any:
        return mpmath.gammainc(a, 0, x, regularized=True)

    def beta(b: Any, a: Any, x: Any) -> Any:
        return mpmath.betainc(a, b, 0, x, regularized=True)

    cases: list[tuple[Any, Any, list[tuple[float, ...]]]] = [
        (S.gammainc, gamma, [(2.0, 3.0), (1.0, 2.5), (5.0, 30.0), (2.0 + 1e-12, 3.0), (2.5, 4.0)]),
        (
            lambda b, a, x: S.betainc(a, b, x),
            beta,
            [(3.0, 2.0, 0.4), (1.0, 3.0, 0.2), (20.0, 30.0, 0.6)],
        ),
    ]
    for f, of_mpmath, points in cases:
        p, *others = np.array(points).T
        ones = np.ones_like(p)

        def slope(v: Any, f: Any = f, others: Any = others, ones: Any = ones) -> Any:
            return jt.jvp(lambda v: f(v, *others), (v,), (ones,))[1]

        for order, found in enumerate(jt.jvp(slope, (p,), (ones,)), 1):
            with mpmath.workdps(60):
                expected = [
                    float(mpmath.diff(lambda v, f=of_mpmath, r=rest: f(v, *r), at, order, h=1e-20))
                    for at, *rest in points
                ]
            np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_second_derivatives_of_loops_outside_of_jit() -> None:
    x = np.array([0.5, 2.0])
    jt.check_grads(lambda x: jt.special.gammainc(1.7, x), (x,), order=2, modes=("rev",))
