"""How each framework writes the rows down: one module per framework, loaded in its own process.

A module has `ROWS` (name of the row -> function or its maker), `version()`,
`prepare(row, inputs) -> (callable, arguments)` and `wait(result)`, which returns only when the
result is there. A row that a module lacks is shown as a dash with the reason.
"""

import importlib
from types import ModuleType

NAMES = ("jitney", "numpy", "numba", "jax", "torch")


def load(name: str) -> ModuleType:
    """The module of framework `name`; raises ImportError if the framework is not installed."""
    return importlib.import_module(f".use_{name}", __package__)
