"""LLVM text with marks (`codegen.marks`) as text with line numbers, so that assembly has them, too.

module = numbered(text)          # `; at 3` became `!dbg` of line 3, in the functions that have marks
for instruction in assembly(engine.asm(module)): ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ...codegen.marks import MARK

_FIRST = 100_000  # number of our first metadata node; modules have few of their own
_DEFINE = re.compile(r"^define .*? @([\w.$]+)\(.*\{$")
_HEADER = """
!llvm.dbg.cu = !{!%(unit)d}
!llvm.module.flags = !{!%(flag)d, !%(dwarf)d}
!%(unit)d = distinct !DICompileUnit(language: DW_LANG_C99, file: !%(file)d, producer: "jitney",
  isOptimized: true, runtimeVersion: 0, emissionKind: LineTablesOnly)
!%(flag)d = !{i32 2, !"Debug Info Version", i32 3}
!%(dwarf)d = !{i32 7, !"Dwarf Version", i32 4}
!%(file)d = !DIFile(filename: "lines", directory: "")
!%(type)d = !DISubroutineType(types: !{null})
"""
_FIXED = ("unit", "flag", "dwarf", "file", "type")


def numbered(text: str) -> str:
    """The module with a line number at each instruction that follows a mark in its block."""
    number = {name: _FIRST + k for k, name in enumerate(_FIXED)}
    nodes: list[str] = []

    def node(body: str) -> int:
        nodes.append(body)
        return _FIRST + len(_FIXED) + len(nodes) - 1

    lines, inside = text.split("\n"), False
    marked = _marked(lines)
    scope, line, known = 0, 0, dict[int, int]()
    for k, each in enumerate(lines):
        head = _DEFINE.match(each)
        if head:
            inside = head[1] in marked
            if inside:
                place = f"scope: !{number['file']}, file: !{number['file']}, line: 0"
                kind = f"type: !{number['type']}, unit: !{number['unit']}"
                spec = f'name: "{head[1]}", {place}, {kind}, spFlags: DISPFlagDefinition'
                scope, line, known = node(f"distinct !DISubprogram({spec})"), 0, {}
                lines[k] = each[:-1] + f"!dbg !{scope} {{"
        elif inside and each.startswith(MARK):
            line = int(each[len(MARK) :])
        elif inside and each.startswith("  "):
            if line not in known:
                known[line] = node(f"!DILocation(line: {line}, column: 0, scope: !{scope})")
            lines[k] = f"{each}, !dbg !{known[line]}"
        elif inside:
            line, inside = 0, each != "}"
    texts = [f"!{_FIRST + len(_FIXED) + k} = {body}" for k, body in enumerate(nodes)]
    return "\n".join([*lines, _HEADER % number, *texts, ""]) if marked else text


def _marked(lines: list[str]) -> set[str]:
    """The functions that have marks."""
    name, found = "", set()
    for line in lines:
        head = _DEFINE.match(line)
        if head:
            name = head[1]
        elif line.startswith(MARK):
            found.add(name)
    return found


class Instruction(NamedTuple):
    """A line of assembly: the function that it is in, and the number of the user's line, 0 if none."""

    text: str
    function: str
    line: int


_LOC = re.compile(r"^\s*\.loc\s+\d+\s+(\d+)")
_LABEL = re.compile(r"^([A-Za-z_.$][\w.$]*):")
_ENTRY = re.compile(
    r"^(?:\.visible\s+|\.weak\s+)*\.(?:entry|func)\s+(?:\(.*?\)\s*)?([\w$]+)\(?"
)  # PTX
_NOISE = re.compile(
    r"^\s*(\.[a-z_][\w.]*\b.*|(\.L|\$L__)(tmp|func|sec|line|info|str|debug)\w*:.*|"
    r"//.*|[(){}])$"
)
_SECTION = re.compile(r"^\s*\.(section|text|bss|data)\b\s*(\S*)")


def assembly(text: str) -> Iterator[Instruction]:
    """The instructions and labels of an assembly text, without what only speaks to an assembler."""
    function, line, code = "", 0, True
    for each in text.splitlines():
        loc, label, section = _LOC.match(each), _LABEL.match(each), _SECTION.match(each)
        if section:
            code = section[1] == "text" or section[2].startswith(".text")
            continue
        if loc:
            line = int(loc[1])
            continue
        entry = _ENTRY.match(each)
        if entry:
            function, line = entry[1], 0
            yield Instruction(f"{function}:", function, 0)
            continue
        if label and not label[1].startswith((".L", "$L")):
            function, line = label[1], 0
        if not code or not each.strip() or _NOISE.match(each) or each.lstrip().startswith("#"):
            continue
        yield Instruction(each.expandtabs(8).rstrip(), function, line)
