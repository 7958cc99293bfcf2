"""Where code generation changes its way: sizes of blocks, chunks, tiles and units.

    limits().parallel_ns                    what holds for the module that is being compiled

They are measured on machines of today, and no result is wrong with others: `TINY` has small programs
walk the ways of large ones, in tests. They are a part of the `Target`, and so of every key of a cache.
Results do not depend on threads; they do on limits, by rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ..ir.record import record

T = TypeVar("T")

_tiny: list[Any] = []  # one number for each field of `Limits`


def _both(usual: T, tiny: T) -> T:
    """A limit: what it is, and what it is in `TINY`."""
    _tiny.append(tiny)
    return usual


@record
class Limits:
    """Sizes in bytes, elements or rows, work in scalar operations or nanoseconds."""

    # Kernels (`schedule`, `fusion`).
    parallel_ns: float = _both(20_000.0, 1.0)  # estimated time from which threads share a kernel
    chunk_ns: float = _both(8_000.0, 1.0)  # the least that one chunk of a shared kernel should take
    stream_bytes: int = _both(1 << 18, 256)  # read by a nest walked in the order of memory
    squares: int = _both(128, 16)  # the side of a tile, less where there would be few
    tile_bytes: int = _both(1 << 14, 512)  # accumulators that are sure to stay in the L1 cache
    row_bytes: int = _both(1 << 17, 512)  # a row's values should stay in the nearer caches
    # Rows from which what is done with one scalar per row is better done in vectors.
    many_rows: int = _both(4096, 16)
    table_calls: int = _both(16, 3)  # calls in a row from which a table is shorter

    # Loops over elements (`llvm/scalar_code/nests`).
    nest_work: int = _both(1 << 12, 1)  # scalar operations that are worth the time of LLVM's passes
    polled_work: int = _both(1 << 20, 64)  # scalar operations between two looks at the clock

    # Reductions, scans and updates (`lower_reductions`, `lower_chunks`, `lower_updates`).
    chunk: int = _both(1 << 14, 64)  # elements of one partial result of a reduction, at the least
    scan_chunk: int = _both(1 << 13, 32)  # that a thread scans at a time, if there are 8 such
    shared_updates: int = _both(1 << 16, 64)  # from which updates are shared among threads
    update_part: int = _both(1 << 19, 32)  # updates of a part, where there are enough for two parts

    # Products (`lower_contraction`, `blocking`).
    small_product: int = _both(1 << 12, 8)  # multiply-adds up to which it is a plain reduction
    few_rows: int = _both(14, 2)  # rows of A for which packing B does not pay
    mirrored_rows: int = _both(96, 5)  # of a symmetric product from which one half of it is copied
    near_bytes: int = _both(1 << 16, 256)  # what B may span to be read as it lies
    far_bytes: int = _both(1 << 18, 256)  # what a row of A may be spread over to be read as it lies
    many_columns: int = _both(64, 4)  # of B, for which a spread row of A is read over and over
    # Elements of the larger operand, from which a long sum goes by chunks, and bytes of it in one.
    many_elements: int = _both(1 << 16, 256)
    chunk_bytes: int = _both(1 << 17, 512)
    block_bytes: int = _both(360 << 10, 1024)  # of A in one block and one run of k
    soon_bytes: int = _both(1 << 20, 1024)  # of B that is soon there again for the next block
    result_bytes: int = _both(1 << 18, 512)  # of C in one block then
    least_rows: int = _both(48, 4)  # but not fewer: each block has all of B pass by
    copied_bytes: int = _both(1 << 15, 64)  # of a block of A, from which it is worth copying
    copied_panels: int = _both(8, 1)  # that pass by, for the copy to pay
    run_bytes: int = _both(1 << 12, 128)  # of the longest run along k
    shallow: int = _both(32, 8)  # the same where B's rows lie far apart: few streams at a time
    unit_flops: float = _both(2e6, 1e3)  # the least worth a unit of its own: some microseconds
    unit_rows: int = _both(32, 2)  # that a unit should have at least, cut for threads alone
    shared_ns: float = _both(10_000.0, 0.1)  # the least that a thread should get of a product
    shared_flops: float = _both(1e6, 1e2)  # and of other steps with tiles
    factor_flops: int = _both(1 << 18, 64)  # multiply-adds from which threads share its products

    # Convolutions and attention (`conv_plan`, `lower_convolution`, `lower_attention`).
    small_convolution: int = _both(1 << 14, 0)  # up to which it is a sum for each element
    window_bytes: int = _both(160 << 10, 1 << 11)  # of x in a block: an L2 cache less a panel
    channels: int = _both(256, 5)  # the longest run of channels in one block
    window_flops: float = _both(4e6, 1e3)  # the least that is worth a unit of its own
    window_run: int = _both(128, 7)  # products summed in a register before it is stored
    attention_keys: int = _both(96, 8)  # in one block, whose scores stay in the L1 cache
    attention_vectors: int = _both(4, 1)  # of queries in one block

    # Loops by tiles of time (`time_tiles`).
    time_tile_bytes: int = _both(1 << 19, 1 << 11)  # of a block of rows: half of a common L2 cache
    time_tile_units: int = _both(16, 4)  # blocks at least, if there are rows enough

    # Sorting (`sort_blocks`, `llvm/sorting`).
    short_row: int = _both(512, 64)  # elements up to which a row is not sorted by digits
    sort_block: int = _both(1 << 15, 64)  # that a thread counts and moves at a time, at the least
    sort_segment: int = _both(1 << 15, 256)  # keys in a segment, about
    sorted_at_once: int = _both(1 << 12, 16)  # elements that a thread should sort at a time
    truths_at_once: int = _both(1 << 14, 64)  # truths that a thread should look at, at the least


DEFAULT = Limits()
TINY = Limits(*_tiny)

# A dynamic scope: leaves of every pass ask, and only tests compile with others than the default.
_current: ContextVar[Limits] = ContextVar("limits", default=DEFAULT)


def limits() -> Limits:
    """The limits that hold here: the default ones, or those of a `limited` block around the call."""
    return _current.get()


@contextmanager
def limited(to: Limits) -> Iterator[None]:
    """Functions that are compiled inside the block have these limits: for tests."""
    token = _current.set(to)
    try:
        yield
    finally:
        _current.reset(token)
