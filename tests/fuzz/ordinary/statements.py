"""Statements as people write them: loops over elements, branches, writes, calls of methods."""

from __future__ import annotations

import random
from collections.abc import Callable

from .expressions import NAMES, PYTHON, REAL, SCALARS, WHOLE, Expressions, Scope

DEEPEST = 3  # nested loops and branches
TRIPS = 600  # that nested loops may make together


class Statements(Expressions):
    """Draws blocks of lines. The variables that a block defines are known in its scope only, unless
    all ways through define them."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__(draw)
        self.count = 0
        self.trips = 1  # of the loops around

    def new(self, stem: str = "v") -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def block(
        self, scope: Scope, size: int, depth: int, loop: bool = False, result: str = ""
    ) -> list[str]:
        """`size` statements; `loop`: `break` and `continue` may stand here; `result`: the type of
        early returns, if there may be any."""
        lines: list[str] = []
        for _ in range(size):
            lines += self.statement(scope, depth, loop, result)
        return lines or ["pass"]

    def statement(self, scope: Scope, depth: int, loop: bool, result: str) -> list[str]:
        simple: list[tuple[Callable[[], list[str]], int]] = [
            (lambda: self._define(scope), 3),
            (lambda: self._assign(scope), 3),
            (lambda: self._augment(scope), 5),
            (lambda: self._swap(scope), 1),
            (lambda: self._write(scope), 6),
            (lambda: self._alias(scope), 1),
            (lambda: self._array(scope), 1),
            (lambda: self._check(scope), 1),
            (lambda: self._method(scope), 2),
            (lambda: self._shuffle(scope), 1),
        ]
        nested: list[tuple[Callable[[], list[str]], int]] = [
            (lambda: self._if(scope, depth, loop, result), 5),
            (lambda: self._for(scope, depth, result), 6),
            (lambda: self._while(scope, depth, result), 2),
            (lambda: self._try(scope, depth), 1),
            (lambda: self._match(scope, depth), 1),
        ]
        choices = simple + (nested if depth > 0 else [])
        return self.draw.choices([m for m, _ in choices], [w for _, w in choices])[0]()

    # One line.

    def _small(self, scope: Scope, t: str, text: str) -> str:
        """In loops what multiplies would grow without end."""
        if t == "int" and self.trips > 1 and any(sign in text for sign in ("*", "<<", "pow")):
            return self.draw.choice(
                [f"({text}) % 1009", f"({text}) & 0xFFFF", f"({text}) % 97 - 40"]
            )
        return text

    def _define(self, scope: Scope) -> list[str]:
        t = self.draw.choice(
            [*PYTHON, *PYTHON, *sorted({scope.types[a][:2] for a in scope.arrays()})]
        )
        text, name = self._small(scope, t, self.value(scope, t)), self.new()
        scope.types[name] = t
        return [f"{name} = {text}"]

    def target(self, scope: Scope, *types: str) -> str:
        names = [n for n in scope.of(*types) if n not in scope.fixed]
        return self.draw.choice(names) if names else ""

    def _assign(self, scope: Scope) -> list[str]:
        name = self.target(scope, *SCALARS)
        if not name:
            return self._define(scope)
        t = scope.types[name]
        return [f"{name} = {self._small(scope, t, self.value(scope, t))}"]

    def _augment(self, scope: Scope) -> list[str]:
        name = self.target(scope, "int", "float", *WHOLE, *REAL)
        if not name:
            return self._define(scope)
        t = scope.types[name]
        value = self.value(scope, t)
        if t == "int":
            sign = self.draw.choice("+= -= += -= ^= |= &= //= %= *= >>= <<=".split())
            if sign in ("//=", "%="):
                value = self.draw.choice(["2", "3", "7", "-5"])
            elif sign in (">>=", "<<="):
                value = self.draw.choice(["1", "2"])
            if sign in ("*=", "<<=") and self.trips > 1:
                return [f"{name} {sign} {value}", f"{name} %= 1009"]
            return [f"{name} {sign} {self._small(scope, t, value)}"]
        signs = (
            "+= -= += *=" if t in ("u1", "i4") else "+= -= += *= /=" if t == "float" else "+= -="
        )
        sign = self.draw.choice(signs.split())
        return [f"{name} {sign} {f'(abs({value}) + 1)' if sign == '/=' else value}"]

    def _swap(self, scope: Scope) -> list[str]:
        draw, t = self.draw, self.draw.choice(["int", "float"])
        names = [n for n in scope.of(t) if n not in scope.fixed]
        if len(names) >= 2 and self.chance(0.5):
            a, b = draw.sample(names, 2)
            other = draw.choice([f"{b}, {a}", f"{b}, {self._small(scope, t, f'{a} + {b}')}"])
            return [f"{a}, {b} = {other}"]
        c, d = self.new(), self.new()
        arrays = [a for a in scope.arrays(ranks="[]") if a not in scope.fixed]
        if arrays and self.chance(0.4):
            x = draw.choice(arrays)
            i, j = self.index(scope, x, 0), self.index(scope, x, 0)
            return [f"{x}[{i}], {x}[{j}] = {x}[{j}], {x}[{i}]"]
        text = f"divmod({self.value(scope, 'int', 1)}, {draw.choice([2, 3, -4])})"
        if t == "float":
            whole = self._small(scope, "int", self.value(scope, "int", 1))
            text = f"{whole}, {self.value(scope, 'float', 1)}"
        scope.types[c], scope.types[d] = "int", t
        return [f"{c}, {d} = {text}"]

    def _write(self, scope: Scope) -> list[str]:
        arrays = [a for a in scope.arrays() if a not in scope.fixed]
        if not arrays:
            return self._array(scope)
        draw, a = self.draw, self.draw.choice(arrays)
        t = scope.types[a][:2]
        value = self.value(scope, t)
        if self.chance(0.3):
            value = self.value(scope, "int" if t in WHOLE else draw.choice(["float", "int"]))
            value = f"({value}) % 50" if t in WHOLE else value
        sign = draw.choice("= = = += -= +=".split() + ([] if t == "u1" else ["*="]))
        if self.chance(0.2):
            place = draw.choice(["1:", ":-1", "::2", ":", "::-1", "-2:"])
            return [f"{a}[{place}] {sign} {value}"]
        return [f"{self.element(scope, a)} {sign} {value}"]

    def _alias(self, scope: Scope) -> list[str]:
        arrays = scope.arrays()
        if not arrays:
            return self._array(scope)
        a, name = self.draw.choice(arrays), self.new("w")
        t = scope.types[a]
        forms = [
            a,
            f"{a}[1:]",
            f"{a}[::-1]",
            f"{a}[::2]",
            f"{a}.copy()",
            f"{a} + 1",
            f"{a} * 2",
            f"-{a}",
        ]
        if "," in t:
            forms += [f"{a}.T", f"{a}[:, ::-1]"]
        text = self.draw.choice(forms)
        scope.types[name] = t
        if "," in t and self.chance(0.5):
            text = self.draw.choice(
                [
                    f"{a}[0]",
                    f"{a}[-1]",
                    f"{a}[:, 0]",
                    f"{a}[{self.index(scope, a, 0)}]",
                    f"{a}.ravel()",
                ]
            )
            scope.types[name] = t[:2] + "[]"
        return [f"{name} = {text}"]

    def _array(self, scope: Scope) -> list[str]:
        draw, name = self.draw, self.new("w")
        t = draw.choice(["f8", "f8", "f8", "i8", "f4", "i4"])
        known = scope.arrays()
        n = draw.choice(
            [
                "3",
                "4",
                "5",
                *(f"len({a})" for a in known[:2]),
                *(f"{a}.shape[0]" for a in known[:1]),
            ]
        )
        if self.chance(0.25) and self.trips == 1:
            scope.types[name] = t + "[,]"
            shape, filled = f"({n}, {draw.randint(1, 3)})", draw.choice(["zeros", "ones"])
            return [f"{name} = np.{filled}({shape}, dtype=np.{NAMES[t]})"]
        scope.types[name] = t + "[]"
        same = [a for a in known if scope.types[a][:2] == t]
        if same and self.chance(0.4):
            a = draw.choice(same)
            scope.types[name] = scope.types[a]
            return [
                f"{name} = np.{draw.choice(['zeros_like', 'ones_like', 'empty_like'])}({a})",
                f"{name}[:] = 1",
            ]
        more = [
            f"np.full({n}, {draw.randint(0, 4)}, dtype=np.{NAMES[t]})",
            f"np.arange({n}, dtype=np.{NAMES[t]})",
        ]
        return [f"{name} = {draw.choice([f'np.zeros({n}, dtype=np.{NAMES[t]})', *more])}"]

    def _check(self, scope: Scope) -> list[str]:
        test = self.test(scope)
        if self.chance(0.3):
            return [f"assert {test} or True"]
        if self.chance(0.15):
            return [f"assert {test}, 'no'"]
        if self.chance(0.15):
            return [
                f"if {test}:",
                f"    raise {self.draw.choice(['ValueError', 'Oops', 'RuntimeError'])}('bad')",
            ]
        return self._augment(scope)

    def _method(self, scope: Scope) -> list[str]:
        calls = [f for f in scope.functions if "." in f.name or f.result in ("None", "[]")]
        return [self.call(scope, self.draw.choice(calls))] if calls else self._write(scope)

    def _shuffle(self, scope: Scope) -> list[str]:
        g, name = scope.generator, self.new()
        if not g:
            return self._augment(scope)
        scope.types[name] = "i8"
        n = self.draw.choice(["3", "10", *(f"1 + abs({n})" for n in scope.of("int")[:2])])
        return [
            f"{name} = {g}.integers({n})" if self.chance(0.7) else f"{name} = {g}.integers(1, 7)"
        ]

    # Branches.

    def _inside(self, scope: Scope, size: int, depth: int, loop: bool, result: str) -> list[str]:
        lines = self.block(Scope(scope), size, depth - 1, loop, result)
        if loop and self.chance(0.25):
            lines.append(self.draw.choice(["break", "continue"]))
        elif result and self.chance(0.12):
            lines.append(f"return {self.value(scope, result)}")
        return indented(lines)

    def _if(self, scope: Scope, depth: int, loop: bool, result: str) -> list[str]:
        size = self.draw.choice([1, 1, 2])
        both = self.new() if self.chance(0.25) else ""
        t = self.draw.choice(["int", "float", "bool"])

        def arm() -> list[str]:
            lines = self._inside(scope, size, depth, loop, result)
            first = f"    {both} = {self._small(scope, t, self.value(scope, t))}"
            return [first, *lines] if both else lines

        lines = [f"if {self.test(scope)}:", *arm()]
        while self.chance(0.3):
            lines += [f"elif {self.test(scope)}:", *arm()]
        if both or self.chance(0.5):
            lines += ["else:", *arm()]
        if both:
            scope.types[both] = t
        return lines

    def _match(self, scope: Scope, depth: int) -> list[str]:
        name = self.target(scope, "int")
        if not name:
            return self._if(scope, depth, False, "")
        lines = [f"match {name} % 4:"]
        for case in self.draw.sample(["0", "1", "2 | 3", "k if k > 1"], 2):
            lines += [f"    case {case}:", *indented(self._inside(scope, 1, 1, False, ""))]
        return [*lines, "    case _:", *indented(self._inside(scope, 1, 1, False, ""))]

    def _try(self, scope: Scope, depth: int) -> list[str]:
        name = self.target(scope, "int", "float")
        if not name:
            return self._define(scope)
        t, draw = scope.types[name], self.draw
        n, arrays = self.leaf(scope, "int"), scope.arrays(ranks="[]")
        risks = [
            (f"{self.value(scope, t, 1)} {'//' if t == 'int' else '/'} {n}", "ZeroDivisionError")
        ]
        if t == "float":
            risks += [
                (f"math.sqrt({self.leaf(scope, t)})", "ValueError"),
                (f"math.log({self.leaf(scope, t)})", "ValueError"),
            ]
        if arrays:
            a = draw.choice(arrays)
            risks.append((f"{t}({a}[{n}])", "IndexError"))
        risk, error = draw.choice(risks)
        error = draw.choice([error, "Exception", f"({error}, KeyError)"])
        lines = ["try:", f"    {name} = {self._small(scope, t, risk)}", f"except {error}:"]
        lines += indented(
            [f"{name} = {self.leaf(scope, t)}", *self.block(Scope(scope), draw.randint(0, 1), 0)]
        )
        if self.chance(0.2):
            lines += ["else:", *self._inside(scope, 1, 1, False, "")]
        if self.chance(0.2):
            lines += ["finally:", *self._inside(scope, 1, 1, False, "")]
        return lines

    # Loops.

    def _for(self, scope: Scope, depth: int, result: str) -> list[str]:
        draw, inner = self.draw, Scope(scope)
        arrays, i, e = scope.arrays(), self.new("i"), self.new("e")
        inner.types[i] = "int"
        inner.fixed |= {i, e}
        trips = 6
        kinds = [
            "count",
            "count",
            "bound",
            *(["index", "index", "index", "elements", "enumerate", "zip"] if arrays else []),
        ]
        kind = draw.choice(kinds)
        head = f"for {i} in "
        if kind in ("elements", "enumerate", "zip"):
            flat = scope.arrays(ranks="[]")
            if not flat:
                return self._augment(scope)
            a, b = draw.choice(flat), draw.choice(flat)
            inner.types[e] = scope.types[a][:2]
            if kind == "elements":
                del inner.types[i]
                text = draw.choice([a, a, f"{a}[1:]", f"reversed({a})", f"{a}[::-1]"])
                head = f"for {e} in {text}"
            elif kind == "enumerate":
                inner.indices[i] = {f"{a}.0"}
                head = f"for {i}, {e} in enumerate({a})"
            else:
                inner.types[i] = scope.types[b][:2]
                head = f"for {e}, {i} in zip({a}, {b})"
        elif kind == "index":
            a = draw.choice(arrays)
            axis = draw.randrange(1 + ("," in scope.types[a]))
            n = (
                f"{a}.shape[{axis}]"
                if axis
                else draw.choice([f"len({a})", f"{a}.shape[0]", f"len({a})"])
            )
            inner.indices[i] = {f"{a}.{axis}"}
            text = draw.choice(
                [n, n, n, f"1, {n}", f"0, {n}, 2", f"{n} - 1, -1, -1", f"{n} - 1", f"{n} // 2"]
            )
            head += draw.choice([f"range({text})", f"range({text})", f"reversed(range({text}))"])
        elif kind == "count":
            trips = draw.choice([2, 3, 4, 5, *([12, 40] if self.trips == 1 else [])])
            head += draw.choice(
                [
                    f"range({trips})",
                    f"range({trips})",
                    f"range(1, {trips} + 1)",
                    f"range({trips}, 0, -1)",
                    f"range(0, {trips}, 2)",
                ]
            )
        else:
            n = self.leaf(scope, "int")
            head += draw.choice(
                [
                    f"range(abs({n}) % 6)",
                    f"range(min({n}, 6))",
                    f"range({n}, {n} + 3)",
                    f"range(-({n} & 3), {n} % 5)",
                ]
            )
        lines = [head + ":", *self._body(inner, trips, depth, result)]
        if self.chance(0.12):
            lines += ["else:", *self._inside(scope, 1, 1, False, "")]
        return lines

    def _body(self, inner: Scope, trips: int, depth: int, result: str) -> list[str]:
        around = self.trips
        if around * trips > TRIPS:
            depth = 1
        self.trips *= trips
        lines = self.block(inner, self.draw.choice([1, 1, 2, 3]), depth - 1, True, result)
        self.trips = around
        return indented(lines)

    def _while(self, scope: Scope, depth: int, result: str) -> list[str]:
        draw, k = self.draw, self.new("k")
        inner = Scope(scope)
        inner.types[k] = "int"
        inner.fixed.add(k)
        test, n = (
            self.test(scope),
            draw.choice(["4", "7", f"min(abs({self.leaf(scope, 'int')}), 9)"]),
        )
        first, head, step = draw.choice([
            (f"{k} = 0", f"while {k} < {n}:", f"{k} += 1"),
            (f"{k} = {n}", f"while {k}:", f"{k} -= 1"),
            (f"{k} = 0", f"while {k} < 6 and {test}:", f"{k} += 1"),
            (f"{k} = {n}", f"while {k} > 0:", f"{k} //= 2"),
            (f"{k} = 0", "while True:", f"{k} += {draw.randint(1, 3)}"),
        ])  # fmt: skip
        leave = [f"    if {k} > 8:", "        break"] if head == "while True:" else []
        lines = [first, head, f"    {step}", *leave, *self._body(inner, 6, depth, result)]
        if self.chance(0.12):
            lines += ["else:", *self._inside(scope, 1, 1, False, "")]
        scope.types[k] = "int"
        return lines


def indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]
