"""The compiler's middle: types, graphs, the definitions of all ops, passes, and the interpreter.

Importing this package registers every op in `opdef.OPS`; it needs NumPy and nothing else. What does
not live here: anything that knows Python functions (`tracer`), machines (`codegen`) or memory
(`runtime`).
"""

from . import ops

__all__ = ["ops"]
