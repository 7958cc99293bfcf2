"""Traces remembered on disk: found by the same program in another process, and never by another."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
import warm

PRELUDE = """
import collections, enum, types
import sys, time, random, os, functools, math, operator
import numpy as np
import jitney as jt
from dataclasses import dataclass
x = np.arange(6.0)
"""


# Runs each program as a file and as `__main__`, and prints what became of it.
DRIVER = """
import json, sys
from pathlib import Path
found = {}
for path in json.loads(sys.argv[1]):
    space = {"__name__": "__main__", "__file__": path}
    exec(compile(Path(path).read_text(), path, "exec"), space)
    f, result = space["f"], space["result"]
    seconds = f.cache_info().entries[-1].seconds
    result = json.dumps(space["np"].asarray(result).tolist())
    found[Path(path).stem] = ["recalled" if "recall" in seconds else "traced", result]
compiler = "llvmlite" in sys.modules or "jitney.codegen.lowering.lower" in sys.modules
print(json.dumps([found, compiler]))
"""


class Runner:
    """Runs programs in a process of their own, all with one cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self, programs: dict[str, str], **environment: str) -> tuple[dict[str, Any], bool]:
        """What became of each program, and whether the compiler was loaded."""
        paths = []
        for name, program in programs.items():
            paths.append(self.folder / f"{name}.py")
            paths[-1].write_text(PRELUDE + textwrap.dedent(program))
        environment = {"JITNEY_CACHE_DIR": str(self.folder / "cache")} | environment
        said = warm.run(DRIVER, json.dumps([str(path) for path in paths]), **environment)
        found, compiler = json.loads(said.splitlines()[-1])
        return found, compiler

    def __call__(self, program: str, name: str = "program", **environment: str) -> str:
        """What became of one program: `recalled [1.0, 2.0]`."""
        return " ".join(self.all({name: program}, **environment)[0][name])


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


RECALLED = {
    "plain": "f = jt.jit(lambda x: x * 2 + 1)\nresult = f(x)",
    "static": "f = jt.jit(lambda x, n: x ** n, static_argnums=1)\nresult = f(x, 3)",
    "scalars": "f = jt.jit(lambda x, a, b: x * a + b)\nresult = f(x, 2, 0.5)",
    "helpers": """
        def inner(x): return x + offset
        offset = 4
        def helper(x): return inner(x) * math.pi
        f = jt.jit(lambda x: helper(x))
        result = f(x)
    """,
    "array_global": """
        w = np.arange(6.0) + 1
        f = jt.jit(lambda x: x @ w)
        result = f(x)
    """,
    "array_by_value": """
        n = np.array([2, 3])
        f = jt.jit(lambda x: sum(x * k for k in range(n[1])))
        result = f(x)
    """,
    "gradient": """
        f = jt.jit(jt.value_and_grad(lambda x: (np.tanh(x) ** 2).sum()))
        result = f(x)[1]
    """,
    "tree": """
        f = jt.jit(lambda p: {"a": p["w"] * 2, "b": (p["b"], 3)})
        result = f({"w": x, "b": x + 1})["a"]
    """,
    "dataclass": """
        @jt.register_pytree
        @dataclass
        class Layer:
            w: np.ndarray
            b: np.ndarray
            def __call__(self, x): return x * self.w + self.b
        f = jt.jit(lambda layer, x: layer(x))
        result = f(Layer(x, x + 1), x)
    """,
    "method": """
        class Model:
            def __init__(self): self.w, self.n = np.arange(6.0), 2
            @jt.jit
            def __call__(self, x): return (x * self.w) ** self.n
        model = Model()
        result = model(x)
        f = Model.__call__
    """,
    "counting_attribute": """
        class C: n = 0
        c = C()
        def g(x):
            c.n = c.n + 1
            return x
        f = jt.jit(g)
        result = f(x)
    """,
    "appending": """
        seen = []
        def g(x):
            seen.append(1)
            return x * len(seen)
        f = jt.jit(g)
        result = f(x)
    """,
    "in_place": """
        @jt.jit
        def f(u): u[1:] += u[:-1]
        f(x)
        result = x
    """,
    "generators": """
        class Model: pass
        model = Model()
        model.rng, model.other = np.random.default_rng(0), random.Random(1)
        draw = np.random.default_rng(2)
        f = jt.jit(lambda x: x * model.rng.random(6) + model.other.random() - draw.random())
        result = f(x) - f(x)
    """,
    "private_arrays": """
        f = jt.jit(lambda x: x + (x[1] * np.arange(6000.0)).sum())
        result = f(x)
    """,
    "while": """
        f = jt.jit(lambda a: jt.while_loop(lambda s: s < 100, lambda s: s * 2 + a, a))
        result = f(3.0)
    """,
    "autograph": """
        @jt.jit(autograph=True)
        def f(n):
            while n < 100:
                n = n * 3
            return n
        result = f(7)
    """,
    "named_tuple": """
        from collections import namedtuple
        Pair = namedtuple("Pair", "a b")
        f = jt.jit(lambda p: p.a - p.b)
        result = f(Pair(x, x * x))
    """,
    "partial_and_lru": """
        @functools.lru_cache
        def table(n): return tuple(range(n))
        def g(k, x): return x * sum(table(k))
        h = functools.partial(g, 5)
        f = jt.jit(lambda x: h(x))
        result = f(x)
    """,
    "enum_and_closure": """
        import enum
        class Mode(enum.Enum):
            A = 1
            B = 2
        def make(mode, names):
            def f(x):
                return x * len(names) if mode is Mode.B else x
            return f
        f = jt.jit(make(Mode.B, {"one", "two", "three"}))
        result = f(x)
    """,
    "custom_rule": """
        @jt.custom_vjp
        def twice(x): return 2 * x
        twice.defvjp(lambda x: (2 * x, None), lambda _, g: (3 * g,))
        f = jt.jit(jt.grad(lambda x: twice(x).sum()))
        result = f(x)
    """,
    "save": """
        f = jt.jit(jt.grad(lambda x: (np.sin(x) * np.exp(x)).sum()), save="min_cut")
        result = f(x)
    """,
}


def test_a_second_process_traces_nothing(run: Runner) -> None:
    first, loaded = run.all(RECALLED)
    assert loaded and {how for how, _ in first.values()} == {"traced"}
    second, loaded = run.all(RECALLED)
    assert second == {name: ["recalled", value] for name, (_, value) in first.items()}
    assert not loaded


MODULE = "m = types.ModuleType('settings_of_mine')"


# Programs and what is changed in them: the second has to be traced, and to give what it says.
CHANGES = {
    "code": ("f = jt.jit(lambda x: x * 2)\nresult = f(x)", "x * 2", "x * 3"),
    "constant": ("f = jt.jit(lambda x: x + 1.0)\nresult = f(x)", "1.0", "True"),
    "zero": ("f = jt.jit(lambda x: np.copysign(x, 0.0))\nresult = f(x)", "0.0", "-0.0"),
    "global": ("k = 2\nf = jt.jit(lambda x: x * k)\nresult = f(x)", "k = 2", "k = 5"),
    "default": ("f = jt.jit(lambda x, *, k=2: x * k)\nresult = f(x)", "k=2", "k=7"),
    "helper": (
        "def deep(x): return x + 1\ndef g(x): return deep(x)\nf = jt.jit(lambda x: g(x))\nresult = f(x)",
        "x + 1",
        "x + 2",
    ),
    "list": ("ks = [1, 2]\nf = jt.jit(lambda x: x * sum(ks))\nresult = f(x)", "[1, 2]", "[1, 3]"),
    "functions_in_a_list": (
        "def a(x): return x + 1\nfs = [a]\n"
        "f = jt.jit(lambda x: functools.reduce(lambda v, g: g(v), fs, x))\nresult = f(x)",
        "x + 1",
        "x + 9",
    ),
    "attribute": (
        "class C: pass\nc = C()\nc.k = 2\nf = jt.jit(lambda x: x * c.k)\nresult = f(x)",
        "c.k = 2",
        "c.k = 4",
    ),
    "method": (
        "class C:\n    def g(self, x): return x + 1\nc = C()\nf = jt.jit(lambda x: c.g(x))\n"
        "result = f(x)",
        "x + 1",
        "x + 3",
    ),
    "base_class": (
        "class A:\n    k = 1\nclass B(A): pass\nf = jt.jit(lambda x: x + B().k)\nresult = f(x)",
        "k = 1",
        "k = 8",
    ),
    "an_ordered_dict_of_a_class": (
        "class A:\n    k = collections.OrderedDict(a=1)\n"
        "f = jt.jit(lambda x: x + A.k['a'])\nresult = f(x)",
        "a=1",
        "a=8",
    ),
    "argument_class": (
        "@jt.register_pytree\n@dataclass\nclass L:\n    w: np.ndarray\n"
        "    def g(self): return self.w * 2\nf = jt.jit(lambda l: l.g())\nresult = f(L(x))",
        "self.w * 2",
        "self.w * 5",
    ),
    "static_value": (
        "f = jt.jit(lambda x, n: x ** n, static_argnums=1)\nresult = f(x, 2)",
        "f(x, 2)",
        "f(x, 3)",
    ),
    "dtype": ("f = jt.jit(lambda x: x / 3)\nresult = f(x)", "f(x)", "f(x.astype(np.float32))"),
    "layout": ("f = jt.jit(lambda x: x / 3)\nresult = f(x)", "f(x)", "f(x[::-1])"),
    "option": (
        "f = jt.jit(lambda x: x / 3, fastmath=False)\nresult = f(x)",
        "fastmath=False",
        "fastmath=True",
    ),
    "array_by_value": (
        "n = np.array([2, 3])\nf = jt.jit(lambda x: sum(x * k for k in range(n[1])))\nresult = f(x)",
        "[2, 3]",
        "[2, 4]",
    ),
    "two_names": (
        "a = np.ones(6); b = np.ones(6)\n@jt.jit\ndef f(x):\n    a[:] = x\n    return b + 1\n"
        "result = f(x)",
        "b = np.ones(6)",
        "b = a",
    ),
    "class_of_a_generator": (
        "r = np.random.Generator(np.random.PCG64(0))\nf = jt.jit(lambda x: x + r.random(6))\n"
        "result = f(x)",
        "PCG64",
        "MT19937",
    ),
    "two_names_of_a_generator": (
        "class C: pass\nc = C(); c.a = np.random.default_rng(0); c.b = np.random.default_rng(0)\n"
        "f = jt.jit(lambda x: x + c.a.random(6) - c.b.random(6))\nresult = f(x)",
        "c.b = np.random.default_rng(0)",
        "c.b = c.a",
    ),
    "closure": (
        "def make(k): return lambda x: x * k\nf = jt.jit(make(2))\nresult = f(x)",
        "make(2)",
        "make(6)",
    ),
    "order_of_a_set": (
        "ks = {0, 8}\nf = jt.jit(lambda x: functools.reduce(lambda v, k: v * 2 + k, ks, x))\n"
        "result = f(x)",
        "{0, 8}",
        "{8, 0}",
    ),
    "order_of_keywords": (
        "def g(**k): return functools.reduce(lambda v, n: v * 2 + k[n], k, 0.0)\n"
        "f = jt.jit(g)\nresult = f(a=x, b=x + 1)",
        "a=x, b=x + 1",
        "b=x + 1, a=x",
    ),
    "order_of_keys": (
        "def g(k): return functools.reduce(lambda v, n: v * 2 + k[n], k, 0.0)\n"
        "f = jt.jit(g)\nresult = f({'a': x, 'b': x + 1})",
        "'a': x, 'b': x + 1",
        "'b': x + 1, 'a': x",
    ),
    "kinds_of_keys": (
        "f = jt.jit(lambda d: sum(v * k for k, v in d.items()))\nresult = f({1: x > 2})",
        "1: x",
        "1.0: x",
    ),
    "length_of_a_deque": (
        "q = collections.deque([1, 2], maxlen=2)\ndef g(x):\n    p = q.copy(); p.append(5)\n"
        "    return x * sum(p)\nf = jt.jit(g)\nresult = f(x)",
        "maxlen=2",
        "maxlen=3",
    ),
    "numbers_of_a_list_that_python_asks_for": (
        "@jt.jit\ndef f(v):\n    v[1] = v[0]\n    return sum(np.ones(v[0]))\nresult = f([3, 1])",
        "3, 1",
        "7, 5",
    ),
    "number_of_an_object_that_python_asks_for": (
        "class C: pass\nc = C()\nc.n = 2\n@jt.jit\ndef f(c):\n    c.n += 1\n"
        "    return sum(np.ones(c.n))\nresult = f(c)",
        "c.n = 2",
        "c.n = 5",
    ),
    "function_name": (
        "def h(): pass\nh.__name__ = 'abc'\nf = jt.jit(lambda x: x * len(h.__name__))\n"
        "result = f(x)",
        "'abc'",
        "'abcd'",
    ),
    "class_documentation": (
        "class C:\n    'abc'\nf = jt.jit(lambda x: x * len(C.__doc__))\nresult = f(x)",
        "'abc'",
        "'abcd'",
    ),
    "function_documentation": (
        "def g(): pass\ng.__doc__ = 'abc'\nf = jt.jit(lambda x: x * len(g.__doc__))\nresult = f(x)",
        "'abc'",
        "'abcd'",
    ),
    "class_name": (
        "class C: pass\nC.__name__ = 'abc'\n"
        "f = jt.jit(lambda x: x * len(type(C()).__name__))\nresult = f(x)",
        "'abc'",
        "'abcd'",
    ),
    "flags_without_a_name": (
        "flag = enum.IntFlag('Flags', 'one two')(8)\nf = jt.jit(lambda x: x * int(flag))\n"
        "result = f(x)",
        "(8)",
        "(16)",
    ),
    "a_module_passed_on": (
        f"{MODULE}\nm.scale = 2\ndef helper(module, x): return x * module.scale\n"
        "f = jt.jit(lambda x: helper(m, x))\nresult = f(x)",
        "scale = 2",
        "scale = 3",
    ),
    "a_module_in_a_closure": (
        f"{MODULE}\nm.scale = 2\ndef g(x):\n    module = m\n"
        "    return x * (lambda: module.scale)()\nf = jt.jit(g)\nresult = f(x)",
        "scale = 2",
        "scale = 3",
    ),
    "a_module_behind_a_module": (
        f"{MODULE}\nm.other = types.ModuleType('other')\nm.other.scale = 2\n"
        "def helper(module, x): return x * module.scale\n"
        "f = jt.jit(lambda x: helper(m.other, x))\nresult = f(x)",
        "scale = 2",
        "scale = 3",
    ),
    "a_replaced_function_of_numpy": (
        "def triple(x): return x * 3\nkept = np.cbrt\n0\n"
        "f = jt.jit(lambda x: np.cbrt(x))\nresult = f(x)\nnp.cbrt = kept",
        "\n0\n",
        "\nnp.cbrt = triple\n",
    ),
    "getattr": (
        "class C: pass\nc = C()\nc.k1 = 2\nf = jt.jit(lambda x: x * getattr(c, 'k%d' % 1))\n"
        "result = f(x)",
        "c.k1 = 2",
        "c.k1 = 4",
    ),
}


def test_changed_programs_are_traced(run: Runner) -> None:
    programs = {name: program for name, (program, _, _) in CHANGES.items()}
    changed = {name: program.replace(old, new) for name, (program, old, new) in CHANGES.items()}
    assert all(programs[name] != changed[name] for name in programs)
    run.all(programs)
    assert {how for how, _ in run.all(programs)[0].values()} == {"recalled"}
    assert run.all(changed)[0] == run.all(changed, JITNEY_CACHE="0")[0]


NEVER = {
    "names_looked_up_in_a_module": """
        m = types.ModuleType("settings_of_mine")
        m.scale = 2
        def get(module, name): return getattr(module, name)
        f = jt.jit(lambda x: x * get(m, "scale"))
        result = f(x)
    """,
    "attrgetter": """
        m = types.ModuleType("settings_of_mine")
        m.scale = 2
        f = jt.jit(lambda x: x * operator.attrgetter("scale")(m))
        result = f(x)
    """,
    "names_of_a_module": """
        m = types.ModuleType("settings_of_mine")
        m.scale = 2
        f = jt.jit(lambda x: x * m.__dict__["scale"])
        result = f(x)
    """,
    "globals_of_a_function": """
        scale = 2
        def h(): pass
        f = jt.jit(lambda x: x * h.__globals__["scale"])
        result = f(x)
    """,
    "annotations": """
        class C: k: int
        f = jt.jit(lambda x: x * len(C.__annotations__["k"].__name__))
        result = f(x)
    """,
    "array_of_a_class": """
        class C: w = np.arange(6.0)  # an array that the code refers to
        f = jt.jit(lambda x: x + C.w)
        result = f(x)
    """,
    "clock": "f = jt.jit(lambda x: x * 0 + time.time() * 0)\nresult = f(x)",
    "environment": "f = jt.jit(lambda x: x * len(os.environ))\nresult = f(x) * 0",
    "imported_function": """
        from time import perf_counter as now
        f = jt.jit(lambda x: x + 0 * now())
        result = f(x)
    """,
    "import_inside": """
        def g(x):
            import platform
            return x + len(platform.node()) * 0
        f = jt.jit(g)
        result = f(x)
    """,
    "print": "f = jt.jit(lambda x: (x, print(end=''))[0])\nresult = f(x)",
    "global_statement": """
        count = 0
        def g(x):
            global count
            count += 1
            return x
        f = jt.jit(g)
        result = f(x)
    """,
    "callback": """
        f = jt.jit(lambda x: jt.pure_callback(lambda v: v + 1, jt.ShapeDtype((6,), np.float64), x))
        result = f(x)
    """,
    "computed_names": "f = jt.jit(lambda x: getattr(np, 's' + 'in')(x))\nresult = f(x)",
    "globals": "k = 2\nf = jt.jit(lambda x: x * globals()['k'])\nresult = f(x)",
}


def test_what_a_hash_cannot_see_is_traced_each_time(run: Runner) -> None:
    first, second = run.all(NEVER)[0], run.all(NEVER)[0]
    assert first == second and {how for how, _ in second.values()} == {"traced"}


def test_other_values_of_arrays_that_are_inputs_are_recalled(run: Runner) -> None:
    program = "w = np.arange(6.0)\nf = jt.jit(lambda x: x + w)\nresult = f(x)"
    assert run(program) == f"traced {[2.0 * k for k in range(6)]}"
    assert run(program.replace("np.arange(6.0)", "np.ones(6)")) == (
        f"recalled {[1.0 + k for k in range(6)]}"
    )


def test_functions_in_containers_that_read_arrays(run: Runner) -> None:
    program = """
    def inner(x):
        return x * V.sum()

    V, several = np.ones(3), [inner]
    f = jt.jit(lambda x: several[0](x) + 1)
    f(x[2])
    V = V * 2
    result = f(x[2])
    """
    assert run(program) == "traced 13.0"
    assert run(program) == "recalled 13.0"


def test_a_moved_file_is_recalled_and_errors_name_it_where_it_is(run: Runner) -> None:
    program = """
        f = jt.jit(lambda x, i: x[i])
        result = f(x, 2)
        try:
            f(x, 77)
        except IndexError as error:
            print(str(error).splitlines()[-1].strip(), file=sys.stderr)
            assert os.path.basename(__file__) in error.__notes__[0]
    """
    assert run(program).startswith("traced")
    assert run(program, "moved").startswith("recalled")


def test_a_notebook_has_other_file_names_in_each_process(run: Runner) -> None:
    program = """
        cell = "def g(x):\\n    return x[7] if len(x) > 7 else x * 2\\n"
        exec(compile(cell, f"/tmp/ipykernel_{os.getpid()}/1.py", "exec"), globals())
        f = jt.jit(g)
        result = f(x)
    """
    assert run(program).startswith("traced")
    assert run(program).startswith("recalled")


def test_damaged_records_are_traced_anew(run: Runner) -> None:
    program = RECALLED["plain"]
    run(program)
    folder = run.folder / "cache"
    for path in folder.iterdir():
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert run(program).startswith("traced")
    assert run(program).startswith("recalled")
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:50])
    assert run(program).startswith("traced")


def test_missing_code_is_traced_anew(run: Runner) -> None:
    program = RECALLED["plain"]
    run(program)
    largest = max((run.folder / "cache").iterdir(), key=lambda path: path.stat().st_size)
    for path in (run.folder / "cache").iterdir():
        if path.stat().st_size > 1000 and path != largest:
            path.unlink()
    assert run(program).split()[0] in ("traced", "recalled")
    assert run(program).startswith("recalled")


def test_check_and_the_interpreter_never_recall(run: Runner) -> None:
    for option in ("check=True", "backend='interpreter'"):
        program = f"f = jt.jit(lambda x: x * 2 + 1, {option})\nresult = f(x)"
        assert run(program).startswith("traced") and run(program).startswith("traced")


def test_code_for_another_level_of_cpu_is_another(run: Runner) -> None:
    from jitney.runtime.native.host import host_target

    if not host_target().has("avx2") or not host_target().triple.startswith("x86_64"):
        pytest.skip("this CPU has no such level")
    program = "f = jt.jit(lambda x: np.exp(x) * 2)\nresult = f(x)"
    for cpu in ("x86-64-v3", "x86-64-v2", "native"):
        assert run(program, JITNEY_CPU=cpu).startswith("traced")
        assert run(program, JITNEY_CPU=cpu).startswith("recalled")
