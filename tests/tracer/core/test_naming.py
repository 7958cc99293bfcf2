"""`jt.name_scope` and `jt.name`: kept by all that happens to a program, and changing nothing of it."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import jitney as jt
from jitney.ir.graph import Graph
from jitney.ir.passes import optimise, storable

Array = np.ndarray[Any, Any]
X = np.linspace(0.1, 1.0, 8).reshape(2, 4)


def scopes(graph: Graph, name: str = "") -> list[str]:
    """Those of the ops, or of the ops of that name, in order, each once."""
    ops = [op for op in graph.walk() if op.loc is not None and op.name == (name or op.name)]
    return list(dict.fromkeys(op.loc.scope for op in ops if op.loc is not None))


def names(graph: Graph) -> set[str]:
    return {v.name for v in graph.all_values() if "/" in v.name}


@jt.name_scope("dense")
def dense(x: Array) -> Array:
    with jt.name_scope("affine"):
        h = jt.name(x * 3 + 1, "h")
    return np.tanh(h)


def model(x: Array) -> Any:
    with jt.name_scope("encoder"):
        return dense(dense(x)).sum()


PATHS = [f"encoder/dense{n}{rest}" for n in ("", "_1") for rest in ("/affine", "")]
NAMES = {"encoder/dense/affine/h", "encoder/dense_1/affine/h"}
WAYS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "jit": (model, (X,)),
    "jit of jit": (jt.jit(model), (X,)),
    "grad": (jt.grad(model), (X,)),
    "second derivatives": (jt.grad(lambda x: jt.grad(model)(x).sum()), (X,)),
    "jvp": (lambda x: jt.jvp(model, (x,), (x,)), (X,)),
    "vmap": (jt.vmap(model), (X,)),
    "vmap of grad": (jt.vmap(jt.grad(model)), (X,)),
    "checkpoint": (jt.grad(jt.checkpoint(model)), (X,)),
    "cond": (lambda x: jt.cond(x[0, 0] > 0, model, lambda x: x[0, 0], x), (X,)),
    "scan": (lambda x: jt.scan(lambda c, row: (c + model(row), c), 0.0, x), (X,)),
    "grad of while": (
        jt.grad(lambda x: jt.fori_loop(0, 3, lambda i, y: y + model(x), 0.0).sum()),
        (X,),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_names_stay(way: str) -> None:
    f, args = WAYS[way]
    graph = jt.jit(f).trace(*args)
    assert set(PATHS) <= set(scopes(graph))
    assert names(graph) >= NAMES
    assert str(jt.parse_graph(str(graph))) == str(graph)
    small = optimise(storable(graph), verify=True)
    assert set(scopes(small)) >= {"encoder/dense", "encoder/dense_1"}
    if way not in ("grad of while", "scan"):  # there additions move
        assert names(small) >= NAMES


def test_backward_ops_say_what_they_are_the_derivative_of() -> None:
    graph = jt.jit(jt.grad(lambda x: np.sin(x).sum())).trace(X)
    roles = {op.name: op.loc.role for op in graph.ops if op.loc is not None}
    assert roles["sin"] == "" and roles["cos"] == "grad of sin"
    again = jt.jit(jt.grad(lambda x: jt.grad(np.sin)(x))).trace(1.0)
    assert "grad of grad of sin" in {op.loc.role for op in again.ops if op.loc is not None}
    forward = jt.jit(lambda x: jt.jvp(np.sin, (x,), (x,))).trace(X)
    assert "jvp of sin" in str(forward)


def test_a_loop_that_is_traced_several_times_counts_once() -> None:
    def f(x: Array) -> Any:
        total = 0.0
        for i in range(1000):
            with jt.name_scope("body"):
                total = jt.name(total + x[0, 0] * i, "total")
        while total > 100:
            with jt.name_scope("halve"):
                total = total / 2
        with jt.name_scope("body"):
            return total * 2

    found = [path for path in scopes(jt.jit(f).trace(X)) if path]
    last = len(found) - 2  # iterations may be written out before the loop
    assert found == ["body", *(f"body_{k}" for k in range(1, last)), "halve", f"body_{last}"]
    assert last <= 3
    assert jt.jit(f)(X) == f(X)


def test_names_belong_to_a_trace() -> None:
    @jt.jit
    def f(x: Array) -> Array:
        with jt.name_scope("inside"):
            return x * 2

    with jt.name_scope("outside"):
        assert scopes(f.trace(X), "mul") == ["inside"]
    assert scopes(f.trace(X), "mul") == ["inside"]


def test_tracers_know_their_names() -> None:
    seen = []

    @jt.jit
    def f(x: Array) -> Array:
        with jt.name_scope("a"):
            y, z = jt.name((x + 1, x + 2), "pair")
            seen.extend([x.name, y.name, z.name])  # type: ignore[attr-defined]
        return y * z

    f(X)
    assert seen == ["x", "a/pair", "a/pair_1"]


def test_a_named_array_is_the_array() -> None:
    def f(x: Array) -> Array:
        y = np.zeros(3)
        jt.name(y, "y")[0] = 5.0
        return y + x

    np.testing.assert_array_equal(jt.jit(f)(1.0), f(1.0))
    assert jt.name(X, "h") is X


@pytest.mark.parametrize("name", ["a/b", "/a//b/", "new\nline", 'quo"te]', "x:3 in y", "ä b", "0"])
def test_odd_names(name: str) -> None:
    @jt.jit
    def f(x: Array) -> Array:
        with jt.name_scope(name):
            return jt.name(np.sin(x), name)

    graph = f.trace(X)
    text = str(graph)
    assert scopes(graph) == ["/".join(part for part in name.split("/") if part)]
    assert scopes(jt.parse_graph(text)) == scopes(graph)
    assert str(jt.parse_graph(text)) == text
    f(X)


@pytest.mark.parametrize("name", ["", "/", "//"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names nothing"):
        jt.name_scope(name)
    with pytest.raises(ValueError, match="names nothing"):
        jt.name(X, name)
    with pytest.raises(TypeError, match="a name is a string, not 3"):
        jt.name(X, 3)  # type: ignore[arg-type]


def test_errors_name_the_scope() -> None:
    @jt.jit
    def wrong(x: Array) -> Array:
        with jt.name_scope("encoder"):
            return x + np.ones(3)

    with pytest.raises(jt.errors.ShapeError, match=r"in .*wrong, scope encoder\n"):
        wrong(X)

    @jt.jit
    def outside(x: Array, i: int) -> Any:
        with jt.name_scope("decoder"):
            return x[i]

    with pytest.raises(IndexError, match="scope decoder"):
        outside(X, 7)


def test_explain_shows_scopes_and_derivatives() -> None:
    with_names = jt.jit(jt.grad(model)).explain(X)
    assert "encoder/dense/affine" in with_names and "grad of tanh" in with_names


def test_lambdas_of_one_line_are_told_apart() -> None:
    pair = [lambda x: np.sin(x) * 2, lambda x: x @ np.ones(3)]
    (sine,) = [op.loc for op in jt.jit(pair[0]).trace(X).ops if op.name == "sin"]
    line = inspect.getsource(sys._getframe()).split("\n")[1]
    assert sine is not None and sine.column == line.index("np.sin") + 1
    text = str(jt.jit(pair[0]).trace(X))
    assert f", column {sine.column}" in text and str(jt.parse_graph(text)) == text
    with pytest.raises(jt.errors.ShapeError, match=r"in .*<lambda>, column \d+\n") as refused:
        jt.jit(pair[1])(X)
    assert f"column {line.index('x @') + 1}\n" in str(refused.value)


def test_one_scope_in_many_threads() -> None:
    scope = jt.name_scope("shared")

    def run(k: int) -> list[str]:
        @jt.jit
        def f(x: Array) -> Array:
            with scope:
                time.sleep(0.001 * (k % 3))
                with scope:
                    return x * k

        return scopes(f.trace(X), "mul")

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(run, range(2, 10))] == [["shared/shared"]] * 8


def test_a_scope_ends_where_an_error_leaves_it() -> None:
    seen: list[str] = []

    @jt.jit
    def f(x: Array) -> Array:
        try:
            with jt.name_scope("wrong"):
                raise KeyError(1)
        except KeyError:
            return x * 2

    seen += scopes(f.trace(X), "mul")
    assert seen == [""]
