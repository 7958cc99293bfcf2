"""A graph followed through the compiler: what it is after each pass, as loops, and as code.

    followed = follow(graph, options, strides)
    for name, graph in followed.passes: ...

Nothing is remembered, and nothing is linked: what is made here is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..ir.graph import Graph, SourceLine
from ..ir.record import record, replace
from ..ir.types import TensorType
from .options import CompileOptions

if TYPE_CHECKING:
    from ..codegen.cuda.target import CudaTarget
    from ..codegen.loop_ir.steps import Program


@record
class Followed:
    """What became of a graph.

    passes   the graph after each pass, by the pass's name, in order
    program  its steps over arrays, as they were emitted
    kernels  the reports of its kernels
    module   the `NativeModule` or `DeviceProgram`;  `llvm` is its text
    code     makes the machine code: assembly, or PTX
    lines    those that `.loc` directives of the assembly number, from 1 on
    """

    passes: tuple[tuple[str, Graph], ...]
    program: Program
    kernels: Sequence[Any]
    module: Any
    llvm: str
    code: Callable[[], str]
    lines: Sequence[SourceLine] = ()


def follow(
    graph: Graph, options: CompileOptions, strides: Sequence[tuple[int, ...]], lines: bool = False
) -> Followed:
    """As `compile` makes it for this CPU. With `lines` the assembly says which lines it computes."""
    from ..codegen.program.compile import emitted
    from ..ir.passes import STORABLE, followed, pipeline
    from .compile import load_compiler
    from .native.engine import engine_for
    from .native.host import current_target
    from .native.line_tables import numbered

    load_compiler()
    target = replace(current_target(), sanitize=False, lines=lines)
    signature = graph.input_types, graph.output_types
    passes = tuple(followed(graph, [*STORABLE, *pipeline()]))
    free = replace(target, fastmath=options.fastmath)
    module, low = emitted(passes[-1][1], free, strides, signature, options.donations)
    marks = low.context.marks

    def code() -> str:
        return engine_for(target).asm(module.text if marks is None else numbered(module.text))

    known = () if marks is None else tuple(marks.lines)
    return Followed(passes, low.program, module.kernels, module, module.text, code, known)


def follow_to_gpu(
    graph: Graph, options: CompileOptions, target: CudaTarget, arch: str, lines: bool = False
) -> Followed:
    """As `device_program` makes it for a GPU, which need not be here. `lines` as of `follow`."""
    from ..codegen.device.compile import emitted
    from ..ir.passes import STORABLE, followed, pipeline
    from ..ir.passes.compositions import compose
    from .cuda.assemble import assemble
    from .cuda.client import ALIGNMENT
    from .native.line_tables import numbered

    signature = graph.input_types, graph.output_types
    count = sum(isinstance(t, TensorType) for t in graph.input_types)
    passes = tuple(followed(graph, [compose, *STORABLE, *pipeline(options.fastmath)]))
    settings = {"tf32": options.fastmath, "deterministic": options.deterministic}
    chosen = replace(target, lines=lines, **settings)
    program, low = emitted(
        passes[-1][1], chosen, None, [ALIGNMENT] * count, signature, options.donations
    )
    marks = low.context.marks
    marked = program.ir if marks is None else numbered(program.ir)
    known = () if marks is None else tuple(marks.lines)
    return Followed(
        passes,
        low.program,
        program.reports,
        program,
        program.ir,
        lambda: assemble(marked, arch, target.ptx),
        known,
    )
