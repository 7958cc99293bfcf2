"""Checked memory: code that says so when it reads or writes what it must not
(docs/decisions/0008-sanitizer-rewrites-text.md).

A pointer of checked code carries a number in its upper 16 bits, which address arithmetic, memory
and calls pass on: that of the array it was made for. So an index that leaves one array is found
even if it meets another. Beside each array lies a shadow, which knows for each byte whether it was
written, through which array, and by which unit of work; the units of a loop that threads share run
one after the other here, and a byte that two of them touch, one of them writing, is a race.
"""
