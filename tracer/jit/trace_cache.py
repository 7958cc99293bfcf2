"""Traces remembered on disk: a process that runs the same program again traces nothing.

What is stored is what a call needs beside machine code: how results and containers are built from
outputs, which arguments are written, arrays that the function made for itself while it was traced. The
machine code stands under a key of its own, made of the graph (`runtime.compile`).

The key is a `Fingerprint` of the function and of everything that it reaches, with the arguments'
structure, types and static values. It is taken before and after tracing: a function that changes what
it reads is not remembered. Arrays that the function reads are inputs of the code, unless Python needed
their elements; then a note under the first key says so, and a second key has their content in it.
"""

from __future__ import annotations

import inspect
import pickle
from collections import Counter
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.collector import loading
from ...ir.graph import Graph, Value
from ...ir.record import field, record, replace
from ...ir.surface import ensure
from ...ir.types import type_of
from ...runtime.cache.disk import disk_cache
from ...runtime.cache.installation import digest, installation
from ...runtime.recording import current
from ..captures.captured_variables import CapturedVariables
from ..captures.fingerprint import Fingerprint
from ..captures.heap_nodes import Fixed, Policy
from ..captures.purity_allow_list import Unkeyable
from ..captures.subjects import Object
from ..core.specs import Spec, Static
from ..core.stack import most_calls
from ..core.traced import Capture, LastingView, Result, Traced
from ..data import pytree
from .dispatch import Call, StaticLeaf
from .options import Options

if TYPE_CHECKING:
    from ...runtime.executable import Executable
    from ..captures.effects.recipes import Effects
    from ..captures.heap import Heap

_CAPTURE_LIMIT = 16 << 20  # bytes of arrays that a record may hold


@record(frozen=False)
class StoredTrace:
    """A trace that an earlier process made: what `Traced` is, less the graph.

    `captures` are the arrays that the function made for itself, `dropped` the guards of what code reads
    that did not run, `effects` and `apart` are those of the heap. `code` names the executable,
    and `files` says how its source files are called now.
    """

    out_tree: pytree.TreeDef
    results: list[Result]
    mutated: list[int]
    overwritten: list[int]
    captures: list[np.ndarray[Any, Any]]
    code: str
    dropped: frozenset[Hashable] = frozenset()
    files: dict[str, str] = field(default_factory=dict)
    effects: Effects | None = None
    apart: list[list[tuple[int, bool]]] = field(default_factory=list)
    natives: list[Any] = field(default_factory=list)  # how containers of outside become native ones

    @staticmethod
    def of(traced: Traced, code: str, captured: CapturedVariables) -> StoredTrace | None:
        """What to keep of a trace; None if it holds objects of this process."""
        captures = [capture.outer for capture in traced.captures if capture.private]
        if not code or len(captures) != len(traced.captures):
            return None
        views = [view for result in traced.results for view in result.views]
        if not all(isinstance(view, LastingView) for view in views):
            return None
        if not all(_is_plain(result.static) for result in traced.results):
            return None
        effects, heap = captured.effects, captured.heap
        if effects is not None and not effects.is_plain:
            return None
        if heap is not None and heap.policy.classes:
            return None
        arrays = [array for array in captures if isinstance(array, np.ndarray)]
        return StoredTrace(
            traced.out_tree,
            traced.results,
            traced.mutated,
            traced.overwritten,
            arrays,
            code,
            captured.dropped,
            effects=effects and replace(effects, leaves=[]),
            apart=[] if heap is None else heap.apart,
            natives=[] if heap is None else heap.natives.entering,
        )

    def traced(self, name: str, executable: Executable) -> Traced:
        """The trace again. Its graph is empty: it was not made here.

        Arrays that were pickled have come back in C order, with dtypes that are equal only: they get
        the layout for which the code was made, so that no call has to do it."""
        from ...runtime.executable import prepare

        module, count = executable.module, len(self.captures)
        first, end = executable.n_arguments - count, executable.n_arguments
        layouts = zip(module.inputs[first:end], module.input_strides[first:end], strict=True)
        pairs = zip(self.captures, layouts, strict=True)
        arrays = [prepare(array, type, strides) for array, (type, strides) in pairs]
        captures = [Capture(array, Value(type_of(array), None, 0)) for array in arrays]
        return Traced(
            Graph(name),
            self.out_tree,
            self.results,
            captures,
            self.mutated,
            overwritten=self.overwritten,
        )


@record
class _Record:
    """What is stored for a key: the trace, and how its source files were called then."""

    recalled: StoredTrace
    files: tuple[str, ...]


@record
class _Key:
    """What stands for a call of a function."""

    name: str
    files: tuple[str, ...]


@record
class _How:
    """How a function was traced: with stand-ins for arrays, with which numbers of the heap as inputs."""

    substitutes: bool
    wary: bool
    policy: Policy

    @classmethod
    def of(cls, captured: CapturedVariables) -> _How:
        return cls(captured.substitutes, captured.wary, captured.policy)


class CachedTrace:
    """One call of a function that has to be compiled, and what the disk knows of it."""

    def __init__(self, function: Any, call: Call, options: Options) -> None:
        self._function = function
        self._call = call
        self._options = options
        self._key: _Key | None = None  # as it was before tracing
        self._first: CapturedVariables | None = None  # what it was made of
        self._empty: set[int] = set()  # caches of functions that were empty before tracing
        unused = options.backend != "native" or options.check or current() is not None
        self._used = not unused and disk_cache().enabled

    def load(
        self, captured: CapturedVariables, capture: Callable[..., CapturedVariables]
    ) -> tuple[StoredTrace, CapturedVariables, Executable] | None:
        """What an earlier process left; `capture` gives the captured variables in other ways."""
        if not self._used:
            return None
        key = self._key = self._take(captured)
        self._first = captured
        if key is None:
            return None
        how = _note_of(key)
        if how is not None:
            captured = capture(substitute=how.substitutes, wary=how.wary, policy=how.policy)
            key = self._take(captured)
        recalled = _read(key)
        if recalled is None:
            return None
        from ...runtime.compile import load_cached

        executable = load_cached(recalled.code, recalled.files)
        if executable is None:
            return None
        captured.settle_as(recalled.dropped)
        captured.effects = recalled.effects
        if captured.heap is not None:
            captured.heap.apart = recalled.apart
            captured.heap.natives.entering = recalled.natives
        return recalled, captured, executable

    def store(self, traced: Traced, captured: CapturedVariables, code: str) -> None:
        """Store a trace that was made, unless something in it does not last."""
        if self._key is None or not disk_cache().writable:
            return
        recalled = StoredTrace.of(traced, code, captured)
        if recalled is None:
            return
        first = captured if self._first is None else self._first
        key = self._take(first)
        if key is None or key != self._key:
            return  # the function changes what it reads
        how = _How.of(captured)
        if how != _How.of(first):
            key = self._take(captured)
            if key is None:
                return
            try:
                note = pickle.dumps(how)
            except Exception:  # keys of dicts, of classes that are nowhere to be found by name
                return
            disk_cache().put(_note_name(self._key), note)
        _write(key, recalled)
        _put_mark(self._function)

    def _take(self, captured: CapturedVariables) -> _Key | None:
        """The key as things are now; None if nothing can stand for the call."""
        hidden = [leaf for leaf in captured.arrays() if isinstance(leaf, np.ndarray)]
        key = Fingerprint([*hidden, *captured.generators()], self._empty)
        try:
            key.value(self._function)
            key.put(self._options.key(), str(most_calls()))
            _arguments(key, self._call)
            for entry in captured.hidden:
                key.put(str(entry.path), str(entry.tree.num_leaves))
                key.put(*(repr(s) if isinstance(s, Spec) else "static" for s in entry.specs))
            if captured.heap is not None:
                _heap(key, captured.heap)
            else:
                _objects(key, self._call)
            from ...runtime.native.host import current_target

            name = key.digest("trace", installation(), current_target().key())
        except (Unkeyable, RecursionError):
            return None
        self._empty |= key.empty_caches
        return _Key(name, tuple(key.files))


def _arguments(key: Fingerprint, call: Call) -> None:
    key.put("arguments", str(len(call.args)), *call.kwargs)
    for argument in (*call.args, *call.kwargs.values()):
        _structure(key, argument)
    for spec, name in zip(call.specs, call.leaf_names(), strict=True):
        if isinstance(spec, Static):
            key.value(spec.value)
        elif isinstance(spec, Object):
            key.value(spec.cls)
        else:
            key.put(name, repr(spec))


def _objects(key: Fingerprint, call: Call) -> None:
    for _, value in call.objects:
        key.value(value)


def _heap(key: Fingerprint, heap: Heap) -> None:
    """What the heap is like, but for the values of its inputs."""
    for path, content in heap.roots:
        key.put(str(path), repr(content) if not isinstance(content, Fixed) else "fixed")
        if isinstance(content, Fixed) and type(content.value) in (set, Counter):
            key.value(content.value)
    for node in heap.nodes:
        key.put("node", str(node.log))
        key.value(node.cls)
        for name, content in node.slots.items():
            key.value(name)
            if isinstance(content, Fixed):
                key.value(content.value)
            else:
                key.put(repr(content))
    key.put(*map(repr, heap.specs))


def _structure(key: Fingerprint, tree: Any) -> None:
    """The containers of an argument, without its leaves."""
    cls = type(tree)
    if tree is None or cls in (list, tuple, dict):
        key.put(cls.__name__)
        if cls is dict:
            for name, item in tree.items():
                key.value(name)
                _structure(key, item)
        elif tree is not None:
            key.put(str(len(tree)))
            for item in tree:
                _structure(key, item)
    elif isinstance(tree, tuple) and hasattr(cls, "_fields"):
        key.value(cls)
        for item in tree:
            _structure(key, item)
    elif cls is StaticLeaf:
        key.put("static")
    elif (fields := pytree.dataclass_fields(cls)) is not None:
        children, fixed = fields
        key.value(cls)
        for name in children:
            key.put(name)
            _structure(key, getattr(tree, name))
        for name in fixed:
            key.put(name)
            key.value(getattr(tree, name))
    elif (matrix := pytree.sparse_matrix(tree)) is not None:
        key.put("sparse")
        _structure(key, matrix)
    elif pytree.flatten(tree)[1].is_leaf():
        key.put("leaf")
    else:
        raise Unkeyable(f"a container of type {cls.__qualname__}")


def _read(key: _Key | None) -> StoredTrace | None:
    data = None if key is None else disk_cache().get(key.name)
    if key is None or data is None:
        return None
    try:
        record = pickle.loads(data)
    except Exception:  # classes that are not there (yet), pickles of another making
        return None
    if not isinstance(record, _Record) or len(record.files) != len(key.files):
        return None
    pairs = zip(record.files, key.files, strict=True)
    files = {before: now for before, now in pairs if before != now}
    return replace(record.recalled, files=files)


def _write(key: _Key, recalled: StoredTrace) -> None:
    if sum(array.nbytes for array in recalled.captures) > _CAPTURE_LIMIT:
        return
    try:
        data = pickle.dumps(_Record(recalled, key.files), pickle.HIGHEST_PROTOCOL)
    except Exception:  # classes that are nowhere to be found by name
        return
    disk_cache().put(key.name, data)


def _note_name(key: _Key) -> str:
    return digest("traced otherwise", key.name)


def _note_of(key: _Key) -> _How | None:
    """How a function of this key was traced, if not with the values that the key stands for."""
    data = disk_cache().get(_note_name(key))
    if data is None:
        return None
    try:
        how = pickle.loads(data)
    except Exception:  # of another making
        return None
    return how if isinstance(how, _How) else None


def load_for(function: Callable[..., Any]) -> None:
    """Import what the first call of a new function wants, so that it only traces and compiles; of
    one that an earlier process compiled, what running that wants."""
    known = seems_known(function)
    with loading():
        from ...runtime.compile import load_calls, load_compiler

        if known:
            from . import native_call  # noqa: F401

            load_calls()
        else:
            load_compiler()
            ensure("trace")


def seems_known(function: Any) -> bool:
    """Whether a trace of a function with this code was stored: a guess, made without its globals."""
    return _mark(function) in disk_cache()


def _mark(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return digest("mark", installation())
    return digest("mark", installation(), code.co_qualname, str(code.co_firstlineno), code.co_code)


def _put_mark(function: Any) -> None:
    mark = _mark(function)
    if mark not in disk_cache():
        disk_cache().put(mark, b"")


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, float, complex, str, bytes)
