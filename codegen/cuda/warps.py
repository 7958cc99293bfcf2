"""What the lanes of a warp do together: values that go from lane to lane, and folds by halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...ir.types import BOOL
from ..llvm.builder import Value
from ..llvm.reductions import Reduction, apply
from ..llvm.scalars import ScalarEmitter
from ..llvm.text import Operand
from ..scalar import DType
from .emitter import ThreadBuilder, Word

WARP = 32
EVERYBODY = -1


class Warp:
    """All lanes of a warp are to come to each of these together."""

    def __init__(self, b: ThreadBuilder, exprs: ScalarEmitter) -> None:
        self.b, self.exprs = b, exprs

    def exchanged(self, text: Value, dtype: DType, distance: int) -> Value:
        """The value of the thread whose lane differs in the bit `distance`."""
        return self._moved(
            text, dtype, lambda s, part: self._shuffle("bfly", s, part, distance, WARP - 1)
        )

    def from_lane(self, text: Value, dtype: DType, lane: Value | int, width: int = WARP) -> Value:
        """The value of a lane, counted in its group of `width`."""
        return self._moved(
            text,
            dtype,
            lambda s, part: self._shuffle("idx", s, part, lane, _group(width) | WARP - 1),
        )

    def from_before(
        self, text: Value, dtype: DType, distance: int, width: int = WARP
    ) -> tuple[Value, Value]:
        """The value of the lane so far before this one, and whether its group of `width` has it."""
        inside: list[Value] = []

        def move(suffix: str, part: Value) -> Value:
            name = f"llvm.nvvm.shfl.sync.up.{suffix}p"
            pair = self.b.nvvm(name, EVERYBODY, part, distance, _group(width), fresh=True)
            inside.append(self.b.field(pair, 1) if not inside else inside[0])
            return self.b.field(pair, 0)

        return self._moved(text, dtype, move), inside[0]

    def _moved(self, text: Value, dtype: DType, move: Callable[[str, Value], Value]) -> Value:
        """A value that goes from lane to lane: `move` takes a suffix of shuffles and 32 bits."""
        bits = 1 if dtype == BOOL else dtype.itemsize * 8
        if text.builder is None:  # a constant
            text = Value(text.type, text.text, self.b)
        if bits == 64:
            return self._moved_halves(text, dtype, lambda part: move("i32", part))
        if bits == 32:
            return move("f32" if dtype.kind == "f" else "i32", text)
        moved = move("i32", text.zext("i32"))
        return moved.trunc(f"i{bits}")

    def _moved_halves(self, text: Value, dtype: DType, move: Callable[[Value], Value]) -> Value:
        if dtype.kind == "f":
            text = text.to("bitcast", "i64")
        low = text.trunc("i32")
        high = (text >> 32).trunc("i32")
        low, high = move(low), move(high)
        upper = high.zext("i64") << 32
        whole = upper | low.zext("i64")
        return whole.to("bitcast", "double") if dtype.kind == "f" else whole

    def _shuffle(self, how: str, suffix: str, text: Value, which: Word, group: int) -> Value:
        name = f"llvm.nvvm.shfl.sync.{how}.{suffix}"
        return self.b.nvvm(name, EVERYBODY, text, which, group, fresh=True)

    def fold_lanes(self, fold: Reduction, texts: Sequence[Value], lanes: int) -> list[Value]:
        """The fold of what groups of `lanes` lanes, side by side, have come to; each lane has it."""
        distance = lanes // 2
        while distance:
            others = [
                self.exchanged(t, d, distance) for t, d in zip(texts, fold.dtypes, strict=True)
            ]
            pairs = [Operand(t, True) for t in (*texts, *others)]
            merged = apply(self.exprs, fold.merge, pairs, [*fold.dtypes, *fold.dtypes])
            texts = [m.value for m in merged]
            distance //= 2
        return [*texts]


def _group(width: int) -> int:
    """What tells a shuffle that lanes are in groups of `width`."""
    return (WARP - width) << 8
