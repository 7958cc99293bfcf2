"""What transformed code calls in place of functions of NumPy, SciPy and Python's `math` that would ask
traced values for their elements."""
