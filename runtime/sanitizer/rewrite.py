"""A module's text with a check before every access of memory.

    %x = load double, ptr %p        %p1 = call ptr @jitney_san_access(ptr %p, i64 8, i64 1, i64 12)
                                    %x = load double, ptr %p1

What is read is LLVM's own printing, so that there is one spelling of everything. Arrays on the stack and
constants are arrays too. Each access has a number, its *site*: what stands there, for the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ...codegen.module import NativeModule
from ...codegen.target import Target
from ...ir.record import field, record
from ..native.llvm_text import (
    ParsedCall,
    parse_access,
    parse_call,
    size_and_alignment,
    split,
    take_type,
)
from . import layout as at

NAME = Target.SANITIZER
_LANES = 64  # whose bits are a word

_DATA = re.compile(r"^(@[\w.$]+) = .*?\b(constant|global) (.*)$")
_DEFINE = re.compile(r'^define .*?@("[^"]*"|[\w.$]+)\(')
_ALLOCA = re.compile(r"^\s*(%\S+) = alloca (.*)$")
_LABEL = re.compile(r'^(?:[\w.$-]+|"[^"]*"):')
_DROPPED = ("llvm.prefetch", "llvm.lifetime", "llvm.assume", "llvm.experimental.noalias")
_RENAMED = {"malloc": "malloc", "free": "free"}


@record(frozen=False)
class Checked:
    """A rewritten module, and what stands at each site: `function: instruction`."""

    text: str
    sites: list[str]
    types: dict[str, str] = field(default_factory=dict)


def checked(text: str, module: NativeModule) -> Checked:
    """Rewrite `text`, the code of `module` as LLVM prints it."""
    result = Checked("", [""])
    data: dict[str, tuple[int, bool]] = {}
    lines: list[str] = []
    body: list[str] | None = None
    for line in text.splitlines():
        if body is not None:
            body.append(line)
            if line == "}":
                lines += _Function(module, result, data, body).rewritten()
                body = None
        elif line.startswith("define "):
            body = [line]
        else:
            if line.startswith("%") and " = type " in line:
                name, _, type = line.partition(" = type ")
                result.types[name] = type
            elif (match := _DATA.match(line)) and "external" not in line:
                type, _ = take_type(match[3])
                size, _ = size_and_alignment(type, result.types)
                data[match[1]] = size, match[2] == "constant"
            if not line.startswith(f"declare ptr @{NAME}_"):
                lines.append(line)
    result.text = "\n".join([*lines, _wrapper(module), *_DECLARATIONS, ""])
    return result


def _wrapper(module: NativeModule) -> str:
    """The entry: what it did wrong is its result."""
    status = len(module.inputs) + len(module.outputs) + 1
    return f"""
define i32 @{module.entry}(ptr %args) {{
  %mark = call i64 @{NAME}_mark()
  call void @{NAME}_kernel(i64 0)
  %code = call i32 @{module.entry}.checked(ptr %args)
  %status_at = getelementptr ptr, ptr %args, i64 {status}
  %status = load ptr, ptr %status_at, align 8
  %result = call i32 @{NAME}_leave(i64 %mark, i32 %code, ptr %status)
  ret i32 %result
}}
"""


_DECLARATIONS = [
    f"declare {type} @{NAME}_{name}({params})"
    for type, name, params in (
        ("i64", "mark", ""),
        ("void", "release", "i64"),
        ("void", "kernel", "i64"),
        ("i32", "leave", "i64, i32, ptr"),
        ("ptr", "array", "ptr, i64, i64, i64, i64"),
        ("ptr", "part", "ptr, i64, i64, i64"),
        ("ptr", "access", "ptr, i64, i64, i64"),
        ("ptr", "masked", "ptr, i64, i64, i64, i64, i64"),
        ("void", "gather", "ptr, i64, i64, i64, i64, i64"),
        ("void", "lend", "ptr, i64, i64, i64, i64"),
        ("void", "lend_items", f"ptr, i64, ptr, ptr, {', '.join(['i64'] * 7)}"),
        ("void", "parallel", "ptr, ptr, i64, i64"),
        ("ptr", "malloc", "i64"),
        ("void", "free", "ptr"),
    )
]


class _Function:
    """One function being rewritten. `body` is its text, line by line."""

    def __init__(
        self,
        module: NativeModule,
        result: Checked,
        data: dict[str, tuple[int, bool]],
        body: list[str],
    ) -> None:
        self.module = module
        self.sites = result.sites
        self.types = result.types
        self.data = data
        self.body = body
        match = _DEFINE.match(body[0])
        assert match, body[0]
        self.name = match[1].strip('"')
        self.head: list[str] = []
        self.lines: list[str] = []
        self.constants: dict[str, str] = {}
        self.lasting = self.name in (module.entry, "body")  # its arrays are released in the end
        self.owns = False  # arrays that are released when it returns
        self._room = 0  # pointers of the widest gather
        self._numbers = 0
        self._source = ""

    def rewritten(self) -> list[str]:
        first, *rest = self.body[:-1]
        if self.name == self.module.entry:
            first = first.replace("define ", "define internal ", 1)
            first = first.replace(f"@{self.name}(", f"@{self.name}.checked(", 1)
        before = []
        while rest and (_LABEL.match(rest[0]) or not rest[0].strip()):
            before.append(rest.pop(0))
        for line in rest:
            self._rewrite(line)
        if self._room:
            self.head.append(f"  %san.lanes = alloca [{self._room} x ptr], align 8")
        kernels = [k for k, kernel in enumerate(self.module.kernels) if kernel.name == self.name]
        if kernels:
            self.head.append(f"  call void @{NAME}_kernel(i64 {kernels[0] + 1})")
        if self.owns and not self.lasting:
            self.head.insert(0, f"  %san.mark = call i64 @{NAME}_mark()")
        return [first, *before, *self.head, *self.lines, "}"]

    # Small pieces.

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def value(self, text: str) -> str:
        self._numbers += 1
        name = f"%san.{self._numbers}"
        self.line(f"{name} = {text}")
        return name

    def site(self) -> int:
        """The number of what stands here."""
        words = f"{self.name}: {self._source}"
        if self.sites[-1] != words:
            self.sites.append(words)
        return len(self.sites) - 1

    def size(self, type: str) -> int:
        return size_and_alignment(type, self.types)[0]

    def access(self, pointer: str, size: str | int, kind: int) -> str:
        words = f"i64 {size}, i64 {kind}, i64 {self.site()}"
        return self.value(f"call ptr @{NAME}_access(ptr {pointer}, {words})")

    # Lines.

    def _rewrite(self, line: str) -> None:
        self._source = line.strip()
        if "@" in line and "getelementptr (" not in line and "inbounds (" not in line:
            line = re.sub(r"(?<=\bptr )@[\w.$]+", self._constant, line)
        if match := _ALLOCA.match(line):
            self._stack(match[1], match[2])
        elif line.startswith("  ret"):
            if self.owns and not self.lasting:
                self.line(f"call void @{NAME}_release(i64 %san.mark)")
            self.lines.append(line)
        elif access := parse_access(line):
            plain = not access.volatile and access.kind in ("load", "store")
            kind = {"load": at.READ, "store": at.WRITE}.get(access.kind, at.BOTH)
            kind |= 0 if plain else at.QUIET
            checked = self.access(access.pointer, self.size(access.type), kind)
            self.lines.append(f"{access.before}ptr {checked}{access.after}")
        elif call := parse_call(line):
            self._call(line, call)
        else:
            self.lines.append(line)

    def _constant(self, match: re.Match[str]) -> str:
        """What stands for a constant of the module in this function."""
        name = match[0]
        if name not in self.data:
            return name
        register = self.constants.get(name)
        if register is None:
            size, fixed = self.data[name]
            self.owns = True
            register = self.constants[name] = f"%san.data.{len(self.constants)}"
            self.sites.append(f"the constant {name} of {self.name}")
            number, flags = -len(self.sites), at.PRESET | (at.FIXED if fixed else 0)
            self.head.append(
                f"  {register} = call ptr @{NAME}_array"
                f"(ptr {name}, i64 0, i64 {size}, i64 {number}, i64 {flags})"
            )
        return register

    def _stack(self, name: str, what: str) -> None:
        """An array on the stack: its pointer is made to point at an array."""
        parts = split(what)
        count = next((p.partition(" ")[2] for p in parts[1:] if not p.startswith("align")), "1")
        self.owns = True
        self.sites.append(f"the array {name} on the stack of {self.name}")
        raw = f"%san.raw.{name[1:]}".replace('"', "")
        self.line(f"{raw} = alloca {what}")
        size = self.size(parts[0])
        nbytes = (
            str(size * int(count)) if count.isdigit() else self.value(f"mul i64 {count}, {size}")
        )
        words = f"i64 0, i64 {nbytes}, i64 {-len(self.sites)}, i64 0"
        self.line(f"{name} = call ptr @{NAME}_array(ptr {raw}, {words})")

    def _call(self, line: str, call: ParsedCall) -> None:
        name = call.name.strip('"')
        pointers = [k for k, (type, _) in enumerate(call.operands) if type == "ptr"]
        rewriting = next((r for start, r in _CALLS.items() if name.startswith(start)), None)
        if rewriting is not None:
            rewriting(self, line, call)
        elif name in _RENAMED:
            self.lines.append(line.replace(f"@{name}(", f"@{NAME}_{_RENAMED[name]}("))
        elif pointers and name.startswith("llvm."):
            raise LookupError(f"the sanitizer has no check for calls of {name}: `_CALLS` lacks it")
        else:
            self.lines.append(line)

    def _bits(self, mask: str, type: str, first: int, lanes: int) -> str:
        """The bits of some lanes of a mask, as a word."""
        total = int(type[1:].partition(" ")[0])
        word = self.value(f"bitcast {type} {mask} to i{total}")
        if first:
            word = self.value(f"lshr i{total} {word}, {first}")
        if total == 64:
            return word
        return self.value(f"{'zext' if total < 64 else 'trunc'} i{total} {word} to i64")

    # Calls.

    def copied(self, line: str, call: ParsedCall) -> None:
        """memcpy, memmove: both places are accessed."""
        (_, target), (_, source), (_, size), *_ = call.operands
        read = self.access(source, size, at.READ)
        written = self.access(target, size, at.WRITE)
        name, rest = call.name, f"i64 {size}, i1 false"
        self.line(f"call void @{name}(ptr align 1 {written}, ptr align 1 {read}, {rest})")

    def filled(self, line: str, call: ParsedCall) -> None:
        """memset."""
        (_, target), (_, value), (_, size), *_ = call.operands
        written = self.access(target, size, at.WRITE)
        rest = f"i8 {value}, i64 {size}, i1 false"
        self.line(f"call void @{call.name}(ptr align 1 {written}, {rest})")

    def masked(self, line: str, call: ParsedCall) -> None:
        """Loads and stores of some lanes, neighbours or wherever pointers point."""
        types = [type for type, _ in call.operands]
        values = [value for _, value in call.operands]
        mask = next(k for k, type in enumerate(types) if type.endswith("x i1>"))
        stores = call.type == "void"
        kind = at.WRITE if stores else at.READ
        vector = types[0] if stores else call.type
        lanes, element = int(vector[1:].partition(" ")[0]), vector[1:-1].partition(" x ")[2]
        size = self.size(element)
        index = next(k for k, type in enumerate(types) if type in ("ptr", f"<{lanes} x ptr>"))
        pointer = values[index]
        if types[index] == "ptr" and "compress" not in call.name and "expand" not in call.name:
            extents = []
            for first in range(0, lanes, _LANES):
                here = min(lanes - first, _LANES)
                start = pointer
                if first:
                    start = self.value(f"getelementptr i8, ptr {pointer}, i64 {first * size}")
                bits = self._bits(values[mask], types[mask], first, here)
                words = f"i64 {size}, i64 {here}, i64 {bits}, i64 {kind}, i64 {self.site()}"
                extents.append(self.value(f"call ptr @{NAME}_masked(ptr {start}, {words})"))
            new = extents[0]
        elif types[index] == "ptr":
            bits = self._bits(values[mask], types[mask], 0, lanes)
            count = self.value(f"call i64 @llvm.ctpop.i64(i64 {bits})")
            new = self.access(pointer, self.value(f"mul i64 {count}, {size}"), kind)
        else:
            self._room = max(self._room, lanes)
            type = types[index]
            self.line(f"store {type} {pointer}, ptr %san.lanes, align 8")
            for first in range(0, lanes, _LANES):
                here = min(lanes - first, _LANES)
                start = self.value(f"getelementptr ptr, ptr %san.lanes, i64 {first}")
                bits = self._bits(values[mask], types[mask], first, here)
                words = f"i64 {size}, i64 {here}, i64 {bits}, i64 {kind}, i64 {self.site()}"
                self.line(f"call void @{NAME}_gather(ptr {start}, {words})")
            new = self.value(f"load {type}, ptr %san.lanes, align 8")
        self.lines.append(_replaced(line, pointer, new))

    def dropped(self, line: str, call: ParsedCall) -> None:
        """What is no access."""

    def shared(self, line: str, call: ParsedCall) -> None:
        """What threads would share: one unit of it after the other."""
        words = ", ".join(f"{type} {value}" for type, value in call.operands[:4])
        self.line(f"call void @{NAME}_parallel({words})")

    def callback(self, line: str, call: ParsedCall) -> None:
        """Python is given addresses."""
        (_, number), (_, words) = call.operands
        site = self.module.callbacks[int(number)]
        arrays = [(t, at.READ) for t in site.operands] + [(t, at.WRITE) for t in site.results]
        for k, (type, kind) in enumerate(arrays):
            rest = f"i64 {k}, i64 {type.nbytes}, i64 {kind}, i64 {self.site()}"
            self.line(f"call void @{NAME}_lend(ptr {words}, {rest})")
        checked = self.access(words, 8 * len(arrays), at.READ)
        self.lines.append(_replaced(line, words, checked))

    def library(self, line: str, call: ParsedCall) -> None:
        """A loop of a ufunc is given addresses."""
        _, path, function, types = call.name.strip('"').replace("->", "").split(":")
        (_, words), (_, sizes), (_, steps), (_, data) = call.operands
        for k, (dims, kind, first) in enumerate(_loop_arrays(path, function, len(types))):
            pairs = [(1 + dim, first + n) for n, dim in enumerate(dims)]
            pairs += [(-1, -1)] * (2 - len(pairs))
            numbers = [np.dtype(types[k]).itemsize, *pairs[0], *pairs[1], kind, self.site()]
            rest = ", ".join(f"i64 {n}" for n in numbers)
            self.line(
                f"call void @{NAME}_lend_items"
                f"(ptr {words}, i64 {k}, ptr {sizes}, ptr {steps}, {rest})"
            )
        tables = [self.access(p, 8, at.READ | at.QUIET) for p in (words, sizes, steps)]
        arguments = ", ".join(f"ptr {p}" for p in (*tables, data))
        self.line(f"call void @{call.name}({arguments})")

    def generator(self, line: str, call: ParsedCall) -> None:
        """A function of NumPy's generators, which may be given memory: an array that it fills, or what
        it keeps from one draw to the next."""
        name = call.name.strip('"').partition(":")[2]
        type, memory = call.operands[-1]
        if len(call.operands) > 1 and type == "ptr":
            count, width = _filled_by(name, call)
            kind = at.BOTH | at.QUIET if width is None else at.WRITE
            nbytes = _KEPT if width is None else self.value(f"mul i64 {count}, {width}")
            line = _replaced(line, memory, self.access(memory, nbytes, kind))
        self.lines.append(line)


_KEPT = 320  # bytes of a `binomial_t`, and some


def _filled_by(name: str, call: ParsedCall) -> tuple[str, int | None]:
    """How many elements a function fills, and of how many bytes; None for one that fills nothing."""
    if "_fill" not in name:
        return "", None
    bounded = re.match(r"random_bounded_(bool|uint(\d+))_fill", name)
    if bounded:
        return call.operands[3][1], int(bounded[2] or 8) // 8
    return call.operands[1][1], 4 if name.endswith("_f") else 8


def _replaced(line: str, old: str, new: str) -> str:
    """`line` with another value in the place of the first `old`."""
    return re.sub(rf"(?<=[\s,(]){re.escape(old)}(?=[,)])", new, line, count=1)


def _loop_arrays(path: str, name: str, count: int) -> list[tuple[list[int], int, int]]:
    """For each array of a ufunc's loop: its dims as numbers of sizes, what is done with it, and where
    its steps begin."""
    from importlib import import_module

    ufunc = getattr(import_module(path), name)
    if not ufunc.signature:
        inner: list[list[str]] = [[]] * count
    else:
        groups = re.findall(r"\(([^)]*)\)", ufunc.signature)
        inner = [[d.strip() for d in group.split(",") if d.strip()] for group in groups]
    numbers: dict[str, int] = {}
    for dims in inner:
        for dim in dims:
            numbers.setdefault(dim, len(numbers))
    arrays, word = [], count
    for k, dims in enumerate(inner):
        kind = at.READ if k < ufunc.nin else at.WRITE
        arrays.append(([numbers[d] for d in dims], kind, word))
        word += len(dims)
    return arrays


_Rewriting = Callable[[_Function, str, ParsedCall], None]
_CALLS: dict[str, _Rewriting] = {
    "llvm.memcpy": _Function.copied,
    "llvm.memmove": _Function.copied,
    "llvm.memset": _Function.filled,
    "llvm.masked": _Function.masked,
    **dict.fromkeys(_DROPPED, _Function.dropped),
    Target.PARALLEL_FOR: _Function.shared,
    Target.WATCHED_FOR: _Function.shared,
    Target.CALLBACK: _Function.callback,
    f"{Target.LOOP}:": _Function.library,
    f"{Target.RANDOM}:": _Function.generator,
}
