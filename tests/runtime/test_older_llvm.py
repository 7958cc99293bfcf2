"""What LLVM 20 reads of what is written for LLVM 22."""

import numpy as np
import pytest

import jitney as jt
from jitney.runtime.cuda import assemble
from jitney.runtime.native import engine
from jitney.runtime.native.llvm import llvm
from jitney.runtime.native.older_llvm import in_older_words

GATHER = "  %v = call <8 x double> @llvm.masked.gather.v8f64.v8p0"
MASK, ZEROS = "<8 x i1> %m", "<8 x double> zeroinitializer"


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (
            "declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, <8 x i1>, <8 x double>)",
            "declare <8 x double> @llvm.masked.load.v8f64.p0(ptr, i32, <8 x i1>, <8 x double>)",
        ),
        (
            "declare void @llvm.masked.scatter.v8f64.v8p0(<8 x double>, <8 x ptr>, <8 x i1>)",
            "declare void @llvm.masked.scatter.v8f64.v8p0(<8 x double>, <8 x ptr>, i32, <8 x i1>)",
        ),
        (
            f"  %v = call <8 x double> @llvm.masked.load.v8f64.p0(ptr align 8 %p, {MASK}, {ZEROS})",
            f"  %v = call <8 x double> @llvm.masked.load.v8f64.p0(ptr %p, i32 8, {MASK}, {ZEROS})",
        ),
        (
            f"  call void @llvm.masked.store.v8f64.p0({ZEROS}, ptr align 1 @x, {MASK})",
            f"  call void @llvm.masked.store.v8f64.p0({ZEROS}, ptr @x, i32 1, {MASK})",
        ),
        (
            f"{GATHER}(<8 x ptr> align 4 %p, {MASK}, {ZEROS})",
            f"{GATHER}(<8 x ptr> %p, i32 4, {MASK}, {ZEROS})",
        ),
        (
            f"  call void @llvm.masked.scatter.v8f64.v8p0({ZEROS}, <8 x ptr> align 8 %p, {MASK})",
            f"  call void @llvm.masked.scatter.v8f64.v8p0({ZEROS}, <8 x ptr> %p, i32 8, {MASK})",
        ),
        (
            "  call void @llvm.coro.end(ptr %h, i1 false, token none)",
            "  %ended = call i1 @llvm.coro.end(ptr %h, i1 false, token none)",
        ),
        (
            "declare void @llvm.coro.end(ptr, i1, token)",
            "declare i1 @llvm.coro.end(ptr, i1, token)",
        ),
        *[  # others have their alignment where it was
            (line, line)
            for line in (
                f"  call void @llvm.masked.compressstore.v8f64({ZEROS}, ptr align 8 %p, {MASK})",
                "  %v = load double, ptr %p, align 8",
                "  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %p, ptr align 8 %q, i64 8, i1 false)",
            )
        ],
    ],
)
def test_an_alignment_is_an_argument(newer: str, older: str) -> None:
    assert in_older_words(f"{newer}\n") == in_older_words(f"{older}\n") == f"{older}\n"


def test_a_program_has_nothing_else_that_an_older_llvm_does_not_read() -> None:
    """What can be asked of a newer LLVM: it brings the older spelling to its own, and reads the same."""
    if llvm().llvm_version_info[0] < engine.NEWEST_WORDS:
        pytest.skip("the older LLVM itself runs all other tests")

    def f(x, i):
        y = np.where(x > 0, x, 0)[::2]
        y[i] += 1
        return np.sort(y), x[i]

    text = jt.jit(f).lower(np.ones(37), np.array([1, 0, 3])).llvm()
    older = in_older_words(text)
    assert "@llvm.masked." in text and older != text
    assert _instructions(older) == _instructions(text)


def _instructions(text: str) -> list[str]:
    lines = engine.host_engine().printed(text).splitlines()
    return [line.partition(" #")[0] for line in lines if line.startswith("  ")]


def test_programs_for_gpus_say_which_llvmlite_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    class Older:
        llvm_version_info = (20, 1, 8)

    monkeypatch.setattr(assemble, "llvm", Older)
    with pytest.raises(
        assemble.AssembleError, match=r"need llvmlite 0\.48 or newer .* LLVM 20\.1\.8"
    ):
        assemble._target.__wrapped__()
