"""`f.stages(x)`: every stage shows itself; printed loops compute what NumPy does."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import random_graphs
from hypothesis import given, settings

import jitney as jt
from jitney.codegen.loop_ir.index import contiguous_strides
from jitney.ir.graph import Graph
from jitney.runtime.following import follow
from jitney.runtime.options import CompileOptions
from jitney.tracer.stages.making import listing_text, make_stages
from jitney.tracer.stages.stages import Stages

X = np.linspace(-1.0, 1.0, 24).reshape(4, 6)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def loop(x: Any) -> Any:
    total = x
    for _ in range(50):
        total = total @ x.T @ x
        if total[0, 0] > 2:
            total = total / np.abs(total).max()
    return total


def elements(x: Any) -> Any:
    y = x.copy()
    for i in range(1, x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] += y[i - 1, j] * 0.5 if x[i, j] > 0 else 1.0
    return y


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def in_place(x: Any) -> None:
    x[1:] += x[:-1]
    x[0] = 5


WAYS: dict[str, Callable[..., Any]] = {
    "jit": softmax,
    "grad": jt.grad(lambda x: softmax(x).std()),
    "vmap": jt.vmap(lambda row: np.cumsum(np.sort(row))),
    "vmap of grad": jt.vmap(jt.grad(lambda row: np.prod(np.sin(row)))),
    "loop": loop,
    "grad of loop": jt.grad(lambda x: loop(x).sum()),
    "scalar code": elements,
    "complex": lambda x: np.fft.fft(x * 1j),
    "containers": lambda x: len([k for k in range(x.shape[0]) if x[k, 0] > 0]),
    "recursive": lambda x: fibonacci(x.shape[0]) * x,
    "callback": lambda x: jt.pure_callback(np.sort, jt.ShapeDtype(x.shape, x.dtype), x) * 2,
    "libraries": lambda x: np.linalg.svd(x)[1] + np.linalg.inv(x[:, :4]).sum(),
    "half": lambda x: np.tanh(x.astype(np.float16)) * 2,
    "in place": in_place,
    "no ops": lambda x: x,
    "no elements": lambda x: x[:0] * 2,
}


class Tags(HTMLParser):
    """Which tags are open, and what is linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.links: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.add(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("way", WAYS)
def test_every_stage_shows_itself(way: str, tmp_path: Path) -> None:
    f = jt.jit(WAYS[way])
    stages = f.stages(X)
    names = list(stages)
    assert names[:2] == ["source", "trace"] and names[-4:] == ["fuse", "memory", "llvm", "asm"]
    assert "simplify" in names and "eliminate_dead_code_2" in names
    for stage in stages.values():
        text = str(stage)
        assert text.strip() and stage is getattr(stages, stage.name)
        known = "LibraryLoop(" not in text and "<python" not in text
        if stage.graph is not None and known:
            assert str(jt.parse_graph(text)) == text
    tags = Tags(stages._repr_html_())
    assert not tags.open and not tags.links and "script" not in tags.seen
    assert stages.llvm.__str__() == f.lower(X).llvm().rstrip("\n") + "\n"
    assert all(name in repr(stages) for name in names)


def test_one_stage_by_its_name(tmp_path: Path) -> None:
    f = jt.jit(softmax)
    stage = f.stages(X, after="simplify")
    assert stage.graph is not None and "reshape %0 shape=[4,1]" in str(stage)
    for name in ("stage.txt", "stage.html", "stage.HTML"):
        stage.save(tmp_path / name)
    assert (tmp_path / "stage.txt").read_text() == str(stage)
    page = (tmp_path / "stage.html").read_text()
    assert page.startswith("<!doctype html>") and not Tags(page).open and "exp" in page
    assert (tmp_path / "stage.HTML").read_text() == page
    f.stages(X).save(tmp_path / "all.html")
    assert not Tags((tmp_path / "all.html").read_text()).open
    with pytest.raises(KeyError, match="did you mean 'simplify'"):
        f.stages(X, after="simplfy")
    with pytest.raises(AttributeError, match="there is no stage 'ptx'"):
        f.stages(X).ptx  # noqa: B018


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    stage = jt.jit(softmax).stages(X, after="fuse")
    with pytest.raises(IsADirectoryError):
        stage.save(tmp_path)
    with pytest.raises(FileNotFoundError):
        stage.save(tmp_path / "nowhere" / "a.html")
    with pytest.raises(OSError):
        stage.save("/dev/full")


def test_the_way_to_a_gpu_that_is_not_here() -> None:
    for way in ("jit", "grad", "loop"):
        stages = jt.jit(WAYS[way]).stages(X, arch="sm_90")
        assert list(stages)[2] == "compose" and list(stages)[-1] == "ptx"
        assert ".entry" in str(stages.ptx) and "for i0 in range(" in str(stages.fuse)
    assert ".target sm_80" in str(jt.jit(softmax).stages(X, after="ptx", arch="sm_80"))


def test_what_is_too_big_to_show_is_cut() -> None:
    table = np.random.default_rng(0).normal(size=400)
    f = jt.jit(lambda x: x[:400] + jt.asarray(np.arange(400) % 7 * 1.0) * table)
    stages = f.stages(np.ones(500))
    assert len(stages.trace._repr_html_()) < 10_000
    assert str(jt.parse_graph(str(stages.trace))) == str(stages.trace)
    long = jt.jit(lambda x: sum(np.sin(x * k) for k in range(2000)), autograph=False)
    page = long.stages(1.0, after="trace")._repr_html_()
    assert "more lines, which the text has" in page and len(page) < 2_000_000


def test_shapes_alone_are_enough() -> None:
    stages = jt.jit(softmax).stages(jt.ShapeDtype((8, 64), np.float32))
    assert "for i0 in range(8):" in str(stages.fuse)


def test_the_source_is_what_was_traced() -> None:
    text = str(jt.jit(WAYS["grad"]).stages(X, after="source"))
    assert "def softmax(x: Any) -> Any:" in text and "e.sum(axis=1" in text
    assert "jt.grad(lambda x: softmax(x).std())" in text


LISTING = """
kernel max_sub_exp_sum_0: ...
  for i0 in range(4):
    total0 = -inf
    for j0 in range(6):
      total0 = max(total0, x[i0, j0])  # max at test_stages.py
    temp[i0] = total0
    total1 = 0
    for j1 in range(6):
      temp1[i0, j1] = exp(x[i0, j1] - temp[i0])  # sub, exp at test_stages.py
      total1 += temp1[i0, j1]  # sum at test_stages.py
    temp2[i0] = total1
    for j2 in range(6):
      output0[i0, j2] = temp1[i0, j2] / temp2[i0]  # div at test_stages.py
"""


def test_what_loops_look_like() -> None:
    text = str(jt.jit(softmax).stages(X, after="fuse"))
    text = re.sub(r"(test_stages.py):\d+", r"\1", text)
    assert re.sub(r"(kernel \w+:).*", r"\1 ...", text) == inspect.cleandoc(LISTING) + "\n"


def test_what_the_memory_plan_looks_like() -> None:
    text = str(jt.jit(loop).stages(np.eye(4, 6), after="memory"))
    first, second, head, *rows = text.splitlines()
    assert re.fullmatch(r"arena: [\d,]+ bytes for \d+ temporaries", first)
    assert (
        second.startswith("without sharing:") and head.split() == "bytes offset steps array".split()
    )
    assert all(re.fullmatch(r" *[\d,]+ +[\d,]+  \d+-\d+ +\w+: \w+\[[\d,]*\]", row) for row in rows)
    arena = jt.jit(loop).lower(np.eye(4, 6)).executable.module.arena_bytes
    assert first.startswith(f"arena: {arena:,} bytes")


# Printed loops are nearly Python: here they are run.


class Memory(dict[Any, Any]):
    """Names of arrays and of functions that the loops use."""

    def __missing__(self, name: str) -> Any:
        if not re.match(r"(temp|output|sorted|const|total)\d*$", name):
            raise KeyError(name)
        self[name] = {}
        return self[name]


FUNCTIONS = {
    **{name: getattr(math, name) for name in ("exp", "sin", "cos", "tanh", "sqrt", "inf", "nan")},
    "fma": lambda a, b, c: a * b + c,
    "max": max,
    "min": min,
    "abs": abs,
    "range": range,
    "f64": float,
    "i64": int,
    "bool": bool,
    "__builtins__": {},
}


def run_listing(f: Callable[..., Any], *args: Any) -> list[float]:
    """What the loops of `f` write into its first output, in the order of its elements."""
    text = str(jt.jit(f).stages(*args, after="fuse"))
    text = re.sub(r"^( *)kernel .*:.*$", r"\1if True:", text, flags=re.M)
    memory = Memory(FUNCTIONS)
    memory.update(zip(inspect.signature(f).parameters, args, strict=True))
    exec(text, {"__builtins__": {}}, memory)
    written = memory["output0"]
    return [written[key] for key in sorted(written)] if isinstance(written, dict) else [written]


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "softmax": softmax,
    "norms": lambda x: np.sqrt((x * x).sum(axis=0)) + x.max(),
    "transposed": lambda x: (x.T + 1) * np.sin(x.T),
    "windows": lambda x: x[1:, :-1] * 2 - x[:-1, 1:],
    "where": lambda x: np.where(x > 0, x, -x) + x[::-1],
    "running": lambda x: np.cumsum(x, axis=1) * 2,
    "one number": lambda x: (x - x.mean()).var(),
    "gradient": jt.grad(lambda x: np.tanh(x * x).sum()),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_loops_compute_what_they_say(name: str) -> None:
    f = PROGRAMS[name]

    def program(x: Any) -> Any:
        return f(x)

    wanted = np.asarray(jt.jit(program)(X)).reshape(-1)
    np.testing.assert_allclose(run_listing(program, X), wanted, rtol=1e-12)


@settings(max_examples=8, deadline=None)
@given(random_graphs(library=True))
def test_random_graphs(case: Any) -> None:
    graph: Graph = case[0]
    strides = [contiguous_strides(v.shape) for v in graph.params]
    followed = follow(graph, CompileOptions(), strides)
    stages: Stages = make_stages("random", graph, followed, "asm")
    for stage in stages.values():
        if stage.graph is not None:
            assert str(jt.parse_graph(str(stage))) == str(stage)
    text = listing_text(graph, followed)
    assert all(kernel.name in text for kernel in followed.kernels if kernel.ops)
    assert not Tags(stages._repr_html_()).open
