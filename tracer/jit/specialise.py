"""The miss path: a call of a new kind is traced and compiled, or recalled from disk, as an `Entry`."""

from __future__ import annotations

import threading
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.graph import Graph, SourceLine
from ...ir.record import replace
from ...runtime.cuda.array import DeviceArray
from ...runtime.devices import CPU, Device
from ...runtime.options import CompileOptions
from ...runtime.recording import note_program, note_span
from ..captures.captured_variables import CapturedVariables, refuse_random
from ..captures.effects import Effects
from ..captures.heap import Policy
from ..captures.kept import ChangedArgument, WantsHeap
from ..captures.purity import compare, random_states, watched_entropy
from ..captures.running import watched_code
from ..containers.kinds import Argument, Enters, Kinds, settled
from ..containers.leaving import leaving
from ..control.recursion import natively
from ..control.unions import with_exact
from ..core.specs import Spec, Static
from ..core.trace import nesting
from ..core.tracing import Traced, trace_function
from ..data import pytree
from ..data.accept import to_array
from ..data.generators import GeneratorKind
from ..data.shapes import ShapeDtype
from ..devices.devices import CHOSEN, client, device_of
from ..host_random.interception import exchanged
from ..messages import errors
from ..messages.errors import complain
from ..messages.source import is_user_frame, raised_line
from .dispatch import Call
from .entry import Entry, Interpreted, Runnable
from .options import annotated
from .stack import deep_stack
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
    from .function import JitFunction


_TRIES = 4
_NESTED = 48  # traces inside of each other, branches of branches, that a function may need
_OFTEN = 8  # calls inside of each other of a function that may call itself without end


def trace_call(
    function: JitFunction,
    call: Call,
    captured: CapturedVariables | None = None,
    *,
    views: bool = True,
) -> tuple[Traced, CapturedVariables]:
    """Trace with tracers in place of closed-over arrays. Where Python needs their values
    (`if W[0] > 0`, `range(N[1])`), they stay arrays, and their content is guarded."""
    captured = captured or function._captured_variables(call)
    try:
        with deep_stack():
            return _trace_recursive(function, call, captured, views)
    except ChangedArgument:
        raise
    except RecursionError as error:
        call.failure = _endless(error)
        raise call.failure from None
    except Exception as error:
        call.failure = error
        raise


def _with_fixed(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool, first: Exception
) -> tuple[Traced, CapturedVariables] | None:
    """Trace with the numbers of the heap as they are, in case that Python asks for them; then with its
    arrays, too, which a function that does not change them may ask for. `first` is why it is
    tried."""
    if captured.heap is None:
        return None
    answered = None
    if captured.heap.has_numbers:
        try:
            policy = replace(captured.policy, fixed=True)
            again = function._captured_variables(call, policy=policy)
            return _trace_settled(function, call, again, views)
        except errors.JitneyError as error:
            answered = error if errors.is_answered(first, error) else None
    policy = replace(captured.policy, fixed=True, arrays=True)
    again = function._captured_variables(call, policy=policy)
    seen = [] if again.heap is None else again.heap.fixed_arrays()
    traced = _trace_without_changes(function, call, again, views, seen)
    if traced is None:
        if answered is not None:
            raise answered
        return None
    if traced[1].heap is not None:
        traced[1].heap.keeps_arrays = _gives_back(traced[0], traced[1].effects, seen)
    return traced


def _gives_back(
    traced: Traced, effects: Effects | None, arrays: Sequence[np.ndarray[Any, Any]]
) -> bool:
    """Whether some of these arrays, or views of them, are returned or stored: a call gives those that
    were there when the function was traced."""
    leaves = [] if effects is None else effects.leaves
    outer = [*leaves, *(capture.outer for capture in traced.captures)]
    found = [x for x in outer if isinstance(x, np.ndarray)]
    return any(np.may_share_memory(x, array) for x in found for array in arrays)


def _trace_without_changes(
    function: JitFunction,
    call: Call,
    captured: CapturedVariables,
    views: bool,
    arrays: Sequence[np.ndarray[Any, Any]],
) -> tuple[Traced, CapturedVariables] | None:
    """Trace a function that sees these arrays themselves. None if it cannot be, or changes one of them:
    that would happen once, while it is traced, and is undone."""
    before = [array.copy() for array in arrays]
    changed = []
    try:
        traced = _trace_settled(function, call, captured, views)
    except errors.JitneyError:
        traced = None
    finally:
        pairs = zip(arrays, before, strict=True)
        changed = [(array, old) for array, old in pairs if array.tobytes() != old.tobytes()]
        for array, old in changed:
            np.copyto(array, old)
    return None if changed else traced


def _trace_either(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace with stand-ins for what is closed over, or else without."""
    try:
        return _trace_settled(function, call, captured, views)
    except WantsHeap:
        captured = function._captured_variables(call, policy=Policy(objects=True))
        return _trace_either(function, call, captured, views)
    except errors.JitneyError as first:
        fixed = _with_fixed(function, call, captured, views, first)
        if fixed is not None:
            return fixed
        if not captured.hidden or captured.heap is not None:  # which has been tried as it is
            raise
        plain = function._captured_variables(call, substitute=False)
        traced = _trace_without_changes(function, call, plain, views, plain.guarded_arrays())
        if traced is not None:
            return traced
        raise


def _trace_recursive(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace. Where a function calls itself without end it is traced as a native one that calls itself;
    if that cannot be, all of it is traced as deep as it goes, with the containers of outside as they
    are if that helps."""
    before = nesting.most
    try:
        nesting.most = min(before, _NESTED)
        return _trace_either(function, call, captured, views)
    except RecursionError as error:
        names = _endless_names(error)
    finally:
        nesting.most = before
    try:
        with natively(names):
            return _trace_either(function, call, captured, views)
    except (errors.JitneyError, RecursionError):
        pass
    if captured.heap is not None:  # containers of known length may say how deep it goes
        policy = replace(captured.policy, natives=frozenset(), barred=True)
        known = function._captured_variables(call, policy=policy)
        try:
            return _trace_either(function, call, known, views)
        except (errors.JitneyError, RecursionError):
            pass
    return _trace_either(function, call, captured, views)


def _endless_names(error: RecursionError) -> set[tuple[str, str]]:
    """The user's function, by file and name, that called itself the most often."""
    frames = (
        frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__) if is_user_frame(frame)
    )
    counts = Counter((code.co_filename, code.co_qualname) for code in frames)
    return {name for name, count in counts.most_common(1) if count > _OFTEN}


def _endless(error: RecursionError) -> Exception:
    """What is said of a function that calls itself until Python's stack is full."""
    try:
        complain(
            errors.EndlessRecursionError,
            "maximum recursion depth exceeded: a function calls itself, and while it is traced it "
            "does so without end, as the condition that ends it depends on traced values",
            "write a loop, or @jt.recursive around a function of numbers; or make what decides how deep "
            "it goes static (static_argnames).",
            line=raised_line(error),
        )
    except errors.EndlessRecursionError as endless:
        return endless


def _trace_settled(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> tuple[Traced, CapturedVariables]:
    """Trace, and drop the guards of what only code reads that has not run. Containers that turn out to
    have to be native are that, unless the function cannot be traced so."""
    failure: Exception | None = None
    while True:
        policy = captured.policy
        try:
            with watched_code(captured.doubtful) as ran:
                traced = _trace_with(function, call, captured, views)
            if not captured.missed or policy.fixed:
                break
            policy = replace(policy, more=policy.more | captured.missed)
        except Enters as found:
            policy = replace(policy, natives=policy.natives | found.places)
        except errors.TraceAgain:
            raise
        except Exception as error:
            if failure is not None:
                raise failure from None
            if captured.heap is None or not captured.heap.natives:
                raise
            failure = error
            call.containers = Kinds()
            policy = replace(policy, natives=frozenset(), barred=True)
        captured = function._captured_variables(call, policy=policy)
    if captured.settle(ran):
        return traced, captured
    captured = function._captured_variables(call, wary=True, policy=captured.policy)
    with watched_code(captured.doubtful) as ran:
        traced = _trace_with(function, call, captured, views)
    captured.settle(ran)
    return traced, captured


def _trace_with(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> Traced:
    """Trace, and refuse what draws random numbers meanwhile. If it may have been another thread that
    drew them, the function is traced again: one that draws does so each time."""
    for _ in range(_TRIES):
        before = random_states()
        with watched_entropy() as requests, exchanged():
            traced = _trace_once(function, call, captured, views)
        if requests:
            refuse_random("the operating system (by a generator without a seed, secrets, a UUID)")
        after = random_states().items()
        drawn = [n for n, s in after if s != before.get(n, "unused" if n == "np.random" else s)]
        if not drawn:
            return traced
        if threading.active_count() == 1:
            break
    refuse_random(drawn[0])


def _trace_once(
    function: JitFunction, call: Call, captured: CapturedVariables, views: bool
) -> Traced:
    stand_ins = captured.values()
    named = call.named_specs()
    leaves = [*named, *captured.specs]
    tree = pytree.flatten(((call.args, call.kwargs, stand_ins), {}))[1]

    def run(args: Any, kwargs: Any, hidden: Any) -> Any:
        before = call.parts(args, kwargs)
        kept = call.kept(args, kwargs)
        call.containers.lacks_heap = captured.heap is None and captured.substitutes
        for container, place in (*kept.taken_apart, *call.packed(args, kwargs)):
            call.containers.births[container] = Argument(place)
        work = partial(captured.call, args, kwargs, hidden, kept)
        result = annotated(function._function, args, kwargs, work)
        call.refuse_changes(before, call.parts(args, kwargs))
        return leaving(with_exact(result))

    # Static leaves of hidden containers are handed on as they are.
    hidden_leaves = iter(pytree.flatten(stand_ins)[0])
    for i in range(len(call.specs), len(leaves)):
        value = next(hidden_leaves)
        if isinstance(leaves[i], Static):
            leaves[i] = Static(value)

    def trace() -> Traced:
        return trace_function(
            run,
            leaves,
            tree,
            name=function.__name__,
            values_only=False,
            views=views,
            refuse_as=function._function,
            options=function._options.trace((call.device or CHOSEN.get() or CPU) == CPU),
            sharing=captured.heap is not None,
            adapted=True,
        )

    return settled(trace, call.containers)


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
        compare(traced, trace_call(function, call)[0])
    _fetch_captures(traced)
    seconds = {"trace": time.perf_counter() - start}
    note_span("trace", function.__name__, start, time.perf_counter())
    start = time.perf_counter()
    executable = _compile_graph(function, traced, call, captured)
    seconds["compile"] = time.perf_counter() - start
    note_span("compile", function.__name__, start, time.perf_counter(), leaf=False)
    module = getattr(executable, "module", None)
    if module is not None:
        note_program(module, function.__name__)
        traced = _settle(function, traced, module)
    cached.store(traced, captured, getattr(executable, "key", ""))
    donated = frozenset(_donated(function, call))
    return Entry(call, traced, captured, executable, reason, seconds, donated)


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
        compare(traced, trace_call(function, call)[0])
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
    return _runnable(graph, options.backend, options.compile(donations), traced, call, captured)


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
    options = function._options.compile(donations)
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
    compile_options = options.compile(donations)
    if device != CPU:
        _refuse_watching(function)
        program: LoadedProgram = client(device).compile(graph, compile_options)
        return Lowered(traced.graph, program, options, plan, device, casts=traced.casts)
    from ...runtime.compile import compile
    from ...runtime.probing import probed

    _fetch_captures(traced)
    strides = _strides(traced, call, captured)
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
    return strides
