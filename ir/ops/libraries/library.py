"""Ops that NumPy's own compiled loops compute: LAPACK's decompositions, Fourier transforms.

    library("solve", "numpy.linalg._umath_linalg:solve", "(m,m),(m,n)->(m,n)", ...)

Such a loop is one of a generalised ufunc. It is called by its address, without Python, on all matrices
or rows of a batch, and its results have the bits that NumPy's have. Operands have the same leading dims,
the batch, and then the dims of the signature, which `sizes` fills up where no operand knows them.

A loop says that it failed (a singular matrix) by the floating-point flag "invalid", and gives NaN. With
`mode="check"` this is a LinAlgError, with `mode="fill"` it is NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...batching.transform import BatchBuilder, Batched, Marks, batch_elementwise
from ...build import Builder
from ...cost import Cost
from ...graph import Op, Value
from ...opdef import GraphError, OpDef, register
from ...record import record
from ...types import I32, TensorType, complex_dtype, is_complex, real_dtype
from ..composed import transposed
from ..families import INEXACT, Array, DType, Example, check_arity, check_dtype, check_kind

Core = tuple[str, ...]
Sizes = dict[str, int]


@record
class LibraryLoop:
    """One loop of one generalised ufunc, and the sizes that it is called with.

    `types` are NumPy's type codes (`dd->d`). `sizes` are those of the signature's dims, in the order in
    which they first appear; `cores` the shapes of one item of each operand and result. `constants` are
    operands of no dims after the others.
    """

    module: str
    name: str
    types: str
    sizes: tuple[int, ...]
    cores: tuple[tuple[int, ...], ...]
    constants: tuple[float, ...] = ()
    in_place: bool = False  # the first operand is overwritten, and is the first result too
    failure: str = ""  # what a LinAlgError says if the loop fails

    @property
    def ufunc(self) -> np.ufunc:
        ufunc = getattr(import_module(self.module), self.name)
        assert isinstance(ufunc, np.ufunc)
        return ufunc

    def evaluate(self, arrays: Sequence[Array], results: Sequence[TensorType]) -> tuple[Array, ...]:
        """What the loop gives for a batch of operands."""
        outputs = [np.empty(t.shape, t.dtype) for t in results]
        inputs = [np.array(a) if self.in_place else a for a in arrays]
        written = outputs[1:] if self.in_place else outputs
        invalid: Any = "call" if self.failure else "ignore"
        with np.errstate(call=self._fail, all="ignore", invalid=invalid):
            self.ufunc(*inputs, *self.constants, out=tuple(written), signature=self.types)
        return (inputs[0], *written) if self.in_place else tuple(outputs)

    def _fail(self, *_: Any) -> None:
        raise np.linalg.LinAlgError(self.failure)


def parse_signature(signature: str) -> tuple[list[Core], list[Core]]:
    """`"(m,n),()->(m)"`: the names of the dims of operands and of results."""
    sides = []
    for side in signature.split("->"):
        cores = side.strip()[1:-1].split("),(")
        sides.append([tuple(name for name in core.split(",") if name) for core in cores])
    return sides[0], sides[1]


def library(
    name: str,
    ufunc: str | Callable[..., str],
    signature: str | Callable[..., str],
    jvp: Callable[[Builder, Op, Sequence[Value | None]], list[Value | None]] | None = None,
    *,
    vjp: Callable[..., Any] | None = None,
    results: Sequence[str] = ("T",),
    sizes: Callable[..., Mapping[str, int]] = lambda dims, **_: {},
    constants: Callable[..., tuple[float, ...]] = lambda **_: (),
    failure: str = "",
    kinds: str = INEXACT,
    attrs: tuple[str, ...] = (),
    in_place: bool = False,
    examples: tuple[Example, ...] = (),
    doc: str = "",
) -> OpDef:
    """Define an op that a loop of a generalised ufunc computes.

    ufunc:      `module:name`, or a function of `(sizes, **attrs)` that gives it
    signature:  as NumPy writes it; or a function of the attributes
    results:    the dtype of each: "T" that of the operands, "real" of its parts, "complex" of numbers
                that have such parts, "i32"
    jvp:        its tangents are linear in those given, so that the transpose serves for the vjp
    """

    def parsed(attributes: Mapping[str, Any]) -> tuple[list[Core], list[Core]]:
        text = signature if isinstance(signature, str) else signature(**attributes)
        return _parse_once(text)

    def measured(
        types: Sequence[TensorType], attributes: Mapping[str, Any]
    ) -> tuple[tuple[int, ...], Sizes]:
        cores, _ = parsed(attributes)
        check_arity(types, len(cores))
        batch, dims = _measure(types, cores, kinds)
        return batch, {**dims, **sizes(dims, **_without_mode(attributes))}

    def infer(*types: TensorType, **attributes: Any) -> Any:
        batch, dims = measured(types, attributes)
        _, cores = parsed(attributes)
        dtype = types[0].dtype
        result_types = tuple(
            TensorType((*batch, *(dims[d] for d in core)), _result_dtype(dtype, result))
            for core, result in zip(cores, results, strict=True)
        )
        return result_types if len(result_types) > 1 else result_types[0]

    def loop(types: Sequence[TensorType], attributes: Mapping[str, Any]) -> LibraryLoop:
        """The loop that computes the op for operands of these types."""
        _, dims = measured(types, attributes)
        own = _without_mode(attributes)
        operands, cores = parsed(attributes)
        dtype = types[0].dtype
        extra = constants(**own)
        where = ufunc if isinstance(ufunc, str) else ufunc(dims, **own)
        module, function = where.split(":")
        outputs = [_result_dtype(dtype, result) for result in results]
        codes = [t.dtype.char for t in types] + [real_dtype(dtype).char] * len(extra)
        made = "".join(d.char for d in (outputs[1:] if in_place else outputs))
        order = dict.fromkeys(d for core in (*operands, *cores) for d in core)
        shapes = [tuple(dims[d] for d in core) for core in (*operands, *((),) * len(extra), *cores)]
        checked = attributes.get("mode", "fill") == "check"
        return LibraryLoop(
            module,
            function,
            f"{''.join(codes)}->{made}",
            tuple(dims[d] for d in order),
            tuple(shapes),
            extra,
            in_place,
            failure if checked else "",
        )

    def reference(*arrays: Array, **attributes: Any) -> Any:
        types = [TensorType(a.shape, a.dtype) for a in arrays]
        made = infer(*types, **attributes)
        outputs = loop(types, attributes).evaluate(
            arrays, made if isinstance(made, tuple) else [made]
        )
        return outputs if len(outputs) > 1 else outputs[0]

    return register(
        OpDef(
            name,
            "library",
            infer,
            reference,
            jvp,
            vjp or (None if jvp is None else transposed(jvp)),
            batch=batch_checked,
            dtypes=kinds,
            attrs=(*attrs, "mode") if failure else attrs,
            doc=doc,
            extra={"loop": loop, "examples": examples, "failure": failure},
        )
    )


@functools.cache
def _parse_once(signature: str) -> tuple[list[Core], list[Core]]:
    return parse_signature(signature)


def _without_mode(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if name != "mode"}


def _measure(
    types: Sequence[TensorType], cores: Sequence[Core], kinds: str
) -> tuple[tuple[int, ...], Sizes]:
    """The batch's shape, and the sizes of the dims that the operands have."""
    first = types[0]
    for type in types:
        check_kind(type, kinds)
    batch = first.shape[: first.rank - len(cores[0])]
    sizes: Sizes = {}
    for type, core in zip(types, cores, strict=True):
        lead = type.rank - len(core)
        if (
            lead < 0
            or type.shape[:lead] != batch
            or real_dtype(type.dtype) != real_dtype(first.dtype)
        ):
            raise GraphError(f"{first} and {type} differ in dtype or in their leading dims")
        for dim, n in zip(core, type.shape[lead:], strict=True):
            if sizes.setdefault(dim, n) != n:
                raise GraphError(f"{type} where the dim {dim} is {sizes[dim]}")
    return batch, sizes


def _result_dtype(operand: DType, result: str) -> DType:
    match result:
        case "T":
            return operand
        case "real":
            return real_dtype(operand)
        case "complex":
            return operand if is_complex(operand) else complex_dtype(operand)
    assert result == "i32", result
    return I32


def loop_of(op: Op) -> LibraryLoop:
    """The loop that computes a library op."""
    loop: LibraryLoop = op.definition.extra["loop"]([v.tensor for v in op.operands], op.attrs)
    return loop


def batch_checked(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    """One more leading dim. Where examples do not count, their first operand is one that cannot fail."""
    spread = b.spread_all(operands, batched)
    if b.active is not None and op.attrs.get("mode") == "check":
        spread[0] = b.choose(b.active, spread[0], _harmless(b, spread[0]))
    new = b.append(op.definition, spread, op.attrs)
    return new.results, [True] * len(new.results)


def _harmless(b: Builder, x: Value) -> Value:
    """Matrices with ones on their diagonals, like `x`."""
    matrix = np.eye(*x.shape[-2:], dtype=x.dtype)
    return b.broadcast_to(b.const(matrix), x.shape)


# The same without complex numbers: an operand that was complex is two, its parts; a result that was
# has one more dim, with the two parts of each number.


def _infer_call(
    *types: TensorType, loop: LibraryLoop, pairs: tuple[bool, ...], results: tuple[TensorType, ...]
) -> tuple[TensorType, ...]:
    check_arity(types, sum(1 + paired for paired in pairs[: len(pairs) - len(results)]))
    return results


def _call(
    *arrays: Array, loop: LibraryLoop, pairs: tuple[bool, ...], results: tuple[TensorType, ...]
) -> tuple[Array, ...]:
    operands, made = pairs[: len(pairs) - len(results)], pairs[len(pairs) - len(results) :]
    remaining = iter(arrays)
    joined = [_join(next(remaining), next(remaining)) if p else next(remaining) for p in operands]
    types = [
        TensorType(t.shape[:-1], complex_dtype(t.dtype)) if paired else t
        for t, paired in zip(results, made, strict=True)
    ]
    outputs = loop.evaluate(joined, types)
    return tuple(
        np.stack((a.real, a.imag), -1) if paired else a
        for a, paired in zip(outputs, made, strict=True)
    )


def _join(re: Array, im: Array) -> Array:
    out = np.empty(re.shape, complex_dtype(re.dtype))
    out.real, out.imag = re, im
    return out


def _batch_call(b: BatchBuilder, op: Op, operands: Sequence[Value], batched: Marks) -> Batched:
    results = tuple(t.with_shape((b.size, *t.shape)) for t in op.attrs["results"])
    spread = b.spread_all(operands, batched)
    new = b.append(op.definition, spread, {**op.attrs, "results": results})
    return new.results, [True] * len(new.results)


LIBRARY_CALL = register(
    OpDef(
        "library_call",
        "library",
        _infer_call,
        _call,
        total=False,
        batch=_batch_call,
        attrs=("loop", "pairs", "results"),
        doc="a loop of NumPy's on real arrays, some of which hold the parts of complex numbers",
    )
)


def _infer_require(fine: TensorType, *, message: str, mode: str) -> TensorType:
    check_dtype(fine, "bool", "the condition")
    return fine


def _require(fine: Array, *, message: str, mode: str) -> Array:
    if not np.all(fine):
        raise np.linalg.LinAlgError(message)
    return fine


register(
    OpDef(
        "require",
        "opaque",
        _infer_require,
        _require,
        cost=Cost.FREE,
        pointwise=True,
        total=False,
        batch=batch_elementwise,
        dtypes="b",
        attrs=("message", "mode"),
        doc="the operand; a LinAlgError where it is false",
    )
)
