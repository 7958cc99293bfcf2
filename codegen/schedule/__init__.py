"""How loop nests run: what is fused, blocked, done in place, where temporaries lie, how loops are cut.

*Fusion*: stages that share loops become one kernel, a map (values pass in registers) or a row
kernel (nests follow one another on one row: a softmax is one kernel of three nests). *Row blocks*:
steps around a product that go row by row run on one block of rows after the other, while it is in
the cache; *time tiles*: a loop over stencils makes several iterations on such a block, in the order
that no block needs what another has not made. *Memory*: temporaries share one arena by lifetime;
inputs that were donated, or that the function assigns to, lend their memory to outputs. *Loops*:
which are walked as one, which is vectorised and how wide, what threads share. Unrolling is a wider
vector: `<64 x float>` on a machine of 512 bits is four registers in flight. Kernels that are equal
but for their memory, such as the layers of a network, are one function.

All ask `regions` what an access touches: exactly where indices are affine, on the safe side where
they are not.
"""
