"""Random programs of views, copies and writes through any of them, against NumPy.

python tests/tracer/core/test_view_programs.py SEED COUNT    # prints what differs
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from view_calls import EXPRESSIONS, LAYOUTS, REFUSALS, Array, call_of, fresh, is_scalar, steps

import jitney as jt

# Values that are not exact, or grow large, or warn, are not what this is about.
_LEFT = "np.array( np.zeros_like np.kron np.pad np.uint8 np.ix_ float32 1j broadcast_arrays".split()
MORE = """
a[1:]
a[..., 1]
a[::-2]
a + 0
a[[0, 2]]
a.sum(0)
a.sum()
np.sort(a, 0)
np.where(a > 2, a, a.T)
np.add(a, a.T)
np.concatenate([a, a])
np.stack([a, a], -1)
a.reshape(a.shape[::-1])
a.reshape(a.shape[::-1], order="F")
""".split("\n")[1:-1]
CALLS = {e: call_of(e) for e in (*EXPRESSIONS, *MORE) if not any(left in e for left in _LEFT)}
WRITES = "set add put out sort diagonal flat".split()
Step = tuple[str, int, str, int, int]


def program(rng: random.Random) -> list[Step]:
    """Steps: what is done to one of the arrays so far, with another one or a number."""
    kinds = ["view"] * 5 + WRITES
    return [
        (
            rng.choice(kinds),
            rng.randrange(50),
            rng.choice(list(CALLS)),
            rng.randrange(50),
            rng.randrange(1, 5),
        )
        for _ in range(rng.randrange(3, 14))
    ]


def write(kind: str, v: Any, w: Any, number: int) -> None:
    if kind == "set":
        v[...] = w if w.shape == v.shape else number
    elif kind == "add":
        v += number
    elif kind == "put" and v.size:
        np.put(v, [0, v.size - 1], [number, number + 1])
    elif kind == "out":
        np.multiply(v, number, out=v)
    elif kind == "sort":
        v.sort(0)
    elif kind == "diagonal" and v.size:
        np.fill_diagonal(v, number)
    elif kind == "flat" and v.size:
        v.reshape(-1)[0] = number


def run(steps_: list[Step], x: Any) -> tuple[Any, Any, Any]:
    """What was refused, how all arrays lie in memory, and the arrays."""
    found, refused = [x], []
    for kind, which, expression, other, number in steps_:
        v, w = found[which % len(found)], found[other % len(found)]
        try:
            if kind == "view":
                made = CALLS[expression](v)
                if made.size <= 600:
                    found.append(made)
            elif not is_scalar(v):
                write(kind, v, w, number)
        except REFUSALS:
            refused.append((kind, expression))
    how = ["scalar" if is_scalar(v) else (steps(v), v.flags.writeable) for v in found]
    return refused, how, found


def differences(seed: int, count: int, backend: str = "interpreter") -> Iterator[str]:
    for number in range(count):
        rng = random.Random(1_000_003 * seed + number)
        layout = rng.choice(list(LAYOUTS.values()))
        steps_ = program(rng)
        for what in _compare(steps_, fresh(layout), fresh(layout), backend):
            yield f"seed {seed}, program {number}, {layout.shape}{layout.strides}: {what}: {steps_}"


def _compare(steps_: list[Step], a: Array, b: Array, backend: str) -> Iterator[str]:
    refused, how, want = run(steps_, a)
    seen: list[Any] = []

    def traced(x: Any) -> Any:
        nonlocal seen
        *seen, found = run(steps_, x)
        return [v + 0 for v in found], found

    values, got = jt.jit(traced, autograph=False, backend=backend)(b)
    if seen != [refused, how]:
        yield f"{seen} and not {[refused, how]}"
        return
    for i, (x, y, z) in enumerate(zip(want, values, got, strict=True)):
        if not (np.array_equal(x, y) and np.array_equal(x, z)):
            yield f"array {i} is {y} and not {x}"
        if np.shares_memory(x, a) != np.shares_memory(z, b):
            yield f"array {i} shares memory: {np.shares_memory(z, b)}"
    if not np.array_equal(a, b):
        yield f"the argument is {b} and not {a}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("backend, count", [("interpreter", 60), ("native", 8)])
def test_random_programs(backend: str, count: int) -> None:
    assert list(differences(0, count, backend)) == []


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for difference in differences(*map(int, sys.argv[1:])):
        print(difference)
