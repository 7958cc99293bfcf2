"""The stages of a call, as values that show themselves: source, graphs, loops, code, memory.

`stages.py` is what `f.stages(x)` gives, `making.py` makes it of what the compiler does, `sources.py`
finds the user's code, `fates.py` tells what became of names; `exploring.py` puts source, loops and
assembly side by side; `drawing.py` draws graphs (`boxes.py`: what is in what; `layout.py`: where);
`pages.py` is the HTML that all share.
"""
