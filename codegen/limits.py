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

from ..ir.record import record


@record
class Limits:
    """Sizes in bytes, elements or rows, work in scalar operations or nanoseconds."""

    # Kernels (`schedule`, `fusion`).
    parallel_ns: float = 20_000.0  # estimated time from which a kernel is shared among threads
    chunk_ns: float = 8_000.0  # the least that one chunk of a shared kernel should take
    stream_bytes: int = 1 << 18  # what a nest reads when it is walked in the order of memory
    squares: int = 128  # the side of a tile of squares, less where there would be few tiles
    tile_bytes: int = 1 << 14  # accumulators that are sure to stay in the L1 cache
    row_bytes: int = 1 << 17  # a row's values should stay in the nearer caches
    # Rows from which what is done with one scalar per row is better done in vectors.
    many_rows: int = 4096
    table_calls: int = 16  # calls in a row from which a table is shorter

    # Reductions, scans and updates (`lower_reductions`, `lower_chunks`, `lower_updates`).
    chunk: int = 1 << 14  # elements of one partial result of a reduction, at the least
    scan_chunk: int = 1 << 13  # elements that a thread scans at a time, if there are 8 such
    shared_updates: int = 1 << 16  # from which updates are shared among threads
    update_part: int = 1 << 19  # updates of a part, where there are enough for two parts

    # Products (`lower_contraction`, `blocking`).
    small_product: int = 1 << 12  # multiply-adds up to which a contraction is a plain reduction
    few_rows: int = 14  # rows of A for which packing B does not pay
    near_bytes: int = 1 << 16  # what B may span to be read as it lies
    far_bytes: int = 1 << 18  # what a row of A may be spread over to be read as it lies
    many_columns: int = 64  # of B, for which a spread row of A is read over and over
    # Elements of the larger operand, from which a long sum goes by chunks, and bytes of it in one.
    many_elements: int = 1 << 16
    chunk_bytes: int = 1 << 17
    block_bytes: int = 360 << 10  # of A in one block and one run of k
    soon_bytes: int = 1 << 20  # of B that is soon there again for the next block
    result_bytes: int = 1 << 18  # of C in one block then
    least_rows: int = 48  # but not fewer: each block has all of B pass by
    copied_bytes: int = 1 << 15  # of a block of A, from which it is worth copying
    copied_panels: int = 8  # that pass by, for the copy to pay
    run_bytes: int = 1 << 12  # of the longest run along k
    shallow: int = 32  # the same where B's rows lie far apart: few streams at a time
    unit_flops: float = 2e6  # the least that is worth a unit of its own: some microseconds
    unit_rows: int = 32  # the least that a unit should have of a product cut for threads alone
    shared_ns: float = 10_000.0  # the least that a thread should get of a product
    shared_flops: float = 1e6  # and of other steps with tiles
    factor_flops: int = 1 << 18  # multiply-adds from which threads share a factorisation's product

    # Convolutions and attention (`conv_plan`, `lower_convolution`, `lower_attention`).
    small_convolution: int = 1 << 14  # multiply-adds up to which it is a sum for each element
    window_bytes: int = 160 << 10  # of x in one block: what a second-level cache has beside a panel
    channels: int = 256  # the longest run of channels in one block
    window_flops: float = 4e6  # the least that is worth a unit of its own
    window_run: int = 128  # products that a register should sum before it is added to memory
    attention_keys: int = 96  # in one block: with its queries, the scores stay in the first cache
    attention_vectors: int = 4  # of queries in one block

    # Loops by tiles of time (`time_tiles`).
    time_tile_bytes: int = 1 << 19  # of a block of rows: half of a common L2 cache
    time_tile_units: int = 16  # blocks at least, for threads to share, if there are rows enough

    # Sorting (`sort_blocks`, `llvm/sorting`).
    short_row: int = 512  # elements up to which a row is not sorted by digits
    sort_block: int = 1 << 15  # elements that a thread counts and moves at a time, at the least
    sort_segment: int = 1 << 15  # keys in a segment, about
    sorted_at_once: int = 1 << 12  # elements that a thread should sort at a time
    truths_at_once: int = 1 << 14  # truths that a thread should look at, at the least


DEFAULT = Limits()
TINY = Limits(
    parallel_ns=1.0,
    chunk_ns=1.0,
    stream_bytes=256,
    squares=16,
    tile_bytes=512,
    row_bytes=512,
    many_rows=16,
    table_calls=3,
    chunk=64,
    scan_chunk=32,
    shared_updates=64,
    update_part=32,
    small_product=8,
    few_rows=2,
    near_bytes=256,
    far_bytes=256,
    many_columns=4,
    many_elements=256,
    chunk_bytes=512,
    block_bytes=1024,
    soon_bytes=1024,
    result_bytes=512,
    least_rows=4,
    copied_bytes=64,
    copied_panels=1,
    run_bytes=128,
    shallow=8,
    unit_flops=1e3,
    unit_rows=2,
    shared_ns=0.1,
    shared_flops=1e2,
    factor_flops=64,
    small_convolution=0,
    window_bytes=1 << 11,
    channels=5,
    window_flops=1e3,
    window_run=7,
    attention_keys=8,
    attention_vectors=1,
    time_tile_bytes=1 << 11,
    time_tile_units=4,
    short_row=64,
    sort_block=64,
    sort_segment=256,
    sorted_at_once=16,
    truths_at_once=64,
)

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
