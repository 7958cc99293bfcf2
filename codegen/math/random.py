"""Threefry-2x32 as integer arithmetic: 20 rounds of an addition, a rotation and an exclusive or."""

from __future__ import annotations

from ...ir.ops.elementwise.random import PARITY, ROTATIONS, ROUNDS
from ..scalar import Expr, binary


def threefry(k0: Expr, k1: Expr, x0: Expr, x1: Expr, *, word: int) -> Expr:
    """Both words are computed: equal nodes are one value for whoever wants the other word."""
    keys = (k0, k1, k0 ^ k1 ^ PARITY)
    x0, x1 = x0 + k0, x1 + k1
    for step in range(ROUNDS // 4):
        for r in ROTATIONS[step % 2]:
            x0 = x0 + x1
            x1 = _rotated(x1, r) ^ x0
        x0 = x0 + keys[(step + 1) % 3]
        x1 = x1 + (keys[(step + 2) % 3] + (step + 1))
    return (x0, x1)[word]


def _rotated(x: Expr, r: int) -> Expr:
    return (x << r) | binary("lshr", x, 32 - r)
