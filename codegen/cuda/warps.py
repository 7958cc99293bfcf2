"""What the lanes of a warp do together: values that go from lane to lane, and folds by halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.types import BOOL
from ..llvm.reductions import Reduction, apply
from ..llvm.scalars import ScalarEmitter
from ..llvm.text import Operand
from ..scalar import DType
from .emitter import ThreadBuilder

WARP = 32
EVERYBODY = "-1"


class Warp:
    """All lanes of a warp are to come to each of these together."""

    def __init__(self, b: ThreadBuilder, exprs: ScalarEmitter) -> None:
        self.b, self.exprs = b, exprs

    def exchanged(self, text: str, dtype: DType, distance: int) -> str:
        """The value of the thread whose lane differs in the bit `distance`."""
        return self._moved(
            text, dtype, lambda s, part: self._shuffle("bfly", s, part, distance, WARP - 1)
        )

    def from_lane(self, text: str, dtype: DType, lane: str | int, width: int = WARP) -> str:
        """The value of a lane, counted in its group of `width`."""
        return self._moved(
            text,
            dtype,
            lambda s, part: self._shuffle("idx", s, part, lane, _group(width) | WARP - 1),
        )

    def from_before(
        self, text: str, dtype: DType, distance: int, width: int = WARP
    ) -> tuple[str, str]:
        """The value of the lane so far before this one, and whether its group of `width` has it."""
        inside = ""

        def move(suffix: str, part: str) -> str:
            nonlocal inside
            name = f"llvm.nvvm.shfl.sync.up.{suffix}p"
            pair = self.b.nvvm(name, EVERYBODY, part, str(distance), str(_group(width)), fresh=True)
            both = f"{{ {'float' if suffix == 'f32' else suffix}, i1 }}"
            inside = inside or self.b.fresh_of(f"extractvalue {both} {pair}, 1")
            return self.b.fresh_of(f"extractvalue {both} {pair}, 0")

        return self._moved(text, dtype, move), inside

    def _moved(self, text: str, dtype: DType, move: Callable[[str, str], str]) -> str:
        """A value that goes from lane to lane: `move` takes a suffix of shuffles and 32 bits."""
        bits = 1 if dtype == BOOL else dtype.itemsize * 8
        if bits == 64:
            return self._moved_halves(text, dtype, lambda part: move("i32", part))
        if bits == 32:
            return move("f32" if dtype.kind == "f" else "i32", text)
        moved = move("i32", self.b.value_of(f"zext i{bits} {text} to i32"))
        return self.b.fresh_of(f"trunc i32 {moved} to i{bits}")

    def _moved_halves(self, text: str, dtype: DType, move: Callable[[str], str]) -> str:
        if dtype.kind == "f":
            text = self.b.fresh_of(f"bitcast double {text} to i64")
        low = self.b.fresh_of(f"trunc i64 {text} to i32")
        high = self.b.fresh_of(f"trunc i64 {self.b.fresh_of(f'lshr i64 {text}, 32')} to i32")
        low, high = move(low), move(high)
        upper = self.b.fresh_of(f"shl i64 {self.b.fresh_of(f'zext i32 {high} to i64')}, 32")
        whole = self.b.fresh_of(f"or i64 {upper}, {self.b.fresh_of(f'zext i32 {low} to i64')}")
        return self.b.fresh_of(f"bitcast i64 {whole} to double") if dtype.kind == "f" else whole

    def _shuffle(self, how: str, suffix: str, text: str, which: str | int, group: int) -> str:
        name = f"llvm.nvvm.shfl.sync.{how}.{suffix}"
        return self.b.nvvm(name, EVERYBODY, text, str(which), str(group), fresh=True)

    def fold_lanes(self, fold: Reduction, texts: Sequence[str], lanes: int) -> list[str]:
        """The fold of what groups of `lanes` lanes, side by side, have come to; each lane has it."""
        distance = lanes // 2
        while distance:
            others = [
                self.exchanged(t, d, distance) for t, d in zip(texts, fold.dtypes, strict=True)
            ]
            pairs = [Operand(t, True) for t in (*texts, *others)]
            merged = apply(self.exprs, fold.merge, pairs, [*fold.dtypes, *fold.dtypes])
            texts = [m.text for m in merged]
            distance //= 2
        return [*texts]


def _group(width: int) -> int:
    """What tells a shuffle that lanes are in groups of `width`."""
    return (WARP - width) << 8
