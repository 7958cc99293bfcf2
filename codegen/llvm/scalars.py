"""Expressions to LLVM IR text, one value or one explicit vector of values at a time.

    e = ScalarEmitter(target, lines, width=16)
    e.bind("x", "%x0", uniform=False)
    y = e.emit(exp(var("x", F32)))            # the name of a <16 x float>; instructions went to `lines`

A value whose inputs are the same in all lanes (constants, uniform loads, bound uniform variables) is
*uniform*: it is computed once, as a scalar, and spread over the lanes only where it meets one that
varies. Equal instructions are emitted once. A `loop` opens basic blocks: `block` is the label of the
block that is being filled, and values emitted inside a loop are forgotten after it.

A kernel emitter subclasses this: `emit_leaf` emits the nodes that are not primitives (loads, indices).
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, MutableSet, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from ...ir.types import BOOL, F16, F32, bits_dtype
from ..functions import Function
from ..math.small_floats import half_bits, half_value
from ..scalar import DType, Expr, LoopBody, var
from .instructions import INSTRUCTIONS, SCALAR_TYPES, number, type_text
from .lanes import emit_lanes, is_plain
from .text import Operand, TargetLike, TextEmitter


class ScalarEmitter(TextEmitter):
    """Emits expressions. See `TextEmitter` for the arguments."""

    mask = ""  # the lanes that are on, when not all are

    def __init__(
        self,
        target: TargetLike,
        lines: list[str],
        width: int,
        names: Iterator[int] | None = None,
        declarations: MutableSet[str] | None = None,
        definitions: MutableMapping[str, str] | None = None,
        block: str = "entry",
    ) -> None:
        super().__init__(target, lines, width, names, declarations, definitions, block)
        self._memo: dict[Expr, Operand] = {}
        self._memo_log: list[Expr] = []
        self._bound: dict[Any, Operand] = {}
        self._results: dict[Expr, list[Operand]] = {}
        self.read_results: dict[Expr, set[int]] = {}  # of loops; of one not in it all may be read

    # What the rest of the compiler calls.

    def emit(self, expr: Expr) -> str:
        """The value of `expr` at full width: a name, or a constant's text."""
        operand = self.operand(expr)
        return self.spread(operand, expr.dtype)

    def emit_many(self, exprs: Sequence[Expr]) -> list[str]:
        return [self.emit(e) for e in exprs]

    def type(self, dtype: DType) -> str:
        """The LLVM type of what `emit` gives for an expression of `dtype`."""
        return type_text(dtype, self.width)

    def bind(self, what: Any, text: str, *, uniform: bool | None = None) -> None:
        """Give a value to the variable called `what`, or to the expression `what`, in this scope.

        `uniform` values are scalars. By default a value is uniform if the width is 1.
        """
        operand = Operand(text, self.width == 1 if uniform is None else uniform)
        if isinstance(what, Expr) and what.op != "var":
            self._remember(what, operand)
        else:
            self._bound[what.attr if isinstance(what, Expr) else what] = operand

    def has(self, expr: Expr) -> bool:
        """Whether the value of `expr` has been emitted, or bound, in this scope or one around it."""
        return expr in self._memo or (expr.op == "var" and expr.attr in self._bound)

    def emit_leaf(self, expr: Expr) -> Operand:
        """Emit a node that is not a primitive (`load`, `index`, ...); its operands are emitted."""
        raise TypeError(f"this emitter gives no value to {expr!r}")

    def leaf_is_uniform(self, expr: Expr) -> bool:
        """Whether a leaf that depends on loop variables is uniform if its operands are."""
        return self.width == 1

    def narrower(self, width: int) -> ScalarEmitter:
        """An emitter of `width` lanes that goes on where this one stands."""
        return ScalarEmitter(
            self.target,
            self.lines,
            width,
            self.names,
            self.declarations,
            self.definitions,
            self.block,
        )

    @contextmanager
    def scope(self) -> Iterator[None]:
        log, mark = self._memo_log, len(self._memo_log)
        try:
            with super().scope():
                yield
        finally:
            if self._memo_log is not log:  # all was forgotten inside, and what came since is inside
                self.forget()
            while len(self._memo_log) > mark:
                del self._memo[self._memo_log.pop()]

    def forget(self) -> None:
        """Expressions have other values from here on. Instructions that are equal stay known."""
        self._memo, self._memo_log = {}, []

    # The walk.

    def operand(self, root: Expr) -> Operand:
        """The value of `root`, as a scalar if it is uniform. Operands before users, no recursion."""
        memo = self._memo
        found = memo.get(root)
        if found is not None:
            return found
        log, width = self._memo_log, self.width
        stack = [root]
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            missing = [a for a in node.args if a not in memo]
            if missing:
                stack += missing
                continue
            stack.pop()
            operands = [memo[a] for a in node.args]
            instruction = INSTRUCTIONS.get(node.op)
            if instruction is None:
                value = self._emit_other(node)
            elif all(o[1] for o in operands):
                value = Operand(instruction(self, node, 1, *[o[0] for o in operands]), True)
            else:
                texts = [
                    self.spread(o, a.dtype) if o[1] else o[0]
                    for o, a in zip(operands, node.args, strict=True)
                ]
                value = Operand(instruction(self, node, width, *texts), False)
            memo[node] = value
            log.append(node)
        return memo[root]

    def _remember(self, node: Expr, operand: Operand) -> None:
        self._memo[node] = operand
        self._memo_log.append(node)

    def _emit_other(self, node: Expr) -> Operand:
        """What is no instruction: constants, variables, loops, and the leaves of subclasses."""
        if node.op == "const":
            return Operand(number(node.attr, node.dtype), True)
        if node.op == "var":
            if node.attr not in self._bound:
                raise TypeError(f"the variable {node.attr!r} has no value here")
            return self._bound[node.attr]
        if node.op == "result":
            return self._results[node.args[0]][node.attr]
        if node.op == "loop":
            self._results[node] = self._emit_loop(node, node.attr)
            return Operand("", True)
        if node.op == "call":
            return self.call(node.attr, [self._memo[a] for a in node.args])
        return self.emit_leaf(node)

    def call(self, function: Function, operands: Sequence[Operand]) -> Operand:
        """An elementwise function of emitted operands, written here."""
        return self.write_out(function.params, function.root, operands)

    def write_out(self, params: Sequence[Expr], root: Expr, operands: Sequence[Operand]) -> Operand:
        """An expression of variables that have these values."""
        memo, log = self._memo, self._memo_log
        self._memo, self._memo_log = {}, []
        outside = [self._bound.get(p.attr) for p in params]
        for param, operand in zip(params, operands, strict=True):
            self._bound[param.attr] = operand
        result = self.operand(root)
        self._memo, self._memo_log = memo, log
        for param, before in zip(params, outside, strict=True):
            if before is None:
                del self._bound[param.attr]
            else:
                self._bound[param.attr] = before
        return result

    def half_by_bits(self, node: Expr, lanes: int, a: str) -> str:
        return self.write_out(*_half_formula(node.op), [Operand(a, lanes == 1)]).text

    def _emit_loop(self, node: Expr, body: LoopBody) -> list[Operand]:
        """head: carries, test; body: new values, kept back in lanes that are done; exit."""
        for init in node.args:
            self.operand(init)
        if not body.rare:
            for invariant in self._invariants(body):
                self.operand(invariant)
        varying = self._varying_carries(node, body)
        masked = not self._is_uniform(body.test, varying)
        if body.rare and masked:
            return self._emit_by_lane(node, body)
        if masked and not body.rare and is_plain(body):
            return emit_lanes(self, node, body, self.read_results.get(node, range(len(node.args))))
        carries: list[tuple[str, str, str]] = []  # name, type, initial value
        for param, init in zip(body.params, node.args, strict=True):
            operand = self._memo[init]
            uniform = param not in varying
            text = operand.text if uniform else self.spread(operand, param.dtype)
            ty = type_text(param.dtype, 1 if uniform else self.width)
            name = f"%v{next(self.names)}"
            carries.append((name, ty, text))
            self._bound[param.attr] = Operand(name, uniform)
        head, inside, leave = (self.new_label(hint) for hint in ("loop", "body", "done"))
        before = self.block
        self.lines.append(f"  br label %{head}")
        self.start_block(head)
        phis_at = len(self.lines)  # the phis go here, once the last block of the body is known
        with self.scope():
            test = self.operand(body.test)
            if masked and self.mask:  # lanes beyond the array's end might never be done
                spread = self.spread(test, BOOL)
                bits = type_text(BOOL, self.width)
                test = Operand(self.value_of(f"and {bits} {spread}, {self.mask}"), False)
            going = self._any_lane(test)
            weights = self._seldom() if body.rare else ""
            self.lines.append(f"  br i1 {going}, label %{inside}, label %{leave}{weights}")
            test_text = self.spread(test, BOOL) if masked else ""
            self.start_block(inside)
            back: list[str] = []
            for param, new, (name, ty, _) in zip(body.params, body.new, carries, strict=True):
                value = self.operand(new)
                text = value.text if param not in varying else self.spread(value, param.dtype)
                if masked and text != name:
                    text = self.value_of(
                        f"select {type_text(BOOL, self.width)} {test_text}, {ty} {text}, {ty} {name}"
                    )
                back.append(text)
            if not body.rare:
                self.turn(leave)
            after = self.block
            self.lines.append(f"  br label %{head}")
        self.lines[phis_at:phis_at] = [
            f"  {name} = phi {ty} [ {init}, %{before} ], [ {new}, %{after} ]"
            for (name, ty, init), new in zip(carries, back, strict=True)
        ]
        self.start_block(leave)
        for param in body.params:
            del self._bound[param.attr]
        return [
            Operand(name, param not in varying)
            for (name, _, _), param in zip(carries, body.params, strict=True)
        ]

    def turn(self, leave: str) -> None:
        """At the end of each turn of a loop: whoever watches for signals may go to `leave`."""

    def _emit_by_lane(self, node: Expr, body: LoopBody) -> list[Operand]:
        """A rare loop whose test varies: if any lane needs it, scalar code for one lane at a time.

        There is little of it to compile, and the vector code around it keeps its registers.
        """
        outer = self._outer_values(body)
        initial = [self.spread(self._memo[a], a.dtype) for a in node.args]
        with self.scope():
            for param, text in zip(body.params, initial, strict=True):
                self._bound[param.attr] = Operand(text, False)
            going = self._any_lane(self.operand(body.test))
            for param in body.params:
                del self._bound[param.attr]
        lanes, leave = self.new_label("lanes"), self.new_label("done")
        before = self.block
        self.lines.append(f"  br i1 {going}, label %{lanes}, label %{leave}{self._seldom()}")
        self.start_block(lanes)
        phis_at = len(self.lines)
        lane, following, more = (f"%v{next(self.names)}" for _ in range(3))
        vectors = [f"%v{next(self.names)}" for _ in initial]
        scalar = ScalarEmitter(
            self.target, self.lines, 1, self.names, self.declarations, self.definitions, lanes
        )
        for value in (*outer, *node.args):
            operand = self._memo.get(value) or self._bound[value.attr]
            text = operand.text
            if not operand.uniform:
                vector = type_text(value.dtype, self.width)
                text = scalar.value_of(f"extractelement {vector} {text}, i32 {lane}")
            scalar.bind(value, text)
        results = scalar._emit_loop(node, body)
        types = [type_text(a.dtype, self.width) for a in node.args]
        updated = [
            scalar.value_of(
                f"insertelement {ty} {vector}, {SCALAR_TYPES[a.dtype]} {r.text}, i32 {lane}"
            )
            for a, ty, vector, r in zip(node.args, types, vectors, results, strict=True)
        ]
        self.lines += [
            f"  {following} = add i32 {lane}, 1",
            f"  {more} = icmp ult i32 {following}, {self.width}",
            f"  br i1 {more}, label %{lanes}, label %{leave}",
        ]
        after = scalar.block
        self.lines[phis_at:phis_at] = [
            f"  {lane} = phi i32 [ 0, %{before} ], [ {following}, %{after} ]",
            *(
                f"  {vector} = phi {ty} [ {init}, %{before} ], [ {new}, %{after} ]"
                for vector, ty, init, new in zip(vectors, types, initial, updated, strict=True)
            ),
        ]
        self.start_block(leave)
        return [
            Operand(self.fresh(f"phi {ty} [ {init}, %{before} ], [ {new}, %{after} ]"), False)
            for ty, init, new in zip(types, initial, updated, strict=True)
        ]

    def _outer_values(self, body: LoopBody) -> list[Expr]:
        """What a rare loop reads from outside: values that exist, and leaves, which are emitted."""
        found: list[Expr] = []
        seen: set[Expr] = set(body.params)
        stack = [body.test, *body.new]
        while stack:
            node = stack.pop()
            if node in seen or node.op == "const":
                continue
            seen.add(node)
            if node.op == "var":
                if node.attr in self._bound:
                    found.append(node)
            elif node in self._memo and node.op != "loop":
                found.append(node)
            elif node.op not in _PURE:
                self.operand(node)
                found.append(node)
            else:
                stack += _inputs(node)
        return found

    def _seldom(self) -> str:
        return ", !prof " + self.define("!", '!{!"branch_weights", i32 1, i32 2000}')

    def _any_lane(self, test: Operand) -> str:
        if test.uniform:
            return test.text
        word = self.value_of(f"bitcast {type_text(BOOL, self.width)} {test.text} to i{self.width}")
        return self.value_of(f"icmp ne i{self.width} {word}, 0")

    def _inner_nodes(self, body: LoopBody) -> list[Expr]:
        """The nodes of a loop's body that depend on variables without a value yet, operands first."""
        order: list[Expr] = []
        seen: set[Expr] = set()
        stack = [(e, False) for e in (*body.new, body.test)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif node not in seen and not node.free <= self._bound.keys():
                seen.add(node)
                stack.append((node, True))
                stack += [(a, False) for a in _inputs(node)]
        return order

    def _invariants(self, body: LoopBody) -> list[Expr]:
        """The largest expressions in the body that can be computed before the loop."""
        found: dict[Expr, None] = {}
        for node in (*self._inner_nodes(body), Expr("roots", (*body.new, body.test), BOOL)):
            for a in _inputs(node):
                if a.free <= self._bound.keys() and a.op != "const":
                    found[a] = None
        return list(found)

    def _varying_carries(self, node: Expr, body: LoopBody) -> set[Expr]:
        """The carries that differ between lanes: all of them if the test does."""
        if self.width == 1:
            return set()
        varying = {
            p for p, i in zip(body.params, node.args, strict=True) if not self._memo[i].uniform
        }
        while True:
            if not self._is_uniform(body.test, varying):
                return set(body.params)
            more = {
                p
                for p, new in zip(body.params, body.new, strict=True)
                if p not in varying and not self._is_uniform(new, varying)
            }
            if not more:
                return varying
            varying |= more

    def _is_uniform(self, root: Expr, varying: set[Expr]) -> bool:
        """Whether `root` will be uniform if the loop variables in `varying` are not."""
        names = {p.attr for p in varying}
        seen: set[Expr] = set()
        stack = [root]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            known = self._memo.get(node)
            if node.op == "var":
                known = self._bound.get(node.attr)
                if node.attr in names:
                    return False
            elif node.op not in _PURE and known is None:
                if node.free <= self._bound.keys():
                    known = self.operand(node)
                elif not self.leaf_is_uniform(node):
                    return False
            if known is None or node.op == "loop":
                stack += _inputs(node)
            elif not known.uniform:
                return False
        return True


@cache
def _half_formula(op: str) -> tuple[list[Expr], Expr]:
    x = var(("half", 0), F32 if op == "float_to_half" else bits_dtype(F16))
    return [x], half_bits(x) if op == "float_to_half" else half_value(x)


_PURE = INSTRUCTIONS.keys() | {"const", "var", "result", "loop", "call"}


def _inputs(node: Expr) -> tuple[Expr, ...]:
    """Operands, and for a loop what its body reads too."""
    if node.op == "loop":
        return (*node.args, node.attr.test, *node.attr.new)
    return node.args
