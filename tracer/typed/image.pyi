# Made by `python tests/helpers/stubs.py`.
"""`jt.image`."""

from collections.abc import Sequence
from numpy.typing import NDArray
from typing import Any

def resize(
    x: Any, shape: Sequence[int], method: str = 'linear', *, antialias: bool = True
) -> NDArray[Any]: ...
