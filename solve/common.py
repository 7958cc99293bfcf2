"""What solvers share: their arguments, and the linear systems behind their derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

import jitney as jt

Function = Callable[..., Any]
DENSE = 256  # unknowns from which on systems of derivatives are solved without their matrix


def refuse(what: str, remedy: str, kind: type[Exception] = jt.errors.ArgumentError) -> NoReturn:
    """An argument that nothing can be done with, with the user's line."""
    jt.errors.complain(kind, what, remedy)


def choose(what: str, given: Any, known: Iterable[str], of: str) -> None:
    """What was given for a setting is one of the known ones, of what they are `of`."""
    names = list(known)
    if given not in names:
        refuse(f"{of} has no {what} {given!r}", f"there are {', '.join(names)}.")


def function_of(f: Any, name: str, of: str) -> None:
    """An argument is a function."""
    if not callable(f):
        refuse(f"{name} is {jt.errors.describe(f)}", f"give a function of {of}.")


def pair_of(ends: Any, name: str) -> Any:
    """Two numbers, given as one argument."""
    both = jt.asarray(ends) if not isinstance(ends, (tuple, list)) else ends
    if len(both) != 2 if isinstance(both, (tuple, list)) else both.shape != (2,):
        refuse(f"{name} is {jt.errors.describe(ends)}", f"give two numbers: {name}=(a, b).")
    return floats(both[0])[()], floats(both[1])[()]


def above_zero(**numbers: Any) -> None:
    """Settings that are known and given are above 0."""
    for name, number in numbers.items():
        if number is not None and not jt.is_traced(number) and not np.all(np.asarray(number) > 0):
            refuse(f"{name}={number!r} is not above 0", "give a number above 0.", ValueError)


def floats(x: Any) -> Any:
    """`x` as an array of floats (or complex numbers)."""
    x = jt.asarray(x)
    if x.dtype.kind in "OSUT":
        refuse(f"{jt.errors.describe(x)} are no numbers", "give floats.")
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
