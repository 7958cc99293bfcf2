"""Graphs to loop nests: which values get memory, and a stage for each; ops that are not pointwise.

context           What the lowerings of a graph and of its regions share
elements          Arrays of expressions: a small value taken apart
lower             Graph -> stages: decides which values get memory
lower_chunks      Reductions with few results and many elements: by chunks
lower_control     Lowering of branches, effects and tapes
lower_library     Lowering of ops that loops of NumPy's compute (`ir.ops.libraries`): arrays
lower_loops       Lowering of loops: the region of a loop becomes a program that runs once per
lower_reductions  Lowering of reductions and scans
lower_scalars     Loops over few numbers become scalar code: carries in registers
lower_windows     Lowering of window reductions: what a window covers
one_hot           Scatters with one update for each row, as functions of an index
pointwise         Values as functions of an index
scalar_builder    Building scalar code: where each value of a region is
scalar_rules      What each op of a loop body becomes in scalar code: reductions, products
"""
