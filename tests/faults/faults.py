"""All planted faults."""

import planted_in_codegen
import planted_in_ir
import planted_in_runtime
import planted_in_tracer

FAULTS = (
    *planted_in_tracer.FAULTS,
    *planted_in_ir.FAULTS,
    *planted_in_codegen.FAULTS,
    *planted_in_runtime.FAULTS,
)
