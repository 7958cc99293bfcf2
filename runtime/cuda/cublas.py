"""cuBLASLt by ctypes, where it is found: products of matrices as NVIDIA's library does them.

    blas = find_blas(context)                      # None, and blas_reason(context) says why
    product = blas.prepare(gemm)                   # asks once for the best algorithm, and keeps it
    product.run(a, b, c, bias, workspace, stream)

It is never needed, and loaded when a product is first to be prepared. Wheels have it (`nvidia-cublas`,
`nvidia-cublas-cu12`: PyTorch and JAX bring them), and toolkits. Matrices are column by column for it:
our c = a @ b is its c' = b' @ a' over the same memory.

**Results** are the same in each run, on one kind of device and with one version of the library: the
algorithm is chosen once, from shapes and alignments, and where a sum is cut its parts are kept in the
type that is computed with and added up in a fixed order (split sums "in place", or rounded to 16 bits in
between, are not admitted). float32 is not rounded to TF32 unless the product says so.

Signatures and numbers are those of NVIDIA's cublasLt.h, cublas_api.h and library_types.h; what they mean
is told in https://docs.nvidia.com/cuda/cublas/#cublaslt-datatypes-reference, and the numbers stand, enum
by enum, in https://docs.nvidia.com/cuda/nvmath-python/latest/bindings/cublasLt.html (CUDA 13's as here).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import weakref
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ...codegen.cuda.program import BlasMatrix, Gemm
from ...ir.forks import renewed
from ...ir.surface import ensure
from .driver import Context
from .library import EMULATED, DeviceError

# P pointer or handle, I int or enum, Q uint64_t, L int64_t, Z size_t
_TYPES = {
    "P": ctypes.c_void_p,
    "I": ctypes.c_int,
    "Q": ctypes.c_uint64,
    "L": ctypes.c_int64,
    "Z": ctypes.c_size_t,
}
SIGNATURES = {
    "cublasLtCreate": "P",
    "cublasLtDestroy": "P",
    "cublasLtMatmulDescCreate": "PII",
    "cublasLtMatmulDescDestroy": "P",
    "cublasLtMatmulDescSetAttribute": "PIPZ",
    "cublasLtMatrixLayoutCreate": "PIQQL",
    "cublasLtMatrixLayoutDestroy": "P",
    "cublasLtMatrixLayoutSetAttribute": "PIPZ",
    "cublasLtMatmulPreferenceCreate": "P",
    "cublasLtMatmulPreferenceDestroy": "P",
    "cublasLtMatmulPreferenceSetAttribute": "PIPZ",
    "cublasLtMatmulAlgoGetHeuristic": "PPPPPPPIPP",
    "cublasLtMatmul": "PPPPPPPPPPPPPPZP",
}

# cublasStatus_t
_STATUS = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}
NOT_SUPPORTED = 15
# cudaDataType
REAL = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
# cublasComputeType_t
COMPUTE_32F, COMPUTE_64F, COMPUTE_32F_FAST_TF32 = 68, 70, 77
# cublasOperation_t
AS_IT_IS, TRANSPOSED = 0, 1
# cublasLtMatmulDescAttributes_t: int32, int32, uint32, pointer
TRANSPOSE_A, TRANSPOSE_B, EPILOGUE, BIAS_POINTER = 3, 4, 7, 8
# cublasLtMatrixLayoutAttribute_t: int32, int64
BATCH_COUNT, BATCH_STRIDE = 5, 6
# cublasLtMatmulPreferenceAttributes_t: uint64, uint32, uint32 each
MOST_WORKSPACE, REDUCTION_SCHEMES = 1, 3
ALIGNMENTS = (5, 6, 7, 8)  # of A, B, C, D
# cublasLtReductionScheme_t: parts of sums are kept in the type that is computed with
IN_COMPUTE_TYPE = 2
# cublasLtEpilogue_t
WITH_BIAS = 4


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class BlasError(DeviceError):
    """cuBLASLt refuses what it is asked for."""


def function_type(name: str) -> Any:
    """The ctypes prototype of a function of cuBLASLt."""
    return ctypes.CFUNCTYPE(ctypes.c_int, *(_TYPES[letter] for letter in SIGNATURES[name]))


class Blas:
    """The library's functions for one context. `version` as it tells it: 130100 is 13.1.0."""

    def __init__(
        self, context: Context, functions: Mapping[str, Any], version: int, where: str
    ) -> None:
        self.context = context
        self.version = version
        self.where = where
        self._functions = dict(functions)
        # A descriptor's bias belongs to the next call: one thread at a time.
        self.lock = renewed(threading.RLock())
        self._prepared: weakref.WeakValueDictionary[Any, PreparedGemm]
        self._prepared = weakref.WeakValueDictionary()
        handle = ctypes.c_void_p()
        with context:
            self.call("cublasLtCreate", ctypes.byref(handle))
        self._handle = handle.value or 0
        # What NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before.
        self.workspace = (32 << 20) if context.info.capability >= (9, 0) else (4 << 20)
        if context.info.emulated:
            self.workspace = 1 << 10

    def call(self, name: str, *arguments: Any) -> None:
        code = self._functions[name](*arguments)
        if code:
            raise BlasError(f"{name}: {_STATUS.get(code, f'error {code}')}", code)

    def prepare(self, gemm: Gemm) -> PreparedGemm:
        """A product that can be run, one for all that differ in addresses only. BlasError if the
        library cannot do it."""
        matrices = [(m.dtype, m.turned, m.ld, m.stride, m.alignment) for m in gemm.matrices]
        key = gemm.shape, *matrices, gemm.bias is not None, gemm.bias_alignment, gemm.tf32
        with self.context, self.lock:
            prepared = self._prepared.get(key)
            if prepared is None:
                prepared = self._prepared[key] = PreparedGemm(self, gemm)
        return prepared

    @property
    def handle(self) -> int:
        return self._handle

    def __del__(self) -> None:
        if getattr(self, "_handle", 0) and not sys.is_finalizing():
            with suppress(DeviceError), self.context:  # a process that forked has none
                self._functions["cublasLtDestroy"](self._handle)


class _Descriptors:
    """Opaque objects of the library, which live as long as this."""

    def __init__(self, blas: Blas) -> None:
        self._blas = blas
        self._made: list[tuple[str, int]] = []

    def make(self, kind: str, *arguments: Any) -> int:
        made = ctypes.c_void_p()
        self._blas.call(f"cublasLt{kind}Create", ctypes.byref(made), *arguments)
        self._made.append((f"cublasLt{kind}Destroy", made.value or 0))
        return made.value or 0

    def set(self, kind: str, thing: int, attribute: int, type: Any, value: int) -> None:
        data = type(value)
        name = f"cublasLt{kind}SetAttribute"
        self._blas.call(name, thing, attribute, ctypes.byref(data), ctypes.sizeof(data))

    def __del__(self) -> None:
        if not sys.is_finalizing():
            for name, thing in reversed(getattr(self, "_made", [])):
                self._blas._functions[name](thing)


class PreparedGemm:
    """A product with its descriptors and algorithm. `workspace` bytes are needed for a run."""

    def __init__(self, blas: Blas, gemm: Gemm) -> None:
        self._blas = blas
        self.biased = gemm.bias is not None
        made = self._made = _Descriptors(blas)
        batch, m, n, k = gemm.shape
        wide = gemm.left.dtype == "float64"
        compute = COMPUTE_64F if wide else COMPUTE_32F
        if gemm.tf32:
            compute = COMPUTE_32F_FAST_TF32
        scalar: Any = ctypes.c_double if wide else ctypes.c_float
        self._alpha, self._beta = scalar(1), scalar(0)
        self._matmul = made.make("MatmulDesc", compute, REAL["float64" if wide else "float32"])
        for attribute, matrix in ((TRANSPOSE_A, gemm.right), (TRANSPOSE_B, gemm.left)):
            turned = TRANSPOSED if matrix.turned else AS_IT_IS
            made.set("MatmulDesc", self._matmul, attribute, ctypes.c_int32, turned)
        if self.biased:
            made.set("MatmulDesc", self._matmul, EPILOGUE, ctypes.c_uint32, WITH_BIAS)
            # What algorithms there are depends on how well this is aligned.
            self._set_bias(gemm.bias_alignment)
        self._a = self._layout(gemm.right, k, n, batch)
        self._b = self._layout(gemm.left, m, k, batch)
        self._c = self._layout(gemm.result, m, n, batch)
        chosen = self._choose(gemm)
        self._algorithm = (ctypes.c_uint64 * 8)(*chosen.algorithm)
        self.workspace = int(chosen.workspace)

    def _set_bias(self, address: int) -> None:
        self._made.set("MatmulDesc", self._matmul, BIAS_POINTER, ctypes.c_void_p, address)

    def _layout(self, matrix: BlasMatrix, rows: int, columns: int, batch: int) -> int:
        """A matrix as the library sees it: our rows, or columns if it is turned, are its columns."""
        made = self._made
        across, down = (rows, columns) if matrix.turned else (columns, rows)
        layout = made.make("MatrixLayout", REAL[matrix.dtype], across, down, matrix.ld)
        if batch > 1:
            made.set("MatrixLayout", layout, BATCH_COUNT, ctypes.c_int32, batch)
            made.set("MatrixLayout", layout, BATCH_STRIDE, ctypes.c_int64, matrix.stride)
        return layout

    def _choose(self, gemm: Gemm) -> Heuristic:
        """What the library thinks the best algorithm for these shapes and alignments."""
        made, blas = self._made, self._blas
        wishes = made.make("MatmulPreference")

        def wish(attribute: int, type: Any, value: int) -> None:
            made.set("MatmulPreference", wishes, attribute, type, value)

        wish(MOST_WORKSPACE, ctypes.c_uint64, blas.workspace)
        wish(REDUCTION_SCHEMES, ctypes.c_uint32, IN_COMPUTE_TYPE)
        matrices = (gemm.right, gemm.left, gemm.result, gemm.result)
        for attribute, matrix in zip(ALIGNMENTS, matrices, strict=True):
            wish(attribute, ctypes.c_uint32, matrix.alignment)
        heuristic, count = Heuristic(), ctypes.c_int()
        blas.call(
            "cublasLtMatmulAlgoGetHeuristic", blas.handle, self._matmul, self._a, self._b, self._c,
            self._c, wishes, 1, ctypes.byref(heuristic), ctypes.byref(count),
        )  # fmt: skip
        if count.value < 1 or heuristic.state:
            raise BlasError(
                f"cuBLASLt has no algorithm for a product of {gemm.shape} in {gemm.left.dtype}",
                heuristic.state or NOT_SUPPORTED,
            )
        return heuristic

    def run(
        self, left: int, right: int, result: int, bias: int, workspace: int, stream: int
    ) -> None:
        """Begin the product on a stream, also on one that is being captured: nothing is allocated."""
        blas = self._blas
        with blas.context, blas.lock:
            if self.biased:
                self._set_bias(bias)
            blas.call(
                "cublasLtMatmul", blas.handle, self._matmul, ctypes.byref(self._alpha), right,
                self._a, left, self._b, ctypes.byref(self._beta), result, self._c, result, self._c,
                self._algorithm, workspace, self.workspace, stream,
            )  # fmt: skip


# Finding it


class _Found(NamedTuple):
    functions: Mapping[str, Any]
    version: int
    where: str


def library_paths(driver: int) -> list[str]:
    """Where the library may be: wheels' folders, without importing anything, then the loader's names.
    `driver`: the CUDA version that the driver serves; newer libraries are left out."""
    from importlib.util import find_spec

    majors = [major for major in (13, 12) if major <= driver // 1000]
    windows = os.name == "nt"
    names = {v: f"cublasLt64_{v}.dll" if windows else f"libcublasLt.so.{v}" for v in majors}
    spec = find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec is not None else []
    folders = [("cublas", "lib"), ("cublas", "bin")]
    paths = []
    for major, name in names.items():
        for root in roots:
            for folder in (*folders, (f"cu{major}", "lib"), (f"cu{major}", "bin", "x86_64")):
                path = os.path.join(root, *folder, name)
                if os.path.exists(path):
                    paths.append(path)
    return [*paths, *names.values()]


def load(driver: int) -> _Found:
    """The library's functions. BlasError, with the reason, if it is not found or lacks some."""
    for path in library_paths(driver):
        try:
            loaded = ctypes.CDLL(path)
        except OSError:
            continue
        return _Found(bound(loaded), int(_version(loaded)), path)
    raise BlasError("cuBLASLt is not found: pip install nvidia-cublas")


def _version(loaded: Any) -> int:
    function = loaded.cublasLtGetVersion
    function.argtypes, function.restype = [], ctypes.c_size_t
    return int(function())


def bound(loaded: Any) -> dict[str, Any]:
    """The functions of a loaded library, by name."""
    functions = {}
    for name, letters in SIGNATURES.items():
        function = getattr(loaded, name, None)
        if function is None:
            raise BlasError(f"this cuBLASLt has no {name}")
        function.argtypes = [_TYPES[letter] for letter in letters]
        function.restype = ctypes.c_int
        functions[name] = function
    return functions


_blas: weakref.WeakKeyDictionary[Context, Blas | BlasError] = weakref.WeakKeyDictionary()
_finding = renewed(threading.RLock())


def find_blas(context: Context) -> Blas | None:
    """The library for a context; None if there is none."""
    blas = _find(context)
    return blas if isinstance(blas, Blas) else None


def blas_reason(context: Context) -> str:
    """Why there is none; "" if there is one."""
    blas = _find(context)
    return "" if isinstance(blas, Blas) else str(blas)


def _find(context: Context) -> Blas | BlasError:
    with _finding:
        if context not in _blas:
            _blas[context] = _open(context)
        return _blas[context]


def _open(context: Context) -> Blas | BlasError:
    try:
        if context.info.emulated:
            ensure("emulated GPU")
            blas: Blas = EMULATED["cublas"](context)
            return blas
        return Blas(context, *load(context.info.driver))
    except BlasError as error:
        return error
