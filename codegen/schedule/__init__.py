"""How loop nests run: what is fused, blocked, done in place, where temporaries lie, how loops are cut.

blocking     How a matrix product is cut: tiles for the registers
cache_lines  What a schedule does about cache lines: where vectors of a row begin
conv_plan    How a convolution is cut: phases of a dilated operand, tiles for the registers
fusion       Fusion: stages that share loops become one kernel
aliasing     Inputs that a program may overwrite, and the outputs that take their place
in_place     Results that may stay in the memory of an operand: updates
memory       The memory plan: every temporary gets a place in one arena
regions      Regions: the elements that accesses touch, as sets of integers
rowblocks    Row blocks: steps that follow one another on one part of their rows while it is in
schedule     Schedules: how the loops of a kernel run on a CPU
signature    Which kernels are the same code: equal but for the memory that they work on
sort_blocks  How a long row is cut for sorting by digits, and the memory that this takes
survey       What one look at a stage's expressions finds, for those who schedule and emit it
tiled        Steps that are loops around micro-kernels: convolutions and attention
time_tiles   Time tiles: a loop over stencils makes several trips on a block of rows while it is
"""
