"""Python state that traced functions read, changed between calls and between processes."""

from __future__ import annotations

import array
import collections
import enum
import functools
import sys
import types
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import state_programs
from native_calls import native_hits
from support import misses

import jitney as jt
from jitney.tracer.captures.frozen import freeze
from jitney.tracer.captures.running import watched_code, without_watching

X = np.ones(3)
HERE = sys.modules[__name__]


class Metres(float):
    pass


class Scale:
    k = 1.0
    table: ClassVar = [3.0]

    def __init__(self) -> None:
        self.a = 2.0

    @classmethod
    def of_class(cls, x: Any) -> Any:
        return x * cls.k

    @staticmethod
    def fixed(x: Any) -> Any:
        return x * 2

    @property
    def prop(self) -> float:
        return self.a

    def method(self, x: Any) -> Any:
        return x * 2

    def __call__(self, x: Any) -> Any:
        return x * 9


class Other(Scale):
    def method(self, x: Any) -> Any:
        return x * 55


def with_default(x: Any, d: Any = [1.0]) -> Any:  # noqa: B006
    return x * d[0]


def with_attribute(x: Any) -> Any:
    return x * with_attribute.k  # type: ignore[attr-defined]


def of(v: Any, x: Any) -> Any:
    return x * v.k


def dig(x: Any) -> Any:
    found = state
    while isinstance(found, list):
        found = found[0]
    return x * found


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


def innermost(value: Any) -> list[Any]:
    while isinstance(value[0], list):
        value = value[0]
    return value


state: Any = None

# How the state is made, how a function reads it, how it is changed. `s` is the state.
CASES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a subclass of float": (
        lambda: Metres(2),
        lambda x: x * state,
        lambda s: setattr(HERE, "state", Metres(3)),
    ),
    "a class's attribute, by a classmethod": (
        lambda: type("C", (Scale,), {}),
        lambda x: state.of_class(x),
        lambda s: setattr(s, "k", 4.0),
    ),
    "a staticmethod": (
        lambda: type("C", (Scale,), {}),
        lambda x: state.fixed(x),
        lambda s: setattr(s, "fixed", staticmethod(lambda x: x * 66)),
    ),
    "a property": (
        lambda: type("C", (Scale,), {})(),
        lambda x: x * state.prop,
        lambda s: setattr(type(s), "prop", property(lambda s: 66.0)),
    ),
    "a call of an object": (
        lambda: type("C", (Scale,), {})(),
        lambda x: state(x),
        lambda s: setattr(type(s), "__call__", lambda s, x: x * 66),
    ),
    "a method of the object": (
        Scale,
        lambda x: state.method(x),
        lambda s: setattr(s, "method", lambda x: x * 77),
    ),
    "a method of a base": (
        lambda: type("C", (type("B", (Scale,), {}),), {})(),
        lambda x: state.method(x),
        lambda s: setattr(type(s).__base__, "method", lambda s, x: x * 77),
    ),
    "the class of the object": (
        Scale,
        lambda x: state.method(x),
        lambda s: setattr(s, "__class__", Other),
    ),
    "a class's list, of an object handed on": (
        lambda: type("C", (Scale,), {"table": [3.0]})(),
        lambda x: (lambda o: x * o.table[0])(state),
        lambda s: s.table.__setitem__(0, 5.0),
    ),
    "a default": (
        lambda: with_default.__defaults__,
        with_default,
        lambda s: s[0].__setitem__(0, 5.0),
    ),
    "an attribute of a function": (
        lambda: setattr(with_attribute, "k", 2.0),
        with_attribute,
        lambda s: setattr(with_attribute, "k", 3.0),
    ),
    "a shadowed builtin": (
        lambda: None,
        lambda x: abs(x),
        lambda s: setattr(HERE, "abs", lambda v: v * 100),
    ),
    "a constant of NumPy's": (
        lambda: setattr(np, "of_mine", 2.0),
        lambda x: x * np.of_mine,  # type: ignore[attr-defined]
        lambda s: setattr(np, "of_mine", 3.0),
    ),
    "another module": (
        lambda: types.SimpleNamespace(f=np.square),
        lambda x: state.f(x + 1),
        lambda s: setattr(HERE, "state", types.SimpleNamespace(f=np.negative)),
    ),
    "deque": (
        lambda: collections.deque([2.0]),
        lambda x: x * state[0],
        lambda s: s.rotate() or s.append(1.0) or s.reverse(),
    ),
    "array": (
        lambda: array.array("d", [2.0]),
        lambda x: x * state[0],
        lambda s: s.__setitem__(0, 5.0),
    ),
    "bytearray": (
        lambda: bytearray(b"\x02"),
        lambda x: x * state[0],
        lambda s: s.__setitem__(0, 5),
    ),
    "memoryview": (
        lambda: memoryview(bytearray(b"\x02")),
        lambda x: x * state[0],
        lambda s: s.__setitem__(0, 5),
    ),
    "UserDict": (
        lambda: collections.UserDict({0: 2.0}),
        lambda x: x * state[0],
        lambda s: s.__setitem__(0, 5.0),
    ),
    "UserList": (
        lambda: collections.UserList([2.0]),
        lambda x: x * state[0],
        lambda s: s.__setitem__(0, 5.0),
    ),
    "ChainMap": (
        lambda: collections.ChainMap({0: 2.0}),
        lambda x: x * state[0],
        lambda s: s.__setitem__(0, 5.0),
    ),
    "OrderedDict": (
        lambda: collections.OrderedDict(a=2.0, b=3.0),
        lambda x: x * next(iter(state.values())),
        lambda s: s.move_to_end("a"),
    ),
    "defaultdict": (
        lambda: collections.defaultdict(lambda: 2.0),
        lambda x: x * state.default_factory(),
        lambda s: setattr(s, "default_factory", lambda: 3.0),
    ),
    "a namespace": (
        lambda: types.SimpleNamespace(k=2.0),
        lambda x: of(state, x),
        lambda s: setattr(s, "k", 5.0),
    ),
    "vars": (
        lambda: types.SimpleNamespace(k=2.0),
        lambda x: x * vars(state)["k"],
        lambda s: setattr(s, "k", 5.0),
    ),
    "a module as a value": (
        lambda: types.ModuleType("of_the_user"),
        lambda x: x * getattr(state, "k", 2.0),
        lambda s: setattr(s, "k", 5.0),
    ),
    "a list in lists": (
        lambda: nested(2.0, 3000),
        dig,
        lambda s: innermost(s).__setitem__(0, 7.0),
    ),
    "a bound method of a dict": (
        lambda: {"k": 2.0},
        lambda x, get={}.get: x * (state.get("k") + (get("k") or 0)),
        lambda s: s.__setitem__("k", 5.0),
    ),
    "a cell of a function in a table": (
        lambda: [(lambda k: lambda: k)(2.0)],
        lambda x: x * state[0](),
        lambda s: setattr(s[0].__closure__[0], "cell_contents", 3.0),
    ),
    "a cache": (
        lambda: functools.lru_cache(lambda: Scale.k + len(TOLD)),
        lambda x: x * state(),
        lambda s: TOLD.append(1) or s.cache_clear(),
    ),
    "an iterator": (
        lambda: iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        lambda x: x * state.__length_hint__(),
        next,
    ),
    "an array of objects": (
        lambda: np.array([2.0, "a"], object),
        lambda x: x * state[0],
        lambda s: s.__setitem__(0, 5.0),
    ),
    "the value of a member of an enumeration": (
        lambda: [enum.Enum("Kind", "one two")(1)],
        lambda x: x * state[0].value,
        lambda s: setattr(s[0], "_value_", 5.0),
    ),
    "the dict of a member of an enumeration": (
        lambda: [enum.Enum("Kind", "one two")(1)],
        lambda x: x * state[0].value,
        lambda s: setattr(s[0], "__dict__", {**vars(s[0]), "_value_": 5.0}),
    ),
    "the name of a class": (
        lambda: [type("C", (Scale,), {})],
        lambda x: x * len(state[0].__name__),
        lambda s: setattr(s[0], "__name__", "Longer"),
    ),
    "the name of a function": (
        lambda: [lambda x: x],
        lambda x: x * len(state[0].__name__),
        lambda s: setattr(s[0], "__name__", "longer"),
    ),
    "what is said of a function": (
        lambda: [lambda x: x],
        lambda x: x * len(state[0].__doc__ or ""),
        lambda s: setattr(s[0], "__doc__", "of something"),
    ),
    "the module of a function that holds a list": (
        lambda: [lambda x, held=[]: x],
        lambda x: x * len(state[0].__module__),
        lambda s: setattr(s[0], "__module__", "another"),
    ),
    "an operator of a metaclass": (
        lambda: type("Meta", (type,), {"__len__": lambda cls: 2})("C", (), {}),
        lambda x: x * len(state),
        lambda s: setattr(type(s), "__len__", lambda cls: 5),
    ),
    "a property of a metaclass": (
        lambda: type("Meta", (type,), {"k": property(lambda cls: 2.0)})("C", (), {}),
        lambda x: x * state.k,
        lambda s: setattr(type(s), "k", property(lambda cls: 5.0)),
    ),
    "a method of a metaclass": (
        lambda: type("Meta", (type,), {"of": lambda cls, x: x * 2})("C", (), {}),
        lambda x: state.of(x),
        lambda s: setattr(type(s), "of", lambda cls, x: x * 5),
    ),
}
TOLD: list[int] = []


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("native", [True, False])
def test_a_change_is_seen(name: str, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    make, read, change = CASES[name]
    monkeypatch.setattr(HERE, "abs", abs, raising=False)
    monkeypatch.delattr(HERE, "abs")
    monkeypatch.setattr(np, "of_mine", 2.0, raising=False)
    monkeypatch.setattr(with_default, "__defaults__", ([1.0],))
    monkeypatch.setattr(HERE, "state", None)
    HERE.state = make()  # type: ignore[attr-defined]
    with jt.config(native_calls=native):
        f = jt.jit(read)
        for _ in range(3):
            np.testing.assert_array_equal(f(X), read(X))
        assert misses(f) == 1 or name in ("a cache", "an iterator")
        change(state if state is not None else with_default.__defaults__)
        want = read(X)
        for _ in range(3):
            np.testing.assert_array_equal(f(X), want)


OF_A_MODULE = """
def by_globals(x): return x * globals()["state"]
def by_eval(x): return x * eval("state")
def by_import(x):
    import of_a_module as here
    return x * here.state
"""


@pytest.mark.parametrize("name", ["by_globals", "by_eval", "by_import"])
@pytest.mark.parametrize("native", [True, False])
def test_a_change_of_a_whole_module_is_seen(
    name: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a module holds is compared, so not this one: from it all of pytest is reached."""
    here = types.ModuleType("of_a_module")
    monkeypatch.setitem(sys.modules, "of_a_module", here)
    exec(OF_A_MODULE, vars(here))
    here.state = 2.0  # type: ignore[attr-defined]
    read = getattr(here, name)
    with jt.config(native_calls=native):
        f = jt.jit(read)
        for state in (2.0, 3.0):
            here.state = state  # type: ignore[attr-defined]
            for _ in range(3):
                np.testing.assert_array_equal(f(X), X * state)


def test_snapshots_of_what_contains_itself_and_of_deep_values() -> None:
    value: list[Any] = [1.0]
    value.append(value)
    before, deep = freeze(value), nested(1.0, 100_000)
    assert before == freeze(value) and freeze(deep) == freeze(deep)
    value[0] = 2.0
    assert before != freeze(value)


@pytest.mark.parametrize(
    "first, second",
    [(1, 1.0), (1, True), (0.0, -0.0), (Metres(1), 1.0), (b"a", bytearray(b"a")), ({1}, {1.0})],
)
def test_snapshots_tell_kinds_of_equal_values(first: Any, second: Any) -> None:
    assert freeze(first) != freeze(second) and freeze([first]) != freeze([second])


def test_static_arguments_may_change_inside() -> None:
    scale, layers = Scale(), [2.0]
    calls: list[tuple[Any, Any]] = [
        (lambda x, s: x * s.a, scale),
        (lambda x, s: s(x), lambda x: x * layers[0] * FACTOR),
        (lambda x, s: s[1](x), (1, functools.partial(lambda k, x: x * k.a * layers[0], scale))),
    ]
    functions = [(jt.jit(f, static_argnums=1), f, static) for f, static in calls]
    for value in (2.0, 3.0, 4.0):
        scale.a = layers[0] = value
        for jitted, plain, static in functions:
            np.testing.assert_array_equal(jitted(X, static), plain(X, static))
            np.testing.assert_array_equal(jitted(X, static), plain(X, static))


class Mode(enum.Enum):
    ONE = 1
    TWO = 2

    def twice(self) -> int:
        return self.value * 2


mode = Mode.ONE


def test_members_of_enums_and_classes_are_guarded_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Any) -> Any:
        return x * (2 if mode is Mode.ONE else 3) + mode.twice() + isinstance(x, Scale)

    f = jt.jit(function)
    f(X)
    f(X)
    assert native_hits(f) == 1
    monkeypatch.setattr(HERE, "mode", Mode.TWO)
    np.testing.assert_array_equal(f(X), function(X))
    monkeypatch.setattr(Mode, "twice", lambda self: 100)
    np.testing.assert_array_equal(f(X), function(X))
    monkeypatch.setattr(Mode.TWO, "_value_", 7)
    monkeypatch.setattr(Mode, "twice", lambda self: self.value)
    np.testing.assert_array_equal(f(X), function(X))


# Which code ran

LARGE = {i: [float(i)] * 10 for i in range(1000)}
STEP = 0
FACTOR = 2.0


class Layer:
    def __init__(self, x: Any) -> None:
        self.x = x

    def used(self) -> Any:
        return self.x * FACTOR

    def unused(self) -> Any:
        return LARGE[STEP]


def test_a_class_is_not_guarded_by_what_its_unused_methods_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = jt.jit(lambda x: Layer(x).used())
    f(X)
    f(X)
    hits = native_hits(f)
    for step in range(5):
        monkeypatch.setattr(HERE, "STEP", step)
        monkeypatch.setitem(LARGE, step, [])
        np.testing.assert_array_equal(f(X), X * FACTOR)
    assert misses(f) == 1 and native_hits(f) == hits + 5
    monkeypatch.setattr(HERE, "FACTOR", 3.0)
    np.testing.assert_array_equal(f(X), X * 3)
    monkeypatch.setattr(Layer, "used", lambda self: self.x * 7)
    np.testing.assert_array_equal(f(X), X * 7)


def test_a_profiler_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: seen.add(frame.f_code.co_name))
    try:
        jt.jit(lambda x: Layer(x).used())(X)
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(before)
    assert "used" in seen


@pytest.mark.parametrize("profiler", [None, lambda *_: None], ids=["none", "another"])
def test_code_that_runs_is_noted(profiler: Any) -> None:
    a, b, c, d = functions = [
        lambda: 1,
        lambda: 2,
        lambda: 3,
        lambda: 4,
    ]
    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        with watched_code(True) as outer:
            a()
            with watched_code(True) as inner:
                b()
            assert without_watching({d.__code__}, c)() == 3
        with watched_code(True) as taken:
            sys.setprofile(None)
    finally:
        sys.setprofile(before)
    ran = [[watch.any({f.__code__}) for f in functions] for watch in (outer, inner)]
    unpaused = profiler is not None  # it sees all
    assert ran == [[True, True, unpaused, not unpaused], [False, True, False, False]]
    assert taken.everything and not (outer.everything or inner.everything)


def test_a_function_that_is_compiled_again_and_again_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = jt.jit(lambda x: x * STEP, backend="interpreter")
    with pytest.warns(jt.errors.RecompileWarning, match="STEP` changed from 48 to 49") as told:
        for step in range(60):
            monkeypatch.setattr(HERE, "STEP", step)
            f(X)
    assert len(told) == 1


# Transformations


def loss(x: Any) -> Any:
    return (x * x).sum()


custom = jt.custom_vjp(lambda x: x * 2)
custom.defvjp(lambda x: (x * 2, x), lambda r, g: (g * 2,))
TRANSFORMED = {
    "grad": jt.grad(loss),
    "value_and_grad": jt.value_and_grad(loss),
    "jacrev": jt.jacrev(loss),
    "jacfwd": jt.jacfwd(loss),
    "hessian": jt.hessian(loss),
    "vmap": jt.vmap(lambda x: x * 2),
    "checkpoint": jt.checkpoint(loss),
    "custom_vjp": custom,
    "partial": functools.partial(lambda k, x: x * k, 2.0),
    "twice": jt.grad(jt.checkpoint(lambda x: loss(jt.vmap(lambda y: y * 2)(x)))),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_calls_of_transformed_functions_ask_no_python(name: str) -> None:
    """The program of the call has no guard that Python checks."""
    f = jt.jit(TRANSFORMED[name])
    f(X)
    f(X)
    assert native_hits(f) == 1
    asked = sys.getprofile()
    calls: list[Any] = []
    sys.setprofile(lambda frame, event, _: calls.append(event) if event == "call" else None)
    try:
        f(X)
    finally:
        sys.setprofile(asked)
    assert not calls


def test_large_constants_are_as_fast_from_disk(tmp_path: Any) -> None:
    def function(x: Any) -> Any:
        return (
            np.vander(np.linspace(0, 1, 30), 30).T @ x + np.arange(900.0).reshape(30, 30)[::-1] @ x
        )

    x = np.ones(30)
    with jt.config(cache_dir=tmp_path / "c"):
        for way in ("trace", "recall"):
            f = jt.jit(function)
            np.testing.assert_allclose(f(x), function(x), rtol=1e-12)
            f(x)
            assert way in f.cache_info().entries[0].seconds and native_hits(f) == 1


class Two:
    def __init__(self, size: int, other: int) -> None:
        self.size, self.other = size, other


def test_numbers_that_python_asks_for_are_in_the_key_on_disk(tmp_path: Any) -> None:
    def function(a: Two) -> int:
        before = a.other
        a.other = 5
        a.size = len(np.zeros(a.size))  # so that all numbers of the object are compiled in
        return before

    with jt.config(cache_dir=tmp_path / "c"):
        for f in (jt.jit(function), jt.jit(function)):
            for other in (40, 100, 0):
                two = Two(3, other)
                assert (f(two), two.other, two.size) == (other, 5, 3)


# Random programs


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_random_programs(backend: str) -> None:
    counts = state_programs.in_process(range(40), backend=backend)
    assert counts["programs"] == 40 and not counts["stale"]


def test_random_programs_from_disk() -> None:
    counts = state_programs.from_disk(range(100, 125))
    assert counts["programs"] == 25 and not counts["stale"] and not counts["crashed"]
