"""Which of Python's containers can be native ones in compiled code, and how one knows their stand-ins.

The room `containers` has all the rest; a process that traces nothing does not load it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

CONTAINERS = frozenset((list, deque, dict, Counter, defaultdict, OrderedDict, set))


def is_native(value: Any) -> bool:
    """Whether a value stands in for a native container: a `containers.stand_ins.Container`."""
    return getattr(type(value), "_jitney_native", False)
