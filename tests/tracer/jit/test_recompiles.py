"""Why a function was compiled again: the argument that differs from the nearest signature."""

import logging

import numpy as np
import pytest

import jitney as jt


def total(tree):
    return sum(leaf.sum() for leaf in jt.tree.leaves(tree))


def calls(*calls_):
    f = jt.jit(lambda *args, **kwargs: total((args, kwargs)))
    for args, kwargs in calls_:
        f(*args, **kwargs)
    return f.explain_recompile()


A, B = np.ones(3), np.ones((2, 2))
CASES = {
    "shape": ([((A, B), {}), ((np.ones(4), B), {})], ["shape of `args[0]`", "f64[3] to f64[4]"]),
    "dtype": ([((A,), {}), ((A.astype("f4"),), {})], ["dtype of `args[0]`", "f64[3] to f32[3]"]),
    "layout": ([((B,), {}), ((np.ones((2, 4))[:, ::2],), {})], ["layout of `args[0]`"]),
    "in a dict": (
        [(({"w": [A, B]},), {}), (({"w": [A, np.ones((2, 3))]},), {})],
        ["shape of `args[0]['w'][1]`"],
    ),
    "a new key": ([(({"w": A},), {}), (({"w": A, "b": B},), {})], ["`args[0]['b']` is new"]),
    "a key that is gone": (
        [(({"w": A, "b": B},), {}), (({"w": A},), {})],
        ["`args[0]['b']` is gone"],
    ),
    "a keyword": ([((A,), {}), ((A,), {"k": B})], ["k", "is new"]),
    "the nearest, not the latest": (
        [((A, B), {}), ((B, A), {}), ((A, np.ones((2, 3))), {})],
        ["shape of `args[1]` changed from f64[2,2] to f64[2,3]"],
    ),
    "the nearest structure": (
        [(([A, A],), {}), (([A] * 9,), {}), (([A] * 3,), {})],
        ["`args[0][2]` is new"],
    ),
    "many at once": ([(([A] * 9,), {}), (([B] * 9,), {})], ["args[0][0]", "and 5 more"]),
}


@pytest.mark.parametrize("case", CASES)
def test_the_argument_that_changed_is_named(case):
    made, words = CASES[case]
    reason = calls(*made)
    assert all(word in reason for word in words), reason


def test_arguments_beyond_the_named_ones_and_keywords():
    def f(a, *more, scale):
        return a.sum() + sum(x.sum() for x in more) * scale.sum()

    compiled = jt.jit(f)
    compiled(A, A, scale=A)
    compiled(A, B, scale=A)
    assert "shape of `more[0]` changed" in compiled.explain_recompile()
    compiled(A, B, scale=B)
    assert "shape of `scale` changed" in compiled.explain_recompile()


def test_what_did_not_change_is_not_named():
    assert "args[0]" not in calls(((A, B), {}), ((B, A), {}), ((A, np.ones((2, 3))), {}))


def test_first_calls_static_values_and_guards():
    scale = {"by": 2.0}
    f = jt.jit(lambda x, kind: x * scale["by"] if kind == "up" else x / 2)
    assert f.explain_recompile() == "nothing is compiled"
    f(A, "up")
    assert f.explain_recompile() == "first call"
    f(A, "down")
    assert "static `kind` changed from 'up' to 'down'" in f.explain_recompile()
    f.clear_cache()
    assert f.explain_recompile() == "nothing is compiled"


def test_compilations_are_logged(caplog):
    f = jt.jit(lambda x: x + 1)
    with caplog.at_level(logging.WARNING, "jitney"), jt.config(log_compiles=True):
        f(np.ones(2))
        f(np.ones(2))
        f(np.ones(5))
    assert [r.name for r in caplog.records] == ["jitney", "jitney"]
    assert "f64[2] to f64[5]" in caplog.text and "first call" in caplog.text
    f(np.ones(6))
    assert len(caplog.records) == 2


def test_graphs_show_themselves():
    graph = jt.jit(lambda x: np.exp(x) < 1).trace(A)
    assert repr(graph).startswith("<Graph <lambda>(f64[3]): ")
    assert "&lt;" in graph._repr_html_() and "exp" in graph._repr_html_()
