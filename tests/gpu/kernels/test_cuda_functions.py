"""Every public array function on a GPU, emulated or real: the table of calls against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from function_calls import CALLS
from gpu import REAL

import jitney as jt

GROUPS = 24
# What they give is no array, or depends on memory that both share.
NOT_ARRAYS = ("jt.result_type", "jt.einsum_path", "(x.dtype")


@pytest.fixture(autouse=True)
def on_gpu() -> Iterator[None]:
    with jt.config(cuda="on" if REAL else "emulate"), jt.device("cuda"):
        yield


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [np.asarray(tree)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("group", range(GROUPS))
def test_functions(group: int) -> None:
    for position, call in enumerate(CALLS[group::GROUPS]):
        if call.expression.startswith(NOT_ARRAYS):
            continue
        dtype = (np.float64, np.float32)[position % 2]
        plain, given = call.arguments(dtype), call.arguments(dtype)
        with np.errstate(all="ignore"):
            expected = leaves(call.function(*plain))
        got = leaves(jt.jit(call.function)(*given))
        for have, want in zip([*got, *given], [*expected, *plain], strict=True):
            assert have.shape == want.shape, call
            close = (
                2e-4 if want.dtype in (np.float32, np.complex64) or dtype == np.float32 else 1e-9
            )
            np.testing.assert_allclose(have, want, rtol=close, atol=close, err_msg=str(call))
