"""What emits the kernels of a schedule."""

from __future__ import annotations

from ..cuda.columns import ColumnEmitter
from ..cuda.lanes import LaneEmitter
from ..cuda.points import PointEmitter
from ..cuda.rows import RowEmitter
from ..cuda.schedule import Schedule, scatters
from ..cuda.transposes import TransposeEmitter
from ..kernels.scan.cuda_scans import ColumnScanEmitter, RowScanEmitter
from ..kernels.scatter.cuda_updates import UpdateEmitter
from ..loop_ir.kernel import Kernel


def ops_of(kernel: Kernel) -> list[str]:
    """The ops that the kernel was made of."""
    return [op for s in kernel.stages for op in reversed(s.ops)]


def emitter_for(plan: Schedule) -> type[LaneEmitter]:
    """What emits a kernel of this schedule."""
    if scatters(plan):
        return UpdateEmitter
    if plan.cross is not None:
        return TransposeEmitter
    if plan.scan is not None:
        return ColumnScanEmitter if plan.scan.down else RowScanEmitter
    if plan.row is not None:
        return RowEmitter
    return ColumnEmitter if plan.depth > 1 else PointEmitter
