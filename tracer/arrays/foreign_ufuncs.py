"""Ufuncs of other packages, SciPy's above all: native code calls their compiled loops by address.

What has a function of its own here (`jt.special`) is not computed so: that fuses, has derivatives and
runs on GPUs. A loop of another package does none of that, but its results have that package's bits.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...ir.types import is_supported
from ..core.tracers import as_value, weak_kind, wrap
from .common import array, broadcast_shape, build, kind
from .table import refuse_complex, refuse_option

_WEAK = {"b": bool, "i": int, "f": float, "c": complex}


def is_compiled(ufunc: np.ufunc) -> bool:
    """Whether a ufunc has loops of C, which a module that can be imported holds under its name."""
    return ufunc.signature is None and _home(ufunc) is not None and "O" not in "".join(ufunc.types)


def _home(ufunc: np.ufunc) -> str | None:
    """The module where `ufunc` is found by its name. A ufunc does not know: those of its package that
    are loaded are asked."""
    name = ufunc.__name__
    for module in ("scipy.special._ufuncs", "scipy.special._special_ufuncs"):
        if getattr(sys.modules.get(module), name, None) is ufunc:
            return module
    return None


def apply_foreign(ufunc: np.ufunc, *inputs: Any, **options: Any) -> Any:
    """The ufunc over tracers, by its own loops."""
    for option, value in options.items():
        if value is not None and (option, value) != ("where", True):
            refuse_option(ufunc.__name__, **{option: value})
    operands = [x if weak_kind(x) is not None else array(x) for x in inputs]
    kinds = tuple(_WEAK.get(weak_kind(x) or "") or kind(x) for x in operands)
    dtypes = ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout))
    if any(d.kind == "c" for d in dtypes):
        refuse_complex(ufunc.__name__)
    if not all(is_supported(d) for d in dtypes):
        raise TypeError(f"{ufunc.__name__} has no loop for {', '.join(map(str, kinds))}")
    shape = broadcast_shape(operands)
    b = build()
    pairs = zip(operands, dtypes, strict=False)
    values = [b.broadcast_to(as_value(x, d), shape) for x, d in pairs]
    codes = "".join(d.char for d in dtypes)
    types = f"{codes[: ufunc.nin]}->{codes[ufunc.nin :]}"
    made = b.op("ufunc_loop", *values, ufunc=f"{_home(ufunc)}:{ufunc.__name__}", types=types)
    return tuple(map(wrap, made)) if isinstance(made, tuple) else wrap(made)
