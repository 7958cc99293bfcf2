"""Whole programs: helpers, classes, a function that is compiled, and three sets of arguments for it."""

from __future__ import annotations

import random

from .expressions import NAMES, Function, Scope
from .statements import Statements, indented

HEAD = """import dataclasses
import math
import numpy as np


class Oops(ValueError):
    pass
"""
LETTERS = "abcdxyzuv"


class Program(Statements):
    """Draws one. Its text has `main` and `arguments(n)`: 0 and 1 are of the same types, 2 of others."""

    def __init__(self, seed: int) -> None:
        super().__init__(random.Random(seed))
        self.text = [HEAD]
        self.lengths = [3, 2]  # of the axes of the argument that is being written
        self.shapes: list[list[int]] = []  # of the first arguments
        self.at = 0
        self.scope = Scope()
        for name in ("K", "LIMIT"):
            t = self.draw.choice(["int", "float"])
            self.text.append(f"{name} = {self.leaf(Scope(), t)}")
            self.scope.types[name] = t
            self.scope.fixed.add(name)
        for _ in range(self.draw.choice([0, 0, 1, 2])):
            self._helper()
        self.classes: dict[str, tuple[dict[str, str], list[Function]]] = {}
        for _ in range(self.draw.choice([0, 0, 0, 1, 1, 2])):
            self._class()
        self._main()

    # Functions.

    def _body_of(self, scope: Scope, size: int, result: str, early: bool = True) -> list[str]:
        self.trips = 6  # it may be called in a loop
        lines = self.block(scope, size, 2, result=result if early else "")
        return indented([*lines, f"return {self._small(scope, result, self.value(scope, result))}"])

    def _helper(self) -> None:
        draw, name = self.draw, self.new("h")
        result = draw.choice(["int", "float", "bool", "float"])
        required = tuple(draw.choice(["int", "float", "bool"]) for _ in range(draw.randint(1, 2)))
        optional = [("scale", draw.choice(["int", "float"]))] if self.chance(0.4) else []
        if self.chance(0.15) and result != "bool":
            self._recursive(name, result)
            return
        scope = Scope(self.scope)
        scope.types |= dict(zip("pqr", required, strict=False)) | dict(optional)
        heads = [*"pqr"[: len(required)], *(f"{n}={self.leaf(Scope(), t)}" for n, t in optional)]
        inner: list[str] = []
        if self.chance(0.25):
            inner = self._closure(scope)
        body = self._body_of(scope, draw.randint(1, 3), result)
        self.text += ["", "", f"def {name}({', '.join(heads)}):", *indented(inner), *body]
        self.scope.functions.append(Function(name, required, tuple(optional), result))

    def _recursive(self, name: str, t: str) -> None:
        scope = Scope()
        scope.types |= {"n": "int", "total": t}
        step = self._small(scope, t, self.value(scope, t, 1))
        self.text += ["", "", f"def {name}_(n, total):", "    if n <= 0:", "        return total"]
        self.text += [f"    return {name}_(n - 1, {f'({step}) % 1009' if t == 'int' else step})"]
        self.text += ["", "", f"def {name}(n, total):", f"    return {name}_(n % 7, total)"]
        self.scope.functions.append(Function(name, ("int", t), (), t))

    def _closure(self, scope: Scope) -> list[str]:
        """An inner function that changes a variable of the function around it."""
        draw, name, t = self.draw, self.new("g"), self.draw.choice(["int", "float"])
        state = self.target(scope, t)
        lines = []
        if not state or state in self.scope.types or "." in state:
            state = self.new()
            lines = [f"{state} = {self.leaf(Scope(), t)}"]
            scope.types[state] = t
        inner = Scope(scope)
        inner.types["t"] = "float"
        inner.functions = [f for f in inner.functions if "." not in f.name]
        around, self.trips = self.trips, 6
        change = self._small(inner, t, f"{state} + {self.value(inner, t, 1)}")
        lines += [f"def {name}(t):"]
        if self.chance(0.7):
            lines += [f"    nonlocal {state}", f"    {state} = {change}"]
        result = draw.choice(["float", "int"])
        lines += [f"    return {self._small(inner, result, self.value(inner, result, 1))}"]
        self.trips = around
        scope.functions.append(Function(name, ("float",), (), result))
        return lines

    # Classes.

    def _class(self) -> None:
        draw, name = self.draw, self.new("Box")
        fields = {f"{stem}{k}": t for k, stem in enumerate("abc"[: draw.randint(1, 3)])
                  for t in [draw.choice(["int", "float", "float", "bool", "f8[]", "i8[]"])]}  # fmt: skip
        dataclass = self.chance(0.3)
        lines = ["", "", *(["@dataclasses.dataclass"] if dataclass else []), f"class {name}:"]
        if dataclass:
            lines += [f"    {f}: {t if '[' not in t else 'np.ndarray'}" for f, t in fields.items()]
        else:
            lines += [
                f"    def __init__(self, {', '.join(fields)}):",
                *(f"        self.{f} = {f}" for f in fields),
            ]
        methods: list[Function] = []
        for _ in range(draw.randint(1, 3)):
            scope = Scope(self.scope)
            scope.types |= {f"self.{f}": t for f, t in fields.items()}
            scope.functions += [
                m._replace(name=f"self.{m.name}") for m in methods if " " not in m.result
            ]
            method = draw.choice(["step", "update", "peek", "value"]) + str(len(methods))
            result = draw.choice(["int", "float"])
            if self.chance(0.2):
                self.trips = 6
                lines += ["", "    @property", f"    def p{len(methods)}(self):"]
                lines += [
                    f"        return {self._small(scope, result, self.value(scope, result, 1))}"
                ]
                fields_of_property = (f"p{len(methods)}", result)
                methods.append(Function(fields_of_property[0], (), (), "property " + result))
                continue
            scope.types["t"] = "float"
            lines += ["", f"    def {method}(self, t):"]
            lines += indented(self._body_of(scope, draw.randint(1, 3), result))
            methods.append(Function(method, ("float",), (), result))
        self.text += lines
        self.classes[name] = (fields, methods)

    def _know(self, scope: Scope, name: str, kind: str) -> None:
        """A variable that is an object: its attributes are variables, its methods functions."""
        fields, methods = self.classes[kind]
        scope.types |= {f"{name}.{f}": t for f, t in fields.items()}
        for m in methods:
            if m.result.startswith("property "):
                scope.types[f"{name}.{m.name}"] = m.result.split()[1]
                scope.fixed.add(f"{name}.{m.name}")
            else:
                scope.functions.append(m._replace(name=f"{name}.{m.name}"))

    # The function itself, and what it is called with.

    def _main(self) -> None:
        draw, scope = self.draw, Scope(self.scope)
        names, given = [], []
        kinds = ["f8[]", "f8[]", "f8[]", "f8[,]", "i8[]", "i8[]", "i4[]", "u1[]", "f4[]", "i8[,]"]
        kinds += ["int", "int", "float", "float", "bool", *self.classes, *self.classes]
        for name in LETTERS[: draw.randint(1, 4)]:
            kind = draw.choice(kinds)
            names.append(name)
            given.append(kind)
            if kind in self.classes:
                self._know(scope, name, kind)
            else:
                scope.types[name] = kind
        if self.chance(0.15):
            names.append("rng")
            given.append("rng")
            scope.generator = "rng"
        inner: list[str] = []
        if self.chance(0.2):
            inner = self._closure(scope)
        for kind, (fields, _) in self.classes.items():
            if self.chance(0.3):
                own = self.new("o")
                values = ", ".join(self._literal(t, 0) for t in fields.values())
                inner.append(f"{own} = {kind}({values})")
                self._know(scope, own, kind)
        result = draw.choice(["int", "float", "bool", "float"])
        self.trips = 1
        body = self.block(scope, draw.randint(2, 7), 3, result=result if self.chance(0.5) else "")
        last = self.value(scope, result)
        if not any(line.strip().startswith("return ") for line in body):
            extra = [n for n in scope.types if n not in self.scope.types and self.chance(0.25)]
            if extra:
                last = f"{last}, {', '.join(extra)}"
        lines = [f"def main({', '.join(names)}):", *indented([*inner, *body, f"return {last}"])]
        self.text += ["", "", *lines, "", "", "def arguments(n):", "    if n == 0:"]
        for n in range(3):
            values = [self._argument(kind, n) for kind in given]
            self.text.append(
                f"        return [{', '.join(values)}]"
                if n < 2
                else f"    return [{', '.join(values)}]"
            )
            if n == 0:
                self.text.append("    if n == 1:")

    def _argument(self, kind: str, n: int) -> str:
        if n == 0:
            lengths = [self.draw.choice([1, 2, 3, 4, 5, 6, 8]), self.draw.choice([1, 2, 3, 4])]
            if self.chance(0.05):
                lengths[0] = 0
            self.shapes.append(lengths)
        self.lengths = self.shapes[self.at % len(self.shapes)] if n else self.shapes[-1]
        self.at += n > 0
        if kind == "rng":
            return f"np.random.default_rng({self.draw.randrange(1000)})"
        if kind in self.classes:
            fields, _ = self.classes[kind]
            return f"{kind}({', '.join(self._literal(t, n) for t in fields.values())})"
        return self._literal(kind, n)

    def _literal(self, t: str, n: int) -> str:
        draw = self.draw
        if t == "int":
            return str(draw.choice([0, 1, 2, 3, 5, 8, 13, 40, -1, -4, -7, 100]))
        if t == "float":
            number = draw.choice([0.0, 1.0, 0.5, -2.5, 3.75, 7.0, 1e-3, -0.1, 100.0])
            return f"np.float64({number})" if n == 2 and self.chance(0.1) else str(number)
        if t == "bool":
            return draw.choice(["True", "False"])
        shape = [k + (1 if n == 2 else 0) for k in self.lengths[: 1 + ("," in t)]]
        size = 1
        for k in shape:
            size *= k
        whole = t[:2] in ("i8", "i4", "u1")
        low = 0 if t.startswith("u") else -9
        numbers = [
            draw.randint(low, 20) if whole else draw.randint(-32, 48) / 8 for _ in range(size)
        ]
        text = f"np.array({numbers}, dtype=np.{NAMES[t[:2]]})"
        text += f".reshape({', '.join(map(str, shape))})" if len(shape) > 1 else ""
        if len(shape) == 1 and self.chance(0.1):
            text += "[::-1]"
        return text


def program(seed: int) -> str:
    return "\n".join(Program(seed).text) + "\n"
