"""Triton, as its tutorials write such kernels."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 1024


@triton.jit
def _axpb(x, y, n, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * block + tl.arange(0, block)
    v = tl.load(x + at, mask=at < n)
    tl.store(y + at, v * 2 + 1, mask=at < n)


def axpb(x: Any) -> Any:
    y = torch.empty_like(x)
    _axpb[(triton.cdiv(x.numel(), BLOCK),)](x, y, x.numel(), block=BLOCK)
    return y


@triton.jit
def _softmax(x, y, columns, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, block)
    start = tl.program_id(0).to(tl.int64) * columns
    v = tl.load(x + start + at, mask=at < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + start + at, e / tl.sum(e, axis=0), mask=at < columns)


def softmax(x: Any) -> Any:
    y = torch.empty_like(x)
    _softmax[(x.shape[0],)](x, y, x.shape[1], block=triton.next_power_of_2(x.shape[1]))
    return y


ROWS = {"axpb": axpb, "softmax": softmax}
