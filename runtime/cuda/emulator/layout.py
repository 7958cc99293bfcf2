"""What emitted code and Python share: the bytes of a launch, of its warps and its threads.

A `Job` is one launch. Threads, warps and the queues of asynchronous copies are arrays beside it, each
for one block, since blocks run one after the other.
"""

from __future__ import annotations

import ctypes

WARP_SIZE = 32
MAX_THREADS = 1024
WINDOW_BYTES = 228 << 10  # of shared memory that a block can have
BARRIERS = 16
# Copies that a thread may have under way; the oldest arrives when there are more.
QUEUE_ENTRIES = 256
QUEUE_ENTRY = 32  # target, source, bytes to write and to read, group
IDLE_LIMIT = 1 << 18  # rounds in which all threads only spin, before that is called a livelock
SINK_BYTES = 128

# States of a thread; its bit is in the mask of its warp that `state_mask` names.
STATES = 6
READY, AT_BARRIER, AT_OPERATION, EXITED, SPINNING, AT_PHASE = range(STATES)

# Errors of a launch.
OUT_OF_BOUNDS = 1
MISALIGNED = 2
DIVERGED_OPERATION = 3  # lanes of one group at different instructions
NOT_IN_MASK = 4  # a lane that its own mask leaves out
MISSING_LANES = 5  # a warp waits for lanes that are elsewhere
DIVERGED_BARRIER = 6  # a warp at two barrier instructions
MISSING_THREADS = 7  # a barrier that not all threads reach
LIVELOCK = 8
RACE = 9  # accesses of shared memory with no barrier between them
NO_MBARRIER = 10  # a word that was not initialised as one
TOO_MANY_ARRIVALS = 11  # more than a phase expects
TOO_MANY_BYTES = 12  # announced
UNANNOUNCED_BYTES = 13  # that arrive at an mbarrier
MISSING_ARRIVALS = 14  # a phase that never ends
NO_MAP = 15
UNFENCED_MBARRIER = 16  # used by the copy engine
UNFINISHED_BOXES = 17  # copies under way when all threads have gone
NO_REGISTERS = 18
DIVERGED_GROUP = 19  # warps of a warpgroup at different instructions
BAD_DESCRIPTOR = 20
UNFENCED_PRODUCT = 21
TOUCHED_SUMS = 22  # accumulators that are not those of one product
TOO_MANY_PRODUCTS = 23


class Job(ctypes.Structure):
    """One launch, as the scheduler reads it; from `error` on it is what the launch says."""

    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "entry args grid_x grid_y grid_z block_x block_y block_z "
            "window window_used fill stride start multiplier increment random greedy eager state "
            "threads warps queues records ranges range_count last_range sink "
            "idle position current moved epoch "
            "boxes box_count unfenced registers pool sums group_steps "
            "error thread ctaid_x ctaid_y ctaid_z site address size detail steps"
        ).split()
    ] + [("arrivals", ctypes.c_int64 * BARRIERS)]


JOB = {name: getattr(Job, name).offset for name, *_ in Job._fields_}

# A thread: words of 32 bits up to `count`.
TID, CTAID, NTID, NCTAID = 0, 12, 24, 36
LANE, WARP, LINEAR, STATE, OPERATION, MASK, SITE, BARRIER, COUNT = range(48, 84, 4)
THREAD_JOB, HANDLE, FRAME, FRAME_SIZE = 88, 96, 104, 112
QUEUE_HEAD, QUEUE_TAIL, QUEUE_GROUPS = 120, 124, 128
# Words that are 0 when a block starts, but for REGISTERS.
(UNFENCED, REGISTERS, FENCED, SEQUENCE, NEXT_SUMS, PRODUCTS_HEAD, PRODUCTS_TAIL, PRODUCT_GROUPS) = (
    range(144, 176, 4)
)
PHASE_BARRIER = 136  # of the mbarrier that is waited for; null: registers are
INPUT = 192  # 32 words that a thread shows to its warp
OUTPUT = INPUT + 4 * WARP_SIZE  # 32 words that the warp gives it
THREAD_SIZE = OUTPUT + 4 * WARP_SIZE

EXISTING = 0  # a warp: masks of lanes, by what they do
SYNCED = 28  # how many barriers of its own it has passed
WARP_BYTES = 32


def state_mask(state: int) -> int:
    """Where a warp has the mask of the lanes in a state."""
    return 4 + 4 * state
