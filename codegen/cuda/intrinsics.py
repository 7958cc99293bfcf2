"""The intrinsics that kernels may call, and what each needs: a closed table.

LLVM ends the process when it cannot select an instruction for an architecture or a PTX version, so
nothing that is not in this table reaches it (`runtime/cuda/assemble.py` looks at every module). A row
is a signature and the least sm and PTX version; a test assembles every row at its least.

    row = INTRINSICS["llvm.nvvm.redux.sync.add"]
    row.sm, row.declaration       -> 80, "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)"
"""

from __future__ import annotations

import re
from functools import cache

from ...ir.record import record
from ..llvm.builder import Value, symbol

_LITERAL = re.compile(r"^(i\d+) \S+$")


@record
class Intrinsic:
    """One row. `operands` are types; an operand that LLVM wants as a literal is `type value`."""

    name: str
    result: str
    operands: tuple[str, ...]
    sm: int = 75
    ptx: int = 63
    features: str = ""  # "a": only architectures such as sm_90a have it
    flags: str = ""  # fast-math flags that each call must have

    @property
    def declaration(self) -> str:
        return f"declare {self.result} @{self.name}({', '.join(self.types)})"

    @property
    def address(self) -> Value:
        """What calls name it by."""
        return symbol(self.name)

    @property
    def types(self) -> tuple[str, ...]:
        """The operands' types, without the values of literals."""
        return _types(self.operands)


@cache
def _types(operands: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_LITERAL.sub(r"\1", operand) for operand in operands)


def _operands(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _rows(text: str, sm: int, ptx: int, features: str = "") -> list[Intrinsic]:
    """Rows of `name : result : operands`; names get the prefix `llvm.nvvm.`."""
    table = []
    for line in text.strip().splitlines():
        name, result, operands = (part.strip() for part in line.split(":"))
        table.append(Intrinsic(f"llvm.nvvm.{name}", result, _operands(operands), sm, ptx, features))
    return table


def _generic(names: str, operands: int, types: dict[str, str], extra: str = "") -> list[Intrinsic]:
    """LLVM's own functions, overloaded on one type that all operands and the result have."""
    return [
        Intrinsic(f"llvm.{name}.{suffix}", type, (type,) * operands + _operands(extra))
        for name in names.split()
        for suffix, type in types.items()
    ]


def _vectors(scalars: dict[str, str], *lanes: int) -> dict[str, str]:
    return scalars | {f"v{n}{s}": f"<{n} x {t}>" for n in lanes for s, t in scalars.items()}


_FLOATS = _vectors({"f32": "float", "f64": "double"}, 2, 4)
_INTEGERS = _vectors({f"i{n}": f"i{n}" for n in (8, 16, 32, 64)}, 2, 4, 8, 16)
_SCALAR_FLOATS = {"f32": "float", "f64": "double"}
_WIDE = {"i32": "i32", "i64": "i64"}

_GENERIC = [
    *_generic("fabs floor ceil trunc rint roundeven round sqrt", 1, _FLOATS),
    *_generic("minnum maxnum minimum maximum copysign", 2, _FLOATS),
    *_generic("fma", 3, _FLOATS),
    *_generic("smin smax umin umax uadd.sat usub.sat sadd.sat ssub.sat", 2, _INTEGERS),
    *_generic("abs", 1, _INTEGERS, "i1 false"),
    *_generic("ctlz cttz", 1, _INTEGERS, "i1 false"),
    *_generic("ctpop", 1, _INTEGERS),
    *_generic("bitreverse bswap", 1, _WIDE),
    *_generic("fshl fshr", 3, _WIDE),
    *(
        Intrinsic(f"llvm.{name}.with.overflow.{t}", f"{{ {t}, i1 }}", (t, t))
        for name in ("sadd", "uadd", "ssub", "usub", "smul", "umul")
        for t in ("i32", "i64")
    ),
    *(
        Intrinsic(f"llvm.is.fpclass.{suffix}", "i1", (type, "i32 3"))
        for suffix, type in _SCALAR_FLOATS.items()
    ),
    *(
        Intrinsic(f"llvm.fpto{sign}i.sat.{to}.{suffix}", to, (type,))
        for sign in "su"
        for to in ("i32", "i64")
        for suffix, type in _SCALAR_FLOATS.items()
    ),
    Intrinsic("llvm.assume", "void", ("i1",)),
    *(Intrinsic(f"llvm.expect.{t}", t, (t, f"{t} 1")) for t in ("i1", "i32")),
]

_SPECIAL_REGISTERS = "\n".join(
    [
        f"read.ptx.sreg.{r}.{axis} : i32 :"
        for r in ("tid", "ntid", "ctaid", "nctaid")
        for axis in "xyz"
    ]
    + ["read.ptx.sreg.laneid : i32 :", "read.ptx.sreg.clock64 : i64 :"]
    + [f"read.ptx.sreg.lanemask.{which} : i32 :" for which in ("eq", "lt", "le", "gt", "ge")]
)
_SHUFFLES = "\n".join(
    f"shfl.sync.{mode}.{suffix} : {type} : i32, {type}, i32, i32"
    for mode in ("bfly", "down", "up", "idx")
    for suffix, type in (("f32", "float"), ("i32", "i32"))
)
_SHUFFLES_WITH_PREDICATE = "\n".join(
    f"shfl.sync.{mode}.{suffix}p : {{ {type}, i1 }} : i32, {type}, i32, i32"
    for mode in ("bfly", "down", "up", "idx")
    for suffix, type in (("f32", "float"), ("i32", "i32"))
)
_SYNCHRONISATION = """
    barrier.cta.sync.aligned.all : void : i32
    barrier.cta.sync.aligned.count : void : i32, i32
    barrier.cta.arrive.aligned.count : void : i32, i32
    barrier.cta.red.and.aligned.all : i1 : i32, i1
    barrier.cta.red.or.aligned.all : i1 : i32, i1
    barrier.cta.red.popc.aligned.all : i32 : i32, i1
    bar.warp.sync : void : i32
    vote.all.sync : i1 : i32, i1
    vote.any.sync : i1 : i32, i1
    vote.uni.sync : i1 : i32, i1
    vote.ballot.sync : i32 : i32, i1
    activemask : i32 :
    match.any.sync.i32 : i32 : i32, i32
    match.any.sync.i64 : i32 : i32, i64
    membar.cta : void :
    membar.gl : void :
"""
_APPROXIMATIONS = """
    ex2.approx.ftz.f32 : float : float
    lg2.approx.ftz.f : float : float
    sin.approx.ftz.f : float : float
    cos.approx.ftz.f : float : float
    rsqrt.approx.ftz.f : float : float
    rsqrt.approx.f : float : float
    rcp.approx.ftz.f : float : float
    div.full : float : float, float
"""
_REDUX = "\n".join(
    f"redux.sync.{name} : i32 : i32, i32"
    for name in ("add", "min", "max", "umin", "umax", "and", "or", "xor")
)
_SHARED, _GLOBAL = "ptr addrspace(3)", "ptr addrspace(1)"
_MATRICES = "\n".join(
    f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.b16.p3 : "
    f"{'i32' if n == 1 else '{ ' + ', '.join(['i32'] * n) + ' }'} : {_SHARED}"
    for n in (1, 2, 4)
    for trans in ("", ".trans")
)
_F4, _D2, _D4 = (
    "{ float, float, float, float }",
    "{ double, double }",
    "{ double, double, double, double }",
)


def _many(*groups: tuple[int, str]) -> str:
    return ", ".join(type for n, type in groups for _ in range(n))


_MMA_F16 = f"mma.m16n8k16.row.col.f32.f32 : {_F4} : {_many((6, '<2 x half>'), (4, 'float'))}"
_MMA_AMPERE = "\n".join(
    [
        f"mma.m16n8k16.row.col.bf16 : {_F4} : {_many((6, 'i32'), (4, 'float'))}",
        f"mma.m16n8k8.row.col.tf32 : {_F4} : {_many((6, 'i32'), (4, 'float'))}",
        f"mma.m8n8k4.row.col.f64 : {_D2} : {_many((4, 'double'))}",
        "f2tf32.rna : i32 : float",
        "ff2bf16x2.rn : <2 x bfloat> : float, float",
    ]
)
_MMA_HOPPER = f"mma.m16n8k16.row.col.f64 : {_D4} : {_many((16, 'double'))}"
_ASYNC_COPIES = "\n".join(
    [f"cp.async.ca.shared.global.{n} : void : {_SHARED}, {_GLOBAL}" for n in (4, 8, 16)]
    + [f"cp.async.ca.shared.global.{n}.s : void : {_SHARED}, {_GLOBAL}, i32" for n in (4, 8, 16)]
    + [
        f"cp.async.cg.shared.global.16 : void : {_SHARED}, {_GLOBAL}",
        f"cp.async.cg.shared.global.16.s : void : {_SHARED}, {_GLOBAL}, i32",
        "cp.async.commit.group : void :",
        "cp.async.wait.group : void : i32 0",
        "cp.async.wait.all : void :",
    ]
)

# Copies of boxes of an array, which a tensor map describes, and the barriers in memory that count them.
_MBARRIERS = f"""
    mbarrier.init.shared : void : {_SHARED}, i32
    mbarrier.arrive.scope.cta.space.cta : i64 : {_SHARED}, i32
    mbarrier.arrive.expect.tx.scope.cta.space.cta : i64 : {_SHARED}, i32
    mbarrier.try.wait.parity.scope.cta.space.cta : i1 : {_SHARED}, i32
    fence.mbarrier_init.release.cluster : void :
    elect.sync : {{ i32, i1 }} : i32
"""
_BOXES = "\n".join(
    f"cp.async.bulk.tensor.g2s.tile.{rank}d : void : ptr addrspace(7), {_SHARED}, ptr, "
    f"{_many((rank, 'i32'))}, i16, i64, i1 0, i1 0, i32 0"
    for rank in (2, 3)
)
_WARPGROUPS = """
    wgmma.fence.sync.aligned : void :
    wgmma.commit_group.sync.aligned : void :
    setmaxnreg.inc.sync.aligned.u32 : void : i32 232
    setmaxnreg.dec.sync.aligned.u32 : void : i32 40
"""

INTRINSICS: dict[str, Intrinsic] = {
    row.name: row
    for row in [
        *_GENERIC,
        *_rows(_SPECIAL_REGISTERS, 75, 63),
        *_rows(_SHUFFLES, 75, 63),
        *_rows(_SHUFFLES_WITH_PREDICATE, 75, 63),
        *_rows(_SYNCHRONISATION, 75, 63),
        *_rows(_APPROXIMATIONS, 75, 63),
        Intrinsic("llvm.tanh.f32", "float", ("float",), 75, 70, flags="afn"),  # tanh.approx
        *_rows(_MATRICES, 75, 65),
        *_rows(_REDUX, 80, 70),
        *_rows(_MMA_F16, 80, 70),
        *_rows(_MMA_AMPERE, 80, 70),
        *_rows(_ASYNC_COPIES, 80, 70),
        *_rows(_MMA_HOPPER, 90, 78),
        *_rows(_MBARRIERS, 90, 80),
        *_rows(_BOXES, 90, 80),
        *_rows(_WARPGROUPS, 90, 80, "a"),
    ]
}
"""By name, with the suffixes of overloads."""
