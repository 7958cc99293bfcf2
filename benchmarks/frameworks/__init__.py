"""How each framework writes the rows down: one module per framework, loaded in its own process.

A module has `ROWS` (the row's `implementation` -> function, or what makes it), `version()`,
`prepare(row, inputs) -> (callable, arguments)`, `wait(result)`, which returns only when the result
is there, and `arrays(result)`, which makes its arrays NumPy's. A row that a module lacks is shown
as a dash with the reason.
"""

import importlib
from types import ModuleType

NAMES = ("jitney", "numpy", "numba", "jax", "torch", "torch_compile")


def load(name: str) -> ModuleType:
    """The module of framework `name`; raises ImportError if the framework is not installed."""
    return importlib.import_module(f".use_{name}", __package__)
