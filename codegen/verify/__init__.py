"""The verifier of steps, as `ir.verify` is of graphs. It runs after each rewriting of steps where that
is asked for (`jt.config.verify`; always in tests).

    flow       what each access reads was written by the same makers, before and after
    program    what is read is written before, what is local is touched where it lives
    places     stages stay within arrays, write elements once, and meet at the same point
    blocks     units of row blocks keep apart
    tiles      trips of a loop on blocks of rows read what they would read one trip after the other
    memory     what shares a place is never live at the same time
"""

from .errors import StepError
from .flow import check_flow, flow
from .memory import check_memory
from .program import check_program

__all__ = ["StepError", "check_flow", "check_memory", "check_program", "flow"]
