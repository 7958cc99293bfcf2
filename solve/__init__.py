"""`jt.solve`: roots, minima, linear systems and differential equations, to be differentiated through.

Names, arguments and results are SciPy's. This room uses public names only.
"""
