"""`check_grads` and `compute_gradient_error`: derivatives against central differences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.types import finfo, is_complex, is_small, real_dtype
from ..core.specs import is_inexact_leaf
from ..core.tracers import Tracer
from ..data import pytree
from ..data.callables import check_callable
from ..data.entering import open_call
from ..data.opened import leaves as leaves_of
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from .derivatives import jvp, vjp

# The step balances rounding (eps_machine / step) against truncation (step**2): its cube root.
_STEP = {4: 5e-3, 8: 6e-6}
_TOLERANCE = {4: 5e-3, 8: 1e-5}


@shortened
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 1,
    modes: Sequence[str] = ("fwd", "rev"),
    *,
    eps: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> None:
    """Raise AssertionError unless `f`'s derivatives at `args` agree with central differences.

    In mode "fwd" the directional derivative of `jt.jvp` is compared, in mode "rev" the product of
    `jt.vjp` with a cotangent, along one random direction (the same in each run). `order=2` checks
    the derivatives of these derivatives too. The step `eps` and the tolerances default to what
    the lowest precision among the float arguments allows. Integer leaves stay as they are. Complex
    arguments move in a complex direction, and products are Re(cotangent * tangent).

    Raises jt.errors.TransformError under jit.

    >>> jt.check_grads(np.sin, (1.0,), order=2)
    """
    check_callable(f, "check_grads")
    unknown = set(modes) - {"fwd", "rev"}
    if unknown or not modes:
        raise ValueError(f"modes are 'fwd' and 'rev', not {sorted(unknown) or list(modes)}")
    if order < 1:
        raise ValueError(f"order must be at least 1, not {order}")
    f, args = open_call(f, tuple(args))
    leaves = pytree.flatten(args)[0]
    _refuse_traced("check_grads", leaves)
    floats = [leaf for leaf in leaves if is_inexact_leaf(leaf)]
    parts = (real_dtype(np.asarray(x).dtype) for x in floats)
    dtype = min(parts, key=lambda d: d.itemsize, default=None)
    if dtype is None:
        raise TypeError("check_grads needs a float argument: integers have no derivative")
    unit = float(finfo(dtype).eps)
    small = is_small(dtype)
    eps = (unit ** (1 / 3) if small else _STEP[dtype.itemsize]) if eps is None else eps
    tolerance = 8 * unit ** (2 / 3) if small else _TOLERANCE[dtype.itemsize]
    rtol = tolerance if rtol is None else rtol
    atol = tolerance if atol is None else atol
    _check(f, args, order, tuple(modes), eps, rtol, atol, np.random.default_rng(0))


def _refuse_traced(name: str, leaves: Sequence[Any]) -> None:
    for leaf in leaves:
        if isinstance(leaf, Tracer):
            complain(
                errors.TransformError,
                f"{name} compares numbers, and under jit there are none yet",
                f"call jt.{name} outside of the compiled function.",
                operands={"x": leaf},
            )


@shortened
def compute_gradient_error(f: Callable[..., Any], x: Any, delta: float = 1e-3) -> float:
    """The largest absolute difference between the Jacobian of `f` at `x` and its estimate.

    The estimate is `(f(x + delta e) - f(x - delta e)) / (2 delta)` for each element of `x`, and the
    Jacobian is that of `jt.vjp`: the number that TensorFlow's function of this name gives. `x` is an
    array, or a list or tuple of arrays, the arguments of `f`. Integer arguments stay as they are.

    Raises jt.errors.TransformError under jit.

    >>> bool(jt.compute_gradient_error(np.sin, [1.0]) < 1e-6)
    True
    """
    check_callable(f, "compute_gradient_error")
    args = tuple(x) if isinstance(x, (list, tuple)) else (x,)
    leaves, tree = pytree.flatten(args)
    _refuse_traced("compute_gradient_error", leaves)
    if not any(is_inexact_leaf(leaf) for leaf in leaves):
        raise TypeError("compute_gradient_error needs a float argument")
    out, vjp_fn = vjp(f, *args)
    outs, out_tree = pytree.flatten(out)
    floats = [k for k, y in enumerate(outs) if is_inexact_leaf(y)]
    rows = [_rows(vjp_fn, tree, outs, out_tree, k) for k in floats]
    worst = 0.0
    for i, leaf in enumerate(leaves):
        if not is_inexact_leaf(leaf):
            continue
        for j, way in itertools.product(range(np.size(leaf)), _directions(leaf)):
            moved = [_moved(leaves, i, j, way * step) for step in (delta, -delta)]
            high, low = (pytree.flatten(f(*pytree.unflatten(tree, m)))[0] for m in moved)
            for k, row in zip(floats, rows, strict=True):
                estimate = (_wide(high[k]) - _wide(low[k])).reshape(-1) / (2 * delta)
                # A complex element has a row for its real and one for its imaginary part.
                seeds = _seeds(outs[k])
                estimates = np.array([(seed * x).real for x in estimate for seed in seeds])
                column = np.array([(np.asarray(g[i]).reshape(-1)[j] * way).real for g in row])
                worst = max(worst, float(np.max(np.abs(column - estimates), initial=0.0)))
    return worst


def _directions(leaf: Any) -> tuple[complex, ...]:
    """Along the real axis, and for complex numbers along the imaginary one."""
    return (1, 1j) if is_complex(np.asarray(leaf).dtype) else (1,)


def _seeds(leaf: Any) -> tuple[complex, ...]:
    """The cotangents whose products with a tangent are its real and its imaginary part."""
    return (1, -1j) if is_complex(np.asarray(leaf).dtype) else (1,)


def _wide(x: Any) -> Any:
    """`x` in double precision."""
    array = np.asarray(x)
    return array.astype(np.complex128 if is_complex(array.dtype) else np.float64)


def _rows(
    vjp_fn: Any, in_tree: pytree.TreeDef, outs: list[Any], tree: pytree.TreeDef, k: int
) -> list[list[Any]]:
    """The rows of the Jacobian for the elements of result `k`: leaves, None for integers."""
    rows = []
    for j, way in itertools.product(range(np.size(outs[k])), _seeds(outs[k])):
        seeds: list[Any] = [np.zeros_like(y) if is_inexact_leaf(y) else None for y in outs]
        one = np.zeros(np.shape(outs[k]), np.asarray(outs[k]).dtype)
        one.reshape(-1)[j] = way
        seeds[k] = one[()]
        rows.append(in_tree.flatten_up_to(vjp_fn(pytree.unflatten(tree, seeds))))
    return rows


def _moved(leaves: list[Any], i: int, j: int, step: complex) -> list[Any]:
    """The leaves, with `step` added to element `j` of leaf `i`."""
    array = np.array(leaves[i])
    array.reshape(-1)[j] += step
    moved = [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
    moved[i] = array if isinstance(leaves[i], np.ndarray) else type(leaves[i])(array[()])
    return moved


def _check(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    order: int,
    modes: tuple[str, ...],
    eps: float,
    rtol: float,
    atol: float,
    rng: np.random.Generator,
) -> None:
    tangents = _random_like(args, rng)
    numerical = _central_difference(f, args, tangents, eps)
    if "fwd" in modes:
        out_tangent = jvp(f, args, tangents)[1]
        _compare("forward mode (jvp)", out_tangent, numerical, rtol, atol)
    if "rev" in modes:
        out, vjp_fn = vjp(f, *args)
        cotangent = _random_like(out, rng)
        product = _inner(vjp_fn(cotangent), tangents)
        _compare("reverse mode (vjp)", product, _inner(cotangent, numerical), rtol, atol)
    if order == 1:
        return
    if "fwd" in modes:
        _check(
            lambda *x: _floats_only(jvp(f, x, tangents)[1]),
            args, order - 1, modes, eps, rtol, atol, rng,
        )  # fmt: skip
    if "rev" in modes:
        _check(
            lambda *x: _floats_only(vjp(f, *x)[1](cotangent)),
            args, order - 1, modes, eps, rtol, atol, rng,
        )  # fmt: skip


def _random_like(tree: Any, rng: np.random.Generator) -> Any:
    """A direction: normal numbers for float leaves, None for the others."""

    def sample(leaf: Any) -> Any:
        if not is_inexact_leaf(leaf):
            return None
        array = np.asarray(leaf)
        sampled = rng.normal(size=array.shape)
        if is_complex(array.dtype):
            sampled = sampled + 1j * rng.normal(size=array.shape)
        sampled = np.asarray(sampled).astype(array.dtype)
        return sampled if isinstance(leaf, np.ndarray) else sampled[()]

    return pytree.tree_map(sample, tree)


def _floats_only(tree: Any) -> list[Any]:
    return [leaf for leaf in leaves_of(tree) if leaf is not None]


def _central_difference(f: Callable[..., Any], args: Any, tangents: Any, eps: float) -> Any:
    """`(f(x + eps t) - f(x - eps t)) / (2 eps)` for the float leaves of the result."""

    def moved(by: float) -> list[Any]:
        def step(x: Any, t: Any) -> Any:
            if t is None:
                return x.copy() if isinstance(x, np.ndarray) else x
            return (x + t * by).astype(x.dtype) if hasattr(x, "dtype") else type(x)(x + t * by)

        return leaves_of(f(*pytree.tree_map(step, args, tangents)))

    high, low = moved(eps), moved(-eps)
    return [
        (_wide(h) - _wide(l)) / (2 * eps)
        for h, l in zip(high, low, strict=True)  # noqa: E741
        if is_inexact_leaf(h)
    ]


def _inner(a: Any, b: Any) -> np.float64:
    pairs = zip(_floats_only(a), _floats_only(b), strict=True)
    return np.float64(sum(np.sum((_wide(x) * y).real) for x, y in pairs))


def _compare(what: str, computed: Any, expected: Any, rtol: float, atol: float) -> None:
    for x, y in zip(_floats_only(computed), _floats_only(expected), strict=True):
        np.testing.assert_allclose(
            _wide(x),
            y,
            rtol=rtol,
            atol=atol,
            err_msg=f"{what} disagrees with central differences",
        )
