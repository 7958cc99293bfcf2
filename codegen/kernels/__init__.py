"""Kernel families, one idea in one folder: how an op is lowered, its kernels on CPUs (`cpu_*`) and on
GPUs (`cuda_*`).

A family is a lowering that emits a step with a plan of its own (plain data: what is cut how), and
an emitter for that plan, in the tables of `codegen.program` and `codegen.device`.
"""
