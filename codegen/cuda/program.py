"""A compiled graph for a GPU before it is machine code: LLVM text, launches, and what calls need.

A `DeviceProgram` is plain data: it pickles, and holds no LLVM objects and no pointers. Whoever runs it
allocates memory, assembles `ir` for the device at hand, and carries out `steps` in order on one stream.

**Memory.** A `Ref` names a location: a space, a number in it, and an offset in bytes.

    input, output   number: position in `inputs` / `outputs`; offset from the array's first element
    arena           scratch memory of `arena_bytes`, 256-byte aligned, contents undefined at the start
    constant        number: position in `constants`, copied to the device once, C-contiguous
    counters        `counter_words` uint32 words: zero when a run starts, zero again when it has ended
    status          the status block, STATUS_WORDS int64 words (`codegen.module`), zero when a run starts
    slot            number: a pointer that `While` and `Scan` set and move; offset is added to it
    heap            0: where tapes are, 256-byte aligned, its first STATE_BYTES (`tapes`) zero when a run
                    starts; 1: its end

Arena, counters and status belong to one run at a time: runs that overlap need their own.

**Kernels.** For each name in `kernels`, `ir` defines `ptx_kernel void @name(...)` whose parameters are
the arguments of the launch in order: a `Ref` is a 64-bit global address, a `Scalar` a value, a
`TensorMap` 128 bytes that the driver makes of it (`ptr byval([128 x i8]) align 64`). Static
shared memory is declared in the text; `KernelShape.shared_bytes` is the dynamic part, the size of the
external array that the text declares (more than 48 KB must be asked for at the driver).

**Errors.** A kernel that meets an error (an index out of bounds, a failed assertion) does not stop: it
notes the first one in the status block and goes on with harmless values. When a run has ended, and
before each `HostCall`, word 7 of the block is looked at: k > 0 is error site k (`errors[k - 1]`), words
0.. hold what its message needs, as in `codegen.module`. A `While` makes no further iteration once word 7
is set. Outputs of a run that failed are garbage. Of several errors in one kernel any one is reported.

**Inputs** have the types, strides and alignment that `inputs` say, and may overlap each other. Outputs
are fresh, C-contiguous, 256-byte aligned and overlap nothing.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from ...ir.record import field, record, replace
from ..module import CallbackSite, CopySite, ErrorSite, KernelReport

Space = Literal["input", "output", "arena", "constant", "counters", "status", "slot", "heap"]
Grid = tuple[int, int, int]


class Ref(NamedTuple):
    """Device memory: `offset` bytes into number `number` of `space` (0 where it has one)."""

    space: Space
    number: int = 0
    offset: int = 0


class Scalar(NamedTuple):
    """A kernel argument passed by value. `dtype` is one of i32, i64, f32, f64."""

    dtype: str
    value: int | float


MAP_BYTES, MAP_ALIGNMENT = 128, 64


class TensorMap(NamedTuple):
    """A kernel argument of MAP_BYTES, passed by value, that tells the copy engine of an array.

    `sizes` are its extents in elements, fastest first, `strides` the bytes from one to the next along
    all dims but the first; `box` is how many elements a copy brings along each. `element` is f16, bf16,
    or tf32: float32 that is rounded on the way. Lines of a box are 128 bytes, exchanged as wgmma wants.
    """

    base: Ref
    element: str
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]


Argument = Ref | Scalar | TensorMap


@record
class KernelShape:
    """How a kernel is launched: threads of a block (x, y, z), always the same for one kernel, and bytes
    of dynamic shared memory. `cluster`: blocks of a cluster (x, y, z); all ones: no clusters."""

    threads: Grid
    shared_bytes: int = 0
    cluster: Grid = (1, 1, 1)


@record
class Buffer:
    """An input or output: shape, dtype, strides in elements, and what its address is a multiple of.

    An array whose address is less aligned needs a program compiled for that (`input_alignment`).
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...]
    alignment: int

    @property
    def nbytes(self) -> int:
        """Of the elements."""
        return math.prod(self.shape) * self.dtype.itemsize


# Steps. All are asynchronous on the run's stream but those that say that the host waits.


@record
class Launch:
    """Launch a kernel: `grid` counts blocks, none of them 0."""

    kernel: str
    grid: Grid
    arguments: tuple[Argument, ...]


@record
class BlasMatrix:
    """Matrices in memory: rows, or columns if `turned`, are contiguous and `ld` elements apart; the next
    one of a batch is `stride` elements further on. The first address is a multiple of `alignment`."""

    ref: Ref
    dtype: str
    turned: bool
    ld: int
    stride: int
    alignment: int


@record
class Gemm:
    """Products of matrices by cuBLASLt: `result` = `left` @ `right`, of `shape` (batch, m, n, k); with a
    `bias`, its n elements are added to each row. `tf32`: operands of float32 may be rounded.
    """

    left: BlasMatrix
    right: BlasMatrix
    result: BlasMatrix
    shape: tuple[int, int, int, int]
    bias: Ref | None = None
    bias_alignment: int = 16
    tf32: bool = False

    @property
    def matrices(self) -> tuple[BlasMatrix, BlasMatrix, BlasMatrix]:
        return self.left, self.right, self.result


@record
class Copy:
    """Copy `nbytes` bytes from one location on the device to another; they do not overlap."""

    target: Ref
    source: Ref
    nbytes: int


@record
class Fill:
    """Fill `count` elements of `width` (1, 2 or 4) bytes with the bit pattern `value`, unsigned."""

    target: Ref
    count: int
    width: int
    value: int


@record
class If:
    """Run one of `branches`, chosen by the int32 at `index`, clamped into range."""

    index: Ref
    branches: tuple[tuple[Step, ...], ...]


@record
class Carry:
    """Two buffers of a loop that are exchanged at each iteration.

    When the loop starts, the slot `now` is `home` and the slot `next` is `spare`; the initial value is
    in `home`. After each iteration the two slots trade their addresses (or the contents of `next` are
    copied to `now`, which comes to the same). When the loop has ended the value that `now` names must be
    in `home`: it is copied there, `nbytes` bytes, if it is in `spare`.
    """

    now: int
    next: int
    home: Ref
    spare: Ref
    nbytes: int


@record
class Slice:
    """In iteration i the slot is `base` plus i * `stride` bytes; i counts down in a reversed scan."""

    slot: int
    base: Ref
    stride: int


@record
class While:
    """Run `test`; while the byte at `flag` is not 0: run `body`, let carries trade, run `test` again."""

    test: tuple[Step, ...]
    flag: Ref
    body: tuple[Step, ...]
    carries: tuple[Carry, ...]


@record
class Scan:
    """Run `body` for iterations i = 0 .. length - 1, or from length - 1 down to 0 if `reverse`."""

    length: int
    reverse: bool
    body: tuple[Step, ...]
    carries: tuple[Carry, ...]
    slices: tuple[Slice, ...]


@record
class HostCall:
    """Call Python on the host: `callbacks[number]` of the program. The host waits for the operands,
    C-contiguous on the device, copies them over, calls, and copies what it gets to `results`."""

    number: int
    operands: tuple[Ref, ...]
    results: tuple[Ref, ...]


@record
class TapeNew:
    """Put a new tape's handle (int64, never 0) at `handle`. Tapes live as long as the run.

    Of a step with tapes the host does what it says, or the device does, in `launches` (see `tapes`).
    Handles are then others: all steps of a program go one way.
    """

    handle: Ref
    launches: tuple[Launch, ...]


@record
class TapePush:
    """Put a record, copies of `values` (locations and bytes), on the tape whose handle is at `handle`;
    on a new one, whose handle is put there, if that is 0. A host that does it waits for the handle."""

    handle: Ref
    values: tuple[tuple[Ref, int], ...]
    launches: tuple[Launch, ...]


@record
class TapePop:
    """Take the last record off the tape whose handle is at `handle`. An empty tape, or none (0), gives
    zeros."""

    handle: Ref
    values: tuple[tuple[Ref, int], ...]
    launches: tuple[Launch, ...]


Step = Launch | Gemm | Copy | Fill | If | While | Scan | HostCall | TapeNew | TapePush | TapePop


@record(frozen=False)
class DeviceProgram:
    """A compiled graph. `ir` has no `target` lines: whoever assembles it prepends them."""

    ir: str
    kernels: dict[str, KernelShape]
    steps: tuple[Step, ...]
    inputs: list[Buffer]
    outputs: list[Buffer]
    arena_bytes: int = 0
    counter_words: int = 0
    slots: int = 0  # how many there are
    constants: list[np.ndarray[Any, Any]] = field(default_factory=list)
    errors: list[ErrorSite] = field(default_factory=list)
    callbacks: list[CallbackSite] = field(default_factory=list)
    copies: list[CopySite] = field(default_factory=list)
    reports: list[KernelReport] = field(default_factory=list)
    # Outputs of the graph that have no array of their own: (output, input that it replaces), as in
    # `NativeModule`. They are not among `outputs`.
    in_place: list[tuple[int, int]] = field(default_factory=list)
    arch: str = ""  # the least that `ir` needs, "sm_75" or newer; "sm_90a": that and no other


def without_outputs(program: DeviceProgram) -> DeviceProgram:
    """The program with its outputs as further inputs. It has no loops and no branches."""
    steps = tuple(moved_in(step, "output", len(program.inputs)) for step in program.steps)
    return replace(program, steps=steps, inputs=[*program.inputs, *program.outputs], outputs=[])


def moved_in(step: Step, space: str, first: int) -> Step:
    """A step whose locations in one space are inputs, from number `first` on."""

    def moved(argument: Argument) -> Any:
        if isinstance(argument, TensorMap):
            return argument._replace(base=moved(argument.base))
        if not isinstance(argument, Ref) or argument.space != space:
            return argument
        return Ref("input", first + argument.number, argument.offset)

    if isinstance(step, Launch):
        return replace(step, arguments=tuple(map(moved, step.arguments)))
    if isinstance(step, Gemm):
        left, right, result = (replace(m, ref=moved(m.ref)) for m in step.matrices)
        bias = None if step.bias is None else moved(step.bias)
        return replace(step, left=left, right=right, result=result, bias=bias)
    if isinstance(step, Copy):
        return replace(step, target=moved(step.target), source=moved(step.source))
    assert isinstance(step, Fill), f"a trial of {type(step).__name__}"
    return replace(step, target=moved(step.target))
