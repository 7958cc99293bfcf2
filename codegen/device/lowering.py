"""Lowering for a GPU: what it does otherwise than the CPU, as a table of lowerings and a few choices."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from ...ir.graph import Op
from ..cuda.program import DeviceProgram
from ..cuda.schedule import row_of
from ..cuda.target import CudaTarget
from ..cuda.tuning import Chooser
from ..kernels.attention.cuda_lowering import attention, attention_grad
from ..kernels.convolution.cuda_convolutions import convolution
from ..kernels.convolution.cuda_windows import WINDOWS, window_reduction
from ..kernels.draws.lower_draws import ask
from ..kernels.matmul.cuda_epilogues import with_epilogues
from ..kernels.matmul.cuda_lowering import product_of_matrices
from ..kernels.scan.cuda_lowering import scan
from ..kernels.scatter.cuda_scatter import scatter
from ..kernels.sort.cuda_radix_plan import dimensions, radix_plan, sorted_bits
from ..kernels.sort.cuda_select_plan import Select
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.steps import Carry, Program, Sort
from ..lowering.context import Context
from ..lowering.lower_recursion import interpreted
from ..lowering.lower_reductions import SCANS
from ..schedule.fusion import fuse
from ..schedule.sort_blocks import U32
from .host_fallback import HOSTED, hosted
from .library_pass import with_library


class DeviceContext(Context):
    """Stages become kernels for threads; operands of products are read as they lie."""

    chunk: ClassVar[int] = 1 << 12
    selects_pairs: ClassVar[bool] = True
    tapes_in_code: ClassVar[bool] = False
    rules: ClassVar[Mapping[str, Callable[[Any, Op], None]]] = {
        "dot": product_of_matrices,
        "conv": convolution,
        "attention": attention,
        "attention_grad": attention_grad,
        "scatter": scatter,
        "draw": ask,
        "recursion": interpreted,
        **dict.fromkeys(HOSTED, hosted),
        **dict.fromkeys(SCANS, scan),
        **dict.fromkeys(WINDOWS, window_reduction),
    }

    def __init__(
        self,
        target: CudaTarget,
        chooser: Chooser | None,
        verify: bool,
        compile_product: Callable[[Op, CudaTarget, Chooser], DeviceProgram],
    ) -> None:
        super().__init__(target, verify)
        self.chooser = chooser or Chooser()
        self.compile_product = compile_product  # alone, so that ways of cutting it can be timed

    def sort(self, step: Sort) -> tuple[list[Any], Array, int]:
        """A part of sorted rows is found first. Merges need two buffers; passes by digits count too, and
        an even number of them ends where it began."""
        if step.window is not None:
            return self._select(step, *step.window)
        plan = radix_plan(
            *dimensions(step.keys, step.kind),
            *sorted_bits(step.kind, step.key_bits, step.settled),
        )
        if plan is not None:
            step.counts = Array((plan.words,), U32, name="counts")
            if len(plan.shifts) % 2 == 0:
                step.target, step.scratch = step.keys, step.target
        return [step], step.target, 0

    @property
    def packs_indices(self) -> bool:
        return False

    def _select(self, step: Sort, start: int, stop: int) -> tuple[list[Any], Array, int]:
        keys, kind, bits = step.keys, step.kind, step.key_bits
        shape = list(keys.shape)
        shape[step.axis] = stop - start
        chosen, ordered = (
            Array(tuple(shape), keys.dtype, name=name) for name in ("chosen", "sorted")
        )
        select = Select(keys, chosen, step.counts, kind, bits, start, stop, loc=step.loc)
        select.counts = Array((select.words,), U32, name="counts")
        nothing = Array((0,), U32, name="counts")
        steps, target, _ = self.sort(Sort(chosen, ordered, chosen, nothing, kind, bits, step.loc))
        return [select, *steps], target, start

    def arrange(self, items: list[Any], keep: Collection[Array]) -> list[Any]:
        steps = with_library(self.rewritten(fuse, items, keep), keep, self.target, self.chooser)
        steps = with_epilogues(steps, keep)
        for step in steps:
            if isinstance(step, Kernel):
                _give_memory(step, self.target)
        return steps

    def tiles(self, carries: Sequence[Carry], body: Program, length: int) -> None:
        """A grid of threads makes one iteration at a time."""


def _give_memory(kernel: Kernel, target: CudaTarget) -> None:
    """Values of a row that a later nest reads again lie in memory, if threads have no room for them."""
    row = row_of(kernel, target)
    if row is not None:
        kernel.local -= row.passed
        return
    outer = len(kernel.extents)
    home = {s.array: nest for nest in kernel.nests for s in nest.stages}
    for nest in kernel.nests:
        for stage in nest.stages:
            for access in stage.reads:
                array = access.array
                again = array in kernel.local and home[array] is not nest
                if again and math.prod(array.shape[outer:]) > 1:
                    kernel.local.discard(array)
