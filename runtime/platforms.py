"""Where jitney was tried: there calls are native unless somebody says otherwise, elsewhere not."""

from __future__ import annotations

import platform
import sys
import warnings
from functools import lru_cache

_ON_LINUX = {"x86_64": "", "aarch64": "tried in emulation only"}


class UntriedPlatformWarning(UserWarning):
    """Nobody has run jitney on a machine like this."""


def tried() -> bool:
    """Whether native calls were tried on such a machine."""
    return sys.platform == "linux" and platform.machine() in _ON_LINUX


def remark() -> str:
    """What to know about this platform; "" if there is nothing."""
    if not tried():
        return "never tried; calls go through Python"
    return _ON_LINUX[platform.machine()]


@lru_cache(maxsize=1)
def warn_if_untried() -> None:
    """A warning where they were not."""
    if not tried():
        warnings.warn(
            f"jitney was never tried on {sys.platform} with {platform.machine()}: calls of compiled "
            "functions go through Python, some microseconds each. JITNEY_NATIVE_CALLS=1 tries native "
            "ones, 0 ends this warning; where compiled code fails, jit(backend='interpreter') is NumPy "
            "alone. Tell us how it went.",
            UntriedPlatformWarning,
            stacklevel=2,
        )
