"""Checks that are made at the end of a loop, made before it: the same numbers and errors."""

from __future__ import annotations

import numpy as np
import pytest

import jitney as jt
from jitney.ir.interpreter import evaluate
from jitney.ir.passes.check_first import check_first, numbers_first
from jitney.ir.text_parser import parse_graph
from jitney.ir.verify import verify

LOOP = """
graph f(%x: f64[9], %z: f64[9]) -> f64[9] {{
  %no = constant value={{false}} : bool[]
  %zero = constant value={{{first}}} : i64[]
  %n, %y, %bad = scan %z, %zero, %x, %no {loop} : i64[], f64[9], bool[] {{
    graph run(%z: f64[9], %i: i64[], %x: f64[9], %bad: bool[]) -> i64[], f64[9], bool[] {{
      %one = constant value={{1}} : i64[]
      %k = add %i, %one : i64[]
      %e = gather {read} axes=[0] mode="{mode}" names=[0] : f64[]
      %root = {function} %e : f64[]
      %low = constant value={{0.0}} : f64[]
      %wrong = lt {asked}, %low : bool[]
      %new = bitwise_or %bad, %wrong : bool[]
      %w = scatter %x, %root, {write} axes=[0] mode="{mode}" combine="{combine}" names=[0] : f64[9]
      return %k, %w, %new
    }}
  }}
  %ok = invert %bad : bool[]
  %t = create_token : token
  %u = assert %ok, %t message="negative" error="ValueError" : token
  return {result}
}}
"""
PLAIN = {
    "first": 0,
    "loop": "consts=1 carries=3 length=8 reverse=false",
    "read": "%x, %i",
    "write": "%i",
    "function": "sqrt",
    "asked": "%e",
    "combine": "set",
    "mode": "check",
    "result": "%y",
}


def loops(graph):
    return [op for op in graph.ops if op.name == "scan"]


@pytest.mark.parametrize(
    ("change", "is_split"),
    [
        ({}, True),
        ({"read": "%z, %k"}, True),  # another array, wherever
        ({"read": "%x, %k"}, False),  # what another iteration writes
        ({"write": "%k"}, False),
        ({"first": -1}, False),  # -1 and 8 are one place
        ({"combine": "add"}, False),
        ({"mode": "clip"}, False),  # beyond the end is the last place
        ({"function": "sin", "asked": "%root"}, False),  # the check is what the loop computes
        ({"function": "abs", "asked": "%root"}, True),
    ],
)
def test_loops_that_are_split(change, is_split):
    graph = parse_graph(LOOP.format(**{**PLAIN, **change}))
    verify(graph)
    new = check_first(graph, set(graph.params))
    verify(new)
    assert (new is not graph) == is_split
    assert len(loops(new)) == 1 + is_split
    names = [op.name for op in new.ops]
    if is_split:
        assert names.index("assert") < names.index("scan", names.index("scan") + 1)
        first, second = loops(new)
        assert [r.type.shape for r in first.results] == [(), ()] and len(second.results) == 2
    good, bad = np.arange(1.0, 10), np.array([4.0, 1, 1, -1, 4, 9, 16, 1, 1])
    for x in (good, bad):
        results = []
        for g in (graph, new):
            try:
                results.append(evaluate(g, [x.copy(), x[::-1].copy()]))
            except Exception as error:  # a ValueError of the program, as the op raises it
                results.append(str(error))
        np.testing.assert_equal(*results)


def test_only_loops_that_change_some_arrays_are_split():
    graph = parse_graph(LOOP.format(**PLAIN))
    assert check_first(graph, {graph.params[1]}) is graph


LATE = """graph f(%x: f64[3], %n: i64[]) -> f64[3], i64[] {
  %0 = create_token : token
  %y = mul %x, %x : f64[3]
  %most = constant value={7} : i64[]
  %ok = lt %n, %most : bool[]
  %t = assert %ok, %0 message="large" : token
  %s = sum %y axes=[0] : f64[]
  %one = constant value={1.0} : f64[]
  %small = lt %s, %one : bool[]
  %u = assert %small, %t message="a sum" : token
  %fits = lt %most, %n : bool[]
  %v = assert %fits, %u message="after it" : token
  return %y, %n
}
"""


def test_checks_of_numbers_come_first():
    graph = parse_graph(LATE)
    moved = numbers_first(graph)
    verify(moved)
    names = [op.attrs.get("message", op.name) for op in moved.ops]
    assert names[:5] == ["create_token", "constant", "lt", "large", "mul"]
    assert names.index("a sum") < names.index("after it") == len(names) - 1
    assert numbers_first(moved) is moved


def test_updates_after_checks_are_in_place():
    class Scaled:
        def __init__(self):
            self.arrays, self.base, self.t = [np.ones(3), np.ones((2, 2))], 0.5, 0

        def step(self):
            self.t += 1
            for a in self.arrays:
                a *= 1 - self.base**self.t
                a += self.base ** (2 * self.t)

    mine, plain = Scaled(), Scaled()
    step = jt.jit(mine.step, inplace="require")
    for _ in range(3):
        step(), plain.step()
        assert all(map(np.array_equal, mine.arrays, plain.arrays)) and mine.t == plain.t
    mine.base, mine.t = 10.0, 200
    before = [a.copy() for a in mine.arrays]
    with pytest.raises(OverflowError):
        step()
    assert all(map(np.array_equal, mine.arrays, before)) and mine.t == 200
