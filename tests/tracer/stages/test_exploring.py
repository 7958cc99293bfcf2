"""`f.explore(x)`: three sides that agree on what belongs to what; nothing of it in ordinary code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_stages import Tags

import jitney as jt
from jitney.runtime.native.line_tables import assembly, numbered
from jitney.tracer.stages.exploring import Exploration, Row

X = np.linspace(-1.0, 1.0, 64 * 32).reshape(64, 32)


def softmax(x: Any) -> Any:
    peak = x.max(axis=1, keepdims=True)
    shifted = x - peak
    e = np.exp(shifted)
    total = e.sum(axis=1, keepdims=True)
    return e / total


def of(rows: list[Row], text: str) -> set[int]:
    """The numbers of the rows that have this text."""
    return {number for row in rows if re.search(text, row.text) for number in row.lines}


def explored(f: Any, *args: Any, **how: Any) -> Exploration:
    return jt.jit(f).explore(*args, **how)


def test_lines_loops_and_instructions_agree() -> None:
    e = explored(softmax, X)
    for source, loop in (("max", r"= max\("), ("np.exp", r"exp\("), ("e / total", " / ")):
        (number,) = of(e.source, source)
        assert number in of(e.loops, loop)
        assert any(number in row.lines for row in e.code if not row.text.endswith(":"))
    instructions = [row for row in e.code if row.function == "max_sub_exp_sum_0" and row.lines]
    assert len(instructions) > 30
    (division,) = of(e.source, "e / total")
    assert any("div" in row.text and row.lines == (division,) for row in e.code)
    assert of(e.loops, "^kernel") == {n for row in e.source for n in row.lines}
    assert of(e.code, "^max_sub_exp_sum_0:") == of(e.loops, "^kernel")


@pytest.mark.parametrize("way", ["grad", "vmap", "loop", "no ops"])
def test_every_composition(way: str) -> None:
    def loop(x: Any) -> Any:
        for _ in range(100):
            x = x @ x.T @ x / 7
        return np.sort(x)

    programs: dict[str, Any] = {
        "grad": jt.grad(lambda x: softmax(x).std()),
        "vmap": jt.vmap(softmax),
        "loop": loop,
        "no ops": lambda x: x,
    }
    e = explored(programs[way], X[None] if way == "vmap" else X)
    known = {n for row in (*e.source, *e.loops) for n in row.lines}
    assert {n for row in e.code for n in row.lines} <= known
    assert not Tags(e._repr_html_()).open
    if way == "grad":
        assert "(grad of exp)" in str(e)


def test_what_a_gpu_would_run() -> None:
    e = explored(softmax, X, arch="sm_90")
    assert of(e.loops, "^kernel") and any("max" in row.text for row in e.code)
    assert not any("//" in row.text or "$L__tmp" in row.text for row in e.code)
    sides = of(e.source, "np.exp"), of(e.code, "ex2|fma"), of(e.code, r"^\s+div")
    assert sides[0] <= sides[1] and sides[2] and not sides[2] & sides[0]


def test_products_have_the_line_of_their_op() -> None:
    def product(a: Any) -> Any:
        return np.tanh(a @ a) + 1

    for arch in (None, "sm_80"):
        options = {} if arch is None else {"arch": arch}
        e = explored(product, np.ones((64, 64)), **options)
        (line,) = of(e.source, "a @ a")
        tiles = [row for row in e.code if re.search("fma", row.text)]
        assert len(tiles) > 20 and sum(line in row.lines for row in tiles) > len(tiles) // 2


def test_the_page_is_one_file(tmp_path: Path) -> None:
    e = explored(softmax, X)
    e.save(tmp_path / "e.html")
    page = (tmp_path / "e.html").read_text()
    tags = Tags(page)
    assert not tags.open and not tags.links and {"table", "script", "pre"} <= tags.seen
    without = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    assert "vmovupd" in without or "ld1" in without or "ldr" in without
    assert len(page) < 60_000
    e.save(tmp_path / "e.txt")
    assert (tmp_path / "e.txt").read_text() == f"{e}\n"
    with pytest.raises(FileNotFoundError):
        e.save(tmp_path / "no" / "e.html")


def test_names_cannot_break_the_page() -> None:
    @jt.jit
    def f(x: Any) -> Any:
        with jt.name_scope("</pre><script>alert(1)</script>'\""):
            return jt.name(np.sin(x), "<b>\n")

    for html in (f.explore(X)._repr_html_(), f.stages(X)._repr_html_(), f.explain(X)._repr_html_()):
        assert not Tags(html).open and "alert(1)</script>" not in html


def test_code_that_nobody_asks_about_has_no_marks() -> None:
    f = jt.jit(softmax)
    assert "; at " not in f.lower(X).llvm() and "!dbg" not in f.lower(X).llvm()
    assert ".loc" not in f.lower(X).asm()


def test_marks_become_line_numbers() -> None:
    text = """define internal void @k(ptr %a) nounwind {
entry:
  %x = load double, ptr %a
  ; at 2
  %y = fadd double %x, %x
  br label %next
next:
  store double %y, ptr %a
  ret void
}

define void @other() {
entry:
  ret void
}
"""
    lines = numbered(text).splitlines()
    tails = [line.rpartition(", !dbg !")[2] for line in lines if ", !dbg" in line]
    assert len(tails) == 5 and tails[1] == tails[2] != tails[0] == tails[3] == tails[4]
    assert "define void @other() {" in lines and numbered("no marks") == "no marks"


def test_assembly_without_noise() -> None:
    text = (
        '\t.text\n\t.file\t"x"\nk:\n.Lfunc_begin0:\n\t.loc\t1 3 0\n\taddq\t%rax, %rbx\n.LBB0_1:\n'
        "\t.p2align\t4\n\t.loc\t1 0 0\n\tret\n\t.section\t.debug_line\n\t.byte\t1\n\tnoise\n"
    )
    assert [(i.text.split(), i.function, i.line) for i in assembly(text)] == [
        (["k:"], "k", 0),
        (["addq", "%rax,", "%rbx"], "k", 3),
        ([".LBB0_1:"], "k", 3),
        (["ret"], "k", 0),
    ]
