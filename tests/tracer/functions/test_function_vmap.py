"""Every call of the table, batched: `jt.vmap` gives what a loop over the batch gives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from calls import Call
from function_calls import CALLS
from samples import by_eights, told

import jitney as jt

NO_ARRAYS = ("result_type", "einsum_path", "x.dtype")  # they give dtypes and text


BATCHED = [c for c in CALLS if c.operands and not any(n in c.expression for n in NO_ARRAYS)]


@by_eights(BATCHED)
def test_batched_calls_are_a_loop(calls: list[Call]) -> None:
    for call in calls:
        rows = [call.arguments(seed=seed) for seed in range(2)]
        batched = [np.stack(each) for each in zip(*rows, strict=True)]
        with told(call), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            same(jt.vmap(call.function)(*batched), [call.function(*row) for row in rows])


def same(got: Any, rows: list[Any]) -> None:
    """Leaf by leaf, the rows on top of each other."""
    first = rows[0]
    if isinstance(first, (list, tuple)):
        assert len(got) == len(first)
        for k in range(len(first)):
            same(got[k], [row[k] for row in rows])
    elif first is not None:
        want = np.stack([np.asarray(row) for row in rows])
        have = np.asarray(got)
        assert (have.shape, have.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9)
