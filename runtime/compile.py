"""From a graph to an Executable: optimise, generate code, link, and remember.

    executable = compile(graph)
    outputs = executable.run(arrays)

The same graph (ops, types, attributes, source lines; not the names of its values) with the same
options gives the same Executable while somebody refers to it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen.target import Target
from ..ir.collector import loading, resting_collector
from ..ir.graph import Graph, Value
from ..ir.record import replace
from ..ir.types import dtype_name
from .cache.disk import disk_cache
from .cache.in_memory import SharedCode
from .cache.installation import digest, installation
from .call.callable import load_native_calls
from .config import config
from .executable import Executable, assemble
from .native.engine import NativeError, engine_for
from .native.host import current_target, host_target
from .native.records import dump_executable, load_executable, rename_files
from .native.support import load_code_generator
from .options import CompileOptions
from .recording import note_span

if TYPE_CHECKING:
    from ..codegen.module import NativeModule

Strides = Sequence[tuple[int, ...]]


_executables: SharedCode[Executable] = SharedCode()


def compile(
    graph: Graph,
    options: CompileOptions | None = None,
    input_strides: Strides | None = None,
    target: Target | None = None,
) -> Executable:
    """The executable of `graph`. `input_strides` are in elements; None: inputs are C-contiguous.
    `target` is a CPU whose code can run here; None: this one."""
    options = options or CompileOptions()
    target = target or current_target()
    strides = None if input_strides is None else tuple(map(tuple, input_strides))
    key = executable_key(graph_key(graph), target, strides, options)
    return _executables.get_or_make(
        key, lambda: _load(key, target) or _compile(key, graph, target, strides, options)
    )


def executable_key(
    graph: str,
    target: Target,
    strides: tuple[tuple[int, ...], ...] | None,
    options: CompileOptions,
) -> str:
    """The name of an executable, in memory and on disk: a hash of all that makes it what it is."""
    return digest("executable", installation(), graph, target.key(), repr(strides), options.key())


def load_calls() -> None:
    """Make what all executables share: enough for one that comes from disk."""
    load_native_calls()


@functools.lru_cache(maxsize=1)
@loading()
def load_compiler() -> None:
    """Import the code generator and LLVM, and make what all executables share."""
    load_code_generator()
    engine_for(host_target())
    load_native_calls()


@resting_collector()
def _compile(
    key: str,
    graph: Graph,
    target: Target,
    strides: tuple[tuple[int, ...], ...] | None,
    options: CompileOptions,
) -> Executable:
    start = time.perf_counter()
    module, optimised = generate(graph, target, strides, options)
    generated = time.perf_counter()
    code = assemble(module, target)
    assembled = time.perf_counter()
    record = dump_executable(module, code)
    executable = Executable(module, target, code, key=key if record else "")
    note_span("compile", "optimise", start, optimised)
    note_span("compile", "generate code", optimised, generated)
    note_span("compile", "assemble", generated, assembled)
    note_span("compile", "link", assembled, time.perf_counter())
    executable.timings |= {
        "optimise": optimised - start,
        "codegen": generated - optimised,
        "native": assembled - generated,
    }
    if record is not None:
        disk_cache().put(key, record)
    return executable


def generate(
    graph: Graph, target: Target, strides: Strides | None, options: CompileOptions
) -> tuple[NativeModule, float]:
    """The program of a graph before it is machine code, and the time at which optimising had ended."""
    from ..codegen.program.compile import compile_graph
    from ..ir.passes import optimise, storable

    signature = graph.input_types, graph.output_types
    verify = config.verify
    params = graph.params
    graph = optimise(storable(graph), verify=verify)
    if options.lengths:
        from ..codegen.sizes import NotSized  # few programs have such
        from ..ir.passes.lengths import counted, within_lengths

        if counted(graph, [capacity for capacity, *_ in options.lengths]):
            raise NotSized("the number of elements is computed with")

        # Last, as it is right only for code whose loops end at lengths.
        lengths = {params[param]: capacity for capacity, param, *_ in options.lengths}
        graph = within_lengths(graph, lengths)
    optimised = time.perf_counter()
    free = replace(target, fastmath=options.fastmath, threads=options.threads)
    module = compile_graph(
        graph, free, strides, signature, options.donations, verify, options.lengths
    )
    return module, optimised


def load_cached(key: str, files: Mapping[str, str]) -> Executable | None:
    """The executable that is known under `key`, here or on disk, with source files renamed."""
    name = digest(key, *sorted(f"{a}\0{b}" for a, b in files.items())) if files else key
    executable = _executables.get(name)
    if executable is None:
        executable = _load(key, current_target(), files)
        if executable is not None:
            _executables.put(name, executable)
    return executable


def _load(key: str, target: Target, files: Mapping[str, str] | None = None) -> Executable | None:
    """The executable that an earlier process left on disk."""
    cache = disk_cache()
    data = cache.get(key)
    if data is None:
        return None
    stored = load_executable(data)
    if stored is not None:
        module, code = stored
        if files:
            rename_files(module, files)
        try:
            return Executable(module, target, code, key=key)
        except NativeError:
            pass
    cache.discard(key)  # nothing of ours after all: it is made again
    return None


def clear_memory_cache() -> None:
    """Forget all executables; those in use elsewhere stay valid."""
    _executables.clear()


def graph_key(graph: Graph) -> str:
    """A hash of everything about `graph` that its code and its error messages depend on."""
    parts: list[str] = [graph.name]
    _describe(graph, parts)
    return digest("graph", "\0".join(parts))


def _describe(graph: Graph, parts: list[str]) -> None:
    """Append words that say what `graph` is; no word has a zero byte in it."""
    put = parts.append
    number: dict[Value, str] = {}
    types: dict[int, str] = {}  # by identity: many values share a type object

    def define(values: Sequence[Value]) -> None:
        for value in values:
            number[value] = str(len(number))
            word = types.get(id(value.type))
            if word is None:
                word = types[id(value.type)] = str(value.type)
            put(word)

    define(graph.params)
    line = None
    for op in graph.ops:
        put(op.definition.name)
        parts.extend([number[v] for v in op.operands])
        for name in sorted(op.attrs):
            put(f".{name}")
            _describe_attribute(op.attrs[name], parts)
        if op.loc is not line:
            line = op.loc
            put(f"@{line.file}:{line.line}:{line.inside}{line.knobs or ''}" if line else "@")
        put("=")
        define(op.results)
        for region in op.regions:
            put("{")
            _describe(region, parts)
            put("}")
    put("return")
    parts.extend([number[v] for v in graph.outputs])


def _describe_attribute(value: Any, parts: list[str]) -> None:
    if isinstance(value, np.ndarray):
        parts += (dtype_name(value.dtype), str(value.shape), value.tobytes().hex())
    elif isinstance(value, (tuple, list)) and not all(type(item) is int for item in value):
        parts.append("(")
        for item in value:
            _describe_attribute(item, parts)
        parts.append(")")
    else:  # repr tells -0.0 from 0.0 and 1 from 1.0 and True
        parts += (type(value).__name__, repr(value))
