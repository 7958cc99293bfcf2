"""How a long row is cut for sorting by digits, and the memory that this takes, on any target."""

from __future__ import annotations

import numpy as np

from ..limits import limits

U32, U64 = np.dtype(np.uint32), np.dtype(np.uint64)
MOST_BLOCKS = 32
DIGIT = 8  # bits: as many lines being written as the L1 cache holds well


def blocks_of(n: int) -> int:
    """How many blocks a row of n elements is cut into."""
    return max(1, min(n // limits().sort_block, MOST_BLOCKS))


def count_words(n: int) -> int:
    """int32 words of counts that a row of n elements takes: two tables for each block."""
    return 0 if n <= limits().short_row else blocks_of(n) * 2 << DIGIT


def index_bits(n: int) -> int:
    """How many bits an index in a row of n elements takes."""
    return max(n - 1, 1).bit_length()
