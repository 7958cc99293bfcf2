"""SciPy's functions of arrays of any library, compiled: `docs/reference/scipy.md` says which work, and
why others do not. JITNEY_UPDATE_GOLDEN=1 writes the page anew."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from folders import HELPERS, ROOT
from scipy_calls import CALLS

import jitney as jt
from jitney.tracer import special as _  # noqa: F401  (fills the table)
from jitney.tracer.arrays.table import FUNCTIONS

scipy = pytest.importorskip("scipy")
special = pytest.importorskip("scipy.special")

PAGE = ROOT / "docs" / "reference" / "scipy.md"
HEAD = """\
# SciPy's functions

Functions of SciPy that claim to take arrays of any library, called in a function under `jt.jit` with
traced arrays. What SciPy writes with the array's own namespace compiles, fuses and has derivatives; so
do special functions that `jt.special` has itself. The other ufuncs of `scipy.special` are called by
the addresses of their loops: no Python runs, and the results are SciPy's, but they have no
derivatives. The lists below are those of `SCIPY_ARRAY_API=1`, set before SciPy is imported, which code
without source (`exec`) and `autograph=False` need; elsewhere jitney turns that switch on for the call
(from SciPy 1.17 on).

These are ours in any case, with SciPy's signatures, and have derivatives: of `scipy.linalg`
`block_diag`, `cho_factor`, `cho_solve`, `cholesky`, `circulant`, `det`, `eig`, `eigh`, `eigvals`,
`eigvalsh`, `expm`, `inv`, `lstsq`, `lu`, `lu_factor`, `lu_solve`, `norm`, `pinv`, `qr`, `solve`,
`solve_triangular`, `svd`, `svdvals`, `toeplitz`; of `scipy.special` `logsumexp`, `softmax`,
`log_softmax`; of `scipy.spatial.distance` `cdist`, `chebyshev`, `cityblock`, `cosine`, `euclidean`,
`minkowski`, `pdist`, `sqeuclidean`, `squareform`; of `scipy.fftpack` `fft`, `fft2`, `fftn`, `ifft`,
`ifft2`, `ifftn`; of `scipy.ndimage` `convolve`, `convolve1d`, `correlate`,
`correlate1d`, `gaussian_filter`, `gaussian_filter1d`, `laplace`, `maximum_filter`, `maximum_filter1d`,
`minimum_filter`, `minimum_filter1d`, `prewitt`, `sobel`, `uniform_filter`, `uniform_filter1d` of
signed integers and floats, without `output=`; of `scipy.signal` `convolve`, `convolve2d`, `correlate`,
`correlate2d`, `lfilter`; of `scipy.integrate` `simpson`; and the methods `pdf`, `logpdf`, `cdf`,
`logcdf`, `sf`, `logsf`, `ppf`, `isf` of `scipy.stats.norm`.

So are SciPy's solvers, which are those of `jt.solve` (`docs/guides/solve.md`), whatever the functions
that they are given close over: of `scipy.optimize` `minimize`, `root`, `fsolve`, `root_scalar`,
`brentq`, `bisect`, `newton`, `least_squares`, `curve_fit`; of `scipy.integrate` `solve_ivp`, `quad`; of
`scipy.sparse.linalg` `cg`, `bicgstab`, `gmres`. And so are `logpdf`, `pdf`, `logpmf` and `pmf` of the
distributions of `scipy.stats` that `jt.solve.stats` has.

This page is made by `tests/e2e/test_scipy.py`, with SciPy 1.17. Outside of compiled functions
everything is as in SciPy, because arrays are NumPy's.
"""


@pytest.fixture(scope="module")
def share(request: pytest.FixtureRequest) -> int:
    """One in so many calls is looked at."""
    all_of_them = request.config.option.cases == "all" or os.environ.get("JITNEY_UPDATE_GOLDEN")
    return 1 if all_of_them else 3


@pytest.fixture(scope="module")
def outcomes(share: int) -> dict[str, dict[str, str]]:
    """By module and call: "" or the reason why it cannot be compiled."""
    run = subprocess.run(
        [sys.executable, str(HELPERS / "scipy_calls.py"), str(share), *CALLS],
        env={
            **os.environ,
            "SCIPY_ARRAY_API": "1",
            "OMP_NUM_THREADS": "1",
            "JITNEY_CACHE": "0",
            "JITNEY_QUICK": "1",  # whether they compile, not how well
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, dict[str, str]] = {module: {} for module in CALLS}
    for line in run.stdout.splitlines():
        module, text, why = json.loads(line)
        found[module][text] = why
    return found


def section(module: str, found: dict[str, str]) -> str:
    """What the page says of a module."""
    by_reason: dict[str, list[str]] = {}
    names: dict[str, set[str]] = {}
    for text, why in found.items():
        names.setdefault(text.partition("(")[0], set()).add(why)
    for text, why in found.items():
        name = text.partition("(")[0]
        entry = name if len(names[name]) == 1 else text
        if entry not in by_reason.setdefault(why, []):
            by_reason[why].append(entry)
    lines = [f"## `scipy.{module}`", ""]
    for why in sorted(by_reason):
        entries = " ".join(f"`{entry}`" for entry in by_reason[why])
        lines += [f"{'Not, because ' + why if why else 'Compiled'}: {entries}", ""]
    return "\n".join(lines)


@pytest.mark.parametrize("module", CALLS)
def test_the_page_says_what_compiles(
    module: str, outcomes: dict[str, dict[str, str]], share: int
) -> None:
    calls = outcomes[module]
    assert not [c for c, why in calls.items() if why.startswith("differs")]
    text = section(module, calls)
    if os.environ.get("JITNEY_UPDATE_GOLDEN"):
        update(module, text)
    if not scipy.__version__.startswith("1.17."):
        return
    page = PAGE.read_text()
    if share == 1:
        assert text in page
    lines = page.partition(f"## `scipy.{module}`\n")[2].partition("\n## ")[0].splitlines()
    for call, why in calls.items():
        start = f"Not, because {why}:" if why else "Compiled:"
        entries = next((line for line in lines if line.startswith(start)), "")
        assert f"`{call}`" in entries or f"`{call.partition('(')[0]}`" in entries, (call, why)


def update(module: str, text: str) -> None:
    """Put a module's section in its place on the page."""
    old = PAGE.read_text().split("\n## ")[1:] if PAGE.exists() else []
    sections = {f"## {part.strip()}\n".split("`")[1]: f"## {part.strip()}\n" for part in old}
    sections[f"scipy.{module}"] = text
    order = [f"scipy.{m}" for m in CALLS if f"scipy.{m}" in sections]
    PAGE.write_text("\n".join([HEAD, *(sections[m].rstrip() + "\n" for m in order)]))


@pytest.fixture
def no_own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if `jt.special` had none of the functions that are computed by SciPy's loops below."""
    for name in ("modstruve", "it2struve0", "itstruve0", "iti0k0", "wofz"):
        monkeypatch.delitem(FUNCTIONS, f"special.{name}", raising=False)


@pytest.mark.usefixtures("no_own_functions")
def test_ufuncs_of_scipy_by_their_loops() -> None:
    x = np.linspace(0.1, 3, 50)
    f = jt.jit(lambda x: special.modstruve(3, x / 4) + special.it2struve0(x) * 2)
    np.testing.assert_array_equal(f(x), special.modstruve(3, x / 4) + special.it2struve0(x) * 2)
    assert "ufunc_loop" in str(f.trace(x))
    reversed_ = x.astype(np.float32).reshape(5, 10)[:, ::-1]
    found = jt.jit(special.itstruve0)(reversed_)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, special.itstruve0(reversed_))
    for got, want in zip(jt.jit(special.iti0k0)(x), special.iti0k0(x), strict=True):
        np.testing.assert_array_equal(got, want)
    assert jt.jit(special.itstruve0)(2.0) == special.itstruve0(2.0)
    assert jt.jit(special.itstruve0)(np.zeros((0, 3))).shape == (0, 3)
    rows = jt.vmap(lambda a: special.modstruve(np.arange(3), a[:3]))(x.reshape(5, 10))
    np.testing.assert_array_equal(rows, special.modstruve(np.arange(3), x.reshape(5, 10)[:, :3]))
    np.testing.assert_array_equal(jt.special.modstruve(2, x), special.modstruve(2, x))


@pytest.mark.usefixtures("no_own_functions")
def test_ufuncs_of_scipy_say_what_they_cannot() -> None:
    x = np.linspace(0.1, 3, 5)
    with pytest.raises(jt.errors.TransformError, match="ufunc_loop"):
        jt.grad(lambda x: special.itstruve0(x).sum())(x)
    with pytest.raises(TypeError, match="complex"):
        jt.jit(lambda z: special.wofz(z))(x + 1j)
    with pytest.raises(TypeError, match="out="):
        jt.jit(lambda x: special.modstruve(2, x, out=np.zeros(5)))(x)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = jt.special.nonsense
