"""Where the code of the opcodes for lists is (`list_opcodes`): made for the first program with one."""

from __future__ import annotations

from functools import cache

from ..native.layout import array_api, int_layout, list_items, ndarray_layout
from ..native.support import load_support
from .call_fields import OBJECTS

_NUMPY = {"PyArray_Scalar": 60, "PyArray_ScalarAsCtype": 62}  # places in NumPy's API table


@cache
def lists_address() -> int:
    """Where `jitney_lists` is."""
    layout = ndarray_layout()
    assert layout is not None

    def text() -> str:
        from .list_opcodes import lists_ir

        return lists_ir(layout, int_layout(), list_items())

    imports = {name: array_api()[index] for name, index in _NUMPY.items()}
    imports |= {name: id(value) for name, value in OBJECTS.items()}
    library = load_support(f"lists {layout}", text, ["jitney_lists"], imports)
    return library.keep().address("jitney_lists")
