"""What code is generated for: a family of GPUs, described by plain data."""

from __future__ import annotations

from typing import ClassVar

from ...ir.record import record


@record
class CudaTarget:
    """An architecture (90 is sm_90), the PTX version (78 is 7.8), and what schedules go by.

    `sms` is how many multiprocessors the device has. Shapes alone decide results: a program may be
    launched on a device with another number.
    """

    arch: int = 80
    ptx: int = 70
    sms: int = 108
    shared_bytes: int = 48 << 10  # of static shared memory that a block may have
    tf32: bool = False  # whether products of float32 may round operands to 10 bits after the point
    exact: bool = False  # whether instructions may be used that later architectures lack (sm_90a)
    deterministic: bool = True  # whether results must have the same bits from run to run
    blas: str = ""  # products are cuBLASLt's: "on" where it can, "measured" where faster, "" never
    lines: bool = False  # instructions say which line of the user's they compute (`codegen.marks`)

    WARP: ClassVar[int] = 32
    fastmath: ClassVar[bool] = False
    vector_bits: ClassVar[int] = 128  # of one access to memory
    features: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.arch < 75:
            raise ValueError(f"code is generated for sm_75 and newer, not sm_{self.arch}")

    @property
    def name(self) -> str:
        return f"sm_{self.arch}{'a' if self.exact else ''}"

    def key(self) -> str:
        """A text equal for equal targets: part of every cache key."""
        options = f"{self.shared_bytes} {self.tf32} {self.deterministic} {self.blas}"
        return f"nvptx64 {self.name} ptx{self.ptx} {self.sms} {options}"
