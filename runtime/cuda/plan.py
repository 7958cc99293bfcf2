"""The steps of a program, prepared: tables of commands, and the decisions between them.

    plan = Planner(program, module, bases).plan(program.steps)

`Bases` numbers the addresses that locations start from: inputs, outputs, scratch memory, constants, and
slots.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from ...codegen.cuda.program import (
    MAP_BYTES,
    Argument,
    Carry,
    Copy,
    DeviceProgram,
    Fill,
    Gemm,
    HostCall,
    If,
    Launch,
    Ref,
    Scalar,
    Scan,
    Step,
    TapeNew,
    TapePop,
    TapePush,
    TensorMap,
    While,
)
from ...ir.record import record
from .cublas import BlasError, PreparedGemm, blas_reason, find_blas
from .driver import Context
from .heaps import has_heap
from .launcher import Location, MapArgument, Packed, Table
from .modules import Module

_LIBRARY_COMMANDS = 3  # that take as long as a call of a library from Python
_SCALARS = {"i32": "<i", "i64": "<q", "f32": "<f", "f64": "<d"}


class Segment:
    """Commands that need no decision: a table, and where it lies. `maps`: the tensor maps among their
    arguments, by number. `name`: what the only command is, if commands are to be told apart."""

    def __init__(
        self, table: Table, maps: Mapping[int, TensorMap] | None = None, name: str = ""
    ) -> None:
        self.name = name
        self.table = table
        self.words = table.finish()
        self.maps = dict(maps or {})
        self.address = self.words.ctypes.data
        self.commands = table.commands


@record(eq=False)
class BlasCall:
    """A product by cuBLASLt, and the locations that it works on; no bias: its location means nothing."""

    product: PreparedGemm
    left: Location
    right: Location
    result: Location
    bias: Location


@record
class Branches:
    """One of several plans, by an index in memory."""

    index: Location
    ways: tuple[Plan, ...]


@record
class LoopPlan:
    """A plan as long as the flag that another one makes holds."""

    test: Plan
    flag: Location
    body: Plan
    carries: tuple[Carry, ...]


@record
class ScanPlan:
    """A plan for each slice of a scan."""

    scan: Scan
    body: Plan


OnHost = HostCall | TapeNew | TapePush | TapePop  # the host takes part in them
Planned = Segment | BlasCall | Branches | LoopPlan | ScanPlan | OnHost
Plan = tuple[Planned, ...]


class Bases:
    """Numbers of the addresses that the locations of a program start from."""

    def __init__(self, program: DeviceProgram) -> None:
        counts = {
            "input": len(program.inputs),
            "output": len(program.outputs),
            "arena": 1,
            "constant": len(program.constants),
            "counters": 1,
            "status": 1,
            "slot": program.slots,
            "maps": 1,  # of the host
            "answer": 1,  # where the status block goes on the host,
            "event": 1,  # and what is recorded then
            "graph": 1,  # that stands for the whole program
            "heap": 2,
        }
        self.first: dict[str, int] = {}
        self.count = 0
        for space, count in counts.items():
            self.first[space] = self.count
            self.count += count

    def locate(self, ref: Ref) -> Location:
        return self.first[ref.space] + ref.number, ref.offset


class Planner:
    """Steps to plans. `workspace`: bytes that calls of libraries need. `apart`: each command is a
    segment of its own, which has a name."""

    def __init__(
        self,
        program: DeviceProgram,
        module: Module,
        bases: Bases,
        context: Context,
        apart: bool = False,
    ) -> None:
        self._apart = apart
        self._program = program
        self._module = module
        self._bases = bases
        self._context = context
        self.workspace = 0
        self._maps: dict[int, TensorMap] = {}  # of the segment at hand
        self.maps: list[TensorMap] = []  # of the whole program
        self._heap = has_heap(program)

    def plan(self, steps: Sequence[Step]) -> Plan:
        planned: list[Planned] = []
        table = Table()
        for step in steps:
            if self._command(step, table):
                if self._apart:
                    name = step.kernel if isinstance(step, Launch) else type(step).__name__.lower()
                    planned.append(self._segment(table, name))
                    table = Table()
                continue
            if table.commands:
                planned.append(self._segment(table))
                table = Table()
            planned.append(self._control(step))
        if table.commands:
            planned.append(self._segment(table))
        return tuple(planned)

    def _segment(self, table: Table, name: str = "") -> Segment:
        maps, self._maps = self._maps, {}
        return Segment(table, maps, name)

    def _argument(self, argument: Argument) -> Packed:
        if isinstance(argument, Scalar):
            return struct.pack(_SCALARS[argument.dtype], argument.value)
        if isinstance(argument, TensorMap):
            number = len(self.maps)
            self.maps.append(argument)
            self._maps[number] = argument
            return MapArgument((self._bases.first["maps"], number * MAP_BYTES))
        return self._bases.locate(argument)

    def _command(self, step: Step, table: Table) -> bool:
        """Write a step that needs no decision; False for the others."""
        if isinstance(step, (TapeNew, TapePush, TapePop)) and self._heap:
            return all(self._command(launch, table) for launch in step.launches)
        locate = self._bases.locate
        if isinstance(step, Launch):
            entry = self._program.kernels[step.kernel]
            handle = self._module.function(step.kernel).handle
            arguments = [self._argument(a) for a in step.arguments]
            table.launch(handle, step.grid, entry.threads, entry.shared_bytes, arguments)
        elif isinstance(step, Copy):
            table.copy(locate(step.target), locate(step.source), step.nbytes)
        elif isinstance(step, Fill):
            table.fill(locate(step.target), step.count, step.width, step.value)
        else:
            return False
        return True

    def _control(self, step: Step) -> Planned:
        locate = self._bases.locate
        if isinstance(step, Gemm):
            return self._library_call(step)
        if isinstance(step, If):
            return Branches(locate(step.index), tuple(self.plan(way) for way in step.branches))
        if isinstance(step, While):
            test, body = self.plan(step.test), self.plan(step.body)
            return LoopPlan(test, locate(step.flag), body, step.carries)
        if isinstance(step, Scan):
            return ScanPlan(step, self.plan(step.body))
        assert isinstance(step, OnHost), step
        return step

    def _library_call(self, step: Gemm) -> BlasCall:
        blas = find_blas(self._context)
        if blas is None:
            raise BlasError(blas_reason(self._context))
        product = blas.prepare(step)
        self.workspace = max(self.workspace, product.workspace)
        refs = (step.left.ref, step.right.ref, step.result.ref, step.bias or step.result.ref)
        return BlasCall(product, *map(self._bases.locate, refs))


def is_static(plan: Plan) -> bool:
    """Whether the host decides nothing on the way."""
    return all(
        isinstance(step, (Segment, BlasCall))
        or (isinstance(step, ScanPlan) and is_static(step.body))
        for step in plan
    )


def commands(plan: Plan) -> int:
    """How many commands a plan writes down: iterations of scans one by one, bodies of other loops
    once."""
    total = 0
    for step in plan:
        if isinstance(step, Segment):
            total += step.commands
        elif isinstance(step, BlasCall):
            total += _LIBRARY_COMMANDS
        elif isinstance(step, ScanPlan):
            total += step.scan.length * commands(step.body)
        elif isinstance(step, LoopPlan):
            total += 2 * commands(step.test) + commands(step.body)
        elif isinstance(step, Branches):
            total += sum(map(commands, step.ways))
    return total


def may_be_recorded(plan: Plan) -> bool:
    """Whether a graph can decide everything that the plan leaves open."""
    return not any(
        isinstance(step, OnHost)
        or (isinstance(step, ScanPlan) and not may_be_recorded(step.body))
        or (isinstance(step, Branches) and not all(map(may_be_recorded, step.ways)))
        or (
            isinstance(step, LoopPlan)
            and not (may_be_recorded(step.test) and may_be_recorded(step.body))
        )
        for step in plan
    )
