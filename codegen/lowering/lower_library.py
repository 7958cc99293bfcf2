"""Lowering of ops that loops of NumPy's compute (`ir.ops.libraries`): arrays, and steps through them.

A loop reads and writes complex numbers as they lie in memory. Where the two parts of an operand are
those of one complex input, and those of a result of one output, that memory serves; else they are
copied.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ...ir.graph import Op, Value
from ...ir.ops.libraries.library import LibraryLoop, loop_of
from ..loop_ir.index import Index
from ..loop_ir.kernel import Array, Stage
from ..schedule.fourier_plan import lanes
from ..schedule.tiled import Fourier, LibraryCall
from ..sizes import has_size
from .lower import HOMES, Lowering, indices, lowering, variables
from .lower_control import contiguous

FOURIER = "numpy.fft._pocketfft_umath"
KINDS = {"fft": "fft", "ifft": "ifft", "rfft_n_even": "rfft", "irfft": "irfft"}


class _Argument(NamedTuple):
    """An array that a loop takes: the dims before its items, and whether its last dim holds pairs.

    `parts` are the arrays of these pairs' halves, where it is the memory of an input or output.
    """

    array: Array
    lead: int
    paired: bool
    parts: tuple[Array, ...] = ()

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays by which other steps know this memory."""
        return self.parts or (self.array,)

    @property
    def walked(self) -> list[int]:
        """The strides of its dims, in bytes, without that of pairs."""
        strides = self.array.strides[: len(self.array.shape) - self.paired]
        return [s * self.array.dtype.itemsize for s in strides]

    @property
    def item_step(self) -> int | None:
        """Bytes from item to item; None if not all are as far apart."""
        lead = zip(self.array.shape[: self.lead], self.walked[: self.lead], strict=True)
        dims = [(n, step) for n, step in lead if n != 1]
        if any(step != n * inner for (_, step), (n, inner) in pairwise(dims)):
            return None
        return dims[-1][1] if dims else 0

    def fitting(self, low: Lowering) -> _Argument:
        """This one, or a copy whose items are equally far apart."""
        if self.item_step is not None:
            return self
        array = contiguous(low, self.array)
        assert array is not None
        return self._replace(array=array, parts=())


@lowering(*(name for name, module in HOMES.items() if module == "lowering.lower_library"))
def _library(low: Lowering, op: Op) -> None:
    if op.name == "library_call":
        loop, pairs = op.attrs["loop"], op.attrs["pairs"]
    else:
        loop = loop_of(op)
        pairs = (False,) * (len(op.operands) + len(op.results))
    lead = len(op.operands[0].shape) - len(loop.cores[0])
    batch = math.prod(op.operands[0].shape[:lead])
    values = iter(op.operands)
    arguments = [
        _interleaved(low, next(values), next(values), lead)
        if paired
        else _Argument(low.materialise(next(values)), lead, False)
        for paired in pairs[: len(pairs) - len(op.results)]
    ]
    made = [
        _destination(low, v, lead) if paired else _Argument(low.array_for(v), lead, False)
        for v, paired in zip(op.results, pairs[len(arguments) :], strict=True)
    ]
    low.arrays.update(zip(op.results, (a.array for a in made), strict=True))
    if batch == 0:
        return
    if loop.in_place:
        low.copy(arguments[0].array, made[0].array)
        arguments[0] = made.pop(0)
    arguments = [argument.fitting(low) for argument in arguments]
    steps = [a.item_step or 0 for a in arguments] + [0] * len(loop.constants)
    steps += [a.item_step or 0 for a in made]
    for argument in (*arguments, *made):
        steps += argument.walked[lead:]
    operands, results = [a.array for a in arguments], [a.array for a in made]
    read = [array for a in arguments for array in a.arrays]
    written = [array for a in made for array in a.arrays]
    if loop.in_place:
        read, written = [operands[0], *read], [operands[0], *arguments[0].parts, *written]
    own = _fourier(low, loop, arguments, made, read, written) if loop.module == FOURIER else None
    if own is not None:
        own.loc = op.loc
        low.items.append(own)
        return
    site = low.context.site("linalg", loop.failure, op) if loop.failure else 0
    low.items.append(
        LibraryCall(loop, operands, results, batch, tuple(steps), read, written, site, loc=op.loc)
    )


def _fourier(
    low: Lowering,
    loop: LibraryLoop,
    arguments: Sequence[_Argument],
    made: Sequence[_Argument],
    read: list[Array],
    written: list[Array],
) -> Fourier | None:
    """The step that does a loop of `numpy.fft`, if native code has one."""
    (source,), (target,) = arguments, made
    kind = KINDS.get(loop.name)
    rows, size = math.prod(source.array.shape[: source.lead]), source.array.dtype.itemsize
    if kind is None or has_size((*source.array.shape, *target.array.shape)) or size not in (4, 8):
        return None
    n = max(math.prod(loop.cores[0]), math.prod(loop.cores[-1]))
    if kind in ("rfft", "irfft"):
        if n % 2 or loop.cores[0 if kind == "irfft" else -1] != (n // 2 + 1,):
            return None
        n //= 2
    width = lanes(n, rows, size, low.context.target)
    adjacent = all(a.walked[-1] == (2 if a.paired else 1) * size for a in (source, target))
    if not width or not adjacent or target.item_step is None or source.item_step is None:
        return None
    steps = source.item_step // size, target.item_step // size
    (factor,) = loop.constants
    return Fourier(kind, source.array, target.array, rows, n, width, *steps, factor, read, written)


def _interleaved(low: Lowering, re: Value, im: Value, lead: int) -> _Argument:
    """Complex numbers as loops read them: where they are, or a copy of their parts."""
    parts = low.arrays.get(re), low.arrays.get(im)
    whole = _whole(*parts)
    if whole is not None:
        return _Argument(whole, lead, True, tuple(a for a in parts if a is not None))
    array = Array((*re.shape, 2), re.dtype, name="pairs")
    for k, value in enumerate((re, im)):
        dims = variables(value.shape)
        p = low.point()
        position = (*indices(dims), Index(k))
        stage = Stage(
            array, dims, p.at(value, indices(dims)), index=position, ops=["copy"], whole=False
        )
        low.emit(p, stage)
    return _Argument(array, lead, True)


def _whole(re: Array | None, im: Array | None) -> Array | None:
    """The array whose parts these two are, if they are those of one complex input or output."""
    if re is None or im is None or re.kind not in ("input", "output"):
        return None
    same = (re.kind, re.position, re.strides, re.start + 1)
    if same != (im.kind, im.position, im.strides, im.start) or any(s % 2 for s in re.strides):
        return None
    strides = (*re.strides, 1)
    shape = (*re.shape, 2)
    return Array(shape, re.dtype, re.kind, strides=strides, position=re.position, start=re.start)


def _destination(low: Lowering, pairs: Value, lead: int) -> _Argument:
    """Memory for pairs: that of an output, if both of their parts become parts of it."""
    halves: dict[int, Value] = {}
    for user in low.users[pairs]:
        after = low.users[user.result]
        if user.name == "slice" and len(after) == 1 and next(iter(after)).name == "reshape":
            halves[user.attrs["start"][-1]] = next(iter(after)).result
    parts = [halves.get(k) for k in (0, 1)]
    targets = [None if v is None else low.target_of.get(v) for v in parts]
    whole = _whole(*targets)
    if whole is None or whole.shape != pairs.shape:
        return _Argument(low.array_for(pairs), lead, True)
    for value, target in zip(parts, targets, strict=True):
        assert value is not None and target is not None
        del low.target_of[value]
        low.arrays[value] = target
    return _Argument(whole, lead, True, tuple(a for a in targets if a is not None))
