"""Programs of statements about lengths that are values, elements and places.

Slices with traced bounds, masks, loops over elements, `jt.prange`, stencils, writes at places that are
partly traced, `np.errstate`.

What a program raises counts, too, and of what kind its results are: arrays, NumPy's scalars, Python's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .compare import Case
from .programs import DTYPES, Maker, described, digits, function_of

FUNCTIONS = """
    np.sum({}) np.max({},initial=0) np.sort({}) np.cumsum({}) {}*2 -{} {}[::-1] np.sqrt(np.abs({}))
    np.any({}>1) len({}) {}.mean() np.concatenate([{},{}]) {}+{} np.where({}>0,{},0)
    np.count_nonzero({}) {}.copy() {}@{} {}[1:] np.diff({}) {}.astype('f8')
    np.argsort({},kind='stable') {}.T {}.clip(0,3) np.unique({}) {}[{}>0] np.dot({},{}) {}.std()
    np.all({}==0) np.flip({}) np.prod({}.shape)
""".split()
FUNCTIONS = [f.replace(",", ", ") for f in FUNCTIONS]


class LengthMaker(Maker):
    """A `Maker` with statements of this module; what has a length of its own is a result, no operand."""

    def __init__(self, seed: int, dtypes: list[str]) -> None:
        super().__init__(seed, False, dtypes)
        self.ends: list[str] = []  # variables that statements leave alone

    def statement(self) -> None:
        makers = [
            *((self._part, 4), (self._selected, 4), (self._elements, 5), (self._pairs, 3)),
            *((self._parallel, 2), (self._stencil, 1), (self._places, 6), (self._strict, 2)),
            *((self._searched, 2), (self._structured, 1)),
        ]
        make = self.draw.choices([m for m, _ in makers], [w for _, w in makers])[0]
        if self.draw.random() < 0.3:
            return super().statement()
        for _ in range(4):
            text = make()
            if text and self._try(text):
                if text[0] == "w" and text[1].isdigit():
                    self.ends.append(text.split(" ")[0])
                return None
        return None

    def line(self, rank: int = 1) -> str:
        """A variable that is an array of that rank."""
        return self.one(lambda v: isinstance(v, np.ndarray) and v.ndim == rank)

    def plain(self, rank: int = 1) -> str:
        """An array of numbers that can be written and compared."""
        return self.one(
            lambda v: (
                isinstance(v, np.ndarray)
                and v.ndim == rank
                and v.size > 0
                and v.dtype.kind in "iuf"
                and v.flags.writeable
            )
        )

    def number(self, most: int) -> str:
        """A traced int, nearly always between -most and most."""
        a, draw = self.one(lambda v: isinstance(v, np.ndarray) and v.size > 0), self.draw
        if not a:
            return str(draw.randint(0, most))
        texts = [
            f"np.count_nonzero({a}) % {most + 1}", f"int(np.argmax({a})) % {most + 1}",
            f"-np.count_nonzero({a} == 0) % {most + 1}", f"np.count_nonzero({a}) % {most + 1} - {most}",
        ]  # fmt: skip
        return f"({draw.choice(texts)})"

    def chain(self, start: str) -> str:
        """A variable that is what one to three functions make of a value."""
        name, text = f"w{len(self.ends)}", start
        lines = [f"{name} = {text}"]
        for _ in range(self.draw.randint(0, 3)):
            lines.append(f"{name} = {self.draw.choice(FUNCTIONS).replace('{}', name)}")
        return "\n".join(lines)

    def _part(self) -> str:
        a = self.line(self.draw.choice([1, 1, 2]))
        if not a:
            return ""
        n, draw = self.values[a].shape[0], self.draw
        lo, hi = self.number(n), self.number(n)
        if lo.strip("(-").split(" ")[0] == hi.strip("(-").split(" ")[0]:
            lo = "1"  # x[i - 3 : i] is a window, which has to lie inside
        place = draw.choice(
            [f":{hi}", f"{lo}:", f"{lo}:{hi}", f":{hi}:2", f"-{hi}:", f"{lo}:{hi}:-1", f"1:{hi}"]
        )
        if self.values[a].ndim == 2 and draw.random() < 0.5:
            place = f":, {place}"
        text = f"{a}[{place}]"
        if draw.random() < 0.3 and self.values[a].flags.writeable:
            return f"{text} {draw.choice(['=', '+=', '*='])} {draw.choice(['1', '2', text])}"
        return self.chain(text)

    def _selected(self) -> str:
        a = self.line()
        if not a:
            return ""
        c = self.draw.choice([f"{a} > 1", f"{a} != 0", f"~({a} == 2)", f"np.isfinite({a})"])
        start = self.draw.choice([
            f"{a}[{c}]", f"np.flatnonzero({c})", f"np.nonzero({a})[0]", f"np.unique({a})",
            f"np.extract({c}, {a})", f"np.compress({c}, {a})", f"np.where({c})[0]",
            f"np.arange(np.count_nonzero({c}))", f"np.zeros(np.count_nonzero({c}))",
            f"np.delete({a}, np.argmax({a}))", f"np.trim_zeros({a})", f"np.setdiff1d({a}, [1, 2])",
        ])  # fmt: skip
        return self.chain(start)

    def _elements(self) -> str:
        a, b = self.plain(), self.plain()
        if not a:
            return ""
        n, draw, v = len(self.values[a]), self.draw, self.new()
        m = len(self.values[b])
        start = draw.choice(["0.0", "0", f"{a}[0]", f"{a}[0] * 0"])
        dtype = self.values[a].dtype
        if {"0": dtype != np.int64, "0.0": dtype != np.float64}.get(start):
            start = f"{a}[-1]"  # else how often the loop runs would decide on its dtype
        loop = draw.choice([
            f"for i in range({n}):\n    x = {a}[i]", f"for x in {a}:\n    i = 0",
            f"for i, x in enumerate({a}):\n    pass",
            f"for i in range({n} - 1, -1, -1):\n    x = {a}[i]",
            f"for x, i in zip({a}, range({n})):\n    pass",
            f"for i in range({self.number(n)}):\n    x = {a}[i]",
        ])  # fmt: skip
        step = draw.choice([
            f"{v} += x", f"if x > {v}:\n        {v} = x * 1", f"{v} = {v} + x * x",
            f"if x > 1:\n        {v} += x\n    else:\n        {v} -= 1",
            f"if x < 0:\n        continue\n    {v} += 1", f"if x > 3:\n        break\n    {v} += x",
            f"{b}[i % {m}] += 1\n    {v} += {b}[(i + 1) % {m}]", f"{b}[i % {m}] = x\n    {v} += 1",
            f"{v} = max({v}, x)", f"for j in range(i):\n        {v} += {a}[j % {n}]",
        ])  # fmt: skip
        return f"{v} = {start}\n{loop}\n    {step}"

    def _searched(self) -> str:
        a, v = self.plain(), self.new()
        if not a:
            return ""
        n = len(self.values[a])
        return self.draw.choice([
            f"{v} = 0\nwhile {v} < {n} and {a}[{v}] < 2:\n    {v} += 1",
            f"{v} = 0\nfor i in range({n}):\n    if {a}[i] > 1:\n        {v} = i\n        break\n"
            f"else:\n    {v} = -1",
            f"{v} = {n}\nwhile {v} > 0:\n    {v} -= 1\n    if {a}[{v}] == 0:\n        break",
            f"for i in range(1, {n}):\n    j = i\n    while j > 0 and {a}[j - 1] > {a}[j]:\n"
            f"        {a}[j - 1], {a}[j] = {a}[j], {a}[j - 1]\n        j -= 1",
        ])  # fmt: skip

    def _pairs(self) -> str:
        a, b = self.plain(2), self.plain(2)
        if not a:
            return ""
        (n, m), (p, q), draw = self.values[a].shape, self.values[b].shape, self.draw
        i, j, k, left = f"i % {p}", f"j % {q}", f"(i + 1) % {n}", f"(j + {m - 1}) % {m}"
        step = draw.choice([
            f"{b}[{i}, {j}] = {a}[i, j]", f"{b}[{i}, {j}] += {a}[{k}, j]",
            f"{a}[i, j] = {a}[i, {left}] + 1",
            f"{a}[i, j] = ({a}[{k}, j] + {a}[i, {left}]) // 2",
            f"if {a}[i, j] > {b}[{i}, {j}]:\n            {a}[i, j] = {b}[{i}, {j}]",
            f"{a}[i, j], {a}[{k}, j] = {a}[{k}, j], {a}[i, j]",
        ])  # fmt: skip
        inner = draw.choice([f"range({m})", f"range({m} - 1, -1, -1)", f"range(min(i + 1, {m}))"])
        return f"for i in range({n}):\n    for j in {inner}:\n        {step}"

    def _parallel(self) -> str:
        a, b, v = self.plain(), self.plain(self.draw.choice([1, 2])), self.new()
        if not a or not b:
            return ""
        n = min(len(self.values[a]), len(self.values[b]))
        step = self.draw.choice([
            f"{a}[i] = {a}[i] + 1", f"{a}[i] *= 2", f"{v}[i] = {b}[i].sum()", f"{v}[i] = {a}[i] * i",
            f"{v}[i] = 1 if {a}[i] > 2 else 0",
        ])  # fmt: skip
        return f"{v} = np.zeros({n})\nfor i in jt.prange({n}):\n    {step}"

    def _stencil(self) -> str:
        a, v, draw = self.line(), self.new(), self.draw
        body = draw.choice(["a[-1] + a[1]", "a[0] - a[-2]", "(a[-1] + 2 * a[0] + a[1]) / 4"])
        mode = draw.choice(["'edge'", "'wrap'"])
        return f"{v} = jt.stencil({mode})(lambda a: {body})({a})" if a else ""

    def _places(self) -> str:
        """A write at a place of traced numbers, index arrays and slices."""
        a = self.one(
            lambda v: isinstance(v, np.ndarray) and v.ndim >= 2 and v.flags.writeable and v.size > 0
        )
        if not a:
            return ""
        draw, parts = self.draw, []
        picks = None
        for n in self.values[a].shape:
            kind = draw.choice(["number", "number", "slice", "step", "all", "array", "counter"])
            if kind == "number":
                parts.append(f"{self.number(n - 1)}")
            elif kind == "counter":
                parts.append(f"i % {n}")
            elif kind == "array":
                size = len(picks) if picks else draw.choice([1, 2, 3])
                picks = [draw.randrange(-n, n) for _ in range(size)]
                parts.append(f"np.array({picks})")
            else:
                texts = {"slice": ["1:-1", ":2", "1:", f":{self.number(n)}"], "all": [":"]}
                parts.append(draw.choice(texts.get(kind, ["::2", "::-1", "-1::-2"])))
            if draw.random() < 0.2:
                break
        place = f"{a}[{', '.join(parts)}]"
        write = draw.choice([
            f"{place} += 1", f"{place} = 2", f"{place} *= 2", f"{place} = {place} + 1",
            f"{place} -= {a}[0, 0]", f"{place} = {place} // 2",
        ])  # fmt: skip
        if draw.random() < 0.3:
            return f"i = {draw.randint(0, 5)}\n{write}"
        return f"for i in range({draw.choice([1, 3, 30])}):\n    {write}"

    def _strict(self) -> str:
        """Errors of floats raise, which a handler may take."""
        a, b, v = self.line(), self.line(), self.new()
        if not a or not b:
            return ""
        what = self.draw.choice(["divide", "invalid", "over", "all"])
        text = self.draw.choice([f"{a} / {b}", f"np.log({a})", f"np.exp({a} * 9)", f"np.sqrt({a})"])
        return f"with np.errstate({what}='raise'):\n    {v} = {text}"

    def _structured(self) -> str:
        a, v = self.line(), self.new()
        return f"{v} = {{'x': {a}, 'y': ({a}.sum(), 1)}}['y'][0]" if a else ""


def lengths(seed: int) -> Case:
    """A function whose results are named, of any kind."""
    draw = random.Random(seed)
    dtypes = draw.choice([DTYPES, ["f8"], ["f4", "f8", "i8"], ["i4", "f2"], ["f8", "i8"]])
    maker = LengthMaker(seed, dtypes)
    for _ in range(draw.randint(1, 3)):
        maker.argument()
    for _ in range(draw.randint(1, 7)):
        maker.statement()
    chosen = draw.sample(maker.names, min(len(maker.names), draw.randint(1, 2)))
    results = [*maker.ends, *chosen, maker.names[-1]]
    named = ", ".join(f"'{k}{r}': {r}" for k, r in enumerate(results))
    text = f"def f({', '.join('abcd'[: len(maker.arguments)])}):\n" + "".join(
        f"    {line}\n" for line in [*maker.lines, f"return {{{named}}}"]
    )
    plain = function_of(text, seed)
    compiled = jt.jit(plain)

    looping = "    for " in text or "    while " in text

    def kinds(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            try:
                results = function(*args)
            except jt.errors.Refusal:
                raise
            except (ArithmeticError, ValueError, IndexError) as error:
                return [_family(error)]
            return [*results.values(), *(_kind(r, looping) for r in results.values())]

        return call

    about = described(maker, text), digits(maker), maker.scale
    return Case(kinds(plain), kinds(compiled), maker.arguments, *about)


def _family(error: Exception) -> str:
    kinds = (FloatingPointError, OverflowError, ZeroDivisionError, IndexError, ValueError)
    return next((k.__name__ for k in kinds if isinstance(error, k)), type(error).__name__)


def _kind(value: Any, looping: bool) -> str:
    """What a result is. Whose number one is that a loop, or a branch in it, computed may depend on
    values: `v = 0.0` is Python's until NumPy's are added."""
    if isinstance(value, list):
        return f"list of {sorted({_kind(v, looping) for v in value})}"
    name = type(value).__name__
    return {"float": "float64", "int": "int64", "bool": "bool"}.get(name, name) if looping else name
