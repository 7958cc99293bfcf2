"""Random programs whose functions read Python state that changes between calls and between processes.

    python tests/helpers/state_programs.py 2000            seeds 0 to 1999, in this process
    python tests/helpers/state_programs.py 500 --disk      each program in two processes with one cache

A program is text: a value of nested builtin kinds, a place where it is kept, a function that reads a
number of it in some way, and statements that change it. After each statement the jitted function has to
give what the plain one gives, or to be refused by an error of jitney's.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import jitney as jt

HEAD = """
import array, collections, copy, dataclasses, enum, functools, math, operator, types
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
import numpy as np

class Float(float): pass
class Int(int): pass
class List(list): pass
class Dict(dict): pass
class Bytes(bytearray): pass
class Tuple(tuple): pass
class Text(str): pass
class Plain:
    shared = 1.5
    table = [2.0]
    def __init__(self, a): self.a = a
    def method(self): return self.a
    def own_class(self): return type(self).shared + self.table[0]
    @property
    def prop(self): return self.a
    @classmethod
    def made(cls): return cls.shared + cls.table[0]
    @staticmethod
    def fixed(): return 1.25
    def __len__(self): return 3
    def __getitem__(self, key): return self.a
class Derived(Plain):
    def method(self): return super().method()
class Slots:
    __slots__ = ("a",)
    def __init__(self, a): self.a = a
@dataclasses.dataclass
class Data:
    a: object
    b: float = 2.0
class Made:
    def __init__(self, a): self.b = a
    def __getattr__(self, name):
        if name == "a": return self.__dict__["b"]
        raise AttributeError(name)
Pair = namedtuple("Pair", "a b")
class Color(enum.Enum):
    RED = 1.0
    BLUE = 2.0
K = 3.0
LISTED = [4.0]
def reads_global(): return K + LISTED[0]
def with_default(n=1.0, *, m=[2.0]): return n + m[0]
def adder(k):
    def inner(): return k
    return inner

def number(v, depth=0):
    \"\"\"A number of all that a value is made of.\"\"\"
    if depth > 60: return 0
    if v is None: return 5
    if isinstance(v, (bool, int, float)): return v
    if isinstance(v, complex): return v.real + 3 * v.imag
    if isinstance(v, (Fraction, Decimal)): return float(v)
    if isinstance(v, (str, bytes, bytearray, memoryview, array.array)):
        return sum((i + 1) * (ord(c) if isinstance(c, str) else c) for i, c in enumerate(v))
    if hasattr(v, "dtype") and hasattr(v, "shape"): return v.sum()
    if isinstance(v, np.generic): return v.item()
    if isinstance(v, enum.Enum): return number(v.value, depth + 1)
    if isinstance(v, functools.partial): return number(v.args, depth + 1) + number(v.keywords, depth + 1)
    if isinstance(v, types.FunctionType): return number(vars(v), depth + 1) + number(v(), depth + 1)
    if isinstance(v, types.MethodType): return number(v(), depth + 1)
    if isinstance(v, collections.abc.Mapping):
        return sum((i + 2) * (number(k, depth + 1) + number(v[k], depth + 1)) for i, k in enumerate(v))
    if isinstance(v, (list, tuple, deque, UserList, range)):
        return sum((i + 2) * number(w, depth + 1) for i, w in enumerate(v))
    if isinstance(v, (set, frozenset)): return sum(number(w, depth + 1) for w in v)
    if isinstance(v, Slots): return number(v.a, depth + 1)
    return number(vars(v), depth + 1)
"""


class Kind(NamedTuple):
    """How a value that holds another one is written, read and changed.

    `make` has `{}` for what it holds, `get` for the value itself; `reads` give other numbers, and
    `changes` are statements about the value `{}`, with `@` for a new inner value.
    """

    make: str
    get: str
    reads: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()


_ITEMS = ("len({})", "number(tuple({}))", "sum(number(w) for w in {})", "len(list({}))")
_MAP = ("len({})", "number(list({}))", "sum(number(w) for w in {}.values())", "float('b' in {})")
_ATTRIBUTES = ("number(vars({}))", "float(hasattr({}, 'c'))", "number({}.__dict__['a'])")
_SET = ("setattr({}, 'a', @)", "{}.a = @", "{}.c = 1.0")
_CLASS = (
    *("Plain.shared = @@", "Plain.table[0] = @@", "Plain.fixed = staticmethod(lambda: @@)"),
    *("Plain.method = lambda self: @@", "Plain.prop = property(lambda self: @@)"),
    *("Plain.made = classmethod(lambda cls: @@)", "Derived.fixed = lambda *s: @@"),
    *("Plain.__len__ = lambda self: 4", "Plain.__getitem__ = lambda self, k: @@"),
)
_OBJECT = (
    *("{}.method()", "{}.own_class()", "{}.prop", "{}.made()", "{}.fixed()", "len({})", "{}[0]"),
    *("float(isinstance({}, Derived))", "float(type({}) is Plain)", "{}.shared"),
)

KINDS = {
    "list": Kind("[1.0, {}]", "{}[1]", _ITEMS, ("{}[1] = @", "{}.append(@)", "{}.reverse()")),
    "List": Kind("List([1.0, {}])", "{}[1]", _ITEMS, ("{}[1] = @", "{}.insert(0, @)", "{}.x = 1")),
    "tuple": Kind("(1.0, {})", "{}[1]", _ITEMS),
    "Tuple": Kind("Tuple((1.0, {}))", "{}[1]", _ITEMS),
    "pair": Kind("Pair({}, 1.0)", "{}.a", (*_ITEMS, "{}[0] is not None", "{}._asdict()['b']")),
    "dict": Kind("{{'a': {}, 'b': 1.0}}", "{}['a']", _MAP, ("{}['a'] = @", "{}.pop('b', 0)")),
    "Dict": Kind("Dict(a={})", "{}.get('a')", _MAP, ("{}['a'] = @", "{}.update(b=@)")),
    "ordered": Kind(
        *("OrderedDict(a={}, b=2.0)", "{}['a']", _MAP),
        ("{}.move_to_end('a')", "{}['a'] = @", "{}.pop('b', 0)"),
    ),
    "default": Kind(
        *("defaultdict(lambda: 7.0, a={})", "{}['a']", (*_MAP, "{}.default_factory()")),
        ("{}['a'] = @", "{}.default_factory = lambda: @@"),
    ),
    "counter": Kind("collections.Counter(a=2, b={})", "{}['b']", _MAP, ("{}['b'] = @",)),
    "userdict": Kind("UserDict(a={})", "{}['a']", _MAP, ("{}['a'] = @", "{}['b'] = @")),
    "userlist": Kind("UserList([1.0, {}])", "{}[1]", _ITEMS, ("{}[1] = @", "{}.append(@)")),
    "chain": Kind(
        *("ChainMap({{}}, dict(a={}))", "{}['a']", _MAP),
        ("{}['a'] = @", "{}.maps[1]['a'] = @", "{}.maps.reverse()"),
    ),
    "proxy": Kind("MappingProxyType(dict(a={}))", "{}['a']", _MAP),
    "deque": Kind(
        *("deque([1.0, {}], maxlen=4)", "{}[1]", (*_ITEMS, "{}.maxlen")),
        ("{}[1] = @", "{}.rotate(1)", "{}.appendleft(@)"),
    ),
    "namespace": Kind("SimpleNamespace(a={})", "{}.a", _ATTRIBUTES, _SET),
    "object": Kind(
        *("Plain({})", "{}.a", (*_ATTRIBUTES, *_OBJECT)),
        (*_SET, *_CLASS, "{}.__class__ = Derived", "{}.method = lambda: @@", "{}.shared = @@"),
    ),
    "derived": Kind("Derived({})", "{}.a", (*_ATTRIBUTES, *_OBJECT), (*_SET, *_CLASS)),
    "slots": Kind("Slots({})", "{}.a", ("getattr({}, 'a')",), ("{}.a = @",)),
    "data": Kind("Data({})", "{}.a", ("dataclasses.astuple({})[1]", "{}.b"), (*_SET, "{}.b = @@")),
    "made up": Kind("Made({})", "{}.a", ("getattr({}, 'a')",), ("{}.b = @",)),
    "partial": Kind(
        "functools.partial(reads_global, {})",
        "{}.args[0]",
        ("{}.func()",),
        ("{}.keywords['z'] = @",),
    ),
    "closure": Kind("adder({})", "{}()", (), ("{}.__closure__[0].cell_contents = @", "{}.q = @")),
    "method": Kind("Plain({}).method", "{}()", ("{}.__self__.a",), ("{}.__self__.a = @",)),
    "set in list": Kind("[{{1.0, 2.5}}, {}]", "{}[1]", ("sum({}[0])",), ("{}[0].add(@@)",)),
    "objects": Kind(
        "np.array([1.0, {}, 'x'], dtype=object)[:2]", "{}[1]", ("len({})",), ("{}[1] = @",)
    ),
    "enum member": Kind("[Color.RED, {}]", "{}[1]", ("{}[0].value",), ("{}[0]._value_ = @@",)),
}

LEAVES = [
    *(
        "2.5",
        "1.0",
        "1",
        "True",
        "0.0",
        "-0.0",
        "3",
        "7.25",
        "Float(2.0)",
        "Int(4)",
        "None",
        "2+1j",
    ),
    *("Fraction(1, 3)", "Decimal('1.50')", "'ab'", "Text('b')", "b'xy'", "bytearray(b'ab')"),
    *("Bytes(b'ab')", "array.array('d', [2.0, 3.0])", "memoryview(bytearray(b'abc'))", "range(4)"),
    *("np.float32(1.5)", "np.array([1.0, 2.0])", "frozenset([1, 2])", "{3.5, 4.5}", "Color.BLUE"),
    *("slice(1, 2.5).stop", "math.pi", "reads_global()", "np.arange(3)[::2]"),
]
# Statements about leaves that can be changed themselves.
INSIDE = {
    "bytearray": ("{}[0] = 7", "{}.extend(b'q')"),
    "Bytes": ("{}[0] = 9", "{}.z = 1.0"),
    "array.array": ("{}[0] = 9.5", "{}.append(1.5)"),
    "memoryview": ("{}[0] = 9",),
    "np.array": ("{}[0] = 9.5",),
    "{3.5": ("{}.add(8.5)", "{}.discard(3.5)"),
}
GLOBALLY = (
    *("K = @@", "LISTED[0] = @@", "with_default.__defaults__ = (@@,)", "reads_global.k = @@"),
    *("with_default.__kwdefaults__['m'][0] = @@", "reads_global.__code__ = (lambda: @@).__code__"),
    *("def reads_global(): return @@", "len = lambda v: 9", "def number(v, depth=0): return @@"),
    *("sum = lambda v: 11", "Color._extra = @@", "math = SimpleNamespace(pi=@@)", "del len, sum"),
)

PLACES = {
    "global": ("S = {}", "S"),
    "class attribute": ("class Holder: state = {}", "Holder.state"),
    "inherited": ("class Base: state = {}\nclass Holder(Base): pass\nh = Holder()", "h.state"),
    "attribute": ("h = Plain({})", "h.a"),
    "function": ("def holder(): return 0\nholder.state = {}", "holder.state"),
    "module": ("m = types.ModuleType('of_the_user')\nm.state = {}", "m.state"),
    "module as a value": ("m = types.ModuleType('of_the_user')\nm.state = {}", "vars(m)['state']"),
    "returned": ("S = {}\ndef give(): return S", "give()"),
    "in a table of functions": ("S = {}\nT = [lambda: S, 1]", "T[0]()"),
    "in a dict": ("T = dict(k={})", "T['k']"),
    "property": ("S = {}\nclass H:\n    @property\n    def p(self): return S\nh = H()", "h.p"),
    "of a class in a list": ("class H:\n    k = {}\nT = [H, 2]", "T[0].k"),
    "method": ("class H:\n    s = {}\n    def m(self): return self.s\nh = H()", "h.m()"),
    "new object": ("class H:\n    s = {}\n    def m(self): return self.s", "H().m()"),
    "call": ("class H:\n    def __call__(self): return self.s\nh = H()\nh.s = {}", "h()"),
    "default": ("def give(v={}): return v", "give()"),
    "nested": ("S = {}\ndef outer():\n    def inner(): return S\n    return inner", "outer()()"),
}

READERS = (
    *("{}", "(lambda q: q)({})", "[w for w in [{}]][0]", "helper({})", "copy.copy({})"),
    "copy.deepcopy({})",
)


class Program(NamedTuple):
    """The text of a program, and the statements that change what its function reads."""

    text: str
    changes: list[str]


def draw(seed: int) -> Program:
    r = random.Random(seed)
    names = [r.choice(list(KINDS)) for _ in range(r.choice((0, 1, 1, 2, 2, 3)))]

    def leaf() -> str:
        return r.choice(LEAVES)

    def built(kinds: list[str]) -> str:
        text = leaf()
        for name in reversed(kinds):
            text = KINDS[name].make.format(text)
        return text

    def plain() -> str:
        return r.choice(("2.0", "3.5", "5.0", "1", "0.25"))

    place, base = PLACES[r.choice(list(PLACES))]
    value = built(names)
    paths = [base]
    for name in names:
        paths.append(KINDS[name].get.format(paths[-1]))

    reads = [f"number({paths[-1]})", f"number({r.choice(paths)})"]
    for name, path in zip(names, paths, strict=False):
        reads += [text.format(path) for text in KINDS[name].reads]
    reads += [
        "reads_global()",
        "with_default()",
        f"float(helper({leaf()}) is None)",
        "number(Color.RED)",
    ]
    reads += ["Plain.made()", "Plain(1.0).own_class()", "len(LISTED)", "sum(LISTED)"]
    chosen = [r.choice(reads[:2]), *(r.choice(reads) for _ in range(r.choice((0, 1, 2))))]
    chosen = [_reader(r, text, paths) for text in chosen]

    changes: list[str] = []
    for _ in range(r.randint(2, 5)):
        level = r.randint(0, len(names))
        options = list(GLOBALLY)
        if level < len(names):
            options = list(KINDS[names[level]].changes) or options
        else:
            inside = [c for k, found in INSIDE.items() if k in value for c in found]
            options = inside or options
        text = r.choice(options)
        if r.random() < 0.15:
            text = f"{base} = {built(names)}" if "(" not in base else "K = @@"
        text = text.replace("@@", plain()).replace("@", built(names[level + 1 :]))
        changes.append(_filled(text, paths[min(level, len(names))]))
    body = " + ".join(f"number({text})" for text in chosen)
    head = HEAD + place.replace("{}", value) + "\ndef helper(v): return v\n"
    return Program(f"{head}def f(x): return x * ({body})\n", changes)


def _reader(r: random.Random, text: str, paths: list[str]) -> str:
    """The text with one of the paths in it read in a more roundabout way."""
    path = r.choice(paths)
    reader = r.choice(READERS).replace("{}", path)
    return re.sub(rf"(?<!\w){re.escape(path)}(?!\w)", lambda _: reader, text, count=1)


def _filled(text: str, path: str) -> str:
    return text.replace("{}", path)


def run(text: str, name: str) -> dict[str, Any]:
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, f"{name}.py", "exec"), vars(module))
    return vars(module)


def outcome(function: Callable[[Any], Any], x: Any) -> str:
    """What a call gives, as text: the dtype and the elements, or "error"."""
    try:
        found = np.asarray(function(x))
    except Exception:
        return "error"
    return f"{found.dtype} {found.tolist()}"


def check(seed: int, **options: Any) -> Iterator[tuple[str, str, str]]:
    """Each change that the jitted function has not seen: (statements so far, plain, jitted)."""
    program = draw(seed)
    space = run(program.text, f"state_{seed}")
    f, x = jt.jit(space["f"], **options), np.arange(1, 4)
    done: list[str] = []
    for change in ["", *program.changes]:
        try:
            exec(change, space)
        except Exception:
            continue
        done.append(change)
        for _ in range(2):  # the second may run natively
            want, got = outcome(space["f"], x), outcome(f, x)
            if got not in (want, "error"):
                yield "; ".join(done), want, got
                return


def in_process(seeds: range, **options: Any) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in seeds:
        found = list(check(seed, **options))
        counts["programs"] += 1
        for changes, want, got in found:
            counts["stale"] += 1
            text = draw(seed).text
            print(f"seed {seed}: plain {want}, jitted {got}, after {changes}")
            print(text[len(HEAD) :])
    return counts


def child(seeds: list[int], changed: bool) -> None:
    """Print the outcome of each program, with its changes made before the first call if `changed`."""
    for seed in seeds:
        program = draw(seed)
        space = run(program.text, f"state_{seed}")
        if changed:
            for change in program.changes:
                try:
                    exec(change, space)
                except Exception:
                    continue
        x = np.arange(1, 4)
        want = outcome(space["f"], x)
        print(json.dumps([seed, want, outcome(jt.jit(space["f"]), x)]), flush=True)


def from_disk(seeds: range) -> Counter[str]:
    """Each program in one process as it is, in another with its changes made, with one cache."""
    counts: Counter[str] = Counter()
    for first in range(seeds.start, seeds.stop, 50):
        part = list(range(first, min(first + 50, seeds.stop)))
        with tempfile.TemporaryDirectory() as folder:
            for changed in (False, True):
                code = f"import state_programs as s; s.child({part}, {changed})"
                command = [sys.executable, "-c", code]
                environment = {**_environment(), "JITNEY_CACHE_DIR": folder}
                done = subprocess.run(command, env=environment, capture_output=True, text=True)
                if done.returncode:
                    counts["crashed"] += 1
                    print(done.stderr[-2000:])
                for seed, want, got in map(json.loads, done.stdout.splitlines()):
                    counts["programs"] += changed
                    if got not in (want, "error"):
                        counts["stale"] += 1
                        print(f"seed {seed}: plain {want}, jitted {got}, {draw(seed).changes}")
                        print(draw(seed).text[len(HEAD) :])
    return counts


def _environment() -> dict[str, str]:
    import os
    from pathlib import Path

    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--interpreter", action="store_true")
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.count)
    options = {"backend": "interpreter"} if given.interpreter else {}
    counts: Counter[str] = Counter()
    for first in range(seeds.start, seeds.stop, 100):
        part = seeds[first - seeds.start :][:100]
        counts += from_disk(part) if given.disk else in_process(part, **options)
        print(f"seeds {given.first} to {part.stop - 1}: {dict(counts)}", flush=True)


if __name__ == "__main__":
    main()
