"""Programs whose arguments have a first axis of any length (`jit(dynamic=...)`), called with many sizes.

They write into arguments, of one size and of any, draw from a generator, and are given up arguments
(donation). What is left of arguments and of the generator after each call counts as the results do.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .compare import Case
from .programs import function_of

SIZES = (3, 8, 0, 17, 1, 2, 100)
COLUMNS = 4

# By kind: R rows (n, k), V a vector (n,), C a row (k,), S a number, M a matrix (k, k).
TERMS = {
    "R": """np.tanh({R}) | {R} + {R} | {R} * {C} | np.tanh({R} @ {M})
        | {R} - {R}.mean(axis=1, keepdims=True)
        | np.where({R} > 0, {R}, {C}) | {V}[:, None] * {R} | {R}[::-1] | np.clip({R}, -1, {S})
        | np.select([{R} > 0.5, {R} < 0], [{R}, {R}], 0.0) | np.tanh(np.cumsum({R}, axis=0))
        | np.take_along_axis({R}, {R}.argmax(axis=1)[:, None], axis=1) + {R}
        | np.roll({R}, 1, axis=1)
        | jt.at({R})[:, 0].set({S}) | jt.at({R})[:, 1:].add({R}[:, :-1]) | {R}[np.argsort({V})]
        | np.concatenate([{R}[:, :1], {R}[:, 1:]], axis=1) | np.broadcast_to({C}, {R}.shape) + 0
        | jt.special.softmax({R}, axis=1) | np.sort({R}, axis=1)
        | {R}.reshape({R}.shape[0], 2, 2)[:, 1].repeat(2, 1)
        | jt.grad(lambda q: (np.tanh(q @ {M}) * {R}).sum())({R})
        | jt.vmap(lambda r: r * r.sum())({R})
        | jt.grad(lambda q: (q[1:] * q[:-1]).sum())({R}) | jt.special.gammaln(np.abs({R}) + 1)""",
    "V": """{R}.sum(axis=1) | {R}[:, 1] * 1 | {V} * 2 | np.arange({V}.shape[0]) / 3 | {R} @ {C}
        | {V}[::-1] + {V}
        | np.tanh(np.cumsum({V})) | {R}.argmax(axis=1) * 0.5 | np.ones({R}.shape[0]) * {S}
        | jt.special.logsumexp({R}, axis=1) | rng.random({V}.shape[0])
        | {R}[np.arange({R}.shape[0]), 0] + 0
        | jt.vmap(lambda r: r @ r)({R}) | np.where({V} > {S}, {V}, 0.0)""",
    "C": """np.tanh({R}.sum(axis=0)) | {M} @ {C} | np.tanh({V} @ {R})
        | {R}.max(axis=0, initial=0.0) | {R}[-1] * 1
        | {C} - {C}.mean() | np.tanh((({R} * {R}) > 0.5).sum(axis=0) * 0.1) | {R}[0] + {C}
        | np.tanh(jt.grad(lambda q: ({R} * q).sum())({C}))""",
    "S": """np.tanh({V}.sum()) | {R}.shape[0] * 0.5 | {C}.mean() | np.tanh({V} @ {V})
        | {V}.max(initial=0.5)
        | np.tanh({V}[1:].sum()) | np.tanh({R}.ravel().sum()) | rng.random()
        | np.tanh({R}.sum())""",
    "M": """np.tanh({R}.T @ {R}) | {M} * {S} | {M} + {M}.T | np.outer({C}, {C})""",
}
ENDS = """{V}[1:] - {V}[:-1] | {V}[1:] * 1 | np.diff({R}, axis=0) | {R}[:3] + 0 | {V}[{V} > 0]
        | {R}.ravel() * 2
    | np.concatenate([{V}, {V}]) | {V}[::2] * 2 | np.sort({V}) | {R}.reshape(-1) + 1
        | {R} @ {R}.T | {V}[-2:] * 1"""
WRITES = """w += 0.1 * {M} | w[0] = {C} | w[:, 1] *= {S} | {r}[:, 0] = {V} | x *= 2
        | x[:, 1] = {V} | x[0] += {S}
    | {r}[{R} > 0] = {S} | y += {R} | w[:] = {M} | x[1:] = {r}[:-1] | {r}[-1] = {C}"""


class _Program:
    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.names = {"R": ["x", "y"], "V": ["v"], "C": ["c"], "S": ["s"], "M": ["w"]}
        self.lines = ["v = x[:, 0] + y[:, 1]", "c = w[0] * 1", "s = 0.5"]
        self.ends: list[str] = []

    def filled(self, text: str) -> str:
        for kind, names in self.names.items():
            while f"{{{kind}}}" in text:
                text = text.replace(f"{{{kind}}}", self.draw.choice(names), 1)
        own = [name for name in self.names["R"] if name not in "xy"]
        return text.replace("{r}", self.draw.choice(own or ["y"]))

    def statement(self) -> None:
        number = len(self.lines)
        chance = self.draw.random()
        if chance < 0.2:
            self.lines.append(self.filled(_one_of(self.draw, WRITES)))
        elif chance < 0.35:
            self.ends.append(f"e{number}")
            self.lines.append(f"e{number} = " + self.filled(_one_of(self.draw, ENDS)))
        else:
            kind = self.draw.choices("RVCSM", [6, 4, 2, 2, 1])[0]
            name = f"{kind.lower()}{number}"
            self.lines.append(f"{name} = " + self.filled(_one_of(self.draw, TERMS[kind])))
            self.names[kind].append(name)


def _one_of(draw: random.Random, texts: str) -> str:
    return draw.choice([text.strip() for text in " ".join(texts.split()).split(" | ")])


def sizes(seed: int) -> Case:
    """A function of rows `x` and `y`, weights and a generator, called with one size after the other."""
    program = _Program(seed)
    draw = program.draw
    for _ in range(draw.randint(1, 6)):
        program.statement()
    made = [name for names in program.names.values() for name in names if name not in "xyvcsw"]
    results = [*program.ends, *made[-3:], program.names["V"][-1]]
    text = "def f(x, y, w, rng):\n" + "".join(f"    {line}\n" for line in program.lines)
    text += f"    return {', '.join(results)},\n"
    plain = function_of(text, seed)
    donated = (1,) if draw.random() < 0.3 else ()
    compiled = jt.jit(plain, dynamic=draw.choice(_DYNAMIC), donate_argnums=donated)
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal((max(SIZES), COLUMNS)) for _ in range(2)]
    weights = rng.standard_normal((COLUMNS, COLUMNS))
    order = draw.sample(SIZES, len(SIZES))

    def called(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(x: Any, y: Any, w: Any) -> Any:
            generator, seen, w = np.random.default_rng(seed), [], w.copy()
            for n in (*order, order[0]):
                own_x, own_y = x[:n].copy(), y[:n].copy()
                seen.append(_outcome(function, own_x, own_y, w, generator))
                if isinstance(seen[-1], str):
                    break  # what an error has left is another matter
                seen += [own_x, w.copy(), *([] if donated else [own_y])]
            return [*seen, generator.random()] if not isinstance(seen[-1], str) else seen

        return call

    about = f"# sizes {order}, donated {donated}\n{text}", 1e-8, 10.0
    return Case(called(plain), called(compiled), [*rows, weights], *about)


_DYNAMIC: list[Any] = [{"x": {0: "n"}, "y": {0: "n"}}, {"x": {0: "n"}, "y": {0: "m"}}, "auto"]


def _outcome(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return tuple(np.array(r) for r in function(*args))
    except jt.errors.Refusal:
        raise
    except (ArithmeticError, ValueError, IndexError) as error:
        return next(
            k.__name__ for k in (IndexError, ValueError, ArithmeticError) if isinstance(error, k)
        )
