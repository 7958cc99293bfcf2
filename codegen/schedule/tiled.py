"""Steps that are loops around micro-kernels: convolutions and attention, as plain data.

Each is cut into units that threads share; `llvm/` has an emitter for each.
"""

from __future__ import annotations

import math
from typing import ClassVar

from ...ir.ops.libraries.library import LibraryLoop
from ...ir.record import record
from ..loop_ir.kernel import Array
from ..loop_ir.steps import Tiled
from .conv_plan import Axis, Cut, LongCut, Reach


@record(frozen=False, eq=False)
class Convolution(Tiled):
    """y[g, n, p, o] = sum over taps k and channels c of x[g, n, at(p, k), c] * w[g, k, c, o].

    There are three spatial dims, the first ones maybe trivial; `axes` says which taps meet which
    elements at which positions. Channels of x and features of y lie side by side; `x_strides` and
    `y_strides` are those of group, image and the spatial dims. w is packed:
    [group, block of channels, panel of features, *taps, channel, feature].
    """

    x: Array
    w: Array
    y: Array
    groups: int
    images: int
    channels: int
    features: int
    axes: tuple[Axis, ...]
    cut: Cut
    x_strides: tuple[int, ...]
    y_strides: tuple[int, ...]
    x_offset: int

    @property
    def units(self) -> int:
        """How many pieces threads share (see `codegen.schedule.conv_plan`)."""
        rows = -(-self.axes[1].positions // self.cut.block_rows)
        columns = -(-self.axes[2].positions // self.cut.block_columns)
        return self.groups * self.images * self.axes[0].positions * rows * columns

    @property
    def flops(self) -> int:
        sums = math.prod(sum(p.positions * p.taps for p in a.phases) for a in self.axes)
        return 2 * self.groups * self.images * self.channels * self.features * sums

    @property
    def reads(self) -> list[Array]:
        return [self.x, self.w]

    @property
    def writes(self) -> list[Array]:
        return [self.y]

    def __str__(self) -> str:
        return f"tiles of {self.cut.rows} x {self.cut.columns} positions, {self.cut.panel} features"


@record(frozen=False, eq=False)
class LongConvolution(Tiled):
    """partial[chunk, g, p, n, o] = sum over some k, c of x[g, n, at(p, k), c] * w[g, k, c, o].

    For few positions p and many taps k, as the gradient of a kernel has. Adds to what is in `y`. Strides
    of x: group, image, three spatial dims, channel; of w: group, three dims of taps, channel; features
    of w lie side by side.
    """

    x: Array
    w: Array
    y: Array
    groups: int
    images: int
    channels: int
    features: int
    dims: tuple[Reach, ...]
    cut: LongCut
    x_strides: tuple[int, ...]
    w_strides: tuple[int, ...]
    x_offset: int
    w_offset: int

    @property
    def positions(self) -> int:
        return math.prod(len(d.positions) for d in self.dims)

    @property
    def units(self) -> int:
        """How many pieces threads share."""
        units = self.groups * self.cut.chunks
        units *= self.positions if self.cut.split_positions else 1
        return units * (-(-self.features // self.cut.panel) if self.cut.split_panels else 1)

    @property
    def flops(self) -> int:
        sums = math.prod(sum(m.count for m in d.positions) for d in self.dims)
        return 2 * self.groups * self.images * self.channels * self.features * sums

    @property
    def reads(self) -> list[Array]:
        return [self.x, self.w, self.y]

    @property
    def writes(self) -> list[Array]:
        return [self.y]

    def __str__(self) -> str:
        return f"tiles of {self.cut.tile_rows} images, {self.cut.panel} features"


@record(frozen=False, eq=False)
class View:
    """Matrices in an array, elements of a row side by side: strides of batch dims and of rows."""

    array: Array
    batch: tuple[int, ...]
    row: int
    offset: int = 0


@record(frozen=False, eq=False)
class Attention(Tiled):
    """y = softmax(q @ k^T + bias) @ v and the logarithms of the sums, without the scores in memory.

    q is scaled, and packed in blocks of queries, transposed: [*batch, block, depth, query]; its row is a
    block. Rows of the bias are keys: neighbours along the queries lie side by side.
    """

    q: View
    k: View
    v: View
    bias: View | None
    y: View
    lse: View
    batch: tuple[int, ...]
    rows: int
    columns: int
    depth: int
    width: int
    causal: bool
    block: tuple[int, int]  # queries, keys
    rate: ClassVar[str] = "blocks"

    @property
    def units(self) -> int:
        return math.prod(self.batch) * -(-self.rows // self.block[0])

    @property
    def flops(self) -> int:
        seen = self.rows * self.columns // (2 if self.causal else 1)
        return 2 * math.prod(self.batch) * seen * (self.depth + self.width + 10)

    @property
    def reads(self) -> list[Array]:
        views = (self.q, self.k, self.v, self.bias)
        return list(dict.fromkeys(v.array for v in views if v is not None))

    @property
    def writes(self) -> list[Array]:
        return [self.y.array, self.lse.array]

    def __str__(self) -> str:
        return f"blocks of {self.block[0]} queries, {self.block[1]} keys"


@record(frozen=False, eq=False)
class AttentionGrad(Tiled):
    """The cotangents of q, k and v, the scores computed again from `lse`.

    `qt` and `ctt` are q, scaled, and the cotangent of y, packed as q of `Attention` is; `share` is the
    sum of y times its cotangent over each row.
    """

    q: View
    qt: View
    k: View
    v: View
    bias: View | None
    lse: View
    share: View
    ct: View
    ctt: View
    dq: View
    dk: View
    dv: View
    batch: tuple[int, ...]
    rows: int
    columns: int
    depth: int
    width: int
    scale: float
    causal: bool
    block: tuple[int, int]
    rate: ClassVar[str] = "blocks"

    @property
    def units(self) -> int:
        return math.prod(self.batch)

    @property
    def flops(self) -> int:
        seen = self.rows * self.columns // (2 if self.causal else 1)
        return 2 * math.prod(self.batch) * seen * (3 * self.depth + 2 * self.width + 12)

    @property
    def reads(self) -> list[Array]:
        views = (
            self.q,
            self.qt,
            self.k,
            self.v,
            self.bias,
            self.lse,
            self.share,
            self.ct,
            self.ctt,
        )
        return list(dict.fromkeys(v.array for v in views if v is not None))

    @property
    def writes(self) -> list[Array]:
        return [self.dq.array, self.dk.array, self.dv.array]

    def __str__(self) -> str:
        return f"blocks of {self.block[0]} queries, {self.block[1]} keys"


_SMALL = 1 << 16  # elements of a matrix
# Flops of LAPACK's routines in cubes of the longest side, where they are not about 4.
_CUBES = {"eigvalsh_lo": 4 / 3, "eigvalsh_up": 4 / 3, "eigh_lo": 9, "eigh_up": 9, "eig": 25}
_CUBES |= {"eigvals": 10, "svd": 8 / 3, "svd_s": 20, "svd_f": 20, "qr_r_raw": 4 / 3}


@record(frozen=False, eq=False)
class LibraryCall(Tiled):
    """A loop of NumPy's over `batch` items (see `ir.ops.libraries.library`), at these arrays.

    `steps` are in bytes: those from item to item, one for each array and constant, then those along the
    dims of an item, array by array. `site` is where it reports a failure, 0 if it reports none.
    `read` and `written` are the arrays as other steps know them: complex numbers in an input or output
    are two, their parts.
    """

    loop: LibraryLoop
    operands: list[Array]
    results: list[Array]
    batch: int
    steps: tuple[int, ...]
    read: list[Array]
    written: list[Array]
    site: int = 0

    @property
    def alone(self) -> bool:
        """Whether each item is one thread's: many small ones. The BLAS has threads for large ones."""
        if not self.loop.module.startswith("numpy.linalg"):
            return False
        return self.batch > 1 and max(map(math.prod, self.loop.cores)) <= _SMALL

    @property
    def units(self) -> int:
        return self.batch

    rate: ClassVar[str] = "library"

    @property
    def flops(self) -> int:
        """Roughly: what decompositions and transforms take."""
        core = max(map(math.prod, self.loop.cores))
        longest = max(self.loop.sizes, default=1)
        if len(self.loop.cores[0]) > 1:
            return int(_CUBES.get(self.loop.name, 4) * self.batch * core * longest)
        each = 2.5 if "rfft" in self.loop.name else 5.0
        return int(each * self.batch * longest * math.log2(max(longest, 2)))

    @property
    def reads(self) -> list[Array]:
        return list(self.read)

    @property
    def writes(self) -> list[Array]:
        return list(self.written)

    def __str__(self) -> str:
        return f"{self.loop.module}.{self.loop.name}[{self.loop.types}]"


@record(frozen=False, eq=False)
class Fourier(Tiled):
    """Transforms of `batch` rows by n complex numbers, times `factor` (see `fourier_plan`).

    "fft", "ifft":  n complex numbers to as many
    "rfft":         2 n real numbers to n + 1 complex ones
    "irfft":        n + 1 complex numbers to 2 n real ones

    Elements of a row, and parts of a complex number, lie side by side; rows are `source_step` and
    `target_step` elements apart, a unit has `lanes` of them. `read` and `written` are the arrays as
    other steps know them, as in `LibraryCall`.
    """

    kind: str
    source: Array
    target: Array
    batch: int
    n: int
    lanes: int
    source_step: int
    target_step: int
    factor: float
    read: list[Array]
    written: list[Array]
    rate: ClassVar[str] = "blocks"

    @property
    def units(self) -> int:
        return -(-self.batch // self.lanes)

    @property
    def flops(self) -> int:
        return int(5 * self.batch * self.n * math.log2(max(self.n, 2)))

    reads = LibraryCall.reads
    writes = LibraryCall.writes

    def __str__(self) -> str:
        return f"{self.lanes} rows side by side, {self.n} complex numbers each"


@record(frozen=False, eq=False)
class Factorisation(Tiled):
    """What is done to `batch` matrices of n x n in `work`, whose rows are `pitch` elements apart.

    "cholesky": the lower triangle of each becomes that of its Cholesky factor
    "solve":    X[n, r] becomes A^-1 X, and `work` the factors of A
    "inv":      X[n, n] is filled with A^-1
    "lower", "upper", "unit lower", "unit upper": X[n, r] becomes T^-1 X with this triangle T of A
    "lu":       n x r matrices become their factors, and `pivots` the order of their rows

    `height` is the rows that each matrix has in memory, those beyond n being what micro-kernels read
    in vain. A matrix that is singular, or not positive definite, gives NaN, and `site` if it is not 0.
    """

    kind: str
    work: Array
    x: Array | None
    pivots: Array | None
    batch: int
    n: int
    r: int
    height: int
    pitch: int
    site: int = 0
    rate: ClassVar[str] = "blocks"

    @property
    def units(self) -> int:
        return self.batch

    @property
    def flops(self) -> int:
        n, r = self.n, self.r
        match self.kind:
            case "cholesky":
                each = n**3 // 3
            case "lu":
                each = max(n, r) * min(n, r) ** 2
            case "solve" | "inv":
                each = 2 * n**3 // 3 + 2 * n * n * r
            case _:
                each = n * n * r
        return self.batch * (each + 32 * n * n)  # the rest: leaves are slow

    @property
    def reads(self) -> list[Array]:
        return [self.work, self.x] if self.x is not None and self.kind != "inv" else [self.work]

    @property
    def writes(self) -> list[Array]:
        return [a for a in (self.work, self.x, self.pivots) if a is not None]

    @property
    def vain(self) -> list[Array]:
        return [self.work] if self.height > self.n else []

    def __str__(self) -> str:
        return f"{self.n} x {self.n}, by halves"
