"""Graphs before and after passes, as text and as values: for test_passes.py, test_pass_rules.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from jitney.ir.graph import Graph
from jitney.ir.passes import (
    optimise,
)
from jitney.ir.text import print_graph
from jitney.ir.text_parser import parse_graph
from jitney.ir.verify import verify


def same(a: Any, b: Any) -> bool:
    """Equal to the bit, except that all NaNs are equal."""
    if a is None or b is None:
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    equal = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
    return bool(equal.all())


def normal(text: str) -> str:
    return print_graph(parse_graph(inspect.cleandoc(text)))


def check(before: str, after: str, run: Callable[[Graph], Graph] = optimise) -> None:
    graph = run(parse_graph(inspect.cleandoc(before)))
    verify(graph)
    assert print_graph(graph) == normal(after)
