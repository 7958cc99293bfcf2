"""Products of blocks of one matrix with strides and sizes that are arguments, as LLVM functions.

    subtract(c, ldc, a, lda, b, brow, bcol, m, n, k, triangle)      C[m, n] -= A[m, k] @ B[k, n]

The micro-kernels of `tiles` do the work. -B is packed, panel by panel, which threads share; sums do not
depend on them. What does not fill a tile goes through one at the side. Micro-kernels read `ROWS` - 1
rows beyond the last of A: memory has to be there, but what is in it does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...limits import limits
from ...llvm.builder import NULL, Callee, Value, symbol
from ...llvm.instructions import SCALAR_TYPES
from ...llvm.modules import Defined
from ...scalar import DType
from ...schedule.blocking import tile_shapes
from ...target import Target
from ..matmul.cpu_gemm import loop
from ..matmul.cpu_tiles import tile_function
from .cpu_leaves import LANES, LeafEmitter

ROWS = 8  # of a tile, at the most
# Terms that are added up in registers: a panel of B of that height is in the nearest cache.
DEPTH = 128

# What `subtract` takes, and in which order its panels find it in memory.
SUBTRACT = dict.fromkeys("c ldc a lda b brow bcol m n k triangle".split(), "i64") | dict.fromkeys(
    "cab", "ptr"
)
WORDS = "c a b ldc lda brow bcol m n k triangle".split()


class BlockProducts:
    """The functions for one dtype, made when they are asked for: `texts` by name."""

    def __init__(self, target: Target, dtype: DType) -> None:
        self.target = target
        self.dtype = dtype
        self.kind = f"f{8 * dtype.itemsize}"
        self.scalar = SCALAR_TYPES[dtype]
        shapes = [(min(rows, ROWS), vectors) for rows, vectors in tile_shapes(target)]
        self.rows, vectors = max(shapes, key=lambda s: s[0] * s[1] / (s[0] + s[1]))
        self.panel = vectors * target.lanes(dtype.itemsize)
        self.vectors = vectors
        self.texts: dict[str, str] = {}
        self.declarations: set[str] = {f"declare void @{Target.PARALLEL_FOR}(ptr, ptr, i64, i64)"}
        self.imports = {Target.PARALLEL_FOR}

    def made(self, name: str, write: Callable[..., None], **params: str) -> Defined:
        """A function, which is written when it is first asked for: `write` is given an emitter and
        what it takes. It may ask for itself."""
        function = Defined(f"{name}_{self.kind}", [*params.values()])
        if function.name not in self.texts:
            self.texts[function.name] = ""
            e = LeafEmitter(self.target, self.dtype)
            write(e, *e.b.takes(**params))
            e.b.ret()
            self.texts[function.name] = f"define internal void @{function.name}{e.b.unnamed()}"
            self.declarations |= set(e.b.declarations)
        return function

    # Products

    def _tile(self) -> Callee:
        tile = tile_function(self.target, self.dtype, self.rows, self.vectors)
        self.texts[tile.name] = tile.text
        self.declarations |= tile.declarations
        return tile

    def subtract(self) -> Callee:
        """C[m, n] -= A[m, k] @ B[k, n]. B's elements are `brow` and `bcol` apart, one of which is 1.
        With `triangle`, only what is on and below the diagonal of C is wanted."""
        return self.made("subtract", self._subtract, **SUBTRACT)

    def _subtract(self, e: LeafEmitter, *values: Value) -> None:
        named = dict(zip(SUBTRACT, values, strict=True))
        panels = partial(self._panels, self._tile())
        unit = self.made("subtract_panels", panels, words="ptr", lo="i64", hi="i64")
        words = e.b.alloca(f"[{len(WORDS)} x i64]")
        for position, word in enumerate(WORDS):
            e.b.store(named[word], words, position, "i64", align=8)
        work = named["m"] * named["n"] * named["k"]
        more = named["n"] + (self.panel - 1)
        count = more // self.panel
        few = work < limits().factor_flops
        with e.b.when(few), e.b.when(work > 0):
            e.b.run(unit, words, 0, count)
        with e.b.when(~few):
            e.b.call("void", symbol(Target.PARALLEL_FOR), unit.address, words, count, 1)

    def _panels(self, tile: Callee, e: LeafEmitter, words: Value, lo: Value, hi: Value) -> None:
        """The panels lo to hi of such a product: -B is packed, and all tiles pass by."""
        size = self.dtype.itemsize
        pack = e.b.alloca(f"[{DEPTH * self.panel * size} x i8]", align=64)
        edge = e.b.alloca(f"[{self.rows * self.panel * size} x i8]", align=64)
        c, a, b, ldc, lda, brow, bcol, m, n, terms, triangle = (
            e.b.load(SUBTRACT[word], words, position, "i64", align=8)
            for position, word in enumerate(WORDS)
        )
        with loop(e.b, lo, hi, 1) as p:
            first = e.b.times(p, self.panel)
            width = e.b.least(e.b.minus(n, first), self.panel)
            whole = width.eq(self.panel)
            tiles_above, _ = e.b.split(first, self.rows)
            top = e.b.times(tiles_above, self.rows) * triangle
            with loop(e.b, 0, terms, DEPTH) as k:
                depth = e.b.least(e.b.minus(terms, k), DEPTH)
                part = e.element(b, e.b.times(k, brow), e.b.times(first, bcol))
                self._pack(e, part, brow, bcol, pack, depth, width)
                columns = e.element(a, k)
                with loop(e.b, top, m, self.rows) as i:
                    left = e.element(columns, e.b.times(i, lda))
                    out = e.element(c, e.b.times(i, ldc), first)
                    height = e.b.least(e.b.minus(m, i), self.rows)
                    fits = whole & height.eq(self.rows)
                    packed = left, lda, pack, self.panel
                    with e.b.when(fits):
                        e.b.run(tile, *packed, out, ldc, depth, True, 0, NULL, 0)
                    with e.b.when(~fits):
                        e.b.run(tile, *packed, edge, self.panel, depth, False, 0, NULL, 0)
                        self._add_edge(e, edge, out, ldc, height, width)

    def _pack(
        self,
        e: LeafEmitter,
        b: Value,
        brow: Value,
        bcol: Value,
        pack: Value,
        depth: Value,
        width: Value,
    ) -> None:
        """-B in rows of a panel, the last columns filled up."""
        beside = bcol.eq(1)
        with e.b.when(beside), loop(e.b, 0, depth, 1) as i:
            row, to = (
                e.element(b, e.b.times(i, brow)),
                e.element(pack, e.b.times(i, self.panel)),
            )
            for start in range(0, self.panel, LANES):
                mask = e.lanes_below(e.b.minus(width, start))
                x = e.b.load_elements(self.dtype, e.element(row, start), LANES, mask=mask)
                negated = e.b.negated(x)
                e.b.store_elements(self.dtype, negated, e.element(to, start))
        with e.b.when(~beside), loop(e.b, 0, depth, 1) as i:
            row, to = e.element(b, i), e.element(pack, e.b.times(i, self.panel))
            with loop(e.b, 0, width, 1) as j:
                there = e.get(row, e.b.times(j, bcol))
                e.put(e.b.negated(there), to, j)
            with loop(e.b, width, self.panel, 1) as j:
                e.put(e.number(0), to, j)

    def _add_edge(
        self, e: LeafEmitter, edge: Value, out: Value, ldc: Value, height: Value, width: Value
    ) -> None:
        with loop(e.b, 0, height, 1) as i:
            source, to = (
                e.element(edge, e.b.times(i, self.panel)),
                e.element(out, e.b.times(i, ldc)),
            )
            with loop(e.b, 0, width, LANES) as j:
                mask = e.lanes_below(e.b.minus(width, j))
                new = e.b.load_elements(self.dtype, e.element(source, j), LANES)
                old = e.b.load_elements(self.dtype, e.element(to, j), LANES, mask=mask)
                total = old + new
                e.b.store_elements(self.dtype, total, e.element(to, j), mask=mask)
