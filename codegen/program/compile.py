"""From a graph to a native module: lower, fuse, plan memory, emit.

    module = compile_graph(graph, target)

The graph comes verified and optimised. What it means is defined by `ir.interpreter`; every step here
must keep that meaning, up to the rounding of reductions and contractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.graph import Graph
from ...ir.opdef import GraphError
from ...ir.passes.check_first import check_first, numbers_first
from ...ir.record import record
from ...ir.types import TensorType, Type, bits_dtype, is_complex, is_small, real_dtype
from ..journal import written
from ..limits import limited
from ..loop_ir.index import contiguous_strides
from ..loop_ir.kernel import Array, Kernel
from ..loop_ir.scalar_code import operations
from ..loop_ir.steps import (
    Loop,
    Matmul,
    Program,
    RowBlocks,
    ScalarCode,
    Scan,
    Tiled,
    steps_within,
)
from ..lowering.context import Context
from ..lowering.lower import lower
from ..lowering.parts import in_parts
from ..module import Donation, NativeModule, Reason
from ..schedule.aliasing import find_aliases, settle, with_copies
from ..schedule.failures import fails_late
from ..schedule.follows import check_ends, check_follows
from ..schedule.knobs import answered
from ..schedule.memory import lifetimes, plan
from ..sizes import sized, sizes
from ..target import Target
from .entry import EntryEmitter
from .memory_reports import buffers, copies_within, unstored
from .probes import Counters, Events
from .reports import Reports
from .tape_layouts import lay_out_tapes

ENTRY = "jitney_entry"


def compile_graph(
    graph: Graph,
    target: Target,
    input_strides: Sequence[tuple[int, ...]] | None = None,
    signature: tuple[Sequence[Type], Sequence[Type]] | None = None,
    donations: Sequence[Donation] = (),
    verify: bool = False,
    lengths: Sequence[tuple[int, int, int, int]] = (),
) -> NativeModule:
    """Native code for `graph` on `target`.

    `input_strides` gives the layout of each input, in elements; None means C-contiguous. Tokens among
    parameters and outputs take no part in the call. `signature`, the types of inputs and outputs as
    the caller has them, says which pairs of them are the parts of one complex array. `donations` lists
    inputs that may be overwritten; see `place` for what becomes of them. `verify` checks the steps
    after each rewriting of them. `lengths` are capacities of axes whose length is bound at the call, and
    the parameters that are these lengths; NotSized if the graph cannot be compiled so (see `sizes`).
    """
    return emitted(graph, target, input_strides, signature, donations, verify, lengths)[0]


def emitted(
    graph: Graph,
    target: Target,
    input_strides: Sequence[tuple[int, ...]] | None = None,
    signature: tuple[Sequence[Type], Sequence[Type]] | None = None,
    donations: Sequence[Donation] = (),
    verify: bool = False,
    lengths: Sequence[tuple[int, int, int, int]] = (),
) -> tuple[NativeModule, LoweredProgram]:
    """What `compile_graph` gives, and the program that it was emitted from."""
    with (
        limited(target.limits),
        written(bool(target.probe)) as journal,
        answered(graph),
        sized(lengths),
    ):
        graph = in_parts(graph)
        low = lowered(graph, lambda: Context(target, verify), input_strides, signature, donations)
        marks = low.context.marks
        tells = any(op.name == "watched" for op in graph.walk())
        entry = EntryEmitter(target, low.here, low.there, ENTRY, low.arena_bytes, marks, tells)
        text = entry.module(low.program)
        module = _module(low, entry, text)
        if isinstance(entry.probes, Counters):
            _look_into(module, low, entry.probes, journal)
        return module, low


def _module(low: LoweredProgram, entry: EntryEmitter, text: str) -> NativeModule:
    """The text with its calling data."""
    context, probes = low.context, entry.probes
    steps = steps_within(low.program)
    reports = Reports(steps, entry.schedules, entry.target)
    flops = sum(p.flops for _, p, _ in entry.schedules)
    scalar = [operations(s.body, s.work) for s in steps if isinstance(s, ScalarCode)]
    looping = any(v.loops for _, p, _ in entry.schedules for v in p.surveys.values())
    unknown = looping or None in scalar or any(isinstance(s, (Loop, Scan)) for s in steps)
    flops += sum(n or 0 for n in scalar)
    products = [s for s in steps if isinstance(s, Matmul)]
    flops += sum(2 * s.batch * s.m * s.n * s.k for s in products)
    tiled = [s for s in steps if isinstance(s, Tiled)]
    flops += sum(s.flops for s in tiled)
    return NativeModule(
        text=text,
        entry=ENTRY,
        inputs=low.inputs,
        input_strides=low.strides,
        outputs=low.outputs,
        arena_bytes=probes.end if isinstance(probes, Counters) else low.arena_bytes,
        imports=entry.imports,
        errors=context.errors,
        callbacks=context.callbacks,
        copies=copies_within(low.program),
        in_place=low.in_place,
        arrays=entry.provenance.texts if entry.provenance else [],
        kernels=reports.kernels(),
        outline=() if probes is None else reports.outline(low.program, probes.slots),
        probes_at=probes.first if isinstance(probes, Counters) else 0,
        identity=probes.identity if isinstance(probes, Events) else 0,
        work=None if unknown else flops,
        keeps_gil=entry.keeps_gil,
        lengths=tuple((s.capacity, s.param, s.least, s.most) for s in sizes()),
    )


def _look_into(
    module: NativeModule, low: LoweredProgram, probes: Counters, journal: dict[Reason, None]
) -> None:
    """Add what `explain` tells, to code that has counters."""
    steps = steps_within(low.program)
    module.copies = copies_within(low.program, probes.slots)
    blocks = [s for s in steps if isinstance(s, RowBlocks) and s.grain < s.units]
    shared = {p.step.subject for b in blocks for p in b.parts if isinstance(p.step, Kernel)}
    module.reasons = tuple(  # threads share the blocks that a part stands in, if not the part
        [r for r in journal if r.kind != "threads" or (r.subject, r.loc) not in shared]
    )
    module.buffers = buffers(steps, lifetimes(low.program))
    module.unstored = unstored(steps)


@record
class LoweredProgram:
    """A graph as a program over arrays that have their places, and what a call must know.

    `here` and `there` are the arrays of the inputs and outputs, two for a complex one; outputs that
    live in an input have none, and stand in `in_place`.
    """

    program: Program
    context: Context
    inputs: list[TensorType]
    strides: list[tuple[int, ...]]
    outputs: list[TensorType]
    here: list[Array]
    there: list[Array]
    in_place: list[tuple[int, int]]
    arena_bytes: int


def lowered(
    graph: Graph,
    new_context: Callable[[], Context],
    input_strides: Sequence[tuple[int, ...]] | None,
    signature: tuple[Sequence[Type], Sequence[Type]] | None,
    donations: Sequence[Donation],
) -> LoweredProgram:
    """The part of `compile_graph` that is the same for every target."""
    taken, returned = signature or (graph.input_types, graph.output_types)
    types = [t for t in taken if isinstance(t, TensorType)]
    if any(isinstance(t, TensorType) and is_small(t.dtype) for t in graph.input_types):
        raise GraphError("small floats are not packed: run `passes.storable` first")
    results = [t for t in returned if isinstance(t, TensorType)]
    strides = [tuple(s) for s in input_strides or [contiguous_strides(t.shape) for t in types]]
    inputs = _arrays("input", taken, strides)
    for size in sizes():
        size.array = next(a for a in inputs if a is not None and a.position == size.param)
    outputs = _arrays("output", returned, [contiguous_strides(t.shape) for t in results])
    if len(types) != len(inputs) or len(results) != len(outputs):
        donations = ()  # tokens, or parts of complex arrays: positions are not those of the caller

    graph = with_copies(graph, donations)

    def made(graph: Graph, donations: Sequence[Donation], apart: bool = False) -> tuple[Any, ...]:
        context = new_context()
        stay, over, expendable = find_aliases(graph, inputs, donations)
        ends = lower(graph, inputs, outputs, context, stay, expendable, over, apart)
        return context, expendable, *ends

    context, expendable, program, ends = made(graph, donations)
    kept = [d.input for d in donations if d.whole and inputs[d.input] in expendable]
    whole = {inputs[k] for k in kept}
    if whole and (context.errors or context.callbacks) and fails_late(program, whole):
        first = check_first(numbers_first(graph), {graph.params[k] for k in kept})
        context, expendable, program, ends = made(first, donations, apart=True)
        if fails_late(program, whole):  # those stay as they were until the end
            context, expendable, program, ends = made(graph, [d for d in donations if not d.whole])
    in_place = settle(ends, inputs, outputs)
    replaced = {output for output, _ in in_place}
    if sizes():
        check_follows(program)
        check_ends([*inputs, *outputs])
    lay_out_tapes(program, context.target)
    arena_bytes = plan(program)
    if context.verify:
        from ..verify import check_memory, check_program

        check_program(program)
        check_memory(program, arena_bytes)
    return LoweredProgram(
        program=program,
        context=context,
        inputs=types,
        strides=strides,
        outputs=[t for k, t in enumerate(results) if k not in replaced],
        here=[a for a in inputs if a is not None],
        there=[a for k, a in enumerate(outputs) if a is not None and k not in replaced],
        in_place=in_place,
        arena_bytes=arena_bytes,
    )


def _arrays(
    kind: str, types: Sequence[Type], strides: Sequence[tuple[int, ...]]
) -> list[Array | None]:
    """An array for each input or output; two for a complex one, which lie interleaved in its memory."""
    arrays: list[Array | None] = []
    layouts = enumerate(strides)
    for t in types:
        if not isinstance(t, TensorType):
            arrays.append(None)
            continue
        position, steps = next(layouts)
        if not is_complex(t.dtype):
            dtype = bits_dtype(t.dtype) if is_small(t.dtype) else t.dtype
            arrays.append(Array(t.shape, dtype, kind, strides=steps, position=position))
            continue
        steps = tuple(2 * s for s in steps)
        arrays += [
            Array(t.shape, real_dtype(t.dtype), kind, strides=steps, position=position, start=k)
            for k in (0, 1)
        ]
    return arrays
