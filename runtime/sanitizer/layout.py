"""Memory of the sanitizer: byte offsets, flags and kinds of faults, for emitted code and for reports."""

from __future__ import annotations

TAG_SHIFT = 48  # user addresses are below

# A thread's state.
TOP = 0  # how many records are in use, from the bottom up
HEAP = 8  # the lowest record in use from the top down: memory that lives until it is freed
FREE = 16  # a record that was freed, which links to the next; 0: none
OWNER = 24  # the unit of work that runs: a number that grows
DEPTH = 32  # parallel loops around it
KERNEL = 40  # number of the kernel that began last
ERROR = 48  # kind of the first fault, 0 if there was none; seven words about it follow
LEVELS = 128  # for each parallel loop: the first unit of the loop, and the one that runs
SINK = 1024  # where wrong accesses go
SINK_BYTES = 8192
# Bytes that are about to be written though another unit touched them: how many, then for each one its
# address, its value, and the words of a report: number, site, offset, size, bytes, detail.
PENDING = SINK + SINK_BYTES
MAX_PENDING = 1023
RECORDS = PENDING + 64 * (MAX_PENDING + 1)
MAX_RECORDS = 1 << 16
STATE_BYTES = RECORDS + 64 * MAX_RECORDS

ERROR_WORDS = ("number", "site", "offset", "size", "bytes", "detail", "kernel")

# A record of an array: 64 bytes.
START, BYTES, FLAGS, NUMBER = 0, 8, 16, 24
# Three words of 32 bits for each byte, plane by plane: see `WRITER`; null: none is kept.
SHADOW = 32
STRIDE = 40  # bytes from plane to plane
LINK = 48
OWNED = 56  # the shadow, if it goes with the record

# The planes: the unit that wrote a byte last (0: nobody), through which array, and the first unit of
# the parallel loop that read it.
WRITER, ARRAY, READER = 0, 1, 2

# Flags of an array.
PRESET = 1  # has contents to begin with
FILLED = 2  # must have been written when the entry returns
FIXED = 4  # must not be written
LOOSE = 8  # may be read where nobody wrote it, in vain

# What an access does.
READ, WRITE, BOTH = 1, 2, 3
QUIET = 4  # bounds only: atomics, and words that threads share on purpose

# Kinds of faults; what the access did stands above them.
OUT_OF_BOUNDS, UNWRITTEN, OVERLAP, RACE, READ_ONLY, NULL, UNFILLED, WILD = range(1, 9)
ACCESS_SHIFT = 8
