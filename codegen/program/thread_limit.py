"""At most so many threads for the kernels of a module: what it shares goes out in so many parts.

    before: parallel_for(fn, ctx, n, grain)
    after:  parallel_for(fn, ctx, n, the least multiple of grain that makes `threads` parts)

Parts are whole grains, as kernels expect, and results do not depend on how many there are.
"""

from __future__ import annotations

from ..target import Target


def limited_text(text: str, threads: int) -> str:
    """The text of a module, whose calls of the pool go through functions of its own."""
    more = {Target.PARALLEL_FOR: "", Target.WATCHED_FOR: ", ptr %watch, ptr %what"}
    for name, rest in more.items():
        call = f"call void @{name}("
        if call in text:
            text = text.replace(call, f"call void @{name}_of_few(") + _definition(
                name, rest, threads
            )
    return text


def _definition(name: str, rest: str, threads: int) -> str:
    return f"""
define internal void @{name}_of_few(ptr %fn, ptr %ctx, i64 %n, i64 %grain{rest}) nounwind {{
  %all = add i64 %n, {threads - 1}
  %share = udiv i64 %all, {threads}
  %empty = icmp eq i64 %grain, 0
  %unit = select i1 %empty, i64 1, i64 %grain
  %above = add i64 %share, %unit
  %last = sub i64 %above, 1
  %units = udiv i64 %last, %unit
  %part = mul i64 %units, %unit
  call void @{name}(ptr %fn, ptr %ctx, i64 %n, i64 %part{rest})
  ret void
}}
"""
