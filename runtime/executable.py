"""Executable: a compiled graph that can be called.

    executable = Executable(module)             # a NativeModule from codegen
    outputs = executable.run([x, y])            # lists of ndarrays in, list of fresh ndarrays out

`run` may be called from many threads at once: each call has its own outputs, pointers and
scratch.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from ..codegen.module import (
    CALLBACK_ERROR,
    STATUS_WORDS,
    ErrorSite,
    KernelReport,
    NativeModule,
)
from ..codegen.target import Target
from ..ir.types import DTYPE_NAMES, TensorType
from . import memory
from .callbacks import Callbacks
from .engine import Engine, Library, engine_for, host_target
from .invoke import (
    ANY_STRIDE,
    REPORTED_WORDS,
    native_dtype,
    native_invoke,
    plan_words,
    required_strides,
)

Array = np.ndarray[Any, Any]

_SHORT_WORK = 20_000  # scalar operations: about 20 us of scalar code, below it the GIL is kept
_EXCEPTIONS: dict[str, type[Exception]] = {
    "index": IndexError,
    "assert": AssertionError,
    "value": ValueError,
    "memory": MemoryError,
}


class Executable:
    """Linked native code with its calling data. Unloaded when the last reference is gone.

    module:   the NativeModule, `kernels` and `errors` included
    nbytes:   size of the object file
    timings:  seconds, by stage (`link` is here; whoever compiled adds `trace`, `lower`, ...)
    """

    def __init__(self, module: NativeModule, target: Target | None = None) -> None:
        self.module = module
        self.timings: dict[str, float] = dict(module.notes.get("timings", {}))
        target = target or host_target()
        if not runs_here(target):
            raise ValueError(f"code for {target.triple} ({target.cpu}) cannot run on this machine")
        self._engine: Engine = engine_for(target)
        start = time.perf_counter()
        imports = runtime_imports(module.imports)
        self._callbacks = Callbacks(module.callbacks)
        if module.callbacks:
            imports[Target.CALLBACK] = self._callbacks.address
        self._library: Library = self._engine.load(module.text, [module.entry], imports)
        self.timings["native"] = time.perf_counter() - start
        self.nbytes = self._library.nbytes
        self._strides = [
            required_strides(type, steps)
            for type, steps in zip(module.inputs, module.input_strides, strict=True)
        ]
        self._outputs = [(type.shape, native_dtype(type.dtype)) for type in module.outputs]
        self._pooled = any(type.nbytes >= memory.POOLED_BYTES for type in module.outputs)
        entry = self._library.address(module.entry)
        release_gil = module.work is None or module.work > _SHORT_WORK
        words = plan_words(
            entry, module.inputs, module.input_strides, len(module.outputs), release_gil
        )
        self._plan = (ctypes.c_int64 * len(words))(*words)
        self._plan_address = ctypes.addressof(self._plan)
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(entry)
        self._invoke = native_invoke() or self._portable_invoke

    @property
    def llvm(self) -> str:
        """The LLVM text that was compiled."""
        return self.module.text

    @property
    def kernels(self) -> list[KernelReport]:
        return self.module.kernels

    def asm(self) -> str:
        """The assembly, made anew from the LLVM text."""
        return self._engine.asm(self.module.text)

    def __repr__(self) -> str:
        def listed(types: Sequence[TensorType]) -> str:
            return ", ".join(map(str, types))

        inputs, outputs = listed(self.module.inputs), listed(self.module.outputs)
        return f"<Executable {self.module.entry}({inputs}) -> ({outputs})>"

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """Call the native code. Returns fresh arrays.

        An input that differs from the declared layout only (strides, alignment, byte order,
        subclass) is copied or viewed as needed; one of another shape or dtype is a TypeError.
        """
        if self._pooled:
            outputs = [memory.empty(shape, dtype) for shape, dtype in self._outputs]
        else:
            outputs = [_empty(shape, dtype) for shape, dtype in self._outputs]
        nbytes = self.module.arena_bytes
        if nbytes:
            scratch = memory.take_scratch(nbytes)
            try:
                report = self._invoke(self._plan_address, arrays, outputs, scratch.address)
                if report is not None:
                    self._retry(report, arrays, outputs, scratch.address)
            finally:
                memory.give_scratch(scratch)
        else:
            report = self._invoke(self._plan_address, arrays, outputs, 0)
            if report is not None:
                self._retry(report, arrays, outputs, 0)
        return outputs

    def _retry(self, report: Any, arrays: Sequence[Array], outputs: Any, scratch: int) -> None:
        """After a refused call: prepare the arguments and call again, or raise."""
        if isinstance(report, int):
            inputs = self.module.inputs
            if len(arrays) != len(inputs):
                raise TypeError(f"{self!r} takes {len(inputs)} arrays, {len(arrays)} were given")
            fitting = [
                prepare(array, type, steps)
                for array, type, steps in zip(
                    arrays, inputs, self.module.input_strides, strict=True
                )
            ]
            report = self._invoke(self._plan_address, fitting, outputs, scratch)
            if isinstance(report, int):
                raise TypeError(f"input {report} of {self!r} cannot be brought into its layout")
        if report is not None:
            self._raise(report)

    def _raise(self, report: tuple[int, ...]) -> NoReturn:
        code, *status = report
        if code == CALLBACK_ERROR:
            raise self._callbacks.take_failure()
        if not 1 <= code <= len(self.module.errors):
            raise RuntimeError(f"{self!r} returned {code}, which is no error site of its: a bug")
        raise error_of(self.module.errors[code - 1], status)

    def _portable_invoke(self, plan: int, arrays: Any, outputs: Any, scratch: int) -> Any:
        """What `jitney_invoke` does, through NumPy's Python interface."""
        inputs = self.module.inputs
        if len(arrays) != len(inputs):
            return -1
        addresses = []
        for k, (array, type, strides) in enumerate(zip(arrays, inputs, self._strides, strict=True)):
            if not _fits(array, type, strides):
                return k
            addresses.append(array.ctypes.data)
        addresses += [out.ctypes.data for out in outputs]
        status = (ctypes.c_int64 * STATUS_WORDS)()
        block = (ctypes.c_void_p * (len(addresses) + 2))(
            *addresses, scratch, ctypes.addressof(status)
        )
        code = self._entry(ctypes.addressof(block))
        return (code, *status[:REPORTED_WORDS]) if code else None


_empty = np.empty


def error_of(site: ErrorSite, status: Sequence[int]) -> Exception:
    """The exception of an error site, with the values that native code left in the status block.

    The last line names the user's own line.
    """
    message = site.message
    dtypes = site.values or (("i64", "i64") if site.kind == "index" else ())
    if dtypes:
        words = np.array(status, np.int64)
        values = [
            words[k : k + 1].view(DTYPE_NAMES[name])[0].item() for k, name in enumerate(dtypes)
        ]
        message = message.format(*values)
    if site.loc is not None:
        where = f"at {site.loc.file}:{site.loc.line}"
        if site.loc.function:
            where += f", in {site.loc.function}"
        message = f"{message}\n  {where}" if message else where
    return _EXCEPTIONS[site.kind](message)


def runs_here(target: Target) -> bool:
    """Whether this machine has everything that the target's code may use."""
    host = host_target()
    on = {feature for feature in target.features.split(",") if feature.startswith("+")}
    return target.triple == host.triple and on <= set(host.features.split(","))


def runtime_imports(names: set[str]) -> dict[str, int]:
    """Addresses of the runtime's symbols among `names`; the linker finds the rest (libc, libm)."""
    from . import blas
    from .pool import thread_pool

    imports = {}
    for name in names:
        if name == Target.PARALLEL_FOR:
            imports[name] = thread_pool().parallel_for
        elif name in Target.BLAS_SYMBOLS:
            address = blas.blas_address(name)
            if address is None:
                raise RuntimeError(f"native code asks for {name}, but NumPy's BLAS was not found")
            imports[name] = address
        elif name in Target.PYTHON_SYMBOLS:
            function = getattr(ctypes.pythonapi, name)
            imports[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return imports


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
    if not same_strides and _overlaps(array.shape, steps, itemsize):
        raise ValueError(f"an array of strides {array.strides} cannot take the strides {steps}")
    if array.size == 0:
        return np.empty(array.shape, dtype)
    low = sum(span for span in spans if span < 0)
    high = sum(span for span in spans if span > 0)
    room = np.empty((high - low + itemsize) // itemsize, dtype)
    out: Array = np.ndarray(array.shape, dtype, buffer=room, offset=-low, strides=steps)
    np.copyto(out, array)
    return out


def _overlaps(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether two indices may name the same element: by stride, each axis must clear the last."""
    reach = itemsize
    for step, n in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if step < reach:
            return True
        reach = step * (n - 1) + reach
    return False
