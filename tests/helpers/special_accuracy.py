"""Errors of `jt.special` in units in the last place, and docs/reference/special.md made of them.

    python tests/helpers/special_accuracy.py        # measures against mpmath and writes the table

Arguments are random: uniform, or uniform in the exponent where a row's range says so. Where a function
crosses 0 inside of a range (marked `abs`), errors are in units of 2**-52 if the result is below 1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
from mpmath import mp

import jitney as jt

BEGIN, END = "<!-- errors -->\n", "<!-- end of errors -->\n"


def even(low: float, high: float) -> Callable[..., Any]:
    return lambda rng, n: rng.uniform(low, high, n)


def powers(low: float, high: float) -> Callable[..., Any]:
    return lambda rng, n: 10 ** rng.uniform(low, high, n)


def _near_peak(rng: Any, n: int) -> Any:
    a = 10 ** rng.uniform(-2, 3.5, n)
    x = np.abs(a + rng.normal(size=n) * 8 * np.sqrt(a))
    return a, np.where(rng.random(n) < 0.5, x, a * 10 ** rng.uniform(-1, 0.7, n))


def _near_mean(rng: Any, n: int) -> Any:
    a, b = 10 ** rng.uniform(-1, 3, (2, n))
    mean = a / (a + b)
    x = mean + np.sqrt(mean * (1 - mean) / (a + b + 1)) * rng.normal(size=n) * 6
    return a, b, np.clip(np.where(rng.random(n) < 0.6, x, rng.random(n)), 1e-6, 1 - 1e-6)


def _loggamma(x: Any) -> Any:
    return mp.loggamma(x).real


def _normal(x: Any) -> Any:
    return mp.ncdf(x)


def _betaln(a: Any, b: Any) -> Any:
    return mp.loggamma(a) + mp.loggamma(b) - mp.loggamma(a + b)


# name, range in words, samples (one per argument, or one for all), exact, whether absolute near 0
ROWS: list[tuple[str, str, Any, Callable[..., Any], bool]] = [
    ("gamma", "-170 to 171", [even(-170, 171)], mp.gamma, False),
    ("gammaln", "0 to 1e100", [powers(-100, 100)], _loggamma, False),
    ("gammaln", "-50 to 20", [even(-50, 20)], _loggamma, True),
    ("digamma", "0 to 1e100", [powers(-100, 100)], mp.digamma, False),
    ("digamma", "-50 to 20", [even(-50, 20)], mp.digamma, True),
    ("rgamma", "-20 to 20", [even(-20, 20)], mp.rgamma, False),
    ("beta", "1e-3 to 1e3", [powers(-3, 3)] * 2, mp.beta, False),
    ("beta", "1e-30 to 1e30, 1e-30 to 1e3", [powers(-30, 30), powers(-30, 3)], mp.beta, False),
    ("betaln", "1e-30 to 1e30", [powers(-30, 30)] * 2, _betaln, True),
    ("zeta", "1 to 30", [even(1, 30)], mp.zeta, False),
    ("zeta", "-30 to 1", [even(-30, 1)], mp.zeta, False),
    ("zeta", "1 to 20, 1e-3 to 50", [even(1, 20), powers(-3, 1.7)], mp.zeta, False),
    ("erf", "-6 to 6", [even(-6, 6)], mp.erf, False),
    ("erfc", "-6 to 26", [even(-6, 26)], mp.erfc, False),
    ("erfcx", "-26 to 100", [even(-26, 100)], lambda x: mp.exp(x * x) * mp.erfc(x), False),
    ("erfi", "-20 to 20", [even(-20, 20)], mp.erfi, False),
    ("dawsn", "-8 to 8", [even(-8, 8)], None, False),  # type: ignore[list-item]
    ("ndtr", "-37 to 9", [even(-37, 9)], _normal, False),
    ("log_ndtr", "-40 to 8", [even(-40, 8)], lambda x: mp.log(mp.ncdf(x)), False),
    ("ndtri", "0 to 1", [even(0, 1)], lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), False),
    ("i0", "-700 to 700", [even(-700, 700)], lambda x: mp.besseli(0, x), False),
    ("i1", "-700 to 700", [even(-700, 700)], lambda x: mp.besseli(1, x), False),
    ("k0", "1e-5 to 600", [powers(-5, 2.8)], lambda x: mp.besselk(0, x), False),
    ("k1", "1e-5 to 600", [powers(-5, 2.8)], lambda x: mp.besselk(1, x), False),
    ("j0", "0 to 100", [even(0, 100)], lambda x: mp.besselj(0, x), True),
    ("j1", "0 to 100", [even(0, 100)], lambda x: mp.besselj(1, x), True),
    ("y0", "0 to 100", [even(0, 100)], lambda x: mp.bessely(0, x), True),
    ("y1", "0 to 100", [even(0, 100)], lambda x: mp.bessely(1, x), True),
    ("expi", "-60 to 60", [even(-60, 60)], mp.ei, False),
    ("exp1", "1e-5 to 600", [powers(-5, 2.8)], mp.e1, False),
    ("spence", "1e-10 to 1e10", [powers(-10, 10)], lambda x: mp.polylog(2, 1 - x).real, False),
    ("exprel", "-20 to 20", [even(-20, 20)], lambda x: mp.expm1(x) / x, False),
    ("gammainc", "a from 0.01 to 3000", _near_peak, None, False),  # type: ignore[list-item]
    ("gammaincc", "a from 0.01 to 3000", _near_peak, None, False),  # type: ignore[list-item]
    ("betainc", "a, b from 0.1 to 1000", _near_mean, None, False),  # type: ignore[list-item]
    ("betaincc", "a, b from 0.1 to 1000", _near_mean, None, False),  # type: ignore[list-item]
]
LATER = {
    "dawsn": lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
    "gammainc": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
    "gammaincc": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    "betainc": lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
    "betaincc": lambda a, b, x: mp.betainc(b, a, 0, 1 - x, regularized=True),
}


def measure(name: str, samples: Any, exact: Any, absolute: bool, count: int, dtype: Any) -> float:
    rng = np.random.default_rng(17)
    drawn = samples(rng, count) if callable(samples) else [s(rng, count) for s in samples]
    arrays = [a.astype(dtype) for a in drawn]
    with np.errstate(all="ignore"):
        found = getattr(jt.special, name)(*arrays)
    info = np.finfo(dtype)
    worst = 0.0
    for point, got in zip(zip(*arrays, strict=True), found, strict=True):
        with mpmath.workdps(60):
            try:
                wanted = (exact or LATER[name])(*(mp.mpf(float(v)) for v in point))
            except (ValueError, mpmath.libmp.NoConvergence):
                continue
            if not 1e4 * float(info.tiny) < abs(wanted) < float(info.max) / 10:
                continue
            unit = float(np.spacing(dtype(abs(float(wanted)))))
            unit = max(unit, float(info.eps)) if absolute else unit
            worst = max(worst, float(abs(mp.mpf(float(got)) - wanted) / unit))
    return worst if math.isfinite(worst) else math.inf


def main(path: Path, count: int = 400) -> None:
    lines = ["| function | arguments | float64 | float32 |\n", "|---|---|---|---|\n"]
    for name, words, samples, exact, absolute in ROWS:
        f64 = measure(name, samples, exact, absolute, count, np.float64)
        f32 = measure(name, samples, exact, absolute, count // 4, np.float32)
        mark = " (abs)" if absolute else ""
        lines.append(f"| `{name}` | {words}{mark} | {f64:.1f} | {f32:.2f} |\n")
        print(lines[-1], end="", flush=True)
    text = path.read_text()
    head, rest = text.split(BEGIN)
    path.write_text(head + BEGIN + "".join(lines) + END + rest.split(END)[1])


if __name__ == "__main__":
    where = Path(jt.__file__).resolve().parent / "docs" / "reference" / "special.md"
    main(where, *(int(v) for v in sys.argv[1:]))
