"""Functions as plain Python and compiled with autograph: the comparison, for test_autograph*.py."""

from __future__ import annotations

import copy
import functools
import linecache
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jitney as jt

BACKENDS = ["interpreter", "native"]
X = np.linspace(-1.0, 2.0, 5)
auto = functools.partial(jt.jit, autograph=True, backend="interpreter")


def entering(programs: list[tuple[Callable[..., Any], list[Any]]]) -> Any:
    """A decorator that enters a program into the list, with the arguments of the calls to compare."""

    def program(*calls: Any) -> Callable[[Any], Any]:
        def enter(f: Any) -> Any:
            programs.append((f, list(calls)))
            return f

        return enter

    return program


def agree(got: Any, want: Any, rtol: float = 1e-12) -> None:
    leaves, others = jt.tree.leaves(got), jt.tree.leaves(want)
    assert len(leaves) == len(others), (got, want)
    for a, b in zip(leaves, others, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol)


def both(f: Callable[..., Any], *calls: Sequence[Any], native: bool = True) -> None:
    """Plain Python and compiled code agree on the results and on what becomes of the arguments."""
    for backend in BACKENDS if native else BACKENDS[:1]:
        compiled = jt.jit(f, autograph=True, backend=backend)
        for arguments in calls:
            mine, its = copy.deepcopy(arguments), copy.deepcopy(arguments)
            want = f(*mine)
            agree(compiled(*its), want)
            agree(its, mine)


def fails(f: Callable[..., Any], kind: type[Exception], *says: str, args: Sequence[Any]) -> str:
    """The message has all of `says`, the user's file, and the line marked `# here`."""
    with pytest.raises(kind) as info:
        jt.jit(f, autograph=True, backend="interpreter")(*args)
    message = str(info.value)
    for part in says:
        assert part in message, message
    code = f.__code__
    lines = linecache.getlines(code.co_filename)
    marked = next(n for n in range(code.co_firstlineno, len(lines)) if "# here" in lines[n - 1])
    assert f"{Path(code.co_filename).name}:{marked}" in message, message
    return message


def clipped(x, low=0.0, *, high=3.0):
    if x < low:
        return low
    return high if x > high else x
