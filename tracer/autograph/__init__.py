"""Python's own control flow over traced values, by source transformation; `autograph=False` leaves it.

`convert` makes of a function its twin, in which every `if`, loop, jump, `and`, conditional
expression and `assert` is a call of a helper that looks at the condition when it runs.

The tree of a function is found (`syntax.origin`), rewritten (`syntax`) and made into its twin, under the
names and lines of the user (`twins`). The helpers (`runtime`) take Python's way with ordinary values;
traced ones become branches (`cond`) and loops (`while`, `scan`), with what they assign to, variables,
attributes and elements of containers, merged or carried. What Python asks of a value is answered for
what it stands for.
"""

from __future__ import annotations

from typing import Any


def convert(function: Any) -> Any:
    """The twin of a user's function, or `function` itself where there is nothing to transform."""
    from . import runtime  # no process needs it that runs no function for the first time

    return runtime.convert(function)
