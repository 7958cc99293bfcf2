"""`jt.cost`: what a call would cost, from the program that would be compiled for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from ...ir.record import record
from ..data.pytree import tree_map
from ..explain.steps import place
from ..explain.units import size_text, time_text
from ..jit.decorator import unbound
from ..jit.specialise import outlined
from ..messages.tracebacks import shortened
from .formulas import Amount, Formula, count, once, simple, total
from .shapes import bare

if TYPE_CHECKING:
    from ...codegen.module import BlockReport, KernelReport, NativeModule, StepReport
    from ...runtime.machine_limits import MachineLimits

_STEP_SECONDS = 50e-9  # what a step takes that does next to nothing
_NEAR = 256 << 10  # bytes: the cache that parts of row blocks find what others have left in
_CALL_SECONDS = 0.45e-6  # what a call takes beside its code
_ARRAY_SECONDS = 0.09e-6  # and more for each array that it takes or gives
_BESIDE = 0.5  # of the lesser of moving and computing: what is not hidden behind the greater
_BLOCKS = 0.6  # of the peak: small products with other work between them
_LIBRARY = 2  # times as many flops a second as scalar code of ours


@record
class Cost:
    """What one call costs. Amounts are numbers, or `Formula`s of the counts in `loops`.

    flops           scalar operations
    bytes_read, bytes_written    each element that a kernel touches, once for each run of the kernel
    peak_memory     bytes that a call allocates: temporaries and results; of tapes and of containers that
                    grow, which no shape tells, none
    seconds         predicted, from this machine's limits: most programs' are within a factor of 1.5
    loops           the counts that nobody knows before the call, and where the loops are

    Of branches the dearer one counts; for flops and bytes, the one that is so on machines of today.

    >>> cost(lambda x: (x * x).sum(), jt.ShapeDtype(1000)).flops
    2000
    """

    flops: Amount
    bytes_read: Amount
    bytes_written: Amount
    peak_memory: int
    loops: dict[str, str]
    predicted: Callable[[], Amount]  # `seconds`: it may have to measure the machine first

    @property
    def seconds(self) -> Amount:
        """Predicted. The first of a machine takes some seconds, in which its limits are measured."""
        return self.predicted()

    @property
    def bytes(self) -> Amount:
        """Read and written."""
        return simple(self.bytes_read + self.bytes_written)

    def __call__(self, **counts: float) -> Cost:
        """The cost with these counts of iterations: `cost(n1=100)`.

        Raises TypeError for a name that is not in `loops`.
        """
        for name in counts:
            if name not in self.loops:
                known = ", ".join(self.loops) or "none"
                raise TypeError(f"no loop has the count {name!r}; there are: {known}")
        at = lambda amount: _at(amount, counts)  # noqa: E731
        left = {name: line for name, line in self.loops.items() if name not in counts}
        return Cost(
            at(self.flops),
            at(self.bytes_read),
            at(self.bytes_written),
            self.peak_memory,
            left,
            lambda: at(self.seconds),
        )

    def __str__(self) -> str:
        lines = [
            f"flops         {_text(self.flops, lambda n: f'{n:,.0f}')}",
            f"bytes read    {_text(self.bytes_read, size_text)}",
            f"bytes written {_text(self.bytes_written, size_text)}",
            f"peak memory   {size_text(self.peak_memory)}",
            f"predicted     {_text(self.seconds, time_text)}",
        ]
        lines += [f"{name}: iterations of the {line}" for name, line in self.loops.items()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@shortened
def cost(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Cost:
    """What a call of `function` with these arguments would cost: flops, bytes, memory, time.

    Arguments are as for `eval_shape`: `ShapeDtype`s will do, of any size, and arrays are not read. The
    function is traced and its program made for this CPU, as `jit` does it; nothing of it runs. The
    limits of the machine, which the predicted time comes from, are measured once, in some seconds, when
    `seconds` is asked for.

    Loops whose number of iterations only the program knows have counts, `n1`, `n2`, ...: amounts are
    formulas of them, and `cost(...)(n1=100)` says what they are for so many iterations.

    >>> c = cost(lambda x: x[:-2] + x[2:], jt.ShapeDtype(1002))
    >>> c.flops, c.bytes_read, c.bytes_written
    (1000, 8016, 8000)

    Raises what tracing raises.
    """
    compiled, args = unbound(function, args)
    args, kwargs = tree_map(bare, (args, kwargs))

    module = compiled._looked_at(outlined, args, kwargs)
    return cost_of(module)


def cost_of(module: NativeModule) -> Cost:
    """What a program with an outline costs."""
    from ...runtime.machine_limits import TYPICAL, machine_limits

    def predicted() -> Amount:
        return _spent(module, machine_limits(), machine_limits(threads=1))[0].seconds

    spent, loops = _spent(module, TYPICAL, TYPICAL)
    peak = module.probes_at + sum(type.nbytes for type in module.outputs)
    return Cost(spent.flops, spent.bytes_read, spent.bytes_written, peak, loops, predicted)


def _spent(
    module: NativeModule, limits: MachineLimits, alone: MachineLimits
) -> tuple[_Spent, dict[str, str]]:
    """What a call costs on a machine with these limits, `alone` being those of one thread; and the loops
    that nobody can count."""
    results = sum(type.nbytes for type in module.outputs)
    footprint = results + module.probes_at + sum(type.nbytes for type in module.inputs)
    counting = _Counting(limits, alone, footprint)
    call = _CALL_SECONDS + _ARRAY_SECONDS * (len(module.inputs) + len(module.outputs))
    return _sum([_Spent(seconds=call), counting.steps(module.outline)]), counting.loops


@record
class _Spent:
    flops: Amount = 0
    bytes_read: Amount = 0
    bytes_written: Amount = 0
    seconds: Amount = 0

    def often(self, times: Amount) -> _Spent:
        amounts = (self.flops, self.bytes_read, self.bytes_written, self.seconds)
        return _Spent(*(simple(amount * times) for amount in amounts))


def _sum(parts: Iterable[_Spent]) -> _Spent:
    parts = list(parts)
    return _Spent(
        total(p.flops for p in parts),
        total(p.bytes_read for p in parts),
        total(p.bytes_written for p in parts),
        total(p.seconds for p in parts),
    )


class _Counting:
    """Adds up what steps cost; names the loops that nobody can count."""

    def __init__(self, limits: MachineLimits, alone: MachineLimits, footprint: int) -> None:
        self.limits = limits
        self.alone = alone
        self.footprint = footprint
        self.loops: dict[str, str] = {}

    def steps(self, steps: Iterable[StepReport]) -> _Spent:
        return _sum(self._step(step) for step in steps)

    def _step(self, step: StepReport) -> _Spent:
        own = self._moves(step.moves) if step.kernel is None else self._kernel(step.kernel)
        if step.chooses:
            choices = [self._block(block) for block in step.blocks]
            return max(choices, key=lambda spent: once(spent.seconds), default=own)
        inner = _sum(self._times(step))
        if (
            step.kernel is not None
        ):  # scalar code: the kernel has what is in it, each loop counted once
            if step.kernel.work.turns and any("while" in op for op in step.kernel.ops):
                turns = self._turns(step.kernel).often(count(self._named(step)))
                return _sum([own, turns])
            if not step.blocks:
                return own
            flops = inner.flops
            more = (flops + -once(flops)) * (1 / self._scalars(step.kernel))
            seconds = simple(own.seconds + more)
            return _Spent(flops, own.bytes_read, own.bytes_written, seconds)
        return _sum([own, inner])

    def _times(self, step: StepReport) -> Iterator[_Spent]:
        """What the blocks of a step cost, as often as they run."""
        unknown = None
        for block in step.blocks:
            spent = self._block(block)
            if block.times is not None:
                yield spent.often(block.times)
                continue
            if unknown is None:
                unknown = count(self._named(step))
            yield spent.often(unknown + 1 if block.text == "test" else unknown)

    def _named(self, step: StepReport) -> str:
        name = f"n{len(self.loops) + 1}"
        where = f" at {place(step.loc)}" if step.loc is not None else ""
        self.loops[name] = f"{step.text}{where}"
        return name

    def _block(self, block: BlockReport) -> _Spent:
        return _sum([self.steps(block.steps), _Spent(flops=block.flops)])

    def _moves(self, nbytes: int) -> _Spent:
        seconds = nbytes / self.limits.bandwidth(self.footprint) + _STEP_SECONDS
        return _Spent(0, nbytes // 2, nbytes // 2, seconds if nbytes else 0)

    def _kernel(self, kernel: KernelReport) -> _Spent:
        moved = kernel.bytes_read + kernel.bytes_written
        limits = self._limits(kernel)
        moving = (moved - kernel.near) / limits.bandwidth(self.footprint)
        moving += kernel.near / limits.bandwidth(_NEAR)
        busy = self._busy(kernel)
        for nbytes, often in kernel.work.accesses:
            busy += often / limits.access_rate(nbytes)
        seconds = max(moving, busy) + _BESIDE * min(moving, busy) + _STEP_SECONDS
        return _Spent(kernel.flops, kernel.bytes_read, kernel.bytes_written, seconds)

    def _turns(self, kernel: KernelReport) -> _Spent:
        """Of one iteration of the loops that each element has for itself."""
        rate = self._limits(kernel).operation_rate(kernel.itemsize)
        return _Spent(round(kernel.work.turns), seconds=kernel.work.turns / rate)

    def _busy(self, kernel: KernelReport) -> float:
        """Seconds that a kernel computes."""
        limits = self._limits(kernel)
        match kernel.rate:
            case "flops":
                return kernel.flops / limits.peak_flops(kernel.itemsize)
            case "blocks":
                return kernel.flops / (_BLOCKS * limits.peak_flops(kernel.itemsize))
            case "scalars":
                return kernel.flops / self._scalars(kernel)
            case "library":
                return kernel.flops / (_LIBRARY * self._scalars(kernel))
            case "sorting":
                return kernel.work.slots / limits.sorting
        return kernel.work.slots / limits.operation_rate(kernel.itemsize)

    def _limits(self, kernel: KernelReport) -> MachineLimits:
        return self.limits if kernel.parallel else self.alone

    def _scalars(self, kernel: KernelReport) -> float:
        """Operations a second of scalar code, by all threads that share it."""
        return self._limits(kernel).scalars


def _at(amount: Amount, counts: dict[str, float]) -> Amount:
    return amount.at(**counts) if isinstance(amount, Formula) else amount


def _text(amount: Amount, number: Callable[[Any], str]) -> str:
    return amount.text(number) if isinstance(amount, Formula) else number(amount)
