"""Programs for CPUs: from a graph to a module, and the entry function that calls the kernels.

The program's branches and loops are branches and loops of the entry. Many calls in a row are a
table that one small loop works through. Complex arguments and results are interleaved in memory, as
two strided arrays.
"""
