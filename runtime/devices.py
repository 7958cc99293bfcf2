"""Which devices there are, and which one is meant."""

from __future__ import annotations

import re
from typing import Any

from ..ir.record import record


@record
class Device:
    """A place where programs run: `cpu`, or a GPU, `cuda:0`, by the number that its driver gives it."""

    platform: str
    index: int = 0

    def __str__(self) -> str:
        named = self.platform == "cpu" or self == FIRST_GPU
        return self.platform if named else f"{self.platform}:{self.index}"

    def __repr__(self) -> str:
        return f"Device({str(self)!r})"


CPU = Device("cpu")
FIRST_GPU = Device("cuda", -1)  # whichever that is: nobody has asked the driver yet


def parse_device(device: Any) -> Device:
    """A Device from its name: "cpu", "cuda:1", or FIRST_GPU of "cuda". Raises ValueError."""
    if isinstance(device, Device):
        return device
    match = re.fullmatch(r"(cpu|cuda)(?::(\d+))?", device) if isinstance(device, str) else None
    if match is None or (match[1] == "cpu" and match[2] not in (None, "0")):
        raise ValueError(f"device={device!r}: choose 'cpu', 'cuda' or 'cuda:0'")
    return FIRST_GPU if device == "cuda" else Device(match[1], int(match[2] or 0))
