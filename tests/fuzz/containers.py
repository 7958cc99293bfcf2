"""Programs whose containers grow and shrink in compiled loops: lists, deques, dicts, sets, heaps.

Elements of a container are of one type, as native ones demand; what is asked of it is of any. Each
program is called with several arguments, and what it gives or raises, and what it leaves of its
arguments, is compared with plain Python's in full: values, types, order, messages.
"""

from __future__ import annotations

import bisect
import heapq
import linecache
import math
import random
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .compare import Case

ORDERED = ("list", "deque", "heap", "sorted")
MAPS = ("dict", "Counter", "defaultdict", "OrderedDict")
MODULES = {
    "np": np, "math": math, "heapq": heapq, "bisect": bisect, "Counter": Counter, "deque": deque,
    "defaultdict": defaultdict, "OrderedDict": OrderedDict,
}  # fmt: skip
CAUGHT = ("IndexError", "KeyError", "ValueError")


class Variable:
    """A container: its class, and the types of its keys and elements."""

    def __init__(self, name: str, cls: str, key: str, value: str) -> None:
        self.name, self.cls, self.key, self.value = name, cls, key, value


class Writer:
    """Writes a program as text. Types: i int, f float, b bool, z np.int64, w np.float64; two: a pair."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.lines: list[str] = []
        self.variables: list[Variable] = []
        self.loops = self.noted = 0
        self.counters: list[str] = []

    def pick(self, *choices: Any) -> str:
        choice = self.draw.choice(choices)
        return choice() if callable(choice) else choice

    # Values

    def value(self, type: str) -> str:
        """An expression of this type, exactly."""
        if len(type) == 2:
            return f"({self.value(type[0])}, {self.value(type[1])})"
        k = self.draw.choice(self.counters) if self.counters else "n"
        if type == "i":
            return self.pick(
                k, "n", f"{k} % 3", f"{k} * 7 % 5", f"{k} - 2", "1", "0", "-1", f"n - {k}",
                f"len({self.draw.choice(self.variables).name})" if self.variables else "2",
            )  # fmt: skip
        if type == "f":
            return self.pick(
                f"{k} / 2", "t", "0.5", f"t * {k}", "1.0", "-0.0", "0.0", f"float({k})"
            )
        if type == "b":
            return self.pick(f"{k} % 2 == 0", f"{k} > 2", "True", "False", "t > 0.5")
        if type == "z":
            return self.pick(f"a[{k} % 6]", "a[0]", f"a[{k} % 4 - 1]")
        return self.pick(f"x[{k} % 4]", "x[1]")

    def question(self, type: str) -> str:
        """Something that is asked for: equal values may be of another type."""
        if len(type) == 2:
            return f"({self.question(type[0])}, {self.question(type[1])})"
        if type in "ifb" and self.draw.random() < 0.25:
            return self.value(self.draw.choice("ifb"))
        return self.value(type)

    def one(self, *classes: str) -> Variable:
        found = [c for c in self.variables if not classes or c.cls in classes]
        return self.draw.choice(found)

    def asked(self, c: Variable) -> list[tuple[str, str]]:
        """What can be asked: n gives a number, q a truth, e an element, v a value, l a list."""
        n, q = c.name, self.question(c.key)
        found = [("n", f"len({n})"), ("q", f"{q} in {n}"), ("q", f"{q} not in {n}")]
        if c.key in ("i", "f") and c.cls not in MAPS:
            found += [("e", f"max({n})"), ("e", f"min({n}, default={self.value(c.key)})")]
            found += [("l", f"sum({n})" if c.key == "i" else f"sum({n}) if {n} else 1.5")]
        if c.cls != "set":  # which has an order of its own
            found += [("l", f"list({n})")]
        found += [("l", f"sorted({n})"), ("q", f"any(e == {q} for e in {n})")]
        if c.cls in ORDERED:
            i, j = self.value("i"), self.value("i")
            found += [("e", f"{n}[{i}]"), ("e", f"{n}[0]"), ("e", f"{n}[-1]")]
            found += [("n", f"{n}.count({q})"), ("n", f"{n}.index({q})")]
            if c.cls != "deque":
                found += [("l", f"{n}[{i}:]"), ("l", f"{n}[::-1]"), ("l", f"{n}[{i}:{j}]")]
                found += [("l", f"list(reversed({n}))"), ("q", f"{n} == {n}[::-1]")]
                found += [("l", f"{n}[{i}::-2]"), ("l", f"list(zip({n}, {n}))")]
            if c.cls == "sorted":
                found += [("n", f"bisect.bisect_left({n}, {q})")]
                found += [("n", f"bisect.bisect_right({n}, {q})")]
            if c.cls == "heap":
                found += [("l", f"heapq.nsmallest(2, {n})"), ("l", f"heapq.nlargest(2, {n})")]
        elif c.cls in MAPS:
            found += [
                ("v", f"{n}.get({q}, {self.value(c.value)})"), ("v", f"{n}[{q}]"),
                ("l", f"list({n}.items())"), ("l", f"list({n}.values())"),
                ("l", f"sorted({n}.items())"), ("e", f"max({n}, key={n}.get)"),
                ("l", f"dict({n})"), ("q", f"{n} == {self._like(c).name}"),
            ]  # fmt: skip
            if c.value in ("i", "f"):
                found += [
                    ("l", f"sum({n}.values())"),
                    ("l", f"{n}.get({q}, {self.question(c.value)})"),
                ]
                found += [("l", f"sorted({n}.items(), key=lambda e: (e[1], e[0]))")]
            if c.cls == "Counter":
                found += [("l", f"{n}.most_common()"), ("l", f"{n}.most_common(2)")]
                found += [("n", f"{n}.total()")]
        else:
            other = self._like(c).name
            found += [
                ("l", f"sorted({n} {self.pick('|', '&', '-', '^')} {other})"),
                ("q", f"{n} <= {other}"), ("q", f"{n} == {other}"), ("q", f"{n}.isdisjoint({other})"),
            ]  # fmt: skip
        return found

    def ask(self, indent: str) -> None:
        """Note the answer to a question."""
        c = self.one()
        kind, text = self.draw.choice(self.asked(c))
        if kind == "e" and self.draw.random() < 0.8:
            self.write(f"if {c.name}:", indent)
            indent += "    "
        into = {"n": "seen", "q": "truths", "e": f"of_{c.name}", "v": f"at_{c.name}"}.get(kind)
        if into is not None:
            self.write(f"{into}.append({text})", indent)
        elif indent:
            if "sum(" not in text and ".get(" not in text:
                self.write(f"seen.append(len({text}))", indent)
            self.write("count += 1", indent)
        else:
            self.write(f"g{self.noted} = {text}", indent)
            self.noted += 1

    def _like(self, c: Variable) -> Variable:
        """A container of the same class and types; perhaps the same one."""
        same = [v for v in self.variables if (v.cls, v.key, v.value) == (c.cls, c.key, c.value)]
        return self.draw.choice(same)

    def changes(self, c: Variable) -> list[str]:
        """Statements that change a container."""
        n, q, v = c.name, self.question(c.key), self.value(c.key)
        i = self.value("i")
        other = self._like(c).name
        if c.cls in ("list", "sorted"):
            if c.cls == "sorted":
                return [f"bisect.insort({n}, {v})"] * 3 + [f"del {n}[{i}]", f"{n}.pop()"]
            return [
                f"{n}.append({v})", f"{n}.append({v})", f"{n} += [{v}, {self.value(c.key)}]",
                f"{n}.insert({i}, {v})", f"{n}.pop()", f"{n}.pop({i})", f"{n}.remove({q})",
                f"{n}[{i}] = {v}", f"del {n}[{i}]", f"{n}.reverse()", f"{n}.sort()",
                f"{n}.extend({other}[:2])", f"{n} = ({n} * 2)[:9]", f"{n}.clear()", f"{n} = {n}[1:]",
                f"{n}.sort(key=lambda e: e, reverse=True)", f"{n} = {n} + [{v}]", f"del {n}[1:3]",
                f"{n}[1:2] = [{v}, {self.value(c.key)}]", f"{n} = [e for e in {n} if e != {q}]",
                f"{n} = {other}", f"{n} = list({other})", f"{n} = sorted({other})", f"del {n}[::2]",
            ]  # fmt: skip
        if c.cls == "heap":
            return [f"heapq.heappush({n}, {v})"] * 4 + [
                f"of_{n}.append(heapq.heappop({n}))", f"of_{n}.append(heapq.heappushpop({n}, {v}))",
                f"of_{n}.append(heapq.heapreplace({n}, {v}))", f"{n} = {n}[:3]\nheapq.heapify({n})",
            ]  # fmt: skip
        if c.cls == "deque":
            return [
                f"{n}.append({v})", f"{n}.appendleft({v})", f"{n}.append({v})", f"{n}.pop()",
                f"of_{n}.append({n}.popleft())", f"{n}.rotate({i})", f"{n}.extend([{v}, {v}])",
                f"{n}.extendleft([{v}, {self.value(c.key)}])", f"{n}.remove({q})", f"{n}.clear()",
                f"{n}[{i}] = {v}", f"{n}.insert({i}, {v})", f"{n}.reverse()", f"del {n}[{i}]",
                f"{n} = {other}",
            ]  # fmt: skip
        if c.cls == "set":
            return [f"{n}.add({v})"] * 4 + [
                f"{n}.discard({q})", f"{n}.remove({q})", f"{n} |= {other}", f"{n} -= {other}",
                f"{n} &= {other}", f"{n} ^= {other}", f"{n}.update([{v}, {v}])", f"{n}.clear()",
                f"{n} = {other}", f"{n} = {n} | {other}", f"{n} = {{e for e in {other}}}",
            ]  # fmt: skip
        w = self.value(c.value)
        found = [f"{n}[{v}] = {w}"] * 3 + [
            f"at_{n}.append({n}.pop({q}, {self.value(c.value)}))", f"{n}.pop({q})", f"del {n}[{q}]",
            f"{n}.setdefault({v}, {w})", f"{n}.clear()", f"{n}.update({other})", f"{n} = {other}",
            f"if {q} in {n}:\n    del {n}[{q}]", f"pairs_{n}.append({n}.popitem())",
            f"{n} = {{p: r for p, r in {n}.items() if p != {q}}}" if c.cls == "dict" else "pass",
        ]  # fmt: skip
        if c.value in ("i", "f"):
            found += [f"{n}[{v}] = {n}.get({v}, {w}) + {w}"] * 2
        if c.cls in ("Counter", "defaultdict") and c.value == "i":
            found += [f"{n}[{v}] += {self.value('i')}"] * 3
        if c.cls == "OrderedDict":
            found += [f"{n}.move_to_end({q})", f"pairs_{n}.append({n}.popitem(last=False))"]
        if c.cls == "Counter":
            found += [f"{n}.update([{v}, {v}])", f"{n}.subtract([{v}])"]
        return found

    # Statements

    def write(self, text: str, indent: str) -> None:
        self.lines += [indent + line for line in text.split("\n")]

    def declare(self) -> None:
        draw = self.draw
        cls = draw.choice([*ORDERED, "list", "list", *MAPS, "dict", "set", "set", "deque"])
        if self.variables and draw.random() < 0.35:  # another like one that is there
            old = draw.choice(self.variables)
            cls, key, value = old.cls, old.key, old.value
        else:
            key = draw.choice(["i", "i", "i", "f", "z", "w", "ii", "if", "b", "zi"])
            value = draw.choice(["i", "i", "f", "z", "if"]) if cls in MAPS else ""
            if cls == "Counter" or (cls == "defaultdict" and draw.random() < 0.7):
                value = "i"
        name = f"c{len(self.variables)}"
        items = (
            [self.value(key) for _ in range(draw.choice([0, 0, 1, 3]))] if self.variables else []
        )
        if cls in MAPS:
            pairs = ", ".join(f"{k}: {self.value(value)}" for k in items)
            if cls == "defaultdict":
                made = {"i": "int", "f": "float", "z": "int", "if": "tuple"}[value]
                text = f"defaultdict({made})"
            else:
                text = f"{{{pairs}}}" if cls == "dict" else f"{cls}()"
        elif cls == "set":
            text = f"{{{', '.join(items)}}}" if items else "set()"
        elif cls == "deque":
            most = ", maxlen=3" if draw.random() < 0.3 else ""
            text = f"deque([{', '.join(items)}]{most})"
        elif cls == "list" and draw.random() < 0.2:
            text = f"[{self.value(key)}] * {self.pick('3', 'n')}"
        else:
            text = f"[{', '.join(items)}]"
            if cls == "sorted":
                text = f"sorted({text})"
        self.lines.append(f"{name} = {text}")
        if cls == "heap" and items:
            self.lines.append(f"heapq.heapify({name})")
        self.variables.append(Variable(name, cls, key, value))

    def condition(self) -> str:
        k = self.draw.choice(self.counters) if self.counters else "n"
        c = self.one()
        return self.pick(
            f"{k} % 2 == 0", f"{k} > 2", "n > 3", f"{c.name}", f"len({c.name}) > 2",
            lambda: f"{self.question(c.key)} in {c.name}", f"not {c.name}", "t < 1",
        )  # fmt: skip

    def block(self, depth: int, indent: str) -> None:
        for _ in range(self.draw.randint(1, 3)):
            self.statement(depth, indent)

    def statement(self, depth: int, indent: str) -> None:
        inner = indent + "    "
        kinds = ["change"] * 6 + ["log"] * 2
        if depth:
            kinds += ["if", "if", "for", "while", "over", "try", "helper"]
        kind = self.draw.choice(kinds)
        c = self.one()
        if kind == "change":
            other = self._like(c).name
            swap = [f"{c.name}, {other} = {other}, {c.name}"]
            text = self.draw.choice(self.changes(c) + swap)
            risky = any(w in text for w in ("pop", "remove", "del ", "heapreplace", "popitem"))
            if risky and self.draw.random() < 0.8 and not text.startswith("if"):
                self.write(f"if {c.name}:", indent)
                indent = inner
            self.write(text, indent)
        elif kind == "log":
            self.ask(indent)
        elif kind == "if":
            self.write(f"if {self.condition()}:", indent)
            self.block(depth - 1, inner)
            if self.draw.random() < 0.4:
                self.write("else:", indent)
                self.block(depth - 1, inner)
        elif kind == "for":
            self._loop(
                depth, indent, f"for k{self.loops} in range({self.pick('n', '4', 'n + 1')}):"
            )
        elif kind == "while":
            k = f"k{self.loops}"
            self.write(f"{k} = 0", indent)
            self._loop(depth, indent, f"while {k} < n and {self.condition()}:", f"{k} += 1")
        elif kind == "over":
            self._over(c, depth, indent)
        elif kind == "try":
            self.write("try:", indent)
            self.write(self.draw.choice(self.changes(c)), inner)
            self.write(f"except {self.draw.choice(CAUGHT)}:", indent)
            self.write("count += 1", inner)
        else:
            self.write(f"count += helper({c.name}, n)", indent)

    def _loop(self, depth: int, indent: str, head: str, first: str = "") -> None:
        k = f"k{self.loops}"
        self.loops += 1
        self.write(head, indent)
        inner = indent + "    "
        if first:
            self.write(first, inner)
        self.counters.append(k)
        self.block(depth - 1, inner)
        if self.draw.random() < 0.2:
            self.write(f"if {self.condition()}:\n    {self.pick('break', 'continue')}", inner)
        self.counters.pop()

    def _over(self, c: Variable, depth: int, indent: str) -> None:
        """A loop over a container, that perhaps changes it."""
        item = f"e{self.loops}"
        self.loops += 1
        items = c.name
        if c.cls in MAPS:
            items = self.pick(c.name, f"{c.name}.items()", f"{c.name}.values()", f"list({c.name})")
        elif c.cls in ("list", "sorted", "heap", "deque"):
            items = self.pick(c.name, f"enumerate({c.name})", f"zip({c.name}, range(4))", c.name)
        self.write("steps = 0", indent)
        self.write(f"for {item} in {items}:", indent)
        inner = indent + "    "
        self.write("steps += 1\nif steps > 6:\n    break", inner)
        self.write(f"seen.append(steps + len({c.name}))", inner)
        if self.draw.random() < 0.4:
            self.block(max(depth - 1, 0), inner)

    def program(self) -> str:
        for _ in range(self.draw.randint(1, 4)):
            self.declare()
        self.lines += ["seen, truths, count = [], [], 0"]
        for c in self.variables:
            self.lines += [f"of_{c.name}, at_{c.name}, pairs_{c.name} = [], [], []"]
        self._loop(2, "", "for k0 in range(n):")
        self.block(2, "")
        kept = [c.name for c in self.variables]
        self.draw.shuffle(kept)
        kept += [f"{what}_{c.name}" for c in self.variables for what in ("of", "at", "pairs")]
        kept += [f"g{k}" for k in range(self.noted)]
        self.lines.append(f"return {', '.join(kept)}, seen, truths, count")
        body = "\n".join("    " + line for line in self.lines)
        head = "def helper(c, n):\n    m = len(c)\n    return m + n if m > 1 else 0\n\n"
        return f"{head}def program(n, t, a, x):\n{body}\n"


def described(value: Any) -> str:
    """A text that two values share only if they are of the same types in the same order."""
    if isinstance(value, (list, tuple, deque)):
        inner = ", ".join(map(described, value))
        most = getattr(value, "maxlen", None)
        return f"{type(value).__name__}({inner}{'' if most is None else f'; {most}'})"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}{{{', '.join(sorted(map(described, value)))}}}"
    if isinstance(value, dict):
        inner = ", ".join(f"{described(k)}: {described(v)}" for k, v in value.items())
        return f"{type(value).__name__}{{{inner}}}"
    if isinstance(value, np.ndarray):
        return f"array{value.tolist()}"
    return repr(value)


def _plain(key: Any) -> Any:
    if isinstance(key, tuple):  # which an OrderedDict takes for all arguments
        return ", ".join(map(str, map(_plain, key)))
    key = key.split("\n")[0] if isinstance(key, str) else key
    return key.item() if isinstance(key, np.generic) else key


def outcomes(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> str:
    """What the calls give or raise, and what they leave of their arguments."""
    found = []
    for call in calls:
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in call]
        try:
            text = described(function(*own))
        except jt.errors.JitneyError:
            raise
        except Exception as error:
            said = [str(a).split("\n")[0] if isinstance(a, str) else a for a in error.args]
            if isinstance(error, KeyError):  # which may be a number of NumPy's
                said = [_plain(error.args)]
            text = f"{type(error).__name__}{said}"
        found.append(f"{text} {[described(a) for a in own]}")
    return "\n".join(found)


def containers(seed: int) -> Case:
    text = Writer(seed).program()
    name = f"<fuzz containers {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = dict(MODULES)
    exec(compile(text, name, "exec"), space)
    f = space["program"]
    compiled = jt.jit(f)
    draw = np.random.default_rng(seed)
    calls = [
        (n, t, draw.integers(-2, 4, 6), draw.integers(-4, 5, 4) / 2)
        for n, t in ((4, 0.5), (7, 2.0), (1, 1.0))
    ]
    return Case(lambda: outcomes(f, calls), lambda: outcomes(compiled, calls), [], text)
