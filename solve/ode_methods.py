"""One step of a method for y' = f(t, y): explicit Runge-Kutta pairs, and a Rosenbrock method for stiff
problems.

A step gives y at its end, f there, an estimate of the error, and `dense`, of shape (powers, n): inside
of the step, at the part x of it, y is `y_old + sum(dense[k] * x**(k + 1))`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import jitney as jt

from .common import Function, matrix_of


class Method(NamedTuple):
    """A method: its step, the order of its error's estimate, and how often a step calls f."""

    step: Function
    order: int
    calls: int


def _pair(a: Any, b: Any, c: Any, e: Any, p: Any) -> Function:
    """The step of an explicit pair whose last stage is the first of the next step. Coefficients are
    tuples, which are constants of the compiled step: those of lists would be read at each call, and
    whether one is 0 would be a branch."""
    columns = tuple(zip(*p, strict=True))

    def step(f: Function, t: Any, y: Any, first: Any, h: Any, jac: Any) -> tuple[Any, ...]:
        slopes = [first]
        for row, part in zip(a[1:], c[1:], strict=True):
            change = _combined(row, slopes)
            slopes.append(f(t + part * h, y + h * change))
        y_new = y + h * _combined(b, slopes)
        slopes.append(f(t + h, y_new))
        dense = jt.stack([h * _combined(column, slopes) for column in columns])
        return y_new, slopes[-1], h * _combined(e, slopes), dense

    return step


def _combined(weights: Any, slopes: Any) -> Any:
    total = None
    for w, k in zip(weights, slopes, strict=False):
        if w:
            total = w * k if total is None else total + w * k
    return 0 * slopes[0] if total is None else total


_DORMAND_PRINCE = _pair(
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    ),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    (0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1),
    (-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40),
    (
        (1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432),
        (0, 0, 0, 0),
        (
            *(0, 131558114200 / 32700410799, -68118460800 / 10900136933),
            87487479700 / 32700410799,
        ),
        (
            *(0, -1754552775 / 470086768, 14199869525 / 1410260304),
            -10690763975 / 1880347072,
        ),
        (
            *(0, 127303824393 / 49829197408, -318862633887 / 49829197408),
            701980252875 / 199316789632,
        ),
        (0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)
_BOGACKI_SHAMPINE = _pair(
    ((), (1 / 2,), (0, 3 / 4)),
    (2 / 9, 1 / 3, 4 / 9),
    (0, 1 / 2, 3 / 4),
    (5 / 72, -1 / 12, -1 / 9, 1 / 8),
    ((1, -4 / 3, 5 / 9), (0, 1, -2 / 3), (0, 4 / 3, -8 / 9), (0, -1, 1)),
)

# RODAS of Hairer and Wanner: order 4, an estimate of order 3, stable for any stiff mode. The last two
# stages are at the end of the step, where the difference of the solutions is the last of all.
_GAMMA = 0.25
_A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
)
_C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (
        *(8.083246795921522, -7.981132988064893, -31.52159432874371),
        *(16.31930543123136, -6.058818238834054),
    ),
)
_AT = (0.0, 0.386, 0.21, 0.63)
_BY_TIME = (0.25, -0.1043, 0.1035, -0.0362)
_DENSE = (
    (
        10.12623508344586,
        -7.487995877610167,
        -34.80091861555747,
        -7.992771707568823,
        1.025137723295662,
    ),
    (
        -0.6762803392801253,
        6.087714651680015,
        16.43084320892478,
        24.76722511418386,
        -6.594389125716872,
    ),
)


def _rodas(f: Function, t: Any, y: Any, first: Any, h: Any, jac: Any) -> tuple[Any, ...]:
    n = y.shape[0]
    one = jt.ones_like(t)
    _, by_time = jt.jvp(lambda t: f(t, y), (t,), (one,))
    if jac is None:
        jacobian = matrix_of(lambda v: jt.jvp(lambda y: f(t, y), (y,), (v,))[1], y)
    else:
        jacobian = jac(t, y)
    factors = jt.linalg.lu_factor(np.eye(n, dtype=y.dtype) / (_GAMMA * h) - jacobian)

    def stage(slope: Any, row: Any, by: float) -> Any:
        rhs = slope + _combined(row, stages) / h if row else slope
        return jt.linalg.lu_solve(factors, rhs + (h * by) * by_time if by else rhs)

    stages: list[Any] = []
    stages.append(stage(first, _C[0], _BY_TIME[0]))
    for i in range(1, 4):
        slope = f(t + _AT[i] * h, y + _combined(_A[i], stages))
        stages.append(stage(slope, _C[i], _BY_TIME[i]))
    at_end = y + _combined(_A[4], stages)
    stages.append(stage(f(t + h, at_end), _C[4], 0.0))
    at_end = at_end + stages[4]
    error = stage(f(t + h, at_end), _C[5], 0.0)
    y_new = at_end + error
    second, third = (_combined(row, stages) for row in _DENSE)
    dense = jt.stack([y_new - y + second, third - second, -third])
    return y_new, f(t + h, y_new), error, dense


METHODS = {
    "RK45": Method(_DORMAND_PRINCE, 4, 6),
    "RK23": Method(_BOGACKI_SHAMPINE, 2, 3),
    "Rodas4": Method(_rodas, 3, 6),
}
STIFF = ("Radau", "BDF", "LSODA")  # SciPy's names for such problems


def polynomial(y: Any, dense: Any, x: Any) -> Any:
    """y at the part x of a step."""
    powers = dense.shape[0]
    total = dense[powers - 1]
    for k in reversed(range(powers - 1)):
        total = dense[k] + x * total
    return y + x * total
