"""Random calls: native code, the path through Python and the plain function give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from native_calls import Pair, leaves, same, trees

import jitney as jt

keywords = st.dictionaries(st.sampled_from("xyz"), trees, max_size=2)


def touch(*args: Any, **kwargs: Any) -> Any:
    """A function of any tree: every leaf changed, the structure kept."""

    def visit(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: visit(item) for key, item in value.items()}
        if isinstance(value, Pair):
            return Pair(*map(visit, value))
        if isinstance(value, (tuple, list)):
            return type(value)(map(visit, value))
        return None if value is None else np.multiply(value, 2)

    return visit(args), visit(kwargs)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.lists(trees, max_size=3), keywords), min_size=1, max_size=3))
def test_random_calls(forms: list[tuple[list[Any], dict[str, Any]]]) -> None:
    f, reference = jt.jit(touch), jt.jit(touch, backend="interpreter")
    wants = [reference(*args, **kwargs) for args, kwargs in forms]
    for _ in range(3):
        for (args, kwargs), want in zip(forms, wants, strict=True):
            same(f(*args, **kwargs), want)
            backwards = dict(reversed(kwargs.items()))
            got = f(*args, **backwards)
            same(got[0], want[0])
            for name in kwargs:
                same(got[1][name], want[1][name])


# Calls that a signature does not take, and values that an op does not take


def signature(a: Any, b: Any = 2.0, *, c: Any = None, d: Any = 1) -> Any:
    y = a["x"] * b + d if isinstance(a, dict) else a * b + d
    return (y, {"k": y - 1, "c": c}) if c is None else (y + c, {"k": y, "c": c * 2})


any_values = st.one_of(leaves(), st.just("text"))
given_names = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d", "e"]), any_values, max_size=3
).map(lambda named: {**named, "c": None} if named.get("c") is True else named)
bound = jt.jit(signature)


def outcome(function: Any, args: Any, kwargs: Any) -> Any:
    """What a call gives, or the kind of what it raises."""
    with np.errstate(all="ignore"):
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, OverflowError) as error:
            return Exception, isinstance(error, TypeError)


@settings(max_examples=20)
@given(
    st.lists(st.one_of(any_values, st.fixed_dictionaries({"x": leaves()})), max_size=3), given_names
)
def test_random_bindings(args: list[Any], kwargs: dict[str, Any]) -> None:
    """One function takes them all, so that programs of one form see arguments of another."""
    want = outcome(signature, args, kwargs)
    assume(all(getattr(leaf, "dtype", None) != np.object_ for leaf in jt.tree.leaves(want)))
    for _ in range(3):
        got = outcome(bound, args, kwargs)
        if isinstance(want, tuple) and want[0] is Exception:
            assert got[0] is Exception
        else:
            same(got, want)


# One array in several places of a tree, some of them written


@st.composite
def shared_trees(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two equal trees, each of views of an array of its own."""
    steps = st.sampled_from(
        [slice(0, 4), slice(4, 8), slice(2, 6), slice(7, 3, -1), slice(0, 8, 2)]
    )
    pool = draw(st.lists(steps, min_size=1, max_size=3))
    tree = draw(
        st.recursive(
            st.sampled_from(range(len(pool))),
            lambda inner: st.one_of(
                st.lists(inner, min_size=1, max_size=3),
                st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=2),
            ),
            max_leaves=5,
        )
    )
    offset = draw(st.integers(0, 3))

    def made() -> Any:
        base = np.arange(8.0) + offset
        arrays = [base[step] for step in pool]

        def fill(node: Any) -> Any:
            if isinstance(node, dict):
                return {key: fill(item) for key, item in node.items()}
            return [fill(item) for item in node] if isinstance(node, list) else arrays[node]

        return fill(tree), base

    return made(), made()


def accumulate(tree: Any, total: Any = 0.0) -> Any:
    """Adds to each array of the tree what was read before; gives what was read at last."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, list):
        for item in tree:
            total = accumulate(item, total)
        return total
    tree += total
    return total + tree[0] - tree[-1]


accumulated = jt.jit(accumulate)


@settings(max_examples=15)
@given(shared_trees())
def test_random_aliases(both: Any) -> None:
    (tree, base), (plain, want) = both
    for _ in range(3):
        assert accumulated(tree) == accumulate(plain)
        np.testing.assert_array_equal(base, want)
