"""What a function only assigns to, without reading it: changed at each call, as by Python."""

import sys
import types
from argparse import Namespace

import numpy as np
import pytest

import jitney as jt


class Thing:
    def __init__(self):
        self._held = None
        self.inner = types.SimpleNamespace()

    held = property(lambda self: self._held, lambda self, value: setattr(self, "_held", value))

    def put(self, x):
        self.inner.a = x
        self.sum = x.sum()


class Slots:
    __slots__ = ("a", "b")


thing, slots, space, parsed = Thing(), Slots(), types.SimpleNamespace(), Namespace(a=None)
settings = types.ModuleType("settings_of_this_test")


def attribute(x):
    thing.a = x * 2


def by_property(x):
    thing.held = x.sum()


def method(x):
    thing.put(x)


def several(x):
    slots.a, slots.b = x.sum(), x * 2


def namespaces(x):
    space.a = parsed.a = x * 2


def of_a_module(x):
    settings.last = x.sum()


def loop_variable(x):
    for thing.i in range(3):
        x = x + thing.i
    thing.sum = x


def nested(x):
    def inner(y):
        thing.deep = y

    inner(x * 3)


def left():
    """All that the functions above assign to."""
    of_slots = {name: getattr(slots, name, None) for name in Slots.__slots__}
    return [vars(thing).copy(), vars(thing.inner), of_slots, vars(space), vars(parsed), settings]


def fresh():
    thing.__dict__.clear()
    thing.__init__()
    space.__dict__.clear()
    parsed.a = None
    settings.last = None
    for name in Slots.__slots__:
        if hasattr(slots, name):
            delattr(slots, name)


def shown(x):
    if isinstance(x, types.ModuleType):
        return shown({"last": x.last})
    if isinstance(x, (dict, list)):
        return [(k, shown(v)) for k, v in (x.items() if isinstance(x, dict) else enumerate(x))]
    return (x.tolist(), type(x)) if isinstance(x, (np.ndarray, np.generic)) else type(x).__name__


FUNCTIONS = [
    attribute,
    by_property,
    method,
    several,
    namespaces,
    of_a_module,
    loop_variable,
    nested,
]
TRANSFORMS = {
    "jit": lambda f: jt.jit(lambda x: f(x)),
    "grad": lambda f: jt.grad(lambda x: (f(x), x.sum())[1]),
    "jit(grad)": lambda f: jt.jit(jt.grad(lambda x: (f(x), x.sum())[1])),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_what_is_only_assigned_to_is_written_at_each_call(transform, function, monkeypatch):
    monkeypatch.setitem(sys.modules, settings.__name__, settings)
    transformed = transform(function)
    for x in (np.array([1.0, 2.0]), np.array([5.0, -1.0])):
        fresh()
        function(x)
        wanted = shown(left())
        fresh()
        transformed(x)
        assert shown(left()) == wanted
