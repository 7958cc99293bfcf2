"""What a loop hands on: chains of any length, and results of inner loops that do not meet."""

from __future__ import annotations

import pytest

from jitney.ir.build import Builder
from jitney.ir.chains import Broken, chain_of, depends
from jitney.ir.graph import Graph
from jitney.ir.types import F64, TensorType

SCALAR = TensorType((), F64)


def test_a_long_chain_is_followed() -> None:
    graph = Graph("long")
    total, x = graph.add_param(SCALAR), graph.add_param(SCALAR)
    b, value = Builder(graph), total
    for _ in range(3000):
        value = b.add(value, x)
    assert chain_of(value, total).groups == {"add"}


@pytest.mark.parametrize("crossed", [False, True])
def test_carries_of_an_inner_loop_are_told_apart(crossed: bool) -> None:
    body = Graph("body")
    a, b = body.add_param(SCALAR), body.add_param(SCALAR)
    inside = Builder(body)
    body.outputs = [inside.add(a, b), inside.mul(b, a if crossed else b)]
    graph = Graph("loop")
    total, x = graph.add_param(SCALAR), graph.add_param(SCALAR)
    attrs = {"consts": 0, "carries": 2, "length": 5, "reverse": False}
    ends = Builder(graph).op("scan", total, x, regions=[body], **attrs)
    assert depends(ends[0], {total}) and depends(ends[0], {x}) and depends(ends[1], {x})
    assert depends(ends[1], {total}) == crossed
    if crossed:
        with pytest.raises(Broken):
            chain_of(ends[0], total)
    else:
        assert chain_of(ends[0], total).groups == {"add"}
