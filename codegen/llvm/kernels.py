"""A kernel as an LLVM function: `void @name(ptr %ctx, i64 %lo, i64 %hi)`.

`ctx` is a block of pointers, one per array that the kernel touches in memory, the status block last if
the kernel checks bounds. `lo..hi` is the part of the shared loop that this call does (see `schedule`).

Every loop has the same form, a test at its head with the accumulators as phis, so zero trips need no
special case. A vectorised loop of static length is followed by one masked body for what is left; if
the body only stores and reads nothing that it writes, the last vector is moved back to overlap instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...ir.types import BOOL, I32, I64
from ..index import Data, Div, Index, Mod, Var, linear, of_var
from ..kernel import Access, Array, Bound, Demand, Kernel, Nest, Stage
from ..math import EXPANSIONS
from ..scalar import DType, Expr
from ..schedule import Loops, Schedule
from ..target import Target
from .instructions import SCALAR_TYPES, suffix, type_text
from .reductions import Carried, Reduction, apply, reduction
from .scalars import Operand, ScalarEmitter

Values = list[Carried]


class KernelEmitter(ScalarEmitter):
    """Emits one kernel under one schedule."""

    def __init__(
        self, kernel: Kernel, plan: Schedule, target: Target, definitions: dict[str, str]
    ) -> None:
        super().__init__(target, [], plan.width, definitions=definitions)
        self.kernel = kernel
        self.plan = plan
        self.lane: Var | None = None  # the vectorised loop's variable, and where it stands
        self.mask = ""  # the lanes that are on, when not all are
        self.env: dict[Var, Index] = {}
        self.at: dict[Var, str] = {}  # loop variable -> its int64 value (of lane 0)
        self.registers: dict[Array, Operand] = {}
        self.buffers: dict[Array, tuple[str, tuple[int, ...]]] = {}  # row buffers
        self.pointers: dict[Array, str] = {}
        self.checks = any(s.checks for s in plan.surveys.values())
        self.arrays = self._memory_arrays()
        self.idempotent = self._is_idempotent()

    # The function.

    def function(self) -> str:
        """The function's text, from the parameter list on: equal kernels have equal texts."""
        head: list[str] = []
        for position, array in enumerate(self.arrays):
            self.pointers[array] = f"%p{position}"
            head += _pointer(f"%p{position}", position)
        if self.checks:
            head += _pointer("%status", len(self.arrays))
        self._row_buffers(head)
        self._outer()
        self.lines.append("  ret void")
        body = "\n".join([*head, *self.lines])
        return f"(ptr noalias %ctx, i64 %lo, i64 %hi) nounwind {{\nentry:\n{body}\n}}\n"

    def _memory_arrays(self) -> list[Array]:
        """Arrays that need a pointer, in the order of the context block."""
        found: dict[Array, None] = {}
        for stage in self.kernel.stages:
            for access in stage.reads:
                found[access.array] = None
            found[stage.array] = None
        return [a for a in found if a not in self.kernel.local]

    def _is_idempotent(self) -> bool:
        """Whether doing a point twice does no harm: nothing in memory is both read and written."""
        written = {s.array for s in self.kernel.stages if s.array not in self.kernel.local}
        read = {a.array for s in self.kernel.stages for a in s.reads}
        plain = all(s.action in ("store", "reduce") for s in self.kernel.stages)
        return plain and not (written & read)

    def _row_buffers(self, head: list[str]) -> None:
        """Stack memory for values of one row that a later nest reads again."""
        outer = len(self.kernel.extents)
        home = {s.array: n for n in self.kernel.nests for s in n.stages}
        for nest in self.kernel.nests:
            for stage in nest.stages:
                for access in stage.reads:
                    array = access.array
                    if array not in self.kernel.local or array in self.buffers:
                        continue
                    if home[array] is not nest and len(array.shape) > outer:
                        inner = array.shape[outer:]
                        count = math.prod(inner)
                        name = f"%row{len(self.buffers)}"
                        size = count * array.dtype.itemsize
                        head.append(f"  {name} = alloca [{size} x i8], align 64")
                        strides = (0,) * outer + array.strides[outer:]
                        self.buffers[array] = (name, strides)

    # Outer loops.

    def _outer(self) -> None:
        plan = self.plan
        self.env.update(plan.outer.env)
        loops = plan.outer.vars
        lo, hi = ("%lo", "%hi") if plan.parallel else ("0", str(plan.range))
        if plan.mode == "inner":
            self._walk_rows(loops, lo, hi, self._row)
        elif len(loops) == 1:
            self._vector(loops[0], lo, hi, self._lanes)
        elif plan.split_last:
            rows = str(math.prod(v.extent for v in loops[:-1]))
            self._walk_rows(
                loops[:-1], "0", rows, lambda: self._vector(loops[-1], lo, hi, self._lanes)
            )
        else:
            self._walk_rows(
                loops[:-1],
                lo,
                hi,
                lambda: self._vector(loops[-1], "0", str(loops[-1].extent), self._lanes),
            )

    def _walk_rows(
        self, loops: Sequence[Var], lo: str, hi: str, body: Callable[[], object]
    ) -> None:
        """Walk the outer points lo..hi of several loops taken as one."""

        def at_row(q: str, _: Values) -> Values:
            rest = q
            for var in reversed(loops[1:]):
                self.at[var] = self.value_of(f"urem i64 {rest}, {var.extent}")
                rest = self.value_of(f"udiv i64 {rest}, {var.extent}")
            if loops:
                self.at[loops[0]] = rest
            body()
            return []

        self._loop(lo, hi, 1, [], at_row)

    def _lanes(self, _: Values) -> Values:
        self._row()
        return []

    def _row(self) -> None:
        """Everything that happens at one outer point (or one vector of them)."""
        before = dict(self.registers)
        for nest, loops in zip(self.kernel.nests, self.plan.inner, strict=True):
            self._nest(nest, loops)
        self.registers = before

    # Nests.

    def _nest(self, nest: Nest, loops: Loops) -> None:
        self.env.update(loops.env)
        vector = self.width > 1 and (
            self.plan.mode == "outer" or (bool(loops.vars) and self._vectorises(nest))
        )
        reductions = [self._reduction(s, nest, vector) for s in nest.stages]
        starts: Values = [c for r in reductions if r is not None for c in r.initial()]

        def body(values: Values) -> Values:
            results: Values = []
            position = 0
            for stage, fold in zip(nest.stages, reductions, strict=True):
                if fold is None:
                    self._store_stage(stage)
                    continue
                old = values[position : position + fold.count]
                position += fold.count
                new = fold.combine(old)
                results += new
                if stage.action == "scan":
                    self._store(stage, Operand(new[0].text, new[0].uniform))
            return results

        if not loops.vars:
            ends = body(starts)
        else:
            with self._inner_registers():
                ends = self._walk(loops.vars, nest, starts, body)
        position = 0
        for stage, fold in zip(nest.stages, reductions, strict=True):
            if fold is None or stage.action == "scan":
                position += fold.count if fold else 0
                continue
            result = fold.finish(ends[position : position + fold.count])
            position += fold.count
            self._keep(stage, result)

    def _reduction(self, stage: Stage, nest: Nest, vector: bool) -> Reduction | None:
        if stage.action not in ("reduce", "scan"):
            return None
        lanewise = self.plan.mode == "outer"
        return reduction(self, stage, vector, lanewise, stage.dims[nest.outer :])

    @contextmanager
    def _inner_registers(self) -> Iterator[None]:
        """Values made in a loop's body are not in registers after it."""
        before = dict(self.registers)
        yield
        self.registers = before

    def _walk(
        self,
        loops: Sequence[Var],
        nest: Nest,
        values: Values,
        body: Callable[[Values], Values],
    ) -> Values:
        """Run `body` over the inner loops, outermost first, carrying `values`."""
        var, rest = loops[0], loops[1:]
        if not rest and self.plan.mode == "inner" and self.width > 1 and self._vectorises(nest):
            hi = self._extent(nest, var)
            return self._vector(var, "0", hi, body, values)

        def step(position: str, carried: Values) -> Values:
            self.at[var] = position
            return self._walk(rest, nest, carried, body) if rest else body(carried)

        return self._loop("0", self._extent(nest, var), 1, values, step)

    def _vectorises(self, nest: Nest) -> bool:
        """An ordered update runs its last loop in vectors only if that loop is not part of its order."""
        return all(s.action != "update" or len(s.dims) > s.kept for s in nest.stages)

    def _extent(self, nest: Nest, var: Var) -> str:
        """The trip count of an inner loop: the last chunk of a split reduction may be shorter."""
        stage = nest.stages[0]
        chunks = stage.chunks
        if chunks is None or self.env[stage.dims[stage.kept]] != of_var(var):
            return str(var.extent)
        start = self.index_text(self.env[stage.dims[chunks.axis]] * chunks.length)
        left = self.value_of(f"sub i64 {chunks.total}, {start}")
        short = self.value_of(f"icmp slt i64 {left}, {chunks.length}")
        return self.value_of(f"select i1 {short}, i64 {left}, i64 {chunks.length}")

    # Loops.

    def _loop(
        self,
        lo: str,
        hi: str,
        step: int,
        values: Values,
        body: Callable[[str, Values], Values],
    ) -> Values:
        """for i in range(lo, hi, step): values = body(i, values)"""
        head, inside, leave = (self.new_label(h) for h in ("for", "do", "end"))
        before = self.block
        i = f"%i{next(self.names)}"
        carried = [v._replace(text=f"%a{next(self.names)}") for v in values]
        self.lines.append(f"  br label %{head}")
        self.start_block(head)
        phis = len(self.lines)
        self.lines.append(f"  {i}c = icmp slt i64 {i}, {hi}")
        self.lines.append(f"  br i1 {i}c, label %{inside}, label %{leave}")
        with self.scope():
            self.start_block(inside)
            new = body(i, carried)
            self.lines.append(f"  {i}n = add nsw i64 {i}, {step}")
            self.lines.append(f"  br label %{head}")
            after = self.block
        texts = [f"  {i} = phi i64 [ {lo}, %{before} ], [ {i}n, %{after} ]"]
        texts += [
            f"  {c.text} = phi {c.type} [ {v.text}, %{before} ], [ {n.text}, %{after} ]"
            for c, v, n in zip(carried, values, new, strict=True)
        ]
        self.lines[phis:phis] = texts
        self.start_block(leave)
        return carried

    def _vector(
        self,
        var: Var,
        lo: str,
        hi: str,
        body: Callable[[Values], Values],
        values: Values | None = None,
    ) -> Values:
        """Walk var over lo..hi in vectors, what is left at the end included."""
        values = values or []
        width, n = self.width, var.extent
        self.lane, outside = var, self.lane
        static = lo == "0" and hi == str(n)
        if width == 1:
            out = self._loop(lo, hi, 1, values, lambda i, v: self._at(var, i, "", v, body))
        elif not values and self.idempotent and n >= width and (static or lo == "%lo"):
            last = str(n - width) if static else self._minus(hi, width)
            out = self._loop(
                lo,
                hi,
                width,
                values,
                lambda i, v: self._at(var, self._least(i, last), "", v, body),
            )
        else:
            out = self._masked_tail(var, lo, hi, static, values, body)
        self.lane = outside
        return out

    def _minus(self, text: str, k: int) -> str:
        return self.value_of(f"sub i64 {text}, {k}")

    def _least(self, a: str, b: str) -> str:
        below = self.value_of(f"icmp slt i64 {a}, {b}")
        return self.value_of(f"select i1 {below}, i64 {a}, i64 {b}")

    def _masked_tail(
        self,
        var: Var,
        lo: str,
        hi: str,
        static: bool,
        values: Values,
        body: Callable[[Values], Values],
    ) -> Values:
        """Whole vectors first, then one body with the lanes beyond `hi` switched off."""
        width, n = self.width, var.extent
        if static:
            main = n - n % width
            if main:
                values = self._loop(
                    "0",
                    str(main),
                    width,
                    values,
                    lambda i, v: self._at(var, i, "", v, body),
                )
            if n % width:
                lanes = [f"i1 {'true' if k < n % width else 'false'}" for k in range(width)]
                with self.scope():
                    values = self._at(var, str(main), f"<{', '.join(lanes)}>", values, body)
            return values
        length = self.value_of(f"sub i64 {hi}, {lo}")
        whole = self.value_of(f"and i64 {length}, {-width}")
        stop = self.value_of(f"add i64 {lo}, {whole}")
        values = self._loop(lo, stop, width, values, lambda i, v: self._at(var, i, "", v, body))

        def rest(i: str, carried: Values) -> Values:
            left = self.value_of(f"sub i64 {hi}, {i}")
            left32 = self.value_of(f"trunc i64 {left} to i32")
            spread = self.spread(Operand(left32, True), I32)
            mask = self.value_of(f"icmp slt <{width} x i32> {_iota(width, 'i32')}, {spread}")
            return self._at(var, i, mask, carried, body)

        return self._loop(stop, hi, width, values, rest)

    def _at(
        self, var: Var, position: str, mask: str, values: Values, body: Callable[[Values], Values]
    ) -> Values:
        self.at[var] = position
        self.mask, outside = mask, self.mask
        result = body(values)
        self.mask = outside
        return result

    # Stages.

    def _store_stage(self, stage: Stage) -> None:
        if stage.action == "update":
            self._update(stage)
            return
        value = self.operand(stage.value)
        self._keep(stage, value)

    def _keep(self, stage: Stage, value: Operand) -> None:
        """Remember a stage's value in a register, and write it to memory if it has any."""
        self.registers[stage.array] = value
        if stage.array not in self.kernel.local or stage.array in self.buffers:
            self._store(stage, value)

    def _store(self, stage: Stage, value: Operand) -> None:
        base, strides = self._memory(stage.array)
        self._write(stage.array.dtype, base, linear(stage.index, strides), value)

    def _memory(self, array: Array) -> tuple[str, tuple[int, ...]]:
        buffer = self.buffers.get(array)
        return buffer if buffer is not None else (self.pointers[array], array.strides)

    def _update(self, stage: Stage) -> None:
        base, strides = self._memory(stage.array)
        flat = linear(stage.index, strides)
        value = self.operand(stage.value)
        if stage.op != "set":
            dtype = stage.array.dtype
            old = self._read(dtype, base, flat, None)
            name = {"add": "add", "multiply": "mul", "min": "minimum", "max": "maximum"}[stage.op]
            (value,) = apply(
                self, lambda a, b: [EXPANSIONS[name](a, b)], [old, value], [dtype, dtype]
            )
        self._write(stage.array.dtype, base, flat, value)

    # Leaves: loads, indices, bounds checks.

    def emit_leaf(self, expr: Expr) -> Operand:
        if expr.op == "load":
            return self._load(expr)
        if expr.op == "index":
            return self._index(expr.attr)
        if expr.op == "bounded":
            return self._bounded(expr)
        if expr.op == "demanded":
            return self._demanded(expr)
        return super().emit_leaf(expr)

    def leaf_is_uniform(self, expr: Expr) -> bool:
        if self.width == 1 or self.lane is None:
            return True
        if expr.op == "load":
            access: Access = expr.attr
            if access.array in self.registers:
                return self.registers[access.array].uniform
            return all(self._is_uniform_index(i) for i in access.index)
        return expr.op in ("bounded", "demanded") or self._is_uniform_index(expr.attr)

    def _load(self, expr: Expr) -> Operand:
        access: Access = expr.attr
        held = self.registers.get(access.array)
        if held is not None:
            return held
        base, strides = self._memory(access.array)
        guard = self.operand(expr.args[0]) if expr.args else None
        return self._read(access.array.dtype, base, linear(access.index, strides), guard)

    def _read(self, dtype: DType, base: str, flat: Index, guard: Operand | None) -> Operand:
        flat = flat.substitute(self.env)
        if self._is_uniform_index(flat):
            offset = self.index_text(flat)
            if guard is not None:
                on = guard.text if guard.uniform else self._any_lane(guard)
                offset = self.value_of(f"select i1 {on}, i64 {offset}, i64 0")
            return Operand(self.load(dtype, self._address(dtype, base, offset), 1), True)
        mask = self._lanes_on(guard)
        lane = self.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self._rest_uniform(flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            return Operand(self.load(dtype, pointer, self.width, mask=mask), False)
        pointers = self._addresses(dtype, base, flat)
        return Operand(self._gather(dtype, pointers, mask), False)

    def _write(self, dtype: DType, base: str, flat: Index, value: Operand) -> None:
        flat = flat.substitute(self.env)
        if self._is_uniform_index(flat):
            if not value.uniform:
                raise AssertionError("a value that differs between lanes is stored to one place")
            self.store(dtype, value.text, self._address(dtype, base, self.index_text(flat)), 1)
            return
        text = self.spread(value, dtype)
        lane = self.lane
        assert lane is not None
        if flat.coeff(lane) == 1 and self._rest_uniform(flat):
            pointer = self._address(dtype, base, self.index_text(flat))
            self.store(dtype, text, pointer, self.width, mask=self.mask)
        else:
            self._scatter(dtype, text, self._addresses(dtype, base, flat))

    def _lanes_on(self, guard: Operand | None) -> str:
        """The mask of a load: the loop's lanes, and those that the program wants."""
        if guard is None:
            return self.mask
        text = self.spread(guard, BOOL)
        if not self.mask:
            return text
        return self.value_of(f"and {type_text(BOOL, self.width)} {text}, {self.mask}")

    def _address(self, dtype: DType, base: str, offset: str) -> str:
        element = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
        return self.value_of(f"getelementptr {element}, ptr {base}, i64 {offset}")

    def _addresses(self, dtype: DType, base: str, flat: Index) -> str:
        element = "i8" if dtype == BOOL else SCALAR_TYPES[dtype]
        offsets = self._index_vector(flat)
        return self.value_of(f"getelementptr {element}, ptr {base}, <{self.width} x i64> {offsets}")

    def _gather(self, dtype: DType, pointers: str, mask: str) -> str:
        w = self.width
        memory = f"<{w} x i8>" if dtype == BOOL else type_text(dtype, w)
        name = f"v{w}i8" if dtype == BOOL else suffix(dtype, w)
        symbol = f"@llvm.masked.gather.{name}.v{w}p0"
        bits = type_text(BOOL, w)
        self.declarations.add(f"declare {memory} {symbol}(<{w} x ptr>, {bits}, {memory})")
        on = mask or "splat (i1 true)"
        text = self.fresh(
            f"call {memory} {symbol}(<{w} x ptr> align {dtype.itemsize} {pointers}, {bits} {on}, "
            f"{memory} zeroinitializer)"
        )
        return self.value_of(f"icmp ne {memory} {text}, zeroinitializer") if dtype == BOOL else text

    def _scatter(self, dtype: DType, text: str, pointers: str) -> None:
        w = self.width
        memory = f"<{w} x i8>" if dtype == BOOL else type_text(dtype, w)
        name = f"v{w}i8" if dtype == BOOL else suffix(dtype, w)
        if dtype == BOOL:
            text = self.value_of(f"zext {type_text(BOOL, w)} {text} to {memory}")
        symbol = f"@llvm.masked.scatter.{name}.v{w}p0"
        bits = type_text(BOOL, w)
        self.declarations.add(f"declare void {symbol}({memory}, <{w} x ptr>, {bits})")
        on = self.mask or "splat (i1 true)"
        self.lines.append(
            f"  call void {symbol}({memory} {text}, <{w} x ptr> align {dtype.itemsize} {pointers}, "
            f"{bits} {on})"
        )

    def _index(self, index: Index) -> Operand:
        index = index.substitute(self.env)
        if self._is_uniform_index(index):
            return Operand(self.index_text(index), True)
        return Operand(self._index_vector(index), False)

    def _bounded(self, expr: Expr) -> Operand:
        """Normalise an index; note the first one that is out of bounds in the status block."""
        bound: Bound = expr.attr
        raw = self.operand(expr.args[0])
        guard = self.operand(expr.args[1]) if len(expr.args) > 1 else None
        lanes = 1 if raw.uniform and (guard is None or guard.uniform) else self.width
        text = raw.text if lanes == 1 else self.spread(raw, I64)
        ty, bits = type_text(I64, lanes), type_text(BOOL, lanes)
        size = str(bound.size) if lanes == 1 else f"splat (i64 {bound.size})"
        zero = "0" if lanes == 1 else "zeroinitializer"
        negative = self.value_of(f"icmp slt {ty} {text}, {zero}")
        wrapped = self.value_of(f"add {ty} {text}, {size}")
        normal = self.value_of(f"select {bits} {negative}, {ty} {wrapped}, {ty} {text}")
        if bound.clip:
            last = str(bound.size - 1) if lanes == 1 else f"splat (i64 {bound.size - 1})"
            for op, limit in (("smax", zero), ("smin", last)):
                symbol = f"@llvm.{op}.{suffix(I64, lanes)}"
                self.declarations.add(f"declare {ty} {symbol}({ty}, {ty})")
                text = self.value_of(f"call {ty} {symbol}({ty} {text}, {ty} {limit})")
            return Operand(text, lanes == 1)
        bad = self.value_of(f"icmp uge {ty} {normal}, {size}")
        if guard is not None:
            on = guard.text if lanes == 1 else self.spread(guard, BOOL)
            bad = self.value_of(f"and {bits} {bad}, {on}")
        reported = bad
        if self.mask and lanes > 1:
            reported = self.value_of(f"and {bits} {bad}, {self.mask}")
        self._report(reported, text, lanes, bound.size, bound.site)
        return Operand(
            self.value_of(f"select {bits} {bad}, {ty} {zero}, {ty} {normal}"), lanes == 1
        )

    def _demanded(self, expr: Expr) -> Operand:
        """The value, after noting whether its condition fails in a lane that counts."""
        demand: Demand = expr.attr
        value = self.operand(expr.args[0])
        conditions = [self.operand(a) for a in expr.args[1:]]
        lanes = 1 if all(c.uniform for c in conditions) else self.width
        bits = type_text(BOOL, lanes)
        texts = [c.text if lanes == 1 else self.spread(c, BOOL) for c in conditions]
        bad = self.value_of(f"xor {bits} {texts[0]}, {'true' if lanes == 1 else 'splat (i1 true)'}")
        for on in (*texts[1:], *([self.mask] if self.mask and lanes > 1 else [])):
            bad = self.value_of(f"and {bits} {bad}, {on}")
        self._report(bad, "0" if lanes == 1 else "zeroinitializer", lanes, 0, demand.site)
        return value

    def _report(self, bad: str, index: str, lanes: int, size: int, site: int) -> None:
        """If any lane is bad, write the index, the size and the error site to the status block.

        What was reported first stays, so without threads the error is the interpreter's.
        """
        some = self._any_lane(Operand(bad, lanes == 1))
        yes, no = self.new_label("bad"), self.new_label("good")
        weights = self.define("!", '!{!"branch_weights", i32 1, i32 2000}')
        self.lines.append(f"  br i1 {some}, label %{yes}, label %{no}, !prof {weights}")
        self.start_block(yes)
        with self.scope():
            if lanes > 1:
                word = self.value_of(f"bitcast <{lanes} x i1> {bad} to i{lanes}")
                symbol = f"@llvm.cttz.i{lanes}"
                self.declarations.add(f"declare i{lanes} {symbol}(i{lanes}, i1)")
                first = self.value_of(f"call i{lanes} {symbol}(i{lanes} {word}, i1 true)")
                index = self.value_of(f"extractelement <{lanes} x i64> {index}, i{lanes} {first}")
            places = [self.fresh(f"getelementptr i64, ptr %status, i64 {k}") for k in (0, 1, 7)]
            old = [self.fresh(f"load i64, ptr {place}, align 8") for place in places]
            first = self.fresh(f"icmp eq i64 {old[-1]}, 0")
            for place, before, value in zip(places, old, (index, size, site), strict=True):
                kept = self.fresh(f"select i1 {first}, i64 {value}, i64 {before}")
                self.lines.append(f"  store i64 {kept}, ptr {place}, align 8")
        self.lines.append(f"  br label %{no}")
        self.start_block(no)

    # Indices.

    def _is_uniform_index(self, index: Index) -> bool:
        """Whether an index is the same in all lanes."""
        if self.lane is None or self.width == 1:
            return True
        return not any(self._varies(atom) for atom in index.substitute(self.env).terms)

    def _rest_uniform(self, index: Index) -> bool:
        return not any(self._varies(a) for a in index.terms if a is not self.lane)

    def _varies(self, atom: Any) -> bool:
        if isinstance(atom, Var):
            return atom is self.lane
        if isinstance(atom, Div):
            return any(self._varies(a) for a in atom.index.terms)
        return not self.operand(atom.expr).uniform

    def index_text(self, index: Index) -> str:
        """The scalar int64 value of an index; of lane 0 if it follows the lanes."""
        index = index.substitute(self.env)
        total = ""
        for atom, coeff in index.terms.items():
            term = self._atom_text(atom)
            if coeff != 1:
                term = self.value_of(f"mul i64 {term}, {coeff}")
            total = self.value_of(f"add i64 {total}, {term}") if total else term
        if not total:
            return str(index.const)
        return self.value_of(f"add i64 {total}, {index.const}") if index.const else total

    def _atom_text(self, atom: Any) -> str:
        if isinstance(atom, Var):
            return self.at[atom]
        if isinstance(atom, Data):
            return self.operand(atom.expr).text
        op = "rem" if isinstance(atom, Mod) else "div"
        inner = self.index_text(atom.index)
        if atom.index.range()[0] >= 0:
            return self.value_of(f"u{op} i64 {inner}, {atom.n}")
        return self._floor_divide(inner, atom, "i64", "")

    def _floor_divide(self, inner: str, atom: Div, ty: str, splat: str) -> str:
        """Floor division or remainder of an index that may be negative."""
        shift = -(atom.index.range()[0] // atom.n) * atom.n  # makes it non-negative

        def constant(k: int) -> str:
            return f"splat (i64 {k})" if splat else str(k)

        moved = self.value_of(f"add {ty} {inner}, {constant(shift)}")
        if isinstance(atom, Mod):
            return self.value_of(f"urem {ty} {moved}, {constant(atom.n)}")
        quotient = self.value_of(f"udiv {ty} {moved}, {constant(atom.n)}")
        return self.value_of(f"sub {ty} {quotient}, {constant(shift // atom.n)}")

    def _index_vector(self, index: Index) -> str:
        """The int64 values of an index in all lanes."""
        index = index.substitute(self.env)
        fixed = Index(index.const, {a: c for a, c in index.terms.items() if not self._varies(a)})
        ty = f"<{self.width} x i64>"
        total = self.spread(Operand(self.index_text(fixed), True), I64)
        for atom, coeff in index.terms.items():
            if not self._varies(atom):
                continue
            term = self._atom_vector(atom)
            if coeff != 1:
                term = self.value_of(f"mul {ty} {term}, splat (i64 {coeff})")
            total = self.value_of(f"add {ty} {total}, {term}")
        return total

    def _atom_vector(self, atom: Any) -> str:
        ty = f"<{self.width} x i64>"
        if isinstance(atom, Var):
            base = self.spread(Operand(self.at[atom], True), I64)
            return self.value_of(f"add {ty} {base}, {_iota(self.width, 'i64')}")
        if isinstance(atom, Data):
            return self.spread(self.operand(atom.expr), I64)
        inner = self._index_vector(atom.index)
        if atom.index.range()[0] >= 0:
            op = "urem" if isinstance(atom, Mod) else "udiv"
            return self.value_of(f"{op} {ty} {inner}, splat (i64 {atom.n})")
        return self._floor_divide(inner, atom, ty, "splat")


def _pointer(name: str, position: int) -> list[str]:
    return [
        f"  {name}a = getelementptr ptr, ptr %ctx, i64 {position}",
        f"  {name} = load ptr, ptr {name}a, align 8",
    ]


def _iota(width: int, ty: str) -> str:
    return f"<{', '.join(f'{ty} {k}' for k in range(width))}>"
