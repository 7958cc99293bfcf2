"""`associative_scan`: all prefixes under an associative operation, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.tracers import Tracer, as_value, wrap
from ..data import pytree
from ..data.shapes import ShapeDtype
from ..devices.device_calls import compiled_on_devices
from ..messages import errors
from ..messages.errors import complain
from .control import check_callable, is_plain
from .regions import show_tree

Arrays = list[Any]


@compiled_on_devices("fn", "reverse", "axis")
def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """`[e0, e0 * e1, e0 * e1 * e2, ...]` along `axis`, where `a * b` is `fn(a, b)`.

    `fn` is associative and works on many elements at once: it takes two trees of arrays, with any
    number of elements along `axis`, and combines them element by element along it. `reverse` combines
    from the end: `[..., fn(e2, e1), e2]` for three elements.

    About 2n elements are combined, in 2 log2(n) calls of `fn`: pairs are combined first, then the
    prefixes of the pairs, which are every second prefix; one more call gives the others. For an fn
    that rounds, results differ from those of a sequential loop by rounding.

    Raises jt.errors.AxisBoundsError and ShapeError for arrays without that axis or of different lengths
    along it, CarryError where `fn` returns other containers, shapes or dtypes than it takes.

    >>> jt.associative_scan(np.multiply, np.array([1, 2, 3, 4]))
    array([ 1,  2,  6, 24])
    """
    check_callable("associative_scan", "fn", fn)
    leaves, tree = pytree.flatten(elems)
    if not leaves:
        return elems
    if is_plain():
        leaves = [x if isinstance(x, Tracer) else np.asarray(x) for x in leaves]
    else:
        leaves = [wrap(as_value(x), scalar=False) for x in leaves]
    names = pytree.leaf_names(elems, "elems")
    for name, x in zip(names, leaves, strict=True):
        if not -x.ndim <= axis < x.ndim:
            complain(
                errors.AxisBoundsError,
                f"associative_scan goes along axis {axis}, which {name} does not have",
                "pass arrays with one element per step along that axis.",
                operands={name: x},
            )
    sizes = [x.shape[axis] for x in leaves]
    if len(set(sizes)) > 1:
        complain(
            errors.ShapeError,
            "associative_scan goes over arrays of different lengths: "
            + ", ".join(f"{name} has {n}" for name, n in zip(names, sizes, strict=True)),
            f"all have the same number of elements along axis {axis}.",
        )

    def combine(a: Arrays, b: Arrays) -> Arrays:
        out, structure = pytree.flatten(fn(pytree.unflatten(tree, a), pytree.unflatten(tree, b)))
        if structure != tree:
            complain(
                errors.CarryError,
                f"fn of associative_scan takes {show_tree(tree)} and returns {show_tree(structure)}",
                "return the containers that it takes.",
            )
        for name, x, y in zip(names, a, out, strict=True):
            if np.shape(y) != np.shape(x):
                complain(
                    errors.CarryError,
                    f"fn of associative_scan changes a shape at {name}: it takes {x.shape} and "
                    f"returns {np.shape(y)}",
                    f"fn takes many elements at once, and combines them along axis {axis}.",
                    operands={"argument": ShapeDtype.like(x), "result": ShapeDtype.like(y)},
                )
        return out

    at = _Axis(axis)
    if reverse:
        leaves = [at.flip(x) for x in leaves]
    prefixes = _prefixes(combine, leaves, at)
    if reverse:
        prefixes = [at.flip(x) for x in prefixes]
    return pytree.unflatten(tree, prefixes)


def _prefixes(combine: Callable[[Arrays, Arrays], Arrays], elems: Arrays, at: _Axis) -> Arrays:
    n = at.size(elems[0])
    if n < 2:
        return [x.copy() for x in elems]
    odd = combine([at.cut(x, 0, n - 1, 2) for x in elems], [at.cut(x, 1, n, 2) for x in elems])
    odd = _prefixes(combine, odd, at)  # the prefixes that end at 1, 3, 5, ...
    even = [at.cut(x, 0, 1) for x in elems]
    if n > 2:
        half = (n - 1) // 2
        rest = combine([at.cut(x, 0, half) for x in odd], [at.cut(x, 2, n, 2) for x in elems])
        even = [at.join(x, y) for x, y in zip(even, rest, strict=True)]
    return [at.interleave(x, y) for x, y in zip(even, odd, strict=True)]


class _Axis:
    """Pieces of arrays along one axis, which counts from the front or the back."""

    def __init__(self, axis: int) -> None:
        self.axis = axis

    def size(self, x: Any) -> int:
        return int(x.shape[self.axis])

    def cut(self, x: Any, start: int, stop: int, step: int = 1) -> Any:
        at = self.axis % x.ndim
        return x[(slice(None),) * at + (slice(start, stop, step),)]

    def flip(self, x: Any) -> Any:
        return np.flip(x, self.axis)

    def join(self, x: Any, y: Any) -> Any:
        return np.concatenate([x, y], axis=self.axis)

    def interleave(self, even: Any, odd: Any) -> Any:
        """even[0], odd[0], even[1], odd[1], ...; `even` may have one more."""
        at, n = self.axis % even.ndim, self.size(odd)
        shape = (*even.shape[:at], 2 * n, *even.shape[at + 1 :])
        both = np.stack([self.cut(even, 0, n), odd], axis=at + 1).reshape(shape)
        if self.size(even) == n:
            return both
        return self.join(both, self.cut(even, n, n + 1))
