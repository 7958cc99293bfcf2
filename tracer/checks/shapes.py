"""Assertions about ranks, shapes and dtypes, which are known while a function is traced.

They cost nothing when the compiled function runs. Outside of tracing they hold for NumPy's arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import EllipsisType
from typing import Any, NoReturn

import numpy as np

from ...ir.types import dtype_kind
from ..messages import errors
from ..messages.errors import complain

Dim = int | str | None | EllipsisType
Shape = Sequence[Dim] | str


def fail(what: str, operands: Sequence[Any] | dict[str, Any], remedy: str = "") -> NoReturn:
    """Raise FailedAssertion."""
    named = (
        operands if isinstance(operands, dict) else dict(zip("xyzabcdefg", operands, strict=False))
    )
    remedy = remedy or "make the assertion hold, or change it."
    complain(errors.FailedAssertion, what, remedy, operands=named)


def assert_rank(x: Any, rank: int | Collection[int]) -> None:
    """FailedAssertion unless `x` has as many axes as `rank` says, or as one of several.

    >>> assert_rank(np.ones((2, 3)), 2)
    """
    ranks = (rank,) if isinstance(rank, int) else tuple(rank)
    if np.ndim(x) not in ranks:
        wanted = " or ".join(map(str, ranks))
        fail(f"assert_rank: the rank is {np.ndim(x)}, not {wanted}", [x])


def assert_shape(x: Any, shape: Shape) -> None:
    """FailedAssertion unless `x` has this shape.

    A dim may be a number, a name (equal names are equal sizes), None for any, and one may be `...` for
    any dims; a string has them in words: "batch n n".

    >>> assert_shape(np.ones((2, 3, 3)), "... n n")
    >>> assert_shape(np.ones((2, 3)), (None, 3))
    """
    sizes: dict[str, int] = {}
    _match(x, shape, sizes)


def assert_shapes(*pairs: tuple[Any, Shape]) -> None:
    """FailedAssertion unless all arrays have the shapes beside them. A name is one size in all of them.

    >>> assert_shapes((np.ones((2, 3)), "n k"), (np.ones((3, 4)), "k m"))
    """
    sizes: dict[str, int] = {}
    for x, shape in pairs:
        _match(x, shape, sizes)


def _match(x: Any, shape: Shape, sizes: dict[str, int]) -> None:
    dims: list[Dim] = [_word(w) for w in shape.split()] if isinstance(shape, str) else list(shape)
    have = np.shape(x)
    wanted = (
        "[" + ", ".join("..." if d is ... else "any" if d is None else str(d) for d in dims) + "]"
    )
    what = f"assert_shape: the shape is {list(have)}, not {wanted}"
    if dims.count(...) > 1:
        raise ValueError(f"one `...` at most in a shape, not {wanted}")
    if ... in dims:
        at, more = dims.index(...), len(have) - len(dims) + 1
        if more < 0:
            fail(what, [x])
        dims[at : at + 1] = [None] * more
    if len(dims) != len(have):
        fail(what, [x])
    for dim, size in zip(dims, have, strict=True):
        known = sizes.setdefault(dim, size) if isinstance(dim, str) else dim
        if known is not None and known != size:
            named = f": {dim} is {known}" if isinstance(dim, str) else ""
            fail(what + named, [x])


def _word(word: str) -> Dim:
    if word == "...":
        return ...
    return int(word) if word.isdigit() else None if word == "_" else word


def assert_dtype(x: Any, dtype: Any) -> None:
    """FailedAssertion unless `x` has this dtype, or one of several, or one of a kind as `jt.isdtype` has
    them ("real floating", "integral", "numeric", ...).

    >>> assert_dtype(np.ones(2), np.float64)
    >>> assert_dtype(np.ones(2), "real floating")
    """
    wanted = dtype if isinstance(dtype, (tuple, list)) else (dtype,)
    have = np.dtype(getattr(x, "dtype", None) or np.asarray(x).dtype)
    if not any(_is_of(have, one) for one in wanted):
        said = " or ".join(w if isinstance(w, str) else str(np.dtype(w)) for w in wanted)
        fail(f"assert_dtype: the dtype is {have}, not {said}", [x])


_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}


def _is_of(have: Any, wanted: Any) -> bool:
    if isinstance(wanted, str) and wanted in _KINDS:
        return dtype_kind(have) in _KINDS[wanted]
    return bool(have == np.dtype(wanted))


def assert_compatible(*arrays: Any) -> None:
    """FailedAssertion unless the shapes broadcast together.

    >>> assert_compatible(np.ones((2, 1)), np.ones(3))
    """
    try:
        np.broadcast_shapes(*map(np.shape, arrays))
    except ValueError:
        shapes = " and ".join(str(list(np.shape(x))) for x in arrays)
        fail(f"assert_compatible: the shapes {shapes} do not broadcast together", arrays)
