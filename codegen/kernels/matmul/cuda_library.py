"""Products of matrices by NVIDIA's cuBLASLt, where it is installed and wanted, or measured faster.

The library does not know what is done with the result, but for adding a vector to each row of float32,
which has the same bits as our own addition. Its ReLU (of NaN) and GELU (an approximation) have not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir.record import record
from ...cuda import program as device
from ...cuda.program import BlasMatrix, Gemm
from ...cuda.target import CudaTarget
from ...loop_ir.kernel import Array
from ...loop_ir.steps import Matmul, Tiled
from ...module import KernelReport

if TYPE_CHECKING:
    from ...device.build import ProgramBuilder

DTYPES = ("float64", "float32", "float16", "bfloat16")  # of elements that the library multiplies
BIASED = "float32"  # the dtype for which it adds a vector as we do
MOST = (1 << 31) - 1  # of rows and of columns
WAY = "cuBLASLt"


@record(frozen=False, eq=False)
class LibraryProduct(Tiled):
    """A product by cuBLASLt, and what it does with the result, which is `taken` then instead: a `bias`
    is added to each row, or it is `narrowed` to the floats of 16 bits that the operands are."""

    matmul: Matmul
    bias: Array | None = None
    start: int = 0  # elements before the bias in its array
    taken: Array | None = None
    narrowed: bool = False

    @property
    def reads(self) -> list[Array]:
        more = [] if self.bias is None else [self.bias]
        return [self.matmul.a, self.matmul.b, *more]

    @property
    def result(self) -> Array:
        return self.taken if self.taken is not None else self.matmul.c

    @property
    def writes(self) -> list[Array]:
        return [self.result]


# What the library can do.


def sides(product: Matmul) -> tuple[tuple[bool, int, int], tuple[bool, int, int]] | None:
    """Of both operands whether columns lie side by side, the leading dimension, and the step from matrix
    to matrix; None if the library cannot read them as they lie."""
    (ab, am, ak), (bb, bk, bn) = product.a_strides, product.b_strides
    left = _lying(product.m, product.k, am, ak)
    right = _lying(product.k, product.n, bk, bn)
    if left is None or right is None or (product.batch > 1 and min(ab, bb) < 0):
        return None
    return (*left, ab if product.batch > 1 else 0), (*right, bb if product.batch > 1 else 0)


def _lying(rows: int, columns: int, down: int, across: int) -> tuple[bool, int] | None:
    """Whether a matrix's columns are contiguous, and how far they, or else its rows, are apart."""
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return False, down if rows > 1 else columns
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return True, across if columns > 1 else rows
    return None


def operand_dtype(product: Matmul, array: Array) -> str:
    """The dtype, by name, in which the library reads an operand: as it is stored, or narrowed."""
    return {"f16": "float16", "bf16": "bfloat16"}.get(product.element, array.dtype.name)


def is_for_library(product: Matmul, target: CudaTarget) -> bool:
    """Whether the library, if there is one, can do a product."""
    dtypes = {operand_dtype(product, x) for x in (product.a, product.b)}
    return (
        target.blas != ""
        and len(dtypes) == 1
        and dtypes <= set(DTYPES)
        and product.c.dtype.name in (dtypes if "float64" in dtypes else {*dtypes, "float32"})
        and not product.panel
        and min(product.batch, product.m, product.n, product.k) > 0
        and max(product.batch, product.m, product.n, product.k) <= MOST
        and sides(product) is not None
    )


# Who does a product.


# Steps of the device.


def library_steps(builder: ProgramBuilder, step: LibraryProduct) -> list[device.Step]:
    """The call of the library: C = A B, with a bias for each row of C where the step has one."""
    dot = step.matmul
    lying = sides(dot)
    assert lying is not None, "the library can read the operands"
    left, right = (
        _matrix(builder, array, operand_dtype(dot, array), offset, side)
        for array, offset, side in (
            (dot.a, dot.a_offset, lying[0]),
            (dot.b, dot.b_offset, lying[1]),
        )
    )
    stored = operand_dtype(dot, dot.a) if step.narrowed else step.result.dtype.name
    result = _matrix(builder, step.result, stored, 0, (False, dot.n, dot.m * dot.n))
    bias, alignment = None, 16
    if step.bias is not None:
        at = step.start * step.bias.dtype.itemsize
        bias, alignment = builder.ref(step.bias, at), builder.alignment(step.bias, at)
    tf32 = builder.target.tf32 and dot.a.dtype == "float32"
    shape = (dot.batch, dot.m, dot.n, dot.k)
    step.name = dot.name = f"cublaslt_{operand_dtype(dot, dot.a)}_{'x'.join(map(str, shape))}"
    builder.note(_report(step, shape))
    return [Gemm(left, right, result, shape, bias, alignment, tf32)]


def _matrix(
    builder: ProgramBuilder, array: Array, dtype: str, offset: int, side: tuple[bool, int, int]
) -> BlasMatrix:
    turned, ld, stride = side
    at = offset * array.dtype.itemsize
    return BlasMatrix(
        builder.ref(array, at), dtype, turned, ld, stride, builder.alignment(array, at)
    )


def _report(step: LibraryProduct, shape: tuple[int, int, int, int]) -> KernelReport:
    batch, m, n, k = shape
    dot = step.matmul
    return KernelReport(
        name=step.name,
        ops=("dot", *["add"] * (step.bias is not None), *["narrow"] * step.narrowed),
        extents=shape,
        bytes_read=dot.a.dtype.itemsize * batch * (m + n) * k,
        bytes_written=step.result.nbytes,
        flops=2 * batch * m * n * k,
        parallel=True,
        note="by cuBLASLt",
        locs=(dot.loc,) if dot.loc is not None else (),
    )
