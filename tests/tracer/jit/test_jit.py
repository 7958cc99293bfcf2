"""jit: arguments, structure, results, methods, options, inspection, the cache, threads."""

from __future__ import annotations

import collections
import copy
import functools
from collections import OrderedDict, namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from support import misses

import jitney as jt

pytestmark = pytest.mark.usefixtures("calls")

X = np.arange(3.0)
Point = namedtuple("Point", "x y")


# Arguments


@pytest.mark.parametrize(
    "value",
    [2, 2.5, True, np.float32(1.5), np.int8(3), np.bool_(True), np.float64(2), np.array(3.0)],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_, np.uint64])
def test_scalars_promote_as_in_numpy(value: Any, dtype: type) -> None:
    def f(x, s):
        return x + s, s + s, s

    x = np.array([0, 1, 1]).astype(dtype)
    want = f(x, value)
    got = jt.jit(f)(x, value)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)
        assert type(a) is type(b)
        assert np.asarray(a).dtype == np.asarray(b).dtype


def test_a_python_scalar_is_an_input_not_a_constant() -> None:
    f = jt.jit(lambda x, s: x * s)
    for s in (1, 2, -7):
        np.testing.assert_array_equal(f(X, s), X * s)
    assert misses(f) == 1
    f(X, 1.5)
    assert misses(f) == 2


def test_python_scalars_give_python_scalars() -> None:
    f = jt.jit(lambda a, b: (a + b, a / b, a > b))
    got = f(7, 2)
    assert got == (9, 3.5, True) and [type(v) for v in got] == [int, float, bool]


def test_results_that_are_scalars_in_numpy() -> None:
    f = jt.jit(lambda x: (x.sum(), x[0], x[0, ...], x.sum(keepdims=True), np.max(x) > 1))
    for a, b in zip(f(X), f.__wrapped__(X), strict=True):
        assert type(a) is type(b) and np.shape(a) == np.shape(b)


TREES: list[Any] = [
    (X, X + 1),
    [X, [X, (X,)]],
    {"b": X, "a": [X, 2.0]},
    OrderedDict(b=X, a=X),
    collections.defaultdict(list, {"k": X}),
    collections.deque([X, X]),
    Point(X, {"z": X}),
    (None, X, ()),
    [],
    {"none": None, "list": [1, 2.5]},
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_pytrees_go_in_and_come_out(tree: Any) -> None:
    f = jt.jit(lambda t: (t, jt.tree.map(lambda v: v * 1, t)))
    same, times_one = f(tree)
    for got in (same, times_one):
        assert type(got) is type(tree)
        assert str(got) == str(tree)


def test_dict_order_of_the_result_is_the_users() -> None:
    f = jt.jit(lambda x: {"z": x, "a": x + 1, "m": x})
    assert list(f(X)) == ["z", "a", "m"]


@dataclass
class Layer:
    w: Any
    b: Any = 0.0
    history: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Frozen:
    w: Any
    n: int = field(init=False, default=3)


def test_dataclasses() -> None:
    f = jt.jit(lambda layer: Layer(layer.w * 2, layer.b + 1, [layer.w]))
    got = f(Layer(X, 1.0))
    assert type(got) is Layer and got.b == 2.0 and type(got.b) is float
    np.testing.assert_array_equal(got.w, X * 2)
    got = jt.jit(lambda p: p)(Frozen(X))
    assert type(got) is Frozen and got.w is X


def test_registered_types() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any, name: str) -> None:
            self.a, self.b, self.name = a, b, name

    jt.register_pytree(Pair, lambda p: ((p.a, p.b), p.name), lambda name, ab: Pair(*ab, name))
    f = jt.jit(lambda p: Pair(p.b, p.a, p.name + "!"))
    got = f(Pair(X, 1.0, "one"))
    assert got.a == 1.0 and got.name == "one!"
    np.testing.assert_array_equal(got.b, X)
    f(Pair(X, 2.0, "one"))
    assert misses(f) == 1
    f(Pair(X, 2.0, "two"))
    assert misses(f) == 2
    with pytest.raises(ValueError, match="already registered"):
        jt.register_pytree(Pair, lambda p: ((), None), lambda s, c: None)


def test_static_values_that_are_equal_but_of_other_kinds_have_code_of_their_own() -> None:
    class Scaled:
        def __init__(self, x: Any, by: Any) -> None:
            self.x, self.by = x, by

    jt.register_pytree(Scaled, lambda s: ((s.x,), s.by), lambda by, x: Scaled(x[0], by))
    f = jt.jit(lambda s: (s.x * s.by, s.by))
    for _ in range(2):
        for by in (2, 2.0, True, 1, 1.0, 0.0, -0.0):
            assert repr(f(Scaled(np.arange(3), by))) == repr((np.arange(3) * by, by))


def test_a_dataclass_with_static_fields() -> None:
    @functools.partial(jt.register_pytree, static_fields=("activation",))
    @dataclass
    class Net:
        w: Any
        activation: str = "tanh"

    f = jt.jit(lambda net, x: getattr(np, net.activation)(x * net.w))
    np.testing.assert_array_equal(f(Net(X), X), np.tanh(X * X))
    np.testing.assert_array_equal(f(Net(X, "sin"), X), np.sin(X * X))


def test_keywords_defaults_and_varargs() -> None:
    def f(a, b=2.0, *rest, c, d=None, **more):
        total = a * b + c
        for r in rest:
            total = total + r
        if d is not None:
            total = total - d
        for name in sorted(more):
            total = total * more[name]
        return total

    jitted = jt.jit(f)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((X,), {"c": 1.0}),
        ((X, 3.0), {"c": X}),
        ((X, 3.0, X, 1), {"c": 1}),
        ((), {"a": X, "c": 1.0, "b": X}),
        ((X,), {"c": 1.0, "d": X, "e": 2.0, "f": X}),
        ((X,), {"f": X, "e": 2.0, "d": X, "c": 1.0}),
    ]
    for args, kwargs in calls * 2:
        np.testing.assert_array_equal(jitted(*args, **kwargs), f(*args, **kwargs))
    assert misses(jitted) == 6  # the last two differ in an order that the function can see
    with pytest.raises(TypeError, match="missing a required"):
        jitted(c=1.0)
    with pytest.raises(TypeError, match="missing 1 required|missing a required"):
        jitted(X)


def test_keywords_and_positions_share_their_code() -> None:
    f = jt.jit(lambda x, y: x - y)
    f(X, X)
    np.testing.assert_array_equal(f(y=X, x=X + 1), np.ones(3))
    np.testing.assert_array_equal(f(X + 2, y=X), np.full(3, 2.0))
    np.testing.assert_array_equal(f(y=X, x=X + 1), np.ones(3))
    assert misses(f) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"static_argnums": 1},
        {"static_argnames": "n"},
        {"static_argnums": -1},
        {"static_argnames": ["n"]},
        {"static_argnums": (1,), "static_argnames": ("n",)},
    ],
    ids=str,
)
def test_static_arguments(options: dict[str, Any]) -> None:
    @jt.jit(**options)
    def f(x, n=2):
        for _ in range(n):
            x = x * 2
        return x

    np.testing.assert_array_equal(f(X, 3), X * 8)
    np.testing.assert_array_equal(f(X, n=3), X * 8)
    assert misses(f) == 1
    np.testing.assert_array_equal(f(X, n=1), X * 2)
    np.testing.assert_array_equal(f(X), X * 4)
    assert misses(f) == 3
    f(X, True)  # equal to 1, but another type
    assert misses(f) == 4


def test_static_arguments_of_any_hashable_kind() -> None:
    f = jt.jit(lambda x, g, mode: g(x) if mode == "on" else x, static_argnums=(1, 2))
    np.testing.assert_array_equal(f(X, np.sqrt, "on"), np.sqrt(X))
    np.testing.assert_array_equal(f(X, np.negative, "on"), -X)
    np.testing.assert_array_equal(f(X, np.negative, ("off",)), X)


@pytest.mark.parametrize(
    "values",
    [
        (0.0, -0.0),
        (np.float32(0.0), np.float32(-0.0)),
        (1, 1.0, np.float32(1.0)),
        ((2,), (2.0,), (np.int8(2),)),
        (((0.0,), 1), ((-0.0,), 1), ((0.0,), 1.0)),
    ],
    ids=repr,
)
def test_static_values_that_python_calls_equal_are_told_apart(values: tuple[Any, ...]) -> None:
    @dataclass(frozen=True)
    class Setting:
        value: Any

    def first(value: Any) -> Any:
        return first(value[0]) if isinstance(value, tuple) else value

    f = jt.jit(lambda n, x: x * first(n.value if isinstance(n, Setting) else n), static_argnums=0)
    for value in values:
        for n in (value, Setting(value)):
            result, expected = f(n, 3), 3 * first(value)
            assert type(result) is type(expected) and repr(result) == repr(expected)
    assert misses(f) == 2 * len(values)


def test_a_static_nan_is_compiled_once() -> None:
    f = jt.jit(lambda x, n: x * n, static_argnames="n")
    assert np.isnan([f(1.0, n=float("nan")) for _ in range(3)]).all()
    assert misses(f) == 1


def test_static_fields_are_compared_exactly_and_must_be_hashable() -> None:
    @functools.partial(jt.register_pytree, static_fields=("factor",))
    @dataclass
    class Scaled:
        x: Any
        factor: Any

    f = jt.jit(lambda s: s.x * s.factor)
    for factor in (1, 1.0, True, -0.0, 0.0):
        result, expected = f(Scaled(np.arange(1, 3), factor)), np.arange(1, 3) * factor
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(np.copysign(1, result), np.copysign(1, expected))
    with pytest.raises(TypeError, match=r"Scaled\.factor is a static field .* unhashable \(list\)"):
        f(Scaled(X, [1]))


def test_an_object_inside_of_a_container_is_refused_with_a_way_out() -> None:
    with pytest.raises(jt.errors.ArgumentError, match="static_argnames='d'"):
        jt.jit(lambda d: d["x"])({"x": X, "names": object()})


# What NumPy code would do to the caller's containers.


@dataclass
class Model:
    w: Any
    n: int = 2


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        (lambda m: m.update(new=m["x"] * 2), {"x": X}),
        (lambda m: m.update(x=m["x"] * 2), {"x": X}),
        (lambda m: m.pop("x"), {"x": X}),
        (lambda m: m["inner"].clear(), {"inner": [X]}),
        (lambda m: m.append(1), []),
        (lambda m: setattr(m, "n", 5), Model(X)),
    ],
)
def test_a_change_to_a_container_of_the_caller_is_made(change: Any, argument: Any) -> None:
    want = copy.deepcopy(argument)
    change(want)
    functions = (jt.jit(change), jt.jit(lambda m: change(m)), jt.jit(lambda *, m: change(m)))
    for k, f in enumerate(functions):
        given = copy.deepcopy(argument)
        f(m=given) if k == 2 else f(given)
        assert repr(given) == repr(want)


def test_containers_of_the_function_s_own_may_change() -> None:
    @jt.jit(static_argnames="sizes")
    def f(params, *more, sizes=(), **options):
        params["w"] += 1  # an array: in place
        params = dict(params)
        params["w"] = params["w"] * 2
        options["scale"] = options.pop("scale", 1) * 3
        return params["w"] * options["scale"] + len(more) + len(sizes)

    given = {"w": np.zeros(2)}
    np.testing.assert_array_equal(f(given, 1, (2,), sizes=(1, 2), scale=2), [16, 16])
    np.testing.assert_array_equal(given["w"], [1, 1])


def test_layouts_and_dtypes_of_arguments() -> None:
    f = jt.jit(lambda x: x * 2 + x.sum(axis=0))
    base = np.arange(24.0).reshape(4, 6)
    unaligned = np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float64).reshape(4, 6)
    for x in (
        base,
        base.T,
        base[::2],
        base[:, ::-1],
        base[1:3, 2:],
        unaligned,
        base.astype(">f8"),
        base[:0],
        np.asfortranarray(base),
        np.broadcast_to(base[0], (4, 6)),
    ):
        np.testing.assert_array_equal(f(x), f.__wrapped__(x))
        np.testing.assert_array_equal(f(x), f.__wrapped__(x))


def test_stride_of_an_axis_of_length_one_does_not_matter() -> None:
    f = jt.jit(lambda x: x + 1)
    f(np.zeros((1, 4)))
    f(np.zeros((5, 4))[::5])
    f(np.zeros((3, 4))[1:2])
    assert misses(f) == 1


def test_memmap(tmp_path: Any) -> None:
    np.save(tmp_path / "x.npy", X)
    got = jt.jit(lambda x: x + 1)(np.load(tmp_path / "x.npy", mmap_mode="r"))
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, X + 1)


# Results


def test_static_results() -> None:
    f = jt.jit(lambda x: {"n": 3, "name": "f", "none": None, "f": np.sin, "x": x.shape})
    assert f(X) == {"n": 3, "name": "f", "none": None, "f": np.sin, "x": (3,)}
    assert jt.jit(lambda x: None)(X) is None


def test_results_are_fresh() -> None:
    f = jt.jit(lambda x: (np.zeros(3), x + 1, np.ones(2)))
    first, second = f(X), f(X)
    for a, b in zip(first, second, strict=True):
        assert not np.shares_memory(a, b) and a.flags.writeable
    first[0][:] = 7
    np.testing.assert_array_equal(f(X)[0], np.zeros(3))


def test_one_result_twice_is_one_array() -> None:
    def f(x):
        y = x + 1
        return y, y

    a, b = jt.jit(f)(X)
    assert a is b
