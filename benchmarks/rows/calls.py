"""What a call costs when there is next to nothing to compute."""

from __future__ import annotations

import numpy as np

from .row import Array, Rows, normal

rows = Rows()


@rows.add("call_1", "x + 1 on 10 elements", make=normal(("n",)), size=10, small=10, goal=3.9)
def call_1(x: Array) -> Array:
    return x + 1


@rows.add(
    "call_3", "x * y + z on 10 elements", make=normal(("n",), ("n",), ("n",)), size=10, small=10
)
def call_3(x: Array, y: Array, z: Array) -> Array:
    return x * y + z


@rows.add(
    "call_dict",
    "a dict of 20 arrays, each doubled",
    make=lambda rng, n: ({f"p{i:02}": rng.standard_normal(n) for i in range(20)},),
    size=10,
    small=10,
    goal=15.9,
)
def call_dict(tree: dict[str, Array]) -> dict[str, Array]:
    return {key: value * 2 for key, value in tree.items()}


@rows.add(
    "slices_500",
    "500 unrolled slices added up",
    make=normal((500, "n")),
    size=10,
    small=10,
    tolerance=1e-3,
)
def slices_500(x: Array) -> Array:
    total = np.zeros_like(x[0])
    for i in range(500):
        total = total + x[i]
    return total


for _row in list(rows):
    rows.variant(_row, _row, rows[_row].title, passes=None)
