"""The compiler's middle: types, graphs, the definitions of all ops, passes, and the interpreter.

The registry `opdef.OPS` imports the modules that define the ops when it is first asked. NumPy is all
that is needed. The core stands in this folder; derivatives, batching, passes and the records of ops have
their own. What does not live here: anything that knows Python functions (`tracer`), machines
(`codegen`) or memory (`runtime`).
"""

from .surface import provides


@provides("graph")
def _fetching() -> None:
    from . import fetching  # noqa: F401
