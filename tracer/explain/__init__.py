"""What became of a function, to be looked at: stages between a graph and machine code, and their costs.

`lowered.py` is what `f.lower(x)` gives; `explanation.py` what `f.explain(x)` does, a text that shows
itself as HTML in a notebook; `steps.py` the steps of a program with what was measured of each,
`memory.py` its temporaries, `reasons.py` why things were not done, `roofline.py` a chart, `units.py` how
lines, times and sizes are shown.
"""
