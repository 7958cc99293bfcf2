"""What solvers share: their arguments, and the linear systems behind their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

Function = Callable[..., Any]
DENSE = 256  # unknowns from which on systems of derivatives are solved without their matrix


def refuse(what: str, remedy: str) -> None:
    """An argument that nothing can be done with, with the user's line."""
    jt.errors.complain(jt.errors.ArgumentError, what, remedy)


def floats(x: Any) -> Any:
    """`x` as an array of floats (or complex numbers)."""
    x = jt.asarray(x)
    return x if x.dtype.kind in "fc" or x.dtype.kind == "V" else x.astype(np.float64)


def start(x0: Any) -> Any:
    """The first guess: a vector of floats, of its own memory."""
    x = floats(x0)
    if x.ndim > 1:
        refuse(f"x0 has shape {x.shape}", "give a vector; reshape it in the function.")
    return jt.reshape(x, (-1,)) + 0


def arguments(args: Any) -> tuple[Any, ...]:
    """What `args=` stands for: one argument needs no tuple."""
    return args if isinstance(args, tuple) else (args,)


def numbers(fields: Any) -> Any:
    """A tree whose arrays without dimensions are numbers, as results have them."""
    return jt.tree.map(lambda v: v[()] if getattr(v, "shape", None) == () else v, fields)


def only(options: dict[str, Any] | None, known: dict[str, Any], what: str) -> dict[str, Any]:
    """`known` with the values that `options` have for them; others are no options."""
    options = {} if options is None else dict(options)
    options.pop("disp", None)
    unknown = [name for name in options if name not in known]
    if unknown:
        refuse(f"{what} has no option {unknown[0]!r}", f"its options are {', '.join(known)}.")
    return {**known, **options}


def matrix_of(matvec: Function, like: Any) -> Any:
    """The matrix of a linear function of vectors like `like`."""
    return jt.vmap(matvec, out_axes=-1)(np.eye(like.size, dtype=like.dtype))


def dense_solve(matvec: Function, b: Any) -> Any:
    """The solution of `matvec(x) == b` by the matrix of matvec; b is an array of any shape.

    >>> jt.solve.dense_solve(lambda x: 2 * x, np.ones(2))
    array([0.5, 0.5])
    """
    flat = jt.reshape(b, (-1,))

    def of_vectors(v: Any) -> Any:
        return jt.reshape(matvec(jt.reshape(v, b.shape)), (-1,))

    return jt.reshape(np.linalg.solve(matrix_of(of_vectors, flat), flat), b.shape)


def elementwise_solve(matvec: Function, b: Any) -> Any:
    """The same for a matrix that is diagonal."""
    return b / matvec(jt.ones_like(b))
