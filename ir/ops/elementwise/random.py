"""`threefry`: the bits of a counter under a key. Everything random is made of it.

Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3", 2011): a bijection of 64-bit counters for each 64-bit key, made of additions, rotations and
exclusive ors of 32-bit words. There is no state, so element i of an array of random bits is what the
kernel that needs it computes from i.
"""

from __future__ import annotations

import numpy as np

from ...cost import Cost
from ...opdef import GraphError
from ...types import TensorType
from ..families import Array, check_arity, check_dtype, check_same, elementwise

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA
ROUNDS = 20


def threefry_words(k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Both words of the blocks, for arrays of uint32."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(PARITY))
    with np.errstate(over="ignore"):  # of NumPy's scalars
        x0, x1 = x0 + k0, x1 + k1
        for step in range(ROUNDS // 4):
            for r in ROTATIONS[step % 2]:
                x0 = x0 + x1
                x1 = (x1 << np.uint32(r) | x1 >> np.uint32(32 - r)) ^ x0
            x0 = x0 + keys[(step + 1) % 3]
            x1 = x1 + keys[(step + 2) % 3] + np.uint32(step + 1)
    return x0, x1


def _infer(*types: TensorType, word: int) -> TensorType:
    check_arity(types, 4)
    for type in types:
        check_dtype(type, "u32", "an operand")
    check_same(types)
    if word not in (0, 1):
        raise GraphError(f"word={word!r}: a block has the words 0 and 1")
    return types[0]


elementwise(
    "threefry",
    Cost.FUNCTION,
    lambda k0, k1, x0, x1, *, word: threefry_words(k0, k1, x0, x1)[word],
    kinds="u",
    operands=("u32", "u32", "u32", "u32"),
    result="u32",
    infer=_infer,
    attrs=("word",),
    samples={"word": 0},
    doc="word 0 or 1 of Threefry-2x32's block for the key (k0, k1) and the counter (x0, x1)",
)
