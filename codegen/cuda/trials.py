"""Programs that do one step of another program alone, so that ways of doing it can be timed.

Each array that the step touches is an input of the trial, those that it writes too: a trial allocates
nothing, and may be run again and again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.record import replace
from ..kernel import Array
from ..module import STATUS_WORDS
from .build import ALIGNED, ProgramBuilder
from .program import Argument, Buffer, Copy, DeviceProgram, Fill, Gemm, Launch, Ref, Step, TensorMap
from .target import CudaTarget
from .tuning import Chooser

_STATUS = np.dtype(np.int64)


class TrialBuilder(ProgramBuilder):
    """Builds a step over memory of its own, of the program that `parent` builds, if one does by now."""

    def __init__(
        self,
        target: CudaTarget,
        parent: ProgramBuilder | None = None,
        chooser: Chooser | None = None,
    ) -> None:
        super().__init__(target, (), chooser)
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
            steps=tuple(_moved(step, "status", len(buffers)) for step in steps),
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


def without_outputs(program: DeviceProgram) -> DeviceProgram:
    """The program with its outputs as further inputs. It has no loops and no branches."""
    steps = tuple(_moved(step, "output", len(program.inputs)) for step in program.steps)
    return replace(program, steps=steps, inputs=[*program.inputs, *program.outputs], outputs=[])


def _moved(step: Step, space: str, first: int) -> Step:
    """A step whose places in one space are inputs, from number `first` on."""

    def moved(argument: Argument) -> Any:
        if isinstance(argument, TensorMap):
            return argument._replace(base=moved(argument.base))
        if not isinstance(argument, Ref) or argument.space != space:
            return argument
        return Ref("input", first + argument.number, argument.offset)

    if isinstance(step, Launch):
        return replace(step, arguments=tuple(map(moved, step.arguments)))
    if isinstance(step, Gemm):
        left, right, result = (replace(m, ref=moved(m.ref)) for m in step.matrices)
        bias = None if step.bias is None else moved(step.bias)
        return replace(step, left=left, right=right, result=result, bias=bias)
    if isinstance(step, Copy):
        return replace(step, target=moved(step.target), source=moved(step.source))
    assert isinstance(step, Fill), f"a trial of {type(step).__name__}"
    return replace(step, target=moved(step.target))
