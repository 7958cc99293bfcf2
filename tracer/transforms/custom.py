"""`custom_vjp` and `custom_jvp`: functions with derivatives of the user's own.

A call that nothing differentiates is a plain call of the function. Inside of `jt.grad`, `jt.vjp` and
the other derivatives it becomes one op (`ir.ops.control.custom`) whose region is the rule, and the rule
takes effect at the first derivative; the next one differentiates what the rule has done. So rules
may call the function itself, and derivatives of any order follow.

Rules speak of the function's arguments. A derivative with respect to a value that it closes over is
an error: make it an argument.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from types import MethodType
from typing import Any

import numpy as np

from ...ir.ops.control.custom import CUSTOM_JVP, CUSTOM_VJP
from ...ir.types import TensorType, is_inexact
from ..control.regions import TracedRegion, trace_region
from ..core.specs import Spec, is_array, spec_of
from ..core.trace import EagerBuilder, current_trace, require_trace
from ..core.tracers import Tracer, as_value, wrap
from ..core.tracing import Result
from ..data import pytree
from ..data.callables import Function, check_callable, function_name
from ..messages import errors
from ..messages.errors import complain
from ..messages.tracebacks import shortened
from .custom_call import CustomCall, KnownCall, after, lend, pending_derivatives
from .custom_rules import checked_cotangents, checked_tangents, refuse_rule, shown


class _Custom:
    """What the two decorators share: how arguments are told apart, and whether a rule is needed."""

    __name__: str
    _rules: str  # how rules are given, for messages

    def __new__(cls, fun: Function | None = None, **options: Any) -> Any:
        if fun is None:
            return functools.partial(cls, **options)
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[Function]:
        return (self.fun,)

    def __init__(self, fun: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        check_callable(fun, type(self).__name__)
        positions = (
            (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        )
        if not all(isinstance(i, int) and i >= 0 for i in positions):
            raise TypeError(f"nondiff_argnums are positions 0, 1, ..., not {nondiff_argnums!r}")
        self.fun = fun
        self.nondiff_argnums = tuple(sorted(set(positions)))
        functools.update_wrapper(self, fun)
        if not hasattr(fun, "__name__"):
            self.__name__ = type(fun).__name__

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        return self if obj is None else MethodType(self, obj)

    def __repr__(self) -> str:
        return f"<jitney.{type(self).__name__} {function_name(self.fun)}>"

    @shortened
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._has_rule():
            complain(
                errors.TransformError,
                f"{function_name(self.fun)} has no derivative rule yet",
                f"give it one before the first call: {self._rules}.",
            )
        args = self._positional(args, kwargs)
        trace = current_trace()
        if trace is None:
            return self.fun(*args)
        if trace.known_call is not None and trace.known_call.is_of(self, args):
            return trace.known_call.result()
        if not pending_derivatives():
            return self.fun(*args)
        if isinstance(trace.builder, EagerBuilder) and not trace.builder.active:
            return self.fun(*args)
        return self._traced(args)

    @property
    def __jitney_rules__(self) -> dict[str, Function | None]:
        """The user's functions that are called beside the one that is wrapped, by the names of the
        attributes where they are: what they read of outside counts, too."""
        raise TypeError("a subclass says")

    def _has_rule(self) -> bool:
        raise TypeError("a subclass says")

    def _traced(self, args: tuple[Any, ...]) -> Any:
        raise TypeError("a subclass says")

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Every argument by position, defaults filled in: rules take them so."""
        try:
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
        except ValueError:  # no signature to look at
            bound = None
        if bound is not None:
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if kwargs:
            complain(
                errors.TransformError,
                f"{function_name(self.fun)} takes {', '.join(kwargs)} by keyword only, and rules "
                "take arguments by position",
                "make them positional parameters.",
            )
        if self.nondiff_argnums and self.nondiff_argnums[-1] >= len(args):
            complain(
                errors.TransformError,
                f"nondiff_argnums={self.nondiff_argnums}, but {function_name(self.fun)} was called "
                f"with {len(args)} arguments",
                "count the parameters from 0.",
            )
        return args


class custom_vjp(_Custom):
    """A function with a reverse-mode derivative of the user's own.

        @jt.custom_vjp
        def f(x, y): ...

        def f_fwd(x, y):                # takes what f takes
            return f(x, y), residuals   # any tree of arrays

        def f_bwd(residuals, ct):       # ct: a cotangent with the structure of f's result
            return ct_x, ct_y           # one per argument, with its structure; None for zero

        f.defvjp(f_fwd, f_bwd)

    Arguments in `nondiff_argnums` may be anything (functions, strings); f_bwd gets them first, one by
    one. Integer and bool arrays have None for a cotangent, both ways. Forward mode needs another rule
    and says so; `custom_jvp` serves both modes. Under a derivative the value of f is f_fwd's.
    """

    _rules = "f.defvjp(fwd, bwd)"

    def __init__(self, fun: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.fwd: Function | None = None
        self.bwd: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> Function:
        """Set the rule; gives `bwd` back, so that it works as a decorator, too."""
        check_callable(fwd, "custom_vjp.defvjp")
        check_callable(bwd, "custom_vjp.defvjp")
        self.fwd, self.bwd = fwd, bwd
        return bwd

    @property
    def __jitney_rules__(self) -> dict[str, Function | None]:
        return {"fwd": self.fwd, "bwd": self.bwd}

    def _has_rule(self) -> bool:
        return self.fwd is not None

    def _traced(self, args: tuple[Any, ...]) -> Any:
        assert self.fwd is not None and self.bwd is not None
        call = CustomCall(self.fun, self.nondiff_argnums, args)
        pair = _Pair(self.fwd, self.fun)
        with after(1):
            application, values = call.run(pair.call)
            results = application.results
            count = pair.out_tree.num_leaves
            outs = [v.tensor for v in values[:count]]
            saved = [
                wrap(v, r.weak, scalar=r.scalar)
                for v, r in zip(values[count:], results[count:], strict=True)
            ]
            region = self._backward(call, pair, outs, results[:count], saved)
        wanted = [as_value(call.leaves[i]).tensor for i in call.floats()]
        captured = list(dict.fromkeys(region.captured))
        rule = region.close(captured, region.values, wanted, captures_first=True)
        wrapped = call.append(
            CUSTOM_VJP,
            values[:count],
            results[:count],
            call.closed(application),
            [*captured, *values[count:]],
            rule,
        )
        return pytree.unflatten(pair.out_tree, wrapped)

    def _backward(
        self,
        call: CustomCall,
        pair: _Pair,
        outs: Sequence[TensorType],
        results: Sequence[Result],
        saved: Sequence[Tracer],
    ) -> TracedRegion:
        """The backward rule as a region of (residuals..., cotangents of float outputs...)."""
        bwd = self.bwd
        assert bwd is not None
        floats = [is_inexact(t.dtype) for t in outs]
        specs = [spec_of(x) for x in saved]
        specs += [
            Spec(t, None, r.scalar) for t, r, f in zip(outs, results, floats, strict=True) if f
        ]

        def backward(*leaves: Any) -> list[Any]:
            lend(leaves, saved)
            seeds = iter(leaves[len(saved) :])
            residuals = pair.join(leaves[: len(saved)])
            ct = pytree.unflatten(pair.out_tree, [next(seeds) if f else None for f in floats])
            cotangents = bwd(*call.fixed, residuals, ct)
            return checked_cotangents(cotangents, call, bwd)

        tree = pytree.flatten((tuple(range(len(specs))), {}))[1]
        return trace_region(backward, specs, tree, f"the backward rule of {call.name}")


class custom_jvp(_Custom):
    """A function with a forward-mode derivative of the user's own, which serves both modes.

        @jt.custom_jvp
        def f(x, y): ...

        @f.defjvp
        def f_jvp(primals, tangents):   # two tuples with the arguments' structure
            x, y = primals
            tx, ty = tangents           # None stands for the tangent of an integer
            return f(x, y), tangent     # the result and its tangent, linear in tangents

        f.defjvps(f_x, f_y)             # or one rule per argument: f_x(tx, result, x, y)

    Reverse mode transposes the rule. Arguments in `nondiff_argnums` may be anything; the rule gets
    them first, one by one. The value of f is always f's, also under derivatives.
    """

    _rules = "f.defjvp(rule) or f.defjvps(rule_of_x, rule_of_y, ...)"

    def __init__(self, fun: Function, nondiff_argnums: int | Sequence[int] = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.jvp: Function | None = None

    def defjvp(self, jvp: Function) -> Function:
        """Set the rule; gives it back, so that it works as a decorator, too."""
        check_callable(jvp, "custom_jvp.defjvp")
        self.jvp = jvp
        return jvp

    def defjvps(self, *jvps: Function | None) -> None:
        """Set a rule for each argument: `rule(tangent, result, *args)`; None: no derivative."""
        if self.nondiff_argnums:
            raise TypeError("defjvps cannot be used with nondiff_argnums; use defjvp")

        def jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
            if len(jvps) != len(primals):
                complain(
                    errors.TransformError,
                    f"{function_name(self.fun)} takes {len(primals)} arguments, and defjvps was "
                    f"given {len(jvps)} rules",
                    "give one rule per argument, None where there is no derivative.",
                )
            out = self(*primals)
            parts = [
                rule(t, out, *primals)
                for rule, t in zip(jvps, tangents, strict=True)
                if rule is not None and t is not None
            ]
            total = parts[0] if parts else pytree.tree_map(lambda _: None, out)
            for part in parts[1:]:
                total = pytree.tree_map(lambda a, b: a + b, total, part)
            return out, total

        self.jvp = jvp

    @property
    def __jitney_rules__(self) -> dict[str, Function | None]:
        return {"jvp": self.jvp}

    def _has_rule(self) -> bool:
        return self.jvp is not None

    def _traced(self, args: tuple[Any, ...]) -> Any:
        call = CustomCall(self.fun, self.nondiff_argnums, args)
        with after(pending_derivatives()):  # they all go through the rule
            application, values = call.run(self.fun)
        out_tree, results = application.traced.out_tree, application.results
        outs = [wrap(v, r.weak, scalar=r.scalar) for v, r in zip(values, results, strict=True)]
        with after(1):
            region = self._forward(call, out_tree, outs)
        captured = list(dict.fromkeys(region.captured))
        wanted = [v.tensor for v in values if is_inexact(v.dtype)]
        rule = region.close(captured, region.values, wanted, captures_first=True)
        wrapped = call.append(CUSTOM_JVP, values, results, call.closed(application), captured, rule)
        return pytree.unflatten(out_tree, wrapped)

    def _forward(
        self, call: CustomCall, out_tree: pytree.TreeDef, outs: Sequence[Tracer]
    ) -> TracedRegion:
        """The rule as a region of (inputs..., results..., tangents of float inputs...). Where it calls
        the function with the same arguments, it gets these results."""
        jvp = self.jvp
        assert jvp is not None
        floats = call.floats()
        inputs = [x for x, t in zip(call.leaves, call.traced, strict=True) if t]
        types = [x.type for x in outs]
        count, here = len(inputs), len(inputs) + len(outs)
        specs = [spec_of(x) for x in (*inputs, *outs, *(call.leaves[i] for i in floats))]

        def forward(*leaves: Any) -> list[Any]:
            primal_leaves = list(call.leaves)
            traced = [i for i, t in enumerate(call.traced) if t]
            lend(leaves, [*inputs, *outs])
            for i, x in zip(traced, leaves[:count], strict=True):
                primal_leaves[i] = x
            tangents = [0.0 if type(x) is float else None for x in call.leaves]
            for i, t in zip(floats, leaves[here:], strict=True):
                tangents[i] = t
            require_trace().known_call = KnownCall(
                self, call.fixed, primal_leaves, leaves[count:here], out_tree
            )
            primals = pytree.unflatten(call.tree, primal_leaves)
            pair = jvp(*call.fixed, primals, pytree.unflatten(call.tree, tangents))
            return checked_tangents(pair, out_tree, types, call, jvp)

        tree = pytree.flatten((tuple(range(len(specs))), {}))[1]
        return trace_region(forward, specs, tree, f"the tangent rule of {call.name}")


class _Pair:
    """Takes what fwd gives apart. Leaves of the residuals that are no arrays pass by the trace."""

    out_tree: pytree.TreeDef
    residual_tree: pytree.TreeDef

    def __init__(self, fwd: Function, fun: Function) -> None:
        self.fwd = fwd
        self.fun = fun
        self.static: list[Any] = []

    def call(self, *args: Any) -> list[Any]:
        result = self.fwd(*args)
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            refuse_rule(
                f"{function_name(self.fwd)}, the forward rule of {function_name(self.fun)}, must "
                f"return a pair (result, residuals), not {shown(result)}",
                "return the value of the function first, then what the backward rule needs.",
                self.fwd,
            )
        out, self.out_tree = pytree.flatten(result[0])
        leaves, self.residual_tree = pytree.flatten(result[1])
        arrays = [is_array(x) or isinstance(x, np.generic) for x in leaves]
        self.static = [_Hole if a else x for x, a in zip(leaves, arrays, strict=True)]
        return [*out, *(x for x, a in zip(leaves, arrays, strict=True) if a)]

    def join(self, arrays: Sequence[Any]) -> Any:
        """The residuals, with `arrays` for the arrays among them."""
        remaining = iter(arrays)
        leaves = [next(remaining) if x is _Hole else x for x in self.static]
        return pytree.unflatten(self.residual_tree, leaves)


class _Hole:
    """Stands where an array was."""
