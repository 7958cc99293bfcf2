"""Kernels rewritten for the CPU: one function for each, which a thread enters once and goes on in.

    define void @emu.kernel.NAME(ptr %emu.thread, ptr %emu.args)

A kernel whose threads wait for each other becomes an LLVM coroutine, which stops at each such
instruction and tells the scheduler why; LLVM's passes split it. Others are plain functions. Arguments
are read from the packed bytes of the launch. Address spaces go: all memory is the process's. Shared
variables are offsets in one `window`, and every access of global or shared memory is checked first.
"""

from __future__ import annotations

import re

from ....ir.record import field, record
from ...native.llvm_text import (
    ParsedAccess,
    parse_access,
    parse_assembly,
    parse_call,
    size_and_alignment,
    split,
    take_type,
)
from ..assemble import AssembleError
from . import hopper, races
from . import layout as at
from .hopper import assembly_waits, rewrite_assembly
from .instructions import DECLARATIONS, REWRITINGS, WAITING

_WINDOW_ALIGNMENT = 1024
# Memory that is asked for at the launch begins behind a multiple of that: kernels may rely on no larger
# alignment than the widest access has, since a linker keeps no other.
_DYNAMIC_START = 80
_SHARED_ADDRESS = re.compile(r"^\s*(%\S+) = ptrtoint ptr addrspace\(3\) (\S+) to (i\d+)$")


@record(frozen=False)
class HostText:
    """A module for the CPU. `kernels`: name to the types of its parameters; `sites`: what stands where
    a thread may wait or access memory; `static_shared`: bytes of static shared memory by kernel."""

    text: str
    kernels: dict[str, list[str]]
    sites: list[str]
    coroutines: bool
    static_shared: dict[str, int]
    dynamic_offset: int
    partial_barriers: bool
    rooms: list[str] = field(default_factory=list)
    registers: dict[str, int] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)


class _Kernel:
    """One kernel being written."""

    def __init__(self, module: _Module, name: str, params: list[str], waits: bool) -> None:
        self.module = module
        self.name = name
        self.params = params
        self.waits = waits
        self.lines: list[str] = []
        self.ends: dict[str, str] = {}  # blocks that end under another label
        self._numbers = 0
        self._label = ""
        self._source = ""

    # What rewritings use

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def value(self, text: str) -> str:
        self._numbers += 1
        name = f"%emu.{self._numbers}"
        self.line(f"{name} = {text}")
        return name

    def field(self, offset: int) -> str:
        return self.value(f"getelementptr i8, ptr %emu.thread, i64 {offset}")

    def set_word(self, offset: int, value: str | int) -> None:
        self.line(f"store i32 {value}, ptr {self.field(offset)}")

    def address(self, space: int, pointer: str, size: str, align: int, kind: int) -> str:
        check = {1: "emu_global", 3: "emu_shared"}.get(space)
        if check is None:
            return pointer
        operands = f"ptr %emu.thread, ptr {pointer}, i32 {size}, i32 {align}"
        operands += f", i32 {kind}, i32 {self.site()}"
        return self.value(f"call ptr @{check}({operands})")

    def wait(self, how: str, *operands: str | int) -> None:
        words = "".join(f", i32 {word}" for word in (*operands, self.site()))
        self.line(f"call void @emu_{how}(ptr %emu.thread{words})")
        self.stop()

    def unused(self) -> str:
        self._numbers += 1
        return f"%emu.{self._numbers}"

    def stop(self) -> None:
        self._numbers += 1
        here = f"emu.resumed{self._numbers}"
        woken = self.value("call i8 @llvm.coro.suspend(token none, i1 false)")
        self.line(
            f"switch i8 {woken}, label %emu.stop [i8 0, label %{here}\n    i8 1, label %emu.stop]"
        )
        self.lines.append(f"{here}:")
        self.ends[self._label] = here

    def site(self) -> int:
        return self.module.site(f"{self.name}: {self._source}")

    # The body

    def rewrite(self, body: list[str]) -> str:
        for number, line in enumerate(body):
            if match := re.match(r'("[^"]*"|[\w.$-]+):', line):
                self._label = match[1]
                self.lines.append(f"{match[1]}:")
            elif not number:
                self._label = self._entry_number()
                self.lines.append(f"{self._label}:")
                self._instruction(line)
            elif line.strip():
                self._instruction(line)
        text = "\n".join(self.lines)
        return self._header(body) + self._fix_phis(text) + self._footer()

    def _entry_number(self) -> str:
        """The number of a nameless first block: it comes after the nameless parameters."""
        return str(sum(bool(re.search(r"%\d+$", p)) for p in self.params))

    def _instruction(self, line: str) -> None:
        self._source = line.strip()
        if self._source == "ret void":
            self.set_word(at.STATE, at.EXITED)
            self.line("br label %emu.stop")
            return
        call = parse_call(line)
        if call is not None:
            rewriting = REWRITINGS.get(call.name)
            if rewriting is not None:
                rewriting(self, call)
                return
            if call.name.startswith("llvm.nvvm."):
                raise AssembleError(f"the emulation does not know {call.name}")
        elif assembly := parse_assembly(line):
            self._source = assembly.text
            rewrite_assembly(self, assembly)
            return
        elif match := _SHARED_ADDRESS.match(line):
            self._shared_address(*match.groups())
            return
        elif access := parse_access(line):
            self._access(access)
            return
        self.lines.append(line)

    def _shared_address(self, name: str, pointer: str, type: str) -> None:
        """Shared memory begins at 0, and its numbers are small."""
        address = self.value(f"ptrtoint ptr {pointer} to i64")
        start = self.value("ptrtoint ptr @emu.window to i64")
        if type == "i64":
            self.line(f"{name} = sub i64 {address}, {start}")
            return
        self.line(f"{name} = trunc i64 {self.value(f'sub i64 {address}, {start}')} to {type}")

    def _access(self, access: ParsedAccess) -> None:
        size, _ = size_and_alignment(access.type, self.module.types)
        kind = races.MEANT
        if access.kind in ("load", "store") and not access.volatile:
            kind = races.READ if access.kind == "load" else races.WRITE
        pointer = self.address(access.space, access.pointer, str(size), access.align, kind)
        self.lines.append(f"{access.before}ptr {pointer}{access.after}")
        if access.volatile and access.kind != "store" and self.waits:
            self.wait("spins")  # other threads may write before this one looks again

    def _fix_phis(self, text: str) -> str:
        def rename(match: re.Match[str]) -> str:
            return f", %{self.ends.get(match[1], match[1])} ]"

        return re.sub(
            r"= phi .*", lambda phi: re.sub(r', %("[^"]*"|[\w.$-]+) \]', rename, phi[0]), text
        )

    def _header(self, body: list[str]) -> str:
        kind = " presplitcoroutine" if self.waits else ""
        lines = [
            f"define void @emu.kernel.{self.name}(ptr %emu.thread, ptr %emu.args){kind} {{",
            "emu.entry:",
        ]
        if self.waits:
            lines += [
                "  %emu.id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)",
                "  %emu.size = call i64 @llvm.coro.size.i64()",
                "  %emu.frame = call ptr @emu_frame(ptr %emu.thread, i64 %emu.size)",
                "  %emu.handle = call ptr @llvm.coro.begin(token %emu.id, ptr %emu.frame)",
                f"  %emu.where = getelementptr i8, ptr %emu.thread, i64 {at.HANDLE}",
                "  store ptr %emu.handle, ptr %emu.where",
            ]
        offset = 0
        for k, param in enumerate(self.params):
            type, rest = take_type(param)
            size, align = size_and_alignment(type, self.module.types)
            if by_value := re.search(r"\bbyval\((.*?)\) align (\d+)", rest):
                size, align = (
                    size_and_alignment(by_value[1], self.module.types)[0],
                    int(by_value[2]),
                )
            offset = -(-offset // align) * align
            lines.append(f"  %emu.arg{k} = getelementptr i8, ptr %emu.args, i64 {offset}")
            name = rest.split()[-1]
            if by_value:
                lines.append(f"  {name} = getelementptr i8, ptr %emu.args, i64 {offset}")
            else:
                lines.append(f"  {name} = load {type}, ptr %emu.arg{k}, align {align}")
            offset += size
        first = re.match(r'("[^"]*"|[\w.$-]+):', body[0])
        label = first[1] if first else self._entry_number()
        return "\n".join([*lines, f"  br label %{label}", ""])

    def _footer(self) -> str:
        end = ""
        if self.waits:
            end = "  call void @llvm.coro.end(ptr %emu.handle, i1 false, token none)\n"
        return f"\nemu.stop:\n{end}  ret void\n}}\n"


class _Module:
    def __init__(self, text: str) -> None:
        self.types: dict[str, str] = {}
        self.sites: list[str] = []
        self.kernels: dict[str, list[str]] = {}
        self.coroutines = False
        self._shared: dict[str, tuple[str, int, int]] = {}  # type, size, alignment by name
        self._ends: dict[str, int] = {}  # of the variables in shared memory that have an offset
        self.static_shared: dict[str, int] = {}
        self.dynamic: list[tuple[str, str]] = []
        self.data: list[str] = []
        self.registers: dict[str, int] = {}  # of a thread, where a kernel has a limit
        self.out: list[str] = []
        self._lines = text.splitlines()
        groups = re.findall(r"^attributes (#\d+) = \{(.*)\}", text, re.M)
        self._attributes = dict(groups)

    def site(self, text: str) -> int:
        """A number for an instruction: equal texts at two places are two sites."""
        self.sites.append(text)
        return len(self.sites)

    def rewrite(self) -> None:
        lines = iter(self._lines)
        for line in lines:
            if line.startswith("define "):
                body = []
                for inner in lines:
                    if inner == "}":
                        break
                    body.append(inner)
                self._function(line, body)
            elif line.startswith("@"):
                self._global(line)
            elif match := re.match(r"(%\S+) = type (.*)$", line):
                self.types[match[1]] = match[2]
                self.out.append(line)
            elif line.startswith("declare "):
                name = re.search(r"@([\w.$]+)\(", line)
                if name and name[1] not in REWRITINGS:
                    self.out.append(_without_attributes(line))
            elif re.match(r"!\d+ = ", line):
                self.out.append(line)
        self._lay_out_the_rest()

    def _function(self, header: str, body: list[str]) -> None:
        match = re.match(r"define (?:dso_local )?ptx_kernel void @([\w.$]+)\(", header)
        if not match:
            for line in body:
                if "@llvm.nvvm." in line:
                    raise AssembleError(f"the emulation knows {line.strip()!r} in kernels only")
            self.out += [_without_attributes(header[:-1]) + " {", *body, "}"]
            return
        name = match[1]
        start = match.end()
        params = split(header[start : header.index(")", _last_parameter(header, start))])
        self.kernels[name] = [take_type(param)[0] for param in params]
        self._lay_out_shared(name, body)
        number = re.search(r"\) .*?(#\d+) \{$", header)
        attributes = header + (self._attributes.get(number[1], "") if number else "")
        if limit := re.search(r'"nvvm.maxnreg"="(\d+)"', attributes):
            self.registers[name] = int(limit[1])
        waits = any(_waits(line) for line in body)
        self.coroutines |= waits
        self.out.append(_Kernel(self, name, params, waits).rewrite(body))

    def _lay_out_shared(self, kernel: str, body: list[str]) -> None:
        """Each kernel has shared memory to itself: its variables begin at the window's start."""
        used = {word for line in body for word in re.findall(r"@([\w.$]+)", line)}
        own = [name for name in self._shared if name in used]
        end = max((self._ends[name] for name in own if name in self._ends), default=0)
        for name in own:
            if name not in self._ends:
                end = self._lay_out(name, end)
        self.static_shared[kernel] = end

    def _lay_out(self, name: str, start: int) -> int:
        type, size, alignment = self._shared[name]
        start = -(-start // alignment) * alignment
        self.out.append(_alias(name, type, start))
        self._ends[name] = start + size
        return start + size

    def _lay_out_the_rest(self) -> None:
        """Variables that no kernel names lie behind those that some kernel does."""
        end = max(self._ends.values(), default=0)
        left = [name for name in self._shared if name not in self._ends]
        for name in left:
            end = self._lay_out(name, end)
        if left:
            self.static_shared = dict.fromkeys(self.static_shared, end)

    def _global(self, line: str) -> None:
        match = re.match(
            r"@([\w.$]+) = (.*?)addrspace\((\d)\) (?:externally_initialized )?(global|constant) (.*)$",
            line,
        )
        if not match:
            raise AssembleError(f"the emulation does not know this global: {line}")
        name, linkage, space, kind, rest = match.groups()
        type, value = take_type(rest)
        size, own = size_and_alignment(type, self.types)
        align = re.search(r", align (\d+)", rest)
        alignment = int(align[1]) if align else own
        if space == "3" and "external" in linkage:
            self.dynamic.append((name, type))
        elif space == "3":
            self._shared[name] = type, size, alignment
        else:
            self.data.append(f"{{ ptr, i64 }} {{ ptr @{name}, i64 {size} }}")
            self.out.append(f"@{name} = internal {kind} {type} {value}")


def _last_parameter(header: str, start: int) -> int:
    """Where the brackets of a header's parameters close."""
    depth = 1
    for i in range(start, len(header)):
        depth += (header[i] == "(") - (header[i] == ")")
        if not depth:
            return i
    raise AssembleError(f"no end of the parameters: {header}")


def _alias(name: str, type: str, offset: int) -> str:
    return f"@{name} = internal alias {type}, getelementptr (i8, ptr @emu.window, i64 {offset})"


def _waits(line: str) -> bool:
    call = parse_call(line)
    if call is not None:
        return call.name in WAITING
    if assembly := parse_assembly(line):
        return assembly_waits(assembly)
    access = parse_access(line)
    return access is not None and access.volatile and access.kind != "store"


def _without_attributes(line: str) -> str:
    return re.sub(r" (#\d+|nounwind|convergent|memory\([^)]*\)|willreturn)(?= |$)", "", line)


def _without_spaces(text: str) -> str:
    """Address spaces and scopes go; what converted between spaces does nothing any more."""
    text = re.sub(r"ptr addrspace\(\d+\)", "ptr", text)
    text = re.sub(r"\baddrspacecast\b", "bitcast", text)
    text = re.sub(r'syncscope\("\w+"\) ', "", text)
    return re.sub(r"(?<=\)) #\d+(?=$|,)", "", text, flags=re.M)


def host_text(text: str) -> HostText:
    """The CPU's form of a module, as LLVM prints the module."""
    module = _Module(text)
    module.rewrite()
    static = max(module.static_shared.values(), default=0)
    dynamic_offset = -(-static // _WINDOW_ALIGNMENT) * _WINDOW_ALIGNMENT + _DYNAMIC_START
    dynamic_offset = dynamic_offset if module.dynamic else static
    aliases = [_alias(name, type, dynamic_offset) for name, type in module.dynamic]
    table = f"[{len(module.data)} x {{ ptr, i64 }}] [{', '.join(module.data)}]"
    declared = {line for line in module.out if line.startswith("declare ")}
    names = {re.search(r"@([\w.$]+)\(", line)[1] for line in declared}  # type: ignore[index]
    declarations = [
        line
        for line in sorted(DECLARATIONS | hopper.DECLARATIONS)
        if re.search(r"@([\w.$]+)\(", line)[1] not in names  # type: ignore[index]
    ]
    lines = [
        f"@emu.window = global [{at.WINDOW_BYTES} x i8] zeroinitializer, align {_WINDOW_ALIGNMENT}",
        f"@emu.data = constant {table}",
        *declarations,
        *aliases,
        *module.out,
    ]
    return HostText(
        _without_spaces("\n".join(lines) + "\n"),
        module.kernels,
        module.sites,
        module.coroutines,
        module.static_shared,
        dynamic_offset,
        ".aligned.count(" in text or "llvm.nvvm.mbarrier" in text,
        [room for word, room in _ROOMS if word in text],
        module.registers,
        module.data,
    )


# What kernels that contain a word need room for.
_ROOMS = (
    ("llvm.nvvm.cp.async.c", "queues"),
    ("llvm.nvvm.cp.async.bulk", "boxes"),
    ("wgmma", "sums"),
    ("wgmma", "group_steps"),
    ("setmaxnreg", "group_steps"),
)
