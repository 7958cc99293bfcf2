"""PTX from LLVM text: every intrinsic of the table, what is refused, versions, and ptxas."""

import re
import subprocess
import sys
from collections import defaultdict

import numpy as np
import pytest
from loading import loaded
from ptxas import (
    PtxasError,
    find_ptxas,
    parse_resources,
    parse_warnings,
    run_ptxas,
)

import jitney as jt
from jitney.codegen.cuda.intrinsics import INTRINSICS, Intrinsic
from jitney.codegen.cuda.target import CudaTarget
from jitney.runtime.cuda import assemble as module
from jitney.runtime.cuda.assemble import (
    AssembleError,
    architectures,
    assemble,
    driver_ptx,
    nearest_architecture,
    ptx_for,
)
from jitney.runtime.cuda.client import device_program

needs_ptxas = pytest.mark.skipif(
    find_ptxas() is None, reason="no ptxas is installed: pip install jitney[ptxas]"
)

SCALE = """
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @scale(ptr addrspace(1) noalias align 16 %x, float %a) {
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %p
  %w = fmul float %v, %a
  store float %w, ptr addrspace(1) %p
  ret void
}
"""


POINTERS = {
    "ptr addrspace(1)": "%x",
    "ptr addrspace(3)": "%s",
    "ptr addrspace(7)": "%c",
    "ptr": "%m",
}


def kernel_of(row: Intrinsic, name: str) -> str:
    """A kernel that calls one intrinsic with operands from memory."""
    loads, operands = [], []
    for k, (operand, type) in enumerate(zip(row.operands, row.types, strict=True)):
        if operand != type:
            operands.append(operand)
        elif type.startswith("ptr"):
            operands.append(f"{type} {POINTERS[type]}")
        else:
            loads.append(f"  %a{k} = load volatile {type}, ptr addrspace(1) %x")
            operands.append(f"{type} %a{k}")
    flags = row.flags and f"{row.flags} "
    call = f"call {flags}{row.result} @{row.name}({', '.join(operands)})"
    if row.result == "void":
        end = f"  {call}"
    else:
        end = f"  %r = {call}\n  store volatile {row.result} %r, ptr addrspace(1) %x"
    body = "\n".join([*loads, end])
    params = ", ".join(f"{type} {name}" for type, name in POINTERS.items())
    return f"define ptx_kernel void @{name}({params}) {{\n{body}\n  ret void\n}}"


def table_modules() -> dict[tuple[str, int], str]:
    """A module for each pair of least versions, with a kernel for each of its rows."""
    groups: dict[tuple[str, int], list[Intrinsic]] = defaultdict(list)
    for row in INTRINSICS.values():
        arch = f"sm_{row.sm}{row.features}"
        groups[arch, max(row.ptx, module._LEAST[arch])].append(row)
    return {
        key: "\n".join(
            [row.declaration for row in rows]
            + [kernel_of(row, f"k{i}") for i, row in enumerate(rows)]
        )
        for key, rows in groups.items()
    }


def test_every_intrinsic_is_selected_at_its_least_versions():
    """In a process of its own, which LLVM would end."""
    code = (
        "import sys; sys.path[:0] = ['tests/gpu', 'tests/helpers']\n"
        "from test_cuda_assemble import table_modules\n"
        "from jitney.runtime.cuda.assemble import assemble\n"
        "for (arch, ptx), ir in table_modules().items():\n"
        "    text = assemble(ir, arch, ptx)\n"
        "    assert '.extern' not in text\n"
        "    print(arch, ptx, text.count('.entry'))\n"
    )
    root = module.__file__.rsplit("/runtime/", 1)[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(int(line.split()[2]) for line in done.stdout.splitlines()) == len(INTRINSICS)


@needs_ptxas
def test_every_intrinsic_is_assembled():
    for (arch, ptx), ir in table_modules().items():
        report = run_ptxas(assemble(ir, arch, ptx), arch)
        assert len(report.kernels) == ir.count("ptx_kernel")
        assert report.cubin.startswith(b"\x7fELF")


def test_ptx_names_its_architecture_and_version():
    for arch in architectures():
        text = assemble(SCALE, arch)
        assert f".target {arch}" in text
        assert re.search(r"\.version (\d+)\.(\d)", text)[0] == f".version {ptx_for(arch) / 10}"
    assert ".visible .entry scale" in text


@pytest.mark.parametrize(
    ("ir", "message"),
    [
        ("declare float @expf(float)", "may not call expf"),
        ("declare float @llvm.exp.f32(float)", "may not call llvm.exp.f32"),
        ("declare float @llvm.pow.f32(float, float)", "may not call llvm.pow.f32"),
        ("declare void @llvm.nvvm.nosuch()", "may not call llvm.nvvm.nosuch"),
        ("declare i32 @llvm.nvvm.redux.sync.add(i32, i32)", "needs sm_80"),
        ("declare float @llvm.tanh.f32(float)", "needs sm_75 and PTX 7.0"),
        ("@g = internal global [4 x float] zeroinitializer", "address space"),
        ("@g = thread_local addrspace(1) global i32 0", "thread_local"),
        ('define void @f() { call void asm "exit;", ""() ret void }', "inline assembly"),
        ("define fp128 @f(fp128 %x) { ret fp128 %x }", "fp128"),
        ("define void @k( {", "refuses the module"),
        ("define ptx_kernel void @k() { ret i32 1 }", "refuses the module"),
    ],
)
def test_what_would_end_the_process_is_refused(ir, message):
    with pytest.raises(AssembleError, match=re.escape(message)):
        assemble(ir, "sm_75", 63)


def test_flags_that_llvm_needs_are_demanded():
    body = "define float @f(float %x) {{ %r = call {}float @llvm.tanh.f32(float %x) ret float %r }}"
    declaration = INTRINSICS["llvm.tanh.f32"].declaration
    assemble(declaration + "\n" + body.format("afn ").replace(" ret", "\n ret"), "sm_80")
    with pytest.raises(AssembleError, match="needs the flag afn"):
        assemble(declaration + "\n" + body.format("").replace(" ret", "\n ret"), "sm_80")


def test_versions_that_llvm_would_exit_on_are_refused():
    with pytest.raises(AssembleError, match=re.escape("sm_90 cannot be given PTX 7.0")):
        assemble(SCALE, "sm_90", 70)
    with pytest.raises(AssembleError, match=re.escape("cannot be given PTX 7.9")):
        assemble(SCALE, "sm_80", 79)
    with pytest.raises(AssembleError, match="no architecture 'sm_91'"):
        assemble(SCALE, "sm_91")


def test_versions_of_drivers():
    versions = {
        11080: 78,
        12000: 80,
        12040: 84,
        12060: 85,
        12080: 87,
        12090: 88,
        13000: 90,
        13010: 91,
    }
    assert {v: driver_ptx(v) for v in versions} == versions
    assert ptx_for("sm_90", 13020) == 90  # the most that LLVM emits
    assert ptx_for("sm_90", 12040) == 84
    assert ptx_for("sm_90a") == 80
    with pytest.raises(AssembleError, match=r"needs PTX 8\.7.*takes 7\.8.*newer driver"):
        ptx_for("sm_120", 11080)


def test_the_newest_code_that_a_device_runs():
    devices = {
        (7, 5): "sm_75",
        (8, 6): "sm_86",
        (8, 8): "sm_87",
        (9, 0): "sm_90",
        (12, 1): "sm_121",
    }
    assert {device: nearest_architecture(*device) for device in devices} == devices
    with pytest.raises(AssembleError, match="sm_70"):
        nearest_architecture(7, 0)


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90"])
def test_resources_of_a_kernel(arch):
    report = run_ptxas(assemble(SCALE, arch), arch)
    resources = report.kernels["scale"]
    assert 0 < resources.registers < 32 and resources.spills == 0 and resources.shared == 0
    assert not report.warnings


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x: np.exp(x - x.max(1, keepdims=True)) / np.exp(x).sum(), [(64, 3000)]),
        (lambda x, y: np.tanh(x @ y), [(256, 512), (512, 256)]),
        (lambda x: np.sort(x, axis=1), [(8, 5000)]),
        (lambda x: np.cumsum(x.T, axis=0), [(300, 700)]),
    ],
    ids=["softmax", "product", "sort", "scan"],
)
def test_programs_as_they_are_loaded(function, shapes):
    """The text that a driver gets; static and dynamic shared memory, and registers, of each launch."""
    arrays = [np.ones(shape, np.float32) for shape in shapes]
    graph = jt.jit(function).lower(*arrays).graph
    program = device_program(graph, CudaTarget(arch=90, ptx=90, sms=132))
    text, report = loaded(program)
    assert ".version 9.0" in text and set(program.kernels) <= set(re.findall(r"entry (\w+)", text))
    if report is not None:
        assert all(kernel.stack == 0 for kernel in report.kernels.values())


@needs_ptxas
def test_refused_ptx_is_an_error():
    with pytest.raises(PtxasError, match="refuses"):
        run_ptxas(".version 7.8\n.target sm_90\n nonsense", "sm_90")


def test_what_ptxas_prints_is_understood():
    said = """\
ptxas info    : 0 bytes gmem
ptxas info    : (C7508) Potential Performance Loss: wgmma.mma_async instructions are serialized
ptxas info    : Compiling entry function 'one' for 'sm_90a'
ptxas info    : Function properties for one
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 168 registers, used 2 barriers, 4096 bytes smem, 380 bytes cmem[0]
ptxas info    : Compiling entry function 'two' for 'sm_90a'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""
    kernels = parse_resources(said)
    assert (kernels["one"].registers, kernels["one"].spills, kernels["one"].shared) == (
        168,
        20,
        4096,
    )
    assert (kernels["two"].registers, kernels["two"].stack, kernels["one"].barriers) == (8, 0, 2)
    assert [w.split()[0] for w in parse_warnings(said)] == ["(C7508)"]


def test_no_ptxas_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr("ptxas.find_ptxas", lambda: None)
    with pytest.raises(PtxasError, match="no ptxas"):
        run_ptxas("", "sm_90")
