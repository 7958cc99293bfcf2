"""Pictures of graphs: things are in boxes where they belong, nothing overlaps, pages stay small."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx
import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings
from hypothesis import strategies as st
from test_stages import Tags

import jitney as jt
from jitney.ir.build import Builder
from jitney.ir.graph import Graph, SourceLine
from jitney.ir.types import F64, TensorType
from jitney.tracer.stages.boxes import MOST_INSIDE, Box
from jitney.tracer.stages.drawing import draw
from jitney.tracer.stages.layout import layered

X = np.ones((8, 4))


def net(x: Any) -> Any:
    with jt.name_scope("encoder"):
        h = jt.name(np.tanh(x), "h")
        with jt.name_scope("inner"):
            h = h * 2
    for _ in range(1000):
        h = h + np.sin(h)
        if h[0, 0] > 3:
            h = h / 2
    return h.sum(axis=0)


def texts(svg: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(svg).iter() if e.tag.endswith("text")]


def within(box: Box) -> list[Box]:
    return [box, *(inner for each in box.inside for inner in within(each))]


def test_scopes_and_regions_are_boxes() -> None:
    drawing = jt.jit(net).trace(X).draw()
    found = texts(drawing.svg)
    assert {"encoder", "inner", "x", "h = tanh", "scan", "cond", "output 0"} <= set(found)
    assert any(text.startswith("f64[8,4]") for text in found)
    (encoder,) = (box for box in within(drawing.top) if box.label == "encoder")
    assert [box.label for box in encoder.inside] == [
        "h = tanh",
        "inner",
    ] and encoder.kind == "scope"
    assert encoder.edges == {(0, 1): (1, "f64[8,4]")}
    page = drawing._repr_html_()
    assert not Tags(page).open and "script" not in Tags(page).seen
    ElementTree.fromstring(drawing.svg)


def test_kernels_are_boxes() -> None:
    drawing = jt.jit(net).draw(X)
    kernels = [box.label for box in within(drawing.top) if box.kind == "kernel"]
    assert kernels and len(kernels) == len(set(kernels))
    assert any("tanh" in name for name in kernels)
    assert jt.jit(net).draw(X, arch="sm_90").top.count > 10


def test_it_can_be_saved(tmp_path: Path) -> None:
    drawing = jt.jit(net).draw(X)
    drawing.save(tmp_path / "net.svg")
    drawing.save(tmp_path / "net.html")
    assert ElementTree.parse(tmp_path / "net.svg").getroot().tag.endswith("svg")
    assert not Tags((tmp_path / "net.html").read_text()).open
    with pytest.raises(IsADirectoryError):
        drawing.save(tmp_path)


def test_odd_names_and_long_ones() -> None:
    @jt.jit
    def f(x: Any) -> Any:
        with jt.name_scope("<b>/&\n'\"]"), jt.name_scope("n" * 500):
            return np.sin(x)

    svg = f.trace(X).draw().svg
    assert "&lt;b&gt;" in svg and max(map(len, texts(svg))) < 60


@pytest.mark.parametrize("scoped", [True, False])
def test_ten_thousand_ops(scoped: bool) -> None:
    b = Builder(Graph("large"))
    x = b.graph.add_param(TensorType((4,), F64), "x")
    for k in range(10_000):
        scope = f"block_{k // 1000}/layer_{k // 50}" if scoped else ""
        b.loc = SourceLine("model.py", k, "f", scope)
        x = b.sin(x) if k % 2 else b.add(x, x)
    b.graph.outputs = [x]
    page = b.graph.draw()._repr_html_()
    assert len(page) < 2_000_000 and page.count("<rect") < 4_000 and not Tags(page).open
    assert "block_9" in page if scoped else "(not drawn)" in page


@settings(max_examples=12, deadline=None)
@given(random_graphs(max_ops=90))
def test_random_graphs(case: Any) -> None:
    graph: Graph = case[0]
    drawing = draw(graph)
    leaves = [*drawing.top.leaves()]
    graphs = [graph, *(region for op in graph.walk() for region in op.regions)]
    plain = [op for op in graph.walk() if not op.regions]
    assert len(leaves) == len(plain) + sum(len(g.params) + len(g.outputs) for g in graphs)
    assert all(len(box.inside) <= MOST_INSIDE for box in within(drawing.top))
    edges = sum(n for box in within(drawing.top) for n, _ in box.edges.values())
    read = sum(len(op.operands) for op in graph.walk())
    assert edges == read + sum(len(g.outputs) for g in graphs)
    assert not Tags(drawing._repr_html_()).open
    ElementTree.fromstring(drawing.svg)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 30), st.data())
def test_nothing_overlaps(count: int, data: Any) -> None:
    side = st.integers(10, 90)
    sizes = [data.draw(st.tuples(side, side)) for _ in range(count)]
    node = st.integers(0, max(count - 1, 0))
    pairs = data.draw(st.lists(st.tuples(node, node), max_size=60)) if count else []
    edges = {(a, b): None for a, b in pairs if a != b}
    places, (width, height), routes = layered(sizes, edges)
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(places, sizes, strict=True)]
    for k, (x1, y1, x2, y2) in enumerate(boxes):
        assert x1 >= 0 and x2 <= width + 1e-6 and y1 >= 0 and y2 <= height + 1e-6
        for u1, v1, u2, v2 in boxes[:k]:
            assert x2 <= u1 or u2 <= x1 or y2 <= v1 or v2 <= y1
    assert all(boxes[a][3] < boxes[b][1] for a, b in edges if a < b)
    for x, above, below in (place for route in routes.values() for place in route):
        beside = (x < x1 or x2 < x or y2 <= above or below <= y1 for x1, y1, x2, y2 in boxes)
        assert all(beside)


def test_scopes_and_regions_have_names() -> None:
    def f(x: Any, n: int) -> Any:
        for _ in range(n):
            x = np.sin(x) if x.sum() > 0 else np.cos(x)
        return x

    def many(x: Any) -> Any:
        for k in range(100):
            with jt.name_scope(f"layer_{k}"):
                for _ in range(100):
                    x = np.sin(x) + 1.0
        return x

    top = jt.jit(f, autograph=True).trace(X, 3).draw().top
    regions = [box.label for box in within(top) if box.kind == "region"]
    assert regions == ["test", "body", "else", "if"]
    drawing = jt.jit(many, autograph=False).trace(X).draw()
    assert [box.label for box in drawing.top.inside] == [
        "layer_0 to layer_58",
        "layer_59 to layer_99",
    ]
    page = drawing._repr_html_()
    assert all(f"layer_{k}" in page for k in range(100))


def test_regions_in_networkx() -> None:
    graph = jt.jit(net).trace(X)
    plain, whole = graph.to_networkx(), graph.to_networkx(regions=True)
    assert set(plain) < set(whole) and plain.number_of_edges() < whole.number_of_edges()
    ops = [n for n, d in whole.nodes(data=True) if d["kind"] == "op"]
    assert len(ops) == len([*graph.walk()])
    inner = [(n, d) for n, d in whole.nodes(data=True) if "parent" in d]
    assert inner and all(whole.nodes[d["parent"]]["op"].regions for _, d in inner)
    assert all(n[: len(d["parent"]) + 1] == (*d["parent"], d["region"]) for n, d in inner)
    assert networkx.is_directed_acyclic_graph(whole)
    assert re.fullmatch(r"param \d+", whole.nodes[next(n for n, _ in inner)]["label"])
