"""Why a function was compiled again: the argument that differs from the nearest signature."""

import logging
import re
import warnings

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


def _cases():
    """Calls before, one more, and which argument of that differs from the nearest of those before."""
    f4, row = np.float32, np.ones((1, 4))
    yield "x", [(A, 1), (B, 1)], (np.ones((2, 3)), 1)
    yield "x", [(A, 1)], (A.astype(f4), 1)
    yield "x", [(B, 1)], (B.T, 1)
    yield "n", [(A, 1)], (A, 1.5)
    yield "n", [(A, 1)], (A, True)
    yield "n", [(A, 1), (B, 1.5)], (A, 1j)
    yield "n", [(A, "up")], (A, "down")
    yield "n", [(A, "up"), (B, "down")], (B, "left")
    yield "n", [(A, 2)], (A, np.int64(2))
    yield "n", [(A, np.float32(2))], (A, np.float64(2))
    yield "x['w']", [({"w": A, "b": B}, 1)], ({"w": B, "b": B}, 1)
    yield "x['b'][1]", [({"w": A, "b": [B, B]}, 1)], ({"w": A, "b": [B, row]}, 1)
    yield "x[2]", [([A, B, A], 1), ([B, B, B], 1)], ([A, B, row], 1)
    yield "x[0][0]", [([[A], A], 1)], ([[A.astype(f4)], A], 1)
    yield "x[3]", [([A, A, A], 1)], ([A, A, A, A], 1)
    yield "x[2]", [([A, A, A], 1)], ([A, A], 1)
    yield "x['new']", [({"w": A}, 1)], ({"w": A, "new": A}, 1)
    yield "x['w']", [({"w": A, "v": A}, 1), ({"w": A}, 1)], ({"w": B}, 1)
    yield "x['v']", [({"w": A, "v": A, "u": B}, 1)], ({"w": A, "u": B}, 1)
    yield "x[1]", [((A, B), 1), ((B, B), 1.5)], ((B, A), 1.5)
    yield "n[1]", [(A, (A, A))], (A, (A, B))
    yield "n[0]", [(A, (1, A))], (A, (1.5, A))
    yield "x", [(row, A), (A, row)], (row, row)  # of two that are as near the latest
    yield "n['k']", [(A, {"k": "up", "z": 1})], (A, {"k": "down", "z": 1})
    yield "x", [(A, 1), (B, 2.5)], (np.ones((2, 2, 2)), 2.5)


@pytest.mark.parametrize(("path", "before", "call"), list(_cases()))
def test_of_25_recompilations_the_named_argument_is_the_one_that_changed(path, before, call):
    f = jt.jit(lambda x, n: 0)
    for arguments in before:
        f(*arguments)
    misses = f.cache_info().misses
    f(*call)
    reason = f.explain_recompile()
    assert f.cache_info().misses == misses + 1
    assert re.findall(r"`([^`]+)`", reason) == [path], reason


REMEDIES = {
    "shape": ([(np.ones(k),) for k in range(1, 5)], "f64[3] to f64[4]", "Pad arrays to"),
    "static": ([("a" * k,) for k in range(1, 5)], "from 'aaa' to 'aaaa'", "static_argnames"),
    "structure": ([([A] * k,) for k in range(1, 5)], "`x[3]` is new", "stack"),
}


@pytest.mark.parametrize("kind", REMEDIES)
def test_many_compilations_are_told_once_with_a_remedy(kind):
    made, reason, remedy = REMEDIES[kind]
    f = jt.jit(lambda x: 0)
    with jt.config(compile_warning=4):
        for arguments in made[:3]:
            f(*arguments)
        with pytest.warns(jt.errors.RecompileWarning, match="compiled 4 times") as told:
            f(*made[3])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            f(1.5, *made[0][1:])
    assert len(told) == 1
    text = str(told[0].message)
    assert reason in text and remedy in text and f.explain_recompile() != "first call"


def test_graphs_show_themselves():
    graph = jt.jit(lambda x: np.exp(x) < 1).trace(A)
    assert repr(graph).startswith("<Graph <lambda>(f64[3]): ")
    assert "&lt;" in graph._repr_html_() and "exp" in graph._repr_html_()
