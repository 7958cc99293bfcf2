"""What older NumPys do otherwise, or wrongly, in tests that hold functions against them.

Compiled code gives what the newest NumPy gives. Each line is the first version that does so, too, a
part of the name of the tests that ask for it, which fail before, and what it was before.
"""

from __future__ import annotations

import numpy as np

_NOW = tuple(map(int, np.__version__.split(".")[:2]))

CHANGES: tuple[tuple[tuple[int, int], str, str], ...] = (
    ((2, 3), "test_complex_numbers_that_are_half_nan[arccosh]", "NaN had other signs and parts"),
    ((2, 3), "test_destinations_as_in_numpy[0]", "concatenate took results of any shape"),
    ((2, 3), "test_linalg.py::test_options", "cond of complex numbers was complex"),
    ((2, 3), "test_linalg.py::test_edges_are_numpys", "empty matrices were not refused"),
    ((2, 3), "test_the_formulas_that_hide_a_point", "float16 was NaN there"),
    ((2, 4), "test_functions_give_what_numpy_gives[matrix_rank", "empty matrices were refused"),
    ((2, 4), "test_matrices_that_are_not_square[matrix_rank]", "empty matrices were refused"),
    ((2, 4), "np.pad(x, {1: (1, 2)})", "there were no widths by axis"),
    ((2, 4), "test_every_parameter_of_numpys_is_ours_too", "there were names that are gone"),
    ((2, 4), "axis=(0, 1), weights=x**2", "weights were not moved with several axes"),
    (
        (2, 4),
        "test_compiled_calls_are_numpys[jt.percentile(x, 40,",
        "weights were not moved with several axes",
    ),
)


def otherwise(nodeid: str) -> str | None:
    """What this NumPy does otherwise in a test, or None."""
    for first, part, before in CHANGES:
        if first > _NOW and part in nodeid:
            return f"before NumPy {'.'.join(map(str, first))}: {before}"
    return None
