"""The options of `jit`: one record, a part of every key, printed by `explain`, seen by type checkers."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typed_calls

import jitney as jt
from jitney.codegen.cuda.target import CudaTarget
from jitney.codegen.module import Donation
from jitney.ir.record import fields, replace
from jitney.runtime.compile import executable_key
from jitney.runtime.cuda.client import program_key
from jitney.runtime.native.host import host_target
from jitney.runtime.options import CompileOptions
from jitney.tracer.jit.function import JitFunction
from jitney.tracer.jit.options import Options
from jitney.tracer.jit.trace_cache import CachedTrace

ROOT = Path(jt.__file__).resolve().parent
X = np.arange(3.0)

# A value for each option that is not its default.
OTHERS: dict[str, Any] = {
    "static_argnums": (1,),
    "static_argnames": ("y",),
    "donate_argnums": (0,),
    "autograph": False,
    "check": ("nan", "trace"),
    "fastmath": True,
    "deterministic": False,
    "boundscheck": False,
    "device": jt.Device("cpu"),
    "backend": "interpreter",
    "save": 1000,
    "inplace": "require",
    "autotune": True,
    "fallback": "python",
    "threads": 2,
    "dynamic": "auto",
}
OTHER_COMPILATION = {
    "fastmath": True,
    "deterministic": False,
    "autotune": False,
    "donations": (Donation(0),),
    "threads": 2,
    "lengths": ((8419, 1, 0),),
}
DONATIONS = [Donation(0), Donation(1), Donation(0, 1), Donation(0, whole=True)]


def f(x: Any, y: Any = 1) -> Any:
    return x + y


def keys(options: CompileOptions) -> tuple[str, str]:
    cpu = executable_key("graph", host_target(), None, options)
    return cpu, program_key("graph", CudaTarget(), options, "")


def test_every_option_of_a_compilation_is_in_its_keys() -> None:
    """A field that is new here and not in the key fails."""
    assert set(OTHER_COMPILATION) == set(fields(CompileOptions))
    plain = CompileOptions()
    assert keys(plain) == keys(CompileOptions())
    for name, value in OTHER_COMPILATION.items():
        other = keys(replace(plain, **{name: value}))
        assert not set(other) & set(keys(plain)), name
    assert len({keys(CompileOptions(donations=(d,))) for d in DONATIONS}) == len(DONATIONS)


def test_every_option_of_jit_is_in_the_key_of_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    function = jt.jit(f)
    call = function._analyse((X,), {})

    def key(options: Options) -> str:
        taken = CachedTrace(f, call, options)._take(function._captured_variables(call))
        assert taken is not None
        return taken.name

    assert set(OTHERS) == set(fields(Options))
    found = [key(Options()), *(key(Options(**{n: v})) for n, v in OTHERS.items())]
    assert len(set(found)) == len(found) and key(Options()) == found[0]


def test_the_signature_of_jit_is_the_record() -> None:
    parameters = dict(inspect.signature(jt.jit).parameters)
    assert parameters.pop("function").default is None
    assert tuple(parameters) == fields(Options)
    for name, parameter in parameters.items():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert parameter.default == (getattr(Options(), name) or parameter.default)
        assert re.search(rf"\n *{name}|, {name}", jt.jit.__doc__)  # Python 3.13 dedents


def test_the_decorator_with_options_is_the_call_with_options() -> None:
    options = {k: v for k, v in OTHERS.items() if k not in ("backend", "inplace")}
    assert jt.jit(**options)(f)._options == jt.jit(f, **options)._options == Options(**options)
    assert jt.jit(f, static_argnums=1)._options == jt.jit(f, static_argnums=[1])._options
    assert jt.jit(f, device="cuda:0")._options.device == jt.Device("cuda", 0)
    assert JitFunction(f)._options == Options()


def test_explain_prints_the_options() -> None:
    assert "  options: as by default\n" in jt.jit(f).explain(X)
    asked = jt.jit(f, donate_argnums=0, boundscheck=False, device="cpu", save="min_cut")
    text = "donate_argnums=(0,), boundscheck=False, device='cpu', save='min_cut'"
    assert f"  options: {text}\n" in asked.explain(X)
    assert asked.lower(X).options == asked._options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "gpu"}, "backend='gpu': choose 'native' or 'interpreter'"),
        ({"save": -1}, "save=-1: choose 'min_cut' or a number of bytes"),
        ({"inplace": True}, "inplace=True: choose None or 'require'"),
        ({"boundscheck": 1}, "boundscheck=1: choose True or False"),
        ({"autotune": 1}, "autotune=1: choose True, False or None"),
        ({"threads": 0}, "threads=0: choose a number from 1 to 1024, or None"),
        ({"device": "tpu"}, "device='tpu': choose 'cpu', 'cuda' or 'cuda:0'"),
        ({"device": "cuda:0", "backend": "interpreter"}, "runs on the CPU, not on cuda:0"),
    ],
)
def test_values_that_options_do_not_have(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        jt.jit(f, **options)
    with pytest.raises(ValueError, match=re.escape(message)):
        jt.jit(**options)(f)


def test_traces_inside_have_the_options_of_the_outermost() -> None:
    def rows(x: Any, i: Any) -> Any:
        return jt.grad(lambda x: jt.fori_loop(0, 2, lambda k, s: s + x[i], x[0]))(x)

    unchecked = jt.jit(rows, boundscheck=False)
    np.testing.assert_array_equal(unchecked(X, 7), [1.0, 0.0, 2.0])
    with pytest.raises(IndexError):
        jt.jit(rows)(X, 7)
    # A jitted function that is called inside is a part of what is traced, options included.
    outer = jt.jit(lambda x, i: jt.jit(rows)(x, i), boundscheck=False)
    np.testing.assert_array_equal(outer(X, 7), [1.0, 0.0, 2.0])


def test_what_type_checkers_see_runs() -> None:
    """`.ci/run types` checks the file; that what it calls is there is seen here."""
    x = np.ones((2, 2))
    typed_calls.calls(x)
    typed_calls.inspections(x)
    typed_calls.derivatives(x)


# What is a context variable: what no parameter can carry.
CONTEXTS = {
    "codegen/sizes.py": "_current",  # leaves of every pass ask; most programs have none
    "codegen/journal.py": "_current",  # leaves of every pass note why they do not do a thing
    "codegen/limits.py": "_current",  # asked by leaves of every pass; tests alone set it
    "codegen/schedule/knobs.py": "_current",  # schedules tell whether they do what a user asks
    "ir/batching/transform.py": "_AXIS",  # the rules of collectives ask which axis is batched
    "tracer/transforms/named_axes.py": "_AXES",  # a user's `vmap(axis_name=)` around; collectives ask
    "ir/interpreter.py": "_watcher",  # references of ops with regions interpret these
    "tracer/messages/scopes.py": "SCOPE",  # a user's `with jt.name_scope(...)`
    "tracer/messages/scopes.py ": "KNOBS",  # a user's `with jt.schedule(...)`
    "tracer/captures/purity.py": "_asked",  # inside of os.urandom, who is watching
    "tracer/containers/kinds.py": "_KINDS",  # what an attempt to trace tells the next; users' code asks
    "tracer/core/sharing.py": "_FOLLOWING",  # the same; assignments ask, deep in the user's code
    "tracer/core/effects.py": "_WATCHING",  # a user's `try`: which checks its body makes
    "tracer/core/current.py": "CURRENT",  # NumPy calls us, and has no parameter for the trace
    "tracer/core/current.py ": "HELD",  # the one that native code asks
    "tracer/core/current.py  ": "FORMS",  # what attempts to trace number alike
    "tracer/checks/capture.py": "_RECORDER",  # a user's `with jt.capture(...)`
    "tracer/devices/devices.py": "CHOSEN",  # a user's `with jt.device(...)`
}


def test_context_variables_are_dynamic_scopes() -> None:
    found = set()
    for room in ("ir", "codegen", "runtime", "tracer"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if "ContextVar(" in text else ():
                if isinstance(node, ast.AnnAssign) and "ContextVar(" in ast.unparse(node):
                    found.add((str(path.relative_to(ROOT)), ast.unparse(node.target)))
    assert found == {(path.strip(), name) for path, name in CONTEXTS.items()}
