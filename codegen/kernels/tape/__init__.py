"""Tapes: memory that grows while a loop runs, on CPUs and GPUs
(docs/decisions/0003-tapes-are-values.md).

On GPUs records lie on a heap that the device keeps by itself: a run that wants more room is
repeated with a larger heap, unless it leaves something behind; then the host keeps them.
"""
