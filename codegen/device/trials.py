"""Programs that do one step of another program alone, so that ways of doing it can be timed.

Each array that the step touches is an input of the trial, those that it writes too: a trial allocates
nothing, and may be run again and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..cuda.program import Buffer, DeviceProgram, Ref, Step, moved_in
from ..cuda.target import CudaTarget
from ..cuda.tuning import Chooser
from ..loop_ir.kernel import Array
from ..module import STATUS_WORDS
from .build import ALIGNED, ProgramBuilder

_STATUS = np.dtype(np.int64)


class TrialBuilder(ProgramBuilder):
    """Builds a step over memory of its own, of the program that `parent` builds, if one does by now."""

    def __init__(
        self,
        target: CudaTarget,
        parent: ProgramBuilder | None = None,
        chooser: Chooser | None = None,
    ) -> None:
        super().__init__(target, (), chooser, lambda b: TrialBuilder(target, b))
        self._parent = parent
        self._arrays: dict[Array, int] = {}

    def ref(self, array: Array, offset: int = 0) -> Ref:
        if self._parent is not None:
            array = self._parent.aliases.get(array, array)
        number = self._arrays.setdefault(array, len(self._arrays))
        return Ref("input", number, offset + _before(array))

    def alignment(self, array: Array, offset: int = 0) -> int:
        if self._parent is not None:
            return self._parent.alignment(array, offset)
        return math.gcd(ALIGNED, offset + array.start * array.dtype.itemsize)

    def program(self, steps: Sequence[Step]) -> DeviceProgram:
        buffers = [_buffer(array) for array in self._arrays]
        status = Buffer((STATUS_WORDS,), _STATUS, (1,), ALIGNED)
        return DeviceProgram(
            ir=self.ir(),
            kernels=self.kernels,
            steps=tuple(moved_in(step, "status", len(buffers)) for step in steps),
            inputs=[*buffers, status],
            outputs=[],
        )


def _before(array: Array) -> int:
    """Bytes from the start of an array's memory to its first element, as well aligned as may matter."""
    back = sum(-s * (n - 1) for s, n in zip(array.strides, array.shape, strict=True) if s < 0)
    return -(-back * array.dtype.itemsize // ALIGNED) * ALIGNED


def _buffer(array: Array) -> Buffer:
    """Memory for all that an array's strides reach."""
    ahead = sum(s * (n - 1) for s, n in zip(array.strides, array.shape, strict=True) if s > 0)
    item = array.dtype.itemsize
    return Buffer((ahead + 1 + -(-_before(array) // item),), array.dtype, (1,), ALIGNED)
