"""The scalar primitives on other targets than this machine."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from folders import HELPERS
from native import avx2_target, has_avx2, native
from scalar_models import (
    ARITHMETIC,
    FLOATS,
    NUMBERS,
    U32,
    U64,
    quiet,
    same,
    samples,
    to_integer_model,
)

from jitney.codegen.scalar import (
    PRIMITIVES,
    Expr,
    convert,
)
from jitney.ir.types import I32, I64
from jitney.runtime.native.host import host_target

# Other targets: LLVM ends the process on what it cannot select, so a child compiles.

CHILD = r"""
    import sys
    sys.path.insert(0, {tests!r})
    from native import array_function_text, avx2_target
    from scalar_models import ARITHMETIC, FLOATS, INTS
    from jitney.codegen.scalar import PRIMITIVES, Expr, convert, scale2, table
    from jitney.ir.types import BOOL, F32, F64, I32, I64
    from jitney.codegen.target import Target
    from jitney.ir.record import replace
    from jitney.runtime.native.engine import engine_for
    from jitney.runtime.native.host import host_target
    {target}
    engine = engine_for(target)
    functions = []
    for op, (dtypes, _, _) in ARITHMETIC.items():
        for d in dtypes:
            functions.append((lambda *xs, op=op, d=d: Expr(op, xs, d), [d] * PRIMITIVES[op][0]))
    for a in [BOOL, *INTS, *FLOATS]:
        for b in [BOOL, *INTS, *FLOATS]:
            functions.append((lambda x, b=b: convert(x, b), [a]))
    for d in FLOATS:
        functions.append((scale2, [d, I32]))
        functions.append((lambda x, n: scale2(x, n, near_one=True), [d, I32]))
        functions.append((lambda i, d=d: table([1, 2, 3], d, i), [I64]))
    declarations, bodies = set(), []
    for f, dtypes in functions:
        for width in (1, target.lanes(max(4, dtypes[0].itemsize))):
            text, _ = array_function_text(f, dtypes, width, target)
            text = text.replace("@f(", f"@f{{len(bodies)}}(").replace("@table", f"@t{{len(bodies)}}_")
            lines = text.splitlines()
            declarations.update(line for line in lines if line.startswith("declare"))
            bodies.append("\n".join(line for line in lines if not line.startswith("declare")))
    obj = engine.emit_object("\n".join([*sorted(declarations), *bodies]))
    print("compiled", len(bodies), len(obj))
"""
TARGETS = {
    "avx2": "target = avx2_target()",
    "sse2": "target = replace(host_target(), cpu='x86-64', features='', vector_bits=128)",
    "neon": "target = Target('aarch64-unknown-linux-gnu', 'generic', '+neon', 128)",
}


@pytest.mark.parametrize("name", TARGETS)
def test_every_primitive_compiles_for(name):
    if name != "neon" and "x86_64" not in host_target().triple:
        pytest.skip("an x86-64 target")
    code = textwrap.dedent(CHILD).format(tests=str(HELPERS), target=TARGETS[name])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("compiled"), done.stderr[-2000:]


@pytest.mark.skipif(not has_avx2(), reason="runs AVX2 code")
@pytest.mark.parametrize("op", ["div", "rem", "mulhi", "mul", "ctpop", "cttz", "min", "abs", "shl"])
def test_avx2_code_gives_the_same_answers(op):
    dtypes, model, legal = ARITHMETIC[op]
    target = avx2_target()
    for dtype in dtypes:
        arrays = [samples(dtype, seed) for seed in range(PRIMITIVES[op][0])]
        arrays = list(legal(*arrays)) if legal else arrays
        width = target.lanes(max(4, dtype.itemsize))
        f = native(lambda *xs, d=dtype: Expr(op, xs, d), [dtype] * len(arrays), width, target)
        same(f(*arrays), quiet(model)(*arrays))


@pytest.mark.skipif(not has_avx2(), reason="runs AVX2 code")
def test_avx2_conversions_give_the_same_answers():
    target = avx2_target()
    for source, dtype in itertools.product(NUMBERS, FLOATS + [I32, I64, U32, U64]):
        a = samples(source, 5)
        want = quiet(lambda v: v)(a).astype(dtype) if source.kind != "f" else None
        if want is None:
            with np.errstate(all="ignore"):
                want = a.astype(dtype) if dtype.kind == "f" else to_integer_model(a, dtype)
        width = target.lanes(max(4, source.itemsize, dtype.itemsize))
        same(native(lambda x, d=dtype: convert(x, d), [source], width, target)(a), want)
