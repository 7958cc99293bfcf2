"""The verifier of steps, as `ir.verify` is of graphs. It runs after each rewriting of steps where that
is asked for (`jt.config.verify`; always in tests).

What each access reads was written by the same makers as before, and before it on every path;
accesses stay within their arrays; elements are written once, and all of them; units of row blocks
and of threads keep apart; what shares memory is never live at once.
"""

from .errors import StepError
from .flow import check_flow, flow
from .memory import check_memory
from .program import check_program

__all__ = ["StepError", "check_flow", "check_memory", "check_program", "flow"]
