"""A compiled graph before it is machine code: LLVM text and what the runtime must know to call it.

The text defines `i32 @entry(ptr %args)`. `args` is a block of pointers:

    [one per input, one per output, the arena, the status block]

The arena is scratch memory of `arena_bytes`, 64-byte aligned (null if `arena_bytes` is 0). The
status block is nine i64; the last is not 0 if values that are watched for were met. The entry
returns 0, or k >= 1 to say that error site k (`errors[k - 1]`) was met: then it has written to the
status block what the message needs, for an index error the index and the size of its axis. It
returns PYTHON_ERROR if the thread's Python error indicator is set (an interrupt), CALLBACK_ERROR if a
callback has failed (the runtime keeps what it raised), and SANITIZER_ERROR if checked code met a
fault, which the status block tells (`runtime.sanitizer`).

Outputs are fresh C-contiguous arrays that overlap no input. Inputs have exactly the types and
strides that the module declares and are aligned to their item size; they may overlap each
other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..ir.graph import SourceLine
from ..ir.record import field, record
from ..ir.types import TensorType

STATUS_WORDS = 9
TOLD_WORD = 8  # of the status block: whether a value that is watched for is there
PYTHON_ERROR = -1
CALLBACK_ERROR = -2
SANITIZER_ERROR = -3


@record
class ErrorSite:
    """One site in native code that may fail: which exception to raise, for which user's line.

    `kind` is "index" (IndexError), "assert" (AssertionError), "value" (ValueError), "memory"
    (MemoryError), "linalg" (numpy.linalg.LinAlgError) or the name of an exception that an `assert` op
    may raise. The message is a format of the status words
    if there are `values`: their short dtype names, in order ("f32": the low 32 bits of the word are a
    float32). Index errors have two words without saying so.
    """

    kind: str
    message: str
    loc: SourceLine | None = None
    values: tuple[str, ...] = ()


@record
class CallbackSite:
    """One site where native code calls Python: the function, and the types of what goes in and out."""

    function: Callable[..., tuple[np.ndarray[Any, Any], ...]]
    operands: tuple[TensorType, ...]
    results: tuple[TensorType, ...]
    loc: SourceLine | None = None


@record
class CopySite:
    """An array that is copied because it cannot be updated, or carried, where it is. `slot`: the probe
    that counts how often (see `StepReport`)."""

    nbytes: int
    why: str
    loc: SourceLine | None = None
    slot: int = -1


@record
class Reason:
    """Why something was not done (`codegen.journal`): of what `kind`, to what and where, and what would
    change it; `other` is what it would have been done together with."""

    kind: str
    subject: str
    loc: SourceLine | None
    why: str
    remedy: str = ""
    other: str = ""
    other_loc: SourceLine | None = None


@record
class BufferReport:
    """A temporary: what is in it, where it lies in the arena, and from which step to which it lives."""

    name: str
    nbytes: int
    offset: int
    first: int
    last: int
    loc: SourceLine | None = None


@record
class Work:
    """What one run of a kernel keeps a processor busy with (`program.work`).

    slots      operations, slow ones counted as often as they keep others waiting
    turns      the same of one iteration of the loops that each element has for itself
    accesses   elements that are read and written where data say: bytes of the array, and how often
    """

    slots: float = 0.0
    turns: float = 0.0
    accesses: tuple[tuple[int, int], ...] = ()


@record
class KernelReport:
    """What `explain` says about one kernel. `ops` are the names of the graph ops fused into it."""

    name: str
    ops: tuple[str, ...]
    extents: tuple[int, ...] = ()
    bytes_read: int = 0
    bytes_written: int = 0
    flops: int = 0
    parallel: bool = False
    note: str = ""
    locs: tuple[SourceLine, ...] = ()
    itemsize: int = 8  # bytes of the numbers that it computes
    rate: str = "operations"  # what limits its speed: or "flops", "scalars", "sorting", "library"
    work: Work = Work()
    near: int = 0  # of the bytes: those that are in a near cache, since a part before it was there

    @property
    def title(self) -> str:
        """Its name and what it computes."""
        ops = ", ".join(dict.fromkeys(self.ops))
        return f"{self.name}: {ops}" if ops else self.name


@record
class StepReport:
    """What `explain` says about one step of a program, in the place where it runs.

    `text` says what it is, if it is no kernel. `blocks` are the steps inside of it, with what each
    block is: the body of a loop, a branch. `slot` is the probe that counts and times it (`probes`),
    -1 without one; a block has one as well. A step that `chooses` runs one of its blocks.
    `moves`: bytes that it reads and writes by itself, if it is no kernel.
    """

    text: str
    kernel: KernelReport | None = None
    loc: SourceLine | None = None
    slot: int = -1
    blocks: tuple[BlockReport, ...] = ()
    chooses: bool = False
    moves: int = 0


@record
class BlockReport:
    """A list of steps that run one after the other, inside of a step.

    `times`: how often for each run of that step; None where only the program knows. `flops`: of one
    run, by scalar code that stands in the block, the steps in it left out.
    """

    text: str
    steps: tuple[StepReport, ...]
    slot: int = -1
    times: int | None = None
    flops: int = 0


class Donation(NamedTuple):
    """An input that may be overwritten: donated by the caller, or assigned to by the function.

    `output` is the one that has to take its memory; None: any that can. `whole`: if the call fails,
    it must be as it was.
    """

    input: int
    output: int | None = None
    whole: bool = False


@record(frozen=False)
class NativeModule:
    """LLVM text (without `target` lines, which the runtime prepends) and its calling data."""

    text: str
    entry: str
    inputs: list[TensorType]
    input_strides: list[tuple[int, ...]]  # in elements, one tuple per input
    outputs: list[TensorType]
    arena_bytes: int = 0
    imports: set[str] = field(default_factory=set)  # runtime and libc symbols the text declares
    errors: list[ErrorSite] = field(default_factory=list)
    kernels: list[KernelReport] = field(default_factory=list)
    callbacks: list[CallbackSite] = field(default_factory=list)
    copies: list[CopySite] = field(default_factory=list)
    # What each one is, if the code is to be checked.
    arrays: list[str] = field(default_factory=list)
    # Outputs of the graph that have no array of their own: (output, input that it replaces). They are
    # not among `outputs`.
    in_place: list[tuple[int, int]] = field(default_factory=list)
    # Of axes whose length is bound at the call (`sizes`): the capacity, the input that is the length,
    # the least that it may be, and the most.
    lengths: tuple[tuple[int, int, int, int], ...] = ()
    # Scalar operations per call, None if unknown (loops): short calls keep the GIL.
    work: int | None = None
    # It touches what belongs to Python, such as generators of random numbers.
    keeps_gil: bool = False
    notes: dict[str, Any] = field(default_factory=dict)  # compile timings and the like
    # Of code with probes: its steps as they run, and where in the arena the probes' counters are.
    outline: tuple[StepReport, ...] = ()
    probes_at: int = 0
    # Of code that records its steps: what it calls itself when it does.
    identity: int = 0
    # Of such code, too: why things were not done, its temporaries, and of what fusion has made none.
    reasons: tuple[Reason, ...] = ()
    buffers: tuple[BufferReport, ...] = ()
    unstored: tuple[int, int] = (0, 0)  # how many, and bytes
