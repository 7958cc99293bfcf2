"""The root namespace: what is there, where it comes from, and what an import loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import jitney as jt

TRANSFORMS = ["jit", "grad", "value_and_grad", "vjp", "jvp", "stop_gradient", "check_grads"]
CONTROL = ["cond", "switch", "while_loop", "fori_loop"]
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
]


def fresh_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", [*TRANSFORMS, *CONTROL, "register_pytree", "parse_graph"])
def test_transformations_are_documented_functions(name: str) -> None:
    function = getattr(jt, name)
    assert callable(function) and function.__name__ == name
    assert function.__doc__ and len(function.__doc__) > 20


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_are_numpys(name: str) -> None:
    assert getattr(jt, name) is getattr(np, name)


def test_constants() -> None:
    assert (jt.pi, jt.e, jt.inf, jt.newaxis) == (np.pi, np.e, np.inf, None)
    assert np.isnan(jt.nan)


def test_every_listed_name_is_there() -> None:
    names = dir(jt)
    assert names == sorted(set(names)) and len(names) > 200
    for name in names:
        getattr(jt, name)
    assert {*TRANSFORMS, *CONTROL, *DTYPES, "sin", "linalg", "concat", "erf"} <= set(names)


def test_unknown_names_are_refused_with_a_hint() -> None:
    with pytest.raises(AttributeError, match="arctan2"):
        _ = jt.arctan3
    with pytest.raises(AttributeError, match="value_and_grad"):
        _ = jt.value_and_gradient
    with pytest.raises(ImportError):
        exec("from jitney import no_such_name")
    assert not hasattr(jt, "__wrapped__")


def test_array_functions_outside_of_jit_are_numpys() -> None:
    x = np.linspace(0.1, 2.0, 6).reshape(2, 3).astype(np.float32)
    for name, arguments in {
        "sin": (x,),
        "sum": (x, 1),
        "matmul": (x, x.T),
        "where": (x > 1, x, 0),
        "concatenate": ([x, x],),
        "argsort": (x,),
        "arange": (5,),
    }.items():
        result, expected = getattr(jt, name)(*arguments), getattr(np, name)(*arguments)
        assert type(result) is type(expected) and result.dtype == expected.dtype
        np.testing.assert_array_equal(result, expected)
    assert np.isclose(jt.erf(1.0), 0.8427007929497149)


def test_array_functions_carry_the_references_documentation() -> None:
    assert jt.sin.__name__ == "sin" and "sine" in jt.sin.__doc__.lower()
    assert jt.linalg.norm.__name__ == "norm"


def test_tree_functions() -> None:
    tree = {"b": [1, (2, None)], "a": 3}
    assert jt.tree.leaves(tree) == [3, 1, 2]
    assert jt.tree.map(lambda x: x * 2, tree) == {"a": 6, "b": [2, (4, None)]}
    assert jt.tree.map(lambda x, y: x - y, tree, tree) == {"a": 0, "b": [0, (0, None)]}
    leaves, structure = jt.tree.flatten(tree)
    assert structure == jt.tree.structure(tree) and hash(structure)
    assert jt.tree.unflatten(structure, leaves) == tree


def test_shape_dtype() -> None:
    spec = jt.ShapeDtype((2, 3), "float32")
    assert spec.shape == (2, 3) and spec.dtype == np.float32 and spec.ndim == 2 and spec.size == 6
    assert spec == jt.ShapeDtype([2, 3], np.float32) and spec != jt.ShapeDtype((2, 3), np.float64)
    assert hash(spec) == hash(jt.ShapeDtype.like(np.zeros((2, 3), np.float32)))
    assert repr(spec) == "ShapeDtype((2, 3), float32)"
    assert jt.ShapeDtype.like(1.0) == jt.ShapeDtype((), np.float64)
    assert jt.ShapeDtype(4, np.int8).shape == (4,)
    with pytest.raises(ValueError, match="negative"):
        jt.ShapeDtype((-1,), np.float32)
    assert jt.ShapeDtype((1,), jt.bfloat16).dtype == jt.bfloat16
    with pytest.raises(TypeError, match="float128"):
        jt.ShapeDtype((1,), np.longdouble)


def test_graphs_parse_from_the_root() -> None:
    text = "graph f(%x: f32[2]) -> f32[2] {\n  %y = sin %x : f32[2]\n  return %y\n}"
    graph = jt.parse_graph(text)
    assert [op.name for op in graph.ops] == ["sin"]


def test_import_alone_loads_almost_nothing() -> None:
    heavy = ["llvmlite", "networkx", "optree", "scipy", "inspect"]
    code = "import sys; before = set(sys.modules); import jitney; "
    loaded = fresh_python(code + f"print([m for m in {heavy} if m in set(sys.modules) - before])")
    assert loaded == "[]"


def test_gradients_load_neither_llvm_nor_networkx() -> None:
    code = (
        "import sys, jitney as jt; assert jt.grad(lambda x: jt.sin(x) * x)(0.0) == 0.0; "
        "print([m for m in ['llvmlite', 'networkx', 'scipy'] if m in sys.modules])"
    )
    assert fresh_python(code) == "[]"


def test_any_name_may_be_the_first_one_that_is_used() -> None:
    """Nothing depends on the order in which the lazy names are met."""
    for code in (
        "import jitney as jt; print(jt.grad(lambda x: x * x)(3.0))",
        "from jitney import grad; print(grad(lambda x: x * x)(3.0))",
        "import jitney as jt; jt.errors; jt.tree; jt.float32; print(jt.jvp(lambda x: x * x, (3.0,), "
        "(1.0,))[1])",
        "from jitney.tracer.transforms.gradients import grad; print(grad(lambda x: x * x)(3.0))",
    ):
        assert fresh_python(code) == "6.0"


def test_import_and_first_use_load_few_modules() -> None:
    """What makes them quick; the benchmarks time them."""
    code = (
        "import sys, numpy; before = set(sys.modules); import jitney as jt; {use}; "
        "ours = {{m for m in set(sys.modules) - before if m.startswith('jitney')}}; "
        "print(len(ours), *sorted({{m.split('.')[1] for m in ours if '.' in m}}))"
    )
    assert fresh_python(code.format(use="pass")) == "4 ir"  # and what forked children need
    assert fresh_python(code.format(use="jt.grad, jt.sin")).split()[1:] == [
        "ir",
        "runtime",
        "tracer",
    ]
    assert fresh_python(code.format(use="jt.jit")).split()[1:] == ["ir", "runtime", "tracer"]


CACHED = {
    "a function": """
@jt.jit
def f(x):
    return np.exp(x - x.max(axis=1, keepdims=True)).sum()
f(x)
""",
    "a method that changes its object": """
class Mean:
    def __init__(self):
        self.n, self.total = 0, np.zeros(5)
    @jt.jit
    def add(self, x):
        self.n += 1
        self.total += x.sum(axis=0)
Mean().add(x)
""",
    "a gradient": """
jt.jit(jt.grad(lambda x: (x * x).sum()))(x)
""",
    "gradients of many examples": """
jt.jit(jt.vmap(jt.value_and_grad(lambda x: (x * x).sum())))(x)
""",
}


@pytest.mark.parametrize("use", CACHED)
def test_with_its_program_on_disk_a_process_loads_nothing_that_traces(
    use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No ops, array functions, containers, LLVM: what makes its start quick. The benchmarks time it."""
    monkeypatch.setenv("JITNEY_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "script.py").write_text(
        "import sys, numpy as np, jitney as jt\nx = np.ones((4, 5))\n"
        f"{CACHED[use]}\n"
        "ours = [m.split('.')[1:] for m in sys.modules if m.startswith('jitney.')]\n"
        "print(len(ours), *sorted({m[1] for m in ours if m[0] == 'tracer' and len(m) > 2}))\n"
        "print(*({'ops', 'llvm', 'lowering'} & {m[1] for m in ours if len(m) > 1}))\n"
        "print(*({'llvmlite.binding', 'numpy.random', 'random'} & sys.modules.keys()))\n"
    )
    run = f"import runpy; runpy.run_path({str(tmp_path / 'script.py')!r})"
    fresh_python(run)
    (count, *rooms), *others = (
        line.split() for line in fresh_python(run + "; print('.')").split("\n")
    )
    needed = {"captures", "core", "data", "devices", "jit", "messages", "records"}
    made = (
        {"checks", "transforms"} if "jt.grad" in CACHED[use] or "jt.vmap" in CACHED[use] else set()
    )
    assert set(rooms) == needed | made
    assert others == [[], [], ["."]]
    assert int(count) <= 125  # more than 300 when containers were imported


def test_a_lazy_name_is_looked_up_once() -> None:
    vars(jt).pop("cosh", None)
    assert jt.cosh is jt.cosh
    assert "cosh" in vars(jt)


def test_names_of_rooms_are_told() -> None:
    for name, home in {"relu": "jt.nn.relu", "one_hot": "jt.ops.one_hot"}.items():
        with pytest.raises(AttributeError, match=f"no '{name}': it is {home}$"):
            getattr(jt, name)
    code = "import sys, jitney as jt; hasattr(jt, 'Adam'); print('jitney.optim' in sys.modules)"
    assert fresh_python(code) == "False"
