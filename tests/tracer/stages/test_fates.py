"""Names that `jt.name` gave are in the rewritten graph, for the same values, or said to be gone."""

from typing import Any

import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings
from pass_checks import same

import jitney as jt
from jitney.ir.interpreter import evaluate
from jitney.ir.passes import optimise
from jitney.tracer.stages.fates import fates


@settings(max_examples=20, deadline=None)
@given(random_graphs(exact=True, effects=False))
def test_a_name_stands_for_the_same_value_or_is_gone(case: Any) -> None:
    graph, arrays = case
    values = [value for op in graph.ops for value in op.results]
    for k, value in enumerate(values):
        value.name = f"n{k}"
    after = optimise(graph)
    found = fates(graph, after)
    assert set(found) >= {value.name for value in values}
    kept = {v.name: v for op in after.ops for v in op.results if v.name}
    assert {name for name in found if not found[name]} >= kept.keys() & {v.name for v in values}
    named = [value for value in values if value.name in kept]
    before = evaluate(graph.giving(named), arrays)
    later = evaluate(after.giving([kept[value.name] for value in named]), arrays)
    assert all(same(a, b) for a, b in zip(before, later, strict=True))


def both(x: Any) -> Any:
    a = jt.name(np.sin(x), "a")
    return a + jt.name(np.sin(x), "b") + jt.name(-jt.name(-x, "n"), "back")


@pytest.mark.parametrize("way", ["plain", "vmap", "grad"])
def test_the_stages_say_what_became_of_names(way: str) -> None:
    ways = {"plain": both, "vmap": jt.vmap(both), "grad": jt.grad(lambda x: both(x).sum())}
    shown = jt.jit(ways[way]).stages(np.ones(3)).names
    lines = dict(line.split(maxsplit=1) for line in str(shown).splitlines())
    assert lines["back"] == "is x" and lines["n"].startswith("is gone")
    assert (lines["a"], lines["b"]) == ("is there", "is a") or way == "grad"
    assert "names" not in jt.jit(np.sin).stages(np.ones(3))
