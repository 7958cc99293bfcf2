"""Keys of remembered traces: programs that differ in one value or argument never have the same."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_calls import trees

import jitney as jt
from jitney.tracer.jit.trace_cache import CachedTrace

PRELUDE = """
import collections, dataclasses, enum, functools, math, operator, types
import numpy as np
"""
# No two of them are the same to a function that reads them.
VALUES = [
    *("0", "1", "1.0", "True", "0.0", "-0.0", "1j", "2**70", "float('nan')", "None", "...", "()"),
    *("'a'", "'b'", "b'a'", "(1, 2)", "(2, 1)", "[1, 2]", "[1, 2.0]", "range(2)", "slice(1, 2)"),
    *("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", "{'a': 1}", "{1: 1}", "{True: 1}", "{1}", "{2}"),
    *("collections.OrderedDict(a=1)", "collections.deque([1])", "collections.deque([1], 3)"),
    *("np.float32(1)", "np.float64(1)", "np.int64(1)", "np.dtype('f4')", "np.float32", "float"),
    *("len", "max", "math.sin", "np.sin", "np.cos", "np.add.reduce", "np.multiply.reduce"),
    *("lambda q: q", "lambda q: q + 1", "lambda q, r=1: q", "lambda q, r=2: q", "operator.neg"),
    *("functools.partial(max, 1)", "functools.partial(max, 2)", "operator.itemgetter(0)"),
]
# How a value gets to the function: statements, and an expression that gives it again.
CARRIERS: dict[str, tuple[str, str]] = {
    "global": ("N = V", "N"),
    "list": ("N = [0, V]", "N[1]"),
    "dict": ("N = {'k': V}", "N['k']"),
    "default_dict": ("N = collections.defaultdict(list, k=V)", "N['k']"),
    "attribute": ("class C_N: pass\nN = C_N()\nN.k = V", "N.k"),
    "slot": ("class C_N:\n    __slots__ = ('k',)\nN = C_N()\nN.k = V", "N.k"),
    "property": ("class C_N:\n    @property\n    def k(self): return V\nN = C_N()", "N.k"),
    "of_a_class": ("class N:\n    k = V", "N.k"),
    "inherited": ("class B_N:\n    k = V\nclass N(B_N): pass", "N.k"),
    "of_a_metaclass": ("class M_N(type):\n    k = V\nclass N(metaclass=M_N): pass", "N.k"),
    "method": ("class C_N:\n    def k(self): return V\nN = C_N()", "N.k()"),
    "class_method": ("class N:\n    @classmethod\n    def k(cls): return V", "N.k()"),
    "called_object": ("class C_N:\n    def __call__(self): return V\nN = C_N()", "N()"),
    "function": ("def N(): return V", "N()"),
    "closure": ("def make_N(k): return lambda: k\nN = make_N(V)", "N()"),
    "default": ("def N(k=V): return k", "N()"),
    "keyword_default": ("def N(*, k=V): return k", "N()"),
    "partial": ("N = functools.partial(lambda k: k, V)", "N()"),
    "memoised": ("@functools.lru_cache\ndef N(): return V", "N()"),
    "decorated": ("def deco_N(f): return lambda: (f(), V)[1]\n@deco_N\ndef N(): pass", "N()"),
    "of_a_function": ("def N(): pass\nN.k = V", "N.k"),
    "named_tuple": ("N = collections.namedtuple('N', 'a b', defaults=(V,))", "N(1).b"),
    "data_class": (
        "@dataclasses.dataclass\nclass C_N:\n    k: object\nN = C_N(V)",
        "N.k",
    ),
    "namespace": ("N = types.SimpleNamespace(k=V)", "N.k"),
    "module": ("N = types.ModuleType('settings_N')\nN.k = V", "N.k"),
    "deque": ("N = collections.deque([V])", "N[0]"),
    "chain_map": ("N = collections.ChainMap({}, {'k': V})", "N['k']"),
}


_NAME = re.compile("(?<![A-Za-z])N(?![A-Za-z])")


def program(value: str, carriers: list[str]) -> str:
    lines, expression = [], f"({value})"
    for number, carrier in enumerate(carriers):
        setup, get = (_NAME.sub(f"n{number}", text) for text in CARRIERS[carrier])
        lines.append(setup.replace("V", expression))
        expression = get
    return "\n".join([PRELUDE, *lines, f"def function(x):\n    return x, {expression}\n"])


def key_of(function: Callable[..., Any], *args: Any, **kwargs: Any) -> str | None:
    f = jt.jit(function)
    call = f._analyse(args, kwargs)
    key = CachedTrace(f._raw, call, f._options)._take(f._captured_variables())
    return None if key is None else key.name


def program_key(text: str) -> str | None:
    module = ModuleType("program_of_pairs")
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, "program_of_pairs.py", "exec"), vars(module))
        return key_of(module.function, np.ones(3))
    finally:
        del sys.modules[module.__name__]


@pytest.mark.parametrize("carrier", CARRIERS)
def test_every_value_in_every_carrier(carrier: str) -> None:
    found: dict[str, str] = {}
    for value in VALUES:
        key = program_key(program(value, [carrier]))
        if key is not None:
            assert found.setdefault(key, value) == value
    assert len(found) > len(VALUES) // 2 or carrier == "chain_map"  # a class with code of its own


@settings(max_examples=30)
@given(
    st.lists(st.sampled_from(list(CARRIERS)), min_size=2, max_size=4),
    st.lists(st.sampled_from(VALUES), min_size=2, max_size=3, unique=True),
)
def test_values_in_chains_of_carriers(carriers: list[str], values: list[str]) -> None:
    programs = [program(value, carriers) for value in values]
    keys = [program_key(text) for text in programs]
    assert keys == [program_key(text) for text in programs]
    for one, other in itertools.combinations([key for key in keys if key is not None], 2):
        assert one != other


def first(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


named = st.dictionaries(st.sampled_from("xyz"), trees, max_size=3)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(trees, max_size=2), named), min_size=2, max_size=4))
def test_arguments(calls: list[tuple[list[Any], dict[str, Any]]]) -> None:
    """The key on disk tells arguments apart exactly where the key in memory does."""
    args, kwargs = calls[0]
    forms = [*calls, (args, dict(reversed(kwargs.items()))), (args[::-1], kwargs)]
    f = jt.jit(first)
    keys = [(key_of(first, *a, **k), f._analyse(a, k).key) for a, k in forms]
    for (name, key), (other_name, other) in itertools.combinations(keys, 2):
        assert name is not None and (name == other_name) == (key == other)
