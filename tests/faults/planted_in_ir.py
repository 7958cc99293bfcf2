"""Faults in graphs: rules of ops, derivatives, batching, passes."""

from planted import Fault

FAULTS = (
    Fault(
        "derivative rule",
        "the derivative of tanh has the wrong sign in one factor",
        "ir/ops/elementwise/unary.py",
        "t * ((1 - z) * (1 + z)))",
        "t * ((1 - z) * (1 - z)))",
        "tests/tracer/transforms/test_derivatives.py::test_first_derivative",
    ),
    Fault(
        "gradient of broadcasts",
        "what is broadcast gets the largest of its cotangents, not their sum",
        "ir/ops/movement/movement.py",
        'return b.sum(ct, axes=new)\n\n\nlinear(\n    "broadcast",',
        'return b.max(ct, axes=new)\n\n\nlinear(\n    "broadcast",',
        "tests/ir/test_autodiff.py::test_forward_reverse_and_differences_agree",
    ),
    Fault(
        "gradient of branches",
        "the backward part of a branch is that of another branch",
        "ir/ops/control/structured.py",
        "new_op = b.append(op.definition, operands, {}, branches)",
        "new_op = b.append(op.definition, operands, {}, branches[::-1])",
        "tests/ir/test_structured.py::test_cond",
    ),
    Fault(
        "reversed scans",
        "the backward scan of a reversed scan runs in the same direction",
        "ir/ops/control/scan.py",
        '"reverse": not op.attrs["reverse"],',
        '"reverse": True,',
        "tests/ir/test_scan_ir.py::test_recurrent_cell",
    ),
    Fault(
        "batching rule",
        "any and all of a batch reduce one axis before those that were asked for",
        "ir/ops/folds/reductions.py",
        "batch=leading(**{attr: shift}),",
        "batch=leading(),",
        "tests/ir/test_batching.py::test_each_combination_of_batched_operands",
    ),
    Fault(
        "branch of complex roots",
        "the root of a number below the real axis is the other one",
        "ir/passes/complex_math.py",
        "where(right, other, t.copysign(y))",
        "where(right, other, t)",
        "tests/e2e/test_complex_ops.py::test_signed_zeros_choose_the_side_of_a_cut",
    ),
    Fault(
        "order of tapes",
        "the records of a tape are read first in, first out, by compiled code",
        "codegen/kernels/tape/cpu_tapes.py",
        "f.store(record, top_at)\n    f.ret(record)",
        "f.store(record, top_at)\n    f.ret(f.offset(block, _BLOCK_HEAD))",
        "tests/codegen/test_native_loops.py::test_tape",
    ),
    Fault(
        "gradient of repeated reads",
        "what is read several times gets the cotangent of the last read, not their sum",
        "ir/ops/movement/indexing.py",
        'b.zeros(x.tensor), ct, *indices, combine="add", **op.attrs)',
        'b.zeros(x.tensor), ct, *indices, combine="set", **op.attrs)',
        "tests/tracer/indexing/test_index_modes.py::test_gradients",
    ),
)
