"""Derivatives: graphs made from graphs, and what of a forward part is kept for the backward one.

They are made before optimisation, from the `jvp` and `vjp` rules of records. A `scan` stacks what
its backward scan reads; a `while` pushes it on a tape, whose memory `checkpoint=` bounds by running
parts again. Attention that is written out is found first, and differentiated as that op.

What does not live here: the rules of ops, which stand in their records (`ops`).
"""
