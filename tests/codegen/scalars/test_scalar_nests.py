"""Random nests of loops and branches over a few numbers, small arrays and a large one, which scalar
code overwrites in place: against the interpreter, with gradients.

A program is a list of statements, each a tuple; `run` carries them out on a state, a dict of arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import jitney as jt

State = dict[str, Any]
LARGE = 70  # elements: too many for registers
START: State = {
    "a": np.float64(0.3),
    "b": np.float64(-0.7),
    "n": np.int64(2),
    "v": np.array([0.5, -0.2, 0.9]),
    "m": np.array([[0.1, 0.4], [-0.3, 0.8]]),
    "w": np.linspace(-1, 1, LARGE),
    "q": np.arange(3),
}
FLOATS = "abvmw"


def calm(x: Any) -> Any:
    return x / (1.0 + np.abs(x))


def number(s: State, k: int) -> Any:
    """One of the numbers of a state."""
    choices = [s["a"], s["b"], s["v"][1], s["m"].sum(), s["w"][s["n"] % LARGE], s["v"].max()]
    return [*choices, s["n"] * 0.1, s["w"][3]][k]


def place(s: State, k: int) -> Any:
    """A position in the large array."""
    n = s["n"]
    return [n % LARGE, (n * 7 + 3) % LARGE, np.int64(5), s["q"][n % 3] % LARGE][k % 4]


STEPS = [
    lambda s, j, k: {"a": calm(number(s, j) * number(s, k) + s["a"])},
    lambda s, j, k: {"b": np.sin(number(s, j)) - s["b"] * 0.5},
    lambda s, j, k: {"a": s["b"], "b": s["a"]},
    lambda s, j, k: {"n": (s["n"] * 3 + j + k) % 5},
    lambda s, j, k: {"v": calm(s["v"][::-1] + number(s, j))},
    lambda s, j, k: {"v": jt.at(s["v"])[place(s, j) % 3].set(number(s, k))},
    lambda s, j, k: {"m": calm(s["m"] @ s["m"].T + number(s, j))},
    lambda s, j, k: {"w": jt.at(s["w"])[place(s, j)].set(number(s, k))},
    lambda s, j, k: {"w": jt.at(s["w"])[place(s, j)].add(number(s, k))},
    lambda s, j, k: {"w": jt.at(s["w"])[2:4].set(s["v"][:2])},
    lambda s, j, k: {"q": (s["q"][::-1] + s["n"]) % 7},
    lambda s, j, k: {"v": np.tanh(np.cumsum(s["v"])) * 0.7, "b": calm(s["v"].sum())},
    lambda s, j, k: {"v": np.concatenate([s["w"][j : j + 2], s["m"][0, :1]])},
    lambda s, j, k: {"a": np.where(number(s, j) > number(s, k), s["a"] * 0.5, s["b"])},
]
SLICED = [
    lambda s: s["v"],
    lambda s: (s["v"], s["q"] * 0.25),
    lambda s: s["m"],
    lambda s: np.linspace(-1, 1, 4),
    lambda s: s["w"][:5],
    lambda s: s["w"],
    lambda s: np.zeros(0),
]
STACKED = [
    lambda s: s["a"],
    lambda s: s["v"],
    lambda s: (s["a"], s["m"] * s["n"]),
]


def run(block: list[Any], s: State) -> State:
    for kind, *parts in block:
        s = KINDS[kind](s, *parts)
    return s


def step(s: State, k: int, i: int, j: int) -> State:
    return {**s, **STEPS[k](s, i, j)}


def counted(s: State, trips: int, known: bool, block: list[Any]) -> State:
    def body(i: Any, s: State) -> State:
        return run(block, {**s, "a": calm(s["a"] + 0.1 * i)})

    return jt.fori_loop(0, trips if known else s["n"] % 4, body, s)


def waiting(s: State, most: int, block: list[Any]) -> State:
    def test(c: Any) -> Any:
        return (c[0] < most) & (number(c[1], most) < 0.8)

    return jt.while_loop(test, lambda c: (c[0] + 1, run(block, c[1])), (np.int64(0), s))[1]


def scanned(s: State, xs: int, ys: int, reverse: bool, unroll: int, block: list[Any]) -> State:
    def body(s: State, x: Any) -> tuple[State, Any]:
        total = sum(leaf.sum() for leaf in jt.tree.leaves(x))
        s = run(block, {**s, "a": calm(s["a"] + total)})
        return s, STACKED[ys](s)

    s, stacked = jt.scan(body, s, SLICED[xs](s), reverse=reverse, unroll=unroll)
    for leaf in jt.tree.leaves(stacked):
        s = {**s, "b": calm(s["b"] + leaf.sum())}
        if leaf.size:
            s = {**s, "v": calm(s["v"] + leaf.reshape(-1)[-1])}
    return s


def branched(s: State, i: int, j: int, yes: list[Any], no: list[Any]) -> State:
    more = number(s, i) > number(s, j) * 0.5
    return jt.cond(more, lambda s: run(yes, s), lambda s: run(no, s), s)


KINDS = {
    "step": step,
    "counted": counted,
    "waiting": waiting,
    "scanned": scanned,
    "branched": branched,
}


def choice(things: list[Any]) -> st.SearchStrategy[int]:
    return st.integers(0, len(things) - 1)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    block = st.lists(inner, min_size=1, max_size=3)
    numbers = st.integers(0, 7)
    return st.one_of(
        st.tuples(st.just("counted"), st.integers(0, 5), st.booleans(), block),
        st.tuples(st.just("waiting"), st.integers(0, 4), block),
        st.tuples(
            st.just("scanned"),
            choice(SLICED),
            choice(STACKED),
            st.booleans(),
            st.integers(1, 4),
            block,
        ),
        st.tuples(st.just("branched"), numbers, numbers, block, block),
    )


plain = st.tuples(st.just("step"), choice(STEPS), st.integers(0, 7), st.integers(0, 7))
programs = st.lists(st.recursive(plain, nested, max_leaves=8), min_size=1, max_size=2)


def agree(f: Any) -> None:
    want = jt.jit(f, backend="interpreter")(START)
    got = jt.jit(f)(START)
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-6, atol=1e-9, err_msg=name)


@settings(max_examples=12, deadline=None)
@given(programs)
def test_nests_agree_with_the_interpreter(block: list[Any]) -> None:
    agree(lambda s: run(block, s))


@settings(max_examples=6, deadline=None)
@given(programs)
def test_gradients_of_nests_agree_with_the_interpreter(block: list[Any]) -> None:
    def total(floats: State, s: State) -> Any:
        out = run(block, {**s, **floats})
        return sum((out[k] * 1.1).sum() for k in FLOATS)

    agree(lambda s: jt.grad(total)({k: s[k] for k in FLOATS}, s))
