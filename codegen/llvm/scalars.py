"""Expressions to LLVM IR text, one value or one explicit vector of values at a time.

    e = ScalarEmitter(TextEmitter(target, 16))
    e.bind("x", x, uniform=False)             # x: a Value of type <16 x float>
    y = e.emit(exp(var("x", F32)))            # another; instructions went to the builder

A value whose inputs are the same in all lanes (constants, uniform loads, bound uniform variables) is
*uniform*: it is computed once, as a scalar, and spread over the lanes only where it meets one that
varies. Equal instructions are emitted once. A `loop` opens basic blocks, and values emitted inside a
loop are forgotten after it.

What is not a primitive (loads, indices) is asked of `leaves`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from ...ir.types import BOOL, F16, F32, bits_dtype
from ..marks import Marks
from ..math.functions import Elementwise
from ..math.small_floats import half_bits, half_value
from ..scalar import DType, Expr, LoopBody, var
from .builder import VOID, Block, Value, as_condition
from .instructions import INSTRUCTIONS, type_text
from .lanes import emit_lanes, is_plain
from .text import Operand, TextEmitter

if TYPE_CHECKING:
    from .functions import Calls


class Leaves(Protocol):
    """What gives values to the nodes that are not primitives (`load`, `index`, ...)."""

    def emit(self, expr: Expr) -> Operand:
        """The value of a leaf, whose operands are emitted."""
        ...

    def is_uniform(self, expr: Expr) -> bool:
        """Whether a leaf that depends on loop variables is uniform if its operands are."""
        ...


class ScalarEmitter:
    """Emits expressions at the width of the builder `b`.

    `leaves` has the nodes that are no primitives; `calls` says which functions are called. At the end
    of each turn of a loop, `turn` may go to the block that it is given, for whoever watches for signals.
    """

    def __init__(self, b: TextEmitter, calls: Calls | None = None) -> None:
        self.b = b
        self.leaves: Leaves | None = None
        self.calls = calls
        self.turn: Callable[[Block], None] | None = None
        self.marks: Marks | None = None
        self.read_results: dict[Expr, set[int]] = {}  # of loops; of one not in it all may be read
        self._memo: dict[Expr, Operand] = {}
        self._memo_log: list[Expr] = []
        self._bound: dict[Any, Operand] = {}
        self._results: dict[Expr, list[Operand]] = {}
        # Where there is no instruction for halves, their conversion is a formula.
        self._instructions = INSTRUCTIONS if b.has_half else _WITHOUT_HALVES
        b.scoped.append(self._scoped)

    # What the rest of the compiler calls.

    def emit(self, expr: Expr) -> Value:
        """The value of `expr` at full width."""
        operand = self.operand(expr)
        return self.b.spread(operand, expr.dtype)

    def emit_many(self, exprs: Sequence[Expr]) -> list[Value]:
        return [self.emit(e) for e in exprs]

    def type(self, dtype: DType) -> str:
        """The LLVM type of what `emit` gives for an expression of `dtype`."""
        return type_text(dtype, self.b.width)

    def bind(self, what: Any, value: Value, *, uniform: bool | None = None) -> None:
        """Give a value to the variable called `what`, or to the expression `what`, in this scope.

        `uniform` values are scalars. By default a value is uniform if the width is 1.
        """
        operand = Operand(value, self.b.width == 1 if uniform is None else uniform)
        if isinstance(what, Expr) and what.op != "var":
            self.remember(what, operand)
        else:
            self._bound[what.attr if isinstance(what, Expr) else what] = operand

    def unbind(self, name: Any) -> None:
        """Take its value from a variable."""
        del self._bound[name]

    def has(self, expr: Expr) -> bool:
        """Whether the value of `expr` has been emitted, or bound, in this scope or one around it."""
        return expr in self._memo or (expr.op == "var" and expr.attr in self._bound)

    def narrower(self, width: int) -> ScalarEmitter:
        """An emitter of `width` lanes that goes on where this one stands."""
        emitter = ScalarEmitter(self.b.narrower(width))
        emitter.marks = self.marks
        return emitter

    def begin_like(self, other: ScalarEmitter) -> None:
        """Know what a scalar emitter knows, which emits what stands around: it is uniform."""
        self._memo.update(other._memo)
        self._bound.update(other._bound)
        self._results.update(other._results)

    def _scoped(self) -> Callable[[], None]:
        log, mark = self._memo_log, len(self._memo_log)

        def restore() -> None:
            if self._memo_log is not log:  # all was forgotten inside, and what came since is inside
                self.forget()
            while len(self._memo_log) > mark:
                del self._memo[self._memo_log.pop()]

        return restore

    def forget(self) -> None:
        """Expressions have other values from here on. Instructions that are equal stay known."""
        self._memo, self._memo_log = {}, []

    def forget_where(self, gone: Callable[[Expr], bool]) -> None:
        """These expressions, and those of them, have other values from here on."""
        kept: list[Expr] = []
        forgotten: set[Expr] = set()
        for node in self._memo_log:  # operands before users
            if gone(node) or any(part in forgotten for part in _inputs(node)):
                forgotten.add(node)
            else:
                kept.append(node)
        if forgotten:
            self._memo_log = kept
            self._memo = {
                node: operand for node, operand in self._memo.items() if node not in forgotten
            }

    # The walk.

    def operand(self, root: Expr) -> Operand:
        """The value of `root`, as a scalar if it is uniform. Operands before users, no recursion."""
        memo = self._memo
        memoised = memo.get(root)
        if memoised is not None:
            return memoised
        log, b, instructions, marks = self._memo_log, self.b, self._instructions, self.marks
        stack = [root]
        while stack:
            node = stack[-1]
            if node in memo:
                stack.pop()
                continue
            args = node.args
            missing = [a for a in args if a not in memo]
            if missing:
                stack += missing
                continue
            stack.pop()
            if marks is not None:
                marks.note(b.lines, node)
            instruction = instructions.get(node.op)
            if instruction is None:
                value = self._emit_other(node)
            elif b.width == 1 or all(memo[a][1] for a in args):
                value = Operand(instruction(b, node, 1, *[memo[a][0] for a in args]), True)
            else:
                texts = [b.spread(memo[a], a.dtype) for a in args]
                value = Operand(instruction(b, node, b.width, *texts), False)
            memo[node] = value
            log.append(node)
        return memo[root]

    def remember(self, node: Expr, operand: Operand) -> None:
        self._memo[node] = operand
        self._memo_log.append(node)

    def _emit_other(self, node: Expr) -> Operand:
        """What is no instruction: constants, variables, loops, calls, leaves."""
        if node.op == "const":
            return Operand(self.b.scalar(node.attr, node.dtype), True)
        if node.op == "var":
            if node.attr not in self._bound:
                raise TypeError(f"the variable {node.attr!r} has no value here")
            return self._bound[node.attr]
        if node.op == "result":
            return self._results[node.args[0]][node.attr]
        if node.op == "loop":
            self._results[node] = self._emit_loop(node, node.attr)
            return Operand(VOID, True)
        if node.op == "call":
            return self.call_function(node.attr, [self._memo[a] for a in node.args])
        if node.op in _HALVES:
            return self.write_out(*_half_formula(node.op), [self._memo[a] for a in node.args])
        if self.leaves is None:
            raise TypeError(f"this emitter gives no value to {node!r}")
        return self.leaves.emit(node)

    def call_function(self, function: Elementwise, operands: Sequence[Operand]) -> Operand:
        """An elementwise function of emitted operands: called, or written here."""
        if self.calls is not None and function in self.calls.called:
            return self.calls.call(function, operands, self.b, self.b)
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

    def _emit_loop(self, node: Expr, body: LoopBody) -> list[Operand]:
        """head: carries, test; body: new values, kept back in lanes that are done; exit."""
        for init in node.args:
            self.operand(init)
        if not body.rare:
            for invariant in self.invariants(body):
                self.operand(invariant)
        varying = self._varying_carries(node, body)
        masked = not self._is_uniform(body.test, varying)
        if body.rare and masked:
            return self._emit_by_lane(node, body)
        if masked and not body.rare and is_plain(body):
            return emit_lanes(self, node, body, self.read_results.get(node, range(len(node.args))))
        head, inside, leave = (self.b.later(hint) for hint in ("loop", "body", "done"))
        first: list[Value] = []
        for param, init in zip(body.params, node.args, strict=True):
            operand = self._memo[init]
            uniform = param not in varying
            first.append(operand.value if uniform else self.b.spread(operand, param.dtype))
            ty = type_text(param.dtype, 1 if uniform else self.b.width)
            *_, name = self.b.parameters(head, ty)
            self._bound[param.attr] = Operand(name, uniform)
        carries = head.params
        self.b.jump(head, *first)
        self.b.at(head)
        with self.b.scope():
            test = self.operand(body.test)
            if (
                masked and self.b.mask is not None
            ):  # lanes beyond the array's end might never be done
                spread = self.b.spread(test, BOOL)
                test = Operand(self.b.binary("and", spread, self.b.mask), False)
            going = self.any_lane(test)
            weights = self.b.unlikely() if body.rare else ""
            self.b.fork(going, inside, (), leave, hint=weights)
            on = self.b.spread(test, BOOL) if masked else None
            self.b.at(inside)
            back: list[Value] = []
            for param, new, name in zip(body.params, body.new, carries, strict=True):
                value = self.operand(new)
                new_value = (
                    value.value if param not in varying else self.b.spread(value, param.dtype)
                )
                if on is not None and new_value != name:
                    new_value = self.b.select(on, new_value, name)
                back.append(new_value)
            if self.turn is not None and not body.rare:
                self.turn(leave)
            self.b.jump(head, *back)
        self.b.at(leave)
        for param in body.params:
            del self._bound[param.attr]
        return [
            Operand(name, param not in varying)
            for name, param in zip(carries, body.params, strict=True)
        ]

    def _emit_by_lane(self, node: Expr, body: LoopBody) -> list[Operand]:
        """A rare loop whose test varies: if any lane needs it, scalar code for one lane at a time.

        There is little of it to compile, and the vector code around it keeps its registers.
        """
        outer = self._outer_values(body)
        initial = [self.b.spread(self._memo[a], a.dtype) for a in node.args]
        with self.b.scope():
            for param, value in zip(body.params, initial, strict=True):
                self._bound[param.attr] = Operand(value, False)
            going = self.any_lane(self.operand(body.test))
            for param in body.params:
                del self._bound[param.attr]
        types = [type_text(a.dtype, self.b.width) for a in node.args]
        lanes, leave = self.b.later("lanes"), self.b.later("done")
        lane, *vectors = self.b.parameters(lanes, "i32", *types)
        self.b.parameters(leave, *types)
        self.b.fork(going, lanes, (0, *initial), leave, initial, self.b.unlikely())
        self.b.at(lanes)
        scalar = self.narrower(1)
        for outside in (*outer, *node.args):
            operand = self._memo.get(outside) or self._bound[outside.attr]
            whole = operand.value
            scalar.bind(outside, whole if operand.uniform else scalar.b.extract(whole, lane))
        results = scalar._emit_loop(node, body)
        updated = [
            scalar.b.insert(vector, r.value, lane)
            for vector, r in zip(vectors, results, strict=True)
        ]
        following = scalar.b.binary("add", lane, 1)
        more = scalar.b.compare("ult", following, self.b.width)
        self.b.fork(more, lanes, (following, *updated), leave, updated)
        return [Operand(value, False) for value in self.b.at(leave)]

    def _outer_values(self, body: LoopBody) -> list[Expr]:
        """What a rare loop reads from outside: values that exist, and leaves, which are emitted."""
        nodes: list[Expr] = []
        seen: set[Expr] = set(body.params)
        stack = [body.test, *body.new]
        while stack:
            node = stack.pop()
            if node in seen or node.op == "const":
                continue
            seen.add(node)
            if node.op == "var":
                if node.attr in self._bound:
                    nodes.append(node)
            elif node in self._memo and node.op != "loop":
                nodes.append(node)
            elif node.op not in _PURE:
                self.operand(node)
                nodes.append(node)
            else:
                stack += _inputs(node)
        return nodes

    def any_lane(self, test: Operand) -> Value:
        """Whether a condition holds in some lane."""
        on = as_condition(test.value, 1 if test.uniform else self.b.width)
        if test.uniform:
            return on
        word = self.b.convert("bitcast", on, f"i{self.b.width}")
        return self.b.compare("ne", word, 0)

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

    def invariants(self, body: LoopBody) -> list[Expr]:
        """The largest expressions in the body that can be computed before the loop."""
        leaves: dict[Expr, None] = {}
        for node in (*self._inner_nodes(body), Expr("roots", (*body.new, body.test), BOOL)):
            for a in _inputs(node):
                if a.free <= self._bound.keys() and a.op != "const":
                    leaves[a] = None
        return list(leaves)

    def _varying_carries(self, node: Expr, body: LoopBody) -> set[Expr]:
        """The carries that differ between lanes: all of them if the test does."""
        if self.b.width == 1:
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
            operand = self._memo.get(node)
            if node.op == "var":
                operand = self._bound.get(node.attr)
                if node.attr in names:
                    return False
            elif node.op not in _PURE and operand is None:
                if node.free <= self._bound.keys():
                    operand = self.operand(node)
                elif not self._leaf_is_uniform(node):
                    return False
            if operand is None or node.op == "loop":
                stack += _inputs(node)
            elif not operand.uniform:
                return False
        return True

    def _leaf_is_uniform(self, leaf: Expr) -> bool:
        return self.b.width == 1 if self.leaves is None else self.leaves.is_uniform(leaf)


_HALVES = frozenset(("half_to_float", "float_to_half"))
_WITHOUT_HALVES = {op: emit for op, emit in INSTRUCTIONS.items() if op not in _HALVES}


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
