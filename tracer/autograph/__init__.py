"""Python's own control flow over traced values, by source transformation: `jit(autograph=True)`.

`convert` makes of a function its twin, in which every `if`, loop, jump, `and`, conditional
expression and `assert` is a call of a helper that looks at the condition when it runs.

    origin      finds the function's syntax tree in the user's file
    jumps       turns break, continue and early return into flags
    names, liveness   which variables a statement changes, and which are read later
    transform   rewrites statements and expressions as calls of the helpers
    twins       makes the function of the result, under the names and lines of the user
    runtime     the helpers; ordinary values take Python's way, traced ones become
                branches (`cond`) and loops (`while`, `scan`) with adoption of assigned arrays
"""

from __future__ import annotations

from typing import Any


def convert(function: Any) -> Any:
    """The twin of a user's function, or `function` itself where there is nothing to transform."""
    from . import runtime  # no process needs it that runs no function for the first time

    return runtime.convert(function)
