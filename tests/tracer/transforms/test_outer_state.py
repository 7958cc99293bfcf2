"""Transformations outside of jit of functions that change objects: state is what a plain call leaves."""

import copy
from collections import defaultdict, deque
from dataclasses import dataclass, field

import numpy as np
import pytest

import jitney as jt
from jitney.errors import OuterMutationError

X = np.array([1.0, 3.0])


class Model:
    def __init__(self):
        self.a, self.b = np.array([0.5, -1.0]), np.ones(2)
        self.whole, self.count, self.last = self.a[:1], 0, None
        self.log, self.recent, self.seen = [], deque(maxlen=2), {}
        self.inner = {"mean": np.zeros(()), "items": [np.zeros(2), 7]}
        self.rng = np.random.default_rng(3)

    def rebind(self, x):
        self.a = self.a + x
        return (self.a * x).sum()

    def in_place(self, x):
        self.a += x
        self.a[0] = x[1] * self.b[1]
        self.b[:] = self.a[::-1]
        return (self.a * x + self.b).sum()

    def swap(self, x):
        self.a, self.b = self.b, self.a
        self.a[:] = self.b * 2 + x
        return (self.a * x).sum() + self.whole[0]

    def count_calls(self, x):
        self.count += 1
        self.last = self.count * 2.0
        return (x * x).sum() * self.count

    def containers(self, x):
        self.log.append(x.sum())
        self.recent.extend([x[0], 5])
        self.seen["x"] = x * 2
        self.inner["mean"] = self.inner["mean"] + x.mean()
        self.inner["items"][0] = x
        return (x**3).sum()

    def alias(self, x):
        self.last = self.b
        self.whole = self.b[1:]
        self.b += x
        return (self.last * x).sum() * self.whole[0]

    def new(self, x):
        self.fresh, self.name = x.max() * 2, "new"
        del self.log
        return self.fresh * x.sum()

    def draws(self, x):
        self.a = self.rng.normal(size=2) * x
        return (self.a * x).sum()

    def branches(self, x):
        if x.sum() > 3:
            self.a = self.a * 2
        for v in x:
            self.count += int(v)
        return (self.a * x).sum()


METHODS = [name for name, held in vars(Model).items() if callable(held) and name[0] != "_"]


def by_vjp(f):
    return lambda x: jt.vjp(f, x)[1](1.0)[0]


def by_jvp(f):
    return lambda x: np.array([jt.jvp(f, (x,), (t,))[1] for t in np.eye(2)])


TRANSFORMS = {
    "grad": jt.grad,
    "value_and_grad": lambda f: lambda x: jt.value_and_grad(f)(x)[1],
    "with aux": lambda f: jt.grad(lambda x: (f(x), 1), has_aux=True),
    "vjp": by_vjp,
    "jacrev": jt.jacrev,
    "jacfwd": jt.jacfwd,
    "nested": lambda f: lambda x: jt.grad(lambda y: jt.value_and_grad(f)(y)[0])(x),
}


def same(a, b):
    """Whether two objects hold equal values of equal types, and the same arrays twice."""
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, deque)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.random.Generator):
        return a.bit_generator.state == b.bit_generator.state
    if isinstance(a, (np.ndarray, float)):
        return type(a) is type(b) and np.allclose(a, b, rtol=1e-12)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_the_state_is_what_a_plain_call_leaves(transform, method):
    plain, model = Model(), Model()
    arrays = [model.a, model.b]
    getattr(plain, method)(X)
    result = transform(getattr(model, method))(X)
    assert same(vars(plain), vars(model)), (vars(plain), vars(model))
    if method in ("in_place", "alias"):
        assert model.a is arrays[0] and model.b is arrays[1]  # written, not exchanged
    if method == "alias" and transform is not TRANSFORMS["nested"]:
        assert model.last is model.b and model.whole.base is model.b
    gradient = result[0] if isinstance(result, tuple) else result
    if method != "new":
        assert np.allclose(gradient, differences(method), rtol=1e-6)


def differences(method):
    """Central differences, each from the state at the start."""
    step = 1e-6
    at = [[getattr(Model(), method)(X + s * d) for s in (step, -step)] for d in np.eye(2)]
    return np.array([(up - down) / (2 * step) for up, down in at])


class Shared:
    last = None


def shared(x):
    Shared.last = x
    return (x * x).sum()


def memo(x):
    memo.last = x
    return (x * x).sum()


@pytest.mark.parametrize("function", [shared, memo])
@pytest.mark.parametrize("transform", [jt.jit, jt.grad, lambda f: jt.jit(jt.grad(f))])
def test_an_attribute_of_a_class_or_function_is_refused(transform, function):
    with pytest.raises(
        OuterMutationError, match="an attribute of a (class|function), was assigned"
    ):
        transform(function)(X)
    assert Shared.last is None and not hasattr(memo, "last")


class Growing:
    def __init__(self):
        self.log, self.items, self.numbers, self.seen = [], [np.zeros(2)], [1.0], {"old": 1.0}
        self.recent, self.by_name, self.names = deque(maxlen=2), defaultdict(list), set()

    def logs(self, x):
        self.log.append(x.sum())
        self.log.extend([3, x])
        self.recent.extend([x.max(), x.min(), x[0]])
        self.by_name["k"].append(x.sum())
        self.names.add(7)
        return (x * x).sum()

    def elements(self, x):
        self.items.append(x * 2)
        self.items[0] = self.items[0] + x
        self.numbers.append(x.sum())
        return (self.items[-1] * x).sum() * self.numbers[0]

    def keys(self, x):
        self.seen["h"] = x * 2
        self.seen.pop("old", None)
        return (self.seen["h"] * self.seen.setdefault("cache", x * 3)).sum()

    def shrinks(self, x):
        self.items.pop()
        self.items.extend([x, x])
        self.numbers.clear()
        return (x * x).sum()


COMPILED = {
    "grad": jt.grad,
    "twice": lambda f: jt.grad(lambda x: (jt.grad(f)(x) ** 2).sum()),
    "checkpoint": lambda f: jt.grad(jt.checkpoint(f)),
    "jvp": lambda f: lambda x: jt.jvp(f, (x,), (x,))[1],
    "jacfwd": jt.jacfwd,
}


@pytest.mark.parametrize("method", ["logs", "elements", "keys", "shrinks"])
@pytest.mark.parametrize("transform", COMPILED.values(), ids=COMPILED)
def test_containers_grow_and_shrink_in_compiled_derivatives(transform, method):
    plain, model = Growing(), Growing()
    compiled = jt.jit(lambda x: transform(getattr(model, method))(x))
    for x in (X, X + 1):
        getattr(plain, method)(x)
        compiled(x)
        assert same(vars(plain), vars(model)), (vars(plain), vars(model))


def test_forward_derivatives_change_the_state_at_each_call():
    model = Model()
    by_jvp(model.count_calls)(X)
    assert model.count == 2


def test_the_state_of_two_steps_goes_on():
    plain, model = Model(), Model()
    for method in METHODS[:4]:
        for _ in range(2):
            getattr(plain, method)(X)
            jt.grad(getattr(model, method))(X)
    assert same(vars(plain), vars(model))


def test_a_backward_part_is_of_the_values_before_they_were_written():
    model = Model()
    _, pull = jt.vjp(lambda x: (model.in_place(x) * x).sum(), X)
    first = pull(1.0)[0]
    model.a[:] = 100.0  # the caller goes on
    assert np.array_equal(pull(1.0)[0], first)


def test_what_raises_changes_nothing():
    model = Model()

    def loss(x):
        model.in_place(x)
        model.containers(x)
        raise KeyError("after all")

    with pytest.raises(KeyError):
        jt.grad(loss)(X)
    assert same(vars(model), vars(Model()))


def test_objects_among_the_arguments_and_globals_are_state_too():
    model, total = Model(), {"sum": 0.0}
    count = 0

    def loss(x, model):
        nonlocal count
        count += 1
        total["sum"] += x.sum()
        return model.rebind(x)

    jt.grad(loss)(X, model)
    assert np.array_equal(model.a, [1.5, 2.0]) and total == {"sum": 4.0} and count == 1
    assert type(total["sum"]) is np.float64


def test_a_tree_that_is_differentiated_and_has_state():
    @dataclass
    class Layer:
        w: np.ndarray
        calls: list = field(default_factory=list)

    layer, calls = Layer(np.ones(2)), []

    def loss(layer):
        calls.append(layer.w)
        return (layer.w**2).sum()

    gradient = jt.grad(loss)(layer)
    assert np.array_equal(gradient.w, [2.0, 2.0])
    assert type(calls[0]) is np.ndarray


def test_vmap_writes_what_is_the_same_for_all_examples():
    model = Model()
    xs = np.stack([X, X + 1])
    assert np.array_equal(jt.vmap(model.count_calls)(xs), (xs**2).sum(1))
    assert model.count == 1 and model.last == 2.0
    before = copy.deepcopy(vars(model))
    with pytest.raises(OuterMutationError, match="differs from example to example"):
        jt.vmap(model.rebind)(xs)
    with pytest.raises(OuterMutationError):
        jt.vmap(model.in_place)(xs)
    with pytest.raises(OuterMutationError):
        jt.vmap(model.containers)(xs)
    assert same(before, vars(model))


def test_vmap_of_a_sum_over_the_examples():
    model = Model()

    def step(xs):
        out = jt.vmap(lambda x: x * 2)(xs)
        model.a = out.mean(0)
        return out.sum()

    jt.grad(step)(np.stack([X, X]))
    assert np.array_equal(model.a, X * 2)


def test_arrays_by_themselves_are_written_once():
    """Whoever writes, and however often the function could be run."""
    count = np.zeros(1)

    def add(array):
        array[0] += 1

    def into(_):
        np.add(count, 1, out=count)

    def by_name(_):
        array = count
        array += 1

    writers = [lambda _: add(count), into, by_name, lambda _: count.fill(count[0] + 1)]
    for done, write in enumerate(writers):

        def f(x, write=write):
            write(x)
            return (x**3).sum()

        for k, transform in enumerate((jt.jacfwd, jt.hessian, jt.jacrev), 1):
            transform(f)(np.arange(3.0))
            assert count == 3 * done + k, (done, transform)
