"""The derivative of attention as an LLVM function (see `cpu_forward`).

For each block of queries and of keys the scores are computed again, then their slopes; both stand in
scratch blocks from which the three products read.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...llvm.builder import Value
from ...llvm.modules import Defined
from ...llvm.scalars import ScalarEmitter
from ...llvm.whole import Word
from ...math import EXPANSIONS
from ...schedule.tiled import AttentionGrad
from ...target import Target
from ..convolution.cpu_convolution import moved
from ..matmul.cpu_gemm import loop, steps
from ..matmul.cpu_tiles import TileFunction, element, lane_mask
from .cpu_forward import Blocks, Define, row_at


def attention_grad(
    step: AttentionGrad, target: Target, define: Define
) -> tuple[str, list[TileFunction], set[str]]:
    """The function's text from its parameter list on, micro-kernels, and declarations."""
    return _Backward(step, target, define).function()


class _Backward(Blocks):
    step: AttentionGrad

    def function(self) -> tuple[str, list[TileFunction], set[str]]:
        self.p = self.scratch("scores", self.keys * self.queries)
        self.dp = self.scratch("slopes", self.keys * self.queries)
        return self.finished(self._unit)

    def _unit(self, u: Value) -> None:
        e, step = self.e, self.step
        batch = self.batch_indices(u)
        for view, width in ((step.dk, step.depth), (step.dv, step.width)):
            base = self.at(view, batch)
            with loop(e, 0, step.columns, 1) as j:
                row = moved(e, self.dtype, base, [(j, view.row)])
                e.fill(row, 0, width * self.size)
        with steps(e, 0, -(-step.rows // self.queries), 1) as block:
            self._queries(batch, block)

    def _queries(self, batch: Sequence[Word], block: Value) -> None:
        e, step = self.e, self.step
        first = e.times(block, self.queries)
        count = e.least(e.minus(step.rows, first), self.queries)
        qt, ctt = self.at(step.qt, batch, block), self.at(step.ctt, batch, block)
        q, ct = self.at(step.q, batch, first), self.at(step.ct, batch, first)
        lse, share = self.at(step.lse, batch, first), self.at(step.share, batch, first)
        dq = self.at(step.dq, batch, first)
        bias = None
        if step.bias is not None:
            bias = moved(e, self.dtype, self.at(step.bias, batch), [(first, 1)])
        slopes = self._slopes()
        n = self.queries
        with self.key_blocks(first, count) as (key, keys):
            k, v = self.at(step.k, batch, key), self.at(step.v, batch, key)
            dk, dv = self.at(step.dk, batch, key), self.at(step.dv, batch, key)
            self.scores(self.p, k, qt, bias, first, count, key, keys)
            self.product(
                v, step.v.row, ctt, n, self.dp, n, keys, self.key_counts,
                step.width, n, False,
            )  # fmt: skip
            e.run(slopes, self.p, self.dp, lse, share, keys, count)
            self.product(
                self.p, n, ct, step.ct.row, dv, step.dv.row, keys, self.key_counts,
                count, step.width, True,
            )  # fmt: skip
            self.product(
                self.dp, n, q, step.q.row, dk, step.dk.row, keys, self.key_counts,
                count, step.depth, True,
            )  # fmt: skip
            add = False if key.number == 0 else key.ne(0)
            self.product(
                self.dp, n, k, step.k.row, dq, step.dq.row, count, self.query_counts,
                keys, step.depth, add, adjacent=True,
            )  # fmt: skip

    def _slopes(self) -> Defined:
        """Scores to probabilities, and the slope of the loss along each score."""
        step = self.step

        def body(
            e: ScalarEmitter,
            ps: Value,
            dps: Value,
            lses: Value,
            shares: Value,
            n: Value,
            count: Value,
        ) -> None:
            with loop(e.b, 0, self.queries, self.lanes) as v:
                left = (count - v).trunc("i32")
                mask = lane_mask(e.b, left)
                lse = self.load(e, element(e.b, self.dtype, lses, v), mask)
                share = self.load(e, element(e.b, self.dtype, shares, v), mask)
                p, dp = (element(e.b, self.dtype, x, v) for x in (ps, dps))
                with loop(e.b, 0, n, 1) as j:
                    p_at, dp_at = (row_at(e.b, self.dtype, x, j, self.queries) for x in (p, dp))
                    chance = EXPANSIONS["exp"](self.load(e, p_at) - lse)
                    slope = chance * (self.load(e, dp_at) - share) * step.scale
                    e.b.store_elements(self.dtype, e.emit(chance), p_at)
                    e.b.store_elements(self.dtype, e.emit(slope), dp_at)

        params = dict.fromkeys(("p", "dp", "lse", "share"), "ptr")
        return self.lanewise("attention_slopes", body, **params, n="i64", count="i64")
