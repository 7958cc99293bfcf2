"""`jt.compare` finds planted faults and names the op; it finds none where there is none."""

import importlib
import inspect
import textwrap
from contextlib import contextmanager

import numpy as np
import pytest

import jitney as jt
from jitney.codegen.math import functions
from jitney.ir.opdef import OPS
from jitney.runtime.compile import clear_memory_cache
from jitney.tracer.arrays.lowerings import LOWERINGS

X = np.linspace(0.2, 1.7, 40)
S = np.linspace(-1, 1, 6).reshape(2, 3)


@contextmanager
def fresh():
    """Nothing that was compiled before is known."""
    with jt.config(cache=False, verify=False):
        clear_memory_cache()
        functions._function.cache_clear()
        try:
            yield
        finally:
            clear_memory_cache()
            functions._function.cache_clear()


@contextmanager
def rewritten(where, old, new):
    """A function of the package with other text: whoever holds it runs that."""
    module_name, _, name = where.partition(":")
    module = importlib.import_module(f"jitney.{module_name}")
    function = module
    for part in name.split("."):
        function = inspect.getattr_static(function, part)
    text = textwrap.dedent(inspect.getsource(function))
    assert text.count(old) == 1, (where, text.count(old))
    names: dict = {}
    source = "from __future__ import annotations\n" + text.replace(old, new)
    exec(compile(source, module.__file__, "exec"), vars(module), names)
    before, function.__code__ = function.__code__, names[function.__name__].__code__
    try:
        yield
    finally:
        function.__code__ = before


@contextmanager
def replaced(table, key, new):
    before, table[key] = table[key], new
    try:
        yield
    finally:
        table[key] = before


@contextmanager
def attribute(record, name, new):
    before = getattr(record, name)
    object.__setattr__(record, name, new)
    try:
        yield
    finally:
        object.__setattr__(record, name, before)


def expansion(name, change):
    from jitney.codegen.math import EXPANSIONS

    right = EXPANSIONS[name]
    return lambda: replaced(EXPANSIONS, name, lambda *a: change(right(*a), *a))


def wrong_pass(name, op, other):
    """The pass of this name, which takes one op for another."""
    from jitney.ir import passes
    from jitney.ir.build import Builder
    from jitney.ir.graph import Graph

    @contextmanager
    def planted():
        right = next(p for p in passes.PIPELINE if p.__name__ == name)

        def wrong(graph):
            graph = right(graph)
            new = Graph(graph.name)
            env = {p: new.add_param(p.type, p.name) for p in graph.params}
            b = Builder(new)
            for each in graph.ops:
                if each.name == op:
                    env[each.result] = getattr(b, other)(*(env[v] for v in each.operands))
                else:
                    b.copy(each, env)
            new.outputs = [env[v] for v in graph.outputs]
            return new

        wrong.__name__ = name
        before = passes.PIPELINE
        passes.PIPELINE = tuple(wrong if p is right else p for p in before)
        try:
            yield
        finally:
            passes.PIPELINE = before

    return planted


def partials(name, change):
    """The op's derivative rule, changed."""
    definition = OPS[name]
    right = definition.vjp

    def wrong(b, *args, **kwargs):
        return [g and change(b, g) for g in right(b, *args, **kwargs)]

    return lambda: attribute(definition, "vjp", wrong)


def chain(x):
    y = np.exp(x) + 1
    z = np.sqrt(y) * np.tanh(x)
    return z - np.arctan2(y, x)


def looped(x):
    for i in range(x.shape[0]):
        x[i] = np.tanh(x[i]) * 2 + np.log1p(x[i])
    return x


def long_loop(x, n):
    for _ in range(n):
        x = np.tanh(x) * 1.5 - np.exp(-x)
    return x


def branch(x):
    if x.sum() > 0:
        y = np.cos(x)
    else:
        y = np.sin(x)
    return y * 2


def shifted(x):
    y = np.exp(x) * 2
    return y + y[::-1]


SHIFT = ("access.index == own):", "True):")
FAULTS = {
    # emitters
    "tanh": (expansion("tanh", lambda r, x: r * 1.001), chain, (X,), "tanh"),
    "exp": (expansion("exp", lambda r, x: r + 1e-6), chain, (X,), "exp"),
    "arctan2": (expansion("arctan2", lambda r, y, x: -r), chain, (X,), "arctan2"),
    "in a loop over elements": (expansion("log1p", lambda r, x: r * 2), looped, (X,), "log1p"),
    "in a long loop": (expansion("tanh", lambda r, x: r + 0.25), long_loop, (X, 5), "tanh"),
    "in a branch": (expansion("cos", lambda r, x: r * r), branch, (X,), "cos"),
    "in lanes of vmap": (
        expansion("sin", lambda r, x: r + 1),
        jt.vmap(lambda r: np.sin(r).sum()),
        (S,),
        "sin",
    ),
    "NaN in maxima": (
        lambda: rewritten(
            "codegen.math.arithmetic:maximum",
            'select(is_nan(y), y, top) if x.dtype.kind == "f" else top',
            "top",
        ),
        lambda x, y: np.maximum(x, y) + 1,
        (X, np.where(X > 1, np.nan, X)),
        "maximum",
    ),
    "random counters": (
        lambda: rewritten("codegen.math.random:threefry", "(step + 1))", "step)"),
        lambda x: x + jt.random.uniform(jt.random.key(3), (40,)),
        (X,),
        "threefry",
    ),
    # passes
    "simplify": (wrong_pass("simplify", "sub", "add"), chain, (X,), "sub"),
    "hoist": (wrong_pass("hoist_invariants", "mul", "add"), chain, (X,), "mul"),
    "sink": (wrong_pass("sink_views", "add", "sub"), chain, (X,), "add"),
    "fusion": (
        lambda: rewritten("codegen.schedule.fusion:_join_map", *SHIFT),
        shifted,
        (X,),
        "add",
    ),
    # rules of ops
    "tanh's derivative": (partials("tanh", lambda b, g: b.mul(g, g)), chain, (X,), "tanh"),
    "sqrt's derivative": (partials("sqrt", lambda b, g: b.neg(g)), chain, (X,), "sqrt"),
    "exp's derivative": (partials("exp", lambda b, g: b.add(g, g)), long_loop, (X, 3), "exp"),
    "a reference": (
        lambda: attribute(OPS["erf"], "reference", lambda x: np.tanh(x)),
        lambda x: jt.erf(x) * 2,
        (X,),
        "erf",
    ),
    # tracing
    "arctan2 the other way": (
        lambda: replaced(LOWERINGS, "arctan2", lambda b, y, x: b.arctan2(x, y)),
        chain,
        (X,),
        "arctan2",
    ),
    "log1p without the 1": (
        lambda: replaced(LOWERINGS, "log1p", lambda b, x: b.log(x)),
        lambda x: np.log1p(x) + x,
        (X,),
        "log1p",
    ),
    "hypot of one": (
        lambda: replaced(LOWERINGS, "hypot", lambda b, x, y: b.hypot(x, x)),
        lambda x: np.hypot(x, 2 * x) - 1,
        (X,),
        "hypot",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found_and_the_op_is_named(name):
    plant, function, args, op = FAULTS[name]
    against = "interpreter" if name in ("a reference", "random counters") else None
    with fresh(), plant():
        found = jt.compare(lambda *a: function(*a), *args, against=against)
        assert not found and not found.same
        assert found.fault is not None, found
        assert found.fault.op == op, found
        assert "program that shows it" in found


def test_there_are_twenty():
    assert len(FAULTS) == 20


SAME = {
    "loops": (long_loop, (X, 4)),
    "branches": (branch, (X,)),
    "assignments": (looped, (X,)),
    "products": (
        lambda a: np.linalg.solve(a @ a.T + np.eye(3), a).sum(axis=0),
        (S.repeat(2, 0)[:3],),
    ),
    "trees": (lambda p: {"y": p["a"] * 2, "n": (p["b"].sum(), 3, "text")}, ({"a": X, "b": S},)),
    "complex numbers": (lambda x: np.exp(1j * x) * x, (X,)),
    "integers": (lambda x: (x // 2) % 3, (np.arange(-9, 9),)),
    "singles": (chain, (X.astype(np.float32),)),
    "NaN and infinity": (lambda x: np.log(x - 1), (X,)),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("against", [None, "interpreter"])
def test_what_is_right_has_no_fault(name, against):
    function, args = SAME[name]
    found = jt.compare(function, *args, against=against)
    assert found and found.fault is None, found
    assert found.gradients in ("agree", "are none"), found


def test_arguments_stay_as_they_are():
    x = X.copy()
    assert jt.compare(looped, x) and np.array_equal(x, X)


class Counter:
    def __init__(self):
        self.n = 0.0
        self.seen = np.zeros(3)

    @jt.jit
    def add(self, x):
        self.n += x.sum()
        self.seen[0] += 1
        return self.n * 2, self.seen * x


def test_methods_change_copies_of_their_objects():
    counter = Counter()
    assert jt.compare(counter.add, np.ones(3)) and jt.compare(
        counter.add, np.ones(3), gradients=False
    )
    assert counter.n == 0.0 and not counter.seen.any()
    assert jt.eval_shape(counter.add, np.ones(3)) == (jt.ShapeDtype(()), jt.ShapeDtype(3))
    assert jt.cost(counter.add, np.ones(3)).bytes > 0 and counter.n == 0.0


def test_functions_that_differ_are_told_by_values_and_places():
    def other(x):
        y = chain(x)
        y[7] += 0.5
        return y

    found = jt.compare(chain, X, against=other)
    assert not found and found.fault is None and "functions may differ" in found
    (difference,) = found.values
    assert (difference.count, difference.size, difference.at) == (1, 40, (7,))
    assert difference.most == pytest.approx(0.5) and difference.ulps > 1e12
    assert jt.compare(chain, X, against=jt.jit(chain)) and not jt.compare(chain, X, against=np.sin)


def test_gradients_that_differ_are_told_where_values_agree():
    @jt.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: (x * x, x), lambda x, g: (3 * x * g,))
    found = jt.compare(lambda x: f(x), X)
    assert not found and found.gradients == "differ" and not found.values


def test_shapes_and_kinds_of_results():
    found = jt.compare(lambda x: x, X, against=lambda x: x[None])
    assert "shape (40,) instead of shape (1, 40)" in found
    with pytest.raises(ValueError, match="interpreter"):
        jt.compare(chain, X, against="numpy")


def test_the_program_that_shows_a_fault_runs(capsys):
    with fresh(), FAULTS["tanh"][0]():
        program = jt.compare(chain, X).fault.program
        exec(program, {})
    assert len(program.splitlines()) < 14 and "array" in capsys.readouterr().out
