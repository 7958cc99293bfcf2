"""Where jitney was tried: there calls are native unless somebody says otherwise (elsewhere: `trial`)."""

from __future__ import annotations

import os
import platform
import sys
from contextlib import suppress

_ON_LINUX = {"x86_64": "", "aarch64": "tried in emulation only"}


class UntriedPlatformWarning(UserWarning):
    """Nobody has run jitney on a machine like this, and not all of it works there."""


def tried() -> bool:
    """Whether native calls were tried on such a machine."""
    return sys.platform == "linux" and platform.machine() in _ON_LINUX and _has_glibc()


def _has_glibc() -> bool:
    with suppress(ValueError, OSError):  # other C libraries do not know the name
        return bool(os.confstr("CS_GNU_LIBC_VERSION"))
    return False


def remark() -> str:
    """What to know about this platform; "" if there is nothing."""
    return _ON_LINUX[platform.machine()] if tried() else "never tried"
