"""Teams of threads that work on one row: values passed between them, and folds over all of them.

A team is a power of two: lanes of one warp that lie side by side, or whole warps, which are the block
then. Folds go by halves inside a warp, through shared memory from warp to warp; every thread of the
team has the result, which depends on nothing but the size of the team.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.types import BOOL
from ..llvm.loops import Carried
from ..llvm.reductions import Reduction, apply
from ..llvm.text import Operand
from ..scalar import DType
from .lanes import LaneEmitter

WARP = 32
EVERYBODY = "-1"


class TeamEmitter(LaneEmitter):
    """`team` threads work together; `member` is this thread's number among them."""

    team = 1
    member = "0"

    def meet(self) -> None:
        """Wait for the team; what its threads wrote before is seen by all of them afterwards."""
        if self.team > WARP:
            self.barrier()
        elif self.team > 1:
            self.intrinsic("llvm.nvvm.bar.warp.sync", EVERYBODY)

    def exchanged(self, text: str, dtype: DType, distance: int) -> str:
        """The value of the thread whose lane differs in the bit `distance`."""
        bits = 1 if dtype == BOOL else dtype.itemsize * 8
        if bits == 64:
            return self._exchanged_halves(text, dtype, distance)
        suffix, ty = ("f32", "float") if dtype.kind == "f" else ("i32", "i32")
        if bits < 32:
            text = self.value_of(f"zext i{bits} {text} to i32")
        moved = self._shuffle(suffix, text, distance)
        return self.fresh(f"trunc {ty} {moved} to i{bits}") if bits < 32 else moved

    def _exchanged_halves(self, text: str, dtype: DType, distance: int) -> str:
        if dtype.kind == "f":
            text = self.fresh(f"bitcast double {text} to i64")
        low = self.fresh(f"trunc i64 {text} to i32")
        high = self.fresh(f"trunc i64 {self.fresh(f'lshr i64 {text}, 32')} to i32")
        low, high = (self._shuffle("i32", part, distance) for part in (low, high))
        upper = self.fresh(f"shl i64 {self.fresh(f'zext i32 {high} to i64')}, 32")
        whole = self.fresh(f"or i64 {upper}, {self.fresh(f'zext i32 {low} to i64')}")
        return self.fresh(f"bitcast i64 {whole} to double") if dtype.kind == "f" else whole

    def _shuffle(self, suffix: str, text: str, distance: int) -> str:
        name = f"llvm.nvvm.shfl.sync.bfly.{suffix}"
        return self.intrinsic(name, EVERYBODY, text, str(distance), "31", fresh=True)

    def folded(self, fold: Reduction, ends: Sequence[Carried]) -> Operand:
        """The fold of what all threads of the team have come to, each the value `ends` of its own."""
        texts = self._fold_lanes(fold, [c.text for c in ends], min(self.team, WARP))
        if self.team > WARP:
            texts = self._fold_warps(fold, texts)
        return fold.result(Operand(texts[-1], True))

    def _fold_lanes(self, fold: Reduction, texts: list[str], lanes: int) -> list[str]:
        distance = lanes // 2
        while distance:
            others = [
                self.exchanged(t, d, distance) for t, d in zip(texts, fold.dtypes, strict=True)
            ]
            pairs = [Operand(t, True) for t in (*texts, *others)]
            merged = apply(self, fold.merge, pairs, [*fold.dtypes, *fold.dtypes])
            texts = [m.text for m in merged]
            distance //= 2
        return texts

    def _fold_warps(self, fold: Reduction, texts: list[str]) -> list[str]:
        """The first lane of each warp leaves its value in shared memory, where every warp folds them."""
        warps = self.team // WARP
        lane = self.value_of(f"and i32 {self.thread()}, {WARP - 1}")
        warp = self.value_of(f"lshr i32 {self.thread()}, {WARP.bit_length() - 1}")
        places = [self.shared(d, warps) for d in fold.dtypes]
        with self.only_if(self.value_of(f"icmp eq i32 {lane}, 0")):
            for place, text, dtype in zip(places, texts, fold.dtypes, strict=True):
                self.store(dtype, text, self.in_shared(dtype, place, warp), 1)
        self.barrier()
        here = self.value_of(f"and i32 {lane}, {warps - 1}")
        found = [
            self.load(dtype, self.in_shared(dtype, place, here), 1)
            for place, dtype in zip(places, fold.dtypes, strict=True)
        ]
        return self._fold_lanes(fold, found, warps)
