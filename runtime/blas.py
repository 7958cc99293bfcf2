"""CBLAS by address: the BLAS that NumPy itself was built with, called from native code.

NumPy's extension module is linked against a BLAS; looking symbols up through that module finds
it without guessing paths. Builds rename the functions: `scipy_cblas_dgemm64_` (wheels, 64-bit
integers), `cblas_dgemm64_`, `cblas_dgemm$NEWLAPACK$ILP64` (Accelerate), `cblas_dgemm`, ... If
nothing is found (Windows does not search a module's dependencies, NumPy may have no BLAS),
`find_blas()` is None and code generation emits its own kernels.
"""

from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..codegen.target import Target

# How builds spell a CBLAS function, with the width of its integers.
SPELLINGS: tuple[tuple[str, int], ...] = (
    ("scipy_cblas_{}64_", 64),
    ("cblas_{}64_", 64),
    ("scipy_cblas_{}", 32),
    ("cblas_{}$NEWLAPACK$ILP64", 64),
    ("cblas_{}$NEWLAPACK", 32),
    ("cblas_{}_64", 64),
    ("cblas_{}", 32),
)
# The same for OpenBLAS's own functions, beside each spelling above.
_OPENBLAS_SPELLINGS = ("scipy_openblas_{}64_", "openblas_{}64_", "scipy_openblas_{}", "openblas_{}")


@dataclass(frozen=True)
class Blas:
    """A BLAS found in the process."""

    addresses: dict[str, int]  # cblas_sgemm and the others of Target.BLAS_SYMBOLS
    int_bits: int
    spelling: str  # the name under which sgemm was found
    description: str
    get_threads: Callable[[], int] | None = None
    set_threads: Callable[[int], None] | None = None  # of the whole process, NumPy's calls included


def _libraries() -> Iterator[ctypes.CDLL]:
    import numpy as np
    from numpy._core import _multiarray_umath

    modules = [_multiarray_umath.__file__]
    umath_linalg = getattr(np.linalg, "_umath_linalg", None)
    if umath_linalg is not None:
        modules.append(umath_linalg.__file__)
    if os.name == "nt":
        # GetProcAddress does not look into a module's dependencies.
        bundled = os.path.join(os.path.dirname(os.path.dirname(np.__file__)), "numpy.libs")
        modules = sorted(glob.glob(os.path.join(bundled, "*openblas*.dll"))) + modules
    for path in modules:
        if path:
            try:
                yield ctypes.CDLL(path)
            except OSError:
                continue


def _address(library: ctypes.CDLL, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


def _openblas_function(library: ctypes.CDLL, what: str) -> ctypes._NamedFuncPointer | None:
    for spelling in _OPENBLAS_SPELLINGS:
        function: ctypes._NamedFuncPointer | None = getattr(library, spelling.format(what), None)
        if function is not None:
            return function
    return None


def _describe(library: ctypes.CDLL, spelling: str) -> str:
    config = _openblas_function(library, "get_config")
    if config is not None:
        config.restype = ctypes.c_char_p
        text = " ".join((config() or b"").decode(errors="replace").split())
        core = _openblas_function(library, "get_corename")
        if core is not None:
            core.restype = ctypes.c_char_p
            name = (core() or b"").decode(errors="replace")
            if name and name not in text:
                text += f" {name}"
        return text or "OpenBLAS"
    if "NEWLAPACK" in spelling:
        return "Accelerate"
    import numpy as np

    try:
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}"
    except (KeyError, TypeError):
        return "unknown BLAS"


@lru_cache(maxsize=1)
def find_blas() -> Blas | None:
    """The BLAS behind NumPy, or None. Never raises."""
    for library in _libraries():
        for spelling, int_bits in SPELLINGS:
            addresses = {
                symbol: _address(library, spelling.format(symbol.removeprefix("cblas_")))
                for symbol in Target.BLAS_SYMBOLS
            }
            found = {symbol: a for symbol, a in addresses.items() if a}
            if len(found) != len(addresses):
                continue
            get = _openblas_function(library, "get_num_threads")
            put = _openblas_function(library, "set_num_threads")
            if put is not None:
                put.argtypes = [ctypes.c_int]
                put.restype = None
            description = _describe(library, spelling)
            return Blas(
                addresses=found,
                # An OpenBLAS built for 64-bit integers need not have a suffix that says so.
                int_bits=64 if "USE64BITINT" in description.split() else int_bits,
                spelling=spelling.format("sgemm"),
                description=description,
                get_threads=get,
                set_threads=put,
            )
    return None


def blas_address(symbol: str) -> int | None:
    """Where `symbol` of `Target.BLAS_SYMBOLS` is, or None."""
    blas = find_blas()
    return blas.addresses.get(symbol) if blas else None
