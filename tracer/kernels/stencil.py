"""`stencil`: a function of an element and its neighbours, for all elements of an array.

    return a[-1] + a[1]      ->      padded or result: x[:-2] + x[2:], the same for each element

The function is traced once to see which neighbours it reads; then each of them is a shifted slice,
and the function of these numbers is batched over all elements. So what comes of it is elementwise code
over views, which is fused, and whose derivative is a stencil again: sums of shifted slices, no scatter.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...ir.record import record
from ...ir.types import TensorType
from ..arrays.common import common_dtype
from ..core.specs import Spec, Static, is_array, spec_of
from ..core.tracers import Tracer
from ..core.tracing import trace_function
from ..data import pytree
from ..data.callables import Function, function_name
from ..data.promotion import same_kind
from ..messages import errors
from ..messages.errors import complain, describe
from ..messages.tracebacks import shortened
from .calls import compiled_outside, refuse_shape
from .neighbours import Neighbours, Offset
from .shifted import Reach, Shifted, assembled

_MODES = {"wrap": "wrap", "reflect": "reflect", "symmetric": "symmetric", "edge": "edge"}
_MODES |= {"nearest": "edge", "constant": "constant"}


@shortened
def stencil(
    func_or_mode: Function | str = "constant",
    *,
    neighborhood: Sequence[Reach] | None = None,
    cval: Any = None,
    standard_indexing: Collection[str] = (),
) -> Any:
    """A function of an element and its neighbours, over all elements of its first argument.

        @jt.stencil
        def laplace(a):
            return a[-1, 0] + a[1, 0] + a[0, -1] + a[0, 1] - 4 * a[0, 0]

        @jt.stencil("wrap", neighborhood=((-2, 2),), standard_indexing=("weights",))
        def blur(a, weights):
            total = 0.0
            for k in range(-2, 3):
                total += weights[k + 2] * a[k]
            return total

    In the function the index of an array counts from the element. It may branch, loop and call; numbers
    reach it as they are. The result has the shape of the first argument, and the dtype that the
    function returns.

    func_or_mode       the function, or what lies beyond the edges:
        "constant"     nothing: results whose neighbours are not all there are `cval`
        "wrap"         the other end of the array: c d | a b c d | a b
        "reflect"      the array in a mirror at the last element: c b | a b c d | c b
        "symmetric"    in a mirror behind it: b a | a b c d | d c
        "edge"         the last element again and again: a a | a b c d | d d; also "nearest"
    neighborhood       for each axis how far neighbours lie before and behind, (-2, 2); without it as far
                       as the function reads
    cval               the result at the edges under "constant"; 0 unless it is given
    standard_indexing  names of arrays whose index counts from their beginning

    It is called with `out=`, too: an array for the result, of which "constant" without `cval` leaves
    the edges as they are. It has derivatives and batches, compiles at the first call for the types of
    its arguments, as by `jt.jit`, and is a part of compiled functions that call it.

    Raises jt.errors.TransformError for indices that are no known integers, or outside of the
    neighbourhood, ShapeError for arrays that are smaller than the first, and DTypeError for a `cval`
    that the result cannot hold.

    >>> jt.stencil("edge")(lambda a: a[-1] + a[1])(np.array([1, 2, 4]))
    array([3, 5, 6])
    """
    if callable(func_or_mode):
        return _stencil(func_or_mode, "constant", neighborhood, cval, standard_indexing)
    mode = _MODES.get(func_or_mode)
    if mode is None:
        complain(
            errors.TransformError,
            f"{func_or_mode!r} is no way in which an array goes on beyond its edges",
            f"write one of {', '.join(map(repr, _MODES))}.",
        )
    if cval is not None and mode != "constant":
        complain(
            errors.TransformError,
            f"cval={cval!r} is the result at the edges, where the mode {func_or_mode!r} computes one",
            'leave it out, or use the mode "constant".',
        )
    return lambda function: _stencil(function, mode, neighborhood, cval, standard_indexing)


def _stencil(
    function: Function,
    mode: str,
    neighborhood: Sequence[Reach] | None,
    cval: Any,
    standard_indexing: Collection[str],
) -> Function:
    own = _Stencil(function, mode, neighborhood, 0 if cval is None else cval, standard_indexing)
    whole, inner = compiled_outside(own.whole), compiled_outside(own.inner)

    @shortened
    @functools.wraps(function, updated=())
    def call(*args: Any, out: Any = None) -> Any:
        args = own.checked(args)
        if out is None:
            return whole(*args)
        refuse_shape(args[0], out)
        if mode != "constant" or cval is not None:
            np.copyto(out, whole(*args), casting="same_kind")
            return out
        values, low = inner(*args)
        part = tuple(slice(k, k + n) for k, n in zip(low, np.shape(values), strict=True))
        np.copyto(out[part], values, casting="same_kind")
        return out

    return call


@record(frozen=False)
class _Stencil:
    """A stencil and its options."""

    function: Function
    mode: str
    neighborhood: Sequence[Reach] | None
    cval: Any
    standard_indexing: Collection[str]

    def checked(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as arrays and numbers."""
        args = tuple(np.asarray(x) if isinstance(x, (list, tuple)) else x for x in args)
        if not args or not np.ndim(args[0]):
            complain(
                errors.TransformError,
                f"the first argument of the stencil {function_name(self.function)} is its array",
                "pass an array of one axis or more.",
            )
        return args

    def _names(self, count: int) -> list[str]:
        code = getattr(self.function, "__code__", None)
        names = list(code.co_varnames[: code.co_argcount]) if code is not None else []
        return (names + [""] * count)[:count]

    def _is_relative(self, args: Sequence[Any]) -> list[bool]:
        names = self._names(len(args))
        return [
            np.ndim(x) > 0 and name not in self.standard_indexing
            for x, name in zip(args, names, strict=True)
        ]

    # What it reads.

    def read(self, args: Sequence[Any], relative: Sequence[bool]) -> list[list[Offset]]:
        """The neighbours that the function reads, of each array that is relative, in order."""
        seen: list[dict[Offset, None]] = [{} for _ in args]
        specs: list[Spec | Static] = []
        for x, own in zip(args, relative, strict=True):
            if own:
                specs.append(Spec(TensorType((), spec_of(x).type.dtype), None, True))
            else:
                specs.append(spec_of(x) if is_array(x) else Static(x))
        function = self.function

        @functools.wraps(function, updated=())
        def probe(*values: Any) -> Any:
            stand_ins = []
            for k, (x, value) in enumerate(zip(args, values, strict=True)):
                note = functools.partial(_noted, seen[k], value)
                stand_ins.append(Neighbours(x, note) if relative[k] else value)
            return function(*stand_ins)

        tree = pytree.flatten((tuple(range(len(args))), {}))[1]
        trace_function(probe, specs, tree, what="stencil", refuse_as=function, conditional=True)
        return [list(s) for s in seen]

    def reaches(self, offsets: Sequence[Sequence[Offset]], rank: int) -> list[Reach]:
        """How far neighbours lie, along each axis."""
        every = [o for own in offsets for o in own]
        if self.neighborhood is None:
            sides = [[0, *(o[d] for o in every)] for d in range(rank)]
            return [(min(side), max(side)) for side in sides]
        given = [(int(low), int(high)) for low, high in self.neighborhood]
        if len(given) != rank or any(low > 0 or high < 0 for low, high in given):
            complain(
                errors.TransformError,
                f"neighborhood={self.neighborhood!r} does not fit an array of {rank} axes",
                "give one pair for each axis, as in neighborhood=((-1, 1), (0, 2)).",
            )
        for offset in every:
            if any(not low <= k <= high for k, (low, high) in zip(offset, given, strict=True)):
                complain(
                    errors.TransformError,
                    f"{function_name(self.function)} reads the neighbour {list(offset)}, outside of "
                    f"neighborhood={self.neighborhood!r}",
                    "widen it, or leave it out.",
                )
        return given

    # What it computes.

    def inner(self, *args: Any) -> tuple[Any, Offset]:
        """The results whose neighbours are all there, and where they begin."""
        work = self._work(args)
        low = [min(-before, n) for (before, _), n in zip(work.reaches, work.shape, strict=True)]
        return work.inside(work.arrays), tuple(low)

    def whole(self, *args: Any) -> Any:
        work = self._work(args)
        if self.mode != "constant":
            return work.continued(self.mode)
        values = work.inside(work.arrays)
        if not same_kind(common_dtype(self.cval, values), values.dtype):
            complain(
                errors.DTypeError,
                f"{function_name(self.function)} returns {values.dtype}, which cannot hold cval="
                f"{self.cval!r}",
                "return floats: 1.0 * a[0]; or give another cval.",
            )
        if values.shape == work.shape:
            return values
        low = [min(-before, n) for (before, _), n in zip(work.reaches, work.shape, strict=True)]
        edges = np.full_like(values, self.cval, shape=work.shape)
        return assembled(edges, [(tuple(low), values)])

    def _work(self, args: tuple[Any, ...]) -> Shifted:
        shape = np.shape(args[0])
        relative = self._is_relative(args)
        for k, (x, own) in enumerate(zip(args, relative, strict=True)):
            if own:
                self._refuse_small(x, k, shape)
        offsets = self.read(args, relative)
        reaches = self.reaches(offsets, len(shape))
        places = [(k, o) for k, own in enumerate(relative) if own for o in offsets[k]]
        arrays = {k: x for k, (x, own) in enumerate(zip(args, relative, strict=True)) if own}
        rest = [x for x, own in zip(args, relative, strict=True) if not own]
        one = self._one(args, relative, places)
        return Shifted(one, shape, reaches, places, arrays, rest)

    def _one(
        self, args: Sequence[Any], relative: Sequence[bool], places: Sequence[tuple[int, Offset]]
    ) -> Function:
        """The function of the neighbours' values, and of the arguments that are no arrays of them."""
        function = self.function

        @functools.wraps(function, updated=())
        def one(*values: Any) -> Any:
            tables: list[dict[Offset, Any]] = [{} for _ in args]
            for (k, offset), value in zip(places, values, strict=False):
                tables[k][offset] = value
            rest = iter(values[len(places) :])
            given = [
                Neighbours(x, tables[k].__getitem__) if relative[k] else next(rest)
                for k, x in enumerate(args)
            ]
            out = function(*given)
            if not isinstance(out, (Tracer, np.generic, bool, int, float, complex)) or np.ndim(out):
                complain(
                    errors.TransformError,
                    f"the stencil {function_name(function)} returned {describe(out)}",
                    "return one number for the element.",
                )
            return out

        return one

    def _refuse_small(self, x: Any, k: int, shape: tuple[int, ...]) -> None:
        own = np.shape(x)
        fits = own == shape if self.mode != "constant" else len(own) == len(shape)
        if fits and all(n >= m for n, m in zip(own, shape, strict=True)):
            return
        complain(
            errors.ShapeError,
            f"argument {k} of the stencil {function_name(self.function)} has the shape {own}, and the "
            f"first {shape}",
            "pass arrays of one shape; name those that are indexed from their beginning: "
            f"standard_indexing=({self._names(k + 1)[k]!r},).",
        )


def _noted(seen: dict[Offset, None], value: Any, offset: Offset) -> Any:
    seen[offset] = None
    return value
