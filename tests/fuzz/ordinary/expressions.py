"""Expressions of a type that is asked for, over the variables of a scope.

Types are words: int, float, bool are Python's; f8, f4, i8, i4, u1 are NumPy's scalars of that
dtype; f8[] and f8[,] arrays. A variable keeps its type:
no value is an int or a float depending on a branch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

PYTHON = ("int", "float", "bool")
WHOLE = ("i8", "i4", "u1")
REAL = ("f8", "f4")
SCALARS = (*PYTHON, *WHOLE, *REAL)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
LONG = 12  # characters of a name that is still written twice


class Function(NamedTuple):
    """A helper: the types of its parameters, of those with a default, and of its result."""

    name: str
    required: tuple[str, ...]
    optional: tuple[tuple[str, str], ...]  # name and type
    result: str


class Scope:
    """What names mean where an expression stands; `indices`: which counters fit into which arrays."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.types: dict[str, str] = dict(outer.types) if outer else {}
        self.fixed: set[str] = set(outer.fixed) if outer else set()  # not to be assigned to
        self.indices: dict[str, set[str]] = dict(outer.indices) if outer else {}
        self.functions: list[Function] = list(outer.functions) if outer else []
        self.generator = outer.generator if outer else ""  # the name of one of random numbers

    def of(self, *types: str) -> list[str]:
        return [name for name, t in self.types.items() if t in types]

    def arrays(self, dtypes: tuple[str, ...] = (*WHOLE, *REAL), ranks: str = "[] [,]") -> list[str]:
        return self.of(*(d + r for d in dtypes for r in ranks.split()))


class Expressions:
    """Draws them. What raises in Python (an index beyond the end, a divisor of zero) is drawn seldom."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def chance(self, p: float) -> bool:
        return self.draw.random() < p

    def value(self, scope: Scope, t: str, depth: int = 2) -> str:
        """The text of an expression that is exactly of type `t`."""
        if depth <= 0 or self.chance(0.2):
            return self.leaf(scope, t)
        if self.chance(0.2) and (called := self._called(scope, t, depth)):
            return called
        if self.chance(0.12):
            return self._either(scope, t, depth)
        make: dict[str, Callable[[Scope, int], str]] = {
            "int": self._int,
            "float": self._float,
            "bool": self._bool,
        }
        return make[t](scope, depth - 1) if t in make else self._scalar(scope, t, depth - 1)

    def leaf(self, scope: Scope, t: str) -> str:
        draw, names = self.draw, scope.of(t)
        if names and self.chance(0.75):
            return draw.choice(names)
        if t == "int":
            arrays = scope.arrays()
            if arrays and self.chance(0.2):
                a = draw.choice(arrays)
                return draw.choice([f"len({a})", f"{a}.shape[0]", f"{a}.size"])
            return str(draw.choice([0, 1, 2, 3, 4, 5, 7, 10, -1, -2, -3]))
        if t == "float":
            return draw.choice(
                ["0.0", "1.0", "0.5", "2.0", "-1.5", "0.25", "3.0", "1e-3", "math.pi"]
            )
        if t == "bool":
            return draw.choice(["True", "False"])
        arrays = scope.arrays((t,))
        if arrays:
            return self.element(scope, draw.choice(arrays))
        return f"np.{NAMES[t]}({draw.randint(0, 5)})"

    # Elements.

    def element(self, scope: Scope, a: str) -> str:
        places = [self.index(scope, a, axis) for axis in range(1 + ("," in scope.types[a]))]
        if len(places) == 2 and self.chance(0.15):
            return f"{a}[{places[0]}][{places[1]}]"
        return f"{a}[{', '.join(places)}]"

    def index(self, scope: Scope, a: str, axis: int) -> str:
        draw, length = self.draw, f"len({a})" if axis == 0 else f"{a}.shape[{axis}]"
        fitting = [n for n, into in scope.indices.items() if f"{a}.{axis}" in into]
        if fitting and self.chance(0.75):
            i = draw.choice(fitting)
            return draw.choice(
                [
                    i,
                    i,
                    i,
                    i,
                    f"{i} - 1",
                    f"({i} + 1) % {length}",
                    f"-{i} - 1",
                    f"{length} - 1 - {i}",
                ]
            )
        others = scope.of("int")
        if others and self.chance(0.6):
            i = draw.choice(others)
            return i if self.chance(0.04) else f"{i} % {length}"
        return draw.choice(["0", "-1", "0", "1" if self.chance(0.3) else "0"])

    # Any type.

    def _called(self, scope: Scope, t: str, depth: int) -> str:
        helpers = [f for f in scope.functions if f.result == t]
        return self.call(scope, self.draw.choice(helpers), depth) if helpers else ""

    def call(self, scope: Scope, f: Function, depth: int = 1) -> str:
        given = [self.value(scope, p, depth - 1) for p in f.required]
        for name, p in f.optional:
            if self.chance(0.4):
                given.append(f"{name}={self.value(scope, p, depth - 1)}")
        return f"{f.name}({', '.join(given)})"

    def _either(self, scope: Scope, t: str, depth: int) -> str:
        a, b = self.value(scope, t, depth - 1), self.value(scope, t, depth - 1)
        if self.chance(0.5):
            return f"({a} if {self.test(scope, depth - 1)} else {b})"
        return f"({a} {self.draw.choice(['or', 'and'])} {b})"

    def test(self, scope: Scope, depth: int = 1) -> str:
        """A condition: any truth, NumPy's too."""
        draw = self.draw
        kind = draw.choice(["compare", "compare", "compare", "chain", "logic", "truth", "bool"])
        if kind == "bool" or depth <= 0:
            return self.value(scope, "bool", depth)
        if kind == "truth":
            t = draw.choice(["int", "float", *(t for t in (*WHOLE, *REAL) if scope.arrays((t,)))])
            return draw.choice(["", "not "]) + self.leaf(scope, t)
        if kind == "logic":
            a, b = self.test(scope, depth - 1), self.test(scope, depth - 1)
            return draw.choice([f"({a} and {b})", f"({a} or {b})", f"(not ({a}))"])
        t = draw.choice(["int", "float", *(t for t in (*WHOLE, *REAL) if scope.arrays((t,)))])
        other = draw.choice(["int", "float"]) if t not in ("u1", "i4") else "int"
        a, b = self.value(scope, t, depth - 1), self.value(scope, other, 0)
        if kind == "chain":
            first, second = draw.choice(["<", "<="]), draw.choice(["<", "<=", "!="])
            return f"({self.leaf(scope, other)} {first} {a} {second} {b})"
        return f"({a} {draw.choice(COMPARISONS)} {b})"

    # Python's numbers.

    def _int(self, scope: Scope, depth: int) -> str:
        draw, a = self.draw, self.value(scope, "int", depth)
        b, small = self.leaf(scope, "int"), draw.choice(["2", "3", "4", "5", "7", "8"])
        x = self.value(scope, "float", min(depth, 1))
        q = self.value(scope, "bool", min(depth, 1))
        forms = [
            *(f"({a} {o} {b})" for o in draw.sample(["+", "-", "*", "&", "|", "^"], 3)),
            f"({a} // {small})", f"({a} % {small})", f"({a} // -{small})", f"({a} % -{small})",
            f"({a} // ({b} or 1))", f"({a} % (abs({b}) + 1))",
            f"({a} >> ({b} & 3))", f"({a} << ({b} & 3))", f"(-{a})", f"(~{a})", f"abs({a})",
            f"min({a}, {b})", f"max({a}, {b}, {small})",
            f"divmod({a}, {small})[{draw.randint(0, 1)}]",
            f"({b}) ** {draw.choice([0, 1, 2, 3])}", f"({a} & 1)", f"(({a} >> 1) & 5)",
            f"int({q})", f"({q} + {q})", f"({a} + {q})", f"math.gcd({a}, {b})",
            f"math.isqrt(abs({a}))",
            f"int({bounded(x)})", f"round({bounded(x)})", f"math.floor({bounded(x)})",
            f"math.ceil({bounded(x)})", f"({b}).bit_length()", f"int({a})", f"pow({b}, 2)",
            f"({b} // 0)" if self.chance(0.02) else a,
        ]  # fmt: skip
        if depth > 0 and self.chance(0.15):
            forms = self._folds(scope, "int")
        if scope.arrays() and self.chance(0.1):
            t = scope.types[draw.choice(scope.arrays())][:2]
            e = self.leaf(scope, t)
            e = e if t in WHOLE else bounded(f"float({e})")
            forms = [f"int({e})", f"math.floor({e})"]
        return draw.choice(forms)

    def _float(self, scope: Scope, depth: int) -> str:
        draw, a = self.draw, self.value(scope, "float", depth)
        b, n = self.leaf(scope, "float"), self.leaf(scope, "int")
        forms = [
            *(f"({a} {o} {b})" for o in draw.sample(["+", "-", "*"], 2)),
            *(f"({a} {o} {n})" for o in draw.sample(["+", "-", "*"], 1)),
            f"({n} {draw.choice('+-*')} {a})",
            f"({a} / {draw.choice(['2', '4.0', '3', '-8.0'])})",
            f"({n} / {draw.choice([2, 3, 8])})",
            f"({a} / (abs({b}) + 1))", f"({a} // {draw.choice(['2', '0.5', '-1.5'])})",
            f"({a} % {draw.choice(['2', '0.75', '-1.5'])})", f"(-{a})", f"abs({a})", f"float({n})",
            f"min({a}, {b})", f"max({a}, {b})", f"round({a}, {draw.randint(1, 3)})", f"({b} ** 2)",
            f"(abs({a}) ** 0.5)", f"math.sqrt(abs({a}))", f"math.sin({a})", f"math.cos({b})",
            f"math.tanh({a})", f"math.exp(min({a}, 3.0))", f"math.log(abs({a}) + 1)",
            f"math.hypot({a}, {b})",
            f"math.atan2({a}, {b})", f"math.fabs({a})", f"math.copysign({a}, {b})",
            f"math.fmod({a}, 2.5)",
            f"divmod({a}, 1.5)[{draw.randint(0, 1)}]", f"math.pow(abs({b}), 1.5)", f"float({a})",
            f"math.degrees({b})", f"math.sqrt({a})" if self.chance(0.05) else b,
            f"({a} / {n})" if self.chance(0.04) else b,
        ]  # fmt: skip
        if scope.generator and self.chance(0.15):
            g = scope.generator
            forms = [
                f"{g}.random()",
                f"{g}.uniform({b}, {b} + 1)",
                f"{g}.normal()",
                f"{g}.standard_normal()",
            ]
        if scope.arrays(REAL) and self.chance(0.12):
            t = scope.types[draw.choice(scope.arrays(REAL))][:2]
            forms = [f"float({self.value(scope, t, depth)})", f"math.sin({self.leaf(scope, t)})"]
        if depth > 0 and self.chance(0.1):
            forms = self._folds(scope, "float")
        return draw.choice(forms)

    def _bool(self, scope: Scope, depth: int) -> str:
        draw, t = self.draw, self.draw.choice(["int", "float"])
        a, b = self.value(scope, t, depth), self.leaf(scope, t)
        joined = draw.choice(["and", "or", "^", "==", "!="])
        forms = [
            *(f"({a} {o} {b})" for o in draw.sample(COMPARISONS, 3)),
            f"({b} {draw.choice(['<', '<='])} {a} {draw.choice(['<', '<='])} {self.leaf(scope, t)})",
            f"(not {self.value(scope, 'bool', depth)})", f"bool({a})",
            f"({a} {draw.choice(['in', 'not in'])} (1, 2, 3))",
            f"({self.value(scope, 'bool', depth)} {joined} {self.leaf(scope, 'bool')})",
            f"bool({self.test(scope, depth)})",
            f"isinstance({b}, {draw.choice(['int', 'float', '(int, float)'])})",
            f"math.isfinite({b})",
        ]  # fmt: skip
        if scope.arrays() and self.chance(0.15):
            x = draw.choice(scope.arrays(ranks="[]") or scope.arrays())
            items = x if scope.types[x].endswith("[]") else f"{x}[0]"
            return f"{draw.choice(['any', 'all'])}({draw.choice(['v', 'v > 1'])} for v in {items})"
        return draw.choice(forms)

    def _folds(self, scope: Scope, t: str) -> list[str]:
        """Comprehensions and generator expressions, folded to a Python number."""
        inner = Scope(scope)
        inner.types["k"] = "int"
        inner.fixed.add("k")
        n = self.draw.choice(["3", "4", f"abs({self.leaf(scope, 'int')}) % 6"])
        e, test = self.value(inner, t, 1), self.test(inner, 1)
        zero = "0" if t == "int" else "0.0"
        return [
            f"sum(({e} for k in range({n})), {zero})",
            f"sum([{e} for k in range({n}) if {test}], {zero})",
            f"max([{e} for k in range(1 + {n})])",
            f"min({e} for k in range(1, 4))",
        ]

    # NumPy's scalars.

    def _scalar(self, scope: Scope, t: str, depth: int) -> str:
        draw, a, b = self.draw, self.value(scope, t, depth), self.leaf(scope, t)
        whole = t in WHOLE
        n = draw.choice(["1", "2", "3"]) if t in ("u1", "i4") else self.leaf(scope, "int")
        x = n if whole else draw.choice([self.leaf(scope, "float"), n])
        forms = [
            *(f"({a} {o} {b})" for o in draw.sample(["+", "-", "*"], 2)),
            *(f"({a} {o} {x})" for o in draw.sample(["+", "-", "*"], 2)),
            f"({x} {draw.choice('+-*')} {a})", f"abs({a})", f"min({a}, {b})", f"max({a}, {b})",
            f"({a} // {draw.choice([2, 3])})", f"({a} % {draw.choice([2, 3, 5])})", f"({b} ** 2)",
            f"np.maximum({a}, {b})", f"np.{NAMES[t]}({n})", f"np.minimum({b}, {x})",
        ]  # fmt: skip
        if t != "u1":
            forms += [f"(-{a})"]
        if whole:
            forms += [f"({a} {draw.choice('&|^')} {b})", f"({a} >> 1)", f"({b} << 2)"]
        else:
            forms += [f"({a} / 2)", f"np.sqrt(abs({a}))", f"np.sin({a})", f"np.exp(min({a}, {b}) / 9)",
                      f"np.where({a} > {b}, {a}, {b})[()]", f"({a} / {b})"]  # fmt: skip
        arrays = scope.arrays((t,))
        if arrays and self.chance(0.35):
            c = draw.choice(arrays)
            forms = [self.element(scope, c), f"{c}.max()", f"{c}.min()"]
            forms += [f"{c}.sum()", f"np.sum({c})"] if t in ("i8", "f8", "f4") else []
            forms += [f"{c}.mean()"] if t in REAL else []
        return draw.choice(forms)


NAMES = {"f8": "float64", "f4": "float32", "i8": "int64", "i4": "int32", "u1": "uint8"}


def bounded(x: str) -> str:
    """A float that surely fits into an int; most of what is rounded does."""
    return f"max(min({x}, 1e6), -1e6)" if len(x) > LONG else x
