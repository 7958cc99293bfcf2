"""`vectorize`: a function of scalars, or of arrays with given axes, over all axes in front."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection
from typing import Any

import numpy as np

from ..core.specs import is_array
from ..data.callables import Function
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from ..transforms.vectorize import vectorize as over_axes
from .calls import compiled_outside, stored


@shortened
def vectorize(
    pyfunc: Function | None = None,
    *,
    excluded: Collection[int | str] = (),
    signature: str | None = None,
) -> Function:
    """`pyfunc` broadcast over its arguments, as np.vectorize, compiled and without a loop in Python.

        @jt.vectorize
        def collatz(n):                          # of scalars; called with arrays of any shapes
            steps = 0
            while n != 1:                        # each element has iterations of its own
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                steps += 1
            return steps

        matvec = jt.vectorize(lambda a, x: a @ x, signature="(m,n),(n)->(m)")

    signature  which axes, the last ones, each argument has for `pyfunc`; equal names are equal sizes.
               Without one, all are scalars. The axes in front of them broadcast.
    excluded   positions and names of arguments that reach `pyfunc` as they are, as do all keyword
               arguments.

    It is called with `out=`, too: an array for the result, or a tuple of them. It has derivatives, and
    batches. Where all is arrays and numbers it compiles at the first call for their types, as by
    `jt.jit`; in compiled functions it is a part of these.

    Raises jt.errors.TransformError where `signature` or `excluded` do not fit the arguments.

    >>> jt.vectorize(lambda x, y: x + y)(np.arange(3), 10)
    array([10, 11, 12])
    """
    if isinstance(pyfunc, (list, tuple, str)):
        complain(
            errors.TransformError,
            "vectorize takes the function alone, and no list of types: dtypes are those of the "
            "arguments of each call",
            "write @jt.vectorize; convert what the function returns, as in np.float32(x), for another "
            "dtype.",
        )
    if pyfunc is None:
        return functools.partial(vectorize, excluded=excluded, signature=signature)
    mapped = over_axes(pyfunc, excluded=excluded, signature=signature)
    compiled, own_out = compiled_outside(mapped), _takes_out(pyfunc)

    @shortened
    @functools.wraps(pyfunc, updated=())
    def vectorized(*args: Any, **kwargs: Any) -> Any:
        out = None if own_out else kwargs.pop("out", None)
        args = tuple(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in args)
        plain = not (excluded or kwargs) and any(is_array(x) for x in args)
        results = (compiled if plain else mapped)(*args, **kwargs)
        if out is None:
            return results
        many = isinstance(results, tuple)
        written = stored(results if many else (results,), out)
        return written if many else written[0]

    return vectorized


def _takes_out(pyfunc: Function) -> bool:
    """Whether `out` is a parameter of the function's own."""
    try:
        return "out" in inspect.signature(pyfunc).parameters
    except (TypeError, ValueError):
        return False
