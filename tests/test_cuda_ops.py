"""Every op on the emulated GPU: all dtypes, layouts and values, against the interpreter.

An emulated module takes its time to compile, so many ops go into one program.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from emulated import compiled, run
from test_codegen import CASES, ROUNDED_ALIKE, close, laid_out

from jitney.ir.build import Builder
from jitney.ir.graph import Graph
from jitney.ir.interpreter import evaluate


def wanted(graph: Graph, arrays: list[np.ndarray]) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(evaluate(graph, arrays))


def together(graphs: list[Graph]) -> Graph:
    """One graph that computes all: their parameters and their outputs, one graph's after the other's."""
    whole = Graph("ops")
    b = Builder(whole)
    for graph in graphs:
        params = [whole.add_param(p.type) for p in graph.params]
        whole.outputs += b.inline(graph, params)
    return whole


def by_op(cases):
    found = {}
    for case in cases:
        found.setdefault(case.definition.name, []).append(case)
    return found


BY_OP = by_op(CASES)


def check_cases(cases, layout: str, wild: bool) -> None:
    graphs, given, expected, labels = [], [], [], []
    for case in cases:
        graph = case.graph()
        rng = np.random.default_rng(len(str(case)))
        arrays = [laid_out(a, layout) for a in case.sample(rng, wild)]
        try:
            want = wanted(graph, arrays)
        except (IndexError, AssertionError, ValueError) as error:
            with pytest.raises(type(error)):
                run(compiled(graph, arrays), arrays)
            continue
        graphs.append(graph)
        given += arrays
        expected += want
        labels += [(case, f"{case} {layout}{' extreme' if wild else ''}")] * len(want)
    got = run(compiled(together(graphs), given), given)
    for g, w, (case, label) in zip(got, expected, labels, strict=True):
        close(g, w, case.definition.name in ROUNDED_ALIKE, label)


@pytest.mark.parametrize("name", BY_OP)
def test_op(name):
    check_cases(BY_OP[name], "contiguous", False)
