"""The graph: a list of ops in SSA form over typed values.

    graph f(%x: f32[8]) -> f32[8] {
      %y = mul %x, %x  : f32[8]
      return %y
    }

A `Value` is a graph parameter or one result of an op. An `Op` names its definition (`OpDef`: type rule,
reference, derivatives), its operands, its attributes (plain hashable Python data, or a read-only
ndarray for `constant`), its regions (graphs of their own, for structured control flow) and the
user's source line. Regions capture nothing: what they read comes in through their parameters.

Graphs are built by appending (see `build.Builder`) and never edited in place; a pass makes a new one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .record import record, replace
from .surface import ensure
from .types import TensorType, Type

if TYPE_CHECKING:
    from .opdef import OpDef


@record
class Knobs:
    """How the user wants kernels to run, where he says so (`jt.schedule`); None: as the compiler thinks.

    Raises ValueError for values that no kernel has.
    """

    lanes: int | None = None
    unroll: int | None = None
    tile: int | None = None

    def __post_init__(self) -> None:
        for name, least, most in (("lanes", 1, 64), ("unroll", 1, 64), ("tile", 8, 1024)):
            value = getattr(self, name)
            fits = type(value) is int and least <= value <= most and not value & (value - 1)
            if value is not None and not fits:
                raise ValueError(f"{name}={value!r}: choose a power of two from {least} to {most}")
        if (self.lanes or 1) * (self.unroll or 1) > 64:
            raise ValueError(f"lanes={self.lanes}, unroll={self.unroll}: at most 64 together")

    def inside(self, outer: Knobs) -> Knobs:
        """These, and those of `outer` that are not among them."""
        return Knobs(
            self.lanes or outer.lanes, self.unroll or outer.unroll, self.tile or outer.tile
        )

    def __str__(self) -> str:
        pairs = ((name, getattr(self, name)) for name in ("lanes", "unroll", "tile"))
        return ", ".join(f"{name}={value}" for name, value in pairs if value is not None)


@record
class SourceLine:
    """Where in the user's program an op came from.

    scope   the names that the user gave to what is around it, `encoder/attention`
    role    what it is there if not what was written: `grad of sin`
    lanes   how many `vmap` are around it: so many axes of what it gives are of examples
    knobs   how its kernel is to run, if the user says so
    column  counted from 1, in a lambda, of which a line may have several; else 0
    """

    file: str
    line: int
    function: str = ""
    scope: str = ""
    role: str = ""
    lanes: int = 0
    knobs: Knobs | None = None
    column: int = 0

    def __str__(self) -> str:
        return f"{cell_name(self.file) or self.file}:{self.line}"

    @property
    def inside(self) -> str:
        """What is around the line, for the end of `model.py:12`: `, in softmax, scope encoder`."""
        return (f", in {self.function}" if self.function else "") + self.named

    @property
    def named(self) -> str:
        """Column, scope and role, for the end of the same."""
        column = f", column {self.column}" if self.column else ""
        scope = f", scope {self.scope}" if self.scope else ""
        return column + scope + (f", {self.role}" if self.role else "")


def cell_name(file: str) -> str | None:
    """What a notebook calls the cell whose code has this file name, `In[3]`; None for others."""
    shell = sys.modules.get("IPython")
    if shell is None or (running := shell.get_ipython()) is None:
        return None
    name = getattr(running.compile, "format_code_name", lambda _: None)(file)
    return str(name[1]) if name is not None and name[0] == "Cell" else None


def derived(op: Op, what: str) -> SourceLine | None:
    """Where ops of a derivative of `op` come from: `what` is `grad` or `jvp`."""
    loc = op.loc
    return loc and _derived(loc, f"{what} of {loc.role or op.name}")


@lru_cache(maxsize=1024)
def in_lanes(loc: SourceLine | None) -> SourceLine | None:
    """Where ops come from that do for many examples what one at `loc` did for one."""
    return loc and replace(loc, lanes=loc.lanes + 1)


@lru_cache(maxsize=1024)
def _derived(loc: SourceLine, role: str) -> SourceLine:
    return replace(loc, role=role)


class Value:
    """A graph parameter (`op is None`, `index` is its position) or result `index` of `op`."""

    __slots__ = ("type", "op", "index", "name")

    def __init__(self, type: Type, op: Op | None, index: int, name: str = "") -> None:
        self.type = type
        self.op = op
        self.index = index
        self.name = name  # a hint for the printer; not part of the meaning

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def dtype(self) -> Any:
        return self.tensor.dtype

    @property
    def tensor(self) -> TensorType:
        """The type, known to be a tensor's. Raises TypeError for a token or a tape."""
        if not isinstance(self.type, TensorType):
            raise TypeError(f"a {self.type} has no shape or dtype")
        return self.type

    @property
    def nbytes(self) -> int:
        """What it takes in memory; of a token or a tape what says where that is."""
        return self.type.nbytes if isinstance(self.type, TensorType) else 8

    def __repr__(self) -> str:
        origin = f"param {self.index}" if self.op is None else f"{self.op.name}.{self.index}"
        return f"<Value {self.name or origin}: {self.type}>"


class Op:
    """One operation: definition, operands, attributes, regions, results, source line."""

    __slots__ = ("definition", "operands", "attrs", "regions", "results", "loc")

    def __init__(
        self,
        definition: OpDef,
        operands: tuple[Value, ...],
        attrs: dict[str, Any],
        regions: tuple[Graph, ...] = (),
        loc: SourceLine | None = None,
    ) -> None:
        self.definition = definition
        self.operands = operands
        self.attrs = attrs
        self.regions = regions
        self.results: tuple[Value, ...] = ()
        self.loc = loc

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    @property
    def has_effect(self) -> bool:
        """Whether running the op does more than compute its results, regions included."""
        return self.definition.effect or any(
            inner.definition.effect for region in self.regions for inner in region.walk()
        )

    def with_operands(
        self,
        operands: Iterable[Value],
        regions: tuple[Graph, ...] | None = None,
        attrs: dict[str, Any] | None = None,
    ) -> Op:
        """The op with other operands, regions and attributes, which give results of the same types."""
        own = self.regions if regions is None else regions
        new = Op(self.definition, tuple(operands), attrs or self.attrs, own, self.loc)
        if len(self.results) == 1:  # nearly all: graphs are copied often
            old = self.results[0]
            new.results = (Value(old.type, new, 0, old.name),)
        else:
            new.results = tuple([Value(v.type, new, v.index, v.name) for v in self.results])
        return new

    def rebased(self, env: dict[Value, Value]) -> Op:
        """The op, or a copy of it where it reads values that `env` replaces; its results join `env`."""
        if not env or env.keys().isdisjoint(self.operands):
            return self
        new = self.with_operands([env.get(v, v) for v in self.operands])
        env.update(zip(self.results, new.results, strict=True))
        return new

    def __repr__(self) -> str:
        return f"<Op {self.name} {[str(v.type) for v in self.operands]} {self.attrs}>"


# What methods of graphs do that lies above: see `surface`.
_served: dict[str, Callable[..., Any]] = {}


def serve(**methods: Callable[..., Any]) -> None:
    """Let methods of `Graph` do this."""
    _served.update(methods)


class Graph:
    """Parameters, ops in execution order, and outputs."""

    __slots__ = ("name", "params", "ops", "outputs")

    def __init__(self, name: str = "main") -> None:
        self.name = name
        self.params: list[Value] = []
        self.ops: list[Op] = []
        self.outputs: list[Value] = []

    def add_param(self, type: Type, name: str = "") -> Value:
        value = Value(type, None, len(self.params), name)
        self.params.append(value)
        return value

    @property
    def input_types(self) -> list[Type]:
        return [v.type for v in self.params]

    @property
    def output_types(self) -> list[Type]:
        return [v.type for v in self.outputs]

    def values(self) -> Iterator[Value]:
        """Every value defined in this graph, parameters first, regions not entered."""
        yield from self.params
        for op in self.ops:
            yield from op.results

    def all_values(self) -> Iterator[Value]:
        """Every value defined in this graph and in regions."""
        yield from self.values()
        for op in self.ops:
            for region in op.regions:
                yield from region.all_values()

    def walk(self) -> Iterator[Op]:
        """Every op, regions included, each op before the ops of its regions."""
        for op in self.ops:
            yield op
            for region in op.regions:
                yield from region.walk()

    def users(self) -> dict[Value, list[Op]]:
        """For each value the ops that read it (once per op); outputs are not counted as users."""
        table: dict[Value, list[Op]] = {v: [] for v in self.values()}
        for op in self.ops:
            for operand in dict.fromkeys(op.operands):
                table[operand].append(op)
        return table

    def to_networkx(self, *, regions: bool = False) -> Any:
        """A `networkx.MultiDiGraph` with a node per parameter, op and output (see `ir.export`); with
        `regions`, of those of loops and branches, too."""
        from .export import to_networkx

        return to_networkx(self, regions)

    def __getitem__(self, name: str) -> Value:
        """The value called so by `jt.name` or in the graph's text: `graph["encoder/h"]`. KeyError."""
        ensure("graph")
        value: Value = _served["find"](self, name)
        return value

    def between(self, sources: Iterable[str | Value], targets: Iterable[str | Value]) -> Graph:
        """The graph from some values to others, with what that needs and no more (`ir.fetching`)."""
        ensure("graph")
        part: Graph = _served["between"](self, sources, targets)
        return part

    def run(self, fetches: Any, feeds: Mapping[str | Value, Any]) -> Any:
        """The values of `fetches` where those of `feeds` are given: names, or values of this graph.

        `fetches` is one of them, or lists, tuples and dicts. What is needed is computed, by the
        interpreter. Raises GraphError where a parameter is needed that is not given, KeyError for
        a name that there is not, TypeError for an array that is not of the value's type.

        >>> graph = jt.jit(lambda x: jt.name(x + 1, "h") * 2).trace(1.0)
        >>> graph.run("h", {"x": 2.0}), graph.run(graph.outputs, {"h": 5.0})
        (array(3.), [array(10.)])
        """
        ensure("graph")
        return _served["run"](self, fetches, feeds)

    def draw(self) -> Any:
        """A picture: ops, the scopes around them as boxes, regions in their ops, edges with types. It
        shows itself in a notebook, and has `svg` and `save(path)`. Large boxes are folded.

        >>> jt.jit(lambda x: x * 2).trace(1.0).draw()
        <Drawing of <lambda>: 4 ops and values>
        """
        ensure("graph function")
        return _served["draw"](self)

    def to_function(self) -> Any:
        """A compiled function of the graph's parameters, positional or by name, that gives its output,
        or a tuple of them; it can be differentiated and batched, and called while tracing.

        >>> jt.jit(lambda x: x * 2).trace(1.0).to_function()(3.0)
        np.float64(6.0)
        """
        ensure("graph function")
        return _served["to_function"](self)

    def giving(self, outputs: Iterable[Value]) -> Graph:
        """The same ops with other outputs."""
        new = Graph(self.name)
        new.params, new.ops, new.outputs = list(self.params), list(self.ops), list(outputs)
        return new

    def __str__(self) -> str:
        from .text import print_graph

        return print_graph(self)

    def __repr__(self) -> str:
        types = ", ".join([str(value.type) for value in self.params])
        return f"<Graph {self.name}({types}): {len(self.ops)} ops>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def hand_names_on(old: Iterable[Value], new: Iterable[Value], made: Collection[Op]) -> None:
    """Call values of `new` by the names of those that they stand for, if an op of `made` gives them
    and they have none."""
    for before, value in zip(old, new, strict=True):
        if before.name and not value.name and value.op in made:
            value.name = before.name


def unspread(value: Value) -> Value:
    """What a value repeats: it, behind broadcasts and reshapes. All elements stand in either."""
    while value.op is not None and value.op.definition.name in ("broadcast", "reshape"):
        value = value.op.operands[0]
    return value


def uniform(value: Value) -> Any:
    """The one element (a NumPy scalar) that a constant value holds everywhere, or None."""
    op = unspread(value).op
    if op is None or op.definition.name != "constant" or op.attrs["value"].size != 1:
        return None
    return op.attrs["value"].reshape(())[()]
