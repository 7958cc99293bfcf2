"""A cuBLASLt without a GPU: C functions that check what they are given and multiply with NumPy.

It stands beside the emulated driver: work goes to that driver's streams, and addresses must be in what
was allocated there. It is stricter than the library: attributes that nobody set, sizes that do not fit
their attribute, layouts that do not fit each other and workspaces that are too small are refused.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import numpy as np

from .. import cublas
from ..cublas import Blas, Heuristic, function_type
from ..driver import Context
from ..library import EMULATED
from .driver import EmulatedLibrary, RefusedCall

_INVALID, _NOT_SUPPORTED = 7, 15
_DTYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("f4"),
    1: np.dtype("f8"),
    2: np.dtype("f2"),
    14: np.dtype("u2"),
}
_BFLOAT16 = 14
_WORKSPACE = 256  # bytes that its algorithm wants
_SECONDS_OF_A_FLOP = 1e-12
_SIZES = {  # of attributes, in bytes
    "matmul": {3: 4, 4: 4, 7: 4, 8: 8},
    "layout": {5: 4, 6: 8},
    "preference": {1: 8, 3: 4, 5: 4, 6: 4, 7: 4, 8: 4},
}


class _Thing:
    """A descriptor: what it was created with, and its attributes as numbers."""

    def __init__(self, kind: str, *parameters: int) -> None:
        self.kind = kind
        self.parameters = parameters
        self.attributes: dict[int, int] = {}


class _Refused(Exception):
    def __init__(self, why: str, code: int = _INVALID) -> None:
        super().__init__(why)
        self.code = code


class EmulatedBlas(Blas):
    """`failure`: why the last call was refused. `runs`: products that were asked for."""

    def __init__(self, context: Context) -> None:
        assert isinstance(context.cuda, EmulatedLibrary), "it stands beside the emulated driver"
        self.driver = context.cuda
        self.failure = ""
        self.runs = 0
        self.queries = 0
        self._things: dict[int, _Thing] = {}
        self._next = 0x100
        functions = {
            name: function_type(name)(self._guarded(getattr(self, f"_{name}")))
            for name in cublas.SIGNATURES
        }
        super().__init__(context, functions, 0, "emulated")

    def call(self, name: str, *arguments: Any) -> None:
        self.failure = ""
        try:
            super().call(name, *arguments)
        except cublas.BlasError as error:
            raise cublas.BlasError(f"{error}: {self.failure}", error.code) from None

    def alive(self) -> int:
        """How many descriptors and handles there are."""
        return len(self._things)

    def _guarded(self, method: Any) -> Any:
        def call(*arguments: Any) -> int:
            try:
                method(*(a or 0 for a in arguments))
            except (_Refused, RefusedCall) as error:
                self.failure = str(error)
                return error.code if isinstance(error, _Refused) else _INVALID
            except BaseException as error:
                self.failure = repr(error)
                return 14
            return 0

        return call

    def _new(self, pointer: int, kind: str, *parameters: int) -> None:
        self._next += 8
        self._things[self._next] = _Thing(kind, *parameters)
        ctypes.c_void_p.from_address(pointer).value = self._next

    def _get(self, thing: int, kind: str) -> _Thing:
        description = self._things.get(thing)
        if description is None or description.kind != kind:
            raise _Refused(f"{thing:#x} is no {kind}")
        return description

    def _destroy(self, thing: int, kind: str) -> None:
        self._get(thing, kind)
        del self._things[thing]

    def _set(self, thing: int, kind: str, attribute: int, data: int, size: int) -> None:
        sizes = _SIZES[kind]
        if attribute not in sizes:
            raise _Refused(f"attribute {attribute} of a {kind} is not known here")
        if size != sizes[attribute]:
            raise _Refused(f"attribute {attribute} of a {kind} has {sizes[attribute]} bytes")
        (value,) = struct.unpack("<q" if size == 8 else "<i", ctypes.string_at(data, size))
        self._get(thing, kind).attributes[attribute] = value

    # The functions

    def _cublasLtCreate(self, handle: int) -> None:
        self._new(handle, "handle")

    def _cublasLtDestroy(self, handle: int) -> None:
        self._destroy(handle, "handle")

    def _cublasLtMatmulDescCreate(self, made: int, compute: int, scale: int) -> None:
        if (compute, scale) not in ((68, 0), (77, 0), (70, 1)):
            raise _Refused(f"compute type {compute} with scale type {scale}", _NOT_SUPPORTED)
        self._new(made, "matmul", compute, scale)

    def _cublasLtMatmulDescDestroy(self, thing: int) -> None:
        self._destroy(thing, "matmul")

    def _cublasLtMatmulDescSetAttribute(
        self, thing: int, attribute: int, data: int, size: int
    ) -> None:
        self._set(thing, "matmul", attribute, data, size)

    def _cublasLtMatrixLayoutCreate(
        self, made: int, kind: int, rows: int, columns: int, ld: int
    ) -> None:
        if kind not in _DTYPES:
            raise _Refused(f"elements of type {kind}", _NOT_SUPPORTED)
        if ld < rows or not rows or not columns:
            raise _Refused(f"columns of {rows} elements, {ld} apart")
        self._new(made, "layout", kind, rows, columns, ld)

    def _cublasLtMatrixLayoutDestroy(self, thing: int) -> None:
        self._destroy(thing, "layout")

    def _cublasLtMatrixLayoutSetAttribute(
        self, thing: int, attribute: int, data: int, size: int
    ) -> None:
        self._set(thing, "layout", attribute, data, size)

    def _cublasLtMatmulPreferenceCreate(self, made: int) -> None:
        self._new(made, "preference")

    def _cublasLtMatmulPreferenceDestroy(self, thing: int) -> None:
        self._destroy(thing, "preference")

    def _cublasLtMatmulPreferenceSetAttribute(
        self, thing: int, attribute: int, data: int, size: int
    ) -> None:
        self._set(thing, "preference", attribute, data, size)

    def _cublasLtMatmulAlgoGetHeuristic(
        self, handle: int, matmul: int, a: int, b: int, c: int, d: int, preference: int,
        wanted: int, results: int, count: int,
    ) -> None:  # fmt: skip
        self._get(handle, "handle")
        self.queries += 1
        self._shapes(matmul, a, b, c, d)
        product = self._get(matmul, "matmul")
        if product.attributes.get(7, 1) == 4 and not product.attributes.get(8):
            raise _Refused("nobody said how a bias is aligned")
        wishes = self._get(preference, "preference").attributes
        if set(wishes) != set(_SIZES["preference"]) or wishes[3] != 2:
            raise _Refused("preferences that are not set, or parts of sums in another type")
        if wanted < 1:
            raise _Refused("no algorithm is wanted")
        fits = wishes[1] >= _WORKSPACE
        heuristic = Heuristic.from_address(results)
        alignments = [wishes[k] for k in (5, 6, 7, 8)]
        bias = product.attributes.get(8, 16)
        heuristic.algorithm[:] = self._algorithm(matmul, a, b, d, [*alignments, bias & -bias])
        heuristic.workspace, heuristic.state = _WORKSPACE, 0
        ctypes.c_int.from_address(count).value = int(fits)

    def _algorithm(self, matmul: int, a: int, b: int, d: int, alignments: list[int]) -> list[int]:
        """What stands for an algorithm: it serves the shapes and alignments that it was made for."""
        things = [self._things[t].parameters for t in (a, b, d)]
        return [hash((self._things[matmul].parameters, *things)) & (2**63 - 1), *alignments, 0, 1]

    def _shapes(self, matmul: int, a: int, b: int, c: int, d: int) -> tuple[int, ...]:
        """batch, m, n, k in the library's terms."""
        product = self._get(matmul, "matmul")
        layouts = [self._get(t, "layout") for t in (a, b, c, d)]
        if not {3, 4} <= set(product.attributes):
            raise _Refused("nobody said whether operands are transposed")
        sizes = []
        for layout, attribute in zip(layouts[:2], (3, 4), strict=True):
            rows, columns = layout.parameters[1:3]
            turned = product.attributes[attribute]
            if turned not in (0, 1):
                raise _Refused(f"operation {turned}")
            sizes.append((columns, rows) if turned else (rows, columns))
        (m, k), (inner, n) = sizes
        if k != inner or any(x.parameters[1:3] != (m, n) for x in layouts[2:]):
            raise _Refused(f"{m} x {k} times {inner} x {n} is not {layouts[3].parameters[1:3]}")
        kinds = [x.parameters[0] for x in layouts]
        wide = product.parameters[0] == 70
        fits = (kinds[0] == 1) == wide and kinds[0] == kinds[1] and kinds[2] == kinds[3]
        fits = fits and (kinds[3] == kinds[0] or (kinds[3] == 0 and not wide))
        if not fits or (product.parameters[0] == 77 and kinds[0]):
            raise _Refused(f"elements of types {kinds}", _NOT_SUPPORTED)
        batches = {x.attributes.get(5, 1) for x in layouts}
        if len(batches) != 1 or (batches != {1} and any(6 not in x.attributes for x in layouts)):
            raise _Refused("batches of other sizes, or without a stride")
        if product.attributes.get(7, 1) not in (1, 4):
            raise _Refused(f"epilogue {product.attributes[7]}", _NOT_SUPPORTED)
        return batches.pop(), m, n, k

    def _cublasLtMatmul(
        self, handle: int, matmul: int, alpha: int, a: int, a_layout: int, b: int, b_layout: int,
        beta: int, c: int, c_layout: int, d: int, d_layout: int, algorithm: int, workspace: int,
        nbytes: int, stream: int,
    ) -> None:  # fmt: skip
        self._get(handle, "handle")
        batch, m, n, k = self._shapes(matmul, a_layout, b_layout, c_layout, d_layout)
        product = self._get(matmul, "matmul")
        scalar: Any = ctypes.c_double if product.parameters[0] == 70 else ctypes.c_float
        if (scalar.from_address(alpha).value, scalar.from_address(beta).value) != (1, 0):
            raise _Refused("other factors than 1 and 0")
        chosen = list((ctypes.c_uint64 * 8).from_address(algorithm))
        if chosen != self._algorithm(matmul, a_layout, b_layout, d_layout, chosen[1:6]):
            raise _Refused("an algorithm for another product")
        bias = product.attributes.get(8, 0)
        for address, alignment in zip((a, b, c, d, bias), chosen[1:6], strict=True):
            if address % alignment:
                raise _Refused(f"{address:#x} is not a multiple of {alignment}")
        if nbytes < _WORKSPACE or workspace % 256:
            raise _Refused("the workspace is too small, or misaligned")
        self.driver.memory.check(workspace, nbytes)
        epilogue = product.attributes.get(7, 1)
        layouts = [self._things[t] for t in (a_layout, b_layout, d_layout)]
        turned = product.attributes[3], product.attributes[4]
        tf32 = product.parameters[0] == 77
        self.runs += 1

        def run() -> None:
            ctypes.memset(workspace, 0xFF, nbytes)
            left, right = (
                self._read(address, layout, batch, t, tf32)
                for address, layout, t in zip((a, b), layouts, turned, strict=False)
            )
            wide = left.astype(np.float64) @ right.astype(np.float64)
            if epilogue == 4:
                self.driver.memory.check(bias, m * 4)
                memory: Any = (ctypes.c_float * m).from_address(bias)
                wide = wide.astype(np.float32) + np.frombuffer(memory, np.float32)[:, None]
            self._write(d, layouts[2], wide)
            self.driver.now += 1e-6 + 2 * batch * m * n * k * _SECONDS_OF_A_FLOP

        self.driver._stream(stream).submit(run)

    def _memory(self, address: int, layout: _Thing, batch: int) -> np.ndarray[Any, Any]:
        """The elements of a layout in memory: batch, rows, columns."""
        kind, rows, columns, ld = layout.parameters
        dtype, stride = _DTYPES[kind], layout.attributes.get(6, 0)
        count = stride * (batch - 1) + ld * (columns - 1) + rows
        self.driver.memory.check(address, count * dtype.itemsize)
        memory: Any = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(address)
        flat = np.frombuffer(memory, dtype)
        strides = [s * dtype.itemsize for s in (stride, 1, ld)]
        return np.lib.stride_tricks.as_strided(flat, (batch, rows, columns), strides)

    def _read(
        self, address: int, layout: _Thing, batch: int, turned: int, tf32: bool
    ) -> np.ndarray[Any, Any]:
        matrices = self._memory(address, layout, batch)
        if layout.parameters[0] == _BFLOAT16:
            matrices = (matrices.astype(np.uint32) << 16).view(np.float32)
        if tf32:  # rounded to 10 bits after the point
            bits = np.ascontiguousarray(matrices).view(np.uint32)
            matrices = ((bits + 0x1000) & 0xFFFFE000).view(np.float32)
        return matrices.transpose(0, 2, 1) if turned else matrices

    def _write(self, address: int, layout: _Thing, values: np.ndarray[Any, Any]) -> None:
        target = self._memory(address, layout, len(values))
        if layout.parameters[0] == _BFLOAT16:
            bits = np.ascontiguousarray(values.astype(np.float32)).view(np.uint32)
            odd = (bits >> 16) & 1
            target[...] = np.where(np.isnan(values), 0x7FC0, (bits + 0x7FFF + odd) >> 16)
        else:
            target[...] = values


EMULATED["cublas"] = EmulatedBlas
