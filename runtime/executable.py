"""Executable: a compiled graph that can be called.

    executable = Executable(module)             # a NativeModule from codegen
    outputs = executable.run([x, y])            # lists of ndarrays in, list of fresh ndarrays out

`run` may be called from many threads at once: each call has its own outputs, pointers and
scratch.
"""

from __future__ import annotations

import ctypes
import linecache
import operator
import time
from collections.abc import Container, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ..codegen.module import (
    CALLBACK_ERROR,
    SANITIZER_ERROR,
    STATUS_WORDS,
    ErrorSite,
    KernelReport,
    NativeModule,
)
from ..codegen.target import Target
from ..ir.types import DTYPE_NAMES, TensorType
from .call.callable import NativeProgram, install, is_native, new_callable
from .call.program import ANY_STRIDE, CallProgram, Owned, native_dtype, overlaps, required_strides
from .callbacks import Callbacks
from .memory import arrays as memory
from .native.engine import engine_for, load_code
from .native.host import host_target
from .native.image import LoadedImage
from .native.records import Code

Array = np.ndarray[Any, Any]

_SHORT_WORK = 20_000  # scalar operations: about 20 us of scalar code, below it the GIL is kept
_EXCEPTIONS: dict[str, type[Exception]] = {
    "index": IndexError,
    "assert": AssertionError,
    "value": ValueError,
    "memory": MemoryError,
    "linalg": np.linalg.LinAlgError,
}


class Executable:
    """Linked native code with its calling data. Unloaded when the last reference is gone.

    module:   the NativeModule, `kernels` and `errors` included
    nbytes:   of memory that the code occupies
    timings:  seconds, by stage (`link` is here; whoever compiled adds `optimise`, `codegen`, ...)

    key:      its name in the cache on disk, "" if it cannot be stored

    `code` is what `Engine.assemble` made of the module's text, if it is there already.

    `executable(*arrays)` runs a call program (see `program`); arrays that do not have the declared
    layout come to `__call__` here, and so does every call where calls cannot be native.
    """

    def __new__(cls, *args: Any, **options: Any) -> Executable:
        return new_callable(cls)

    def __init__(
        self,
        module: NativeModule,
        target: Target | None = None,
        code: Code | None = None,
        key: str = "",
    ) -> None:
        self.module = module
        self.timings: dict[str, float] = dict(module.notes.get("timings", {}))
        target = target or host_target()
        if not self._runs(target):
            raise ValueError(f"code for {target.triple} ({target.cpu}) cannot run on this machine")
        self._target = target
        self.key = key
        if code is None:
            code = assemble(module, target)
        start = time.perf_counter()
        imports = runtime_imports(module.imports)
        callbacks = Callbacks(module.callbacks)
        if module.callbacks:
            imports[Target.CALLBACK] = callbacks.address
        if module.arrays:
            from .sanitizer.machine import sanitizer_addresses

            imports |= sanitizer_addresses()
        self._library: LoadedImage = load_code(code, [module.entry], imports)
        self.timings["link"] = time.perf_counter() - start
        self.nbytes = self._library.nbytes
        self._failed = _Failed(module, callbacks, target)
        long = module.work is None or module.work > _SHORT_WORK
        self._release_gil = long and not module.keeps_gil
        self._address = self._library.address(module.entry)
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self._address)
        if is_native(self):
            install(self, [self._program()])

    def _runs(self, target: Target) -> bool:
        return runs_here(target)

    def _program(self) -> NativeProgram:
        """Arrays in, a list of arrays out."""
        program = CallProgram()
        arrays = program.arguments(self.n_arguments)
        block = program.block(self.block_words)
        for k, array in enumerate(arrays):
            self.take(program, array, block + k, k)
        if self.runs_python:
            for array in arrays:
                program.hold(array)
        results, _ = self.write_call(program, block)
        program.give(program.make(list, results))
        return NativeProgram(program)

    @property
    def n_arguments(self) -> int:
        """How many arrays it takes: all inputs but the lengths of axes, which are last."""
        return len(self.module.inputs) - len(self.module.lengths)

    def take(
        self, program: CallProgram, array: int, block: int, number: int, writeable: bool = False
    ) -> None:
        """Guard the array of an input in a program."""
        type, steps = self.module.inputs[number], self.module.input_strides[number]
        ends = self._ends(type)
        if ends is not None:
            program.sized_array(array, block, type, *ends)
        else:
            program.array(array, block, type, steps, writeable)

    def is_sized(self, type: TensorType) -> bool:
        """Whether the first axis of an input or output has a length that is bound at the call."""
        return self._ends(type) is not None

    def _ends(self, type: TensorType) -> tuple[int, int] | None:
        """Between which numbers the length of the first axis of an input or output is."""
        leads = type.shape[:1]
        ends = ((least, most) for n, _, least, most in self.module.lengths if leads == (n,))
        return next(ends, None)

    @property
    def block_words(self) -> int:
        """How many pointers the entry takes: inputs, outputs, scratch, status."""
        return len(self.module.inputs) + len(self.module.outputs) + 2

    @property
    def runs_python(self) -> bool:
        """Whether Python code of this or another thread may run during a call."""
        big = any(type.nbytes >= memory.POOLED_BYTES for type in self.module.outputs)
        big = big or self.module.arena_bytes >= memory.POOLED_BYTES  # NumPy's handler is switched
        return self._release_gil or big or bool(self.module.callbacks)

    @property
    def calls_out(self) -> bool:
        """Whether a run does things in Python that cannot be done again."""
        return bool(self.module.callbacks) or self.module.keeps_gil

    def write_call(
        self,
        program: CallProgram,
        block: int,
        scalars: Container[int] = (),
        again: bool = False,
        held: bool = False,
    ) -> tuple[list[Owned], dict[int, int]]:
        """Write the call of the entry into a program: allocate the outputs and run.

        The pointers to the inputs are in the words from `block`. Gives the output arrays, and for
        the outputs whose numbers are in `scalars` the words of the frame where their values are.
        With `again`, a call whose check fails is one that the program does not take; with `held` the GIL
        is not released. Whoever runs the program keeps `self`.
        """
        first = block + len(self.module.inputs)
        for capacity, number, *_ in self.module.lengths:
            program.length(block + number, capacity)
        arrays: list[Owned] = []
        values: dict[int, int] = {}
        for k, type in enumerate(self.module.outputs):
            if k in scalars:
                values[k] = program.result_slot(first + k)
            elif self.is_sized(type):
                handler = _handler(type.nbytes)
                arrays.append(program.allocate_sized(first + k, type, handler, memory.POOLED_BYTES))
            else:
                arrays.append(program.allocate(first + k, type, _handler(type.nbytes)))
        arena = self.module.arena_bytes
        if arena:
            program.scratch(block + self.block_words - 2, arena, _handler(arena))
        status = block + self.block_words - 1
        callbacks = bool(self.module.callbacks)
        again = again and bool(self.module.errors) and not self.calls_out
        releases = self._release_gil and not held
        program.run(self._address, block, status, releases, callbacks, self._failed, again)
        return arrays, values

    @property
    def llvm(self) -> str:
        """The LLVM text that was compiled."""
        return self.module.text

    @property
    def kernels(self) -> list[KernelReport]:
        return self.module.kernels

    def asm(self) -> str:
        """The assembly, made anew from the LLVM text."""
        return engine_for(self._target).asm(self.module.text)

    def __repr__(self) -> str:
        def listed(types: Sequence[TensorType]) -> str:
            return ", ".join(map(str, types))

        inputs, outputs = listed(self.module.inputs), listed(self.module.outputs)
        return f"<Executable {self.module.entry}({inputs}) -> ({outputs})>"

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Call the native code. Returns fresh arrays.

        An input that differs from the declared layout only (strides, alignment, byte order,
        subclass) is copied or viewed as needed, and copied back if the code writes to it; one of
        another shape or dtype is a TypeError.
        """
        return self(*arrays)

    def __call__(self, *arrays: Array) -> list[Array]:
        module = self.module
        count = self.n_arguments
        if len(arrays) != count:
            raise TypeError(f"{self!r} takes {count} arrays, {len(arrays)} were given")
        lengths = self.lengths_of(arrays)
        layouts = zip(arrays, module.inputs[:count], module.input_strides[:count], strict=True)
        fitting = [
            prepare(array, shortened(type, lengths), steps) for array, type, steps in layouts
        ]
        if any(map(operator.is_not, fitting, arrays)):
            native = is_native(self)  # this time
            outputs = self(*fitting) if native else self._run_through_python(fitting, lengths)
            for _, k in module.in_place:
                if fitting[k] is not arrays[k]:
                    np.copyto(arrays[k], fitting[k])
            return outputs
        return self._run_through_python(fitting, lengths)

    def lengths_of(self, arrays: Sequence[Array]) -> dict[int, int]:
        """Of each axis that has a capacity: how long it is in these arrays; TypeError if too long."""
        lengths: dict[int, int] = {}
        for array, type in zip(arrays, self.module.inputs, strict=False):
            if self.is_sized(type) and np.ndim(array):
                length = lengths.setdefault(type.shape[0], len(array))
                _, most = self._ends(type) or (0, 0)
                if length > most:
                    raise TypeError(f"expected {type} of at most {most} rows, got {length}")
        return lengths

    def bound(self, lengths: Mapping[int, int]) -> list[Array]:
        """The inputs behind the arguments: the lengths of axes."""
        return [np.array(lengths[capacity], np.int64) for capacity, *_ in self.module.lengths]

    def _run_through_python(self, fitting: list[Array], lengths: dict[int, int]) -> list[Array]:
        module = self.module
        types = [shortened(type, lengths) for type in module.outputs]
        outputs = [memory.empty(type.shape, native_dtype(type.dtype)) for type in types]
        fitting = [*fitting, *self.bound(lengths)]
        scratch = memory.take_scratch(module.arena_bytes) if module.arena_bytes else None
        try:
            self._call_entry(fitting, outputs, scratch.address if scratch else 0)
        finally:
            if scratch:
                memory.give_scratch(scratch)
        return outputs

    def _call_entry(self, inputs: list[Array], outputs: list[Array], scratch: int) -> None:
        """Call the entry through ctypes."""
        addresses = [array.ctypes.data for array in (*inputs, *outputs)]
        status = (ctypes.c_int64 * STATUS_WORDS)()
        block = (ctypes.c_void_p * self.block_words)(*addresses, scratch, ctypes.addressof(status))
        try:
            code = self._entry(ctypes.addressof(block))
        except SystemError as error:  # "returned a result with an exception set": an interrupt
            raise (error.__cause__ or error) from None
        if code:
            self._failed(code, *status)


class _Failed:
    """Raises what an error status of an entry means."""

    def __init__(self, module: NativeModule, callbacks: Callbacks, target: Target) -> None:
        self._module = module
        self._callbacks = callbacks
        self._target = target

    def __call__(self, code: int, *status: int) -> NoReturn:
        if code == CALLBACK_ERROR:
            raise self._callbacks.take_failure()
        if code == SANITIZER_ERROR and self._module.arrays:
            from .sanitizer.report import violation

            raise violation(self._module, self._target, status)
        if not 1 <= code <= len(self._module.errors):
            entry = self._module.entry
            raise RuntimeError(f"{entry} returned {code}, which is no error site of its: a bug")
        site = self._module.errors[code - 1]
        error = error_of(site, status)
        error.jitney_site = site.loc  # type: ignore[attr-defined]
        raise error


def assemble(module: NativeModule, target: Target) -> Code:
    """Machine code for a module, and its checks if it is to be checked."""
    text = module.text
    if module.arrays:
        from .sanitizer.machine import check_module

        text = check_module(module, target).text
    return engine_for(target).assemble(text)


def _handler(nbytes: int) -> Any:
    """The memory handler for so many bytes; None for NumPy's own."""
    if nbytes < memory.POOLED_BYTES:
        return None
    return memory.recycler().handler


def error_of(site: ErrorSite, status: Sequence[int]) -> Exception:
    """The exception of an error site, with the values that native code left in the status block."""
    message = site.message
    dtypes = site.values or (("i64", "i64") if site.kind == "index" else ())
    if dtypes:
        words = np.array(status, np.int64)
        values = [
            words[k : k + 1].view(DTYPE_NAMES[name])[0].item() for k, name in enumerate(dtypes)
        ]
        if site.kind == "KeyError" and not message:  # of a dict: the key itself
            return _located(KeyError(values[0] if len(values) == 1 else tuple(values)), site)
        message = message.format(*values)
    kind = _EXCEPTIONS.get(site.kind) or exceptions_of_users()[site.kind]
    return _located(kind(message) if message else kind(), site)


def _located(error: Exception, site: ErrorSite) -> Exception:
    """The exception, whose message is Python's, with a note that shows the user's line."""
    if site.loc is not None:
        source = linecache.getline(site.loc.file, site.loc.line).strip()
        note = f"at {site.loc}{site.loc.inside}"
        error.add_note(f"{note}\n    {source}" if source else note)
    return error


def exceptions_of_users() -> dict[str, type[Exception]]:
    """What an `assert` op may raise."""
    from ..ir.ops.control.effects import ERRORS

    return ERRORS


def runs_here(target: Target) -> bool:
    """Whether this machine has everything that the target's code may use."""
    host = host_target()
    on = {feature for feature in target.features.split(",") if feature.startswith("+")}
    return target.triple == host.triple and on <= set(host.features.split(","))


def runtime_imports(names: set[str]) -> dict[str, int]:
    """Addresses of the runtime's symbols among `names`; the linker finds the rest (libc, libm)."""
    from .threads.pool import thread_pool

    imports = {}
    for name in names:
        if name == Target.PARALLEL_FOR:
            imports[name] = thread_pool().parallel_for
        elif name == Target.RECORD:
            imports[name] = thread_pool().record
        elif name == Target.WATCHED_FOR:
            imports[name] = thread_pool().watched_for
        elif name in Target.PYTHON_SYMBOLS:
            function = getattr(ctypes.pythonapi, name)
            imports[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
        elif name.startswith((Target.LOOP, Target.LOOP_DATA)):
            from .library_loops import loop_address

            imports[name] = loop_address(name)
        elif name.startswith(Target.RANDOM):
            from .random_functions import function_address

            imports[name] = function_address(name.partition(":")[2])
        elif name.startswith(Target.BLAS):
            from .library_loops import blas_address

            imports[name] = blas_address(name)
    return imports


def shortened(type: TensorType, lengths: Mapping[int, int]) -> TensorType:
    """A type with the length of a call in place of the capacity of its first axis."""
    if not lengths or type.shape[:1] == () or type.shape[0] not in lengths:
        return type
    return TensorType((lengths[type.shape[0]], *type.shape[1:]), type.dtype)


def _fits(array: Any, type: TensorType, strides: Sequence[int]) -> bool:
    return (
        array.__class__ is np.ndarray
        and array.dtype is native_dtype(type.dtype)
        and array.shape == type.shape
        and array.flags.aligned
        and all(
            want in (ANY_STRIDE, have) for have, want in zip(array.strides, strides, strict=True)
        )
    )


def prepare(array: Array, type: TensorType, strides: Sequence[int]) -> Array:
    """`array` itself if it has the type, strides (in elements) and alignment; else a view or copy.

    Raises TypeError if the shape or the dtype (byte order aside) differ, and ValueError if the
    declared strides visit an element twice and the array does not have them.
    """
    required = required_strides(type, tuple(strides))
    if _fits(array, type, required):
        return array
    dtype = native_dtype(type.dtype)
    plain = np.asarray(array)
    if plain.shape != type.shape or plain.dtype.newbyteorder("=") != dtype:
        raise TypeError(f"expected an array {type}, got {plain.dtype}{list(plain.shape)}")
    if plain.dtype is not dtype and plain.dtype == dtype:
        plain = plain.view(dtype)
    if _fits(plain, type, required):
        return plain
    return _copy_into_layout(plain, dtype, required)


def _copy_into_layout(array: Array, dtype: np.dtype[Any], required: Sequence[int]) -> Array:
    itemsize = dtype.itemsize
    steps = [0 if step == ANY_STRIDE else step for step in required]
    spans = [(n - 1) * step for n, step in zip(array.shape, steps, strict=True) if n > 1]
    same_strides = all(
        want in (ANY_STRIDE, have) for have, want in zip(array.strides, required, strict=True)
    )
    if not same_strides and overlaps(array.shape, steps, itemsize):
        raise ValueError(f"an array of strides {array.strides} cannot take the strides {steps}")
    if array.size == 0:
        return np.empty(array.shape, dtype)
    low = sum(span for span in spans if span < 0)
    high = sum(span for span in spans if span > 0)
    room = np.empty((high - low + itemsize) // itemsize, dtype)
    out: Array = np.ndarray(array.shape, dtype, buffer=room, offset=-low, strides=steps)
    np.copyto(out, array)
    return out
