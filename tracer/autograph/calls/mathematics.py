"""Python's `math` and `cmath` of traced numbers: they compute with Python's floats, and give them.

Whatever the dtype of a number is, these functions take it as a double (or a complex of two), and what
they return is a Python number, which promotes as one: `math.sqrt(x) * y` is float32 if `y` is. Where all
arguments are known while tracing, Python's own functions are called.
"""

from __future__ import annotations

import cmath
import functools
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ....ir.surface import ensure
from ....ir.types import BOOL, C128, F64, I64
from ...arrays.common import array, check_values
from ...arrays.python_errors import check_int
from ...arrays.python_integers import require_fits
from ...arrays.table import FUNCTIONS, holds_tracer
from ...containers import folds
from ...containers.stand_ins import Container
from ...containers.walking import walked
from ...control.control import fori_loop
from ...control.scans import scan
from ...core.tracers import Tracer, as_value, wrap
from ...messages import errors
from ...messages.errors import complain
from ..iteration import complex_, float_, int_

_DTYPES = {"b": BOOL, "i": I64, "f": F64, "c": C128}
_FACTORIALS = [math.factorial(n) for n in range(21)]  # those that are numbers of 64 bits


def _number(x: Any, convert: Callable[[Any], Any]) -> Any:
    if isinstance(x, Tracer):
        if x.size != 1:
            complain(
                errors.ArgumentError,
                "the functions of math and cmath take single numbers",
                "write NumPy's function, np.sin instead of math.sin, for arrays.",
                operands={"x": x},
            )
        if convert is float_ and x.dtype.kind == "c":
            raise TypeError("must be real number, not complex")
    return convert(x)


def _python(x: Any, weak: str) -> Any:
    """A result as the number that Python would give."""
    if isinstance(x, Tracer):
        return wrap(as_value(x, _DTYPES[weak]), weak)
    return np.asarray(x, _DTYPES[weak]).item()


def _of(convert: Callable[[Any], Any], *weak: str) -> Any:
    """A decorator: a formula over numbers that `convert` makes of the arguments; its results are Python
    numbers of these kinds."""

    def make(formula: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = formula(*(_number(x, convert) for x in args), **options)
            if len(weak) == 1:
                return _python(result, weak[0])
            return tuple(map(_python, result, weak))

        return call

    return make


_real, _integer, _complex = (functools.partial(_of, c) for c in (float_, int_, complex_))


def _special(name: str) -> Callable[[Any], Any]:
    def formula(x: Any) -> Any:
        ensure("special")
        return FUNCTIONS[f"special.{name}"](x)

    return formula


def _log(x: Any, base: Any = None) -> Any:
    return np.log(x) if base is None else np.log(x) / np.log(base)


def _hypot(*coordinates: Any) -> Any:
    if len(coordinates) == 2:
        return np.hypot(*coordinates)
    return functools.reduce(np.hypot, coordinates, 0.0)


def _remainder(x: Any, y: Any) -> Any:
    """What is left of `x`, of either sign, beside its nearest multiple of `y`, without rounding."""
    a, b = np.abs(x), np.abs(y)
    rest = np.fmod(a, b)
    other = b - rest
    tie = rest - 2.0 * np.fmod(0.5 * (a - rest), b)
    nearest = np.where(rest < other, rest, np.where(rest > other, -other, tie))
    return np.where(np.isinf(y) & np.isfinite(x), x, np.copysign(1.0, x) * nearest)


def _is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    if not holds_tracer((rel_tol, abs_tol)) and (rel_tol < 0 or abs_tol < 0):
        raise ValueError("tolerances must be non-negative")
    distance = np.abs(a - b)
    near = (distance <= rel_tol * np.maximum(np.abs(a), np.abs(b))) | (distance <= abs_tol)
    return (a == b) | (near & np.isfinite(a) & np.isfinite(b))


def _isqrt(n: Any) -> Any:
    check_values(n >= 0, "isqrt() argument must be nonnegative", ValueError)
    root = np.floor(np.sqrt(n * 1.0)).astype(np.int64)
    root = np.where(root > n // np.maximum(root, 1), root - 1, root)  # n * 1.0 was rounded
    return np.where(root + 1 <= n // (root + 1), root + 1, root)


def _factorial(n: Any) -> Any:
    check_values(n >= 0, "factorial() not defined for negative values", ValueError)
    check_values(n < len(_FACTORIALS), "the factorial is no number of 64 bits", OverflowError)
    return array(_FACTORIALS)[np.clip(n, 0, len(_FACTORIALS) - 1)]


def _lcm(a: Any, b: Any) -> Any:
    part = a // np.maximum(np.gcd(a, b), 1)
    product = part * b
    if isinstance(product, Tracer):
        require_fits("multiply", (part, b), as_value(product))
    return np.abs(product)


def _prod(numbers: Iterable[Any], *, start: Any = 1) -> Any:
    if isinstance(numbers, Tracer):
        return np.prod(numbers) * start
    if isinstance(numbers, Container):
        return folds.product(numbers, start)
    return functools.reduce(operator.mul, numbers, start)


def _fsum(numbers: Iterable[Any]) -> Any:
    """Python rounds once, at the end: here what rounding loses of sums, and of sums of that, is kept."""

    def add(a: Any, b: Any) -> tuple[Any, Any]:
        total = a + b
        part = total - a
        return total, (a - (total - part)) + (b - part)

    def step(carry: Any, x: Any) -> tuple[Any, None]:
        total, lost, rest, plain = carry
        total, error = add(total, x)
        lost, error = add(lost, error)
        return (total, lost, rest + error, plain + x), None

    zero = np.float64(0.0)
    start = (zero, zero, zero, zero)
    if isinstance(numbers, Container):
        found = walked(numbers)
        assert found is not None
        length, item = found
        sums = fori_loop(0, length, lambda i, c: step(c, np.float64(1.0) * item(i))[0], start)
    else:
        some = numbers if isinstance(numbers, Tracer) else [_number(x, float_) for x in numbers]
        sums, _ = scan(step, start, array(some).astype(np.float64))
    total, lost, rest, plain = sums
    lost = lost + rest
    return _python(np.where(np.isfinite(total), total + lost, plain), "f")


def _dist(p: Any, q: Any) -> Any:
    p, q = (list(map(functools.partial(_number, convert=float_), x)) for x in (p, q))
    if len(p) != len(q):
        raise ValueError("both points must have the same number of dimensions")
    return _python(_hypot(*map(operator.sub, p, q)), "f")


def _polar(z: Any) -> Any:
    return np.abs(z), np.angle(z)


def _rect(r: Any, phi: Any) -> Any:
    return r * np.cos(phi) + 1j * (r * np.sin(phi))


_SAME = "sqrt exp sin cos tan sinh cosh tanh log10".split()
_INVERSE = "asin acos atan asinh acosh atanh".split()
_ASKED = "isnan isinf isfinite".split()
_REAL: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in (
        *_SAME,
        *("cbrt", "exp2", "expm1", "log2", "log1p", "fabs", "degrees", "radians"),
        *("copysign", "fmod", "nextafter"),
    )
} | {
    **{name: getattr(np, "arc" + name[1:]) for name in _INVERSE},
    "atan2": np.arctan2,
    "pow": np.power,
    "log": _log,
    "hypot": _hypot,
    "remainder": _remainder,
    "ulp": lambda x: np.spacing(np.abs(x)),
    "erf": lambda x: FUNCTIONS["erf"](x),
    "erfc": _special("erfc"),
    "gamma": _special("gamma"),
    "lgamma": _special("gammaln"),
    "fma": lambda x, y, z: FUNCTIONS["fma"](x, y, z),
}


def _whole(rounding: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(x: Any) -> Any:
        check_int(x)  # what is rounded is a float of NumPy's, which raises nothing
        return int_(rounding(x))

    return call


_COMPLEX: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in _SAME},
    **{name: getattr(np, "arc" + name[1:]) for name in _INVERSE},
    "log": _log,
}
# What is called instead of a function of `math` or `cmath` where arguments are traced.
MATHEMATICS: dict[Any, Callable[..., Any]] = (
    {getattr(math, n): _real("f")(f) for n, f in _REAL.items() if hasattr(math, n)}
    | {getattr(cmath, n): _complex("c")(f) for n, f in _COMPLEX.items()}
    | {getattr(math, n): _real("b")(getattr(np, n)) for n in _ASKED}
    | {getattr(cmath, n): _complex("b")(getattr(np, n)) for n in _ASKED}
    | {
        math.isclose: _real("b")(_is_close),
        math.frexp: _real("f", "i")(np.frexp),
        math.modf: _real("f", "f")(np.modf),
        math.ldexp: lambda x, i: _python(np.ldexp(_number(x, float_), int_(i)), "f"),
        math.floor: _whole(np.floor),
        math.ceil: _whole(np.ceil),
        math.trunc: _whole(np.trunc),
        math.isqrt: _integer("i")(_isqrt),
        math.factorial: _integer("i")(_factorial),
        math.gcd: _integer("i")(lambda *ns: functools.reduce(np.gcd, ns, 0)),
        math.lcm: _integer("i")(lambda *ns: functools.reduce(_lcm, ns, 1)),
        math.prod: _prod,
        math.fsum: _fsum,
        math.dist: _dist,
        cmath.isclose: _complex("b")(_is_close),
        cmath.phase: _complex("f")(np.angle),
        cmath.polar: _complex("f", "f")(_polar),
        cmath.rect: _real("c")(_rect),
    }
)
