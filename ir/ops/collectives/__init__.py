"""Collectives: what the members of a group exchange, one record for each, in two forms.

A group is an axis with a name, whose members are the examples of a `vmap` (`axis_reduce`, `axis_gather`,
...): these ops are pure, and batching over the axis turns them into sums, transposes, slices. Or it is a
communicator, whose members are processes (`all_reduce`, `all_gather`, ...): these are effects in program
order, so that all processes meet in the same order, and native code calls back for them.

What does not live here: which communicators there are and who carries a collective out
(`ir.groups`, `jitney.distributed`).
"""
