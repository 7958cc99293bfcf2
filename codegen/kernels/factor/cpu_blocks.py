"""Products of blocks of one matrix with strides and sizes that are arguments, as LLVM functions.

    subtract(c, ldc, a, lda, b, brow, bcol, m, n, k, triangle)      C[m, n] -= A[m, k] @ B[k, n]

The micro-kernels of `tiles` do the work. -B is packed, panel by panel, which threads share; sums do not
depend on them. What does not fill a tile goes through one at the side. Micro-kernels read `ROWS` - 1
rows beyond the last of A: memory has to be there, but what is in it does not matter.
"""

from __future__ import annotations

from ...limits import limits
from ...llvm.builder import Value
from ...llvm.instructions import SCALAR_TYPES, number
from ...scalar import DType
from ...schedule.blocking import tile_shapes
from ...target import Target
from ..matmul.cpu_gemm import loop
from ..matmul.cpu_tiles import Function, tile_function
from .cpu_leaves import LANES, LeafEmitter

ROWS = 8  # of a tile, at the most
DEPTH = (
    128  # terms that are added up in registers: a panel of B of that height is in the nearest cache
)


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

    def define(self, name: str, parameters: str, e: LeafEmitter) -> str:
        full = f"{name}_{self.kind}"
        e.b.ret()
        head = f"define internal void @{full}({parameters}) nounwind"
        self.texts[full] = f"{head} {{\n{e.b.code.text()}\n}}\n"
        self.declarations |= set(e.b.declarations)
        return full

    def begun(self, name: str) -> bool:
        """Whether a function is there, or is being made (it calls itself)."""
        full = f"{name}_{self.kind}"
        if full in self.texts:
            return True
        self.texts[full] = ""
        return False

    def name(self, name: str) -> str:
        return f"@{name}_{self.kind}"

    # Products

    def _tile(self) -> str:
        tile: Function = tile_function(self.target, self.dtype, self.rows, self.vectors)
        self.texts[tile.name] = tile.text
        self.declarations |= tile.declarations
        return f"@{tile.name}"

    def subtract(self) -> str:
        """C[m, n] -= A[m, k] @ B[k, n]. B's elements are `brow` and `bcol` apart, one of which is 1.
        With `triangle`, only what is on and below the diagonal of C is wanted."""
        if self.begun("subtract"):
            return self.name("subtract")
        unit = self._panels()
        e = LeafEmitter(self.target, self.dtype)
        words = "c a b ldc lda brow bcol m n k triangle".split()
        e.b.line(f"%words = alloca [{len(words)} x i64], align 16")
        for position, word in enumerate(words):
            ty = "ptr" if word in ("c", "a", "b") else "i64"
            address = e.b.offset(Value("ptr", "%words"), position, "i64")
            e.b.line(f"store {ty} %{word}, ptr {address}, align 8")
        work = e.b.word("%m") * "%n" * "%k"
        more = e.b.word("%n") + (self.panel - 1)
        count = more // self.panel
        few = work < limits().factor_flops
        with e.b.when(few), e.b.when(work > 0):
            e.b.line(f"call void {unit}(ptr %words, i64 0, i64 {count})")
        with e.b.when(~few):
            e.b.line(
                f"call void @{Target.PARALLEL_FOR}(ptr {unit}, ptr %words, i64 {count}, i64 1)"
            )
        self.define(
            "subtract",
            "ptr %c, i64 %ldc, ptr %a, i64 %lda, ptr %b, i64 %brow, i64 %bcol, i64 %m, i64 %n, "
            "i64 %k, i64 %triangle",
            e,
        )
        return self.name("subtract")

    def _panels(self) -> str:
        """The panels lo to hi of such a product: -B is packed, and all tiles pass by."""
        name, tile = "subtract_panels", self._tile()
        e = LeafEmitter(self.target, self.dtype)
        size = self.dtype.itemsize
        e.b.line(f"%pack = alloca [{DEPTH * self.panel * size} x i8], align 64")
        e.b.line(f"%edge = alloca [{self.rows * self.panel * size} x i8], align 64")
        for position, word in enumerate("c a b ldc lda brow bcol m n k triangle".split()):
            ty = "ptr" if word in ("c", "a", "b") else "i64"
            address = e.b.offset(Value("ptr", "%words"), position, "i64")
            e.b.line(f"%{word} = load {ty}, ptr {address}, align 8")
        with loop(e.b, "%lo", "%hi", 1) as p:
            first = e.b.times(p, self.panel)
            width = e.b.least(e.b.minus("%n", first), self.panel)
            whole = width.eq(self.panel)
            tiles_above, _ = e.b.split(first, self.rows)
            top = e.b.times(tiles_above, self.rows) * "%triangle"
            with loop(e.b, "0", "%k", DEPTH) as k:
                depth = e.b.least(e.b.minus("%k", k), DEPTH)
                b = e.element("%b", e.b.times(k, "%brow"), e.b.times(first, "%bcol"))
                self._pack(e, b, depth, width)
                a = e.element("%a", k)
                with loop(e.b, top, "%m", self.rows) as i:
                    left = e.element(a, e.b.times(i, "%lda"))
                    out = e.element("%c", e.b.times(i, "%ldc"), first)
                    height = e.b.least(e.b.minus("%m", i), self.rows)
                    fits = whole & e.b.compare("eq", height, self.rows)
                    with e.b.when(fits):
                        self._call_tile(e, tile, left, out, "%ldc", depth, "true")
                    with e.b.when(~fits):
                        self._call_tile(e, tile, left, "%edge", str(self.panel), depth, "false")
                        self._add_edge(e, out, height, width)
        return f"@{self.define(name, 'ptr %words, i64 %lo, i64 %hi', e)}"

    def _call_tile(
        self, e: LeafEmitter, tile: str, a: str, c: str, c_step: str, depth: str, add: str
    ) -> None:
        e.b.line(
            f"call void {tile}(ptr {a}, i64 %lda, ptr %pack, i64 {self.panel}, ptr {c}, "
            f"i64 {c_step}, i64 {depth}, i1 {add}, i32 0, ptr null, i64 0)"
        )

    def _pack(self, e: LeafEmitter, b: str, depth: str, width: str) -> None:
        """-B in rows of a panel, the last columns filled up."""
        beside = e.b.word("%bcol").eq(1)
        with e.b.when(beside), loop(e.b, "0", depth, 1) as i:
            row, to = (
                e.element(b, e.b.times(i, "%brow")),
                e.element("%pack", e.b.times(i, self.panel)),
            )
            for start in range(0, self.panel, LANES):
                mask = e.lanes_below(e.b.minus(width, start))
                x = e.b.load_elements(self.dtype, e.element(row, str(start)), LANES, mask=mask)
                negated = e.b.negated(x)
                e.b.store_elements(self.dtype, negated, e.element(to, str(start)), LANES)
        with e.b.when(~beside), loop(e.b, "0", depth, 1) as i:
            row, to = e.element(b, i), e.element("%pack", e.b.times(i, self.panel))
            with loop(e.b, "0", width, 1) as j:
                there = e.get(row, e.b.times(j, "%bcol"))
                e.put(e.b.negated(there), to, j)
            with loop(e.b, width, str(self.panel), 1) as j:
                e.put(number(0, self.dtype), to, j)

    def _add_edge(self, e: LeafEmitter, out: str, height: str, width: str) -> None:
        with loop(e.b, "0", height, 1) as i:
            source, to = (
                e.element("%edge", e.b.times(i, self.panel)),
                e.element(out, e.b.times(i, "%ldc")),
            )
            with loop(e.b, "0", width, LANES) as j:
                mask = e.lanes_below(e.b.minus(width, j))
                new = e.b.load_elements(self.dtype, e.element(source, j), LANES)
                old = e.b.load_elements(self.dtype, e.element(to, j), LANES, mask=mask)
                total = old + new
                e.b.store_elements(self.dtype, total, e.element(to, j), LANES, mask=mask)
