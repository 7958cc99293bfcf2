"""Programs as text for people: loop nests as readable loops, and where temporaries lie in memory.

`expressions.py` writes what is computed at a point, `loops.py` the steps of a program around that,
`scalar_code.py` statements over single numbers, `memory.py` the plan of the arena. Nothing is read back.
"""
