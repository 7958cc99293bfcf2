"""Linear systems without their matrix: `cg`, `bicgstab`, `gmres`, with the arguments of
`scipy.sparse.linalg`.

The matrix is an array, a function that multiplies by it, or an object with `matvec`. Solutions are
differentiated as such (`jt.implicit`), not step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jitney as jt

from .common import Function, floats, refuse


def _product(a: Any, n: int, what: str = "A") -> Function:
    """Multiplication by `a`."""
    if a is None:
        return lambda v: v
    multiply = getattr(a, "matvec", a)
    if callable(multiply):
        return multiply
    if not hasattr(a, "shape"):
        a = jt.asarray(a)
    if tuple(a.shape) != (n, n):
        refuse(
            f"{what} has shape {tuple(a.shape)}, and b has {n} elements",
            f"give a matrix of shape {(n, n)}, or a function of vectors.",
        )
    return lambda v: a @ v


def _system(a: Any, b: Any, m: Any) -> tuple[Function, Any, Function]:
    b = floats(b)
    if b.ndim != 1 and b.shape[1:] != (1,):
        refuse(f"b has shape {b.shape}", "give a vector; use jt.vmap for several.")
    if b.dtype.itemsize < 4:
        refuse(f"b is {b.dtype}", "convert it with .astype(np.float32).")
    vector = jt.reshape(b, (-1,))
    product = _product(a, vector.shape[0])

    def checked(v: Any) -> Any:
        made = product(v)
        if getattr(made, "shape", None) != v.shape:
            refuse(
                f"A makes {jt.errors.describe(made)} of a vector of {v.shape[0]} elements",
                "A has to be square.",
            )
        return made

    return checked, vector, _product(m, vector.shape[0], "M")


def _solved(method: Any, a: Any, b: Any, x0: Any, m: Any, options: Any, symmetric: bool) -> Any:
    """What `method` finds, as the solution of the system; and whether it did."""
    product, vector, near = _system(a, b, m)
    first = jt.zeros_like(vector)
    if x0 is not None:
        first = jt.reshape(floats(x0), (-1,)).astype(vector.dtype)
        if first.shape != vector.shape:
            what = f"x0 has {first.shape[0]} elements, and b {vector.shape[0]}"
            refuse(what, "give a first guess for each unknown.")
    found, info = method(product, vector, first, near, *options)

    def again(matvec: Function, b: Any) -> Any:
        return method(matvec, b, jt.zeros_like(b), near, *options)[0]

    def transposed(matvec: Function, b: Any) -> Any:
        if m is None:
            return again(matvec, b)
        pull = jt.vjp(near, b)[1]
        return method(matvec, b, jt.zeros_like(b), lambda v: pull(v)[0], *options)[0]

    if vector.dtype.kind == "c":
        return jt.stop_gradient(found), info
    turned = again if symmetric else transposed
    return jt.implicit(lambda x: product(x) - vector, found, again, turned), info


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """`scipy.sparse.linalg.cg`: the solution of `A x = b` for a symmetric positive definite A, and 0, or
    the number of iterations if it did not converge.

    A: a matrix, or a function of vectors; M: the same for an approximation of its inverse. It has
    converged when the residual is at most `max(atol, rtol * norm(b))`.

    >>> x, info = jt.solve.cg(np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([3.0, 4.0]))
    >>> np.round(x, 6), int(info)
    (array([1., 1.]), 0)
    """
    return _iterated(_cg, A, b, x0, M, (rtol, atol, maxiter), True)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """`scipy.sparse.linalg.bicgstab`: as `cg`, for any square A.

    >>> x, info = jt.solve.bicgstab(np.array([[2.0, 1.0], [0.0, 3.0]]), np.array([3.0, 3.0]))
    >>> np.round(x, 6), int(info)
    (array([1., 1.]), 0)
    """
    return _iterated(_bicgstab, A, b, x0, M, (rtol, atol, maxiter), False)


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """`scipy.sparse.linalg.gmres`: as `cg`, for any square A, with `restart` vectors in memory (20), and
    at most `maxiter` restarts.

    >>> x, info = jt.solve.gmres(lambda v: v + np.roll(v, 1) / 2, np.ones(3))
    >>> np.round(x, 6), int(info)
    (array([0.666667, 0.666667, 0.666667]), 0)
    """
    n = np.size(b) if not hasattr(b, "shape") else int(np.prod(b.shape))
    width = max(1, min(20 if restart is None else int(restart), n))
    return _iterated(_gmres, A, b, x0, M, (rtol, atol, maxiter, width), False)


@jt.jit(static_argnames=("method", "options", "symmetric"))
def _compiled(method: Any, a: Any, b: Any, x0: Any, m: Any, options: Any, symmetric: bool) -> Any:
    return _solved(method, a, b, x0, m, options, symmetric)


def _iterated(method: Any, a: Any, b: Any, x0: Any, m: Any, options: Any, symmetric: bool) -> Any:
    if any(not isinstance(o, (int, float, type(None))) for o in options):
        return _solved(method, a, b, x0, m, options, symmetric)
    return _compiled(method, a, b, x0, m, options, symmetric)


def _norm(x: Any) -> Any:
    return np.sqrt(np.real(jt.vdot(x, x)))


def _limits(b: Any, rtol: Any, atol: Any, maxiter: Any) -> tuple[Any, Any]:
    return np.maximum(atol, rtol * _norm(b)), 10 * b.shape[0] if maxiter is None else maxiter


def _info(residual: Any, limit: Any, k: Any) -> Any:
    return jt.where(residual <= limit, 0, np.maximum(k, 1))[()]


def _cg(a: Function, b: Any, x: Any, m: Function, rtol: Any, atol: Any, maxiter: Any) -> Any:
    limit, most = _limits(b, rtol, atol, maxiter)

    def body(carry: Any) -> Any:
        x, r, z, p, rho, _, k = carry
        q = a(p)
        alpha = rho / jt.vdot(p, q)
        x, r = x + alpha * p, r - alpha * q
        z = m(r)
        new = jt.vdot(r, z)
        return x, r, z, z + (new / rho) * p, new, _norm(r), k + 1

    r = b - a(x)
    z = m(r)
    carry = (x, r, z, z, jt.vdot(r, z), _norm(r), 0)
    x, *_, size, k = jt.while_loop(lambda c: (c[5] > limit) & (c[6] < most), body, carry)
    return x, _info(size, limit, k)


def _bicgstab(a: Function, b: Any, x: Any, m: Function, rtol: Any, atol: Any, maxiter: Any) -> Any:
    limit, most = _limits(b, rtol, atol, maxiter)

    def body(carry: Any) -> Any:
        x, r, p, v, rho, alpha, omega, _, k = carry
        new = jt.vdot(shadow, r)
        beta = jt.where(k == 0, 0.0, (new / rho) * (alpha / omega))
        p = r + beta * (p - omega * v)
        p_near = m(p)
        v = a(p_near)
        alpha = new / jt.vdot(shadow, v)
        s = r - alpha * v
        s_near = m(s)
        t = a(s_near)
        tt = jt.vdot(t, t)
        omega = jt.where(tt == 0, 0.0, jt.vdot(t, s) / jt.where(tt == 0, 1.0, tt))
        r = s - omega * t
        return x + alpha * p_near + omega * s_near, r, p, v, new, alpha, omega, _norm(r), k + 1

    r = shadow = b - a(x)
    one, zero = jt.ones_like(jt.vdot(r, r)), jt.zeros_like(b)
    carry = (x, r, zero, zero, one, one, one, _norm(r), 0)
    x, *_, size, k = jt.while_loop(lambda c: (c[7] > limit) & (c[8] < most), body, carry)
    return x, _info(size, limit, k)


def _gmres(
    a: Function, b: Any, x: Any, m: Function, rtol: Any, atol: Any, maxiter: Any, width: int
) -> Any:
    """Restarted, with M on the right, so that the residual is that of the system."""
    limit, most = _limits(b, rtol, atol, maxiter)

    def cycle(carry: Any) -> Any:
        x, r, size, k = carry
        x = x + m(_smallest_residual(lambda v: a(m(v)), r, size, limit, width))
        r = b - a(x)
        return x, r, _norm(r), k + 1

    r = b - a(x)
    carry = (x, r, _norm(r), 0)
    x, _, size, k = jt.while_loop(lambda c: (c[2] > limit) & (c[3] < most), cycle, carry)
    return x, _info(size, limit, k)


def _smallest_residual(a: Function, r: Any, size: Any, limit: Any, width: int) -> Any:
    """The z of the Krylov space of so many products for which `r - a(z)` is smallest.

    The basis stands in the rows of `basis`, its latest vector in v too; rotations keep the coefficients
    triangular (`upper`), so that the last element of `rhs` is the size of the residual.
    """

    def body(carry: Any) -> Any:
        basis, v, upper, cosines, sines, rhs, _, k = carry

        def without(j: Any, carry: Any) -> Any:
            w, h = carry
            h[j] = jt.vdot(basis[j], w)
            return w - h[j] * basis[j], h

        w, h = jt.fori_loop(0, k + 1, without, (a(v), jt.zeros(width + 1, dtype)))
        rest = _norm(w)
        v = w / jt.where(rest > 0, rest, 1)
        basis[k + 1] = v

        def rotate(i: Any, h: Any) -> Any:
            one, other = h[i], h[i + 1]
            h[i] = cosines[i] * one + sines[i] * other
            h[i + 1] = cosines[i] * other - np.conj(sines[i]) * one
            return h

        h = jt.fori_loop(0, k, rotate, h)
        pivot = h[k]
        length = np.sqrt(np.real(pivot * np.conj(pivot)) + rest * rest)
        safe = jt.where(length > 0, length, 1)
        turn = jt.where(pivot == 0, 1.0, pivot / jt.where(pivot == 0, 1.0, np.abs(pivot)))
        cosines[k] = np.abs(pivot) / safe
        sines[k] = turn * rest / safe
        h[k] = turn * length
        upper[k] = h[:width]
        rhs[k + 1] = -np.conj(sines[k]) * rhs[k]
        rhs[k] = cosines[k] * rhs[k]
        return basis, v, upper, cosines, sines, rhs, np.abs(rhs[k + 1]), k + 1

    dtype = r.dtype
    basis = jt.zeros((width + 1, r.shape[0]), dtype)
    v = r / jt.where(size > 0, size, 1)
    basis[0] = v
    rhs = jt.zeros(width + 1, dtype)
    rhs[0] = size
    carry = (
        *(basis, v, jt.zeros((width, width), dtype), jt.zeros(width, size.dtype)),
        *(jt.zeros(width, dtype), rhs, size, 0),
    )
    loop = jt.while_loop(lambda c: (c[6] > limit) & (c[7] < width), body, carry)
    basis, _, upper, _, _, rhs, _, k = loop

    def back(i: Any, y: Any) -> Any:
        j = k - 1 - i
        pivot = upper[j, j]
        value = (rhs[j] - y @ upper[:, j]) / jt.where(pivot == 0, 1, pivot)
        y[j] = jt.where(pivot == 0, 0, value)
        return y

    return jt.fori_loop(0, k, back, jt.zeros(width, dtype)) @ basis[:width]
