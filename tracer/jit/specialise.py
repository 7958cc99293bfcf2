"""The miss path: a call of a new kind is traced and compiled, or recalled from disk, as an `Entry`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.faults import LoweringError
from ...ir.graph import Graph, SourceLine
from ...ir.record import replace
from ...runtime.cuda.array import DeviceArray
from ...runtime.devices import CPU, Device
from ...runtime.options import CompileOptions
from ...runtime.recording import note_program, note_span
from ..captures.captured_variables import CapturedVariables
from ..core.specs import Spec
from ..core.traced import Traced
from ..data.accept import to_array
from ..data.generators import GeneratorKind
from ..data.shapes import ShapeDtype
from ..devices.devices import CHOSEN, client, device_of
from ..messages import errors
from ..messages.errors import complain
from .dispatch import Call
from .entry import Entry, Interpreted, Runnable
from .trace_cache import CachedTrace

if TYPE_CHECKING:
    from ...codegen.cuda.program import DeviceProgram
    from ...codegen.cuda.target import CudaTarget
    from ...codegen.module import Donation, NativeModule
    from ...ir.passes.mincut import SavePlan
    from ...runtime.cuda.client import LoadedProgram
    from ...runtime.executable import Executable
    from ...runtime.following import Followed
    from ..explain.lowered import Lowered
    from ..export.alone import Alone
    from .function import JitFunction


def trace_call(
    function: JitFunction,
    call: Call,
    captured: CapturedVariables | None = None,
    *,
    views: bool = True,
) -> tuple[Traced, CapturedVariables]:
    """See `traces`, which is loaded when a function is traced first: a process that finds its programs
    on disk starts without."""
    from .traces import trace_call

    return trace_call(function, call, captured, views=views)


@contextmanager
def _lowering() -> Iterator[None]:
    """What no code can be made of is the user's error, at their line."""
    try:
        yield
    except LoweringError as error:
        complain(
            errors.UnsupportedFunctionError,
            str(error),
            error.remedy,
            line=error.op.loc,
            cause=error,
        )


@contextmanager
def _any_length() -> Iterator[None]:
    """What cannot be compiled for any length of an axis, where only that is asked for, is an error."""
    from ...codegen.sizes import NotSized  # with a code generator

    try:
        yield
    except NotSized as error:
        complain(
            errors.DynamicShapeError,
            f"this cannot be compiled for any length of an axis: {error}",
            "give the sizes.",
            cause=error,
        )


def make_entry(function: JitFunction, call: Call, reason: str) -> Entry:
    """Recall the trace and the code from disk, or make them."""
    start = time.perf_counter()
    captured = function._captured_variables(call)
    device = _device(call, captured)
    if device != CPU:
        return _device_entry(function, call, captured, device, reason)
    cached = CachedTrace(function._raw, call, function._options)
    stored = cached.load(captured, lambda **how: function._captured_variables(call, **how))
    if stored is not None:
        recalled, captured, runnable = stored
        seconds = {"recall": time.perf_counter() - start}
        traced = recalled.traced(function.__name__, runnable)
        donated = frozenset(_donated(function, call))
        return Entry(call, traced, captured, runnable, reason, seconds, donated)
    traced, captured = trace_call(function, call, captured)
    if captured.heap is not None:
        captured.heap.interpreted = function._options.backend == "interpreter"
    if "trace" in function._options.check:
        _trace_twice(function, call, traced)
    _fetch_captures(traced)
    seconds = {"trace": time.perf_counter() - start}
    note_span("trace", function.__name__, start, time.perf_counter())
    start = time.perf_counter()
    with _lowering():
        executable = _compile_graph(function, traced, call, captured)
    seconds["compile"] = time.perf_counter() - start
    note_span("compile", function.__name__, start, time.perf_counter(), leaf=False)
    module = getattr(executable, "module", None)
    if module is not None:
        note_program(module, function.__name__)
        traced = _settle(function, traced, module)
    if call.guard is None:
        cached.store(traced, captured, getattr(executable, "key", ""))
    donated = frozenset(_donated(function, call))
    return Entry(call, traced, captured, executable, reason, seconds, donated)


def prepare(function: JitFunction, call: Call) -> None:
    """Make the entry of a call that is still to come, if there is none."""
    _, made = function._found_or_made(call, function._bucket(call.key))
    if made is not None:
        made.reason = f"ahead of time ({made.reason})"
        made.captured.forget()
        with function._lock:
            function._ahead += 1


def _trace_twice(function: JitFunction, call: Call, traced: Traced) -> None:
    """Refuse a function whose trace is another one each time."""
    from ..captures.purity import compare  # which loads Python's random generators

    compare(traced, trace_call(function, call)[0])


def _fetch_captures(traced: Traced) -> None:
    """What runs on the CPU reads the elements of DeviceArrays that the function closes over there."""
    for capture in traced.captures:
        if isinstance(capture.outer, DeviceArray):
            capture.outer = np.asarray(capture.outer)


def _device(call: Call, captured: CapturedVariables) -> Device:
    """Where a call runs."""
    return call.device or device_of(captured.arrays()) or CHOSEN.get() or CPU


def _device_entry(
    function: JitFunction, call: Call, captured: CapturedVariables, device: Device, reason: str
) -> Entry:
    """Trace, and compile for a GPU."""
    from .device_entry import DeviceEntry

    _refuse_watching(function)
    start = time.perf_counter()
    traced, captured = trace_call(function, call, captured, views=False)
    if call.containers.root is not None or call.containers.entered:
        complain(
            errors.UnsupportedFunctionError,
            f"{function.__name__} has a list, dict, set, deque or heap that grows while it runs, "
            "which is there on the CPU only",
            "run it on the CPU (jt.jit(device='cpu')), or keep arrays of a known size.",
        )
    if "trace" in function._options.check:
        _trace_twice(function, call, traced)
    seconds = {"trace": time.perf_counter() - start}
    start = time.perf_counter()
    graph, _ = _plan(function, traced.graph)
    donations = _donations(function, traced, call)
    program = client(device).compile(graph, function._options.compile(donations))
    seconds["compile"] = time.perf_counter() - start
    _settle(function, traced, program.module)
    donated = frozenset(d.input for d in donations if d.output is None)
    return DeviceEntry(call, traced, captured, program, reason, seconds, donated)


def _compile_graph(
    function: JitFunction, traced: Traced, call: Call, captured: CapturedVariables
) -> Runnable:
    graph, _ = _plan(function, traced.graph)
    options = function._options
    kinds = options.watched
    if kinds:
        from ..checks.traps import CallbackLog, Trapped

        log = CallbackLog()
        watched = watching(function, log.recording(graph))
        if watched is not None:
            specs = [s for s in (*call.specs, *captured.specs) if isinstance(s, Spec)]
            handles = [k for k, s in enumerate(specs) if isinstance(s.holder, GeneratorKind)]
            runnable = _runnable(
                watched, options.backend, options.compile(), traced, call, captured
            )
            return Trapped(graph, kinds, runnable, log, handles)
    donations = _donations(function, traced, call)
    asked = replace(options.compile(donations), lengths=_lengths(traced, call))
    return _runnable(graph, options.backend, asked, traced, call, captured)


_PLACES = ("gather", "bounded_slice", "bounded_update_slice")


def _lengths(traced: Traced, call: Call) -> tuple[tuple[int, int, int, int], ...]:
    """The lengths that a call binds: capacities, parameters, the least and the most. Where lengths are
    compared, one of 1 could have to be broadcast: that is compiled for itself."""
    if not traced.lengths:
        return ()
    lengths = {length.name: length for length in call.lengths}
    first = len(traced.graph.params) - len(traced.lengths)
    names = {op.name for op in traced.graph.walk()}
    # Where positions are moved into an axis there has to be one.
    least = 2 if "assert" in names else int(not names.isdisjoint(_PLACES))
    call.family.least = least
    return tuple(
        (lengths[n].capacity, first + k, least, lengths[n].most)
        for k, n in enumerate(traced.lengths)
    )


def watching(function: JitFunction, graph: Graph) -> Graph | None:
    """`graph` as the function is to be watched; None if nothing is to be looked for."""
    options = function._options
    if not options.watched:
        return None
    from ...ir.passes.watch import watch

    return watch(graph, options.watched, options.backend == "native")


def _refuse_watching(function: JitFunction) -> None:
    """GPUs watch nothing."""
    from .device_entry import refuse_watching

    refuse_watching(function.__name__, function._options.watched)


def _as_compiled(
    function: JitFunction, traced: Traced, call: Call
) -> tuple[Graph, tuple[Donation, ...], SavePlan | None]:
    """The graph that is compiled for a call on the CPU, what it may overwrite, and what `save` chose."""
    graph, plan = _plan(function, traced.graph)
    watched = watching(function, graph)
    if watched is not None:
        return watched, (), plan  # a call that is told of something runs again
    return graph, _donations(function, traced, call), plan


def _runnable(
    graph: Graph,
    backend: str,
    options: CompileOptions,
    traced: Traced,
    call: Call,
    captured: CapturedVariables,
) -> Executable | Interpreted:
    if backend == "interpreter":
        return Interpreted(graph)
    from ...runtime.compile import compile

    return compile(graph, options, _strides(traced, call, captured))


def outlined(function: JitFunction, call: Call) -> NativeModule:
    """A call as a program for this CPU, of which there is no machine code: to see what it would cost."""
    from ...runtime.probing import outlined as outlined_graph

    with function._lock:
        traced, captured = trace_call(function, call)
    _fetch_captures(traced)
    graph, donations, _ = _as_compiled(function, traced, call)
    options = replace(function._options.compile(donations), lengths=_lengths(traced, call))
    with _lowering():
        return outlined_graph(graph, options, _strides(traced, call, captured))


def lower(function: JitFunction, call: Call) -> Lowered:
    """The compiled form of a call, to be looked at; the function does not keep it."""
    from ..explain.lowered import Lowered  # when it is asked for: no call needs it

    captured = function._captured_variables(call)
    device = _device(call, captured)
    with function._lock:
        traced, captured = trace_call(function, call, captured, views=device == CPU)
    graph, donations, plan = _as_compiled(function, traced, call)
    options = function._options
    compile_options = replace(options.compile(donations), lengths=_lengths(traced, call))
    if device != CPU:
        _refuse_watching(function)
        program: LoadedProgram = client(device).compile(graph, compile_options)
        return Lowered(traced.graph, program, options, plan, device, casts=traced.casts)
    from ...runtime.compile import compile
    from ...runtime.probing import probed

    _fetch_captures(traced)
    strides = _strides(traced, call, captured)
    with _lowering(), _any_length():
        executable = compile(graph, compile_options, strides)
    arrays = _arguments(call, traced, captured)
    clocked = partial(probed, graph, compile_options, strides)
    plain = None
    if options.watched:
        without = _plan(function, traced.graph)[0]
        plain = partial(
            probed, without, options.compile(_donations(function, traced, call)), strides
        )
    lowered = Lowered(graph, executable, options, plan, device, clocked, arrays, traced.casts)
    return replace(lowered, unwatched=plain)


def alone(function: JitFunction, call: Call) -> Alone:
    """A call as a program that depends on nothing outside."""
    from ..export.alone import alone as on_its_own
    from ..export.alone import refuse

    options = function._options
    if options.backend != "native" or options.watched:
        remedy = "leave out `backend` and `check`"
        refuse(function.__name__, "is interpreted, or watched for what it computes", remedy)
    with function._lock:
        traced, captured = trace_call(function, call, views=False)
    if _device(call, captured) != CPU:
        refuse(function.__name__, "runs on a GPU", "give shapes, or arrays in main memory")
    _fetch_captures(traced)
    graph, _ = _plan(function, traced.graph)
    strides = _strides(traced, call, captured)
    compiled = options.compile()
    return on_its_own(
        function.__name__, graph, traced, captured, compiled, strides, call.specs, call
    )


def _arguments(
    call: Call, traced: Traced, captured: CapturedVariables
) -> list[np.ndarray[Any, Any]] | None:
    """The arrays of a call that go to compiled code; None where shapes and dtypes stand for them."""
    leaves = zip(call.leaves, call.specs, strict=True)
    explicit = [leaf for leaf, spec in leaves if isinstance(spec, Spec)]
    if any(isinstance(leaf, ShapeDtype) for leaf in explicit):
        return None
    hidden = [*captured.arrays(), *(capture.outer for capture in traced.captures)]
    return [to_array(leaf) for leaf in (*explicit, *hidden)]


def note_failure(function: JitFunction, call: Call, error: Exception, line: SourceLine) -> None:
    """Add to `error`, which a call has raised for a line, in which iterations that was."""
    from ..checks.iterations import note_iterations

    with function._lock:
        traced, captured = trace_call(function, call)
    _fetch_captures(traced)
    arrays = _arguments(call, traced, captured)
    if arrays is not None:
        note_iterations(error, line, traced.graph, arrays)


def ptx(function: JitFunction, call: Call, arch: str) -> str:
    """The PTX of a call for an architecture."""
    from ...runtime.cuda.assemble import assemble
    from ...runtime.cuda.client import device_program

    _refuse_watching(function)
    with function._lock:
        traced, _ = trace_call(function, call, views=False)
    graph, _ = _plan(function, traced.graph)
    target = _architecture(arch)
    program = device_program(graph, target, function._options.compile())
    return assemble(program.ir, arch, target.ptx)


def _architecture(arch: str) -> CudaTarget:
    """What code for an architecture by name is generated for, which need not be here."""
    from ...codegen.cuda.target import CudaTarget
    from ...runtime.cuda.assemble import architecture_number, ptx_for

    return CudaTarget(architecture_number(arch), ptx_for(arch), exact=arch.endswith("a"))


def follow_call(
    function: JitFunction, call: Call, arch: str | None, lines: bool = False
) -> tuple[Graph, Followed, str]:
    """The graph of a call, what becomes of it, and what its machine code is called; for a GPU of
    `arch` if there is one, else for where the call would run. `lines`: see `follow`."""
    from ...runtime.following import follow, follow_to_gpu

    captured = function._captured_variables(call)
    device = CPU if arch is not None else _device(call, captured)
    on_cpu = arch is None and device == CPU
    with function._lock:
        traced, captured = trace_call(function, call, captured, views=on_cpu)
    graph, donations, _ = _as_compiled(function, traced, call)
    options = function._options.compile(donations)
    if on_cpu:
        _fetch_captures(traced)
        return graph, follow(graph, options, _strides(traced, call, captured), lines), "asm"
    _refuse_watching(function)
    if arch is None:
        from ...runtime.cuda.client import target_of

        info = client(device).info
        target, arch = target_of(info), info.arch
    else:
        target = _architecture(arch)
    return graph, follow_to_gpu(graph, options, target, arch, lines), "ptx"


def _donations(function: JitFunction, traced: Traced, call: Call) -> tuple[Donation, ...]:
    """The parameters that native code may overwrite: those that the function assigns to, and
    those that the caller donates."""
    from ...codegen.module import Donation

    first = len(traced.graph.outputs) - len(traced.mutated)
    assigned = [Donation(p, k, whole=True) for k, p in enumerate(traced.mutated, first)]
    returned = {*traced.mutated, *(result.argument for result in traced.results)}
    left = [p for p in _donated(function, call) if p not in returned]
    return (*assigned, *(Donation(p) for p in left))


def _donated(function: JitFunction, call: Call) -> list[int]:
    """The graph's parameters that belong to donated arguments and are arrays."""
    if not function._donate.any:
        return []
    positional, keywords = call.tree.children()
    trees = [(i in function._donate.positions, t) for i, t in enumerate(positional.children())]
    names = sorted(call.kwargs)
    trees += [
        (n in function._donate.names, t) for n, t in zip(names, keywords.children(), strict=True)
    ]
    flags = [donated for donated, tree in trees for _ in range(tree.num_leaves)]
    explicit = [i for i, spec in enumerate(call.specs) if isinstance(spec, Spec)]
    return [
        k
        for k, i in enumerate(explicit)
        if flags[i] and type(call.leaves[i]) in (np.ndarray, DeviceArray)
    ]


def _settle(function: JitFunction, traced: Traced, module: NativeModule | DeviceProgram) -> Traced:
    """The trace as it was compiled; refuses copies where `inplace="require"`."""
    settled = traced.settled(module.in_place)
    if function._options.inplace == "require":
        from ..explain.lowered import refuse_copies  # few functions are so

        refuse_copies(function.__name__, traced, settled, module)
    return settled


def _plan(function: JitFunction, graph: Graph) -> tuple[Graph, SavePlan | None]:
    """`graph` as the option `save` wants it."""
    save = function._options.save
    if save is None:
        return graph, None
    from ...ir.passes.mincut import save_less

    return save_less(graph, None if save == "min_cut" else save)


def _strides(traced: Traced, call: Call, captured: CapturedVariables) -> list[tuple[int, ...]]:
    """The layout of each graph parameter, in elements."""
    from ...codegen.loop_ir.index import contiguous_strides

    specs = [s for s in (*call.specs, *captured.specs) if isinstance(s, Spec)]
    strides = [contiguous_strides(s.type.shape) if s.strides is None else s.strides for s in specs]
    for capture in traced.captures:
        array = capture.outer
        assert isinstance(array, np.ndarray)
        strides.append(tuple(s // array.itemsize for s in array.strides))
    return [*strides, *(() for _ in traced.lengths)]
