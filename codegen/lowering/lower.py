"""Graph -> stages: decides which values get memory, and builds a stage for each of them.

A value is *inlined* into its consumers (recomputed at each use, by `Pointwise`) or *materialised*:
given an `Array` and a stage that fills it. Materialised are

- results of ops that are not pointwise (reductions, contractions, loops, ...), and graph outputs;
- what is used more than once and costs something to compute;
- what would be recomputed because a broadcast repeats it;
- what has grown past `MOST_INLINED` ops.

Materialising is not yet a store to memory: fusion (see `fusion`) keeps a value in registers or in a
row buffer where its consumers share its loops. The result of this pass is a flat list of stages and
steps in execution order; branches and loop bodies are lowered to programs of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import import_module
from typing import Any

from ...ir.cost import MOST_INLINED, STORED, wants_memory
from ...ir.graph import Graph, Op, Value
from ...ir.types import BOOL, I64, TOKEN, TensorType
from ..loop_ir.index import Index, Var, contiguous_strides, linear, of_var
from ..loop_ir.kernel import Array, Stage
from ..loop_ir.steps import Program
from ..math.combiners import FOLDS
from ..module import CopySite
from ..schedule.in_place import dead_after, read_now, reads_first
from ..schedule.meeting import meeting
from ..schedule.survey import survey
from .context import Context
from .fills import without_dead_fills
from .one_hot import one_hot_axis
from .pointwise import FEW, Pointwise, checked, index_value, reshaped

SHORT_ROW = 16  # columns of a table that loops run down rather than along
REPEATED = 16  # reads of an element from which a copy in another order is cheap


def lower(
    graph: Graph,
    params: Sequence[Array | None],
    targets: Sequence[Array | None],
    context: Context,
    stay: Sequence[Array | None] | None = None,
    expendable: Collection[Array | None] = (),
    over: Mapping[Value, Array] | None = None,
    checks_apart: bool = False,
) -> tuple[Program, list[Array | None]]:
    """Lower `graph`: parameters live in `params`, output i must end up in `targets[i]`.

    An output that is found in `stay[i]` (a loop carry updated in place) may stay there instead.
    Parameters are left as they are, except those in `expendable`, which may be overwritten; `over`
    says which output should be computed over which of them.
    Tokens have no array: None. With `checks_apart` an index array is checked once, where it is used
    first, by a stage that does nothing else; what uses it later cannot fail. Returns the program and
    where each output is.
    """
    stay = stay or [None] * len(targets)
    lowering = Lowering(graph, params, targets, context, stay, expendable, over or {})
    lowering.checks_apart = checks_apart
    lowering.run()
    outputs = lowering.finish()
    keep = {a for a in outputs if a is not None}
    steps = context.arrange(without_dead_fills(lowering.items), keep)
    return Program(steps, lowering.copies), outputs


class Lowering:
    """The state of lowering one graph or region."""

    def __init__(
        self,
        graph: Graph,
        params: Sequence[Array | None],
        targets: Sequence[Array | None],
        context: Context,
        stay: Sequence[Array | None],
        expendable: Collection[Array | None],
        over: Mapping[Value, Array],
    ) -> None:
        self.graph = graph
        self.context = context
        self.targets = list(targets)
        self.stay = list(stay)
        self.items: list[Any] = []
        self.arrays: dict[Value, Array] = {
            v: a for v, a in zip(graph.params, params, strict=True) if a is not None
        }
        self.borrowed = {a for a in params if a is not None and a not in expendable}
        self.users = graph.users()
        self.target_of: dict[Value, Array] = {}
        # of outputs that had better stay where they are
        self.other_target_of: dict[Value, Array] = {}
        for value, target, stays in zip(graph.outputs, targets, stay, strict=True):
            if target is not None and value.op is not None:
                where = self.target_of if stays is None else self.other_target_of
                where.setdefault(value, target)
        self.outputs = set(graph.outputs)
        self.over = dict(over)
        self.overwritten: set[Value] = set()  # values that were in memory, and are no longer
        self.asked: set[Op] = set()  # asserts that are a part of a step before
        self.taken: set[Array] = set()  # parameters that an output was computed over
        self.inlined: dict[Value, int] = {}  # ops inlined into a value that has no array
        self.cost: dict[Value, int] = {}
        self.met: set[Value] = set()  # see `meeting`
        self.copies: list[CopySite] = []  # of arrays that could not be updated where they are
        self.packed: dict[Any, Any] = {}  # operands of contractions that are packed already
        self.partial_sums: dict[tuple[Value, tuple[int, ...]], Any] = {}  # see `lower_chunks`
        self.checks_apart = False
        self.checked: set[tuple[Value, int]] = set()  # indices, and the size of the axis

    def run(self) -> None:
        for op in reads_first(self.graph, self.users):
            if self.checks_apart and op.name in ("gather", "scatter"):
                self.check_indices(op)
            if op.name == "constant":
                value = op.attrs["value"]
                if value.size != 1 or op.result in self.outputs:
                    self.arrays[op.result] = self.context.constant(value)
                self.inlined[op.result] = self.cost[op.result] = 0
            elif op.definition.pointwise:
                if op.name == "gather" and 0 in (op.result.tensor.size, op.operands[0].tensor.size):
                    self.check_indices(op)
                self._pointwise(op)
            else:
                rule = self.context.rules.get(op.name) or rule_of(op.name)
                rule(self, op)

    def finish(self) -> list[Array | None]:
        """Put every output into its target."""
        outputs: list[Array | None] = []
        used: set[Array] = set()
        for value, target, stays in zip(self.graph.outputs, self.targets, self.stay, strict=True):
            if memory_type(value) is None:
                outputs.append(None)
                continue
            here = self.materialise(value)
            if (here is stays or here in self.taken) and here not in used:
                used.add(here)
                outputs.append(here)
                continue
            if target is not None and (here is not target or target in used):
                self.copy(here, target)
                here = target
            used.add(here)
            outputs.append(here)
        return outputs

    def _over_parameter(self, value: Value) -> Array | None:
        """The array of a parameter that an output can be computed over: where an element of the
        output reads it, if at all, it is the element that it replaces, and nothing reads it later."""
        array = self.over.get(value)
        if array is None or array in self.taken or value.op is None:
            return None
        dims = variables(value.shape)
        p = self.point()
        p.at(value, indices(dims))
        if any(a.array is array and a.index != indices(dims) for a in p.reads):
            return None
        bases = [v for v, a in self.arrays.items() if a is array]
        if not all(dead_after(self, v, value.op) or read_now(self, v, value.op) for v in bases):
            return None
        self.taken.add(array)
        self.target_of.pop(value, None)
        return array

    # Materialising values.

    def array_for(self, value: Value, strided: bool = False) -> Array:
        """New memory for a value: its target if it is an output, else a temporary.

        A target that is not contiguous only serves those who ask for `strided` memory.
        """
        target = self.target_of.get(value)
        if target is not None and (strided or target.contiguous):
            return self.target_of.pop(value)
        type_ = memory_type(value)
        assert type_ is not None, "an order token has no memory"
        return Array(type_.shape, type_.dtype, name=value.name)

    def destination(
        self, value: Value, adjacent: bool = False
    ) -> tuple[Array, tuple[Var, ...], tuple[Index, ...]]:
        """Memory for a value: an array, the value's dims, and where its elements lie in the array.

        Like `array_for`, but a value that is only moved to an output is put there at once: what
        reads the output finds it in its array. With `adjacent`, neighbours along the last dim are
        neighbours in memory.
        """
        dims = variables(value.shape)
        final, position = value, indices(dims)
        while final not in self.outputs and len(self.users[final]) == 1:
            (op,) = self.users[final]
            if op.name == "transpose":
                position = tuple(position[d] for d in op.attrs["perm"])
            elif op.name == "reshape":
                position = reshaped(position, final.shape, op.result.shape)
            else:
                break
            final = op.result
        if final is not value and final in self.target_of:
            target = self.target_of[final]
            strides = linear(position, target.strides).strides(dims)
            if strides is not None and (not adjacent or strides[-1] == 1):
                self.arrays[final] = self.target_of.pop(final)
                return target, dims, position
        array = self.arrays[value] = self.array_for(value)
        return array, dims, indices(dims)

    def materialise(self, value: Value) -> Array:
        """The array that holds `value`, filled by a new stage if it was inlined so far."""
        array = self.arrays.get(value)
        if array is None:
            array = self._over_parameter(value) or self.array_for(value, strided=True)
            self.store(value, array)
            self.arrays[value] = array
        return array

    def overwrite(self, value: Value) -> None:
        """From here on the array of `value` holds another value."""
        del self.arrays[value]
        self.overwritten.add(value)

    def point(self) -> Pointwise:
        return Pointwise(self.arrays, self.context.site, self.context.marks, self.checked)

    def store(self, value: Value, array: Array) -> None:
        """Compute `value` into an array."""
        dims = variables(value.shape)
        p = self.point()
        expr = p.at(value, indices(dims))
        loc = value.op.loc if value.op else None
        self.emit(p, Stage(array, dims, expr, loc=loc, ordered=array in self.taken))

    def emit(self, p: Pointwise, stage: Stage) -> None:
        if math.prod(stage.extents[: stage.outer]) == 0 or (
            stage.action in ("store", "update", "scan") and 0 in stage.extents
        ):
            return
        stage.reads += p.reads
        stage.ops += [op.name for op in p.ops]
        stage.sources += p.ops
        stage.cost += p.cost
        lines = (stage.loc, *(op.loc for op in p.ops))
        stage.knobs = next((loc.knobs for loc in lines if loc is not None and loc.knobs), None)
        self.items.append(stage)

    def copy(self, source: Array, target: Array) -> None:
        dims = variables(source.shape)
        p = self.point()
        self.emit(p, Stage(target, dims, p.load(source, indices(dims), None), ops=["copy"]))

    def _pointwise(self, op: Op) -> None:
        if op.name == "optimization_barrier":
            for value, operand in zip(op.results, op.operands, strict=True):
                self.inlined[value] = self.inlined.get(operand, 0)
                self.cost[value] = self.cost.get(operand, 0)
                if self.cost[value] >= STORED and len(self.users[value]) > 1:
                    self.materialise(operand)
            return
        if op.name == "lanes_while":
            self._lanes_while(op)
            return
        self.inline(op)

    def inline(self, op: Op, work: int | None = None) -> None:
        """Compute the op's value where it is used, unless it wants memory. `work` is that of an element,
        where it is not what the record says."""
        value = op.result
        if op.name == "broadcast":
            self._turn_repeated(op)
        operands = [v for v in op.operands if v not in self.arrays]
        if op.name in FEW:
            n = op.operands[0].tensor.size // max(value.tensor.size, 1)
            if not self.inline_sum(op, n):
                self.materialise(value)
            return
        self.inlined[value] = 1 + sum(self.inlined.get(v, 0) for v in operands)
        own = op.definition.cost.work if work is None else work
        self.cost[value] = own + sum(self.cost.get(v, 0) for v in operands)
        if self._wants_memory(value):
            self.materialise(value)

    def inline_sum(self, op: Op, count: int) -> bool:
        """Compute a fold of `count` terms where it is used; False if it had better have memory."""
        value = op.result
        operands = [v for v in op.operands if v not in self.arrays]
        self.inlined[value] = count * (1 + sum(self.inlined.get(v, 0) for v in operands))
        self.cost[value] = count * (1 + sum(self.cost.get(v, 0) for v in operands))
        return not self._wants_memory(value)

    def _turn_repeated(self, op: Op) -> None:
        """A table of short rows that is read many times over is copied by columns: neighbouring rows
        are then neighbours in memory, as loops over them want it."""
        source, dims = op.operands[0], op.attrs["dims"]
        array = self.arrays.get(source)
        if array is None or len(source.shape) < 2 or array.strides[-1] != 1:
            return
        *longer, columns = source.shape
        if dims[-1] != len(op.result.shape) - 1 or not 1 < columns <= SHORT_ROW <= max(longer):
            return
        if op.result.tensor.size >= REPEATED * source.tensor.size:
            self.arrays[source] = self.turned(array, longer.index(max(longer)))

    def turned(self, array: Array, axis: int) -> Array:
        """A copy of an array in memory of which `axis` is the fastest."""
        shape = array.shape
        order = [d for d in range(len(shape)) if d != axis] + [axis]
        packed = contiguous_strides(tuple(shape[d] for d in order))
        strides = tuple(packed[order.index(d)] for d in range(len(shape)))
        copy = Array(shape, array.dtype, strides=strides, name="turned")
        dims = variables(shape)
        p = self.point()
        value = p.load(array, indices(dims), None)
        loops = tuple(dims[d] for d in order)
        self.emit(p, Stage(copy, loops, value, index=indices(dims), ops=["copy"]))
        return copy

    def _lanes_while(self, op: Op) -> None:
        """All results that are used get memory, from one loop."""
        dims = variables(op.results[0].shape)
        p = self.point()
        wanted = [v for v in op.results if self.users[v] or v in self.outputs]
        exprs = [p.at(v, indices(dims)) for v in wanted]
        for value, expr in zip(wanted, exprs, strict=True):
            array = self.array_for(value, strided=True)
            self.emit(p, Stage(array, dims, expr, loc=op.loc))
            self.arrays[value] = array

    def _wants_memory(self, value: Value) -> bool:
        if value in self.outputs:
            return True
        cost, inlined = self.cost[value], self.inlined[value]
        if value in self.met or not wants_memory(
            value, self.users[value], cost, inlined, self.arrays
        ):
            return False
        met = None
        if inlined <= MOST_INLINED and not self.checks_apart:
            met = meeting(value, self.users, self.outputs)
        if met is None or one_hot_axis(met.update) is not None:
            return True
        self.met |= met.values
        return False

    def check_indices(self, op: Op) -> None:
        """Check the indices of a gather or scatter by stages that do nothing else."""
        if op.attrs["mode"] == "clip":
            return
        axes, x = op.attrs["axes"], op.operands[0]
        for k, (index, axis) in enumerate(zip(op.operands[-len(axes) :], axes, strict=True)):
            dims = variables(index.shape)
            p = self.point()
            raw = p.at(index, indices(dims))
            position = index_value(checked(p, op, k, raw, None))
            passed = Array((), BOOL, name="checked")
            stage = Stage(passed, dims, position >= 0, "reduce", "all", 0, loc=op.loc)
            if survey(stage).checks:
                self.emit(p, stage)
            self.checked.add((index, x.shape[axis]))


def variables(shape: tuple[int, ...]) -> tuple[Var, ...]:
    """A fresh loop variable for each dim of a shape."""
    return tuple(Var(f"i{d}", n) for d, n in enumerate(shape))


def indices(dims: Sequence[Var]) -> tuple[Index, ...]:
    """The indices that are the variables themselves."""
    return tuple(of_var(v) for v in dims)


Rule = Callable[[Lowering, Op], None]
LOWERINGS: dict[str, Rule] = {}  # ops that are not pointwise; filled by the modules below
MODULES = {
    "kernels.attention.lower_attention": ("attention", "attention_grad"),
    "kernels.matmul.lower_contraction": ("dot",),
    "lowering.lower_control": (
        *("cond", "assert", "create_token", "pure_callback", "io_callback", "materialize"),
    ),
    "kernels.tape.lower_tapes": ("tape_new", "tape_push", "tape_pop"),
    "kernels.convolution.lower_convolution": ("conv",),
    "kernels.draws.lower_draws": ("draw",),
    "kernels.exchange.lower_exchange": (
        *("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "ppermute", "send_all"),
        *("reduce_to", "send", "receive", "barrier"),
    ),
    "kernels.stores.lower_stores": ("store",),
    "kernels.factor.lower_factors": ("solve", "inv", "cholesky", "triangular_solve", "lu"),
    "lowering.lower_library": (
        *("det", "slogdet", "eigh", "eigvalsh", "eig", "eigvals"),
        *("svd", "svdvals", "qr_raw", "qr_q", "lstsq", "fft", "rfft", "irfft", "library_call"),
        "ufunc_loop",
    ),
    "lowering.lower_loops": ("while", "scan"),
    "lowering.lower_recursion": ("recursion",),
    "lowering.lower_reductions": (
        *(*FOLDS, "argmax", "argmin"),
        *("cumsum", "cumprod", "cummax", "cummin"),
    ),
    "kernels.sort.lower_sorting": ("sort", "argsort", "true_indices"),
    "kernels.scatter.lower_updates": ("concat", "update_slice", "dynamic_update_slice", "scatter"),
    "lowering.lower_windows": (
        *("window_sum", "window_prod", "window_max", "window_min"),
        *("window_argmax", "window_argmin", "window_pick", "window_put"),
    ),
}
HOMES = {name: module for module, names in MODULES.items() for name in names}


def lowering(*names: str) -> Callable[[Rule], Rule]:
    """Make the decorated function the lowering of the ops called `names`."""

    def register(rule: Rule) -> Rule:
        LOWERINGS.update(dict.fromkeys(names, rule))
        return rule

    return register


def rule_of(name: str) -> Rule:
    """The lowering of an op, from a module that is imported when a program has such an op."""
    if name not in LOWERINGS:
        import_module(f"..{HOMES[name]}", __package__)
    return LOWERINGS[name]


def memory_type(value: Value) -> TensorType | None:
    """What a value takes in memory: a tape its handle, an order token nothing."""
    if isinstance(value.type, TensorType):
        return value.type
    return None if value.type == TOKEN else TensorType((), I64)
