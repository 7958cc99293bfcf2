"""Solutions of equations as functions of what the equations depend on, however they were found."""

from __future__ import annotations

from typing import Any

import jitney as jt

from .common import Function, dense_solve


def custom_root(
    f: Function,
    initial_guess: Any,
    solve: Function,
    tangent_solve: Function | None = None,
) -> Any:
    """The root of `f` that `solve(f, initial_guess)` finds, with the derivative of the implicit function
    theorem with respect to all that `f` closes over.

    `f` gives what has the structure, shapes and dtypes of its argument: an array of floats, or a tree of
    such. `solve` may do anything; it is not differentiated. `tangent_solve(matvec, b)` solves a linear
    system `matvec(x) == b`, for the derivatives; without one the matrix is made and solved, for which
    the root has to be one array. Works in both modes, for any order, and under `jt.vmap`.

    Raises jt.errors.TransformError where shapes do not fit.

    >>> def cube_root(a):
    ...     def newton(f, x):
    ...         return jt.fori_loop(0, 30, lambda i, x: x - f(x) / (3 * x * x), x)
    ...     return jt.solve.custom_root(lambda x: x**3 - a, 1.0, newton)
    >>> float(round(jt.jit(jt.grad(cube_root))(8.0), 6))
    0.083333
    """
    found = solve(f, initial_guess)
    return jt.implicit(f, found, tangent_solve or dense_solve)


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
) -> Any:
    """`solve(matvec, b)`, which solves `matvec(x) == b`, with the derivative of such a solution with
    respect to b and to what `matvec`, a linear function, closes over.

    Derivatives ask `solve` again, and `transpose_solve(vecmat, b)` for the transposed system: by default
    `solve`, which sees the same for `symmetric` ones.

    >>> def solved(d, b):
    ...     return jt.solve.custom_linear_solve(lambda x: d * x, b, lambda matvec, b: b / d)
    >>> jt.grad(lambda d: solved(d, np.ones(2))[0])(np.array([2.0, 4.0]))
    array([-0.25, -0.  ])
    """
    found = solve(matvec, b)

    def equation(x: Any) -> Any:
        return jt.tree.map(lambda left, right: left - right, matvec(x), b)

    return jt.implicit(equation, found, solve, None if symmetric else transpose_solve)
