"""From a graph to a program for a GPU: lower, fuse, plan memory, emit.

    program = compile_device(graph, CudaTarget(arch=90))

The graph comes verified and optimised, as for `codegen.program.compile.compile_graph`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Graph, Op
from ...ir.passes.attention import widen_last
from ...ir.types import TensorType, Type
from ..cuda.program import Buffer, DeviceProgram
from ..cuda.target import CudaTarget
from ..cuda.tuning import Chooser
from ..limits import DEFAULT, limited
from ..loop_ir.index import contiguous_strides
from ..module import Donation
from ..program.compile import LoweredProgram, lowered
from ..program.memory_reports import copies_within
from ..schedule.knobs import refuse
from .build import ProgramBuilder
from .lowering import DeviceContext
from .trials import TrialBuilder

OUTPUTS = 256  # what addresses of outputs are a multiple of


def compile_device(
    graph: Graph,
    target: CudaTarget,
    input_strides: Sequence[tuple[int, ...]] | None = None,
    input_alignment: Sequence[int] | None = None,
    signature: tuple[Sequence[Type], Sequence[Type]] | None = None,
    donations: Sequence[Donation] = (),
    chooser: Chooser | None = None,
    verify: bool = False,
) -> DeviceProgram:
    """A program that computes `graph`.

    `input_strides` (in elements; None: C-contiguous) and `input_alignment` (in bytes; None: 16) say how
    the inputs lie; `signature`, `donations` and `verify` are those of `compile_graph`. Where there are
    several ways of doing a step, `chooser` takes one; without one the model's.
    """
    return emitted(
        graph, target, input_strides, input_alignment, signature, donations, chooser, verify
    )[0]


@limited(DEFAULT)  # those of a CPU, which tests vary, are no part of a GPU's target
def emitted(
    graph: Graph,
    target: CudaTarget,
    input_strides: Sequence[tuple[int, ...]] | None = None,
    input_alignment: Sequence[int] | None = None,
    signature: tuple[Sequence[Type], Sequence[Type]] | None = None,
    donations: Sequence[Donation] = (),
    chooser: Chooser | None = None,
    verify: bool = False,
) -> tuple[DeviceProgram, LoweredProgram]:
    """What `compile_device` gives, and the program that it was emitted from."""
    refuse(graph, "on a GPU, whose kernels can be tuned by jit(autotune=True)")
    low = lowered(
        widen_last(graph),
        lambda: DeviceContext(target, chooser, verify, compile_product),
        input_strides,
        signature,
        donations,
    )
    alignments = list(input_alignment or [16] * len(low.inputs))
    builder = ProgramBuilder(target, alignments, chooser, lambda b: TrialBuilder(target, b))
    builder.marks = low.context.marks
    steps = builder.steps(low.program)
    layouts = zip(low.inputs, low.strides, alignments, strict=True)
    program = DeviceProgram(
        ir=builder.ir(),
        kernels=builder.kernels,
        steps=steps,
        inputs=[Buffer(t.shape, t.dtype, s, a) for t, s, a in layouts],
        outputs=[_output(t) for t in low.outputs],
        arena_bytes=low.arena_bytes,
        slots=builder.slot_count,
        counter_words=builder.counter_words,
        constants=[a.data for a in builder.constants if a.data is not None],
        errors=low.context.errors,
        callbacks=low.context.callbacks,
        copies=copies_within(low.program),
        reports=list(builder.reports.values()),
        in_place=low.in_place,
        arch=builder.arch,
    )
    return program, low


def compile_product(op: Op, target: CudaTarget, chooser: Chooser) -> DeviceProgram:
    """One product alone, of operands that lie as they are written."""
    graph = Graph(op.name)
    params = [graph.add_param(v.type) for v in op.operands]
    copy = op.with_operands(params)
    graph.ops.append(copy)
    graph.outputs.append(copy.result)
    return compile_device(graph, target, chooser=chooser)


def _output(t: TensorType) -> Buffer:
    return Buffer(t.shape, t.dtype, contiguous_strides(t.shape), OUTPUTS)
